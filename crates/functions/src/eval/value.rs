//! Values that come from elsewhere than a column or a kernel: the session, a type's input function, a subquery.

use std::sync::Arc;

use stegodon_nodes::expr::{SqlValueKind, SubPlan};
use arrow_array::Array;
use stegodon_types::{ColumnBuilder, SqlState, Datum, Layout, SqlError, SqlResult, TypeContext, TypeDesc, oids, ops};

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
        SqlValueKind::CurrentSchema => name(crate::kernels::session::current_schema(cx)),
        SqlValueKind::CurrentTimestamp => {
            let us = round_us(cx.session.transaction_start_us(), typmod);
            Column::constant(Layout::Int64, Some(&Datum::Int64(us)))
        }
        SqlValueKind::CurrentDate
        | SqlValueKind::CurrentTime
        | SqlValueKind::LocalTime
        | SqlValueKind::LocalTimestamp => Err(SqlError::unsupported(format_args!("{kind:?}"))),
    }
}

fn role_name(cx: &EvalContext<'_>, oid: stegodon_types::Oid) -> SqlResult<Column> {
    match cx.catalog.role(oid) {
        Some(role) => Column::constant(Layout::Name, Some(&Datum::bytes(&role.name))),
        None => {
            Err(SqlError::new(SqlState::UndefinedObject, format!("role with OID {oid} does not exist")))
        }
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
