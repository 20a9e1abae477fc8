//! The one table of settings: names, kinds, limits, units and descriptions; reading and showing values; a session's
//! store; configuration files.
//!
//! ```text
//!  table.tsv ──> Setting ─ parse ─> Value ─ show ─> text
//!                   │
//!  Settings: one (current, reset) pair a setting, plus a stack of what open transactions will put back
//!                   ↑
//!  defaults < postgresql.conf, postgresql.auto.conf, stegodon.conf < command line < database < role < client < SET
//! ```
//!
//! ```
//! use stegodon_catalog::settings::{Scope, Settings};
//!
//! let mut settings = Settings::new();
//! settings.set("work_mem", "1.5GB", Scope::Session, false).unwrap();
//! assert_eq!(settings.show("work_mem").unwrap(), "1536MB");
//! assert_eq!(settings.int("work_mem"), 1536 * 1024);
//! ```

pub mod conf;
mod format;
mod hooks;
mod store;
mod value;

use std::collections::HashMap;
use std::sync::OnceLock;

use stegodon_types::{SqlError, SqlState};

pub use store::{Scope, SettingRow, Settings, Source};
pub use value::Value;

/// What kind of value a setting has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Kind {
    Bool,
    Int,
    Real,
    String,
    Enum,
}

impl Kind {
    /// `pg_settings.vartype`
    pub fn name(self) -> &'static str {
        match self {
            Kind::Bool => "bool",
            Kind::Int => "integer",
            Kind::Real => "real",
            Kind::String => "string",
            Kind::Enum => "enum",
        }
    }
}

/// Who may change a setting, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Context {
    Internal,
    Postmaster,
    Sighup,
    SuperuserBackend,
    Backend,
    Superuser,
    User,
}

impl Context {
    /// `pg_settings.context`
    pub fn name(self) -> &'static str {
        match self {
            Context::Internal => "internal",
            Context::Postmaster => "postmaster",
            Context::Sighup => "sighup",
            Context::SuperuserBackend => "superuser-backend",
            Context::Backend => "backend",
            Context::Superuser => "superuser",
            Context::User => "user",
        }
    }
}

/// One setting.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Its name, spelled as it is shown.
    pub name: &'static str,
    /// Who may change it.
    pub context: Context,
    /// What kind of value.
    pub kind: Kind,
    /// The unit of the stored number, empty for none: `kB`, `8kB`, `MB`, `B`, `ms`, `s`, `min`.
    pub unit: &'static str,
    /// `pg_settings.min_val`
    pub min: &'static str,
    /// `pg_settings.max_val`
    pub max: &'static str,
    /// The value where nothing sets it, without unit.
    pub boot: &'static str,
    /// The values of an enum, in their order.
    pub values: Vec<&'static str>,
    /// `pg_settings.category`
    pub category: &'static str,
    /// `pg_settings.short_desc`
    pub short_description: &'static str,
    /// `pg_settings.extra_desc`
    pub extra_description: &'static str,
    /// It changes plans: EXPLAIN (SETTINGS) names it, plans depend on it.
    pub explain: bool,
    /// SHOW ALL and `pg_settings` leave it out.
    pub hidden: bool,
    /// RESET ALL leaves it alone.
    pub no_reset_all: bool,
    /// The client is told of changes (`ParameterStatus`).
    pub report: bool,
    /// `auto` is a value: the engine decides (DESIGN §5).
    pub auto: bool,
    /// Ours or PostgreSQL's, only its default is implemented: another value would change answers.
    pub default_only: bool,
}

/// Settings of ours, `stegodon.` names, in the table's form: one is added when something obeys it.
const OWN: &str = "";

/// What the client is told.
const REPORTED: &[&str] = &[
    "application_name",
    "client_encoding",
    "DateStyle",
    "default_transaction_read_only",
    "in_hot_standby",
    "integer_datetimes",
    "IntervalStyle",
    "is_superuser",
    "scram_iterations",
    "search_path",
    "server_encoding",
    "server_version",
    "session_authorization",
    "standard_conforming_strings",
    "TimeZone",
];

