//! `min`, `max` and `any_value` of any type.

use std::cmp::Ordering;

use arrow_array::ArrayRef;
use stegodon_types::{SqlResult, TypeContext, ops, value_at};

use super::bytes::Slots;
use super::*;

/// Which value stays.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// The greatest; of equals the latest, as most of PostgreSQL's `…_larger` functions do.
    Greatest,
    /// The least.
    Least,
    /// As above, but of equals the first (`bpchar`, `tid`).
    GreatestFirst,
    /// The least, of equals the first.
    LeastFirst,
    /// The first.
    First,
}

/// `min`, `max`, `any_value`.
pub(super) struct MinMax {
    keep: Keep,
    ty: Arc<TypeDesc>,
    layout: Layout,
    collation: Collation,
    slots: Slots,
}

impl MinMax {
    pub(super) fn create(info: &AggregateInfo, keep: Keep) -> SqlResult<Box<dyn GroupAggregate>> {
        let ty = Arc::clone(info.arg(0)?);
        let layout = layout_of(&ty)?;
        if keep != Keep::First && ops(&ty)?.compare.is_none() {
            return Err(SqlError::unsupported(format_args!("comparing values of type {}", ty.name)));
        }
        Ok(Box::new(MinMax { keep, ty, layout, collation: info.collation.clone(), slots: Slots::new(layout) }))
    }

    fn add(&mut self, cx: &EvalContext<'_>, array: &ArrayRef, groups: &[usize]) -> SqlResult<()> {
        let cx = TypeContext::new(cx.types, cx.settings);
        let compare = ops(&self.ty)?.compare;
        for (row, &group) in groups.iter().enumerate() {
            let Some(value) = value_at(array.as_ref(), self.layout, row) else { continue };
            let replace = match (self.slots.get(group), compare) {
                (None, _) => true,
                (Some(_), _) if self.keep == Keep::First => false,
                (Some(_), None) => return Err(SqlError::internal("a type lost its comparison")),
                (Some(current), Some(compare)) => {
                    let order = compare(&cx, &self.ty, &self.collation, current, value)?;
                    match self.keep {
                        Keep::Greatest => order != Ordering::Greater,
                        Keep::Least => order != Ordering::Less,
                        Keep::GreatestFirst => order == Ordering::Less,
                        Keep::LeastFirst => order == Ordering::Greater,
                        Keep::First => false,
                    }
                }
            };
            if replace {
                self.slots.set(group, value);
            }
        }
        Ok(())
    }
}

impl GroupAggregate for MinMax {
    fn update(&mut self, cx: &EvalContext<'_>, args: &[ArrayRef], groups: &[usize], _: usize) -> SqlResult<()> {
        self.add(cx, arg(args, 0)?, groups)
    }

    fn merge(&mut self, cx: &EvalContext<'_>, states: &[ArrayRef], groups: &[usize], _: usize) -> SqlResult<()> {
        self.add(cx, arg(states, 0)?, groups)
    }

    fn state(&mut self, emit: Emit) -> SqlResult<Vec<ArrayRef>> {
        Ok(vec![self.slots.take(emit)?])
    }

    fn results(&mut self, _: &EvalContext<'_>, n_groups: usize) -> SqlResult<ArrayRef> {
        self.slots.peek(n_groups)
    }

    fn n_groups(&self) -> usize {
        self.slots.len()
    }

    fn discard(&mut self, emit: Emit) {
        self.slots.discard(emit);
    }

    fn grow(&mut self, n_groups: usize) {
        self.slots.grow(n_groups);
    }

    fn memory_bytes(&self) -> usize {
        self.slots.memory_bytes()
    }
}
