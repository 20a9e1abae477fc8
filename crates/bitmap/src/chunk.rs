//! A chunk: what a bitmap says of 256 neighbouring blocks, in one allocation.
//!
//! ```text
//!   data   ┌───────────────────────────┬────────┬────────┬────────┬──
//!          │ lossy blocks, 32 bytes,   │ page   │ page   │ page   │ …      ascending by block
//!          │ a bit each; only if any   │        │        │        │
//!          └───────────────────────────┴────────┴────────┴────────┴──
//!
//!   page   ┌────────┬──────────────────────────────┬───────────────────────────────────────┐
//!          │ block  │ bit 7 recheck                │ bit 6 clear: count × u16, ascending   │
//!          │ in the │ bit 6 offsets are a bitmap   │ bit 6 set:   37 bytes, a bit an offset│
//!          │ chunk  │ bits 0–4 count (1 to 18)     │                                       │
//!          └────────┴──────────────────────────────┴───────────────────────────────────────┘
//!           u8       u8
//! ```
//!
//! One tuple on a page takes 4 bytes, a page full of them 39. Where bits are coarse (see [`crate::TidBitmap`]) a lossy
//! bit stands for several blocks, and there are no exact pages.

use crate::page::{MAX_TUPLES_PER_PAGE, OffsetSet};

/// How many lossy bits, and exact pages at most, a chunk has.
pub(crate) const CHUNK_BITS: u32 = 256;
const LOSSY_BYTES: usize = 32;
const BITMAP_BYTES: usize = (MAX_TUPLES_PER_PAGE as usize).div_ceil(8);
const ARRAY_MAX: u32 = (BITMAP_BYTES / 2) as u32;
const RECHECK: u8 = 0x80;
const IS_BITMAP: u8 = 0x40;
const COUNT: u8 = 0x1F;

/// The most bytes that a chunk's data can take.
pub(crate) const CHUNK_BYTES_MAX: usize = LOSSY_BYTES + CHUNK_BITS as usize * (2 + BITMAP_BYTES);
/// What the allocator adds to an allocation, about.
pub(crate) const ALLOCATION_OVERHEAD_BYTES: usize = 16;

/// One bit per block of a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LossyBits([u64; 4]);

impl LossyBits {
    pub(crate) fn set(&mut self, bit: u8) {
        if let Some(word) = self.0.get_mut(usize::from(bit / 64)) {
            *word |= 1 << (bit % 64);
        }
    }

    pub(crate) fn contains(&self, bit: u8) -> bool {
        self.0.get(usize::from(bit / 64)).is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    pub(crate) fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    pub(crate) fn union(mut self, other: &LossyBits) -> LossyBits {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
        self
    }

    pub(crate) fn intersection(mut self, other: &LossyBits) -> LossyBits {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a &= b);
        self
    }

    /// The first bit set at or after `from`.
    pub(crate) fn next_from(&self, from: u32) -> Option<u8> {
        let mut index = (from / 64) as usize;
        let mut word = *self.0.get(index)? & (u64::MAX << (from % 64));
        while word == 0 {
            index += 1;
            word = *self.0.get(index)?;
        }
        Some((index as u32 * 64 + word.trailing_zeros()) as u8)
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = u8> {
        let mut from = 0;
        std::iter::from_fn(move || {
            let bit = self.next_from(from)?;
            from = u32::from(bit) + 1;
            Some(bit)
        })
    }
}

/// An exact page of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkPage {
    /// The block within the chunk.
    pub(crate) block: u8,
    pub(crate) recheck: bool,
    pub(crate) offsets: OffsetSet,
}

/// 256 blocks.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    data: Box<[u8]>,
    /// The first block, divided by the chunk's blocks.
    pub(crate) number: u32,
    /// Exact tuples.
    pub(crate) tuples: u32,
    /// Exact pages.
    pub(crate) pages: u16,
    /// Lossy bits set.
    pub(crate) lossy: u16,
}

