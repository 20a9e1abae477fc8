//! All that is known about the transactions of one data directory.

use std::sync::Arc;

use stegodon_format::control::ControlFile;
use stegodon_format::ids::FullXid;
use stegodon_io::DataDirectory;

use crate::error::{Error, Result};
use crate::log::TransactionLog;
use crate::multixact::Multixacts;
use crate::prepared::PreparedTransactions;
use crate::snapshot::Snapshot;

/// The transactions of a data directory that was shut down cleanly and that nobody writes.
pub struct Transactions {
    next: FullXid,
    log: TransactionLog,
    multixacts: Multixacts,
    prepared: PreparedTransactions,
}

impl Transactions {
    /// Opens the records of a data directory, given its control file. Reads `pg_twophase` now and the rest when asked.
    pub fn open(directory: &Arc<DataDirectory>, control: &ControlFile) -> Result<Self> {
        if !control.is_cleanly_shut_down() {
            return Err(Error::NotShutDown { state: control.state.label() });
        }
        let checkpoint = &control.checkpoint;
        let log = TransactionLog::new(Arc::clone(directory), checkpoint.oldest_xid, checkpoint.next_xid);
        let prepared = PreparedTransactions::read(directory, control.version, &log, checkpoint.next_xid)?;
        let multixacts = Multixacts::new(directory, checkpoint);
        Ok(Self { next: checkpoint.next_xid, log, multixacts, prepared })
    }

    /// The next transaction id that would be given.
    pub fn next_xid(&self) -> FullXid {
        self.next
    }

    /// Which transactions committed.
    pub fn log(&self) -> &TransactionLog {
        &self.log
    }

    /// The multixacts.
    pub fn multixacts(&self) -> &Multixacts {
        &self.multixacts
    }

    /// The prepared transactions, with their locks.
    pub fn prepared(&self) -> &PreparedTransactions {
        &self.prepared
    }

    /// The snapshot that every query here has: all transactions are over but the prepared ones.
    pub fn snapshot(&self) -> Snapshot {
        let xip = self.prepared.iter().map(|p| p.xid);
        let subxip = self.prepared.iter().flat_map(|p| p.subxids.iter().copied());
        Snapshot::new(self.next.xid(), xip, subxip)
    }
}
