//! Text: length, parts, search, padding, trimming. A character is a code point under UTF8, a byte under SQL_ASCII.

#![allow(clippy::unnecessary_wraps, reason = "kernels have one shape")]

use memchr::memmem;
use stegodon_types::scalar::text::{apply_bpchar, apply_varchar, char_count, char_prefix_len, clip, trim_blanks};
use stegodon_types::settings::Encoding;
use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::adapt::*;
use crate::kernel::Entry;
use crate::{Call, Column};

/// The greatest size of one value: 1 GB less one byte, less the length word.
const MAX_BYTES: usize = 0x3fff_ffff - 4;

fn encoding(call: &Call<'_>) -> Encoding {
    call.cx.settings.encoding
}

fn too_large() -> SqlError {
    SqlError::new(SqlState::ProgramLimitExceeded, "requested length too large")
}

fn negative_length() -> SqlError {
    SqlError::new(SqlState::SubstringError, "negative substring length not allowed")
}

/// How many bytes the first character takes.
pub(crate) fn char_len(encoding: Encoding, text: &[u8]) -> usize {
    match (encoding, text.first()) {
        (_, None) => 0,
        (Encoding::SqlAscii, _) => 1,
        (Encoding::Utf8, Some(b)) => {
            let n = match b {
                0xC0..=0xDF => 2,
                0xE0..=0xEF => 3,
                0xF0..=0xF7 => 4,
                _ => 1,
            };
            n.min(text.len())
        }
    }
}

/// A text's characters, as byte strings.
pub(crate) fn chars(encoding: Encoding, text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (head, tail) = rest.split_at(char_len(encoding, rest));
        rest = tail;
        Some(head)
    })
}

fn skip(encoding: Encoding, text: &[u8], n: usize) -> SqlResult<&[u8]> {
    Ok(text.get(char_prefix_len(encoding, text, n)?..).unwrap_or_default())
}

fn first(encoding: Encoding, text: &[u8], n: usize) -> SqlResult<&[u8]> {
    Ok(text.get(..char_prefix_len(encoding, text, n)?).unwrap_or_default())
}

/// `substring(text from start for length)`; no length reaches to the end.
pub(crate) fn substring(encoding: Encoding, text: &[u8], start: i32, length: Option<i32>) -> SqlResult<&[u8]> {
    let from = start.max(1);
    let length = match length {
        None => None,
        Some(n) if n < 0 => return Err(negative_length()),
        // Past the greatest integer is past the end of any text.
        Some(n) => match start.checked_add(n) {
            None => None,
            Some(end) if end < 1 => return Ok(b""),
            Some(end) => Some((end - from).max(0) as usize),
        },
    };
    let rest = skip(encoding, text, (from - 1) as usize)?;
    match length {
        None => Ok(rest),
        Some(n) => first(encoding, rest, n),
    }
}

/// `overlay(text placing new from start for length)`.
fn overlay(encoding: Encoding, text: &[u8], new: &[u8], start: i32, length: i32, out: &mut Vec<u8>) -> SqlResult<()> {
    if start <= 0 {
        return Err(negative_length());
    }
    let after = start.checked_add(length).ok_or_else(super::int::int4_range)?;
    out.extend_from_slice(substring(encoding, text, 1, Some(start - 1))?);
    out.extend_from_slice(new);
    out.extend_from_slice(substring(encoding, text, after, None)?);
    Ok(())
}

/// Where a text first occurs in another, in characters from 1; 0 for nowhere.
fn position(call: &Call<'_>) -> SqlResult<Column> {
    call.info.collation.for_equality().check_equality()?;
    map2(call, |text: &[u8], sought: &[u8]| {
        Ok(match memmem::find(text, sought) {
            None => 0,
            Some(at) => char_count(encoding(call), text.get(..at).unwrap_or_default())? as i32 + 1,
        })
    })
}

fn replace(call: &Call<'_>) -> SqlResult<Column> {
    call.info.collation.for_equality().check_equality()?;
    write3(call, |text: &[u8], from: &[u8], to: &[u8], out| {
        if from.is_empty() {
            out.extend_from_slice(text);
            return Ok(());
        }
        let mut last = 0;
        for at in memmem::find_iter(text, from) {
            out.extend_from_slice(text.get(last..at).unwrap_or_default());
            out.extend_from_slice(to);
            last = at + from.len();
        }
        out.extend_from_slice(text.get(last..).unwrap_or_default());
        Ok(())
    })
}

/// `left(text, n)`: all but the last |n| where n is negative.
fn left(encoding: Encoding, text: &[u8], n: i32) -> SqlResult<&[u8]> {
    if n >= 0 {
        return first(encoding, text, n as usize);
    }
    let keep = char_count(encoding, text)?.saturating_sub(n.unsigned_abs() as usize);
    first(encoding, text, keep)
}

