//! Reading JSON text, with PostgreSQL's errors.

use super::{MAX_DEPTH, too_deep};
use crate::settings::Encoding;
use crate::{SqlError, SqlResult, SqlState};

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Node<'a> {
    /// The value's text as written.
    pub text: &'a [u8],
    /// The value.
    pub kind: Kind<'a>,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number; its digits are the node's text.
    Number,
    /// A string; empty where escapes were not asked for.
    String(Vec<u8>),
    /// An array.
    Array(Vec<Node<'a>>),
    /// An object: its keys and values in the order written, duplicates included.
    Object(Vec<(Vec<u8>, Node<'a>)>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Open(u8),
    Close(u8),
    Comma,
    Colon,
    String,
    Number,
    True,
    False,
    Null,
    End,
}

/// Bytes that a word or a number's tail is made of.
const fn alphanumeric(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80
}

struct Parser<'a> {
    text: &'a [u8],
    encoding: Encoding,
    escapes: bool,
    /// Where the token starts and ends.
    start: usize,
    end: usize,
    token: Token,
    /// The token's string, escapes resolved.
    string: Vec<u8>,
}

fn error(detail: String) -> SqlError {
    SqlError::new(SqlState::InvalidTextRepresentation, "invalid input syntax for type json").detail(detail)
}

fn unsupported_escape(detail: &str) -> SqlError {
    SqlError::new(SqlState::UntranslatableCharacter, "unsupported Unicode escape sequence").detail(detail)
}

impl<'a> Parser<'a> {
    fn byte(&self, at: usize) -> Option<u8> {
        self.text.get(at).copied()
    }

    fn slice(&self, from: usize, to: usize) -> &'a [u8] {
        self.text.get(from..to.min(self.text.len())).unwrap_or_default()
    }

    fn shown(&self, from: usize, to: usize) -> String {
        String::from_utf8_lossy(self.slice(from, to)).into_owned()
    }

    fn invalid_token(&self, to: usize) -> SqlError {
        error(format!("Token \"{}\" is invalid.", self.shown(self.start, to)))
    }

    /// The end of the character at a place.
    fn character_end(&self, at: usize) -> usize {
        let continues = |b: Option<u8>| b.is_some_and(|b| b & 0xc0 == 0x80);
        let mut end = at + 1;
        while self.encoding == Encoding::Utf8 && continues(self.byte(end)) {
            end += 1;
        }
        end
    }

    /// Moves to the next token.
    fn advance(&mut self) -> SqlResult<()> {
        let mut at = self.end;
        while matches!(self.byte(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            at += 1;
        }
        self.start = at;
        let Some(b) = self.byte(at) else {
            self.end = at;
            self.token = Token::End;
            return Ok(());
        };
        self.end = at + 1;
        self.token = match b {
            b'{' | b'[' => Token::Open(b),
            b'}' | b']' => Token::Close(b),
            b',' => Token::Comma,
            b':' => Token::Colon,
            b'"' => {
                self.lex_string()?;
                Token::String
            }
            b'-' => self.lex_number(at + 1)?,
            b'0'..=b'9' => self.lex_number(at)?,
            _ => {
                let length = self.text.iter().skip(at).take_while(|b| alphanumeric(**b)).count();
                self.end = at + length.max(1);
                match self.slice(at, at + length) {
                    b"true" => Token::True,
                    b"false" => Token::False,
                    b"null" => Token::Null,
                    _ => return Err(self.invalid_token(self.end)),
                }
            }
        };
        Ok(())
    }

    fn digits(&self, at: usize) -> usize {
        self.text.iter().skip(at).take_while(|b| b.is_ascii_digit()).count()
    }

    fn lex_number(&mut self, from: usize) -> SqlResult<Token> {
        let mut at = from;
        let mut valid = true;
        match self.byte(at) {
            Some(b'0') => at += 1,
            Some(b'1'..=b'9') => at += self.digits(at),
            _ => valid = false,
        }
        if self.byte(at) == Some(b'.') {
            let digits = self.digits(at + 1);
            valid &= digits > 0;
            at += 1 + digits;
        }
        if matches!(self.byte(at), Some(b'e' | b'E')) {
            at += 1;
            if matches!(self.byte(at), Some(b'+' | b'-')) {
                at += 1;
            }
            let digits = self.digits(at);
            valid &= digits > 0;
            at += digits;
        }
        let tail = self.text.iter().skip(at).take_while(|b| alphanumeric(**b)).count();
        self.end = at + tail;
        if valid && tail == 0 { Ok(Token::Number) } else { Err(self.invalid_token(self.end)) }
    }

    fn lex_string(&mut self) -> SqlResult<()> {
        self.string.clear();
        let low_expected = || error("Unicode low surrogate must follow a high surrogate.".to_owned());
        let mut high: Option<u32> = None;
        let mut at = self.start + 1;
        loop {
            match self.byte(at) {
                None => return Err(self.invalid_token(at)),
                Some(b'"') => break,
                Some(b'\\') => {
                    let Some(b) = self.byte(at + 1) else { return Err(self.invalid_token(at + 1)) };
                    if b == b'u' {
                        let code = self.hexadecimal(at + 2)?;
                        at += 6;
                        if self.escapes {
                            self.unicode_escape(code, &mut high)?;
                        }
                        continue;
                    }
                    if self.escapes && high.is_some() {
                        return Err(low_expected());
                    }
                    self.string.push(match b {
                        b'"' | b'\\' | b'/' => b,
                        b'b' => 8,
                        b'f' => 12,
                        b'n' => b'\n',
                        b'r' => b'\r',
                        b't' => b'\t',
                        _ => {
                            let sequence = self.shown(at + 1, self.character_end(at + 1));
                            return Err(error(format!("Escape sequence \"\\{sequence}\" is invalid.")));
                        }
                    });
                    at += 2;
                }
                Some(b) => {
                    if high.is_some() {
                        return Err(low_expected());
                    }
                    if b < 0x20 {
                        return Err(error(format!("Character with value 0x{b:02x} must be escaped.")));
                    }
                    self.string.push(b);
                    at += 1;
                }
            }
        }
        if high.is_some() {
            return Err(low_expected());
        }
        self.end = at + 1;
        Ok(())
    }

    fn hexadecimal(&self, at: usize) -> SqlResult<u32> {
        let mut code = 0;
        for n in 0..4 {
            let Some(b) = self.byte(at + n) else { return Err(self.invalid_token(at + n)) };
            let Some(digit) = char::from(b).to_digit(16) else {
                return Err(error("\"\\u\" must be followed by four hexadecimal digits.".to_owned()));
            };
            code = code << 4 | digit;
        }
        Ok(code)
    }

    /// Appends the character of an escape, or remembers the first half of one.
    fn unicode_escape(&mut self, code: u32, high: &mut Option<u32>) -> SqlResult<()> {
        let code = match (code, high.take()) {
            (0xd800..=0xdbff, Some(_)) => {
                return Err(error("Unicode high surrogate must not follow a high surrogate.".to_owned()));
            }
            (0xd800..=0xdbff, None) => {
                *high = Some(code);
                return Ok(());
            }
            (0xdc00..=0xdfff, Some(first)) => 0x1_0000 + ((first & 0x3ff) << 10) + (code & 0x3ff),
            (0xdc00..=0xdfff, None) | (_, Some(_)) => {
                return Err(error("Unicode low surrogate must follow a high surrogate.".to_owned()));
            }
            (0, None) => return Err(unsupported_escape("\\u0000 cannot be converted to text.")),
            (code, None) => code,
        };
        if code > 0x7f && self.encoding == Encoding::SqlAscii {
            return Err(unsupported_escape(
                "Unicode escape value could not be translated to the server's encoding SQL_ASCII.",
            ));
        }
        let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        self.string.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    /// Another token was expected.
    fn expected(&self, what: &str) -> SqlError {
        if self.token == Token::End {
            return error("The input string ended unexpectedly.".to_owned());
        }
        error(format!("Expected {what}, but found \"{}\".", self.shown(self.start, self.end)))
    }

    fn value(&mut self, depth: usize) -> SqlResult<Node<'a>> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        let (start, mut end) = (self.start, self.end);
        let kind = match self.token {
            Token::Open(b'{') => {
                let pairs = self.object(depth)?;
                end = self.end;
                Kind::Object(pairs)
            }
            Token::Open(_) => {
                let elements = self.array(depth)?;
                end = self.end;
                Kind::Array(elements)
            }
            Token::String => Kind::String(std::mem::take(&mut self.string)),
            Token::Number => Kind::Number,
            Token::True => Kind::Bool(true),
            Token::False => Kind::Bool(false),
            Token::Null => Kind::Null,
            _ => return Err(self.expected("JSON value")),
        };
        self.advance()?;
        Ok(Node { text: self.slice(start, end), kind })
    }

    /// Up to the closing brace, which is the token then.
    fn object(&mut self, depth: usize) -> SqlResult<Vec<(Vec<u8>, Node<'a>)>> {
        let mut pairs = Vec::new();
        self.advance()?;
        match self.token {
            Token::Close(b'}') => return Ok(pairs),
            Token::String => {}
            _ => return Err(self.expected("string or \"}\"")),
        }
        loop {
            if self.token != Token::String {
                return Err(self.expected("string"));
            }
            let key = std::mem::take(&mut self.string);
            self.advance()?;
            if self.token != Token::Colon {
                return Err(self.expected("\":\""));
            }
            self.advance()?;
            pairs.push((key, self.value(depth + 1)?));
            match self.token {
                Token::Comma => self.advance()?,
                Token::Close(b'}') => return Ok(pairs),
                _ => return Err(self.expected("\",\" or \"}\"")),
            }
        }
    }

    /// Up to the closing bracket, which is the token then.
    fn array(&mut self, depth: usize) -> SqlResult<Vec<Node<'a>>> {
        let mut elements = Vec::new();
        self.advance()?;
        if self.token == Token::Close(b']') {
            return Ok(elements);
        }
        loop {
            elements.push(self.value(depth + 1)?);
            match self.token {
                Token::Comma => self.advance()?,
                Token::Close(b']') => return Ok(elements),
                _ => return Err(self.expected("\",\" or \"]\"")),
            }
        }
    }
}

/// Reads a value. Where `escapes` is false strings are not decoded and their escapes are only checked for their form, as
/// the input function of `json` does.
pub fn parse(text: &[u8], encoding: Encoding, escapes: bool) -> SqlResult<Node<'_>> {
    let mut parser = Parser { text, encoding, escapes, start: 0, end: 0, token: Token::End, string: Vec::new() };
    parser.advance()?;
    let value = parser.value(0)?;
    if parser.token == Token::End { Ok(value) } else { Err(parser.expected("end of input")) }
}
