//! Rows: composite types, and `record` values in flight.
//!
//! The payload is a heap tuple with its length, typmod and type in place of the transaction ids (drawn at
//! [`CompositeRef`]). A row of a named type finds its columns in the catalog. An anonymous `record` is never stored; in
//! flight it says what its columns are behind the tuple:
//!
//! ```text
//!  (-4)      0         4                                                        - 12 * columns      end
//!  ┌─────────┬─────────┬─────────────┬────────────────────────────────┬─────┬──────────────────────────┐
//!  │ length  │ -1      │ 2249        │ header, null bitmap, values    │ pad │ for each column: type    │
//!  │         │         │             │                                │ to 8│ OID, typmod, collation   │
//!  └─────────┴─────────┴─────────────┴────────────────────────────────┴─────┴──────────────────────────┘
//! ```

use std::cmp::Ordering;
use std::sync::Arc;

use stegodon_format::attr::{Attr, AttrLayout, TupleData, TupleLayout};
use stegodon_format::heap_tuple::CompositeRef;

use crate::array::{Message, combine, invalid, no_hash, write_counted};
use crate::ops::{get, no_comparison, no_equality};
use crate::packed::{Item, Part, corrupt, from_stored, pad, write_quoted};
use crate::scalar::{exactly, is_space};
use crate::{
    Align, Collation, CompositeAttribute, Datum, Oid, SqlError, SqlResult, SqlState, TypeContext, TypeDesc, TypeKind,
    TypeOps, ValueRef, oids,
};

/// `record` and every composite type.
pub static OPS: TypeOps = TypeOps {
    text_out,
    text_in,
    binary_out,
    binary_in,
    compare: Some(compare),
    equal: Some(equal),
    key: Some(key),
    hash: Some(hash),
    own_key: false,
};

/// Bytes that describe a column of an anonymous record.
const COLUMN_SIZE: usize = 12;
/// Bytes of a tuple header before its null bitmap.
const HEADER_SIZE: usize = 23;

/// A row's payload with its columns.
#[derive(Clone, Debug)]
pub struct RecordView<'a> {
    /// The row's type.
    pub type_oid: Oid,
    /// The columns, dropped ones included.
    pub columns: Arc<[CompositeAttribute]>,
    data: TupleData<'a>,
}

fn anonymous_columns(cx: &TypeContext<'_>, row: &CompositeRef<'_>) -> SqlResult<Arc<[CompositeAttribute]>> {
    let malformed = || corrupt("record");
    let count = usize::from(row.data.natts());
    let values = row.data.values();
    let at = values.len().checked_sub(count * COLUMN_SIZE).ok_or_else(malformed)?;
    let described = values.get(at..).ok_or_else(malformed)?;
    let mut columns = Vec::with_capacity(count);
    for (n, column) in described.chunks_exact(COLUMN_SIZE).enumerate() {
        let word = |at: usize| column.get(at..at + 4).ok_or_else(malformed).and_then(exactly::<4>);
        let ty = cx.types.type_desc(Oid(u32::from_le_bytes(word(0)?)))?;
        columns.push(CompositeAttribute {
            name: format!("f{}", n + 1),
            type_oid: ty.oid,
            typmod: i32::from_le_bytes(word(4)?),
            collation: Oid(u32::from_le_bytes(word(8)?)),
            dropped: false,
            len: ty.len,
            align: ty.align,
        });
    }
    Ok(columns.into())
}

impl<'a> RecordView<'a> {
    /// Takes a payload apart.
    pub fn parse(cx: &TypeContext<'_>, payload: &'a [u8]) -> SqlResult<Self> {
        let row = CompositeRef::parse(payload)?;
        let columns =
            if row.type_oid == oids::RECORD { anonymous_columns(cx, &row)? } else { columns_of(cx, row.type_oid)? };
        Ok(RecordView { type_oid: row.type_oid, columns, data: row.data })
    }

