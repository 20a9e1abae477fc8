//! Heap-only tuples: from an index entry to the version of the row that a snapshot sees.
//!
//! ```text
//!   index ──▸ lp 1 REDIRECT ──▸ lp 4 ─ HOT_UPDATED, t_ctid ──▸ lp 7 ─ … ──▸ the last version
//!                                  xmax 812      ==      xmin 812
//! ```
//!
//! The chain ends where a line pointer has no tuple, where a tuple was not HOT-updated, and where the next tuple's
//! inserter is not this one's updater: that place was reused for another row.

use stegodon_format::heap_tuple::{HeapTupleRef, Infomask};
use stegodon_format::ids::{OffsetNumber, Xid};

use crate::error::{Error, Result};
use crate::page::{HeapPage, Visibility};

impl HeapPage<'_> {
    /// The visible version in the HOT chain that starts at `root`, the offset of an index entry's TID. At most one
    /// version of a row is visible to an MVCC snapshot.
    pub fn hot_search<V: Visibility>(&self, root: OffsetNumber, visibility: &mut V) -> Result<Option<OffsetNumber>> {
        let page = self.page();
        let max = page.max_offset();
        let mut offset = root;
        let mut at_start = true;
        let mut prior = Xid::INVALID;
        // A chain visits a line pointer at most once.
        for _ in 0..=max.0 {
            if !offset.is_valid() || offset > max {
                return Ok(None);
            }
            let id = page.item_id(offset).map_err(|why| self.bad_tuple(offset, why))?;
            if let (Some(target), true) = (id.redirect(), at_start) {
                offset = target;
                at_start = false;
                continue;
            }
            if !id.is_normal() {
                return Ok(None);
            }
            let tuple = self.tuple(offset)?;
            if at_start && tuple.is_heap_only() {
                return Ok(None);
            }
            if prior.is_valid() && prior != tuple.xmin() {
                return Ok(None);
            }
            if self.sees(visibility, tuple, offset)? {
                return Ok(Some(offset));
            }
            if !tuple.is_hot_updated() {
                return Ok(None);
            }
            // The next version is on the same page by definition; a ctid that says otherwise is not to be followed.
            if tuple.ctid().block != self.block() {
                return Ok(None);
            }
            offset = tuple.ctid().offset;
            at_start = false;
            prior = updater(visibility, tuple)?;
        }
        Err(Error::EndlessChain { relation: self.relation().to_owned(), block: self.block().0, offset: root.0 })
    }
}

/// Who updated the tuple. Where `t_xmax` is a multixact of lockers only it is returned as it stands, as PostgreSQL does:
/// no inserter equals it, so the chain ends.
fn updater<V: Visibility>(visibility: &mut V, tuple: HeapTupleRef<'_>) -> Result<Xid> {
    let mask = tuple.infomask();
    if !mask.xmax_is_multi() || mask.xmax_invalid() || mask.0 & Infomask::XMAX_LOCK_ONLY != 0 {
        return Ok(tuple.raw_xmax());
    }
    visibility.multixact_updater(tuple.xmax_multi()).map_err(|error| Error::Visibility(error.into()))
}
