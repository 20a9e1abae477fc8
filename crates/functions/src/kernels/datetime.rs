//! Operators and casts of dates, times and intervals.
#![allow(clippy::unnecessary_wraps, reason = "kernels end in a result")]

use jiff::tz::TimeZone;
use stegodon_types::datetime::timetz::TimeTz;
use stegodon_types::datetime::{DAY_US, Interval, SECOND_US, calendar, date, time, timestamp, zone};
use stegodon_types::{SqlError, SqlResult, SqlState};

use super::datetime_math::*;
use crate::adapt::*;
use crate::kernel::Entry;
use crate::{Call, EvalContext};

/// The value of an interval's bytes.
pub(super) fn interval(bytes: &[u8]) -> SqlResult<Interval> {
    Interval::from_bytes(bytes).ok_or_else(|| SqlError::internal("an interval is not of its length"))
}

/// The value of a timetz's bytes.
pub(super) fn timetz(bytes: &[u8]) -> SqlResult<TimeTz> {
    TimeTz::from_bytes(bytes).ok_or_else(|| SqlError::internal("a timetz is not of its length"))
}

/// Appends an interval.
pub(super) fn put(v: Interval, out: &mut Vec<u8>) -> SqlResult<()> {
    out.extend_from_slice(&v.to_bytes());
    Ok(())
}

/// Appends a timetz.
pub(super) fn put_tz(v: TimeTz, out: &mut Vec<u8>) -> SqlResult<()> {
    out.extend_from_slice(&v.to_bytes());
    Ok(())
}

/// The session's zone.
pub(super) fn session_zone<'a>(call: &Call<'a>) -> &'a TimeZone {
    &call.cx.settings.time_zone
}

/// A time of day, which wraps around midnight.
fn wrap(us: i64) -> i64 {
    us.rem_euclid(DAY_US)
}

/// `time + span`
fn add_to_time(us: i64, span: Interval, what: &str) -> SqlResult<i64> {
    if !span.is_finite() {
        return Err(SqlError::new(SqlState::DatetimeFieldOverflow, format!("cannot add infinite interval to {what}")));
    }
    Ok(wrap(us.wrapping_add(span.us)))
}

/// `time - span`
fn subtract_from_time(us: i64, span: Interval, what: &str) -> SqlResult<i64> {
    if !span.is_finite() {
        return Err(SqlError::new(
            SqlState::DatetimeFieldOverflow,
            format!("cannot subtract infinite interval from {what}"),
        ));
    }
    Ok(wrap(us.wrapping_sub(span.us)))
}

/// A day and a time of it.
fn date_and_time(day: i32, us: i64) -> SqlResult<i64> {
    let start = date_to_timestamp(day)?;
    if !timestamp::is_finite(start) {
        return Ok(start);
    }
    start.checked_add(us).filter(|v| calendar::is_valid_timestamp(*v)).ok_or_else(timestamp_range)
}

fn date_range() -> SqlError {
    SqlError::new(SqlState::DatetimeFieldOverflow, "date out of range for timestamp")
}

/// A day and a time in a zone.
fn date_and_timetz(day: i32, at: TimeTz) -> SqlResult<i64> {
    match day {
        date::LATE => return Ok(timestamp::LATE),
        date::EARLY => return Ok(timestamp::EARLY),
        _ => {}
    }
    let start = date_to_timestamp(day)?;
    let moment = start.checked_add(at.us).and_then(|v| v.checked_add(i64::from(at.west) * SECOND_US));
    moment.filter(|v| calendar::is_valid_timestamp(*v)).ok_or_else(date_range)
}

fn date_to_timestamptz(cx: &EvalContext<'_>, day: i32) -> SqlResult<i64> {
    timestamp::tz_of_date(cx.settings, day)?.ok_or_else(date_range)
}

/// The day of a timestamp.
fn date_of(us: i64) -> SqlResult<i32> {
    match us {
        timestamp::LATE => Ok(date::LATE),
        timestamp::EARLY => Ok(date::EARLY),
        us => Ok(us.div_euclid(DAY_US) as i32),
    }
}

