//! Subqueries that need no outer row: run once, when an operator that reads their value meets its first row.
//!
//! PostgreSQL runs an initplan when an expression first asks for its value. We run it when the operator that holds the
//! expression has its first row: an operator without a row never runs it, so its errors stay unseen as they do there.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::RecordBatch;
use parking_lot::Mutex;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::ParamKind;
use stegodon_plan::node::{InitPlan, InitPlanKind};
use stegodon_types::{Datum, Layout, SqlError, SqlResult, SqlState, value_at};

use crate::execution::Execution;
use crate::operator::Input;

/// The subqueries of one execution.
#[derive(Default)]
pub(crate) struct InitPlans {
    entries: Vec<Entry>,
    /// The lowered plans, by subplan number. Plans hold the execution that holds this, so it is emptied at the end.
    plans: Mutex<Vec<Option<Input>>>,
    rows: Mutex<Vec<Option<Arc<Vec<RecordBatch>>>>>,
}

struct Entry {
    plan: InitPlan,
    layouts: Vec<Layout>,
    /// Held while it runs, so that it runs once however many ask; true once it has run.
    done: futures::lock::Mutex<bool>,
}

/// Which subqueries an operator's expressions read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    slots: BTreeSet<u32>,
    subplans: BTreeSet<usize>,
}

impl Needs {
    /// What these expressions read.
    pub(crate) fn of<'a>(exprs: impl IntoIterator<Item = &'a Expr>) -> Self {
        let mut needs = Needs::default();
        for expr in exprs {
            needs.visit(expr);
        }
        needs
    }

    /// The rows of one subplan.
    pub(crate) fn subplan(subplan: usize) -> Self {
        Needs { slots: BTreeSet::new(), subplans: BTreeSet::from([subplan]) }
    }

    fn visit(&mut self, expr: &Expr) {
        match expr {
            Expr::Param(p) if p.kind == ParamKind::Exec => {
                self.slots.insert(p.id);
            }
            Expr::SubPlan(s) => {
                self.subplans.insert(s.plan_id);
                // Its test's parameters are its own columns, not slots.
                s.params.iter().for_each(|(_, e)| self.visit(e));
                return;
            }
            _ => {}
        }
        let _ = expr.try_each_child::<std::convert::Infallible>(&mut |child| {
            self.visit(child);
            Ok(())
        });
    }
}

impl InitPlans {
    /// The initplans of a plan, with the layouts of the columns each reads.
    pub(crate) fn new(plans: Vec<(InitPlan, Vec<Layout>)>) -> Self {
        let entry = |(plan, layouts)| Entry { plan, layouts, done: futures::lock::Mutex::new(false) };
        Self { entries: plans.into_iter().map(entry).collect(), ..Self::default() }
    }

    /// Hands over the lowered subplans.
    pub(crate) fn set_plans(&self, plans: Vec<Option<Input>>) {
        *self.rows.lock() = vec![None; plans.len()];
        *self.plans.lock() = plans;
    }

    /// Drops the lowered plans, and with them their hold on the execution.
    pub(crate) fn clear(&self) {
        self.plans.lock().clear();
        self.rows.lock().clear();
    }

    fn plan(&self, subplan: usize) -> SqlResult<Input> {
        let plan = self.plans.lock().get(subplan).cloned().flatten();
        plan.ok_or_else(|| SqlError::internal(format_args!("a plan has no subplan {subplan}")))
    }

    /// The rows of a subplan that [`Execution::prepare`] has run.
    pub(crate) fn rows(&self, subplan: usize) -> Option<Arc<Vec<RecordBatch>>> {
        self.rows.lock().get(subplan).cloned().flatten()
    }
}

impl Execution {
    /// Runs what `needs` names, unless it has been run.
    pub(crate) async fn prepare(&self, needs: &Needs) -> SqlResult<()> {
        for entry in &self.init_plans.entries {
            if !entry.plan.slots.iter().any(|s| needs.slots.contains(s)) {
                continue;
            }
            let mut done = entry.done.lock().await;
            if !*done {
                let input = self.init_plans.plan(entry.plan.subplan)?;
                let values = Box::pin(run(self, entry, input)).await?;
                self.set_slots(entry.plan.slots.iter().copied().zip(values))?;
                *done = true;
            }
        }
        for &subplan in &needs.subplans {
            if self.init_plans.rows(subplan).is_some() {
                continue;
            }
            let input = self.init_plans.plan(subplan)?;
            let rows = Box::pin(collect(self, input)).await?;
            if let Some(place) = self.init_plans.rows.lock().get_mut(subplan) {
                *place = Some(Arc::new(rows));
            }
        }
        Ok(())
    }
}

async fn collect(execution: &Execution, input: Input) -> SqlResult<Vec<RecordBatch>> {
    let mut batches = input.start(0)?;
    let mut rows = Vec::new();
    let mut bytes = 0;
    while let Some(batch) = batches.next().await? {
        bytes += batch.get_array_memory_size();
        if bytes > execution.hash_mem_bytes.max(64 << 20) {
            return Err(SqlError::new(SqlState::OutOfMemory, "out of memory")
                .detail("A subquery's rows do not fit in hash_mem_multiplier * work_mem."));
        }
        rows.push(batch);
    }
    Ok(rows)
}

async fn run(execution: &Execution, entry: &Entry, input: Input) -> SqlResult<Vec<Option<Datum>>> {
    let mut batches = input.start(0)?;
    match entry.plan.kind {
        InitPlanKind::Exists => Ok(vec![Some(Datum::Bool(batches.next().await?.is_some()))]),
        InitPlanKind::Row => {
            let mut found = None;
            while let Some(batch) = batches.next().await? {
                if found.is_some() || batch.num_rows() > 1 {
                    let message = "more than one row returned by a subquery used as an expression";
                    return Err(SqlError::new(SqlState::CardinalityViolation, message));
                }
                found = Some(batch);
            }
            let value = |(column, &layout): (usize, &Layout)| {
                let array = found.as_ref().and_then(|b| b.columns().get(column))?;
                value_at(array.as_ref(), layout, 0).map(stegodon_types::ValueRef::to_datum)
            };
            Ok(entry.layouts.iter().enumerate().map(value).collect())
        }
        InitPlanKind::Array { element_type, .. } => {
            let mut columns = Vec::new();
            while let Some(batch) = batches.next().await? {
                columns.extend(batch.columns().first().cloned());
            }
            Ok(vec![Some(crate::arrays::from_columns(execution.view.as_ref(), element_type, &columns)?)])
        }
    }
}

impl std::fmt::Debug for InitPlans {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InitPlans").field("count", &self.entries.len()).finish_non_exhaustive()
    }
}
