//! The layout of each base type, the one place that maps OIDs to layouts until the table of types is here.

use stegodon_format::ids::Oid;
use stegodon_types::Layout;

/// The first OID of objects that `initdb` did not make.
pub const FIRST_NORMAL_OID: u32 = 16384;

/// The layout of a base type; `None` where it is not supported.
pub fn base_layout(oid: Oid, len: i16) -> Option<Layout> {
    if oid.0 >= FIRST_NORMAL_OID {
        // A base type of an extension: its values' form is its own functions' business.
        return None;
    }
    Some(match oid.0 {
        16 => Layout::Bool,
        18 => Layout::Char,
        19 => Layout::Name,
        21 => Layout::Int16,
        23 | 1082 => Layout::Int32,
        20 | 790 | 1083 | 1114 | 1184 => Layout::Int64,
        // oid, xid, cid and the reg* types.
        26 | 24 | 28 | 29 | 2202..=2206 | 3734 | 3769 | 4089 | 4096 | 4191 => Layout::UInt32,
        5069 | 3220 => Layout::UInt64,
        700 => Layout::Float32,
        701 => Layout::Float64,
        _ => match len {
            -1 => Layout::Bytes,
            // tid, macaddr, uuid, interval, timetz, point and its like.
            1.. => Layout::Fixed(u8::try_from(len).ok()?),
            _ => return None,
        },
    })
}
