//! Days and their dates (proleptic Gregorian, year 0 is 1 BC), and a moment taken apart.

use super::{DAY_US, HOUR_US, MINUTE_US, SECOND_US};

/// The Julian day of 2000-01-01.
pub const EPOCH_JULIAN: i32 = 2_451_545;
/// The Julian day of 1970-01-01.
pub const UNIX_EPOCH_JULIAN: i32 = 2_440_588;
/// Seconds from 1970 to 2000.
pub const UNIX_TO_EPOCH_S: i64 = (EPOCH_JULIAN - UNIX_EPOCH_JULIAN) as i64 * super::DAY_S;
/// The first day after the last date.
pub const DATE_END_JULIAN: i32 = 2_147_483_494;
/// The first day after the last timestamp.
pub const TIMESTAMP_END_JULIAN: i32 = 109_203_528;
/// The first moment that a timestamp can be.
pub const MIN_TIMESTAMP: i64 = -211_813_488_000_000_000;
/// The first moment after the last timestamp.
pub const END_TIMESTAMP: i64 = 9_223_371_331_200_000_000;

/// A moment taken apart, as a wall clock shows it. Reading also holds unfinished values in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// Year; 0 is 1 BC.
    pub year: i32,
    /// 1 ..= 12
    pub month: i32,
    /// 1 ..= 31
    pub day: i32,
    /// 0 ..= 24
    pub hour: i32,
    /// 0 ..= 59
    pub minute: i32,
    /// 0 ..= 60
    pub second: i32,
    /// Microseconds of the second.
    pub us: i32,
    /// Day of the year, where reading found one instead of month and day; else 0.
    pub year_day: i32,
}

/// The Julian day of a date. Wraps for years that [`is_valid_julian`] excludes.
pub fn to_julian(year: i32, month: i32, day: i32) -> i32 {
    let (year, month) = if month > 2 {
        (year.wrapping_add(4800), month.wrapping_add(1))
    } else {
        (year.wrapping_add(4799), month.wrapping_add(13))
    };
    let century = year / 100;
    let days = year.wrapping_mul(365).wrapping_sub(32_167);
    let days = days.wrapping_add((year / 4).wrapping_sub(century).wrapping_add(century / 4));
    days.wrapping_add(month.wrapping_mul(7834) / 256).wrapping_add(day)
}

/// Year, month and day of a Julian day, which is not negative.
pub fn from_julian(julian: i32) -> (i32, i32, i32) {
    let mut days = (julian as u32).wrapping_add(32_044);
    let cycle = days / 146_097;
    let extra = (days - cycle * 146_097) * 4 + 3;
    days = days.wrapping_add(60 + cycle * 3 + extra / 146_097);
    let quad = days / 1461;
    days -= quad * 1461;
    let year = days * 4 / 1461;
    days = if year == 0 { (days + 306) % 366 } else { (days + 305) % 365 } + 123;
    let month = days * 2141 / 65_536;
    ((year + quad * 4) as i32 - 4800, (month as i32 + 10) % 12 + 1, days as i32 - (7834 * month / 256) as i32)
}

/// The day of the week of a Julian day: 0 is Sunday.
pub fn weekday(julian: i32) -> i32 {
    julian.wrapping_add(1).rem_euclid(7)
}

/// Whether a year is a leap year.
pub fn is_leap(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// The days of a month; 0 where there is no such month.
pub fn days_in_month(year: i32, month: i32) -> i32 {
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap(year) => 29,
        2 => 28,
        _ => 0,
    }
}

/// Whether the Julian day of a date can be computed.
pub fn is_valid_julian(year: i32, month: i32) -> bool {
    (year > -4713 || (year == -4713 && month >= 11)) && (year < 5_874_898 || (year == 5_874_898 && month < 6))
}

/// Whether days since 2000 are a finite date.
pub fn is_valid_date(days: i32) -> bool {
    (-EPOCH_JULIAN..DATE_END_JULIAN - EPOCH_JULIAN).contains(&days)
}

/// Whether microseconds since 2000 are a finite timestamp.
pub fn is_valid_timestamp(us: i64) -> bool {
    (MIN_TIMESTAMP..END_TIMESTAMP).contains(&us)
}

impl Fields {
    /// The fields of a day and a time of day.
    pub fn of_day(julian: i32, time_us: i64) -> Fields {
        let (year, month, day) = from_julian(julian);
        Fields { year, month, day, ..Fields::of_time(time_us) }
    }

    /// The fields of a time of day.
    pub fn of_time(time_us: i64) -> Fields {
        Fields {
            hour: (time_us / HOUR_US) as i32,
            minute: (time_us / MINUTE_US % 60) as i32,
            second: (time_us / SECOND_US % 60) as i32,
            us: (time_us % SECOND_US) as i32,
            ..Fields::default()
        }
    }

    /// The fields of a timestamp; `None` where there is no such day.
    pub fn of_timestamp(us: i64) -> Option<Fields> {
        let julian = us.div_euclid(DAY_US) + i64::from(EPOCH_JULIAN);
        let julian = i32::try_from(julian).ok().filter(|j| *j >= 0)?;
        Some(Fields::of_day(julian, us.rem_euclid(DAY_US)))
    }

    /// The Julian day.
    pub fn julian(&self) -> i32 {
        to_julian(self.year, self.month, self.day)
    }

    /// Microseconds since midnight.
    pub fn time_us(&self) -> i64 {
        i64::from(self.hour) * HOUR_US
            + i64::from(self.minute) * MINUTE_US
            + i64::from(self.second) * SECOND_US
            + i64::from(self.us)
    }

    /// The timestamp, where the wall clock is `west` seconds behind; `None` where it is out of range.
    pub fn to_timestamp(&self, west: i32) -> Option<i64> {
        if !is_valid_julian(self.year, self.month) {
            return None;
        }
        let us = i64::from(self.julian() - EPOCH_JULIAN).checked_mul(DAY_US)?.checked_add(self.time_us())?;
        let us = us.checked_add(i64::from(west) * SECOND_US)?;
        is_valid_timestamp(us).then_some(us)
    }
}
