//! `pg_multixact`: the transactions behind a multixact.
//!
//! ```text
//!   offsets   multi n ──▸ number of its first member       multi n + 1 ──▸ where n's members end
//!   members   number  ──▸ (transaction, what it does to the tuple)
//! ```
//!
//! The newest multixact's members end where the next would begin, which `pg_control` knows. Numbers of multixacts and of
//! members wrap at 2^32 and skip 0.

use std::sync::Arc;

use stegodon_format::control::CheckPoint;
use stegodon_format::ids::{MultiXactId, Xid};
use stegodon_format::paths::{MULTIXACT_MEMBERS_DIRECTORY, MULTIXACT_OFFSETS_DIRECTORY};
use stegodon_format::slru::multixact::{self, Member};
use stegodon_io::DataDirectory;

use crate::error::{Error, Result};
use crate::slru::Slru;

/// No multixact has more members than this: there is one for each transaction and subtransaction that held a lock.
const MEMBERS_MAX: u32 = 1 << 24;

/// The multixacts that a tuple may name.
pub struct Multixacts {
    offsets: Slru,
    members: Slru,
    oldest: MultiXactId,
    next: MultiXactId,
    next_member: u32,
}

impl Multixacts {
    /// The multixacts of a data directory that was left at `checkpoint`.
    pub fn new(directory: &Arc<DataDirectory>, checkpoint: &CheckPoint) -> Self {
        let last_offsets = multixact::offsets_page_of(MultiXactId(u32::MAX));
        let last_members = multixact::members_page_of(u32::MAX);
        Self {
            offsets: Slru::new(Arc::clone(directory), MULTIXACT_OFFSETS_DIRECTORY, last_offsets),
            members: Slru::new(Arc::clone(directory), MULTIXACT_MEMBERS_DIRECTORY, last_members),
            oldest: checkpoint.oldest_multi,
            next: skip_zero(checkpoint.next_multi),
            next_member: checkpoint.next_multi_offset,
        }
    }

    /// The members of a multixact.
    pub fn members(&self, multi: MultiXactId) -> Result<impl Iterator<Item = Result<Member>> + '_> {
        let (first, count) = self.extent(multi)?;
        Ok((0..count).filter_map(move |index| {
            let number = first.wrapping_add(index);
            let page = match self.members.page(multixact::members_page_of(number), multi.0) {
                Ok(page) => page,
                Err(error) => return Some(Err(error)),
            };
            match multixact::member(page, number) {
                // The slot of member 0 stays empty where the numbers wrap.
                Ok(member) if member.xid == Xid::INVALID => None,
                Ok(member) => Some(Ok(member)),
                Err(_) => Some(Err(Error::MultiXactCorrupt { multi, what: "member status" })),
            }
        }))
    }

    /// The transaction that updated or deleted the tuple, if any member did.
    pub fn update_xid(&self, multi: MultiXactId) -> Result<Option<Xid>> {
        for member in self.members(multi)? {
            let member = member?;
            if member.status.is_update() {
                return Ok(Some(member.xid));
            }
        }
        Ok(None)
    }

    /// The number of the first member, and how many there are.
    fn extent(&self, multi: MultiXactId) -> Result<(u32, u32)> {
        if multi.0 == 0 {
            // Names nothing, and so nobody.
            return Ok((0, 0));
        }
        if precedes(multi, self.oldest) {
            return Err(Error::MultiXactTooOld(multi));
        }
        if !precedes(multi, self.next) {
            return Err(Error::MultiXactInFuture(multi));
        }
        let first = self.first_member(multi, multi)?;
        let following = skip_zero(MultiXactId(multi.0.wrapping_add(1)));
        let end = if following == self.next { self.next_member } else { self.first_member(following, multi)? };
        if first == 0 {
            return Err(Error::MultiXactCorrupt { multi, what: "offset" });
        }
        if end == 0 {
            return Err(Error::MultiXactCorrupt { multi, what: "next offset" });
        }
        let count = end.wrapping_sub(first);
        if count == 0 || count > MEMBERS_MAX {
            return Err(Error::MultiXactCorrupt { multi, what: "number of members" });
        }
        Ok((first, count))
    }

    fn first_member(&self, of: MultiXactId, wanted_for: MultiXactId) -> Result<u32> {
        let page = self.offsets.page(multixact::offsets_page_of(of), wanted_for.0)?;
        Ok(multixact::first_member(page, of))
    }
}

const fn skip_zero(multi: MultiXactId) -> MultiXactId {
    if multi.0 == 0 { MultiXactId(1) } else { multi }
}

const fn precedes(a: MultiXactId, b: MultiXactId) -> bool {
    (a.0.wrapping_sub(b.0) as i32) < 0
}
