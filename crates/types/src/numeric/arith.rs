//! Addition to division, rounding, and their scales.
//!
//! Results have PostgreSQL's scales: the greater of the two for sums, differences and remainders, their sum for products,
//! and for quotients what gives at least 16 significant digits ([`Number::div_scale`]).

use std::cmp::Ordering;

use super::{DEC_DIGITS, DSCALE_MAX, NBASE, Number, Numeric, WEIGHT_MAX};
use crate::{SqlError, SqlResult, SqlState};

/// The least number of significant digits that a quotient or a function's result has.
pub(crate) const MIN_SIG_DIGITS: i32 = 16;
/// The greatest scale that such a result gets unless its arguments have more.
pub(crate) const MAX_DISPLAY_SCALE: i32 = 1000;

/// `22012`.
pub(crate) fn division_by_zero() -> SqlError {
    SqlError::new(SqlState::DivisionByZero, "division by zero")
}

/// `result scale` within its bounds: never below the arguments' own, at most 1000.
pub(crate) fn result_scale(wanted: i32, scales: &[i32]) -> i32 {
    scales.iter().fold(wanted, |max, s| max.max(*s)).clamp(0, MAX_DISPLAY_SCALE)
}

const NBASE_U32: u32 = NBASE as u32;

impl Number {
    pub(crate) fn with_scale(mut self, dscale: i32) -> Self {
        self.dscale = dscale;
        self
    }

    /// The digit of weight `weight`, 0 where there is none.
    fn digit_at(&self, weight: i32) -> u16 {
        usize::try_from(self.weight - weight).ok().and_then(|at| self.digits.get(at)).copied().unwrap_or(0)
    }

    /// The weight of the last digit.
    fn last_weight(&self) -> i32 {
        self.weight + 1 - self.digits.len() as i32
    }

    /// The sum of the magnitudes.
    fn add_abs(&self, other: &Number) -> Number {
        let dscale = self.dscale.max(other.dscale);
        if self.is_zero() {
            return Number { negative: false, dscale, ..other.clone() };
        }
        if other.is_zero() {
            return Number { negative: false, dscale, ..self.clone() };
        }
        let top = self.weight.max(other.weight) + 1;
        let bottom = self.last_weight().min(other.last_weight());
        let mut digits = vec![0; (top - bottom + 1) as usize];
        let mut carry = 0;
        for (place, weight) in digits.iter_mut().rev().zip(bottom..) {
            let sum = self.digit_at(weight) + other.digit_at(weight) + carry;
            carry = u16::from(sum >= NBASE);
            *place = sum - carry * NBASE;
        }
        Number { negative: false, weight: top, dscale, digits }.normalize()
    }

    /// The difference of the magnitudes; `self` has the greater one.
    fn sub_abs(&self, other: &Number) -> Number {
        let dscale = self.dscale.max(other.dscale);
        if other.is_zero() {
            return Number { negative: false, dscale, ..self.clone() };
        }
        let bottom = self.last_weight().min(other.last_weight());
        let mut digits = vec![0; (self.weight - bottom + 1) as usize];
        let mut borrow = 0;
        for (place, weight) in digits.iter_mut().rev().zip(bottom..) {
            let (minuend, subtrahend) = (self.digit_at(weight), other.digit_at(weight) + borrow);
            borrow = u16::from(minuend < subtrahend);
            *place = minuend + borrow * NBASE - subtrahend;
        }
        Number { negative: false, weight: self.weight, dscale, digits }.normalize()
    }

    /// The negated number.
    pub fn neg(&self) -> Number {
        Number { negative: !self.negative && !self.is_zero(), ..self.clone() }
    }

    /// The magnitude.
    pub fn abs(&self) -> Number {
        Number { negative: false, ..self.clone() }
    }

    fn with_sign(mut self, negative: bool) -> Number {
        self.negative = negative && !self.is_zero();
        self
    }

    /// The sum, exact.
    pub fn add(&self, other: &Number) -> Number {
        if self.negative == other.negative {
            return self.add_abs(other).with_sign(self.negative);
        }
        match self.cmp_abs(other) {
            Ordering::Equal => Number::zero().with_scale(self.dscale.max(other.dscale)),
            Ordering::Greater => self.sub_abs(other).with_sign(self.negative),
            Ordering::Less => other.sub_abs(self).with_sign(other.negative),
        }
    }

    /// The difference, exact.
    pub fn sub(&self, other: &Number) -> Number {
        self.add(&other.neg())
    }

