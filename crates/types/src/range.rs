//! Ranges over any ordered type.
//!
//! ```text
//!  payload   0              4                                             end - 1
//!            ┌──────────────┬──────────────────────┬──────────────────────┬───────┐
//!            │ range type   │ lower bound, if it   │ upper bound, if it   │ flags │
//!            │ OID          │ is finite            │ is finite            │       │
//!            └──────────────┴──────────────────────┴──────────────────────┴───────┘
//!  flags     01 empty, 02 lower inclusive, 04 upper inclusive, 08 lower infinite, 10 upper infinite
//! ```
//!
//! Bounds lie as columns of a row do. The ranges over integers and dates are discrete: they are stored as `[a,b)`.
//! A range type made by a user is taken to have no canonical function and the default operator class of its subtype;
//! the catalog refuses the others.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::array::{Message, invalid, no_hash, write_counted};
use crate::ops::{get, no_comparison};
use crate::packed::{Item, Part, corrupt, write_quoted};
use crate::record::unquote;
use crate::scalar::{exactly, is_space, message_too_short};
use crate::{
    Collation, Datum, Oid, SqlError, SqlResult, SqlState, TypeContext, TypeDesc, TypeKind, TypeOps, ValueRef,
    hash as hashing, oids,
};

/// Every range.
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

pub(crate) const EMPTY: u8 = 0x01;
pub(crate) const LOWER_INCLUSIVE: u8 = 0x02;
pub(crate) const UPPER_INCLUSIVE: u8 = 0x04;
pub(crate) const LOWER_INFINITE: u8 = 0x08;
pub(crate) const UPPER_INFINITE: u8 = 0x10;

/// One end of a range.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound<'a> {
    /// The value; `None` is infinity.
    pub value: Option<Item<'a>>,
    /// Whether the value itself is in the range.
    pub inclusive: bool,
}

impl Bound<'_> {
    /// No bound.
    pub const INFINITE: Bound<'static> = Bound { value: None, inclusive: false };

    /// A bound by a value.
    pub fn new(value: Datum, inclusive: bool) -> Bound<'static> {
        Bound { value: Some(Item::Owned(value)), inclusive }
    }
}

/// A range; `None` is the empty one.
pub type Bounds<'a> = Option<(Bound<'a>, Bound<'a>)>;

/// What a range type is made of.
#[derive(Clone, Debug)]
pub struct RangeType {
    /// The range type's OID.
    pub oid: Oid,
    /// The bounds' type.
    pub subtype: Arc<TypeDesc>,
    /// The bounds' collation.
    pub collation: Collation,
    part: Part,
}

impl RangeType {
    /// Of a range type's description.
    pub fn of(cx: &TypeContext<'_>, ty: &TypeDesc) -> SqlResult<Self> {
        let TypeKind::Range { subtype, collation } = ty.kind else {
            return Err(SqlError::internal(format_args!("{} is no range type", ty.name)));
        };
        let subtype = cx.types.type_desc(subtype)?;
        let part = Part::of(&subtype)?;
        Ok(RangeType { oid: ty.oid, subtype, collation: cx.types.collation(collation)?, part })
    }

    pub(crate) fn part(&self) -> Part {
        self.part
    }

    /// The same, comparing as the whole is compared.
    pub(crate) fn in_mode(mut self, coll: &Collation) -> Self {
        self.collation = coll.of_part(self.collation);
        self
    }

    /// The order of two bounds' values, which are finite.
    pub(crate) fn compare_values(&self, cx: &TypeContext<'_>, a: &Item<'_>, b: &Item<'_>) -> SqlResult<Ordering> {
        let compare = crate::ops(&self.subtype)?.compare.ok_or_else(|| no_comparison(&self.subtype))?;
        compare(cx, &self.subtype, &self.collation, a.value(), b.value())
    }

