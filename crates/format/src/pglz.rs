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
