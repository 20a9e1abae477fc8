//! From a [`PlanNode`] to operators that run: one function a kind of node.
//!
//! Every lowered node gives its `targets`, in order, and nothing else; what an operator needs besides (keys, conditions'
//! columns) is dropped by the `Evaluate` above it.

use std::sync::Arc;

use arrow_schema::{DataType, SchemaRef};
use datafusion_physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion_physical_plan::union::UnionExec;
use stegodon_format::ids::{AttrNumber, Oid};
use stegodon_functions::{CompileContext, Evaluator, Input as ColumnInput, Side};
use stegodon_nodes::Expr;
use stegodon_nodes::expr::{BoolExpr, BoolKind, Const, TargetEntry, Var, VarSource};
use stegodon_plan::node::{GroupKey, PlanKind, PlanNode, SortKey};
use stegodon_types::{Datum, SqlError, SqlResult, TypeCatalog};

use crate::append::Append;
use crate::batch::{layout_of, schema};
use crate::evaluate::{Evaluate, Targets};
use crate::execution::Execution;
use crate::initplan::Needs;
use crate::instrument::instrument;
use crate::keys::{Keeps, KeyEncoding};
use crate::limit::Limit;
use crate::memory::{MemoryScope, Spills};
use crate::operator::{OperatorExec, Physical, malformed};
use crate::rows::{ResultRows, Values};
use crate::scan::may_skip;
use crate::sort::{SortColumn, append_keys, merge, sort};

/// Lowers the nodes of one planned statement.
pub(crate) struct Lowering<'a> {
    pub(crate) execution: &'a Arc<Execution>,
}

/// Where the columns of a child are in the batch that an expression runs over.
#[derive(Clone, Copy)]
pub(crate) struct Columns {
    /// The place of the first outer (left, only) column.
    pub(crate) outer: usize,
    /// The place of the first inner (right) column.
    pub(crate) inner: usize,
}

impl Columns {
    pub(crate) const ONLY: Columns = Columns { outer: 0, inner: 0 };

    pub(crate) fn place(self, var: &Var) -> SqlResult<usize> {
        let base = match var.source {
            VarSource::Outer => self.outer,
            VarSource::Inner => self.inner,
            VarSource::Relation(_) | VarSource::Index => {
                return Err(malformed("an expression above a scan reads a table"));
            }
        };
        if var.attno.0 == 0 {
            return Err(SqlError::unsupported("a whole-row reference to what is no table"));
        }
        let column = usize::try_from(i32::from(var.attno.0) - 1);
        Ok(base + column.map_err(|_| malformed("an expression above a scan reads a system column"))?)
    }

    fn input(self, var: &Var) -> SqlResult<ColumnInput> {
        Ok(ColumnInput { side: Side::Outer, index: self.place(var)? })
    }
}

/// `a AND b AND …`; `None` where there is nothing.
pub(crate) fn conjunction(quals: &[Expr]) -> Option<Expr> {
    match quals {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(Expr::Bool(BoolExpr { kind: BoolKind::And, args: many.to_vec(), location: None })),
    }
}

