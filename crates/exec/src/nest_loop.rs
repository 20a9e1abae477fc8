//! `Nested Loop`: every outer row against every inner row, in the order of the outer rows.
//!
//! DataFusion's own nested loop does not keep the outer order, which plans rely on. The inner rows are kept in memory; the
//! condition runs over one outer row at a time, repeated, beside the inner columns.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use stegodon_functions::{Batch, Evaluator};
use stegodon_nodes::query::JoinKind;
use stegodon_types::{SqlError, SqlResult};

use crate::batch::{BATCH_ROWS, batch};
use crate::counters::add;
use crate::error::unwrap;
use crate::execution::Execution;
use crate::initplan::Needs;
use crate::operator::{Batches, Input, Operator, Producer, malformed};

/// A nested loop. Output: the outer columns, then the inner ones; the outer ones only for Semi and Anti.
#[derive(Debug)]
pub(crate) struct NestLoop {
    pub(crate) execution: Arc<Execution>,
    pub(crate) node: usize,
    pub(crate) kind: JoinKind,
    pub(crate) filter: Option<Evaluator>,
    pub(crate) needs: Needs,
    pub(crate) schema: SchemaRef,
    pub(crate) inner_schema: SchemaRef,
}

impl NestLoop {
    fn shows_inner(&self) -> bool {
        !matches!(self.kind, JoinKind::Semi | JoinKind::Anti)
    }
}

impl Operator for NestLoop {
    fn name(&self) -> &'static str {
        "Nested Loop"
    }

    fn start(self: Arc<Self>, partition: usize, inputs: Vec<Input>) -> SqlResult<Box<dyn Producer>> {
        let [outer, inner] = inputs.as_slice() else { return Err(malformed("a nested loop has two children")) };
        let outer_rows = outer.start(partition)?;
        let memory = MemoryConsumer::new("nested loop").register(&outer.context().runtime_env().memory_pool);
        let inner_input = Some(inner.clone());
        Ok(Box::new(Running {
            operator: self,
            outer: outer_rows,
            inner_input,
            inner: None,
            memory,
            partnered: None,
            ended: false,
            current: None,
            failed: None,
        }))
    }
}

struct Running {
    operator: Arc<NestLoop>,
    outer: Batches,
    inner_input: Option<Input>,
    inner: Option<RecordBatch>,
    memory: MemoryReservation,
    /// For Right and Full: which inner rows have found a partner.
    partnered: Option<Vec<bool>>,
    /// The outer rows have ended.
    ended: bool,
    /// The outer batch being joined, its next row, and the next inner row of that row.
    current: Option<(RecordBatch, usize, usize, bool)>,
    failed: Option<SqlError>,
}

/// Pairs found, as row numbers; `None` beside a row that stands alone.
#[derive(Default)]
pub(crate) struct Pairs {
    pub(crate) outer: Vec<Option<u32>>,
    pub(crate) inner: Vec<Option<u32>>,
}

impl Running {
    async fn read_inner(&mut self, input: &Input) -> SqlResult<RecordBatch> {
        let mut batches = input.start(0)?;
        let mut rows = Vec::new();
        while let Some(batch) = batches.next().await? {
            self.operator.execution.cancel.check()?;
            self.memory.try_grow(batch.get_array_memory_size()).map_err(unwrap)?;
            rows.push(batch);
        }
        arrow_select::concat::concat_batches(&self.operator.inner_schema, &rows).map_err(SqlError::internal)
    }

    /// Joins outer rows from `current` until there is a batch of pairs or the outer batch ends.
    fn join(&mut self, inner: &RecordBatch) -> SqlResult<Option<RecordBatch>> {
        let Some((outer, mut row, mut at, mut matched)) = self.current.take() else { return Ok(None) };
        let operator = Arc::clone(&self.operator);
        let mut pairs = Pairs::default();
        while row < outer.num_rows() && pairs.outer.len() < BATCH_ROWS {
            operator.execution.cancel.check()?;
            let chunk = inner.slice(at, (inner.num_rows() - at).min(BATCH_ROWS));
            let (found, error) = operator.matches(&outer, row, &chunk)?;
            let first_only = matches!(operator.kind, JoinKind::Semi | JoinKind::Anti);
            if first_only {
                if !found.is_empty() {
                    matched = true;
                }
            } else {
                if let Some(partnered) = &mut self.partnered {
                    for &i in &found {
                        if let Some(place) = partnered.get_mut(at + i as usize) {
                            *place = true;
                        }
                    }
                }
                pairs.outer.extend(found.iter().map(|_| Some(row as u32)));
                pairs.inner.extend(found.iter().map(|&i| Some(at as u32 + i)));
                matched |= !found.is_empty();
            }
            let decided = first_only && matched;
            if let Some(error) = error.filter(|_| !decided) {
                self.failed = Some(error);
                return operator.output(&outer, inner, &pairs);
            }
            at += chunk.num_rows();
            if at < inner.num_rows() && !decided {
                continue;
            }
            let alone = match operator.kind {
                JoinKind::Left | JoinKind::Full | JoinKind::Anti => !matched,
                JoinKind::Semi => matched,
                _ => false,
            };
            if alone {
                pairs.outer.push(Some(row as u32));
                pairs.inner.push(None);
            }
            (row, at, matched) = (row + 1, 0, false);
        }
        let output = operator.output(&outer, inner, &pairs)?;
        if row < outer.num_rows() {
            self.current = Some((outer, row, at, matched));
        }
        Ok(output)
    }
}

