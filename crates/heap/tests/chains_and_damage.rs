//! HOT chains, values out of chunks, columns of all kinds, and bytes that are wrong.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, UInt32Type};
use stegodon_format::heap_tuple::{HeapTupleRef, Infomask, Infomask2};
use stegodon_format::ids::{AttrNumber, BlockNumber, MultiXactId, OffsetNumber, Oid, Tid, Xid};
use stegodon_format::page::{ItemId, ItemState, Page};
use stegodon_format::varlena::{CompressionMethod, ToastPointer};
use stegodon_heap::toast::Assembly;
use stegodon_heap::{Attribute, Columns, Deformer, Error, HeapPage, TupleDesc, Visibility, visible_to_all};
use stegodon_types::{Align, Datum, Layout, SqlError, SqlState};

const BLOCK: BlockNumber = BlockNumber(7);

/// Builds a page, line pointer by line pointer.
struct Builder {
    page: Page,
    lower: usize,
    upper: usize,
}

#[derive(Clone, Copy, Default)]
struct Header {
    xmin: u32,
    xmax: u32,
    next: u16,
    mask: u16,
    mask2: u16,
}

impl Builder {
    fn new() -> Self {
        Self { page: Page::zeroed(), lower: 24, upper: 8192 }
    }

    fn pointer(mut self, id: ItemId) -> Self {
        self.page.bytes_mut()[self.lower..self.lower + 4].copy_from_slice(&id.0.to_le_bytes());
        self.lower += 4;
        self
    }

    /// A tuple of `natts` attributes whose values, with their padding, are `values`.
    fn tuple(mut self, header: Header, natts: u16, nulls: Option<&[u8]>, values: &[u8]) -> Self {
        let mut item = Vec::new();
        item.extend(header.xmin.to_le_bytes());
        item.extend(header.xmax.to_le_bytes());
        item.extend(9u32.to_le_bytes());
        item.extend(Tid::new(BLOCK, OffsetNumber(header.next)).to_bytes());
        item.extend((header.mask2 | natts).to_le_bytes());
        item.extend((header.mask | if nulls.is_some() { Infomask::HASNULL } else { 0 }).to_le_bytes());
        item.push(0);
        item.extend(nulls.unwrap_or(&[]));
        item.resize(item.len().next_multiple_of(8), 0);
        item[22] = item.len() as u8;
        item.extend(values);
        self.upper -= item.len().next_multiple_of(8);
        self.page.bytes_mut()[self.upper..self.upper + item.len()].copy_from_slice(&item);
        let id = ItemId::new(self.upper as u16, ItemState::Normal, item.len() as u16);
        self.pointer(id)
    }

    fn version(self, xmin: u32, xmax: u32, next: u16, heap_only: bool) -> Self {
        let hot = if next > 0 { Infomask2::HOT_UPDATED } else { 0 };
        let only = if heap_only { Infomask2::ONLY_TUPLE } else { 0 };
        let mask = if xmax == 0 { Infomask::XMAX_INVALID } else { 0 };
        self.tuple(Header { xmin, xmax, next, mask, mask2: hot | only }, 1, None, &xmin.to_le_bytes())
    }

    fn build(mut self) -> Page {
        let bytes = self.page.bytes_mut();
        bytes[12..14].copy_from_slice(&(self.lower as u16).to_le_bytes());
        bytes[14..16].copy_from_slice(&(self.upper as u16).to_le_bytes());
        bytes[16..18].copy_from_slice(&8192u16.to_le_bytes());
        bytes[18..20].copy_from_slice(&0x2004u16.to_le_bytes());
        self.page.view().verify().unwrap();
        self.page
    }
}

/// Sees the versions that these transactions inserted; multixact 5 was an update by transaction 12.
struct Inserted(Vec<u32>);

impl Visibility for Inserted {
    type Error = SqlError;

    fn is_visible(&mut self, tuple: HeapTupleRef<'_>, _: Tid) -> Result<bool, SqlError> {
        Ok(self.0.contains(&tuple.raw_xmin().0))
    }

    fn multixact_updater(&mut self, multi: MultiXactId) -> Result<Xid, SqlError> {
        Ok(if multi == MultiXactId(5) { Xid(12) } else { Xid::INVALID })
    }
}