    /// `range_cmp_bounds`: the order of two bounds, each a lower or an upper one.
    pub fn compare_bounds(
        &self,
        cx: &TypeContext<'_>,
        (a, a_lower): (&Bound<'_>, bool),
        (b, b_lower): (&Bound<'_>, bool),
    ) -> SqlResult<Ordering> {
        let end = |lower: bool| if lower { Ordering::Less } else { Ordering::Greater };
        let (x, y) = match (&a.value, &b.value) {
            (None, None) if a_lower == b_lower => return Ok(Ordering::Equal),
            (None, _) => return Ok(end(a_lower)),
            (_, None) => return Ok(end(b_lower).reverse()),
            (Some(x), Some(y)) => (x, y),
        };
        let order = self.compare_values(cx, x, y)?;
        if order.is_ne() {
            return Ok(order);
        }
        // How far beyond the value the bound lies: an exclusive lower one just above, an exclusive upper one just below.
        let beyond = |bound: &Bound<'_>, lower: bool| match (bound.inclusive, lower) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => -1,
        };
        Ok(beyond(a, a_lower).cmp(&beyond(b, b_lower)))
    }

    /// `make_range`: the payload of a range with these bounds, canonical where the type is discrete.
    pub fn build(&self, cx: &TypeContext<'_>, bounds: &Bounds<'_>) -> SqlResult<Vec<u8>> {
        let Some((lower, upper)) = bounds else { return Ok(self.empty()) };
        let checked = self.check(cx, lower, upper)?;
        if !checked {
            return Ok(self.empty());
        }
        let (lower, upper) = (self.canonical(lower, true)?, self.canonical(upper, false)?);
        // Moving a bound may leave nothing in between.
        if !self.check(cx, &lower, &upper)? {
            return Ok(self.empty());
        }
        let mut flags = 0;
        let mut out = self.oid.0.to_le_bytes().to_vec();
        for (bound, inclusive, infinite) in
            [(&lower, LOWER_INCLUSIVE, LOWER_INFINITE), (&upper, UPPER_INCLUSIVE, UPPER_INFINITE)]
        {
            match &bound.value {
                None => flags |= infinite,
                Some(value) => {
                    crate::packed::write(&mut out, 0, self.part, value.value(), true)?;
                    if bound.inclusive {
                        flags |= inclusive;
                    }
                }
            }
        }
        out.push(flags);
        Ok(out)
    }

    /// The payload of the empty range.
    pub fn empty(&self) -> Vec<u8> {
        let mut out = self.oid.0.to_le_bytes().to_vec();
        out.push(EMPTY);
        out
    }

    /// Whether anything is between the bounds; `22000` where they are in the wrong order.
    fn check(&self, cx: &TypeContext<'_>, lower: &Bound<'_>, upper: &Bound<'_>) -> SqlResult<bool> {
        let (Some(low), Some(high)) = (&lower.value, &upper.value) else { return Ok(true) };
        match self.compare_values(cx, low, high)? {
            Ordering::Less => Ok(true),
            Ordering::Equal => Ok(lower.inclusive && upper.inclusive),
            Ordering::Greater => Err(SqlError::new(
                SqlState::DataException,
                "range lower bound must be less than or equal to range upper bound",
            )),
        }
    }

    /// The bound in the form that a discrete type stores: a lower one inclusive, an upper one exclusive.
    fn canonical<'b>(&self, bound: &Bound<'b>, lower: bool) -> SqlResult<Bound<'b>> {
        let Some(value) = &bound.value else { return Ok(Bound { value: None, inclusive: false }) };
        if bound.inclusive == lower {
            return Ok(bound.clone());
        }
        let out_of_range = |what: &str, state| SqlError::new(state, format!("{what} out of range"));
        let next = match (self.oid, value.value()) {
            (oids::INT4RANGE, ValueRef::Int32(v)) => v
                .checked_add(1)
                .map(Datum::Int32)
                .ok_or_else(|| out_of_range("integer", SqlState::NumericValueOutOfRange))?,
            (oids::INT8RANGE, ValueRef::Int64(v)) => v
                .checked_add(1)
                .map(Datum::Int64)
                .ok_or_else(|| out_of_range("bigint", SqlState::NumericValueOutOfRange))?,
            // The infinite dates stay; the last date, 5874897-12-31, has none after it.
            (oids::DATERANGE, ValueRef::Int32(i32::MIN | i32::MAX)) => return Ok(bound.clone()),
            (oids::DATERANGE, ValueRef::Int32(v)) if v + 1 < 2_147_483_494 - 2_451_545 => Datum::Int32(v + 1),
            (oids::DATERANGE, ValueRef::Int32(_)) => {
                return Err(out_of_range("date", SqlState::DatetimeFieldOverflow));
            }
            _ => return Ok(bound.clone()),
        };
        Ok(Bound { value: Some(Item::Owned(next)), inclusive: lower })
    }

    /// A payload's bounds.
    pub fn parse<'a>(&self, payload: &'a [u8]) -> SqlResult<Bounds<'a>> {
        let (flags, _) = payload.split_last().ok_or_else(|| corrupt("range"))?;
        if payload.len() < 5 {
            return Err(corrupt("range"));
        }
        self.parse_bounds(payload, &mut 4, *flags)
    }

    /// The bounds that lie in `payload` at `position`.
    pub(crate) fn parse_bounds<'a>(&self, payload: &'a [u8], position: &mut usize, flags: u8) -> SqlResult<Bounds<'a>> {
        if flags & EMPTY != 0 {
            return Ok(None);
        }
        let mut bound = |infinite: u8, inclusive: u8| -> SqlResult<Bound<'a>> {
            if flags & infinite != 0 {
                return Ok(Bound { value: None, inclusive: false });
            }
            let value = crate::packed::read(payload, position, self.part, true)?;
            Ok(Bound { value: Some(value), inclusive: flags & inclusive != 0 })
        };
        let lower = bound(LOWER_INFINITE, LOWER_INCLUSIVE)?;
        Ok(Some((lower, bound(UPPER_INFINITE, UPPER_INCLUSIVE)?)))
    }

    /// `range_cmp`: the empty range first, then by lower and by upper bound.
    pub fn compare(&self, cx: &TypeContext<'_>, a: &Bounds<'_>, b: &Bounds<'_>) -> SqlResult<Ordering> {
        let ((a_lower, a_upper), (b_lower, b_upper)) = match (a, b) {
            (Some(a), Some(b)) => ((&a.0, &a.1), (&b.0, &b.1)),
            _ => return Ok(a.is_some().cmp(&b.is_some())),
        };
        let order = self.compare_bounds(cx, (a_lower, true), (b_lower, true))?;
        if order.is_ne() {
            return Ok(order);
        }
        self.compare_bounds(cx, (a_upper, false), (b_upper, false))
    }

    pub(crate) fn write_text(&self, cx: &TypeContext<'_>, bounds: &Bounds<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
        let Some((lower, upper)) = bounds else {
            out.extend_from_slice(b"empty");
            return Ok(());
        };
        let mut text = Vec::new();
        let mut value = |bound: &Bound<'_>, out: &mut Vec<u8>| -> SqlResult<()> {
            if let Some(value) = &bound.value {
                text.clear();
                crate::text_out(cx, &self.subtype, value.value(), &mut text)?;
                write_quoted(&text, b"()[],", None, out);
            }
            Ok(())
        };
        out.push(if lower.inclusive { b'[' } else { b'(' });
        value(lower, out)?;
        out.push(b',');
        value(upper, out)?;
        out.push(if upper.inclusive { b']' } else { b')' });
        Ok(())
    }

    /// Appends the key: 00 for the empty range; 01, the lower bound, the upper bound. A bound: 00 or 02 where it is
    /// infinite, else 01, the value's key, and where it lies beside the value.
    pub(crate) fn write_key(&self, cx: &TypeContext<'_>, bounds: &Bounds<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
        let Some((lower, upper)) = bounds else {
            out.push(0);
            return Ok(());
        };
        out.push(1);
        let key = crate::ops(&self.subtype)?.key.ok_or_else(|| no_comparison(&self.subtype))?;
        for (bound, infinite, inclusive, exclusive) in [(lower, 0, 0, 1), (upper, 2, 1, 0)] {
            match &bound.value {
                None => out.push(infinite),
                Some(value) => {
                    out.push(1);
                    key(cx, &self.subtype, &self.collation, value.value(), out)?;
                    out.push(if bound.inclusive { inclusive } else { exclusive });
                }
            }
        }
        Ok(())
    }

    /// The hash of one range, its stored flags given.
    pub(crate) fn hash(&self, cx: &TypeContext<'_>, bounds: &Bounds<'_>, flags: u8, seed: u64) -> SqlResult<u64> {
        let hash = crate::ops(&self.subtype)?.hash.ok_or_else(|| no_hash(&self.subtype))?;
        let of = |bound: Option<&Bound<'_>>| match bound.and_then(|b| b.value.as_ref()) {
            None => Ok(0),
            Some(value) => hash(cx, &self.subtype, &self.collation, value.value(), seed),
        };
        let mut result = hashing::uint32_extended(u32::from(flags), seed);
        result ^= of(bounds.as_ref().map(|b| &b.0))?;
        // Both halves are rotated by one, each into the other.
        result = (result << 1 & 0xFFFF_FFFE_FFFF_FFFE) | (result >> 31 & 0x1_0000_0001);
        result ^= of(bounds.as_ref().map(|b| &b.1))?;
        Ok(result)
    }
}

