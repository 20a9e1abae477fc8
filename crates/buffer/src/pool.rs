//! The pool: finding a page, or a frame for it.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use stegodon_format::checksum;
use stegodon_format::ids::{BlockNumber, Fork};
use stegodon_format::page::{BLCKSZ, PageRef};
use stegodon_io::{FramePtr, IoMethod, Outcome, ReadCompletion, ReadRequest, RelationFiles};

use crate::counters::{IoCounters, PoolCounters, PoolStats, add};
use crate::damage::{DamagePolicy, PageWarning, Repair};
use crate::error::{Error, Result};
use crate::frame::{Frame, Sweep, TAGGED, VALID, pins};
use crate::future::{ReadFuture, count_read};
use crate::memory::FrameMemory;
use crate::page::PinnedPage;
use crate::table::{BufferTable, PageTag};
use crate::waiters::Waiters;

/// The most frames a pool may have: 8 TiB.
pub const FRAMES_MAX: usize = 1 << 30;

/// Frames beyond the pool's size, 8 MiB, used only when every other frame is held by those who wait or rest (README, "Small
/// pools"). Their memory is not touched before.
const RESERVE_FRAMES: usize = 1024;

/// How a pool is made.
#[derive(Clone, Copy, Debug)]
pub struct PoolOptions {
    /// The number of 8 KiB frames (`shared_buffers`), from 1 to [`FRAMES_MAX`].
    pub frames: usize,
    /// Whether pages carry checksums (`pg_control`'s `data_checksum_version` is not 0).
    pub verify_checksums: bool,
}

/// A fixed number of frames for the pages of one data directory.
pub struct BufferPool {
    /// The pool's frames, and behind them the reserve.
    frames: Box<[Frame]>,
    /// How many of the frames are not the reserve.
    size: usize,
    memory: FrameMemory,
    table: BufferTable,
    /// The clock hand; taken modulo the number of frames.
    hand: AtomicUsize,
    method: Arc<dyn IoMethod>,
    verify_checksums: bool,
    counters: PoolCounters,
    /// Read streams alive: each gets its share of the frames.
    pub(crate) streams: AtomicUsize,
    /// How many pages streams may keep pinned for later, all together: at most half of the frames.
    granted: AtomicUsize,
    /// Who waits for any frame at all.
    pub(crate) waiters: Waiters,
}

impl std::fmt::Debug for BufferPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BufferPool").field("frames", &self.size).field("method", &self.method).finish_non_exhaustive()
    }
}

/// How far to go for a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Not before those who wait already.
    Polite,
    /// One of those who wait.
    Waiter,
    /// One of those who have waited in vain, or who hold a page and must not wait.
    Reserve,
}

/// How to read.
#[derive(Clone, Copy)]
pub(crate) struct How<'a> {
    /// Whom the read is for.
    pub(crate) counters: Option<&'a Arc<IoCounters>>,
    /// Whether it is counted for them.
    pub(crate) counted: bool,
    pub(crate) policy: DamagePolicy,
    /// On the calling thread, whatever the method is.
    pub(crate) synchronous: bool,
    pub(crate) claim: Claim,
}

impl<'a> How<'a> {
    pub(crate) fn new(counters: Option<&'a Arc<IoCounters>>) -> Self {
        let policy = counters.map(|counters| counters.policy()).unwrap_or_default();
        Self { counters, counted: true, policy, synchronous: false, claim: Claim::Polite }
    }

    /// The counters, if this read is counted.
    fn count(&self) -> Option<&'a IoCounters> {
        self.counters.filter(|_| self.counted).map(Arc::as_ref)
    }
}

/// How a run of blocks was started.
pub(crate) enum Started {
    /// So many pins were handed over; the last word says whether the pages must be waited for.
    Pinned { blocks: u32, needs_wait: bool },
    /// No frame could be had.
    NoFrame,
}

impl BufferPool {
    /// A pool of `frames` frames that does not verify checksums; see [`BufferPool::with_options`].
    pub fn new(frames: usize, method: Arc<dyn IoMethod>) -> Result<Arc<Self>> {
        Self::with_options(PoolOptions { frames, verify_checksums: false }, method)
    }

