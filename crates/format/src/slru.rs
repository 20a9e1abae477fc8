//! The simple files of fixed-size entries: `pg_xact`, `pg_multixact`, `pg_subtrans`.
//!
//! ```text
//!   directory:  0000  0001  …  0FFF  10000      segments: hexadecimal, at least four digits
//!   segment:    32 pages of 8192 bytes          no page headers, no checksums
//!
//!   pg_xact                2 bits per transaction: 4 in a byte, lowest bits first
//!                          0 in progress   1 committed   2 aborted   3 sub-committed
//!   pg_subtrans            u32 per transaction: its parent, 0 if none
//!   pg_multixact/offsets   u32 per multixact: the number of its first member
//!   pg_multixact/members   groups of four members, 409 in a page (12 bytes left over):
//!                          ┌─────────────────────┬───────┬───────┬───────┬───────┐
//!                          │ 4 × u8 status       │ xid 0 │ xid 1 │ xid 2 │ xid 3 │
//!                          └─────────────────────┴───────┴───────┴───────┴───────┘
//! ```
//!
//! A multixact's members end where the next multixact's begin.

use crate::error::{Error, Result};
use crate::ids::{MultiXactId, Xid};
use crate::page::BLCKSZ;

/// The pages in one segment file.
pub const PAGES_PER_SEGMENT: u32 = 32;

/// The size of a full segment file in bytes.
pub const SEGMENT_SIZE: usize = PAGES_PER_SEGMENT as usize * BLCKSZ;

/// The name of the segment file that holds a page.
pub fn segment_name(page: u32) -> String {
    format!("{:04X}", page / PAGES_PER_SEGMENT)
}

/// The offset of a page within its segment file in bytes.
pub const fn offset_in_segment(page: u32) -> u64 {
    (page % PAGES_PER_SEGMENT) as u64 * BLCKSZ as u64
}

/// What `pg_xact` says of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XidStatus {
    /// Neither committed nor aborted, as far as was noted. Crashed, if nobody runs it.
    InProgress,
    /// Committed.
    Committed,
    /// Aborted.
    Aborted,
    /// A subtransaction that ended; whether it counts is up to its parent.
    SubCommitted,
}

/// `pg_xact`.
pub mod xact {
    use super::*;

    /// The transactions on one page.
    pub const XIDS_PER_PAGE: u32 = BLCKSZ as u32 * 4;

    /// The page of a transaction.
    pub const fn page_of(xid: Xid) -> u32 {
        xid.0 / XIDS_PER_PAGE
    }

    /// The status of a transaction, given its page.
    pub fn status(page: &[u8; BLCKSZ], xid: Xid) -> XidStatus {
        let within = xid.0 % XIDS_PER_PAGE;
        let byte = page.get(within as usize / 4).copied().unwrap_or(0);
        match byte >> (within % 4 * 2) & 3 {
            0 => XidStatus::InProgress,
            1 => XidStatus::Committed,
            2 => XidStatus::Aborted,
            _ => XidStatus::SubCommitted,
        }
    }
}

/// `pg_subtrans`. Only meaningful while a server runs: a start clears it.
pub mod subtrans {
    use super::*;

    /// The transactions on one page.
    pub const XIDS_PER_PAGE: u32 = BLCKSZ as u32 / 4;

    /// The page of a transaction.
    pub const fn page_of(xid: Xid) -> u32 {
        xid.0 / XIDS_PER_PAGE
    }

    /// The parent of a subtransaction, given its page; [`Xid::INVALID`] if it has none.
    pub fn parent(page: &[u8; BLCKSZ], xid: Xid) -> Xid {
        Xid(word(page, xid.0 % XIDS_PER_PAGE))
    }
}

/// `pg_multixact`.
pub mod multixact {
    use super::*;

    /// The multixacts on one page of `offsets`.
    pub const OFFSETS_PER_PAGE: u32 = BLCKSZ as u32 / 4;
    const GROUP_SIZE: u32 = 20;
    /// The members on one page of `members`.
    pub const MEMBERS_PER_PAGE: u32 = BLCKSZ as u32 / GROUP_SIZE * 4;

    /// The page of `offsets` that holds a multixact's first member's number.
    pub const fn offsets_page_of(multi: MultiXactId) -> u32 {
        multi.0 / OFFSETS_PER_PAGE
    }

