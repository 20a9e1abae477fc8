//! What can go wrong in an index, and the one place where it becomes an [`SqlError`].

use stegodon_format::ids::{BlockNumber, Oid};
use stegodon_types::{SqlError, SqlState};

/// An index that cannot be read. Every message names the index, and the block where there is one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A block of zeros where the tree leads to a page.
    #[error("index \"{index}\" contains unexpected zero page at block {block}")]
    ZeroPage {
        /// The index.
        index: String,
        /// The block.
        block: BlockNumber,
    },

    /// A page whose special area is not that of a B-tree page.
    #[error("index \"{index}\" contains corrupted page at block {block}")]
    CorruptedPage {
        /// The index.
        index: String,
        /// The block.
        block: BlockNumber,
    },

    /// Block 0 is no metapage.
    #[error("index \"{index}\" is not a btree")]
    NotBtree {
        /// The index.
        index: String,
    },

    /// A metapage of an unknown version.
    #[error(
        "version mismatch in index \"{index}\": file version {found}, current version 4, minimal supported version 2"
    )]
    VersionMismatch {
        /// The index.
        index: String,
        /// The version found.
        found: u32,
    },

    /// A tuple or line pointer that cannot be.
    #[error("index \"{index}\" contains corrupted tuple at block {block}, offset {offset}: {reason}")]
    CorruptedTuple {
        /// The index.
        index: String,
        /// The block.
        block: BlockNumber,
        /// The line pointer, 0 if the page as a whole is meant.
        offset: u16,
        /// What is wrong.
        reason: String,
    },

    /// A page of another level than the way to it says.
    #[error("block {block} of index \"{index}\" has level {found}, expected {expected}")]
    WrongLevel {
        /// The index.
        index: String,
        /// The block.
        block: BlockNumber,
        /// The level found.
        found: u32,
        /// The level expected.
        expected: u32,
    },

    /// No live page on the root's level.
    #[error("no live root page found in index \"{index}\"")]
    NoLiveRoot {
        /// The index.
        index: String,
    },

    /// Pages to the right all ignored, up to the end of the level.
    #[error("fell off the end of index \"{index}\"")]
    FellOffTheEnd {
        /// The index.
        index: String,
    },

    /// Sibling links that lead in a circle.
    #[error("circular link chain found in block {block} of index \"{index}\"")]
    CircularChain {
        /// The index.
        index: String,
        /// A block of the circle.
        block: BlockNumber,
    },

    /// A page whose left link is not the page whose right link led to it.
    #[error("left link/right link pair in index \"{index}\" not in agreement: block {block}, left block {left}")]
    LinksDisagree {
        /// The index.
        index: String,
        /// The right page.
        block: BlockNumber,
        /// The left page.
        left: BlockNumber,
    },

    /// No page to the left whose right link leads back.
    #[error("could not find left sibling of block {block} in index \"{index}\"")]
    NoLeftSibling {
        /// The index.
        index: String,
        /// The page whose sibling is sought.
        block: BlockNumber,
    },

    /// An operator family without a comparison of these two types.
    #[error("missing support function 1({left},{right}) for attribute {attribute} of index \"{index}\"")]
    MissingSupport {
        /// The index.
        index: String,
        /// The column's type.
        left: Oid,
        /// The argument's type.
        right: Oid,
        /// The column, from 1.
        attribute: usize,
    },

    /// A layout that is refused by name.
    #[error("index \"{index}\": {what}")]
    Unsupported {
        /// The index.
        index: String,
        /// What is refused.
        what: String,
    },

    /// Reading a page or comparing values failed: already an error towards the client.
    #[error(transparent)]
    Sql(#[from] SqlError),
}

/// The result of reading an index.
pub type Result<T> = std::result::Result<T, Error>;

impl From<Error> for SqlError {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Sql(error) => error,
            Error::ZeroPage { .. } | Error::CorruptedPage { .. } => SqlError {
                hint: Some("Please REINDEX it.".to_owned()),
                ..SqlError::new(SqlState::IndexCorrupted, message)
            },
            Error::Unsupported { .. } => SqlError::new(SqlState::FeatureNotSupported, message),
            Error::MissingSupport { .. } => SqlError::new(SqlState::InternalError, message),
            _ => SqlError::new(SqlState::IndexCorrupted, message),
        }
    }
}
