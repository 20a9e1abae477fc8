//! The control file, `global/pg_control`: what the cluster is and how it was left.
//!
//! ```text
//!     0 system_identifier u64       8 pg_control_version u32      12 catalog_version_no u32     16 state u32
//!    24 time i64                   32 checkPoint LSN
//!    40 ┌ checkpoint: 0 redo LSN   8 timeline u32   12 previous timeline u32   16 full_page_writes   20 wal_level i32
//!       │  24 nextXid u64   32 nextOid   36 nextMulti   40 nextMultiOffset   44 oldestXid   48 its database
//!       └  52 oldestMulti   56 its database   64 time i64   72, 76 oldest, newest commit-ts xid   80 oldestActiveXid
//!   128 unloggedLSN               136 minRecoveryPoint LSN       144 its timeline u32
//!   152 backupStartPoint LSN      160 backupEndPoint LSN         168 backupEndRequired
//!   172 wal_level i32             176 wal_log_hints              180 MaxConnections … 196 max_locks_per_xact (5 × i32)
//!   200 track_commit_timestamp    204 maxAlign u32               208 floatFormat f64 = 1234567.0
//!   216 blcksz   220 relseg_size   224 xlog_blcksz   228 xlog_seg_size   232 nameDataLen   236 indexMaxKeys
//!   240 toast_max_chunk_size      244 loblksize                  248 float8ByVal           252 data_checksum_version
//!   256 default_char_signedness (18)                             256 or 257 nonce, 32 bytes
//!   288 or 292 CRC-32C of all before it                          then zeros up to 8192
//! ```

use crate::bytes::Bytes;
use crate::error::{Error, Result};
use crate::ids::{FullXid, Lsn, MultiXactId, Oid, Xid};
use crate::page::BLCKSZ;
use crate::toast::TOAST_MAX_CHUNK_SIZE;
use crate::version::Version;

const WHAT: &str = "pg_control";

/// How the cluster was left (`DBState`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "`label` says what each is")]
pub enum ClusterState {
    StartingUp,
    ShutDown,
    ShutDownInRecovery,
    ShuttingDown,
    InCrashRecovery,
    InArchiveRecovery,
    InProduction,
}

impl ClusterState {
    fn from_number(number: u32) -> Result<Self> {
        Ok(match number {
            0 => Self::StartingUp,
            1 => Self::ShutDown,
            2 => Self::ShutDownInRecovery,
            3 => Self::ShuttingDown,
            4 => Self::InCrashRecovery,
            5 => Self::InArchiveRecovery,
            6 => Self::InProduction,
            _ => return Err(Error::InvalidField { what: WHAT, field: "state", value: u64::from(number) }),
        })
    }

    /// What `pg_controldata` prints.
    pub const fn label(self) -> &'static str {
        match self {
            Self::StartingUp => "starting up",
            Self::ShutDown => "shut down",
            Self::ShutDownInRecovery => "shut down in recovery",
            Self::ShuttingDown => "shutting down",
            Self::InCrashRecovery => "in crash recovery",
            Self::InArchiveRecovery => "in archive recovery",
            Self::InProduction => "in production",
        }
    }
}

/// The copy of the last checkpoint record.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckPoint {
    /// Where recovery would start.
    pub redo: Lsn,
    /// The timeline.
    pub timeline: u32,
    /// The timeline before it, if this checkpoint began one.
    pub previous_timeline: u32,
    /// Whether full page images were being logged.
    pub full_page_writes: bool,
    /// The WAL level then; from 17 on.
    pub wal_level: Option<i32>,
    /// The next transaction id to be given: every id from it on is in the future.
    pub next_xid: FullXid,
    /// The next OID to be given.
    pub next_oid: Oid,
    /// The next multixact to be given.
    pub next_multi: MultiXactId,
    /// The next member's offset to be given.
    pub next_multi_offset: u32,
    /// The oldest transaction id that may be in a tuple unfrozen; `pg_xact` reaches back to it.
    pub oldest_xid: Xid,
    /// The database with that id.
    pub oldest_xid_database: Oid,
    /// The oldest multixact that may be in a tuple.
    pub oldest_multi: MultiXactId,
    /// The database with it.
    pub oldest_multi_database: Oid,
    /// When, in seconds since 1970.
    pub time: i64,
    /// The oldest transaction with a commit timestamp.
    pub oldest_commit_ts_xid: Xid,
    /// The newest one.
    pub newest_commit_ts_xid: Xid,
    /// The oldest running transaction; only of online checkpoints.
    pub oldest_active_xid: Xid,
}

