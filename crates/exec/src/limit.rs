//! `Limit`: OFFSET and LIMIT. Stops asking its input as soon as it has its rows, so that rows behind never fail.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use async_trait::async_trait;
use stegodon_functions::Evaluator;
use stegodon_types::{Datum, SqlError, SqlResult, SqlState};

use crate::execution::Execution;
use crate::initplan::Needs;
use crate::operator::{Batches, Input, Operator, Producer, malformed};
use crate::scan::Skip;

/// OFFSET and LIMIT over one partition.
#[derive(Debug)]
pub(crate) struct Limit {
    pub(crate) execution: Arc<Execution>,
    pub(crate) offset: Option<Evaluator>,
    pub(crate) count: Option<Evaluator>,
    pub(crate) needs: Needs,
    /// Where the scan below drops the first rows itself.
    pub(crate) skip: Option<Arc<Skip>>,
    /// WITH TIES: the key columns in which a row that still belongs to the result equals the last one.
    pub(crate) ties: Vec<usize>,
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

impl Limit {
    fn tie_keys(&self, rows: &RecordBatch) -> SqlResult<Vec<ArrayRef>> {
        let column = |&p: &usize| rows.columns().get(p).cloned().ok_or_else(|| malformed("a tie's key is missing"));
        self.ties.iter().map(column).collect()
    }

    /// How many rows at the start of `rows` tie with the row whose keys are `last`.
    fn tying(&self, last: &[ArrayRef], rows: &RecordBatch) -> SqlResult<usize> {
        let keys = self.tie_keys(rows)?;
        let behind = last
            .iter()
            .zip(&keys)
            .map(|(a, b)| arrow_select::concat::concat(&[a.as_ref(), b.as_ref()]).map_err(SqlError::internal));
        let behind = behind.collect::<SqlResult<Vec<_>>>()?;
        let ranges = arrow::compute::partition(&behind).map_err(SqlError::internal)?.ranges();
        Ok(ranges.first().map_or(0, |first| first.end - 1))
    }
}

impl Operator for Limit {
    fn name(&self) -> &'static str {
        "Limit"
    }

    fn start(self: Arc<Self>, partition: usize, inputs: Vec<Input>) -> SqlResult<Box<dyn Producer>> {
        let [input] = inputs.as_slice() else { return Err(malformed("Limit has one child")) };
        Ok(Box::new(Running {
            input: Pending::NotStarted(input.clone(), partition),
            operator: self,
            skip: 0,
            below: None,
            left: 0,
        }))
    }
}

enum Pending {
    NotStarted(Input, usize),
    Started(Batches),
    /// All rows were counted; those that tie with the last, whose keys these are, still come.
    Ties(Batches, Vec<ArrayRef>),
    Ended,
}

struct Running {
    operator: Arc<Limit>,
    input: Pending,
    skip: u64,
    /// Who drops rows for us, until the first row comes.
    below: Option<Arc<Skip>>,
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
            let bound = limit.bound(limit.count.as_ref(), count, "LIMIT")?;
            if bound.is_none() && !limit.ties.is_empty() {
                return Err(SqlError::new(count, "row count cannot be null in FETCH FIRST ... WITH TIES clause"));
            }
            self.left = bound.unwrap_or(u64::MAX);
            if let Some(skip) = &limit.skip {
                skip.ask(self.skip);
                self.below = Some(Arc::clone(skip));
            }
            self.input = if self.left == 0 { Pending::Ended } else { Pending::Started(input.start(*partition)?) };
        }
        loop {
            let (Pending::Started(batches) | Pending::Ties(batches, _)) = &mut self.input else { return Ok(None) };
            let Some(batch) = batches.next().await? else {
                self.input = Pending::Ended;
                return Ok(None);
            };
            if let Pending::Ties(_, last) = &self.input {
                let rows = self.operator.tying(last, &batch)?;
                if rows < batch.num_rows() {
                    self.input = Pending::Ended;
                }
                return Ok(Some(batch.slice(0, rows)).filter(|b| b.num_rows() > 0));
            }
            if let Some(below) = self.below.take() {
                self.skip = below.close();
            }
            let rows = batch.num_rows() as u64;
            if rows <= self.skip {
                self.skip -= rows;
                continue;
            }
            let start = std::mem::take(&mut self.skip);
            let taken = (rows - start).min(self.left);
            self.left -= taken;
            let (start, mut taken) = (start as usize, taken as usize);
            if self.left == 0 {
                let ended = std::mem::replace(&mut self.input, Pending::Ended);
                if let (Pending::Started(batches), false) = (ended, self.operator.ties.is_empty()) {
                    let end = start + taken;
                    let last = self.operator.tie_keys(&batch.slice(end - 1, 1))?;
                    let behind = batch.slice(end, batch.num_rows() - end);
                    let more = self.operator.tying(&last, &behind)?;
                    if more == behind.num_rows() {
                        self.input = Pending::Ties(batches, last);
                    }
                    taken += more;
                }
            }
            return Ok(Some(batch.slice(start, taken)));
        }
    }
}
