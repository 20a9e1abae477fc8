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

use stegodon_format::control::ControlFile;
use stegodon_format::ids::{Fork, Oid, RelFileLocator};
use stegodon_format::paths::{CONTROL_FILE, VERSION_FILE, database_directory, relation_file};
use stegodon_format::version::Version;

use crate::error::{Errno, Error, Result};
use crate::file_cache::FileCache;
use crate::relation::RelationFiles;

/// The largest file that [`DataDirectory::read_file`] reads whole, in bytes.
pub const SMALL_FILE_BYTES_MAX: u64 = 64 << 20;

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
    version: Version,
    control: ControlFile,
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
        let version = Version::from_pg_version(&read(VERSION_FILE)?).map_err(|error| invalid(error.to_string()))?;
        let control = ControlFile::parse(&read(CONTROL_FILE)?)
            .map_err(|error| invalid(format!("\"{CONTROL_FILE}\": {error}")))?;
        if control.version != version {
            let why =
                format!("\"{VERSION_FILE}\" says {}, \"{CONTROL_FILE}\" {}", version.major(), control.version.major());
            return Err(invalid(why));
        }
        let files = FileCache::new(options.open_files_max);
        Ok(Arc::new(Self { path, version, control, files }))
    }

    /// The directory's own path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The version of PostgreSQL whose layout the directory has.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The control file as it was when the directory was opened.
    pub fn control(&self) -> &ControlFile {
        &self.control
    }

    /// The number of blocks in a full segment.
    pub fn segment_blocks(&self) -> u32 {
        self.control.segment_blocks
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
        database_directory(self.version, tablespace, database)
    }

    /// One file of a relation, relative to the directory; segment 0 of the main fork is what PostgreSQL's messages and
    /// `pg_relation_filepath` print.
    pub fn relation_path(&self, locator: RelFileLocator, fork: Fork, segment: u32) -> String {
        relation_file(self.version, locator, fork, segment)
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
