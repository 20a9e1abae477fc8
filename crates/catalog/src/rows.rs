//! The catalogs' rows, as far as reading and answering needs them. Field names follow the columns' (without their prefix).

use std::sync::Arc;

use stegodon_format::ids::{AttrNumber, Oid, RelFileLocator, Xid};
use stegodon_types::{Align, Datum, Layout};

/// `pg_namespace`.
#[derive(Clone, Debug)]
pub struct Namespace {
    /// `oid`
    pub oid: Oid,
    /// `nspname`
    pub name: String,
    /// `nspowner`
    pub owner: Oid,
    /// `nspacl`
    pub acl: Option<Acl>,
}

/// One `aclitem`: who granted what to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AclItem {
    /// The role, 0 for PUBLIC.
    pub grantee: Oid,
    /// Who granted.
    pub grantor: Oid,
    /// Privilege bits in the lower half, grant options in the upper.
    pub privileges: u64,
}

/// An access control list.
pub type Acl = Arc<[AclItem]>;

/// `pg_class`, with what belongs to the relation from `pg_attribute`, `pg_attrdef`, `pg_index`, `pg_inherits` and
/// `pg_partitioned_table`.
#[derive(Clone, Debug)]
pub struct Relation {
    /// `oid`
    pub oid: Oid,
    /// `relname`
    pub name: String,
    /// `relnamespace`
    pub namespace: Oid,
    /// `reltype`: its row type.
    pub row_type: Oid,
    /// `reloftype`
    pub of_type: Oid,
    /// `relowner`
    pub owner: Oid,
    /// `relam`
    pub access_method: Oid,
    /// Where its files are; `None` for views, partitioned tables and others without storage.
    pub locator: Option<RelFileLocator>,
    /// `relpages`
    pub pages: i32,
    /// `reltuples`, -1 if never counted.
    pub tuples: f32,
    /// `relallvisible`
    pub all_visible: i32,
    /// `reltoastrelid`
    pub toast: Oid,
    /// `relhasindex`
    pub has_index: bool,
    /// `relisshared`
    pub shared: bool,
    /// `relpersistence`: `p`, `u`, `t`.
    pub persistence: u8,
    /// `relkind`: `r`, `i`, `S`, `t`, `v`, `m`, `c`, `f`, `p`, `I`.
    pub kind: u8,
    /// `relhasrules`
    pub has_rules: bool,
    /// `relhassubclass`
    pub has_subclass: bool,
    /// `relrowsecurity`
    pub row_security: bool,
    /// `relforcerowsecurity`
    pub force_row_security: bool,
    /// `relispopulated`
    pub populated: bool,
    /// `relispartition`
    pub is_partition: bool,
    /// `relfrozenxid`
    pub frozen_xid: Xid,
    /// `relacl`
    pub acl: Option<Acl>,
    /// `reloptions`, as `name=value`.
    pub options: Vec<String>,
    /// `relpartbound`: the bound's node tree.
    pub partition_bound: Option<Arc<str>>,
    /// The user columns, by `attnum` from 1, dropped ones included.
    pub attributes: Arc<[Attribute]>,
    /// OIDs of its indexes, in OID order.
    pub indexes: Vec<Oid>,
    /// Its children in `pg_inherits`, in `inhseqno`-independent OID order, not those being detached.
    pub children: Vec<Oid>,
    /// Its parents in `pg_inherits`, in `inhseqno` order.
    pub parents: Vec<Oid>,
    /// `pg_index`, where this is an index.
    pub index: Option<Arc<Index>>,
    /// `pg_partitioned_table`, where this is partitioned.
    pub partitioned: Option<Arc<Partitioned>>,
}

/// `pg_attribute` of a user column.
#[derive(Clone, Debug)]
pub struct Attribute {
    /// `attname`
    pub name: String,
    /// `attnum`
    pub number: AttrNumber,
    /// `atttypid`, 0 when dropped.
    pub type_oid: Oid,
    /// `atttypmod`
    pub typmod: i32,
    /// `attlen`
    pub len: i16,
    /// `attbyval`
    pub by_value: bool,
    /// `attalign`
    pub align: Align,
    /// `attstorage`
    pub storage: u8,
    /// `attcollation`
    pub collation: Oid,
    /// `attnotnull` (and, on 18, the constraint is valid)
    pub not_null: bool,
    /// `atthasdef`
    pub has_default: bool,
    /// `attgenerated`: 0, `s` or `v`.
    pub generated: u8,
    /// `attidentity`: 0, `a` or `d`.
    pub identity: u8,
    /// `attisdropped`
    pub dropped: bool,
    /// `attacl`
    pub acl: Option<Acl>,
    /// `attmissingval`: what rows older than the column read, `Some(None)` never stored.
    pub missing: Option<Datum>,
    /// The form of its type, `None` where the type is unsupported or the column dropped.
    pub layout: Option<Layout>,
    /// `pg_attrdef.adbin`: the default's (or generation expression's) node tree.
    pub default: Option<Arc<str>>,
    /// `attstattarget`/`attndims`-independent: the declared number of dimensions.
    pub ndims: i16,
}