impl Lowering<'_> {
    /// A node in `partitions` partitions, counted where the execution counts.
    pub(crate) fn node(&self, node: &PlanNode, partitions: usize) -> SqlResult<Physical> {
        // A deep plan must not overflow the stack.
        stacker::maybe_grow(256 << 10, 4 << 20, || {
            let lowered = self.kind(node, partitions)?;
            Ok(instrument(self.execution, node.id, lowered))
        })
    }

    fn kind(&self, node: &PlanNode, partitions: usize) -> SqlResult<Physical> {
        match &node.kind {
            PlanKind::Result { child, one_time_filter } => {
                let child = child.as_ref().map(|c| self.node(c, partitions)).transpose()?;
                let schema = child.as_ref().map_or_else(|| schema([]), |c| c.schema());
                let filter = conjunction(one_time_filter).map(|f| self.compile(&f, Columns::ONLY)).transpose()?;
                let needs = Needs::of(one_time_filter);
                let operator = ResultRows { execution: Arc::clone(self.execution), filter, needs };
                let rows = OperatorExec::plan(operator, child.into_iter().collect(), schema, partitions);
                self.evaluate(node, rows, Columns::ONLY)
            }
            PlanKind::ProjectSet { child } => {
                let child = self.node(child, partitions)?;
                crate::sets::project_set(self, node, child)
            }
            PlanKind::SeqScan { .. }
            | PlanKind::IndexScan(_)
            | PlanKind::IndexOnlyScan(_)
            | PlanKind::BitmapHeapScan { .. }
            | PlanKind::TidScan { .. }
            | PlanKind::TidRangeScan { .. } => crate::lower_scan::plan(self, node, partitions),
            PlanKind::SubqueryScan { relation, child } => {
                let child = self.node(child, partitions)?;
                self.evaluate(&over_child(node, *relation), child, Columns::ONLY)
            }
            PlanKind::CteScan { relation, subplan, .. } => {
                let operator = crate::cte::CteScan { execution: Arc::clone(self.execution), subplan: *subplan };
                let child =
                    self.execution.statement.subplans.get(*subplan).ok_or_else(|| malformed("a CTE without a plan"))?;
                let schema = self.schema_of(&child.targets)?;
                let rows = OperatorExec::plan(operator, Vec::new(), schema, 1);
                self.evaluate(&over_child(node, *relation), rows, Columns::ONLY)
            }
            PlanKind::FunctionScan { relation, functions, columns, ordinality } => {
                let rows = crate::sets::function_scan(self, functions, columns, *ordinality)?;
                self.evaluate(&over_child(node, *relation), rows, Columns::ONLY)
            }
            PlanKind::ValuesScan { relation, rows } => {
                let rows = self.values(rows)?;
                self.evaluate(&over_child(node, *relation), rows, Columns::ONLY)
            }
            PlanKind::Append { children, prune, .. } => self.append(node, children, prune.as_ref(), partitions),
            PlanKind::MergeAppend { children, keys, prune } => {
                if prune.is_some() {
                    return Err(SqlError::unsupported("run-time pruning of a Merge Append"));
                }
                let inputs = children.iter().map(|c| self.node(c, 1)).collect::<SqlResult<Vec<_>>>()?;
                let Some(first) = inputs.first() else { return self.nothing(node) };
                let columns = self.sort_columns(children.first(), keys)?;
                let union = if inputs.len() == 1 {
                    Arc::clone(first)
                } else {
                    UnionExec::try_new(inputs).map_err(crate::error::unwrap)?
                };
                let merged = merge(self.execution, union, &columns)?;
                self.evaluate(node, merged, Columns::ONLY)
            }
            PlanKind::NestLoop(_) | PlanKind::HashJoin { .. } | PlanKind::MergeJoin { .. } => {
                crate::lower_join::plan(self, node, partitions)
            }
            PlanKind::Hash { child } | PlanKind::Materialize { child } => {
                let child = self.node(child, partitions)?;
                self.evaluate(node, child, Columns::ONLY)
            }
            PlanKind::Sort { child, keys, .. } => self.sort(node, child, keys, None, partitions),
            PlanKind::Aggregate { .. } | PlanKind::Group { .. } | PlanKind::Unique { .. } => {
                crate::group_lowering::plan(self, node, partitions)
            }
            PlanKind::WindowAgg { child, window } => crate::window::plan(self, node, child, window),
            PlanKind::SetOp { outer, inner, kind, all, keys } => {
                let (outer_rows, inner_rows) = (self.node(outer, 1)?, self.node(inner, 1)?);
                let keys = self.group_keys(outer, keys)?;
                let rows = crate::set_op::plan(self.execution, node.id, outer_rows, inner_rows, *kind, *all, keys);
                self.evaluate(node, rows, Columns::ONLY)
            }
            PlanKind::Limit { child, offset, count, ties } => {
                let mut skip = None;
                let input = match (&child.kind, first_rows(offset.as_ref(), count.as_ref())) {
                    // A sort need not keep what no one asks for.
                    (PlanKind::Sort { child: below, keys, .. }, Some(fetch)) if ties.is_empty() => {
                        let sorted = self.sort(child, below, keys, Some(fetch), partitions)?;
                        instrument(self.execution, child.id, sorted)
                    }
                    (_, _) if offset.is_some() && partitions == 1 && may_skip(child) => {
                        let scan = crate::lower_scan::skipping(self, child, skip.get_or_insert_default())?;
                        instrument(self.execution, child.id, scan)
                    }
                    _ => self.node(child, partitions)?,
                };
                let keys = self.group_keys(child, ties)?;
                let (input, ties) = append_keys(self.execution, input, &keys);
                let compile = |e: &Option<Expr>| e.as_ref().map(|e| self.compile(e, Columns::ONLY)).transpose();
                let operator = Limit {
                    execution: Arc::clone(self.execution),
                    offset: compile(offset)?,
                    count: compile(count)?,
                    needs: Needs::of(offset.iter().chain(count)),
                    skip,
                    ties,
                };
                let schema = input.schema();
                let limited = OperatorExec::plan(operator, vec![input], schema, partitions);
                self.evaluate(node, limited, Columns::ONLY)
            }
            PlanKind::Gather { child, workers } => {
                let child = self.node(child, workers + 1)?;
                if let Some(counters) = self.execution.counters.node(node.id) {
                    crate::counters::add(&counters.workers, *workers as u64);
                }
                self.evaluate(node, Arc::new(CoalescePartitionsExec::new(child)), Columns::ONLY)
            }
            PlanKind::GatherMerge { child, workers, keys } => {
                let columns = self.sort_columns(Some(child), keys)?;
                if let Some(counters) = self.execution.counters.node(node.id) {
                    crate::counters::add(&counters.workers, *workers as u64);
                }
                let merged = merge(self.execution, self.node(child, workers + 1)?, &columns)?;
                self.evaluate(node, merged, Columns::ONLY)
            }
            PlanKind::BitmapIndexScan(_) | PlanKind::BitmapAnd { .. } | PlanKind::BitmapOr { .. } => {
                Err(malformed("a bitmap outside a Bitmap Heap Scan"))
            }
        }
    }

    /// A sort, of which only the first `fetch` rows are wanted where that is known.
    fn sort(
        &self,
        node: &PlanNode,
        child: &PlanNode,
        keys: &[SortKey],
        fetch: Option<usize>,
        partitions: usize,
    ) -> SqlResult<Physical> {
        let columns = self.sort_columns(Some(child), keys)?;
        let sorted = sort(self.execution, self.node(child, partitions)?, &columns, fetch)?;
        if let Some(counters) = self.execution.counters.node(node.id).filter(|_| fetch.is_some()) {
            crate::counters::add(&counters.bounded_sorts, 1);
        }
        let limit_bytes = self.execution.work_mem_bytes;
        let scoped = MemoryScope::plan(self.execution, node.id, sorted, limit_bytes, Spills::Yes);
        self.evaluate(node, scoped, Columns::ONLY)
    }

    /// Compiles an expression over the columns of children.
    pub(crate) fn compile(&self, expr: &Expr, columns: Columns) -> SqlResult<Evaluator> {
        let variables = |var: &Var| columns.input(var);
        self.compile_over(expr, &variables)
    }

    pub(crate) fn compile_over(
        &self,
        expr: &Expr,
        variables: &dyn stegodon_functions::Variables,
    ) -> SqlResult<Evaluator> {
        let types: &dyn TypeCatalog = self.execution.view.as_ref();
        let mut expr = expr.clone();
        crate::subplan::split(&mut expr);
        Evaluator::compile(&expr, &CompileContext { catalog: self.execution.catalog(), types, variables })
    }

    /// The schema of targets.
    pub(crate) fn schema_of(&self, targets: &[TargetEntry]) -> SqlResult<SchemaRef> {
        let types = targets.iter().map(|t| Ok(layout_of(self.execution.view.as_ref(), &t.expr)?.arrow()));
        Ok(schema(types.collect::<SqlResult<Vec<_>>>()?))
    }

    /// Applies a node's quals and targets to what its work gave.
    pub(crate) fn evaluate(&self, node: &PlanNode, input: Physical, columns: Columns) -> SqlResult<Physical> {
        let place = |t: &TargetEntry| match &t.expr {
            Expr::Var(var) => columns.place(var).ok(),
            _ => None,
        };
        let places: Option<Vec<usize>> = node.targets.iter().map(place).collect();
        let width = input.schema().fields().len();
        // DataFusion's joins name the columns of both sides alike; what it does with them above goes by name.
        let named = input.schema().fields().iter().enumerate().all(|(i, f)| *f.name() == format!("c{i}"));
        let unchanged =
            named && places.as_ref().is_some_and(|p| p.len() == width && p.iter().enumerate().all(|(i, p)| i == *p));
        if unchanged && node.quals.is_empty() {
            return Ok(input);
        }
        let (targets, schema) = if let Some(places) = places {
            let field = |&p: &usize| input.schema().fields().get(p).map(|f| f.data_type().clone());
            let types: Option<Vec<DataType>> = places.iter().map(field).collect();
            let types = types.ok_or_else(|| malformed("a target reads a column that its child has not"))?;
            (Targets::Columns(places), schema(types))
        } else {
            let targets = node.targets.iter().map(|t| self.compile(&t.expr, columns));
            (Targets::Computed(targets.collect::<SqlResult<_>>()?), self.schema_of(&node.targets)?)
        };
        let quals = conjunction(&node.quals).map(|q| self.compile(&q, columns)).transpose()?;
        let needs = Needs::of(node.quals.iter().chain(node.targets.iter().map(|t| &t.expr)));
        let execution = Arc::clone(self.execution);
        let partitions = input.properties().partitioning.partition_count();
        let operator = Evaluate { execution, node: node.id, quals, targets, needs, schema: Arc::clone(&schema) };
        Ok(OperatorExec::plan(operator, vec![input], schema, partitions))
    }

    fn nothing(&self, node: &PlanNode) -> SqlResult<Physical> {
        let schema = self.schema_of(&node.targets)?;
        let (execution, needs) = (Arc::clone(self.execution), Needs::default());
        Ok(OperatorExec::plan(Append { execution, prune: None, needs, partitions: 1 }, Vec::new(), schema, 1))
    }

    fn values(&self, rows: &[Vec<Expr>]) -> SqlResult<Physical> {
        let first = rows.first().ok_or_else(|| malformed("VALUES without a row"))?;
        let view = self.execution.view.as_ref();
        let layouts = first.iter().map(|e| layout_of(view, e)).collect::<SqlResult<Vec<_>>>()?;
        let row = |row: &Vec<Expr>| row.iter().map(|e| self.compile(e, Columns::ONLY)).collect::<SqlResult<Vec<_>>>();
        let schema = schema(layouts.iter().map(|l| l.arrow()));
        let operator = Values {
            execution: Arc::clone(self.execution),
            rows: rows.iter().map(row).collect::<SqlResult<_>>()?,
            layouts,
            needs: Needs::of(rows.iter().flatten()),
            schema: Arc::clone(&schema),
        };
        Ok(OperatorExec::plan(operator, Vec::new(), schema, 1))
    }

    fn append(
        &self,
        node: &PlanNode,
        children: &[PlanNode],
        prune: Option<&stegodon_plan::node::PrunePlan>,
        partitions: usize,
    ) -> SqlResult<Physical> {
        let inputs = children.iter().map(|c| self.node(c, partitions)).collect::<SqlResult<Vec<_>>>()?;
        let schema = self.schema_of(&node.targets)?;
        // Without sharing, an Append under a Gather is run whole by each worker, which is never planned.
        let operator = Append {
            execution: Arc::clone(self.execution),
            prune: prune.cloned(),
            needs: Needs::of(prune.iter().flat_map(|p| &p.conditions)),
            partitions,
        };
        Ok(OperatorExec::plan(operator, inputs, schema, partitions))
    }

    /// Puts computed columns behind a child's own.
    pub(crate) fn append_computed(&self, input: Physical, computed: &[Expr]) -> SqlResult<Physical> {
        let own = input.schema();
        let view = self.execution.view.as_ref();
        let layouts = computed.iter().map(|e| Ok(layout_of(view, e)?.arrow())).collect::<SqlResult<Vec<_>>>()?;
        let all = schema(own.fields().iter().map(|f| f.data_type().clone()).chain(layouts));
        let operator = crate::evaluate::AppendColumns {
            execution: Arc::clone(self.execution),
            columns: computed.iter().map(|e| self.compile(e, Columns::ONLY)).collect::<SqlResult<_>>()?,
            needs: Needs::of(computed),
            schema: Arc::clone(&all),
        };
        let partitions = input.properties().partitioning.partition_count();
        Ok(OperatorExec::plan(operator, vec![input], all, partitions))
    }

    fn target_type(child: &PlanNode, column: AttrNumber) -> SqlResult<(usize, Oid)> {
        let place = usize::try_from(i32::from(column.0) - 1).map_err(|_| malformed("a key below column 1"))?;
        let target = child.targets.get(place).ok_or_else(|| malformed("a key beyond its child's columns"))?;
        Ok((place, target.expr.type_oid()))
    }

    fn sort_columns(&self, child: Option<&PlanNode>, keys: &[SortKey]) -> SqlResult<Vec<SortColumn>> {
        let child = child.ok_or_else(|| malformed("an order of no child"))?;
        let column = |key: &SortKey| {
            let (column, type_oid) = Self::target_type(child, key.column)?;
            let encoding = KeyEncoding::new(self.execution, type_oid, key.collation, Keeps::Order)?;
            Ok(SortColumn { column, encoding, descending: key.descending, nulls_first: key.nulls_first })
        };
        keys.iter().map(column).collect()
    }

    /// The key columns that rows which an order puts side by side are equal in.
    pub(crate) fn peer_keys(&self, child: &PlanNode, keys: &[SortKey]) -> SqlResult<Vec<(usize, KeyEncoding)>> {
        let key = |key: &SortKey| {
            let (column, type_oid) = Self::target_type(child, key.column)?;
            Ok((column, KeyEncoding::new(self.execution, type_oid, key.collation, Keeps::Equality)?))
        };
        keys.iter().map(key).collect()
    }

    /// The key columns of a grouping over `child`.
    pub(crate) fn group_keys(&self, child: &PlanNode, keys: &[GroupKey]) -> SqlResult<Vec<(usize, KeyEncoding)>> {
        let key = |key: &GroupKey| {
            let (column, type_oid) = Self::target_type(child, key.column)?;
            Ok((column, KeyEncoding::new(self.execution, type_oid, key.collation, Keeps::Equality)?))
        };
        keys.iter().map(key).collect()
    }
}

