//! Enums: the OID of a `pg_enum` row, printed as its label and ordered by its sort order.

use std::cmp::Ordering;

use crate::ops::get;
use crate::scalar::ids::OID;
use crate::scalar::text::{NAME_LEN, validate};
use crate::{
    Collation, Datum, Oid, SqlError, SqlResult, SqlState, TypeContext, TypeDesc, TypeOps, ValueRef, key as keys,
};

/// Every enum.
pub static OPS: TypeOps = TypeOps {
    text_out,
    text_in,
    binary_out: text_out,
    binary_in,
    compare: Some(compare),
    equal: Some(equal),
    key: Some(key),
    hash: OID.hash,
    own_key: false,
};

fn text_out(cx: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    out.extend_from_slice(cx.types.enum_label(Oid(get::u32(ty, v)?))?.as_bytes());
    Ok(())
}

fn text_in(cx: &TypeContext<'_>, ty: &TypeDesc, text: &[u8], _: i32) -> SqlResult<Datum> {
    let label = std::str::from_utf8(text).ok().filter(|label| label.len() < NAME_LEN);
    let value = match label {
        Some(label) => cx.types.enum_value(ty.oid, label)?,
        None => None,
    };
    value.map(|oid| Datum::UInt32(oid.0)).ok_or_else(|| {
        SqlError::new(
            SqlState::InvalidTextRepresentation,
            format!("invalid input value for enum {}: \"{}\"", ty.name, String::from_utf8_lossy(text)),
        )
    })
}

fn binary_in(cx: &TypeContext<'_>, ty: &TypeDesc, bytes: &[u8], typmod: i32) -> SqlResult<Datum> {
    validate(cx.settings.encoding, bytes)?;
    text_in(cx, ty, bytes, typmod)
}

/// `enum_cmp`.
pub fn compare(
    cx: &TypeContext<'_>,
    ty: &TypeDesc,
    _: &Collation,
    a: ValueRef<'_>,
    b: ValueRef<'_>,
) -> SqlResult<Ordering> {
    let (a, b) = (Oid(get::u32(ty, a)?), Oid(get::u32(ty, b)?));
    // Values with even OIDs were made in order.
    if a == b || (a.0 % 2 == 0 && b.0 % 2 == 0) {
        return Ok(a.cmp(&b));
    }
    let (x, y) = (cx.types.enum_order(a)?, cx.types.enum_order(b)?);
    Ok(x.partial_cmp(&y).unwrap_or(Ordering::Equal))
}

fn equal(_: &TypeContext<'_>, ty: &TypeDesc, _: &Collation, a: ValueRef<'_>, b: ValueRef<'_>) -> SqlResult<bool> {
    Ok(get::u32(ty, a)? == get::u32(ty, b)?)
}

fn key(cx: &TypeContext<'_>, ty: &TypeDesc, _: &Collation, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    keys::f32(cx.types.enum_order(Oid(get::u32(ty, v)?))?, out);
    Ok(())
}
