//! Reading a `jsonb` in place.

use crate::{SqlError, SqlResult, SqlState};

pub(super) const ARRAY: u32 = 0x4000_0000;
pub(super) const OBJECT: u32 = 0x2000_0000;
pub(super) const SCALAR: u32 = 0x1000_0000;
pub(super) const COUNT_MASK: u32 = 0x0fff_ffff;
pub(super) const HAS_END: u32 = 0x8000_0000;
pub(super) const LENGTH_MASK: u32 = 0x0fff_ffff;
pub(super) const TYPE_MASK: u32 = 0x7000_0000;
pub(super) const STRING: u32 = 0;
pub(super) const NUMBER: u32 = 0x1000_0000;
pub(super) const FALSE: u32 = 0x2000_0000;
pub(super) const TRUE: u32 = 0x3000_0000;
pub(super) const NULL: u32 = 0x4000_0000;
pub(super) const CONTAINER: u32 = 0x5000_0000;

/// An array, an object, or a scalar alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Container<'a> {
    header: u32,
    bytes: &'a [u8],
}

/// One child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// The payload of a numeric.
    Number(&'a [u8]),
    /// A string's bytes.
    String(&'a [u8]),
    /// An array or object.
    Container(Container<'a>),
}

fn corrupt() -> SqlError {
    SqlError::new(SqlState::DataCorrupted, "a jsonb value is damaged")
}

fn word(bytes: &[u8], at: usize) -> SqlResult<u32> {
    let le = bytes.get(at..).and_then(|b| b.first_chunk::<4>()).ok_or_else(corrupt)?;
    Ok(u32::from_le_bytes(*le))
}

/// A numeric with its length word, of one byte or of four.
fn numeric_payload(bytes: &[u8]) -> SqlResult<&[u8]> {
    let first = *bytes.first().ok_or_else(corrupt)?;
    let (header, total) =
        if first & 1 == 1 { (1, usize::from(first >> 1)) } else { (4, word(bytes, 0)? as usize >> 2) };
    bytes.get(header..total).ok_or_else(corrupt)
}

impl<'a> Container<'a> {
    /// The container of a payload.
    pub fn new(bytes: &'a [u8]) -> SqlResult<Self> {
        let container = Container { header: word(bytes, 0)?, bytes };
        let kinds = container.header & (ARRAY | OBJECT);
        let room = bytes.len() / 4;
        if kinds == 0 || kinds == ARRAY | OBJECT || container.entries() >= room {
            return Err(corrupt());
        }
        if container.is_scalar() && (container.is_object() || container.count() != 1) {
            return Err(corrupt());
        }
        Ok(container)
    }

    /// How many elements or pairs.
    pub fn count(&self) -> usize {
        (self.header & COUNT_MASK) as usize
    }

    /// Whether it is an object.
    pub fn is_object(&self) -> bool {
        self.header & OBJECT != 0
    }

    /// Whether it is an array, and no scalar alone.
    pub fn is_array(&self) -> bool {
        self.header & ARRAY != 0 && !self.is_scalar()
    }

    /// Whether it is a scalar alone, its first child.
    pub fn is_scalar(&self) -> bool {
        self.header & SCALAR != 0
    }

    /// Its bytes, which are the payload of a `jsonb`.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    fn entries(&self) -> usize {
        if self.is_object() { self.count() * 2 } else { self.count() }
    }

    fn entry(&self, at: usize) -> SqlResult<u32> {
        word(self.bytes, 4 + at * 4)
    }

    /// Where a child's bytes start.
    fn offset(&self, at: usize) -> SqlResult<usize> {
        let mut offset = 0;
        for n in (0..at).rev() {
            let entry = self.entry(n)?;
            offset += (entry & LENGTH_MASK) as usize;
            if entry & HAS_END != 0 {
                break;
            }
        }
        Ok(offset)
    }

    /// A child that starts at an offset, and where the next one does.
    fn child_at(&self, at: usize, offset: usize) -> SqlResult<(Item<'a>, usize)> {
        let entry = self.entry(at)?;
        let stated = (entry & LENGTH_MASK) as usize;
        let end = if entry & HAS_END != 0 { stated } else { offset + stated };
        let data = self.bytes.get(4 + self.entries() * 4..).ok_or_else(corrupt)?;
        let bytes = || data.get(offset..end).ok_or_else(corrupt);
        let aligned = || data.get(offset.next_multiple_of(4)..end).ok_or_else(corrupt);
        let item = match entry & TYPE_MASK {
            STRING => Item::String(bytes()?),
            NUMBER => Item::Number(numeric_payload(aligned()?)?),
            FALSE => Item::Bool(false),
            TRUE => Item::Bool(true),
            NULL => Item::Null,
            CONTAINER => {
                let inner = Container::new(aligned()?)?;
                if inner.is_scalar() {
                    return Err(corrupt());
                }
                Item::Container(inner)
            }
            _ => return Err(corrupt()),
        };
        Ok((item, end))
    }

    /// A child by its place among the entries.
    fn child(&self, at: usize) -> SqlResult<Item<'a>> {
        Ok(self.child_at(at, self.offset(at)?)?.0)
    }

    /// An array's element; `None` where there is none.
    pub fn element(&self, at: usize) -> SqlResult<Option<Item<'a>>> {
        if self.is_object() || at >= self.count() { Ok(None) } else { self.child(at).map(Some) }
    }

    /// The scalar alone that it is.
    pub fn scalar(&self) -> SqlResult<Option<Item<'a>>> {
        if self.is_scalar() { self.child(0).map(Some) } else { Ok(None) }
    }

    /// An object's value of a key; `None` where there is none.
    pub fn get(&self, key: &[u8]) -> SqlResult<Option<Item<'a>>> {
        if !self.is_object() {
            return Ok(None);
        }
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = low + (high - low) / 2;
            let Item::String(candidate) = self.child(middle)? else { return Err(corrupt()) };
            match candidate.len().cmp(&key.len()).then_with(|| candidate.cmp(key)) {
                std::cmp::Ordering::Equal => return self.child(self.count() + middle).map(Some),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Ok(None)
    }

    /// Calls `f` for each element of an array (or the scalar alone), in order.
    pub fn for_each_element(&self, mut f: impl FnMut(Item<'a>) -> SqlResult<()>) -> SqlResult<()> {
        let mut offset = 0;
        for at in 0..if self.is_object() { 0 } else { self.count() } {
            let (item, next) = self.child_at(at, offset)?;
            offset = next;
            f(item)?;
        }
        Ok(())
    }

    /// Calls `f` for each pair of an object, in order.
    pub fn for_each_pair(&self, mut f: impl FnMut(&'a [u8], Item<'a>) -> SqlResult<()>) -> SqlResult<()> {
        let count = if self.is_object() { self.count() } else { 0 };
        let (mut key_offset, mut value_offset) = (0, self.offset(count)?);
        for at in 0..count {
            let (key, next) = self.child_at(at, key_offset)?;
            key_offset = next;
            let (value, next) = self.child_at(count + at, value_offset)?;
            value_offset = next;
            let Item::String(key) = key else { return Err(corrupt()) };
            f(key, value)?;
        }
        Ok(())
    }
}
