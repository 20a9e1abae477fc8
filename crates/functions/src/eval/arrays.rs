//! Arrays in expressions: `= ANY`, `ARRAY[…]`, subscripts, slices, casts element by element.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use stegodon_types::array::{ArrayView, Dimension, MAX_DIMENSIONS, build, build_vector, empty};
use stegodon_types::packed::Part;
use stegodon_types::{ColumnBuilder, Layout, SqlError, SqlResult, SqlState, TypeDesc, ValueRef, value_at};

use super::lazy::{Truth, Truths};
use super::{Callee, Frame, Node, layout_of};
use crate::adapt::Arg;
use crate::column::{ByteBuilder, booleans};
use crate::{Batch, Column};

/// `scalar op ANY/ALL (array)`.
#[derive(Debug)]
pub(crate) struct ScalarArrayNode {
    pub callee: Callee,
    pub any: bool,
    pub strict: bool,
    pub scalar: Node,
    pub array: Node,
    pub element: Arc<TypeDesc>,
    /// The operator is the equality of a type whose Arrow values are equal as its values are: large arrays are searched.
    pub own_equality: bool,
}

/// Arrays from this length on are searched, not walked.
const SEARCHED: usize = 9;

/// The elements of an array as a column.
fn elements(payload: &[u8], element: &TypeDesc) -> SqlResult<ArrayRef> {
    let view = ArrayView::parse(payload)?;
    let part = Part::of(element)?;
    let mut out = ColumnBuilder::new(part.layout, view.len());
    for value in view.elements(part) {
        out.append_option(value?)?;
    }
    Ok(out.finish())
}

/// The payload at a row of a column of arrays.
fn payload_at(column: &Column, row: usize) -> SqlResult<Option<&[u8]>> {
    let row = if column.is_const() { 0 } else { row };
    if column.array().is_null(row) {
        return Ok(None);
    }
    Ok(Some(<&[u8]>::at(<&[u8]>::values(column.array())?, row)))
}

/// A set of values to look up.
enum Set<'a> {
    Numbers(Vec<i128>),
    Bytes(HashSet<&'a [u8]>),
}

fn number(value: ValueRef<'_>) -> Option<i128> {
    Some(match value {
        ValueRef::Bool(v) => i128::from(v),
        ValueRef::Char(v) => i128::from(v),
        ValueRef::Int16(v) => i128::from(v),
        ValueRef::Int32(v) => i128::from(v),
        ValueRef::UInt32(v) => i128::from(v),
        ValueRef::Int64(v) => i128::from(v),
        ValueRef::UInt64(v) => i128::from(v),
        _ => return None,
    })
}

impl<'a> Set<'a> {
    /// The set, and whether NULL is among the elements.
    fn of(array: &'a ArrayRef, layout: Layout) -> Option<(Set<'a>, bool)> {
        let values = || (0..array.len()).filter_map(|i| value_at(array.as_ref(), layout, i));
        let null = array.null_count() > 0;
        if matches!(layout, Layout::Bytes | Layout::Name | Layout::Fixed(_)) {
            let set = values().map(|v| if let ValueRef::Bytes(b) = v { Some(b) } else { None }).collect::<Option<_>>();
            return Some((Set::Bytes(set?), null));
        }
        let mut numbers = values().map(number).collect::<Option<Vec<_>>>()?;
        numbers.sort_unstable();
        Some((Set::Numbers(numbers), null))
    }

    fn contains(&self, value: ValueRef<'_>) -> bool {
        match (self, value) {
            (Set::Bytes(set), ValueRef::Bytes(v)) => set.contains(v),
            (Set::Numbers(sorted), v) => number(v).is_some_and(|v| sorted.binary_search(&v).is_ok()),
            _ => false,
        }
    }
}

pub(super) fn truths_column(truths: &[Truth]) -> Column {
    let values = BooleanBuffer::collect_bool(truths.len(), |i| truths.get(i) == Some(&Truth::True));
    let nulls = truths.contains(&Truth::Null).then(|| {
        NullBuffer::new(BooleanBuffer::collect_bool(truths.len(), |i| truths.get(i) != Some(&Truth::Null)))
    });
    Column::Array(booleans(values, nulls))
}

/// `scalar op ANY/ALL (array)`.
pub(super) fn scalar_array(node: &ScalarArrayNode, frame: &Frame<'_>) -> SqlResult<Column> {
    let scalar = node.scalar.eval(frame)?;
    let array = node.array.eval(frame)?;
    let constant = scalar.is_const() && array.is_const();
    let rows = if constant { 1 } else { frame.rows };
    let truths = if array.is_const() {
        constant_array(node, &scalar, &array, rows, frame)?
    } else {
        let mut truths = Vec::with_capacity(rows);
        for row in 0..rows {
            truths.push(one_row(node, &scalar, &array, row, frame)?);
        }
        truths
    };
    let column = truths_column(&truths);
    Ok(if constant { Column::Const(Arc::clone(column.array())) } else { column })
}