/// `right(text, n)`: all but the first |n| where n is negative.
fn right(encoding: Encoding, text: &[u8], n: i32) -> SqlResult<&[u8]> {
    let drop = match n {
        // Its negation is itself, and PostgreSQL drops nothing.
        i32::MIN => 0,
        n if n < 0 => n.unsigned_abs() as usize,
        _ => char_count(encoding, text)?.saturating_sub(n as usize),
    };
    skip(encoding, text, drop)
}

/// `lpad` and `rpad`.
fn pad(encoding: Encoding, text: &[u8], length: i32, fill: &[u8], front: bool, out: &mut Vec<u8>) -> SqlResult<()> {
    let length = length.max(0) as usize;
    let have = char_count(encoding, text)?;
    if have >= length || fill.is_empty() {
        out.extend_from_slice(first(encoding, text, length)?);
        return Ok(());
    }
    let wanted = length - have;
    // PostgreSQL reckons with the widest character.
    let widest = if encoding == Encoding::Utf8 { 4 } else { 1 };
    if length.checked_mul(widest).is_none_or(|n| n > MAX_BYTES) {
        return Err(too_large());
    }
    if !front {
        out.extend_from_slice(text);
    }
    // A damaged text may have bytes and no characters.
    let fill_chars = char_count(encoding, fill)?.max(1);
    for _ in 0..wanted / fill_chars {
        out.extend_from_slice(fill);
    }
    out.extend_from_slice(first(encoding, fill, wanted % fill_chars)?);
    if front {
        out.extend_from_slice(text);
    }
    Ok(())
}

/// `trim`: drops characters of a set from the ends asked for.
fn trim<'a>(encoding: Encoding, text: &'a [u8], set: &[u8], left: bool, right: bool) -> &'a [u8] {
    let within = |c: &[u8]| chars(encoding, set).any(|s| s == c);
    let mut text = text;
    if left {
        loop {
            let (head, tail) = text.split_at(char_len(encoding, text));
            if head.is_empty() || !within(head) {
                break;
            }
            text = tail;
        }
    }
    if right {
        while !text.is_empty() {
            let mut at = text.len() - 1;
            while encoding == Encoding::Utf8 && at > 0 && text.get(at).is_some_and(|b| b & 0xC0 == 0x80) {
                at -= 1;
            }
            let (head, last) = text.split_at(at);
            if !within(last) {
                break;
            }
            text = head;
        }
    }
    text
}

/// `split_part(text, separator, n)`.
fn split_part<'a>(text: &'a [u8], separator: &[u8], n: i32) -> SqlResult<&'a [u8]> {
    if n == 0 {
        return Err(SqlError::new(SqlState::InvalidParameterValue, "field position must not be zero"));
    }
    if text.is_empty() {
        return Ok(b"");
    }
    if separator.is_empty() {
        return Ok(if n == 1 || n == -1 { text } else { b"" });
    }
    let n = if n > 0 {
        n as usize
    } else {
        let fields = memmem::find_iter(text, separator).count() + 1;
        match (fields + 1).checked_sub(n.unsigned_abs() as usize) {
            None | Some(0) => return Ok(b""),
            Some(n) => n,
        }
    };
    let mut start = 0;
    for (i, at) in memmem::find_iter(text, separator).enumerate() {
        if i + 1 == n {
            return Ok(text.get(start..at).unwrap_or_default());
        }
        start = at + separator.len();
    }
    let fields = memmem::find_iter(text, separator).count() + 1;
    Ok(if n == fields { text.get(start..).unwrap_or_default() } else { b"" })
}

fn repeat(text: &[u8], n: i32, out: &mut Vec<u8>) -> SqlResult<()> {
    let n = n.max(0) as usize;
    if text.len().checked_mul(n).is_none_or(|total| total > MAX_BYTES) {
        return Err(too_large());
    }
    for _ in 0..n {
        out.extend_from_slice(text);
    }
    Ok(())
}

fn reverse(encoding: Encoding, text: &[u8], out: &mut Vec<u8>) {
    if encoding == Encoding::SqlAscii || text.is_ascii() {
        out.extend(text.iter().rev());
        return;
    }
    let start = out.len();
    for c in chars(encoding, text) {
        out.extend(c.iter().rev());
    }
    if let Some(new) = out.get_mut(start..) {
        new.reverse();
    }
}

/// `translate(text, from, to)`: characters of `from` become those of `to` at the same place, or go.
fn translate(encoding: Encoding, text: &[u8], from: &[u8], to: &[u8], out: &mut Vec<u8>) {
    for c in chars(encoding, text) {
        match chars(encoding, from).position(|f| f == c) {
            None => out.extend_from_slice(c),
            Some(at) => out.extend_from_slice(chars(encoding, to).nth(at).unwrap_or_default()),
        }
    }
}

