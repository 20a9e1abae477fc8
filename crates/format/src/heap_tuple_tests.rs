#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
use std::fmt::Write as _;

use super::*;
use crate::attr::Attr;
use crate::ids::OffsetNumber;
use crate::page::{Page, PageRef};
use crate::testing::{HEAP_PAGE, Random, data_driven, hex, layout};
use crate::varlena::Varlena;

fn bits(tuple: HeapTupleRef<'_>) -> String {
    let Some(bitmap) = tuple.null_bitmap() else { return String::new() };
    (0..bitmap.len() * 8).map(|i| if bitmap[i / 8] >> (i % 8) & 1 == 1 { '1' } else { '0' }).collect()
}

#[test]
fn agrees_with_pageinspect() {
    let page = PageRef::new(HEAP_PAGE);
    page.verify().unwrap();
    data_driven(include_str!("../testdata/heap_page.txt"), |command, _| {
        let mut out = String::new();
        let (command, args) = command.split_once(' ').unwrap_or((command, ""));
        match command {
            "page_header" => {
                let (lower, upper, special) = (page.lower(), page.upper(), page.special_offset());
                let (size, version, prune) = (page.page_size(), page.layout_version(), page.prune_xid());
                let (flags, lsn, checksum) = (page.flags().0, page.lsn(), page.checksum() as i16);
                writeln!(out, "{lower}|{upper}|{special}|{size}|{version}|{prune}|{flags}|{lsn}|{checksum}").unwrap();
            }
            "heap_page_items" => {
                for (offset, id) in page.item_ids() {
                    let t = HeapTupleRef::parse(page.item_at(offset, id).unwrap()).unwrap();
                    let (xmin, xmax, cid, ctid) = (t.raw_xmin(), t.raw_xmax(), t.raw_cid(), t.ctid());
                    let (mask2, mask, hoff) = (t.infomask2().0, t.infomask().0, t.hoff());
                    write!(out, "{offset}|{}|{}|{}|", id.offset(), id.0 >> 15 & 3, id.len()).unwrap();
                    writeln!(out, "{xmin}|{xmax}|{cid}|{ctid}|{mask2}|{mask}|{hoff}|{}", bits(t)).unwrap();
                }
            }
            "heap_page_item_attrs" => {
                let layout = layout(args);
                for (offset, id) in page.item_ids() {
                    let t = HeapTupleRef::parse(page.item_at(offset, id).unwrap()).unwrap();
                    let mut attrs = vec![Attr::Missing; layout.len()];
                    layout.deform(t.data(), &mut attrs).unwrap();
                    let attrs: Vec<String> = attrs
                        .iter()
                        .map(|attr| match attr {
                            Attr::Value(bytes) => hex(bytes),
                            // pageinspect shows no difference.
                            Attr::Null | Attr::Missing => "NULL".to_owned(),
                        })
                        .collect();
                    writeln!(out, "{offset}|{}", attrs.join(" ")).unwrap();
                }
            }
            other => panic!("no command {other}"),
        }
        out
    });
}

#[test]
fn reads_a_composite_value() {
    let page = PageRef::new(HEAP_PAGE);
    let table = layout("4i 1c 1c 2s 8d 8d -1i -1d -1i 64c -1i 4i");
    let pair = layout("2s -1i 8d");
    let tuple = HeapTupleRef::parse(page.item(OffsetNumber(1)).unwrap()).unwrap();
    let Attr::Value(bytes) = table.cursor(tuple.data()).get(7).unwrap() else { panic!("null") };
    let Varlena::Inline(payload) = Varlena::parse_exact(bytes).unwrap() else { panic!("not inline") };
    let composite = CompositeRef::parse(payload).unwrap();
    assert_eq!((composite.type_oid.0, composite.typmod), (0x4030, -1));
    let mut attrs = [Attr::Missing; 3];
    pair.deform(composite.data, &mut attrs).unwrap();
    assert_eq!(attrs[0], Attr::Value(&7i16.to_le_bytes()));
    assert_eq!(attrs[1], Attr::Value(b"\x0dseven"));
    assert_eq!(attrs[2], Attr::Value(&(-7i64).to_le_bytes()));
}

