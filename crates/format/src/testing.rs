//! For this crate's tests: a small seeded source of damage, and fixtures.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::fmt::Write as _;

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

/// Runs a data-driven test: `text` holds cases of a command line, input lines, `----` and the expected output, up to a
/// blank line. `#` starts a comment between cases. `run` gets the command line and the input.
pub(crate) fn data_driven(text: &str, mut run: impl FnMut(&str, &str) -> String) {
    let mut cases = 0;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let input: Vec<&str> = lines.by_ref().take_while(|line| *line != "----").collect();
        let expected: Vec<&str> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
        let actual = run(line, &input.join("\n"));
        assert_eq!(actual.trim_end(), expected.join("\n"), "{line}");
        cases += 1;
    }
    assert!(cases > 0, "no cases");
}

/// Bytes as psql prints a bytea.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut out = String::from("\\x");
    for byte in bytes {
        write!(out, "{byte:02x}").unwrap();
    }
    out
}

/// The inverse of [`hex`].
pub(crate) fn unhex(text: &str) -> Vec<u8> {
    let digits = text.strip_prefix("\\x").unwrap();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

/// Attribute layouts spelled as length and alignment letter: `4i -1i 8d`.
pub(crate) fn layout(words: &str) -> crate::attr::TupleLayout {
    crate::attr::TupleLayout::new(words.split_whitespace().map(|word| {
        let (len, align) = word.split_at(word.len() - 1);
        let align = match align {
            "c" => 1,
            "s" => 2,
            "i" => 4,
            _ => 8,
        };
        crate::attr::AttrLayout::new(len.parse().unwrap(), align)
    }))
    .unwrap()
}

/// The page that `testdata/heap_page.sql` made.
pub(crate) const HEAP_PAGE: &[u8; 8192] = include_bytes!("../testdata/heap_page.bin");
