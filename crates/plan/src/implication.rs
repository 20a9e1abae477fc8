//! Whether known conditions imply a predicate (`predtest.c`): for partial indexes.

use std::cmp::Ordering;

use stegodon_nodes::Expr;
use stegodon_nodes::expr::*;

use crate::clause::BTREE;
use crate::exprs::{any, strip_relabel};
use crate::level::Level;
use crate::values;

/// How deep implication is looked for.
const MAX_DEPTH: u32 = 12;

/// Whether `predicate` is true in every row where all of `known` are.
pub(crate) fn implied(level: &Level<'_>, predicate: &Expr, known: &[Expr]) -> bool {
    !level.is_mutable(predicate) && implied_at(level, predicate, known, 0)
}

fn implied_at(level: &Level<'_>, predicate: &Expr, known: &[Expr], depth: u32) -> bool {
    if depth > MAX_DEPTH {
        return false;
    }
    match predicate {
        Expr::Bool(b) if b.kind == BoolKind::And => {
            return b.args.iter().all(|p| implied_at(level, p, known, depth + 1));
        }
        Expr::Bool(b) if b.kind == BoolKind::Or => {
            if b.args.iter().any(|p| implied_at(level, p, known, depth + 1)) {
                return true;
            }
        }
        _ => {}
    }
    known.iter().any(|k| by_clause(level, predicate, k, depth))
}

fn by_clause(level: &Level<'_>, predicate: &Expr, known: &Expr, depth: u32) -> bool {
    if predicate == known {
        return true;
    }
    match known {
        Expr::Bool(b) if b.kind == BoolKind::And => {
            return b.args.iter().any(|k| by_clause(level, predicate, k, depth + 1));
        }
        Expr::Bool(b) if b.kind == BoolKind::Or => {
            return b.args.iter().all(|k| implied_at(level, predicate, std::slice::from_ref(k), depth + 1));
        }
        Expr::ScalarArrayOp(s) if s.any => {
            // x = ANY (constants): each must imply.
            let [scalar, array] = &*s.args;
            let elements = match array {
                Expr::Array(a) if !a.multidims => Some(a.elements.clone()),
                Expr::Const(Const { value: Some(d), .. }) => level.array_constants(d, s.operator),
                _ => None,
            };
            if let Some(elements) = elements.filter(|e| e.len() <= 100) {
                return elements.iter().all(|e| {
                    let one = Expr::Op(OpExpr {
                        operator: s.operator,
                        function: s.function,
                        result_type: crate::exprs::BOOL,
                        returns_set: false,
                        collation: stegodon_format::ids::Oid::INVALID,
                        input_collation: s.input_collation,
                        args: vec![scalar.clone(), e.clone()],
                        location: None,
                    });
                    by_clause(level, predicate, &one, depth + 1)
                });
            }
        }
        _ => {}
    }
    match predicate {
        // A strict condition that holds saw no NULL.
        Expr::NullTest(t) if !t.is_null && !t.arg_is_row => strict_for(level, known, strip_relabel(&t.arg)),
        Expr::Op(p) => match known {
            Expr::Op(k) => by_operator(level, p, k),
            _ => false,
        },
        _ => false,
    }
}

/// Whether the condition cannot be true where `e` is NULL.
pub(crate) fn strict_for(level: &Level<'_>, condition: &Expr, e: &Expr) -> bool {
    if strip_relabel(condition) == e {
        return true;
    }
    let strict = |f| level.catalog().proc(f).is_some_and(|p| p.strict && !p.returns_set);
    match condition {
        Expr::Op(o) if strict(o.function) => o.args.iter().any(|a| strict_value(level, a, e)),
        Expr::Func(f) if strict(f.function) => f.args.iter().any(|a| strict_value(level, a, e)),
        Expr::ScalarArrayOp(s) if s.any && strict(s.function) => strict_value(level, &s.args[0], e),
        Expr::NullTest(t) if !t.is_null && !t.arg_is_row => strict_value(level, &t.arg, e),
        Expr::Bool(b) => match b.kind {
            BoolKind::And => b.args.iter().any(|a| strict_for(level, a, e)),
            BoolKind::Or => b.args.iter().all(|a| strict_for(level, a, e)),
            BoolKind::Not => b.args.iter().all(|a| strict_value(level, a, e)),
        },
        Expr::BooleanTest(t)
            if matches!(t.kind, BooleanTestKind::IsTrue | BooleanTestKind::IsFalse | BooleanTestKind::IsNotUnknown) =>
        {
            strict_value(level, &t.arg, e)
        }
        _ => false,
    }
}