/// One array for all rows: element by element over the rows not yet decided.
fn constant_array(
    node: &ScalarArrayNode,
    scalar: &Column,
    array: &Column,
    rows: usize,
    frame: &Frame<'_>,
) -> SqlResult<Vec<Truth>> {
    let Some(payload) = payload_at(array, 0)? else { return Ok(vec![Truth::Null; rows]) };
    let values = elements(payload, &node.element)?;
    let undecided = if node.any { Truth::False } else { Truth::True };
    let decided = if node.any { Truth::True } else { Truth::False };
    if values.is_empty() {
        return Ok(vec![undecided; rows]);
    }
    let layout = layout_of(&node.element)?;
    if node.own_equality && node.any && values.len() >= SEARCHED {
        node.callee.info.collation.for_equality().check_equality().or_else(|e| {
            // Only text asks for a collation.
            if layout == Layout::Bytes { Err(e) } else { Ok(()) }
        })?;
        if let Some((set, null)) = Set::of(&values, layout) {
            return Ok((0..rows)
                .map(|row| match scalar.value(layout, row) {
                    None => Truth::Null,
                    Some(v) if set.contains(v) => Truth::True,
                    Some(_) if null => Truth::Null,
                    Some(_) => Truth::False,
                })
                .collect());
        }
    }
    let mut truths = vec![undecided; rows];
    let mut live: Vec<u32> = (0..rows as u32).collect();
    for i in 0..values.len() {
        if live.is_empty() {
            break;
        }
        if values.is_null(i) && node.strict {
            live.iter().for_each(|&row| set(&mut truths, row, Truth::Null));
            continue;
        }
        let element = Column::Const(values.slice(i, 1));
        let some = if live.len() == rows { scalar.clone() } else { scalar.take(&live)? };
        let result = node.callee.call(frame.cx, &[some, element], live.len())?;
        let results = Truths::of(&result)?;
        let mut kept = Vec::with_capacity(live.len());
        for (n, &row) in live.iter().enumerate() {
            match results.at(n) {
                t if t == decided => {
                    set(&mut truths, row, decided);
                    continue;
                }
                Truth::Null => set(&mut truths, row, Truth::Null),
                _ => {}
            }
            kept.push(row);
        }
        live = kept;
    }
    Ok(truths)
}

fn set(truths: &mut [Truth], row: u32, truth: Truth) {
    if let Some(t) = truths.get_mut(row as usize) {
        *t = truth;
    }
}

/// One row with an array of its own.
fn one_row(
    node: &ScalarArrayNode,
    scalar: &Column,
    array: &Column,
    row: usize,
    frame: &Frame<'_>,
) -> SqlResult<Truth> {
    let undecided = if node.any { Truth::False } else { Truth::True };
    let Some(payload) = payload_at(array, row)? else { return Ok(Truth::Null) };
    let values = elements(payload, &node.element)?;
    if values.is_empty() {
        return Ok(undecided);
    }
    let scalar = match scalar {
        Column::Const(_) => scalar.clone(),
        Column::Array(a) => Column::Const(a.slice(row, 1)),
    };
    if node.strict && scalar.is_const_null() {
        return Ok(Truth::Null);
    }
    let over = |values: ArrayRef| -> SqlResult<Truth> {
        let rows = values.len();
        let result = node.callee.call(frame.cx, &[scalar.clone(), Column::Array(values)], rows)?;
        let results = Truths::of(&result)?;
        let mut truth = undecided;
        for i in 0..rows {
            match results.at(i) {
                Truth::Null => truth = Truth::Null,
                t if t != undecided => return Ok(t),
                _ => {}
            }
        }
        Ok(truth)
    };
    if let Ok(truth) = over(Arc::clone(&values)) {
        return Ok(truth);
    }
    // Some element fails: PostgreSQL meets it only if none before it decides.
    let mut truth = undecided;
    for i in 0..values.len() {
        match over(values.slice(i, 1))? {
            Truth::Null => truth = Truth::Null,
            t if t != undecided => return Ok(t),
            _ => {}
        }
    }
    Ok(truth)
}

fn mismatch() -> SqlError {
    SqlError::new(
        SqlState::ArraySubscriptError,
        "multidimensional arrays must have array expressions with matching dimensions",
    )
}

