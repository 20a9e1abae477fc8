//! What a statement is once analysed.

use stegodon_nodes::Query;

/// An analysed statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// SELECT, VALUES, TABLE.
    Query(Box<Query>),
}
