//! Arithmetic of dates, times and intervals on single values, with PostgreSQL's errors.

use jiff::tz::TimeZone;
use stegodon_types::datetime::calendar::{days_in_month, from_julian, is_valid_date, is_valid_timestamp};
use stegodon_types::datetime::{DAY_S, DAY_US, Fields, Interval, SECOND_US, date, out_of_range, timestamp, zone};
use stegodon_types::{SqlError, SqlResult, SqlState};

use super::int::division_by_zero;

pub(crate) fn interval_range() -> SqlError {
    out_of_range("interval")
}

pub(super) fn timestamp_range() -> SqlError {
    out_of_range("timestamp")
}

/// What computes to a finite interval.
fn finite(v: Option<Interval>) -> SqlResult<Interval> {
    v.filter(Interval::is_finite).ok_or_else(interval_range)
}

/// `-a`
pub(super) fn negate(a: Interval) -> SqlResult<Interval> {
    match a {
        Interval::EARLY => Ok(Interval::LATE),
        Interval::LATE => Ok(Interval::EARLY),
        a => finite((|| {
            Some(Interval { us: a.us.checked_neg()?, days: a.days.checked_neg()?, months: a.months.checked_neg()? })
        })()),
    }
}

/// `a + b`
pub(crate) fn add(a: Interval, b: Interval) -> SqlResult<Interval> {
    match (a.is_finite(), b.is_finite()) {
        (false, false) if a != b => Err(interval_range()),
        (false, _) => Ok(a),
        (true, false) => Ok(b),
        (true, true) => finite((|| {
            Some(Interval {
                us: a.us.checked_add(b.us)?,
                days: a.days.checked_add(b.days)?,
                months: a.months.checked_add(b.months)?,
            })
        })()),
    }
}

/// `a - b`
pub(crate) fn subtract(a: Interval, b: Interval) -> SqlResult<Interval> {
    match (a.is_finite(), b.is_finite()) {
        (false, false) if a == b => Err(interval_range()),
        (false, _) => Ok(a),
        (true, false) => negate(b),
        (true, true) => finite((|| {
            Some(Interval {
                us: a.us.checked_sub(b.us)?,
                days: a.days.checked_sub(b.days)?,
                months: a.months.checked_sub(b.months)?,
            })
        })()),
    }
}

/// Rounded to whole microseconds, as a number of seconds (PostgreSQL's `TSROUND`).
fn round_us(v: f64) -> f64 {
    (v * 1e6).round_ties_even() / 1e6
}

fn fit_i32(v: f64) -> SqlResult<i32> {
    if (-2_147_483_648.0..2_147_483_648.0).contains(&v) { Ok(v as i32) } else { Err(interval_range()) }
}

fn fit_i64(v: f64) -> SqlResult<i64> {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&v) {
        Ok(v as i64)
    } else {
        Err(interval_range())
    }
}

/// Every part scaled, what is left of months going to days and of days to the time.
fn scale(a: Interval, by: impl Fn(f64) -> f64) -> SqlResult<Interval> {
    let (months, days) = (by(f64::from(a.months)), by(f64::from(a.days)));
    let mut v = Interval { months: fit_i32(months)?, days: fit_i32(days)?, us: 0 };
    let days_of_months = round_us((months - f64::from(v.months)) * 30.0);
    let day = DAY_S as f64;
    let mut seconds = round_us((days - f64::from(v.days) + days_of_months - f64::from(days_of_months as i32)) * day);
    let add_days = |v: &mut Interval, days: i32| {
        v.days = v.days.checked_add(days).ok_or_else(interval_range)?;
        Ok::<(), SqlError>(())
    };
    if seconds.abs() >= day {
        let whole = (seconds / day) as i32;
        add_days(&mut v, whole)?;
        seconds -= f64::from(whole) * day;
    }
    add_days(&mut v, days_of_months as i32)?;
    v.us = fit_i64((by(a.us as f64) + seconds * SECOND_US as f64).round_ties_even())?;
    finite(Some(v))
}

/// `a * factor`
pub(crate) fn multiply(a: Interval, factor: f64) -> SqlResult<Interval> {
    if factor.is_nan() {
        return Err(interval_range());
    }
    if !a.is_finite() {
        return match factor {
            0.0 => Err(interval_range()),
            f if f < 0.0 => negate(a),
            _ => Ok(a),
        };
    }
    if factor.is_infinite() {
        let sign = a.span_us().signum();
        return match (sign, factor > 0.0) {
            (0, _) => Err(interval_range()),
            (1, true) | (-1, false) => Ok(Interval::LATE),
            _ => Ok(Interval::EARLY),
        };
    }
    scale(a, |v| v * factor)
}

