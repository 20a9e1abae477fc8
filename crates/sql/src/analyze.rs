//! One parsed statement to its analysed form.

use pg_query::NodeEnum;
use stegodon_format::ids::Oid;
use stegodon_nodes::{Expr, Query};
use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::context::{AnalyzeContext, Analyzer, ParamTypes};
use crate::oids;
use crate::parse::{ParsedStatement, with_stack};
use crate::statement::Statement;

/// An analysed statement and the types of its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Analyzed {
    /// The statement.
    pub statement: Statement,
    /// The types of `$1`, `$2`, …: those given, and those that their use has decided.
    pub param_types: Vec<Oid>,
}

/// Analyses a statement: resolves its names, chooses its operators and functions, gives every expression a type.
pub fn analyze(parsed: &ParsedStatement, cx: AnalyzeContext<'_>, params: ParamTypes) -> SqlResult<Analyzed> {
    parsed.check_version(cx.catalog.version())?;
    with_stack(parsed.nesting, || {
        let mut analyzer = Analyzer::new(cx, &parsed.source, params);
        let statement = analyzer.statement(parsed.node())?;
        Ok(Analyzed { statement, param_types: analyzer.params.types })
    })
}

/// Analyses the arguments of EXECUTE (`parsed`) against the prepared statement's parameter types.
pub fn analyze_arguments(parsed: &ParsedStatement, cx: AnalyzeContext<'_>, types: &[Oid]) -> SqlResult<Vec<Expr>> {
    let execute = match parsed.node() {
        NodeEnum::ExecuteStmt(e) => e,
        NodeEnum::ExplainStmt(x) => match x.query.as_ref().and_then(|n| n.node.as_ref()) {
            Some(NodeEnum::ExecuteStmt(e)) => e,
            _ => return Err(SqlError::internal("no EXECUTE")),
        },
        _ => return Err(SqlError::internal("no EXECUTE")),
    };
    parsed.check_version(cx.catalog.version())?;
    with_stack(parsed.nesting, || {
        let mut analyzer = Analyzer::new(cx, &parsed.source, ParamTypes::default());
        analyzer.execute_arguments(&execute.name, &execute.params, types)
    })
}

impl Analyzer<'_> {
    /// A SELECT as a statement: its parameters must all have got a type.
    pub(crate) fn select_statement(&mut self, node: &NodeEnum) -> SqlResult<Query> {
        let NodeEnum::SelectStmt(select) = node else {
            return Err(SqlError::internal("a statement that is no SELECT"));
        };
        let query = self.select_stmt(select)?;
        if self.params.variable {
            self.check_params(&query)?;
        }
        Ok(query)
    }

    /// Fails where a parameter has no type, or was used before its type was known.
    pub(crate) fn check_params(&self, query: &Query) -> SqlResult<()> {
        let mut query = query.clone();
        stegodon_nodes::levels::walk_query_mut(&mut query, 0, 0, &mut |e, _| {
            if let Expr::Param(p) = e
                && p.kind == stegodon_nodes::expr::ParamKind::Extern
            {
                let known = self.params.types.get((p.id as usize).saturating_sub(1)).copied().unwrap_or_default();
                if known != p.type_oid {
                    return Err(self.error_at(
                        p.location,
                        SqlState::AmbiguousParameter,
                        format!("could not determine data type of parameter ${}", p.id),
                    ));
                }
            }
            Ok(true)
        })?;
        for (i, &ty) in self.params.types.iter().enumerate() {
            if ty == oids::UNKNOWN || !ty.is_valid() {
                return Err(SqlError::new(
                    SqlState::IndeterminateDatatype,
                    format!("could not determine data type of parameter ${}", i + 1),
                ));
            }
        }
        Ok(())
    }
}
