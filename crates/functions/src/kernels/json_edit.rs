//! Changing `jsonb`: `jsonb_set`, `jsonb_insert`, `#-`, `jsonb_strip_nulls`.

use stegodon_types::json::Container;
use stegodon_types::json::jsonb::{Value, encode};
use stegodon_types::json::parse::{Kind, Node, parse};
use stegodon_types::json::print;
use stegodon_types::{SqlError, SqlResult, SqlState};

use super::json::texts;
use crate::adapt::*;
use crate::kernel::Entry;
use crate::{Call, Column};

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::InvalidParameterValue, message)
}

/// What is done at the end of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    /// Replaces; `true` creates what is not there.
    Set(bool),
    /// Inserts before, or after.
    Insert {
        after: bool,
    },
    Delete,
}

struct Edit {
    path: Vec<Option<Vec<u8>>>,
    change: Change,
    new: Option<Value>,
}

impl Edit {
    fn creates(&self) -> bool {
        matches!(self.change, Change::Set(true) | Change::Insert { .. })
    }

    fn take(&mut self) -> SqlResult<Value> {
        self.new.take().ok_or_else(|| SqlError::internal("a value is put twice"))
    }

    /// Applies to a value at a depth of the path.
    fn apply(&mut self, value: &mut Value, depth: usize) -> SqlResult<()> {
        let last = depth + 1 == self.path.len();
        let Some(step) = self.path.get(depth).cloned() else { return Ok(()) };
        if value.is_scalar() {
            return Ok(());
        }
        let step = step.ok_or_else(|| {
            SqlError::new(SqlState::NullValueNotAllowed, format!("path element at position {} is null", depth + 1))
        })?;
        match value {
            Value::Object(pairs) => {
                let found = pairs.iter().position(|(key, _)| *key == step);
                match (found, last) {
                    (Some(at), false) => {
                        if let Some((_, inner)) = pairs.get_mut(at) {
                            self.apply(inner, depth + 1)?;
                        }
                    }
                    (Some(at), true) => match self.change {
                        Change::Delete => {
                            pairs.remove(at);
                        }
                        Change::Insert { .. } => {
                            return Err(invalid("cannot replace existing key")
                                .hint("Try using the function jsonb_set to replace key value."));
                        }
                        Change::Set(_) => {
                            let new = self.take()?;
                            if let Some((_, old)) = pairs.get_mut(at) {
                                *old = new;
                            }
                        }
                    },
                    (None, true) if self.creates() => pairs.push((step, self.take()?)),
                    (None, _) => {}
                }
            }
            Value::Array(elements) => {
                let index = index(&step, depth)?;
                let count = elements.len() as i64;
                // From the end where it is negative; before the first it is before all.
                let from_start = if index < 0 { if -index > count { i64::MIN } else { count + index } } else { index };
                let at = usize::try_from(from_start).ok().filter(|at| *at < elements.len());
                match (at, last) {
                    (Some(at), false) => {
                        if let Some(inner) = elements.get_mut(at) {
                            self.apply(inner, depth + 1)?;
                        }
                    }
                    (Some(at), true) => match self.change {
                        Change::Delete => {
                            elements.remove(at);
                        }
                        Change::Insert { after } => {
                            let new = self.take()?;
                            elements.insert(at + usize::from(after), new);
                        }
                        Change::Set(_) => {
                            let new = self.take()?;
                            if let Some(old) = elements.get_mut(at) {
                                *old = new;
                            }
                        }
                    },
                    (None, true) if self.creates() => {
                        let new = self.take()?;
                        if from_start < 0 { elements.insert(0, new) } else { elements.push(new) }
                    }
                    (None, _) => {}
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// A path's step as an array's index.
fn index(step: &[u8], depth: usize) -> SqlResult<i64> {
    let text = String::from_utf8_lossy(step).into_owned();
    text.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']).parse::<i32>().map(i64::from).map_err(|_| {
        SqlError::new(
            SqlState::InvalidTextRepresentation,
            format!("path element at position {} is not an integer: \"{text}\"", depth + 1),
        )
    })
}

fn edit(
    call: &Call<'_>,
    target: &[u8],
    steps: &[u8],
    new: Option<&[u8]>,
    change: Change,
    out: &mut Vec<u8>,
) -> SqlResult<()> {
    let container = Container::new(target)?;
    if stegodon_types::array::ArrayView::parse(steps)?.dimensions().len() > 1 {
        return Err(SqlError::new(SqlState::ArraySubscriptError, "wrong number of array subscripts"));
    }
    if container.is_scalar() {
        let what = if change == Change::Delete { "cannot delete path in scalar" } else { "cannot set path in scalar" };
        return Err(invalid(what));
    }
    let creates = matches!(change, Change::Set(true) | Change::Insert { .. });
    if container.count() == 0 && !creates {
        out.extend_from_slice(target);
        return Ok(());
    }
    let path = texts(call, steps)?;
    if path.is_empty() {
        out.extend_from_slice(target);
        return Ok(());
    }
    let new = new.map(|v| Value::of_container(&Container::new(v)?)).transpose()?;
    let mut edit = Edit { path, change, new };
    let mut value = Value::of_container(&container)?;
    edit.apply(&mut value, 0)?;
    encode(value, out)
}

/// Drops an object's NULLs, at all depths; an array's where `in_arrays`.
fn strip(value: &mut Value, in_arrays: bool) {
    match value {
        Value::Object(pairs) => {
            pairs.retain(|(_, v)| *v != Value::Null);
            for (_, v) in pairs.iter_mut() {
                strip(v, in_arrays);
            }
        }
        Value::Array(elements) => {
            if in_arrays {
                elements.retain(|v| *v != Value::Null);
            }
            for v in elements.iter_mut() {
                strip(v, in_arrays);
            }
        }
        _ => {}
    }
}

/// Writes a `json` without its objects' NULLs: no white space is kept.
fn strip_json(node: &Node<'_>, in_arrays: bool, out: &mut Vec<u8>) {
    match &node.kind {
        Kind::Object(pairs) => {
            out.push(b'{');
            let mut first = true;
            for (key, value) in pairs.iter().filter(|(_, v)| v.kind != Kind::Null) {
                if !std::mem::take(&mut first) {
                    out.push(b',');
                }
                print::string(key, out);
                out.push(b':');
                strip_json(value, in_arrays, out);
            }
            out.push(b'}');
        }
        Kind::Array(elements) => {
            out.push(b'[');
            let mut first = true;
            for value in elements.iter().filter(|v| !in_arrays || v.kind != Kind::Null) {
                if !std::mem::take(&mut first) {
                    out.push(b',');
                }
                strip_json(value, in_arrays, out);
            }
            out.push(b']');
        }
        Kind::String(text) => print::string(text, out),
        _ => out.extend_from_slice(node.text),
    }
}

/// `jsonb_set_lax`: what to do with NULL is said.
fn set_lax(call: &Call<'_>) -> SqlResult<Column> {
    opt_write5(
        call,
        |target: Option<&[u8]>,
         steps: Option<&[u8]>,
         new: Option<&[u8]>,
         create: Option<bool>,
         treatment: Option<&[u8]>,
         out| {
            let (Some(target), Some(steps), Some(create)) = (target, steps, create) else { return Ok(false) };
            let bad = || {
                invalid(
                    "null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \
                     \"raise_exception\"",
                )
            };
            let Some(treatment) = treatment else { return Err(bad()) };
            let mut null = Vec::new();
            encode(Value::Null, &mut null)?;
            match (new, treatment) {
                (Some(new), _) => edit(call, target, steps, Some(new), Change::Set(create), out)?,
                (None, b"raise_exception") => {
                    return Err(SqlError::new(SqlState::NullValueNotAllowed, "JSON value must not be null")
                        .detail("Exception was raised because null_value_treatment is \"raise_exception\".")
                        .hint("To avoid, either change the null_value_treatment argument or ensure that an SQL NULL is not passed."));
                }
                (None, b"use_json_null") => edit(call, target, steps, Some(&null), Change::Set(create), out)?,
                (None, b"delete_key") => edit(call, target, steps, None, Change::Delete, out)?,
                (None, b"return_target") => out.extend_from_slice(target),
                _ => return Err(bad()),
            }
            Ok(true)
        },
    )
}

/// Changes.
pub(crate) static KERNELS: &[Entry] = &[
    (3305, |c| {
        write4(c, |target: &[u8], steps: &[u8], new: &[u8], create: bool, out| {
            edit(c, target, steps, Some(new), Change::Set(create), out)
        })
    }),
    (3579, |c| {
        write4(c, |target: &[u8], steps: &[u8], new: &[u8], after: bool, out| {
            edit(c, target, steps, Some(new), Change::Insert { after }, out)
        })
    }),
    (5054, set_lax),
    (3304, |c| write2(c, |target: &[u8], steps: &[u8], out| edit(c, target, steps, None, Change::Delete, out))),
    (3262, |c| {
        let strips = |v: &[u8], in_arrays: bool, out: &mut Vec<u8>| {
            let mut value = Value::of_container(&Container::new(v)?)?;
            strip(&mut value, in_arrays);
            encode(value, out)
        };
        // Before 18 it has one argument.
        if c.args.len() == 1 { write1(c, |v: &[u8], out| strips(v, false, out)) } else { write2(c, strips) }
    }),
    (3261, |c| {
        let strips = |v: &[u8], in_arrays: bool, out: &mut Vec<u8>| {
            strip_json(&parse(v, c.cx.settings.encoding, true)?, in_arrays, out);
            Ok::<(), SqlError>(())
        };
        if c.args.len() == 1 { write1(c, |v: &[u8], out| strips(v, false, out)) } else { write2(c, strips) }
    }),
];
