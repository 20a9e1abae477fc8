//! Subqueries in expressions.

use stegodon_nodes::Expr;
use stegodon_types::{SqlError, SqlResult};

use crate::exprs;
use crate::level::Level;

/// Plans the subqueries of an expression and puts what stands for their values in their places.
pub(crate) fn replace_sublinks(_level: &mut Level<'_>, e: &mut Expr, _condition: bool) -> SqlResult<()> {
    if exprs::any(e, &mut |x| matches!(x, Expr::SubLink(_))) {
        return Err(SqlError::unsupported("planning of a subquery in an expression"));
    }
    Ok(())
}
