//! PostgreSQL's bytes: everything that lies in a data directory, decoded without I/O.
//!
//! A tour, in the order in which a row is found: [`page`] is the 8 KiB block with its line pointers; [`heap_tuple`] the
//! tuple that one points to, with its transaction ids and flags; [`attr`] walks its values; [`varlena`] tells inline,
//! compressed and TOASTed values apart, and decompresses ([`pglz`], lz4); [`toast`] is how the rest of a long value is
//! cut; [`btree`] is the index that leads to a row. [`vm`] says which blocks need no look at transactions; [`slru`] is where transactions' fates and multixacts are
//! kept; [`twophase`] is a prepared transaction. A directory is opened through [`version`], [`control`], [`relmap`] and
//! [`paths`]; [`checksum`] tells a torn or misplaced page.
//!
//! Nothing here trusts a byte: every access is checked, what is wrong comes back as [`Error`], and no input makes it
//! panic. Nothing here allocates per tuple, does I/O, or knows what a relation is.
//!
//! ```
//! use stegodon_format::page::{Page, PageRef};
//!
//! let page = Page::zeroed(); // never written: valid, and without items
//! let page: PageRef<'_> = page.view();
//! page.verify()?;
//! assert!(page.is_new());
//! assert_eq!(page.item_ids().count(), 0);
//! # Ok::<(), stegodon_format::Error>(())
//! ```
#![forbid(unsafe_code)]

pub mod attr;
pub mod btree;
mod bytes;
pub mod checksum;
pub mod control;
pub mod error;
pub mod heap_tuple;
pub mod ids;
pub mod page;
pub mod paths;
pub mod pglz;
pub mod relmap;
pub mod slru;
#[cfg(test)]
mod testing;
pub mod toast;
pub mod twophase;
pub mod varlena;
pub mod version;
pub mod vm;

pub use error::{Error, Result};
