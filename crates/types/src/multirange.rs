//! Multiranges: sets of ranges that neither overlap nor touch, in order.
//!
//! ```text
//!  payload   0              4         8
//!            ┌──────────────┬─────────┬──────────────────────┬──────────────┬─────┬──────────────────┐
//!            │ multirange   │ number  │ for each range but   │ each range's │ pad │ bounds of each,  │
//!            │ type OID     │ of      │ the first its place  │ flags: u8    │     │ each aligned as  │
//!            │              │ ranges  │ among the bounds: u32│              │     │ the subtype      │
//!            └──────────────┴─────────┴──────────────────────┴──────────────┴─────┴──────────────────┘
//!            a place is an offset where its highest bit is set (each fourth), else the length of the range before
//! ```

use std::cmp::Ordering;
use std::sync::Arc;

use crate::array::{Message, combine};
use crate::ops::get;
use crate::packed::{corrupt, pad};
use crate::range::{Bounds, RangeType};
use crate::scalar::{exactly, is_space};
use crate::{Collation, Datum, SqlError, SqlResult, SqlState, TypeContext, TypeDesc, TypeKind, TypeOps, ValueRef};

/// Every multirange.
pub static OPS: TypeOps = TypeOps {
    text_out,
    text_in,
    binary_out,
    binary_in,
    compare: Some(compare),
    equal: Some(crate::equal_by!(compare)),
    key: Some(key),
    hash: Some(hash),
    own_key: false,
};

const OFFSET_BIT: u32 = 0x8000_0000;
const OFFSET_STRIDE: usize = 4;
const HEADER_SIZE: usize = 8;

/// What a multirange type is made of.
fn range_of(cx: &TypeContext<'_>, ty: &TypeDesc) -> SqlResult<(Arc<TypeDesc>, RangeType)> {
    let TypeKind::Multirange { range } = ty.kind else {
        return Err(SqlError::internal(format_args!("{} is no multirange type", ty.name)));
    };
    let desc = cx.types.type_desc(range)?;
    let range = RangeType::of(cx, &desc)?;
    Ok((desc, range))
}

/// A multirange type, for taking values apart and making them.
#[derive(Clone, Debug)]
pub struct MultirangeType {
    ty: TypeDesc,
    range: RangeType,
}

impl MultirangeType {
    /// Of a multirange type's description.
    pub fn of(cx: &TypeContext<'_>, ty: &TypeDesc) -> SqlResult<Self> {
        Ok(MultirangeType { ty: ty.clone(), range: range_of(cx, ty)?.1 })
    }

    /// The type of its ranges.
    pub fn range(&self) -> &RangeType {
        &self.range
    }

    /// A payload's ranges, in order, none empty.
    pub fn parse<'a>(&self, payload: &'a [u8]) -> SqlResult<Vec<Bounds<'a>>> {
        Ok(parse(&self.range, payload)?.into_iter().map(|(bounds, _)| bounds).collect())
    }

    /// The payload of the multirange of any ranges, given as ranges' payloads.
    pub fn build(&self, cx: &TypeContext<'_>, ranges: Vec<Vec<u8>>) -> SqlResult<Vec<u8>> {
        build(cx, &self.ty, &self.range, ranges)
    }
}

/// The range type that a payload's members are of; the payload says it where the type does not (a domain, a support
/// function of an index).
fn range_of_stored(cx: &TypeContext<'_>, ty: &TypeDesc, coll: &Collation, payload: &[u8]) -> SqlResult<RangeType> {
    let range = match ty.kind {
        TypeKind::Multirange { .. } => range_of(cx, ty)?.1,
        _ => range_of(cx, &*cx.types.type_desc(crate::range::stored_type(payload)?)?)?.1,
    };
    Ok(range.in_mode(coll))
}

/// The ranges of a payload, with their flags.
fn parse<'a>(range: &RangeType, payload: &'a [u8]) -> SqlResult<Vec<(Bounds<'a>, u8)>> {
    let malformed = || corrupt("multirange");
    let word = |at: usize| payload.get(at..at + 4).ok_or_else(malformed).and_then(exactly::<4>).map(u32::from_le_bytes);
    let count = word(4)? as usize;
    if count == 0 {
        return Ok(Vec::new());
    }
    // Each range has a byte of flags at least.
    if count > payload.len() {
        return Err(malformed());
    }
    let flags_at = HEADER_SIZE + (count - 1) * 4;
    let flags = payload.get(flags_at..flags_at + count).ok_or_else(malformed)?;
    let begin = range.part().align.up(flags_at + count + 4) - 4;
    let mut ranges = Vec::with_capacity(count);
    let mut offset = 0u32;
    for (at, flags) in flags.iter().enumerate() {
        if at > 0 {
            let place = word(HEADER_SIZE + (at - 1) * 4)?;
            offset = if place & OFFSET_BIT != 0 {
                place & !OFFSET_BIT
            } else {
                offset.checked_add(place).ok_or_else(malformed)?
            };
        }
        // Bounds are aligned as they were in a range of their own, where four bytes come before them.
        let bounds = payload.get(begin + offset as usize - 4..).ok_or_else(malformed)?;
        ranges.push((range.parse_bounds(bounds, &mut 4, *flags)?, *flags));
    }
    Ok(ranges)
}

