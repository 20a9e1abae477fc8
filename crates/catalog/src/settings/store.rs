//! A session's values, with what transactions put back.
//!
//! Each open (sub)transaction has a level. The first change of a setting at a level remembers what stood before:
//!
//! ```text
//!  SET          commit keeps the new value             rollback restores the old
//!  SET LOCAL    commit restores the old                rollback restores the old
//!  SET, then    commit restores what SET set           rollback restores the old
//!   SET LOCAL   (it is kept aside as `masked`)
//! ```
//!
//! A level that commits hands its memory to the level around it, and the outermost one settles it.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use stegodon_format::version::Version;
use stegodon_types::{SqlError, SqlResult, SqlState};

use super::{Context, Kind, Setting, Value, hooks, position, table, unrecognized};

/// Where a value came from, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Source {
    Default,
    Override,
    File,
    CommandLine,
    Global,
    Database,
    User,
    DatabaseUser,
    Client,
    Session,
}

impl Source {
    /// `pg_settings.source`
    pub fn name(self) -> &'static str {
        match self {
            Source::Default => "default",
            Source::Override => "override",
            Source::File => "configuration file",
            Source::CommandLine => "command line",
            Source::Global => "global",
            Source::Database => "database",
            Source::User => "user",
            Source::DatabaseUser => "database user",
            Source::Client => "client",
            Source::Session => "session",
        }
    }
}

/// How long a SET lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// SET: the session, if the transaction commits.
    Session,
    /// SET LOCAL: the transaction.
    Local,
}

/// A place in a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePosition {
    /// The file.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
}

#[derive(Clone, Debug, PartialEq)]
struct Held {
    value: Value,
    source: Source,
}

#[derive(Clone, Debug)]
struct Slot {
    current: Held,
    reset: Held,
    position: Option<FilePosition>,
}

/// What SET LOCAL did at a level.
#[derive(Clone, Debug)]
enum Local {
    /// Nothing: the last change was a SET.
    No,
    /// It came first: the prior value returns at commit.
    Only,
    /// It came after a SET, whose value is what commit settles on.
    After(Option<Held>),
}

/// What a level remembers of one setting.
#[derive(Clone, Debug)]
struct Memory {
    prior: Option<Held>,
    local: Local,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Place(usize),
    Custom(String),
}

/// One row of `pg_settings`.
#[derive(Clone, Debug)]
pub struct SettingRow {
    /// The setting's entry in the table.
    pub setting: &'static Setting,
    /// `setting`: the value without unit.
    pub value: String,
    /// `reset_val`
    pub reset_value: String,
    /// `boot_val`
    pub boot_value: String,
    /// `source`
    pub source: Source,
    /// `sourcefile` and `sourceline`, for superusers and `pg_read_all_settings`.
    pub position: Option<FilePosition>,
}

/// A session's settings. Cheap to clone from a template with the configuration files' values, and small: what a session does
/// not change it shares with the template.
#[derive(Clone, Debug)]
pub struct Settings {
    slots: Vec<Arc<Slot>>,
    /// Settings that nobody declared, `prefix.name`, by their names in lower case.
    custom: HashMap<String, Held>,
    levels: Vec<HashMap<Key, Memory>>,
    generation: u64,
    reports: Vec<&'static str>,
}

impl Default for Settings {
    fn default() -> Self {
        Self::new()
    }
}

impl Settings {
    /// Every setting at its default.
    pub fn new() -> Self {
        let slots = table()
            .iter()
            .map(|setting| {
                // Defaults are checked by a test; a string is what remains.
                let value = Value::parse(setting, setting.boot).unwrap_or_else(|_| Value::Text(setting.boot.into()));
                let held = Held { value, source: Source::Default };
                Arc::new(Slot { current: held.clone(), reset: held, position: None })
            })
            .collect();
        Self { slots, custom: HashMap::new(), levels: Vec::new(), generation: 0, reports: Vec::new() }
    }

    /// Counts changes: what was derived from the settings is good while this stays.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The version that the sessions' answers are of: the data directory's.
    pub fn version(&self) -> Version {
        let number = self.int("server_version_num");
        Version::SUPPORTED.iter().copied().find(|v| i64::from(v.major()) == number / 10_000).unwrap_or_default()
    }

