//! Conditions that depend on no row: tested once, before the rows below are fetched.

use std::rc::Rc;

use stegodon_nodes::Expr;

use crate::clause::Clause;
use crate::exprs::as_bool_const;
use crate::level::Level;
use crate::path::{Path, PathKind, PathList};
use crate::planner::empty_path;
use crate::rel::Rel;

/// Puts the row-free ones of `clauses` before a relation.
pub(crate) fn gated<'a>(level: &Level<'a>, mut rel: Rel<'a>, clauses: &[Rc<Clause>]) -> Rel<'a> {
    let filter: Vec<Expr> = clauses.iter().filter(|c| c.pseudoconstant).map(|c| c.expr.clone()).collect();
    if filter.is_empty() {
        return rel;
    }
    if filter.iter().any(|e| matches!(as_bool_const(e), Some(Some(false) | None))) {
        make_empty(&mut rel);
        return rel;
    }
    let safe = filter.iter().all(|e| level.is_parallel_safe(e));
    let wrap = |p: &Rc<Path<'a>>| {
        let mut new = (**p).clone();
        new.kind = PathKind::Result { child: Some(Rc::clone(p)), filter: filter.clone() };
        new.parallel_safe &= safe;
        new.parallel_aware = false;
        Rc::new(new)
    };
    let mut list = PathList::new(rel.list.consider_startup);
    list.paths = rel.list.paths.iter().map(wrap).collect();
    if safe {
        list.partial = rel.list.partial.iter().map(wrap).collect();
    }
    rel.parallel &= safe;
    rel.list = list;
    rel
}

/// Leaves a relation with the path that has no rows.
pub(crate) fn make_empty(rel: &mut Rel<'_>) {
    rel.dummy = true;
    rel.rows = 0.0;
    rel.list.paths = vec![Rc::new(empty_path(&rel.target))];
    rel.list.partial.clear();
}
