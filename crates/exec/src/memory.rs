//! Memory limits: each sort and hash has its own, as PostgreSQL gives `work_mem` to each operation.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use arrow_array::RecordBatch;
use async_trait::async_trait;
use datafusion_common::Result as DfResult;
use datafusion_execution::TaskContext;
use datafusion_execution::config::SessionConfig;
use datafusion_execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion_execution::memory_pool::{GreedyMemoryPool, MemoryLimit, MemoryPool, MemoryReservation};
use datafusion_execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use stegodon_types::{SqlResult, SqlState};

use crate::batch::BATCH_ROWS;
use crate::error::unwrap;
use crate::execution::Execution;
use crate::operator::{Batches, Input, Operator, OperatorExec, Physical, Producer, malformed};

/// The least that DataFusion can work with: it wants whole batches, of values that may be long, before it spills.
const LEAST_BYTES: usize = 48 << 20;

/// The context of all statements: no limit but those of their scopes; temporary files in the system's own directory, never
/// beside the cluster (DESIGN D7). It holds nothing of a statement's own.
pub(crate) fn context() -> SqlResult<Arc<TaskContext>> {
    static CONTEXT: OnceLock<Arc<TaskContext>> = OnceLock::new();
    if let Some(context) = CONTEXT.get() {
        return Ok(Arc::clone(context));
    }
    let made = with_runtime(RuntimeEnvBuilder::new().build_arc().map_err(unwrap)?, 0);
    Ok(Arc::clone(CONTEXT.get_or_init(|| made)))
}

fn with_runtime(runtime: Arc<RuntimeEnv>, sort_reservation_bytes: usize) -> Arc<TaskContext> {
    let config = SessionConfig::new()
        .with_batch_size(BATCH_ROWS)
        .with_sort_spill_reservation_bytes(sort_reservation_bytes)
        .with_target_partitions(1);
    Arc::new(TaskContext::default().with_session_config(config).with_runtime(runtime))
}

/// Whether what does not fit in memory may go to a temporary file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spills {
    Yes,
    /// No: what is exhausted says so, and something else is tried ([`or_else`]).
    No,
}

/// Runs its child within a limit.
#[derive(Debug)]
pub(crate) struct MemoryScope {
    execution: Arc<Execution>,
    /// The plan node that the memory is counted for.
    node: usize,
    limit_bytes: usize,
    spills: Spills,
}

impl MemoryScope {
    /// `child`, with so much memory for itself. What lies below it in scopes of its own does not count.
    pub(crate) fn plan(
        execution: &Arc<Execution>,
        node: usize,
        child: Physical,
        limit_bytes: usize,
        spills: Spills,
    ) -> Physical {
        let (schema, partitions) = (child.schema(), child.properties().partitioning.partition_count());
        let limit_bytes = limit_bytes.max(LEAST_BYTES);
        let scope = MemoryScope { execution: Arc::clone(execution), node, limit_bytes, spills };
        OperatorExec::plan(scope, vec![child], schema, partitions)
    }
}

impl Operator for MemoryScope {
    fn name(&self) -> &'static str {
        "MemoryScope"
    }

    fn start(self: Arc<Self>, partition: usize, inputs: Vec<Input>) -> SqlResult<Box<dyn Producer>> {
        let [input] = inputs.as_slice() else { return Err(malformed("a memory scope has one child")) };
        let pool = Arc::new(Counted { pool: GreedyMemoryPool::new(self.limit_bytes), most_bytes: AtomicUsize::new(0) });
        let outer = input.context().runtime_env();
        let mode = match self.spills {
            Spills::Yes => DiskManagerMode::OsTmpDirectory,
            Spills::No => DiskManagerMode::Disabled,
        };
        let runtime = RuntimeEnvBuilder::from_runtime_env(&outer)
            .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(mode))
            .with_memory_pool(Arc::clone(&pool) as Arc<dyn MemoryPool>)
            .build_arc()
            .map_err(unwrap)?;
        let context = with_runtime(Arc::clone(&runtime), self.limit_bytes / 8);
        let batches = input.within(context).start(partition)?;
        Ok(Box::new(Running { scope: self, batches, pool, runtime }))
    }
}

struct Running {
    scope: Arc<MemoryScope>,
    batches: Batches,
    pool: Arc<Counted>,
    runtime: Arc<RuntimeEnv>,
}

#[async_trait]
impl Producer for Running {
    async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        let batch = self.batches.next().await;
        if let Some(node) = self.scope.execution.counters.node(self.scope.node) {
            let most_bytes = self.pool.most_bytes.load(Ordering::Relaxed) as u64;
            node.memory_bytes.fetch_max(most_bytes, Ordering::Relaxed);
            node.disk_bytes.fetch_max(self.runtime.disk_manager.used_disk_space(), Ordering::Relaxed);
        }
        batch
    }
}

/// A memory pool that remembers the most that was taken from it.
#[derive(Debug)]
struct Counted {
    pool: GreedyMemoryPool,
    most_bytes: AtomicUsize,
}

impl std::fmt::Display for Counted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(&self.pool, f)
    }
}

impl MemoryPool for Counted {
    fn name(&self) -> &str {
        self.pool.name()
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.pool.grow(reservation, additional);
        self.most_bytes.fetch_max(self.pool.reserved(), Ordering::Relaxed);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.pool.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> DfResult<()> {
        self.pool.try_grow(reservation, additional)?;
        self.most_bytes.fetch_max(self.pool.reserved(), Ordering::Relaxed);
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.pool.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.pool.memory_limit()
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
