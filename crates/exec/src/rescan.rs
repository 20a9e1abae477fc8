//! A plan that runs anew for every row of another: a correlated subquery, the inner side of a parameterised nested loop.
//!
//! It has an execution of its own, whose slots the outer row's values go into; so two workers, or two rows of one, never
//! meet in a slot. It is lowered once and started again for every row; what it computed that did not depend on the row is
//! kept.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion_physical_plan::execution_plan::reset_plan_states;
use stegodon_plan::node::PlanNode;
use stegodon_types::{Datum, SqlResult};

use crate::error::unwrap;
use crate::execution::Execution;
use crate::initplan::ComputedFrom;
use crate::lower::Lowering;
use crate::operator::{Batches, Physical};

/// A plan to be run again and again.
pub(crate) struct Rescan {
    execution: Arc<Execution>,
    plan: Physical,
    slots: Vec<u32>,
    computed: ComputedFrom,
    started: bool,
}

impl Rescan {
    /// A plan beside an execution, with the slots that each start fills.
    pub(crate) fn new(outer: &Execution, plan: &PlanNode, slots: Vec<u32>) -> SqlResult<Self> {
        let execution = Arc::new(outer.beside());
        let changing: BTreeSet<u32> = slots.iter().copied().collect();
        let computed = execution.init_plans.computed_from(&execution.statement, &changing);
        // A worker of a worker would only wait for a core.
        let plan = Lowering { execution: &execution }.node(plan, 1)?;
        Ok(Self { execution, plan, slots, computed, started: false })
    }

    /// Runs it for a row's values, in the order of the slots.
    pub(crate) fn start(&mut self, values: Vec<Option<Datum>>) -> SqlResult<Batches> {
        self.execution.set_slots(self.slots.iter().copied().zip(values))?;
        if std::mem::replace(&mut self.started, true) {
            self.execution.init_plans.forget(&self.computed);
            // DataFusion keeps a hash join's build side inside the operator: started again without this, it gives the old rows.
            self.plan = reset_plan_states(Arc::clone(&self.plan)).map_err(unwrap)?;
        }
        self.plan.execute(0, Arc::clone(&self.execution.context)).map(Batches).map_err(unwrap)
    }

    /// The execution it runs in.
    pub(crate) fn execution(&self) -> &Arc<Execution> {
        &self.execution
    }
}

impl Drop for Rescan {
    fn drop(&mut self) {
        self.execution.init_plans.clear();
    }
}
