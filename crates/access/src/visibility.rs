//! The snapshot's answers, in the words `heap` asks in.

use std::sync::Arc;

use stegodon_format::heap_tuple::HeapTupleRef;
use stegodon_format::ids::{MultiXactId, Tid, Xid};
use stegodon_heap::Visibility;
use stegodon_txn::{Snapshot, Transactions, VisibilityChecker};

/// The answers of one scan under one snapshot.
#[derive(Clone)]
pub struct SnapshotVisibility {
    checker: VisibilityChecker,
    transactions: Arc<Transactions>,
}

impl SnapshotVisibility {
    pub(crate) fn new(transactions: Arc<Transactions>, snapshot: Arc<Snapshot>) -> Self {
        Self { checker: VisibilityChecker::new(Arc::clone(&transactions), snapshot), transactions }
    }
}

impl Visibility for SnapshotVisibility {
    type Error = stegodon_txn::Error;

    fn is_visible(&mut self, tuple: HeapTupleRef<'_>, _: Tid) -> Result<bool, Self::Error> {
        Ok(self.checker.check(tuple)?.is_visible())
    }

    fn multixact_updater(&mut self, multixact: MultiXactId) -> Result<Xid, Self::Error> {
        Ok(self.transactions.multixacts().update_xid(multixact)?.unwrap_or(Xid::INVALID))
    }
}
