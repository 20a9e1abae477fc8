//! The read stream: block numbers in, pinned pages out, in order.
//!
//! ```text
//!   source ──▸ pending run (data waits in `wanted`) ──▸ queue of pins, oldest first ──▸ caller
//!                      the controller decides ▲          ▲ some still in flight
//! ```
//!
//! Pages that are pinned for later are *granted* by the pool: all streams together keep at most half of the frames pinned,
//! each a fair share. A stream without a grant pins a page only while it is asked for one; so a stream that rests, or waits
//! for a frame, takes nothing from others that they could need. While someone waits for a frame, no stream looks ahead.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Instant;

use stegodon_format::ids::{BlockNumber, Fork};
use stegodon_format::page::BLCKSZ;
use stegodon_io::RelationFiles;

use crate::controller::{Action, Controller};
use crate::counters::{IoCounters, add};
use crate::error::{Error, Result};
use crate::future::block_on;
use crate::page::PinnedPage;
use crate::pool::{BufferPool, Claim, Started};
use crate::table::PageTag;
use crate::waiters::{Place, Turn};

/// Where a stream's block numbers come from. Closures `FnMut() -> Option<(BlockNumber, Data)>` are sources.
pub trait BlockSource {
    /// What travels with each block to the caller: offsets to look at, whether to recheck.
    type Data;

    /// The next block; `None` at the end. Must not wait for the stream's own pages.
    fn next_block(&mut self) -> Option<(BlockNumber, Self::Data)>;
}

impl<F, D> BlockSource for F
where
    F: FnMut() -> Option<(BlockNumber, D)>,
{
    type Data = D;

    fn next_block(&mut self) -> Option<(BlockNumber, D)> {
        self()
    }
}

/// A stream's settings.
#[derive(Clone, Copy, Debug)]
pub struct StreamOptions {
    /// `effective_io_concurrency`: reads in flight at once. 0 means no asynchronous reads; combining still works.
    pub effective_io_concurrency: u32,
    /// `io_combine_limit`, in blocks.
    pub io_combine_limit: u32,
    /// Whether the caller is going to read everything, so that there is no need to start carefully.
    pub full: bool,
}

impl Default for StreamOptions {
    fn default() -> Self {
        Self { effective_io_concurrency: 16, io_combine_limit: 16, full: false }
    }
}

/// What a stream yields: a page, and what its source sent along with the block.
pub type StreamItem<D> = (PinnedPage, D);

struct Queued<D> {
    page: PinnedPage,
    /// The first page of a run that was not all there when it was started.
    starts_read: bool,
    data: D,
}

/// Pages of one fork, in the order in which their blocks are wanted.
pub struct ReadStream<S: BlockSource> {
    pool: Arc<BufferPool>,
    relation: RelationFiles,
    fork: Fork,
    source: S,
    synchronous: bool,
    controller: Controller,
    /// The data of blocks that the controller knows and that are not started: pending and held.
    wanted: VecDeque<S::Data>,
    queue: VecDeque<Queued<S::Data>>,
    counters: Option<Arc<IoCounters>>,
    waiting_since: Option<Instant>,
    /// The block started last, and its frame.
    last: Option<(BlockNumber, u32)>,
    /// See [`ReadStream::expect`].
    expected: (usize, usize),
    /// How many pages the pool grants to be kept for later, and how many streams there were then.
    granted: usize,
    streams: usize,
    /// The place in the queue of those who wait for a frame.
    place: Option<Place>,
}

/// Bytes at a page's end that are worth asking for early; the processor itself goes on from there.
const TAIL_BYTES_MAX: usize = 3072;

