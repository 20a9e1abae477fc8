//! UNION, INTERSECT, EXCEPT (`prepunion.c`).

use std::rc::Rc;

use stegodon_format::ids::{AttrNumber, Oid};
use stegodon_nodes::Expr;
use stegodon_nodes::query::{Query, RangeTableKind, SetOperand, SetOperation, SetOperationKind};
use stegodon_types::{SqlError, SqlResult};

use crate::cost::{self, AggregateCosts, AggregateMethod, Cost};
use crate::exprs;
use crate::level::Level;
use crate::node::{AggregateSplit, AggregateStrategy};
use crate::path::{GroupColumn, Path, PathKind, PathList};
use crate::rel::{ColumnType, Rel, Target};
use crate::relids::Relids;

/// Plans a set operation with its ORDER BY and LIMIT.
pub(crate) fn plan_set_operation<'a>(level: &mut Level<'a>) -> SqlResult<PathList<'a>> {
    let limits = level.prepare_limit();
    let op = level.query.set_operations.clone().ok_or_else(|| SqlError::internal("no set operation"))?;
    let count = level.query.range_table.len();
    level.rels.resize_with(count + 1, || None);
    let paths = operation_paths(level, &op)?;
    let mut rel = Rel::new(0, Relids::default(), level.tuple_fraction > 0.0);
    rel.rows = paths.cheapest_total().map_or(1.0, |p| p.rows);
    let target = Target {
        exprs: level.query.targets.iter().map(|t| (t.expr.clone(), t.sort_group_ref)).collect(),
        ..Target::default()
    };
    let target = level.costed(target);
    for p in &paths.paths {
        rel.list.add_rc(p.projected(&target, false, level.settings().cpu_tuple_cost));
    }
    rel.target = target;
    crate::upper::finish_output(level, rel, limits)
}

fn leaf_rti(operand: &SetOperand) -> usize {
    match operand {
        SetOperand::Relation(r) => *r,
        SetOperand::Operation(o) => leaf_rti(&o.left),
    }
}

/// The output columns of an operation: the leftmost leaf's, of the operation's types.
fn output(op: &SetOperation) -> Vec<Expr> {
    let rti = leaf_rti(&op.left);
    op.types
        .iter()
        .enumerate()
        .map(|(i, (t, m, c))| exprs::relation_var(rti, AttrNumber(i as i16 + 1), *t, *m, *c))
        .collect()
}

fn target_of<'a>(level: &Level<'a>, exprs: Vec<Expr>) -> Rc<Target> {
    level.costed(Target { exprs: exprs.into_iter().map(|e| (e, 0)).collect(), ..Target::default() })
}

/// The typmods of a set operation's result. PostgreSQL takes those of the plan's columns: of INTERSECT and EXCEPT the left
/// side's, of UNION what all sides agree on.
pub(crate) fn typmods(query: &Query) -> Option<Vec<i32>> {
    let op = query.set_operations.as_ref()?;
    let columns = operand_columns(query, &SetOperand::Operation(Box::new(op.clone())));
    Some(columns.iter().map(|(_, typmod)| *typmod).collect())
}

fn operand_columns(query: &Query, operand: &SetOperand) -> Vec<(Oid, i32)> {
    match operand {
        SetOperand::Relation(rti) => match rti.checked_sub(1).and_then(|i| query.range_table.get(i)).map(|r| &r.kind) {
            Some(RangeTableKind::Subquery(sub)) => {
                let below = typmods(sub);
                let own = sub.targets.iter().filter(|t| !t.junk).enumerate();
                own.map(|(i, t)| {
                    let typmod = below.as_ref().and_then(|b| b.get(i).copied());
                    (exprs::type_of(&t.expr), typmod.unwrap_or_else(|| exprs::typmod_of(&t.expr)))
                })
                .collect()
            }
            _ => Vec::new(),
        },
        SetOperand::Operation(op) => {
            let (left, right) = (operand_columns(query, &op.left), operand_columns(query, &op.right));
            let column = |i: usize| {
                let (type_oid, _, _) = op.types.get(i)?;
                let of = |side: &[(Oid, i32)]| side.get(i).filter(|(t, _)| t == type_oid).map_or(-1, |(_, m)| *m);
                let typmod = match op.kind {
                    SetOperationKind::Union if of(&left) != of(&right) => -1,
                    _ => of(&left),
                };
                Some((*type_oid, typmod))
            };
            (0..op.types.len()).filter_map(column).collect()
        }
    }
}

