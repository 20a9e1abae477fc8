//! Reading little-endian numbers out of untrusted bytes.

use crate::error::{Error, Result};

/// The bytes of one structure, with its name for error messages.
#[derive(Clone, Copy)]
pub(crate) struct Bytes<'a> {
    what: &'static str,
    bytes: &'a [u8],
}

macro_rules! number {
    ($name:ident, $ty:ty) => {
        pub(crate) fn $name(self, offset: usize) -> Result<$ty> {
            Ok(<$ty>::from_le_bytes(self.array(offset)?))
        }
    };
}

impl<'a> Bytes<'a> {
    pub(crate) const fn new(what: &'static str, bytes: &'a [u8]) -> Self {
        Self { what, bytes }
    }

    pub(crate) fn array<const N: usize>(self, offset: usize) -> Result<[u8; N]> {
        match self.bytes.get(offset..).and_then(|rest| rest.first_chunk::<N>()) {
            Some(array) => Ok(*array),
            None => Err(self.truncated(offset, N)),
        }
    }

    pub(crate) fn slice(self, offset: usize, len: usize) -> Result<&'a [u8]> {
        match offset.checked_add(len).and_then(|end| self.bytes.get(offset..end)) {
            Some(slice) => Ok(slice),
            None => Err(self.truncated(offset, len)),
        }
    }

    number!(u8, u8);
    number!(u16, u16);
    number!(u32, u32);
    number!(u64, u64);
    number!(i32, i32);
    number!(i64, i64);

    #[cold]
    fn truncated(self, offset: usize, needed: usize) -> Error {
        Error::Truncated { what: self.what, offset, needed, available: self.bytes.len().saturating_sub(offset) }
    }
}
