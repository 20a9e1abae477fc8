//! The layout of each base type, from the table of types.

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
    match stegodon_types::builtin(oid) {
        Some(row) => row.layout,
        // Kept as bytes by the catalogs themselves; not in the table of types.
        None => match len {
            -1 => Some(Layout::Bytes),
            1.. => Some(Layout::Fixed(u8::try_from(len).ok()?)),
            _ => None,
        },
    }
}
