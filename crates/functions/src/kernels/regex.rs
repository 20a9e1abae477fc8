//! `~`, `~*`, `!~`, `!~*`: whether a text matches an advanced regular expression.
//!
//! Whether there is a match does not depend on which match is preferred, so a pattern that can be translated exactly into
//! the `regex` crate's language is run by it; any other is refused. Translated are literals, `.`, `^`, `$`, groups,
//! alternatives, quantifiers, bracket expressions of characters, ranges and classes, and the escapes for classes and
//! punctuation. Not translated: back references, look-around, word boundaries, embedded options, collating elements.

use std::fmt::Write;

use regex::bytes::{Regex, RegexBuilder};
use stegodon_types::settings::Encoding;
use stegodon_types::{SqlError, SqlResult};

use super::case::{CaseRules, rules, simple_lower, simple_upper};
use super::like::constant_pattern;
use super::regexp;
use crate::adapt::map2;
use crate::kernel::Entry;
use crate::{Call, Column};

fn refuse(what: &str) -> SqlError {
    SqlError::unsupported(format_args!("{what} in a regular expression"))
}

struct Translator<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    rules: CaseRules,
    ignore_case: bool,
    out: String,
}

/// Pushes a character that stands for itself, inside or outside of brackets.
fn literal(out: &mut String, c: char) {
    if c.is_ascii_alphanumeric() || !c.is_ascii() {
        out.push(c);
    } else {
        // Every other ASCII character by its number: no question of what must be escaped where.
        let _ = write!(out, "\\x{{{:x}}}", c as u32);
    }
}

