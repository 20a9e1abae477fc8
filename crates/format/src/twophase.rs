//! The state of a prepared transaction: a file in `pg_twophase`.
//!
//! ```text
//!    0 magic 0x57F94534       4 total_len            8 xid              12 database OID
//!   16 prepared_at i64       24 owner OID           28 subxids         32 commit files      36 abort files
//!   40 commit statistics     44 abort statistics    48 invalidations   52 initfileinval     54 gid length u16
//!   56 origin LSN            64 origin timestamp                                            (counts are i32)
//!   72 gid with its NUL │ subxids │ files dropped at commit, at abort (12 bytes each) │ statistics │ invalidations (16)
//!   …  records: len u32, manager u8, pad, info u16, then len bytes     manager 0 ends; 1 is a lock
//!   -4 CRC-32C of all before it
//!
//!   every piece is padded to a multiple of 8
//!
//!   lock record (20 bytes): field1 u32, field2 u32, field3 u32, field4 u16, type u8, method u8, mode i32
//!                           type 0 is a relation: field1 its database, field2 its OID
//! ```
//!
//! The file's name is the transaction's id in hexadecimal, from 17 on with its epoch.

use crate::bytes::Bytes;
use crate::error::{Error, Result};
use crate::ids::{Lsn, Oid, RelFileLocator, RelFileNumber, Xid};
use crate::page::max_align;
use crate::version::Version;

const WHAT: &str = "two-phase state file";
const MAGIC: u32 = 0x57F94534;
const HEADER_SIZE: usize = 72;
const INVALIDATION_SIZE: usize = 16;
const RECORD_HEADER_SIZE: usize = 8;
const LOCK_RECORD_SIZE: usize = 20;
const END_RECORD: u8 = 0;
const LOCK_RECORD: u8 = 1;

/// The modes of heavyweight locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "PostgreSQL's names")]
pub enum LockMode {
    AccessShare = 1,
    RowShare,
    RowExclusive,
    ShareUpdateExclusive,
    Share,
    ShareRowExclusive,
    Exclusive,
    AccessExclusive,
}

impl LockMode {
    fn from_number(number: u32) -> Result<Self> {
        Ok(match number {
            1 => Self::AccessShare,
            2 => Self::RowShare,
            3 => Self::RowExclusive,
            4 => Self::ShareUpdateExclusive,
            5 => Self::Share,
            6 => Self::ShareRowExclusive,
            7 => Self::Exclusive,
            8 => Self::AccessExclusive,
            _ => return Err(Error::InvalidField { what: WHAT, field: "lock mode", value: u64::from(number) }),
        })
    }

    /// What `pg_locks.mode` prints.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AccessShare => "AccessShareLock",
            Self::RowShare => "RowShareLock",
            Self::RowExclusive => "RowExclusiveLock",
            Self::ShareUpdateExclusive => "ShareUpdateExclusiveLock",
            Self::Share => "ShareLock",
            Self::ShareRowExclusive => "ShareRowExclusiveLock",
            Self::Exclusive => "ExclusiveLock",
            Self::AccessExclusive => "AccessExclusiveLock",
        }
    }
}

/// What a lock is on (`LOCKTAG`), as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockTag {
    /// Depends on the type; a relation's database.
    pub field1: u32,
    /// Depends on the type; a relation's OID.
    pub field2: u32,
    /// Depends on the type.
    pub field3: u32,
    /// Depends on the type.
    pub field4: u16,
    /// 0 relation, 1 extension of one, 3 page, 4 tuple, 5 transaction, 8 object, 10 advisory, …
    pub kind: u8,
    /// 1 for ordinary locks, 2 for advisory ones.
    pub method: u8,
}

/// A lock that a prepared transaction holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldLock {
    /// On what.
    pub tag: LockTag,
    /// How strong.
    pub mode: LockMode,
}

impl HeldLock {
    /// Database (0 for shared relations) and relation, if the lock is on a whole relation.
    pub const fn relation(&self) -> Option<(Oid, Oid)> {
        if self.tag.kind == 0 && self.tag.method == 1 {
            Some((Oid(self.tag.field1), Oid(self.tag.field2)))
        } else {
            None
        }
    }
}

/// A prepared transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedTransaction {
    /// Its id.
    pub xid: Xid,
    /// The database that it ran in.
    pub database: Oid,
    /// When it was prepared, in microseconds since 2000-01-01 UTC.
    pub prepared_at_us: i64,
    /// The role that may finish it.
    pub owner: Oid,
    /// The name that it was given, without NUL.
    pub gid: Vec<u8>,
    /// Its subtransactions.
    pub subxids: Vec<Xid>,
    /// The relations that its commit would drop.
    pub commit_drops: Vec<RelFileLocator>,
    /// The relations that its rollback would drop.
    pub abort_drops: Vec<RelFileLocator>,
    /// Where it came from, if from a replication origin.
    pub origin_lsn: Lsn,
    /// The locks that it holds.
    pub locks: Vec<HeldLock>,
}

/// Takes padded pieces one after the other.
struct Pieces<'a> {
    bytes: Bytes<'a>,
    at: usize,
}

