//! The columns of the three catalogs that must be read before any catalog can say what its columns are.
//!
//! One list a catalog, in the columns' order; a column that is not in all versions says in which it is. A column that
//! moved stands at each of its places.

use stegodon_format::ids::Oid;
use stegodon_format::version::Version;
use stegodon_heap::{Attribute, TupleDesc};
use stegodon_types::{Align, Layout, SqlError, SqlResult, builtin};

pub(crate) const PG_DATABASE: Oid = Oid(1262);
pub(crate) const PG_CLASS: Oid = Oid(1259);
pub(crate) const PG_ATTRIBUTE: Oid = Oid(1249);

/// The columns' types.
mod ty {
    pub(super) const BOOL: u32 = 16;
    pub(super) const CHAR: u32 = 18;
    pub(super) const NAME: u32 = 19;
    pub(super) const INT2: u32 = 21;
    pub(super) const INT4: u32 = 23;
    pub(super) const TEXT: u32 = 25;
    pub(super) const OID: u32 = 26;
    pub(super) const XID: u32 = 28;
    pub(super) const NODE_TREE: u32 = 194;
    pub(super) const FLOAT4: u32 = 700;
    pub(super) const TEXTS: u32 = 1009;
    pub(super) const ACL: u32 = 1034;
    pub(super) const ANYARRAY: u32 = 2277;
}
use Version::{V15, V16, V17, V18};
use ty::*;

/// A column: its name, its type, the first and the last version that have it here.
struct Column(&'static str, u32, Version, Version);

const fn all(name: &'static str, type_oid: u32) -> Column {
    Column(name, type_oid, V15, V18)
}

const DATABASE_COLUMNS: &[Column] = &[
    all("oid", OID),
    all("datname", NAME),
    all("datdba", OID),
    all("encoding", INT4),
    all("datlocprovider", CHAR),
    all("datistemplate", BOOL),
    all("datallowconn", BOOL),
    Column("dathasloginevt", BOOL, V17, V18),
    all("datconnlimit", INT4),
    all("datfrozenxid", XID),
    all("datminmxid", XID),
    all("dattablespace", OID),
    all("datcollate", TEXT),
    all("datctype", TEXT),
    Column("daticulocale", TEXT, V15, V16),
    Column("datlocale", TEXT, V17, V18),
    Column("daticurules", TEXT, V16, V18),
    all("datcollversion", TEXT),
    all("datacl", ACL),
];

const CLASS_COLUMNS: &[Column] = &[
    all("oid", OID),
    all("relname", NAME),
    all("relnamespace", OID),
    all("reltype", OID),
    all("reloftype", OID),
    all("relowner", OID),
    all("relam", OID),
    all("relfilenode", OID),
    all("reltablespace", OID),
    all("relpages", INT4),
    all("reltuples", FLOAT4),
    all("relallvisible", INT4),
    Column("relallfrozen", INT4, V18, V18),
    all("reltoastrelid", OID),
    all("relhasindex", BOOL),
    all("relisshared", BOOL),
    all("relpersistence", CHAR),
    all("relkind", CHAR),
    all("relnatts", INT2),
    all("relchecks", INT2),
    all("relhasrules", BOOL),
    all("relhastriggers", BOOL),
    all("relhassubclass", BOOL),
    all("relrowsecurity", BOOL),
    all("relforcerowsecurity", BOOL),
    all("relispopulated", BOOL),
    all("relreplident", CHAR),
    all("relispartition", BOOL),
    all("relrewrite", OID),
    all("relfrozenxid", XID),
    all("relminmxid", XID),
    all("relacl", ACL),
    all("reloptions", TEXTS),
    all("relpartbound", NODE_TREE),
];

const ATTRIBUTE_COLUMNS: &[Column] = &[
    all("attrelid", OID),
    all("attname", NAME),
    all("atttypid", OID),
    Column("attstattarget", INT4, V15, V15),
    all("attlen", INT2),
    all("attnum", INT2),
    Column("attndims", INT4, V15, V15),
    Column("attcacheoff", INT4, V15, V17),
    all("atttypmod", INT4),
    Column("attndims", INT2, V16, V18),
    all("attbyval", BOOL),
    all("attalign", CHAR),
    all("attstorage", CHAR),
    all("attcompression", CHAR),
    all("attnotnull", BOOL),
    all("atthasdef", BOOL),
    all("atthasmissing", BOOL),
    all("attidentity", CHAR),
    all("attgenerated", CHAR),
    all("attisdropped", BOOL),
    all("attislocal", BOOL),
    Column("attinhcount", INT4, V15, V15),
    Column("attinhcount", INT2, V16, V18),
    Column("attstattarget", INT2, V16, V16),
    all("attcollation", OID),
    Column("attstattarget", INT2, V17, V18),
    all("attacl", ACL),
    all("attoptions", TEXTS),
    all("attfdwoptions", TEXTS),
    all("attmissingval", ANYARRAY),
];

/// How a catalog's column is read: a varlena as its payload whatever its type, all else by the table of types.
pub(crate) fn column(name: &str, type_oid: u32, len: i16, align: Align) -> Attribute {
    let layout = match len {
        -1 => Some(Layout::Bytes),
        _ => builtin(Oid(type_oid)).and_then(|row| row.layout),
    };
    Attribute::new(name, Oid(type_oid), len, align, layout)
}

/// The tuples of `pg_database`, `pg_class` or `pg_attribute` in a directory of `version`.
pub(crate) fn bootstrap_desc(relation: Oid, version: Version) -> SqlResult<TupleDesc> {
    let (name, columns) = match relation {
        PG_DATABASE => ("pg_database", DATABASE_COLUMNS),
        PG_CLASS => ("pg_class", CLASS_COLUMNS),
        PG_ATTRIBUTE => ("pg_attribute", ATTRIBUTE_COLUMNS),
        other => return Err(SqlError::internal(format!("catalog {other} is not known beforehand"))),
    };
    let attributes = columns
        .iter()
        .filter(|Column(_, _, first, last)| (*first..=*last).contains(&version))
        .map(|&Column(name, type_oid, ..)| match (type_oid, builtin(Oid(type_oid))) {
            // Arrays and anyarray have no row: varlenas, of which only aclitem[] and anyarray are aligned to 8. (Before
            // 16 aclitem[] said 4 in pg_type and its columns: its elements had no 64-bit mask.)
            (ACL, _) if version == V15 => column(name, type_oid, -1, Align::Int),
            (ACL | ANYARRAY, _) => column(name, type_oid, -1, Align::Double),
            (_, None) => column(name, type_oid, -1, Align::Int),
            (_, Some(row)) => column(name, type_oid, row.len, row.align),
        })
        .collect();
    Ok(TupleDesc::new(name, relation, attributes)?)
}
