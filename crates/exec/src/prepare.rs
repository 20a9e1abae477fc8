//! Small frames around a child: run subqueries first; give the same rows to every worker.

use std::sync::Arc;

use arrow_array::RecordBatch;
use async_trait::async_trait;
use stegodon_types::SqlResult;

use crate::execution::Execution;
use crate::initplan::Needs;
use crate::operator::{Batches, Input, Operator, OperatorExec, Physical, Producer, malformed};

/// `child`, started only once what its conditions need has been run: for operators of DataFusion's, which cannot wait in
/// the middle of a condition.
pub(crate) fn plan(execution: &Arc<Execution>, child: Physical, needs: Needs) -> Physical {
    if needs == Needs::default() {
        return child;
    }
    let (schema, partitions) = (child.schema(), child.properties().partitioning.partition_count());
    let operator = Prepare { execution: Arc::clone(execution), needs };
    OperatorExec::plan(operator, vec![child], schema, partitions)
}

#[derive(Debug)]
struct Prepare {
    execution: Arc<Execution>,
    needs: Needs,
}

impl Operator for Prepare {
    fn name(&self) -> &'static str {
        "Prepare"
    }

    fn start(self: Arc<Self>, partition: usize, inputs: Vec<Input>) -> SqlResult<Box<dyn Producer>> {
        let [input] = inputs.as_slice() else { return Err(malformed("Prepare has one child")) };
        Ok(Box::new(Preparing { operator: self, input: input.clone(), partition, running: None }))
    }
}

struct Preparing {
    operator: Arc<Prepare>,
    input: Input,
    partition: usize,
    running: Option<Batches>,
}

#[async_trait]
impl Producer for Preparing {
    async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        if self.running.is_none() {
            self.operator.execution.prepare(&self.operator.needs).await?;
            self.running = Some(self.input.start(self.partition)?);
        }
        match &mut self.running {
            Some(running) => running.next().await,
            None => Ok(None),
        }
    }
}

/// `child`'s only partition, run anew for each of `partitions` workers.
pub(crate) fn replicate(child: Physical, partitions: usize) -> Physical {
    if partitions == 1 {
        return child;
    }
    let schema = child.schema();
    OperatorExec::plan(Replicate, vec![child], schema, partitions)
}

#[derive(Debug)]
struct Replicate;

impl Operator for Replicate {
    fn name(&self) -> &'static str {
        "Replicate"
    }

    fn start(self: Arc<Self>, _: usize, inputs: Vec<Input>) -> SqlResult<Box<dyn Producer>> {
        let [input] = inputs.as_slice() else { return Err(malformed("Replicate has one child")) };
        Ok(Box::new(Replica(input.start(0)?)))
    }
}

struct Replica(Batches);

#[async_trait]
impl Producer for Replica {
    async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        self.0.next().await
    }
}
