//! From a plan to rows: our scans, expressions and groupings, DataFusion's joins, hash aggregation and sorts.
//!
//! A tour: [`Execution`] is the state of one execution; [`start`] lowers a planned statement to operators and gives
//! [`Running`], which yields Arrow record batches whose columns are the statement's, in order. Inside, [`Operator`]s of ours
//! and DataFusion's mix freely (`operator`); `lower` says which node becomes what; `scan` holds the scans; `keys` is where
//! values become what DataFusion may compare.
//!
//! [`Operator`]: operator
#![forbid(unsafe_code)]

mod aggregate_call;
mod append;
mod arrays;
mod batch;
mod correlated;
mod counters;
mod cte;
mod error;
mod evaluate;
mod execution;
mod group_lowering;
mod grouping;
mod hash_aggregate;
mod initplan;
mod instrument;
mod join;
mod keys;
mod lateral;
mod limit;
mod lower;
mod lower_join;
mod lower_scan;
mod memory;
mod nest_loop;
mod operator;
mod prepare;
mod prune;
mod rescan;
mod rows;
mod running;
mod scan;
mod set_op;
mod sets;
mod sort;
mod subplan;
mod window;

pub use counters::{Counters, NodeCounters, read};
pub use execution::{CancelFlag, Execution, ExecutionOptions};
pub use running::{Running, start};
pub use scan::Opener;
