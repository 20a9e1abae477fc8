//! Values of variable length: inline, compressed, or stored in a TOAST table.
//!
//! ```text
//!   first byte   form                                     then
//!   xxxxxx00     4-byte header, plain                     length in the upper 30 bits, itself included; the data
//!   xxxxxx10     4-byte header, compressed                length likewise; u32: raw size (30 bits), method (2 bits);
//!                                                         the compressed data
//!   xxxxxxx1     1-byte header, plain, not aligned        length in the upper 7 bits, itself included; the data
//!   00000001     TOAST pointer, not aligned               tag 18; 16 bytes:
//!
//!      0       1      2             6                              10          14              18
//!      ┌───────┬──────┬─────────────┬──────────────────────────────┬───────────┬───────────────┐
//!      │ 0x01  │ 18   │ raw size    │ stored size 0–29, method     │ value's   │ TOAST table's │
//!      │       │      │ + 4, i32    │ 30–31                        │ OID       │ OID           │
//!      └───────┴──────┴─────────────┴──────────────────────────────┴───────────┴───────────────┘
//!      compressed if and only if stored size < raw size
//!
//!   method: 0 pglz, 1 lz4
//! ```
//!
//! A value stored compressed in a TOAST table begins with the same u32 of raw size and method as an inline one, and its
//! stored size counts it.
//!
//! A pad byte is zero and no short header is, which is how a walk knows whether to align (see [`crate::attr`]).

use crate::bytes::Bytes;
use crate::error::{Error, Result};
use crate::ids::Oid;
use crate::pglz;

/// The size of a 4-byte length word.
pub const VARHDRSZ: usize = 4;
/// The size of a TOAST pointer with its two header bytes.
pub const TOAST_POINTER_SIZE: usize = 18;
/// The largest size of any value, header included: what 30 bits hold.
pub const MAX_VARLENA_SIZE: usize = (1 << 30) - 1;

const ONDISK_TAG: u8 = 18;
const SIZE_MASK: u32 = (1 << 30) - 1;

/// How a value is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompressionMethod {
    /// PostgreSQL's own LZ.
    Pglz,
    /// LZ4 block format.
    Lz4,
}

impl CompressionMethod {
    fn from_bits(info: u32) -> Result<Self> {
        match info >> 30 {
            0 => Ok(Self::Pglz),
            1 => Ok(Self::Lz4),
            other => Err(Error::InvalidField { what: "varlena", field: "compression method", value: u64::from(other) }),
        }
    }

    /// The method's name, as `pg_column_compression` prints it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pglz => "pglz",
            Self::Lz4 => "lz4",
        }
    }
}

/// A compressed value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compressed<'a> {
    /// How.
    pub method: CompressionMethod,
    /// The size of the payload once decompressed.
    pub raw_size: usize,
    /// The compressed bytes.
    pub data: &'a [u8],
}

impl<'a> Compressed<'a> {
    /// From the u32 of size and method and what follows it: what is inline behind the length word, and what the chunks of
    /// a TOAST table hold.
    pub fn parse(stored: &'a [u8]) -> Result<Self> {
        let bytes = Bytes::new("compressed varlena", stored);
        let info = bytes.u32(0)?;
        Ok(Self {
            method: CompressionMethod::from_bits(info)?,
            raw_size: (info & SIZE_MASK) as usize,
            data: stored.get(4..).unwrap_or(&[]),
        })
    }

    /// The payload. Refuses one larger than `limit` before any memory is taken.
    pub fn decompress(&self, limit: usize) -> Result<Vec<u8>> {
        decompress(self.method, self.data, self.raw_size, limit)
    }
}

/// A pointer to a value in a TOAST table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToastPointer {
    /// The size of the payload once fetched and decompressed (the stored field counts four bytes more).
    pub raw_size: usize,
    /// The sum of the chunks' sizes.
    pub stored_size: usize,
    /// How the chunks' content is compressed, if it is.
    pub compression: Option<CompressionMethod>,
    /// `chunk_id` in the TOAST table.
    pub value_id: Oid,
    /// The TOAST table.
    pub toast_relation: Oid,
}

