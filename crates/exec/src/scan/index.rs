//! `Index Scan`: the index's matches in its order, each looked up in the heap.

use std::sync::Arc;

use arrow_array::RecordBatch;
use async_trait::async_trait;
use stegodon_buffer::PinnedPage;
use stegodon_format::ids::{Fork, Tid};
use stegodon_nbtree::{BtreeScan, Direction, PoolSource, ScanOptions};
use stegodon_types::SqlResult;

use super::sequential::PageRows;
use super::{HeapRows, IndexKeys, ScanIo};
use crate::counters::add;
use crate::operator::{Input, Operator, Producer};

/// An index scan. One partition: workers would each find every row.
#[derive(Debug)]
pub(crate) struct IndexScan {
    pub(crate) rows: Arc<HeapRows>,
    pub(crate) keys: Arc<IndexKeys>,
    pub(crate) backward: bool,
}

impl Operator for IndexScan {
    fn name(&self) -> &'static str {
        "Index Scan"
    }

    fn start(self: Arc<Self>, _: usize, _: Vec<Input>) -> SqlResult<Box<dyn Producer>> {
        let direction = if self.backward { Direction::Backward } else { Direction::Forward };
        let options = ScanOptions { direction, ..ScanOptions::default() };
        let io = ScanIo::new(&self.rows.execution, self.rows.node);
        let scan = self.keys.scan(options, &io.counters);
        let rows = PageRows::new(&self.rows);
        Ok(Box::new(Running { operator: self, scan, rows, next: 0, page: None, state: State::NotStarted, io }))
    }
}

#[derive(PartialEq)]
enum State {
    NotStarted,
    Running,
    Ended,
}

struct Running {
    operator: Arc<IndexScan>,
    scan: BtreeScan<PoolSource>,
    rows: PageRows,
    /// The next match of the current leaf.
    next: usize,
    /// The heap page last looked at: neighbouring matches often share it.
    page: Option<PinnedPage>,
    state: State,
    io: ScanIo,
}

impl Running {
    async fn next_tid(&mut self) -> SqlResult<Option<Tid>> {
        loop {
            if let Some(&tid) = self.scan.matches().get(self.next) {
                self.next += 1;
                return Ok(Some(tid));
            }
            self.next = 0;
            self.page = None;
            if !self.scan.next().await? {
                return Ok(None);
            }
        }
    }

    async fn add(&mut self, tid: Tid) -> SqlResult<()> {
        if self.page.as_ref().is_none_or(|p| p.block() != tid.block) {
            let rows = &self.operator.rows;
            let pool = rows.execution.storage.pool();
            self.page = None;
            self.page = Some(pool.read_counted(&rows.table.files, Fork::Main, tid.block, &self.io.counters).await?);
        }
        match &self.page {
            Some(page) => self.rows.add_roots(page, std::iter::once(tid.offset), false),
            None => Ok(()),
        }
    }
}

#[async_trait]
impl Producer for Running {
    async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        crate::operator::breathe().await;
        if self.state == State::NotStarted {
            let keys = self.operator.keys.evaluate().await?;
            self.scan.rescan(&keys)?;
            self.state = State::Running;
        }
        loop {
            while self.state == State::Running && !self.rows.buffer.is_full() {
                let added = match self.next_tid().await {
                    Ok(Some(tid)) => self.add(tid).await.map(|()| true),
                    Ok(None) => Ok(false),
                    Err(e) => Err(e),
                };
                match added {
                    Ok(true) => {}
                    Ok(false) => self.state = State::Ended,
                    Err(e) => {
                        self.rows.buffer.fail(e);
                        self.state = State::Ended;
                    }
                }
            }
            self.operator.rows.execution.cancel.check()?;
            // The page's pin is not kept while the batch is used.
            self.page = None;
            let batch = self.rows.buffer.finish(&self.io.counters).await?;
            if batch.is_some() || self.state == State::Ended {
                return Ok(batch);
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let rows = &self.operator.rows;
        if let Some(node) = rows.execution.counters.node(rows.node) {
            add(&node.index_searches, self.scan.counters().searches);
        }
    }
}
