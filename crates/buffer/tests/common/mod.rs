//! A directory with relations of stamped pages.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::fs;
use std::future::Future;
use std::io::Write;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use stegodon_buffer::{BufferPool, PageGuard};
use stegodon_format::ids::{DEFAULT_TABLESPACE, Fork, Oid, RelFileLocator, RelFileNumber};
use stegodon_io::{DataDirectory, IoMethod, RelationFiles};

/// A control file of PostgreSQL 18.4.
const CONTROL: &[u8] = include_bytes!("../../../format/testdata/pg_control");

pub struct Fixture {
    pub dir: tempfile::TempDir,
}

/// A valid page that carries its relation's and its own number.
pub fn stamped(relation: u32, block: u32) -> [u8; 8192] {
    let mut page = [0u8; 8192];
    page[12..14].copy_from_slice(&24u16.to_le_bytes());
    page[14..16].copy_from_slice(&8192u16.to_le_bytes());
    page[16..18].copy_from_slice(&8192u16.to_le_bytes());
    page[18..20].copy_from_slice(&0x2004u16.to_le_bytes());
    for at in [100, 4096, 8184] {
        page[at..at + 4].copy_from_slice(&relation.to_le_bytes());
        page[at + 4..at + 8].copy_from_slice(&block.to_le_bytes());
    }
    page
}

/// Relation and block that a page was stamped with, the same at three places.
pub fn stamp(page: &PageGuard<'_>) -> (u32, u32) {
    let bytes = page.bytes();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let stamps = [100, 4096, 8184].map(|at| (word(at), word(at + 4)));
    assert!(stamps.iter().all(|stamp| *stamp == stamps[0]), "a page is of one piece");
    stamps[0]
}

impl Fixture {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for sub in ["global", "base/5"] {
            fs::create_dir_all(dir.path().join(sub)).unwrap();
        }
        fs::write(dir.path().join("PG_VERSION"), "18\n").unwrap();
        fs::write(dir.path().join("global/pg_control"), CONTROL).unwrap();
        Self { dir }
    }

    pub fn path(&self, relation: u32) -> PathBuf {
        self.dir.path().join(format!("base/5/{relation}"))
    }

    /// A relation of stamped pages.
    pub fn relation(&self, relation: u32, blocks: u32) -> RelationFiles {
        let mut file = fs::File::create(self.path(relation)).unwrap();
        for block in 0..blocks {
            file.write_all(&stamped(relation, block)).unwrap();
        }
        self.open(relation)
    }

    pub fn open(&self, relation: u32) -> RelationFiles {
        let locator =
            RelFileLocator { tablespace: DEFAULT_TABLESPACE, database: Oid(5), number: RelFileNumber(relation) };
        DataDirectory::open(self.dir.path()).unwrap().relation(locator)
    }
}

pub fn pool<M: IoMethod + 'static>(frames: usize, method: M) -> Arc<BufferPool> {
    BufferPool::new(frames, Arc::new(method)).unwrap()
}

pub const MAIN: Fork = Fork::Main;

/// Polls by hand and counts wake-ups.
#[derive(Default)]
pub struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Wakes {
    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    pub fn poll<F: Future + Unpin>(self: &Arc<Self>, future: &mut F) -> Poll<F::Output> {
        let waker = Waker::from(Arc::clone(self));
        Pin::new(future).poll(&mut Context::from_waker(&waker))
    }
}
