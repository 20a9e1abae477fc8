//! From text to an interval: PostgreSQL's own forms and those of SQL, read from the right so that a unit is known before
//! its number, and else those of ISO 8601.

use super::DecodeError::{self, BadFormat, FieldOverflow};
use super::decode_field::{clock_time, fraction, int32, integer, part};
use super::interval::range;
use super::lex::{self, Field, Shape};
use super::tokens::{Reserved, Token, Unit, date_word, unit_word};
use super::{DAY_US, HOUR_US, Interval, MINUTE_US, SECOND_US};
use crate::FormatSettings;
use crate::settings::IntervalStyle;

/// What is summed up.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    us: i64,
    days: i32,
    months: i32,
    years: i32,
}

fn overflow<T>(value: Option<T>) -> Result<T, DecodeError> {
    value.ok_or(FieldOverflow)
}

impl Parts {
    fn add_us(&mut self, value: i64, tail: f64, unit: i64) -> Result<(), DecodeError> {
        self.us = overflow(value.checked_mul(unit).and_then(|v| v.checked_add(self.us)))?;
        self.add_us_fraction(tail, unit)
    }

    fn add_us_fraction(&mut self, tail: f64, unit: i64) -> Result<(), DecodeError> {
        if tail == 0.0 {
            return Ok(());
        }
        let exact = tail * unit as f64;
        let mut us = exact as i64;
        let rest = exact - us as f64;
        if rest > 0.5 {
            us += 1;
        } else if rest < -0.5 {
            us -= 1;
        }
        self.us = overflow(self.us.checked_add(us))?;
        Ok(())
    }

    fn add_days(&mut self, value: i64, unit: i32) -> Result<(), DecodeError> {
        let days = i32::try_from(value).ok().and_then(|v| v.checked_mul(unit));
        self.days = overflow(days.and_then(|d| d.checked_add(self.days)))?;
        Ok(())
    }

    fn add_days_fraction(&mut self, tail: f64, unit: i32) -> Result<(), DecodeError> {
        if tail == 0.0 {
            return Ok(());
        }
        let exact = tail * f64::from(unit);
        let days = exact as i32;
        self.days = overflow(self.days.checked_add(days))?;
        self.add_us_fraction(exact - f64::from(days), DAY_US)
    }

    fn add_months(&mut self, value: i64, tail: f64) -> Result<(), DecodeError> {
        self.months = overflow(i32::try_from(value).ok().and_then(|v| v.checked_add(self.months)))?;
        self.add_days_fraction(tail, 30)
    }

    fn add_years(&mut self, value: i64, tail: f64, unit: i32) -> Result<(), DecodeError> {
        let years = i32::try_from(value).ok().and_then(|v| v.checked_mul(unit));
        self.years = overflow(years.and_then(|y| y.checked_add(self.years)))?;
        let months = (tail * f64::from(unit) * 12.0).round_ties_even() as i32;
        self.months = overflow(self.months.checked_add(months))?;
        Ok(())
    }

    fn negate(&mut self) -> Result<(), DecodeError> {
        self.us = overflow(self.us.checked_neg())?;
        self.days = overflow(self.days.checked_neg())?;
        self.months = overflow(self.months.checked_neg())?;
        self.years = overflow(self.years.checked_neg())?;
        Ok(())
    }

    /// `None` where the months are too many.
    fn finish(self) -> Option<Interval> {
        let months = i64::from(self.years) * 12 + i64::from(self.months);
        Some(Interval { us: self.us, days: self.days, months: i32::try_from(months).ok()? })
    }
}

/// The unit of a number that stands alone, under a typmod's range.
fn unit_of_range(mask: i32) -> Unit {
    match mask {
        range::YEAR => Unit::Year,
        range::MONTH | range::YEAR_MONTH => Unit::Month,
        range::DAY => Unit::Day,
        range::HOUR | range::DAY_HOUR => Unit::Hour,
        range::MINUTE | range::HOUR_MINUTE | range::DAY_MINUTE => Unit::Minute,
        _ => Unit::Second,
    }
}

/// The unit that the next number to the left has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// What the typmod says.
    ByRange,
    /// This one.
    Unit(Unit),
    /// None: there must be no number.
    Nothing,
}

struct Decoder {
    parts: Parts,
    force_negative: bool,
    mask: i32,
    next: Next,
    infinity: Option<Interval>,
    unit_pending: bool,
    ago: bool,
}

