//! `{1,NULL,"a b"}`, `{{1,2},{3,4}}`, `[2:3]={a,b}`.

use stegodon_format::version::Version;

use super::{ArrayView, Dimension, MAX_DIMENSIONS, MAX_ELEMENTS, build, declared_element, printed_element, to_datum};
use crate::ops::get;
use crate::packed::{Part, write_quoted};
use crate::scalar::is_space;
use crate::{Datum, SqlError, SqlResult, SqlState, TypeContext, TypeDesc, ValueRef};

pub(super) fn text_out(cx: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    let view = ArrayView::parse(get::bytes(ty, v)?)?;
    if view.is_empty() {
        out.extend_from_slice(b"{}");
        return Ok(());
    }
    let element = printed_element(cx, &view)?;
    let ops = crate::ops(&element)?;
    let part = Part::of(&element)?;
    let dimensions = view.dimensions();
    if dimensions.iter().any(|d| d.lower != 1) {
        for d in dimensions {
            out.extend_from_slice(format!("[{}:{}]", d.lower, d.upper()).as_bytes());
        }
        out.push(b'=');
    }
    let special = [b'{', b'}', element.delimiter];
    let mut text = Vec::new();
    // How many elements each dimension's sub-array has, innermost last.
    let mut spans: Vec<usize> = Vec::with_capacity(dimensions.len());
    let mut span = 1;
    for d in dimensions.iter().rev() {
        span *= d.length as usize;
        spans.push(span);
    }
    for (at, value) in view.elements(part).enumerate() {
        if at > 0 {
            out.push(element.delimiter);
        }
        out.extend(spans.iter().filter(|span| at % **span == 0).map(|_| b'{'));
        match value? {
            None => out.extend_from_slice(b"NULL"),
            Some(value) => {
                text.clear();
                (ops.text_out)(cx, &element, value, &mut text)?;
                if text.eq_ignore_ascii_case(b"null") {
                    out.push(b'"');
                    out.extend_from_slice(&text);
                    out.push(b'"');
                } else {
                    write_quoted(&text, &special, Some(b'\\'), out);
                }
            }
        }
        out.extend(spans.iter().filter(|span| (at + 1) % **span == 0).map(|_| b'}'));
    }
    Ok(())
}

/// What reading an array's text needs to know.
struct Reader<'a> {
    text: &'a [u8],
    rest: &'a [u8],
    delimiter: u8,
    /// The text of the element read last, without quotes and escapes.
    element: Vec<u8>,
}

enum Token {
    Open,
    Close,
    Delimiter,
    Element,
    Null,
}

