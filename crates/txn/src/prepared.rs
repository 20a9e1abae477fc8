//! Prepared transactions: neither committed nor aborted, and nobody's. They outlive the server, with their locks.

use stegodon_format::ids::{FullXid, Oid, Xid};
use stegodon_format::paths::TWO_PHASE_DIRECTORY;
use stegodon_format::slru::XidStatus;
use stegodon_format::twophase::{PreparedTransaction, parse_file_name};
use stegodon_format::version::Version;
use stegodon_io::DataDirectory;

use crate::error::{Error, Result};
use crate::log::TransactionLog;

/// The prepared transactions of a data directory.
#[derive(Debug, Default)]
pub struct PreparedTransactions {
    all: Vec<PreparedTransaction>,
}

impl PreparedTransactions {
    /// Reads `pg_twophase`. As PostgreSQL at start, passes over files of transactions that ended or have not begun: they
    /// are left over.
    pub fn read(directory: &DataDirectory, version: Version, log: &TransactionLog, next: FullXid) -> Result<Self> {
        let mut all = Vec::new();
        for full in state_files(directory, version)? {
            let xid = full.xid();
            let future = if version.two_phase_name_len() == 16 { full >= next } else { !xid.precedes(next.xid()) };
            if future || matches!(log.status(xid)?, XidStatus::Committed | XidStatus::Aborted) {
                continue;
            }
            let name = stegodon_format::twophase::file_name(version, full);
            let content = directory.read_file(&format!("{TWO_PHASE_DIRECTORY}/{name}"))?;
            let corrupt = |detail: String| Error::CorruptTwoPhaseState { xid, detail };
            let state = PreparedTransaction::parse(&content, version).map_err(|error| corrupt(error.to_string()))?;
            if state.xid != xid {
                return Err(corrupt(format!("File \"{name}\" holds transaction {}.", state.xid)));
            }
            all.push(state);
        }
        Ok(Self { all })
    }

    /// Each of them, in the order of their ids' digits.
    pub fn iter(&self) -> impl Iterator<Item = &PreparedTransaction> {
        self.all.iter()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The prepared transaction that keeps readers off a relation (`ACCESS EXCLUSIVE`), if one does. `database` is 0 for
    /// shared relations. In PostgreSQL a reader would wait for it.
    pub fn exclusive_lock(&self, database: Oid, relation: Oid) -> Option<&PreparedTransaction> {
        self.all.iter().find(|p| p.exclusively_locked_relations().any(|locked| locked == (database, relation)))
    }

    /// All transactions and subtransactions that are prepared.
    pub fn xids(&self) -> impl Iterator<Item = Xid> + '_ {
        self.all.iter().flat_map(|p| std::iter::once(p.xid).chain(p.subxids.iter().copied()))
    }
}

/// The transactions that have a file, oldest file name first.
fn state_files(directory: &DataDirectory, version: Version) -> Result<Vec<FullXid>> {
    let failed =
        |error: std::io::Error| Error::Directory { path: TWO_PHASE_DIRECTORY.to_owned(), reason: error.to_string() };
    let mut xids = Vec::new();
    for entry in std::fs::read_dir(directory.path().join(TWO_PHASE_DIRECTORY)).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        xids.extend(name.to_str().and_then(|name| parse_file_name(version, name)));
    }
    xids.sort_unstable();
    Ok(xids)
}