impl Translator<'_> {
    /// The characters that stand for one when case is ignored.
    fn cases(&self, c: char) -> SqlResult<Vec<char>> {
        if !self.ignore_case {
            return Ok(vec![c]);
        }
        if !c.is_ascii() && self.rules == CaseRules::Unknown {
            return Err(refuse("ignoring case beyond ASCII"));
        }
        let (upper, lower) = match self.rules {
            CaseRules::Simple => (simple_upper(c), simple_lower(c)),
            _ => (c.to_ascii_uppercase(), c.to_ascii_lowercase()),
        };
        let mut all = vec![c, lower, upper];
        all.dedup();
        Ok(all)
    }

    fn class(&self, name: &str) -> SqlResult<&'static str> {
        if self.rules == CaseRules::Unknown {
            return Err(refuse("a character class under this collation"));
        }
        let ascii = self.rules == CaseRules::Ascii;
        Ok(match name {
            "digit" => "0-9",
            "xdigit" => "0-9A-Fa-f",
            "space" if ascii => r"\x09-\x0d\x20",
            "space" => r"\s",
            "alpha" if ascii => "A-Za-z",
            "alpha" => r"\p{Alphabetic}",
            "alnum" if ascii => "A-Za-z0-9",
            "alnum" => r"\p{Alphabetic}0-9",
            "word" if ascii => "A-Za-z0-9_",
            "word" => r"\p{Alphabetic}0-9_",
            "upper" | "lower" if self.ignore_case => self.class("alpha")?,
            "upper" if ascii => "A-Z",
            "upper" => r"\p{Uppercase}",
            "lower" if ascii => "a-z",
            "lower" => r"\p{Lowercase}",
            _ => return Err(refuse("this character class")),
        })
    }

    fn run(mut self) -> SqlResult<String> {
        if self.rest.clone().take(3).eq("***".chars()) {
            return Err(refuse("a director"));
        }
        let mut depth = 0_u32;
        // Whether a quantifier may follow.
        let mut atom = false;
        while let Some(c) = self.rest.next() {
            match c {
                '^' | '$' => {
                    self.out.push_str(if c == '^' { r"\A" } else { r"\z" });
                    atom = false;
                }
                '.' => {
                    self.out.push('.');
                    atom = true;
                }
                '|' => {
                    self.out.push('|');
                    atom = false;
                }
                '(' => {
                    if self.rest.peek() == Some(&'?') {
                        self.rest.next();
                        if self.rest.next() != Some(':') {
                            return Err(refuse("look-around or an embedded option"));
                        }
                    }
                    if self.rest.peek() == Some(&'*') {
                        return Err(refuse("a quantifier without an atom"));
                    }
                    self.out.push_str("(?:");
                    depth += 1;
                    atom = false;
                }
                ')' => {
                    depth = depth.checked_sub(1).ok_or_else(|| refuse("an unbalanced parenthesis"))?;
                    self.out.push(')');
                    atom = true;
                }
                '*' | '+' | '?' | '{' => {
                    if !atom {
                        return Err(refuse("a quantifier without an atom"));
                    }
                    if c == '{' {
                        self.bound()?;
                    } else {
                        self.out.push(c);
                    }
                    // A non-greedy quantifier matches where the greedy one does.
                    if self.rest.peek() == Some(&'?') {
                        self.rest.next();
                    }
                    atom = false;
                }
                '[' => {
                    self.bracket()?;
                    atom = true;
                }
                '\\' => {
                    self.escape()?;
                    atom = true;
                }
                '}' | ']' => return Err(refuse("an unbalanced bracket")),
                c => {
                    self.characters(c)?;
                    atom = true;
                }
            }
        }
        if depth > 0 {
            return Err(refuse("an unbalanced parenthesis"));
        }
        Ok(self.out)
    }

    /// One character outside of brackets.
    fn characters(&mut self, c: char) -> SqlResult<()> {
        match self.cases(c)?.as_slice() {
            [one] => literal(&mut self.out, *one),
            several => {
                self.out.push('[');
                for &c in several {
                    literal(&mut self.out, c);
                }
                self.out.push(']');
            }
        }
        Ok(())
    }

    /// `{m}`, `{m,}`, `{m,n}`; the brace is read.
    fn bound(&mut self) -> SqlResult<()> {
        let mut text = String::new();
        loop {
            match self.rest.next() {
                Some('}') => break,
                Some(c @ ('0'..='9' | ',')) if text.len() < 8 => text.push(c),
                _ => return Err(refuse("this repetition count")),
            }
        }
        let number = |s: &str| s.parse::<u32>().ok().filter(|n| *n <= 255);
        let good = match text.split_once(',') {
            None => number(&text).is_some(),
            Some((low, "")) => number(low).is_some(),
            Some((low, high)) => number(low).zip(number(high)).is_some_and(|(l, h)| l <= h),
        };
        if !good {
            return Err(refuse("this repetition count"));
        }
        let _ = write!(self.out, "{{{text}}}");
        Ok(())
    }

    /// After a backslash, outside of brackets.
    fn escape(&mut self) -> SqlResult<()> {
        match self.rest.next() {
            Some('d') => self.push_class(false, "digit"),
            Some('D') => self.push_class(true, "digit"),
            Some('s') => self.push_class(false, "space"),
            Some('S') => self.push_class(true, "space"),
            Some('w') => self.push_class(false, "word"),
            Some('W') => self.push_class(true, "word"),
            Some('t') => self.characters('\t'),
            Some('n') => self.characters('\n'),
            Some('r') => self.characters('\r'),
            Some('f') => self.characters('\u{c}'),
            Some('v') => self.characters('\u{b}'),
            Some(c) if !c.is_alphanumeric() => self.characters(c),
            _ => Err(refuse("this escape")),
        }
    }

    fn push_class(&mut self, negated: bool, name: &str) -> SqlResult<()> {
        let class = self.class(name)?;
        self.out.push_str(if negated { "[^" } else { "[" });
        self.out.push_str(class);
        self.out.push(']');
        Ok(())
    }

    /// A bracket expression; its opening bracket is read.
    fn bracket(&mut self) -> SqlResult<()> {
        self.out.push('[');
        if self.rest.peek() == Some(&'^') {
            self.rest.next();
            self.out.push('^');
        }
        let mut first = true;
        loop {
            let c = self.rest.next().ok_or_else(|| refuse("an unbalanced bracket"))?;
            match c {
                ']' if !first => break,
                '[' => match self.rest.peek() {
                    Some(':') => {
                        self.rest.next();
                        let mut name = String::new();
                        loop {
                            match self.rest.next() {
                                Some(':') => break,
                                Some(c) if c.is_ascii_lowercase() && name.len() < 8 => name.push(c),
                                _ => return Err(refuse("this character class")),
                            }
                        }
                        if self.rest.next() != Some(']') || name == "word" {
                            return Err(refuse("this character class"));
                        }
                        let class = self.class(&name)?;
                        self.out.push_str(class);
                    }
                    Some('.' | '=') => return Err(refuse("a collating element")),
                    _ => self.range('[')?,
                },
                '\\' => match self.rest.next() {
                    Some('d') => self.out.push_str(self.class("digit")?),
                    Some('s') => self.out.push_str(self.class("space")?),
                    Some('w') => self.out.push_str(self.class("word")?),
                    Some('t') => self.range('\t')?,
                    Some('n') => self.range('\n')?,
                    Some('r') => self.range('\r')?,
                    Some(c) if !c.is_alphanumeric() => self.range(c)?,
                    _ => return Err(refuse("this escape")),
                },
                '-' if !first && self.rest.peek() != Some(&']') => return Err(refuse("a range without a start")),
                c => self.range(c)?,
            }
            first = false;
        }
        self.out.push(']');
        Ok(())
    }

    /// A character in brackets, or a range that begins with it.
    fn range(&mut self, start: char) -> SqlResult<()> {
        let mut ahead = self.rest.clone();
        if ahead.next() != Some('-') || ahead.peek().is_none_or(|c| *c == ']') {
            for c in self.cases(start)? {
                literal(&mut self.out, c);
            }
            return Ok(());
        }
        self.rest.next();
        let end = match self.rest.next() {
            Some('\\') => match self.rest.next() {
                Some(c) if !c.is_alphanumeric() => c,
                _ => return Err(refuse("this escape")),
            },
            Some('[') | None => return Err(refuse("this range")),
            Some(c) => c,
        };
        if end < start {
            return Err(refuse("an empty range"));
        }
        literal(&mut self.out, start);
        self.out.push('-');
        literal(&mut self.out, end);
        if self.ignore_case {
            if !end.is_ascii() {
                return Err(refuse("ignoring case in a range beyond ASCII"));
            }
            for c in start..=end {
                for other in self.cases(c)? {
                    if other != c {
                        literal(&mut self.out, other);
                    }
                }
            }
        }
        Ok(())
    }
}

