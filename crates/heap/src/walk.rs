//! Where the values wanted lie in each tuple of a page.
//!
//! ```text
//!   tuple without nulls     leading columns of fixed size: at known positions │ then one by one
//!   tuple with nulls        one by one from the first column
//!
//!   places:   column 0: row 0, row 1, …   column 1: row 0, …
//! ```
//!
//! This is [`stegodon_format::attr`]'s walk for many tuples and given columns. A place is one word, because a scan makes
//! one for each value it reads.

use stegodon_format::Error;
use stegodon_format::attr::AttrLayout;
use stegodon_format::heap_tuple::HeapTupleRef;
use stegodon_format::ids::OffsetNumber;
use stegodon_format::varlena::stored_len;

use crate::error::Result;
use crate::page::HeapPage;

/// Where a value lies in its page: start in the lower half, length in the upper. Pages are smaller than 64 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u32);

impl Place {
    /// No value: NULL.
    pub(crate) const NULL: Place = Place(u32::MAX);
    /// The tuple is older than the column. As NULL's, not the place of any value: none starts at 65534.
    pub(crate) const MISSING: Place = Place(u32::MAX - 1);

    fn at(start: usize, len: usize) -> Self {
        debug_assert!(start + len <= 8192, "a value lies in its page");
        Place(start as u32 & 0xFFFF | (len as u32) << 16)
    }

    pub(crate) fn start(self) -> usize {
        self.0 as usize & 0xFFFF
    }

    pub(crate) fn len(self) -> usize {
        self.0 as usize >> 16
    }
}

#[derive(Clone, Copy, Debug)]
struct Step {
    len: i16,
    /// Alignment less one.
    mask: u16,
    /// Which of the columns wanted it is, or `UNWANTED`.
    column: u32,
}

const UNWANTED: u32 = u32::MAX;

/// A walk over a relation's tuples, up to the last column wanted.
#[derive(Clone, Debug)]
pub(crate) struct Walk {
    steps: Vec<Step>,
    /// Columns wanted more than once: (where it is found, where it is wanted too).
    copies: Vec<(usize, usize)>,
    /// How many leading columns are of fixed size, and where they end.
    fixed: usize,
    fixed_end: usize,
    /// Of those, the ones wanted: (column, start, length).
    fixed_wanted: Vec<(usize, usize, usize)>,
    columns: usize,
}

impl Walk {
    /// A walk over tuples of this layout for `wanted`: (index in the tuple, which of `columns` it is).
    pub(crate) fn new(attrs: &[AttrLayout], mut wanted: Vec<(usize, usize)>, columns: usize) -> Self {
        wanted.sort_unstable();
        let end = wanted.last().map_or(0, |&(index, _)| index + 1);
        let step = |attr: &AttrLayout| Step { len: attr.len, mask: u16::from(attr.align) - 1, column: UNWANTED };
        let mut steps: Vec<Step> = attrs.iter().take(end).map(step).collect();
        let mut copies = Vec::new();
        for (index, column) in wanted {
            match steps.get_mut(index) {
                Some(step) if step.column == UNWANTED => step.column = column as u32,
                Some(step) => copies.push((step.column as usize, column)),
                None => {}
            }
        }
        let (mut fixed, mut fixed_end, mut fixed_wanted) = (0, 0, Vec::new());
        for step in steps.iter().take_while(|step| step.len > 0) {
            let start = align(fixed_end, step.mask);
            if step.column != UNWANTED {
                fixed_wanted.push((step.column as usize, start, step.len as usize));
            }
            (fixed, fixed_end) = (fixed + 1, start + step.len as usize);
        }
        Self { steps, copies, fixed, fixed_end, fixed_wanted, columns }
    }

    /// Notes where the values of the tuples at `offsets` lie.
    pub(crate) fn find(&self, page: &HeapPage<'_>, offsets: &[OffsetNumber], places: &mut Vec<Place>) -> Result<()> {
        places.clear();
        if self.steps.is_empty() {
            return Ok(());
        }
        let rows = offsets.len();
        places.resize(self.columns * rows, Place::NULL);
        for (row, &offset) in offsets.iter().enumerate() {
            let tuple = page.tuple(offset)?;
            let set = |column: usize, place: Place| {
                if let Some(slot) = places.get_mut(column * rows + row) {
                    *slot = place;
                }
            };
            self.tuple(page, tuple, set).map_err(|why| page.bad_tuple(offset, why))?;
        }
        for &(from, to) in &self.copies {
            places.copy_within(from * rows..(from + 1) * rows, to * rows);
        }
        Ok(())
    }

    #[inline]
    fn tuple(
        &self,
        page: &HeapPage<'_>,
        tuple: HeapTupleRef<'_>,
        mut set: impl FnMut(usize, Place),
    ) -> std::result::Result<(), Error> {
        let data = tuple.data();
        let values = data.values();
        let natts = usize::from(data.natts());
        let nulls = tuple.null_bitmap();
        // The values are part of the page.
        let base = values.as_ptr() as usize - page.page().bytes().as_ptr() as usize;
        let (mut index, mut position) = (0, 0);
        if nulls.is_none() && natts >= self.fixed {
            if self.fixed_end > values.len() && !self.fixed_wanted.is_empty() {
                return Err(truncated(0, self.fixed_end, values.len()));
            }
            for &(column, start, len) in &self.fixed_wanted {
                set(column, Place::at(base + start, len));
            }
            (index, position) = (self.fixed, self.fixed_end);
        }
        let end = self.steps.len().min(natts);
        for (at, step) in self.steps.iter().enumerate().take(end).skip(index) {
            if nulls.is_some_and(|bits| bits.get(at >> 3).is_none_or(|byte| byte & 1 << (at & 7) == 0)) {
                continue; // places are NULL to begin with
            }
            let (start, len) = if step.len > 0 {
                (align(position, step.mask), step.len as usize)
            } else {
                variable(values, position, *step)?
            };
            position = start + len;
            if step.column != UNWANTED {
                if position > values.len() {
                    return Err(truncated(start, len, values.len()));
                }
                set(step.column as usize, Place::at(base + start, len));
            }
        }
        for step in self.steps.get(end..).unwrap_or(&[]) {
            if step.column != UNWANTED {
                set(step.column as usize, Place::MISSING);
            }
        }
        Ok(())
    }
}

fn align(position: usize, mask: u16) -> usize {
    (position + usize::from(mask)) & !usize::from(mask)
}

/// Start and length of a varlena or C string.
#[inline]
fn variable(values: &[u8], position: usize, step: Step) -> std::result::Result<(usize, usize), Error> {
    let Some(&first) = values.get(position) else { return Err(truncated(position, 1, values.len())) };
    // A byte that is not 0 is a varlena's header: short, or aligned already. A 0 is padding.
    let start = if step.len == -1 && first != 0 { position } else { align(position, step.mask) };
    let Some(rest) = values.get(start..) else { return Err(truncated(start, 1, values.len())) };
    if step.len == -1 {
        return Ok((start, stored_len(rest)?));
    }
    match rest.iter().position(|&byte| byte == 0) {
        Some(nul) => Ok((start, nul + 1)),
        None => Err(truncated(start, rest.len() + 1, values.len())),
    }
}

#[cold]
fn truncated(offset: usize, needed: usize, len: usize) -> Error {
    Error::Truncated { what: "tuple", offset, needed, available: len.saturating_sub(offset) }
}

#[cfg(test)]
#[path = "walk_tests.rs"]
mod tests;
