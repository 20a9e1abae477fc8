//! Scans: from a plan's scan node to batches of visible rows that pass its conditions.
//!
//! ```text
//!   blocks ─▸ read stream ─▸ pinned page ─▸ visible offsets ─▸ HeapRows: columns for the conditions,
//!   index  ─▸ TIDs ──────────────┘                              then the others for the rows that are left ─▸ batch
//! ```
//!
//! Every scan is a [`crate::operator::Operator`] made of plain data; a latch guard never lives across an await, and a
//! batch that has left a scan holds no pin.

mod bitmap;
mod endpoint;
mod heap_rows;
mod index;
mod index_only;
mod keys;
mod relation;
mod sequential;
mod skip;
mod tid;
mod visibility_map;

pub(crate) use bitmap::{BitmapHeapScan, BitmapSource};
pub(crate) use heap_rows::{HeapRows, RowBuffer, column_of};
pub(crate) use index::IndexScan;
pub(crate) use index_only::IndexOnlyScan;
pub(crate) use keys::IndexKeys;
pub use relation::Opener;
pub(crate) use sequential::SequentialScan;
pub(crate) use skip::{Skip, may_skip};
pub(crate) use tid::{TidRangeScan, TidScan};

use std::sync::Arc;

use stegodon_buffer::IoCounters;

use crate::counters::{add, read};
use crate::execution::Execution;

/// Counts a scan's pages, and hands the sum to its node when it ends, however it ends.
pub(crate) struct ScanIo {
    execution: Arc<Execution>,
    node: usize,
    pub(crate) counters: Arc<IoCounters>,
}

impl ScanIo {
    pub(crate) fn new(execution: &Arc<Execution>, node: usize) -> Self {
        let counters = Arc::new(IoCounters::with_policy(execution.damage));
        Self { execution: Arc::clone(execution), node, counters }
    }
}

impl Drop for ScanIo {
    fn drop(&mut self) {
        if let Some(node) = self.execution.counters.node(self.node) {
            add(&node.hits, read(&self.counters.hits));
            add(&node.reads, read(&self.counters.pages_read));
        }
        let warnings = self.counters.take_warnings();
        if !warnings.is_empty() {
            self.execution.warnings.lock().extend(warnings);
        }
    }
}
