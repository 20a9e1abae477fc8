//! Roots, exponentials, logarithms and powers.
//!
//! Each computes as PostgreSQL does, with its intermediate scales, so that results have its digits: roots by integer
//! square roots, `exp` and `ln` by Taylor series after reducing the argument, powers by repeated squaring or through both.

use super::arith::{MAX_DISPLAY_SCALE, MIN_SIG_DIGITS, division_by_zero, result_scale};
use super::{DEC_DIGITS, NBASE, Number, Numeric, WEIGHT_MAX, overflow};
use crate::{SqlError, SqlResult, SqlState};

/// Twice the greatest precision: the bound of exponents that are tried at all.
const MAX_RESULT_SCALE: i32 = 2000;
/// PostgreSQL's own, a bit short: the estimates must be the same.
#[allow(clippy::approx_constant)]
const LOG10_E: f64 = 0.434_294_481_903_252;
#[allow(clippy::approx_constant)]
const LOG10_2: f64 = 0.301_029_995_663_981;

fn one() -> Number {
    Number::from(1i64)
}

/// 0.9 and 1.1.
fn near_one() -> (Number, Number) {
    (
        Number { negative: false, weight: -1, dscale: 1, digits: vec![9000] },
        Number { negative: false, weight: 0, dscale: 1, digits: vec![1, 1000] },
    )
}

fn power_error(message: &str) -> SqlError {
    SqlError::new(SqlState::InvalidArgumentForPowerFunction, message)
}

fn log_error(message: &str) -> SqlError {
    SqlError::new(SqlState::InvalidArgumentForLogarithm, message)
}

const NEGATIVE_ROOT: &str = "cannot take square root of a negative number";
const LOG_OF_ZERO: &str = "cannot take logarithm of zero";
const LOG_OF_NEGATIVE: &str = "cannot take logarithm of a negative number";
const COMPLEX: &str = "a negative number raised to a non-integer power yields a complex result";
const ZERO_TO_NEGATIVE: &str = "zero raised to a negative power is undefined";

/// The greatest integer whose square is not above `n`.
fn integer_root(n: &Number) -> SqlResult<Number> {
    if let Some(small) = (n.weight < 9).then(|| n.to_i128()).flatten() {
        return Ok(Number::from((small.unsigned_abs().isqrt()) as i128));
    }
    // Newton's iteration from above: the root of the first 34 to 37 decimal digits, plus one, shifted.
    let kept = if n.weight % 2 == 0 { 9 } else { 8 };
    let head = Number { negative: false, weight: kept - 1, dscale: 0, digits: n.digits.clone() }.trunc(0);
    let root = head.to_i128().map_or(0, |v| v.unsigned_abs().isqrt()) as i128 + 1;
    let mut x = Number::from(root);
    x.weight += (n.weight + 1 - kept) / 2;
    loop {
        let next = x.add(&n.div(&x, 0, false)?);
        let next = next.div(&Number::from(2i64), 0, false)?;
        if next.order(&x).is_ge() {
            return Ok(x);
        }
        x = next;
    }
}

impl Number {
    /// The square root to `rscale` decimals (negative: before the point).
    pub(crate) fn sqrt_to(&self, rscale: i32) -> SqlResult<Number> {
        if self.is_zero() {
            return Ok(Number::zero().with_scale(rscale));
        }
        if self.negative {
            return Err(power_error(NEGATIVE_ROOT));
        }
        // The integer root of self * 10000^(2 * shift), one decimal more than asked at least.
        let shift = (rscale + 1).div_euclid(DEC_DIGITS) + 1;
        let mut scaled = self.clone();
        scaled.weight += 2 * shift;
        let mut scaled = scaled.trunc(0);
        if scaled.is_zero() {
            // Nothing is left before the point: the root rounds to zero.
            return Ok(Number::zero().with_scale(rscale));
        }
        scaled.dscale = 0;
        let mut root = integer_root(&scaled)?;
        root.weight -= shift;
        Ok(root.round(rscale))
    }

