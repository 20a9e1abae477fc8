//! The plan tree: PostgreSQL's nodes, with what execution and EXPLAIN need of each.
//!
//! Expressions in a plan refer to their inputs by [`VarSource`](stegodon_nodes::expr::VarSource): in a scan node,
//! `Relation(n)` with the table's own column numbers; elsewhere `Outer` and `Inner` with the place (from 1) in the child's
//! `targets`; `Index` in what an index-only scan returns. A plan is plain data, shared and immutable: nothing in it points
//! into a session (DESIGN D5, §10).

use stegodon_format::ids::{AttrNumber, Oid};
use stegodon_nodes::Expr;
use stegodon_nodes::expr::TargetEntry;
use stegodon_nodes::query::{JoinKind, SetOperationKind};

/// A whole planned statement.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedStatement {
    /// The root.
    pub root: PlanNode,
    /// Subplans and initplans; `SubPlan::plan_id` and [`PlanNode::init_plans`] index this list.
    pub subplans: Vec<PlanNode>,
    /// For each init plan: which subplan, what is asked of it, and the executor slots it fills.
    pub init_plans: Vec<InitPlan>,
    /// How many executor parameter slots there are.
    pub exec_param_count: usize,
    /// The flattened range table, for names in EXPLAIN and for privileges; scan nodes index it from 1.
    pub range_table: Vec<PlanRelation>,
    /// The result columns, without junk: name, type, typmod, collation, origin.
    pub columns: Vec<ResultColumn>,
    /// Whether any plan choice depended on a parameter's value (a custom plan).
    pub depends_on_params: bool,
}

/// One result column, as RowDescription sends it.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub type_oid: Oid,
    /// Its typmod.
    pub typmod: i32,
    /// The table it comes from unchanged, or 0.
    pub origin_table: Oid,
    /// The column there, or 0.
    pub origin_column: AttrNumber,
}

/// One relation of the flattened range table.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanRelation {
    /// `pg_class` OID, 0 for what is not a table.
    pub relation: Oid,
    /// The relation's (or function's, CTE's) own name.
    pub name: String,
    /// The alias EXPLAIN prints, unique within the statement.
    pub alias: String,
    /// Column names for EXPLAIN, by attno - 1.
    pub columns: Vec<String>,
    /// Privileges to check before running, if any.
    pub access: Option<AccessCheck>,
}

/// SELECT privileges to be checked when a plan starts.
#[derive(Clone, Debug, PartialEq)]
pub struct AccessCheck {
    /// As whom; the session's user where `None`.
    pub user: Option<Oid>,
    /// Which columns are read; 0 means the whole row, negative ones system columns.
    pub columns: Vec<AttrNumber>,
}

/// A subplan that is run once, when its value is first needed, and that fills executor slots.
#[derive(Clone, Debug, PartialEq)]
pub struct InitPlan {
    /// Index into [`PlannedStatement::subplans`].
    pub subplan: usize,
    /// What is asked.
    pub kind: InitPlanKind,
    /// The slots filled: one for a scalar, EXISTS or ARRAY; one a column for a row.
    pub slots: Vec<u32>,
    /// `InitPlan 1`'s number in EXPLAIN.
    pub number: u32,
}

/// What is asked of an [`InitPlan`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitPlanKind {
    /// Its only row's columns; NULLs where it has none; 21000 where it has more than one.
    Row,
    /// Whether it has a row.
    Exists,
    /// Its rows as an array: array type and element type.
    Array {
        /// The array type.
        array_type: Oid,
        /// The element type.
        element_type: Oid,
    },
}

/// What the planner expects of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Cost before the first row.
    pub startup_cost: f64,
    /// Cost of all rows.
    pub total_cost: f64,
    /// Rows.
    pub rows: f64,
    /// Average row width in bytes.
    pub width_bytes: i32,
    /// How many disabled nodes (`enable_* = off`) are in it: compared before cost, as PostgreSQL 18 does.
    pub disabled_nodes: u32,
}

