//! Typed scalar expressions, shaped like PostgreSQL's `primnodes.h`: everything is bound by OID.

use stegodon_format::ids::{AttrNumber, Oid};
use stegodon_types::Datum;

use crate::query::Query;

/// Where in the statement an expression began: a byte offset, or `None` where it came from elsewhere.
pub type Location = Option<u32>;

/// A scalar expression. Each variant carries what PostgreSQL's node of the same name carries and evaluation or display
/// needs; what neither needs is left out.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A column of the range table, before planning; of a child's output, after (see [`Var`]).
    Var(Var),
    /// A constant.
    Const(Const),
    /// `$n` of the statement, or a value computed elsewhere in the plan.
    Param(Param),
    /// An aggregate call.
    Aggref(Box<Aggref>),
    /// `GROUPING(...)`.
    GroupingFunc(GroupingFunc),
    /// A window function call.
    WindowFunc(Box<WindowFunc>),
    /// `x[1]`, `x[1:2]`.
    Subscript(Box<SubscriptingRef>),
    /// A function call.
    Func(FuncExpr),
    /// An operator.
    Op(OpExpr),
    /// `a IS DISTINCT FROM b`: `op` is the equality operator.
    Distinct(OpExpr),
    /// `NULLIF(a, b)`: `op` is the equality operator.
    NullIf(OpExpr),
    /// `a op ANY (array)`, `a op ALL (array)`.
    ScalarArrayOp(ScalarArrayOp),
    /// AND, OR, NOT.
    Bool(BoolExpr),
    /// A subquery in an expression, before planning.
    SubLink(Box<SubLink>),
    /// A planned subquery: its value is in a parameter (an initplan), or it is probed by hash.
    SubPlan(Box<SubPlan>),
    /// A field of a row value.
    FieldSelect(Box<FieldSelect>),
    /// A change of type that does not change the value's form.
    Relabel(Relabel),
    /// A cast through text output and input.
    CoerceViaIo(CoerceViaIo),
    /// A cast of an array, element by element; `element` sees the element as [`Expr::CaseTest`].
    ArrayCoerce(Box<ArrayCoerce>),
    /// A whole row of one type seen as another row type of the same shape.
    ConvertRowtype(Box<ConvertRowtype>),
    /// `x COLLATE c`. The parser's trace only; evaluation passes through.
    Collate(Box<Collate>),
    /// `CASE`.
    Case(Box<CaseExpr>),
    /// The `CASE` argument, inside its `WHEN`s; the element, inside an [`ArrayCoerce`]; the value, inside a domain's check.
    CaseTest(CaseTest),
    /// `ARRAY[...]`.
    Array(ArrayExpr),
    /// `ROW(...)`.
    Row(RowExpr),
    /// `ROW(a, b) < ROW(c, d)`.
    RowCompare(Box<RowCompare>),
    /// `COALESCE`.
    Coalesce(Coalesce),
    /// `GREATEST`, `LEAST`.
    MinMax(MinMax),
    /// `CURRENT_DATE`, `CURRENT_USER` and their like.
    SqlValue(SqlValue),
    /// `IS [NOT] NULL`.
    NullTest(Box<NullTest>),
    /// `IS [NOT] TRUE/FALSE/UNKNOWN`.
    BooleanTest(Box<BooleanTest>),
    /// A cast to a domain, which checks its constraints.
    CoerceToDomain(Box<CoerceToDomain>),
    /// `nextval` of an identity column. Only ever an error in a read-only directory.
    NextValue(Oid),
}

/// A column reference. In a `Query`, `relation` is an index (from 1) into the range table of the query `levels_up`
/// levels out, and `attno` a column there. In a `Plan`'s expressions, see [`VarSource`].
#[derive(Clone, Debug, PartialEq)]
pub struct Var {
    /// Which input.
    pub source: VarSource,
    /// Which column: from 1; 0 the whole row; negative a system column.
    pub attno: AttrNumber,
    /// Its type.
    pub type_oid: Oid,
    /// Its typmod, -1 for none.
    pub typmod: i32,
    /// Its collation, 0 for none.
    pub collation: Oid,
    /// How many queries out the range table is.
    pub levels_up: u32,
    /// Where it stands in the statement.
    pub location: Location,
}

