//! `timestamp` and `timestamptz`: microseconds since 2000-01-01, of no zone or of UTC; and their comparison with dates.

use std::cmp::Ordering;

use super::calendar::{EPOCH_JULIAN, TIMESTAMP_END_JULIAN, UNIX_TO_EPOCH_S, is_valid_timestamp};
use super::decode::{self, Kind};
use super::{DAY_US, Fields, SECOND_US, date, encode, lex, out_of_range, round_us, zone};
use crate::ops::get;
use crate::scalar::{exactly, int};
use crate::{
    Collation, Datum, FormatSettings, SqlError, SqlResult, SqlState, TypeContext, TypeDesc, TypeOps, ValueRef,
};

/// `timestamp`.
pub static TIMESTAMP: TypeOps = TypeOps { text_out, text_in, binary_in, ..int::int8::OPS };
/// `timestamptz`.
pub static TIMESTAMPTZ: TypeOps = TypeOps { text_out: text_out_tz, text_in: text_in_tz, ..TIMESTAMP };

/// `infinity`
pub const LATE: i64 = i64::MAX;
/// `-infinity`
pub const EARLY: i64 = i64::MIN;

/// Whether a timestamp is neither infinity.
pub fn is_finite(us: i64) -> bool {
    us != LATE && us != EARLY
}

/// Rounds a timestamp to a typmod.
pub fn apply_typmod(us: i64, typmod: i32) -> SqlResult<i64> {
    if !is_finite(us) || typmod == -1 {
        return Ok(us);
    }
    if !(0..=6).contains(&typmod) {
        return Err(SqlError::new(
            SqlState::InvalidParameterValue,
            format!("timestamp({typmod}) precision must be between 0 and 6"),
        ));
    }
    Ok(round_us(us, typmod))
}

fn parse_as(settings: &FormatSettings, text: &[u8], typmod: i32, type_name: &str, with_zone: bool) -> SqlResult<i64> {
    let read = decode::date_time(settings, text, lex::TIMESTAMP_BUFFER).map_err(|e| e.of(type_name, text))?;
    let us = match read.kind {
        Kind::Fields => read.fields.to_timestamp(if with_zone { read.west } else { 0 }).ok_or_else(|| {
            let text = String::from_utf8_lossy(text);
            SqlError::new(SqlState::DatetimeFieldOverflow, format!("timestamp out of range: \"{text}\""))
        })?,
        Kind::Epoch => -UNIX_TO_EPOCH_S * SECOND_US,
        Kind::Late => LATE,
        Kind::Early => EARLY,
    };
    apply_typmod(us, typmod)
}

/// Reads a `timestamp` from text.
pub fn parse(settings: &FormatSettings, text: &[u8], typmod: i32) -> SqlResult<i64> {
    parse_as(settings, text, typmod, "timestamp", false)
}

/// Reads a `timestamptz` from text.
pub fn parse_tz(settings: &FormatSettings, text: &[u8], typmod: i32) -> SqlResult<i64> {
    parse_as(settings, text, typmod, "timestamp with time zone", true)
}

/// Appends an infinity's text; false where the timestamp is none.
fn write_special(us: i64, out: &mut Vec<u8>) -> bool {
    match us {
        LATE => out.extend_from_slice(b"infinity"),
        EARLY => out.extend_from_slice(b"-infinity"),
        _ => return false,
    }
    true
}

/// Appends a `timestamp`'s text.
pub fn write(settings: &FormatSettings, us: i64, out: &mut Vec<u8>) -> SqlResult<()> {
    if !write_special(us, out) {
        let fields = Fields::of_timestamp(us).ok_or_else(|| out_of_range("timestamp"))?;
        encode::date_time(&fields, None, settings.date_style, settings.date_order, out);
    }
    Ok(())
}

