//! Window functions: one WindowAgg for each window in use, those of like order next to each other (`planner.c`).

use std::cmp::Ordering;
use std::rc::Rc;

use stegodon_nodes::Expr;
use stegodon_nodes::expr::*;
use stegodon_nodes::frame;
use stegodon_nodes::query::{Query, WindowClause};
use stegodon_types::{Datum, SqlError, SqlResult, SqlState};

use crate::cost::clamp_rows;
use crate::exprs;
use crate::level::Level;
use crate::path::{Path, PathKey, PathKind, PathList, common_prefix};
use crate::rel::{Rel, Target};
use crate::relsize::type_width;
use crate::selectivity::DEFAULT_INEQUALITY;

/// One window in use.
#[derive(Clone, Debug)]
pub(crate) struct ActiveWindow {
    pub clause: WindowClause,
    pub name: String,
    /// What PARTITION BY and ORDER BY compare.
    pub partition: Vec<Expr>,
    pub order: Vec<Expr>,
    /// Its functions.
    pub functions: Vec<WindowFunc>,
}

/// The window functions in an expression.
pub(crate) fn functions_of(e: &Expr, out: &mut Vec<WindowFunc>) {
    exprs::walk(e, &mut |x| {
        if let Expr::WindowFunc(w) = x {
            if !out.contains(w) {
                out.push((**w).clone());
            }
            return false;
        }
        true
    });
}

fn functions_over(functions: &[WindowFunc], reference: u32) -> Vec<WindowFunc> {
    functions.iter().filter(|w| w.window_ref == reference).cloned().collect()
}

/// Functions that pay no heed to their frame are given the cheapest one, and with it perhaps a window that is there
/// already (`optimize_window_clauses`).
fn simplify_frames(level: &Level<'_>, q: &mut Query, functions: &[WindowFunc]) {
    const CHEAPEST: u32 = frame::NON_DEFAULT | frame::ROWS | frame::START_UNBOUNDED_PRECEDING | frame::END_CURRENT_ROW;
    let heedless = |w: &WindowFunc| {
        level.catalog().proc(w.function).is_some_and(|p| {
            p.namespace == stegodon_catalog::lookup::PG_CATALOG
                && matches!(
                    p.name.as_str(),
                    "row_number" | "rank" | "dense_rank" | "percent_rank" | "cume_dist" | "ntile"
                )
                && !w.is_aggregate
        })
    };
    for i in 0..q.windows.len() {
        let Some(clause) = q.windows.get(i) else { continue };
        let own: Vec<&WindowFunc> = functions.iter().filter(|w| w.window_ref == clause.reference).collect();
        if own.is_empty() || clause.frame_options == CHEAPEST || !own.iter().all(|w| heedless(w)) {
            continue;
        }
        let mut clause = clause.clone();
        clause.frame_options = CHEAPEST;
        let same = |(n, other): &(usize, &WindowClause)| {
            *n != i
                && other.partition_by == clause.partition_by
                && other.order_by == clause.order_by
                && other.frame_options == clause.frame_options
                && other.start_offset == clause.start_offset
                && other.end_offset == clause.end_offset
        };
        let twin = q.windows.iter().enumerate().find(same).map(|(_, w)| w.reference);
        if let Some(twin) = twin {
            let old = clause.reference;
            for t in &mut q.targets {
                exprs::replace(&mut t.expr, &mut |x| match x {
                    Expr::WindowFunc(w) if w.window_ref == old => {
                        Some(Expr::WindowFunc(Box::new(WindowFunc { window_ref: twin, ..(**w).clone() })))
                    }
                    _ => None,
                });
            }
        }
        if let Some(w) = q.windows.get_mut(i) {
            *w = clause;
        }
    }
}

/// Which of two windows is done first: the one whose order serves the other too.
fn precedence(a: &[SortGroupClause], b: &[SortGroupClause]) -> Ordering {
    for (x, y) in a.iter().zip(b) {
        let order = y.reference.cmp(&x.reference).then(y.ordering.0.cmp(&x.ordering.0));
        let order = order.then(y.nulls_first.cmp(&x.nulls_first));
        if order != Ordering::Equal {
            return order;
        }
    }
    b.len().cmp(&a.len())
}