/// Settings that accept `auto`; with whether that is the default.
const AUTO: &[(&str, bool)] =
    &[("effective_io_concurrency", true), ("random_page_cost", false), ("seq_page_cost", false)];

/// Settings of which another value than the default changes answers in a way that is not implemented.
const DEFAULT_ONLY: &[&str] =
    &["array_nulls", "quote_all_identifiers", "standard_conforming_strings", "transform_null_equals"];

fn parse_table() -> Vec<Setting> {
    include_str!("table.tsv").lines().chain(OWN.lines()).filter_map(parse_line).collect()
}

fn parse_line(line: &'static str) -> Option<Setting> {
    let mut fields = line.split('\t');
    let mut next = || fields.next().unwrap_or("");
    let name = next();
    let context = match next() {
        "internal" => Context::Internal,
        "postmaster" => Context::Postmaster,
        "sighup" => Context::Sighup,
        "superuser-backend" => Context::SuperuserBackend,
        "backend" => Context::Backend,
        "superuser" => Context::Superuser,
        "user" => Context::User,
        _ => return None,
    };
    let kind = match next() {
        "bool" => Kind::Bool,
        "integer" => Kind::Int,
        "real" => Kind::Real,
        "string" => Kind::String,
        "enum" => Kind::Enum,
        _ => return None,
    };
    let (unit, min, max, boot, values) = (next(), next(), next(), next(), next());
    let (category, short_description, extra_description, flags) = (next(), next(), next(), next());
    let flag = |f: &str| flags.split(',').any(|g| g == f);
    let auto = AUTO.iter().find(|(n, _)| *n == name);
    Some(Setting {
        name,
        context,
        kind,
        unit,
        min,
        max,
        boot: if auto.is_some_and(|(_, default)| *default) { "auto" } else { boot },
        values: if values.is_empty() { Vec::new() } else { values.split(',').collect() },
        category,
        short_description,
        extra_description,
        explain: flag("EXPLAIN"),
        hidden: flag("NO_SHOW_ALL"),
        no_reset_all: flag("NO_RESET_ALL"),
        report: REPORTED.contains(&name),
        auto: auto.is_some(),
        default_only: DEFAULT_ONLY.contains(&name),
    })
}

/// All settings, by name without regard to case.
pub fn table() -> &'static [Setting] {
    static TABLE: OnceLock<Vec<Setting>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table = parse_table();
        table.sort_by_key(|s| s.name.to_ascii_lowercase());
        table
    })
}

/// The place of a setting in the table.
pub(crate) fn position(name: &str) -> Option<usize> {
    static PLACES: OnceLock<HashMap<String, usize>> = OnceLock::new();
    let places =
        PLACES.get_or_init(|| table().iter().enumerate().map(|(i, s)| (s.name.to_ascii_lowercase(), i)).collect());
    let found = places.get(name).or_else(|| {
        let lower = name.to_ascii_lowercase();
        let current = match lower.as_str() {
            // Names of old.
            "sort_mem" => "work_mem",
            "vacuum_mem" => "maintenance_work_mem",
            "ssl_ecdh_curve" => "ssl_groups",
            "force_parallel_mode" => "debug_parallel_query",
            other => other,
        };
        places.get(current)
    });
    found.copied()
}

/// The setting of that name.
pub fn setting(name: &str) -> Option<&'static Setting> {
    table().get(position(name)?)
}

/// `42704`, as PostgreSQL words it.
pub fn unrecognized(name: &str) -> SqlError {
    SqlError::new(SqlState::UndefinedObject, format!("unrecognized configuration parameter \"{name}\""))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_table_is_whole() {
        assert_eq!(table().len(), include_str!("table.tsv").lines().count() + OWN.lines().count());
        for name in REPORTED.iter().chain(DEFAULT_ONLY).chain(AUTO.iter().map(|(n, _)| n)) {
            assert!(setting(name).is_some(), "{name}");
        }
        for s in table() {
            let boot = Value::parse(s, s.boot);
            assert!(boot.is_ok() || s.name == "TimeZone", "{}: {boot:?}", s.name);
        }
        assert_eq!(setting("DATESTYLE").unwrap().name, "DateStyle");
        assert!(setting("nosuch").is_none());
    }
}
