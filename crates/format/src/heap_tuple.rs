//! The tuples of heaps, and the composite values that share their form.
//!
//! ```text
//!   0        4        8          12           18            20           22      23             t_hoff
//!   ┌────────┬────────┬──────────┬────────────┬─────────────┬────────────┬───────┬──────────────┬───────────┐
//!   │ t_xmin │ t_xmax │ t_cid    │ t_ctid     │ t_infomask2 │ t_infomask │ t_hoff│ null bitmap, │ attribute │
//!   │ u32    │ u32    │ u32      │ 6 bytes    │ u16         │ u16        │ u8    │ then padding │ values    │
//!   └────────┴────────┴──────────┴────────────┴─────────────┴────────────┴───────┴──────────────┴───────────┘
//!
//!   null bitmap: only with HEAP_HASNULL; bit 0 of byte 0 is attribute 1; a set bit means *not* null
//!   t_hoff: a multiple of 8; values are aligned counting from there (see crate::attr)
//!
//!   t_infomask2   0–10 number of attributes   13 KEYS_UPDATED   14 HOT_UPDATED   15 ONLY_TUPLE (HOT)
//!   t_infomask    0 HASNULL  1 HASVARWIDTH  2 HASEXTERNAL  3 HASOID_OLD  4 XMAX_KEYSHR_LOCK  5 COMBOCID
//!                 6 XMAX_EXCL_LOCK  7 XMAX_LOCK_ONLY  8 XMIN_COMMITTED  9 XMIN_INVALID  10 XMAX_COMMITTED
//!                 11 XMAX_INVALID  12 XMAX_IS_MULTI  13 UPDATED  14 MOVED_OFF  15 MOVED_IN
//!
//!   XMIN_COMMITTED and XMIN_INVALID together mean frozen: visible to everyone, whatever t_xmin says.
//! ```
//!
//! A composite value is the same structure with its length word, typmod and type OID in place of `t_xmin`, `t_xmax` and
//! `t_cid`.
//!
//! Refused by name: `HASOID_OLD` (tables WITH OIDS, before 12) and `MOVED_OFF`/`MOVED_IN` (VACUUM FULL before 9.0).

use crate::attr::TupleData;
use crate::error::{Error, Result};
use crate::ids::{CommandId, MultiXactId, Oid, Tid, Xid};

/// The size of the header before the null bitmap.
pub const HEAP_TUPLE_HEADER_SIZE: usize = 23;
/// The most columns that a table can have.
pub const MAX_HEAP_ATTRIBUTES: u16 = 1600;
/// The most attributes that any tuple can have, composite values included.
pub const MAX_TUPLE_ATTRIBUTES: u16 = 1664;

const XMIN: usize = 0;
const XMAX: usize = 4;
const CID: usize = 8;
const CTID: usize = 12;
const INFOMASK2: usize = 18;
const INFOMASK: usize = 20;
const HOFF: usize = 22;

/// `t_infomask`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Infomask(pub u16);

#[allow(missing_docs, reason = "the drawing above names them")]
impl Infomask {
    pub const HASNULL: u16 = 0x0001;
    pub const HASVARWIDTH: u16 = 0x0002;
    pub const HASEXTERNAL: u16 = 0x0004;
    pub const HASOID_OLD: u16 = 0x0008;
    pub const XMAX_KEYSHR_LOCK: u16 = 0x0010;
    pub const COMBOCID: u16 = 0x0020;
    pub const XMAX_EXCL_LOCK: u16 = 0x0040;
    pub const XMAX_LOCK_ONLY: u16 = 0x0080;
    pub const XMAX_SHR_LOCK: u16 = Self::XMAX_EXCL_LOCK | Self::XMAX_KEYSHR_LOCK;
    pub const LOCK_MASK: u16 = Self::XMAX_SHR_LOCK;
    pub const XMIN_COMMITTED: u16 = 0x0100;
    pub const XMIN_INVALID: u16 = 0x0200;
    pub const XMIN_FROZEN: u16 = Self::XMIN_COMMITTED | Self::XMIN_INVALID;
    pub const XMAX_COMMITTED: u16 = 0x0400;
    pub const XMAX_INVALID: u16 = 0x0800;
    pub const XMAX_IS_MULTI: u16 = 0x1000;
    pub const UPDATED: u16 = 0x2000;
    pub const MOVED_OFF: u16 = 0x4000;
    pub const MOVED_IN: u16 = 0x8000;
    pub const MOVED: u16 = Self::MOVED_OFF | Self::MOVED_IN;
}

