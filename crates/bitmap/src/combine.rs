//! BitmapOr and BitmapAnd.
//!
//! | this page | other page | or | and |
//! |---|---|---|---|
//! | exact | exact | union, recheck if either | intersection, recheck if either |
//! | exact | lossy | lossy | the exact offsets, recheck |
//! | lossy | lossy | lossy | lossy |
//!
//! PostgreSQL keeps lossy ∧ exact lossy where the first is the lossy one; the offsets are known, so here they are kept.

use crate::bitmap::TidBitmap;
use crate::chunk::{CHUNK_BITS, Chunk, ChunkPage, LossyBits};

impl TidBitmap {
    /// Adds everything that is in `other`.
    pub fn union(&mut self, mut other: TidBitmap) {
        self.settle();
        other.settle();
        while self.shift < other.shift {
            self.coarsen();
        }
        while other.shift < self.shift {
            other.coarsen();
        }
        let theirs = std::mem::take(&mut other.chunks);
        let known = self.chunks.len();
        let mut at = 0;
        for chunk in theirs {
            at += self.chunks.get(at..known).unwrap_or(&[]).partition_point(|ours| ours.number < chunk.number);
            match self.chunks.get_mut(at) {
                Some(ours) if at < known && ours.number == chunk.number => {
                    self.writer.begin(ours.lossy_bits().union(&chunk.lossy_bits()));
                    self.writer.push_union(ours.pages(), chunk.pages());
                    self.writer.store(ours);
                }
                _ => self.chunks.push(chunk),
            }
        }
        self.chunks.sort_unstable_by_key(|chunk| chunk.number);
        self.chunks.shrink_to_fit();
        self.recount();
        self.make_room(0);
    }

    /// Keeps only what is in `other`, too.
    pub fn intersect(&mut self, mut other: TidBitmap) {
        self.settle();
        other.settle();
        if self.shift > 0 && other.shift == 0 {
            // The finer one is filtered, whichever it is; the budget stays this one's.
            std::mem::swap(&mut self.chunks, &mut other.chunks);
            std::mem::swap(&mut self.shift, &mut other.shift);
        }
        if self.shift == 0 && other.shift > 0 {
            self.keep_coarse(&other);
        } else {
            while self.shift < other.shift {
                self.coarsen();
            }
            while other.shift < self.shift {
                other.coarsen();
            }
            self.keep_common(&other);
        }
        self.chunks.retain(|chunk| !chunk.is_empty());
        self.recount();
        self.make_room(0);
    }

    /// Intersects with a bitmap of the same grain.
    fn keep_common(&mut self, other: &TidBitmap) {
        let mut at = 0;
        for ours in &mut self.chunks {
            at += other.chunks.get(at..).unwrap_or(&[]).partition_point(|theirs| theirs.number < ours.number);
            match other.chunks.get(at) {
                Some(theirs) if theirs.number == ours.number => {
                    let (our_bits, their_bits) = (ours.lossy_bits(), theirs.lossy_bits());
                    self.writer.begin(our_bits.intersection(&their_bits));
                    let pages = CommonPages::new(ours, our_bits, theirs, their_bits);
                    pages.for_each(|page| self.writer.push(&page));
                    self.writer.store(ours);
                }
                _ => ours.set_lossy(LossyBits::default()),
            }
        }
    }

    /// Intersects with a bitmap whose bits are coarse: what is kept must be rechecked.
    fn keep_coarse(&mut self, other: &TidBitmap) {
        for ours in &mut self.chunks {
            let first = u64::from(ours.number) * u64::from(CHUNK_BITS);
            let kept = |block: u8| {
                let bit = (first + u64::from(block)) >> other.shift;
                let number = (bit / u64::from(CHUNK_BITS)) as u32;
                let found = other.chunks.binary_search_by_key(&number, |chunk| chunk.number);
                let chunk = found.ok().and_then(|at| other.chunks.get(at));
                chunk.is_some_and(|chunk| chunk.lossy_bits().contains(bit as u8))
            };
            let mut bits = LossyBits::default();
            ours.lossy_bits().iter().filter(|bit| kept(*bit)).for_each(|bit| bits.set(bit));
            self.writer.begin(bits);
            ours.pages()
                .filter(|page| kept(page.block))
                .for_each(|page| self.writer.push(&ChunkPage { recheck: true, ..page }));
            self.writer.store(ours);
        }
    }
}

/// The exact pages of the intersection of two chunks, ascending by block.
struct CommonPages<L: Iterator, R: Iterator> {
    left: std::iter::Peekable<L>,
    right: std::iter::Peekable<R>,
    left_bits: LossyBits,
    right_bits: LossyBits,
}

impl<'a> CommonPages<crate::chunk::Pages<'a>, crate::chunk::Pages<'a>> {
    fn new(left: &'a Chunk, left_bits: LossyBits, right: &'a Chunk, right_bits: LossyBits) -> Self {
        Self { left: left.pages().peekable(), right: right.pages().peekable(), left_bits, right_bits }
    }
}

impl<L: Iterator<Item = ChunkPage>, R: Iterator<Item = ChunkPage>> Iterator for CommonPages<L, R> {
    type Item = ChunkPage;

    fn next(&mut self) -> Option<ChunkPage> {
        loop {
            // A page that only one side has exactly stays if the other side has it lossily.
            let (page, bits) = match (self.left.peek(), self.right.peek()) {
                (Some(a), Some(b)) if a.block == b.block => {
                    let recheck = a.recheck || b.recheck;
                    let page = ChunkPage { block: a.block, recheck, offsets: a.offsets.intersection(&b.offsets) };
                    self.left.next();
                    self.right.next();
                    return Some(page);
                }
                (Some(a), Some(b)) if a.block > b.block => (self.right.next()?, self.left_bits),
                (Some(_), _) => (self.left.next()?, self.right_bits),
                (None, Some(_)) => (self.right.next()?, self.left_bits),
                (None, None) => return None,
            };
            if bits.contains(page.block) {
                return Some(ChunkPage { recheck: true, ..page });
            }
        }
    }
}
