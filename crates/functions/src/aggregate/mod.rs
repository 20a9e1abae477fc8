//! Aggregates: one accumulator for all groups, without DataFusion's.
//!
//! ```text
//!  Aggref ──aggregate()──▶ AggregatePlan: arguments and FILTER compiled, layouts
//!                            │ create()
//!                            ▼
//!                          Accumulator   update(args, groups) … state() / merge() … evaluate()
//!                            └ DISTINCT and ORDER BY: `ordered` collects, sorts by key, feeds the plain one
//! ```
//!
//! Rows reach an accumulator in the order they are given, and floats are added in that order. A plan says whether merging
//! states gives the very result that one pass gives ([`AggregatePlan::exact_merge`]); where not, the executor must not
//! split the work.

mod bytes;
mod collect;
mod count;
mod float;
mod fold;
mod interval;
mod json;
mod min_max;
mod numeric;
mod ordered;
mod ordered_set;
mod ranges;
mod regression;
mod table;

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray};
use stegodon_format::ids::AttrNumber;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::{Aggref, AggregateKind, TargetEntry, WindowFunc};
use stegodon_types::{Collation, Datum, Layout, Oid, SqlError, SqlResult, SqlState, TypeDesc, names::sql_name, oids};

use crate::compile::row_names;
use crate::eval::layout_of;

use crate::{CompileContext, EvalContext, Evaluator};

/// Which groups to hand out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emit {
    /// All; the accumulator is empty afterwards.
    All,
    /// The first n; the others move down to 0.
    First(usize),
}

