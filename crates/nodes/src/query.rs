//! The typed query tree, shaped like PostgreSQL's `parsenodes.h` after analysis.

use stegodon_format::ids::{AttrNumber, Oid};

use crate::expr::{Expr, SortGroupClause, TargetEntry};

/// A SELECT (or VALUES, or set operation) whose every name is resolved. The default is a query of nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// What it reads from; [`crate::expr::VarSource::Relation`] counts from 1.
    pub range_table: Vec<RangeTableEntry>,
    /// FROM and WHERE.
    pub from: FromExpr,
    /// The output columns, junk last.
    pub targets: Vec<TargetEntry>,
    /// GROUP BY (all references; see `grouping_sets`).
    pub group_by: Vec<SortGroupClause>,
    /// `GROUP BY DISTINCT`.
    pub group_distinct: bool,
    /// GROUPING SETS, ROLLUP, CUBE: expanded to lists of references. Empty for a plain GROUP BY.
    pub grouping_sets: Vec<Vec<u32>>,
    /// HAVING.
    pub having: Option<Expr>,
    /// WINDOW.
    pub windows: Vec<WindowClause>,
    /// DISTINCT or DISTINCT ON.
    pub distinct: Vec<SortGroupClause>,
    /// Whether `distinct` is DISTINCT ON.
    pub distinct_on: bool,
    /// ORDER BY.
    pub order_by: Vec<SortGroupClause>,
    /// OFFSET, an int8 expression.
    pub offset: Option<Expr>,
    /// LIMIT, an int8 expression.
    pub limit: Option<Expr>,
    /// `FETCH FIRST n ROWS WITH TIES`.
    pub with_ties: bool,
    /// WITH.
    pub ctes: Vec<CommonTableExpr>,
    /// UNION, INTERSECT, EXCEPT over subqueries of the range table.
    pub set_operations: Option<SetOperation>,
    /// FOR UPDATE and its like: range table indexes. An error in a read-only directory.
    pub row_marks: Vec<usize>,
    /// Whether there are aggregates in `targets`, `having` or `order_by`.
    pub has_aggregates: bool,
    /// Whether there are window functions.
    pub has_window_functions: bool,
    /// Whether there are set-returning functions in `targets`.
    pub has_target_srfs: bool,
    /// Whether there are [`Expr::SubLink`]s.
    pub has_sublinks: bool,
}

/// FROM and WHERE.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FromExpr {
    /// The items, comma-separated.
    pub items: Vec<JoinTree>,
    /// WHERE.
    pub quals: Option<Expr>,
}

/// One item of FROM.
#[derive(Clone, Debug, PartialEq)]
pub enum JoinTree {
    /// An entry of the range table, from 1.
    Relation(usize),
    /// An explicit join.
    Join(Box<JoinExpr>),
    /// A FROM with WHERE of its own: what a pulled-up subquery leaves.
    From(Box<FromExpr>),
}

/// An explicit join.
#[derive(Clone, Debug, PartialEq)]
pub struct JoinExpr {
    /// Which join.
    pub kind: JoinKind,
    /// The left side.
    pub left: JoinTree,
    /// The right side.
    pub right: JoinTree,
    /// ON, or what USING and NATURAL became.
    pub quals: Option<Expr>,
    /// The join's own range table entry, from 1; 0 where it has none.
    pub relation: usize,
}

/// Which join. Only the first four come from the parser; the others from planning IN and EXISTS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum JoinKind {
    Inner,
    Left,
    Full,
    Right,
    Semi,
    Anti,
}

/// One entry of the range table.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeTableEntry {
    /// What it is.
    pub kind: RangeTableKind,
    /// The name it is known by: the alias, or its own.
    pub name: String,
    /// Whether `name` was written as an alias.
    pub has_alias: bool,
    /// The columns' names, dropped ones as empty strings; `attno` n is entry n - 1.
    pub columns: Vec<String>,
    /// Whether it is LATERAL.
    pub lateral: bool,
    /// Privileges asked for (DESIGN D10): the user to check as (`None` the session's), the columns read
    /// (0: the whole row).
    pub check_as_user: Option<Oid>,
    /// The columns whose SELECT privilege is needed; see `requires_select`.
    pub selected_columns: Vec<AttrNumber>,
    /// Whether SELECT privilege on the relation is needed at all.
    pub requires_select: bool,
    /// Quals of a security-barrier view apply first.
    pub security_barrier: bool,
}

