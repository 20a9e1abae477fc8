//! Byte strings: parts, bits, text encodings, MD5.

#![allow(clippy::unnecessary_wraps, reason = "kernels have one shape")]

use memchr::memmem;
use stegodon_types::settings::Encoding;
use stegodon_types::{SqlError, SqlResult, SqlState};

use super::text::substring;
use crate::adapt::*;
use crate::kernel::Entry;

/// A byte string's characters are its bytes.
const BYTES: Encoding = Encoding::SqlAscii;

fn append(out: &mut Vec<u8>, bytes: &[u8]) -> SqlResult<()> {
    out.extend_from_slice(bytes);
    Ok(())
}

fn index_error(index: i64, last: i64) -> SqlError {
    SqlError::new(SqlState::ArraySubscriptError, format!("index {index} out of valid range, 0..{last}"))
}

fn byte(bytes: &[u8], n: i64) -> SqlResult<u8> {
    let found = usize::try_from(n).ok().and_then(|n| bytes.get(n).copied());
    found.ok_or_else(|| index_error(n, bytes.len() as i64 - 1))
}

fn bit(bytes: &[u8], n: i64) -> SqlResult<i32> {
    let last = bytes.len() as i64 * 8 - 1;
    if !(0..=last).contains(&n) {
        return Err(index_error(n, last));
    }
    Ok(i32::from(byte(bytes, n / 8)? >> (n % 8) & 1))
}

fn overlay(bytes: &[u8], new: &[u8], start: i32, length: i32, out: &mut Vec<u8>) -> SqlResult<()> {
    if start <= 0 {
        return Err(SqlError::new(SqlState::SubstringError, "negative substring length not allowed"));
    }
    let after = start.checked_add(length).ok_or_else(super::int::int4_range)?;
    out.extend_from_slice(substring(BYTES, bytes, 1, Some(start - 1))?);
    out.extend_from_slice(new);
    append(out, substring(BYTES, bytes, after, None)?)
}

fn trim<'a>(bytes: &'a [u8], set: &[u8], left: bool, right: bool) -> &'a [u8] {
    let keep = |b: &u8| !set.contains(b);
    let start = if left { bytes.iter().position(keep).unwrap_or(bytes.len()) } else { 0 };
    let end = if right { bytes.iter().rposition(keep).map_or(start, |at| at + 1) } else { bytes.len() };
    bytes.get(start..end.max(start)).unwrap_or_default()
}

const HEX: &[u8; 16] = b"0123456789abcdef";