    /// Sets `server_version` and `server_version_num`.
    pub fn set_version(&mut self, version: Version) -> SqlResult<()> {
        let (major, minor) = (version.major(), version.minor());
        self.set_internal("server_version", &format!("{major}.{minor}"))?;
        self.set_internal("server_version_num", &(major * 10_000 + minor).to_string())
    }

    fn slot(&self, name: &str) -> Option<(&'static Setting, &Slot)> {
        let place = position(name)?;
        Some((table().get(place)?, self.slots.get(place)?.as_ref()))
    }

    /// The value of a setting of the table.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.slot(name).map(|(_, slot)| &slot.current.value)
    }

    /// An integer, in the table's unit; the number PostgreSQL has by default where it is `auto`; 0 where it is none.
    pub fn int(&self, name: &str) -> i64 {
        match self.slot(name) {
            Some((_, Slot { current: Held { value: Value::Int(v), .. }, .. })) => i64::from(*v),
            Some((s, Slot { current: Held { value: Value::Auto, .. }, .. }))
                if s.name == "effective_io_concurrency" =>
            {
                16
            }
            _ => 0,
        }
    }

    /// An integer; `None` where it is `auto`.
    pub fn int_or_auto(&self, name: &str) -> Option<i64> {
        match self.value(name) {
            Some(Value::Auto) => None,
            _ => Some(self.int(name)),
        }
    }

    /// A boolean; false where it is none.
    pub fn bool(&self, name: &str) -> bool {
        matches!(self.value(name), Some(Value::Bool(true)))
    }

    /// A real, in the table's unit; PostgreSQL's default where it is `auto`; 0 where it is none.
    pub fn real(&self, name: &str) -> f64 {
        match self.slot(name) {
            Some((_, Slot { current: Held { value: Value::Real(v), .. }, .. })) => *v,
            Some((s, Slot { current: Held { value: Value::Auto, .. }, .. })) => s.boot.parse().unwrap_or(0.0),
            _ => 0.0,
        }
    }

    /// A real; `None` where it is `auto`.
    pub fn real_or_auto(&self, name: &str) -> Option<f64> {
        match self.value(name) {
            Some(Value::Auto) => None,
            _ => Some(self.real(name)),
        }
    }

    /// A string or an enum's value; empty where it is none.
    pub fn text(&self, name: &str) -> &str {
        match self.value(name) {
            Some(Value::Text(text)) => text,
            _ => "",
        }
    }

    /// A setting's own name, however it was written.
    pub fn name_of(&self, name: &str) -> Option<&'static str> {
        self.slot(name).map(|(setting, _)| setting.name)
    }

    /// SHOW.
    pub fn show(&self, name: &str) -> SqlResult<String> {
        if let Some((setting, slot)) = self.slot(name) {
            return Ok(slot.current.value.show(setting));
        }
        match self.custom.get(&name.to_ascii_lowercase()) {
            Some(Held { value: Value::Text(text), .. }) => Ok(text.to_string()),
            _ => Err(unrecognized(name)),
        }
    }

    /// SHOW ALL: names, values, descriptions.
    pub fn show_all(&self) -> impl Iterator<Item = (&'static str, String, &'static str)> {
        table()
            .iter()
            .zip(&self.slots)
            .filter(|(setting, _)| !setting.hidden)
            .map(|(setting, slot)| (setting.name, slot.current.value.show(setting), setting.short_description))
    }

    /// `pg_settings`.
    pub fn rows(&self) -> impl Iterator<Item = SettingRow> {
        table().iter().zip(&self.slots).filter(|(setting, _)| !setting.hidden).map(|(setting, slot)| SettingRow {
            setting,
            value: slot.current.value.plain(setting),
            reset_value: slot.reset.value.plain(setting),
            boot_value: setting.boot.to_owned(),
            source: slot.current.source,
            position: slot.position.clone().filter(|_| slot.current.source == Source::File),
        })
    }

    /// Reported settings that changed since the last call, with their values: what `ParameterStatus` tells the client.
    pub fn take_reports(&mut self) -> Vec<(&'static str, String)> {
        let mut names = std::mem::take(&mut self.reports);
        names.sort_unstable();
        names.dedup();
        names.into_iter().filter_map(|name| self.show(name).ok().map(|value| (name, value))).collect()
    }

    /// Every reported setting: what a new client is told.
    pub fn reported(&self) -> Vec<(&'static str, String)> {
        table()
            .iter()
            .zip(&self.slots)
            .filter(|(setting, _)| setting.report)
            .map(|(setting, slot)| (setting.name, slot.current.value.show(setting)))
            .collect()
    }

    /// A digest of all settings but those that only say when to give up or what to call the session.
    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for (setting, slot) in table().iter().zip(&self.slots) {
            let aside = matches!(
                setting.name,
                "application_name"
                    | "statement_timeout"
                    | "lock_timeout"
                    | "transaction_timeout"
                    | "client_min_messages"
            ) || setting.name.starts_with("idle_");
            if !aside {
                slot.current.value.plain(setting).hash(&mut hasher);
            }
        }
        hasher.finish()
    }

    /// Checks text for a setting and gives its value.
    fn checked(setting: &'static Setting, slot: &Slot, text: &str) -> SqlResult<Value> {
        let mut value = Value::parse(setting, text)?;
        if setting.kind == Kind::String {
            let plain = |held: &Held| held.value.plain(setting);
            value = Value::Text(hooks::check(setting, text, &plain(&slot.current), &plain(&slot.reset))?.into());
        }
        if setting.default_only && value.plain(setting) != setting.boot {
            return Err(SqlError::unsupported(format!("{} = {}", setting.name, value.show(setting))));
        }
        Ok(value)
    }

    /// SET, SET LOCAL and `set_config`. A superuser may set more.
    pub fn set(&mut self, name: &str, text: &str, scope: Scope, superuser: bool) -> SqlResult<()> {
        let Some((setting, slot)) = self.slot(name) else {
            hooks::custom_name(name)?;
            let held = Held { value: Value::Text(text.into()), source: Source::Session };
            self.assign(Key::Custom(name.to_ascii_lowercase()), Some(held), scope);
            return Ok(());
        };
        may_change(setting, superuser)?;
        let value = Self::checked(setting, slot, text)?;
        let place = position(name).ok_or_else(|| unrecognized(name))?;
        self.assign(Key::Place(place), Some(Held { value, source: Source::Session }), scope);
        Ok(())
    }

    /// RESET and SET … TO DEFAULT.
    pub fn reset(&mut self, name: &str, scope: Scope, superuser: bool) -> SqlResult<()> {
        let Some((setting, slot)) = self.slot(name) else {
            hooks::custom_name(name)?;
            self.assign(Key::Custom(name.to_ascii_lowercase()), None, scope);
            return Ok(());
        };
        may_change(setting, superuser)?;
        let held = slot.reset.clone();
        let place = position(name).ok_or_else(|| unrecognized(name))?;
        self.assign(Key::Place(place), Some(held), scope);
        Ok(())
    }

    /// RESET ALL: what the session set and may set.
    pub fn reset_all(&mut self) {
        for (place, setting) in table().iter().enumerate() {
            let Some(slot) = self.slots.get(place) else { continue };
            let settable = matches!(setting.context, Context::User | Context::Superuser);
            if settable && !setting.no_reset_all && slot.current.source == Source::Session {
                let held = slot.reset.clone();
                self.assign(Key::Place(place), Some(held), Scope::Session);
            }
        }
        let names: Vec<String> = self.custom.keys().cloned().collect();
        for name in names {
            self.assign(Key::Custom(name), None, Scope::Session);
        }
    }

    /// Sets a value before the session begins: from a file, the command line, a database, a role or the client. Contexts
    /// are not asked, except that internal settings stay; stronger sources must come later.
    pub fn set_at_start(
        &mut self,
        name: &str,
        text: &str,
        source: Source,
        position_in_file: Option<FilePosition>,
    ) -> SqlResult<()> {
        let Some((setting, slot)) = self.slot(name) else {
            hooks::custom_name(name)?;
            self.custom.insert(name.to_ascii_lowercase(), Held { value: Value::Text(text.into()), source });
            return Ok(());
        };
        if setting.context == Context::Internal {
            return may_change(setting, true);
        }
        if source == Source::Client && matches!(setting.context, Context::Postmaster | Context::Sighup) {
            return may_change(setting, true);
        }
        let value = Self::checked(setting, slot, text)?;
        self.settle(name, Held { value, source }, position_in_file);
        Ok(())
    }

    /// Sets what the server itself knows: `server_version`, `data_directory`, `is_superuser` and the like.
    pub fn set_internal(&mut self, name: &str, text: &str) -> SqlResult<()> {
        let (setting, _) = self.slot(name).ok_or_else(|| unrecognized(name))?;
        let value = match Value::parse(setting, text) {
            // server_version_num's limits are one version's.
            Err(_) if setting.context == Context::Internal && setting.kind == Kind::Int => {
                Value::Int(text.parse().map_err(|_| super::value::invalid(setting, text))?)
            }
            parsed => parsed?,
        };
        self.settle(name, Held { value, source: Source::Override }, None);
        Ok(())
    }

    fn settle(&mut self, name: &str, held: Held, position_in_file: Option<FilePosition>) {
        let Some(place) = position(name) else { return };
        let Some(slot) = self.slots.get_mut(place).map(Arc::make_mut) else { return };
        slot.current = held.clone();
        slot.reset = held;
        slot.position = position_in_file;
        self.changed(place);
    }

    fn changed(&mut self, place: usize) {
        self.generation += 1;
        if let Some(setting) = table().get(place).filter(|s| s.report) {
            self.reports.push(setting.name);
        }
    }

    fn held(&self, key: &Key) -> Option<Held> {
        match key {
            Key::Place(place) => self.slots.get(*place).map(|s| s.current.clone()),
            Key::Custom(name) => self.custom.get(name).cloned(),
        }
    }

    fn put(&mut self, key: &Key, held: Option<Held>) {
        match (key, held) {
            (Key::Place(place), Some(held)) => {
                if let Some(slot) = self.slots.get_mut(*place)
                    && slot.current != held
                {
                    Arc::make_mut(slot).current = held;
                    self.changed(*place);
                }
            }
            (Key::Place(_), None) => {}
            (Key::Custom(name), Some(held)) => {
                self.custom.insert(name.clone(), held);
            }
            (Key::Custom(name), None) => {
                self.custom.remove(name);
            }
        }
    }

    fn assign(&mut self, key: Key, held: Option<Held>, scope: Scope) {
        let before = self.held(&key);
        if let Some(level) = self.levels.last_mut() {
            if let Some(memory) = level.get_mut(&key) {
                match scope {
                    Scope::Session => memory.local = Local::No,
                    Scope::Local if matches!(memory.local, Local::No) => memory.local = Local::After(before),
                    Scope::Local => {}
                }
            } else {
                let local = if scope == Scope::Local { Local::Only } else { Local::No };
                level.insert(key.clone(), Memory { prior: before, local });
            }
        } else if scope == Scope::Local {
            return;
        }
        self.put(&key, held);
    }

    /// How many levels are open.
    pub fn depth(&self) -> usize {
        self.levels.len()
    }

    /// A transaction or savepoint begins.
    pub fn begin(&mut self) {
        self.levels.push(HashMap::new());
    }

    /// The innermost level commits (or a savepoint is released).
    pub fn commit(&mut self) {
        let Some(level) = self.levels.pop() else { return };
        for (key, memory) in level {
            match self.levels.last_mut() {
                // The outermost level: SET LOCAL ends here.
                None => match memory.local {
                    Local::No => {}
                    Local::After(set) => self.put(&key, set),
                    Local::Only => self.put(&key, memory.prior),
                },
                Some(outer) => match outer.get_mut(&key) {
                    None => {
                        outer.insert(key, memory);
                    }
                    Some(around) => match memory.local {
                        Local::No => around.local = Local::No,
                        // Local to the whole transaction from here: what an outer SET set stays aside.
                        Local::Only if matches!(around.local, Local::No) => around.local = Local::After(memory.prior),
                        Local::Only => {}
                        Local::After(masked) => around.local = Local::After(masked),
                    },
                },
            }
        }
    }

    /// The innermost level is rolled back.
    pub fn rollback(&mut self) {
        let Some(level) = self.levels.pop() else { return };
        for (key, memory) in level {
            self.put(&key, memory.prior);
        }
    }
}

