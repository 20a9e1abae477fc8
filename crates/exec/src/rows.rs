//! Inputs that are no table: one row without columns, VALUES lists, functions in FROM.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use stegodon_functions::Evaluator;
use stegodon_types::{ColumnBuilder, Layout, SqlError, SqlResult};

use crate::batch::{BATCH_ROWS, batch, schema};
use crate::execution::Execution;
use crate::initplan::Needs;
use crate::operator::{Batches, Input, Operator, Producer};

/// One row without columns, unless the one-time filter fails; or the child's rows behind that filter.
#[derive(Debug)]
pub(crate) struct ResultRows {
    pub(crate) execution: Arc<Execution>,
    pub(crate) filter: Option<Evaluator>,
    pub(crate) needs: Needs,
}

impl Operator for ResultRows {
    fn name(&self) -> &'static str {
        "Result"
    }

    fn start(self: Arc<Self>, partition: usize, mut inputs: Vec<Input>) -> SqlResult<Box<dyn Producer>> {
        let input = match inputs.pop() {
            None => From::OneRow,
            Some(input) => From::Child(input, partition),
        };
        Ok(Box::new(RunningResult { operator: self, input }))
    }
}

enum From {
    OneRow,
    Child(Input, usize),
    Running(Batches),
    Nothing,
}

struct RunningResult {
    operator: Arc<ResultRows>,
    input: From,
}

impl ResultRows {
    async fn passes(&self) -> SqlResult<bool> {
        let Some(filter) = &self.filter else { return Ok(true) };
        let execution = &self.execution;
        execution.prepare(&self.needs).await?;
        let value = execution.with_context(|cx| filter.evaluate_const(cx))?;
        Ok(value == Some(stegodon_types::Datum::Bool(true)))
    }
}

#[async_trait]
impl Producer for RunningResult {
    async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        match std::mem::replace(&mut self.input, From::Nothing) {
            From::Nothing => Ok(None),
            From::OneRow => {
                if self.operator.passes().await? {
                    Ok(Some(batch(&schema([]), Vec::new(), 1)?))
                } else {
                    Ok(None)
                }
            }
            From::Child(input, partition) => {
                if !self.operator.passes().await? {
                    return Ok(None);
                }
                self.input = From::Running(input.start(partition)?);
                self.next().await
            }
            From::Running(mut batches) => {
                let batch = batches.next().await?;
                self.input = From::Running(batches);
                Ok(batch)
            }
        }
    }
}

/// VALUES lists.
#[derive(Debug)]
pub(crate) struct Values {
    pub(crate) execution: Arc<Execution>,
    pub(crate) rows: Vec<Vec<Evaluator>>,
    pub(crate) layouts: Vec<Layout>,
    pub(crate) needs: Needs,
    pub(crate) schema: SchemaRef,
}

impl Operator for Values {
    fn name(&self) -> &'static str {
        "Values Scan"
    }

    fn start(self: Arc<Self>, _: usize, _: Vec<Input>) -> SqlResult<Box<dyn Producer>> {
        Ok(Box::new(RunningValues { operator: self, next: 0, failed: None }))
    }
}

struct RunningValues {
    operator: Arc<Values>,
    next: usize,
    failed: Option<SqlError>,
}

#[async_trait]
impl Producer for RunningValues {
    async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let values = &self.operator;
        values.execution.prepare(&values.needs).await?;
        let rows = values.rows.get(self.next..).unwrap_or_default();
        let rows = rows.get(..BATCH_ROWS).unwrap_or(rows);
        let mut builders: Vec<_> = values.layouts.iter().map(|&l| ColumnBuilder::new(l, rows.len())).collect();
        let mut done = 0;
        for row in rows {
            let row: SqlResult<Vec<_>> =
                values.execution.with_context(|cx| row.iter().map(|e| e.evaluate_const(cx)).collect());
            match row {
                Err(e) => {
                    self.failed = Some(e);
                    break;
                }
                Ok(row) => {
                    for (builder, value) in builders.iter_mut().zip(&row) {
                        builder.append_option(value.as_ref().map(stegodon_types::Datum::as_ref))?;
                    }
                    done += 1;
                }
            }
        }
        self.next += done;
        if done == 0 {
            return self.failed.take().map_or(Ok(None), Err);
        }
        let columns = builders.iter_mut().map(ColumnBuilder::finish).collect();
        batch(&values.schema, columns, done).map(Some)
    }
}
