//! The aggregates by `pg_proc` OID.
#![allow(clippy::unnecessary_wraps, reason = "entries of one table have one shape")]

use stegodon_types::{Layout, Oid, SqlResult};

use super::bytes::BytesFold;
use super::collect::{self, Collect, StringAgg};
use super::count::Count;
use super::float::{Moment, Moments};
use super::fold::Fold;
use super::interval::{Intervals, STATE};
use super::json;
use super::min_max::{Keep, MinMax};
use super::numeric::{Ask, Input, NumericSums, NumericVariances};
use super::regression::{Regression, Regressions};
use super::{AggregateFunction, AggregateInfo, Create, float_overflow};
use super::{ordered_set, ranges};
use crate::eval::layout_of;
use crate::kernels::{bits, range};

fn exact(create: Create, states: fn(&AggregateInfo) -> SqlResult<Vec<Layout>>) -> Option<AggregateFunction> {
    Some(AggregateFunction { create, states, exact_merge: true })
}

fn inexact(create: Create, states: fn(&AggregateInfo) -> SqlResult<Vec<Layout>>) -> Option<AggregateFunction> {
    Some(AggregateFunction { create, states, exact_merge: false })
}

fn result(info: &AggregateInfo) -> SqlResult<Vec<Layout>> {
    Ok(vec![info.layout])
}

fn first_argument(info: &AggregateInfo) -> SqlResult<Vec<Layout>> {
    Ok(vec![layout_of(info.arg(0)?)?])
}

macro_rules! fold {
    ($in:ty => $acc:ty, $first:expr, $step:expr, $merge:expr) => {
        |_: &AggregateInfo| Ok(Box::new(Fold::<$in, $acc, _, _, _>::new($first, $step, $merge)))
    };
    ($t:ty, $step:expr) => {
        fold!($t => $t, |v| v, $step, $step)
    };
}

macro_rules! collect {
    ($skip_nulls:literal, $finish:expr) => {
        exact(|i| Collect::create(i, $skip_nulls, $finish), |_| Ok(vec![Layout::Bytes]))
    };
}

macro_rules! moments {
    ($moment:ident) => {
        inexact(
            |_| Ok(Moments::create(Moment::$moment)),
            |_| Ok(vec![Layout::Float64, Layout::Float64, Layout::Float64]),
        )
    };
}

/// Variances of int8, int4, int2 stand in this order from the base OID on, numeric five after it.
macro_rules! variance {
    ($oid:ident, $base:literal, $moment:ident) => {
        match $oid.0 - $base {
            0 => exact(|_| Ok(NumericVariances::create(Input::Int64, Moment::$moment)), numeric_variance),
            1 => exact(|_| Ok(NumericVariances::create(Input::Int32, Moment::$moment)), numeric_variance),
            2 => exact(|_| Ok(NumericVariances::create(Input::Int16, Moment::$moment)), numeric_variance),
            _ => exact(|_| Ok(NumericVariances::create(Input::Numeric, Moment::$moment)), numeric_variance),
        }
    };
}

fn numeric_sum(_: &AggregateInfo) -> SqlResult<Vec<Layout>> {
    Ok(vec![Layout::Int64, Layout::Bytes])
}

fn numeric_variance(_: &AggregateInfo) -> SqlResult<Vec<Layout>> {
    Ok(vec![Layout::Int64, Layout::Bytes, Layout::Bytes])
}

fn add_int<T: Into<i64>>(sum: i64, v: T) -> SqlResult<i64> {
    Ok(sum.wrapping_add(v.into()))
}

fn add4(a: f32, b: f32) -> SqlResult<f32> {
    let sum = a + b;
    if sum.is_infinite() && !a.is_infinite() && !b.is_infinite() { Err(float_overflow()) } else { Ok(sum) }
}

fn add8(a: f64, b: f64) -> SqlResult<f64> {
    let sum = a + b;
    if sum.is_infinite() && !a.is_infinite() && !b.is_infinite() { Err(float_overflow()) } else { Ok(sum) }
}

