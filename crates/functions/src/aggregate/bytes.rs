//! One byte string a group, kept in place: replacing a value reuses its room.

use arrow_array::ArrayRef;
use stegodon_types::{ColumnBuilder, Datum, Layout, SqlResult, ValueRef};

use super::{Emit, take_groups};

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
        let values = take_groups(&mut self.values, emit);
        let bytes = take_groups(&mut self.bytes, emit);
        let mut builder = ColumnBuilder::new(self.layout, values.len());
        for (value, bytes) in values.iter().zip(&bytes) {
            self.held_bytes = self.held_bytes.saturating_sub(bytes.capacity());
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
