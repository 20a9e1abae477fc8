//! Subqueries that become part of the query around them: IN and EXISTS in WHERE as joins, simple subqueries in FROM
//! merged (`prepjointree.c`, `subselect.c`).

use stegodon_format::ids::AttrNumber;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::*;
use stegodon_nodes::levels::{raise_levels, walk_expr_mut, walk_query_mut};
use stegodon_nodes::query::*;
use stegodon_types::{SqlError, SqlResult};

use crate::exprs::{self, relids_of};
use crate::level::Level;
use crate::relids::Relids;
use crate::subselect::is_correlated;

/// How many times merging may uncover something to merge.
const MAX_ROUNDS: usize = 1000;

/// Merges what can be merged.
pub(crate) fn pull_up(level: &mut Level<'_>, query: &mut Query) -> SqlResult<()> {
    if query.set_operations.is_some() {
        return Ok(());
    }
    pull_up_sublinks(level, query)?;
    for _ in 0..MAX_ROUNDS {
        if !pull_up_one(level, query)? {
            return Ok(());
        }
    }
    Ok(())
}

/// IN and EXISTS among WHERE's conditions become semi joins, NOT EXISTS an anti join.
fn pull_up_sublinks(level: &Level<'_>, query: &mut Query) -> SqlResult<()> {
    if query.from.items.is_empty() {
        return Ok(());
    }
    let Some(quals) = query.from.quals.take() else { return Ok(()) };
    let mut kept = Vec::new();
    for c in exprs::conjuncts(quals) {
        let (link, negated) = match &c {
            Expr::SubLink(l) => (Some(l), false),
            Expr::Bool(b) if b.kind == BoolKind::Not => match b.args.first() {
                Some(Expr::SubLink(l)) => (Some(l), true),
                _ => (None, false),
            },
            _ => (None, false),
        };
        let joined = match link {
            Some(l) if l.kind == SubLinkKind::Any && !negated => join_any(level, query, l)?,
            Some(l) if l.kind == SubLinkKind::Exists => join_exists(level, query, l, negated)?,
            _ => false,
        };
        if !joined {
            kept.push(c);
        }
    }
    // What was kept stays where it was: above the new joins.
    query.from.quals = (!kept.is_empty()).then(|| exprs::and(kept));
    Ok(())
}

fn wrap(query: &mut Query, kind: JoinKind, right: JoinTree, quals: Option<Expr>) {
    let items = std::mem::take(&mut query.from.items);
    let left = JoinTree::From(Box::new(FromExpr { items, quals: None }));
    query.from.items = vec![JoinTree::Join(Box::new(JoinExpr { kind, left, right, quals, relation: 0 }))];
}

/// `x IN (SELECT ...)`.
fn join_any(level: &Level<'_>, query: &mut Query, link: &SubLink) -> SqlResult<bool> {
    let Some(test) = &link.test else { return Ok(false) };
    let outer = relids_of(test);
    let steady = !level.is_volatile(test);
    let nested = exprs::any(test, &mut |x| matches!(x, Expr::SubLink(_)));
    let above = exprs::any(test, &mut |x| matches!(x, Expr::Var(v) if v.levels_up > 0));
    if outer.is_empty() || !steady || nested || above {
        return Ok(false);
    }
    if is_correlated(&link.query)? {
        return join_correlated_any(level, query, link, test);
    }
    let rti = query.range_table.len() + 1;
    let columns: Vec<String> =
        link.query.targets.iter().filter(|t| !t.junk).map(|t| t.name.clone().unwrap_or_default()).collect();
    query.range_table.push(RangeTableEntry {
        kind: RangeTableKind::Subquery(Box::new(link.query.clone())),
        name: "ANY_subquery".to_owned(),
        has_alias: true,
        columns,
        lateral: false,
        check_as_user: None,
        selected_columns: Vec::new(),
        requires_select: false,
        security_barrier: false,
    });
    let quals = exprs::replaced(test, &mut |x| match x {
        Expr::Param(p) if p.kind == ParamKind::SubLink => {
            Some(exprs::relation_var(rti, AttrNumber(p.id as i16), p.type_oid, p.typmod, p.collation))
        }
        _ => None,
    });
    // A subquery's WITH references count levels from where it stood: one less deep now is the same level.
    wrap(query, JoinKind::Semi, JoinTree::Relation(rti), Some(quals));
    Ok(true)
}

