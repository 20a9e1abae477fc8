//! `json` and `jsonb` of values of any type: `to_json`, `row_to_json`, `json_build_object` and their like, also for the
//! aggregates.
//!
//! A record that was not written as `ROW(…)` has lost its columns' names, so it is refused.

use std::sync::Arc;

use stegodon_format::version::Version;
use stegodon_types::array::{ArrayView, Dimension};
use stegodon_types::datetime::{date, timestamp};
use stegodon_types::json::jsonb::{Value, encode};
use stegodon_types::json::parse::parse;
use stegodon_types::json::{Container, print};
use stegodon_types::packed::Part;
use stegodon_types::record::RecordView;
use stegodon_types::settings::DateStyle;
use stegodon_types::{
    FormatSettings, Oid, SqlError, SqlResult, SqlState, TypeContext, TypeDesc, TypeKind, ValueRef, domain, numeric,
    oids, text_out,
};

use crate::adapt::*;
use crate::eval::layout_of;
use crate::kernel::Entry;
use crate::{Call, Column, EvalContext};

/// What JSON makes of a type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Category {
    Bool,
    Number,
    Moment,
    Json,
    Jsonb,
    Array,
    Composite,
    Other,
}

/// Values nest no deeper than types do, but arrays of rows of arrays might be made to.
const MAX_DEPTH: usize = 500;

/// A value with its type, and its columns' names where it is a record that was written with them.
#[derive(Clone, Copy)]
pub(crate) struct Typed<'a> {
    pub ty: &'a Arc<TypeDesc>,
    pub names: Option<&'a [String]>,
    pub value: Option<ValueRef<'a>>,
}

/// Makes JSON of values.
pub(crate) struct Maker<'a> {
    cx: &'a EvalContext<'a>,
    /// As the session's, but dates in ISO's style.
    iso: FormatSettings,
}

/// `2024-01-01 10:00:00+02` as `2024-01-01T10:00:00+02:00`.
fn xml_style(text: &[u8], has_time: bool, has_zone: bool, out: &mut Vec<u8>) {
    let Some(at) = text.iter().position(|b| *b == b' ').filter(|_| has_time) else {
        out.extend_from_slice(text);
        return;
    };
    let (day, rest) = text.split_at(at);
    out.extend_from_slice(day);
    out.push(b'T');
    let rest = rest.get(1..).unwrap_or_default();
    let era = rest.iter().position(|b| *b == b' ').unwrap_or(rest.len());
    let (time, era) = rest.split_at(era);
    out.extend_from_slice(time);
    let zone = time.iter().rposition(|b| matches!(b, b'+' | b'-'));
    if has_zone && zone.is_some_and(|at| time.len() - at == 3) {
        out.extend_from_slice(b":00");
    }
    out.extend_from_slice(era);
}

fn is_number(text: &[u8]) -> bool {
    text.first().is_some_and(|b| b.is_ascii_digit() || *b == b'-') && text.iter().any(u8::is_ascii_digit)
}

