//! Arithmetic of float4 and float8, and the functions of float8, with PostgreSQL's checks (`float.c`): a result that
//! overflowed or underflowed is an error, and so is what has no value.
//!
//! The transcendental functions are the C library's, as PostgreSQL's are. Not `cbrt`: the library's last bit differs between
//! its versions, and the judge's is not ours.

use stegodon_types::{SqlError, SqlResult, SqlState};

use super::int::division_by_zero;
use crate::adapt::*;
use crate::aggregate::float_overflow as overflow;
use crate::kernel::Entry;

/// "value out of range: underflow"
pub(crate) fn underflow() -> SqlError {
    SqlError::new(SqlState::NumericValueOutOfRange, "value out of range: underflow")
}

fn input_range() -> SqlError {
    SqlError::new(SqlState::NumericValueOutOfRange, "input is out of range")
}

macro_rules! checked {
    ($t:ident: $add:ident $sub:ident $mul:ident $div:ident) => {
        pub(super) fn $add(a: $t, b: $t) -> SqlResult<$t> {
            let r = a + b;
            if r.is_infinite() && !a.is_infinite() && !b.is_infinite() { Err(overflow()) } else { Ok(r) }
        }
        pub(super) fn $sub(a: $t, b: $t) -> SqlResult<$t> {
            let r = a - b;
            if r.is_infinite() && !a.is_infinite() && !b.is_infinite() { Err(overflow()) } else { Ok(r) }
        }
        pub(super) fn $mul(a: $t, b: $t) -> SqlResult<$t> {
            let r = a * b;
            if r.is_infinite() && !a.is_infinite() && !b.is_infinite() {
                return Err(overflow());
            }
            if r == 0.0 && a != 0.0 && b != 0.0 { Err(underflow()) } else { Ok(r) }
        }
        pub(super) fn $div(a: $t, b: $t) -> SqlResult<$t> {
            if b == 0.0 && !a.is_nan() {
                return Err(division_by_zero());
            }
            let r = a / b;
            if r.is_infinite() && !a.is_infinite() {
                return Err(overflow());
            }
            if r == 0.0 && a != 0.0 && !b.is_infinite() { Err(underflow()) } else { Ok(r) }
        }
    };
}
checked!(f32: add4 sub4 mul4 div4);
checked!(f64: add8 sub8 mul8 div8);

fn finite_input(v: f64, f: fn(f64) -> f64) -> SqlResult<f64> {
    if v.is_infinite() { Err(input_range()) } else { Ok(f(v)) }
}

fn unit_input(v: f64, f: fn(f64) -> f64) -> SqlResult<f64> {
    if (-1.0..=1.0).contains(&v) || v.is_nan() { Ok(f(v)) } else { Err(input_range()) }
}

fn sqrt(v: f64) -> SqlResult<f64> {
    if v < 0.0 {
        return Err(SqlError::new(
            SqlState::InvalidArgumentForPowerFunction,
            "cannot take square root of a negative number",
        ));
    }
    Ok(v.sqrt())
}

fn logarithm(v: f64, f: fn(f64) -> f64) -> SqlResult<f64> {
    if v == 0.0 {
        return Err(SqlError::new(SqlState::InvalidArgumentForLogarithm, "cannot take logarithm of zero"));
    }
    if v < 0.0 {
        return Err(SqlError::new(SqlState::InvalidArgumentForLogarithm, "cannot take logarithm of a negative number"));
    }
    let r = f(v);
    if r.is_infinite() && !v.is_infinite() {
        return Err(overflow());
    }
    if r == 0.0 && v != 1.0 { Err(underflow()) } else { Ok(r) }
}

fn exp(v: f64) -> SqlResult<f64> {
    if v.is_nan() {
        return Ok(v);
    }
    if v.is_infinite() {
        return Ok(if v > 0.0 { v } else { 0.0 });
    }
    let r = v.exp();
    if r.is_infinite() {
        return Err(overflow());
    }
    if r == 0.0 { Err(underflow()) } else { Ok(r) }
}

/// `dpow`.
fn power(x: f64, y: f64) -> SqlResult<f64> {
    if x.is_nan() {
        return Ok(if y == 0.0 { 1.0 } else { x });
    }
    if y.is_nan() {
        return Ok(if x == 1.0 { 1.0 } else { y });
    }
    if x == 0.0 && y < 0.0 {
        return Err(SqlError::new(
            SqlState::InvalidArgumentForPowerFunction,
            "zero raised to a negative power is undefined",
        ));
    }
    if x < 0.0 && y.floor() != y {
        return Err(SqlError::new(
            SqlState::InvalidArgumentForPowerFunction,
            "a negative number raised to a non-integer power yields a complex result",
        ));
    }
    let r = x.powf(y);
    if x.is_infinite() || y.is_infinite() {
        return Ok(r);
    }
    if r.is_infinite() {
        return Err(overflow());
    }
    if r == 0.0 && x != 0.0 { Err(underflow()) } else { Ok(r) }
}

