//! Pages, tuples, compressed values and the small files.

use stegodon_format::attr::{Attr, AttrLayout, TupleData, TupleLayout};
use stegodon_format::btree::{BtreePage, MetaPage, Opaque};
use stegodon_format::control::ControlFile;
use stegodon_format::heap_tuple::{CompositeRef, HeapTupleRef};
use stegodon_format::ids::{BlockNumber, MultiXactId, OffsetNumber, Xid};
use stegodon_format::page::{BLCKSZ, Page, PageRef};
use stegodon_format::relmap::RelationMap;
use stegodon_format::slru::{multixact, subtrans, xact};
use stegodon_format::twophase::{PreparedTransaction, parse_file_name};
use stegodon_format::varlena::{Compressed, CompressionMethod, Varlena, decompress, stored_len};
use stegodon_format::version::Version;
use stegodon_format::{checksum, paths, pglz, toast, vm};

use crate::input::Input;

const VERSIONS: [Version; 4] = [Version::V15, Version::V16, Version::V17, Version::V18];

pub fn run(data: &[u8]) {
    let mut input = Input(data);
    match input.u8() % 8 {
        0 => page(&mut input),
        1 => attributes(&mut input),
        2 => varlena(input.0),
        3 => compressed(&mut input),
        4 => round_trip(input.0),
        5 => control(&mut input),
        6 => relation_map(&mut input),
        _ => two_phase(&mut input),
    }
}

/// A page whose header and line pointers come first, and whose end is the rest of the input.
pub fn make_page(input: &mut Input<'_>) -> Page {
    let mut page = Page::zeroed();
    let bytes = page.bytes_mut();
    // Most pages are of the right size and version, have a sound header and `special` bytes at the end.
    let shape = input.u8();
    let special = input.pick(&[0, 16, 8, 4]);
    let pointers = usize::from(input.u8() % 64);
    let pointers = input.bytes(pointers * 4);
    let flags = input.u16();
    let raw_header = if shape & 1 == 1 { input.bytes(24) } else { &[] };
    let tail = input.0;
    let tail = &tail[..tail.len().min(BLCKSZ - 24 - pointers.len())];
    bytes[24..24 + pointers.len()].copy_from_slice(pointers);
    bytes[BLCKSZ - tail.len()..].copy_from_slice(tail);
    let special = BLCKSZ - special;
    let upper = (BLCKSZ - tail.len()).min(special);
    let words = [flags, 24 + pointers.len() as u16, upper as u16, special as u16, 0x2004];
    for (at, word) in words.iter().enumerate() {
        bytes[10 + at * 2..12 + at * 2].copy_from_slice(&word.to_le_bytes());
    }
    if raw_header.len() == 24 {
        bytes[..24].copy_from_slice(raw_header);
    }
    if shape & 2 == 2 {
        // Line pointers that lie: offsets counted from the start of the tail, so that small numbers mean something.
        for at in (24..24 + pointers.len() / 4 * 4).step_by(4) {
            let raw = u32::from_le_bytes(*bytes[at..].first_chunk().unwrap());
            let moved = raw & !0x7FFF | ((raw & 0x7FFF) + upper as u32) & 0x7FFF;
            bytes[at..at + 4].copy_from_slice(&moved.to_le_bytes());
        }
    }
    page
}

fn page(input: &mut Input<'_>) {
    let page = make_page(input);
    let page = page.view();
    let _ = page.verify();
    let block = BlockNumber(7);
    let _ = checksum::is_correct(page, block);
    let _ = (page.free_space(), page.contents().len(), page.special().len(), page.is_new(), page.prune_xid());
    for (offset, id) in page.item_ids() {
        if let Ok(item) = page.item_at(offset, id)
            && let Ok(tuple) = HeapTupleRef::parse(item)
        {
            let _ = (tuple.xmin(), tuple.raw_xmax(), tuple.ctid(), tuple.is_hot_updated(), tuple.null_bitmap());
            walk(tuple.data(), &[AttrLayout::new(4, 4), AttrLayout::varlena(4), AttrLayout::new(-2, 1)]);
        }
    }
    let _ = page.item(OffsetNumber(0)).is_ok() | page.item(OffsetNumber(u16::MAX)).is_ok();
    for heap_block in [0, 1, 32671, 32672, u32::MAX] {
        let _ = vm::bits(page, BlockNumber(heap_block));
    }
    let _ = vm::count(page);
    for number in [0, 1, 32767, 32768, u32::MAX] {
        let _ = xact::status(page.bytes(), Xid(number));
        let _ = subtrans::parent(page.bytes(), Xid(number));
        let _ = multixact::first_member(page.bytes(), MultiXactId(number));
        let _ = multixact::member(page.bytes(), number);
    }
    let _ = MetaPage::read(page);
    let _ = Opaque::read(page);
    index_page(page);
}

/// Every tuple of a B-tree's page, by every way to look at it.
pub fn index_page(page: PageRef<'_>) {
    let Ok(page) = BtreePage::new(page) else { return };
    let _ = page.high_key();
    let _ = page.safe_xid();
    let mut offset = page.first_data();
    while offset <= page.last() {
        if let Ok(tuple) = page.tuple(offset) {
            let _ = (tuple.kind(), tuple.downlink(), tuple.top_parent(), tuple.attribute_count(3), tuple.heap_tid());
            if let Ok(posting) = tuple.posting() {
                assert_eq!(posting.iter().count(), posting.len());
            }
            if let Ok((nulls, values)) = tuple.attributes() {
                let count = tuple.attribute_count(3) as u16;
                walk(TupleData::new(values, nulls, count), &[AttrLayout::new(4, 4), AttrLayout::varlena(4)]);
            }
        }
        offset = OffsetNumber(offset.0 + 1);
    }
}

