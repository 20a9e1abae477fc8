//! `CTE Scan`: the rows of a WITH query, computed once.

use std::sync::Arc;

use arrow_array::RecordBatch;
use async_trait::async_trait;
use stegodon_types::SqlResult;

use crate::execution::Execution;
use crate::initplan::Needs;
use crate::operator::{Input, Operator, Producer};

/// Reads a subplan's kept rows.
#[derive(Debug)]
pub(crate) struct CteScan {
    pub(crate) execution: Arc<Execution>,
    pub(crate) subplan: usize,
}

impl Operator for CteScan {
    fn name(&self) -> &'static str {
        "CTE Scan"
    }

    fn start(self: Arc<Self>, _: usize, _: Vec<Input>) -> SqlResult<Box<dyn Producer>> {
        Ok(Box::new(Running { operator: self, next: 0 }))
    }
}

struct Running {
    operator: Arc<CteScan>,
    next: usize,
}

#[async_trait]
impl Producer for Running {
    async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        let CteScan { execution, subplan } = self.operator.as_ref();
        execution.prepare(&Needs::subplan(*subplan)).await?;
        let batch = execution.init_plans.rows(*subplan).and_then(|rows| rows.get(self.next).cloned());
        self.next += 1;
        Ok(batch)
    }
}
