//! The checksum of a page.
//!
//! ```text
//!   the page as 64 rows of 32 u32:   column c is hashed on its own, from its own start value, by
//!                                    h ← (h ^ v)·16777619 ^ (h ^ v) >> 17      (FNV-1a with a better mix)
//!                                    then two rounds with v = 0
//!   checksum = (XOR of the 32 columns ^ block number) mod 65535 + 1            never 0
//! ```
//!
//! The checksum's own two bytes count as zero. The block number makes a page that was written to the wrong place fail.
//! 32 independent columns are what lets the compiler use vector instructions.

use crate::ids::BlockNumber;
use crate::page::{BLCKSZ, PageRef};

const COLUMNS: usize = 32;
const PRIME: u32 = 16777619;
/// The start values: given by the format.
const START: [u32; COLUMNS] = [
    0x5B1F36E9, 0xB8525960, 0x02AB50AA, 0x1DE66D2A, 0x79FF467A, 0x9BB9F8A3, 0x217E7CD2, 0x83E13D2C, 0xF8D4474F,
    0xE39EB970, 0x42C6AE16, 0x993216FA, 0x7B093B5D, 0x98DAFF3C, 0xF718902A, 0x0B1C9CDB, 0xE58F764B, 0x187636BC,
    0x5D7B3BB1, 0xE73DE7DE, 0x92BEC979, 0xCCA6C0B2, 0x304A0979, 0x85AA43D4, 0x783125BB, 0x6CA8EAA2, 0xE407EAC6,
    0x4B5CFC3E, 0x9FBF8C76, 0x15CA20BE, 0xF2CA9FD3, 0x959BD756,
];
/// The word that holds `pd_checksum` in its lower half and `pd_flags` in its upper.
const CHECKSUM_WORD: usize = 2;

#[inline]
fn mix(sums: &mut [u32; COLUMNS], row: &[u32; COLUMNS]) {
    for (sum, value) in sums.iter_mut().zip(row) {
        let mixed = *sum ^ value;
        *sum = mixed.wrapping_mul(PRIME) ^ (mixed >> 17);
    }
}

/// The checksum that the page at `block` should have. Not for new (all zero) pages: they have none.
pub fn page_checksum(page: PageRef<'_>, block: BlockNumber) -> u16 {
    const ROW: usize = COLUMNS * 4;
    const { assert!(BLCKSZ.is_multiple_of(ROW)) };
    let (rows, _) = page.bytes().as_chunks::<ROW>();
    let mut sums = START;
    for (index, row) in rows.iter().enumerate() {
        let (words, _) = row.as_chunks::<4>();
        let mut values = [0u32; COLUMNS];
        for (value, word) in values.iter_mut().zip(words) {
            *value = u32::from_le_bytes(*word);
        }
        if index == 0 {
            values[CHECKSUM_WORD] &= 0xFFFF_0000;
        }
        mix(&mut sums, &values);
    }
    for _ in 0..2 {
        mix(&mut sums, &[0; COLUMNS]);
    }
    let folded = sums.iter().fold(0, |all, sum| all ^ sum) ^ block.0;
    (folded % 65535 + 1) as u16
}

/// Whether the page's stored checksum is the right one for `block`. New pages have none and are right.
pub fn is_correct(page: PageRef<'_>, block: BlockNumber) -> bool {
    page.is_new() || page.checksum() == page_checksum(page, block)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
    use super::*;
    use crate::page::Page;
    use crate::testing::HEAP_PAGE;

    #[test]
    fn is_what_postgresql_stored() {
        let page = PageRef::new(HEAP_PAGE);
        assert_eq!(page_checksum(page, BlockNumber(0)), page.checksum());
        assert!(is_correct(page, BlockNumber(0)));
        assert!(!is_correct(page, BlockNumber(1)));
    }

    #[test]
    fn notices_one_changed_bit_anywhere() {
        for at in (0..BLCKSZ).step_by(61).filter(|at| *at != 8 && *at != 9) {
            let mut page = Page::from(*HEAP_PAGE);
            page.bytes_mut()[at] ^= 0x10;
            assert!(!is_correct(page.view(), BlockNumber(0)), "{at}");
        }
    }

    #[test]
    fn a_new_page_has_no_checksum() {
        assert!(is_correct(Page::zeroed().view(), BlockNumber(5)));
    }
}
