//! From fields to a date and time, or to a time alone.

use jiff::tz::TimeZone;
use stegodon_format::version::Version;

use super::DecodeError::{self, BadFormat, BadZone, FieldOverflow, Unsupported};
use super::calendar::{from_julian, to_julian};
use super::decode_field::{State, fraction, int32, part, time_overflows, validate, zone_offset};
use super::lex::{self, Field, Shape};
use super::tokens::{Reserved, Token, Unit, date_word};
use super::{DAY_US, Fields, zone};
use crate::{FormatSettings, SqlState};

/// What kind of moment was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An ordinary one: the fields say which.
    Fields,
    /// 1970-01-01 00:00 UTC
    Epoch,
    /// `infinity`
    Late,
    /// `-infinity`
    Early,
}

/// What was read.
pub(super) struct Decoded {
    pub kind: Kind,
    pub fields: Fields,
    /// The zone given, or else the session's: seconds west.
    pub west: i32,
}

/// What a word before said the next number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prefix {
    Julian,
    Time,
    Other,
}

/// A word's effect: nothing at all, or the parts it stands for.
enum Effect {
    Ignored,
    Parts(u32),
}

struct Decoder<'a> {
    settings: &'a FormatSettings,
    time_only: bool,
    state: State,
    seen: u32,
    kind: Kind,
    west: i32,
    prefix: Option<Prefix>,
    text_month: bool,
    julian: bool,
    bc: bool,
    pm: Option<bool>,
    named: Option<TimeZone>,
    abbreviated: Option<(String, TimeZone)>,
}

/// The wall clock of the session's zone at the transaction's start.
fn now(settings: &FormatSettings) -> Result<(Fields, i32), DecodeError> {
    zone::to_local(&settings.time_zone, settings.now_us).ok_or(FieldOverflow)
}

/// A zone's name; refused where we cannot know.
fn zone_by_name(name: &str) -> Result<Option<TimeZone>, DecodeError> {
    zone::by_name(name).map_err(|e| match e.state {
        SqlState::FeatureNotSupported => Unsupported(e.message.replace(" is not supported by Stegodon yet", "")),
        _ => BadFormat,
    })
}

impl<'a> Decoder<'a> {
    fn new(settings: &'a FormatSettings, time_only: bool) -> Self {
        Decoder {
            settings,
            time_only,
            state: State { fields: Fields::default(), two_digits: false, order: settings.date_order },
            seen: 0,
            kind: Kind::Fields,
            west: 0,
            prefix: None,
            text_month: false,
            julian: false,
            bc: false,
            pm: None,
            named: None,
            abbreviated: None,
        }
    }

    /// The parts seen, where a number can only be a time once it is not a date.
    fn seen_for_time(&self) -> u32 {
        if self.time_only { self.seen | part::DATE } else { self.seen }
    }

    /// A zone's name with punctuation in it.
    fn zone_name(&mut self, name: &str) -> Result<u32, DecodeError> {
        self.named = Some(zone_by_name(name)?.ok_or_else(|| BadZone(name.to_owned()))?);
        Ok(part::ZONE)
    }

    /// `hhmmss-zz`: a time run together, and a zone.
    fn time_and_zone(&mut self, text: &str) -> Result<u32, DecodeError> {
        if self.seen & part::TIME == part::TIME {
            return Err(BadFormat);
        }
        let at = text.find('-').ok_or(BadFormat)?;
        let (time, zone) = text.split_at(at);
        self.west = zone_offset(zone)?;
        let (found, _) = self.state.run_together(time, self.seen_for_time())?;
        Ok(found | part::ZONE)
    }

    fn set_julian(&mut self, day: i32) -> Result<(), DecodeError> {
        if day < 0 {
            return Err(FieldOverflow);
        }
        let f = &mut self.state.fields;
        (f.year, f.month, f.day) = from_julian(day);
        self.julian = true;
        Ok(())
    }

    fn date_field(&mut self, text: &str) -> Result<u32, DecodeError> {
        if self.prefix == Some(Prefix::Julian) {
            let (day, zone) = int32(text)?;
            self.set_julian(day)?;
            self.west = zone_offset(zone)?;
            self.prefix = None;
            return Ok(part::DATE | part::TIME | part::ZONE);
        }
        const MONTH_DAY: u32 = part::MONTH | part::DAY;
        if self.prefix.is_some() || self.seen & MONTH_DAY == MONTH_DAY {
            let after_prefix = self.prefix.is_some();
            if after_prefix || text.starts_with(|c: char| c.is_ascii_digit()) {
                if after_prefix && self.prefix.take() != Some(Prefix::Time) {
                    return Err(BadFormat);
                }
                return self.time_and_zone(text);
            }
            return self.zone_name(text);
        }
        self.state.date(text, self.seen)
    }

