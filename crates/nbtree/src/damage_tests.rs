//! Damaged indexes: each kind of damage has its error, and no damage makes a scan panic or run for ever.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use stegodon_format::ids::{BlockNumber, OffsetNumber, Tid};
use stegodon_format::page::Page;
use stegodon_types::{Datum, SqlResult, SqlState};

use crate::testing::*;
use crate::{BtreeScan, Direction, IndexDesc, ScanKey, ScanOptions, Strategy};

pub(crate) fn ints() -> Arc<IndexDesc> {
    let keys = vec![key(INT4, false, false, &[(INT4, INT4)])];
    Arc::new(IndexDesc::new("i", vec![attribute(INT4)], keys, false).unwrap())
}

/// Leaves 1, 2 and 3 with three rows each, 0 to 8; root 4.
pub(crate) fn three_leaves() -> Vec<Node> {
    let desc = ints();
    let value = |v: i32| vec![Some(Datum::Int32(v))];
    let mut nodes = vec![Node::default(); 5];
    for leaf in 1..=3u32 {
        let first = (leaf as i32 - 1) * 3;
        nodes[leaf as usize] = Node {
            prev: leaf - 1,
            next: if leaf == 3 { 0 } else { leaf + 1 },
            level: 0,
            flags: 1,
            high_key: (leaf < 3).then(|| pivot_tuple(&desc, &value(first + 3), 1, None, BlockNumber(0))),
            items: (first..first + 3)
                .map(|v| {
                    let tid = Tid::new(BlockNumber(v as u32), OffsetNumber(1));
                    (row_tuple(&desc, &value(v), &[tid]), false)
                })
                .collect(),
        };
        let count = usize::from(leaf > 1);
        nodes[4].items.push((pivot_tuple(&desc, &value(first)[..count], count, None, BlockNumber(leaf)), false));
    }
    nodes[4].flags = 2;
    nodes[4].level = 1;
    nodes
}

fn pages(nodes: &[Node]) -> Vec<Page> {
    let mut pages: Vec<Page> = nodes.iter().map(Node::page).collect();
    pages[0] = meta_page(4, 1);
    pages
}

fn scan(pages: Vec<Page>, direction: Direction) -> BtreeScan<MemorySource> {
    let options = ScanOptions { direction, ..ScanOptions::default() };
    BtreeScan::new(ints(), MemorySource::new(pages), options)
}

fn at_least(value: i32) -> Vec<ScanKey> {
    vec![ScanKey::compare(0, Strategy::GreaterEqual, INT4, Some(Datum::Int32(value)))]
}

fn error(pages: Vec<Page>, direction: Direction) -> String {
    let error = collect(&mut scan(pages, direction), &[]).expect_err("damage is noticed");
    assert_eq!(error.state, SqlState::IndexCorrupted, "{error}");
    match error.hint {
        Some(hint) => format!("{} ({hint})", error.message),
        None => error.message,
    }
}

