//! The relation map, `pg_filenode.map`: the files of those catalogs that are needed to read `pg_class`.
//!
//! ```text
//!   0          4              8                                                       520 (15: 504)
//!   ┌──────────┬──────────────┬──────────────┬─────────────┬───┬───────────────────────┬─────────┐
//!   │ magic    │ num_mappings │ relation OID │ file number │ … │ room for 64 (15: 62)  │ CRC-32C │
//!   │ 0x592717 │ i32          │ u32          │ u32         │   │                       │         │
//!   └──────────┴──────────────┴──────────────┴─────────────┴───┴───────────────────────┴─────────┘
//! ```
//!
//! `global/` has one for the shared catalogs, every database one for its own.

use crate::bytes::Bytes;
use crate::error::{Error, Result};
use crate::ids::{Oid, RelFileNumber};
use crate::version::Version;

const WHAT: &str = "relation map";
const MAGIC: u32 = 0x592717;

/// A relation map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelationMap {
    mappings: Vec<(Oid, RelFileNumber)>,
}

impl RelationMap {
    /// The content of a `pg_filenode.map`.
    pub fn parse(content: &[u8], version: Version) -> Result<Self> {
        let bytes = Bytes::new(WHAT, content);
        let magic = bytes.u32(0)?;
        let count = bytes.u32(4)?;
        if magic != MAGIC {
            return Err(Error::InvalidField { what: WHAT, field: "magic", value: u64::from(magic) });
        }
        if count as usize > version.relation_map_capacity() || content.len() < version.relation_map_size() {
            return Err(Error::InvalidField { what: WHAT, field: "num_mappings", value: u64::from(count) });
        }
        let crc_at = 8 + version.relation_map_capacity() * 8;
        let stored = bytes.u32(crc_at)?;
        let computed = crc32c::crc32c(bytes.slice(0, crc_at)?);
        if stored != computed {
            return Err(Error::ChecksumMismatch { what: WHAT, stored, computed });
        }
        let mappings = (0..count as usize)
            .map(|i| Ok((Oid(bytes.u32(8 + i * 8)?), RelFileNumber(bytes.u32(12 + i * 8)?))))
            .collect::<Result<_>>()?;
        Ok(Self { mappings })
    }

    /// The file number of a mapped relation.
    pub fn get(&self, relation: Oid) -> Option<RelFileNumber> {
        self.mappings.iter().find(|(oid, _)| *oid == relation).map(|(_, number)| *number)
    }

    /// The relation that a file belongs to.
    pub fn relation_of(&self, number: RelFileNumber) -> Option<Oid> {
        self.mappings.iter().find(|(_, mapped)| *mapped == number).map(|(oid, _)| *oid)
    }

    /// All mappings.
    pub fn iter(&self) -> impl Iterator<Item = (Oid, RelFileNumber)> + '_ {
        self.mappings.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
    use super::*;
    use crate::testing::Random;

    const MAP: &[u8] = include_bytes!("../testdata/pg_filenode.map");

    #[test]
    fn reads_a_database_s_map() {
        let map = RelationMap::parse(MAP, Version::V18).unwrap();
        // What pg_relation_filenode says of each.
        let expected = include_str!("../testdata/pg_filenode.txt");
        let mut actual: Vec<String> = map.iter().map(|(oid, number)| format!("{oid}|{number}")).collect();
        actual.sort();
        let mut expected: Vec<&str> = expected.lines().collect();
        expected.sort_unstable();
        assert_eq!(actual, expected);
        assert!(map.get(Oid(1259)).is_some());
        assert_eq!(map.get(Oid(16384)), None);
    }

    #[test]
    fn knows_the_layouts_of_older_versions() {
        for (content, version) in [
            (&include_bytes!("../testdata/pg_filenode_15.map")[..], Version::V15),
            (include_bytes!("../testdata/pg_filenode_16.map"), Version::V16),
            (include_bytes!("../testdata/pg_filenode_17.map"), Version::V17),
        ] {
            let map = RelationMap::parse(content, version).unwrap();
            assert_eq!(map.get(Oid(1262)), Some(RelFileNumber(1262)));
        }
    }

    #[test]
    fn damage_is_an_error() {
        let mut random = Random::new(6);
        for _ in 0..2000 {
            let mut bytes = MAP.to_vec();
            random.damage(&mut bytes);
            if bytes != MAP {
                assert!(RelationMap::parse(&bytes, Version::V18).is_err());
            }
            let cut = random.below(MAP.len());
            assert!(RelationMap::parse(&MAP[..cut], Version::V18).is_err());
        }
    }
}
