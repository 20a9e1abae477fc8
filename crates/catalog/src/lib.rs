//! One database's catalogs, read from its own heap tables, with the lookups that analysis and planning ask.
//!
//! A tour: [`rows`] has a struct for each catalog's row; [`Catalog`] holds them indexed and answers by OID and by name;
//! a [`SearchPath`] says which schemas a bare name is looked for in.
#![forbid(unsafe_code)]

pub mod lookup;
pub mod rows;

pub use lookup::{Catalog, SearchPath};
