//! Operators and functions of `json` and `jsonb`.

use stegodon_format::version::Version;
use stegodon_types::array::ArrayView;
use stegodon_types::json::jsonb::{Value, encode};
use stegodon_types::json::parse::{Kind, Node, parse};
use stegodon_types::json::{Container, Item, print};
use stegodon_types::numeric::{self, Numeric};
use stegodon_types::packed::Part;
use stegodon_types::{SqlError, SqlResult, SqlState, ValueRef, oids};

use crate::adapt::*;
use crate::kernel::Entry;
use crate::{Call, Column};

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::InvalidParameterValue, message)
}

/// The elements of a `text[]`.
pub(super) fn texts(call: &Call<'_>, payload: &[u8]) -> SqlResult<Vec<Option<Vec<u8>>>> {
    let view = ArrayView::parse(payload)?;
    let ty = call.cx.types.type_desc(oids::TEXT)?;
    let mut out = Vec::new();
    for element in view.elements(Part::of(&ty)?) {
        out.push(match element? {
            None => None,
            Some(ValueRef::Bytes(text)) => Some(text.to_vec()),
            Some(_) => return Err(SqlError::internal("an element of text[] is no text")),
        });
    }
    Ok(out)
}

/// A path's elements; none where one of them is NULL.
fn path_of(call: &Call<'_>, payload: &[u8]) -> SqlResult<Option<Vec<Vec<u8>>>> {
    Ok(texts(call, payload)?.into_iter().collect())
}

/// An array's place from its index, which counts from the end where it is negative.
fn place(index: i64, count: usize) -> Option<usize> {
    let at = if index < 0 { index + count as i64 } else { index };
    usize::try_from(at).ok().filter(|at| *at < count)
}

/// A path's element as an index: C's `strtol`, all of it.
fn index_of(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let text = text.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    text.parse::<i32>().ok().filter(|_| !text.is_empty()).map(i64::from)
}

/// Appends a child as `jsonb`.
fn put_item(item: &Item<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    match item {
        Item::Container(inner) => out.extend_from_slice(inner.bytes()),
        scalar => encode(Value::of_item(scalar)?, out)?,
    }
    Ok(())
}

/// Appends a child as text; false where it is `null`.
fn put_text(item: &Item<'_>, out: &mut Vec<u8>) -> SqlResult<bool> {
    match item {
        Item::Null => return Ok(false),
        Item::String(text) => out.extend_from_slice(text),
        other => print::item_text(other, out)?,
    }
    Ok(true)
}

/// Appends what was found, as `jsonb` or as text; false for NULL.
fn put_found(item: Option<Item<'_>>, as_text: bool, out: &mut Vec<u8>) -> SqlResult<bool> {
    match item {
        None => Ok(false),
        Some(item) if as_text => put_text(&item, out),
        Some(item) => put_item(&item, out).map(|()| true),
    }
}

fn field(call: &Call<'_>, as_text: bool) -> SqlResult<Column> {
    write2(call, |v: &[u8], key: &[u8], out| put_found(Container::new(v)?.get(key)?, as_text, out))
}

fn element(call: &Call<'_>, as_text: bool) -> SqlResult<Column> {
    write2(call, |v: &[u8], index: i32, out| {
        let v = Container::new(v)?;
        let at = if v.is_object() { None } else { place(i64::from(index), v.count()) };
        put_found(at.map(|at| v.element(at)).transpose()?.flatten(), as_text, out)
    })
}

/// The child at the end of a path.
fn at_path<'a>(root: Container<'a>, path: &[Vec<u8>]) -> SqlResult<Option<Item<'a>>> {
    let mut item = match root.scalar()? {
        Some(scalar) => scalar,
        None => Item::Container(root),
    };
    for step in path {
        let Item::Container(container) = item else { return Ok(None) };
        let next = if container.is_object() {
            container.get(step)?
        } else {
            match index_of(step).and_then(|index| place(index, container.count())) {
                Some(at) => container.element(at)?,
                None => None,
            }
        };
        match next {
            Some(next) => item = next,
            None => return Ok(None),
        }
    }
    Ok(Some(item))
}

fn extract_path(call: &Call<'_>, as_text: bool) -> SqlResult<Column> {
    write2(call, |v: &[u8], path: &[u8], out| match path_of(call, path)? {
        None => Ok(false),
        Some(path) => put_found(at_path(Container::new(v)?, &path)?, as_text, out),
    })
}

