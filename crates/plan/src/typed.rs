//! Values of types whose form only the registry of types knows.

use std::cmp::Ordering;

use stegodon_catalog::Catalog;
use stegodon_format::ids::Oid;
use stegodon_types::Datum;

/// How two values of one type relate.
pub fn compare(_catalog: &Catalog, _type_oid: Oid, left: &Datum, right: &Datum) -> Option<Ordering> {
    // Equal bytes are equal values in every type; which of two different ones is first is not known here.
    (left == right).then_some(Ordering::Equal)
}

/// A value as a number, for interpolation.
pub fn number(type_oid: Oid, value: &Datum) -> Option<f64> {
    match type_oid.0 {
        1700 => numeric(value.as_bytes()?),
        1186 => interval(value.as_bytes()?),
        _ => None,
    }
}

/// `numeric`'s payload: a header of 16 or 32 bits, then base-10000 digits.
fn numeric(b: &[u8]) -> Option<f64> {
    let head = u16::from_le_bytes(b.get(..2)?.try_into().ok()?);
    let (negative, weight, digits) = match head >> 14 {
        0b11 => return None,
        // Short: sign, scale and a seven-bit weight in one word.
        0b10 => {
            let weight = i32::from(head & 0x3f) - if head & 0x40 != 0 { 0x40 } else { 0 };
            (head & 0x2000 != 0, weight, b.get(2..)?)
        }
        sign => {
            let weight = i16::from_le_bytes(b.get(2..4)?.try_into().ok()?);
            (sign == 1, i32::from(weight), b.get(4..)?)
        }
    };
    let mut out = 0.0;
    let mut scale = 10_000f64.powi(weight);
    for pair in digits.chunks_exact(2) {
        out += f64::from(u16::from_le_bytes(pair.try_into().ok()?)) * scale;
        scale /= 10_000.0;
    }
    Some(if negative { -out } else { out })
}

/// `interval`: microseconds, days, months; a month is 365.25 / 12 days here.
fn interval(b: &[u8]) -> Option<f64> {
    let us = i64::from_le_bytes(b.get(..8)?.try_into().ok()?);
    let days = i32::from_le_bytes(b.get(8..12)?.try_into().ok()?);
    let months = i32::from_le_bytes(b.get(12..16)?.try_into().ok()?);
    Some(us as f64 + f64::from(days) * 86_400e6 + f64::from(months) * (365.25 / 12.0 * 86_400e6))
}