/// `ARRAY[…]`.
pub(super) fn array_constructor(
    nodes: &[Node],
    element: &TypeDesc,
    multidims: bool,
    frame: &Frame<'_>,
) -> SqlResult<Column> {
    let columns = nodes.iter().map(|n| n.eval(frame)).collect::<SqlResult<Vec<_>>>()?;
    let constant = columns.iter().all(Column::is_const);
    let rows = if constant { 1 } else { frame.rows };
    let layout = layout_of(element)?;
    let mut out = ByteBuilder::new(Layout::Bytes, rows, 0);
    for row in 0..rows {
        let payload = if multidims {
            nested(&columns, element, row)?
        } else {
            build_vector(element, columns.iter().map(|c| c.value(layout, row)))?
        };
        out.push(Some(&payload));
    }
    let array = out.finish()?;
    Ok(if constant { Column::Const(array) } else { Column::Array(array) })
}

/// An array of the arrays at a row.
fn nested(columns: &[Column], element: &TypeDesc, row: usize) -> SqlResult<Vec<u8>> {
    let part = Part::of(element)?;
    let mut inner: Option<Vec<Dimension>> = None;
    let mut values: Vec<Option<ValueRef<'_>>> = Vec::new();
    let mut have_empty = false;
    for column in columns {
        let Some(payload) = payload_at(column, row)? else {
            have_empty = true;
            continue;
        };
        let view = ArrayView::parse(payload)?;
        if view.dimensions().is_empty() {
            have_empty = true;
            continue;
        }
        match &inner {
            None => {
                if view.dimensions().len() >= MAX_DIMENSIONS {
                    return Err(SqlError::new(
                        SqlState::ProgramLimitExceeded,
                        format!(
                            "number of array dimensions ({}) exceeds the maximum allowed ({MAX_DIMENSIONS})",
                            view.dimensions().len() + 1
                        ),
                    ));
                }
                inner = Some(view.dimensions().to_vec());
            }
            Some(inner) if inner != view.dimensions() => return Err(mismatch()),
            Some(_) => {}
        }
        for value in view.elements(part) {
            values.push(value?);
        }
    }
    let Some(inner) = inner else { return Ok(empty(element.oid)) };
    if have_empty {
        return Err(mismatch());
    }
    let mut dimensions = vec![Dimension { length: columns.len() as i32, lower: 1 }];
    dimensions.extend(inner);
    build(element, &dimensions, values)
}

/// `x[i]`, `x[i:j]`.
#[derive(Debug)]
pub(crate) struct SubscriptNode {
    pub container: Node,
    pub upper: Vec<Option<Node>>,
    /// Empty where no slice is meant.
    pub lower: Vec<Option<Node>>,
    pub element: Arc<TypeDesc>,
    pub layout: Layout,
}

/// One row's subscripts; `None` where one of them is NULL.
fn bounds(columns: &[Option<Column>], row: usize) -> SqlResult<Option<Vec<Option<i32>>>> {
    let mut out = Vec::with_capacity(columns.len());
    for column in columns {
        out.push(match column {
            None => None,
            Some(c) => match c.value(Layout::Int32, row) {
                Some(ValueRef::Int32(v)) => Some(v),
                Some(_) => return Err(SqlError::internal("a subscript is no integer")),
                None => return Ok(None),
            },
        });
    }
    Ok(Some(out))
}

pub(super) fn subscript(node: &SubscriptNode, frame: &Frame<'_>) -> SqlResult<Column> {
    let container = node.container.eval(frame)?;
    let eval = |list: &[Option<Node>]| {
        list.iter().map(|n| n.as_ref().map(|n| n.eval(frame)).transpose()).collect::<SqlResult<Vec<_>>>()
    };
    let (upper, lower) = (eval(&node.upper)?, eval(&node.lower)?);
    let constant = container.is_const() && upper.iter().chain(&lower).flatten().all(Column::is_const);
    let rows = if constant { 1 } else { frame.rows };
    let part = Part::of(&node.element)?;
    let mut out = ColumnBuilder::new(node.layout, rows);
    for row in 0..rows {
        let (Some(payload), Some(upper), Some(lower)) =
            (payload_at(&container, row)?, bounds(&upper, row)?, bounds(&lower, row)?)
        else {
            out.append_null();
            continue;
        };
        let view = ArrayView::parse(payload)?;
        if node.lower.is_empty() {
            out.append_option(fetch(&view, part, &upper)?)?;
        } else {
            out.append(ValueRef::Bytes(&slice(&view, part, &node.element, &lower, &upper)?))?;
        }
    }
    let array = out.finish();
    Ok(if constant { Column::Const(array) } else { Column::Array(array) })
}

