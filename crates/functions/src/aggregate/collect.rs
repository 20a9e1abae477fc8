//! `string_agg`: text and bytea, in the order of the rows.

use arrow_array::{Array, ArrayRef};
use stegodon_types::SqlResult;

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

    fn evaluate(&mut self, _: &EvalContext<'_>, emit: Emit) -> SqlResult<ArrayRef> {
        let groups = take_groups(&mut self.groups, emit);
        let mut out = ByteBuilder::new(Layout::Bytes, groups.len(), 0);
        for g in &groups {
            self.held_bytes = self.held_bytes.saturating_sub(g.text.len());
            out.push(if g.seen { g.text.get(g.first_delimiter_bytes..) } else { None });
        }
        out.finish()
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
