//! Making dates and times of their parts, moving them between zones, and OVERLAPS.

use stegodon_types::datetime::calendar::{
    EPOCH_JULIAN, TIMESTAMP_END_JULIAN, UNIX_EPOCH_JULIAN, UNIX_TO_EPOCH_S, days_in_month, is_valid_date,
    is_valid_julian, is_valid_timestamp,
};
use stegodon_types::datetime::timetz::TimeTz;
use stegodon_types::datetime::{DAY_S, DAY_US, Fields, HOUR_US, Interval, MINUTE_US, SECOND_US, timestamp, zone};
use stegodon_types::{SqlError, SqlResult, SqlState};

use super::datetime::{interval, put, put_tz, session_zone, timetz};
use super::datetime_math::{add_to_timestamp, interval_range, negate, timestamp_range};
use super::datetime_part::zone_named;
use crate::adapt::*;
use crate::kernel::Entry;
use crate::{Call, Column};

fn overflow(message: String) -> SqlError {
    SqlError::new(SqlState::DatetimeFieldOverflow, message)
}

/// A date's fields; a negative year is BC. Messages show the year given, or as PostgreSQL counts (1 BC is 0).
fn checked_date(year: i32, month: i32, day: i32, show_counted: bool) -> SqlResult<Fields> {
    let counted = if year < 0 { year.checked_neg().map(|y| 1 - y) } else { Some(year) };
    let shown = if show_counted { counted.unwrap_or(year) } else { year };
    let shown = format!("{shown}-{month:02}-{day:02}");
    let is_day = |y: i32| year != 0 && (1..=12).contains(&month) && (1..=days_in_month(y, month)).contains(&day);
    let Some(year) = counted.filter(|y| is_day(*y)) else {
        return Err(overflow(format!("date field value out of range: {shown}")));
    };
    let fields = Fields { year, month, day, ..Fields::default() };
    if !is_valid_julian(year, month) || (show_counted && !is_valid_date(fields.julian() - EPOCH_JULIAN)) {
        return Err(overflow(format!("date out of range: {shown}")));
    }
    Ok(fields)
}

fn make_date(year: i32, month: i32, day: i32) -> SqlResult<i32> {
    Ok(checked_date(year, month, day, true)?.julian() - EPOCH_JULIAN)
}

/// The microseconds of a time of day; none where it is no such time.
fn time_us(hour: i32, minute: i32, second: f64) -> Option<i64> {
    if !(0..=24).contains(&hour) || !(0..60).contains(&minute) || second.is_nan() {
        return None;
    }
    let us = (second * SECOND_US as f64).round_ties_even();
    if us < 0.0 || us > MINUTE_US as f64 {
        return None;
    }
    let us = i64::from(hour) * HOUR_US + i64::from(minute) * MINUTE_US + us as i64;
    (us <= DAY_US).then_some(us)
}

/// C's `%g`.
fn general(v: f64) -> String {
    if v.is_nan() {
        return "NaN".to_owned();
    }
    if v.is_infinite() {
        return if v > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let scientific = format!("{v:.5e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let power: i32 = exponent.parse().unwrap_or(0);
    let without_zeros = |text: &str| {
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text.to_owned() }
    };
    if (-4..6).contains(&power) {
        let decimals = usize::try_from(5 - power).unwrap_or(0);
        return without_zeros(&format!("{v:.decimals$}"));
    }
    let sign = if power < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_zeros(mantissa), power.abs())
}

/// C's `%02g`.
fn shown_seconds(second: f64) -> String {
    let text = general(second);
    if text.len() < 2 { format!("0{text}") } else { text }
}

fn checked_time(hour: i32, minute: i32, second: f64) -> SqlResult<i64> {
    time_us(hour, minute, second).ok_or_else(|| {
        let second = shown_seconds(second);
        overflow(format!("time field value out of range: {hour}:{minute:02}:{second}"))
    })
}

struct Stamp {
    year: i32,
    month: i32,
    day: i32,
    hour: i32,
    minute: i32,
    second: f64,
}

