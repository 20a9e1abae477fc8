//! The pages and tuples of a B-tree index, version 4 (PostgreSQL 12 and later).
//!
//! Block 0 is the metapage; every other block is a tree page or was one.
//!
//! ```text
//!  metapage, after the page header (24)                 every page, special area (16 bytes at 8176)
//!    0  btm_magic        0x053162                         0  btpo_prev     left sibling, 0 = leftmost
//!    4  btm_version      4                                4  btpo_next     right sibling, 0 = rightmost
//!    8  btm_root         block, 0 = empty index           8  btpo_level    0 = leaf
//!   12  btm_level        the root's level                12  btpo_flags    see `PageFlags`
//!   16  btm_fastroot     lowest single-page level        14  btpo_cycleid  of the vacuum that saw the last split
//!   20  btm_fastlevel    its level
//!   24  btm_last_cleanup_num_delpages
//!   32  btm_last_cleanup_num_heap_tuples (float8, -1)
//!   40  btm_allequalimage (bool): equal means the same bytes, so posting lists are allowed
//!
//!  tree page                                            offsets
//!   ┌──────────────────────────────────────────────┐     rightmost page: data items from 1
//!   │ header │ high key │ item │ item │ …          │     any other:      1 is the high key, data items from 2
//!   └──────────────────────────────────────────────┘
//!     tuples on the page ≤ high key < tuples to the right; on an internal page
//!     downlink's key < tuples of the child ≤ the next downlink's key; the first data item's key is minus infinity
//!
//!  index tuple
//!    0        6       8               12 (or 8)
//!   ┌────────┬───────┬───────────────┬──────────────────────────────┐
//!   │ t_tid  │ t_info│ nulls, 4 bytes│ attributes, from a multiple  │     t_info: bits 0–12 size of the tuple
//!   │        │       │ if bit 15     │ of 8                         │             bit 13 t_tid is not a heap TID
//!   └────────┴───────┴───────────────┴──────────────────────────────┘             bit 14 has a variable-width attribute
//!                                                                                 bit 15 has nulls
//!   bit 13 clear:                       a leaf's tuple; t_tid is the row
//!   bit 13 set, t_tid.offset bit 13:    a leaf's posting list; t_tid.offset bits 0–11 = number of TIDs, t_tid.block =
//!                                       where in the tuple they start: 6 bytes each, ascending, up to the tuple's end
//!   bit 13 set, otherwise:              a pivot (high key or downlink); t_tid.block = child, t_tid.offset bits 0–11 =
//!                                       number of attributes kept, bit 12 = the last 6 bytes are a heap TID (tiebreak).
//!                                       Attributes cut off count as minus infinity, whatever DESC or NULLS FIRST say
//! ```

use crate::bytes::Bytes;
use crate::error::{Error, Result};
use crate::ids::{BlockNumber, FullXid, OffsetNumber, Tid};
use crate::page::{BLCKSZ, ItemId, PageRef};

/// `btm_magic`.
pub const MAGIC: u32 = 0x0005_3162;
/// The only `btm_version` that is read.
pub const VERSION: u32 = 4;
/// The block of the metapage.
pub const METAPAGE: BlockNumber = BlockNumber(0);
/// The size of the special area of every page.
pub const OPAQUE_SIZE: usize = 16;
/// The line pointer of the high key, on pages that have one.
pub const HIGH_KEY: OffsetNumber = OffsetNumber(1);
/// No index has more attributes than this (`INDEX_MAX_KEYS`), so a null bitmap is always 4 bytes.
pub const MAX_ATTRIBUTES: usize = 32;

const TUPLE_HEADER: usize = 8;
const TUPLE_HEADER_WITH_NULLS: usize = 16;
const NULLS_SIZE: usize = 4;
const SIZE_MASK: u16 = 0x1FFF;
const ALTERNATIVE_TID: u16 = 0x2000;
const HAS_VARWIDTH: u16 = 0x4000;
const HAS_NULLS: u16 = 0x8000;
const COUNT_MASK: u16 = 0x0FFF;
const PIVOT_HEAP_TID: u16 = 0x1000;
const IS_POSTING: u16 = 0x2000;
const TID_SIZE: usize = 6;

/// What the metapage says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MetaPage {
    /// The true root; `None` in an empty index.
    pub root: Option<BlockNumber>,
    /// The root's level; leaves are 0.
    pub level: u32,
    /// Where descents start: the lowest level that has a single page.
    pub fast_root: Option<BlockNumber>,
    /// The fast root's level.
    pub fast_level: u32,
    /// Deleted pages at the last cleanup that could not be recycled yet.
    pub last_cleanup_deleted_pages: u32,
    /// Whether equal keys always have equal bytes, so that deduplication is allowed.
    pub all_equal_image: bool,
}

