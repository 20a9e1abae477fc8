//! A snapshot: which transactions' effects a query sees.
//!
//! ```text
//!   ──────────────┬──────────────────────────────┬──────────────▸ transaction ids
//!                 xmin                           xmax
//!     ended       │  ended, unless in xip or     │  in the future
//!                 │  subxip: in progress         │
//! ```
//!
//! A transaction that ended counts if it committed. One in progress or in the future does not.

use stegodon_format::ids::{CommandId, Xid};

/// Which transactions are over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Every transaction before this one is over.
    pub xmin: Xid,
    /// This one and every one behind it have not begun.
    pub xmax: Xid,
    /// The transactions between that are in progress.
    pub xip: XidSet,
    /// Their subtransactions.
    pub subxip: XidSet,
    /// Within a transaction of our own, what commands before this one did is seen. Nothing writes yet.
    pub curcid: CommandId,
}

impl Snapshot {
    /// A snapshot taken when `xmax` was the next id to be given, and these were running.
    pub fn new(xmax: Xid, xip: impl IntoIterator<Item = Xid>, subxip: impl IntoIterator<Item = Xid>) -> Self {
        let (xip, subxip) = (XidSet::new(xip), XidSet::new(subxip));
        let oldest = |oldest: Xid, xid: Xid| if xid.precedes(oldest) { xid } else { oldest };
        let xmin = xip.iter().chain(subxip.iter()).fold(xmax, oldest);
        Self { xmin, xmax, xip, subxip, curcid: CommandId(0) }
    }

    /// Whether a transaction was in progress or had not begun (`XidInMVCCSnapshot`).
    #[inline]
    pub fn is_in_progress(&self, xid: Xid) -> bool {
        if xid.precedes(self.xmin) {
            return false;
        }
        if !xid.precedes(self.xmax) {
            return true;
        }
        self.xip.contains(xid) || self.subxip.contains(xid)
    }
}

/// A set of transaction ids: sorted by their digits, which serves to find one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct XidSet(Box<[Xid]>);

impl XidSet {
    /// A set of these.
    pub fn new(xids: impl IntoIterator<Item = Xid>) -> Self {
        let mut xids: Vec<Xid> = xids.into_iter().collect();
        xids.sort_unstable();
        xids.dedup();
        Self(xids.into())
    }

    /// Whether it holds `xid`.
    pub fn contains(&self, xid: Xid) -> bool {
        self.0.binary_search(&xid).is_ok()
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = Xid> + '_ {
        self.0.iter().copied()
    }
}
