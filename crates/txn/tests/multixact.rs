//! Multixacts at the edges of pages, segments and number ranges, and damaged ones, in directories made by hand.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use stegodon_format::control::{CheckPoint, ControlFile};
use stegodon_format::ids::{MultiXactId, Xid};
use stegodon_format::page::BLCKSZ;
use stegodon_format::slru::{multixact, offset_in_segment, segment_name};
use stegodon_io::DataDirectory;
use stegodon_txn::{Error, Multixacts, Result};

/// A data directory with nothing but the multixacts that a test puts there.
struct Made {
    directory: tempfile::TempDir,
    /// Segment files by name.
    files: BTreeMap<String, Vec<u8>>,
    checkpoint: CheckPoint,
}

impl Made {
    fn new(oldest: u32, next: u32, next_member: u32) -> Self {
        let template = Path::new("testdata/cluster/global/pg_control");
        let control = std::fs::read(template).unwrap();
        let directory = tempfile::tempdir().unwrap();
        for name in ["global", "pg_multixact/offsets", "pg_multixact/members"] {
            std::fs::create_dir_all(directory.path().join(name)).unwrap();
        }
        std::fs::write(directory.path().join("PG_VERSION"), "18\n").unwrap();
        std::fs::write(directory.path().join("global/pg_control"), &control).unwrap();
        let mut checkpoint = ControlFile::parse(&control).unwrap().checkpoint;
        checkpoint.oldest_multi = MultiXactId(oldest);
        checkpoint.next_multi = MultiXactId(next);
        checkpoint.next_multi_offset = next_member;
        Self { directory, files: BTreeMap::new(), checkpoint }
    }

    fn put(&mut self, directory: &str, page: u32, at: usize, bytes: &[u8]) {
        let file = self.files.entry(format!("pg_multixact/{directory}/{}", segment_name(page))).or_default();
        let start = offset_in_segment(page) as usize;
        file.resize(file.len().max(start + BLCKSZ), 0);
        file[start + at..start + at + bytes.len()].copy_from_slice(bytes);
    }

    /// Says where the members of a multixact begin.
    fn offset(mut self, multi: u32, first: u32) -> Self {
        let at = (multi % multixact::OFFSETS_PER_PAGE) as usize * 4;
        self.put("offsets", multixact::offsets_page_of(MultiXactId(multi)), at, &first.to_le_bytes());
        self
    }

    /// Writes a member, laid out from the drawing in `stegodon_format::slru`.
    fn member(mut self, number: u32, xid: u32, status: u8) -> Self {
        let page = number / 1636;
        let within = (number % 1636) as usize;
        let group = within / 4 * 20;
        self.put("members", page, group + within % 4, &[status]);
        self.put("members", page, group + 4 + within % 4 * 4, &xid.to_le_bytes());
        self
    }

    fn open(&self) -> Multixacts {
        for (name, bytes) in &self.files {
            std::fs::write(self.directory.path().join(name), bytes).unwrap();
        }
        Multixacts::new(&DataDirectory::open(self.directory.path()).unwrap(), &self.checkpoint)
    }
}

fn xids(multixacts: &Multixacts, multi: u32) -> Result<Vec<u32>> {
    multixacts.members(MultiXactId(multi))?.map(|member| Ok(member?.xid.0)).collect()
}

#[test]
fn members_go_on_on_the_next_page_and_in_the_next_segment() {
    for first in [1630, 1636 * 32 - 3] {
        let mut made = Made::new(1, 8, first + 20).offset(6, first).offset(7, first + 10);
        for index in 0..10 {
            made = made.member(first + index, 1000 + index, if index == 8 { 5 } else { 1 });
        }
        let multixacts = made.open();
        assert_eq!(xids(&multixacts, 6).unwrap(), (1000..1010).collect::<Vec<u32>>());
        assert_eq!(multixacts.update_xid(MultiXactId(6)), Ok(Some(Xid(1008))));
    }
}

#[test]
fn the_newest_ends_where_the_control_file_says() {
    let made = Made::new(1, 2, 3).offset(1, 1).member(1, 77, 0).member(2, 78, 4);
    let multixacts = made.open();
    assert_eq!(xids(&multixacts, 1).unwrap(), [77, 78]);
    assert_eq!(multixacts.update_xid(MultiXactId(1)), Ok(Some(Xid(78))));
}

#[test]
fn numbers_of_members_wrap_and_skip_zero() {
    let first = u32::MAX - 1;
    let made = Made::new(1, 3, 5)
        .offset(1, first)
        .offset(2, 2)
        .member(first, 70, 1)
        .member(u32::MAX, 71, 1)
        .member(1, 72, 5)
        .member(2, 73, 1);
    let multixacts = made.open();
    assert_eq!(xids(&multixacts, 1).unwrap(), [70, 71, 72]);
    assert_eq!(multixacts.update_xid(MultiXactId(1)), Ok(Some(Xid(72))));
}

#[test]
fn numbers_of_multixacts_wrap_and_skip_zero() {
    let made = Made::new(u32::MAX - 5, 3, 30)
        .offset(u32::MAX, 10)
        .offset(1, 12)
        .offset(2, 13)
        .member(10, 80, 0)
        .member(11, 81, 0)
        .member(12, 82, 0);
    let multixacts = made.open();
    assert_eq!(xids(&multixacts, u32::MAX).unwrap(), [80, 81]);
    assert_eq!(xids(&multixacts, 1).unwrap(), [82]);
    assert_eq!(xids(&multixacts, u32::MAX - 6), Err(Error::MultiXactTooOld(MultiXactId(u32::MAX - 6))));
    assert_eq!(xids(&multixacts, 3), Err(Error::MultiXactInFuture(MultiXactId(3))));
}

#[test]
fn damage_is_an_error() {
    let corrupt = |what| Err(Error::MultiXactCorrupt { multi: MultiXactId(1), what });
    let opened =
        |first, next, status| xids(&Made::new(1, 3, 9).offset(1, first).offset(2, next).member(1, 7, status).open(), 1);
    assert_eq!(opened(1, 2, 0), Ok(vec![7]));
    assert_eq!(opened(0, 2, 0), corrupt("offset"));
    assert_eq!(opened(1, 0, 0), corrupt("next offset"));
    assert_eq!(opened(2, 2, 0), corrupt("number of members"));
    assert_eq!(opened(2, 1, 0), corrupt("number of members"));
    assert_eq!(opened(1, 2, 6), corrupt("member status"));
    // Members whose file is missing.
    let gone = xids(&Made::new(1, 3, 9).offset(1, 60_000).offset(2, 60_001).open(), 1).unwrap_err();
    assert_eq!(gone.to_string(), "could not access status of transaction 1");
    let Error::NoStatus { detail, missing: true, .. } = gone else { panic!("{gone:?}") };
    assert_eq!(detail, "Could not open file \"pg_multixact/members/0001\": No such file or directory.");
}

#[test]
fn random_bytes_never_panic() {
    let mut seed = 88172645463325252u64;
    let mut random = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let mut made = Made::new(1, 5000, 3000);
    for page in 0..3 {
        let bytes: Vec<u8> = (0..BLCKSZ).map(|_| random() as u8 & random() as u8 & random() as u8).collect();
        made.put("offsets", page, 0, &bytes);
        made.put("members", page, 0, &bytes);
    }
    let multixacts = Arc::new(made.open());
    for multi in 0..5100 {
        if let Ok(members) = multixacts.members(MultiXactId(multi)) {
            members.take(100).for_each(drop);
        }
    }
}
