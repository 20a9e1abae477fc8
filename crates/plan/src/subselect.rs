//! Subqueries in expressions (`subselect.c`): run once where they need no outer row, else probed.

use stegodon_format::ids::Oid;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::*;
use stegodon_nodes::levels::{walk_expr_mut, walk_query_mut};
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
pub(crate) fn simplify_exists(level: &Level<'_>, q: &mut Query) -> SqlResult<()> {
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
        return Ok(());
    }
    if let Some(limit) = q.limit.take() {
        q.limit = Some(level.cx.prepare(limit, false)?);
    }
    match &q.limit {
        None => {}
        Some(Expr::Const(c)) => match &c.value {
            None => q.limit = None,
            Some(Datum::Int64(n)) if *n > 0 => q.limit = None,
            _ => return Ok(()),
        },
        Some(_) => return Ok(()),
    }
    q.with_ties = false;
    q.targets.clear();
    q.distinct.clear();
    q.distinct_on = false;
    q.order_by.clear();
    Ok(())
}

/// Puts executor slots in the places where a subquery reads this level's row, and returns what fills each
/// (`SS_replace_correlation_vars`). What lies further out has its slot since the level that owns it was prepared; the
/// subquery is run anew for those too, though their values stay where they are.
fn correlate(level: &Level<'_>, query: &mut Query) -> SqlResult<Vec<(u32, Expr)>> {
    let mut own: Vec<(u32, Expr)> = Vec::new();
    let mut further: Vec<(u32, Expr)> = Vec::new();
    walk_query_mut(query, 0, 0, &mut |e, depth| {
        let levels_up = match e {
            Expr::Var(v) => v.levels_up,
            Expr::Aggref(a) => a.levels_up,
            Expr::GroupingFunc(g) => g.levels_up,
            Expr::Param(p) if p.kind == ParamKind::Exec => {
                if !own.iter().chain(&further).any(|(slot, _)| *slot == p.id) {
                    further.push((p.id, e.clone()));
                }
                return Ok(true);
            }
            _ => return Ok(true),
        };
        if levels_up <= depth {
            return Ok(true);
        }
        if levels_up > depth + 1 {
            return Err(SqlError::internal("a subquery reads a level that is not there"));
        }
        let mut value = e.clone();
        lower_levels(&mut value, levels_up)?;
        exprs::strip_locations(&mut value);
        let slot = match own.iter().find(|(_, x)| *x == value) {
            Some((slot, _)) => *slot,
            None => {
                let slot = level.cx.new_param();
                own.push((slot, value));
                slot
            }
        };
        *e = exec_param(slot, exprs::type_of(e), exprs::typmod_of(e), exprs::collation_of(e));
        Ok(false)
    })?;
    // Only an aggregate has parts that are to be made simple.
    for (_, value) in own.iter_mut().filter(|(_, e)| !matches!(e, Expr::Var(_))) {
        *value = level.cx.prepare(value.clone(), false)?;
    }
    own.append(&mut further);
    Ok(own)
}

/// An expression as the query `by` levels further out sees it, to which alone it refers.
fn lower_levels(e: &mut Expr, by: u32) -> SqlResult<()> {
    walk_expr_mut(e, 0, 0, &mut |x, depth| {
        let lower = |levels_up: &mut u32| {
            if *levels_up >= depth {
                *levels_up = levels_up.saturating_sub(by);
            }
        };
        match x {
            Expr::Var(v) => lower(&mut v.levels_up),
            Expr::Aggref(a) => lower(&mut a.levels_up),
            Expr::GroupingFunc(g) => lower(&mut g.levels_up),
            Expr::SubLink(_) => return Err(SqlError::unsupported("a subquery in an aggregate of an outer query")),
            _ => {}
        }
        Ok(true)
    })
}

/// Whether a query reads an executor slot anywhere: it must be run anew when that changes.
pub(crate) fn reads_slots(query: &Query) -> SqlResult<bool> {
    let mut found = false;
    walk_query_mut(&mut query.clone(), 0, 0, &mut |e, _| {
        found |= matches!(e, Expr::Param(p) if p.kind == ParamKind::Exec);
        Ok(true)
    })?;
    Ok(found)
}

fn plan_sublink(level: &mut Level<'_>, link: &SubLink) -> SqlResult<Expr> {
    let mut query = link.query.clone();
    if link.kind == SubLinkKind::Exists {
        simplify_exists(level, &mut query)?;
    }
    let correlation = correlate(level, &mut query)?;
    if !correlation.is_empty() {
        return plan_correlated(level, link, query, correlation);
    }
    let columns: Vec<TargetEntry> = link.query.targets.iter().filter(|t| !t.junk).cloned().collect();
    let fraction = fraction_of(link.kind);
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
            let array_type = array_type_of(level, element_type)?;
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

/// What part of its rows a subquery is expected to be asked for.
fn fraction_of(kind: SubLinkKind) -> f64 {
    match kind {
        SubLinkKind::Exists => 1.0,
        SubLinkKind::Any | SubLinkKind::All => 0.5,
        _ => 0.0,
    }
}

/// The type of an array of such elements: an array of arrays is an array of more dimensions.
fn array_type_of(level: &Level<'_>, element_type: Oid) -> SqlResult<Oid> {
    let array_type = level.catalog().type_desc(element_type).map_or(Oid::INVALID, |t| {
        if matches!(t.kind, stegodon_types::TypeKind::Array { .. }) { element_type } else { t.array }
    });
    if array_type.is_valid() {
        Ok(array_type)
    } else {
        Err(SqlError::unsupported("an array over a type without an array type"))
    }
}

/// Plans a subquery that reads outer rows: to be run anew for each.
fn plan_correlated(
    level: &mut Level<'_>,
    link: &SubLink,
    query: Query,
    correlation: Vec<(u32, Expr)>,
) -> SqlResult<Expr> {
    let first = query.targets.iter().find(|t| !t.junk).map(|t| t.expr.clone());
    let (result_type, typmod, collation) = match (link.kind, &first) {
        (SubLinkKind::Exists | SubLinkKind::Any | SubLinkKind::All, _) => (BOOL, -1, Oid::INVALID),
        (SubLinkKind::Expr, Some(e)) => (exprs::type_of(e), exprs::typmod_of(e), exprs::collation_of(e)),
        (SubLinkKind::Array, Some(e)) => {
            (array_type_of(level, exprs::type_of(e))?, exprs::typmod_of(e), exprs::collation_of(e))
        }
        (SubLinkKind::RowCompare, _) => {
            return Err(SqlError::unsupported("a row comparison with a correlated subquery"));
        }
        (_, None) => return Err(SqlError::internal("a subquery without a value")),
    };
    let ctes: Vec<_> = level.ctes.clone();
    let serial = level.cx.serial.replace(true);
    let planned = crate::planner::plan_level(&level.cx, query, fraction_of(link.kind), &ctes);
    level.cx.serial.set(serial);
    let (sub, list) = planned?;
    let path = crate::planner::choose(&list, sub.tuple_fraction)?;
    let plan_id = {
        let mut plans = level.cx.subqueries.borrow_mut();
        plans.push(PlannedSubquery { level: sub, path });
        plans.len() - 1
    };
    Ok(Expr::SubPlan(Box::new(SubPlan {
        kind: link.kind,
        plan_id,
        test: link.test.clone(),
        use_hash: false,
        result_type,
        typmod,
        collation,
        correlation,
        params: Vec::new(),
    })))
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
