//! Values put together from the chunks of a TOAST table.
//!
//! ```text
//!   ToastPointer ──▸ index (chunk_id, chunk_seq) ──▸ chunk 0, 1, 2 … ──▸ joined ──▸ decompressed if it was compressed
//! ```
//!
//! Whoever fetches gives the chunks in the index's order; each must be the next one and of the size that it must have.
//! The messages are PostgreSQL's.

use stegodon_format::ids::{OffsetNumber, Oid};
use stegodon_format::toast::{TOAST_MAX_CHUNK_SIZE, chunk_count};
use stegodon_format::varlena::{Compressed, MAX_VARLENA_SIZE, ToastPointer, Varlena, stored_len};

use crate::error::{Error, Result};
use crate::page::HeapPage;

/// One row of a TOAST table, on its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// `chunk_id`: which value it is of.
    pub value_id: Oid,
    /// `chunk_seq`: which chunk of it.
    pub seq: i32,
    /// `chunk_data`, as stored: see [`Assembly::push_stored`].
    pub stored: &'a [u8],
}

impl<'a> Chunk<'a> {
    /// The chunk at a line pointer of a TOAST table's page.
    pub fn read(page: &HeapPage<'a>, offset: OffsetNumber) -> Result<Self> {
        // The three columns have the same place in every chunk: the numbers first, without a null.
        const WHAT: &str = "TOAST chunk";
        let bad = |why| page.bad_tuple(offset, why);
        let tuple = page.tuple(offset)?;
        let data = tuple.data();
        if data.natts() < 3 || (0..3).any(|column| data.is_null(column)) {
            let why =
                stegodon_format::Error::InvalidField { what: WHAT, field: "column count", value: data.natts().into() };
            return Err(bad(why));
        }
        let values = data.values();
        let word = |at: usize| values.get(at..).and_then(<[u8]>::first_chunk).map(|bytes| u32::from_le_bytes(*bytes));
        let (Some(value_id), Some(seq), Some(rest)) = (word(0), word(4), values.get(8..)) else {
            let available = values.len();
            return Err(bad(stegodon_format::Error::Truncated { what: WHAT, offset: 0, needed: 8, available }));
        };
        let len = stored_len(rest).map_err(bad)?;
        Ok(Self { value_id: Oid(value_id), seq: seq as i32, stored: rest.get(..len).unwrap_or(rest) })
    }
}

/// One value on its way.
#[derive(Debug)]
pub struct Assembly<'a> {
    pointer: ToastPointer,
    /// The TOAST table's name, for messages.
    relation: &'a str,
    next: usize,
    bytes: Vec<u8>,
}

impl<'a> Assembly<'a> {
    /// Nothing yet of the value that `pointer` points to.
    pub fn new(pointer: ToastPointer, relation: &'a str) -> Self {
        // The size is the pointer's word only: memory is taken as chunks prove it.
        let bytes = Vec::with_capacity(pointer.stored_size.min(64 * TOAST_MAX_CHUNK_SIZE));
        Self { pointer, relation, next: 0, bytes }
    }

    /// The next chunk: `chunk_seq`, and `chunk_data` as stored, with its header.
    pub fn push_stored(&mut self, seq: i32, stored: &[u8]) -> Result<()> {
        let value_id = self.pointer.value_id.0;
        match Varlena::parse_exact(stored).map_err(|why| Error::ToastData { value_id, why })? {
            Varlena::Inline(data) => self.push(seq, data),
            Varlena::Compressed(_) | Varlena::External(_) => Err(self.wrong("found toasted toast chunk".to_owned())),
        }
    }

    /// The next chunk: `chunk_seq`, and the payload of `chunk_data`.
    pub fn push(&mut self, seq: i32, data: &[u8]) -> Result<()> {
        let total = chunk_count(&self.pointer);
        if usize::try_from(seq) != Ok(self.next) {
            return Err(self.wrong(format!("unexpected chunk number {seq} (expected {})", self.next)));
        }
        if self.next >= total {
            let last = total as i64 - 1;
            return Err(self.wrong(format!("unexpected chunk number {seq} (out of range 0..{last})")));
        }
        let expected = (self.pointer.stored_size - self.next * TOAST_MAX_CHUNK_SIZE).min(TOAST_MAX_CHUNK_SIZE);
        if data.len() != expected {
            let size = data.len();
            let what = format!("unexpected chunk size {size} (expected {expected}) in chunk {seq} of {total}");
            return Err(self.wrong(what));
        }
        self.bytes.extend_from_slice(data);
        self.next += 1;
        Ok(())
    }

    /// The payload, if every chunk was there.
    pub fn finish(self) -> Result<Vec<u8>> {
        if self.next < chunk_count(&self.pointer) {
            return Err(self.wrong(format!("missing chunk number {}", self.next)));
        }
        let Some(method) = self.pointer.compression else { return Ok(self.bytes) };
        let value_id = self.pointer.value_id.0;
        let bad = |why| Error::ToastData { value_id, why };
        let compressed = Compressed::parse(&self.bytes).map_err(bad)?;
        if compressed.method != method || compressed.raw_size != self.pointer.raw_size {
            let (field, value) = ("size or compression method", compressed.raw_size as u64);
            return Err(bad(stegodon_format::Error::InvalidField { what: "compressed TOAST value", field, value }));
        }
        compressed.decompress(MAX_VARLENA_SIZE).map_err(bad)
    }

    #[cold]
    fn wrong(&self, what: String) -> Error {
        Error::Toast(format!("{what} for toast value {} in {}", self.pointer.value_id, self.relation))
    }
}