/// The state of one aggregate for all groups. Groups are numbered from 0 by the caller.
pub trait GroupAggregate: Send {
    /// Adds rows: `args` have one value a row, `groups` says which group each row is of (all below `n_groups`).
    fn update(&mut self, cx: &EvalContext<'_>, args: &[ArrayRef], groups: &[usize], n_groups: usize) -> SqlResult<()>;
    /// Adds states that [`GroupAggregate::state`] gave.
    fn merge(&mut self, cx: &EvalContext<'_>, states: &[ArrayRef], groups: &[usize], n_groups: usize) -> SqlResult<()>;
    /// Hands out groups as states.
    fn state(&mut self, emit: Emit) -> SqlResult<Vec<ArrayRef>>;
    /// The results of the first groups as they are now: they stay, and rows may be added after.
    fn results(&mut self, cx: &EvalContext<'_>, n_groups: usize) -> SqlResult<ArrayRef>;
    /// How many groups there are. Groups that no row reached are those below `n_groups` of the last call.
    fn n_groups(&self) -> usize;
    /// Drops groups.
    fn discard(&mut self, emit: Emit);
    /// Hands out groups as results.
    fn evaluate(&mut self, cx: &EvalContext<'_>, emit: Emit) -> SqlResult<ArrayRef> {
        let n_groups = match emit {
            Emit::All => self.n_groups(),
            Emit::First(n) => n.min(self.n_groups()),
        };
        let results = self.results(cx, n_groups)?;
        self.discard(emit);
        Ok(results)
    }
    /// Makes room for groups that no row may reach: they have the aggregate's value over no rows.
    fn grow(&mut self, n_groups: usize);
    /// How much memory it holds.
    fn memory_bytes(&self) -> usize;
}

/// What making an accumulator needs to know.
#[derive(Clone, Debug)]
pub(crate) struct AggregateInfo {
    pub arg_types: Vec<Arc<TypeDesc>>,
    pub result_type: Arc<TypeDesc>,
    pub layout: Layout,
    pub collation: Collation,
    /// The direct arguments of an ordered-set aggregate, which read no column.
    pub direct: Vec<Arc<Evaluator>>,
    /// Of each argument that is a record written as `ROW(…)`, its columns' names.
    pub row_names: Vec<Option<Vec<String>>>,
}

impl AggregateInfo {
    pub(crate) fn arg(&self, n: usize) -> SqlResult<&Arc<TypeDesc>> {
        self.arg_types.get(n).ok_or_else(|| SqlError::internal("an aggregate has too few arguments"))
    }
}

/// Makes an accumulator.
pub(crate) type Create = fn(&AggregateInfo) -> SqlResult<Box<dyn GroupAggregate>>;

/// What is known of one aggregate function.
#[derive(Clone, Copy)]
pub(crate) struct AggregateFunction {
    pub create: Create,
    /// The states' layouts, given the call.
    pub states: fn(&AggregateInfo) -> SqlResult<Vec<Layout>>,
    /// Whether merging states equals one pass.
    pub exact_merge: bool,
}

/// An aggregate call, compiled.
pub struct AggregatePlan {
    info: AggregateInfo,
    function: AggregateFunction,
    order: Option<Arc<ordered::Order>>,
    arguments: Vec<Evaluator>,
    filter: Option<Evaluator>,
    state_layouts: Vec<Layout>,
}

/// Whether there is an aggregate of this OID.
pub fn aggregate_exists(function: Oid) -> bool {
    table::function(function).is_some()
}

/// Compiles an aggregate call. `0A000` names what is not known.
pub fn aggregate(aggref: &Aggref, cx: &CompileContext<'_>) -> SqlResult<AggregatePlan> {
    let arg_types = aggref
        .args
        .iter()
        .filter(|t| !t.junk)
        .map(|t| cx.types.type_desc(t.expr.type_oid()))
        .collect::<SqlResult<Vec<_>>>()?;
    let name = || {
        let args = arg_types.iter().map(|a| sql_name(a)).collect::<Vec<_>>().join(", ");
        match cx.catalog.proc(aggref.function) {
            Some(proc) => format!("aggregate {}({args})", proc.name),
            None => format!("aggregate with OID {} ({args})", aggref.function),
        }
    };
    let reads_column = |e: &Expr| e.any(&mut |e| matches!(e, Expr::Var(_)));
    if aggref.kind == AggregateKind::Hypothetical || aggref.direct_args.iter().any(reads_column) {
        return Err(SqlError::unsupported(name()));
    }
    // max and min of the catalogs' vectors compare as arrays do, which their own order does not.
    let vector = arg_types.iter().any(|t| matches!(t.oid, oids::OIDVECTOR | oids::INT2VECTOR));
    if vector && matches!(aggref.function.0, 2050 | 2051) {
        return Err(SqlError::unsupported(name()));
    }
    let Some(function) = table::function(aggref.function) else {
        return Err(SqlError::unsupported(name()));
    };
    let result_type = cx.types.type_desc(aggref.result_type)?;
    let info = AggregateInfo {
        arg_types,
        layout: layout_of(&result_type)?,
        result_type,
        collation: cx.types.collation(aggref.input_collation)?,
        row_names: aggref.args.iter().map(|t| row_names(&t.expr)).collect(),
        direct: aggref.direct_args.iter().map(|e| Evaluator::compile(e, cx).map(Arc::new)).collect::<SqlResult<_>>()?,
    };
    let arguments = aggref.args.iter().map(|t| Evaluator::compile(&t.expr, cx)).collect::<SqlResult<Vec<_>>>()?;
    let filter = aggref.filter.as_ref().map(|f| Evaluator::compile(f, cx)).transpose()?;
    let order = ordered::Order::of(aggref, cx)?.map(Arc::new);
    let state_layouts = match &order {
        Some(_) => vec![Layout::Bytes],
        None => (function.states)(&info)?,
    };
    // A fault in the call shows now, not at the first row.
    (function.create)(&info)?;
    Ok(AggregatePlan { info, function, order, arguments, filter, state_layouts })
}

/// Compiles a plain aggregate that is called over a window. One accumulator serves a whole partition: [`Accumulator::push`]
/// rows as the frame's end moves on, read [`Accumulator::result`] as often as needed, and where the frame's start moves,
/// [`Accumulator::reset`] and push the new frame.
pub fn window_aggregate(call: &WindowFunc, cx: &CompileContext<'_>) -> SqlResult<AggregatePlan> {
    let args = call.args.iter().enumerate().map(|(n, expr)| TargetEntry {
        expr: expr.clone(),
        resno: AttrNumber(n as i16 + 1),
        name: None,
        sort_group_ref: 0,
        origin_table: Oid(0),
        origin_column: AttrNumber(0),
        junk: false,
    });
    let call = Aggref {
        function: call.function,
        result_type: call.result_type,
        collation: call.collation,
        input_collation: call.input_collation,
        arg_types: call.args.iter().map(Expr::type_oid).collect(),
        direct_args: Vec::new(),
        args: args.collect(),
        order_by: Vec::new(),
        distinct: Vec::new(),
        filter: call.filter.clone(),
        star: call.star,
        variadic: false,
        kind: AggregateKind::Normal,
        levels_up: 0,
        location: None,
    };
    aggregate(&call, cx)
}

impl AggregatePlan {
    /// The expressions whose columns [`Accumulator::update`] takes, in order (ORDER BY's own last).
    pub fn arguments(&self) -> &[Evaluator] {
        &self.arguments
    }

    /// FILTER (WHERE …): rows for which it is not true do not reach the accumulator.
    pub fn filter(&self) -> Option<&Evaluator> {
        self.filter.as_ref()
    }

    /// The layouts of a state's columns.
    pub fn state_layouts(&self) -> &[Layout] {
        &self.state_layouts
    }

    /// The result's layout.
    pub fn layout(&self) -> Layout {
        self.info.layout
    }

    /// The result's type.
    pub fn result_type(&self) -> Oid {
        self.info.result_type.oid
    }

    /// Whether merging states, in the order of their rows, gives what one pass over the rows gives. Not so for sums of
    /// floats, where rounding depends on grouping.
    pub fn exact_merge(&self) -> bool {
        self.order.is_some() || self.function.exact_merge
    }

    /// An accumulator without groups.
    pub fn create(&self) -> SqlResult<Accumulator> {
        let plain = (self.function.create)(&self.info)?;
        Ok(Accumulator {
            inner: match &self.order {
                Some(order) => Box::new(ordered::Ordered::new(plain, Arc::clone(order))),
                None => plain,
            },
        })
    }
}

impl std::fmt::Debug for AggregatePlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AggregatePlan").field("info", &self.info).finish_non_exhaustive()
    }
}

/// The state of one aggregate call for all groups.
pub struct Accumulator {
    inner: Box<dyn GroupAggregate>,
}

impl Accumulator {
    /// Adds rows. Where `filter` is given, those for which it is not true are left out.
    pub fn update(
        &mut self,
        cx: &EvalContext<'_>,
        args: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        n_groups: usize,
    ) -> SqlResult<()> {
        self.inner.grow(n_groups);
        if args.iter().any(|a| a.len() != groups.len()) {
            return Err(SqlError::internal("an aggregate's arguments are not of its rows"));
        }
        let Some(filter) = filter else {
            return self.inner.update(cx, args, groups, n_groups);
        };
        if filter.len() != groups.len() {
            return Err(SqlError::internal("an aggregate's filter is not of its rows"));
        }
        let rows: Vec<u32> =
            (0..groups.len()).filter(|&i| filter.is_valid(i) && filter.value(i)).map(|i| i as u32).collect();
        if rows.len() == groups.len() {
            return self.inner.update(cx, args, groups, n_groups);
        }
        let args = args.iter().map(|a| crate::column::take(a, &rows)).collect::<SqlResult<Vec<_>>>()?;
        let groups: Vec<usize> = rows.iter().filter_map(|&r| groups.get(r as usize).copied()).collect();
        self.inner.update(cx, &args, &groups, n_groups)
    }

