//! The functions of regular expressions that say where a match is: `regexp_match`, `regexp_replace`, `regexp_split_to_array` and
//! their like, `substring(… from …)`, `similar to`.

use stegodon_types::array::build_vector;
use stegodon_types::settings::Encoding;
use stegodon_types::{SqlError, SqlResult, SqlState, ValueRef, oids};

use super::are::{Are, Matcher, Options};
use super::case::rules;
use crate::adapt::*;
use crate::column::ByteBuilder;
use crate::kernel::Entry;
use crate::{Call, Column, EvalContext};

type Span = (usize, usize);
/// A match: its span, then its groups'.
type Groups = Vec<Option<Span>>;

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::InvalidParameterValue, message)
}

/// What flags say.
struct Flags {
    options: Options,
    global: bool,
}

fn flags(cx: &EvalContext<'_>, collation: stegodon_types::Oid, text: &[u8]) -> SqlResult<Flags> {
    if cx.settings.encoding != Encoding::Utf8 {
        return Err(SqlError::unsupported("a regular expression in a SQL_ASCII database"));
    }
    cx.types.collation(collation)?.for_equality().check_equality()?;
    let mut options =
        Options { rules: rules(cx, collation)?, ignore_case: false, newline_stops: false, newline_anchors: false };
    let mut global = false;
    let mut rest = text;
    while let [b, tail @ ..] = rest {
        match b {
            b'g' => global = true,
            b'c' => options.ignore_case = false,
            b'i' => options.ignore_case = true,
            b'm' | b'n' => (options.newline_stops, options.newline_anchors) = (true, true),
            b's' => (options.newline_stops, options.newline_anchors) = (false, false),
            b'p' => (options.newline_stops, options.newline_anchors) = (true, false),
            b'w' => (options.newline_stops, options.newline_anchors) = (false, true),
            b't' => {}
            b'b' | b'e' | b'q' | b'x' => return Err(SqlError::unsupported("this option of a regular expression")),
            _ => {
                let c = String::from_utf8_lossy(rest).chars().next().unwrap_or_default();
                return Err(invalid(format!("invalid regular expression option: \"{c}\"")));
            }
        }
        rest = tail;
    }
    Ok(Flags { options, global })
}

fn compile(pattern: &[u8], flags: &Flags) -> SqlResult<Are> {
    let pattern =
        std::str::from_utf8(pattern).map_err(|_| SqlError::unsupported("a regular expression that is not UTF-8"))?;
    Are::compile(pattern, flags.options)
}

fn chars(text: &[u8]) -> SqlResult<Vec<char>> {
    match std::str::from_utf8(text) {
        Ok(text) => Ok(text.chars().collect()),
        Err(_) => Err(SqlError::unsupported("a regular expression over text that is not UTF-8")),
    }
}

fn put(text: &[char], (from, to): Span, out: &mut Vec<u8>) {
    let mut buffer = [0; 4];
    for c in text.get(from..to).unwrap_or_default() {
        out.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes());
    }
}

fn bytes(text: &[char], span: Span) -> Vec<u8> {
    let mut out = Vec::new();
    put(text, span, &mut out);
    out
}

/// All matches, or the first; for splitting without the empty ones at the ends and behind a match.
fn all(matcher: &mut Matcher<'_>, length: usize, from: usize, global: bool, split: bool) -> SqlResult<Vec<Groups>> {
    let mut found = Vec::new();
    let (mut at, mut before) = (from, 0);
    while at <= length
        && let Some(groups) = matcher.find(at)?
    {
        let Some((start, end)) = groups.first().copied().flatten() else { break };
        if !split || (start < length && end > before) {
            found.push(groups);
        }
        before = end;
        if !global {
            break;
        }
        at = if start == end { end + 1 } else { end };
    }
    Ok(found)
}

/// The last pattern of a call, compiled.
struct Cache<'a> {
    cx: &'a EvalContext<'a>,
    collation: stegodon_types::Oid,
    /// The function, where it refuses the option `g`.
    not_global: Option<&'static str>,
    last: Option<(Vec<u8>, Vec<u8>, Flags, Are)>,
}

