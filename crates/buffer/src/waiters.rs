//! Who waits for a frame, when every frame is pinned.
//!
//! ```text
//!   queue, oldest ticket first          a pin is the last of its frame ──▸ the first who sleeps is woken and tries
//!   ┌────┬────┬────┬────┐               who leaves (with a frame, or dropped) ──▸ wakes the next who sleeps
//!   │ 17 │ 18 │ 20 │ 23 │ ◂── arm       nobody has left for a while ──▸ the watchdog lets all use the reserve
//!   └────┴────┴────┴────┘               nobody leaves for `STUCK_AFTER`, reserve and all ──▸ the oldest fails
//! ```
//!
//! A waiter puts its waker here first (*arms*), then looks for a frame, then sleeps; whoever unpins makes the frame free first
//! and then looks whether anybody waits. So one of the two sees the other. Only the oldest, and those who were woken, look
//! for a frame; who comes while others wait queues up behind them.
//!
//! The watchdog is a thread that sleeps as long as nobody waits. It makes sure that waiting ends: by the reserve, by an error.
//! A waiter that was woken and is never polled again has swallowed a wake-up; the watchdog wakes another at its next tick.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

/// How often the watchdog looks.
pub(crate) const TICK: Duration = Duration::from_millis(20);
/// Ticks without anybody leaving the queue after which the reserve is opened while reads are in flight, whose frames may come
/// free. Without reads it is one.
const TICKS_WITH_READS: u32 = 10;
/// After this time in which neither a frame nor the reserve had anything for it, the oldest waiter gets an error.
pub(crate) const STUCK_AFTER: Duration = Duration::from_secs(5);

/// What a waiter may do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Look for a frame; `reserve` says whether also beyond the pool's size.
    Try { reserve: bool },
    /// Wait to be woken.
    Sleep,
    /// Give up.
    Fail,
}

struct Waiter {
    ticket: u64,
    /// `None` when it was woken and has not looked since.
    waker: Option<Waker>,
    reserve: bool,
    failed: bool,
    since: Instant,
}

#[derive(Default)]
struct Queue {
    /// Ascending by ticket.
    waiters: VecDeque<Waiter>,
    next_ticket: u64,
    /// How many have left, with a frame or without.
    left: u64,
    /// The pins that are held now do not come back: newcomers may use the reserve at once.
    stuck: bool,
    watched: bool,
    closed: bool,
}

#[derive(Default)]
struct Shared {
    /// Whether the queue may be non-empty.
    starving: AtomicBool,
    /// Reads submitted and not completed.
    in_flight: AtomicUsize,
    queue: Mutex<Queue>,
    /// Tells the watchdog of the first waiter, and of the end.
    changed: Condvar,
}

/// The queue. Dropping it ends the watchdog.
pub(crate) struct Waiters(Arc<Shared>);

/// A place in the queue; dropping it leaves.
pub(crate) struct Place {
    shared: Arc<Shared>,
    ticket: u64,
}

impl Waiters {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    /// Whether somebody waits.
    pub(crate) fn starving(&self) -> bool {
        // Sequentially consistent with giving up a pin, and with the hand's look at the pins.
        self.0.starving.load(Ordering::SeqCst)
    }

