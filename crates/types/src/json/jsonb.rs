//! `jsonb`: making the stored form, and the type's functions.

use super::parse::{self, Kind, Node};
use super::read::{
    ARRAY, CONTAINER, FALSE, HAS_END, LENGTH_MASK, NULL, NUMBER, OBJECT, SCALAR, STRING, TRUE, TYPE_MASK,
};
use super::{Container, Item, MAX_DEPTH, order, print, too_deep};
use crate::ops::get;
use crate::settings::Encoding;
use crate::{Datum, SqlError, SqlResult, SqlState, TypeContext, TypeDesc, TypeOps, ValueRef, numeric};

/// `jsonb`.
pub static JSONB: TypeOps = TypeOps {
    text_out,
    text_in,
    binary_out,
    binary_in,
    compare: Some(order::compare),
    equal: Some(order::equal),
    key: Some(order::key),
    hash: Some(order::hash),
    own_key: false,
};

/// A value that a `jsonb` is made of.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// The payload of a finite numeric.
    Number(Vec<u8>),
    /// A string.
    String(Vec<u8>),
    /// An array.
    Array(Vec<Value>),
    /// An object; of equal keys the last one counts.
    Object(Vec<(Vec<u8>, Value)>),
}

/// Every 32nd entry states its end.
const STRIDE: usize = 32;

fn too_large(what: &str) -> SqlError {
    SqlError::new(
        SqlState::ProgramLimitExceeded,
        format!("total size of jsonb {what} elements exceeds the maximum of {LENGTH_MASK} bytes"),
    )
}

impl Value {
    /// The value of a parsed text whose escapes were resolved.
    pub fn of_node(node: Node<'_>) -> SqlResult<Value> {
        Ok(match node.kind {
            Kind::Null => Value::Null,
            Kind::Bool(v) => Value::Bool(v),
            Kind::Number => {
                let mut payload = Vec::new();
                numeric::parse(node.text)?.write_payload(&mut payload)?;
                Value::Number(payload)
            }
            Kind::String(text) => Value::String(text),
            Kind::Array(elements) => Value::Array(elements.into_iter().map(Value::of_node).collect::<SqlResult<_>>()?),
            Kind::Object(pairs) => Value::Object(
                pairs.into_iter().map(|(key, v)| Ok((key, Value::of_node(v)?))).collect::<SqlResult<_>>()?,
            ),
        })
    }

    /// The value of a stored child.
    pub fn of_item(item: &Item<'_>) -> SqlResult<Value> {
        Self::of_item_at(item, 0)
    }

    fn of_item_at(item: &Item<'_>, depth: usize) -> SqlResult<Value> {
        Ok(match item {
            Item::Null => Value::Null,
            Item::Bool(v) => Value::Bool(*v),
            Item::Number(payload) => Value::Number(payload.to_vec()),
            Item::String(text) => Value::String(text.to_vec()),
            Item::Container(container) => Self::of_container_at(container, depth + 1)?,
        })
    }

    /// The value of a whole `jsonb`.
    pub fn of_container(container: &Container<'_>) -> SqlResult<Value> {
        Self::of_container_at(container, 0)
    }

    fn of_container_at(container: &Container<'_>, depth: usize) -> SqlResult<Value> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        if let Some(scalar) = container.scalar()? {
            return Self::of_item_at(&scalar, depth);
        }
        if container.is_object() {
            let mut pairs = Vec::with_capacity(container.count());
            container.for_each_pair(|key, v| {
                pairs.push((key.to_vec(), Self::of_item_at(&v, depth)?));
                Ok(())
            })?;
            return Ok(Value::Object(pairs));
        }
        let mut elements = Vec::with_capacity(container.count());
        container.for_each_element(|v| {
            elements.push(Self::of_item_at(&v, depth)?);
            Ok(())
        })?;
        Ok(Value::Array(elements))
    }

    /// Whether it is neither an array nor an object.
    pub fn is_scalar(&self) -> bool {
        !matches!(self, Value::Array(_) | Value::Object(_))
    }
}

/// Appends the payload of a `jsonb`.
pub fn encode(value: Value, out: &mut Vec<u8>) -> SqlResult<()> {
    let start = out.len();
    let mut writer = Writer { out, start };
    if value.is_scalar() {
        writer.children(ARRAY | SCALAR | 1, vec![value], "array", 0)?;
    } else {
        writer.child(value, 0)?;
    }
    Ok(())
}

