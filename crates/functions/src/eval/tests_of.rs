//! `IS NULL`, `IS TRUE` and their like: never NULL, never fail.

use arrow_array::Array;
use arrow_buffer::BooleanBuffer;
use stegodon_nodes::expr::BooleanTestKind;
use stegodon_types::SqlResult;

use crate::Column;
use crate::column::{as_bool, booleans};

fn same_shape(column: &Column, values: BooleanBuffer) -> Column {
    let array = booleans(values, None);
    if column.is_const() { Column::Const(array) } else { Column::Array(array) }
}

/// `IS [NOT] NULL` of a value that is no row.
pub(super) fn null_test(column: &Column, is_null: bool) -> Column {
    let array = column.array();
    let values = match array.nulls() {
        None if is_null => BooleanBuffer::new_unset(array.len()),
        None => BooleanBuffer::new_set(array.len()),
        Some(n) if is_null => !n.inner(),
        Some(n) => n.inner().clone(),
    };
    same_shape(column, values)
}

/// `IS [NOT] TRUE/FALSE/UNKNOWN`.
pub(super) fn boolean_test(column: &Column, kind: BooleanTestKind) -> SqlResult<Column> {
    let array = as_bool(column)?;
    let value = array.values();
    let valid = array.nulls().map(arrow_buffer::NullBuffer::inner);
    let known_true = valid.map_or_else(|| value.clone(), |v| value & v);
    let known_false = valid.map_or_else(|| !value, |v| &!value & v);
    Ok(match kind {
        BooleanTestKind::IsTrue => same_shape(column, known_true),
        BooleanTestKind::IsNotTrue => same_shape(column, !&known_true),
        BooleanTestKind::IsFalse => same_shape(column, known_false),
        BooleanTestKind::IsNotFalse => same_shape(column, !&known_false),
        BooleanTestKind::IsUnknown => null_test(column, true),
        BooleanTestKind::IsNotUnknown => null_test(column, false),
    })
}
