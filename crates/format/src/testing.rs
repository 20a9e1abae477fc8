//! For this crate's tests: a small seeded source of damage, and fixtures.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

/// xorshift64*: enough randomness to damage bytes reproducibly.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        if limit == 0 { 0 } else { self.number() as usize % limit }
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.number() as u8).collect()
    }

    /// Overwrites one to eight bytes.
    pub(crate) fn damage(&mut self, bytes: &mut [u8]) {
        for _ in 0..=self.below(8) {
            let at = self.below(bytes.len());
            if let Some(byte) = bytes.get_mut(at) {
                *byte = self.number() as u8;
            }
        }
    }
}