    /// Adds states.
    pub fn merge(
        &mut self,
        cx: &EvalContext<'_>,
        states: &[ArrayRef],
        groups: &[usize],
        n_groups: usize,
    ) -> SqlResult<()> {
        self.inner.grow(n_groups);
        self.inner.merge(cx, states, groups, n_groups)
    }

    /// Makes room for groups that no row may reach.
    pub fn grow(&mut self, n_groups: usize) {
        self.inner.grow(n_groups);
    }

    /// Hands out groups as states.
    pub fn state(&mut self, emit: Emit) -> SqlResult<Vec<ArrayRef>> {
        self.inner.state(emit)
    }

    /// Hands out groups as results.
    pub fn evaluate(&mut self, cx: &EvalContext<'_>, emit: Emit) -> SqlResult<ArrayRef> {
        self.inner.evaluate(cx, emit)
    }

    /// The results of the first groups as they are now. The groups stay and more rows may be added: this is what a
    /// window's moving frame reads.
    pub fn results(&mut self, cx: &EvalContext<'_>, n_groups: usize) -> SqlResult<ArrayRef> {
        self.inner.grow(n_groups);
        self.inner.results(cx, n_groups)
    }

    /// Forgets everything: as new.
    pub fn reset(&mut self) {
        self.inner.discard(Emit::All);
    }

