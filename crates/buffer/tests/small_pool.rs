//! Pools that are far smaller than what is asked of them: everybody is served, nothing is left behind.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use common::{Fixture, MAIN, Wakes, pool, stamp};
use stegodon_buffer::{BufferPool, Error, IoCounters, PinnedPage, ReadStream, StreamOptions};
use stegodon_format::ids::BlockNumber;
use stegodon_io::fault::HeldMethod;
use stegodon_io::{IoMethod, RelationFiles, SyncMethod, WorkerMethod};

/// The smallest `shared_buffers`.
const FRAMES: usize = 16;
const BLOCKS: u32 = 120;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}

fn check(page: &PinnedPage, relation: u32, block: BlockNumber) {
    assert_eq!(stamp(&page.latch_shared()), (relation, block.0));
}

async fn scan(pool: Arc<BufferPool>, relation: RelationFiles, from: u32, step: u32, keep: bool) -> Result<(), Error> {
    let mut next = from;
    let source = move || {
        next += step;
        (next < BLOCKS).then_some((BlockNumber(next), BlockNumber(next)))
    };
    let options = StreamOptions { effective_io_concurrency: 16, io_combine_limit: 16, full: step == 1 };
    let mut stream = ReadStream::new(&pool, &relation, MAIN, source, options);
    let mut kept = None;
    while let Some((page, block)) = stream.next().await? {
        check(&page, relation.locator().number.0, block);
        // A caller that has not let go of one page when it asks for the next.
        kept = keep.then_some(page);
    }
    drop(kept);
    Ok(())
}

/// As an index-only scan does at its worst: a leaf and a page of the heap stay pinned while the map is read.
/// `careful` says so to the pool.
async fn nested(
    pool: Arc<BufferPool>,
    relations: [RelationFiles; 2],
    mut random: Random,
    careful: bool,
) -> Result<(), Error> {
    let counters = Arc::new(IoCounters::default());
    let read = |block| {
        if careful {
            pool.read_nested(&relations[1], MAIN, block, &counters)
        } else {
            pool.read_counted(&relations[1], MAIN, block, &counters)
        }
    };
    for _ in 0..30 {
        let block = BlockNumber(random.below(u64::from(BLOCKS)) as u32);
        let leaf = pool.read(&relations[0], MAIN, block).await?;
        for _ in 0..random.below(4) {
            let inner = BlockNumber(random.below(u64::from(BLOCKS)) as u32);
            let heap = read(inner).await?;
            let map = read(BlockNumber(inner.0 / 2)).await?;
            check(&heap, relations[1].locator().number.0, inner);
            check(&map, relations[1].locator().number.0, BlockNumber(inner.0 / 2));
        }
        check(&leaf, relations[0].locator().number.0, block);
    }
    Ok(())
}

/// Whether a task may run.
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

type Task = Pin<Box<dyn Future<Output = Result<(), Error>>>>;

