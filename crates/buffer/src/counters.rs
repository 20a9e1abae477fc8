//! What EXPLAIN (BUFFERS) and `pg_stat_io` report.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

macro_rules! counters {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: AtomicU64,)*
        }
    };
}

counters! {
    /// Counters of one query, or of whatever part of one is counted apart.
    IoCounters {
        /// Pages found in the pool ("shared hit").
        hits,
        /// Pages read from storage ("shared read").
        pages_read,
        /// Reads issued; each reads one page or a run of them.
        reads,
        /// Nanoseconds spent reading on the query's own thread, or waiting for others to.
        read_nanoseconds,
        /// How often a page that was wanted was not there yet and had to be waited for.
        waits,
    }
}

counters! {
    /// Counters of a pool since it was made.
    PoolCounters {
        /// Pages found in the pool.
        hits,
        /// Reads issued.
        reads,
        /// Bytes that those reads asked for.
        read_bytes,
        /// How often a page that was wanted was not there yet and had to be waited for.
        waits,
        /// Pages thrown out of their frame for others.
        evictions,
        /// How often a page that was wanted had to wait for a frame.
        frame_waits,
        /// How often a frame of the reserve was used.
        reserve_uses,
    }
}

/// [`PoolCounters`] at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStats {
    /// Pages found in the pool.
    pub hits: u64,
    /// Reads issued.
    pub reads: u64,
    /// Bytes that those reads asked for.
    pub read_bytes: u64,
    /// How often a page that was wanted was not there yet and had to be waited for.
    pub waits: u64,
    /// Pages thrown out of their frame for others.
    pub evictions: u64,
    /// How often a page that was wanted had to wait for a frame.
    pub frame_waits: u64,
    /// How often a frame of the reserve was used.
    pub reserve_uses: u64,
}

impl PoolCounters {
    pub(crate) fn snapshot(&self) -> PoolStats {
        PoolStats {
            hits: self.hits.load(Relaxed),
            reads: self.reads.load(Relaxed),
            read_bytes: self.read_bytes.load(Relaxed),
            waits: self.waits.load(Relaxed),
            evictions: self.evictions.load(Relaxed),
            frame_waits: self.frame_waits.load(Relaxed),
            reserve_uses: self.reserve_uses.load(Relaxed),
        }
    }
}

impl IoCounters {
    pub(crate) fn add_time(&self, time: Duration) {
        add(&self.read_nanoseconds, u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }
}

pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Relaxed);
}