#[test]
fn a_column_added_later_is_missing_not_null() {
    let page = PageRef::new(HEAP_PAGE);
    let table = layout("4i 1c 1c 2s 8d 8d -1i -1d -1i 64c -1i 4i");
    let tuple = HeapTupleRef::parse(page.item(OffsetNumber(1)).unwrap()).unwrap();
    assert_eq!(table.cursor(tuple.data()).get(11).unwrap(), Attr::Missing);
    assert_eq!(table.cursor(tuple.data()).get(10).unwrap(), Attr::Null);
    assert!(table.cursor(tuple.data()).get(12).is_err());
}

#[test]
fn flags_mean_what_postgresql_says() {
    let mask = |bits| Infomask(bits);
    assert!(mask(0x0300).xmin_frozen() && !mask(0x0300).xmin_invalid() && mask(0x0300).xmin_committed());
    assert!(mask(0x0200).xmin_invalid() && !mask(0x0200).xmin_frozen());
    // Locked only: by the bit, or an exclusive lock alone without multixact (9.2 and older).
    assert!(mask(0x0080).xmax_is_locked_only());
    assert!(mask(0x0040).xmax_is_locked_only());
    assert!(!mask(0x1040).xmax_is_locked_only());
    assert!(!mask(0x0050).xmax_is_locked_only());
    assert!(mask(0x1080).locked_upgraded());
    assert!(!mask(0x10C0).locked_upgraded());
}

#[test]
fn refuses_what_old_versions_left() {
    let mut item = vec![0u8; 24];
    item[HOFF] = 24;
    assert!(HeapTupleRef::parse(&item).is_ok());
    for (at, bit) in [(INFOMASK, 0x08), (INFOMASK + 1, 0x40), (INFOMASK + 1, 0x80)] {
        let mut item = item.clone();
        item[at] |= bit;
        assert!(matches!(HeapTupleRef::parse(&item), Err(Error::Unsupported(_))));
    }
}

#[test]
fn refuses_sizes_that_do_not_fit() {
    let tuple = |natts: u16, has_null: bool, hoff: u8, len: usize| {
        let mut item = vec![0u8; len];
        item[INFOMASK2..INFOMASK2 + 2].copy_from_slice(&natts.to_le_bytes());
        item[INFOMASK] = u8::from(has_null);
        item[HOFF] = hoff;
        HeapTupleRef::parse(&item).map(|_| ())
    };
    assert!(tuple(8, true, 24, 24).is_ok());
    assert!(tuple(9, true, 24, 24).is_err());
    assert!(tuple(1, false, 16, 24).is_err());
    assert!(tuple(1, false, 28, 32).is_err());
    assert!(tuple(1, false, 32, 24).is_err());
    assert!(tuple(1665, false, 24, 24).is_err());
    assert!(HeapTupleRef::parse(&[0; 22]).is_err());
}

#[test]
fn random_bytes_never_panic() {
    let mut random = Random::new(2);
    let layout = layout("4i 1c 1c 2s 8d 8d -1i -1d -1i 64c -1i 4i -2c");
    for _ in 0..3000 {
        let mut page = Page::from(*HEAP_PAGE);
        let at = random.below(8000);
        random.damage(&mut page.bytes_mut()[at..]);
        random.damage(&mut page.bytes_mut()[7000..]);
        for (offset, id) in page.view().item_ids() {
            let Ok(item) = page.view().item_at(offset, id) else { continue };
            let Ok(tuple) = HeapTupleRef::parse(item) else { continue };
            let _ = (tuple.is_hot_updated(), tuple.xmin(), tuple.ctid());
            for index in [3, 7, 12, 0, 10, 1, 11, 99] {
                if let Ok(Attr::Value(bytes)) = layout.cursor(tuple.data()).get(index)
                    && let Ok(Varlena::Inline(payload)) = Varlena::parse_exact(bytes)
                {
                    let _ = CompositeRef::parse(payload).map(|c| layout.cursor(c.data).get(6));
                }
            }
        }
    }
    for len in 0..64 {
        let bytes = random.bytes(len);
        let _ = HeapTupleRef::parse(&bytes).map(|t| layout.cursor(t.data()).get(12));
        let _ = CompositeRef::parse(&bytes);
    }
}
