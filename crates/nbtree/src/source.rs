//! Where a scan gets its pages from.

use std::task::{Context, Poll};

use stegodon_format::ids::BlockNumber;
use stegodon_format::page::PageRef;
use stegodon_types::SqlResult;

/// The pages of one index: the buffer pool's, or a test's.
pub trait PageSource {
    /// A page held in memory. It can be kept without being latched.
    type Pin;

    /// Reads a block, or makes it known that `cx` wants to be woken when it is there. Called again with the same block
    /// until it is ready, or with another one, which drops interest in the first.
    fn poll_read(&mut self, block: BlockNumber, cx: &mut Context<'_>) -> Poll<SqlResult<Self::Pin>>;

    /// Looks at a page under its latch.
    fn with_page<R>(&self, pin: &Self::Pin, look: impl FnOnce(PageRef<'_>) -> R) -> R;

    /// How many blocks the index has; asked only when links look endless.
    fn block_count(&mut self) -> SqlResult<u32>;
}
