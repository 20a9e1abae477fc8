//! Subqueries in FROM that stay subqueries.

use stegodon_types::{SqlError, SqlResult};

use crate::level::Level;
use crate::rel::Rel;

/// Plans the subquery of a range table entry.
pub(crate) fn plan_from_subquery(_level: &mut Level<'_>, _rti: usize) -> SqlResult<()> {
    Err(SqlError::unsupported("planning of subqueries in FROM"))
}

/// Adds its paths.
pub(crate) fn add_subquery_paths<'a>(_level: &mut Level<'a>, _rel: &mut Rel<'a>) -> SqlResult<()> {
    Err(SqlError::unsupported("planning of subqueries in FROM"))
}
