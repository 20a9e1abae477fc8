//! Set-returning functions: `Function Scan` (in FROM) and `ProjectSet` (in a target list).
//!
//! Several calls advance together, row by row; one that has ended gives NULLs until all have.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt32Array, new_null_array};
use arrow_schema::{DataType, SchemaRef};
use async_trait::async_trait;
use stegodon_format::ids::Oid;
use stegodon_functions::{Batch, CompileContext, Evaluator, SetFunction, SetFunctionPlan};
use stegodon_nodes::Expr;
use stegodon_plan::node::PlanNode;
use stegodon_types::{SqlError, SqlResult};

use crate::batch::{BATCH_ROWS, batch, layout_of, schema};
use crate::execution::Execution;
use crate::initplan::Needs;
use crate::lower::{Columns, Lowering};
use crate::operator::{Batches, Input, Operator, OperatorExec, Physical, Producer, malformed};

/// A call that gives rows, or a value that gives one.
#[derive(Debug)]
enum Source {
    Set(SetFunctionPlan),
    Value(Evaluator),
}

impl Source {
    fn compile(lowering: &Lowering<'_>, expr: &Expr) -> SqlResult<Self> {
        let execution = lowering.execution;
        let is_set = |e: &Expr| match e {
            Expr::Func(f) => f.returns_set,
            Expr::Op(o) => o.returns_set,
            _ => false,
        };
        if is_set(expr) {
            let inside = expr.try_each_child(&mut |child| if child.any(&mut |e| is_set(e)) { Err(()) } else { Ok(()) });
            if inside.is_err() {
                return Err(SqlError::unsupported("a set-returning function inside another"));
            }
            let compile = CompileContext::new(execution.catalog(), execution.view.as_ref());
            return Ok(Source::Set(SetFunctionPlan::compile(expr, &compile)?));
        }
        if expr.any(&mut |e| is_set(e)) {
            return Err(SqlError::unsupported("a set-returning function inside an expression"));
        }
        Ok(Source::Value(lowering.compile(expr, Columns::ONLY)?))
    }

    fn start(&self, execution: &Execution, over: &Batch<'_>, row: usize) -> SqlResult<Call> {
        match self {
            Source::Set(plan) => Ok(Call { function: Some(execution.with_context(|cx| plan.call(cx, over, row))?) }),
            Source::Value(_) => Ok(Call { function: None }),
        }
    }
}

/// One running call.
struct Call {
    function: Option<Box<dyn SetFunction>>,
}

impl Call {
    /// Up to `max` rows of its only column; fewer only at its end.
    fn take(&mut self, execution: &Execution, max: usize) -> SqlResult<Vec<ArrayRef>> {
        let mut taken = Vec::new();
        let mut rows = 0;
        while rows < max {
            execution.cancel.check()?;
            let Some(function) = &mut self.function else { break };
            match execution.with_context(|cx| function.next(cx, max - rows))? {
                None => self.function = None,
                Some(columns) => {
                    let [column] = columns.as_slice() else {
                        return Err(SqlError::unsupported("a set-returning function of several columns"));
                    };
                    rows += column.len();
                    taken.push(Arc::clone(column));
                }
            }
        }
        Ok(taken)
    }
}

/// Arrays one after the other, with NULLs behind them up to `rows`.
fn padded(parts: Vec<ArrayRef>, data_type: &DataType, rows: usize) -> SqlResult<ArrayRef> {
    let have: usize = parts.iter().map(|p| p.len()).sum();
    let mut parts = parts;
    if have < rows {
        parts.push(new_null_array(data_type, rows - have));
    }
    let parts: Vec<&dyn arrow_array::Array> = parts.iter().map(AsRef::as_ref).collect();
    arrow_select::concat::concat(&parts).map_err(SqlError::internal)
}

fn length(parts: &[ArrayRef]) -> usize {
    parts.iter().map(|p| p.len()).sum()
}