    /// The columns' values in order, `None` for NULL; those of dropped columns are NULL.
    pub fn values(&self, cx: &TypeContext<'_>) -> SqlResult<Vec<Option<Item<'a>>>> {
        let layout = TupleLayout::new(self.columns.iter().map(|c| AttrLayout::new(c.len, c.align.bytes() as u8)))?;
        let mut cursor = layout.cursor(self.data);
        let mut values = Vec::with_capacity(self.columns.len());
        for (at, column) in self.columns.iter().enumerate() {
            values.push(match cursor.get(at)? {
                Attr::Value(stored) if !column.dropped => {
                    let part = Part::of(&*cx.types.type_desc(column.type_oid)?)?;
                    Some(from_stored(stored, part)?)
                }
                _ => None,
            });
        }
        Ok(values)
    }

    /// One column's value by its place from 0; `None` for NULL.
    pub fn value(&self, cx: &TypeContext<'_>, index: usize) -> SqlResult<Option<Item<'a>>> {
        let Some(column) = self.columns.get(index).filter(|c| !c.dropped) else { return Ok(None) };
        let layout = TupleLayout::new(self.columns.iter().map(|c| AttrLayout::new(c.len, c.align.bytes() as u8)))?;
        match layout.cursor(self.data).get(index)? {
            Attr::Value(stored) => {
                let part = Part::of(&*cx.types.type_desc(column.type_oid)?)?;
                from_stored(stored, part).map(Some)
            }
            _ => Ok(None),
        }
    }
}

/// The columns of a composite type, also through a domain.
fn columns_of(cx: &TypeContext<'_>, type_oid: Oid) -> SqlResult<Arc<[CompositeAttribute]>> {
    let ty = cx.types.type_desc(type_oid)?;
    match ty.kind {
        TypeKind::Domain { .. } => cx.types.composite(crate::domain::base_type(cx, &ty)?.0.oid),
        _ => cx.types.composite(type_oid),
    }
}

/// The payload of a row of these columns. `type_oid` is [`oids::RECORD`] for an anonymous one. Values of dropped columns
/// are NULL.
pub fn build(
    cx: &TypeContext<'_>,
    type_oid: Oid,
    columns: &[CompositeAttribute],
    values: &[Option<ValueRef<'_>>],
) -> SqlResult<Vec<u8>> {
    if columns.len() != values.len() || columns.len() > 1664 {
        return Err(SqlError::internal("a row's values are not as many as its columns"));
    }
    let has_nulls = values.iter().any(Option::is_none);
    let bitmap = if has_nulls { columns.len().div_ceil(8) } else { 0 };
    let hoff = Align::Double.up(HEADER_SIZE + bitmap);
    let has_var = columns.iter().zip(values).any(|(c, v)| c.len < 0 && v.is_some());
    let mut out = Vec::with_capacity(hoff + columns.len() * 8);
    out.extend_from_slice(&(-1i32).to_le_bytes());
    out.extend_from_slice(&type_oid.0.to_le_bytes());
    // t_ctid is not used: an invalid one.
    out.extend_from_slice(&[0xFF, 0xFF, 0xFF, 0xFF, 0, 0]);
    out.extend_from_slice(&(columns.len() as u16).to_le_bytes());
    out.extend_from_slice(&(u16::from(has_nulls) | u16::from(has_var) << 1).to_le_bytes());
    out.push(hoff as u8);
    out.resize(hoff - 4, 0);
    for (at, _) in values.iter().enumerate().filter(|(_, v)| has_nulls && v.is_some()) {
        if let Some(byte) = out.get_mut(HEADER_SIZE - 4 + at / 8) {
            *byte |= 1 << (at % 8);
        }
    }
    for (column, value) in columns.iter().zip(values) {
        if let Some(value) = value {
            let part = Part::of(&*cx.types.type_desc(column.type_oid)?)?;
            crate::packed::write(&mut out, 0, part, *value, true)?;
        }
    }
    if type_oid == oids::RECORD {
        pad(&mut out, 0, Align::Double);
        for column in columns {
            out.extend_from_slice(&column.type_oid.0.to_le_bytes());
            out.extend_from_slice(&column.typmod.to_le_bytes());
            out.extend_from_slice(&column.collation.0.to_le_bytes());
        }
    }
    Ok(out)
}

/// The payload of an anonymous row: `ROW(…)`. Each value with its type, typmod and collation.
pub fn build_anonymous(cx: &TypeContext<'_>, fields: &[(Oid, i32, Oid, Option<ValueRef<'_>>)]) -> SqlResult<Vec<u8>> {
    let columns = fields
        .iter()
        .map(|(type_oid, typmod, collation, _)| {
            // What a literal of no type becomes in a row is text, which lies as `unknown` does not.
            let type_oid = if *type_oid == oids::UNKNOWN { oids::TEXT } else { *type_oid };
            let ty = cx.types.type_desc(type_oid)?;
            Ok(CompositeAttribute {
                name: String::new(),
                type_oid,
                typmod: *typmod,
                collation: *collation,
                dropped: false,
                len: ty.len,
                align: ty.align,
            })
        })
        .collect::<SqlResult<Vec<_>>>()?;
    let values: Vec<Option<ValueRef<'_>>> = fields.iter().map(|f| f.3).collect();
    build(cx, oids::RECORD, &columns, &values)
}

fn text_out(cx: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    let view = RecordView::parse(cx, get::bytes(ty, v)?)?;
    let mut text = Vec::new();
    let mut first = true;
    out.push(b'(');
    for (column, value) in view.columns.iter().zip(view.values(cx)?).filter(|(c, _)| !c.dropped) {
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        if let Some(value) = value {
            text.clear();
            crate::text_out(cx, &*cx.types.type_desc(column.type_oid)?, value.value(), &mut text)?;
            write_quoted(&text, b"(),", None, out);
        }
    }
    out.push(b')');
    Ok(())
}

fn anonymous_input() -> SqlError {
    SqlError::new(SqlState::FeatureNotSupported, "input of anonymous composite types is not implemented")
}

fn text_in(cx: &TypeContext<'_>, ty: &TypeDesc, text: &[u8], _: i32) -> SqlResult<Datum> {
    if ty.oid == oids::RECORD {
        return Err(anonymous_input());
    }
    let malformed = |detail: &str| {
        SqlError::new(
            SqlState::InvalidTextRepresentation,
            format!("malformed record literal: \"{}\"", String::from_utf8_lossy(text)),
        )
        .detail(detail)
    };
    let columns = columns_of(cx, ty.oid)?;
    let mut rest = text.get(text.iter().take_while(|b| is_space(**b)).count()..).unwrap_or_default();
    rest = rest.strip_prefix(b"(").ok_or_else(|| malformed("Missing left parenthesis."))?;
    let mut values: Vec<Option<Datum>> = Vec::with_capacity(columns.len());
    let mut need_comma = false;
    let mut field = Vec::new();
    for column in columns.iter() {
        if column.dropped {
            values.push(None);
            continue;
        }
        if need_comma {
            rest = rest.strip_prefix(b",").ok_or_else(|| malformed("Too few columns."))?;
        }
        need_comma = true;
        if matches!(rest, [b',' | b')', ..]) {
            values.push(None);
            continue;
        }
        field.clear();
        rest = unquote(rest, b",)", &mut field).ok_or_else(|| malformed("Unexpected end of input."))?;
        let column_type = cx.types.type_desc(column.type_oid)?;
        values.push(Some(crate::text_in(cx, &column_type, &field, column.typmod)?));
    }
    rest = rest.strip_prefix(b")").ok_or_else(|| malformed("Too many columns."))?;
    if !rest.iter().all(|b| is_space(*b)) {
        return Err(malformed("Junk after right parenthesis."));
    }
    let values: Vec<_> = values.iter().map(|v| v.as_ref().map(Datum::as_ref)).collect();
    Ok(Datum::bytes(build(cx, ty.oid, &columns, &values)?))
}

/// Appends a field up to one of the `ends` outside of quotes, without quotes and escapes; what follows, or `None` where
/// the text ends first.
pub(crate) fn unquote<'a>(text: &'a [u8], ends: &[u8], field: &mut Vec<u8>) -> Option<&'a [u8]> {
    let mut rest = text;
    let mut in_quotes = false;
    loop {
        let [b, tail @ ..] = rest else { return None };
        if !in_quotes && ends.contains(b) {
            return Some(rest);
        }
        rest = tail;
        match b {
            b'\\' => {
                let [escaped, tail @ ..] = rest else { return None };
                field.push(*escaped);
                rest = tail;
            }
            b'"' if in_quotes && rest.first() == Some(&b'"') => {
                field.push(b'"');
                rest = rest.get(1..)?;
            }
            b'"' => in_quotes = !in_quotes,
            b => field.push(*b),
        }
    }
}

