//! Small numbers without allocation: a payload as an integer and a scale. The operators on payloads take this way where
//! they can, and the general one where they cannot.

use super::{DEC_DIGITS, NBASE, Number, Numeric, View, digits_of};
use crate::SqlResult;

/// A payload as `value * 10^-scale`, `scale` being its display scale; `None` where it is not finite or its digits do not
/// fit 36 decimal places.
pub fn scaled_i128(payload: &[u8]) -> SqlResult<Option<(i128, i32)>> {
    let View::Finite { negative, weight, dscale, digits } = View::new(payload)? else { return Ok(None) };
    // Base-10000 digits down to the one that holds the last decimal shown.
    let fraction = (dscale + DEC_DIGITS - 1) / DEC_DIGITS;
    if weight >= 9 || fraction >= 9 || weight + 1 + fraction > 9 {
        return Ok(None);
    }
    let places = (weight + 1 + fraction).max(0) as usize;
    if digits.len() / 2 > places {
        return Ok(None);
    }
    let mut value = 0i128;
    for digit in digits_of(digits).chain(std::iter::repeat(0)).take(places) {
        value = value * i128::from(NBASE) + i128::from(digit);
    }
    // The last digit's decimals beyond the scale are zero, by the form's invariant.
    let beyond = fraction * DEC_DIGITS - dscale;
    let unit = 10i128.pow(beyond as u32);
    if value % unit != 0 {
        return Ok(None);
    }
    value /= unit;
    Ok(Some((if negative { -value } else { value }, dscale)))
}

/// `value * 10^-scale` as a number of this scale.
pub(super) fn number_of(value: i128, scale: i32) -> Number {
    let mut rest = value.unsigned_abs();
    // The last base-10000 digit begins at a multiple of four decimals.
    let fraction = (scale + DEC_DIGITS - 1) / DEC_DIGITS;
    let missing = (fraction * DEC_DIGITS - scale) as u32;
    let mut digits = Vec::with_capacity(12);
    if missing > 0 {
        let cut = 10u128.pow(DEC_DIGITS as u32 - missing);
        digits.push((rest % cut) as u16 * 10u16.pow(missing));
        rest /= cut;
    }
    while rest > 0 {
        digits.push((rest % u128::from(NBASE)) as u16);
        rest /= u128::from(NBASE);
    }
    digits.reverse();
    let weight = digits.len() as i32 - 1 - fraction;
    Number { negative: value < 0, weight, dscale: scale, digits }.normalize()
}

/// Appends the payload of `value * 10^-scale`.
pub fn write_scaled(value: i128, scale: i32, out: &mut Vec<u8>) -> SqlResult<()> {
    Numeric::Finite(number_of(value, scale)).write_payload(out)
}

/// Both operands as integers of one scale.
fn aligned(a: &[u8], b: &[u8]) -> SqlResult<Option<(i128, i128, i32)>> {
    let (Some((a, a_scale)), Some((b, b_scale))) = (scaled_i128(a)?, scaled_i128(b)?) else { return Ok(None) };
    let scale = a_scale.max(b_scale);
    let raise = |v: i128, by: i32| 10i128.checked_pow(by as u32).and_then(|unit| v.checked_mul(unit));
    Ok(raise(a, scale - a_scale).zip(raise(b, scale - b_scale)).map(|(a, b)| (a, b, scale)))
}

/// Appends the payload of `a + b`.
pub fn add_payloads(a: &[u8], b: &[u8], out: &mut Vec<u8>) -> SqlResult<()> {
    if let Some((x, y, scale)) = aligned(a, b)?
        && let Some(sum) = x.checked_add(y)
    {
        return write_scaled(sum, scale, out);
    }
    Numeric::from_payload(a)?.add(&Numeric::from_payload(b)?).write_payload(out)
}

/// Appends the payload of `a - b`.
pub fn sub_payloads(a: &[u8], b: &[u8], out: &mut Vec<u8>) -> SqlResult<()> {
    if let Some((x, y, scale)) = aligned(a, b)?
        && let Some(difference) = x.checked_sub(y)
    {
        return write_scaled(difference, scale, out);
    }
    Numeric::from_payload(a)?.sub(&Numeric::from_payload(b)?).write_payload(out)
}

/// Appends the payload of `a * b`.
pub fn mul_payloads(a: &[u8], b: &[u8], out: &mut Vec<u8>) -> SqlResult<()> {
    if let (Some((x, x_scale)), Some((y, y_scale))) = (scaled_i128(a)?, scaled_i128(b)?)
        && let Some(product) = x.checked_mul(y)
    {
        return write_scaled(product, x_scale + y_scale, out);
    }
    Numeric::from_payload(a)?.mul(&Numeric::from_payload(b)?).write_payload(out)
}