fn make_timestamp(s: &Stamp) -> SqlResult<i64> {
    let date = checked_date(s.year, s.month, s.day, false)?;
    let time = checked_time(s.hour, s.minute, s.second)?;
    let us = i64::from(date.julian() - EPOCH_JULIAN).checked_mul(DAY_US).and_then(|d| d.checked_add(time));
    us.filter(|v| is_valid_timestamp(*v)).ok_or_else(|| {
        let second = shown_seconds(s.second);
        let Stamp { year, month, day, hour, minute, .. } = s;
        overflow(format!("timestamp out of range: {year}-{month:02}-{day:02} {hour}:{minute:02}:{second}"))
    })
}

/// `to_timestamp(double precision)`
fn of_unix_seconds(seconds: f64) -> SqlResult<i64> {
    let beyond = || overflow(format!("timestamp out of range: \"{}\"", general(seconds)));
    if seconds.is_nan() {
        return Err(overflow("timestamp cannot be NaN".to_owned()));
    }
    if seconds.is_infinite() {
        return Ok(if seconds > 0.0 { timestamp::LATE } else { timestamp::EARLY });
    }
    let day = DAY_S as f64;
    let first = day * f64::from(-UNIX_EPOCH_JULIAN);
    let end = day * f64::from(TIMESTAMP_END_JULIAN - UNIX_EPOCH_JULIAN);
    if seconds < first || seconds >= end {
        return Err(beyond());
    }
    let us = ((seconds - UNIX_TO_EPOCH_S as f64) * SECOND_US as f64).round_ties_even() as i64;
    if is_valid_timestamp(us) { Ok(us) } else { Err(beyond()) }
}

fn make_interval(call: &Call<'_>) -> SqlResult<Column> {
    let seconds = Values::<f64>::of(call, 6)?;
    let part = |n| Values::<i32>::of(call, n);
    let (years, months, weeks, days, hours, minutes) = (part(0)?, part(1)?, part(2)?, part(3)?, part(4)?, part(5)?);
    rows_write(call, |row, out| {
        let months = years.at(row).checked_mul(12).and_then(|v| v.checked_add(months.at(row)));
        let days = weeks.at(row).checked_mul(7).and_then(|v| v.checked_add(days.at(row)));
        let time = i64::from(hours.at(row)) * HOUR_US + i64::from(minutes.at(row)) * MINUTE_US;
        let seconds = seconds.at(row);
        let us = seconds * SECOND_US as f64;
        if us.is_infinite() && seconds.is_finite() {
            return Err(crate::aggregate::float_overflow());
        }
        let us = us.round_ties_even();
        let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&us);
        let us = fits.then_some(us as i64).and_then(|us| time.checked_add(us));
        let (Some(months), Some(days), Some(us)) = (months, days, us) else { return Err(interval_range()) };
        let v = Interval { us, days, months };
        if v.is_finite() { put(v, out) } else { Err(interval_range()) }
    })
}

/// An interval as a zone: seconds east.
fn zone_of_interval(call: &Call<'_>, v: Interval) -> SqlResult<i32> {
    let refuse = |why: &str| {
        let ty = call.cx.types.type_desc(stegodon_types::oids::INTERVAL)?;
        let mut text = Vec::new();
        let cx = stegodon_types::TypeContext::new(call.cx.types, call.cx.settings);
        stegodon_types::text_out(&cx, &ty, v.to_datum().as_ref(), &mut text)?;
        let text = String::from_utf8_lossy(&text);
        Err(SqlError::new(SqlState::InvalidParameterValue, format!("interval time zone \"{text}\" must {why}")))
    };
    if !v.is_finite() {
        return refuse("be finite");
    }
    if v.months != 0 || v.days != 0 {
        return refuse("not include months or days");
    }
    // PostgreSQL keeps the low half.
    Ok((v.us / SECOND_US) as i32)
}

fn shift(us: i64, seconds: i64) -> SqlResult<i64> {
    us.checked_add(seconds * SECOND_US).filter(|v| is_valid_timestamp(*v)).ok_or_else(timestamp_range)
}

/// `timestamp AT TIME ZONE name`
fn to_moment(call: &Call<'_>, name: &[u8], at: i64) -> SqlResult<i64> {
    if !timestamp::is_finite(at) {
        return Ok(at);
    }
    let name = String::from_utf8_lossy(name);
    match zone::named(&name, session_zone(call))? {
        zone::Named::Fixed(east) => shift(at, -i64::from(east)),
        zone::Named::Abbreviation(tz) => {
            let fields = Fields::of_timestamp(at).ok_or_else(timestamp_range)?;
            shift(at, i64::from(zone::west_of_abbreviation(&name, &tz, &fields)))
        }
        zone::Named::Zone(tz) => timestamp::to_utc(&tz, at),
    }
}

