//! `Evaluate`: filters rows by quals and computes targets. Every node that filters or projects is this over its work.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use stegodon_functions::{Batch, EvalContext, Evaluator, Partial, Selection, evaluate_all};
use stegodon_types::{SqlError, SqlResult};

use crate::batch::batch;
use crate::correlated::Correlated;
use crate::counters::add;
use crate::execution::Execution;
use crate::initplan::Needs;
use crate::operator::{Batches, Input, Operator, Producer, malformed};

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

/// What one evaluation gives: the rows before the first failing one, that row's error, and how many rows its quals removed.
struct Evaluated {
    output: RecordBatch,
    error: Option<SqlError>,
    filtered: usize,
}

impl Evaluate {
    fn apply(&self, cx: &EvalContext<'_>, input: &RecordBatch) -> SqlResult<Evaluated> {
        let rows = input.num_rows();
        let over = Batch::new(input.columns(), rows);
        let mut error = None;
        let selection: Option<Selection> = match &self.quals {
            None => None,
            Some(quals) => {
                let passed = quals.filter_partial(cx, &over, None)?;
                error = passed.error;
                Some(passed.value)
            }
        };
        let filtered = selection.as_ref().map_or(0, |s| rows - s.len());
        let selection = selection.filter(|s| s.len() < rows);
        let kept = selection.as_ref().map_or(rows, Selection::len);
        let (columns, kept) = match &self.targets {
            Targets::Columns(places) => {
                let indices = selection.map(|s| arrow_array::UInt32Array::from(s.rows().to_vec()));
                let columns = places.iter().map(|&place| {
                    let column = input.columns().get(place);
                    let column = column.ok_or_else(|| malformed("a target reads a column that is not there"))?;
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
                let Partial { value, rows, error: failed } = evaluate_all(evaluators, cx, &over, selection.as_ref())?;
                if failed.is_some() {
                    error = failed;
                }
                (value, rows)
            }
        };
        Ok(Evaluated { output: batch(&self.schema, columns, kept)?, error, filtered })
    }
}

/// Evaluates what may ask correlated subqueries, over all of a batch or, where it does ask, over a few rows at a time: who
/// takes only the first rows should not wait for the answers of a thousand.
struct Asking {
    correlated: Option<Correlated>,
    /// What is left of the batch.
    rest: Option<RecordBatch>,
    slice_rows: usize,
}

impl Asking {
    fn new(execution: &Arc<Execution>, needs: &Needs) -> Self {
        let correlated = needs.is_correlated().then(|| Correlated::new(execution));
        Self { correlated, rest: None, slice_rows: 1 }
    }

    /// The next rows to evaluate.
    async fn next(&mut self, input: &mut Batches) -> SqlResult<Option<RecordBatch>> {
        const SLICE_ROWS_MAX: usize = 256;
        if self.correlated.is_none() {
            return input.next().await;
        }
        let batch = match self.rest.take() {
            Some(batch) => batch,
            None => match input.next().await? {
                Some(batch) => batch,
                None => return Ok(None),
            },
        };
        let rows = batch.num_rows().min(self.slice_rows);
        self.slice_rows = (self.slice_rows * 2).min(SLICE_ROWS_MAX);
        if rows < batch.num_rows() {
            self.rest = Some(batch.slice(rows, batch.num_rows() - rows));
        }
        Ok(Some(batch.slice(0, rows)))
    }

    async fn evaluate<R>(
        &mut self,
        execution: &Execution,
        mut f: impl FnMut(&EvalContext<'_>) -> SqlResult<R>,
    ) -> SqlResult<R> {
        match &mut self.correlated {
            None => execution.with_context(f),
            Some(correlated) => correlated.evaluate(|subplans| execution.with_subplans(subplans, &mut f)).await,
        }
    }
}

impl Operator for Evaluate {
    fn name(&self) -> &'static str {
        "Evaluate"
    }

    fn start(self: Arc<Self>, partition: usize, inputs: Vec<Input>) -> SqlResult<Box<dyn Producer>> {
        let [input] = inputs.as_slice() else { return Err(crate::operator::malformed("Evaluate has one child")) };
        let asking = Asking::new(&self.execution, &self.needs);
        Ok(Box::new(Running { input: input.start(partition)?, operator: self, asking, failed: None, ready: false }))
    }
}

struct Running {
    operator: Arc<Evaluate>,
    input: Batches,
    asking: Asking,
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
            let Some(input) = self.asking.next(&mut self.input).await? else { return Ok(None) };
            let operator = &self.operator;
            if !self.ready {
                operator.execution.prepare(&operator.needs).await?;
                self.ready = true;
            }
            let evaluated = self.asking.evaluate(&operator.execution, |cx| operator.apply(cx, &input)).await?;
            let Evaluated { output, error, filtered } = evaluated;
            if let Some(counters) = operator.execution.counters.node(operator.node).filter(|_| filtered > 0) {
                add(&counters.filtered, filtered as u64);
            }
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
        let asking = Asking::new(&self.execution, &self.needs);
        Ok(Box::new(Appending { input: input.start(partition)?, operator: self, asking, ready: false }))
    }
}

struct Appending {
    operator: Arc<AppendColumns>,
    input: Batches,
    asking: Asking,
    ready: bool,
}

#[async_trait]
impl Producer for Appending {
    async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        let Some(input) = self.asking.next(&mut self.input).await? else { return Ok(None) };
        let operator = &self.operator;
        if !self.ready {
            operator.execution.prepare(&operator.needs).await?;
            self.ready = true;
        }
        let over = Batch::new(input.columns(), input.num_rows());
        // Whoever asks for these columns takes in all rows before it gives one: the first error is the statement's.
        let evaluate = |cx: &EvalContext<'_>| evaluate_all(&operator.columns, cx, &over, None);
        let Partial { value, error, .. } = self.asking.evaluate(&operator.execution, evaluate).await?;
        if let Some(error) = error {
            return Err(error);
        }
        let columns = input.columns().iter().cloned().chain(value).collect();
        batch(&operator.schema, columns, input.num_rows()).map(Some)
    }
}
