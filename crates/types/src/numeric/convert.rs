//! To and from the other numbers.

use super::{NBASE, Number, Numeric, parse};
use crate::scalar::float;
use crate::{SqlError, SqlResult, SqlState};

impl From<i128> for Number {
    fn from(v: i128) -> Self {
        let mut digits = Vec::new();
        let mut rest = v.unsigned_abs();
        while rest > 0 {
            digits.push((rest % u128::from(NBASE)) as u16);
            rest /= u128::from(NBASE);
        }
        digits.reverse();
        let weight = digits.len() as i32 - 1;
        Number { negative: v < 0, weight, dscale: 0, digits }.normalize()
    }
}

impl From<i64> for Number {
    fn from(v: i64) -> Self {
        Number::from(i128::from(v))
    }
}

impl From<i128> for Numeric {
    fn from(v: i128) -> Self {
        Numeric::Finite(v.into())
    }
}

impl From<i64> for Numeric {
    fn from(v: i64) -> Self {
        Numeric::Finite(v.into())
    }
}

impl From<u64> for Numeric {
    fn from(v: u64) -> Self {
        Numeric::Finite(i128::from(v).into())
    }
}

impl Number {
    /// The whole number that it is, rounded half away from zero; `None` where it is too large.
    pub fn to_i128(&self) -> Option<i128> {
        let whole = self.clone().round(0);
        let mut value = 0i128;
        for at in 0..=whole.weight.max(-1) {
            let digit = whole.digits.get(at as usize).copied().unwrap_or(0);
            // Built below zero, where there is one value more.
            value = value.checked_mul(i128::from(NBASE))?.checked_sub(i128::from(digit))?;
        }
        if whole.negative { Some(value) } else { value.checked_neg() }
    }

    /// The nearest double, infinite where it is beyond all.
    pub(crate) fn to_f64_saturating(&self) -> f64 {
        Numeric::Finite(self.clone()).text().parse().unwrap_or(f64::INFINITY)
    }
}

fn cannot_convert(what: &str, to: &str) -> SqlError {
    SqlError::new(SqlState::FeatureNotSupported, format!("cannot convert {what} to {to}"))
}

impl Numeric {
    fn to_integer(&self, name: &str) -> SqlResult<Option<i128>> {
        match self {
            Numeric::Finite(number) => Ok(number.to_i128()),
            Numeric::NaN => Err(cannot_convert("NaN", name)),
            Numeric::PosInf | Numeric::NegInf => Err(cannot_convert("infinity", name)),
        }
    }

    fn integer<T: TryFrom<i128>>(&self, name: &str) -> SqlResult<T> {
        self.to_integer(name)?
            .and_then(|v| T::try_from(v).ok())
            .ok_or_else(|| SqlError::new(SqlState::NumericValueOutOfRange, format!("{name} out of range")))
    }

    /// `int2(a)`: rounded half away from zero.
    pub fn to_i16(&self) -> SqlResult<i16> {
        self.integer("smallint")
    }

    /// `int4(a)`: rounded half away from zero.
    pub fn to_i32(&self) -> SqlResult<i32> {
        self.integer("integer")
    }

    /// `int8(a)`: rounded half away from zero.
    pub fn to_i64(&self) -> SqlResult<i64> {
        self.integer("bigint")
    }

    /// `float8(a)`.
    pub fn to_f64(&self) -> SqlResult<f64> {
        match self {
            Numeric::NaN => Ok(f64::NAN),
            Numeric::PosInf => Ok(f64::INFINITY),
            Numeric::NegInf => Ok(f64::NEG_INFINITY),
            Numeric::Finite(_) => float::parse_f64(self.text().as_bytes()),
        }
    }

    /// `float4(a)`.
    pub fn to_f32(&self) -> SqlResult<f32> {
        match self {
            Numeric::NaN => Ok(f32::NAN),
            Numeric::PosInf => Ok(f32::INFINITY),
            Numeric::NegInf => Ok(f32::NEG_INFINITY),
            Numeric::Finite(_) => float::parse_f32(self.text().as_bytes()),
        }
    }

    /// `numeric(a)` of a `float8`: its first 15 significant digits.
    pub fn from_f64(v: f64) -> SqlResult<Numeric> {
        Self::from_float(v, v.is_infinite().then_some(v > 0.0), format!("{v:.14e}"))
    }

    /// `numeric(a)` of a `float4`: its first 6 significant digits.
    pub fn from_f32(v: f32) -> SqlResult<Numeric> {
        Self::from_float(f64::from(v), v.is_infinite().then_some(v > 0.0), format!("{v:.5e}"))
    }

    /// PostgreSQL goes through `printf`'s `%g`, which drops trailing zeros.
    fn from_float(v: f64, infinite: Option<bool>, scientific: String) -> SqlResult<Numeric> {
        match infinite {
            Some(true) => return Ok(Numeric::PosInf),
            Some(false) => return Ok(Numeric::NegInf),
            None if v.is_nan() => return Ok(Numeric::NaN),
            None => {}
        }
        let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
        let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
        parse(format!("{mantissa}e{exponent}").as_bytes())
    }
}