fn binary_out(cx: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    let view = RecordView::parse(cx, get::bytes(ty, v)?)?;
    let live = view.columns.iter().filter(|c| !c.dropped).count();
    out.extend_from_slice(&(live as i32).to_be_bytes());
    for (column, value) in view.columns.iter().zip(view.values(cx)?).filter(|(c, _)| !c.dropped) {
        out.extend_from_slice(&column.type_oid.0.to_be_bytes());
        write_counted(cx, &*cx.types.type_desc(column.type_oid)?, value.as_ref().map(Item::value), out)?;
    }
    Ok(())
}

fn binary_in(cx: &TypeContext<'_>, ty: &TypeDesc, bytes: &[u8], _: i32) -> SqlResult<Datum> {
    if ty.oid == oids::RECORD {
        return Err(anonymous_input());
    }
    let columns = columns_of(cx, ty.oid)?;
    let mut message = Message(bytes);
    let count = message.i32()?;
    let live = columns.iter().filter(|c| !c.dropped).count();
    if usize::try_from(count) != Ok(live) {
        return Err(SqlError::new(
            SqlState::DatatypeMismatch,
            format!("wrong number of columns: {count}, expected {live}"),
        ));
    }
    let mut values: Vec<Option<Datum>> = Vec::with_capacity(columns.len());
    for (at, column) in columns.iter().enumerate() {
        if column.dropped {
            values.push(None);
            continue;
        }
        let sent = Oid(message.i32()? as u32);
        let column_type = cx.types.type_desc(column.type_oid)?;
        if sent != column.type_oid {
            let name = cx.types.type_desc(sent).map_or_else(|_| "???".to_owned(), |t| crate::names::sql_name(&t));
            return Err(SqlError::new(
                SqlState::DatatypeMismatch,
                format!(
                    "binary data has type {sent} ({name}) instead of expected {} ({}) in record column {}",
                    column.type_oid,
                    crate::names::sql_name(&column_type),
                    at + 1
                ),
            ));
        }
        let bytes = message.counted(|| invalid("insufficient data left in message"))?;
        values.push(bytes.map(|b| crate::binary_in(cx, &column_type, b, column.typmod)).transpose()?);
    }
    message.end()?;
    let values: Vec<_> = values.iter().map(|v| v.as_ref().map(Datum::as_ref)).collect();
    Ok(Datum::bytes(build(cx, ty.oid, &columns, &values)?))
}

