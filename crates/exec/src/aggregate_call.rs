//! Aggregate calls as the grouping operators see them: columns in, an accumulator, one column out.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, StructArray};
use arrow_schema::{DataType, Field, Fields};
use stegodon_functions::aggregate::{Accumulator as FunctionAccumulator, AggregatePlan, Emit};
use stegodon_plan::node::AggregateSplit;
use stegodon_types::{ColumnBuilder, Datum, Layout, SqlError, SqlResult, value_at};

use crate::execution::Execution;

/// One aggregate call over columns of the input.
#[derive(Clone, Debug)]
pub(crate) struct AggregateCall {
    pub(crate) kind: CallKind,
    /// The arguments' columns.
    pub(crate) args: Vec<usize>,
    /// The arguments' types.
    pub(crate) arg_types: Vec<DataType>,
    /// The column of the FILTER, a boolean.
    pub(crate) filter: Option<usize>,
}

/// What is computed.
#[derive(Clone, Debug)]
pub(crate) enum CallKind {
    /// An aggregate function, or half of one.
    Function(Arc<AggregatePlan>, AggregateSplit),
    /// The first row's value: how a group shows a column that it is told apart by, or that depends on those.
    First(Layout),
}

impl AggregateCall {
    /// Arguments of no row.
    pub(crate) fn empty_args(&self) -> Vec<ArrayRef> {
        self.arg_types.iter().map(arrow_array::new_empty_array).collect()
    }
}

impl CallKind {
    /// The Arrow type of the result. Half an aggregate gives its states as one struct.
    pub(crate) fn data_type(&self) -> DataType {
        match self {
            CallKind::First(layout) => layout.arrow(),
            CallKind::Function(_, AggregateSplit::Partial) => DataType::Struct(state_fields(&self.state_types())),
            CallKind::Function(plan, _) => plan.layout().arrow(),
        }
    }

    /// The Arrow types of the transition states.
    pub(crate) fn state_types(&self) -> Vec<DataType> {
        match self {
            CallKind::First(layout) => vec![layout.arrow(), DataType::Boolean],
            CallKind::Function(plan, _) => plan.state_layouts().iter().map(|l| l.arrow()).collect(),
        }
    }

    /// A fresh accumulator.
    pub(crate) fn accumulator(&self, execution: &Arc<Execution>) -> SqlResult<Accumulator> {
        Ok(match self {
            CallKind::First(layout) => Accumulator::First(First { layout: *layout, values: Vec::new() }),
            CallKind::Function(plan, split) => {
                let execution = Arc::clone(execution);
                Accumulator::Function { inner: plan.create()?, split: *split, execution }
            }
        })
    }
}

fn state_fields(types: &[DataType]) -> Fields {
    types.iter().enumerate().map(|(i, t)| Field::new(format!("s{i}"), t.clone(), true)).collect()
}

/// A running aggregate over groups 0, 1, ….
pub(crate) enum Accumulator {
    First(First),
    Function { inner: FunctionAccumulator, split: AggregateSplit, execution: Arc<Execution> },
}

impl Accumulator {
    /// Adds rows to their groups.
    pub(crate) fn update(
        &mut self,
        args: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        group_count: usize,
    ) -> SqlResult<()> {
        match self {
            Accumulator::First(first) => first.update(args, groups, group_count),
            Accumulator::Function { split: AggregateSplit::Final, .. } => {
                let states = args.first().and_then(|a| a.as_any().downcast_ref::<StructArray>());
                let states = states.ok_or_else(|| SqlError::internal("an aggregate's states are not a struct"))?;
                self.merge(states.columns(), groups, group_count)
            }
            Accumulator::Function { inner, execution, .. } => {
                execution.with_context(|cx| inner.update(cx, args, groups, filter, group_count))
            }
        }
    }

    /// Adds states to their groups.
    pub(crate) fn merge(&mut self, states: &[ArrayRef], groups: &[usize], group_count: usize) -> SqlResult<()> {
        match self {
            Accumulator::First(first) => first.merge(states, groups, group_count),
            Accumulator::Function { inner, execution, .. } => {
                execution.with_context(|cx| inner.merge(cx, states, groups, group_count))
            }
        }
    }