/// The day of a moment in the session's zone.
fn date_of_tz(call: &Call<'_>, us: i64) -> SqlResult<i32> {
    if !timestamp::is_finite(us) {
        return date_of(us);
    }
    let (fields, _) = zone::to_local(session_zone(call), us).ok_or_else(timestamp_range)?;
    Ok(fields.julian() - calendar::EPOCH_JULIAN)
}

/// Overflow aside, midnight of the session's day.
fn current_midnight(call: &Call<'_>) -> SqlResult<i64> {
    date_to_timestamp(date_of_tz(call, call.cx.settings.now_us)?)
}

/// Midnight of the session's day, as a moment.
fn current_midnight_tz(call: &Call<'_>) -> SqlResult<i64> {
    date_to_timestamptz(call.cx, date_of_tz(call, call.cx.settings.now_us)?)
}

fn infinite_time() -> SqlError {
    SqlError::new(SqlState::DatetimeFieldOverflow, "cannot convert infinite interval to time")
}

/// Operators of timestamps and intervals.
pub(crate) static OPERATORS: &[Entry] = &[
    (1168, |c| write1(c, |a: &[u8], out| put(negate(interval(a)?)?, out))),
    (1169, |c| write2(c, |a: &[u8], b: &[u8], out| put(add(interval(a)?, interval(b)?)?, out))),
    (1170, |c| write2(c, |a: &[u8], b: &[u8], out| put(subtract(interval(a)?, interval(b)?)?, out))),
    (1618, |c| write2(c, |a: &[u8], f: f64, out| put(multiply(interval(a)?, f)?, out))),
    (1624, |c| write2(c, |f: f64, a: &[u8], out| put(multiply(interval(a)?, f)?, out))),
    (1326, |c| write2(c, |a: &[u8], f: f64, out| put(divide(interval(a)?, f)?, out))),
    (1175, |c| write1(c, |a: &[u8], out| put(justify_hours(interval(a)?)?, out))),
    (1295, |c| write1(c, |a: &[u8], out| put(justify_days(interval(a)?)?, out))),
    (2711, |c| write1(c, |a: &[u8], out| put(justify_interval(interval(a)?)?, out))),
    // Larger and smaller.
    (1198, |c| {
        write2(c, |a: &[u8], b: &[u8], out| {
            let (a, b) = (interval(a)?, interval(b)?);
            put(if a.span_us() > b.span_us() { a } else { b }, out)
        })
    }),
    (1197, |c| {
        write2(c, |a: &[u8], b: &[u8], out| {
            let (a, b) = (interval(a)?, interval(b)?);
            put(if a.span_us() < b.span_us() { a } else { b }, out)
        })
    }),
    (1138, |c| map2(c, |a: i32, b: i32| Ok(a.max(b)))),
    (1139, |c| map2(c, |a: i32, b: i32| Ok(a.min(b)))),
    (1377, |c| map2(c, |a: i64, b: i64| Ok(a.max(b)))),
    (1378, |c| map2(c, |a: i64, b: i64| Ok(a.min(b)))),
    (2036, |c| map2(c, |a: i64, b: i64| Ok(a.max(b)))),
    (2035, |c| map2(c, |a: i64, b: i64| Ok(a.min(b)))),
    (1196, |c| map2(c, |a: i64, b: i64| Ok(a.max(b)))),
    (1195, |c| map2(c, |a: i64, b: i64| Ok(a.min(b)))),
    // Timestamps.
    (2031, |c| write2(c, |a: i64, b: i64, out| put(timestamp_difference(a, b)?, out))),
    (1188, |c| write2(c, |a: i64, b: i64, out| put(timestamp_difference(a, b)?, out))),
    (2032, |c| map2(c, |a: i64, b: &[u8]| add_to_timestamp(a, interval(b)?, None))),
    (2033, |c| map2(c, |a: i64, b: &[u8]| add_to_timestamp(a, negate(interval(b)?)?, None))),
    (2548, |c| map2(c, |b: &[u8], a: i64| add_to_timestamp(a, interval(b)?, None))),
    (1189, |c| map2(c, |a: i64, b: &[u8]| add_to_timestamp(a, interval(b)?, Some(session_zone(c))))),
    (6221, |c| map2(c, |a: i64, b: &[u8]| add_to_timestamp(a, interval(b)?, Some(session_zone(c))))),
    (1190, |c| map2(c, |a: i64, b: &[u8]| add_to_timestamp(a, negate(interval(b)?)?, Some(session_zone(c))))),
    (6223, |c| map2(c, |a: i64, b: &[u8]| add_to_timestamp(a, negate(interval(b)?)?, Some(session_zone(c))))),
    (2549, |c| map2(c, |b: &[u8], a: i64| add_to_timestamp(a, interval(b)?, Some(session_zone(c))))),
    (2058, |c| write2(c, |a: i64, b: i64, out| put(age(a, b, None)?, out))),
    (1199, |c| write2(c, |a: i64, b: i64, out| put(age(a, b, Some(session_zone(c)))?, out))),
    (2059, |c| write1(c, |b: i64, out| put(age(current_midnight(c)?, b, None)?, out))),
    (1386, |c| write1(c, |b: i64, out| put(age(current_midnight_tz(c)?, b, Some(session_zone(c)))?, out))),
    (6177, |c| map3(c, |s: &[u8], a: i64, o: i64| bin(interval(s)?, a, o))),
    (6178, |c| map3(c, |s: &[u8], a: i64, o: i64| bin(interval(s)?, a, o))),
    (1389, |c| map1(c, |v: i64| Ok(timestamp::is_finite(v)))),
    (2048, |c| map1(c, |v: i64| Ok(timestamp::is_finite(v)))),
    (1373, |c| map1(c, |v: i32| Ok(date::is_finite(v)))),
    (1390, |c| map1(c, |v: &[u8]| Ok(interval(v)?.is_finite()))),
    // Dates.
    (1140, |c| map2(c, date_difference)),
    (1141, |c| map2(c, |a: i32, n: i32| add_days(a, i64::from(n)))),
    (1142, |c| map2(c, |a: i32, n: i32| add_days(a, -i64::from(n)))),
    (2550, |c| map2(c, |n: i32, a: i32| add_days(a, i64::from(n)))),
    (2071, |c| map2(c, |a: i32, b: &[u8]| add_to_timestamp(date_to_timestamp(a)?, interval(b)?, None))),
    (2546, |c| map2(c, |b: &[u8], a: i32| add_to_timestamp(date_to_timestamp(a)?, interval(b)?, None))),
    (2072, |c| map2(c, |a: i32, b: &[u8]| add_to_timestamp(date_to_timestamp(a)?, negate(interval(b)?)?, None))),
    (1272, |c| map2(c, date_and_time)),
    (2025, |c| map2(c, date_and_time)),
    (1296, |c| map2(c, |b: i64, a: i32| date_and_time(a, b))),
    (1297, |c| map2(c, |a: i32, b: &[u8]| date_and_timetz(a, timetz(b)?))),
    (1359, |c| map2(c, |a: i32, b: &[u8]| date_and_timetz(a, timetz(b)?))),
    (1298, |c| map2(c, |b: &[u8], a: i32| date_and_timetz(a, timetz(b)?))),
    // Times.
    (1690, |c| write2(c, |a: i64, b: i64, out| put(Interval { us: a - b, days: 0, months: 0 }, out))),
    (1747, |c| map2(c, |a: i64, b: &[u8]| add_to_time(a, interval(b)?, "time"))),
    (1848, |c| map2(c, |b: &[u8], a: i64| add_to_time(a, interval(b)?, "time"))),
    (1748, |c| map2(c, |a: i64, b: &[u8]| subtract_from_time(a, interval(b)?, "time"))),
    (1749, |c| {
        write2(c, |a: &[u8], b: &[u8], out| {
            let a = timetz(a)?;
            put_tz(TimeTz { us: add_to_time(a.us, interval(b)?, "time")?, ..a }, out)
        })
    }),
    (2547, |c| {
        write2(c, |b: &[u8], a: &[u8], out| {
            let a = timetz(a)?;
            put_tz(TimeTz { us: add_to_time(a.us, interval(b)?, "time")?, ..a }, out)
        })
    }),
    (1750, |c| {
        write2(c, |a: &[u8], b: &[u8], out| {
            let a = timetz(a)?;
            put_tz(TimeTz { us: subtract_from_time(a.us, interval(b)?, "time")?, ..a }, out)
        })
    }),
];

