//! Constants compared and placed on a scale, for estimates only.

use std::cmp::Ordering;

use stegodon_catalog::Catalog;
use stegodon_format::ids::Oid;
use stegodon_types::Datum;

use crate::rel::is_c_like;

fn integer(d: &Datum) -> Option<i128> {
    Some(match d {
        Datum::Int16(v) => i128::from(*v),
        Datum::Int32(v) => i128::from(*v),
        Datum::UInt32(v) => i128::from(*v),
        Datum::Int64(v) => i128::from(*v),
        Datum::UInt64(v) => i128::from(*v),
        Datum::Char(v) => i128::from(*v),
        Datum::Bool(v) => i128::from(*v),
        _ => return None,
    })
}

fn float(d: &Datum) -> Option<f64> {
    match d {
        Datum::Float32(v) => Some(f64::from(*v)),
        Datum::Float64(v) => Some(*v),
        _ => None,
    }
}

/// The unit of an integer-like type: values compare only within one.
fn unit(type_oid: Oid) -> u8 {
    match type_oid.0 {
        20 | 21 | 23 => 1,
        1082 => 2,
        1114 | 1184 => 3,
        1083 => 4,
        16 => 5,
        18 => 6,
        26 | 24 | 2202 | 2203 | 2204 | 2205 | 2206 | 3734 | 3769 | 4089 | 4096 | 4191 => 7,
        _ => 0,
    }
}

/// Whether the type is text to [`compare`].
fn is_text(type_oid: Oid) -> bool {
    matches!(type_oid.0, 19 | 25 | 1042 | 1043 | 17)
}

/// How two values relate; `None` where that is not known here.
pub fn compare(
    catalog: &Catalog,
    (left_type, left): (Oid, &Datum),
    (right_type, right): (Oid, &Datum),
    collation: Oid,
) -> Option<Ordering> {
    if let (Some(a), Some(b)) = (float(left), float(right)) {
        // NaN is the greatest, and equal to itself; -0 equals 0.
        return Some(match (a.is_nan(), b.is_nan()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            _ => a.partial_cmp(&b)?,
        });
    }
    if let (Some(a), Some(b)) = (integer(left), integer(right)) {
        let same = left_type == right_type || (unit(left_type) != 0 && unit(left_type) == unit(right_type));
        return same.then(|| a.cmp(&b));
    }
    if let (Datum::Bytes(a), Datum::Bytes(b)) = (left, right) {
        if is_text(left_type) && is_text(right_type) {
            if !is_c_like(catalog, collation) && a != b && left_type.0 != 17 {
                // Which is first is not known, only that they differ.
                return None;
            }
            if left_type.0 == 1042 && right_type.0 == 1042 {
                return Some(trim(a).cmp(trim(b)));
            }
            return Some(a.as_ref().cmp(b.as_ref()));
        }
        if left_type == right_type {
            return crate::typed::compare(catalog, left_type, left, right);
        }
    }
    None
}

fn trim(b: &[u8]) -> &[u8] {
    let end = b.iter().rposition(|c| *c != b' ').map_or(0, |i| i + 1);
    b.get(..end).unwrap_or(b)
}

/// Where three values lie on one scale: value, low bound, high bound (`convert_to_scalar`).
pub fn scalars(
    (value_type, value): (Oid, &Datum),
    (bound_type, low, high): (Oid, &Datum, &Datum),
) -> Option<(f64, f64, f64)> {
    if is_text(value_type) && is_text(bound_type) {
        let (v, l, h) = (value.as_bytes()?, low.as_bytes()?, high.as_bytes()?);
        if value_type.0 == 17 {
            return Some(byte_scalars(v, l, h));
        }
        return Some(text_scalars(v, l, h));
    }
    Some((number(value_type, value)?, number(bound_type, low)?, number(bound_type, high)?))
}

/// A value as a number on its type's scale.
pub fn number(type_oid: Oid, d: &Datum) -> Option<f64> {
    if let Some(f) = float(d) {
        return Some(f);
    }
    if let Some(i) = integer(d) {
        return match type_oid.0 {
            // Dates count days, timestamps microseconds.
            1082 => match i {
                n if n == i128::from(i32::MIN) => Some(f64::MIN),
                n if n == i128::from(i32::MAX) => Some(f64::MAX),
                n => Some(n as f64 * 86_400_000_000.0),
            },
            _ => Some(i as f64),
        };
    }
    crate::typed::number(type_oid, d)
}

/// Text as a fraction in a base that the bounds' characters suggest.
fn text_scalars(value: &[u8], low: &[u8], high: &[u8]) -> (f64, f64, f64) {
    let (mut range_low, mut range_high) = (255u8, 0u8);
    for &c in low.iter().chain(high) {
        range_low = range_low.min(c);
        range_high = range_high.max(c);
    }
    let mut widen = |a: u8, b: u8| {
        if range_low <= b && range_high >= a {
            range_low = range_low.min(a);
            range_high = range_high.max(b);
        }
    };
    widen(b'A', b'Z');
    widen(b'a', b'z');
    widen(b'0', b'9');
    // Little to go by: plain ASCII.
    if range_high.saturating_sub(range_low) < 9 || range_high < range_low {
        range_low = b' ';
        range_high = 127;
    }
    let shared = value.iter().zip(low).zip(high).take_while(|((v, l), h)| v == l && l == h).count();
    let rest = |b: &[u8]| text_fraction(b.get(shared..).unwrap_or_default(), range_low, range_high);
    (rest(value), rest(low), rest(high))
}

fn text_fraction(text: &[u8], low: u8, high: u8) -> f64 {
    let base = f64::from(high) - f64::from(low) + 1.0;
    let mut denominator = base;
    let mut out = 0.0;
    // Twelve characters decide; more only cost time.
    for &c in text.iter().take(12) {
        let c = if c < low {
            f64::from(low) - 1.0
        } else if c > high {
            f64::from(high) + 1.0
        } else {
            f64::from(c)
        };
        out += (c - f64::from(low)) / denominator;
        denominator *= base;
    }
    out
}

fn byte_scalars(value: &[u8], low: &[u8], high: &[u8]) -> (f64, f64, f64) {
    let shared = value.iter().zip(low).zip(high).take_while(|((v, l), h)| v == l && l == h).count();
    let rest = |b: &[u8]| {
        let mut denominator = 256.0;
        let mut out = 0.0;
        for &c in b.get(shared..).unwrap_or_default().iter().take(10) {
            out += f64::from(c) / denominator;
            denominator *= 256.0;
        }
        out
    };
    (rest(value), rest(low), rest(high))
}
