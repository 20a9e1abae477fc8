#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
use super::*;
use crate::testing::Random;

/// A page with two items, made by hand from the drawing.
fn page() -> [u8; BLCKSZ] {
    let mut p = [0u8; BLCKSZ];
    p[0..4].copy_from_slice(&1u32.to_le_bytes());
    p[4..8].copy_from_slice(&0x2345u32.to_le_bytes());
    p[FLAGS] = 4;
    p[LOWER..LOWER + 2].copy_from_slice(&32u16.to_le_bytes());
    p[UPPER..UPPER + 2].copy_from_slice(&8160u16.to_le_bytes());
    p[SPECIAL..SPECIAL + 2].copy_from_slice(&8176u16.to_le_bytes());
    p[SIZE_VERSION..SIZE_VERSION + 2].copy_from_slice(&0x2004u16.to_le_bytes());
    p[24..28].copy_from_slice(&ItemId::new(8168, ItemState::Normal, 5).0.to_le_bytes());
    p[28..32].copy_from_slice(&ItemId::new(1, ItemState::Redirect, 0).0.to_le_bytes());
    p[8168..8173].copy_from_slice(b"hello");
    p
}

#[test]
fn reads_header_items_and_special_area() {
    let bytes = page();
    let p = PageRef::new(&bytes);
    p.verify().unwrap();
    assert_eq!(p.lsn().to_string(), "1/2345");
    assert!(p.flags().all_visible());
    assert_eq!(p.max_offset(), OffsetNumber(2));
    assert_eq!(p.item(OffsetNumber(1)).unwrap(), b"hello");
    assert_eq!(p.item_id(OffsetNumber(2)).unwrap().redirect(), Some(OffsetNumber(1)));
    assert!(matches!(p.item(OffsetNumber(2)), Err(Error::InvalidLinePointer { .. })));
    assert!(matches!(p.item(OffsetNumber(3)), Err(Error::NoSuchLinePointer { offset: 3, max: 2 })));
    assert!(matches!(p.item(OffsetNumber(0)), Err(Error::NoSuchLinePointer { offset: 0, max: 2 })));
    assert_eq!(p.special().len(), 16);
    assert_eq!(p.item_ids().len(), 2);
}

#[test]
fn an_all_zero_page_is_new_and_valid_but_one_other_byte_is_not() {
    let mut page = Page::zeroed();
    page.view().verify().unwrap();
    assert!(page.view().is_new());
    assert_eq!(page.view().max_offset(), OffsetNumber(0));
    page.bytes_mut()[5000] = 1;
    assert!(page.view().verify().is_err());
}

#[test]
fn refuses_headers_that_cannot_be() {
    for (at, value, field) in [
        (FLAGS, 8u16, "pd_flags"),
        (LOWER, 23, "pd_lower"),
        (LOWER, 8161, "pd_lower"),
        (UPPER, 8177, "pd_upper"),
        (SPECIAL, 8177, "pd_special"),
        (SPECIAL, 8200, "pd_special"),
        (SIZE_VERSION, 0x2003, "pd_pagesize_version"),
        (SIZE_VERSION, 0x4004, "pd_pagesize_version"),
    ] {
        let mut bytes = page();
        bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
        let expected = Error::InvalidPageHeader { field, value: u32::from(value) };
        assert_eq!(PageRef::new(&bytes).verify(), Err(expected));
    }
}

#[test]
fn an_item_must_lie_between_upper_and_special() {
    for (offset, len) in [(8000, 5), (8172, 5), (0x7FFF, 0x7FFF)] {
        let mut bytes = page();
        bytes[24..28].copy_from_slice(&ItemId::new(offset, ItemState::Normal, len).0.to_le_bytes());
        assert!(matches!(PageRef::new(&bytes).item(OffsetNumber(1)), Err(Error::InvalidLinePointer { .. })));
    }
}

#[test]
fn random_bytes_never_panic() {
    let mut random = Random::new(1);
    for _ in 0..2000 {
        let mut bytes = page();
        random.damage(&mut bytes[..64]);
        let p = PageRef::new(&bytes);
        let _ = p.verify();
        let _ = (p.special(), p.free_space(), p.contents(), p.lsn());
        for (offset, id) in p.item_ids() {
            let _ = p.item_at(offset, id);
            let _ = p.item(offset);
        }
        for offset in [0, 1, 2, 2047, u16::MAX] {
            let _ = p.item(OffsetNumber(offset));
        }
    }
}