fn search(page: &Page, root: u16, sees: &[u32]) -> Result<Option<u16>, Error> {
    let page = HeapPage::new("t", BLOCK, page.view());
    let found = page.hot_search(OffsetNumber(root), &mut Inserted(sees.to_vec()))?;
    Ok(found.map(|offset| offset.0))
}

#[test]
fn a_chain_is_followed_to_the_visible_version() {
    let page = Builder::new()
        .pointer(ItemId::new(2, ItemState::Redirect, 0))
        .version(10, 11, 3, true)
        .version(11, 12, 4, true)
        .version(12, 0, 0, true)
        .version(20, 0, 0, false)
        .pointer(ItemId::new(0, ItemState::Dead, 0))
        .pointer(ItemId::new(0, ItemState::Unused, 0))
        .build();
    assert_eq!(search(&page, 1, &[10]), Ok(Some(2)));
    assert_eq!(search(&page, 1, &[11]), Ok(Some(3)));
    assert_eq!(search(&page, 1, &[12]), Ok(Some(4)));
    assert_eq!(search(&page, 1, &[99]), Ok(None));
    assert_eq!(search(&page, 5, &[20]), Ok(Some(5)));
    // A heap-only tuple is no root; neither are dead, unused and missing line pointers.
    for root in [2, 6, 7, 8, 0] {
        assert_eq!(search(&page, root, &[10, 11, 12, 20]), Ok(None), "root {root}");
    }
}

#[test]
fn a_chain_ends_where_the_place_was_reused() {
    let reused = Builder::new().version(10, 11, 2, false).version(99, 0, 0, true).build();
    assert_eq!(search(&reused, 1, &[99]), Ok(None));
    let redirect = || ItemId::new(1, ItemState::Redirect, 0);
    let to_redirect = Builder::new().version(10, 11, 2, false).pointer(redirect()).build();
    assert_eq!(search(&to_redirect, 1, &[99]), Ok(None));
    let aborted = Header { xmin: 10, xmax: 11, next: 2, mask: Infomask::XMAX_INVALID, mask2: Infomask2::HOT_UPDATED };
    let aborted = Builder::new().tuple(aborted, 1, None, &[0; 4]).version(11, 0, 0, true).build();
    assert_eq!(search(&aborted, 1, &[11]), Ok(None));
    let beyond = Builder::new().version(10, 11, 9, false).build();
    assert_eq!(search(&beyond, 1, &[99]), Ok(None));
}

#[test]
fn a_chain_goes_on_behind_a_multixact() {
    let multi = Header { xmin: 10, xmax: 5, next: 2, mask: Infomask::XMAX_IS_MULTI, mask2: Infomask2::HOT_UPDATED };
    let page = |header| Builder::new().tuple(header, 1, None, &[0; 4]).version(12, 0, 0, true).build();
    assert_eq!(search(&page(multi), 1, &[12]), Ok(Some(2)));
    // Of lockers only: no one to follow.
    let locked = Header { mask: Infomask::XMAX_IS_MULTI | Infomask::XMAX_LOCK_ONLY, ..multi };
    assert_eq!(search(&page(locked), 1, &[12]), Ok(None));
}

#[test]
fn a_chain_in_circles_is_corruption() {
    let page = Builder::new().version(10, 10, 2, false).version(10, 10, 1, true).build();
    let error = SqlError::from(search(&page, 1, &[99]).unwrap_err());
    assert_eq!(
        (error.state, &*error.message),
        (SqlState::DataCorrupted, "HOT chain at (7,1) of relation \"t\" does not end")
    );
}

fn desc() -> TupleDesc {
    let mut late = Attribute::new("late", Oid(25), -1, Align::Int, Some(Layout::Bytes));
    late.missing = Some(Datum::bytes("was missing"));
    let mut gone = Attribute::new("gone", Oid(0), 8, Align::Double, None);
    gone.dropped = true;
    let attrs = vec![
        Attribute::new("id", Oid(23), 4, Align::Int, Some(Layout::Int32)),
        gone,
        Attribute::new("strange", Oid(600), 16, Align::Double, None),
        Attribute::new("name", Oid(25), -1, Align::Int, Some(Layout::Bytes)),
        late,
    ];
    TupleDesc::new("t", Oid(16384), attrs).unwrap()
}

