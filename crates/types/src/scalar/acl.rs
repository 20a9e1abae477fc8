//! `aclitem`: who may do what, granted by whom.
//!
//! ```text
//!  from 16 on   grantee: u32, grantor: u32, rights: u32, grant options: u32
//!  15           grantee: u32, grantor: u32, rights: u16, grant options: u16
//! ```

use crate::desc::RegKind;
use crate::ops::get;
use crate::scalar::exactly;
use crate::scalar::pseudo::{UNSUPPORTED, unsupported_in};
use crate::{Collation, Oid, SqlError, SqlResult, SqlState, TypeContext, TypeDesc, TypeOps, ValueRef, hash as hashing};

/// `aclitem`: equality only, and no binary form.
pub static OPS: TypeOps = TypeOps {
    text_out,
    text_in: unsupported_in,
    binary_out: no_binary,
    equal: Some(equal),
    key: Some(key),
    hash: Some(hash),
    ..UNSUPPORTED
};

/// The letters of the rights, from the lowest bit.
const LETTERS: &[u8; 15] = b"arwdDxtXUCTcsAm";

/// An `aclitem` taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AclItem {
    /// Who may; 0 is everyone.
    pub grantee: Oid,
    /// Who allowed it.
    pub grantor: Oid,
    /// What, a bit for each right.
    pub rights: u32,
    /// What of it the grantee may grant on.
    pub grant_options: u32,
}

impl AclItem {
    /// Takes the value's bytes apart.
    pub fn parse(bytes: &[u8]) -> SqlResult<Self> {
        let word = |at: usize| -> SqlResult<u32> {
            let word = bytes.get(at..at + 4).ok_or_else(|| SqlError::internal("an aclitem of a wrong length"))?;
            exactly(word).map(u32::from_le_bytes)
        };
        let (grantee, grantor, low) = (Oid(word(0)?), Oid(word(4)?), word(8)?);
        let (rights, grant_options) = if bytes.len() == 12 { (low & 0xFFFF, low >> 16) } else { (low, word(12)?) };
        Ok(AclItem { grantee, grantor, rights, grant_options })
    }
}

fn write_role(cx: &TypeContext<'_>, role: Oid, out: &mut Vec<u8>) -> SqlResult<()> {
    let Some(name) = cx.types.object_name(RegKind::Role, role)? else {
        out.extend_from_slice(role.to_string().as_bytes());
        return Ok(());
    };
    // regrole quotes as identifiers are quoted; an aclitem by its own rule.
    let plain = match name.strip_prefix('"').and_then(|n| n.strip_suffix('"')) {
        Some(quoted) => quoted.replace("\"\"", "\""),
        None => name,
    };
    if plain.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        out.extend_from_slice(plain.as_bytes());
    } else {
        out.push(b'"');
        out.extend_from_slice(plain.replace('"', "\"\"").as_bytes());
        out.push(b'"');
    }
    Ok(())
}

fn text_out(cx: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    let item = AclItem::parse(get::bytes(ty, v)?)?;
    if item.grantee.is_valid() {
        write_role(cx, item.grantee, out)?;
    }
    out.push(b'=');
    for (bit, letter) in LETTERS.iter().enumerate() {
        if item.rights >> bit & 1 == 1 {
            out.push(*letter);
            if item.grant_options >> bit & 1 == 1 {
                out.push(b'*');
            }
        }
    }
    out.push(b'/');
    write_role(cx, item.grantor, out)
}

fn no_binary(_: &TypeContext<'_>, ty: &TypeDesc, _: ValueRef<'_>, _: &mut Vec<u8>) -> SqlResult<()> {
    Err(SqlError::new(SqlState::UndefinedFunction, format!("no binary output function available for type {}", ty.name)))
}

fn equal(_: &TypeContext<'_>, ty: &TypeDesc, _: &Collation, a: ValueRef<'_>, b: ValueRef<'_>) -> SqlResult<bool> {
    Ok(get::bytes(ty, a)? == get::bytes(ty, b)?)
}

fn key(_: &TypeContext<'_>, ty: &TypeDesc, _: &Collation, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    out.extend_from_slice(get::bytes(ty, v)?);
    Ok(())
}

fn hash(_: &TypeContext<'_>, ty: &TypeDesc, _: &Collation, v: ValueRef<'_>, seed: u64) -> SqlResult<u64> {
    let item = AclItem::parse(get::bytes(ty, v)?)?;
    let sum = item.rights.wrapping_add(item.grantee.0).wrapping_add(item.grantor.0);
    Ok(if seed == 0 { u64::from(sum) } else { hashing::uint32_extended(sum, seed) })
}
