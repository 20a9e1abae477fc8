//! `timetz`: a time of day and the seconds that its zone is west of Greenwich. Ordered by the moment, then by the zone.

use std::cmp::Ordering;

use super::{DAY_US, Fields, SECOND_US, decode, encode, out_of_range, round_us};
use crate::ops::get;
use crate::scalar::exactly;
use crate::{
    Collation, Datum, FormatSettings, SqlError, SqlResult, SqlState, TypeContext, TypeDesc, TypeOps, ValueRef, hash,
    key,
};

/// `timetz`.
pub static OPS: TypeOps = TypeOps {
    text_out,
    text_in,
    binary_out,
    binary_in,
    compare: Some(compare),
    equal: Some(crate::equal_by!(compare)),
    key: Some(key),
    hash: Some(hash),
    own_key: false,
};

/// A zone is less than this many seconds from Greenwich.
const ZONE_LIMIT_S: i32 = 16 * 3600;

/// A time of day in a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TimeTz {
    /// Microseconds since midnight.
    pub us: i64,
    /// Seconds west of Greenwich.
    pub west: i32,
}

impl TimeTz {
    /// The value of its twelve bytes; `None` where they are not twelve.
    pub fn from_bytes(bytes: &[u8]) -> Option<TimeTz> {
        let (us, rest) = bytes.split_first_chunk::<8>()?;
        let west: [u8; 4] = rest.try_into().ok()?;
        Some(TimeTz { us: i64::from_le_bytes(*us), west: i32::from_le_bytes(west) })
    }

    /// Its twelve bytes.
    pub fn to_bytes(self) -> [u8; 12] {
        let mut out = [0; 12];
        for (to, from) in out.iter_mut().zip(self.us.to_le_bytes().into_iter().chain(self.west.to_le_bytes())) {
            *to = from;
        }
        out
    }

    /// The value as a datum.
    pub fn to_datum(self) -> Datum {
        Datum::bytes(self.to_bytes())
    }

    /// The time at Greenwich, which may be of the day before or after.
    pub fn utc_us(&self) -> i64 {
        self.us.wrapping_add(i64::from(self.west) * SECOND_US)
    }

    /// Rounds it to a typmod.
    pub fn apply_typmod(self, typmod: i32) -> TimeTz {
        TimeTz { us: round_us(self.us, typmod), ..self }
    }
}

/// The value of a column of such times.
pub fn of(ty: &TypeDesc, v: ValueRef<'_>) -> SqlResult<TimeTz> {
    TimeTz::from_bytes(get::bytes(ty, v)?).ok_or_else(|| crate::ops::wrong_layout(ty))
}

/// Reads such a time from text.
pub fn parse(settings: &FormatSettings, text: &[u8], typmod: i32) -> SqlResult<TimeTz> {
    let read = decode::time_of_day(settings, text).map_err(|e| e.of("time with time zone", text))?;
    Ok(TimeTz { us: read.fields.time_us(), west: read.west }.apply_typmod(typmod))
}

fn text_out(_: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    let v = of(ty, v)?;
    if !(0..=DAY_US).contains(&v.us) {
        return Err(out_of_range("time"));
    }
    encode::time(&Fields::of_time(v.us), out);
    encode::zone(v.west, out);
    Ok(())
}

fn text_in(cx: &TypeContext<'_>, _: &TypeDesc, text: &[u8], typmod: i32) -> SqlResult<Datum> {
    parse(cx.settings, text, typmod).map(TimeTz::to_datum)
}

fn binary_out(_: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    let v = of(ty, v)?;
    out.extend_from_slice(&v.us.to_be_bytes());
    out.extend_from_slice(&v.west.to_be_bytes());
    Ok(())
}

fn binary_in(_: &TypeContext<'_>, _: &TypeDesc, bytes: &[u8], typmod: i32) -> SqlResult<Datum> {
    let exact = exactly::<12>(bytes)?;
    let (us, west) = exact.split_at(8);
    let us = i64::from_be_bytes(exactly(us)?);
    let west = i32::from_be_bytes(exactly(west)?);
    if !(0..=DAY_US).contains(&us) {
        return Err(out_of_range("time"));
    }
    if west <= -ZONE_LIMIT_S || west >= ZONE_LIMIT_S {
        return Err(SqlError::new(SqlState::InvalidTimeZoneDisplacementValue, "time zone displacement out of range"));
    }
    Ok(TimeTz { us, west }.apply_typmod(typmod).to_datum())
}

/// `timetz_cmp`.
pub fn compare(
    _: &TypeContext<'_>,
    ty: &TypeDesc,
    _: &Collation,
    a: ValueRef<'_>,
    b: ValueRef<'_>,
) -> SqlResult<Ordering> {
    let (a, b) = (of(ty, a)?, of(ty, b)?);
    Ok(a.utc_us().cmp(&b.utc_us()).then(a.west.cmp(&b.west)))
}

fn key(_: &TypeContext<'_>, ty: &TypeDesc, _: &Collation, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    let v = of(ty, v)?;
    key::i64(v.utc_us(), out);
    key::i32(v.west, out);
    Ok(())
}

fn hash(_: &TypeContext<'_>, ty: &TypeDesc, _: &Collation, v: ValueRef<'_>, seed: u64) -> SqlResult<u64> {
    let v = of(ty, v)?;
    Ok(hash::uint32_extended(hash::fold_i64(v.us), seed) ^ hash::uint32_extended(v.west as u32, seed))
}
