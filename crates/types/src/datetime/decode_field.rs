//! Reading one field of a date or time.

use super::DecodeError::{self, BadFormat, FieldOverflow, MonthDayOverflow, ZoneOverflow};
use super::calendar::{days_in_month, from_julian, to_julian};
use super::tokens::{Token, date_word};
use super::{Fields, SECOND_US};
use crate::settings::DateOrder;

/// What has been read so far: one bit a part.
pub(super) mod part {
    pub const YEAR: u32 = 1;
    pub const MONTH: u32 = 1 << 1;
    pub const DAY: u32 = 1 << 2;
    pub const DATE: u32 = YEAR | MONTH | DAY;
    pub const HOUR: u32 = 1 << 3;
    pub const MINUTE: u32 = 1 << 4;
    pub const SECOND: u32 = 1 << 5;
    pub const MILLISECOND: u32 = 1 << 6;
    pub const MICROSECOND: u32 = 1 << 7;
    pub const SECONDS: u32 = SECOND | MILLISECOND | MICROSECOND;
    pub const TIME: u32 = HOUR | MINUTE | SECONDS;
    pub const ZONE: u32 = 1 << 8;
    pub const SUMMER_ZONE: u32 = 1 << 9;
    pub const VARYING_ZONE: u32 = 1 << 10;
    pub const SUMMER_MODIFIER: u32 = 1 << 11;
    pub const YEAR_DAY: u32 = 1 << 12;
    pub const WEEKDAY: u32 = 1 << 13;
    pub const AM_PM: u32 = 1 << 14;
    pub const ERA: u32 = 1 << 15;
    pub const RESERVED: u32 = 1 << 16;
    pub const UNKNOWN: u32 = 1 << 17;
    pub const WEEK: u32 = 1 << 18;
    pub const DECADE: u32 = 1 << 19;
    pub const CENTURY: u32 = 1 << 20;
    pub const MILLENNIUM: u32 = 1 << 21;
}

/// C's `strtol`: a sign and digits; the number (saturated, and whether it was), and what follows.
pub(super) fn integer(text: &str) -> (i64, bool, &str) {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let len = digits.bytes().take_while(u8::is_ascii_digit).count();
    if len == 0 {
        return (0, false, text);
    }
    let (number, rest) = digits.split_at(len);
    let value = number.bytes().try_fold(0i64, |v, b| {
        let digit = i64::from(b - b'0');
        v.checked_mul(10)?.checked_add(if negative { -digit } else { digit })
    });
    match value {
        Some(v) => (v, false, rest),
        None => (if negative { i64::MIN } else { i64::MAX }, true, rest),
    }
}

/// The same for 32 bits; `Err` beyond them.
pub(super) fn int32(text: &str) -> Result<(i32, &str), DecodeError> {
    let (value, overflow, rest) = integer(text);
    match i32::try_from(value) {
        Ok(v) if !overflow => Ok((v, rest)),
        _ => Err(FieldOverflow),
    }
}

/// C's `atoi` of digits that were counted before.
fn digits(text: &str) -> i32 {
    integer(text).0 as i32
}

/// What follows a decimal point, the point included.
pub(super) fn fraction(text: &str) -> Result<f64, DecodeError> {
    let tail = text.strip_prefix('.').ok_or(BadFormat)?;
    if tail.is_empty() {
        return Ok(0.0);
    }
    if !tail.bytes().all(|b| b.is_ascii_digit()) {
        return Err(BadFormat);
    }
    text.parse().map_err(|_| BadFormat)
}

/// A fraction of a second in microseconds.
fn fraction_us(text: &str) -> Result<i32, DecodeError> {
    Ok((fraction(text)? * SECOND_US as f64).round_ties_even() as i32)
}

/// Hours (any number), minutes, seconds and microseconds.
pub(super) struct ClockTime {
    pub hour: i64,
    pub minute: i32,
    pub second: i32,
    pub us: i32,
}

