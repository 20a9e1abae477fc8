//! How requests are carried out.

use std::fmt::Debug;

use crate::request::ReadRequest;

/// A way to carry out reads. `io_uring` joins `sync` and `worker` later.
pub trait IoMethod: Send + Sync + Debug {
    /// Its name, as the setting `io_method` spells it.
    fn name(&self) -> &'static str;

    /// Takes a request over. It is carried out now or later; its completion is called exactly once. Never blocks on
    /// anything but storage, and only a method that says so in [`IoMethod::is_synchronous`] does that.
    fn submit(&self, request: ReadRequest);

    /// Ends a batch: a method may hold submitted requests back until this is called, and whoever submits must call it
    /// before waiting.
    fn flush(&self) {}

    /// Whether every request has completed when `submit` returns.
    fn is_synchronous(&self) -> bool {
        false
    }
}

/// Reads on the calling thread, with `preadv`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SyncMethod;

impl IoMethod for SyncMethod {
    fn name(&self) -> &'static str {
        "sync"
    }

    fn submit(&self, request: ReadRequest) {
        request.run();
    }

    fn is_synchronous(&self) -> bool {
        true
    }
}
