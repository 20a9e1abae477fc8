//! A scan of an index whose every page is the input's: it must end, having read few pages.
//!
//! ```text
//!   input ─▸ shape of the index ─▸ pages: links, level, flags, items ─▸ bytes overwritten anywhere ─▸ keys, direction
//! ```

use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Waker};

use stegodon_format::btree::{MAGIC, PageFlags};
use stegodon_format::ids::{BlockNumber, OffsetNumber, Oid, Tid};
use stegodon_format::page::{BLCKSZ, ItemId, ItemState, Page, PageRef};
use stegodon_nbtree::{
    BtreeScan, Direction, IndexAttribute, IndexDesc, IndexKey, KeyComparator, PageSource, RowMember, ScanKey,
    ScanOptions, Strategy,
};
use stegodon_types::{Collation, Datum, FormatSettings, SqlError, SqlResult, SqlState, TypeCatalog, oids};

use crate::catalog::Types;
use crate::format::index_page;
use crate::input::Input;

const PAGES_MAX: usize = 12;

/// The columns an index may have: a type, and its comparison.
const COLUMNS: [(Oid, u32); 6] = [
    (oids::INT4, 351),
    (oids::TEXT, 360),
    (oids::NUMERIC, 1769),
    (oids::INT8, 842),
    (oids::BOOL, 1693),
    (Oid(1007), 382),
];

static SETTINGS: LazyLock<Arc<FormatSettings>> = LazyLock::new(Arc::default);

fn desc(columns: &[(Oid, u32)], orders: u8, included: bool) -> IndexDesc {
    let attributes = columns.iter().map(|(type_oid, _)| {
        let desc = Types.type_desc(*type_oid).unwrap();
        IndexAttribute { len: desc.len, align: desc.align, layout: desc.layout }
    });
    let keys = columns.iter().enumerate().map(|(at, (type_oid, support))| {
        let types: Arc<dyn TypeCatalog> = Arc::new(Types);
        let indexed = types.type_desc(*type_oid).unwrap();
        let compare =
            KeyComparator::of_support(Oid(*support), types, Arc::clone(&SETTINGS), indexed, Collation::C).unwrap();
        IndexKey {
            input_type: *type_oid,
            desc: orders >> (2 * at) & 1 == 1,
            nulls_first: orders >> (2 * at + 1) & 1 == 1,
            compare: vec![(*type_oid, *type_oid, compare)],
        }
    });
    let key_count = columns.len() - usize::from(included && columns.len() > 1);
    let attributes = attributes.collect();
    IndexDesc::new("i", attributes, keys.take(key_count).collect(), orders & 128 == 128).unwrap()
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// One item: a row, a pivot, a posting list or anything at all.
fn item(input: &mut Input<'_>) -> Vec<u8> {
    let kind = input.u8();
    let len = usize::from(input.u8() % 48);
    let mut body = input.bytes(len).to_vec();
    body.resize(body.len().next_multiple_of(8), 0);
    let (block, offset) = (u32::from(input.u8()), u16::from(input.u8()));
    let (tid, info) = match kind % 4 {
        0 => (Tid::new(BlockNumber(block), OffsetNumber(offset)), 0),
        // A pivot of so many attributes, perhaps with a heap TID behind them.
        1 => (Tid::new(BlockNumber(block), OffsetNumber(offset % 4 | u16::from(kind & 16) << 8)), 0x2000),
        // A posting list at the end of the body.
        2 => {
            let start = 8 + body.len() as u32;
            body.extend((0..offset % 8).flat_map(|at| Tid::new(BlockNumber(block), OffsetNumber(at + 1)).to_bytes()));
            body.resize(body.len().next_multiple_of(8), 0);
            (Tid::new(BlockNumber(start), OffsetNumber(0x2000 | offset % 8)), 0x2000)
        }
        _ => (Tid::new(BlockNumber(block << 24 | block), OffsetNumber(offset << 8 | offset)), 0x2000),
    };
    let nulls = if kind & 32 == 32 { 0x8000 } else { 0 };
    let var = if kind & 64 == 64 { 0x4000 } else { 0 };
    let size = (8 + body.len()) as u16 ^ u16::from(kind & 128);
    let mut bytes = tid.to_bytes().to_vec();
    bytes.extend((info | nulls | var | size).to_le_bytes());
    bytes.extend(body);
    bytes
}

fn page(input: &mut Input<'_>, count: u8) -> Page {
    let mut page = Page::zeroed();
    let bytes = page.bytes_mut();
    let special = BLCKSZ - 16;
    let (prev, next) = (input.u8() % (count + 1), input.u8() % (count + 1));
    let (level, flags, items) = (input.u8() % 4, input.u8(), input.u8() % 8);
    let (mut lower, mut upper) = (24, special);
    for _ in 0..items {
        let item = item(input);
        upper -= item.len();
        put(bytes, upper, &item);
        let state = if input.u8() % 16 == 15 { ItemState::Dead } else { ItemState::Normal };
        put(bytes, lower, &ItemId::new(upper as u16, state, item.len() as u16).0.to_le_bytes());
        lower += 4;
    }
    for (at, word) in [(12, lower), (14, upper), (16, special), (18, 0x2004)] {
        put(bytes, at, &(word as u16).to_le_bytes());
    }
    for (at, word) in [(0, u32::from(prev)), (4, u32::from(next)), (8, u32::from(level)), (12, u32::from(flags))] {
        put(bytes, special + at, &word.to_le_bytes());
    }
    page
}

fn pages(input: &mut Input<'_>) -> Vec<Page> {
    let count = usize::from(input.u8()) % PAGES_MAX + 1;
    let (root, level) = (input.u8() % 4, input.u8() % 4);
    let mut meta = page(&mut Input(&[]), 1);
    let bytes = meta.bytes_mut();
    put(bytes, BLCKSZ - 16 + 12, &PageFlags::META.to_le_bytes());
    for (at, word) in
        [MAGIC, 4, u32::from(root), u32::from(level), u32::from(root), u32::from(level)].iter().enumerate()
    {
        put(bytes, 24 + 4 * at, &word.to_le_bytes());
    }
    put(bytes, 12, &48_u16.to_le_bytes());
    let mut pages = vec![meta];
    pages.extend((0..count).map(|_| page(input, count as u8)));
    for _ in 0..input.u8() % 8 {
        let (at, offset, value) = (usize::from(input.u8()) % pages.len(), usize::from(input.u16()), input.u8());
        pages[at].bytes_mut()[offset % BLCKSZ] = value;
    }
    pages
}

fn value(input: &mut Input<'_>, type_oid: Oid) -> Option<Datum> {
    if input.u8().is_multiple_of(8) {
        return None;
    }
    Some(match type_oid {
        oids::INT4 => Datum::Int32(input.u32() as i32),
        oids::INT8 => Datum::Int64(input.u64() as i64),
        oids::BOOL => Datum::Bool(input.u8() % 2 == 1),
        _ => {
            let len = usize::from(input.u8() % 32);
            Datum::bytes(input.bytes(len))
        }
    })
}

fn strategy(input: &mut Input<'_>) -> Strategy {
    Strategy::from_number(u16::from(input.u8() % 5 + 1)).unwrap()
}

fn key(input: &mut Input<'_>, columns: &[(Oid, u32)]) -> ScanKey {
    let column = usize::from(input.u8()) % columns.len();
    let type_oid = columns[column].0;
    match input.u8() % 6 {
        0 => ScanKey::is_null(column),
        1 => ScanKey::is_not_null(column),
        2 => {
            let elements = (0..input.u8() % 8).map(|_| value(input, type_oid)).collect();
            ScanKey::any(column, strategy(input), type_oid, elements)
        }
        3 => {
            let member = |column: usize, input: &mut Input<'_>| {
                let type_oid = columns[column].0;
                let argument = stegodon_nbtree::Argument { value: value(input, type_oid), type_oid };
                RowMember { column, argument }
            };
            let strategy = input.pick(&[Strategy::Less, Strategy::LessEqual, Strategy::Greater]);
            ScanKey::Row { strategy, members: (column..columns.len()).map(|column| member(column, input)).collect() }
        }
        _ => ScanKey::compare(column, strategy(input), type_oid, value(input, type_oid)),
    }
}