/// id, gone, strange, name; not late.
fn values(id: i32, name: &[u8]) -> Vec<u8> {
    let mut values = id.to_le_bytes().to_vec();
    values.resize(8 + 8 + 16, 0xEE);
    values.extend(name);
    values
}

#[test]
fn columns_of_all_kinds_are_read_or_stepped_over() {
    let header = Header { xmin: 3, xmax: 4, ..Header::default() };
    let pointer = {
        let mut bytes = vec![1u8, 18];
        for word in [3004u32, 3000, 77, 88] {
            bytes.extend(word.to_le_bytes());
        }
        bytes
    };
    let page = Builder::new()
        .tuple(header, 4, None, &values(1, &[7, b'a', b'b']))
        .tuple(header, 4, Some(&[0b0111]), &values(2, &[]))
        .tuple(header, 4, None, &values(3, &pointer))
        .tuple(header, 5, Some(&[0b0_0101]), &values(-4, &[])[..32])
        .build();
    let page = HeapPage::new("t", BLOCK, page.view());
    let mut offsets = Vec::new();
    page.visible_offsets(&mut visible_to_all(), &mut offsets).unwrap();
    assert_eq!(offsets, [1, 2, 3, 4].map(OffsetNumber));
    let wanted = [4, 1, 5, 2, -1, -2, -4, -3, -6].map(AttrNumber);
    let deformer = Deformer::new(&desc(), &wanted).unwrap();
    let mut columns = Columns::new(&deformer, 8);
    deformer.deform(&page, &offsets, &mut columns).unwrap();
    deformer.deform(&page, &offsets[1..3], &mut columns).unwrap();
    let toasted: Vec<_> = columns.toasted().iter().map(|toasted| (toasted.row, toasted.column)).collect();
    assert_eq!(toasted, [(2, 0), (5, 0)]);
    assert_eq!(columns.toasted()[0].pointer.value_id, Oid(77));
    columns.fill(1, b"second".to_vec()).unwrap();
    columns.fill(0, b"first".to_vec()).unwrap();
    let arrays = columns.finish().unwrap();
    let text = |at: usize| -> Vec<Option<&str>> {
        arrays[at]
            .as_binary::<i64>()
            .iter()
            .map(|value| value.map(|value| std::str::from_utf8(value).unwrap()))
            .collect()
    };
    assert_eq!(text(0), [Some("ab"), None, Some("first"), None, None, Some("second")]);
    let ids: Vec<_> = arrays[1].as_primitive::<Int32Type>().iter().collect();
    assert_eq!(ids, [1, 2, 3, -4, 2, 3].map(Some));
    let missing = Some("was missing");
    assert_eq!(text(2), [missing, missing, missing, None, missing, missing]);
    assert_eq!(text(3), [None; 6]);
    assert_eq!(arrays[4].as_fixed_size_binary().value(1), Tid::new(BLOCK, OffsetNumber(2)).to_bytes());
    let words = |at: usize| arrays[at].as_primitive::<UInt32Type>().value(5);
    assert_eq!([words(5), words(6), words(7), words(8)], [3, 4, 9, 16384]);
    assert_eq!(columns.rows(), 0);
}

#[test]
fn a_toasted_value_that_was_not_fetched_is_never_an_empty_one() {
    let mut pointer = vec![1u8, 18];
    pointer.extend([3004u32, 3000, 77, 88].iter().flat_map(|word| word.to_le_bytes()));
    let page = Builder::new().tuple(Header::default(), 4, None, &values(3, &pointer)).build();
    let deformer = Deformer::new(&desc(), &[AttrNumber(4)]).unwrap();
    let mut columns = Columns::new(&deformer, 8);
    deformer.deform(&HeapPage::new("t", BLOCK, page.view()), &[OffsetNumber(1)], &mut columns).unwrap();
    assert!(columns.fill(1, Vec::new()).is_err());
    assert!(columns.finish().is_err());
}

