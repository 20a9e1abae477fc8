//! PostgreSQL's bytes: everything that lies in a data directory, decoded without I/O.
//!
//! A tour, in the order in which a row is found: [`page`] is the 8 KiB block with its line pointers.
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

pub mod btree;
#[allow(dead_code)]
mod bytes;
pub mod error;
pub mod ids;
pub mod page;
#[cfg(test)]
#[allow(dead_code)]
mod testing;

pub use error::{Error, Result};
