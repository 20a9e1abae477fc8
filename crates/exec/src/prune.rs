//! Run-time pruning of an Append's children.

use stegodon_plan::node::PrunePlan;
use stegodon_types::{SqlError, SqlResult};

use crate::execution::Execution;

/// Which children are left.
pub(crate) fn kept(_: &Execution, _: &PrunePlan) -> SqlResult<Vec<usize>> {
    Err(SqlError::unsupported("run-time pruning"))
}