impl Decoder {
    fn time(&mut self, text: &str, negate: bool) -> Result<u32, DecodeError> {
        let time = clock_time(text, self.mask == range::MINUTE_SECOND)?;
        let sum = |us: i64, value: i64, unit: i64| value.checked_mul(unit).and_then(|v| v.checked_add(us));
        let us = sum(i64::from(time.us), time.hour, HOUR_US)
            .and_then(|us| sum(us, i64::from(time.minute), MINUTE_US))
            .and_then(|us| sum(us, i64::from(time.second), SECOND_US));
        // The time replaces what was read to its right; parts read twice are refused by the caller.
        self.parts.us = overflow(us)?;
        if negate || (self.force_negative && self.parts.us > 0) {
            self.parts.us = -self.parts.us;
        }
        self.next = Next::Unit(Unit::Day);
        self.unit_pending = false;
        Ok(part::TIME)
    }

    fn number(&mut self, text: &str) -> Result<u32, DecodeError> {
        let negative = text.starts_with('-');
        let (mut value, too_large, rest) = integer(text);
        if too_large {
            return Err(FieldOverflow);
        }
        let mut tail = 0.0;
        if let Some(months) = rest.strip_prefix('-') {
            // SQL's years-months.
            let (months, rest) = int32(months)?;
            if !(0..12).contains(&months) {
                return Err(FieldOverflow);
            }
            if !rest.is_empty() {
                return Err(BadFormat);
            }
            let months = i64::from(if negative { -months } else { months });
            value = overflow(value.checked_mul(12).and_then(|v| v.checked_add(months)))?;
            self.next = Next::Unit(Unit::Month);
        } else if rest.starts_with('.') {
            tail = fraction(rest)?;
            if negative {
                tail = -tail;
            }
        } else if !rest.is_empty() {
            return Err(BadFormat);
        }
        if self.force_negative {
            value = if value > 0 { -value } else { value };
            tail = if tail > 0.0 { -tail } else { tail };
        }
        let unit = match self.next {
            Next::ByRange => unit_of_range(self.mask),
            Next::Unit(unit) => unit,
            Next::Nothing => return Err(BadFormat),
        };
        self.next = Next::Unit(if unit == Unit::Hour { Unit::Day } else { unit });
        self.unit_pending = false;
        let parts = &mut self.parts;
        match unit {
            Unit::Microsecond => parts.add_us(value, tail, 1).map(|()| part::MICROSECOND),
            Unit::Millisecond => parts.add_us(value, tail, 1000).map(|()| part::MILLISECOND),
            Unit::Second => {
                parts.add_us(value, tail, SECOND_US)?;
                Ok(if tail == 0.0 { part::SECOND } else { part::SECONDS })
            }
            Unit::Minute => parts.add_us(value, tail, MINUTE_US).map(|()| part::MINUTE),
            Unit::Hour => parts.add_us(value, tail, HOUR_US).map(|()| part::HOUR),
            Unit::Day => {
                parts.add_days(value, 1)?;
                parts.add_us_fraction(tail, DAY_US)?;
                Ok(part::DAY)
            }
            Unit::Week => {
                parts.add_days(value, 7)?;
                parts.add_days_fraction(tail, 7)?;
                Ok(part::WEEK)
            }
            Unit::Month => parts.add_months(value, tail).map(|()| part::MONTH),
            Unit::Year => parts.add_years(value, tail, 1).map(|()| part::YEAR),
            Unit::Decade => parts.add_years(value, tail, 10).map(|()| part::DECADE),
            Unit::Century => parts.add_years(value, tail, 100).map(|()| part::CENTURY),
            Unit::Millennium => parts.add_years(value, tail, 1000).map(|()| part::MILLENNIUM),
            _ => Err(BadFormat),
        }
    }

    /// A word; `None` where it has no meaning.
    fn word(&mut self, text: &str, last: bool) -> Result<Option<u32>, DecodeError> {
        if self.unit_pending {
            return Err(BadFormat);
        }
        match unit_word(text).or_else(|| date_word(text)) {
            Some(Token::Ignore) => {
                self.next = Next::ByRange;
                Ok(None)
            }
            Some(Token::Unit(unit)) => {
                self.next = Next::Unit(unit);
                self.unit_pending = true;
                Ok(Some(0))
            }
            Some(Token::Ago) if last => {
                self.ago = true;
                self.next = Next::Nothing;
                Ok(Some(0))
            }
            Some(Token::Reserved(word @ (Reserved::Late | Reserved::Early))) if last => {
                self.infinity = Some(if word == Reserved::Late { Interval::LATE } else { Interval::EARLY });
                self.next = Next::Nothing;
                Ok(Some(part::DATE | part::TIME))
            }
            _ => Err(BadFormat),
        }
    }
}

