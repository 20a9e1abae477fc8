//! What a read stream does next: a pure state machine, without clock or I/O.
//!
//! Events come in (a block is wanted, a run was started, a read was waited for, a page was consumed); actions go out
//! (ask for a block, start a run, nothing). The rule for now is PostgreSQL 18's, with one distance:
//!
//! ```text
//!   a run that needs no read       distance − 1, not below 1
//!   a read that was waited for     distance · 2, not above the pins allowed
//!
//!   pinned │ pending │ …  distance            look ahead while pinned + pending < distance
//!   ───────┼─────────┼────────▸               and fewer than `max_ios` reads are in progress
//! ```
//!
//! A pending run grows while blocks are neighbours; it starts when it has reached `combine_limit`, when a block comes that
//! is no neighbour, when it fills the distance and nothing is pinned, and at the end of the blocks.

use stegodon_format::ids::BlockNumber;

/// What the stream does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Ask the source for a block and report it to [`Controller::wanted`].
    Fetch,
    /// Start the run of `blocks` blocks from `first` and report to [`Controller::started`] (or [`Controller::starved`]).
    Start {
        /// The first block.
        first: BlockNumber,
        /// How many, at least one.
        blocks: u32,
    },
    /// Look ahead no further for now.
    Nothing,
}

/// PostgreSQL 18's look-ahead.
#[derive(Clone, Debug)]
pub struct Controller {
    max_ios: u32,
    combine_limit: u32,
    /// What the settings allow; the pool's quota may be lower.
    max_pinned_wanted: u32,
    max_pinned: u32,
    initial_distance: u32,
    /// How far to look ahead, in pages; 0 once the source has ended.
    distance: u32,
    ios_in_progress: u32,
    pinned: u32,
    pending_first: BlockNumber,
    pending: u32,
    /// A block that does not continue the pending run, which must start first.
    held: Option<BlockNumber>,
}

impl Controller {
    /// `effective_io_concurrency` reads at once (0 counts as 1: the stream reads synchronously), runs of up to
    /// `combine_limit` blocks. `full` says that the caller will read everything.
    pub fn new(effective_io_concurrency: u32, combine_limit: u32, full: bool) -> Self {
        let max_ios = effective_io_concurrency.clamp(1, 1000);
        let combine_limit = combine_limit.clamp(1, stegodon_io::RUN_BLOCKS_MAX as u32);
        let max_pinned = (max_ios + 1) * combine_limit;
        let initial_distance = if full { combine_limit } else { 1 };
        Self {
            max_ios,
            combine_limit,
            max_pinned_wanted: max_pinned,
            max_pinned,
            initial_distance,
            distance: initial_distance,
            ios_in_progress: 0,
            pinned: 0,
            pending_first: BlockNumber(0),
            pending: 0,
            held: None,
        }
    }

    /// How many pages the settings allow to be pinned.
    pub fn max_pinned_wanted(&self) -> u32 {
        self.max_pinned_wanted
    }

    /// How many pages may be pinned, those handed out excluded, at least one.
    pub fn limit_pins(&mut self, quota: u32) {
        self.max_pinned = self.max_pinned_wanted.min(quota).max(1);
        self.distance = self.distance.min(self.max_pinned);
    }

    /// How far it looks ahead now, in pages; 0 once the source has ended.
    pub fn distance(&self) -> u32 {
        self.distance
    }

    /// How many reads are in progress.
    pub fn ios_in_progress(&self) -> u32 {
        self.ios_in_progress
    }

    /// Whether blocks that were wanted have not been started yet.
    pub fn has_pending(&self) -> bool {
        self.pending > 0
    }

    /// What to do now.
    pub fn next_action(&self) -> Action {
        if self.ios_in_progress >= self.max_ios {
            return Action::Nothing;
        }
        let wants_more = self.pinned + self.pending < self.distance;
        let must_start = self.held.is_some() || self.pending >= self.combine_limit;
        if wants_more && !(self.pending > 0 && must_start) {
            return Action::Fetch;
        }
        let start = self.pending > 0
            && (wants_more
                || self.pending >= self.combine_limit
                || (self.pending >= self.distance && self.pinned == 0)
                || self.distance == 0);
        let room = self.max_pinned.saturating_sub(self.pinned);
        if !start || room == 0 {
            return Action::Nothing;
        }
        Action::Start { first: self.pending_first, blocks: self.pending.min(self.combine_limit).min(room) }
    }

    /// The source's answer to [`Action::Fetch`]; `None` at its end.
    pub fn wanted(&mut self, block: Option<BlockNumber>) {
        debug_assert!(self.held.is_none(), "no block is asked for while one is held");
        match block {
            None => self.distance = 0,
            Some(block) if self.pending == 0 => (self.pending_first, self.pending) = (block, 1),
            Some(block) if self.pending_first.0.checked_add(self.pending) == Some(block.0) => self.pending += 1,
            Some(block) => self.held = Some(block),
        }
    }

    /// The first `blocks` of the pending run are pinned; `needs_wait` says whether a read is in progress for them.
    pub fn started(&mut self, blocks: u32, needs_wait: bool) {
        debug_assert!((1..=self.pending).contains(&blocks), "what is started was pending");
        self.pinned += blocks;
        self.pending = self.pending.saturating_sub(blocks);
        self.pending_first = BlockNumber(self.pending_first.0.wrapping_add(blocks));
        if self.pending == 0
            && let Some(held) = self.held.take()
        {
            (self.pending_first, self.pending) = (held, 1);
        }
        if needs_wait {
            self.ios_in_progress += 1;
        } else if self.distance > 1 {
            self.distance -= 1;
        }
    }

    /// The pool had no frame for the pending run: look ahead no further than now.
    pub fn starved(&mut self) {
        if self.distance > 0 {
            self.distance = self.pinned.max(1);
        }
    }

    /// A read in progress was needed and has ended.
    pub fn waited(&mut self) {
        debug_assert!(self.ios_in_progress > 0, "a read that was waited for was in progress");
        self.ios_in_progress = self.ios_in_progress.saturating_sub(1);
        self.distance = self.distance.saturating_mul(2).min(self.max_pinned);
    }

    /// A page was handed to the caller.
    pub fn consumed(&mut self) {
        debug_assert!(self.pinned > 0, "a page that is consumed was pinned");
        self.pinned = self.pinned.saturating_sub(1);
    }

    /// Forgets what was wanted and pinned, and starts anew.
    pub fn reset(&mut self) {
        (self.pinned, self.pending, self.ios_in_progress, self.held) = (0, 0, 0, None);
        self.distance = self.initial_distance.min(self.max_pinned);
    }
}

#[cfg(test)]
#[path = "controller_tests.rs"]
mod tests;
