//! One heap page, and which of its tuples a snapshot sees.

use stegodon_format::heap_tuple::{HeapTupleRef, Infomask};
use stegodon_format::ids::{BlockNumber, MultiXactId, OffsetNumber, Tid, Xid};
use stegodon_format::page::PageRef;
use stegodon_txn::{VisibilityChecker, toast_chunk_is_visible};
use stegodon_types::SqlError;

use crate::error::{Error, Result};

/// Answers about tuples: an MVCC snapshot's, which is [`VisibilityChecker`]; or those of [`visible_to_all`] and
/// [`visible_to_toast`].
pub trait Visibility {
    /// Why it cannot say.
    type Error: Into<SqlError>;

    /// Whether the snapshot sees the tuple.
    fn is_visible(&mut self, tuple: HeapTupleRef<'_>, tid: Tid) -> std::result::Result<bool, Self::Error>;

    /// Whether the tuple is visible for certain, going by these words of its header. False where more must be asked.
    fn sees_at_once(&self, _xmin: Xid, _mask: Infomask) -> bool {
        false
    }

    /// Which member of a multixact updated (or deleted) the tuple, [`Xid::INVALID`] if none did.
    fn multixact_updater(&mut self, multixact: MultiXactId) -> std::result::Result<Xid, Self::Error>;

    /// Whether a page that says that everyone sees all of its tuples may be believed. Not so while recovering.
    fn trusts_all_visible(&self) -> bool {
        true
    }
}

impl Visibility for VisibilityChecker {
    type Error = stegodon_txn::Error;

    fn is_visible(&mut self, tuple: HeapTupleRef<'_>, _: Tid) -> std::result::Result<bool, Self::Error> {
        self.check(tuple).map(stegodon_txn::Visibility::is_visible)
    }

    #[inline]
    fn sees_at_once(&self, xmin: Xid, mask: Infomask) -> bool {
        VisibilityChecker::sees_at_once(self, xmin, mask)
    }

    fn multixact_updater(&mut self, multixact: MultiXactId) -> std::result::Result<Xid, Self::Error> {
        VisibilityChecker::multixact_updater(self, multixact)
    }
}

/// Decides by looking at the tuple alone.
struct ByTuple(fn(HeapTupleRef<'_>) -> bool);

impl Visibility for ByTuple {
    type Error = SqlError;

    fn is_visible(&mut self, tuple: HeapTupleRef<'_>, _: Tid) -> std::result::Result<bool, SqlError> {
        Ok((self.0)(tuple))
    }

    fn multixact_updater(&mut self, _: MultiXactId) -> std::result::Result<Xid, SqlError> {
        Ok(Xid::INVALID)
    }
}

/// Sees every tuple there is (PostgreSQL's `SnapshotAny`).
pub fn visible_to_all() -> impl Visibility<Error = SqlError> {
    ByTuple(|_| true)
}

/// Sees the chunks of a TOAST table that a visible pointer may lead to (`SnapshotToast`).
pub fn visible_to_toast() -> impl Visibility<Error = SqlError> {
    ByTuple(toast_chunk_is_visible)
}

/// A page of a heap, with what messages call it.
#[derive(Clone, Copy)]
pub struct HeapPage<'a> {
    relation: &'a str,
    block: BlockNumber,
    page: PageRef<'a>,
}

impl<'a> HeapPage<'a> {
    /// A latched page of a relation.
    pub fn new(relation: &'a str, block: BlockNumber, page: PageRef<'a>) -> Self {
        Self { relation, block, page }
    }

    /// The relation's name.
    pub fn relation(&self) -> &'a str {
        self.relation
    }

    /// The block.
    pub fn block(&self) -> BlockNumber {
        self.block
    }

    /// The page itself.
    pub fn page(&self) -> PageRef<'a> {
        self.page
    }

    /// The tuple at a line pointer that has one.
    pub fn tuple(&self, offset: OffsetNumber) -> Result<HeapTupleRef<'a>> {
        self.page.item(offset).and_then(HeapTupleRef::parse).map_err(|why| self.bad_tuple(offset, why))
    }

    #[cold]
    pub(crate) fn bad_tuple(&self, offset: OffsetNumber, why: stegodon_format::Error) -> Error {
        Error::Tuple { relation: self.relation.to_owned(), block: self.block.0, offset: offset.0, why }
    }

    /// Replaces `out` by the line pointers whose tuples are visible, in order.
    pub fn visible_offsets<V: Visibility>(&self, visibility: &mut V, out: &mut Vec<OffsetNumber>) -> Result<()> {
        out.clear();
        let items = self.page.item_ids().filter(|(_, id)| id.is_normal());
        if self.page.flags().all_visible() && visibility.trusts_all_visible() {
            out.reserve(items.size_hint().1.unwrap_or(0));
            items.for_each(|(offset, _)| out.push(offset));
            return Ok(());
        }
        for (offset, id) in items {
            if self.sees_at_once(visibility, id) {
                out.push(offset);
                continue;
            }
            let item = self.page.item_at(offset, id).and_then(HeapTupleRef::parse);
            let tuple = item.map_err(|why| self.bad_tuple(offset, why))?;
            if self.sees(visibility, tuple, offset)? {
                out.push(offset);
            }
        }
        Ok(())
    }

    pub(crate) fn sees<V: Visibility>(
        &self,
        visibility: &mut V,
        tuple: HeapTupleRef<'_>,
        offset: OffsetNumber,
    ) -> Result<bool> {
        let tid = Tid::new(self.block, offset);
        visibility.is_visible(tuple, tid).map_err(|error| Error::Visibility(error.into()))
    }
}
