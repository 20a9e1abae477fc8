//! LIKE and ILIKE, over bytes. `%` is any text, `_` one character, the escape character is `\`.
//!
//! A pattern is compiled once a batch (a constant one) or once a row. Patterns without `_` between `%`s, the common kind,
//! become searches for substrings.

use memchr::memmem;
use stegodon_types::settings::Encoding;
use stegodon_types::{SqlError, SqlResult, SqlState};

use super::case::{lower_into, rules};
use super::text::char_len;
use crate::adapt::*;
use crate::kernel::Entry;
use crate::{Call, Column};

/// One piece of a pattern between `%`s: literal bytes and single characters.
#[derive(Debug, Default)]
struct Piece {
    /// Literal bytes; `None` for any one character.
    items: Vec<Item>,
}

#[derive(Debug)]
enum Item {
    Literal(Vec<u8>),
    AnyChar,
}

/// A compiled pattern: pieces, with a `%` between each two.
#[derive(Debug)]
struct Pattern {
    pieces: Vec<Piece>,
    /// The error that matching may meet: an escape at the pattern's end.
    dangling_escape: bool,
    encoding: Encoding,
}

fn dangling() -> SqlError {
    SqlError::new(SqlState::InvalidEscapeSequence, "LIKE pattern must not end with escape character")
}

impl Piece {
    fn literal(&mut self, bytes: &[u8]) {
        if let Some(Item::Literal(l)) = self.items.last_mut() {
            l.extend_from_slice(bytes);
        } else {
            self.items.push(Item::Literal(bytes.to_vec()));
        }
    }

    /// The bytes after a match at the very start.
    fn match_start<'a>(&self, text: &'a [u8], encoding: Encoding) -> Option<&'a [u8]> {
        let mut rest = text;
        for item in &self.items {
            match item {
                Item::Literal(l) => rest = rest.strip_prefix(l.as_slice())?,
                Item::AnyChar => {
                    if rest.is_empty() {
                        return None;
                    }
                    rest = rest.get(char_len(encoding, rest)..)?;
                }
            }
        }
        Some(rest)
    }

    /// The bytes after the first match anywhere.
    fn find<'a>(&self, text: &'a [u8], encoding: Encoding) -> Option<&'a [u8]> {
        if let [Item::Literal(l)] = self.items.as_slice() {
            return text.get(memmem::find(text, l)? + l.len()..);
        }
        let mut from = text;
        loop {
            if let Some(rest) = self.match_start(from, encoding) {
                return Some(rest);
            }
            if from.is_empty() {
                return None;
            }
            from = from.get(char_len(encoding, from)..)?;
        }
    }

    /// Whether it matches the very end.
    fn match_end(&self, text: &[u8], encoding: Encoding) -> bool {
        match self.items.as_slice() {
            [] => true,
            [Item::Literal(l)] => text.ends_with(l),
            _ => {
                let mut from = text;
                loop {
                    if self.match_start(from, encoding).is_some_and(<[u8]>::is_empty) {
                        return true;
                    }
                    if from.is_empty() {
                        return false;
                    }
                    from = from.get(char_len(encoding, from)..).unwrap_or_default();
                }
            }
        }
    }
}

impl Pattern {
    fn new(pattern: &[u8], encoding: Encoding) -> Pattern {
        let mut pieces = vec![Piece::default()];
        let mut dangling_escape = false;
        let mut rest = pattern;
        while let Some((&b, tail)) = rest.split_first() {
            let piece = pieces.last_mut();
            match (b, piece) {
                (b'%', _) => pieces.push(Piece::default()),
                (b'_', Some(p)) => p.items.push(Item::AnyChar),
                (b'\\', Some(p)) => match tail.split_first() {
                    None => dangling_escape = true,
                    Some((escaped, tail)) => {
                        p.literal(&[*escaped]);
                        rest = tail;
                        continue;
                    }
                },
                (b, Some(p)) => p.literal(&[b]),
                (_, None) => {}
            }
            rest = tail;
        }
        Pattern { pieces, dangling_escape, encoding }
    }

    fn matches(&self, text: &[u8]) -> SqlResult<bool> {
        let mut pieces = self.pieces.iter();
        let (Some(first), count) = (pieces.next(), self.pieces.len()) else { return Ok(text.is_empty()) };
        if self.dangling_escape {
            return self.matches_or_fails(text);
        }
        let Some(mut rest) = first.match_start(text, self.encoding) else { return Ok(false) };
        if count == 1 {
            return Ok(rest.is_empty());
        }
        for (n, piece) in pieces.enumerate() {
            if n + 2 == count {
                return Ok(piece.match_end(rest, self.encoding));
            }
            match piece.find(rest, self.encoding) {
                Some(after) => rest = after,
                None => return Ok(false),
            }
        }
        Ok(false)
    }

    /// A pattern that ends with the escape character is an error where matching reaches its end. That depends on how
    /// PostgreSQL backtracks; only what is certain is answered.
    fn matches_or_fails(&self, text: &[u8]) -> SqlResult<bool> {
        let [only] = self.pieces.as_slice() else {
            return Err(dangling());
        };
        // Without `%`, the end is reached exactly where all before it matches.
        match only.match_start(text, self.encoding) {
            None => Ok(false),
            Some([]) => Ok(false),
            Some(_) => Err(dangling()),
        }
    }
}

