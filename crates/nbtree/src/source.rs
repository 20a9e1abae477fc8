//! Where a scan gets its pages from.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use stegodon_buffer::{BufferPool, IoCounters, PinnedPage, ReadFuture};
use stegodon_format::ids::{BlockNumber, Fork};
use stegodon_format::page::PageRef;
use stegodon_io::RelationFiles;
use stegodon_types::SqlResult;

/// The pages of one index: the buffer pool's, or a test's.
pub trait PageSource {
    /// A page held in memory. It can be kept without being latched.
    type Pin;

    /// Reads a block, or makes it known that `cx` wants to be woken when it is there. Called again with the same block
    /// until it is ready, or with another one, which drops interest in the first.
    fn poll_read(&mut self, block: BlockNumber, cx: &mut Context<'_>) -> Poll<SqlResult<Self::Pin>>;

    /// Drops interest in the block that was asked for last and is not ready.
    fn forget_read(&mut self) {}

    /// Looks at a page under its latch.
    fn with_page<R>(&self, pin: &Self::Pin, look: impl FnOnce(PageRef<'_>) -> R) -> R;

    /// How many blocks the index has; asked only when links look endless.
    fn block_count(&mut self) -> SqlResult<u32>;
}

/// The pages of an index in the buffer pool.
pub struct PoolSource {
    pool: Arc<BufferPool>,
    files: RelationFiles,
    counters: Option<Arc<IoCounters>>,
    pending: Option<(BlockNumber, ReadFuture)>,
}

impl PoolSource {
    /// The pages of the index whose files these are.
    pub fn new(pool: &Arc<BufferPool>, files: &RelationFiles) -> Self {
        Self { pool: Arc::clone(pool), files: files.clone(), counters: None, pending: None }
    }

    /// Counts for a query.
    pub fn counted(mut self, counters: Arc<IoCounters>) -> Self {
        self.counters = Some(counters);
        self
    }
}

impl std::fmt::Debug for PoolSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PoolSource({:?})", self.files.locator())
    }
}

impl PageSource for PoolSource {
    type Pin = PinnedPage;

    fn poll_read(&mut self, block: BlockNumber, cx: &mut Context<'_>) -> Poll<SqlResult<PinnedPage>> {
        let mut read = match self.pending.take() {
            Some((pending, read)) if pending == block => read,
            _ => match &self.counters {
                Some(counters) => self.pool.read_counted(&self.files, Fork::Main, block, counters),
                None => self.pool.read(&self.files, Fork::Main, block),
            },
        };
        match Pin::new(&mut read).poll(cx) {
            Poll::Ready(result) => Poll::Ready(result.map_err(Into::into)),
            Poll::Pending => {
                self.pending = Some((block, read));
                Poll::Pending
            }
        }
    }

    fn forget_read(&mut self) {
        self.pending = None;
    }

    fn with_page<R>(&self, pin: &PinnedPage, look: impl FnOnce(PageRef<'_>) -> R) -> R {
        look(pin.latch_shared().view())
    }

    fn block_count(&mut self) -> SqlResult<u32> {
        self.files.nblocks(Fork::Main).map_err(Into::into)
    }
}

/// A scan may move between threads while it waits.
const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<crate::BtreeScan<PoolSource>>();
};
