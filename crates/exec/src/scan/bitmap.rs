//! `Bitmap Heap Scan` over `Bitmap Index Scan`, `BitmapAnd` and `BitmapOr`.
//!
//! The bitmap is built once, whoever of the workers comes first; then each worker takes ranges of blocks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::RecordBatch;
use async_trait::async_trait;
use stegodon_bitmap::{BitmapPage, FrozenBitmap, PageMatches, TidBitmap};
use stegodon_buffer::PinnedPage;
use stegodon_format::ids::BlockNumber;
use stegodon_nbtree::ScanOptions;
use stegodon_types::SqlResult;

use super::sequential::{PageRows, pages};
use super::{HeapRows, IndexKeys, ScanIo};
use crate::counters::add;
use crate::execution::Execution;
use crate::operator::{Input, Operator, Producer};

/// Where a bitmap comes from.
#[derive(Debug)]
pub(crate) enum BitmapSource {
    /// An index.
    Index { node: usize, keys: IndexKeys },
    /// What all say.
    And { node: usize, sources: Vec<BitmapSource> },
    /// What any says.
    Or { node: usize, sources: Vec<BitmapSource> },
}

impl BitmapSource {
    async fn build(&self, execution: &Arc<Execution>) -> SqlResult<TidBitmap> {
        let built = match self {
            BitmapSource::Index { node, keys } => scan_index(execution, *node, keys).await?,
            BitmapSource::And { sources, .. } => {
                let mut result: Option<TidBitmap> = None;
                for source in sources {
                    let next = Box::pin(source.build(execution)).await?;
                    match &mut result {
                        None => result = Some(next),
                        Some(result) => result.intersect(next),
                    }
                }
                result.unwrap_or_else(|| TidBitmap::new(execution.work_mem_bytes))
            }
            BitmapSource::Or { sources, .. } => {
                let mut result = TidBitmap::new(execution.work_mem_bytes);
                for source in sources {
                    result.union(Box::pin(source.build(execution)).await?);
                }
                result
            }
        };
        if let Some(counters) = execution.counters.node(self.node()) {
            add(&counters.loops, 1);
        }
        Ok(built)
    }

    fn node(&self) -> usize {
        match self {
            BitmapSource::Index { node, .. } | BitmapSource::And { node, .. } | BitmapSource::Or { node, .. } => *node,
        }
    }
}

async fn scan_index(execution: &Arc<Execution>, node: usize, keys: &IndexKeys) -> SqlResult<TidBitmap> {
    let io = ScanIo::new(execution, node);
    let mut scan = keys.scan(ScanOptions::default(), &io.counters);
    scan.rescan(&keys.evaluate().await?)?;
    let mut bitmap = TidBitmap::new(execution.work_mem_bytes);
    let mut rows = 0;
    while scan.next().await? {
        execution.cancel.check()?;
        rows += scan.matches().len() as u64;
        bitmap.add_tids(scan.matches().iter().copied(), false)?;
    }
    if let Some(counters) = execution.counters.node(node) {
        add(&counters.rows, rows);
        add(&counters.index_searches, scan.counters().searches);
    }
    Ok(bitmap)
}

/// How many ranges each worker should find.
const RANGES_PER_WORKER: usize = 16;

/// A bitmap heap scan by `workers` partitions.
pub(crate) struct BitmapHeapScan {
    rows: Arc<HeapRows>,
    source: BitmapSource,
    workers: usize,
    shared: futures::lock::Mutex<Option<Arc<Shared>>>,
}

impl std::fmt::Debug for BitmapHeapScan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BitmapHeapScan").field("source", &self.source).finish_non_exhaustive()
    }
}

/// A built bitmap, and which of its ranges is to be taken next.
struct Shared {
    bitmap: FrozenBitmap,
    ranges: Vec<std::ops::Range<BlockNumber>>,
    next: AtomicUsize,
    blocks: u32,
}

impl BitmapHeapScan {
    pub(crate) fn new(rows: Arc<HeapRows>, source: BitmapSource, workers: usize) -> Self {
        Self { rows, source, workers, shared: futures::lock::Mutex::new(None) }
    }