/// The aggregate of an OID.
pub(super) fn function(oid: Oid) -> Option<AggregateFunction> {
    match oid.0 {
        // count(any), count(*), regr_count
        2147 | 2803 | 2818 => exact(|_| Ok(Box::new(Count::default())), result),
        // sum: int8 of int4 and of int2 cannot overflow before 2^31 rows, and PostgreSQL does not look either.
        2108 => exact(fold!(i32 => i64, i64::from, add_int, |a: i64, b| Ok(a.wrapping_add(b))), result),
        2109 => exact(fold!(i16 => i64, i64::from, add_int, |a: i64, b| Ok(a.wrapping_add(b))), result),
        2110 => inexact(fold!(f32, add4), result),
        2111 => inexact(fold!(f64, add8), result),
        2112 => exact(
            fold!(i64, |a: i64, b: i64| a.checked_add(b).ok_or_else(|| stegodon_types::SqlError::new(
                stegodon_types::SqlState::NumericValueOutOfRange,
                "money out of range"
            ))),
            result,
        ),
        // avg, variance and stddev of float4 and float8
        2104 | 2105 => moments!(Average),
        2721 | 2722 => moments!(VariancePopulation),
        2644 | 2645 | 2151 | 2152 => moments!(VarianceSample),
        2727 | 2728 => moments!(DeviationPopulation),
        2715 | 2716 | 2157 | 2158 => moments!(DeviationSample),
        // sum and avg of int8, numeric; avg of int2 and int4
        2107 => exact(|_| Ok(NumericSums::create(Input::Int64, Ask::Sum)), numeric_sum),
        2114 => exact(|_| Ok(NumericSums::create(Input::Numeric, Ask::Sum)), numeric_sum),
        2100 => exact(|_| Ok(NumericSums::create(Input::Int64, Ask::Average)), numeric_sum),
        2101 => exact(|_| Ok(NumericSums::create(Input::Int32, Ask::Average)), numeric_sum),
        2102 => exact(|_| Ok(NumericSums::create(Input::Int16, Ask::Average)), numeric_sum),
        2103 => exact(|_| Ok(NumericSums::create(Input::Numeric, Ask::Average)), numeric_sum),
        // sum and avg of interval; parallel sums could overflow where one in order does not
        2113 => inexact(|_| Ok(Intervals::create(false)), |_| Ok(STATE.to_vec())),
        2106 => inexact(|_| Ok(Intervals::create(true)), |_| Ok(STATE.to_vec())),
        // variance and stddev of int8, int4, int2, numeric
        2718..=2720 | 2723 => variance!(oid, 2718, VariancePopulation),
        2641..=2643 | 2646 => variance!(oid, 2641, VarianceSample),
        2148..=2150 | 2153 => variance!(oid, 2148, VarianceSample),
        2724..=2726 | 2729 => variance!(oid, 2724, DeviationPopulation),
        2712..=2714 | 2717 => variance!(oid, 2712, DeviationSample),
        2154..=2156 | 2159 => variance!(oid, 2154, DeviationSample),
        // bool_and, every, bool_or
        2517 | 2519 => exact(fold!(bool, |a, b| Ok(a && b)), result),
        2518 => exact(fold!(bool, |a, b| Ok(a || b)), result),
        // bit_and, bit_or, bit_xor of int2, int4, int8
        2236 => exact(fold!(i16, |a, b| Ok(a & b)), result),
        2238 => exact(fold!(i32, |a, b| Ok(a & b)), result),
        2240 => exact(fold!(i64, |a, b| Ok(a & b)), result),
        2237 => exact(fold!(i16, |a, b| Ok(a | b)), result),
        2239 => exact(fold!(i32, |a, b| Ok(a | b)), result),
        2241 => exact(fold!(i64, |a, b| Ok(a | b)), result),
        6164 => exact(fold!(i16, |a, b| Ok(a ^ b)), result),
        6165 => exact(fold!(i32, |a, b| Ok(a ^ b)), result),
        6166 => exact(fold!(i64, |a, b| Ok(a ^ b)), result),
        // bit_and, bit_or, bit_xor of bit
        2242 => exact(|i| BytesFold::create(i, |_, _, a, b| bits::fold(a, b, "AND", |a, b| a & b)), first_argument),
        2243 => exact(|i| BytesFold::create(i, |_, _, a, b| bits::fold(a, b, "OR", |a, b| a | b)), first_argument),
        6167 => exact(|i| BytesFold::create(i, |_, _, a, b| bits::fold(a, b, "XOR", |a, b| a ^ b)), first_argument),
        // max and min of types whose Arrow values order as they do
        2115 | 2125 | 2126 | 2127 | 2123 => exact(fold!(i64, |a: i64, b| Ok(a.max(b))), result),
        2116 | 2122 => exact(fold!(i32, |a: i32, b| Ok(a.max(b))), result),
        2117 => exact(fold!(i16, |a: i16, b| Ok(a.max(b))), result),
        2118 => exact(fold!(u32, |a: u32, b| Ok(a.max(b))), result),
        4189 | 5099 => exact(fold!(u64, |a: u64, b| Ok(a.max(b))), result),
        2131 | 2141 | 2142 | 2143 | 2139 => exact(fold!(i64, |a: i64, b| Ok(a.min(b))), result),
        2132 | 2138 => exact(fold!(i32, |a: i32, b| Ok(a.min(b))), result),
        2133 => exact(fold!(i16, |a: i16, b| Ok(a.min(b))), result),
        2134 => exact(fold!(u32, |a: u32, b| Ok(a.min(b))), result),
        4190 | 5100 => exact(fold!(u64, |a: u64, b| Ok(a.min(b))), result),
        // max and min of the other types: array, float4, float8, timetz, interval, text, numeric, enum, inet, record, bytea
        2050 | 2119 | 2120 | 2124 | 2128 | 2129 | 2130 | 3526 | 3564 | 6373 | 6395 => {
            exact(|i| MinMax::create(i, Keep::Greatest), first_argument)
        }
        2051 | 2135 | 2136 | 2140 | 2144 | 2145 | 2146 | 3527 | 3565 | 6374 | 6396 => {
            exact(|i| MinMax::create(i, Keep::Least), first_argument)
        }
        // bpchar, tid
        2244 | 2797 => exact(|i| MinMax::create(i, Keep::GreatestFirst), first_argument),
        2245 | 2798 => exact(|i| MinMax::create(i, Keep::LeastFirst), first_argument),
        // any_value
        6291 => exact(|i| MinMax::create(i, Keep::First), first_argument),
        // string_agg of text and of bytea
        3538 | 3545 => exact(|_| Ok(Box::new(StringAgg::default())), |_| Ok(vec![Layout::Bytes, Layout::Int64])),
        // array_agg of what is no array
        2335 => collect!(false, collect::array_agg),
        4053 => collect!(false, collect::array_agg_of_arrays),
        // percentile_disc and percentile_cont, of one fraction and of an array of them; mode
        3972 => collect!(true, |c, i, v| ordered_set::percentile(c, i, v, ordered_set::discrete)),
        3974 | 3976 => collect!(true, |c, i, v| ordered_set::percentile(c, i, v, ordered_set::continuous)),
        3978 => collect!(true, |c, i, v| ordered_set::percentiles(c, i, v, ordered_set::discrete)),
        3980 | 3982 => collect!(true, |c, i, v| ordered_set::percentiles(c, i, v, ordered_set::continuous)),
        3984 => collect!(true, ordered_set::mode),
        // json_agg and jsonb_agg, with NULLs and without; json_object_agg and jsonb_object_agg
        3175 => collect!(false, |c, i, v| json::array(c, i, v, false)),
        6276 => collect!(false, |c, i, v| json::array(c, i, v, true)),
        3267 => collect!(false, |c, i, v| json::binary_array(c, i, v, false)),
        6284 => collect!(false, |c, i, v| json::binary_array(c, i, v, true)),
        3197 => collect!(false, |c, i, v| json::object(c, i, v, false)),
        6280 => collect!(false, |c, i, v| json::object(c, i, v, true)),
        3270 => collect!(false, |c, i, v| json::binary_object(c, i, v, false)),
        6288 => collect!(false, |c, i, v| json::binary_object(c, i, v, true)),
        // range_agg of ranges and of multiranges, range_intersect_agg of both
        4301 | 6227 => collect!(true, ranges::range_agg),
        4389 | 4450 => exact(|i| BytesFold::create(i, range::intersect_payloads), first_argument),
        // regr_sxx, syy, sxy, avgx, avgy, r2, slope, intercept, covar_pop, covar_samp, corr
        2819..=2829 => regression(oid.0),
        _ => None,
    }
}

