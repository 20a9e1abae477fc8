//! The registry of types: from an OID to everything a value of that type can do.
//!
//! A tour: [`Layout`] says how a type's values lie on disk and in a batch; [`Datum`] and [`ValueRef`] are one value,
//! owned and borrowed; [`TypeDesc`] is one row of `pg_type`, and [`TypeCatalog`] is whoever can look one up. [`table`] has
//! one row for each built-in type; [`ops()`] leads from a description to its functions ([`TypeOps`]): text and binary form,
//! comparison, key and hash. [`numeric`], [`mod@array`], [`record`] and [`range`] take values with parts apart and make them.
//! Errors towards a client are [`SqlError`]s with a [`SqlState`].
//!
//! ```
//! use stegodon_types::{BuiltinTypes, Collation, FormatSettings, TypeCatalog, TypeContext, oids};
//!
//! # fn main() -> stegodon_types::SqlResult<()> {
//! let settings = FormatSettings::default();
//! let cx = TypeContext::new(&BuiltinTypes, &settings);
//! let numeric = cx.types.type_desc(oids::NUMERIC)?;
//! let (a, b) = (
//!     stegodon_types::text_in(&cx, &numeric, b"1.0", -1)?,
//!     stegodon_types::text_in(&cx, &numeric, b"1.00", -1)?,
//! );
//! // Different bytes, equal values, equal keys.
//! assert_ne!(a, b);
//! assert!(stegodon_types::compare(&cx, &numeric, &Collation::None, a.as_ref(), b.as_ref())?.is_eq());
//! let (mut a_key, mut b_key) = (Vec::new(), Vec::new());
//! stegodon_types::encode_key(&cx, &numeric, &Collation::None, a.as_ref(), &mut a_key)?;
//! stegodon_types::encode_key(&cx, &numeric, &Collation::None, b.as_ref(), &mut b_key)?;
//! assert_eq!(a_key, b_key);
//! # Ok(())
//! # }
//! ```
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
