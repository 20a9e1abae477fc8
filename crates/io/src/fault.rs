//! Methods for tests: reads that fail on demand, and reads that stay in flight until told.

use std::sync::Arc;

use parking_lot::Mutex;
use stegodon_format::ids::{BlockNumber, Fork};

use crate::error::{Errno, Error};
use crate::method::IoMethod;
use crate::request::ReadRequest;

/// What a [`FaultMethod`] does to the request that contains a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The read fails with this error number.
    Errno(i32),
    /// The file seems to end before the block; blocks before it in the same request are read.
    EndsBefore,
    /// The block and those behind it in the same request fail with this error number; those before it are read.
    ErrnoFrom(i32),
    /// The method drops the request.
    Dropped,
}

/// Wraps another method and injures the requests that contain given blocks of the main fork. Each fault works once.
#[derive(Debug)]
pub struct FaultMethod {
    inner: Arc<dyn IoMethod>,
    faults: Mutex<Vec<(BlockNumber, Fault)>>,
}

impl FaultMethod {
    /// Injures nothing yet.
    pub fn new(inner: Arc<dyn IoMethod>) -> Self {
        Self { inner, faults: Mutex::default() }
    }

    /// Injures the next request that contains `block`.
    pub fn inject(&self, block: BlockNumber, fault: Fault) {
        self.faults.lock().push((block, fault));
    }
}

impl IoMethod for FaultMethod {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn submit(&self, request: ReadRequest) {
        let first = request.first().0;
        let range = first..first.saturating_add(request.blocks() as u32);
        let mut faults = self.faults.lock();
        let found = faults.iter().position(|(block, _)| request.fork() == Fork::Main && range.contains(&block.0));
        let fault = found.map(|at| faults.remove(at));
        drop(faults);
        match fault {
            None => self.inner.submit(request),
            Some((_, Fault::Dropped)) => drop(request),
            Some((_, Fault::Errno(errno))) => {
                let (path, last) = (request.relation().path(Fork::Main), range.end - 1);
                request.fail(Error::Read { path, first, last, errno: Errno(errno) });
            }
            Some((block, Fault::ErrnoFrom(errno))) => {
                let (path, last) = (request.relation().path(Fork::Main), range.end - 1);
                let error = Error::Read { path, first: block.0, last, errno: Errno(errno) };
                request.run_part((block.0 - first) as usize, error);
            }
            Some((block, Fault::EndsBefore)) => {
                let (path, last) = (request.relation().path(Fork::Main), range.end - 1);
                let wanted = (range.end - block.0) as usize * 8192;
                let error = Error::ShortRead { path, first: block.0, last, read: 0, wanted };
                request.run_part((block.0 - first) as usize, error);
            }
        }
    }

    fn flush(&self) {
        self.inner.flush();
    }

    fn is_synchronous(&self) -> bool {
        self.inner.is_synchronous()
    }
}

/// Keeps every request in flight until [`HeldMethod::release`].
#[derive(Debug, Default)]
pub struct HeldMethod {
    held: Mutex<Vec<ReadRequest>>,
}

impl HeldMethod {
    /// First block and length of each request in flight.
    pub fn in_flight(&self) -> Vec<(BlockNumber, usize)> {
        self.held.lock().iter().map(|request| (request.first(), request.blocks())).collect()
    }

    /// Carries out everything in flight, on the calling thread, last submitted first if `backwards`.
    pub fn release(&self, backwards: bool) {
        let mut requests = std::mem::take(&mut *self.held.lock());
        if backwards {
            requests.reverse();
        }
        requests.into_iter().for_each(ReadRequest::run);
    }
}

impl IoMethod for HeldMethod {
    fn name(&self) -> &'static str {
        "held"
    }

    fn submit(&self, request: ReadRequest) {
        self.held.lock().push(request);
    }
}
