//! `numeric`: decimal numbers of any length, with NaN and the infinities.
//!
//! The payload (after the length word) is a header and base-10000 digits, the first of weight `weight`, all little-endian:
//!
//! ```text
//!  long     00 | 01 (sign) dscale:14    weight:i16    digit digit …       (00 positive, 01 negative)
//!  short    10 sign:1 dscale:6 weight:7               digit digit …       (weight signed)
//!  special  11 00 NaN, 11 01 Infinity, 11 11 -Infinity (then zeros)
//! ```
//!
//! `value = sum(digit[i] * 10000^(weight - i))`. Trailing and leading zero digits are not stored; `dscale` says how many
//! decimals are shown, and never less than are there. PostgreSQL writes the short form where scale and weight fit.
//!
//! [`Number`] is a finite value taken apart, [`Numeric`] any value. Functions give PostgreSQL's result scales (see
//! `arith` and `math`); their errors are PostgreSQL's.

mod arith;
mod convert;
mod fast;
mod math;
mod sum;
mod text;

use std::cmp::Ordering;

pub use fast::{add_payloads, mul_payloads, scaled_i128, sub_payloads, write_scaled};
pub use sum::{NumericSum, NumericVariance};
pub use text::{MAX_PRECISION, parse, typmod, typmod_parts};

use crate::ops::get;
use crate::{Collation, Datum, SqlError, SqlResult, SqlState, TypeContext, TypeDesc, TypeOps, ValueRef, hash};

/// The base of the digits.
pub(crate) const NBASE: u16 = 10_000;
/// Decimal digits of a base-10000 digit.
pub(crate) const DEC_DIGITS: i32 = 4;
/// The greatest weight that the long header holds.
pub(crate) const WEIGHT_MAX: i32 = 0x7FFF;
/// The greatest scale that the long header holds.
pub(crate) const DSCALE_MAX: i32 = 0x3FFF;

const SIGN_MASK: u16 = 0xC000;
const LONG_NEGATIVE: u16 = 0x4000;
const SHORT: u16 = 0x8000;
const SHORT_NEGATIVE: u16 = 0x2000;
const NAN: u16 = 0xC000;
const POS_INF: u16 = 0xD000;
const NEG_INF: u16 = 0xF000;

/// `numeric`.
pub static OPS: TypeOps = TypeOps {
    text_out: text::text_out,
    text_in: text::text_in,
    binary_out: text::binary_out,
    binary_in: text::binary_in,
    compare: Some(compare),
    equal: Some(crate::equal_by!(compare)),
    key: Some(key),
    hash: Some(hash),
    own_key: false,
};

/// A finite decimal number. Kept normal: no leading or trailing zero digits, zero is positive and has weight 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Number {
    /// Whether it is below zero.
    pub(crate) negative: bool,
    /// The power of 10000 of the first digit.
    pub(crate) weight: i32,
    /// Decimals shown; negative only within computations.
    pub(crate) dscale: i32,
    /// Base-10000 digits.
    pub(crate) digits: Vec<u16>,
}

/// A value of type `numeric`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Numeric {
    /// A number.
    Finite(Number),
    /// `NaN`: equal to itself and above all else.
    NaN,
    /// `Infinity`.
    PosInf,
    /// `-Infinity`.
    NegInf,
}

/// `22003`: the value has no place in the on-disk form.
pub(crate) fn overflow() -> SqlError {
    SqlError::new(SqlState::NumericValueOutOfRange, "value overflows numeric format")
}

fn corrupt() -> SqlError {
    SqlError::new(SqlState::DataCorrupted, "a stored numeric is malformed")
}

/// A payload's parts, its digits still on the page.
#[derive(Clone, Copy, Debug)]
pub(crate) enum View<'a> {
    Finite { negative: bool, weight: i32, dscale: i32, digits: &'a [u8] },
    NaN,
    PosInf,
    NegInf,
}