    /// Adds rows `rows` of the columns to one group: the way of a window frame, whose single group is 0.
    pub fn push(&mut self, cx: &EvalContext<'_>, args: &[ArrayRef], rows: Range<usize>) -> SqlResult<()> {
        if args.iter().any(|a| a.len() < rows.end) || rows.start > rows.end {
            return Err(SqlError::internal("a window's frame reaches beyond its columns"));
        }
        let args: Vec<ArrayRef> = args.iter().map(|a| a.slice(rows.start, rows.len())).collect();
        self.inner.grow(1);
        self.inner.update(cx, &args, &vec![0; rows.len()], 1)
    }

    /// The result over the rows pushed so far, as an array of one value.
    pub fn result(&mut self, cx: &EvalContext<'_>) -> SqlResult<ArrayRef> {
        self.results(cx, 1)
    }

    /// How much memory it holds.
    pub fn memory_bytes(&self) -> usize {
        self.inner.memory_bytes()
    }
}

/// Takes the groups to hand out off the front.
pub(crate) fn take_groups<T>(from: &mut Vec<T>, emit: Emit) -> Vec<T> {
    match emit {
        Emit::All => std::mem::take(from),
        Emit::First(n) => {
            let rest = from.split_off(n.min(from.len()));
            std::mem::replace(from, rest)
        }
    }
}

/// The first groups, all where there are fewer.
pub(crate) fn first<T>(groups: &[T], n_groups: usize) -> &[T] {
    groups.get(..n_groups).unwrap_or(groups)
}

/// Direct argument `n`.
pub(crate) fn direct(cx: &EvalContext<'_>, info: &AggregateInfo, n: usize) -> SqlResult<Option<Datum>> {
    info.direct.get(n).ok_or_else(|| SqlError::internal("an aggregate has too few arguments"))?.evaluate_const(cx)
}

/// Argument `n`.
pub(crate) fn arg(args: &[ArrayRef], n: usize) -> SqlResult<&ArrayRef> {
    args.get(n).ok_or_else(|| SqlError::internal("an aggregate was given too few columns"))
}

/// A group's place.
/// Rows that follow one another in the same group, with their group. One group of all is one run; sorted groups are few.
pub(crate) fn runs(groups: &[usize]) -> impl Iterator<Item = (usize, Range<usize>)> + '_ {
    let mut start = 0;
    groups.chunk_by(|a, b| a == b).filter_map(move |run| {
        let rows = start..start + run.len();
        start = rows.end;
        run.first().map(|group| (*group, rows))
    })
}

pub(crate) fn slot<T>(groups: &mut [T], group: usize) -> SqlResult<&mut T> {
    groups.get_mut(group).ok_or_else(|| SqlError::internal("a row is of a group that does not exist"))
}

/// "value out of range: overflow"
pub(crate) fn float_overflow() -> SqlError {
    SqlError::new(SqlState::NumericValueOutOfRange, "value out of range: overflow")
}
