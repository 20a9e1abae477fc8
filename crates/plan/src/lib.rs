//! From a `Query` to a `Plan`: statistics, costs, paths, and EXPLAIN's layout.
//!
//! A tour: [`plan`] takes an analysed query and what it may ask ([`PlanInput`]) and returns a
//! [`node::PlannedStatement`], the tree that `exec` runs. On the way `prep` makes conditions simple, `equivalence` learns
//! what equals what, `selectivity` and `cost` estimate, `scan`, `indexpath`, `join` and `upper` collect paths, and
//! `finish` lays out the cheapest as nodes.
#![forbid(unsafe_code)]

pub(crate) mod arrays;
pub mod clause;
pub(crate) mod context;
pub mod cost;
pub(crate) mod cte;
pub mod deparse;
pub(crate) mod distinct;
pub(crate) mod equivalence;
pub mod evaluate;
pub mod explain;
pub mod exprs;
pub(crate) mod finish;
pub(crate) mod finish_join;
pub(crate) mod finish_scan;
pub(crate) mod gate;
pub(crate) mod grouping;
pub(crate) mod groups;
pub(crate) mod implication;
pub(crate) mod indexcost;
pub(crate) mod indexmatch;
pub(crate) mod indexpath;
pub(crate) mod join;
pub(crate) mod joincost;
pub(crate) mod joinpath;
pub(crate) mod joinsearch;
pub(crate) mod joinsel;
pub(crate) mod level;
pub(crate) mod names;
pub mod node;
pub(crate) mod operators;
pub(crate) mod outerjoin;
pub(crate) mod partition;
pub(crate) mod path;
pub mod patterns;
pub(crate) mod planner;
pub(crate) mod prep;
pub(crate) mod pullup;
pub(crate) mod rel;
pub mod relids;
pub(crate) mod relsize;
pub(crate) mod scan;
pub(crate) mod selectivity;
pub(crate) mod setop;
pub mod settings;
pub(crate) mod stats;
pub(crate) mod stored;
pub(crate) mod subquery;
pub(crate) mod subselect;
pub(crate) mod typed;
pub(crate) mod upper;
pub(crate) mod values;

pub use context::{Evaluate, NoFolding, PlanInput, Storage};
pub use evaluate::Folding;
pub use explain::{BufferUsage, ExplainOptions, NodeCounters, NodeRun, explain};
pub use names::for_each_child;
pub use planner::plan;
pub use settings::PlannerSettings;
