//! `interval`: months, days and microseconds, which do not convert into each other, but compare as if a month had 30
//! days and a day 24 hours.

use stegodon_format::version::Version;

use std::cmp::Ordering;

use super::decode::contains_word;
use super::{DAY_US, DecodeError, HOUR_US, MINUTE_US, decode_interval, encode_interval, out_of_range};
use crate::ops::get;
use crate::scalar::message_too_short;
use crate::{Collation, Datum, SqlError, SqlResult, SqlState, TypeContext, TypeDesc, TypeOps, ValueRef, hash, key};

/// `interval`.
pub static OPS: TypeOps = TypeOps {
    text_out,
    text_in,
    binary_out,
    binary_in,
    compare: Some(compare),
    equal: Some(crate::equal_by!(compare)),
    key: Some(key),
    hash: Some(hash),
    own_key: false,
};

/// An interval taken apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Interval {
    /// Microseconds.
    pub us: i64,
    /// Days.
    pub days: i32,
    /// Months.
    pub months: i32,
}

impl Interval {
    /// `infinity`
    pub const LATE: Interval = Interval { us: i64::MAX, days: i32::MAX, months: i32::MAX };
    /// `-infinity`
    pub const EARLY: Interval = Interval { us: i64::MIN, days: i32::MIN, months: i32::MIN };

    /// Whether it is neither infinity.
    pub fn is_finite(&self) -> bool {
        *self != Self::LATE && *self != Self::EARLY
    }

    /// The value of its sixteen bytes; `None` where they are not sixteen.
    pub fn from_bytes(bytes: &[u8]) -> Option<Interval> {
        let (us, rest) = bytes.split_first_chunk::<8>()?;
        let (days, rest) = rest.split_first_chunk::<4>()?;
        let months: [u8; 4] = rest.try_into().ok()?;
        Some(Interval {
            us: i64::from_le_bytes(*us),
            days: i32::from_le_bytes(*days),
            months: i32::from_le_bytes(months),
        })
    }

    /// Its sixteen bytes.
    pub fn to_bytes(self) -> [u8; 16] {
        let mut out = [0; 16];
        let parts = self.us.to_le_bytes().into_iter().chain(self.days.to_le_bytes()).chain(self.months.to_le_bytes());
        for (to, from) in out.iter_mut().zip(parts) {
            *to = from;
        }
        out
    }

    /// The value as a datum.
    pub fn to_datum(self) -> Datum {
        Datum::bytes(self.to_bytes())
    }

    /// What it is compared as: microseconds.
    pub fn span_us(&self) -> i128 {
        let days = i128::from(self.months) * 30 + i128::from(self.days);
        days * i128::from(DAY_US) + i128::from(self.us)
    }

    /// Cuts and rounds it to a typmod.
    pub fn apply_typmod(self, typmod: i32) -> SqlResult<Interval> {
        if typmod < 0 || !self.is_finite() {
            return Ok(self);
        }
        let (mask, precision) = (typmod >> 16 & range::FULL, typmod & 0xffff);
        let mut v = self;
        let to_multiple = |us: i64, unit: i64| us / unit * unit;
        match mask {
            range::YEAR => v = Interval { months: v.months / 12 * 12, days: 0, us: 0 },
            range::MONTH | range::YEAR_MONTH => v = Interval { days: 0, us: 0, ..v },
            range::DAY => v.us = 0,
            range::HOUR | range::DAY_HOUR => v.us = to_multiple(v.us, HOUR_US),
            range::MINUTE | range::DAY_MINUTE | range::HOUR_MINUTE => v.us = to_multiple(v.us, MINUTE_US),
            range::FULL | range::SECOND | range::DAY_SECOND | range::HOUR_SECOND | range::MINUTE_SECOND => {}
            _ => return Err(SqlError::new(SqlState::InternalError, format!("unrecognized interval typmod: {typmod}"))),
        }
        if precision == 0xffff {
            return Ok(v);
        }
        if precision > 6 {
            return Err(SqlError::new(
                SqlState::InvalidParameterValue,
                format!("interval({precision}) precision must be between 0 and 6"),
            ));
        }
        let unit = 10i64.pow(6 - precision as u32);
        let half = if unit == 1 { 0 } else { unit / 2 };
        let rounded = if v.us >= 0 { v.us.checked_add(half) } else { v.us.checked_sub(half) };
        v.us = rounded.ok_or_else(|| out_of_range("interval"))?;
        v.us -= v.us % unit;
        Ok(v)
    }
}

