//! Cutting a text into the fields of a date, time or interval.

use super::DecodeError;
use super::tokens::date_word;
use crate::scalar::is_space;

/// What a field looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Digits, perhaps with a point.
    Number,
    /// Digits or words with delimiters: a date, or a zone's name.
    Date,
    /// Digits and colons.
    Time,
    /// A word.
    Word,
    /// A sign and a word.
    SignedWord,
    /// A sign and digits: a zone's offset, or a signed number.
    Zone,
}

/// One field, words in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub shape: Shape,
    pub text: String,
}

/// The most fields a text may have.
const MAX_FIELDS: usize = 25;
/// PostgreSQL's buffers, each field's end included: beyond them a text is not of the form.
pub(super) const DATE_BUFFER: usize = 129;
pub(super) const TIMESTAMP_BUFFER: usize = 153;
pub(super) const INTERVAL_BUFFER: usize = 256;

struct Cursor<'a> {
    rest: &'a [u8],
    field: String,
    room: usize,
}

impl Cursor<'_> {
    fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    fn skip(&mut self) {
        self.rest = self.rest.get(1..).unwrap_or_default();
    }

    /// Moves one byte into the field.
    fn take(&mut self) -> Result<(), DecodeError> {
        let Some(b) = self.peek() else { return Ok(()) };
        self.room = self.room.checked_sub(1).filter(|left| *left > 0).ok_or(DecodeError::BadFormat)?;
        self.field.push(char::from(b.to_ascii_lowercase()));
        self.skip();
        Ok(())
    }

    fn take_while(&mut self, keep: impl Fn(u8) -> bool) -> Result<(), DecodeError> {
        while self.peek().is_some_and(&keep) {
            self.take()?;
        }
        Ok(())
    }

    fn at(&self, test: impl Fn(u8) -> bool) -> bool {
        self.peek().is_some_and(test)
    }
}

const fn digit(b: u8) -> bool {
    b.is_ascii_digit()
}

/// A field that starts with a digit.
fn number_date_or_time(cursor: &mut Cursor<'_>) -> Result<Shape, DecodeError> {
    cursor.take_while(digit)?;
    let Some(delimiter) = cursor.peek() else { return Ok(Shape::Number) };
    match delimiter {
        b':' => {
            cursor.take_while(|b| digit(b) || matches!(b, b':' | b'.'))?;
            Ok(Shape::Time)
        }
        b'-' | b'/' | b'.' => {
            cursor.take()?;
            if !cursor.at(digit) {
                cursor.take_while(|b| b.is_ascii_alphanumeric() || b == delimiter)?;
                return Ok(Shape::Date);
            }
            cursor.take_while(digit)?;
            if cursor.peek() == Some(delimiter) {
                cursor.take_while(|b| digit(b) || b == delimiter)?;
                return Ok(Shape::Date);
            }
            Ok(if delimiter == b'.' { Shape::Number } else { Shape::Date })
        }
        _ => Ok(Shape::Number),
    }
}

/// A field that starts with a letter: a word, or a date or zone with punctuation inside.
fn word(cursor: &mut Cursor<'_>) -> Result<Shape, DecodeError> {
    cursor.take_while(|b| b.is_ascii_alphabetic())?;
    let compound = match cursor.peek() {
        Some(b'-' | b'/' | b'.') => true,
        Some(b) if b == b'+' || digit(b) => date_word(&cursor.field).is_none(),
        _ => false,
    };
    if !compound {
        return Ok(Shape::Word);
    }
    cursor.take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'/' | b'_' | b'.' | b':'))?;
    Ok(Shape::Date)
}

/// A field that starts with a sign.
fn signed(cursor: &mut Cursor<'_>) -> Result<Shape, DecodeError> {
    cursor.take()?;
    while cursor.at(is_space) {
        cursor.skip();
    }
    if cursor.at(digit) {
        cursor.take_while(|b| digit(b) || matches!(b, b':' | b'.' | b'-'))?;
        Ok(Shape::Zone)
    } else if cursor.at(|b| b.is_ascii_alphabetic()) {
        cursor.take_while(|b| b.is_ascii_alphabetic())?;
        Ok(Shape::SignedWord)
    } else {
        Err(DecodeError::BadFormat)
    }
}

/// The fields of a text.
pub(super) fn fields(text: &[u8], buffer: usize) -> Result<Vec<Field>, DecodeError> {
    let mut cursor = Cursor { rest: text, field: String::new(), room: buffer };
    let mut fields = Vec::new();
    while let Some(b) = cursor.peek() {
        if is_space(b) {
            cursor.skip();
            continue;
        }
        if fields.len() >= MAX_FIELDS {
            return Err(DecodeError::BadFormat);
        }
        let shape = match b {
            b'0'..=b'9' => number_date_or_time(&mut cursor)?,
            b'.' => {
                cursor.take()?;
                cursor.take_while(digit)?;
                Shape::Number
            }
            b'+' | b'-' => signed(&mut cursor)?,
            _ if b.is_ascii_alphabetic() => word(&mut cursor)?,
            _ if b.is_ascii_punctuation() => {
                cursor.skip();
                continue;
            }
            _ => return Err(DecodeError::BadFormat),
        };
        fields.push(Field { shape, text: std::mem::take(&mut cursor.field) });
        // The field's end takes room, too.
        cursor.room = cursor.room.saturating_sub(1);
    }
    Ok(fields)
}