/// An array's elements, each an array again but for the last dimension.
fn elements<T>(
    dimensions: &[Dimension],
    values: &mut dyn Iterator<Item = SqlResult<Option<ValueRef<'_>>>>,
    leaf: &mut dyn FnMut(Option<ValueRef<'_>>) -> SqlResult<T>,
    branch: &mut dyn FnMut(Vec<T>) -> SqlResult<T>,
) -> SqlResult<Vec<T>> {
    let Some((outer, inner)) = dimensions.split_first() else { return Ok(Vec::new()) };
    let mut out = Vec::new();
    for _ in 0..outer.length {
        if inner.is_empty() {
            let value = values.next().ok_or_else(|| SqlError::internal("an array is cut short"))??;
            out.push(leaf(value)?);
        } else {
            let list = elements(inner, values, leaf, branch)?;
            out.push(branch(list)?);
        }
    }
    Ok(out)
}

impl<'a> Maker<'a> {
    pub(crate) fn new(cx: &'a EvalContext<'a>) -> Self {
        let mut iso = cx.settings.clone();
        iso.date_style = DateStyle::Iso;
        Maker { cx, iso }
    }

    fn types(&self) -> TypeContext<'a> {
        TypeContext::new(self.cx.types, self.cx.settings)
    }

    fn category(&self, ty: &TypeDesc) -> SqlResult<(Arc<TypeDesc>, Category)> {
        let (base, _) = domain::base_type(&self.types(), ty)?;
        let category = match (base.oid, &base.kind) {
            (oids::BOOL, _) => Category::Bool,
            (oids::INT2 | oids::INT4 | oids::INT8 | oids::FLOAT4 | oids::FLOAT8 | oids::NUMERIC, _) => Category::Number,
            (oids::DATE | oids::TIMESTAMP | oids::TIMESTAMPTZ, _) => Category::Moment,
            (oids::JSON, _) => Category::Json,
            (oids::JSONB, _) => Category::Jsonb,
            (oids::RECORD, _) | (_, TypeKind::Composite { .. }) => Category::Composite,
            (_, TypeKind::Array { .. }) => Category::Array,
            _ => Category::Other,
        };
        // A user's own cast to json would be used.
        if category == Category::Other && base.oid.0 >= 16384 && self.cx.catalog.cast(base.oid, oids::JSON).is_some() {
            return Err(SqlError::unsupported(format_args!("the cast of type {} to json", base.name)));
        }
        Ok((base, category))
    }

    /// Whether it becomes an array or an object.
    pub(crate) fn is_structured(&self, ty: &TypeDesc) -> SqlResult<bool> {
        Ok(matches!(self.category(ty)?.1, Category::Array | Category::Composite))
    }

    /// The text of a value that is neither an array nor a row.
    fn text(&self, ty: &TypeDesc, category: Category, value: ValueRef<'_>) -> SqlResult<Vec<u8>> {
        let mut text = Vec::new();
        match (category, value) {
            (Category::Bool, ValueRef::Bool(v)) => text.extend_from_slice(if v { b"true" } else { b"false" }),
            (Category::Moment, ValueRef::Int32(days)) => date::write(&self.iso, days, &mut text)?,
            (Category::Moment, ValueRef::Int64(us)) => {
                let zoned = ty.oid == oids::TIMESTAMPTZ;
                let mut plain = Vec::new();
                if zoned {
                    timestamp::write_tz(&self.iso, us, &mut plain)?;
                } else {
                    timestamp::write(&self.iso, us, &mut plain)?;
                }
                xml_style(&plain, timestamp::is_finite(us), zoned, &mut text);
            }
            _ => text_out(&self.types(), ty, value, &mut text)?,
        }
        Ok(text)
    }

    /// A row's columns: names, types and values.
    fn row(
        &self,
        payload: &[u8],
        names: Option<&[String]>,
        mut f: impl FnMut(&str, &Arc<TypeDesc>, Option<ValueRef<'_>>) -> SqlResult<()>,
    ) -> SqlResult<()> {
        let types = self.types();
        let row = RecordView::parse(&types, payload)?;
        if row.type_oid == oids::RECORD && names.is_none_or(|n| n.len() != row.columns.len()) {
            return Err(SqlError::unsupported("json of a record whose columns' names are not known"));
        }
        let names = if row.type_oid == oids::RECORD { names } else { None };
        for (at, (column, value)) in row.columns.iter().zip(row.values(&types)?).enumerate() {
            if !column.dropped {
                let name = names.and_then(|n| n.get(at)).unwrap_or(&column.name);
                let ty = self.cx.types.type_desc(column.type_oid)?;
                f(name, &ty, value.as_ref().map(stegodon_types::packed::Item::value))?;
            }
        }
        Ok(())
    }

    /// Appends the `json` of a value.
    pub(crate) fn json(&self, v: Typed<'_>, pretty: bool, out: &mut Vec<u8>) -> SqlResult<()> {
        self.json_at(v, pretty, 0, out)
    }

    fn json_at(&self, v: Typed<'_>, pretty: bool, depth: usize, out: &mut Vec<u8>) -> SqlResult<()> {
        if depth > MAX_DEPTH {
            return Err(SqlError::new(SqlState::StatementTooComplex, "stack depth limit exceeded"));
        }
        let Some(value) = v.value else {
            out.extend_from_slice(b"null");
            return Ok(());
        };
        let (ty, category) = self.category(v.ty)?;
        let separator: &[u8] = if pretty { b",\n " } else { b"," };
        match (category, value) {
            (Category::Array, ValueRef::Bytes(payload)) => {
                let view = ArrayView::parse(payload)?;
                let element = self.cx.types.type_desc(view.element_type())?;
                let mut values = view.elements(Part::of(&element)?);
                let list = elements(
                    view.dimensions(),
                    &mut values,
                    &mut |value| {
                        let mut out = Vec::new();
                        self.json_at(Typed { ty: &element, names: None, value }, false, depth + 1, &mut out)?;
                        Ok(out)
                    },
                    &mut |list: Vec<Vec<u8>>| Ok([b"[".as_slice(), &list.join(b",".as_slice()), b"]"].concat()),
                )?;
                out.push(b'[');
                out.extend_from_slice(&list.join(separator));
                out.push(b']');
                Ok(())
            }
            (Category::Composite, ValueRef::Bytes(payload)) => {
                out.push(b'{');
                let mut first = true;
                self.row(payload, v.names, |name, ty, value| {
                    if !std::mem::take(&mut first) {
                        out.extend_from_slice(separator);
                    }
                    print::string(name.as_bytes(), out);
                    out.push(b':');
                    self.json_at(Typed { ty, names: None, value }, false, depth + 1, out)
                })?;
                out.push(b'}');
                Ok(())
            }
            _ => {
                let text = self.text(&ty, category, value)?;
                match category {
                    Category::Bool | Category::Json | Category::Jsonb => out.extend_from_slice(&text),
                    Category::Number if is_number(&text) => out.extend_from_slice(&text),
                    _ => print::string(&text, out),
                }
                Ok(())
            }
        }
    }

    /// The `jsonb` of a value.
    pub(crate) fn jsonb(&self, v: Typed<'_>) -> SqlResult<Value> {
        self.jsonb_at(v, 0)
    }

    fn jsonb_at(&self, v: Typed<'_>, depth: usize) -> SqlResult<Value> {
        if depth > MAX_DEPTH {
            return Err(SqlError::new(SqlState::StatementTooComplex, "stack depth limit exceeded"));
        }
        let Some(value) = v.value else { return Ok(Value::Null) };
        let (ty, category) = self.category(v.ty)?;
        match (category, value) {
            (Category::Array, ValueRef::Bytes(payload)) => {
                let view = ArrayView::parse(payload)?;
                let element = self.cx.types.type_desc(view.element_type())?;
                let mut values = view.elements(Part::of(&element)?);
                elements(
                    view.dimensions(),
                    &mut values,
                    &mut |value| self.jsonb_at(Typed { ty: &element, names: None, value }, depth + 1),
                    &mut |list| Ok(Value::Array(list)),
                )
                .map(Value::Array)
            }
            (Category::Composite, ValueRef::Bytes(payload)) => {
                let mut pairs = Vec::new();
                self.row(payload, v.names, |name, ty, value| {
                    pairs.push((name.as_bytes().to_vec(), self.jsonb_at(Typed { ty, names: None, value }, depth + 1)?));
                    Ok(())
                })?;
                Ok(Value::Object(pairs))
            }
            (Category::Jsonb, ValueRef::Bytes(payload)) => Value::of_container(&Container::new(payload)?),
            (Category::Json, ValueRef::Bytes(text)) => Value::of_node(parse(text, self.cx.settings.encoding, true)?),
            (Category::Bool, ValueRef::Bool(v)) => Ok(Value::Bool(v)),
            _ => {
                let text = self.text(&ty, category, value)?;
                if category == Category::Number && is_number(&text) {
                    let mut payload = Vec::new();
                    numeric::parse(&text)?.write_payload(&mut payload)?;
                    return Ok(Value::Number(payload));
                }
                Ok(Value::String(text))
            }
        }
    }

    /// A value as an object's key.
    pub(crate) fn key(&self, v: Typed<'_>, null: impl FnOnce() -> SqlError) -> SqlResult<Vec<u8>> {
        let Some(value) = v.value else { return Err(null()) };
        let (ty, category) = self.category(v.ty)?;
        if matches!(category, Category::Json | Category::Jsonb | Category::Array | Category::Composite) {
            return Err(SqlError::new(
                SqlState::InvalidParameterValue,
                "key value must be scalar, not array, composite, or json",
            ));
        }
        self.text(&ty, category, value)
    }
}

/// Argument `n` of a call at a row.
fn typed<'a>(call: &Call<'a>, n: usize, row: usize) -> SqlResult<Typed<'a>> {
    let ty = call.info.arg_types.get(n).ok_or_else(|| SqlError::internal("an argument has no type"))?;
    let value = argument(call, n)?.value(layout_of(ty)?, row);
    Ok(Typed { ty, names: call.info.row_names.get(n).and_then(|n| n.as_deref()), value })
}