/// Sorts an object's pairs by their keys' length and bytes; of equal keys the last one stays.
fn sort_pairs(pairs: &mut Vec<(Vec<u8>, Value)>) {
    // Stable, so that of equal keys the last one written comes first once the order is turned around.
    pairs.reverse();
    pairs.sort_by(|(a, _), (b, _)| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    pairs.dedup_by(|later, first| later.0 == first.0);
}

struct Writer<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

impl Writer<'_> {
    fn pad(&mut self) {
        let written = self.out.len() - self.start;
        self.out.resize(self.start + written.next_multiple_of(4), 0);
    }

    /// Appends a value; its entry's type and length.
    fn child(&mut self, value: Value, depth: usize) -> SqlResult<(u32, usize)> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        let from = self.out.len();
        let kind = match value {
            Value::Null => NULL,
            Value::Bool(true) => TRUE,
            Value::Bool(false) => FALSE,
            Value::Number(payload) => {
                self.pad();
                let length = (payload.len() + 4) as u32;
                self.out.extend_from_slice(&(length << 2).to_le_bytes());
                self.out.extend_from_slice(&payload);
                NUMBER
            }
            Value::String(text) => {
                self.out.extend_from_slice(&text);
                STRING
            }
            Value::Array(elements) => {
                self.pad();
                self.children(ARRAY | elements.len() as u32, elements, "array", depth)?;
                CONTAINER
            }
            Value::Object(mut pairs) => {
                self.pad();
                sort_pairs(&mut pairs);
                let header = OBJECT | pairs.len() as u32;
                let (keys, values): (Vec<Value>, Vec<Value>) =
                    pairs.into_iter().map(|(key, v)| (Value::String(key), v)).unzip();
                self.children(header, keys.into_iter().chain(values).collect(), "object", depth)?;
                CONTAINER
            }
        };
        Ok((kind, self.out.len() - from))
    }

    /// Appends a header, entries and children.
    fn children(&mut self, header: u32, children: Vec<Value>, what: &str, depth: usize) -> SqlResult<()> {
        self.out.extend_from_slice(&header.to_le_bytes());
        let entries = self.out.len();
        self.out.resize(entries + children.len() * 4, 0);
        let mut total = 0;
        for (n, value) in children.into_iter().enumerate() {
            let (kind, length) = self.child(value, depth + 1)?;
            total += length;
            if total > LENGTH_MASK as usize {
                return Err(too_large(what));
            }
            let entry = if n % STRIDE == 0 { kind | HAS_END | total as u32 } else { kind | length as u32 };
            debug_assert_eq!(entry & TYPE_MASK, kind);
            if let Some(to) = self.out.get_mut(entries + n * 4..entries + n * 4 + 4) {
                to.copy_from_slice(&entry.to_le_bytes());
            }
        }
        Ok(())
    }
}

/// Reads a `jsonb` from text: the payload.
pub fn parse_text(text: &[u8], encoding: Encoding) -> SqlResult<Vec<u8>> {
    crate::scalar::text::validate(encoding, text)?;
    let value = Value::of_node(parse::parse(text, encoding, true)?)?;
    let mut out = Vec::with_capacity(text.len() + 8);
    encode(value, &mut out)?;
    Ok(out)
}

fn text_out(_: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    print::text(&Container::new(get::bytes(ty, v)?)?, false, out)
}

fn text_in(cx: &TypeContext<'_>, _: &TypeDesc, text: &[u8], _: i32) -> SqlResult<Datum> {
    Ok(Datum::bytes(parse_text(text, cx.settings.encoding)?))
}

fn binary_out(cx: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    out.push(1);
    text_out(cx, ty, v, out)
}

fn binary_in(cx: &TypeContext<'_>, ty: &TypeDesc, bytes: &[u8], typmod: i32) -> SqlResult<Datum> {
    match bytes {
        [] => Err(crate::scalar::message_too_short()),
        [1, text @ ..] => text_in(cx, ty, text, typmod),
        [version, ..] => Err(SqlError::internal(format_args!("unsupported jsonb version number {version}"))),
    }
}
