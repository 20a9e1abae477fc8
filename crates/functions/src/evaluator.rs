//! [`Evaluator`]: a compiled expression.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, new_empty_array};
use stegodon_nodes::Expr;
use stegodon_nodes::expr::{BoolKind, Var};
use stegodon_types::{Datum, Layout, Oid, SqlError, SqlResult, SqlState};

use crate::compile::{CompileContext, compile};
use crate::eval::{Frame, Node, layout_of, lazy};

use crate::{Batch, Column, EvalContext, Partial, Selection};

/// A compiled expression: kernels resolved, constants made. Shared between threads, it keeps nothing of a run.
#[derive(Debug)]
pub struct Evaluator {
    node: Node,
    /// Where the expression is an AND at its top: its conjuncts, as a list of quals.
    conjuncts: Option<Vec<Node>>,
    type_oid: Oid,
    typmod: i32,
    layout: Layout,
    /// Where the expression is a variable and nothing else.
    variable: Option<Var>,
}

/// Whether running again row by row could find another error.
fn is_of_a_row(error: &SqlError) -> bool {
    !matches!(
        error.state,
        SqlState::QueryCanceled | SqlState::AdminShutdown | SqlState::InternalError | SqlState::OutOfMemory
    )
}

fn flatten<'a>(expr: &'a Expr, out: &mut Vec<&'a Expr>) {
    match expr {
        Expr::Bool(b) if b.kind == BoolKind::And => b.args.iter().for_each(|a| flatten(a, out)),
        other => out.push(other),
    }
}

impl Evaluator {
    /// Compiles an expression. `0A000` names the function or operator that there is no kernel for.
    pub fn compile(expr: &Expr, cx: &CompileContext<'_>) -> SqlResult<Evaluator> {
        let type_oid = expr.type_oid();
        let layout = layout_of(&*cx.types.type_desc(type_oid)?)?;
        let conjuncts = match expr {
            Expr::Bool(b) if b.kind == BoolKind::And => {
                let mut list = Vec::new();
                flatten(expr, &mut list);
                Some(list.into_iter().map(|e| compile(e, cx)).collect::<SqlResult<Vec<_>>>()?)
            }
            _ => None,
        };
        let variable = if let Expr::Var(v) = expr { Some(v.clone()) } else { None };
        Ok(Evaluator { node: compile(expr, cx)?, conjuncts, type_oid, typmod: expr.typmod(), layout, variable })
    }

    /// The type of the value.
    pub fn type_oid(&self) -> Oid {
        self.type_oid
    }

    /// The typmod of the value.
    pub fn typmod(&self) -> i32 {
        self.typmod
    }

    /// The layout of the value.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The variable, where the expression is one and nothing else: its column can be passed on as it is.
    pub fn variable(&self) -> Option<&Var> {
        self.variable.as_ref()
    }

    /// The value for each row, or for each selected row (the result then has the selection's length). An error is the
    /// one of the first row that fails, as PostgreSQL would meet it.
    pub fn evaluate(
        &self,
        cx: &EvalContext<'_>,
        batch: &Batch<'_>,
        selection: Option<&Selection>,
    ) -> SqlResult<ArrayRef> {
        let rows = selection.map_or(batch.rows, Selection::len);
        self.evaluate_column(cx, batch, selection)?.into_array(rows)
    }

    /// As [`Evaluator::evaluate`], without spreading a constant over the rows.
    pub fn evaluate_column(
        &self,
        cx: &EvalContext<'_>,
        batch: &Batch<'_>,
        selection: Option<&Selection>,
    ) -> SqlResult<Column> {
        self.run(cx, batch, selection.map(Selection::rows))
            .map_err(|e| first_error(e, batch, selection, |row| self.run(cx, batch, Some(row)).map(drop)))
    }

    fn run(&self, cx: &EvalContext<'_>, batch: &Batch<'_>, rows: Option<&[u32]>) -> SqlResult<Column> {
        let frame = Frame::new(cx, batch, rows);
        if frame.rows == 0 {
            return Ok(Column::Array(new_empty_array(&self.layout.arrow())));
        }
        let column = self.node.eval(&frame)?;
        if column.array().data_type() != &self.layout.arrow() {
            return Err(SqlError::internal(format_args!(
                "an expression of type {} gave {}",
                self.type_oid,
                column.array().data_type()
            )));
        }
        if !column.is_const() && column.array().len() != frame.rows {
            return Err(SqlError::internal("an expression gave a column of another length than its batch"));
        }
        Ok(column)
    }

