//! What the functions of 15, 16 and 17 answer otherwise than those of 18.
//!
//! Found by asking four servers every call that `testdata` records. A kernel that knows both answers asks
//! `FormatSettings::version`; here are those of which the older answer is not known. The rest is equal, or of types whose
//! texts are read by version (`types`).
//!
//! | before | function | then |
//! |---|---|---|
//! | 16 | `power(numeric, numeric)` | another number of decimals; refused |
//! | 16 | `width_bucket(float8, …)` | another rounding; refused |
//! | 17 | whatever takes or gives an interval | no infinities, and overflows went on; an infinity or overflow is refused |

use std::sync::Arc;

use stegodon_format::version::Version;
use stegodon_types::datetime::{Interval, date, timestamp};
use stegodon_types::{Oid, SqlError, SqlResult, SqlState, TypeDesc, ValueRef, oids};

use crate::kernel::{KernelFn, kernel};
use crate::{Call, Column};

/// `numeric_power` under its three names, `width_bucket` of `float8`.
const BEFORE_16: [u32; 4] = [1738, 1739, 2169, 320];

/// The kernel of a function of another version than the newest; `None` where its answer is not known.
pub(crate) fn older_kernel(
    version: Version,
    function: Oid,
    args: &[Arc<TypeDesc>],
    result: &TypeDesc,
) -> Option<KernelFn> {
    if version < Version::V16 && BEFORE_16.contains(&function.0) {
        return None;
    }
    let newest = kernel(function)?;
    let has_interval = args.iter().map(|a| &**a).chain([result]).any(|t| t.oid == oids::INTERVAL);
    if version < Version::V17 && has_interval { Some(finite) } else { Some(newest) }
}

fn unknown() -> SqlError {
    SqlError::unsupported("an infinite or overflowing interval, in a directory older than 17")
}

/// Whether any value is an infinity that the function would meet, or an interval whose microseconds have no negation.
fn any_infinite(column: &Column, ty: &TypeDesc, rows: usize, intervals_only: bool) -> SqlResult<bool> {
    if !(ty.oid == oids::INTERVAL
        || !intervals_only && matches!(ty.oid, oids::TIMESTAMP | oids::TIMESTAMPTZ | oids::DATE))
    {
        return Ok(false);
    }
    let layout = crate::eval::layout_of(ty)?;
    let rows = if column.is_const() { 1 } else { rows };
    Ok((0..rows).any(|row| match column.value(layout, row) {
        Some(ValueRef::Int64(us)) => !timestamp::is_finite(us),
        Some(ValueRef::Int32(days)) => !date::is_finite(days),
        Some(ValueRef::Bytes(bytes)) => Interval::from_bytes(bytes).is_some_and(|v| !v.is_finite() || v.us == i64::MIN),
        _ => false,
    }))
}

/// A function with an interval among its arguments, or as its result, where there is no infinite one.
fn finite(call: &Call<'_>) -> SqlResult<Column> {
    let newest = kernel(call.info.function).ok_or_else(|| SqlError::internal("a kernel that has gone"))?;
    let gives = call.info.result_type.oid == oids::INTERVAL;
    // Adding to an infinite timestamp was and is infinite; the difference of one is what is new.
    for (column, ty) in call.args.iter().zip(&call.info.arg_types) {
        if any_infinite(column, ty, call.rows, !gives)? {
            return Err(unknown());
        }
    }
    let column = newest(call).map_err(|e| match e.state {
        SqlState::DatetimeFieldOverflow => unknown(),
        _ => e,
    })?;
    if any_infinite(&column, &call.info.result_type, call.rows, true)? { Err(unknown()) } else { Ok(column) }
}