impl Reader<'_> {
    fn malformed(&self, detail: impl Into<String>) -> SqlError {
        SqlError::new(
            SqlState::InvalidTextRepresentation,
            format!("malformed array literal: \"{}\"", String::from_utf8_lossy(self.text)),
        )
        .detail(detail)
    }

    fn unexpected(&self, b: u8) -> SqlError {
        self.malformed(format!("Unexpected \"{}\" character.", char::from(b)))
    }

    fn end(&self) -> SqlError {
        self.malformed("Unexpected end of input.")
    }

    fn first(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    fn advance(&mut self) {
        self.rest = self.rest.get(1..).unwrap_or_default();
    }

    fn skip_space(&mut self) {
        while self.first().is_some_and(is_space) {
            self.advance();
        }
    }

    /// A number of a dimension; `None` where there is none.
    fn bound(&mut self) -> SqlResult<Option<i32>> {
        let sign = usize::from(matches!(self.first(), Some(b'-' | b'+')));
        let digits = self.rest.iter().skip(sign).take_while(|b| b.is_ascii_digit()).count();
        if digits == 0 {
            return Ok(None);
        }
        let (number, rest) = self.rest.split_at_checked(sign + digits).unwrap_or_default();
        self.rest = rest;
        std::str::from_utf8(number)
            .ok()
            .and_then(|n| n.parse().ok())
            .map(Some)
            .ok_or_else(|| SqlError::new(SqlState::ProgramLimitExceeded, "array bound is out of integer range"))
    }

    /// `[2:3][4]`, before the contents.
    fn dimensions(&mut self) -> SqlResult<Vec<Dimension>> {
        let mut dimensions = Vec::new();
        loop {
            self.skip_space();
            if self.first() != Some(b'[') {
                return Ok(dimensions);
            }
            self.advance();
            if dimensions.len() >= MAX_DIMENSIONS {
                return Err(too_deep());
            }
            let first = self
                .bound()?
                .ok_or_else(|| self.malformed("\"[\" must introduce explicitly-specified array dimensions."))?;
            let (lower, upper) = if self.first() == Some(b':') {
                self.advance();
                (first, self.bound()?.ok_or_else(|| self.malformed("Missing array dimension value."))?)
            } else {
                (1, first)
            };
            if self.first() != Some(b']') {
                return Err(self.malformed("Missing \"]\" after array dimensions."));
            }
            self.advance();
            if upper < lower {
                return Err(SqlError::new(
                    SqlState::ArraySubscriptError,
                    "upper bound cannot be less than lower bound",
                ));
            }
            if upper == i32::MAX {
                return Err(SqlError::new(
                    SqlState::ProgramLimitExceeded,
                    format!("array upper bound is too large: {upper}"),
                ));
            }
            let length =
                upper.checked_sub(lower).and_then(|n| n.checked_add(1)).ok_or_else(super::too_many_elements)?;
            dimensions.push(Dimension { length, lower });
        }
    }

    fn token(&mut self) -> SqlResult<Token> {
        self.skip_space();
        let Some(first) = self.first() else { return Err(self.end()) };
        let token = match first {
            b'{' => Token::Open,
            b'}' => Token::Close,
            b'"' => {
                self.advance();
                return self.quoted();
            }
            b if b == self.delimiter => Token::Delimiter,
            _ => return self.unquoted(),
        };
        self.advance();
        Ok(token)
    }

    /// The character behind a backslash, which comes first.
    fn escaped(&mut self) -> SqlResult<u8> {
        self.advance();
        let b = self.first().ok_or_else(|| self.end())?;
        self.advance();
        Ok(b)
    }

    fn quoted(&mut self) -> SqlResult<Token> {
        self.element.clear();
        loop {
            match self.first() {
                None => return Err(self.end()),
                Some(b'\\') => {
                    let b = self.escaped()?;
                    self.element.push(b);
                }
                Some(b'"') => {
                    self.advance();
                    self.skip_space();
                    return match self.first() {
                        None => Err(self.end()),
                        Some(b) if b == self.delimiter || matches!(b, b'{' | b'}') => Ok(Token::Element),
                        Some(_) => Err(self.malformed("Incorrectly quoted array element.")),
                    };
                }
                Some(b) => {
                    self.element.push(b);
                    self.advance();
                }
            }
        }
    }

    fn unquoted(&mut self) -> SqlResult<Token> {
        self.element.clear();
        // Trailing white space is not part of the element, unless escaped.
        let mut end = 0;
        let mut has_escapes = false;
        loop {
            match self.first() {
                None => return Err(self.end()),
                Some(b'{') => return Err(self.unexpected(b'{')),
                Some(b'"') => return Err(self.malformed("Incorrectly quoted array element.")),
                Some(b'\\') => {
                    let b = self.escaped()?;
                    self.element.push(b);
                    end = self.element.len();
                    has_escapes = true;
                }
                Some(b) if b == self.delimiter || b == b'}' => {
                    self.element.truncate(end);
                    let is_null = !has_escapes && self.element.eq_ignore_ascii_case(b"null");
                    return Ok(if is_null { Token::Null } else { Token::Element });
                }
                Some(b) => {
                    self.element.push(b);
                    if !is_space(b) {
                        end = self.element.len();
                    }
                    self.advance();
                }
            }
        }
    }
}

fn too_deep() -> SqlError {
    SqlError::new(
        SqlState::ProgramLimitExceeded,
        format!("number of array dimensions exceeds the maximum allowed ({MAX_DIMENSIONS})"),
    )
}

