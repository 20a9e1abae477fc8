//! `pg_xact`: which transactions committed.

use std::sync::Arc;

use stegodon_format::ids::{FullXid, Xid};
use stegodon_format::paths::XACT_DIRECTORY;
use stegodon_format::slru::{XidStatus, xact};
use stegodon_io::DataDirectory;

use crate::error::{Error, Result};
use crate::slru::Slru;

/// The fates of all transactions from the oldest that a tuple may still name.
pub struct TransactionLog {
    pages: Slru,
    oldest: Option<Xid>,
}

impl TransactionLog {
    /// The log of a data directory that reaches back to `oldest` (`oldestXid` of `pg_control`), where `next` is given next.
    ///
    /// `pg_resetwal -x` may leave an `oldestXid` that is not before the next id, half the circle at most. It then says
    /// nothing: as for PostgreSQL, which does not ask it, a record is lost where its file is.
    pub fn new(directory: Arc<DataDirectory>, oldest: Xid, next: FullXid) -> Self {
        let oldest = (next.xid() == oldest || oldest.precedes(next.xid())).then_some(oldest);
        let pages = Slru::new(directory, XACT_DIRECTORY, xact::page_of(Xid(u32::MAX)));
        Self { pages, oldest }
    }

    /// What is recorded of a transaction. One older than the log reaches is an error: its record is gone, or would be
    /// another's.
    pub fn status(&self, xid: Xid) -> Result<XidStatus> {
        if !xid.is_normal() {
            return Ok(if xid == Xid::INVALID { XidStatus::Aborted } else { XidStatus::Committed });
        }
        if let Some(oldest) = self.oldest
            && xid.precedes(oldest)
        {
            return Err(Self::too_old(xid, oldest));
        }
        Ok(xact::status(self.pages.page(xact::page_of(xid), xid.0)?, xid))
    }

    /// Whether a transaction that nobody runs and that is not prepared committed.
    ///
    /// "In progress" then means that it crashed. So does "sub-committed": a subtransaction is that only while its parent
    /// commits, and the parent did not get to the end of it.
    pub fn did_commit(&self, xid: Xid) -> Result<bool> {
        Ok(self.status(xid)? == XidStatus::Committed)
    }

    #[cold]
    fn too_old(xid: Xid, oldest: Xid) -> Error {
        let detail = format!("The transaction is older than the oldest that is recorded, {oldest}.");
        Error::NoStatus { number: xid.0, detail, missing: true }
    }
}
