//! The result of an expression over a batch: one value for all rows, or one a row.

use std::sync::Arc;

use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use stegodon_types::{Datum, Layout, SqlError, SqlResult, ValueRef};

/// One value for all rows, or one a row.
#[derive(Clone, Debug)]
pub enum Column {
    /// An array of length one that stands for every row.
    Const(ArrayRef),
    /// One value a row.
    Array(ArrayRef),
}

impl Column {
    /// The array underneath: of length one, or of one value a row.
    pub fn array(&self) -> &ArrayRef {
        match self {
            Column::Const(a) | Column::Array(a) => a,
        }
    }

    /// Whether one value stands for all rows.
    pub fn is_const(&self) -> bool {
        matches!(self, Column::Const(_))
    }

    /// A constant of a layout.
    pub fn constant(layout: Layout, value: Option<&Datum>) -> SqlResult<Column> {
        Ok(Column::Const(array_of(layout, value)?))
    }

    /// NULL for all rows.
    pub fn null(layout: Layout) -> Column {
        Column::Const(new_null_array(&layout.arrow(), 1))
    }

    /// Whether the value at a row is NULL.
    pub fn is_null(&self, row: usize) -> bool {
        match self {
            Column::Const(a) => a.is_null(0),
            Column::Array(a) => a.is_null(row),
        }
    }

    /// Whether every row is the same NULL.
    pub fn is_const_null(&self) -> bool {
        matches!(self, Column::Const(a) if a.is_null(0))
    }

    /// The value at a row, `None` for NULL.
    pub fn value(&self, layout: Layout, row: usize) -> Option<ValueRef<'_>> {
        stegodon_types::value_at(self.array().as_ref(), layout, if self.is_const() { 0 } else { row })
    }

    /// One value a row.
    pub fn into_array(self, rows: usize) -> SqlResult<ArrayRef> {
        match self {
            Column::Array(a) => Ok(a),
            Column::Const(a) if rows == 1 => Ok(a),
            Column::Const(a) => repeat(&a, rows),
        }
    }

    /// The rows named, in that order.
    pub fn take(&self, rows: &[u32]) -> SqlResult<Column> {
        match self {
            Column::Const(_) => Ok(self.clone()),
            Column::Array(a) => Ok(Column::Array(take(a, rows)?)),
        }
    }
}

/// The rows named of an array.
pub(crate) fn take(array: &ArrayRef, rows: &[u32]) -> SqlResult<ArrayRef> {
    let indices = UInt32Array::from(rows.to_vec());
    arrow_select::take::take(array.as_ref(), &indices, None).map_err(SqlError::internal)
}

fn repeat(array: &ArrayRef, rows: usize) -> SqlResult<ArrayRef> {
    if array.is_null(0) {
        return Ok(new_null_array(array.data_type(), rows));
    }
    macro_rules! primitive {
        ($t:ty) => {{
            let value = array.as_any().downcast_ref::<PrimitiveArray<$t>>().map(|a| a.value(0));
            let value = value.ok_or_else(|| SqlError::internal("an array is not of its type"))?;
            Ok(Arc::new(PrimitiveArray::<$t>::from_value(value, rows)) as ArrayRef)
        }};
    }
    use arrow_schema::DataType;
    match array.data_type() {
        DataType::Int16 => primitive!(Int16Type),
        DataType::Int32 => primitive!(Int32Type),
        DataType::Int64 => primitive!(Int64Type),
        DataType::UInt8 => primitive!(UInt8Type),
        DataType::UInt32 => primitive!(UInt32Type),
        DataType::UInt64 => primitive!(UInt64Type),
        DataType::Float32 => primitive!(Float32Type),
        DataType::Float64 => primitive!(Float64Type),
        _ => take(array, &vec![0; rows]),
    }
}

