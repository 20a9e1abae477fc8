//! What is made of the files in `pg_twophase`: left-over ones are passed over, damaged ones refused.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::path::{Path, PathBuf};

use stegodon_format::control::ControlFile;
use stegodon_io::DataDirectory;
use stegodon_txn::{Error, Result, Transactions};

/// A copy of the test cluster's `pg_twophase`, to be changed.
struct Copied(tempfile::TempDir);

impl Copied {
    fn new() -> Self {
        fn copy(from: &Path, to: &Path) {
            std::fs::create_dir_all(to).unwrap();
            for entry in std::fs::read_dir(from).unwrap() {
                let entry = entry.unwrap();
                let to = to.join(entry.file_name());
                if entry.file_type().unwrap().is_dir() {
                    copy(&entry.path(), &to);
                } else {
                    std::fs::copy(entry.path(), to).unwrap();
                }
            }
        }
        let copied = Self(tempfile::tempdir().unwrap());
        copy(Path::new("testdata/cluster"), copied.0.path());
        copied
    }

    fn file(&self, xid: u64) -> PathBuf {
        self.0.path().join(format!("pg_twophase/{xid:016X}"))
    }

    fn gids(&self) -> Result<Vec<String>> {
        let directory = DataDirectory::open(self.0.path()).unwrap();
        let control = ControlFile::parse(&directory.read_file("global/pg_control").unwrap()).unwrap();
        let transactions = Transactions::open(&directory, &control)?;
        Ok(transactions.prepared().iter().map(|p| String::from_utf8_lossy(&p.gid).into_owned()).collect())
    }
}

const ALL: [&str; 3] = ["updater", "worker", "locker3"];
const UPDATER: u64 = 0x31D;

#[test]
fn files_of_transactions_that_ended_or_have_not_begun_are_left_over() {
    let copied = Copied::new();
    assert_eq!(copied.gids().unwrap(), ALL);
    // Committed, aborted, in the future, in another epoch: whatever is in them.
    for xid in [779, 780, 5000, 1 << 32 | UPDATER] {
        std::fs::write(copied.file(xid), b"anything").unwrap();
    }
    // Not the names of such files at all.
    for name in ["0000031D", "000000000000031d", "000000000000031D.tmp", "README"] {
        std::fs::write(copied.0.path().join("pg_twophase").join(name), b"anything").unwrap();
    }
    assert_eq!(copied.gids().unwrap(), ALL);
}

#[test]
fn a_damaged_file_is_refused() {
    let copied = Copied::new();
    let mut content = std::fs::read(copied.file(UPDATER)).unwrap();
    content[100] ^= 1;
    std::fs::write(copied.file(UPDATER), content).unwrap();
    let error = copied.gids().unwrap_err();
    assert_eq!(error.to_string(), "corrupted two-phase state for transaction 797");
}

#[test]
fn a_file_under_another_transaction_s_name_is_refused() {
    let copied = Copied::new();
    std::fs::copy(copied.file(UPDATER), copied.file(0x320)).unwrap();
    let Err(Error::CorruptTwoPhaseState { detail, .. }) = copied.gids() else { panic!("accepted") };
    assert_eq!(detail, "File \"0000000000000320\" holds transaction 797.");
}

#[test]
fn a_missing_directory_is_an_error_not_the_absence_of_prepared_transactions() {
    let copied = Copied::new();
    std::fs::remove_dir_all(copied.0.path().join("pg_twophase")).unwrap();
    assert!(matches!(copied.gids(), Err(Error::Directory { .. })));
}