/// `to_json`, `array_to_json`, `row_to_json`.
fn to_json(call: &Call<'_>) -> SqlResult<Column> {
    let maker = Maker::new(call.cx);
    rows_write(call, |row, out| {
        let pretty = match call.args.get(1).and_then(|c| c.value(stegodon_types::Layout::Bool, row)) {
            Some(ValueRef::Bool(pretty)) => pretty,
            _ => false,
        };
        maker.json(typed(call, 0, row)?, pretty, out)
    })
}

fn to_jsonb(call: &Call<'_>) -> SqlResult<Column> {
    let maker = Maker::new(call.cx);
    rows_write(call, |row, out| encode(maker.jsonb(typed(call, 0, row)?)?, out))
}

/// A value for each row; the function sees NULLs. `None` is NULL.
fn each(call: &Call<'_>, mut f: impl FnMut(usize, &mut Vec<u8>) -> SqlResult<()>) -> SqlResult<Column> {
    if call.info.variadic {
        return Err(SqlError::unsupported("a VARIADIC array of values of any type"));
    }
    let mut out = crate::column::ByteBuilder::new(call.info.layout, call.rows, 0);
    for row in 0..call.rows {
        f(row, out.buffer())?;
        out.end_value();
    }
    Ok(shape(call, out.finish()?))
}