/// PostgreSQL's and SQL's forms. `None` where the months are too many.
fn traditional(fields: &[Field], style: IntervalStyle, mask: i32) -> Result<Option<Interval>, DecodeError> {
    let signed = |f: &Field| f.text.starts_with(['-', '+']);
    // In SQL's style a leading minus is for all fields, unless another has a sign.
    let force_negative = style == IntervalStyle::SqlStandard
        && fields.split_first().is_some_and(|(first, rest)| first.text.starts_with('-') && !rest.iter().any(signed));
    let mut decoder = Decoder {
        parts: Parts::default(),
        force_negative,
        mask,
        next: Next::ByRange,
        infinity: None,
        unit_pending: false,
        ago: false,
    };
    let mut seen = 0;
    for (at, field) in fields.iter().enumerate().rev() {
        let text = field.text.as_str();
        let found = match field.shape {
            Shape::Time => decoder.time(text, false)?,
            Shape::Zone => {
                let unsigned = text.get(1..).unwrap_or_default();
                let as_time =
                    if unsigned.contains(':') { decoder.time(unsigned, text.starts_with('-')).ok() } else { None };
                match as_time {
                    Some(found) => found,
                    None => decoder.number(text)?,
                }
            }
            Shape::Date | Shape::Number => decoder.number(text)?,
            Shape::Word | Shape::SignedWord => match decoder.word(text, at + 1 == fields.len())? {
                None => continue,
                Some(found) => found,
            },
        };
        if seen & found != 0 {
            return Err(BadFormat);
        }
        seen |= found;
    }
    if seen == 0 || decoder.unit_pending {
        return Err(BadFormat);
    }
    if decoder.ago {
        decoder.parts.negate()?;
    }
    Ok(decoder.infinity.or(decoder.parts.finish()))
}

/// A number of ISO 8601's form: its whole part, its fraction, and what follows.
fn iso_number(text: &str) -> Result<(i64, f64, &str), DecodeError> {
    if !text.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.') {
        return Err(BadFormat);
    }
    let (value, rest) = strtod(text)?;
    if !(-1.0e15..=1.0e15).contains(&value) {
        return Err(FieldOverflow);
    }
    Ok((value.trunc() as i64, value - value.trunc(), rest))
}

/// C's `strtod`, as far as what starts with a digit, a minus or a point can be a number.
fn strtod(text: &str) -> Result<(f64, &str), DecodeError> {
    let bytes = text.as_bytes();
    let run = |from: usize| bytes.iter().skip(from).take_while(|b| b.is_ascii_digit()).count();
    let start = usize::from(text.starts_with('-'));
    let lower = text.get(start..).unwrap_or_default().to_ascii_lowercase();
    if lower.starts_with("0x") && lower.as_bytes().get(2).is_some_and(|b| b.is_ascii_hexdigit() || *b == b'.') {
        return Err(DecodeError::Unsupported("an interval with a hexadecimal number".to_owned()));
    }
    if lower.starts_with("inf") || lower.starts_with("nan") {
        // Beyond what is accepted.
        return Err(FieldOverflow);
    }
    let mut end = start + run(start);
    let mut digits = end - start;
    if bytes.get(end) == Some(&b'.') {
        let more = run(end + 1);
        if digits + more > 0 {
            end += 1 + more;
            digits += more;
        }
    }
    if digits == 0 {
        return Err(BadFormat);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = run(end + 1 + sign);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    let (number, rest) = text.split_at(end);
    let value: f64 = number.parse().map_err(|_| BadFormat)?;
    let zero = number.split(['e', 'E']).next().is_some_and(|m| m.bytes().all(|b| !matches!(b, b'1'..=b'9')));
    // strtod reports overflow and underflow, which PostgreSQL takes for another form.
    if value.is_infinite() || (value.abs() < f64::MIN_POSITIVE && !zero) {
        return Err(BadFormat);
    }
    Ok((value, rest))
}

/// How many digits a number starts with, its sign aside.
fn width(text: &str) -> usize {
    text.strip_prefix('-').unwrap_or(text).bytes().take_while(u8::is_ascii_digit).count()
}

/// What is left after the date of the alternative form: nothing, or a time.
enum AfterDate<'a> {
    End,
    Time(&'a str),
}

/// `yyyymmdd`, `yyyy`, `yyyy-mm`, `yyyy-mm-dd` after the P. `rest` follows the first number.
fn iso_alternative_date<'a>(
    parts: &mut Parts,
    number: (i64, f64),
    basic: bool,
    rest: &'a str,
) -> Result<AfterDate<'a>, DecodeError> {
    let (value, tail) = number;
    let ending = |rest: &'a str| match rest.strip_prefix('T') {
        Some(time) => Some(AfterDate::Time(time)),
        None if rest.is_empty() => Some(AfterDate::End),
        None => None,
    };
    if basic {
        parts.add_years(value / 10_000, 0.0, 1)?;
        parts.add_months(value / 100 % 100, 0.0)?;
        parts.add_days(value % 100, 1)?;
        parts.add_us_fraction(tail, DAY_US)?;
        return ending(rest).ok_or(BadFormat);
    }
    parts.add_years(value, tail, 1)?;
    if let Some(end) = ending(rest) {
        return Ok(end);
    }
    let (value, tail, rest) = iso_number(rest.get(1..).unwrap_or_default())?;
    parts.add_months(value, tail)?;
    if let Some(end) = ending(rest) {
        return Ok(end);
    }
    let (value, tail, rest) = iso_number(rest.strip_prefix('-').ok_or(BadFormat)?)?;
    parts.add_days(value, 1)?;
    parts.add_us_fraction(tail, DAY_US)?;
    ending(rest).ok_or(BadFormat)
}