impl<'a> View<'a> {
    pub(crate) fn new(payload: &'a [u8]) -> SqlResult<Self> {
        let word = |at: usize| {
            payload
                .get(at..at + 2)
                .and_then(|b| <[u8; 2]>::try_from(b).ok())
                .map(u16::from_le_bytes)
                .ok_or_else(corrupt)
        };
        let header = word(0)?;
        let (negative, weight, dscale, start) = match header & SIGN_MASK {
            SHORT => {
                // Seven bits, signed.
                let weight = i32::from(((header & 0x7F) << 9) as i16 >> 9);
                (header & SHORT_NEGATIVE != 0, weight, i32::from(header >> 7 & 0x3F), 2)
            }
            SIGN_MASK => {
                return match header & 0xF000 {
                    NAN => Ok(View::NaN),
                    POS_INF => Ok(View::PosInf),
                    NEG_INF => Ok(View::NegInf),
                    _ => Err(corrupt()),
                };
            }
            sign => (sign == LONG_NEGATIVE, i32::from(word(2)? as i16), i32::from(header & 0x3FFF), 4),
        };
        let digits = payload.get(start..).ok_or_else(corrupt)?;
        if digits.len() % 2 != 0 {
            return Err(corrupt());
        }
        Ok(View::Finite { negative, weight, dscale, digits })
    }
}

/// The base-10000 digits of a payload.
pub(crate) fn digits_of(bytes: &[u8]) -> impl DoubleEndedIterator<Item = u16> + ExactSizeIterator + '_ {
    bytes.chunks_exact(2).map(|b| match b {
        [low, high] => u16::from_le_bytes([*low, *high]),
        _ => 0,
    })
}

impl Number {
    /// Zero.
    pub const fn zero() -> Self {
        Number { negative: false, weight: 0, dscale: 0, digits: Vec::new() }
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// Decimals shown.
    pub fn scale(&self) -> i32 {
        self.dscale
    }

    /// -1, 0 or 1.
    pub fn sign(&self) -> i32 {
        match (self.is_zero(), self.negative) {
            (true, _) => 0,
            (_, true) => -1,
            (_, false) => 1,
        }
    }

    /// Strips zero digits at both ends.
    pub(crate) fn normalize(mut self) -> Self {
        while self.digits.last() == Some(&0) {
            self.digits.pop();
        }
        let leading = self.digits.iter().take_while(|d| **d == 0).count();
        if leading > 0 {
            self.digits.drain(..leading);
            self.weight -= leading as i32;
        }
        if self.digits.is_empty() {
            self.weight = 0;
            self.negative = false;
        }
        self
    }

    /// Whether it has no fraction.
    pub fn is_integral(&self) -> bool {
        self.digits.len() as i32 <= self.weight + 1
    }

    fn is_odd_integer(&self) -> bool {
        self.digits.len() as i32 == self.weight + 1 && self.digits.last().is_some_and(|d| d % 2 == 1)
    }

    /// The order of the magnitudes.
    pub(crate) fn cmp_abs(&self, other: &Number) -> Ordering {
        match (self.is_zero(), other.is_zero()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => self.weight.cmp(&other.weight).then_with(|| self.digits.cmp(&other.digits)),
        }
    }

    /// The order of the values; scales do not count.
    pub fn order(&self, other: &Number) -> Ordering {
        match self.sign().cmp(&other.sign()) {
            Ordering::Equal if self.negative => other.cmp_abs(self),
            Ordering::Equal => self.cmp_abs(other),
            different => different,
        }
    }
}

/// Appends the payload of a number in normal form; `22003` where it has none.
fn write_parts(negative: bool, weight: i32, dscale: i32, digits: &[u16], out: &mut Vec<u8>) -> SqlResult<()> {
    if !(0..=DSCALE_MAX).contains(&dscale) || i32::from(weight as i16) != weight {
        return Err(overflow());
    }
    out.reserve(4 + digits.len() * 2);
    if dscale <= 0x3F && (-64..=63).contains(&weight) {
        let sign = if negative { SHORT_NEGATIVE } else { 0 };
        let header = SHORT | sign | (dscale as u16) << 7 | (weight as u16 & 0x7F);
        out.extend_from_slice(&header.to_le_bytes());
    } else {
        let header = if negative { LONG_NEGATIVE } else { 0 } | dscale as u16;
        out.extend_from_slice(&header.to_le_bytes());
        out.extend_from_slice(&(weight as i16).to_le_bytes());
    }
    for digit in digits {
        out.extend_from_slice(&digit.to_le_bytes());
    }
    Ok(())
}

impl Numeric {
    /// Zero.
    pub const ZERO: Numeric = Numeric::Finite(Number::zero());

