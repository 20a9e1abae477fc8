//! The frame of our own operators: what one must say, and the adapter that makes it one of DataFusion's.
//!
//! An operator says how to make a [`Producer`] for one partition; a producer gives batches one by one. Errors are
//! [`SqlError`]s on our side of the fence only ([`crate::error`] carries them through).

use std::cell::Cell;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{DataFusionError, Result as DfResult};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::EquivalenceProperties;
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use datafusion_physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use futures::{StreamExt, stream};
use stegodon_types::{SqlError, SqlResult};

use crate::error::{unwrap, wrap};

/// A plan that DataFusion can run.
pub(crate) type Physical = Arc<dyn ExecutionPlan>;

/// Gives the batches of one partition, in order; after `None` or an error it is not asked again.
#[async_trait]
pub(crate) trait Producer: Send {
    /// The next batch.
    async fn next(&mut self) -> SqlResult<Option<RecordBatch>>;
}

/// One of our operators.
pub(crate) trait Operator: Debug + Send + Sync + 'static {
    /// Its name in internal messages.
    fn name(&self) -> &'static str;

    /// Starts one partition. `inputs` are the children, not yet started.
    fn start(self: Arc<Self>, partition: usize, inputs: Vec<Input>) -> SqlResult<Box<dyn Producer>>;
}

/// A child that can be started, also more than once.
#[derive(Clone)]
pub(crate) struct Input {
    plan: Physical,
    context: Arc<TaskContext>,
}

impl Input {
    /// A plan, to be run in a context.
    pub(crate) fn new(plan: Physical, context: Arc<TaskContext>) -> Self {
        Self { plan, context }
    }

    /// The same plan in another context.
    pub(crate) fn within(&self, context: Arc<TaskContext>) -> Self {
        Self { plan: Arc::clone(&self.plan), context }
    }

    /// Starts a partition.
    pub(crate) fn start(&self, partition: usize) -> SqlResult<Batches> {
        self.plan.execute(partition, Arc::clone(&self.context)).map(Batches).map_err(unwrap)
    }

    /// How many partitions it has.
    pub(crate) fn partitions(&self) -> usize {
        self.plan.properties().partitioning.partition_count()
    }

    /// The context it runs in.
    pub(crate) fn context(&self) -> &Arc<TaskContext> {
        &self.context
    }
}

/// A running partition.
pub(crate) struct Batches(pub(crate) SendableRecordBatchStream);

impl Batches {
    /// The columns of each.
    pub(crate) fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    /// Its next batch that has a row.
    pub(crate) async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        loop {
            match self.0.next().await {
                None => return Ok(None),
                Some(Err(e)) => return Err(unwrap(e)),
                Some(Ok(batch)) if batch.num_rows() == 0 => {}
                Some(Ok(batch)) => return Ok(Some(batch)),
            }
        }
    }
}

/// Makes an operator one of DataFusion's.
#[derive(Debug)]
pub(crate) struct OperatorExec {
    operator: Arc<dyn Operator>,
    children: Vec<Physical>,
    properties: Arc<PlanProperties>,
}

impl OperatorExec {
    /// An operator over its children, giving `partitions` partitions of `schema`.
    pub(crate) fn plan(
        operator: impl Operator,
        children: Vec<Physical>,
        schema: SchemaRef,
        partitions: usize,
    ) -> Physical {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Arc::new(Self { operator: Arc::new(operator), children, properties: Arc::new(properties) })
    }
}

impl DisplayAs for OperatorExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.operator.name())
    }
}

impl ExecutionPlan for OperatorExec {
    fn name(&self) -> &str {
        self.operator.name()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Physical> {
        self.children.iter().collect()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DfResult<TreeNodeRecursion>,
    ) -> DfResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Physical>) -> DfResult<Physical> {
        if children.len() != self.children.len() {
            return Err(DataFusionError::Internal(format!("{} has {} children", self.name(), self.children.len())));
        }
        let (operator, properties) = (Arc::clone(&self.operator), Arc::clone(&self.properties));
        Ok(Arc::new(Self { operator, children, properties }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        let inputs = self.children.iter().map(|c| Input::new(Arc::clone(c), Arc::clone(&context))).collect();
        let producer = Arc::clone(&self.operator).start(partition, inputs).map_err(wrap)?;
        Ok(stream_of(self.properties.eq_properties.schema(), producer))
    }
}

/// A producer as DataFusion's stream.
fn stream_of(schema: &SchemaRef, producer: Box<dyn Producer>) -> SendableRecordBatchStream {
    let batches = stream::unfold(Some(producer), |producer| async move {
        let mut producer = producer?;
        match producer.next().await {
            Ok(None) => None,
            Ok(Some(batch)) => Some((Ok(batch), Some(producer))),
            Err(e) => Some((Err(wrap(e)), None)),
        }
    });
    Box::pin(RecordBatchStreamAdapter::new(Arc::clone(schema), batches))
}

/// Lets other tasks of this thread run, if none has for a while: sockets, cancel requests and timeouts are looked at between
/// batches. Whatever makes rows calls it once a batch; a pool hit alone never waits.
pub(crate) async fn breathe() {
    /// To yield costs as much as a short query does: another thread is woken to look for work.
    const AT_ONCE: Duration = Duration::from_micros(500);
    thread_local! {
        static YIELDED: Cell<Instant> = Cell::new(Instant::now());
    }
    if YIELDED.get().elapsed() > AT_ONCE {
        tokio::task::yield_now().await;
        YIELDED.set(Instant::now());
    }
}

/// An internal error about a plan's shape.
pub(crate) fn malformed(what: &str) -> SqlError {
    SqlError::internal(format_args!("malformed plan: {what}"))
}
