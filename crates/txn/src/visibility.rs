//! Whether a query sees a tuple (`HeapTupleSatisfiesMVCC`).
//!
//! ```text
//!   inserted by a transaction that counts?           no ──▸ invisible
//!     frozen                     counts
//!     known to have aborted      does not
//!     else                       over (by the snapshot) and committed (by its hint bit or pg_xact)
//!   deleted?                                         no ──▸ visible
//!     XMAX_INVALID, or only locked                   not deleted
//!     a multixact                                    by its updating member, if it has one
//!   by a transaction that counts?                    no ──▸ visible      yes ──▸ invisible
//! ```
//!
//! Hint bits are believed as PostgreSQL believes them and never written. What the log says of the last few transactions
//! is remembered, so that a page full of one transaction's tuples asks it once.

use std::sync::Arc;

use stegodon_format::heap_tuple::{HeapTupleRef, Infomask};
use stegodon_format::ids::{MultiXactId, Xid};

use crate::error::Result;
use crate::snapshot::Snapshot;
use crate::transactions::Transactions;

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// The query sees the tuple.
    Visible,
    /// It does not.
    Invisible,
}

impl Visibility {
    /// Whether it is [`Visibility::Visible`].
    pub const fn is_visible(self) -> bool {
        matches!(self, Visibility::Visible)
    }
}

/// How many transactions' fates one checker remembers. A power of two.
const REMEMBERED: usize = 8;

/// Answers for one scan. Cheap to make: it allocates nothing and takes no lock, then or later (except to read a part of
/// `pg_xact` or `pg_multixact` for the first time).
#[derive(Clone)]
pub struct VisibilityChecker {
    transactions: Arc<Transactions>,
    snapshot: Arc<Snapshot>,
    /// Transactions whose fate was looked up, by their last digits. [`Xid::INVALID`] marks a free slot, and is right in
    /// it: no such transaction counts.
    fates: [(Xid, bool); REMEMBERED],
    /// The last multixact whose updater was looked up; at first multixact 0, which has none.
    updater: (MultiXactId, Xid),
}

impl VisibilityChecker {
    /// A checker under a snapshot.
    pub fn new(transactions: Arc<Transactions>, snapshot: Arc<Snapshot>) -> Self {
        let fates = [(Xid::INVALID, false); REMEMBERED];
        Self { transactions, snapshot, fates, updater: (MultiXactId(0), Xid::INVALID) }
    }

    /// The snapshot.
    pub fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    /// Whether the snapshot's owner sees the tuple.
    pub fn check(&mut self, tuple: HeapTupleRef<'_>) -> Result<Visibility> {
        if self.inserted(tuple)? && !self.deleted(tuple)? { Ok(Visibility::Visible) } else { Ok(Visibility::Invisible) }
    }

    /// Whether hint bits alone say that the tuple is visible: inserted by a transaction that was over and committed, and not
    /// deleted. Where they do not, [`VisibilityChecker::check`] must be asked.
    #[inline]
    pub fn sees_at_once(&self, xmin: Xid, mask: Infomask) -> bool {
        let inserted =
            mask.xmin_frozen() || (mask.xmin_committed() && !mask.xmin_invalid() && xmin.precedes(self.snapshot.xmin));
        inserted && mask.xmax_invalid()
    }

    /// Whether the inserting transaction counts.
    #[inline]
    fn inserted(&mut self, tuple: HeapTupleRef<'_>) -> Result<bool> {
        let mask = tuple.infomask();
        if mask.xmin_frozen() {
            return Ok(true);
        }
        if mask.xmin_invalid() {
            return Ok(false);
        }
        self.counts(tuple.raw_xmin(), mask.xmin_committed())
    }

    /// Whether the tuple has a deleting or updating transaction that counts.
    #[inline]
    fn deleted(&mut self, tuple: HeapTupleRef<'_>) -> Result<bool> {
        let mask = tuple.infomask();
        if mask.xmax_invalid() || mask.xmax_is_locked_only() {
            return Ok(false);
        }
        if mask.xmax_is_multi() {
            // The hint bit speaks of no member: each is looked up.
            let updater = self.multixact_updater(tuple.xmax_multi())?;
            return self.counts(updater, false);
        }
        self.counts(tuple.raw_xmax(), mask.xmax_committed())
    }

    /// Whether a transaction was over when the snapshot was taken and committed. With `known_committed` only the former
    /// is a question.
    #[inline]
    fn counts(&mut self, xid: Xid, known_committed: bool) -> Result<bool> {
        if self.snapshot.is_in_progress(xid) {
            return Ok(false);
        }
        if known_committed {
            return Ok(true);
        }
        self.committed(xid)
    }

    /// Whether a transaction that is over committed.
    #[inline]
    fn committed(&mut self, xid: Xid) -> Result<bool> {
        if let Some((known, committed)) = self.fates.get(xid.0 as usize % REMEMBERED)
            && *known == xid
        {
            return Ok(*committed);
        }
        self.look_up(xid)
    }

    #[cold]
    fn look_up(&mut self, xid: Xid) -> Result<bool> {
        let committed = self.transactions.log().did_commit(xid)?;
        if let Some(slot) = self.fates.get_mut(xid.0 as usize % REMEMBERED) {
            *slot = (xid, committed);
        }
        Ok(committed)
    }

    /// Which member of a multixact updated or deleted the tuple, [`Xid::INVALID`] if none did: what a HOT chain is followed
    /// by.
    pub fn multixact_updater(&mut self, multi: MultiXactId) -> Result<Xid> {
        if self.updater.0 != multi {
            let updater = self.transactions.multixacts().update_xid(multi)?;
            self.updater = (multi, updater.unwrap_or(Xid::INVALID));
        }
        Ok(self.updater.1)
    }
}

/// Whether a chunk of a TOAST table may be read (`HeapTupleSatisfiesToast`): whoever holds a visible pointer to it may,
/// so all that is asked is that its insertion did not fail.
pub fn toast_chunk_is_visible(tuple: HeapTupleRef<'_>) -> bool {
    let mask = tuple.infomask();
    if mask.xmin_committed() { true } else { !mask.xmin_invalid() && tuple.raw_xmin().is_valid() }
}
