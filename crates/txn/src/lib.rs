//! Transactions: which of them ended how, and what a query sees.
//!
//! A tour: [`Transactions`] is all that a data directory records — the [`TransactionLog`] (`pg_xact`) knows who
//! committed, [`Multixacts`] who is behind a tuple locked or updated by several, [`PreparedTransactions`] who is neither
//! committed nor aborted. [`Transactions::snapshot`] draws the line between what is over and what is not, and a
//! [`VisibilityChecker`] tells, tuple by tuple, what lies on this side of it.
//!
//! So far the directory was shut down cleanly and nobody writes: whatever is not prepared is over. No hint bit is set, no
//! file touched.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use stegodon_format::{control::ControlFile, heap_tuple::HeapTupleRef, page::Page};
//! use stegodon_io::DataDirectory;
//! use stegodon_txn::{Transactions, VisibilityChecker};
//!
//! let directory = DataDirectory::open("/var/lib/postgresql/18/main")?;
//! let control = ControlFile::parse(&directory.read_file("global/pg_control")?)?;
//! let transactions = Arc::new(Transactions::open(&directory, &control)?);
//! let mut checker = VisibilityChecker::new(Arc::clone(&transactions), Arc::new(transactions.snapshot()));
//! let page = Page::zeroed();
//! for (offset, id) in page.view().item_ids().filter(|(_, id)| id.is_normal()) {
//!     let tuple = HeapTupleRef::parse(page.view().item_at(offset, id)?)?;
//!     println!("{offset}: {:?}", checker.check(tuple)?);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod error;
pub mod log;
pub mod multixact;
pub mod prepared;
mod slru;
pub mod snapshot;
pub mod transactions;
pub mod visibility;

pub use error::{Error, Result};
pub use log::TransactionLog;
pub use multixact::Multixacts;
pub use prepared::PreparedTransactions;
pub use snapshot::{Snapshot, XidSet};
pub use transactions::Transactions;
pub use visibility::{Visibility, VisibilityChecker, toast_chunk_is_visible};
