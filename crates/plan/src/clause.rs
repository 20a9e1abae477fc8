//! Restriction and join clauses, with what planning has worked out about each.

use std::cell::Cell;
use std::rc::Rc;

use stegodon_catalog::Catalog;
use stegodon_format::ids::Oid;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::OpExpr;

use crate::exprs::{self, relids_of};
use crate::path::QualCost;
use crate::relids::Relids;

/// One conjunct of a WHERE or ON.
#[derive(Debug)]
pub struct Clause {
    /// The condition.
    pub expr: Expr,
    /// The relations it reads.
    pub relids: Relids,
    /// The relations of an operator's left side, where it has two sides.
    pub left: Relids,
    /// The relations of its right side.
    pub right: Relids,
    /// Whether it reads no row and is not volatile: it is tested once.
    pub pseudoconstant: bool,
    /// Its cost.
    pub cost: QualCost,
    /// The selectivity, once estimated; negative before.
    pub selectivity: Cell<f64>,
    /// The btree families whose equality operator this is, where it is `x = y`.
    pub merge_families: Vec<Oid>,
    /// The operator that hashes, where this is a hashable `x = y`.
    pub hash_operator: Option<Oid>,
    /// The equivalence class that it came from or went into.
    pub class: Cell<Option<usize>>,
    /// For an OR: whether it was derived rather than written.
    pub derived: bool,
}

impl Clause {
    /// The clause as an operator with two arguments.
    pub fn binary(&self) -> Option<(&OpExpr, &Expr, &Expr)> {
        match &self.expr {
            Expr::Op(op) => match op.args.as_slice() {
                [l, r] => Some((op, l, r)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether it can join `outer` to `inner`: each side reads one of them only. `Some(true)` where the left side is outer.
    pub fn joins(&self, outer: &Relids, inner: &Relids) -> Option<bool> {
        if self.left.is_empty() || self.right.is_empty() {
            return None;
        }
        if self.left.is_subset(outer) && self.right.is_subset(inner) {
            Some(true)
        } else if self.left.is_subset(inner) && self.right.is_subset(outer) {
            Some(false)
        } else {
            None
        }
    }
}

/// `btree`'s OID in `pg_am`.
pub const BTREE: Oid = Oid(403);
/// `hash`'s OID in `pg_am`.
pub const HASH: Oid = Oid(405);

/// The btree families in which `operator` is equality.
pub fn merge_families(catalog: &Catalog, operator: Oid) -> Vec<Oid> {
    let mut out = Vec::new();
    for a in catalog.amops_of_operator(operator) {
        if a.access_method == BTREE && a.strategy == 3 && a.purpose == b's' && !out.contains(&a.family) {
            out.push(a.family);
        }
    }
    out
}

/// Builds a clause.
pub fn make_clause(catalog: &Catalog, expr: Expr, cost: QualCost, volatile: bool) -> Rc<Clause> {
    let relids = relids_of(&expr);
    let (mut left, mut right) = (Relids::default(), Relids::default());
    let (mut families, mut hash_operator) = (Vec::new(), None);
    if let Expr::Op(op) = &expr
        && let [l, r] = op.args.as_slice()
    {
        left = relids_of(l);
        right = relids_of(r);
        // As PostgreSQL, only where neither side is constant across rows' relations overlap.
        if let Some(row) = catalog.operator(op.operator)
            && !volatile
            && !exprs::has_subplan(&expr)
        {
            if row.can_merge {
                families = merge_families(catalog, op.operator);
            }
            if row.can_hash && !left.is_empty() && !right.is_empty() && !left.overlaps(&right) {
                hash_operator = Some(op.operator);
            }
        }
    }
    let pseudoconstant = relids.is_empty() && !volatile && !exprs::has_aggregate(&expr);
    Rc::new(Clause {
        expr,
        relids,
        left,
        right,
        pseudoconstant,
        cost,
        selectivity: Cell::new(-1.0),
        merge_families: families,
        hash_operator,
        class: Cell::new(None),
        derived: false,
    })
}
