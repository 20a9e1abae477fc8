//! The numbers that name things on disk, each its own type so that no two can be confused.
//!
//! All are plain wrappers: `BlockNumber(7).0` is the raw value, and `Display` prints it as PostgreSQL does.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($raw:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(pub $raw);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl From<$raw> for $name {
            fn from(raw: $raw) -> Self {
                Self(raw)
            }
        }
    };
}

id! {
    /// An object identifier: the row id of a catalog entry. 0 means none.
    Oid(u32)
}
id! {
    /// The number of a block within one relation fork, from 0.
    BlockNumber(u32)
}
id! {
    /// The number of a line pointer within a page, from 1. 0 means none.
    OffsetNumber(u16)
}
id! {
    /// A transaction id as stored in tuples: 32 bits, compared modulo 2^32 (see [`Xid::precedes`]).
    Xid(u32)
}
id! {
    /// A transaction id with its epoch in the upper half; never wraps.
    FullXid(u64)
}
id! {
    /// The id of a set of transactions that lock one tuple.
    MultiXactId(u32)
}
id! {
    /// The number of a command within its transaction.
    CommandId(u32)
}
id! {
    /// The number of a column within its relation, from 1; negative for system columns, 0 for the whole row.
    AttrNumber(i16)
}
id! {
    /// The number that names a relation's files; unlike its OID it changes on rewrite.
    RelFileNumber(u32)
}

impl Oid {
    /// No object.
    pub const INVALID: Oid = Oid(0);

    /// Whether this names an object at all.
    pub const fn is_valid(self) -> bool {
        self.0 != 0
    }
}

impl BlockNumber {
    /// The value that PostgreSQL uses for "no block" (`InvalidBlockNumber`).
    pub const INVALID: BlockNumber = BlockNumber(u32::MAX);

    /// Whether this names a block at all.
    pub const fn is_valid(self) -> bool {
        self.0 != u32::MAX
    }

    /// The next block, or [`BlockNumber::INVALID`] at the end of the number range.
    pub const fn next(self) -> BlockNumber {
        BlockNumber(self.0.saturating_add(1))
    }
}

impl OffsetNumber {
    /// The first line pointer of a page.
    pub const FIRST: OffsetNumber = OffsetNumber(1);

    /// Whether this names a line pointer at all.
    pub const fn is_valid(self) -> bool {
        self.0 != 0
    }
}

impl Xid {
    /// No transaction.
    pub const INVALID: Xid = Xid(0);
    /// The transaction of bootstrap; always committed.
    pub const BOOTSTRAP: Xid = Xid(1);
    /// The marker of a frozen row in clusters that went through very old versions; always committed.
    pub const FROZEN: Xid = Xid(2);
    /// The first id that a real transaction may have.
    pub const FIRST_NORMAL: Xid = Xid(3);

    /// Whether this belongs to a real transaction.
    pub const fn is_normal(self) -> bool {
        self.0 >= 3
    }

    /// Whether this is any id but 0.
    pub const fn is_valid(self) -> bool {
        self.0 != 0
    }

    /// Whether `self` is logically older than `other`: modulo 2^32 for normal ids, plain order where one is special.
    pub const fn precedes(self, other: Xid) -> bool {
        if self.is_normal() && other.is_normal() { (self.0.wrapping_sub(other.0) as i32) < 0 } else { self.0 < other.0 }
    }

    /// Whether `self` is logically older than `other`, or the same.
    pub const fn precedes_or_equals(self, other: Xid) -> bool {
        self.0 == other.0 || self.precedes(other)
    }
}

impl FullXid {
    /// The 32 bits that tuples store.
    pub const fn xid(self) -> Xid {
        Xid(self.0 as u32)
    }

