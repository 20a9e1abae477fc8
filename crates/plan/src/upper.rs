//! Above FROM and WHERE: grouping, DISTINCT, ORDER BY, LIMIT (`planner.c`).

use std::rc::Rc;

use stegodon_nodes::Expr;
use stegodon_nodes::expr::*;
use stegodon_types::{Datum, SqlError, SqlResult};

use crate::cost::{self, Cost, clamp_rows};
use crate::exprs;
use crate::grouping::Grouping;
use crate::level::Level;
use crate::path::{GroupColumn, Path, PathKey, PathKind, PathList, common_prefix};
use crate::rel::{Rel, Target};

/// LIMIT and OFFSET as planning sees them: 0 none, -1 not known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    pub count: i64,
    pub offset: i64,
    pub needed: bool,
}

impl<'a> Level<'a> {
    /// What is known of LIMIT and OFFSET; adjusts the part of the rows that is wanted.
    pub(crate) fn prepare_limit(&mut self) -> Limits {
        let known = |e: &Option<Expr>| match e {
            None => Some(0),
            Some(e) => match self.estimate_value(e) {
                Some(None) => Some(0),
                Some(Some(Datum::Int64(n))) => Some(n),
                _ => None,
            },
        };
        let count = match known(&self.query.limit) {
            Some(0) if self.query.limit.is_none() || self.is_null(&self.query.limit) => 0,
            Some(n) => n.max(1),
            None => -1,
        };
        let offset = known(&self.query.offset).map_or(-1, |n| n.max(0));
        if count != 0 {
            let limit = if count < 0 || offset < 0 { 0.10 } else { count as f64 + offset as f64 };
            let t = self.tuple_fraction;
            self.tuple_fraction = if t >= 1.0 {
                if limit >= 1.0 { t.min(limit) } else { t }
            } else if t > 0.0 {
                if limit >= 1.0 { limit } else { t.min(limit) }
            } else {
                limit
            };
        }
        let constant_null_or_none = |e: &Option<Expr>| e.is_none() || self.is_null(e);
        let needed = !constant_null_or_none(&self.query.limit)
            || !(constant_null_or_none(&self.query.offset)
                || matches!(&self.query.offset, Some(Expr::Const(Const { value: Some(Datum::Int64(0)), .. }))));
        Limits { count, offset, needed }
    }

    fn is_null(&self, e: &Option<Expr>) -> bool {
        matches!(e, Some(Expr::Const(Const { value: None, .. })))
    }

    fn target_expr(&self, reference: u32) -> Option<Expr> {
        self.query.targets.iter().find(|t| t.sort_group_ref == reference && reference != 0).map(|t| t.expr.clone())
    }

    /// The order of sort clauses over the query's targets; `None` where one cannot be sorted.
    pub(crate) fn clause_pathkeys(&mut self, clauses: &[SortGroupClause]) -> Option<Vec<PathKey>> {
        let targets = self.query.targets.clone();
        self.pathkeys_for(clauses, &|r| {
            targets.iter().find(|t| t.sort_group_ref == r && r != 0).map(|t| t.expr.clone())
        })
    }

    pub(crate) fn group_columns(&self, clauses: &[SortGroupClause]) -> SqlResult<Vec<GroupColumn>> {
        clauses
            .iter()
            .map(|c| {
                let expr = self.target_expr(c.reference);
                let expr = expr.ok_or_else(|| SqlError::internal("a sort reference without its target"))?;
                Ok(GroupColumn { expr, equality: c.equality })
            })
            .collect()
    }

    fn apply(&self, list: &mut PathList<'a>, target: &Rc<Target>) {
        let safe = target.exprs.iter().all(|(e, _)| self.is_parallel_safe(e));
        let cpu = self.settings().cpu_tuple_cost;
        for p in &mut list.paths {
            *p = p.projected(target, safe, cpu);
        }
        if safe {
            for p in &mut list.partial {
                *p = p.projected(target, safe, cpu);
            }
        } else {
            list.partial.clear();
        }
    }
}

