//! The bytes of a `Const`.
//!
//! ```text
//!  :constvalue 4 [ 1 0 0 0 0 0 0 0 ]        by value: typlen, then all eight bytes of the Datum, little-endian
//!  :constvalue 9 [ 36 0 0 0 97 98 99 100 101 ]  varlena: its size with the length word, then both
//!  :constvalue 4 [ 97 98 99 0 ]             cstring (unknown literals): with the closing NUL
//!  :constvalue 64 [ 97 0 … ]                fixed length by reference: name, uuid, interval …
//! ```

use stegodon_format::ids::Oid;
use stegodon_types::{Datum, Layout, SqlError, SqlResult};

use super::token::{Value, damaged};

/// Decodes a non-null constant.
pub(super) fn decode(
    type_oid: Oid,
    layout: Option<Layout>,
    len: i64,
    by_value: bool,
    value: Value,
) -> SqlResult<Datum> {
    let Value::Bytes(size, bytes) = value else {
        return Err(damaged("constvalue of CONST has an unexpected value"));
    };
    let wrong = || damaged(format!("constant of type {type_oid} has an unexpected size"));
    if by_value {
        if bytes.len() != 8 || size != len {
            return Err(wrong());
        }
    } else if usize::try_from(size) != Ok(bytes.len()) {
        return Err(wrong());
    }
    let unsupported = || SqlError::unsupported(format!("a stored constant of type {type_oid}"));
    match len {
        -2 => {
            let text = bytes.split(|&b| b == 0).next().unwrap_or_default();
            return Ok(Datum::bytes(text));
        }
        -1 => {
            return match layout.ok_or_else(unsupported)? {
                Layout::Bytes => varlena(&bytes).map(Datum::bytes).ok_or_else(wrong),
                _ => Err(wrong()),
            };
        }
        _ => {}
    }
    let len = usize::try_from(len).map_err(|_| wrong())?;
    let bytes = bytes.get(..len).ok_or_else(wrong)?;
    let datum = match layout.ok_or_else(unsupported)? {
        Layout::Bool => Datum::Bool(*bytes.first().ok_or_else(wrong)? != 0),
        Layout::Char => Datum::Char(*bytes.first().ok_or_else(wrong)?),
        Layout::Int16 => Datum::Int16(i16::from_le_bytes(bytes.try_into().map_err(|_| wrong())?)),
        Layout::Int32 => Datum::Int32(i32::from_le_bytes(bytes.try_into().map_err(|_| wrong())?)),
        Layout::UInt32 => Datum::UInt32(u32::from_le_bytes(bytes.try_into().map_err(|_| wrong())?)),
        Layout::Int64 => Datum::Int64(i64::from_le_bytes(bytes.try_into().map_err(|_| wrong())?)),
        Layout::UInt64 => Datum::UInt64(u64::from_le_bytes(bytes.try_into().map_err(|_| wrong())?)),
        Layout::Float32 => Datum::Float32(f32::from_le_bytes(bytes.try_into().map_err(|_| wrong())?)),
        Layout::Float64 => Datum::Float64(f64::from_le_bytes(bytes.try_into().map_err(|_| wrong())?)),
        Layout::Fixed(n) if usize::from(n) == len => Datum::bytes(bytes),
        Layout::Name if len == 64 => Datum::bytes(bytes.split(|&b| b == 0).next().unwrap_or_default()),
        Layout::Fixed(_) | Layout::Name | Layout::Bytes => return Err(wrong()),
    };
    Ok(datum)
}

/// The payload of a plain varlena with a short or a long header; `None` where it is compressed, external or damaged.
fn varlena(bytes: &[u8]) -> Option<&[u8]> {
    let first = *bytes.first()?;
    if first & 1 == 1 {
        let len = usize::from(first >> 1);
        return (len == bytes.len()).then(|| bytes.get(1..))?;
    }
    let head = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?);
    (head.trailing_zeros() >= 2 && (head >> 2) as usize == bytes.len()).then(|| bytes.get(4..))?
}
