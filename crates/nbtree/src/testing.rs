//! For this crate's tests: a seeded source of choices, index descriptions, and trees built page by page in memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::cmp::Ordering;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use stegodon_format::btree::{MAGIC, PageFlags};
use stegodon_format::ids::{BlockNumber, OffsetNumber, Oid, Tid};
use stegodon_format::page::{BLCKSZ, ItemId, ItemState, Page, PageRef};
use stegodon_types::{Align, Datum, Layout, SqlError, SqlResult, SqlState, ValueRef};

use crate::{BtreeScan, IndexAttribute, IndexDesc, IndexKey, KeyComparator, PageSource, ScanKey};

pub(crate) const INT4: Oid = Oid(23);
pub(crate) const INT8: Oid = Oid(20);
pub(crate) const TEXT: Oid = Oid(25);

/// xorshift64*, seeded: a failure names its seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16) % limit.max(1)
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

fn int_of(value: ValueRef<'_>) -> i64 {
    match value {
        ValueRef::Int32(v) => i64::from(v),
        ValueRef::Int64(v) => v,
        other => panic!("{other:?} is no integer"),
    }
}

/// Compares integers of any width, and bytes.
pub(crate) fn compare_values(a: ValueRef<'_>, b: ValueRef<'_>) -> Ordering {
    match (a, b) {
        (ValueRef::Bytes(a), ValueRef::Bytes(b)) => a.cmp(b),
        _ => int_of(a).cmp(&int_of(b)),
    }
}

pub(crate) fn comparator() -> KeyComparator {
    KeyComparator::new(|a, b| Ok(compare_values(a, b)))
}

pub(crate) fn attribute(type_oid: Oid) -> IndexAttribute {
    match type_oid {
        INT4 => IndexAttribute { len: 4, align: Align::Int, layout: Some(Layout::Int32) },
        INT8 => IndexAttribute { len: 8, align: Align::Double, layout: Some(Layout::Int64) },
        _ => IndexAttribute { len: -1, align: Align::Int, layout: Some(Layout::Bytes) },
    }
}

/// A key column whose family compares these pairs.
pub(crate) fn key(input_type: Oid, desc: bool, nulls_first: bool, pairs: &[(Oid, Oid)]) -> IndexKey {
    let compare = pairs.iter().map(|&(left, right)| (left, right, comparator())).collect();
    IndexKey { input_type, desc, nulls_first, compare }
}

/// One row: its attributes and its place.
pub(crate) type Row = (Vec<Option<Datum>>, Tid);

