//! Small numbers without allocation: a payload as an integer and a scale.

use super::{DEC_DIGITS, NBASE, View, digits_of};
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