/// `a / divisor`
pub(crate) fn divide(a: Interval, divisor: f64) -> SqlResult<Interval> {
    if divisor == 0.0 {
        return Err(division_by_zero());
    }
    if divisor.is_nan() {
        return Err(interval_range());
    }
    if !a.is_finite() {
        return match divisor {
            d if d.is_infinite() => Err(interval_range()),
            d if d < 0.0 => negate(a),
            _ => Ok(a),
        };
    }
    scale(a, |v| v / divisor)
}

/// Days and time get one sign.
fn align_time(mut v: Interval) -> Interval {
    if v.days > 0 && v.us < 0 {
        v.us += DAY_US;
        v.days -= 1;
    } else if v.days < 0 && v.us > 0 {
        v.us -= DAY_US;
        v.days += 1;
    }
    v
}

/// `justify_hours`
pub(super) fn justify_hours(mut v: Interval) -> SqlResult<Interval> {
    if !v.is_finite() {
        return Ok(v);
    }
    let whole = v.us / DAY_US;
    v.us -= whole * DAY_US;
    v.days = v.days.checked_add(whole as i32).ok_or_else(interval_range)?;
    Ok(align_time(v))
}

/// Whole months go from the days to the months.
fn carry_months(v: &mut Interval) -> SqlResult<()> {
    let whole = v.days / 30;
    v.days -= whole * 30;
    v.months = v.months.checked_add(whole).ok_or_else(interval_range)?;
    Ok(())
}

/// `justify_days`
pub(super) fn justify_days(mut v: Interval) -> SqlResult<Interval> {
    if !v.is_finite() {
        return Ok(v);
    }
    carry_months(&mut v)?;
    if v.months > 0 && v.days < 0 {
        v.days += 30;
        v.months -= 1;
    } else if v.months < 0 && v.days > 0 {
        v.days -= 30;
        v.months += 1;
    }
    Ok(v)
}

/// `justify_interval`
pub(super) fn justify_interval(mut v: Interval) -> SqlResult<Interval> {
    if !v.is_finite() {
        return Ok(v);
    }
    // Before the time's days are added, where the sum could overflow.
    if (v.days > 0 && v.us > 0) || (v.days < 0 && v.us < 0) {
        carry_months(&mut v)?;
    }
    let whole = v.us / DAY_US;
    v.us -= whole * DAY_US;
    v.days += whole as i32;
    carry_months(&mut v)?;
    if v.months > 0 && (v.days < 0 || (v.days == 0 && v.us < 0)) {
        v.days += 30;
        v.months -= 1;
    } else if v.months < 0 && (v.days > 0 || (v.days == 0 && v.us > 0)) {
        v.days -= 30;
        v.months += 1;
    }
    Ok(align_time(v))
}

/// `a - b` of timestamps: days and hours.
pub(super) fn timestamp_difference(a: i64, b: i64) -> SqlResult<Interval> {
    if let Some(v) = infinite_difference(a, b)? {
        return Ok(v);
    }
    let us = a.checked_sub(b).ok_or_else(interval_range)?;
    justify_hours(Interval { us, days: 0, months: 0 })
}

/// The difference where either is infinite.
fn infinite_difference(a: i64, b: i64) -> SqlResult<Option<Interval>> {
    match (timestamp::is_finite(a), timestamp::is_finite(b)) {
        (true, true) => Ok(None),
        (false, false) if a == b => Err(interval_range()),
        (false, _) => Ok(Some(if a > 0 { Interval::LATE } else { Interval::EARLY })),
        (true, false) => Ok(Some(if b > 0 { Interval::EARLY } else { Interval::LATE })),
    }
}

/// A clock's face in a zone, or without one.
fn take_apart(at: i64, in_zone: Option<&TimeZone>) -> SqlResult<Fields> {
    match in_zone {
        Some(tz) => zone::to_local(tz, at).map(|(fields, _)| fields),
        None => Fields::of_timestamp(at),
    }
    .ok_or_else(timestamp_range)
}

/// The moment of a clock's face.
fn put_together(fields: &Fields, in_zone: Option<&TimeZone>) -> SqlResult<i64> {
    let west = in_zone.map_or(0, |tz| zone::west_of_local(tz, fields));
    fields.to_timestamp(west).ok_or_else(timestamp_range)
}

