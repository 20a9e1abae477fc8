//! The scan: a state machine that looks at one page a step, so that it can wait for any of them.
//!
//! ```text
//!          ┌───────────────── next primitive scan (arrays moved far ahead) ──────────────┐
//!          ▼                                                                             │
//!   Meta ─▸ Down(root) ─▸ Down(child) … ─▸ Down(leaf) ─▸ batch ─▸ Right(leaf) ─▸ batch … ┴▸ Done
//!                 └▸ Down(right sibling), after a split                └▸ VerifyLink, if the links disagree
//!                                                              └▸ Left(…) ▸ LeftOrigin … on a backward scan
//! ```
//!
//! Every leaf is looked at once, under its latch; what matches is copied into the batch. Between steps the scan holds at
//! most the pin on the leaf that the batch came from, and no latch.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use stegodon_format::btree::IndexTuple;
use stegodon_format::ids::{BlockNumber, Tid};
use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::desc::IndexDesc;
use crate::key::ScanKey;
use crate::leaf::{self, After};
use crate::matcher::Matcher;
use crate::page::{self, Child};
use crate::position::Direction;
use crate::source::PageSource;
use crate::tuple::TupleValues;
use crate::{Error, Result};

/// What a scan is to keep besides TIDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanOptions {
    /// Which way through the index.
    pub direction: Direction,
    /// Whether index tuples are copied out, for an index-only scan.
    pub keep_tuples: bool,
    /// Whether the leaf stays pinned until the next batch is asked for: an index-only scan looks at the visibility map
    /// while vacuum cannot have removed the leaf's tuples.
    pub keep_pin: bool,
}

impl Default for ScanOptions {
    fn default() -> Self {
        Self { direction: Direction::Forward, keep_tuples: false, keep_pin: false }
    }
}

/// One index tuple that matches, copied, and which rows it stands for: one, or those of a posting list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where its rows end in [`BtreeScan::matches`]; they begin where the entry before ends.
    pub end: u32,
    /// Where it starts in the batch's copy.
    tuple: u32,
}

/// What a scan has done so far; survives rescans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanCounters {
    /// Descents from the root: EXPLAIN's "Index Searches".
    pub searches: u64,
    /// Leaf pages read.
    pub leaf_pages: u64,
    /// Pages read, leaves included.
    pub pages: u64,
}

/// What the leaf's matches are copied into. Kept over leaves and rescans.
///
/// ```text
///   tids     0 1 2 3 │ 4 │ 5 6      rows, in the scan's order
///   entries  ────────┘ ──┘ ───┘     index tuples, where they are kept: where their rows end
/// ```
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) tids: Vec<Tid>,
    pub(crate) entries: Vec<Entry>,
    tuples: Vec<u8>,
}

impl Batch {
    fn clear(&mut self) {
        self.tids.clear();
        self.entries.clear();
        self.tuples.clear();
    }

    /// Keeps the index tuple of the rows added last.
    pub(crate) fn keep(&mut self, tuple: IndexTuple<'_>) {
        self.entries.push(Entry { end: self.tids.len() as u32, tuple: self.tuples.len() as u32 });
        self.tuples.extend_from_slice(tuple.bytes());
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Meta,
    Down { block: BlockNumber, level: u32, from: From },
    Right { block: BlockNumber, left: Option<BlockNumber>, retried: bool },
    VerifyLink { left: BlockNumber, block: BlockNumber },
    Left { origin: BlockNumber, prev: BlockNumber, at: BlockNumber, tries: u8 },
    LeftOrigin { origin: BlockNumber, prev: BlockNumber },
    LeftOriginRight { at: BlockNumber, hops: u32 },
    Done,
}

/// How a descent came to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    /// Remembered from an earlier descent.
    Cache,
    Meta,
    Parent,
}

/// A scan of one index. Made once per plan instance, then started and restarted with [`BtreeScan::rescan`], which
/// allocates nothing once its buffers have grown.
#[derive(Debug)]
pub struct BtreeScan<S: PageSource> {
    matcher: Matcher,
    source: S,
    options: ScanOptions,
    step: Step,
    batch: Batch,
    pin: Option<S::Pin>,
    root: Option<(BlockNumber, u32)>,
    counters: ScanCounters,
    /// Whether the next leaf is the first after a descent.
    first_leaf: bool,
    /// Whether the position may lie beyond the next leaf.
    behind: bool,
    /// The cursor's moves when the last descent began: another one without a move would lead to the same leaf.
    moves_at_descent: u64,
    /// Pages of one level walked along since the last descent, and the one of them that a circle would come back to.
    walked: u64,
    anchor: Option<BlockNumber>,
}

