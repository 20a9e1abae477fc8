//! Writing `jsonb` as text.

use super::{Container, Item, MAX_DEPTH, too_deep};
use crate::SqlResult;
use crate::numeric::Numeric;

/// Appends a string in quotes, escaped.
pub fn string(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for b in text {
        match b {
            8 => out.extend_from_slice(b"\\b"),
            12 => out.extend_from_slice(b"\\f"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            0..0x20 => out.extend_from_slice(format!("\\u{b:04x}").as_bytes()),
            _ => out.push(*b),
        }
    }
    out.push(b'"');
}

/// Appends the text of a numeric's payload.
pub fn number(payload: &[u8], out: &mut Vec<u8>) -> SqlResult<()> {
    out.extend_from_slice(Numeric::from_payload(payload)?.text().as_bytes());
    Ok(())
}

fn line(indent: Option<usize>, out: &mut Vec<u8>) {
    if let Some(depth) = indent {
        out.push(b'\n');
        out.extend(std::iter::repeat_n(b' ', depth * 4));
    }
}

/// Appends what separates two children: `, `, or a line's end.
fn separator(first: &mut bool, indent: Option<usize>, out: &mut Vec<u8>) {
    if !std::mem::take(first) {
        out.extend_from_slice(if indent.is_some() { b"," } else { b", " });
    }
    line(indent, out);
}

/// Appends a child.
fn item(v: &Item<'_>, depth: usize, pretty: bool, out: &mut Vec<u8>) -> SqlResult<()> {
    match v {
        Item::Null => out.extend_from_slice(b"null"),
        Item::Bool(true) => out.extend_from_slice(b"true"),
        Item::Bool(false) => out.extend_from_slice(b"false"),
        Item::Number(payload) => number(payload, out)?,
        Item::String(text) => string(text, out),
        Item::Container(inner) => container(inner, depth, pretty, out)?,
    }
    Ok(())
}

fn container(v: &Container<'_>, depth: usize, pretty: bool, out: &mut Vec<u8>) -> SqlResult<()> {
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    if let Some(scalar) = v.scalar()? {
        return item(&scalar, depth, pretty, out);
    }
    let inside = pretty.then_some(depth + 1);
    let mut first = true;
    if v.is_object() {
        out.push(b'{');
        v.for_each_pair(|key, value| {
            separator(&mut first, inside, out);
            string(key, out);
            out.extend_from_slice(b": ");
            item(&value, depth + 1, pretty, out)
        })?;
    } else {
        out.push(b'[');
        v.for_each_element(|value| {
            separator(&mut first, inside, out);
            item(&value, depth + 1, pretty, out)
        })?;
    }
    line(pretty.then_some(depth), out);
    out.push(if v.is_object() { b'}' } else { b']' });
    Ok(())
}

/// Appends a `jsonb`'s text, over lines where `pretty`.
pub fn text(v: &Container<'_>, pretty: bool, out: &mut Vec<u8>) -> SqlResult<()> {
    container(v, 0, pretty, out)
}

/// Appends a child's text.
pub fn item_text(v: &Item<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    item(v, 0, false, out)
}