/// `make_multirange`: sorts the ranges, drops empty ones and joins those that overlap or touch.
fn build(cx: &TypeContext<'_>, ty: &TypeDesc, range: &RangeType, ranges: Vec<Vec<u8>>) -> SqlResult<Vec<u8>> {
    let mut keyed = Vec::with_capacity(ranges.len());
    for member in ranges {
        let mut key = Vec::new();
        range.write_key(cx, &range.parse(&member)?, &mut key)?;
        keyed.push((key, member));
    }
    keyed.sort();
    let mut merged: Vec<Vec<u8>> = Vec::new();
    for (_, next) in keyed {
        let Some((next_lower, next_upper)) = range.parse(&next)? else { continue };
        let joined = match merged.last() {
            None => None,
            Some(last) => {
                let Some((lower, upper)) = range.parse(last)? else { continue };
                // Touching: the same value, in exactly one of the two. Beyond it there is a gap.
                let order = range.compare_bounds(cx, (&upper, false), (&next_lower, true))?;
                let touches = match (&upper.value, &next_lower.value) {
                    (Some(x), Some(y)) => {
                        upper.inclusive != next_lower.inclusive && range.compare_values(cx, x, y)?.is_eq()
                    }
                    _ => false,
                };
                if order.is_lt() && !touches {
                    None
                } else {
                    let greater = range.compare_bounds(cx, (&next_upper, false), (&upper, false))?.is_gt();
                    let end = if greater { next_upper } else { upper };
                    Some(range.build(cx, &Some((lower, end)))?)
                }
            }
        };
        match (joined, merged.last_mut()) {
            (Some(joined), Some(last)) => *last = joined,
            _ => merged.push(next),
        }
    }
    let count = merged.len();
    let mut out = ty.oid.0.to_le_bytes().to_vec();
    out.extend_from_slice(&(count as u32).to_le_bytes());
    if count == 0 {
        return Ok(out);
    }
    let mut bodies: Vec<u8> = Vec::new();
    let mut flags = Vec::with_capacity(count);
    let mut before = 0u32;
    let align = range.part().align;
    for (at, member) in merged.iter().enumerate() {
        let (flag, rest) = member.split_last().ok_or_else(|| corrupt("range"))?;
        flags.push(*flag);
        let offset = bodies.len() as u32;
        if at > 0 {
            let place = if at % OFFSET_STRIDE == 0 { offset | OFFSET_BIT } else { offset - before };
            out.extend_from_slice(&place.to_le_bytes());
        }
        before = offset;
        bodies.extend_from_slice(rest.get(4..).unwrap_or_default());
        bodies.resize(align.up(bodies.len()), 0);
    }
    out.extend_from_slice(&flags);
    pad(&mut out, 0, align);
    out.extend_from_slice(&bodies);
    Ok(out)
}

fn text_out(cx: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    let (_, range) = range_of(cx, ty)?;
    out.push(b'{');
    for (at, (bounds, _)) in parse(&range, get::bytes(ty, v)?)?.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        range.write_text(cx, bounds, out)?;
    }
    out.push(b'}');
    Ok(())
}

/// Where the range that starts a text ends, quotes and escapes passed over; `None` where it does not end.
fn range_end(text: &[u8]) -> Option<usize> {
    let mut in_quotes = false;
    let mut at = 0;
    loop {
        match text.get(at)? {
            b'\\' => at += 1,
            b'"' if in_quotes && text.get(at + 1) == Some(&b'"') => at += 1,
            b'"' => in_quotes = !in_quotes,
            b']' | b')' if !in_quotes => return Some(at + 1),
            _ => {}
        }
        at += 1;
    }
}