    /// Takes the states of the first groups.
    pub(crate) fn state(&mut self, emit: Emit) -> SqlResult<Vec<ArrayRef>> {
        match self {
            Accumulator::First(first) => first.state(emit),
            Accumulator::Function { inner, .. } => inner.state(emit),
        }
    }

    /// Takes the results of the first groups.
    pub(crate) fn evaluate(&mut self, emit: Emit) -> SqlResult<ArrayRef> {
        match self {
            Accumulator::First(first) => {
                let values = first.take(emit);
                first.column(&values)
            }
            Accumulator::Function { inner, split: AggregateSplit::Partial, .. } => {
                let states = inner.state(emit)?;
                let types: Vec<DataType> = states.iter().map(|s| s.data_type().clone()).collect();
                let packed = StructArray::try_new(state_fields(&types), states, None);
                Ok(Arc::new(packed.map_err(SqlError::internal)?))
            }
            Accumulator::Function { inner, execution, .. } => execution.with_context(|cx| inner.evaluate(cx, emit)),
        }
    }

    /// Bytes held.
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Accumulator::First(first) => first.values.len() * size_of::<FirstValue>(),
            Accumulator::Function { inner, .. } => inner.memory_bytes(),
        }
    }
}

/// `None` while a group has no row; then its first row's value, perhaps NULL.
#[allow(clippy::option_option, reason = "no row, NULL, or a value")]
type FirstValue = Option<Option<Datum>>;

/// The first value of each group.
pub(crate) struct First {
    layout: Layout,
    values: Vec<FirstValue>,
}

impl First {
    fn take(&mut self, emit: Emit) -> Vec<FirstValue> {
        match emit {
            Emit::All => std::mem::take(&mut self.values),
            Emit::First(n) => {
                let rest = self.values.split_off(n.min(self.values.len()));
                std::mem::replace(&mut self.values, rest)
            }
        }
    }

    fn column(&self, values: &[FirstValue]) -> SqlResult<ArrayRef> {
        let mut builder = ColumnBuilder::new(self.layout, values.len());
        for value in values {
            builder.append_option(value.as_ref().and_then(Option::as_ref).map(Datum::as_ref))?;
        }
        Ok(builder.finish())
    }

    fn offer(&mut self, group: usize, array: &ArrayRef, row: usize) {
        if let Some(place @ None) = self.values.get_mut(group) {
            *place = Some(value_at(array.as_ref(), self.layout, row).map(stegodon_types::ValueRef::to_datum));
        }
    }

    fn update(&mut self, args: &[ArrayRef], groups: &[usize], group_count: usize) -> SqlResult<()> {
        self.values.resize(group_count.max(self.values.len()), None);
        let array = args.first().ok_or_else(|| SqlError::internal("first value of nothing"))?;
        for (row, &group) in groups.iter().enumerate() {
            self.offer(group, array, row);
        }
        Ok(())
    }

    fn state(&mut self, emit: Emit) -> SqlResult<Vec<ArrayRef>> {
        let values = self.take(emit);
        let seen: BooleanArray = values.iter().map(|v| Some(v.is_some())).collect();
        Ok(vec![self.column(&values)?, Arc::new(seen)])
    }

    fn merge(&mut self, states: &[ArrayRef], groups: &[usize], group_count: usize) -> SqlResult<()> {
        self.values.resize(group_count.max(self.values.len()), None);
        let [array, seen] = states else { return Err(SqlError::internal("a first value has two states")) };
        let seen = seen.as_any().downcast_ref::<BooleanArray>();
        let seen = seen.ok_or_else(|| SqlError::internal("a first value's second state is a boolean"))?;
        for (row, &group) in groups.iter().enumerate() {
            if seen.value(row) {
                self.offer(group, array, row);
            }
        }
        Ok(())
    }
}
