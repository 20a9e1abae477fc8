//! The one evaluator (`stegodon_functions`), as planning uses it.

use stegodon_functions::{EvalContext, FoldMode, fold, try_fold};
use stegodon_nodes::Expr;
use stegodon_types::{Datum, SqlResult};

use crate::context::Evaluate;

/// Folds with the evaluator under a session's context.
#[derive(Clone, Copy)]
pub struct Folding<'a> {
    /// What expressions may ask.
    pub cx: EvalContext<'a>,
}

impl Evaluate for Folding<'_> {
    fn fold(&self, expr: Expr) -> SqlResult<Expr> {
        try_fold(expr, &self.cx, FoldMode { stable: false, params: false })
    }

    fn value_now(&self, expr: &Expr) -> Option<Option<Datum>> {
        match fold(expr.clone(), &self.cx, FoldMode { stable: true, params: false }) {
            Expr::Const(c) => Some(c.value),
            _ => None,
        }
    }

    fn check_cancel(&self) -> SqlResult<()> {
        self.cx.session.check_cancel()
    }
}