/// `hhmmss`, `hh`, `hh:mm`, `hh:mm:ss` after the T. `rest` follows the first number.
fn iso_alternative_time(parts: &mut Parts, number: (i64, f64), basic: bool, rest: &str) -> Result<(), DecodeError> {
    let (value, tail) = number;
    if basic {
        parts.add_us(value / 10_000, 0.0, HOUR_US)?;
        parts.add_us(value / 100 % 100, 0.0, MINUTE_US)?;
        parts.add_us(value % 100, 0.0, SECOND_US)?;
        return parts.add_us_fraction(tail, 1);
    }
    parts.add_us(value, tail, HOUR_US)?;
    if rest.is_empty() {
        return Ok(());
    }
    let (value, tail, rest) = iso_number(rest.get(1..).unwrap_or_default())?;
    parts.add_us(value, tail, MINUTE_US)?;
    if rest.is_empty() {
        return Ok(());
    }
    let (value, tail, rest) = iso_number(rest.strip_prefix(':').ok_or(BadFormat)?)?;
    parts.add_us(value, tail, SECOND_US)?;
    if rest.is_empty() { Ok(()) } else { Err(BadFormat) }
}

/// ISO 8601's forms, with designators (`P1DT2H`) and alternative (`P0001-02-03T04:05:06`).
fn iso_8601(text: &str) -> Result<Option<Interval>, DecodeError> {
    let mut parts = Parts::default();
    let mut rest = text.strip_prefix('P').filter(|rest| !rest.is_empty()).ok_or(BadFormat)?;
    let (mut in_date, mut designated) = (true, false);
    while !rest.is_empty() {
        if let Some(time) = rest.strip_prefix('T') {
            (in_date, designated) = (false, false);
            rest = time;
            continue;
        }
        let start = rest;
        let (value, tail, after) = iso_number(rest)?;
        let unit = after.chars().next();
        rest = after.get(unit.map_or(0, char::len_utf8)..).unwrap_or_default();
        match (in_date, unit) {
            (true, Some('Y')) => parts.add_years(value, tail, 1)?,
            (true, Some('M')) => parts.add_months(value, tail)?,
            (true, Some('W')) => {
                parts.add_days(value, 7)?;
                parts.add_days_fraction(tail, 7)?;
            }
            (true, Some('D')) => {
                parts.add_days(value, 1)?;
                parts.add_us_fraction(tail, DAY_US)?;
            }
            (true, None | Some('T' | '-')) => {
                let basic = width(start) == 8 && !designated && unit != Some('-');
                if designated {
                    return Err(BadFormat);
                }
                match iso_alternative_date(&mut parts, (value, tail), basic, after)? {
                    AfterDate::End => return Ok(parts.finish()),
                    AfterDate::Time(time) => {
                        in_date = false;
                        designated = false;
                        rest = time;
                        continue;
                    }
                }
            }
            (false, Some('H')) => parts.add_us(value, tail, HOUR_US)?,
            (false, Some('M')) => parts.add_us(value, tail, MINUTE_US)?,
            (false, Some('S')) => parts.add_us(value, tail, SECOND_US)?,
            (false, None | Some(':')) => {
                let basic = width(start) == 6 && !designated && unit.is_none();
                if designated {
                    return Err(BadFormat);
                }
                iso_alternative_time(&mut parts, (value, tail), basic, after)?;
                return Ok(parts.finish());
            }
            _ => return Err(BadFormat),
        }
        designated = true;
    }
    Ok(parts.finish())
}

/// Reads an interval under the range of a typmod. `None` where the months are too many.
pub(super) fn interval(settings: &FormatSettings, text: &[u8], mask: i32) -> Result<Option<Interval>, DecodeError> {
    let fields = lex::fields(text, lex::INTERVAL_BUFFER);
    match fields.and_then(|fields| traditional(&fields, settings.interval_style, mask)) {
        Err(BadFormat) => iso_8601(std::str::from_utf8(text).map_err(|_| BadFormat)?),
        done => done,
    }
}
