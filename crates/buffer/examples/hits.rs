//! What a page that the pool has costs: `cargo run --release -p stegodon-buffer --example hits [threads]`.
//!
//! Each line is the best of several rounds, in nanoseconds a page and thread. Only ratios on one machine mean something.

use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use stegodon_buffer::{BufferPool, IoCounters, ReadStream, StreamOptions};
use stegodon_format::ids::{BlockNumber, DEFAULT_TABLESPACE, Fork, Oid, RelFileLocator, RelFileNumber};
use stegodon_io::{DataDirectory, RelationFiles, SyncMethod};

const BLOCKS: u32 = 4096;
const ROUNDS: u32 = 40;

type Error = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Error> {
    let threads: usize = std::env::args().nth(1).map_or(Ok(2), |threads| threads.parse())?;
    let directory = std::env::temp_dir().join(format!("stegodon-hits-{}", std::process::id()));
    std::fs::create_dir_all(directory.join("base/5"))?;
    std::fs::create_dir_all(directory.join("global"))?;
    std::fs::write(directory.join("PG_VERSION"), "18\n")?;
    std::fs::write(directory.join("global/pg_control"), include_bytes!("../../format/testdata/pg_control"))?;
    std::fs::write(directory.join("base/5/1"), vec![0; BLOCKS as usize * 8192])?;
    let locator = RelFileLocator { tablespace: DEFAULT_TABLESPACE, database: Oid(5), number: RelFileNumber(1) };
    let relation = DataDirectory::open(&directory)?.relation(locator);
    let pool = BufferPool::new(2 * BLOCKS as usize, Arc::new(SyncMethod))?;
    stream(&pool, &relation)?;
    for threads in [1, threads] {
        for (name, work) in [("stream", stream as Work), ("reads of random pages", random), ("reads of one page", same)]
        {
            println!("{threads} threads, {name}: {:.1} ns", measure(threads, work, &pool, &relation)?);
        }
    }
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}

type Work = fn(&Arc<BufferPool>, &RelationFiles) -> Result<(), Error>;

fn measure(threads: usize, work: Work, pool: &Arc<BufferPool>, relation: &RelationFiles) -> Result<f64, Error> {
    let barrier = Barrier::new(threads);
    let best = || -> Result<Duration, Error> {
        let mut best = Duration::MAX;
        for _ in 0..ROUNDS {
            barrier.wait();
            let start = Instant::now();
            work(pool, relation)?;
            best = best.min(start.elapsed());
        }
        Ok(best)
    };
    let worst = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(best)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or(Ok(Duration::ZERO)))
            .max_by_key(|best| best.as_ref().copied().unwrap_or_default())
    });
    Ok(worst.unwrap_or(Ok(Duration::ZERO))?.as_nanos() as f64 / f64::from(BLOCKS))
}

fn stream(pool: &Arc<BufferPool>, relation: &RelationFiles) -> Result<(), Error> {
    let mut blocks = 0..BLOCKS;
    let source = move || blocks.next().map(|block| (BlockNumber(block), ()));
    let options = StreamOptions { full: true, ..StreamOptions::default() };
    let counters = Arc::new(IoCounters::default());
    let mut stream = ReadStream::new(pool, relation, Fork::Main, source, options).counted(counters);
    while let Some((page, ())) = stream.next_blocking()? {
        std::hint::black_box(page.latch_shared().view().lower());
    }
    Ok(())
}

fn read(pool: &Arc<BufferPool>, relation: &RelationFiles, mut next: impl FnMut() -> u32) -> Result<(), Error> {
    let counters = Arc::new(IoCounters::default());
    for _ in 0..BLOCKS {
        let page = pool.read_counted(relation, Fork::Main, BlockNumber(next()), &counters).wait()?;
        std::hint::black_box(page.latch_shared().view().lower());
    }
    Ok(())
}

fn random(pool: &Arc<BufferPool>, relation: &RelationFiles) -> Result<(), Error> {
    let mut seed = 88_172_645_463_325_252u64;
    read(pool, relation, || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 20) as u32 % BLOCKS
    })
}

fn same(pool: &Arc<BufferPool>, relation: &RelationFiles) -> Result<(), Error> {
    read(pool, relation, || 7)
}
