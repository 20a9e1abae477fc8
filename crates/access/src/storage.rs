//! An opened cluster.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime};

use stegodon_buffer::{BufferPool, PoolOptions};
use stegodon_format::ids::{GLOBAL_TABLESPACE, Oid, RelFileLocator, RelFileNumber};
use stegodon_format::relmap::RelationMap;
use stegodon_format::version::Version;
use stegodon_io::{DataDirectory, IoMethod, RelationFiles, SyncMethod, WorkerMethod};
use stegodon_txn::{Snapshot, Transactions, VisibilityChecker};
use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::refusal;

/// `io_method`, as far as there are methods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IoMethodKind {
    /// The thread that needs a page reads it.
    Sync,
    /// Threads of their own read.
    #[default]
    Worker,
}

/// How a cluster is opened.
#[derive(Clone, Copy, Debug)]
pub struct StorageOptions {
    /// `shared_buffers`, in 8 KiB frames.
    pub shared_buffers_blocks: usize,
    /// `io_method`.
    pub io_method: IoMethodKind,
    /// `io_workers`.
    pub io_workers: usize,
}

impl Default for StorageOptions {
    fn default() -> Self {
        Self { shared_buffers_blocks: 16384, io_method: IoMethodKind::default(), io_workers: 3 }
    }
}

/// A cluster at rest, opened for reading: nothing in its directory is ever written (DESIGN D7).
pub struct Storage {
    directory: Arc<DataDirectory>,
    pool: Arc<BufferPool>,
    transactions: Arc<Transactions>,
    snapshot: Arc<Snapshot>,
    shared_map: RelationMap,
    control_modified: Option<SystemTime>,
    opened: Instant,
    /// When it was last seen at rest, in microseconds since it was opened.
    seen_at_rest_us: AtomicU64,
}

impl std::fmt::Debug for Storage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Storage").field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl Storage {
    /// Opens a directory, or refuses it with a message that says what to do.
    pub fn open(path: impl AsRef<Path>, options: &StorageOptions) -> SqlResult<Arc<Self>> {
        let directory = DataDirectory::open(path)?;
        refusal::check(directory.path(), directory.control())?;
        let method: Arc<dyn IoMethod> = match options.io_method {
            IoMethodKind::Sync => Arc::new(SyncMethod),
            IoMethodKind::Worker => Arc::new(WorkerMethod::new(options.io_workers).map_err(|e| {
                SqlError::new(SqlState::InsufficientResources, format!("could not start an I/O worker: {e}"))
            })?),
        };
        let verify_checksums = directory.control().data_checksum_version != 0;
        let frames = options.shared_buffers_blocks;
        let pool = BufferPool::with_options(PoolOptions { frames, verify_checksums }, method)?;
        let transactions = Arc::new(Transactions::open(&directory, directory.control())?);
        let snapshot = Arc::new(transactions.snapshot());
        let shared_map = relation_map(&directory, "global")?;
        let control_modified = control_modified(&directory);
        let (opened, seen_at_rest_us) = (Instant::now(), AtomicU64::new(0));
        Ok(Arc::new(Self {
            directory,
            pool,
            transactions,
            snapshot,
            shared_map,
            control_modified,
            opened,
            seen_at_rest_us,
        }))
    }

    /// The files.
    pub fn directory(&self) -> &Arc<DataDirectory> {
        &self.directory
    }

    /// The buffer pool.
    pub fn pool(&self) -> &Arc<BufferPool> {
        &self.pool
    }

    /// Who committed.
    pub fn transactions(&self) -> &Arc<Transactions> {
        &self.transactions
    }

    /// What a query sees: in a cluster at rest always the same.
    pub fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    /// The snapshot's answers for one scan.
    pub fn visibility(&self) -> VisibilityChecker {
        VisibilityChecker::new(Arc::clone(&self.transactions), Arc::clone(&self.snapshot))
    }

    /// The files of a relation.
    pub fn relation(&self, locator: RelFileLocator) -> RelationFiles {
        self.directory.relation(locator)
    }

    /// The file number of a mapped shared catalog.
    pub fn shared_mapped_file(&self, relation: Oid) -> Option<RelFileNumber> {
        self.shared_map.get(relation)
    }

    /// The locator of a mapped shared catalog.
    pub fn shared_catalog(&self, relation: Oid) -> Option<RelFileLocator> {
        let number = self.shared_mapped_file(relation)?;
        Some(RelFileLocator { tablespace: GLOBAL_TABLESPACE, database: Oid::INVALID, number })
    }

    /// The relation map of a database, whose directory must be of the cluster's version.
    pub fn database_map(&self, tablespace: Oid, database: Oid) -> SqlResult<RelationMap> {
        let within = self.directory.database_path(tablespace, database);
        check_version(&self.directory, &within)?;
        relation_map(&self.directory, &within)
    }

    /// Fails with 57P01 once a postmaster has been started on the directory: its pages may change under us.
    pub fn check_at_rest(&self) -> SqlResult<()> {
        // A postmaster takes longer to start than this, and the files' times are no finer.
        const FRESH_US: u64 = 1000;
        let now_us = self.opened.elapsed().as_micros() as u64;
        if now_us.saturating_sub(self.seen_at_rest_us.load(Ordering::Relaxed)) < FRESH_US {
            return Ok(());
        }
        let unchanged = !refusal::postmaster_is_there(self.directory.path())
            && control_modified(&self.directory) == self.control_modified;
        if unchanged {
            self.seen_at_rest_us.store(now_us, Ordering::Relaxed);
            return Ok(());
        }
        let message = "terminating connection: a PostgreSQL server was started on this data directory";
        Err(SqlError::new(SqlState::AdminShutdown, message).hint("Stop it with pg_ctl stop and start Stegodon again."))
    }
}

