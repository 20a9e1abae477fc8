//! Subqueries in FROM that can be merged into the query around them.

use stegodon_nodes::query::Query;
use stegodon_types::SqlResult;

use crate::level::Level;

/// Merges what can be merged.
pub(crate) fn pull_up(_level: &mut Level<'_>, _query: &mut Query) -> SqlResult<()> {
    Ok(())
}