fn text_out(cx: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    let range = RangeType::of(cx, ty)?;
    let bounds = range.parse(get::bytes(ty, v)?)?;
    range.write_text(cx, &bounds, out)
}

fn text_in(cx: &TypeContext<'_>, ty: &TypeDesc, text: &[u8], typmod: i32) -> SqlResult<Datum> {
    let range = RangeType::of(cx, ty)?;
    let malformed = |detail: &str| {
        SqlError::new(
            SqlState::InvalidTextRepresentation,
            format!("malformed range literal: \"{}\"", String::from_utf8_lossy(text)),
        )
        .detail(detail)
    };
    let after_space = |text: &'_ [u8]| -> usize { text.iter().take_while(|b| is_space(**b)).count() };
    let mut rest = text.get(after_space(text)..).unwrap_or_default();
    if rest.get(..5).is_some_and(|word| word.eq_ignore_ascii_case(b"empty")) {
        if rest.iter().skip(5).any(|b| !is_space(*b)) {
            return Err(malformed("Junk after \"empty\" key word."));
        }
        return Ok(Datum::bytes(range.empty()));
    }
    let lower_inclusive = match rest {
        [b @ (b'[' | b'('), tail @ ..] => {
            rest = tail;
            *b == b'['
        }
        _ => return Err(malformed("Missing left parenthesis or bracket.")),
    };
    let mut field = Vec::new();
    // The bounds' texts are taken first, so that errors of the range come before those of its values.
    let mut bound = |rest: &mut &[u8]| -> SqlResult<Option<Vec<u8>>> {
        if matches!(rest, [b',' | b')' | b']', ..]) {
            return Ok(None);
        }
        field.clear();
        let tail = unquote(rest, b",)]", &mut field).ok_or_else(|| malformed("Unexpected end of input."))?;
        *rest = rest.get(rest.len() - tail.len()..).unwrap_or_default();
        Ok(Some(field.clone()))
    };
    let lower = bound(&mut rest)?;
    rest = rest.strip_prefix(b",").ok_or_else(|| malformed("Missing comma after lower bound."))?;
    let upper = bound(&mut rest)?;
    let upper_inclusive = match rest {
        [b @ (b']' | b')'), tail @ ..] => {
            rest = tail;
            *b == b']'
        }
        _ => return Err(malformed("Too many commas.")),
    };
    if !rest.iter().all(|b| is_space(*b)) {
        return Err(malformed("Junk after right parenthesis or bracket."));
    }
    let read = |text: Option<Vec<u8>>, inclusive: bool| -> SqlResult<Bound<'static>> {
        match text {
            None => Ok(Bound::INFINITE),
            Some(text) => Ok(Bound::new(crate::text_in(cx, &range.subtype, &text, typmod)?, inclusive)),
        }
    };
    let lower = read(lower, lower_inclusive)?;
    let upper = read(upper, upper_inclusive)?;
    Ok(Datum::bytes(range.build(cx, &Some((lower, upper)))?))
}