    /// A pool whose misses are read by `method`.
    pub fn with_options(options: PoolOptions, method: Arc<dyn IoMethod>) -> Result<Arc<Self>> {
        let PoolOptions { frames, verify_checksums } = options;
        if !(1..=FRAMES_MAX).contains(&frames) {
            return Err(Error::Memory { bytes: frames.saturating_mul(BLCKSZ) });
        }
        Ok(Arc::new(Self {
            frames: std::iter::repeat_with(Frame::new).take(frames + RESERVE_FRAMES).collect(),
            size: frames,
            memory: FrameMemory::new(frames, RESERVE_FRAMES)?,
            table: BufferTable::new(frames),
            hand: AtomicUsize::new(0),
            method,
            verify_checksums,
            counters: PoolCounters::default(),
            streams: AtomicUsize::new(0),
            granted: AtomicUsize::new(0),
            waiters: Waiters::new(),
        }))
    }

    /// The number of frames, without the reserve.
    pub fn frames(&self) -> usize {
        self.size
    }

    /// How misses are read.
    pub fn method(&self) -> &Arc<dyn IoMethod> {
        &self.method
    }

    /// Counters since the pool was made.
    pub fn stats(&self) -> PoolStats {
        self.counters.snapshot()
    }

    /// The sum of all pins, those of reads in flight included. 0 when nobody holds or awaits a page.
    pub fn pinned_count(&self) -> u64 {
        self.frames.iter().map(|frame| pins(frame.state())).sum()
    }

    /// How many readers wait for a frame now.
    pub fn waiting_count(&self) -> usize {
        self.waiters.len()
    }

    /// Wants a page. On a hit the future is ready at once, without allocation and as a rule without a lock.
    pub fn read(self: &Arc<Self>, relation: &RelationFiles, fork: Fork, block: BlockNumber) -> ReadFuture {
        self.begin(relation, fork, block, How::new(None))
    }

    /// Like [`BufferPool::read`], counted for a query and with its policy for damaged pages.
    pub fn read_counted(
        self: &Arc<Self>,
        relation: &RelationFiles,
        fork: Fork,
        block: BlockNumber,
        counters: &Arc<IoCounters>,
    ) -> ReadFuture {
        self.begin(relation, fork, block, How::new(Some(counters)))
    }

    /// Like [`BufferPool::read_counted`], for a caller that keeps another page pinned meanwhile: where every frame is pinned it
    /// does not wait but uses the reserve, so that holders do not wait for each other.
    pub fn read_nested(
        self: &Arc<Self>,
        relation: &RelationFiles,
        fork: Fork,
        block: BlockNumber,
        counters: &Arc<IoCounters>,
    ) -> ReadFuture {
        self.begin(relation, fork, block, How { claim: Claim::Reserve, ..How::new(Some(counters)) })
    }

    /// A page of a map, `VisibilityMap` or `FreeSpaceMap`: a hint that can do without, so a damaged page of it is read as zeros,
    /// with a warning, whatever the settings. (A read that fails is an error as ever.) `counted` says whether to count. Maps
    /// are asked about pages that are held: as [`BufferPool::read_nested`].
    pub fn read_map(
        self: &Arc<Self>,
        relation: &RelationFiles,
        fork: Fork,
        block: BlockNumber,
        counters: &Arc<IoCounters>,
        counted: bool,
    ) -> ReadFuture {
        let how = How::new(Some(counters));
        let policy = DamagePolicy { zero_damaged_pages: true, ..how.policy };
        self.begin(relation, fork, block, How { counted, policy, claim: Claim::Reserve, ..how })
    }

    /// The page if it is in the pool and valid; reads nothing and counts nothing.
    pub fn probe(self: &Arc<Self>, relation: &RelationFiles, fork: Fork, block: BlockNumber) -> Option<PinnedPage> {
        let (page, valid) = self.lookup(&PageTag { locator: relation.locator(), fork, block })?;
        valid.then_some(page)
    }

    pub(crate) fn begin(
        self: &Arc<Self>,
        relation: &RelationFiles,
        fork: Fork,
        block: BlockNumber,
        how: How<'_>,
    ) -> ReadFuture {
        let tag = PageTag { locator: relation.locator(), fork, block };
        // The hit path proper, apart from `start_run`, which prepares for more.
        if let Some((page, true)) = self.lookup(&tag) {
            self.count_hit(how.count());
            return ReadFuture::ready(Ok(page));
        }
        let mut pinned = None;
        let keep = |page| pinned = Some(page);
        match self.start_run(relation, fork, block, 1, how, keep) {
            Started::NoFrame => ReadFuture::starved(self, relation, fork, block, how),
            Started::Pinned { .. } => match pinned {
                // A synchronous method has completed by now; a failure is found by the first poll.
                Some(page) if page.header().state() & VALID != 0 => ReadFuture::ready(Ok(page)),
                Some(page) => ReadFuture::in_flight(page, relation, how),
                None => ReadFuture::ready(Err(Error::NoUnpinnedBuffers)),
            },
        }
    }