/// Plans one side of an operation, in the operation's types; also how many distinct rows it may have.
fn plan_operand<'a>(level: &mut Level<'a>, operand: &SetOperand, op: &SetOperation) -> SqlResult<(Path<'a>, f64)> {
    match operand {
        SetOperand::Operation(o) => {
            let path = plan_operation(level, o)?;
            let rows = path.rows;
            Ok((if o.types == op.types { path } else { retyped(level, path, o, op)? }, rows))
        }
        SetOperand::Relation(rti) => plan_leaf(level, *rti, op),
    }
}

/// An operation's rows in the types of the operation around it.
fn retyped<'a>(level: &Level<'a>, child: Path<'a>, inner: &SetOperation, op: &SetOperation) -> SqlResult<Path<'a>> {
    let leaf = leaf_rti(&inner.left);
    let mut computed = Vec::new();
    let mut target = Target::default();
    for (e, (t, m, c)) in output(inner).into_iter().zip(&op.types) {
        computed.push(crate::coerce::implicit(level.catalog(), e, *t, *c)?);
        let attno = AttrNumber(target.exprs.len() as i16 + 1);
        target.exprs.push((exprs::relation_var(leaf, attno, *t, *m, *c), 0));
    }
    let plain = computed.iter().all(|e| matches!(e, Expr::Var(_)));
    let mut cost = crate::path::QualCost::default();
    computed.iter().for_each(|e| cost += level.expr_cost(e));
    let per_row = if plain { 0.0 } else { level.settings().cpu_tuple_cost + cost.per_tuple };
    let target = level.costed(target);
    Ok(Path {
        rows: child.rows,
        startup: child.startup + cost.startup,
        total: child.total + cost.startup + per_row * child.rows,
        disabled: child.disabled,
        parallel_safe: false,
        parallel_aware: false,
        workers: 0,
        pathkeys: Vec::new(),
        target,
        kind: PathKind::Retype { child: Rc::new(child), computed },
    })
}

fn plan_leaf<'a>(level: &mut Level<'a>, rti: usize, op: &SetOperation) -> SqlResult<(Path<'a>, f64)> {
    let RangeTableKind::Subquery(query) = &level.rte(rti)?.kind else {
        return Err(SqlError::internal("a set operation over what is no subquery"));
    };
    let query = (**query).clone();
    let visible: Vec<_> = query.targets.iter().filter(|t| !t.junk).collect();
    if visible.len() != op.types.len() {
        return Err(SqlError::internal("the sides of a set operation are not alike"));
    }
    let mut rel = Rel::new(rti, Relids::one(rti), false);
    rel.columns = visible
        .iter()
        .map(|t| ColumnType {
            type_oid: exprs::type_of(&t.expr),
            typmod: exprs::typmod_of(&t.expr),
            collation: exprs::collation_of(&t.expr),
            not_null: false,
        })
        .collect();
    // Alike expressions on both sides: the operation's own types.
    let (mut exprs, mut computed, mut casts) = (Vec::new(), Vec::new(), false);
    for (i, ((t, m, c), column)) in op.types.iter().zip(&rel.columns).enumerate() {
        let attno = AttrNumber(i as i16 + 1);
        exprs.push(exprs::relation_var(rti, attno, *t, *m, *c));
        let own = exprs::relation_var(rti, attno, column.type_oid, column.typmod, column.collation);
        casts |= column.type_oid != *t;
        computed.push(crate::coerce::implicit(level.catalog(), own, *t, *c)?);
    }
    level.put_rel(rel.clone());
    let ctes = level.ctes.clone();
    let (sub, list) = crate::planner::plan_level(&level.cx, query, 0.0, &ctes)?;
    let child = crate::planner::choose(&list, 0.0)?;
    for t in sub.query.targets.iter().filter(|t| !t.junk) {
        rel.widths.insert(t.resno, sub.expr_width(&t.expr));
    }
    rel.rows = child.rows;
    rel.tuples = child.rows;
    level.subqueries.insert(rti, (Rc::clone(&sub), list));
    level.put_rel(rel.clone());
    let q = &sub.query;
    let grouped = !q.group_by.is_empty() || !q.distinct.is_empty() || q.having.is_some() || q.has_aggregates;
    let groups = if grouped {
        child.rows
    } else {
        let columns: Vec<Expr> = q.targets.iter().filter(|t| !t.junk).map(|t| t.expr.clone()).collect();
        sub.distinct_groups(&columns, child.rows)
    };
    for (i, ((t, m, _), column)) in op.types.iter().zip(&rel.columns).enumerate() {
        if column.type_oid != *t {
            let width = crate::relsize::type_width(level.catalog(), *t, *m);
            rel.widths.insert(AttrNumber(i as i16 + 1), width);
        }
    }
    level.put_rel(rel.clone());
    let target = target_of(level, exprs);
    if !casts {
        rel.target = target;
        level.put_rel(rel.clone());
        return Ok((crate::subquery::subquery_path(level, &rel, &sub, &child), groups));
    }
    rel.target = target_of(level, computed.clone());
    let mut path = crate::subquery::subquery_path(level, &rel, &sub, &child);
    let width = path.target.width;
    path.target = Rc::new(Target { width, ..(*target).clone() });
    if let PathKind::Subquery { computed: slot, .. } = &mut path.kind {
        *slot = computed;
    }
    rel.target = Rc::clone(&path.target);
    level.put_rel(rel);
    Ok((path, groups))
}

