//! Counting what a node gives, for EXPLAIN ANALYZE.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use arrow_array::RecordBatch;
use async_trait::async_trait;
use stegodon_types::SqlResult;

use crate::counters::add;
use crate::execution::Execution;
use crate::operator::{Batches, Input, Operator, OperatorExec, Physical, Producer, malformed};

/// `child`, counted as plan node `node` where the execution is instrumented.
pub(crate) fn instrument(execution: &Arc<Execution>, node: usize, child: Physical) -> Physical {
    if !execution.instrument {
        return child;
    }
    let (schema, partitions) = (child.schema(), child.properties().partitioning.partition_count());
    let operator = Instrument { execution: Arc::clone(execution), node };
    OperatorExec::plan(operator, vec![child], schema, partitions)
}

#[derive(Debug)]
struct Instrument {
    execution: Arc<Execution>,
    node: usize,
}

impl Operator for Instrument {
    fn name(&self) -> &'static str {
        "Instrument"
    }

    fn start(self: Arc<Self>, partition: usize, inputs: Vec<Input>) -> SqlResult<Box<dyn Producer>> {
        let [input] = inputs.as_slice() else { return Err(malformed("an instrument has one child")) };
        let started = Instant::now();
        let input = input.start(partition)?;
        if let Some(node) = self.execution.counters.node(self.node) {
            add(&node.loops, 1);
        }
        Ok(Box::new(Running { operator: self, input, spent_ns: started.elapsed().as_nanos() as u64, first: true }))
    }
}

struct Running {
    operator: Arc<Instrument>,
    input: Batches,
    spent_ns: u64,
    first: bool,
}

#[async_trait]
impl Producer for Running {
    async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        let started = Instant::now();
        let batch = self.input.next().await;
        self.spent_ns += started.elapsed().as_nanos() as u64;
        if let Some(node) = self.operator.execution.counters.node(self.operator.node) {
            if std::mem::take(&mut self.first) {
                node.startup_ns.fetch_add(self.spent_ns, Ordering::Relaxed);
            }
            if let Ok(Some(batch)) = &batch {
                add(&node.rows, batch.num_rows() as u64);
            }
        }
        batch
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(node) = self.operator.execution.counters.node(self.operator.node) {
            add(&node.total_ns, self.spent_ns);
        }
    }
}
