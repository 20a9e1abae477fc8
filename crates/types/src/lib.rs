//! The registry of types: from an OID to everything a value of that type can do.
//!
//! A tour: [`Layout`] says how a type's values lie on disk and in a batch; [`Datum`] and [`ValueRef`] are one value,
//! owned and borrowed; [`TypeDesc`] is one row of `pg_type`, and [`TypeCatalog`] is whoever can look one up; the table of
//! types has one row for each built-in type with its text and binary form, comparison, key and hash.
//! Errors towards a client are [`SqlError`]s with a [`SqlState`].
#![forbid(unsafe_code)]

pub mod datum;
pub mod desc;
pub mod error;
pub mod layout;
pub mod settings;

pub use datum::{Datum, ValueRef};
pub use desc::{CompositeAttribute, RegKind, TypeCatalog, TypeDesc, TypeKind};
pub use error::{SqlError, SqlResult, SqlState};
pub use layout::{Align, Layout};
pub use settings::FormatSettings;
pub use stegodon_format::ids::Oid;
