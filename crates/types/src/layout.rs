//! How a type's values lie on disk and in memory.
//!
//! ```text
//!  pg_type                      on disk                     in a batch (Arrow)        alone (Datum)
//!  typlen 1, bool               1 byte                      Boolean                   Bool
//!  "char"                       1 byte                      UInt8                     Char
//!  int2                         2 bytes                     Int16                     Int16
//!  int4, date                   4 bytes                     Int32                     Int32
//!  oid, reg*, xid, cid, enum    4 bytes                     UInt32                    UInt32
//!  int8, time, timestamp[tz],   8 bytes                     Int64                     Int64
//!    money
//!  xid8, pg_lsn                 8 bytes                     UInt64                    UInt64
//!  float4, float8               4, 8 bytes                  Float32, Float64          Float32, Float64
//!  uuid 16, interval 16,        n bytes                     FixedSizeBinary(n)        Bytes
//!    timetz 12, macaddr 6, tid 6
//!  name                         64 bytes, NUL padded        LargeBinary, cut at NUL   Bytes
//!  typlen -1 (all others)       varlena                     LargeBinary: the payload  Bytes
//! ```
//!
//! A varlena's payload is what follows its length word, decompressed and fetched from TOAST. Offsets inside an array,
//! range, composite or jsonb payload count from the length word, so their alignment is that of `4 + position`.
//! Text stays bytes inside (SQL_ASCII has no other form) and becomes UTF-8 at the library's edge.

use arrow_schema::DataType;

/// The form in which a type's values are computed with. One Arrow type, one [`crate::Datum`] variant each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// One byte, 0 or 1.
    Bool,
    /// One unsigned byte: PostgreSQL's `"char"`.
    Char,
    /// Two bytes, signed.
    Int16,
    /// Four bytes, signed.
    Int32,
    /// Four bytes, unsigned.
    UInt32,
    /// Eight bytes, signed.
    Int64,
    /// Eight bytes, unsigned.
    UInt64,
    /// IEEE single.
    Float32,
    /// IEEE double.
    Float64,
    /// A fixed number of bytes that no number type fits.
    Fixed(u8),
    /// `name`: 64 bytes on disk, its bytes up to the first NUL in memory.
    Name,
    /// A varlena's payload.
    Bytes,
}

impl Layout {
    /// The Arrow type of a column of this layout.
    pub fn arrow(self) -> DataType {
        match self {
            Layout::Bool => DataType::Boolean,
            Layout::Char => DataType::UInt8,
            Layout::Int16 => DataType::Int16,
            Layout::Int32 => DataType::Int32,
            Layout::UInt32 => DataType::UInt32,
            Layout::Int64 => DataType::Int64,
            Layout::UInt64 => DataType::UInt64,
            Layout::Float32 => DataType::Float32,
            Layout::Float64 => DataType::Float64,
            Layout::Fixed(n) => DataType::FixedSizeBinary(i32::from(n)),
            Layout::Name | Layout::Bytes => DataType::LargeBinary,
        }
    }
}

/// The alignment of a type's values within a tuple, as `pg_type.typalign` spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Align {
    /// `c`: none.
    Char,
    /// `s`: two bytes.
    Short,
    /// `i`: four bytes.
    Int,
    /// `d`: eight bytes.
    Double,
}

impl Align {
    /// The alignment that a catalog letter means.
    pub const fn from_letter(letter: u8) -> Option<Align> {
        match letter {
            b'c' => Some(Align::Char),
            b's' => Some(Align::Short),
            b'i' => Some(Align::Int),
            b'd' => Some(Align::Double),
            _ => None,
        }
    }

    /// In bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Align::Char => 1,
            Align::Short => 2,
            Align::Int => 4,
            Align::Double => 8,
        }
    }

    /// The first multiple of this alignment at or after `position`.
    pub const fn up(self, position: usize) -> usize {
        let mask = self.bytes() - 1;
        (position + mask) & !mask
    }
}