fn text_in(cx: &TypeContext<'_>, ty: &TypeDesc, text: &[u8], typmod: i32) -> SqlResult<Datum> {
    let (desc, range) = range_of(cx, ty)?;
    let malformed = |detail: &str| {
        SqlError::new(
            SqlState::InvalidTextRepresentation,
            format!("malformed multirange literal: \"{}\"", String::from_utf8_lossy(text)),
        )
        .detail(detail)
    };
    let skip_space = |text: &'_ [u8]| text.iter().take_while(|b| is_space(**b)).count();
    let end = || malformed("Unexpected end of input.");
    let mut rest = text.get(skip_space(text)..).unwrap_or_default();
    rest = rest.strip_prefix(b"{").ok_or_else(|| malformed("Missing left brace."))?;
    let mut ranges = Vec::new();
    let mut seen = false;
    loop {
        rest = rest.get(skip_space(rest)..).unwrap_or_default();
        match rest {
            [] => return Err(end()),
            [b'[' | b'(', ..] => {
                let length = range_end(rest).ok_or_else(end)?;
                let (member, tail) = rest.split_at_checked(length).ok_or_else(end)?;
                let member = crate::text_in(cx, &desc, member, typmod)?;
                ranges.push(member.as_bytes().unwrap_or_default().to_vec());
                rest = tail;
            }
            [b'}', tail @ ..] if !seen => {
                rest = tail;
                break;
            }
            _ if rest.get(..5).is_some_and(|word| word.eq_ignore_ascii_case(b"empty")) => {
                rest = rest.get(5..).unwrap_or_default();
            }
            _ => return Err(malformed("Expected range start.")),
        }
        seen = true;
        rest = rest.get(skip_space(rest)..).unwrap_or_default();
        match rest {
            [] => return Err(end()),
            [b',', tail @ ..] => rest = tail,
            [b'}', tail @ ..] => {
                rest = tail;
                break;
            }
            _ => return Err(malformed("Expected comma or end of multirange.")),
        }
    }
    if !rest.iter().all(|b| is_space(*b)) {
        return Err(malformed("Junk after closing right brace."));
    }
    Ok(Datum::bytes(build(cx, ty, &range, ranges)?))
}

fn binary_out(cx: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    let (_, range) = range_of(cx, ty)?;
    let ranges = parse(&range, get::bytes(ty, v)?)?;
    out.extend_from_slice(&(ranges.len() as u32).to_be_bytes());
    for (bounds, _) in &ranges {
        let mut member = Vec::new();
        range.write_binary(cx, bounds, &mut member)?;
        out.extend_from_slice(&(member.len() as u32).to_be_bytes());
        out.extend_from_slice(&member);
    }
    Ok(())
}

fn binary_in(cx: &TypeContext<'_>, ty: &TypeDesc, bytes: &[u8], typmod: i32) -> SqlResult<Datum> {
    let (_, range) = range_of(cx, ty)?;
    let mut message = Message(bytes);
    let count = message.i32()? as u32;
    let mut ranges = Vec::new();
    for _ in 0..count {
        let length = message.i32()? as u32;
        ranges.push(range.read_binary(cx, message.take(length as usize)?, typmod)?);
    }
    message.end()?;
    Ok(Datum::bytes(build(cx, ty, &range, ranges)?))
}

/// `multirange_cmp`: range by range; the one that ends first is less.
pub fn compare(
    cx: &TypeContext<'_>,
    ty: &TypeDesc,
    coll: &Collation,
    a: ValueRef<'_>,
    b: ValueRef<'_>,
) -> SqlResult<Ordering> {
    let range = range_of_stored(cx, ty, coll, get::bytes(ty, a)?)?;
    let (a, b) = (parse(&range, get::bytes(ty, a)?)?, parse(&range, get::bytes(ty, b)?)?);
    for ((x, _), (y, _)) in a.iter().zip(&b) {
        let order = range.compare(cx, x, y)?;
        if order.is_ne() {
            return Ok(order);
        }
    }
    Ok(a.len().cmp(&b.len()))
}

fn key(cx: &TypeContext<'_>, ty: &TypeDesc, coll: &Collation, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    let range = range_of_stored(cx, ty, coll, get::bytes(ty, v)?)?;
    for (bounds, _) in parse(&range, get::bytes(ty, v)?)? {
        out.push(1);
        range.write_key(cx, &bounds, out)?;
    }
    out.push(0);
    Ok(())
}

/// `hash_multirange_extended`.
fn hash(cx: &TypeContext<'_>, ty: &TypeDesc, coll: &Collation, v: ValueRef<'_>, seed: u64) -> SqlResult<u64> {
    let range = range_of_stored(cx, ty, coll, get::bytes(ty, v)?)?;
    let mut result = 1;
    for (bounds, flags) in parse(&range, get::bytes(ty, v)?)? {
        result = combine(result, range.hash(cx, &bounds, flags, seed)?);
    }
    Ok(result)
}
