//! Reads that fail: everybody who waits hears of it, with file, block and SQLSTATE; nothing hangs, nothing stays pinned, and who
//! asks later reads anew.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use std::sync::Arc;
use std::task::Poll;

use common::{Fixture, MAIN, Wakes, pool, stamp};
use stegodon_buffer::{BufferPool, Error, ReadStream, StreamOptions};
use stegodon_format::ids::BlockNumber;
use stegodon_io::fault::{Fault, FaultMethod, HeldMethod};
use stegodon_io::{IoMethod, SyncMethod, WorkerMethod};
use stegodon_types::SqlError;

const EIO: i32 = 5;
const FULL: StreamOptions = StreamOptions { effective_io_concurrency: 16, io_combine_limit: 8, full: true };

fn told(error: Error) -> String {
    let error = SqlError::from(error);
    format!("{} {}", error.state.code(), error.message)
}

/// What a stream over blocks 0 to 9 says of each.
fn stream_over(pool: &Arc<BufferPool>, relation: &stegodon_io::RelationFiles) -> Vec<Result<u32, String>> {
    let mut blocks = 0..10;
    let source = move || blocks.next().map(|block| (BlockNumber(block), ()));
    let mut stream = ReadStream::new(pool, relation, MAIN, source, FULL);
    let mut said = Vec::new();
    while let Some(next) = stream.next_blocking().transpose() {
        said.push(next.map(|(page, ())| stamp(&page.latch_shared()).1).map_err(told));
    }
    said
}

#[test]
fn a_fault_has_its_place_and_state_and_a_later_attempt_reads_anew() {
    let fixture = Fixture::new();
    let relation = fixture.relation(1, 10);
    let whole: Vec<_> = (0..10).map(Ok).collect();
    // Runs of 8: blocks 0 to 7, 8 and 9.
    let cases = [
        (Fault::Errno(EIO), 0..8, "58030 could not read blocks 0..7 in file \"base/5/1\": Input/output error"),
        (Fault::ErrnoFrom(EIO), 5..8, "58030 could not read blocks 5..7 in file \"base/5/1\": Input/output error"),
        (Fault::EndsBefore, 5..8, "XX001 could not read blocks 5..7 in file \"base/5/1\": read only 0 of 24576 bytes"),
        (Fault::Errno(13), 0..8, "42501 could not read blocks 0..7 in file \"base/5/1\": Permission denied"),
        (Fault::Dropped, 0..8, "XX000 read of block 0 of \"base/5/1\" was abandoned"),
    ];
    for workers in [false, true] {
        for (fault, blocks, message) in &cases {
            let inner: Arc<dyn IoMethod> =
                if workers { Arc::new(WorkerMethod::new(2).unwrap()) } else { Arc::new(SyncMethod) };
            let method = Arc::new(FaultMethod::new(inner));
            method.inject(BlockNumber(5), *fault);
            let pool = BufferPool::new(64, Arc::<FaultMethod>::clone(&method)).unwrap();
            let said = stream_over(&pool, &relation);
            for (block, said) in (0..10).zip(&said) {
                let expected = if blocks.contains(&block) { Err((*message).to_owned()) } else { Ok(block) };
                assert_eq!(*said, expected, "{fault:?}, block {block}");
            }
            assert_eq!(pool.pinned_count(), 0);
            assert_eq!(stream_over(&pool, &relation), whole, "{fault:?}");
        }
    }
}

#[test]
fn a_file_that_is_missing_or_has_become_shorter_is_an_error() {
    let fixture = Fixture::new();
    let relation = fixture.relation(1, 10);
    let pool = pool(64, SyncMethod);
    let mut blocks = 0..10;
    let source = move || blocks.next().map(|block| (BlockNumber(block), ()));
    let options = StreamOptions { io_combine_limit: 4, full: false, ..FULL };
    let mut stream = ReadStream::new(&pool, &relation, MAIN, source, options);
    assert!(stream.next_blocking().unwrap().is_some());
    // Truncated mid-scan, in the middle of block 5.
    std::fs::OpenOptions::new().write(true).open(fixture.path(1)).unwrap().set_len(5 * 8192 + 100).unwrap();
    let mut said = Vec::new();
    while let Some(next) = stream.next_blocking().transpose() {
        said.push(next.map(|(page, ())| page.block().0).map_err(told));
    }
    assert_eq!(said.len(), 9, "{said:?}");
    assert_eq!(said[..4], [1, 2, 3, 4].map(Ok));
    assert!(said[4..].iter().all(|said| said.as_ref().is_err_and(|error| {
        error.starts_with("XX001 could not read blocks ") && error.contains("in file \"base/5/1\": read only 0 of ")
    })));
    let one = |relation, block| told(pool.read(relation, MAIN, BlockNumber(block)).wait().unwrap_err());
    assert_eq!(one(&relation, 5), "XX001 could not read blocks 5..5 in file \"base/5/1\": read only 0 of 8192 bytes");
    assert_eq!(one(&fixture.open(9), 0), "58P01 could not open file \"base/5/9\": No such file or directory");
    drop(stream);
    assert_eq!(pool.pinned_count(), 0);
    fixture.relation(1, 10);
    assert_eq!(stream_over(&pool, &relation), (0..10).map(Ok).collect::<Vec<_>>());
}

#[test]
fn all_who_wait_for_a_page_get_the_error_and_the_frame_comes_free() {
    let fixture = Fixture::new();
    let relation = fixture.relation(1, 10);
    let held = Arc::new(HeldMethod::default());
    let method = Arc::new(FaultMethod::new(Arc::<HeldMethod>::clone(&held)));
    let pool = BufferPool::new(2, Arc::<FaultMethod>::clone(&method)).unwrap();
    let wakes = Arc::new(Wakes::default());
    let mut waiting: Vec<_> = (0..5).map(|_| pool.read(&relation, MAIN, BlockNumber(3))).collect();
    let other = pool.read(&relation, MAIN, BlockNumber(4));
    assert!(waiting.iter_mut().all(|read| wakes.poll(read).is_pending()));
    // Both frames are in flight; this one waits for either.
    let mut starved = pool.read(&relation, MAIN, BlockNumber(8));
    assert!(wakes.poll(&mut starved).is_pending());
    assert_eq!(pool.waiting_count(), 1);
    std::fs::OpenOptions::new().write(true).open(fixture.path(1)).unwrap().set_len(3 * 8192).unwrap();
    held.release(true);
    for read in &mut waiting {
        let Poll::Ready(Err(error)) = wakes.poll(read) else { panic!("everybody is told") };
        assert_eq!(told(error), "XX001 could not read blocks 3..3 in file \"base/5/1\": read only 0 of 8192 bytes");
    }
    drop((waiting, other));
    fixture.relation(1, 10);
    assert!(wakes.poll(&mut starved).is_pending(), "now it has a frame");
    held.release(false);
    assert_eq!(stamp(&starved.wait().unwrap().latch_shared()), (1, 8));
    let again = pool.read(&relation, MAIN, BlockNumber(3));
    held.release(false);
    assert_eq!(stamp(&again.wait().unwrap().latch_shared()), (1, 3));
    assert_eq!((pool.pinned_count(), pool.waiting_count()), (0, 0));
}
