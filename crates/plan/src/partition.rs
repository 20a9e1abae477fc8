//! Partitioned tables and inheritance: expansion into children, and the paths that append them (`inherit.c`,
//! `allpaths.c`).

use std::rc::Rc;

use stegodon_format::ids::Oid;
use stegodon_nodes::Expr;
use stegodon_nodes::query::{RangeTableEntry, RangeTableKind};
use stegodon_types::{SqlError, SqlResult};

use crate::bounds::{self, Asker};
use crate::cost::{self, Cost, clamp_rows};
use crate::exprs;
use crate::level::Level;
use crate::node::PrunePlan;
use crate::path::{Path, PathKey, PathKind, contained_in};
use crate::rel::{Rel, Target};
use crate::relids::Relids;

/// How deep partitions of partitions may go.
const MAX_DEPTH: u32 = 100;

/// Expands a parent into the children that may have rows.
pub(crate) fn expand(level: &mut Level<'_>, rti: usize) -> SqlResult<()> {
    let parent = level.rel(rti)?.clone();
    let row = level.cx.relation(parent.oid)?;
    let conditions: Vec<Expr> = parent.restrictions.iter().map(|c| c.expr.clone()).collect();
    let (mut leaves, mut pruned) = (Vec::new(), 0);
    if parent.dummy {
        // Nothing to scan.
    } else if row.kind == b'p' {
        partitions(level, parent.oid, (parent.oid, rti), &conditions, &mut leaves, &mut pruned, 0)?;
    } else {
        inheritors(level, parent.oid, &mut leaves)?;
    }
    let mut children = Vec::new();
    let (mut rows, mut tuples, mut bytes) = (0.0, 0.0, 0.0);
    let mut parallel = parent.parallel;
    for leaf in leaves {
        let child = add_child(level, rti, leaf)?;
        let rel = level.rel(child)?;
        if rel.dummy {
            continue;
        }
        rows += rel.rows;
        tuples += rel.tuples;
        bytes += f64::from(rel.target.width) * rel.rows;
        parallel &= rel.parallel;
        children.push(child);
    }
    let rel = level.rel_mut(rti)?;
    rel.rows = if children.is_empty() { 0.0 } else { clamp_rows(rows) };
    rel.tuples = tuples;
    rel.dummy = children.is_empty();
    rel.parallel = parallel;
    if rows > 0.0 {
        let mut target = (*rel.target).clone();
        target.width = (bytes / rows).round_ties_even() as i32;
        rel.target = Rc::new(target);
    }
    rel.children = children;
    rel.pruned = pruned;
    Ok(())
}

#[allow(clippy::too_many_arguments)]
fn partitions(
    level: &Level<'_>,
    table: Oid,
    (root, rti): (Oid, usize),
    conditions: &[Expr],
    out: &mut Vec<Oid>,
    pruned: &mut usize,
    depth: u32,
) -> SqlResult<()> {
    if depth > MAX_DEPTH {
        return Err(SqlError::internal("partitions nest too deeply"));
    }
    let ask = Asker { catalog: level.catalog(), evaluate: &FoldedOnly };
    let row = level.cx.relation(table)?;
    let root_row = level.cx.relation(root)?;
    let described = bounds::describe(ask, row)?;
    let mut own = Vec::new();
    for c in conditions {
        own.push(bounds::translated(c, (root_row, rti), (row, rti))?);
    }
    let keep = if level.settings().enable_partition_pruning {
        let ask = Asker { catalog: level.catalog(), evaluate: &ConstantsOf(level) };
        bounds::surviving(ask, &described, rti, &own)
    } else {
        vec![true; described.parts.len()]
    };
    for (part, keep) in described.parts.iter().zip(keep) {
        if !keep {
            *pruned += 1;
            continue;
        }
        if level.cx.relation(part.oid)?.kind == b'p' {
            partitions(level, part.oid, (root, rti), conditions, out, pruned, depth + 1)?;
        } else {
            out.push(part.oid);
        }
    }
    Ok(())
}

/// Constants only.
struct FoldedOnly;

impl crate::context::Evaluate for FoldedOnly {
    fn fold(&self, e: Expr) -> SqlResult<Expr> {
        Ok(e)
    }

    fn value_now(&self, e: &Expr) -> Option<Option<stegodon_types::Datum>> {
        match e {
            Expr::Const(c) => Some(c.value.clone()),
            _ => None,
        }
    }
}

/// What is constant for good: stable functions may say something else when the plan runs.
struct ConstantsOf<'l, 'a>(&'l Level<'a>);

impl crate::context::Evaluate for ConstantsOf<'_, '_> {
    fn fold(&self, e: Expr) -> SqlResult<Expr> {
        self.0.cx.input.evaluate.fold(e)
    }

    fn value_now(&self, e: &Expr) -> Option<Option<stegodon_types::Datum>> {
        if let Expr::Const(c) = e {
            return Some(c.value.clone());
        }
        let open = |x: &Expr| {
            matches!(x, Expr::Var(_) | Expr::Param(_) | Expr::Aggref(_) | Expr::SubPlan(_) | Expr::SubLink(_))
        };
        if self.0.is_mutable(e) || exprs::any(e, &mut |x| open(x)) {
            return None;
        }
        self.0.cx.input.evaluate.value_now(e)
    }
}

