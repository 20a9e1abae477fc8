//! The data directory: where things lie in it, and opening them without writing.
//!
//! ```text
//!   PG_VERSION              "18"
//!   global/                 shared relations, pg_control
//!   base/DATABASE/          pg_default's relations
//!   pg_tblspc/OID ──▸       another tablespace: PG_18_CATALOGVERSION/DATABASE/
//!
//!   in each:  NUMBER        main fork, first segment (131072 blocks = 1 GiB unless pg_control says otherwise)
//!             NUMBER.1 …    later segments
//!             NUMBER_fsm, NUMBER_vm, NUMBER_init, each with its .1 …
//! ```
//!
//! Everything is opened read-only: no lock file, no access-time tricks, nothing created. Whether the directory *may* be
//! read (cleanly shut down, no postmaster) is decided above, from what [`DataDirectory::read_file`] returns.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stegodon_format::ids::{DEFAULT_TABLESPACE, GLOBAL_TABLESPACE, Oid, RelFileLocator};

use crate::error::{Errno, Error, Result};
use crate::file_cache::FileCache;
use crate::relation::RelationFiles;

/// The largest file that [`DataDirectory::read_file`] reads whole, in bytes.
pub const SMALL_FILE_BYTES_MAX: u64 = 64 << 20;

/// The number of blocks in a segment unless `pg_control` says otherwise: 1 GiB.
pub const SEGMENT_BLOCKS_DEFAULT: u32 = 131_072;

/// How to open a data directory.
#[derive(Clone, Copy, Debug)]
pub struct OpenOptions {
    /// How many relation files may stay open (`max_files_per_process`).
    pub open_files_max: usize,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { open_files_max: 1000 }
    }
}

/// A PostgreSQL data directory, opened read-only.
pub struct DataDirectory {
    path: PathBuf,
    /// `PG_18_202506291`: what a tablespace calls this cluster's part of it.
    tablespace_version: String,
    major_version: u32,
    segment_blocks: u32,
    pub(crate) files: FileCache,
}

impl std::fmt::Debug for DataDirectory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DataDirectory").field("path", &self.path).finish_non_exhaustive()
    }
}

impl DataDirectory {
    /// Opens the directory at `path`.
    pub fn open(path: impl AsRef<Path>) -> Result<Arc<Self>> {
        Self::open_with(path, OpenOptions::default())
    }

    /// Opens the directory at `path` with options.
    pub fn open_with(path: impl AsRef<Path>, options: OpenOptions) -> Result<Arc<Self>> {
        let path = path.as_ref().to_path_buf();
        let invalid = |why: String| Error::NotADataDirectory { path: path.display().to_string(), why };
        let read = |name: &str| {
            read_small(&path.join(name))
                .map_err(|error| invalid(format!("could not read file \"{name}\": {}", Errno::from(&error))))
        };
        let version = String::from_utf8_lossy(&read("PG_VERSION")?).trim().to_owned();
        let major_version: u32 =
            version.parse().map_err(|_| invalid(format!("\"PG_VERSION\" says {version:?}, not a version")))?;
        let control = read("global/pg_control")?;
        let (catalog_version, segment_blocks) =
            geometry(&control).ok_or_else(|| invalid("\"global/pg_control\" is too short".to_owned()))?;
        let tablespace_version = format!("PG_{version}_{catalog_version}");
        let files = FileCache::new(options.open_files_max);
        Ok(Arc::new(Self { path, tablespace_version, major_version, segment_blocks, files }))
    }

    /// The directory's own path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What `PG_VERSION` says.
    pub fn major_version(&self) -> u32 {
        self.major_version
    }

    /// The number of blocks in a full segment.
    pub fn segment_blocks(&self) -> u32 {
        self.segment_blocks
    }

    /// How many relation files are held open now.
    pub fn open_files(&self) -> usize {
        self.files.len()
    }

    /// Reads a small file whole; `name` is relative to the directory: `global/pg_control`, `pg_xact/0000`.
    pub fn read_file(&self, name: &str) -> Result<Vec<u8>> {
        let path = self.path.join(name);
        let mut file =
            File::open(&path).map_err(|error| Error::Open { path: name.to_owned(), errno: Errno::from(&error) })?;
        read_whole(&mut file).map_err(|error| Error::ReadFile { path: name.to_owned(), errno: Errno::from(&error) })
    }

    /// Like [`DataDirectory::read_file`]; `None` where there is no such file.
    pub fn read_file_if_exists(&self, name: &str) -> Result<Option<Vec<u8>>> {
        match self.read_file(name) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The files of one relation. Opens nothing yet.
    pub fn relation(self: &Arc<Self>, locator: RelFileLocator) -> RelationFiles {
        RelationFiles::new(Arc::clone(self), locator)
    }

    /// The directory, relative to this one, that holds a database's relations in a tablespace.
    pub fn database_path(&self, tablespace: Oid, database: Oid) -> String {
        match tablespace {
            GLOBAL_TABLESPACE => "global".to_owned(),
            DEFAULT_TABLESPACE => format!("base/{database}"),
            other => format!("pg_tblspc/{other}/{}/{database}", self.tablespace_version),
        }
    }

    /// Where a relation's main fork begins, relative to the directory: what PostgreSQL's messages and
    /// `pg_relation_filepath` print.
    pub fn relation_path(&self, locator: RelFileLocator) -> String {
        format!("{}/{}", self.database_path(locator.tablespace, locator.database), locator.number)
    }
}

fn read_small(path: &Path) -> std::io::Result<Vec<u8>> {
    read_whole(&mut File::open(path)?)
}

fn read_whole(file: &mut File) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = file.take(SMALL_FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if read as u64 > SMALL_FILE_BYTES_MAX {
        return Err(std::io::Error::from_raw_os_error(libc::EFBIG));
    }
    Ok(bytes)
}

/// Catalog version and segment size from `pg_control`'s bytes. The catalog version's place is the same in every version;
/// the rest of the file is judged by whoever decides whether the directory may be read.
fn geometry(control: &[u8]) -> Option<(u32, u32)> {
    let word = |at: usize| control.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    Some((word(12)?, SEGMENT_BLOCKS_DEFAULT))
}