fn is_plain(q: &Query) -> bool {
    q.set_operations.is_none()
        && !q.has_aggregates
        && !q.has_window_functions
        && !q.has_target_srfs
        && q.group_by.is_empty()
        && q.grouping_sets.is_empty()
        && q.having.is_none()
        && q.windows.is_empty()
        && q.offset.is_none()
        && q.limit.is_none()
        && q.ctes.is_empty()
        && q.row_marks.is_empty()
        && !q.range_table.iter().any(|r| matches!(r.kind, RangeTableKind::Cte { .. }))
}

/// `x IN (SELECT inner FROM ... WHERE inner = outer)`: what is compared joins the subquery's own conditions.
fn join_correlated_any(level: &Level<'_>, query: &mut Query, link: &SubLink, test: &Expr) -> SqlResult<bool> {
    let mut sub = link.query.clone();
    if !is_plain(&sub) || sub.distinct_on || sub.from.items.is_empty() || reads_outside(&sub)? {
        return Ok(false);
    }
    // What lies further out cannot be told from this query's columns once it has moved here.
    for e in sub.targets.iter().map(|t| &t.expr).chain(&sub.from.quals) {
        let reads = look(level, e)?;
        if reads.further || !reads.steady {
            return Ok(false);
        }
    }
    pull_up_sublinks(level, &mut sub)?;
    if asks_outside(level, sub.from.quals.as_ref())? {
        return Ok(false);
    }
    crate::prep::expand_join_columns(&mut sub)?;
    let offset = query.range_table.len();
    let mut columns = Vec::new();
    for t in sub.targets.iter().filter(|t| !t.junk) {
        columns.push(shifted(&t.expr, offset)?);
    }
    let test = exprs::try_replaced(test, &mut |x| match x {
        Expr::Param(p) if p.kind == ParamKind::SubLink => {
            let found = (p.id as usize).checked_sub(1).and_then(|n| columns.get(n)).cloned();
            found.map(Some).ok_or_else(|| SqlError::internal("a subquery lacks a column"))
        }
        _ => Ok(None),
    })?;
    let mut quals = vec![test];
    if let Some(q) = sub.from.quals.take() {
        quals.push(shifted(&q, offset)?);
    }
    let from = shift_from(&sub.from, offset)?;
    append_range_table(query, &sub, offset)?;
    wrap(query, JoinKind::Semi, JoinTree::From(Box::new(from)), Some(exprs::and(quals)));
    Ok(true)
}

/// What a subquery's condition reads, subqueries of its own included.
#[derive(Default)]
struct Look {
    own: bool,
    outer: bool,
    further: bool,
    /// Nothing in it is volatile.
    steady: bool,
}

/// Whether a condition asks a subquery that reads the outer row: as a join's condition it would be asked of every pair.
fn asks_outside(level: &Level<'_>, quals: Option<&Expr>) -> SqlResult<bool> {
    for c in quals.cloned().map(exprs::conjuncts).unwrap_or_default() {
        if exprs::any(&c, &mut |x| matches!(x, Expr::SubLink(_))) && look(level, &c)?.outer {
            return Ok(true);
        }
    }
    Ok(false)
}

fn look(level: &Level<'_>, quals: &Expr) -> SqlResult<Look> {
    let mut out = Look { steady: true, ..Look::default() };
    walk_expr_mut(&mut quals.clone(), 0, 0, &mut |x, depth| {
        match x {
            Expr::Var(v) => {
                out.own |= v.levels_up == depth;
                out.outer |= v.levels_up == depth + 1;
                out.further |= v.levels_up > depth + 1;
            }
            Expr::Aggref(a) => out.further |= a.levels_up > depth,
            Expr::GroupingFunc(g) => out.further |= g.levels_up > depth,
            Expr::Func(_) | Expr::Op(_) | Expr::ScalarArrayOp(_) | Expr::NextValue(_) => {
                out.steady &= !level.is_volatile(x);
            }
            _ => {}
        }
        Ok(true)
    })?;
    Ok(out)
}

/// Whether a query, its WHERE aside, reads columns of the query around it.
fn reads_outside(q: &Query) -> SqlResult<bool> {
    let mut rest = q.clone();
    rest.from.quals = None;
    rest.targets.clear();
    is_correlated(&rest)
}