    /// A number after a word that says what it is.
    fn labelled_number(&mut self, prefix: Prefix, text: &str) -> Result<u32, DecodeError> {
        let (value, rest) = int32(text)?;
        if !rest.is_empty() && !rest.starts_with('.') {
            return Err(BadFormat);
        }
        match prefix {
            Prefix::Julian => {
                self.set_julian(value)?;
                if rest.is_empty() {
                    return Ok(part::DATE);
                }
                let time = Fields::of_time((fraction(rest)? * DAY_US as f64) as i64);
                let f = &mut self.state.fields;
                (f.hour, f.minute, f.second, f.us) = (time.hour, time.minute, time.second, time.us);
                Ok(part::DATE | part::TIME)
            }
            Prefix::Time => match self.state.run_together(text, self.seen | part::DATE)? {
                (part::TIME, _) => Ok(part::TIME),
                _ => Err(BadFormat),
            },
            Prefix::Other => Err(BadFormat),
        }
    }

    fn number_field(&mut self, text: &str) -> Result<u32, DecodeError> {
        if let Some(prefix) = self.prefix.take() {
            let found = self.labelled_number(prefix, text)?;
            self.kind = Kind::Fields;
            return Ok(found);
        }
        let whole = text.find('.');
        let missing = |parts: u32| self.seen & parts == 0;
        if whole.is_some() && missing(part::DATE) {
            return self.state.date(text, self.seen);
        }
        let long = text.len() >= 6 && (missing(part::DATE) || missing(part::TIME));
        if whole.is_some_and(|at| at > 2) || long {
            return self.state.run_together(text, self.seen).map(|(found, _)| found);
        }
        self.state.number(text, self.text_month, self.seen)
    }

    fn reserved(&mut self, word: Reserved) -> Result<u32, DecodeError> {
        if self.time_only {
            return match word {
                Reserved::Now => {
                    self.state.fields = now(self.settings)?.0;
                    Ok(part::TIME)
                }
                Reserved::Zulu => {
                    let f = &mut self.state.fields;
                    (f.hour, f.minute, f.second) = (0, 0, 0);
                    Ok(part::TIME | part::ZONE)
                }
                _ => Err(BadFormat),
            };
        }
        let whole = part::DATE | part::TIME | part::ZONE;
        let day_from_today = |days: i32, state: &mut State| {
            let (today, _) = now(self.settings)?;
            let f = &mut state.fields;
            (f.year, f.month, f.day) = from_julian(to_julian(today.year, today.month, today.day) + days);
            Ok(part::DATE)
        };
        match word {
            Reserved::Now => {
                (self.state.fields, self.west) = now(self.settings)?;
                Ok(whole)
            }
            Reserved::Today => day_from_today(0, &mut self.state),
            Reserved::Tomorrow => day_from_today(1, &mut self.state),
            Reserved::Yesterday => day_from_today(-1, &mut self.state),
            Reserved::Zulu => {
                let f = &mut self.state.fields;
                (f.hour, f.minute, f.second) = (0, 0, 0);
                self.west = 0;
                Ok(part::TIME | part::ZONE)
            }
            Reserved::Epoch => {
                self.kind = Kind::Epoch;
                Ok(whole)
            }
            Reserved::Late => {
                self.kind = Kind::Late;
                Ok(whole)
            }
            Reserved::Early => {
                self.kind = Kind::Early;
                Ok(whole)
            }
        }
    }

    fn set_prefix(&mut self, prefix: Prefix) -> Result<u32, DecodeError> {
        if self.prefix.is_some() {
            return Err(BadFormat);
        }
        self.prefix = Some(prefix);
        Ok(0)
    }

