//! The functions of a window, over one partition at a time.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, UInt32Array};
use stegodon_functions::aggregate::{Accumulator, AggregatePlan};
use stegodon_types::{Layout, Oid, SqlError, SqlResult, SqlState};

use super::frame::{Frames, Runs};
use crate::execution::Execution;
use crate::operator::malformed;

/// A call: its arguments are columns of the input.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) kind: Kind,
    pub(super) args: Vec<usize>,
    pub(super) filter: Option<usize>,
    pub(super) layout: Layout,
}

/// Which function.
#[derive(Debug)]
pub(super) enum Kind {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile,
    /// `lag` (backwards) or `lead`.
    Shifted {
        backwards: bool,
    },
    FirstValue,
    LastValue,
    NthValue,
    Aggregate(Arc<AggregatePlan>),
}

impl Kind {
    /// The function of a `pg_proc` OID.
    pub(super) fn of(function: Oid) -> Option<Self> {
        Some(match function.0 {
            3100 => Kind::RowNumber,
            3101 => Kind::Rank,
            3102 => Kind::DenseRank,
            3103 => Kind::PercentRank,
            3104 => Kind::CumeDist,
            3105 => Kind::Ntile,
            3106..=3108 => Kind::Shifted { backwards: true },
            3109..=3111 => Kind::Shifted { backwards: false },
            3112 => Kind::FirstValue,
            3113 => Kind::LastValue,
            3114 => Kind::NthValue,
            _ => return None,
        })
    }
}

/// The values of the rows before the first that fails, and its error.
type Values = (ArrayRef, Option<SqlError>);

impl Call {
    /// The call's value for each row of a partition.
    pub(super) fn values(
        &self,
        execution: &Execution,
        frames: &Frames,
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> SqlResult<Values> {
        let rows = frames.rows();
        let rank = |row: usize| frames.peers(row).start as i64 + 1;
        let first = |place: usize| args.get(place).ok_or_else(|| malformed("a window function lacks an argument"));
        let whole = |array: ArrayRef| Ok((array, None));
        match &self.kind {
            Kind::RowNumber => whole(Arc::new(Int64Array::from_iter_values(1..=rows as i64))),
            Kind::Rank => whole(Arc::new(Int64Array::from_iter_values((0..rows).map(rank)))),
            Kind::DenseRank => {
                whole(Arc::new(Int64Array::from_iter_values((0..rows).map(|row| frames.group(row) as i64 + 1))))
            }
            Kind::PercentRank => {
                let value = |row| if rows > 1 { (rank(row) - 1) as f64 / (rows - 1) as f64 } else { 0.0 };
                whole(Arc::new(Float64Array::from_iter_values((0..rows).map(value))))
            }
            Kind::CumeDist => {
                let value = |row| frames.peers(row).end as f64 / rows as f64;
                whole(Arc::new(Float64Array::from_iter_values((0..rows).map(value))))
            }
            Kind::Ntile => Ok(ntile(rows, int4(first(0)?)?)),
            Kind::Shifted { backwards } => whole(shifted(*backwards, args)?),
            Kind::FirstValue => whole(taken(first(0)?, (0..rows).map(|row| frames.of(row).nth(0)))?),
            Kind::LastValue => whole(taken(first(0)?, (0..rows).map(|row| frames.of(row).last()))?),
            Kind::NthValue => nth_value(frames, first(0)?, int4(first(1)?)?),
            Kind::Aggregate(plan) => Aggregation { plan, execution, args, filter }.values(frames),
        }
    }
}

fn int4(array: &ArrayRef) -> SqlResult<&Int32Array> {
    array.as_any().downcast_ref().ok_or_else(|| malformed("a window function's argument is no int4"))
}

fn taken(array: &ArrayRef, rows: impl Iterator<Item = Option<usize>>) -> SqlResult<ArrayRef> {
    let rows: UInt32Array = rows.map(|row| row.map(|r| r as u32)).collect();
    arrow_select::take::take(array.as_ref(), &rows, None).map_err(SqlError::internal)
}

/// Buckets of sizes that differ by one at most, the larger ones first. The count is the first row's.
fn ntile(rows: usize, buckets: &Int32Array) -> Values {
    if rows == 0 || buckets.is_null(0) {
        return (Arc::new(Int32Array::new_null(rows)), None);
    }
    let buckets = buckets.value(0);
    if buckets <= 0 {
        let error = SqlError::new(SqlState::InvalidArgumentForNtile, "argument of ntile must be greater than zero");
        return (Arc::new(Int32Array::new_null(0)), Some(error));
    }
    let buckets = buckets as usize;
    let (size, larger) = (rows / buckets, rows % buckets);
    let border = larger * (size + 1);
    let bucket = |row: usize| {
        let bucket = if row < border { row / (size + 1) } else { larger + (row - border) / size.max(1) };
        bucket as i32 + 1
    };
    (Arc::new(Int32Array::from_iter_values((0..rows).map(bucket))), None)
}

/// `lag` and `lead`: the value so many rows before or behind; the default where there is no such row.
fn shifted(backwards: bool, args: &[ArrayRef]) -> SqlResult<ArrayRef> {
    let values = args.first().ok_or_else(|| malformed("lag of nothing"))?;
    let offsets = args.get(1).map(int4).transpose()?;
    let rows = values.len();
    let default = args.get(2);
    let place = |row: usize| {
        let offset = match offsets {
            None => 1,
            Some(offsets) if offsets.is_null(row) => return None,
            Some(offsets) => i64::from(offsets.value(row)),
        };
        let target = if backwards { row as i64 - offset } else { row as i64 + offset };
        match usize::try_from(target) {
            Ok(target) if target < rows => Some(target),
            // Behind the values stand the defaults.
            _ => default.map(|_| rows + row),
        }
    };
    let places = (0..rows).map(place);
    match default {
        None => taken(values, places),
        Some(default) => {
            let both =
                arrow_select::concat::concat(&[values.as_ref(), default.as_ref()]).map_err(SqlError::internal)?;
            taken(&both, places)
        }
    }
}

fn nth_value(frames: &Frames, values: &ArrayRef, n: &Int32Array) -> SqlResult<Values> {
    let mut places = Vec::with_capacity(values.len());
    let mut error = None;
    for row in 0..values.len() {
        if n.is_null(row) {
            places.push(None);
            continue;
        }
        match usize::try_from(n.value(row)) {
            Ok(n) if n > 0 => places.push(frames.of(row).nth(n - 1)),
            _ => {
                let message = "argument of nth_value must be greater than zero";
                error = Some(SqlError::new(SqlState::InvalidArgumentForNthValue, message));
                break;
            }
        }
    }
    Ok((taken(values, places.into_iter())?, error))
}

/// An aggregate over frames.
struct Aggregation<'a> {
    plan: &'a AggregatePlan,
    execution: &'a Execution,
    args: &'a [ArrayRef],
    filter: Option<&'a BooleanArray>,
}