impl<S: PageSource> BtreeScan<S> {
    /// A scan that has not begun: it yields nothing before [`BtreeScan::rescan`].
    pub fn new(desc: Arc<IndexDesc>, source: S, options: ScanOptions) -> Self {
        Self {
            matcher: Matcher::new(desc, options.direction),
            source,
            options,
            step: Step::Done,
            batch: Batch::default(),
            pin: None,
            root: None,
            counters: ScanCounters::default(),
            first_leaf: true,
            behind: false,
            moves_at_descent: u64::MAX,
            walked: 0,
            anchor: None,
        }
    }

    /// Begins, or begins anew, with these keys.
    pub fn rescan(&mut self, keys: &[ScanKey]) -> SqlResult<()> {
        self.step = Step::Done;
        self.pin = None;
        self.clear_batch();
        if self.matcher.set(keys)? {
            self.descend();
        }
        Ok(())
    }

    /// Turns round; takes effect with the next [`BtreeScan::rescan`].
    pub fn set_direction(&mut self, direction: Direction) {
        self.options.direction = direction;
        self.matcher.direction = direction;
        self.step = Step::Done;
    }

    /// The rows found by the last [`BtreeScan::poll_next`], in the order of the scan.
    pub fn matches(&self) -> &[Tid] {
        &self.batch.tids
    }

    /// The index tuples that those rows were found in; empty unless [`ScanOptions::keep_tuples`].
    pub fn entries(&self) -> &[Entry] {
        &self.batch.entries
    }

    /// The copied index tuple of an entry, to be read attribute by attribute.
    pub fn values(&self, entry: &Entry) -> SqlResult<TupleValues<'_, '_>> {
        let bytes = self.batch.tuples.get(entry.tuple as usize..).unwrap_or(&[]);
        let tuple = IndexTuple::new(bytes).map_err(crate::tuple::corrupted)?;
        TupleValues::new(&self.matcher.desc, tuple)
    }

    /// Lets go of the leaf that is kept pinned.
    pub fn release_pin(&mut self) {
        self.pin = None;
    }

    /// The index.
    pub fn desc(&self) -> &Arc<IndexDesc> {
        &self.matcher.desc
    }

    /// What has been done so far.
    pub fn counters(&self) -> ScanCounters {
        self.counters
    }

