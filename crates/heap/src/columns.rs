//! The values of many tuples, column by column, on their way to Arrow.

use std::sync::Arc;

use arrow_array::builder::LargeBinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use stegodon_format::ids::Tid;
use stegodon_format::varlena::{Compressed, MAX_VARLENA_SIZE, ToastPointer};
use stegodon_types::column::ColumnBuilder;

use crate::deform::Deformer;
use crate::desc::TupleDesc;
use crate::error::{Error, Result};
use crate::walk::Place;

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

/// A value that is compressed inside its tuple, copied off the page; it is decompressed at the end, if its row is wanted.
#[derive(Debug)]
pub(crate) struct Packed {
    pub(crate) row: usize,
    pub(crate) column: usize,
    pub(crate) tid: Tid,
    pub(crate) stored: Box<[u8]>,
}

/// Columns that grow: one per column wanted, in that order.
#[derive(Debug)]
pub struct Columns {
    desc: TupleDesc,
    pub(crate) builders: Vec<ColumnBuilder>,
    pub(crate) rows: usize,
    pub(crate) toasted: Vec<Toasted>,
    pub(crate) packed: Vec<Packed>,
    /// What was fetched for each of `toasted`.
    fetched: Vec<Option<Vec<u8>>>,
    /// Where the values of a page lie; kept to be used again.
    pub(crate) places: Vec<Place>,
    /// Where the values of a page's plain tuples start; kept to be used again.
    pub(crate) starts: Vec<u32>,
}

impl Columns {
    /// Empty columns for what the deformer reads, with room for `rows`.
    pub fn new(deformer: &Deformer, rows: usize) -> Self {
        Self {
            desc: deformer.desc().clone(),
            builders: deformer.layouts().map(|layout| ColumnBuilder::new(layout, rows)).collect(),
            rows: 0,
            toasted: Vec::new(),
            packed: Vec::new(),
            fetched: Vec::new(),
            places: Vec::new(),
            starts: Vec::new(),
        }
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
        self.fetched.resize(self.toasted.len(), None);
        match self.fetched.get_mut(index) {
            Some(place) => *place = Some(payload),
            None => return Err(Error::Internal("no such toasted value in the batch")),
        }
        Ok(())
    }

    /// The arrays; the columns are empty again. An error if a toasted value was not filled in.
    pub fn finish(&mut self) -> Result<Vec<ArrayRef>> {
        self.finish_for(|_| true)
    }

    /// Like [`Columns::finish`], where only some rows go any further: in the others, toasted values need not be filled in and
    /// compressed ones are not decompressed, nor missed if they are damaged. Both read as empty there.
    pub fn finish_for(&mut self, wanted: impl Fn(usize) -> bool) -> Result<Vec<ArrayRef>> {
        self.rows = 0;
        let mut arrays: Vec<ArrayRef> = self.builders.iter_mut().map(ColumnBuilder::finish).collect();
        let (toasted, packed) = (std::mem::take(&mut self.toasted), std::mem::take(&mut self.packed));
        let mut fetched = std::mem::take(&mut self.fetched);
        if toasted.is_empty() && packed.is_empty() {
            return Ok(arrays);
        }
        fetched.resize(toasted.len(), None);
        let mut late = Vec::with_capacity(toasted.len() + packed.len());
        for (Toasted { row, column, .. }, payload) in toasted.into_iter().zip(fetched) {
            if wanted(row) {
                late.push((column, row, payload.ok_or(Error::Internal("a toasted value was not fetched"))?));
            }
        }
        for Packed { row, column, tid, stored } in packed {
            if wanted(row) {
                let payload = Compressed::parse(&stored).and_then(|value| value.decompress(MAX_VARLENA_SIZE));
                let relation = self.desc.relation();
                let bad =
                    |why| Error::Tuple { relation: relation.to_owned(), block: tid.block.0, offset: tid.offset.0, why };
                late.push((column, row, payload.map_err(bad)?));
            }
        }
        late.sort_unstable_by_key(|&(column, row, _)| (column, row));
        for group in late.chunk_by(|(a, ..), (b, ..)| a == b) {
            let Some((column, ..)) = group.first() else { continue };
            let Some(array) = arrays.get_mut(*column) else { continue };
            *array = patch(array, group)?;
        }
        Ok(arrays)
    }
}

/// `array` with the late values in place of the empty ones that stood for them.
fn patch(array: &ArrayRef, late: &[(usize, usize, Vec<u8>)]) -> Result<ArrayRef> {
    let Some(old) = array.as_binary_opt::<i64>() else {
        return Err(Error::Internal("a toasted value in a column of fixed size"));
    };
    let bytes = old.values().len() + late.iter().map(|(.., value)| value.len()).sum::<usize>();
    let mut new = LargeBinaryBuilder::with_capacity(old.len(), bytes);
    let mut late = late.iter().peekable();
    for row in 0..old.len() {
        if let Some((.., value)) = late.next_if(|&&(_, at, _)| at == row) {
            new.append_value(value);
        } else if old.is_null(row) {
            new.append_null();
        } else {
            new.append_value(old.value(row));
        }
    }
    Ok(Arc::new(new.finish()))
}
