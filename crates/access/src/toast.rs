//! Values that lie in a TOAST table.
//!
//! A value's chunks are found through the TOAST index on `(chunk_id, chunk_seq)`. While the catalogs are being read no
//! index is known yet: then the TOAST table is read whole, once.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use stegodon_buffer::{IoCounters, PageGuard, ReadStream, StreamOptions};
use stegodon_format::ids::{Fork, OffsetNumber, Oid};
use stegodon_format::varlena::ToastPointer;
use stegodon_heap::HeapPage;
use stegodon_heap::toast::{Assembly, Chunk};
use stegodon_io::RelationFiles;
use stegodon_nbtree::{
    BtreeScan, IndexAttribute, IndexDesc, IndexKey, KeyComparator, PoolSource, ScanKey, ScanOptions, Strategy,
};
use stegodon_txn::toast_chunk_is_visible;
use stegodon_types::{Align, Datum, Layout, SqlError, SqlResult, SqlState, ValueRef, oids};

use crate::blocks::SharedBlocks;
use crate::storage::Storage;

/// Chunks by value: `(chunk_seq, chunk_data as stored)` in the order of the table.
type Chunks = HashMap<u32, Vec<(i32, Vec<u8>)>>;

/// A TOAST table.
#[derive(Debug)]
pub struct Toast {
    name: String,
    oid: Oid,
    files: RelationFiles,
    index: Option<(RelationFiles, Arc<IndexDesc>)>,
    /// All chunks, where there is no index.
    whole: OnceLock<Chunks>,
}

impl Toast {
    /// A TOAST table by name and OID, with its index's name and files where they are known.
    pub fn new(
        name: impl Into<String>,
        oid: Oid,
        files: RelationFiles,
        index: Option<(String, RelationFiles)>,
    ) -> SqlResult<Self> {
        let name = name.into();
        let index = index.map(|(name, files)| Ok::<_, SqlError>((files, Arc::new(index_desc(name)?)))).transpose()?;
        Ok(Self { name, oid, files, index, whole: OnceLock::new() })
    }

    /// Fetches a value's payload.
    pub async fn fetch(
        storage: &Storage,
        toast: Option<&Toast>,
        pointer: &ToastPointer,
        counters: &Arc<IoCounters>,
    ) -> SqlResult<Vec<u8>> {
        let toast = Self::pointed_to(toast, pointer)?;
        match &toast.index {
            Some((files, desc)) => toast.through_index(storage, files, desc, pointer, counters).await,
            None => toast.out_of_whole(storage, pointer),
        }
    }

    /// Fetches a value's payload, blocking.
    pub(crate) fn fetch_blocking(
        storage: &Storage,
        toast: Option<&Toast>,
        pointer: &ToastPointer,
        _: &Arc<IoCounters>,
    ) -> SqlResult<Vec<u8>> {
        Self::pointed_to(toast, pointer)?.out_of_whole(storage, pointer)
    }

