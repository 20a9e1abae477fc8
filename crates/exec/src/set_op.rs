//! `SetOp`: INTERSECT and EXCEPT, by a table of the left side's different rows.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::row::{RowConverter, SortField};
use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use async_trait::async_trait;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use stegodon_format::version::Version;
use stegodon_nodes::query::SetOperationKind;
use stegodon_types::{SqlError, SqlResult};

use crate::batch::BATCH_ROWS;
use crate::error::unwrap;
use crate::execution::Execution;
use crate::keys::KeyEncoding;
use crate::memory::{MemoryScope, Spills};
use crate::operator::{Batches, Input, Operator, OperatorExec, Physical, Producer, malformed};

/// INTERSECT or EXCEPT of two inputs of the same columns.
pub(crate) fn plan(
    execution: &Arc<Execution>,
    node: usize,
    outer: Physical,
    inner: Physical,
    kind: SetOperationKind,
    all: bool,
    keys: Vec<(usize, KeyEncoding)>,
) -> Physical {
    let schema = outer.schema();
    let operator = SetOp { execution: Arc::clone(execution), kind, all, keys };
    let plan = OperatorExec::plan(operator, vec![outer, inner], schema, 1);
    MemoryScope::plan(execution, node, plan, execution.hash_mem_bytes.max(64 << 20), Spills::Yes)
}

#[derive(Debug)]
struct SetOp {
    execution: Arc<Execution>,
    kind: SetOperationKind,
    all: bool,
    keys: Vec<(usize, KeyEncoding)>,
}

impl Operator for SetOp {
    fn name(&self) -> &'static str {
        "SetOp"
    }

    fn start(self: Arc<Self>, _: usize, inputs: Vec<Input>) -> SqlResult<Box<dyn Producer>> {
        let [outer, inner] = inputs.as_slice() else { return Err(malformed("a set operation has two children")) };
        let fields = self.keys.iter().map(|(_, k)| SortField::new(k.data_type())).collect();
        let converter = RowConverter::new(fields).map_err(SqlError::internal)?;
        let memory = MemoryConsumer::new("set operation").register(&outer.context().runtime_env().memory_pool);
        let (outer, inner) = (Some(outer.start(0)?), inner.start(0)?);
        let groups = HashMap::new();
        Ok(Box::new(Running { operator: self, outer, inner, converter, memory, groups, rows: Vec::new(), out: None }))
    }
}

/// One different row of the left side.
struct Group {
    /// Which of `rows`, and which row of it, came first.
    first: (u32, u32),
    left: u64,
    right: u64,
}

struct Running {
    operator: Arc<SetOp>,
    outer: Option<Batches>,
    inner: Batches,
    converter: RowConverter,
    memory: MemoryReservation,
    groups: HashMap<Box<[u8]>, Group>,
    rows: Vec<RecordBatch>,
    /// The rows to give, last first.
    out: Option<Vec<(u32, u32)>>,
}

impl Running {
    /// The key of each row. Rows of no columns are all the same.
    fn keys(&mut self, batch: &RecordBatch) -> SqlResult<Vec<Box<[u8]>>> {
        if self.operator.keys.is_empty() {
            return Ok(vec![Box::default(); batch.num_rows()]);
        }
        let cx = self.operator.execution.type_context();
        let encode = |(column, encoding): &(usize, KeyEncoding)| {
            let column =
                batch.columns().get(*column).ok_or_else(|| malformed("a set operation's column is missing"))?;
            encoding.encode(&cx, column)
        };
        let columns = self.operator.keys.iter().map(encode).collect::<SqlResult<Vec<_>>>()?;
        let keys = self.converter.convert_columns(&columns).map_err(SqlError::internal)?;
        Ok(keys.iter().map(|key| key.as_ref().into()).collect())
    }

    async fn read(&mut self) -> SqlResult<Vec<(u32, u32)>> {
        while let Some(outer) = &mut self.outer {
            self.operator.execution.cancel.check()?;
            let Some(batch) = outer.next().await? else {
                self.outer = None;
                break;
            };
            self.memory.try_grow(batch.get_array_memory_size() * 2).map_err(unwrap)?;
            let keys = self.keys(&batch)?;
            let number = self.rows.len() as u32;
            for (row, key) in keys.into_iter().enumerate() {
                let first = (number, row as u32);
                self.groups.entry(key).or_insert(Group { first, left: 0, right: 0 }).left += 1;
            }
            self.rows.push(batch);
        }
        // Without a row on the left nothing is asked of the right, so nothing fails there. Before 18 it was asked all the same.
        let asks_always = self.operator.execution.catalog().version() < Version::V18;
        while (asks_always || !self.groups.is_empty())
            && let Some(batch) = self.inner.next().await?
        {
            self.operator.execution.cancel.check()?;
            let keys = self.keys(&batch)?;
            for key in &keys {
                if let Some(group) = self.groups.get_mut(key) {
                    group.right += 1;
                }
            }
        }
        let SetOp { kind, all, .. } = *self.operator;
        let mut out = Vec::new();
        for group in self.groups.values() {
            let times = match (kind, all) {
                (SetOperationKind::Intersect, false) => u64::from(group.right > 0),
                (SetOperationKind::Intersect, true) => group.left.min(group.right),
                (SetOperationKind::Except, false) => u64::from(group.right == 0),
                (SetOperationKind::Except, true) => group.left.saturating_sub(group.right),
                (SetOperationKind::Union, _) => return Err(malformed("a UNION as a set operation node")),
            };
            out.extend((0..times).map(|_| group.first));
        }
        out.sort_unstable_by(|a, b| b.cmp(a));
        Ok(out)
    }
}

#[async_trait]
impl Producer for Running {
    async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        let mut out = match self.out.take() {
            Some(out) => out,
            None => self.read().await?,
        };
        // Rows of one input batch at a time.
        let Some(&(number, _)) = out.last() else { return Ok(None) };
        let mut rows = Vec::new();
        while rows.len() < BATCH_ROWS && out.last().is_some_and(|(n, _)| *n == number) {
            rows.extend(out.pop().map(|(_, row)| row));
        }
        self.out = Some(out);
        let batch = self.rows.get(number as usize).ok_or_else(|| malformed("a set operation lost its rows"))?;
        let places = UInt32Array::from(rows);
        let take = |c: &ArrayRef| arrow_select::take::take(c.as_ref(), &places, None).map_err(SqlError::internal);
        let columns = batch.columns().iter().map(take).collect::<SqlResult<Vec<_>>>()?;
        crate::batch::batch(&batch.schema(), columns, places.len()).map(Some)
    }
}