/// `pg_index`.
#[derive(Clone, Debug)]
pub struct Index {
    /// `indexrelid`
    pub oid: Oid,
    /// `indrelid`
    pub table: Oid,
    /// `indnkeyatts`
    pub key_count: usize,
    /// `indkey`: the table's columns, 0 for an expression; INCLUDE columns last.
    pub columns: Vec<AttrNumber>,
    /// `indcollation`, one a key column.
    pub collations: Vec<Oid>,
    /// `indclass`, one a key column.
    pub opclasses: Vec<Oid>,
    /// `indoption` bit 0, one a key column.
    pub descending: Vec<bool>,
    /// `indoption` bit 1, one a key column.
    pub nulls_first: Vec<bool>,
    /// `indisunique`
    pub unique: bool,
    /// `indnullsnotdistinct`
    pub nulls_not_distinct: bool,
    /// `indisprimary`
    pub primary: bool,
    /// `indimmediate`
    pub immediate: bool,
    /// `indisvalid`
    pub valid: bool,
    /// `indisready`
    pub ready: bool,
    /// `indislive`
    pub live: bool,
    /// `indcheckxmin`: not usable by snapshots older than its row.
    pub check_xmin: bool,
    /// `indexprs`: node tree of the list of expressions.
    pub expressions: Option<Arc<str>>,
    /// `indpred`: node tree of the predicate.
    pub predicate: Option<Arc<str>>,
}

/// `pg_partitioned_table`.
#[derive(Clone, Debug)]
pub struct Partitioned {
    /// `partstrat`: `l`, `r`, `h`.
    pub strategy: u8,
    /// `partattrs`: 0 for an expression.
    pub columns: Vec<AttrNumber>,
    /// `partdefid`: the default partition, or 0.
    pub default_partition: Oid,
    /// `partclass`
    pub opclasses: Vec<Oid>,
    /// `partcollation`
    pub collations: Vec<Oid>,
    /// `partexprs`: node tree of the list of expressions.
    pub expressions: Option<Arc<str>>,
}

/// `pg_proc`.
#[derive(Clone, Debug)]
pub struct Proc {
    /// `oid`
    pub oid: Oid,
    /// `proname`
    pub name: String,
    /// `pronamespace`
    pub namespace: Oid,
    /// `proowner`
    pub owner: Oid,
    /// `prolang`
    pub language: Oid,
    /// `procost`
    pub cost: f32,
    /// `prorows`
    pub rows: f32,
    /// `provariadic`
    pub variadic: Oid,
    /// `prosupport`
    pub support: Oid,
    /// `prokind`: `f`, `p`, `a`, `w`.
    pub kind: u8,
    /// `prosecdef`
    pub security_definer: bool,
    /// `proleakproof`
    pub leakproof: bool,
    /// `proisstrict`
    pub strict: bool,
    /// `proretset`
    pub returns_set: bool,
    /// `provolatile`: `i`, `s`, `v`.
    pub volatility: u8,
    /// `proparallel`: `s`, `r`, `u`.
    pub parallel: u8,
    /// `pronargdefaults`
    pub default_count: usize,
    /// `prorettype`
    pub result_type: Oid,
    /// `proargtypes`: input arguments.
    pub arg_types: Vec<Oid>,
    /// `proallargtypes`
    pub all_arg_types: Option<Vec<Oid>>,
    /// `proargmodes`
    pub arg_modes: Option<Vec<u8>>,
    /// `proargnames`
    pub arg_names: Option<Vec<String>>,
    /// `proargdefaults`: node tree.
    pub arg_defaults: Option<Arc<str>>,
    /// `prosrc`
    pub source: Arc<str>,
    /// `prosqlbody`: node tree.
    pub sql_body: Option<Arc<str>>,
    /// `proacl`
    pub acl: Option<Acl>,
}

