//! From a `Query` to a `Plan`: statistics, costs, paths, and EXPLAIN's layout.
//!
//! A tour: [`plan`] takes an analysed query and what it may ask ([`PlanInput`]) and returns a
//! [`node::PlannedStatement`], the tree that `exec` runs. On the way `prep` makes conditions simple, `equivalence` learns
//! what equals what, `selectivity` and `cost` estimate, `scan`, `indexpath`, `join` and `upper` collect paths, and
//! `finish` lays out the cheapest as nodes.
#![forbid(unsafe_code)]
#![allow(
    clippy::collapsible_if,
    clippy::collapsible_match,
    clippy::elidable_lifetime_names,
    clippy::if_not_else,
    clippy::if_same_then_else,
    clippy::len_zero,
    clippy::manual_midpoint,
    clippy::map_entry,
    clippy::map_unwrap_or,
    clippy::needless_for_each,
    clippy::neg_multiply,
    clippy::only_used_in_recursion,
    clippy::option_option,
    clippy::ref_option,
    clippy::semicolon_if_nothing_returned,
    clippy::single_match,
    clippy::single_match_else,
    clippy::too_many_arguments,
    clippy::unnecessary_wraps,
    clippy::unused_self,
    clippy::verbose_bit_mask,
    reason = "style only; the estimates are written as PostgreSQL's formulas read"
)]
#![allow(clippy::indexing_slicing, reason = "only arrays of two are indexed, by constants")]

pub(crate) mod arrays;
pub(crate) mod bounds;
pub mod clause;
pub(crate) mod coerce;
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
pub(crate) mod finish_upper;
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
pub(crate) mod lateral;
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
pub mod walk;
pub(crate) mod window;

pub use bounds::prune;
pub use context::{Evaluate, NoFolding, PlanInput, Storage};
pub use evaluate::Folding;
pub use explain::{BufferUsage, ExplainOptions, NodeCounters, NodeRun, explain};
pub use names::for_each_child;
pub use planner::plan;
pub use settings::PlannerSettings;
