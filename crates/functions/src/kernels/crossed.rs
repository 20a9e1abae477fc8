//! Comparisons across types (dates with timestamps, with and without a zone) and by other rules than the type's own
//! (text and bpchar byte by byte, whatever the collation).

use std::cmp::Ordering;

use stegodon_types::scalar::text::trim_blanks;
use stegodon_types::{Oid, SqlError, SqlResult, TypeContext, comparator, value_at};

use crate::adapt::*;
use crate::eval::layout_of;
use crate::kernel::Entry;
use crate::{Call, Column};

/// Compares through a B-tree support function, each side read in its own layout.
fn crossed(call: &Call<'_>, support: u32, f: impl Fn(Ordering) -> bool) -> SqlResult<Column> {
    let compare = comparator(Oid(support)).ok_or_else(|| SqlError::internal("a comparison is gone"))?;
    let [left_type, right_type] = call.info.arg_types.as_slice() else {
        return Err(SqlError::internal("a comparison without two arguments"));
    };
    let (left_layout, right_layout) = (layout_of(left_type)?, layout_of(right_type)?);
    let (left, right) = (argument(call, 0)?, argument(call, 1)?);
    let cx = TypeContext::new(call.cx.types, call.cx.settings);
    let at = |column: &Column, row| if column.is_const() { 0 } else { row };
    map_rows(call, |row| {
        let a = value_at(left.array().as_ref(), left_layout, at(left, row));
        let b = value_at(right.array().as_ref(), right_layout, at(right, row));
        let (Some(a), Some(b)) = (a, b) else {
            return Err(SqlError::internal("an argument is not of its layout"));
        };
        Ok(f(compare(&cx, left_type, &call.info.collation, a, b)?))
    })
}

/// Each line: the support function, then `=`, `<>`, `<`, `<=`, `>=`, `>`.
macro_rules! crossed {
    ($($support:literal [$eq:literal $ne:literal $lt:literal $le:literal $ge:literal $gt:literal];)*) => {
        /// Across types.
        pub(crate) static KERNELS: &[Entry] = &[$(
            ($eq, |c| crossed(c, $support, Ordering::is_eq)),
            ($ne, |c| crossed(c, $support, Ordering::is_ne)),
            ($lt, |c| crossed(c, $support, Ordering::is_lt)),
            ($le, |c| crossed(c, $support, Ordering::is_le)),
            ($ge, |c| crossed(c, $support, Ordering::is_ge)),
            ($gt, |c| crossed(c, $support, Ordering::is_gt)),
        )*];
    };
}

crossed! {
    2344 [2340 2343 2338 2339 2342 2341]; // date, timestamp
    2357 [2353 2356 2351 2352 2355 2354]; // date, timestamptz
    2370 [2366 2369 2364 2365 2368 2367]; // timestamp, date
    2383 [2379 2382 2377 2378 2381 2380]; // timestamptz, date
    2526 [2522 2525 2520 2521 2524 2523]; // timestamp, timestamptz
    2533 [2529 2532 2527 2528 2531 2530]; // timestamptz, timestamp
}

fn blanks_trimmed(call: &Call<'_>, f: impl Fn(&[u8], &[u8]) -> bool) -> SqlResult<Column> {
    compare2(call, |a: &[u8], b: &[u8]| f(trim_blanks(a), trim_blanks(b)))
}

/// `~<~`, `~<=~`, `~>=~`, `~>~` of text and bpchar.
pub(crate) static PATTERN: &[Entry] = &[
    (2160, |c| compare2(c, |a: &[u8], b: &[u8]| a < b)),
    (2161, |c| compare2(c, |a: &[u8], b: &[u8]| a <= b)),
    (2163, |c| compare2(c, |a: &[u8], b: &[u8]| a >= b)),
    (2164, |c| compare2(c, |a: &[u8], b: &[u8]| a > b)),
    (2174, |c| blanks_trimmed(c, |a, b| a < b)),
    (2175, |c| blanks_trimmed(c, |a, b| a <= b)),
    (2177, |c| blanks_trimmed(c, |a, b| a >= b)),
    (2178, |c| blanks_trimmed(c, |a, b| a > b)),
];