/// How many rows a LIMIT asks of its input, where that is written in it.
fn first_rows(offset: Option<&Expr>, count: Option<&Expr>) -> Option<usize> {
    let constant = |e: Option<&Expr>| match e {
        None => Some(0),
        Some(Expr::Const(Const { value: Some(Datum::Int64(n)), .. })) => usize::try_from(*n).ok(),
        Some(_) => None,
    };
    constant(offset)?.checked_add(constant(Some(count?))?).filter(|rows| *rows > 0)
}

/// A node whose expressions over range table entry `relation` read its child's columns instead.
fn over_child(node: &PlanNode, relation: usize) -> PlanNode {
    let replace = |e: &mut Expr| {
        if let Expr::Var(var) = e
            && var.source == VarSource::Relation(relation)
        {
            var.source = VarSource::Outer;
        }
    };
    let mut targets = node.targets.clone();
    let mut quals = node.quals.clone();
    for target in &mut targets {
        rewrite(&mut target.expr, &replace);
    }
    for qual in &mut quals {
        rewrite(qual, &replace);
    }
    PlanNode {
        kind: PlanKind::Result { child: None, one_time_filter: Vec::new() },
        id: node.id,
        estimate: node.estimate,
        targets,
        quals,
        parallel_aware: node.parallel_aware,
        init_plans: Vec::new(),
    }
}

/// Changes an expression from the top down.
pub(crate) fn rewrite(expr: &mut Expr, change: &dyn Fn(&mut Expr)) {
    change(expr);
    let _ = expr.try_each_child_mut::<std::convert::Infallible>(&mut |child| {
        rewrite(child, change);
        Ok(())
    });
}