impl MetaPage {
    /// Decodes a page as the metapage. A page that is none is [`Error::InvalidField`]; a version other than 4 is
    /// [`Error::Unsupported`] (2 and 3 come from directories upgraded from PostgreSQL 11 and older).
    pub fn read(page: PageRef<'_>) -> Result<MetaPage> {
        const WHAT: &str = "B-tree metapage";
        let opaque = Opaque::read(page)?;
        if !opaque.flags.contains(PageFlags::META) {
            return Err(Error::InvalidField { what: WHAT, field: "btpo_flags", value: u64::from(opaque.flags.0) });
        }
        let bytes = Bytes::new(WHAT, page.contents());
        let magic = bytes.u32(0)?;
        if magic != MAGIC {
            return Err(Error::InvalidField { what: WHAT, field: "btm_magic", value: u64::from(magic) });
        }
        match bytes.u32(4)? {
            VERSION => {}
            2 | 3 => return Err(Error::Unsupported("a B-tree index of version 2 or 3 (made before PostgreSQL 12)")),
            version => {
                return Err(Error::InvalidField { what: WHAT, field: "btm_version", value: u64::from(version) });
            }
        }
        Ok(MetaPage {
            root: link(bytes.u32(8)?),
            level: bytes.u32(12)?,
            fast_root: link(bytes.u32(16)?),
            fast_level: bytes.u32(20)?,
            last_cleanup_deleted_pages: bytes.u32(24)?,
            all_equal_image: bytes.u8(40)? != 0,
        })
    }
}

/// Links use 0, the metapage's block, for "none".
const fn link(raw: u32) -> Option<BlockNumber> {
    if raw == 0 { None } else { Some(BlockNumber(raw)) }
}

/// The bits of `btpo_flags`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageFlags(pub u16);

impl PageFlags {
    /// A leaf page.
    pub const LEAF: u16 = 1 << 0;
    /// The root page.
    pub const ROOT: u16 = 1 << 1;
    /// Deleted from the tree; holds the time of its deletion instead of items.
    pub const DELETED: u16 = 1 << 2;
    /// The metapage.
    pub const META: u16 = 1 << 3;
    /// Empty, without downlink, still linked to its siblings.
    pub const HALF_DEAD: u16 = 1 << 4;
    /// The rightmost page of a group of splits (for vacuum).
    pub const SPLIT_END: u16 = 1 << 5;
    /// Some line pointers are dead. A hint.
    pub const HAS_GARBAGE: u16 = 1 << 6;
    /// The right sibling's downlink is not in the parent yet.
    pub const INCOMPLETE_SPLIT: u16 = 1 << 7;
    /// A deleted page's time of deletion is a full transaction id.
    pub const HAS_FULLXID: u16 = 1 << 8;

    /// Whether any of `bits` is set.
    pub const fn contains(self, bits: u16) -> bool {
        self.0 & bits != 0
    }
}

/// The special area of a tree page (`BTPageOpaqueData`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opaque {
    /// The left sibling; `None` on the leftmost page of a level.
    pub prev: Option<BlockNumber>,
    /// The right sibling; `None` on the rightmost page of a level.
    pub next: Option<BlockNumber>,
    /// The level; leaves are 0.
    pub level: u32,
    /// What sort of page.
    pub flags: PageFlags,
    /// The vacuum cycle of the last split.
    pub cycle_id: u16,
}

impl Opaque {
    /// Reads the special area; a page whose special area has another size is no B-tree page.
    pub fn read(page: PageRef<'_>) -> Result<Opaque> {
        let special = page.special();
        if special.len() != OPAQUE_SIZE {
            let value = special.len() as u64;
            return Err(Error::InvalidField { what: "B-tree page", field: "special area's size", value });
        }
        let bytes = Bytes::new("B-tree page", special);
        Ok(Opaque {
            prev: link(bytes.u32(0)?),
            next: link(bytes.u32(4)?),
            level: bytes.u32(8)?,
            flags: PageFlags(bytes.u16(12)?),
            cycle_id: bytes.u16(14)?,
        })
    }

    /// Whether the page is a leaf.
    #[inline]
    pub const fn is_leaf(&self) -> bool {
        self.flags.contains(PageFlags::LEAF)
    }

    /// Whether a scan must step over the page (`P_IGNORE`): half dead or deleted.
    #[inline]
    pub const fn is_ignored(&self) -> bool {
        self.flags.contains(PageFlags::DELETED | PageFlags::HALF_DEAD)
    }

