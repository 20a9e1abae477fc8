//! `extract`, `date_part` and `date_trunc`.

use jiff::tz::TimeZone;
use stegodon_format::version::Version;
use stegodon_types::datetime::calendar::{EPOCH_JULIAN, UNIX_TO_EPOCH_S, from_julian, to_julian, weekday};
use stegodon_types::datetime::tokens::{Reserved, Token, Unit, date_word, unit_word};
use stegodon_types::datetime::{
    DAY_S, DAY_US, Fields, HOUR_US, Interval, MINUTE_US, SECOND_US, date, timestamp, timetz::TimeTz, zone,
};
use stegodon_types::numeric::{self, Numeric};
use stegodon_types::{SqlError, SqlResult, SqlState};

use super::datetime::{interval, put, session_zone, timetz};
use super::datetime_math::{interval_range, timestamp_range};
use crate::adapt::*;
use crate::kernel::Entry;
use crate::{Call, Column, EvalContext};

/// A field's value.
#[derive(Clone, Copy)]
enum Part {
    /// None: of an infinity.
    Null,
    /// A whole number.
    Whole(i64),
    /// A number of this many decimals, and the same as PostgreSQL computes it for `date_part`.
    Decimal(i128, i32, f64),
    /// The Julian day and the microseconds of it.
    Julian(i32, i64, f64),
    /// An infinity.
    Infinite(bool),
}

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Unit(Unit),
    Epoch,
    /// Another moment's name.
    Reserved,
}

struct Asked<'a> {
    field: Field,
    word: &'a str,
    type_name: &'static str,
}

impl Asked<'_> {
    fn unsupported(&self) -> SqlError {
        SqlError::new(
            SqlState::FeatureNotSupported,
            format!("unit \"{}\" not supported for type {}", self.word, self.type_name),
        )
    }
}

fn unrecognized(word: &str, type_name: &str) -> SqlError {
    SqlError::new(SqlState::InvalidParameterValue, format!("unit \"{word}\" not recognized for type {type_name}"))
}

/// A unit's name as identifiers are read: in lower case, cut after 63 bytes.
fn downcase(units: &[u8]) -> String {
    let text = String::from_utf8_lossy(units).to_ascii_lowercase();
    let mut end = text.len().min(63);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().to_owned()
}

fn ask<'a>(word: &'a str, type_name: &'static str) -> SqlResult<Asked<'a>> {
    let field = match unit_word(word).or_else(|| date_word(word)) {
        Some(Token::Unit(unit)) => Field::Unit(unit),
        Some(Token::Reserved(Reserved::Epoch)) => Field::Epoch,
        Some(Token::Reserved(_)) => Field::Reserved,
        _ => return Err(unrecognized(word, type_name)),
    };
    Ok(Asked { field, word, type_name })
}

/// The Julian day of the first Monday of an ISO year's week.
fn iso_week_start(year: i32, week: i32) -> i32 {
    let fourth = to_julian(year, 1, 4);
    (week - 1) * 7 + (fourth - weekday(fourth - 1))
}

/// The ISO year and week of a day.
pub(super) fn iso_week(f: &Fields) -> (i32, i32) {
    let day = f.julian();
    let mut year = f.year;
    if day < iso_week_start(year, 1) {
        year -= 1;
    }
    let mut week = (day - iso_week_start(year, 1)) / 7 + 1;
    // The last days of a year can be of the next one's first week. PostgreSQL looks a year after the day's own.
    if week >= 52 && day >= iso_week_start(f.year + 1, 1) {
        year = if year < f.year { year } else { f.year + 1 };
        week = (day - iso_week_start(f.year + 1, 1)) / 7 + 1;
    }
    (year, week)
}

/// Years are counted without a year 0.
fn shown_year(year: i32) -> i64 {
    i64::from(if year > 0 { year } else { year - 1 })
}

fn decade(year: i32) -> i64 {
    i64::from(if year >= 0 { year / 10 } else { -((8 - (year - 1)) / 10) })
}

fn century(year: i32) -> i64 {
    i64::from(if year > 0 { (year + 99) / 100 } else { -((99 - (year - 1)) / 100) })
}