/// Appends a `timestamptz`'s text.
pub fn write_tz(settings: &FormatSettings, us: i64, out: &mut Vec<u8>) -> SqlResult<()> {
    if write_special(us, out) {
        return Ok(());
    }
    let (fields, west) = zone::to_local(&settings.time_zone, us).ok_or_else(|| out_of_range("timestamp"))?;
    // Only the other styles show the abbreviation.
    let abbreviation = match settings.date_style {
        crate::settings::DateStyle::Iso => String::new(),
        _ => zone::abbreviation_at(&settings.time_zone, zone::unix_seconds(us)),
    };
    encode::date_time(&fields, Some((west, &abbreviation)), settings.date_style, settings.date_order, out);
    Ok(())
}

fn text_out(cx: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    write(cx.settings, get::i64(ty, v)?, out)
}

fn text_out_tz(cx: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    write_tz(cx.settings, get::i64(ty, v)?, out)
}

fn text_in(cx: &TypeContext<'_>, _: &TypeDesc, text: &[u8], typmod: i32) -> SqlResult<Datum> {
    parse(cx.settings, text, typmod).map(Datum::Int64)
}

fn text_in_tz(cx: &TypeContext<'_>, _: &TypeDesc, text: &[u8], typmod: i32) -> SqlResult<Datum> {
    parse_tz(cx.settings, text, typmod).map(Datum::Int64)
}

fn binary_in(_: &TypeContext<'_>, _: &TypeDesc, bytes: &[u8], typmod: i32) -> SqlResult<Datum> {
    let us = i64::from_be_bytes(exactly(bytes)?);
    if is_finite(us) && !is_valid_timestamp(us) {
        return Err(out_of_range("timestamp"));
    }
    apply_typmod(us, typmod).map(Datum::Int64)
}

/// The first moment of a date; `None` where that is after the last timestamp.
pub fn of_date(days: i32) -> Option<i64> {
    match days {
        date::LATE => Some(LATE),
        date::EARLY => Some(EARLY),
        days if days >= TIMESTAMP_END_JULIAN - EPOCH_JULIAN => None,
        days => Some(i64::from(days) * DAY_US),
    }
}

/// The moment that a wall clock shows a timestamp in a zone. `22008` where it is out of range.
pub fn to_utc(zone: &jiff::tz::TimeZone, us: i64) -> SqlResult<i64> {
    if !is_finite(us) {
        return Ok(us);
    }
    let fields = Fields::of_timestamp(us).ok_or_else(|| out_of_range("timestamp"))?;
    fields.to_timestamp(zone::west_of_local(zone, &fields)).ok_or_else(|| out_of_range("timestamp"))
}

/// What a wall clock in a zone shows at a moment. `22008` where it is out of range.
pub fn to_wall(zone: &jiff::tz::TimeZone, us: i64) -> SqlResult<i64> {
    if !is_finite(us) {
        return Ok(us);
    }
    let local = zone::to_local(zone, us).and_then(|(fields, _)| fields.to_timestamp(0));
    local.ok_or_else(|| out_of_range("timestamp"))
}

/// The first moment of a date in the session's zone; `None` where that is after the last timestamp.
pub fn tz_of_date(settings: &FormatSettings, days: i32) -> SqlResult<Option<i64>> {
    match days {
        date::LATE => Ok(Some(LATE)),
        date::EARLY => Ok(Some(EARLY)),
        days if days >= TIMESTAMP_END_JULIAN - EPOCH_JULIAN => Ok(None),
        days => {
            let fields = date::fields(days);
            let west = zone::west_of_local(&settings.time_zone, &fields);
            let us = i64::from(days) * DAY_US + i64::from(west) * SECOND_US;
            Ok(is_valid_timestamp(us).then_some(us))
        }
    }
}

/// A date as a timestamp that is only compared: the dates after all timestamps are above them and below infinity.
fn comparable(days: i32) -> i64 {
    of_date(days).unwrap_or(LATE - 1)
}

/// `date_cmp_timestamp` and `timestamp_cmp_date`.
pub fn compare_date(
    _: &TypeContext<'_>,
    ty: &TypeDesc,
    _: &Collation,
    a: ValueRef<'_>,
    b: ValueRef<'_>,
) -> SqlResult<Ordering> {
    let of = |v| match v {
        ValueRef::Int32(days) => Ok(comparable(days)),
        v => get::i64(ty, v),
    };
    Ok(of(a)?.cmp(&of(b)?))
}
