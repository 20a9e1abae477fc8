//! What aggregates add up in.

use super::fast::number_of;
use super::{Number, Numeric, scaled_i128};
use crate::SqlResult;

/// A sum of numerics: `sum`, `avg`, and their moving forms. The result's scale is the greatest of the summands', as
/// PostgreSQL's is. Small numbers are added as integers of one scale; the rest goes to a [`Number`].
#[derive(Clone, Debug, Default)]
pub struct NumericSum {
    /// Values summed, NaN and infinities among them.
    count: u64,
    nan: u64,
    pos_inf: u64,
    neg_inf: u64,
    /// `small * 10^-small_scale` is one part of the sum.
    small: i128,
    small_scale: i32,
    /// The other part.
    large: Number,
    /// The greatest scale seen.
    scale: i32,
}

/// The bound under which a summand is added to `small`: its square is far from overflow, however many are added.
const SMALL: i128 = 10i128.pow(30);

impl NumericSum {
    /// An empty sum.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a payload.
    pub fn add_payload(&mut self, payload: &[u8]) -> SqlResult<()> {
        if let Some((value, scale)) = scaled_i128(payload)?
            && self.add_small(value, scale)
        {
            self.count += 1;
            self.scale = self.scale.max(scale);
            return Ok(());
        }
        self.add(&Numeric::from_payload(payload)?);
        Ok(())
    }

    fn add_small(&mut self, value: i128, scale: i32) -> bool {
        if scale > self.small_scale {
            self.flush();
            self.small_scale = scale;
        }
        let Some(unit) = 10i128.checked_pow((self.small_scale - scale) as u32) else { return false };
        let Some(value) = value.checked_mul(unit).filter(|v| v.abs() < SMALL) else { return false };
        if let Some(sum) = self.small.checked_add(value) {
            self.small = sum;
            return true;
        }
        self.flush();
        self.small = value;
        true
    }

    /// Moves the integer part of the sum to the other.
    fn flush(&mut self) {
        if self.small != 0 {
            self.large = self.large.add(&number_of(self.small, self.small_scale));
            self.small = 0;
        }
    }

    /// Adds a value.
    pub fn add(&mut self, value: &Numeric) {
        self.count += 1;
        match value {
            Numeric::NaN => self.nan += 1,
            Numeric::PosInf => self.pos_inf += 1,
            Numeric::NegInf => self.neg_inf += 1,
            Numeric::Finite(number) => {
                self.scale = self.scale.max(number.dscale);
                self.large = self.large.add(number);
            }
        }
    }

    /// Adds a whole number.
    pub fn add_i64(&mut self, value: i64) {
        if self.add_small(i128::from(value), 0) {
            self.count += 1;
        } else {
            self.add(&Numeric::from(value));
        }
    }

    /// Adds whole numbers.
    pub fn add_whole<T: Copy + Into<i64>>(&mut self, values: &[T]) {
        // So many of 64 bits stay far from the bound of one summand, and are added in pieces of 64 bits.
        const AT_ONCE: usize = 1 << 20;
        for values in values.chunks(AT_ONCE) {
            // Upper and lower halves apart: both sums fit, and neither carries into the other while the loop runs.
            let (mut upper, mut lower) = (0_i64, 0_u64);
            for value in values {
                let value: i64 = (*value).into();
                upper += value >> 32;
                lower += u64::from(value as u32);
            }
            let sum = (i128::from(upper) << 32) + i128::from(lower);
            if !self.add_small(sum, 0) {
                self.large = self.large.add(&number_of(sum, 0));
            }
            self.count += values.len() as u64;
        }
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &NumericSum) {
        self.count += other.count;
        self.nan += other.nan;
        self.pos_inf += other.pos_inf;
        self.neg_inf += other.neg_inf;
        self.scale = self.scale.max(other.scale);
        self.flush();
        let mut other = other.clone();
        other.flush();
        self.large = self.large.add(&other.large);
    }

    /// How many values were added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The special result, where a summand was not finite.
    fn special(&self) -> Option<Numeric> {
        match (self.nan, self.pos_inf, self.neg_inf) {
            (0, 0, 0) => None,
            (0, _, 0) => Some(Numeric::PosInf),
            (0, 0, _) => Some(Numeric::NegInf),
            _ => Some(Numeric::NaN),
        }
    }

