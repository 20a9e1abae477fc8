//! PostgreSQL's own LZ compression.
//!
//! ```text
//!   control byte │ item │ item │ …        eight items, one bit each, from bit 0; then the next control byte
//!
//!   bit 0:  one literal byte
//!   bit 1:  OOOOLLLL OOOOOOOO [EEEEEEEE]  copy from O bytes back (1–4095, upper nibble first)
//!                                         L + 3 bytes (3–17), or if L = 15: 18 + E (18–273)
//! ```
//!
//! A copy may overlap its own output: offset 1 repeats the last byte.
//!
//! [`compress`] finds, for every position, the longest earlier match among those that share a hash of four bytes, nearest
//! first, content with less the longer it looks. It makes the bytes that PostgreSQL's default strategy makes, so that
//! the same row has the same size in both.

use crate::error::{Error, Result};

const CORRUPT: Error = Error::CorruptCompressedData { method: "pglz" };

/// Decompresses `data`, which must yield exactly `raw_size` bytes.
///
/// The caller has bounded `raw_size`; this reserves as much.
pub fn decompress(data: &[u8], raw_size: usize) -> Result<Vec<u8>> {
    let mut out: Vec<u8> = Vec::with_capacity(raw_size);
    let mut input = data;
    while let [control, rest @ ..] = input {
        if out.len() >= raw_size {
            break;
        }
        input = rest;
        let mut control = *control;
        for _ in 0..8 {
            if input.is_empty() || out.len() >= raw_size {
                break;
            }
            if control & 1 == 0 {
                let [literal, rest @ ..] = input else { return Err(CORRUPT) };
                out.push(*literal);
                input = rest;
            } else {
                let [first, second, rest @ ..] = input else { return Err(CORRUPT) };
                input = rest;
                let offset = usize::from(first & 0xF0) << 4 | usize::from(*second);
                let mut len = usize::from(first & 0x0F) + 3;
                if len == 18 {
                    let [extension, rest @ ..] = input else { return Err(CORRUPT) };
                    len += usize::from(*extension);
                    input = rest;
                }
                let room = raw_size - out.len();
                copy_back(&mut out, offset, len.min(room))?;
            }
            control >>= 1;
        }
    }
    if out.len() == raw_size && input.is_empty() { Ok(out) } else { Err(CORRUPT) }
}

/// Appends `len` bytes of `out`'s own, starting `offset` bytes before its end.
fn copy_back(out: &mut Vec<u8>, offset: usize, mut len: usize) -> Result<()> {
    let Some(start) = out.len().checked_sub(offset) else { return Err(CORRUPT) };
    if offset == 0 {
        return Err(CORRUPT);
    }
    // Where the copy overlaps itself, what is there repeats: each round doubles it.
    while len > 0 {
        let piece = (out.len() - start).min(len);
        out.extend_from_within(start..start + piece);
        len -= piece;
    }
    Ok(())
}

/// Inputs shorter than this stay as they are.
const MIN_INPUT: usize = 32;
/// Without a match in so many bytes of output, compression is given up.
const FIRST_SUCCESS_BY: usize = 1024;
/// A match this long is good enough to stop looking; each further candidate lowers the mark by a tenth.
const GOOD_MATCH: usize = 128;
/// The longest match that a tag can say.
const MAX_MATCH: usize = 273;
/// Matches must start nearer than this.
const MAX_OFFSET: usize = 0x0FFF;
/// How far back positions are remembered.
const HISTORY: usize = 4096;

/// Compresses `source`, if that makes it at least a quarter smaller.
pub fn compress(source: &[u8]) -> Option<Vec<u8>> {
    if source.len() < MIN_INPUT || i32::try_from(source.len()).is_err() {
        return None;
    }
    // PostgreSQL rounds so above this length, to stay within 32 bits.
    let limit = if source.len() > i32::MAX as usize / 100 { source.len() / 100 * 75 } else { source.len() * 75 / 100 };
    let mut history = History::new(source);
    let mut out = Output::default();
    let mut found_any = false;
    let mut at = 0;
    while at < source.len() {
        if out.bytes.len() >= limit || (!found_any && out.bytes.len() >= FIRST_SUCCESS_BY) {
            return None;
        }
        let len = if let Some((len, offset)) = history.find(at) {
            out.tag(len, offset);
            found_any = true;
            len
        } else {
            out.literal(*source.get(at)?);
            1
        };
        for position in at..at + len {
            history.add(position);
        }
        at += len;
    }
    if out.bytes.len() < limit { Some(out.bytes) } else { None }
}

/// Where each hash was seen: the newest position, and from each position the one before it.
struct History<'a> {
    source: &'a [u8],
    /// One more than the newest position with this hash; 0 if none.
    newest: Vec<u32>,
    /// One more than the next older position, by position modulo [`HISTORY`].
    older: Box<[u32; HISTORY]>,
}

