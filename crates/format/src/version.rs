//! Everything that differs between PostgreSQL 15, 16, 17 and 18 on disk, in one place.
//!
//! ```text
//!                                    15          16          17          18
//!   catalog version                  202209061   202307071   202406281   202506291
//!   pg_control: version              1300        1300        1700        1800
//!               default_char_sign.   –           –           –           256
//!               nonce, CRC at        256, 288    256, 288    256, 288    257, 292
//!               checkpoint wal_level –           –           60          60
//!   relation map: mappings, bytes    62, 512     64, 524     64, 524     64, 524
//!   pg_twophase: file name's digits  8           8           16          16
//!                statistics item     12 bytes    12          12          16
//!   multixact offset                 4 bytes     4           4           4
//! ```
//!
//! Pages, heap tuples, varlenas, nbtree, the maps and `pg_xact` are the same in all four.

use crate::error::{Error, Result};

/// A major version of PostgreSQL whose layout is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// PostgreSQL 15.
    V15,
    /// PostgreSQL 16.
    V16,
    /// PostgreSQL 17.
    V17,
    /// PostgreSQL 18.
    #[default]
    V18,
}

impl Version {
    /// The versions whose directories are accepted.
    pub const SUPPORTED: &'static [Version] = &[Version::V15, Version::V16, Version::V17, Version::V18];

    /// From the content of a file `PG_VERSION`: the major version and a newline. As in PostgreSQL, what follows the number
    /// does not matter.
    pub fn from_pg_version(content: &[u8]) -> Result<Version> {
        let text = String::from_utf8_lossy(content);
        let text = text.trim_ascii_start();
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let text = text.get(..digits).unwrap_or_default();
        let known = Self::SUPPORTED.iter().copied().find(|v| v.major().to_string() == text);
        known.ok_or_else(|| Error::UnsupportedVersion(text.chars().take(16).collect()))
    }

    /// The major version's number.
    pub const fn major(self) -> u32 {
        match self {
            Version::V15 => 15,
            Version::V16 => 16,
            Version::V17 => 17,
            Version::V18 => 18,
        }
    }

    /// The minor release whose answers ours were compared with. A directory does not say which one made it.
    pub const fn minor(self) -> u32 {
        match self {
            Version::V15 => 18,
            Version::V16 => 14,
            Version::V17 => 10,
            Version::V18 => 4,
        }
    }

    /// `CATALOG_VERSION_NO`: the version of the system catalogs' content.
    pub const fn catalog_version(self) -> u32 {
        match self {
            Version::V15 => 202209061,
            Version::V16 => 202307071,
            Version::V17 => 202406281,
            Version::V18 => 202506291,
        }
    }

    /// From a control file's `catalog_version_no`.
    pub fn from_catalog_version(number: u32) -> Option<Version> {
        Self::SUPPORTED.iter().copied().find(|v| v.catalog_version() == number)
    }

    /// `PG_CONTROL_VERSION`: the version of the control file's layout.
    pub const fn control_version(self) -> u32 {
        match self {
            Version::V15 | Version::V16 => 1300,
            Version::V17 => 1700,
            Version::V18 => 1800,
        }
    }

    /// Where `pg_control`'s `default_char_signedness` lies, where there is one.
    pub(crate) const fn control_char_signedness(self) -> Option<usize> {
        match self {
            Version::V15 | Version::V16 | Version::V17 => None,
            Version::V18 => Some(256),
        }
    }

    /// Whether the checkpoint in `pg_control` has a `wal_level` (where the others have padding).
    pub(crate) const fn checkpoint_has_wal_level(self) -> bool {
        matches!(self, Version::V17 | Version::V18)
    }

    /// Where `pg_control`'s `mock_authentication_nonce` starts.
    pub(crate) const fn control_nonce(self) -> usize {
        match self {
            Version::V15 | Version::V16 | Version::V17 => 256,
            Version::V18 => 257,
        }
    }

    /// Where `pg_control`'s CRC lies: it covers all before it.
    pub(crate) const fn control_crc(self) -> usize {
        match self {
            Version::V15 | Version::V16 | Version::V17 => 288,
            Version::V18 => 292,
        }
    }

    /// How many mappings a relation map has room for.
    pub(crate) const fn relation_map_capacity(self) -> usize {
        match self {
            Version::V15 => 62,
            Version::V16 | Version::V17 | Version::V18 => 64,
        }
    }

    /// The size of `pg_filenode.map` in bytes.
    pub const fn relation_map_size(self) -> usize {
        match self {
            // Padded to a sector.
            Version::V15 => 512,
            Version::V16 | Version::V17 | Version::V18 => 524,
        }
    }

    /// The number of hexadecimal digits of a file name in `pg_twophase`; from 17 on the epoch is part of it.
    pub const fn two_phase_name_len(self) -> usize {
        match self {
            Version::V15 | Version::V16 => 8,
            Version::V17 | Version::V18 => 16,
        }
    }

    /// The size of one dropped statistics entry in a two-phase state file.
    pub(crate) const fn two_phase_stats_item_size(self) -> usize {
        match self {
            Version::V15 | Version::V16 | Version::V17 => 12,
            Version::V18 => 16,
        }
    }

    /// The directory that each tablespace has for this version: `PG_18_202506291`.
    pub fn tablespace_directory(self) -> String {
        format!("PG_{}_{}", self.major(), self.catalog_version())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
    use super::*;

    #[test]
    fn four_versions_are_accepted() {
        for (content, version) in
            [(&b"15\n"[..], Version::V15), (b"16", Version::V16), (b"17\n", Version::V17), (b"18\n", Version::V18)]
        {
            assert_eq!(Version::from_pg_version(content).unwrap(), version);
        }
        for content in [&b"14\n"[..], b"1", b"9.6\n", b"19devel", b"", b"\xff\xfe"] {
            assert!(matches!(Version::from_pg_version(content), Err(Error::UnsupportedVersion(_))));
        }
    }

    #[test]
    fn the_tablespace_directory_is_postgresqls() {
        assert_eq!(Version::V18.tablespace_directory(), "PG_18_202506291");
    }
}