/// How many seconds west a zone's name is at a moment.
fn west_at(call: &Call<'_>, name: &[u8], at: i64) -> SqlResult<i32> {
    let name = String::from_utf8_lossy(name);
    match zone::named(&name, session_zone(call))? {
        zone::Named::Fixed(east) => Ok(-east),
        zone::Named::Abbreviation(tz) => {
            if let Some(west) = zone::west_of_abbreviation_at(&name, &tz, zone::unix_seconds(at)) {
                return Ok(west);
            }
            let (fields, _) = zone::to_local(&tz, at).ok_or_else(timestamp_range)?;
            Ok(zone::west_of_local(&tz, &fields))
        }
        zone::Named::Zone(tz) => Ok(zone::to_local(&tz, at).ok_or_else(timestamp_range)?.1),
    }
}

/// `timestamptz AT TIME ZONE name`
fn to_wall(call: &Call<'_>, name: &[u8], at: i64) -> SqlResult<i64> {
    if !timestamp::is_finite(at) {
        return Ok(at);
    }
    shift(at, -i64::from(west_at(call, name, at)?))
}

/// A time in another zone.
fn move_time(v: TimeTz, west: i32) -> TimeTz {
    TimeTz { us: (v.us + i64::from(v.west.wrapping_sub(west)) * SECOND_US).rem_euclid(DAY_US), west }
}

/// OVERLAPS, as the standard has it: NULL where a missing end could decide.
fn overlaps<T: Ord + Copy>(s1: Option<T>, e1: Option<T>, s2: Option<T>, e2: Option<T>) -> Option<bool> {
    let ordered = |s: Option<T>, e: Option<T>| match (s, e) {
        (None, None) => None,
        (Some(s), Some(e)) => Some((s.min(e), Some(s.max(e)))),
        (Some(v), None) | (None, Some(v)) => Some((v, None)),
    };
    let ((s1, e1), (s2, e2)) = (ordered(s1, e1)?, ordered(s2, e2)?);
    let later_first = |start: T, other_end: Option<T>, own_end: Option<T>| {
        if start < other_end? {
            return Some(true);
        }
        own_end.map(|_| false)
    };
    match s1.cmp(&s2) {
        std::cmp::Ordering::Greater => later_first(s1, e2, e1),
        std::cmp::Ordering::Less => later_first(s2, e1, e2),
        std::cmp::Ordering::Equal => e1.and(e2).map(|_| true),
    }
}

/// An end that is given as a length.
fn end(
    start: Option<i64>,
    length: Option<&[u8]>,
    add: impl Fn(i64, Interval) -> SqlResult<i64>,
) -> SqlResult<Option<i64>> {
    match (start, length) {
        (Some(start), Some(length)) => add(start, interval(length)?).map(Some),
        _ => Ok(None),
    }
}

/// `time + interval` wraps around.
fn time_plus(us: i64, span: Interval) -> SqlResult<i64> {
    if !span.is_finite() {
        return Err(overflow("cannot add infinite interval to time".to_owned()));
    }
    Ok(us.wrapping_add(span.us).rem_euclid(DAY_US))
}

type Add<'a> = &'a dyn Fn(i64, Interval) -> SqlResult<i64>;

fn overlaps_by_length(call: &Call<'_>, first: bool, second: bool, add: Add<'_>) -> SqlResult<Column> {
    match (first, second) {
        (true, true) => opt4(call, |a: Option<i64>, b: Option<&[u8]>, c: Option<i64>, d: Option<&[u8]>| {
            Ok(overlaps(a, end(a, b, add)?, c, end(c, d, add)?))
        }),
        (true, false) => opt4(call, |a: Option<i64>, b: Option<&[u8]>, c: Option<i64>, d: Option<i64>| {
            Ok(overlaps(a, end(a, b, add)?, c, d))
        }),
        _ => opt4(call, |a: Option<i64>, b: Option<i64>, c: Option<i64>, d: Option<&[u8]>| {
            Ok(overlaps(a, b, c, end(c, d, add)?))
        }),
    }
}