impl<'a> Cache<'a> {
    fn new(cx: &'a EvalContext<'a>, collation: stegodon_types::Oid, not_global: Option<&'static str>) -> Self {
        Cache { cx, collation, not_global, last: None }
    }

    fn get(&mut self, pattern: &[u8], words: &[u8]) -> SqlResult<(&Flags, &Are)> {
        let same = self.last.as_ref().is_some_and(|(p, f, ..)| p == pattern && f == words);
        if !same {
            let flags = flags(self.cx, self.collation, words)?;
            if let Some(name) = self.not_global.filter(|_| flags.global) {
                let error = invalid(format!("{name}() does not support the \"global\" option"));
                return Err(if name == "regexp_match" {
                    error.hint("Use the regexp_matches function instead.")
                } else {
                    error
                });
            }
            let are = compile(pattern, &flags)?;
            self.last = Some((pattern.to_vec(), words.to_vec(), flags, are));
        }
        match &self.last {
            Some((_, _, flags, are)) => Ok((flags, are)),
            None => Err(SqlError::internal("a pattern is gone")),
        }
    }
}

/// Text argument `n` of a row.
fn text<'a>(call: &Call<'a>, n: usize, row: usize) -> Option<&'a [u8]> {
    let column = call.args.get(n)?;
    match column.value(stegodon_types::Layout::Bytes, row) {
        Some(ValueRef::Bytes(v)) => Some(v),
        _ => None,
    }
}

/// Number argument `n`, with what it is where it is not given.
fn number(call: &Call<'_>, n: usize, row: usize, default: i32) -> i32 {
    match call.args.get(n).and_then(|c| c.value(stegodon_types::Layout::Int32, row)) {
        Some(ValueRef::Int32(v)) => v,
        _ => default,
    }
}

/// What a row asks: the text, its pattern's matcher made by `f`.
fn with<T>(
    call: &Call<'_>,
    cache: &mut Cache<'_>,
    row: usize,
    flags_at: usize,
    f: impl FnOnce(&Flags, &Are, &[char]) -> SqlResult<T>,
) -> SqlResult<T> {
    let missing = || SqlError::internal("an argument is not of its layout");
    let (subject, pattern) = (text(call, 0, row).ok_or_else(missing)?, text(call, 1, row).ok_or_else(missing)?);
    let words = text(call, flags_at, row).unwrap_or_default();
    let (flags, are) = cache.get(pattern, words)?;
    f(flags, are, &chars(subject)?)
}