    /// The product, exact; its scale is the sum of the scales.
    pub fn mul(&self, other: &Number) -> Number {
        let dscale = self.dscale + other.dscale;
        if self.is_zero() || other.is_zero() {
            return Number::zero().with_scale(dscale);
        }
        let (a, b) = (&self.digits, &other.digits);
        let mut sums = vec![0u64; a.len() + b.len()];
        for (i, x) in a.iter().enumerate() {
            let x = u64::from(*x);
            for (place, y) in sums.iter_mut().skip(i + 1).zip(b) {
                *place += x * u64::from(*y);
            }
        }
        let mut digits = vec![0u16; sums.len()];
        let mut carry = 0;
        for (digit, sum) in digits.iter_mut().zip(&sums).rev() {
            let total = sum + carry;
            carry = total / u64::from(NBASE);
            *digit = (total % u64::from(NBASE)) as u16;
        }
        let negative = self.negative != other.negative;
        Number { negative, weight: self.weight + other.weight + 1, dscale, digits }.normalize()
    }

    /// The product, rounded to `rscale` decimals.
    pub(crate) fn mul_to(&self, other: &Number, rscale: i32) -> Number {
        self.mul(other).round(rscale)
    }

    /// Rounds to `scale` decimals (negative: before the point), half away from zero.
    pub fn round(mut self, scale: i32) -> Number {
        self.dscale = scale;
        let kept = (self.weight + 1) * DEC_DIGITS + scale;
        if kept < 0 {
            return Number::zero().with_scale(scale);
        }
        let count = ((kept + DEC_DIGITS - 1) / DEC_DIGITS) as usize;
        let within = kept % DEC_DIGITS;
        if count > self.digits.len() || (count == self.digits.len() && within == 0) {
            return self;
        }
        let first_cut = self.digits.get(count).copied().unwrap_or(0);
        self.digits.truncate(count);
        let mut carry = if within == 0 {
            first_cut >= NBASE / 2
        } else {
            let unit = [1, 1000, 100, 10].get(within as usize).copied().unwrap_or(1);
            let Some(last) = self.digits.last_mut() else { return self.normalize() };
            let extra = *last % unit;
            *last -= extra;
            if extra >= unit / 2 {
                *last += unit;
            }
            let carry = *last >= NBASE;
            if carry {
                *last -= NBASE;
            }
            carry
        };
        // Where the cut was within the last digit, that one has been carried into already.
        let skip = usize::from(within != 0);
        for digit in self.digits.iter_mut().rev().skip(skip) {
            if !carry {
                break;
            }
            carry = *digit + 1 == NBASE;
            *digit = if carry { 0 } else { *digit + 1 };
        }
        if carry {
            self.digits.insert(0, 1);
            self.weight += 1;
        }
        self.normalize()
    }

    /// Cuts to `scale` decimals (negative: before the point).
    pub fn trunc(mut self, scale: i32) -> Number {
        self.dscale = scale;
        let kept = (self.weight + 1) * DEC_DIGITS + scale;
        if kept <= 0 {
            return Number::zero().with_scale(scale);
        }
        let count = ((kept + DEC_DIGITS - 1) / DEC_DIGITS) as usize;
        if count <= self.digits.len() {
            self.digits.truncate(count);
            let unit = [1, 1000, 100, 10].get((kept % DEC_DIGITS) as usize).copied().unwrap_or(1);
            if let Some(last) = self.digits.last_mut() {
                *last -= *last % unit;
            }
        }
        self.normalize()
    }

    /// The least integer not below it.
    pub fn ceil(&self) -> Number {
        let whole = self.clone().trunc(0);
        if !self.negative && self.order(&whole).is_ne() { whole.add(&Number::from(1i64)) } else { whole }
    }

    /// The greatest integer not above it.
    pub fn floor(&self) -> Number {
        let whole = self.clone().trunc(0);
        if self.negative && self.order(&whole).is_ne() { whole.sub(&Number::from(1i64)) } else { whole }
    }

    /// The scale of a quotient: at least 16 significant digits, and no less than either operand's scale.
    pub fn div_scale(&self, divisor: &Number) -> i32 {
        let top = |n: &Number| n.digits.first().map_or((0, 0), |d| (n.weight, *d));
        let ((weight1, first1), (weight2, first2)) = (top(self), top(divisor));
        let mut weight = weight1 - weight2;
        if first1 <= first2 {
            weight -= 1;
        }
        result_scale(MIN_SIG_DIGITS - weight * DEC_DIGITS, &[self.dscale, divisor.dscale])
    }

