//! Sums, averages and variances that are numeric: exact, whatever the order.

use arrow_array::{Array, ArrayRef, Int64Array};
use stegodon_types::SqlResult;
use stegodon_types::numeric::{Numeric, NumericSum, NumericVariance};

use super::float::Moment;
use super::*;
use crate::adapt::Arg;
use crate::column::ByteBuilder;

/// What is added up.
#[derive(Clone, Copy, PartialEq, Eq)]
#[allow(clippy::enum_variant_names, reason = "the layouts' names")]
pub(super) enum Input {
    Int16,
    Int32,
    Int64,
    Numeric,
}

impl Input {
    /// Calls `f` with each row that is not NULL, whole numbers and payloads apart.
    fn each(
        self,
        array: &ArrayRef,
        groups: &[usize],
        mut f: impl FnMut(usize, Result<i64, &[u8]>) -> SqlResult<()>,
    ) -> SqlResult<()> {
        macro_rules! whole {
            ($t:ty) => {{
                let values = <$t>::values(array)?;
                for (row, &group) in groups.iter().enumerate() {
                    if array.is_valid(row) {
                        f(group, Ok(i64::from(<$t>::at(values, row))))?;
                    }
                }
            }};
        }
        match self {
            Input::Int16 => whole!(i16),
            Input::Int32 => whole!(i32),
            Input::Int64 => whole!(i64),
            Input::Numeric => {
                let values = <&[u8]>::values(array)?;
                for (row, &group) in groups.iter().enumerate() {
                    if array.is_valid(row) {
                        f(group, Err(<&[u8]>::at(values, row)))?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// What is asked of a sum.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
    Sum,
    Average,
}

#[derive(Clone, Default)]
struct Sum {
    count: u64,
    sum: NumericSum,
}

/// `sum` and `avg`.
pub(super) struct NumericSums {
    input: Input,
    ask: Ask,
    groups: Vec<Sum>,
}

impl NumericSums {
    pub(super) fn create(input: Input, ask: Ask) -> Box<dyn GroupAggregate> {
        Box::new(NumericSums { input, ask, groups: Vec::new() })
    }
}

/// A column of numerics.
fn numerics(values: impl ExactSizeIterator<Item = SqlResult<Option<Numeric>>>) -> SqlResult<ArrayRef> {
    let mut out = ByteBuilder::new(Layout::Bytes, values.len(), values.len() * 12);
    for value in values {
        match value? {
            Some(v) => {
                v.write_payload(out.buffer())?;
                out.end_value();
            }
            None => out.end_null(),
        }
    }
    out.finish()
}

fn counts(values: impl Iterator<Item = u64>) -> ArrayRef {
    Arc::new(values.map(|c| Some(c as i64)).collect::<Int64Array>())
}

/// The numeric in a row of a state.
fn numeric_at(array: &ArrayRef, row: usize) -> SqlResult<Option<Numeric>> {
    if array.is_null(row) {
        return Ok(None);
    }
    Numeric::from_payload(<&[u8]>::at(<&[u8]>::values(array)?, row)).map(Some)
}

impl GroupAggregate for NumericSums {
    fn update(&mut self, _: &EvalContext<'_>, args: &[ArrayRef], groups: &[usize], _: usize) -> SqlResult<()> {
        let array = arg(args, 0)?;
        macro_rules! whole {
            ($t:ty) => {{
                let values = <$t>::values(array)?;
                for (group, rows) in runs(groups) {
                    let state = slot(&mut self.groups, group)?;
                    state.count += rows.len() as u64;
                    state.sum.add_whole(values.get(rows).unwrap_or(&[]));
                }
                return Ok(());
            }};
        }
        if array.null_count() == 0 {
            match self.input {
                Input::Int16 => whole!(i16),
                Input::Int32 => whole!(i32),
                Input::Int64 => whole!(i64),
                Input::Numeric => {}
            }
        }
        self.input.each(array, groups, |group, value| {
            let state = slot(&mut self.groups, group)?;
            state.count += 1;
            match value {
                Ok(whole) => state.sum.add_i64(whole),
                Err(payload) => state.sum.add_payload(payload)?,
            }
            Ok(())
        })
    }

    fn merge(&mut self, _: &EvalContext<'_>, states: &[ArrayRef], groups: &[usize], _: usize) -> SqlResult<()> {
        let counts = i64::values(arg(states, 0)?)?;
        let sums = arg(states, 1)?;
        for (row, &group) in groups.iter().enumerate() {
            if let Some(sum) = numeric_at(sums, row)? {
                let state = slot(&mut self.groups, group)?;
                state.count += i64::at(counts, row) as u64;
                state.sum.add(&sum);
            }
        }
        Ok(())
    }

    fn state(&mut self, emit: Emit) -> SqlResult<Vec<ArrayRef>> {
        let groups = take_groups(&mut self.groups, emit);
        Ok(vec![counts(groups.iter().map(|g| g.count)), numerics(groups.iter().map(|g| Ok(g.sum.sum())))?])
    }

    fn results(&mut self, _: &EvalContext<'_>, n_groups: usize) -> SqlResult<ArrayRef> {
        let groups = first(&self.groups, n_groups);
        numerics(groups.iter().map(|g| match (g.sum.sum(), self.ask) {
            (Some(sum), Ask::Average) => sum.div(&Numeric::from(g.count)).map(Some),
            (sum, _) => Ok(sum),
        }))
    }

    fn n_groups(&self) -> usize {
        self.groups.len()
    }

    fn discard(&mut self, emit: Emit) {
        take_groups(&mut self.groups, emit);
    }

    fn grow(&mut self, n_groups: usize) {
        if self.groups.len() < n_groups {
            self.groups.resize(n_groups, Sum::default());
        }
    }

    fn memory_bytes(&self) -> usize {
        self.groups.capacity() * size_of::<Sum>()
    }
}

/// `variance` and `stddev`.
pub(super) struct NumericVariances {
    input: Input,
    moment: Moment,
    groups: Vec<NumericVariance>,
}

impl NumericVariances {
    pub(super) fn create(input: Input, moment: Moment) -> Box<dyn GroupAggregate> {
        Box::new(NumericVariances { input, moment, groups: Vec::new() })
    }
}

impl GroupAggregate for NumericVariances {
    fn update(&mut self, _: &EvalContext<'_>, args: &[ArrayRef], groups: &[usize], _: usize) -> SqlResult<()> {
        self.input.each(arg(args, 0)?, groups, |group, value| {
            let value = match value {
                Ok(whole) => Numeric::from(whole),
                Err(payload) => Numeric::from_payload(payload)?,
            };
            slot(&mut self.groups, group)?.add(&value);
            Ok(())
        })
    }

    fn merge(&mut self, _: &EvalContext<'_>, states: &[ArrayRef], groups: &[usize], _: usize) -> SqlResult<()> {
        let counts = i64::values(arg(states, 0)?)?;
        let (sums, squares) = (arg(states, 1)?, arg(states, 2)?);
        for (row, &group) in groups.iter().enumerate() {
            let (sum, squares) = (numeric_at(sums, row)?, numeric_at(squares, row)?);
            let count = i64::at(counts, row) as u64;
            slot(&mut self.groups, group)?.merge_parts(count, sum.as_ref(), squares.as_ref());
        }
        Ok(())
    }

    fn state(&mut self, emit: Emit) -> SqlResult<Vec<ArrayRef>> {
        let parts: Vec<_> = take_groups(&mut self.groups, emit).iter().map(NumericVariance::parts).collect();
        Ok(vec![
            counts(parts.iter().map(|p| p.0)),
            numerics(parts.iter().map(|p| Ok(p.1.clone())))?,
            numerics(parts.iter().map(|p| Ok(p.2.clone())))?,
        ])
    }

    fn results(&mut self, _: &EvalContext<'_>, n_groups: usize) -> SqlResult<ArrayRef> {
        let (sample, root) = match self.moment {
            Moment::VariancePopulation => (false, false),
            Moment::DeviationPopulation => (false, true),
            Moment::VarianceSample => (true, false),
            Moment::DeviationSample => (true, true),
            Moment::Average => return Err(SqlError::internal("an average is no variance")),
        };
        let groups = first(&self.groups, n_groups);
        numerics(groups.iter().map(|g| g.finish(sample, root)))
    }

    fn n_groups(&self) -> usize {
        self.groups.len()
    }

    fn discard(&mut self, emit: Emit) {
        take_groups(&mut self.groups, emit);
    }

    fn grow(&mut self, n_groups: usize) {
        if self.groups.len() < n_groups {
            self.groups.resize(n_groups, NumericVariance::default());
        }
    }

    fn memory_bytes(&self) -> usize {
        self.groups.capacity() * size_of::<NumericVariance>()
    }
}
