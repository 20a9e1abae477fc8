//! GROUP BY and aggregates: plain, sorted, hashed; in two phases under Gather (`create_grouping_paths`).

use std::rc::Rc;

use stegodon_format::ids::Oid;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::*;
use stegodon_types::{SqlError, SqlResult};

use crate::cost::{self, AggregateCosts, AggregateMethod, Cost, clamp_rows};
use crate::exprs;
use crate::level::Level;
use crate::node::{AggregateSplit, AggregateStrategy};
use crate::path::{GroupColumn, Path, PathKey, PathKind, PathList, common_prefix};
use crate::rel::{Rel, Target};
use crate::relsize::type_width;

/// What is asked of grouping.
pub(crate) struct Grouping {
    pub group_by: Vec<SortGroupClause>,
    /// Whether the group columns are known not to change.
    pub one_group: bool,
    /// The order that grouping by sorting needs; `None` where a column cannot be sorted.
    pub keys: Option<Vec<PathKey>>,
    pub having: Vec<Expr>,
    pub target: Rc<Target>,
}

impl Grouping {
    /// How many columns are compared for each row.
    fn compared(&self, columns: &[GroupColumn]) -> usize {
        if self.one_group { 0 } else { columns.len() }
    }
}

const INTERNAL: Oid = Oid(2281);

impl<'a> Level<'a> {
    fn aggregates(&self, g: &Grouping) -> Vec<Aggref> {
        let mut out: Vec<Aggref> = Vec::new();
        for e in g.target.exprs.iter().map(|(e, _)| e).chain(&g.having) {
            exprs::walk(e, &mut |x| {
                if let Expr::Aggref(a) = x {
                    if !out.iter().any(|o| o == &**a) {
                        out.push((**a).clone());
                    }
                    return false;
                }
                true
            });
        }
        out
    }

    fn aggregate_costs(&self, list: &[Aggref], split: AggregateSplit) -> AggregateCosts {
        let mut out = AggregateCosts { transitions: list.len(), ..AggregateCosts::default() };
        let op = self.settings().cpu_operator_cost;
        let function = |f: Oid| self.catalog().proc(f).map_or(1.0, |p| f64::from(p.cost)) * op;
        for a in list {
            let Some(row) = self.catalog().aggregate(a.function) else { continue };
            let internal = row.transition_type == INTERNAL;
            match split {
                AggregateSplit::Final => {
                    out.transition.per_tuple += function(row.combine);
                    if internal {
                        out.transition.per_tuple += op;
                    }
                }
                _ => out.transition.per_tuple += function(row.transition),
            }
            match split {
                AggregateSplit::Partial => {
                    if internal {
                        out.finalize.per_tuple += op;
                    }
                }
                _ => {
                    if row.finalize.is_valid() {
                        out.finalize.per_tuple += function(row.finalize);
                    }
                }
            }
            if split != AggregateSplit::Final {
                for t in &a.args {
                    let c = self.expr_cost(&t.expr);
                    out.transition += c;
                }
                if let Some(f) = &a.filter {
                    out.transition += self.expr_cost(f);
                }
            }
            for d in &a.direct_args {
                let c = self.expr_cost(d);
                out.transition.startup += c.startup;
                out.finalize.per_tuple += c.per_tuple;
            }
            let transition_type = self.resolved_transition_type(a, row.transition_type);
            let by_value = self.catalog().type_desc(transition_type).is_some_and(|t| t.by_value);
            if !by_value {
                let space = f64::from(row.transition_space_bytes);
                if space > 0.0 {
                    out.space_bytes += space;
                } else if transition_type == INTERNAL {
                    out.space_bytes += 8192.0;
                } else {
                    let width = f64::from(type_width(self.catalog(), transition_type, -1));
                    out.space_bytes += (width / 8.0).ceil() * 8.0 + 16.0;
                }
            }
        }
        out
    }

    fn resolved_transition_type(&self, a: &Aggref, declared: Oid) -> Oid {
        match declared.0 {
            // anyelement, anynonarray, anycompatible …: the argument's own type.
            2283 | 2776 | 3500 | 5077 | 5079 => a.arg_types.first().copied().unwrap_or(declared),
            2277 | 5078 => a.arg_types.first().copied().unwrap_or(declared),
            _ => declared,
        }
    }