/// `pg_aggregate`.
#[derive(Clone, Debug)]
pub struct Aggregate {
    /// `aggfnoid`
    pub function: Oid,
    /// `aggkind`: `n`, `o`, `h`.
    pub kind: u8,
    /// `aggnumdirectargs`
    pub direct_args: usize,
    /// `aggtransfn`
    pub transition: Oid,
    /// `aggfinalfn`
    pub finalize: Oid,
    /// `aggcombinefn`
    pub combine: Oid,
    /// `aggsortop`: how min and max are read from an index.
    pub sort_operator: Oid,
    /// `aggtranstype`
    pub transition_type: Oid,
    /// `aggtransspace`
    pub transition_space_bytes: i32,
}

/// `pg_operator`.
#[derive(Clone, Debug)]
pub struct Operator {
    /// `oid`
    pub oid: Oid,
    /// `oprname`
    pub name: String,
    /// `oprnamespace`
    pub namespace: Oid,
    /// `oprkind`: `b`, `l`.
    pub kind: u8,
    /// `oprcanmerge`
    pub can_merge: bool,
    /// `oprcanhash`
    pub can_hash: bool,
    /// `oprleft`, 0 for a prefix operator.
    pub left: Oid,
    /// `oprright`
    pub right: Oid,
    /// `oprresult`
    pub result: Oid,
    /// `oprcom`
    pub commutator: Oid,
    /// `oprnegate`
    pub negator: Oid,
    /// `oprcode`
    pub function: Oid,
    /// `oprrest`
    pub restriction: Oid,
    /// `oprjoin`
    pub join: Oid,
}

/// `pg_cast`.
#[derive(Clone, Copy, Debug)]
pub struct Cast {
    /// `castsource`
    pub source: Oid,
    /// `casttarget`
    pub target: Oid,
    /// `castfunc`, 0 for binary-coercible or through I/O.
    pub function: Oid,
    /// `castcontext`: `i`, `a`, `e`.
    pub context: u8,
    /// `castmethod`: `f`, `i`, `b`.
    pub method: u8,
}

/// `pg_opclass`.
#[derive(Clone, Debug)]
pub struct OpClass {
    /// `oid`
    pub oid: Oid,
    /// `opcmethod`
    pub access_method: Oid,
    /// `opcname`
    pub name: String,
    /// `opcnamespace`
    pub namespace: Oid,
    /// `opcfamily`
    pub family: Oid,
    /// `opcintype`
    pub input_type: Oid,
    /// `opcdefault`
    pub default: bool,
    /// `opckeytype`
    pub key_type: Oid,
}

/// `pg_amop`.
#[derive(Clone, Copy, Debug)]
pub struct AmOp {
    /// `amopfamily`
    pub family: Oid,
    /// `amoplefttype`
    pub left: Oid,
    /// `amoprighttype`
    pub right: Oid,
    /// `amopstrategy`
    pub strategy: u16,
    /// `amoppurpose`: `s`, `o`.
    pub purpose: u8,
    /// `amopopr`
    pub operator: Oid,
    /// `amopmethod`
    pub access_method: Oid,
}

/// `pg_amproc`.
#[derive(Clone, Copy, Debug)]
pub struct AmProc {
    /// `amprocfamily`
    pub family: Oid,
    /// `amproclefttype`
    pub left: Oid,
    /// `amprocrighttype`
    pub right: Oid,
    /// `amprocnum`
    pub number: u16,
    /// `amproc`
    pub function: Oid,
}

/// `pg_collation`.
#[derive(Clone, Debug)]
pub struct CollationRow {
    /// `oid`
    pub oid: Oid,
    /// `collname`
    pub name: String,
    /// `collnamespace`
    pub namespace: Oid,
    /// `collprovider`: `d` (the database's), `b`, `c`, `i`.
    pub provider: u8,
    /// `collisdeterministic`
    pub deterministic: bool,
    /// `collencoding`, -1 for any.
    pub encoding: i32,
    /// `collcollate`
    pub collate: Option<String>,
    /// `collctype`
    pub ctype: Option<String>,
    /// `colllocale`
    pub locale: Option<String>,
    /// `collversion`
    pub version: Option<String>,
}

