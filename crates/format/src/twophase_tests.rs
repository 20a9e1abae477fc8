#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
use std::fmt::Write as _;

use super::*;
use crate::ids::FullXid;
use crate::testing::{Random, data_driven};

const ONE: &[u8] = include_bytes!("../testdata/twophase_one.bin");
const TWO: &[u8] = include_bytes!("../testdata/twophase_two.bin");

#[test]
fn agrees_with_postgresql() {
    let all = [ONE, TWO].map(|bytes| PreparedTransaction::parse(bytes, Version::V18).unwrap());
    data_driven(include_str!("../testdata/twophase.txt"), |command, _| {
        let mut out = String::new();
        match command {
            "pg_prepared_xacts" => {
                for p in &all {
                    let gid = String::from_utf8_lossy(&p.gid);
                    writeln!(out, "{}|{gid}|{}|{}|{}", p.xid, p.prepared_at_us, p.owner, p.database).unwrap();
                }
            }
            "pg_locks" => {
                for p in &all {
                    let mut lines: Vec<String> = p
                        .locks
                        .iter()
                        .filter_map(|l| l.relation().map(|(db, rel)| format!("{}|{db}|{rel}|{}", p.xid, l.mode.name())))
                        .collect();
                    lines.sort();
                    out.push_str(&lines.join("\n"));
                    out.push('\n');
                }
            }
            "subxids" => {
                let subxids: Vec<String> = all[0].subxids.iter().map(ToString::to_string).collect();
                writeln!(out, "{}", subxids.join(",")).unwrap();
            }
            "drops" => {
                for (when, drops) in [("commit", &all[0].commit_drops), ("abort", &all[0].abort_drops)] {
                    let files: Vec<String> = drops.iter().map(|d| d.number.to_string()).collect();
                    writeln!(out, "{when}|{}", files.join(",")).unwrap();
                }
            }
            other => panic!("no command {other}"),
        }
        out
    });
    assert!(all[0].exclusively_locked_relations().count() > 0);
    assert_eq!(all[1].exclusively_locked_relations().count(), 0);
}

#[test]
fn knows_the_layouts_of_older_versions() {
    for (content, version) in [
        (&include_bytes!("../testdata/twophase_15.bin")[..], Version::V15),
        (include_bytes!("../testdata/twophase_16.bin"), Version::V16),
        (include_bytes!("../testdata/twophase_17.bin"), Version::V17),
    ] {
        let state = PreparedTransaction::parse(content, version).unwrap();
        assert_eq!((&state.gid[..], state.subxids.len()), (&b"seventeen"[..], 1));
        assert_eq!((state.commit_drops.len(), state.abort_drops.len()), (1, 1));
        assert_eq!(state.exclusively_locked_relations().count(), 2);
    }
}

#[test]
fn file_names_depend_on_the_version() {
    assert_eq!(file_name(Version::V18, FullXid(1 << 32 | 0x302)), "0000000100000302");
    assert_eq!(file_name(Version::V16, FullXid(0x302)), "00000302");
    assert_eq!(parse_file_name(Version::V18, "0000000100000302"), Some(FullXid(1 << 32 | 0x302)));
    assert_eq!(parse_file_name(Version::V18, "00000302"), None);
    assert_eq!(parse_file_name(Version::V18, "00000001000003g2"), None);
    assert_eq!(parse_file_name(Version::V18, "+000000100000302"), None);
}

#[test]
fn damage_is_an_error_and_never_panics() {
    let mut random = Random::new(8);
    for _ in 0..5000 {
        let mut bytes = ONE.to_vec();
        random.damage(&mut bytes);
        if bytes != ONE {
            assert!(PreparedTransaction::parse(&bytes, Version::V18).is_err());
        }
        // Behind a right CRC, anything may be there: no panic, and no memory taken for counts that cannot be.
        let mut bytes = if random.below(2) == 0 { ONE.to_vec() } else { TWO.to_vec() };
        let at = 8 + random.below(bytes.len() - 20);
        let end = bytes.len() - 4;
        random.damage(&mut bytes[at..end]);
        let crc = crc32c::crc32c(&bytes[..end]);
        bytes[end..].copy_from_slice(&crc.to_le_bytes());
        let _ = PreparedTransaction::parse(&bytes, Version::V18);
        let cut = random.below(ONE.len());
        assert!(PreparedTransaction::parse(&ONE[..cut], Version::V18).is_err());
    }
}