fn columns(op: &SetOperation, exprs: &[Expr]) -> SqlResult<Vec<GroupColumn>> {
    if op.group_by.len() != exprs.len() {
        return Err(SqlError::internal("a set operation without its comparisons"));
    }
    Ok(op.group_by.iter().zip(exprs).map(|(g, e)| GroupColumn { expr: e.clone(), equality: g.equality }).collect())
}

/// The members of a chain of UNION ALLs, or of UNIONs, which may contain either.
fn members<'o>(operand: &'o SetOperand, parent: &'o SetOperation, out: &mut Vec<(&'o SetOperand, &'o SetOperation)>) {
    if let SetOperand::Operation(o) = operand
        && o.kind == SetOperationKind::Union
        && (o.all || !parent.all)
        && o.types == parent.types
        && (!parent.all || o.all)
    {
        members(&o.left, if parent.all { o } else { parent }, out);
        members(&o.right, if parent.all { o } else { parent }, out);
        return;
    }
    out.push((operand, parent));
}

fn plan_operation<'a>(level: &mut Level<'a>, op: &SetOperation) -> SqlResult<Path<'a>> {
    let paths = operation_paths(level, op)?;
    let best = paths.cheapest_total().ok_or_else(|| SqlError::internal("a set operation without path"))?;
    Ok((**best).clone())
}

/// The ways to do an operation: UNION may come out sorted.
fn operation_paths<'a>(level: &mut Level<'a>, op: &SetOperation) -> SqlResult<PathList<'a>> {
    let mut one = PathList::new(false);
    let exprs = output(op);
    if op.kind == SetOperationKind::Union {
        let mut list = Vec::new();
        members(&op.left, op, &mut list);
        members(&op.right, op, &mut list);
        let mut children = Vec::new();
        for (operand, parent) in list {
            children.push(Rc::new(plan_operand(level, operand, parent)?.0));
        }
        let append = append(level, children, &exprs);
        if !op.all {
            return distinct(level, op, Rc::new(append), &exprs);
        }
        one.add(append);
        return Ok(one);
    }
    let (left, left_groups) = plan_operand(level, &op.left, op)?;
    let (right, right_groups) = plan_operand(level, &op.right, op)?;
    let (mut left, mut right) = (Rc::new(left), Rc::new(right));
    let mut number = left_groups;
    // The rows shown are the left side's: PostgreSQL takes the side with fewer of them.
    if op.kind == SetOperationKind::Intersect && left_groups > right_groups {
        std::mem::swap(&mut left, &mut right);
        number = right_groups;
    }
    if !op.group_by.iter().all(|g| g.hashable) {
        return Err(SqlError::unsupported("INTERSECT and EXCEPT over a type that cannot be hashed"));
    }
    let s = level.settings();
    let own: Vec<Expr> = left.target.exprs.iter().map(|(e, _)| e.clone()).collect();
    let groups = columns(op, &own)?;
    let rows = match (op.all, op.kind) {
        (false, _) => number,
        (true, SetOperationKind::Except) => left.rows,
        (true, _) => left.rows.min(right.rows),
    };
    let startup = left.total + right.total + s.cpu_operator_cost * (left.rows + right.rows) * groups.len() as f64;
    let entry = f64::from((left.target.width + 7) / 8 * 8 + 16);
    let spills = entry * number > s.hash_memory_bytes();
    let target = Target { width: left.target.width, ..(*target_of(level, exprs)).clone() };
    one.add(Path {
        target: Rc::new(target),
        rows,
        startup,
        total: startup + s.cpu_operator_cost * rows,
        disabled: left.disabled + right.disabled + u32::from(!s.enable_hashagg) + u32::from(spills),
        parallel_safe: false,
        parallel_aware: false,
        workers: 0,
        pathkeys: Vec::new(),
        kind: PathKind::SetOp { outer: left, inner: right, kind: op.kind, all: op.all, groups },
    });
    Ok(one)
}

