//! The visibility map: two bits for every heap block.
//!
//! ```text
//!   page of the _vm fork: header (24 bytes), then 8168 bytes
//!
//!   byte:   76    54    32    10          bits of one byte
//!           ▲     ▲     ▲     ▲
//!           3rd   2nd   1st   0th heap block of the four that it covers
//!
//!   bit 0 of each pair: all-visible       bit 1: all-frozen (never without all-visible)
//! ```
//!
//! A page covers 32,672 heap blocks. Blocks beyond the end of the fork have neither bit.

use crate::ids::BlockNumber;
use crate::page::{BLCKSZ, PAGE_HEADER_SIZE, PageRef};

/// The heap blocks that one byte covers.
pub const HEAP_BLOCKS_PER_BYTE: u32 = 4;
/// The heap blocks that one page covers.
pub const HEAP_BLOCKS_PER_PAGE: u32 = (BLCKSZ - PAGE_HEADER_SIZE) as u32 * HEAP_BLOCKS_PER_BYTE;

/// The two bits of a heap block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VisibilityBits(pub u8);

impl VisibilityBits {
    /// Whether every tuple of the block is visible to everyone.
    pub const fn all_visible(self) -> bool {
        self.0 & 1 != 0
    }

    /// Whether every tuple of the block is frozen.
    pub const fn all_frozen(self) -> bool {
        self.0 & 2 != 0
    }
}

/// The block of the map that covers a heap block.
pub const fn map_block(heap_block: BlockNumber) -> BlockNumber {
    BlockNumber(heap_block.0 / HEAP_BLOCKS_PER_PAGE)
}

/// A heap block's bits, given the map's page at [`map_block`]. A new page has none.
pub fn bits(page: PageRef<'_>, heap_block: BlockNumber) -> VisibilityBits {
    let within = heap_block.0 % HEAP_BLOCKS_PER_PAGE;
    let byte = page.contents().get((within / HEAP_BLOCKS_PER_BYTE) as usize).copied().unwrap_or(0);
    VisibilityBits(byte >> (within % HEAP_BLOCKS_PER_BYTE * 2) & 3)
}

/// How many of the heap blocks that the map's page covers are all-visible, and how many all-frozen.
pub fn count(page: PageRef<'_>) -> (u32, u32) {
    let mut counts = (0, 0);
    for byte in page.contents() {
        counts.0 += (byte & 0x55).count_ones();
        counts.1 += (byte & 0xAA).count_ones();
    }
    counts
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
    use super::*;
    use crate::page::Page;

    #[test]
    fn finds_a_block_s_bits() {
        assert_eq!(map_block(BlockNumber(32671)), BlockNumber(0));
        assert_eq!(map_block(BlockNumber(32672)), BlockNumber(1));
        let mut page = Page::zeroed();
        page.bytes_mut()[PAGE_HEADER_SIZE + 1] = 0b1101_0000;
        page.bytes_mut()[BLCKSZ - 1] = 0b0100_0000;
        let at = |block| bits(page.view(), BlockNumber(block)).0;
        assert_eq!([at(3), at(4), at(5), at(6), at(7), at(8)], [0, 0, 0, 1, 3, 0]);
        assert_eq!((at(32671), at(32672 + 6)), (1, 1));
        assert_eq!(count(page.view()), (3, 1));
        let _ = map_block(BlockNumber(u32::MAX));
        let _ = at(u32::MAX);
    }
}
