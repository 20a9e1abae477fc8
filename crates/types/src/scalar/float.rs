//! `float4` and `float8`.
//!
//! With `extra_float_digits` above 0 the text is the shortest that reads back the same, by Ryu as PostgreSQL has it:
//! where the shortest decimal lies exactly on the boundary between two floats, PostgreSQL does not trust the reader's
//! rounding and takes the next longer one (`1e23` prints as `9.999999999999999e+22`); the `ryu` crate would take it.

use std::cmp::Ordering;

use crate::ops::get;
use crate::scalar::{exactly, invalid_syntax, trim};
use crate::{Collation, Datum, SqlError, SqlResult, SqlState, TypeContext, TypeDesc, TypeOps, ValueRef, hash, key};

/// `float4`.
pub static FLOAT4: TypeOps = TypeOps {
    text_out: out4,
    text_in: in4,
    binary_out: send4,
    binary_in: recv4,
    compare: Some(compare4),
    equal: Some(crate::equal_by!(compare4)),
    key: Some(key4),
    hash: Some(hash4),
    own_key: false,
};

/// `float8`.
pub static FLOAT8: TypeOps = TypeOps {
    text_out: out8,
    text_in: in8,
    binary_out: send8,
    binary_in: recv8,
    compare: Some(compare8),
    equal: Some(crate::equal_by!(compare8)),
    key: Some(key8),
    hash: Some(hash8),
    own_key: false,
};

