//! Building a bitmap within its memory.

use stegodon_format::ids::{BlockNumber, Tid};

use crate::chunk::{ALLOCATION_OVERHEAD_BYTES, CHUNK_BITS, CHUNK_BYTES_MAX, Chunk, ChunkPage, ChunkWriter, LossyBits};
use crate::error::{Error, Result};
use crate::frozen::FrozenBitmap;
use crate::open::OpenChunks;
use crate::page::{MAX_TUPLES_PER_PAGE, OffsetSet};

/// The least memory that a bitmap works with, whatever it is given.
pub const MIN_BUDGET_BYTES: usize = 48 * 1024;

const PENDING_BYTES: usize = size_of::<u64>();
const PENDING_MAX: usize = 64 * 1024;
/// The first tuples wait only until so many show which chunks are dense.
const PENDING_FIRST: usize = 8 * 1024;
/// A chunk that so many of the waiting tuples belong to is opened.
const DENSE_TUPLES: usize = 16;
const CHUNK_SHIFT: u32 = CHUNK_BITS.trailing_zeros();

/// A set of TIDs that fits into its budget, at the price of exactness where need be.
///
/// ```text
///   add_tids ─▸ its chunk is open: a bit is set ([`crate::open`])
///      └▸ pending: block·offset·recheck, u64 each, unsorted
///                  │ full: sort, remove duplicates; chunks that many belong to are opened, the others' merged
///                  ▼
///   chunks, ascending:   ┌──────────┬──────────┬──────────┬──
///                        │ 0: exact │ 3: both  │ 4: lossy │ …
///                        └──────────┴──────────┴──────────┴──
///                  │ over budget: the densest chunks become lossy (their pages are read almost whole anyway)
///                  │ still over: a lossy bit stands for 2, 4, 8 … blocks
///                  ▼
///   freeze ─▸ FrozenBitmap: iterate in block order, divide among workers
/// ```
///
/// Every TID added is in the result: exactly, or as part of a lossy page. What was not added can come out only on a
/// lossy page or on a page that says recheck.
#[derive(Debug)]
pub struct TidBitmap {
    pub(crate) chunks: Vec<Chunk>,
    open: OpenChunks,
    pending: Vec<u64>,
    pending_max: usize,
    /// A lossy bit stands for `1 << shift` blocks; where that is more than one, nothing is exact.
    pub(crate) shift: u32,
    /// What chunks may take.
    limit_bytes: usize,
    /// What the chunks' data take.
    data_bytes: usize,
    pub(crate) writer: ChunkWriter,
}

/// A tuple as it waits: sorted, it is in order of block and offset.
const fn pack(tid: Tid, recheck: bool) -> u64 {
    (tid.block.0 as u64) << 16 | (tid.offset.0 as u64) << 1 | recheck as u64
}

/// The chunk of a waiting tuple, where bits are not coarse.
const fn chunk_of(packed: &u64) -> u32 {
    (*packed >> (16 + CHUNK_SHIFT)) as u32
}

/// The pages of waiting tuples, which must be sorted and of one chunk.
struct PendingPages<'a>(&'a [u64]);

impl Iterator for PendingPages<'_> {
    type Item = ChunkPage;

    fn next(&mut self) -> Option<ChunkPage> {
        let block = self.0.first()? >> 16;
        let mut page = ChunkPage { block: block as u8, recheck: false, offsets: OffsetSet::EMPTY };
        while let Some((&packed, rest)) = self.0.split_first()
            && packed >> 16 == block
        {
            page.recheck |= packed & 1 == 1;
            page.offsets.set((packed as u16) >> 1);
            self.0 = rest;
        }
        Some(page)
    }
}

impl TidBitmap {
    /// An empty bitmap that stays within `budget_bytes` (`work_mem`), or [`MIN_BUDGET_BYTES`] if that is more.
    pub fn new(budget_bytes: usize) -> Self {
        let budget_bytes = budget_bytes.max(MIN_BUDGET_BYTES);
        let pending_max = (budget_bytes / 4 / PENDING_BYTES).min(PENDING_MAX);
        // What is put together before it is stored needs room, too.
        let reserved = pending_max * PENDING_BYTES + CHUNK_BYTES_MAX * 2;
        let limit_bytes = budget_bytes.saturating_sub(reserved);
        Self {
            chunks: Vec::new(),
            open: OpenChunks::new(limit_bytes / 4 * 3),
            pending: Vec::new(),
            pending_max,
            shift: 0,
            limit_bytes,
            data_bytes: 0,
            writer: ChunkWriter::default(),
        }
    }

