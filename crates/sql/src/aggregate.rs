//! Aggregates: where they may stand, what level they belong to, and that everything else is grouped.

use std::sync::Arc;

use pg_query::NodeEnum;
use stegodon_catalog::rows::Proc;
use stegodon_format::ids::{AttrNumber, Oid};
use stegodon_nodes::expr::{
    Aggref, AggregateKind, CoercionForm, Location, SortGroupClause, TargetEntry, Var, VarSource,
};
use stegodon_nodes::query::RangeTableKind;
use stegodon_nodes::{Expr, Query};
use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::call::Decoration;
use crate::coerce::Context;
use crate::context::{Analyzer, ExprKind};
use crate::equal::same;
use crate::function::Candidate;

/// A target entry of an inner list.
pub(crate) fn inner_target(expr: Expr, resno: usize) -> TargetEntry {
    TargetEntry {
        expr,
        resno: AttrNumber(resno as i16),
        name: None,
        sort_group_ref: 0,
        origin_table: Oid::INVALID,
        origin_column: AttrNumber(0),
        junk: false,
    }
}

/// The levels of what stands in an aggregate's arguments.
#[derive(Default)]
struct Levels {
    var: Option<u32>,
    aggregate: Option<(u32, Location)>,
    window: Option<Location>,
    srf: Option<Location>,
}

impl Levels {
    fn expr(&mut self, e: &Expr, depth: u32) {
        match e {
            Expr::Var(v) => {
                if let Some(level) = v.levels_up.checked_sub(depth) {
                    self.var = Some(self.var.map_or(level, |l| l.min(level)));
                }
                return;
            }
            Expr::Aggref(a) => {
                if let Some(level) = a.levels_up.checked_sub(depth)
                    && self.aggregate.is_none_or(|l| level < l.0)
                {
                    self.aggregate = Some((level, a.location));
                }
                return;
            }
            Expr::GroupingFunc(g) => {
                if let Some(level) = g.levels_up.checked_sub(depth)
                    && self.aggregate.is_none_or(|l| level < l.0)
                {
                    self.aggregate = Some((level, None));
                }
            }
            Expr::WindowFunc(_) if depth == 0 => self.window = Some(e.location()),
            Expr::Func(f) if depth == 0 && f.returns_set => self.srf = Some(f.location),
            Expr::SubLink(s) => self.query(&s.query, depth + 1),
            _ => {}
        }
        let _ = e.try_each_child::<()>(&mut |c| {
            self.expr(c, depth);
            Ok(())
        });
    }

    fn query(&mut self, q: &Query, depth: u32) {
        let _ = q.try_each_expr::<()>(&mut |c| {
            self.expr(c, depth);
            Ok(())
        });
        q.subqueries(&mut |s| self.query(s, depth + 1));
    }

    fn of<'e>(exprs: impl IntoIterator<Item = &'e Expr>) -> Self {
        let mut levels = Levels::default();
        for e in exprs {
            levels.expr(e, 0);
        }
        levels
    }
}