/// The table itself and all that inherit from it, level by level.
fn inheritors(level: &Level<'_>, table: Oid, out: &mut Vec<Oid>) -> SqlResult<()> {
    out.push(table);
    let mut at = 0;
    while let Some(&next) = out.get(at) {
        at += 1;
        for &child in &level.cx.relation(next)?.children {
            if !out.contains(&child) {
                out.push(child);
            }
        }
    }
    Ok(())
}

/// Adds a child table to the range table, with the parent's conditions and target in its own columns.
fn add_child(level: &mut Level<'_>, parent_rti: usize, oid: Oid) -> SqlResult<usize> {
    let parent = level.rel(parent_rti)?.clone();
    let (parent_row, row) = (level.cx.relation(parent.oid)?, level.cx.relation(oid)?);
    if row.kind == b'f' {
        return Err(SqlError::unsupported("scanning a foreign table"));
    }
    let entry = level.rte(parent_rti)?.clone();
    let rti = level.query.range_table.len() + 1;
    level.query.range_table.push(RangeTableEntry {
        kind: RangeTableKind::Relation { relation: oid, relkind: row.kind, inherit: false, sample: None },
        name: entry.name,
        has_alias: entry.has_alias,
        columns: row.attributes.iter().map(|a| if a.dropped { String::new() } else { a.name.clone() }).collect(),
        lateral: false,
        check_as_user: entry.check_as_user,
        selected_columns: Vec::new(),
        requires_select: false,
        security_barrier: entry.security_barrier,
    });
    let mut rel = Rel::new(rti, Relids::one(rti), level.tuple_fraction > 0.0);
    rel.domain = parent.domain;
    rel.seq_page_cost = parent.seq_page_cost;
    rel.random_page_cost = parent.random_page_cost;
    rel.parent = Some(parent_rti);
    level.init_table(&mut rel, oid, false)?;
    let translate = |e: &Expr| bounds::translated(e, (parent_row, parent_rti), (row, rti));
    for c in &parent.restrictions {
        if c.pseudoconstant {
            continue;
        }
        let e = translate(&c.expr)?;
        let e = level.cx.input.evaluate.fold(e)?;
        match exprs::as_bool_const(&e) {
            Some(Some(true)) => {}
            Some(_) => rel.dummy = true,
            None => {
                let clause = level.clause(e);
                clause.class.set(c.class.get());
                rel.restrictions.push(clause);
            }
        }
    }
    rel.parallel &= parent.parallel;
    let mut target = Target::default();
    for (e, r) in &parent.target.exprs {
        target.exprs.push((translate(e)?, *r));
    }
    level.put_rel(rel.clone());
    rel.target = level.costed(target);
    level.classes.add_children(parent_rti, &mut |e| translate(e).ok());
    level.put_rel(rel.clone());
    level.check_predicates(&mut rel);
    level.put_rel(rel.clone());
    level.estimate_rows(&mut rel);
    level.put_rel(rel);
    Ok(rti)
}

/// The conditions that may prune more once the plan runs.
fn run_time_pruning(level: &Level<'_>, rel: &Rel<'_>, children: &[usize]) -> SqlResult<Option<PrunePlan>> {
    let row = level.cx.relation(rel.oid)?;
    if row.kind != b'p' || !level.settings().enable_partition_pruning {
        return Ok(None);
    }
    let late = |e: &Expr| {
        !level.is_volatile(e)
            && !exprs::any(e, &mut |x| matches!(x, Expr::SubPlan(_)))
            && (level.is_mutable(e) || exprs::any(e, &mut |x| matches!(x, Expr::Param(_))))
    };
    let conditions: Vec<Expr> = rel.restrictions.iter().filter(|c| late(&c.expr)).map(|c| c.expr.clone()).collect();
    if conditions.is_empty() {
        return Ok(None);
    }
    let mut partitions = Vec::new();
    for c in children {
        partitions.push(level.rel(*c)?.oid);
    }
    Ok(Some(PrunePlan { relation: rel.oid, partitions, conditions, range_table_index: rel.rti }))
}

