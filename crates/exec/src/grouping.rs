//! `Aggregate`, `GroupAggregate`, `Group`, `Unique`: groups that follow one another in the input, or one group of all.
//!
//! Groups are told apart by keys (DESIGN D4). A group that the end of a batch leaves open is carried to the next: its
//! accumulators keep group 0, its first row is kept as the columns it shows.
//!
//! DataFusion's own streaming aggregate must be told the input's order in its terms; this one needs none.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, UInt32Array};
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use stegodon_functions::aggregate::Emit;
use stegodon_types::{SqlError, SqlResult};

use crate::aggregate_call::{Accumulator, AggregateCall};
use crate::batch::batch;
use crate::execution::Execution;
use crate::keys::KeyEncoding;
use crate::operator::{Batches, Input, Operator, Producer, malformed};

/// Consecutive groups. Output: the shown columns of each group's first row, then the aggregates.
#[derive(Debug)]
pub(crate) struct Grouping {
    pub(crate) execution: Arc<Execution>,
    /// The columns groups are told apart by; empty for one group of all rows, which is there even without a row.
    pub(crate) keys: Vec<(usize, KeyEncoding)>,
    /// The input columns shown.
    pub(crate) shown: Vec<usize>,
    pub(crate) calls: Vec<AggregateCall>,
    pub(crate) schema: SchemaRef,
}

impl Operator for Grouping {
    fn name(&self) -> &'static str {
        "Group"
    }

    fn start(self: Arc<Self>, partition: usize, inputs: Vec<Input>) -> SqlResult<Box<dyn Producer>> {
        let [input] = inputs.as_slice() else { return Err(malformed("grouping has one child")) };
        let accumulators = self.calls.iter().map(|c| c.kind.accumulator(&self.execution));
        let accumulators = accumulators.collect::<SqlResult<Vec<_>>>()?;
        let input = Some(input.start(partition)?);
        Ok(Box::new(Running { input, accumulators, open: None, operator: self }))
    }
}

struct Running {
    operator: Arc<Grouping>,
    input: Option<Batches>,
    accumulators: Vec<Accumulator>,
    open: Option<Open>,
}

/// The group that the next batch may continue.
struct Open {
    /// Its key, one row a column.
    keys: Vec<ArrayRef>,
    /// What it shows, one row a column.
    shown: Vec<ArrayRef>,
}

impl Running {
    /// Adds a batch. Gives the groups that it completed.
    fn add(&mut self, input: &RecordBatch) -> SqlResult<Option<RecordBatch>> {
        let operator = Arc::clone(&self.operator);
        let keys = operator.key_columns(input)?;
        let (runs, continues) = self.runs(&keys, input.num_rows())?;
        let firsts: Vec<u32> = runs.iter().skip(usize::from(continues)).map(|r| r.start as u32).collect();
        // The open group is group 0, also where no row of this batch is in it.
        let first = usize::from(self.open.is_some() && !continues);
        let mut groups = vec![0; input.num_rows()];
        for (i, run) in runs.iter().enumerate() {
            if let Some(rows) = groups.get_mut(run.clone()) {
                rows.fill(first + i);
            }
        }
        let group_count = first + runs.len();
        self.update(input, &groups, group_count)?;
        if operator.keys.is_empty() {
            // One group of all: it stays open to the end.
            if self.open.is_none() {
                self.open = Some(Open { keys: Vec::new(), shown: operator.shown_rows(input, &firsts)? });
            }
            return Ok(None);
        }
        let complete = group_count - 1;
        let fresh = operator.shown_rows(input, &firsts)?;
        let last_key = keys.iter().map(|k| k.slice(input.num_rows() - 1, 1)).collect();
        let previous = self.open.take();
        let all = match previous {
            Some(open) => concat_columns(&open.shown, &fresh)?,
            None => fresh,
        };
        let shown = all.iter().map(|c| c.slice(complete, 1)).collect();
        self.open = Some(Open { keys: last_key, shown });
        if complete == 0 {
            return Ok(None);
        }
        let columns = all.iter().map(|c| c.slice(0, complete)).collect();
        self.emit(columns, Emit::First(complete), complete).map(Some)
    }

