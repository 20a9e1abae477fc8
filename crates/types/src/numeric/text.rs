//! Text, binary form and typmods.

use stegodon_format::version::Version;

use super::{DEC_DIGITS, DSCALE_MAX, NBASE, Number, Numeric, View, digits_of, overflow};
use crate::ops::get;
use crate::scalar::{exactly, invalid_syntax, is_space, message_too_short};
use crate::{Datum, SqlError, SqlResult, SqlState, TypeContext, TypeDesc, ValueRef};

/// The greatest precision of a `numeric(p, s)`.
pub const MAX_PRECISION: i32 = 1000;
/// What a numeric typmod has on top of precision and scale.
const TYPMOD_HEADER: i32 = 4;

/// The typmod of `numeric(precision, scale)`.
pub const fn typmod(precision: i32, scale: i32) -> i32 {
    ((precision << 16) | (scale & 0x7FF)) + TYPMOD_HEADER
}

/// Precision and scale of a typmod; none where it sets none.
pub const fn typmod_parts(typmod: i32) -> Option<(i32, i32)> {
    if typmod < TYPMOD_HEADER {
        return None;
    }
    let bits = typmod - TYPMOD_HEADER;
    // The scale is 11 bits, signed.
    Some((bits >> 16 & 0xFFFF, ((bits & 0x7FF) ^ 1024) - 1024))
}

fn field_overflow(detail: String) -> SqlError {
    SqlError::new(SqlState::NumericValueOutOfRange, "numeric field overflow").detail(detail)
}

impl Numeric {
    /// Rounds to a `numeric(p, s)` and checks that it fits; `22003` where it does not.
    pub fn apply_typmod(self, typmod: i32) -> SqlResult<Numeric> {
        let Some((precision, scale)) = typmod_parts(typmod) else { return Ok(self) };
        let number = match self {
            Numeric::Finite(number) => number,
            Numeric::NaN => return Ok(Numeric::NaN),
            Numeric::PosInf | Numeric::NegInf => {
                return Err(field_overflow(format!(
                    "A field with precision {precision}, scale {scale} cannot hold an infinite value."
                )));
            }
        };
        let mut number = number.round(scale);
        number.dscale = number.dscale.max(0);
        let max_digits = precision - scale;
        if let Some(first) = number.digits.first() {
            let unused = match first {
                0..10 => 3,
                10..100 => 2,
                100..1000 => 1,
                _ => 0,
            };
            if (number.weight + 1) * DEC_DIGITS - unused > max_digits {
                let bound = if max_digits == 0 { "1".to_owned() } else { format!("10^{max_digits}") };
                return Err(field_overflow(format!(
                    "A field with precision {precision}, scale {scale} must round to an absolute value less than {bound}."
                )));
            }
        }
        Ok(Numeric::Finite(number))
    }

    /// Appends the text, as `numeric_out` does.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        match self {
            Numeric::NaN => out.extend_from_slice(b"NaN"),
            Numeric::PosInf => out.extend_from_slice(b"Infinity"),
            Numeric::NegInf => out.extend_from_slice(b"-Infinity"),
            Numeric::Finite(n) => write_number(n.negative, n.weight, n.dscale, n.digits.iter().copied(), out),
        }
    }

    /// The text.
    pub fn text(&self) -> String {
        let mut out = Vec::new();
        self.write_text(&mut out);
        String::from_utf8(out).unwrap_or_default()
    }
}

/// Appends four decimal digits.
fn push_four(digit: u16, out: &mut Vec<u8>) {
    for unit in [1000, 100, 10, 1] {
        out.push(b'0' + (digit / unit % 10) as u8);
    }
}

fn write_number(negative: bool, weight: i32, dscale: i32, mut digits: impl Iterator<Item = u16>, out: &mut Vec<u8>) {
    if negative {
        out.push(b'-');
    }
    if weight < 0 {
        out.push(b'0');
    } else {
        let start = out.len();
        for _ in 0..=weight {
            push_four(digits.next().unwrap_or(0), out);
        }
        let zeros = out.iter().skip(start).take_while(|b| **b == b'0').count();
        let shown = out.len() - start;
        out.drain(start..start + zeros.min(shown - 1));
    }
    if dscale > 0 {
        out.push(b'.');
        let end = out.len() + dscale as usize;
        // Digits of value zero between the point and the first stored one.
        out.extend(std::iter::repeat_n(b'0', ((-1 - weight).max(0) * DEC_DIGITS).min(dscale) as usize));
        while out.len() < end {
            push_four(digits.next().unwrap_or(0), out);
        }
        out.truncate(end);
    }
}

