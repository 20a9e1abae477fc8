//! `to_char` of timestamps. Every keyword of PostgreSQL is known; those whose output is not done are refused.

use jiff::tz::TimeZone;
use stegodon_types::datetime::calendar::{to_julian, weekday};
use stegodon_types::datetime::encode::{DAYS, MONTHS};
use stegodon_types::datetime::{Fields, timestamp, zone};
use stegodon_types::{SqlError, SqlResult};

use super::datetime::session_zone;
use super::datetime_math::timestamp_range;
use super::datetime_part::iso_week;
use crate::adapt::*;
use crate::kernel::Entry;

/// Longer ones before their beginnings, as they are looked for.
const KEYWORDS: &[&str] = &[
    "A.D.", "A.M.", "AD", "AM", "B.C.", "BC", "CC", "DAY", "DDD", "DD", "DY", "Day", "Dy", "D", "FF1", "FF2", "FF3",
    "FF4", "FF5", "FF6", "FX", "HH24", "HH12", "HH", "IDDD", "ID", "IW", "IYYY", "IYY", "IY", "I", "J", "MI", "MM",
    "MONTH", "MON", "MS", "Month", "Mon", "OF", "P.M.", "PM", "Q", "RM", "SSSSS", "SSSS", "SS", "TZH", "TZM", "TZ",
    "US", "WW", "W", "Y,YYY", "YYYY", "YYY", "YY", "Y", "a.d.", "a.m.", "ad", "am", "b.c.", "bc", "cc", "day", "ddd",
    "dd", "dy", "d", "ff1", "ff2", "ff3", "ff4", "ff5", "ff6", "fx", "hh24", "hh12", "hh", "iddd", "id", "iw", "iyyy",
    "iyy", "iy", "i", "j", "mi", "mm", "month", "mon", "ms", "of", "p.m.", "pm", "q", "rm", "sssss", "ssss", "ss",
    "tzh", "tzm", "tz", "us", "ww", "w", "y,yyy", "yyyy", "yyy", "yy", "y",
];

/// What is printed.
struct Moment {
    f: Fields,
    west: i32,
    abbreviation: String,
    has_zone: bool,
}

fn take(at: i64, in_zone: Option<&TimeZone>) -> SqlResult<Moment> {
    let Some(tz) = in_zone else {
        let f = Fields::of_timestamp(at).ok_or_else(timestamp_range)?;
        return Ok(Moment { f, west: 0, abbreviation: String::new(), has_zone: false });
    };
    let (f, west) = zone::to_local(tz, at).ok_or_else(timestamp_range)?;
    let abbreviation = zone::abbreviation_at(tz, zone::unix_seconds(at));
    Ok(Moment { f, west, abbreviation, has_zone: true })
}

/// A name in the letters of its keyword: `MONTH`, `Month`, `month`.
fn cased(name: &str, keyword: &str) -> String {
    let mut letters = keyword.chars();
    match (letters.next(), letters.next()) {
        (Some(a), Some(b)) if a.is_ascii_uppercase() && b.is_ascii_uppercase() => name.to_ascii_uppercase(),
        (Some(a), _) if a.is_ascii_lowercase() => name.to_ascii_lowercase(),
        _ => name.to_owned(),
    }
}

fn name<'a>(names: &[&'a str], at: i32) -> &'a str {
    usize::try_from(at).ok().and_then(|at| names.get(at)).copied().unwrap_or_default()
}

fn shown_year(year: i32) -> i32 {
    if year > 0 { year } else { 1 - year }
}

