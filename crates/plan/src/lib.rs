//! From a `Query` to a `Plan`: statistics, costs, paths, and EXPLAIN's layout.
//!
//! A tour: [`node`] is the plan tree that this crate makes and `exec` runs.
#![forbid(unsafe_code)]

pub mod node;
