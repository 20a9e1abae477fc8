//! Reading a setting's value from text, and showing it: PostgreSQL's numbers and units.

use std::sync::Arc;

use stegodon_types::{SqlError, SqlResult, SqlState};

use super::{Kind, Setting};

/// A setting's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A boolean.
    Bool(bool),
    /// An integer, in the setting's unit.
    Int(i32),
    /// A real, in the setting's unit.
    Real(f64),
    /// A string, or an enum's value as it is spelled.
    Text(Arc<str>),
    /// `auto`: the engine decides.
    Auto,
}

/// Units of memory and their size in bytes, largest first.
const MEMORY: &[(&str, f64)] =
    &[("TB", 1_099_511_627_776.0), ("GB", 1_073_741_824.0), ("MB", 1_048_576.0), ("kB", 1024.0), ("B", 1.0)];

/// Units of time and their length in microseconds, largest first.
const TIME: &[(&str, f64)] = &[
    ("d", 86_400_000_000.0),
    ("h", 3_600_000_000.0),
    ("min", 60_000_000.0),
    ("s", 1_000_000.0),
    ("ms", 1000.0),
    ("us", 1.0),
];

/// The units that a setting's value may be written in, and the size of its own.
fn units(unit: &str) -> Option<(&'static [(&'static str, f64)], f64)> {
    let size = |table: &[(&str, f64)]| table.iter().find(|(name, _)| *name == unit).map(|(_, size)| *size);
    match unit {
        "" => None,
        "8kB" => Some((MEMORY, 8192.0)),
        _ => size(MEMORY).map(|s| (MEMORY, s)).or_else(|| size(TIME).map(|s| (TIME, s))),
    }
}

pub(super) fn invalid(setting: &Setting, text: &str) -> SqlError {
    SqlError::new(
        SqlState::InvalidParameterValue,
        format!("invalid value for parameter \"{}\": \"{text}\"", setting.name),
    )
}

/// `%g`: six significant digits.
pub(super) fn general(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".to_owned() } else { value.to_string() };
    }
    let scientific = format!("{value:.5e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |s: &str| {
        if s.contains('.') { s.trim_end_matches('0').trim_end_matches('.').to_owned() } else { s.to_owned() }
    };
    if (-4..6).contains(&exponent) {
        trim(&format!("{value:.*}", usize::try_from(5 - exponent).unwrap_or(0)))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", trim(mantissa), exponent.abs())
    }
}

/// The number that a text begins with and what follows: C's `strtol` with base 0, else `strtod`.
fn number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim_start_matches(|c: char| c.is_ascii_whitespace());
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let negative = text.starts_with('-');
    let signed = |v: f64| if negative { -v } else { v };
    let digits = |s: &str, ok: fn(&char) -> bool| s.chars().take_while(ok).count();
    if let Some(hex) = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X")) {
        let n = digits(hex, char::is_ascii_hexdigit);
        if n > 0 {
            let (number, rest) = hex.split_at_checked(n)?;
            return Some((
                signed(number.chars().filter_map(|c| c.to_digit(16)).fold(0.0, |v, d| v * 16.0 + f64::from(d))),
                rest,
            ));
        }
    }
    let whole = digits(unsigned, char::is_ascii_digit);
    let mut end = whole;
    let after = unsigned.get(end..)?;
    let mut fraction = 0;
    if let Some(rest) = after.strip_prefix('.') {
        fraction = digits(rest, char::is_ascii_digit);
        if whole + fraction > 0 {
            end += 1 + fraction;
        }
    }
    if whole + fraction == 0 {
        return None;
    }
    let mut real = end > whole;
    let after = unsigned.get(end..)?;
    if let Some(rest) = after.strip_prefix(['e', 'E']) {
        let sign = usize::from(rest.starts_with(['-', '+']));
        let exponent = digits(rest.get(sign..)?, char::is_ascii_digit);
        if exponent > 0 {
            end += 1 + sign + exponent;
            real = true;
        }
    }
    let (number, rest) = unsigned.split_at_checked(end)?;
    if !real && number.len() > 1 && number.starts_with('0') {
        // Octal, as far as the digits go.
        let n = digits(number, |c| ('0'..='7').contains(c));
        if n == number.len() {
            let value = number.chars().filter_map(|c| c.to_digit(8)).fold(0.0, |v, d| v * 8.0 + f64::from(d));
            return Some((signed(value), rest));
        }
        return None;
    }
    let value: f64 = number.parse().ok()?;
    value.is_finite().then(|| (signed(value), rest))
}

/// A number with an optional unit, in the setting's own unit.
fn measured(setting: &Setting, text: &str) -> SqlResult<f64> {
    let (value, rest) = number(text).ok_or_else(|| invalid(setting, text))?;
    let rest = rest.trim_matches(|c: char| c.is_ascii_whitespace());
    if rest.is_empty() {
        return Ok(value);
    }
    let Some((table, own)) = units(setting.unit) else { return Err(invalid(setting, text)) };
    let Some(place) = table.iter().position(|(name, _)| *name == rest) else {
        let hint = if table.len() == MEMORY.len() {
            "Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\"."
        } else {
            "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\"."
        };
        return Err(invalid(setting, text).hint(hint));
    };
    let size = table.get(place).map_or(1.0, |(_, size)| *size);
    let mut converted = value * size / own;
    // A fraction such as 30.1GB is rounded to the next smaller unit.
    if let Some((_, smaller)) = table.get(place + 1) {
        let step = smaller / own;
        converted = (converted / step).round_ties_even() * step;
    }
    Ok(converted)
}

