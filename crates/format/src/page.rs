//! The 8 KiB page that every relation fork is made of.
//!
//! ```text
//!   0            8          10       12       14       16        18             20            24
//!   ┌────────────┬──────────┬────────┬────────┬────────┬─────────┬──────────────┬─────────────┐
//!   │ pd_lsn     │ checksum │ flags  │ lower  │ upper  │ special │ size|version │ prune_xid   │
//!   │ hi32 lo32  │ u16      │ u16    │ u16    │ u16    │ u16     │ 0x2004       │ u32         │
//!   ├────────────┴──────────┴────────┴────────┴────────┴─────────┴──────────────┴─────────────┤ 24
//!   │ line pointer 1 │ line pointer 2 │ …                                                     │
//!   │                                        pd_lower ▸ (free space) ◂ pd_upper               │
//!   │                                                … │ item 3 │ item 2 │ item 1 │           │
//!   ├─────────────────────────────────────────────────────────────────────────────────────────┤ ◂ pd_special
//!   │ special area: empty in heaps, the access method's opaque data in indexes                │
//!   └─────────────────────────────────────────────────────────────────────────────────────────┘ 8192
//!
//!   line pointer (4 bytes):   bits 0–14 offset of the item in the page
//!                             bits 15–16 0 unused, 1 normal, 2 redirect (offset = a line pointer's number), 3 dead
//!                             bits 17–31 length of the item
//! ```
//!
//! A page never written is all zeros ("new"): valid, and without items. Numbers are little-endian; directories of other
//! byte orders are refused at the control file ([`crate::control`]).

use crate::error::{Error, Result};
use crate::ids::{Lsn, OffsetNumber, Xid};

/// The size of a page in bytes. PostgreSQL can be built with others; those directories are refused.
pub const BLCKSZ: usize = 8192;
/// The size of the page header, and where the line pointers start.
pub const PAGE_HEADER_SIZE: usize = 24;
/// The size of one line pointer in bytes.
pub const LINE_POINTER_SIZE: usize = 4;
/// The version of the page layout that PostgreSQL 8.3 introduced and 18 still writes.
pub const PAGE_LAYOUT_VERSION: u16 = 4;
/// The alignment of items and of the special area, in bytes.
pub const MAXALIGN: usize = 8;

const LSN: usize = 0;
const CHECKSUM: usize = 8;
const FLAGS: usize = 10;
const LOWER: usize = 12;
const UPPER: usize = 14;
const SPECIAL: usize = 16;
const SIZE_VERSION: usize = 18;
const PRUNE_XID: usize = 20;

/// Rounds up to the next multiple of 8.
pub const fn max_align(len: usize) -> usize {
    (len + (MAXALIGN - 1)) & !(MAXALIGN - 1)
}

/// The bits of `pd_flags`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageFlags(pub u16);

impl PageFlags {
    /// There may be unused line pointers before `pd_lower`. A hint.
    pub const HAS_FREE_LINES: u16 = 0x0001;
    /// An update did not find room here. A hint.
    pub const PAGE_FULL: u16 = 0x0002;
    /// Every tuple on the page is visible to everyone.
    pub const ALL_VISIBLE: u16 = 0x0004;
    const VALID: u16 = 0x0007;

    /// Whether every tuple on the page is visible to everyone.
    pub const fn all_visible(self) -> bool {
        self.0 & Self::ALL_VISIBLE != 0
    }

    /// Whether there may be unused line pointers.
    pub const fn has_free_lines(self) -> bool {
        self.0 & Self::HAS_FREE_LINES != 0
    }

    /// Whether an update failed to find room.
    pub const fn page_full(self) -> bool {
        self.0 & Self::PAGE_FULL != 0
    }
}

/// What a line pointer says about its item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemState {
    /// Free for reuse; no item.
    Unused,
    /// In use, with an item.
    Normal,
    /// A HOT redirect: the offset is the number of the line pointer to follow.
    Redirect,
    /// Dead; in a heap without an item, in an index usually still with one.
    Dead,
}

/// A line pointer, as stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ItemId(pub u32);

impl ItemId {
    /// A line pointer from its parts; offset and length have 15 bits.
    pub const fn new(offset: u16, state: ItemState, len: u16) -> Self {
        let state = match state {
            ItemState::Unused => 0u32,
            ItemState::Normal => 1,
            ItemState::Redirect => 2,
            ItemState::Dead => 3,
        };
        Self((offset & 0x7FFF) as u32 | state << 15 | (len as u32) << 17)
    }

    /// Where the item starts in the page, in bytes; for a redirect, see [`ItemId::redirect`].
    pub const fn offset(self) -> u16 {
        (self.0 & 0x7FFF) as u16
    }

    /// The two bits of state.
    pub const fn state(self) -> ItemState {
        match self.0 >> 15 & 3 {
            0 => ItemState::Unused,
            1 => ItemState::Normal,
            2 => ItemState::Redirect,
            _ => ItemState::Dead,
        }
    }