/// What a [`Var`] refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum VarSource {
    /// Entry n (from 1) of the range table.
    Relation(usize),
    /// In a plan: output column `attno` of the left (outer) or only child.
    Outer,
    /// In a plan: output column `attno` of the right (inner) child.
    Inner,
    /// In a plan: column `attno` of the index tuple (index-only scans).
    Index,
}

/// A constant of known type.
#[derive(Clone, Debug, PartialEq)]
pub struct Const {
    /// The type; 705 (unknown) for a literal that nothing has decided yet.
    pub type_oid: Oid,
    /// The typmod.
    pub typmod: i32,
    /// The collation.
    pub collation: Oid,
    /// The value, `None` for NULL. An unknown literal holds its text.
    pub value: Option<Datum>,
    /// Where it stands.
    pub location: Location,
}

/// A parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Whose.
    pub kind: ParamKind,
    /// `$n`'s n (from 1), the executor's slot (from 0), or the subquery's output column (from 1).
    pub id: u32,
    /// The type.
    pub type_oid: Oid,
    /// The typmod.
    pub typmod: i32,
    /// The collation.
    pub collation: Oid,
    /// Where it stands.
    pub location: Location,
}

/// Who sets a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParamKind {
    /// The client: `$1`.
    Extern,
    /// The executor: an initplan's result or an outer row's value.
    Exec,
    /// In the test of a [`SubLink`] or [`SubPlan`] only: an output column of the subquery.
    SubLink,
}

/// A function call.
#[derive(Clone, Debug, PartialEq)]
pub struct FuncExpr {
    /// `pg_proc` OID.
    pub function: Oid,
    /// The result type, polymorphism resolved.
    pub result_type: Oid,
    /// Whether it returns a set.
    pub returns_set: bool,
    /// Whether the last argument is a VARIADIC array as written.
    pub variadic: bool,
    /// How it was written.
    pub form: CoercionForm,
    /// The result's collation.
    pub collation: Oid,
    /// The collation its inputs give it.
    pub input_collation: Oid,
    /// The arguments, coerced.
    pub args: Vec<Expr>,
    /// Where it stands.
    pub location: Location,
}

/// How a coercion was written, for display and for "no implicit cast" rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CoercionForm {
    /// As a function call.
    Call,
    /// As `CAST` or `::`.
    ExplicitCast,
    /// Not at all.
    ImplicitCast,
    /// As special SQL syntax, `EXTRACT(...)`.
    SqlSyntax,
}

/// An operator with one or two arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct OpExpr {
    /// `pg_operator` OID.
    pub operator: Oid,
    /// The function behind it, `pg_proc` OID.
    pub function: Oid,
    /// The result type.
    pub result_type: Oid,
    /// Whether it returns a set.
    pub returns_set: bool,
    /// The result's collation.
    pub collation: Oid,
    /// The collation its inputs give it.
    pub input_collation: Oid,
    /// One or two arguments.
    pub args: Vec<Expr>,
    /// Where it stands.
    pub location: Location,
}

/// `scalar op ANY/ALL (array)`.
#[derive(Clone, Debug, PartialEq)]
pub struct ScalarArrayOp {
    /// `pg_operator` OID, scalar op element → bool.
    pub operator: Oid,
    /// The function behind it.
    pub function: Oid,
    /// ANY, else ALL.
    pub any: bool,
    /// The collation its inputs give it.
    pub input_collation: Oid,
    /// The scalar and the array.
    pub args: Box<[Expr; 2]>,
    /// Where it stands.
    pub location: Location,
}

/// AND, OR, NOT.
#[derive(Clone, Debug, PartialEq)]
pub struct BoolExpr {
    /// Which.
    pub kind: BoolKind,
    /// Two or more arguments, one for NOT.
    pub args: Vec<Expr>,
    /// Where it stands.
    pub location: Location,
}

/// Which boolean connective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum BoolKind {
    And,
    Or,
    Not,
}

