//! The type, typmod and collation of an expression, and walks over it.

use stegodon_nodes::Expr;
use stegodon_nodes::expr::*;
use stegodon_types::{Oid, oids};

/// The type of an expression's value; 0 where only planning knows it.
pub fn expr_type(expr: &Expr) -> Oid {
    match expr {
        Expr::Var(v) => v.type_oid,
        Expr::Const(c) => c.type_oid,
        Expr::Param(p) => p.type_oid,
        Expr::Aggref(a) => a.result_type,
        Expr::GroupingFunc(_) => oids::INT4,
        Expr::WindowFunc(w) => w.result_type,
        Expr::Subscript(s) => s.result_type,
        Expr::Func(f) => f.result_type,
        Expr::Op(o) | Expr::Distinct(o) => o.result_type,
        Expr::NullIf(o) => o.args.first().map_or(Oid(0), expr_type),
        Expr::ScalarArrayOp(_) | Expr::Bool(_) | Expr::RowCompare(_) => oids::BOOL,
        Expr::NullTest(_) | Expr::BooleanTest(_) => oids::BOOL,
        Expr::SubLink(s) => match s.kind {
            SubLinkKind::Expr => s.query.targets.iter().find(|t| !t.junk).map_or(Oid(0), |t| expr_type(&t.expr)),
            SubLinkKind::Array => Oid(0),
            _ => oids::BOOL,
        },
        Expr::SubPlan(s) => s.result_type,
        Expr::FieldSelect(f) => f.result_type,
        Expr::Relabel(r) => r.result_type,
        Expr::CoerceViaIo(c) => c.result_type,
        Expr::ArrayCoerce(c) => c.result_type,
        Expr::ConvertRowtype(c) => c.result_type,
        Expr::Collate(c) => expr_type(&c.arg),
        Expr::Case(c) => c.result_type,
        Expr::CaseTest(c) => c.type_oid,
        Expr::Array(a) => a.array_type,
        Expr::Row(r) => r.row_type,
        Expr::Coalesce(c) => c.result_type,
        Expr::MinMax(m) => m.result_type,
        Expr::SqlValue(s) => s.type_oid,
        Expr::CoerceToDomain(c) => c.result_type,
        Expr::NextValue(_) => oids::INT8,
    }
}

/// The typmod of an expression's value, -1 where it has none.
pub fn expr_typmod(expr: &Expr) -> i32 {
    match expr {
        Expr::Var(v) => v.typmod,
        Expr::Const(c) => c.typmod,
        Expr::Param(p) => p.typmod,
        Expr::Subscript(s) => s.typmod,
        Expr::FieldSelect(f) => f.typmod,
        Expr::Relabel(r) => r.typmod,
        Expr::ArrayCoerce(c) => c.typmod,
        Expr::Collate(c) => expr_typmod(&c.arg),
        Expr::CaseTest(c) => c.typmod,
        Expr::SubPlan(s) => s.typmod,
        Expr::CoerceToDomain(c) => c.typmod,
        Expr::NullIf(o) => o.args.first().map_or(-1, expr_typmod),
        _ => -1,
    }
}

/// Calls a function on every direct part of an expression that is evaluated with it (not a subquery's).
pub fn for_each_child<'a>(expr: &'a Expr, f: &mut dyn FnMut(&'a Expr)) {
    match expr {
        Expr::Var(_) | Expr::Const(_) | Expr::Param(_) | Expr::CaseTest(_) | Expr::SqlValue(_) | Expr::NextValue(_) => {
        }
        Expr::Aggref(a) => {
            a.direct_args.iter().for_each(&mut *f);
            a.args.iter().for_each(|t| f(&t.expr));
            a.filter.iter().for_each(f);
        }
        Expr::GroupingFunc(g) => g.args.iter().for_each(f),
        Expr::WindowFunc(w) => {
            w.args.iter().for_each(&mut *f);
            w.filter.iter().for_each(f);
        }
        Expr::Subscript(s) => {
            f(&s.container);
            s.upper.iter().flatten().for_each(&mut *f);
            s.lower.iter().flatten().for_each(f);
        }
        Expr::Func(c) => c.args.iter().for_each(f),
        Expr::Op(o) | Expr::Distinct(o) | Expr::NullIf(o) => o.args.iter().for_each(f),
        Expr::ScalarArrayOp(s) => s.args.iter().for_each(f),
        Expr::Bool(b) => b.args.iter().for_each(f),
        Expr::SubLink(s) => s.test.iter().for_each(f),
        Expr::SubPlan(s) => {
            s.test.iter().for_each(&mut *f);
            s.params.iter().for_each(|(_, e)| f(e));
        }
        Expr::FieldSelect(s) => f(&s.arg),
        Expr::Relabel(r) => f(&r.arg),
        Expr::CoerceViaIo(c) => f(&c.arg),
        Expr::ArrayCoerce(c) => {
            f(&c.arg);
            f(&c.element);
        }
        Expr::ConvertRowtype(c) => f(&c.arg),
        Expr::Collate(c) => f(&c.arg),
        Expr::Case(c) => {
            c.arg.iter().for_each(&mut *f);
            for (when, then) in &c.whens {
                f(when);
                f(then);
            }
            f(&c.default);
        }
        Expr::Array(a) => a.elements.iter().for_each(f),
        Expr::Row(r) => r.args.iter().for_each(f),
        Expr::RowCompare(r) => r.left.iter().chain(&r.right).for_each(f),
        Expr::Coalesce(c) => c.args.iter().for_each(f),
        Expr::MinMax(m) => m.args.iter().for_each(f),
        Expr::NullTest(t) => f(&t.arg),
        Expr::BooleanTest(t) => f(&t.arg),
        Expr::CoerceToDomain(c) => f(&c.arg),
    }
}

/// Whether a predicate holds for an expression or any part of it (not a subquery's).
pub fn any(expr: &Expr, predicate: &mut dyn FnMut(&Expr) -> bool) -> bool {
    if predicate(expr) {
        return true;
    }
    let mut found = false;
    for_each_child(expr, &mut |child| found = found || any(child, predicate));
    found
}
