//! B-tree indexes: finding the rows that satisfy a set of scan keys, in index order.
//!
//! A tour: [`IndexDesc`] says what an index is; [`ScanKey`]s say what is sought. [`BtreeScan`] merges the keys into one
//! constraint per column, goes down from the root to the first leaf that can match, and hands out one leaf's matches at
//! a time. Its pages come from a [`PageSource`], and whenever one has to be waited for, the scan waits as a future does.
//!
//! ```
//! use std::sync::Arc;
//! use stegodon_format::ids::{Oid, Tid};
//! use stegodon_nbtree::{BtreeScan, IndexDesc, PageSource, ScanKey, ScanOptions, Strategy};
//! use stegodon_types::{Datum, SqlResult};
//!
//! /// The rows with a first column from `low` on, in index order.
//! async fn rows_from<S: PageSource>(desc: Arc<IndexDesc>, pages: S, low: i32) -> SqlResult<Vec<Tid>> {
//!     let int4 = Oid(23);
//!     let mut scan = BtreeScan::new(desc, pages, ScanOptions::default());
//!     scan.rescan(&[ScanKey::compare(0, Strategy::GreaterEqual, int4, Some(Datum::Int32(low)))])?;
//!     let mut found = Vec::new();
//!     while scan.next().await? {
//!         found.extend(scan.matches().iter().copied());
//!     }
//!     Ok(found)
//! }
//! ```
//!
//! For an index-only scan set [`ScanOptions::keep_tuples`] and read [`BtreeScan::values`]. Scans that wait in a hand-made
//! `poll` call [`BtreeScan::poll_next`]. Reading only: where skip arrays, loose scans and writing go is in the README.
#![forbid(unsafe_code)]

mod constraint;
mod desc;
mod error;
mod key;
mod leaf;
mod matcher;
mod page;
mod position;
mod scan;
mod sort;
mod source;
mod tuple;

// So that tests of the crate can share the integration tests' language.
#[cfg(test)]
extern crate self as stegodon_nbtree;

#[cfg(test)]
mod concurrency_tests;
#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod testing;

pub use desc::{CompareFn, IndexAttribute, IndexDesc, IndexKey, KeyComparator};
pub use error::{Error, Result};
pub use key::{Argument, Condition, RowMember, ScanKey, Strategy};
pub use page::tree_height;
pub use position::Direction;
pub use scan::{BtreeScan, Entry, ScanCounters, ScanOptions};
pub use source::{PageSource, PoolSource};
pub use tuple::TupleValues;