fn compile(pattern: &[u8], rules: CaseRules, ignore_case: bool) -> SqlResult<Regex> {
    let pattern = std::str::from_utf8(pattern).map_err(|_| refuse("text that is not UTF-8"))?;
    let translator = Translator {
        rest: pattern.chars().peekable(),
        rules,
        ignore_case,
        out: String::with_capacity(pattern.len() + 8),
    };
    let translated = translator.run()?;
    RegexBuilder::new(&translated)
        .dot_matches_new_line(true)
        .size_limit(1 << 20)
        .build()
        .map_err(|_| refuse("what cannot be translated"))
}

fn matches(call: &Call<'_>, ignore_case: bool, negated: bool) -> SqlResult<Column> {
    call.info.collation.for_equality().check_equality()?;
    if call.cx.settings.encoding != Encoding::Utf8 {
        return Err(SqlError::unsupported("a regular expression in a SQL_ASCII database"));
    }
    let rules = rules(call.cx, call.info.input_collation)?;
    // What does not translate is run by our own matcher.
    let compiled = constant_pattern(call, |p| match compile(p, rules, ignore_case) {
        Ok(regex) => Ok(Ok(regex)),
        Err(_) => regexp::pattern(call, p, ignore_case).map(Err),
    })?;
    map2(call, |text: &[u8], pattern: &[u8]| {
        let found = match &compiled {
            Some(Ok(regex)) => regex.is_match(text),
            Some(Err(are)) => regexp::is_match(call, are, text)?,
            None => match compile(pattern, rules, ignore_case) {
                Ok(regex) => regex.is_match(text),
                Err(_) => regexp::is_match(call, &regexp::pattern(call, pattern, ignore_case)?, text)?,
            },
        };
        Ok(found != negated)
    })
}

/// The operators of text, name and bpchar, and `regexp_like` without flags.
pub(crate) static KERNELS: &[Entry] = &[
    (1254, |c| matches(c, false, false)),
    (79, |c| matches(c, false, false)),
    (1658, |c| matches(c, false, false)),
    (6263, |c| matches(c, false, false)),
    (1256, |c| matches(c, false, true)),
    (1252, |c| matches(c, false, true)),
    (1659, |c| matches(c, false, true)),
    (1238, |c| matches(c, true, false)),
    (1240, |c| matches(c, true, false)),
    (1656, |c| matches(c, true, false)),
    (1239, |c| matches(c, true, true)),
    (1241, |c| matches(c, true, true)),
    (1657, |c| matches(c, true, true)),
];
