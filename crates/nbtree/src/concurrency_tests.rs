//! The tree changes between two leaves of a scan, as writers may change it: nothing is missed, nothing seen twice.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use stegodon_format::btree::PageFlags;
use stegodon_format::ids::BlockNumber;
use stegodon_format::page::{Page, PageRef};
use stegodon_types::{Datum, SqlResult};

use crate::damage_tests::{ints, three_leaves};
use crate::testing::*;
use crate::{BtreeScan, Direction, PageSource, ScanOptions};

/// A tree that can be changed while a scan of it is under way.
#[derive(Clone)]
struct Tree(Rc<RefCell<Vec<Node>>>, Rc<RefCell<(u32, u32)>>);

impl Tree {
    fn new() -> Self {
        Tree(Rc::new(RefCell::new(three_leaves())), Rc::new(RefCell::new((4, 1))))
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Node>)) {
        change(&mut self.0.borrow_mut());
    }
}

impl PageSource for Tree {
    type Pin = Box<Page>;

    fn poll_read(&mut self, block: BlockNumber, _: &mut Context<'_>) -> Poll<SqlResult<Box<Page>>> {
        let (root, level) = *self.1.borrow();
        let nodes = self.0.borrow();
        let page = if block.0 == 0 { meta_page(root, level) } else { nodes[block.0 as usize].page() };
        Poll::Ready(Ok(Box::new(page)))
    }

