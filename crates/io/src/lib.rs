//! Files and segments of a data directory, and the methods by which their blocks are read.
//!
//! A tour: [`DataDirectory`] is the directory, opened without writing to it; [`RelationFiles`] names one relation's
//! files and knows their lengths; a [`ReadRequest`] is a run of blocks on its way into frames that the caller owns; an
//! [`IoMethod`] carries requests out ([`SyncMethod`] on the calling thread, [`WorkerMethod`] on a few threads of its
//! own) and ends each with exactly one call of its [`ReadCompletion`].
//!
//! This crate does not know what a page means, and it knows no executor: a completion is where a waker is woken.
//!
//! ```no_run
//! use stegodon_format::ids::{BlockNumber, DEFAULT_TABLESPACE, Fork, Oid, RelFileLocator, RelFileNumber};
//! use stegodon_format::page::Page;
//! use stegodon_io::DataDirectory;
//!
//! let directory = DataDirectory::open("/var/lib/postgresql/18/main")?;
//! let pg_class = RelFileLocator { tablespace: DEFAULT_TABLESPACE, database: Oid(5), number: RelFileNumber(1259) };
//! let files = directory.relation(pg_class);
//! let mut page = Page::zeroed();
//! for block in 0..files.nblocks(Fork::Main)? {
//!     files.read_block(Fork::Main, BlockNumber(block), &mut page)?;
//! }
//! # Ok::<(), stegodon_io::Error>(())
//! ```

pub mod directory;
pub mod error;
#[cfg(any(test, feature = "fault"))]
pub mod fault;
mod file_cache;
pub mod method;
pub mod relation;
pub mod request;
pub mod worker;

pub use directory::{DataDirectory, OpenOptions};
pub use error::{Error, Result};
pub use method::{IoMethod, SyncMethod};
pub use relation::RelationFiles;
pub use request::{FramePtr, Outcome, RUN_BLOCKS_MAX, ReadCompletion, ReadRequest};
pub use worker::WorkerMethod;
