//! `bit` and `varbit`: casts, operators and functions.
//!
//! Bits are numbered from the left, the first one 0 (for `substring`, `position` and `overlay` 1).

use stegodon_types::scalar::bits::{parts, payload};
use stegodon_types::{SqlError, SqlResult, SqlState};

use super::int::{int4_range, int8_range};
use crate::adapt::*;
use crate::kernel::Entry;
use crate::{Call, Column};

/// The most bits there are.
const MAX_BITS: i32 = i32::MAX - 7;

/// A bit string while it is taken apart or made.
struct Bits {
    count: usize,
    bytes: Vec<u8>,
}

impl Bits {
    fn of(value: &[u8]) -> SqlResult<Bits> {
        let (count, bytes) = parts(value)?;
        Ok(Bits { count, bytes: bytes.to_vec() })
    }

    fn zeros(count: usize) -> Bits {
        Bits { count, bytes: vec![0; count.div_ceil(8)] }
    }

    fn get(&self, at: usize) -> bool {
        at < self.count && self.bytes.get(at / 8).is_some_and(|b| b >> (7 - at % 8) & 1 == 1)
    }

    fn set(&mut self, at: usize, bit: bool) {
        if let Some(b) = self.bytes.get_mut(at / 8) {
            let mask = 0x80 >> (at % 8);
            *b = if bit { *b | mask } else { *b & !mask };
        }
    }

    /// The bits from `from` on as the first of `count`, zeros after the end.
    fn slice(&self, from: usize, count: usize) -> Bits {
        let mut out = Bits::zeros(count);
        let (skip, shift) = (from / 8, from % 8);
        for (n, to) in out.bytes.iter_mut().enumerate() {
            let byte = |at: usize| u16::from(self.bytes.get(at).copied().unwrap_or(0));
            let pair = byte(skip + n) << 8 | byte(skip + n + 1);
            *to = (pair << shift >> 8) as u8;
        }
        out
    }

    /// Writes `other` over the bits from `at` on.
    fn place(&mut self, at: usize, other: &Bits) {
        for n in 0..other.count {
            self.set(at + n, other.get(n));
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&payload(self.count, &self.bytes));
    }

    /// As a number without a sign.
    fn number(&self) -> u64 {
        (0..self.count).fold(0, |n, at| n << 1 | u64::from(self.get(at)))
    }
}

fn mismatch(message: String) -> SqlError {
    SqlError::new(SqlState::StringDataLengthMismatch, message)
}

fn negative_length() -> SqlError {
    SqlError::new(SqlState::SubstringError, "negative substring length not allowed")
}

/// `bit(v, n)`.
fn to_bit(v: &[u8], length: i32, explicit: bool, out: &mut Vec<u8>) -> SqlResult<()> {
    let v = Bits::of(v)?;
    if length <= 0 || length > MAX_BITS || length as usize == v.count {
        v.write(out);
        return Ok(());
    }
    if !explicit {
        return Err(mismatch(format!("bit string length {} does not match type bit({length})", v.count)));
    }
    v.slice(0, length as usize).write(out);
    Ok(())
}

/// `varbit(v, n)`.
fn to_varbit(v: &[u8], length: i32, explicit: bool, out: &mut Vec<u8>) -> SqlResult<()> {
    let v = Bits::of(v)?;
    if length <= 0 || length as usize >= v.count {
        v.write(out);
        return Ok(());
    }
    if !explicit {
        return Err(SqlError::new(
            SqlState::StringDataRightTruncation,
            format!("bit string too long for type bit varying({length})"),
        ));
    }
    v.slice(0, length as usize).write(out);
    Ok(())
}

/// A number's lowest bits, its sign before them.
fn of_number(v: i64, length: i32, out: &mut Vec<u8>) {
    let count = if length <= 0 || length > MAX_BITS { 1 } else { length as usize };
    let mut bits = Bits::zeros(count);
    for at in 0..count {
        let place = (count - 1 - at).min(63);
        bits.set(at, v >> place & 1 == 1);
    }
    bits.write(out);
}