/// What a range table entry is.
#[derive(Clone, Debug, PartialEq)]
pub enum RangeTableKind {
    /// A table, view (before its rule is applied), partitioned table, …
    Relation {
        /// `pg_class` OID.
        relation: Oid,
        /// `relkind`.
        relkind: u8,
        /// Whether children are included (no ONLY).
        inherit: bool,
        /// TABLESAMPLE.
        sample: Option<Box<TableSample>>,
    },
    /// A subquery, or a view whose rule was applied.
    Subquery(Box<Query>),
    /// A join.
    Join {
        /// Which.
        kind: JoinKind,
        /// For each column, the expression it stands for over the joined relations.
        alias_vars: Vec<Expr>,
        /// How many of the first columns are merged by USING.
        merged_columns: usize,
    },
    /// Functions in FROM.
    Function {
        /// The calls; several with ROWS FROM.
        functions: Vec<RangeTableFunction>,
        /// WITH ORDINALITY.
        ordinality: bool,
    },
    /// VALUES lists.
    Values {
        /// The rows.
        rows: Vec<Vec<Expr>>,
        /// The columns' types, typmods and collations.
        types: Vec<(Oid, i32, Oid)>,
    },
    /// A WITH query.
    Cte {
        /// Its name.
        name: String,
        /// How many queries out it is defined.
        levels_up: u32,
        /// Whether this is a recursive reference to itself.
        self_reference: bool,
        /// The columns' types, typmods and collations.
        types: Vec<(Oid, i32, Oid)>,
    },
    /// PostgreSQL 18's entry for grouping expressions; `Var`s that point here are replaced on reading.
    Group {
        /// The grouping expressions.
        exprs: Vec<Expr>,
    },
    /// No FROM at all.
    Result,
}

/// TABLESAMPLE.
#[derive(Clone, Debug, PartialEq)]
pub struct TableSample {
    /// The method's function.
    pub method: Oid,
    /// Its arguments.
    pub args: Vec<Expr>,
    /// REPEATABLE.
    pub repeatable: Option<Expr>,
}

/// One function in FROM.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeTableFunction {
    /// The call.
    pub call: Expr,
    /// Its columns: names (where defined here), types, typmods, collations.
    pub columns: Vec<(String, Oid, i32, Oid)>,
}

/// WITH.
#[derive(Clone, Debug, PartialEq)]
pub struct CommonTableExpr {
    /// Its name.
    pub name: String,
    /// Its query.
    pub query: Query,
    /// MATERIALIZED (`Some(true)`), NOT MATERIALIZED, or nothing said.
    pub materialized: Option<bool>,
    /// Whether it refers to itself.
    pub recursive: bool,
    /// How often it is referred to.
    pub references: u32,
    /// Its columns' names.
    pub columns: Vec<String>,
}

/// A tree of UNION, INTERSECT, EXCEPT.
#[derive(Clone, Debug, PartialEq)]
pub struct SetOperation {
    /// Which.
    pub kind: SetOperationKind,
    /// ALL.
    pub all: bool,
    /// The left side.
    pub left: SetOperand,
    /// The right side.
    pub right: SetOperand,
    /// The result columns' types, typmods and collations.
    pub types: Vec<(Oid, i32, Oid)>,
    /// How rows are told apart, one a column; empty for UNION ALL.
    pub group_by: Vec<SortGroupClause>,
}

/// One side of a set operation.
#[derive(Clone, Debug, PartialEq)]
pub enum SetOperand {
    /// A subquery entry of the range table, from 1.
    Relation(usize),
    /// Another set operation.
    Operation(Box<SetOperation>),
}

/// Which set operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum SetOperationKind {
    Union,
    Intersect,
    Except,
}

/// WINDOW.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowClause {
    /// Its name, where it has one.
    pub name: Option<String>,
    /// PARTITION BY.
    pub partition_by: Vec<SortGroupClause>,
    /// ORDER BY.
    pub order_by: Vec<SortGroupClause>,
    /// The frame, as PostgreSQL's `FRAMEOPTION_*` bits.
    pub frame_options: u32,
    /// The start offset.
    pub start_offset: Option<Expr>,
    /// The end offset.
    pub end_offset: Option<Expr>,
    /// What `WindowFunc::window_ref` refers to.
    pub reference: u32,
}
