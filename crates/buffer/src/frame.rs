//! One frame's header: its state word, the name of its page, its latch, and who waits for its page.
//!
//! ```text
//!   state (64 bits)   63 … 40   39       38         37        36       35 … 32       31 … 0
//!                     unused    FAILED   IN_FLIGHT  TAGGED    VALID    usage count   pins
//!
//!   free ── claimed by the clock hand: pins 0 ▸ 1 ──▸ TAGGED IN_FLIGHT ──▸ TAGGED VALID ── hand, pins 0 ──▸ free
//!                                                          └─ read failed ─▸ FAILED, out of the table ─ pins 0 ─▸ free
//! ```
//!
//! - A frame is in the table exactly while it is TAGGED (both change under its partition's write lock).
//! - Pins go from 0 to 1 only under the partition's read lock (a reader that found it), by the clock hand, or on a VALID frame
//!   by whoever guesses what it holds and looks at the tag then: while the hand's claimer may change the tag, the frame is
//!   not VALID, and its claim fails where a guess came first.
//! - The tag changes only while the hand's claimer holds the only pin and the frame is not TAGGED.
//! - While IN_FLIGHT, the read holds a pin of its own, so that nobody who loses interest can free the frame.
//! - The bytes are written only while IN_FLIGHT, and read only while VALID and pinned (and latched).

use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::{Mutex, RwLock};
use stegodon_format::ids::{BlockNumber, Fork, Oid, RelFileLocator, RelFileNumber};

use crate::error::{Error, Result};
use crate::table::PageTag;

const PIN: u64 = 1;
const PINS: u64 = 0xFFFF_FFFF;
const USAGE: u64 = 1 << 32;
const USAGE_SHIFT: u32 = 32;
const USAGE_MASK: u64 = 0xF << USAGE_SHIFT;
/// A page that was used this often since the hand last passed survives as many passes.
const USAGE_MAX: u64 = 5;

pub(crate) const VALID: u64 = 1 << 36;
pub(crate) const TAGGED: u64 = 1 << 37;
pub(crate) const IN_FLIGHT: u64 = 1 << 38;
pub(crate) const FAILED: u64 = 1 << 39;

pub(crate) const fn pins(state: u64) -> u64 {
    state & PINS
}

/// A frame's state with one more pin and one more use, as far as uses are counted.
const fn with_pin(state: u64) -> u64 {
    let used = if (state & USAGE_MASK) >> USAGE_SHIFT < USAGE_MAX { USAGE } else { 0 };
    state + PIN + used
}

#[derive(Default)]
struct Waiting {
    wakers: Vec<Waker>,
    /// Set before FAILED is.
    error: Option<Error>,
}

/// What the clock hand found.
pub(crate) enum Sweep {
    /// Pinned.
    Busy,
    /// Changed by someone else just now.
    Lost,
    /// Its usage count was lowered.
    Aged,
    /// Unpinned and unused: now pinned once, by the hand. The state is that before.
    Claimed(u64),
}

/// One cache line.
#[repr(align(64))]
pub(crate) struct Frame {
    state: AtomicU64,
    tag: [AtomicU64; 3],
    pub(crate) latch: RwLock<()>,
    /// Made when someone waits or a read fails.
    waiting: Mutex<Option<Box<Waiting>>>,
}

const _: () = assert!(size_of::<Frame>() == 64, "a frame's header is one cache line");

impl Frame {
    pub(crate) fn new() -> Self {
        Self { state: AtomicU64::new(0), tag: Default::default(), latch: RwLock::new(()), waiting: Mutex::default() }
    }

    pub(crate) fn state(&self) -> u64 {
        self.state.load(Ordering::Acquire)
    }

    /// The page's name; meaningful while pinned.
    pub(crate) fn tag(&self) -> PageTag {
        let [a, b, c] = [0, 1, 2].map(|at: usize| self.tag.get(at).map_or(0, |word| word.load(Ordering::Relaxed)));
        let fork = match c {
            0 => Fork::Main,
            1 => Fork::FreeSpaceMap,
            2 => Fork::VisibilityMap,
            _ => Fork::Init,
        };
        let locator = RelFileLocator {
            tablespace: Oid((a >> 32) as u32),
            database: Oid(a as u32),
            number: RelFileNumber((b >> 32) as u32),
        };
        PageTag { locator, fork, block: BlockNumber(b as u32) }
    }

    /// Names the page that will be read and marks it in flight, with one pin for the reader and one for the read. The
    /// caller holds the only pin and the partition's write lock.
    pub(crate) fn start(&self, tag: PageTag) {
        let RelFileLocator { tablespace, database, number } = tag.locator;
        let words = [
            u64::from(tablespace.0) << 32 | u64::from(database.0),
            u64::from(number.0) << 32 | u64::from(tag.block.0),
            tag.fork as u64,
        ];
        for (cell, word) in self.tag.iter().zip(words) {
            cell.store(word, Ordering::Relaxed);
        }
        let stale = self.waiting.lock().take();
        let before = self.state.swap(TAGGED | IN_FLIGHT | USAGE | (2 * PIN), Ordering::AcqRel);
        debug_assert_eq!(before & !(USAGE_MASK | FAILED), PIN, "only a claimed, untagged frame is started");
        drop(stale);
    }