/// One node.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanNode {
    /// Which node, with its children.
    pub kind: PlanKind,
    /// A number unique within the statement, in EXPLAIN's order: the key of run-time counters.
    pub id: usize,
    /// The estimate that EXPLAIN prints.
    pub estimate: Estimate,
    /// Output columns.
    pub targets: Vec<TargetEntry>,
    /// Conditions on the output of this node's work, all of which must hold, in evaluation order.
    pub quals: Vec<Expr>,
    /// Whether workers share this node's work (`Parallel Seq Scan`).
    pub parallel_aware: bool,
    /// Init plans shown at this node (indexes into [`PlannedStatement::init_plans`]).
    pub init_plans: Vec<usize>,
}

/// The nodes. Children that PostgreSQL calls left/outer come first.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanKind {
    /// One row (or none, where `one_time_filter` fails), or the child's rows behind that filter.
    Result {
        /// The input.
        child: Option<Box<PlanNode>>,
        /// Conditions that do not depend on a row.
        one_time_filter: Vec<Expr>,
    },
    /// Set-returning functions in the target list.
    ProjectSet {
        /// The input.
        child: Box<PlanNode>,
    },
    /// `Seq Scan`.
    SeqScan {
        /// The relation: range table index.
        relation: usize,
        /// TABLESAMPLE is not planned yet.
        pages: u32,
    },
    /// `Index Scan`.
    IndexScan(IndexScan),
    /// `Index Only Scan`: `targets` and `quals` refer to the index's columns ([`VarSource::Index`](stegodon_nodes::expr::VarSource)).
    IndexOnlyScan(IndexScan),
    /// `Bitmap Heap Scan`; `quals` are re-applied to every row, `recheck` only to lossy pages.
    BitmapHeapScan {
        /// The relation.
        relation: usize,
        /// The bitmap: [`PlanKind::BitmapIndexScan`], [`PlanKind::BitmapAnd`] or [`PlanKind::BitmapOr`].
        bitmap: Box<PlanNode>,
        /// The index conditions over the table's columns (`Recheck Cond`).
        recheck: Vec<Expr>,
    },
    /// `Bitmap Index Scan`.
    BitmapIndexScan(IndexScan),
    /// `BitmapAnd`.
    BitmapAnd {
        /// The inputs.
        children: Vec<PlanNode>,
    },
    /// `BitmapOr`.
    BitmapOr {
        /// The inputs.
        children: Vec<PlanNode>,
    },
    /// `Tid Scan`: `ctid = …` or `ctid = ANY (…)`, any of which may match.
    TidScan {
        /// The relation.
        relation: usize,
        /// The `TID Cond`s.
        conditions: Vec<Expr>,
    },
    /// `Tid Range Scan`.
    TidRangeScan {
        /// The relation.
        relation: usize,
        /// `ctid < …` and their like, all of which must match.
        conditions: Vec<Expr>,
    },
    /// `Subquery Scan`.
    SubqueryScan {
        /// The subquery's range table entry.
        relation: usize,
        /// The subquery's plan; this node's Vars `Relation(relation)` are its targets.
        child: Box<PlanNode>,
    },
    /// `Function Scan`.
    FunctionScan {
        /// The range table entry.
        relation: usize,
        /// The calls.
        functions: Vec<Expr>,
        /// For each call its columns' types, typmods, collations.
        columns: Vec<Vec<(Oid, i32, Oid)>>,
        /// WITH ORDINALITY.
        ordinality: bool,
    },
    /// `Values Scan`.
    ValuesScan {
        /// The range table entry.
        relation: usize,
        /// The rows.
        rows: Vec<Vec<Expr>>,
    },
    /// `CTE Scan`.
    CteScan {
        /// The range table entry.
        relation: usize,
        /// Index into [`PlannedStatement::subplans`].
        subplan: usize,
        /// The CTE's name.
        name: String,
    },
    /// `Append`.
    Append {
        /// The inputs, same targets each.
        children: Vec<PlanNode>,
        /// Run-time pruning.
        prune: Option<PrunePlan>,
        /// How many children planning already removed.
        removed: usize,
    },
    /// `Merge Append`.
    MergeAppend {
        /// The inputs, each sorted.
        children: Vec<PlanNode>,
        /// The order.
        keys: Vec<SortKey>,
        /// Run-time pruning.
        prune: Option<PrunePlan>,
    },
    /// `Nested Loop`.
    NestLoop(Join),
    /// `Merge Join`: both sides sorted by the clauses' order.
    MergeJoin {
        /// The join.
        join: Join,
        /// Equality clauses, `Outer = Inner`.
        clauses: Vec<JoinClause>,
    },
    /// `Hash Join`; the inner side is a [`PlanKind::Hash`].
    HashJoin {
        /// The join.
        join: Join,
        /// Equality clauses, `Outer = Inner`.
        clauses: Vec<JoinClause>,
    },
    /// `Hash`: the build side of a hash join.
    Hash {
        /// The input.
        child: Box<PlanNode>,
    },
    /// `Materialize`.
    Materialize {
        /// The input.
        child: Box<PlanNode>,
    },
    /// `Sort`.
    Sort {
        /// The input.
        child: Box<PlanNode>,
        /// The order.
        keys: Vec<SortKey>,
        /// How many leading keys the input is already sorted by (`Incremental Sort` when not 0).
        presorted: usize,
    },
    /// `Aggregate`, `HashAggregate`, `GroupAggregate`.
    Aggregate {
        /// The input.
        child: Box<PlanNode>,
        /// How it is done.
        strategy: AggregateStrategy,
        /// Whole, or half of a parallel one.
        split: AggregateSplit,
        /// The group columns: places (from 1) in the child's targets, with how they compare.
        group_by: Vec<GroupKey>,
    },
    /// `Group`: groups without aggregates over sorted input.
    Group {
        /// The input.
        child: Box<PlanNode>,
        /// The group columns.
        group_by: Vec<GroupKey>,
    },
    /// `WindowAgg`: the `WindowFunc`s in `targets` and `quals` whose `window_ref` is this one's, over input sorted by
    /// partition and order. Their arguments and every other `Var` here read `Outer`.
    WindowAgg {
        /// The input.
        child: Box<PlanNode>,
        /// The window.
        window: Window,
    },
    /// `Unique`: drops repeated rows of sorted input.
    Unique {
        /// The input.
        child: Box<PlanNode>,
        /// The columns compared.
        keys: Vec<GroupKey>,
    },
    /// `SetOp`: INTERSECT and EXCEPT, hashed.
    SetOp {
        /// The left input.
        outer: Box<PlanNode>,
        /// The right input.
        inner: Box<PlanNode>,
        /// Which.
        kind: SetOperationKind,
        /// ALL.
        all: bool,
        /// The columns compared: all of them.
        keys: Vec<GroupKey>,
    },
    /// `Limit`.
    Limit {
        /// The input.
        child: Box<PlanNode>,
        /// OFFSET.
        offset: Option<Expr>,
        /// LIMIT.
        count: Option<Expr>,
        /// WITH TIES: the ORDER BY columns.
        ties: Vec<GroupKey>,
    },
    /// `Gather`.
    Gather {
        /// The input, run by each worker.
        child: Box<PlanNode>,
        /// Workers planned, besides the leader.
        workers: usize,
    },
    /// `Gather Merge`.
    GatherMerge {
        /// The input, run by each worker, sorted in each.
        child: Box<PlanNode>,
        /// Workers planned.
        workers: usize,
        /// The order.
        keys: Vec<SortKey>,
    },
}

