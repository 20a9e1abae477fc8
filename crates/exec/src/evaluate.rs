//! `Evaluate`: filters rows by quals and computes targets. Every node that filters or projects is this over its work.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use stegodon_functions::{Batch, Evaluator, Partial, Selection, evaluate_all};
use stegodon_types::{SqlError, SqlResult};

use crate::batch::batch;
use crate::counters::add;
use crate::execution::Execution;
use crate::initplan::Needs;
use crate::operator::{Batches, Input, Operator, Producer};

/// Quals and targets, compiled.
#[derive(Debug)]
pub(crate) struct Evaluate {
    pub(crate) execution: Arc<Execution>,
    pub(crate) node: usize,
    pub(crate) quals: Option<Evaluator>,
    pub(crate) targets: Targets,
    /// What must have been run before the first row.
    pub(crate) needs: Needs,
    pub(crate) schema: SchemaRef,
}

/// What comes out.
#[derive(Debug)]
pub(crate) enum Targets {
    /// The input's columns, by place.
    Columns(Vec<usize>),
    /// Computed.
    Computed(Vec<Evaluator>),
}

impl Evaluate {
    /// Filters and computes one batch. The rows before the first failing one come with that row's error.
    pub(crate) fn apply(&self, input: &RecordBatch) -> SqlResult<(RecordBatch, Option<SqlError>)> {
        let rows = input.num_rows();
        let over = Batch::new(input.columns(), rows);
        self.execution.with_context(|cx| {
            let mut error = None;
            let selection: Option<Selection> = match &self.quals {
                None => None,
                Some(quals) => {
                    let passed = quals.filter_partial(cx, &over, None)?;
                    error = passed.error;
                    Some(passed.value)
                }
            };
            if let (Some(selection), Some(counters)) = (&selection, self.execution.counters.node(self.node)) {
                add(&counters.filtered, (rows - selection.len()) as u64);
            }
            let selection = selection.filter(|s| s.len() < rows);
            let kept = selection.as_ref().map_or(rows, Selection::len);
            let (columns, kept) = match &self.targets {
                Targets::Columns(places) => {
                    let indices = selection.map(|s| arrow_array::UInt32Array::from(s.rows().to_vec()));
                    let columns = places.iter().map(|&place| {
                        let column = input.columns().get(place);
                        let column =
                            column.ok_or_else(|| SqlError::internal("a plan reads a column that is not there"))?;
                        Ok(match &indices {
                            None => Arc::clone(column),
                            Some(rows) => {
                                arrow_select::take::take(column.as_ref(), rows, None).map_err(SqlError::internal)?
                            }
                        })
                    });
                    (columns.collect::<SqlResult<Vec<_>>>()?, kept)
                }
                Targets::Computed(evaluators) => {
                    let Partial { value, rows, error: failed } =
                        evaluate_all(evaluators, cx, &over, selection.as_ref())?;
                    if failed.is_some() {
                        error = failed;
                    }
                    (value, rows)
                }
            };
            Ok((batch(&self.schema, columns, kept)?, error))
        })
    }
}

impl Operator for Evaluate {
    fn name(&self) -> &'static str {
        "Evaluate"
    }

    fn start(self: Arc<Self>, partition: usize, inputs: Vec<Input>) -> SqlResult<Box<dyn Producer>> {
        let [input] = inputs.as_slice() else { return Err(crate::operator::malformed("Evaluate has one child")) };
        Ok(Box::new(Running { input: input.start(partition)?, operator: self, failed: None, ready: false }))
    }
}

struct Running {
    operator: Arc<Evaluate>,
    input: Batches,
    failed: Option<SqlError>,
    ready: bool,
}

#[async_trait]
impl Producer for Running {
    async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        loop {
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            let Some(input) = self.input.next().await? else { return Ok(None) };
            if !self.ready {
                self.operator.execution.prepare(&self.operator.needs).await?;
                self.ready = true;
            }
            let (output, error) = self.operator.apply(&input)?;
            self.failed = error;
            if output.num_rows() > 0 {
                return Ok(Some(output));
            }
        }
    }
}

/// Computes columns and puts them behind the input's own.
#[derive(Debug)]
pub(crate) struct AppendColumns {
    pub(crate) execution: Arc<Execution>,
    pub(crate) columns: Vec<Evaluator>,
    pub(crate) needs: Needs,
    pub(crate) schema: SchemaRef,
}

impl Operator for AppendColumns {
    fn name(&self) -> &'static str {
        "Columns"
    }

    fn start(self: Arc<Self>, partition: usize, inputs: Vec<Input>) -> SqlResult<Box<dyn Producer>> {
        let [input] = inputs.as_slice() else { return Err(crate::operator::malformed("Columns has one child")) };
        Ok(Box::new(Appending { input: input.start(partition)?, operator: self, ready: false }))
    }
}

struct Appending {
    operator: Arc<AppendColumns>,
    input: Batches,
    ready: bool,
}

#[async_trait]
impl Producer for Appending {
    async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        let Some(input) = self.input.next().await? else { return Ok(None) };
        let operator = &self.operator;
        if !self.ready {
            operator.execution.prepare(&operator.needs).await?;
            self.ready = true;
        }
        let over = Batch::new(input.columns(), input.num_rows());
        // Whoever asks for these columns takes in all rows before it gives one: the first error is the statement's.
        let Partial { value, error, .. } =
            operator.execution.with_context(|cx| evaluate_all(&operator.columns, cx, &over, None))?;
        if let Some(error) = error {
            return Err(error);
        }
        let columns = input.columns().iter().cloned().chain(value).collect();
        batch(&operator.schema, columns, input.num_rows()).map(Some)
    }
}