/// The windows in use, in the order in which they are done, named.
pub(crate) fn active_windows(level: &Level<'_>, q: &mut Query) -> SqlResult<Vec<ActiveWindow>> {
    let collect = |q: &Query| {
        let mut out = Vec::new();
        q.targets.iter().for_each(|t| functions_of(&t.expr, &mut out));
        out
    };
    let functions = collect(q);
    if functions.is_empty() {
        return Ok(Vec::new());
    }
    simplify_frames(level, q, &functions);
    let functions = collect(q);
    let expr = |c: &SortGroupClause| {
        let found = q.targets.iter().find(|t| t.sort_group_ref == c.reference && c.reference != 0);
        found.map(|t| t.expr.clone()).ok_or_else(|| SqlError::internal("a window's column is missing"))
    };
    let mut list: Vec<(Vec<SortGroupClause>, ActiveWindow)> = Vec::new();
    for clause in &q.windows {
        let own = functions_over(&functions, clause.reference);
        if own.is_empty() {
            continue;
        }
        let offsets = frame::START_OFFSET_PRECEDING
            | frame::START_OFFSET_FOLLOWING
            | frame::END_OFFSET_PRECEDING
            | frame::END_OFFSET_FOLLOWING;
        if clause.frame_options & frame::RANGE != 0 && clause.frame_options & offsets != 0 {
            return Err(SqlError::unsupported("RANGE with an offset in a window's frame"));
        }
        let mut order = clause.partition_by.clone();
        for o in &clause.order_by {
            if !order.contains(o) {
                order.push(o.clone());
            }
        }
        let window = ActiveWindow {
            clause: clause.clone(),
            name: String::new(),
            partition: clause.partition_by.iter().map(expr).collect::<SqlResult<_>>()?,
            order: clause.order_by.iter().map(expr).collect::<SqlResult<_>>()?,
            functions: own,
        };
        list.push((order, window));
    }
    if functions.iter().any(|f| !list.iter().any(|(_, w)| w.clause.reference == f.window_ref)) {
        return Err(SqlError::internal("a window function without its window"));
    }
    list.sort_by(|a, b| precedence(&a.0, &b.0));
    let mut windows: Vec<ActiveWindow> = list.into_iter().map(|(_, w)| w).collect();
    let taken: Vec<String> = windows.iter().filter_map(|w| w.clause.name.clone()).collect();
    let mut next = 1;
    for w in &mut windows {
        w.name = match &w.clause.name {
            Some(name) => name.clone(),
            None => loop {
                let name = format!("w{next}");
                next += 1;
                if !taken.contains(&name) {
                    break name;
                }
            },
        };
    }
    Ok(windows)
}

/// What the windows read: their columns and the group columns as they are, the columns inside everything else
/// (`make_window_input_target`).
pub(crate) fn input_target(target: &Target, windows: &[ActiveWindow], group_by: &[SortGroupClause]) -> Target {
    let mut refs: Vec<u32> = group_by.iter().map(|g| g.reference).collect();
    for w in windows {
        refs.extend(w.clause.partition_by.iter().chain(&w.clause.order_by).map(|c| c.reference));
    }
    let mut out = Target::default();
    let mut rest = Vec::new();
    for (e, r) in &target.exprs {
        if *r != 0 && refs.contains(r) {
            out.exprs.push((e.clone(), *r));
        } else {
            rest.push(e);
        }
    }
    let mut parts = Vec::new();
    for e in rest {
        exprs::pull_vars(e, &mut |x| matches!(x, Expr::Aggref(_) | Expr::GroupingFunc(_)), &mut parts);
    }
    parts.iter().for_each(|p| out.add(p));
    out
}

impl<'a> Level<'a> {
    /// The order that a window asks of its input; PARTITION BY columns that say nothing new are dropped from it.
    pub(crate) fn window_pathkeys(&mut self, w: &mut ActiveWindow) -> SqlResult<Vec<PathKey>> {
        let refused = |which: &str| {
            SqlError::new(SqlState::FeatureNotSupported, format!("could not implement window {which} BY"))
        };
        let targets: Vec<(u32, Expr)> = w
            .clause
            .partition_by
            .iter()
            .zip(&w.partition)
            .chain(w.clause.order_by.iter().zip(&w.order))
            .map(|(c, e)| (c.reference, e.clone()))
            .collect();
        let find = |r: u32| targets.iter().find(|(n, _)| *n == r).map(|(_, e)| e.clone());
        let Some((kept, _)) = self.without_redundant(&w.clause.partition_by, &find) else {
            return Err(refused("PARTITION").detail("Window partitioning columns must be of sortable datatypes."));
        };
        let partition = kept.iter().filter_map(|c| find(c.reference)).collect();
        let mut all = kept.clone();
        all.extend(w.clause.order_by.iter().cloned());
        let Some(keys) = self.pathkeys_for(&all, &find) else {
            return Err(refused("ORDER").detail("Window ordering columns must be of sortable datatypes."));
        };
        w.clause.partition_by = kept;
        w.partition = partition;
        Ok(keys)
    }

