//! `money`: cents in an `int8`, printed as in `lc_monetary = C`.

use crate::ops::get;
use crate::scalar::int::{IntError, int8, write_unsigned};
use crate::scalar::is_space;
use crate::{Datum, SqlResult, TypeContext, TypeDesc, TypeOps, ValueRef};

/// `money`. It has no hash operator class.
pub static OPS: TypeOps = TypeOps { text_out, text_in, hash: None, ..int8::OPS };

const FRACTION_DIGITS: u32 = 2;

fn text_out(_: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    let cents = get::i64(ty, v)?;
    if cents < 0 {
        out.push(b'-');
    }
    out.push(b'$');
    let unit = 10u64.pow(FRACTION_DIGITS);
    let mut digits = Vec::new();
    write_unsigned(cents.unsigned_abs() / unit, &mut digits);
    for (at, digit) in digits.iter().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            out.push(b',');
        }
        out.push(*digit);
    }
    let fraction = cents.unsigned_abs() % unit;
    out.extend_from_slice(format!(".{fraction:02}").as_bytes());
    Ok(())
}

fn skip_space(text: &[u8]) -> &[u8] {
    text.get(text.iter().take_while(|b| is_space(**b)).count()..).unwrap_or_default()
}

fn skip_symbol(text: &[u8]) -> &[u8] {
    let text = skip_space(text);
    skip_space(text.strip_prefix(b"$").unwrap_or(text))
}

/// `cash_in` with C's symbols. Built below zero, where there is one value more.
fn parse(text: &[u8]) -> Result<i64, IntError> {
    let mut rest = skip_symbol(text);
    let mut negative = false;
    match rest {
        [b'-' | b'(', tail @ ..] => {
            negative = true;
            rest = tail;
        }
        [b'+', tail @ ..] => rest = tail,
        _ => {}
    }
    rest = skip_symbol(rest);
    let mut value = 0i64;
    let mut decimals = None;
    while let [b, tail @ ..] = rest {
        match b {
            b'0'..=b'9' if decimals.is_none_or(|n| n < FRACTION_DIGITS) => {
                let digit = i64::from(b - b'0');
                value = value.checked_mul(10).and_then(|v| v.checked_sub(digit)).ok_or(IntError::Range)?;
                decimals = decimals.map(|n| n + 1);
            }
            b'.' if decimals.is_none() => decimals = Some(0),
            b',' => {}
            _ => break,
        }
        rest = tail;
    }
    if matches!(rest, [b'5'..=b'9', ..]) {
        value = value.checked_sub(1).ok_or(IntError::Range)?;
    }
    for _ in decimals.unwrap_or(0)..FRACTION_DIGITS {
        value = value.checked_mul(10).ok_or(IntError::Range)?;
    }
    rest = rest.get(rest.iter().take_while(|b| b.is_ascii_digit()).count()..).unwrap_or_default();
    for b in rest {
        match b {
            b')' | b'+' | b'$' => {}
            b'-' => negative = true,
            b if is_space(*b) => {}
            _ => return Err(IntError::Syntax),
        }
    }
    if negative { Ok(value) } else { value.checked_neg().ok_or(IntError::Range) }
}

fn text_in(_: &TypeContext<'_>, _: &TypeDesc, text: &[u8], _: i32) -> SqlResult<Datum> {
    parse(text).map(Datum::Int64).map_err(|e| e.of("money", text))
}