/// The control file.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlFile {
    /// Whose layout the directory has.
    pub version: Version,
    /// A number that no two clusters share.
    pub system_identifier: u64,
    /// The version of the catalogs' content.
    pub catalog_version: u32,
    /// How the cluster was left.
    pub state: ClusterState,
    /// When this file was written, in seconds since 1970.
    pub time: i64,
    /// Where the last checkpoint record starts.
    pub checkpoint_lsn: Lsn,
    /// The last checkpoint record.
    pub checkpoint: CheckPoint,
    /// The counter that stands in for LSNs of unlogged relations.
    pub unlogged_lsn: Lsn,
    /// How far recovery must replay; 0 unless a standby.
    pub min_recovery_point: Lsn,
    /// On which timeline.
    pub min_recovery_timeline: u32,
    /// Where a base backup that is being recovered began; 0 if none is.
    pub backup_start_point: Lsn,
    /// Where one from a standby ended.
    pub backup_end_point: Lsn,
    /// Whether the end of a base backup must be found in the log.
    pub backup_end_required: bool,
    /// `wal_level`: 0 minimal, 1 replica, 2 logical.
    pub wal_level: i32,
    /// `wal_log_hints`.
    pub wal_log_hints: bool,
    /// `max_connections`.
    pub max_connections: i32,
    /// `max_worker_processes`.
    pub max_worker_processes: i32,
    /// `max_wal_senders`.
    pub max_wal_senders: i32,
    /// `max_prepared_transactions`.
    pub max_prepared_transactions: i32,
    /// `max_locks_per_transaction`.
    pub max_locks_per_transaction: i32,
    /// `track_commit_timestamp`.
    pub track_commit_timestamp: bool,
    /// Blocks in one file of a relation.
    pub segment_blocks: u32,
    /// The size of a WAL page in bytes.
    pub wal_block_size: u32,
    /// The size of a WAL file in bytes.
    pub wal_segment_size: u32,
    /// The size of a chunk of a large object in bytes.
    pub large_object_block_size: u32,
    /// 0 if pages have no checksums, 1 if they have.
    pub data_checksum_version: u32,
    /// Whether `char` was signed where the cluster was made; matters to some indexes on `"char"`. True before 18.
    pub default_char_signed: bool,
    /// A secret for the salt that unknown users are shown.
    pub mock_authentication_nonce: [u8; 32],
}

impl ControlFile {
    /// The control file's content. Refuses other versions, byte orders, page sizes and alignments, and a wrong CRC, in
    /// the order in which PostgreSQL does.
    pub fn parse(content: &[u8]) -> Result<Self> {
        let bytes = Bytes::new(WHAT, content);
        let control_version = bytes.u32(8)?;
        if control_version % 65536 == 0 && control_version / 65536 != 0 {
            return Err(Error::Unsupported("a data directory of the other byte order"));
        }
        let catalog_version = bytes.u32(12)?;
        let version = match Version::from_catalog_version(catalog_version) {
            Some(version) if version.control_version() == control_version => version,
            _ => {
                let found = format!("(control version {control_version}, catalog version {catalog_version})");
                return Err(Error::UnsupportedVersion(found));
            }
        };
        let crc_at = version.control_crc();
        let stored = bytes.u32(crc_at)?;
        let computed = crc32c::crc32c(bytes.slice(0, crc_at)?);
        if stored != computed {
            return Err(Error::ChecksumMismatch { what: WHAT, stored, computed });
        }
        check_build(bytes)?;
        Ok(Self {
            version,
            system_identifier: bytes.u64(0)?,
            catalog_version,
            state: ClusterState::from_number(bytes.u32(16)?)?,
            time: bytes.i64(24)?,
            checkpoint_lsn: Lsn(bytes.u64(32)?),
            checkpoint: checkpoint(bytes, version)?,
            unlogged_lsn: Lsn(bytes.u64(128)?),
            min_recovery_point: Lsn(bytes.u64(136)?),
            min_recovery_timeline: bytes.u32(144)?,
            backup_start_point: Lsn(bytes.u64(152)?),
            backup_end_point: Lsn(bytes.u64(160)?),
            backup_end_required: bytes.u8(168)? != 0,
            wal_level: bytes.i32(172)?,
            wal_log_hints: bytes.u8(176)? != 0,
            max_connections: bytes.i32(180)?,
            max_worker_processes: bytes.i32(184)?,
            max_wal_senders: bytes.i32(188)?,
            max_prepared_transactions: bytes.i32(192)?,
            max_locks_per_transaction: bytes.i32(196)?,
            track_commit_timestamp: bytes.u8(200)? != 0,
            segment_blocks: bytes.u32(220)?,
            wal_block_size: bytes.u32(224)?,
            wal_segment_size: bytes.u32(228)?,
            large_object_block_size: bytes.u32(244)?,
            data_checksum_version: bytes.u32(252)?,
            default_char_signed: match version.control_char_signedness() {
                Some(at) => bytes.u8(at)? != 0,
                None => true,
            },
            mock_authentication_nonce: bytes.array(version.control_nonce())?,
        })
    }

