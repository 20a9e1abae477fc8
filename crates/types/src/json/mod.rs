//! `json`, which is its text, and `jsonb`.
//!
//! ```text
//!  jsonb: one container, whose numbers and containers lie at multiples of four bytes
//!
//!   +--------+--------+--------+---- - - ----+--------------------- - -
//!   | header | JEntry | JEntry |             | the children's bytes
//!   +--------+--------+--------+---- - - ----+--------------------- - -
//!   0        4        8                       4 + 4 * entries
//!
//!  header   bit 30 array, bit 29 object, bit 28 a scalar alone (in an array of one); bits 0..28 elements or pairs
//!  entries  of an array: one for each element; of an object: all keys, then all values
//!  JEntry   bit 31 says that bits 0..28 are the child's end, not its length (each 32nd entry);
//!           bits 28..31: 0 string, 1 number, 2 false, 3 true, 4 null, 5 container
//!  number   a numeric with its length word
//! ```
//!
//! Keys are unique, and ordered by length before bytes. The length of a number or container counts the zeros before it.
//!
//! [`parse`] reads JSON text into a tree of [`Node`]s with their places in the text; [`jsonb::encode`] makes the stored
//! form; [`Container`] reads it in place; [`print`] writes it.

pub mod jsonb;
mod order;
pub mod parse;
pub mod print;
pub mod read;

pub use jsonb::JSONB;
pub use order::compare;
pub use parse::{Kind, Node};
pub use read::{Container, Item};

use crate::ops::get;
use crate::{Datum, SqlError, SqlResult, SqlState, TypeContext, TypeDesc, TypeOps, ValueRef};

/// `json`. It has no order and no equality.
pub static JSON: TypeOps = TypeOps {
    text_out: out,
    text_in: json_in,
    binary_out: out,
    binary_in: json_in,
    compare: None,
    equal: None,
    key: None,
    hash: None,
    own_key: false,
};

/// How deep values may nest: well below what PostgreSQL's stack allows.
pub(crate) const MAX_DEPTH: usize = 2000;

/// `54001`
pub(crate) fn too_deep() -> SqlError {
    SqlError::new(SqlState::StatementTooComplex, "stack depth limit exceeded")
}

fn out(_: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    out.extend_from_slice(get::bytes(ty, v)?);
    Ok(())
}

fn json_in(cx: &TypeContext<'_>, _: &TypeDesc, text: &[u8], _: i32) -> SqlResult<Datum> {
    crate::scalar::text::validate(cx.settings.encoding, text)?;
    parse::parse(text, cx.settings.encoding, false)?;
    Ok(Datum::bytes(text))
}