    /// The item's length in bytes; 0 where there is none.
    pub const fn len(self) -> u16 {
        (self.0 >> 17) as u16
    }

    /// Whether the length is 0.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Whether the line pointer is in use with an item (`LP_NORMAL`).
    pub const fn is_normal(self) -> bool {
        matches!(self.state(), ItemState::Normal)
    }

    /// Whether the line pointer is dead (`LP_DEAD`).
    pub const fn is_dead(self) -> bool {
        matches!(self.state(), ItemState::Dead)
    }

    /// Whether the line pointer is free (`LP_UNUSED`).
    pub const fn is_unused(self) -> bool {
        matches!(self.state(), ItemState::Unused)
    }

    /// Whether bytes on the page belong to it.
    pub const fn has_storage(self) -> bool {
        !self.is_empty()
    }

    /// The line pointer that a redirect leads to.
    pub const fn redirect(self) -> Option<OffsetNumber> {
        match self.state() {
            ItemState::Redirect => Some(OffsetNumber(self.offset())),
            _ => None,
        }
    }
}

/// A page in memory of its own, aligned so that it can be read with direct I/O.
#[derive(Clone)]
#[repr(C, align(4096))]
pub struct Page([u8; BLCKSZ]);

impl Page {
    /// A new (all zero) page.
    pub const fn zeroed() -> Self {
        Self([0; BLCKSZ])
    }

    /// The bytes.
    pub const fn bytes(&self) -> &[u8; BLCKSZ] {
        &self.0
    }

    /// The bytes, to be written.
    pub const fn bytes_mut(&mut self) -> &mut [u8; BLCKSZ] {
        &mut self.0
    }

    /// The page, to be read.
    pub const fn view(&self) -> PageRef<'_> {
        PageRef(&self.0)
    }
}

impl From<[u8; BLCKSZ]> for Page {
    fn from(bytes: [u8; BLCKSZ]) -> Self {
        Self(bytes)
    }
}

/// A page to be read. Nothing about the bytes is assumed; call [`PageRef::verify`] once after a read, as PostgreSQL
/// does, then every accessor checks what it touches.
#[derive(Clone, Copy)]
pub struct PageRef<'a>(&'a [u8; BLCKSZ]);

impl<'a> PageRef<'a> {
    /// A page over bytes.
    pub const fn new(bytes: &'a [u8; BLCKSZ]) -> Self {
        Self(bytes)
    }

    /// A page over a slice, which must have exactly [`BLCKSZ`] bytes.
    pub fn from_slice(bytes: &'a [u8]) -> Result<Self> {
        match bytes.try_into() {
            Ok(array) => Ok(Self(array)),
            Err(_) => Err(Error::Truncated { what: "page", offset: 0, needed: BLCKSZ, available: bytes.len() }),
        }
    }