    /// The rows of aggregation and what HAVING costs.
    fn with_having(&self, g: &Grouping, mut c: Cost, groups: f64) -> (Cost, f64) {
        let mut rows = groups;
        if !g.having.is_empty() {
            let mut q = crate::path::QualCost::default();
            g.having.iter().for_each(|h| q += self.expr_cost(h));
            c.startup += q.startup;
            c.total += q.startup + groups * q.per_tuple;
            rows = clamp_rows(groups * self.exprs_selectivity(&g.having));
        }
        (c, rows)
    }

    #[allow(clippy::too_many_arguments)]
    fn aggregate_path(
        &self,
        g: &Grouping,
        child: &Rc<Path<'a>>,
        method: AggregateMethod,
        split: AggregateSplit,
        costs: &AggregateCosts,
        groups: f64,
        columns: &[GroupColumn],
        target: &Rc<Target>,
    ) -> Path<'a> {
        let s = self.settings();
        let groups = if method == AggregateMethod::Plain { 1.0 } else { groups };
        let input = Cost { startup: child.startup, total: child.total };
        let mut c =
            cost::aggregate(s, method, costs, g.compared(columns), groups, input, child.rows, child.target.width);
        let mut rows = groups;
        if split != AggregateSplit::Partial {
            (c, rows) = self.with_having(g, c, groups);
        }
        c.startup += target.cost.startup;
        c.total += target.cost.startup + target.cost.per_tuple * rows;
        let disabled = child.disabled + u32::from(method == AggregateMethod::Hashed && !s.enable_hashagg);
        Path {
            kind: PathKind::Aggregate {
                child: Rc::clone(child),
                strategy: match method {
                    AggregateMethod::Plain => AggregateStrategy::Plain,
                    AggregateMethod::Sorted => AggregateStrategy::Sorted,
                    AggregateMethod::Hashed => AggregateStrategy::Hashed,
                },
                split,
                groups: columns.to_vec(),
                having: if split == AggregateSplit::Partial { Vec::new() } else { g.having.clone() },
            },
            target: Rc::clone(target),
            rows,
            startup: c.startup,
            total: c.total,
            disabled,
            parallel_safe: child.parallel_safe && split == AggregateSplit::Partial,
            parallel_aware: false,
            workers: child.workers,
            pathkeys: if method == AggregateMethod::Sorted { child.pathkeys.clone() } else { Vec::new() },
        }
    }

    /// `child` in the group order: as it is, or sorted. `None` where sorting it is not worth considering.
    fn in_group_order(&self, child: &Rc<Path<'a>>, keys: &[PathKey], is_cheapest: bool) -> Option<Rc<Path<'a>>> {
        let presorted = common_prefix(keys, &child.pathkeys);
        if presorted == keys.len() {
            return Some(Rc::clone(child));
        }
        let incremental = self.settings().enable_incremental_sort;
        if !is_cheapest && (presorted == 0 || !incremental) {
            return None;
        }
        Some(Rc::new(if presorted == 0 || !incremental {
            self.sort_path(child, keys.to_vec(), -1.0)
        } else {
            self.incremental_sort_path(child, keys.to_vec(), presorted, -1.0)
        }))
    }

    fn group_path(
        &self,
        g: &Grouping,
        child: &Rc<Path<'a>>,
        groups: f64,
        columns: &[GroupColumn],
        whole: bool,
        target: &Rc<Target>,
    ) -> Path<'a> {
        let input = Cost { startup: child.startup, total: child.total };
        let mut c = cost::group(self.settings(), input, child.rows, g.compared(columns));
        let mut rows = groups;
        if whole {
            (c, rows) = self.with_having(g, c, groups);
        }
        c.startup += target.cost.startup;
        c.total += target.cost.startup + target.cost.per_tuple * rows;
        Path {
            kind: PathKind::Group {
                child: Rc::clone(child),
                groups: columns.to_vec(),
                having: if whole { g.having.clone() } else { Vec::new() },
            },
            target: Rc::clone(target),
            rows,
            startup: c.startup,
            total: c.total,
            disabled: child.disabled,
            parallel_safe: child.parallel_safe && !whole,
            parallel_aware: false,
            workers: child.workers,
            pathkeys: child.pathkeys.clone(),
        }
    }
}