fn sign(v: f64) -> f64 {
    if v > 0.0 {
        1.0
    } else if v < 0.0 {
        -1.0
    } else {
        0.0
    }
}

const RADIANS_PER_DEGREE: f64 = 0.017_453_292_519_943_295;

/// A function of one float8 under several OIDs.
macro_rules! unary {
    ($($oid:literal)* => $f:expr) => {
        &[$(($oid, |c| map1(c, $f))),*]
    };
}

/// Operators.
pub(crate) static OPERATORS: &[Entry] = &[
    (204, |c| map2(c, add4)),
    (205, |c| map2(c, sub4)),
    (202, |c| map2(c, mul4)),
    (203, |c| map2(c, div4)),
    (218, |c| map2(c, add8)),
    (219, |c| map2(c, sub8)),
    (216, |c| map2(c, mul8)),
    (217, |c| map2(c, div8)),
    (281, |c| map2(c, |a: f32, b: f64| add8(f64::from(a), b))),
    (282, |c| map2(c, |a: f32, b: f64| sub8(f64::from(a), b))),
    (279, |c| map2(c, |a: f32, b: f64| mul8(f64::from(a), b))),
    (280, |c| map2(c, |a: f32, b: f64| div8(f64::from(a), b))),
    (285, |c| map2(c, |a: f64, b: f32| add8(a, f64::from(b)))),
    (286, |c| map2(c, |a: f64, b: f32| sub8(a, f64::from(b)))),
    (283, |c| map2(c, |a: f64, b: f32| mul8(a, f64::from(b)))),
    (284, |c| map2(c, |a: f64, b: f32| div8(a, f64::from(b)))),
    (206, |c| map1(c, |v: f32| Ok(-v))),
    (220, |c| map1(c, |v: f64| Ok(-v))),
    (1913, |c| map1(c, |v: f32| Ok(v))),
    (1914, |c| map1(c, |v: f64| Ok(v))),
    (1394, |c| map1(c, |v: f32| Ok(v.abs()))),
    (207, |c| map1(c, |v: f32| Ok(v.abs()))),
    (1395, |c| map1(c, |v: f64| Ok(v.abs()))),
    (221, |c| map1(c, |v: f64| Ok(v.abs()))),
    (232, |c| map2(c, power)),
    (1346, |c| map2(c, power)),
    (1368, |c| map2(c, power)),
    (1603, |c| map2(c, |y: f64, x: f64| Ok(y.atan2(x)))),
];

/// Functions of one float8.
pub(crate) static UNARY: &[&[Entry]] = &[
    unary!(228 1342 => |v: f64| Ok(v.round_ties_even())),
    unary!(229 1343 => |v: f64| Ok(v.trunc())),
    unary!(2308 2320 => |v: f64| Ok(v.ceil())),
    unary!(2309 => |v: f64| Ok(v.floor())),
    unary!(2310 => |v: f64| Ok(sign(v))),
    unary!(230 1344 => sqrt),
    unary!(233 1347 => exp),
    unary!(234 1341 => |v: f64| logarithm(v, f64::ln)),
    unary!(1339 1340 1194 => |v: f64| logarithm(v, f64::log10)),
    unary!(1604 => |v: f64| finite_input(v, f64::sin)),
    unary!(1605 => |v: f64| finite_input(v, f64::cos)),
    unary!(1606 => |v: f64| finite_input(v, f64::tan)),
    unary!(1607 => |v: f64| finite_input(v, |v| 1.0 / v.tan())),
    unary!(1600 => |v: f64| unit_input(v, f64::asin)),
    unary!(1601 => |v: f64| unit_input(v, f64::acos)),
    unary!(1602 => |v: f64| Ok(v.atan())),
    unary!(2462 => |v: f64| Ok(v.sinh())),
    unary!(2463 => |v: f64| Ok(v.cosh())),
    unary!(2464 => |v: f64| Ok(v.tanh())),
    unary!(1608 => |v: f64| div8(v, RADIANS_PER_DEGREE)),
    unary!(1609 => |v: f64| mul8(v, RADIANS_PER_DEGREE)),
];
