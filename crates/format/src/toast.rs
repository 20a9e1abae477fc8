//! How a TOAST table holds a value: in chunks.
//!
//! ```text
//!   column  1 chunk_id oid    2 chunk_seq int4, from 0    3 chunk_data bytea
//!           the value's OID   without gaps                TOAST_MAX_CHUNK_SIZE bytes, the last one the rest
//! ```
//!
//! The unique index on (chunk_id, chunk_seq) yields the chunks in order. Joined, they are the value's payload, or, if the
//! pointer says compressed, what [`crate::varlena::Compressed::parse`] reads.

use crate::attr::AttrLayout;
use crate::error::{Error, Result};
use crate::varlena::ToastPointer;

/// The bytes in every chunk but the last: four chunks' tuples fill a page.
pub const TOAST_MAX_CHUNK_SIZE: usize = 1996;

/// The layout of a TOAST table's columns.
pub const TOAST_ATTRS: [AttrLayout; 3] = [AttrLayout::new(4, 4), AttrLayout::new(4, 4), AttrLayout::varlena(4)];

/// The number of chunks that the value has.
pub const fn chunk_count(pointer: &ToastPointer) -> usize {
    pointer.stored_size.div_ceil(TOAST_MAX_CHUNK_SIZE)
}

/// That chunk `seq` of the value is the next one and has the size that it must have; PostgreSQL's words otherwise are
/// "unexpected chunk number …" and "unexpected chunk size …".
pub fn check_chunk(pointer: &ToastPointer, expected_seq: usize, seq: i32, size: usize) -> Result<()> {
    let what = "TOAST value";
    if usize::try_from(seq) != Ok(expected_seq) || expected_seq >= chunk_count(pointer) {
        return Err(Error::InvalidField { what, field: "unexpected chunk number", value: u64::from(seq as u32) });
    }
    let expected = (pointer.stored_size - expected_seq * TOAST_MAX_CHUNK_SIZE).min(TOAST_MAX_CHUNK_SIZE);
    if size != expected {
        return Err(Error::InvalidField { what, field: "unexpected chunk size", value: size as u64 });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
    use super::*;
    use crate::ids::Oid;

    #[test]
    fn chunks_are_counted_and_sized() {
        let pointer = |size| ToastPointer {
            raw_size: size,
            stored_size: size,
            compression: None,
            value_id: Oid(1),
            toast_relation: Oid(2),
        };
        // The values of testdata/heap_page.sql: pg_toast has two chunks each for 3200 and 2700 bytes.
        assert_eq!(chunk_count(&pointer(3200)), 2);
        assert_eq!(chunk_count(&pointer(1996)), 1);
        assert_eq!(chunk_count(&pointer(1997)), 2);
        assert_eq!(chunk_count(&pointer(0)), 0);
        assert!(check_chunk(&pointer(3200), 0, 0, 1996).is_ok());
        assert!(check_chunk(&pointer(3200), 1, 1, 1204).is_ok());
        assert!(check_chunk(&pointer(3200), 1, 1, 1205).is_err());
        assert!(check_chunk(&pointer(3200), 0, 1, 1996).is_err());
        assert!(check_chunk(&pointer(3200), 2, 2, 0).is_err());
        assert!(check_chunk(&pointer(3200), 0, -1, 0).is_err());
    }
}