/// An index scan of any kind.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexScan {
    /// The relation: range table index.
    pub relation: usize,
    /// The index's `pg_class` OID.
    pub index: Oid,
    /// Its name.
    pub index_name: String,
    /// `Index Cond`: each an operator, `ScalarArrayOp`, `NullTest` or `RowCompare` with the index column on the left (as a
    /// `Var` of the table, or the index's expression), all of which must hold.
    pub conditions: Vec<IndexCondition>,
    /// Backwards.
    pub backward: bool,
    /// Whether the output is used in the index's order.
    pub ordered: bool,
    /// Index-only: conditions to re-apply to the index tuple where the operator class is lossy (never for btree).
    pub recheck: Vec<Expr>,
}

/// One condition that an index scan descends by.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexCondition {
    /// The clause over the table's columns, index column on the left.
    pub clause: Expr,
    /// The index column, from 1.
    pub column: AttrNumber,
    /// The btree strategy, 1 `<` … 5 `>`; 0 for `IS [NOT] NULL`.
    pub strategy: u16,
}

/// What all joins share.
#[derive(Clone, Debug, PartialEq)]
pub struct Join {
    /// Which join.
    pub kind: JoinKind,
    /// The left side.
    pub outer: Box<PlanNode>,
    /// The right side.
    pub inner: Box<PlanNode>,
    /// ON conditions beyond the clauses: they decide what matches (`Join Filter`). `PlanNode::quals` filter the result.
    pub filter: Vec<Expr>,
    /// At most one match an outer row matters.
    pub inner_unique: bool,
    /// Outer values handed to the inner side before each of its scans: executor slot and expression.
    pub params: Vec<(u32, Expr)>,
}