impl<S: BlockSource> ReadStream<S> {
    /// A stream over the blocks that `source` names. Reads nothing yet.
    pub fn new(
        pool: &Arc<BufferPool>,
        relation: &RelationFiles,
        fork: Fork,
        source: S,
        options: StreamOptions,
    ) -> Self {
        pool.streams.fetch_add(1, Ordering::Relaxed);
        let StreamOptions { effective_io_concurrency, io_combine_limit, full } = options;
        Self {
            pool: Arc::clone(pool),
            relation: relation.clone(),
            fork,
            source,
            synchronous: effective_io_concurrency == 0,
            controller: Controller::new(effective_io_concurrency, io_combine_limit, full),
            wanted: VecDeque::new(),
            queue: VecDeque::new(),
            counters: None,
            waiting_since: None,
            last: None,
            expected: (0, BLCKSZ),
            granted: 0,
            streams: 0,
            place: None,
        }
    }

    /// Counts for a query.
    pub fn counted(mut self, counters: Arc<IoCounters>) -> Self {
        self.counters = Some(counters);
        self
    }

    /// What the caller is going to look at first on the pages to come: from the page's start to `head`, and from `tail` on.
    /// Pages of one relation are alike; the page read last is a good guess. The lines are asked for when a page that the pool
    /// has is pinned, so that they are there when the caller is.
    pub fn expect(&mut self, head: u16, tail: u16) {
        self.expected = (usize::from(head).min(BLCKSZ), usize::from(tail).min(BLCKSZ));
    }

    /// The source, to be told something; blocks that were already taken from it are not affected.
    pub fn source_mut(&mut self) -> &mut S {
        &mut self.source
    }

    /// The state of the look-ahead.
    pub fn controller(&self) -> &Controller {
        &self.controller
    }

    /// Forgets what was wanted and not handed out, and begins anew with what the source says next.
    pub fn reset(&mut self) {
        self.wanted.clear();
        self.queue.clear();
        self.controller.reset();
        self.waiting_since = None;
        self.place = None;
    }

    /// Asks for a fair share of pages to keep, or gives back what is more than that now.
    fn share(&mut self) {
        let streams = self.pool.streams.load(Ordering::Relaxed);
        if streams == self.streams && self.granted > 0 {
            return;
        }
        let share = self.pool.fair_share(streams).min(self.controller.max_pinned_wanted() as usize);
        if share >= self.granted {
            self.granted += self.pool.grant(share - self.granted);
            self.streams = streams;
        } else {
            // What is pinned already is given back as it is used.
            let keep = share.max(self.queue.len().min(self.granted));
            self.pool.ungrant(self.granted - keep);
            self.granted = keep;
            self.streams = if keep == share { streams } else { 0 };
        }
        self.controller.limit_pins(u32::try_from(self.granted).unwrap_or(u32::MAX));
    }

    /// Does what the controller says. Returns whether the pool had no frame.
    fn look_ahead(&mut self, claim: Claim) -> bool {
        self.share();
        loop {
            match self.controller.next_action() {
                Action::Nothing => return false,
                Action::Fetch => match self.source.next_block() {
                    None => self.controller.wanted(None),
                    Some((block, data)) => {
                        self.wanted.push_back(data);
                        self.controller.wanted(Some(block));
                    }
                },
                Action::Start { first, .. } if self.start_near(first) => self.controller.started(1, false),
                Action::Start { first, blocks } => {
                    let Self { pool, relation, fork, wanted, queue, counters, .. } = self;
                    let mut starts_read = true;
                    let keep = |page| {
                        if let Some(data) = wanted.pop_front() {
                            queue.push_back(Queued { page, starts_read, data });
                            starts_read = false;
                        }
                    };
                    let counters = counters.as_deref();
                    match pool.start_run(relation, *fork, first, blocks, self.synchronous, counters, claim, keep) {
                        Started::NoFrame => {
                            self.controller.starved();
                            return true;
                        }
                        Started::Pinned { blocks, needs_wait } => {
                            if !needs_wait && let Some(last) = self.queue.back_mut() {
                                last.starts_read = false;
                            }
                            self.last = self.queue.back().map(|last| (last.page.block(), last.page.frame));
                            self.controller.started(blocks, needs_wait);
                        }
                    }
                }
            }
        }
    }