fn combine(call: &Call<'_>, word: &str, f: impl Fn(u8, u8) -> u8) -> SqlResult<Column> {
    write2(call, |a: &[u8], b: &[u8], out| {
        let (a, b) = (Bits::of(a)?, Bits::of(b)?);
        if a.count != b.count {
            return Err(mismatch(format!("cannot {word} bit strings of different sizes")));
        }
        let bytes = a.bytes.iter().zip(&b.bytes).map(|(a, b)| f(*a, *b)).collect();
        Bits { count: a.count, bytes }.write(out);
        Ok(())
    })
}

/// Shifts to the left, or to the right where `by` is negative.
fn shift(v: &[u8], by: i64, out: &mut Vec<u8>) -> SqlResult<()> {
    let v = Bits::of(v)?;
    let distance = usize::try_from(by.unsigned_abs()).unwrap_or(usize::MAX);
    let mut shifted = Bits::zeros(v.count);
    if distance < v.count {
        if by >= 0 {
            shifted = v.slice(distance, v.count);
        } else {
            shifted.place(distance, &v.slice(0, v.count - distance));
        }
    }
    shifted.write(out);
    Ok(())
}

/// `substring`: from a place counted from 1; to the end where there is no length.
fn substring(v: &Bits, from: i32, length: Option<i32>) -> SqlResult<Bits> {
    let beyond = v.count as i64 + 1;
    let start = i64::from(from.max(1));
    let end = match length {
        None => beyond,
        Some(length) if length < 0 => return Err(negative_length()),
        Some(length) => from.checked_add(length).map_or(beyond, |end| i64::from(end).min(beyond)),
    };
    if start >= beyond || end <= start {
        return Ok(Bits::zeros(0));
    }
    Ok(v.slice(start as usize - 1, (end - start) as usize))
}

fn concatenate(parts: &[&Bits], out: &mut Vec<u8>) -> SqlResult<()> {
    let count: usize = parts.iter().map(|p| p.count).sum();
    if count > MAX_BITS as usize {
        return Err(SqlError::new(
            SqlState::ProgramLimitExceeded,
            format!("bit string length exceeds the maximum allowed ({MAX_BITS})"),
        ));
    }
    let mut whole = Bits::zeros(count);
    let mut at = 0;
    for part in parts {
        whole.place(at, part);
        at += part.count;
    }
    whole.write(out);
    Ok(())
}

/// `overlay`: by default as many bits are replaced as are put.
fn overlay(v: &[u8], new: &[u8], from: i32, length: Option<i32>, out: &mut Vec<u8>) -> SqlResult<()> {
    let (v, new) = (Bits::of(v)?, Bits::of(new)?);
    if from <= 0 {
        return Err(negative_length());
    }
    let rest = from.checked_add(length.unwrap_or(new.count as i32)).ok_or_else(int4_range)?;
    concatenate(&[&substring(&v, 1, Some(from - 1))?, &new, &substring(&v, rest, None)?], out)
}

/// `position`: where the first copy starts, from 1; 0 for nowhere.
fn position(v: &[u8], sought: &[u8]) -> SqlResult<i32> {
    let (v, sought) = (Bits::of(v)?, Bits::of(sought)?);
    if v.count == 0 || sought.count > v.count {
        return Ok(0);
    }
    let found = (0..=v.count - sought.count).find(|at| (0..sought.count).all(|n| v.get(at + n) == sought.get(n)));
    Ok(found.map_or(0, |at| at as i32 + 1))
}

fn index(v: &Bits, at: i32) -> SqlResult<usize> {
    usize::try_from(at).ok().filter(|at| *at < v.count).ok_or_else(|| {
        SqlError::new(
            SqlState::ArraySubscriptError,
            format!("bit index {at} out of valid range (0..{})", v.count as i64 - 1),
        )
    })
}

