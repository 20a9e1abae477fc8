//! Partitioned tables and inheritance.

use stegodon_types::{SqlError, SqlResult};

use crate::level::Level;
use crate::rel::Rel;

/// Expands a parent into its children.
pub(crate) fn expand(_level: &mut Level<'_>, _rti: usize) -> SqlResult<()> {
    Err(SqlError::unsupported("planning of partitioned tables"))
}

/// Adds the paths that append the children.
pub(crate) fn add_append_paths<'a>(_level: &mut Level<'a>, _rel: &mut Rel<'a>) -> SqlResult<()> {
    Err(SqlError::unsupported("planning of partitioned tables"))
}