fn same_scalar(a: &Item<'_>, b: &Item<'_>) -> SqlResult<bool> {
    Ok(match (a, b) {
        (Item::Null, Item::Null) => true,
        (Item::Bool(a), Item::Bool(b)) => a == b,
        (Item::String(a), Item::String(b)) => a == b,
        (Item::Number(a), Item::Number(b)) => numeric::compare_payloads(a, b)?.is_eq(),
        _ => false,
    })
}

/// How deep `@>` looks; `jsonb` values are read to the same depth.
const MAX_DEPTH: usize = 2000;

/// `@>`: objects by their pairs, arrays by their elements, whatever their order.
fn contains(a: &Container<'_>, b: &Container<'_>, depth: usize) -> SqlResult<bool> {
    if depth > MAX_DEPTH {
        return Err(SqlError::new(SqlState::StatementTooComplex, "stack depth limit exceeded"));
    }
    if a.is_object() != b.is_object() {
        return Ok(false);
    }
    let mut all = true;
    if a.is_object() {
        if a.count() < b.count() {
            return Ok(false);
        }
        b.for_each_pair(|key, wanted| {
            all = all
                && match (a.get(key)?, &wanted) {
                    (Some(Item::Container(x)), Item::Container(y)) => contains(&x, y, depth + 1)?,
                    (Some(x), y) => same_scalar(&x, y)?,
                    (None, _) => false,
                };
            Ok(())
        })?;
        return Ok(all);
    }
    // A scalar alone contains no array, but an array contains one.
    if a.is_scalar() && !b.is_scalar() {
        return Ok(false);
    }
    b.for_each_element(|wanted| {
        let mut found = false;
        a.for_each_element(|x| {
            found = found
                || match (&x, &wanted) {
                    (Item::Container(x), Item::Container(y)) => contains(x, y, depth + 1)?,
                    (x, y) => same_scalar(x, y)?,
                };
            Ok(())
        })?;
        all = all && found;
        Ok(())
    })?;
    Ok(all)
}

/// `?`: a key of an object, or a string of an array.
fn exists(v: &Container<'_>, key: &[u8]) -> SqlResult<bool> {
    if v.is_object() {
        return Ok(v.get(key)?.is_some());
    }
    let mut found = false;
    v.for_each_element(|x| {
        found = found || x == Item::String(key);
        Ok(())
    })?;
    Ok(found)
}

fn exists_of(call: &Call<'_>, all: bool) -> SqlResult<Column> {
    map2(call, |v: &[u8], keys: &[u8]| {
        let v = Container::new(v)?;
        for key in texts(call, keys)?.into_iter().flatten() {
            if exists(&v, &key)? != all {
                return Ok(!all);
            }
        }
        Ok(all)
    })
}

/// A value as the elements of an array: an object or a scalar is one.
fn elements_of(v: &Container<'_>) -> SqlResult<Vec<Value>> {
    match Value::of_container(v)? {
        Value::Array(elements) => Ok(elements),
        other => Ok(vec![other]),
    }
}

/// `||`
fn concat(a: &[u8], b: &[u8], out: &mut Vec<u8>) -> SqlResult<()> {
    let (x, y) = (Container::new(a)?, Container::new(b)?);
    if x.is_object() && y.is_object() {
        let (Value::Object(mut pairs), Value::Object(more)) = (Value::of_container(&x)?, Value::of_container(&y)?)
        else {
            return Err(SqlError::internal("an object is none"));
        };
        pairs.extend(more);
        return encode(Value::Object(pairs), out);
    }
    let mut elements = elements_of(&x)?;
    elements.extend(elements_of(&y)?);
    encode(Value::Array(elements), out)
}

fn delete_keys(v: &[u8], keys: &[Vec<u8>], out: &mut Vec<u8>) -> SqlResult<()> {
    let container = Container::new(v)?;
    if container.is_scalar() {
        return Err(invalid("cannot delete from scalar"));
    }
    match Value::of_container(&container)? {
        Value::Object(mut pairs) => {
            pairs.retain(|(key, _)| !keys.contains(key));
            encode(Value::Object(pairs), out)
        }
        Value::Array(mut elements) => {
            elements.retain(|x| !matches!(x, Value::String(text) if keys.contains(text)));
            encode(Value::Array(elements), out)
        }
        other => encode(other, out),
    }
}

