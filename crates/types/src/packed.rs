//! Values inside the payload of another: elements, bounds, columns.
//!
//! Positions count from the whole's length word, which lies at a multiple of 8; so alignment is that of `4 + position in
//! the payload`.
//!
//! ```text
//!  typlen > 0   aligned, that many bytes
//!  typlen -1    in a range or row: where the byte is not zero, a value starts (a short header is not aligned), else
//!               padding up to the alignment; in an array always aligned
//!  typlen -2    bytes up to a NUL
//! ```

use stegodon_format::varlena::{Compressed, Varlena};

use crate::{Align, Datum, Layout, SqlError, SqlResult, SqlState, TypeDesc, ValueRef};

/// The largest value that is decompressed.
const MAX_VALUE_SIZE: usize = (1 << 30) - 1;
/// Payloads up to this length get a one-byte header.
const MAX_SHORT: usize = 0x7F - 1;

/// How values of a type lie inside another value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// `typlen`.
    pub len: i16,
    /// `typalign`.
    pub align: Align,
    /// The form to read them in.
    pub layout: Layout,
    /// Whether a short header may be written (`typstorage` is not plain).
    pub packable: bool,
}

impl Part {
    /// Of a type; `0A000` where it is not supported.
    pub fn of(ty: &TypeDesc) -> SqlResult<Self> {
        let layout = ty.layout.ok_or_else(|| SqlError::unsupported(format_args!("type {}", ty.name)))?;
        // `aclitem` has 12 bytes in 15 and 16 after.
        let layout = match layout {
            Layout::Fixed(_) => Layout::Fixed(u8::try_from(ty.len).map_err(|_| corrupt("type"))?),
            other => other,
        };
        let plain = matches!(ty.oid, crate::oids::INT2VECTOR | crate::oids::OIDVECTOR);
        Ok(Part { len: ty.len, align: ty.align, layout, packable: ty.len == -1 && !plain })
    }
}

/// A value read from inside another: as it lies there, or a copy where it was compressed.
#[derive(Clone, Debug, PartialEq)]
pub enum Item<'a> {
    /// It lies there.
    Ref(ValueRef<'a>),
    /// It was compressed.
    Owned(Datum),
}

impl Item<'_> {
    /// The value.
    pub fn value(&self) -> ValueRef<'_> {
        match self {
            Item::Ref(v) => *v,
            Item::Owned(v) => v.as_ref(),
        }
    }
}

/// `XX001`: the inner value does not fit the outer one.
pub(crate) fn corrupt(what: &str) -> SqlError {
    SqlError::new(SqlState::DataCorrupted, format!("a stored {what} is malformed"))
}

/// The first bytes as an array of a known length.
fn head<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.get(..N).and_then(|b| b.try_into().ok())
}

/// A value of fixed length, at the start of `bytes`.
fn fixed(bytes: &[u8], layout: Layout) -> Option<ValueRef<'_>> {
    Some(match layout {
        Layout::Bool => ValueRef::Bool(*bytes.first()? != 0),
        Layout::Char => ValueRef::Char(*bytes.first()?),
        Layout::Int16 => ValueRef::Int16(i16::from_le_bytes(head(bytes)?)),
        Layout::Int32 => ValueRef::Int32(i32::from_le_bytes(head(bytes)?)),
        Layout::UInt32 => ValueRef::UInt32(u32::from_le_bytes(head(bytes)?)),
        Layout::Int64 => ValueRef::Int64(i64::from_le_bytes(head(bytes)?)),
        Layout::UInt64 => ValueRef::UInt64(u64::from_le_bytes(head(bytes)?)),
        Layout::Float32 => ValueRef::Float32(f32::from_le_bytes(head(bytes)?)),
        Layout::Float64 => ValueRef::Float64(f64::from_le_bytes(head(bytes)?)),
        Layout::Fixed(n) => ValueRef::Bytes(bytes.get(..usize::from(n))?),
        Layout::Name => {
            let name = bytes.get(..crate::scalar::text::NAME_LEN)?;
            ValueRef::Bytes(name.split(|b| *b == 0).next()?)
        }
        Layout::Bytes => return None,
    })
}

fn decompress(compressed: &Compressed<'_>) -> SqlResult<Item<'static>> {
    Ok(Item::Owned(Datum::bytes(compressed.decompress(MAX_VALUE_SIZE)?)))
}

/// The value in the bytes that a tuple walk found: a varlena with its header, a fixed value, a C string with its NUL.
pub fn from_stored(stored: &[u8], part: Part) -> SqlResult<Item<'_>> {
    let value = match part.len {
        -1 => match Varlena::parse_exact(stored)? {
            Varlena::Inline(payload) => ValueRef::Bytes(payload),
            Varlena::Compressed(compressed) => return decompress(&compressed),
            Varlena::External(_) => {
                return Err(SqlError::new(SqlState::DataCorrupted, "a TOAST pointer inside a stored value"));
            }
        },
        -2 => ValueRef::Bytes(stored.strip_suffix(&[0]).unwrap_or(stored)),
        _ => fixed(stored, part.layout).ok_or_else(|| corrupt("value"))?,
    };
    Ok(Item::Ref(value))
}