/// The regression aggregates of an OID.
fn regression(oid: u32) -> Option<AggregateFunction> {
    macro_rules! of {
        ($ask:ident) => {
            inexact(|_| Ok(Regressions::create(Regression::$ask)), |_| Ok(vec![Layout::Float64; 6]))
        };
    }
    match oid {
        2819 => of!(Sxx),
        2820 => of!(Syy),
        2821 => of!(Sxy),
        2822 => of!(AverageX),
        2823 => of!(AverageY),
        2824 => of!(R2),
        2825 => of!(Slope),
        2826 => of!(Intercept),
        2827 => of!(CovariancePopulation),
        2828 => of!(CovarianceSample),
        2829 => of!(Correlation),
        _ => None,
    }
}

/// Whether the result depends on the order of the rows, or on which of several equal values is met.
pub(super) fn order_matters(oid: Oid) -> bool {
    // string_agg, array_agg, any_value, json_agg and their like by list; floats because they round.
    let ordered = [
        3538, 3545, 2335, 4053, 6291, 3972, 3974, 3976, 3978, 3980, 3982, 3984, 3175, 6276, 3267, 6284, 3197, 6280,
        3270, 6288,
    ];
    ordered.contains(&oid.0) || function(oid).is_none_or(|f| !f.exact_merge)
}
