//! Stegodon as a library: open a PostgreSQL data directory, run SQL, get Arrow record batches.
//!
//! ```no_run
//! # async fn example() -> Result<(), stegodon::SqlError> {
//! let database = stegodon::Database::open("/var/lib/postgresql/18/main", "postgres", "postgres")?;
//! let mut rows = database.query("SELECT relname, relpages FROM pg_class ORDER BY 2 DESC LIMIT 3").await?;
//! while let Some(batch) = rows.next().await? {
//!     println!("{} rows", batch.num_rows());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Batches have PostgreSQL's values in Arrow's plain types where Arrow has the type: integers, floats, booleans, text as
//! UTF-8. All others are given as their text, which loses nothing; see [`Database::query`].
#![forbid(unsafe_code)]

mod database;
mod text;

pub use database::{Column, Database, QueryRows};
pub use stegodon_server::{Cluster, Endpoints, serve};
pub use stegodon_types::{SqlError, SqlResult, SqlState};
pub use text::{Style, TextTable};
