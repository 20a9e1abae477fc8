//! Rows that an OFFSET above a scan drops: the scan need not decode them.
//!
//! The scan drops visible rows as long as it has given none; what it did not drop is left to the Limit. So the rows dropped
//! are the first ones, whoever drops them. Only where no condition is checked and every target is a column as it lies there:
//! PostgreSQL evaluates the others for rows that it drops, and an error there is an error.

use std::sync::atomic::{AtomicU64, Ordering};

use stegodon_nodes::Expr;
use stegodon_plan::node::{PlanKind, PlanNode};

/// How many rows are still to be dropped: told by the Limit, counted down by the scan.
#[derive(Debug, Default)]
pub(crate) struct Skip(AtomicU64);

impl Skip {
    /// Asks for the next `rows` to be dropped.
    pub(crate) fn ask(&self, rows: u64) {
        self.0.store(rows, Ordering::Relaxed);
    }

    /// Of `rows`, how many to drop.
    pub(super) fn take(&self, rows: u64) -> u64 {
        let left = self.0.load(Ordering::Relaxed);
        let taken = left.min(rows);
        if taken > 0 {
            self.0.store(left - taken, Ordering::Relaxed);
        }
        taken
    }

    /// How many were not dropped. None is from now on.
    pub(crate) fn close(&self) -> u64 {
        self.0.swap(0, Ordering::Relaxed)
    }
}

/// Whether a scan may drop rows without decoding them.
pub(crate) fn may_skip(scan: &PlanNode) -> bool {
    let column = |target: &Expr| matches!(target, Expr::Var(var) if var.attno.0 != 0);
    matches!(scan.kind, PlanKind::SeqScan { .. } | PlanKind::IndexScan(_) | PlanKind::BitmapHeapScan { .. })
        && !scan.parallel_aware
        && scan.quals.is_empty()
        && scan.targets.iter().all(|target| column(&target.expr))
}
