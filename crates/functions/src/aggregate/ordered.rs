//! DISTINCT and ORDER BY inside an aggregate call: rows are collected, sorted by key, made unique, and only then fed to the
//! plain aggregate.
//!
//! ```text
//!  group ──▶ records, one after another
//!            record = u32 length of key | key | for each argument: u8 known, u32 length, bytes
//! ```
//!
//! A key is the concatenation of its columns' order-preserving keys, each behind a byte that places NULL, with the bytes of
//! a descending column inverted. Keys of one column are never a prefix of one another, so comparing bytes compares columns.

use std::sync::Arc;

use arrow_array::ArrayRef;
use stegodon_nodes::expr::Aggref;
use stegodon_types::{
    Collation, ColumnBuilder, Layout, SqlError, SqlResult, TypeContext, TypeDesc, ValueRef, encode_equality_key,
    encode_key, value_at,
};

use super::{Emit, GroupAggregate, slot, table, take_groups};
use crate::adapt::Arg;
use crate::column::ByteBuilder;
use crate::eval::layout_of;

use crate::{CompileContext, EvalContext};

/// One column of the sort key.
#[derive(Debug)]
struct Key {
    argument: usize,
    ty: Arc<TypeDesc>,
    collation: Collation,
    descending: bool,
    nulls_first: bool,
    /// Only equality matters.
    equality: bool,
}

/// What DISTINCT and ORDER BY ask.
#[derive(Debug)]
pub(super) struct Order {
    keys: Vec<Key>,
    distinct: bool,
    /// All columns given, ORDER BY's own last.
    layouts: Vec<Layout>,
    /// How many of them the plain aggregate takes.
    arguments: usize,
}

/// Operator families that order a type otherwise than its key does: text and bpchar pattern, record image.
const OTHER_FAMILIES: [u32; 3] = [2095, 2097, 3194];

impl Order {
    /// `None` where the call has neither.
    pub(super) fn of(aggref: &Aggref, cx: &CompileContext<'_>) -> SqlResult<Option<Order>> {
        let distinct = !aggref.distinct.is_empty();
        // With DISTINCT, its list begins with ORDER BY's and has all arguments.
        let clauses = if distinct { &aggref.distinct } else { &aggref.order_by };
        if clauses.is_empty() {
            return Ok(None);
        }
        let sensitive = table::order_matters(aggref.function);
        let mut keys = Vec::with_capacity(clauses.len());
        for clause in clauses {
            let argument = aggref
                .args
                .iter()
                .position(|t| t.sort_group_ref == clause.reference)
                .ok_or_else(|| SqlError::internal("an aggregate is ordered by what it has not"))?;
            let expr = &aggref.args.get(argument).ok_or_else(|| SqlError::internal("no such argument"))?.expr;
            for amop in cx.catalog.amops_of_operator(clause.ordering) {
                if OTHER_FAMILIES.contains(&amop.family.0) || amop.family.0 >= 16384 {
                    return Err(SqlError::unsupported("ORDER BY USING inside an aggregate"));
                }
            }
            keys.push(Key {
                argument,
                ty: cx.types.type_desc(expr.type_oid())?,
                collation: cx.types.collation(expr.collation())?,
                descending: clause.descending,
                nulls_first: clause.nulls_first,
                equality: aggref.order_by.is_empty() && !sensitive,
            });
        }
        let layouts = aggref
            .args
            .iter()
            .map(|t| layout_of(&*cx.types.type_desc(t.expr.type_oid())?))
            .collect::<SqlResult<Vec<_>>>()?;
        let arguments = aggref.args.iter().filter(|t| !t.junk).count();
        Ok(Some(Order { keys, distinct, layouts, arguments }))
    }