/// Groups in the order of ORDER BY as far as that goes, so that one sort serves both (`preprocess_groupclause`).
fn ordered_groups(group_by: &[SortGroupClause], order_by: &[SortGroupClause]) -> Vec<SortGroupClause> {
    let mut out: Vec<SortGroupClause> = Vec::new();
    for o in order_by {
        let Some(g) = group_by.iter().find(|g| g.equality == o.equality && g.reference == o.reference) else { break };
        if g.ordering == o.ordering && g.nulls_first == o.nulls_first || g.equality == o.equality {
            let mut g = g.clone();
            g.ordering = o.ordering;
            g.descending = o.descending;
            g.nulls_first = o.nulls_first;
            out.push(g);
        } else {
            break;
        }
    }
    if out.is_empty() {
        return group_by.to_vec();
    }
    for g in group_by {
        if !out.iter().any(|o| o.reference == g.reference) {
            if !g.ordering.is_valid() {
                return group_by.to_vec();
            }
            out.push(g.clone());
        }
    }
    out
}

/// One of several group columns, none of which changes: rather a column than a constant.
fn one_column(level: &Level<'_>, group_by: &[SortGroupClause]) -> Vec<SortGroupClause> {
    let constant = |c: &&SortGroupClause| matches!(level.target_expr(c.reference), Some(Expr::Const(_)) | None);
    group_by.iter().find(|c| !constant(c)).or(group_by.first()).into_iter().cloned().collect()
}