fn build_array(call: &Call<'_>, binary: bool) -> SqlResult<Column> {
    let maker = Maker::new(call.cx);
    each(call, |row, out| {
        if binary {
            let values = (0..call.args.len()).map(|n| maker.jsonb(typed(call, n, row)?));
            return encode(Value::Array(values.collect::<SqlResult<_>>()?), out);
        }
        out.push(b'[');
        for n in 0..call.args.len() {
            if n > 0 {
                out.extend_from_slice(b", ");
            }
            maker.json(typed(call, n, row)?, false, out)?;
        }
        out.push(b']');
        Ok(())
    })
}

fn build_object(call: &Call<'_>, binary: bool) -> SqlResult<Column> {
    let maker = Maker::new(call.cx);
    let name = if binary { "jsonb_build_object()" } else { "json_build_object()" };
    if !call.args.len().is_multiple_of(2) && !call.info.variadic {
        return Err(SqlError::new(SqlState::InvalidParameterValue, "argument list must have even number of elements")
            .hint(format!("The arguments of {name} must consist of alternating keys and values.")));
    }
    each(call, |row, out| {
        let mut pairs = Vec::new();
        if !binary {
            out.push(b'{');
        }
        for n in (0..call.args.len()).step_by(2) {
            let key = maker.key(typed(call, n, row)?, || {
                if binary {
                    SqlError::new(SqlState::InvalidParameterValue, format!("argument {}: key must not be null", n + 1))
                } else if call.cx.settings.version < Version::V16 {
                    SqlError::new(SqlState::InvalidParameterValue, format!("argument {} cannot be null", n + 1))
                        .hint("Object keys should be text.")
                } else {
                    null_key()
                }
            })?;
            if binary {
                pairs.push((key, maker.jsonb(typed(call, n + 1, row)?)?));
                continue;
            }
            if n > 0 {
                out.extend_from_slice(b", ");
            }
            print::string(&key, out);
            out.extend_from_slice(b" : ");
            maker.json(typed(call, n + 1, row)?, false, out)?;
        }
        if binary {
            return encode(Value::Object(pairs), out);
        }
        out.push(b'}');
        Ok(())
    })
}

/// "null value not allowed for object key"
pub(crate) fn null_key() -> SqlError {
    SqlError::new(SqlState::NullValueNotAllowed, "null value not allowed for object key")
}