/// An aggregate call.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggref {
    /// `pg_proc` OID of the aggregate.
    pub function: Oid,
    /// The result type.
    pub result_type: Oid,
    /// The result's collation.
    pub collation: Oid,
    /// The inputs' collation.
    pub input_collation: Oid,
    /// The declared argument types after resolution, direct ones first.
    pub arg_types: Vec<Oid>,
    /// Direct arguments of an ordered-set aggregate.
    pub direct_args: Vec<Expr>,
    /// The aggregated arguments, then any extra ORDER BY expressions as resjunk entries.
    pub args: Vec<TargetEntry>,
    /// ORDER BY inside the call; refers to `args`.
    pub order_by: Vec<SortGroupClause>,
    /// DISTINCT inside the call; refers to `args`.
    pub distinct: Vec<SortGroupClause>,
    /// FILTER (WHERE ...).
    pub filter: Option<Expr>,
    /// `count(*)`.
    pub star: bool,
    /// Whether the last argument is a VARIADIC array as written.
    pub variadic: bool,
    /// `n` normal, `o` ordered-set, `h` hypothetical.
    pub kind: AggregateKind,
    /// How many queries out it belongs.
    pub levels_up: u32,
    /// Where it stands.
    pub location: Location,
}

/// `pg_aggregate.aggkind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum AggregateKind {
    Normal,
    OrderedSet,
    Hypothetical,
}

/// `GROUPING(...)`.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupingFunc {
    /// Its arguments, unevaluated.
    pub args: Vec<Expr>,
    /// The `SortGroupClause::reference`s of the arguments.
    pub refs: Vec<u32>,
    /// How many queries out it belongs.
    pub levels_up: u32,
}

/// A window function call.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowFunc {
    /// `pg_proc` OID.
    pub function: Oid,
    /// The result type.
    pub result_type: Oid,
    /// The result's collation.
    pub collation: Oid,
    /// The inputs' collation.
    pub input_collation: Oid,
    /// The arguments.
    pub args: Vec<Expr>,
    /// FILTER.
    pub filter: Option<Expr>,
    /// Which entry of `Query::window` (its `reference`).
    pub window_ref: u32,
    /// `count(*)`.
    pub star: bool,
    /// Whether it is a plain aggregate.
    pub is_aggregate: bool,
}

/// `x[..]`.
#[derive(Clone, Debug, PartialEq)]
pub struct SubscriptingRef {
    /// The container's type.
    pub container_type: Oid,
    /// The element's type.
    pub element_type: Oid,
    /// The result's type.
    pub result_type: Oid,
    /// The result's typmod.
    pub typmod: i32,
    /// The result's collation.
    pub collation: Oid,
    /// Upper (or only) subscripts; `None` is an omitted slice bound.
    pub upper: Vec<Option<Expr>>,
    /// Lower subscripts; empty where no slice is meant.
    pub lower: Vec<Option<Expr>>,
    /// The container.
    pub container: Expr,
}

/// A subquery in an expression.
#[derive(Clone, Debug, PartialEq)]
pub struct SubLink {
    /// What is asked of it.
    pub kind: SubLinkKind,
    /// For ANY and ALL: the comparison, whose right sides are [`ParamKind::SubLink`] parameters numbered by output column
    /// (from 1) of `query`.
    pub test: Option<Expr>,
    /// The subquery.
    pub query: Query,
    /// Where it stands.
    pub location: Location,
}

/// What is asked of a subquery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SubLinkKind {
    /// `EXISTS (...)`
    Exists,
    /// `x op ALL (...)`
    All,
    /// `x op ANY (...)`, `x IN (...)`
    Any,
    /// `(a, b) op (...)`
    RowCompare,
    /// A scalar subquery.
    Expr,
    /// `ARRAY(...)`
    Array,
}

