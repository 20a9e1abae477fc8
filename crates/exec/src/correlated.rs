//! Subqueries that ask for values of the row (`SubPlan` with a correlation).
//!
//! Expressions are evaluated over batches and cannot wait; a subquery must. So an evaluation that meets a subquery whose
//! answer is not there yet notes the question and breaks off; the operator answers what was noted, waiting as it must, and
//! evaluates again. A question is asked only of rows that PostgreSQL would ask it of, since the evaluator's selection has
//! been there first, and an error among the answers belongs to its row.
//!
//! ```text
//!   evaluate ──▸ answers there? ──yes──▸ column
//!      ▲              │ no: note (subplan, outer values), break off
//!      └── answer ◂───┘
//! ```
//!
//! Rows with the same outer values share an answer, as long as those are the same to the byte. Answers are forgotten from
//! batch to batch.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::row::{RowConverter, SortField};
use arrow_array::{ArrayRef, RecordBatch};
use parking_lot::Mutex;
use stegodon_functions::{Batch, Column, EvalContext, SubPlans};
use stegodon_nodes::expr::{SubLinkKind, SubPlan};
use stegodon_types::{ColumnBuilder, Datum, Layout, SqlError, SqlResult, SqlState, value_at};

use crate::batch::layout_of;
use crate::execution::Execution;
use crate::initplan::{as_array, collect, only_row};
use crate::operator::malformed;
use crate::rescan::Rescan;

/// The correlated subqueries of one running operator.
pub(crate) struct Correlated {
    execution: Arc<Execution>,
    /// By subplan: lowered when it is first asked.
    plans: HashMap<usize, Rescan>,
    asked: Mutex<Asked>,
}

#[derive(Default)]
struct Asked {
    answers: HashMap<Question, SqlResult<Answer>>,
    pending: Vec<(Question, SubPlan, Vec<Option<Datum>>)>,
}

/// A subplan and the bytes of the outer values.
type Question = (usize, Box<[u8]>);

#[derive(Clone)]
enum Answer {
    Value(Option<Datum>),
    Rows(Arc<Vec<RecordBatch>>),
}

impl Correlated {
    pub(crate) fn new(execution: &Arc<Execution>) -> Self {
        Self { execution: Arc::clone(execution), plans: HashMap::new(), asked: Mutex::default() }
    }

    /// Runs `evaluate` until all that it asks is answered.
    pub(crate) async fn evaluate<R>(
        &mut self,
        mut evaluate: impl FnMut(&dyn SubPlans) -> SqlResult<R>,
    ) -> SqlResult<R> {
        self.asked.get_mut().answers.clear();
        loop {
            let result = evaluate(self);
            let pending = std::mem::take(&mut self.asked.get_mut().pending);
            if pending.is_empty() {
                return result;
            }
            for (question, plan, values) in pending {
                let answer = match self.answer(&plan, values).await {
                    Err(e) if ends_statement(&e) => return Err(e),
                    answer => answer,
                };
                self.asked.get_mut().answers.insert(question, answer);
            }
        }
    }

    async fn answer(&mut self, plan: &SubPlan, values: Vec<Option<Datum>>) -> SqlResult<Answer> {
        self.execution.cancel.check()?;
        let execution = &self.execution;
        let rescan = match self.plans.entry(plan.plan_id) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => {
                let root = execution.statement.subplans.get(plan.plan_id);
                let root = root.ok_or_else(|| malformed("a subquery without a plan"))?;
                let slots = plan.correlation.iter().map(|(slot, _)| *slot).collect();
                entry.insert(Rescan::new(execution, root, slots)?)
            }
        };
        let mut batches = rescan.start(values)?;
        let view = execution.view.as_ref();
        match plan.kind {
            SubLinkKind::Exists => Ok(Answer::Value(Some(Datum::Bool(batches.next().await?.is_some())))),
            SubLinkKind::Expr => {
                let layout = layout_in(view, plan)?;
                let row = only_row(batches).await?;
                let column = row.as_ref().and_then(|row| row.columns().first());
                let value = column.and_then(|c| value_at(c.as_ref(), layout, 0));
                Ok(Answer::Value(value.map(stegodon_types::ValueRef::to_datum)))
            }
            SubLinkKind::Array => {
                let root = execution.statement.subplans.get(plan.plan_id);
                let shown = root.and_then(|r| r.targets.iter().find(|t| !t.junk));
                let element = shown.ok_or_else(|| malformed("an array of no column"))?.expr.type_oid();
                Ok(Answer::Value(Some(as_array(rescan.execution(), element, batches).await?)))
            }
            SubLinkKind::Any | SubLinkKind::All => {
                Ok(Answer::Rows(Arc::new(collect(rescan.execution(), batches).await?)))
            }
            SubLinkKind::RowCompare => Err(SqlError::unsupported("a correlated row subquery")),
        }
    }
}