fn delete_index(v: &[u8], index: i32, out: &mut Vec<u8>) -> SqlResult<()> {
    let container = Container::new(v)?;
    if container.is_scalar() {
        return Err(invalid("cannot delete from scalar"));
    }
    if container.is_object() {
        return Err(invalid("cannot delete from object using integer index"));
    }
    let mut elements = elements_of(&container)?;
    if let Some(at) = place(i64::from(index), elements.len()) {
        elements.remove(at);
    }
    encode(Value::Array(elements), out)
}

fn type_name(item: &Item<'_>) -> &'static str {
    match item {
        Item::Null => "null",
        Item::Bool(_) => "boolean",
        Item::Number(_) => "number",
        Item::String(_) => "string",
        Item::Container(c) if c.is_object() => "object",
        Item::Container(_) => "array",
    }
}

/// A whole value as a child.
fn root(v: &[u8]) -> SqlResult<Item<'_>> {
    let container = Container::new(v)?;
    Ok(container.scalar()?.unwrap_or(Item::Container(container)))
}

fn array_length(count: Option<usize>, scalar: bool) -> SqlResult<i32> {
    match count {
        Some(count) => Ok(count as i32),
        None if scalar => Err(invalid("cannot get array length of a scalar")),
        None => Err(invalid("cannot get array length of a non-array")),
    }
}

fn cannot_cast(item: &Item<'_>, to: &str) -> SqlError {
    let what = match item {
        Item::Number(_) => "numeric",
        other => type_name(other),
    };
    invalid(format!("cannot cast jsonb {what} to type {to}"))
}

/// Whether `null` casts to NULL: before 18 that was an error.
fn null_casts(call: &Call<'_>) -> bool {
    call.cx.settings.version >= Version::V18
}

/// A number for a cast; none for `null`.
fn number_of(call: &Call<'_>, v: &[u8], to: &str) -> SqlResult<Option<Numeric>> {
    match root(v)? {
        Item::Null if !null_casts(call) => Err(cannot_cast(&Item::Null, to)),
        Item::Null => Ok(None),
        Item::Number(payload) => Numeric::from_payload(payload).map(Some),
        other => Err(cannot_cast(&other, to)),
    }
}

/// The node at the end of a path of a `json` text. Of equal keys the last one counts.
fn node_at<'n, 'a>(node: &'n Node<'a>, path: &[Vec<u8>]) -> Option<&'n Node<'a>> {
    let mut node = node;
    for step in path {
        node = match &node.kind {
            Kind::Object(pairs) => &pairs.iter().rev().find(|(key, _)| key == step)?.1,
            Kind::Array(elements) => elements.get(place(index_of(step)?, elements.len())?)?,
            _ => return None,
        };
    }
    Some(node)
}

fn put_node(node: Option<&Node<'_>>, as_text: bool, out: &mut Vec<u8>) -> bool {
    match node.map(|n| (&n.kind, n.text)) {
        None => return false,
        Some((Kind::Null, _)) if as_text => return false,
        Some((Kind::String(text), _)) if as_text => out.extend_from_slice(text),
        Some((_, text)) => out.extend_from_slice(text),
    }
    true
}

fn json_field(call: &Call<'_>, as_text: bool) -> SqlResult<Column> {
    let encoding = call.cx.settings.encoding;
    write2(call, |v: &[u8], key: &[u8], out| {
        let node = parse(v, encoding, true)?;
        let is_object = matches!(node.kind, Kind::Object(_));
        Ok(is_object && put_node(node_at(&node, &[key.to_vec()]), as_text, out))
    })
}

fn json_element(call: &Call<'_>, as_text: bool) -> SqlResult<Column> {
    let encoding = call.cx.settings.encoding;
    write2(call, |v: &[u8], index: i32, out| {
        let node = parse(v, encoding, true)?;
        let Kind::Array(elements) = &node.kind else { return Ok(false) };
        let found = place(i64::from(index), elements.len()).and_then(|at| elements.get(at));
        Ok(put_node(found, as_text, out))
    })
}