/// `at + span`: months and days on the clock's face, then the time.
pub(crate) fn add_to_timestamp(at: i64, span: Interval, in_zone: Option<&TimeZone>) -> SqlResult<i64> {
    match (span, at) {
        (Interval::EARLY, timestamp::LATE) | (Interval::LATE, timestamp::EARLY) => return Err(timestamp_range()),
        (Interval::EARLY, _) => return Ok(timestamp::EARLY),
        (Interval::LATE, _) => return Ok(timestamp::LATE),
        (_, timestamp::LATE | timestamp::EARLY) => return Ok(at),
        _ => {}
    }
    let mut at = at;
    if span.months != 0 {
        let mut f = take_apart(at, in_zone)?;
        let months = f.month.checked_add(span.months).ok_or_else(timestamp_range)? - 1;
        f.year += months.div_euclid(12);
        f.month = months.rem_euclid(12) + 1;
        f.day = f.day.min(days_in_month(f.year, f.month));
        at = put_together(&f, in_zone)?;
    }
    if span.days != 0 {
        let mut f = take_apart(at, in_zone)?;
        // In a zone the day before the first one can be a clock's.
        let first = if in_zone.is_some() { -1 } else { 0 };
        let julian = f.julian().checked_add(span.days).filter(|j| *j >= first).ok_or_else(timestamp_range)?;
        (f.year, f.month, f.day) = from_julian(julian);
        at = put_together(&f, in_zone)?;
    }
    at.checked_add(span.us).filter(|v| is_valid_timestamp(*v)).ok_or_else(timestamp_range)
}

/// `age(a, b)`: the difference of two clocks' faces, in years, months and so on.
pub(super) fn age(a: i64, b: i64, in_zone: Option<&TimeZone>) -> SqlResult<Interval> {
    if let Some(v) = infinite_difference(a, b)? {
        return Ok(v);
    }
    let (x, y) = (take_apart(a, in_zone)?, take_apart(b, in_zone)?);
    let sign = if a < b { -1 } else { 1 };
    let part = |x: i32, y: i32| (x - y) * sign;
    let mut us = part(x.us, y.us);
    let mut second = part(x.second, y.second);
    let mut minute = part(x.minute, y.minute);
    let mut hour = part(x.hour, y.hour);
    let mut day = part(x.day, y.day);
    let mut month = part(x.month, y.month);
    let mut year = part(x.year, y.year);
    let borrow = |low: &mut i32, high: &mut i32, unit: i32| {
        while *low < 0 {
            *low += unit;
            *high -= 1;
        }
    };
    borrow(&mut us, &mut second, SECOND_US as i32);
    borrow(&mut second, &mut minute, 60);
    borrow(&mut minute, &mut hour, 60);
    borrow(&mut hour, &mut day, 24);
    let earlier = if a < b { &x } else { &y };
    borrow(&mut day, &mut month, days_in_month(earlier.year, earlier.month));
    borrow(&mut month, &mut year, 12);
    let time = Fields { hour, minute, second, us, ..Fields::default() };
    let months = (year * 12 + month) * sign;
    finite(Some(Interval { months, days: day * sign, us: time.time_us() * i64::from(sign) }))
}

/// `date + n`
pub(super) fn add_days(day: i32, days: i64) -> SqlResult<i32> {
    if !date::is_finite(day) {
        return Ok(day);
    }
    let sum = i32::try_from(i64::from(day) + days).ok().filter(|d| is_valid_date(*d));
    sum.ok_or_else(|| out_of_range("date"))
}

/// `a - b` of dates.
pub(super) fn date_difference(a: i32, b: i32) -> SqlResult<i32> {
    if !date::is_finite(a) || !date::is_finite(b) {
        return Err(SqlError::new(SqlState::DatetimeFieldOverflow, "cannot subtract infinite dates"));
    }
    Ok(a - b)
}

/// A date as a timestamp.
pub(super) fn date_to_timestamp(day: i32) -> SqlResult<i64> {
    timestamp::of_date(day)
        .ok_or_else(|| SqlError::new(SqlState::DatetimeFieldOverflow, "date out of range for timestamp"))
}

/// `date_bin`
pub(super) fn bin(stride: Interval, at: i64, origin: i64) -> SqlResult<i64> {
    let error = |what: &str| SqlError::new(SqlState::DatetimeFieldOverflow, what);
    if !timestamp::is_finite(at) {
        return Ok(at);
    }
    if !timestamp::is_finite(origin) {
        return Err(error("origin out of range"));
    }
    if !stride.is_finite() {
        return Err(error("timestamps cannot be binned into infinite intervals"));
    }
    if stride.months != 0 {
        return Err(SqlError::new(
            SqlState::FeatureNotSupported,
            "timestamps cannot be binned into intervals containing months or years",
        ));
    }
    let days = i64::from(stride.days).checked_mul(DAY_US);
    let width = days.and_then(|d| d.checked_add(stride.us)).ok_or_else(interval_range)?;
    if width <= 0 {
        return Err(error("stride must be greater than zero"));
    }
    let difference = at.checked_sub(origin).ok_or_else(interval_range)?;
    let rest = difference % width;
    let start = origin + (difference - rest);
    if rest >= 0 {
        return Ok(start);
    }
    start.checked_sub(width).filter(|v| is_valid_timestamp(*v)).ok_or_else(timestamp_range)
}