fn fetch<'a>(view: &ArrayView<'a>, part: Part, at: &[Option<i32>]) -> SqlResult<Option<ValueRef<'a>>> {
    if view.dimensions().len() != at.len() || at.is_empty() {
        return Ok(None);
    }
    let mut index = 0_usize;
    for (d, at) in view.dimensions().iter().zip(at) {
        let Some(at) = at else { return Err(SqlError::internal("a subscript is missing")) };
        let Ok(offset) = usize::try_from(i64::from(*at) - i64::from(d.lower)) else { return Ok(None) };
        if offset >= d.length as usize {
            return Ok(None);
        }
        index = index * d.length as usize + offset;
    }
    view.elements(part).nth(index).transpose().map(Option::flatten)
}

fn slice(
    view: &ArrayView<'_>,
    part: Part,
    element: &TypeDesc,
    lower: &[Option<i32>],
    upper: &[Option<i32>],
) -> SqlResult<Vec<u8>> {
    let dimensions = view.dimensions();
    if dimensions.len() < upper.len() || dimensions.is_empty() {
        return Ok(empty(element.oid));
    }
    // The range of each dimension, as offsets.
    let mut ranges: Vec<(i64, i64)> = Vec::with_capacity(dimensions.len());
    for (n, d) in dimensions.iter().enumerate() {
        let (first, last) = (i64::from(d.lower), i64::from(d.lower) + i64::from(d.length) - 1);
        let from = lower.get(n).copied().flatten().map_or(first, |l| i64::from(l).max(first));
        let to = upper.get(n).copied().flatten().map_or(last, |u| i64::from(u).min(last));
        if from > to {
            return Ok(empty(element.oid));
        }
        ranges.push((from - first, to - first));
    }
    let mut values = Vec::new();
    for (index, value) in view.elements(part).enumerate() {
        let mut rest = index as i64;
        let mut inside = true;
        for (d, (from, to)) in dimensions.iter().zip(&ranges).rev() {
            let offset = rest % i64::from(d.length);
            rest /= i64::from(d.length);
            inside &= (*from..=*to).contains(&offset);
        }
        if inside {
            values.push(value?);
        }
    }
    let sliced: Vec<Dimension> =
        ranges.iter().map(|(from, to)| Dimension { length: (to - from + 1) as i32, lower: 1 }).collect();
    build(element, &sliced, values)
}

/// A cast of an array, element by element: all rows' elements go through the cast at once.
pub(super) fn array_coerce(
    column: &Column,
    element: &Node,
    from: &TypeDesc,
    to: &TypeDesc,
    frame: &Frame<'_>,
) -> SqlResult<Column> {
    let rows = column.array().len();
    let part = Part::of(from)?;
    let to_layout = layout_of(to)?;
    let mut all = ColumnBuilder::new(part.layout, rows);
    let mut views = Vec::with_capacity(rows);
    for row in 0..rows {
        let view = payload_at(column, row)?.map(ArrayView::parse).transpose()?;
        for value in view.iter().flat_map(|v| v.elements(part)) {
            all.append_option(value?)?;
        }
        views.push(view);
    }
    let total = all.len();
    let cast = if total == 0 {
        arrow_array::new_empty_array(&to_layout.arrow())
    } else {
        let values = Column::Array(all.finish());
        let inner = Frame {
            cx: frame.cx,
            batch: &Batch { outer: &[], inner: &[], rows: total },
            selection: None,
            rows: total,
            case_test: Some(&values),
        };
        element.eval(&inner)?.into_array(total)?
    };
    let mut out = ByteBuilder::new(Layout::Bytes, rows, 0);
    let mut next = 0;
    for view in &views {
        match view {
            None => out.end_null(),
            Some(view) => {
                let values = (next..next + view.len()).map(|i| value_at(cast.as_ref(), to_layout, i));
                out.push(Some(&build(to, view.dimensions(), values)?));
                next += view.len();
            }
        }
    }
    let array = out.finish()?;
    Ok(if column.is_const() { Column::Const(array) } else { Column::Array(array) })
}

/// How two values are ordered by a B-tree support function; for [`super::rows`].
pub(super) fn holds(kind: stegodon_nodes::expr::RowCompareKind, order: Ordering) -> bool {
    use stegodon_nodes::expr::RowCompareKind::*;
    match kind {
        Less => order.is_lt(),
        LessEqual => order.is_le(),
        GreaterEqual => order.is_ge(),
        Greater => order.is_gt(),
    }
}
