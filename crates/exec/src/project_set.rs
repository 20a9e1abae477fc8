//! `ProjectSet`: set-returning functions in a target list.

use stegodon_plan::node::PlanNode;
use stegodon_types::{SqlError, SqlResult};

use crate::lower::Lowering;
use crate::operator::Physical;

/// Lowers a `ProjectSet`.
pub(crate) fn plan(_: &Lowering<'_>, _: &PlanNode, _: Physical) -> SqlResult<Physical> {
    Err(SqlError::unsupported("a set-returning function in a target list"))
}
