//! One byte string a group, kept in place: replacing a value reuses its room.

use stegodon_types::{ColumnBuilder, Datum, TypeContext, ValueRef, value_at};

use super::*;

/// One value of any layout a group.
pub(super) struct Slots {
    layout: Layout,
    values: Vec<Option<Datum>>,
    bytes: Vec<Vec<u8>>,
    held_bytes: usize,
}

impl Slots {
    pub(super) fn new(layout: Layout) -> Self {
        Slots { layout, values: Vec::new(), bytes: Vec::new(), held_bytes: 0 }
    }

    pub(super) fn grow(&mut self, n_groups: usize) {
        if self.values.len() < n_groups {
            self.values.resize(n_groups, None);
            self.bytes.resize(n_groups, Vec::new());
        }
    }

    /// The group's value, `None` before its first.
    pub(super) fn get(&self, group: usize) -> Option<ValueRef<'_>> {
        match self.values.get(group)?.as_ref()? {
            // A marker: the bytes themselves are beside it.
            Datum::Bytes(_) => Some(ValueRef::Bytes(self.bytes.get(group)?)),
            other => Some(other.as_ref()),
        }
    }

    /// Replaces the group's value.
    pub(super) fn set(&mut self, group: usize, value: ValueRef<'_>) {
        let Some(slot) = self.values.get_mut(group) else { return };
        if let ValueRef::Bytes(v) = value {
            if let Some(bytes) = self.bytes.get_mut(group) {
                let before = bytes.capacity();
                bytes.clear();
                bytes.extend_from_slice(v);
                self.held_bytes += bytes.capacity() - before;
            }
            if slot.is_none() {
                *slot = Some(Datum::bytes([]));
            }
        } else {
            *slot = Some(value.to_datum());
        }
    }

    /// Hands out groups.
    pub(super) fn take(&mut self, emit: Emit) -> SqlResult<ArrayRef> {
        let n_groups = match emit {
            Emit::All => self.values.len(),
            Emit::First(n) => n,
        };
        let array = self.peek(n_groups)?;
        self.discard(emit);
        Ok(array)
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) fn discard(&mut self, emit: Emit) {
        take_groups(&mut self.values, emit);
        let bytes = take_groups(&mut self.bytes, emit);
        let freed: usize = bytes.iter().map(Vec::capacity).sum();
        self.held_bytes = self.held_bytes.saturating_sub(freed);
    }

    /// The first groups' values; they stay.
    pub(super) fn peek(&self, n_groups: usize) -> SqlResult<ArrayRef> {
        let values = first(&self.values, n_groups);
        let mut builder = ColumnBuilder::new(self.layout, values.len());
        for (value, bytes) in values.iter().zip(&self.bytes) {
            builder.append_option(value.as_ref().map(|v| match v {
                Datum::Bytes(_) => ValueRef::Bytes(bytes),
                other => other.as_ref(),
            }))?;
        }
        Ok(builder.finish())
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.held_bytes + self.values.capacity() * (size_of::<Option<Datum>>() + size_of::<Vec<u8>>())
    }
}

/// Folds byte strings: the first value, then a step for each further one. NULLs are passed over.
pub(super) struct BytesFold {
    ty: Arc<TypeDesc>,
    step: Step,
    slots: Slots,
}

/// Joins what there is with one more value.
pub(super) type Step = fn(&TypeContext<'_>, &TypeDesc, &[u8], &[u8]) -> SqlResult<Vec<u8>>;

impl BytesFold {
    pub(super) fn create(info: &AggregateInfo, step: Step) -> SqlResult<Box<dyn GroupAggregate>> {
        let ty = Arc::clone(info.arg(0)?);
        let slots = Slots::new(layout_of(&ty)?);
        Ok(Box::new(BytesFold { ty, step, slots }))
    }

    fn add(&mut self, cx: &EvalContext<'_>, array: &ArrayRef, groups: &[usize]) -> SqlResult<()> {
        let cx = TypeContext::new(cx.types, cx.settings);
        for (row, &group) in groups.iter().enumerate() {
            let Some(ValueRef::Bytes(value)) = value_at(array.as_ref(), self.slots.layout, row) else { continue };
            let joined = match self.slots.get(group) {
                Some(ValueRef::Bytes(before)) => Some((self.step)(&cx, &self.ty, before, value)?),
                _ => None,
            };
            self.slots.set(group, ValueRef::Bytes(joined.as_deref().unwrap_or(value)));
        }
        Ok(())
    }
}

impl GroupAggregate for BytesFold {
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
