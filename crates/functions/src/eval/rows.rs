//! Row values: constructing them, their fields, comparing them.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::Array;
use stegodon_nodes::expr::RowCompareKind;
use stegodon_types::record::{self, RecordView};
use stegodon_types::{
    Collation, ColumnBuilder, Comparator, Layout, Oid, SqlError, SqlResult, TypeContext, TypeDesc, oids,
};

use super::arrays::holds;
use super::lazy::{Truth, Truths};
use super::{Frame, Node, layout_of};
use crate::Column;
use crate::adapt::Arg;
use crate::column::{ByteBuilder, booleans};

/// One field of `ROW(…)`.
#[derive(Debug)]
pub(crate) struct Field {
    pub node: Node,
    pub layout: Layout,
    pub type_oid: Oid,
    pub typmod: i32,
    pub collation: Oid,
}

fn types<'a>(frame: &Frame<'a>) -> TypeContext<'a> {
    TypeContext::new(frame.cx.types, frame.cx.settings)
}

fn payload_at(column: &Column, row: usize) -> SqlResult<Option<&[u8]>> {
    let row = if column.is_const() { 0 } else { row };
    if column.array().is_null(row) {
        return Ok(None);
    }
    Ok(Some(<&[u8]>::at(<&[u8]>::values(column.array())?, row)))
}

/// `ROW(…)`.
pub(super) fn row(fields: &[Field], row_type: Oid, frame: &Frame<'_>) -> SqlResult<Column> {
    let cx = types(frame);
    let columns = fields.iter().map(|f| f.node.eval(frame)).collect::<SqlResult<Vec<_>>>()?;
    let constant = columns.iter().all(Column::is_const);
    let rows = if constant { 1 } else { frame.rows };
    let mut out = ByteBuilder::new(Layout::Bytes, rows, 0);
    let named = if row_type == oids::RECORD { None } else { Some(frame.cx.types.composite(row_type)?) };
    for row in 0..rows {
        let mut values = columns.iter().zip(fields).map(|(c, f)| c.value(f.layout, row));
        let payload = match &named {
            None => {
                let fields: Vec<_> =
                    fields.iter().zip(values).map(|(f, v)| (f.type_oid, f.typmod, f.collation, v)).collect();
                record::build_anonymous(&cx, &fields)?
            }
            Some(attributes) => {
                // Columns added to the type since the row was written down are NULL.
                let values: Vec<_> =
                    attributes.iter().map(|a| values.next().flatten().filter(|_| !a.dropped)).collect();
                record::build(&cx, row_type, attributes, &values)?
            }
        };
        out.push(Some(&payload));
    }
    let array = out.finish()?;
    Ok(if constant { Column::Const(array) } else { Column::Array(array) })
}

/// A field of a row value.
pub(super) fn field_select(
    column: &Column,
    field: usize,
    result: &TypeDesc,
    frame: &Frame<'_>,
) -> SqlResult<Column> {
    let cx = types(frame);
    let rows = column.array().len();
    let mut out = ColumnBuilder::new(layout_of(result)?, rows);
    for row in 0..rows {
        let Some(payload) = payload_at(column, row)? else {
            out.append_null();
            continue;
        };
        let view = RecordView::parse(&cx, payload)?;
        match view.columns.get(field) {
            Some(c) if c.dropped => out.append_null(),
            Some(c) if c.type_oid == result.oid => {
                out.append_option(view.value(&cx, field)?.as_ref().map(stegodon_types::packed::Item::value))?;
            }
            _ => return Err(SqlError::internal("a row has no such field")),
        }
    }
    let array = out.finish();
    Ok(if column.is_const() { Column::Const(array) } else { Column::Array(array) })
}

/// `IS [NOT] NULL` of a row: whether all its fields are, or none is.
pub(super) fn row_null_test(column: &Column, is_null: bool, frame: &Frame<'_>) -> SqlResult<Column> {
    let cx = types(frame);
    let mut truths = Vec::with_capacity(column.array().len());
    for row in 0..column.array().len() {
        let Some(payload) = payload_at(column, row)? else {
            truths.push(is_null);
            continue;
        };
        let view = RecordView::parse(&cx, payload)?;
        let values = view.values(&cx)?;
        let mut fields = view.columns.iter().zip(&values).filter(|(c, _)| !c.dropped);
        truths.push(fields.all(|(_, v)| v.is_none() == is_null));
    }
    let array = booleans(truths.into(), None);
    Ok(if column.is_const() { Column::Const(array) } else { Column::Array(array) })
}

/// One column of a comparison of rows.
#[derive(Debug)]
pub(crate) struct RowPair {
    pub left: Node,
    pub right: Node,
    pub left_layout: Layout,
    pub right_layout: Layout,
    pub ty: Arc<TypeDesc>,
    pub collation: Collation,
    pub compare: Comparator,
}

/// `ROW(a, b) < ROW(c, d)`.
#[derive(Debug)]
pub(crate) struct RowCompareNode {
    pub kind: RowCompareKind,
    pub pairs: Vec<RowPair>,
}

/// Columns are compared until two differ; a NULL before that makes the result NULL. Later columns are not evaluated.
pub(super) fn row_compare(node: &RowCompareNode, frame: &Frame<'_>) -> SqlResult<Column> {
    let cx = types(frame);
    let mut truths = vec![Truth::Null; frame.rows];
    let mut live: Vec<u32> = (0..frame.rows as u32).collect();
    let mut set = |row: u32, truth| {
        if let Some(t) = truths.get_mut(row as usize) {
            *t = truth;
        }
    };
    let truth = |order| if holds(node.kind, order) { Truth::True } else { Truth::False };
    for pair in &node.pairs {
        if live.is_empty() {
            break;
        }
        let (left, right) = (frame.eval_on(&pair.left, &live)?, frame.eval_on(&pair.right, &live)?);
        let mut equal = Vec::new();
        for (i, &row) in live.iter().enumerate() {
            let (Some(a), Some(b)) = (left.value(pair.left_layout, i), right.value(pair.right_layout, i)) else {
                continue;
            };
            match (pair.compare)(&cx, &pair.ty, &pair.collation, a, b)? {
                Ordering::Equal => equal.push(row),
                order => set(row, truth(order)),
            }
        }
        live = equal;
    }
    for row in live {
        set(row, truth(Ordering::Equal));
    }
    Ok(super::arrays::truths_column(&truths))
}

/// For a domain's checks.
pub(super) fn is_false(column: &Column, row: usize) -> SqlResult<bool> {
    Ok(Truths::of(column)?.at(row) == Truth::False)
}
