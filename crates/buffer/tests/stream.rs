//! What a read stream yields, and how it reads.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use std::sync::Arc;
use std::task::Poll;

use common::{Fixture, MAIN, Wakes, pool, stamp};
use stegodon_buffer::{BufferPool, Error, ReadStream, StreamOptions};
use stegodon_format::ids::BlockNumber;
use stegodon_io::fault::{Fault, FaultMethod, HeldMethod};
use stegodon_io::{IoMethod, SyncMethod, WorkerMethod};

/// A source of blocks whose data is their place in the list.
fn source(blocks: Vec<u32>) -> impl FnMut() -> Option<(BlockNumber, usize)> {
    let mut blocks = blocks.into_iter().enumerate();
    move || blocks.next().map(|(at, block)| (BlockNumber(block), at))
}

fn options(effective_io_concurrency: u32, io_combine_limit: u32) -> StreamOptions {
    StreamOptions { effective_io_concurrency, io_combine_limit, full: false }
}

#[test]
fn pages_come_in_order_with_their_data_whatever_the_settings() {
    let fixture = Fixture::new();
    let relation = fixture.relation(1, 300);
    let mut seed = 1u64;
    let mut random = |limit: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 11) % limit
    };
    let sequential: Vec<u32> = (0..300).collect();
    let backward: Vec<u32> = (0..300).rev().collect();
    let mut clustered = Vec::new();
    while clustered.len() < 500 {
        let start = random(290) as u32;
        clustered.extend(start..start + 1 + random(10) as u32);
    }
    for blocks in [sequential, backward, clustered, vec![7; 40], vec![]] {
        for frames in [1, 2, 16, 400] {
            for (eic, combine) in [(0, 1), (0, 16), (1, 1), (1, 16), (16, 16), (100, 128)] {
                for workers in [false, true] {
                    let method: Arc<dyn IoMethod> =
                        if workers { Arc::new(WorkerMethod::new(2).unwrap()) } else { Arc::new(SyncMethod) };
                    let pool = BufferPool::new(frames, method).unwrap();
                    let mut stream =
                        ReadStream::new(&pool, &relation, MAIN, source(blocks.clone()), options(eic, combine));
                    let mut at = 0;
                    while let Some((page, data)) = stream.next_blocking().unwrap() {
                        assert_eq!(data, at);
                        assert_eq!(stamp(&page.latch_shared()), (1, blocks[at]));
                        at += 1;
                        drop(page);
                    }
                    assert_eq!(at, blocks.len());
                    assert!(stream.next_blocking().unwrap().is_none());
                    drop(stream);
                    assert_eq!(pool.pinned_count(), 0, "{frames} frames, {eic}, {combine}");
                }
            }
        }
    }
}

#[test]
fn neighbours_are_read_together() {
    let fixture = Fixture::new();
    let relation = fixture.relation(1, 256);
    let pool = pool(400, SyncMethod);
    let mut stream = ReadStream::new(&pool, &relation, MAIN, source((0..256).collect()), options(16, 16));
    while stream.next_blocking().unwrap().is_some() {}
    // 1, 2, 4, 8, 16 … while the distance doubles.
    assert!((16..=22).contains(&pool.stats().reads), "{} reads", pool.stats().reads);
    assert_eq!(pool.stats().read_bytes, 256 * 8192);
    let full = StreamOptions { full: true, ..options(16, 16) };
    let pool = self::pool(400, SyncMethod);
    let mut stream = ReadStream::new(&pool, &relation, MAIN, source((0..256).collect()), full);
    while stream.next_blocking().unwrap().is_some() {}
    assert_eq!(pool.stats().reads, 16);
}

#[test]
fn looking_ahead_grows_with_reads_and_is_bounded() {
    let fixture = Fixture::new();
    let relation = fixture.relation(1, 256);
    let method = Arc::new(HeldMethod::default());
    let pool = BufferPool::new(400, Arc::<HeldMethod>::clone(&method)).unwrap();
    let blocks = (0..120).map(|at| at * 2).collect();
    let mut stream = ReadStream::new(&pool, &relation, MAIN, source(blocks), options(4, 8));
    let wakes = Arc::new(Wakes::default());
    let (mut depths, mut pages) = (Vec::new(), 0);
    loop {
        match wakes.poll(&mut Box::pin(stream.next())) {
            Poll::Pending => {
                depths.push(method.in_flight().len());
                method.release(true);
            }
            Poll::Ready(Ok(Some(_))) => pages += 1,
            Poll::Ready(Ok(None)) => break,
            Poll::Ready(Err(error)) => panic!("{error}"),
        }
    }
    assert_eq!(pages, 120);
    assert_eq!((depths[0], depths.iter().max()), (1, Some(&4)));
}

#[test]
fn a_stream_that_is_dropped_or_reset_leaves_no_pin() {
    let fixture = Fixture::new();
    let relation = fixture.relation(1, 100);
    let pool = pool(64, SyncMethod);
    let mut next = 0;
    let blocks = move || {
        next += 1;
        Some((BlockNumber(next % 100), ()))
    };
    let mut stream = ReadStream::new(&pool, &relation, MAIN, blocks, StreamOptions::default());
    for _ in 0..50 {
        stream.next_blocking().unwrap().unwrap();
    }
    assert!(pool.pinned_count() > 0);
    stream.reset();
    assert_eq!(pool.pinned_count(), 0);
    assert!(stream.next_blocking().unwrap().is_some());
    drop(stream);
    assert_eq!(pool.pinned_count(), 0);
}

#[test]
fn an_error_belongs_to_its_page() {
    let fixture = Fixture::new();
    let relation = fixture.relation(1, 10);
    let method = FaultMethod::new(Arc::new(SyncMethod));
    method.inject(BlockNumber(5), Fault::EndsBefore);
    let pool = pool(64, method);
    let full = StreamOptions { full: true, ..options(1, 8) };
    let mut stream = ReadStream::new(&pool, &relation, MAIN, source((0..10).collect()), full);
    for block in 0..10 {
        match stream.next_blocking() {
            Ok(page) => assert_eq!(page.unwrap().1, block),
            Err(error) => assert!((5..8).contains(&block) && matches!(error, Error::Io(_)), "block {block}: {error}"),
        }
    }
    assert!(stream.next_blocking().unwrap().is_none());
    drop(stream);
    assert_eq!(pool.pinned_count(), 0);
}

#[test]
fn many_streams_share_a_pool_of_sixteen_pages() {
    let fixture = Fixture::new();
    let relation = fixture.relation(1, 200);
    let pool = pool(16, WorkerMethod::new(2).unwrap());
    std::thread::scope(|scope| {
        for start in 0..4u32 {
            let (pool, relation) = (&pool, &relation);
            scope.spawn(move || {
                let blocks: Vec<u32> = (start * 10..200).collect();
                let mut stream = ReadStream::new(pool, relation, MAIN, source(blocks.clone()), options(16, 16));
                for block in blocks {
                    let (page, _) = stream.next_blocking().unwrap().unwrap();
                    assert_eq!(stamp(&page.latch_shared()), (1, block));
                }
                assert!(stream.next_blocking().unwrap().is_none());
            });
        }
    });
    assert_eq!(pool.pinned_count(), 0);
}