/// A planned subquery that needs no outer row.
#[derive(Clone, Debug, PartialEq)]
pub struct SubPlan {
    /// What is asked of it.
    pub kind: SubLinkKind,
    /// Index into the plan's list of subplans.
    pub plan_id: usize,
    /// For ANY and ALL: the comparison; its [`ParamKind::SubLink`] parameters are the subplan's output columns.
    pub test: Option<Expr>,
    /// ANY by hashing rather than by walking the rows.
    pub use_hash: bool,
    /// The type of the result.
    pub result_type: Oid,
    /// Its typmod.
    pub typmod: i32,
    /// Its collation.
    pub collation: Oid,
    /// Outer values the subquery depends on: the executor slot its plan reads, and the expression over the outer row that
    /// fills it. Where there are any, the plan is run anew for every row that asks.
    pub correlation: Vec<(u32, Expr)>,
    /// What the test takes from the row, by place; empty until execution splits the test, which then puts the values of
    /// `correlation` behind them.
    pub params: Vec<(u32, Expr)>,
}

/// A field of a row value.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldSelect {
    /// The row.
    pub arg: Expr,
    /// Which field, from 1.
    pub field: AttrNumber,
    /// The field's type.
    pub result_type: Oid,
    /// Its typmod.
    pub typmod: i32,
    /// Its collation.
    pub collation: Oid,
}

/// A change of type only.
#[derive(Clone, Debug, PartialEq)]
pub struct Relabel {
    /// The value.
    pub arg: Box<Expr>,
    /// The new type.
    pub result_type: Oid,
    /// The new typmod.
    pub typmod: i32,
    /// The collation.
    pub collation: Oid,
    /// How it was written.
    pub form: CoercionForm,
}

/// A cast through text.
#[derive(Clone, Debug, PartialEq)]
pub struct CoerceViaIo {
    /// The value.
    pub arg: Box<Expr>,
    /// The new type.
    pub result_type: Oid,
    /// The collation.
    pub collation: Oid,
    /// How it was written.
    pub form: CoercionForm,
}

/// A cast of an array.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayCoerce {
    /// The array.
    pub arg: Expr,
    /// The element's cast, over [`Expr::CaseTest`].
    pub element: Expr,
    /// The new array type.
    pub result_type: Oid,
    /// The new typmod.
    pub typmod: i32,
    /// The collation.
    pub collation: Oid,
    /// How it was written.
    pub form: CoercionForm,
}

/// A row seen as another row type.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvertRowtype {
    /// The row.
    pub arg: Expr,
    /// The new row type.
    pub result_type: Oid,
}

/// `x COLLATE c`.
#[derive(Clone, Debug, PartialEq)]
pub struct Collate {
    /// The value.
    pub arg: Expr,
    /// The collation's OID.
    pub collation: Oid,
}

/// `CASE`.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseExpr {
    /// The result type.
    pub result_type: Oid,
    /// The result's collation.
    pub collation: Oid,
    /// The compared value, which `WHEN`s see as [`Expr::CaseTest`].
    pub arg: Option<Expr>,
    /// Conditions and results.
    pub whens: Vec<(Expr, Expr)>,
    /// `ELSE`; NULL where none was written.
    pub default: Expr,
}

/// A placeholder filled by the expression around it.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseTest {
    /// Its type.
    pub type_oid: Oid,
    /// Its typmod.
    pub typmod: i32,
    /// Its collation.
    pub collation: Oid,
}

/// `ARRAY[...]`.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayExpr {
    /// The array type.
    pub array_type: Oid,
    /// The element type.
    pub element_type: Oid,
    /// The collation.
    pub collation: Oid,
    /// The elements, arrays themselves where `multidims`.
    pub elements: Vec<Expr>,
    /// Whether the elements are arrays of the same type.
    pub multidims: bool,
    /// Where it stands.
    pub location: Location,
}

/// `ROW(...)`.
#[derive(Clone, Debug, PartialEq)]
pub struct RowExpr {
    /// The fields.
    pub args: Vec<Expr>,
    /// 2249 (record) or a named row type.
    pub row_type: Oid,
    /// The fields' names, where the type is record.
    pub names: Vec<String>,
    /// How it was written.
    pub form: CoercionForm,
    /// Where it stands.
    pub location: Location,
}