    /// Runs of equal keys, and whether the first continues the open group.
    fn runs(&self, keys: &[ArrayRef], rows: usize) -> SqlResult<(Vec<Range<usize>>, bool)> {
        match &self.open {
            open if keys.is_empty() => Ok((std::iter::once(0..rows).collect(), open.is_some())),
            None => Ok((partition(keys)?, false)),
            Some(open) => {
                // Row 0 of `joined` is the open group's.
                let runs = partition(&concat_columns(&open.keys, keys)?)?;
                let continues = runs.first().is_some_and(|r| r.end > 1);
                let shifted = runs.into_iter().map(|r| r.start.saturating_sub(1)..r.end - 1);
                Ok((shifted.filter(|r| !r.is_empty()).collect(), continues))
            }
        }
    }

    fn update(&mut self, input: &RecordBatch, groups: &[usize], group_count: usize) -> SqlResult<()> {
        for (call, accumulator) in self.operator.calls.iter().zip(&mut self.accumulators) {
            let column =
                |&i: &usize| input.columns().get(i).cloned().ok_or_else(|| malformed("an argument is missing"));
            let args = call.args.iter().map(column).collect::<SqlResult<Vec<_>>>()?;
            let filter = call.filter.as_ref().map(column).transpose()?;
            let filter = filter.as_ref().map(as_boolean).transpose()?;
            accumulator.update(&args, groups, filter, group_count)?;
        }
        Ok(())
    }

    fn emit(&mut self, mut columns: Vec<ArrayRef>, emit: Emit, rows: usize) -> SqlResult<RecordBatch> {
        for accumulator in &mut self.accumulators {
            columns.push(accumulator.evaluate(emit)?);
        }
        batch(&self.operator.schema, columns, rows)
    }
}

#[async_trait]
impl Producer for Running {
    async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        loop {
            let Some(input) = &mut self.input else { return Ok(None) };
            self.operator.execution.cancel.check()?;
            if let Some(input) = input.next().await? {
                if let Some(complete) = self.add(&input)? {
                    return Ok(Some(complete));
                }
                continue;
            }
            self.input = None;
            return match self.open.take() {
                Some(open) => self.emit(open.shown, Emit::All, 1).map(Some),
                None if self.operator.keys.is_empty() => {
                    self.update_without_rows()?;
                    let shown = self.operator.schema.fields().iter().take(self.operator.shown.len());
                    let shown = shown.map(|f| arrow_array::new_null_array(f.data_type(), 1)).collect();
                    self.emit(shown, Emit::All, 1).map(Some)
                }
                None => Ok(None),
            };
        }
    }
}

impl Running {
    /// Opens group 0 where there was no row at all: an aggregate of nothing.
    fn update_without_rows(&mut self) -> SqlResult<()> {
        for (call, accumulator) in self.operator.calls.iter().zip(&mut self.accumulators) {
            let args: Vec<ArrayRef> = call.empty_args();
            accumulator.update(&args, &[], None, 1)?;
        }
        Ok(())
    }
}

impl Grouping {
    fn key_columns(&self, input: &RecordBatch) -> SqlResult<Vec<ArrayRef>> {
        let cx = self.execution.type_context();
        let encode = |(column, encoding): &(usize, KeyEncoding)| {
            let column = input.columns().get(*column).ok_or_else(|| malformed("a group column is missing"))?;
            encoding.encode(&cx, column)
        };
        self.keys.iter().map(encode).collect()
    }

    fn shown_rows(&self, input: &RecordBatch, rows: &[u32]) -> SqlResult<Vec<ArrayRef>> {
        let rows = UInt32Array::from(rows.to_vec());
        let take = |&column: &usize| {
            let column = input.columns().get(column).ok_or_else(|| malformed("a shown column is missing"))?;
            arrow_select::take::take(column.as_ref(), &rows, None).map_err(SqlError::internal)
        };
        self.shown.iter().map(take).collect()
    }
}

fn partition(keys: &[ArrayRef]) -> SqlResult<Vec<Range<usize>>> {
    arrow::compute::partition(keys).map(|p| p.ranges()).map_err(SqlError::internal)
}

fn concat_columns(first: &[ArrayRef], second: &[ArrayRef]) -> SqlResult<Vec<ArrayRef>> {
    let concat = |(a, b): (&ArrayRef, &ArrayRef)| {
        arrow_select::concat::concat(&[a.as_ref(), b.as_ref()]).map_err(SqlError::internal)
    };
    first.iter().zip(second).map(concat).collect()
}

fn as_boolean(array: &ArrayRef) -> SqlResult<&BooleanArray> {
    array.as_any().downcast_ref().ok_or_else(|| malformed("a FILTER is no boolean"))
}