fn millennium(year: i32) -> i64 {
    i64::from(if year > 0 { (year + 999) / 1000 } else { -((999 - (year - 1)) / 1000) })
}

/// Fields of the day.
fn of_day(unit: Unit, f: &Fields) -> Option<i64> {
    Some(match unit {
        Unit::Day => i64::from(f.day),
        Unit::Month => i64::from(f.month),
        Unit::Quarter => i64::from((f.month - 1) / 3 + 1),
        Unit::Week => i64::from(iso_week(f).1),
        Unit::Year => shown_year(f.year),
        Unit::Decade => decade(f.year),
        Unit::Century => century(f.year),
        Unit::Millennium => millennium(f.year),
        Unit::IsoYear => shown_year(iso_week(f).0),
        Unit::Dow => i64::from(weekday(f.julian())),
        Unit::IsoDow => match weekday(f.julian()) {
            0 => 7,
            day => i64::from(day),
        },
        Unit::Doy => i64::from(f.julian() - to_julian(f.year, 1, 1) + 1),
        _ => return None,
    })
}

/// Fields of a time of day, also of an interval's.
fn of_time(unit: Unit, hour: i64, minute: i64, second: i64, us: i64) -> Option<Part> {
    let all = second * SECOND_US + us;
    Some(match unit {
        Unit::Microsecond => Part::Whole(all),
        Unit::Millisecond => Part::Decimal(i128::from(all), 3, second as f64 * 1000.0 + us as f64 / 1000.0),
        Unit::Second => Part::Decimal(i128::from(all), 6, second as f64 + us as f64 / 1_000_000.0),
        Unit::Minute => Part::Whole(minute),
        Unit::Hour => Part::Whole(hour),
        _ => return None,
    })
}

fn of_clock(unit: Unit, f: &Fields) -> Option<Part> {
    of_time(unit, i64::from(f.hour), i64::from(f.minute), i64::from(f.second), i64::from(f.us))
}

/// Fields of a zone's offset.
fn of_zone(unit: Unit, west: i32) -> Option<Part> {
    let east = i64::from(-west);
    Some(Part::Whole(match unit {
        Unit::Zone => east,
        Unit::ZoneHour => east / 3600,
        Unit::ZoneMinute => east / 60 % 60,
        _ => return None,
    }))
}

/// Fields of an infinite moment: those that only grow are infinite, the others unknown.
fn of_infinity(asked: &Asked<'_>, positive: bool) -> SqlResult<Part> {
    match asked.field {
        Field::Epoch
        | Field::Unit(Unit::Year | Unit::Decade | Unit::Century | Unit::Millennium | Unit::Julian | Unit::IsoYear) => {
            Ok(Part::Infinite(positive))
        }
        Field::Unit(_) => Ok(Part::Null),
        Field::Reserved => Err(asked.unsupported()),
    }
}

/// Seconds since 1970 with their fraction.
fn epoch(at: i64) -> Part {
    let since = i128::from(at) + i128::from(UNIX_TO_EPOCH_S * SECOND_US);
    let float = match i64::try_from(since) {
        Ok(v) => v as f64 / 1_000_000.0,
        Err(_) => (at as f64 + (UNIX_TO_EPOCH_S * SECOND_US) as f64) / 1_000_000.0,
    };
    Part::Decimal(since, 6, float)
}