/// Whether the value is NULL where `e` is.
pub(crate) fn strict_value(level: &Level<'_>, value: &Expr, e: &Expr) -> bool {
    if strip_relabel(value) == e {
        return true;
    }
    if !any(value, &mut |x| x == e) {
        return false;
    }
    let strict = |f| level.catalog().proc(f).is_some_and(|p| p.strict && !p.returns_set);
    match value {
        Expr::Op(o) if strict(o.function) => o.args.iter().any(|a| strict_value(level, a, e)),
        Expr::Func(f) if strict(f.function) => f.args.iter().any(|a| strict_value(level, a, e)),
        Expr::Relabel(r) => strict_value(level, &r.arg, e),
        Expr::CoerceViaIo(c) => strict_value(level, &c.arg, e),
        Expr::Bool(b) if b.kind == BoolKind::Not => b.args.iter().any(|a| strict_value(level, a, e)),
        _ => false,
    }
}

/// `x op1 c1` implies `x op2 c2`, in some btree family.
fn by_operator(level: &Level<'_>, predicate: &OpExpr, known: &OpExpr) -> bool {
    if predicate.input_collation != known.input_collation {
        return false;
    }
    let (Some((px, pop, pc)), Some((kx, kop, kc))) = (normal(level, predicate), normal(level, known)) else {
        return false;
    };
    if px != kx {
        return false;
    }
    let catalog = level.catalog();
    for k in catalog.amops_of_operator(kop).iter().filter(|a| a.access_method == BTREE && a.purpose == b's') {
        let found = catalog.amops_of_operator(pop).iter().find(|p| p.family == k.family && p.purpose == b's');
        // `<>` is in no family; its negator is.
        let (strategy, unequal) = match found {
            Some(p) => (p.strategy, false),
            None => {
                let negator = catalog.operator(pop).map(|o| o.negator).unwrap_or_default();
                let negated =
                    catalog.amops_of_operator(negator).iter().any(|p| p.family == k.family && p.strategy == 3);
                if !negated {
                    continue;
                }
                (6, true)
            }
        };
        let Some(order) = values::compare(catalog, (kc.0, &kc.1), (pc.0, &pc.1), known.input_collation) else {
            continue;
        };
        use Ordering::{Equal, Greater, Less};
        // Known: x is on this side of kc. Wanted: x is on that side of pc.
        let implied = match (k.strategy, strategy) {
            (3, 1) => order == Less,
            (3, 2) => order != Greater,
            (3, 3) => order == Equal,
            (3, 4) => order != Less,
            (3, 5) => order == Greater,
            (3, _) => unequal && order != Equal,
            (1, 1 | 2) => order != Greater,
            (1, 6) => order != Greater,
            (2, 1 | 6) => order == Less,
            (2, 2) => order != Greater,
            (4, 4) => order != Less,
            (4, 5 | 6) => order == Greater,
            (5, 4 | 5) => order != Less,
            (5, 6) => order != Less,
            _ => false,
        };
        if implied {
            return true;
        }
    }
    false
}

type Bound = (stegodon_format::ids::Oid, stegodon_types::Datum);

/// The operator with its constant on the right.
fn normal<'e>(level: &Level<'_>, op: &'e OpExpr) -> Option<(&'e Expr, stegodon_format::ids::Oid, Bound)> {
    let [left, right] = op.args.as_slice() else { return None };
    let bound = |e: &Expr| match e {
        Expr::Const(Const { type_oid, value: Some(d), .. }) => Some((*type_oid, d.clone())),
        _ => None,
    };
    if let Some(b) = bound(right) {
        return Some((left, op.operator, b));
    }
    let b = bound(left)?;
    let commutator = level.catalog().operator(op.operator)?.commutator;
    commutator.is_valid().then_some((right, commutator, b))
}
