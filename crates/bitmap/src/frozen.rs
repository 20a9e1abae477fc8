//! A finished bitmap: iterating it, and dividing it among workers.

use std::ops::Range;

use stegodon_format::ids::BlockNumber;

use crate::chunk::{CHUNK_BITS, Chunk, ChunkPage, LossyBits, Pages};
use crate::page::{BitmapPage, PageMatches};

/// A bitmap that is no longer added to. It can be shared, and iterated any number of times.
#[derive(Debug, Default)]
pub struct FrozenBitmap {
    chunks: Vec<Chunk>,
    shift: u32,
}

impl FrozenBitmap {
    pub(crate) fn new(chunks: Vec<Chunk>, shift: u32) -> Self {
        Self { chunks, shift }
    }

    /// Whether it has no page at all.
    pub fn is_empty(&self) -> bool {
        self.chunks.iter().all(Chunk::is_empty)
    }

    /// The number of exact pages.
    pub fn exact_pages(&self) -> u64 {
        self.chunks.iter().map(|chunk| u64::from(chunk.pages)).sum()
    }

    /// The number of lossy pages.
    pub fn lossy_pages(&self) -> u64 {
        self.chunks.iter().map(|chunk| u64::from(chunk.lossy) << self.shift).sum()
    }

    /// The number of tuples on exact pages.
    pub fn exact_tuples(&self) -> u64 {
        self.chunks.iter().map(|chunk| u64::from(chunk.tuples)).sum()
    }

    /// Every page, ascending by block. Allocates nothing.
    pub fn iter(&self) -> BitmapIter<'_> {
        self.iter_range(BlockNumber(0)..BlockNumber::INVALID)
    }

    /// The pages of a range of blocks. Give the relation's end as the range's: a lossy page may lie beyond it.
    pub fn iter_range(&self, range: Range<BlockNumber>) -> BitmapIter<'_> {
        let chunk_blocks = self.chunk_blocks();
        let first = self
            .chunks
            .partition_point(|chunk| (u64::from(chunk.number) + 1) * chunk_blocks <= u64::from(range.start.0));
        BitmapIter {
            chunks: self.chunks.get(first..).unwrap_or(&[]).iter(),
            shift: self.shift,
            range: u64::from(range.start.0)..u64::from(range.end.0),
            base: 0,
            bits: LossyBits::default(),
            next_lossy: None,
            pages: None,
            next_page: None,
        }
    }

    /// Divides the bitmap into at most `parts` ranges of blocks with about as many pages each. The ranges cover every
    /// block, in order: each worker takes one, or one after the other, and reads neighbouring blocks.
    pub fn divide(&self, parts: usize) -> Vec<Range<BlockNumber>> {
        let weight = |chunk: &Chunk| u64::from(chunk.pages) + (u64::from(chunk.lossy) << self.shift);
        let total: u64 = self.chunks.iter().map(weight).sum();
        let parts = parts.max(1) as u64;
        let mut ranges = Vec::with_capacity(parts as usize);
        let (mut start, mut seen, mut done) = (BlockNumber(0), 0, 1);
        for chunk in &self.chunks {
            let before = seen;
            seen += weight(chunk);
            // Cuts that fall within this chunk: its pages are counted off.
            while done < parts && seen * parts >= total * done && seen > before {
                let wanted = (total * done).div_ceil(parts).saturating_sub(before);
                let Some(end) = self.block_after(chunk, wanted) else { break };
                if end > start {
                    ranges.push(start..end);
                    start = end;
                }
                done += 1;
            }
        }
        ranges.push(start..BlockNumber::INVALID);
        ranges
    }

    /// The block behind the `count`th page of a chunk.
    fn block_after(&self, chunk: &Chunk, count: u64) -> Option<BlockNumber> {
        let first = u64::from(chunk.number) * self.chunk_blocks();
        let from = BlockNumber(u32::try_from(first).ok()?);
        let mut pages = self.iter_range(from..BlockNumber::INVALID);
        let last = pages.nth(usize::try_from(count.checked_sub(1)?).ok()?)?;
        Some(last.block.next())
    }

    fn chunk_blocks(&self) -> u64 {
        u64::from(CHUNK_BITS) << self.shift
    }
}

impl<'a> IntoIterator for &'a FrozenBitmap {
    type Item = BitmapPage;
    type IntoIter = BitmapIter<'a>;

    fn into_iter(self) -> BitmapIter<'a> {
        self.iter()
    }
}

/// The pages of a bitmap, ascending by block.
pub struct BitmapIter<'a> {
    chunks: std::slice::Iter<'a, Chunk>,
    shift: u32,
    range: Range<u64>,
    /// The first block of the present chunk.
    base: u64,
    bits: LossyBits,
    /// The next lossy block within the chunk.
    next_lossy: Option<u64>,
    pages: Option<Pages<'a>>,
    next_page: Option<ChunkPage>,
}

impl BitmapIter<'_> {
    /// The first lossy block at or after `from`, counted within the chunk.
    fn lossy_from(&self, from: u64) -> Option<u64> {
        let bit = from >> self.shift;
        if bit >= u64::from(CHUNK_BITS) {
            return None;
        }
        let found = u64::from(self.bits.next_from(bit as u32)?);
        Some((found << self.shift).max(from))
    }
}

impl Iterator for BitmapIter<'_> {
    type Item = BitmapPage;

    fn next(&mut self) -> Option<BitmapPage> {
        loop {
            let exact = self.next_page.map(|page| u64::from(page.block));
            let (within, matches) = match (self.next_lossy, exact) {
                (Some(lossy), exact) if exact.is_none_or(|exact| lossy < exact) => {
                    self.next_lossy = self.lossy_from(lossy + 1);
                    (lossy, PageMatches::Lossy)
                }
                (_, Some(exact)) => {
                    let page = self.next_page.take()?;
                    self.next_page = self.pages.as_mut().and_then(Iterator::next);
                    (exact, PageMatches::Exact { offsets: page.offsets, recheck: page.recheck })
                }
                _ => {
                    let chunk = self.chunks.next()?;
                    self.base = (u64::from(chunk.number) * u64::from(CHUNK_BITS)) << self.shift;
                    if self.base >= self.range.end {
                        self.chunks = [].iter();
                        return None;
                    }
                    self.bits = chunk.lossy_bits();
                    self.next_lossy = self.lossy_from(self.range.start.saturating_sub(self.base));
                    let mut pages = chunk.pages();
                    let start = self.range.start;
                    self.next_page = pages.find(|page| self.base + u64::from(page.block) >= start);
                    self.pages = Some(pages);
                    continue;
                }
            };
            let block = self.base + within;
            if block >= self.range.end {
                (self.next_lossy, self.next_page, self.chunks) = (None, None, [].iter());
                return None;
            }
            return Some(BitmapPage { block: BlockNumber(block as u32), matches });
        }
    }
}