/// Plans a SELECT that is no set operation.
pub(crate) fn plan_select<'a>(level: &mut Level<'a>) -> SqlResult<PathList<'a>> {
    let limits = level.prepare_limit();
    let mut q = level.query.clone();
    let mut windows = crate::window::active_windows(level, &mut q)?;
    level.query = q.clone();
    let grouping = !q.group_by.is_empty() || q.has_aggregates || q.having.is_some();
    let plain_limit = limits.count > 0 && limits.offset >= 0;
    let limit_tuples = if plain_limit { limits.count as f64 + limits.offset as f64 } else { -1.0 };
    let counted = grouping || !q.distinct.is_empty() || q.has_target_srfs || !windows.is_empty();
    level.limit_tuples = if counted { -1.0 } else { limit_tuples };
    let group_by = ordered_groups(&q.group_by, &q.order_by);

    // What is computed where.
    let final_target =
        Target { exprs: q.targets.iter().map(|t| (t.expr.clone(), t.sort_group_ref)).collect(), ..Target::default() };
    let having = q.having.clone().map(exprs::conjuncts).unwrap_or_default();
    let has_srfs = q.has_target_srfs && q.targets.iter().any(|t| exprs::has_srf(&t.expr));
    if has_srfs {
        refuse_nested_srfs(&q.targets)?;
        let grouped = |t: &TargetEntry| q.group_by.iter().any(|g| g.reference == t.sort_group_ref);
        if q.targets.iter().any(|t| t.sort_group_ref != 0 && exprs::has_srf(&t.expr) && grouped(t)) {
            return Err(SqlError::unsupported("a set-returning function in GROUP BY"));
        }
    }
    let postponed = postponed_columns(level, &q.targets, &q.order_by, has_srfs, limits);
    let sort_input = match &postponed {
        Some(late) => reduced(&final_target, late),
        None => final_target.clone(),
    };
    let group_target = if windows.is_empty() {
        sort_input.clone()
    } else {
        crate::window::input_target(&final_target, &windows, &group_by)
    };
    let scan_target = match (grouping, windows.is_empty()) {
        (true, true) => group_input(&sort_input, &group_by, &having),
        (true, false) => group_input(&final_target, &group_by, &having),
        (false, _) => group_target.clone(),
    };
    let mut final_exprs: Vec<Expr> = scan_target.exprs.iter().map(|(e, _)| e.clone()).collect();
    if grouping {
        final_exprs.extend(having.iter().cloned());
    }

    // The orders that are asked for become known once equality classes are.
    let mut group_keys: Option<Vec<PathKey>> = None;
    let mut kept_groups = group_by.clone();
    let mut kept_distinct = q.distinct.clone();
    let mut distinct_keys: Option<Vec<PathKey>> = None;
    let mut sort_keys: Vec<PathKey> = Vec::new();
    let mut keys = |level: &mut Level<'a>| -> SqlResult<()> {
        // Without groups there is nothing to sort by.
        let find = |r: u32| q.targets.iter().find(|t| t.sort_group_ref == r && r != 0).map(|t| t.expr.clone());
        group_keys = level.without_redundant(&group_by, &find).map(|(kept, keys)| {
            kept_groups = kept;
            keys
        });
        if !q.distinct.is_empty() {
            distinct_keys = level.without_redundant(&q.distinct, &find).map(|(kept, keys)| {
                kept_distinct = kept;
                keys
            });
        }
        sort_keys =
            level.clause_pathkeys(&q.order_by).ok_or_else(|| SqlError::unsupported("sorting by this operator"))?;
        let window_keys = match windows.first_mut() {
            Some(w) => level.window_pathkeys(w)?,
            None => Vec::new(),
        };
        level.query_pathkeys = if let Some(g) = group_keys.as_ref().filter(|g| !g.is_empty()) {
            g.clone()
        } else if !window_keys.is_empty() {
            window_keys
        } else if grouping && group_by.is_empty() {
            Vec::new()
        } else if let Some(d) = distinct_keys.as_ref().filter(|d| d.len() > sort_keys.len()) {
            d.clone()
        } else {
            sort_keys.clone()
        };
        Ok(())
    };
    let mut rel = level.plan_from(&final_exprs, &mut keys)?;

    // Where all group columns are known to be constant one of them still tells no rows from a row.
    let one_group = kept_groups.is_empty() && !group_by.is_empty();
    let group_by = if one_group { one_column(level, &group_by) } else { kept_groups };
    let scan_target = match (grouping, windows.is_empty()) {
        (true, true) => group_input(&sort_input, &group_by, &having),
        (true, false) => group_input(&final_target, &group_by, &having),
        (false, _) => scan_target,
    };
    let scan_target = level.costed(without_srfs(&scan_target));
    let parallel_target = scan_target.exprs.iter().all(|(e, _)| level.is_parallel_safe(e));
    if rel.parallel && !parallel_target && rel.relids.len() >= 1 {
        // Gathered before what workers may not do.
        let mut list = std::mem::take(&mut rel.list);
        level.add_gather_paths(&mut list, Some(rel.rows));
        list.partial.clear();
        rel.list = list;
        rel.parallel = false;
    }
    let mut list = std::mem::take(&mut rel.list);
    if rel.dummy {
        let mut p = crate::planner::empty_path(&scan_target);
        p.parallel_safe = false;
        list.paths = vec![Rc::new(p)];
        list.partial.clear();
    } else {
        level.apply(&mut list, &scan_target);
        if rel.parallel && !has_srfs {
            let mut kept = PathList::new(list.consider_startup);
            kept.partial.clone_from(&list.partial);
            kept.paths.clone_from(&list.paths);
            level.add_gather_paths(&mut kept, Some(rel.rows));
            list = kept;
        }
    }
    rel.list = list;
    rel.target = Rc::clone(&scan_target);

    if grouping {
        let target = level.costed(without_srfs(&group_target));
        let keys = group_keys.clone();
        let g = Grouping { group_by: group_by.clone(), one_group, keys, having: having.clone(), target };
        rel = crate::grouping::plan_grouping(level, rel, &g)?;
    }
    if !windows.is_empty() {
        let input = level.costed(without_srfs(&group_target));
        let output = level.costed(without_srfs(&sort_input));
        rel = crate::window::plan_windows(level, rel, &mut windows, &input, &output)?;
    }
    // Those that are postponed are computed above; without any there is nothing to expand.
    if sort_input.exprs.iter().any(|(e, _)| exprs::has_srf(e)) {
        add_project_set(level, &mut rel, &sort_input);
    }
    if !q.distinct.is_empty() {
        rel = crate::distinct::plan_distinct(level, rel, &kept_distinct, distinct_keys, &sort_keys)?;
    }
    let final_target = level.costed(final_target);
    if !q.order_by.is_empty() {
        let limit = if has_srfs && postponed.is_some() { -1.0 } else { limit_tuples };
        rel = order(level, rel, &sort_keys, &final_target, limit)?;
    }
    if postponed.is_some() {
        if final_target.exprs.iter().any(|(e, _)| exprs::has_srf(e)) {
            add_project_set(level, &mut rel, &final_target);
        } else {
            let mut list = std::mem::take(&mut rel.list);
            level.apply(&mut list, &final_target);
            rel.list = list;
        }
    }
    limited(level, rel, limits)
}

