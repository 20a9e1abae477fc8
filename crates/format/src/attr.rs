//! Walking the attribute values of a tuple.
//!
//! The same walk serves heap tuples, index tuples and composite values: [`TupleData`] is where the values are,
//! [`TupleLayout`] what the relation knows about them.
//!
//! ```text
//!   position    of the next value, from the start of the values, which lies at a multiple of 8
//!   len > 0     align up, then len bytes
//!   len = -1    a varlena: if the byte at the position is not 0 it is a header (short, or long and aligned already),
//!               else padding: align up; then the length that its header says
//!   len = -2    a C string up to and including its NUL
//!   null        takes no room
//! ```
//!
//! Values before the first null and behind none but fixed-size ones always lie at the same position; the layout knows
//! it (PostgreSQL's `attcacheoff`), so that reaching such a column costs one addition.

use crate::error::{Error, Result};
use crate::varlena;

/// How one attribute's values lie in a tuple: `pg_attribute.attlen` and `attalign`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttrLayout {
    /// The size in bytes; −1 for a varlena, −2 for a C string.
    pub len: i16,
    /// The alignment in bytes: 1, 2, 4 or 8.
    pub align: u8,
}

impl AttrLayout {
    /// A layout of `len` bytes aligned to `align`.
    pub const fn new(len: i16, align: u8) -> Self {
        Self { len, align }
    }

    /// A varlena, aligned to `align`.
    pub const fn varlena(align: u8) -> Self {
        Self { len: -1, align }
    }

    const fn is_valid(self) -> bool {
        matches!(self.align, 1 | 2 | 4 | 8) && (self.len > 0 || self.len == -1 || self.len == -2)
    }

    const fn align_up(self, position: usize) -> usize {
        let mask = self.align as usize - 1;
        (position + mask) & !mask
    }
}

/// The values of one tuple: their bytes, which of them are null, how many there are.
#[derive(Clone, Copy, Debug)]
pub struct TupleData<'a> {
    values: &'a [u8],
    nulls: Option<&'a [u8]>,
    natts: u16,
}

impl<'a> TupleData<'a> {
    /// `values` starts at a multiple of 8 of its page or datum; a set bit in `nulls` means *not* null.
    pub const fn new(values: &'a [u8], nulls: Option<&'a [u8]>, natts: u16) -> Self {
        Self { values, nulls, natts }
    }

    /// The number of attributes stored.
    pub const fn natts(self) -> u16 {
        self.natts
    }

    /// The bytes of the values.
    pub const fn values(self) -> &'a [u8] {
        self.values
    }

    /// Whether attribute `index` (from 0) is null. Attributes that the bitmap does not reach count as null.
    pub fn is_null(self, index: usize) -> bool {
        match self.nulls {
            None => false,
            Some(bits) => bits.get(index >> 3).is_none_or(|byte| byte & 1 << (index & 7) == 0),
        }
    }

    /// The index of the first null, or more than any attribute's index.
    fn first_null(self) -> usize {
        let Some(bits) = self.nulls else { return usize::MAX };
        let whole = bits.iter().take_while(|&&byte| byte == 0xFF).count();
        let rest = bits.get(whole).map_or(0, |byte| byte.trailing_ones() as usize);
        whole * 8 + rest
    }
}

/// One attribute of one tuple.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attr<'a> {
    /// The tuple is older than the column: the value is the column's `attmissingval`, or null if it has none.
    #[default]
    Missing,
    /// Null.
    Null,
    /// The bytes as stored: with a varlena's header, with a C string's NUL.
    Value(&'a [u8]),
}

/// How the attributes of one relation's tuples lie. Built once per relation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TupleLayout {
    attrs: Box<[AttrLayout]>,
    /// For the first few attributes, where their values start in a tuple without nulls before them.
    fixed_positions: Box<[u32]>,
}

impl TupleLayout {
    /// From the layouts of all attributes, dropped ones included (they keep their length and alignment).
    pub fn new(attrs: impl IntoIterator<Item = AttrLayout>) -> Result<Self> {
        let attrs: Box<[AttrLayout]> = attrs.into_iter().collect();
        if let Some(bad) = attrs.iter().find(|attr| !attr.is_valid()) {
            let value = u64::from(bad.len as u16) << 8 | u64::from(bad.align);
            return Err(Error::InvalidField { what: "attribute", field: "length and alignment", value });
        }
        let mut fixed = Vec::new();
        let mut position = 0usize;
        for attr in &attrs {
            // The first varlena starts at a fixed position too, but only where no padding can come before it.
            if attr.len < 0 && attr.align_up(position) != position {
                break;
            }
            let start = attr.align_up(position);
            fixed.push(start as u32);
            if attr.len < 0 {
                break;
            }
            position = start + attr.len as usize;
        }
        Ok(Self { attrs, fixed_positions: fixed.into() })
    }