#[test]
fn a_column_that_cannot_be_read_is_refused_by_name_when_wanted() {
    let error = SqlError::from(Deformer::new(&desc(), &[AttrNumber(3)]).unwrap_err());
    assert_eq!(error.state, SqlState::FeatureNotSupported);
    assert_eq!(error.message, "reading column \"strange\" of type with OID 600 is not supported by Stegodon yet");
    for number in [0, -7, 6] {
        assert!(Deformer::new(&desc(), &[AttrNumber(number)]).is_err());
    }
    let wrong = Attribute::new("x", Oid(20), 4, Align::Int, Some(Layout::Int64));
    assert!(matches!(TupleDesc::new("t", Oid(1), vec![wrong]), Err(Error::Description { .. })));
}

#[test]
fn errors_name_relation_block_and_offset() {
    let page = Builder::new()
        .tuple(Header::default(), 4, None, &values(1, &[7, b'a', b'b']))
        .tuple(Header::default(), 4, None, &values(1, &[200, b'a']))
        .build();
    let page = HeapPage::new("t", BLOCK, page.view());
    let deformer = Deformer::new(&desc(), &[AttrNumber(4)]).unwrap();
    let mut columns = Columns::new(&deformer, 8);
    let error = deformer.deform(&page, &[1, 2].map(OffsetNumber), &mut columns).unwrap_err();
    let error = SqlError::from(error);
    assert_eq!(error.state, SqlState::DataCorrupted);
    assert!(error.message.starts_with("could not read tuple (7,2) of relation \"t\": "), "{}", error.message);
}

#[test]
fn a_compressed_value_is_missed_only_where_its_row_is_wanted() {
    // Twenty "x" in pglz, and the same cut short.
    let packed = |data: &[u8]| {
        let mut stored = ((8 + data.len() as u32) << 2 | 2).to_le_bytes().to_vec();
        stored.extend(20u32.to_le_bytes());
        stored.extend(data);
        stored
    };
    let good = packed(&[0b10, b'x', 0x0F, 1, 1]);
    let page = Builder::new()
        .tuple(Header::default(), 4, None, &values(1, &good))
        .tuple(Header::default(), 4, None, &values(2, &packed(&[0b10, b'x'])))
        .build();
    let page = HeapPage::new("t", BLOCK, page.view());
    let deformer = Deformer::new(&desc(), &[AttrNumber(4)]).unwrap();
    let read = |wanted: fn(usize) -> bool| {
        let mut columns = Columns::new(&deformer, 8);
        deformer.deform(&page, &[1, 2].map(OffsetNumber), &mut columns).unwrap();
        columns.finish_for(wanted)
    };
    assert_eq!(read(|row| row == 0).unwrap()[0].as_binary::<i64>().value(0), [b'x'; 20]);
    let error = SqlError::from(read(|_| true).unwrap_err());
    assert_eq!((error.state, &*error.message), (SqlState::DataCorrupted, "compressed pglz data is corrupt"));
    assert!(error.detail.unwrap().starts_with("could not read tuple (7,2) of relation \"t\""));
}

fn pointer(raw_size: usize, stored_size: usize, compression: Option<CompressionMethod>) -> ToastPointer {
    ToastPointer { raw_size, stored_size, compression, value_id: Oid(16500), toast_relation: Oid(16400) }
}

fn assemble(size: usize, chunks: &[(i32, usize)]) -> Result<Vec<u8>, Error> {
    let mut assembly = Assembly::new(pointer(size, size, None), "pg_toast_16390");
    for &(seq, len) in chunks {
        assembly.push(seq, &vec![seq as u8; len])?;
    }
    assembly.finish()
}

