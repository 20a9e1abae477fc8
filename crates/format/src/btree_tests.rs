#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use super::*;
use crate::page::{ItemState, Page};
use crate::testing::Random;

fn put16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
}

fn put32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

fn page(prev: u32, next: u32, level: u32, flags: u16, items: &[&[u8]]) -> Page {
    let mut page = Page::zeroed();
    let bytes = page.bytes_mut();
    let special = BLCKSZ - OPAQUE_SIZE;
    let mut upper = special;
    for (i, item) in items.iter().enumerate() {
        upper = (upper - item.len()) & !7;
        bytes[upper..upper + item.len()].copy_from_slice(item);
        let id = ItemId::new(upper as u16, ItemState::Normal, item.len() as u16);
        put32(bytes, 24 + 4 * i, id.0);
    }
    put16(bytes, 12, (24 + 4 * items.len()) as u16);
    put16(bytes, 14, upper as u16);
    put16(bytes, 16, special as u16);
    put16(bytes, 18, 0x2004);
    put32(bytes, special, prev);
    put32(bytes, special + 4, next);
    put32(bytes, special + 8, level);
    put16(bytes, special + 12, flags);
    page
}

fn tuple(block: u32, offset: u16, info: u16, rest: &[u8]) -> Vec<u8> {
    let mut bytes = Tid::new(BlockNumber(block), OffsetNumber(offset)).to_bytes().to_vec();
    bytes.extend_from_slice(&(info | (8 + rest.len()) as u16).to_le_bytes());
    bytes.extend_from_slice(rest);
    bytes
}

#[test]
fn a_metapage_is_read_and_old_versions_are_refused() {
    let mut meta = page(0, 0, 0, PageFlags::META, &[]);
    for (at, value) in [(0, MAGIC), (4, 4), (8, 412), (12, 2), (16, 3), (20, 1)] {
        put32(meta.bytes_mut(), 24 + at, value);
    }
    meta.bytes_mut()[24 + 40] = 1;
    let read = MetaPage::read(meta.view()).unwrap();
    assert_eq!((read.root, read.level), (Some(BlockNumber(412)), 2));
    assert_eq!((read.fast_root, read.fast_level), (Some(BlockNumber(3)), 1));
    assert!(read.all_equal_image);
    for (version, message) in [
        (2, "a B-tree index of version 2 or 3 (made before PostgreSQL 12) is not supported by Stegodon yet"),
        (3, "a B-tree index of version 2 or 3 (made before PostgreSQL 12) is not supported by Stegodon yet"),
        (5, "B-tree metapage: btm_version is 5"),
    ] {
        put32(meta.bytes_mut(), 28, version);
        assert_eq!(MetaPage::read(meta.view()).unwrap_err().to_string(), message);
    }
    put32(meta.bytes_mut(), 24, 7);
    assert_eq!(MetaPage::read(meta.view()).unwrap_err().to_string(), "B-tree metapage: btm_magic is 7");
    let leaf = page(0, 0, 0, PageFlags::LEAF, &[]);
    assert_eq!(MetaPage::read(leaf.view()).unwrap_err().to_string(), "B-tree metapage: btpo_flags is 1");
}

