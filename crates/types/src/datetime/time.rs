//! `time`: microseconds since midnight, 24:00:00 included.

use super::{DAY_US, Fields, decode, encode, out_of_range, round_us};
use crate::ops::get;
use crate::scalar::{exactly, int};
use crate::{Datum, FormatSettings, SqlResult, TypeContext, TypeDesc, TypeOps, ValueRef};

/// `time`.
pub static OPS: TypeOps = TypeOps { text_out, text_in, binary_in, ..int::int8::OPS };

/// Rounds a time to a typmod.
pub fn apply_typmod(us: i64, typmod: i32) -> i64 {
    round_us(us, typmod)
}

/// Reads a time from text.
pub fn parse(settings: &FormatSettings, text: &[u8], typmod: i32) -> SqlResult<i64> {
    let read = decode::time_of_day(settings, text).map_err(|e| e.of("time", text))?;
    Ok(apply_typmod(read.fields.time_us(), typmod))
}

fn text_out(_: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    let us = get::i64(ty, v)?;
    if !(0..=DAY_US).contains(&us) {
        return Err(out_of_range("time"));
    }
    encode::time(&Fields::of_time(us), out);
    Ok(())
}

fn text_in(cx: &TypeContext<'_>, _: &TypeDesc, text: &[u8], typmod: i32) -> SqlResult<Datum> {
    parse(cx.settings, text, typmod).map(Datum::Int64)
}

fn binary_in(_: &TypeContext<'_>, _: &TypeDesc, bytes: &[u8], typmod: i32) -> SqlResult<Datum> {
    let us = i64::from_be_bytes(exactly(bytes)?);
    if !(0..=DAY_US).contains(&us) {
        return Err(out_of_range("time"));
    }
    Ok(Datum::Int64(apply_typmod(us, typmod)))
}