impl Analyzer<'_> {
    /// A call of an aggregate, or of one as a window function.
    #[allow(clippy::too_many_arguments, reason = "the parts of a call")]
    pub(crate) fn aggregate_call(
        &mut self,
        proc: &Arc<Proc>,
        candidate: &Candidate,
        args: Vec<Expr>,
        actual: Vec<Oid>,
        arg_names: &[String],
        direct: usize,
        how: Decoration<'_>,
        shown: &str,
        location: Location,
    ) -> SqlResult<Expr> {
        let wrong = |a: &Self, m: String| Err(a.error_at(location, SqlState::WrongObjectType, m));
        let refused = |a: &Self, m: String| Err(a.error_at(location, SqlState::FeatureNotSupported, m));
        let Some(aggregate) = self.cx.catalog.aggregate(proc.oid).cloned() else {
            return Err(SqlError::internal("an aggregate without its row"));
        };
        let kind = match aggregate.kind {
            b'o' => AggregateKind::OrderedSet,
            b'h' => AggregateKind::Hypothetical,
            _ => AggregateKind::Normal,
        };
        if kind == AggregateKind::Normal {
            if how.within_group {
                return wrong(self, format!("{shown} is not an ordered-set aggregate, so it cannot have WITHIN GROUP"));
            }
        } else {
            if !how.within_group {
                return wrong(self, format!("WITHIN GROUP is required for ordered-set aggregate {shown}"));
            }
            if how.over.is_some() {
                return refused(self, format!("OVER is not supported for ordered-set aggregate {shown}"));
            }
            let aggregated = args.len().saturating_sub(direct);
            let missing = |a: &Self, hint: String| {
                let signature = a.function_signature(&[shown.to_owned()], &actual, arg_names);
                let message = format!("function {signature} does not exist");
                Err(a.error_at(location, SqlState::UndefinedFunction, message).hint(hint))
            };
            let requires = |n: usize, least: &str| {
                let s = if n == 1 { "" } else { "s" };
                format!(
                    "There is an ordered-set aggregate {shown}, but it requires {least}{n} direct argument{s}, not {direct}."
                )
            };
            // Where VARIADIC stands for the direct arguments and the aggregated ones.
            let both_variadic = proc.variadic.is_valid() && aggregate.direct_args >= proc.arg_types.len();
            if !both_variadic {
                if direct != aggregate.direct_args {
                    return missing(self, requires(aggregate.direct_args, ""));
                }
            } else if kind == AggregateKind::Hypothetical {
                if candidate.variadic_count != 2 * aggregated {
                    return missing(
                        self,
                        format!(
                            "To use the hypothetical-set aggregate {shown}, the number of hypothetical direct arguments (here {}) must match the number of ordering columns (here {aggregated}).",
                            candidate.variadic_count.saturating_sub(aggregated)
                        ),
                    );
                }
            } else if candidate.variadic_count <= aggregated {
                return missing(self, requires(aggregate.direct_args, "at least "));
            }
        }
        let (mut args, mut actual) = (args, actual);
        if kind == AggregateKind::Hypothetical {
            self.unify_hypothetical(&mut args, &mut actual, direct)?;
        }
        if !arg_names.is_empty() {
            return refused(self, "aggregates cannot use named arguments".to_owned());
        }
        if args.is_empty() && !how.star && !how.within_group {
            return wrong(self, format!("{shown}(*) must be used to call a parameterless aggregate function"));
        }
        if proc.returns_set {
            return self.unsupported(location, "an aggregate that returns a set");
        }
        let (args, result_type, variadic) = self.prepare_args(proc, candidate, args, actual, how.variadic, location)?;
        if how.over.is_some() {
            if how.distinct {
                return refused(self, "DISTINCT is not implemented for window functions".to_owned());
            }
            if !how.order.is_empty() {
                return refused(self, "aggregate ORDER BY is not implemented for window functions".to_owned());
            }
            return self.window_call(proc, args, result_type, how, location);
        }
        self.finish_aggregate(proc, kind, args, direct, result_type, variadic, how, location)
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of a call")]
    fn finish_aggregate(
        &mut self,
        proc: &Proc,
        kind: AggregateKind,
        mut args: Vec<Expr>,
        direct: usize,
        result_type: Oid,
        variadic: bool,
        how: Decoration<'_>,
        location: Location,
    ) -> SqlResult<Expr> {
        let mut arg_types = Vec::new();
        for a in &args {
            arg_types.push(self.expr_type(a)?);
        }
        let mut targets: Vec<TargetEntry>;
        let mut order_by: Vec<SortGroupClause> = Vec::new();
        let mut distinct = Vec::new();
        let mut direct_args = Vec::new();
        if kind == AggregateKind::Normal {
            targets = args.into_iter().enumerate().map(|(i, e)| inner_target(e, i + 1)).collect();
            order_by = self.sort_clause(how.order, &mut targets, ExprKind::OrderBy, true)?;
            if how.distinct {
                distinct = self.distinct_clause(&mut targets, &order_by, true)?;
                for d in &distinct {
                    if d.ordering.is_valid() {
                        continue;
                    }
                    let e = targets.iter().find(|t| t.sort_group_ref == d.reference).map(|t| &t.expr);
                    let ty = e.map_or(Ok(Oid::INVALID), |e| self.expr_type(e))?;
                    let error = self.error_at(
                        e.and_then(Expr::location),
                        SqlState::UndefinedFunction,
                        format!("could not identify an ordering operator for type {}", self.type_name(ty)),
                    );
                    return Err(error.detail("Aggregates with DISTINCT must be able to sort their inputs."));
                }
            }
        } else {
            if how.distinct {
                return self.unsupported(location, "DISTINCT with WITHIN GROUP");
            }
            let aggregated = args.split_off(direct);
            direct_args = args;
            targets = aggregated.into_iter().enumerate().map(|(i, e)| inner_target(e, i + 1)).collect();
            for (i, node) in how.order.iter().enumerate() {
                let Some(NodeEnum::SortBy(s)) = node.node.as_ref() else {
                    return self.unsupported(location, "this ORDER BY");
                };
                self.add_to_sort_list(i, &mut targets, &mut order_by, s)?;
            }
        }
        let filter = how.filter;
        let levels = Levels::of(targets.iter().map(|t| &t.expr).chain(filter.as_ref()));
        let level = self.aggregate_level(&levels)?;
        if !direct_args.is_empty() {
            let direct_levels = Levels::of(direct_args.iter());
            if direct_levels.aggregate.is_some_and(|a| a.0 <= level) {
                return Err(self.error_at(
                    direct_levels.aggregate.and_then(|a| a.1),
                    SqlState::GroupingError,
                    "aggregate function calls cannot be nested",
                ));
            }
            if direct_levels.var.is_some_and(|v| v < level) {
                return Err(self.error_at(
                    location,
                    SqlState::GroupingError,
                    "outer-level aggregate cannot contain a lower-level variable in its direct arguments",
                ));
            }
        }
        self.check_aggregate_place(level, location, "aggregate functions")?;
        self.level_mut(level)?.has_aggregates = true;
        Ok(Expr::Aggref(Box::new(Aggref {
            function: proc.oid,
            result_type,
            collation: Oid::INVALID,
            input_collation: Oid::INVALID,
            arg_types,
            direct_args,
            args: targets,
            order_by,
            distinct,
            filter,
            star: how.star,
            variadic,
            kind,
            levels_up: level,
            location,
        })))
    }

    /// The query level that an aggregate with these arguments belongs to.
    fn aggregate_level(&self, levels: &Levels) -> SqlResult<u32> {
        if let Some(at) = levels.window {
            return Err(self.error_at(
                at,
                SqlState::GroupingError,
                "aggregate function calls cannot contain window function calls",
            ));
        }
        if let Some(at) = levels.srf {
            let e = self.error_at(
                at,
                SqlState::FeatureNotSupported,
                "aggregate function calls cannot contain set-returning function calls",
            );
            return Err(e.hint(SRF_HINT));
        }
        let nested = levels.aggregate.map(|a| a.0);
        let level = match (levels.var, nested) {
            (Some(v), Some(a)) => v.min(a),
            (v, a) => v.or(a).unwrap_or(0),
        };
        if nested == Some(level) {
            return Err(self.error_at(
                levels.aggregate.and_then(|a| a.1),
                SqlState::GroupingError,
                "aggregate function calls cannot be nested",
            ));
        }
        Ok(level)
    }

    /// A hypothetical row's columns and the aggregated ones get common types, rather the aggregated ones'.
    fn unify_hypothetical(&mut self, args: &mut [Expr], actual: &mut [Oid], direct: usize) -> SqlResult<()> {
        let aggregated = args.len().saturating_sub(direct);
        let first = direct.saturating_sub(aggregated);
        for place in first..direct {
            let other = direct + (place - first);
            let (Some(hypothetical), Some(column)) = (args.get(place).cloned(), args.get(other).cloned()) else {
                return Err(SqlError::internal("a hypothetical-set aggregate's arguments do not pair up"));
            };
            let both = [column.clone(), hypothetical.clone()];
            let ty = self.select_common_type(&both, Some("WITHIN GROUP"))?;
            let typmod = self.select_common_typmod(&both, ty);
            for (at, e) in [(place, hypothetical), (other, column)] {
                let from = self.expr_type(&e)?;
                let form = CoercionForm::ImplicitCast;
                let e = self.coerce_type(e, from, ty, typmod, Context::Implicit, form, None)?;
                if let (Some(arg), Some(actual)) = (args.get_mut(at), actual.get_mut(at)) {
                    (*arg, *actual) = (e, ty);
                }
            }
        }
        Ok(())
    }

    /// The level of a GROUPING over these arguments, and whether it may stand there.
    pub(crate) fn grouping_level(&self, args: &[Expr], location: Location) -> SqlResult<u32> {
        let level = self.aggregate_level(&Levels::of(args.iter()))?;
        self.check_aggregate_place(level, location, "grouping operations")?;
        Ok(level)
    }

    fn check_aggregate_place(&self, level: u32, location: Location, what: &str) -> SqlResult<()> {
        let message = match self.level(level)?.kind {
            ExprKind::Having
            | ExprKind::WindowPartition
            | ExprKind::WindowOrder
            | ExprKind::SelectTarget
            | ExprKind::OrderBy
            | ExprKind::DistinctOn
            | ExprKind::Other => return Ok(()),
            ExprKind::JoinOn | ExprKind::JoinUsing => {
                format!("{what} are not allowed in JOIN conditions")
            }
            ExprKind::FromSubselect => {
                format!("{what} are not allowed in FROM clause of their own query level")
            }
            ExprKind::FromFunction => format!("{what} are not allowed in functions in FROM"),
            ExprKind::WindowFrameRange => format!("{what} are not allowed in window RANGE"),
            ExprKind::WindowFrameRows => format!("{what} are not allowed in window ROWS"),
            ExprKind::WindowFrameGroups => format!("{what} are not allowed in window GROUPS"),
            ExprKind::ExecuteParameter => format!("{what} are not allowed in EXECUTE parameters"),
            ExprKind::None => return self.unsupported(location, "an aggregate here"),
            other => format!("{what} are not allowed in {}", other.name()),
        };
        Err(self.error_at(location, SqlState::GroupingError, message))
    }

    /// Checks that a grouped query uses no ungrouped column outside of aggregates. The query's range table is still the
    /// analyser's.
    pub fn check_grouping(&self, query: &Query) -> SqlResult<()> {
        let mut grouped: Vec<&Expr> = Vec::new();
        for clause in &query.group_by {
            if let Some(t) = query.targets.iter().find(|t| t.sort_group_ref == clause.reference) {
                grouped.push(&t.expr);
            }
        }
        if let Some(bad) = grouped.iter().find(|e| contains_own_aggregate(e)) {
            return Err(self.error_at(
                bad.location(),
                SqlState::GroupingError,
                "aggregate functions are not allowed in GROUP BY",
            ));
        }
        // With grouping sets, only what is in all of them is always there.
        let in_all = |r: u32| query.grouping_sets.iter().all(|s| s.contains(&r));
        let always = query
            .group_by
            .iter()
            .filter(|c| in_all(c.reference))
            .filter_map(|c| query.targets.iter().find(|t| t.sort_group_ref == c.reference))
            .map(|t| &t.expr)
            .collect();
        let check = GroupingCheck { analyzer: self, query, grouped, always };
        for t in &query.targets {
            check.expr(&t.expr, 0, false)?;
        }
        query.having.as_ref().map_or(Ok(()), |h| check.expr(h, 0, false))
    }
}