    /// e to this power, to `rscale` decimals.
    pub(crate) fn exp_to(&self, rscale: i32) -> SqlResult<Number> {
        let mut x = self.clone();
        let mut value = x.to_f64_saturating();
        if value.abs() >= f64::from(MAX_RESULT_SCALE * 3) {
            if value > 0.0 {
                return Err(overflow());
            }
            return Ok(Number::zero().with_scale(rscale));
        }
        let dweight = (value * LOG10_E) as i32;
        // Halve the argument until it is small.
        let mut halvings = 0;
        while value.abs() > 0.01 {
            halvings += 1;
            value /= 2.0;
        }
        if halvings > 0 {
            let local = x.dscale + halvings;
            x = x.div_int(1 << halvings, local)?;
        }
        let sig_digits = (1 + dweight + rscale + (f64::from(halvings) * LOG10_2) as i32).max(0) + 8;
        let local = sig_digits - 1;
        // 1 + x + x^2/2! + …
        let mut result = one().add(&x);
        let mut term = x.mul_to(&x, local).div_int(2, local)?;
        let mut n = 2;
        while !term.is_zero() {
            result = result.add(&term);
            n += 1;
            term = term.mul_to(&x, local).div_int(n, local)?;
        }
        for _ in 0..halvings {
            let local = (sig_digits - result.weight * 2 * DEC_DIGITS).max(0);
            result = result.mul_to(&result, local);
        }
        Ok(result.round(rscale))
    }

    /// The decimal weight of the natural logarithm's first digit, roughly; 0 where there is no logarithm.
    fn ln_dweight(&self) -> i32 {
        if self.negative {
            return 0;
        }
        let (low, high) = near_one();
        if self.order(&low).is_ge() && self.order(&high).is_le() {
            // ln(1 + x) is about x.
            let x = self.sub(&one());
            return x.digits.first().map_or(0, |d| x.weight * DEC_DIGITS + f64::from(*d).log10() as i32);
        }
        let Some(first) = self.digits.first() else { return 0 };
        let mut digits = f64::from(*first);
        let mut dweight = self.weight * DEC_DIGITS;
        if let Some(second) = self.digits.get(1) {
            digits = digits * f64::from(NBASE) + f64::from(*second);
            dweight -= DEC_DIGITS;
        }
        let ln = digits.ln() + f64::from(dweight) * std::f64::consts::LN_10;
        ln.abs().log10() as i32
    }

    /// The natural logarithm to `rscale` decimals.
    fn ln_to(&self, rscale: i32) -> SqlResult<Number> {
        match self.sign() {
            0 => return Err(log_error(LOG_OF_ZERO)),
            -1 => return Err(log_error(LOG_OF_NEGATIVE)),
            _ => {}
        }
        let (low, high) = near_one();
        let mut x = self.clone();
        let mut factor = Number::from(2i64);
        let mut roots = 0;
        while x.order(&low).is_le() || x.order(&high).is_ge() {
            x = x.sqrt_to(rscale - x.weight * DEC_DIGITS / 2 + 8)?;
            factor = factor.add(&factor);
            roots += 1;
        }
        // 2 * (z + z^3/3 + z^5/5 + …), z = (x - 1) / (x + 1).
        let local = rscale + (f64::from(roots + 1) * LOG10_2) as i32 + 8;
        let mut result = x.sub(&one()).div(&x.add(&one()), local, true)?;
        let mut power = result.clone();
        let square = result.mul_to(&result, local);
        let mut n = 1;
        loop {
            n += 2;
            power = power.mul_to(&square, local);
            let term = power.div_int(n, local)?;
            if term.is_zero() {
                break;
            }
            result = result.add(&term);
            if term.weight < result.weight - local * 2 / DEC_DIGITS {
                break;
            }
        }
        Ok(result.mul_to(&factor, rscale))
    }

    /// The logarithm of `self` to a base, with a scale of its own.
    fn log_to(&self, base: &Number) -> SqlResult<Number> {
        let base_dweight = base.ln_dweight();
        let self_dweight = self.ln_dweight();
        let dweight = self_dweight - base_dweight;
        let rscale = result_scale(MIN_SIG_DIGITS - dweight, &[base.dscale, self.dscale]);
        let ln_base = base.ln_to((rscale + dweight - base_dweight + 8).max(0))?;
        let ln_self = self.ln_to((rscale + dweight - self_dweight + 8).max(0))?;
        ln_self.div(&ln_base, rscale, true)
    }