/// PostgreSQL's order of floats: -0 equals 0, NaN equals NaN and is the greatest.
pub fn order(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// A decimal number: its digits without leading or trailing zeros, and the power of ten of the last of them.
struct Decimal {
    buffer: [u8; MAX_DIGITS],
    len: usize,
    exponent: i32,
}

/// More digits than any text that is taken apart here has: 17 significant ones, or 16 before the point and a zero.
const MAX_DIGITS: usize = 20;

impl Decimal {
    /// Reads `12.5e-3`.
    fn parse(text: &str) -> Decimal {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let mut exponent: i32 = exponent.parse().unwrap_or(0);
        let (mut buffer, mut len) = ([0; MAX_DIGITS], 0);
        let mut fraction = false;
        for b in mantissa.bytes() {
            match b {
                b'.' => fraction = true,
                b'0'..=b'9' => {
                    exponent -= i32::from(fraction);
                    if (b != b'0' || len > 0)
                        && let Some(place) = buffer.get_mut(len)
                    {
                        *place = b;
                        len += 1;
                    }
                }
                _ => {}
            }
        }
        while len > 0 && buffer.get(len - 1) == Some(&b'0') {
            len -= 1;
            exponent += 1;
        }
        Decimal { buffer, len, exponent }
    }

    fn digits(&self) -> &[u8] {
        self.buffer.get(..self.len).unwrap_or_default()
    }

    /// Whether it equals `odd * 2^power`, `odd` being odd and below 2^55. Only numbers between 2^52 and 10^41 can.
    fn is_exactly(&self, odd: u64, power: i32) -> bool {
        let Some(mut number) = self
            .digits()
            .iter()
            .try_fold(0u64, |n, d| n.checked_mul(10).and_then(|n| n.checked_add(u64::from(d - b'0'))))
        else {
            return false;
        };
        if number == 0 || self.exponent > 23 {
            return false;
        }
        let mut two = number.trailing_zeros() as i32;
        number >>= two;
        let mut left = u128::from(number);
        let mut right = u128::from(odd);
        // 10^e = 5^e * 2^e.
        two += self.exponent;
        if self.exponent >= 0 {
            left *= 5u128.pow(self.exponent as u32);
        } else if self.exponent > -26 {
            right *= 5u128.pow(self.exponent.unsigned_abs());
        } else {
            return false;
        }
        left == right && two == power
    }
}

/// Mantissa and exponent of a finite, positive float: `mantissa * 2^exponent`.
fn parts8(v: f64) -> (u64, i32) {
    let bits = v.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    match (bits >> 52 & 0x7FF) as i32 {
        0 => (fraction, -1074),
        e => (fraction | 1 << 52, e - 1075),
    }
}

fn parts4(v: f32) -> (u64, i32) {
    let bits = v.to_bits();
    let fraction = u64::from(bits & ((1 << 23) - 1));
    match (bits >> 23 & 0xFF) as i32 {
        0 => (fraction, -149),
        e => (fraction | 1 << 23, e - 150),
    }
}

/// Whether a decimal is the midpoint between the float `mantissa * 2^exponent` and a neighbour.
fn on_boundary(decimal: &Decimal, mantissa: u64, exponent: i32, least_normal: u64) -> bool {
    decimal.is_exactly(2 * mantissa + 1, exponent - 1)
        || decimal.is_exactly(2 * mantissa - 1, exponent - 1)
        // Below a power of two the floats lie twice as close.
        || (mantissa == least_normal && decimal.is_exactly(4 * mantissa - 1, exponent - 2))
}

/// The shortest digits strictly inside a float's interval, where Ryu's lie on its boundary: tried length by length.
fn strictly_inside(start: usize, scientific: impl Fn(usize) -> String, good: impl Fn(&Decimal) -> bool) -> Decimal {
    for digits in start..=17 {
        let decimal = Decimal::parse(&scientific(digits - 1));
        if good(&decimal) {
            return decimal;
        }
    }
    Decimal::parse(&scientific(16))
}

fn decimal_text(decimal: &Decimal) -> String {
    format!("{}e{}", String::from_utf8_lossy(decimal.digits()), decimal.exponent)
}

fn shortest8(v: f64) -> Decimal {
    let mut buffer = ryu::Buffer::new();
    let decimal = Decimal::parse(buffer.format_finite(v));
    let (mantissa, exponent) = parts8(v);
    if !(4e15..1e42).contains(&v) || !on_boundary(&decimal, mantissa, exponent, 1 << 52) {
        return decimal;
    }
    strictly_inside(
        decimal.digits().len(),
        |precision| format!("{v:.precision$e}"),
        |d| decimal_text(d).parse() == Ok(v) && !on_boundary(d, mantissa, exponent, 1 << 52),
    )
}

fn shortest4(v: f32) -> Decimal {
    let mut buffer = ryu::Buffer::new();
    let decimal = Decimal::parse(buffer.format_finite(v));
    let (mantissa, exponent) = parts4(v);
    if !(1e6..1e20).contains(&v) || !on_boundary(&decimal, mantissa, exponent, 1 << 23) {
        return decimal;
    }
    strictly_inside(
        decimal.digits().len(),
        |precision| format!("{v:.precision$e}"),
        |d| decimal_text(d).parse() == Ok(v) && !on_boundary(d, mantissa, exponent, 1 << 23),
    )
}

/// Appends digits in fixed or scientific form; `scientific_from` is the exponent from which on it is scientific.
fn write_decimal(decimal: &Decimal, scientific_from: i32, out: &mut Vec<u8>) {
    let digits = decimal.digits();
    // The exponent of the first digit.
    let exponent = decimal.exponent + digits.len() as i32 - 1;
    if (-4..scientific_from).contains(&exponent) {
        if exponent < 0 {
            out.extend_from_slice(b"0.");
            out.extend(std::iter::repeat_n(b'0', (-exponent - 1) as usize));
            out.extend_from_slice(digits);
            return;
        }
        let whole = exponent as usize + 1;
        if digits.len() <= whole {
            out.extend_from_slice(digits);
            out.extend(std::iter::repeat_n(b'0', whole - digits.len()));
        } else {
            let (before, after) = digits.split_at(whole);
            out.extend_from_slice(before);
            out.push(b'.');
            out.extend_from_slice(after);
        }
        return;
    }
    if let Some((first, rest)) = digits.split_first() {
        out.push(*first);
        if !rest.is_empty() {
            out.push(b'.');
            out.extend_from_slice(rest);
        }
    }
    out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
    let magnitude = exponent.unsigned_abs();
    if magnitude < 10 {
        out.push(b'0');
    }
    crate::scalar::int::write_unsigned(u64::from(magnitude), out);
}

/// The parts that all floats share; true where the value is written already.
fn write_special(v: f64, out: &mut Vec<u8>) -> bool {
    if v.is_nan() {
        out.extend_from_slice(b"NaN");
        return true;
    }
    if v.is_sign_negative() {
        out.push(b'-');
    }
    if v.is_infinite() {
        out.extend_from_slice(b"Infinity");
    } else if v == 0.0 {
        out.push(b'0');
    }
    v.is_infinite() || v == 0.0
}

/// Appends a `float8` as `float8out` does under this `extra_float_digits`.
pub fn write_f64(v: f64, extra_float_digits: i32, out: &mut Vec<u8>) {
    if write_special(v, out) {
        return;
    }
    let v = v.abs();
    if extra_float_digits > 0 {
        write_decimal(&shortest8(v), 15, out);
    } else {
        let digits = (15 + extra_float_digits).max(1) as usize;
        let precision = digits - 1;
        write_decimal(&Decimal::parse(&format!("{v:.precision$e}")), digits as i32, out);
    }
}

/// Appends a `float4` as `float4out` does under this `extra_float_digits`.
pub fn write_f32(v: f32, extra_float_digits: i32, out: &mut Vec<u8>) {
    if write_special(f64::from(v), out) {
        return;
    }
    let v = v.abs();
    if extra_float_digits > 0 {
        write_decimal(&shortest4(v), 6, out);
    } else {
        let digits = (6 + extra_float_digits).max(1) as usize;
        let precision = digits - 1;
        write_decimal(&Decimal::parse(&format!("{v:.precision$e}")), digits as i32, out);
    }
}

/// What `strtod` makes of a text without white space around it: not a number, or one, or one that the type has not.
enum Parsed<T> {
    Syntax,
    Range,
    Unsupported,
    Value(T),
}

/// The magnitude's text where it is a plain decimal number.
fn is_decimal(text: &[u8]) -> bool {
    let digits = |t: &[u8]| t.iter().take_while(|b| b.is_ascii_digit()).count();
    let whole = digits(text);
    let mut rest = text.get(whole..).unwrap_or_default();
    let mut fraction = 0;
    if let [b'.', tail @ ..] = rest {
        fraction = digits(tail);
        rest = tail.get(fraction..).unwrap_or_default();
    }
    if whole + fraction == 0 {
        return false;
    }
    match rest {
        [] => true,
        [b'e' | b'E', b'+' | b'-', tail @ ..] | [b'e' | b'E', tail @ ..] => {
            !tail.is_empty() && tail.iter().all(u8::is_ascii_digit)
        }
        _ => false,
    }
}

fn parse<T: std::str::FromStr>(text: &[u8], bad: impl Fn(&T, bool) -> bool, special: impl Fn(f64) -> T) -> Parsed<T> {
    let (negative, magnitude) = match text {
        [b'-', tail @ ..] => (true, tail),
        [b'+', tail @ ..] => (false, tail),
        _ => (false, text),
    };
    let sign = if negative { -1.0 } else { 1.0 };
    if is_decimal(magnitude) {
        let Some(Ok(value)) = std::str::from_utf8(text).ok().map(str::parse::<T>) else { return Parsed::Syntax };
        let mantissa = magnitude.split(|b| matches!(b, b'e' | b'E')).next().unwrap_or_default();
        let is_zero = mantissa.iter().all(|b| matches!(b, b'0' | b'.'));
        return if bad(&value, is_zero) { Parsed::Range } else { Parsed::Value(value) };
    }
    match magnitude.to_ascii_lowercase().as_slice() {
        [b'0', b'x', hexadecimal @ ..] => match parse_hexadecimal(hexadecimal) {
            Parsed::Value(value) => Parsed::Value(special(value.copysign(sign))),
            Parsed::Syntax => Parsed::Syntax,
            Parsed::Range | Parsed::Unsupported => Parsed::Unsupported,
        },
        b"nan" => Parsed::Value(special(f64::NAN.copysign(sign))),
        b"inf" | b"infinity" => Parsed::Value(special(f64::INFINITY * sign)),
        _ => Parsed::Syntax,
    }
}

/// What follows `0x` in C's hexadecimal floats. Those of more bits than a `float4` holds, or far from 1, are not read:
/// nobody writes them, and they would have to be rounded.
fn parse_hexadecimal(text: &[u8]) -> Parsed<f64> {
    let mut parts = text.splitn(2, |b| *b == b'p');
    let (mantissa, exponent) = (parts.next().unwrap_or_default(), parts.next().unwrap_or(b"0"));
    let digits = exponent.strip_prefix(b"-").or(exponent.strip_prefix(b"+")).unwrap_or(exponent);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Parsed::Syntax;
    }
    let exponent = std::str::from_utf8(exponent).ok().and_then(|e| e.parse::<i32>().ok()).unwrap_or(i32::MAX);
    let mut value = Some(0u32);
    let mut scale = 0;
    let mut digits = 0;
    let mut fraction = false;
    for b in mantissa {
        if *b == b'.' && !fraction {
            fraction = true;
            continue;
        }
        let Some(digit) = char::from(*b).to_digit(16) else { return Parsed::Syntax };
        value = value.and_then(|v| v.checked_mul(16)).and_then(|v| v.checked_add(digit));
        scale -= if fraction { 4 } else { 0 };
        digits += 1;
    }
    match value.filter(|v| *v < 1 << 24 && exponent.unsigned_abs() <= 90) {
        _ if digits == 0 => Parsed::Syntax,
        Some(value) => Parsed::Value(f64::from(value) * 2f64.powi(exponent + scale)),
        None => Parsed::Unsupported,
    }
}