    /// How many rows are read before the first can be given (`get_windowclause_startup_tuples`).
    fn window_startup_rows(&self, w: &ActiveWindow, rows: f64) -> f64 {
        let options = w.clause.frame_options;
        let has = |bit: u32| options & bit != 0;
        let partition_rows =
            if w.partition.is_empty() { rows } else { rows / self.distinct_groups(&w.partition, rows) };
        let peers =
            if w.order.is_empty() { 1.0 } else { partition_rows / self.distinct_groups(&w.order, partition_rows) };
        let mut out = if has(frame::END_UNBOUNDED_FOLLOWING) {
            partition_rows
        } else if has(frame::END_CURRENT_ROW) {
            match (has(frame::ROWS), w.order.is_empty()) {
                (true, _) => 1.0,
                (false, true) => partition_rows,
                (false, false) => peers,
            }
        } else if has(frame::END_OFFSET_FOLLOWING) {
            let offset = match &w.clause.end_offset {
                Some(Expr::Const(Const { value: None, .. })) => 1.0,
                Some(Expr::Const(Const { value: Some(Datum::Int16(n)), .. })) => f64::from(*n),
                Some(Expr::Const(Const { value: Some(Datum::Int32(n)), .. })) => f64::from(*n),
                Some(Expr::Const(Const { value: Some(Datum::Int64(n)), .. })) => *n as f64,
                _ => partition_rows / peers * DEFAULT_INEQUALITY,
            };
            if has(frame::ROWS) { offset + 1.0 } else { peers * (offset + 1.0) }
        } else {
            1.0
        };
        if !w.partition.is_empty() || !w.order.is_empty() {
            out += 1.0;
        }
        clamp_rows(out.min(partition_rows))
    }

    /// One WindowAgg (`cost_windowagg`).
    fn window_path(&self, w: &ActiveWindow, child: &Rc<Path<'a>>, target: &Rc<Target>) -> Path<'a> {
        let s = self.settings();
        let (mut startup, mut total) = (child.startup, child.total);
        for f in &w.functions {
            let mut per_row = self.catalog().proc(f.function).map_or(1.0, |p| f64::from(p.cost)) * s.cpu_operator_cost;
            for e in f.args.iter().chain(&f.filter) {
                let c = self.expr_cost(e);
                startup += c.startup;
                per_row += c.per_tuple;
            }
            total += per_row * child.rows;
        }
        total += s.cpu_operator_cost * (w.partition.len() + w.order.len()) as f64 * child.rows;
        total += s.cpu_tuple_cost * child.rows;
        let first = self.window_startup_rows(w, child.rows);
        if first > 1.0 {
            startup += (total - startup) / child.rows * (first - 1.0);
        }
        Path {
            kind: PathKind::Window { child: Rc::clone(child), window: Rc::new(w.clone()) },
            target: Rc::clone(target),
            rows: child.rows,
            startup: startup + target.cost.startup,
            total: total + target.cost.startup + target.cost.per_tuple * child.rows,
            disabled: child.disabled,
            parallel_safe: false,
            parallel_aware: false,
            workers: 0,
            pathkeys: child.pathkeys.clone(),
        }
    }
}

/// Plans the windows over what grouping (or FROM) gave; the last gives `output`.
pub(crate) fn plan_windows<'a>(
    level: &mut Level<'a>,
    input: Rel<'a>,
    windows: &mut [ActiveWindow],
    input_target: &Rc<Target>,
    output: &Rc<Target>,
) -> SqlResult<Rel<'a>> {
    let mut orders = Vec::new();
    for w in windows.iter_mut() {
        orders.push(level.window_pathkeys(w)?);
    }
    let Some(cheapest) = input.list.cheapest_total().cloned() else {
        return Err(SqlError::internal("nothing for windows"));
    };
    let incremental = level.settings().enable_incremental_sort;
    let first = orders.first().cloned().unwrap_or_default();
    let mut list = PathList::new(level.tuple_fraction > 0.0);
    for p in &input.list.paths {
        let presorted = common_prefix(&first, &p.pathkeys);
        if !Rc::ptr_eq(p, &cheapest) && presorted < first.len() && presorted == 0 {
            continue;
        }
        let mut path = Rc::clone(p);
        let mut target = Rc::clone(input_target);
        for (i, (w, keys)) in windows.iter().zip(&orders).enumerate() {
            let presorted = common_prefix(keys, &path.pathkeys);
            if presorted < keys.len() {
                path = Rc::new(if presorted == 0 || !incremental {
                    level.sort_path(&path, keys.clone(), -1.0)
                } else {
                    level.incremental_sort_path(&path, keys.clone(), presorted, -1.0)
                });
            }
            target = if i + 1 == windows.len() {
                Rc::clone(output)
            } else {
                let mut next = (*target).clone();
                for f in &w.functions {
                    next.width += type_width(level.catalog(), f.result_type, -1);
                    next.exprs.push((Expr::WindowFunc(Box::new(f.clone())), 0));
                }
                Rc::new(next)
            };
            path = Rc::new(level.window_path(w, &path, &target));
        }
        list.add_rc(path);
    }
    let mut out = input;
    out.list = list;
    out.parallel = false;
    out.target = Rc::clone(output);
    Ok(out)
}