impl<'a> Pieces<'a> {
    fn take(&mut self, len: usize) -> Result<Bytes<'a>> {
        let piece = self.bytes.slice(self.at, len)?;
        self.at = max_align(self.at + len);
        Ok(Bytes::new(WHAT, piece))
    }

    fn take_array<T>(
        &mut self,
        count: usize,
        size: usize,
        read: impl Fn(Bytes<'a>, usize) -> Result<T>,
    ) -> Result<Vec<T>> {
        // An empty array takes no room, so nothing to pad either. `take` bounds the count by what is there.
        let piece = self.take(count.saturating_mul(size))?;
        (0..count).map(|i| read(piece, i * size)).collect()
    }
}

impl PreparedTransaction {
    /// The content of a file in `pg_twophase`.
    pub fn parse(content: &[u8], version: Version) -> Result<Self> {
        let file = Bytes::new(WHAT, content);
        let magic = file.u32(0)?;
        let total_len = file.u32(4)?;
        if magic != MAGIC {
            return Err(Error::InvalidField { what: WHAT, field: "magic", value: u64::from(magic) });
        }
        let crc_at = content.len().saturating_sub(4);
        if total_len as usize != content.len() || crc_at < HEADER_SIZE || max_align(crc_at) != crc_at {
            return Err(Error::InvalidField { what: WHAT, field: "total_len", value: u64::from(total_len) });
        }
        let stored = file.u32(crc_at)?;
        let computed = crc32c::crc32c(file.slice(0, crc_at)?);
        if stored != computed {
            return Err(Error::ChecksumMismatch { what: WHAT, stored, computed });
        }
        let body = Bytes::new(WHAT, file.slice(0, crc_at)?);
        let count = |at: usize| {
            let value = body.i32(at)?;
            usize::try_from(value).map_err(|_| Error::InvalidField { what: WHAT, field: "count", value: value as u64 })
        };
        let mut pieces = Pieces { bytes: body, at: HEADER_SIZE };
        let gid_len = usize::from(body.u16(54)?);
        let gid = pieces.take(gid_len)?.slice(0, gid_len)?;
        let gid = gid.split(|byte| *byte == 0).next().unwrap_or(&[]).to_vec();
        let subxids = pieces.take_array(count(28)?, 4, |piece, at| Ok(Xid(piece.u32(at)?)))?;
        let locator = |piece: Bytes<'_>, at: usize| {
            Ok(RelFileLocator {
                tablespace: Oid(piece.u32(at)?),
                database: Oid(piece.u32(at + 4)?),
                number: RelFileNumber(piece.u32(at + 8)?),
            })
        };
        let commit_drops = pieces.take_array(count(32)?, 12, locator)?;
        let abort_drops = pieces.take_array(count(36)?, 12, locator)?;
        for statistics in [count(40)?, count(44)?] {
            pieces.take(statistics.saturating_mul(version.two_phase_stats_item_size()))?;
        }
        pieces.take(count(48)?.saturating_mul(INVALIDATION_SIZE))?;
        let locks = locks(&mut pieces)?;
        Ok(Self {
            xid: Xid(body.u32(8)?),
            database: Oid(body.u32(12)?),
            prepared_at_us: body.i64(16)?,
            owner: Oid(body.u32(24)?),
            gid,
            subxids,
            commit_drops,
            abort_drops,
            origin_lsn: Lsn(body.u64(56)?),
            locks,
        })
    }

    /// The relations that it holds locked against any reader: database (0 for shared relations) and relation.
    pub fn exclusively_locked_relations(&self) -> impl Iterator<Item = (Oid, Oid)> + '_ {
        self.locks.iter().filter(|lock| lock.mode == LockMode::AccessExclusive).filter_map(HeldLock::relation)
    }
}

/// The lock records; those of other managers are stepped over.
fn locks(pieces: &mut Pieces<'_>) -> Result<Vec<HeldLock>> {
    let mut locks = Vec::new();
    loop {
        let header = pieces.take(RECORD_HEADER_SIZE)?;
        let len = header.u32(0)? as usize;
        match header.u8(4)? {
            END_RECORD => return Ok(locks),
            LOCK_RECORD if len != LOCK_RECORD_SIZE => {
                return Err(Error::InvalidField { what: WHAT, field: "length of a lock record", value: len as u64 });
            }
            LOCK_RECORD => {
                let record = pieces.take(len)?;
                let tag = LockTag {
                    field1: record.u32(0)?,
                    field2: record.u32(4)?,
                    field3: record.u32(8)?,
                    field4: record.u16(12)?,
                    kind: record.u8(14)?,
                    method: record.u8(15)?,
                };
                locks.push(HeldLock { tag, mode: LockMode::from_number(record.u32(16)?)? });
            }
            _ => {
                pieces.take(len)?;
            }
        }
    }
}

/// The name of a prepared transaction's file.
pub fn file_name(version: Version, xid: crate::ids::FullXid) -> String {
    if version.two_phase_name_len() == 16 { format!("{:016X}", xid.0) } else { format!("{:08X}", xid.xid().0) }
}

/// The transaction that a file of this name belongs to: [`file_name`]'s inverse. The epoch is 0 up to 16. `None` for
/// other files.
pub fn parse_file_name(version: Version, name: &str) -> Option<crate::ids::FullXid> {
    let is_digit = |c: u8| c.is_ascii_digit() || (b'A'..=b'F').contains(&c);
    if name.len() != version.two_phase_name_len() || !name.bytes().all(is_digit) {
        return None;
    }
    u64::from_str_radix(name, 16).ok().map(crate::ids::FullXid)
}

#[cfg(test)]
#[path = "twophase_tests.rs"]
mod tests;
