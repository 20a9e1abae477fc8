//! Plan nodes of joins.

use std::rc::Rc;

use stegodon_format::ids::Oid;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::VarSource;
use stegodon_nodes::query::JoinKind;
use stegodon_types::{SqlError, SqlResult};

use crate::exprs::has_subplan;
use crate::finish::{Built, Finisher, View, resolve, resolve_all};
use crate::node::*;
use crate::path::{JoinEquality, JoinPath, Path, PathKind};

/// Lays out a join path.
pub(crate) fn build<'a>(f: &mut Finisher, v: View<'_, 'a>, p: &Rc<Path<'a>>) -> SqlResult<Built> {
    let (join, equalities): (&JoinPath<'a>, &[JoinEquality]) = match &p.kind {
        PathKind::NestLoop(j) => (j, &[]),
        PathKind::Hash { join, hash } => (join, hash),
        PathKind::Merge { join, merge } => (join, merge),
        _ => return Err(SqlError::internal("not a join")),
    };
    let outer = f.build(v, &join.outer)?;
    let mut inner = f.build(v, &join.inner)?;
    let inputs: &[(VarSource, &[Expr])] = &[(VarSource::Outer, &outer.exprs), (VarSource::Inner, &inner.exprs)];
    let fix_all = |list: Vec<Expr>| list.iter().map(|e| resolve(e, inputs)).collect::<SqlResult<Vec<_>>>();
    let mut filter = fix_all(v.ordered(&join.clauses))?;
    let mut quals = fix_all(v.ordered(&join.filter))?;
    // A subquery is asked of an inner join's result: running one inside of the join would hold it up.
    if join.kind == JoinKind::Inner
        && let Some(first) = filter.iter().position(has_subplan)
    {
        let mut late = filter.split_off(first);
        late.append(&mut quals);
        quals = late;
    }
    let exprs: Vec<Expr> = p.target.exprs.iter().map(|(e, _)| e.clone()).collect();
    let targets = resolve_all(&exprs, inputs)?;
    let mut clauses = Vec::new();
    for e in equalities {
        clauses.push(join_clause(v, e, inputs)?);
    }
    let estimate = Estimate {
        startup_cost: p.startup,
        total_cost: p.total,
        rows: p.rows,
        width_bytes: p.target.width,
        disabled_nodes: p.disabled,
    };
    if matches!(p.kind, PathKind::Hash { .. }) {
        let e = inner.node.estimate;
        let targets = crate::finish::pass_through(&inner);
        let child = inner.node;
        inner.node = PlanNode {
            kind: PlanKind::Hash { child: Box::new(child) },
            id: 0,
            // A hash table is ready when its input is done.
            estimate: Estimate { startup_cost: e.total_cost, ..e },
            targets,
            quals: Vec::new(),
            parallel_aware: false,
            init_plans: Vec::new(),
        };
    }
    let params = join
        .params
        .iter()
        .map(|(slot, e)| Ok((*slot, resolve(e, &[(VarSource::Outer, &outer.exprs)])?)))
        .collect::<SqlResult<Vec<_>>>()?;
    let made = Join {
        kind: join.kind,
        outer: Box::new(outer.node),
        inner: Box::new(inner.node),
        filter,
        inner_unique: join.inner_unique,
        params,
    };
    let kind = match &p.kind {
        PathKind::Hash { .. } => PlanKind::HashJoin { join: made, clauses },
        PathKind::Merge { .. } => PlanKind::MergeJoin { join: made, clauses },
        _ => PlanKind::NestLoop(made),
    };
    let node =
        PlanNode { kind, id: 0, estimate, targets, quals, parallel_aware: p.parallel_aware, init_plans: Vec::new() };
    Ok(Built { node, exprs })
}

fn join_clause(v: View<'_, '_>, e: &JoinEquality, inputs: &[(VarSource, &[Expr])]) -> SqlResult<JoinClause> {
    let catalog = v.level.catalog();
    let Some((op, left, right)) = e.clause.binary() else { return Err(SqlError::internal("not an equality")) };
    let mut op = op.clone();
    let (outer, inner) = if e.left_is_outer { (left, right) } else { (right, left) };
    if !e.left_is_outer {
        let commutator = catalog.operator(op.operator).map_or(Oid::INVALID, |o| o.commutator);
        let row = catalog.operator(commutator).ok_or_else(|| SqlError::internal("an equality without commutator"))?;
        op.operator = commutator;
        op.function = row.function;
        op.args.reverse();
    }
    Ok(JoinClause {
        outer: resolve(outer, inputs)?,
        inner: resolve(inner, inputs)?,
        operator: op.operator,
        collation: op.input_collation,
        clause: resolve(&Expr::Op(op), inputs)?,
        descending: false,
        nulls_first: false,
    })
}
