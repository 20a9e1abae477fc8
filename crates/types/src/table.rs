//! The table of types: one row for each built-in type.
//!
//! ```text
//!  OID → TypeRow { what pg_type says of it, Layout, &TypeOps } → text and binary form, compare, key, hash
//! ```
//!
//! Arrays have no rows: an array type is its element's `array`, and is handled as every array is. Enums, composites,
//! domains and ranges made by users are handled by their [`TypeKind`] alone.

use stegodon_format::ids::Oid;

use crate::Layout::{self, Bool, Bytes, Char, Fixed, Float32, Float64, Int16, Int32, Int64, Name, UInt32, UInt64};
use crate::scalar::pseudo::{PSEUDO, UNSUPPORTED, VOID};
use crate::scalar::text::CSTRING;
use crate::{Align, TypeDesc, TypeKind, TypeOps, array, datetime, multirange, numeric, oids, range, record, scalar};

/// `pg_catalog`.
pub const PG_CATALOG: Oid = Oid(11);

/// What sort of type a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKind {
    /// A base type.
    Base,
    /// A pseudo-type.
    Pseudo,
    /// A range over this subtype.
    Range(Oid),
    /// A multirange over this range type.
    Multirange(Oid),
}

/// One built-in type.
#[derive(Clone, Copy, Debug)]
pub struct TypeRow {
    /// Its OID.
    pub oid: Oid,
    /// Its name.
    pub name: &'static str,
    /// `typlen`.
    pub len: i16,
    /// `typbyval`.
    pub by_value: bool,
    /// What sort of type.
    pub kind: RowKind,
    /// `typcategory`.
    pub category: u8,
    /// `typispreferred`.
    pub preferred: bool,
    /// `typdelim`.
    pub delimiter: u8,
    /// `typelem`.
    pub element: Oid,
    /// The array type over it, 0 for none.
    pub array: Oid,
    /// `typalign`.
    pub align: Align,
    /// `typcollation`.
    pub collation: Oid,
    /// How its values lie; `None` where the type is not supported.
    pub layout: Option<Layout>,
    /// What it can do.
    pub ops: &'static TypeOps,
}

impl TypeRow {
    /// The row as a description.
    pub fn desc(&self) -> TypeDesc {
        TypeDesc {
            oid: self.oid,
            name: self.name.to_owned(),
            namespace: PG_CATALOG,
            len: self.len,
            align: self.align,
            by_value: self.by_value,
            kind: match self.kind {
                RowKind::Base => TypeKind::Base,
                RowKind::Pseudo => TypeKind::Pseudo,
                RowKind::Range(subtype) => TypeKind::Range { subtype, collation: Oid::INVALID },
                RowKind::Multirange(range) => TypeKind::Multirange { range },
            },
            category: self.category,
            preferred: self.preferred,
            delimiter: self.delimiter,
            element: self.element,
            array: self.array,
            collation: self.collation,
            layout: self.layout,
        }
    }

    /// The description of the array type over it, where there is one.
    pub fn array_desc(&self) -> Option<TypeDesc> {
        self.array.is_valid().then(|| TypeDesc {
            oid: self.array,
            name: format!("_{}", self.name),
            namespace: PG_CATALOG,
            len: -1,
            align: if self.align == Align::Double { Align::Double } else { Align::Int },
            by_value: false,
            kind: TypeKind::Array { element: self.oid },
            category: b'A',
            preferred: false,
            delimiter: self.delimiter,
            element: self.oid,
            array: Oid::INVALID,
            collation: self.collation,
            layout: self.layout.map(|_| Layout::Bytes),
        })
    }
}

/// The row of a built-in type that is no array.
pub fn builtin(oid: Oid) -> Option<&'static TypeRow> {
    TYPES.binary_search_by_key(&oid, |row| row.oid).ok().and_then(|at| TYPES.get(at))
}

/// The row of the element of a built-in array type.
pub fn builtin_element(array: Oid) -> Option<&'static TypeRow> {
    if !array.is_valid() {
        return None;
    }
    TYPES.iter().find(|row| row.array == array)
}

#[allow(clippy::too_many_arguments)]
const fn base(
    oid: Oid,
    name: &'static str,
    len: i16,
    by_value: bool,
    category: u8,
    preferred: bool,
    delimiter: u8,
    element: u32,
    array: u32,
    align: Align,
    collation: u32,
    layout: Option<Layout>,
    ops: &'static TypeOps,
) -> TypeRow {
    TypeRow {
        oid,
        name,
        len,
        by_value,
        kind: RowKind::Base,
        category,
        preferred,
        delimiter,
        element: Oid(element),
        array: Oid(array),
        align,
        collation: Oid(collation),
        layout,
        ops,
    }
}

