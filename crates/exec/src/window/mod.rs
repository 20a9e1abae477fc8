//! `WindowAgg`: for every row, functions over the rows of its partition that its frame holds.
//!
//! ```text
//!   input, sorted ──▸ one partition at a time, kept ──▸ its rows, with the functions' values behind their columns
//!                       │ order keys: groups of peers
//!                       └ frame: for each row, which rows          (frame)
//!                         functions: a value a row                 (functions)
//! ```
//! A partition is kept whole in memory, where PostgreSQL spills it to a file: beyond the limit it is 53200.

mod frame;
mod functions;

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use stegodon_format::ids::AttrNumber;
use stegodon_functions::CompileContext;
use stegodon_functions::aggregate::window_aggregate;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::{Var, VarSource, WindowFunc};
use stegodon_plan::node::{PlanKind, PlanNode, Window};
use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::batch::{BATCH_ROWS, batch, layout_of, schema};
use crate::execution::Execution;
use crate::group_lowering::under_filter;
use crate::initplan::Needs;
use crate::lower::{Columns, Lowering, rewrite};
use crate::operator::{Batches, Input, Operator, OperatorExec, Physical, Producer, malformed};
use crate::sort::append_keys;
use frame::{Frame, Frames};
use functions::{Call, Kind};

/// What a partition may take where `hash_mem_multiplier * work_mem` is less.
const PARTITION_BYTES: usize = 512 << 20;

/// Lowers a `WindowAgg`.
pub(crate) fn plan(lowering: &Lowering<'_>, node: &PlanNode, child: &PlanNode, window: &Window) -> SqlResult<Physical> {
    let mut functions: Vec<WindowFunc> = Vec::new();
    for expr in node.targets.iter().map(|t| &t.expr).chain(&node.quals) {
        collect(expr, &mut functions);
    }
    let input = lowering.node(child, 1)?;
    let width = input.schema().fields().len();
    let mut computed = Vec::new();
    let mut calls = Vec::with_capacity(functions.len());
    for function in &functions {
        if function.window_ref != window.reference {
            return Err(malformed("a window function of another window"));
        }
        calls.push(call(lowering, function, width, &mut computed)?);
    }
    let input = if computed.is_empty() { input } else { lowering.append_computed(input, &computed)? };
    let execution = lowering.execution;
    let mut keys = lowering.group_keys(child, &window.partition_by)?;
    let partition_keys = keys.len();
    keys.extend(lowering.peer_keys(child, &window.order_by)?);
    let (input, places) = append_keys(execution, input, &keys);
    let (partition, order) = places.split_at(partition_keys);
    let shown = input.schema().fields().iter().take(width).map(|f| f.data_type().clone()).collect::<Vec<_>>();
    let results = calls.iter().map(|c| c.layout.arrow());
    let schema = schema(shown.into_iter().chain(results));
    let operator = WindowAgg {
        execution: Arc::clone(execution),
        partition: partition.to_vec(),
        order: order.to_vec(),
        width,
        calls,
        frame: Frame::new(lowering, window)?,
        needs: Needs::of(window.start_offset.iter().chain(&window.end_offset)),
        schema: Arc::clone(&schema),
    };
    let rows = OperatorExec::plan(operator, vec![input], schema, 1);
    lowering.evaluate(&over_results(node, &functions, width), rows, Columns::ONLY)
}

fn collect(expr: &Expr, out: &mut Vec<WindowFunc>) {
    expr.any(&mut |e| {
        if let Expr::WindowFunc(function) = e
            && !out.contains(function)
        {
            out.push((**function).clone());
        }
        false
    });
}

fn call(lowering: &Lowering<'_>, function: &WindowFunc, width: usize, computed: &mut Vec<Expr>) -> SqlResult<Call> {
    let mut column = |expr: &Expr| match expr {
        Expr::Var(var) if var.attno.0 > 0 => Ok(var.attno.0 as usize - 1),
        Expr::Var(_) => Err(SqlError::unsupported("a whole row in a window function")),
        expr => {
            computed.push(expr.clone());
            Ok(width + computed.len() - 1)
        }
    };
    let execution = lowering.execution;
    let args = function.args.iter().map(|arg| column(&under_filter(arg, function.filter.as_ref())));
    let args = args.collect::<SqlResult<Vec<_>>>()?;
    let filter = function.filter.as_ref().map(&mut column).transpose()?;
    let kind = if function.is_aggregate {
        let compile = CompileContext::new(execution.catalog(), execution.view.as_ref());
        Kind::Aggregate(Arc::new(window_aggregate(&over_columns(function), &compile)?))
    } else {
        Kind::of(function.function).ok_or_else(|| {
            let name = execution.catalog().proc(function.function).map(|p| p.name.clone()).unwrap_or_default();
            SqlError::unsupported(format_args!("window function {name}"))
        })?
    };
    let expr = Expr::WindowFunc(Box::new(function.clone()));
    let layout = match &kind {
        Kind::Aggregate(plan) => plan.layout(),
        _ => layout_of(execution.view.as_ref(), &expr)?,
    };
    Ok(Call { kind, args, filter, layout })
}