fn walk(tuple: TupleData<'_>, attrs: &[AttrLayout]) {
    let layout = TupleLayout::new(attrs.iter().copied()).unwrap();
    let mut out = vec![Attr::Missing; layout.len()];
    let whole = layout.deform(tuple, &mut out);
    let mut cursor = layout.cursor(tuple);
    for (index, value) in out.iter().enumerate() {
        let alone = layout.cursor(tuple).get(index);
        if whole.is_ok() {
            assert_eq!(alone.unwrap(), *value);
            assert_eq!(cursor.get(index).unwrap(), *value);
        }
    }
}

fn attributes(input: &mut Input<'_>) {
    let count = usize::from(input.u8() % 12);
    let attrs: Vec<AttrLayout> =
        (0..count).map(|_| AttrLayout::new(input.u16() as i16, input.pick(&[1, 2, 4, 8, 0, 3]))).collect();
    let natts = input.u16();
    let nulls = input.u8() % 2 == 1;
    let nulls = nulls.then(|| input.bytes(count.div_ceil(8)));
    let tuple = TupleData::new(input.0, nulls, natts);
    for index in 0..count {
        let _ = tuple.is_null(index);
    }
    if TupleLayout::new(attrs.iter().copied()).is_ok() {
        walk(tuple, &attrs);
    }
}

fn varlena(bytes: &[u8]) {
    if let Ok((value, len)) = Varlena::parse(bytes) {
        assert_eq!(stored_len(bytes).unwrap(), len);
        match value {
            Varlena::Inline(payload) => assert!(payload.len() < len),
            Varlena::Compressed(compressed) => {
                if let Ok(raw) = compressed.decompress(1 << 20) {
                    assert_eq!(raw.len(), compressed.raw_size);
                }
            }
            Varlena::External(pointer) => {
                let chunks = toast::chunk_count(&pointer);
                let _ = toast::check_chunk(&pointer, chunks, chunks as i32, 0);
                let _ = toast::check_chunk(&pointer, 0, -1, usize::MAX);
            }
        }
    }
    let _ = Varlena::parse_exact(bytes);
    if let Ok(compressed) = Compressed::parse(bytes) {
        let _ = compressed.decompress(1 << 20);
    }
    let _ = CompositeRef::parse(bytes);
}

fn compressed(input: &mut Input<'_>) {
    let method = input.pick(&[CompressionMethod::Pglz, CompressionMethod::Lz4]);
    let raw_size = input.u32() as usize % (1 << 24);
    if let Ok(raw) = decompress(method, input.0, raw_size, 1 << 20) {
        assert_eq!(raw.len(), raw_size);
    }
    let _ = pglz::decompress(input.0, raw_size % (1 << 16));
}

fn round_trip(raw: &[u8]) {
    // What repeats is compressed more.
    let raw = raw.repeat(3);
    if let Some(packed) = pglz::compress(&raw) {
        assert_eq!(pglz::decompress(&packed, raw.len()).unwrap(), raw);
    }
}

/// A file's bytes with the CRC that they must have, if the input says so.
fn with_crc(bytes: &[u8], sound: bool, at: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if sound && bytes.len() >= at + 4 {
        let crc = crc32c::crc32c(&bytes[..at]);
        bytes[at..at + 4].copy_from_slice(&crc.to_le_bytes());
    }
    bytes
}

fn control(input: &mut Input<'_>) {
    let sound = input.u8() % 4 != 0;
    for at in [288, 292] {
        if let Ok(control) = ControlFile::parse(&with_crc(input.0, sound, at)) {
            let _ = (control.is_cleanly_shut_down(), control.has_checksums(), control.state.label());
        }
    }
    let _ = Version::from_pg_version(input.0);
}

fn relation_map(input: &mut Input<'_>) {
    let sound = input.u8() % 4 != 0;
    for (version, at) in VERSIONS.into_iter().zip([504, 520, 520, 520]) {
        if let Ok(map) = RelationMap::parse(&with_crc(input.0, sound, at), version) {
            for (relation, number) in map.iter() {
                assert!(map.get(relation).is_some() && map.relation_of(number).is_some());
            }
        }
    }
}

fn two_phase(input: &mut Input<'_>) {
    let sound = input.u8() % 4 != 0;
    let mut bytes = input.0.to_vec();
    if sound && bytes.len() >= 12 {
        let len = bytes.len() as u32;
        bytes[..4].copy_from_slice(&0x57F9_4534_u32.to_le_bytes());
        bytes[4..8].copy_from_slice(&len.to_le_bytes());
    }
    let bytes = with_crc(&bytes, sound, bytes.len().saturating_sub(4));
    for version in VERSIONS {
        if let Ok(state) = PreparedTransaction::parse(&bytes, version) {
            let _ = state.exclusively_locked_relations().count();
        }
        if let Ok(name) = std::str::from_utf8(input.0)
            && let Some(xid) = parse_file_name(version, name)
        {
            assert_eq!(stegodon_format::twophase::file_name(version, xid), name);
        }
    }
    let _ = paths::database_directory(Version::V18, stegodon_format::ids::Oid(1664), stegodon_format::ids::Oid(0));
}
