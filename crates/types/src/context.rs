//! What a value is read, printed and compared under.

use std::sync::Arc;

use crate::{FormatSettings, SqlError, SqlResult, SqlState, TypeCatalog};

/// Who knows the types, and the session's settings: everything beside the value itself that its text or order needs.
#[derive(Clone, Copy)]
pub struct TypeContext<'a> {
    /// Looks types up.
    pub types: &'a dyn TypeCatalog,
    /// The session's settings.
    pub settings: &'a FormatSettings,
}

impl<'a> TypeContext<'a> {
    /// A context of the two.
    pub fn new(types: &'a dyn TypeCatalog, settings: &'a FormatSettings) -> Self {
        Self { types, settings }
    }
}

/// The collation that a comparison runs under (DESIGN D9).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Collation {
    /// None: the type has no collation, or none could be derived. Text compared under it is `42P22`.
    None,
    /// Bytewise: C, POSIX, builtin C.UTF-8.
    C,
    /// Deterministic, but its order is not known: equality is bytewise, ordering is `0A000` naming it.
    EqualityOnly(Arc<str>),
    /// Not deterministic, or not known at all: nothing can be compared under it.
    Unsupported(Arc<str>),
    /// Only equality is asked, under a deterministic collation; see [`Collation::for_equality`].
    Equality,
}

impl Collation {
    /// A deterministic collation whose order is not known.
    pub fn equality_only(name: impl Into<Arc<str>>) -> Self {
        Collation::EqualityOnly(name.into())
    }

    /// Whether text can be ordered under it.
    pub fn can_order(&self) -> bool {
        matches!(self, Collation::C)
    }

    /// The same collation where only equality is asked: bytewise, whatever the order.
    pub fn for_equality(&self) -> Collation {
        match self {
            Collation::C | Collation::EqualityOnly(_) | Collation::Equality => Collation::Equality,
            Collation::None => Collation::None,
            Collation::Unsupported(name) => Collation::Unsupported(Arc::clone(name)),
        }
    }

    /// The collation of a part (a range's bounds, a row's column), in the mode that the whole is compared in.
    pub fn of_part(&self, part: Collation) -> Collation {
        if matches!(self, Collation::Equality) { part.for_equality() } else { part }
    }

    /// Fails unless text can be ordered bytewise.
    pub fn check_order(&self) -> SqlResult<()> {
        match self {
            Collation::C | Collation::Equality => Ok(()),
            Collation::None => Err(indeterminate()),
            Collation::EqualityOnly(name) | Collation::Unsupported(name) => {
                Err(SqlError::unsupported(format_args!("ordering under collation \"{name}\"")))
            }
        }
    }

    /// Fails unless text can be compared for equality bytewise.
    pub fn check_equality(&self) -> SqlResult<()> {
        match self {
            Collation::C | Collation::Equality | Collation::EqualityOnly(_) => Ok(()),
            Collation::None => Err(indeterminate()),
            Collation::Unsupported(name) => {
                Err(SqlError::unsupported(format_args!("comparing under collation \"{name}\"")))
            }
        }
    }
}

fn indeterminate() -> SqlError {
    SqlError::new(SqlState::IndeterminateCollation, "could not determine which collation to use for string comparison")
        .hint("Use the COLLATE clause to set the collation explicitly.")
}