fn of_timestamp(word: &str, at: i64, in_zone: Option<&TimeZone>) -> SqlResult<Part> {
    let type_name = if in_zone.is_some() { "timestamp with time zone" } else { "timestamp without time zone" };
    let asked = ask(word, type_name)?;
    if !timestamp::is_finite(at) {
        return of_infinity(&asked, at > 0);
    }
    let unit = match asked.field {
        Field::Epoch => return Ok(epoch(at)),
        Field::Reserved => return Err(asked.unsupported()),
        Field::Unit(unit) => unit,
    };
    let (f, west) = match in_zone {
        Some(tz) => zone::to_local(tz, at).map(|(f, west)| (f, Some(west))),
        None => Fields::of_timestamp(at).map(|f| (f, None)),
    }
    .ok_or_else(timestamp_range)?;
    if unit == Unit::Julian {
        let whole = i64::from(f.hour * 3600 + f.minute * 60 + f.second);
        let float = f64::from(f.julian()) + (whole as f64 + f64::from(f.us) / 1_000_000.0) / DAY_S as f64;
        return Ok(Part::Julian(f.julian(), f.time_us(), float));
    }
    // Of timestamptz PostgreSQL takes the year 1 BC for one of decade 0 by another rule, to the same result but there.
    if unit == Unit::Decade && in_zone.is_some() && f.year == 0 {
        return Ok(Part::Whole(-((8 - (f.year - 1)) as i64 / 10)));
    }
    of_day(unit, &f)
        .map(Part::Whole)
        .or_else(|| of_clock(unit, &f))
        .or_else(|| west.and_then(|west| of_zone(unit, west)))
        .ok_or_else(|| asked.unsupported())
}

fn of_date(word: &str, day: i32) -> SqlResult<Part> {
    let asked = ask(word, "date")?;
    if !date::is_finite(day) {
        return match asked.field {
            Field::Unit(
                Unit::Day | Unit::Month | Unit::Quarter | Unit::Week | Unit::Dow | Unit::IsoDow | Unit::Doy,
            ) => Ok(Part::Null),
            Field::Epoch => Ok(Part::Infinite(day > 0)),
            Field::Unit(
                Unit::Year | Unit::Decade | Unit::Century | Unit::Millennium | Unit::Julian | Unit::IsoYear,
            ) => Ok(Part::Infinite(day > 0)),
            _ => Err(asked.unsupported()),
        };
    }
    match asked.field {
        Field::Epoch => Ok(Part::Whole((i64::from(day) * DAY_S) + UNIX_TO_EPOCH_S)),
        Field::Unit(Unit::Julian) => Ok(Part::Whole(i64::from(day) + i64::from(EPOCH_JULIAN))),
        Field::Unit(unit) => of_day(unit, &date::fields(day)).map(Part::Whole).ok_or_else(|| asked.unsupported()),
        Field::Reserved => Err(asked.unsupported()),
    }
}

fn of_time_of_day(word: &str, us: i64) -> SqlResult<Part> {
    let asked = ask(word, "time without time zone")?;
    match asked.field {
        Field::Epoch => Ok(Part::Decimal(i128::from(us), 6, us as f64 / 1_000_000.0)),
        Field::Unit(unit) => of_clock(unit, &Fields::of_time(us)).ok_or_else(|| asked.unsupported()),
        // Only the epoch is a moment that a time knows.
        Field::Reserved => Err(unrecognized(word, "time without time zone")),
    }
}

fn of_timetz(word: &str, v: TimeTz) -> SqlResult<Part> {
    let asked = ask(word, "time with time zone")?;
    match asked.field {
        Field::Epoch => {
            let us = v.us + i64::from(v.west) * SECOND_US;
            Ok(Part::Decimal(i128::from(us), 6, v.us as f64 / 1_000_000.0 + f64::from(v.west)))
        }
        Field::Unit(unit) => {
            of_clock(unit, &Fields::of_time(v.us)).or_else(|| of_zone(unit, v.west)).ok_or_else(|| asked.unsupported())
        }
        Field::Reserved => Err(unrecognized(word, "time with time zone")),
    }
}

fn interval_epoch(v: Interval) -> Part {
    // A year has 365.25 days here, a month 30; four times as many, so that all are whole.
    let (years, months) = (i64::from(v.months / 12), i64::from(v.months % 12));
    let seconds = (1461 * years + 120 * months + 4 * i64::from(v.days)) * (DAY_S / 4);
    let exact = i128::from(seconds) * i128::from(SECOND_US) + i128::from(v.us);
    let day = DAY_S as f64;
    let mut float = v.us as f64 / 1_000_000.0;
    float += 365.25 * day * years as f64;
    float += 30.0 * day * months as f64;
    float += day * f64::from(v.days);
    Part::Decimal(exact, 6, float)
}