fn overlaps_by_ends(call: &Call<'_>) -> SqlResult<Column> {
    opt4(call, |a: Option<i64>, b: Option<i64>, c: Option<i64>, d: Option<i64>| Ok(overlaps(a, b, c, d)))
}

fn stamp_overlaps(call: &Call<'_>, first: bool, second: bool) -> SqlResult<Column> {
    overlaps_by_length(call, first, second, &|at, span| add_to_timestamp(at, span, None))
}

fn moment_overlaps(call: &Call<'_>, first: bool, second: bool) -> SqlResult<Column> {
    let tz = session_zone(call);
    overlaps_by_length(call, first, second, &|at, span| add_to_timestamp(at, span, Some(tz)))
}

/// Kernels.
pub(crate) static KERNELS: &[Entry] = &[
    (3846, |c| map3(c, make_date)),
    (3847, |c| map3(c, checked_time)),
    (3461, |c| {
        map6(c, |year, month, day, hour, minute, second| {
            make_timestamp(&Stamp { year, month, day, hour, minute, second })
        })
    }),
    (3462, |c| {
        map6(c, |year, month, day, hour, minute, second| {
            let at = make_timestamp(&Stamp { year, month, day, hour, minute, second })?;
            timestamp::to_utc(session_zone(c), at)
        })
    }),
    (3464, make_interval),
    (1158, |c| map1(c, of_unix_seconds)),
    // Between zones.
    (2069, |c| map2(c, |name: &[u8], at: i64| to_moment(c, name, at))),
    (1159, |c| map2(c, |name: &[u8], at: i64| to_wall(c, name, at))),
    (2070, |c| {
        map2(c, |z: &[u8], at: i64| {
            if !timestamp::is_finite(at) {
                return Ok(at);
            }
            shift(at, -i64::from(zone_of_interval(c, interval(z)?)?))
        })
    }),
    (1026, |c| {
        map2(c, |z: &[u8], at: i64| {
            if !timestamp::is_finite(at) {
                return Ok(at);
            }
            shift(at, i64::from(zone_of_interval(c, interval(z)?)?))
        })
    }),
    (2037, |c| {
        write2(c, |name: &[u8], v: &[u8], out| {
            put_tz(move_time(timetz(v)?, west_at(c, name, c.cx.settings.now_us)?), out)
        })
    }),
    (2038, |c| {
        write2(c, |z: &[u8], v: &[u8], out| {
            put_tz(move_time(timetz(v)?, zone_of_interval(c, interval(z)?)?.wrapping_neg()), out)
        })
    }),
    (6222, |c| map3(c, |at: i64, v: &[u8], z: &[u8]| add_to_timestamp(at, interval(v)?, Some(&zone_named(c.cx, z)?)))),
    (6273, |c| {
        map3(c, |at: i64, v: &[u8], z: &[u8]| {
            let tz = zone_named(c.cx, z)?;
            add_to_timestamp(at, negate(interval(v)?)?, Some(&tz))
        })
    }),
    // OVERLAPS.
    (2041, overlaps_by_ends),
    (1304, overlaps_by_ends),
    (1308, overlaps_by_ends),
    (1271, |c| {
        opt4(c, |a: Option<&[u8]>, b: Option<&[u8]>, d: Option<&[u8]>, e: Option<&[u8]>| {
            // Ordered as timetz is: by the moment, then by the zone.
            let of = |v: Option<&[u8]>| v.map(|v| timetz(v).map(|v| (v.utc_us(), v.west))).transpose();
            Ok(overlaps(of(a)?, of(b)?, of(d)?, of(e)?))
        })
    }),
    (2042, |c| stamp_overlaps(c, true, true)),
    (2044, |c| stamp_overlaps(c, true, false)),
    (2043, |c| stamp_overlaps(c, false, true)),
    (1305, |c| moment_overlaps(c, true, true)),
    (1307, |c| moment_overlaps(c, true, false)),
    (1306, |c| moment_overlaps(c, false, true)),
    (1309, |c| overlaps_by_length(c, true, true, &time_plus)),
    (1311, |c| overlaps_by_length(c, true, false, &time_plus)),
    (1310, |c| overlaps_by_length(c, false, true, &time_plus)),
];
