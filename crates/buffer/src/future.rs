//! Waiting for a page.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Instant;

use stegodon_format::ids::{BlockNumber, Fork};
use stegodon_io::RelationFiles;

use crate::counters::{IoCounters, add};
use crate::error::{Error, Result};
use crate::page::PinnedPage;
use crate::pool::{BufferPool, Claim};
use crate::waiters::{Place, Turn};

enum State {
    Ready(Result<PinnedPage>),
    /// Pinned, but still being read, by us or for someone else.
    InFlight(PinnedPage),
    /// Every frame was pinned.
    Starved(Starved),
    Done,
}

/// A page that waits for a frame, and its place in the queue once it was polled.
struct Starved {
    pool: Arc<BufferPool>,
    relation: RelationFiles,
    fork: Fork,
    block: BlockNumber,
    place: Option<Place>,
}

/// A page on its way. Dropping it drops interest only: the read goes on, in a frame that the pool owns.
#[must_use = "a page that is not waited for was read in vain"]
pub struct ReadFuture {
    state: State,
    counters: Option<Arc<IoCounters>>,
    waiting_since: Option<Instant>,
}

impl ReadFuture {
    pub(crate) fn ready(result: Result<PinnedPage>) -> Self {
        Self { state: State::Ready(result), counters: None, waiting_since: None }
    }

    pub(crate) fn in_flight(page: PinnedPage, counters: Option<&Arc<IoCounters>>) -> Self {
        Self { state: State::InFlight(page), counters: counters.cloned(), waiting_since: None }
    }

    pub(crate) fn starved(
        pool: Arc<BufferPool>,
        relation: RelationFiles,
        fork: Fork,
        block: BlockNumber,
        counters: Option<&Arc<IoCounters>>,
    ) -> Self {
        let state = State::Starved(Starved { pool, relation, fork, block, place: None });
        Self { state, counters: counters.cloned(), waiting_since: None }
    }

    /// Whether awaiting would not wait.
    pub fn is_ready(&self) -> bool {
        matches!(self.state, State::Ready(_))
    }

    /// The page if it is there at once, else the future again.
    pub fn try_ready(self) -> std::result::Result<Result<PinnedPage>, Self> {
        match self.state {
            State::Ready(result) => Ok(result),
            _ => Err(self),
        }
    }

    /// Waits on the calling thread.
    pub fn wait(self) -> Result<PinnedPage> {
        match self.try_ready() {
            Ok(result) => result,
            Err(future) => block_on(future),
        }
    }
}

impl Future for ReadFuture {
    type Output = Result<PinnedPage>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        loop {
            match std::mem::replace(&mut this.state, State::Done) {
                State::Ready(result) => {
                    if let (Some(since), Some(counters)) = (this.waiting_since.take(), &this.counters) {
                        counters.add_time(since.elapsed());
                    }
                    return Poll::Ready(result);
                }
                State::InFlight(page) => match page.header().poll_arrival(cx) {
                    Poll::Ready(Ok(())) => this.state = State::Ready(Ok(page)),
                    Poll::Ready(Err(error)) => this.state = State::Ready(Err(error)),
                    Poll::Pending => {
                        if this.waiting_since.is_none() {
                            this.waiting_since = Some(Instant::now());
                            page.pool.count_wait(this.counters.as_deref());
                        }
                        this.state = State::InFlight(page);
                        return Poll::Pending;
                    }
                },
                State::Starved(mut starved) => {
                    let Starved { pool, relation, fork, block, place } = &mut starved;
                    if place.is_none() {
                        add(&pool.counters().frame_waits, 1);
                    }
                    let claim = match pool.waiters.arm(place, cx) {
                        Turn::Try { reserve: true } => Claim::Reserve,
                        Turn::Try { reserve: false } => Claim::Waiter,
                        Turn::Sleep => {
                            this.state = State::Starved(starved);
                            return Poll::Pending;
                        }
                        Turn::Fail => {
                            this.state = State::Ready(Err(Error::NoUnpinnedBuffers));
                            continue;
                        }
                    };
                    match pool.begin(relation, *fork, *block, this.counters.as_ref(), claim).state {
                        State::Starved(_) => {
                            this.state = State::Starved(starved);
                            return Poll::Pending;
                        }
                        // The place in the queue goes with `starved`.
                        other => this.state = other,
                    }
                }
                // Polled again after it was ready, against the contract of futures: it never wakes.
                State::Done => return Poll::Pending,
            }
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future of this crate on the calling thread.
pub(crate) fn block_on<F: Future + Unpin>(mut future: F) -> F::Output {
    // As a rule the first poll is enough, and a waker that wakes would be allocated in vain.
    if let Poll::Ready(output) = Pin::new(&mut future).poll(&mut Context::from_waker(Waker::noop())) {
        return output;
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut cx = Context::from_waker(&waker);
    loop {
        match Pin::new(&mut future).poll(&mut cx) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Nanoseconds are counted even where nothing is waited for: a synchronous read happens inside `submit`.
pub(crate) fn count_read(counters: Option<&IoCounters>, pages: usize, since: Option<Instant>) {
    if let Some(counters) = counters {
        add(&counters.reads, 1);
        add(&counters.pages_read, pages as u64);
        if let Some(since) = since {
            counters.add_time(since.elapsed());
        }
    }
}