/// ORDER BY and LIMIT over finished rows.
pub(crate) fn finish_output<'a>(level: &mut Level<'a>, rel: Rel<'a>, limits: Limits) -> SqlResult<PathList<'a>> {
    let q = level.query.clone();
    let mut rel = rel;
    if !q.order_by.is_empty() {
        let keys =
            level.clause_pathkeys(&q.order_by).ok_or_else(|| SqlError::unsupported("sorting by this operator"))?;
        let plain_limit = limits.count > 0 && limits.offset >= 0;
        let limit = if plain_limit { limits.count as f64 + limits.offset as f64 } else { -1.0 };
        let target = Rc::clone(&rel.target);
        rel = order(level, rel, &keys, &target, limit)?;
    }
    limited(level, rel, limits)
}

fn limited<'a>(level: &Level<'a>, rel: Rel<'a>, limits: Limits) -> SqlResult<PathList<'a>> {
    let mut out = PathList::new(level.tuple_fraction > 0.0);
    for p in &rel.list.paths {
        if limits.needed {
            out.add(limit_path(level, p, limits)?);
        } else {
            out.add_rc(Rc::clone(p));
        }
    }
    if !limits.needed {
        out.partial = rel.list.partial;
    }
    Ok(out)
}

fn refuse_nested_srfs(targets: &[TargetEntry]) -> SqlResult<()> {
    for t in targets.iter().filter(|t| exprs::has_srf(&t.expr)) {
        let top = matches!(&t.expr, Expr::Func(f) if f.returns_set) || matches!(&t.expr, Expr::Op(o) if o.returns_set);
        let mut nested = false;
        exprs::for_each_child(&t.expr, &mut |c| nested |= exprs::has_srf(c));
        if !top || nested {
            return Err(SqlError::unsupported("a set-returning function inside an expression"));
        }
    }
    Ok(())
}

/// The target with what set-returning calls read instead of the calls.
fn without_srfs(target: &Target) -> Target {
    let mut out = Target::default();
    // Places count: without a set-returning call each target stays where it is, however often it is there.
    if !target.exprs.iter().any(|(e, _)| exprs::has_srf(e)) {
        return target.clone();
    }
    for (e, r) in &target.exprs {
        if exprs::has_srf(e) {
            exprs::for_each_child(e, &mut |c| {
                if !matches!(c, Expr::Const(_) | Expr::Param(_)) {
                    out.add(c);
                }
            });
        } else if !(*r == 0 && out.exprs.iter().any(|(x, _)| x == e)) {
            out.exprs.push((e.clone(), *r));
        }
    }
    out
}

fn add_project_set<'a>(level: &mut Level<'a>, rel: &mut Rel<'a>, target: &Target) {
    let target = level.costed(target.clone());
    let mut rows_factor: f64 = 1.0;
    for (e, _) in &target.exprs {
        if exprs::has_srf(e) {
            rows_factor = rows_factor.max(level.set_rows(e));
        }
    }
    let s = level.settings();
    for p in &mut rel.list.paths {
        let child = Rc::clone(p);
        let rows = child.rows * rows_factor;
        let startup = child.startup + target.cost.startup;
        let total = child.total
            + target.cost.startup
            + (s.cpu_tuple_cost + target.cost.per_tuple) * child.rows
            + (rows - child.rows) * s.cpu_tuple_cost / 2.0;
        *p = Rc::new(Path {
            target: Rc::clone(&target),
            rows,
            startup,
            total,
            disabled: child.disabled,
            parallel_safe: false,
            parallel_aware: false,
            workers: 0,
            pathkeys: child.pathkeys.clone(),
            kind: PathKind::ProjectSet { child },
        });
    }
    rel.list.partial.clear();
    rel.parallel = false;
    rel.target = target;
}

