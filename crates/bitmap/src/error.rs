//! What a bitmap refuses.

use stegodon_format::ids::{BlockNumber, OffsetNumber};
use stegodon_types::{SqlError, SqlState};

/// A TID that no heap can have: the index that it comes from is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An offset of 0, or beyond what fits on a page.
    #[error("tuple offset out of range: {0}")]
    OffsetOutOfRange(OffsetNumber),
    /// The block number that means "none".
    #[error("block number out of range: {0}")]
    BlockOutOfRange(BlockNumber),
}

/// The result of adding to a bitmap.
pub type Result<T> = std::result::Result<T, Error>;

impl From<Error> for SqlError {
    fn from(error: Error) -> Self {
        SqlError::new(SqlState::InternalError, error.to_string())
    }
}
