//! Visiting the parts of expressions and queries.
//!
//! One macro holds the list of what each node contains; the borrowed and the mutable visits are made from it, so neither
//! can forget a child that the other knows.

#![allow(for_loops_over_fallibles, reason = "an Option is visited as a list of at most one")]

use crate::expr::{Expr, TargetEntry};
use crate::query::{FromExpr, JoinTree, Query, RangeTableKind};

macro_rules! visit_expr {
    ($e:expr, $f:ident, [$($m:tt)*]) => {
        match $e {
            Expr::Var(_) | Expr::Const(_) | Expr::Param(_) | Expr::CaseTest(_) | Expr::SqlValue(_) | Expr::NextValue(_) => {}
            Expr::Aggref(a) => {
                for x in &$($m)* a.direct_args { $f(x)?; }
                for x in &$($m)* a.args { $f(&$($m)* x.expr)?; }
                for x in &$($m)* a.filter { $f(x)?; }
            }
            Expr::GroupingFunc(g) => for x in &$($m)* g.args { $f(x)?; },
            Expr::WindowFunc(w) => {
                for x in &$($m)* w.args { $f(x)?; }
                for x in &$($m)* w.filter { $f(x)?; }
            }
            Expr::Subscript(s) => {
                for x in (&$($m)* s.upper).into_iter().flatten() { $f(x)?; }
                for x in (&$($m)* s.lower).into_iter().flatten() { $f(x)?; }
                $f(&$($m)* s.container)?;
            }
            Expr::Func(x) => for x in &$($m)* x.args { $f(x)?; },
            Expr::Op(x) | Expr::Distinct(x) | Expr::NullIf(x) => for x in &$($m)* x.args { $f(x)?; },
            Expr::ScalarArrayOp(x) => for x in &$($m)* *x.args { $f(x)?; },
            Expr::Bool(x) => for x in &$($m)* x.args { $f(x)?; },
            Expr::SubLink(s) => for x in &$($m)* s.test { $f(x)?; },
            Expr::SubPlan(s) => {
                for x in &$($m)* s.test { $f(x)?; }
                for x in &$($m)* s.correlation { $f(&$($m)* x.1)?; }
                for x in &$($m)* s.params { $f(&$($m)* x.1)?; }
            }
            Expr::FieldSelect(x) => $f(&$($m)* x.arg)?,
            Expr::Relabel(x) => $f(&$($m)* x.arg)?,
            Expr::CoerceViaIo(x) => $f(&$($m)* x.arg)?,
            Expr::ArrayCoerce(x) => {
                $f(&$($m)* x.arg)?;
                $f(&$($m)* x.element)?;
            }
            Expr::ConvertRowtype(x) => $f(&$($m)* x.arg)?,
            Expr::Collate(x) => $f(&$($m)* x.arg)?,
            Expr::Case(c) => {
                for x in &$($m)* c.arg { $f(x)?; }
                for w in &$($m)* c.whens {
                    $f(&$($m)* w.0)?;
                    $f(&$($m)* w.1)?;
                }
                $f(&$($m)* c.default)?;
            }
            Expr::Array(x) => for x in &$($m)* x.elements { $f(x)?; },
            Expr::Row(x) => for x in &$($m)* x.args { $f(x)?; },
            Expr::RowCompare(x) => {
                for x in &$($m)* x.left { $f(x)?; }
                for x in &$($m)* x.right { $f(x)?; }
            }
            Expr::Coalesce(x) => for x in &$($m)* x.args { $f(x)?; },
            Expr::MinMax(x) => for x in &$($m)* x.args { $f(x)?; },
            Expr::NullTest(x) => $f(&$($m)* x.arg)?,
            Expr::BooleanTest(x) => $f(&$($m)* x.arg)?,
            Expr::CoerceToDomain(x) => $f(&$($m)* x.arg)?,
        }
    };
}