/// Output columns to be computed after sorting (`make_sort_input_target`).
fn postponed_columns(
    level: &Level<'_>,
    targets: &[TargetEntry],
    order_by: &[SortGroupClause],
    has_srfs: bool,
    limits: Limits,
) -> Option<Vec<bool>> {
    if order_by.is_empty() {
        return None;
    }
    let q = &level.query;
    let sorted = |t: &TargetEntry| t.sort_group_ref != 0 && order_by.iter().any(|o| o.reference == t.sort_group_ref);
    let mut late = vec![false; targets.len()];
    let (mut volatile, mut expensive, mut late_srf, mut sort_srf) = (false, false, false, false);
    let mut srf = vec![false; targets.len()];
    for (i, t) in targets.iter().enumerate() {
        if has_srfs && exprs::has_srf(&t.expr) {
            if sorted(t) {
                sort_srf = true;
            } else if let Some(s) = srf.get_mut(i) {
                *s = true;
                late_srf = true;
            }
            continue;
        }
        if sorted(t) || exprs::any(&t.expr, &mut |x| matches!(x, Expr::Aggref(_))) && matches!(t.expr, Expr::Aggref(_))
        {
            continue;
        }
        if level.is_volatile(&t.expr) {
            volatile = true;
            if let Some(l) = late.get_mut(i) {
                *l = true;
            }
        } else if !matches!(t.expr, Expr::Var(_)) {
            let c = level.expr_cost(&t.expr);
            if c.per_tuple > 10.0 * level.settings().cpu_operator_cost {
                expensive = true;
                if let Some(l) = late.get_mut(i) {
                    *l = true;
                }
            }
        }
    }
    let postpone_srfs = late_srf && !sort_srf;
    let postpone = volatile || (expensive && (q.limit.is_some() || level.tuple_fraction > 0.0));
    let _ = limits;
    // (DISTINCT needs every column, and so makes each a sort column; DISTINCT ON leaves some for later.)
    if (!q.distinct.is_empty() && !q.distinct_on) || !(postpone || postpone_srfs) {
        return None;
    }
    if !postpone {
        late.iter_mut().for_each(|l| *l = false);
    }
    if postpone_srfs {
        late.iter_mut().zip(&srf).for_each(|(l, s)| *l |= *s);
    }
    Some(late)
}

/// The target with late columns replaced by what they read.
fn reduced(target: &Target, late: &[bool]) -> Target {
    let mut out = Target::default();
    let mut vars = Vec::new();
    for ((e, r), late) in target.exprs.iter().zip(late) {
        if *late {
            exprs::pull_vars(e, &mut |x| matches!(x, Expr::Aggref(_) | Expr::WindowFunc(_)), &mut vars);
        } else {
            out.exprs.push((e.clone(), *r));
        }
    }
    vars.iter().for_each(|v| out.add(v));
    out
}

/// What grouping reads: the group columns, and the columns inside everything else.
fn group_input(target: &Target, group_by: &[SortGroupClause], having: &[Expr]) -> Target {
    let mut out = Target::default();
    let mut rest = Vec::new();
    for (e, r) in &target.exprs {
        if *r != 0 && group_by.iter().any(|g| g.reference == *r) {
            out.exprs.push((e.clone(), *r));
        } else {
            rest.push(e.clone());
        }
    }
    let mut vars = Vec::new();
    for e in rest.iter().chain(having) {
        exprs::pull_vars(e, &mut |_| false, &mut vars);
    }
    vars.iter().for_each(|v| out.add(v));
    out
}