/// A comparison of rows.
#[derive(Clone, Debug, PartialEq)]
pub struct RowCompare {
    /// Which.
    pub kind: RowCompareKind,
    /// One operator a column.
    pub operators: Vec<Oid>,
    /// Their operator families.
    pub families: Vec<Oid>,
    /// Their collations.
    pub input_collations: Vec<Oid>,
    /// The left row.
    pub left: Vec<Expr>,
    /// The right row.
    pub right: Vec<Expr>,
}

/// The orderings of [`RowCompare`]; equality becomes an AND, inequality an OR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum RowCompareKind {
    Less,
    LessEqual,
    GreaterEqual,
    Greater,
}

/// `COALESCE`.
#[derive(Clone, Debug, PartialEq)]
pub struct Coalesce {
    /// The result type.
    pub result_type: Oid,
    /// The result's collation.
    pub collation: Oid,
    /// The candidates.
    pub args: Vec<Expr>,
}

/// `GREATEST`, `LEAST`.
#[derive(Clone, Debug, PartialEq)]
pub struct MinMax {
    /// The result type.
    pub result_type: Oid,
    /// The result's collation.
    pub collation: Oid,
    /// The inputs' collation.
    pub input_collation: Oid,
    /// GREATEST, else LEAST.
    pub greatest: bool,
    /// The candidates.
    pub args: Vec<Expr>,
}

/// `CURRENT_DATE` and its like.
#[derive(Clone, Debug, PartialEq)]
pub struct SqlValue {
    /// Which.
    pub kind: SqlValueKind,
    /// The result type.
    pub type_oid: Oid,
    /// The precision asked for, -1 for none.
    pub typmod: i32,
}

/// Which SQL value function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum SqlValueKind {
    CurrentDate,
    CurrentTime,
    CurrentTimestamp,
    LocalTime,
    LocalTimestamp,
    CurrentRole,
    CurrentUser,
    User,
    SessionUser,
    CurrentCatalog,
    CurrentSchema,
}

/// `IS [NOT] NULL`.
#[derive(Clone, Debug, PartialEq)]
pub struct NullTest {
    /// The value.
    pub arg: Expr,
    /// `IS NULL`, else `IS NOT NULL`.
    pub is_null: bool,
    /// Whether to look into the fields of a row value.
    pub arg_is_row: bool,
}

/// `IS [NOT] TRUE/FALSE/UNKNOWN`.
#[derive(Clone, Debug, PartialEq)]
pub struct BooleanTest {
    /// The value.
    pub arg: Expr,
    /// What is tested.
    pub kind: BooleanTestKind,
}

/// What a [`BooleanTest`] tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum BooleanTestKind {
    IsTrue,
    IsNotTrue,
    IsFalse,
    IsNotFalse,
    IsUnknown,
    IsNotUnknown,
}

/// A cast to a domain.
#[derive(Clone, Debug, PartialEq)]
pub struct CoerceToDomain {
    /// The value, of the domain's base type.
    pub arg: Expr,
    /// The domain.
    pub result_type: Oid,
    /// Its typmod.
    pub typmod: i32,
    /// Its collation.
    pub collation: Oid,
    /// How it was written.
    pub form: CoercionForm,
}

/// One output column of a query, or one argument of an aggregate.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetEntry {
    /// The value.
    pub expr: Expr,
    /// Its place, from 1.
    pub resno: AttrNumber,
    /// Its name.
    pub name: Option<String>,
    /// Non-zero where a [`SortGroupClause`] refers to it.
    pub sort_group_ref: u32,
    /// The table it comes from unchanged, for the client's RowDescription; 0 otherwise.
    pub origin_table: Oid,
    /// The column there.
    pub origin_column: AttrNumber,
    /// Needed inside only, not part of the result.
    pub junk: bool,
}

/// One item of ORDER BY, GROUP BY, DISTINCT.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SortGroupClause {
    /// The target entry's `sort_group_ref`.
    pub reference: u32,
    /// The equality operator.
    pub equality: Oid,
    /// The ordering operator (`<` or `>` of a btree family), 0 where the type has none.
    pub ordering: Oid,
    /// Descending: whether `ordering` is the family's `>`.
    pub descending: bool,
    /// NULLs come first.
    pub nulls_first: bool,
    /// Whether the equality operator can be hashed.
    pub hashable: bool,
}
