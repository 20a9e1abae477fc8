//! Visibility at a glance: most tuples were inserted long ago and never touched again, and their headers' hint bits say so.
//!
//! ```text
//!   line pointer ─▸ t_xmin, t_infomask2, t_infomask ─▸ visible, without parsing the tuple       else: the careful way
//! ```
//!
//! The answer is the careful way's. What is out of the ordinary, damage included, is left to it.

use stegodon_format::heap_tuple::{HEAP_TUPLE_HEADER_SIZE, Infomask, Infomask2};
use stegodon_format::ids::{OffsetNumber, Xid};
use stegodon_format::page::ItemId;

use crate::error::Result;
use crate::page::{HeapPage, Visibility};

const INFOMASK2: usize = 18;
const INFOMASK: usize = 20;

/// The words of a tuple's header that visibility is about.
struct Glance {
    xmin: Xid,
    mask: Infomask,
    mask2: Infomask2,
}

impl HeapPage<'_> {
    #[inline]
    fn glance(&self, id: ItemId) -> Option<Glance> {
        let page = self.page();
        let (start, len) = (usize::from(id.offset()), usize::from(id.len()));
        // Four branches a tuple would be guessed one by one.
        #[allow(clippy::needless_bitwise_bool, reason = "see above")]
        let lies_well = id.is_normal()
            & (start >= usize::from(page.upper()))
            & (start + len <= usize::from(page.special_offset()))
            & (len > HEAP_TUPLE_HEADER_SIZE);
        if !lies_well {
            return None;
        }
        let header = page.bytes().get(start..)?.first_chunk::<HEAP_TUPLE_HEADER_SIZE>()?;
        let half = |at: usize| header.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |raw| u16::from_le_bytes(*raw));
        let xmin = header.first_chunk().map_or(0, |raw| u32::from_le_bytes(*raw));
        Some(Glance { xmin: Xid(xmin), mask: Infomask(half(INFOMASK)), mask2: Infomask2(half(INFOMASK2)) })
    }

    /// Whether a line pointer's tuple is visible for certain.
    #[inline]
    pub(crate) fn sees_at_once<V: Visibility>(&self, visibility: &V, id: ItemId) -> bool {
        self.glance(id).is_some_and(|tuple| visibility.sees_at_once(tuple.xmin, tuple.mask))
    }

    /// Adds to `out` the visible versions of the rows that start at `roots`, which are the offsets of index entries' TIDs.
    pub fn visible_versions<V: Visibility>(
        &self,
        roots: impl Iterator<Item = OffsetNumber>,
        visibility: &mut V,
        out: &mut Vec<OffsetNumber>,
    ) -> Result<()> {
        let pointers = self.page().line_pointers();
        for root in roots {
            let id = pointers.get(usize::from(root.0).wrapping_sub(1)).map(|raw| ItemId(u32::from_le_bytes(*raw)));
            let tuple = id.and_then(|id| self.glance(id));
            let at_once = tuple.is_some_and(|t| !t.mask2.is_heap_only() && visibility.sees_at_once(t.xmin, t.mask));
            if at_once {
                out.push(root);
            } else {
                out.extend(self.hot_search(root, visibility)?);
            }
        }
        Ok(())
    }
}
