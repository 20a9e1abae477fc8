//! Where a relation's files lie in the data directory.
//!
//! ```text
//!   global/N                                 shared relations (pg_global)
//!   base/DB/N                                pg_default
//!   pg_tblspc/SPC/PG_18_202506291/DB/N       any other tablespace
//!
//!   then the fork: _fsm, _vm, _init          then the segment, from the second on: .1, .2, …
//! ```

use crate::ids::{DEFAULT_TABLESPACE, Fork, GLOBAL_TABLESPACE, Oid, RelFileLocator};
use crate::version::Version;

/// The control file.
pub const CONTROL_FILE: &str = "global/pg_control";
/// The file that holds the major version.
pub const VERSION_FILE: &str = "PG_VERSION";
/// The name of a relation map.
pub const RELATION_MAP: &str = "pg_filenode.map";
/// Transaction status.
pub const XACT_DIRECTORY: &str = "pg_xact";
/// Where multixacts' members begin.
pub const MULTIXACT_OFFSETS_DIRECTORY: &str = "pg_multixact/offsets";
/// Multixacts' members.
pub const MULTIXACT_MEMBERS_DIRECTORY: &str = "pg_multixact/members";
/// Prepared transactions.
pub const TWO_PHASE_DIRECTORY: &str = "pg_twophase";

/// The directory of a database in a tablespace, relative to the data directory.
pub fn database_directory(version: Version, tablespace: Oid, database: Oid) -> String {
    match tablespace {
        GLOBAL_TABLESPACE => "global".to_owned(),
        DEFAULT_TABLESPACE => format!("base/{database}"),
        _ => format!("pg_tblspc/{tablespace}/{}/{database}", version.tablespace_directory()),
    }
}

/// One file of a relation, relative to the data directory.
pub fn relation_file(version: Version, locator: RelFileLocator, fork: Fork, segment: u32) -> String {
    let directory = database_directory(version, locator.tablespace, locator.database);
    let (number, fork) = (locator.number, fork.suffix());
    if segment == 0 { format!("{directory}/{number}{fork}") } else { format!("{directory}/{number}{fork}.{segment}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::RelFileNumber;

    #[test]
    fn paths_are_postgresqls() {
        let file = |tablespace, database, fork, segment| {
            let number = RelFileNumber(16433);
            let locator = RelFileLocator { tablespace: Oid(tablespace), database: Oid(database), number };
            relation_file(Version::V18, locator, fork, segment)
        };
        assert_eq!(file(1663, 5, Fork::Main, 0), "base/5/16433");
        assert_eq!(file(1663, 5, Fork::VisibilityMap, 0), "base/5/16433_vm");
        assert_eq!(file(1664, 0, Fork::FreeSpaceMap, 2), "global/16433_fsm.2");
        assert_eq!(file(16500, 5, Fork::Main, 1), "pg_tblspc/16500/PG_18_202506291/5/16433.1");
    }
}