/// One equality of a hash or merge join.
#[derive(Clone, Debug, PartialEq)]
pub struct JoinClause {
    /// The whole clause, for EXPLAIN.
    pub clause: Expr,
    /// The left side over `Outer`.
    pub outer: Expr,
    /// The right side over `Inner`.
    pub inner: Expr,
    /// The equality operator.
    pub operator: Oid,
    /// The collation it compares under.
    pub collation: Oid,
    /// Merge join: descending.
    pub descending: bool,
    /// Merge join: NULLs first.
    pub nulls_first: bool,
}

/// One column of an order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SortKey {
    /// The place (from 1) in the child's targets.
    pub column: AttrNumber,
    /// The ordering operator.
    pub operator: Oid,
    /// Whether that is the family's `>`.
    pub descending: bool,
    /// NULLs first.
    pub nulls_first: bool,
    /// The collation.
    pub collation: Oid,
}

/// One column that rows are told apart by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GroupKey {
    /// The place (from 1) in the child's targets.
    pub column: AttrNumber,
    /// The equality operator.
    pub equality: Oid,
    /// The collation.
    pub collation: Oid,
}

/// How an aggregate is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AggregateStrategy {
    /// One group: everything.
    Plain,
    /// Input sorted by group.
    Sorted,
    /// By hash.
    Hashed,
}

/// Whole, or half of a parallel aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AggregateSplit {
    /// All of it.
    Whole,
    /// `Partial …`: emits transition states; `Aggref`s in `targets` stand for states.
    Partial,
    /// `Finalize …`: combines states. An `Aggref` here has one argument, the `Outer` column of its state.
    Final,
}

/// The window of a [`PlanKind::WindowAgg`].
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// What `WindowFunc::window_ref` of its functions says.
    pub reference: u32,
    /// Its name for EXPLAIN: the query's, or `w1`, `w2`, ….
    pub name: String,
    /// PARTITION BY: rows that are equal in these belong together.
    pub partition_by: Vec<GroupKey>,
    /// ORDER BY: rows that are equal in these too are peers.
    pub order_by: Vec<SortKey>,
    /// The frame, as [`stegodon_nodes::frame`]'s bits.
    pub frame_options: u32,
    /// ROWS and GROUPS: the start's offset, an `int8` that reads no row.
    pub start_offset: Option<Expr>,
    /// The end's offset.
    pub end_offset: Option<Expr>,
}

/// How an Append's children are pruned when it starts, or when an executor slot changes.
#[derive(Clone, Debug, PartialEq)]
pub struct PrunePlan {
    /// The partitioned table.
    pub relation: Oid,
    /// For each child of the Append, the partition it scans.
    pub partitions: Vec<Oid>,
    /// Conditions over the partition key, their values known only now.
    pub conditions: Vec<Expr>,
    /// The range table index that `conditions`' Vars use.
    pub range_table_index: usize,
}
