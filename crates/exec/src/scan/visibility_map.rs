//! What the visibility map says of the rows of one leaf.
//!
//! The map's pages are copied: a leaf's rows lie all over the table, and to latch the map for each cost more than to read the
//! leaf. A copy is good while the leaf is pinned: vacuum cannot have removed a tuple that the leaf still points to, so what
//! the map said of its page stays true.

use stegodon_format::ids::{BlockNumber, Tid};
use stegodon_format::page::{BLCKSZ, PageRef};
use stegodon_format::vm;

/// Map pages copied at once. Each covers 255 MiB of the table; with more, a row's page is asked directly.
const COPIES_MAX: usize = 16;

/// Copies of map pages.
#[derive(Default)]
pub(super) struct VisibilityMap {
    copies: Vec<(BlockNumber, Box<[u8; BLCKSZ]>)>,
    /// How many of them are of this leaf; the others' memory is used again.
    live: usize,
}

impl VisibilityMap {
    /// Says of each row whether all see its page, up to the first whose map page is not copied: that one is returned.
    /// Behind the map's end nothing is all-visible.
    pub(super) fn vouch(&self, rows: &[Tid], map_blocks: u32, visible: &mut Vec<bool>) -> Option<BlockNumber> {
        let mut last: Option<(BlockNumber, PageRef<'_>)> = None;
        for row in rows {
            let block = vm::map_block(row.block);
            let page = match last {
                Some((known, page)) if known == block => page,
                _ if block.0 >= map_blocks => {
                    visible.push(false);
                    continue;
                }
                _ => match self.copies.iter().take(self.live).find(|(known, _)| *known == block) {
                    Some((_, copy)) => PageRef::new(copy),
                    None => return Some(block),
                },
            };
            last = Some((block, page));
            visible.push(vm::bits(page, row.block).all_visible());
        }
        None
    }

    /// Copies a page of the map. False if there are too many already.
    pub(super) fn copy(&mut self, block: BlockNumber, page: PageRef<'_>) -> bool {
        if self.live == COPIES_MAX {
            return false;
        }
        match self.copies.get_mut(self.live) {
            Some((known, copy)) => (*known, **copy) = (block, *page.bytes()),
            None => self.copies.push((block, Box::new(*page.bytes()))),
        }
        self.live += 1;
        true
    }

    /// The leaf is no longer pinned.
    pub(super) fn forget(&mut self) {
        self.live = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stegodon_format::ids::OffsetNumber;

    #[test]
    fn rows_are_vouched_for_by_the_copies() {
        let row = |block| Tid::new(BlockNumber(block), OffsetNumber(1));
        // Blocks 1 and 3 are all-visible.
        let mut page = [0; BLCKSZ];
        page[stegodon_format::page::PAGE_HEADER_SIZE] = 0b0100_0100;
        let mut map = VisibilityMap::default();
        let mut visible = Vec::new();
        assert_eq!(map.vouch(&[row(40_000), row(1)], 1, &mut visible), Some(BlockNumber(0)));
        assert_eq!(visible, [false], "behind the map's end");
        assert!(map.copy(BlockNumber(0), PageRef::new(&page)));
        visible.clear();
        assert_eq!(map.vouch(&[row(1), row(2), row(3)], 2, &mut visible), None);
        assert_eq!(visible, [true, false, true]);
        visible.clear();
        assert_eq!(map.vouch(&[row(3), row(40_000)], 2, &mut visible), Some(BlockNumber(1)));
        (1..COPIES_MAX).for_each(|block| assert!(map.copy(BlockNumber(block as u32), PageRef::new(&page))));
        assert!(!map.copy(BlockNumber(99), PageRef::new(&page)));
        map.forget();
        assert_eq!(map.vouch(&[row(1)], 2, &mut visible), Some(BlockNumber(0)));
    }
}
