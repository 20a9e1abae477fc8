//! An opened cluster with its catalogs and base settings: what all sessions share.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use stegodon_access::{IoMethodKind, Storage, StorageOptions};
use stegodon_catalog::Catalog;
use stegodon_catalog::settings::{Settings, Source};
use stegodon_exec::CancelFlag;
use stegodon_format::ids::Oid;
use stegodon_types::{SqlError, SqlResult, SqlState};

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

/// What a connection that wants to cancel another must know.
struct Cancellable {
    secret: i32,
    flag: Arc<CancelFlag>,
}

/// An opened cluster.
pub struct Cluster {
    storage: Arc<Storage>,
    settings: Settings,
    /// Catalogs by database, loaded when first asked for.
    catalogs: Mutex<HashMap<String, Arc<Catalog>>>,
    started_us: i64,
    /// What the salts of users without a password are made from.
    secret: String,
    next_pid: AtomicI32,
    sessions: Mutex<HashMap<i32, Cancellable>>,
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
        Ok(Arc::new(Self {
            storage,
            settings,
            catalogs: Mutex::new(HashMap::new()),
            started_us: now_us(),
            secret: crate::scram::random_text()?,
            next_pid: AtomicI32::new(1),
            sessions: Mutex::new(HashMap::new()),
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

    pub(crate) fn secret(&self) -> &[u8] {
        self.secret.as_bytes()
    }

    /// The catalogs of a database, read on first use. Blocks while reading.
    pub fn catalog(&self, database: &str) -> SqlResult<Arc<Catalog>> {
        if let Some(catalog) = self.catalogs.lock().get(database) {
            return Ok(Arc::clone(catalog));
        }
        let catalog = Arc::new(Catalog::load(&self.storage, database)?);
        // Two sessions may have read it at once: the first one's is kept.
        let mut catalogs = self.catalogs.lock();
        Ok(Arc::clone(catalogs.entry(database.to_owned()).or_insert(catalog)))
    }

    /// A role to suggest to whoever starts the server: the bootstrap superuser.
    pub fn superuser(&self) -> Option<String> {
        let catalog = self.catalog("postgres").or_else(|_| self.catalog("template1")).ok()?;
        catalog.role(BOOTSTRAP_SUPERUSER).map(|r| r.name.clone())
    }

    /// A database to suggest: the first that a user has made, else `postgres`.
    pub fn first_database(&self) -> Option<String> {
        let catalog = self.catalog("postgres").or_else(|_| self.catalog("template1")).ok()?;
        let own = catalog.databases().filter(|d| !d.is_template && d.allow_connections && d.oid.0 >= FIRST_NORMAL_OID);
        own.min_by_key(|d| d.oid.0).map(|d| d.name.clone())
    }

    /// A process number for a new session, and the key that cancels it.
    pub(crate) fn register(&self, flag: &Arc<CancelFlag>) -> (i32, i32) {
        let pid = self.next_pid.fetch_add(1, Ordering::Relaxed);
        let secret = random();
        self.sessions.lock().insert(pid, Cancellable { secret, flag: Arc::clone(flag) });
        (pid, secret)
    }

    /// Forgets a session.
    pub(crate) fn unregister(&self, pid: i32) {
        self.sessions.lock().remove(&pid);
    }

    /// How many sessions there are.
    pub(crate) fn session_count(&self) -> usize {
        self.sessions.lock().len()
    }

    /// Cancels what a session is doing, if the key is right. Says nothing either way.
    pub(crate) fn cancel(&self, pid: i32, secret: i32) {
        if let Some(session) = self.sessions.lock().get(&pid)
            && session.secret == secret
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

/// A number that cannot be guessed.
fn random() -> i32 {
    let mut bytes = [0; 4];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut f| std::io::Read::read_exact(&mut f, &mut bytes));
    match read {
        Ok(()) => i32::from_le_bytes(bytes),
        // Without the system's generator, the hasher's keys are the next best that std has.
        Err(_) => std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), now_us()) as i32,
    }
}
