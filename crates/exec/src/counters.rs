//! What an execution counts, by plan node: the one struct that EXPLAIN ANALYZE reads.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counters of all nodes of a plan, by `PlanNode::id`.
#[derive(Debug, Default)]
pub struct Counters {
    nodes: Vec<NodeCounters>,
}

/// The counters of one node. All are sums over loops and workers.
#[derive(Debug, Default)]
pub struct NodeCounters {
    /// Rows given to the parent.
    pub rows: AtomicU64,
    /// How often it was started.
    pub loops: AtomicU64,
    /// Time until its first row, in nanoseconds.
    pub startup_ns: AtomicU64,
    /// Time until its last row, in nanoseconds.
    pub total_ns: AtomicU64,
    /// Rows that its quals removed.
    pub filtered: AtomicU64,
    /// Rows that a join's own conditions, or a recheck, removed.
    pub filtered_second: AtomicU64,
    /// Heap pages with exact row pointers.
    pub exact_pages: AtomicU64,
    /// Heap pages whose rows were all rechecked.
    pub lossy_pages: AtomicU64,
    /// Heap visits of an index-only scan.
    pub heap_fetches: AtomicU64,
    /// Descents of an index.
    pub index_searches: AtomicU64,
    /// Pages found in the pool, by this node alone.
    pub hits: AtomicU64,
    /// Pages read, by this node alone.
    pub reads: AtomicU64,
    /// Workers that ran.
    pub workers: AtomicU64,
    /// Most bytes of memory held by a sort or hash.
    pub memory_bytes: AtomicU64,
    /// Most bytes of temporary files held by it, as seen between batches.
    pub disk_bytes: AtomicU64,
    /// Sorts that keep only the first rows.
    pub bounded_sorts: AtomicU64,
}

impl Counters {
    /// Counters for `nodes` nodes.
    pub fn new(nodes: usize) -> Self {
        Self { nodes: (0..nodes).map(|_| NodeCounters::default()).collect() }
    }

    /// One node's counters.
    pub fn node(&self, id: usize) -> Option<&NodeCounters> {
        self.nodes.get(id)
    }
}

/// Adds to a counter. Relaxed: they are read after the execution has ended.
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

/// Reads a counter.
pub fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
