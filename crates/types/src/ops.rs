//! What a type can do, as function pointers, and the calls that dispatch to them.
//!
//! [`ops`] finds a type's functions once; a loop over a column then calls them without a look-up per value. The free
//! functions of this module look up and call.

use std::cmp::Ordering;

use crate::{Collation, Datum, SqlError, SqlResult, SqlState, TypeContext, TypeDesc, TypeKind, ValueRef};

/// Appends a value's text or binary form.
pub type OutFn = fn(&TypeContext<'_>, &TypeDesc, ValueRef<'_>, &mut Vec<u8>) -> SqlResult<()>;
/// Reads a value from its text or binary form, and applies the typmod (-1 for none).
pub type InFn = fn(&TypeContext<'_>, &TypeDesc, &[u8], i32) -> SqlResult<Datum>;
/// Compares two values by the type's default B-tree operator class.
pub type CompareFn = fn(&TypeContext<'_>, &TypeDesc, &Collation, ValueRef<'_>, ValueRef<'_>) -> SqlResult<Ordering>;
/// Whether two values are equal.
pub type EqualFn = fn(&TypeContext<'_>, &TypeDesc, &Collation, ValueRef<'_>, ValueRef<'_>) -> SqlResult<bool>;
/// Appends a value's key.
pub type KeyFn = fn(&TypeContext<'_>, &TypeDesc, &Collation, ValueRef<'_>, &mut Vec<u8>) -> SqlResult<()>;
/// PostgreSQL's extended hash function of the type.
pub type HashFn = fn(&TypeContext<'_>, &TypeDesc, &Collation, ValueRef<'_>, u64) -> SqlResult<u64>;

/// What a type can do.
#[derive(Clone, Copy)]
pub struct TypeOps {
    /// The output function.
    pub text_out: OutFn,
    /// The input function.
    pub text_in: InFn,
    /// The send function.
    pub binary_out: OutFn,
    /// The receive function.
    pub binary_in: InFn,
    /// Support function 1 of the default B-tree operator class; none where the type has no such class.
    pub compare: Option<CompareFn>,
    /// The `=` operator of the default B-tree or hash operator class; none where the type has neither.
    pub equal: Option<EqualFn>,
    /// The key: `memcmp` orders keys as `compare` orders values, and equal values have equal keys. No key is a prefix
    /// of another of the same type, so that keys of several columns can be concatenated. Where a type has equality
    /// only, keys keep only that.
    pub key: Option<KeyFn>,
    /// Support function 2 of the default hash operator class; none where it is not done or does not exist.
    pub hash: Option<HashFn>,
    /// Whether an Arrow array of the type compares as the type does.
    pub own_key: bool,
}

impl std::fmt::Debug for TypeOps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TypeOps").field("own_key", &self.own_key).finish_non_exhaustive()
    }
}

/// The functions of a type. `0A000` where the type is not supported.
pub fn ops(ty: &TypeDesc) -> SqlResult<&'static TypeOps> {
    // The vectors of the catalogs are arrays to operators, but have a text form and an order of their own.
    if matches!(ty.oid, crate::oids::INT2VECTOR | crate::oids::OIDVECTOR)
        && let Some(row) = crate::builtin(ty.oid)
    {
        return Ok(row.ops);
    }
    match ty.kind {
        TypeKind::Base | TypeKind::Pseudo => match crate::builtin(ty.oid) {
            Some(row) => Ok(row.ops),
            None => Err(SqlError::unsupported(format_args!("type {}", ty.name))),
        },
        TypeKind::Enum => Ok(&crate::enums::OPS),
        TypeKind::Domain { .. } => Ok(&crate::domain::OPS),
        TypeKind::Composite { .. } => Ok(&crate::record::OPS),
        TypeKind::Array { .. } => Ok(&crate::array::OPS),
        TypeKind::Range { .. } => Ok(&crate::range::OPS),
        TypeKind::Multirange { .. } => Ok(&crate::multirange::OPS),
    }
}

/// Appends a value's text, as its output function prints it.
pub fn text_out(cx: &TypeContext<'_>, ty: &TypeDesc, value: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    (ops(ty)?.text_out)(cx, ty, value, out)
}

/// Reads a value from text, as its input function does, typmod included (-1 for none).
pub fn text_in(cx: &TypeContext<'_>, ty: &TypeDesc, text: &[u8], typmod: i32) -> SqlResult<Datum> {
    (ops(ty)?.text_in)(cx, ty, text, typmod)
}

/// Appends a value's binary form, as its send function writes it.
pub fn binary_out(cx: &TypeContext<'_>, ty: &TypeDesc, value: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    (ops(ty)?.binary_out)(cx, ty, value, out)
}

/// Reads a value from its binary form, as its receive function does.
pub fn binary_in(cx: &TypeContext<'_>, ty: &TypeDesc, bytes: &[u8], typmod: i32) -> SqlResult<Datum> {
    (ops(ty)?.binary_in)(cx, ty, bytes, typmod)
}

/// Compares by the type's default B-tree operator class; `42883` where it has none.
pub fn compare(
    cx: &TypeContext<'_>,
    ty: &TypeDesc,
    coll: &Collation,
    a: ValueRef<'_>,
    b: ValueRef<'_>,
) -> SqlResult<Ordering> {
    match ops(ty)?.compare {
        Some(f) => f(cx, ty, coll, a, b),
        None => Err(no_comparison(ty)),
    }
}

