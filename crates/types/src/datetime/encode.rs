//! Writing dates and times in every `DateStyle`.

use super::Fields;
use super::calendar::weekday;
use crate::settings::{DateOrder, DateStyle};

/// Months' names, in full.
pub const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// Days' names, in full, from Sunday.
pub const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Zones' abbreviations are cut after this.
const MAX_ABBREVIATION: usize = 10;

/// The first three letters of a name of a list; empty where there is none.
pub(crate) fn short(names: &[&'static str], at: i32) -> &'static str {
    usize::try_from(at).ok().and_then(|at| names.get(at)).and_then(|name| name.get(..3)).unwrap_or_default()
}

/// Appends a number, with zeros before it up to a width.
pub(crate) fn padded(value: i64, width: usize, out: &mut Vec<u8>) {
    let start = out.len();
    crate::scalar::int::write_unsigned(value.unsigned_abs(), out);
    let digits = out.len() - start;
    if digits < width {
        let zeros = width - digits;
        out.splice(start..start, std::iter::repeat_n(b'0', zeros));
    }
}

/// Appends seconds and what they have of a fraction, without zeros at its end. Signs are dropped.
pub(super) fn seconds(second: i32, us: i32, width: usize, out: &mut Vec<u8>) {
    padded(i64::from(second), width, out);
    if us != 0 {
        out.push(b'.');
        padded(i64::from(us), 6, out);
        while out.last() == Some(&b'0') {
            out.pop();
        }
    }
}

/// Appends `hh:mm:ss[.ffffff]`.
pub fn time(f: &Fields, out: &mut Vec<u8>) {
    padded(i64::from(f.hour), 2, out);
    out.push(b':');
    padded(i64::from(f.minute), 2, out);
    out.push(b':');
    seconds(f.second, f.us, 2, out);
}

/// Appends a zone's offset: `+hh[:mm[:ss]]`.
pub fn zone(west: i32, out: &mut Vec<u8>) {
    out.push(if west <= 0 { b'+' } else { b'-' });
    let seconds = i64::from(west).abs();
    padded(seconds / 3600, 2, out);
    if seconds % 3600 != 0 {
        out.push(b':');
        padded(seconds / 60 % 60, 2, out);
        if seconds % 60 != 0 {
            out.push(b':');
            padded(seconds % 60, 2, out);
        }
    }
}

fn year(f: &Fields, out: &mut Vec<u8>) {
    let year = i64::from(f.year);
    padded(if year > 0 { year } else { 1 - year }, 4, out);
}

fn era(f: &Fields, out: &mut Vec<u8>) {
    if f.year <= 0 {
        out.extend_from_slice(b" BC");
    }
}

/// The date without its era.
fn date_part(f: &Fields, style: DateStyle, order: DateOrder, out: &mut Vec<u8>) {
    let (month, day) = (i64::from(f.month), i64::from(f.day));
    let (first, second, delimiter) = match (style, order) {
        (DateStyle::Iso, _) => {
            year(f, out);
            out.push(b'-');
            padded(month, 2, out);
            out.push(b'-');
            return padded(day, 2, out);
        }
        (DateStyle::German, _) => (day, month, b'.'),
        (DateStyle::Sql, DateOrder::Dmy) => (day, month, b'/'),
        (DateStyle::Sql, _) => (month, day, b'/'),
        (DateStyle::Postgres, DateOrder::Dmy) => (day, month, b'-'),
        (DateStyle::Postgres, _) => (month, day, b'-'),
    };
    padded(first, 2, out);
    out.push(delimiter);
    padded(second, 2, out);
    out.push(delimiter);
    year(f, out);
}

/// Appends a date.
pub fn date(f: &Fields, style: DateStyle, order: DateOrder, out: &mut Vec<u8>) {
    date_part(f, style, order, out);
    era(f, out);
}

/// Appends a date and time, with its zone where it has one: seconds west, and its abbreviation.
pub fn date_time(f: &Fields, of_zone: Option<(i32, &str)>, style: DateStyle, order: DateOrder, out: &mut Vec<u8>) {
    if style == DateStyle::Postgres {
        out.extend_from_slice(short(&DAYS, weekday(f.julian())).as_bytes());
        out.push(b' ');
        let month = short(&MONTHS, f.month - 1).as_bytes();
        if order == DateOrder::Dmy {
            padded(i64::from(f.day), 2, out);
            out.push(b' ');
            out.extend_from_slice(month);
        } else {
            out.extend_from_slice(month);
            out.push(b' ');
            padded(i64::from(f.day), 2, out);
        }
        out.push(b' ');
        time(f, out);
        out.push(b' ');
        year(f, out);
    } else {
        date_part(f, style, order, out);
        out.push(b' ');
        time(f, out);
    }
    if let Some((west, abbreviation)) = of_zone {
        if style == DateStyle::Iso {
            zone(west, out);
        } else {
            out.push(b' ');
            out.extend(abbreviation.bytes().take(MAX_ABBREVIATION));
        }
    }
    era(f, out);
}