/// The live columns of a row with their values.
type Fields<'a> = Vec<(CompositeAttribute, Option<Item<'a>>)>;

fn fields<'a>(cx: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'a>) -> SqlResult<Fields<'a>> {
    let view = RecordView::parse(cx, get::bytes(ty, v)?)?;
    let values = view.values(cx)?;
    Ok(view.columns.iter().cloned().zip(values).filter(|(c, _)| !c.dropped).collect())
}

/// The type and collation that two columns are compared by.
fn column_rule(
    cx: &TypeContext<'_>,
    coll: &Collation,
    number: usize,
    a: &CompositeAttribute,
    b: &CompositeAttribute,
) -> SqlResult<(Arc<TypeDesc>, Collation)> {
    let ty = cx.types.type_desc(a.type_oid)?;
    if a.type_oid != b.type_oid {
        let other = cx.types.type_desc(b.type_oid)?;
        return Err(SqlError::new(
            SqlState::DatatypeMismatch,
            format!(
                "cannot compare dissimilar column types {} and {} at record column {number}",
                crate::names::sql_name(&ty),
                crate::names::sql_name(&other)
            ),
        ));
    }
    let collation = if a.collation == b.collation { cx.types.collation(a.collation)? } else { Collation::None };
    Ok((ty, coll.of_part(collation)))
}

