//! A cluster of PostgreSQL 15 whose transaction ids, multixacts and multixact members wrapped around.
//!
//! `pg_resetwal -x 4294967200 -m 4294967290,4294967000 -O 4294967100` was run on a frozen cluster; a table then got rows,
//! deletions, row locks, a savepoint and a prepared transaction before and after the wrap. `testdata/wrapped.tar.xz` has its
//! one block, what the cluster recorded of its transactions at rest, and what it answered to `select ctid`. Its `oldestXid`
//! is still the one before: it lies behind the next id.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use std::process::Command;
use std::sync::Arc;

use common::{checker, visible};
use stegodon_format::ids::{FullXid, Xid};
use stegodon_format::page::{BLCKSZ, Page};
use stegodon_format::version::Version;
use stegodon_io::DataDirectory;
use stegodon_txn::Transactions;

const XMIN_HINTS: u16 = 0x0300;
const XMAX_COMMITTED: u16 = 0x0400;
const XMAX_INVALID: u16 = 0x0800;
const XMAX_IS_MULTI: u16 = 0x1000;

#[test]
fn rows_from_before_and_after_the_wrap_are_seen() {
    let scratch = tempfile::tempdir().unwrap();
    let status = Command::new("tar").arg("-C").arg(scratch.path()).args(["-xJf", "testdata/wrapped.tar.xz"]).status();
    assert!(status.unwrap().success());
    let root = scratch.path().join("wrapped");
    let directory = DataDirectory::open(&root).unwrap();
    assert_eq!(directory.version(), Version::V15);
    let control = directory.control().clone();
    assert_eq!(control.checkpoint.next_xid, FullXid(1 << 32 | 0x66));
    assert_eq!((control.checkpoint.next_multi.0, control.checkpoint.oldest_multi.0), (7, 4_294_967_000));
    let transactions = Arc::new(Transactions::open(&directory, &control).unwrap());
    assert_eq!(transactions.prepared().xids().collect::<Vec<_>>(), [Xid(100)]);

    let expected = std::fs::read_to_string(root.join("visible.txt")).unwrap();
    let expected: Vec<&str> = expected.lines().collect();
    let mut bytes: [u8; BLCKSZ] = std::fs::read(root.join("table")).unwrap().try_into().unwrap();
    assert_eq!(visible(&Page::from(bytes), &mut checker(&transactions)), expected);

    // The same without hint bits: every answer comes from pg_xact and pg_multixact, on both sides of the wrap.
    let places: Vec<usize> = Page::from(bytes)
        .view()
        .item_ids()
        .filter(|(_, id)| id.is_normal())
        .map(|(_, id)| usize::from(id.offset()) + 20)
        .collect();
    let mut hinted = 0;
    for at in places {
        let mask = u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let multi = mask & XMAX_IS_MULTI != 0;
        let bare = mask & !(XMIN_HINTS | XMAX_COMMITTED | if multi { 0 } else { XMAX_INVALID });
        hinted += usize::from(bare != mask);
        bytes[at..at + 2].copy_from_slice(&bare.to_le_bytes());
    }
    assert!(hinted > 100, "{hinted}");
    assert_eq!(visible(&Page::from(bytes), &mut checker(&transactions)), expected);
}