    /// Pins the page if the table has it; says whether it is valid (else it is in flight, or has just failed).
    fn lookup(self: &Arc<Self>, tag: &PageTag) -> Option<(PinnedPage, bool)> {
        if let Some(page) = self.pin_in(tag, self.table.guess(tag)) {
            return Some((page, true));
        }
        let partition = self.table.read(tag);
        let frame = *partition.map.get(tag)?;
        let state = self.frame(frame).pin_used();
        drop(partition);
        debug_assert_eq!(self.frame(frame).tag(), *tag, "the table's frame holds the page");
        self.table.remember(tag, frame);
        Some((PinnedPage { pool: Arc::clone(self), frame }, state & VALID != 0))
    }

    /// Pins the page if it is valid and in just this frame: pages that were read one after the other often lie in frames one
    /// after the other, and to try costs less than to ask the table.
    pub(crate) fn pin_in(self: &Arc<Self>, tag: &PageTag, frame: u32) -> Option<PinnedPage> {
        let header = self.frames.get(frame as usize)?;
        // Unpinned, the name may change while it is compared: this look only spares a pin that would be in vain.
        if header.tag() != *tag || !header.pin_valid() {
            return None;
        }
        let page = PinnedPage { pool: Arc::clone(self), frame };
        // Pinned, the frame keeps its page: now its name can be compared.
        (header.tag() == *tag).then_some(page)
    }

    /// Pins pages from `first` on, at most `blocks` of them: either one that the pool has, or as many as it lacks, up to
    /// the next that it has, for which one read is submitted. Each pin goes to `keep`, in order.
    pub(crate) fn start_run(
        self: &Arc<Self>,
        relation: &RelationFiles,
        fork: Fork,
        first: BlockNumber,
        blocks: u32,
        how: How<'_>,
        mut keep: impl FnMut(PinnedPage),
    ) -> Started {
        let mut tag = PageTag { locator: relation.locator(), fork, block: first };
        if let Some((page, valid)) = self.lookup(&tag) {
            if valid {
                self.count_hit(how.count());
            }
            keep(page);
            return Started::Pinned { blocks: 1, needs_wait: !valid };
        }
        let blocks = blocks.min(relation.run_blocks_max(first)).max(1);
        let mut frames: Vec<u32> = Vec::with_capacity(blocks as usize);
        for at in 0..blocks {
            tag.block = BlockNumber(first.0 + at);
            // Except for the first, which was just looked up.
            if at > 0 && self.table.read(&tag).map.contains_key(&tag) {
                break;
            }
            let Some(frame) = self.claim(if at == 0 { how.claim } else { Claim::Polite }) else { break };
            let mut partition = self.table.write(&tag);
            if let Some(&found) = partition.map.get(&tag) {
                // Someone else was faster. Ours goes back; theirs is a hit if it is the first.
                let state = if at == 0 { self.frame(found).pin_used() } else { 0 };
                drop(partition);
                self.unpin(frame);
                if at > 0 {
                    break;
                }
                let valid = state & VALID != 0;
                if valid {
                    self.count_hit(how.count());
                }
                keep(PinnedPage { pool: Arc::clone(self), frame: found });
                return Started::Pinned { blocks: 1, needs_wait: !valid };
            }
            self.frame(frame).start(tag);
            partition.map.insert(tag, frame);
            drop(partition);
            frames.push(frame);
        }
        if frames.is_empty() {
            return Started::NoFrame;
        }
        let count = frames.len();
        for &frame in &frames {
            keep(PinnedPage { pool: Arc::clone(self), frame });
        }
        self.submit(relation, fork, first, frames, how);
        Started::Pinned { blocks: count as u32, needs_wait: true }
    }