/// Runs tasks in a random order that the seed determines, drops some of them half-way, and never polls one that was not woken.
fn run(seed: u64, method: Arc<dyn IoMethod>, held: Option<Arc<HeldMethod>>) {
    let fixture = Fixture::new();
    let relations = [fixture.relation(1, BLOCKS), fixture.relation(2, BLOCKS)];
    let pool = BufferPool::new(FRAMES, method).unwrap();
    let mut random = Random(seed * 7919 + 17);
    let mut tasks: Vec<(Task, Arc<Flag>)> = Vec::new();
    for number in 0..50u32 {
        let task: Task = if random.below(3) == 0 {
            let [from, step] = [random.below(40) as u32, 1 + random.below(3) as u32];
            Box::pin(scan(Arc::clone(&pool), relations[number as usize % 2].clone(), from, step, number % 4 == 0))
        } else {
            let random = Random(u64::from(number) + seed * 31 + 1);
            Box::pin(nested(Arc::clone(&pool), relations.clone(), random, number % 2 == 0))
        };
        tasks.push((task, Arc::new(Flag(AtomicBool::new(true)))));
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    while !tasks.is_empty() {
        assert!(Instant::now() < deadline, "seed {seed}: {} tasks hang, {} pins", tasks.len(), pool.pinned_count());
        let ready: Vec<usize> = (0..tasks.len()).filter(|&at| tasks[at].1.0.load(Ordering::SeqCst)).collect();
        if ready.is_empty() {
            match &held {
                Some(held) if !held.in_flight().is_empty() => held.release(random.below(2) == 0),
                _ => std::thread::sleep(Duration::from_millis(1)),
            }
            continue;
        }
        let at = ready[random.below(ready.len() as u64) as usize];
        if random.below(400) == 0 {
            drop(tasks.swap_remove(at));
            continue;
        }
        let (task, flag) = &mut tasks[at];
        flag.0.store(false, Ordering::SeqCst);
        let waker = Waker::from(Arc::clone(flag));
        if let Poll::Ready(result) = task.as_mut().poll(&mut Context::from_waker(&waker)) {
            assert_eq!(result, Ok(()), "seed {seed}");
            drop(tasks.swap_remove(at));
        }
    }
    if let Some(held) = held {
        held.release(false);
    }
    while pool.pinned_count() > 0 {
        assert!(Instant::now() < deadline, "seed {seed}: pins are left");
        std::thread::yield_now();
    }
    assert_eq!(pool.waiting_count(), 0, "seed {seed}");
    can_look_ahead(&pool, &relations[0]);
}

/// What streams were granted came back: a stream alone looks ahead.
fn can_look_ahead(pool: &Arc<BufferPool>, relation: &RelationFiles) {
    let mut blocks = 0..BLOCKS;
    let source = move || blocks.next().map(|block| (BlockNumber(block), ()));
    let options = StreamOptions { full: true, ..StreamOptions::default() };
    let mut stream = ReadStream::new(pool, relation, MAIN, source, options);
    // Held reads would not come.
    if pool.method().name() == "held" {
        return;
    }
    let page = stream.next_blocking().unwrap();
    assert!(page.is_some());
    assert!(stream.controller().distance() > 1, "the stream looks ahead");
}

#[test]
fn fifty_tasks_on_sixteen_frames_all_finish_when_reads_are_synchronous() {
    (0..12).for_each(|seed| run(seed, Arc::new(SyncMethod), None));
}

#[test]
fn fifty_tasks_on_sixteen_frames_all_finish_when_reads_come_late() {
    for seed in 0..12 {
        let held = Arc::new(HeldMethod::default());
        run(seed, Arc::<HeldMethod>::clone(&held), Some(held));
    }
}

#[test]
fn fifty_tasks_on_sixteen_frames_all_finish_when_workers_read() {
    (0..12).for_each(|seed| run(seed, Arc::new(WorkerMethod::new(2).unwrap()), None));
}

#[test]
fn threads_that_hold_pages_while_they_ask_for_more_all_finish() {
    let fixture = Fixture::new();
    let relations = [fixture.relation(1, BLOCKS), fixture.relation(2, BLOCKS)];
    let pool = pool(FRAMES, WorkerMethod::new(2).unwrap());
    std::thread::scope(|scope| {
        for thread in 0..40u64 {
            let (pool, relations) = (&pool, &relations);
            scope.spawn(move || {
                let mut random = Random(thread + 1);
                for _ in 0..40 {
                    let held: Vec<PinnedPage> = (0..=random.below(3))
                        .map(|_| {
                            let block = BlockNumber(random.below(u64::from(BLOCKS)) as u32);
                            let relation = &relations[random.below(2) as usize];
                            let page = pool.read(relation, MAIN, block).wait().unwrap();
                            check(&page, relation.locator().number.0, block);
                            page
                        })
                        .collect();
                    drop(held);
                }
            });
        }
    });
    assert_eq!((pool.pinned_count(), pool.waiting_count()), (0, 0));
}

/// Who says that it holds a page does not wait, so that nobody needs the watchdog.
#[test]
fn holders_that_say_so_do_not_wait() {
    let fixture = Fixture::new();
    let relation = fixture.relation(1, BLOCKS);
    let pool = pool(FRAMES, SyncMethod);
    let counters = Arc::new(IoCounters::default());
    let leaves: Vec<_> = (0..16).map(|block| pool.read(&relation, MAIN, BlockNumber(block)).wait().unwrap()).collect();
    for block in 20..100 {
        let read = pool.read_nested(&relation, MAIN, BlockNumber(block), &counters);
        assert!(read.is_ready());
        check(&read.wait().unwrap(), 1, BlockNumber(block));
    }
    let stats = pool.stats();
    assert_eq!((stats.frame_waits, stats.reserve_uses), (0, 80));
    drop(leaves);
    assert_eq!(pool.pinned_count(), 0);
}

/// Streams that rest, as those of cursors do, leave frames to others, without the reserve.
#[test]
fn resting_streams_do_not_starve_others() {
    let fixture = Fixture::new();
    let relation = fixture.relation(1, BLOCKS);
    let pool = pool(FRAMES, SyncMethod);
    let options = StreamOptions { full: true, ..StreamOptions::default() };
    let mut resting: Vec<_> = (0..50u32)
        .map(|at| {
            let mut blocks = at..BLOCKS;
            let source = move || blocks.next().map(|block| (BlockNumber(block), ()));
            let mut stream = ReadStream::new(&pool, &relation, MAIN, source, options);
            assert!(stream.next_blocking().unwrap().is_some());
            stream
        })
        .collect();
    assert!(pool.pinned_count() <= FRAMES as u64 / 2, "{} pins", pool.pinned_count());
    for block in 0..BLOCKS {
        check(&pool.read(&relation, MAIN, BlockNumber(block)).wait().unwrap(), 1, BlockNumber(block));
    }
    for stream in &mut resting {
        while stream.next_blocking().unwrap().is_some() {}
    }
    assert_eq!(pool.stats().reserve_uses, 0);
    drop(resting);
    assert_eq!(pool.pinned_count(), 0);
}

/// Every frame is held by someone who rests: others use the reserve, and when that is used up there is an error, not a hang.
#[test]
fn when_nothing_comes_back_there_is_the_reserve_and_then_an_error() {
    let fixture = Fixture::new();
    let relation = fixture.relation(1, 2000);
    let pool = pool(FRAMES, SyncMethod);
    let read = |block| pool.read(&relation, MAIN, BlockNumber(block)).wait();
    let mut held = Vec::new();
    let error = loop {
        match read(held.len() as u32) {
            Ok(page) => held.push(page),
            Err(error) => break error,
        }
    };
    assert_eq!((error, held.len()), (Error::NoUnpinnedBuffers, FRAMES + 1024));
    assert_eq!(pool.stats().reserve_uses, 1024);
    assert_eq!(pool.waiting_count(), 0);
    held.drain(FRAMES + 5..);
    drop(read(1999).unwrap());
    held.clear();
    assert_eq!(pool.pinned_count(), 0);
    drop(read(1500).unwrap());
}

/// The property behind cancelling a query: wherever a reader is dropped, neither pin nor place stays, and others go on.
#[test]
fn a_reader_dropped_anywhere_leaves_neither_pin_nor_place() {
    let fixture = Fixture::new();
    let relation = fixture.relation(1, BLOCKS);
    for polls in 0..6 {
        let held = Arc::new(HeldMethod::default());
        let pool = BufferPool::new(2, Arc::<HeldMethod>::clone(&held)).unwrap();
        let first: Vec<_> = (0..2).map(|block| pool.read(&relation, MAIN, BlockNumber(block))).collect();
        held.release(false);
        let pins: Vec<_> = first.into_iter().map(|read| read.wait().unwrap()).collect();
        let mut blocks = 50..60;
        let source = move || blocks.next().map(|block| (BlockNumber(block), ()));
        let mut stream = ReadStream::new(&pool, &relation, MAIN, source, StreamOptions::default());
        let wakes = Arc::new(Wakes::default());
        let mut page = pool.read(&relation, MAIN, BlockNumber(9));
        {
            let mut next = Box::pin(stream.next());
            for poll in 0..polls {
                if poll == 3 {
                    held.release(false);
                }
                assert!(wakes.poll(&mut next).is_pending() || poll >= 3);
                if poll < 2 {
                    assert!(wakes.poll(&mut page).is_pending());
                }
            }
        }
        drop(page);
        assert_eq!(pool.waiting_count(), 0, "{polls}");
        drop(stream);
        drop(pins);
        held.release(false);
        assert_eq!(pool.pinned_count(), 0, "{polls}");
    }
}
