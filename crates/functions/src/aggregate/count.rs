//! `count`.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int64Array};
use stegodon_types::{SqlError, SqlResult};

use super::*;

/// `count(*)` where there is no argument, `count(x)` where there is one.
#[derive(Default)]
pub(super) struct Count {
    counts: Vec<i64>,
}

impl GroupAggregate for Count {
    fn update(&mut self, _: &EvalContext<'_>, args: &[ArrayRef], groups: &[usize], _: usize) -> SqlResult<()> {
        // One argument that is not strict in the others: regr_count counts rows where both are known.
        let nulls = args.iter().filter_map(|a| a.nulls()).filter(|n| n.null_count() > 0).collect::<Vec<_>>();
        for (group, rows) in runs(groups) {
            let counted = if nulls.is_empty() {
                rows.len()
            } else {
                rows.filter(|row| nulls.iter().all(|n| n.is_valid(*row))).count()
            };
            *slot(&mut self.counts, group)? += counted as i64;
        }
        Ok(())
    }

    fn merge(&mut self, _: &EvalContext<'_>, states: &[ArrayRef], groups: &[usize], _: usize) -> SqlResult<()> {
        let counts = arg(states, 0)?.as_any().downcast_ref::<Int64Array>();
        let counts = counts.ok_or_else(|| SqlError::internal("a state is not of its layout"))?;
        for (&group, &count) in groups.iter().zip(counts.values()) {
            *slot(&mut self.counts, group)? += count;
        }
        Ok(())
    }

    fn state(&mut self, emit: Emit) -> SqlResult<Vec<ArrayRef>> {
        Ok(vec![Arc::new(Int64Array::from(take_groups(&mut self.counts, emit)))])
    }

    fn results(&mut self, _: &EvalContext<'_>, n_groups: usize) -> SqlResult<ArrayRef> {
        Ok(Arc::new(Int64Array::from(first(&self.counts, n_groups).to_vec())))
    }

    fn n_groups(&self) -> usize {
        self.counts.len()
    }

    fn discard(&mut self, emit: Emit) {
        take_groups(&mut self.counts, emit);
    }

    fn grow(&mut self, n_groups: usize) {
        if self.counts.len() < n_groups {
            self.counts.resize(n_groups, 0);
        }
    }

    fn memory_bytes(&self) -> usize {
        self.counts.capacity() * size_of::<i64>()
    }
}
