//! Plan nodes of joins.

use std::rc::Rc;

use stegodon_types::{SqlError, SqlResult};

use crate::finish::{Built, Finisher, View};
use crate::path::Path;

/// Lays out a join path.
pub(crate) fn build<'a>(_f: &mut Finisher, _v: View<'_, 'a>, _p: &Rc<Path<'a>>) -> SqlResult<Built> {
    Err(SqlError::unsupported("joins"))
}
