//! Subqueries in FROM that stay subqueries.

use std::rc::Rc;

use stegodon_nodes::query::RangeTableKind;
use stegodon_types::{SqlError, SqlResult};

use crate::level::Level;
use crate::path::{Path, PathKind};
use crate::planner::{choose, plan_level};
use crate::rel::Rel;

/// Plans the subquery of a range table entry.
pub(crate) fn plan_from_subquery(level: &mut Level<'_>, rti: usize) -> SqlResult<()> {
    let RangeTableKind::Subquery(query) = &level.rte(rti)?.kind else {
        return Err(SqlError::internal("not a subquery"));
    };
    // Only where its rows come out as they are does the wish for few of them reach down.
    let q = &level.query;
    let simple = q.group_by.is_empty()
        && !q.has_aggregates
        && q.distinct.is_empty()
        && q.order_by.is_empty()
        && level.needed.keys().all(|(r, _)| *r == rti)
        && q.from.items.len() == 1;
    let fraction = if simple { level.tuple_fraction } else { 0.0 };
    let query = (**query).clone();
    let ctes = level.ctes.clone();
    let serial = level.cx.serial.replace(level.cx.serial.get() || level.lateral.contains_key(&rti));
    let planned = plan_level(&level.cx, query, fraction, &ctes);
    level.cx.serial.set(serial);
    let (sub, list) = planned?;
    let best = list.cheapest_total().ok_or_else(|| SqlError::internal("a subquery without path"))?;
    let rows = best.rows;
    level.subqueries.insert(rti, (sub, list));
    let mut rel = level.rel(rti)?.clone();
    rel.tuples = rows;
    rel.parallel = false;
    // Its columns' widths are those that its plan gives.
    if let Some((sub, _)) = level.subqueries.get(&rti) {
        for t in sub.query.targets.iter().filter(|t| !t.junk) {
            rel.widths.insert(t.resno, sub.expr_width(&t.expr));
        }
    }
    level.put_rel(rel.clone());
    rel.target = level.costed((*rel.target).clone());
    level.estimate_rows(&mut rel);
    if rel.dummy {
        rel.rows = 0.0;
    }
    level.put_rel(rel);
    Ok(())
}

/// Adds its paths.
pub(crate) fn add_subquery_paths<'a>(level: &mut Level<'a>, rel: &mut Rel<'a>) -> SqlResult<()> {
    let (sub, list) = level.subqueries.get(&rel.rti).ok_or_else(|| SqlError::internal("a subquery is not planned"))?;
    let child = choose(list, sub.tuple_fraction)?;
    let path = subquery_path(level, rel, sub, &child);
    rel.list.add(path);
    Ok(())
}

/// The path that reads a subquery's rows.
pub(crate) fn subquery_path<'a>(
    level: &Level<'a>,
    rel: &Rel<'a>,
    sub: &Rc<Level<'a>>,
    child: &Rc<Path<'a>>,
) -> Path<'a> {
    let s = level.settings();
    let qual = level.clauses_cost(&rel.restrictions);
    let (mut startup, mut total) = (child.startup, child.total);
    let plain = rel.target.exprs.iter().all(|(e, _)| matches!(e, stegodon_nodes::Expr::Var(_)));
    let trivial =
        rel.restrictions.is_empty()
            && plain
            && rel.target.exprs.len() == child.target.exprs.len()
            && rel.target.exprs.iter().enumerate().all(|(i, (e, _))| {
                crate::exprs::as_var(e).is_some_and(|(_, a)| usize::from(a.0.unsigned_abs()) == i + 1)
            });
    if !trivial {
        startup += qual.startup + rel.target.cost.startup;
        total += qual.startup + rel.target.cost.startup;
        total += (s.cpu_tuple_cost + qual.per_tuple) * child.rows + rel.target.cost.per_tuple * rel.rows;
    }
    Path {
        kind: PathKind::Subquery { rti: rel.rti, level: Rc::clone(sub), child: Rc::clone(child), computed: Vec::new() },
        target: Rc::clone(&rel.target),
        rows: rel.rows,
        startup,
        total,
        disabled: child.disabled,
        parallel_safe: false,
        parallel_aware: false,
        workers: 0,
        pathkeys: Vec::new(),
    }
}
