//! `Nested Loop` whose inner side reads the outer row: run anew for each (LATERAL; later, index lookups by the outer row).

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use async_trait::async_trait;
use stegodon_functions::{Batch, Evaluator, Partial, evaluate_all};
use stegodon_nodes::query::JoinKind;
use stegodon_plan::node::PlanNode;
use stegodon_types::{Layout, SqlError, SqlResult, ValueRef, value_at};

use crate::batch::BATCH_ROWS;
use crate::nest_loop::{NestLoop, Pairs};
use crate::operator::{Batches, Input, Operator, Producer, malformed};
use crate::rescan::Rescan;

/// A nested loop with parameters. Output as [`NestLoop`]'s.
#[derive(Debug)]
pub(crate) struct Lateral {
    pub(crate) join: NestLoop,
    /// The inner side's plan, lowered in an execution of its own.
    pub(crate) inner: PlanNode,
    /// The slots it reads, what fills them from the outer row, and those values' layouts.
    pub(crate) slots: Vec<u32>,
    pub(crate) params: Vec<Evaluator>,
    pub(crate) layouts: Vec<Layout>,
}

impl Operator for Lateral {
    fn name(&self) -> &'static str {
        "Nested Loop"
    }

    fn start(self: Arc<Self>, partition: usize, inputs: Vec<Input>) -> SqlResult<Box<dyn Producer>> {
        let [outer] = inputs.as_slice() else { return Err(malformed("a lateral join has one child of its own")) };
        if matches!(self.join.kind, JoinKind::Right | JoinKind::Full) {
            return Err(malformed("a lateral join cannot keep inner rows"));
        }
        let rescan = Rescan::new(&self.join.execution, &self.inner, self.slots.clone())?;
        Ok(Box::new(Running {
            outer: outer.start(partition)?,
            operator: self,
            rescan,
            current: None,
            inner: None,
            ready: false,
            flush_rows: 1,
            gathered: Vec::new(),
            failed: None,
        }))
    }
}

/// The outer batch being joined: its parameters, its next row, and how many of its rows have parameters at all.
struct Current {
    rows: RecordBatch,
    params: Vec<ArrayRef>,
    row: usize,
    end: usize,
}

struct Running {
    operator: Arc<Lateral>,
    outer: Batches,
    rescan: Rescan,
    current: Option<Current>,
    /// The inner rows of the current outer row, and whether one has matched.
    inner: Option<(Batches, bool)>,
    ready: bool,
    /// Rows that are worth giving out: few at first, for who wants only few.
    flush_rows: usize,
    gathered: Vec<RecordBatch>,
    failed: Option<SqlError>,
}

impl Running {
    /// Joins until rows enough are gathered or an error is met. False once all is joined.
    async fn gather(&mut self) -> SqlResult<bool> {
        let operator = Arc::clone(&self.operator);
        let join = &operator.join;
        while self.gathered.iter().map(RecordBatch::num_rows).sum::<usize>() < self.flush_rows {
            join.execution.cancel.check()?;
            let Some(current) = &mut self.current else {
                if let Some(error) = self.failed.take() {
                    return Err(error);
                }
                let Some(rows) = self.outer.next().await? else { return Ok(false) };
                if !self.ready {
                    join.execution.prepare(&join.needs).await?;
                    self.ready = true;
                }
                let over = Batch::new(rows.columns(), rows.num_rows());
                let Partial { value: params, rows: end, error } =
                    join.execution.with_context(|cx| evaluate_all(&operator.params, cx, &over, None))?;
                self.failed = error;
                self.current = Some(Current { rows, params, row: 0, end });
                continue;
            };
            if current.row >= current.end {
                self.current = None;
                continue;
            }
            let Some((inner, matched)) = &mut self.inner else {
                let value = |(array, layout): (&ArrayRef, &Layout)| {
                    value_at(array.as_ref(), *layout, current.row).map(ValueRef::to_datum)
                };
                let values = current.params.iter().zip(&operator.layouts).map(value).collect();
                self.inner = Some((self.rescan.start(values)?, false));
                continue;
            };
            let row = current.row as u32;
            let batch = inner.next().await?;
            let first_only = matches!(join.kind, JoinKind::Semi | JoinKind::Anti);
            let mut pairs = Pairs::default();
            let ended = batch.is_none();
            let empty = RecordBatch::new_empty(Arc::clone(&join.inner_schema));
            if let Some(batch) = &batch {
                let (found, error) = join.matches(&current.rows, current.row, batch)?;
                *matched |= !found.is_empty();
                if !first_only {
                    pairs.outer.extend(found.iter().map(|_| Some(row)));
                    pairs.inner.extend(found.into_iter().map(Some));
                }
                if let Some(error) = error.filter(|_| !(first_only && *matched)) {
                    // The rows before the failing pair come out first.
                    self.gathered.extend(join.output(&current.rows, batch, &pairs)?);
                    (self.current, self.failed) = (None, Some(error));
                    self.inner = None;
                    continue;
                }
            }
            let decided = ended || (first_only && *matched);
            let alone = decided
                && match join.kind {
                    JoinKind::Left | JoinKind::Anti => !*matched,
                    JoinKind::Semi => *matched,
                    _ => false,
                };
            if alone {
                pairs.outer.push(Some(row));
                pairs.inner.push(None);
            }
            self.gathered.extend(join.output(&current.rows, batch.as_ref().unwrap_or(&empty), &pairs)?);
            if decided {
                current.row += 1;
                self.inner = None;
            }
        }
        Ok(true)
    }
}

#[async_trait]
impl Producer for Running {
    async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        crate::operator::breathe().await;
        let more = match self.gather().await {
            Ok(more) => more,
            Err(error) if self.gathered.is_empty() => return Err(error),
            Err(error) => {
                self.failed = Some(error);
                true
            }
        };
        self.flush_rows = (self.flush_rows * 2).min(BATCH_ROWS);
        let gathered = std::mem::take(&mut self.gathered);
        if gathered.is_empty() && !more {
            return Ok(None);
        }
        let schema = &self.operator.join.schema;
        arrow_select::concat::concat_batches(schema, &gathered).map(Some).map_err(SqlError::internal)
    }
}