/// `hh:mm[:ss[.ffffff]]`. Two parts are minutes and seconds where there is a fraction, or where only those are wanted.
pub(super) fn clock_time(text: &str, minute_to_second: bool) -> Result<ClockTime, DecodeError> {
    let (mut hour, overflow, rest) = integer(text);
    if overflow {
        return Err(FieldOverflow);
    }
    let (mut minute, rest) = int32(rest.strip_prefix(':').ok_or(BadFormat)?)?;
    let (mut second, mut us) = (0, 0);
    let shift = |hour: &mut i64, minute: &mut i32, second: &mut i32| {
        *second = *minute;
        *minute = i32::try_from(*hour).map_err(|_| FieldOverflow)?;
        *hour = 0;
        Ok(())
    };
    if rest.is_empty() {
        if minute_to_second {
            shift(&mut hour, &mut minute, &mut second)?;
        }
    } else if rest.starts_with('.') {
        us = fraction_us(rest)?;
        shift(&mut hour, &mut minute, &mut second)?;
    } else {
        let (s, rest) = int32(rest.strip_prefix(':').ok_or(BadFormat)?)?;
        second = s;
        if rest.starts_with('.') {
            us = fraction_us(rest)?;
        } else if !rest.is_empty() {
            return Err(BadFormat);
        }
    }
    if hour < 0 || !(0..60).contains(&minute) || !(0..=60).contains(&second) || i64::from(us) > SECOND_US {
        return Err(FieldOverflow);
    }
    Ok(ClockTime { hour, minute, second, us })
}

/// Whether a time of day is more than 24:00:00.
pub fn time_overflows(f: &Fields) -> bool {
    !(0..=24).contains(&f.hour)
        || !(0..60).contains(&f.minute)
        || !(0..=60).contains(&f.second)
        || !(0..=SECOND_US as i32).contains(&f.us)
        || f.time_us() > super::DAY_US
}

/// What reading a date's fields changes.
pub(super) struct State {
    pub fields: Fields,
    /// The year was written with one or two digits.
    pub two_digits: bool,
    pub order: DateOrder,
}

impl State {
    /// A time, as part of a timestamp. Gives the parts found.
    pub fn time(&mut self, text: &str) -> Result<u32, DecodeError> {
        let time = clock_time(text, false)?;
        self.fields.hour = i32::try_from(time.hour).map_err(|_| FieldOverflow)?;
        self.fields.minute = time.minute;
        self.fields.second = time.second;
        self.fields.us = time.us;
        Ok(part::TIME)
    }

    /// A date with delimiters. Gives the parts found.
    pub fn date(&mut self, text: &str, seen: u32) -> Result<u32, DecodeError> {
        let mut pieces: Vec<Option<&str>> = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            rest = rest.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
            let len = match rest.bytes().next() {
                None => return Err(BadFormat),
                Some(b) if b.is_ascii_digit() => rest.bytes().take_while(u8::is_ascii_digit).count(),
                Some(_) => rest.bytes().take_while(u8::is_ascii_alphabetic).count(),
            };
            let (piece, tail) = rest.split_at(len);
            pieces.push(Some(piece));
            // One byte between pieces is dropped, whatever it is.
            rest = tail.get(1..).unwrap_or_default();
        }
        let (mut seen, mut found, mut text_month) = (seen, 0, false);
        for piece in &mut pieces {
            let Some(word) = piece.filter(|p| p.starts_with(|c: char| c.is_ascii_alphabetic())) else { continue };
            match date_word(word) {
                Some(Token::Ignore) => continue,
                Some(Token::Month(month)) => {
                    self.fields.month = month;
                    text_month = true;
                }
                _ => return Err(BadFormat),
            }
            if seen & part::MONTH != 0 {
                return Err(BadFormat);
            }
            seen |= part::MONTH;
            found |= part::MONTH;
            *piece = None;
        }
        for piece in pieces.into_iter().flatten() {
            let new = self.number(piece, text_month, seen)?;
            if seen & new != 0 {
                return Err(BadFormat);
            }
            seen |= new;
            found |= new;
        }
        if seen & !(part::YEAR_DAY | part::ZONE) == part::DATE { Ok(found) } else { Err(BadFormat) }
    }

    /// A number, as what is missing of a date or as a time. Gives the parts found.
    pub fn number(&mut self, text: &str, text_month: bool, seen: u32) -> Result<u32, DecodeError> {
        let (value, rest) = int32(text)?;
        if rest.len() == text.len() {
            return Err(BadFormat);
        }
        if rest.starts_with('.') {
            if text.len() - rest.len() > 2 {
                return self.run_together(text, seen | part::DATE).map(|(found, _)| found);
            }
            self.fields.us = fraction_us(rest)?;
        } else if !rest.is_empty() {
            return Err(BadFormat);
        }
        let len = text.len();
        if len == 3 && seen & part::DATE == part::YEAR && (1..=366).contains(&value) {
            self.fields.year_day = value;
            return Ok(part::YEAR_DAY | part::MONTH | part::DAY);
        }
        const YEAR_MONTH: u32 = part::YEAR | part::MONTH;
        const MONTH_DAY: u32 = part::MONTH | part::DAY;
        let year_first = len >= 3 || self.order == DateOrder::Ymd;
        let found = match seen & part::DATE {
            0 if year_first => part::YEAR,
            0 if self.order == DateOrder::Dmy => part::DAY,
            0 | part::YEAR | part::DAY => part::MONTH,
            part::MONTH if text_month && year_first => part::YEAR,
            part::MONTH => part::DAY,
            YEAR_MONTH => {
                if text_month && len >= 3 && self.two_digits {
                    // What was taken for the year is the day.
                    self.fields.day = self.fields.year;
                    self.fields.year = value;
                    self.two_digits = false;
                    return Ok(part::DAY);
                }
                part::DAY
            }
            MONTH_DAY => part::YEAR,
            part::DATE => return self.run_together(text, seen).map(|(found, _)| found),
            _ => return Err(BadFormat),
        };
        match found {
            part::YEAR => {
                self.fields.year = value;
                self.two_digits = len <= 2;
            }
            part::MONTH => self.fields.month = value,
            _ => self.fields.day = value,
        }
        Ok(found)
    }

    /// Digits run together: `yyyymmdd`, `hhmmss[.f]`, `hhmm`. Gives the parts found, and whether they are a date.
    pub fn run_together(&mut self, text: &str, seen: u32) -> Result<(u32, bool), DecodeError> {
        if !text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
            return Err(BadFormat);
        }
        let mut number = text;
        if let Some(at) = text.find('.') {
            let (whole, tail) = text.split_at(at);
            self.fields.us = fraction_us(tail)?;
            number = whole;
        } else if seen & part::DATE != part::DATE && text.len() >= 6 {
            let (rest, day) = text.split_at(text.len() - 2);
            let (year, month) = rest.split_at(rest.len() - 2);
            self.fields.day = digits(day);
            self.fields.month = digits(month);
            self.fields.year = digits(year);
            if year.len() == 2 {
                self.two_digits = true;
            }
            return Ok((part::DATE, true));
        }
        if seen & part::TIME != part::TIME && matches!(number.len(), 4 | 6) {
            let at = |from: usize| number.get(from..from + 2).map_or(0, digits);
            self.fields.hour = at(0);
            self.fields.minute = at(2);
            self.fields.second = if number.len() == 6 { at(4) } else { 0 };
            return Ok((part::TIME, false));
        }
        Err(BadFormat)
    }
}

