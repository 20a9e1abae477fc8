//! WITH queries: put in where they are read once, else planned once and scanned.

use stegodon_nodes::Expr;
use stegodon_nodes::query::{CommonTableExpr, Query, RangeTableKind};
use stegodon_types::{SqlError, SqlResult};

use crate::context::PlannedSubquery;
use crate::level::{CtePlan, Level};
use crate::planner::{choose, plan_level};

/// Plans each WITH query, or puts it in where it is referred to.
pub(crate) fn plan_ctes(level: &mut Level<'_>, query: &mut Query) -> SqlResult<()> {
    for cte in std::mem::take(&mut query.ctes) {
        if cte.recursive {
            return Err(SqlError::unsupported("planning of WITH RECURSIVE"));
        }
        if cte.references == 0 && !mentioned(query, &cte.name) {
            continue;
        }
        if inlines(level, query, &cte)? {
            for r in &mut query.range_table {
                if matches!(&r.kind, RangeTableKind::Cte { name, levels_up: 0, .. } if *name == cte.name) {
                    r.kind = RangeTableKind::Subquery(Box::new(cte.query.clone()));
                }
            }
            continue;
        }
        if crate::subselect::reads_slots(&cte.query)? {
            return Err(SqlError::unsupported("a WITH query that reads outer rows"));
        }
        let ctes = level.ctes.clone();
        let (sub, list) = plan_level(&level.cx, cte.query.clone(), 0.0, &ctes)?;
        let path = choose(&list, 0.0)?;
        let (rows, total) = (path.rows, path.total);
        let subplan = {
            let mut plans = level.cx.subqueries.borrow_mut();
            plans.push(PlannedSubquery { level: sub, path });
            plans.len() - 1
        };
        // The innermost definition of a name is found first.
        level.ctes.insert(0, CtePlan { name: cte.name.clone(), subplan, rows });
        level.cte_cost += total;
    }
    Ok(())
}

fn mentioned(query: &Query, name: &str) -> bool {
    query.range_table.iter().any(|r| matches!(&r.kind, RangeTableKind::Cte { name: n, .. } if n == name))
}

/// Whether the only reference is one of this very query, and putting the query there changes nothing.
fn inlines(level: &Level<'_>, query: &Query, cte: &CommonTableExpr) -> SqlResult<bool> {
    let here = query
        .range_table
        .iter()
        .filter(|r| matches!(&r.kind, RangeTableKind::Cte { name, levels_up: 0, .. } if *name == cte.name))
        .count();
    let wanted = match cte.materialized {
        Some(true) => false,
        Some(false) => here > 0 && here as u32 == cte.references,
        None => here == 1 && cte.references == 1,
    };
    if !wanted {
        return Ok(false);
    }
    let mut volatile = false;
    let mut outer_cte = false;
    stegodon_nodes::levels::walk_query_mut(&mut cte.query.clone(), 0, 0, &mut |e, _| {
        volatile |= match e {
            Expr::Func(_) | Expr::Op(_) | Expr::ScalarArrayOp(_) | Expr::NextValue(_) => level.is_volatile(e),
            _ => false,
        };
        Ok(true)
    })?;
    // What refers to a WITH query counts levels: it stays where they are right.
    fn refers(q: &Query, found: &mut bool) {
        *found |= q.range_table.iter().any(|r| matches!(r.kind, RangeTableKind::Cte { .. }));
        q.subqueries(&mut |s| refers(s, found));
    }
    refers(&cte.query, &mut outer_cte);
    Ok(!volatile && !outer_cte)
}
