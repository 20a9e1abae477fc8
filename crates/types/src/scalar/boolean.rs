//! `bool`.

use std::cmp::Ordering;

use crate::ops::get;
use crate::scalar::{exactly, invalid_syntax, trim};
use crate::{Collation, Datum, SqlResult, TypeContext, TypeDesc, TypeOps, ValueRef};

/// `bool`.
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

fn text_out(_: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    out.push(if get::bool(ty, v)? { b't' } else { b'f' });
    Ok(())
}

/// What `boolin` accepts, white space around it already gone: unique prefixes of the words, in any case.
pub fn parse(text: &[u8]) -> Option<bool> {
    let is_prefix = |word: &str| {
        !text.is_empty() && word.len() >= text.len() && {
            word.as_bytes().iter().zip(text).all(|(w, t)| *w == t.to_ascii_lowercase())
        }
    };
    match text.first()?.to_ascii_lowercase() {
        b't' => is_prefix("true").then_some(true),
        b'f' => is_prefix("false").then_some(false),
        b'y' => is_prefix("yes").then_some(true),
        b'n' => is_prefix("no").then_some(false),
        // "o" alone is neither.
        b'o' if text.len() > 1 && is_prefix("on") => Some(true),
        b'o' if text.len() > 1 && is_prefix("off") => Some(false),
        b'1' if text.len() == 1 => Some(true),
        b'0' if text.len() == 1 => Some(false),
        _ => None,
    }
}

fn text_in(_: &TypeContext<'_>, _: &TypeDesc, text: &[u8], _: i32) -> SqlResult<Datum> {
    parse(trim(text)).map(Datum::Bool).ok_or_else(|| invalid_syntax("boolean", text))
}

fn binary_out(_: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    out.push(u8::from(get::bool(ty, v)?));
    Ok(())
}

fn binary_in(_: &TypeContext<'_>, _: &TypeDesc, bytes: &[u8], _: i32) -> SqlResult<Datum> {
    exactly::<1>(bytes).map(|[b]| Datum::Bool(b != 0))
}

/// `btboolcmp`.
pub fn compare(
    _: &TypeContext<'_>,
    ty: &TypeDesc,
    _: &Collation,
    a: ValueRef<'_>,
    b: ValueRef<'_>,
) -> SqlResult<Ordering> {
    Ok(get::bool(ty, a)?.cmp(&get::bool(ty, b)?))
}

fn key(_: &TypeContext<'_>, ty: &TypeDesc, _: &Collation, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    out.push(u8::from(get::bool(ty, v)?));
    Ok(())
}

fn hash(_: &TypeContext<'_>, ty: &TypeDesc, _: &Collation, v: ValueRef<'_>, seed: u64) -> SqlResult<u64> {
    Ok(crate::hash::uint32_extended(u32::from(get::bool(ty, v)?), seed))
}