impl ToastPointer {
    /// From the 16 bytes behind the two header bytes.
    fn parse(bytes: Bytes<'_>) -> Result<Self> {
        let raw = bytes.i32(2)?;
        let info = bytes.u32(6)?;
        let Some(raw_size) = usize::try_from(raw).ok().and_then(|raw| raw.checked_sub(VARHDRSZ)) else {
            return Err(Error::InvalidField {
                what: "TOAST pointer",
                field: "va_rawsize",
                value: u64::from(raw as u32),
            });
        };
        let stored_size = (info & SIZE_MASK) as usize;
        if raw_size > MAX_VARLENA_SIZE || stored_size > raw_size {
            return Err(Error::InvalidField { what: "TOAST pointer", field: "va_extinfo", value: u64::from(info) });
        }
        let compression = if stored_size < raw_size { Some(CompressionMethod::from_bits(info)?) } else { None };
        Ok(Self {
            raw_size,
            stored_size,
            compression,
            value_id: Oid(bytes.u32(10)?),
            toast_relation: Oid(bytes.u32(14)?),
        })
    }
}

/// A value of variable length, as a tuple holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Varlena<'a> {
    /// The payload itself.
    Inline(&'a [u8]),
    /// The payload, compressed.
    Compressed(Compressed<'a>),
    /// The payload is in a TOAST table.
    External(ToastPointer),
}

impl<'a> Varlena<'a> {
    /// The value at the start of `bytes`, and how many bytes it takes there.
    pub fn parse(bytes: &'a [u8]) -> Result<(Self, usize)> {
        let len = stored_len(bytes)?;
        let raw = Bytes::new("varlena", bytes);
        let first = raw.u8(0)?;
        let value = if first == 1 {
            Self::External(ToastPointer::parse(Bytes::new("TOAST pointer", bytes))?)
        } else if first & 1 == 1 {
            Self::Inline(raw.slice(1, len - 1)?)
        } else if first & 2 == 2 {
            Self::Compressed(Compressed::parse(raw.slice(VARHDRSZ, len - VARHDRSZ)?)?)
        } else {
            Self::Inline(raw.slice(VARHDRSZ, len - VARHDRSZ)?)
        };
        Ok((value, len))
    }

    /// The value that fills `bytes` exactly, such as [`crate::attr::TupleLayout`] yields.
    pub fn parse_exact(bytes: &'a [u8]) -> Result<Self> {
        let (value, len) = Self::parse(bytes)?;
        if len == bytes.len() {
            Ok(value)
        } else {
            Err(Error::InvalidField { what: "varlena", field: "length", value: len as u64 })
        }
    }
}

/// How many bytes the value at the start of `bytes` takes there, header included (`VARSIZE_ANY`); an error if it goes
/// beyond them.
#[inline]
pub fn stored_len(bytes: &[u8]) -> Result<usize> {
    let len = match bytes {
        [1, ONDISK_TAG, ..] => TOAST_POINTER_SIZE,
        // The other tags are pointers into memory, which no file holds.
        [1, tag, ..] => {
            return Err(Error::InvalidField { what: "TOAST pointer", field: "tag", value: u64::from(*tag) });
        }
        [short, ..] if short & 1 == 1 && *short != 1 => usize::from(short >> 1),
        [a, b, c, d, ..] => (u32::from_le_bytes([*a, *b, *c, *d]) >> 2) as usize,
        _ => return Err(truncated(VARHDRSZ, bytes.len())),
    };
    if len > bytes.len() {
        return Err(truncated(len, bytes.len()));
    }
    let is_long = bytes.first().is_some_and(|first| first & 1 == 0);
    if is_long && len < VARHDRSZ {
        return Err(Error::InvalidField { what: "varlena", field: "length", value: len as u64 });
    }
    Ok(len)
}

#[cold]
fn truncated(needed: usize, available: usize) -> Error {
    Error::Truncated { what: "varlena", offset: 0, needed, available }
}

/// Decompresses `data` to exactly `raw_size` bytes. Anything else is an error, as is a `raw_size` over `limit` or one
/// that so few bytes cannot become.
pub fn decompress(method: CompressionMethod, data: &[u8], raw_size: usize, limit: usize) -> Result<Vec<u8>> {
    if raw_size > limit {
        return Err(Error::TooLarge { what: "decompressed value", size: raw_size, limit });
    }
    let corrupt = Error::CorruptCompressedData { method: method.name() };
    // Neither method makes one byte into more than 273 (pglz: 2 tag bytes into 18, a third adds 255; lz4: 255).
    if raw_size > data.len().saturating_mul(273) {
        return Err(corrupt);
    }
    match method {
        CompressionMethod::Pglz => pglz::decompress(data, raw_size),
        CompressionMethod::Lz4 => {
            let mut out = vec![0; raw_size];
            match lz4_flex::block::decompress_into(data, &mut out) {
                Ok(len) if len == raw_size => Ok(out),
                _ => Err(corrupt),
            }
        }
    }
}

#[cfg(test)]
#[path = "varlena_tests.rs"]
mod tests;