    /// This number to a power, with a scale of its own.
    fn pow(&self, exponent: &Number) -> SqlResult<Number> {
        if exponent.is_integral()
            && let Some(whole) = exponent.to_i128().and_then(|v| i32::try_from(v).ok())
        {
            return self.pow_int(whole, exponent.dscale);
        }
        if self.is_zero() {
            return Ok(Number::zero().with_scale(MIN_SIG_DIGITS));
        }
        let mut negative = false;
        if self.negative {
            if !exponent.is_integral() {
                return Err(power_error(COMPLEX));
            }
            negative = exponent.is_odd_integer();
        }
        let base = self.abs();
        let ln_dweight = base.ln_dweight();
        // A first, rough computation says how large the result is.
        let local = (8 - ln_dweight).max(0);
        let mut value = base.ln_to(local)?.mul_to(exponent, local).to_f64_saturating();
        if value.abs() > f64::from(MAX_RESULT_SCALE) * 3.01 {
            if value > 0.0 {
                return Err(overflow());
            }
            return Ok(Number::zero().with_scale(MAX_DISPLAY_SCALE));
        }
        value *= LOG10_E;
        let rscale = result_scale(MIN_SIG_DIGITS - value as i32, &[base.dscale, exponent.dscale]);
        let sig_digits = (rscale + value as i32).max(0);
        let local = (sig_digits - ln_dweight + 8).max(0);
        let mut result = base.ln_to(local)?.mul_to(exponent, local).exp_to(rscale)?;
        result.negative = negative && !result.is_zero();
        Ok(result)
    }

    fn pow_int(&self, exponent: i32, exponent_scale: i32) -> SqlResult<Number> {
        // The decimal weight of the result, roughly.
        let mut estimate = 0.0;
        if let Some((first, rest)) = self.digits.split_first() {
            let mut f = f64::from(*first);
            let mut p = self.weight * DEC_DIGITS;
            for digit in rest.iter().take(3) {
                f = f * f64::from(NBASE) + f64::from(*digit);
                p -= DEC_DIGITS;
            }
            estimate = f64::from(exponent) * (f.log10() + f64::from(p));
        }
        if estimate > f64::from((WEIGHT_MAX + 1) * DEC_DIGITS) {
            return Err(overflow());
        }
        if estimate + 1.0 < f64::from(-MAX_DISPLAY_SCALE) {
            return Ok(Number::zero().with_scale(MAX_DISPLAY_SCALE));
        }
        let rscale = result_scale(MIN_SIG_DIGITS - estimate as i32, &[self.dscale, exponent_scale]);
        match exponent {
            0 => return Ok(one().with_scale(rscale)),
            1 => return Ok(self.clone().round(rscale)),
            -1 => return one().div(self, rscale, true),
            2 => return Ok(self.mul_to(self, rscale)),
            _ => {}
        }
        if self.is_zero() {
            if exponent < 0 {
                return Err(division_by_zero());
            }
            return Ok(Number::zero().with_scale(rscale));
        }
        let sig_digits = 1 + rscale + estimate as i32 + f64::from(exponent).abs().ln() as i32 + 8;
        let mut mask = exponent.unsigned_abs();
        let mut square = self.clone();
        let mut result = if mask & 1 == 1 { self.clone() } else { one() };
        loop {
            mask >>= 1;
            if mask == 0 {
                break;
            }
            let local = (sig_digits - 2 * square.weight * DEC_DIGITS).min(2 * square.dscale).max(0);
            square = square.mul_to(&square, local);
            if mask & 1 == 1 {
                let local = (sig_digits - (square.weight + result.weight) * DEC_DIGITS)
                    .min(square.dscale + result.dscale)
                    .max(0);
                result = square.mul_to(&result, local);
            }
            if square.weight > WEIGHT_MAX || result.weight > WEIGHT_MAX {
                if exponent > 0 {
                    return Err(overflow());
                }
                return Ok(Number::zero().with_scale(rscale));
            }
        }
        if exponent < 0 { one().div(&result, rscale, true) } else { Ok(result.round(rscale)) }
    }
}

impl Numeric {
    /// `sqrt(a)`.
    pub fn sqrt(&self) -> SqlResult<Numeric> {
        match self {
            Numeric::Finite(a) => {
                let whole_digits = a.weight * DEC_DIGITS / 2 + 1;
                let rscale = result_scale(MIN_SIG_DIGITS - whole_digits, &[a.dscale]);
                a.sqrt_to(rscale).map(Numeric::Finite)
            }
            Numeric::NegInf => Err(power_error(NEGATIVE_ROOT)),
            special => Ok(special.clone()),
        }
    }

