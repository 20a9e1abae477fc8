//! Subqueries that need no outer row: run once, when an operator that reads their value meets its first row.
//!
//! PostgreSQL runs an initplan when an expression first asks for its value. We run it when the operator that holds the
//! expression has its first row: an operator without a row never runs it, so its errors stay unseen as they do there.
//!
//! Subplans are lowered when they are first run. Where an execution is run again with other outer values, what was computed
//! from those is forgotten ([`InitPlans::forget`]), the rest is kept.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::RecordBatch;
use parking_lot::Mutex;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::ParamKind;
use stegodon_plan::node::{InitPlan, InitPlanKind, PlannedStatement};
use stegodon_plan::walk::slots_read;
use stegodon_types::{Datum, Layout, SqlError, SqlResult, SqlState, TypeCatalog, value_at};

use crate::batch::layout_of;
use crate::execution::Execution;
use crate::lower::Lowering;
use crate::operator::{Batches, Input, malformed};

/// The subqueries of one execution.
pub(crate) struct InitPlans {
    entries: Vec<Entry>,
    /// By subplan number. Lowered plans hold the execution that holds this, so it is emptied at the end.
    subplans: Mutex<Vec<Subplan>>,
}

struct Entry {
    plan: InitPlan,
    layouts: Arc<[Layout]>,
    /// Held while it runs, so that it runs once however many ask; true once it has run.
    done: futures::lock::Mutex<bool>,
}

/// Initplans and subplans that must run again once some slots have other values.
#[derive(Debug)]
pub(crate) struct ComputedFrom {
    entries: BTreeSet<usize>,
    subplans: Vec<usize>,
}

/// What is known of a subplan.
#[derive(Clone, Default)]
struct Subplan {
    input: Option<Input>,
    /// The rows of one that operators read by row.
    rows: Option<Arc<Vec<RecordBatch>>>,
}

