//! What a query sees of a table in every state that a tuple can be in, judged by PostgreSQL 18.4.
//!
//! `testdata/visibility.sql` made the table; `testdata/cluster` is what the cluster, then shut down, recorded of its
//! transactions; `unhinted.page` is the table's page before, `hinted.page` after PostgreSQL read it, and `visible.txt`
//! what it answered.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use std::path::PathBuf;
use std::sync::Arc;

use common::{checker, visible};

use stegodon_format::control::ControlFile;
use stegodon_format::heap_tuple::{HeapTupleRef, Infomask};
use stegodon_format::ids::{MultiXactId, Oid, Xid};
use stegodon_format::page::{BLCKSZ, Page};
use stegodon_format::slru::XidStatus;
use stegodon_io::DataDirectory;
use stegodon_txn::{Error, Snapshot, Transactions, Visibility, VisibilityChecker};
use stegodon_types::{SqlError, SqlState};

const UNHINTED: &[u8; BLCKSZ] = include_bytes!("../testdata/unhinted.page");
const HINTED: &[u8; BLCKSZ] = include_bytes!("../testdata/hinted.page");
const VISIBLE: &str = include_str!("../testdata/visible.txt");

fn testdata() -> PathBuf {
    PathBuf::from("testdata/cluster")
}

fn control(directory: &DataDirectory) -> ControlFile {
    ControlFile::parse(&directory.read_file("global/pg_control").unwrap()).unwrap()
}

fn transactions() -> Arc<Transactions> {
    let directory = DataDirectory::open(testdata()).unwrap();
    Arc::new(Transactions::open(&directory, &control(&directory)).unwrap())
}

fn expected() -> Vec<&'static str> {
    VISIBLE.lines().map(|line| line.split('|').next().unwrap()).collect()
}

#[test]
fn sees_what_postgresql_saw() {
    let transactions = transactions();
    assert_eq!(visible(&Page::from(*UNHINTED), &mut checker(&transactions)), expected());
    assert_eq!(visible(&Page::from(*HINTED), &mut checker(&transactions)), expected());
}

/// Hint bits only save a look at the log: without any of them, the answer is the same.
#[test]
fn hint_bits_do_not_change_the_answer() {
    const XMIN: u16 = Infomask::XMIN_FROZEN;
    const XMAX: u16 = Infomask::XMAX_COMMITTED | Infomask::XMAX_INVALID;
    let transactions = transactions();
    for source in [UNHINTED, HINTED] {
        for forgotten in [XMIN, XMAX, XMIN | XMAX] {
            let mut page = Page::from(*source);
            let items: Vec<usize> = page.view().item_ids().map(|(_, id)| usize::from(id.offset())).collect();
            for at in items {
                let mask = u16::from_le_bytes([page.bytes()[at + 20], page.bytes()[at + 21]]);
                let frozen = mask & Infomask::XMIN_FROZEN == Infomask::XMIN_FROZEN;
                let cleared = if frozen { mask & !(forgotten & XMAX) } else { mask & !forgotten };
                page.bytes_mut()[at + 20..at + 22].copy_from_slice(&cleared.to_le_bytes());
            }
            assert_eq!(visible(&page, &mut checker(&transactions)), expected(), "{forgotten:04X}");
        }
    }
}

#[test]
fn prepared_transactions_are_in_progress_and_hold_their_locks() {
    let transactions = transactions();
    let gids: Vec<String> =
        transactions.prepared().iter().map(|p| String::from_utf8_lossy(&p.gid).into_owned()).collect();
    assert_eq!(gids, ["updater", "worker", "locker3"]);
    let snapshot = transactions.snapshot();
    for xid in transactions.prepared().xids() {
        assert!(snapshot.is_in_progress(xid), "{xid}");
        assert_eq!(transactions.log().status(xid).unwrap(), XidStatus::InProgress);
    }
    // `worker` locked p2 (16447) exclusively.
    let holder = transactions.prepared().exclusive_lock(Oid(5), Oid(16447)).unwrap();
    assert_eq!(holder.gid, b"worker");
    assert!(transactions.prepared().exclusive_lock(Oid(5), Oid(16441)).is_none());
    assert!(transactions.prepared().exclusive_lock(Oid(0), Oid(16447)).is_none());
}

#[test]
fn multixacts_know_their_updater() {
    let transactions = transactions();
    let multixacts = transactions.multixacts();
    let updaters: Vec<Option<u32>> =
        (1..=5).map(|multi| multixacts.update_xid(MultiXactId(multi)).unwrap().map(|xid| xid.0)).collect();
    let status = |xid: u32| transactions.log().status(Xid(xid)).unwrap();
    // 1 only locks; 2 was updated, 3 in vain, 4 by a prepared transaction, 5 again for good.
    assert_eq!(updaters[0], None);
    let statuses: Vec<XidStatus> = updaters[1..].iter().map(|xid| status(xid.unwrap())).collect();
    use XidStatus::*;
    assert_eq!(statuses, [Committed, Aborted, InProgress, Committed]);
    assert_eq!(multixacts.members(MultiXactId(1)).unwrap().count(), 2);
    assert_eq!(multixacts.update_xid(MultiXactId(0)), Ok(None));
    assert_eq!(multixacts.update_xid(MultiXactId(6)), Err(Error::MultiXactInFuture(MultiXactId(6))));
}

