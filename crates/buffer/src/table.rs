//! Which frame holds which page: a hash table in partitions, each with a lock of its own, and in front of it a table of guesses.
//!
//! ```text
//!   hash of the tag ──▸ guesses[…]: a frame ──▸ its tag is ours: pin it, look again ──▸ it is the page, or it has gone since
//!                          │ no
//!                          └──▸ partition, read lock ──▸ frame, pinned under the lock; the guess is corrected
//! ```
//!
//! A guess may be wrong at any time and is never believed: what holds is the tag of a frame that is pinned and valid. It spares
//! the hit the lock (two atomic operations that write) and the probing.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use stegodon_format::ids::{BlockNumber, Fork, RelFileLocator};

use crate::order::Partitioned;

/// The name of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageTag {
    pub(crate) locator: RelFileLocator,
    pub(crate) fork: Fork,
    pub(crate) block: BlockNumber,
}

impl Hash for PageTag {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let RelFileLocator { tablespace, database, number } = self.locator;
        state.write_u64(u64::from(number.0) << 32 | u64::from(self.block.0));
        state.write_u64(u64::from(database.0) << 32 | u64::from(tablespace.0) << 2 | self.fork as u64);
    }
}

/// Multiplies and folds. Page numbers come from a directory's files, so nobody chooses them to collide.
#[derive(Clone, Copy, Default)]
pub(crate) struct TagHasher(u64);

impl Hasher for TagHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }
}

type Build = BuildHasherDefault<TagHasher>;
pub(crate) type Map = HashMap<PageTag, u32, Build>;

/// Partitions; a power of two (PostgreSQL's `NUM_BUFFER_PARTITIONS`).
const PARTITIONS: usize = 128;

#[repr(align(64))]
#[derive(Default)]
struct Partition(RwLock<Map>);

pub(crate) struct BufferTable {
    partitions: Box<[Partition]>,
    /// A power of two, four times the frames or more: then most pages of a full pool have a place to themselves.
    guesses: Box<[AtomicU32]>,
}

/// A locked partition.
pub(crate) struct Locked<G> {
    pub(crate) map: G,
    // After the lock, so that it is dropped after it.
    _order: Partitioned,
}

impl BufferTable {
    pub(crate) fn new(frames: usize) -> Self {
        // Twice the average, so that a hit never, and a miss rarely, meets a table that must grow.
        let capacity = 2 * frames / PARTITIONS + 8;
        let partition = || Partition(RwLock::new(Map::with_capacity_and_hasher(capacity, Build::default())));
        let guesses = (4 * frames).next_power_of_two();
        Self {
            partitions: std::iter::repeat_with(partition).take(PARTITIONS).collect(),
            guesses: std::iter::repeat_with(AtomicU32::default).take(guesses).collect(),
        }
    }

    #[allow(clippy::indexing_slicing, reason = "the hash is cut to the number of guesses, a power of two")]
    fn guess_of(&self, tag: &PageTag) -> &AtomicU32 {
        &self.guesses[(Build::default().hash_one(tag) >> 8) as usize & (self.guesses.len() - 1)]
    }

    /// The frame that the page may be in.
    pub(crate) fn guess(&self, tag: &PageTag) -> u32 {
        self.guess_of(tag).load(Ordering::Relaxed)
    }

    /// Where the page was found.
    pub(crate) fn remember(&self, tag: &PageTag, frame: u32) {
        self.guess_of(tag).store(frame, Ordering::Relaxed);
    }

    #[allow(clippy::indexing_slicing, reason = "the hash is cut to the number of partitions")]
    fn partition(&self, tag: &PageTag) -> &RwLock<Map> {
        let hash = Build::default().hash_one(tag);
        // Middle bits: the map itself uses the lowest and the highest.
        &self.partitions[(hash >> 40) as usize % PARTITIONS].0
    }

    pub(crate) fn read(&self, tag: &PageTag) -> Locked<RwLockReadGuard<'_, Map>> {
        let order = Partitioned::new();
        Locked { map: self.partition(tag).read(), _order: order }
    }

    pub(crate) fn write(&self, tag: &PageTag) -> Locked<RwLockWriteGuard<'_, Map>> {
        let order = Partitioned::new();
        Locked { map: self.partition(tag).write(), _order: order }
    }
}
