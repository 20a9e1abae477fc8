//! From an index tuple's bytes to its values.

use stegodon_format::btree::IndexTuple;
use stegodon_types::{Layout, SqlError, SqlResult, SqlState, ValueRef};

use crate::desc::{IndexAttribute, IndexDesc};

/// An attribute's bytes as they lie in a tuple; `None` is NULL.
type RawValue<'a> = Option<&'a [u8]>;

/// Walks a tuple's attributes from the first on. Copies nothing.
pub struct AttributeWalker<'a> {
    attributes: &'a [IndexAttribute],
    nulls: Option<u32>,
    data: &'a [u8],
    at: usize,
    next: usize,
}

impl<'a> AttributeWalker<'a> {
    /// A walk over `tuple`. Ask for no more attributes than it has ([`IndexTuple::attribute_count`]).
    pub fn new(desc: &'a IndexDesc, tuple: IndexTuple<'a>) -> SqlResult<Self> {
        let (nulls, data) = tuple.attributes().map_err(corrupted)?;
        Ok(Self { attributes: &desc.attributes, nulls: nulls.map(u32::from_le_bytes), data, at: 0, next: 0 })
    }

    /// Goes straight to attribute `column` where its place is fixed; otherwise over those before it.
    pub fn seek(&mut self, desc: &IndexDesc, column: usize) -> SqlResult<()> {
        if column > self.next
            && self.nulls.is_none()
            && let Some(&start) = desc.fixed_starts.get(column)
        {
            self.at = usize::from(start);
            self.next = column;
        }
        while self.next < column {
            self.next_raw()?;
        }
        Ok(())
    }

    /// The next attribute's bytes.
    pub fn next_raw(&mut self) -> SqlResult<RawValue<'a>> {
        let Some(attribute) = self.attributes.get(self.next) else {
            return Err(SqlError::internal("an index tuple's attribute beyond the last"));
        };
        let column = self.next;
        self.next += 1;
        if let Some(nulls) = self.nulls
            && nulls >> column & 1 == 0
        {
            return Ok(None);
        }
        let rest = |at: usize| self.data.get(at..).ok_or_else(|| cut_short(column));
        let (start, len) = match attribute.len {
            -1 => {
                // A byte that is not padding starts a one-byte header, which is never aligned.
                let start = match rest(self.at)?.first() {
                    Some(0) => attribute.align.up(self.at),
                    Some(_) => self.at,
                    None => return Err(cut_short(column)),
                };
                (start, varlena::size(rest(start)?).ok_or_else(|| cut_short(column))?)
            }
            -2 => {
                let text = rest(self.at)?;
                let nul = text.iter().position(|&byte| byte == 0).ok_or_else(|| cut_short(column))?;
                (self.at, nul + 1)
            }
            fixed => (attribute.align.up(self.at), fixed.max(0) as usize),
        };
        let bytes = rest(start)?.get(..len).ok_or_else(|| cut_short(column))?;
        self.at = start + len;
        Ok(Some(bytes))
    }

    /// The next attribute's value. `scratch` holds it if it had to be decompressed.
    pub fn next_value<'s>(&mut self, scratch: &'s mut Vec<u8>) -> SqlResult<Option<ValueRef<'s>>>
    where
        'a: 's,
    {
        let column = self.next;
        let Some(raw) = self.next_raw()? else { return Ok(None) };
        match self.attributes.get(column) {
            Some(attribute) => decode(attribute, raw, scratch).map(Some),
            None => Ok(None),
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
        Layout::Bytes => ValueRef::Bytes(varlena::payload(raw, scratch)?),
    })
}

/// The varlenas that an index tuple may hold: short, plain, or compressed in line; never in TOAST.
mod varlena {
    use super::*;

    /// The size of the varlena that `bytes` start with, header included.
    pub(super) fn size(bytes: &[u8]) -> Option<usize> {
        let first = *bytes.first()?;
        if first == 1 {
            return None; // a TOAST pointer: index tuples have none
        }
        let size = if first & 1 == 1 {
            usize::from(first >> 1)
        } else {
            (u32::from_le_bytes(*bytes.first_chunk()?) >> 2) as usize
        };
        (size > 0 && (first & 1 == 1 || size >= 4)).then_some(size)
    }

    /// What follows the header, decompressed.
    pub(super) fn payload<'s>(bytes: &'s [u8], _scratch: &'s mut Vec<u8>) -> SqlResult<&'s [u8]> {
        match bytes.first() {
            Some(first) if first & 1 == 1 => Ok(bytes.get(1..).unwrap_or(&[])),
            Some(first) if first & 2 == 0 => Ok(bytes.get(4..).unwrap_or(&[])),
            _ => Err(SqlError::unsupported("a compressed value in an index")),
        }
    }
}

pub(crate) fn corrupted(error: stegodon_format::Error) -> SqlError {
    SqlError::new(SqlState::IndexCorrupted, format!("corrupted index tuple: {error}"))
}

fn cut_short(column: usize) -> SqlError {
    SqlError::new(
        SqlState::IndexCorrupted,
        format!("corrupted index tuple: attribute {} lies beyond its end", column + 1),
    )
}