    fn pointed_to<'a>(toast: Option<&'a Toast>, pointer: &ToastPointer) -> SqlResult<&'a Toast> {
        toast.filter(|t| t.oid == pointer.toast_relation).ok_or_else(|| {
            let relation = pointer.toast_relation;
            let message = format!("a value lies in TOAST table {relation}, which is not its table's");
            SqlError::new(SqlState::DataCorrupted, message)
        })
    }

    async fn through_index(
        &self,
        storage: &Storage,
        files: &RelationFiles,
        desc: &Arc<IndexDesc>,
        pointer: &ToastPointer,
        counters: &Arc<IoCounters>,
    ) -> SqlResult<Vec<u8>> {
        let pages = PoolSource::new(storage.pool(), files).counted(Arc::clone(counters));
        let mut scan = BtreeScan::new(Arc::clone(desc), pages, ScanOptions::default());
        scan.rescan(&[ScanKey::compare(0, Strategy::Equal, oids::OID, Some(Datum::UInt32(pointer.value_id.0)))])?;
        let mut assembly = Assembly::new(*pointer, &self.name);
        while scan.next().await? {
            for place in 0..scan.matches().len() {
                let Some(tid) = scan.matches().get(place).copied() else { break };
                let page = storage.pool().read_counted(&self.files, Fork::Main, tid.block, counters).await?;
                let guard = page.latch_shared();
                self.push(&guard, tid.offset, pointer, &mut assembly)?;
            }
        }
        Ok(assembly.finish()?)
    }

    fn push(
        &self,
        guard: &PageGuard<'_>,
        offset: OffsetNumber,
        pointer: &ToastPointer,
        assembly: &mut Assembly<'_>,
    ) -> SqlResult<()> {
        let page = HeapPage::new(&self.name, guard.block(), guard.view());
        if !toast_chunk_is_visible(page.tuple(offset)?) {
            return Ok(());
        }
        let chunk = Chunk::read(&page, offset)?;
        if chunk.value_id != pointer.value_id {
            let message = format!(
                "index of TOAST table \"{}\" leads from value {} to {}",
                self.name, pointer.value_id, chunk.value_id
            );
            return Err(SqlError::new(SqlState::IndexCorrupted, message));
        }
        Ok(assembly.push_stored(chunk.seq, chunk.stored)?)
    }

    fn out_of_whole(&self, storage: &Storage, pointer: &ToastPointer) -> SqlResult<Vec<u8>> {
        let whole = if let Some(whole) = self.whole.get() {
            whole
        } else {
            let read = self.read_whole(storage)?;
            self.whole.get_or_init(|| read)
        };
        let mut assembly = Assembly::new(*pointer, &self.name);
        let mut chunks: Vec<&(i32, Vec<u8>)> = whole.get(&pointer.value_id.0).into_iter().flatten().collect();
        chunks.sort_by_key(|(seq, _)| *seq);
        for (seq, data) in chunks {
            assembly.push_stored(*seq, data)?;
        }
        Ok(assembly.finish()?)
    }

    fn read_whole(&self, storage: &Storage) -> SqlResult<Chunks> {
        let mut next = Arc::new(SharedBlocks::new(0, self.files.nblocks(Fork::Main)?, 1)).iter();
        let source = move || next().map(|block| (block, ()));
        let options = StreamOptions { full: true, ..StreamOptions::default() };
        let mut stream = ReadStream::new(storage.pool(), &self.files, Fork::Main, source, options);
        let mut chunks = Chunks::new();
        while let Some((page, ())) = stream.next_blocking()? {
            let guard = page.latch_shared();
            let heap = HeapPage::new(&self.name, guard.block(), guard.view());
            for (offset, _) in heap.page().item_ids().filter(|(_, id)| id.is_normal()) {
                if !toast_chunk_is_visible(heap.tuple(offset)?) {
                    continue;
                }
                let chunk = Chunk::read(&heap, offset)?;
                chunks.entry(chunk.value_id.0).or_default().push((chunk.seq, chunk.stored.to_vec()));
            }
        }
        Ok(chunks)
    }
}

fn index_desc(name: String) -> SqlResult<IndexDesc> {
    let attribute = |layout| IndexAttribute { len: 4, align: Align::Int, layout: Some(layout) };
    let key = |type_oid, compare| IndexKey {
        input_type: type_oid,
        desc: false,
        nulls_first: false,
        compare: vec![(type_oid, type_oid, compare)],
    };
    let mismatch = || SqlError::internal("a TOAST index's value is not of its type");
    let compare_ids = KeyComparator::new(move |a, b| match (a, b) {
        (ValueRef::UInt32(a), ValueRef::UInt32(b)) => Ok(a.cmp(&b)),
        _ => Err(mismatch()),
    });
    let compare_seqs = KeyComparator::new(move |a, b| match (a, b) {
        (ValueRef::Int32(a), ValueRef::Int32(b)) => Ok(a.cmp(&b)),
        _ => Err(mismatch()),
    });
    let attributes = vec![attribute(Layout::UInt32), attribute(Layout::Int32)];
    IndexDesc::new(name, attributes, vec![key(oids::OID, compare_ids), key(oids::INT4, compare_seqs)], true)
}