    fn with_page<R>(&self, pin: &Box<Page>, look: impl FnOnce(PageRef<'_>) -> R) -> R {
        look(pin.view())
    }

    fn block_count(&mut self) -> SqlResult<u32> {
        Ok(self.0.borrow().len() as u32)
    }
}

/// Splits leaf `left`: its last rows, all but `kept`, go to a new page to its right.
fn split(nodes: &mut Vec<Node>, left: usize, kept: usize) {
    let new = nodes.len();
    let right = nodes[left].next;
    let first_right = (left as i32 - 1) * 3 + kept as i32;
    let moved = nodes[left].items.split_off(kept);
    let high_key = pivot_tuple(&ints(), &[Some(Datum::Int32(first_right))], 1, None, BlockNumber(0));
    let node = Node { prev: left as u32, next: right, items: moved, ..nodes[left].clone() };
    nodes.push(node);
    nodes[left].high_key = Some(high_key);
    nodes[left].next = new as u32;
    nodes[left].flags |= PageFlags::INCOMPLETE_SPLIT;
    if right > 0 {
        nodes[right as usize].prev = new as u32;
    }
}

/// Unlinks a leaf, whose rows are gone; it keeps its own links.
fn delete(nodes: &mut [Node], block: usize) {
    let (prev, next) = (nodes[block].prev, nodes[block].next);
    nodes[block].items.clear();
    nodes[block].flags |= PageFlags::DELETED;
    nodes[prev as usize].next = next;
    nodes[next as usize].prev = prev;
}

/// The rows of a scan, by leaf; `change` happens after leaf number `after`.
fn rows(direction: Direction, after: usize, change: impl FnOnce(&mut Vec<Node>)) -> Vec<Vec<u32>> {
    let tree = Tree::new();
    let options = ScanOptions { direction, ..ScanOptions::default() };
    let mut scan = BtreeScan::new(ints(), tree.clone(), options);
    let mut cx = Context::from_waker(Waker::noop());
    let mut change = Some(change);
    let mut leaves = Vec::new();
    scan.rescan(&[]).unwrap();
    while let Poll::Ready(true) = scan.poll_next(&mut cx).map(Result::unwrap) {
        leaves.push(scan.matches().iter().map(|tid| tid.block.0).collect());
        if leaves.len() == after {
            tree.change(change.take().unwrap());
        }
    }
    leaves
}

#[test]
fn forward_past_splits_and_deletions() {
    let rows = |after, change: &dyn Fn(&mut Vec<Node>)| rows(Direction::Forward, after, change);
    // The page just read splits: its new right half was read with it.
    assert_eq!(rows(1, &|nodes| split(nodes, 1, 1)), [vec![0, 1, 2], vec![3, 4, 5], vec![6, 7, 8]]);
    // The page to come splits.
    assert_eq!(rows(1, &|nodes| split(nodes, 2, 1)), [vec![0, 1, 2], vec![3], vec![4, 5], vec![6, 7, 8]]);
    // The page to come is deleted.
    assert_eq!(rows(1, &|nodes| delete(nodes, 2)), [vec![0, 1, 2], vec![6, 7, 8]]);
    // The page just read is deleted.
    assert_eq!(rows(2, &|nodes| delete(nodes, 2)), [vec![0, 1, 2], vec![3, 4, 5], vec![6, 7, 8]]);
}

#[test]
fn backward_past_splits_and_deletions() {
    let rows = |after, change: &dyn Fn(&mut Vec<Node>)| rows(Direction::Backward, after, change);
    // The page to come splits, once and several times.
    assert_eq!(rows(1, &|nodes| split(nodes, 2, 1)), [vec![8, 7, 6], vec![5, 4], vec![3], vec![2, 1, 0]]);
    let twice = |nodes: &mut Vec<Node>| {
        split(nodes, 2, 2);
        split(nodes, 2, 1);
    };
    assert_eq!(rows(1, &twice), [vec![8, 7, 6], vec![5], vec![4], vec![3], vec![2, 1, 0]]);
    // The page to come is deleted.
    assert_eq!(rows(1, &|nodes| delete(nodes, 2)), [vec![8, 7, 6], vec![2, 1, 0]]);
    // The page just read is deleted, and its neighbour may be, too.
    assert_eq!(rows(2, &|nodes| delete(nodes, 2)), [vec![8, 7, 6], vec![5, 4, 3], vec![2, 1, 0]]);
    let with_split = |nodes: &mut Vec<Node>| {
        delete(nodes, 2);
        split(nodes, 1, 1);
    };
    assert_eq!(rows(2, &with_split), [vec![8, 7, 6], vec![5, 4, 3], vec![2, 1], vec![0]]);
    // The page just read splits.
    assert_eq!(rows(1, &|nodes| split(nodes, 3, 1)), [vec![8, 7, 6], vec![5, 4, 3], vec![2, 1, 0]]);
}

#[test]
fn a_remembered_root_that_is_none_any_more_is_forgotten() {
    let tree = Tree::new();
    let mut scan = BtreeScan::new(ints(), tree.clone(), ScanOptions::default());
    assert_eq!(collect(&mut scan, &[]).unwrap().len(), 9);
    // Block 4 splits: 3's downlink moves to 5; 6 is the new root.
    tree.change(|nodes| {
        let moved = nodes[4].items.pop().unwrap();
        let key = pivot_tuple(&ints(), &[Some(Datum::Int32(6))], 1, None, BlockNumber(0));
        nodes[4].high_key = Some(key);
        nodes[4].next = 5;
        nodes[4].flags = 0;
        let first = (pivot_tuple(&ints(), &[], 0, None, BlockNumber(3)), moved.1);
        nodes.push(Node { prev: 4, level: 1, items: vec![first], ..Node::default() });
        let downlinks = vec![
            (pivot_tuple(&ints(), &[], 0, None, BlockNumber(4)), false),
            (pivot_tuple(&ints(), &[Some(Datum::Int32(6))], 1, None, BlockNumber(5)), false),
        ];
        nodes.push(Node { level: 2, flags: PageFlags::ROOT, items: downlinks, ..Node::default() });
    });
    *tree.1.borrow_mut() = (6, 2);
    let before = scan.counters();
    assert_eq!(collect(&mut scan, &[]).unwrap().len(), 9);
    // The old root in vain, the metapage, root, branch, three leaves.
    assert_eq!(scan.counters().pages - before.pages, 7);
}
