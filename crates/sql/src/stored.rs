//! Trees that the catalogs store: defaults of arguments, views' rules.

use stegodon_nodes::Expr;
use stegodon_types::{SqlError, SqlResult};

/// A stored list of expressions.
pub(crate) fn expr_list(_tree: &str) -> SqlResult<Vec<Expr>> {
    Err(SqlError::unsupported("a default argument"))
}
