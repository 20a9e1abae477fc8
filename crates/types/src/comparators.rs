//! The B-tree support functions by OID: what an index compares its keys with.

use std::cmp::Ordering;

use stegodon_format::ids::Oid;

use crate::ops::{CompareFn, get};
use crate::scalar::{bits, boolean, bytea, float, ids, int, text, uuid};
use crate::{
    Collation, SqlResult, TypeContext, TypeDesc, ValueRef, array, datetime, enums, json, multirange, network, range,
    record,
};

/// A B-tree support function 1: compares a value of the operator class's left type with one of its right type. The
/// description is that of the indexed column, which only polymorphic classes (arrays, enums, rows, ranges) look at.
pub type Comparator = CompareFn;

/// The support function with this OID in `pg_proc`; `None` where it is not done, and an index of such a class must not
/// be descended.
pub fn comparator(support_proc: Oid) -> Option<Comparator> {
    Some(match support_proc.0 {
        246 | 253 | 359 | 360 => text::compare,
        350 => int::int2::compare,
        351 => int::int4::compare,
        842 => int::int8::compare,
        354 => float::compare4,
        355 => float::compare8,
        358 => text::compare_char,
        1078 => text::compare_bpchar,
        1693 => boolean::compare,
        1769 => crate::numeric::compare,
        356 => ids::compare32,
        377 => int::int8::compare,
        382 => array::compare_arrays,
        404 => array::vector::compare,
        1596 | 1672 => bits::compare,
        2794 => ids::compare_tid,
        2987 => record::compare,
        3251 | 5096 => ids::compare64,
        3514 => enums::compare,
        3870 => range::compare,
        4273 => multirange::compare,
        1954 => bytea::compare,
        2166 => text::compare_pattern,
        2180 => text::compare_bpchar_pattern,
        2188..=2193 => cross_int,
        2194 | 2195 => cross_float,
        2960 => uuid::compare,
        926 => network::compare,
        836 | 4119 => uuid::compare,
        1092 => int::int4::compare,
        1107 | 1314 | 2045 => int::int8::compare,
        1315 => datetime::interval::compare,
        1358 => datetime::timetz::compare,
        2344 | 2370 => datetime::timestamp::compare_date,
        2357 | 2383 => datetime::timestamp::compare_date_tz,
        2526 => datetime::timestamp::compare_timestamp_tz,
        2533 => datetime::timestamp::compare_tz_timestamp,
        4044 => json::compare,
        _ => return None,
    })
}

fn widen_int(ty: &TypeDesc, v: ValueRef<'_>) -> SqlResult<i64> {
    match v {
        ValueRef::Int16(v) => Ok(i64::from(v)),
        ValueRef::Int32(v) => Ok(i64::from(v)),
        ValueRef::Int64(v) => Ok(v),
        _ => Err(crate::ops::wrong_layout(ty)),
    }
}

/// `btint24cmp` and the other five.
fn cross_int(
    _: &TypeContext<'_>,
    ty: &TypeDesc,
    _: &Collation,
    a: ValueRef<'_>,
    b: ValueRef<'_>,
) -> SqlResult<Ordering> {
    Ok(widen_int(ty, a)?.cmp(&widen_int(ty, b)?))
}

fn widen_float(ty: &TypeDesc, v: ValueRef<'_>) -> SqlResult<f64> {
    match v {
        ValueRef::Float32(v) => Ok(f64::from(v)),
        _ => get::f64(ty, v),
    }
}

/// `btfloat48cmp` and `btfloat84cmp`.
fn cross_float(
    _: &TypeContext<'_>,
    ty: &TypeDesc,
    _: &Collation,
    a: ValueRef<'_>,
    b: ValueRef<'_>,
) -> SqlResult<Ordering> {
    Ok(float::order(widen_float(ty, a)?, widen_float(ty, b)?))
}
