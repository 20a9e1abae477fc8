//! Memory limits: each sort and hash has its own, as PostgreSQL gives `work_mem` to each operation.

use std::sync::Arc;

use arrow_array::RecordBatch;
use async_trait::async_trait;
use datafusion_execution::TaskContext;
use datafusion_execution::config::SessionConfig;
use datafusion_execution::memory_pool::GreedyMemoryPool;
use datafusion_execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use stegodon_types::{SqlResult, SqlState};

use crate::batch::BATCH_ROWS;
use crate::error::unwrap;
use crate::operator::{Batches, Input, Operator, OperatorExec, Physical, Producer, malformed};

/// The least that DataFusion can work with: it wants whole batches, of values that may be long, before it spills.
const LEAST_BYTES: usize = 48 << 20;

/// A context for a statement: no limit but those of its scopes; temporary files in the system's own directory, never
/// beside the cluster (DESIGN D7).
pub(crate) fn context() -> SqlResult<Arc<TaskContext>> {
    Ok(with_runtime(RuntimeEnvBuilder::new().build_arc().map_err(unwrap)?, 0))
}

fn with_runtime(runtime: Arc<RuntimeEnv>, sort_reservation_bytes: usize) -> Arc<TaskContext> {
    let config = SessionConfig::new()
        .with_batch_size(BATCH_ROWS)
        .with_sort_spill_reservation_bytes(sort_reservation_bytes)
        .with_target_partitions(1);
    Arc::new(TaskContext::default().with_session_config(config).with_runtime(runtime))
}

/// Runs its child within a limit.
#[derive(Debug)]
pub(crate) struct MemoryScope {
    limit_bytes: usize,
}

impl MemoryScope {
    /// `child`, with so much memory for itself. What lies below it in scopes of its own does not count.
    pub(crate) fn plan(child: Physical, limit_bytes: usize) -> Physical {
        let (schema, partitions) = (child.schema(), child.properties().partitioning.partition_count());
        OperatorExec::plan(MemoryScope { limit_bytes: limit_bytes.max(LEAST_BYTES) }, vec![child], schema, partitions)
    }
}

impl Operator for MemoryScope {
    fn name(&self) -> &'static str {
        "MemoryScope"
    }

    fn start(self: Arc<Self>, partition: usize, inputs: Vec<Input>) -> SqlResult<Box<dyn Producer>> {
        let [input] = inputs.as_slice() else { return Err(malformed("a memory scope has one child")) };
        let pool = Arc::new(GreedyMemoryPool::new(self.limit_bytes));
        let outer = input.context().runtime_env();
        let runtime = RuntimeEnvBuilder::from_runtime_env(&outer).with_memory_pool(pool).build_arc().map_err(unwrap)?;
        let context = with_runtime(runtime, self.limit_bytes / 8);
        Ok(Box::new(Running(input.within(context).start(partition)?)))
    }
}

struct Running(Batches);

#[async_trait]
impl Producer for Running {
    async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        self.0.next().await
    }
}

/// `first`; where its memory is exhausted before it has given a row, `second`, which gives the same rows with less.
pub(crate) fn or_else(first: Physical, second: Physical) -> Physical {
    let (schema, partitions) = (first.schema(), first.properties().partitioning.partition_count());
    OperatorExec::plan(OrElse, vec![first, second], schema, partitions)
}

#[derive(Debug)]
struct OrElse;

impl Operator for OrElse {
    fn name(&self) -> &'static str {
        "OrElse"
    }

    fn start(self: Arc<Self>, partition: usize, inputs: Vec<Input>) -> SqlResult<Box<dyn Producer>> {
        let [first, second] = inputs.as_slice() else { return Err(malformed("an alternative has two children")) };
        let running = first.start(partition)?;
        Ok(Box::new(Choosing { running, second: Some(second.clone()), partition }))
    }
}

struct Choosing {
    running: Batches,
    /// What is still to be chosen instead.
    second: Option<Input>,
    partition: usize,
}

#[async_trait]
impl Producer for Choosing {
    async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        let second = self.second.take();
        match (self.running.next().await, second) {
            (Err(error), Some(second)) if error.state == SqlState::OutOfMemory => {
                self.running = second.start(self.partition)?;
                self.running.next().await
            }
            (result, _) => result,
        }
    }
}
