//! Chunks that are being filled: every page's offsets at their place, so that a tuple is added by setting one bit.
//!
//! ```text
//!   directory   chunk number ─▸ slot + 1, or 0
//!   slots       256 pages × 40 bytes, and which pages say recheck
//! ```
//!
//! An index whose order is not the heap's brings tuples of the same chunk again and again; sorting them into packed chunks
//! would pack each chunk anew every time. Where a chunk has many tuples, its 10 KiB are soon less than they would take
//! waiting. Chunks are packed when the bitmap is done or when memory runs short.

use stegodon_format::ids::Tid;

use crate::chunk::{ALLOCATION_OVERHEAD_BYTES, CHUNK_BITS, ChunkPage, LossyBits};
use crate::page::OffsetSet;

/// Bytes of one open chunk.
pub(crate) const OPEN_CHUNK_BYTES: usize =
    CHUNK_BITS as usize * size_of::<OffsetSet>() + size_of::<Slot>() + ALLOCATION_OVERHEAD_BYTES;
/// So few chunks are not worth a directory.
const CHUNKS_MIN: usize = 4;

#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) number: u32,
    pages: Box<[OffsetSet; CHUNK_BITS as usize]>,
    recheck: LossyBits,
}

impl Slot {
    fn set(&mut self, block: u8, offset: u16, recheck: bool) {
        if let Some(page) = self.pages.get_mut(usize::from(block)) {
            page.set(offset);
        }
        if recheck {
            self.recheck.set(block);
        }
    }

    /// The pages that have offsets, ascending.
    pub(crate) fn pages(&self) -> impl Iterator<Item = ChunkPage> + '_ {
        let page = |(block, offsets): (usize, &OffsetSet)| {
            let block = block as u8;
            (!offsets.is_empty()).then(|| ChunkPage { block, recheck: self.recheck.contains(block), offsets: *offsets })
        };
        self.pages.iter().enumerate().filter_map(page)
    }
}

/// The open chunks of a bitmap.
#[derive(Debug, Default)]
pub(crate) struct OpenChunks {
    directory: Vec<u32>,
    slots: Vec<Slot>,
    limit_bytes: usize,
}

impl OpenChunks {
    /// None yet; they may take `limit_bytes`.
    pub(crate) fn new(limit_bytes: usize) -> Self {
        let limit_bytes = if limit_bytes < CHUNKS_MIN * OPEN_CHUNK_BYTES { 0 } else { limit_bytes };
        Self { directory: Vec::new(), slots: Vec::new(), limit_bytes }
    }

    /// Adds a tuple if its chunk is open.
    pub(crate) fn add(&mut self, tid: Tid, recheck: bool) -> bool {
        let Some(slot) = self.directory.get((tid.block.0 / CHUNK_BITS) as usize) else { return false };
        let Some(slot) = (*slot as usize).checked_sub(1).and_then(|slot| self.slots.get_mut(slot)) else {
            return false;
        };
        slot.set(tid.block.0 as u8, tid.offset.0, recheck);
        true
    }

    /// Opens a chunk with these pages. False if there is no room.
    pub(crate) fn open(&mut self, number: u32, pages: impl Iterator<Item = ChunkPage>) -> bool {
        let entries = (number as usize + 1).max(self.directory.len());
        // An eighth for the directory: a chunk far behind would make it large.
        let fits = entries * size_of::<u32>() <= self.limit_bytes / 8;
        if !fits || self.chunk_bytes() + OPEN_CHUNK_BYTES > self.limit_bytes / 8 * 7 {
            return false;
        }
        if self.directory.len() < entries {
            self.directory.reserve_exact(entries - self.directory.len());
            self.directory.resize(entries, 0);
        }
        let mut slot =
            Slot { number, pages: Box::new([OffsetSet::EMPTY; CHUNK_BITS as usize]), recheck: LossyBits::default() };
        for page in pages {
            if let Some(place) = slot.pages.get_mut(usize::from(page.block)) {
                *place = page.offsets;
            }
            if page.recheck {
                slot.recheck.set(page.block);
            }
        }
        self.slots.push(slot);
        if let Some(entry) = self.directory.get_mut(number as usize) {
            *entry = self.slots.len() as u32;
        }
        true
    }

    /// Takes them all, ascending. None is opened any more if memory ran short.
    pub(crate) fn close(&mut self, short: bool) -> Vec<Slot> {
        self.directory = Vec::new();
        if short {
            self.limit_bytes = 0;
        }
        let mut slots = std::mem::take(&mut self.slots);
        slots.sort_unstable_by_key(|slot| slot.number);
        slots
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    fn chunk_bytes(&self) -> usize {
        self.slots.len() * OPEN_CHUNK_BYTES
    }

    /// Bytes in use.
    pub(crate) fn bytes(&self) -> usize {
        // The vector of slots grows by doubling.
        self.chunk_bytes()
            + (self.slots.capacity() - self.slots.len()) * size_of::<Slot>()
            + self.directory.capacity() * size_of::<u32>()
    }
}
