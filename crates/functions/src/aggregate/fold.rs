//! Aggregates whose state is one number: the first value, then a step for each further one. NULL over no rows.

use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;
use stegodon_types::SqlResult;

use super::*;
use crate::adapt::{Arg, Ret};

/// Folds values of type `In` into an `Acc`.
pub(super) struct Fold<In, Acc, First, Step, Merge> {
    first: First,
    step: Step,
    merge: Merge,
    states: Vec<Acc>,
    seen: Vec<bool>,
    input: std::marker::PhantomData<fn(In)>,
}

impl<In, Acc, First, Step, Merge> Fold<In, Acc, First, Step, Merge> {
    pub(super) fn new(first: First, step: Step, merge: Merge) -> Self {
        Fold { first, step, merge, states: Vec::new(), seen: Vec::new(), input: std::marker::PhantomData }
    }
}

/// Both what a column is read as and what it is built of.
pub(super) trait Number: for<'a> Arg<'a> + Ret + Default + Copy + Send {}
impl<T: for<'a> Arg<'a> + Ret + Default + Copy + Send> Number for T {}

fn finish<Acc: Number>(states: Vec<Acc>, seen: Vec<bool>) -> ArrayRef {
    let mut out = Acc::builder(states.len());
    for v in states {
        v.push(&mut out);
    }
    let nulls = NullBuffer::from(seen);
    Acc::finish(out, (nulls.null_count() > 0).then_some(nulls))
}

impl<In, Acc, First, Step, Merge> GroupAggregate for Fold<In, Acc, First, Step, Merge>
where
    In: for<'a> Arg<'a>,
    Acc: Number,
    First: Fn(In) -> Acc + Send,
    Step: Fn(Acc, In) -> SqlResult<Acc> + Send,
    Merge: Fn(Acc, Acc) -> SqlResult<Acc> + Send,
{
    fn update(&mut self, _: &EvalContext<'_>, args: &[ArrayRef], groups: &[usize], _: usize) -> SqlResult<()> {
        let array = arg(args, 0)?;
        let values = In::values(array)?;
        let nulls = array.nulls().filter(|n| n.null_count() > 0);
        for (row, &group) in groups.iter().enumerate() {
            if nulls.is_some_and(|n| n.is_null(row)) {
                continue;
            }
            let value = In::at(values, row);
            let (state, seen) = (slot(&mut self.states, group)?, slot(&mut self.seen, group)?);
            if *seen {
                *state = (self.step)(*state, value)?;
            } else {
                *state = (self.first)(value);
                *seen = true;
            }
        }
        Ok(())
    }

    fn merge(&mut self, _: &EvalContext<'_>, states: &[ArrayRef], groups: &[usize], _: usize) -> SqlResult<()> {
        let array = arg(states, 0)?;
        let values = Acc::values(array)?;
        for (row, &group) in groups.iter().enumerate() {
            if array.is_null(row) {
                continue;
            }
            let value = Acc::at(values, row);
            let (state, seen) = (slot(&mut self.states, group)?, slot(&mut self.seen, group)?);
            *state = if *seen { (self.merge)(*state, value)? } else { value };
            *seen = true;
        }
        Ok(())
    }

    fn state(&mut self, emit: Emit) -> SqlResult<Vec<ArrayRef>> {
        Ok(vec![finish(take_groups(&mut self.states, emit), take_groups(&mut self.seen, emit))])
    }

    fn results(&mut self, _: &EvalContext<'_>, n_groups: usize) -> SqlResult<ArrayRef> {
        Ok(finish(first(&self.states, n_groups).to_vec(), first(&self.seen, n_groups).to_vec()))
    }

    fn n_groups(&self) -> usize {
        self.seen.len()
    }

    fn discard(&mut self, emit: Emit) {
        take_groups(&mut self.states, emit);
        take_groups(&mut self.seen, emit);
    }

    fn grow(&mut self, n_groups: usize) {
        if self.seen.len() < n_groups {
            self.states.resize_with(n_groups, Acc::default);
            self.seen.resize(n_groups, false);
        }
    }

    fn memory_bytes(&self) -> usize {
        self.states.capacity() * size_of::<Acc>() + self.seen.capacity()
    }
}