/// Whether two values are equal by the type's default operator class; `42883` where it has none.
pub fn equal(
    cx: &TypeContext<'_>,
    ty: &TypeDesc,
    coll: &Collation,
    a: ValueRef<'_>,
    b: ValueRef<'_>,
) -> SqlResult<bool> {
    match ops(ty)?.equal {
        Some(f) => f(cx, ty, &coll.for_equality(), a, b),
        None => Err(no_equality(ty)),
    }
}

/// Appends a value's key: `memcmp` orders keys as [`compare`] orders values, equal values have equal keys, and no key is
/// a prefix of another. A collation that cannot order is `0A000`; see [`encode_equality_key`].
pub fn encode_key(
    cx: &TypeContext<'_>,
    ty: &TypeDesc,
    coll: &Collation,
    value: ValueRef<'_>,
    out: &mut Vec<u8>,
) -> SqlResult<()> {
    match ops(ty)?.key {
        Some(f) => f(cx, ty, coll, value, out),
        None => Err(no_comparison(ty)),
    }
}

/// Appends a key that is good for equality only (joins, groups, DISTINCT), under any deterministic collation.
pub fn encode_equality_key(
    cx: &TypeContext<'_>,
    ty: &TypeDesc,
    coll: &Collation,
    value: ValueRef<'_>,
    out: &mut Vec<u8>,
) -> SqlResult<()> {
    match ops(ty)?.key {
        Some(f) => f(cx, ty, &coll.for_equality(), value, out),
        None => Err(no_equality(ty)),
    }
}

/// Whether an Arrow array of the type is its own key: Arrow's order and equality are the type's. For text that holds
/// for order under a collation that [can order](Collation::can_order), and for equality under any deterministic one.
/// A type that has equality only never is.
pub fn is_own_key(ty: &TypeDesc) -> bool {
    ops(ty).is_ok_and(|ops| ops.own_key)
}

/// PostgreSQL's extended hash of a value (what hash partitions are chosen by); `None` where it is not done.
pub fn hash_extended(
    cx: &TypeContext<'_>,
    ty: &TypeDesc,
    coll: &Collation,
    value: ValueRef<'_>,
    seed: u64,
) -> SqlResult<Option<u64>> {
    match ops(ty)?.hash {
        Some(f) => f(cx, ty, coll, value, seed).map(Some),
        None => Ok(None),
    }
}

/// `0A000` where the type is not done at all.
fn not_done(ty: &TypeDesc) -> Option<SqlError> {
    let row = crate::builtin(ty.oid)?;
    std::ptr::eq(row.ops, &raw const crate::scalar::pseudo::UNSUPPORTED)
        .then(|| SqlError::unsupported(format_args!("comparing values of type {}", crate::names::sql_name(ty))))
}

/// `42883` for a type without a B-tree operator class.
pub(crate) fn no_comparison(ty: &TypeDesc) -> SqlError {
    if let Some(error) = not_done(ty) {
        return error;
    }
    SqlError::new(
        SqlState::UndefinedFunction,
        format!("could not identify a comparison function for type {}", crate::names::sql_name(ty)),
    )
}

/// `42883` for a type without equality.
pub(crate) fn no_equality(ty: &TypeDesc) -> SqlError {
    if let Some(error) = not_done(ty) {
        return error;
    }
    SqlError::new(
        SqlState::UndefinedFunction,
        format!("could not identify an equality operator for type {}", crate::names::sql_name(ty)),
    )
}

/// The value is not of the layout that its type has: a fault of ours.
pub(crate) fn wrong_layout(ty: &TypeDesc) -> SqlError {
    SqlError::internal(format_args!("a value of type {} is not of its layout", ty.name))
}

macro_rules! accessor {
    ($($name:ident: $variant:ident -> $t:ty,)*) => {$(
        #[doc = concat!("The value as `", stringify!($t), "`; an internal error where it is another.")]
        pub fn $name(ty: &TypeDesc, value: ValueRef<'_>) -> SqlResult<$t> {
            match value {
                ValueRef::$variant(v) => Ok(v),
                _ => Err(wrong_layout(ty)),
            }
        }
    )*};
}

/// Taking a value apart by its layout.
pub mod get {
    use super::*;
    accessor! {
        bool: Bool -> bool,
        char: Char -> u8,
        i16: Int16 -> i16,
        i32: Int32 -> i32,
        u32: UInt32 -> u32,
        i64: Int64 -> i64,
        u64: UInt64 -> u64,
        f32: Float32 -> f32,
        f64: Float64 -> f64,
    }

    /// The value's bytes; an internal error where it has none.
    pub fn bytes<'a>(ty: &TypeDesc, value: ValueRef<'a>) -> SqlResult<&'a [u8]> {
        match value {
            ValueRef::Bytes(v) => Ok(v),
            _ => Err(wrong_layout(ty)),
        }
    }
}

/// `equal` for types where it is what `compare` says.
#[macro_export]
#[doc(hidden)]
macro_rules! equal_by {
    ($compare:path) => {{
        fn equal(
            cx: &$crate::TypeContext<'_>,
            ty: &$crate::TypeDesc,
            coll: &$crate::Collation,
            a: $crate::ValueRef<'_>,
            b: $crate::ValueRef<'_>,
        ) -> $crate::SqlResult<bool> {
            Ok($compare(cx, ty, coll, a, b)?.is_eq())
        }
        equal
    }};
}
