//! `sum` and `avg` of intervals: finite ones are added up, infinite ones are counted.

use arrow_array::{Array, FixedSizeBinaryArray, Int64Array};
use stegodon_types::datetime::Interval;

use super::*;
use crate::column::ByteBuilder;
use crate::kernels::datetime_math::{add, divide, interval_range};

/// What was seen of a group.
#[derive(Clone, Copy, Default)]
struct Sum {
    finite: i64,
    late: i64,
    early: i64,
    total: Interval,
}

impl Sum {
    fn add(&mut self, v: Interval) -> SqlResult<()> {
        match v {
            Interval::LATE => self.late += 1,
            Interval::EARLY => self.early += 1,
            v => {
                self.total = add(self.total, v)?;
                self.finite += 1;
            }
        }
        Ok(())
    }

    fn result(&self, average: bool) -> SqlResult<Option<Interval>> {
        match (self.finite, self.late > 0, self.early > 0) {
            (_, true, true) => Err(interval_range()),
            (_, true, false) => Ok(Some(Interval::LATE)),
            (_, false, true) => Ok(Some(Interval::EARLY)),
            (0, false, false) => Ok(None),
            (n, ..) if average => divide(self.total, n as f64).map(Some),
            _ => Ok(Some(self.total)),
        }
    }
}

/// `sum`, or `avg`.
pub(super) struct Intervals {
    average: bool,
    sums: Vec<Sum>,
}

impl Intervals {
    pub(super) fn create(average: bool) -> Box<dyn GroupAggregate> {
        Box::new(Intervals { average, sums: Vec::new() })
    }
}

/// The layouts of a state: the sum, and the counts of finite and infinite values.
pub(super) const STATE: [Layout; 4] = [Layout::Fixed(16), Layout::Int64, Layout::Int64, Layout::Int64];

fn wrong() -> SqlError {
    SqlError::internal("an argument is not of its layout")
}

fn intervals(array: &ArrayRef) -> SqlResult<&FixedSizeBinaryArray> {
    array.as_any().downcast_ref::<FixedSizeBinaryArray>().ok_or_else(wrong)
}

fn column(values: impl ExactSizeIterator<Item = Option<Interval>>) -> SqlResult<ArrayRef> {
    let mut out = ByteBuilder::new(Layout::Fixed(16), values.len(), values.len() * 16);
    for v in values {
        out.push(v.map(Interval::to_bytes).as_ref().map(<[u8; 16]>::as_slice));
    }
    out.finish()
}

impl GroupAggregate for Intervals {
    fn update(&mut self, _: &EvalContext<'_>, args: &[ArrayRef], groups: &[usize], _: usize) -> SqlResult<()> {
        let values = intervals(arg(args, 0)?)?;
        for (row, &group) in groups.iter().enumerate() {
            if values.is_valid(row) {
                let v = Interval::from_bytes(values.value(row)).ok_or_else(wrong)?;
                slot(&mut self.sums, group)?.add(v)?;
            }
        }
        Ok(())
    }

    fn merge(&mut self, _: &EvalContext<'_>, states: &[ArrayRef], groups: &[usize], _: usize) -> SqlResult<()> {
        let sums = intervals(arg(states, 0)?)?;
        let count = |n| arg(states, n)?.as_any().downcast_ref::<Int64Array>().ok_or_else(wrong);
        let (finite, late, early) = (count(1)?, count(2)?, count(3)?);
        for (row, &group) in groups.iter().enumerate() {
            let to = slot(&mut self.sums, group)?;
            to.total = add(to.total, Interval::from_bytes(sums.value(row)).ok_or_else(wrong)?)?;
            to.finite += finite.value(row);
            to.late += late.value(row);
            to.early += early.value(row);
        }
        Ok(())
    }

    fn state(&mut self, emit: Emit) -> SqlResult<Vec<ArrayRef>> {
        let sums = take_groups(&mut self.sums, emit);
        let count = |f: fn(&Sum) -> i64| Arc::new(sums.iter().map(f).collect::<Int64Array>()) as ArrayRef;
        let totals = column(sums.iter().map(|s| Some(s.total)))?;
        Ok(vec![totals, count(|s| s.finite), count(|s| s.late), count(|s| s.early)])
    }

    fn results(&mut self, _: &EvalContext<'_>, n_groups: usize) -> SqlResult<ArrayRef> {
        let sums = first(&self.sums, n_groups);
        let results: Vec<Option<Interval>> = sums.iter().map(|s| s.result(self.average)).collect::<SqlResult<_>>()?;
        column(results.into_iter())
    }

    fn n_groups(&self) -> usize {
        self.sums.len()
    }

    fn discard(&mut self, emit: Emit) {
        take_groups(&mut self.sums, emit);
    }

    fn grow(&mut self, n_groups: usize) {
        if self.sums.len() < n_groups {
            self.sums.resize(n_groups, Sum::default());
        }
    }

    fn memory_bytes(&self) -> usize {
        self.sums.capacity() * size_of::<Sum>()
    }
}
