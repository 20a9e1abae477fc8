//! Arithmetic of `pg_lsn`, and `xid` of `xid8`.

use stegodon_types::numeric::Numeric;
use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::adapt::*;
use crate::kernel::Entry;

fn of_number(v: &Numeric) -> SqlResult<u64> {
    match v {
        Numeric::NaN => Err(SqlError::new(SqlState::FeatureNotSupported, "cannot convert NaN to pg_lsn")),
        Numeric::Finite(number) => number
            .to_i128()
            .and_then(|n| u64::try_from(n).ok())
            .ok_or_else(|| SqlError::new(SqlState::InvalidParameterValue, "pg_lsn out of range")),
        _ => Err(SqlError::new(SqlState::FeatureNotSupported, "cannot convert infinity to pg_lsn")),
    }
}

fn moved(lsn: u64, by: &[u8], add: bool) -> SqlResult<u64> {
    let by = Numeric::from_payload(by)?;
    if by.is_nan() {
        let what = if add { "cannot add NaN to pg_lsn" } else { "cannot subtract NaN from pg_lsn" };
        return Err(SqlError::new(SqlState::FeatureNotSupported, what));
    }
    of_number(&if add { Numeric::from(lsn).add(&by) } else { Numeric::from(lsn).sub(&by) })
}

/// Operators and casts.
pub(crate) static KERNELS: &[Entry] = &[
    (3237, |c| write2(c, |a: u64, b: u64, out| Numeric::from(a).sub(&Numeric::from(b)).write_payload(out))),
    (5022, |c| map2(c, |a: u64, by: &[u8]| moved(a, by, true))),
    (5023, |c| map2(c, |by: &[u8], a: u64| moved(a, by, true))),
    (5024, |c| map2(c, |a: u64, by: &[u8]| moved(a, by, false))),
    (6103, |c| map1(c, |v: &[u8]| of_number(&Numeric::from_payload(v)?))),
    (5071, |c| map1(c, |v: u64| Ok(v as u32))),
];