impl<'a> History<'a> {
    fn new(source: &'a [u8]) -> Self {
        let slots = match source.len() {
            0..128 => 512,
            128..256 => 1024,
            256..512 => 2048,
            512..1024 => 4096,
            _ => 8192,
        };
        Self { source, newest: vec![0; slots], older: Box::new([0; HISTORY]) }
    }

    /// The hash of the four bytes at a position; of one where fewer are left. Bytes count as signed.
    fn slot(&self, at: usize) -> usize {
        let byte = |byte: &u8| i32::from(*byte as i8);
        let hash = match self.source.get(at..).unwrap_or(&[]) {
            [a, b, c, d, ..] => byte(a) << 6 ^ byte(b) << 4 ^ byte(c) << 2 ^ byte(d),
            [a, ..] => byte(a),
            [] => 0,
        };
        hash as usize & (self.newest.len() - 1)
    }

    fn add(&mut self, at: usize) {
        let slot = self.slot(at);
        if let Some(newest) = self.newest.get_mut(slot)
            && let Some(older) = self.older.get_mut(at % HISTORY)
        {
            *older = *newest;
            *newest = at as u32 + 1;
        }
    }

    /// Length and offset of the match that is taken at a position.
    fn find(&self, at: usize) -> Option<(usize, usize)> {
        let (mut best_len, mut best_offset) = (0, 0);
        let mut good = GOOD_MATCH;
        let mut next = *self.newest.get(self.slot(at))?;
        while let Some(candidate) = (next as usize).checked_sub(1) {
            let offset = at - candidate;
            if offset >= MAX_OFFSET {
                break;
            }
            let len = self.match_len(candidate, at);
            if len > best_len {
                (best_len, best_offset) = (len, offset);
            }
            next = *self.older.get(candidate % HISTORY)?;
            if best_len >= good {
                break;
            }
            good -= good * 10 / 100;
        }
        if best_len > 2 { Some((best_len, best_offset)) } else { None }
    }

    fn match_len(&self, earlier: usize, at: usize) -> usize {
        let (earlier, here) = (self.source.get(earlier..).unwrap_or(&[]), self.source.get(at..).unwrap_or(&[]));
        earlier.iter().zip(here).take(MAX_MATCH).take_while(|(a, b)| a == b).count()
    }
}

/// Items with their control bytes.
#[derive(Default)]
struct Output {
    bytes: Vec<u8>,
    /// Where the current control byte is.
    control_at: usize,
    /// How many items it controls so far.
    items: u32,
}

impl Output {
    fn item(&mut self, is_tag: bool) {
        if self.items.is_multiple_of(8) {
            self.control_at = self.bytes.len();
            self.bytes.push(0);
            self.items = 0;
        }
        if let Some(control) = self.bytes.get_mut(self.control_at) {
            *control |= u8::from(is_tag) << self.items;
        }
        self.items += 1;
    }

    fn literal(&mut self, byte: u8) {
        self.item(false);
        self.bytes.push(byte);
    }

    fn tag(&mut self, len: usize, offset: usize) {
        self.item(true);
        let high = ((offset & 0xF00) >> 4) as u8;
        if len > 17 {
            self.bytes.extend_from_slice(&[high | 0x0F, offset as u8, (len - 18) as u8]);
        } else {
            self.bytes.extend_from_slice(&[high | (len - 3) as u8, offset as u8]);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
    use super::*;
    use crate::testing::Random;

    #[test]
    fn what_is_compressed_comes_back() {
        let mut random = Random::new(9);
        for round in 0..300 {
            let len = random.below(20_000);
            let letters = 1 + random.below(if round % 2 == 0 { 4 } else { 60 });
            let mut source = random.bytes(len);
            for byte in &mut source {
                *byte = 190 + *byte % letters as u8;
            }
            if let Some(data) = compress(&source) {
                assert!(data.len() * 4 < source.len() * 3 + 4);
                assert_eq!(decompress(&data, source.len()).unwrap(), source);
            }
        }
    }

    #[test]
    fn what_does_not_shrink_is_left_alone() {
        let mut random = Random::new(10);
        assert_eq!(compress(&random.bytes(5000)), None);
        assert_eq!(compress(&[7; 31]), None);
        assert!(compress(&[7; 32]).is_some());
        assert_eq!(compress(b""), None);
    }

    #[test]
    fn an_offset_beyond_what_is_there_is_corrupt() {
        for data in [&[1, 0x00, 0x01][..], &[2, b'a', 0x00, 0x02], &[2, b'a', 0x00, 0x00], &[1], &[2, b'a', 0x0F, 0x01]]
        {
            assert_eq!(decompress(data, 10), Err(CORRUPT), "{data:?}");
        }
        assert_eq!(decompress(&[2, b'a', 0x06, 0x01], 10).unwrap(), b"aaaaaaaaaa");
    }
}