    /// The quotient to `rscale` decimals, rounded half away from zero, or cut.
    pub fn div(&self, divisor: &Number, rscale: i32, round: bool) -> SqlResult<Number> {
        if divisor.is_zero() {
            return Err(division_by_zero());
        }
        if self.is_zero() {
            return Ok(Number::zero().with_scale(rscale));
        }
        let weight = self.weight - divisor.weight;
        // Digits of the quotient: its whole ones, its decimals, and one more to round by.
        let count = weight + 1 + (rscale + DEC_DIGITS - 1).div_euclid(DEC_DIGITS) + i32::from(round);
        if count < 0 {
            return Ok(Number::zero().with_scale(rscale));
        }
        let digits = divide_digits(&self.digits, &divisor.digits, count.max(1) as usize);
        let quotient =
            Number { negative: self.negative != divisor.negative, weight, dscale: rscale, digits }.normalize();
        Ok(if round { quotient.round(rscale) } else { quotient.trunc(rscale) })
    }

    /// Divides by a small whole number.
    pub(crate) fn div_int(&self, divisor: u32, rscale: i32) -> SqlResult<Number> {
        self.div(&Number::from(i64::from(divisor)), rscale, true)
    }

    /// The remainder of a division that cuts; it has the dividend's sign.
    pub fn rem(&self, divisor: &Number) -> SqlResult<Number> {
        let quotient = self.div(divisor, 0, false)?;
        Ok(self.sub(&divisor.mul(&quotient).with_scale(divisor.dscale)))
    }
}

/// The first `count` base-10000 digits of a quotient, cut; the first has the weight `dividend.weight - divisor.weight`
/// and may be zero.
fn divide_digits(dividend: &[u16], divisor: &[u16], count: usize) -> Vec<u16> {
    if divisor.len() <= 4 {
        // The first quotient digit is where the dividend's first digits reach the divisor's length.
        let value = divisor.iter().fold(0u64, |n, d| n * u64::from(NBASE) + u64::from(*d));
        let mut rest = 0u128;
        let mut digits = Vec::with_capacity(count);
        let mut source = dividend.iter().copied().chain(std::iter::repeat(0));
        for _ in 1..divisor.len() {
            rest = rest * u128::from(NBASE) + u128::from(source.next().unwrap_or(0));
        }
        for digit in source.take(count) {
            rest = rest * u128::from(NBASE) + u128::from(digit);
            digits.push((rest / u128::from(value)) as u16);
            rest %= u128::from(value);
        }
        return digits;
    }
    long_division(dividend, divisor, count)
}

/// Knuth's algorithm D, base 10000.
fn long_division(dividend: &[u16], divisor: &[u16], count: usize) -> Vec<u16> {
    let n = divisor.len();
    // Both are scaled so that the divisor's first digit is at least half the base.
    let factor = NBASE_U32 / (u32::from(divisor.first().copied().unwrap_or(1)) + 1);
    let mut scaled_divisor = vec![0u32; n];
    let mut carry = 0;
    for (to, from) in scaled_divisor.iter_mut().zip(divisor).rev() {
        let v = u32::from(*from) * factor + carry;
        *to = v % NBASE_U32;
        carry = v / NBASE_U32;
    }
    // The dividend: one digit for the scaling's carry, `count` quotient places and the divisor's length.
    let length = count + n;
    let mut rest = vec![0u32; length];
    carry = 0;
    // Digits beyond the working length cannot reach a quotient digit that is kept.
    let used = dividend.len().min(length - 1);
    for (to, from) in rest.iter_mut().skip(1).take(used).rev().zip(dividend.iter().take(used).rev()) {
        let v = u32::from(*from) * factor + carry;
        *to = v % NBASE_U32;
        carry = v / NBASE_U32;
    }
    if let Some(first) = rest.first_mut() {
        *first = carry;
    }
    let digit = |v: &[u32], at: usize| v.get(at).copied().unwrap_or(0);
    let (d0, d1) = (digit(&scaled_divisor, 0), digit(&scaled_divisor, 1));
    let mut quotient = Vec::with_capacity(count);
    for j in 0..count {
        let top = digit(&rest, j) * NBASE_U32 + digit(&rest, j + 1);
        let mut guess = top / d0;
        let mut left = top % d0;
        while guess >= NBASE_U32 || guess * d1 > left * NBASE_U32 + digit(&rest, j + 2) {
            guess -= 1;
            left += d0;
            if left >= NBASE_U32 {
                break;
            }
        }
        // Multiply and subtract over rest[j ..= j + n].
        let Some(window) = rest.get_mut(j..=j + n) else { break };
        let mut borrow = 0i64;
        for (at, place) in window.iter_mut().enumerate().rev() {
            let product = if at == 0 { 0 } else { i64::from(guess) * i64::from(digit(&scaled_divisor, at - 1)) };
            let v = i64::from(*place) - product - borrow;
            *place = v.rem_euclid(i64::from(NBASE_U32)) as u32;
            borrow = -v.div_euclid(i64::from(NBASE_U32));
        }
        if borrow > 0 {
            // The guess was one too large: add the divisor back.
            guess -= 1;
            let mut carry = 0;
            for (at, place) in window.iter_mut().enumerate().rev() {
                let add = if at == 0 { 0 } else { digit(&scaled_divisor, at - 1) };
                let v = *place + add + carry;
                *place = v % NBASE_U32;
                carry = v / NBASE_U32;
            }
        }
        quotient.push(guess as u16);
    }
    quotient
}

