//! The numbers that name things: `oid`, `xid`, `cid`, `xid8`, `pg_lsn`, `tid`.

use std::cmp::Ordering;

use stegodon_format::ids::{BlockNumber, Lsn, OffsetNumber, Tid};
use stegodon_format::version::Version;

use crate::ops::get;
use crate::scalar::int::{IntError, write_unsigned};
use crate::scalar::{exactly, invalid_syntax, is_space};
use crate::{Collation, Datum, SqlError, SqlResult, TypeContext, TypeDesc, TypeOps, ValueRef, hash, key};

/// `oid`.
pub static OID: TypeOps = TypeOps {
    text_out: out32,
    text_in: in32,
    binary_out: send32,
    binary_in: recv32,
    compare: Some(compare32),
    equal: Some(crate::equal_by!(compare32)),
    key: Some(key32),
    hash: Some(hash32),
    own_key: true,
};

/// `xid` and `cid`: equality only.
pub static XID: TypeOps = TypeOps { text_in: xid_in, compare: None, ..OID };

/// `xid8`.
pub static XID8: TypeOps = TypeOps {
    text_out: out64,
    text_in: in64,
    binary_out: send64,
    binary_in: recv64,
    compare: Some(compare64),
    equal: Some(crate::equal_by!(compare64)),
    key: Some(key64),
    hash: Some(hash64),
    own_key: true,
};

/// `pg_lsn`.
pub static LSN: TypeOps = TypeOps { text_out: lsn_out, text_in: lsn_in, ..XID8 };

/// `tid`. Its bytes do not order as it does.
pub static TID: TypeOps = TypeOps {
    text_out: tid_out,
    text_in: tid_in,
    binary_out: tid_send,
    binary_in: tid_recv,
    compare: Some(compare_tid),
    equal: Some(crate::equal_by!(compare_tid)),
    key: Some(key_tid),
    hash: Some(hash_tid),
    own_key: false,
};

/// C's `strtoul`: white space, a sign, digits; base 0 knows `0x` and octal. The number modulo 2^64 or an overflow, and
/// what follows; `None` where there is no digit.
fn strtoul(text: &[u8], any_base: bool) -> Option<(Result<u64, IntError>, &[u8])> {
    let start = text.iter().position(|b| !is_space(*b))?;
    let mut rest = text.get(start..)?;
    let mut negative = false;
    if let [sign @ (b'-' | b'+'), tail @ ..] = rest {
        negative = *sign == b'-';
        rest = tail;
    }
    let radix = match rest {
        [b'0', b'x' | b'X', digit, ..] if any_base && digit.is_ascii_hexdigit() => {
            rest = rest.get(2..)?;
            16
        }
        [b'0', ..] if any_base => 8,
        _ => 10,
    };
    let mut value = Some(0u64);
    let mut digits = 0;
    while let [b, tail @ ..] = rest
        && let Some(d) = char::from(*b).to_digit(radix)
    {
        value = value.and_then(|v| v.checked_mul(u64::from(radix))).and_then(|v| v.checked_add(u64::from(d)));
        digits += 1;
        rest = tail;
    }
    if digits == 0 {
        return None;
    }
    let value = value.map(|v| if negative { v.wrapping_neg() } else { v }).ok_or(IntError::Range);
    Some((value, rest))
}

/// A number of 32 bits, written as an unsigned one or as a negative one of 32 bits.
fn narrow(value: Result<u64, IntError>) -> Result<u32, IntError> {
    let value = value?;
    let low = value as u32;
    if value == u64::from(low) || value == i64::from(low as i32) as u64 { Ok(low) } else { Err(IntError::Range) }
}

/// The number at the start of a text, as an element of an `oidvector`, and what follows it.
pub(crate) fn parse_oid_prefix(version: Version, text: &[u8]) -> SqlResult<(u32, &[u8])> {
    let (value, rest) = strtoul(text, version >= Version::V16).ok_or_else(|| invalid_syntax("oid", text))?;
    Ok((narrow(value).map_err(|e| e.of("oid", text))?, rest))
}