fn order<'a>(
    level: &mut Level<'a>,
    rel: Rel<'a>,
    keys: &[PathKey],
    target: &Rc<Target>,
    limit: f64,
) -> SqlResult<Rel<'a>> {
    let mut list = PathList::new(level.tuple_fraction > 0.0);
    let s = level.settings();
    let safe = target.exprs.iter().all(|(e, _)| level.is_parallel_safe(e));
    let project = |_: &Level<'a>, p: Path<'a>| -> Rc<Path<'a>> {
        let p = Rc::new(p);
        if p.target.same_exprs(target) || target.exprs.iter().any(|(e, _)| exprs::has_srf(e)) {
            return p;
        }
        // Late columns are added by the caller.
        if target.exprs.len() != p.target.exprs.len() {
            return p;
        }
        p.projected(target, safe, s.cpu_tuple_cost)
    };
    let Some(cheapest) = rel.list.cheapest_total().cloned() else { return Err(SqlError::internal("nothing to sort")) };
    for p in &rel.list.paths {
        let presorted = common_prefix(keys, &p.pathkeys);
        if presorted == keys.len() {
            list.add_rc(project(level, (**p).clone()));
            continue;
        }
        if !Rc::ptr_eq(p, &cheapest) && (presorted == 0 || !s.enable_incremental_sort) {
            continue;
        }
        let sorted = if presorted == 0 || !s.enable_incremental_sort {
            level.sort_path(p, keys.to_vec(), limit)
        } else {
            level.incremental_sort_path(p, keys.to_vec(), presorted, limit)
        };
        list.add_rc(project(level, sorted));
    }
    if rel.parallel && !keys.is_empty() {
        let first = rel.list.partial.first().cloned();
        for p in &rel.list.partial {
            let presorted = common_prefix(keys, &p.pathkeys);
            let is_first = first.as_ref().is_some_and(|f| Rc::ptr_eq(f, p));
            if presorted == keys.len() || (!is_first && (presorted == 0 || !s.enable_incremental_sort)) {
                continue;
            }
            let sorted = if presorted == 0 || !s.enable_incremental_sort {
                level.sort_path(p, keys.to_vec(), limit)
            } else {
                level.incremental_sort_path(p, keys.to_vec(), presorted, limit)
            };
            let rows = clamp_rows(p.rows * cost::parallel_divisor(s, p.workers));
            let merged = level.gather_merge_path(&Rc::new(sorted), rows);
            list.add_rc(project(level, merged));
        }
    }
    let mut out = rel;
    out.list = list;
    Ok(out)
}

fn limit_path<'a>(level: &Level<'a>, child: &Rc<Path<'a>>, limits: Limits) -> SqlResult<Path<'a>> {
    let (mut rows, mut startup, mut total) = (child.rows, child.startup, child.total);
    let input = Cost { startup: child.startup, total: child.total };
    if limits.offset != 0 {
        let skipped = if limits.offset > 0 { limits.offset as f64 } else { clamp_rows(child.rows * 0.10) }.min(rows);
        if child.rows > 0.0 {
            startup += (input.total - input.startup) * skipped / child.rows;
        }
        rows = (rows - skipped).max(1.0);
    }
    if limits.count != 0 {
        let n = if limits.count > 0 { limits.count as f64 } else { clamp_rows(child.rows * 0.10) }.min(rows);
        if child.rows > 0.0 {
            total = startup + (input.total - input.startup) * n / child.rows;
        }
        rows = n.max(1.0);
    }
    let q = &level.query;
    let ties = if q.with_ties { level.group_columns(&q.order_by)? } else { Vec::new() };
    Ok(Path {
        target: Rc::clone(&child.target),
        rows,
        startup,
        total,
        disabled: child.disabled,
        parallel_safe: false,
        parallel_aware: false,
        workers: 0,
        pathkeys: child.pathkeys.clone(),
        kind: PathKind::Limit { child: Rc::clone(child), offset: q.offset.clone(), count: q.limit.clone(), ties },
    })
}
