//! Subqueries in expressions (`subselect.c`): run once where they need no outer row, else probed.

use stegodon_format::ids::Oid;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::*;
use stegodon_nodes::levels::walk_query_mut;
use stegodon_nodes::query::Query;
use stegodon_types::{Datum, SqlError, SqlResult};

use crate::context::{PendingInitPlan, PlannedSubquery};
use crate::exprs::{self, BOOL, bool_const};
use crate::level::Level;
use crate::node::{InitPlan, InitPlanKind};

/// Whether a query reads columns of queries around it.
pub(crate) fn is_correlated(query: &Query) -> SqlResult<bool> {
    let mut found = false;
    walk_query_mut(&mut query.clone(), 0, 0, &mut |e, level| {
        found |= match e {
            Expr::Var(v) => v.levels_up > level,
            Expr::Aggref(a) => a.levels_up > level,
            Expr::GroupingFunc(g) => g.levels_up > level,
            _ => false,
        };
        Ok(true)
    })?;
    Ok(found)
}

/// Plans the subqueries of an expression and puts what stands for their values in their places.
pub(crate) fn replace_sublinks(level: &mut Level<'_>, e: &mut Expr, _condition: bool) -> SqlResult<()> {
    if !exprs::any(e, &mut |x| matches!(x, Expr::SubLink(_))) {
        return Ok(());
    }
    let mut failed = None;
    replace_in(level, e, &mut failed);
    failed.map_or(Ok(()), Err)
}

fn replace_in(level: &mut Level<'_>, e: &mut Expr, failed: &mut Option<SqlError>) {
    if failed.is_some() {
        return;
    }
    // The left side of a comparison may have subqueries of its own.
    exprs::for_each_child_mut(e, &mut |c| replace_in(level, c, failed));
    if let Expr::SubLink(link) = e {
        match plan_sublink(level, link) {
            Ok(new) => *e = new,
            Err(error) => *failed = Some(error),
        }
    }
}

fn exec_param(id: u32, type_oid: Oid, typmod: i32, collation: Oid) -> Expr {
    Expr::Param(Param { kind: ParamKind::Exec, id, type_oid, typmod, collation, location: None })
}

/// What EXISTS asks needs no output, no order and no duplicates removed.
fn simplify_exists(q: &mut Query) {
    let plain = q.set_operations.is_none()
        && !q.has_aggregates
        && q.group_by.is_empty()
        && q.grouping_sets.is_empty()
        && !q.has_window_functions
        && !q.has_target_srfs
        && q.having.is_none()
        && q.offset.is_none()
        && q.row_marks.is_empty();
    if !plain {
        return;
    }
    match &q.limit {
        None => {}
        Some(Expr::Const(c)) => match &c.value {
            None => q.limit = None,
            Some(Datum::Int64(n)) if *n > 0 => q.limit = None,
            _ => return,
        },
        Some(_) => return,
    }
    q.with_ties = false;
    q.targets.clear();
    q.distinct.clear();
    q.distinct_on = false;
    q.order_by.clear();
}