impl Aggregation<'_> {
    /// One value a row. Rows whose frames are the same share it. A frame that only grows is added to, any other is
    /// aggregated anew: PostgreSQL takes rows out again where that gives the same result, which is faster and no different.
    fn values(&self, frames: &Frames) -> SqlResult<Values> {
        let mut results: Vec<ArrayRef> = Vec::new();
        let mut places: Vec<u32> = Vec::with_capacity(frames.rows());
        let mut before: Option<Runs> = None;
        let mut accumulator = self.plan.create()?;
        let mut at = 0;
        let mut error = None;
        for row in 0..frames.rows() {
            let frame = frames.of(row);
            if before.as_ref() != Some(&frame) {
                self.execution.cancel.check()?;
                let value = if frames.grow_only() {
                    self.grow(&mut accumulator, &mut at, frame.end())
                } else {
                    self.fresh(&mut accumulator, &frame)
                };
                match value {
                    Ok(value) => results.push(value),
                    Err(e) if matches!(e.state, SqlState::QueryCanceled | SqlState::AdminShutdown) => return Err(e),
                    Err(e) => {
                        error = Some(e);
                        break;
                    }
                }
                before = Some(frame);
            }
            places.push(results.len() as u32 - 1);
        }
        if results.is_empty() {
            return Ok((arrow_array::new_empty_array(&self.plan.layout().arrow()), error));
        }
        let all: Vec<&dyn Array> = results.iter().map(AsRef::as_ref).collect();
        let all = arrow_select::concat::concat(&all).map_err(SqlError::internal)?;
        let values = arrow_select::take::take(all.as_ref(), &UInt32Array::from(places), None);
        Ok((values.map_err(SqlError::internal)?, error))
    }

    fn add(&self, accumulator: &mut Accumulator, rows: Range<usize>) -> SqlResult<()> {
        let Some(filter) = self.filter else {
            return self.execution.with_context(|cx| accumulator.push(cx, self.args, rows));
        };
        // Runs of rows that FILTER lets through.
        let mut at = rows.start;
        while at < rows.end {
            let passes = |row: usize| filter.is_valid(row) && filter.value(row);
            let start = (at..rows.end).find(|&row| passes(row)).unwrap_or(rows.end);
            let end = (start..rows.end).find(|&row| !passes(row)).unwrap_or(rows.end);
            if start < end {
                self.execution.with_context(|cx| accumulator.push(cx, self.args, start..end))?;
            }
            at = end;
        }
        Ok(())
    }

    /// The value over a frame, aggregated anew.
    fn fresh(&self, accumulator: &mut Accumulator, frame: &Runs) -> SqlResult<ArrayRef> {
        accumulator.reset();
        for run in frame.iter() {
            self.add(accumulator, run.clone())?;
        }
        self.execution.with_context(|cx| accumulator.result(cx))
    }

    /// Adds the rows up to `end` and gives the value so far.
    fn grow(&self, accumulator: &mut Accumulator, at: &mut usize, end: usize) -> SqlResult<ArrayRef> {
        if end > *at {
            self.add(accumulator, *at..end)?;
            *at = end;
        }
        self.execution.with_context(|cx| accumulator.result(cx))
    }
}
