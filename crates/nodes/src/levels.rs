//! Walking through subqueries with a count of levels: what changes when an expression moves between queries.

use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::expr::*;
use crate::query::*;
use crate::reader::MAX_DEPTH;

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
        expr.try_each_child_mut(&mut |child| walk_expr_mut(child, level, depth + 1, visit))?;
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
        query.try_each_expr_mut(&mut |expr| walk_expr_mut(expr, level, depth + 1, visit))?;
        let mut result = Ok(());
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
        if let RangeTableKind::Cte { levels_up, .. } = &mut entry.kind
            && *levels_up >= level
        {
            *levels_up += by;
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