impl Infomask {
    const fn has(self, bit: u16) -> bool {
        self.0 & bit != 0
    }

    /// Whether there is a null bitmap.
    pub const fn has_null(self) -> bool {
        self.has(Self::HASNULL)
    }

    /// Whether some value is stored in the TOAST table.
    pub const fn has_external(self) -> bool {
        self.has(Self::HASEXTERNAL)
    }

    /// Whether the inserting transaction is frozen. Ask this first: a frozen tuple has both of the other bits.
    pub const fn xmin_frozen(self) -> bool {
        self.0 & Self::XMIN_FROZEN == Self::XMIN_FROZEN
    }

    /// Whether the inserting transaction is known to have committed (or is frozen).
    pub const fn xmin_committed(self) -> bool {
        self.has(Self::XMIN_COMMITTED)
    }

    /// Whether the inserting transaction is known to have aborted. Not so for a frozen tuple.
    pub const fn xmin_invalid(self) -> bool {
        self.0 & Self::XMIN_FROZEN == Self::XMIN_INVALID
    }

    /// Whether the deleting transaction is known to have committed.
    pub const fn xmax_committed(self) -> bool {
        self.has(Self::XMAX_COMMITTED)
    }

    /// Whether nobody deleted the tuple: there was no deleter, or it is known to have aborted.
    pub const fn xmax_invalid(self) -> bool {
        self.has(Self::XMAX_INVALID)
    }

    /// Whether `t_xmax` is a multixact.
    pub const fn xmax_is_multi(self) -> bool {
        self.has(Self::XMAX_IS_MULTI)
    }

    /// Whether `t_xmax` only locks the tuple (`HEAP_XMAX_IS_LOCKED_ONLY`): said by the bit, or, as before 9.3, by an
    /// exclusive lock without any other lock bit that is not a multixact.
    pub const fn xmax_is_locked_only(self) -> bool {
        self.has(Self::XMAX_LOCK_ONLY) || self.0 & (Self::XMAX_IS_MULTI | Self::LOCK_MASK) == Self::XMAX_EXCL_LOCK
    }

    /// Whether `t_xmax` is a multixact from before `pg_upgrade` from 9.2 or older (`HEAP_LOCKED_UPGRADED`): only
    /// lockers, and its members cannot be looked up any more.
    pub const fn locked_upgraded(self) -> bool {
        self.has(Self::XMAX_IS_MULTI) && self.has(Self::XMAX_LOCK_ONLY) && self.0 & Self::LOCK_MASK == 0
    }

    /// Whether `t_cid` is the number of a pair (cmin, cmax) known only to the transaction that wrote it.
    pub const fn is_combo_cid(self) -> bool {
        self.has(Self::COMBOCID)
    }

    /// Whether the tuple is the new version of an updated row.
    pub const fn updated(self) -> bool {
        self.has(Self::UPDATED)
    }
}

/// `t_infomask2`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Infomask2(pub u16);

#[allow(missing_docs, reason = "the drawing above names them")]
impl Infomask2 {
    pub const NATTS_MASK: u16 = 0x07FF;
    pub const KEYS_UPDATED: u16 = 0x2000;
    pub const HOT_UPDATED: u16 = 0x4000;
    pub const ONLY_TUPLE: u16 = 0x8000;
}

impl Infomask2 {
    /// The number of attributes stored; later columns of the table have their `attmissingval`, or are null.
    pub const fn natts(self) -> u16 {
        self.0 & Self::NATTS_MASK
    }

    /// Whether key columns changed in the update, or the row was deleted.
    pub const fn keys_updated(self) -> bool {
        self.0 & Self::KEYS_UPDATED != 0
    }

