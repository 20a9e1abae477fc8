//! Whether two expressions say the same, wherever they were written and however their casts were.

use stegodon_nodes::expr::{CoercionForm, Expr};
use stegodon_nodes::levels::walk_expr_mut;

fn normal(e: &Expr) -> Expr {
    let mut e = e.clone();
    // Nothing here fails; a tree too deep to walk stays as it is and is then merely not found equal.
    let _ = walk_expr_mut(&mut e, 0, 0, &mut |x, _| {
        match x {
            Expr::Var(v) => v.location = None,
            Expr::Const(c) => c.location = None,
            Expr::Param(p) => p.location = None,
            Expr::Aggref(a) => a.location = None,
            Expr::Func(f) => {
                f.location = None;
                f.form = CoercionForm::Call;
            }
            Expr::Op(o) | Expr::Distinct(o) | Expr::NullIf(o) => o.location = None,
            Expr::ScalarArrayOp(o) => o.location = None,
            Expr::Bool(b) => b.location = None,
            Expr::SubLink(s) => s.location = None,
            Expr::Array(a) => a.location = None,
            Expr::Row(r) => {
                r.location = None;
                r.form = CoercionForm::Call;
            }
            Expr::Relabel(r) => r.form = CoercionForm::Call,
            Expr::CoerceViaIo(c) => c.form = CoercionForm::Call,
            Expr::ArrayCoerce(c) => c.form = CoercionForm::Call,
            Expr::CoerceToDomain(c) => c.form = CoercionForm::Call,
            _ => {}
        }
        Ok(true)
    });
    e
}

/// Whether two expressions say the same.
pub(crate) fn same(a: &Expr, b: &Expr) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b)
        && a.type_oid() == b.type_oid()
        && match (a, b) {
            (Expr::Var(x), Expr::Var(y)) => x.source == y.source && x.attno == y.attno && x.levels_up == y.levels_up,
            _ => normal(a) == normal(b),
        }
}