pub(crate) const SRF_HINT: &str = "You might be able to move the set-returning function into a LATERAL FROM item.";

/// Whether an aggregate of this query level is in the expression.
pub(crate) fn contains_own_aggregate(e: &Expr) -> bool {
    Levels::of([e]).aggregate.is_some_and(|a| a.0 == 0)
}

/// Where the first aggregate of this query level is.
pub(crate) fn first_aggregate(e: &Expr) -> Location {
    Levels::of([e]).aggregate.filter(|a| a.0 == 0).and_then(|a| a.1)
}

/// Whether a Var of this query level is in the expression.
pub(crate) fn contains_own_var(e: &Expr) -> bool {
    Levels::of([e]).var == Some(0)
}

struct GroupingCheck<'a> {
    analyzer: &'a Analyzer<'a>,
    query: &'a Query,
    grouped: Vec<&'a Expr>,
    always: Vec<&'a Expr>,
}

impl GroupingCheck<'_> {
    fn expr(&self, e: &Expr, depth: u32, in_direct_args: bool) -> SqlResult<()> {
        stacker::maybe_grow(crate::context::STACK_RED_ZONE_BYTES, crate::context::STACK_BYTES, || {
            self.expr_below(e, depth, in_direct_args)
        })
    }

    fn expr_below(&self, e: &Expr, depth: u32, in_direct_args: bool) -> SqlResult<()> {
        match e {
            Expr::Const(_) | Expr::Param(_) => return Ok(()),
            Expr::Aggref(a) => {
                if a.levels_up == depth {
                    // Its arguments are free; its direct arguments are evaluated once a group.
                    return a.direct_args.iter().try_for_each(|d| self.expr(d, depth, true));
                }
                if a.levels_up > depth {
                    return Ok(());
                }
            }
            Expr::GroupingFunc(g) if g.levels_up >= depth => return Ok(()),
            _ => {}
        }
        if depth == 0 && self.grouped.iter().any(|g| !matches!(g, Expr::Var(_)) && same(e, g)) {
            return Ok(());
        }
        if let Expr::Var(v) = e {
            return if v.levels_up == depth { self.var(v, depth, in_direct_args) } else { Ok(()) };
        }
        if let Expr::SubLink(s) = e {
            self.subquery(&s.query, depth + 1)?;
        }
        e.try_each_child(&mut |c| self.expr(c, depth, in_direct_args))
    }

    fn subquery(&self, q: &Query, depth: u32) -> SqlResult<()> {
        q.try_each_expr(&mut |c| self.expr(c, depth, false))?;
        let mut result = Ok(());
        q.subqueries(&mut |s| {
            if result.is_ok() {
                result = self.subquery(s, depth + 1);
            }
        });
        result
    }

    fn var(&self, v: &Var, depth: u32, in_direct_args: bool) -> SqlResult<()> {
        let VarSource::Relation(rtindex) = v.source else {
            return Err(SqlError::internal("a planned Var in analysis"));
        };
        let columns = |list: &[&Expr]| -> Vec<AttrNumber> {
            let of_entry = |g: &&Expr| match g {
                Expr::Var(g) if g.source == v.source && g.levels_up == 0 => Some(g.attno),
                _ => None,
            };
            list.iter().filter_map(of_entry).collect()
        };
        let always = columns(&self.always);
        if columns(&self.grouped).contains(&v.attno) {
            return Ok(());
        }
        let Some(rte) = rtindex.checked_sub(1).and_then(|i| self.query.range_table.get(i)) else {
            return Err(SqlError::internal("a Var without an entry"));
        };
        // Grouped by its primary key, a table's columns are all determined.
        if let RangeTableKind::Relation { relation, .. } = rte.kind {
            let key = self.analyzer.catalog().constraints(relation).iter().find(|c| c.kind == b'p');
            let deferrable = key.and_then(|k| self.analyzer.catalog().relation(k.index)).and_then(|i| i.index.clone());
            if let Some(key) = key
                && deferrable.is_some_and(|i| i.immediate)
                && !key.columns.is_empty()
                && key.columns.iter().all(|c| always.contains(c))
            {
                return Ok(());
            }
        }
        let column = match v.attno.0 {
            0 => "*".to_owned(),
            n if n < 0 => system_column_name(n).to_owned(),
            n => rte.columns.get((n - 1) as usize).cloned().unwrap_or_default(),
        };
        let message = if depth == 0 {
            format!(
                "column \"{}.{column}\" must appear in the GROUP BY clause or be used in an aggregate function",
                rte.name
            )
        } else {
            format!("subquery uses ungrouped column \"{}.{column}\" from outer query", rte.name)
        };
        let e = self.analyzer.error_at(v.location, SqlState::GroupingError, message);
        Err(if in_direct_args && depth == 0 {
            e.detail("Direct arguments of an ordered-set aggregate must use only grouped columns.")
        } else {
            e
        })
    }
}

fn system_column_name(attno: i16) -> &'static str {
    match attno {
        -1 => "ctid",
        -2 => "xmin",
        -3 => "cmin",
        -4 => "xmax",
        -5 => "cmax",
        _ => "tableoid",
    }
}