#[test]
fn each_damage_has_its_error() {
    use Direction::{Backward, Forward};
    let whole = three_leaves();
    let blocks = |scan: &mut BtreeScan<MemorySource>, keys: &[ScanKey]| -> Vec<u32> {
        collect(scan, keys).unwrap().iter().map(|tid| tid.block.0).collect()
    };
    assert_eq!(blocks(&mut scan(pages(&whole), Forward), &at_least(2)), [2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(blocks(&mut scan(pages(&whole), Backward), &at_least(2)), [8, 7, 6, 5, 4, 3, 2]);

    let mut zero = pages(&whole);
    zero[2] = Page::zeroed();
    assert_eq!(error(zero, Forward), "index \"i\" contains unexpected zero page at block 2 (Please REINDEX it.)");

    let mut heap = pages(&whole);
    heap[2].bytes_mut()[16..18].copy_from_slice(&8192u16.to_le_bytes());
    assert_eq!(error(heap, Forward), "index \"i\" contains corrupted page at block 2 (Please REINDEX it.)");

    let mut meta = pages(&whole);
    meta[0].bytes_mut()[24] ^= 1;
    assert_eq!(error(meta, Forward), "index \"i\" is not a btree");

    let mut version = pages(&whole);
    version[0].bytes_mut()[28] = 9;
    let message = "version mismatch in index \"i\": file version 9, current version 4, minimal supported version 2";
    assert_eq!(error(version, Forward), message);

    let mut level = whole.clone();
    level[4].level = 2;
    assert_eq!(error(pages(&level), Forward), "block 4 of index \"i\" has level 2, expected 1");

    let mut circle = whole.clone();
    circle[3].next = 2;
    circle[3].high_key = Some(pivot_tuple(&ints(), &[Some(Datum::Int32(9))], 1, None, BlockNumber(0)));
    circle[2].prev = 3;
    assert_eq!(
        error(pages(&circle), Forward),
        "left link/right link pair in index \"i\" not in agreement: block 2, left block 1"
    );
    circle[2].prev = 1;
    assert_eq!(
        error(pages(&circle), Forward),
        "left link/right link pair in index \"i\" not in agreement: block 2, left block 3"
    );

    let mut circle = whole.clone();
    circle[2].flags |= 4;
    circle[2].next = 2;
    assert_eq!(error(pages(&circle), Forward), "circular link chain found in block 2 of index \"i\"");

    let mut left = whole.clone();
    left[1].next = 3;
    assert_eq!(error(pages(&left), Backward), "could not find left sibling of block 2 in index \"i\"");

    let mut downlink = whole.clone();
    downlink[4].items[0].0 = pivot_tuple(&ints(), &[], 0, None, BlockNumber(0));
    let message = "index \"i\" contains corrupted tuple at block 4, offset 1: downlink to block 0";
    assert_eq!(error(pages(&downlink), Forward), message);

    let mut pivot = whole.clone();
    pivot[1].items[1].0 = pivot_tuple(&ints(), &[Some(Datum::Int32(1))], 1, None, BlockNumber(0));
    let message = "index \"i\" contains corrupted tuple at block 1, offset 3: pivot tuple among a leaf's rows";
    assert_eq!(error(pages(&pivot), Forward), message);

    let mut short = whole.clone();
    short[2].items[0].0.truncate(8);
    short[2].items[0].0[6..8].copy_from_slice(&8u16.to_le_bytes());
    let message = "index \"i\" contains corrupted tuple at block 2, offset 0: tuple is cut short: 4 bytes wanted at offset 0, 0 there";
    let found = collect(&mut scan(pages(&short), Forward), &at_least(4)).unwrap_err();
    assert_eq!((found.state, &found.message[..]), (SqlState::IndexCorrupted, message));

    let mut ignored = whole.clone();
    ignored[3].flags |= 16;
    ignored[4].items.remove(0);
    ignored[4].items.remove(0);
    assert_eq!(error(pages(&ignored), Forward), "fell off the end of index \"i\"");

    let mut root = whole;
    root[4].flags |= 4;
    assert_eq!(error(pages(&root), Forward), "no live root page found in index \"i\"");
}

#[test]
fn versions_2_and_3_are_refused_by_name() {
    for version in [2, 3] {
        let mut pages = pages(&three_leaves());
        pages[0].bytes_mut()[28] = version;
        let error = collect(&mut scan(pages, Direction::Forward), &[]).unwrap_err();
        assert_eq!(error.state, SqlState::FeatureNotSupported);
        assert_eq!(
            error.message,
            "index \"i\": B-tree version 2 or 3 (made before PostgreSQL 12) is not supported by Stegodon yet; REINDEX it"
        );
    }
}

#[test]
fn an_empty_index_has_no_root() {
    let mut scan = scan(vec![meta_page(0, 0)], Direction::Forward);
    assert_eq!(collect(&mut scan, &[]).unwrap(), []);
    assert_eq!(scan.counters().searches, 1);
}

/// Runs a scan that must end, well or not, within a bound on the pages it reads.
fn run_bounded(scan: &mut BtreeScan<MemorySource>, keys: &[ScanKey], pages_max: u64) -> SqlResult<usize> {
    let mut cx = Context::from_waker(Waker::noop());
    let before = scan.counters().pages;
    let mut found = 0;
    scan.rescan(keys)?;
    loop {
        match scan.poll_next(&mut cx) {
            Poll::Pending => {}
            Poll::Ready(result) => {
                if !result? {
                    return Ok(found);
                }
                found += scan.matches().len();
            }
        }
        let read = scan.counters().pages - before;
        assert!(read <= pages_max, "{read} pages read");
    }
}

#[test]
fn no_damage_makes_a_scan_panic_or_run_for_ever() {
    for seed in 1..400 {
        let mut random = Random(seed);
        let types = [INT4, TEXT];
        let keys = types.map(|type_oid| key(type_oid, random.one_in(2), random.one_in(2), &[(type_oid, type_oid)]));
        let attributes = types.map(attribute).to_vec();
        let desc = Arc::new(IndexDesc::new("i", attributes, keys.to_vec(), false).unwrap());
        let mut rows: Vec<Row> = (0..300)
            .map(|i| {
                let values = vec![
                    (!random.one_in(9)).then(|| Datum::Int32(random.below(20) as i32)),
                    (!random.one_in(9)).then(|| Datum::bytes(format!("{:03}", random.below(9)))),
                ];
                (values, Tid::new(BlockNumber(i / 7), OffsetNumber((i % 7 + 1) as u16)))
            })
            .collect();
        let shape = Shape { per_leaf: 12, per_branch: 3, posting: true, troubled: random.one_in(2) };
        let (whole, _) = build(&desc, &mut rows, &mut random, shape);
        for _ in 0..20 {
            let mut pages = whole.clone();
            for _ in 0..=random.below(3) {
                let page = random.below(pages.len() as u64) as usize;
                let bytes = pages[page].bytes_mut();
                // Anywhere, in the header, among the links, or among the tuples.
                let range = random.pick(&[(0, 8192), (8, 80), (8176, 16), (7600, 576)]);
                for _ in 0..=random.below(4) {
                    bytes[range.0 + random.below(range.1) as usize] = random.pick(&[0, 1, 2, 3, 0x20, 0x80, 0xFF]);
                }
            }
            let count = pages.len() as u64;
            let mut source = MemorySource::new(pages);
            source.slow = random.one_in(4);
            let mut scan = BtreeScan::new(Arc::clone(&desc), source, ScanOptions::default());
            let elements: Vec<_> = (0..6).map(|i| Some(Datum::Int32(i * 3))).collect();
            for keys in [
                vec![],
                vec![ScanKey::any(0, Strategy::Equal, INT4, elements)],
                vec![ScanKey::compare(1, Strategy::GreaterEqual, TEXT, Some(Datum::bytes("004")))],
            ] {
                for direction in [Direction::Forward, Direction::Backward] {
                    scan.set_direction(direction);
                    // Every descent may walk twice along what is a circle.
                    let _ = run_bounded(&mut scan, &keys, 7 * (3 * count + 20));
                }
            }
        }
    }
}
