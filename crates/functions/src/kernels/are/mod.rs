//! Advanced regular expressions with PostgreSQL's choice of match (Henry Spencer's): which of several matches is taken, and what
//! its parentheses are.
//!
//! ```text
//!  pattern ──parse──▶ tree of Part                  which preference (longest, shortest) decides where
//!                      └ each names a Lang          what it matches: only that, no preference
//!  match  = the first start from which the whole matches, then its longest or shortest end
//!  groups = from the whole downwards: each Part divides its span between its parts, earlier ones first
//! ```
//!
//! The tree has the shape that PostgreSQL's `regcomp.c` gives it, since preferences follow from the shape: what has neither groups
//! nor clashing preferences is one `Plain` part, taken as a whole. A span is what matters to a Lang, so
//! the ends that it can have from a start are computed once and kept. A part that must be there `m` times or more is a `Plain`
//! part of the first ones and the last one, whose groups count.
//!
//! Refused: back references, collating elements, the options b, e, q, x, and what the collation does not say.

mod exec;
mod parse;

pub(super) use exec::Matcher;

use stegodon_types::{SqlError, SqlState};

use super::case::CaseRules;

/// Prefers the longest match.
pub(super) const LONGER: u8 = 1;
/// Prefers the shortest match.
pub(super) const SHORTER: u8 = 2;
/// Has both preferences below.
const MIXED: u8 = 4;
/// Has a capturing group.
const CAPTURES: u8 = 8;

/// A class of characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Digit,
    HexDigit,
    Space,
    Alpha,
    Alnum,
    Word,
    Upper,
    Lower,
    Punct,
    Graph,
    Print,
    Control,
    Blank,
}

/// A set of characters.
#[derive(Clone, Debug, Default)]
struct Set {
    ranges: Vec<(char, char)>,
    classes: Vec<(Class, bool)>,
    negated: bool,
    /// Never a newline.
    no_newline: bool,
}

/// What a part of the pattern matches.
#[derive(Clone, Debug)]
enum Lang {
    Set(Set),
    Seq(Vec<usize>),
    Alt(Vec<usize>),
    Repeat(usize, u32, Option<u32>),
    Begin,
    End,
    BeginLine,
    EndLine,
    WordStart,
    WordEnd,
    WordEdge(bool),
    Look { inner: usize, behind: bool, negated: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Plain,
    Concat,
    Alt,
    /// From no times to so many.
    Iterate(Option<u32>),
    /// A group around a group.
    Wrap,
}

/// A node of the tree.
#[derive(Clone, Debug)]
struct Part {
    op: Op,
    flags: u8,
    /// Which group it is, 0 for none.
    group: usize,
    parts: Vec<Part>,
    lang: usize,
}

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct Are {
    langs: Vec<Lang>,
    tree: Part,
    /// How many groups it has.
    pub groups: usize,
    rules: CaseRules,
    /// Whether it can only be run over ASCII.
    ascii_only: bool,
}

/// What a pattern is read under.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub rules: CaseRules,
    pub ignore_case: bool,
    /// `.` and `[^…]` do not match a newline.
    pub newline_stops: bool,
    /// `^` and `$` match at lines' ends.
    pub newline_anchors: bool,
}

/// `2201B`
fn invalid(what: &str) -> SqlError {
    SqlError::new(SqlState::InvalidRegularExpression, format!("invalid regular expression: {what}"))
}

fn refuse(what: &str) -> SqlError {
    SqlError::unsupported(format_args!("{what} in a regular expression"))
}

/// What of flags holds further up: two preferences below become a mixture.
fn up(flags: u8) -> u8 {
    (flags & !(LONGER | SHORTER)) | ((flags << 2) & (flags << 1) & MIXED)
}

fn preference(flags: u8) -> u8 {
    flags & (LONGER | SHORTER)
}

fn messy(flags: u8) -> bool {
    flags & (MIXED | CAPTURES) != 0
}

/// The flags of a whole of two: the first one's preference, where it has one.
fn combine(first: u8, second: u8) -> u8 {
    up(first | second) | if preference(first) != 0 { preference(first) } else { preference(second) }
}
