//! Where catalog rows come from: tables of named columns, independent of storage and of the version that wrote them.
//!
//! ```text
//!  files of a directory ──(load)──┐
//!  CSV dump of a server ─(testing)┴─> TableRows {columns, rows} ──(build)──> Catalog
//! ```
//!
//! Columns go by name, never by position, so the versions 15 to 18 differ only in a column's presence.

use std::cell::Cell;

use stegodon_format::ids::{AttrNumber, Oid, RelFileNumber};
use stegodon_format::version::Version;
use stegodon_types::{Datum, SqlError, SqlResult, SqlState};

use crate::array::{self, ElementForm};

/// The rows of one catalog.
#[derive(Clone, Debug, Default)]
pub struct TableRows {
    /// The columns' names.
    pub columns: Vec<String>,
    /// One value a column, as its type's layout says.
    pub rows: Vec<Vec<Option<Datum>>>,
}

/// Whoever can deliver the rows of catalogs by name.
pub trait RowSource {
    /// The rows of the catalog `name` with those of `columns` that it has, in any order, others allowed.
    /// A catalog that the version lacks has no columns and no rows.
    fn table(&mut self, name: &str, columns: &[&str]) -> SqlResult<TableRows>;

    /// The version that wrote them.
    fn version(&self) -> Version {
        Version::default()
    }

    /// The file number of a relation whose `relfilenode` is 0, from the relation map.
    fn mapped_file(&self, relation: Oid, shared: bool) -> Option<RelFileNumber> {
        let _ = (relation, shared);
        None
    }
}

/// A catalog being read: checks forms, names what is broken.
pub(crate) struct Reader {
    name: &'static str,
    table: TableRows,
}

impl Reader {
    pub(crate) fn new(
        source: &mut dyn RowSource,
        name: &'static str,
        columns: &'static [&'static str],
    ) -> SqlResult<Self> {
        Ok(Self { name, table: source.table(name, columns)? })
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.table.rows.iter().map(|values| Row { reader: self, values, hint: Cell::new(0) })
    }
}

