//! `json_agg`, `jsonb_agg`, `json_object_agg`, `jsonb_object_agg`.

use stegodon_format::version::Version;
use stegodon_types::json::jsonb::{Value, encode};
use stegodon_types::json::print;
use stegodon_types::{Datum, SqlError, SqlResult, SqlState, ValueRef};

use super::AggregateInfo;
use crate::EvalContext;
use crate::kernels::json_make::{Maker, Typed, null_key};

fn typed<'a>(info: &'a AggregateInfo, n: usize, value: Option<ValueRef<'a>>) -> SqlResult<Typed<'a>> {
    Ok(Typed { ty: info.arg(n)?, names: info.row_names.get(n).and_then(|n| n.as_deref()), value })
}

/// `json_agg`.
pub(super) fn array(
    cx: &EvalContext<'_>,
    info: &AggregateInfo,
    values: &[Option<ValueRef<'_>>],
    skip_nulls: bool,
) -> SqlResult<Option<Datum>> {
    let maker = Maker::new(cx);
    let structured = maker.is_structured(info.arg(0)?)?;
    let mut out = vec![b'['];
    for value in values.iter().filter(|v| !skip_nulls || v.is_some()) {
        if out.len() > 1 {
            out.extend_from_slice(b", ");
            if structured && value.is_some() {
                out.extend_from_slice(b"\n ");
            }
        }
        maker.json(typed(info, 0, *value)?, false, &mut out)?;
    }
    out.push(b']');
    Ok(Some(Datum::bytes(out)))
}

/// `jsonb_agg`.
pub(super) fn binary_array(
    cx: &EvalContext<'_>,
    info: &AggregateInfo,
    values: &[Option<ValueRef<'_>>],
    skip_nulls: bool,
) -> SqlResult<Option<Datum>> {
    let maker = Maker::new(cx);
    let kept = values.iter().filter(|v| !skip_nulls || v.is_some());
    let elements = kept.map(|v| maker.jsonb(typed(info, 0, *v)?)).collect::<SqlResult<_>>()?;
    let mut out = Vec::new();
    encode(Value::Array(elements), &mut out)?;
    Ok(Some(Datum::bytes(out)))
}

fn null_name(cx: &EvalContext<'_>) -> SqlError {
    if cx.settings.version < Version::V16 {
        return SqlError::new(SqlState::InvalidParameterValue, "field name must not be null");
    }
    null_key()
}

/// `json_object_agg`: pairs in the order of the rows, of equal keys all.
pub(super) fn object(
    cx: &EvalContext<'_>,
    info: &AggregateInfo,
    values: &[Option<ValueRef<'_>>],
    skip_nulls: bool,
) -> SqlResult<Option<Datum>> {
    let maker = Maker::new(cx);
    let mut out = b"{ ".to_vec();
    for pair in values.chunks(2) {
        let [key, value] = pair else { break };
        let key = maker.key(typed(info, 0, *key)?, || null_name(cx))?;
        if skip_nulls && value.is_none() {
            continue;
        }
        if out.len() > 2 {
            out.extend_from_slice(b", ");
        }
        print::string(&key, &mut out);
        out.extend_from_slice(b" : ");
        maker.json(typed(info, 1, *value)?, false, &mut out)?;
    }
    out.extend_from_slice(b" }");
    Ok(Some(Datum::bytes(out)))
}

/// `jsonb_object_agg`.
pub(super) fn binary_object(
    cx: &EvalContext<'_>,
    info: &AggregateInfo,
    values: &[Option<ValueRef<'_>>],
    skip_nulls: bool,
) -> SqlResult<Option<Datum>> {
    let maker = Maker::new(cx);
    let mut pairs = Vec::with_capacity(values.len() / 2);
    for pair in values.chunks(2) {
        let [key, value] = pair else { break };
        let null = || SqlError::new(SqlState::InvalidParameterValue, "field name must not be null");
        let key = maker.key(typed(info, 0, *key)?, null)?;
        if skip_nulls && value.is_none() {
            continue;
        }
        pairs.push((key, maker.jsonb(typed(info, 1, *value)?)?));
    }
    let mut out = Vec::new();
    encode(Value::Object(pairs), &mut out)?;
    Ok(Some(Datum::bytes(out)))
}
