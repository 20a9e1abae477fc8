//! What the pool promises of pages, pins and failures.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::task::Poll;

use common::{Fixture, MAIN, Wakes, pool, stamp, stamped};
use stegodon_buffer::{BufferPool, Error, IoCounters, PoolOptions};
use stegodon_format::ids::BlockNumber;
use stegodon_io::fault::{Fault, FaultMethod, HeldMethod};
use stegodon_io::{SyncMethod, WorkerMethod};
use stegodon_types::{SqlError, SqlState};

#[test]
fn a_page_is_read_once_and_then_found() {
    let fixture = Fixture::new();
    let relation = fixture.relation(1, 4);
    let pool = pool(16, SyncMethod);
    let counters = Arc::new(IoCounters::default());
    for _ in 0..3 {
        let page = pool.read_counted(&relation, MAIN, BlockNumber(2), &counters).wait().unwrap();
        assert_eq!(stamp(&page.latch_shared()), (1, 2));
        assert_eq!((page.block(), page.locator()), (BlockNumber(2), relation.locator()));
        assert_eq!(pool.pinned_count(), 1);
        let again = page.clone();
        drop(page);
        assert_eq!(pool.pinned_count(), 1);
        assert_eq!(stamp(&again.latch_shared()), (1, 2));
    }
    assert_eq!(pool.pinned_count(), 0);
    let stats = pool.stats();
    assert_eq!((stats.hits, stats.reads, stats.read_bytes), (2, 1, 8192));
    let load = |counter: &std::sync::atomic::AtomicU64| counter.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!((load(&counters.hits), load(&counters.pages_read), load(&counters.reads)), (2, 1, 1));
    assert!(load(&counters.read_nanoseconds) > 0);
    assert!(pool.probe(&relation, MAIN, BlockNumber(2)).is_some());
    assert!(pool.probe(&relation, MAIN, BlockNumber(3)).is_none());
}

#[test]
fn two_who_want_one_page_read_it_once() {
    let fixture = Fixture::new();
    let relation = fixture.relation(1, 4);
    let method = Arc::new(HeldMethod::default());
    let pool = BufferPool::new(16, Arc::<HeldMethod>::clone(&method)).unwrap();
    let wakes = [(); 3].map(|()| Arc::new(Wakes::default()));
    let mut reads = [(); 3].map(|()| pool.read(&relation, MAIN, BlockNumber(1)));
    for (wakes, read) in wakes.iter().zip(&mut reads) {
        assert!(wakes.poll(read).is_pending());
        assert!(wakes.poll(read).is_pending());
    }
    assert_eq!(method.in_flight(), [(BlockNumber(1), 1)]);
    assert!(pool.probe(&relation, MAIN, BlockNumber(1)).is_none());
    method.release(false);
    for (wakes, read) in wakes.iter().zip(&mut reads) {
        assert_eq!(wakes.count(), 1);
        let Poll::Ready(page) = wakes.poll(read) else { panic!("the page has arrived") };
        assert_eq!(stamp(&page.unwrap().latch_shared()), (1, 1));
    }
    assert_eq!((pool.stats().reads, pool.stats().waits, pool.pinned_count()), (1, 3, 0));
}

#[test]
fn a_dropped_read_drops_interest_only() {
    let fixture = Fixture::new();
    let relation = fixture.relation(1, 40);
    let method = Arc::new(HeldMethod::default());
    let pool = BufferPool::new(2, Arc::<HeldMethod>::clone(&method)).unwrap();
    drop(pool.read(&relation, MAIN, BlockNumber(0)));
    let second = pool.read(&relation, MAIN, BlockNumber(1));
    assert_eq!(pool.pinned_count(), 3, "one frame belongs to its read alone");
    // No frame is left, but one will come free: a third reader waits.
    let wakes = Arc::new(Wakes::default());
    let mut third = pool.read(&relation, MAIN, BlockNumber(2));
    assert!(wakes.poll(&mut third).is_pending());
    method.release(true);
    assert_eq!(stamp(&second.wait().unwrap().latch_shared()), (1, 1));
    assert!(wakes.count() > 0);
    assert!(wakes.poll(&mut third).is_pending());
    assert_eq!(method.in_flight(), [(BlockNumber(2), 1)]);
    method.release(false);
    assert_eq!(stamp(&third.wait().unwrap().latch_shared()), (1, 2));
    assert_eq!(pool.pinned_count(), 0);
}

#[test]
fn a_failed_read_fails_everyone_who_waits_and_is_tried_again_by_the_next() {
    let fixture = Fixture::new();
    let relation = fixture.relation(1, 4);
    let method = FaultMethod::new(Arc::new(SyncMethod));
    method.inject(BlockNumber(1), Fault::Errno(5));
    method.inject(BlockNumber(1), Fault::Dropped);
    let pool = pool(16, method);
    let read = || pool.read(&relation, MAIN, BlockNumber(1)).wait();
    let sql = SqlError::from(read().unwrap_err());
    assert_eq!(sql.state, SqlState::IoError);
    assert_eq!(sql.message, "could not read blocks 1..1 in file \"base/5/1\": Input/output error");
    assert!(matches!(read(), Err(Error::Io(stegodon_io::Error::Abandoned { .. }))));
    assert_eq!(stamp(&read().unwrap().latch_shared()), (1, 1));
    let beyond = SqlError::from(pool.read(&relation, MAIN, BlockNumber(4)).wait().unwrap_err());
    assert_eq!(beyond.state, SqlState::DataCorrupted);
    assert_eq!(beyond.message, "could not read blocks 4..4 in file \"base/5/1\": read only 0 of 8192 bytes");
    assert_eq!(pool.pinned_count(), 0);
}

