//! Functions of arrays.

use std::sync::Arc;

use memchr::memmem;
use stegodon_types::array::{ArrayView, Dimension, build, build_vector, empty};
use stegodon_types::packed::Part;
use stegodon_types::{Layout, SqlError, SqlResult, SqlState, TypeContext, TypeDesc, TypeKind, ValueRef, ops, value_at};

use super::text::chars;
use crate::adapt::*;
use crate::column::ByteBuilder;
use crate::eval::layout_of;
use crate::kernel::Entry;
use crate::{Call, Column, EvalContext};

/// The elements' type of an array type.
pub(super) fn element_of(call: &Call<'_>, ty: &TypeDesc) -> SqlResult<Arc<TypeDesc>> {
    match ty.kind {
        TypeKind::Array { element } => call.cx.types.type_desc(element),
        _ => Err(SqlError::unsupported(format_args!("type {} as an array", ty.name))),
    }
}

fn arg_type<'a>(call: &Call<'a>, n: usize) -> SqlResult<&'a Arc<TypeDesc>> {
    call.info.arg_types.get(n).ok_or_else(|| SqlError::internal("an argument has no type"))
}

/// An argument's value at a row.
pub(super) fn value<'a>(call: &Call<'a>, n: usize, row: usize) -> SqlResult<Option<ValueRef<'a>>> {
    let column = argument(call, n)?;
    let row = if column.is_const() { 0 } else { row };
    Ok(value_at(column.array().as_ref(), layout_of(arg_type(call, n)?)?, row))
}

/// An argument's array at a row.
pub(super) fn view<'a>(call: &Call<'a>, n: usize, row: usize) -> SqlResult<Option<ArrayView<'a>>> {
    match value(call, n, row)? {
        Some(ValueRef::Bytes(payload)) => ArrayView::parse(payload).map(Some),
        Some(_) => Err(SqlError::internal("an array is not of its layout")),
        None => Ok(None),
    }
}

fn bytes<'a>(call: &Call<'a>, n: usize, row: usize) -> SqlResult<Option<&'a [u8]>> {
    match value(call, n, row)? {
        Some(ValueRef::Bytes(b)) => Ok(Some(b)),
        Some(_) => Err(SqlError::internal("a text is not of its layout")),
        None => Ok(None),
    }
}

/// Builds an array or a text for each row; `None` is NULL.
fn each(call: &Call<'_>, mut f: impl FnMut(usize) -> SqlResult<Option<Vec<u8>>>) -> SqlResult<Column> {
    let mut out = ByteBuilder::new(Layout::Bytes, call.rows, 0);
    for row in 0..call.rows {
        out.push(f(row)?.as_deref());
    }
    Ok(shape(call, out.finish()?))
}

/// One dimension, counted from 1.
fn dimension(payload: &[u8], n: i32) -> SqlResult<Option<Dimension>> {
    let view = ArrayView::parse(payload)?;
    Ok(usize::try_from(n).ok().and_then(|n| n.checked_sub(1)).and_then(|n| view.dimensions().get(n).copied()))
}

fn one_dimensional(view: &ArrayView<'_>) -> SqlResult<()> {
    if view.dimensions().len() > 1 {
        return Err(SqlError::new(SqlState::DataException, "argument must be empty or one-dimensional array"));
    }
    Ok(())
}

/// `array_append` and `array_prepend`: the array is argument `array`, the element the other.
fn extend(call: &Call<'_>, array: usize) -> SqlResult<Column> {
    let element = element_of(call, &call.info.result_type)?;
    let part = Part::of(&element)?;
    each(call, |row| {
        let new = value(call, 1 - array, row)?;
        let Some(view) = view(call, array, row)? else { return build_vector(&element, [new]).map(Some) };
        one_dimensional(&view)?;
        let mut values = view.elements(part).collect::<SqlResult<Vec<_>>>()?;
        if array == 0 {
            values.push(new);
        } else {
            values.insert(0, new);
        }
        let lower = view.dimensions().first().map_or(1, |d| d.lower);
        build(&element, &[Dimension { length: values.len() as i32, lower }], values).map(Some)
    })
}

fn concatenate(call: &Call<'_>) -> SqlResult<Column> {
    let element = element_of(call, &call.info.result_type)?;
    let part = Part::of(&element)?;
    each(call, |row| {
        let (left, right) = (bytes(call, 0, row)?, bytes(call, 1, row)?);
        let (Some(left), Some(right)) = (left, right) else { return Ok(left.or(right).map(<[u8]>::to_vec)) };
        let (a, b) = (ArrayView::parse(left)?, ArrayView::parse(right)?);
        match (a.dimensions(), b.dimensions()) {
            (_, []) => Ok(Some(left.to_vec())),
            ([], _) => Ok(Some(right.to_vec())),
            ([first], [_]) => {
                let values = a.elements(part).chain(b.elements(part)).collect::<SqlResult<Vec<_>>>()?;
                let dimensions = [Dimension { length: values.len() as i32, lower: first.lower }];
                build(&element, &dimensions, values).map(Some)
            }
            _ => Err(SqlError::unsupported("concatenating multidimensional arrays")),
        }
    })
}

