//! Writing intervals in every `IntervalStyle`.

use super::encode::{padded, seconds};
use super::{HOUR_US, Interval, MINUTE_US, SECOND_US};
use crate::scalar::int::write;
use crate::settings::IntervalStyle;

/// An interval taken apart; all parts of a field have its sign.
struct Parts {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i32,
    us: i32,
}

impl Parts {
    fn of(v: &Interval) -> Parts {
        Parts {
            year: i64::from(v.months / 12),
            month: i64::from(v.months % 12),
            day: i64::from(v.days),
            hour: v.us / HOUR_US,
            minute: v.us % HOUR_US / MINUTE_US,
            second: (v.us % MINUTE_US / SECOND_US) as i32,
            us: (v.us % SECOND_US) as i32,
        }
    }

    fn has_seconds(&self) -> bool {
        self.second != 0 || self.us != 0
    }

    fn has_time(&self) -> bool {
        self.hour != 0 || self.minute != 0 || self.has_seconds()
    }

    fn negative_time(&self) -> bool {
        self.hour < 0 || self.minute < 0 || self.second < 0 || self.us < 0
    }

    fn is_zero(&self) -> bool {
        self.year == 0 && self.month == 0 && self.day == 0 && !self.has_time()
    }
}

/// Appends an interval.
pub(super) fn interval(v: &Interval, style: IntervalStyle, out: &mut Vec<u8>) {
    if !v.is_finite() {
        out.extend_from_slice(if *v == Interval::LATE { b"infinity" } else { b"-infinity" });
        return;
    }
    let parts = Parts::of(v);
    match style {
        IntervalStyle::Postgres => postgres(&parts, out),
        IntervalStyle::PostgresVerbose => verbose(&parts, out),
        IntervalStyle::SqlStandard => sql_standard(&parts, v, out),
        IntervalStyle::Iso8601 => iso_8601(&parts, out),
    }
}

/// `hh:mm:ss`, signs dropped.
fn clock(p: &Parts, hour_width: usize, out: &mut Vec<u8>) {
    padded(p.hour, hour_width, out);
    out.push(b':');
    padded(p.minute, 2, out);
    out.push(b':');
    seconds(p.second, p.us, 2, out);
}

fn postgres(p: &Parts, out: &mut Vec<u8>) {
    let (mut any, mut after_negative) = (false, false);
    for (value, unit) in [(p.year, "year"), (p.month, "mon"), (p.day, "day")] {
        if value == 0 {
            continue;
        }
        if any {
            out.push(b' ');
        }
        if after_negative && value > 0 {
            out.push(b'+');
        }
        write(value, out);
        out.push(b' ');
        out.extend_from_slice(unit.as_bytes());
        if value != 1 {
            out.push(b's');
        }
        after_negative = value < 0;
        any = true;
    }
    if any && !p.has_time() {
        return;
    }
    if any {
        out.push(b' ');
    }
    if p.negative_time() {
        out.push(b'-');
    } else if after_negative {
        out.push(b'+');
    }
    clock(p, 2, out);
}

fn verbose(p: &Parts, out: &mut Vec<u8>) {
    out.push(b'@');
    let (mut any, mut ago) = (false, false);
    for (value, unit) in [(p.year, "year"), (p.month, "mon"), (p.day, "day"), (p.hour, "hour"), (p.minute, "min")] {
        if value == 0 {
            continue;
        }
        // The first part decides whether the whole is ago; the others are relative to that.
        let shown = if any {
            if ago { -value } else { value }
        } else {
            ago = value < 0;
            value.abs()
        };
        out.push(b' ');
        write(shown, out);
        out.push(b' ');
        out.extend_from_slice(unit.as_bytes());
        if shown != 1 {
            out.push(b's');
        }
        any = true;
    }
    if p.has_seconds() {
        out.push(b' ');
        if p.second < 0 || p.us < 0 {
            if !any {
                ago = true;
            } else if !ago {
                out.push(b'-');
            }
        } else if ago {
            out.push(b'-');
        }
        seconds(p.second, p.us, 1, out);
        out.extend_from_slice(if p.second.abs() != 1 || p.us != 0 { b" secs" } else { b" sec" });
        any = true;
    }
    if !any {
        out.extend_from_slice(b" 0");
    }
    if ago {
        out.extend_from_slice(b" ago");
    }
}

fn sql_standard(p: &Parts, v: &Interval, out: &mut Vec<u8>) {
    let negative = v.months < 0 || v.days < 0 || v.us < 0;
    let positive = v.months > 0 || v.days > 0 || v.us > 0;
    let (year_month, day_time) = (v.months != 0, v.days != 0 || v.us != 0);
    let sign = |negative: bool| if negative { b'-' } else { b'+' };
    if !negative && !positive {
        out.push(b'0');
    } else if (negative && positive) || (year_month && day_time) {
        // Not of the standard: every part has its sign.
        out.push(sign(v.months < 0));
        padded(p.year, 1, out);
        out.push(b'-');
        padded(p.month, 1, out);
        out.extend_from_slice(&[b' ', sign(v.days < 0)]);
        padded(p.day, 1, out);
        out.extend_from_slice(&[b' ', sign(v.us < 0)]);
        clock(p, 1, out);
    } else {
        if negative {
            out.push(b'-');
        }
        if year_month {
            padded(p.year, 1, out);
            out.push(b'-');
            padded(p.month, 1, out);
        } else {
            if v.days != 0 {
                padded(p.day, 1, out);
                out.push(b' ');
            }
            clock(p, 1, out);
        }
    }
}

fn iso_8601(p: &Parts, out: &mut Vec<u8>) {
    if p.is_zero() {
        out.extend_from_slice(b"PT0S");
        return;
    }
    let part = |value: i64, unit: u8, out: &mut Vec<u8>| {
        if value != 0 {
            write(value, out);
            out.push(unit);
        }
    };
    out.push(b'P');
    part(p.year, b'Y', out);
    part(p.month, b'M', out);
    part(p.day, b'D', out);
    if p.has_time() {
        out.push(b'T');
    }
    part(p.hour, b'H', out);
    part(p.minute, b'M', out);
    if p.has_seconds() {
        if p.second < 0 || p.us < 0 {
            out.push(b'-');
        }
        seconds(p.second, p.us, 1, out);
        out.push(b'S');
    }
}