/// Appends the text of a payload.
pub(crate) fn text_out(_: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    match View::new(get::bytes(ty, v)?)? {
        View::NaN => out.extend_from_slice(b"NaN"),
        View::PosInf => out.extend_from_slice(b"Infinity"),
        View::NegInf => out.extend_from_slice(b"-Infinity"),
        View::Finite { negative, weight, dscale, digits } => {
            let negative = negative && digits_of(digits).any(|d| d != 0);
            write_number(negative, weight, dscale, digits_of(digits), out);
        }
    }
    Ok(())
}

/// Digits with single underscores between them, appended to `digits`; how many.
fn take_digits<'a>(mut rest: &'a [u8], radix: u32, digits: &mut Vec<u8>) -> Option<(&'a [u8], usize)> {
    let before = digits.len();
    loop {
        match rest {
            [b, tail @ ..] if char::from(*b).is_digit(radix) => {
                digits.push(*b);
                rest = tail;
            }
            [b'_', tail @ ..] => match tail {
                [b, ..] if char::from(*b).is_digit(radix) => rest = tail,
                _ => return None,
            },
            _ => return Some((rest, digits.len() - before)),
        }
    }
}

/// What a text is: `None` is a syntax error.
fn parse_value(text: &[u8]) -> Option<SqlResult<(Numeric, &[u8])>> {
    let start = text.iter().position(|b| !is_space(*b)).unwrap_or(text.len());
    let unsigned_from = text.get(start..)?;
    let (negative, rest) = match unsigned_from {
        [b'-', tail @ ..] => (true, tail),
        [b'+', tail @ ..] => (false, tail),
        _ => (false, unsigned_from),
    };
    if !matches!(rest, [b'0'..=b'9' | b'.', ..]) {
        let starts = |text: &[u8], word: &str| {
            text.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word.as_bytes()))
        };
        if starts(unsigned_from, "nan") {
            return Some(Ok((Numeric::NaN, unsigned_from.get(3..)?)));
        }
        let infinity = if negative { Numeric::NegInf } else { Numeric::PosInf };
        let length = ["infinity", "inf"].iter().find(|word| starts(rest, word))?.len();
        return Some(Ok((infinity, rest.get(length..)?)));
    }
    let radix = match rest {
        [b'0', b'x' | b'X', ..] => 16,
        [b'0', b'o' | b'O', ..] => 8,
        [b'0', b'b' | b'B', ..] => 2,
        _ => return parse_decimal(rest, negative),
    };
    let mut digits = Vec::new();
    let (rest, count) = take_digits(rest.get(2..)?, radix, &mut digits)?;
    if count == 0 {
        return None;
    }
    let base = Number::from(i64::from(radix));
    let mut number = Number::zero();
    // Sixty bits' worth of digits at a time.
    for chunk in digits.chunks(15) {
        let mut value = 0i64;
        let mut unit = Number::from(1i64);
        for d in chunk {
            value = value * i64::from(radix) + i64::from(char::from(*d).to_digit(radix)?);
            unit = unit.mul(&base);
        }
        number = number.mul(&unit).add(&Number::from(value));
        if number.weight > super::WEIGHT_MAX {
            return Some(Err(overflow()));
        }
    }
    number.negative = negative && !number.is_zero();
    Some(Ok((Numeric::Finite(number), rest)))
}

/// A decimal number: digits, a point, an exponent.
fn parse_decimal(text: &[u8], negative: bool) -> Option<SqlResult<(Numeric, &[u8])>> {
    let mut digits = Vec::new();
    let mut rest = text;
    let mut decimals = 0;
    if rest.first() != Some(&b'.') {
        (rest, _) = take_digits(rest, 10, &mut digits)?;
    }
    let mut whole = digits.len() as i64;
    if let [b'.', tail @ ..] = rest {
        // The point may be last, but not alone, and no underscore may follow it.
        if tail.first() == Some(&b'_') {
            return None;
        }
        (rest, decimals) = take_digits(tail, 10, &mut digits)?;
    }
    if digits.is_empty() {
        return None;
    }
    let mut dscale = decimals as i64;
    if let [b'e' | b'E', tail @ ..] = rest {
        let (minus, tail) = match tail {
            [b'-', tail @ ..] => (true, tail),
            [b'+', tail @ ..] => (false, tail),
            _ => (false, tail),
        };
        if !matches!(tail, [b'0'..=b'9', ..]) {
            return None;
        }
        let mut exponent_digits = Vec::new();
        (rest, _) = take_digits(tail, 10, &mut exponent_digits)?;
        let mut exponent = 0i64;
        for d in exponent_digits {
            exponent = exponent * 10 + i64::from(d - b'0');
            if exponent > i64::from(i32::MAX / 2) {
                return Some(Err(overflow()));
            }
        }
        if minus {
            exponent = -exponent;
        }
        whole += exponent;
        dscale = (dscale - exponent).max(0);
    }
    // The first base-10000 digit's weight, and how many zeros it begins with.
    let weight = (whole - 1).div_euclid(i64::from(DEC_DIGITS));
    let offset = ((weight + 1) * i64::from(DEC_DIGITS) - whole) as usize;
    let mut grouped = Vec::with_capacity(digits.len() / 4 + 2);
    let mut group = 0u16;
    let mut filled = offset;
    for d in digits {
        group = group * 10 + u16::from(d - b'0');
        filled += 1;
        if filled == 4 {
            grouped.push(group);
            (group, filled) = (0, 0);
        }
    }
    if filled > 0 {
        grouped.push(group * 10u16.pow(4 - filled as u32));
    }
    let (Ok(weight), Ok(dscale)) = (i32::try_from(weight), i32::try_from(dscale)) else {
        return Some(Err(overflow()));
    };
    let number = Number { negative, weight, dscale, digits: grouped }.normalize();
    Some(Ok((Numeric::Finite(number), rest)))
}