fn set_bit(v: &[u8], at: i32, bit: i32, out: &mut Vec<u8>) -> SqlResult<()> {
    let mut v = Bits::of(v)?;
    let at = index(&v, at)?;
    if bit != 0 && bit != 1 {
        return Err(SqlError::new(SqlState::InvalidParameterValue, "new bit must be 0 or 1"));
    }
    v.set(at, bit == 1);
    v.write(out);
    Ok(())
}

fn length(call: &Call<'_>) -> SqlResult<Column> {
    map1(call, |v: &[u8]| Ok(parts(v)?.0 as i32))
}

/// `&`, `|`, `#` of two bit strings, for the aggregates.
pub(crate) fn fold(a: &[u8], b: &[u8], word: &str, f: impl Fn(u8, u8) -> u8) -> SqlResult<Vec<u8>> {
    let ((count, a), (other, b)) = (parts(a)?, parts(b)?);
    if count != other {
        return Err(mismatch(format!("cannot {word} bit strings of different sizes")));
    }
    Ok(payload(count, &a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect::<Vec<_>>()))
}

/// Casts, operators and functions.
pub(crate) static KERNELS: &[Entry] = &[
    (1685, |c| write3(c, to_bit)),
    (1687, |c| write3(c, to_varbit)),
    (1683, |c| {
        write2(c, |v: i32, length: i32, out| {
            of_number(i64::from(v), length, out);
            Ok(())
        })
    }),
    (2075, |c| {
        write2(c, |v: i64, length: i32, out| {
            of_number(v, length, out);
            Ok(())
        })
    }),
    (1684, |c| {
        map1(c, |v: &[u8]| {
            let v = Bits::of(v)?;
            if v.count > 32 { Err(int4_range()) } else { Ok(v.number() as u32 as i32) }
        })
    }),
    (2076, |c| {
        map1(c, |v: &[u8]| {
            let v = Bits::of(v)?;
            if v.count > 64 { Err(int8_range()) } else { Ok(v.number() as i64) }
        })
    }),
    (1673, |c| combine(c, "AND", |a, b| a & b)),
    (1674, |c| combine(c, "OR", |a, b| a | b)),
    (1675, |c| combine(c, "XOR", |a, b| a ^ b)),
    (1676, |c| {
        write1(c, |v: &[u8], out| {
            let v = Bits::of(v)?;
            Bits { count: v.count, bytes: v.bytes.iter().map(|b| !b).collect() }.write(out);
            Ok(())
        })
    }),
    (1677, |c| write2(c, |v: &[u8], by: i32, out| shift(v, i64::from(by), out))),
    (1678, |c| write2(c, |v: &[u8], by: i32, out| shift(v, -i64::from(by), out))),
    (1679, |c| write2(c, |a: &[u8], b: &[u8], out| concatenate(&[&Bits::of(a)?, &Bits::of(b)?], out))),
    (1680, |c| {
        write3(c, |v: &[u8], from: i32, length: i32, out| {
            substring(&Bits::of(v)?, from, Some(length))?.write(out);
            Ok(())
        })
    }),
    (1699, |c| {
        write2(c, |v: &[u8], from: i32, out| {
            substring(&Bits::of(v)?, from, None)?.write(out);
            Ok(())
        })
    }),
    (3030, |c| write4(c, |v: &[u8], new: &[u8], from: i32, n: i32, out| overlay(v, new, from, Some(n), out))),
    (3031, |c| write3(c, |v: &[u8], new: &[u8], from: i32, out| overlay(v, new, from, None, out))),
    (1698, |c| map2(c, position)),
    (1681, length),
    (1812, length),
    (1682, |c| map1(c, |v: &[u8]| Ok(parts(v)?.1.len() as i32))),
    (3032, |c| {
        map2(c, |v: &[u8], at: i32| {
            let v = Bits::of(v)?;
            Ok(i32::from(v.get(index(&v, at)?)))
        })
    }),
    (3033, |c| write3(c, set_bit)),
    (6162, |c| map1(c, |v: &[u8]| Ok(parts(v)?.1.iter().map(|b| i64::from(b.count_ones())).sum::<i64>()))),
];