    /// Empties the bitmap but keeps its buffers.
    pub fn clear(&mut self) {
        self.chunks.clear();
        self.open = OpenChunks::new(self.limit_bytes / 4 * 3);
        self.pending.clear();
        self.shift = 0;
        self.data_bytes = 0;
    }

    /// Adds tuples, in any order. `recheck` says that the condition must be checked on each of them again. An error, as
    /// in PostgreSQL, if an offset is beyond what a heap page can hold.
    pub fn add_tids(&mut self, tids: impl IntoIterator<Item = Tid>, recheck: bool) -> Result<()> {
        for tid in tids {
            if tid.offset.0 == 0 || tid.offset.0 > MAX_TUPLES_PER_PAGE {
                return Err(Error::OffsetOutOfRange(tid.offset));
            }
            if !tid.block.is_valid() {
                return Err(Error::BlockOutOfRange(tid.block));
            }
            // Before the question whether its chunk is open: this may open it.
            if self.pending.len() >= self.pending_limit() {
                self.flush();
            }
            if self.open.add(tid, recheck) {
                continue;
            }
            if self.pending.len() == self.pending.capacity() {
                let grown = (2 * self.pending.len()).max(64).min(self.pending_max);
                self.pending.reserve_exact(grown - self.pending.len());
            }
            self.pending.push(pack(tid, recheck));
        }
        Ok(())
    }

    /// Adds a whole page, lossily.
    pub fn add_page(&mut self, block: BlockNumber) -> Result<()> {
        if !block.is_valid() {
            return Err(Error::BlockOutOfRange(block));
        }
        self.settle();
        self.add_lossy(block.0);
        self.make_room(0);
        Ok(())
    }

    /// The bytes in use; never more than the budget.
    pub fn memory_bytes(&self) -> usize {
        self.pending.capacity() * PENDING_BYTES + CHUNK_BYTES_MAX + self.chunk_memory_bytes()
    }

    fn chunk_memory_bytes(&self) -> usize {
        self.chunks.capacity() * size_of::<Chunk>() + ALLOCATION_OVERHEAD_BYTES + self.data_bytes + self.open.bytes()
    }

    /// Ends building: sorts in what waits.
    pub fn freeze(mut self) -> FrozenBitmap {
        self.settle();
        FrozenBitmap::new(self.chunks, self.shift)
    }

    fn pending_limit(&self) -> usize {
        let first = self.chunks.is_empty() && self.open.is_empty();
        if first { self.pending_max.min(PENDING_FIRST) } else { self.pending_max }
    }

    /// Merges all that was added into the chunks.
    pub(crate) fn settle(&mut self) {
        self.flush();
        self.pack(false);
    }

    /// Packs the open chunks.
    fn pack(&mut self, short: bool) {
        let slots = self.open.close(short);
        self.chunks.reserve_exact(slots.len());
        for slot in slots {
            let mut chunk = Chunk::empty(slot.number);
            self.writer.begin(LossyBits::default());
            slot.pages().for_each(|page| self.writer.push(&page));
            self.writer.store(&mut chunk);
            self.data_bytes += chunk.bytes();
            self.chunks.push(chunk);
        }
        self.chunks.sort_unstable_by_key(|chunk| chunk.number);
        debug_assert!(self.chunks.is_sorted_by(|a, b| a.number < b.number), "a chunk is open or packed, never both");
    }