    /// The pages' source.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Finds the next leaf with matches. Ready with true: see [`BtreeScan::matches`]; with false: there are no more.
    /// After an error the scan is at its end.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<SqlResult<bool>> {
        self.clear_batch();
        self.pin = None;
        loop {
            let block = match self.step {
                Step::Done => return Poll::Ready(Ok(false)),
                Step::Meta => stegodon_format::btree::METAPAGE,
                Step::Down { block, .. } | Step::Right { block, .. } => block,
                Step::VerifyLink { left, .. } => left,
                Step::Left { at, .. } | Step::LeftOriginRight { at, .. } => at,
                Step::LeftOrigin { origin, .. } => origin,
            };
            let read = ready!(self.source.poll_read(block, cx));
            let step = read.map_err(Error::from).and_then(|pin| self.step(block, pin));
            match step {
                Ok(false) => {}
                Ok(true) => return Poll::Ready(Ok(true)),
                Err(error) => {
                    self.step = Step::Done;
                    self.clear_batch();
                    return Poll::Ready(Err(self.name_the_place(block, error).into()));
                }
            }
        }
    }

    /// [`BtreeScan::poll_next`] as a future. Dropped before it is ready, it leaves nothing wanted behind.
    pub async fn next(&mut self) -> SqlResult<bool> {
        let next = WantsNext { scan: self };
        std::future::poll_fn(|cx| next.scan.poll_next(cx)).await
    }

    /// Where decoding a tuple failed below, index and block are not known yet.
    fn name_the_place(&self, block: BlockNumber, error: Error) -> Error {
        match error {
            Error::Sql(error) if error.state == SqlState::IndexCorrupted => {
                Error::CorruptedTuple { index: self.matcher.desc.name.clone(), block, offset: 0, reason: error.message }
            }
            other => other,
        }
    }

    fn clear_batch(&mut self) {
        self.batch.clear();
    }

    fn descend(&mut self) {
        self.counters.searches += 1;
        self.first_leaf = true;
        self.behind = false;
        self.moves_at_descent = self.matcher.moves();
        self.forget_walk();
        self.step = match self.root {
            Some((block, level)) => Step::Down { block, level, from: From::Cache },
            None => Step::Meta,
        };
    }

    fn forget_walk(&mut self) {
        self.walked = 0;
        self.anchor = None;
    }

    /// Notes a step along a level. Every circle is noticed within twice its length (Brent's method).
    fn walk(&mut self, block: BlockNumber) -> Result<()> {
        if self.anchor == Some(block) {
            return Err(Error::CircularChain { index: self.matcher.desc.name.clone(), block });
        }
        self.walked += 1;
        if self.walked.is_power_of_two() {
            self.anchor = Some(block);
        }
        Ok(())
    }

    /// Looks at the page that the present step asked for. True if there is a batch to hand out.
    fn step(&mut self, block: BlockNumber, pin: S::Pin) -> Result<bool> {
        self.counters.pages += 1;
        match self.step {
            Step::Done => Ok(false),
            Step::Meta => self.step_meta(&pin).map(|()| false),
            Step::Down { level, from, .. } => self.step_down(block, level, from, pin),
            Step::Right { left, retried, .. } => self.step_right(block, left, retried, pin),
            Step::VerifyLink { left, block: right } => {
                let (name, source) = (&self.matcher.desc.name, &self.source);
                let opaque = source.with_page(&pin, |p| Ok::<_, Error>(page::open(name, left, p)?.opaque))?;
                // Where the left page still is what it was, the disagreement is looked at once more, then believed.
                let changed = opaque.is_ignored() || opaque.next != Some(right);
                let left = (!changed).then_some(left);
                self.step = Step::Right { block: right, left, retried: true };
                Ok(false)
            }
            Step::Left { origin, prev, at, tries } => self.step_left(origin, prev, at, tries, pin),
            Step::LeftOrigin { origin, prev } => self.step_left_origin(origin, Some(prev), 0, &pin).map(|()| false),
            Step::LeftOriginRight { at, hops } => self.step_left_origin(at, None, hops, &pin).map(|()| false),
        }
    }

    fn step_meta(&mut self, pin: &S::Pin) -> Result<()> {
        let (name, source) = (&self.matcher.desc.name, &self.source);
        self.root = source.with_page(pin, |p| page::fast_root(name, p))?;
        self.step = match self.root {
            Some((block, level)) => Step::Down { block, level, from: From::Meta },
            None => Step::Done,
        };
        Ok(())
    }

    fn step_down(&mut self, block: BlockNumber, level: u32, from: From, pin: S::Pin) -> Result<bool> {
        let (matcher, source) = (&mut self.matcher, &self.source);
        let child = source.with_page(&pin, |p| {
            let page = page::open(&matcher.desc.name, block, p)?;
            let opaque = page.opaque;
            if from == From::Cache
                && (opaque.is_ignored() || opaque.level != level || opaque.prev.is_some() || opaque.next.is_some())
            {
                return Ok(None);
            }
            page::choose_child(matcher, block, page, level, from != From::Parent).map(Some)
        })?;
        match child {
            None => {
                self.root = None;
                self.step = Step::Meta;
            }
            Some(Child::Right(right)) => {
                self.walk(right)?;
                self.step =
                    Step::Down { block: right, level, from: if from == From::Cache { From::Meta } else { from } };
            }
            Some(Child::Down(child)) => {
                self.forget_walk();
                self.step = Step::Down { block: child, level: level - 1, from: From::Parent };
            }
            Some(Child::Leaf(start)) => {
                self.forget_walk();
                return self.read_leaf(block, Some(start), pin);
            }
        }
        Ok(false)
    }

    fn step_right(
        &mut self,
        block: BlockNumber,
        left: Option<BlockNumber>,
        retried: bool,
        pin: S::Pin,
    ) -> Result<bool> {
        let (name, source) = (&self.matcher.desc.name, &self.source);
        let opaque = source.with_page(&pin, |p| Ok::<_, Error>(page::open(name, block, p)?.opaque))?;
        if opaque.is_ignored() {
            self.step = match opaque.next {
                Some(next) => {
                    self.walk(next)?;
                    Step::Right { block: next, left: None, retried: false }
                }
                None => Step::Done,
            };
            return Ok(false);
        }
        if let Some(left) = left
            && opaque.prev != Some(left)
        {
            if retried {
                return Err(Error::LinksDisagree { index: name.clone(), block, left });
            }
            self.step = Step::VerifyLink { left, block };
            return Ok(false);
        }
        self.read_leaf(block, None, pin)
    }

    /// Looks for the page whose right link is `origin`, first where `origin`'s left link pointed, then a few to the right.
    fn step_left(
        &mut self,
        origin: BlockNumber,
        prev: BlockNumber,
        at: BlockNumber,
        tries: u8,
        pin: S::Pin,
    ) -> Result<bool> {
        let (name, source) = (&self.matcher.desc.name, &self.source);
        let opaque = source.with_page(&pin, |p| Ok::<_, Error>(page::open(name, at, p)?.opaque))?;
        if !page::is_deleted(&opaque) && opaque.next == Some(origin) {
            self.walk(at)?;
            if !opaque.is_ignored() {
                return self.read_leaf(at, None, pin);
            }
            // Half dead: go on to its left.
            self.step_from(at, opaque.prev);
            return Ok(false);
        }
        self.step = match opaque.next {
            Some(next) if tries < 4 => Step::Left { origin, prev, at: next, tries: tries + 1 },
            _ => Step::LeftOrigin { origin, prev },
        };
        Ok(false)
    }

    /// Looks again at the page that was being left, to learn why no left sibling leads back to it.
    fn step_left_origin(
        &mut self,
        origin: BlockNumber,
        prev: Option<BlockNumber>,
        hops: u32,
        pin: &S::Pin,
    ) -> Result<()> {
        let (name, source) = (&self.matcher.desc.name, &self.source);
        let opaque = source.with_page(pin, |p| Ok::<_, Error>(page::open(name, origin, p)?.opaque))?;
        // Pages were split or deleted meanwhile: blocks met before may be met again.
        self.anchor = None;
        self.walked = 0;
        if page::is_deleted(&opaque) {
            // Its keys now belong to the first page to the right that is not deleted: go on from there.
            let Some(next) = opaque.next else { return Err(Error::FellOffTheEnd { index: name.clone() }) };
            if hops > self.source.block_count()? {
                return Err(Error::CircularChain { index: name.clone(), block: next });
            }
            self.step = Step::LeftOriginRight { at: next, hops: hops + 1 };
            return Ok(());
        }
        if prev.is_some() && opaque.prev == prev {
            return Err(Error::NoLeftSibling { index: name.clone(), block: origin });
        }
        self.step_from(origin, opaque.prev);
        Ok(())
    }

    /// Steps left from `origin`, whose left link is `prev`.
    fn step_from(&mut self, origin: BlockNumber, prev: Option<BlockNumber>) {
        self.step = match prev {
            Some(prev) => Step::Left { origin, prev, at: prev, tries: 0 },
            None => Step::Done,
        };
    }

    /// Copies a leaf's matches and decides where to go next. `start` is where a descent came in.
    fn read_leaf(&mut self, block: BlockNumber, start: Option<u16>, pin: S::Pin) -> Result<bool> {
        let (matcher, source, batch) = (&mut self.matcher, &self.source, &mut self.batch);
        let keep_tuples = self.options.keep_tuples;
        let behind = self.behind;
        let (opaque, after) = source.with_page(&pin, |p| {
            let page = page::open(&matcher.desc.name, block, p)?;
            page::check_level(&matcher.desc.name, block, page.opaque, 0)?;
            let after = leaf::read(matcher, batch, block, page, &leaf::Visit { start, behind, keep_tuples })?;
            Ok::<_, Error>((page.opaque, after))
        })?;
        self.counters.leaf_pages += 1;
        let first = std::mem::replace(&mut self.first_leaf, false);
        let moved = self.matcher.moves() != self.moves_at_descent;
        // One more leaf is tried before a descent, unless the scan has only just come down: the array's next value is
        // often near, and a leaf costs less than a descent. Without a move a descent would come to the same leaf again.
        let descend = match after {
            After::End => {
                self.step = Step::Done;
                return Ok(self.hand_out(pin));
            }
            After::Far => moved && first,
            After::StillFar => moved,
            After::Near | After::NearOrFar => false,
        };
        if descend {
            self.descend();
            return Ok(self.hand_out(pin));
        }
        self.behind = after != After::Near;
        match (self.options.direction, opaque.next) {
            (Direction::Forward, Some(next)) => {
                self.walk(next)?;
                self.step = Step::Right { block: next, left: Some(block), retried: false };
            }
            (Direction::Forward, None) => self.step = Step::Done,
            (Direction::Backward, _) => self.step_from(block, opaque.prev),
        }
        Ok(self.hand_out(pin))
    }

    fn hand_out(&mut self, pin: S::Pin) -> bool {
        let any = !self.batch.tids.is_empty();
        if any && self.options.keep_pin {
            self.pin = Some(pin);
        }
        any
    }
}

impl<S: PageSource> BtreeScan<S> {
    /// An error unless this scan copies tuples; for callers that would otherwise read an empty copy.
    pub fn require_tuples(&self) -> SqlResult<()> {
        if self.options.keep_tuples {
            Ok(())
        } else {
            Err(SqlError::internal("index tuples wanted from a scan that does not keep them"))
        }
    }
}

/// A wait for the next batch, perhaps given up.
struct WantsNext<'a, S: PageSource> {
    scan: &'a mut BtreeScan<S>,
}

impl<S: PageSource> Drop for WantsNext<'_, S> {
    fn drop(&mut self) {
        self.scan.source.forget_read();
    }
}
