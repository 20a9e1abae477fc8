//! Values that come from elsewhere than a column or a kernel: the session, a type's input function, a subquery.

use std::sync::Arc;

use arrow_array::Array;
use stegodon_nodes::expr::{SqlValueKind, SubPlan};
use stegodon_types::{ColumnBuilder, Datum, Layout, SqlError, SqlResult, SqlState, TypeContext, TypeDesc, oids, ops};

use super::{Frame, Node};
use crate::column::take;
use crate::{Batch, Column, EvalContext};

/// The layout of a type's values; `0A000` where the type is not supported.
pub(crate) fn layout_of(ty: &TypeDesc) -> SqlResult<Layout> {
    ty.layout.ok_or_else(|| SqlError::unsupported(format_args!("type {}", ty.name)))
}

/// What the session says.
pub(super) fn sql_value(kind: SqlValueKind, typmod: i32, cx: &EvalContext<'_>) -> SqlResult<Column> {
    let name = |text: Option<&str>| Column::constant(Layout::Name, text.map(Datum::bytes).as_ref());
    match kind {
        SqlValueKind::CurrentUser | SqlValueKind::User | SqlValueKind::CurrentRole => {
            role_name(cx, cx.session.current_user())
        }
        SqlValueKind::SessionUser => role_name(cx, cx.session.session_user()),
        SqlValueKind::CurrentCatalog => name(Some(cx.session.database_name())),
        SqlValueKind::CurrentSchema => name(crate::kernels::session::current_schema(cx).as_deref()),
        SqlValueKind::CurrentTimestamp => {
            let us = round_us(cx.session.transaction_start_us(), typmod);
            Column::constant(Layout::Int64, Some(&Datum::Int64(us)))
        }
        SqlValueKind::CurrentDate => {
            let days = local_us(cx)?.0.div_euclid(DAY_US);
            Column::constant(Layout::Int32, Some(&Datum::Int32(days as i32)))
        }
        SqlValueKind::LocalTimestamp => {
            let us = round_us(local_us(cx)?.0, typmod);
            Column::constant(Layout::Int64, Some(&Datum::Int64(us)))
        }
        SqlValueKind::LocalTime => {
            let us = round_us(local_us(cx)?.0.rem_euclid(DAY_US), typmod);
            Column::constant(Layout::Int64, Some(&Datum::Int64(us)))
        }
        SqlValueKind::CurrentTime => {
            let (local, offset) = local_us(cx)?;
            let us = round_us(local.rem_euclid(DAY_US), typmod);
            // timetz: the time of day, then the zone in seconds west of Greenwich.
            let mut bytes = us.to_le_bytes().to_vec();
            bytes.extend_from_slice(&(-offset).to_le_bytes());
            Column::constant(Layout::Fixed(12), Some(&Datum::bytes(bytes)))
        }
    }
}

const DAY_US: i64 = 86_400_000_000;
/// Microseconds from 1970 to 2000.
const EPOCH_US: i64 = 946_684_800_000_000;

/// The transaction's start in the session's time zone, as if that were UTC, and the zone's offset in seconds east.
fn local_us(cx: &EvalContext<'_>) -> SqlResult<(i64, i32)> {
    let us = cx.session.transaction_start_us();
    let at = us.checked_add(EPOCH_US).and_then(|us| jiff::Timestamp::from_microsecond(us).ok());
    let at = at.ok_or_else(|| SqlError::internal("the transaction's start is no time"))?;
    let offset = cx.settings.time_zone.to_offset(at).seconds();
    Ok((us + i64::from(offset) * 1_000_000, offset))
}

fn role_name(cx: &EvalContext<'_>, oid: stegodon_types::Oid) -> SqlResult<Column> {
    match cx.catalog.role(oid) {
        Some(role) => Column::constant(Layout::Name, Some(&Datum::bytes(&role.name))),
        None => Err(SqlError::new(SqlState::UndefinedObject, format!("role with OID {oid} does not exist"))),
    }
}

