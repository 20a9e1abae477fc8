//! Access control lists: reading `aclitem[]`, in binary and as text.
//!
//! ```text
//!  aclitem   0         4         8
//!            | grantee | grantor | privileges and grant options |
//!  16 to 18                        8 bytes: privileges in the lower half, grant options in the upper
//!  15                              4 bytes: likewise, 16 bits each
//! ```

use std::sync::Arc;

use stegodon_format::ids::Oid;

use crate::array;
use crate::rows::{Acl, AclItem};

/// The privileges, as bits of [`AclItem::privileges`] (lower half).
pub mod privilege {
    #![allow(missing_docs, reason = "the name is the documentation")]
    pub const INSERT: u64 = 1 << 0;
    pub const SELECT: u64 = 1 << 1;
    pub const UPDATE: u64 = 1 << 2;
    pub const DELETE: u64 = 1 << 3;
    pub const TRUNCATE: u64 = 1 << 4;
    pub const REFERENCES: u64 = 1 << 5;
    pub const TRIGGER: u64 = 1 << 6;
    pub const EXECUTE: u64 = 1 << 7;
    pub const USAGE: u64 = 1 << 8;
    pub const CREATE: u64 = 1 << 9;
    pub const CREATE_TEMP: u64 = 1 << 10;
    pub const CONNECT: u64 = 1 << 11;
    pub const SET: u64 = 1 << 12;
    pub const ALTER_SYSTEM: u64 = 1 << 13;
    pub const MAINTAIN: u64 = 1 << 14;

    /// The letters of `aclitem`'s text, by bit.
    pub const LETTERS: &[u8; 15] = b"arwdDxtXUCTcsAm";
}

/// Decodes the payload of an `aclitem[]`; `None` where it is damaged.
pub fn decode(payload: &[u8]) -> Option<Acl> {
    let head = array::header(payload)?;
    if head.bitmap.is_some() {
        return None;
    }
    if head.count == 0 {
        return Some(Arc::from([]));
    }
    let data = payload.get(head.data..)?;
    // Twelve bytes a piece in 15, sixteen later; arrays of aclitem end with their last element.
    let size = data.len() / head.count;
    if !(size == 12 || size == 16) || size * head.count != data.len() {
        return None;
    }
    let word = |b: &[u8], at: usize| Some(u32::from_le_bytes(b.get(at..at + 4)?.try_into().ok()?));
    let items: Option<Vec<AclItem>> = data
        .chunks_exact(size)
        .map(|b| {
            let low = word(b, 8)?;
            let privileges = if size == 12 {
                u64::from(low & 0xFFFF) | u64::from(low >> 16) << 32
            } else {
                u64::from(low) | u64::from(word(b, 12)?) << 32
            };
            Some(AclItem { grantee: Oid(word(b, 0)?), grantor: Oid(word(b, 4)?), privileges })
        })
        .collect();
    items.map(Into::into)
}

/// Encodes in the binary form of 16 to 18.
pub fn encode(item: &AclItem) -> Vec<u8> {
    let mut out = Vec::with_capacity(16);
    out.extend(item.grantee.0.to_le_bytes());
    out.extend(item.grantor.0.to_le_bytes());
    out.extend(item.privileges.to_le_bytes());
    out
}

/// Reads `grantee=letters/grantor`, `*` after a letter being its grant option; an empty grantee is PUBLIC.
pub fn parse(text: &str, role: impl Fn(&str) -> Option<Oid>) -> Option<AclItem> {
    let (grantee, rest) = identifier(text)?;
    let (letters, grantor) = rest.strip_prefix('=')?.split_once('/')?;
    let (grantor, end) = identifier(grantor)?;
    let mut privileges = 0;
    let mut last = 0;
    for letter in letters.bytes() {
        if letter == b'*' {
            privileges |= last << 32;
        } else {
            last = 1 << privilege::LETTERS.iter().position(|&l| l == letter)?;
            privileges |= last;
        }
    }
    let grantee = if grantee.is_empty() { Oid::INVALID } else { role(&grantee)? };
    (end.is_empty()).then_some(AclItem { grantee, grantor: role(&grantor)?, privileges })
}

/// Prints as `aclitem`'s output function does.
pub fn format(item: &AclItem, role: impl Fn(Oid) -> Option<String>) -> String {
    let name = |oid: Oid| role(oid).map_or_else(|| oid.to_string(), |n| quoted(&n));
    let mut out = if item.grantee.is_valid() { name(item.grantee) } else { String::new() };
    out.push('=');
    for (bit, &letter) in privilege::LETTERS.iter().enumerate() {
        if item.privileges >> bit & 1 == 1 {
            out.push(char::from(letter));
            if item.privileges >> (bit + 32) & 1 == 1 {
                out.push('*');
            }
        }
    }
    out.push('/');
    out.push_str(&name(item.grantor));
    out
}

/// A role's name as `aclitem` prints it: quoted unless all of it is letters, digits and underscores.
fn quoted(name: &str) -> String {
    if name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80) {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

/// The identifier that `text` begins with, unquoted, and what follows it.
fn identifier(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut quoted = false;
    let mut chars = text.char_indices().peekable();
    while let Some(&(at, c)) = chars.peek() {
        if c == '"' {
            chars.next();
            if quoted && chars.peek().is_some_and(|&(_, c)| c == '"') {
                name.push('"');
                chars.next();
            } else {
                quoted = !quoted;
            }
        } else if quoted || c.is_alphanumeric() || c == '_' {
            name.push(c);
            chars.next();
        } else {
            return Some((name, text.get(at..)?));
        }
    }
    (!quoted).then_some((name, ""))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn text_and_binary_round_trip() {
        let role = |name: &str| match name {
            "postgres" => Some(Oid(10)),
            "a b" => Some(Oid(20)),
            _ => None,
        };
        let name = |oid: Oid| match oid.0 {
            10 => Some("postgres".to_owned()),
            20 => Some("a b".to_owned()),
            _ => None,
        };
        for text in ["=r/postgres", "postgres=arwdDxtm/postgres", "\"a b\"=r*w/postgres", "postgres=C*T*c*/\"a b\""] {
            let item = parse(text, role).unwrap();
            assert_eq!(format(&item, name), text);
            let form = crate::array::ElementForm {
                len: 16,
                align: stegodon_types::Align::Double,
                layout: stegodon_types::Layout::Fixed(16),
            };
            let payload = crate::array::build(Oid(1033), form, 1, &[encode(&item), encode(&item)]);
            assert_eq!(decode(&payload).unwrap().as_ref(), &[item, item]);
        }
        assert_eq!(parse("nobody=r/postgres", role), None);
        assert_eq!(parse("postgres=Q/postgres", role), None);
    }
}