    /// One.
    pub fn one() -> Numeric {
        Numeric::from(1i64)
    }

    /// Takes a payload apart.
    pub fn from_payload(payload: &[u8]) -> SqlResult<Self> {
        Ok(match View::new(payload)? {
            View::NaN => Numeric::NaN,
            View::PosInf => Numeric::PosInf,
            View::NegInf => Numeric::NegInf,
            View::Finite { negative, weight, dscale, digits } => {
                let digits: Vec<u16> = digits_of(digits).collect();
                if digits.iter().any(|d| *d >= NBASE) {
                    return Err(corrupt());
                }
                Numeric::Finite(Number { negative, weight, dscale, digits }.normalize())
            }
        })
    }

    /// Appends the payload; `22003` where the value has none.
    pub fn write_payload(&self, out: &mut Vec<u8>) -> SqlResult<()> {
        let number = match self {
            Numeric::Finite(number) => number,
            Numeric::NaN => {
                out.extend_from_slice(&NAN.to_le_bytes());
                return Ok(());
            }
            Numeric::PosInf => {
                out.extend_from_slice(&POS_INF.to_le_bytes());
                return Ok(());
            }
            Numeric::NegInf => {
                out.extend_from_slice(&NEG_INF.to_le_bytes());
                return Ok(());
            }
        };
        write_parts(number.negative, number.weight, number.dscale, &number.digits, out)
    }

    /// The payload as a value.
    pub fn to_datum(&self) -> SqlResult<Datum> {
        let mut payload = Vec::new();
        self.write_payload(&mut payload)?;
        Ok(Datum::bytes(payload))
    }

    /// The number, where it is one.
    pub fn finite(&self) -> Option<&Number> {
        match self {
            Numeric::Finite(number) => Some(number),
            _ => None,
        }
    }

    /// -1, 0 or 1; NaN counts as 1.
    pub fn sign(&self) -> i32 {
        match self {
            Numeric::Finite(number) => number.sign(),
            Numeric::NegInf => -1,
            Numeric::NaN | Numeric::PosInf => 1,
        }
    }

    /// Whether it is NaN.
    pub fn is_nan(&self) -> bool {
        matches!(self, Numeric::NaN)
    }

    fn rank(&self) -> u8 {
        match self {
            Numeric::NegInf => 0,
            Numeric::Finite(_) => 1,
            Numeric::PosInf => 2,
            Numeric::NaN => 3,
        }
    }
}

impl PartialOrd for Numeric {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Numeric::Finite(a), Numeric::Finite(b)) => Some(a.order(b)),
            _ => Some(self.rank().cmp(&other.rank())),
        }
    }
}