impl Numeric {
    /// `a + b`.
    pub fn add(&self, other: &Numeric) -> Numeric {
        match (self, other) {
            (Numeric::Finite(a), Numeric::Finite(b)) => Numeric::Finite(a.add(b)),
            (Numeric::NaN, _) | (_, Numeric::NaN) => Numeric::NaN,
            (Numeric::PosInf, Numeric::NegInf) | (Numeric::NegInf, Numeric::PosInf) => Numeric::NaN,
            (Numeric::Finite(_), infinite) | (infinite, _) => infinite.clone(),
        }
    }

    /// `a - b`.
    pub fn sub(&self, other: &Numeric) -> Numeric {
        self.add(&other.neg())
    }

    /// `-a`.
    pub fn neg(&self) -> Numeric {
        match self {
            Numeric::Finite(a) => Numeric::Finite(a.neg()),
            Numeric::NaN => Numeric::NaN,
            Numeric::PosInf => Numeric::NegInf,
            Numeric::NegInf => Numeric::PosInf,
        }
    }

    /// `abs(a)`.
    pub fn abs(&self) -> Numeric {
        if self.sign() < 0 { self.neg() } else { self.clone() }
    }

    /// `sign(a)`.
    pub fn signum(&self) -> Numeric {
        if self.is_nan() { Numeric::NaN } else { Numeric::from(i64::from(self.sign())) }
    }

    /// An infinity of this sign.
    fn infinity(sign: i32) -> Numeric {
        if sign < 0 { Numeric::NegInf } else { Numeric::PosInf }
    }

    /// `a * b`.
    pub fn mul(&self, other: &Numeric) -> Numeric {
        match (self, other) {
            (Numeric::Finite(a), Numeric::Finite(b)) => {
                let product = a.mul(b);
                // A scale that cannot be stored is rounded to the greatest that can.
                Numeric::Finite(if product.dscale > DSCALE_MAX { product.round(DSCALE_MAX) } else { product })
            }
            (Numeric::NaN, _) | (_, Numeric::NaN) => Numeric::NaN,
            _ => match self.sign() * other.sign() {
                0 => Numeric::NaN,
                sign => Numeric::infinity(sign),
            },
        }
    }

    /// What a quotient is where an operand is not finite; `None` where both are.
    fn special_quotient(&self, divisor: &Numeric) -> SqlResult<Option<Numeric>> {
        Ok(Some(match (self, divisor) {
            (Numeric::Finite(_), Numeric::Finite(_)) => return Ok(None),
            (Numeric::NaN, _) | (_, Numeric::NaN) => Numeric::NaN,
            (Numeric::PosInf | Numeric::NegInf, Numeric::PosInf | Numeric::NegInf) => Numeric::NaN,
            (Numeric::Finite(_), _) => Numeric::ZERO,
            _ => match self.sign() * divisor.sign() {
                0 => return Err(division_by_zero()),
                sign => Numeric::infinity(sign),
            },
        }))
    }

    /// `a / b`.
    pub fn div(&self, divisor: &Numeric) -> SqlResult<Numeric> {
        match (self, divisor) {
            (Numeric::Finite(a), Numeric::Finite(b)) => a.div(b, a.div_scale(b), true).map(Numeric::Finite),
            _ => Ok(self.special_quotient(divisor)?.unwrap_or(Numeric::NaN)),
        }
    }

