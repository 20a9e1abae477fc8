//! Averages, variances and regressions of floats, by Youngs and Cramer's one-pass method, as PostgreSQL computes them
//! (`float8_accum`, `float8_combine`, `float8_regr_accum` in `float.c`): the same operations in the same order, so that the
//! last bit agrees.

use arrow_array::{Array, ArrayRef, Float64Array};
use stegodon_types::SqlResult;

use super::*;

/// What is asked of the sums.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// `avg`
    Average,
    /// `var_pop`
    VariancePopulation,
    /// `var_samp`, `variance`
    VarianceSample,
    /// `stddev_pop`
    DeviationPopulation,
    /// `stddev_samp`, `stddev`
    DeviationSample,
}

/// Count, sum, and sum of squared differences.
#[derive(Clone, Copy, Default)]
struct Sums {
    n: f64,
    sx: f64,
    sxx: f64,
}

impl Sums {
    fn add(&mut self, value: f64) -> SqlResult<()> {
        let (old_n, old_sx) = (self.n, self.sx);
        self.n += 1.0;
        self.sx += value;
        if old_n > 0.0 {
            let difference = value * self.n - self.sx;
            self.sxx += difference * difference / (self.n * old_n);
            if self.sx.is_infinite() || self.sxx.is_infinite() {
                if !old_sx.is_infinite() && !value.is_infinite() {
                    return Err(float_overflow());
                }
                self.sxx = f64::NAN;
            }
        } else if value.is_nan() || value.is_infinite() {
            self.sxx = f64::NAN;
        }
        Ok(())
    }

    fn merge(&mut self, other: Sums) -> SqlResult<()> {
        if other.n == 0.0 {
            return Ok(());
        }
        if self.n == 0.0 {
            *self = other;
            return Ok(());
        }
        let n = self.n + other.n;
        let sx = self.sx + other.sx;
        if sx.is_infinite() && !self.sx.is_infinite() && !other.sx.is_infinite() {
            return Err(float_overflow());
        }
        let difference = self.sx / self.n - other.sx / other.n;
        let sxx = self.sxx + other.sxx + self.n * other.n * difference * difference / n;
        if sxx.is_infinite() && !self.sxx.is_infinite() && !other.sxx.is_infinite() {
            return Err(float_overflow());
        }
        *self = Sums { n, sx, sxx };
        Ok(())
    }

    fn result(&self, moment: Moment) -> Option<f64> {
        match moment {
            _ if self.n == 0.0 => None,
            Moment::Average => Some(self.sx / self.n),
            Moment::VariancePopulation => Some(self.sxx / self.n),
            Moment::DeviationPopulation => Some((self.sxx / self.n).sqrt()),
            _ if self.n <= 1.0 => None,
            Moment::VarianceSample => Some(self.sxx / (self.n - 1.0)),
            Moment::DeviationSample => Some((self.sxx / (self.n - 1.0)).sqrt()),
        }
    }
}

/// `avg`, `variance`, `stddev` of float4 or float8.
pub(super) struct Moments {
    moment: Moment,
    sums: Vec<Sums>,
}

impl Moments {
    pub(super) fn create(moment: Moment) -> Box<dyn GroupAggregate> {
        Box::new(Moments { moment, sums: Vec::new() })
    }
}

/// A column of float4 or float8 as float8.
pub(super) fn float8(array: &ArrayRef) -> SqlResult<std::borrow::Cow<'_, Float64Array>> {
    use std::borrow::Cow;
    if let Some(a) = array.as_any().downcast_ref::<Float64Array>() {
        return Ok(Cow::Borrowed(a));
    }
    let a = array.as_any().downcast_ref::<arrow_array::Float32Array>();
    let a = a.ok_or_else(|| SqlError::internal("an argument is not of its layout"))?;
    Ok(Cow::Owned(a.unary(f64::from)))
}

impl GroupAggregate for Moments {
    fn update(&mut self, _: &EvalContext<'_>, args: &[ArrayRef], groups: &[usize], _: usize) -> SqlResult<()> {
        let values = float8(arg(args, 0)?)?;
        for (row, &group) in groups.iter().enumerate() {
            if values.is_valid(row) {
                slot(&mut self.sums, group)?.add(values.value(row))?;
            }
        }
        Ok(())
    }

    fn merge(&mut self, _: &EvalContext<'_>, states: &[ArrayRef], groups: &[usize], _: usize) -> SqlResult<()> {
        let (n, sx, sxx) = (float8(arg(states, 0)?)?, float8(arg(states, 1)?)?, float8(arg(states, 2)?)?);
        for (row, &group) in groups.iter().enumerate() {
            let other = Sums { n: n.value(row), sx: sx.value(row), sxx: sxx.value(row) };
            slot(&mut self.sums, group)?.merge(other)?;
        }
        Ok(())
    }

    fn state(&mut self, emit: Emit) -> SqlResult<Vec<ArrayRef>> {
        let sums = take_groups(&mut self.sums, emit);
        let column =
            |f: fn(&Sums) -> f64| Arc::new(sums.iter().map(|s| Some(f(s))).collect::<Float64Array>()) as ArrayRef;
        Ok(vec![column(|s| s.n), column(|s| s.sx), column(|s| s.sxx)])
    }

    fn results(&mut self, _: &EvalContext<'_>, n_groups: usize) -> SqlResult<ArrayRef> {
        let sums = first(&self.sums, n_groups);
        Ok(Arc::new(sums.iter().map(|s| s.result(self.moment)).collect::<Float64Array>()))
    }

    fn n_groups(&self) -> usize {
        self.sums.len()
    }

    fn discard(&mut self, emit: Emit) {
        take_groups(&mut self.sums, emit);
    }

    fn grow(&mut self, n_groups: usize) {
        if self.sums.len() < n_groups {
            self.sums.resize(n_groups, Sums::default());
        }
    }

    fn memory_bytes(&self) -> usize {
        self.sums.capacity() * size_of::<Sums>()
    }
}