    fn submit(
        self: &Arc<Self>,
        relation: &RelationFiles,
        fork: Fork,
        first: BlockNumber,
        frames: Vec<u32>,
        how: How<'_>,
    ) {
        let count = frames.len();
        add(&self.counters.reads, 1);
        add(&self.counters.read_bytes, (count * BLCKSZ) as u64);
        self.waiters.read_started();
        let pointers = frames.iter().map(|&frame| FramePtr::new(self.frame_ptr(frame))).collect();
        let How { policy, synchronous, .. } = how;
        let warned = how.counters.filter(|_| policy.is_lenient()).map(Arc::clone);
        let arrival =
            Arrival { pool: Arc::clone(self), relation: relation.clone(), fork, first, frames, policy, warned };
        // SAFETY: the frames are distinct, and each is IN_FLIGHT with a pin that belongs to the read: until `Arrival` says
        // otherwise nobody reads, writes or reuses them, and `Arrival` keeps the pool, hence the memory, alive.
        let request = unsafe { ReadRequest::new(relation.clone(), fork, first, pointers, Box::new(arrival)) };
        let since = (how.count().is_some() && (synchronous || self.method.is_synchronous())).then(Instant::now);
        if synchronous {
            request.run();
        } else {
            self.method.submit(request);
            self.method.flush();
        }
        count_read(how.count(), count, since);
    }

    #[allow(clippy::indexing_slicing, reason = "frame numbers come from this pool")]
    pub(crate) fn frame(&self, frame: u32) -> &Frame {
        &self.frames[frame as usize]
    }

    pub(crate) fn frame_ptr(&self, frame: u32) -> NonNull<u8> {
        self.memory.frame(frame)
    }

    pub(crate) fn prefetch(&self, frame: u32, lines: std::ops::Range<usize>) {
        self.memory.prefetch(frame, lines);
    }

    pub(crate) fn unpin(&self, frame: u32) {
        if self.frame(frame).unpin() {
            self.waiters.frame_is_free();
        }
    }

    pub(crate) fn counters(&self) -> &PoolCounters {
        &self.counters
    }

    pub(crate) fn count_hit(&self, counters: Option<&IoCounters>) {
        self.count_hits(counters, 1);
    }

    pub(crate) fn count_hits(&self, counters: Option<&IoCounters>, hits: u64) {
        add(&self.counters.hits, hits);
        if let Some(counters) = counters {
            add(&counters.hits, hits);
        }
    }

    pub(crate) fn count_wait(&self, counters: Option<&IoCounters>) {
        add(&self.counters.waits, 1);
        if let Some(counters) = counters {
            add(&counters.waits, 1);
        }
    }

    /// A frame without a page, pinned once for the caller; `None` if none can be had now.
    fn claim(&self, claim: Claim) -> Option<u32> {
        match claim {
            Claim::Polite if self.waiters.starving() => None,
            Claim::Polite | Claim::Waiter => self.claim_by_hand(),
            Claim::Reserve => self.claim_by_hand().or_else(|| self.claim_reserve()),
        }
    }

    /// The clock hand. `None` if it has gone round three times and every frame was pinned. (Once could mislead: others' hands
    /// pin the frames that they look at for a moment.)
    fn claim_by_hand(&self) -> Option<u32> {
        let mut busy = 0usize;
        while busy <= 3 * self.size {
            let number = (self.hand.fetch_add(1, Ordering::Relaxed) % self.size) as u32;
            match self.frame(number).sweep() {
                Sweep::Busy => busy += 1,
                Sweep::Lost => {}
                Sweep::Aged => busy = 0,
                Sweep::Claimed(state) if self.empty(number, state) => return Some(number),
                Sweep::Claimed(_) => busy += 1,
            }
        }
        None
    }

    /// The first of the reserve that is not pinned: so what is touched of it stays little.
    fn claim_reserve(&self) -> Option<u32> {
        (self.size..self.frames.len()).map(|number| number as u32).find(|&number| {
            loop {
                match self.frame(number).sweep() {
                    Sweep::Busy => return false,
                    Sweep::Lost | Sweep::Aged => {}
                    Sweep::Claimed(state) => {
                        let is_empty = self.empty(number, state);
                        if is_empty {
                            add(&self.counters.reserve_uses, 1);
                        }
                        return is_empty;
                    }
                }
            }
        })
    }