    /// The bytes.
    pub const fn bytes(self) -> &'a [u8; BLCKSZ] {
        self.0
    }

    // `at` is a constant below BLCKSZ in every call: the bounds checks vanish.
    #[allow(clippy::indexing_slicing, reason = "constant offsets into an array")]
    const fn u16_at(self, at: usize) -> u16 {
        u16::from_le_bytes([self.0[at], self.0[at + 1]])
    }

    #[allow(clippy::indexing_slicing, reason = "constant offsets into an array")]
    const fn u32_at(self, at: usize) -> u32 {
        u32::from_le_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]])
    }

    /// The log position after the last change to the page: two halves, the high one first.
    pub const fn lsn(self) -> Lsn {
        Lsn((self.u32_at(LSN) as u64) << 32 | self.u32_at(LSN + 4) as u64)
    }

    /// The stored checksum; meaningless unless the cluster has checksums on.
    pub const fn checksum(self) -> u16 {
        self.u16_at(CHECKSUM)
    }

    /// The page's flags.
    pub const fn flags(self) -> PageFlags {
        PageFlags(self.u16_at(FLAGS))
    }

    /// The end of the line pointers.
    pub const fn lower(self) -> u16 {
        self.u16_at(LOWER)
    }

    /// The start of the items.
    pub const fn upper(self) -> u16 {
        self.u16_at(UPPER)
    }

    /// The start of the special area.
    pub const fn special_offset(self) -> u16 {
        self.u16_at(SPECIAL)
    }

    /// The size of the page according to its header; [`BLCKSZ`] on every page that verifies.
    pub const fn page_size(self) -> u16 {
        self.u16_at(SIZE_VERSION) & 0xFF00
    }

    /// The version of the page's layout; [`PAGE_LAYOUT_VERSION`] on every page that verifies.
    pub const fn layout_version(self) -> u16 {
        self.u16_at(SIZE_VERSION) & 0x00FF
    }

    /// The oldest transaction that may have left something to prune; 0 if none. A hint.
    pub const fn prune_xid(self) -> Xid {
        Xid(self.u32_at(PRUNE_XID))
    }

    /// Whether the page was never initialised (`PageIsNew`). Such a page has no items.
    pub const fn is_new(self) -> bool {
        self.upper() == 0
    }

    /// What `PageIsVerified` demands of a page without looking at its checksum: either all zeros, or a header whose
    /// fields fit each other. Also demands what PostgreSQL checks elsewhere: this page size and layout version, and
    /// line pointers that start behind the header.
    pub fn verify(self) -> Result<()> {
        let bad = |field, value: u16| Err(Error::InvalidPageHeader { field, value: u32::from(value) });
        if self.is_new() {
            return match self.0.iter().position(|&byte| byte != 0) {
                None => Ok(()),
                Some(at) => Err(Error::InvalidPageHeader {
                    field: "pd_upper is 0, but the page is not all zeros; first other byte's offset",
                    value: at as u32,
                }),
            };
        }
        let (lower, upper, special) = (self.lower(), self.upper(), self.special_offset());
        if self.flags().0 & !PageFlags::VALID != 0 {
            return bad("pd_flags", self.flags().0);
        }
        if usize::from(lower) < PAGE_HEADER_SIZE || lower > upper {
            return bad("pd_lower", lower);
        }
        if upper > special {
            return bad("pd_upper", upper);
        }
        if usize::from(special) > BLCKSZ || max_align(usize::from(special)) != usize::from(special) {
            return bad("pd_special", special);
        }
        if usize::from(self.page_size()) != BLCKSZ || self.layout_version() != PAGE_LAYOUT_VERSION {
            return bad("pd_pagesize_version", self.u16_at(SIZE_VERSION));
        }
        Ok(())
    }

    fn line_pointer_bytes(self) -> &'a [u8] {
        // A page that is not new but has pd_lower beyond its end fails `verify`; here it just has no line pointers.
        self.0.get(PAGE_HEADER_SIZE..usize::from(self.lower())).unwrap_or(&[])
    }

    /// The last line pointer's number; 0 if there are none.
    pub fn max_offset(self) -> OffsetNumber {
        OffsetNumber((self.line_pointer_bytes().len() / LINE_POINTER_SIZE) as u16)
    }

    /// The line pointer `offset`, from 1 to [`PageRef::max_offset`].
    pub fn item_id(self, offset: OffsetNumber) -> Result<ItemId> {
        let pointers = self.line_pointer_bytes();
        let at = usize::from(offset.0).wrapping_sub(1).wrapping_mul(LINE_POINTER_SIZE);
        match pointers.get(at..).and_then(|rest| rest.first_chunk()) {
            Some(raw) => Ok(ItemId(u32::from_le_bytes(*raw))),
            None => Err(Error::NoSuchLinePointer { offset: offset.0, max: self.max_offset().0 }),
        }
    }

    /// The line pointers as stored, [`ItemId`]'s words: number 1 comes first.
    pub fn line_pointers(self) -> &'a [[u8; LINE_POINTER_SIZE]] {
        self.line_pointer_bytes().as_chunks::<LINE_POINTER_SIZE>().0
    }

    /// Every line pointer with its number, in order.
    pub fn item_ids(self) -> impl DoubleEndedIterator<Item = (OffsetNumber, ItemId)> + ExactSizeIterator + 'a {
        let pointers = self.line_pointers();
        pointers.iter().enumerate().map(|(i, raw)| (OffsetNumber(i as u16 + 1), ItemId(u32::from_le_bytes(*raw))))
    }

    /// The item that a line pointer of this page points to; an error where there is none, or where it lies outside
    /// of the page's items. `offset` is for the message only.
    pub fn item_at(self, offset: OffsetNumber, id: ItemId) -> Result<&'a [u8]> {
        let start = usize::from(id.offset());
        let end = start + usize::from(id.len());
        let has_item = !matches!(id.state(), ItemState::Unused | ItemState::Redirect) && id.has_storage();
        if has_item
            && start >= usize::from(self.upper())
            && end <= usize::from(self.special_offset())
            && let Some(item) = self.0.get(start..end)
        {
            return Ok(item);
        }
        Err(Error::InvalidLinePointer { offset: offset.0, item_offset: id.offset(), item_len: id.len() })
    }

    /// The item of the line pointer `offset`; an error where it has none. Items start at multiples of 8.
    pub fn item(self, offset: OffsetNumber) -> Result<&'a [u8]> {
        self.item_at(offset, self.item_id(offset)?)
    }

    /// The special area: empty in heaps, the access method's own data in indexes.
    pub fn special(self) -> &'a [u8] {
        self.0.get(usize::from(self.special_offset())..).unwrap_or(&[])
    }

    /// The bytes between the line pointers and the items.
    pub fn free_space(self) -> usize {
        usize::from(self.upper()).saturating_sub(usize::from(self.lower()))
    }

    /// What follows the header, for pages that hold no items but one array (maps).
    #[allow(clippy::indexing_slicing, reason = "a constant offset into an array")]
    pub fn contents(self) -> &'a [u8] {
        &self.0[PAGE_HEADER_SIZE..]
    }
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
