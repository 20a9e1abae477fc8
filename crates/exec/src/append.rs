//! `Append`: one input after another, those that run-time pruning leaves.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::RecordBatch;
use async_trait::async_trait;
use stegodon_plan::node::PrunePlan;
use stegodon_types::SqlResult;

use crate::execution::Execution;
use crate::initplan::Needs;
use crate::operator::{Batches, Input, Operator, Producer};

/// Inputs in order. With several partitions, an input of one partition runs in one of them only.
#[derive(Debug)]
pub(crate) struct Append {
    pub(crate) execution: Arc<Execution>,
    pub(crate) prune: Option<PrunePlan>,
    pub(crate) needs: Needs,
    pub(crate) partitions: usize,
}

impl Operator for Append {
    fn name(&self) -> &'static str {
        "Append"
    }

    fn start(self: Arc<Self>, partition: usize, inputs: Vec<Input>) -> SqlResult<Box<dyn Producer>> {
        let mine = |(i, input): (usize, Input)| match input.partitions() {
            n if n == self.partitions => Some((i, input, partition)),
            _ if i % self.partitions == partition => Some((i, input, 0)),
            _ => None,
        };
        let waiting = inputs.into_iter().enumerate().filter_map(mine).collect();
        Ok(Box::new(Running { operator: self, waiting, current: None, pruned: false }))
    }
}

struct Running {
    operator: Arc<Append>,
    waiting: VecDeque<(usize, Input, usize)>,
    current: Option<Batches>,
    pruned: bool,
}

#[async_trait]
impl Producer for Running {
    async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        if !self.pruned {
            self.pruned = true;
            if let Some(prune) = &self.operator.prune {
                let execution = &self.operator.execution;
                execution.prepare(&self.operator.needs).await?;
                let kept = crate::prune::kept(execution, prune)?;
                self.waiting.retain(|(i, _, _)| kept.contains(i));
            }
        }
        loop {
            if let Some(current) = &mut self.current {
                if let Some(batch) = current.next().await? {
                    return Ok(Some(batch));
                }
                self.current = None;
            }
            let Some((_, input, partition)) = self.waiting.pop_front() else { return Ok(None) };
            self.current = Some(input.start(partition)?);
        }
    }
}
