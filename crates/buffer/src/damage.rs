//! What a reader does about pages that are damaged, and what it tells its user.
//!
//! ```text
//!                                 strict             ignore_checksum_failure    zero_damaged_pages
//!   checksum wrong, header sane   XX001              the page, warning          zeros, warning  (both set: the page)
//!   header damaged                XX001              XX001                      zeros, warning
//! ```
//!
//! As in PostgreSQL the reader that starts a read decides; what it made of the page is then in the pool for all, until the frame
//! is used for another. Nothing is written. Who merely waited for a stricter reader's failed read reads again by its own rule.

use std::fmt;

use stegodon_types::SqlState;

/// `zero_damaged_pages` and `ignore_checksum_failure`, which are settings of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DamagePolicy {
    /// A page that is none is taken for an empty one: in memory, not on disk.
    pub zero_damaged_pages: bool,
    /// A checksum that is wrong is no error as long as the page's header is sane.
    pub ignore_checksum_failure: bool,
}

impl DamagePolicy {
    pub(crate) fn is_lenient(self) -> bool {
        self.zero_damaged_pages || self.ignore_checksum_failure
    }
}

/// What was done about a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// Its checksum was not minded.
    ChecksumIgnored,
    /// It was replaced by zeros.
    Zeroed,
}

/// A warning for the user, of SQLSTATE [`PageWarning::STATE`]; displayed as PostgreSQL words it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageWarning {
    /// The block.
    pub block: u32,
    /// The fork's first file, relative to the data directory.
    pub path: String,
    /// What was done.
    pub repair: Repair,
}

impl PageWarning {
    /// Every such warning's SQLSTATE.
    pub const STATE: SqlState = SqlState::DataCorrupted;
}

impl fmt::Display for PageWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { block, path, repair } = self;
        match repair {
            Repair::ChecksumIgnored => write!(f, "ignoring checksum failure in block {block} of relation \"{path}\""),
            Repair::Zeroed => write!(f, "invalid page in block {block} of relation \"{path}\"; zeroing out page"),
        }
    }
}