    /// A word. Abbreviations of zones come before all others.
    fn word(&mut self, word: &str) -> Result<Effect, DecodeError> {
        match zone::abbreviation(word, &self.settings.time_zone) {
            Some(zone::Abbreviation::Fixed(east)) => {
                self.west = -east;
                return Ok(Effect::Parts(part::ZONE));
            }
            Some(zone::Abbreviation::Varying(zone)) => {
                self.abbreviated = Some((word.to_owned(), zone));
                return Ok(Effect::Parts(part::VARYING_ZONE | part::ZONE));
            }
            None => {}
        }
        let parts = match date_word(word) {
            Some(Token::Ignore) => return Ok(Effect::Ignored),
            Some(Token::Reserved(r)) => self.reserved(r)?,
            Some(Token::Month(_) | Token::DayOfWeek) if self.time_only => return Err(BadFormat),
            Some(Token::Month(month)) => {
                let f = &mut self.state.fields;
                let mut parts = part::MONTH;
                // What was taken for the month is the day.
                if self.seen & part::MONTH != 0
                    && !self.text_month
                    && self.seen & part::DAY == 0
                    && (1..=31).contains(&f.month)
                {
                    f.day = f.month;
                    parts = part::DAY;
                }
                self.text_month = true;
                f.month = month;
                parts
            }
            Some(Token::DayOfWeek) => part::WEEKDAY,
            Some(Token::DstModifier) => {
                self.west -= 3600;
                part::SUMMER_MODIFIER | part::SUMMER_ZONE
            }
            Some(Token::Pm(pm)) => {
                self.pm = Some(pm);
                part::AM_PM
            }
            Some(Token::Bc(bc)) => {
                self.bc = bc;
                part::ERA
            }
            Some(Token::Unit(Unit::Julian)) => self.set_prefix(Prefix::Julian)?,
            Some(Token::Unit(_)) => self.set_prefix(Prefix::Other)?,
            Some(Token::IsoTime) => {
                if !self.time_only && self.seen & part::DATE != part::DATE {
                    return Err(BadFormat);
                }
                self.set_prefix(Prefix::Time)?
            }
            Some(Token::Ago) => return Err(BadFormat),
            None => {
                self.named = Some(zone_by_name(word)?.ok_or(BadFormat)?);
                part::ZONE
            }
        };
        Ok(Effect::Parts(parts))
    }

    fn add(&mut self, parts: u32) -> Result<(), DecodeError> {
        if self.seen & parts != 0 {
            return Err(BadFormat);
        }
        self.seen |= parts;
        Ok(())
    }

    /// The field of a time after the `t` that announces it, or any other.
    fn time_field(&mut self, text: &str) -> Result<u32, DecodeError> {
        if self.prefix.take().is_some_and(|p| p != Prefix::Time) {
            return Err(BadFormat);
        }
        self.state.time(text)
    }

    fn apply_am_pm(&mut self) -> Result<(), DecodeError> {
        let f = &mut self.state.fields;
        match self.pm {
            Some(_) if f.hour > 12 => return Err(FieldOverflow),
            Some(false) if f.hour == 12 => f.hour = 0,
            Some(true) if f.hour != 12 => f.hour += 12,
            _ => {}
        }
        Ok(())
    }

    /// The zone, where no offset was given. `local` is the wall clock to look up.
    fn resolve_zone(&mut self, local: &Fields) -> Result<(), DecodeError> {
        let modified = self.seen & part::SUMMER_MODIFIER != 0;
        if let Some(named) = &self.named {
            if modified {
                return Err(BadFormat);
            }
            self.west = zone::west_of_local(named, local);
        }
        if let Some((word, zone)) = &self.abbreviated {
            if modified {
                return Err(BadFormat);
            }
            self.west = zone::west_of_abbreviation(word, zone, local);
        }
        if self.seen & part::ZONE == 0 {
            if modified {
                return Err(BadFormat);
            }
            self.west = zone::west_of_local(&self.settings.time_zone, local);
        }
        Ok(())
    }

    fn date_time(mut self, fields: &[Field]) -> Result<Decoded, DecodeError> {
        for field in fields {
            let text = field.text.as_str();
            let parts = match field.shape {
                Shape::Date => self.date_field(text)?,
                Shape::Time => {
                    let parts = self.time_field(text)?;
                    if time_overflows(&self.state.fields) {
                        return Err(FieldOverflow);
                    }
                    parts
                }
                Shape::Zone => {
                    self.west = zone_offset(text)?;
                    part::ZONE
                }
                Shape::Number => self.number_field(text)?,
                Shape::Word | Shape::SignedWord => match self.word(text)? {
                    Effect::Ignored => continue,
                    Effect::Parts(parts) => parts,
                },
            };
            self.add(parts)?;
        }
        if self.prefix.is_some() {
            return Err(BadFormat);
        }
        if self.kind == Kind::Fields {
            validate(&mut self.state.fields, self.seen, self.julian, self.state.two_digits, self.bc)?;
            self.apply_am_pm()?;
            if self.seen & part::DATE != part::DATE {
                return Err(BadFormat);
            }
            let local = self.state.fields;
            self.resolve_zone(&local)?;
        }
        Ok(Decoded { kind: self.kind, fields: self.state.fields, west: self.west })
    }

