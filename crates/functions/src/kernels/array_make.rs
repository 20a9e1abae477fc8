//! `array_fill`, `array_sort`, `array_reverse`, `width_bucket`.

use std::cmp::Ordering;

use stegodon_types::array::{ArrayView, Dimension, MAX_DIMENSIONS, build, element_count, empty};
use stegodon_types::numeric::Numeric;
use stegodon_types::packed::Part;
use stegodon_types::{SqlError, SqlResult, SqlState, TypeContext, TypeDesc, ValueRef, compare, oids};

use super::array::{element_of, value, view};
use super::int::int4_range;
use crate::adapt::*;
use crate::column::ByteBuilder;
use crate::kernel::Entry;
use crate::{Call, Column};

fn error(state: SqlState, message: &str) -> SqlError {
    SqlError::new(state, message)
}

/// An `int4[]` of one dimension, without NULLs.
fn numbers(call: &Call<'_>, n: usize, row: usize) -> SqlResult<Vec<i32>> {
    let null = || error(SqlState::NullValueNotAllowed, "dimension array or low bound array cannot be null");
    let view = view(call, n, row)?.ok_or_else(null)?;
    if view.dimensions().len() > 1 {
        return Err(error(SqlState::ArraySubscriptError, "wrong number of array subscripts"));
    }
    let part = Part::of(&*call.cx.types.type_desc(oids::INT4)?)?;
    view.elements(part)
        .map(|v| match v? {
            Some(ValueRef::Int32(v)) => Ok(v),
            _ => Err(error(SqlState::NullValueNotAllowed, "dimension values cannot be null")),
        })
        .collect()
}

fn fill(call: &Call<'_>) -> SqlResult<Column> {
    let element = element_of(call, &call.info.result_type)?;
    let mut out = ByteBuilder::new(call.info.layout, call.rows, 0);
    for row in 0..call.rows {
        let null = || error(SqlState::NullValueNotAllowed, "dimension array or low bound array cannot be null");
        // Both arrays are looked at before either is read.
        for n in 1..call.args.len() {
            if argument(call, n)?.is_null(row) {
                return Err(null());
            }
        }
        let lengths = numbers(call, 1, row)?;
        if lengths.len() > MAX_DIMENSIONS {
            return Err(SqlError::new(
                SqlState::ProgramLimitExceeded,
                format!(
                    "number of array dimensions ({}) exceeds the maximum allowed ({MAX_DIMENSIONS})",
                    lengths.len()
                ),
            ));
        }
        let lowers = if call.args.len() > 2 { numbers(call, 2, row)? } else { vec![1; lengths.len()] };
        if lowers.len() != lengths.len() {
            return Err(error(SqlState::ArraySubscriptError, "wrong number of array subscripts"));
        }
        let dimensions: Vec<Dimension> =
            lengths.iter().zip(&lowers).map(|(&length, &lower)| Dimension { length, lower }).collect();
        let count = element_count(&dimensions)?;
        if count == 0 {
            out.push(Some(&empty(element.oid)));
            continue;
        }
        if dimensions.iter().any(|d| i64::from(d.lower) + i64::from(d.length) > i64::from(i32::MAX)) {
            return Err(SqlError::unsupported("an array whose subscripts go that far"));
        }
        let fill = value(call, 0, row)?;
        out.push(Some(&build(&element, &dimensions, vec![fill; count])?));
    }
    Ok(shape(call, out.finish()?))
}

/// Arrays with their elements in another order.
fn reorder(
    call: &Call<'_>,
    f: impl for<'a> Fn(&TypeDesc, usize, &mut Vec<Option<ValueRef<'a>>>) -> SqlResult<()>,
) -> SqlResult<Column> {
    let element = element_of(call, &call.info.result_type)?;
    let part = Part::of(&element)?;
    let mut row = 0;
    rows_write(call, |at, out| {
        row = at;
        let Some(view) = view(call, 0, row)? else { return Ok(false) };
        if view.dimensions().len() > 1 {
            return Err(SqlError::unsupported("reordering a multidimensional array"));
        }
        let mut values = view.elements(part).collect::<SqlResult<Vec<_>>>()?;
        f(&element, row, &mut values)?;
        out.extend_from_slice(&if values.is_empty() {
            empty(element.oid)
        } else {
            build(&element, view.dimensions(), values)?
        });
        Ok(true)
    })
}

fn flag(call: &Call<'_>, n: usize, row: usize) -> Option<bool> {
    match call.args.get(n)?.value(stegodon_types::Layout::Bool, row) {
        Some(ValueRef::Bool(v)) => Some(v),
        _ => None,
    }
}

fn sort(call: &Call<'_>) -> SqlResult<Column> {
    let cx = TypeContext::new(call.cx.types, call.cx.settings);
    reorder(call, |ty, row, values| {
        let descending = flag(call, 1, row).unwrap_or(false);
        let nulls_first = flag(call, 2, row).unwrap_or(descending);
        if values.len() < 2 {
            return Ok(());
        }
        let mut failed = None;
        values.sort_by(|a, b| match (a, b) {
            (Some(a), Some(b)) => {
                let order = compare(&cx, ty, &call.info.collation, *a, *b).unwrap_or_else(|e| {
                    failed.get_or_insert(e);
                    Ordering::Equal
                });
                if descending { order.reverse() } else { order }
            }
            (a, b) if nulls_first => a.is_some().cmp(&b.is_some()),
            (a, b) => b.is_some().cmp(&a.is_some()),
        });
        failed.map_or(Ok(()), Err)
    })
}

