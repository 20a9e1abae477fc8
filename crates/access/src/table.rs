//! A table that can be read.

use std::sync::Arc;

use stegodon_buffer::{IoCounters, ReadStream, StreamOptions};
use stegodon_format::ids::{AttrNumber, Fork, OffsetNumber};
use stegodon_heap::{Columns, Deformer, HeapPage, TupleDesc};
use stegodon_io::RelationFiles;
use stegodon_types::{Datum, SqlResult, value_at};

use crate::blocks::SharedBlocks;
use crate::storage::Storage;
use crate::toast::Toast;

/// A table whose columns are known. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its columns.
    pub desc: TupleDesc,
    /// Its files.
    pub files: RelationFiles,
    /// Where its long values are; `None` where it has no TOAST table.
    pub toast: Option<Arc<Toast>>,
}

impl Table {
    /// Its length in blocks.
    pub fn blocks(&self) -> SqlResult<u32> {
        Ok(self.files.nblocks(Fork::Main)?)
    }

    /// A page of it, in `heap`'s terms.
    pub fn page<'a>(&'a self, page: &'a stegodon_buffer::PageGuard<'_>) -> HeapPage<'a> {
        HeapPage::new(self.desc.relation(), page.block(), page.view())
    }
}

/// Reads the visible rows of a small table whole, blocking: as the catalogs are read.
pub fn read_all(storage: &Storage, table: &Table, wanted: &[AttrNumber]) -> SqlResult<Vec<Vec<Option<Datum>>>> {
    let deformer = Deformer::new(&table.desc, wanted)?;
    let layouts: Vec<_> = deformer.layouts().collect();
    let mut next = Arc::new(SharedBlocks::new(0, table.blocks()?, 1)).iter();
    let source = move || next().map(|block| (block, ()));
    let options = StreamOptions { full: true, ..StreamOptions::default() };
    let mut stream = ReadStream::new(storage.pool(), &table.files, Fork::Main, source, options);
    let mut visibility = storage.visibility();
    let mut offsets: Vec<OffsetNumber> = Vec::new();
    let mut columns = Columns::new(&deformer, 1024);
    let counters = Arc::new(IoCounters::default());
    while let Some((page, ())) = stream.next_blocking()? {
        let guard = page.latch_shared();
        let heap = table.page(&guard);
        offsets.clear();
        heap.visible_offsets(&mut visibility, &mut offsets)?;
        deformer.deform(&heap, &offsets, &mut columns)?;
    }
    let count = columns.rows();
    let toasted: Vec<_> = columns.toasted().iter().map(|t| t.pointer).collect();
    for (index, pointer) in toasted.into_iter().enumerate() {
        let value = Toast::fetch_blocking(storage, table.toast.as_deref(), &pointer, &counters)?;
        columns.fill(index, value)?;
    }
    let arrays = columns.finish()?;
    let row = |row| {
        let value = |(array, &layout): (&arrow_array::ArrayRef, _)| {
            value_at(array.as_ref(), layout, row).map(stegodon_types::ValueRef::to_datum)
        };
        arrays.iter().zip(&layouts).map(value).collect()
    };
    Ok((0..count).map(row).collect())
}
