//! The rows that an expression runs over.

use arrow_array::{Array, ArrayRef};
use stegodon_types::SqlError;

/// The columns an expression reads, each of `rows` values.
#[derive(Clone, Copy, Debug, Default)]
pub struct Batch<'a> {
    /// The left or only child's columns (or a scan's).
    pub outer: &'a [ArrayRef],
    /// The right child's columns.
    pub inner: &'a [ArrayRef],
    /// How many rows.
    pub rows: usize,
}

impl<'a> Batch<'a> {
    /// A batch of one child's columns. `rows` is given because there may be no column.
    pub fn new(outer: &'a [ArrayRef], rows: usize) -> Self {
        Self { outer, inner: &[], rows }
    }

    /// A batch of one row and no column: for expressions without variables.
    pub fn one_row() -> Self {
        Self { outer: &[], inner: &[], rows: 1 }
    }

    pub(crate) fn column(&self, input: Input) -> Result<&'a ArrayRef, SqlError> {
        let side = match input.side {
            Side::Outer => self.outer,
            Side::Inner => self.inner,
        };
        match side.get(input.index) {
            Some(a) if a.len() == self.rows => Ok(a),
            Some(_) => Err(SqlError::internal("a column's length is not its batch's")),
            None => Err(SqlError::internal(format_args!("a batch has no column {}", input.index))),
        }
    }
}

/// Which of a batch's two lists of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// [`Batch::outer`].
    Outer,
    /// [`Batch::inner`].
    Inner,
}

/// One column of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Input {
    /// Which list.
    pub side: Side,
    /// Which of its columns, from 0.
    pub index: usize,
}

/// Rows of a batch, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    rows: Vec<u32>,
}

impl Selection {
    /// All of a batch's first rows.
    pub fn all(rows: usize) -> Self {
        Self { rows: (0..rows as u32).collect() }
    }

    /// These rows; they must ascend.
    pub fn new(rows: Vec<u32>) -> Self {
        debug_assert!(rows.is_sorted_by(|a, b| a < b));
        Self { rows }
    }

    /// The rows' numbers.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// Whether a row is one of them.
    pub fn holds(&self, row: usize) -> bool {
        u32::try_from(row).is_ok_and(|row| self.rows.binary_search(&row).is_ok())
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// What could be computed before a row failed: the executor hands out the rows before it, and raises the error only if
/// more is asked for (rows behind a LIMIT never fail).
#[derive(Clone, Debug)]
pub struct Partial<T> {
    /// The result for the rows before the failing one.
    pub value: T,
    /// How many rows `value` stands for (counted within the selection where there was one).
    pub rows: usize,
    /// The failing row's error.
    pub error: Option<SqlError>,
}