/// Lowers functions in FROM.
pub(crate) fn function_scan(
    lowering: &Lowering<'_>,
    functions: &[Expr],
    columns: &[Vec<(Oid, i32, Oid)>],
    ordinality: bool,
) -> SqlResult<Physical> {
    if columns.iter().any(|c| c.len() != 1) {
        return Err(SqlError::unsupported("a function in FROM that gives several columns"));
    }
    let view = lowering.execution.view.as_ref();
    let types = functions.iter().map(|f| Ok(layout_of(view, f)?.arrow())).collect::<SqlResult<Vec<_>>>()?;
    let sources = functions.iter().map(|f| Source::compile(lowering, f)).collect::<SqlResult<_>>()?;
    let schema = schema(types.into_iter().chain(ordinality.then_some(DataType::Int64)));
    let execution = Arc::clone(lowering.execution);
    let operator =
        FunctionScan { execution, sources, ordinality, needs: Needs::of(functions), schema: Arc::clone(&schema) };
    Ok(OperatorExec::plan(operator, Vec::new(), schema, 1))
}

#[derive(Debug)]
struct FunctionScan {
    execution: Arc<Execution>,
    sources: Vec<Source>,
    ordinality: bool,
    needs: Needs,
    schema: SchemaRef,
}

impl Operator for FunctionScan {
    fn name(&self) -> &'static str {
        "Function Scan"
    }

    fn start(self: Arc<Self>, _: usize, _: Vec<Input>) -> SqlResult<Box<dyn Producer>> {
        Ok(Box::new(RunningScan { operator: self, calls: None, given: 0 }))
    }
}

struct RunningScan {
    operator: Arc<FunctionScan>,
    calls: Option<Vec<Call>>,
    given: usize,
}

#[async_trait]
impl Producer for RunningScan {
    async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        crate::operator::breathe().await;
        let FunctionScan { execution, sources, ordinality, needs, schema } = self.operator.as_ref();
        let over = Batch::one_row();
        let first = self.calls.is_none();
        if first {
            execution.prepare(needs).await?;
            let calls = sources.iter().map(|s| s.start(execution, &over, 0)).collect::<SqlResult<_>>()?;
            self.calls = Some(calls);
        }
        let calls = self.calls.as_mut().ok_or_else(|| malformed("a function scan that has not started"))?;
        let mut columns = Vec::with_capacity(calls.len());
        for (source, call) in sources.iter().zip(calls) {
            columns.push(match source {
                Source::Set(_) => call.take(execution, BATCH_ROWS)?,
                Source::Value(value) if first => {
                    vec![execution.with_context(|cx| value.evaluate(cx, &over, None))?]
                }
                Source::Value(_) => Vec::new(),
            });
        }
        let rows = columns.iter().map(|c| length(c)).max().unwrap_or(0);
        if rows == 0 {
            return Ok(None);
        }
        let typed = columns.into_iter().zip(schema.fields());
        let mut columns = typed.map(|(c, f)| padded(c, f.data_type(), rows)).collect::<SqlResult<Vec<_>>>()?;
        if *ordinality {
            let numbers = (self.given + 1..=self.given + rows).map(|n| n as i64);
            columns.push(Arc::new(Int64Array::from_iter_values(numbers)));
        }
        self.given += rows;
        batch(schema, columns, rows).map(Some)
    }
}

/// Lowers a `ProjectSet`.
pub(crate) fn project_set(lowering: &Lowering<'_>, node: &PlanNode, child: Physical) -> SqlResult<Physical> {
    let sources: Vec<Source> =
        node.targets.iter().map(|t| Source::compile(lowering, &t.expr)).collect::<SqlResult<_>>()?;
    if !sources.iter().any(|s| matches!(s, Source::Set(_))) {
        return Err(malformed("a ProjectSet without a set-returning function"));
    }
    let schema = lowering.schema_of(&node.targets)?;
    let partitions = child.properties().partitioning.partition_count();
    let execution = Arc::clone(lowering.execution);
    let needs = Needs::of(node.targets.iter().map(|t| &t.expr));
    let operator = ProjectSet { execution, sources, needs, schema: Arc::clone(&schema) };
    Ok(OperatorExec::plan(operator, vec![child], schema, partitions))
}