/// A zone's offset: `+hh[:mm[:ss]]` or `+hhmm`. Seconds west.
pub fn zone_offset(text: &str) -> Result<i32, DecodeError> {
    let (negative, number) = match text.as_bytes().first() {
        Some(b'-') => (true, text.get(1..).unwrap_or_default()),
        Some(b'+') => (false, text.get(1..).unwrap_or_default()),
        _ => return Err(BadFormat),
    };
    let piece = |text| int32(text).map_err(|_| ZoneOverflow);
    let (mut hour, mut rest) = piece(number)?;
    let (mut minute, mut second) = (0, 0);
    if let Some(after) = rest.strip_prefix(':') {
        (minute, rest) = piece(after)?;
        if let Some(after) = rest.strip_prefix(':') {
            (second, rest) = piece(after)?;
        }
    } else if rest.is_empty() && text.len() > 3 {
        minute = hour % 100;
        hour /= 100;
    }
    if !(0..=15).contains(&hour) || !(0..60).contains(&minute) || !(0..60).contains(&second) {
        return Err(ZoneOverflow);
    }
    if !rest.is_empty() {
        return Err(BadFormat);
    }
    let seconds = (hour * 60 + minute) * 60 + second;
    Ok(if negative { seconds } else { -seconds })
}

/// Checks and completes a date that was read: eras, short years, days of the year.
pub fn validate(f: &mut Fields, seen: u32, julian: bool, two_digits: bool, bc: bool) -> Result<(), DecodeError> {
    if seen & part::YEAR != 0 && !julian {
        if bc {
            if f.year <= 0 {
                return Err(FieldOverflow);
            }
            f.year = 1 - f.year;
        } else if two_digits {
            match f.year {
                ..0 => return Err(FieldOverflow),
                0..70 => f.year += 2000,
                70..100 => f.year += 1900,
                _ => {}
            }
        } else if f.year <= 0 {
            return Err(FieldOverflow);
        }
    }
    if seen & part::YEAR_DAY != 0 {
        let first = to_julian(f.year, 1, 1);
        (f.year, f.month, f.day) = from_julian(first.wrapping_add(f.year_day - 1));
    }
    if seen & part::MONTH != 0 && !(1..=12).contains(&f.month) {
        return Err(MonthDayOverflow);
    }
    if seen & part::DAY != 0 && !(1..=31).contains(&f.day) {
        return Err(MonthDayOverflow);
    }
    if seen & part::DATE == part::DATE && f.day > days_in_month(f.year, f.month) {
        return Err(FieldOverflow);
    }
    Ok(())
}
