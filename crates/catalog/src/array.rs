//! Reading and writing the payload of array values, as far as the catalogs hold them.
//!
//! ```text
//!  payload (what follows the varlena length word; offsets on disk count from that word)
//!  0      4             8         12              12+4*ndim        12+8*ndim
//!  | ndim | dataoffset  | elemtype | dim[0..ndim]  | lbound[0..ndim] | null bitmap? | pad to 8 | elements … |
//!           0 = no nulls             one bit an element, 1 = not null, only if dataoffset != 0
//! ```
//!
//! An element of a varlena type carries its length header. `oidvector` and `int2vector` are arrays of one dimension.

use stegodon_format::ids::Oid;
use stegodon_types::{Align, Datum, Layout};

/// How an element lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElementForm {
    /// `typlen`.
    pub len: i16,
    /// `typalign`.
    pub align: Align,
    /// The layout to read it as.
    pub layout: Layout,
}

impl ElementForm {
    /// `oid`, `regproc`
    pub const OID: Self = Self { len: 4, align: Align::Int, layout: Layout::UInt32 };
    /// `int2`
    pub const INT2: Self = Self { len: 2, align: Align::Short, layout: Layout::Int16 };
    /// `float4`
    pub const FLOAT4: Self = Self { len: 4, align: Align::Int, layout: Layout::Float32 };
    /// `"char"`
    pub const CHAR: Self = Self { len: 1, align: Align::Char, layout: Layout::Char };
    /// `text`
    pub const TEXT: Self = Self { len: -1, align: Align::Int, layout: Layout::Bytes };
}

fn word(bytes: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// An array's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The elements' type.
    pub element: Oid,
    /// The number of elements over all dimensions.
    pub count: usize,
    /// Where the elements begin in the payload.
    pub data: usize,
    /// Where the null bitmap begins, where there is one.
    pub bitmap: Option<usize>,
}

/// Reads the header; `None` where it is damaged.
pub fn header(payload: &[u8]) -> Option<Header> {
    let ndim = usize::try_from(word(payload, 0)?).ok().filter(|&n| n <= 6)?;
    let data_offset = usize::try_from(word(payload, 4)?).ok()?;
    let element = Oid(word(payload, 8)? as u32);
    let mut count = usize::from(ndim > 0);
    for d in 0..ndim {
        let dim = usize::try_from(word(payload, 12 + 4 * d)?).ok()?;
        count = count.checked_mul(dim).filter(|&c| c <= payload.len().saturating_mul(8))?;
    }
    let lead = 12 + 8 * ndim;
    let (data, bitmap) = if data_offset == 0 {
        (Align::Double.up(lead + 4) - 4, None)
    } else {
        (data_offset.checked_sub(4)?, Some(lead))
    };
    if data > payload.len() && count > 0 {
        return None;
    }
    Some(Header { element, count, data, bitmap })
}

/// All elements in storage order; `None` where the payload is damaged or an element is toasted.
pub fn elements(payload: &[u8], form: ElementForm) -> Option<Vec<Option<Datum>>> {
    let head = header(payload)?;
    let mut at = head.data;
    let mut out = Vec::with_capacity(head.count);
    for i in 0..head.count {
        if let Some(bitmap) = head.bitmap {
            let byte = *payload.get(bitmap + i / 8)?;
            if byte >> (i % 8) & 1 == 0 {
                out.push(None);
                continue;
            }
        }
        let (value, next) = element(payload, at, form)?;
        out.push(Some(value));
        at = next;
    }
    Some(out)
}

