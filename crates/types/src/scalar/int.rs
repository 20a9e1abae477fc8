//! The integers, and the types that are one inside: `int2`, `int4`, `int8`.

use std::cmp::Ordering;

use stegodon_format::version::Version;

use crate::ops::get;
use crate::scalar::{exactly, invalid_syntax, is_space, value_out_of_range};
use crate::{Collation, Datum, SqlError, SqlResult, TypeContext, TypeDesc, TypeOps, ValueRef, hash, key};

/// Why a text is no integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntError {
    /// Not a number.
    Syntax,
    /// A number beyond the type's range.
    Range,
}

impl IntError {
    /// The error that the input function of a type reports.
    pub fn of(self, type_name: &str, text: &[u8]) -> SqlError {
        match self {
            IntError::Syntax => invalid_syntax(type_name, text),
            IntError::Range => value_out_of_range(type_name, text),
        }
    }
}

/// Reads an integer as `pg_strtoint64` and its narrower kin do: white space around it, a sign, `0x`, `0o`, `0b`, and
/// single underscores between digits. `min` is the type's least value, whose negation is one above the greatest.
pub fn parse(text: &[u8], min: i64) -> Result<i64, IntError> {
    let mut rest = text;
    while let [b, tail @ ..] = rest
        && is_space(*b)
    {
        rest = tail;
    }
    let negative = match rest {
        [b'-', tail @ ..] => {
            rest = tail;
            true
        }
        [b'+', tail @ ..] => {
            rest = tail;
            false
        }
        _ => false,
    };
    let (radix, leading_underscore) = match rest {
        [b'0', b'x' | b'X', tail @ ..] => {
            rest = tail;
            (16, true)
        }
        [b'0', b'o' | b'O', tail @ ..] => {
            rest = tail;
            (8, true)
        }
        [b'0', b'b' | b'B', tail @ ..] => {
            rest = tail;
            (2, true)
        }
        _ => (10, false),
    };
    let limit = min.unsigned_abs();
    let mut magnitude = 0u64;
    let mut any = false;
    while let [b, tail @ ..] = rest {
        let mut tail = tail;
        let mut b = *b;
        if b == b'_' {
            // Between digits, or between the radix and the first digit.
            if !any && !leading_underscore {
                return Err(IntError::Syntax);
            }
            match tail {
                [next, after @ ..] if char::from(*next).is_digit(radix) => {
                    b = *next;
                    tail = after;
                }
                _ => return Err(IntError::Syntax),
            }
        }
        let Some(digit) = char::from(b).to_digit(radix) else { break };
        // PostgreSQL gives up here, before it sees what follows.
        if magnitude > limit / u64::from(radix) {
            return Err(IntError::Range);
        }
        magnitude = magnitude * u64::from(radix) + u64::from(digit);
        any = true;
        rest = tail;
    }
    if !any || !rest.iter().all(|b| is_space(*b)) {
        return Err(IntError::Syntax);
    }
    if negative {
        if magnitude > limit {
            return Err(IntError::Range);
        }
        Ok((magnitude as i64).wrapping_neg())
    } else {
        if magnitude >= limit {
            return Err(IntError::Range);
        }
        Ok(magnitude as i64)
    }
}

/// Reads an integer as `version` does: before 16 in decimal only, and a number beyond the range is that whatever follows.
pub fn parse_as(version: Version, text: &[u8], min: i64) -> Result<i64, IntError> {
    if version >= Version::V16 {
        return parse(text, min);
    }
    let (sign, digits) = match text.get(text.iter().take_while(|b| is_space(**b)).count()..).unwrap_or_default() {
        [b'-', tail @ ..] => (-1, tail),
        [b'+', tail @ ..] => (1, tail),
        all => (1, all),
    };
    let end = digits.iter().position(|b| !b.is_ascii_digit()).unwrap_or(digits.len());
    let (digits, rest) = digits.split_at_checked(end).unwrap_or_default();
    if digits.is_empty() {
        return Err(IntError::Syntax);
    }
    // Counted downwards: the least value has no negation.
    let value = digits.iter().try_fold(0i64, |v, b| {
        v.checked_mul(10).and_then(|v| v.checked_sub(i64::from(b - b'0'))).filter(|v| *v >= min)
    });
    let value = value.ok_or(IntError::Range)?;
    if !rest.iter().all(|b| is_space(*b)) {
        return Err(IntError::Syntax);
    }
    match sign {
        -1 => Ok(value),
        _ if value == min => Err(IntError::Range),
        _ => Ok(-value),
    }
}