fn of_interval(call: &Call<'_>, word: &str, v: Interval) -> SqlResult<Part> {
    let asked = ask(word, "interval")?;
    // Weeks, and quarters of negative intervals that are negative, came with 18.
    let before_18 = call.cx.settings.version < Version::V18;
    if before_18 && matches!(asked.field, Field::Unit(Unit::Week)) {
        return Err(asked.unsupported());
    }
    if !v.is_finite() {
        let positive = v == Interval::LATE;
        return match asked.field {
            Field::Unit(
                Unit::Microsecond
                | Unit::Millisecond
                | Unit::Second
                | Unit::Minute
                | Unit::Week
                | Unit::Month
                | Unit::Quarter,
            ) => Ok(Part::Null),
            Field::Epoch
            | Field::Unit(Unit::Hour | Unit::Day | Unit::Year | Unit::Decade | Unit::Century | Unit::Millennium) => {
                Ok(Part::Infinite(positive))
            }
            _ => Err(asked.unsupported()),
        };
    }
    let unit = match asked.field {
        Field::Epoch => return Ok(interval_epoch(v)),
        Field::Reserved => return Err(unrecognized(word, "interval")),
        Field::Unit(unit) => unit,
    };
    let year = i64::from(v.months / 12);
    Ok(Part::Whole(match unit {
        Unit::Day => i64::from(v.days),
        Unit::Week => i64::from(v.days / 7),
        Unit::Month => i64::from(v.months % 12),
        Unit::Quarter if v.months >= 0 || before_18 => i64::from(v.months % 12 / 3 + 1),
        Unit::Quarter => -i64::from(-(v.months % 12) / 3 + 1),
        Unit::Year => year,
        Unit::Decade => year / 10,
        Unit::Century => year / 100,
        Unit::Millennium => year / 1000,
        _ => {
            let (hour, minute) = (v.us / HOUR_US, v.us % HOUR_US / MINUTE_US);
            let (second, us) = (v.us % MINUTE_US / SECOND_US, v.us % SECOND_US);
            return of_time(unit, hour, minute, second, us).ok_or_else(|| asked.unsupported());
        }
    }))
}

/// `date_part`'s answer.
fn as_float(part: Part) -> Option<f64> {
    match part {
        Part::Null => None,
        Part::Whole(v) => Some(v as f64),
        Part::Decimal(_, _, float) | Part::Julian(_, _, float) => Some(float),
        Part::Infinite(positive) => Some(if positive { f64::INFINITY } else { f64::NEG_INFINITY }),
    }
}

/// `extract`'s answer, appended; false for NULL.
fn as_numeric(part: Part, out: &mut Vec<u8>) -> SqlResult<bool> {
    match part {
        Part::Null => return Ok(false),
        Part::Whole(v) => numeric::write_scaled(i128::from(v), 0, out)?,
        Part::Decimal(v, scale, _) => numeric::write_scaled(v, scale, out)?,
        Part::Julian(day, us, _) => {
            let number = |v: i64| numeric::parse(v.to_string().as_bytes());
            let tail = number(us)?.div(&number(DAY_US)?)?;
            number(i64::from(day))?.add(&tail).write_payload(out)?;
        }
        Part::Infinite(positive) => {
            let infinity: Numeric = numeric::parse(if positive { b"Infinity" } else { b"-Infinity" })?;
            infinity.write_payload(out)?;
        }
    }
    Ok(true)
}

fn part_of<'a, A: Arg<'a>>(call: &Call<'a>, f: impl Fn(&str, A) -> SqlResult<Part>) -> SqlResult<Column> {
    map2(call, |unit: &[u8], v: A| Ok(as_float(f(&downcase(unit), v)?)))
}

fn extract<'a, A: Arg<'a>>(call: &Call<'a>, f: impl Fn(&str, A) -> SqlResult<Part>) -> SqlResult<Column> {
    write2(call, |unit: &[u8], v: A, out| as_numeric(f(&downcase(unit), v)?, out))
}