fn flags_of(bounds: &Bounds<'_>) -> u8 {
    let Some((lower, upper)) = bounds else { return EMPTY };
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    flag(lower.inclusive, LOWER_INCLUSIVE)
        | flag(upper.inclusive, UPPER_INCLUSIVE)
        | flag(lower.value.is_none(), LOWER_INFINITE)
        | flag(upper.value.is_none(), UPPER_INFINITE)
}

impl RangeType {
    pub(crate) fn write_binary(&self, cx: &TypeContext<'_>, bounds: &Bounds<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
        out.push(flags_of(bounds));
        if let Some((lower, upper)) = bounds {
            for value in [lower, upper].into_iter().filter_map(|b| b.value.as_ref()) {
                write_counted(cx, &self.subtype, Some(value.value()), out)?;
            }
        }
        Ok(())
    }

    pub(crate) fn read_binary(&self, cx: &TypeContext<'_>, bytes: &[u8], typmod: i32) -> SqlResult<Vec<u8>> {
        let (flags, rest) = bytes.split_first().ok_or_else(message_too_short)?;
        let mut message = Message(rest);
        let mut bound = |infinite: u8, inclusive: u8| -> SqlResult<Bound<'static>> {
            if flags & (EMPTY | infinite) != 0 {
                return Ok(Bound::INFINITE);
            }
            let value = message.counted(message_too_short)?.ok_or_else(message_too_short)?;
            Ok(Bound::new(crate::binary_in(cx, &self.subtype, value, typmod)?, flags & inclusive != 0))
        };
        let lower = bound(LOWER_INFINITE, LOWER_INCLUSIVE)?;
        let upper = bound(UPPER_INFINITE, UPPER_INCLUSIVE)?;
        message.end()?;
        let bounds = (flags & EMPTY == 0).then_some((lower, upper));
        self.build(cx, &bounds)
    }
}

