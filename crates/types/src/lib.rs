//! The registry of types: from an OID to everything a value of that type can do.
//!
//! A tour: [`Layout`] says how a type's values lie on disk and in a batch; [`Datum`] and [`ValueRef`] are one value,
//! owned and borrowed; [`TypeDesc`] is one row of `pg_type`, and [`TypeCatalog`] is whoever can look one up; the table of
//! types has one row for each built-in type with its text and binary form, comparison, key and hash.
//! Errors towards a client are [`SqlError`]s with a [`SqlState`].
#![forbid(unsafe_code)]
#![allow(clippy::unnecessary_wraps, reason = "the functions of all types have one signature")]

pub mod array;
pub mod builtin;
pub mod column;
pub mod comparators;
pub mod context;
pub mod datetime;
pub mod datum;
pub mod desc;
pub mod domain;
pub mod enums;
pub mod error;
pub mod hash;
pub mod key;
pub mod layout;
pub mod multirange;
pub mod names;
pub mod numeric;
pub mod oids;
pub mod ops;
pub mod packed;
pub mod range;
pub mod record;
pub mod scalar;
pub mod settings;
pub mod table;

pub use builtin::BuiltinTypes;
pub use column::{ColumnBuilder, value_at};
pub use comparators::{Comparator, comparator};
pub use context::{Collation, TypeContext};
pub use datum::{Datum, ValueRef};
pub use desc::{CompositeAttribute, RegKind, TypeCatalog, TypeDesc, TypeKind};
pub use error::{SqlError, SqlResult, SqlState};
pub use layout::{Align, Layout};
pub use ops::{
    TypeOps, binary_in, binary_out, compare, encode_equality_key, encode_key, equal, hash_extended, is_own_key, ops,
    text_in, text_out,
};
pub use settings::FormatSettings;
pub use stegodon_format::ids::Oid;
pub use table::{TypeRow, builtin};

#[cfg(test)]
mod tests;