/// Whether two values of an array's elements are equal; NULLs are equal where `nulls` says so.
fn same(call: &Call<'_>, ty: &TypeDesc, a: Option<ValueRef<'_>>, b: Option<ValueRef<'_>>) -> SqlResult<bool> {
    match (a, b) {
        (Some(a), Some(b)) => {
            stegodon_types::equal(&TypeContext::new(call.cx.types, call.cx.settings), ty, &call.info.collation, a, b)
        }
        (None, None) => Ok(true),
        _ => Ok(false),
    }
}

fn not_multidimensional(view: &ArrayView<'_>, what: &str) -> SqlResult<()> {
    if view.dimensions().len() > 1 {
        return Err(SqlError::new(
            SqlState::FeatureNotSupported,
            format!("{what} multidimensional arrays is not supported"),
        ));
    }
    Ok(())
}

/// `array_position`: the subscript of the first element like the one sought, from a subscript on.
fn position(call: &Call<'_>) -> SqlResult<Column> {
    let element = element_of(call, arg_type(call, 0)?)?;
    let part = Part::of(&element)?;
    let mut out = stegodon_types::ColumnBuilder::new(Layout::Int32, call.rows);
    for row in 0..call.rows {
        let found = (|| {
            let Some(view) = view(call, 0, row)? else { return Ok(None) };
            not_multidimensional(&view, "searching for elements in")?;
            let sought = value(call, 1, row)?;
            let from = if call.args.len() > 2 {
                match value(call, 2, row)? {
                    Some(ValueRef::Int32(n)) => n,
                    _ => {
                        return Err(SqlError::new(SqlState::NullValueNotAllowed, "initial position must not be null"));
                    }
                }
            } else {
                i32::MIN
            };
            let lower = view.dimensions().first().map_or(1, |d| d.lower);
            for (n, item) in view.elements(part).enumerate() {
                let at = lower.wrapping_add(n as i32);
                if at >= from && same(call, &element, item?, sought)? {
                    return Ok(Some(at));
                }
            }
            Ok(None)
        })()?;
        out.append_option(found.map(ValueRef::Int32))?;
    }
    Ok(shape(call, out.finish()))
}

fn positions(call: &Call<'_>) -> SqlResult<Column> {
    let element = element_of(call, arg_type(call, 0)?)?;
    let int4 = element_of(call, &call.info.result_type)?;
    let part = Part::of(&element)?;
    each(call, |row| {
        let Some(view) = view(call, 0, row)? else { return Ok(None) };
        not_multidimensional(&view, "searching for elements in")?;
        let sought = value(call, 1, row)?;
        let lower = view.dimensions().first().map_or(1, |d| d.lower);
        let mut found = Vec::new();
        for (n, item) in view.elements(part).enumerate() {
            if same(call, &element, item?, sought)? {
                found.push(Some(ValueRef::Int32(lower.wrapping_add(n as i32))));
            }
        }
        build_vector(&int4, found).map(Some)
    })
}

/// `array_remove` and `array_replace`.
fn replace(call: &Call<'_>, remove: bool) -> SqlResult<Column> {
    let element = element_of(call, &call.info.result_type)?;
    let part = Part::of(&element)?;
    each(call, |row| {
        let Some(view) = view(call, 0, row)? else { return Ok(None) };
        if remove {
            not_multidimensional(&view, "removing elements from")?;
        }
        let sought = value(call, 1, row)?;
        let new = if remove { None } else { value(call, 2, row)? };
        let mut values = Vec::with_capacity(view.len());
        for item in view.elements(part) {
            let item = item?;
            match same(call, &element, item, sought)? {
                true if remove => {}
                true => values.push(new),
                false => values.push(item),
            }
        }
        if values.is_empty() {
            return Ok(Some(empty(element.oid)));
        }
        let mut dimensions = view.dimensions().to_vec();
        if let (true, Some(d)) = (remove, dimensions.first_mut()) {
            d.length = values.len() as i32;
        }
        build(&element, &dimensions, values).map(Some)
    })
}

/// `@>`, `<@`, `&&`: whether all (or any) elements of one array are in the other. A NULL is in none.
fn containment(call: &Call<'_>, inner: usize, all: bool) -> SqlResult<Column> {
    let element = element_of(call, arg_type(call, 0)?)?;
    let part = Part::of(&element)?;
    map_rows(call, |row| {
        let (Some(inner), Some(outer)) = (view(call, inner, row)?, view(call, 1 - inner, row)?) else {
            return Ok(false);
        };
        if inner.element_type() != outer.element_type() {
            return Err(SqlError::new(SqlState::DatatypeMismatch, "cannot compare arrays of different element types"));
        }
        let outer = outer.elements(part).collect::<SqlResult<Vec<_>>>()?;
        for item in inner.elements(part) {
            let item = item?;
            let mut found = false;
            if item.is_some() {
                for other in &outer {
                    if other.is_some() && same(call, &element, item, *other)? {
                        found = true;
                        break;
                    }
                }
            }
            if found != all {
                return Ok(found);
            }
        }
        Ok(all)
    })
}

