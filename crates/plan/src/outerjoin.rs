//! Outer joins that conditions above make into simpler ones.

use stegodon_nodes::query::Query;
use stegodon_types::SqlResult;

use crate::level::Level;

/// Reduces outer joins.
pub(crate) fn reduce(_level: &Level<'_>, _query: &mut Query) -> SqlResult<()> {
    Ok(())
}
