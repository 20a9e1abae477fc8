//! Types without values of their own, and types that are not supported: functions that refuse.

use crate::{Datum, SqlError, SqlResult, SqlState, TypeContext, TypeDesc, TypeOps, ValueRef};

/// `anyelement`, `internal`, `trigger` and their like: neither text nor binary.
pub static PSEUDO: TypeOps = TypeOps {
    text_out: cannot_display,
    text_in: cannot_accept,
    binary_out: cannot_display,
    binary_in: cannot_accept,
    compare: None,
    equal: None,
    key: None,
    hash: None,
    own_key: false,
};

/// `void`: printed as nothing.
pub static VOID: TypeOps =
    TypeOps { text_out: void_out, text_in: void_in, binary_out: void_out, binary_in: void_in, ..PSEUDO };

/// Real types that are not done yet.
pub static UNSUPPORTED: TypeOps = TypeOps {
    text_out: unsupported_out,
    text_in: unsupported_in,
    binary_out: unsupported_out,
    binary_in: unsupported_in,
    ..PSEUDO
};

/// The input function of a type that has none.
pub(crate) fn cannot_accept(_: &TypeContext<'_>, ty: &TypeDesc, _: &[u8], _: i32) -> SqlResult<Datum> {
    Err(SqlError::new(SqlState::FeatureNotSupported, format!("cannot accept a value of type {}", ty.name)))
}

fn cannot_display(_: &TypeContext<'_>, ty: &TypeDesc, _: ValueRef<'_>, _: &mut Vec<u8>) -> SqlResult<()> {
    Err(SqlError::new(SqlState::FeatureNotSupported, format!("cannot display a value of type {}", ty.name)))
}

fn void_in(_: &TypeContext<'_>, _: &TypeDesc, _: &[u8], _: i32) -> SqlResult<Datum> {
    Ok(Datum::bytes([]))
}

fn void_out(_: &TypeContext<'_>, _: &TypeDesc, _: ValueRef<'_>, _: &mut Vec<u8>) -> SqlResult<()> {
    Ok(())
}

/// An input or receive function that is not done.
pub(crate) fn unsupported_in(_: &TypeContext<'_>, ty: &TypeDesc, _: &[u8], _: i32) -> SqlResult<Datum> {
    Err(SqlError::unsupported(format_args!("reading a value of type {}", ty.name)))
}

/// An output or send function that is not done.
pub(crate) fn unsupported_out(_: &TypeContext<'_>, ty: &TypeDesc, _: ValueRef<'_>, _: &mut Vec<u8>) -> SqlResult<()> {
    Err(SqlError::unsupported(format_args!("writing a value of type {}", ty.name)))
}
