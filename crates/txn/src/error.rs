//! What can be wrong with transactions' records, and the one place that turns it into SQL's terms.

use stegodon_format::ids::{MultiXactId, Xid};
use stegodon_types::{SqlError, SqlState};

/// An error of this crate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing is recorded about a transaction or multixact that a tuple names.
    #[error("could not access status of transaction {number}")]
    NoStatus {
        /// The transaction's id, or the multixact's.
        number: u32,
        /// What was missing: a file, or a part of one.
        detail: String,
        /// Whether the record does not exist at all, and was not merely unreadable.
        missing: bool,
    },
    /// A tuple names a multixact that was removed.
    #[error("MultiXactId {0} does no longer exist -- apparent wraparound")]
    MultiXactTooOld(MultiXactId),
    /// A tuple names a multixact that was never created.
    #[error("MultiXactId {0} has not been created yet -- apparent wraparound")]
    MultiXactInFuture(MultiXactId),
    /// The record of a multixact is damaged.
    #[error("MultiXact {multi} has invalid {what}")]
    MultiXactCorrupt {
        /// The multixact.
        multi: MultiXactId,
        /// What of it.
        what: &'static str,
    },
    /// A file in `pg_twophase` is damaged.
    #[error("corrupted two-phase state for transaction {xid}")]
    CorruptTwoPhaseState {
        /// The transaction of the file's name.
        xid: Xid,
        /// What is wrong.
        detail: String,
    },
    /// The cluster was not shut down cleanly, so that its files are not complete.
    #[error("database system was not shut down cleanly: it is \"{state}\"")]
    NotShutDown {
        /// What `pg_control` says.
        state: &'static str,
    },
    /// A directory could not be listed.
    #[error("could not read directory \"{path}\": {reason}")]
    Directory {
        /// The directory.
        path: String,
        /// Why.
        reason: String,
    },
    /// A file could not be read.
    #[error(transparent)]
    Io(#[from] stegodon_io::Error),
}

/// The result of everything here that can fail.
pub type Result<T> = std::result::Result<T, Error>;

impl From<Error> for SqlError {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::NoStatus { detail, missing, .. } => {
                let state = if missing { SqlState::UndefinedFile } else { SqlState::DataCorrupted };
                SqlError::new(state, message).detail(detail)
            }
            Error::MultiXactTooOld(_) | Error::MultiXactInFuture(_) => SqlError::new(SqlState::InternalError, message),
            Error::MultiXactCorrupt { .. } => SqlError::new(SqlState::DataCorrupted, message),
            Error::CorruptTwoPhaseState { detail, .. } => {
                SqlError::new(SqlState::DataCorrupted, message).detail(detail)
            }
            Error::NotShutDown { .. } => SqlError::new(SqlState::ObjectNotInPrerequisiteState, message)
                .hint("Start and stop it with PostgreSQL, or make a copy of a cleanly shut down cluster."),
            Error::Directory { .. } => SqlError::new(SqlState::IoError, message),
            Error::Io(error) => error.into(),
        }
    }
}