fn may_change(setting: &Setting, superuser: bool) -> SqlResult<()> {
    let cannot = |how: &str| {
        Err(SqlError::new(SqlState::CantChangeRuntimeParam, format!("parameter \"{}\" cannot be {how}", setting.name)))
    };
    match setting.context {
        Context::Internal => cannot("changed"),
        Context::Postmaster => cannot("changed without restarting the server"),
        Context::Sighup => cannot("changed now"),
        Context::SuperuserBackend | Context::Backend => cannot("set after connection start"),
        Context::Superuser if !superuser => Err(SqlError::new(
            SqlState::InsufficientPrivilege,
            format!("permission denied to set parameter \"{}\"", setting.name),
        )),
        Context::Superuser | Context::User => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn set(s: &mut Settings, text: &str, scope: Scope) {
        s.set("work_mem", text, scope, false).unwrap();
    }

    #[test]
    fn local_ends_with_the_transaction() {
        let mut s = Settings::new();
        s.begin();
        set(&mut s, "1MB", Scope::Local);
        assert_eq!(s.show("work_mem").unwrap(), "1MB");
        s.commit();
        assert_eq!(s.show("work_mem").unwrap(), "4MB");
        set(&mut s, "1MB", Scope::Local);
        assert_eq!(s.show("work_mem").unwrap(), "4MB");
    }

    #[test]
    fn set_then_local_settles_on_set() {
        let mut s = Settings::new();
        s.begin();
        set(&mut s, "1MB", Scope::Session);
        set(&mut s, "2MB", Scope::Local);
        assert_eq!(s.show("work_mem").unwrap(), "2MB");
        s.commit();
        assert_eq!(s.show("work_mem").unwrap(), "1MB");
        s.begin();
        set(&mut s, "3MB", Scope::Session);
        s.rollback();
        assert_eq!(s.show("work_mem").unwrap(), "1MB");
    }

    #[test]
    fn savepoints_hand_their_memory_on() {
        let mut s = Settings::new();
        s.begin();
        set(&mut s, "1MB", Scope::Session);
        s.begin();
        set(&mut s, "2MB", Scope::Local);
        s.commit();
        assert_eq!(s.show("work_mem").unwrap(), "2MB");
        s.begin();
        set(&mut s, "3MB", Scope::Session);
        s.rollback();
        assert_eq!(s.show("work_mem").unwrap(), "2MB");
        s.commit();
        assert_eq!(s.show("work_mem").unwrap(), "1MB");
        s.begin();
        set(&mut s, "5MB", Scope::Session);
        s.begin();
        set(&mut s, "6MB", Scope::Session);
        s.commit();
        s.rollback();
        assert_eq!(s.show("work_mem").unwrap(), "1MB");
    }

    #[test]
    fn resetting_and_reporting() {
        let mut s = Settings::new();
        s.set_at_start("work_mem", "8MB", Source::File, None).unwrap();
        set(&mut s, "1MB", Scope::Session);
        s.set("application_name", "x", Scope::Session, false).unwrap();
        s.set("my.own", "y", Scope::Session, false).unwrap();
        assert_eq!(s.take_reports(), [("application_name", "x".to_owned())]);
        s.reset_all();
        assert_eq!(s.show("work_mem").unwrap(), "8MB");
        assert_eq!(s.take_reports(), [("application_name", String::new())]);
        assert!(s.show("my.own").is_err());
        assert_eq!(s.set("stegodon.nosuch", "1", Scope::Session, true).unwrap_err().state, SqlState::InvalidName);
        let refused = s.set("transform_null_equals", "on", Scope::Session, true).unwrap_err();
        assert_eq!(refused.state, SqlState::FeatureNotSupported);
    }
}