#[test]
fn the_three_kinds_of_tuple() {
    let plain = tuple(7, 3, 0, &[1, 0, 0, 0, 0, 0, 0, 0]);
    let plain = IndexTuple::new(&plain).unwrap();
    assert_eq!(plain.kind(), TupleKind::Plain);
    assert_eq!(plain.heap_tid().unwrap(), Some(Tid::new(BlockNumber(7), OffsetNumber(3))));
    assert_eq!(plain.attribute_count(2), 2);
    assert_eq!(plain.attributes().unwrap(), (None, &[1, 0, 0, 0, 0, 0, 0, 0][..]));

    let tids = [Tid::new(BlockNumber(1), OffsetNumber(9)), Tid::new(BlockNumber(2), OffsetNumber(1))];
    let mut rest = vec![5, 0, 0, 0, 0, 0, 0, 0];
    rest.extend(tids.iter().flat_map(|tid| tid.to_bytes()));
    rest.extend([0; 4]);
    let posting = tuple(16, IS_POSTING | 2, ALTERNATIVE_TID, &rest);
    let posting = IndexTuple::new(&posting).unwrap();
    assert_eq!(posting.kind(), TupleKind::Posting);
    assert_eq!(posting.posting().unwrap().iter().collect::<Vec<_>>(), tids);
    assert_eq!(posting.attributes().unwrap(), (None, &[5, 0, 0, 0, 0, 0, 0, 0][..]));
    assert_eq!(posting.heap_tid().unwrap(), Some(tids[0]));

    let mut rest = vec![5, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    rest.extend(tids[1].to_bytes());
    let pivot = tuple(99, PIVOT_HEAP_TID | 1, ALTERNATIVE_TID, &rest);
    let pivot = IndexTuple::new(&pivot).unwrap();
    assert_eq!(pivot.kind(), TupleKind::Pivot);
    assert_eq!(pivot.downlink(), BlockNumber(99));
    assert_eq!(pivot.attribute_count(3), 1);
    assert_eq!(pivot.heap_tid().unwrap(), Some(tids[1]));
    assert!(pivot.posting().is_err());

    let infinity = tuple(4, 0, ALTERNATIVE_TID, &[]);
    let infinity = IndexTuple::new(&infinity).unwrap();
    assert_eq!((infinity.kind(), infinity.attribute_count(3)), (TupleKind::Pivot, 0));
    assert_eq!(infinity.heap_tid().unwrap(), None);
}

#[test]
fn nulls_take_four_bytes_and_attributes_stay_aligned() {
    let bytes = tuple(7, 3, HAS_NULLS, &[0b10, 0, 0, 0, 0, 0, 0, 0, 42, 0, 0, 0, 0, 0, 0, 0]);
    let tuple = IndexTuple::new(&bytes).unwrap();
    assert_eq!(tuple.attributes().unwrap(), (Some(&[2, 0, 0, 0][..]), &[42, 0, 0, 0, 0, 0, 0, 0][..]));
}

#[test]
fn only_the_rightmost_page_has_no_high_key() {
    let key = tuple(0, 1, ALTERNATIVE_TID, &[9, 0, 0, 0, 0, 0, 0, 0]);
    let row = tuple(7, 3, 0, &[1, 0, 0, 0, 0, 0, 0, 0]);
    let inner = page(3, 5, 0, PageFlags::LEAF, &[&key, &row]);
    let inner = BtreePage::new(inner.view()).unwrap();
    assert_eq!((inner.first_data(), inner.last()), (OffsetNumber(2), OffsetNumber(2)));
    assert_eq!(inner.high_key().unwrap().unwrap().kind(), TupleKind::Pivot);
    assert_eq!((inner.opaque.prev, inner.opaque.next), (Some(BlockNumber(3)), Some(BlockNumber(5))));
    let last = page(3, 0, 0, PageFlags::LEAF, &[&row]);
    let last = BtreePage::new(last.view()).unwrap();
    assert_eq!(last.first_data(), OffsetNumber(1));
    assert!(last.high_key().unwrap().is_none());
    let heap = Page::zeroed();
    assert!(BtreePage::new(heap.view()).is_err());
}

/// Reads everything there is to read; the only thing demanded is that it returns.
fn read_everything(page: PageRef<'_>) {
    let _ = MetaPage::read(page);
    let Ok(btree) = BtreePage::new(page) else { return };
    let _ = btree.high_key();
    let _ = btree.safe_xid();
    for offset in 0..=btree.last().0.saturating_add(1) {
        let Ok(tuple) = btree.tuple(OffsetNumber(offset)) else { continue };
        let _ = tuple.heap_tid();
        let _ = tuple.attributes();
        assert!(tuple.attribute_count(4) <= 4);
        if let Ok(posting) = tuple.posting() {
            assert_eq!(posting.iter().count(), posting.len());
        }
    }
}

#[test]
fn no_bytes_make_it_panic() {
    let key = tuple(0, 1, ALTERNATIVE_TID, &[9, 0, 0, 0, 0, 0, 0, 0]);
    let posting = tuple(16, IS_POSTING | 2, ALTERNATIVE_TID, &[0; 24]);
    let row = tuple(7, 3, HAS_NULLS, &[1, 0, 0, 0, 0, 0, 0, 0]);
    let whole = page(3, 5, 0, PageFlags::LEAF, &[&key, &row, &posting]);
    let mut random = Random::new(7);
    for round in 0..2000 {
        let mut damaged = whole.clone();
        random.damage(damaged.bytes_mut());
        random.damage(&mut damaged.bytes_mut()[..40]);
        random.damage(&mut damaged.bytes_mut()[8176 - 96..]);
        read_everything(damaged.view());
        if round % 50 == 0 {
            let noise: [u8; BLCKSZ] = random.bytes(BLCKSZ).try_into().unwrap();
            read_everything(Page::from(noise).view());
        }
    }
}
