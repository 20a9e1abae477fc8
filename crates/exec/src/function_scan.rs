//! `Function Scan`: functions in FROM.

use stegodon_format::ids::Oid;
use stegodon_nodes::Expr;
use stegodon_types::{SqlError, SqlResult};

use crate::lower::Lowering;
use crate::operator::Physical;

/// Lowers functions in FROM.
pub(crate) fn plan(_: &Lowering<'_>, _: &[Expr], _: &[Vec<(Oid, i32, Oid)>], _: bool) -> SqlResult<Physical> {
    Err(SqlError::unsupported("a function in FROM"))
}