/// LIKE and NOT LIKE.
fn like(call: &Call<'_>, encoding: Encoding, negated: bool) -> SqlResult<Column> {
    let compiled = constant_pattern(call, |p| Ok(Pattern::new(p, encoding)))?;
    map2(call, |text: &[u8], pattern: &[u8]| {
        let matched = match &compiled {
            Some(p) => p.matches(text)?,
            None => Pattern::new(pattern, encoding).matches(text)?,
        };
        Ok(matched != negated)
    })
}

/// ILIKE and NOT ILIKE: both sides in lower case.
fn ilike(call: &Call<'_>, negated: bool) -> SqlResult<Column> {
    let encoding = call.cx.settings.encoding;
    let rules = rules(call.cx, call.info.input_collation)?;
    let lower = |text: &[u8], out: &mut Vec<u8>| {
        out.clear();
        lower_into(rules, text, out)
    };
    let compiled = constant_pattern(call, |p| {
        let mut folded = Vec::new();
        lower(p, &mut folded)?;
        Ok(Pattern::new(&folded, encoding))
    })?;
    let folded = std::cell::RefCell::new((Vec::new(), Vec::new()));
    map2(call, |text: &[u8], pattern: &[u8]| {
        let (folded_text, folded_pattern) = &mut *folded.borrow_mut();
        lower(text, folded_text)?;
        let matched = if let Some(p) = &compiled {
            p.matches(folded_text)?
        } else {
            lower(pattern, folded_pattern)?;
            Pattern::new(folded_pattern, encoding).matches(folded_text)?
        };
        Ok(matched != negated)
    })
}

/// What is made of the second argument, where it is a constant.
pub(super) fn constant_pattern<T>(call: &Call<'_>, make: impl FnOnce(&[u8]) -> SqlResult<T>) -> SqlResult<Option<T>> {
    let pattern = argument(call, 1)?;
    if !pattern.is_const() || pattern.is_null(0) {
        return Ok(None);
    }
    let values = <&[u8]>::values(pattern.array())?;
    make(<&[u8]>::at(values, 0)).map(Some)
}

/// A text collation is looked at for equality only, but looked at.
fn text_like(call: &Call<'_>, negated: bool) -> SqlResult<Column> {
    call.info.collation.for_equality().check_equality()?;
    like(call, call.cx.settings.encoding, negated)
}

/// `like_escape`: the pattern with its own escape character becomes one with `\`.
fn like_escape(encoding: Encoding, pattern: &[u8], escape: &[u8], out: &mut Vec<u8>) -> SqlResult<()> {
    if escape.is_empty() {
        // No escape character: each backslash stands for itself.
        for &b in pattern {
            if b == b'\\' {
                out.push(b'\\');
            }
            out.push(b);
        }
        return Ok(());
    }
    if char_len(encoding, escape) != escape.len() {
        return Err(SqlError::new(SqlState::InvalidEscapeSequence, "invalid escape string")
            .hint("Escape string must be empty or one character."));
    }
    if escape == b"\\" {
        out.extend_from_slice(pattern);
        return Ok(());
    }
    let mut after_escape = false;
    for c in super::text::chars(encoding, pattern) {
        if c == escape && !after_escape {
            out.push(b'\\');
            after_escape = true;
        } else if c == b"\\" {
            out.push(b'\\');
            if !after_escape {
                out.push(b'\\');
            }
            after_escape = false;
        } else {
            out.extend_from_slice(c);
            after_escape = false;
        }
    }
    Ok(())
}

/// LIKE and its kin: text, name, bpchar, bytea.
pub(crate) static KERNELS: &[Entry] = &[
    (850, |c| text_like(c, false)),
    (851, |c| text_like(c, true)),
    (1569, |c| text_like(c, false)),
    (1570, |c| text_like(c, true)),
    (858, |c| text_like(c, false)),
    (859, |c| text_like(c, true)),
    (1571, |c| text_like(c, false)),
    (1572, |c| text_like(c, true)),
    (1631, |c| text_like(c, false)),
    (1632, |c| text_like(c, true)),
    (2005, |c| like(c, Encoding::SqlAscii, false)),
    (2006, |c| like(c, Encoding::SqlAscii, true)),
    (2007, |c| like(c, Encoding::SqlAscii, false)),
    (2008, |c| like(c, Encoding::SqlAscii, true)),
    (1633, |c| ilike(c, false)),
    (1634, |c| ilike(c, true)),
    (1635, |c| ilike(c, false)),
    (1636, |c| ilike(c, true)),
    (1660, |c| ilike(c, false)),
    (1661, |c| ilike(c, true)),
    (1637, |c| write2(c, |p: &[u8], e: &[u8], out| like_escape(c.cx.settings.encoding, p, e, out))),
    (2009, |c| write2(c, |p: &[u8], e: &[u8], out| like_escape(Encoding::SqlAscii, p, e, out))),
];
