//! Casts among whole numbers and floats, and gcd and lcm.

use stegodon_types::{Layout, SqlError, SqlResult, SqlState};

use super::float::underflow;
use super::int::{int2_range, int4_range, int8_range};
use crate::adapt::*;
use crate::aggregate::float_overflow as overflow;
use crate::kernel::Entry;

/// A float rounded to even and held against a range `min ≤ v < -min`.
fn whole(v: f64, min: f64, error: fn() -> SqlError) -> SqlResult<f64> {
    let v = v.round_ties_even();
    if v >= min && v < -min { Ok(v) } else { Err(error()) }
}

fn to_i16(v: f64) -> SqlResult<i16> {
    whole(v, -32_768.0, int2_range).map(|v| v as i16)
}
fn to_i32(v: f64) -> SqlResult<i32> {
    whole(v, -2_147_483_648.0, int4_range).map(|v| v as i32)
}
fn to_i64(v: f64) -> SqlResult<i64> {
    whole(v, -9_223_372_036_854_775_808.0, int8_range).map(|v| v as i64)
}

fn to_f32(v: f64) -> SqlResult<f32> {
    let r = v as f32;
    if r.is_infinite() && !v.is_infinite() {
        return Err(overflow());
    }
    if r == 0.0 && v != 0.0 { Err(underflow()) } else { Ok(r) }
}

fn put(bytes: impl AsRef<[u8]>, fits: bool, out: &mut Vec<u8>) -> SqlResult<()> {
    out.extend_from_slice(bytes.as_ref());
    if fits { Ok(()) } else { Err(SqlError::unsupported("bpchar of this \"char\"")) }
}

/// Bytes, the highest first, as a number.
fn of_bytes(v: &[u8], max: usize, error: fn() -> SqlError) -> SqlResult<i64> {
    if v.len() > max { Err(error()) } else { Ok(v.iter().fold(0, |n, b| n << 8 | i64::from(*b))) }
}

fn gcd(a: i64, b: i64) -> u64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn lcm(a: i64, b: i64) -> u128 {
    if a == 0 || b == 0 {
        return 0;
    }
    u128::from(a.unsigned_abs() / gcd(a, b)) * u128::from(b.unsigned_abs())
}

/// Casts.
pub(crate) static KERNELS: &[Entry] = &[
    (313, |c| {
        // The implicit casts of int2 to oid and the reg types name this function too.
        if c.info.layout == Layout::UInt32 {
            map1(c, |v: i16| Ok(i32::from(v) as u32))
        } else {
            map1(c, |v: i16| Ok(i32::from(v)))
        }
    }),
    (754, |c| map1(c, |v: i16| Ok(i64::from(v)))),
    (481, |c| map1(c, |v: i32| Ok(i64::from(v)))),
    (314, |c| map1(c, |v: i32| i16::try_from(v).map_err(|_| int2_range()))),
    (714, |c| map1(c, |v: i64| i16::try_from(v).map_err(|_| int2_range()))),
    (480, |c| map1(c, |v: i64| i32::try_from(v).map_err(|_| int4_range()))),
    (1287, |c| {
        map1(c, |v: i64| {
            u32::try_from(v).map_err(|_| SqlError::new(SqlState::NumericValueOutOfRange, "OID out of range"))
        })
    }),
    (1288, |c| map1(c, |v: u32| Ok(i64::from(v)))),
    (78, |c| {
        map1(c, |v: i32| {
            i8::try_from(v)
                .map(|v| v as u8)
                .map_err(|_| SqlError::new(SqlState::NumericValueOutOfRange, "\"char\" out of range"))
        })
    }),
    (77, |c| map1(c, |v: u8| Ok(i32::from(v as i8)))),
    (6367, |c| write1(c, |v: i16, out| put(v.to_be_bytes(), true, out))),
    (6368, |c| write1(c, |v: i32, out| put(v.to_be_bytes(), true, out))),
    (6369, |c| write1(c, |v: i64, out| put(v.to_be_bytes(), true, out))),
    (860, |c| write1(c, |v: u8, out| put([v], v.is_ascii() && v != 0, out))),
    (6370, |c| map1(c, |v: &[u8]| Ok(of_bytes(v, 2, int2_range)? as i16))),
    (6371, |c| map1(c, |v: &[u8]| Ok(of_bytes(v, 4, int4_range)? as i32))),
    (6372, |c| map1(c, |v: &[u8]| of_bytes(v, 8, int8_range))),
    (236, |c| map1(c, |v: i16| Ok(f32::from(v)))),
    (235, |c| map1(c, |v: i16| Ok(f64::from(v)))),
    (318, |c| map1(c, |v: i32| Ok(v as f32))),
    (316, |c| map1(c, |v: i32| Ok(f64::from(v)))),
    (652, |c| map1(c, |v: i64| Ok(v as f32))),
    (482, |c| map1(c, |v: i64| Ok(v as f64))),
    (311, |c| map1(c, |v: f32| Ok(f64::from(v)))),
    (312, |c| map1(c, to_f32)),
    (238, |c| map1(c, |v: f32| to_i16(f64::from(v)))),
    (319, |c| map1(c, |v: f32| to_i32(f64::from(v)))),
    (653, |c| map1(c, |v: f32| to_i64(f64::from(v)))),
    (237, |c| map1(c, to_i16)),
    (317, |c| map1(c, to_i32)),
    (483, |c| map1(c, to_i64)),
    (5044, |c| map2(c, |a: i32, b: i32| i32::try_from(gcd(i64::from(a), i64::from(b))).map_err(|_| int4_range()))),
    (5045, |c| map2(c, |a: i64, b: i64| i64::try_from(gcd(a, b)).map_err(|_| int8_range()))),
    (5046, |c| map2(c, |a: i32, b: i32| i32::try_from(lcm(i64::from(a), i64::from(b))).map_err(|_| int4_range()))),
    (5047, |c| map2(c, |a: i64, b: i64| i64::try_from(lcm(a, b)).map_err(|_| int8_range()))),
];
