//! Everything that is no query.

use pg_query::{NodeEnum, protobuf as pb};
use stegodon_format::ids::Oid;
use stegodon_format::version::Version;
use stegodon_nodes::Query;
use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::context::{Analyzer, loc};
use crate::names::{node_name, string_list};
use crate::options::{bool_option, string_option, string_values};
use crate::statement::{
    CopyTarget, DiscardTarget, ExplainOptions, FetchDirection, Statement, TransactionModes, TransactionStatement,
};
use crate::write_tags::write_tag;

impl Analyzer<'_> {
    pub(crate) fn statement(&mut self, node: &NodeEnum) -> SqlResult<Statement> {
        Ok(match node {
            NodeEnum::SelectStmt(s) => {
                let mut leftmost = s.as_ref();
                while let Some(l) = leftmost.larg.as_deref() {
                    leftmost = l;
                }
                if leftmost.into_clause.is_some() {
                    return self.stored_query(node, "SELECT INTO");
                }
                let query = self.select_statement(node);
                if !self.writes.is_empty() {
                    // What we do not know of the rest ends so too.
                    crate::modify::refuse_quietly(query.map(|_| ()))?;
                    return Ok(Statement::Write("SELECT"));
                }
                Statement::Query(Box::new(query?))
            }
            NodeEnum::ExplainStmt(e) => {
                let options = self.explain_options(&e.options)?;
                let statement = Box::new(self.inner_statement(&e.query)?);
                if !matches!(
                    *statement,
                    Statement::Query(_) | Statement::Execute { .. } | Statement::DeclareCursor { .. }
                ) && !matches!(*statement, Statement::Write(_))
                {
                    return self.unsupported(None, "EXPLAIN of this statement");
                }
                Statement::Explain { options, statement }
            }
            NodeEnum::TransactionStmt(t) => Statement::Transaction(self.transaction(t)?),
            NodeEnum::PrepareStmt(p) => self.prepare(p)?,
            NodeEnum::ExecuteStmt(e) => Statement::Execute { name: e.name.clone(), args: e.params.clone() },
            NodeEnum::DeallocateStmt(d) => Statement::Deallocate((!d.isall).then(|| d.name.clone())),
            NodeEnum::DeclareCursorStmt(d) => self.declare_cursor(d)?,
            NodeEnum::FetchStmt(f) => Statement::Fetch {
                cursor: f.portalname.clone(),
                direction: match pb::FetchDirection::try_from(f.direction) {
                    Ok(pb::FetchDirection::FetchForward) => FetchDirection::Forward,
                    Ok(pb::FetchDirection::FetchBackward) => FetchDirection::Backward,
                    Ok(pb::FetchDirection::FetchAbsolute) => FetchDirection::Absolute,
                    Ok(pb::FetchDirection::FetchRelative) => FetchDirection::Relative,
                    _ => return self.unsupported(None, "this FETCH"),
                },
                count: f.how_many,
                is_move: f.ismove,
            },
            NodeEnum::ClosePortalStmt(c) => Statement::Close((!c.portalname.is_empty()).then(|| c.portalname.clone())),
            NodeEnum::VariableSetStmt(v) => self.variable_set(v)?,
            NodeEnum::VariableShowStmt(v) => Statement::Show(v.name.clone()),
            NodeEnum::DiscardStmt(d) => Statement::Discard(match pb::DiscardMode::try_from(d.target) {
                Ok(pb::DiscardMode::DiscardAll) => DiscardTarget::All,
                Ok(pb::DiscardMode::DiscardPlans) => DiscardTarget::Plans,
                Ok(pb::DiscardMode::DiscardSequences) => DiscardTarget::Sequences,
                Ok(pb::DiscardMode::DiscardTemp) => DiscardTarget::Temp,
                _ => return self.unsupported(None, "this DISCARD"),
            }),
            NodeEnum::CopyStmt(c) => self.copy(c)?,
            NodeEnum::ListenStmt(l) => Statement::Listen(l.conditionname.clone()),
            NodeEnum::UnlistenStmt(u) => {
                Statement::Unlisten((!u.conditionname.is_empty()).then(|| u.conditionname.clone()))
            }
            NodeEnum::LockStmt(l) => {
                let mut relations = Vec::new();
                for node in &l.relations {
                    let Some(NodeEnum::RangeVar(rv)) = node.node.as_ref() else {
                        return self.unsupported(None, "this LOCK");
                    };
                    relations.push(self.find_relation(rv).map_err(without_position)?.oid);
                }
                Statement::Lock { relations, mode: l.mode, nowait: l.nowait }
            }
            NodeEnum::ConstraintsSetStmt(_) => Statement::SetConstraints,
            NodeEnum::InsertStmt(_) | NodeEnum::UpdateStmt(_) | NodeEnum::DeleteStmt(_) | NodeEnum::MergeStmt(_) => {
                self.modify(node)?
            }
            NodeEnum::CreateTableAsStmt(c) => {
                let tag = write_tag(node).unwrap_or("CREATE TABLE AS");
                match c.query.as_ref().and_then(|q| q.node.as_ref()) {
                    Some(query) => self.stored_query(query, tag)?,
                    None => Statement::Write(tag),
                }
            }
            other => match write_tag(other) {
                Some(tag) => Statement::Write(tag),
                None => return self.unsupported(None, node_name(Some(other))),
            },
        })
    }

    fn inner_statement(&mut self, node: &Option<Box<pb::Node>>) -> SqlResult<Statement> {
        match node.as_ref().and_then(|n| n.node.as_ref()) {
            Some(n) => self.statement(n),
            None => Err(SqlError::internal("a statement without its inner one")),
        }
    }

    fn explain_options(&self, nodes: &[pb::Node]) -> SqlResult<ExplainOptions> {
        let mut o = ExplainOptions::default();
        for node in nodes {
            let Some(NodeEnum::DefElem(d)) = node.node.as_ref() else {
                return self.unsupported(None, "this EXPLAIN option");
            };
            let location = loc(d.location);
            let flag = || bool_option(d).map_err(|e| self.place(e, None));
            let since = match d.defname.as_str() {
                "generic_plan" => Version::V16,
                "memory" | "serialize" => Version::V17,
                _ => Version::V15,
            };
            let name = if self.catalog().version() < since { "" } else { d.defname.as_str() };
            match name {
                "analyze" => o.analyze = flag()?,
                "verbose" => o.verbose = flag()?,
                "costs" => o.costs = Some(flag()?),
                "settings" => o.settings = flag()?,
                "generic_plan" => o.generic_plan = flag()?,
                "buffers" => o.buffers = Some(flag()?),
                "wal" => o.wal = flag()?,
                "timing" => o.timing = Some(flag()?),
                "summary" => o.summary = Some(flag()?),
                "memory" => o.memory = flag()?,
                "io" => o.io = flag()?,
                name @ ("serialize" | "format") => {
                    let value = string_option(d).unwrap_or_default();
                    let known: &[&str] = if name == "format" {
                        &["text", "xml", "json", "yaml"]
                    } else {
                        &["off", "none", "text", "binary", ""]
                    };
                    if !known.contains(&value.as_str()) {
                        return Err(self.error_at(
                            location,
                            SqlState::InvalidParameterValue,
                            format!("unrecognized value for EXPLAIN option \"{name}\": \"{value}\""),
                        ));
                    }
                    if name == "format" {
                        o.format = Some(value);
                    } else {
                        o.serialize = Some(value);
                    }
                }
                _ => {
                    return Err(self.error_at(
                        location,
                        SqlState::SyntaxError,
                        format!("unrecognized EXPLAIN option \"{}\"", d.defname),
                    ));
                }
            }
        }
        let needs_analyze = [
            ("WAL", o.wal),
            ("TIMING", o.timing == Some(true)),
            ("SERIALIZE", o.serialize.as_deref().is_some_and(|s| !matches!(s, "off" | "none"))),
        ];
        for (name, asked) in needs_analyze {
            if asked && !o.analyze {
                return Err(SqlError::new(
                    SqlState::InvalidParameterValue,
                    format!("EXPLAIN option {name} requires ANALYZE"),
                ));
            }
        }
        if o.generic_plan && o.analyze {
            return Err(SqlError::new(
                SqlState::InvalidParameterValue,
                "EXPLAIN options ANALYZE and GENERIC_PLAN cannot be used together",
            ));
        }
        Ok(o)
    }

    fn transaction(&self, t: &pb::TransactionStmt) -> SqlResult<TransactionStatement> {
        use pb::TransactionStmtKind as Kind;
        let name = || t.savepoint_name.clone();
        Ok(match Kind::try_from(t.kind) {
            Ok(Kind::TransStmtBegin) => {
                TransactionStatement::Begin { modes: self.transaction_modes(&t.options)?, start: false }
            }
            Ok(Kind::TransStmtStart) => {
                TransactionStatement::Begin { modes: self.transaction_modes(&t.options)?, start: true }
            }
            Ok(Kind::TransStmtCommit) => TransactionStatement::Commit { chain: t.chain },
            Ok(Kind::TransStmtRollback) => TransactionStatement::Rollback { chain: t.chain },
            Ok(Kind::TransStmtSavepoint) => TransactionStatement::Savepoint(name()),
            Ok(Kind::TransStmtRelease) => TransactionStatement::Release(name()),
            Ok(Kind::TransStmtRollbackTo) => TransactionStatement::RollbackTo(name()),
            _ => return self.unsupported(None, "two-phase commit"),
        })
    }

    fn transaction_modes(&self, nodes: &[pb::Node]) -> SqlResult<TransactionModes> {
        let mut modes = TransactionModes::default();
        for node in nodes {
            let Some(NodeEnum::DefElem(d)) = node.node.as_ref() else {
                return self.unsupported(None, "this transaction mode");
            };
            match d.defname.as_str() {
                "transaction_isolation" => modes.isolation = string_option(d),
                "transaction_read_only" => modes.read_only = Some(bool_option(d)?),
                "transaction_deferrable" => modes.deferrable = Some(bool_option(d)?),
                other => return self.unsupported(loc(d.location), format_args!("transaction mode {other}")),
            }
        }
        Ok(modes)
    }

    fn prepare(&mut self, p: &pb::PrepareStmt) -> SqlResult<Statement> {
        let mut types = Vec::new();
        for node in &p.argtypes {
            let Some(NodeEnum::TypeName(tn)) = node.node.as_ref() else {
                return self.unsupported(None, "this parameter type");
            };
            types.push(self.resolve_type_name(tn)?.0);
        }
        let outer = std::mem::replace(&mut self.params, crate::context::ParamTypes { types, variable: true });
        let statement = self.inner_statement(&p.query);
        let param_types = std::mem::replace(&mut self.params, outer).types;
        let statement = Box::new(statement?);
        if !matches!(*statement, Statement::Query(_) | Statement::Write("INSERT" | "UPDATE" | "DELETE" | "MERGE")) {
            return Err(SqlError::new(SqlState::SyntaxError, "utility statements cannot be prepared"));
        }
        Ok(Statement::Prepare { name: p.name.clone(), param_types, statement })
    }

    fn declare_cursor(&mut self, d: &pb::DeclareCursorStmt) -> SqlResult<Statement> {
        const BINARY: i32 = 0x1;
        const SCROLL: i32 = 0x2;
        const NO_SCROLL: i32 = 0x4;
        const INSENSITIVE: i32 = 0x8;
        const ASENSITIVE: i32 = 0x10;
        const HOLD: i32 = 0x20;
        let o = d.options;
        let definition = |m: &str| Err(SqlError::new(SqlState::InvalidCursorDefinition, m));
        if o & SCROLL != 0 && o & NO_SCROLL != 0 {
            return definition("cannot specify both SCROLL and NO SCROLL");
        }
        if o & ASENSITIVE != 0 && o & INSENSITIVE != 0 {
            return definition("cannot specify both INSENSITIVE and ASENSITIVE");
        }
        let Some(node) = d.query.as_ref().and_then(|n| n.node.as_ref()) else {
            return Err(SqlError::internal("a cursor without query"));
        };
        let query = self.select_statement(node)?;
        Ok(Statement::DeclareCursor {
            name: d.portalname.clone(),
            scroll: if o & SCROLL != 0 {
                Some(true)
            } else if o & NO_SCROLL != 0 {
                Some(false)
            } else {
                None
            },
            hold: o & HOLD != 0,
            binary: o & BINARY != 0,
            query: Box::new(query),
        })
    }

    fn variable_set(&self, v: &pb::VariableSetStmt) -> SqlResult<Statement> {
        use pb::VariableSetKind as Kind;
        let name = v.name.clone();
        Ok(match Kind::try_from(v.kind) {
            Ok(Kind::VarSetValue) => {
                let value = string_values(&v.args).map_err(|e| self.place(e, loc(v.location)))?;
                Statement::Set { name, value: Some(value), local: v.is_local }
            }
            Ok(Kind::VarSetDefault) => Statement::Set { name, value: None, local: v.is_local },
            Ok(Kind::VarReset) => Statement::Reset(Some(name)),
            Ok(Kind::VarResetAll) => Statement::Reset(None),
            Ok(Kind::VarSetMulti) if name == "TRANSACTION" => {
                Statement::SetTransaction { modes: self.transaction_modes(&v.args)?, session: false }
            }
            Ok(Kind::VarSetMulti) if name == "SESSION CHARACTERISTICS" => {
                Statement::SetTransaction { modes: self.transaction_modes(&v.args)?, session: true }
            }
            _ => return self.unsupported(None, format_args!("SET {name} in this form")),
        })
    }

    fn copy(&mut self, c: &pb::CopyStmt) -> SqlResult<Statement> {
        if c.is_from {
            if let Some(rv) = &c.relation {
                self.find_relation(rv).map_err(without_position)?;
            }
            return Ok(Statement::Write("COPY FROM"));
        }
        let mut options = Vec::new();
        for node in &c.options {
            let Some(NodeEnum::DefElem(d)) = node.node.as_ref() else {
                return self.unsupported(None, "this COPY option");
            };
            let value = match d.arg.as_ref().and_then(|a| a.node.as_ref()) {
                None => None,
                Some(NodeEnum::List(l)) => Some(string_values(&l.items)?),
                Some(NodeEnum::AStar(_)) => Some(vec!["*".to_owned()]),
                Some(_) => string_option(d).map(|s| vec![s]),
            };
            options.push((d.defname.clone(), value));
        }
        let query = match (&c.relation, c.query.as_ref().and_then(|n| n.node.as_ref())) {
            (Some(rv), _) => self.copy_table(rv, &c.attlist)?,
            (None, Some(node @ NodeEnum::SelectStmt(_))) => self.select_statement(node)?,
            _ => return self.unsupported(None, "COPY of a statement that writes"),
        };
        let target = match (c.filename.as_str(), c.is_program) {
            ("", _) => CopyTarget::Stdout,
            (f, false) => CopyTarget::File(f.to_owned()),
            (f, true) => CopyTarget::Program(f.to_owned()),
        };
        Ok(Statement::CopyTo { query: Box::new(query), target, options })
    }

    /// COPY of a table reads that table only, its children left out.
    fn copy_table(&mut self, rv: &pb::RangeVar, columns: &[pb::Node]) -> SqlResult<Query> {
        let rel = self.find_relation(rv).map_err(without_position)?;
        let refused = |what: &str, hint: bool| {
            let e = SqlError::new(SqlState::WrongObjectType, format!("cannot copy from {what} \"{}\"", rel.name));
            Err(if hint { e.hint("Try the COPY (SELECT ...) TO variant.") } else { e })
        };
        match rel.kind {
            b'v' => return refused("view", true),
            b'f' => return refused("foreign table", true),
            b'S' => return refused("sequence", false),
            b'p' => return refused("partitioned table", true),
            b'm' if !rel.populated => {
                return refused("unpopulated materialized view", false);
            }
            b'i' | b'I' | b'c' => return refused("non-table relation", false),
            _ => {}
        }
        let names = string_list(columns)?;
        let column = |n: &str| pb::Node {
            node: Some(NodeEnum::ResTarget(Box::new(pb::ResTarget {
                name: String::new(),
                indirection: Vec::new(),
                val: Some(Box::new(pb::Node {
                    node: Some(NodeEnum::ColumnRef(pb::ColumnRef {
                        fields: vec![pb::Node { node: Some(NodeEnum::String(pb::String { sval: n.to_owned() })) }],
                        location: -1,
                    })),
                })),
                location: -1,
            }))),
        };
        let live = |n: &str| rel.attributes.iter().find(|a| !a.dropped && a.name == n);
        let mut targets = Vec::new();
        if names.is_empty() {
            // Generated columns are not copied.
            targets.extend(rel.attributes.iter().filter(|a| !a.dropped && a.generated == 0).map(|a| column(&a.name)));
        }
        for (i, n) in names.iter().enumerate() {
            let Some(attribute) = live(n) else {
                return Err(SqlError::new(
                    SqlState::UndefinedColumn,
                    format!("column \"{n}\" of relation \"{}\" does not exist", rel.name),
                ));
            };
            if attribute.generated != 0 {
                return Err(SqlError::new(
                    SqlState::InvalidColumnReference,
                    format!("column \"{n}\" is a generated column"),
                )
                .detail("Generated columns cannot be used in COPY."));
            }
            if names.iter().take(i).any(|o| o == n) {
                return Err(SqlError::new(
                    SqlState::DuplicateColumn,
                    format!("column \"{n}\" specified more than once"),
                ));
            }
            targets.push(column(n));
        }
        let mut table = rv.clone();
        table.inh = false;
        table.alias = None;
        let select = pb::SelectStmt {
            target_list: targets,
            from_clause: vec![pb::Node { node: Some(NodeEnum::RangeVar(table)) }],
            op: pb::SetOperation::SetopNone as i32,
            limit_option: pb::LimitOption::Default as i32,
            ..pb::SelectStmt::default()
        };
        self.select_stmt(&select)
    }

    /// EXECUTE's arguments, coerced to the parameters' types.
    pub(crate) fn execute_arguments(
        &mut self,
        name: &str,
        args: &[pb::Node],
        types: &[Oid],
    ) -> SqlResult<Vec<stegodon_nodes::Expr>> {
        use crate::coerce::Context;
        use stegodon_nodes::expr::CoercionForm;
        if args.len() != types.len() {
            return Err(SqlError::new(
                SqlState::SyntaxError,
                format!("wrong number of parameters for prepared statement \"{name}\""),
            )
            .detail(format!("Expected {} parameters but got {}.", types.len(), args.len())));
        }
        let mut out = Vec::with_capacity(args.len());
        for (i, (node, &ty)) in args.iter().zip(types).enumerate() {
            let e = self.with_kind(crate::context::ExprKind::ExecuteParameter, |a| a.expr(node))?;
            let given = self.expr_type(&e)?;
            let location = e.location();
            let coerced = self.coerce_to_target(e, ty, -1, Context::Assignment, CoercionForm::ImplicitCast, None)?;
            let Some(mut e) = coerced else {
                let error = self.error_at(
                    location,
                    SqlState::DatatypeMismatch,
                    format!(
                        "parameter ${} of type {} cannot be coerced to the expected type {}",
                        i + 1,
                        self.type_name(given),
                        self.type_name(ty)
                    ),
                );
                return Err(error.hint("You will need to rewrite or cast the expression."));
            };
            if e.any(&mut |x| matches!(x, stegodon_nodes::Expr::SubLink(_))) {
                return Err(self.error_at(
                    location,
                    SqlState::FeatureNotSupported,
                    "cannot use subquery in EXECUTE parameter",
                ));
            }
            self.assign_collations(&mut e)?;
            out.push(e);
        }
        Ok(out)
    }
}

/// Utility statements report a missing table without its place.
fn without_position(mut e: SqlError) -> SqlError {
    e.position = None;
    e
}