    /// A field with delimiters where a time is wanted: a date only helps to find the zone's offset.
    fn date_field_of_time(&mut self, fields: &[Field], at: usize) -> Result<u32, DecodeError> {
        let text = fields.get(at).map_or("", |f| f.text.as_str());
        let date_follows = fields.last().is_some_and(|f| f.shape == Shape::Date);
        let time_follows = fields.get(1).is_some_and(|f| f.shape == Shape::Time);
        if at == 0 && fields.len() >= 2 && (date_follows || time_follows) {
            return self.state.date(text, self.seen);
        }
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            return self.time_and_zone(text);
        }
        self.zone_name(text)
    }

    fn number_field_of_time(&mut self, fields: &[Field], at: usize) -> Result<u32, DecodeError> {
        let text = fields.get(at).map_or("", |f| f.text.as_str());
        if let Some(prefix) = self.prefix.take() {
            return self.labelled_number(prefix, text);
        }
        let seen = self.seen | part::DATE;
        match text.find('.') {
            Some(_) if at == 0 && fields.len() >= 2 && fields.last().is_some_and(|f| f.shape == Shape::Date) => {
                self.state.date(text, self.seen)
            }
            Some(point) if point <= 2 => Err(BadFormat),
            None if text.len() <= 4 => self.state.number(text, false, seen),
            _ => self.state.run_together(text, seen).map(|(found, _)| found),
        }
    }

    fn time_of_day(mut self, fields: &[Field]) -> Result<Decoded, DecodeError> {
        for (at, field) in fields.iter().enumerate() {
            let text = field.text.as_str();
            let parts = match field.shape {
                Shape::Date => self.date_field_of_time(fields, at)?,
                Shape::Time => self.time_field(text)?,
                Shape::Zone => {
                    self.west = zone_offset(text)?;
                    part::ZONE
                }
                Shape::Number => self.number_field_of_time(fields, at)?,
                Shape::Word | Shape::SignedWord => match self.word(text)? {
                    Effect::Ignored => continue,
                    Effect::Parts(parts) => parts,
                },
            };
            self.add(parts)?;
        }
        if self.prefix.is_some() {
            return Err(BadFormat);
        }
        validate(&mut self.state.fields, self.seen, self.julian, self.state.two_digits, self.bc)?;
        self.apply_am_pm()?;
        if time_overflows(&self.state.fields) {
            return Err(FieldOverflow);
        }
        if self.seen & part::TIME != part::TIME {
            return Err(BadFormat);
        }
        let date = self.seen & part::DATE;
        let mut local = self.state.fields;
        if self.named.is_some() {
            if self.seen & part::SUMMER_MODIFIER != 0 {
                return Err(BadFormat);
            }
            // A zone that never changed its offset needs no date.
            if let Some(east) = self.named.as_ref().and_then(zone::only_offset) {
                self.west = -east;
                self.named = None;
            } else if date != part::DATE {
                return Err(BadFormat);
            }
        }
        if date == 0 {
            let (today, _) = now(self.settings)?;
            (local.year, local.month, local.day) = (today.year, today.month, today.day);
        } else if date != part::DATE && (self.abbreviated.is_some() || self.seen & part::ZONE == 0) {
            return Err(BadFormat);
        }
        self.resolve_zone(&local)?;
        Ok(Decoded { kind: Kind::Fields, fields: self.state.fields, west: self.west })
    }
}

/// Reads a date and time.
pub(super) fn date_time(settings: &FormatSettings, text: &[u8], buffer: usize) -> Result<Decoded, DecodeError> {
    let read = || Decoder::new(settings, false).date_time(&lex::fields(text, buffer)?);
    if settings.version >= Version::V16 { read() } else { before_16(text, read()) }
}

/// What 15 reads. It knew no `+infinity`; `epoch` and `infinity` with more behind, or letters before a number
/// (`y2000 m12 d31`), were something to it.
fn before_16(text: &[u8], read: Result<Decoded, DecodeError>) -> Result<Decoded, DecodeError> {
    match read {
        Ok(_) if contains_word(text, b"+infinity") => Err(BadFormat),
        Err(BadFormat)
            if contains_word(text, b"epoch")
                || contains_word(text, b"infinity")
                || text.windows(2).any(|w| matches!(w, [a, b] if a.is_ascii_alphabetic() && b.is_ascii_digit())) =>
        {
            Err(Unsupported("this date or time, in a directory of version 15".to_owned()))
        }
        read => read,
    }
}

/// Whether lower-case `word` is anywhere in a text, in either case.
pub(super) fn contains_word(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|w| w.eq_ignore_ascii_case(word))
}

/// Reads a time of day.
pub(super) fn time_of_day(settings: &FormatSettings, text: &[u8]) -> Result<Decoded, DecodeError> {
    Decoder::new(settings, true).time_of_day(&lex::fields(text, lex::DATE_BUFFER)?)
}
