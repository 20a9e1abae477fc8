//! The elements of array constants.
//!
//! ```text
//!  payload (what follows the length word)
//!  +--------+------------+-----------+----------------+------------------+---------------+----------
//!  | ndim 4 | dataoffset | elemtype 4| ndim * dims 4  | ndim * lbounds 4 | null bitmap ? | elements
//!  +--------+------------+-----------+----------------+------------------+---------------+----------
//! ```
//! `dataoffset` counts from the length word and is 0 where there are no NULLs, and then no bitmap.

use stegodon_catalog::Catalog;
use stegodon_format::ids::Oid;
use stegodon_types::{Datum, Layout};

fn word(b: &[u8], at: usize) -> Option<i32> {
    let bytes = b.get(at..at.checked_add(4)?)?;
    Some(i32::from_le_bytes(bytes.try_into().ok()?))
}

/// How many elements an array value has.
pub fn element_count(payload: &[u8]) -> Option<usize> {
    let ndim = usize::try_from(word(payload, 0)?).ok().filter(|n| *n <= 6)?;
    if ndim == 0 {
        return Some(0);
    }
    let mut n = 1usize;
    for d in 0..ndim {
        n = n.checked_mul(usize::try_from(word(payload, 12 + 4 * d)?).ok()?)?;
    }
    // An element takes a bit at least; what claims more than the payload can hold is damaged.
    (n <= payload.len().saturating_mul(8)).then_some(n)
}

/// The elements in order, `None` for NULLs. `None` altogether where the array cannot be read here.
pub fn elements(catalog: &Catalog, payload: &[u8]) -> Option<(Oid, Vec<Option<Datum>>)> {
    let ndim = usize::try_from(word(payload, 0)?).ok().filter(|n| *n <= 6)?;
    let element = Oid(word(payload, 8)? as u32);
    let count = element_count(payload)?;
    if count == 0 {
        return Some((element, Vec::new()));
    }
    let desc = catalog.type_desc(element)?;
    let layout = desc.layout?;
    let offset = usize::try_from(word(payload, 4)?).ok()?;
    let header = 12 + 8 * ndim;
    let has_nulls = offset != 0;
    // Offsets count from the length word, which the payload lacks.
    let mut at = if has_nulls { offset } else { (header + 4).div_ceil(8) * 8 };
    let mut out = Vec::with_capacity(count);
    for i in 0..count {
        if has_nulls && payload.get(header + i / 8)? >> (i % 8) & 1 == 0 {
            out.push(None);
            continue;
        }
        let rest = |at: usize| payload.get(at.checked_sub(4)?..);
        if desc.len == -1 {
            let first = *rest(at)?.first()?;
            // A short header has its low bit set and is never aligned.
            if first & 1 == 0 {
                at = desc.align.up(at);
            }
            let b = rest(at)?;
            let first = *b.first()?;
            let (head, total) = if first & 1 == 1 {
                (1, usize::from(first >> 1))
            } else if first & 3 == 0 {
                (4, (word(b, 0)? as u32 >> 2) as usize)
            } else {
                return None;
            };
            out.push(Some(Datum::bytes(b.get(head..total)?)));
            at += total;
            continue;
        }
        at = desc.align.up(at);
        let len = usize::try_from(desc.len).ok()?;
        let b = rest(at)?.get(..len)?;
        out.push(Some(fixed(layout, b)?));
        at += len;
    }
    Some((element, out))
}

fn fixed(layout: Layout, b: &[u8]) -> Option<Datum> {
    Some(match layout {
        Layout::Bool => Datum::Bool(*b.first()? != 0),
        Layout::Char => Datum::Char(*b.first()?),
        Layout::Int16 => Datum::Int16(i16::from_le_bytes(b.try_into().ok()?)),
        Layout::Int32 => Datum::Int32(i32::from_le_bytes(b.try_into().ok()?)),
        Layout::UInt32 => Datum::UInt32(u32::from_le_bytes(b.try_into().ok()?)),
        Layout::Int64 => Datum::Int64(i64::from_le_bytes(b.try_into().ok()?)),
        Layout::UInt64 => Datum::UInt64(u64::from_le_bytes(b.try_into().ok()?)),
        Layout::Float32 => Datum::Float32(f32::from_le_bytes(b.try_into().ok()?)),
        Layout::Float64 => Datum::Float64(f64::from_le_bytes(b.try_into().ok()?)),
        Layout::Fixed(_) => Datum::bytes(b),
        Layout::Name => Datum::bytes(b.split(|c| *c == 0).next()?),
        Layout::Bytes => return None,
    })
}