    /// Throws the page out of a frame that was just claimed, in this state; gives the claim up if someone wants the page.
    fn empty(&self, number: u32, state: u64) -> bool {
        if state & TAGGED == 0 {
            return true;
        }
        let tag = self.frame(number).tag();
        let mut partition = self.table.write(&tag);
        if self.frame(number).untag() {
            let removed = partition.map.remove(&tag);
            debug_assert_eq!(removed, Some(number), "a tagged frame is in the table");
            add(&self.counters.evictions, 1);
            return true;
        }
        drop(partition);
        self.unpin(number);
        false
    }

    /// How many pages a stream should be granted now: a fair share, with room for one more stream.
    pub(crate) fn fair_share(&self, streams: usize) -> usize {
        (self.grants_max() / (streams + 1)).max(1)
    }

    /// The other half is for pages that are held one at a time.
    fn grants_max(&self) -> usize {
        self.size / 2
    }

    /// Grants a stream up to `wanted` more pages to keep for later.
    pub(crate) fn grant(&self, wanted: usize) -> usize {
        let room = |granted: usize| self.grants_max().saturating_sub(granted).min(wanted);
        let more = |granted| Some(granted + room(granted)).filter(|_| room(granted) > 0);
        self.granted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).map_or(0, room)
    }

    /// A stream gives back what it was granted.
    pub(crate) fn ungrant(&self, pages: usize) {
        let before = self.granted.fetch_sub(pages, Ordering::Relaxed);
        debug_assert!(before >= pages, "only what was granted is given back");
    }

    /// What PostgreSQL demands of a page that was just read, and what the policy makes of it if it falls short. The frame is in
    /// flight, so its bytes are the caller's.
    fn verify(
        &self,
        frame: u32,
        policy: DamagePolicy,
        block: BlockNumber,
    ) -> std::result::Result<Option<Repair>, String> {
        // SAFETY: the read of this frame has ended, nobody else may touch it until it has arrived, and the memory is
        // initialised and lives as long as the pool.
        let bytes: &mut [u8; BLCKSZ] = unsafe { self.frame_ptr(frame).cast().as_mut() };
        let page = PageRef::new(bytes);
        let checksum = if self.verify_checksums && !checksum::is_correct(page, block) {
            let (stored, computed) = (page.checksum(), checksum::page_checksum(page, block));
            Some(format!("page verification failed, calculated checksum {computed} but expected {stored}"))
        } else {
            None
        };
        let why = match (checksum, page.verify()) {
            (None, Ok(())) => return Ok(None),
            (Some(_), Ok(())) if policy.ignore_checksum_failure => return Ok(Some(Repair::ChecksumIgnored)),
            (Some(why), _) => why,
            (None, Err(error)) => error.to_string(),
        };
        if policy.zero_damaged_pages {
            bytes.fill(0);
            return Ok(Some(Repair::Zeroed));
        }
        Err(why)
    }
}

/// The end of a read: judges each page and hands it to whoever waits.
struct Arrival {
    pool: Arc<BufferPool>,
    relation: RelationFiles,
    fork: Fork,
    first: BlockNumber,
    frames: Vec<u32>,
    policy: DamagePolicy,
    /// Who hears of what the policy did; `None` where it does nothing.
    warned: Option<Arc<IoCounters>>,
}

impl ReadCompletion for Arrival {
    fn read_done(self: Box<Self>, outcome: Outcome) {
        let Self { pool, relation, fork, first, frames, policy, warned } = &*self;
        for (at, &number) in frames.iter().enumerate() {
            let block = BlockNumber(first.0 + at as u32);
            let result = match &outcome.error {
                Some(error) if at >= outcome.blocks => Err(Error::Io(error.clone())),
                _ => pool.verify(number, *policy, block).map_err(|why| {
                    let path = relation.path(*fork);
                    Error::InvalidPage { block: block.0, path, why }
                }),
            };
            let frame = pool.frame(number);
            let last = match result {
                Ok(repair) => {
                    if let (Some(repair), Some(warned)) = (repair, warned) {
                        warned.warn(PageWarning { block: block.0, path: relation.path(*fork), repair });
                    }
                    frame.arrived()
                }
                Err(error) => {
                    let tag = PageTag { locator: relation.locator(), fork: *fork, block };
                    let mut partition = pool.table.write(&tag);
                    let removed = partition.map.remove(&tag);
                    debug_assert_eq!(removed, Some(number), "a page in flight is in the table");
                    let last = frame.failed(error);
                    drop(partition);
                    frame.wake();
                    last
                }
            };
            if last {
                pool.waiters.frame_is_free();
            }
        }
        pool.waiters.read_ended();
    }
}
