//! What can go wrong between wanting a page and having it.

use stegodon_types::{SqlError, SqlState};

/// An error of this crate. It can be cloned: everyone who waits for a page gets it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Reading failed.
    #[error(transparent)]
    Io(#[from] stegodon_io::Error),
    /// What was read is no page.
    #[error("invalid page in block {block} of relation \"{path}\"")]
    InvalidPage {
        /// The block.
        block: u32,
        /// The relation's first file, relative to the data directory.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// Every frame is pinned.
    #[error("no unpinned buffers available")]
    NoUnpinnedBuffers,
    /// The pool's memory could not be had.
    #[error("could not map {bytes} bytes for the buffer pool")]
    Memory {
        /// How many were wanted.
        bytes: usize,
    },
}

/// The result of this crate's operations.
pub type Result<T> = std::result::Result<T, Error>;

impl From<Error> for SqlError {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Io(error) => error.into(),
            Error::InvalidPage { why, .. } => SqlError::new(SqlState::DataCorrupted, message).detail(why),
            Error::NoUnpinnedBuffers => SqlError::new(SqlState::InternalError, message),
            Error::Memory { .. } => SqlError::new(SqlState::OutOfMemory, message),
        }
    }
}
