//! The buffer pool: pages in memory, pinned while in use, read once however many want them; and the read stream.
//!
//! A tour: [`BufferPool`] owns a fixed number of frames. [`BufferPool::read`] gives a [`ReadFuture`] of a
//! [`PinnedPage`], ready at once if the page is in the pool. A pin keeps the page in its frame; to look at its bytes,
//! latch it: [`PinnedPage::latch_shared`] gives a [`PageGuard`], which is a `Page` and cannot cross an await.
//! [`ReadStream`] turns an iterator of block numbers into pinned pages in order, combining neighbours and reading ahead
//! as its [`Controller`], a state machine without clock or I/O, says. [`IoCounters`] counts for one query.
//!
//! ```no_run
//! use std::sync::Arc;
//! use stegodon_buffer::{BufferPool, ReadStream, StreamOptions};
//! use stegodon_format::ids::{BlockNumber, DEFAULT_TABLESPACE, Fork, Oid, RelFileLocator, RelFileNumber};
//! use stegodon_io::{DataDirectory, SyncMethod};
//!
//! let directory = DataDirectory::open("/var/lib/postgresql/18/main")?;
//! let pg_class = RelFileLocator { tablespace: DEFAULT_TABLESPACE, database: Oid(5), number: RelFileNumber(1259) };
//! let files = directory.relation(pg_class);
//! let pool = BufferPool::new(1024, Arc::new(SyncMethod))?;
//!
//! let first = pool.read(&files, Fork::Main, BlockNumber(0)).wait()?; // or .await
//! println!("{} line pointers", first.latch_shared().view().max_offset());
//!
//! let mut blocks = 0..files.nblocks(Fork::Main)?;
//! let source = move || blocks.next().map(|block| (BlockNumber(block), ()));
//! let mut stream = ReadStream::new(&pool, &files, Fork::Main, source, StreamOptions::default());
//! while let Some((page, ())) = stream.next_blocking()? {
//!     println!("block {}", page.block());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod controller;
pub mod counters;
pub mod error;
mod frame;
pub mod future;
mod memory;
mod order;
pub mod page;
pub mod pool;
pub mod stream;
mod table;
mod waiters;

pub use controller::Controller;
pub use counters::{IoCounters, PoolCounters, PoolStats};
pub use error::{Error, Result};
pub use future::ReadFuture;
pub use page::{ExclusivePageGuard, PageGuard, PinnedPage};
pub use pool::{BufferPool, PoolOptions};
pub use stream::{BlockSource, ReadStream, StreamItem, StreamOptions};