/// Which subqueries an operator's expressions read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    slots: BTreeSet<u32>,
    subplans: BTreeSet<usize>,
    /// Subplans that are run for every row that asks.
    correlated: BTreeSet<usize>,
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
        Needs { subplans: BTreeSet::from([subplan]), ..Needs::default() }
    }

    /// Whether there are subqueries that ask for values of the row.
    pub(crate) fn is_correlated(&self) -> bool {
        !self.correlated.is_empty()
    }

    fn visit(&mut self, expr: &Expr) {
        match expr {
            Expr::Param(p) if p.kind == ParamKind::Exec => {
                self.slots.insert(p.id);
            }
            Expr::SubPlan(s) if s.correlation.is_empty() => {
                self.subplans.insert(s.plan_id);
            }
            Expr::SubPlan(s) => {
                self.correlated.insert(s.plan_id);
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
    /// The initplans of a statement, with the layouts of the columns each reads.
    pub(crate) fn new(statement: &PlannedStatement, types: &dyn TypeCatalog) -> SqlResult<Self> {
        let entry = |plan: &InitPlan| {
            let subplan = statement.subplans.get(plan.subplan);
            let subplan = subplan.ok_or_else(|| malformed("an initplan without a plan"))?;
            let shown = subplan.targets.iter().filter(|t| !t.junk);
            let layouts = shown.map(|t| layout_of(types, &t.expr)).collect::<SqlResult<Vec<_>>>()?;
            Ok(Entry { plan: plan.clone(), layouts: layouts.into(), done: futures::lock::Mutex::new(false) })
        };
        Ok(Self {
            entries: statement.init_plans.iter().map(entry).collect::<SqlResult<_>>()?,
            subplans: Mutex::new(vec![Subplan::default(); statement.subplans.len()]),
        })
    }

    /// The same, for an execution beside: what has run need not run again, what is lowered belongs to this execution.
    pub(crate) fn beside(&self) -> Self {
        let entry = |e: &Entry| Entry {
            plan: e.plan.clone(),
            layouts: Arc::clone(&e.layouts),
            done: futures::lock::Mutex::new(e.done.try_lock().is_some_and(|done| *done)),
        };
        let kept = |s: &Subplan| Subplan { input: None, rows: s.rows.clone() };
        Self {
            entries: self.entries.iter().map(entry).collect(),
            subplans: Mutex::new(self.subplans.lock().iter().map(kept).collect()),
        }
    }

    /// What is computed, directly or not, from these slots.
    pub(crate) fn computed_from(&self, statement: &PlannedStatement, slots: &BTreeSet<u32>) -> ComputedFrom {
        let mut changed = slots.clone();
        let mut entries = BTreeSet::new();
        loop {
            let before = entries.len();
            for (number, entry) in self.entries.iter().enumerate() {
                if !slots_read(statement, entry.plan.subplan).is_disjoint(&changed) && entries.insert(number) {
                    changed.extend(&entry.plan.slots);
                }
            }
            if entries.len() == before {
                break;
            }
        }
        let reads = |subplan: &usize| !slots_read(statement, *subplan).is_disjoint(&changed);
        ComputedFrom { entries, subplans: (0..statement.subplans.len()).filter(reads).collect() }
    }

    /// Forgets results: they will be computed again when they are needed.
    pub(crate) fn forget(&self, what: &ComputedFrom) {
        for entry in what.entries.iter().filter_map(|&n| self.entries.get(n)) {
            if let Some(mut done) = entry.done.try_lock() {
                *done = false;
            }
        }
        let mut subplans = self.subplans.lock();
        for &number in &what.subplans {
            if let Some(subplan) = subplans.get_mut(number) {
                subplan.rows = None;
            }
        }
    }

    /// Drops the lowered plans, and with them their hold on the execution.
    pub(crate) fn clear(&self) {
        self.subplans.lock().clear();
    }

    /// The rows of a subplan that [`Execution::prepare`] has run.
    pub(crate) fn rows(&self, subplan: usize) -> Option<Arc<Vec<RecordBatch>>> {
        self.subplans.lock().get(subplan).and_then(|s| s.rows.clone())
    }
}

impl Execution {
    /// A subplan, lowered for this execution.
    pub(crate) fn subplan(self: &Arc<Self>, number: usize) -> SqlResult<Input> {
        if let Some(input) = self.init_plans.subplans.lock().get(number).and_then(|s| s.input.clone()) {
            return Ok(input);
        }
        let root = self.statement.subplans.get(number).ok_or_else(|| malformed("a subquery without a plan"))?;
        let input = Input::new(Lowering { execution: self }.node(root, 1)?, Arc::clone(&self.context));
        if let Some(subplan) = self.init_plans.subplans.lock().get_mut(number) {
            subplan.input = Some(input.clone());
        }
        Ok(input)
    }

    /// Runs what `needs` names and no row decides, unless it has been run.
    pub(crate) async fn prepare(self: &Arc<Self>, needs: &Needs) -> SqlResult<()> {
        for entry in &self.init_plans.entries {
            if !entry.plan.slots.iter().any(|s| needs.slots.contains(s)) {
                continue;
            }
            let mut done = entry.done.lock().await;
            if !*done {
                let batches = self.subplan(entry.plan.subplan)?.start(0)?;
                let values = Box::pin(run(self, entry, batches)).await?;
                self.set_slots(entry.plan.slots.iter().copied().zip(values))?;
                *done = true;
            }
        }
        for &subplan in &needs.subplans {
            if self.init_plans.rows(subplan).is_some() {
                continue;
            }
            let batches = self.subplan(subplan)?.start(0)?;
            let rows = Box::pin(collect(self, batches)).await?;
            if let Some(place) = self.init_plans.subplans.lock().get_mut(subplan) {
                place.rows = Some(Arc::new(rows));
            }
        }
        Ok(())
    }
}

/// All rows, kept.
pub(crate) async fn collect(execution: &Execution, mut batches: Batches) -> SqlResult<Vec<RecordBatch>> {
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

/// The only row; 21000 where there are more.
pub(crate) async fn only_row(mut batches: Batches) -> SqlResult<Option<RecordBatch>> {
    let mut found = None;
    while let Some(batch) = batches.next().await? {
        if found.is_some() || batch.num_rows() > 1 {
            let message = "more than one row returned by a subquery used as an expression";
            return Err(SqlError::new(SqlState::CardinalityViolation, message));
        }
        found = Some(batch);
    }
    Ok(found)
}

/// All rows' first column, as an array.
pub(crate) async fn as_array(
    execution: &Execution,
    element: stegodon_types::Oid,
    mut batches: Batches,
) -> SqlResult<Datum> {
    let mut columns = Vec::new();
    while let Some(batch) = batches.next().await? {
        columns.extend(batch.columns().first().cloned());
    }
    crate::arrays::from_columns(execution.view.as_ref(), element, &columns)
}

async fn run(execution: &Execution, entry: &Entry, mut batches: Batches) -> SqlResult<Vec<Option<Datum>>> {
    match entry.plan.kind {
        InitPlanKind::Exists => Ok(vec![Some(Datum::Bool(batches.next().await?.is_some()))]),
        InitPlanKind::Row => {
            let found = only_row(batches).await?;
            let value = |(column, &layout): (usize, &Layout)| {
                let array = found.as_ref().and_then(|b| b.columns().get(column))?;
                value_at(array.as_ref(), layout, 0).map(stegodon_types::ValueRef::to_datum)
            };
            Ok(entry.layouts.iter().enumerate().map(value).collect())
        }
        InitPlanKind::Array { element_type, .. } => Ok(vec![Some(as_array(execution, element_type, batches).await?)]),
    }
}

impl std::fmt::Debug for InitPlans {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InitPlans").field("count", &self.entries.len()).finish_non_exhaustive()
    }
}