/// One row; each getter names its column.
pub(crate) struct Row<'a> {
    reader: &'a Reader,
    values: &'a [Option<Datum>],
    /// Where the last column was found: getters mostly follow the columns' order.
    hint: Cell<usize>,
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl<'a> Row<'a> {
    fn position(&self, column: &str) -> Option<usize> {
        let columns = &self.reader.table.columns;
        let hint = self.hint.get();
        let found = (hint..columns.len()).chain(0..hint).find(|&i| columns.get(i).is_some_and(|c| c == column))?;
        self.hint.set(found + 1);
        Some(found)
    }

    /// Whether this version has the column.
    pub(crate) fn has(&self, column: &str) -> bool {
        self.position(column).is_some()
    }

    /// The value; `None` for NULL and for a column that this version lacks.
    pub(crate) fn value(&self, column: &str) -> Option<&'a Datum> {
        self.values.get(self.position(column)?)?.as_ref()
    }

    fn broken(&self, column: &str, why: &str) -> SqlError {
        SqlError::new(SqlState::DataCorrupted, format!("column \"{column}\" of catalog \"{}\" {why}", self.reader.name))
    }

    fn required(&self, column: &str) -> SqlResult<&'a Datum> {
        self.value(column).ok_or_else(|| self.broken(column, "is missing or null"))
    }

    fn misformed(&self, column: &str) -> SqlError {
        self.broken(column, "has an unexpected form")
    }

    pub(crate) fn oid(&self, column: &str) -> SqlResult<Oid> {
        match self.required(column)? {
            Datum::UInt32(v) => Ok(Oid(*v)),
            _ => Err(self.misformed(column)),
        }
    }

    pub(crate) fn bool(&self, column: &str) -> SqlResult<bool> {
        match self.required(column)? {
            Datum::Bool(v) => Ok(*v),
            _ => Err(self.misformed(column)),
        }
    }

    /// A boolean that some versions lack.
    pub(crate) fn bool_or(&self, column: &str, missing: bool) -> SqlResult<bool> {
        if self.has(column) { self.bool(column) } else { Ok(missing) }
    }

    pub(crate) fn char(&self, column: &str) -> SqlResult<u8> {
        match self.required(column)? {
            Datum::Char(v) => Ok(*v),
            _ => Err(self.misformed(column)),
        }
    }

    pub(crate) fn i16(&self, column: &str) -> SqlResult<i16> {
        match self.required(column)? {
            Datum::Int16(v) => Ok(*v),
            _ => Err(self.misformed(column)),
        }
    }

    pub(crate) fn i32(&self, column: &str) -> SqlResult<i32> {
        match self.required(column)? {
            Datum::Int32(v) => Ok(*v),
            _ => Err(self.misformed(column)),
        }
    }

    pub(crate) fn f32(&self, column: &str) -> SqlResult<f32> {
        match self.required(column)? {
            Datum::Float32(v) => Ok(*v),
            _ => Err(self.misformed(column)),
        }
    }

    pub(crate) fn i64_opt(&self, column: &str) -> SqlResult<Option<i64>> {
        match self.value(column) {
            None => Ok(None),
            Some(Datum::Int64(v)) => Ok(Some(*v)),
            Some(_) => Err(self.misformed(column)),
        }
    }

    /// A count stored as a signed 16-bit number.
    pub(crate) fn count(&self, column: &str) -> SqlResult<usize> {
        usize::try_from(self.i16(column)?).map_err(|_| self.broken(column, "is negative"))
    }

    pub(crate) fn bytes(&self, column: &str) -> SqlResult<Option<&'a [u8]>> {
        match self.value(column) {
            None => Ok(None),
            Some(Datum::Bytes(b)) => Ok(Some(b)),
            Some(_) => Err(self.misformed(column)),
        }
    }

    pub(crate) fn text_opt(&self, column: &str) -> SqlResult<Option<String>> {
        Ok(self.bytes(column)?.map(text_of))
    }

    /// A name or text.
    pub(crate) fn text(&self, column: &str) -> SqlResult<String> {
        self.text_opt(column)?.ok_or_else(|| self.broken(column, "is missing or null"))
    }

    /// Text that is kept shared: node trees and function sources.
    pub(crate) fn shared_text(&self, column: &str) -> SqlResult<Option<std::sync::Arc<str>>> {
        Ok(self.bytes(column)?.map(|b| String::from_utf8_lossy(b).into()))
    }

    fn elements<T>(
        &self,
        column: &str,
        form: ElementForm,
        convert: impl Fn(&Datum) -> Option<T>,
    ) -> SqlResult<Option<Vec<T>>> {
        let Some(bytes) = self.bytes(column)? else { return Ok(None) };
        let elements = array::elements(bytes, form).ok_or_else(|| self.misformed(column))?;
        let converted: Option<Vec<T>> = elements.iter().map(|e| convert(e.as_ref()?)).collect();
        converted.map(Some).ok_or_else(|| self.misformed(column))
    }

    /// `oidvector` or `oid[]`.
    pub(crate) fn oids_opt(&self, column: &str) -> SqlResult<Option<Vec<Oid>>> {
        self.elements(column, ElementForm::OID, |d| match d {
            Datum::UInt32(v) => Some(Oid(*v)),
            _ => None,
        })
    }

    pub(crate) fn oids(&self, column: &str) -> SqlResult<Vec<Oid>> {
        self.oids_opt(column)?.ok_or_else(|| self.broken(column, "is missing or null"))
    }

    /// `int2vector` or `int2[]`.
    pub(crate) fn attnos_opt(&self, column: &str) -> SqlResult<Option<Vec<AttrNumber>>> {
        self.elements(column, ElementForm::INT2, |d| match d {
            Datum::Int16(v) => Some(AttrNumber(*v)),
            _ => None,
        })
    }

    pub(crate) fn attnos(&self, column: &str) -> SqlResult<Vec<AttrNumber>> {
        self.attnos_opt(column)?.ok_or_else(|| self.broken(column, "is missing or null"))
    }

    /// `float4[]`.
    pub(crate) fn floats_opt(&self, column: &str) -> SqlResult<Option<Vec<f32>>> {
        self.elements(column, ElementForm::FLOAT4, |d| match d {
            Datum::Float32(v) => Some(*v),
            _ => None,
        })
    }

    /// `"char"[]`.
    pub(crate) fn chars_opt(&self, column: &str) -> SqlResult<Option<Vec<u8>>> {
        self.elements(column, ElementForm::CHAR, |d| match d {
            Datum::Char(v) => Some(*v),
            _ => None,
        })
    }

    /// `text[]`.
    pub(crate) fn texts_opt(&self, column: &str) -> SqlResult<Option<Vec<String>>> {
        self.elements(column, ElementForm::TEXT, |d| d.as_bytes().map(text_of))
    }

    /// `aclitem[]`.
    pub(crate) fn acl(&self, column: &str) -> SqlResult<Option<crate::rows::Acl>> {
        let Some(bytes) = self.bytes(column)? else { return Ok(None) };
        crate::acl::decode(bytes).map(Some).ok_or_else(|| self.misformed(column))
    }
}