    /// Opens the chunks that many sorted tuples belong to, and removes those.
    fn open_dense(&mut self, pending: &mut Vec<u64>) {
        let mut from = 0;
        let mut kept = 0;
        while let Some(group) = pending.get(from..).filter(|rest| !rest.is_empty()) {
            let number = group.first().map_or(0, chunk_of);
            let len = group.partition_point(|packed| chunk_of(packed) == number);
            let group = group.get(..len).unwrap_or(&[]);
            let packed = self.chunks.binary_search_by_key(&number, |chunk| chunk.number).is_ok();
            if len < DENSE_TUPLES || packed || !self.open.open(number, PendingPages(group)) {
                pending.copy_within(from..from + len, kept);
                kept += len;
            }
            from += len;
        }
        pending.truncate(kept);
    }

    /// Merges the waiting tuples into the chunks.
    fn flush(&mut self) {
        let mut pending = std::mem::take(&mut self.pending);
        pending.sort_unstable();
        pending.dedup();
        if self.shift == 0 {
            self.open_dense(&mut pending);
            self.make_room(0);
        }
        let mut rest = &pending[..];
        if self.shift == 0 && !rest.is_empty() {
            rest = self.flush_exact(rest);
        }
        for packed in rest {
            self.add_lossy((packed >> 16) as u32);
            self.make_room(0);
        }
        pending.clear();
        self.pending = pending;
    }

