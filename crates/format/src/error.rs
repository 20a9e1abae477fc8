//! What can be wrong with bytes. Every decoder of this crate returns [`Error`]; none panics.

/// What is wrong, and where.
///
/// Offsets count from the start of the structure that is named. The caller knows which block of which relation, or
/// which file, the bytes came from and adds that.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes end before the structure does.
    #[error("{what} is cut short: {needed} bytes wanted at offset {offset}, {available} there")]
    Truncated {
        /// The structure.
        what: &'static str,
        /// Where in it.
        offset: usize,
        /// How many bytes the structure needs from there.
        needed: usize,
        /// How many there are.
        available: usize,
    },

    /// A page header that PostgreSQL would call an invalid page.
    #[error("invalid page header: {field} is {value}")]
    InvalidPageHeader {
        /// The field that is impossible.
        field: &'static str,
        /// Its value.
        value: u32,
    },

    /// A line pointer that does not exist, or one that points outside of the page's items.
    #[error("corrupted line pointer {offset}: offset {item_offset}, length {item_len}")]
    InvalidLinePointer {
        /// The line pointer's number.
        offset: u16,
        /// Where it points.
        item_offset: u16,
        /// The length that it gives.
        item_len: u16,
    },

    /// A line pointer's number beyond the page's last.
    #[error("no line pointer {offset} on a page with {max}")]
    NoSuchLinePointer {
        /// The number asked for.
        offset: u16,
        /// The last number in use.
        max: u16,
    },

    /// A field whose value cannot be.
    #[error("{what}: {field} is {value}")]
    InvalidField {
        /// The structure.
        what: &'static str,
        /// Its field.
        field: &'static str,
        /// The value found.
        value: u64,
    },

    /// A stored CRC or checksum that is not the computed one.
    #[error("{what}: calculated checksum {computed:08X} does not match value {stored:08X} stored in file")]
    ChecksumMismatch {
        /// The structure.
        what: &'static str,
        /// The stored checksum.
        stored: u32,
        /// The one computed from the bytes.
        computed: u32,
    },

    /// Compressed data that is no compressed data, or that grows beyond what was announced.
    #[error("compressed {method} data is corrupt")]
    CorruptCompressedData {
        /// The compression method's name.
        method: &'static str,
    },

    /// A value larger than the limit that the caller set.
    #[error("{what} of {size} bytes exceeds the limit of {limit}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Its size in bytes.
        size: usize,
        /// The limit in bytes.
        limit: usize,
    },

    /// A layout from a PostgreSQL version that is not read yet.
    #[error("PostgreSQL {0} data directories are not supported by Stegodon yet (18 is)")]
    UnsupportedVersion(String),

    /// A feature of the format that is refused by name: never guessed at.
    #[error("{0} is not supported by Stegodon yet")]
    Unsupported(&'static str),
}

/// The result of decoding.
pub type Result<T> = std::result::Result<T, Error>;