/// A year's first of its decade, century or millennium.
fn truncate_year(year: i32, unit: Unit) -> i32 {
    match (unit, year > 0) {
        (Unit::Millennium, true) => (year + 999) / 1000 * 1000 - 999,
        (Unit::Millennium, false) => -((999 - (year - 1)) / 1000) * 1000 + 1,
        (Unit::Century, true) => (year + 99) / 100 * 100 - 99,
        (Unit::Century, false) => -((99 - (year - 1)) / 100) * 100 + 1,
        (Unit::Decade, true) => year / 10 * 10,
        (Unit::Decade, false) => -((8 - (year - 1)) / 10) * 10,
        _ => year,
    }
}

/// How coarse a unit is that moments can be cut to.
fn coarseness(unit: Unit) -> Option<u8> {
    Some(match unit {
        Unit::Microsecond => 0,
        Unit::Millisecond => 1,
        Unit::Second => 2,
        Unit::Minute => 3,
        Unit::Hour => 4,
        Unit::Day => 5,
        Unit::Week => 6,
        Unit::Month => 7,
        Unit::Quarter => 8,
        Unit::Year => 9,
        Unit::Decade => 10,
        Unit::Century => 11,
        Unit::Millennium => 12,
        _ => return None,
    })
}

/// A word that is a unit of `date_trunc`.
fn trunc_unit(word: &str, type_name: &'static str) -> SqlResult<(Unit, u8)> {
    let Some(Token::Unit(unit)) = unit_word(word) else { return Err(unrecognized(word, type_name)) };
    let asked = Asked { field: Field::Unit(unit), word, type_name };
    Ok((unit, coarseness(unit).ok_or_else(|| asked.unsupported())?))
}

fn truncate_fields(f: &mut Fields, unit: Unit, level: u8) {
    if level >= 5 {
        f.hour = 0;
    }
    if level >= 4 {
        f.minute = 0;
    }
    if level >= 3 {
        f.second = 0;
    }
    match level {
        0 => {}
        1 => f.us = f.us / 1000 * 1000,
        _ => f.us = 0,
    }
    if unit == Unit::Week {
        let (_, week) = iso_week(f);
        let mut year = f.year;
        if week >= 52 && f.month == 1 {
            year -= 1;
        }
        if week <= 1 && f.month == 12 {
            year += 1;
        }
        (f.year, f.month, f.day) = from_julian(iso_week_start(year, week));
        return;
    }
    if level >= 7 {
        f.day = 1;
    }
    if level >= 8 {
        f.month = (f.month - 1) / 3 * 3 + 1;
    }
    if level >= 9 {
        f.month = 1;
    }
    if unit == Unit::Millennium {
        f.year = truncate_year(f.year, Unit::Millennium);
        f.year = truncate_year(f.year, Unit::Century);
    } else {
        f.year = truncate_year(f.year, unit);
    }
}

fn truncate(word: &str, at: i64, in_zone: Option<&TimeZone>) -> SqlResult<i64> {
    let type_name = if in_zone.is_some() { "timestamp with time zone" } else { "timestamp without time zone" };
    let (unit, level) = trunc_unit(word, type_name)?;
    if !timestamp::is_finite(at) {
        return Ok(at);
    }
    let (mut f, mut west) = match in_zone {
        Some(tz) => zone::to_local(tz, at),
        None => Fields::of_timestamp(at).map(|f| (f, 0)),
    }
    .ok_or_else(timestamp_range)?;
    truncate_fields(&mut f, unit, level);
    // From days on the offset may be another.
    if let Some(tz) = in_zone
        && level >= 5
    {
        west = zone::west_of_local(tz, &f);
    }
    f.to_timestamp(west).ok_or_else(timestamp_range)
}

/// Before 18 an infinity was its own truncation, whatever the unit and zone.
fn infinite_or(call: &Call<'_>, at: i64, truncated: impl FnOnce() -> SqlResult<i64>) -> SqlResult<i64> {
    if call.cx.settings.version < Version::V18 && !timestamp::is_finite(at) { Ok(at) } else { truncated() }
}