/// Reads a numeric as `numeric_in` does, without a typmod.
pub fn parse(text: &[u8]) -> SqlResult<Numeric> {
    let syntax = || invalid_syntax("numeric", text);
    let (value, rest) = parse_value(text).ok_or_else(syntax)??;
    if rest.iter().all(|b| is_space(*b)) { Ok(value) } else { Err(syntax()) }
}

pub(crate) fn text_in(cx: &TypeContext<'_>, _: &TypeDesc, text: &[u8], typmod: i32) -> SqlResult<Datum> {
    // Underscores and other radices came with 16.
    if cx.settings.version < Version::V16
        && text.iter().any(|b| matches!(b, b'_' | b'x' | b'X' | b'o' | b'O' | b'b' | b'B'))
    {
        return Err(invalid_syntax("numeric", text));
    }
    parse(text)?.apply_typmod(typmod)?.to_datum()
}

pub(crate) fn binary_out(_: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    let mut words = |parts: [u16; 4]| parts.iter().for_each(|w| out.extend_from_slice(&w.to_be_bytes()));
    match View::new(get::bytes(ty, v)?)? {
        View::NaN => words([0, 0, super::NAN, 0]),
        // The scale that the header's bits of an infinity happen to spell.
        View::PosInf => words([0, 0, super::POS_INF, 0x20]),
        View::NegInf => words([0, 0, super::NEG_INF, 0x20]),
        View::Finite { negative, weight, dscale, digits } => {
            let sign = if negative { super::LONG_NEGATIVE } else { 0 };
            words([(digits.len() / 2) as u16, weight as u16, sign, dscale as u16]);
            for digit in digits_of(digits) {
                out.extend_from_slice(&digit.to_be_bytes());
            }
        }
    }
    Ok(())
}

pub(crate) fn binary_in(_: &TypeContext<'_>, _: &TypeDesc, bytes: &[u8], typmod: i32) -> SqlResult<Datum> {
    let invalid = |what: &str| {
        SqlError::new(SqlState::InvalidBinaryRepresentation, format!("invalid {what} in external \"numeric\" value"))
    };
    let (head, tail) = bytes.split_at_checked(8).ok_or_else(message_too_short)?;
    let word = |at: usize| head.get(at..at + 2).map_or(0, |b| u16::from_be_bytes(exactly(b).unwrap_or_default()));
    let (count, weight, sign, dscale) = (usize::from(word(0)), word(2) as i16, word(4), word(6));
    if dscale & DSCALE_MAX as u16 != dscale {
        return Err(invalid("scale"));
    }
    let value = match sign {
        0 | super::LONG_NEGATIVE => {
            let bytes = tail.get(..count * 2).ok_or_else(message_too_short)?;
            if tail.len() > count * 2 {
                return Err(SqlError::new(SqlState::InvalidBinaryRepresentation, "incorrect binary data format"));
            }
            let digits: Vec<u16> =
                bytes.chunks_exact(2).map(|b| u16::from_be_bytes(exactly(b).unwrap_or_default())).collect();
            if digits.iter().any(|d| *d >= NBASE) {
                return Err(invalid("digit"));
            }
            let number = Number { negative: sign != 0, weight: i32::from(weight), dscale: i32::from(dscale), digits };
            // Digits that the scale would hide are cut.
            Numeric::Finite(number.normalize().trunc(i32::from(dscale)))
        }
        super::NAN => Numeric::NaN,
        super::POS_INF => Numeric::PosInf,
        super::NEG_INF => Numeric::NegInf,
        _ => return Err(invalid("sign")),
    };
    value.apply_typmod(typmod)?.to_datum()
}
