//! An opened cluster with its catalogs and base settings: what all sessions share.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use stegodon_access::{IoMethodKind, Storage, StorageOptions};
use stegodon_catalog::Catalog;
use stegodon_catalog::rows::Role;
use stegodon_catalog::settings::{Settings, Source};
use stegodon_exec::CancelFlag;
use stegodon_format::ids::Oid;
use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::hba::HostRules;
use crate::plans::Texts;
use crate::tls::Tls;

/// The role that `initdb` makes.
const BOOTSTRAP_SUPERUSER: Oid = Oid(10);
/// The first OID that is not PostgreSQL's own.
const FIRST_NORMAL_OID: u32 = 16384;
/// Microseconds from the Unix epoch to PostgreSQL's, 2000-01-01.
const POSTGRES_EPOCH_US: i64 = 946_684_800_000_000;

/// The time now, in microseconds since 2000-01-01 UTC.
pub(crate) fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as i64);
    since - POSTGRES_EPOCH_US
}

/// The length of the key that cancels a session.
pub(crate) const KEY_BYTES: usize = 32;
/// `pg_use_reserved_connections`
const USE_RESERVED_CONNECTIONS: Oid = Oid(4550);

/// A session, as others see it.
struct Registered {
    /// What a connection that wants to cancel it must know: so many bytes of it.
    key: [u8; KEY_BYTES],
    key_bytes: usize,
    flag: Arc<CancelFlag>,
    role: Oid,
    database: Oid,
}

/// An opened cluster.
pub struct Cluster {
    storage: Arc<Storage>,
    settings: Settings,
    /// Catalogs by database, loaded when first asked for.
    catalogs: Mutex<HashMap<String, Arc<Catalog>>>,
    /// Those of some database, read to know the roles before anyone has connected.
    first_catalog: Mutex<Option<Arc<Catalog>>>,
    started_us: i64,
    rules: HostRules,
    tls: Option<Tls>,
    next_pid: AtomicI32,
    sessions: Mutex<HashMap<i32, Registered>>,
    texts: Texts,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("storage", &self.storage).finish_non_exhaustive()
    }
}

impl Cluster {
    /// Opens a data directory under its own configuration files, with `overrides` (`-c name=value`) above them.
    pub fn open(directory: &Path, overrides: &[(String, String)]) -> SqlResult<Arc<Self>> {
        let mut settings = Settings::new();
        for problem in settings.apply_data_directory(directory) {
            tracing::warn!("{problem}");
        }
        for (name, value) in overrides {
            settings.set_at_start(name, value, Source::CommandLine, None)?;
        }
        let options = StorageOptions {
            shared_buffers_blocks: usize::try_from(settings.int("shared_buffers")).unwrap_or(16384).max(16),
            io_method: if settings.text("io_method") == "sync" { IoMethodKind::Sync } else { IoMethodKind::Worker },
            io_workers: usize::try_from(settings.int("io_workers")).unwrap_or(3).clamp(1, 64),
        };
        let storage = Storage::open(directory, &options)?;
        settings.set_internal("data_directory", &directory.display().to_string())?;
        let checksums = storage.directory().control().data_checksum_version != 0;
        settings.set_internal("data_checksums", if checksums { "on" } else { "off" })?;
        let rules = HostRules::load(directory, settings.text("hba_file"), settings.text("ident_file"))?;
        let tls = Tls::load(&settings, directory)?;
        Ok(Arc::new(Self {
            storage,
            settings,
            catalogs: Mutex::new(HashMap::new()),
            first_catalog: Mutex::default(),
            started_us: now_us(),
            rules,
            tls,
            next_pid: AtomicI32::new(1),
            sessions: Mutex::new(HashMap::new()),
            texts: Texts::default(),
        }))
    }

    /// The files.
    pub fn storage(&self) -> &Arc<Storage> {
        &self.storage
    }

    /// The settings that sessions start from.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// When it was opened, in microseconds since 2000.
    pub fn started_us(&self) -> i64 {
        self.started_us
    }

    /// What is remembered of statements.
    pub(crate) fn texts(&self) -> &Texts {
        &self.texts
    }

    /// Who may connect.
    pub(crate) fn host_rules(&self) -> &HostRules {
        &self.rules
    }

    /// What connections are encrypted with.
    pub(crate) fn tls(&self) -> Option<&Tls> {
        self.tls.as_ref()
    }

    /// Catalogs that have the roles, which all of them do. Which database a client names before it is known does not decide
    /// what is read.
    pub(crate) fn roles(&self) -> SqlResult<Arc<Catalog>> {
        if let Some(catalog) = self.catalogs.lock().values().next() {
            return Ok(Arc::clone(catalog));
        }
        let mut first = self.first_catalog.lock();
        if let Some(catalog) = &*first {
            return Ok(Arc::clone(catalog));
        }
        let load = |database| Catalog::load(&self.storage, database);
        let catalog = Arc::new(load("postgres").or_else(|_| load("template1"))?);
        Ok(Arc::clone(first.insert(catalog)))
    }

