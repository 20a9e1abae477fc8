//! `oidvector` and `int2vector`: arrays of one dimension without NULLs, subscripts from 0, printed without braces.

use std::cmp::Ordering;

use super::{ArrayView, Dimension, OPS as ARRAY_OPS, build, declared_element, to_datum};
use crate::ops::get;
use crate::packed::Part;
use crate::scalar::ids::parse_oid_prefix;
use crate::scalar::int::write;
use crate::scalar::{invalid_syntax, is_space, value_out_of_range};
use crate::{
    Collation, Datum, SqlResult, TypeContext, TypeDesc, TypeOps, ValueRef, hash as hashing, key as keys, oids,
};

/// `oidvector`: compared by length first.
pub static OIDVECTOR: TypeOps = TypeOps {
    text_out,
    text_in: oidvector_in,
    binary_in,
    compare: Some(compare),
    equal: Some(crate::equal_by!(compare)),
    key: Some(key),
    hash: Some(hash),
    ..ARRAY_OPS
};

/// `int2vector`: compared as an array.
pub static INT2VECTOR: TypeOps = TypeOps { text_out, text_in: int2vector_in, binary_in, ..ARRAY_OPS };

/// The numbers of an `oidvector` or `int2vector`.
pub fn numbers(payload: &[u8]) -> SqlResult<Vec<i64>> {
    let view = ArrayView::parse(payload)?;
    let row = crate::builtin(view.element_type()).ok_or_else(|| crate::packed::corrupt("vector"))?;
    view.elements(Part::of(&row.desc())?)
        .map(|value| match value? {
            Some(ValueRef::Int16(v)) => Ok(i64::from(v)),
            Some(ValueRef::UInt32(v)) => Ok(i64::from(v)),
            _ => Err(crate::packed::corrupt("vector")),
        })
        .collect()
}

fn text_out(_: &TypeContext<'_>, ty: &TypeDesc, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    for (at, number) in numbers(get::bytes(ty, v)?)?.into_iter().enumerate() {
        if at > 0 {
            out.push(b' ');
        }
        write(number, out);
    }
    Ok(())
}

/// The payload of a vector: even an empty one has its dimension.
fn vector(cx: &TypeContext<'_>, ty: &TypeDesc, values: &[Datum]) -> SqlResult<Datum> {
    let element = declared_element(cx, ty)?;
    let length = values.len() as i32;
    if values.is_empty() {
        let mut out = 1i32.to_le_bytes().to_vec();
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&element.oid.0.to_le_bytes());
        out.extend_from_slice(&[0; 8]);
        return Ok(to_datum(out));
    }
    let dimension = Dimension { length, lower: 0 };
    Ok(to_datum(build(&element, &[dimension], values.iter().map(|v| Some(v.as_ref())))?))
}

/// An `oidvector` of these OIDs.
pub fn oidvector(oids: &[u32]) -> SqlResult<Vec<u8>> {
    let settings = crate::FormatSettings::default();
    let cx = TypeContext::new(&crate::BuiltinTypes, &settings);
    let ty = cx.types.type_desc(oids::OIDVECTOR)?;
    let values: Vec<Datum> = oids.iter().map(|oid| Datum::UInt32(*oid)).collect();
    Ok(vector(&cx, &ty, &values)?.as_bytes().unwrap_or_default().to_vec())
}

fn oidvector_in(cx: &TypeContext<'_>, ty: &TypeDesc, text: &[u8], _: i32) -> SqlResult<Datum> {
    let mut values = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return vector(cx, ty, &values);
        }
        let (oid, tail) = parse_oid_prefix(cx.settings.version, rest)?;
        values.push(Datum::UInt32(oid));
        rest = tail;
    }
}

fn int2vector_in(cx: &TypeContext<'_>, ty: &TypeDesc, text: &[u8], _: i32) -> SqlResult<Datum> {
    let mut values = Vec::new();
    let mut rest = text;
    loop {
        while let [b, tail @ ..] = rest
            && is_space(*b)
        {
            rest = tail;
        }
        if rest.is_empty() {
            return vector(cx, ty, &values);
        }
        let sign = usize::from(matches!(rest, [b'-' | b'+', ..]));
        let digits = rest.iter().skip(sign).take_while(|b| b.is_ascii_digit()).count();
        let syntax = || invalid_syntax("smallint", rest);
        if digits == 0 {
            return Err(syntax());
        }
        let (number, tail) = rest.split_at_checked(sign + digits).unwrap_or_default();
        let number = std::str::from_utf8(number).ok().and_then(|n| n.parse::<i16>().ok());
        values.push(Datum::Int16(number.ok_or_else(|| value_out_of_range("smallint", rest))?));
        if !matches!(tail, [] | [b' ', ..]) {
            return Err(syntax());
        }
        rest = tail;
    }
}

/// An array of the vector's shape. An empty vector's own binary form is refused, as the server refuses it.
fn binary_in(cx: &TypeContext<'_>, ty: &TypeDesc, bytes: &[u8], typmod: i32) -> SqlResult<Datum> {
    let array = (ARRAY_OPS.binary_in)(cx, ty, bytes, typmod)?;
    let view = ArrayView::parse(array.as_bytes().unwrap_or_default())?;
    match view.dimensions() {
        [Dimension { lower: 0, .. }] if !view.has_nulls() => Ok(array.clone()),
        _ => Err(super::invalid(format!("invalid {} data", ty.name))),
    }
}

/// `btoidvectorcmp`.
pub fn compare(
    _: &TypeContext<'_>,
    ty: &TypeDesc,
    _: &Collation,
    a: ValueRef<'_>,
    b: ValueRef<'_>,
) -> SqlResult<Ordering> {
    let (a, b) = (numbers(get::bytes(ty, a)?)?, numbers(get::bytes(ty, b)?)?);
    Ok(a.len().cmp(&b.len()).then_with(|| a.cmp(&b)))
}

fn key(_: &TypeContext<'_>, ty: &TypeDesc, _: &Collation, v: ValueRef<'_>, out: &mut Vec<u8>) -> SqlResult<()> {
    let numbers = numbers(get::bytes(ty, v)?)?;
    keys::u32(numbers.len() as u32, out);
    for n in numbers {
        keys::u32(n as u32, out);
    }
    Ok(())
}

fn hash(_: &TypeContext<'_>, ty: &TypeDesc, _: &Collation, v: ValueRef<'_>, seed: u64) -> SqlResult<u64> {
    let bytes: Vec<u8> = numbers(get::bytes(ty, v)?)?.iter().flat_map(|n| (*n as u32).to_le_bytes()).collect();
    Ok(hashing::bytes_extended(&bytes, seed))
}
