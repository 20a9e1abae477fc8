//! Regression, covariance and correlation of two floats: `float8_regr_accum` of PostgreSQL's `float.c`, operation by
//! operation. The first argument is Y, the second X.

use arrow_array::{Array, ArrayRef, Float64Array};
use stegodon_types::SqlResult;

use super::float::float8;
use super::*;

/// What is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Regression {
    Sxx,
    Syy,
    Sxy,
    AverageX,
    AverageY,
    R2,
    Slope,
    Intercept,
    CovariancePopulation,
    CovarianceSample,
    Correlation,
}

#[derive(Clone, Copy, Default)]
struct Sums {
    n: f64,
    sx: f64,
    sxx: f64,
    sy: f64,
    syy: f64,
    sxy: f64,
}

impl Sums {
    fn add(&mut self, y: f64, x: f64) -> SqlResult<()> {
        let old = *self;
        self.n += 1.0;
        self.sx += x;
        self.sy += y;
        if old.n > 0.0 {
            let dx = x * self.n - self.sx;
            let dy = y * self.n - self.sy;
            let scale = 1.0 / (self.n * old.n);
            self.sxx += dx * dx * scale;
            self.syy += dy * dy * scale;
            self.sxy += dx * dy * scale;
            let sums = [self.sx, self.sxx, self.sy, self.syy, self.sxy];
            if sums.iter().any(|v| v.is_infinite()) {
                let (bad_x, bad_y) = (old.sx.is_infinite() || x.is_infinite(), old.sy.is_infinite() || y.is_infinite());
                if ((self.sx.is_infinite() || self.sxx.is_infinite()) && !bad_x)
                    || ((self.sy.is_infinite() || self.syy.is_infinite()) && !bad_y)
                    || (self.sxy.is_infinite() && !bad_x && !bad_y)
                {
                    return Err(float_overflow());
                }
                for v in [&mut self.sxx, &mut self.syy, &mut self.sxy] {
                    if v.is_infinite() {
                        *v = f64::NAN;
                    }
                }
            }
        } else {
            if x.is_nan() || x.is_infinite() {
                self.sxx = f64::NAN;
                self.sxy = f64::NAN;
            }
            if y.is_nan() || y.is_infinite() {
                self.syy = f64::NAN;
                self.sxy = f64::NAN;
            }
        }
        Ok(())
    }

    fn merge(&mut self, o: Sums) {
        if o.n == 0.0 {
            return;
        }
        if self.n == 0.0 {
            *self = o;
            return;
        }
        let n = self.n + o.n;
        let (dx, dy) = (self.sx / self.n - o.sx / o.n, self.sy / self.n - o.sy / o.n);
        *self = Sums {
            n,
            sx: self.sx + o.sx,
            sy: self.sy + o.sy,
            sxx: self.sxx + o.sxx + self.n * o.n * dx * dx / n,
            syy: self.syy + o.syy + self.n * o.n * dy * dy / n,
            sxy: self.sxy + o.sxy + self.n * o.n * dx * dy / n,
        };
    }

    fn result(&self, ask: Regression) -> Option<f64> {
        let Sums { n, sx, sxx, sy, syy, sxy } = *self;
        if n < 1.0 {
            return None;
        }
        match ask {
            Regression::Sxx => Some(sxx),
            Regression::Syy => Some(syy),
            Regression::Sxy => Some(sxy),
            Regression::AverageX => Some(sx / n),
            Regression::AverageY => Some(sy / n),
            Regression::CovariancePopulation => Some(sxy / n),
            Regression::CovarianceSample => (n >= 2.0).then(|| sxy / (n - 1.0)),
            Regression::Correlation => (sxx != 0.0 && syy != 0.0).then(|| sxy / (sxx * syy).sqrt()),
            Regression::R2 if sxx == 0.0 => None,
            Regression::R2 if syy == 0.0 => Some(1.0),
            Regression::R2 => Some((sxy * sxy) / (sxx * syy)),
            Regression::Slope => (sxx != 0.0).then(|| sxy / sxx),
            Regression::Intercept => (sxx != 0.0).then(|| (sy - sx * sxy / sxx) / n),
        }
    }
}

/// The regression aggregates.
pub(super) struct Regressions {
    ask: Regression,
    sums: Vec<Sums>,
}

impl Regressions {
    pub(super) fn create(ask: Regression) -> Box<dyn GroupAggregate> {
        Box::new(Regressions { ask, sums: Vec::new() })
    }
}

impl GroupAggregate for Regressions {
    fn update(&mut self, _: &EvalContext<'_>, args: &[ArrayRef], groups: &[usize], _: usize) -> SqlResult<()> {
        let (y, x) = (float8(arg(args, 0)?)?, float8(arg(args, 1)?)?);
        for (row, &group) in groups.iter().enumerate() {
            if y.is_valid(row) && x.is_valid(row) {
                slot(&mut self.sums, group)?.add(y.value(row), x.value(row))?;
            }
        }
        Ok(())
    }

    fn merge(&mut self, _: &EvalContext<'_>, states: &[ArrayRef], groups: &[usize], _: usize) -> SqlResult<()> {
        let columns = (0..6).map(|n| float8(arg(states, n)?)).collect::<SqlResult<Vec<_>>>()?;
        for (row, &group) in groups.iter().enumerate() {
            let at = |n: usize| columns.get(n).map_or(0.0, |c| c.value(row));
            let other = Sums { n: at(0), sx: at(1), sxx: at(2), sy: at(3), syy: at(4), sxy: at(5) };
            slot(&mut self.sums, group)?.merge(other);
        }
        Ok(())
    }

    fn state(&mut self, emit: Emit) -> SqlResult<Vec<ArrayRef>> {
        let sums = take_groups(&mut self.sums, emit);
        let column =
            |f: fn(&Sums) -> f64| Arc::new(sums.iter().map(|s| Some(f(s))).collect::<Float64Array>()) as ArrayRef;
        Ok(vec![
            column(|s| s.n),
            column(|s| s.sx),
            column(|s| s.sxx),
            column(|s| s.sy),
            column(|s| s.syy),
            column(|s| s.sxy),
        ])
    }

    fn results(&mut self, _: &EvalContext<'_>, n_groups: usize) -> SqlResult<ArrayRef> {
        let sums = first(&self.sums, n_groups);
        Ok(Arc::new(sums.iter().map(|s| s.result(self.ask)).collect::<Float64Array>()))
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