/// Appends an integer's decimal digits.
pub fn write(v: i64, out: &mut Vec<u8>) {
    if v < 0 {
        out.push(b'-');
    }
    write_unsigned(v.unsigned_abs(), out);
}

/// Appends an unsigned integer's decimal digits.
pub fn write_unsigned(mut v: u64, out: &mut Vec<u8>) {
    let start = out.len();
    loop {
        out.push(b'0' + (v % 10) as u8);
        v /= 10;
        if v == 0 {
            break;
        }
    }
    if let Some(digits) = out.get_mut(start..) {
        digits.reverse();
    }
}

macro_rules! integer {
    ($module:ident, $t:ty, $variant:ident, $getter:ident, $name:literal, $key:path, $hash:expr) => {
        #[doc = concat!("`", stringify!($module), "`.")]
        pub mod $module {
            use super::*;

            #[doc = concat!("`", stringify!($module), "`.")]
            pub static OPS: TypeOps = TypeOps {
                text_out,
                text_in,
                binary_out,
                binary_in,
                compare: Some(compare),
                equal: Some(crate::equal_by!(compare)),
                key: Some(key),
                hash: Some(hash),
                own_key: true,
            };

            fn text_out(_: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
                write(i64::from(get::$getter(ty, v)?), out);
                Ok(())
            }

            fn text_in(cx: &TypeContext<'_>, _: &TypeDesc, text: &[u8], _: i32) -> SqlResult<Datum> {
                let v = parse_as(cx.settings.version, text, i64::from(<$t>::MIN)).map_err(|e| e.of($name, text))?;
                Ok(Datum::$variant(v as $t))
            }

            fn binary_out(_: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
                out.extend_from_slice(&get::$getter(ty, v)?.to_be_bytes());
                Ok(())
            }

            fn binary_in(_: &TypeContext<'_>, _: &TypeDesc, bytes: &[u8], _: i32) -> SqlResult<Datum> {
                exactly(bytes).map(|b| Datum::$variant(<$t>::from_be_bytes(b)))
            }

            /// Numeric order.
            pub fn compare(
                _: &TypeContext<'_>,
                ty: &TypeDesc,
                _: &Collation,
                a: ValueRef<'_>,
                b: ValueRef<'_>,
            ) -> SqlResult<Ordering> {
                Ok(get::$getter(ty, a)?.cmp(&get::$getter(ty, b)?))
            }

            fn key(
                _: &TypeContext<'_>,
                ty: &TypeDesc,
                _: &Collation,
                v: ValueRef<'_>,
                out: &mut Vec<u8>,
            ) -> SqlResult<()> {
                $key(get::$getter(ty, v)?, out);
                Ok(())
            }

            fn hash(_: &TypeContext<'_>, ty: &TypeDesc, _: &Collation, v: ValueRef<'_>, seed: u64) -> SqlResult<u64> {
                Ok(hash::uint32_extended($hash(get::$getter(ty, v)?), seed))
            }
        }
    };
}

integer!(int2, i16, Int16, i16, "smallint", key::i16, |v: i16| i32::from(v) as u32);
integer!(int4, i32, Int32, i32, "integer", key::i32, |v: i32| v as u32);
integer!(int8, i64, Int64, i64, "bigint", key::i64, hash::fold_i64);