    /// The rows for which it is true. A conjunction is evaluated as PostgreSQL evaluates a list of quals: a row leaves
    /// at the first that is false or NULL.
    pub fn filter(
        &self,
        cx: &EvalContext<'_>,
        batch: &Batch<'_>,
        selection: Option<&Selection>,
    ) -> SqlResult<Selection> {
        self.run_filter(cx, batch, selection.map(Selection::rows))
            .map_err(|e| first_error(e, batch, selection, |row| self.run_filter(cx, batch, Some(row)).map(drop)))
    }

    fn run_filter(&self, cx: &EvalContext<'_>, batch: &Batch<'_>, rows: Option<&[u32]>) -> SqlResult<Selection> {
        let frame = Frame::new(cx, batch, rows);
        let conjuncts = self.conjuncts.as_deref().unwrap_or(std::slice::from_ref(&self.node));
        let live = lazy::filter(conjuncts, &frame)?;
        Ok(Selection::new(match rows {
            None => live,
            Some(rows) => live.iter().filter_map(|&i| rows.get(i as usize).copied()).collect(),
        }))
    }

    /// As [`Evaluator::filter`], up to the first row that fails. `rows` of the result counts rows of the selection
    /// looked at.
    pub fn filter_partial(
        &self,
        cx: &EvalContext<'_>,
        batch: &Batch<'_>,
        selection: Option<&Selection>,
    ) -> SqlResult<Partial<Selection>> {
        let all = selection.map_or(batch.rows, Selection::len);
        let error = match self.run_filter(cx, batch, selection.map(Selection::rows)) {
            Ok(value) => return Ok(Partial { value, rows: all, error: None }),
            Err(e) => e,
        };
        let (rows, error) =
            first_failure(error, batch, selection, |row| self.run_filter(cx, batch, Some(row)).map(drop))?;
        let before = first_rows(selection, rows);
        Ok(Partial { value: self.run_filter(cx, batch, Some(&before))?, rows, error: Some(error) })
    }

    /// The value of an expression without variables. For folding, index keys and partition bounds.
    pub fn evaluate_const(&self, cx: &EvalContext<'_>) -> SqlResult<Option<Datum>> {
        let column = self.run(cx, &Batch::one_row(), None)?;
        crate::column::datum_at(column.array(), self.layout, 0)
    }
}

/// Evaluates several expressions over the same rows, as a projection does: row by row, and within a row in order.
pub fn evaluate_all(
    evaluators: &[Evaluator],
    cx: &EvalContext<'_>,
    batch: &Batch<'_>,
    selection: Option<&Selection>,
) -> SqlResult<Partial<Vec<ArrayRef>>> {
    let run = |rows: Option<&[u32]>| -> SqlResult<Vec<ArrayRef>> {
        let n = rows.map_or(batch.rows, <[u32]>::len);
        evaluators.iter().map(|e| e.run(cx, batch, rows)?.into_array(n)).collect()
    };
    let all = selection.map_or(batch.rows, Selection::len);
    let error = match run(selection.map(Selection::rows)) {
        Ok(value) => return Ok(Partial { value, rows: all, error: None }),
        Err(e) => e,
    };
    let (rows, error) = first_failure(error, batch, selection, |row| run(Some(row)).map(drop))?;
    Ok(Partial { value: run(Some(&first_rows(selection, rows)))?, rows, error: Some(error) })
}

fn first_rows(selection: Option<&Selection>, rows: usize) -> Vec<u32> {
    match selection {
        None => (0..rows as u32).collect(),
        Some(s) => s.rows().iter().take(rows).copied().collect(),
    }
}

/// The first failing row (counted within the selection) and its error. `error` is what the whole batch met; it is
/// returned where no row fails alone, or where it belongs to no row.
fn first_failure(
    error: SqlError,
    batch: &Batch<'_>,
    selection: Option<&Selection>,
    mut run: impl FnMut(&[u32]) -> SqlResult<()>,
) -> SqlResult<(usize, SqlError)> {
    if !is_of_a_row(&error) {
        return Err(error);
    }
    let rows = selection.map_or(batch.rows, Selection::len);
    for i in 0..rows {
        let row = match selection {
            None => i as u32,
            Some(s) => s.rows().get(i).copied().unwrap_or_default(),
        };
        if let Err(e) = run(&[row]) {
            return if is_of_a_row(&e) { Ok((i, e)) } else { Err(e) };
        }
    }
    Err(error)
}

fn first_error(
    error: SqlError,
    batch: &Batch<'_>,
    selection: Option<&Selection>,
    run: impl FnMut(&[u32]) -> SqlResult<()>,
) -> SqlError {
    if selection.map_or(batch.rows, Selection::len) == 1 {
        return error;
    }
    match first_failure(error, batch, selection, run) {
        Ok((_, e)) | Err(e) => e,
    }
}

/// Evaluators are shared between the threads of a query.
const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<Evaluator>();
    shared::<Arc<Evaluator>>();
};
