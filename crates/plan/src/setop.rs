//! UNION, INTERSECT, EXCEPT.

use stegodon_types::{SqlError, SqlResult};

use crate::level::Level;
use crate::path::PathList;

/// Plans a set operation.
pub(crate) fn plan_set_operation<'a>(_level: &mut Level<'a>) -> SqlResult<PathList<'a>> {
    Err(SqlError::unsupported("planning of set operations"))
}