/// The target of the first of two phases: group columns and the aggregates themselves.
fn partial_target(level: &Level<'_>, g: &Grouping) -> Rc<Target> {
    let mut out = Target::default();
    let mut rest = Vec::new();
    for (e, r) in &g.target.exprs {
        if *r != 0 && g.group_by.iter().any(|c| c.reference == *r) {
            out.exprs.push((e.clone(), *r));
        } else {
            rest.push(e);
        }
    }
    let mut parts = Vec::new();
    for e in rest.into_iter().chain(&g.having) {
        exprs::pull_vars(e, &mut |x| matches!(x, Expr::Aggref(_)), &mut parts);
    }
    parts.iter().for_each(|p| out.add(p));
    let mut target = (*level.costed(out)).clone();
    // A state's width is its own, not the result's.
    target.width = target
        .exprs
        .iter()
        .map(|(e, _)| match e {
            Expr::Aggref(a) => {
                let declared = level.catalog().aggregate(a.function).map_or(INTERNAL, |r| r.transition_type);
                let t = level.resolved_transition_type(a, declared);
                type_width(level.catalog(), if t == INTERNAL { Oid(17) } else { t }, -1)
            }
            e => level.expr_width(e),
        })
        .sum();
    Rc::new(target)
}

/// Plans grouping over what FROM gave.
pub(crate) fn plan_grouping<'a>(level: &mut Level<'a>, input: Rel<'a>, g: &Grouping) -> SqlResult<Rel<'a>> {
    let aggregates = level.aggregates(g);
    for a in &aggregates {
        if a.levels_up > 0 {
            return Err(SqlError::unsupported("an aggregate of an outer query"));
        }
        if a.args.iter().any(|t| exprs::has_aggregate(&t.expr)) {
            return Err(SqlError::new(
                stegodon_types::SqlState::GroupingError,
                "aggregate function calls cannot be nested",
            ));
        }
    }
    let columns = level.group_columns(&g.group_by)?;
    let exprs_of: Vec<Expr> = columns.iter().filter(|_| !g.one_group).map(|c| c.expr.clone()).collect();
    let mut out = Rel::new(0, input.relids.clone(), level.tuple_fraction > 0.0);
    out.target = Rc::clone(&g.target);
    let Some(cheapest) = input.list.cheapest_total().cloned() else {
        return Err(SqlError::internal("nothing to group"));
    };
    if g.group_by.is_empty() && aggregates.is_empty() {
        // HAVING alone: one row, or none.
        let mut filter_cost = crate::path::QualCost::default();
        g.having.iter().for_each(|h| filter_cost += level.expr_cost(h));
        let startup = filter_cost.startup + filter_cost.per_tuple;
        out.rows = 1.0;
        out.list.add(Path {
            kind: PathKind::Result { child: None, filter: g.having.clone() },
            target: Rc::clone(&g.target),
            rows: 1.0,
            startup,
            total: startup + level.settings().cpu_tuple_cost,
            disabled: 0,
            parallel_safe: false,
            parallel_aware: false,
            workers: 0,
            pathkeys: Vec::new(),
        });
        return Ok(out);
    }
    let presorted_only = aggregates.iter().any(|a| !a.order_by.is_empty() || !a.distinct.is_empty());
    let can_hash = !g.group_by.is_empty() && g.group_by.iter().all(|c| c.hashable) && !presorted_only;
    let can_sort = g.keys.is_some();
    if !can_hash && !can_sort {
        return Err(SqlError::new(stegodon_types::SqlState::FeatureNotSupported, "could not implement GROUP BY")
            .detail("Some of the datatypes only support hashing, while others only support sorting."));
    }
    let keys = g.keys.clone().unwrap_or_default();
    let plain = g.group_by.is_empty();
    let sorted_method = if plain { AggregateMethod::Plain } else { AggregateMethod::Sorted };
    let has_aggregates = !aggregates.is_empty();
    let groups = if plain { 1.0 } else { level.distinct_groups(&exprs_of, cheapest.rows) };
    let whole = level.aggregate_costs(&aggregates, AggregateSplit::Whole);

    let partial = if can_split(level, &input, &aggregates, g) {
        let costs = (
            level.aggregate_costs(&aggregates, AggregateSplit::Partial),
            level.aggregate_costs(&aggregates, AggregateSplit::Final),
        );
        Some((plan_partial(level, &input, g, &columns, &exprs_of, can_hash, &keys, &costs.0), costs.1))
    } else {
        None
    };

    if can_sort {
        for p in &input.list.paths {
            let Some(p) = level.in_group_order(p, &keys, Rc::ptr_eq(p, &cheapest)) else { continue };
            let path = if has_aggregates {
                level.aggregate_path(g, &p, sorted_method, AggregateSplit::Whole, &whole, groups, &columns, &g.target)
            } else {
                level.group_path(g, &p, groups, &columns, true, &g.target)
            };
            out.list.add(path);
        }
        if let Some((partial, finals)) = &partial {
            let first = partial.cheapest_total().cloned();
            for p in &partial.paths {
                let is_first = first.as_ref().is_some_and(|f| Rc::ptr_eq(f, p));
                let Some(p) = level.in_group_order(p, &keys, is_first) else { continue };
                let path = if has_aggregates {
                    level.aggregate_path(
                        g,
                        &p,
                        sorted_method,
                        AggregateSplit::Final,
                        finals,
                        groups,
                        &columns,
                        &g.target,
                    )
                } else {
                    level.group_path(g, &p, groups, &columns, true, &g.target)
                };
                out.list.add(path);
            }
        }
    }
    if can_hash {
        let path = level.aggregate_path(
            g,
            &cheapest,
            AggregateMethod::Hashed,
            AggregateSplit::Whole,
            &whole,
            groups,
            &columns,
            &g.target,
        );
        out.list.add(path);
        if let Some((partial, finals)) = &partial
            && let Some(p) = partial.cheapest_total()
        {
            let path = level.aggregate_path(
                g,
                p,
                AggregateMethod::Hashed,
                AggregateSplit::Final,
                finals,
                groups,
                &columns,
                &g.target,
            );
            out.list.add(path);
        }
    }
    for p in &mut out.list.paths {
        let mut new = (**p).clone();
        new.parallel_safe = false;
        *p = Rc::new(new);
    }
    out.rows = out.list.cheapest_total().map_or(groups, |p| p.rows);
    Ok(out)
}

