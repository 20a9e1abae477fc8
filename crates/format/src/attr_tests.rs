#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
use super::*;
use crate::testing::{Random, layout};

/// Lays out random values as PostgreSQL's `heap_fill_tuple` does, from the rule in the module doc.
fn fill(layout: &TupleLayout, random: &mut Random) -> (Vec<u8>, Vec<u8>, Vec<Option<Vec<u8>>>) {
    let mut bytes = Vec::new();
    let mut nulls = vec![0u8; layout.len().div_ceil(8)];
    let mut values = Vec::new();
    for (index, attr) in layout.attrs().iter().enumerate() {
        if random.below(6) == 0 {
            values.push(None);
            continue;
        }
        nulls[index / 8] |= 1 << (index % 8);
        let (align, value) = match attr.len {
            -1 => {
                let len = if random.below(2) == 0 { random.below(126) } else { 127 + random.below(100) };
                let data = random.bytes(len);
                if len <= 126 {
                    (1, [vec![(len as u8 + 1) << 1 | 1], data].concat())
                } else {
                    (usize::from(attr.align), [((len as u32 + 4) << 2).to_le_bytes().to_vec(), data].concat())
                }
            }
            -2 => {
                let len = random.below(9);
                (usize::from(attr.align), [vec![b'c'; len], vec![0]].concat())
            }
            len => (usize::from(attr.align), random.bytes(len as usize)),
        };
        while bytes.len() % align != 0 {
            bytes.push(0);
        }
        bytes.extend_from_slice(&value);
        values.push(Some(value));
    }
    (bytes, nulls, values)
}

#[test]
fn reads_what_was_laid_out_in_any_order() {
    let mut random = Random::new(4);
    let kinds = ["1c", "2s", "4i", "8d", "-1i", "-1d", "-1s", "-1c", "64c", "6s", "12d", "-2c"];
    for _ in 0..3000 {
        let words: Vec<&str> = (0..=random.below(12)).map(|_| kinds[random.below(kinds.len())]).collect();
        let layout = layout(&words.join(" "));
        let (bytes, nulls, values) = fill(&layout, &mut random);
        let has_null = values.iter().any(Option::is_none);
        let natts = layout.len() as u16;
        let tuple = TupleData::new(&bytes, has_null.then_some(&nulls[..]), natts);
        let expected: Vec<Attr<'_>> =
            values.iter().map(|v| v.as_ref().map_or(Attr::Null, |v| Attr::Value(v))).collect();
        let mut out = vec![Attr::Missing; layout.len()];
        layout.deform(tuple, &mut out).unwrap();
        assert_eq!(out, expected, "{words:?}");
        let mut cursor = layout.cursor(tuple);
        for _ in 0..20 {
            let index = random.below(layout.len());
            assert_eq!(cursor.get(index).unwrap(), expected[index], "{words:?} {index}");
        }
        // A tuple cut short gives an error or the right value, nothing else.
        let cut = TupleData::new(&bytes[..random.below(bytes.len())], has_null.then_some(&nulls[..]), natts);
        let mut cursor = layout.cursor(cut);
        for (index, expected) in expected.iter().enumerate() {
            match cursor.get(index) {
                Ok(value) => assert_eq!(value, *expected),
                Err(error) => assert!(matches!(error, Error::Truncated { .. }), "{error}"),
            }
        }
    }
}

#[test]
fn a_null_shifts_what_comes_behind_it() {
    let layout = layout("4i 8d 4i");
    let bytes = [1, 0, 0, 0, 3, 0, 0, 0];
    let mut cursor = layout.cursor(TupleData::new(&bytes, Some(&[0b101]), 3));
    assert_eq!(cursor.get(2).unwrap(), Attr::Value(&bytes[4..]));
    assert_eq!(cursor.get(1).unwrap(), Attr::Null);
    assert_eq!(cursor.get(0).unwrap(), Attr::Value(&bytes[..4]));
}

#[test]
fn refuses_layouts_that_no_type_has() {
    for attr in [AttrLayout::new(0, 4), AttrLayout::new(-3, 4), AttrLayout::new(4, 3), AttrLayout::new(4, 0)] {
        assert!(TupleLayout::new([attr]).is_err());
    }
}

#[test]
fn random_bytes_never_panic() {
    let mut random = Random::new(5);
    let layout = layout("-1i 4i -2c -1d 8d -1c 64c 1c");
    for _ in 0..20_000 {
        let len = random.below(80);
        let bytes = random.bytes(len);
        let nulls = random.bytes(1);
        let tuple = TupleData::new(&bytes, Some(&nulls), random.below(12) as u16);
        let mut cursor = layout.cursor(tuple);
        for _ in 0..4 {
            let _ = cursor.get(random.below(9));
        }
    }
}