    fn encode(&self, cx: &TypeContext<'_>, args: &[ArrayRef], row: usize, out: &mut Vec<u8>) -> SqlResult<()> {
        for key in &self.keys {
            let (Some(array), Some(&layout)) = (args.get(key.argument), self.layouts.get(key.argument)) else {
                return Err(SqlError::internal("an aggregate was given too few columns"));
            };
            match value_at(array.as_ref(), layout, row) {
                None => out.push(if key.nulls_first { 0 } else { 2 }),
                Some(value) => {
                    out.push(1);
                    let start = out.len();
                    if key.equality {
                        encode_equality_key(cx, &key.ty, &key.collation, value, out)?;
                    } else {
                        encode_key(cx, &key.ty, &key.collation, value, out)?;
                    }
                    if key.descending {
                        out.iter_mut().skip(start).for_each(|b| *b = !*b);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Appends a value's bytes, native.
pub(super) fn write_value(value: ValueRef<'_>, out: &mut Vec<u8>) {
    match value {
        ValueRef::Bool(v) => out.push(u8::from(v)),
        ValueRef::Char(v) => out.push(v),
        ValueRef::Int16(v) => out.extend_from_slice(&v.to_le_bytes()),
        ValueRef::Int32(v) => out.extend_from_slice(&v.to_le_bytes()),
        ValueRef::UInt32(v) => out.extend_from_slice(&v.to_le_bytes()),
        ValueRef::Int64(v) => out.extend_from_slice(&v.to_le_bytes()),
        ValueRef::UInt64(v) => out.extend_from_slice(&v.to_le_bytes()),
        ValueRef::Float32(v) => out.extend_from_slice(&v.to_le_bytes()),
        ValueRef::Float64(v) => out.extend_from_slice(&v.to_le_bytes()),
        ValueRef::Bytes(v) => out.extend_from_slice(v),
    }
}

pub(super) fn broken() -> SqlError {
    SqlError::internal("an aggregate's state is cut short")
}

pub(super) fn number<const N: usize>(bytes: &[u8]) -> SqlResult<[u8; N]> {
    bytes.try_into().map_err(|_| broken())
}

/// Reads what [`write_value`] wrote.
pub(super) fn read_value(layout: Layout, bytes: &[u8]) -> SqlResult<ValueRef<'_>> {
    Ok(match layout {
        Layout::Bool => ValueRef::Bool(number::<1>(bytes)? != [0]),
        Layout::Char => ValueRef::Char(u8::from_le_bytes(number(bytes)?)),
        Layout::Int16 => ValueRef::Int16(i16::from_le_bytes(number(bytes)?)),
        Layout::Int32 => ValueRef::Int32(i32::from_le_bytes(number(bytes)?)),
        Layout::UInt32 => ValueRef::UInt32(u32::from_le_bytes(number(bytes)?)),
        Layout::Int64 => ValueRef::Int64(i64::from_le_bytes(number(bytes)?)),
        Layout::UInt64 => ValueRef::UInt64(u64::from_le_bytes(number(bytes)?)),
        Layout::Float32 => ValueRef::Float32(f32::from_le_bytes(number(bytes)?)),
        Layout::Float64 => ValueRef::Float64(f64::from_le_bytes(number(bytes)?)),
        Layout::Fixed(_) | Layout::Name | Layout::Bytes => ValueRef::Bytes(bytes),
    })
}

/// Reads records.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn bytes(&mut self, n: usize) -> SqlResult<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(n).ok_or_else(broken)?;
        self.0 = tail;
        Ok(head)
    }
    fn length(&mut self) -> SqlResult<usize> {
        Ok(u32::from_le_bytes(number(self.bytes(4)?)?) as usize)
    }
    pub(super) fn block(&mut self) -> SqlResult<&'a [u8]> {
        let n = self.length()?;
        self.bytes(n)
    }
}

/// Wraps a plain aggregate.
pub(super) struct Ordered {
    plain: Box<dyn GroupAggregate>,
    order: Arc<Order>,
    records: Vec<Vec<u8>>,
    held_bytes: usize,
    key: Vec<u8>,
}

impl Ordered {
    pub(super) fn new(plain: Box<dyn GroupAggregate>, order: Arc<Order>) -> Self {
        Ordered { plain, order, records: Vec::new(), held_bytes: 0, key: Vec::new() }
    }

    /// Sorts a group's rows and feeds them to the plain aggregate as its group `group`.
    fn feed(&mut self, cx: &EvalContext<'_>, records: &[u8], group: usize) -> SqlResult<()> {
        let order = Arc::clone(&self.order);
        let mut reader = Reader(records);
        let mut rows: Vec<(&[u8], &[u8])> = Vec::new();
        while !reader.0.is_empty() {
            let key = reader.block()?;
            let values = reader.block()?;
            rows.push((key, values));
        }
        rows.sort_by(|a, b| a.0.cmp(b.0));
        if order.distinct {
            rows.dedup_by(|a, b| a.0 == b.0);
        }
        for chunk in rows.chunks(8192) {
            let layouts = order.layouts.get(..order.arguments).unwrap_or_default();
            let mut builders: Vec<ColumnBuilder> =
                layouts.iter().map(|&l| ColumnBuilder::new(l, chunk.len())).collect();
            for (_, values) in chunk {
                let mut reader = Reader(values);
                for (builder, &layout) in builders.iter_mut().zip(layouts) {
                    if reader.bytes(1)? == [0] {
                        builder.append_null();
                    } else {
                        builder.append(read_value(layout, reader.block()?)?)?;
                    }
                }
            }
            let args: Vec<ArrayRef> = builders.iter_mut().map(ColumnBuilder::finish).collect();
            self.plain.update(cx, &args, &vec![group; chunk.len()], group + 1)?;
        }
        Ok(())
    }
}

impl GroupAggregate for Ordered {
    fn update(&mut self, cx: &EvalContext<'_>, args: &[ArrayRef], groups: &[usize], _: usize) -> SqlResult<()> {
        let types = TypeContext::new(cx.types, cx.settings);
        let mut key = std::mem::take(&mut self.key);
        for (row, &group) in groups.iter().enumerate() {
            key.clear();
            self.order.encode(&types, args, row, &mut key)?;
            let record = slot(&mut self.records, group)?;
            let before = record.len();
            record.extend_from_slice(&(key.len() as u32).to_le_bytes());
            record.extend_from_slice(&key);
            let length_at = record.len();
            record.extend_from_slice(&[0; 4]);
            for (array, &layout) in args.iter().zip(&self.order.layouts).take(self.order.arguments) {
                match value_at(array.as_ref(), layout, row) {
                    None => record.push(0),
                    Some(value) => {
                        record.push(1);
                        let at = record.len();
                        record.extend_from_slice(&[0; 4]);
                        write_value(value, record);
                        set_length(record, at);
                    }
                }
            }
            set_length(record, length_at);
            self.held_bytes += record.len() - before;
        }
        self.key = key;
        Ok(())
    }

    fn merge(&mut self, _: &EvalContext<'_>, states: &[ArrayRef], groups: &[usize], _: usize) -> SqlResult<()> {
        let array = super::arg(states, 0)?;
        let values = <&[u8]>::values(array)?;
        for (row, &group) in groups.iter().enumerate() {
            let bytes = <&[u8]>::at(values, row);
            slot(&mut self.records, group)?.extend_from_slice(bytes);
            self.held_bytes += bytes.len();
        }
        Ok(())
    }

    fn state(&mut self, emit: Emit) -> SqlResult<Vec<ArrayRef>> {
        let records = take_groups(&mut self.records, emit);
        let mut out = ByteBuilder::new(Layout::Bytes, records.len(), records.iter().map(Vec::len).sum());
        for r in &records {
            self.held_bytes = self.held_bytes.saturating_sub(r.len());
            out.push(Some(r));
        }
        Ok(vec![out.finish()?])
    }

    fn results(&mut self, cx: &EvalContext<'_>, n_groups: usize) -> SqlResult<ArrayRef> {
        let records = std::mem::take(&mut self.records);
        // What an error left behind does not count.
        self.plain.discard(Emit::All);
        let wanted = super::first(&records, n_groups);
        self.plain.grow(wanted.len());
        let fed = wanted.iter().enumerate().try_for_each(|(group, record)| self.feed(cx, record, group));
        self.records = records;
        fed?;
        self.plain.evaluate(cx, Emit::All)
    }

    fn n_groups(&self) -> usize {
        self.records.len()
    }

    fn discard(&mut self, emit: Emit) {
        let freed: usize = take_groups(&mut self.records, emit).iter().map(Vec::len).sum();
        self.held_bytes = self.held_bytes.saturating_sub(freed);
    }

    fn grow(&mut self, n_groups: usize) {
        if self.records.len() < n_groups {
            self.records.resize(n_groups, Vec::new());
        }
    }

    fn memory_bytes(&self) -> usize {
        self.held_bytes + self.records.capacity() * size_of::<Vec<u8>>() + self.plain.memory_bytes()
    }
}

/// Writes how much was appended after the length at `at`.
pub(super) fn set_length(record: &mut [u8], at: usize) {
    let length = (record.len() - at - 4) as u32;
    if let Some(place) = record.get_mut(at..at + 4) {
        place.copy_from_slice(&length.to_le_bytes());
    }
}