fn control_modified(directory: &DataDirectory) -> Option<SystemTime> {
    std::fs::metadata(directory.path().join("global/pg_control")).and_then(|m| m.modified()).ok()
}

fn relation_map(directory: &DataDirectory, within: &str) -> SqlResult<RelationMap> {
    let name = format!("{within}/pg_filenode.map");
    let content = directory.read_file(&name)?;
    let wanted = directory.version().relation_map_size();
    if content.len() < wanted {
        let message = format!("could not read file \"{name}\": read {} of {wanted}", content.len());
        return Err(SqlError::new(SqlState::DataCorrupted, message));
    }
    RelationMap::parse(&content, directory.version()).map_err(|error| {
        let what = match error {
            stegodon_format::Error::ChecksumMismatch { .. } => "incorrect checksum",
            _ => "invalid data",
        };
        // PostgreSQL gives it no SQLSTATE of its own.
        SqlError::new(SqlState::InternalError, format!("relation mapping file \"{name}\" contains {what}"))
            .detail(error.to_string())
    })
}

/// That a database's directory says that it is of the cluster's version.
fn check_version(directory: &DataDirectory, within: &str) -> SqlResult<()> {
    let name = format!("{within}/PG_VERSION");
    let invalid = |detail: String| {
        let message = format!("\"{within}\" is not a valid data directory");
        Err(SqlError::new(SqlState::InvalidParameterValue, message).detail(detail))
    };
    let Some(content) = directory.read_file_if_exists(&name)? else {
        return invalid(format!("File \"{name}\" is missing."));
    };
    match Version::from_pg_version(&content) {
        Ok(version) if version == directory.version() => Ok(()),
        Err(_) if !content.trim_ascii_start().first().is_some_and(u8::is_ascii_digit) => {
            invalid(format!("File \"{name}\" does not contain valid data."))
        }
        _ => Err(SqlError::new(SqlState::InvalidParameterValue, "database files are incompatible with server")
            .detail(format!("\"{name}\" is not of version {}, which the cluster is of.", directory.version().major()))),
    }
}