/// `EXISTS (SELECT ... WHERE inner = outer)`.
fn join_exists(level: &Level<'_>, query: &mut Query, link: &SubLink, negated: bool) -> SqlResult<bool> {
    let mut sub = link.query.clone();
    crate::subselect::simplify_exists(level, &mut sub)?;
    if !is_plain(&sub) || sub.from.items.is_empty() || reads_outside(&sub)? {
        return Ok(false);
    }
    let Some(quals) = &sub.from.quals else { return Ok(false) };
    // It must read both this query's columns and its own; nothing from further out.
    let reads = look(level, quals)?;
    if !reads.outer || !reads.own || reads.further || !reads.steady {
        return Ok(false);
    }
    pull_up_sublinks(level, &mut sub)?;
    if asks_outside(level, sub.from.quals.as_ref())? {
        return Ok(false);
    }
    crate::prep::expand_join_columns(&mut sub)?;
    let offset = query.range_table.len();
    let quals = sub.from.quals.take().map(|q| shifted(&q, offset)).transpose()?;
    let from = shift_from(&sub.from, offset)?;
    append_range_table(query, &sub, offset)?;
    let kind = if negated { JoinKind::Anti } else { JoinKind::Semi };
    wrap(query, kind, JoinTree::From(Box::new(from)), quals);
    Ok(true)
}

/// What a subquery in FROM (LATERAL) reads of a merged query, as [`shifted`].
fn shift_subquery(q: &mut Query, offset: usize) -> SqlResult<()> {
    walk_query_mut(q, 1, 0, &mut |x, depth| {
        shift_node(x, depth, offset);
        Ok(true)
    })
}

fn shift_node(x: &mut Expr, depth: u32, offset: usize) {
    match x {
        Expr::Var(v) => match v.source {
            VarSource::Relation(r) if v.levels_up == depth => v.source = VarSource::Relation(r + offset),
            _ if v.levels_up > depth => v.levels_up -= 1,
            _ => {}
        },
        Expr::Aggref(a) if a.levels_up > depth => a.levels_up -= 1,
        Expr::GroupingFunc(g) if g.levels_up > depth => g.levels_up -= 1,
        _ => {}
    }
}

/// An expression of a merged query: its own columns move by `offset`, columns one level out become this level's.
fn shifted(e: &Expr, offset: usize) -> SqlResult<Expr> {
    let mut out = e.clone();
    walk_expr_mut(&mut out, 0, 0, &mut |x, depth| {
        shift_node(x, depth, offset);
        Ok(true)
    })?;
    Ok(out)
}

fn shift_from(f: &FromExpr, offset: usize) -> SqlResult<FromExpr> {
    Ok(FromExpr {
        items: f.items.iter().map(|i| shift_tree(i, offset)).collect::<SqlResult<_>>()?,
        quals: f.quals.as_ref().map(|q| shifted(q, offset)).transpose()?,
    })
}

fn shift_tree(t: &JoinTree, offset: usize) -> SqlResult<JoinTree> {
    Ok(match t {
        JoinTree::Relation(r) => JoinTree::Relation(r + offset),
        JoinTree::From(f) => JoinTree::From(Box::new(shift_from(f, offset)?)),
        JoinTree::Join(j) => JoinTree::Join(Box::new(JoinExpr {
            kind: j.kind,
            left: shift_tree(&j.left, offset)?,
            right: shift_tree(&j.right, offset)?,
            quals: j.quals.as_ref().map(|q| shifted(q, offset)).transpose()?,
            relation: if j.relation == 0 { 0 } else { j.relation + offset },
        })),
    })
}

fn append_range_table(query: &mut Query, sub: &Query, offset: usize) -> SqlResult<()> {
    for r in &sub.range_table {
        let mut r = r.clone();
        let shift = |e: &mut Expr| -> SqlResult<()> {
            *e = shifted(e, offset)?;
            Ok(())
        };
        match &mut r.kind {
            RangeTableKind::Function { functions, .. } => functions.iter_mut().try_for_each(|f| shift(&mut f.call))?,
            RangeTableKind::Subquery(q) => shift_subquery(q, offset)?,
            RangeTableKind::Values { rows, .. } => rows.iter_mut().flatten().try_for_each(shift)?,
            RangeTableKind::Join { alias_vars, .. } => alias_vars.iter_mut().try_for_each(shift)?,
            RangeTableKind::Group { exprs } => exprs.iter_mut().try_for_each(shift)?,
            _ => {}
        }
        query.range_table.push(r);
    }
    Ok(())
}

