#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
use std::fmt::Write as _;

use super::*;
use crate::testing::{Random, data_driven};

const CONTROL: &[u8] = include_bytes!("../testdata/pg_control");

fn with_crc(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = CONTROL.to_vec();
    change(&mut bytes);
    let crc = crc32c::crc32c(&bytes[..292]);
    bytes[292..296].copy_from_slice(&crc.to_le_bytes());
    bytes
}

#[test]
fn agrees_with_postgresql() {
    let control = ControlFile::parse(CONTROL).unwrap();
    let c = &control.checkpoint;
    data_driven(include_str!("../testdata/pg_control.txt"), |command, _| {
        let mut out = String::new();
        let flag = |value| if value { 't' } else { 'f' };
        match command {
            "pg_control_system" => {
                write!(out, "1800|{}|{}|{}", control.catalog_version, control.system_identifier, control.time).unwrap();
            }
            "pg_control_checkpoint" => {
                let (a, b, tli, previous) = (control.checkpoint_lsn, c.redo, c.timeline, c.previous_timeline);
                write!(out, "{a}|{b}|{tli}|{previous}|{}|", flag(c.full_page_writes)).unwrap();
                let (epoch, xid) = (c.next_xid.epoch(), c.next_xid.xid());
                write!(out, "{epoch}:{xid}|{}|{}|{}|", c.next_oid, c.next_multi, c.next_multi_offset).unwrap();
                write!(out, "{}|{}|{}|", c.oldest_xid, c.oldest_xid_database, c.oldest_active_xid).unwrap();
                write!(out, "{}|{}|", c.oldest_multi, c.oldest_multi_database).unwrap();
                write!(out, "{}|{}|{}", c.oldest_commit_ts_xid, c.newest_commit_ts_xid, c.time).unwrap();
            }
            "pg_control_recovery" => {
                let (point, timeline) = (control.min_recovery_point, control.min_recovery_timeline);
                let (start, end) = (control.backup_start_point, control.backup_end_point);
                write!(out, "{point}|{timeline}|{start}|{end}|{}", flag(control.backup_end_required)).unwrap();
            }
            "pg_control_init" => {
                let (segment, wal, wal_segment) =
                    (control.segment_blocks, control.wal_block_size, control.wal_segment_size);
                write!(out, "8|8192|{segment}|{wal}|{wal_segment}|64|32|1996|").unwrap();
                let (lo, checksums) = (control.large_object_block_size, control.data_checksum_version);
                write!(out, "{lo}|t|{checksums}|{}", flag(control.default_char_signed)).unwrap();
            }
            "settings" => {
                let c = &control;
                write!(out, "{}|{}|{}|", c.max_connections, c.max_worker_processes, c.max_wal_senders).unwrap();
                write!(out, "{}|{}|", c.max_prepared_transactions, c.max_locks_per_transaction).unwrap();
                write!(out, "{}|{}", flag(c.track_commit_timestamp), flag(c.wal_log_hints)).unwrap();
            }
            other => panic!("no command {other}"),
        }
        out
    });
    assert!(control.has_checksums());
    assert_eq!((control.wal_level, c.wal_level), (1, Some(1)));
}

#[test]
fn the_state_decides_whether_the_cluster_was_shut_down_cleanly() {
    for (number, label, clean) in
        [(1u8, "shut down", true), (2, "shut down in recovery", false), (6, "in production", false)]
    {
        let control = ControlFile::parse(&with_crc(|bytes| bytes[16] = number)).unwrap();
        assert_eq!((control.state.label(), control.is_cleanly_shut_down()), (label, clean));
    }
    assert!(ControlFile::parse(&with_crc(|bytes| bytes[16] = 7)).is_err());
}

#[test]
fn refuses_what_it_cannot_read() {
    let error = |bytes: Vec<u8>| ControlFile::parse(&bytes).unwrap_err();
    let swapped = with_crc(|bytes| bytes[8..12].reverse());
    assert!(matches!(error(swapped), Error::Unsupported(_)));
    let other_catalog = with_crc(|bytes| bytes[12] ^= 1);
    assert!(matches!(error(other_catalog), Error::UnsupportedVersion(_)));
    let mut flipped = CONTROL.to_vec();
    flipped[100] ^= 1;
    assert!(matches!(error(flipped), Error::ChecksumMismatch { .. }));
    let block_size = with_crc(|bytes| bytes[217] = 0x40);
    assert!(matches!(error(block_size), Error::InvalidField { field: "blcksz", .. }));
    assert!(matches!(error(CONTROL[..295].to_vec()), Error::Truncated { .. }));
}

#[test]
fn random_bytes_never_panic() {
    let mut random = Random::new(7);
    for _ in 0..5000 {
        let at = random.below(290);
        let _ = ControlFile::parse(&with_crc(|bytes| random.damage(&mut bytes[at..292])));
        let len = random.below(300);
        let _ = ControlFile::parse(&random.bytes(len));
        let _ = ControlFile::parse(&CONTROL[..len]);
    }
}

#[test]
fn knows_the_layouts_of_older_versions() {
    for (content, version) in [
        (&include_bytes!("../testdata/pg_control_15")[..], Version::V15),
        (include_bytes!("../testdata/pg_control_16"), Version::V16),
        (include_bytes!("../testdata/pg_control_17"), Version::V17),
    ] {
        let control = ControlFile::parse(content).unwrap();
        assert_eq!((control.version, control.state), (version, ClusterState::ShutDown));
        assert_eq!((control.max_connections, control.data_checksum_version), (100, 0));
        assert_eq!(control.max_prepared_transactions, 10);
        assert_ne!(control.mock_authentication_nonce, [0; 32]);
    }
}