/// A time in microseconds, rounded to a number of decimal places of a second.
fn round_us(us: i64, typmod: i32) -> i64 {
    if !(0..6).contains(&typmod) {
        return us;
    }
    let scale = 10_i64.pow(6 - typmod as u32);
    let half = scale / 2;
    if us >= 0 {
        us.saturating_add(half) / scale * scale
    } else {
        -(us.saturating_neg().saturating_add(half) / scale * scale)
    }
}

/// A cast through text.
pub(super) fn via_io(
    column: &Column,
    from: &Arc<TypeDesc>,
    to: &Arc<TypeDesc>,
    layout: Layout,
    frame: &Frame<'_>,
) -> SqlResult<Column> {
    let cx = TypeContext::new(frame.cx.types, frame.cx.settings);
    let (text_out, text_in) = (ops(from)?.text_out, ops(to)?.text_in);
    let rows = column.array().len();
    let from_layout = layout_of(from)?;
    let mut builder = ColumnBuilder::new(layout, rows);
    let mut text = Vec::new();
    // The input functions of these take any text as it is, so the trip through a value is spared.
    let plain = matches!(to.oid, oids::TEXT | oids::VARCHAR) && from.oid != oids::UNKNOWN;
    for row in 0..rows {
        let Some(value) = stegodon_types::value_at(column.array().as_ref(), from_layout, row) else {
            builder.append_null();
            continue;
        };
        text.clear();
        text_out(&cx, from, value, &mut text)?;
        if plain {
            builder.append(stegodon_types::ValueRef::Bytes(&text))?;
        } else {
            builder.append(text_in(&cx, to, &text, -1)?.as_ref())?;
        }
    }
    let array = builder.finish();
    Ok(if column.is_const() { Column::Const(array) } else { Column::Array(array) })
}

/// A subquery, which the executor runs.
pub(super) fn sub_plan(plan: &SubPlan, params: &[Node], frame: &Frame<'_>) -> SqlResult<Column> {
    let runner = frame.cx.subplans.ok_or_else(|| SqlError::internal("a subplan outside of an executor"))?;
    let params = params.iter().map(|p| p.eval(frame)).collect::<SqlResult<Vec<_>>>()?;
    let Some(rows) = frame.selection else {
        return runner.evaluate(plan, frame.cx, frame.batch, &params);
    };
    let some = |side: &[arrow_array::ArrayRef]| side.iter().map(|a| take(a, rows)).collect::<SqlResult<Vec<_>>>();
    let (outer, inner) = (some(frame.batch.outer)?, some(frame.batch.inner)?);
    runner.evaluate(plan, frame.cx, &Batch { outer: &outer, inner: &inner, rows: rows.len() }, &params)
}

/// One CHECK of a domain: it sees the value as [`Node::CaseTest`].
#[derive(Debug)]
pub(crate) struct DomainCheck {
    pub name: String,
    pub node: Node,
}

/// A cast to a domain: NOT NULL first, then each CHECK; a CHECK that is NULL holds.
pub(super) fn domain(
    column: Column,
    name: &str,
    not_null: bool,
    checks: &[DomainCheck],
    frame: &Frame<'_>,
) -> SqlResult<Column> {
    let array = column.array();
    if not_null && array.null_count() > 0 {
        return Err(SqlError::new(SqlState::NotNullViolation, format!("domain {name} does not allow null values")));
    }
    let rows = array.len();
    for check in checks {
        let value = Column::Array(std::sync::Arc::clone(array));
        let inner = Frame {
            cx: frame.cx,
            batch: &Batch { outer: &[], inner: &[], rows },
            selection: None,
            rows,
            case_test: Some(&value),
        };
        let result = check.node.eval(&inner)?;
        for row in 0..rows {
            if super::rows::is_false(&result, row)? {
                return Err(SqlError::new(
                    SqlState::CheckViolation,
                    format!("value for domain {name} violates check constraint \"{}\"", check.name),
                ));
            }
        }
    }
    Ok(column)
}

/// Integers of one sign as those of the other.
pub(super) fn relabel(column: Column, to: Layout) -> SqlResult<Column> {
    let array = column.array().to_data();
    let relabelled = array.into_builder().data_type(to.arrow()).build().map_err(SqlError::internal)?;
    let relabelled = arrow_array::make_array(relabelled);
    Ok(if column.is_const() { Column::Const(relabelled) } else { Column::Array(relabelled) })
}
