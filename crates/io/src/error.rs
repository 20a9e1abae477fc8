//! What can go wrong between a data directory and memory, and the one place that turns it into SQL's terms.

use std::fmt;
use std::io;

use stegodon_types::{SqlError, SqlState};

/// The operating system's error number, printed as PostgreSQL's `%m` prints it. Unlike [`io::Error`] it can be cloned,
/// which several readers that wait for one block need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

impl From<&io::Error> for Errno {
    fn from(error: &io::Error) -> Self {
        Errno(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = io::Error::from_raw_os_error(self.0).to_string();
        f.write_str(text.rsplit_once(" (os error").map_or(text.as_str(), |(message, _)| message))
    }
}

/// An error of this crate. File names are relative to the data directory, as PostgreSQL prints them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be opened.
    #[error("could not open file \"{path}\": {errno}")]
    Open {
        /// The file.
        path: String,
        /// Why.
        errno: Errno,
    },
    /// A file's length could not be found out.
    #[error("could not stat file \"{path}\": {errno}")]
    Stat {
        /// The file.
        path: String,
        /// Why.
        errno: Errno,
    },
    /// A small file could not be read.
    #[error("could not read file \"{path}\": {errno}")]
    ReadFile {
        /// The file.
        path: String,
        /// Why.
        errno: Errno,
    },
    /// A run of blocks could not be read.
    #[error("could not read blocks {first}..{last} in file \"{path}\": {errno}")]
    Read {
        /// The segment's file.
        path: String,
        /// The first block of the run, counted from the start of the relation.
        first: u32,
        /// The last block of the run.
        last: u32,
        /// Why.
        errno: Errno,
    },
    /// The file ends before the run of blocks does.
    #[error("could not read blocks {first}..{last} in file \"{path}\": read only {read} of {wanted} bytes")]
    ShortRead {
        /// The segment's file.
        path: String,
        /// The first block of the run, counted from the start of the relation.
        first: u32,
        /// The last block of the run.
        last: u32,
        /// How many bytes there were.
        read: usize,
        /// How many bytes were wanted.
        wanted: usize,
    },
    /// A segment that the block number needs does not exist, because an earlier one is not full.
    #[error("could not open file \"{path}\" (target block {block}): previous segment is only {blocks} blocks")]
    PreviousSegmentShort {
        /// The segment's file.
        path: String,
        /// The block wanted.
        block: u32,
        /// The length of the segment before it.
        blocks: u64,
    },
    /// A segment is longer than segments may be.
    #[error("segment \"{path}\" too big: {blocks} blocks")]
    SegmentTooBig {
        /// The segment's file.
        path: String,
        /// Its length.
        blocks: u64,
    },
    /// What looks like a data directory is none that can be read.
    #[error("\"{path}\" is not a valid data directory: {why}")]
    NotADataDirectory {
        /// The directory.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// A request was dropped by its method before it was carried out.
    #[error("read of block {block} of \"{path}\" was abandoned")]
    Abandoned {
        /// The relation's first segment.
        path: String,
        /// The first block of the request.
        block: u32,
    },
}

/// The result of this crate's operations.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Whether a file was not there at all.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Error::Open { errno: Errno(libc::ENOENT), .. })
    }
}

/// The SQLSTATE of a file access error, as PostgreSQL's `errcode_for_file_access` chooses it.
fn state_of(errno: Errno) -> SqlState {
    match errno.0 {
        libc::EPERM | libc::EACCES | libc::EROFS => SqlState::InsufficientPrivilege,
        libc::ENOENT => SqlState::UndefinedFile,
        libc::ENOTDIR | libc::EISDIR | libc::ENOTEMPTY => SqlState::WrongObjectType,
        libc::ENOSPC => SqlState::DiskFull,
        libc::ENOMEM => SqlState::OutOfMemory,
        libc::EMFILE | libc::ENFILE => SqlState::InsufficientResources,
        libc::EIO => SqlState::IoError,
        _ => SqlState::InternalError,
    }
}

impl From<Error> for SqlError {
    fn from(error: Error) -> Self {
        let state = match &error {
            Error::Open { errno, .. }
            | Error::Stat { errno, .. }
            | Error::ReadFile { errno, .. }
            | Error::Read { errno, .. } => state_of(*errno),
            Error::ShortRead { .. } => SqlState::DataCorrupted,
            // PostgreSQL reports both with the errno of the open that it did not try, ENOENT.
            Error::PreviousSegmentShort { .. } => SqlState::UndefinedFile,
            Error::SegmentTooBig { .. } | Error::Abandoned { .. } => SqlState::InternalError,
            Error::NotADataDirectory { .. } => SqlState::InvalidParameterValue,
        };
        SqlError::new(state, error.to_string())
    }
}
