//! The words that dates, times and intervals are written with.

/// What a unit word names; also what `extract` and `date_trunc` are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the name is the documentation")]
pub enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
    Julian,
    Dow,
    Doy,
    IsoDow,
    IsoYear,
    Zone,
    ZoneHour,
    ZoneMinute,
}

/// A moment with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the name is the documentation")]
pub enum Reserved {
    /// `-infinity`
    Early,
    /// `infinity`
    Late,
    Epoch,
    Now,
    Today,
    Tomorrow,
    Yesterday,
    /// `allballs`: 00:00:00 UTC.
    Zulu,
}

/// What a word means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Token {
    /// A month, 1 ..= 12.
    Month(i32),
    /// A day of the week.
    DayOfWeek,
    /// A moment.
    Reserved(Reserved),
    /// `am` (false) or `pm`.
    Pm(bool),
    /// `ad` (false) or `bc`.
    Bc(bool),
    /// `dst`: an hour more.
    DstModifier,
    /// A unit.
    Unit(Unit),
    /// `t`: a time follows.
    IsoTime,
    /// A word without meaning.
    Ignore,
    /// `ago`.
    Ago,
}

use Token::*;

/// Words of dates and times.
static DATE_WORDS: &[(&str, Token)] = &[
    ("+infinity", Reserved(self::Reserved::Late)),
    ("-infinity", Reserved(self::Reserved::Early)),
    ("ad", Bc(false)),
    ("allballs", Reserved(self::Reserved::Zulu)),
    ("am", Pm(false)),
    ("apr", Month(4)),
    ("april", Month(4)),
    ("at", Ignore),
    ("aug", Month(8)),
    ("august", Month(8)),
    ("bc", Bc(true)),
    ("d", Unit(self::Unit::Day)),
    ("dec", Month(12)),
    ("december", Month(12)),
    ("dow", Unit(self::Unit::Dow)),
    ("doy", Unit(self::Unit::Doy)),
    ("dst", DstModifier),
    ("epoch", Reserved(self::Reserved::Epoch)),
    ("feb", Month(2)),
    ("february", Month(2)),
    ("fri", DayOfWeek),
    ("friday", DayOfWeek),
    ("h", Unit(self::Unit::Hour)),
    ("infinity", Reserved(self::Reserved::Late)),
    ("isodow", Unit(self::Unit::IsoDow)),
    ("isoyear", Unit(self::Unit::IsoYear)),
    ("j", Unit(self::Unit::Julian)),
    ("jan", Month(1)),
    ("january", Month(1)),
    ("jd", Unit(self::Unit::Julian)),
    ("jul", Month(7)),
    ("julian", Unit(self::Unit::Julian)),
    ("july", Month(7)),
    ("jun", Month(6)),
    ("june", Month(6)),
    ("m", Unit(self::Unit::Month)),
    ("mar", Month(3)),
    ("march", Month(3)),
    ("may", Month(5)),
    ("mm", Unit(self::Unit::Minute)),
    ("mon", DayOfWeek),
    ("monday", DayOfWeek),
    ("nov", Month(11)),
    ("november", Month(11)),
    ("now", Reserved(self::Reserved::Now)),
    ("oct", Month(10)),
    ("october", Month(10)),
    ("on", Ignore),
    ("pm", Pm(true)),
    ("s", Unit(self::Unit::Second)),
    ("sat", DayOfWeek),
    ("saturday", DayOfWeek),
    ("sep", Month(9)),
    ("sept", Month(9)),
    ("september", Month(9)),
    ("sun", DayOfWeek),
    ("sunday", DayOfWeek),
    ("t", IsoTime),
    ("thu", DayOfWeek),
    ("thur", DayOfWeek),
    ("thurs", DayOfWeek),
    ("thursday", DayOfWeek),
    ("today", Reserved(self::Reserved::Today)),
    ("tomorrow", Reserved(self::Reserved::Tomorrow)),
    ("tue", DayOfWeek),
    ("tues", DayOfWeek),
    ("tuesday", DayOfWeek),
    ("wed", DayOfWeek),
    ("wednesday", DayOfWeek),
    ("weds", DayOfWeek),
    ("y", Unit(self::Unit::Year)),
    ("yesterday", Reserved(self::Reserved::Yesterday)),
];

