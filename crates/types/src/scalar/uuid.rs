//! `uuid`: 16 bytes.

use std::cmp::Ordering;

use crate::ops::get;
use crate::scalar::{exactly, invalid_syntax};
use crate::{Collation, Datum, SqlResult, TypeContext, TypeDesc, TypeOps, ValueRef};

/// `uuid`.
pub static OPS: TypeOps = TypeOps {
    text_out,
    text_in,
    binary_out,
    binary_in,
    compare: Some(compare),
    equal: Some(crate::equal_by!(compare)),
    key: Some(key),
    hash: Some(hash),
    own_key: true,
};

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends two hexadecimal digits a byte.
pub(crate) fn write_hex(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(bytes.len() * 2);
    for b in bytes {
        for nibble in [b >> 4, b & 15] {
            out.push(HEX.get(usize::from(nibble)).copied().unwrap_or(b'0'));
        }
    }
}

fn text_out(_: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    for (n, b) in get::bytes(ty, v)?.iter().enumerate() {
        if matches!(n, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        write_hex(&[*b], out);
    }
    Ok(())
}

/// Sixteen bytes in hexadecimal, a hyphen allowed after each second one, braces around them.
fn parse(text: &[u8]) -> Option<[u8; 16]> {
    let (mut rest, braces) = match text {
        [b'{', tail @ ..] => (tail, true),
        _ => (text, false),
    };
    let mut uuid = [0; 16];
    for (n, byte) in uuid.iter_mut().enumerate() {
        let [high, low, tail @ ..] = rest else { return None };
        *byte = (char::from(*high).to_digit(16)? << 4 | char::from(*low).to_digit(16)?) as u8;
        rest = match tail {
            [b'-', after @ ..] if n % 2 == 1 && n < 15 => after,
            _ => tail,
        };
    }
    if braces {
        rest = rest.strip_prefix(b"}")?;
    }
    rest.is_empty().then_some(uuid)
}

fn text_in(_: &TypeContext<'_>, _: &TypeDesc, text: &[u8], _: i32) -> SqlResult<Datum> {
    parse(text).map(Datum::bytes).ok_or_else(|| invalid_syntax("uuid", text))
}

fn binary_out(_: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    out.extend_from_slice(get::bytes(ty, v)?);
    Ok(())
}

fn binary_in(_: &TypeContext<'_>, _: &TypeDesc, bytes: &[u8], _: i32) -> SqlResult<Datum> {
    exactly::<16>(bytes).map(Datum::bytes)
}

/// `uuid_cmp`.
pub fn compare(
    _: &TypeContext<'_>,
    ty: &TypeDesc,
    _: &Collation,
    a: ValueRef<'_>,
    b: ValueRef<'_>,
) -> SqlResult<Ordering> {
    Ok(get::bytes(ty, a)?.cmp(get::bytes(ty, b)?))
}

fn key(_: &TypeContext<'_>, ty: &TypeDesc, _: &Collation, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    out.extend_from_slice(get::bytes(ty, v)?);
    Ok(())
}

fn hash(_: &TypeContext<'_>, ty: &TypeDesc, _: &Collation, v: ValueRef<'_>, seed: u64) -> SqlResult<u64> {
    Ok(crate::hash::bytes_extended(get::bytes(ty, v)?, seed))
}