fn json_path(call: &Call<'_>, as_text: bool) -> SqlResult<Column> {
    let encoding = call.cx.settings.encoding;
    write2(call, |v: &[u8], path: &[u8], out| {
        let Some(path) = path_of(call, path)? else { return Ok(false) };
        let node = parse(v, encoding, true)?;
        Ok(put_node(node_at(&node, &path), as_text, out))
    })
}

/// `jsonb`.
pub(crate) static JSONB: &[Entry] = &[
    (3478, |c| field(c, false)),
    (3214, |c| field(c, true)),
    (3215, |c| element(c, false)),
    (3216, |c| element(c, true)),
    (3217, |c| extract_path(c, false)),
    (3940, |c| extract_path(c, true)),
    (4046, |c| map2(c, |a: &[u8], b: &[u8]| contains(&Container::new(a)?, &Container::new(b)?, 0))),
    (4050, |c| map2(c, |b: &[u8], a: &[u8]| contains(&Container::new(a)?, &Container::new(b)?, 0))),
    (4047, |c| map2(c, |v: &[u8], key: &[u8]| exists(&Container::new(v)?, key))),
    (4048, |c| exists_of(c, false)),
    (4049, |c| exists_of(c, true)),
    (3301, |c| write2(c, concat)),
    (3302, |c| write2(c, |v: &[u8], key: &[u8], out| delete_keys(v, &[key.to_vec()], out))),
    (3303, |c| write2(c, delete_index)),
    (3343, |c| {
        write2(c, |v: &[u8], keys: &[u8], out| {
            let keys: Vec<Vec<u8>> = texts(c, keys)?.into_iter().flatten().collect();
            delete_keys(v, &keys, out)
        })
    }),
    (3207, |c| {
        map1(c, |v: &[u8]| {
            let v = Container::new(v)?;
            array_length(v.is_array().then(|| v.count()), v.is_scalar())
        })
    }),
    (3210, |c| {
        write1(c, |v: &[u8], out| {
            out.extend_from_slice(type_name(&root(v)?).as_bytes());
            Ok(())
        })
    }),
    (3306, |c| write1(c, |v: &[u8], out| print::text(&Container::new(v)?, true, out))),
    // Casts.
    (3556, |c| {
        map1(c, |v: &[u8]| match root(v)? {
            Item::Null if null_casts(c) => Ok(None),
            Item::Bool(v) => Ok(Some(v)),
            other => Err(cannot_cast(&other, "boolean")),
        })
    }),
    (3449, |c| {
        write1(c, |v: &[u8], out| match number_of(c, v, "numeric")? {
            Some(v) => v.write_payload(out).map(|()| true),
            None => Ok(false),
        })
    }),
    (3450, |c| map1(c, |v: &[u8]| number_of(c, v, "smallint")?.map(|v| v.to_i16()).transpose())),
    (3451, |c| map1(c, |v: &[u8]| number_of(c, v, "integer")?.map(|v| v.to_i32()).transpose())),
    (3452, |c| map1(c, |v: &[u8]| number_of(c, v, "bigint")?.map(|v| v.to_i64()).transpose())),
    (3453, |c| map1(c, |v: &[u8]| number_of(c, v, "real")?.map(|v| v.to_f32()).transpose())),
    (2580, |c| map1(c, |v: &[u8]| number_of(c, v, "double precision")?.map(|v| v.to_f64()).transpose())),
];

/// `json`.
pub(crate) static JSON: &[Entry] = &[
    (3947, |c| json_field(c, false)),
    (3948, |c| json_field(c, true)),
    (3949, |c| json_element(c, false)),
    (3950, |c| json_element(c, true)),
    (3951, |c| json_path(c, false)),
    (3953, |c| json_path(c, true)),
    (3956, |c| {
        map1(c, |v: &[u8]| match parse(v, c.cx.settings.encoding, false)?.kind {
            Kind::Array(elements) => Ok(elements.len() as i32),
            Kind::Object(_) => array_length(None, false),
            _ => array_length(None, true),
        })
    }),
    (3968, |c| {
        write1(c, |v: &[u8], out| {
            let name: &[u8] = match parse(v, c.cx.settings.encoding, false)?.kind {
                Kind::Null => b"null",
                Kind::Bool(_) => b"boolean",
                Kind::Number => b"number",
                Kind::String(_) => b"string",
                Kind::Array(_) => b"array",
                Kind::Object(_) => b"object",
            };
            out.extend_from_slice(name);
            Ok(())
        })
    }),
];
