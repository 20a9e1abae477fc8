//! `Seq Scan`: every block, once, by one scan or shared out to workers.

use std::sync::{Arc, OnceLock};

use arrow_array::RecordBatch;
use async_trait::async_trait;
use stegodon_access::SharedBlocks;
use stegodon_buffer::{BlockSource, PinnedPage, ReadStream, StreamOptions};
use stegodon_format::ids::{Fork, OffsetNumber};
use stegodon_heap::HeapPage;
use stegodon_txn::VisibilityChecker;
use stegodon_types::SqlResult;

use super::{HeapRows, RowBuffer, ScanIo};
use crate::operator::{Input, Operator, Producer};

/// A sequential scan by `workers` partitions.
#[derive(Debug)]
pub(crate) struct SequentialScan {
    pub(crate) rows: Arc<HeapRows>,
    pub(crate) workers: usize,
    pub(crate) shared: OnceLock<Arc<SharedBlocks>>,
}

impl SequentialScan {
    pub(crate) fn new(rows: Arc<HeapRows>, workers: usize) -> Self {
        Self { rows, workers, shared: OnceLock::new() }
    }

    fn blocks(&self) -> SqlResult<Arc<SharedBlocks>> {
        let fresh = Arc::new(SharedBlocks::new(0, self.rows.table.blocks()?, self.workers));
        if self.workers == 1 {
            return Ok(fresh);
        }
        Ok(Arc::clone(self.shared.get_or_init(|| fresh)))
    }
}

impl Operator for SequentialScan {
    fn name(&self) -> &'static str {
        "Seq Scan"
    }

    fn start(self: Arc<Self>, _: usize, _: Vec<Input>) -> SqlResult<Box<dyn Producer>> {
        let mut next = self.blocks()?.iter();
        let source = move || next().map(|block| (block, ()));
        Ok(Box::new(pages(&self.rows, source, |page, rows| rows.add_visible(page))))
    }
}

/// A scan over the pages that a source names. `add` says which of a page's tuples to add.
pub(super) fn pages<S, F>(rows: &Arc<HeapRows>, source: S, add: F) -> PageScan<S, F>
where
    S: BlockSource + Send,
    F: FnMut((PinnedPage, S::Data), &mut PageRows) -> SqlResult<()> + Send,
{
    let io = ScanIo::new(&rows.execution, rows.node);
    let storage = &rows.execution.storage;
    let options = StreamOptions { full: true, ..rows.execution.stream };
    let stream = ReadStream::new(storage.pool(), &rows.table.files, Fork::Main, source, options);
    let stream = stream.counted(Arc::clone(&io.counters));
    PageScan { stream: Some(stream), rows: PageRows::new(rows), add, io }
}

/// Rows gathered page by page.
pub(super) struct PageRows {
    rows: Arc<HeapRows>,
    pub(super) buffer: RowBuffer,
    visibility: VisibilityChecker,
    offsets: Vec<OffsetNumber>,
    /// Where the line pointers of the last page ended and its tuples began.
    shape: (u16, u16),
}

impl PageRows {
    pub(super) fn new(rows: &Arc<HeapRows>) -> Self {
        Self {
            buffer: RowBuffer::new(rows),
            visibility: rows.execution.storage.visibility(),
            offsets: Vec::new(),
            shape: (0, u16::MAX),
            rows: Arc::clone(rows),
        }
    }

    /// Adds all visible tuples of a page.
    pub(super) fn add_visible<D>(&mut self, (page, _): (PinnedPage, D)) -> SqlResult<()> {
        self.add_all(&page, false)
    }

    /// Adds all visible tuples of a page, to be rechecked or not.
    pub(super) fn add_all(&mut self, page: &PinnedPage, recheck: bool) -> SqlResult<()> {
        let guard = page.latch_shared();
        let heap = self.rows.table.page(&guard);
        self.shape = shape(&heap, self.rows.reads_nothing());
        self.offsets.clear();
        heap.visible_offsets(&mut self.visibility, &mut self.offsets)?;
        self.buffer.push(&heap, &self.offsets, recheck)
    }

    /// Adds the visible versions of the rows that these line pointers lead to.
    pub(super) fn add_roots(
        &mut self,
        page: &PinnedPage,
        roots: impl Iterator<Item = OffsetNumber>,
        recheck: bool,
    ) -> SqlResult<()> {
        let guard = page.latch_shared();
        let heap = self.rows.table.page(&guard);
        self.shape = shape(&heap, self.rows.reads_nothing());
        self.offsets.clear();
        heap.visible_versions(roots, &mut self.visibility, &mut self.offsets)?;
        self.buffer.push(&heap, &self.offsets, recheck)
    }

    /// Adds the visible tuples at exactly those line pointers.
    pub(super) fn add_exactly(&mut self, page: &PinnedPage, wanted: impl Fn(OffsetNumber) -> bool) -> SqlResult<()> {
        let guard = page.latch_shared();
        let heap = self.rows.table.page(&guard);
        self.shape = shape(&heap, self.rows.reads_nothing());
        self.offsets.clear();
        heap.visible_offsets(&mut self.visibility, &mut self.offsets)?;
        self.offsets.retain(|o| wanted(*o));
        self.buffer.push(&heap, &self.offsets, false)
    }
}

/// What of a page like this is looked at: its line pointers, and its tuples from where they begin, unless that is nowhere.
fn shape(heap: &HeapPage<'_>, reads_nothing: bool) -> (u16, u16) {
    let page = heap.page();
    let tail = if reads_nothing && page.flags().all_visible() { u16::MAX } else { page.upper() };
    (page.lower(), tail)
}

/// Pages after which a scan that found no row lets others run.
const PAGES_AT_ONCE: usize = 512;

/// A running scan over pages.
pub(super) struct PageScan<S: BlockSource, F> {
    stream: Option<ReadStream<S>>,
    rows: PageRows,
    add: F,
    io: ScanIo,
}

#[async_trait]
impl<S, F> Producer for PageScan<S, F>
where
    S: BlockSource + Send,
    S::Data: Send,
    F: FnMut((PinnedPage, S::Data), &mut PageRows) -> SqlResult<()> + Send,
{
    async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        crate::operator::breathe().await;
        loop {
            // Where no row is kept, pages alone do not fill a batch.
            let mut pages = 0;
            while let Some(stream) = &mut self.stream {
                if self.rows.buffer.is_full() {
                    break;
                }
                pages += 1;
                if pages % PAGES_AT_ONCE == 0 {
                    self.rows.rows.execution.cancel.check()?;
                    crate::operator::breathe().await;
                }
                let added = match stream.next().await {
                    Ok(Some(page)) => (self.add)(page, &mut self.rows).map(|()| true),
                    Ok(None) => Ok(false),
                    Err(e) => Err(e.into()),
                };
                match added {
                    Ok(true) => stream.expect(self.rows.shape.0, self.rows.shape.1),
                    Ok(false) => self.stream = None,
                    Err(e) => {
                        self.rows.buffer.fail(e);
                        self.stream = None;
                    }
                }
            }
            self.rows.rows.execution.cancel.check()?;
            let batch = self.rows.buffer.finish(&self.io.counters).await?;
            if batch.is_some() || self.stream.is_none() {
                return Ok(batch);
            }
        }
    }
}