fn truncate_interval(word: &str, v: Interval) -> SqlResult<Interval> {
    let Some(Token::Unit(unit)) = unit_word(word) else { return Err(unrecognized(word, "interval")) };
    let asked = Asked { field: Field::Unit(unit), word, type_name: "interval" };
    let level = match coarseness(unit) {
        Some(_) if unit == Unit::Week => {
            return Err(asked.unsupported().detail("Months usually have fractional weeks."));
        }
        Some(level) => level,
        None => return Err(asked.unsupported()),
    };
    if !v.is_finite() {
        return Ok(v);
    }
    let to = |value: i32, unit: i32| value / unit * unit;
    let year = v.months / 12;
    let months = match unit {
        Unit::Quarter => year * 12 + to(v.months % 12, 3),
        Unit::Year => year * 12,
        Unit::Decade => to(year, 10) * 12,
        Unit::Century => to(year, 100) * 12,
        Unit::Millennium => to(year, 1000) * 12,
        _ => v.months,
    };
    let us = match level {
        0 => v.us,
        1 => v.us / 1000 * 1000,
        2 => v.us / SECOND_US * SECOND_US,
        3 => v.us / MINUTE_US * MINUTE_US,
        4 => v.us / HOUR_US * HOUR_US,
        _ => 0,
    };
    let v = Interval { months, days: if level >= 7 { 0 } else { v.days }, us };
    if v.is_finite() { Ok(v) } else { Err(interval_range()) }
}

/// The zone of a name, an abbreviation being its zone or its offset.
pub(crate) fn zone_named(cx: &EvalContext<'_>, name: &[u8]) -> SqlResult<TimeZone> {
    match zone::named(&String::from_utf8_lossy(name), &cx.settings.time_zone)? {
        zone::Named::Fixed(east) => jiff::tz::Offset::from_seconds(east)
            .map(TimeZone::fixed)
            .map_err(|_| SqlError::unsupported("a time zone that far from Greenwich")),
        zone::Named::Abbreviation(tz) | zone::Named::Zone(tz) => Ok(tz),
    }
}

/// Parts.
pub(crate) static KERNELS: &[Entry] = &[
    (2021, |c| part_of(c, |u, v: i64| of_timestamp(u, v, None))),
    (1171, |c| part_of(c, |u, v: i64| of_timestamp(u, v, Some(session_zone(c))))),
    // date_part of a date is that of its timestamp.
    (1384, |c| part_of(c, |u, v: i32| of_timestamp(u, super::datetime_math::date_to_timestamp(v)?, None))),
    (1385, |c| part_of(c, of_time_of_day)),
    (1273, |c| part_of(c, |u, v: &[u8]| of_timetz(u, timetz(v)?))),
    (1172, |c| part_of(c, |u, v: &[u8]| of_interval(c, u, interval(v)?))),
    (6202, |c| extract(c, |u, v: i64| of_timestamp(u, v, None))),
    (6203, |c| extract(c, |u, v: i64| of_timestamp(u, v, Some(session_zone(c))))),
    (6199, |c| extract(c, of_date)),
    (6200, |c| extract(c, of_time_of_day)),
    (6201, |c| extract(c, |u, v: &[u8]| of_timetz(u, timetz(v)?))),
    (6204, |c| extract(c, |u, v: &[u8]| of_interval(c, u, interval(v)?))),
    (2020, |c| map2(c, |u: &[u8], v: i64| infinite_or(c, v, || truncate(&downcase(u), v, None)))),
    (1217, |c| map2(c, |u: &[u8], v: i64| infinite_or(c, v, || truncate(&downcase(u), v, Some(session_zone(c)))))),
    (1284, |c| {
        map3(c, |u: &[u8], v: i64, z: &[u8]| {
            infinite_or(c, v, || truncate(&downcase(u), v, Some(&zone_named(c.cx, z)?)))
        })
    }),
    (1218, |c| {
        write2(c, |u: &[u8], v: &[u8], out| {
            let v = interval(v)?;
            let as_it_is = c.cx.settings.version < Version::V18 && !v.is_finite();
            put(if as_it_is { v } else { truncate_interval(&downcase(u), v)? }, out)
        })
    }),
];