impl Chunk {
    pub(crate) fn empty(number: u32) -> Self {
        Chunk { number, ..Chunk::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pages == 0 && self.lossy == 0
    }

    /// Bytes on the heap.
    pub(crate) fn bytes(&self) -> usize {
        if self.data.is_empty() { 0 } else { self.data.len() + ALLOCATION_OVERHEAD_BYTES }
    }

    /// Bytes freed by making every page lossy; 0 if that would not save any.
    pub(crate) fn reclaimable_bytes(&self) -> usize {
        if self.pages == 0 { 0 } else { self.data.len().saturating_sub(LOSSY_BYTES) }
    }

    pub(crate) fn lossy_bits(&self) -> LossyBits {
        let mut bits = LossyBits::default();
        if self.lossy > 0 {
            for (word, raw) in bits.0.iter_mut().zip(self.data.as_chunks().0) {
                *word = u64::from_le_bytes(*raw);
            }
        }
        bits
    }

    pub(crate) fn pages(&self) -> Pages<'_> {
        let start = if self.lossy > 0 { LOSSY_BYTES } else { 0 };
        Pages { data: self.data.get(start..).unwrap_or(&[]) }
    }

    /// Makes every page lossy.
    pub(crate) fn lossify(&mut self) {
        let mut bits = self.lossy_bits();
        self.pages().for_each(|page| bits.set(page.block));
        self.set_lossy(bits);
    }

    /// Replaces everything by lossy bits.
    pub(crate) fn set_lossy(&mut self, bits: LossyBits) {
        let mut data = [0; LOSSY_BYTES];
        for (raw, word) in data.as_chunks_mut().0.iter_mut().zip(bits.0) {
            *raw = word.to_le_bytes();
        }
        let data: &[u8] = if bits.is_empty() { &[] } else { &data };
        self.replace(data);
        (self.tuples, self.pages, self.lossy) = (0, 0, bits.len() as u16);
    }

    fn replace(&mut self, data: &[u8]) {
        if self.data.len() == data.len() {
            self.data.copy_from_slice(data);
        } else {
            self.data = Box::from(data);
        }
    }
}

/// The exact pages of a chunk, ascending by block.
#[derive(Clone)]
pub(crate) struct Pages<'a> {
    data: &'a [u8],
}

impl Iterator for Pages<'_> {
    type Item = ChunkPage;

    fn next(&mut self) -> Option<ChunkPage> {
        let (&[block, head], rest) = self.data.split_first_chunk()?;
        let mut offsets = OffsetSet::EMPTY;
        let len = if head & IS_BITMAP != 0 { BITMAP_BYTES } else { 2 * usize::from(head & COUNT) };
        let (body, rest) = rest.split_at_checked(len)?;
        if head & IS_BITMAP != 0 {
            let mut words = [0u8; 40];
            words.iter_mut().zip(body).for_each(|(word, byte)| *word = *byte);
            let mut set = [0; 5];
            set.iter_mut().zip(words.as_chunks().0).for_each(|(word, raw)| *word = u64::from_le_bytes(*raw));
            offsets = OffsetSet::from_words(set);
        } else {
            body.as_chunks().0.iter().for_each(|raw| offsets.set(u16::from_le_bytes(*raw)));
        }
        self.data = rest;
        Some(ChunkPage { block, recheck: head & RECHECK != 0, offsets })
    }
}

/// Puts a chunk together: lossy bits first, then pages ascending by block. Kept, so that its buffer is made once.
#[derive(Debug, Default)]
pub(crate) struct ChunkWriter {
    data: Vec<u8>,
    bits: LossyBits,
    pages: u16,
    tuples: u32,
}

impl ChunkWriter {
    /// Begins a chunk with these lossy blocks.
    pub(crate) fn begin(&mut self, bits: LossyBits) {
        self.data.clear();
        self.data.reserve_exact(CHUNK_BYTES_MAX);
        self.bits = bits;
        self.pages = 0;
        self.tuples = 0;
        if !bits.is_empty() {
            bits.0.iter().for_each(|word| self.data.extend_from_slice(&word.to_le_bytes()));
        }
    }

