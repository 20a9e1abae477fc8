//! `zero_damaged_pages` and `ignore_checksum_failure`: who decides, what is in the pool then, what the user is told. The texts
//! and the outcomes are PostgreSQL 18.4's on the same damage.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use std::sync::Arc;

use common::{Fixture, MAIN, Wakes, stamp, stamped};
use stegodon_buffer::{
    BufferPool, DamagePolicy, Error, IoCounters, PageWarning, PoolOptions, ReadStream, StreamOptions,
};
use stegodon_format::checksum::page_checksum;
use stegodon_format::ids::{BlockNumber, Fork};
use stegodon_format::page::PageRef;
use stegodon_io::fault::HeldMethod;
use stegodon_io::{IoMethod, RelationFiles, SyncMethod};

const STRICT: DamagePolicy = DamagePolicy { zero_damaged_pages: false, ignore_checksum_failure: false };
const IGNORE: DamagePolicy = DamagePolicy { ignore_checksum_failure: true, ..STRICT };
const ZERO: DamagePolicy = DamagePolicy { zero_damaged_pages: true, ..STRICT };
const BOTH: DamagePolicy = DamagePolicy { zero_damaged_pages: true, ignore_checksum_failure: true };

/// Of block 2 the checksum is wrong, of block 5 the header too, block 6 is zeros, block 8 is zeros with one bit set.
fn damaged(fixture: &Fixture, relation: u32) -> RelationFiles {
    let pages = (0..10u32).map(|block| {
        let mut page = stamped(relation, block);
        let checksum = page_checksum(PageRef::new(&page), BlockNumber(block));
        page[8..10].copy_from_slice(&checksum.to_le_bytes());
        match block {
            2 => page[5000] ^= 1,
            5 => page[12..14].fill(0xff),
            6 => page.fill(0),
            8 => {
                page.fill(0);
                page[4000] = 1;
            }
            _ => {}
        }
        page
    });
    std::fs::write(fixture.path(relation), pages.collect::<Vec<_>>().concat()).unwrap();
    fixture.open(relation)
}

fn checking_pool<M: IoMethod + 'static>(method: M) -> Arc<BufferPool> {
    BufferPool::with_options(PoolOptions { frames: 32, verify_checksums: true }, Arc::new(method)).unwrap()
}

/// What became of each block: `.` a page, `0` zeros, `!` an error; and the warnings.
fn outcome(results: impl Iterator<Item = Result<bool, Error>>, counters: &IoCounters) -> (String, Vec<String>) {
    let letter = |result| match result {
        Ok(false) => '.',
        Ok(true) => '0',
        Err(Error::InvalidPage { .. }) => '!',
        Err(error) => panic!("{error}"),
    };
    (results.map(letter).collect(), counters.take_warnings().iter().map(PageWarning::to_string).collect())
}

fn one_by_one(pool: &Arc<BufferPool>, relation: &RelationFiles, policy: DamagePolicy) -> (String, Vec<String>) {
    let counters = Arc::new(IoCounters::with_policy(policy));
    let read = |block| {
        let page = pool.read_counted(relation, MAIN, BlockNumber(block), &counters).wait()?;
        Ok(page.latch_shared().bytes().iter().all(|&byte| byte == 0))
    };
    outcome((0..10).map(read), &counters)
}

fn streamed(pool: &Arc<BufferPool>, relation: &RelationFiles, policy: DamagePolicy) -> (String, Vec<String>) {
    let counters = Arc::new(IoCounters::with_policy(policy));
    let mut blocks = 0..10;
    let source = move || blocks.next().map(|block| (BlockNumber(block), ()));
    let options = StreamOptions { full: true, ..StreamOptions::default() };
    let mut stream = ReadStream::new(pool, relation, MAIN, source, options).counted(Arc::clone(&counters));
    let results = std::iter::from_fn(|| {
        let next = stream.next_blocking().transpose()?;
        Some(next.map(|(page, ())| page.latch_shared().bytes().iter().all(|&byte| byte == 0)))
    });
    outcome(results, &counters)
}