    /// The number of a multixact's first member, given its page of `offsets`; 0 if never written.
    pub fn first_member(page: &[u8; BLCKSZ], multi: MultiXactId) -> u32 {
        word(page, multi.0 % OFFSETS_PER_PAGE)
    }

    /// The page of `members` that holds a member.
    pub const fn members_page_of(member: u32) -> u32 {
        member / MEMBERS_PER_PAGE
    }

    /// What a member does to the tuple (`MultiXactStatus`).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    #[allow(missing_docs, reason = "PostgreSQL's names")]
    pub enum MemberStatus {
        ForKeyShare,
        ForShare,
        ForNoKeyUpdate,
        ForUpdate,
        NoKeyUpdate,
        Update,
    }

    impl MemberStatus {
        /// Whether the member updated or deleted the tuple, and did not only lock it.
        pub const fn is_update(self) -> bool {
            matches!(self, Self::NoKeyUpdate | Self::Update)
        }
    }

    /// One member.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Member {
        /// The transaction. [`Xid::INVALID`] in the one slot that a wrap of the numbers leaves unused.
        pub xid: Xid,
        /// What it does.
        pub status: MemberStatus,
    }

    /// A member, given its page.
    pub fn member(page: &[u8; BLCKSZ], number: u32) -> Result<Member> {
        let within = number % MEMBERS_PER_PAGE;
        let (group, index) = (within / 4 * GROUP_SIZE, within % 4);
        let status = page.get((group + index) as usize).copied().unwrap_or(0);
        let status = match status {
            0 => MemberStatus::ForKeyShare,
            1 => MemberStatus::ForShare,
            2 => MemberStatus::ForNoKeyUpdate,
            3 => MemberStatus::ForUpdate,
            4 => MemberStatus::NoKeyUpdate,
            5 => MemberStatus::Update,
            _ => {
                return Err(Error::InvalidField {
                    what: "multixact member",
                    field: "status",
                    value: u64::from(status),
                });
            }
        };
        // Groups are 20 bytes: every xid lies at a multiple of 4.
        Ok(Member { xid: Xid(word(page, (group + 4) / 4 + index)), status })
    }
}

fn word(page: &[u8; BLCKSZ], index: u32) -> u32 {
    let (words, _) = page.as_chunks::<4>();
    words.get(index as usize).map_or(0, |word| u32::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
    use super::multixact::MemberStatus;
    use super::*;

    #[test]
    fn segments_are_named_in_hexadecimal() {
        assert_eq!(segment_name(0), "0000");
        assert_eq!(segment_name(31), "0000");
        assert_eq!(segment_name(32 * 0xABC + 5), "0ABC");
        assert_eq!(segment_name(32 * 0x14078), "14078");
        assert_eq!(offset_in_segment(33), 8192);
    }

    #[test]
    fn finds_a_transaction_s_bits() {
        let mut page = [0; BLCKSZ];
        page[1] = 0b1110_0100;
        let statuses: Vec<XidStatus> = (4..8).map(|xid| xact::status(&page, Xid(xid))).collect();
        use XidStatus::*;
        assert_eq!(statuses, [InProgress, Committed, Aborted, SubCommitted]);
        assert_eq!(xact::page_of(Xid(32768)), 1);
        assert_eq!(xact::status(&page, Xid(32768 + 5)), Committed);
        let _ = xact::status(&page, Xid(u32::MAX));
    }

    #[test]
    fn finds_a_multixact_s_members() {
        assert_eq!(multixact::MEMBERS_PER_PAGE, 1636);
        let mut page = [0; BLCKSZ];
        // The second group: statuses at 20, xids at 24.
        page[20..24].copy_from_slice(&[1, 5, 0, 9]);
        page[28..32].copy_from_slice(&777u32.to_le_bytes());
        let member = multixact::member(&page, 5).unwrap();
        assert_eq!((member.xid, member.status), (Xid(777), MemberStatus::Update));
        assert!(member.status.is_update());
        assert!(!multixact::member(&page, 4).unwrap().status.is_update());
        assert!(multixact::member(&page, 7).is_err());
        assert!(multixact::member(&page, 1635).is_ok());
        assert!(multixact::member(&page, u32::MAX).is_ok());
        let multi = MultiXactId(2048 * 3 + 1);
        page[4..8].copy_from_slice(&99u32.to_le_bytes());
        assert_eq!((multixact::offsets_page_of(multi), multixact::first_member(&page, multi)), (3, 99));
        assert_eq!(subtrans::parent(&page, Xid(2049)), Xid(99));
    }
}