/// The call with its arguments as columns, which is how they come.
fn over_columns(function: &WindowFunc) -> WindowFunc {
    let args = function.args.iter().enumerate().map(|(i, e)| column_like(i, e)).collect();
    WindowFunc { args, filter: None, ..function.clone() }
}

fn column_like(place: usize, expr: &Expr) -> Expr {
    Expr::Var(Var {
        source: VarSource::Outer,
        attno: AttrNumber(place as i16 + 1),
        type_oid: expr.type_oid(),
        typmod: expr.typmod(),
        collation: expr.collation(),
        levels_up: 0,
        location: None,
    })
}

/// The node with its expressions over the operator's output.
fn over_results(node: &PlanNode, functions: &[WindowFunc], width: usize) -> PlanNode {
    let replace = |expr: &mut Expr| {
        if let Expr::WindowFunc(function) = &*expr
            && let Some(place) = functions.iter().position(|f| *f == **function)
        {
            *expr = column_like(width + place, expr);
        }
    };
    let mut node = PlanNode { kind: PlanKind::Result { child: None, one_time_filter: Vec::new() }, ..node.clone() };
    node.targets.iter_mut().for_each(|t| rewrite(&mut t.expr, &replace));
    node.quals.iter_mut().for_each(|q| rewrite(q, &replace));
    node
}

/// Functions over the rows of one window. Output: the first `width` columns of the input, then a column a call.
#[derive(Debug)]
struct WindowAgg {
    execution: Arc<Execution>,
    /// The key columns that a partition's rows are equal in.
    partition: Vec<usize>,
    /// The key columns that peers are equal in besides.
    order: Vec<usize>,
    width: usize,
    calls: Vec<Call>,
    frame: Frame,
    needs: Needs,
    schema: SchemaRef,
}

impl Operator for WindowAgg {
    fn name(&self) -> &'static str {
        "WindowAgg"
    }

    fn start(self: Arc<Self>, partition: usize, inputs: Vec<Input>) -> SqlResult<Box<dyn Producer>> {
        let [input] = inputs.as_slice() else { return Err(malformed("a window has one child")) };
        Ok(Box::new(Running {
            input: Some(input.start(partition)?),
            operator: self,
            offsets: None,
            rows: Vec::new(),
            next: None,
            output: None,
            failed: None,
        }))
    }
}

struct Running {
    operator: Arc<WindowAgg>,
    input: Option<Batches>,
    /// The frame's offsets, once they are known.
    offsets: Option<(u64, u64)>,
    /// The rows of the partition that is being read.
    rows: Vec<RecordBatch>,
    /// What was read behind them.
    next: Option<RecordBatch>,
    /// A partition's rows with their values, given out bit by bit.
    output: Option<RecordBatch>,
    failed: Option<SqlError>,
}

#[async_trait]
impl Producer for Running {
    async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        loop {
            if let Some(output) = self.output.take() {
                let rows = output.num_rows().min(BATCH_ROWS);
                if rows < output.num_rows() {
                    self.output = Some(output.slice(rows, output.num_rows() - rows));
                }
                return Ok(Some(output.slice(0, rows)));
            }
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            let Some(partition) = self.read_partition().await? else { return Ok(None) };
            let operator = &self.operator;
            let offsets = if let Some(offsets) = self.offsets {
                offsets
            } else {
                operator.execution.prepare(&operator.needs).await?;
                *self.offsets.insert(operator.frame.offsets(&operator.execution)?)
            };
            let (output, error) = operator.compute(&partition, offsets)?;
            self.failed = error;
            self.output = Some(output).filter(|o| o.num_rows() > 0);
        }
    }
}