/// Adds the paths that append the children.
pub(crate) fn add_append_paths<'a>(level: &mut Level<'a>, rel: &mut Rel<'a>) -> SqlResult<()> {
    for c in rel.children.clone() {
        level.path_rel(c, false)?;
    }
    let mut cheapest = Vec::new();
    let mut partial = Some(Vec::new());
    for &c in &rel.children {
        let child = level.rel(c)?;
        cheapest
            .push(Rc::clone(child.list.cheapest_total().ok_or_else(|| SqlError::internal("a child without path"))?));
        partial = partial.and_then(|mut list: Vec<Rc<Path<'a>>>| {
            list.push(Rc::clone(child.list.partial.first()?));
            Some(list)
        });
    }
    let prune = run_time_pruning(level, rel, &rel.children)?;
    let removed = rel.pruned;
    rel.list.add(append_path(level, rel, cheapest.clone(), prune.clone(), removed));
    if rel.parallel
        && let Some(list) = partial
    {
        rel.list.add_partial(partial_append(level, rel, list, prune.clone(), removed));
    }
    // In the order that is asked for: children sorted each, merged.
    let wanted: Vec<PathKey> = level.query_pathkeys.clone();
    if !wanted.is_empty() {
        let mut sorted = Vec::new();
        let mut natural = false;
        for (&c, best) in rel.children.iter().zip(&cheapest) {
            let child = level.rel(c)?;
            if !can_sort(level, child, &wanted) {
                return Ok(());
            }
            let mut found =
                child.list.paths.iter().filter(|p| contained_in(&wanted, &p.pathkeys)).cloned().collect::<Vec<_>>();
            natural |= !found.is_empty();
            if found.is_empty() {
                found.push(Rc::new(level.sort_path(best, wanted.clone(), -1.0)));
            }
            found.sort_by(|a, b| {
                (a.disabled, a.total).partial_cmp(&(b.disabled, b.total)).unwrap_or(std::cmp::Ordering::Equal)
            });
            sorted.extend(found.into_iter().next());
        }
        if natural {
            // Which children have rows is not asked again when it starts: merging them all is right.
            rel.list.add(merge_append_path(level, rel, sorted, wanted, None));
        }
    }
    Ok(())
}

fn can_sort(level: &Level<'_>, child: &Rel<'_>, keys: &[PathKey]) -> bool {
    keys.iter().all(|k| {
        level
            .classes
            .get(k.class)
            .is_some_and(|c| c.members.iter().any(|m| child.target.exprs.iter().any(|(e, _)| *e == m.expr)))
    })
}

fn append_path<'a>(
    level: &Level<'a>,
    rel: &Rel<'a>,
    children: Vec<Rc<Path<'a>>>,
    prune: Option<PrunePlan>,
    removed: usize,
) -> Path<'a> {
    let s = level.settings();
    let single = if let [only] = children.as_slice() { Some(Rc::clone(only)) } else { None };
    let rows: f64 = children.iter().map(|c| c.rows).sum();
    let startup = children.first().map_or(0.0, |c| c.startup);
    let mut total: f64 = children.iter().map(|c| c.total).sum();
    if single.is_none() {
        total += s.cpu_tuple_cost * 0.5 * rows;
    }
    Path {
        target: Rc::clone(&rel.target),
        rows,
        startup,
        total,
        disabled: children.iter().map(|c| c.disabled).sum(),
        parallel_safe: rel.parallel && children.iter().all(|c| c.parallel_safe),
        parallel_aware: false,
        workers: 0,
        pathkeys: single.map_or_else(Vec::new, |c| c.pathkeys.clone()),
        kind: PathKind::Append { children, prune, removed },
    }
}

fn partial_append<'a>(
    level: &Level<'a>,
    rel: &Rel<'a>,
    children: Vec<Rc<Path<'a>>>,
    prune: Option<PrunePlan>,
    removed: usize,
) -> Path<'a> {
    let s = level.settings();
    let mut workers = children.iter().map(|c| c.workers).max().unwrap_or(0);
    let single = children.len() == 1;
    if s.enable_parallel_append && !single {
        let by_count = (usize::BITS - children.len().leading_zeros()) as usize;
        workers = workers.max(by_count).min(s.max_parallel_workers_per_gather.max(0) as usize);
    }
    let divisor = cost::parallel_divisor(s, workers);
    let mut rows = 0.0;
    let mut total = 0.0;
    for c in &children {
        rows += c.rows * (cost::parallel_divisor(s, c.workers) / divisor);
        total += c.total;
    }
    let rows = clamp_rows(rows);
    if !single {
        total += s.cpu_tuple_cost * 0.5 * rows;
    }
    let startup = children.iter().map(|c| c.startup).fold(f64::INFINITY, f64::min);
    Path {
        target: Rc::clone(&rel.target),
        rows,
        startup,
        total,
        disabled: children.iter().map(|c| c.disabled).sum(),
        parallel_safe: true,
        parallel_aware: s.enable_parallel_append && !single,
        workers,
        pathkeys: Vec::new(),
        kind: PathKind::Append { children, prune, removed },
    }
}

fn merge_append_path<'a>(
    level: &Level<'a>,
    rel: &Rel<'a>,
    children: Vec<Rc<Path<'a>>>,
    keys: Vec<PathKey>,
    prune: Option<PrunePlan>,
) -> Path<'a> {
    let rows: f64 = children.iter().map(|c| c.rows).sum();
    let input =
        Cost { startup: children.iter().map(|c| c.startup).sum(), total: children.iter().map(|c| c.total).sum() };
    let c = if children.len() == 1 { input } else { cost::merge_append(level.settings(), children.len(), input, rows) };
    Path {
        target: Rc::clone(&rel.target),
        rows,
        startup: c.startup,
        total: c.total,
        disabled: children.iter().map(|c| c.disabled).sum(),
        parallel_safe: false,
        parallel_aware: false,
        workers: 0,
        pathkeys: keys,
        kind: PathKind::MergeAppend { children, prune },
    }
}