    /// Adds a page, unless its block is lossy or it has no offsets.
    pub(crate) fn push(&mut self, page: &ChunkPage) {
        let count = page.offsets.len();
        if count == 0 || self.bits.contains(page.block) {
            return;
        }
        let recheck = if page.recheck { RECHECK } else { 0 };
        if count <= ARRAY_MAX {
            self.data.extend_from_slice(&[page.block, recheck | count as u8]);
            page.offsets.iter().for_each(|offset| self.data.extend_from_slice(&offset.0.to_le_bytes()));
        } else {
            self.data.extend_from_slice(&[page.block, recheck | IS_BITMAP]);
            let start = self.data.len();
            page.offsets.words().iter().for_each(|word| self.data.extend_from_slice(&word.to_le_bytes()));
            self.data.truncate(start + BITMAP_BYTES);
        }
        self.pages += 1;
        self.tuples += count;
    }

    /// Adds two ascending sequences of pages; where both have a block, what is in either.
    pub(crate) fn push_union(&mut self, left: impl Iterator<Item = ChunkPage>, right: impl Iterator<Item = ChunkPage>) {
        let (mut left, mut right) = (left.peekable(), right.peekable());
        loop {
            let page = match (left.peek(), right.peek()) {
                (Some(a), Some(b)) if a.block == b.block => {
                    let page = ChunkPage {
                        block: a.block,
                        recheck: a.recheck || b.recheck,
                        offsets: a.offsets.union(&b.offsets),
                    };
                    left.next();
                    right.next();
                    Some(page)
                }
                (Some(a), Some(b)) if b.block < a.block => right.next(),
                (Some(_), _) => left.next(),
                (None, _) => right.next(),
            };
            let Some(page) = page else { return };
            self.push(&page);
        }
    }

    /// Stores what was put together.
    pub(crate) fn store(&self, chunk: &mut Chunk) {
        chunk.replace(&self.data);
        (chunk.tuples, chunk.pages, chunk.lossy) = (self.tuples, self.pages, self.bits.len() as u16);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(block: u8, recheck: bool, offsets: impl IntoIterator<Item = u16>) -> ChunkPage {
        let mut set = OffsetSet::EMPTY;
        offsets.into_iter().for_each(|offset| set.set(offset));
        ChunkPage { block, recheck, offsets: set }
    }

    #[test]
    fn pages_round_trip_as_arrays_and_bitmaps() {
        let pages = [page(0, false, [1]), page(3, true, 1..=18), page(4, true, 273..=291), page(255, false, 1..=291)];
        let mut writer = ChunkWriter::default();
        let mut chunk = Chunk::empty(7);
        writer.begin(LossyBits::default());
        for page in &pages {
            writer.push(page);
        }
        writer.store(&mut chunk);
        assert_eq!(chunk.pages().collect::<Vec<_>>(), pages);
        assert_eq!((chunk.tuples, chunk.pages, chunk.lossy), (1 + 18 + 19 + 291, 4, 0));
        assert_eq!(chunk.data.len(), 4 + 38 + 39 + 39);
        chunk.lossify();
        assert_eq!(chunk.lossy_bits().iter().collect::<Vec<_>>(), [0, 3, 4, 255]);
        assert_eq!((chunk.tuples, chunk.pages, chunk.lossy), (0, 0, 4));
    }

    #[test]
    fn a_full_chunk_is_as_large_as_announced() {
        let mut writer = ChunkWriter::default();
        let mut bits = LossyBits::default();
        bits.set(0);
        writer.begin(bits);
        (0..=255).for_each(|block| writer.push(&page(block, true, 1..=291)));
        assert_eq!(writer.pages, 255, "a lossy block takes no page");
        assert!(writer.data.len() <= CHUNK_BYTES_MAX);
    }

    #[test]
    fn lossy_bits_iterate_in_order() {
        let mut bits = LossyBits::default();
        for bit in [0, 63, 64, 200, 255] {
            bits.set(bit);
        }
        assert_eq!(bits.iter().collect::<Vec<_>>(), [0, 63, 64, 200, 255]);
        assert_eq!((bits.next_from(65), bits.next_from(256)), (Some(200), None));
    }
}