/// Casts.
pub(crate) static CASTS: &[Entry] = &[
    (2024, |c| map1(c, date_to_timestamp)),
    (1174, |c| map1(c, |v: i32| date_to_timestamptz(c.cx, v))),
    (1176, |c| map2(c, |a: i32, b: i64| timestamp::to_utc(session_zone(c), date_and_time(a, b)?))),
    (2027, |c| map1(c, |v: i64| timestamp::to_wall(session_zone(c), v))),
    (2028, |c| map1(c, |v: i64| timestamp::to_utc(session_zone(c), v))),
    (6334, |c| map1(c, |v: i64| timestamp::to_wall(session_zone(c), v))),
    (6335, |c| map1(c, |v: i64| timestamp::to_utc(session_zone(c), v))),
    (2029, |c| map1(c, date_of)),
    (1178, |c| map1(c, |v: i64| date_of_tz(c, v))),
    // To time: NULL of an infinity.
    (1316, |c| map1(c, |v: i64| Ok(timestamp::is_finite(v).then(|| wrap(v))))),
    (2019, |c| {
        map1(c, |v: i64| {
            if !timestamp::is_finite(v) {
                return Ok(None);
            }
            let (fields, _) = zone::to_local(session_zone(c), v).ok_or_else(timestamp_range)?;
            Ok(Some(fields.time_us()))
        })
    }),
    (1388, |c| {
        write1(c, |v: i64, out| {
            if !timestamp::is_finite(v) {
                return Ok(false);
            }
            let (fields, west) = zone::to_local(session_zone(c), v).ok_or_else(timestamp_range)?;
            put_tz(TimeTz { us: fields.time_us(), west }, out)?;
            Ok(true)
        })
    }),
    (2046, |c| map1(c, |v: &[u8]| Ok(timetz(v)?.us))),
    (2047, |c| {
        write1(c, |us: i64, out| {
            let (mut fields, _) = zone::to_local(session_zone(c), c.cx.settings.now_us).ok_or_else(timestamp_range)?;
            let time = stegodon_types::datetime::Fields::of_time(us);
            (fields.hour, fields.minute, fields.second, fields.us) = (time.hour, time.minute, time.second, time.us);
            put_tz(TimeTz { us, west: zone::west_of_local(session_zone(c), &fields) }, out)
        })
    }),
    (1370, |c| write1(c, |us: i64, out| put(Interval { us, days: 0, months: 0 }, out))),
    (1419, |c| {
        map1(c, |v: &[u8]| {
            let v = interval(v)?;
            if v.is_finite() { Ok(wrap(v.us)) } else { Err(infinite_time()) }
        })
    }),
    // To a precision.
    (1961, |c| map2(c, timestamp::apply_typmod)),
    (1967, |c| map2(c, timestamp::apply_typmod)),
    (1968, |c| map2(c, |v: i64, typmod: i32| Ok(time::apply_typmod(v, typmod)))),
    (1969, |c| write2(c, |v: &[u8], typmod: i32, out| put_tz(timetz(v)?.apply_typmod(typmod), out))),
    (1200, |c| write2(c, |v: &[u8], typmod: i32, out| put(interval(v)?.apply_typmod(typmod)?, out))),
];