    /// The catalogs of a database, read on first use. Blocks while reading.
    pub fn catalog(&self, database: &str) -> SqlResult<Arc<Catalog>> {
        if let Some(catalog) = self.catalogs.lock().get(database) {
            return Ok(Arc::clone(catalog));
        }
        // What was read to know the roles goes, unless it is the one that is wanted.
        let first = self.first_catalog.lock().take();
        let first = first.filter(|first| first.database().is_some_and(|d| d.name == database));
        let catalog = match first {
            Some(catalog) => catalog,
            None => Arc::new(Catalog::load(&self.storage, database)?),
        };
        // Two sessions may have read it at once: the first one's is kept.
        let mut catalogs = self.catalogs.lock();
        Ok(Arc::clone(catalogs.entry(database.to_owned()).or_insert(catalog)))
    }

    /// A role to suggest to whoever starts the server: the bootstrap superuser.
    pub fn superuser(&self) -> Option<String> {
        let catalog = self.roles().ok()?;
        catalog.role(BOOTSTRAP_SUPERUSER).map(|r| r.name.clone())
    }

    /// A database to suggest: the first that a user has made, else `postgres`.
    pub fn first_database(&self) -> Option<String> {
        let catalog = self.roles().ok()?;
        let own = catalog.databases().filter(|d| !d.is_template && d.allow_connections && d.oid.0 >= FIRST_NORMAL_OID);
        own.min_by_key(|d| d.oid.0).map(|d| d.name.clone())
    }

    /// Fails where every place is taken.
    pub(crate) fn check_has_room(&self) -> SqlResult<()> {
        if self.sessions.lock().len() < self.limit("max_connections") { Ok(()) } else { Err(no_room()) }
    }

    fn limit(&self, setting: &str) -> usize {
        usize::try_from(self.settings.int(setting)).unwrap_or(0)
    }

    /// A process number for a new session of a role in its catalog's database, and the key that cancels it, if the limits on
    /// connections allow one more.
    pub(crate) fn register(
        &self,
        flag: &Arc<CancelFlag>,
        role: &Role,
        catalog: &Catalog,
    ) -> SqlResult<(i32, [u8; KEY_BYTES])> {
        let mut key = [0; KEY_BYTES];
        crate::scram::random(&mut key)?;
        let may_use_reserved = catalog.has_privileges_of_role(role.oid, USE_RESERVED_CONNECTIONS);
        let (database, database_limit, name) =
            catalog.database().map_or((Oid::INVALID, -1, ""), |d| (d.oid, d.connection_limit, d.name.as_str()));
        let mut sessions = self.sessions.lock();
        let left = self.limit("max_connections").checked_sub(sessions.len() + 1).ok_or_else(no_room)?;
        if !role.superuser {
            let of = |f: fn(&Registered) -> Oid, oid| sessions.values().filter(|s| f(s) == oid).count();
            if is_over(of(|s| s.role, role.oid), role.connection_limit) {
                return Err(too_many(format!("too many connections for role \"{}\"", role.name)));
            }
            let for_superusers = self.limit("superuser_reserved_connections");
            if left < for_superusers {
                let message = "remaining connection slots are reserved for roles with the SUPERUSER attribute";
                return Err(too_many(message.to_owned()));
            }
            if left < for_superusers + self.limit("reserved_connections") && !may_use_reserved {
                let message = "remaining connection slots are reserved for roles with privileges of the \
                               \"pg_use_reserved_connections\" role";
                return Err(too_many(message.to_owned()));
            }
            if is_over(of(|s| s.database, database), database_limit) {
                return Err(too_many(format!("too many connections for database \"{name}\"")));
            }
        }
        let pid = loop {
            let pid = self.next_pid.fetch_add(1, Ordering::Relaxed);
            if pid > 0 && !sessions.contains_key(&pid) {
                break pid;
            }
        };
        let flag = Arc::clone(flag);
        sessions.insert(pid, Registered { key, key_bytes: KEY_BYTES, flag, role: role.oid, database });
        Ok((pid, key))
    }

    /// Only so many bytes of a session's key have been told to its client.
    pub(crate) fn shorten_key(&self, pid: i32, key_bytes: usize) {
        if let Some(session) = self.sessions.lock().get_mut(&pid) {
            session.key_bytes = key_bytes;
        }
    }

    /// Forgets a session.
    pub(crate) fn unregister(&self, pid: i32) {
        self.sessions.lock().remove(&pid);
    }

    /// Cancels what a session is doing, if the key is right. Says nothing either way.
    pub(crate) fn cancel(&self, pid: i32, key: &[u8]) {
        if let Some(session) = self.sessions.lock().get(&pid)
            && session.key.get(..session.key_bytes).is_some_and(|own| crate::scram::is_same(own, key))
        {
            session.flag.cancel(canceled("user request"));
        }
    }

    /// Ends all sessions: a shutdown.
    pub(crate) fn cancel_all(&self) {
        for session in self.sessions.lock().values() {
            let message = "terminating connection due to administrator command";
            session.flag.cancel(SqlError::new(SqlState::AdminShutdown, message));
        }
    }
}

/// `57014`
pub(crate) fn canceled(why: &str) -> SqlError {
    SqlError::new(SqlState::QueryCanceled, format!("canceling statement due to {why}"))
}

fn too_many(message: String) -> SqlError {
    SqlError::new(SqlState::TooManyConnections, message)
}

fn no_room() -> SqlError {
    too_many("sorry, too many clients already".to_owned())
}

/// Whether one more would be more than a limit, of which a negative one is none.
fn is_over(connections: usize, limit: i32) -> bool {
    usize::try_from(limit).is_ok_and(|limit| connections + 1 > limit)
}