macro_rules! visit_query {
    ($q:expr, $f:ident, $join:ident, [$($m:tt)*]) => {{
        let q = $q;
        for t in &$($m)* q.targets { $f(&$($m)* t.expr)?; }
        for rte in &$($m)* q.range_table {
            match &$($m)* rte.kind {
                RangeTableKind::Join { alias_vars, .. } => for x in alias_vars { $f(x)?; },
                RangeTableKind::Function { functions, .. } => for x in functions { $f(&$($m)* x.call)?; },
                RangeTableKind::Values { rows, .. } => for row in rows { for x in row { $f(x)?; } },
                RangeTableKind::Group { exprs } => for x in exprs { $f(x)?; },
                RangeTableKind::Relation { sample: Some(s), .. } => {
                    for x in &$($m)* s.args { $f(x)?; }
                    for x in &$($m)* s.repeatable { $f(x)?; }
                }
                RangeTableKind::Relation { sample: None, .. }
                | RangeTableKind::Subquery(_) | RangeTableKind::Cte { .. } | RangeTableKind::Result => {}
            }
        }
        $join(&$($m)* q.from, $f)?;
        for x in &$($m)* q.having { $f(x)?; }
        for w in &$($m)* q.windows {
            for x in &$($m)* w.start_offset { $f(x)?; }
            for x in &$($m)* w.end_offset { $f(x)?; }
        }
        for x in &$($m)* q.offset { $f(x)?; }
        for x in &$($m)* q.limit { $f(x)?; }
        Ok(())
    }};
}

impl Expr {
    /// Calls `f` on each direct part, stopping at the first error. A [`Expr::SubLink`]'s part is its test; its query is
    /// not an expression: see [`Query::try_each_expr`].
    pub fn try_each_child<'a, E>(&'a self, f: &mut dyn FnMut(&'a Expr) -> Result<(), E>) -> Result<(), E> {
        visit_expr!(self, f, []);
        Ok(())
    }

    /// [`Expr::try_each_child`], mutably.
    pub fn try_each_child_mut<E>(&mut self, f: &mut dyn FnMut(&mut Expr) -> Result<(), E>) -> Result<(), E> {
        visit_expr!(self, f, [mut]);
        Ok(())
    }

    /// Whether `f` holds for this expression or any part of it, subqueries not entered.
    pub fn any(&self, f: &mut dyn FnMut(&Expr) -> bool) -> bool {
        f(self) || self.try_each_child(&mut |x| if x.any(f) { Err(()) } else { Ok(()) }).is_err()
    }
}

impl Query {
    /// Calls `f` on each expression that stands in this query itself: outputs, functions and VALUES of the range table,
    /// join and WHERE conditions, HAVING, LIMIT, window offsets. Subqueries are not entered.
    pub fn try_each_expr<'a, E>(&'a self, f: &mut dyn FnMut(&'a Expr) -> Result<(), E>) -> Result<(), E> {
        visit_query!(self, f, from_exprs, [])
    }

    /// [`Query::try_each_expr`], mutably.
    pub fn try_each_expr_mut<E>(&mut self, f: &mut dyn FnMut(&mut Expr) -> Result<(), E>) -> Result<(), E> {
        visit_query!(self, f, from_exprs_mut, [mut])
    }

    /// The output columns that a client sees.
    pub fn outputs(&self) -> impl Iterator<Item = &TargetEntry> {
        self.targets.iter().filter(|t| !t.junk)
    }
}

fn from_exprs<'a, E>(from: &'a FromExpr, f: &mut dyn FnMut(&'a Expr) -> Result<(), E>) -> Result<(), E> {
    for item in &from.items {
        join_exprs(item, f)?;
    }
    from.quals.as_ref().map_or(Ok(()), f)
}

fn join_exprs<'a, E>(item: &'a JoinTree, f: &mut dyn FnMut(&'a Expr) -> Result<(), E>) -> Result<(), E> {
    match item {
        JoinTree::Relation(_) => Ok(()),
        JoinTree::From(from) => from_exprs(from, f),
        JoinTree::Join(j) => {
            join_exprs(&j.left, f)?;
            join_exprs(&j.right, f)?;
            j.quals.as_ref().map_or(Ok(()), f)
        }
    }
}

fn from_exprs_mut<E>(from: &mut FromExpr, f: &mut dyn FnMut(&mut Expr) -> Result<(), E>) -> Result<(), E> {
    for item in &mut from.items {
        join_exprs_mut(item, f)?;
    }
    from.quals.as_mut().map_or(Ok(()), f)
}

fn join_exprs_mut<E>(item: &mut JoinTree, f: &mut dyn FnMut(&mut Expr) -> Result<(), E>) -> Result<(), E> {
    match item {
        JoinTree::Relation(_) => Ok(()),
        JoinTree::From(from) => from_exprs_mut(from, f),
        JoinTree::Join(j) => {
            join_exprs_mut(&mut j.left, f)?;
            join_exprs_mut(&mut j.right, f)?;
            j.quals.as_mut().map_or(Ok(()), f)
        }
    }
}
