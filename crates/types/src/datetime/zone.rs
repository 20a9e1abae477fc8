//! Time zones: the offset at a moment, the offset that a wall clock means, names and abbreviations.
//!
//! Seconds are those since 1970-01-01 UTC. Offsets named `east` are as `jiff` has them, those named `west` as
//! `timetz` stores them.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::abbreviations::{ABBREVIATIONS, Meaning};
use super::calendar::{UNIX_EPOCH_JULIAN, UNIX_TO_EPOCH_S, is_valid_julian};
use super::{DAY_S, Fields, SECOND_US};
use crate::{SqlError, SqlResult, SqlState};

/// Seconds of 400 years, after which dates, weekdays and so the rules of zones repeat.
const CYCLE_S: i64 = 146_097 * DAY_S;
/// What is looked up lies before this: some years before the last that `jiff` has.
const LATEST_S: i64 = 253_000_000_000;
/// Zones' tables end here; what follows are rules. (2040.)
const TABLES_END_S: i64 = 2_208_988_800;

/// The same moment of an earlier cycle, where `jiff` does not reach this one; and by how much it was moved.
fn reachable(seconds: i64) -> (Timestamp, i64) {
    let cycles = if seconds > LATEST_S { (seconds - LATEST_S + CYCLE_S - 1) / CYCLE_S } else { 0 };
    let moved = cycles * CYCLE_S;
    let earliest = Timestamp::MIN.as_second();
    (Timestamp::from_second((seconds - moved).max(earliest)).unwrap_or(Timestamp::MIN), moved)
}

/// The offset east of Greenwich at a moment, in seconds.
pub fn east_at(zone: &TimeZone, seconds: i64) -> i32 {
    zone.to_offset(reachable(seconds).0).seconds()
}

/// The abbreviation in use at a moment.
pub fn abbreviation_at(zone: &TimeZone, seconds: i64) -> String {
    zone.to_offset_info(reachable(seconds).0).abbreviation().to_owned()
}

/// Seconds since 1970 of a timestamp, rounded down.
pub fn unix_seconds(timestamp: i64) -> i64 {
    timestamp.div_euclid(SECOND_US) + UNIX_TO_EPOCH_S
}

/// What a wall clock in a zone shows at a timestamp, and how many seconds it is west; `None` where there is no such day.
pub fn to_local(zone: &TimeZone, timestamp: i64) -> Option<(Fields, i32)> {
    // The moment itself must be a day, too.
    Fields::of_timestamp(timestamp)?;
    let east = east_at(zone, unix_seconds(timestamp));
    let local = timestamp.checked_add(i64::from(east) * SECOND_US)?;
    let julian = local.div_euclid(super::DAY_US) + i64::from(super::calendar::EPOCH_JULIAN);
    let julian = i32::try_from(julian).ok()?;
    Some((Fields::of_day(julian, local.rem_euclid(super::DAY_US)), -east))
}

/// The seconds since 1970 that a wall clock means, and how many seconds it is west. In a gap the offset before it
/// counts, in an overlap the one after it.
fn resolve(zone: &TimeZone, local: &Fields) -> (i64, i32) {
    if !is_valid_julian(local.year, local.month) {
        return (0, 0);
    }
    let wall =
        i64::from(local.julian() - UNIX_EPOCH_JULIAN) * DAY_S + (local.time_us() - i64::from(local.us)) / SECOND_US;
    // No zone is a day from Greenwich, and its changes are more than two days apart.
    let (from, moved) = reachable(wall - DAY_S);
    let before = zone.to_offset(from).seconds();
    let Some(change) = zone.following(from).next() else {
        return (wall - i64::from(before), -before);
    };
    let boundary = change.timestamp().as_second() + moved;
    let after = change.offset().seconds();
    let (wall_before, wall_after) = (wall - i64::from(before), wall - i64::from(after));
    let use_before = if wall_before < boundary && wall_after < boundary {
        true
    } else if wall_before > boundary && wall_after >= boundary {
        false
    } else {
        wall_before > wall_after
    };
    if use_before { (wall_before, -before) } else { (wall_after, -after) }
}

/// How many seconds west a wall clock in a zone is.
pub fn west_of_local(zone: &TimeZone, local: &Fields) -> i32 {
    resolve(zone, local).1
}

/// Every stretch of a zone's table: its start, offset, whether it is summer time, and its abbreviation.
fn stretches(zone: &TimeZone) -> impl Iterator<Item = (i64, i32, bool, String)> {
    let first = zone.to_offset_info(Timestamp::MIN);
    let first = (i64::MIN, first.offset().seconds(), first.dst().is_dst(), first.abbreviation().to_owned());
    let rest = zone.following(Timestamp::MIN).take_while(|t| t.timestamp().as_second() < TABLES_END_S);
    let rest =
        rest.map(|t| (t.timestamp().as_second(), t.offset().seconds(), t.dst().is_dst(), t.abbreviation().to_owned()));
    std::iter::once(first).chain(rest)
}

/// The offset of a zone that never changed it.
pub fn only_offset(zone: &TimeZone) -> Option<i32> {
    let mut offsets = stretches(zone).map(|s| s.1);
    let first = offsets.next()?;
    offsets.all(|o| o == first).then_some(first)
}