/// `pg_database`.
#[derive(Clone, Debug)]
pub struct Database {
    /// `oid`
    pub oid: Oid,
    /// `datname`
    pub name: String,
    /// `datdba`
    pub owner: Oid,
    /// `encoding`
    pub encoding: i32,
    /// `datlocprovider`: `b`, `c`, `i`.
    pub locale_provider: u8,
    /// `datallowconn`
    pub allow_connections: bool,
    /// `datistemplate`
    pub is_template: bool,
    /// `datconnlimit`; -2 marks a database whose DROP was interrupted.
    pub connection_limit: i32,
    /// `dattablespace`
    pub tablespace: Oid,
    /// `datcollate`
    pub collate: String,
    /// `datctype`
    pub ctype: String,
    /// `datlocale`
    pub locale: Option<String>,
    /// `datcollversion`
    pub collation_version: Option<String>,
    /// `datacl`
    pub acl: Option<Acl>,
}

/// `pg_authid`.
#[derive(Clone, Debug)]
pub struct Role {
    /// `oid`
    pub oid: Oid,
    /// `rolname`
    pub name: String,
    /// `rolsuper`
    pub superuser: bool,
    /// `rolinherit`
    pub inherit: bool,
    /// `rolcanlogin`
    pub can_login: bool,
    /// `rolbypassrls`
    pub bypass_row_security: bool,
    /// `rolconnlimit`
    pub connection_limit: i32,
    /// `rolpassword`
    pub password: Option<String>,
    /// `rolvaliduntil`, microseconds since 2000.
    pub valid_until_us: Option<i64>,
    /// The roles it is a member of: role, whether it inherits (18: `inherit_option`), whether it may SET ROLE.
    pub member_of: Vec<(Oid, bool, bool)>,
}

/// `pg_rewrite`.
#[derive(Clone, Debug)]
pub struct Rule {
    /// `rulename`
    pub name: String,
    /// `ev_class`
    pub relation: Oid,
    /// `ev_type`: `1` SELECT …
    pub event: u8,
    /// `is_instead`
    pub instead: bool,
    /// `ev_action`: node tree.
    pub action: Arc<str>,
}

/// `pg_constraint`, check, not-null, unique and primary key constraints.
#[derive(Clone, Debug)]
pub struct Constraint {
    /// `oid`
    pub oid: Oid,
    /// `conname`
    pub name: String,
    /// `contype`: `c`, `f`, `n`, `p`, `u`, `x`, `t`.
    pub kind: u8,
    /// `conrelid`
    pub relation: Oid,
    /// `contypid`: the domain.
    pub domain: Oid,
    /// `conindid`
    pub index: Oid,
    /// `convalidated`
    pub validated: bool,
    /// `conenforced` (18), else true.
    pub enforced: bool,
    /// `connoinherit`
    pub no_inherit: bool,
    /// `conkey`
    pub columns: Vec<AttrNumber>,
    /// `conbin`: node tree.
    pub expression: Option<Arc<str>>,
}

/// `pg_statistic`: one column's statistics.
#[derive(Clone, Debug)]
pub struct Statistic {
    /// `stanullfrac`
    pub null_fraction: f32,
    /// `stawidth`
    pub width_bytes: i32,
    /// `stadistinct`: a count, or minus a fraction of the rows.
    pub distinct: f32,
    /// The used ones of the five slots.
    pub slots: Vec<StatisticSlot>,
}

/// One slot of `pg_statistic`.
#[derive(Clone, Debug)]
pub struct StatisticSlot {
    /// `stakind`: 1 MCV, 2 histogram, 3 correlation, 4 MCELEM, 5 DECHIST, 6 range length, 7 bounds histogram.
    pub kind: i16,
    /// `staop`
    pub operator: Oid,
    /// `stacoll`
    pub collation: Oid,
    /// `stanumbers`
    pub numbers: Vec<f32>,
    /// The type of `values`' elements.
    pub value_type: Oid,
    /// `stavalues`
    pub values: Vec<Datum>,
}

/// `pg_language`.
#[derive(Clone, Debug)]
pub struct Language {
    /// `oid`
    pub oid: Oid,
    /// `lanname`
    pub name: String,
}

/// `pg_am`.
#[derive(Clone, Debug)]
pub struct AccessMethod {
    /// `oid`
    pub oid: Oid,
    /// `amname`
    pub name: String,
    /// `amtype`: `t`, `i`.
    pub kind: u8,
}

/// `pg_tablespace`.
#[derive(Clone, Debug)]
pub struct Tablespace {
    /// `oid`
    pub oid: Oid,
    /// `spcname`
    pub name: String,
    /// `spcowner`
    pub owner: Oid,
    /// `spcacl`
    pub acl: Option<Acl>,
    /// `spcoptions`
    pub options: Vec<String>,
}