fn ascii(encoding: Encoding, text: &[u8]) -> SqlResult<i32> {
    let c = text.get(..char_len(encoding, text)).unwrap_or_default();
    match (encoding, c) {
        (_, []) => Ok(0),
        (Encoding::SqlAscii, [b, ..]) => Ok(i32::from(*b)),
        (Encoding::Utf8, _) => match std::str::from_utf8(c).ok().and_then(|s| s.chars().next()) {
            Some(c) => Ok(c as i32),
            None => {
                Err(SqlError::new(SqlState::CharacterNotInRepertoire, "invalid byte sequence for encoding \"UTF8\""))
            }
        },
    }
}

fn chr(encoding: Encoding, code: i32, out: &mut Vec<u8>) -> SqlResult<()> {
    let limit = |message: String| SqlError::new(SqlState::ProgramLimitExceeded, message);
    if code < 0 {
        return Err(SqlError::new(SqlState::InvalidParameterValue, "character number must be positive"));
    }
    if code == 0 {
        return Err(limit("null character not permitted".into()));
    }
    match encoding {
        Encoding::SqlAscii => match u8::try_from(code) {
            Ok(b) => out.push(b),
            Err(_) => return Err(limit(format!("requested character too large for encoding: {code}"))),
        },
        Encoding::Utf8 => {
            if code > 0x0010_ffff {
                return Err(limit(format!("requested character too large for encoding: {code}")));
            }
            let Some(c) = char::from_u32(code as u32) else {
                return Err(limit(format!("requested character not valid for encoding: {code}")));
            };
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    Ok(())
}

/// Text in another base, of the bits.
fn radix(value: u64, bits: u32, out: &mut Vec<u8>) {
    let start = out.len();
    let mut v = value;
    loop {
        let digit = (v & ((1 << bits) - 1)) as u8;
        out.push(if digit < 10 { b'0' + digit } else { b'a' + digit - 10 });
        v >>= bits;
        if v == 0 {
            break;
        }
    }
    if let Some(new) = out.get_mut(start..) {
        new.reverse();
    }
}

fn append(out: &mut Vec<u8>, text: &[u8]) -> SqlResult<()> {
    out.extend_from_slice(text);
    Ok(())
}

/// Length and parts.
pub(crate) static PARTS: &[Entry] = &[
    (1257, |c| map1(c, |a: &[u8]| Ok(char_count(encoding(c), a)? as i32))),
    (1317, |c| map1(c, |a: &[u8]| Ok(char_count(encoding(c), a)? as i32))),
    (1369, |c| map1(c, |a: &[u8]| Ok(char_count(encoding(c), a)? as i32))),
    (1381, |c| map1(c, |a: &[u8]| Ok(char_count(encoding(c), a)? as i32))),
    (1318, |c| map1(c, |a: &[u8]| Ok(char_count(encoding(c), trim_blanks(a))? as i32))),
    (1367, |c| map1(c, |a: &[u8]| Ok(char_count(encoding(c), trim_blanks(a))? as i32))),
    (1372, |c| map1(c, |a: &[u8]| Ok(char_count(encoding(c), trim_blanks(a))? as i32))),
    (1374, |c| map1(c, |a: &[u8]| Ok(a.len() as i32))),
    (1375, |c| map1(c, |a: &[u8]| Ok(a.len() as i32))),
    (1811, |c| map1(c, |a: &[u8]| Ok(a.len() as i32 * 8))),
    (877, |c| write3(c, |a: &[u8], s: i32, n: i32, out| append(out, substring(encoding(c), a, s, Some(n))?))),
    (936, |c| write3(c, |a: &[u8], s: i32, n: i32, out| append(out, substring(encoding(c), a, s, Some(n))?))),
    (883, |c| write2(c, |a: &[u8], s: i32, out| append(out, substring(encoding(c), a, s, None)?))),
    (937, |c| write2(c, |a: &[u8], s: i32, out| append(out, substring(encoding(c), a, s, None)?))),
    (1404, |c| write4(c, |a: &[u8], b: &[u8], s: i32, n: i32, out| overlay(encoding(c), a, b, s, n, out))),
    (1405, |c| {
        write3(c, |a: &[u8], b: &[u8], s: i32, out| {
            overlay(encoding(c), a, b, s, char_count(encoding(c), b)? as i32, out)
        })
    }),
    (3060, |c| write2(c, |a: &[u8], n: i32, out| append(out, left(encoding(c), a, n)?))),
    (3061, |c| write2(c, |a: &[u8], n: i32, out| append(out, right(encoding(c), a, n)?))),
    (2088, |c| {
        c.info.collation.for_equality().check_equality()?;
        write3(c, |a: &[u8], b: &[u8], n: i32, out| append(out, split_part(a, b, n)?))
    }),
    (849, position),
    (868, position),
    (3696, |c| {
        c.info.collation.for_equality().check_equality()?;
        map2(c, |a: &[u8], b: &[u8]| Ok(a.starts_with(b)))
    }),
    (1620, |c| map1(c, |a: &[u8]| ascii(encoding(c), a))),
];

/// New text.
pub(crate) static MAKING: &[Entry] = &[
    (1258, |c| {
        write2(c, |a: &[u8], b: &[u8], out| {
            out.extend_from_slice(a);
            append(out, b)
        })
    }),
    (2087, replace),
    (873, |c| write3(c, |a: &[u8], n: i32, f: &[u8], out| pad(encoding(c), a, n, f, true, out))),
    (879, |c| write2(c, |a: &[u8], n: i32, out| pad(encoding(c), a, n, b" ", true, out))),
    (874, |c| write3(c, |a: &[u8], n: i32, f: &[u8], out| pad(encoding(c), a, n, f, false, out))),
    (880, |c| write2(c, |a: &[u8], n: i32, out| pad(encoding(c), a, n, b" ", false, out))),
    (884, |c| write2(c, |a: &[u8], s: &[u8], out| append(out, trim(encoding(c), a, s, true, true)))),
    (885, |c| write1(c, |a: &[u8], out| append(out, trim(encoding(c), a, b" ", true, true)))),
    (875, |c| write2(c, |a: &[u8], s: &[u8], out| append(out, trim(encoding(c), a, s, true, false)))),
    (881, |c| write1(c, |a: &[u8], out| append(out, trim(encoding(c), a, b" ", true, false)))),
    (876, |c| write2(c, |a: &[u8], s: &[u8], out| append(out, trim(encoding(c), a, s, false, true)))),
    (882, |c| write1(c, |a: &[u8], out| append(out, trim(encoding(c), a, b" ", false, true)))),
    (1622, |c| write2(c, |a: &[u8], n: i32, out| repeat(a, n, out))),
    (3062, |c| {
        write1(c, |a: &[u8], out| {
            reverse(encoding(c), a, out);
            Ok(())
        })
    }),
    (878, |c| {
        write3(c, |a: &[u8], f: &[u8], t: &[u8], out| {
            translate(encoding(c), a, f, t, out);
            Ok(())
        })
    }),
    (1621, |c| write1(c, |n: i32, out| chr(encoding(c), n, out))),
    (2089, |c| {
        write1(c, |n: i32, out: &mut Vec<u8>| {
            radix(u64::from(n as u32), 4, out);
            Ok(())
        })
    }),
    (2090, |c| {
        write1(c, |n: i64, out: &mut Vec<u8>| {
            radix(n as u64, 4, out);
            Ok(())
        })
    }),
    (6330, |c| {
        write1(c, |n: i32, out: &mut Vec<u8>| {
            radix(u64::from(n as u32), 1, out);
            Ok(())
        })
    }),
    (6331, |c| {
        write1(c, |n: i64, out: &mut Vec<u8>| {
            radix(n as u64, 1, out);
            Ok(())
        })
    }),
    (6332, |c| {
        write1(c, |n: i32, out: &mut Vec<u8>| {
            radix(u64::from(n as u32), 3, out);
            Ok(())
        })
    }),
    (6333, |c| {
        write1(c, |n: i64, out: &mut Vec<u8>| {
            radix(n as u64, 3, out);
            Ok(())
        })
    }),
    // Casts: varchar and bpchar to a length, bpchar to text, name and back.
    (669, |c| {
        write3(c, |a: &[u8], typmod: i32, explicit: bool, out| {
            append(out, apply_varchar(encoding(c), a, typmod, explicit)?)
        })
    }),
    (668, |c| {
        write3(c, |a: &[u8], typmod: i32, explicit: bool, out| {
            append(out, &apply_bpchar(encoding(c), a, typmod, explicit)?)
        })
    }),
    (401, |c| write1(c, |a: &[u8], out| append(out, trim_blanks(a)))),
    (406, |c| write1(c, |a: &[u8], out| append(out, a))),
    (408, |c| write1(c, |a: &[u8], out| append(out, a))),
    (1401, |c| write1(c, |a: &[u8], out| append(out, a))),
    (407, |c| write1(c, |a: &[u8], out| append(out, clip(encoding(c), a, 63)))),
    (1400, |c| write1(c, |a: &[u8], out| append(out, clip(encoding(c), a, 63)))),
    (409, |c| write1(c, |a: &[u8], out| append(out, trim_blanks(clip(encoding(c), a, 63))))),
    (944, |c| map1(c, |a: &[u8]| Ok(a.first().copied().unwrap_or(0)))),
    (946, |c| {
        write1(c, |v: u8, out: &mut Vec<u8>| {
            if v != 0 {
                out.push(v);
            }
            Ok(())
        })
    }),
];
