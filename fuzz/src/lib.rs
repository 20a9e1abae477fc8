//! What the fuzzer feeds: one function for each group of decoders, the same for the fuzzer and for the tests that replay
//! the committed corpus.
//!
//! A target takes any bytes. It must end soon, without a panic, an overflow or an allocation over
//! [`ALLOCATION_BYTES_MAX`]; where two ways lead to one answer (one column alone or with others, a value printed and read
//! again) the target compares them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a finding is a panic")]

mod allocator;
mod btree;
#[doc(hidden)]
pub mod catalog;
mod format;
mod heap;
mod input;
mod nodes;
mod sql;
mod txn;
mod types;

pub use allocator::ALLOCATION_BYTES_MAX;

#[global_allocator]
static ALLOCATOR: allocator::Bounded = allocator::Bounded;

/// A target: its name, and what it does with its input.
pub type Target = (&'static str, fn(&[u8]));

/// The targets.
pub const TARGETS: &[Target] = &[
    ("format", format::run),
    ("btree", btree::run),
    ("heap", heap::run),
    ("types_in", types::run_in),
    ("types_disk", types::run_disk),
    ("nodes", nodes::run),
    ("sql", sql::run),
    ("txn", txn::run),
];

/// The target of this name.
pub fn target(name: &str) -> Option<fn(&[u8])> {
    TARGETS.iter().find(|(known, _)| *known == name).map(|(_, run)| *run)
}
