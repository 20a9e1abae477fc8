//! Literals: text to a value, by the type's own input function.

use stegodon_format::ids::Oid;
use stegodon_types::{Datum, SqlResult, text_in};

use crate::context::Analyzer;
use crate::oids;

impl Analyzer<'_> {
    /// Reads a literal's text as a type's input function does.
    pub(crate) fn read_literal(&self, ty: Oid, text: &[u8], typmod: i32) -> SqlResult<Datum> {
        if ty == oids::UNKNOWN || ty == oids::CSTRING {
            return Ok(Datum::bytes(text));
        }
        let desc = self.type_desc(ty)?;
        text_in(&self.cx.types, desc, text, typmod)
    }
}
