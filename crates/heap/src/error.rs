//! What can be wrong with a heap, and the one place that turns it into SQL's terms.

use stegodon_types::{SqlError, SqlState};

/// An error of this crate.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A tuple that cannot be read.
    #[error("could not read tuple ({block},{offset}) of relation \"{relation}\": {why}")]
    Tuple {
        /// The relation's name.
        relation: String,
        /// The block.
        block: u32,
        /// The line pointer.
        offset: u16,
        /// What is wrong with it.
        why: stegodon_format::Error,
    },
    /// A chain of tuple versions that leads in circles.
    #[error("HOT chain at ({block},{offset}) of relation \"{relation}\" does not end")]
    EndlessChain {
        /// The relation's name.
        relation: String,
        /// The block.
        block: u32,
        /// The line pointer that the chain starts at.
        offset: u16,
    },
    /// A relation whose description cannot be right.
    #[error("column description of relation \"{relation}\" is wrong: {why}")]
    Description {
        /// The relation's name.
        relation: String,
        /// What is wrong with it.
        why: String,
    },
    /// A column of a type that we do not read, and that was asked for.
    #[error("reading column \"{column}\" of type with OID {type_oid}")]
    UnsupportedColumn {
        /// The column's name.
        column: String,
        /// Its type.
        type_oid: u32,
    },
    /// A value of a TOAST table that is not whole; the message is PostgreSQL's.
    #[error("{0}")]
    Toast(String),
    /// A value of a TOAST table that does not decompress.
    #[error("toast value {value_id}: {why}")]
    ToastData {
        /// The value's OID.
        value_id: u32,
        /// What is wrong with it.
        why: stegodon_format::Error,
    },
    /// A caller's mistake.
    #[error("{0}")]
    Internal(&'static str),
    /// What deciding about visibility has failed with.
    #[error("{0}")]
    Visibility(SqlError),
}

/// The result of this crate's operations.
pub type Result<T> = std::result::Result<T, Error>;

/// Unsupported formats are refused by name; anything else wrong with bytes is corruption.
fn of_format(why: &stegodon_format::Error, message: String) -> SqlError {
    use stegodon_format::Error::{CorruptCompressedData, TooLarge, Unsupported};
    match why {
        Unsupported(what) => SqlError::unsupported(what).detail(message),
        TooLarge { .. } => SqlError::new(SqlState::ProgramLimitExceeded, message),
        // PostgreSQL names neither tuple nor value here, so neither does the message.
        CorruptCompressedData { .. } => SqlError::new(SqlState::DataCorrupted, why.to_string()).detail(message),
        _ => SqlError::new(SqlState::DataCorrupted, message),
    }
}

impl From<Error> for SqlError {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Tuple { why, .. } | Error::ToastData { why, .. } => of_format(&why, message),
            Error::EndlessChain { .. } | Error::Toast(_) => SqlError::new(SqlState::DataCorrupted, message),
            Error::Description { .. } => SqlError::new(SqlState::InternalError, message),
            Error::UnsupportedColumn { .. } => SqlError::unsupported(message),
            Error::Internal(what) => SqlError::internal(what),
            Error::Visibility(error) => error,
        }
    }
}