fn out_of_range(name: &str, text: &[u8]) -> SqlError {
    SqlError::new(
        SqlState::NumericValueOutOfRange,
        format!("\"{}\" is out of range for type {name}", String::from_utf8_lossy(text)),
    )
}

/// Reads a `float8` as `float8in` does.
pub fn parse_f64(text: &[u8]) -> SqlResult<f64> {
    let number = trim(text);
    match parse(number, |v: &f64, zero| v.is_infinite() || (*v == 0.0 && !zero), |v| v) {
        Parsed::Value(v) => Ok(v),
        Parsed::Range => Err(out_of_range("double precision", number)),
        Parsed::Unsupported => Err(SqlError::unsupported("a hexadecimal float of so many digits")),
        Parsed::Syntax => Err(invalid_syntax("double precision", text)),
    }
}

/// Reads a `float4` as `float4in` does.
pub fn parse_f32(text: &[u8]) -> SqlResult<f32> {
    let number = trim(text);
    match parse(number, |v: &f32, zero| v.is_infinite() || (*v == 0.0 && !zero), |v| v as f32) {
        Parsed::Value(v) => Ok(v),
        Parsed::Range => Err(out_of_range("real", number)),
        Parsed::Unsupported => Err(SqlError::unsupported("a hexadecimal float of so many digits")),
        Parsed::Syntax => Err(invalid_syntax("real", text)),
    }
}