/// The text of a keyword; `fill` is whether it is filled up with zeros or blanks.
fn keyword(word: &str, m: &Moment, fill: bool) -> SqlResult<String> {
    let f = &m.f;
    let refuse = || SqlError::unsupported(format_args!("to_char with \"{word}\""));
    let number = |v: i32, width: usize| if fill { format!("{v:0width$}") } else { v.to_string() };
    let padded = |text: String| if fill { format!("{text:<9}") } else { text };
    let hour = |hour: i32| if hour % 12 == 0 { 12 } else { hour % 12 };
    let day_of_year = || f.julian() - to_julian(f.year, 1, 1) + 1;
    Ok(match word.to_ascii_uppercase().as_str() {
        "HH24" => number(f.hour, 2),
        "HH" | "HH12" => number(hour(f.hour), 2),
        "MI" => number(f.minute, 2),
        "SS" => number(f.second, 2),
        "MS" | "FF3" => format!("{:03}", f.us / 1000),
        "US" | "FF6" => format!("{:06}", f.us),
        "FF1" => format!("{:01}", f.us / 100_000),
        "FF2" => format!("{:02}", f.us / 10_000),
        "FF4" => format!("{:04}", f.us / 100),
        "FF5" => format!("{:05}", f.us / 10),
        "SSSSS" | "SSSS" => (f.hour * 3600 + f.minute * 60 + f.second).to_string(),
        "AM" | "PM" => cased(if f.hour % 24 >= 12 { "PM" } else { "AM" }, word),
        "A.M." | "P.M." => {
            let text = if f.hour % 24 >= 12 { "P.M." } else { "A.M." };
            if word.starts_with(|c: char| c.is_ascii_lowercase()) { text.to_ascii_lowercase() } else { text.to_owned() }
        }
        "AD" | "BC" => cased(if f.year <= 0 { "BC" } else { "AD" }, word),
        "A.D." | "B.C." => {
            let text = if f.year <= 0 { "B.C." } else { "A.D." };
            if word.starts_with(|c: char| c.is_ascii_lowercase()) { text.to_ascii_lowercase() } else { text.to_owned() }
        }
        "MONTH" => padded(cased(name(&MONTHS, f.month - 1), word)),
        "MON" => cased(name(&MONTHS, f.month - 1).get(..3).unwrap_or_default(), word),
        "MM" => number(f.month, 2),
        "DAY" => padded(cased(name(&DAYS, weekday(f.julian())), word)),
        "DY" => cased(name(&DAYS, weekday(f.julian())).get(..3).unwrap_or_default(), word),
        "DDD" => number(day_of_year(), 3),
        "DD" => number(f.day, 2),
        "D" => (weekday(f.julian()) + 1).to_string(),
        "ID" => match weekday(f.julian()) {
            0 => "7".to_owned(),
            day => day.to_string(),
        },
        "WW" => number((day_of_year() - 1) / 7 + 1, 2),
        "IW" => number(iso_week(f).1, 2),
        "W" => ((f.day - 1) / 7 + 1).to_string(),
        "Q" => ((f.month - 1) / 3 + 1).to_string(),
        "J" => f.julian().to_string(),
        "YYYY" => number(shown_year(f.year), 4),
        "YYY" => number(shown_year(f.year) % 1000, 3),
        "YY" => number(shown_year(f.year) % 100, 2),
        "Y" => (shown_year(f.year) % 10).to_string(),
        "IYYY" => number(shown_year(iso_week(f).0), 4),
        "TZ" if m.has_zone => cased(&m.abbreviation, word),
        "TZH" if m.has_zone => {
            let sign = if m.west <= 0 { '+' } else { '-' };
            format!("{sign}{:02}", m.west.abs() / 3600)
        }
        "TZM" if m.has_zone => format!("{:02}", m.west.abs() % 3600 / 60),
        "OF" if m.has_zone => {
            let sign = if m.west <= 0 { '+' } else { '-' };
            let (hours, minutes) = (m.west.abs() / 3600, m.west.abs() % 3600 / 60);
            let hours = number(hours, 2);
            if minutes == 0 { format!("{sign}{hours}") } else { format!("{sign}{hours}:{minutes:02}") }
        }
        _ => return Err(refuse()),
    })
}

/// Writes a moment by a format; false where the format is empty.
fn format(m: &Moment, pattern: &[u8], out: &mut Vec<u8>) -> SqlResult<bool> {
    if pattern.is_empty() {
        return Ok(false);
    }
    let mut rest = pattern;
    while !rest.is_empty() {
        let mut fill = true;
        if let Some(after) = rest.strip_prefix(b"FM").or_else(|| rest.strip_prefix(b"fm")) {
            fill = false;
            rest = after;
        } else if rest.starts_with(b"TM") || rest.starts_with(b"tm") {
            return Err(SqlError::unsupported("to_char with \"TM\""));
        }
        if let Some(word) = KEYWORDS.iter().find(|k| rest.starts_with(k.as_bytes())) {
            rest = rest.get(word.len()..).unwrap_or_default();
            if [&b"TH"[..], b"th", b"SP"].iter().any(|s| rest.starts_with(s)) {
                return Err(SqlError::unsupported("to_char with \"TH\" or \"SP\""));
            }
            out.extend_from_slice(keyword(word, m, fill)?.as_bytes());
            continue;
        }
        match rest {
            [b'"', tail @ ..] => {
                rest = tail;
                while let [b, tail @ ..] = rest {
                    rest = tail;
                    match b {
                        b'"' => break,
                        b'\\' if !rest.is_empty() => {
                            out.extend(rest.first());
                            rest = rest.get(1..).unwrap_or_default();
                        }
                        b => out.push(*b),
                    }
                }
            }
            [b'\\', b'"', tail @ ..] => {
                out.push(b'"');
                rest = tail;
            }
            [b, tail @ ..] => {
                out.push(*b);
                rest = tail;
            }
            [] => {}
        }
    }
    Ok(true)
}

/// Kernels.
pub(crate) static KERNELS: &[Entry] = &[
    (2049, |c| {
        write2(c, |at: i64, pattern: &[u8], out| {
            Ok(timestamp::is_finite(at) && !pattern.is_empty() && format(&take(at, None)?, pattern, out)?)
        })
    }),
    (1770, |c| {
        write2(c, |at: i64, pattern: &[u8], out| {
            let tz = session_zone(c);
            Ok(timestamp::is_finite(at) && !pattern.is_empty() && format(&take(at, Some(tz))?, pattern, out)?)
        })
    }),
];