/// The fields that a typmod allows, as its high half says: bits of `datetime.h`'s `INTERVAL_MASK`.
pub(super) mod range {
    pub const MONTH: i32 = 1 << 1;
    pub const YEAR: i32 = 1 << 2;
    pub const DAY: i32 = 1 << 3;
    pub const HOUR: i32 = 1 << 10;
    pub const MINUTE: i32 = 1 << 11;
    pub const SECOND: i32 = 1 << 12;
    pub const FULL: i32 = 0x7fff;
    pub const YEAR_MONTH: i32 = YEAR | MONTH;
    pub const DAY_HOUR: i32 = DAY | HOUR;
    pub const DAY_MINUTE: i32 = DAY_HOUR | MINUTE;
    pub const DAY_SECOND: i32 = DAY_MINUTE | SECOND;
    pub const HOUR_MINUTE: i32 = HOUR | MINUTE;
    pub const HOUR_SECOND: i32 = HOUR_MINUTE | SECOND;
    pub const MINUTE_SECOND: i32 = MINUTE | SECOND;
}

/// The value of a column of intervals.
pub fn of(ty: &TypeDesc, v: ValueRef<'_>) -> SqlResult<Interval> {
    Interval::from_bytes(get::bytes(ty, v)?).ok_or_else(|| crate::ops::wrong_layout(ty))
}

/// Reads an interval. Before 17 there was no infinity, the values that are one now were finite, and units or `ago` might
/// stand twice.
fn read(settings: &crate::FormatSettings, text: &[u8], mask: i32) -> Result<Option<Interval>, DecodeError> {
    if settings.version >= Version::V17 {
        return decode_interval::interval(settings, text, mask);
    }
    if contains_word(text, b"infinity") {
        return Err(DecodeError::BadFormat);
    }
    let words = text.split(|b| !b.is_ascii_alphabetic()).filter(|w| !w.is_empty()).count();
    match decode_interval::interval(settings, text, mask) {
        Ok(Some(value)) if value.is_finite() => Ok(Some(value)),
        Err(DecodeError::BadFormat) if words < 2 => Err(DecodeError::BadFormat),
        Err(e) if e != DecodeError::BadFormat => Err(e),
        _ => Err(DecodeError::Unsupported("this interval, in a directory older than 17".to_owned())),
    }
}

/// Reads an interval from text.
pub fn parse(settings: &crate::FormatSettings, text: &[u8], typmod: i32) -> SqlResult<Interval> {
    let mask = if typmod >= 0 { typmod >> 16 & range::FULL } else { range::FULL };
    let value = read(settings, text, mask).map_err(|e| {
        let e = if e == DecodeError::FieldOverflow { DecodeError::IntervalOverflow } else { e };
        e.of("interval", text)
    })?;
    value.ok_or_else(|| out_of_range("interval"))?.apply_typmod(typmod)
}

fn text_out(cx: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    let v = of(ty, v)?;
    if cx.settings.version < Version::V17 && !v.is_finite() {
        return Err(SqlError::unsupported("the greatest or least interval, in a directory older than 17"));
    }
    encode_interval::interval(&v, cx.settings.interval_style, out);
    Ok(())
}

fn text_in(cx: &TypeContext<'_>, _: &TypeDesc, text: &[u8], typmod: i32) -> SqlResult<Datum> {
    parse(cx.settings, text, typmod).map(Interval::to_datum)
}

fn binary_out(_: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    let v = of(ty, v)?;
    out.extend_from_slice(&v.us.to_be_bytes());
    out.extend_from_slice(&v.days.to_be_bytes());
    out.extend_from_slice(&v.months.to_be_bytes());
    Ok(())
}

fn binary_in(_: &TypeContext<'_>, _: &TypeDesc, bytes: &[u8], typmod: i32) -> SqlResult<Datum> {
    let exact = crate::scalar::exactly::<16>(bytes)?;
    let (us, rest) = exact.split_first_chunk::<8>().ok_or_else(message_too_short)?;
    let (days, rest) = rest.split_first_chunk::<4>().ok_or_else(message_too_short)?;
    let (months, _) = rest.split_first_chunk::<4>().ok_or_else(message_too_short)?;
    let v =
        Interval { us: i64::from_be_bytes(*us), days: i32::from_be_bytes(*days), months: i32::from_be_bytes(*months) };
    v.apply_typmod(typmod).map(Interval::to_datum)
}

/// `interval_cmp`.
pub fn compare(
    _: &TypeContext<'_>,
    ty: &TypeDesc,
    _: &Collation,
    a: ValueRef<'_>,
    b: ValueRef<'_>,
) -> SqlResult<Ordering> {
    Ok(of(ty, a)?.span_us().cmp(&of(ty, b)?.span_us()))
}

fn key(_: &TypeContext<'_>, ty: &TypeDesc, _: &Collation, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    key::i128(of(ty, v)?.span_us(), out);
    Ok(())
}

fn hash(_: &TypeContext<'_>, ty: &TypeDesc, _: &Collation, v: ValueRef<'_>, seed: u64) -> SqlResult<u64> {
    // PostgreSQL hashes the low half.
    Ok(hash::uint32_extended(hash::fold_i64(of(ty, v)?.span_us() as i64), seed))
}
