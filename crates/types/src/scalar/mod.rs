//! The types whose values have no parts: each module holds one family.

pub mod acl;
pub mod bits;
pub mod boolean;
pub mod bytea;
pub mod float;
pub mod ids;
pub mod int;
pub mod money;
pub mod pseudo;
pub mod reg;
pub mod text;
pub mod uuid;

use crate::{SqlError, SqlState};

/// `22P02`: the text is not of the type.
pub(crate) fn invalid_syntax(type_name: &str, text: &[u8]) -> SqlError {
    SqlError::new(
        SqlState::InvalidTextRepresentation,
        format!("invalid input syntax for type {type_name}: \"{}\"", String::from_utf8_lossy(text)),
    )
}

/// `22003`: the text is a number, but too large.
pub(crate) fn value_out_of_range(type_name: &str, text: &[u8]) -> SqlError {
    SqlError::new(
        SqlState::NumericValueOutOfRange,
        format!("value \"{}\" is out of range for type {type_name}", String::from_utf8_lossy(text)),
    )
}

/// `08P01`: a binary value is shorter than its type.
pub(crate) fn message_too_short() -> SqlError {
    SqlError::new(SqlState::ProtocolViolation, "insufficient data left in message")
}

/// C's `isspace` in the C locale.
pub(crate) const fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

/// The text without white space at either end.
pub(crate) fn trim(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|b| !is_space(*b)).unwrap_or(text.len());
    let end = text.iter().rposition(|b| !is_space(*b)).map_or(start, |at| at + 1);
    text.get(start..end).unwrap_or_default()
}

/// The first `N` bytes of a binary value, which must have no more.
pub(crate) fn exactly<const N: usize>(bytes: &[u8]) -> Result<[u8; N], SqlError> {
    match bytes.get(..N).and_then(|head| <[u8; N]>::try_from(head).ok()) {
        Some(head) if bytes.len() == N => Ok(head),
        Some(_) => Err(SqlError::new(SqlState::InvalidBinaryRepresentation, "incorrect binary data format")),
        None => Err(message_too_short()),
    }
}
