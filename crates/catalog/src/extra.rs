//! Rows that the lookups need beyond [`crate::rows`].

use stegodon_format::ids::Oid;

use crate::rows::Acl;

/// The columns of `pg_type` that [`stegodon_types::TypeDesc`] leaves out.
#[derive(Clone, Debug)]
pub struct TypeRow {
    /// `oid`
    pub oid: Oid,
    /// `typowner`
    pub owner: Oid,
    /// `typtype`: `b`, `c`, `d`, `e`, `m`, `p`, `r`.
    pub kind: u8,
    /// `typisdefined`: false for a shell type.
    pub defined: bool,
    /// `typrelid`
    pub relation: Oid,
    /// `typsubscript`
    pub subscript: Oid,
    /// `typinput`
    pub input: Oid,
    /// `typoutput`
    pub output: Oid,
    /// `typreceive`
    pub receive: Oid,
    /// `typsend`
    pub send: Oid,
    /// `typmodin`
    pub typmod_in: Oid,
    /// `typmodout`
    pub typmod_out: Oid,
    /// `typstorage`
    pub storage: u8,
    /// `typnotnull`: the domain's NOT NULL.
    pub not_null: bool,
    /// `typndims`: the domain's array dimensions.
    pub dimensions: i32,
    /// `typacl`
    pub acl: Option<Acl>,
}

/// `pg_opfamily`.
#[derive(Clone, Debug)]
pub struct OpFamily {
    /// `oid`
    pub oid: Oid,
    /// `opfmethod`
    pub access_method: Oid,
    /// `opfname`
    pub name: String,
    /// `opfnamespace`
    pub namespace: Oid,
}

/// `pg_enum`.
#[derive(Clone, Debug)]
pub struct EnumValue {
    /// `oid`
    pub oid: Oid,
    /// `enumtypid`
    pub enum_type: Oid,
    /// `enumsortorder`
    pub order: f32,
    /// `enumlabel`
    pub label: String,
}

/// `pg_range`.
#[derive(Clone, Copy, Debug)]
pub struct RangeRow {
    /// `rngtypid`
    pub range: Oid,
    /// `rngsubtype`
    pub subtype: Oid,
    /// `rngmultitypid`
    pub multirange: Oid,
    /// `rngcollation`
    pub collation: Oid,
    /// `rngsubopc`
    pub subtype_opclass: Oid,
    /// `rngcanonical`
    pub canonical: Oid,
}

/// `pg_db_role_setting`: settings of a role, a database, or a role in a database.
#[derive(Clone, Debug)]
pub struct RoleSetting {
    /// `setdatabase`, 0 for all.
    pub database: Oid,
    /// `setrole`, 0 for all.
    pub role: Oid,
    /// `setconfig`, as `name=value`.
    pub settings: Vec<String>,
}

/// An object of which only the name matters: text search configurations and dictionaries.
#[derive(Clone, Debug)]
pub struct NamedObject {
    /// `oid`
    pub oid: Oid,
    /// The name.
    pub name: String,
    /// The schema.
    pub namespace: Oid,
}
