//! `Index Only Scan`: values from the index's own tuples; the heap is asked only where the visibility map does not vouch.
//!
//! The map is looked at while the leaf is pinned: a vacuum that wanted to remove a tuple of this leaf, and then to mark its
//! heap page all-visible, has to wait for the pin. Reading a directory at rest that cannot happen; once we write, it can.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use stegodon_access::Table;
use stegodon_buffer::PinnedPage;
use stegodon_format::ids::{BlockNumber, Fork, Tid};
use stegodon_format::page::{BLCKSZ, PageRef};
use stegodon_format::vm;
use stegodon_functions::{Batch, Evaluator, Partial, Selection, evaluate_all};
use stegodon_nbtree::{BtreeScan, Direction, PoolSource, ScanOptions};
use stegodon_txn::VisibilityChecker;
use stegodon_types::{ColumnBuilder, Layout, SqlError, SqlResult};

use super::{IndexKeys, ScanIo};
use crate::batch::{BATCH_ROWS, batch};
use crate::counters::add;
use crate::execution::Execution;
use crate::initplan::Needs;
use crate::operator::{Input, Operator, Producer};

/// An index-only scan.
pub(crate) struct IndexOnlyScan {
    pub(crate) execution: Arc<Execution>,
    pub(crate) node: usize,
    pub(crate) table: Table,
    pub(crate) map_blocks: u32,
    pub(crate) keys: Arc<IndexKeys>,
    pub(crate) backward: bool,
    /// The index columns read (from 0, ascending), with their layouts.
    pub(crate) columns: Vec<(usize, Layout)>,
    pub(crate) quals: Option<Evaluator>,
    pub(crate) targets: Vec<Evaluator>,
    pub(crate) needs: Needs,
    pub(crate) schema: SchemaRef,
}

impl std::fmt::Debug for IndexOnlyScan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IndexOnlyScan").field("keys", &self.keys).finish_non_exhaustive()
    }
}

impl Operator for IndexOnlyScan {
    fn name(&self) -> &'static str {
        "Index Only Scan"
    }

    fn start(self: Arc<Self>, _: usize, _: Vec<Input>) -> SqlResult<Box<dyn Producer>> {
        let direction = if self.backward { Direction::Backward } else { Direction::Forward };
        let options = ScanOptions { direction, keep_tuples: !self.columns.is_empty(), keep_pin: true };
        let io = ScanIo::new(&self.execution, self.node);
        Ok(Box::new(Running {
            scan: self.keys.scan(options, &io.counters),
            builders: self.columns.iter().map(|(_, l)| ColumnBuilder::new(*l, 64)).collect(),
            visibility: self.execution.storage.visibility(),
            next: 0,
            rows: 0,
            full_at: 64,
            maps: VisibilityMaps::default(),
            heap: None,
            state: State::NotStarted,
            failed: None,
            scratch: Vec::new(),
            io,
            operator: self,
        }))
    }
}

#[derive(PartialEq)]
enum State {
    NotStarted,
    Running,
    Ended,
}

struct Running {
    operator: Arc<IndexOnlyScan>,
    scan: BtreeScan<PoolSource>,
    builders: Vec<ColumnBuilder>,
    visibility: VisibilityChecker,
    next: usize,
    rows: usize,
    full_at: usize,
    /// The pages of the visibility map that this leaf's matches were looked up in.
    maps: VisibilityMaps,
    /// The heap page last looked at.
    heap: Option<PinnedPage>,
    state: State,
    failed: Option<SqlError>,
    scratch: Vec<u8>,
    io: ScanIo,
}

/// Copies of visibility map pages, good while a leaf is pinned: vacuum cannot have removed a tuple that the leaf still points
/// to, so what the map said of its page stays true. A leaf's matches lie all over the table; latching the map for each cost
/// more than reading the leaf.
#[derive(Default)]
struct VisibilityMaps {
    pages: Vec<(BlockNumber, Box<[u8; BLCKSZ]>)>,
    /// How many of them are of this leaf; the others' memory is used again.
    live: usize,
    /// The map page that was asked last, of whichever leaf.
    last: Option<BlockNumber>,
}

impl VisibilityMaps {
    fn all_visible(&self, map: BlockNumber, block: BlockNumber) -> Option<bool> {
        let (_, page) = self.pages.iter().take(self.live).find(|(b, _)| *b == map)?;
        Some(vm::bits(PageRef::new(page), block).all_visible())
    }

    fn keep(&mut self, map: BlockNumber, page: PageRef<'_>) {
        match self.pages.get_mut(self.live) {
            Some((block, copy)) => (*block, **copy) = (map, *page.bytes()),
            None => self.pages.push((map, Box::new(*page.bytes()))),
        }
        self.live += 1;
        self.last = Some(map);
    }

    fn forget(&mut self) {
        self.live = 0;
    }
}