const fn pseudo(
    oid: Oid,
    name: &'static str,
    len: i16,
    element_array: (u32, u32),
    align: Align,
    layout: Option<Layout>,
    ops: &'static TypeOps,
) -> TypeRow {
    let (element, array) = element_array;
    let by_value = len > 0;
    let row = base(oid, name, len, by_value, b'P', false, b',', element, array, align, 0, layout, ops);
    TypeRow { kind: RowKind::Pseudo, ..row }
}

const fn a_range(oid: Oid, name: &'static str, array: u32, align: Align, subtype: Oid) -> TypeRow {
    let row = base(oid, name, -1, false, b'R', false, b',', 0, array, align, 0, Some(Bytes), &range::OPS);
    TypeRow { kind: RowKind::Range(subtype), ..row }
}

const fn a_multirange(oid: Oid, name: &'static str, array: u32, align: Align, range: Oid) -> TypeRow {
    let row = base(oid, name, -1, false, b'R', false, b',', 0, array, align, 0, Some(Bytes), &multirange::OPS);
    TypeRow { kind: RowKind::Multirange(range), ..row }
}

/// Every built-in type but arrays and row types, by OID.
#[rustfmt::skip]
pub static TYPES: &[TypeRow] = &[
    base(oids::BOOL, "bool", 1, true, b'B', true, b',', 0, 1000, Align::Char, 0, Some(Bool), &scalar::boolean::OPS),
    base(oids::BYTEA, "bytea", -1, false, b'U', false, b',', 0, 1001, Align::Int, 0, Some(Bytes), &scalar::bytea::OPS),
    base(oids::CHAR, "char", 1, true, b'Z', false, b',', 0, 1002, Align::Char, 0, Some(Char), &scalar::text::CHAR),
    base(oids::NAME, "name", 64, false, b'S', false, b',', 18, 1003, Align::Char, 950, Some(Name), &scalar::text::NAME),
    base(oids::INT8, "int8", 8, true, b'N', false, b',', 0, 1016, Align::Double, 0, Some(Int64), &scalar::int::int8::OPS),
    base(oids::INT2, "int2", 2, true, b'N', false, b',', 0, 1005, Align::Short, 0, Some(Int16), &scalar::int::int2::OPS),
    base(oids::INT2VECTOR, "int2vector", -1, false, b'A', false, b',', 21, 1006, Align::Int, 0, Some(Bytes), &array::vector::INT2VECTOR),
    base(oids::INT4, "int4", 4, true, b'N', false, b',', 0, 1007, Align::Int, 0, Some(Int32), &scalar::int::int4::OPS),
    base(oids::REGPROC, "regproc", 4, true, b'N', false, b',', 0, 1008, Align::Int, 0, Some(UInt32), &scalar::reg::OPS),
    base(oids::TEXT, "text", -1, false, b'S', true, b',', 0, 1009, Align::Int, 100, Some(Bytes), &scalar::text::TEXT),
    base(oids::OID, "oid", 4, true, b'N', true, b',', 0, 1028, Align::Int, 0, Some(UInt32), &scalar::ids::OID),
    base(oids::TID, "tid", 6, false, b'U', false, b',', 0, 1010, Align::Short, 0, Some(Fixed(6)), &scalar::ids::TID),
    base(oids::XID, "xid", 4, true, b'U', false, b',', 0, 1011, Align::Int, 0, Some(UInt32), &scalar::ids::XID),
    base(oids::CID, "cid", 4, true, b'U', false, b',', 0, 1012, Align::Int, 0, Some(UInt32), &scalar::ids::XID),
    base(oids::OIDVECTOR, "oidvector", -1, false, b'A', false, b',', 26, 1013, Align::Int, 0, Some(Bytes), &array::vector::OIDVECTOR),
    pseudo(oids::PG_DDL_COMMAND, "pg_ddl_command", 8, (0, 0), Align::Double, None, &PSEUDO),
    base(oids::JSON, "json", -1, false, b'U', false, b',', 0, 199, Align::Int, 0, Some(Bytes), &UNSUPPORTED),
    base(oids::XML, "xml", -1, false, b'U', false, b',', 0, 143, Align::Int, 0, None, &UNSUPPORTED),
    base(oids::PG_NODE_TREE, "pg_node_tree", -1, false, b'Z', false, b',', 0, 0, Align::Int, 100, Some(Bytes), &scalar::text::NODE_TREE),
    pseudo(oids::TABLE_AM_HANDLER, "table_am_handler", 4, (0, 0), Align::Int, None, &PSEUDO),
    pseudo(oids::INDEX_AM_HANDLER, "index_am_handler", 4, (0, 0), Align::Int, None, &PSEUDO),
    base(oids::POINT, "point", 16, false, b'G', false, b',', 701, 1017, Align::Double, 0, None, &UNSUPPORTED),
    base(oids::LSEG, "lseg", 32, false, b'G', false, b',', 600, 1018, Align::Double, 0, None, &UNSUPPORTED),
    base(oids::PATH, "path", -1, false, b'G', false, b',', 0, 1019, Align::Double, 0, None, &UNSUPPORTED),
    base(oids::BOX, "box", 32, false, b'G', false, b';', 600, 1020, Align::Double, 0, None, &UNSUPPORTED),
    base(oids::POLYGON, "polygon", -1, false, b'G', false, b',', 0, 1027, Align::Double, 0, None, &UNSUPPORTED),
    base(oids::LINE, "line", 24, false, b'G', false, b',', 701, 629, Align::Double, 0, None, &UNSUPPORTED),
    base(oids::CIDR, "cidr", -1, false, b'I', false, b',', 0, 651, Align::Int, 0, Some(Bytes), &UNSUPPORTED),
    base(oids::FLOAT4, "float4", 4, true, b'N', false, b',', 0, 1021, Align::Int, 0, Some(Float32), &scalar::float::FLOAT4),
    base(oids::FLOAT8, "float8", 8, true, b'N', true, b',', 0, 1022, Align::Double, 0, Some(Float64), &scalar::float::FLOAT8),
    pseudo(oids::UNKNOWN, "unknown", -2, (0, 0), Align::Char, Some(Bytes), &CSTRING),
    base(oids::CIRCLE, "circle", 24, false, b'G', false, b',', 0, 719, Align::Double, 0, None, &UNSUPPORTED),
    base(oids::MACADDR8, "macaddr8", 8, false, b'U', false, b',', 0, 775, Align::Int, 0, Some(Fixed(8)), &UNSUPPORTED),
    base(oids::MONEY, "money", 8, true, b'N', false, b',', 0, 791, Align::Double, 0, Some(Int64), &scalar::money::OPS),
    base(oids::MACADDR, "macaddr", 6, false, b'U', false, b',', 0, 1040, Align::Int, 0, Some(Fixed(6)), &UNSUPPORTED),
    base(oids::INET, "inet", -1, false, b'I', true, b',', 0, 1041, Align::Int, 0, Some(Bytes), &UNSUPPORTED),
    base(oids::ACLITEM, "aclitem", 16, false, b'U', false, b',', 0, 1034, Align::Double, 0, Some(Fixed(16)), &scalar::acl::OPS),
    base(oids::BPCHAR, "bpchar", -1, false, b'S', false, b',', 0, 1014, Align::Int, 100, Some(Bytes), &scalar::text::BPCHAR),
    base(oids::VARCHAR, "varchar", -1, false, b'S', false, b',', 0, 1015, Align::Int, 100, Some(Bytes), &scalar::text::VARCHAR),
    base(oids::DATE, "date", 4, true, b'D', false, b',', 0, 1182, Align::Int, 0, Some(Int32), &datetime::date::OPS),
    base(oids::TIME, "time", 8, true, b'D', false, b',', 0, 1183, Align::Double, 0, Some(Int64), &datetime::time::OPS),
    base(oids::TIMESTAMP, "timestamp", 8, true, b'D', false, b',', 0, 1115, Align::Double, 0, Some(Int64), &datetime::timestamp::TIMESTAMP),
    base(oids::TIMESTAMPTZ, "timestamptz", 8, true, b'D', true, b',', 0, 1185, Align::Double, 0, Some(Int64), &datetime::timestamp::TIMESTAMPTZ),
    base(oids::INTERVAL, "interval", 16, false, b'T', true, b',', 0, 1187, Align::Double, 0, Some(Fixed(16)), &datetime::interval::OPS),
    base(oids::TIMETZ, "timetz", 12, false, b'D', false, b',', 0, 1270, Align::Double, 0, Some(Fixed(12)), &datetime::timetz::OPS),
    base(oids::BIT, "bit", -1, false, b'V', false, b',', 0, 1561, Align::Int, 0, Some(Bytes), &scalar::bits::BIT),
    base(oids::VARBIT, "varbit", -1, false, b'V', true, b',', 0, 1563, Align::Int, 0, Some(Bytes), &scalar::bits::VARBIT),
    base(oids::NUMERIC, "numeric", -1, false, b'N', false, b',', 0, 1231, Align::Int, 0, Some(Bytes), &numeric::OPS),
    base(oids::REFCURSOR, "refcursor", -1, false, b'U', false, b',', 0, 2201, Align::Int, 0, Some(Bytes), &CSTRING),
    base(oids::REGPROCEDURE, "regprocedure", 4, true, b'N', false, b',', 0, 2207, Align::Int, 0, Some(UInt32), &scalar::reg::OPS),
    base(oids::REGOPER, "regoper", 4, true, b'N', false, b',', 0, 2208, Align::Int, 0, Some(UInt32), &scalar::reg::OPS),
    base(oids::REGOPERATOR, "regoperator", 4, true, b'N', false, b',', 0, 2209, Align::Int, 0, Some(UInt32), &scalar::reg::OPS),
    base(oids::REGCLASS, "regclass", 4, true, b'N', false, b',', 0, 2210, Align::Int, 0, Some(UInt32), &scalar::reg::OPS),
    base(oids::REGTYPE, "regtype", 4, true, b'N', false, b',', 0, 2211, Align::Int, 0, Some(UInt32), &scalar::reg::OPS),
    pseudo(oids::RECORD, "record", -1, (0, 2287), Align::Double, Some(Bytes), &record::OPS),
    pseudo(oids::CSTRING, "cstring", -2, (0, 1263), Align::Char, Some(Bytes), &CSTRING),
    pseudo(oids::ANY, "any", 4, (0, 0), Align::Int, None, &PSEUDO),
    pseudo(oids::ANYARRAY, "anyarray", -1, (0, 0), Align::Double, Some(Bytes), &array::ANYARRAY),
    pseudo(oids::VOID, "void", 4, (0, 0), Align::Int, Some(Bytes), &VOID),
    pseudo(oids::TRIGGER, "trigger", 4, (0, 0), Align::Int, None, &PSEUDO),
    pseudo(oids::LANGUAGE_HANDLER, "language_handler", 4, (0, 0), Align::Int, None, &PSEUDO),
    pseudo(oids::INTERNAL, "internal", 8, (0, 0), Align::Double, None, &PSEUDO),
    pseudo(oids::ANYELEMENT, "anyelement", 4, (0, 0), Align::Int, None, &PSEUDO),
    pseudo(oids::ANYNONARRAY, "anynonarray", 4, (0, 0), Align::Int, None, &PSEUDO),
    base(oids::UUID, "uuid", 16, false, b'U', false, b',', 0, 2951, Align::Char, 0, Some(Fixed(16)), &scalar::uuid::OPS),
    base(oids::TXID_SNAPSHOT, "txid_snapshot", -1, false, b'U', false, b',', 0, 2949, Align::Double, 0, None, &UNSUPPORTED),
    pseudo(oids::FDW_HANDLER, "fdw_handler", 4, (0, 0), Align::Int, None, &PSEUDO),
    base(oids::PG_LSN, "pg_lsn", 8, true, b'U', false, b',', 0, 3221, Align::Double, 0, Some(UInt64), &scalar::ids::LSN),
    pseudo(oids::TSM_HANDLER, "tsm_handler", 4, (0, 0), Align::Int, None, &PSEUDO),
    base(oids::PG_NDISTINCT, "pg_ndistinct", -1, false, b'Z', false, b',', 0, 0, Align::Int, 100, None, &UNSUPPORTED),
    base(oids::PG_DEPENDENCIES, "pg_dependencies", -1, false, b'Z', false, b',', 0, 0, Align::Int, 100, None, &UNSUPPORTED),
    pseudo(oids::ANYENUM, "anyenum", 4, (0, 0), Align::Int, None, &PSEUDO),
    base(oids::TSVECTOR, "tsvector", -1, false, b'U', false, b',', 0, 3643, Align::Int, 0, None, &UNSUPPORTED),
    base(oids::TSQUERY, "tsquery", -1, false, b'U', false, b',', 0, 3645, Align::Int, 0, None, &UNSUPPORTED),
    base(oids::GTSVECTOR, "gtsvector", -1, false, b'U', false, b',', 0, 3644, Align::Int, 0, None, &UNSUPPORTED),
    base(oids::REGCONFIG, "regconfig", 4, true, b'N', false, b',', 0, 3735, Align::Int, 0, Some(UInt32), &scalar::reg::OPS),
    base(oids::REGDICTIONARY, "regdictionary", 4, true, b'N', false, b',', 0, 3770, Align::Int, 0, Some(UInt32), &scalar::reg::OPS),
    base(oids::JSONB, "jsonb", -1, false, b'U', false, b',', 0, 3807, Align::Int, 0, Some(Bytes), &UNSUPPORTED),
    pseudo(oids::ANYRANGE, "anyrange", -1, (0, 0), Align::Double, None, &PSEUDO),
    pseudo(oids::EVENT_TRIGGER, "event_trigger", 4, (0, 0), Align::Int, None, &PSEUDO),
    a_range(oids::INT4RANGE, "int4range", 3905, Align::Int, oids::INT4),
    a_range(oids::NUMRANGE, "numrange", 3907, Align::Int, oids::NUMERIC),
    a_range(oids::TSRANGE, "tsrange", 3909, Align::Double, oids::TIMESTAMP),
    a_range(oids::TSTZRANGE, "tstzrange", 3911, Align::Double, oids::TIMESTAMPTZ),
    a_range(oids::DATERANGE, "daterange", 3913, Align::Int, oids::DATE),
    a_range(oids::INT8RANGE, "int8range", 3927, Align::Double, oids::INT8),
    base(oids::JSONPATH, "jsonpath", -1, false, b'U', false, b',', 0, 4073, Align::Int, 0, None, &UNSUPPORTED),
    base(oids::REGNAMESPACE, "regnamespace", 4, true, b'N', false, b',', 0, 4090, Align::Int, 0, Some(UInt32), &scalar::reg::OPS),
    base(oids::REGROLE, "regrole", 4, true, b'N', false, b',', 0, 4097, Align::Int, 0, Some(UInt32), &scalar::reg::OPS),
    base(oids::REGCOLLATION, "regcollation", 4, true, b'N', false, b',', 0, 4192, Align::Int, 0, Some(UInt32), &scalar::reg::OPS),
    a_multirange(oids::INT4MULTIRANGE, "int4multirange", 6150, Align::Int, oids::INT4RANGE),
    a_multirange(oids::NUMMULTIRANGE, "nummultirange", 6151, Align::Int, oids::NUMRANGE),
    a_multirange(oids::TSMULTIRANGE, "tsmultirange", 6152, Align::Double, oids::TSRANGE),
    a_multirange(oids::TSTZMULTIRANGE, "tstzmultirange", 6153, Align::Double, oids::TSTZRANGE),
    a_multirange(oids::DATEMULTIRANGE, "datemultirange", 6155, Align::Int, oids::DATERANGE),
    a_multirange(oids::INT8MULTIRANGE, "int8multirange", 6157, Align::Double, oids::INT8RANGE),
    pseudo(oids::ANYMULTIRANGE, "anymultirange", -1, (0, 0), Align::Double, None, &PSEUDO),
    pseudo(oids::ANYCOMPATIBLEMULTIRANGE, "anycompatiblemultirange", -1, (0, 0), Align::Double, None, &PSEUDO),
    base(oids::PG_BRIN_BLOOM_SUMMARY, "pg_brin_bloom_summary", -1, false, b'Z', false, b',', 0, 0, Align::Int, 100, None, &UNSUPPORTED),
    base(oids::PG_BRIN_MINMAX_MULTI_SUMMARY, "pg_brin_minmax_multi_summary", -1, false, b'Z', false, b',', 0, 0, Align::Int, 100, None, &UNSUPPORTED),
    base(oids::PG_MCV_LIST, "pg_mcv_list", -1, false, b'Z', false, b',', 0, 0, Align::Int, 100, None, &UNSUPPORTED),
    base(oids::PG_SNAPSHOT, "pg_snapshot", -1, false, b'U', false, b',', 0, 5039, Align::Double, 0, None, &UNSUPPORTED),
    base(oids::XID8, "xid8", 8, true, b'U', false, b',', 0, 271, Align::Double, 0, Some(UInt64), &scalar::ids::XID8),
    pseudo(oids::ANYCOMPATIBLE, "anycompatible", 4, (0, 0), Align::Int, None, &PSEUDO),
    pseudo(oids::ANYCOMPATIBLEARRAY, "anycompatiblearray", -1, (0, 0), Align::Double, None, &PSEUDO),
    pseudo(oids::ANYCOMPATIBLENONARRAY, "anycompatiblenonarray", 4, (0, 0), Align::Int, None, &PSEUDO),
    pseudo(oids::ANYCOMPATIBLERANGE, "anycompatiblerange", -1, (0, 0), Align::Double, None, &PSEUDO),
];
