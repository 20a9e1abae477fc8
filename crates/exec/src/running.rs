//! A statement that runs.

use std::sync::Arc;

use arrow_array::RecordBatch;
use stegodon_plan::node::PlannedStatement;
use stegodon_types::{SqlError, SqlResult};

use crate::batch::layout_of;
use crate::execution::{Execution, ExecutionOptions};
use crate::initplan::InitPlans;
use crate::lower::Lowering;
use crate::memory;
use crate::operator::{Batches, Input};

/// A running statement. Dropping it ends it.
pub struct Running {
    execution: Arc<Execution>,
    batches: Option<Batches>,
}

/// Lowers a statement and starts it.
pub fn start(statement: &PlannedStatement, options: ExecutionOptions) -> SqlResult<Running> {
    let mut init_plans = Vec::with_capacity(statement.init_plans.len());
    for plan in &statement.init_plans {
        let subplan = statement.subplans.get(plan.subplan);
        let subplan = subplan.ok_or_else(|| SqlError::internal("an initplan without a plan"))?;
        let shown = subplan.targets.iter().filter(|t| !t.junk);
        let layouts = shown.map(|t| layout_of(options.view.as_ref(), &t.expr)).collect::<SqlResult<Vec<_>>>()?;
        init_plans.push((plan.clone(), layouts));
    }
    let execution = Arc::new(Execution::new(options, InitPlans::new(init_plans), statement.exec_param_count));
    let context = memory::context()?;
    let lowering = Lowering { execution: &execution, statement };
    let lower = |node| Ok(Some(Input::new(lowering.node(node, 1)?, Arc::clone(&context))));
    let subplans = statement.subplans.iter().map(lower).collect::<SqlResult<Vec<_>>>()?;
    execution.init_plans.set_plans(subplans);
    let mut running = Running { execution, batches: None };
    let root = Lowering { execution: &running.execution, statement }.node(&statement.root, 1)?;
    running.batches = Some(Input::new(root, context).start(0)?);
    Ok(running)
}

impl Running {
    /// The next rows. Junk columns, if any, stand behind the statement's own.
    pub async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        let Some(batches) = &mut self.batches else { return Ok(None) };
        let result = batches.next().await;
        if !matches!(result, Ok(Some(_))) {
            self.batches = None;
        }
        result
    }

    /// The state of the execution, with its counters.
    pub fn execution(&self) -> &Arc<Execution> {
        &self.execution
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.batches = None;
        self.execution.init_plans.clear();
    }
}