fn binary_out(cx: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    let range = RangeType::of(cx, ty)?;
    let bounds = range.parse(get::bytes(ty, v)?)?;
    range.write_binary(cx, &bounds, out)
}

fn binary_in(cx: &TypeContext<'_>, ty: &TypeDesc, bytes: &[u8], typmod: i32) -> SqlResult<Datum> {
    Ok(Datum::bytes(RangeType::of(cx, ty)?.read_binary(cx, bytes, typmod)?))
}

/// The range type that a payload names, which `anyrange` indexes need.
pub(crate) fn stored_type(payload: &[u8]) -> SqlResult<Oid> {
    let oid = payload.get(..4).ok_or_else(|| corrupt("range"))?;
    exactly(oid).map(|b| Oid(u32::from_le_bytes(b)))
}

fn range_of(cx: &TypeContext<'_>, ty: &TypeDesc, coll: &Collation, payload: &[u8]) -> SqlResult<RangeType> {
    let range = match ty.kind {
        TypeKind::Range { .. } => RangeType::of(cx, ty)?,
        _ => RangeType::of(cx, &*cx.types.type_desc(stored_type(payload)?)?)?,
    };
    Ok(range.in_mode(coll))
}

/// `range_cmp`.
pub fn compare(
    cx: &TypeContext<'_>,
    ty: &TypeDesc,
    coll: &Collation,
    a: ValueRef<'_>,
    b: ValueRef<'_>,
) -> SqlResult<Ordering> {
    let (a, b) = (get::bytes(ty, a)?, get::bytes(ty, b)?);
    let range = range_of(cx, ty, coll, a)?;
    range.compare(cx, &range.parse(a)?, &range.parse(b)?)
}

fn key(cx: &TypeContext<'_>, ty: &TypeDesc, coll: &Collation, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    let payload = get::bytes(ty, v)?;
    let range = range_of(cx, ty, coll, payload)?;
    range.write_key(cx, &range.parse(payload)?, out)
}

/// `hash_range_extended`.
fn hash(cx: &TypeContext<'_>, ty: &TypeDesc, coll: &Collation, v: ValueRef<'_>, seed: u64) -> SqlResult<u64> {
    let payload = get::bytes(ty, v)?;
    let range = range_of(cx, ty, coll, payload)?;
    let flags = payload.last().copied().unwrap_or(EMPTY);
    invalid_flags(flags)?;
    range.hash(cx, &range.parse(payload)?, flags, seed)
}

/// Flags that PostgreSQL only has in memory or in GiST make a hash that is not ours to know.
fn invalid_flags(flags: u8) -> SqlResult<()> {
    if flags & !0x1F == 0 { Ok(()) } else { Err(invalid("range flags of an index in a value")) }
}
