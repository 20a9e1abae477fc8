//! Where heap and B-tree meet: a cluster opened for reading, its tables, and the roads to their rows.
//!
//! A tour: [`Storage`] is an opened cluster — its files, buffer pool, transactions and snapshot — after the checks of
//! DESIGN D7; a [`Table`] is a relation whose columns are known; [`SharedBlocks`] deals its blocks out to workers;
//! [`Toast`] fetches values that lie elsewhere; [`read_all`] reads a small table whole, as the catalogs are read.
//!
//! ```no_run
//! use stegodon_access::{Storage, StorageOptions};
//! let storage = Storage::open("/var/lib/postgresql/18/main", &StorageOptions::default())?;
//! println!("next transaction: {}", storage.transactions().next_xid());
//! # Ok::<(), stegodon_types::SqlError>(())
//! ```
#![forbid(unsafe_code)]

mod blocks;
mod refusal;
mod storage;
mod table;
mod toast;

pub use blocks::SharedBlocks;
pub use refusal::Refusal;
pub use storage::{IoMethodKind, Storage, StorageOptions};
pub use table::{Table, read_all};
pub use toast::Toast;
