//! The settings that say how values are written and read, in the form that `types` wants.

use stegodon_types::FormatSettings;
use stegodon_types::settings::{ByteaOutput, Encoding, IntervalStyle};

use super::{Settings, hooks};

impl Settings {
    /// The formats in force. `now_us` is the transaction's start in microseconds since 2000.
    pub fn format_settings(&self, encoding: Encoding, now_us: i64) -> FormatSettings {
        let (date_style, date_order) = hooks::date_style(self.text("DateStyle")).unwrap_or_default();
        FormatSettings {
            date_style,
            date_order,
            interval_style: match self.text("IntervalStyle") {
                "postgres_verbose" => IntervalStyle::PostgresVerbose,
                "sql_standard" => IntervalStyle::SqlStandard,
                "iso_8601" => IntervalStyle::Iso8601,
                _ => IntervalStyle::Postgres,
            },
            time_zone: hooks::time_zone(self.text("TimeZone")).map_or(jiff::tz::TimeZone::UTC, |(zone, _)| zone),
            extra_float_digits: self.int("extra_float_digits") as i32,
            bytea_output: match self.text("bytea_output") {
                "escape" => ByteaOutput::Escape,
                _ => ByteaOutput::Hex,
            },
            encoding,
            now_us,
            version: self.version(),
        }
    }
}