    /// The finite part of the sum.
    fn finite(&self) -> Number {
        self.large.add(&number_of(self.small, self.small_scale)).with_scale(self.scale)
    }

    /// `sum`: NULL where nothing was added.
    pub fn sum(&self) -> Option<Numeric> {
        if self.count == 0 {
            return None;
        }
        Some(self.special().unwrap_or_else(|| Numeric::Finite(self.finite())))
    }

    /// `avg`: NULL where nothing was added.
    pub fn avg(&self) -> SqlResult<Option<Numeric>> {
        let Some(sum) = self.sum() else { return Ok(None) };
        sum.div(&Numeric::from(self.count)).map(Some)
    }
}

/// What `variance` and `stddev` add up in: the sum and the sum of squares.
#[derive(Clone, Debug, Default)]
pub struct NumericVariance {
    sum: NumericSum,
    squares: NumericSum,
}

impl NumericVariance {
    /// Nothing added.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a value.
    pub fn add(&mut self, value: &Numeric) {
        self.sum.add(value);
        if let Numeric::Finite(number) = value {
            self.squares.add(&Numeric::Finite(number.mul(number)));
        }
    }

    /// What was added, for handing on: how many values, their sum, the sum of their squares (`None` for nothing).
    pub fn parts(&self) -> (u64, Option<Numeric>, Option<Numeric>) {
        (self.sum.count, self.sum.sum(), self.squares.sum())
    }

    /// Adds what [`NumericVariance::parts`] gave elsewhere.
    pub fn merge_parts(&mut self, count: u64, sum: Option<&Numeric>, squares: Option<&Numeric>) {
        let before = self.sum.count;
        if let Some(sum) = sum {
            self.sum.add(sum);
        }
        if let Some(squares) = squares {
            self.squares.add(squares);
        }
        self.sum.count = before + count;
    }

    /// Adds another.
    pub fn merge(&mut self, other: &NumericVariance) {
        self.sum.merge(&other.sum);
        self.squares.merge(&other.squares);
    }

    /// `var_samp` (`sample`) or `var_pop`; with `root`, `stddev_samp` or `stddev_pop`. NULL where too little was added.
    pub fn finish(&self, sample: bool, root: bool) -> SqlResult<Option<Numeric>> {
        if self.sum.count <= u64::from(sample) {
            return Ok(None);
        }
        if self.sum.special().is_some() {
            return Ok(Some(Numeric::NaN));
        }
        let n = Number::from(i128::from(self.sum.count));
        let sum = self.sum.finite();
        let rscale = sum.dscale * 2;
        let numerator = n.mul_to(&self.squares.finite(), rscale).sub(&sum.mul_to(&sum, rscale));
        if numerator.sign() <= 0 {
            return Ok(Some(Numeric::ZERO));
        }
        let divisor = if sample { n.mul(&n.sub(&Number::from(1i64))) } else { n.mul(&n) };
        let rscale = numerator.div_scale(&divisor);
        let variance = numerator.div(&divisor, rscale, true)?;
        Ok(Some(Numeric::Finite(if root { variance.sqrt_to(rscale)? } else { variance })))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn whole_numbers_add_up_together_as_one_by_one() {
        let values: Vec<i64> = [i64::MIN, i64::MAX, -1, 0, 1, i64::MIN, 1 << 32, -(1 << 32), i64::MIN].repeat(1001);
        let (mut together, mut apart) = (NumericSum::new(), NumericSum::new());
        together.add_whole(&values);
        for value in &values {
            apart.add_i64(*value);
        }
        assert_eq!((together.count(), together.sum()), (apart.count(), apart.sum()));
        let expected: i128 = values.iter().map(|v| i128::from(*v)).sum();
        assert_eq!(together.sum(), Some(Numeric::from(expected)));
        // Beside a value of a scale that whole numbers cannot be brought to.
        let tiny = super::super::text::parse(b"1e-40").unwrap();
        for sum in [&mut together, &mut apart] {
            let mut payload = Vec::new();
            tiny.write_payload(&mut payload).unwrap();
            sum.add_payload(&payload).unwrap();
        }
        together.add_whole(&values);
        for value in &values {
            apart.add_i64(*value);
        }
        assert_eq!((together.count(), together.sum()), (apart.count(), apart.sum()));
    }
}
