//! `Sort`, `Gather Merge`, `Merge Append`: DataFusion's sort and merge over keys of ours.

use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use async_trait::async_trait;
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use stegodon_types::SqlResult;

use crate::batch::{batch, schema};
use crate::execution::Execution;
use crate::keys::KeyEncoding;
use crate::operator::{Batches, Input, Operator, OperatorExec, Physical, Producer, malformed};

/// One column of an order.
#[derive(Clone, Debug)]
pub(crate) struct SortColumn {
    pub(crate) column: usize,
    pub(crate) encoding: KeyEncoding,
    pub(crate) descending: bool,
    pub(crate) nulls_first: bool,
}

/// Puts the keys of `columns` behind the input's own columns; says where each key is.
pub(crate) fn append_keys(
    execution: &Arc<Execution>,
    input: Physical,
    columns: &[(usize, KeyEncoding)],
) -> (Physical, Vec<usize>) {
    let width = input.schema().fields().len();
    let mut places = Vec::with_capacity(columns.len());
    let mut encoded = Vec::new();
    for (column, encoding) in columns {
        if encoding.is_own() {
            places.push(*column);
        } else {
            places.push(width + encoded.len());
            encoded.push((*column, encoding.clone()));
        }
    }
    if encoded.is_empty() {
        return (input, places);
    }
    let types: Vec<DataType> = input.schema().fields().iter().map(|f| f.data_type().clone()).collect();
    let all = schema(types.into_iter().chain(encoded.iter().map(|(_, e)| e.data_type())));
    let partitions = input.properties().partitioning.partition_count();
    let operator = AppendKeys { execution: Arc::clone(execution), keys: encoded, schema: Arc::clone(&all) };
    (OperatorExec::plan(operator, vec![input], all, partitions), places)
}

fn ordering(columns: &[SortColumn], places: &[usize]) -> SqlResult<LexOrdering> {
    let expr = |(column, &place): (&SortColumn, &usize)| {
        let options = SortOptions { descending: column.descending, nulls_first: column.nulls_first };
        PhysicalSortExpr::new(Arc::new(Column::new(&format!("c{place}"), place)), options)
    };
    LexOrdering::new(columns.iter().zip(places).map(expr)).ok_or_else(|| malformed("an order of no column"))
}

/// Sorts each partition. The keys stay behind the input's columns; the node above leaves them out.
pub(crate) fn sort(
    execution: &Arc<Execution>,
    input: Physical,
    columns: &[SortColumn],
    fetch: Option<usize>,
) -> SqlResult<Physical> {
    let keys: Vec<_> = columns.iter().map(|c| (c.column, c.encoding.clone())).collect();
    let (input, places) = append_keys(execution, input, &keys);
    let sort = SortExec::new(ordering(columns, &places)?, input).with_fetch(fetch).with_preserve_partitioning(true);
    Ok(Arc::new(sort))
}

/// Sorts each partition by some of its columns, as Arrow orders them.
pub(crate) fn sort_by(input: Physical, places: &[usize]) -> SqlResult<Physical> {
    let expr = |&place: &usize| {
        PhysicalSortExpr::new(Arc::new(Column::new(&format!("c{place}"), place)), SortOptions::default())
    };
    let ordering = LexOrdering::new(places.iter().map(expr)).ok_or_else(|| malformed("an order of no column"))?;
    Ok(Arc::new(SortExec::new(ordering, input).with_preserve_partitioning(true)))
}

/// The input with its rows' numbers in a last column; says which.
pub(crate) fn number_rows(input: Physical) -> (Physical, usize) {
    let place = input.schema().fields().len();
    let types: Vec<DataType> = input.schema().fields().iter().map(|f| f.data_type().clone()).collect();
    let all = schema(types.into_iter().chain([DataType::Int64]));
    let partitions = input.properties().partitioning.partition_count();
    (OperatorExec::plan(NumberRows { schema: Arc::clone(&all) }, vec![input], all, partitions), place)
}

#[derive(Debug)]
struct NumberRows {
    schema: SchemaRef,
}

impl Operator for NumberRows {
    fn name(&self) -> &'static str {
        "Numbers"
    }

    fn start(self: Arc<Self>, partition: usize, inputs: Vec<Input>) -> SqlResult<Box<dyn Producer>> {
        let [input] = inputs.as_slice() else { return Err(malformed("Numbers has one child")) };
        Ok(Box::new(Numbering { input: input.start(partition)?, schema: Arc::clone(&self.schema), next: 0 }))
    }
}

struct Numbering {
    input: Batches,
    schema: SchemaRef,
    next: i64,
}

#[async_trait]
impl Producer for Numbering {
    async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        let Some(input) = self.input.next().await? else { return Ok(None) };
        let end = self.next + input.num_rows() as i64;
        let numbers = Int64Array::from_iter_values(self.next..end);
        self.next = end;
        let columns = input.columns().iter().cloned().chain([Arc::new(numbers) as ArrayRef]).collect();
        batch(&self.schema, columns, input.num_rows()).map(Some)
    }
}

/// Merges sorted partitions into one.
pub(crate) fn merge(execution: &Arc<Execution>, input: Physical, columns: &[SortColumn]) -> SqlResult<Physical> {
    let keys: Vec<_> = columns.iter().map(|c| (c.column, c.encoding.clone())).collect();
    let (input, places) = append_keys(execution, input, &keys);
    Ok(Arc::new(SortPreservingMergeExec::new(ordering(columns, &places)?, input)))
}

/// Computes keys and puts them behind the columns.
#[derive(Debug)]
struct AppendKeys {
    execution: Arc<Execution>,
    keys: Vec<(usize, KeyEncoding)>,
    schema: SchemaRef,
}

impl Operator for AppendKeys {
    fn name(&self) -> &'static str {
        "Keys"
    }

    fn start(self: Arc<Self>, partition: usize, inputs: Vec<Input>) -> SqlResult<Box<dyn Producer>> {
        let [input] = inputs.as_slice() else { return Err(malformed("Keys has one child")) };
        Ok(Box::new(Running { input: input.start(partition)?, operator: self }))
    }
}

struct Running {
    operator: Arc<AppendKeys>,
    input: Batches,
}

#[async_trait]
impl Producer for Running {
    async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        self.operator.execution.cancel.check()?;
        let Some(input) = self.input.next().await? else { return Ok(None) };
        let mut columns = input.columns().to_vec();
        let cx = self.operator.execution.type_context();
        for (column, encoding) in &self.operator.keys {
            let values = input.columns().get(*column).ok_or_else(|| malformed("a key's column is missing"))?;
            columns.push(encoding.encode(&cx, values)?);
        }
        batch(&self.operator.schema, columns, input.num_rows()).map(Some)
    }
}
