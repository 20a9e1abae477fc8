//! OIDs of the built-in objects that the grammar or the rules of analysis name.
#![allow(missing_docs, reason = "the name is the documentation")]

use stegodon_format::ids::Oid;

pub const BOOL: Oid = Oid(16);
pub const NAME: Oid = Oid(19);
pub const INT8: Oid = Oid(20);
pub const INT2: Oid = Oid(21);
pub const INT2VECTOR: Oid = Oid(22);
pub const INT4: Oid = Oid(23);
pub const TEXT: Oid = Oid(25);
pub const OID: Oid = Oid(26);
pub const TID: Oid = Oid(27);
pub const XID: Oid = Oid(28);
pub const CID: Oid = Oid(29);
pub const OIDVECTOR: Oid = Oid(30);
pub const UNKNOWN: Oid = Oid(705);
pub const BPCHAR: Oid = Oid(1042);
pub const VARCHAR: Oid = Oid(1043);
pub const DATE: Oid = Oid(1082);
pub const TIME: Oid = Oid(1083);
pub const TIMESTAMP: Oid = Oid(1114);
pub const TIMESTAMPTZ: Oid = Oid(1184);
pub const INTERVAL: Oid = Oid(1186);
pub const TIMETZ: Oid = Oid(1266);
pub const BIT: Oid = Oid(1560);
pub const VARBIT: Oid = Oid(1562);
pub const NUMERIC: Oid = Oid(1700);
pub const RECORD: Oid = Oid(2249);
pub const CSTRING: Oid = Oid(2275);
pub const ANY: Oid = Oid(2276);
pub const ANYARRAY: Oid = Oid(2277);
pub const ANYELEMENT: Oid = Oid(2283);
pub const RECORDARRAY: Oid = Oid(2287);
pub const ANYNONARRAY: Oid = Oid(2776);
pub const ANYENUM: Oid = Oid(3500);
pub const ANYRANGE: Oid = Oid(3831);
pub const ANYMULTIRANGE: Oid = Oid(4537);
pub const ANYCOMPATIBLEMULTIRANGE: Oid = Oid(4538);
pub const ANYCOMPATIBLE: Oid = Oid(5077);
pub const ANYCOMPATIBLEARRAY: Oid = Oid(5078);
pub const ANYCOMPATIBLENONARRAY: Oid = Oid(5079);
pub const ANYCOMPATIBLERANGE: Oid = Oid(5080);

/// The collation `"default"`.
pub const DEFAULT_COLLATION: Oid = Oid(100);
/// The B-tree access method.
pub const BTREE: Oid = Oid(403);
/// The last OID that initdb assigns.
pub const LAST_BUILTIN: Oid = Oid(16383);
