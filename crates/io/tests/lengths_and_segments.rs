//! A relation's length and its blocks, over segments.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use common::{Fixture, SEGMENT_BYTES, locator};
use stegodon_format::ids::{BlockNumber, Fork, GLOBAL_TABLESPACE, Oid, RelFileLocator, RelFileNumber};
use stegodon_format::page::Page;
use stegodon_io::{DataDirectory, Error};
use stegodon_types::{SqlError, SqlState};

#[test]
fn the_length_is_that_of_the_segments_up_to_the_first_that_is_not_full() {
    let fixture = Fixture::new();
    fixture.file("base/5/1", 3 * 8192 + 100, &[]);
    fixture.file("base/5/1_vm", 8192, &[]);
    fixture.file("base/5/2", SEGMENT_BYTES, &[]);
    fixture.file("base/5/3", SEGMENT_BYTES, &[]);
    fixture.file("base/5/3.1", 5 * 8192, &[]);
    fixture.file("base/5/4", 8192, &[]);
    fixture.file("base/5/4.1", 5 * 8192, &[]);
    let dir = fixture.open();
    let nblocks = |number| dir.relation(locator(number)).nblocks(Fork::Main);
    assert_eq!(nblocks(1), Ok(3));
    assert_eq!(dir.relation(locator(1)).nblocks(Fork::VisibilityMap), Ok(1));
    assert_eq!(dir.relation(locator(1)).nblocks_or_zero(Fork::FreeSpaceMap), Ok(0));
    assert_eq!(dir.relation(locator(1)).exists(Fork::FreeSpaceMap), Ok(false));
    assert_eq!(nblocks(2), Ok(131_072));
    assert_eq!(nblocks(3), Ok(131_077));
    assert_eq!(nblocks(4), Ok(1));
}

#[test]
fn a_length_is_seen_as_it_is_now() {
    let fixture = Fixture::new();
    fixture.file("base/5/1", 8192, &[]);
    let relation = fixture.open().relation(locator(1));
    assert_eq!(relation.nblocks(Fork::Main), Ok(1));
    fs_len(&fixture, "base/5/1", 3 * 8192);
    assert_eq!(relation.nblocks(Fork::Main), Ok(3));
}

fn fs_len(fixture: &Fixture, name: &str, len: u64) {
    std::fs::OpenOptions::new().write(true).open(fixture.path(name)).unwrap().set_len(len).unwrap();
}

#[test]
fn blocks_come_from_their_segment() {
    let fixture = Fixture::new();
    fixture.file("base/5/3", SEGMENT_BYTES, &[0, 131_071]);
    fixture.file("base/5/3.1", 2 * 8192, &[1]);
    let relation = fixture.open().relation(locator(3));
    let mut page = Page::zeroed();
    for (block, byte) in [(0, 0), (131_071, 255), (131_072, 0), (131_073, 1)] {
        relation.read_block(Fork::Main, BlockNumber(block), &mut page).unwrap();
        assert_eq!(page.bytes(), &[byte; 8192], "block {block}");
    }
    assert_eq!(relation.run_blocks_max(BlockNumber(131_070)), 2);
    assert_eq!(relation.run_blocks_max(BlockNumber(0)), 128);
}

#[test]
fn errors_name_file_and_block() {
    let fixture = Fixture::new();
    fixture.file("base/5/1", 8192 + 100, &[]);
    fixture.file("base/5/1.1", 8192, &[]);
    fixture.file("base/5/2", SEGMENT_BYTES + 8192, &[]);
    let dir = fixture.open();
    let mut page = Page::zeroed();
    let mut read = |number, block| {
        let error = dir.relation(locator(number)).read_block(Fork::Main, BlockNumber(block), &mut page).unwrap_err();
        let SqlError { state, message, .. } = error.into();
        (state, message)
    };
    assert_eq!(
        read(1, 1),
        (
            SqlState::DataCorrupted,
            "could not read blocks 1..1 in file \"base/5/1\": read only 0 of 8192 bytes".to_owned()
        )
    );
    assert_eq!(
        read(1, 131_072),
        (
            SqlState::UndefinedFile,
            "could not open file \"base/5/1.1\" (target block 131072): previous segment is only 1 blocks".to_owned()
        )
    );
    assert_eq!(
        read(9, 0),
        (SqlState::UndefinedFile, "could not open file \"base/5/9\": No such file or directory".to_owned())
    );
    assert_eq!(read(1, u32::MAX).0, SqlState::UndefinedFile);
    let too_big = dir.relation(locator(2)).nblocks(Fork::Main);
    assert!(matches!(too_big, Err(Error::SegmentTooBig { blocks: 131_073, .. })));
}

#[test]
fn paths_are_those_of_postgresql() {
    let fixture = Fixture::new();
    let target = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(target.path().join("PG_18_202506291/5")).unwrap();
    std::fs::write(target.path().join("PG_18_202506291/5/77"), [7; 8192]).unwrap();
    std::os::unix::fs::symlink(target.path(), fixture.path("pg_tblspc/16400")).unwrap();
    let dir = fixture.open();
    let other = RelFileLocator { tablespace: Oid(16400), database: Oid(5), number: RelFileNumber(77) };
    assert_eq!(dir.relation_path(other, Fork::Main, 0), "pg_tblspc/16400/PG_18_202506291/5/77");
    assert_eq!(dir.relation(other).nblocks(Fork::Main), Ok(1));
    let shared = RelFileLocator { tablespace: GLOBAL_TABLESPACE, database: Oid(0), number: RelFileNumber(1262) };
    assert_eq!(dir.relation_path(shared, Fork::Main, 0), "global/1262");
    assert_eq!(dir.relation(locator(12)).path(Fork::FreeSpaceMap), "base/5/12_fsm");
}

#[test]
fn the_cache_of_open_files_keeps_its_limit() {
    let fixture = Fixture::new();
    for number in 1..=20u32 {
        fixture.file(&format!("base/5/{number}"), 8192, &[]);
    }
    let dir = fixture.open_with(4);
    let mut page = Page::zeroed();
    for round in 0..60u32 {
        let relation = dir.relation(locator(round * 7 % 20 + 1));
        relation.read_block(Fork::Main, BlockNumber(0), &mut page).unwrap();
        assert!(dir.open_files() <= 4);
    }
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    let ours = fixture.path("base/5");
    let open = open.filter(|fd| std::fs::read_link(fd.as_ref().unwrap().path()).is_ok_and(|to| to.starts_with(&ours)));
    assert_eq!(open.count(), 4);
}

#[test]
fn what_is_no_data_directory_is_refused_by_name() {
    let empty = tempfile::tempdir().unwrap();
    let error = DataDirectory::open(empty.path()).unwrap_err().to_string();
    assert!(error.contains("could not read file \"PG_VERSION\": No such file or directory"), "{error}");
}

#[test]
fn small_files_are_read_whole() {
    let fixture = Fixture::new();
    let dir = fixture.open();
    assert_eq!(dir.read_file("PG_VERSION").unwrap(), b"18\n");
    assert_eq!(dir.read_file_if_exists("backup_label"), Ok(None));
    assert!(dir.read_file("backup_label").unwrap_err().is_not_found());
}
