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

/// Base-10000 digits of a small number, first to last, without zeros at either end.
struct SmallDigits {
    /// An `i128` has at most 39 decimals, which begin anywhere in a digit.
    digits: [u16; 12],
    start: usize,
    end: usize,
    /// The weight of the first.
    weight: i32,
}

impl SmallDigits {
    fn new(value: i128, scale: i32) -> Self {
        let mut rest = value.unsigned_abs();
        let mut small = SmallDigits { digits: [0; 12], start: 12, end: 12, weight: 0 };
        // The last base-10000 digit begins at a multiple of four decimals.
        let fraction = (scale + DEC_DIGITS - 1) / DEC_DIGITS;
        let missing = (fraction * DEC_DIGITS - scale) as u32;
        let mut cut = 10u128.pow(DEC_DIGITS as u32 - missing);
        let mut raise = 10u16.pow(missing);
        for (weight, (at, place)) in (-fraction..).zip(small.digits.iter_mut().enumerate().rev()) {
            if rest == 0 {
                break;
            }
            *place = (rest % cut) as u16 * raise;
            rest /= cut;
            (cut, raise) = (u128::from(NBASE), 1);
            if *place == 0 && small.end == at + 1 {
                small.end = at;
            }
            (small.start, small.weight) = (at, weight);
        }
        small
    }

    fn digits(&self) -> &[u16] {
        self.digits.get(self.start..self.end).unwrap_or_default()
    }
}

/// `value * 10^-scale` as a number of this scale.
pub(super) fn number_of(value: i128, scale: i32) -> Number {
    let small = SmallDigits::new(value, scale);
    Number { negative: value < 0, weight: small.weight, dscale: scale, digits: small.digits().to_vec() }.normalize()
}

/// Appends the payload of `value * 10^-scale`.
pub fn write_scaled(value: i128, scale: i32, out: &mut Vec<u8>) -> SqlResult<()> {
    let small = SmallDigits::new(value, scale);
    let weight = if value == 0 { 0 } else { small.weight };
    super::write_parts(value < 0, weight, scale, small.digits(), out)
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