fn to_string(call: &Call<'_>) -> SqlResult<Column> {
    let element = element_of(call, arg_type(call, 0)?)?;
    let part = Part::of(&element)?;
    let text_out = ops(&element)?.text_out;
    let cx = TypeContext::new(call.cx.types, call.cx.settings);
    each(call, |row| {
        let (Some(view), Some(separator)) = (view(call, 0, row)?, bytes(call, 1, row)?) else { return Ok(None) };
        let null = if call.args.len() > 2 { bytes(call, 2, row)? } else { None };
        let mut out = Vec::new();
        let mut first = true;
        for item in view.elements(part) {
            let item = item?;
            if item.is_none() && null.is_none() {
                continue;
            }
            if !std::mem::take(&mut first) {
                out.extend_from_slice(separator);
            }
            match item {
                Some(v) => text_out(&cx, &element, v, &mut out)?,
                None => out.extend_from_slice(null.unwrap_or_default()),
            }
        }
        Ok(Some(out))
    })
}

/// The fields of a text: between separators, or single characters where there is none.
pub(crate) fn split<'a>(cx: &EvalContext<'_>, text: &'a [u8], separator: Option<&[u8]>) -> Vec<&'a [u8]> {
    match separator {
        _ if text.is_empty() => Vec::new(),
        None => chars(cx.settings.encoding, text).collect(),
        Some([]) => vec![text],
        Some(separator) => {
            let mut fields = Vec::new();
            let mut start = 0;
            for at in memmem::find_iter(text, separator) {
                fields.push(text.get(start..at).unwrap_or_default());
                start = at + separator.len();
            }
            fields.push(text.get(start..).unwrap_or_default());
            fields
        }
    }
}

fn from_string(call: &Call<'_>) -> SqlResult<Column> {
    call.info.collation.for_equality().check_equality()?;
    let element = element_of(call, &call.info.result_type)?;
    each(call, |row| {
        let Some(text) = bytes(call, 0, row)? else { return Ok(None) };
        let null = if call.args.len() > 2 { bytes(call, 2, row)? } else { None };
        let fields = split(call.cx, text, bytes(call, 1, row)?);
        let values = fields.into_iter().map(|f| (Some(f) != null).then_some(ValueRef::Bytes(f)));
        build_vector(&element, values).map(Some)
    })
}

fn dims(payload: &[u8], out: &mut Vec<u8>) -> SqlResult<bool> {
    let view = ArrayView::parse(payload)?;
    for d in view.dimensions() {
        out.extend_from_slice(format!("[{}:{}]", d.lower, d.upper()).as_bytes());
    }
    Ok(!view.dimensions().is_empty())
}

fn trim(call: &Call<'_>) -> SqlResult<Column> {
    let element = element_of(call, &call.info.result_type)?;
    let part = Part::of(&element)?;
    each(call, |row| {
        let (Some(view), Some(ValueRef::Int32(n))) = (view(call, 0, row)?, value(call, 1, row)?) else {
            return Ok(None);
        };
        let length = view.dimensions().first().map_or(0, |d| d.length);
        if n < 0 || n > length {
            return Err(SqlError::new(
                SqlState::ArraySubscriptError,
                format!("number of elements to trim must be between 0 and {length}"),
            ));
        }
        if view.dimensions().len() > 1 {
            return Err(SqlError::unsupported("trimming a multidimensional array"));
        }
        let values = view.elements(part).take((length - n) as usize).collect::<SqlResult<Vec<_>>>()?;
        build_vector(&element, values).map(Some)
    })
}

/// Arrays.
pub(crate) static KERNELS: &[Entry] = &[
    (2176, |c| map2(c, |a: &[u8], n: i32| Ok(dimension(a, n)?.map(|d| d.length)))),
    (2091, |c| map2(c, |a: &[u8], n: i32| Ok(dimension(a, n)?.map(|d| d.lower)))),
    (2092, |c| map2(c, |a: &[u8], n: i32| Ok(dimension(a, n)?.map(Dimension::upper)))),
    (748, |c| {
        map1(c, |a: &[u8]| {
            let n = ArrayView::parse(a)?.dimensions().len() as i32;
            Ok((n > 0).then_some(n))
        })
    }),
    (747, |c| write1(c, |a: &[u8], out| dims(a, out))),
    (3179, |c| map1(c, |a: &[u8]| Ok(ArrayView::parse(a)?.len() as i32))),
    (378, |c| extend(c, 0)),
    (379, |c| extend(c, 1)),
    (383, concatenate),
    (3277, position),
    (3278, position),
    (3279, positions),
    (3167, |c| replace(c, true)),
    (3168, |c| replace(c, false)),
    (2748, |c| containment(c, 1, true)),
    (2749, |c| containment(c, 0, true)),
    (2747, |c| containment(c, 0, false)),
    (395, to_string),
    (384, to_string),
    (394, from_string),
    (376, from_string),
    (6172, trim),
];