/// Whether aggregation can be done in two phases.
fn can_split(level: &Level<'_>, input: &Rel<'_>, aggregates: &[Aggref], g: &Grouping) -> bool {
    if input.list.partial.is_empty() || (aggregates.is_empty() && g.group_by.is_empty()) {
        return false;
    }
    let safe = |e: &Expr| level.is_parallel_safe(e);
    g.target.exprs.iter().all(|(e, _)| safe(e))
        && g.having.iter().all(safe)
        && aggregates.iter().all(|a| {
            a.kind == AggregateKind::Normal
                && a.distinct.is_empty()
                && a.order_by.is_empty()
                && level.catalog().aggregate(a.function).is_some_and(|r| r.combine.is_valid())
        })
}

#[allow(clippy::too_many_arguments)]
fn plan_partial<'a>(
    level: &mut Level<'a>,
    input: &Rel<'a>,
    g: &Grouping,
    columns: &[GroupColumn],
    exprs_of: &[Expr],
    can_hash: bool,
    keys: &[PathKey],
    costs: &AggregateCosts,
) -> PathList<'a> {
    let mut list = PathList::new(level.tuple_fraction > 0.0);
    let target = partial_target(level, g);
    let Some(first) = input.list.partial.first().cloned() else { return list };
    let plain = g.group_by.is_empty();
    let groups = if plain { 1.0 } else { level.distinct_groups(exprs_of, first.rows) };
    if g.keys.is_some() {
        for p in &input.list.partial {
            let Some(p) = level.in_group_order(p, keys, Rc::ptr_eq(p, &first)) else { continue };
            let method = if plain { AggregateMethod::Plain } else { AggregateMethod::Sorted };
            let path = if costs.transitions > 0 {
                level.aggregate_path(g, &p, method, AggregateSplit::Partial, costs, groups, columns, &target)
            } else {
                level.group_path(g, &p, groups, columns, false, &target)
            };
            list.add_partial(path);
        }
    }
    if can_hash {
        let method = AggregateMethod::Hashed;
        let path = level.aggregate_path(g, &first, method, AggregateSplit::Partial, costs, groups, columns, &target);
        list.add_partial(path);
    }
    // Gathered as they are, and sorted by group in the workers.
    let saved = std::mem::replace(&mut level.query_pathkeys, keys.to_vec());
    level.add_gather_paths(&mut list, None);
    level.query_pathkeys = saved;
    list
}
