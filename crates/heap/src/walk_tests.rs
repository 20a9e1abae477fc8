//! The walk finds what format's cursor finds, over random layouts, tuples and damage.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use stegodon_format::attr::{Attr, TupleLayout};
use stegodon_format::ids::BlockNumber;
use stegodon_format::page::{ItemId, ItemState, Page};

use super::*;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % limit
    }
}

/// A well-formed value, aligned as it should be, at the end of `values`.
fn append(values: &mut Vec<u8>, attr: AttrLayout, random: &mut Random) {
    let pad = |values: &mut Vec<u8>| values.resize(values.len().next_multiple_of(attr.align.into()), 0);
    match attr.len {
        -1 if random.below(2) == 0 => {
            let len = random.below(20);
            values.push(((len + 1) << 1 | 1) as u8);
            values.extend((0..len).map(|_| random.below(256) as u8));
        }
        -1 => {
            let len = random.below(300);
            pad(values);
            values.extend((((len + 4) as u32) << 2).to_le_bytes());
            values.extend((0..len).map(|_| random.below(256) as u8));
        }
        -2 => {
            pad(values);
            let len = random.below(10);
            values.extend((0..len).map(|_| 1 + random.below(255) as u8));
            values.push(0);
        }
        len => {
            pad(values);
            values.extend((0..len).map(|_| random.below(256) as u8));
        }
    }
}

fn page(values: &[u8], natts: u16, nulls: Option<&[u8]>) -> Page {
    let mut item = vec![0u8; 23];
    item[18..20].copy_from_slice(&natts.to_le_bytes());
    item[20] = u8::from(nulls.is_some());
    item.extend(nulls.unwrap_or(&[]));
    item.resize(item.len().next_multiple_of(8), 0);
    item[22] = item.len() as u8;
    item.extend(values);
    let upper = (8192 - item.len()) & !7;
    let mut page = Page::zeroed();
    let bytes = page.bytes_mut();
    bytes[upper..upper + item.len()].copy_from_slice(&item);
    for (at, value) in [(12, 28), (14, upper as u16), (16, 8192), (18, 0x2004)] {
        bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }
    bytes[24..28].copy_from_slice(&ItemId::new(upper as u16, ItemState::Normal, item.len() as u16).0.to_le_bytes());
    page
}

#[test]
fn finds_what_the_cursor_finds() {
    let mut random = Random(0x2545_F491_4F6C_DD1D);
    let (mut found, mut damaged_found) = (0, 0);
    for round in 0..20_000 {
        let lens = [1, 2, 4, 8, 6, 16, -1, -1, -1, -2];
        let attrs: Vec<AttrLayout> = (0..=random.below(12))
            .map(|_| {
                let len = lens[random.below(lens.len())];
                AttrLayout::new(len, if len == -1 { [4, 8][random.below(2)] } else { [1, 2, 4, 8][random.below(4)] })
            })
            .collect();
        let natts = random.below(attrs.len() + 1);
        let nulls: Option<Vec<u8>> = (random.below(2) == 0)
            .then(|| (0..natts.div_ceil(8)).map(|_| random.below(256) as u8 | random.below(256) as u8).collect());
        let mut values = Vec::new();
        for (index, attr) in attrs.iter().enumerate().take(natts) {
            if nulls.as_ref().is_none_or(|bits| bits[index / 8] & 1 << (index % 8) != 0) {
                append(&mut values, *attr, &mut random);
            }
        }
        let damaged = round % 4 == 0;
        if damaged && !values.is_empty() {
            let at = random.below(values.len());
            values[at] = random.below(256) as u8;
            values.truncate(values.len() - random.below(2) * random.below(values.len()));
        }
        let page = page(&values, natts as u16, nulls.as_deref());
        let page = HeapPage::new("t", BlockNumber(0), page.view());
        let wanted: Vec<(usize, usize)> = (0..random.below(5)).map(|at| (random.below(attrs.len()), at)).collect();
        let mut places = Vec::new();
        let walk = Walk::new(&attrs, wanted.clone(), wanted.len());
        let result = walk.find(&page, &[OffsetNumber(1)], &mut places);
        assert!(damaged || result.is_ok(), "{attrs:?} {result:?}");
        if result.is_err() || wanted.is_empty() {
            continue;
        }
        let layout = TupleLayout::new(attrs.iter().copied()).unwrap();
        let tuple = page.tuple(OffsetNumber(1)).unwrap();
        for (index, column) in wanted {
            let place = places[column];
            match layout.cursor(tuple.data()).get(index).unwrap() {
                Attr::Null => assert_eq!(place, Place::NULL),
                Attr::Missing => assert_eq!(place, Place::MISSING),
                Attr::Value(value) => {
                    assert_eq!(page.page().bytes()[place.start()..place.start() + place.len()], *value);
                    found += 1;
                    damaged_found += usize::from(damaged);
                }
            }
        }
    }
    assert!(found > 10_000 && damaged_found > 1000, "{found} {damaged_found}");
}
