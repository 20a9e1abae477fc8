//! `string_agg` of text and bytea, and aggregates that keep all rows (`array_agg` and others): in the order of the rows.

use arrow_array::{Array, ArrayRef};
use stegodon_types::SqlResult;
use stegodon_types::array::{ArrayView, Dimension, MAX_DIMENSIONS, build, build_vector};
use stegodon_types::packed::Part;
use stegodon_types::{ColumnBuilder, Datum, ValueRef, value_at};

use super::ordered::{Reader, read_value, set_length, write_value};
use super::*;
use crate::adapt::Arg;
use crate::column::ByteBuilder;

/// One group: its text, which begins with the first row's delimiter, and how long that is.
#[derive(Clone, Default)]
struct Joined {
    text: Vec<u8>,
    first_delimiter_bytes: usize,
    seen: bool,
}

/// `string_agg(value, delimiter)`: NULL values are passed over with their delimiters, a NULL delimiter is empty.
#[derive(Default)]
pub(super) struct StringAgg {
    groups: Vec<Joined>,
    held_bytes: usize,
}

impl GroupAggregate for StringAgg {
    fn update(&mut self, _: &EvalContext<'_>, args: &[ArrayRef], groups: &[usize], _: usize) -> SqlResult<()> {
        let (value, delimiter) = (arg(args, 0)?, arg(args, 1)?);
        let (values, delimiters) = (<&[u8]>::values(value)?, <&[u8]>::values(delimiter)?);
        for (row, &group) in groups.iter().enumerate() {
            if value.is_null(row) {
                continue;
            }
            let text = <&[u8]>::at(values, row);
            let delimiter: &[u8] = if delimiter.is_null(row) { b"" } else { <&[u8]>::at(delimiters, row) };
            let joined = slot(&mut self.groups, group)?;
            if !joined.seen {
                joined.seen = true;
                joined.first_delimiter_bytes = delimiter.len();
            }
            joined.text.extend_from_slice(delimiter);
            joined.text.extend_from_slice(text);
            self.held_bytes += delimiter.len() + text.len();
            if joined.text.len() >= 1 << 30 {
                return Err(too_long());
            }
        }
        Ok(())
    }

    fn merge(&mut self, _: &EvalContext<'_>, states: &[ArrayRef], groups: &[usize], _: usize) -> SqlResult<()> {
        let (text, first) = (arg(states, 0)?, arg(states, 1)?);
        let (texts, firsts) = (<&[u8]>::values(text)?, i64::values(first)?);
        for (row, &group) in groups.iter().enumerate() {
            if text.is_null(row) {
                continue;
            }
            let joined = slot(&mut self.groups, group)?;
            if !joined.seen {
                joined.seen = true;
                joined.first_delimiter_bytes = i64::at(firsts, row) as usize;
            }
            let text = <&[u8]>::at(texts, row);
            joined.text.extend_from_slice(text);
            self.held_bytes += text.len();
            if joined.text.len() >= 1 << 30 {
                return Err(too_long());
            }
        }
        Ok(())
    }

    fn state(&mut self, emit: Emit) -> SqlResult<Vec<ArrayRef>> {
        let groups = take_groups(&mut self.groups, emit);
        let mut text = ByteBuilder::new(Layout::Bytes, groups.len(), 0);
        for g in &groups {
            self.held_bytes = self.held_bytes.saturating_sub(g.text.len());
            text.push(g.seen.then_some(&g.text));
        }
        let first = groups.iter().map(|g| Some(g.first_delimiter_bytes as i64)).collect::<arrow_array::Int64Array>();
        Ok(vec![text.finish()?, Arc::new(first)])
    }

    fn results(&mut self, _: &EvalContext<'_>, n_groups: usize) -> SqlResult<ArrayRef> {
        let groups = first(&self.groups, n_groups);
        let mut out = ByteBuilder::new(Layout::Bytes, groups.len(), 0);
        for g in groups {
            out.push(if g.seen { g.text.get(g.first_delimiter_bytes..) } else { None });
        }
        out.finish()
    }

    fn n_groups(&self) -> usize {
        self.groups.len()
    }

    fn discard(&mut self, emit: Emit) {
        let freed: usize = take_groups(&mut self.groups, emit).iter().map(|g| g.text.len()).sum();
        self.held_bytes = self.held_bytes.saturating_sub(freed);
    }

    fn grow(&mut self, n_groups: usize) {
        if self.groups.len() < n_groups {
            self.groups.resize(n_groups, Joined::default());
        }
    }

    fn memory_bytes(&self) -> usize {
        self.held_bytes + self.groups.capacity() * size_of::<Joined>()
    }
}

fn too_long() -> SqlError {
    SqlError::new(SqlState::ProgramLimitExceeded, "string buffer exceeds maximum allowed length (1073741823 bytes)")
}

/// What a collecting aggregate makes of its rows: the arguments' values, row after row. `None` is NULL.
pub(super) type Finish = fn(&EvalContext<'_>, &AggregateInfo, &[Option<ValueRef<'_>>]) -> SqlResult<Option<Datum>>;

/// Keeps all rows until the result is asked for; NULL over no rows. A group's values lie one after another: u8 known, u32
/// length, bytes.
pub(super) struct Collect {
    info: AggregateInfo,
    layouts: Vec<Layout>,
    /// Rows whose first argument is NULL are passed over.
    skip_nulls: bool,
    finish: Finish,
    groups: Vec<Vec<u8>>,
    held_bytes: usize,
}