fn parse_bool(text: &str) -> Option<bool> {
    let text = text.to_ascii_lowercase();
    let prefix = |word: &str, least: usize| text.len() >= least && word.starts_with(&text);
    if prefix("true", 1) || prefix("yes", 1) || text == "on" || text == "1" {
        Some(true)
    } else if prefix("false", 1) || prefix("no", 1) || prefix("off", 2) || text == "0" {
        Some(false)
    } else {
        None
    }
}

fn parse_enum(setting: &Setting, text: &str) -> SqlResult<Arc<str>> {
    let find = |word: &str| setting.values.iter().find(|v| v.eq_ignore_ascii_case(word)).copied();
    if let Some(found) = find(text) {
        return Ok(found.into());
    }
    // Hidden spellings: booleans where on and off are values, old names of levels.
    let lower = text.to_ascii_lowercase();
    let hidden = match lower.as_str() {
        "true" | "yes" | "1" => find("on"),
        "false" | "no" | "0" => find("off"),
        "debug" => find("debug2"),
        "info" if find("notice").is_some() => Some("info"),
        _ => None,
    };
    hidden
        .map(Into::into)
        .ok_or_else(|| invalid(setting, text).hint(format!("Available values: {}.", setting.values.join(", "))))
}

impl Value {
    /// Reads a value: kind, unit and limits. What a name or a list in a string must be is checked where it is set.
    pub fn parse(setting: &Setting, text: &str) -> SqlResult<Value> {
        if setting.auto && text.eq_ignore_ascii_case("auto") {
            return Ok(Value::Auto);
        }
        match setting.kind {
            Kind::Bool => parse_bool(text).map(Value::Bool).ok_or_else(|| {
                SqlError::new(
                    SqlState::InvalidParameterValue,
                    format!("parameter \"{}\" requires a Boolean value", setting.name),
                )
            }),
            Kind::Int => {
                let value = measured(setting, text)?.round_ties_even();
                if !(f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&value) {
                    return Err(invalid(setting, text).hint("Value exceeds integer range."));
                }
                let value = value as i32;
                let limit = |s: &str, otherwise| s.parse().unwrap_or(otherwise);
                let (min, max): (i32, i32) = (limit(setting.min, i32::MIN), limit(setting.max, i32::MAX));
                if value < min || value > max {
                    return Err(out_of_range(setting, &value.to_string(), &min.to_string(), &max.to_string()));
                }
                Ok(Value::Int(value))
            }
            Kind::Real => {
                let value = measured(setting, text)?;
                let limit = |s: &str, otherwise: f64| s.parse().unwrap_or(otherwise);
                let (min, max) = (limit(setting.min, f64::MIN), limit(setting.max, f64::MAX));
                // 1.79769e+308 in the table stands for the largest double.
                if value < min || (value > max && max < 1.797e308) {
                    return Err(out_of_range(setting, &general(value), &general(min), &general(max)));
                }
                Ok(Value::Real(value))
            }
            Kind::String => Ok(Value::Text(text.into())),
            Kind::Enum => parse_enum(setting, text).map(Value::Text),
        }
    }

    /// As SHOW prints it: with the largest unit that divides it.
    pub fn show(&self, setting: &Setting) -> String {
        match self {
            Value::Int(value) => {
                if matches!(setting.name, "unix_socket_permissions" | "log_file_mode" | "data_directory_mode") {
                    return format!("{value:04o}");
                }
                let Some((table, own)) = units(setting.unit).filter(|_| *value > 0) else { return value.to_string() };
                for (unit, size) in table {
                    let multiplier = size / own;
                    if multiplier <= 1.0 || i64::from(*value) % (multiplier as i64) == 0 {
                        return format!("{}{unit}", (f64::from(*value) / multiplier).round_ties_even());
                    }
                }
                value.to_string()
            }
            Value::Real(value) => {
                let Some((table, own)) = units(setting.unit).filter(|_| *value > 0.0) else { return general(*value) };
                let mut text = general(*value);
                for (unit, size) in table {
                    let scaled = value / (size / own);
                    text = format!("{}{unit}", general(scaled));
                    if scaled > 0.0 && (scaled.round_ties_even() / scaled - 1.0).abs() <= 1e-8 {
                        break;
                    }
                }
                text
            }
            _ => self.plain(setting),
        }
    }

    /// As `pg_settings` prints it: without unit.
    pub fn plain(&self, setting: &Setting) -> String {
        match self {
            Value::Bool(value) => if *value { "on" } else { "off" }.to_owned(),
            Value::Int(_) if matches!(setting.unit, "") => self.show(setting),
            Value::Int(value) => value.to_string(),
            Value::Real(value) => general(*value),
            Value::Text(text) => text.to_string(),
            Value::Auto => "auto".to_owned(),
        }
    }
}

fn out_of_range(setting: &Setting, value: &str, min: &str, max: &str) -> SqlError {
    let unit = if setting.unit.is_empty() { String::new() } else { format!(" {}", setting.unit) };
    SqlError::new(
        SqlState::InvalidParameterValue,
        format!(
            "{value}{unit} is outside the valid range for parameter \"{}\" ({min}{unit} .. {max}{unit})",
            setting.name
        ),
    )
}
