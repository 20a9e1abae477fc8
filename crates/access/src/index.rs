//! An index's pages, from the buffer pool.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use stegodon_buffer::{BufferPool, IoCounters, PinnedPage, ReadFuture};
use stegodon_format::ids::{BlockNumber, Fork};
use stegodon_format::page::PageRef;
use stegodon_io::RelationFiles;
use stegodon_nbtree::PageSource;
use stegodon_types::SqlResult;

/// The pages of one index.
pub struct IndexPages {
    pool: Arc<BufferPool>,
    files: RelationFiles,
    counters: Arc<IoCounters>,
    pending: Option<(BlockNumber, ReadFuture)>,
}

impl std::fmt::Debug for IndexPages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IndexPages").field("locator", &self.files.locator()).finish_non_exhaustive()
    }
}

impl IndexPages {
    /// The pages of an index, counted for a query.
    pub fn new(pool: &Arc<BufferPool>, files: RelationFiles, counters: Arc<IoCounters>) -> Self {
        Self { pool: Arc::clone(pool), files, counters, pending: None }
    }
}

impl PageSource for IndexPages {
    type Pin = PinnedPage;

    fn poll_read(&mut self, block: BlockNumber, cx: &mut Context<'_>) -> Poll<SqlResult<PinnedPage>> {
        let mut read = match self.pending.take() {
            Some((pending, read)) if pending == block => read,
            _ => self.pool.read_counted(&self.files, Fork::Main, block, &self.counters),
        };
        match Pin::new(&mut read).poll(cx) {
            Poll::Ready(page) => Poll::Ready(page.map_err(Into::into)),
            Poll::Pending => {
                self.pending = Some((block, read));
                Poll::Pending
            }
        }
    }

    fn with_page<R>(&self, pin: &PinnedPage, look: impl FnOnce(PageRef<'_>) -> R) -> R {
        look(pin.latch_shared().view())
    }

    fn block_count(&mut self) -> SqlResult<u32> {
        Ok(self.files.nblocks(Fork::Main)?)
    }
}