#[test]
fn chunks_make_a_value_or_postgresqls_error() {
    let value = assemble(5000, &[(0, 1996), (1, 1996), (2, 1008)]).unwrap();
    assert_eq!((value.len(), value[1995], value[1996], value[4999]), (5000, 0, 1, 2));
    assert_eq!(assemble(0, &[]), Ok(vec![]));
    for (size, chunks, message) in [
        (
            5000,
            &[(0, 1996), (2, 1008)][..],
            "unexpected chunk number 2 (expected 1) for toast value 16500 in pg_toast_16390",
        ),
        (
            5000,
            &[(0, 1996), (0, 1996)],
            "unexpected chunk number 0 (expected 1) for toast value 16500 in pg_toast_16390",
        ),
        (5000, &[(0, 1996), (1, 1996)], "missing chunk number 2 for toast value 16500 in pg_toast_16390"),
        (5000, &[], "missing chunk number 0 for toast value 16500 in pg_toast_16390"),
        (
            1996,
            &[(0, 1996), (1, 1)],
            "unexpected chunk number 1 (out of range 0..0) for toast value 16500 in pg_toast_16390",
        ),
        (
            5000,
            &[(0, 1996), (1, 1995)],
            "unexpected chunk size 1995 (expected 1996) in chunk 1 of 3 for toast value 16500 in pg_toast_16390",
        ),
        (
            5000,
            &[(0, 1996), (1, 1996), (2, 1009)],
            "unexpected chunk size 1009 (expected 1008) in chunk 2 of 3 for toast value 16500 in pg_toast_16390",
        ),
    ] {
        let error = SqlError::from(assemble(size, chunks).unwrap_err());
        assert_eq!((error.state, &*error.message), (SqlState::DataCorrupted, message));
    }
}

#[test]
fn a_chunk_that_is_toasted_itself_is_refused() {
    let mut assembly = Assembly::new(pointer(10, 10, None), "pg_toast_16390");
    let compressed = [(14u32 << 2 | 2).to_le_bytes().to_vec(), vec![0; 10]].concat();
    let error = assembly.push_stored(0, &compressed).unwrap_err().to_string();
    assert_eq!(error, "found toasted toast chunk for toast value 16500 in pg_toast_16390");
    assembly.push_stored(0, &[23, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]).unwrap();
    assert_eq!(assembly.finish().unwrap(), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
}

#[test]
fn compressed_chunks_are_decompressed_and_checked() {
    // Twenty "x" in pglz: one literal, then a copy of 19 from one byte back (3 bytes: length 18 and one more).
    let data = [0b10u8, b'x', 0x0F, 1, 1];
    let stored = [20u32.to_le_bytes().to_vec(), data.to_vec()].concat();
    let read = |raw| {
        let mut assembly = Assembly::new(pointer(raw, stored.len(), Some(CompressionMethod::Pglz)), "pg_toast_1");
        assembly.push(0, &stored).unwrap();
        assembly.finish()
    };
    assert_eq!(read(20).unwrap(), [b'x'; 20]);
    assert_eq!(SqlError::from(read(21).unwrap_err()).state, SqlState::DataCorrupted);
}

/// Whatever a page holds, reading it ends in values or in an error.
#[test]
fn damaged_pages_never_panic() {
    let header = Header { xmin: 3, xmax: 4, next: 2, mask: 0, mask2: Infomask2::HOT_UPDATED };
    let whole = Builder::new()
        .tuple(header, 4, None, &values(1, &[7, b'a', b'b']))
        .tuple(header, 4, Some(&[0b0111]), &values(2, &[]))
        .tuple(header, 4, None, &values(3, &[14 << 2, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]))
        .build();
    let deformer = Deformer::new(&desc(), &[4, 1, 5, -1, -2].map(AttrNumber)).unwrap();
    let mut seed = 88172645463325252u64;
    let mut random = |limit: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 16) as usize % limit
    };
    let upper = usize::from(whole.view().upper());
    let mut read = 0;
    for _ in 0..20_000 {
        let mut page = whole.clone();
        for _ in 0..=random(4) {
            let at = if random(4) == 0 { random(40) } else { upper + random(8192 - upper) };
            page.bytes_mut()[at] = random(256) as u8;
        }
        let page = HeapPage::new("t", BLOCK, page.view());
        let mut offsets = Vec::new();
        let mut columns = Columns::new(&deformer, 8);
        if page.visible_offsets(&mut visible_to_all(), &mut offsets).is_ok()
            && deformer.deform(&page, &offsets, &mut columns).is_ok()
            && columns.finish().is_ok()
        {
            read += 1;
        }
        for root in 0..5 {
            let _ = page.hot_search(OffsetNumber(root), &mut Inserted(vec![]));
        }
    }
    assert!(read > 1000, "{read} were still readable");
}