/// `numeric_cmp`, on payloads.
pub fn compare_payloads(a: &[u8], b: &[u8]) -> SqlResult<Ordering> {
    let (a, b) = (View::new(a)?, View::new(b)?);
    let rank = |v: &View<'_>| match v {
        View::NegInf => 0,
        View::Finite { .. } => 1,
        View::PosInf => 2,
        View::NaN => 3,
    };
    let (
        View::Finite { negative: a_negative, weight: a_weight, digits: a_digits, .. },
        View::Finite { negative: b_negative, weight: b_weight, digits: b_digits, .. },
    ) = (a, b)
    else {
        return Ok(rank(&a).cmp(&rank(&b)));
    };
    let magnitude = |weight: i32, digits: &[u8]| {
        let leading = digits_of(digits).take_while(|d| *d == 0).count();
        (leading * 2 < digits.len()).then_some((weight - leading as i32, leading))
    };
    let sign = |m: &Option<(i32, usize)>, negative: bool| match (m, negative) {
        (None, _) => 0,
        (_, true) => -1,
        (_, false) => 1,
    };
    let (a_top, b_top) = (magnitude(a_weight, a_digits), magnitude(b_weight, b_digits));
    let by_sign = sign(&a_top, a_negative).cmp(&sign(&b_top, b_negative));
    let (Ordering::Equal, Some((a_weight, a_skip)), Some((b_weight, b_skip))) = (by_sign, a_top, b_top) else {
        return Ok(by_sign);
    };
    let mut magnitude = a_weight.cmp(&b_weight);
    if magnitude.is_eq() {
        let (mut a, mut b) = (digits_of(a_digits).skip(a_skip), digits_of(b_digits).skip(b_skip));
        magnitude = loop {
            // A digit that is not there is zero.
            match (a.next(), b.next()) {
                (None, None) => break Ordering::Equal,
                (a, b) => match a.unwrap_or(0).cmp(&b.unwrap_or(0)) {
                    Ordering::Equal => {}
                    different => break different,
                },
            }
        };
    }
    Ok(if a_negative { magnitude.reverse() } else { magnitude })
}

/// `numeric_cmp`.
pub fn compare(
    _: &TypeContext<'_>,
    ty: &TypeDesc,
    _: &Collation,
    a: ValueRef<'_>,
    b: ValueRef<'_>,
) -> SqlResult<Ordering> {
    compare_payloads(get::bytes(ty, a)?, get::bytes(ty, b)?)
}

/// Appends the key of a payload.
///
/// ```text
///  00 -Infinity   01 negative   02 zero   03 positive   04 Infinity   05 NaN
///  positive: weight (4 bytes, sign flipped), each digit + 1 (2 bytes), 00 00; negative: the same, all bits flipped
/// ```
pub fn encode_key(payload: &[u8], out: &mut Vec<u8>) -> SqlResult<()> {
    let (negative, weight, digits) = match View::new(payload)? {
        View::NegInf => {
            out.push(0);
            return Ok(());
        }
        View::PosInf => {
            out.push(4);
            return Ok(());
        }
        View::NaN => {
            out.push(5);
            return Ok(());
        }
        View::Finite { negative, weight, digits, .. } => (negative, weight, digits),
    };
    let leading = digits_of(digits).take_while(|d| *d == 0).count();
    let trailing = digits_of(digits).rev().take_while(|d| *d == 0).count();
    let count = (digits.len() / 2).saturating_sub(leading + trailing);
    if count == 0 {
        out.push(2);
        return Ok(());
    }
    out.push(if negative { 1 } else { 3 });
    let start = out.len();
    crate::key::i32(weight - leading as i32, out);
    for digit in digits_of(digits).skip(leading).take(count) {
        out.extend_from_slice(&(digit.saturating_add(1)).to_be_bytes());
    }
    out.extend_from_slice(&[0, 0]);
    if negative && let Some(written) = out.get_mut(start..) {
        for b in written {
            *b = !*b;
        }
    }
    Ok(())
}

fn key(_: &TypeContext<'_>, ty: &TypeDesc, _: &Collation, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    encode_key(get::bytes(ty, v)?, out)
}

/// `hash_numeric_extended`.
fn hash(_: &TypeContext<'_>, ty: &TypeDesc, _: &Collation, v: ValueRef<'_>, seed: u64) -> SqlResult<u64> {
    let View::Finite { weight, digits, .. } = View::new(get::bytes(ty, v)?)? else { return Ok(seed) };
    let leading = digits_of(digits).take_while(|d| *d == 0).count();
    let trailing = digits_of(digits).rev().take_while(|d| *d == 0).count();
    let end = digits.len().saturating_sub(trailing * 2);
    match digits.get(leading * 2..end) {
        Some(significant) if !significant.is_empty() => {
            Ok(hash::bytes_extended(significant, seed) ^ i64::from(weight - leading as i32) as u64)
        }
        _ => Ok(seed.wrapping_sub(1)),
    }
}
