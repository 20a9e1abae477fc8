//! `Limit`: OFFSET and LIMIT. Stops asking its input as soon as it has its rows, so that rows behind never fail.

use std::sync::Arc;

use arrow_array::RecordBatch;
use async_trait::async_trait;
use stegodon_functions::Evaluator;
use stegodon_types::{Datum, SqlError, SqlResult, SqlState};

use crate::execution::Execution;
use crate::initplan::Needs;
use crate::operator::{Batches, Input, Operator, Producer, malformed};

/// OFFSET and LIMIT over one partition.
#[derive(Debug)]
pub(crate) struct Limit {
    pub(crate) execution: Arc<Execution>,
    pub(crate) offset: Option<Evaluator>,
    pub(crate) count: Option<Evaluator>,
    pub(crate) needs: Needs,
}

impl Limit {
    fn bound(&self, what: Option<&Evaluator>, state: SqlState, name: &str) -> SqlResult<Option<u64>> {
        let Some(evaluator) = what else { return Ok(None) };
        match self.execution.with_context(|cx| evaluator.evaluate_const(cx))? {
            None => Ok(None),
            Some(Datum::Int64(n)) => {
                let negative = |_| SqlError::new(state, format!("{name} must not be negative"));
                u64::try_from(n).map(Some).map_err(negative)
            }
            Some(_) => Err(malformed("a limit is not an int8")),
        }
    }
}

impl Operator for Limit {
    fn name(&self) -> &'static str {
        "Limit"
    }

    fn start(self: Arc<Self>, partition: usize, inputs: Vec<Input>) -> SqlResult<Box<dyn Producer>> {
        let [input] = inputs.as_slice() else { return Err(malformed("Limit has one child")) };
        Ok(Box::new(Running { input: Pending::NotStarted(input.clone(), partition), operator: self, skip: 0, left: 0 }))
    }
}

enum Pending {
    NotStarted(Input, usize),
    Started(Batches),
    Ended,
}

struct Running {
    operator: Arc<Limit>,
    input: Pending,
    skip: u64,
    left: u64,
}

#[async_trait]
impl Producer for Running {
    async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        if let Pending::NotStarted(input, partition) = &self.input {
            let limit = &self.operator;
            limit.execution.prepare(&limit.needs).await?;
            let offset = SqlState::InvalidRowCountInResultOffsetClause;
            self.skip = limit.bound(limit.offset.as_ref(), offset, "OFFSET")?.unwrap_or(0);
            let count = SqlState::InvalidRowCountInLimitClause;
            self.left = limit.bound(limit.count.as_ref(), count, "LIMIT")?.unwrap_or(u64::MAX);
            self.input = if self.left == 0 { Pending::Ended } else { Pending::Started(input.start(*partition)?) };
        }
        loop {
            let Pending::Started(batches) = &mut self.input else { return Ok(None) };
            let Some(batch) = batches.next().await? else {
                self.input = Pending::Ended;
                return Ok(None);
            };
            let rows = batch.num_rows() as u64;
            if rows <= self.skip {
                self.skip -= rows;
                continue;
            }
            let start = std::mem::take(&mut self.skip);
            let taken = (rows - start).min(self.left);
            self.left -= taken;
            if self.left == 0 {
                self.input = Pending::Ended;
            }
            return Ok(Some(batch.slice(start as usize, taken as usize)));
        }
    }
}
