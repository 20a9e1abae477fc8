//! Everything that is no query.

use pg_query::NodeEnum;
use stegodon_types::SqlResult;

use crate::context::Analyzer;
use crate::names::node_name;
use crate::parse::ParsedStatement;
use crate::statement::Statement;

impl Analyzer<'_> {
    pub(crate) fn statement(&mut self, node: &NodeEnum, _parsed: &ParsedStatement) -> SqlResult<Statement> {
        match node {
            NodeEnum::SelectStmt(_) => self.select_statement(node).map(|q| Statement::Query(Box::new(q))),
            other => self.unsupported(None, node_name(Some(other))),
        }
    }
}
