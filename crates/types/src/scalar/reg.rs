//! The `reg*` types: OIDs that are printed and read as the names of what they name.

use crate::desc::RegKind;
use crate::ops::get;
use crate::scalar::ids::{OID, parse_oid};
use crate::scalar::int::write_unsigned;
use crate::{Datum, Oid, SqlError, SqlResult, TypeContext, TypeDesc, TypeOps, ValueRef, oids};

/// Every `reg*` type.
pub static OPS: TypeOps = TypeOps { text_out, text_in, ..OID };

/// What a `reg*` type names.
pub fn kind(type_oid: Oid) -> Option<RegKind> {
    Some(match type_oid {
        oids::REGCLASS => RegKind::Class,
        oids::REGTYPE => RegKind::Type,
        oids::REGPROC => RegKind::Proc,
        oids::REGPROCEDURE => RegKind::Procedure,
        oids::REGOPER => RegKind::Oper,
        oids::REGOPERATOR => RegKind::Operator,
        oids::REGNAMESPACE => RegKind::Namespace,
        oids::REGROLE => RegKind::Role,
        oids::REGCOLLATION => RegKind::Collation,
        oids::REGCONFIG => RegKind::Config,
        oids::REGDICTIONARY => RegKind::Dictionary,
        _ => return None,
    })
}

fn kind_of(ty: &TypeDesc) -> SqlResult<RegKind> {
    kind(ty.oid).ok_or_else(|| SqlError::internal(format_args!("{} is no reg type", ty.name)))
}

fn text_out(cx: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    let oid = Oid(get::u32(ty, v)?);
    // regoper and regoperator print 0 for none.
    let none: &[u8] = if matches!(ty.oid, oids::REGOPER | oids::REGOPERATOR) { b"0" } else { b"-" };
    if !oid.is_valid() {
        out.extend_from_slice(none);
        return Ok(());
    }
    match cx.types.object_name(kind_of(ty)?, oid)? {
        Some(name) => out.extend_from_slice(name.as_bytes()),
        None => write_unsigned(u64::from(oid.0), out),
    }
    Ok(())
}

fn text_in(cx: &TypeContext<'_>, ty: &TypeDesc, text: &[u8], _: i32) -> SqlResult<Datum> {
    if text == b"-" && !matches!(ty.oid, oids::REGOPER | oids::REGOPERATOR) {
        return Ok(Datum::UInt32(0));
    }
    if !text.is_empty() && text.iter().all(u8::is_ascii_digit) {
        return parse_oid(cx.settings.version, text).map(Datum::UInt32);
    }
    if matches!(ty.oid, oids::REGOPER | oids::REGOPERATOR) && text == b"0" {
        return Ok(Datum::UInt32(0));
    }
    let name = std::str::from_utf8(text).map_err(|_| SqlError::unsupported("a name that is not UTF-8"))?;
    Ok(Datum::UInt32(cx.types.object_oid(kind_of(ty)?, name)?.0))
}