/// What an abbreviation stands for.
#[derive(Clone, Debug)]
pub enum Abbreviation {
    /// Seconds east of Greenwich.
    Fixed(i32),
    /// What it meant in this zone at the time in question.
    Varying(TimeZone),
}

/// An abbreviation, in lower case: of the session's zone, or else one of the known ones.
pub fn abbreviation(word: &str, session: &TimeZone) -> Option<Abbreviation> {
    let upper = word.to_ascii_uppercase();
    // No zone has an abbreviation shorter than three letters, and none is a word of dates.
    if word.len() >= 3 && super::tokens::date_word(word).is_none() {
        let mut known: Option<(i32, bool)> = None;
        for (_, east, dst, name) in stretches(session) {
            if name != upper {
                continue;
            }
            match known {
                None => known = Some((east, dst)),
                Some(first) if first == (east, dst) => {}
                Some(_) => return Some(Abbreviation::Varying(session.clone())),
            }
        }
        if let Some((east, _)) = known {
            return Some(Abbreviation::Fixed(east));
        }
    }
    let word = super::tokens::significant(word);
    let at = ABBREVIATIONS.binary_search_by_key(&word, |(name, _)| name).ok()?;
    match ABBREVIATIONS.get(at)?.1 {
        Meaning::Fixed(east) => Some(Abbreviation::Fixed(east)),
        Meaning::Varying(zone) => TimeZone::get(zone).ok().map(Abbreviation::Varying),
    }
}

/// How many seconds west a varying abbreviation is: its latest use at or before the moment, else its first after.
pub fn west_of_abbreviation(word: &str, zone: &TimeZone, local: &Fields) -> i32 {
    let (moment, west) = resolve(zone, local);
    west_of_abbreviation_at(word, zone, moment).unwrap_or(west)
}

/// The same for a moment in seconds since 1970; `None` where the zone never used it.
pub fn west_of_abbreviation_at(word: &str, zone: &TimeZone, moment: i64) -> Option<i32> {
    let upper = word.to_ascii_uppercase();
    let mut found = None;
    // What was before the first change counts as never used.
    for (start, east, _, name) in stretches(zone).skip(1) {
        if name == upper {
            if start > moment {
                return found.or(Some(-east));
            }
            found = Some(-east);
        }
    }
    found
}

/// A zone by its name in the tz database or as a POSIX string of a fixed offset (`xyz+3` is three hours west). `None`
/// where there is none; `0A000` for POSIX strings with a summer time.
pub fn by_name(name: &str) -> SqlResult<Option<TimeZone>> {
    if name.eq_ignore_ascii_case("etc/unknown") {
        return Ok(None);
    }
    if let Ok(zone) = TimeZone::get(name) {
        return Ok(Some(zone));
    }
    posix(name)
}

fn posix(name: &str) -> SqlResult<Option<TimeZone>> {
    let rest = if let Some(quoted) = name.strip_prefix('<') {
        let Some((_, rest)) = quoted.split_once('>') else { return Ok(None) };
        rest
    } else {
        name.trim_start_matches(|c: char| !c.is_ascii_digit() && !matches!(c, ',' | '+' | '-'))
    };
    let Some((west, rest)) = posix_offset(rest) else { return Ok(None) };
    if !rest.is_empty() {
        return Err(SqlError::unsupported(format_args!("the time zone \"{name}\", a POSIX string with summer time")));
    }
    let offset = jiff::tz::Offset::from_seconds(-west)
        .map_err(|_| SqlError::unsupported(format_args!("a time zone as far from Greenwich as \"{name}\"")))?;
    Ok(Some(TimeZone::fixed(offset)))
}

/// `[+-]hours[:minutes[:seconds]]`, and what follows.
fn posix_offset(text: &str) -> Option<(i32, &str)> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut seconds = 0;
    for (n, (unit, limit)) in [(3600, 167), (60, 59), (1, 60)].into_iter().enumerate() {
        if n > 0 {
            let Some(after) = rest.strip_prefix(':') else { break };
            rest = after;
        }
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let value: i32 = rest.get(..digits)?.parse().ok().filter(|v| *v <= limit)?;
        seconds += value * unit;
        rest = rest.get(digits..)?;
    }
    Some((if negative { -seconds } else { seconds }, rest))
}

/// A zone as the functions that take one are given it: an abbreviation or a name. `22023` where there is none.
pub fn named(name: &str, session: &TimeZone) -> SqlResult<Named> {
    match abbreviation(&name.to_ascii_lowercase(), session) {
        Some(Abbreviation::Fixed(east)) => Ok(Named::Fixed(east)),
        Some(Abbreviation::Varying(zone)) => Ok(Named::Abbreviation(zone)),
        None => by_name(name)?.map(Named::Zone).ok_or_else(|| {
            SqlError::new(SqlState::InvalidParameterValue, format!("time zone \"{name}\" not recognized"))
        }),
    }
}

/// What a zone's name is.
#[derive(Clone, Debug)]
pub enum Named {
    /// An abbreviation of a fixed offset, in seconds east.
    Fixed(i32),
    /// An abbreviation whose meaning varies, in this zone.
    Abbreviation(TimeZone),
    /// A zone.
    Zone(TimeZone),
}
