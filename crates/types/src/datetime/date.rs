//! `date`: days since 2000-01-01.

use super::calendar::{EPOCH_JULIAN, UNIX_EPOCH_JULIAN, is_valid_date, is_valid_julian};
use super::decode::{self, Kind};
use super::{Fields, encode, lex, out_of_range};
use crate::ops::get;
use crate::scalar::{exactly, int};
use crate::{Datum, FormatSettings, SqlError, SqlResult, SqlState, TypeContext, TypeDesc, TypeOps, ValueRef};

/// `date`.
pub static OPS: TypeOps = TypeOps { text_out, text_in, binary_in, ..int::int4::OPS };

/// `infinity`
pub const LATE: i32 = i32::MAX;
/// `-infinity`
pub const EARLY: i32 = i32::MIN;

/// Whether a date is neither infinity.
pub fn is_finite(days: i32) -> bool {
    days != LATE && days != EARLY
}

/// Reads a date from text.
pub fn parse(settings: &FormatSettings, text: &[u8]) -> SqlResult<i32> {
    let read = decode::date_time(settings, text, lex::DATE_BUFFER).map_err(|e| e.of("date", text))?;
    let fields = match read.kind {
        Kind::Fields => read.fields,
        Kind::Epoch => return Ok(UNIX_EPOCH_JULIAN - EPOCH_JULIAN),
        Kind::Late => return Ok(LATE),
        Kind::Early => return Ok(EARLY),
    };
    of_fields(&fields).ok_or_else(|| {
        let text = String::from_utf8_lossy(text);
        SqlError::new(SqlState::DatetimeFieldOverflow, format!("date out of range: \"{text}\""))
    })
}

/// The date of fields, which are a day of the calendar; `None` where it is out of range.
pub fn of_fields(f: &Fields) -> Option<i32> {
    if !is_valid_julian(f.year, f.month) {
        return None;
    }
    Some(f.julian().wrapping_sub(EPOCH_JULIAN)).filter(|d| is_valid_date(*d))
}

/// The fields of a finite date.
pub fn fields(days: i32) -> Fields {
    Fields::of_day(days.wrapping_add(EPOCH_JULIAN), 0)
}

/// Appends a date's text.
pub fn write(settings: &FormatSettings, days: i32, out: &mut Vec<u8>) -> SqlResult<()> {
    match days {
        LATE => out.extend_from_slice(b"infinity"),
        EARLY => out.extend_from_slice(b"-infinity"),
        // A moment's date can be the day before the first one, west of Greenwich.
        days if is_valid_date(days) || days == -EPOCH_JULIAN - 1 => {
            encode::date(&fields(days), settings.date_style, settings.date_order, out);
        }
        _ => return Err(out_of_range("date")),
    }
    Ok(())
}

fn text_out(cx: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    write(cx.settings, get::i32(ty, v)?, out)
}

fn text_in(cx: &TypeContext<'_>, _: &TypeDesc, text: &[u8], _: i32) -> SqlResult<Datum> {
    parse(cx.settings, text).map(Datum::Int32)
}

fn binary_in(_: &TypeContext<'_>, _: &TypeDesc, bytes: &[u8], _: i32) -> SqlResult<Datum> {
    let days = i32::from_be_bytes(exactly(bytes)?);
    if is_finite(days) && !is_valid_date(days) {
        return Err(out_of_range("date"));
    }
    Ok(Datum::Int32(days))
}