/// A whole text as a number.
fn parse_whole(text: &[u8], any_base: bool) -> Result<u64, IntError> {
    let (value, rest) = strtoul(text, any_base).ok_or(IntError::Syntax)?;
    let value = value?;
    if rest.iter().all(|b| is_space(*b)) { Ok(value) } else { Err(IntError::Syntax) }
}

/// Reads an OID as `version` does: before 16 in decimal only.
pub(crate) fn parse_oid(version: Version, text: &[u8]) -> SqlResult<u32> {
    narrow(parse_whole(text, version >= Version::V16)).map_err(|e| e.of("oid", text))
}

/// What is not a number to 16 was some number to 15, which took what C's `strtoul` left it.
fn lenient_before_16(cx: &TypeContext<'_>, e: IntError, type_name: &str, text: &[u8]) -> SqlError {
    match cx.settings.version {
        Version::V15 => SqlError::unsupported(format!("a text that is no {type_name}, in a directory of version 15")),
        _ => e.of(type_name, text),
    }
}

fn out32(_: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    write_unsigned(u64::from(get::u32(ty, v)?), out);
    Ok(())
}

fn in32(cx: &TypeContext<'_>, _: &TypeDesc, text: &[u8], _: i32) -> SqlResult<Datum> {
    parse_oid(cx.settings.version, text).map(Datum::UInt32)
}

fn xid_in(cx: &TypeContext<'_>, ty: &TypeDesc, text: &[u8], _: i32) -> SqlResult<Datum> {
    let value = narrow(parse_whole(text, true));
    value.map(Datum::UInt32).map_err(|e| lenient_before_16(cx, e, &ty.name, text))
}

pub(crate) fn send32(_: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    out.extend_from_slice(&get::u32(ty, v)?.to_be_bytes());
    Ok(())
}

pub(crate) fn recv32(_: &TypeContext<'_>, _: &TypeDesc, bytes: &[u8], _: i32) -> SqlResult<Datum> {
    exactly(bytes).map(|b| Datum::UInt32(u32::from_be_bytes(b)))
}

/// `btoidcmp`.
pub fn compare32(
    _: &TypeContext<'_>,
    ty: &TypeDesc,
    _: &Collation,
    a: ValueRef<'_>,
    b: ValueRef<'_>,
) -> SqlResult<Ordering> {
    Ok(get::u32(ty, a)?.cmp(&get::u32(ty, b)?))
}

fn key32(_: &TypeContext<'_>, ty: &TypeDesc, _: &Collation, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    key::u32(get::u32(ty, v)?, out);
    Ok(())
}

fn hash32(_: &TypeContext<'_>, ty: &TypeDesc, _: &Collation, v: ValueRef<'_>, seed: u64) -> SqlResult<u64> {
    Ok(hash::uint32_extended(get::u32(ty, v)?, seed))
}

fn out64(_: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    write_unsigned(get::u64(ty, v)?, out);
    Ok(())
}

fn in64(cx: &TypeContext<'_>, ty: &TypeDesc, text: &[u8], _: i32) -> SqlResult<Datum> {
    parse_whole(text, true).map(Datum::UInt64).map_err(|e| lenient_before_16(cx, e, &ty.name, text))
}

fn send64(_: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    out.extend_from_slice(&get::u64(ty, v)?.to_be_bytes());
    Ok(())
}

fn recv64(_: &TypeContext<'_>, _: &TypeDesc, bytes: &[u8], _: i32) -> SqlResult<Datum> {
    exactly(bytes).map(|b| Datum::UInt64(u64::from_be_bytes(b)))
}

/// `xid8cmp` and `pg_lsn_cmp`.
pub fn compare64(
    _: &TypeContext<'_>,
    ty: &TypeDesc,
    _: &Collation,
    a: ValueRef<'_>,
    b: ValueRef<'_>,
) -> SqlResult<Ordering> {
    Ok(get::u64(ty, a)?.cmp(&get::u64(ty, b)?))
}

fn key64(_: &TypeContext<'_>, ty: &TypeDesc, _: &Collation, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    key::u64(get::u64(ty, v)?, out);
    Ok(())
}