    /// `div(a, b)`: the quotient cut to a whole number.
    pub fn div_trunc(&self, divisor: &Numeric) -> SqlResult<Numeric> {
        match (self, divisor) {
            (Numeric::Finite(a), Numeric::Finite(b)) => a.div(b, 0, false).map(Numeric::Finite),
            _ => Ok(self.special_quotient(divisor)?.unwrap_or(Numeric::NaN)),
        }
    }

    /// `a % b`.
    pub fn rem(&self, divisor: &Numeric) -> SqlResult<Numeric> {
        match (self, divisor) {
            (Numeric::Finite(a), Numeric::Finite(b)) => a.rem(b).map(Numeric::Finite),
            (Numeric::NaN, _) | (_, Numeric::NaN) => Ok(Numeric::NaN),
            (Numeric::Finite(_), _) => Ok(self.clone()),
            _ if divisor.sign() == 0 => Err(division_by_zero()),
            _ => Ok(Numeric::NaN),
        }
    }

    fn map(&self, f: impl FnOnce(&Number) -> Number) -> Numeric {
        match self {
            Numeric::Finite(a) => Numeric::Finite(f(a)),
            special => special.clone(),
        }
    }

    /// `round(a, scale)`.
    pub fn round(&self, scale: i32) -> Numeric {
        let scale = scale.clamp(-(WEIGHT_MAX + 1) * DEC_DIGITS, DSCALE_MAX);
        self.map(|a| a.clone().round(scale).with_scale(scale.max(0)))
    }

    /// `trunc(a, scale)`.
    pub fn trunc(&self, scale: i32) -> Numeric {
        let scale = scale.clamp(-(WEIGHT_MAX + 1) * DEC_DIGITS, DSCALE_MAX);
        self.map(|a| a.clone().trunc(scale).with_scale(scale.max(0)))
    }

    /// `ceil(a)`.
    pub fn ceil(&self) -> Numeric {
        self.map(Number::ceil)
    }

    /// `floor(a)`.
    pub fn floor(&self) -> Numeric {
        self.map(Number::floor)
    }

    /// `gcd(a, b)`.
    pub fn gcd(&self, other: &Numeric) -> SqlResult<Numeric> {
        let (Numeric::Finite(a), Numeric::Finite(b)) = (self, other) else { return Ok(Numeric::NaN) };
        let dscale = a.dscale.max(b.dscale);
        let (mut a, mut b) = (a.abs(), b.abs());
        while !b.is_zero() {
            let rest = a.rem(&b)?;
            a = std::mem::replace(&mut b, rest);
        }
        Ok(Numeric::Finite(a.with_scale(dscale)))
    }

    /// `lcm(a, b)`.
    pub fn lcm(&self, other: &Numeric) -> SqlResult<Numeric> {
        let (Numeric::Finite(a), Numeric::Finite(b)) = (self, other) else { return Ok(Numeric::NaN) };
        let dscale = a.dscale.max(b.dscale);
        if a.is_zero() || b.is_zero() {
            return Ok(Numeric::Finite(Number::zero().with_scale(dscale)));
        }
        let Numeric::Finite(gcd) = self.gcd(other)? else { return Ok(Numeric::NaN) };
        let quotient = a.div(&gcd, 0, false)?;
        Ok(Numeric::Finite(b.mul(&quotient).abs().with_scale(dscale)))
    }

    /// `scale(a)`; none where it is not finite.
    pub fn scale(&self) -> Option<i32> {
        self.finite().map(Number::scale)
    }

    /// `min_scale(a)`: the decimals that it needs.
    pub fn min_scale(&self) -> Option<i32> {
        let number = self.finite()?;
        let Some(last) = number.digits.last() else { return Some(0) };
        let mut scale = (number.digits.len() as i32 - number.weight - 1) * DEC_DIGITS;
        let mut last = *last;
        while scale > 0 && last % 10 == 0 {
            scale -= 1;
            last /= 10;
        }
        Some(scale.max(0))
    }

    /// `trim_scale(a)`.
    pub fn trim_scale(&self) -> Numeric {
        match (self, self.min_scale()) {
            (Numeric::Finite(a), Some(scale)) => Numeric::Finite(a.clone().with_scale(scale)),
            _ => self.clone(),
        }
    }
}