#[test]
fn each_policy_does_what_postgresql_does() {
    let fixture = Fixture::new();
    let relation = damaged(&fixture, 1);
    let ignoring = "ignoring checksum failure in block 2 of relation \"base/5/1\"";
    let zeroing = |block| format!("invalid page in block {block} of relation \"base/5/1\"; zeroing out page");
    let expected = [
        (STRICT, "..!..!0.!.", vec![]),
        (IGNORE, ".....!0.!.", vec![ignoring.to_owned()]),
        (ZERO, "..0..00.0.", vec![zeroing(2), zeroing(5), zeroing(8)]),
        (BOTH, ".....00.0.", vec![ignoring.to_owned(), zeroing(5), zeroing(8)]),
    ];
    for (policy, letters, warnings) in expected {
        let expected = (letters.to_owned(), warnings);
        assert_eq!(one_by_one(&checking_pool(SyncMethod), &relation, policy), expected, "{policy:?}");
        assert_eq!(streamed(&checking_pool(SyncMethod), &relation, policy), expected, "{policy:?}");
    }
}

/// A session that changes its settings finds what is in the pool; as in PostgreSQL.
#[test]
fn what_a_lenient_reader_made_of_a_page_is_there_for_all() {
    let fixture = Fixture::new();
    let relation = damaged(&fixture, 1);
    let before = std::fs::read(fixture.path(1)).unwrap();
    let pool = checking_pool(SyncMethod);
    assert_eq!(one_by_one(&pool, &relation, IGNORE).1.len(), 1);
    assert_eq!(one_by_one(&pool, &relation, ZERO).1.len(), 2);
    assert_eq!(one_by_one(&pool, &relation, STRICT), (".....00.0.".to_owned(), vec![]));
    assert_eq!(std::fs::read(fixture.path(1)).unwrap(), before, "nothing is written");
}

#[test]
fn who_waits_for_a_stricter_read_reads_again_by_its_own_rule() {
    let fixture = Fixture::new();
    let relation = damaged(&fixture, 1);
    let held = Arc::new(HeldMethod::default());
    let pool =
        BufferPool::with_options(PoolOptions { frames: 16, verify_checksums: true }, Arc::<HeldMethod>::clone(&held))
            .unwrap();
    let counters = Arc::new(IoCounters::with_policy(BOTH));
    let strict: Vec<_> = [2, 5].map(|block| pool.read(&relation, MAIN, BlockNumber(block))).into();
    let lenient = pool.read_counted(&relation, MAIN, BlockNumber(2), &counters);
    let mut blocks = [5].into_iter();
    let source = move || blocks.next().map(|block| (BlockNumber(block), ()));
    let mut stream =
        ReadStream::new(&pool, &relation, MAIN, source, StreamOptions::default()).counted(Arc::clone(&counters));
    let wakes = Arc::new(Wakes::default());
    let (mut lenient, mut next) = (lenient, Box::pin(stream.next()));
    assert!(wakes.poll(&mut lenient).is_pending() && wakes.poll(&mut next).is_pending());
    held.release(false);
    assert_eq!(wakes.count(), 2);
    assert!(wakes.poll(&mut lenient).is_pending() && wakes.poll(&mut next).is_pending());
    assert_eq!(held.in_flight().len(), 2, "read again");
    held.release(false);
    for strict in strict {
        assert!(matches!(strict.wait(), Err(Error::InvalidPage { .. })), "everybody by their own rule");
    }
    assert_eq!(stamp(&lenient.wait().unwrap().latch_shared()), (1, 2));
    assert!(wakes.poll(&mut next).is_ready());
    assert_eq!(counters.take_warnings().len(), 2);
    drop(next);
    drop(stream);
    assert_eq!(pool.pinned_count(), 0);
}

#[test]
fn a_damaged_map_is_read_as_zeros_whatever_the_settings() {
    let fixture = Fixture::new();
    let relation = fixture.relation(1, 1);
    std::fs::write(format!("{}_vm", fixture.path(1).display()), [0xff; 8192]).unwrap();
    let pool = checking_pool(SyncMethod);
    let counters = Arc::new(IoCounters::default());
    let read = || pool.read_map(&relation, Fork::VisibilityMap, BlockNumber(0), &counters, false).wait().unwrap();
    assert!(read().latch_shared().view().is_new());
    let warnings: Vec<_> = counters.take_warnings().iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["invalid page in block 0 of relation \"base/5/1_vm\"; zeroing out page"]);
    assert!(read().latch_shared().view().is_new());
    assert_eq!(counters.take_warnings(), []);
    assert_eq!(counters.reads.load(std::sync::atomic::Ordering::Relaxed), 0, "not counted");
}