/// The pages, in memory.
struct Memory(Vec<Page>);

impl PageSource for Memory {
    type Pin = usize;

    fn poll_read(&mut self, block: BlockNumber, _: &mut Context<'_>) -> Poll<SqlResult<usize>> {
        if block.0 as usize >= self.0.len() {
            return Poll::Ready(Err(SqlError::new(SqlState::DataCorrupted, format!("no block {block}"))));
        }
        Poll::Ready(Ok(block.0 as usize))
    }

    fn with_page<R>(&self, pin: &usize, look: impl FnOnce(PageRef<'_>) -> R) -> R {
        look(self.0[*pin].view())
    }

    fn block_count(&mut self) -> SqlResult<u32> {
        Ok(self.0.len() as u32)
    }
}

pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let columns = usize::from(input.u8() % 3) + 1;
    let columns: Vec<(Oid, u32)> = (0..columns).map(|_| input.pick(&COLUMNS)).collect();
    let desc = Arc::new(desc(&columns, input.u8(), input.u8().is_multiple_of(4)));
    let pages = pages(&mut input);
    let count = pages.len() as u64;
    pages.iter().for_each(|page| index_page(page.view()));
    let keys = desc.keys.len();
    let keep_tuples = input.u8().is_multiple_of(2);
    let options = ScanOptions { keep_tuples, ..ScanOptions::default() };
    let mut scan = BtreeScan::new(Arc::clone(&desc), Memory(pages), options);
    for _ in 0..2 {
        scan.set_direction(input.pick(&[Direction::Forward, Direction::Backward]));
        let keys: Vec<ScanKey> = (0..input.u8() % 4).map(|_| key(&mut input, &columns[..keys])).collect();
        let before = scan.counters().pages;
        let mut cx = Context::from_waker(Waker::noop());
        if scan.rescan(&keys).is_err() {
            continue;
        }
        while let Poll::Ready(Ok(true)) = scan.poll_next(&mut cx) {
            for found in scan.matches() {
                if keep_tuples && let Ok(mut values) = scan.values(found) {
                    let mut scratch = Vec::new();
                    for column in 0..desc.attributes.len() {
                        let _ = values.get(column, &mut scratch);
                    }
                }
            }
            // Each of the arrays' elements may descend anew, and every descent may walk twice along what is a circle.
            let read = scan.counters().pages - before;
            assert!(read <= 600 * (3 * count + 20), "{read} pages read");
        }
    }
}
