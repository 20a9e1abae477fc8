//! What the values of some strings must be, and the form they are kept in.

use std::fmt::Write as _;

use stegodon_types::settings::{DateOrder, DateStyle};
use stegodon_types::{SqlError, SqlResult, SqlState};

use super::{Setting, value};
use crate::path::split_identifiers;

/// `DateStyle` taken apart: its two words.
pub(super) fn date_style(text: &str) -> Option<(DateStyle, DateOrder)> {
    let (style, order) = text.split_once(", ")?;
    let style = match style {
        "ISO" => DateStyle::Iso,
        "SQL" => DateStyle::Sql,
        "Postgres" => DateStyle::Postgres,
        "German" => DateStyle::German,
        _ => return None,
    };
    let order = match order {
        "MDY" => DateOrder::Mdy,
        "DMY" => DateOrder::Dmy,
        "YMD" => DateOrder::Ymd,
        _ => return None,
    };
    Some((style, order))
}

fn date_style_text(style: DateStyle, order: DateOrder) -> String {
    let style = match style {
        DateStyle::Iso => "ISO",
        DateStyle::Sql => "SQL",
        DateStyle::Postgres => "Postgres",
        DateStyle::German => "German",
    };
    let order = match order {
        DateOrder::Mdy => "MDY",
        DateOrder::Dmy => "DMY",
        DateOrder::Ymd => "YMD",
    };
    format!("{style}, {order}")
}

/// A `DateStyle` as written, over the present one; `reset` is what the word DEFAULT stands for.
fn check_date_style(setting: &Setting, text: &str, current: &str, reset: &str) -> SqlResult<String> {
    let fail = |detail: String| Err(value::invalid(setting, text).detail(detail));
    let Some(words) = split_identifiers(text, ',') else { return fail("List syntax is invalid.".to_owned()) };
    let (mut style, mut order) = date_style(current).unwrap_or_default();
    let (mut style_seen, mut order_seen, mut ok) = (false, false, true);
    for word in words {
        let mut set_style = |new: DateStyle| {
            ok &= !style_seen || style == new;
            (style, style_seen) = (new, true);
        };
        let new_order = match word.as_str() {
            "iso" => {
                set_style(DateStyle::Iso);
                None
            }
            "sql" => {
                set_style(DateStyle::Sql);
                None
            }
            w if w.starts_with("postgres") => {
                set_style(DateStyle::Postgres);
                None
            }
            "german" => {
                set_style(DateStyle::German);
                // German also means DMY, unless told otherwise.
                if !order_seen {
                    order = DateOrder::Dmy;
                }
                None
            }
            "ymd" => Some(DateOrder::Ymd),
            w if w == "dmy" || w.starts_with("euro") => Some(DateOrder::Dmy),
            w if w == "mdy" || w == "us" || w.starts_with("noneuro") => Some(DateOrder::Mdy),
            "default" => {
                let (default_style, default_order) = date_style(reset).unwrap_or_default();
                if !style_seen {
                    style = default_style;
                }
                if !order_seen {
                    order = default_order;
                }
                None
            }
            other => return fail(format!("Unrecognized key word: \"{other}\".")),
        };
        if let Some(new) = new_order {
            ok &= !order_seen || order == new;
            (order, order_seen) = (new, true);
        }
    }
    if !ok {
        return fail("Conflicting \"DateStyle\" specifications.".to_owned());
    }
    Ok(date_style_text(style, order))
}

/// A time zone as written: a name of the database, hours from UTC, or a POSIX specification.
pub(super) fn time_zone(text: &str) -> Option<(jiff::tz::TimeZone, String)> {
    if let Ok(hours) = text.trim().parse::<f64>() {
        let seconds = (hours * 3600.0).round_ties_even();
        if !(-604_800.0..=604_800.0).contains(&seconds) {
            return None;
        }
        let seconds = seconds as i32;
        let zone = jiff::tz::TimeZone::fixed(jiff::tz::Offset::from_seconds(seconds).ok()?);
        // Shown as a POSIX zone, whose sign is west.
        let text = |s: i32, plus: char, minus: char| {
            let sign = if s < 0 { minus } else { plus };
            let s = s.abs();
            let mut out = format!("{sign}{:02}", s / 3600);
            if s % 3600 != 0 {
                let _infallible = write!(out, ":{:02}", s % 3600 / 60);
            }
            if s % 60 != 0 {
                let _infallible = write!(out, ":{:02}", s % 60);
            }
            out
        };
        return Some((zone, format!("<{}>{}", text(seconds, '+', '-'), text(seconds, '-', '+'))));
    }
    if let Ok(zone) = jiff::tz::TimeZone::get(text) {
        let name = zone.iana_name().map_or_else(|| text.to_owned(), ToOwned::to_owned);
        return Some((zone, name));
    }
    jiff::tz::TimeZone::posix(text).ok().map(|zone| (zone, text.to_owned()))
}