/// One element at or after `at`, and where it ends.
fn element(payload: &[u8], at: usize, form: ElementForm) -> Option<(Datum, usize)> {
    // Alignment counts from the length word, four bytes before the payload.
    let aligned = form.align.up(at + 4) - 4;
    if form.len > 0 {
        let len = usize::from(form.len.unsigned_abs());
        let bytes = payload.get(aligned..aligned.checked_add(len)?)?;
        return Some((fixed(bytes, form.layout)?, aligned + len));
    }
    if form.len != -1 {
        return None;
    }
    // A byte that is not padding is a short header, which needs no alignment.
    let first = *payload.get(at)?;
    if first != 0 && first & 1 == 1 {
        let len = usize::from(first >> 1);
        let end = at.checked_add(len)?;
        return Some((Datum::bytes(payload.get(at + 1..end)?), end));
    }
    let head = word(payload, aligned)? as u32;
    if head & 3 != 0 {
        return None;
    }
    let end = aligned.checked_add((head >> 2) as usize)?;
    Some((Datum::bytes(payload.get(aligned + 4..end)?), end))
}

/// A value of fixed length from its bytes.
pub fn fixed(bytes: &[u8], layout: Layout) -> Option<Datum> {
    Some(match layout {
        Layout::Bool => Datum::Bool(*bytes.first()? != 0),
        Layout::Char => Datum::Char(*bytes.first()?),
        Layout::Int16 => Datum::Int16(i16::from_le_bytes(bytes.try_into().ok()?)),
        Layout::Int32 => Datum::Int32(i32::from_le_bytes(bytes.try_into().ok()?)),
        Layout::UInt32 => Datum::UInt32(u32::from_le_bytes(bytes.try_into().ok()?)),
        Layout::Int64 => Datum::Int64(i64::from_le_bytes(bytes.try_into().ok()?)),
        Layout::UInt64 => Datum::UInt64(u64::from_le_bytes(bytes.try_into().ok()?)),
        Layout::Float32 => Datum::Float32(f32::from_le_bytes(bytes.try_into().ok()?)),
        Layout::Float64 => Datum::Float64(f64::from_le_bytes(bytes.try_into().ok()?)),
        Layout::Fixed(n) => Datum::bytes((bytes.len() == usize::from(n)).then_some(bytes)?),
        Layout::Name => Datum::bytes(bytes.split(|&b| b == 0).next()?),
        Layout::Bytes => return None,
    })
}

/// The payload of a one-dimensional array without nulls, from its elements' bytes (varlena ones without header).
pub fn build(element_type: Oid, form: ElementForm, lower_bound: i32, items: &[Vec<u8>]) -> Vec<u8> {
    let ndim = i32::from(!items.is_empty());
    let mut out = Vec::new();
    out.extend(ndim.to_le_bytes());
    out.extend(0_i32.to_le_bytes());
    out.extend(element_type.0.to_le_bytes());
    if ndim == 1 {
        out.extend((items.len() as i32).to_le_bytes());
        out.extend(lower_bound.to_le_bytes());
    }
    out.resize(Align::Double.up(out.len() + 4) - 4, 0);
    for item in items {
        out.resize(form.align.up(out.len() + 4) - 4, 0);
        if form.len == -1 {
            out.extend((((item.len() + 4) as u32) << 2).to_le_bytes());
        }
        out.extend(item);
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_built_is_read() {
        let items = vec![b"a".to_vec(), b"".to_vec(), b"sixteen letters!".to_vec()];
        let payload = build(Oid(25), ElementForm::TEXT, 1, &items);
        let read = elements(&payload, ElementForm::TEXT).unwrap();
        assert_eq!(read, items.iter().map(|i| Some(Datum::bytes(i))).collect::<Vec<_>>());
        assert_eq!(header(&payload).unwrap().element, Oid(25));
    }

    #[test]
    fn damage_is_refused() {
        let payload = build(Oid(26), ElementForm::OID, 0, &[vec![1, 0, 0, 0], vec![2, 0, 0, 0]]);
        for cut in 0..payload.len() {
            assert_eq!(elements(payload.get(..cut).unwrap(), ElementForm::OID), None, "cut at {cut}");
        }
        let mut huge = payload.clone();
        huge.splice(12..16, i32::MAX.to_le_bytes());
        assert_eq!(elements(&huge, ElementForm::OID), None);
    }
}
