//! The blocks of a sequential scan, handed out to one or more workers.

use std::sync::atomic::{AtomicU64, Ordering};

use stegodon_format::ids::BlockNumber;

/// Hands out a relation's blocks, each once, in ranges: all at once to a lone scan, in chunks to workers. As in
/// PostgreSQL, chunks grow smaller towards the end so that workers finish together.
#[derive(Debug)]
pub struct SharedBlocks {
    next: AtomicU64,
    start: u64,
    end: u64,
    chunk_max: u64,
    workers: u64,
}

/// The largest range a worker is given at once (PostgreSQL's `PARALLEL_SEQSCAN_MAX_CHUNK_SIZE`).
const CHUNK_MAX: u64 = 8192;
/// How many ranges a worker should get at least (`PARALLEL_SEQSCAN_NCHUNKS`).
const CHUNKS: u64 = 2048;

impl SharedBlocks {
    /// The blocks from `start` up to, not including, `end`, for `workers` takers.
    pub fn new(start: u32, end: u32, workers: usize) -> Self {
        let (start, end) = (u64::from(start), u64::from(end));
        let length = end.saturating_sub(start);
        let chunk_max = (length / CHUNKS).next_power_of_two().clamp(1, CHUNK_MAX);
        Self { next: AtomicU64::new(start), start, end, chunk_max, workers: workers.max(1) as u64 }
    }

    /// How many blocks there are in all.
    pub fn len(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The next range, `None` at the end.
    pub fn take(&self) -> Option<std::ops::Range<u32>> {
        let chunk = if self.workers == 1 {
            self.len().max(1)
        } else {
            let left = self.end.saturating_sub(self.next.load(Ordering::Relaxed));
            (left / (self.workers * 64)).clamp(1, self.chunk_max)
        };
        let from = self.next.fetch_add(chunk, Ordering::Relaxed);
        (from < self.end).then(|| from as u32..(from + chunk).min(self.end) as u32)
    }

    /// The blocks of one taker, one by one.
    pub fn iter(self: &std::sync::Arc<Self>) -> impl FnMut() -> Option<BlockNumber> + Send + use<> {
        let shared = std::sync::Arc::clone(self);
        let mut range = 0..0;
        move || {
            if range.is_empty() {
                range = shared.take()?;
            }
            range.next().map(BlockNumber)
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use super::*;

    #[test]
    fn every_block_once_whoever_asks() {
        for workers in [1, 2, 5] {
            for end in [0, 1, 7, 5000] {
                let shared = Arc::new(SharedBlocks::new(0, end, workers));
                let mut takers: Vec<_> = (0..workers).map(|_| shared.iter()).collect();
                let mut seen: Vec<u32> = Vec::new();
                loop {
                    let before = seen.len();
                    seen.extend(takers.iter_mut().filter_map(|t| t()).map(|b| b.0));
                    if seen.len() == before {
                        break;
                    }
                }
                seen.sort_unstable();
                assert_eq!(seen, (0..end).collect::<Vec<_>>());
            }
        }
    }
}