    /// `exp(a)`.
    pub fn exp(&self) -> SqlResult<Numeric> {
        match self {
            Numeric::Finite(a) => {
                let limit = f64::from(MAX_RESULT_SCALE);
                let weight = (a.to_f64_saturating() * LOG10_E).clamp(-limit, limit) as i32;
                a.exp_to(result_scale(MIN_SIG_DIGITS - weight, &[a.dscale])).map(Numeric::Finite)
            }
            Numeric::NegInf => Ok(Numeric::ZERO),
            special => Ok(special.clone()),
        }
    }

    /// `ln(a)`.
    pub fn ln(&self) -> SqlResult<Numeric> {
        match self {
            Numeric::Finite(a) => {
                a.ln_to(result_scale(MIN_SIG_DIGITS - a.ln_dweight(), &[a.dscale])).map(Numeric::Finite)
            }
            Numeric::NegInf => Err(log_error(LOG_OF_NEGATIVE)),
            special => Ok(special.clone()),
        }
    }

    /// `log(base, a)`.
    pub fn log(&self, base: &Numeric) -> SqlResult<Numeric> {
        match (base, self) {
            (Numeric::Finite(base), Numeric::Finite(a)) => return a.log_to(base).map(Numeric::Finite),
            (Numeric::NaN, _) | (_, Numeric::NaN) => return Ok(Numeric::NaN),
            _ => {}
        }
        if base.sign() < 0 || self.sign() < 0 {
            return Err(log_error(LOG_OF_NEGATIVE));
        }
        if base.sign() == 0 || self.sign() == 0 {
            return Err(log_error(LOG_OF_ZERO));
        }
        Ok(match (base, self) {
            (Numeric::PosInf, Numeric::PosInf) => Numeric::NaN,
            (Numeric::PosInf, _) => Numeric::ZERO,
            _ => Numeric::PosInf,
        })
    }

    /// `log(a)`: to base 10.
    pub fn log10(&self) -> SqlResult<Numeric> {
        self.log(&Numeric::from(10i64))
    }

    /// `power(a, b)`.
    pub fn pow(&self, exponent: &Numeric) -> SqlResult<Numeric> {
        let is_one = |v: &Numeric| v.finite().is_some_and(|n| n.order(&one()).is_eq());
        // POSIX: NaN ^ 0 = 1 and 1 ^ NaN = 1.
        if self.is_nan() {
            return Ok(if exponent.sign() == 0 { Numeric::one() } else { Numeric::NaN });
        }
        if exponent.is_nan() {
            return Ok(if is_one(self) { Numeric::one() } else { Numeric::NaN });
        }
        let (sign, exponent_sign) = (self.sign(), exponent.sign());
        if sign == 0 && exponent_sign < 0 {
            return Err(power_error(ZERO_TO_NEGATIVE));
        }
        if sign < 0 && exponent.finite().is_some_and(|n| !n.is_integral()) {
            return Err(power_error(COMPLEX));
        }
        match (self, exponent) {
            (Numeric::Finite(a), Numeric::Finite(b)) => return a.pow(b).map(Numeric::Finite),
            _ if is_one(self) || exponent_sign == 0 => return Ok(Numeric::one()),
            _ if sign == 0 => return Ok(Numeric::ZERO),
            (Numeric::Finite(a), _) => {
                let magnitude = a.abs().order(&one());
                if magnitude.is_eq() {
                    return Ok(Numeric::one());
                }
                return Ok(if magnitude.is_gt() == (exponent_sign > 0) { Numeric::PosInf } else { Numeric::ZERO });
            }
            _ => {}
        }
        Ok(match exponent {
            _ if exponent_sign < 0 => Numeric::ZERO,
            Numeric::Finite(b) if sign < 0 && b.is_odd_integer() => Numeric::NegInf,
            _ => Numeric::PosInf,
        })
    }

    /// `factorial(n)`.
    pub fn factorial(n: i64) -> SqlResult<Numeric> {
        if n < 0 {
            return Err(SqlError::new(SqlState::NumericValueOutOfRange, "factorial of a negative number is undefined"));
        }
        if n > 32177 {
            return Err(overflow());
        }
        let mut result = one();
        for factor in 2..=n {
            result = result.mul(&Number::from(factor));
        }
        Ok(Numeric::Finite(result))
    }
}
