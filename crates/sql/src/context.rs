//! What analysis is done under, and the state it keeps.

use pg_query::protobuf as pb;
use stegodon_catalog::{Catalog, SearchPath};
use stegodon_format::ids::{AttrNumber, Oid};
use stegodon_nodes::Expr;
use stegodon_nodes::expr::{Location, Var, VarSource};
use stegodon_nodes::query::{CommonTableExpr, FromExpr, RangeTableEntry};
use stegodon_types::{SqlError, SqlResult, SqlState, TypeContext};

/// What a statement is analysed under.
#[derive(Clone, Copy)]
pub struct AnalyzeContext<'a> {
    /// The database's catalogs.
    pub catalog: &'a Catalog,
    /// Where bare names are looked for.
    pub path: &'a SearchPath,
    /// The types and the session's settings: literals are read under them.
    pub types: TypeContext<'a>,
    /// The session's current user.
    pub user: Oid,
    /// `transform_null_equals`.
    pub transform_null_equals: bool,
}

/// The types of `$1`, `$2`, ….
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParamTypes {
    /// The known types; 0 where it is to be inferred.
    pub types: Vec<Oid>,
    /// Whether parameters beyond `types`, or of type 0 there, get their type from their use.
    pub variable: bool,
}

/// What sort of expression is being analysed: decides what may stand in it, and how errors call it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ExprKind {
    #[default]
    None,
    Other,
    JoinOn,
    JoinUsing,
    FromSubselect,
    FromFunction,
    Where,
    Having,
    Filter,
    WindowPartition,
    WindowOrder,
    WindowFrameRange,
    WindowFrameRows,
    WindowFrameGroups,
    SelectTarget,
    GroupBy,
    OrderBy,
    DistinctOn,
    Limit,
    Offset,
    Values,
    UpdateSource,
    Returning,
    ExecuteParameter,
}

impl ExprKind {
    /// How PostgreSQL's errors call it.
    pub fn name(self) -> &'static str {
        match self {
            ExprKind::None => "invalid expression context",
            ExprKind::Other => "extension expression",
            ExprKind::JoinOn => "JOIN/ON",
            ExprKind::JoinUsing => "JOIN/USING",
            ExprKind::FromSubselect => "sub-SELECT in FROM",
            ExprKind::FromFunction => "function in FROM",
            ExprKind::Where => "WHERE",
            ExprKind::Having => "HAVING",
            ExprKind::Filter => "FILTER",
            ExprKind::WindowPartition => "window PARTITION BY",
            ExprKind::WindowOrder => "window ORDER BY",
            ExprKind::WindowFrameRange => "window RANGE",
            ExprKind::WindowFrameRows => "window ROWS",
            ExprKind::WindowFrameGroups => "window GROUPS",
            ExprKind::SelectTarget => "SELECT",
            ExprKind::GroupBy => "GROUP BY",
            ExprKind::OrderBy => "ORDER BY",
            ExprKind::DistinctOn => "DISTINCT ON",
            ExprKind::Limit => "LIMIT",
            ExprKind::Offset => "OFFSET",
            ExprKind::Values => "VALUES",
            ExprKind::UpdateSource => "UPDATE",
            ExprKind::Returning => "RETURNING",
            ExprKind::ExecuteParameter => "EXECUTE",
        }
    }
}

/// A column that a FROM item offers.
#[derive(Clone, Debug)]
pub struct NsColumn {
    /// Its name; empty for a dropped column.
    pub name: String,
    /// What it stands for, as seen from the query that the item belongs to. Mostly a [`Var`]; what USING merged may be a
    /// COALESCE or a cast. No expression ever points at a join's own range table entry.
    pub expr: Expr,
}

/// A FROM item, as far as names can reach it.
#[derive(Clone, Debug)]
pub struct NsItem {
    /// The name that qualifies its columns.
    pub name: String,
    /// Its range table entry, from 1.
    pub rtindex: usize,
    /// `pg_class` OID, where it is a table under its own name (then `schema.table.column` reaches it).
    pub relation: Oid,
    /// Its columns.
    pub columns: Vec<NsColumn>,
    /// Whether `name.column` reaches it.
    pub rel_visible: bool,
    /// Whether a bare `column` reaches it.
    pub cols_visible: bool,
    /// Whether only LATERAL items may use it.
    pub lateral_only: bool,
    /// Whether they may.
    pub lateral_ok: bool,
}

/// What is known while one query level is analysed.
#[derive(Default)]
pub(crate) struct ParseState {
    pub rtable: Vec<RangeTableEntry>,
    pub namespace: Vec<NsItem>,
    pub from: FromExpr,
    pub kind: ExprKind,
    pub ctes: Vec<CommonTableExpr>,
    /// Names of WITH queries that are not visible yet: for an error's hint.
    pub future_ctes: Vec<String>,
    /// The entry of the table that the statement writes into.
    pub target: Option<usize>,
    pub window_defs: Vec<pb::WindowDef>,
    pub lateral_active: bool,
    pub resolve_unknowns: bool,
    pub has_aggregates: bool,
    pub has_window_functions: bool,
    pub has_target_srfs: bool,
    pub has_sublinks: bool,
    /// How many joins are around what is analysed that may fill it with NULLs.
    pub nullable_joins: u32,
    /// `INTERSECT` or `EXCEPT`, where what is analysed is a side of one that keeps duplicates.
    pub inside_operation: Option<&'static str>,
    /// The last set-returning function call seen, for "not allowed in CASE" and its like.
    pub last_srf: Option<Location>,
}