pub(super) fn text_in(cx: &TypeContext<'_>, ty: &TypeDesc, text: &[u8], typmod: i32) -> SqlResult<Datum> {
    let element = declared_element(cx, ty)?;
    let ops = crate::ops(&element)?;
    let mut reader = Reader { text, rest: text, delimiter: element.delimiter, element: Vec::new() };
    let before_17 = cx.settings.version < Version::V17;
    let mut dimensions = reader.dimensions().map_err(|e| match e.state {
        SqlState::ProgramLimitExceeded if before_17 && !e.message.starts_with("number of array dimensions") => {
            SqlError::unsupported("such bounds of an array, in a directory older than 17")
        }
        SqlState::ProgramLimitExceeded if before_17 => super::too_many_dimensions(MAX_DIMENSIONS + 1),
        _ => e,
    })?;
    let specified = !dimensions.is_empty();
    if specified {
        if reader.first() != Some(b'=') {
            return Err(reader.malformed("Missing \"=\" after array dimensions."));
        }
        reader.advance();
        reader.skip_space();
        if reader.first() != Some(b'{') {
            return Err(reader.malformed("Array contents must start with \"{\"."));
        }
    } else if reader.first() != Some(b'{') {
        return Err(reader.malformed("Array value must start with \"{\" or dimension information."));
    }

    let mismatch = |reader: &Reader<'_>| {
        reader.malformed(if specified {
            "Specified array dimensions do not match array contents."
        } else {
            "Multidimensional arrays must have sub-arrays with matching dimensions."
        })
    };
    // Lengths that are not known yet are -1.
    let mut depth_fixed = specified;
    let mut lengths: Vec<i32> = dimensions.iter().map(|d| d.length).collect();
    let mut counts: Vec<i32> = Vec::new();
    let mut values: Vec<Option<Datum>> = Vec::new();
    let mut expect_delimiter = false;
    loop {
        match reader.token()? {
            Token::Open => {
                if expect_delimiter {
                    return Err(reader.unexpected(b'{'));
                }
                if counts.len() >= MAX_DIMENSIONS {
                    return Err(if before_17 { super::too_many_dimensions(MAX_DIMENSIONS + 1) } else { too_deep() });
                }
                counts.push(0);
                if counts.len() > lengths.len() {
                    if depth_fixed {
                        return Err(mismatch(&reader));
                    }
                    lengths.push(-1);
                }
            }
            Token::Close => {
                let Some(count) = counts.pop() else { return Err(reader.unexpected(b'}')) };
                if count > 0 && !expect_delimiter {
                    return Err(reader.unexpected(b'}'));
                }
                if let Some(outer) = counts.last_mut() {
                    *outer += 1;
                }
                match lengths.get_mut(counts.len()) {
                    Some(length) if *length < 0 => *length = count,
                    Some(length) if *length == count => {}
                    _ => return Err(mismatch(&reader)),
                }
                expect_delimiter = true;
                if counts.is_empty() {
                    break;
                }
            }
            Token::Delimiter => {
                if !expect_delimiter {
                    return Err(reader.unexpected(reader.delimiter));
                }
                expect_delimiter = false;
            }
            token @ (Token::Element | Token::Null) => {
                if expect_delimiter {
                    return Err(reader.malformed("Unexpected array element."));
                }
                if values.len() >= MAX_ELEMENTS {
                    return Err(super::too_many_elements());
                }
                values.push(match token {
                    Token::Null => None,
                    _ => Some((ops.text_in)(cx, &element, &reader.element, typmod)?),
                });
                depth_fixed = true;
                if counts.len() != lengths.len() {
                    return Err(mismatch(&reader));
                }
                if let Some(count) = counts.last_mut() {
                    *count += 1;
                }
                expect_delimiter = true;
            }
        }
    }
    if !reader.rest.iter().all(|b| is_space(*b)) {
        return Err(reader.malformed("Junk after closing right brace."));
    }
    if values.is_empty() && before_17 && lengths.len() > 1 {
        return Err(reader.unexpected(b'}'));
    }
    if values.is_empty() {
        return Ok(to_datum(super::empty(element.oid)));
    }
    if !specified {
        dimensions = lengths.iter().map(|length| Dimension { length: *length, lower: 1 }).collect();
    }
    Ok(to_datum(build(&element, &dimensions, values.iter().map(|v| v.as_ref().map(Datum::as_ref)))?))
}
