//! The session settings that change how values are written and read.

use stegodon_format::version::Version;

/// `DateStyle`'s first part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DateStyle {
    /// `ISO`
    #[default]
    Iso,
    /// `SQL`
    Sql,
    /// `Postgres`
    Postgres,
    /// `German`
    German,
}

/// `DateStyle`'s second part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DateOrder {
    /// `MDY`
    #[default]
    Mdy,
    /// `DMY`
    Dmy,
    /// `YMD`
    Ymd,
}

/// `IntervalStyle`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IntervalStyle {
    /// `postgres`
    #[default]
    Postgres,
    /// `postgres_verbose`
    PostgresVerbose,
    /// `sql_standard`
    SqlStandard,
    /// `iso_8601`
    Iso8601,
}

/// `bytea_output`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ByteaOutput {
    /// `hex`
    #[default]
    Hex,
    /// `escape`
    Escape,
}

/// The character set of the database, as far as it is served (DESIGN D8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// Text is valid UTF-8.
    #[default]
    Utf8,
    /// Text is any bytes; a character is a byte.
    SqlAscii,
}

/// The settings that change how values are written and read.
#[derive(Clone, Debug)]
pub struct FormatSettings {
    /// `DateStyle`, first part.
    pub date_style: DateStyle,
    /// `DateStyle`, second part.
    pub date_order: DateOrder,
    /// `IntervalStyle`.
    pub interval_style: IntervalStyle,
    /// `TimeZone`.
    pub time_zone: jiff::tz::TimeZone,
    /// `extra_float_digits`: above 0, the shortest text that reads back the same.
    pub extra_float_digits: i32,
    /// `bytea_output`.
    pub bytea_output: ByteaOutput,
    /// The database's encoding.
    pub encoding: Encoding,
    /// The transaction's start, in microseconds since 2000-01-01 UTC: what `'now'`, `'today'` and `current_timestamp` read.
    pub now_us: i64,
    /// Whose answers are given: some types' texts mean something else to older versions.
    pub version: Version,
}

impl Default for FormatSettings {
    fn default() -> Self {
        Self {
            date_style: DateStyle::default(),
            date_order: DateOrder::default(),
            interval_style: IntervalStyle::default(),
            time_zone: jiff::tz::TimeZone::UTC,
            extra_float_digits: 1,
            bytea_output: ByteaOutput::default(),
            encoding: Encoding::default(),
            now_us: 0,
            version: Version::V18,
        }
    }
}
