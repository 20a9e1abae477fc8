//! A bounded cache of open file descriptors.
//!
//! The cache hands out `Arc<File>`s. Evicting an entry drops the cache's own reference only: a read in flight keeps its
//! file open, so the number of open files may pass the limit by the number of reads in flight. It is asked only when
//! storage is, so one mutex serves all.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use stegodon_format::ids::{Fork, RelFileLocator};

/// One segment of one fork of one relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SegmentKey {
    pub(crate) locator: RelFileLocator,
    pub(crate) fork: Fork,
    pub(crate) segment: u32,
}

struct Entry {
    file: Arc<File>,
    /// Set on use, cleared by the hand that looks for a victim: the clock algorithm.
    used: bool,
}

#[derive(Default)]
struct Inner {
    entries: HashMap<SegmentKey, Entry>,
    /// Every key of `entries` once, in the order in which the hand visits them.
    clock: VecDeque<SegmentKey>,
}

impl Inner {
    fn evict_one(&mut self) -> Option<Arc<File>> {
        // Two rounds suffice: the first clears every mark.
        for _ in 0..=2 * self.clock.len() {
            let key = self.clock.pop_front()?;
            match self.entries.get_mut(&key) {
                Some(entry) if entry.used => {
                    entry.used = false;
                    self.clock.push_back(key);
                }
                Some(_) => return self.entries.remove(&key).map(|entry| entry.file),
                None => {}
            }
        }
        None
    }
}

pub(crate) struct FileCache {
    limit: usize,
    inner: Mutex<Inner>,
}

impl FileCache {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit: limit.max(1), inner: Mutex::default() }
    }

    /// The open file of `key`, opened by `open` where it is not in the cache.
    pub(crate) fn get(&self, key: SegmentKey, open: impl Fn() -> io::Result<File>) -> io::Result<Arc<File>> {
        if let Some(entry) = self.inner.lock().entries.get_mut(&key) {
            entry.used = true;
            return Ok(Arc::clone(&entry.file));
        }
        // Opened without the lock. Two threads may open the same file; the second one's is dropped.
        let file = loop {
            match open() {
                Ok(file) => break Arc::new(file),
                Err(error)
                    if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
                        && self.inner.lock().evict_one().is_some() => {}
                Err(error) => return Err(error),
            }
        };
        let mut evicted = None;
        let mut inner = self.inner.lock();
        let inner_ref = &mut *inner;
        if let Some(entry) = inner_ref.entries.get_mut(&key) {
            entry.used = true;
            return Ok(Arc::clone(&entry.file));
        }
        if inner_ref.entries.len() >= self.limit {
            evicted = inner_ref.evict_one();
        }
        inner_ref.entries.insert(key, Entry { file: Arc::clone(&file), used: true });
        inner_ref.clock.push_back(key);
        debug_assert!(inner_ref.entries.len() <= self.limit, "the cache of open files keeps its limit");
        drop(inner);
        drop(evicted); // closes outside of the lock
        Ok(file)
    }

    /// Forgets every file of a relation.
    pub(crate) fn forget(&self, locator: RelFileLocator) {
        let mut inner = self.inner.lock();
        inner.entries.retain(|key, _| key.locator != locator);
        inner.clock.retain(|key| key.locator != locator);
    }

    /// How many files the cache holds open.
    pub(crate) fn len(&self) -> usize {
        self.inner.lock().entries.len()
    }
}