/// Encodings that PostgreSQL knows and that are not served, by their letters and digits.
const OTHER_ENCODINGS: &[&str] = &[
    "abc",
    "alt",
    "big5",
    "euccn",
    "eucjis2004",
    "eucjp",
    "euckr",
    "euctw",
    "gb18030",
    "gbk",
    "iso88591",
    "iso885910",
    "iso885913",
    "iso885914",
    "iso885915",
    "iso885916",
    "iso88592",
    "iso88593",
    "iso88594",
    "iso88595",
    "iso88596",
    "iso88597",
    "iso88598",
    "iso88599",
    "johab",
    "koi8",
    "koi8r",
    "koi8u",
    "latin1",
    "latin10",
    "latin2",
    "latin3",
    "latin4",
    "latin5",
    "latin6",
    "latin7",
    "latin8",
    "latin9",
    "mskanji",
    "muleinternal",
    "shiftjis",
    "shiftjis2004",
    "sjis",
    "tcvn",
    "tcvn5712",
    "uhc",
    "vscii",
    "win",
    "win1250",
    "win1251",
    "win1252",
    "win1253",
    "win1254",
    "win1255",
    "win1256",
    "win1257",
    "win1258",
    "win866",
    "win874",
    "win932",
    "win936",
    "win949",
    "win950",
    "windows1250",
    "windows1251",
    "windows1252",
    "windows1253",
    "windows1254",
    "windows1255",
    "windows1256",
    "windows1257",
    "windows1258",
    "windows866",
    "windows874",
    "windows932",
    "windows936",
    "windows949",
    "windows950",
];

fn check_encoding(setting: &Setting, text: &str) -> SqlResult<String> {
    let plain: String = text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    match plain.as_str() {
        // Kept as spelled: old JDBC drivers insist on it.
        "unicode" if text == "UNICODE" => Ok(text.to_owned()),
        "utf8" | "unicode" => Ok("UTF8".to_owned()),
        "sqlascii" => Ok("SQL_ASCII".to_owned()),
        known if OTHER_ENCODINGS.contains(&known) => Err(SqlError::unsupported(format!("client_encoding \"{text}\""))),
        _ => Err(value::invalid(setting, text)),
    }
}

/// Only printable ASCII stays; other bytes become `\xNN`.
fn clean_ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for b in text.bytes() {
        if (32..127).contains(&b) {
            out.push(char::from(b));
        } else {
            let _infallible = write!(out, "\\x{b:02x}");
        }
    }
    out
}

/// Checks a string that is being set, and gives the form it is kept in.
pub(super) fn check(setting: &Setting, text: &str, current: &str, reset: &str) -> SqlResult<String> {
    match setting.name {
        "DateStyle" => check_date_style(setting, text, current, reset),
        "TimeZone" | "log_timezone" => {
            time_zone(text).map(|(_, name)| name).ok_or_else(|| value::invalid(setting, text))
        }
        "client_encoding" => check_encoding(setting, text),
        "search_path" | "temp_tablespaces" | "local_preload_libraries" | "session_preload_libraries" => {
            match split_identifiers(text, ',') {
                Some(_) => Ok(text.to_owned()),
                None => Err(value::invalid(setting, text).detail("List syntax is invalid.")),
            }
        }
        "application_name" | "cluster_name" => Ok(clean_ascii(text)),
        "timezone_abbreviations" if text != "Default" => {
            Err(SqlError::unsupported(format!("timezone_abbreviations \"{text}\"")))
        }
        _ => Ok(text.to_owned()),
    }
}

/// Whether a name may be that of a setting nobody declared: dotted identifiers, not under our own prefix.
pub(super) fn custom_name(name: &str) -> SqlResult<()> {
    let part = |p: &str| {
        let mut chars = p.chars();
        chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii())
            && chars.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$') || !c.is_ascii())
    };
    if !name.contains('.') {
        return Err(super::unrecognized(name));
    }
    let invalid = |detail: &str| {
        Err(SqlError::new(SqlState::InvalidName, format!("invalid configuration parameter name \"{name}\""))
            .detail(detail))
    };
    if !name.split('.').all(part) {
        return invalid("Custom parameter names must be two or more simple identifiers separated by dots.");
    }
    if name.to_ascii_lowercase().starts_with("stegodon.") {
        return invalid("\"stegodon\" is a reserved prefix.");
    }
    Ok(())
}