impl Running {
    /// The inner rows that found no partner, once all outer rows have been seen.
    fn alone(&mut self) -> SqlResult<Option<RecordBatch>> {
        let (Some(partnered), Some(inner)) = (self.partnered.take(), &self.inner) else { return Ok(None) };
        let alone = partnered.iter().enumerate().filter(|(_, partnered)| !**partnered).map(|(i, _)| Some(i as u32));
        let inner_rows: Vec<_> = alone.collect();
        let pairs = Pairs { outer: vec![None; inner_rows.len()], inner: inner_rows };
        self.operator.output(&RecordBatch::new_empty(self.outer.schema()), inner, &pairs)
    }
}

impl NestLoop {
    /// The rows of `inner` that match one outer row, and the error of the first pair that fails.
    pub(crate) fn matches(
        &self,
        outer: &RecordBatch,
        row: usize,
        inner: &RecordBatch,
    ) -> SqlResult<(Vec<u32>, Option<SqlError>)> {
        let rows = inner.num_rows();
        let Some(filter) = self.filter.as_ref().filter(|_| rows > 0) else {
            return Ok(((0..rows as u32).collect(), None));
        };
        let repeat = UInt32Array::from_value(row as u32, rows);
        let take = |c: &ArrayRef| arrow_select::take::take(c.as_ref(), &repeat, None).map_err(SqlError::internal);
        let outer = outer.columns().iter().map(take).collect::<SqlResult<Vec<_>>>()?;
        let over = Batch { outer: &outer, inner: inner.columns(), rows };
        let passed = self.execution.with_context(|cx| filter.filter_partial(cx, &over, None))?;
        if let Some(counters) = self.execution.counters.node(self.node) {
            add(&counters.filtered_second, (passed.rows - passed.value.len()) as u64);
        }
        Ok((passed.value.rows().to_vec(), passed.error))
    }

    /// Pairs as rows; `None` where there is none.
    pub(crate) fn output(
        &self,
        outer: &RecordBatch,
        inner: &RecordBatch,
        pairs: &Pairs,
    ) -> SqlResult<Option<RecordBatch>> {
        if pairs.outer.is_empty() {
            return Ok(None);
        }
        let rows = UInt32Array::from(pairs.outer.clone());
        let take = |c: &ArrayRef, rows: &dyn Array| arrow_select::take::take(c.as_ref(), rows, None);
        let mut columns = Vec::with_capacity(outer.num_columns() + inner.num_columns());
        for column in outer.columns() {
            columns.push(take(column, &rows).map_err(SqlError::internal)?);
        }
        if self.shows_inner() {
            let rows = UInt32Array::from(pairs.inner.clone());
            for column in inner.columns() {
                columns.push(take(column, &rows).map_err(SqlError::internal)?);
            }
        }
        batch(&self.schema, columns, pairs.outer.len()).map(Some)
    }
}

#[async_trait]
impl Producer for Running {
    async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        crate::operator::breathe().await;
        loop {
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            if self.current.is_none() {
                let operator = Arc::clone(&self.operator);
                let outer = if self.ended { None } else { self.outer.next().await? };
                let keeps_inner = matches!(operator.kind, JoinKind::Right | JoinKind::Full);
                // Without an outer row the inner side is not run, unless its rows are given anyhow.
                if (outer.is_some() || keeps_inner)
                    && let Some(input) = self.inner_input.take()
                {
                    operator.execution.prepare(&operator.needs).await?;
                    let inner = self.read_inner(&input).await?;
                    self.partnered = keeps_inner.then(|| vec![false; inner.num_rows()]);
                    self.inner = Some(inner);
                }
                let Some(outer) = outer else {
                    self.ended = true;
                    return self.alone();
                };
                self.current = Some((outer, 0, 0, false));
            }
            let Some(inner) = self.inner.clone() else { return Err(malformed("a nested loop lost its inner rows")) };
            if let Some(output) = self.join(&inner)? {
                return Ok(Some(output));
            }
        }
    }
}