fn bucket_error(message: &str) -> SqlError {
    error(SqlState::InvalidArgumentForWidthBucket, message)
}

/// The buckets beside all others.
fn outermost(below: bool, beyond: bool, count: i32) -> SqlResult<Option<i32>> {
    if below {
        return Ok(Some(0));
    }
    if beyond { count.checked_add(1).map(Some).ok_or_else(int4_range) } else { Ok(None) }
}

fn check_count(count: i32) -> SqlResult<()> {
    if count <= 0 { Err(bucket_error("count must be greater than zero")) } else { Ok(()) }
}

const NOT_NAN: &str = "operand, lower bound, and upper bound cannot be NaN";
const FINITE: &str = "lower and upper bounds must be finite";
const NOT_EQUAL: &str = "lower bound cannot equal upper bound";

fn bucket_of_float(v: f64, low: f64, high: f64, count: i32) -> SqlResult<i32> {
    check_count(count)?;
    if v.is_nan() || low.is_nan() || high.is_nan() {
        return Err(bucket_error(NOT_NAN));
    }
    if low.is_infinite() || high.is_infinite() {
        return Err(bucket_error(FINITE));
    }
    if low == high {
        return Err(bucket_error(NOT_EQUAL));
    }
    let up = low < high;
    let (below, beyond) = if up { (v < low, v >= high) } else { (v > low, v <= high) };
    if let Some(bucket) = outermost(below, beyond, count)? {
        return Ok(bucket);
    }
    let (offset, width) = if up { (v - low, high - low) } else { (low - v, low - high) };
    let share = if width.is_infinite() {
        if up {
            (v / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0)
        } else {
            (low / 2.0 - v / 2.0) / (low / 2.0 - high / 2.0)
        }
    } else {
        offset / width
    };
    let bucket = (f64::from(count) * share) as i32;
    // The quotient may have been rounded up to 1.
    Ok(bucket.min(count - 1) + 1)
}

fn bucket_of_numeric(v: &[u8], low: &[u8], high: &[u8], count: i32) -> SqlResult<i32> {
    check_count(count)?;
    let (v, low, high) = (Numeric::from_payload(v)?, Numeric::from_payload(low)?, Numeric::from_payload(high)?);
    if v.is_nan() || low.is_nan() || high.is_nan() {
        return Err(bucket_error(NOT_NAN));
    }
    if low.finite().is_none() || high.finite().is_none() {
        return Err(bucket_error(FINITE));
    }
    let up = match low.partial_cmp(&high) {
        Some(Ordering::Less) => true,
        Some(Ordering::Greater) => false,
        _ => return Err(bucket_error(NOT_EQUAL)),
    };
    let (below, beyond) = if up { (v < low, v >= high) } else { (v > low, v <= high) };
    if let Some(bucket) = outermost(below, beyond, count)? {
        return Ok(bucket);
    }
    let (offset, width) = if up { (v.sub(&low), high.sub(&low)) } else { (low.sub(&v), low.sub(&high)) };
    let bucket = offset.mul(&Numeric::from(i64::from(count))).div_trunc(&width)?.to_i32()?;
    bucket.checked_add(1).ok_or_else(int4_range)
}

/// `width_bucket(v, thresholds)`: how many thresholds, which are sorted, are not above it.
fn bucket_of_array(call: &Call<'_>) -> SqlResult<Column> {
    let ty = call.info.arg_types.get(1).ok_or_else(|| SqlError::internal("an argument has no type"))?;
    let element = element_of(call, ty)?;
    let part = Part::of(&element)?;
    let cx = TypeContext::new(call.cx.types, call.cx.settings);
    map_rows(call, |row| {
        let (Some(v), Some(view)) = (value(call, 0, row)?, view(call, 1, row)?) else {
            return Err(SqlError::internal("an argument is not of its layout"));
        };
        bucket_among(&cx, call, &element, v, &view, part)
    })
}

fn bucket_among(
    cx: &TypeContext<'_>,
    call: &Call<'_>,
    element: &TypeDesc,
    v: ValueRef<'_>,
    view: &ArrayView<'_>,
    part: Part,
) -> SqlResult<i32> {
    if view.dimensions().len() > 1 {
        return Err(error(SqlState::ArraySubscriptError, "thresholds must be one-dimensional array"));
    }
    let thresholds = view
        .elements(part)
        .map(|t| t?.ok_or_else(|| error(SqlState::NullValueNotAllowed, "thresholds array must not contain NULLs")))
        .collect::<SqlResult<Vec<_>>>()?;
    let (mut low, mut high) = (0, thresholds.len());
    while low < high {
        let middle = low + (high - low) / 2;
        let Some(threshold) = thresholds.get(middle) else { break };
        let below = compare(cx, element, &call.info.collation, v, *threshold)?.is_lt();
        if below { high = middle } else { low = middle + 1 }
    }
    Ok(low as i32)
}

/// Functions.
pub(crate) static KERNELS: &[Entry] = &[
    (1193, fill),
    (1286, fill),
    (6388, sort),
    (6389, sort),
    (6390, sort),
    (6381, |c| {
        reorder(c, |_, _, values| {
            values.reverse();
            Ok(())
        })
    }),
    (320, |c| map4(c, bucket_of_float)),
    (2170, |c| map4(c, bucket_of_numeric)),
    (3218, bucket_of_array),
];
