//! A directory with just enough in it to be opened.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use stegodon_format::ids::{DEFAULT_TABLESPACE, Oid, RelFileLocator, RelFileNumber};
use stegodon_io::{DataDirectory, OpenOptions};

pub const SEGMENT_BYTES: u64 = 1 << 30;

/// A control file of PostgreSQL 18.4.
const CONTROL: &[u8] = include_bytes!("../../../format/testdata/pg_control");

pub struct Fixture {
    pub dir: tempfile::TempDir,
}

pub fn locator(number: u32) -> RelFileLocator {
    RelFileLocator { tablespace: DEFAULT_TABLESPACE, database: Oid(5), number: RelFileNumber(number) }
}

impl Fixture {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for sub in ["global", "base/5", "pg_tblspc"] {
            fs::create_dir_all(at(sub)).unwrap();
        }
        fs::write(at("PG_VERSION"), "18\n").unwrap();
        fs::write(at("global/pg_control"), CONTROL).unwrap();
        Self { dir }
    }

    pub fn open(&self) -> Arc<DataDirectory> {
        DataDirectory::open(self.dir.path()).unwrap()
    }

    pub fn open_with(&self, open_files_max: usize) -> Arc<DataDirectory> {
        DataDirectory::open_with(self.dir.path(), OpenOptions { open_files_max }).unwrap()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A file of `len` bytes, sparse, with `blocks` written as their own number in every byte.
    pub fn file(&self, name: &str, len: u64, blocks: &[u64]) {
        let file = fs::File::create(self.path(name)).unwrap();
        for &block in blocks {
            file.write_all_at(&[block as u8; 8192], block * 8192).unwrap();
        }
        file.set_len(len).unwrap();
    }
}
