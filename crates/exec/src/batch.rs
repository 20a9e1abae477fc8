//! Record batches of a node's targets.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use stegodon_nodes::Expr;
use stegodon_types::{Layout, SqlError, SqlResult, TypeCatalog};

/// Rows in a batch, unless a value's size makes it fewer.
pub(crate) const BATCH_ROWS: usize = 4096;

/// The layout of an expression's values.
pub(crate) fn layout_of(types: &dyn TypeCatalog, expr: &Expr) -> SqlResult<Layout> {
    let desc = types.type_desc(expr.type_oid())?;
    desc.layout.ok_or_else(|| SqlError::unsupported(format_args!("type {}", desc.name)))
}

/// A schema of unnamed columns. Names mean nothing inside: columns are found by place.
pub(crate) fn schema(types: impl IntoIterator<Item = DataType>) -> SchemaRef {
    let field = |(i, t)| Field::new(format!("c{i}"), t, true);
    Arc::new(Schema::new(types.into_iter().enumerate().map(field).collect::<Vec<_>>()))
}

/// A batch of these columns; `rows` counts where there is no column.
pub(crate) fn batch(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> SqlResult<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
        .map_err(|e| SqlError::internal(format_args!("a batch does not fit its schema: {e}")))
}
