//! AND, OR, CASE, COALESCE: arguments are evaluated only for the rows that PostgreSQL would evaluate them for.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, NullBuffer};
use stegodon_types::{Layout, SqlError, SqlResult};

use super::{Callee, Frame, Node, nulls};
use crate::Column;
use crate::column::{as_bool, booleans};

/// What a boolean column says of a row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Truth {
    True,
    False,
    Null,
}

/// A boolean column, row by row.
pub(crate) struct Truths<'a> {
    array: &'a BooleanArray,
    constant: bool,
}

impl<'a> Truths<'a> {
    pub(crate) fn of(column: &'a Column) -> SqlResult<Self> {
        Ok(Self { array: as_bool(column)?, constant: column.is_const() })
    }

    pub(crate) fn at(&self, row: usize) -> Truth {
        let row = if self.constant { 0 } else { row };
        if self.array.is_null(row) {
            Truth::Null
        } else if self.array.value(row) {
            Truth::True
        } else {
            Truth::False
        }
    }
}

/// AND and OR: `decided` is the value that ends it, false for AND and true for OR.
fn connective(args: &[Node], frame: &Frame<'_>, decided: bool) -> SqlResult<Column> {
    let mut live: Vec<u32> = Vec::new();
    let mut all = true;
    let mut done = vec![false; frame.rows];
    let mut unknown: Option<Vec<bool>> = None;
    let end = if decided { Truth::True } else { Truth::False };
    for (n, arg) in args.iter().enumerate() {
        if !all && live.is_empty() {
            break;
        }
        let column = if all { arg.eval(frame)? } else { frame.eval_on(arg, &live)? };
        if column.is_const() && all {
            match Truths::of(&column)?.at(0) {
                t if t == end && n == 0 => return Ok(column),
                Truth::Null => {}
                t if t != end => continue,
                _ => {}
            }
        }
        let truths = Truths::of(&column)?;
        if all {
            live = (0..frame.rows as u32).collect();
        }
        let mut kept = 0;
        for i in 0..live.len() {
            let row = live.get(i).copied().unwrap_or(0);
            let truth = truths.at(i);
            if truth == end {
                if let Some(d) = done.get_mut(row as usize) {
                    *d = true;
                }
                continue;
            }
            if truth == Truth::Null {
                let unknown = unknown.get_or_insert_with(|| vec![false; frame.rows]);
                if let Some(u) = unknown.get_mut(row as usize) {
                    *u = true;
                }
            }
            if let Some(slot) = live.get_mut(kept) {
                *slot = row;
            }
            kept += 1;
        }
        live.truncate(kept);
        all = live.len() == frame.rows;
    }
    let values = BooleanBuffer::collect_bool(frame.rows, |i| done.get(i).copied().unwrap_or(false) == decided);
    let nulls = unknown.map(|unknown| {
        NullBuffer::new(BooleanBuffer::collect_bool(frame.rows, |i| {
            done.get(i).copied().unwrap_or(false) || !unknown.get(i).copied().unwrap_or(false)
        }))
    });
    Ok(Column::Array(booleans(values, nulls)))
}

/// AND.
pub(super) fn and(args: &[Node], frame: &Frame<'_>) -> SqlResult<Column> {
    connective(args, frame, false)
}

/// OR.
pub(super) fn or(args: &[Node], frame: &Frame<'_>) -> SqlResult<Column> {
    connective(args, frame, true)
}

/// NOT.
pub(super) fn not(column: &Column) -> SqlResult<Column> {
    let array = as_bool(column)?;
    let array = booleans(!array.values(), array.nulls().cloned());
    Ok(if column.is_const() { Column::Const(array) } else { Column::Array(array) })
}

