//! One value outside a batch: a constant, a parameter, a scan key, a statistic.

use std::sync::Arc;

/// One non-null value; SQL values are `Option<Datum>`. The variant is the one that the type's
/// [`Layout`](crate::Layout) names; which type it is of is known beside it (an OID), as in PostgreSQL.
#[derive(Clone, Debug)]
pub enum Datum {
    /// [`Layout::Bool`](crate::Layout::Bool).
    Bool(bool),
    /// [`Layout::Char`](crate::Layout::Char).
    Char(u8),
    /// [`Layout::Int16`](crate::Layout::Int16).
    Int16(i16),
    /// [`Layout::Int32`](crate::Layout::Int32).
    Int32(i32),
    /// [`Layout::UInt32`](crate::Layout::UInt32).
    UInt32(u32),
    /// [`Layout::Int64`](crate::Layout::Int64).
    Int64(i64),
    /// [`Layout::UInt64`](crate::Layout::UInt64).
    UInt64(u64),
    /// [`Layout::Float32`](crate::Layout::Float32).
    Float32(f32),
    /// [`Layout::Float64`](crate::Layout::Float64).
    Float64(f64),
    /// [`Layout::Fixed`](crate::Layout::Fixed), [`Layout::Name`](crate::Layout::Name) and
    /// [`Layout::Bytes`](crate::Layout::Bytes).
    Bytes(Arc<[u8]>),
}

impl Datum {
    /// A byte string.
    pub fn bytes(bytes: impl AsRef<[u8]>) -> Self {
        Datum::Bytes(Arc::from(bytes.as_ref()))
    }

    /// The bytes, where this is a byte string.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Datum::Bytes(b) => Some(b),
            _ => None,
        }
    }
}

/// The same value to the bit: what trees are compared by. A NaN is the same as itself, 0 and −0 are not the same; for SQL's
/// equality see [`crate::equal`].
impl PartialEq for Datum {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Datum::Bool(a), Datum::Bool(b)) => a == b,
            (Datum::Char(a), Datum::Char(b)) => a == b,
            (Datum::Int16(a), Datum::Int16(b)) => a == b,
            (Datum::Int32(a), Datum::Int32(b)) => a == b,
            (Datum::UInt32(a), Datum::UInt32(b)) => a == b,
            (Datum::Int64(a), Datum::Int64(b)) => a == b,
            (Datum::UInt64(a), Datum::UInt64(b)) => a == b,
            (Datum::Float32(a), Datum::Float32(b)) => a.to_bits() == b.to_bits(),
            (Datum::Float64(a), Datum::Float64(b)) => a.to_bits() == b.to_bits(),
            (Datum::Bytes(a), Datum::Bytes(b)) => a == b,
            _ => false,
        }
    }
}

/// One non-null value, borrowed: from a [`Datum`], from a batch, or from a page.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "each variant is Datum's of the same name")]
pub enum ValueRef<'a> {
    Bool(bool),
    Char(u8),
    Int16(i16),
    Int32(i32),
    UInt32(u32),
    Int64(i64),
    UInt64(u64),
    Float32(f32),
    Float64(f64),
    Bytes(&'a [u8]),
}

impl Datum {
    /// Borrows this value.
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Datum::Bool(v) => ValueRef::Bool(*v),
            Datum::Char(v) => ValueRef::Char(*v),
            Datum::Int16(v) => ValueRef::Int16(*v),
            Datum::Int32(v) => ValueRef::Int32(*v),
            Datum::UInt32(v) => ValueRef::UInt32(*v),
            Datum::Int64(v) => ValueRef::Int64(*v),
            Datum::UInt64(v) => ValueRef::UInt64(*v),
            Datum::Float32(v) => ValueRef::Float32(*v),
            Datum::Float64(v) => ValueRef::Float64(*v),
            Datum::Bytes(v) => ValueRef::Bytes(v),
        }
    }
}

impl ValueRef<'_> {
    /// Copies this value.
    pub fn to_datum(self) -> Datum {
        match self {
            ValueRef::Bool(v) => Datum::Bool(v),
            ValueRef::Char(v) => Datum::Char(v),
            ValueRef::Int16(v) => Datum::Int16(v),
            ValueRef::Int32(v) => Datum::Int32(v),
            ValueRef::UInt32(v) => Datum::UInt32(v),
            ValueRef::Int64(v) => Datum::Int64(v),
            ValueRef::UInt64(v) => Datum::UInt64(v),
            ValueRef::Float32(v) => Datum::Float32(v),
            ValueRef::Float64(v) => Datum::Float64(v),
            ValueRef::Bytes(v) => Datum::bytes(v),
        }
    }
}
