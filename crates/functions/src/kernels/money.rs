//! `money`: cents in an `int8`, two digits after the point as under `lc_monetary = C`.

use stegodon_types::numeric::Numeric;
use stegodon_types::numeric::write_scaled;
use stegodon_types::{SqlError, SqlResult, SqlState};

use super::float::{div8, mul8};
use super::int::{division_by_zero, int8_range};
use crate::adapt::*;
use crate::kernel::Entry;

const CENTS: i64 = 100;

/// "money out of range"
fn out_of_range() -> SqlError {
    SqlError::new(SqlState::NumericValueOutOfRange, "money out of range")
}

/// A float rounded to even, as cents.
fn of_float(v: f64) -> SqlResult<i64> {
    let v = v.round_ties_even();
    // 2^63 is the first that does not fit.
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&v) {
        Ok(v as i64)
    } else {
        Err(out_of_range())
    }
}

fn times(money: i64, factor: f64) -> SqlResult<i64> {
    of_float(mul8(money as f64, factor)?)
}

fn over(money: i64, divisor: f64) -> SqlResult<i64> {
    of_float(div8(money as f64, divisor)?)
}

fn times_whole(money: i64, factor: i64) -> SqlResult<i64> {
    money.checked_mul(factor).ok_or_else(out_of_range)
}

fn over_whole(money: i64, divisor: i64) -> SqlResult<i64> {
    if divisor == 0 {
        return Err(division_by_zero());
    }
    // The one overflow traps in PostgreSQL.
    money.checked_div(divisor).ok_or_else(|| SqlError::unsupported("the least money divided by -1"))
}

fn of_whole(v: i64) -> SqlResult<i64> {
    v.checked_mul(CENTS).ok_or_else(int8_range)
}

/// Operators and casts. `cash_words` is left out.
pub(crate) static KERNELS: &[Entry] = &[
    (894, |c| map2(c, |a: i64, b: i64| a.checked_add(b).ok_or_else(out_of_range))),
    (895, |c| map2(c, |a: i64, b: i64| a.checked_sub(b).ok_or_else(out_of_range))),
    (898, |c| map2(c, |a: i64, b: i64| Ok(a.max(b)))),
    (899, |c| map2(c, |a: i64, b: i64| Ok(a.min(b)))),
    (3822, |c| map2(c, |a: i64, b: i64| if b == 0 { Err(division_by_zero()) } else { Ok(a as f64 / b as f64) })),
    (896, |c| map2(c, times)),
    (846, |c| map2(c, |a: i64, b: f32| times(a, f64::from(b)))),
    (919, |c| map2(c, |b: f64, a: i64| times(a, b))),
    (848, |c| map2(c, |b: f32, a: i64| times(a, f64::from(b)))),
    (897, |c| map2(c, over)),
    (847, |c| map2(c, |a: i64, b: f32| over(a, f64::from(b)))),
    (3344, |c| map2(c, times_whole)),
    (864, |c| map2(c, |a: i64, b: i32| times_whole(a, i64::from(b)))),
    (866, |c| map2(c, |a: i64, b: i16| times_whole(a, i64::from(b)))),
    (3399, |c| map2(c, |b: i64, a: i64| times_whole(a, b))),
    (862, |c| map2(c, |b: i32, a: i64| times_whole(a, i64::from(b)))),
    (863, |c| map2(c, |b: i16, a: i64| times_whole(a, i64::from(b)))),
    (3345, |c| map2(c, over_whole)),
    (865, |c| map2(c, |a: i64, b: i32| over_whole(a, i64::from(b)))),
    (867, |c| map2(c, |a: i64, b: i16| over_whole(a, i64::from(b)))),
    // Casts.
    (3811, |c| map1(c, |v: i32| of_whole(i64::from(v)))),
    (3812, |c| map1(c, of_whole)),
    (3823, |c| write1(c, |v: i64, out| write_scaled(i128::from(v), 2, out))),
    (3824, |c| map1(c, |v: &[u8]| Numeric::from_payload(v)?.mul(&Numeric::from(CENTS)).to_i64())),
];