/// The analyser of one statement. Query levels are a stack: the last is the innermost.
pub(crate) struct Analyzer<'a> {
    pub cx: AnalyzeContext<'a>,
    pub source: &'a str,
    /// The innermost query level.
    pub state: ParseState,
    /// The levels around it, outermost first.
    pub outer: Vec<ParseState>,
    pub params: ParamTypes,
    /// The WITH queries being analysed that may refer to themselves.
    pub recursing: Vec<crate::recursion::Recursing>,
    /// The statement's WITH queries that write, and whether they return something.
    pub writes: Vec<(String, bool)>,
    /// How many BETWEENs are around what is being analysed.
    pub between_depth: u32,
    /// Of each COLLATE, where its operand and where it stands.
    pub collate_places: Vec<(Location, Location)>,
}

impl<'a> Analyzer<'a> {
    pub fn new(cx: AnalyzeContext<'a>, source: &'a str, params: ParamTypes) -> Self {
        let state = ParseState { resolve_unknowns: true, ..ParseState::default() };
        Self {
            cx,
            source,
            state,
            outer: Vec::new(),
            params,
            recursing: Vec::new(),
            writes: Vec::new(),
            between_depth: 0,
            collate_places: Vec::new(),
        }
    }

    /// The database's catalogs.
    pub fn catalog(&self) -> &'a Catalog {
        self.cx.catalog
    }

    pub fn kind(&self) -> ExprKind {
        self.state.kind
    }

    /// The level `up` levels out.
    pub fn level(&self, up: u32) -> SqlResult<&ParseState> {
        if up == 0 {
            return Ok(&self.state);
        }
        let found = self.outer.len().checked_sub(up as usize).and_then(|i| self.outer.get(i));
        found.ok_or_else(|| SqlError::internal("no such query level"))
    }

    /// The level `up` levels out, mutably.
    pub fn level_mut(&mut self, up: u32) -> SqlResult<&mut ParseState> {
        if up == 0 {
            return Ok(&mut self.state);
        }
        let found = self.outer.len().checked_sub(up as usize);
        found.and_then(|i| self.outer.get_mut(i)).ok_or_else(|| SqlError::internal("no such query level"))
    }

    /// Runs `f` with an expression kind, and restores the old one.
    pub fn with_kind<T>(&mut self, kind: ExprKind, f: impl FnOnce(&mut Self) -> SqlResult<T>) -> SqlResult<T> {
        let old = std::mem::replace(&mut self.state.kind, kind);
        let result = f(self);
        self.state.kind = old;
        result
    }

    /// Runs `f` in a new query level.
    pub fn with_level<T>(&mut self, f: impl FnOnce(&mut Self) -> SqlResult<T>) -> SqlResult<(T, ParseState)> {
        let inner = ParseState { resolve_unknowns: true, ..ParseState::default() };
        let around = std::mem::replace(&mut self.state, inner);
        self.outer.push(around);
        let result = stacker::maybe_grow(STACK_RED_ZONE_BYTES, STACK_BYTES, || f(self));
        let around = self.outer.pop().unwrap_or_default();
        let state = std::mem::replace(&mut self.state, around);
        Ok((result?, state))
    }

    /// An error at a place in the statement.
    pub fn error_at(&self, location: Location, state: SqlState, message: impl Into<String>) -> SqlError {
        self.place(SqlError::new(state, message), location)
    }

    /// Gives an error its place.
    pub fn place(&self, error: SqlError, location: Location) -> SqlError {
        match location.and_then(|l| self.source.get(..l as usize)) {
            Some(before) => error.at(before.chars().count() as u32 + 1),
            None => error,
        }
    }

    /// What we do not know to analyse as PostgreSQL does.
    pub fn unsupported<T>(&self, location: Location, what: impl std::fmt::Display) -> SqlResult<T> {
        Err(self.place(SqlError::unsupported(what), location))
    }
}

/// Below this much stack, more is taken.
pub(crate) const STACK_RED_ZONE_BYTES: usize = 256 << 10;
/// How much is taken then.
pub(crate) const STACK_BYTES: usize = 4 << 20;

/// A raw tree's location: negative means none.
pub(crate) fn loc(location: i32) -> Location {
    u32::try_from(location).ok()
}

/// A column of a range table entry of the innermost level.
pub(crate) fn make_var(rtindex: usize, attno: i16, (type_oid, typmod, collation): (Oid, i32, Oid)) -> Expr {
    Expr::Var(Var {
        source: VarSource::Relation(rtindex),
        attno: AttrNumber(attno),
        type_oid,
        typmod,
        collation,
        levels_up: 0,
        location: None,
    })
}

/// The same expression seen from a query `by` levels further in, placed at `location`.
pub(crate) fn seen_from(expr: &Expr, by: u32, location: Location) -> Expr {
    fn shift(e: &mut Expr, by: u32, location: Location) {
        if let Expr::Var(v) = e {
            v.levels_up += by;
            v.location = location;
        }
        let _ = e.try_each_child_mut::<()>(&mut |c| {
            shift(c, by, location);
            Ok(())
        });
    }
    let mut e = expr.clone();
    shift(&mut e, by, location);
    e
}
