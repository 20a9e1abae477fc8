//! Rows as the client wants them: text or binary, straight from a batch into the connection's buffer.

use std::sync::Arc;

use arrow_array::RecordBatch;
use stegodon_types::{
    Layout, SqlError, SqlResult, TypeCatalog, TypeContext, TypeDesc, ValueRef, binary_out, text_out, value_at,
};

use stegodon_plan::node::ResultColumn;

/// The form a value is sent in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Format code 0.
    #[default]
    Text,
    /// Format code 1.
    Binary,
}

impl Format {
    /// The format of a code.
    pub fn from_code(code: i16) -> SqlResult<Self> {
        match code {
            0 => Ok(Format::Text),
            1 => Ok(Format::Binary),
            other => Err(SqlError::new(
                stegodon_types::SqlState::ProtocolViolation,
                format!("unsupported format code: {other}"),
            )),
        }
    }

    /// The format of column `i`, of those a client asked for: none means text, one is for all.
    pub fn of(formats: &[Format], i: usize) -> Self {
        match formats {
            [] => Format::Text,
            [one] => *one,
            many => many.get(i).copied().unwrap_or_default(),
        }
    }

    /// The code of this format.
    pub fn code(self) -> i16 {
        match self {
            Format::Text => 0,
            Format::Binary => 1,
        }
    }
}

/// How one result column is sent.
#[derive(Clone, Debug)]
pub struct OutputColumn {
    ty: Arc<TypeDesc>,
    layout: Layout,
    format: Format,
}

impl OutputColumn {
    /// The columns of a result, in the formats asked for.
    pub fn all(types: &dyn TypeCatalog, columns: &[ResultColumn], formats: &[Format]) -> SqlResult<Vec<Self>> {
        let column = |(i, column): (usize, &ResultColumn)| {
            let ty = types.type_desc(column.type_oid)?;
            let layout = ty.layout.ok_or_else(|| SqlError::unsupported(format_args!("type {}", ty.name)))?;
            Ok(OutputColumn { ty, layout, format: Format::of(formats, i) })
        };
        columns.iter().enumerate().map(column).collect()
    }

    /// Appends one value's text or binary form.
    pub fn write(&self, cx: &TypeContext<'_>, value: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
        match self.format {
            Format::Text => text_out(cx, &self.ty, value, out),
            Format::Binary => binary_out(cx, &self.ty, value, out),
        }
    }

    /// The value at a row of its column in a batch.
    pub fn value<'a>(&self, batch: &'a RecordBatch, column: usize, row: usize) -> Option<ValueRef<'a>> {
        value_at(batch.column(column).as_ref(), self.layout, row)
    }
}

/// Appends `DataRow` messages for rows `from..to` of a batch.
///
/// ```text
///   'D'  length i32  columns i16  ┌ length i32 (-1: NULL)  bytes ┐ …
/// ```
pub fn data_rows(
    cx: &TypeContext<'_>,
    columns: &[OutputColumn],
    batch: &RecordBatch,
    rows: std::ops::Range<usize>,
    out: &mut Vec<u8>,
) -> SqlResult<()> {
    if batch.num_columns() < columns.len() {
        return Err(SqlError::internal("a result has fewer columns than were described"));
    }
    for row in rows {
        let start = out.len();
        out.push(b'D');
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&(columns.len() as i16).to_be_bytes());
        for (i, column) in columns.iter().enumerate() {
            let at = out.len();
            let Some(value) = column.value(batch, i, row) else {
                out.extend_from_slice(&(-1i32).to_be_bytes());
                continue;
            };
            out.extend_from_slice(&[0; 4]);
            column.write(cx, value, out)?;
            let length = length(out.len() - at - 4)?;
            patch(out, at, length);
        }
        let length = length(out.len() - start - 1)?;
        patch(out, start + 1, length);
    }
    Ok(())
}

fn length(bytes: usize) -> SqlResult<i32> {
    let too_long = || SqlError::new(stegodon_types::SqlState::ProgramLimitExceeded, "out of memory: message too long");
    i32::try_from(bytes).map_err(|_| too_long())
}

fn patch(out: &mut [u8], at: usize, value: i32) {
    if let Some(place) = out.get_mut(at..at + 4) {
        place.copy_from_slice(&value.to_be_bytes());
    }
}