/// The rows for which every conjunct is true, as PostgreSQL evaluates a list of quals: a row leaves at the first that is
/// false or NULL.
pub(crate) fn filter(conjuncts: &[Node], frame: &Frame<'_>) -> SqlResult<Vec<u32>> {
    let mut live: Vec<u32> = (0..frame.rows as u32).collect();
    for conjunct in conjuncts {
        if live.is_empty() {
            break;
        }
        let column = frame.eval_on(conjunct, &live)?;
        if column.is_const() {
            if Truths::of(&column)?.at(0) != Truth::True {
                live.clear();
            }
            continue;
        }
        let array = as_bool(&column)?;
        let keep = match array.nulls() {
            None => array.values().clone(),
            Some(n) => array.values() & n.inner(),
        };
        if keep.len() != live.len() {
            return Err(SqlError::internal("a qual's column is not of its rows"));
        }
        if keep.count_set_bits() == live.len() {
            continue;
        }
        live = keep.set_indices().filter_map(|i| live.get(i).copied()).collect();
    }
    Ok(live)
}

/// Columns for disjoint sets of a frame's rows, put together.
struct Pieces {
    layout: Layout,
    rows: usize,
    /// Each row's piece (from 1; 0 for none) and place in it.
    place: Vec<(usize, usize)>,
    arrays: Vec<ArrayRef>,
}

impl Pieces {
    fn new(layout: Layout, rows: usize) -> Self {
        Self { layout, rows, place: vec![(0, 0); rows], arrays: Vec::new() }
    }

    fn add(&mut self, rows: &[u32], column: Column) {
        let constant = column.is_const();
        self.arrays.push(Arc::clone(column.array()));
        let piece = self.arrays.len();
        for (i, &row) in rows.iter().enumerate() {
            if let Some(place) = self.place.get_mut(row as usize) {
                *place = (piece, if constant { 0 } else { i });
            }
        }
    }

    fn finish(self) -> SqlResult<Column> {
        let null = nulls(self.layout)?;
        let mut arrays: Vec<&dyn Array> = vec![null.as_ref()];
        arrays.extend(self.arrays.iter().map(AsRef::as_ref));
        if arrays.iter().any(|a| a.data_type() != null.data_type()) {
            return Err(SqlError::internal("the branches of an expression are not of one layout"));
        }
        if self.place.len() != self.rows {
            return Err(SqlError::internal("the branches of an expression do not cover its rows"));
        }
        let array = arrow_select::interleave::interleave(&arrays, &self.place).map_err(SqlError::internal)?;
        Ok(Column::Array(array))
    }
}

/// CASE.
pub(super) fn case(
    arg: Option<&Node>,
    whens: &[(Node, Node)],
    default: &Node,
    layout: Layout,
    frame: &Frame<'_>,
) -> SqlResult<Column> {
    let tested = arg.map(|a| a.eval(frame)).transpose()?;
    // Inside the WHEN conditions CaseTest is this CASE's; the results see the outer one, if any, which no tree uses.
    let inner = Frame { case_test: tested.as_ref().or(frame.case_test), ..*frame };
    let mut live: Vec<u32> = (0..frame.rows as u32).collect();
    let mut pieces = Pieces::new(layout, frame.rows);
    for (condition, result) in whens {
        if live.is_empty() {
            break;
        }
        let column = inner.eval_on(condition, &live)?;
        let truths = Truths::of(&column)?;
        if column.is_const() {
            if truths.at(0) == Truth::True {
                if live.len() == frame.rows {
                    return inner.eval_on(result, &live);
                }
                pieces.add(&live, inner.eval_on(result, &live)?);
                live.clear();
            }
            continue;
        }
        let (mut yes, mut no) = (Vec::new(), Vec::new());
        for (i, &row) in live.iter().enumerate() {
            if truths.at(i) == Truth::True { yes.push(row) } else { no.push(row) }
        }
        if yes.len() == frame.rows {
            return inner.eval_on(result, &yes);
        }
        if !yes.is_empty() {
            pieces.add(&yes, inner.eval_on(result, &yes)?);
        }
        live = no;
    }
    if live.len() == frame.rows {
        return inner.eval_on(default, &live);
    }
    if !live.is_empty() {
        pieces.add(&live, inner.eval_on(default, &live)?);
    }
    pieces.finish()
}