/// The relations that an outer join may fill with NULLs, and all that FROM reads.
fn nullable(t: &JoinTree, below: bool, out: &mut Relids, all: &mut Vec<usize>) {
    match t {
        JoinTree::Relation(r) => {
            all.push(*r);
            if below {
                out.insert(*r);
            }
        }
        JoinTree::From(f) => f.items.iter().for_each(|i| nullable(i, below, out, all)),
        JoinTree::Join(j) => {
            let (l, r) = match j.kind {
                JoinKind::Inner | JoinKind::Semi => (false, false),
                JoinKind::Left | JoinKind::Anti => (false, true),
                JoinKind::Right => (true, false),
                JoinKind::Full => (true, true),
            };
            nullable(&j.left, below || l, out, all);
            nullable(&j.right, below || r, out, all);
        }
    }
}

/// Merges one simple subquery of FROM.
fn pull_up_one(level: &Level<'_>, query: &mut Query) -> SqlResult<bool> {
    let (mut nulls, mut all) = (Relids::default(), Vec::new());
    query.from.items.iter().for_each(|i| nullable(i, false, &mut nulls, &mut all));
    for rti in all {
        let Some(entry) = rti.checked_sub(1).and_then(|i| query.range_table.get(i)) else { continue };
        let RangeTableKind::Subquery(sub) = &entry.kind else { continue };
        if entry.lateral || entry.security_barrier {
            continue;
        }
        let sub = (**sub).clone();
        if !can_merge(level, query, &sub, rti, nulls.contains(rti))? {
            continue;
        }
        merge(level, query, sub, rti)?;
        return Ok(true);
    }
    Ok(false)
}

fn can_merge(level: &Level<'_>, query: &Query, sub: &Query, rti: usize, below_outer: bool) -> SqlResult<bool> {
    if !is_plain(sub)
        || !sub.distinct.is_empty()
        || !sub.order_by.is_empty()
        || sub.from.items.is_empty()
        || sub.targets.iter().any(|t| t.junk)
        || is_correlated(sub)?
    {
        return Ok(false);
    }
    if sub.targets.iter().any(|t| level.is_volatile(&t.expr)) {
        return Ok(false);
    }
    // Columns that an outer join may null must be columns: an expression would be computed after the nulling.
    if below_outer && !sub.targets.iter().all(|t| matches!(&t.expr, Expr::Var(v) if v.levels_up == 0)) {
        return Ok(false);
    }
    // References that merging cannot follow.
    let mut stuck = false;
    walk_query_mut(&mut query.clone(), 0, 0, &mut |e, depth| {
        if let Expr::Var(v) = e
            && v.source == VarSource::Relation(rti)
            && v.levels_up == depth
        {
            stuck |= v.attno.0 <= 0;
        }
        Ok(true)
    })?;
    Ok(!stuck)
}

fn merge(level: &Level<'_>, query: &mut Query, mut sub: Query, rti: usize) -> SqlResult<()> {
    pull_up_sublinks(level, &mut sub)?;
    crate::prep::expand_join_columns(&mut sub)?;
    let offset = query.range_table.len();
    let columns = sub.targets.iter().map(|t| shifted(&t.expr, offset)).collect::<SqlResult<Vec<_>>>()?;
    let from = shift_from(&sub.from, offset)?;
    append_range_table(query, &sub, offset)?;
    fn put(t: &mut JoinTree, rti: usize, from: &FromExpr) {
        match t {
            JoinTree::Relation(r) if *r == rti => *t = JoinTree::From(Box::new(from.clone())),
            JoinTree::Relation(_) => {}
            JoinTree::From(f) => f.items.iter_mut().for_each(|i| put(i, rti, from)),
            JoinTree::Join(j) => {
                put(&mut j.left, rti, from);
                put(&mut j.right, rti, from);
            }
        }
    }
    query.from.items.iter_mut().for_each(|i| put(i, rti, &from));
    walk_query_mut(query, 0, 0, &mut |e, depth| {
        let Expr::Var(v) = e else { return Ok(true) };
        if v.source != VarSource::Relation(rti) || v.levels_up != depth {
            return Ok(true);
        }
        let n = usize::try_from(v.attno.0).ok().and_then(|n| n.checked_sub(1));
        let found = n.and_then(|n| columns.get(n)).cloned();
        *e = found.ok_or_else(|| SqlError::internal("a subquery lacks a column"))?;
        raise_levels(e, depth)?;
        Ok(false)
    })?;
    // The entry stays in its place, so that no index moves; nothing reads it any more.
    if let Some(entry) = rti.checked_sub(1).and_then(|i| query.range_table.get_mut(i)) {
        entry.kind = RangeTableKind::Result;
    }
    Ok(())
}