    /// Whether the cluster was shut down cleanly, so that its files are complete without the log.
    pub const fn is_cleanly_shut_down(&self) -> bool {
        matches!(self.state, ClusterState::ShutDown)
    }

    /// Whether pages have checksums.
    pub const fn has_checksums(&self) -> bool {
        self.data_checksum_version != 0
    }
}

/// What PostgreSQL can be built to differ in, and this crate cannot read otherwise.
fn check_build(bytes: Bytes<'_>) -> Result<()> {
    let fixed = [
        (204, "maxAlign", 8),
        (216, "blcksz", BLCKSZ as u32),
        (232, "nameDataLen", 64),
        (236, "indexMaxKeys", 32),
        (240, "toast_max_chunk_size", TOAST_MAX_CHUNK_SIZE as u32),
        (244, "loblksize", 2048),
    ];
    for (at, field, expected) in fixed {
        let value = bytes.u32(at)?;
        if value != expected {
            return Err(Error::InvalidField { what: WHAT, field, value: u64::from(value) });
        }
    }
    let float = bytes.u64(208)?;
    if float != 1234567.0f64.to_bits() {
        return Err(Error::InvalidField { what: WHAT, field: "floatFormat", value: float });
    }
    let segment = bytes.u32(220)?;
    if segment == 0 {
        return Err(Error::InvalidField { what: WHAT, field: "relseg_size", value: 0 });
    }
    let by_value = bytes.u8(248)?;
    if by_value != 1 {
        return Err(Error::InvalidField { what: WHAT, field: "float8ByVal", value: u64::from(by_value) });
    }
    let checksums = bytes.u32(252)?;
    if checksums > 1 {
        return Err(Error::InvalidField { what: WHAT, field: "data_checksum_version", value: u64::from(checksums) });
    }
    Ok(())
}

fn checkpoint(bytes: Bytes<'_>, version: Version) -> Result<CheckPoint> {
    const AT: usize = 40;
    Ok(CheckPoint {
        redo: Lsn(bytes.u64(AT)?),
        timeline: bytes.u32(AT + 8)?,
        previous_timeline: bytes.u32(AT + 12)?,
        full_page_writes: bytes.u8(AT + 16)? != 0,
        wal_level: if version.checkpoint_has_wal_level() { Some(bytes.i32(AT + 20)?) } else { None },
        next_xid: FullXid(bytes.u64(AT + 24)?),
        next_oid: Oid(bytes.u32(AT + 32)?),
        next_multi: MultiXactId(bytes.u32(AT + 36)?),
        next_multi_offset: bytes.u32(AT + 40)?,
        oldest_xid: Xid(bytes.u32(AT + 44)?),
        oldest_xid_database: Oid(bytes.u32(AT + 48)?),
        oldest_multi: MultiXactId(bytes.u32(AT + 52)?),
        oldest_multi_database: Oid(bytes.u32(AT + 56)?),
        time: bytes.i64(AT + 64)?,
        oldest_commit_ts_xid: Xid(bytes.u32(AT + 72)?),
        newest_commit_ts_xid: Xid(bytes.u32(AT + 76)?),
        oldest_active_xid: Xid(bytes.u32(AT + 80)?),
    })
}

#[cfg(test)]
#[path = "control_tests.rs"]
mod tests;
