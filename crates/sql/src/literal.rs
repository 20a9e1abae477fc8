//! Literals: text to a value, by the type's own input function.

use stegodon_catalog::array::{self, ElementForm};
use stegodon_format::ids::Oid;
use stegodon_types::{Datum, SqlError, SqlResult, SqlState, text_in};

use crate::context::Analyzer;
use crate::oids;

impl Analyzer<'_> {
    /// Reads a literal's text as a type's input function does.
    pub(crate) fn read_literal(&self, ty: Oid, text: &[u8], typmod: i32) -> SqlResult<Datum> {
        if ty == oids::UNKNOWN || ty == oids::CSTRING {
            return Ok(Datum::bytes(text));
        }
        if matches!(ty, oids::INT2VECTOR | oids::OIDVECTOR) {
            return vector(ty, text);
        }
        let desc = self.type_desc(ty)?;
        text_in(&self.cx.types, desc, text, typmod)
    }
}

/// `1 2 3`: the two vector types, which are arrays counted from 0 whose text is their own.
fn vector(ty: Oid, text: &[u8]) -> SqlResult<Datum> {
    let text = String::from_utf8_lossy(text);
    let invalid = |item: &str, name: &str| {
        SqlError::new(SqlState::InvalidTextRepresentation, format!("invalid input syntax for type {name}: \"{item}\""))
    };
    let items = text.split_ascii_whitespace();
    let payload = if ty == oids::INT2VECTOR {
        let read = |s: &str| s.parse::<i16>().map(|v| v.to_le_bytes().to_vec()).map_err(|_| invalid(s, "smallint"));
        array::build(oids::INT2, ElementForm::INT2, 0, &items.map(read).collect::<SqlResult<Vec<_>>>()?)
    } else {
        let read = |s: &str| s.parse::<u32>().map(|v| v.to_le_bytes().to_vec()).map_err(|_| invalid(s, "oid"));
        array::build(oids::OID, ElementForm::OID, 0, &items.map(read).collect::<SqlResult<Vec<_>>>()?)
    };
    Ok(Datum::bytes(payload))
}
