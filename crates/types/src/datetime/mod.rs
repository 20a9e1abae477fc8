//! The types of dates and times: `date`, `time`, `timetz`, `timestamp`, `timestamptz`, `interval`.
//!
//! ```text
//!  date          Int32      days since 2000-01-01; -2^31 and 2^31-1 are the infinities
//!  time          Int64      microseconds since midnight, 0 ..= 24 h
//!  timestamp[tz] Int64      microseconds since 2000-01-01 00:00 (UTC); -2^63 and 2^63-1 are the infinities
//!
//!  timetz        Fixed(12)  +---------------+-------+
//!                           | µs since 0:00 | west  |      west: seconds west of Greenwich
//!                           +---------------+-------+
//!                           0               8      12
//!
//!  interval      Fixed(16)  +---------------+-------+--------+
//!                           |      µs       | days  | months |      all three least or all three greatest: infinity
//!                           +---------------+-------+--------+
//!                           0               8      12       16
//! ```
//!
//! Reading goes lex ([`lex`]) → decode ([`decode`], [`decode_interval`], over the keywords of [`tokens`]) → value. The
//! rules are PostgreSQL's (`datetime.c`), order of guesses included, since each of them decides what some text means.
//! Zones come from the tz database in `jiff` ([`zone`]); its years end at 9999, and later years are looked up in the
//! same year of an earlier 400-year cycle, as PostgreSQL does.

mod abbreviations;
pub mod calendar;
pub mod date;
mod decode;
mod decode_field;
mod decode_interval;
pub mod encode;
mod encode_interval;
pub mod interval;
mod lex;
pub mod time;
pub mod timestamp;
pub mod timetz;
pub mod tokens;
pub mod zone;

pub use calendar::Fields;
pub use interval::Interval;

use crate::{SqlError, SqlState};

/// Microseconds of a second.
pub const SECOND_US: i64 = 1_000_000;
/// Microseconds of a minute.
pub const MINUTE_US: i64 = 60 * SECOND_US;
/// Microseconds of an hour.
pub const HOUR_US: i64 = 60 * MINUTE_US;
/// Microseconds of a day.
pub const DAY_US: i64 = 24 * HOUR_US;
/// Seconds of a day.
pub const DAY_S: i64 = 86_400;

/// Why a text is no date, time or interval: PostgreSQL's `DTERR_` codes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// Not of the form.
    BadFormat,
    /// A field beyond its range.
    FieldOverflow,
    /// A month or day beyond its range, which another order of day and month might have accepted.
    MonthDayOverflow,
    /// An interval's field beyond its range.
    IntervalOverflow,
    /// A zone's displacement beyond its range.
    ZoneOverflow,
    /// No such zone.
    BadZone(String),
    /// PostgreSQL might read it, we do not.
    Unsupported(String),
}

impl DecodeError {
    /// The error that the input function of a type reports.
    pub fn of(self, type_name: &str, text: &[u8]) -> SqlError {
        let text = String::from_utf8_lossy(text);
        match self {
            DecodeError::BadFormat => SqlError::new(
                SqlState::InvalidDatetimeFormat,
                format!("invalid input syntax for type {type_name}: \"{text}\""),
            ),
            DecodeError::FieldOverflow => SqlError::new(
                SqlState::DatetimeFieldOverflow,
                format!("date/time field value out of range: \"{text}\""),
            ),
            DecodeError::MonthDayOverflow => SqlError::new(
                SqlState::DatetimeFieldOverflow,
                format!("date/time field value out of range: \"{text}\""),
            )
            .hint("Perhaps you need a different \"DateStyle\" setting."),
            DecodeError::IntervalOverflow => {
                SqlError::new(SqlState::IntervalFieldOverflow, format!("interval field value out of range: \"{text}\""))
            }
            DecodeError::ZoneOverflow => SqlError::new(
                SqlState::InvalidTimeZoneDisplacementValue,
                format!("time zone displacement out of range: \"{text}\""),
            ),
            DecodeError::BadZone(name) => {
                SqlError::new(SqlState::InvalidParameterValue, format!("time zone \"{name}\" not recognized"))
            }
            DecodeError::Unsupported(what) => SqlError::unsupported(what),
        }
    }
}

/// `22008`: the value is beyond its type's range.
pub fn out_of_range(what: &str) -> SqlError {
    SqlError::new(SqlState::DatetimeFieldOverflow, format!("{what} out of range"))
}

/// Microseconds rounded to a number of decimals of a second, half away from zero.
pub(crate) fn round_us(us: i64, precision: i32) -> i64 {
    let unit = match precision {
        0..=5 => 10i64.pow(6 - precision as u32),
        _ => return us,
    };
    let half = unit / 2;
    // Values in range are far from overflow.
    if us >= 0 {
        us.saturating_add(half) / unit * unit
    } else {
        -(us.saturating_neg().saturating_add(half) / unit * unit)
    }
}
