//! Heap pages into columns: which tuples are visible, and what is in them.
//!
//! A tour, in the order of a scan: a [`HeapPage`] is a latched page with its name; [`HeapPage::visible_offsets`] lists the
//! line pointers whose tuples a snapshot sees, [`HeapPage::hot_search`] finds the one version of a row that an index entry
//! leads to. A [`Deformer`], made once from a [`TupleDesc`] and the columns wanted, appends the values of many tuples to
//! [`Columns`], which turn into Arrow arrays. Values that lie in a TOAST table are noted on the side
//! ([`Columns::toasted`]), fetched later by whoever can wait, put together by [`toast::Assembly`], and filled in.
//!
//! A scan with conditions uses two deformers: the first for the columns that the conditions need, the second for the
//! others, on the offsets that are left.
//!
//! This crate does not read pages. Who sees what is decided by a [`Visibility`], as a rule `txn`'s checker.
//!
//! ```
//! use stegodon_format::ids::{AttrNumber, BlockNumber, Oid};
//! use stegodon_format::page::Page;
//! use stegodon_heap::{Attribute, Columns, Deformer, HeapPage, TupleDesc, visible_to_all};
//! use stegodon_types::{Align, Layout};
//!
//! let id = Attribute::new("id", Oid(23), 4, Align::Int, Some(Layout::Int32));
//! let desc = TupleDesc::new("accounts", Oid(16384), vec![id])?;
//! let deformer = Deformer::new(&desc, &[AttrNumber(1), AttrNumber(-1)])?; // id and ctid
//! let mut columns = Columns::new(&deformer, 1024);
//!
//! let page = Page::zeroed();
//! let page = HeapPage::new("accounts", BlockNumber(0), page.view());
//! let mut offsets = Vec::new();
//! page.visible_offsets(&mut visible_to_all(), &mut offsets)?;
//! deformer.deform(&page, &offsets, &mut columns)?;
//! assert_eq!(columns.finish()?.len(), 2);
//! # Ok::<(), stegodon_types::SqlError>(())
//! ```
#![forbid(unsafe_code)]

pub mod columns;
pub mod deform;
pub mod desc;
pub mod error;
mod glance;
pub mod hot;
pub mod page;
mod plain;
pub mod toast;
mod walk;

pub use columns::{Columns, Toasted};
pub use deform::{Deformer, SystemColumn};
pub use desc::{Attribute, TupleDesc};
pub use error::{Error, Result};
pub use page::{HeapPage, Visibility, visible_to_all, visible_to_toast};