    /// Whether no index points to this tuple itself, only to the first of its HOT chain.
    pub const fn is_heap_only(self) -> bool {
        self.0 & Self::ONLY_TUPLE != 0
    }
}

/// A heap tuple to be read: header parsed, sizes checked, values not looked at.
#[derive(Clone, Copy)]
pub struct HeapTupleRef<'a> {
    header: &'a [u8; HEAP_TUPLE_HEADER_SIZE],
    bytes: &'a [u8],
}

impl<'a> HeapTupleRef<'a> {
    /// The tuple that a page's item is.
    pub fn parse(item: &'a [u8]) -> Result<Self> {
        const WHAT: &str = "heap tuple";
        let Some(header) = item.first_chunk::<HEAP_TUPLE_HEADER_SIZE>() else {
            return Err(Error::Truncated {
                what: WHAT,
                offset: 0,
                needed: HEAP_TUPLE_HEADER_SIZE,
                available: item.len(),
            });
        };
        let tuple = Self { header, bytes: item };
        if tuple.infomask().0 & (Infomask::HASOID_OLD | Infomask::MOVED) != 0 {
            return Err(refused(tuple.infomask()));
        }
        check_header(WHAT, tuple.infomask(), tuple.infomask2(), header[HOFF], item.len())?;
        Ok(tuple)
    }

    const fn u16_at(self, at: usize) -> u16 {
        u16::from_le_bytes([self.byte(at), self.byte(at + 1)])
    }

    const fn u32_at(self, at: usize) -> u32 {
        u32::from_le_bytes([self.byte(at), self.byte(at + 1), self.byte(at + 2), self.byte(at + 3)])
    }

    #[allow(clippy::indexing_slicing, reason = "constant offsets into an array")]
    const fn byte(self, at: usize) -> u8 {
        self.header[at]
    }

    /// `t_xmin` as stored; the `xmin` system column.
    pub const fn raw_xmin(self) -> Xid {
        Xid(self.u32_at(XMIN))
    }

    /// The inserting transaction, [`Xid::FROZEN`] if frozen.
    pub const fn xmin(self) -> Xid {
        if self.infomask().xmin_frozen() { Xid::FROZEN } else { self.raw_xmin() }
    }

    /// `t_xmax` as stored; the `xmax` system column. A transaction only if it is no multixact.
    pub const fn raw_xmax(self) -> Xid {
        Xid(self.u32_at(XMAX))
    }

    /// `t_xmax` as the multixact that it is if [`Infomask::xmax_is_multi`].
    pub const fn xmax_multi(self) -> MultiXactId {
        MultiXactId(self.u32_at(XMAX))
    }

    /// `t_cid` as stored; both the `cmin` and the `cmax` system column.
    pub const fn raw_cid(self) -> CommandId {
        CommandId(self.u32_at(CID))
    }

    /// `t_ctid`: this tuple, or its next version.
    pub const fn ctid(self) -> Tid {
        Tid::from_bytes([
            self.byte(CTID),
            self.byte(CTID + 1),
            self.byte(CTID + 2),
            self.byte(CTID + 3),
            self.byte(CTID + 4),
            self.byte(CTID + 5),
        ])
    }

    /// `t_infomask`.
    pub const fn infomask(self) -> Infomask {
        Infomask(self.u16_at(INFOMASK))
    }

    /// `t_infomask2`.
    pub const fn infomask2(self) -> Infomask2 {
        Infomask2(self.u16_at(INFOMASK2))
    }

    /// The number of attributes stored.
    pub const fn natts(self) -> u16 {
        self.infomask2().natts()
    }

    /// Where the values start.
    pub const fn hoff(self) -> u8 {
        self.byte(HOFF)
    }

    /// Whether the HOT chain goes on at `t_ctid`: the update was on this page, and neither end of it aborted.
    pub const fn is_hot_updated(self) -> bool {
        self.infomask2().0 & Infomask2::HOT_UPDATED != 0
            && !self.infomask().xmax_invalid()
            && !self.infomask().xmin_invalid()
    }

    /// Whether no index points to this tuple itself.
    pub const fn is_heap_only(self) -> bool {
        self.infomask2().is_heap_only()
    }