/// A byte string or NULL for each row without NULLs.
fn each(
    call: &Call<'_>,
    not_global: Option<&'static str>,
    mut f: impl FnMut(&mut Cache<'_>, usize) -> SqlResult<Option<Vec<u8>>>,
) -> SqlResult<Column> {
    let mut cache = Cache::new(call.cx, call.info.input_collation, not_global);
    rows_write(call, |row, out| {
        let value = f(&mut cache, row)?;
        if let Some(value) = &value {
            out.extend_from_slice(value);
        }
        Ok(value.is_some())
    })
}

/// The groups of a match as `text[]`: the whole where there are none.
fn group_array(cx: &EvalContext<'_>, text: &[char], groups: &Groups) -> SqlResult<Vec<u8>> {
    let groups = if groups.len() > 1 { groups.get(1..).unwrap_or_default() } else { groups };
    let texts: Vec<Option<Vec<u8>>> = groups.iter().map(|g| g.map(|span| bytes(text, span))).collect();
    let element = cx.types.type_desc(oids::TEXT)?;
    build_vector(&element, texts.iter().map(|t| t.as_deref().map(ValueRef::Bytes)))
}

fn regexp_match(call: &Call<'_>) -> SqlResult<Column> {
    each(call, Some("regexp_match"), |cache, row| {
        with(call, cache, row, 2, |_, are, text| {
            let found = Matcher::new(are, call.cx, text)?.find(0)?;
            found.map(|groups| group_array(call.cx, text, &groups)).transpose()
        })
    })
}

fn split_spans(text: &[char], matches: &[Groups]) -> Vec<Span> {
    let mut spans = Vec::with_capacity(matches.len() + 1);
    let mut at = 0;
    for (start, end) in matches.iter().filter_map(|m| m.first().copied().flatten()) {
        spans.push((at, start));
        at = end;
    }
    spans.push((at, text.len()));
    spans
}

fn split_to_array(call: &Call<'_>) -> SqlResult<Column> {
    each(call, Some("regexp_split_to_array"), |cache, row| {
        with(call, cache, row, 2, |_, are, text| {
            let matches = all(&mut Matcher::new(are, call.cx, text)?, text.len(), 0, true, true)?;
            let parts: Vec<Vec<u8>> = split_spans(text, &matches).into_iter().map(|s| bytes(text, s)).collect();
            let element = call.cx.types.type_desc(oids::TEXT)?;
            build_vector(&element, parts.iter().map(|p| Some(ValueRef::Bytes(p)))).map(Some)
        })
    })
}

/// The rows of `regexp_matches` (arrays) or `regexp_split_to_table` (texts).
pub(crate) fn rows_of(
    cx: &EvalContext<'_>,
    collation: stegodon_types::Oid,
    (subject, pattern, words): (&[u8], &[u8], &[u8]),
    split: bool,
) -> SqlResult<arrow_array::ArrayRef> {
    let mut cache = Cache::new(cx, collation, split.then_some("regexp_split_to_table"));
    let (flags, are) = cache.get(pattern, words)?;
    let text = chars(subject)?;
    let mut out = ByteBuilder::new(stegodon_types::Layout::Bytes, 0, 0);
    let matches = all(&mut Matcher::new(are, cx, &text)?, text.len(), 0, flags.global || split, split)?;
    if split {
        for span in split_spans(&text, &matches) {
            out.push(Some(&bytes(&text, span)));
        }
    } else {
        for groups in &matches {
            out.push(Some(&group_array(cx, &text, groups)?));
        }
    }
    out.finish()
}

/// Appends a replacement: `\1` … `\9`, `\&`, `\\`.
fn put_replacement(text: &[char], groups: &Groups, replacement: &[u8], out: &mut Vec<u8>) {
    let mut rest = replacement;
    while let [b, tail @ ..] = rest {
        rest = tail;
        if *b != b'\\' {
            out.push(*b);
            continue;
        }
        let group = match tail.first() {
            Some(d @ b'1'..=b'9') => usize::from(d - b'0'),
            Some(b'&') => 0,
            Some(b'\\') => {
                out.push(b'\\');
                rest = tail.get(1..).unwrap_or_default();
                continue;
            }
            _ => {
                out.push(b'\\');
                continue;
            }
        };
        rest = tail.get(1..).unwrap_or_default();
        if let Some(span) = groups.get(group).copied().flatten() {
            put(text, span, out);
        }
    }
}

/// Replaces match `n`, all where it is 0.
fn replace(matcher: &mut Matcher<'_>, text: &[char], replacement: &[u8], from: usize, n: usize) -> SqlResult<Vec<u8>> {
    let mut out = Vec::new();
    let (mut at, mut copied, mut count) = (from, 0, 0);
    while at <= text.len()
        && let Some(groups) = matcher.find(at)?
    {
        let Some((start, end)) = groups.first().copied().flatten() else { break };
        at = if start == end { end + 1 } else { end };
        count += 1;
        if n > 0 && count != n {
            continue;
        }
        put(text, (copied, start), &mut out);
        put_replacement(text, &groups, replacement, &mut out);
        copied = end;
        if n > 0 {
            break;
        }
    }
    put(text, (copied, text.len()), &mut out);
    Ok(out)
}

fn bad_parameter(name: &str, value: i32) -> SqlError {
    invalid(format!("invalid value for parameter \"{name}\": {value}"))
}

/// A place counted from 1.
fn start(value: i32) -> SqlResult<usize> {
    if value <= 0 { Err(bad_parameter("start", value)) } else { Ok(value as usize - 1) }
}

/// `regexp_replace(text, pattern, replacement [, flags])`.
fn regexp_replace(call: &Call<'_>) -> SqlResult<Column> {
    each(call, None, |cache, row| {
        let replacement = text(call, 2, row).unwrap_or_default();
        if let Some(first) = text(call, 3, row).and_then(|f| f.first()).filter(|b| b.is_ascii_digit()) {
            return Err(invalid(format!("invalid regular expression option: \"{}\"", char::from(*first))).hint(
                "If you meant to use regexp_replace() with a start parameter, cast the fourth argument to integer explicitly.",
            ));
        }
        with(call, cache, row, 3, |flags, are, text| {
            let n = usize::from(!flags.global);
            replace(&mut Matcher::new(are, call.cx, text)?, text, replacement, 0, n).map(Some)
        })
    })
}

/// `regexp_replace(text, pattern, replacement, start [, n [, flags]])`.
fn regexp_replace_from(call: &Call<'_>) -> SqlResult<Column> {
    each(call, None, |cache, row| {
        let replacement = text(call, 2, row).unwrap_or_default();
        let from = start(number(call, 3, row, 1))?;
        let given = call.args.len() > 4;
        let n = number(call, 4, row, 1);
        if n < 0 {
            return Err(bad_parameter("n", n));
        }
        with(call, cache, row, 5, |flags, are, text| {
            let n = if !given && flags.global { 0 } else { n as usize };
            replace(&mut Matcher::new(are, call.cx, text)?, text, replacement, from, n).map(Some)
        })
    })
}

/// `substring(text from pattern)`: the first group, the whole where there is none.
fn substring(call: &Call<'_>) -> SqlResult<Column> {
    each(call, None, |cache, row| {
        with(call, cache, row, usize::MAX, |_, are, text| {
            let found = Matcher::new(are, call.cx, text)?.find(0)?;
            let span = found.and_then(|groups| groups.get(usize::from(are.groups > 0)).copied().flatten());
            Ok(span.map(|span| bytes(text, span)))
        })
    })
}

fn regexp_count(call: &Call<'_>) -> SqlResult<Column> {
    let mut cache = Cache::new(call.cx, call.info.input_collation, Some("regexp_count"));
    map_rows(call, |row| {
        let from = start(number(call, 2, row, 1))?;
        with(call, &mut cache, row, 3, |_, are, text| {
            Ok(all(&mut Matcher::new(are, call.cx, text)?, text.len(), from, true, false)?.len() as i32)
        })
    })
}

/// The span of match `n` from a place on, or of one of its groups.
fn nth(call: &Call<'_>, are: &Are, text: &[char], (from, n, group): (usize, i32, i32)) -> SqlResult<Option<Span>> {
    let n = n as usize;
    // A pattern without groups is its own first one.
    let group = match (group as usize, are.groups) {
        (0 | 1, 0) => 0,
        (group, groups) if group <= groups => group,
        _ => return Ok(None),
    };
    let matches = all(&mut Matcher::new(are, call.cx, text)?, text.len(), from, true, false)?;
    Ok(matches.get(n - 1).and_then(|groups| groups.get(group).copied().flatten()))
}

fn regexp_instr(call: &Call<'_>) -> SqlResult<Column> {
    let mut cache = Cache::new(call.cx, call.info.input_collation, Some("regexp_instr"));
    map_rows(call, |row| {
        let from = start(number(call, 2, row, 1))?;
        let (n, end, group) = (number(call, 3, row, 1), number(call, 4, row, 0), number(call, 6, row, 0));
        if n <= 0 {
            return Err(bad_parameter("n", n));
        }
        if end != 0 && end != 1 {
            return Err(bad_parameter("endoption", end));
        }
        if group < 0 {
            return Err(bad_parameter("subexpr", group));
        }
        with(call, &mut cache, row, 5, |_, are, text| {
            let span = nth(call, are, text, (from, n, group))?;
            Ok(span.map_or(0, |(start, stop)| if end == 1 { stop } else { start } as i32 + 1))
        })
    })
}

fn regexp_substr(call: &Call<'_>) -> SqlResult<Column> {
    each(call, Some("regexp_substr"), |cache, row| {
        let from = start(number(call, 2, row, 1))?;
        let (n, group) = (number(call, 3, row, 1), number(call, 5, row, 0));
        if n <= 0 {
            return Err(bad_parameter("n", n));
        }
        if group < 0 {
            return Err(bad_parameter("subexpr", group));
        }
        with(call, cache, row, 4, |_, are, text| {
            Ok(nth(call, are, text, (from, n, group))?.map(|span| bytes(text, span)))
        })
    })
}

fn regexp_like(call: &Call<'_>) -> SqlResult<Column> {
    let mut cache = Cache::new(call.cx, call.info.input_collation, Some("regexp_like"));
    map_rows(call, |row| {
        with(call, &mut cache, row, 2, |_, are, text| Ok(Matcher::new(are, call.cx, text)?.find(0)?.is_some()))
    })
}

/// A pattern that `regex` cannot translate.
pub(super) fn pattern(call: &Call<'_>, pattern: &[u8], ignore_case: bool) -> SqlResult<Are> {
    let words: &[u8] = if ignore_case { b"i" } else { b"" };
    compile(pattern, &flags(call.cx, call.info.input_collation, words)?)
}

/// Whether it matches.
pub(super) fn is_match(call: &Call<'_>, are: &Are, subject: &[u8]) -> SqlResult<bool> {
    Ok(Matcher::new(are, call.cx, &chars(subject)?)?.find(0)?.is_some())
}

/// `similar_to_escape`: a pattern of SIMILAR TO as a regular expression.
fn similar(pattern: &[u8], escape: Option<&[u8]>, out: &mut Vec<u8>) -> SqlResult<()> {
    let pattern = chars(pattern)?;
    let escape = match escape {
        None => Some('\\'),
        Some(escape) => match chars(escape)?.as_slice() {
            [] => None,
            [one] => Some(*one),
            _ => {
                return Err(SqlError::new(SqlState::InvalidEscapeSequence, "invalid escape string")
                    .hint("Escape string must be empty or one character."));
            }
        },
    };
    let mut text = String::from("^(?:");
    let mut escaped = false;
    for c in pattern.iter().copied() {
        if escaped {
            if c == '"' {
                return Err(SqlError::unsupported("separators in a SIMILAR TO pattern"));
            }
            text.push('\\');
            text.push(c);
            escaped = false;
            continue;
        }
        if Some(c) == escape {
            escaped = true;
            continue;
        }
        match c {
            '[' => return Err(SqlError::unsupported("a bracket expression in a SIMILAR TO pattern")),
            '%' => text.push_str(".*"),
            '_' => text.push('.'),
            '(' => text.push_str("(?:"),
            '\\' | '.' | '^' | '$' => {
                text.push('\\');
                text.push(c);
            }
            c => text.push(c),
        }
    }
    text.push_str(")$");
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

/// Functions.
pub(crate) static KERNELS: &[Entry] = &[
    (3396, regexp_match),
    (3397, regexp_match),
    (2767, split_to_array),
    (2768, split_to_array),
    (2284, regexp_replace),
    (2285, regexp_replace),
    (6251, regexp_replace_from),
    (6252, regexp_replace_from),
    (6253, regexp_replace_from),
    (2073, substring),
    (6254, regexp_count),
    (6255, regexp_count),
    (6256, regexp_count),
    (6257, regexp_instr),
    (6258, regexp_instr),
    (6259, regexp_instr),
    (6260, regexp_instr),
    (6261, regexp_instr),
    (6262, regexp_instr),
    (6264, regexp_like),
    (6265, regexp_substr),
    (6266, regexp_substr),
    (6267, regexp_substr),
    (6268, regexp_substr),
    (6269, regexp_substr),
    (1987, |c| write1(c, |p: &[u8], out| similar(p, None, out))),
    (1986, |c| write2(c, |p: &[u8], e: &[u8], out| similar(p, Some(e), out))),
    // Unlike the others it sees NULLs: no pattern is NULL, no escape is the default.
    (1623, |c| {
        opt_write2(c, |p: Option<&[u8]>, e: Option<&[u8]>, out| match p {
            None => Ok(false),
            Some(p) => similar(p, e, out).map(|()| true),
        })
    }),
];