impl Running {
    /// Adds the next match. False at the end.
    async fn step(&mut self) -> SqlResult<bool> {
        while self.scan.matches().get(self.next).is_none() {
            self.next = 0;
            self.maps.forget();
            if !self.scan.next().await? {
                return Ok(false);
            }
        }
        let Some(found) = self.scan.matches().get(self.next).copied() else { return Ok(true) };
        self.next += 1;
        if self.is_all_visible(found.tid).await? || self.is_visible(found.tid).await? {
            if !self.builders.is_empty() {
                let mut values = self.scan.values(&found)?;
                for ((column, _), builder) in self.operator.columns.iter().zip(&mut self.builders) {
                    builder.append_option(values.get(*column, &mut self.scratch)?)?;
                }
            }
            self.rows += 1;
        }
        Ok(true)
    }

    async fn is_all_visible(&mut self, tid: Tid) -> SqlResult<bool> {
        let block = vm::map_block(tid.block);
        let scan = &self.operator;
        if block.0 >= scan.map_blocks {
            return Ok(false);
        }
        if let Some(known) = self.maps.all_visible(block, tid.block) {
            return Ok(known);
        }
        let (pool, files) = (scan.execution.storage.pool(), &scan.table.files);
        // PostgreSQL keeps its page of the map pinned from leaf to leaf, and counts it once.
        let map = if self.maps.last == Some(block) {
            pool.read(files, Fork::VisibilityMap, block).await?
        } else {
            pool.read_counted(files, Fork::VisibilityMap, block, &self.io.counters).await?
        };
        self.maps.keep(block, map.latch_shared().view());
        Ok(self.maps.all_visible(block, tid.block).unwrap_or(false))
    }

    async fn is_visible(&mut self, tid: Tid) -> SqlResult<bool> {
        let scan = &self.operator;
        if self.heap.as_ref().is_none_or(|p| p.block() != tid.block) {
            self.heap = None;
            let pool = scan.execution.storage.pool();
            self.heap = Some(pool.read_counted(&scan.table.files, Fork::Main, tid.block, &self.io.counters).await?);
        }
        if let Some(node) = scan.execution.counters.node(scan.node) {
            add(&node.heap_fetches, 1);
        }
        let Some(heap) = &self.heap else { return Ok(false) };
        let guard = heap.latch_shared();
        Ok(scan.table.page(&guard).hot_search(tid.offset, &mut self.visibility)?.is_some())
    }

    fn finish(&mut self) -> SqlResult<Option<RecordBatch>> {
        let rows = std::mem::take(&mut self.rows);
        if rows == 0 {
            return self.failed.take().map_or(Ok(None), Err);
        }
        self.full_at = (self.full_at * 2).min(BATCH_ROWS);
        let scan = &self.operator;
        let columns: Vec<_> = self.builders.iter_mut().map(ColumnBuilder::finish).collect();
        let over = Batch::new(&columns, rows);
        let (output, error) = scan.execution.with_context(|cx| {
            let mut error = None;
            let mut selection: Option<Selection> = None;
            if let Some(quals) = &scan.quals {
                let passed = quals.filter_partial(cx, &over, None)?;
                if let Some(node) = scan.execution.counters.node(scan.node) {
                    add(&node.filtered, (rows - passed.value.len()) as u64);
                }
                (selection, error) = (Some(passed.value), passed.error);
            }
            let Partial { value, rows, error: failed } = evaluate_all(&scan.targets, cx, &over, selection.as_ref())?;
            Ok::<_, SqlError>((batch(&scan.schema, value, rows)?, failed.or(error)))
        })?;
        if let Some(error) = error {
            self.failed = Some(error);
            self.state = State::Ended;
        }
        if output.num_rows() == 0 {
            return self.failed.take().map_or(Ok(None), Err);
        }
        Ok(Some(output))
    }
}

#[async_trait]
impl Producer for Running {
    async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        crate::operator::breathe().await;
        if self.state == State::NotStarted {
            let scan = Arc::clone(&self.operator);
            scan.execution.prepare(&scan.needs).await?;
            self.scan.rescan(&scan.keys.evaluate().await?)?;
            self.state = State::Running;
        }
        loop {
            while self.state == State::Running && self.rows < self.full_at {
                match self.step().await {
                    Ok(true) => {}
                    Ok(false) => self.state = State::Ended,
                    Err(e) => {
                        self.failed = Some(e);
                        self.state = State::Ended;
                    }
                }
            }
            self.operator.execution.cancel.check()?;
            self.heap = None;
            let batch = self.finish()?;
            if batch.is_some() || self.state == State::Ended {
                return Ok(batch);
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(node) = self.operator.execution.counters.node(self.operator.node) {
            add(&node.index_searches, self.scan.counters().searches);
        }
    }
}
