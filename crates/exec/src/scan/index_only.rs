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
use stegodon_format::vm;
use stegodon_functions::{Batch, Evaluator, Partial, Selection, evaluate_all};
use stegodon_nbtree::{BtreeScan, Direction, PoolSource, ScanOptions};
use stegodon_txn::VisibilityChecker;
use stegodon_types::{ColumnBuilder, Layout, SqlError, SqlResult};

use super::visibility_map::VisibilityMap;
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
            builders: self.builders(),
            visibility: self.execution.storage.visibility(),
            next: 0,
            rows: 0,
            full_at: 64,
            entry: 0,
            map: VisibilityMap::default(),
            last_map: None,
            visible: Vec::new(),
            heap: None,
            state: State::NotStarted,
            failed: None,
            scratch: Vec::new(),
            io,
            operator: self,
        }))
    }
}

impl IndexOnlyScan {
    fn builders(&self) -> Vec<ColumnBuilder> {
        self.columns.iter().map(|(_, layout)| ColumnBuilder::new(*layout, 64)).collect()
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
    /// The next of the leaf's rows, and the index tuple that it is of.
    next: usize,
    entry: usize,
    rows: usize,
    full_at: usize,
    map: VisibilityMap,
    /// The map page that was asked last, of whichever leaf.
    last_map: Option<BlockNumber>,
    /// Which of the rows looked at are visible; kept to be used again.
    visible: Vec<bool>,
    /// The heap page last looked at.
    heap: Option<PinnedPage>,
    state: State,
    failed: Option<SqlError>,
    scratch: Vec<u8>,
    io: ScanIo,
}

impl Running {
    /// Adds the next rows of a leaf. False at the end.
    async fn step(&mut self) -> SqlResult<bool> {
        while self.next >= self.scan.matches().len() {
            (self.next, self.entry) = (0, 0);
            self.map.forget();
            self.heap = None;
            if !self.scan.next().await? {
                return Ok(false);
            }
        }
        let end = self.scan.matches().len().min(self.next + (self.full_at - self.rows));
        let mut visible = std::mem::take(&mut self.visible);
        visible.clear();
        let looked = self.look(end, &mut visible).await;
        let added = self.add(&visible);
        self.next += visible.len();
        self.visible = visible;
        if let Err(error) = added {
            // A damaged tuple leaves columns of different lengths: nothing of this batch may be used.
            self.builders = self.operator.builders();
            self.rows = 0;
            return Err(error);
        }
        looked.map(|()| true)
    }

    /// Says which of the rows up to `end` are visible; before an error, of those before it.
    async fn look(&mut self, end: usize, visible: &mut Vec<bool>) -> SqlResult<()> {
        let operator = Arc::clone(&self.operator);
        let (pool, files) = (operator.execution.storage.pool(), &operator.table.files);
        loop {
            let rows = self.scan.matches().get(self.next + visible.len()..end).unwrap_or(&[]);
            let Some(block) = self.map.vouch(rows, operator.map_blocks, visible) else { break };
            // PostgreSQL keeps its page of the map pinned from leaf to leaf, and counts it once.
            let counted = self.last_map != Some(block);
            let page = pool.read_map(files, Fork::VisibilityMap, block, &self.io.counters, counted).await?;
            self.last_map = Some(block);
            let latched = page.latch_shared();
            if !self.map.copy(block, latched.view())
                && let Some(row) = self.scan.matches().get(self.next + visible.len())
            {
                visible.push(vm::bits(latched.view(), row.block).all_visible());
            }
        }
        if visible.iter().all(|visible| *visible) {
            return Ok(());
        }
        for at in 0..visible.len() {
            if visible.get(at) != Some(&false) {
                continue;
            }
            let Some(row) = self.scan.matches().get(self.next + at).copied() else { break };
            match self.is_visible(row).await {
                Ok(seen) => visible.iter_mut().skip(at).take(1).for_each(|v| *v = seen),
                Err(error) => {
                    visible.truncate(at);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Adds the values of the next rows that are visible: one index tuple may stand for many.
    fn add(&mut self, visible: &[bool]) -> SqlResult<()> {
        let count = |rows: &[bool]| rows.iter().map(|visible| usize::from(*visible)).sum::<usize>();
        if self.builders.is_empty() {
            self.rows += count(visible);
            return Ok(());
        }
        let (mut rest, mut at) = (visible, self.next);
        while !rest.is_empty() {
            let Some(entry) = self.scan.entries().get(self.entry) else {
                return Err(SqlError::internal("rows of an index without their tuples"));
            };
            let (these, behind) = rest.split_at((entry.end as usize - at).min(rest.len()));
            let rows = count(these);
            if rows > 0 {
                let mut values = self.scan.values(entry)?;
                for ((column, _), builder) in self.operator.columns.iter().zip(&mut self.builders) {
                    builder.append_times(values.get(*column, &mut self.scratch)?, rows)?;
                }
                self.rows += rows;
            }
            at += these.len();
            if at == entry.end as usize {
                self.entry += 1;
            }
            rest = behind;
        }
        Ok(())
    }

    async fn is_visible(&mut self, tid: Tid) -> SqlResult<bool> {
        let scan = &self.operator;
        if self.heap.as_ref().is_none_or(|p| p.block() != tid.block) {
            self.heap = None;
            let pool = scan.execution.storage.pool();
            // The leaf is pinned.
            self.heap = Some(pool.read_nested(&scan.table.files, Fork::Main, tid.block, &self.io.counters).await?);
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
