//! `generate_series` of timestamps.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array};
use jiff::tz::TimeZone;
use stegodon_types::datetime::Interval;
use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::kernels::datetime_math::add_to_timestamp;
use crate::{EvalContext, SetFunction};

/// Timestamps from one to another, a step at a time.
pub(crate) struct TimeSeries {
    next: Option<i64>,
    stop: i64,
    step: Interval,
    forward: bool,
    in_zone: Option<TimeZone>,
    /// The step that failed, once the rows before it are out.
    error: Option<SqlError>,
}

impl TimeSeries {
    /// A series; days and months are steps on the clock of a zone where one is given.
    pub(crate) fn create(
        start: i64,
        stop: i64,
        step: Interval,
        in_zone: Option<TimeZone>,
    ) -> SqlResult<Box<dyn SetFunction>> {
        let invalid = |what: &str| Err(SqlError::new(SqlState::InvalidParameterValue, what));
        let forward = match step.span_us().signum() {
            0 => return invalid("step size cannot equal zero"),
            sign => sign > 0,
        };
        if !step.is_finite() {
            return invalid("step size cannot be infinite");
        }
        Ok(Box::new(TimeSeries { next: Some(start), stop, step, forward, in_zone, error: None }))
    }

    /// The next value. As in PostgreSQL the one after it is computed first, and may fail.
    fn step(&mut self) -> SqlResult<Option<i64>> {
        let Some(value) = self.next else { return Ok(None) };
        if if self.forward { value > self.stop } else { value < self.stop } {
            self.next = None;
            return Ok(None);
        }
        self.next = Some(add_to_timestamp(value, self.step, self.in_zone.as_ref())?);
        Ok(Some(value))
    }
}

impl SetFunction for TimeSeries {
    fn next(&mut self, cx: &EvalContext<'_>, max: usize) -> SqlResult<Option<Vec<ArrayRef>>> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        cx.session.check_cancel()?;
        let mut values = Vec::new();
        while values.len() < max {
            match self.step() {
                Ok(Some(value)) => values.push(value),
                Ok(None) => break,
                Err(error) => {
                    if values.is_empty() {
                        return Err(error);
                    }
                    self.error = Some(error);
                    break;
                }
            }
        }
        if values.is_empty() {
            return Ok(None);
        }
        Ok(Some(vec![Arc::new(Int64Array::from(values)) as ArrayRef]))
    }
}