    /// A read was submitted.
    pub(crate) fn read_started(&self) {
        self.0.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    /// A read has completed.
    pub(crate) fn read_ended(&self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }

    /// A frame has lost its last pin.
    pub(crate) fn frame_is_free(&self) {
        if self.starving() {
            let mut queue = self.0.queue.lock();
            queue.stuck = false;
            wake(queue);
        }
    }

    /// Takes a place in the queue, or keeps it, and says what its owner may do. The context's task will be woken.
    pub(crate) fn arm(&self, place: &mut Option<Place>, cx: &Context<'_>) -> Turn {
        let shared = &self.0;
        let mut queue = shared.queue.lock();
        let Some(Place { ticket, .. }) = place else {
            let (ticket, oldest) = (queue.next_ticket, queue.waiters.is_empty());
            queue.next_ticket += 1;
            if !queue.watched {
                let shared = Arc::clone(shared);
                let watchdog = std::thread::Builder::new().name("buffer watchdog".to_owned());
                queue.watched = watchdog.spawn(move || watch(&shared)).is_ok();
            }
            let reserve = queue.stuck || !queue.watched;
            // Nobody would end its waiting without the watchdog: it looks once, and is woken at once to hear that it failed.
            let failed = !queue.watched;
            if failed {
                cx.waker().wake_by_ref();
            }
            let waker = Some(cx.waker().clone());
            queue.waiters.push_back(Waiter { ticket, waker, reserve, failed, since: Instant::now() });
            shared.starving.store(true, Ordering::SeqCst);
            drop(queue);
            if oldest {
                shared.changed.notify_one();
            }
            *place = Some(Place { shared: Arc::clone(shared), ticket });
            return if oldest || reserve { Turn::Try { reserve } } else { Turn::Sleep };
        };
        let Ok(at) = queue.waiters.binary_search_by_key(ticket, |waiter| waiter.ticket) else { return Turn::Fail };
        let Some(waiter) = queue.waiters.get_mut(at) else { return Turn::Fail };
        if waiter.failed {
            return Turn::Fail;
        }
        let (woken, reserve) = (waiter.waker.is_none(), waiter.reserve);
        // Dropping a waker may drop a task, which may wait here too: not under the lock.
        let stale = waiter.waker.replace(cx.waker().clone());
        drop(queue);
        drop(stale);
        if at == 0 || woken || reserve { Turn::Try { reserve } } else { Turn::Sleep }
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.0.queue.lock().waiters.len()
    }
}

impl Drop for Waiters {
    fn drop(&mut self) {
        self.0.queue.lock().closed = true;
        self.0.changed.notify_one();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut queue = self.shared.queue.lock();
        let found = queue.waiters.binary_search_by_key(&self.ticket, |waiter| waiter.ticket);
        let left = found.ok().and_then(|at| queue.waiters.remove(at));
        queue.left += 1;
        if queue.waiters.is_empty() {
            self.shared.starving.store(false, Ordering::SeqCst);
        }
        wake(queue);
        drop(left);
    }
}

/// Wakes the first who sleeps.
fn wake(mut queue: MutexGuard<'_, Queue>) {
    let waker = queue.waiters.iter_mut().find_map(|waiter| waiter.waker.take());
    drop(queue);
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// The watchdog's life.
fn watch(shared: &Shared) {
    let mut queue = shared.queue.lock();
    let (mut left, mut idle_ticks) = (queue.left, 0u32);
    while !queue.closed {
        if queue.waiters.is_empty() {
            shared.changed.wait(&mut queue);
            (left, idle_ticks) = (queue.left, 0);
            continue;
        }
        let deadline = Instant::now() + TICK;
        while !queue.closed && !shared.changed.wait_until(&mut queue, deadline).timed_out() {}
        if queue.left == left {
            idle_ticks += 1;
        } else {
            (left, idle_ticks) = (queue.left, 0);
        }
        let patience = if shared.in_flight.load(Ordering::Relaxed) > 0 { TICKS_WITH_READS } else { 1 };
        let stuck = idle_ticks >= patience;
        let mut wakers = Vec::new();
        if stuck {
            queue.stuck = true;
            if let Some(oldest) = queue.waiters.iter_mut().find(|waiter| !waiter.failed) {
                oldest.failed = oldest.reserve && oldest.since.elapsed() >= STUCK_AFTER;
            }
            for waiter in &mut queue.waiters {
                waiter.reserve = true;
                wakers.extend(waiter.waker.take());
            }
        } else {
            wakers.extend(queue.waiters.iter_mut().find_map(|waiter| waiter.waker.take()));
        }
        MutexGuard::unlocked(&mut queue, || wakers.into_iter().for_each(Waker::wake));
    }
}

#[cfg(test)]
#[path = "waiters_tests.rs"]
mod tests;