    /// Whether the page is the last of its level, and therefore has no high key.
    #[inline]
    pub const fn is_rightmost(&self) -> bool {
        self.next.is_none()
    }
}

/// A tree page to be read. As [`PageRef`], it assumes nothing about the bytes.
#[derive(Clone, Copy)]
pub struct BtreePage<'a> {
    page: PageRef<'a>,
    /// The special area.
    pub opaque: Opaque,
}

impl<'a> BtreePage<'a> {
    /// A page as a tree page. A page of zeros must have been refused before ([`PageRef::is_new`]).
    pub fn new(page: PageRef<'a>) -> Result<Self> {
        Ok(Self { page, opaque: Opaque::read(page)? })
    }

    /// The page below.
    pub const fn page(self) -> PageRef<'a> {
        self.page
    }

    /// The first data item's line pointer (`P_FIRSTDATAKEY`).
    #[inline]
    pub const fn first_data(self) -> OffsetNumber {
        OffsetNumber(if self.opaque.is_rightmost() { 1 } else { 2 })
    }

    /// The last line pointer.
    #[inline]
    pub fn last(self) -> OffsetNumber {
        self.page.max_offset()
    }

    /// The line pointer of an item.
    #[inline]
    pub fn item_id(self, offset: OffsetNumber) -> Result<ItemId> {
        self.page.item_id(offset)
    }

    /// The tuple at a line pointer.
    #[inline]
    pub fn tuple(self, offset: OffsetNumber) -> Result<IndexTuple<'a>> {
        IndexTuple::new(self.page.item(offset)?)
    }

    /// The tuple of a line pointer already read.
    #[inline]
    pub fn tuple_at(self, offset: OffsetNumber, id: ItemId) -> Result<IndexTuple<'a>> {
        IndexTuple::new(self.page.item_at(offset, id)?)
    }

    /// The upper bound of the page's tuples; `None` on the rightmost page of a level.
    pub fn high_key(self) -> Result<Option<IndexTuple<'a>>> {
        if self.opaque.is_rightmost() { Ok(None) } else { self.tuple(HIGH_KEY).map(Some) }
    }

    /// Of a deleted page, the transaction after whose end it may be recycled; `None` on other pages, and on pages
    /// deleted by PostgreSQL 13 and older.
    pub fn safe_xid(self) -> Result<Option<FullXid>> {
        let flags = self.opaque.flags;
        if flags.contains(PageFlags::DELETED) && flags.contains(PageFlags::HAS_FULLXID) {
            return Ok(Some(FullXid(Bytes::new("deleted B-tree page", self.page.contents()).u64(0)?)));
        }
        Ok(None)
    }
}

/// What a tuple is, as its own bits say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TupleKind {
    /// One row of a leaf page.
    Plain,
    /// Several rows of a leaf page with the same key.
    Posting,
    /// A high key or a downlink.
    Pivot,
}

/// An index tuple to be read.
#[derive(Clone, Copy)]
pub struct IndexTuple<'a> {
    /// Exactly as many bytes as `t_info` says, at least the header's.
    bytes: &'a [u8],
    info: u16,
}

impl<'a> IndexTuple<'a> {
    /// An item of a page as an index tuple; an error where its size does not fit the item's.
    #[inline]
    pub fn new(item: &'a [u8]) -> Result<Self> {
        // The line pointer's length is a multiple of 8 and may be longer than the tuple, never shorter.
        if let Some(&[.., low, high]) = item.first_chunk::<TUPLE_HEADER>() {
            let info = u16::from_le_bytes([low, high]);
            let size = usize::from(info & SIZE_MASK);
            if size >= TUPLE_HEADER
                && let Some(bytes) = item.get(..size)
            {
                return Ok(Self { bytes, info });
            }
        }
        Err(Self::bad_size(item))
    }

    #[cold]
    fn bad_size(item: &[u8]) -> Error {
        match Bytes::new("index tuple", item).u16(6) {
            Ok(info) => {
                let value = u64::from(info & SIZE_MASK);
                Error::InvalidField { what: "index tuple", field: "size", value }
            }
            Err(error) => error,
        }
    }

