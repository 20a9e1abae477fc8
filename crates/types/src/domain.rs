//! Domains: everything is done by the type below.
//!
//! The input functions apply the domain's typmod but check no constraint: that needs the evaluator, and is done by whoever
//! coerces to the domain.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::array::no_hash;
use crate::ops::{no_comparison, no_equality};
use crate::{Collation, Datum, SqlError, SqlResult, SqlState, TypeContext, TypeDesc, TypeKind, TypeOps, ValueRef, ops};

/// Every domain.
pub static OPS: TypeOps = TypeOps {
    text_out,
    text_in,
    binary_out,
    binary_in,
    compare: Some(compare),
    equal: Some(equal),
    key: Some(key),
    hash: Some(hash),
    own_key: false,
};

/// How many domains may lie on each other: no more than anyone would make.
const MAX_DEPTH: usize = 100;

/// The type that is no domain below a type, and the typmod that the domains above it set (-1 for none).
pub fn base_type(cx: &TypeContext<'_>, ty: &TypeDesc) -> SqlResult<(Arc<TypeDesc>, i32)> {
    let mut typmod = -1;
    let mut below = Arc::new(ty.clone());
    for _ in 0..MAX_DEPTH {
        let TypeKind::Domain { base, typmod: own } = below.kind else { return Ok((below, typmod)) };
        if typmod < 0 {
            typmod = own;
        }
        below = cx.types.type_desc(base)?;
    }
    Err(SqlError::new(SqlState::StatementTooComplex, "domains are nested too deeply"))
}

fn text_out(cx: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    crate::text_out(cx, &base_type(cx, ty)?.0, v, out)
}

fn text_in(cx: &TypeContext<'_>, ty: &TypeDesc, text: &[u8], _: i32) -> SqlResult<Datum> {
    let (base, typmod) = base_type(cx, ty)?;
    crate::text_in(cx, &base, text, typmod)
}

fn binary_out(cx: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    crate::binary_out(cx, &base_type(cx, ty)?.0, v, out)
}

fn binary_in(cx: &TypeContext<'_>, ty: &TypeDesc, bytes: &[u8], _: i32) -> SqlResult<Datum> {
    let (base, typmod) = base_type(cx, ty)?;
    crate::binary_in(cx, &base, bytes, typmod)
}

fn compare(
    cx: &TypeContext<'_>,
    ty: &TypeDesc,
    coll: &Collation,
    a: ValueRef<'_>,
    b: ValueRef<'_>,
) -> SqlResult<Ordering> {
    let base = base_type(cx, ty)?.0;
    let compare = ops(&base)?.compare.ok_or_else(|| no_comparison(ty))?;
    compare(cx, &base, coll, a, b)
}

fn equal(cx: &TypeContext<'_>, ty: &TypeDesc, coll: &Collation, a: ValueRef<'_>, b: ValueRef<'_>) -> SqlResult<bool> {
    let base = base_type(cx, ty)?.0;
    let equal = ops(&base)?.equal.ok_or_else(|| no_equality(ty))?;
    equal(cx, &base, coll, a, b)
}

fn key(cx: &TypeContext<'_>, ty: &TypeDesc, coll: &Collation, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    let base = base_type(cx, ty)?.0;
    let key = ops(&base)?.key.ok_or_else(|| no_comparison(ty))?;
    key(cx, &base, coll, v, out)
}

fn hash(cx: &TypeContext<'_>, ty: &TypeDesc, coll: &Collation, v: ValueRef<'_>, seed: u64) -> SqlResult<u64> {
    let base = base_type(cx, ty)?.0;
    let hash = ops(&base)?.hash.ok_or_else(|| no_hash(ty))?;
    hash(cx, &base, coll, v, seed)
}
