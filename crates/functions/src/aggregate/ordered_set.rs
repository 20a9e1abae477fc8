//! `percentile_disc`, `percentile_cont`, `mode`: over the rows in the order that WITHIN GROUP says, NULLs passed over.

use std::cmp::Ordering;

use stegodon_types::array::{ArrayView, build, empty};
use stegodon_types::datetime::Interval;
use stegodon_types::packed::Part;
use stegodon_types::{Datum, SqlError, SqlResult, SqlState, TypeContext, ValueRef, oids};

use super::{AggregateInfo, direct};
use crate::EvalContext;
use crate::kernels::datetime_math::{add, multiply, subtract};

fn check(fraction: f64) -> SqlResult<f64> {
    if (0.0..=1.0).contains(&fraction) {
        return Ok(fraction);
    }
    let mut text = Vec::new();
    stegodon_types::scalar::float::write_f64(fraction, 0, &mut text);
    let text = String::from_utf8_lossy(&text);
    Err(SqlError::new(SqlState::NumericValueOutOfRange, format!("percentile value {text} is not between 0 and 1")))
}

/// The value of a fraction.
type Pick = fn(&AggregateInfo, &[Option<ValueRef<'_>>], f64) -> SqlResult<Datum>;

fn missing() -> SqlError {
    SqlError::internal("an ordered set lost a row")
}

fn at(values: &[Option<ValueRef<'_>>], row: f64) -> SqlResult<Datum> {
    values.get(row as usize).copied().flatten().map(ValueRef::to_datum).ok_or_else(missing)
}

/// The first value at or after the fraction.
pub(super) fn discrete(_: &AggregateInfo, values: &[Option<ValueRef<'_>>], fraction: f64) -> SqlResult<Datum> {
    at(values, ((fraction * values.len() as f64).ceil() - 1.0).max(0.0))
}

/// The value at the fraction, between two rows a mean of both.
pub(super) fn continuous(_: &AggregateInfo, values: &[Option<ValueRef<'_>>], fraction: f64) -> SqlResult<Datum> {
    let place = fraction * (values.len() as f64 - 1.0);
    let (low, high) = (place.floor(), place.ceil());
    let first = at(values, low)?;
    if low == high {
        return Ok(first);
    }
    let proportion = place - low;
    match (first, at(values, high)?) {
        (Datum::Float64(a), Datum::Float64(b)) => Ok(Datum::Float64(a + proportion * (b - a))),
        (Datum::Bytes(a), Datum::Bytes(b)) => {
            let (a, b) = (Interval::from_bytes(&a), Interval::from_bytes(&b));
            let (Some(a), Some(b)) = (a, b) else { return Err(missing()) };
            Ok(add(a, multiply(subtract(b, a)?, proportion)?)?.to_datum())
        }
        _ => Err(missing()),
    }
}

/// `percentile_…(fraction)`.
pub(super) fn percentile(
    cx: &EvalContext<'_>,
    info: &AggregateInfo,
    values: &[Option<ValueRef<'_>>],
    pick: Pick,
) -> SqlResult<Option<Datum>> {
    let fraction = match direct(cx, info, 0)? {
        None => return Ok(None),
        Some(Datum::Float64(v)) => check(v)?,
        Some(_) => return Err(SqlError::internal("a fraction is no float8")),
    };
    if values.is_empty() { Ok(None) } else { pick(info, values, fraction).map(Some) }
}

/// `percentile_…(fractions)`: an array of the same shape.
pub(super) fn percentiles(
    cx: &EvalContext<'_>,
    info: &AggregateInfo,
    values: &[Option<ValueRef<'_>>],
    pick: Pick,
) -> SqlResult<Option<Datum>> {
    if values.is_empty() {
        return Ok(None);
    }
    let fractions = direct(cx, info, 0)?;
    let Some(Datum::Bytes(payload)) = fractions else { return Ok(None) };
    let view = ArrayView::parse(&payload)?;
    let ty = info.arg(0)?;
    if view.is_empty() {
        return Ok(Some(Datum::bytes(empty(ty.oid))));
    }
    let part = Part::of(&*cx.types.type_desc(oids::FLOAT8)?)?;
    let fractions = view.elements(part).collect::<SqlResult<Vec<_>>>()?;
    for fraction in fractions.iter().flatten() {
        if let ValueRef::Float64(v) = fraction {
            check(*v)?;
        }
    }
    let picked = fractions
        .iter()
        .map(|f| match f {
            Some(ValueRef::Float64(v)) => pick(info, values, *v).map(Some),
            _ => Ok(None),
        })
        .collect::<SqlResult<Vec<_>>>()?;
    let array = build(ty, view.dimensions(), picked.iter().map(|v| v.as_ref().map(Datum::as_ref)).collect::<Vec<_>>())?;
    Ok(Some(Datum::bytes(array)))
}

/// `mode`: the value met most often, of several the first.
pub(super) fn mode(
    cx: &EvalContext<'_>,
    info: &AggregateInfo,
    values: &[Option<ValueRef<'_>>],
) -> SqlResult<Option<Datum>> {
    let types = TypeContext::new(cx.types, cx.settings);
    let ty = info.arg(0)?;
    let (mut best, mut best_count) = (None, 0);
    let (mut run, mut count) = (None, 0);
    for value in values.iter().flatten() {
        let same = match run {
            Some(first) => stegodon_types::compare(&types, ty, &info.collation, first, *value)? == Ordering::Equal,
            None => false,
        };
        if !same {
            (run, count) = (Some(*value), 0);
        }
        count += 1;
        if count > best_count {
            (best, best_count) = (run, count);
        }
    }
    Ok(best.map(ValueRef::to_datum))
}
