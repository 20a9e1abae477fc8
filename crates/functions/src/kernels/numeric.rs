//! Functions of numeric, through `types::numeric`, which is where its arithmetic lives.

use stegodon_types::SqlResult;
use stegodon_types::numeric::Numeric;

use crate::adapt::*;
use crate::kernel::Entry;
use crate::{Call, Column};

/// A function of one numeric.
fn unary(call: &Call<'_>, f: impl Fn(Numeric) -> SqlResult<Numeric>) -> SqlResult<Column> {
    write1(call, |a: &[u8], out| f(Numeric::from_payload(a)?)?.write_payload(out))
}

/// A function of two numerics.
fn binary(call: &Call<'_>, f: impl Fn(&Numeric, &Numeric) -> SqlResult<Numeric>) -> SqlResult<Column> {
    write2(call, |a: &[u8], b: &[u8], out| {
        f(&Numeric::from_payload(a)?, &Numeric::from_payload(b)?)?.write_payload(out)
    })
}

/// A function of a numeric and an integer.
fn scaled(call: &Call<'_>, f: impl Fn(Numeric, i32) -> SqlResult<Numeric>) -> SqlResult<Column> {
    write2(call, |a: &[u8], n: i32, out| f(Numeric::from_payload(a)?, n)?.write_payload(out))
}

/// Functions of numeric.
pub(crate) static KERNELS: &[Entry] = &[
    (1724, |c| binary(c, |a, b| Ok(a.add(b)))),
    (1725, |c| binary(c, |a, b| Ok(a.sub(b)))),
    (1726, |c| binary(c, |a, b| Ok(a.mul(b)))),
    (1727, |c| binary(c, Numeric::div)),
    (1728, |c| binary(c, Numeric::rem)),
    (1729, |c| binary(c, Numeric::rem)),
    (1973, |c| binary(c, Numeric::div_trunc)),
    (1980, |c| binary(c, Numeric::div_trunc)),
    (5048, |c| binary(c, Numeric::gcd)),
    (5049, |c| binary(c, Numeric::lcm)),
    (1736, |c| binary(c, |base, v| v.log(base))),
    (1737, |c| binary(c, |base, v| v.log(base))),
    (1738, |c| binary(c, Numeric::pow)),
    (1739, |c| binary(c, Numeric::pow)),
    (2169, |c| binary(c, Numeric::pow)),
    (1766, |c| binary(c, |a, b| Ok(if a < b { a.clone() } else { b.clone() }))),
    (1767, |c| binary(c, |a, b| Ok(if a > b { a.clone() } else { b.clone() }))),
    (1704, |c| unary(c, |a| Ok(a.abs()))),
    (1705, |c| unary(c, |a| Ok(a.abs()))),
    (1711, |c| unary(c, |a| Ok(a.ceil()))),
    (2167, |c| unary(c, |a| Ok(a.ceil()))),
    (1712, |c| unary(c, |a| Ok(a.floor()))),
    (1732, |c| unary(c, |a| a.exp())),
    (1733, |c| unary(c, |a| a.exp())),
    (1734, |c| unary(c, |a| a.ln())),
    (1735, |c| unary(c, |a| a.ln())),
    (1741, |c| unary(c, |a| a.log10())),
    (1481, |c| unary(c, |a| a.log10())),
    (1730, |c| unary(c, |a| a.sqrt())),
    (1731, |c| unary(c, |a| a.sqrt())),
    (1706, |c| unary(c, |a| Ok(a.signum()))),
    (1764, |c| unary(c, |a| Ok(a.add(&Numeric::one())))),
    (1771, |c| unary(c, |a| Ok(a.neg()))),
    (1915, |c| unary(c, Ok)),
    (5043, |c| unary(c, |a| Ok(a.trim_scale()))),
    (1708, |c| unary(c, |a| Ok(a.round(0)))),
    (1710, |c| unary(c, |a| Ok(a.trunc(0)))),
    (1707, |c| scaled(c, |a, n| Ok(a.round(n)))),
    (1709, |c| scaled(c, |a, n| Ok(a.trunc(n)))),
    (1703, |c| scaled(c, Numeric::apply_typmod)),
    (3281, |c| map1(c, |a: &[u8]| Ok(Numeric::from_payload(a)?.scale()))),
    (5042, |c| map1(c, |a: &[u8]| Ok(Numeric::from_payload(a)?.min_scale()))),
    (1376, |c| write1(c, |n: i64, out| Numeric::factorial(n)?.write_payload(out))),
    // Casts.
    (1740, |c| write1(c, |n: i32, out| Numeric::from(i64::from(n)).write_payload(out))),
    (1781, |c| write1(c, |n: i64, out| Numeric::from(n).write_payload(out))),
    (1782, |c| write1(c, |n: i16, out| Numeric::from(i64::from(n)).write_payload(out))),
    (1742, |c| write1(c, |v: f32, out| Numeric::from_f32(v)?.write_payload(out))),
    (1743, |c| write1(c, |v: f64, out| Numeric::from_f64(v)?.write_payload(out))),
    (1744, |c| map1(c, |a: &[u8]| Numeric::from_payload(a)?.to_i32())),
    (1779, |c| map1(c, |a: &[u8]| Numeric::from_payload(a)?.to_i64())),
    (1783, |c| map1(c, |a: &[u8]| Numeric::from_payload(a)?.to_i16())),
    (1745, |c| map1(c, |a: &[u8]| Numeric::from_payload(a)?.to_f32())),
    (1746, |c| map1(c, |a: &[u8]| Numeric::from_payload(a)?.to_f64())),
];