impl Running {
    /// The rows of the next partition.
    async fn read_partition(&mut self) -> SqlResult<Option<RecordBatch>> {
        let operator = Arc::clone(&self.operator);
        let mut bytes = 0;
        let limit = operator.execution.hash_mem_bytes.max(PARTITION_BYTES);
        loop {
            let batch = match (self.next.take(), &mut self.input) {
                (Some(batch), _) => Some(batch),
                (None, Some(input)) => input.next().await?,
                (None, None) => None,
            };
            let Some(batch) = batch else {
                self.input = None;
                break;
            };
            operator.execution.cancel.check()?;
            let same = operator.same_partition(self.rows.last(), &batch)?;
            if same < batch.num_rows() {
                self.next = Some(batch.slice(same, batch.num_rows() - same));
            }
            if same > 0 {
                let part = batch.slice(0, same);
                bytes += part.get_array_memory_size();
                if bytes > limit {
                    return Err(SqlError::new(SqlState::OutOfMemory, "out of memory")
                        .detail("A window's partition does not fit in hash_mem_multiplier * work_mem."));
                }
                self.rows.push(part);
            }
            if self.next.is_some() {
                break;
            }
        }
        let rows = std::mem::take(&mut self.rows);
        let Some(first) = rows.first() else { return Ok(None) };
        arrow_select::concat::concat_batches(&first.schema(), &rows).map(Some).map_err(SqlError::internal)
    }
}

impl WindowAgg {
    fn keys(places: &[usize], rows: &RecordBatch) -> SqlResult<Vec<ArrayRef>> {
        let column = |&p: &usize| rows.columns().get(p).cloned().ok_or_else(|| malformed("a window's key is missing"));
        places.iter().map(column).collect()
    }

    /// How many rows of a batch belong to the partition of the row before it; where there is none, of its first.
    fn same_partition(&self, before: Option<&RecordBatch>, batch: &RecordBatch) -> SqlResult<usize> {
        if self.partition.is_empty() {
            return Ok(batch.num_rows());
        }
        let keys = Self::keys(&self.partition, batch)?;
        if let Some(before) = before {
            let last = Self::keys(&self.partition, &before.slice(before.num_rows() - 1, 1))?;
            let pairs = last.iter().zip(&keys).map(|(a, b)| {
                arrow_select::concat::concat(&[a.as_ref(), b.slice(0, 1).as_ref()]).map_err(SqlError::internal)
            });
            if ranges(&pairs.collect::<SqlResult<Vec<_>>>()?)?.len() > 1 {
                return Ok(0);
            }
        }
        Ok(ranges(&keys)?.first().map_or(0, |first| first.end))
    }

    /// A partition's rows with their values, up to the first row that fails, and its error.
    fn compute(&self, rows: &RecordBatch, offsets: (u64, u64)) -> SqlResult<(RecordBatch, Option<SqlError>)> {
        let count = rows.num_rows();
        let peers = if self.order.is_empty() {
            std::iter::once(0..count).collect()
        } else {
            ranges(&Self::keys(&self.order, rows)?)?
        };
        let frames = Frames::new(&self.frame, count, peers, offsets);
        let column = |place: usize| {
            rows.columns().get(place).cloned().ok_or_else(|| malformed("a window function's argument is missing"))
        };
        let mut columns: Vec<ArrayRef> = rows.columns().iter().take(self.width).cloned().collect();
        let (mut good, mut error) = (count, None);
        for call in &self.calls {
            let args = call.args.iter().map(|&a| column(a)).collect::<SqlResult<Vec<_>>>()?;
            let filter = call.filter.map(column).transpose()?;
            let filter = filter
                .as_ref()
                .map(|f| f.as_any().downcast_ref::<BooleanArray>().ok_or_else(|| malformed("a FILTER is no boolean")));
            let (values, failed) = call.values(&self.execution, &frames, &args, filter.transpose()?)?;
            if let Some(failed) = failed.filter(|_| values.len() < good) {
                (good, error) = (values.len(), Some(failed));
            }
            columns.push(values);
        }
        let columns = columns.iter().map(|c| c.slice(0, good)).collect();
        Ok((batch(&self.schema, columns, good)?, error))
    }
}

fn ranges(keys: &[ArrayRef]) -> SqlResult<Vec<Range<usize>>> {
    arrow::compute::partition(keys).map(|p| p.ranges()).map_err(SqlError::internal)
}
