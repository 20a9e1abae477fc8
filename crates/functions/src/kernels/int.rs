//! Integer arithmetic: int2, int4, int8 and their mixes, with PostgreSQL's errors.

use arrow_array::types::{Int16Type, Int32Type, Int64Type};
use stegodon_types::{SqlError, SqlState};

use crate::adapt::*;
use crate::kernel::Entry;

/// "smallint out of range"
pub(crate) fn int2_range() -> SqlError {
    SqlError::new(SqlState::NumericValueOutOfRange, "smallint out of range")
}

/// "integer out of range"
pub(crate) fn int4_range() -> SqlError {
    SqlError::new(SqlState::NumericValueOutOfRange, "integer out of range")
}

/// "bigint out of range"
pub(crate) fn int8_range() -> SqlError {
    SqlError::new(SqlState::NumericValueOutOfRange, "bigint out of range")
}

/// "division by zero"
pub(crate) fn division_by_zero() -> SqlError {
    SqlError::new(SqlState::DivisionByZero, "division by zero")
}

/// Each line: left and right type, the type computed in, its error; then the OIDs of `+`, `-`, `*`, `/`.
macro_rules! arithmetic {
    ($($a:ident $b:ident $wide:ident $arrow:ident $error:ident [$add:literal $sub:literal $mul:literal $div:literal];)*) => {
        &[$(
            ($add, |c| overflowing2::<$a, $b, $arrow>(c, |a, b| $wide::from(a).overflowing_add($wide::from(b)), $error)),
            ($sub, |c| overflowing2::<$a, $b, $arrow>(c, |a, b| $wide::from(a).overflowing_sub($wide::from(b)), $error)),
            ($mul, |c| overflowing2::<$a, $b, $arrow>(c, |a, b| $wide::from(a).overflowing_mul($wide::from(b)), $error)),
            ($div, |c| map2(c, |a: $a, b: $b| {
                if b == 0 {
                    return Err(division_by_zero());
                }
                $wide::from(a).checked_div($wide::from(b)).ok_or_else($error)
            })),
        )*]
    };
}

/// `+ - * /`.
pub(crate) static ARITHMETIC: &[Entry] = arithmetic! {
    i16 i16 i16 Int16Type int2_range [176 180 152 153];
    i32 i32 i32 Int32Type int4_range [177 181 141 154];
    i64 i64 i64 Int64Type int8_range [463 464 465 466];
    i16 i32 i32 Int32Type int4_range [178 182 170 172];
    i32 i16 i32 Int32Type int4_range [179 183 171 173];
    i16 i64 i64 Int64Type int8_range [841 942 943 948];
    i64 i16 i64 Int64Type int8_range [837 838 839 840];
    i32 i64 i64 Int64Type int8_range [1278 1279 1280 1281];
    i64 i32 i64 Int64Type int8_range [1274 1275 1276 1277];
};

/// Each line: the type, its error; then the OIDs of `%`, unary `-`, `+`, `@`, `abs`, `mod`, `~`, `&`, `|`, `#`, `<<`, `>>`,
/// and of larger and smaller.
macro_rules! unary_and_bits {
    ($($t:ident $error:ident [$rem:literal $neg:literal $plus:literal $at:literal $abs:literal $modulo:literal]
        bits [$not:literal $and:literal $or:literal $xor:literal $shl:literal $shr:literal]
        [$larger:literal $smaller:literal];)*) => {
        &[$(
            ($rem, |c| map2(c, |a: $t, b: $t| if b == 0 { Err(division_by_zero()) } else { Ok(a.wrapping_rem(b)) })),
            ($modulo, |c| map2(c, |a: $t, b: $t| if b == 0 { Err(division_by_zero()) } else { Ok(a.wrapping_rem(b)) })),
            ($neg, |c| map1(c, |a: $t| a.checked_neg().ok_or_else($error))),
            ($plus, |c| map1(c, |a: $t| Ok(a))),
            ($at, |c| map1(c, |a: $t| a.checked_abs().ok_or_else($error))),
            ($abs, |c| map1(c, |a: $t| a.checked_abs().ok_or_else($error))),
            ($not, |c| map1(c, |a: $t| Ok(!a))),
            ($and, |c| map2(c, |a: $t, b: $t| Ok(a & b))),
            ($or, |c| map2(c, |a: $t, b: $t| Ok(a | b))),
            ($xor, |c| map2(c, |a: $t, b: $t| Ok(a ^ b))),
            ($larger, |c| map2(c, |a: $t, b: $t| Ok(a.max(b)))),
            ($smaller, |c| map2(c, |a: $t, b: $t| Ok(a.min(b)))),
            ($shl, |c| map2(c, |a: $t, n: i32| Ok(shift::left(i64::from(a), n, $t::BITS) as $t))),
            ($shr, |c| map2(c, |a: $t, n: i32| Ok(shift::right(i64::from(a), n, $t::BITS) as $t))),
        )*]
    };
}

/// Shifts as the machines that PostgreSQL runs on do them: the count modulo 32 (int2 is shifted as int4) or 64.
mod shift {
    /// `<<`.
    pub(super) fn left(a: i64, n: i32, bits: u32) -> i64 {
        if bits == 64 { a.wrapping_shl(n as u32) } else { i64::from((a as i32).wrapping_shl(n as u32)) }
    }
    /// `>>`, arithmetic.
    pub(super) fn right(a: i64, n: i32, bits: u32) -> i64 {
        if bits == 64 { a.wrapping_shr(n as u32) } else { i64::from((a as i32).wrapping_shr(n as u32)) }
    }
}

/// The rest.
pub(crate) static UNARY_AND_BITS: &[Entry] = unary_and_bits! {
    i16 int2_range [155 213 1911 1253 1398 940] bits [1895 1892 1893 1894 1896 1897] [770 771];
    i32 int4_range [156 212 1912 1251 1397 941] bits [1901 1898 1899 1900 1902 1903] [768 769];
    i64 int8_range [945 462 1910 1230 1396 947] bits [1907 1904 1905 1906 1908 1909] [1236 1237];
};