/// An array of one value.
pub fn array_of(layout: Layout, value: Option<&Datum>) -> SqlResult<ArrayRef> {
    let Some(value) = value else {
        return Ok(new_null_array(&layout.arrow(), 1));
    };
    Ok(match (layout, value) {
        (Layout::Bool, Datum::Bool(v)) => Arc::new(BooleanArray::from(vec![*v])),
        (Layout::Char, Datum::Char(v)) => Arc::new(UInt8Array::from(vec![*v])),
        (Layout::Int16, Datum::Int16(v)) => Arc::new(Int16Array::from(vec![*v])),
        (Layout::Int32, Datum::Int32(v)) => Arc::new(Int32Array::from(vec![*v])),
        (Layout::UInt32, Datum::UInt32(v)) => Arc::new(UInt32Array::from(vec![*v])),
        (Layout::Int64, Datum::Int64(v)) => Arc::new(Int64Array::from(vec![*v])),
        (Layout::UInt64, Datum::UInt64(v)) => Arc::new(UInt64Array::from(vec![*v])),
        (Layout::Float32, Datum::Float32(v)) => Arc::new(Float32Array::from(vec![*v])),
        (Layout::Float64, Datum::Float64(v)) => Arc::new(Float64Array::from(vec![*v])),
        (Layout::Fixed(_) | Layout::Name | Layout::Bytes, Datum::Bytes(v)) => {
            let mut out = ByteBuilder::new(layout, 1, v.len());
            out.buffer().extend_from_slice(v);
            out.end_value();
            out.finish()?
        }
        _ => return Err(SqlError::internal(format_args!("a value is not of its layout {layout:?}"))),
    })
}

fn wrong_array() -> SqlError {
    SqlError::internal("an array is not of its type")
}

/// The value of an array at a row, copied.
pub fn datum_at(array: &ArrayRef, layout: Layout, row: usize) -> SqlResult<Option<Datum>> {
    if array.data_type() != &layout.arrow() || row >= array.len() {
        return Err(wrong_array());
    }
    Ok(stegodon_types::value_at(array.as_ref(), layout, row).map(ValueRef::to_datum))
}

/// Builds a column of byte strings in place: append to [`ByteBuilder::buffer`], then end the value.
pub struct ByteBuilder {
    layout: Layout,
    bytes: Vec<u8>,
    offsets: Vec<i64>,
    nulls: arrow_buffer::NullBufferBuilder,
}

impl ByteBuilder {
    /// An empty column, with room.
    pub fn new(layout: Layout, rows: usize, bytes: usize) -> Self {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        Self { layout, bytes: Vec::with_capacity(bytes), offsets, nulls: arrow_buffer::NullBufferBuilder::new(rows) }
    }

    /// Where the next value's bytes go.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Ends a value: it is what was appended since the last.
    pub fn end_value(&mut self) {
        self.offsets.push(self.bytes.len() as i64);
        self.nulls.append_non_null();
    }

    /// Ends a value as NULL, dropping what was appended.
    pub fn end_null(&mut self) {
        let start = self.offsets.last().copied().unwrap_or(0) as usize;
        self.bytes.truncate(start);
        if let Layout::Fixed(n) = self.layout {
            self.bytes.resize(start + usize::from(n), 0);
        }
        self.offsets.push(self.bytes.len() as i64);
        self.nulls.append_null();
    }

    /// Appends a value or NULL.
    pub fn push(&mut self, value: Option<&[u8]>) {
        match value {
            Some(v) => {
                self.bytes.extend_from_slice(v);
                self.end_value();
            }
            None => self.end_null(),
        }
    }

    /// The column.
    pub fn finish(mut self) -> SqlResult<ArrayRef> {
        let nulls = self.nulls.finish();
        if let Layout::Fixed(n) = self.layout {
            let rows = self.offsets.len() - 1;
            if self.bytes.len() != rows * usize::from(n) {
                return Err(SqlError::internal("a value of fixed length is not of that length"));
            }
            let array = FixedSizeBinaryArray::try_new(i32::from(n), self.bytes.into(), nulls);
            return Ok(Arc::new(array.map_err(SqlError::internal)?));
        }
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        let array = LargeBinaryArray::try_new(offsets, self.bytes.into(), nulls);
        Ok(Arc::new(array.map_err(SqlError::internal)?))
    }
}

/// A boolean column.
pub(crate) fn booleans(values: BooleanBuffer, nulls: Option<NullBuffer>) -> ArrayRef {
    Arc::new(BooleanArray::new(values, nulls))
}

/// A column seen as booleans.
pub(crate) fn as_bool(column: &Column) -> SqlResult<&BooleanArray> {
    column.array().as_any().downcast_ref::<BooleanArray>().ok_or_else(wrong_array)
}