#[test]
fn a_page_that_is_none_is_refused_and_a_page_of_zeros_is_not() {
    let fixture = Fixture::new();
    let relation = fixture.relation(1, 4);
    let file = std::fs::OpenOptions::new().write(true).open(fixture.path(1)).unwrap();
    let mut bad = stamped(1, 1);
    bad[12] = 23;
    file.write_all_at(&bad, 8192).unwrap();
    file.write_all_at(&[0; 8192], 2 * 8192).unwrap();
    let pool = pool(16, SyncMethod);
    let error = SqlError::from(pool.read(&relation, MAIN, BlockNumber(1)).wait().unwrap_err());
    assert_eq!(
        (error.state, &*error.message),
        (SqlState::DataCorrupted, "invalid page in block 1 of relation \"base/5/1\"")
    );
    assert!(pool.read(&relation, MAIN, BlockNumber(2)).wait().unwrap().latch_shared().view().is_new());
    file.write_all_at(&stamped(1, 1), 8192).unwrap();
    assert!(pool.read(&relation, MAIN, BlockNumber(1)).wait().is_ok());
}

#[test]
fn checksums_are_verified_where_the_cluster_has_them() {
    let fixture = Fixture::new();
    let page: &[u8; 8192] = include_bytes!("../../format/testdata/heap_page.bin");
    let mut flipped = *page;
    flipped[5000] ^= 4;
    // The page's checksum is that of block 0.
    std::fs::write(fixture.path(1), [*page, *page, [0; 8192]].concat()).unwrap();
    std::fs::write(fixture.path(2), flipped).unwrap();
    let read = |verify_checksums, relation, block| {
        let pool =
            BufferPool::with_options(PoolOptions { frames: 16, verify_checksums }, Arc::new(SyncMethod)).unwrap();
        pool.read(&fixture.open(relation), MAIN, BlockNumber(block)).wait().map(drop)
    };
    assert_eq!((read(true, 1, 0), read(true, 1, 2)), (Ok(()), Ok(())));
    for (relation, block) in [(1, 1), (2, 0)] {
        let Err(Error::InvalidPage { why, .. }) = read(true, relation, block) else { panic!("{relation} {block}") };
        assert!(why.starts_with("page verification failed, calculated checksum "), "{why}");
        assert_eq!(read(false, relation, block), Ok(()));
    }
}

#[test]
fn what_is_used_often_stays() {
    let fixture = Fixture::new();
    let relation = fixture.relation(1, 200);
    let pool = pool(16, SyncMethod);
    for block in 1..200 {
        for _ in 0..3 {
            drop(pool.read(&relation, MAIN, BlockNumber(0)).wait().unwrap());
        }
        drop(pool.read(&relation, MAIN, BlockNumber(block)).wait().unwrap());
    }
    assert_eq!(pool.stats().reads, 200);
    assert_eq!(pool.stats().evictions, 200 - 16);
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "a thread latches a frame at most once")]
fn latching_twice_is_noticed() {
    let fixture = Fixture::new();
    let relation = fixture.relation(1, 1);
    let page = pool(16, SyncMethod).read(&relation, MAIN, BlockNumber(0)).wait().unwrap();
    let _first = page.latch_shared();
    let _second = page.latch_shared();
}

#[test]
fn an_exclusive_latch_keeps_readers_out() {
    let fixture = Fixture::new();
    let relation = fixture.relation(1, 1);
    let page = pool(16, SyncMethod).read(&relation, MAIN, BlockNumber(0)).wait().unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    let other = page.clone();
    let latch = page.latch_exclusive();
    let reader = std::thread::spawn(move || {
        let latch = other.latch_shared();
        sender.send(stamp(&latch)).unwrap();
    });
    assert!(receiver.recv_timeout(std::time::Duration::from_millis(20)).is_err());
    assert_eq!(latch.view().lower(), 24);
    drop(latch);
    assert_eq!(receiver.recv().unwrap(), (1, 0));
    reader.join().unwrap();
}

/// Many threads over few frames: every page is the one that was asked for, and no pin is left.
#[test]
fn pages_stay_themselves_under_eviction_by_threads() {
    let fixture = Fixture::new();
    let relations = [fixture.relation(1, 60), fixture.relation(2, 60)];
    let method = Arc::new(FaultMethod::new(Arc::new(WorkerMethod::new(2).unwrap())));
    let pool = BufferPool::new(24, Arc::<FaultMethod>::clone(&method)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..6u64 {
            let (pool, relations, method) = (&pool, &relations, &method);
            scope.spawn(move || {
                let mut seed = thread * 7919 + 1;
                let mut kept = None;
                for round in 0..3000u32 {
                    seed ^= seed << 13;
                    seed ^= seed >> 7;
                    seed ^= seed << 17;
                    let relation = &relations[(seed >> 20) as usize % 2];
                    let number = relation.locator().number.0;
                    let block = BlockNumber((seed >> 30) as u32 % 60);
                    if round % 97 == 0 {
                        method.inject(block, Fault::Errno(5));
                    }
                    let read = pool.read(relation, MAIN, block);
                    if round % 5 == 0 {
                        drop(read);
                        continue;
                    }
                    match read.wait() {
                        Ok(page) => {
                            assert_eq!(stamp(&page.latch_shared()), (number, block.0));
                            kept = (round % 3 == 0).then_some(page);
                        }
                        Err(Error::Io(stegodon_io::Error::Read { .. })) => {}
                        Err(error) => panic!("{error}"),
                    }
                    if let Some(page) = &kept {
                        assert_eq!(stamp(&page.latch_shared()).1, page.block().0);
                    }
                }
            });
        }
    });
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while pool.pinned_count() > 0 && std::time::Instant::now() < deadline {
        std::thread::yield_now();
    }
    assert_eq!(pool.pinned_count(), 0);
}
