//! Run-time pruning of an Append's children.

use stegodon_plan::Folding;
use stegodon_plan::node::PrunePlan;
use stegodon_types::SqlResult;

use crate::execution::Execution;

/// Which children are left, now that parameters and subqueries have their values.
pub(crate) fn kept(execution: &Execution, plan: &PrunePlan) -> SqlResult<Vec<usize>> {
    execution.with_context(|cx| {
        stegodon_plan::prune(execution.catalog(), &Folding { cx: *cx }, plan, cx.params, cx.exec_params)
    })
}