fn plan_sublink(level: &mut Level<'_>, link: &SubLink) -> SqlResult<Expr> {
    if is_correlated(&link.query)? {
        return Err(SqlError::unsupported("a correlated subquery of this form"));
    }
    let mut query = link.query.clone();
    if link.kind == SubLinkKind::Exists {
        simplify_exists(&mut query);
    }
    let columns: Vec<TargetEntry> = link.query.targets.iter().filter(|t| !t.junk).cloned().collect();
    let fraction = match link.kind {
        SubLinkKind::Exists => 1.0,
        SubLinkKind::Any | SubLinkKind::All => 0.5,
        _ => 0.0,
    };
    let ctes: Vec<_> = level.ctes.clone();
    let (sub, list) = crate::planner::plan_level(&level.cx, query, fraction, &ctes)?;
    let mut path = crate::planner::choose(&list, sub.tuple_fraction)?;
    let probed = matches!(link.kind, SubLinkKind::Any | SubLinkKind::All);
    let mut use_hash = false;
    if probed {
        use_hash = link.kind == SubLinkKind::Any && hashable(level, link.test.as_ref());
        // Rows that are hashed are all read.
        if use_hash {
            path = crate::planner::choose(&list, 0.0)?;
            if path.rows * (f64::from(path.target.width) + 24.0) > level.settings().hash_memory_bytes() {
                use_hash = false;
            }
        }
        if !use_hash {
            path = std::rc::Rc::new(sub.material_path(&path));
        }
    }
    let total = path.total;
    let plan_id = {
        let mut plans = level.cx.subqueries.borrow_mut();
        plans.push(PlannedSubquery { level: sub, path });
        plans.len() - 1
    };
    let number = plan_id as u32 + 1;
    if probed {
        return Ok(Expr::SubPlan(Box::new(SubPlan {
            kind: link.kind,
            plan_id,
            test: link.test.clone(),
            use_hash,
            result_type: BOOL,
            typmod: -1,
            collation: Oid::INVALID,
            correlation: Vec::new(),
            params: Vec::new(),
        })));
    }
    let mut slots = Vec::new();
    let first = columns.first().map(|t| t.expr.clone()).unwrap_or_else(|| bool_const(None));
    let (kind, out) = match link.kind {
        SubLinkKind::Exists => {
            slots.push(level.cx.new_param());
            (InitPlanKind::Exists, slots.first().map(|s| exec_param(*s, BOOL, -1, Oid::INVALID)))
        }
        SubLinkKind::Array => {
            let element_type = exprs::type_of(&first);
            let array_type = level.catalog().type_desc(element_type).map_or(Oid::INVALID, |t| {
                // An array of arrays is an array of more dimensions.
                if matches!(t.kind, stegodon_types::TypeKind::Array { .. }) { element_type } else { t.array }
            });
            if !array_type.is_valid() {
                return Err(SqlError::unsupported("an array over a type without an array type"));
            }
            slots.push(level.cx.new_param());
            let kind = InitPlanKind::Array { array_type, element_type };
            (kind, slots.first().map(|s| exec_param(*s, array_type, -1, exprs::collation_of(&first))))
        }
        SubLinkKind::Expr => {
            slots.push(level.cx.new_param());
            let (t, m, c) = (exprs::type_of(&first), exprs::typmod_of(&first), exprs::collation_of(&first));
            (InitPlanKind::Row, slots.first().map(|s| exec_param(*s, t, m, c)))
        }
        SubLinkKind::RowCompare => {
            for _ in &columns {
                slots.push(level.cx.new_param());
            }
            let test = link.test.as_ref().map(|t| {
                exprs::replaced(t, &mut |x| match x {
                    Expr::Param(p) if p.kind == ParamKind::SubLink => {
                        let slot = *slots.get((p.id as usize).checked_sub(1)?)?;
                        Some(exec_param(slot, p.type_oid, p.typmod, p.collation))
                    }
                    _ => None,
                })
            });
            (InitPlanKind::Row, test)
        }
        SubLinkKind::Any | SubLinkKind::All => return Err(SqlError::internal("not an init plan")),
    };
    let mut init_plans = level.cx.init_plans.borrow_mut();
    init_plans.push(PendingInitPlan { init: InitPlan { subplan: plan_id, kind, slots, number }, cost: total });
    level.init_plans.push(init_plans.len() - 1);
    out.ok_or_else(|| SqlError::internal("a subquery without a value"))
}

/// Whether every comparison can be answered by a hash table of the subquery's rows.
fn hashable(level: &Level<'_>, test: Option<&Expr>) -> bool {
    let Some(test) = test else { return false };
    exprs::conjuncts(test.clone()).iter().all(|c| match c {
        Expr::Op(op) => {
            let row = level.catalog().operator(op.operator);
            let strict = level.catalog().proc(op.function).is_some_and(|p| p.strict);
            let sides = matches!(op.args.as_slice(), [l, r] if !reads_subquery(l) && exprs::relids_of(r).is_empty());
            row.is_some_and(|o| o.can_hash) && strict && sides
        }
        _ => false,
    })
}

fn reads_subquery(e: &Expr) -> bool {
    exprs::any(e, &mut |x| matches!(x, Expr::Param(p) if p.kind == ParamKind::SubLink))
}