/// Words of intervals, and of `extract`.
static UNIT_WORDS: &[(&str, Token)] = &[
    ("@", Ignore),
    ("ago", Ago),
    ("c", Unit(self::Unit::Century)),
    ("cent", Unit(self::Unit::Century)),
    ("centuries", Unit(self::Unit::Century)),
    ("century", Unit(self::Unit::Century)),
    ("d", Unit(self::Unit::Day)),
    ("day", Unit(self::Unit::Day)),
    ("days", Unit(self::Unit::Day)),
    ("dec", Unit(self::Unit::Decade)),
    ("decade", Unit(self::Unit::Decade)),
    ("decades", Unit(self::Unit::Decade)),
    ("decs", Unit(self::Unit::Decade)),
    ("h", Unit(self::Unit::Hour)),
    ("hour", Unit(self::Unit::Hour)),
    ("hours", Unit(self::Unit::Hour)),
    ("hr", Unit(self::Unit::Hour)),
    ("hrs", Unit(self::Unit::Hour)),
    ("m", Unit(self::Unit::Minute)),
    ("microsecon", Unit(self::Unit::Microsecond)),
    ("mil", Unit(self::Unit::Millennium)),
    ("millennia", Unit(self::Unit::Millennium)),
    ("millennium", Unit(self::Unit::Millennium)),
    ("millisecon", Unit(self::Unit::Millisecond)),
    ("mils", Unit(self::Unit::Millennium)),
    ("min", Unit(self::Unit::Minute)),
    ("mins", Unit(self::Unit::Minute)),
    ("minute", Unit(self::Unit::Minute)),
    ("minutes", Unit(self::Unit::Minute)),
    ("mon", Unit(self::Unit::Month)),
    ("mons", Unit(self::Unit::Month)),
    ("month", Unit(self::Unit::Month)),
    ("months", Unit(self::Unit::Month)),
    ("ms", Unit(self::Unit::Millisecond)),
    ("msec", Unit(self::Unit::Millisecond)),
    ("msecond", Unit(self::Unit::Millisecond)),
    ("mseconds", Unit(self::Unit::Millisecond)),
    ("msecs", Unit(self::Unit::Millisecond)),
    ("qtr", Unit(self::Unit::Quarter)),
    ("quarter", Unit(self::Unit::Quarter)),
    ("s", Unit(self::Unit::Second)),
    ("sec", Unit(self::Unit::Second)),
    ("second", Unit(self::Unit::Second)),
    ("seconds", Unit(self::Unit::Second)),
    ("secs", Unit(self::Unit::Second)),
    ("timezone", Unit(self::Unit::Zone)),
    ("timezone_h", Unit(self::Unit::ZoneHour)),
    ("timezone_m", Unit(self::Unit::ZoneMinute)),
    ("us", Unit(self::Unit::Microsecond)),
    ("usec", Unit(self::Unit::Microsecond)),
    ("usecond", Unit(self::Unit::Microsecond)),
    ("useconds", Unit(self::Unit::Microsecond)),
    ("usecs", Unit(self::Unit::Microsecond)),
    ("w", Unit(self::Unit::Week)),
    ("week", Unit(self::Unit::Week)),
    ("weeks", Unit(self::Unit::Week)),
    ("y", Unit(self::Unit::Year)),
    ("year", Unit(self::Unit::Year)),
    ("years", Unit(self::Unit::Year)),
    ("yr", Unit(self::Unit::Year)),
    ("yrs", Unit(self::Unit::Year)),
];

/// Words are told apart by their first ten letters.
const SIGNIFICANT: usize = 10;

/// The part of a word that counts.
pub(super) fn significant(word: &str) -> &str {
    word.get(..SIGNIFICANT).unwrap_or(word)
}

fn look_up(table: &[(&str, Token)], word: &str) -> Option<Token> {
    let word = significant(word);
    table.binary_search_by_key(&word, |(name, _)| name).ok().and_then(|at| table.get(at)).map(|(_, token)| *token)
}

/// A word (in lower case) of a date or time.
pub fn date_word(word: &str) -> Option<Token> {
    look_up(DATE_WORDS, word)
}

/// A word (in lower case) of an interval.
pub fn unit_word(word: &str) -> Option<Token> {
    look_up(UNIT_WORDS, word)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_tables_are_sorted() {
        assert!(super::DATE_WORDS.is_sorted_by_key(|(name, _)| name));
        assert!(super::UNIT_WORDS.is_sorted_by_key(|(name, _)| name));
        assert!(super::super::abbreviations::ABBREVIATIONS.is_sorted_by_key(|(name, _)| name));
    }
}