/// The elements of a `text[]`.
fn texts(call: &Call<'_>, payload: &[u8], dimensions: &mut Vec<Dimension>) -> SqlResult<Vec<Option<Vec<u8>>>> {
    let view = ArrayView::parse(payload)?;
    *dimensions = view.dimensions().to_vec();
    let part = Part::of(&*call.cx.types.type_desc(oids::TEXT)?)?;
    view.elements(part)
        .map(|e| match e? {
            None => Ok(None),
            Some(ValueRef::Bytes(text)) => Ok(Some(text.to_vec())),
            Some(_) => Err(SqlError::internal("an element of text[] is no text")),
        })
        .collect()
}

fn subscript_error(message: &str) -> SqlError {
    SqlError::new(SqlState::ArraySubscriptError, message)
}

/// A key and a value, NULL or not.
type Pair = (Option<Vec<u8>>, Option<Vec<u8>>);

/// Appends an object of texts.
fn object_of_texts(pairs: Vec<Pair>, binary: bool, out: &mut Vec<u8>) -> SqlResult<()> {
    if binary {
        let pairs = pairs
            .into_iter()
            .map(|(key, value)| Ok((key.ok_or_else(null_key)?, value.map_or(Value::Null, Value::String))));
        return encode(Value::Object(pairs.collect::<SqlResult<_>>()?), out);
    }
    out.push(b'{');
    for (n, (key, value)) in pairs.into_iter().enumerate() {
        if n > 0 {
            out.extend_from_slice(b", ");
        }
        print::string(&key.ok_or_else(null_key)?, out);
        out.extend_from_slice(b" : ");
        match value {
            Some(text) => print::string(&text, out),
            None => out.extend_from_slice(b"null"),
        }
    }
    out.push(b'}');
    Ok(())
}

/// `json_object(text[])`: keys and values in turn, or pairs.
fn object_of_array(call: &Call<'_>, binary: bool) -> SqlResult<Column> {
    write1(call, |payload: &[u8], out| {
        let mut dimensions = Vec::new();
        let values = texts(call, payload, &mut dimensions)?;
        match dimensions.as_slice() {
            [] => {}
            [d] if d.length % 2 == 0 => {}
            [_] => return Err(subscript_error("array must have even number of elements")),
            [_, d] if d.length == 2 => {}
            [_, _] => return Err(subscript_error("array must have two columns")),
            _ => return Err(subscript_error("wrong number of array subscripts")),
        }
        let pairs = values.chunks(2).map(|p| (p.first().cloned().flatten(), p.get(1).cloned().flatten()));
        object_of_texts(pairs.collect(), binary, out)
    })
}

/// `json_object(text[], text[])`: keys, values.
fn object_of_arrays(call: &Call<'_>, binary: bool) -> SqlResult<Column> {
    write2(call, |keys: &[u8], values: &[u8], out| {
        let (mut key_dimensions, mut value_dimensions) = (Vec::new(), Vec::new());
        let keys = texts(call, keys, &mut key_dimensions)?;
        let values = texts(call, values, &mut value_dimensions)?;
        if key_dimensions.len() > 1 || key_dimensions.len() != value_dimensions.len() {
            return Err(subscript_error("wrong number of array subscripts"));
        }
        if keys.len() != values.len() {
            return Err(subscript_error("mismatched array dimensions"));
        }
        object_of_texts(keys.into_iter().zip(values).collect(), binary, out)
    })
}

/// Whether the function makes JSON of a record's columns, so that it must know their names.
pub(crate) fn wants_names(function: Oid) -> bool {
    KERNELS.iter().any(|(oid, _)| *oid == function.0)
}

/// Constructors.
pub(crate) static KERNELS: &[Entry] = &[
    (3176, to_json),
    (3153, to_json),
    (3154, to_json),
    (3155, to_json),
    (3156, to_json),
    (3787, to_jsonb),
    (3198, |c| build_array(c, false)),
    (3199, |c| build_array(c, false)),
    (3271, |c| build_array(c, true)),
    (3272, |c| build_array(c, true)),
    (3200, |c| build_object(c, false)),
    (3201, |c| build_object(c, false)),
    (3273, |c| build_object(c, true)),
    (3274, |c| build_object(c, true)),
    (3202, |c| object_of_array(c, false)),
    (3263, |c| object_of_array(c, true)),
    (3203, |c| object_of_arrays(c, false)),
    (3264, |c| object_of_arrays(c, true)),
];
