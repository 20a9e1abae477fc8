//! The values of many tuples, column by column, on their way to Arrow.

use std::sync::Arc;

use arrow_array::builder::LargeBinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use stegodon_format::varlena::ToastPointer;
use stegodon_types::column::ColumnBuilder;

use crate::deform::Deformer;
use crate::error::{Error, Result};

/// A value that lies in a TOAST table, and where it belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Toasted {
    /// The row of the batch.
    pub row: usize,
    /// The column of the batch: an index into the columns wanted.
    pub column: usize,
    /// Where the value lies.
    pub pointer: ToastPointer,
}

/// Columns that grow: one per column wanted, in that order.
#[derive(Debug)]
pub struct Columns {
    pub(crate) builders: Vec<ColumnBuilder>,
    pub(crate) rows: usize,
    pub(crate) toasted: Vec<Toasted>,
    /// What was fetched for each of `toasted`.
    fetched: Vec<Option<Vec<u8>>>,
    /// Where the values of a page lie; kept to be used again.
    pub(crate) places: Vec<crate::deform::Place>,
}

impl Columns {
    /// Empty columns for what the deformer reads, with room for `rows`.
    pub fn new(deformer: &Deformer, rows: usize) -> Self {
        let builders = deformer.layouts().map(|layout| ColumnBuilder::new(layout, rows)).collect();
        Self { builders, rows: 0, toasted: Vec::new(), fetched: Vec::new(), places: Vec::new() }
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The values that have to be fetched before [`Columns::finish`].
    pub fn toasted(&self) -> &[Toasted] {
        &self.toasted
    }

    /// Gives the payload of the value that `toasted()[index]` describes.
    pub fn fill(&mut self, index: usize, payload: Vec<u8>) -> Result<()> {
        if index >= self.toasted.len() {
            return Err(Error::Internal("no such toasted value in the batch"));
        }
        self.fetched.resize(self.toasted.len(), None);
        match self.fetched.get_mut(index) {
            Some(place) => *place = Some(payload),
            None => return Err(Error::Internal("no such toasted value in the batch")),
        }
        Ok(())
    }

    /// The arrays; the columns are empty again and keep their memory where Arrow lets them. An error if a toasted value
    /// was not filled in.
    pub fn finish(&mut self) -> Result<Vec<ArrayRef>> {
        self.rows = 0;
        let mut arrays: Vec<ArrayRef> = self.builders.iter_mut().map(ColumnBuilder::finish).collect();
        let toasted = std::mem::take(&mut self.toasted);
        let mut fetched = std::mem::take(&mut self.fetched);
        fetched.resize(toasted.len(), None);
        let mut filled = toasted.into_iter().zip(fetched).collect::<Vec<_>>();
        filled.sort_by_key(|(toasted, _)| (toasted.column, toasted.row));
        for group in filled.chunk_by(|(a, _), (b, _)| a.column == b.column) {
            let Some((first, _)) = group.first() else { continue };
            let Some(array) = arrays.get_mut(first.column) else { continue };
            *array = patch(array, group)?;
        }
        Ok(arrays)
    }
}

/// `array` with the fetched values in place of the empty ones that stood for them.
fn patch(array: &ArrayRef, fetched: &[(Toasted, Option<Vec<u8>>)]) -> Result<ArrayRef> {
    let Some(old) = array.as_binary_opt::<i64>() else {
        return Err(Error::Internal("a toasted value in a column of fixed size"));
    };
    let bytes = old.values().len() + fetched.iter().map(|(_, value)| value.as_ref().map_or(0, Vec::len)).sum::<usize>();
    let mut new = LargeBinaryBuilder::with_capacity(old.len(), bytes);
    let mut fetched = fetched.iter().peekable();
    for row in 0..old.len() {
        if let Some((_, value)) = fetched.next_if(|(toasted, _)| toasted.row == row) {
            let Some(value) = value else { return Err(Error::Internal("a toasted value was not fetched")) };
            new.append_value(value);
        } else if old.is_null(row) {
            new.append_null();
        } else {
            new.append_value(old.value(row));
        }
    }
    Ok(Arc::new(new.finish()))
}
