//! From an index tuple's bytes to its values.

use stegodon_format::attr::{Attr, AttrCursor, TupleData};
use stegodon_format::btree::{IndexTuple, MAX_ATTRIBUTES};
use stegodon_format::page::BLCKSZ;
use stegodon_format::varlena::Varlena;
use stegodon_types::{Layout, SqlError, SqlResult, SqlState, ValueRef};

use crate::desc::{IndexAttribute, IndexDesc};

/// No index tuple is larger than a third of a page, but what it holds may be compressed; pglz's and lz4's worst case on
/// that much, rounded up.
const DECOMPRESSED_BYTES_MAX: usize = BLCKSZ * 128;

/// The values of one index tuple.
pub struct TupleValues<'l, 'a> {
    cursor: AttrCursor<'l, 'a>,
    attributes: &'l [IndexAttribute],
}

impl<'l, 'a> TupleValues<'l, 'a> {
    /// The values of `tuple`, in a tuple of this index.
    #[inline]
    pub fn new(desc: &'l IndexDesc, tuple: IndexTuple<'a>) -> SqlResult<Self> {
        let (nulls, values) = tuple.attributes().map_err(corrupted)?;
        let count = tuple.attribute_count(desc.attributes.len().min(MAX_ATTRIBUTES));
        let data = TupleData::new(values, nulls, count as u16);
        Ok(Self { cursor: desc.layout.cursor(data), attributes: &desc.attributes })
    }

    /// The value of an attribute, counted from 0. Cheapest in ascending order. `scratch` holds it if it had to be
    /// decompressed. An error where a pivot tuple lacks it.
    #[inline]
    pub fn get<'s>(&mut self, column: usize, scratch: &'s mut Vec<u8>) -> SqlResult<Option<ValueRef<'s>>>
    where
        'a: 's,
    {
        match (self.cursor.get(column).map_err(corrupted)?, self.attributes.get(column)) {
            (Attr::Value(raw), Some(attribute)) => decode(attribute, raw, scratch).map(Some),
            (Attr::Null, _) => Ok(None),
            _ => Err(SqlError::internal("an attribute that the index tuple lacks")),
        }
    }
}

/// An attribute's bytes as a value.
fn decode<'s>(attribute: &IndexAttribute, raw: &'s [u8], scratch: &'s mut Vec<u8>) -> SqlResult<ValueRef<'s>> {
    fn fixed<const N: usize>(raw: &[u8]) -> SqlResult<[u8; N]> {
        raw.first_chunk().copied().ok_or_else(|| SqlError::internal("an attribute shorter than its layout"))
    }
    if attribute.len == -2 {
        return Ok(ValueRef::Bytes(raw.get(..raw.len().saturating_sub(1)).unwrap_or(&[])));
    }
    let Some(layout) = attribute.layout else {
        return Err(SqlError::unsupported("the type of an index column"));
    };
    Ok(match layout {
        Layout::Bool => ValueRef::Bool(fixed::<1>(raw)? != [0]),
        Layout::Char => ValueRef::Char(u8::from_le_bytes(fixed(raw)?)),
        Layout::Int16 => ValueRef::Int16(i16::from_le_bytes(fixed(raw)?)),
        Layout::Int32 => ValueRef::Int32(i32::from_le_bytes(fixed(raw)?)),
        Layout::UInt32 => ValueRef::UInt32(u32::from_le_bytes(fixed(raw)?)),
        Layout::Int64 => ValueRef::Int64(i64::from_le_bytes(fixed(raw)?)),
        Layout::UInt64 => ValueRef::UInt64(u64::from_le_bytes(fixed(raw)?)),
        Layout::Float32 => ValueRef::Float32(f32::from_le_bytes(fixed(raw)?)),
        Layout::Float64 => ValueRef::Float64(f64::from_le_bytes(fixed(raw)?)),
        Layout::Fixed(len) => ValueRef::Bytes(raw.get(..usize::from(len)).unwrap_or(raw)),
        Layout::Name => ValueRef::Bytes(raw.split(|&byte| byte == 0).next().unwrap_or(raw)),
        Layout::Bytes => ValueRef::Bytes(payload(raw, scratch)?),
    })
}

/// A varlena's payload: plain or compressed in line. Index tuples hold no TOAST pointers.
fn payload<'s>(raw: &'s [u8], scratch: &'s mut Vec<u8>) -> SqlResult<&'s [u8]> {
    match Varlena::parse_exact(raw).map_err(corrupted)? {
        Varlena::Inline(payload) => Ok(payload),
        Varlena::Compressed(compressed) => {
            *scratch = compressed.decompress(DECOMPRESSED_BYTES_MAX).map_err(corrupted)?;
            Ok(scratch)
        }
        Varlena::External(_) => Err(SqlError::new(SqlState::IndexCorrupted, "TOAST pointer in an index tuple")),
    }
}

pub(crate) fn corrupted(error: stegodon_format::Error) -> SqlError {
    SqlError::new(SqlState::IndexCorrupted, error.to_string())
}