    /// The whole tuple as stored.
    pub const fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// The null bitmap, if there is one.
    pub fn null_bitmap(self) -> Option<&'a [u8]> {
        if self.infomask().has_null() { Some(bitmap(self.bytes, HEAP_TUPLE_HEADER_SIZE, self.natts())) } else { None }
    }

    /// The values, to be walked with a [`crate::attr::TupleLayout`].
    pub fn data(self) -> TupleData<'a> {
        let values = self.bytes.get(usize::from(self.hoff())..).unwrap_or(&[]);
        TupleData::new(values, self.null_bitmap(), self.natts())
    }
}

#[cold]
fn refused(infomask: Infomask) -> Error {
    if infomask.0 & Infomask::HASOID_OLD != 0 {
        Error::Unsupported("a tuple with an OID column of its own, from PostgreSQL 11 or older,")
    } else {
        Error::Unsupported("a tuple moved by VACUUM FULL of PostgreSQL 8.4 or older")
    }
}

fn bitmap(bytes: &[u8], start: usize, natts: u16) -> &[u8] {
    bytes.get(start..start + usize::from(natts).div_ceil(8)).unwrap_or(&[])
}

/// That the header's own sizes fit each other and the tuple.
fn check_header(what: &'static str, mask: Infomask, mask2: Infomask2, hoff: u8, len: usize) -> Result<()> {
    let natts = mask2.natts();
    if natts > MAX_TUPLE_ATTRIBUTES {
        return Err(Error::InvalidField { what, field: "number of attributes", value: u64::from(natts) });
    }
    let bitmap = if mask.has_null() { usize::from(natts).div_ceil(8) } else { 0 };
    let hoff = usize::from(hoff);
    if hoff < HEAP_TUPLE_HEADER_SIZE + bitmap || hoff % 8 != 0 || hoff > len {
        return Err(Error::InvalidField { what, field: "t_hoff", value: hoff as u64 });
    }
    Ok(())
}

/// The payload of a composite value: what follows its length word.
///
/// ```text
///   (-4)      0         4         8        14            16           18      19            t_hoff - 4
///   ┌─────────┬─────────┬─────────┬────────┬─────────────┬────────────┬───────┬─────────────┬────────
///   │ length  │ typmod  │ type OID│ unused │ t_infomask2 │ t_infomask │ t_hoff│ null bitmap │ values
///   └─────────┴─────────┴─────────┴────────┴─────────────┴────────────┴───────┴─────────────┴────────
/// ```
#[derive(Clone, Copy)]
pub struct CompositeRef<'a> {
    /// The row type; `record` (2249) is never stored.
    pub type_oid: Oid,
    /// The typmod; −1 for named types.
    pub typmod: i32,
    /// The values, to be walked with a [`crate::attr::TupleLayout`].
    pub data: TupleData<'a>,
}

impl<'a> CompositeRef<'a> {
    /// The composite value whose payload (decompressed, without length word) is given.
    pub fn parse(payload: &'a [u8]) -> Result<Self> {
        const WHAT: &str = "composite value";
        const LENGTH_WORD: usize = 4;
        let bytes = crate::bytes::Bytes::new(WHAT, payload);
        let mask = Infomask(bytes.u16(INFOMASK - LENGTH_WORD)?);
        let mask2 = Infomask2(bytes.u16(INFOMASK2 - LENGTH_WORD)?);
        let hoff = bytes.u8(HOFF - LENGTH_WORD)?;
        check_header(WHAT, mask, mask2, hoff, payload.len() + LENGTH_WORD)?;
        let natts = mask2.natts();
        let nulls = mask.has_null().then(|| bitmap(payload, HEAP_TUPLE_HEADER_SIZE - LENGTH_WORD, natts));
        let values = payload.get(usize::from(hoff) - LENGTH_WORD..).unwrap_or(&[]);
        Ok(Self {
            typmod: bytes.i32(XMAX - LENGTH_WORD)?,
            type_oid: Oid(bytes.u32(CID - LENGTH_WORD)?),
            data: TupleData::new(values, nulls, natts),
        })
    }
}

#[cfg(test)]
#[path = "heap_tuple_tests.rs"]
mod tests;