#[derive(Debug)]
struct ProjectSet {
    execution: Arc<Execution>,
    sources: Vec<Source>,
    needs: Needs,
    schema: SchemaRef,
}

impl Operator for ProjectSet {
    fn name(&self) -> &'static str {
        "ProjectSet"
    }

    fn start(self: Arc<Self>, partition: usize, inputs: Vec<Input>) -> SqlResult<Box<dyn Producer>> {
        let [input] = inputs.as_slice() else { return Err(malformed("ProjectSet has one child")) };
        let input = input.start(partition)?;
        Ok(Box::new(RunningProject { operator: self, input, current: None, ready: false }))
    }
}

/// An input batch, its next row, and the calls of that row.
struct Current {
    input: RecordBatch,
    row: usize,
    calls: Option<Vec<Call>>,
}

struct RunningProject {
    operator: Arc<ProjectSet>,
    input: Batches,
    current: Option<Current>,
    ready: bool,
}

impl RunningProject {
    /// The next rows of the current input row; `None` where it has no more.
    fn step(&mut self) -> SqlResult<Option<RecordBatch>> {
        let ProjectSet { execution, sources, schema, .. } = self.operator.as_ref();
        let Some(current) = &mut self.current else { return Ok(None) };
        let over = Batch::new(current.input.columns(), current.input.num_rows());
        if current.calls.is_none() {
            let start = |s: &Source| s.start(execution, &over, current.row);
            current.calls = Some(sources.iter().map(start).collect::<SqlResult<_>>()?);
        }
        let calls = current.calls.as_mut().ok_or_else(|| malformed("a row without calls"))?;
        let taken = calls.iter_mut().map(|c| c.take(execution, BATCH_ROWS)).collect::<SqlResult<Vec<_>>>()?;
        let rows = taken.iter().map(|t| length(t)).max().unwrap_or(0);
        if rows == 0 {
            return Ok(None);
        }
        let here = UInt32Array::from_value(current.row as u32, 1);
        let take = |c: &ArrayRef| arrow_select::take::take(c.as_ref(), &here, None).map_err(SqlError::internal);
        let row = current.input.columns().iter().map(take).collect::<SqlResult<Vec<_>>>()?;
        let mut columns = Vec::with_capacity(sources.len());
        for ((source, taken), field) in sources.iter().zip(taken).zip(schema.fields()) {
            columns.push(match source {
                Source::Set(_) => padded(taken, field.data_type(), rows)?,
                Source::Value(value) => {
                    let value = execution.with_context(|cx| value.evaluate(cx, &Batch::new(&row, 1), None))?;
                    let all = UInt32Array::from_value(0, rows);
                    arrow_select::take::take(value.as_ref(), &all, None).map_err(SqlError::internal)?
                }
            });
        }
        batch(schema, columns, rows).map(Some)
    }
}

#[async_trait]
impl Producer for RunningProject {
    async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        crate::operator::breathe().await;
        let mut gathered = Vec::new();
        let mut rows = 0;
        while rows < BATCH_ROWS {
            if self.current.is_none() {
                let Some(input) = self.input.next().await? else { break };
                if !self.ready {
                    self.operator.execution.prepare(&self.operator.needs).await?;
                    self.ready = true;
                }
                self.current = Some(Current { input, row: 0, calls: None });
            }
            if let Some(batch) = self.step()? {
                rows += batch.num_rows();
                gathered.push(batch);
                continue;
            }
            if let Some(current) = &mut self.current {
                current.calls = None;
                current.row += 1;
                if current.row == current.input.num_rows() {
                    self.current = None;
                }
            }
        }
        if gathered.is_empty() {
            return Ok(None);
        }
        let schema = &self.operator.schema;
        arrow_select::concat::concat_batches(schema, &gathered).map(Some).map_err(SqlError::internal)
    }
}