    /// Pins a block if it lies as far from the frame of the block before as it does from that block.
    fn start_near(&mut self, block: BlockNumber) -> bool {
        let Some((before, frame)) = self.last else { return false };
        let frame = frame.wrapping_add(block.0.wrapping_sub(before.0));
        let tag = PageTag { locator: self.relation.locator(), fork: self.fork, block };
        let Some(page) = self.pool.pin_in(&tag, frame) else { return false };
        let Some(data) = self.wanted.pop_front() else { return false };
        self.pool.count_hit(self.counters.as_deref());
        let (head, tail) = self.expected;
        page.prefetch(0..head);
        page.prefetch(tail.max(BLCKSZ - TAIL_BYTES_MAX)..BLCKSZ);
        self.queue.push_back(Queued { page, starts_read: false, data });
        self.last = Some((block, frame));
        true
    }

    /// The next page with its data; `None` at the end. After an error the stream goes on behind the page that failed.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<StreamItem<S::Data>>>> {
        if self.queue.is_empty() {
            // Who waits already asks for its turn first.
            if self.place.is_some() || self.look_ahead(Claim::Polite) {
                if self.place.is_none() {
                    add(&self.pool.counters().frame_waits, 1);
                }
                let turn = self.pool.waiters.arm(&mut self.place, cx);
                let found = match turn {
                    Turn::Try { reserve } => {
                        !self.look_ahead(if reserve { Claim::Reserve } else { Claim::Waiter }) || !self.queue.is_empty()
                    }
                    Turn::Sleep => false,
                    Turn::Fail => {
                        self.place = None;
                        return Poll::Ready(Err(Error::NoUnpinnedBuffers));
                    }
                };
                if !found {
                    return Poll::Pending;
                }
            }
            self.place = None;
        }
        let Some(front) = self.queue.front() else {
            debug_assert!(!self.controller.has_pending(), "a stream ends when everything wanted was started");
            return Poll::Ready(Ok(None));
        };
        // Also where the run's first page has arrived: its pages arrive one by one.
        match front.page.header().poll_arrival(cx) {
            Poll::Pending => {
                if self.waiting_since.is_none() {
                    self.waiting_since = Some(Instant::now());
                    self.pool.count_wait(self.counters.as_deref());
                }
                return Poll::Pending;
            }
            Poll::Ready(result) => {
                if let (Some(since), Some(counters)) = (self.waiting_since.take(), &self.counters) {
                    counters.add_time(since.elapsed());
                }
                if let Err(error) = result {
                    drop(self.pop());
                    return Poll::Ready(Err(error));
                }
            }
        }
        let next = self.pop();
        // Before the caller uses the page, so that reading goes on meanwhile; but only with what was granted, and while nobody
        // waits for a frame. Without a frame it is well: the next call will want it again.
        self.share();
        if self.granted > 0 && !self.pool.waiters.starving() {
            self.look_ahead(Claim::Polite);
        }
        Poll::Ready(Ok(next))
    }

    fn pop(&mut self) -> Option<StreamItem<S::Data>> {
        let Queued { page, starts_read, data } = self.queue.pop_front()?;
        if starts_read {
            self.controller.waited();
        }
        self.controller.consumed();
        Some((page, data))
    }

    /// The next page with its data; `None` at the end. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Option<StreamItem<S::Data>>> {
        Next { stream: self }.await
    }

    /// Like [`ReadStream::next`], waiting on the calling thread.
    pub fn next_blocking(&mut self) -> Result<Option<StreamItem<S::Data>>> {
        block_on(Next { stream: self })
    }
}

impl<S: BlockSource> Drop for ReadStream<S> {
    fn drop(&mut self) {
        self.queue.clear();
        self.pool.ungrant(self.granted);
        self.pool.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A wait for the next page, perhaps given up.
struct Next<'a, S: BlockSource> {
    stream: &'a mut ReadStream<S>,
}

impl<S: BlockSource> Future for Next<'_, S> {
    type Output = Result<Option<StreamItem<S::Data>>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.stream.poll_next(cx)
    }
}

impl<S: BlockSource> Drop for Next<'_, S> {
    fn drop(&mut self) {
        // Nobody would take a frame that the stream were woken for.
        self.stream.place = None;
    }
}