/// COALESCE.
pub(super) fn coalesce(args: &[Node], layout: Layout, frame: &Frame<'_>) -> SqlResult<Column> {
    let mut live: Vec<u32> = (0..frame.rows as u32).collect();
    let mut pieces = Pieces::new(layout, frame.rows);
    for arg in args {
        if live.is_empty() {
            break;
        }
        let column = frame.eval_on(arg, &live)?;
        if column.is_const_null() {
            continue;
        }
        let all = column.is_const() || column.array().null_count() == 0;
        if all && live.len() == frame.rows {
            return Ok(column);
        }
        if all {
            pieces.add(&live, column);
            live.clear();
            continue;
        }
        let left: Vec<u32> = live.iter().enumerate().filter(|(i, _)| column.is_null(*i)).map(|(_, &row)| row).collect();
        pieces.add(&live, column);
        live = left;
    }
    pieces.finish()
}

/// NULLIF: both sides are evaluated; the left one is the result unless they are equal.
pub(super) fn null_if(equal: &Callee, left: &Node, right: &Node, frame: &Frame<'_>) -> SqlResult<Column> {
    let args = [left.eval(frame)?, right.eval(frame)?];
    let same = equal.call(frame.cx, &args, frame.rows)?;
    let [left, _] = args;
    let truths = Truths::of(&same)?;
    if same.is_const() {
        if truths.at(0) != Truth::True {
            return Ok(left);
        }
        return Ok(Column::Const(arrow_array::new_null_array(left.array().data_type(), 1)));
    }
    let array = left.into_array(frame.rows)?;
    let mut valid = BooleanBufferBuilder::new(frame.rows);
    for row in 0..frame.rows {
        valid.append(array.is_valid(row) && truths.at(row) != Truth::True);
    }
    let data = array.to_data().into_builder().nulls(Some(NullBuffer::new(valid.finish())));
    Ok(Column::Array(arrow_array::make_array(data.build().map_err(SqlError::internal)?)))
}

/// `IS DISTINCT FROM`.
pub(super) fn distinct(equal: &Callee, left: &Node, right: &Node, frame: &Frame<'_>) -> SqlResult<Column> {
    let args = [left.eval(frame)?, right.eval(frame)?];
    let constant = args.iter().all(Column::is_const);
    let rows = if constant { 1 } else { frame.rows };
    let same = equal.call(frame.cx, &args, frame.rows)?;
    let truths = Truths::of(&same)?;
    let [left, right] = &args;
    let values = BooleanBuffer::collect_bool(rows, |i| match (left.is_null(i), right.is_null(i)) {
        (true, true) => false,
        (false, false) => truths.at(i) != Truth::True,
        _ => true,
    });
    let array = booleans(values, None);
    Ok(if constant { Column::Const(array) } else { Column::Array(array) })
}

/// GREATEST and LEAST: every argument is evaluated, NULLs are passed over.
pub(super) fn min_max(
    greatest: bool,
    args: &[Node],
    less: &Callee,
    layout: Layout,
    frame: &Frame<'_>,
) -> SqlResult<Column> {
    let columns = args.iter().map(|a| a.eval(frame)).collect::<SqlResult<Vec<Column>>>()?;
    let mut best: Option<Column> = None;
    for column in columns {
        let Some(current) = best else {
            best = Some(column);
            continue;
        };
        let pair = if greatest { [current, column] } else { [column, current] };
        // A later argument replaces the best one only where it is strictly beyond it.
        let beyond = less.call(frame.cx, &pair, frame.rows)?;
        let [a, b] = pair;
        let (current, column) = if greatest { (a, b) } else { (b, a) };
        let constant = current.is_const() && column.is_const();
        let rows = if constant { 1 } else { frame.rows };
        let truths = Truths::of(&beyond)?;
        let mut take: Vec<u32> = Vec::new();
        let mut keep: Vec<u32> = Vec::new();
        for row in 0..rows {
            if !column.is_null(row) && (current.is_null(row) || truths.at(row) == Truth::True) {
                take.push(row as u32);
            } else {
                keep.push(row as u32);
            }
        }
        best = Some(if take.is_empty() {
            current
        } else if keep.is_empty() {
            column
        } else {
            let mut pieces = Pieces::new(layout, rows);
            pieces.add(&take, column.take(&take)?);
            pieces.add(&keep, current.take(&keep)?);
            pieces.finish()?
        });
    }
    match best {
        Some(c) => Ok(c),
        None => Ok(Column::Const(nulls(layout)?)),
    }
}
