//! WITH queries.

use stegodon_nodes::query::Query;
use stegodon_types::{SqlError, SqlResult};

use crate::level::Level;

/// Plans each WITH query, or leaves it to be put in where it is referred to.
pub(crate) fn plan_ctes(_level: &mut Level<'_>, query: &mut Query) -> SqlResult<()> {
    if query.ctes.is_empty() { Ok(()) } else { Err(SqlError::unsupported("planning of WITH")) }
}