    async fn build(&self) -> SqlResult<Arc<Shared>> {
        let bitmap = self.source.build(&self.rows.execution).await?.freeze();
        let ranges = if self.workers == 1 { 1 } else { self.workers * RANGES_PER_WORKER };
        let ranges = bitmap.divide(ranges);
        Ok(Arc::new(Shared { bitmap, ranges, next: AtomicUsize::new(0), blocks: self.rows.table.blocks()? }))
    }

    /// The bitmap: built anew for a lone scan, once for workers.
    async fn shared(&self) -> SqlResult<Arc<Shared>> {
        if self.workers == 1 {
            return self.build().await;
        }
        let mut shared = self.shared.lock().await;
        if let Some(built) = &*shared {
            return Ok(Arc::clone(built));
        }
        let built = self.build().await?;
        *shared = Some(Arc::clone(&built));
        Ok(built)
    }
}

impl Operator for BitmapHeapScan {
    fn name(&self) -> &'static str {
        "Bitmap Heap Scan"
    }

    fn start(self: Arc<Self>, _: usize, _: Vec<Input>) -> SqlResult<Box<dyn Producer>> {
        Ok(Box::new(Running { operator: self, scan: None }))
    }
}

struct Running {
    operator: Arc<BitmapHeapScan>,
    scan: Option<Box<dyn Producer>>,
}

#[async_trait]
impl Producer for Running {
    async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        if self.scan.is_none() {
            let shared = self.operator.shared().await?;
            self.scan = Some(start(&self.operator.rows, shared));
        }
        match &mut self.scan {
            Some(scan) => scan.next().await,
            None => Ok(None),
        }
    }
}

fn start(rows: &Arc<HeapRows>, shared: Arc<Shared>) -> Box<dyn Producer> {
    let (execution, node) = (Arc::clone(&rows.execution), rows.node);
    let add_page = move |(page, matches): (PinnedPage, BitmapPage), rows: &mut PageRows| {
        let counters = execution.counters.node(node);
        match matches.matches {
            PageMatches::Exact { offsets, recheck } => {
                if let Some(counters) = counters {
                    add(&counters.exact_pages, 1);
                }
                rows.add_roots(&page, offsets.iter(), recheck)
            }
            PageMatches::Lossy => {
                if let Some(counters) = counters {
                    add(&counters.lossy_pages, 1);
                }
                rows.add_all(&page, true)
            }
        }
    };
    Box::new(pages(rows, Pages { shared, pending: Vec::new(), block: None }, add_page))
}

/// The pages of one worker's ranges. Keeps a few pages of the current range, taken from the bitmap together.
struct Pages {
    shared: Arc<Shared>,
    /// Pages taken, last first.
    pending: Vec<BitmapPage>,
    /// Where to go on in the current range, and its end.
    block: Option<(BlockNumber, BlockNumber)>,
}

/// Pages taken from the bitmap at once.
const PAGES_AT_ONCE: usize = 64;

impl stegodon_buffer::BlockSource for Pages {
    type Data = BitmapPage;

    fn next_block(&mut self) -> Option<(BlockNumber, BitmapPage)> {
        loop {
            if let Some(page) = self.pending.pop() {
                // A lossy page may lie beyond the end of the table.
                if page.block.0 < self.shared.blocks {
                    return Some((page.block, page));
                }
                continue;
            }
            let (from, to) = if let Some(range) = self.block.take() {
                range
            } else {
                let next = self.shared.next.fetch_add(1, Ordering::Relaxed);
                let range = self.shared.ranges.get(next)?;
                (range.start, range.end)
            };
            self.pending.extend(self.shared.bitmap.iter_range(from..to).take(PAGES_AT_ONCE));
            if self.pending.len() == PAGES_AT_ONCE
                && let Some(last) = self.pending.last()
                && last.block.next() < to
            {
                self.block = Some((last.block.next(), to));
            }
            self.pending.reverse();
        }
    }
}