impl Collect {
    pub(super) fn create(info: &AggregateInfo, skip_nulls: bool, finish: Finish) -> SqlResult<Box<dyn GroupAggregate>> {
        let layouts = info.arg_types.iter().map(|t| layout_of(t)).collect::<SqlResult<Vec<_>>>()?;
        Ok(Box::new(Collect { info: info.clone(), layouts, skip_nulls, finish, groups: Vec::new(), held_bytes: 0 }))
    }
}

/// `array_agg` of what is no array.
pub(super) fn array_agg(
    _: &EvalContext<'_>,
    info: &AggregateInfo,
    values: &[Option<ValueRef<'_>>],
) -> SqlResult<Option<Datum>> {
    build_vector(info.arg(0)?, values.iter().copied()).map(|v| Some(Datum::bytes(v)))
}

/// `array_agg` of arrays: an array of one dimension more.
pub(super) fn array_agg_of_arrays(
    cx: &EvalContext<'_>,
    info: &AggregateInfo,
    values: &[Option<ValueRef<'_>>],
) -> SqlResult<Option<Datum>> {
    let subscript = |what: &str| SqlError::new(SqlState::ArraySubscriptError, what);
    let mut dimensions: Vec<Dimension> = Vec::new();
    let mut elements = Vec::new();
    let mut element = None;
    for value in values {
        let Some(ValueRef::Bytes(payload)) = value else {
            return Err(SqlError::new(SqlState::NullValueNotAllowed, "cannot accumulate null arrays"));
        };
        let view = ArrayView::parse(payload)?;
        if view.is_empty() {
            return Err(subscript("cannot accumulate empty arrays"));
        }
        if dimensions.is_empty() {
            dimensions = view.dimensions().to_vec();
            if dimensions.len() >= MAX_DIMENSIONS {
                return Err(SqlError::new(
                    SqlState::ProgramLimitExceeded,
                    format!(
                        "number of array dimensions ({}) exceeds the maximum allowed ({MAX_DIMENSIONS})",
                        dimensions.len() + 1
                    ),
                ));
            }
        } else if dimensions != view.dimensions() {
            return Err(subscript("cannot accumulate arrays of different dimensionality"));
        }
        let ty = cx.types.type_desc(view.element_type())?;
        elements.extend(view.elements(Part::of(&ty)?).collect::<SqlResult<Vec<_>>>()?);
        element = Some(ty);
    }
    let Some(element) = element else { return Err(SqlError::internal(format_args!("{info:?} over no rows"))) };
    dimensions.insert(0, Dimension { length: values.len() as i32, lower: 1 });
    build(&element, &dimensions, elements).map(|v| Some(Datum::bytes(v)))
}

impl GroupAggregate for Collect {
    fn update(&mut self, _: &EvalContext<'_>, args: &[ArrayRef], groups: &[usize], _: usize) -> SqlResult<()> {
        let first_argument = arg(args, 0)?;
        for (row, &group) in groups.iter().enumerate() {
            if self.skip_nulls && first_argument.is_null(row) {
                continue;
            }
            let list = slot(&mut self.groups, group)?;
            let before = list.len();
            for (array, &layout) in args.iter().zip(&self.layouts) {
                match value_at(array.as_ref(), layout, row) {
                    None => list.push(0),
                    Some(value) => {
                        list.push(1);
                        let at = list.len();
                        list.extend_from_slice(&[0; 4]);
                        write_value(value, list);
                        set_length(list, at);
                    }
                }
            }
            self.held_bytes += list.len() - before;
        }
        Ok(())
    }

    fn merge(&mut self, _: &EvalContext<'_>, states: &[ArrayRef], groups: &[usize], _: usize) -> SqlResult<()> {
        let values = <&[u8]>::values(arg(states, 0)?)?;
        for (row, &group) in groups.iter().enumerate() {
            let list = <&[u8]>::at(values, row);
            slot(&mut self.groups, group)?.extend_from_slice(list);
            self.held_bytes += list.len();
        }
        Ok(())
    }

    fn state(&mut self, emit: Emit) -> SqlResult<Vec<ArrayRef>> {
        let groups = take_groups(&mut self.groups, emit);
        let mut out = ByteBuilder::new(Layout::Bytes, groups.len(), 0);
        for g in &groups {
            self.held_bytes = self.held_bytes.saturating_sub(g.len());
            out.push(Some(g));
        }
        Ok(vec![out.finish()?])
    }

    fn results(&mut self, cx: &EvalContext<'_>, n_groups: usize) -> SqlResult<ArrayRef> {
        let groups = first(&self.groups, n_groups);
        let mut out = ColumnBuilder::new(self.info.layout, groups.len());
        for g in groups {
            let mut reader = Reader(g);
            let mut values = Vec::new();
            while !reader.0.is_empty() {
                for &layout in &self.layouts {
                    values.push(match reader.bytes(1)? {
                        [0] => None,
                        _ => Some(read_value(layout, reader.block()?)?),
                    });
                }
            }
            // Direct arguments are checked even where there are no rows.
            let result = if values.is_empty() && self.info.direct.is_empty() {
                None
            } else {
                (self.finish)(cx, &self.info, &values)?
            };
            out.append_option(result.as_ref().map(Datum::as_ref))?;
        }
        Ok(out.finish())
    }

    fn n_groups(&self) -> usize {
        self.groups.len()
    }

    fn discard(&mut self, emit: Emit) {
        let freed: usize = take_groups(&mut self.groups, emit).iter().map(Vec::len).sum();
        self.held_bytes = self.held_bytes.saturating_sub(freed);
    }

    fn grow(&mut self, n_groups: usize) {
        if self.groups.len() < n_groups {
            self.groups.resize(n_groups, Vec::new());
        }
    }

    fn memory_bytes(&self) -> usize {
        self.held_bytes + self.groups.capacity() * size_of::<Vec<u8>>()
    }
}