    /// Merges sorted tuples as long as anything can be exact; returns what is left.
    fn flush_exact<'a>(&mut self, mut rest: &'a [u64]) -> &'a [u64] {
        // Make the chunks that are missing, so that one pass can fill them all.
        let mut missing = 0;
        let mut at = 0;
        for group in rest.chunk_by(|a, b| chunk_of(a) == chunk_of(b)) {
            let number = group.first().map_or(0, chunk_of);
            at += self.chunks.get(at..).unwrap_or(&[]).partition_point(|chunk| chunk.number < number);
            missing += usize::from(self.chunks.get(at).is_none_or(|chunk| chunk.number != number));
        }
        self.reserve(missing);
        if self.shift > 0 {
            return rest;
        }
        let known = self.chunks.len();
        at = 0;
        for group in rest.chunk_by(|a, b| chunk_of(a) == chunk_of(b)) {
            let number = group.first().map_or(0, chunk_of);
            at += self.chunks.get(at..known).unwrap_or(&[]).partition_point(|chunk| chunk.number < number);
            if at >= known || self.chunks.get(at).is_none_or(|chunk| chunk.number != number) {
                self.chunks.push(Chunk::empty(number));
            }
        }
        self.chunks.sort_unstable_by_key(|chunk| chunk.number);

        at = 0;
        while let Some(number) = rest.first().map(chunk_of) {
            let len = rest.partition_point(|packed| chunk_of(packed) == number);
            let (group, behind) = rest.split_at(len);
            at += self.chunks.get(at..).unwrap_or(&[]).partition_point(|chunk| chunk.number < number);
            let Some(chunk) = self.chunks.get_mut(at) else { break };
            let before = chunk.bytes();
            self.writer.begin(chunk.lossy_bits());
            self.writer.push_union(chunk.pages(), PendingPages(group));
            self.writer.store(chunk);
            self.data_bytes = self.data_bytes + chunk.bytes() - before;
            rest = behind;
            self.make_room(0);
            if self.shift > 0 {
                break;
            }
        }
        rest
    }

    /// Sets one lossy bit.
    fn add_lossy(&mut self, block: u32) {
        let mut number = block >> self.shift >> CHUNK_SHIFT;
        let mut found = self.chunks.binary_search_by_key(&number, |chunk| chunk.number);
        if found.is_err() && self.chunks.len() == self.chunks.capacity() {
            self.reserve(1);
            number = block >> self.shift >> CHUNK_SHIFT;
            found = self.chunks.binary_search_by_key(&number, |chunk| chunk.number);
        }
        let at = match found {
            Ok(at) => at,
            Err(at) => {
                self.chunks.insert(at, Chunk::empty(number));
                at
            }
        };
        let bit = (block >> self.shift) as u8;
        let Some(chunk) = self.chunks.get_mut(at) else { return };
        let mut bits = chunk.lossy_bits();
        if bits.contains(bit) {
            return;
        }
        bits.set(bit);
        let before = chunk.bytes();
        self.writer.begin(bits);
        chunk.pages().for_each(|page| self.writer.push(&page));
        self.writer.store(chunk);
        self.data_bytes = self.data_bytes + chunk.bytes() - before;
    }

    /// Makes room for `more` chunks, also while the list is being copied to a larger place.
    fn reserve(&mut self, more: usize) {
        loop {
            let needed = self.chunks.len() + more;
            if needed <= self.chunks.capacity() {
                return;
            }
            let grown = needed.max(self.chunks.capacity() + self.chunks.capacity() / 4 + 16);
            let shift = self.shift;
            self.make_room(grown * size_of::<Chunk>());
            if self.shift == shift {
                self.chunks.reserve_exact(grown - self.chunks.len());
                return;
            }
            // Coarser now: fewer chunks will do, and what is added may fall into those there are.
            if more > 1 {
                return;
            }
        }
    }

    /// Gives up exactness until `more` bytes fit.
    pub(crate) fn make_room(&mut self, more: usize) {
        if self.chunk_memory_bytes() + more <= self.limit_bytes {
            return;
        }
        if !self.open.is_empty() {
            self.pack(true);
            return self.make_room(more);
        }
        // Some more than needed, or the next page would be back here.
        let target = self.limit_bytes - self.limit_bytes / 8;
        self.lossify_densest((self.chunk_memory_bytes() + more).saturating_sub(target));
        while self.chunk_memory_bytes() + more > self.limit_bytes && self.shift < 32 - CHUNK_SHIFT {
            self.coarsen();
        }
    }

    /// Makes chunks lossy until `wanted` bytes are free: those with the most tuples a page first. Such a page costs the
    /// least to check whole, and its offsets take the most room.
    fn lossify_densest(&mut self, wanted: usize) {
        let density = |chunk: &Chunk| (chunk.tuples / u32::from(chunk.pages).max(1)) as usize;
        let mut histogram = [0usize; MAX_TUPLES_PER_PAGE as usize + 1];
        for chunk in &self.chunks {
            if let Some(bytes) = histogram.get_mut(density(chunk)) {
                *bytes += chunk.reclaimable_bytes();
            }
        }
        let mut threshold = histogram.len();
        let mut freed = 0;
        while freed < wanted && threshold > 0 {
            threshold -= 1;
            freed += histogram.get(threshold).copied().unwrap_or(0);
        }
        let mut freed = 0;
        // Denser than the threshold: all of them. On it: as many as it takes.
        for on_threshold in [false, true] {
            for chunk in &mut self.chunks {
                let chosen = if on_threshold { density(chunk) == threshold } else { density(chunk) > threshold };
                if !chosen || chunk.reclaimable_bytes() == 0 || (on_threshold && freed >= wanted) {
                    continue;
                }
                let before = chunk.bytes();
                chunk.lossify();
                freed += before - chunk.bytes();
                self.data_bytes = self.data_bytes + chunk.bytes() - before;
            }
        }
    }

    /// Makes everything lossy and lets each bit stand for twice as many blocks.
    pub(crate) fn coarsen(&mut self) {
        self.shift += 1;
        let mut kept = 0usize;
        for at in 0..self.chunks.len() {
            let Some(mut chunk) = self.chunks.get_mut(at).map(std::mem::take) else { break };
            chunk.lossify();
            let upper_half = chunk.number & 1 == 1;
            let mut bits = LossyBits::default();
            chunk.lossy_bits().iter().for_each(|bit| bits.set(bit / 2 + if upper_half { 128 } else { 0 }));
            let number = chunk.number >> 1;
            match kept.checked_sub(1).and_then(|last| self.chunks.get_mut(last)) {
                Some(last) if last.number == number => last.set_lossy(last.lossy_bits().union(&bits)),
                _ => {
                    chunk.number = number;
                    chunk.set_lossy(bits);
                    if let Some(slot) = self.chunks.get_mut(kept) {
                        *slot = chunk;
                    }
                    kept += 1;
                }
            }
        }
        self.chunks.truncate(kept);
        self.chunks.shrink_to_fit();
        self.recount();
    }

    /// Recomputes what the chunks' data take.
    pub(crate) fn recount(&mut self) {
        self.data_bytes = self.chunks.iter().map(Chunk::bytes).sum();
    }
}
