//! One database's catalogs, read from its own heap tables, with the lookups that analysis and planning ask.
//!
//! A tour: [`rows`] has a struct for each catalog's row; [`Catalog`] holds them indexed and answers by OID and by name;
//! a [`SearchPath`] says which schemas a bare name is looked for in. A [`RowSource`] delivers rows by column name, and
//! [`Catalog::build`] makes a catalog of them.
#![forbid(unsafe_code)]

pub mod acl;
pub mod array;
mod build;
pub mod builtin;
pub mod extra;
pub mod keywords;
pub mod load;
pub mod lookup;
pub mod names;
pub mod operators;
pub mod path;
pub mod privileges;
mod relations;
pub mod rows;
pub mod settings;
pub mod source;
pub mod tables;
pub mod testing;
mod trees;
mod typename;
pub mod view;

pub use lookup::{Catalog, SearchPath};
pub use source::{RowSource, TableRows};
pub use view::CatalogView;
