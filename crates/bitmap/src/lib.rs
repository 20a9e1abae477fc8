//! The TID bitmap: rows found by index scans, brought into the order of the heap.
//!
//! A tour: [`TidBitmap`] takes TIDs in any order and keeps within a budget of memory; bitmaps are combined with
//! [`TidBitmap::union`] and [`TidBitmap::intersect`]; [`TidBitmap::freeze`] ends building. The [`FrozenBitmap`] yields
//! one [`BitmapPage`] after the other, ascending by block, and divides itself among workers.
//!
//! ```
//! use stegodon_bitmap::{PageMatches, TidBitmap};
//! use stegodon_format::ids::{BlockNumber, OffsetNumber, Tid};
//!
//! let tid = |block, offset| Tid::new(BlockNumber(block), OffsetNumber(offset));
//! let mut bitmap = TidBitmap::new(4 << 20);
//! bitmap.add_tids([tid(7, 3), tid(2, 1), tid(7, 1)], false)?;
//! let bitmap = bitmap.freeze();
//! let pages: Vec<_> = bitmap.iter().map(|page| page.block.0).collect();
//! assert_eq!(pages, [2, 7]);
//! # Ok::<(), stegodon_bitmap::Error>(())
//! ```
#![forbid(unsafe_code)]

mod bitmap;
mod chunk;
mod combine;
mod error;
mod frozen;
mod open;
mod page;

pub use bitmap::{MIN_BUDGET_BYTES, TidBitmap};
pub use error::{Error, Result};
pub use frozen::{BitmapIter, FrozenBitmap};
pub use page::{BitmapPage, MAX_TUPLES_PER_PAGE, OffsetSet, PageMatches};

#[cfg(test)]
mod model_tests;
