//! A run of blocks on its way from a file into frames.
//!
//! Ownership: from [`ReadRequest::new`] until its completion is called, the frames belong to the request, wherever it is:
//! in a queue, in a worker, in the kernel. Whoever made it must not touch them, and must keep them alive. The completion
//! is called exactly once; a request that is dropped completes with [`Error::Abandoned`].

use std::ptr::NonNull;

use stegodon_format::ids::{BlockNumber, Fork};
use stegodon_format::page::Page;

use crate::error::Error;
use crate::relation::RelationFiles;

/// The most blocks that one request may have (PostgreSQL's limit of `io_combine_limit`): 1 MiB.
pub const RUN_BLOCKS_MAX: usize = 128;

/// Where one block goes: 8192 writable bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FramePtr(NonNull<u8>);

// SAFETY: a frame pointer is an address only; who may use it, and when, is the contract of `ReadRequest::new`.
unsafe impl Send for FramePtr {}
// SAFETY: as above.
unsafe impl Sync for FramePtr {}

impl FramePtr {
    /// A frame at this address.
    pub const fn new(at: NonNull<u8>) -> Self {
        Self(at)
    }

    /// A page's own memory as a frame.
    pub fn of_page(page: &mut Page) -> Self {
        Self(NonNull::from(page.bytes_mut()).cast())
    }

    /// The address.
    pub const fn as_ptr(self) -> *mut u8 {
        self.0.as_ptr()
    }
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// So many frames, from the first, were filled.
    pub blocks: usize,
    /// Why the others were not; `None` exactly if all were.
    pub error: Option<Error>,
}

impl Outcome {
    pub(crate) fn failed(blocks: usize, error: Error) -> Self {
        Self { blocks, error: Some(error) }
    }
}

/// What happens when a request has ended; the place to wake whoever waits for it.
pub trait ReadCompletion: Send {
    /// Called exactly once, on any thread, perhaps before `submit` has returned. The frames are the maker's again.
    fn read_done(self: Box<Self>, outcome: Outcome);
}

impl<F: FnOnce(Outcome) + Send> ReadCompletion for F {
    fn read_done(self: Box<Self>, outcome: Outcome) {
        self(outcome);
    }
}

/// A run of blocks to be read.
pub struct ReadRequest {
    relation: RelationFiles,
    fork: Fork,
    first: BlockNumber,
    frames: Vec<FramePtr>,
    completion: Option<Box<dyn ReadCompletion>>,
}

impl std::fmt::Debug for ReadRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadRequest")
            .field("relation", &self.relation.locator())
            .field("fork", &self.fork)
            .field("first", &self.first)
            .field("blocks", &self.frames.len())
            .finish_non_exhaustive()
    }
}

impl ReadRequest {
    /// A request for the blocks from `first` on, one for each frame.
    ///
    /// # Safety
    /// Each frame must be distinct and writable for 8192 bytes, and until the completion is called nobody but the request may
    /// read or write it.
    pub unsafe fn new(
        relation: RelationFiles,
        fork: Fork,
        first: BlockNumber,
        frames: Vec<FramePtr>,
        completion: Box<dyn ReadCompletion>,
    ) -> Self {
        debug_assert!((1..=RUN_BLOCKS_MAX).contains(&frames.len()), "a request has 1 to {RUN_BLOCKS_MAX} blocks");
        Self { relation, fork, first, frames, completion: Some(completion) }
    }

    /// The relation read from.
    pub fn relation(&self) -> &RelationFiles {
        &self.relation
    }

    /// The fork read from.
    pub fn fork(&self) -> Fork {
        self.fork
    }

    /// The first block.
    pub fn first(&self) -> BlockNumber {
        self.first
    }

    /// How many blocks.
    pub fn blocks(&self) -> usize {
        self.frames.len()
    }

    /// Carries the request out on the calling thread and completes it.
    pub fn run(mut self) {
        // SAFETY: the maker promised the frames to the request until completion, which comes after this.
        let outcome = unsafe { self.relation.read_run(self.fork, self.first, &self.frames) };
        self.complete(outcome);
    }

    /// Ends the request without touching its frames: for methods that inject failures.
    #[cfg(any(test, feature = "fault"))]
    pub fn fail(mut self, error: Error) {
        self.complete(Outcome::failed(0, error));
    }

    /// Carries out only the first `blocks` of the request, then ends it with `error`.
    #[cfg(any(test, feature = "fault"))]
    pub fn run_part(mut self, blocks: usize, error: Error) {
        let part = self.frames.get(..blocks).unwrap_or(&self.frames);
        // SAFETY: as in `run`.
        let outcome = unsafe { self.relation.read_run(self.fork, self.first, part) };
        let error = outcome.error.unwrap_or(error);
        self.complete(Outcome::failed(outcome.blocks, error));
    }

    fn complete(&mut self, outcome: Outcome) {
        if let Some(completion) = self.completion.take() {
            completion.read_done(outcome);
        }
    }
}

impl Drop for ReadRequest {
    fn drop(&mut self) {
        if self.completion.is_some() {
            let error = Error::Abandoned { path: self.relation.path(self.fork), block: self.first.0 };
            self.complete(Outcome::failed(0, error));
        }
    }
}
