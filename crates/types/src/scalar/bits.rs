//! `bit` and `varbit`.
//!
//! ```text
//!  payload   number of bits: i32, little-endian; the bits, first bit highest, the last byte padded with zeros
//! ```

use std::cmp::Ordering;

use crate::ops::get;
use crate::scalar::{exactly, message_too_short};
use crate::{Collation, Datum, SqlError, SqlResult, SqlState, TypeContext, TypeDesc, TypeOps, ValueRef, key};

/// `bit`.
pub static BIT: TypeOps = TypeOps {
    text_out,
    text_in: bit_in,
    binary_out,
    binary_in: bit_recv,
    compare: Some(compare),
    equal: Some(crate::equal_by!(compare)),
    key: Some(key),
    hash: None,
    own_key: false,
};

/// `varbit`.
pub static VARBIT: TypeOps = TypeOps { text_in: varbit_in, binary_in: varbit_recv, ..BIT };

/// The number of bits of a payload, and the bytes that hold them.
pub fn parts(payload: &[u8]) -> SqlResult<(usize, &[u8])> {
    let corrupt = || SqlError::new(SqlState::DataCorrupted, "a stored bit string is malformed");
    let (head, bytes) = payload.split_at_checked(4).ok_or_else(corrupt)?;
    let count = usize::try_from(i32::from_le_bytes(exactly(head)?)).map_err(|_| corrupt())?;
    if bytes.len() != count.div_ceil(8) {
        return Err(corrupt());
    }
    Ok((count, bytes))
}

/// The payload of so many bits.
pub fn payload(count: usize, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(4 + bytes.len());
    out.extend_from_slice(&(count as i32).to_le_bytes());
    out.extend_from_slice(bytes);
    // Bits beyond the count are zero.
    if !count.is_multiple_of(8)
        && let Some(last) = out.last_mut()
    {
        *last &= 0xFFu8 << (8 - count % 8);
    }
    out
}

fn text_out(_: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    let (count, bytes) = parts(get::bytes(ty, v)?)?;
    out.extend(bytes.iter().flat_map(|b| (0..8).map(move |n| b'0' + (b >> (7 - n) & 1))).take(count));
    Ok(())
}

fn bad_digit(rest: &[u8], what: &str) -> SqlError {
    let text = String::from_utf8_lossy(rest);
    let shown: String = text.chars().take(1).collect();
    SqlError::new(SqlState::InvalidTextRepresentation, format!("\"{shown}\" is not a valid {what} digit"))
}

/// `b101`, `x1F` or `101`; `fits` checks the number of bits before the digits are looked at.
fn parse(text: &[u8], fits: impl Fn(usize) -> SqlResult<()>) -> SqlResult<Datum> {
    let (hex, digits) = match text {
        [b'b' | b'B', tail @ ..] => (false, tail),
        [b'x' | b'X', tail @ ..] => (true, tail),
        _ => (false, text),
    };
    let count = digits.len() * if hex { 4 } else { 1 };
    if i32::try_from(count).is_err() {
        return Err(SqlError::new(
            SqlState::ProgramLimitExceeded,
            format!("bit string length exceeds the maximum allowed ({})", i32::MAX - 7),
        ));
    }
    fits(count)?;
    let mut bytes = vec![0u8; count.div_ceil(8)];
    for (at, digit) in digits.iter().enumerate() {
        let (bit, value) = if hex {
            let value = char::from(*digit).to_digit(16);
            (at * 4, value.ok_or_else(|| bad_digit(digits.get(at..).unwrap_or_default(), "hexadecimal"))?)
        } else {
            match digit {
                b'0' => (at, 0),
                b'1' => (at, 1),
                _ => return Err(bad_digit(digits.get(at..).unwrap_or_default(), "binary")),
            }
        };
        let width = if hex { 4 } else { 1 };
        if let Some(byte) = bytes.get_mut(bit / 8) {
            *byte |= (value as u8) << (8 - width - bit % 8);
        }
    }
    Ok(Datum::bytes(payload(count, &bytes)))
}

fn check_bit(count: usize, typmod: i32) -> SqlResult<()> {
    if typmod > 0 && count != typmod as usize {
        return Err(SqlError::new(
            SqlState::StringDataLengthMismatch,
            format!("bit string length {count} does not match type bit({typmod})"),
        ));
    }
    Ok(())
}

fn check_varbit(count: usize, typmod: i32) -> SqlResult<()> {
    if typmod > 0 && count > typmod as usize {
        return Err(SqlError::new(
            SqlState::StringDataRightTruncation,
            format!("bit string too long for type bit varying({typmod})"),
        ));
    }
    Ok(())
}

fn bit_in(_: &TypeContext<'_>, _: &TypeDesc, text: &[u8], typmod: i32) -> SqlResult<Datum> {
    parse(text, |count| check_bit(count, typmod))
}

fn varbit_in(_: &TypeContext<'_>, _: &TypeDesc, text: &[u8], typmod: i32) -> SqlResult<Datum> {
    parse(text, |count| check_varbit(count, typmod))
}

fn binary_out(_: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    let (count, bytes) = parts(get::bytes(ty, v)?)?;
    out.extend_from_slice(&(count as i32).to_be_bytes());
    out.extend_from_slice(bytes);
    Ok(())
}

fn recv(bytes: &[u8], fits: impl Fn(usize) -> SqlResult<()>) -> SqlResult<Datum> {
    let (head, bits) = bytes.split_at_checked(4).ok_or_else(message_too_short)?;
    let count = i32::from_be_bytes(exactly(head)?);
    if !(0..=i32::MAX - 7).contains(&count) {
        return Err(SqlError::new(SqlState::InvalidBinaryRepresentation, "invalid length in external bit string"));
    }
    let count = count as usize;
    fits(count)?;
    let length = count.div_ceil(8);
    if bits.len() < length {
        return Err(message_too_short());
    }
    if bits.len() > length {
        return Err(SqlError::new(SqlState::InvalidBinaryRepresentation, "incorrect binary data format"));
    }
    Ok(Datum::bytes(payload(count, bits)))
}

fn bit_recv(_: &TypeContext<'_>, _: &TypeDesc, bytes: &[u8], typmod: i32) -> SqlResult<Datum> {
    recv(bytes, |count| check_bit(count, typmod))
}

fn varbit_recv(_: &TypeContext<'_>, _: &TypeDesc, bytes: &[u8], typmod: i32) -> SqlResult<Datum> {
    recv(bytes, |count| check_varbit(count, typmod))
}

/// `bitcmp` and `varbitcmp`: the bytes, then the number of bits.
pub fn compare(
    _: &TypeContext<'_>,
    ty: &TypeDesc,
    _: &Collation,
    a: ValueRef<'_>,
    b: ValueRef<'_>,
) -> SqlResult<Ordering> {
    let (a_count, a_bytes) = parts(get::bytes(ty, a)?)?;
    let (b_count, b_bytes) = parts(get::bytes(ty, b)?)?;
    Ok(a_bytes.cmp(b_bytes).then(a_count.cmp(&b_count)))
}

fn key(_: &TypeContext<'_>, ty: &TypeDesc, _: &Collation, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    let (count, bytes) = parts(get::bytes(ty, v)?)?;
    key::bytes(bytes, out);
    key::u32(count as u32, out);
    Ok(())
}
