//! Typed query and expression trees, and the reader of their stored form, `pg_node_tree`.
//!
//! A tour: [`Query`] is a statement after analysis, [`Expr`] a scalar expression bound by OID. The `sql` crate makes them
//! from a statement's text; [`reader`] makes them from what views, defaults, index predicates and partition bounds have
//! stored. [`walk`] and [`levels`] visit and change trees; [`grouping`] expands grouping sets. Nothing here resolves a
//! name.
#![forbid(unsafe_code)]

pub mod expr;
pub mod frame;
pub mod grouping;
pub mod levels;
pub mod query;
pub mod reader;
pub mod typing;
pub mod walk;

pub use expr::Expr;
pub use query::Query;
