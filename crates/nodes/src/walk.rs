//! Visiting and changing the expressions of a tree.
//!
//! [`Expr::children`] and [`Expr::children_mut`] visit an expression's direct parts, of which a subquery is not one;
//! [`Query::exprs`] and [`Query::exprs_mut`] visit the expressions that stand in one query, not those of its subqueries,
//! which [`Query::subqueries`] and [`Query::subqueries_mut`] visit. A walker that needs all of them counts levels itself.

use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::expr::*;
use crate::query::*;
use crate::reader::MAX_DEPTH;

macro_rules! children {
    ($(#[$doc:meta])* $name:ident, $iter:ident, $as_mut:ident, $($mut:tt)?) => {
        impl Expr {
            $(#[$doc])*
            pub fn $name(&$($mut)? self, visit: &mut dyn FnMut(&$($mut)? Expr)) {
                match self {
                    Expr::Var(_)
                    | Expr::Const(_)
                    | Expr::Param(_)
                    | Expr::CaseTest(_)
                    | Expr::SqlValue(_)
                    | Expr::NextValue(_) => {}
                    Expr::Aggref(a) => {
                        a.direct_args.$iter().for_each(&mut *visit);
                        a.args.$iter().for_each(|t| visit(&$($mut)? t.expr));
                        a.filter.$iter().for_each(&mut *visit);
                    }
                    Expr::GroupingFunc(g) => g.args.$iter().for_each(visit),
                    Expr::WindowFunc(w) => {
                        w.args.$iter().for_each(&mut *visit);
                        w.filter.$iter().for_each(&mut *visit);
                    }
                    Expr::Subscript(s) => {
                        s.upper.$iter().flatten().for_each(&mut *visit);
                        s.lower.$iter().flatten().for_each(&mut *visit);
                        visit(&$($mut)? s.container);
                    }
                    Expr::Func(f) => f.args.$iter().for_each(visit),
                    Expr::Op(o) | Expr::Distinct(o) | Expr::NullIf(o) => o.args.$iter().for_each(visit),
                    Expr::ScalarArrayOp(s) => s.args.$iter().for_each(visit),
                    Expr::Bool(b) => b.args.$iter().for_each(visit),
                    Expr::SubLink(s) => s.test.$iter().for_each(visit),
                    Expr::SubPlan(s) => {
                        s.test.$iter().for_each(&mut *visit);
                        s.params.$iter().for_each(|(_, e)| visit(e));
                    }
                    Expr::FieldSelect(x) => visit(&$($mut)? x.arg),
                    Expr::Relabel(x) => visit(&$($mut)? x.arg),
                    Expr::CoerceViaIo(x) => visit(&$($mut)? x.arg),
                    Expr::ArrayCoerce(x) => {
                        visit(&$($mut)? x.arg);
                        visit(&$($mut)? x.element);
                    }
                    Expr::ConvertRowtype(x) => visit(&$($mut)? x.arg),
                    Expr::Collate(x) => visit(&$($mut)? x.arg),
                    Expr::Case(c) => {
                        c.arg.$iter().for_each(&mut *visit);
                        for (when, then) in c.whens.$iter() {
                            visit(when);
                            visit(then);
                        }
                        visit(&$($mut)? c.default);
                    }
                    Expr::Array(a) => a.elements.$iter().for_each(visit),
                    Expr::Row(r) => r.args.$iter().for_each(visit),
                    Expr::RowCompare(r) => {
                        r.left.$iter().for_each(&mut *visit);
                        r.right.$iter().for_each(&mut *visit);
                    }
                    Expr::Coalesce(c) => c.args.$iter().for_each(visit),
                    Expr::MinMax(m) => m.args.$iter().for_each(visit),
                    Expr::NullTest(x) => visit(&$($mut)? x.arg),
                    Expr::BooleanTest(x) => visit(&$($mut)? x.arg),
                    Expr::CoerceToDomain(x) => visit(&$($mut)? x.arg),
                }
            }
        }
    };
}

children!(
    /// Visits the direct subexpressions, in order.
    children, iter, as_ref,
);
children!(
    /// Visits the direct subexpressions, in order, for change.
    children_mut, iter_mut, as_mut, mut
);

macro_rules! query_exprs {
    ($(#[$doc:meta])* $name:ident, $join:ident, $iter:ident, $as:ident, $($mut:tt)?) => {
        fn $join(tree: &$($mut)? JoinTree, visit: &mut dyn FnMut(&$($mut)? Expr)) {
            match tree {
                JoinTree::Relation(_) => {}
                JoinTree::Join(join) => {
                    $join(&$($mut)? join.left, visit);
                    $join(&$($mut)? join.right, visit);
                    join.quals.$iter().for_each(visit);
                }
                JoinTree::From(from) => {
                    from.items.$iter().for_each(|item| $join(item, visit));
                    from.quals.$iter().for_each(visit);
                }
            }
        }

        impl Query {
            $(#[$doc])*
            pub fn $name(&$($mut)? self, visit: &mut dyn FnMut(&$($mut)? Expr)) {
                for entry in self.range_table.$iter() {
                    match &$($mut)? entry.kind {
                        RangeTableKind::Relation { sample, .. } => {
                            if let Some(sample) = sample {
                                sample.args.$iter().for_each(&mut *visit);
                                sample.repeatable.$iter().for_each(&mut *visit);
                            }
                        }
                        RangeTableKind::Join { alias_vars, .. } => alias_vars.$iter().for_each(&mut *visit),
                        RangeTableKind::Function { functions, .. } => {
                            functions.$iter().for_each(|f| visit(&$($mut)? f.call));
                        }
                        RangeTableKind::Values { rows, .. } => rows.$iter().flatten().for_each(&mut *visit),
                        RangeTableKind::Group { exprs } => exprs.$iter().for_each(&mut *visit),
                        RangeTableKind::Subquery(_) | RangeTableKind::Cte { .. } | RangeTableKind::Result => {}
                    }
                }
                self.from.items.$iter().for_each(|item| $join(item, visit));
                self.from.quals.$iter().for_each(&mut *visit);
                self.targets.$iter().for_each(|t| visit(&$($mut)? t.expr));
                self.having.$iter().for_each(&mut *visit);
                for window in self.windows.$iter() {
                    window.start_offset.$iter().for_each(&mut *visit);
                    window.end_offset.$iter().for_each(&mut *visit);
                }
                self.offset.$iter().for_each(&mut *visit);
                self.limit.$iter().for_each(&mut *visit);
            }
        }
    };
}

query_exprs!(
    /// Visits the expressions that stand in this query, not those of its subqueries.
    exprs, join_exprs, iter, as_ref,
);
query_exprs!(
    /// Visits the expressions that stand in this query for change, not those of its subqueries.
    exprs_mut, join_exprs_mut, iter_mut, as_mut, mut
);

impl Query {
    /// Visits the subqueries of FROM and WITH, which are one level down, not those in expressions.
    pub fn subqueries(&self, visit: &mut dyn FnMut(&Query)) {
        for entry in &self.range_table {
            if let RangeTableKind::Subquery(query) = &entry.kind {
                visit(query);
            }
        }
        self.ctes.iter().for_each(|cte| visit(&cte.query));
    }

    /// Visits the subqueries of FROM and WITH for change.
    pub fn subqueries_mut(&mut self, visit: &mut dyn FnMut(&mut Query)) {
        for entry in &mut self.range_table {
            if let RangeTableKind::Subquery(query) = &mut entry.kind {
                visit(query);
            }
        }
        self.ctes.iter_mut().for_each(|cte| visit(&mut cte.query));
    }
}

fn too_deep() -> SqlError {
    SqlError::new(SqlState::StatementTooComplex, "stack depth limit exceeded")
}

/// Visits every expression of a tree for change, parents before children, subqueries included; `visit` is told how many
/// queries down it is, and says whether to go on below. Grows the stack; refuses trees deeper than [`MAX_DEPTH`].
pub fn walk_expr_mut(
    expr: &mut Expr,
    level: u32,
    depth: usize,
    visit: &mut dyn FnMut(&mut Expr, u32) -> SqlResult<bool>,
) -> SqlResult<()> {
    if depth > 2 * MAX_DEPTH {
        return Err(too_deep());
    }
    if !visit(expr, level)? {
        return Ok(());
    }
    stacker::maybe_grow(128 << 10, 1 << 20, || {
        let mut result = Ok(());
        expr.children_mut(&mut |child| {
            if result.is_ok() {
                result = walk_expr_mut(child, level, depth + 1, visit);
            }
        });
        result?;
        match expr {
            Expr::SubLink(link) => walk_query_mut(&mut link.query, level + 1, depth + 1, visit),
            _ => Ok(()),
        }
    })
}

/// Visits every expression of a query for change, as [`walk_expr_mut`] does.
pub fn walk_query_mut(
    query: &mut Query,
    level: u32,
    depth: usize,
    visit: &mut dyn FnMut(&mut Expr, u32) -> SqlResult<bool>,
) -> SqlResult<()> {
    if depth > 2 * MAX_DEPTH {
        return Err(too_deep());
    }
    stacker::maybe_grow(128 << 10, 1 << 20, || {
        let mut result = Ok(());
        query.exprs_mut(&mut |expr| {
            if result.is_ok() {
                result = walk_expr_mut(expr, level, depth + 1, visit);
            }
        });
        query.subqueries_mut(&mut |below| {
            if result.is_ok() {
                result = walk_query_mut(below, level + 1, depth + 1, visit);
            }
        });
        result
    })
}

/// Adds `by` to the levels of everything in `expr` that refers to a query outside of it (`IncrementVarSublevelsUp`).
pub fn raise_levels(expr: &mut Expr, by: u32) -> SqlResult<()> {
    if by == 0 {
        return Ok(());
    }
    walk_expr_mut(expr, 0, 0, &mut |expr, level| {
        let raise = |levels_up: &mut u32| {
            if *levels_up >= level {
                *levels_up += by;
            }
        };
        match expr {
            Expr::Var(var) => raise(&mut var.levels_up),
            Expr::Aggref(aggref) => raise(&mut aggref.levels_up),
            Expr::GroupingFunc(func) => raise(&mut func.levels_up),
            Expr::SubLink(link) => raise_cte_levels(&mut link.query, level + 1, by, 0)?,
            _ => {}
        }
        Ok(true)
    })
}

/// The references to WITH queries outside of an expression, in the range tables of its subqueries.
fn raise_cte_levels(query: &mut Query, level: u32, by: u32, depth: usize) -> SqlResult<()> {
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    for entry in &mut query.range_table {
        if let RangeTableKind::Cte { levels_up, .. } = &mut entry.kind {
            if *levels_up >= level {
                *levels_up += by;
            }
        }
    }
    let mut result = Ok(());
    query.subqueries_mut(&mut |below| {
        if result.is_ok() {
            result = raise_cte_levels(below, level + 1, by, depth + 1);
        }
    });
    result
}

/// Replaces the Vars that point to the query's entry for grouping expressions (18) by those expressions. The entry
/// itself stays in its place, so that no index moves.
pub fn replace_group_vars(query: &mut Query) -> SqlResult<()> {
    let Some((index, exprs)) = crate::reader::group_entry(query) else { return Ok(()) };
    let exprs = exprs.to_vec();
    walk_query_mut(query, 0, 0, &mut |expr, level| {
        let Expr::Var(var) = expr else { return Ok(true) };
        if var.source != VarSource::Relation(index) || var.levels_up != level {
            return Ok(true);
        }
        let place = usize::try_from(var.attno.0).ok().and_then(|n| n.checked_sub(1));
        let replacement = place.and_then(|n| exprs.get(n)).ok_or_else(|| {
            SqlError::new(SqlState::DataCorrupted, "invalid pg_node_tree: grouping column out of range")
        })?;
        *expr = replacement.clone();
        raise_levels(expr, level)?;
        Ok(false)
    })
}