fn different_counts() -> SqlError {
    SqlError::new(SqlState::DatatypeMismatch, "cannot compare record types with different numbers of columns")
}

/// `btrecordcmp`: column by column, a NULL above all.
pub fn compare(
    cx: &TypeContext<'_>,
    ty: &TypeDesc,
    coll: &Collation,
    a: ValueRef<'_>,
    b: ValueRef<'_>,
) -> SqlResult<Ordering> {
    let (a, b) = (fields(cx, ty, a)?, fields(cx, ty, b)?);
    for (at, ((a_column, x), (b_column, y))) in a.iter().zip(&b).enumerate() {
        let (column_type, collation) = column_rule(cx, coll, at + 1, a_column, b_column)?;
        let order = match (x, y) {
            (Some(x), Some(y)) => {
                let compare = crate::ops(&column_type)?.compare.ok_or_else(|| no_comparison(&column_type))?;
                compare(cx, &column_type, &collation, x.value(), y.value())?
            }
            (x, y) => x.is_none().cmp(&y.is_none()),
        };
        if order.is_ne() {
            return Ok(order);
        }
    }
    if a.len() == b.len() { Ok(Ordering::Equal) } else { Err(different_counts()) }
}

/// `record_eq`.
fn equal(cx: &TypeContext<'_>, ty: &TypeDesc, coll: &Collation, a: ValueRef<'_>, b: ValueRef<'_>) -> SqlResult<bool> {
    let (a, b) = (fields(cx, ty, a)?, fields(cx, ty, b)?);
    for (at, ((a_column, x), (b_column, y))) in a.iter().zip(&b).enumerate() {
        let (column_type, collation) = column_rule(cx, coll, at + 1, a_column, b_column)?;
        let same = match (x, y) {
            (Some(x), Some(y)) => {
                let equal = crate::ops(&column_type)?.equal.ok_or_else(|| no_equality(&column_type))?;
                equal(cx, &column_type, &collation, x.value(), y.value())?
            }
            (x, y) => x.is_none() == y.is_none(),
        };
        if !same {
            return Ok(false);
        }
    }
    if a.len() == b.len() { Ok(true) } else { Err(different_counts()) }
}

/// The key: for each column 01 and its key, or 02 for NULL.
fn key(cx: &TypeContext<'_>, ty: &TypeDesc, coll: &Collation, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    for (at, (column, value)) in fields(cx, ty, v)?.iter().enumerate() {
        let Some(value) = value else {
            out.push(2);
            continue;
        };
        let (column_type, collation) = column_rule(cx, coll, at + 1, column, column)?;
        let key = crate::ops(&column_type)?.key.ok_or_else(|| no_comparison(&column_type))?;
        out.push(1);
        key(cx, &column_type, &collation, value.value(), out)?;
    }
    Ok(())
}

/// `hash_record_extended`.
fn hash(cx: &TypeContext<'_>, ty: &TypeDesc, coll: &Collation, v: ValueRef<'_>, seed: u64) -> SqlResult<u64> {
    let mut result = 0;
    for (at, (column, value)) in fields(cx, ty, v)?.iter().enumerate() {
        let part = match value {
            None => 0,
            Some(value) => {
                let (column_type, collation) = column_rule(cx, coll, at + 1, column, column)?;
                let hash = crate::ops(&column_type)?.hash.ok_or_else(|| no_hash(&column_type))?;
                hash(cx, &column_type, &collation, value.value(), seed)?
            }
        };
        result = combine(result, part);
    }
    Ok(result)
}
