//! Two arms measured side by side: pairs in alternating order, and how sure their ratio is.
//!
//! A pair is one run of each arm, one right after the other; the order turns with each pair (A B, B A, …), so that drift hits
//! both. The ratio of a pair is free of what both felt. The interval is a bootstrap of the pairs' geometric mean.

use std::time::{Duration, Instant};

/// The times of two arms in one pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// The first arm's.
    pub a: Duration,
    /// The second arm's.
    pub b: Duration,
}

/// A ratio and where it lies with a confidence of 95 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The geometric mean of the pairs' ratios.
    pub mean: f64,
    /// The interval's lower bound.
    pub low: f64,
    /// The interval's upper bound.
    pub high: f64,
}

/// Runs both arms `pairs` times. An arm that fails ends the measurement.
pub fn measure<E>(
    pairs: usize,
    mut a: impl FnMut() -> Result<(), E>,
    mut b: impl FnMut() -> Result<(), E>,
) -> Result<Vec<Pair>, E> {
    let mut measured = Vec::with_capacity(pairs);
    for pair in 0..pairs {
        measured.push(if pair % 2 == 0 {
            let a = timed(&mut a)?;
            Pair { a, b: timed(&mut b)? }
        } else {
            let b = timed(&mut b)?;
            Pair { a: timed(&mut a)?, b }
        });
    }
    Ok(measured)
}

fn timed<E>(run: &mut impl FnMut() -> Result<(), E>) -> Result<Duration, E> {
    let start = Instant::now();
    run()?;
    Ok(start.elapsed())
}

/// How many times as long `a` takes as `b`. `None` without pairs.
pub fn ratio(pairs: &[Pair]) -> Option<Ratio> {
    const RESAMPLES: usize = 10_000;
    let logs: Vec<f64> = pairs.iter().map(|p| (p.a.as_secs_f64() / p.b.as_secs_f64().max(1e-9)).ln()).collect();
    let mean = |logs: &mut dyn Iterator<Item = f64>| logs.sum::<f64>() / pairs.len() as f64;
    let observed = mean(&mut logs.iter().copied());
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    let mut draw = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let place = (random >> 11) as usize % logs.len().max(1);
        logs.get(place).copied().unwrap_or(0.0)
    };
    let mut means: Vec<f64> =
        (0..RESAMPLES).map(|_| mean(&mut std::iter::repeat_with(&mut draw).take(pairs.len()))).collect();
    means.sort_by(f64::total_cmp);
    let at = |share: f64| means.get((share * RESAMPLES as f64) as usize).map(|log| log.exp());
    (!pairs.is_empty()).then_some(())?;
    Some(Ratio { mean: observed.exp(), low: at(0.025)?, high: at(0.975)? })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn pair(a: u64, b: u64) -> Pair {
        Pair { a: Duration::from_micros(a), b: Duration::from_micros(b) }
    }

    #[test]
    fn drift_that_hits_both_arms_leaves_the_ratio_alone() {
        let pairs: Vec<Pair> = (1..=16).map(|drift| pair(300 * drift, 100 * drift)).collect();
        let ratio = ratio(&pairs).unwrap();
        assert!((ratio.mean - 3.0).abs() < 1e-9 && (ratio.low - 3.0).abs() < 1e-9 && (ratio.high - 3.0).abs() < 1e-9);
    }

    #[test]
    fn the_interval_holds_the_truth_and_widens_with_noise() {
        let noisy = |swing: u64| {
            let pairs: Vec<Pair> = (0..15).map(|i| pair(2000 + swing * (i * 7 % 15), 1000 + swing * 7)).collect();
            ratio(&pairs).unwrap()
        };
        let (calm, wild) = (noisy(2), noisy(60));
        assert!(calm.low < calm.mean && calm.mean < calm.high);
        assert!(wild.high - wild.low > calm.high - calm.low);
        assert_eq!(ratio(&[]), None);
    }

    #[test]
    fn the_order_turns() {
        let order = std::cell::RefCell::new(String::new());
        let arm = |name| {
            let order = &order;
            move || {
                order.borrow_mut().push(name);
                Ok::<_, ()>(())
            }
        };
        assert_eq!(measure(3, arm('a'), arm('b')).unwrap().len(), 3);
        assert_eq!(*order.borrow(), "abbaab");
    }
}