fn append<'a>(level: &Level<'a>, children: Vec<Rc<Path<'a>>>, exprs: &[Expr]) -> Path<'a> {
    let s = level.settings();
    let rows: f64 = children.iter().map(|c| c.rows).sum();
    let total: f64 = children.iter().map(|c| c.total).sum::<f64>() + s.cpu_tuple_cost * 0.5 * rows;
    let mut target = (*target_of(level, exprs.to_vec())).clone();
    target.width = children.iter().map(|c| c.target.width).max().unwrap_or(target.width);
    Path {
        target: Rc::new(target),
        rows,
        startup: children.first().map_or(0.0, |c| c.startup),
        total,
        disabled: children.iter().map(|c| c.disabled).sum(),
        parallel_safe: false,
        parallel_aware: false,
        workers: 0,
        pathkeys: Vec::new(),
        kind: PathKind::Append { children, prune: None, removed: 0 },
    }
}

fn distinct<'a>(
    level: &mut Level<'a>,
    op: &SetOperation,
    child: Rc<Path<'a>>,
    exprs: &[Expr],
) -> SqlResult<PathList<'a>> {
    let s = level.settings();
    let groups = columns(op, exprs)?;
    let rows = child.rows;
    let hashable = op.group_by.iter().all(|g| g.hashable);
    let mut list = PathList::new(false);
    if hashable {
        let c = cost::aggregate(
            s,
            AggregateMethod::Hashed,
            &AggregateCosts::default(),
            groups.len(),
            rows,
            Cost { startup: child.startup, total: child.total },
            child.rows,
            child.target.width,
        );
        list.add(Path {
            kind: PathKind::Aggregate {
                child: Rc::clone(&child),
                strategy: AggregateStrategy::Hashed,
                split: AggregateSplit::Whole,
                groups: groups.clone(),
                having: Vec::new(),
            },
            target: Rc::clone(&child.target),
            rows,
            startup: c.startup,
            total: c.total,
            disabled: child.disabled + u32::from(!s.enable_hashagg),
            parallel_safe: false,
            parallel_aware: false,
            workers: 0,
            pathkeys: Vec::new(),
        });
    }
    // By sorting: the columns are numbered as sort references.
    let clauses: Vec<_> = op
        .group_by
        .iter()
        .enumerate()
        .map(|(i, g)| stegodon_nodes::expr::SortGroupClause { reference: i as u32 + 1, ..g.clone() })
        .collect();
    let by_ref = exprs.to_vec();
    let keys = level.pathkeys_for(&clauses, &|r| by_ref.get((r as usize).checked_sub(1)?).cloned());
    if let Some(keys) = keys {
        let sorted = Rc::new(level.sort_path(&child, keys, -1.0));
        list.add(crate::distinct::unique_path(level, &sorted, rows, &groups));
    }
    if list.paths.is_empty() {
        return Err(SqlError::new(stegodon_types::SqlState::FeatureNotSupported, "could not implement UNION")
            .detail("All column datatypes must be hashable or sortable."));
    }
    Ok(list)
}