fn out4(cx: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    write_f32(get::f32(ty, v)?, cx.settings.extra_float_digits, out);
    Ok(())
}

fn out8(cx: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    write_f64(get::f64(ty, v)?, cx.settings.extra_float_digits, out);
    Ok(())
}

fn in4(_: &TypeContext<'_>, _: &TypeDesc, text: &[u8], _: i32) -> SqlResult<Datum> {
    parse_f32(text).map(Datum::Float32)
}

fn in8(_: &TypeContext<'_>, _: &TypeDesc, text: &[u8], _: i32) -> SqlResult<Datum> {
    parse_f64(text).map(Datum::Float64)
}

fn send4(_: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    out.extend_from_slice(&get::f32(ty, v)?.to_be_bytes());
    Ok(())
}

fn send8(_: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    out.extend_from_slice(&get::f64(ty, v)?.to_be_bytes());
    Ok(())
}

fn recv4(_: &TypeContext<'_>, _: &TypeDesc, bytes: &[u8], _: i32) -> SqlResult<Datum> {
    exactly(bytes).map(|b| Datum::Float32(f32::from_be_bytes(b)))
}

fn recv8(_: &TypeContext<'_>, _: &TypeDesc, bytes: &[u8], _: i32) -> SqlResult<Datum> {
    exactly(bytes).map(|b| Datum::Float64(f64::from_be_bytes(b)))
}

/// `btfloat4cmp`.
pub fn compare4(
    _: &TypeContext<'_>,
    ty: &TypeDesc,
    _: &Collation,
    a: ValueRef<'_>,
    b: ValueRef<'_>,
) -> SqlResult<Ordering> {
    Ok(order(f64::from(get::f32(ty, a)?), f64::from(get::f32(ty, b)?)))
}

/// `btfloat8cmp`.
pub fn compare8(
    _: &TypeContext<'_>,
    ty: &TypeDesc,
    _: &Collation,
    a: ValueRef<'_>,
    b: ValueRef<'_>,
) -> SqlResult<Ordering> {
    Ok(order(get::f64(ty, a)?, get::f64(ty, b)?))
}

fn key4(_: &TypeContext<'_>, ty: &TypeDesc, _: &Collation, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    key::f32(get::f32(ty, v)?, out);
    Ok(())
}

fn key8(_: &TypeContext<'_>, ty: &TypeDesc, _: &Collation, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    key::f64(get::f64(ty, v)?, out);
    Ok(())
}

/// Both widths hash as `float8`, zeros as the seed, and every NaN as one.
fn hash_f64(v: f64, seed: u64) -> u64 {
    if v == 0.0 {
        return seed;
    }
    let v = if v.is_nan() { f64::from_bits(0x7FF8_0000_0000_0000) } else { v };
    hash::bytes_extended(&v.to_le_bytes(), seed)
}

fn hash4(_: &TypeContext<'_>, ty: &TypeDesc, _: &Collation, v: ValueRef<'_>, seed: u64) -> SqlResult<u64> {
    Ok(hash_f64(f64::from(get::f32(ty, v)?), seed))
}

fn hash8(_: &TypeContext<'_>, ty: &TypeDesc, _: &Collation, v: ValueRef<'_>, seed: u64) -> SqlResult<u64> {
    Ok(hash_f64(get::f64(ty, v)?, seed))
}