    /// The attributes' layouts.
    pub fn attrs(&self) -> &[AttrLayout] {
        &self.attrs
    }

    /// The number of attributes.
    pub fn len(&self) -> usize {
        self.attrs.len()
    }

    /// Whether there are no attributes.
    pub fn is_empty(&self) -> bool {
        self.attrs.is_empty()
    }

    /// A cursor over one tuple, for reading some attributes.
    pub fn cursor<'l, 'a>(&'l self, tuple: TupleData<'a>) -> AttrCursor<'l, 'a> {
        let fixed = self.fixed_positions.len().min(tuple.first_null());
        AttrCursor { layout: self, tuple, fixed, next: 0, position: 0 }
    }

    /// Reads the first `out.len()` attributes into `out`.
    pub fn deform<'a>(&self, tuple: TupleData<'a>, out: &mut [Attr<'a>]) -> Result<()> {
        let mut cursor = self.cursor(tuple);
        for (index, attr) in out.iter_mut().enumerate() {
            *attr = cursor.get(index)?;
        }
        Ok(())
    }
}

/// Reads attributes of one tuple; forward is cheap, backward starts over.
#[derive(Clone, Debug)]
pub struct AttrCursor<'l, 'a> {
    layout: &'l TupleLayout,
    tuple: TupleData<'a>,
    /// How many of the layout's fixed positions hold in this tuple.
    fixed: usize,
    /// The attribute that the walk comes to next.
    next: usize,
    /// Where the walk is, before aligning.
    position: usize,
}

impl<'a> AttrCursor<'_, 'a> {
    /// Attribute `index`, from 0.
    pub fn get(&mut self, index: usize) -> Result<Attr<'a>> {
        let Some(&attr) = self.layout.attrs.get(index) else { return Err(self.no_such(index)) };
        if index >= usize::from(self.tuple.natts) {
            return Ok(Attr::Missing);
        }
        if self.tuple.is_null(index) {
            return Ok(Attr::Null);
        }
        if index < self.fixed {
            if let Some(&start) = self.layout.fixed_positions.get(index) {
                // Jump there, so that the walk goes on from here.
                self.next = index;
                self.position = start as usize;
            }
        } else if index < self.next {
            self.next = 0;
            self.position = 0;
        }
        if index >= self.fixed && self.next + 1 < self.fixed {
            self.skip_fixed();
        }
        while self.next < index {
            let Some(&skipped) = self.layout.attrs.get(self.next) else { return Err(self.no_such(index)) };
            if !self.tuple.is_null(self.next) {
                self.position = self.extent(skipped)?.1;
            }
            self.next += 1;
        }
        let (start, end) = self.extent(attr)?;
        match self.tuple.values.get(start..end) {
            Some(value) => {
                self.next = index + 1;
                self.position = end;
                Ok(Attr::Value(value))
            }
            None => Err(truncated(start, end - start, self.tuple.values.len())),
        }
    }

    /// Starts the walk at the last attribute whose position is fixed.
    fn skip_fixed(&mut self) {
        if let Some(last) = self.fixed.checked_sub(1)
            && let Some(&start) = self.layout.fixed_positions.get(last)
        {
            self.next = last;
            self.position = start as usize;
        }
    }

    /// Where the value that the walk has come to starts and ends. Not null.
    #[inline]
    fn extent(&self, attr: AttrLayout) -> Result<(usize, usize)> {
        if attr.len > 0 {
            let start = attr.align_up(self.position);
            return Ok((start, start + attr.len as usize));
        }
        let values = self.tuple.values;
        let Some(first) = values.get(self.position) else { return Err(truncated(self.position, 1, values.len())) };
        let start = if attr.len == -1 && *first != 0 { self.position } else { attr.align_up(self.position) };
        let Some(rest) = values.get(start..) else { return Err(truncated(start, 1, values.len())) };
        let len = if attr.len == -1 {
            varlena::stored_len(rest)?
        } else {
            match rest.iter().position(|&byte| byte == 0) {
                Some(nul) => nul + 1,
                None => return Err(truncated(start, rest.len() + 1, values.len())),
            }
        };
        Ok((start, start + len))
    }

    #[cold]
    fn no_such(&self, index: usize) -> Error {
        let what = "tuple layout";
        let available = self.layout.attrs.len();
        Error::Truncated { what, offset: index, needed: 1, available: available.saturating_sub(index) }
    }
}

#[cold]
fn truncated(offset: usize, needed: usize, len: usize) -> Error {
    Error::Truncated { what: "tuple", offset, needed, available: len.saturating_sub(offset) }
}

#[cfg(test)]
#[path = "attr_tests.rs"]
mod tests;