fn hex(bytes: &[u8], out: &mut Vec<u8>) {
    for b in bytes {
        for digit in [b >> 4, b & 15] {
            out.push(HEX.get(usize::from(digit)).copied().unwrap_or(b'0'));
        }
    }
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Base 64 with a newline after each 76 characters.
fn base64(bytes: &[u8], out: &mut Vec<u8>) {
    let mut column = 0;
    for chunk in bytes.chunks(3) {
        let n = chunk.iter().enumerate().fold(0_u32, |n, (i, b)| n | u32::from(*b) << (16 - 8 * i));
        for i in 0..4 {
            let digit = (n >> (18 - 6 * i) & 63) as usize;
            out.push(if i <= chunk.len() { BASE64.get(digit).copied().unwrap_or(b'=') } else { b'=' });
        }
        column += 4;
        // As PostgreSQL does it: after each full line that does not end in padding, even if nothing follows.
        if column == 76 && chunk.len() == 3 {
            out.push(b'\n');
            column = 0;
        }
    }
}

fn escape(bytes: &[u8], out: &mut Vec<u8>) {
    for &b in bytes {
        match b {
            b'\\' => out.extend_from_slice(b"\\\\"),
            0 | 0x80.. => {
                out.push(b'\\');
                out.extend([b >> 6, b >> 3 & 7, b & 7].map(|d| b'0' + d));
            }
            b => out.push(b),
        }
    }
}

fn unrecognized(name: &[u8]) -> SqlError {
    let name = String::from_utf8_lossy(name);
    SqlError::new(SqlState::InvalidParameterValue, format!("unrecognized encoding: \"{name}\""))
}

fn encode(bytes: &[u8], how: &[u8], out: &mut Vec<u8>) -> SqlResult<()> {
    match how.to_ascii_lowercase().as_slice() {
        b"hex" => hex(bytes, out),
        b"base64" => base64(bytes, out),
        b"escape" => escape(bytes, out),
        _ => return Err(unrecognized(how)),
    }
    Ok(())
}

fn decode(text: &[u8], how: &[u8], out: &mut Vec<u8>) -> SqlResult<()> {
    let invalid = |message: String| SqlError::new(SqlState::InvalidParameterValue, message);
    match how.to_ascii_lowercase().as_slice() {
        b"hex" => {
            let mut high: Option<u8> = None;
            let mut at = 0;
            while let Some(&b) = text.get(at) {
                if high.is_none() && matches!(b, b' ' | b'\n' | b'\t' | b'\r') {
                    at += 1;
                    continue;
                }
                let Some(digit) = char::from(b).to_digit(16) else {
                    let rest = text.get(at..).unwrap_or_default();
                    let c = String::from_utf8_lossy(
                        rest.get(..super::text::char_len(Encoding::Utf8, rest)).unwrap_or_default(),
                    );
                    return Err(invalid(format!("invalid hexadecimal digit: \"{c}\"")));
                };
                match high.take() {
                    None => high = Some(digit as u8),
                    Some(high) => out.push(high << 4 | digit as u8),
                }
                at += 1;
            }
            if high.is_some() {
                return Err(invalid("invalid hexadecimal data: odd number of digits".into()));
            }
            Ok(())
        }
        b"base64" => decode_base64(text, out),
        b"escape" => Err(SqlError::unsupported("decoding \"escape\"")),
        _ => Err(unrecognized(how)),
    }
}

fn decode_base64(text: &[u8], out: &mut Vec<u8>) -> SqlResult<()> {
    let invalid = |message: String| SqlError::new(SqlState::InvalidParameterValue, message);
    let (mut bits, mut count, mut end) = (0_u32, 0, 0);
    for (at, &b) in text.iter().enumerate() {
        if matches!(b, b' ' | b'\t' | b'\n' | b'\r') {
            continue;
        }
        let digit = if b == b'=' {
            if end == 0 {
                end = match count {
                    2 => 1,
                    3 => 2,
                    _ => return Err(invalid("unexpected \"=\" while decoding base64 sequence".into())),
                };
            }
            0
        } else {
            match BASE64.iter().position(|d| *d == b) {
                Some(d) if end == 0 => d as u32,
                Some(_) => return Err(SqlError::unsupported("base64 data after its end")),
                None => {
                    let rest = text.get(at..).unwrap_or_default();
                    let c = String::from_utf8_lossy(
                        rest.get(..super::text::char_len(Encoding::Utf8, rest)).unwrap_or_default(),
                    );
                    return Err(invalid(format!("invalid symbol \"{c}\" found while decoding base64 sequence")));
                }
            }
        };
        bits = bits << 6 | digit;
        count += 1;
        if count == 4 {
            let bytes = bits.to_be_bytes();
            let keep = if end == 0 { 3 } else { end };
            out.extend(bytes.iter().skip(1).take(keep));
            (bits, count) = (0, 0);
        }
    }
    if count != 0 {
        return Err(invalid("invalid base64 end sequence".into())
            .hint("Input data is missing padding, is truncated, or is otherwise corrupted."));
    }
    Ok(())
}

/// MD5 (RFC 1321).
fn md5(message: &[u8]) -> [u8; 16] {
    const SHIFTS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];
    let table: [u32; 64] = std::array::from_fn(|i| ((i as f64 + 1.0).sin().abs() * 4_294_967_296.0) as u32);
    let mut state = [0x6745_2301_u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    let mut padded = message.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend_from_slice(&(message.len() as u64).wrapping_mul(8).to_le_bytes());
    for block in padded.chunks_exact(64) {
        let words: Vec<u32> =
            block.chunks_exact(4).map(|w| w.iter().rev().fold(0, |n, b| n << 8 | u32::from(*b))).collect();
        let [mut a, mut b, mut c, mut d] = state;
        for (i, constant) in table.iter().enumerate() {
            let (mixed, word) = match i / 16 {
                0 => ((b & c) | (!b & d), i),
                1 => ((d & b) | (!d & c), (5 * i + 1) % 16),
                2 => (b ^ c ^ d, (3 * i + 5) % 16),
                _ => (c ^ (b | !d), 7 * i % 16),
            };
            let shift = SHIFTS.get(i / 16).and_then(|s| s.get(i % 4)).copied().unwrap_or(0);
            let sum = a.wrapping_add(mixed).wrapping_add(*constant).wrapping_add(words.get(word).copied().unwrap_or(0));
            (a, d, c, b) = (d, c, b, b.wrapping_add(sum.rotate_left(shift)));
        }
        for (s, v) in state.iter_mut().zip([a, b, c, d]) {
            *s = s.wrapping_add(v);
        }
    }
    let mut digest = [0; 16];
    for (to, from) in digest.iter_mut().zip(state.iter().flat_map(|s| s.to_le_bytes())) {
        *to = from;
    }
    digest
}

/// Byte strings.
pub(crate) static KERNELS: &[Entry] = &[
    (2010, |c| map1(c, |a: &[u8]| Ok(a.len() as i32))),
    (720, |c| map1(c, |a: &[u8]| Ok(a.len() as i32))),
    (1810, |c| map1(c, |a: &[u8]| Ok(a.len() as i32 * 8))),
    (6163, |c| map1(c, |a: &[u8]| Ok(a.iter().map(|b| i64::from(b.count_ones())).sum::<i64>()))),
    (2011, |c| {
        write2(c, |a: &[u8], b: &[u8], out| {
            out.extend_from_slice(a);
            append(out, b)
        })
    }),
    (2085, |c| write3(c, |a: &[u8], s: i32, n: i32, out| append(out, substring(BYTES, a, s, Some(n))?))),
    (2012, |c| write3(c, |a: &[u8], s: i32, n: i32, out| append(out, substring(BYTES, a, s, Some(n))?))),
    (2086, |c| write2(c, |a: &[u8], s: i32, out| append(out, substring(BYTES, a, s, None)?))),
    (2013, |c| write2(c, |a: &[u8], s: i32, out| append(out, substring(BYTES, a, s, None)?))),
    (2014, |c| map2(c, |a: &[u8], b: &[u8]| Ok(memmem::find(a, b).map_or(0, |at| at as i32 + 1)))),
    (749, |c| write4(c, |a: &[u8], b: &[u8], s: i32, n: i32, out| overlay(a, b, s, n, out))),
    (752, |c| write3(c, |a: &[u8], b: &[u8], s: i32, out| overlay(a, b, s, b.len() as i32, out))),
    (721, |c| map2(c, |a: &[u8], n: i32| byte(a, i64::from(n)).map(i32::from))),
    (723, |c| map2(c, |a: &[u8], n: i64| bit(a, n))),
    (722, |c| {
        write3(c, |a: &[u8], n: i32, v: i32, out| {
            byte(a, i64::from(n))?;
            let start = out.len();
            out.extend_from_slice(a);
            if let Some(b) = out.get_mut(start + n as usize) {
                *b = v as u8;
            }
            Ok(())
        })
    }),
    (2015, |c| write2(c, |a: &[u8], s: &[u8], out| append(out, trim(a, s, true, true)))),
    (6195, |c| write2(c, |a: &[u8], s: &[u8], out| append(out, trim(a, s, true, false)))),
    (6196, |c| write2(c, |a: &[u8], s: &[u8], out| append(out, trim(a, s, false, true)))),
    (6382, |c| {
        write1(c, |a: &[u8], out: &mut Vec<u8>| {
            out.extend(a.iter().rev());
            Ok(())
        })
    }),
    (1946, |c| write2(c, |a: &[u8], how: &[u8], out| encode(a, how, out))),
    (1947, |c| write2(c, |a: &[u8], how: &[u8], out| decode(a, how, out))),
    (2311, |c| {
        write1(c, |a: &[u8], out| {
            hex(&md5(a), out);
            Ok(())
        })
    }),
    (2321, |c| {
        write1(c, |a: &[u8], out| {
            hex(&md5(a), out);
            Ok(())
        })
    }),
];
