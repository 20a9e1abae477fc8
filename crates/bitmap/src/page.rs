//! What a bitmap says of one heap page.

use stegodon_format::ids::{BlockNumber, OffsetNumber};

use crate::error::{Error, Result};

/// No heap page has more tuples than this (`MaxHeapTuplesPerPage` for pages of 8 KiB).
pub const MAX_TUPLES_PER_PAGE: u16 = 291;

const WORDS: usize = 5;

/// A set of offsets on one page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OffsetSet([u64; WORDS]);

impl OffsetSet {
    /// The empty set.
    pub const EMPTY: OffsetSet = OffsetSet([0; WORDS]);

    /// Adds an offset, from 1 to [`MAX_TUPLES_PER_PAGE`].
    pub fn insert(&mut self, offset: OffsetNumber) -> Result<()> {
        if offset.0 == 0 || offset.0 > MAX_TUPLES_PER_PAGE {
            return Err(Error::OffsetOutOfRange(offset));
        }
        self.set(offset.0);
        Ok(())
    }

    /// Adds an offset known to be in range; any other is ignored.
    pub(crate) fn set(&mut self, offset: u16) {
        let bit = usize::from(offset.wrapping_sub(1));
        if let Some(word) = self.0.get_mut(bit / 64) {
            *word |= 1 << (bit % 64);
        }
    }

    /// Whether an offset is in the set.
    pub fn contains(&self, offset: OffsetNumber) -> bool {
        let bit = usize::from(offset.0.wrapping_sub(1));
        self.0.get(bit / 64).is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }

    /// How many offsets.
    pub fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0 == [0; WORDS]
    }

    /// Offsets in either.
    pub fn union(mut self, other: &OffsetSet) -> OffsetSet {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
        self
    }

    /// Offsets in both.
    pub fn intersection(mut self, other: &OffsetSet) -> OffsetSet {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a &= b);
        self
    }

    /// Ascending.
    pub fn iter(&self) -> impl Iterator<Item = OffsetNumber> + use<> {
        let words = self.0;
        let mut index = 0;
        let mut word = words.first().copied().unwrap_or(0);
        std::iter::from_fn(move || {
            while word == 0 {
                index += 1;
                word = *words.get(index)?;
            }
            let bit = word.trailing_zeros();
            word &= word - 1;
            Some(OffsetNumber((index as u32 * 64 + bit + 1) as u16))
        })
    }

    pub(crate) const fn words(&self) -> &[u64; WORDS] {
        &self.0
    }

    pub(crate) const fn from_words(words: [u64; WORDS]) -> Self {
        Self(words)
    }
}

/// Which tuples of a page to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageMatches {
    /// Only these.
    Exact {
        /// The offsets.
        offsets: OffsetSet,
        /// Whether the condition must be checked on the tuple again.
        recheck: bool,
    },
    /// All of them, each with a recheck; there may be no match at all.
    Lossy,
}

/// One page to visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitmapPage {
    /// The block. A lossy one may lie beyond the end of the relation.
    pub block: BlockNumber,
    /// What to look at.
    pub matches: PageMatches,
}

impl BitmapPage {
    /// Whether the condition must be checked on the tuples again.
    pub const fn needs_recheck(&self) -> bool {
        match self.matches {
            PageMatches::Exact { recheck, .. } => recheck,
            PageMatches::Lossy => true,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn offsets_from_1_to_291() {
        let mut set = OffsetSet::EMPTY;
        for offset in [1, 64, 65, 128, 291] {
            set.insert(OffsetNumber(offset)).unwrap();
        }
        assert_eq!(set.iter().map(|offset| offset.0).collect::<Vec<_>>(), [1, 64, 65, 128, 291]);
        assert_eq!(set.len(), 5);
        assert!(set.contains(OffsetNumber(65)) && !set.contains(OffsetNumber(66)) && !set.contains(OffsetNumber(0)));
        for offset in [0, 292, u16::MAX] {
            let error = set.insert(OffsetNumber(offset)).unwrap_err();
            assert_eq!(error.to_string(), format!("tuple offset out of range: {offset}"));
        }
    }
}
