//! One database's catalogs, read from its own heap tables, with the lookups that analysis and planning ask.
//!
//! A tour: [`rows`] has a struct for each catalog's row; [`Catalog`] holds them indexed and answers by OID and by name;
//! a [`SearchPath`] says which schemas a bare name is looked for in, and a [`CatalogView`] is both together: what a session
//! sees. [`load`] reads a directory's files: a [`RowSource`] delivers rows by column name, and [`Catalog::build`] makes a
//! catalog of them. [`operators`], [`path`], [`names`] and [`privileges`] answer what PostgreSQL's `lsyscache`, `namespace`,
//! `ruleutils` and `aclchk` do. [`settings`] is the one table of settings.
//!
//! ```no_run
//! use stegodon_access::{Storage, StorageOptions};
//! use stegodon_catalog::{Catalog, CatalogView};
//! let storage = Storage::open("/var/lib/postgresql/18/main", &StorageOptions::default())?;
//! let catalog = std::sync::Arc::new(Catalog::load(&storage, "postgres")?);
//! let role = catalog.role_by_name("postgres").map(|r| r.oid).unwrap_or_default();
//! let path = catalog.resolve_search_path("\"$user\", public", role)?;
//! let view = CatalogView::new(catalog, path);
//! println!("{}", view.format_type(stegodon_types::Oid(1043), Some(14))); // character varying(10)
//! # Ok::<(), stegodon_types::SqlError>(())
//! ```
#![forbid(unsafe_code)]

pub mod acl;
pub mod array;
mod bootstrap;
mod build;
pub mod builtin;
mod checked;
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
