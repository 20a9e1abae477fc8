//! Names: lists of identifiers, quoting, schemas.

use pg_query::{NodeEnum, protobuf as pb};
use stegodon_format::ids::Oid;
use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::context::Analyzer;

/// The strings of a list of name parts.
pub(crate) fn string_list(nodes: &[pb::Node]) -> SqlResult<Vec<String>> {
    nodes
        .iter()
        .map(|n| match n.node.as_ref() {
            Some(NodeEnum::String(s)) => Ok(s.sval.clone()),
            other => Err(SqlError::internal(format_args!("a name part is {}", node_name(other)))),
        })
        .collect()
}

/// What a raw node is called in "not supported" errors.
pub(crate) fn node_name(node: Option<&NodeEnum>) -> String {
    let Some(node) = node else { return "an empty parse node".to_owned() };
    let text = format!("{node:?}");
    let end = text.find(['(', ' ', '{']).unwrap_or(text.len());
    text.get(..end).unwrap_or_default().to_owned()
}

impl Analyzer<'_> {
    /// A schema by name; `3F000` where there is none.
    pub fn namespace_named(&self, name: &str) -> SqlResult<Oid> {
        self.cx
            .catalog
            .namespace_by_name(name)
            .map(|n| n.oid)
            .ok_or_else(|| SqlError::new(SqlState::InvalidSchemaName, format!("schema \"{name}\" does not exist")))
    }

    /// Fails unless `database` is the current one: names across databases cannot be followed.
    pub fn check_database(&self, database: &str, whole: &str) -> SqlResult<()> {
        if self.cx.catalog.database().is_some_and(|d| d.name == database) {
            return Ok(());
        }
        Err(SqlError::new(
            SqlState::FeatureNotSupported,
            format!("cross-database references are not implemented: {whole}"),
        ))
    }
}