    /// How often the 32-bit counter has wrapped.
    pub const fn epoch(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The full id of `xid`, given that it is at most 2^31 away from `self`; `None` where that would be before the
    /// first transaction.
    pub const fn full_of(self, xid: Xid) -> Option<FullXid> {
        let distance = xid.0.wrapping_sub(self.0 as u32) as i32;
        match self.0.checked_add_signed(distance as i64) {
            Some(full) => Some(FullXid(full)),
            None => None,
        }
    }
}

/// The address of a byte in the write-ahead log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Lsn(pub u64);

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 as u32)
    }
}

/// Where a tuple version lies: block and line pointer. Orders by block, then offset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tid {
    /// The block within the relation's main fork.
    pub block: BlockNumber,
    /// The line pointer within the block.
    pub offset: OffsetNumber,
}

impl Tid {
    /// A TID from its two parts.
    pub const fn new(block: BlockNumber, offset: OffsetNumber) -> Self {
        Self { block, offset }
    }

    /// The six bytes of `ItemPointerData`: block high half, block low half, offset, each little-endian.
    pub const fn to_bytes(self) -> [u8; 6] {
        let hi = ((self.block.0 >> 16) as u16).to_le_bytes();
        let lo = (self.block.0 as u16).to_le_bytes();
        let off = self.offset.0.to_le_bytes();
        [hi[0], hi[1], lo[0], lo[1], off[0], off[1]]
    }

    /// The inverse of [`Tid::to_bytes`].
    pub const fn from_bytes(b: [u8; 6]) -> Self {
        let hi = u16::from_le_bytes([b[0], b[1]]) as u32;
        let lo = u16::from_le_bytes([b[2], b[3]]) as u32;
        Self { block: BlockNumber(hi << 16 | lo), offset: OffsetNumber(u16::from_le_bytes([b[4], b[5]])) }
    }
}

impl fmt::Display for Tid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({},{})", self.block, self.offset)
    }
}

/// The parts of a relation that have files of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fork {
    /// The pages themselves.
    Main,
    /// The free space map, `_fsm`.
    FreeSpaceMap,
    /// The visibility map, `_vm`.
    VisibilityMap,
    /// What an unlogged relation is reset to, `_init`.
    Init,
}

impl Fork {
    /// What follows the file number in the file's name.
    pub const fn suffix(self) -> &'static str {
        match self {
            Fork::Main => "",
            Fork::FreeSpaceMap => "_fsm",
            Fork::VisibilityMap => "_vm",
            Fork::Init => "_init",
        }
    }
}

/// What names a relation's files: tablespace, database (0 for shared relations) and file number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelFileLocator {
    /// The tablespace's OID: 1663 `pg_default`, 1664 `pg_global`, or one in `pg_tblspc`.
    pub tablespace: Oid,
    /// The database's OID, 0 in `pg_global`.
    pub database: Oid,
    /// The file number.
    pub number: RelFileNumber,
}

/// `pg_default`.
pub const DEFAULT_TABLESPACE: Oid = Oid(1663);
/// `pg_global`.
pub const GLOBAL_TABLESPACE: Oid = Oid(1664);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xids_compare_modulo_2_to_the_32() {
        assert!(Xid(10).precedes(Xid(11)));
        assert!(Xid(u32::MAX).precedes(Xid(3)));
        assert!(!Xid(3).precedes(Xid(u32::MAX)));
        assert!(Xid::FROZEN.precedes(Xid(u32::MAX)));
    }

    #[test]
    fn full_xid_of_a_neighbour() {
        let now = FullXid((5 << 32) + 100);
        assert_eq!(now.full_of(Xid(90)), Some(FullXid((5 << 32) + 90)));
        assert_eq!(now.full_of(Xid(u32::MAX)), Some(FullXid(4 << 32 | 0xFFFF_FFFF)));
        assert_eq!(FullXid(100).full_of(Xid(u32::MAX)), None);
    }

    #[test]
    fn tid_bytes_round_trip() {
        let tid = Tid::new(BlockNumber(0x0001_0203), OffsetNumber(5));
        assert_eq!(tid.to_bytes(), [1, 0, 3, 2, 5, 0]);
        assert_eq!(Tid::from_bytes(tid.to_bytes()), tid);
    }
}