/// Whether an error ends the statement whatever row it belongs to.
fn ends_statement(error: &SqlError) -> bool {
    matches!(
        error.state,
        SqlState::QueryCanceled | SqlState::AdminShutdown | SqlState::InternalError | SqlState::OutOfMemory
    )
}

fn layout_in(types: &dyn stegodon_types::TypeCatalog, plan: &SubPlan) -> SqlResult<Layout> {
    let expr = stegodon_nodes::Expr::SubPlan(Box::new(plan.clone()));
    layout_of(types, &expr)
}

impl SubPlans for Correlated {
    fn evaluate(
        &self,
        plan: &SubPlan,
        cx: &EvalContext<'_>,
        batch: &Batch<'_>,
        params: &[Column],
    ) -> SqlResult<Column> {
        let Some(own) = params.len().checked_sub(plan.correlation.len()).filter(|_| !plan.correlation.is_empty())
        else {
            return SubPlans::evaluate(self.execution.as_ref(), plan, cx, batch, params);
        };
        let (params, outer) = params.split_at(own);
        let outer = outer.iter().map(|c| c.clone().into_array(batch.rows)).collect::<SqlResult<Vec<ArrayRef>>>()?;
        let fields = outer.iter().map(|a| SortField::new(a.data_type().clone())).collect();
        let images = RowConverter::new(fields).and_then(|converter| converter.convert_columns(&outer));
        let images = images.map_err(SqlError::internal)?;
        let layouts = plan.correlation.iter().map(|(_, e)| layout_of(cx.types, e)).collect::<SqlResult<Vec<_>>>()?;
        let mut asked = self.asked.lock();
        let mut answers = Vec::with_capacity(batch.rows);
        let mut waiting = false;
        for row in 0..batch.rows {
            let question = (plan.plan_id, Box::from(images.row(row).data()));
            match asked.answers.get(&question) {
                Some(Ok(answer)) if !waiting => answers.push(answer.clone()),
                // The evaluator finds the row it belongs to by asking row by row.
                Some(Err(e)) if !waiting => return Err(e.clone()),
                Some(_) => {}
                None => {
                    waiting = true;
                    if asked.pending.iter().all(|(q, ..)| *q != question) {
                        let values = outer.iter().zip(&layouts).map(|(array, layout)| {
                            value_at(array.as_ref(), *layout, row).map(stegodon_types::ValueRef::to_datum)
                        });
                        let values = values.collect();
                        asked.pending.push((question, plan.clone(), values));
                    }
                }
            }
        }
        drop(asked);
        if waiting {
            return Err(SqlError::internal("a subquery's answer is awaited"));
        }
        if plan.test.is_some() {
            return crate::subplan::ask_rows(
                &self.execution,
                plan,
                cx,
                batch.rows,
                params,
                &|row| match answers.get(row) {
                    Some(Answer::Rows(rows)) => Ok(Arc::clone(rows)),
                    _ => Err(malformed("a subquery's rows are missing")),
                },
            );
        }
        let mut column = ColumnBuilder::new(layout_in(cx.types, plan)?, batch.rows);
        for answer in &answers {
            match answer {
                Answer::Value(value) => column.append_option(value.as_ref().map(Datum::as_ref))?,
                Answer::Rows(_) => return Err(malformed("a subquery's value is missing")),
            }
        }
        Ok(Column::Array(column.finish()))
    }
}