pub(crate) fn index_order(desc: &IndexDesc, a: &[Option<Datum>], b: &[Option<Datum>]) -> Ordering {
    for (i, key) in desc.keys.iter().enumerate() {
        let (a, b) = (a[i].as_ref().map(Datum::as_ref), b[i].as_ref().map(Datum::as_ref));
        let order = match (a, b) {
            (Some(a), Some(b)) if key.desc => compare_values(a, b).reverse(),
            (Some(a), Some(b)) => compare_values(a, b),
            (None, None) => Ordering::Equal,
            (None, Some(_)) => {
                if key.nulls_first {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
            }
            (Some(_), None) => {
                if key.nulls_first {
                    Ordering::Greater
                } else {
                    Ordering::Less
                }
            }
        };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

fn align(bytes: &mut Vec<u8>, to: usize) {
    bytes.resize(bytes.len().next_multiple_of(to), 0);
}

/// An index tuple of the first `count` attributes. `tids`: one for a row, several for a posting list.
pub(crate) fn row_tuple(desc: &IndexDesc, values: &[Option<Datum>], tids: &[Tid]) -> Vec<u8> {
    let mut bytes = body(desc, values, values.len());
    if let [tid] = tids {
        finish(bytes, tid.to_bytes(), 0, values)
    } else {
        let start = bytes.len() as u32;
        bytes.extend(tids.iter().flat_map(|tid| tid.to_bytes()));
        let head = Tid::new(BlockNumber(start), OffsetNumber(0x2000 | tids.len() as u16));
        finish(bytes, head.to_bytes(), 0x2000, values)
    }
}

/// A pivot of the first `count` attributes and perhaps a heap TID.
pub(crate) fn pivot_tuple(
    desc: &IndexDesc,
    values: &[Option<Datum>],
    count: usize,
    heap_tid: Option<Tid>,
    child: BlockNumber,
) -> Vec<u8> {
    let mut bytes = body(desc, values, count);
    let mut offset = count as u16;
    if let Some(tid) = heap_tid {
        bytes.extend([0, 0]);
        bytes.extend(tid.to_bytes());
        offset |= 0x1000;
    }
    finish(bytes, Tid::new(child, OffsetNumber(offset)).to_bytes(), 0x2000, &values[..count])
}

fn body(desc: &IndexDesc, values: &[Option<Datum>], count: usize) -> Vec<u8> {
    let mut bytes = vec![0; 8];
    if values[..count].iter().any(Option::is_none) {
        let nulls = values[..count].iter().enumerate().fold(0u32, |bits, (i, v)| bits | u32::from(v.is_some()) << i);
        bytes.extend(nulls.to_le_bytes());
        align(&mut bytes, 8);
    }
    for (value, attribute) in values[..count].iter().zip(&desc.attributes) {
        match value {
            None => {}
            Some(Datum::Int32(v)) => {
                align(&mut bytes, attribute.align.bytes());
                bytes.extend(v.to_le_bytes());
            }
            Some(Datum::Int64(v)) => {
                align(&mut bytes, attribute.align.bytes());
                bytes.extend(v.to_le_bytes());
            }
            Some(Datum::Bytes(v)) => {
                bytes.push((v.len() as u8 + 1) << 1 | 1);
                bytes.extend(v.iter());
            }
            Some(other) => panic!("{other:?}"),
        }
    }
    align(&mut bytes, 8);
    bytes
}

fn finish(mut bytes: Vec<u8>, tid: [u8; 6], mut info: u16, values: &[Option<Datum>]) -> Vec<u8> {
    align(&mut bytes, 8);
    if values.iter().any(Option::is_none) {
        info |= 0x8000;
    }
    bytes[..6].copy_from_slice(&tid);
    let size = bytes.len() as u16;
    bytes[6..8].copy_from_slice(&(info | size).to_le_bytes());
    bytes
}

/// A page of the tree as it is put together.
#[derive(Clone, Default)]
pub(crate) struct Node {
    pub(crate) prev: u32,
    pub(crate) next: u32,
    pub(crate) level: u32,
    pub(crate) flags: u16,
    pub(crate) high_key: Option<Vec<u8>>,
    /// Tuples, and whether each is dead.
    pub(crate) items: Vec<(Vec<u8>, bool)>,
}

impl Node {
    pub(crate) fn page(&self) -> Page {
        let mut page = Page::zeroed();
        let bytes = page.bytes_mut();
        let special = BLCKSZ - 16;
        let mut upper = special;
        let all = self.high_key.iter().map(|key| (key.clone(), false)).chain(self.items.iter().cloned());
        let mut lower = 24;
        for (item, dead) in all {
            upper -= item.len();
            assert!(upper > lower + 4, "the page is full");
            bytes[upper..upper + item.len()].copy_from_slice(&item);
            let state = if dead { ItemState::Dead } else { ItemState::Normal };
            let id = ItemId::new(upper as u16, state, item.len() as u16);
            bytes[lower..lower + 4].copy_from_slice(&id.0.to_le_bytes());
            lower += 4;
        }
        bytes[12..14].copy_from_slice(&(lower as u16).to_le_bytes());
        bytes[14..16].copy_from_slice(&(upper as u16).to_le_bytes());
        bytes[16..18].copy_from_slice(&(special as u16).to_le_bytes());
        bytes[18..20].copy_from_slice(&0x2004u16.to_le_bytes());
        bytes[special..special + 4].copy_from_slice(&self.prev.to_le_bytes());
        bytes[special + 4..special + 8].copy_from_slice(&self.next.to_le_bytes());
        bytes[special + 8..special + 12].copy_from_slice(&self.level.to_le_bytes());
        bytes[special + 12..special + 14].copy_from_slice(&self.flags.to_le_bytes());
        page
    }
}

pub(crate) fn meta_page(root: u32, level: u32) -> Page {
    let mut page = Node { flags: PageFlags::META, ..Node::default() }.page();
    let bytes = page.bytes_mut();
    for (at, value) in [(0, MAGIC), (4, 4), (8, root), (12, level), (16, root), (20, level)] {
        bytes[24 + at..28 + at].copy_from_slice(&value.to_le_bytes());
    }
    page
}

/// A tree in memory. Every other read is not ready at first, if `slow`.
#[derive(Clone)]
pub(crate) struct MemorySource {
    pub(crate) pages: Arc<Vec<Page>>,
    pub(crate) slow: bool,
    asked: bool,
}

impl MemorySource {
    pub(crate) fn new(pages: Vec<Page>) -> Self {
        Self { pages: Arc::new(pages), slow: false, asked: false }
    }
}

impl PageSource for MemorySource {
    type Pin = usize;

    fn poll_read(&mut self, block: BlockNumber, cx: &mut Context<'_>) -> Poll<SqlResult<usize>> {
        self.asked = !self.asked;
        if self.slow && self.asked {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if block.0 as usize >= self.pages.len() {
            return Poll::Ready(Err(SqlError::new(SqlState::DataCorrupted, format!("no block {block}"))));
        }
        Poll::Ready(Ok(block.0 as usize))
    }

    fn with_page<R>(&self, pin: &usize, look: impl FnOnce(PageRef<'_>) -> R) -> R {
        look(self.pages[*pin].view())
    }

    fn block_count(&mut self) -> SqlResult<u32> {
        Ok(self.pages.len() as u32)
    }
}

/// Runs a scan to its end.
pub(crate) fn collect<S: PageSource>(scan: &mut BtreeScan<S>, keys: &[ScanKey]) -> SqlResult<Vec<Tid>> {
    let mut found = Vec::new();
    let mut cx = Context::from_waker(Waker::noop());
    scan.rescan(keys)?;
    loop {
        match scan.poll_next(&mut cx) {
            Poll::Pending => {}
            Poll::Ready(Ok(true)) => found.extend(scan.matches().iter().copied()),
            Poll::Ready(Ok(false)) => return Ok(found),
            Poll::Ready(Err(error)) => return Err(error),
        }
    }
}

/// How a random tree is built.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shape {
    pub(crate) per_leaf: u64,
    pub(crate) per_branch: u64,
    /// Whether equal keys become posting lists, sometimes.
    pub(crate) posting: bool,
    /// Whether there are half-dead and deleted pages, dead tuples and missing downlinks.
    pub(crate) troubled: bool,
}

/// A tree over `rows`, which get sorted. Returns its pages and the rows in the order in which a forward scan meets them:
/// per index tuple, without those of dead tuples.
pub(crate) fn build(
    desc: &IndexDesc,
    rows: &mut [Row],
    random: &mut Random,
    shape: Shape,
) -> (Vec<Page>, Vec<Vec<Row>>) {
    rows.sort_by(|a, b| index_order(desc, &a.0, &b.0).then(a.1.cmp(&b.1)));
    // Index tuples: (values, tids).
    let mut tuples: Vec<(Vec<Option<Datum>>, Vec<Tid>)> = Vec::new();
    for (values, tid) in rows.iter() {
        let may_post = shape.posting && random.below(3) > 0;
        match tuples.last_mut() {
            Some((last, tids)) if may_post && last == values && tids.len() < 20 => tids.push(*tid),
            _ => tuples.push((values.clone(), vec![*tid])),
        }
    }
    let mut nodes: Vec<Node> = vec![Node::default()];
    let mut met = Vec::new();
    // One level after the other; each child comes with its lower bound: a pivot's values, count and heap TID.
    type Pivot = (Vec<Option<Datum>>, usize, Option<Tid>);
    let mut children: Vec<(u32, Option<Pivot>)> = Vec::new();
    let mut at = 0;
    let mut bound: Option<Pivot> = None;
    let mut last_block = 0u32;
    loop {
        let count = (1 + random.below(shape.per_leaf) as usize).min(tuples.len() - at);
        let block = nodes.len() as u32;
        let mut node = Node { prev: last_block, flags: PageFlags::LEAF, ..Node::default() };
        for (values, tids) in &tuples[at..at + count] {
            let dead = shape.troubled && random.one_in(8);
            node.items.push((row_tuple(desc, values, tids), dead));
            if !dead {
                met.push(tids.iter().map(|tid| (values.clone(), *tid)).collect());
            }
        }
        at += count;
        children.push((block, bound.take()));
        if last_block > 0 {
            nodes[last_block as usize].next = block;
        }
        last_block = block;
        nodes.push(node);
        if at == tuples.len() {
            break;
        }
        // Keep attributes up to the first that differs; a heap TID where none does.
        let (left, right) = (&tuples[at - 1], &tuples[at]);
        let keys = desc.keys.len();
        let same = (0..keys).take_while(|&i| left.0[i] == right.0[i]).count();
        let pivot: Pivot = if same < keys {
            (right.0[..=same].to_vec(), same + 1, None)
        } else {
            (right.0[..keys].to_vec(), keys, left.1.last().copied())
        };
        nodes[block as usize].high_key = Some(pivot_tuple(desc, &pivot.0, pivot.1, pivot.2, BlockNumber(0)));
        // Between two leaves, one that is going: half dead keeps its key space for its right sibling.
        if shape.troubled && random.one_in(6) {
            let half_dead = random.one_in(2);
            let gone = nodes.len() as u32;
            nodes[block as usize].next = gone;
            nodes.push(Node {
                prev: block,
                flags: PageFlags::LEAF | if half_dead { PageFlags::HALF_DEAD } else { PageFlags::DELETED },
                high_key: Some(pivot_tuple(desc, &pivot.0, pivot.1, pivot.2, BlockNumber(u32::MAX))),
                ..Node::default()
            });
            if half_dead {
                last_block = gone;
            } else {
                // A deleted page is only reached by whoever followed a link before: here nobody does.
                nodes[block as usize].next = 0;
                nodes[gone as usize].next = gone + 1;
            }
        }
        bound = Some(pivot);
    }
    let mut level = 0;
    while children.len() > 1 {
        level += 1;
        let mut parents: Vec<(u32, Option<Pivot>)> = Vec::new();
        let mut last_block = 0u32;
        let mut rest = children.into_iter().peekable();
        while rest.peek().is_some() {
            let block = nodes.len() as u32;
            let mut node = Node { prev: last_block, level, ..Node::default() };
            let mut lower = None;
            for i in 0..2 + random.below(shape.per_branch) {
                let Some((child, bound)) = rest.next() else { break };
                if i == 0 {
                    lower = bound;
                    node.items.push((pivot_tuple(desc, &[], 0, None, BlockNumber(child)), false));
                } else if shape.troubled && random.one_in(9) {
                    // An incomplete split: the child is reached from its left sibling only.
                    let left = nodes[child as usize].prev;
                    nodes[left as usize].flags |= PageFlags::INCOMPLETE_SPLIT;
                } else {
                    let bound = bound.unwrap();
                    let pivot = pivot_tuple(desc, &bound.0, bound.1, bound.2, BlockNumber(child));
                    node.items.push((pivot, false));
                }
            }
            if let Some((_, Some(bound))) = rest.peek() {
                node.high_key = Some(pivot_tuple(desc, &bound.0, bound.1, bound.2, BlockNumber(0)));
            }
            if last_block > 0 {
                nodes[last_block as usize].next = block;
            }
            last_block = block;
            parents.push((block, lower));
            nodes.push(node);
        }
        children = parents;
    }
    let root = if tuples.is_empty() { 0 } else { children[0].0 };
    if root > 0 {
        nodes[root as usize].flags |= PageFlags::ROOT;
    }
    let mut pages: Vec<Page> = nodes.iter().map(Node::page).collect();
    pages[0] = meta_page(root, level);
    (pages, met)
}
