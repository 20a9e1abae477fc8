//! Between Arrow arrays and single values: [`value_at`] reads one, [`ColumnBuilder`] collects many.

use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, FixedSizeBinaryBuilder, Float32Builder, Float64Builder, Int16Builder, Int32Builder, Int64Builder,
    LargeBinaryBuilder, UInt8Builder, UInt32Builder, UInt64Builder,
};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, new_null_array};

use crate::{Collation, Layout, SqlError, SqlResult, TypeContext, TypeDesc, ValueRef};

/// The value in a row of an array of this layout; `None` where it is NULL, or where there is no such row or the array
/// is of another layout, which callers exclude.
pub fn value_at(array: &dyn Array, layout: Layout, row: usize) -> Option<ValueRef<'_>> {
    if row >= array.len() || array.is_null(row) {
        return None;
    }
    Some(match layout {
        Layout::Bool => ValueRef::Bool(array.as_boolean_opt()?.value(row)),
        Layout::Char => ValueRef::Char(array.as_primitive_opt::<UInt8Type>()?.value(row)),
        Layout::Int16 => ValueRef::Int16(array.as_primitive_opt::<Int16Type>()?.value(row)),
        Layout::Int32 => ValueRef::Int32(array.as_primitive_opt::<Int32Type>()?.value(row)),
        Layout::UInt32 => ValueRef::UInt32(array.as_primitive_opt::<UInt32Type>()?.value(row)),
        Layout::Int64 => ValueRef::Int64(array.as_primitive_opt::<Int64Type>()?.value(row)),
        Layout::UInt64 => ValueRef::UInt64(array.as_primitive_opt::<UInt64Type>()?.value(row)),
        Layout::Float32 => ValueRef::Float32(array.as_primitive_opt::<Float32Type>()?.value(row)),
        Layout::Float64 => ValueRef::Float64(array.as_primitive_opt::<Float64Type>()?.value(row)),
        Layout::Fixed(_) => ValueRef::Bytes(array.as_fixed_size_binary_opt()?.value(row)),
        Layout::Name | Layout::Bytes => ValueRef::Bytes(array.as_binary_opt::<i64>()?.value(row)),
    })
}

/// Collects values of one layout into an Arrow array.
#[derive(Debug)]
#[allow(missing_docs, reason = "each variant is Layout's of the same name")]
pub enum ColumnBuilder {
    Bool(BooleanBuilder),
    Char(UInt8Builder),
    Int16(Int16Builder),
    Int32(Int32Builder),
    UInt32(UInt32Builder),
    Int64(Int64Builder),
    UInt64(UInt64Builder),
    Float32(Float32Builder),
    Float64(Float64Builder),
    Fixed(FixedSizeBinaryBuilder),
    Bytes(LargeBinaryBuilder),
}

macro_rules! each {
    ($self:expr, $b:ident => $e:expr) => {
        match $self {
            ColumnBuilder::Bool($b) => $e,
            ColumnBuilder::Char($b) => $e,
            ColumnBuilder::Int16($b) => $e,
            ColumnBuilder::Int32($b) => $e,
            ColumnBuilder::UInt32($b) => $e,
            ColumnBuilder::Int64($b) => $e,
            ColumnBuilder::UInt64($b) => $e,
            ColumnBuilder::Float32($b) => $e,
            ColumnBuilder::Float64($b) => $e,
            ColumnBuilder::Fixed($b) => $e,
            ColumnBuilder::Bytes($b) => $e,
        }
    };
}

impl ColumnBuilder {
    /// An empty builder with room for `rows` values.
    pub fn new(layout: Layout, rows: usize) -> Self {
        match layout {
            Layout::Bool => ColumnBuilder::Bool(BooleanBuilder::with_capacity(rows)),
            Layout::Char => ColumnBuilder::Char(UInt8Builder::with_capacity(rows)),
            Layout::Int16 => ColumnBuilder::Int16(Int16Builder::with_capacity(rows)),
            Layout::Int32 => ColumnBuilder::Int32(Int32Builder::with_capacity(rows)),
            Layout::UInt32 => ColumnBuilder::UInt32(UInt32Builder::with_capacity(rows)),
            Layout::Int64 => ColumnBuilder::Int64(Int64Builder::with_capacity(rows)),
            Layout::UInt64 => ColumnBuilder::UInt64(UInt64Builder::with_capacity(rows)),
            Layout::Float32 => ColumnBuilder::Float32(Float32Builder::with_capacity(rows)),
            Layout::Float64 => ColumnBuilder::Float64(Float64Builder::with_capacity(rows)),
            Layout::Fixed(n) => ColumnBuilder::Fixed(FixedSizeBinaryBuilder::with_capacity(rows, i32::from(n))),
            Layout::Name | Layout::Bytes => ColumnBuilder::Bytes(LargeBinaryBuilder::with_capacity(rows, rows * 16)),
        }
    }

