//! Comparing arrays: element by element, a NULL above all; then by the number of elements, of dimensions, their lengths
//! and their lower bounds.

use std::cmp::Ordering;

use super::{ArrayView, element_desc};
use crate::ops::{get, no_comparison, no_equality};
use crate::packed::Part;
use crate::{Collation, SqlError, SqlResult, SqlState, TypeContext, TypeDesc, ValueRef, key as keys};

fn pair<'a>(ty: &TypeDesc, a: ValueRef<'a>, b: ValueRef<'a>) -> SqlResult<(ArrayView<'a>, ArrayView<'a>)> {
    let (a, b) = (ArrayView::parse(get::bytes(ty, a)?)?, ArrayView::parse(get::bytes(ty, b)?)?);
    if a.element_type() != b.element_type() {
        return Err(SqlError::new(SqlState::DatatypeMismatch, "cannot compare arrays of different element types"));
    }
    Ok((a, b))
}

/// `btarraycmp`.
pub fn compare(
    cx: &TypeContext<'_>,
    ty: &TypeDesc,
    coll: &Collation,
    a: ValueRef<'_>,
    b: ValueRef<'_>,
) -> SqlResult<Ordering> {
    let (a, b) = pair(ty, a, b)?;
    let element = element_desc(cx, &a)?;
    let compare = crate::ops(&element)?.compare.ok_or_else(|| no_comparison(&element))?;
    let part = Part::of(&element)?;
    for (x, y) in a.elements(part).zip(b.elements(part)) {
        let order = match (x?, y?) {
            (Some(x), Some(y)) => compare(cx, &element, coll, x, y)?,
            (x, y) => x.is_none().cmp(&y.is_none()),
        };
        if order.is_ne() {
            return Ok(order);
        }
    }
    let shape = |v: &ArrayView<'_>| {
        let lengths: Vec<i32> = v.dimensions().iter().map(|d| d.length).collect();
        let lowers: Vec<i32> = v.dimensions().iter().map(|d| d.lower).collect();
        (v.len(), v.dimensions().len(), lengths, lowers)
    };
    Ok(shape(&a).cmp(&shape(&b)))
}

/// `array_eq`.
pub(super) fn equal(
    cx: &TypeContext<'_>,
    ty: &TypeDesc,
    coll: &Collation,
    a: ValueRef<'_>,
    b: ValueRef<'_>,
) -> SqlResult<bool> {
    let (a, b) = pair(ty, a, b)?;
    if a.dimensions() != b.dimensions() {
        return Ok(false);
    }
    let element = element_desc(cx, &a)?;
    let equal = crate::ops(&element)?.equal.ok_or_else(|| no_equality(&element))?;
    let part = Part::of(&element)?;
    for (x, y) in a.elements(part).zip(b.elements(part)) {
        let same = match (x?, y?) {
            (Some(x), Some(y)) => equal(cx, &element, coll, x, y)?,
            (x, y) => x.is_none() == y.is_none(),
        };
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The key: for each element 01 and its key, or 02 for NULL; 00; then the number of dimensions, lengths and bounds.
pub(super) fn key(
    cx: &TypeContext<'_>,
    ty: &TypeDesc,
    coll: &Collation,
    v: ValueRef<'_>,
    out: &mut Vec<u8>,
) -> SqlResult<()> {
    let view = ArrayView::parse(get::bytes(ty, v)?)?;
    let element = element_desc(cx, &view)?;
    let key = crate::ops(&element)?.key.ok_or_else(|| no_comparison(&element))?;
    if !view.is_empty() {
        for value in view.elements(Part::of(&element)?) {
            if let Some(value) = value? {
                out.push(1);
                key(cx, &element, coll, value, out)?;
            } else {
                out.push(2);
            }
        }
    }
    out.push(0);
    out.push(view.dimensions().len() as u8);
    view.dimensions().iter().for_each(|d| keys::i32(d.length, out));
    view.dimensions().iter().for_each(|d| keys::i32(d.lower, out));
    Ok(())
}

/// `hash_array_extended`.
pub(super) fn hash(
    cx: &TypeContext<'_>,
    ty: &TypeDesc,
    coll: &Collation,
    v: ValueRef<'_>,
    seed: u64,
) -> SqlResult<u64> {
    let view = ArrayView::parse(get::bytes(ty, v)?)?;
    let element = element_desc(cx, &view)?;
    let hash = crate::ops(&element)?.hash.ok_or_else(|| no_hash(&element))?;
    let mut result = 1u64;
    if !view.is_empty() {
        for value in view.elements(Part::of(&element)?) {
            let element_hash = match value? {
                Some(value) => hash(cx, &element, coll, value, seed)?,
                None => 0,
            };
            result = combine(result, element_hash);
        }
    }
    Ok(result)
}

/// How the hashes of parts become one.
pub(crate) fn combine(hash: u64, part: u64) -> u64 {
    hash.wrapping_mul(31).wrapping_add(part)
}

/// `42883`.
pub(crate) fn no_hash(ty: &TypeDesc) -> SqlError {
    SqlError::new(
        SqlState::UndefinedFunction,
        format!("could not identify an extended hash function for type {}", crate::names::sql_name(ty)),
    )
}
