//! `bytea`.

use std::cmp::Ordering;

use crate::ops::get;
use crate::scalar::uuid::write_hex;
use crate::settings::ByteaOutput;
use crate::{Collation, Datum, SqlError, SqlResult, SqlState, TypeContext, TypeDesc, TypeOps, ValueRef};

/// `bytea`.
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

fn text_out(cx: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    let bytes = get::bytes(ty, v)?;
    match cx.settings.bytea_output {
        ByteaOutput::Hex => {
            out.extend_from_slice(b"\\x");
            write_hex(bytes, out);
        }
        ByteaOutput::Escape => {
            for b in bytes {
                match b {
                    b'\\' => out.extend_from_slice(b"\\\\"),
                    0x20..=0x7e => out.push(*b),
                    _ => out.extend_from_slice(format!("\\{b:03o}").as_bytes()),
                }
            }
        }
    }
    Ok(())
}

/// The hexadecimal form after its `\x`, as `hex_decode` reads it: white space between bytes.
pub fn parse_hex(text: &[u8]) -> SqlResult<Vec<u8>> {
    let digit = |b: u8, rest: &[u8]| {
        char::from(b).to_digit(16).map(|d| d as u8).ok_or_else(|| {
            // The message shows the whole character.
            let len = match b {
                0xC0..=0xDF => 2,
                0xE0..=0xEF => 3,
                0xF0..=0xF7 => 4,
                _ => 1,
            };
            let shown: Vec<u8> = rest.iter().copied().take(len).collect();
            SqlError::new(
                SqlState::InvalidParameterValue,
                format!("invalid hexadecimal digit: \"{}\"", String::from_utf8_lossy(&shown)),
            )
        })
    };
    let mut bytes = Vec::with_capacity(text.len() / 2);
    let mut rest = text;
    while let [high, tail @ ..] = rest {
        if matches!(high, b' ' | b'\n' | b'\t' | b'\r') {
            rest = tail;
            continue;
        }
        let upper = digit(*high, rest)?;
        let [low, after @ ..] = tail else {
            return Err(SqlError::new(
                SqlState::InvalidParameterValue,
                "invalid hexadecimal data: odd number of digits",
            ));
        };
        bytes.push(upper << 4 | digit(*low, tail)?);
        rest = after;
    }
    Ok(bytes)
}

fn text_in(_: &TypeContext<'_>, _: &TypeDesc, text: &[u8], _: i32) -> SqlResult<Datum> {
    if let Some(hex) = text.strip_prefix(b"\\x") {
        return parse_hex(hex).map(Datum::bytes);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    loop {
        match rest {
            [] => return Ok(Datum::bytes(bytes)),
            [b'\\', b'\\', tail @ ..] => {
                bytes.push(b'\\');
                rest = tail;
            }
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', tail @ ..] => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = tail;
            }
            [b'\\', ..] => {
                return Err(SqlError::new(SqlState::InvalidTextRepresentation, "invalid input syntax for type bytea"));
            }
            [b, tail @ ..] => {
                bytes.push(*b);
                rest = tail;
            }
        }
    }
}

fn binary_out(_: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    out.extend_from_slice(get::bytes(ty, v)?);
    Ok(())
}

fn binary_in(_: &TypeContext<'_>, _: &TypeDesc, bytes: &[u8], _: i32) -> SqlResult<Datum> {
    Ok(Datum::bytes(bytes))
}

/// `byteacmp`.
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
    crate::key::bytes(get::bytes(ty, v)?, out);
    Ok(())
}

fn hash(_: &TypeContext<'_>, ty: &TypeDesc, _: &Collation, v: ValueRef<'_>, seed: u64) -> SqlResult<u64> {
    Ok(crate::hash::bytes_extended(get::bytes(ty, v)?, seed))
}