    /// Another pin on a page that was found in the table, whose partition is locked. Returns the state before.
    pub(crate) fn pin_used(&self) -> u64 {
        let pin = |state| Some(with_pin(state));
        self.state.fetch_update(Ordering::Acquire, Ordering::Relaxed, pin).unwrap_or_else(|state| state)
    }

    /// A pin on whatever valid page is here; false if there is none.
    pub(crate) fn pin_valid(&self) -> bool {
        let pin = |state| (state & VALID != 0).then(|| with_pin(state));
        self.state.fetch_update(Ordering::Acquire, Ordering::Relaxed, pin).is_ok()
    }

    /// Another pin, for whoever has one.
    pub(crate) fn pin_again(&self) {
        let before = self.state.fetch_add(PIN, Ordering::Relaxed);
        debug_assert!(pins(before) > 0, "only a pinned frame is pinned again");
    }

    /// Gives up a pin; returns whether it was the last.
    pub(crate) fn unpin(&self) -> bool {
        // Sequentially consistent with the flag that says that someone waits for a frame.
        let before = self.state.fetch_sub(PIN, Ordering::SeqCst);
        debug_assert!(pins(before) > 0, "only a pinned frame is unpinned");
        pins(before) == 1
    }

    /// The hand passes.
    pub(crate) fn sweep(&self) -> Sweep {
        let state = self.state.load(Ordering::SeqCst);
        if pins(state) > 0 {
            return Sweep::Busy;
        }
        let aged = state & USAGE_MASK > 0;
        let wanted = if aged { state - USAGE } else { state + PIN };
        match self.state.compare_exchange(state, wanted, Ordering::AcqRel, Ordering::Relaxed) {
            Err(_) => Sweep::Lost,
            Ok(_) if aged => Sweep::Aged,
            Ok(_) => Sweep::Claimed(state),
        }
    }

    /// Takes the page's name away, for the claimer, who holds the partition's write lock; fails if someone has pinned it
    /// since.
    pub(crate) fn untag(&self) -> bool {
        let state = self.state.load(Ordering::Acquire);
        pins(state) == 1 && self.state.compare_exchange(state, PIN, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// The read has ended well: gives up its pin and wakes who waits; returns whether that was the last pin. At once with the
    /// pin, so that who has seen the page and let go of it finds it unpinned.
    pub(crate) fn arrived(&self) -> bool {
        // As for `unpin`, sequentially consistent.
        let before = self.state.fetch_sub(IN_FLIGHT - VALID + PIN, Ordering::SeqCst);
        debug_assert_eq!(before & (TAGGED | IN_FLIGHT | VALID), TAGGED | IN_FLIGHT, "only a read in flight arrives");
        debug_assert!(pins(before) > 0, "a read has a pin");
        self.wake();
        pins(before) == 1
    }

    /// The read has failed: gives up its pin; returns whether that was the last. The caller, who has the partition's write lock,
    /// takes the page out of the table and then calls [`Frame::wake`].
    pub(crate) fn failed(&self, error: Error) -> bool {
        self.waiting.lock().get_or_insert_default().error = Some(error);
        // IN_FLIGHT and TAGGED are taken off, FAILED is added.
        let before = self.state.fetch_add(FAILED - IN_FLIGHT - TAGGED - PIN, Ordering::SeqCst);
        debug_assert_eq!(before & (TAGGED | IN_FLIGHT | FAILED), TAGGED | IN_FLIGHT, "only a read in flight fails");
        debug_assert!(pins(before) > 0, "a read has a pin");
        pins(before) == 1
    }

    /// Wakes who waits. The frame may have another page by now, whose readers are then woken in vain: who waits for this one
    /// has a pin.
    pub(crate) fn wake(&self) {
        let wakers =
            self.waiting.lock().as_mut().map(|waiting| std::mem::take(&mut waiting.wakers)).unwrap_or_default();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Whether the page is there; the caller has a pin. If it is still in flight, the context's task is woken later.
    pub(crate) fn poll_arrival(&self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        if self.state() & VALID != 0 {
            return Poll::Ready(Ok(()));
        }
        let mut waiting = self.waiting.lock();
        // Again under the lock: the read changes the state before it takes the wakers.
        let state = self.state();
        if state & VALID != 0 {
            Poll::Ready(Ok(()))
        } else if state & IN_FLIGHT != 0 {
            let wakers = &mut waiting.get_or_insert_default().wakers;
            if !wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
                wakers.push(cx.waker().clone());
            }
            Poll::Pending
        } else {
            debug_assert!(state & FAILED != 0, "a pinned page is valid, in flight or failed");
            let error = waiting.as_ref().and_then(|waiting| waiting.error.clone());
            Poll::Ready(Err(error.unwrap_or(Error::NoUnpinnedBuffers)))
        }
    }
}