fn hash64(_: &TypeContext<'_>, ty: &TypeDesc, _: &Collation, v: ValueRef<'_>, seed: u64) -> SqlResult<u64> {
    Ok(hash::uint32_extended(hash::fold_i64(get::u64(ty, v)? as i64), seed))
}

fn lsn_out(_: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    out.extend_from_slice(Lsn(get::u64(ty, v)?).to_string().as_bytes());
    Ok(())
}

fn lsn_in(_: &TypeContext<'_>, _: &TypeDesc, text: &[u8], _: i32) -> SqlResult<Datum> {
    let half = |part: &str| {
        let valid = (1..=8).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_hexdigit());
        valid.then(|| u64::from_str_radix(part, 16).ok()).flatten()
    };
    std::str::from_utf8(text)
        .ok()
        .and_then(|t| t.split_once('/'))
        .and_then(|(high, low)| Some(half(high)? << 32 | half(low)?))
        .map(Datum::UInt64)
        .ok_or_else(|| invalid_syntax("pg_lsn", text))
}

fn tid(ty: &TypeDesc, v: ValueRef<'_>) -> SqlResult<Tid> {
    exactly::<6>(get::bytes(ty, v)?).map(Tid::from_bytes).map_err(|_| crate::ops::wrong_layout(ty))
}

fn tid_out(_: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    out.extend_from_slice(tid(ty, v)?.to_string().as_bytes());
    Ok(())
}

/// `tidin` looks for an opening parenthesis and a comma, and does not look behind the closing one.
fn parse_tid(text: &[u8]) -> Option<Tid> {
    let mut parts = Vec::new();
    for (at, b) in text.iter().enumerate() {
        if parts.len() == 2 || *b == b')' {
            break;
        }
        if *b == b',' || (*b == b'(' && parts.is_empty()) {
            parts.push(text.get(at + 1..)?);
        }
    }
    let [block, offset] = parts.get(..)? else { return None };
    let (block, rest) = strtoul(block, false)?;
    if rest.first() != Some(&b',') {
        return None;
    }
    let block = narrow(block).ok()?;
    let (offset, rest) = strtoul(offset, false)?;
    if rest.first() != Some(&b')') {
        return None;
    }
    Some(Tid::new(BlockNumber(block), OffsetNumber(u16::try_from(offset.ok()?).ok()?)))
}

fn tid_in(_: &TypeContext<'_>, _: &TypeDesc, text: &[u8], _: i32) -> SqlResult<Datum> {
    parse_tid(text).map(|tid| Datum::bytes(tid.to_bytes())).ok_or_else(|| invalid_syntax("tid", text))
}

fn tid_send(_: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    let tid = tid(ty, v)?;
    out.extend_from_slice(&tid.block.0.to_be_bytes());
    out.extend_from_slice(&tid.offset.0.to_be_bytes());
    Ok(())
}

fn tid_recv(_: &TypeContext<'_>, _: &TypeDesc, bytes: &[u8], _: i32) -> SqlResult<Datum> {
    let [a, b, c, d, e, f] = exactly::<6>(bytes)?;
    let block = BlockNumber(u32::from_be_bytes([a, b, c, d]));
    Ok(Datum::bytes(Tid::new(block, OffsetNumber(u16::from_be_bytes([e, f]))).to_bytes()))
}

/// `bttidcmp`.
pub fn compare_tid(
    _: &TypeContext<'_>,
    ty: &TypeDesc,
    _: &Collation,
    a: ValueRef<'_>,
    b: ValueRef<'_>,
) -> SqlResult<Ordering> {
    Ok(tid(ty, a)?.cmp(&tid(ty, b)?))
}

fn key_tid(cx: &TypeContext<'_>, ty: &TypeDesc, _: &Collation, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    tid_send(cx, ty, v, out)
}

fn hash_tid(_: &TypeContext<'_>, ty: &TypeDesc, _: &Collation, v: ValueRef<'_>, seed: u64) -> SqlResult<u64> {
    Ok(hash::bytes_extended(get::bytes(ty, v)?, seed))
}