/// Reads the value that comes next in `payload` at `position`, which moves behind it. `packed` is how ranges lie.
pub(crate) fn read<'a>(payload: &'a [u8], position: &mut usize, part: Part, packed: bool) -> SqlResult<Item<'a>> {
    let at = *position;
    let is_short = packed && part.len == -1 && payload.get(at).is_some_and(|b| *b != 0);
    let start = if is_short { at } else { part.align.up(at + 4) - 4 };
    let rest = payload.get(start..).ok_or_else(|| corrupt("value"))?;
    let length = match part.len {
        -1 => stegodon_format::varlena::stored_len(rest)?,
        -2 => rest.iter().position(|b| *b == 0).ok_or_else(|| corrupt("value"))? + 1,
        len => usize::try_from(len).map_err(|_| corrupt("value"))?,
    };
    let stored = rest.get(..length).ok_or_else(|| corrupt("value"))?;
    *position = start + length;
    from_stored(stored, part)
}

/// Pads `out`, whose payload starts at `start`, with zeros up to an alignment.
pub(crate) fn pad(out: &mut Vec<u8>, start: usize, align: Align) {
    let position = out.len() - start;
    out.resize(start + align.up(position + 4) - 4, 0);
}

/// Appends a value to the payload that starts at `start`. `packed` is how ranges and rows lie.
pub(crate) fn write(out: &mut Vec<u8>, start: usize, part: Part, value: ValueRef<'_>, packed: bool) -> SqlResult<()> {
    let wrong = || SqlError::internal("a value is not of its part's layout");
    if let (-1, ValueRef::Bytes(payload)) = (part.len, value) {
        if packed && part.packable && payload.len() <= MAX_SHORT {
            out.push(((payload.len() + 1) << 1 | 1) as u8);
        } else {
            pad(out, start, part.align);
            let length = payload.len() + 4;
            if length > MAX_VALUE_SIZE {
                return Err(SqlError::new(SqlState::ProgramLimitExceeded, "a value is too large"));
            }
            out.extend_from_slice(&((length as u32) << 2).to_le_bytes());
        }
        out.extend_from_slice(payload);
        return Ok(());
    }
    pad(out, start, part.align);
    match value {
        ValueRef::Bool(v) => out.push(u8::from(v)),
        ValueRef::Char(v) => out.push(v),
        ValueRef::Int16(v) => out.extend_from_slice(&v.to_le_bytes()),
        ValueRef::Int32(v) => out.extend_from_slice(&v.to_le_bytes()),
        ValueRef::UInt32(v) => out.extend_from_slice(&v.to_le_bytes()),
        ValueRef::Int64(v) => out.extend_from_slice(&v.to_le_bytes()),
        ValueRef::UInt64(v) => out.extend_from_slice(&v.to_le_bytes()),
        ValueRef::Float32(v) => out.extend_from_slice(&v.to_le_bytes()),
        ValueRef::Float64(v) => out.extend_from_slice(&v.to_le_bytes()),
        ValueRef::Bytes(v) => match (part.layout, part.len) {
            (_, -2) => {
                out.extend_from_slice(v);
                out.push(0);
            }
            (Layout::Name, len) if len > 0 && v.len() < len as usize => {
                out.extend_from_slice(v);
                out.resize(out.len() + len as usize - v.len(), 0);
            }
            (Layout::Fixed(n), _) if v.len() == usize::from(n) => out.extend_from_slice(v),
            _ => return Err(wrong()),
        },
    }
    Ok(())
}

/// Appends text with C-like quoting: the characters of `special`, white space, quotes and backslashes make quotes
/// necessary, and so does being empty. Inside, quotes and backslashes are escaped by `escape` (`None`: doubled).
pub(crate) fn write_quoted(text: &[u8], special: &[u8], escape: Option<u8>, out: &mut Vec<u8>) {
    let needs_quotes = text.is_empty()
        || text.iter().any(|b| matches!(b, b'"' | b'\\') || special.contains(b) || crate::scalar::is_space(*b));
    if !needs_quotes {
        out.extend_from_slice(text);
        return;
    }
    out.push(b'"');
    for b in text {
        if matches!(b, b'"' | b'\\') {
            out.push(escape.unwrap_or(*b));
        }
        out.push(*b);
    }
    out.push(b'"');
}