    /// The tuple's bytes, as its own size says.
    #[inline]
    pub const fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    fn raw(self) -> Bytes<'a> {
        Bytes::new("index tuple", self.bytes)
    }

    /// `t_tid`: what it means depends on [`IndexTuple::kind`].
    #[inline]
    pub fn t_tid(self) -> Tid {
        // The header is there: `new` saw to it.
        self.bytes.first_chunk().map_or(Tid::default(), |raw| Tid::from_bytes(*raw))
    }

    /// Plain, posting list or pivot.
    #[inline]
    pub fn kind(self) -> TupleKind {
        if self.info & ALTERNATIVE_TID == 0 {
            TupleKind::Plain
        } else if self.t_tid().offset.0 & IS_POSTING != 0 {
            TupleKind::Posting
        } else {
            TupleKind::Pivot
        }
    }

    /// Whether some attribute is NULL.
    #[inline]
    pub const fn has_nulls(self) -> bool {
        self.info & HAS_NULLS != 0
    }

    /// Whether some attribute's length is not fixed by its type.
    pub const fn has_varwidth(self) -> bool {
        self.info & HAS_VARWIDTH != 0
    }

    /// Of a tuple on an internal page, the child.
    pub fn downlink(self) -> BlockNumber {
        self.t_tid().block
    }

    /// Of a half-dead page's high key, the topmost page of the branch that is being deleted; `None` if it is the leaf.
    pub fn top_parent(self) -> Option<BlockNumber> {
        let block = self.t_tid().block;
        block.is_valid().then_some(block)
    }

    /// How many attributes the tuple has, of the index's `all`; fewer than all only in a pivot.
    #[inline]
    pub fn attribute_count(self, all: usize) -> usize {
        match self.kind() {
            TupleKind::Pivot => usize::from(self.t_tid().offset.0 & COUNT_MASK).min(all),
            TupleKind::Plain | TupleKind::Posting => all,
        }
    }

    /// The heap TID that breaks ties: a plain tuple's own, a posting list's first, a pivot's if it kept one.
    pub fn heap_tid(self) -> Result<Option<Tid>> {
        match self.kind() {
            TupleKind::Plain => Ok(Some(self.t_tid())),
            TupleKind::Posting => Ok(self.posting()?.iter().next()),
            TupleKind::Pivot if self.t_tid().offset.0 & PIVOT_HEAP_TID != 0 => {
                let at = self.bytes.len().saturating_sub(TID_SIZE).max(TUPLE_HEADER);
                Ok(Some(Tid::from_bytes(self.raw().array(at)?)))
            }
            TupleKind::Pivot => Ok(None),
        }
    }

    /// A posting list's TIDs; an error on another kind of tuple, or where the list does not lie in the tuple.
    #[inline]
    pub fn posting(self) -> Result<PostingList<'a>> {
        let tid = self.t_tid();
        let count = usize::from(tid.offset.0 & COUNT_MASK);
        let start = tid.block.0 as usize;
        let bad = |field, value| Err(Error::InvalidField { what: "posting list", field, value });
        if self.kind() != TupleKind::Posting {
            return bad("t_info", u64::from(self.info));
        }
        if count == 0 {
            return bad("number of TIDs", 0);
        }
        if !(TUPLE_HEADER..=BLCKSZ).contains(&start) {
            return bad("offset", start as u64);
        }
        Ok(PostingList(self.raw().slice(start, count * TID_SIZE)?))
    }

    /// The attributes as they lie there: the null bitmap (a set bit means not null), if any, and the bytes that
    /// attributes are aligned within.
    #[inline]
    pub fn attributes(self) -> Result<(Option<&'a [u8]>, &'a [u8])> {
        let whole = match self.kind() {
            TupleKind::Posting => {
                let end = (self.t_tid().block.0 as usize).min(self.bytes.len());
                self.bytes.get(..end).unwrap_or(&[])
            }
            TupleKind::Plain | TupleKind::Pivot => self.bytes,
        };
        if !self.has_nulls() {
            return Ok((None, whole.get(TUPLE_HEADER..).unwrap_or(&[])));
        }
        let nulls = self.raw().slice(TUPLE_HEADER, NULLS_SIZE)?;
        Ok((Some(nulls), whole.get(TUPLE_HEADER_WITH_NULLS..).unwrap_or(&[])))
    }
}

/// The TIDs of a posting list: at least one, of rows with the same key.
#[derive(Clone, Copy, Debug)]
pub struct PostingList<'a>(&'a [u8]);

impl<'a> PostingList<'a> {
    /// How many; never 0.
    #[allow(clippy::len_without_is_empty, reason = "a posting list is never empty")]
    pub const fn len(self) -> usize {
        self.0.len() / TID_SIZE
    }

    /// In stored order: ascending in an index that is not damaged.
    #[inline]
    pub fn iter(self) -> impl DoubleEndedIterator<Item = Tid> + ExactSizeIterator + 'a {
        self.0.as_chunks().0.iter().map(|raw| Tid::from_bytes(*raw))
    }
}

#[cfg(test)]
#[path = "btree_tests.rs"]
mod tests;