/// A tuple with these flags, inserted and deleted by these.
fn tuple(mask: u16, xmin: Xid, xmax: u32) -> Vec<u8> {
    let mut item = vec![0; 24];
    item[0..4].copy_from_slice(&xmin.0.to_le_bytes());
    item[4..8].copy_from_slice(&xmax.to_le_bytes());
    item[20..22].copy_from_slice(&mask.to_le_bytes());
    item[22] = 24;
    item
}

fn check(checker: &mut VisibilityChecker, mask: u16, xmin: Xid, xmax: u32) -> Result<Visibility, Error> {
    checker.check(HeapTupleRef::parse(&tuple(mask, xmin, xmax)).unwrap())
}

/// The whole decision table, row by row: each case is a line of `testdata/decisions.txt`.
#[test]
fn decides_by_the_table() {
    let transactions = transactions();
    let (committed, aborted) = (Xid(779), Xid(780));
    let prepared = transactions.prepared().iter().next().unwrap().xid;
    let future = transactions.next_xid().xid();
    assert_eq!(transactions.log().status(committed), Ok(XidStatus::Committed));
    assert_eq!(transactions.log().status(aborted), Ok(XidStatus::Aborted));
    let xid = |word: &str| match word {
        "committed" => committed,
        "aborted" => aborted,
        "prepared" => prepared,
        "future" => future,
        "bootstrap" => Xid::BOOTSTRAP,
        "frozen" => Xid::FROZEN,
        "none" => Xid::INVALID,
        "ancient" => Xid(700),
        number => Xid(number.parse().unwrap()),
    };
    let flag = |word: &str| match word {
        "xmin_committed" => Infomask::XMIN_COMMITTED,
        "xmin_invalid" => Infomask::XMIN_INVALID,
        "xmin_frozen" => Infomask::XMIN_FROZEN,
        "xmax_committed" => Infomask::XMAX_COMMITTED,
        "xmax_invalid" => Infomask::XMAX_INVALID,
        "lock_only" => Infomask::XMAX_LOCK_ONLY,
        "excl_lock" => Infomask::XMAX_EXCL_LOCK,
        "keyshr_lock" => Infomask::XMAX_KEYSHR_LOCK,
        "multi" => Infomask::XMAX_IS_MULTI,
        other => panic!("no flag {other}"),
    };
    let mut cases = 0;
    for line in include_str!("../testdata/decisions.txt").lines() {
        let line = line.split('#').next().unwrap().trim();
        if line.is_empty() {
            continue;
        }
        let (input, expected) = line.split_once("=>").unwrap();
        let mut words = input.split_whitespace();
        let (xmin, xmax) = (xid(words.next().unwrap()), xid(words.next().unwrap()));
        let mask = words.fold(0, |mask, word| mask | flag(word));
        let actual = match check(&mut checker(&transactions), mask, xmin, xmax.0) {
            Ok(Visibility::Visible) => "visible".to_owned(),
            Ok(Visibility::Invisible) => "invisible".to_owned(),
            Err(error) => {
                let error = SqlError::from(error);
                format!("{} {}", error.state.code(), error.message)
            }
        };
        assert_eq!(actual, expected.trim(), "{line}");
        cases += 1;
    }
    assert!(cases > 30);
}

#[test]
fn a_transaction_whose_record_is_gone_is_an_error_in_postgresql_s_words() {
    let directory = DataDirectory::open(testdata()).unwrap();
    let mut control = control(&directory);
    // Beyond the only segment there is, and within it but beyond the page that there is.
    for (next, xid, state, detail) in [
        (
            2_000_000,
            1_500_000,
            SqlState::UndefinedFile,
            "Could not open file \"pg_xact/0001\": No such file or directory.",
        ),
        (
            40_000,
            39_000,
            SqlState::DataCorrupted,
            "Could not read from file \"pg_xact/0000\" at offset 8192: read too few bytes.",
        ),
    ] {
        control.checkpoint.next_xid.0 = next;
        let transactions = Arc::new(Transactions::open(&directory, &control).unwrap());
        let error = check(&mut checker(&transactions), 0, Xid(xid), 0).unwrap_err();
        let error = SqlError::from(error);
        assert_eq!(error.state, state);
        assert_eq!(error.message, format!("could not access status of transaction {xid}"));
        assert_eq!(error.detail.as_deref(), Some(detail));
    }
}

#[test]
fn a_cluster_that_was_not_shut_down_is_refused() {
    let directory = DataDirectory::open(testdata()).unwrap();
    let mut control = control(&directory);
    control.state = stegodon_format::control::ClusterState::InProduction;
    let Err(error) = Transactions::open(&directory, &control) else { panic!("accepted") };
    assert_eq!(error, Error::NotShutDown { state: "in production" });
}

#[test]
fn a_live_snapshot_fits() {
    let s = Snapshot::new(Xid(110), [Xid(105), Xid(103)], [Xid(107)]);
    assert_eq!((s.xmin, s.xmax), (Xid(103), Xid(110)));
    let running: Vec<u32> = (100..113).filter(|xid| s.is_in_progress(Xid(*xid))).collect();
    assert_eq!(running, [103, 105, 107, 110, 111, 112]);
    // Across the wrap of the 32 bits.
    let s = Snapshot::new(Xid(5), [Xid(u32::MAX)], []);
    assert_eq!(s.xmin, Xid(u32::MAX));
    assert!(!s.is_in_progress(Xid(u32::MAX - 1)));
    assert!(s.is_in_progress(Xid(u32::MAX)));
    assert!(!s.is_in_progress(Xid(4)));
    assert!(s.is_in_progress(Xid(5)));
}
