//! A statement that runs.

use std::sync::Arc;

use arrow_array::RecordBatch;
use stegodon_plan::node::PlannedStatement;
use stegodon_types::SqlResult;

use crate::execution::{Execution, ExecutionOptions};
use crate::lower::Lowering;
use crate::operator::{Batches, Input};

/// A running statement. Dropping it ends it.
pub struct Running {
    execution: Arc<Execution>,
    batches: Option<Batches>,
}

/// Lowers a statement and starts it.
pub fn start(statement: &Arc<PlannedStatement>, options: ExecutionOptions) -> SqlResult<Running> {
    let execution = Arc::new(Execution::new(Arc::clone(statement), options)?);
    let mut running = Running { execution, batches: None };
    let execution = &running.execution;
    let root = Lowering { execution }.node(&statement.root, 1)?;
    running.batches = Some(Input::new(root, Arc::clone(&execution.context)).start(0)?);
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