    /// How many values it holds.
    pub fn len(&self) -> usize {
        use arrow_array::builder::ArrayBuilder;
        each!(self, b => b.len())
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends a value, which must be of the builder's layout.
    pub fn append(&mut self, value: ValueRef<'_>) -> SqlResult<()> {
        match (self, value) {
            (ColumnBuilder::Bool(b), ValueRef::Bool(v)) => b.append_value(v),
            (ColumnBuilder::Char(b), ValueRef::Char(v)) => b.append_value(v),
            (ColumnBuilder::Int16(b), ValueRef::Int16(v)) => b.append_value(v),
            (ColumnBuilder::Int32(b), ValueRef::Int32(v)) => b.append_value(v),
            (ColumnBuilder::UInt32(b), ValueRef::UInt32(v)) => b.append_value(v),
            (ColumnBuilder::Int64(b), ValueRef::Int64(v)) => b.append_value(v),
            (ColumnBuilder::UInt64(b), ValueRef::UInt64(v)) => b.append_value(v),
            (ColumnBuilder::Float32(b), ValueRef::Float32(v)) => b.append_value(v),
            (ColumnBuilder::Float64(b), ValueRef::Float64(v)) => b.append_value(v),
            (ColumnBuilder::Fixed(b), ValueRef::Bytes(v)) => {
                b.append_value(v).map_err(|_| SqlError::internal("a value is not of its column's length"))?;
            }
            (ColumnBuilder::Bytes(b), ValueRef::Bytes(v)) => b.append_value(v),
            _ => return Err(SqlError::internal("a value is not of its column's layout")),
        }
        Ok(())
    }

    /// Appends a value or a NULL a number of times.
    pub fn append_times(&mut self, value: Option<ValueRef<'_>>, times: usize) -> SqlResult<()> {
        match (self, value) {
            (ColumnBuilder::Int16(b), Some(ValueRef::Int16(v))) => b.append_value_n(v, times),
            (ColumnBuilder::Int32(b), Some(ValueRef::Int32(v))) => b.append_value_n(v, times),
            (ColumnBuilder::UInt32(b), Some(ValueRef::UInt32(v))) => b.append_value_n(v, times),
            (ColumnBuilder::Int64(b), Some(ValueRef::Int64(v))) => b.append_value_n(v, times),
            (ColumnBuilder::UInt64(b), Some(ValueRef::UInt64(v))) => b.append_value_n(v, times),
            (builder, value) => {
                for _ in 0..times {
                    builder.append_option(value)?;
                }
            }
        }
        Ok(())
    }

    /// Appends a NULL.
    pub fn append_null(&mut self) {
        each!(self, b => b.append_null());
    }

    /// Appends a value or a NULL.
    pub fn append_option(&mut self, value: Option<ValueRef<'_>>) -> SqlResult<()> {
        if let Some(v) = value {
            return self.append(v);
        }
        self.append_null();
        Ok(())
    }

    /// The array of what was appended; the builder is empty again.
    pub fn finish(&mut self) -> ArrayRef {
        each!(self, b => Arc::new(b.finish()) as ArrayRef)
    }
}

/// An array that has one value in every row, NULL where it is `None`.
pub fn constant(layout: Layout, value: Option<ValueRef<'_>>, rows: usize) -> SqlResult<ArrayRef> {
    let Some(value) = value else { return Ok(new_null_array(&layout.arrow(), rows)) };
    let mut builder = ColumnBuilder::new(layout, rows);
    for _ in 0..rows {
        builder.append(value)?;
    }
    Ok(builder.finish())
}

/// What a column of keys is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyUse {
    /// Order and equality.
    Order,
    /// Equality only: any deterministic collation will do.
    Equality,
}

/// The keys of a column as a column that Arrow compares rightly: the column itself where it [is its own
/// key](crate::is_own_key), else its values' keys; NULL stays NULL.
pub fn key_column(
    cx: &TypeContext<'_>,
    ty: &TypeDesc,
    coll: &Collation,
    column: &ArrayRef,
    key_use: KeyUse,
) -> SqlResult<ArrayRef> {
    let ops = crate::ops(ty)?;
    let equality = coll.for_equality();
    let coll = match key_use {
        KeyUse::Order => coll,
        KeyUse::Equality => &equality,
    };
    if ops.own_key {
        if ty.collation.is_valid() {
            coll.check_order()?;
        }
        return Ok(Arc::clone(column));
    }
    let (Some(layout), Some(key)) = (ty.layout, ops.key) else { return Err(crate::ops::no_comparison(ty)) };
    let mut builder = LargeBinaryBuilder::with_capacity(column.len(), column.len() * 16);
    let mut buffer = Vec::new();
    for row in 0..column.len() {
        match value_at(column, layout, row) {
            None => builder.append_null(),
            Some(value) => {
                buffer.clear();
                key(cx, ty, coll, value, &mut buffer)?;
                builder.append_value(&buffer);
            }
        }
    }
    Ok(Arc::new(builder.finish()))
}
