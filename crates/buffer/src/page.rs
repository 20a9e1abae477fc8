//! Pins and latches: what a reader holds.

use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use parking_lot::{RwLockReadGuard, RwLockWriteGuard};
use stegodon_format::ids::{BlockNumber, Fork, RelFileLocator};
use stegodon_format::page::Page;

use crate::frame::{Frame, VALID};
use crate::order::Latched;
use crate::pool::BufferPool;

/// A pin: as long as it lives, the page stays in its frame. Cloning pins once more; dropping unpins. It may cross awaits
/// and threads; to look at the page, latch it.
pub struct PinnedPage {
    pub(crate) pool: Arc<BufferPool>,
    pub(crate) frame: u32,
}

impl std::fmt::Debug for PinnedPage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PinnedPage({:?} {:?} block {})", self.locator(), self.fork(), self.block())
    }
}

impl PinnedPage {
    pub(crate) fn header(&self) -> &Frame {
        self.pool.frame(self.frame)
    }

    /// The relation.
    pub fn locator(&self) -> RelFileLocator {
        self.header().tag().locator
    }

    /// The fork.
    pub fn fork(&self) -> Fork {
        self.header().tag().fork
    }

    /// The block.
    pub fn block(&self) -> BlockNumber {
        self.header().tag().block
    }

    /// The pool that the page is in.
    pub fn pool(&self) -> &Arc<BufferPool> {
        &self.pool
    }

    /// Waits for whoever changes the page, then lets it be read. The guard is not `Send`: it cannot cross an await.
    pub fn latch_shared(&self) -> PageGuard<'_> {
        let order = Latched::new(std::ptr::from_ref(self.header()) as usize);
        let latch = self.header().latch.read();
        PageGuard { page: self, _latch: latch, _order: order, _not_send: PhantomData }
    }

    /// Waits for every other latch holder and keeps new ones out. Nothing changes pages yet, so it gives no write access.
    pub fn latch_exclusive(&self) -> ExclusivePageGuard<'_> {
        let order = Latched::new(std::ptr::from_ref(self.header()) as usize);
        let latch = self.header().latch.write();
        ExclusivePageGuard { page: self, _latch: latch, _order: order, _not_send: PhantomData }
    }

    /// Asks the processor for the cache lines of the page that lie in `lines`, bytes from its start. Changes nothing but time.
    pub(crate) fn prefetch(&self, lines: std::ops::Range<usize>) {
        self.pool.prefetch(self.frame, lines);
    }

    /// The page's bytes. For guards only: the borrow must end before the latch does.
    fn bytes(&self) -> &Page {
        debug_assert!(self.header().state() & VALID != 0, "a pinned page that was handed out is valid");
        // SAFETY: the frame is 8192 bytes of initialised memory (a mapping starts as zeros), aligned to 4096, as `Page`
        // is. The pin keeps the page in it; VALID means that no read writes to it; and the caller's latch keeps writers out.
        unsafe { self.pool.frame_ptr(self.frame).cast::<Page>().as_ref() }
    }
}

impl Clone for PinnedPage {
    fn clone(&self) -> Self {
        self.header().pin_again();
        Self { pool: Arc::clone(&self.pool), frame: self.frame }
    }
}

impl Drop for PinnedPage {
    fn drop(&mut self) {
        self.pool.unpin(self.frame);
    }
}

/// A page latched for reading.
pub struct PageGuard<'a> {
    page: &'a PinnedPage,
    _latch: RwLockReadGuard<'a, ()>,
    _order: Latched,
    _not_send: PhantomData<*const ()>,
}

impl PageGuard<'_> {
    /// The block.
    pub fn block(&self) -> BlockNumber {
        self.page.block()
    }
}

impl Deref for PageGuard<'_> {
    type Target = Page;

    fn deref(&self) -> &Page {
        self.page.bytes()
    }
}

/// A page latched against everyone else.
pub struct ExclusivePageGuard<'a> {
    page: &'a PinnedPage,
    _latch: RwLockWriteGuard<'a, ()>,
    _order: Latched,
    _not_send: PhantomData<*const ()>,
}

impl Deref for ExclusivePageGuard<'_> {
    type Target = Page;

    fn deref(&self) -> &Page {
        self.page.bytes()
    }
}
