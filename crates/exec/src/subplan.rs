//! `x IN (SELECT …)`, `x op ALL (SELECT …)` inside expressions: the subquery's rows are kept, and each row asks them all.
//!
//! When an expression is lowered, what its comparison takes from the row is split off ([`split`]): those values become the
//! subplan's parameters, and the comparison one between parameters and the subquery's columns.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, UInt32Array};
use stegodon_format::ids::AttrNumber;
use stegodon_functions::{Batch, Column, CompileContext, EvalContext, Evaluator, SubPlans};
use stegodon_nodes::Expr;
use stegodon_nodes::expr::{ParamKind, SubLinkKind, SubPlan, Var, VarSource};
use stegodon_types::{SqlError, SqlResult};

use crate::execution::Execution;
use crate::operator::malformed;

/// Splits the subplans in an expression: afterwards their tests read `Outer` (a parameter of the subplan, by place) and
/// `Inner` (a column of the subquery) only, and the values that the subquery itself asks for stand behind the test's.
pub(crate) fn split(expr: &mut Expr) {
    if let Expr::SubPlan(subplan) = expr {
        let SubPlan { test, params, correlation, .. } = subplan.as_mut();
        if let Some(test) = test {
            split_test(test, params);
        }
        params.extend(correlation.iter().cloned());
        return;
    }
    let _ = expr.try_each_child_mut::<std::convert::Infallible>(&mut |child| {
        split(child);
        Ok(())
    });
}

fn split_test(test: &mut Expr, params: &mut Vec<(u32, Expr)>) {
    let column = |e: &Expr| match e {
        Expr::Param(p) if p.kind == ParamKind::SubLink => Some(p.id),
        _ => None,
    };
    if let Some(place) = column(test) {
        *test = variable(VarSource::Inner, place as usize, test);
        return;
    }
    if !test.any(&mut |e| column(e).is_some()) {
        let place = params.len();
        let replacement = variable(VarSource::Outer, place + 1, test);
        params.push((place as u32, std::mem::replace(test, replacement)));
        return;
    }
    let _ = test.try_each_child_mut::<std::convert::Infallible>(&mut |child| {
        split_test(child, params);
        Ok(())
    });
}

fn variable(source: VarSource, place: usize, like: &Expr) -> Expr {
    Expr::Var(Var {
        source,
        attno: AttrNumber(place as i16),
        type_oid: like.type_oid(),
        typmod: like.typmod(),
        collation: like.collation(),
        levels_up: 0,
        location: None,
    })
}

impl SubPlans for Execution {
    fn evaluate(
        &self,
        plan: &SubPlan,
        cx: &EvalContext<'_>,
        batch: &Batch<'_>,
        params: &[Column],
    ) -> SqlResult<Column> {
        if !plan.correlation.is_empty() {
            return Err(SqlError::unsupported("a correlated subquery in this place"));
        }
        let rows = self.init_plans.rows(plan.plan_id).ok_or_else(|| malformed("a subquery has not been run"))?;
        ask_rows(self, plan, cx, batch.rows, params, &|_| Ok(Arc::clone(&rows)))
    }
}

/// The test of ANY or ALL, for each of `rows` rows over the subquery's rows for it.
pub(crate) fn ask_rows(
    execution: &Execution,
    plan: &SubPlan,
    cx: &EvalContext<'_>,
    rows: usize,
    params: &[Column],
    rows_for: &dyn Fn(usize) -> SqlResult<Arc<Vec<RecordBatch>>>,
) -> SqlResult<Column> {
    let any = match plan.kind {
        SubLinkKind::Any => true,
        SubLinkKind::All => false,
        _ => return Err(malformed("a test of what is neither ANY nor ALL")),
    };
    let test = plan.test.as_ref().ok_or_else(|| malformed("a subquery without a comparison"))?;
    let test = Evaluator::compile(test, &CompileContext::new(execution.catalog(), execution.view.as_ref()))?;
    let mut results = Vec::with_capacity(rows);
    for row in 0..rows {
        execution.cancel.check()?;
        results.push(ask(any, &test, cx, rows_for(row)?.as_slice(), params, row)?);
    }
    Ok(Column::Array(Arc::new(BooleanArray::from(results))))
}

/// What the subquery's rows say of one row: ANY is false over no rows and true once one says so, ALL the reverse.
fn ask(
    any: bool,
    test: &Evaluator,
    cx: &EvalContext<'_>,
    batches: &[RecordBatch],
    params: &[Column],
    row: usize,
) -> SqlResult<Option<bool>> {
    let mut unknown = false;
    for inner in batches {
        let rows = inner.num_rows();
        let repeat = |column: &Column| -> SqlResult<ArrayRef> {
            let at = if column.is_const() { 0 } else { row as u32 };
            let indices = UInt32Array::from_value(at, rows);
            arrow_select::take::take(column.array().as_ref(), &indices, None).map_err(SqlError::internal)
        };
        let outer = params.iter().map(repeat).collect::<SqlResult<Vec<_>>>()?;
        let answers = test.evaluate(cx, &Batch { outer: &outer, inner: inner.columns(), rows }, None)?;
        let answers = answers.as_any().downcast_ref::<BooleanArray>();
        let answers = answers.ok_or_else(|| malformed("a subquery's comparison is no boolean"))?;
        for answer in answers {
            match answer {
                Some(answer) if answer == any => return Ok(Some(any)),
                Some(_) => {}
                None => unknown = true,
            }
        }
    }
    Ok(if unknown { None } else { Some(!any) })
}
