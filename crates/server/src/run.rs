//! Running one statement of a session: queries, and what PostgreSQL calls utility statements.

use std::sync::Arc;
use std::time::Instant;

use arrow_array::cast::AsArray;
use arrow_array::{LargeBinaryArray, RecordBatch};
use stegodon_catalog::settings::{Scope, Settings};
use stegodon_format::ids::{AttrNumber, Oid};
use stegodon_functions::{CompileContext, EvalContext, Evaluator};
use stegodon_nodes::Query;
use stegodon_plan::node::ResultColumn;
use stegodon_plan::walk::largest_constant_bytes;
use stegodon_sql::Statement;
use stegodon_sql::statement::{DiscardTarget, TransactionModes, TransactionStatement};
use stegodon_types::{Datum, SqlError, SqlResult, SqlState, oids};

use crate::explain;
use crate::plans::{Kept, PlanSlot, Raw};
use crate::portal::Rows;
use crate::session::{Prepared, Session, Transaction};

/// What a statement gave.
pub enum Outcome {
    /// There was no statement.
    Empty,
    /// Its command tag.
    Command(String),
    /// Rows, to be fetched; afterwards the tag, with the number of rows where `counted`.
    Rows {
        /// The rows.
        rows: Rows,
        /// The command tag.
        tag: String,
        /// Whether the number of rows follows the tag.
        counted: bool,
    },
}

/// A statement about to run.
pub struct Run {
    prepared: Arc<Prepared>,
}

impl Run {
    /// A statement of a simple query.
    pub fn of(session: &mut Session, raw: Arc<Raw>) -> SqlResult<Self> {
        let prepared = Self::prepare(session, raw, Vec::new())?;
        if !prepared.param_types.is_empty() {
            return Err(SqlError::new(SqlState::UndefinedParameter, "there is no parameter $1"));
        }
        Ok(Self { prepared })
    }

    /// A statement that was prepared by the protocol.
    pub fn of_prepared(session: &Session, prepared: Arc<Prepared>) -> SqlResult<Self> {
        Self::check_may_run(session, &prepared)?;
        Ok(Self { prepared })
    }

    /// Analyses a statement, unless the transaction has failed and it does not end it.
    pub fn prepare(session: &mut Session, raw: Arc<Raw>, types: Vec<Oid>) -> SqlResult<Arc<Prepared>> {
        if session.transaction == Transaction::Failed && !raw.parsed.ends_failed_transaction() {
            session.check_not_failed()?;
        }
        session.prepare(raw, types)
    }

    /// Fails in a failed transaction unless the statement ends it.
    pub fn check_may_run(session: &Session, prepared: &Prepared) -> SqlResult<()> {
        match &prepared.statement {
            Some(Statement::Transaction(
                TransactionStatement::Commit { .. }
                | TransactionStatement::Rollback { .. }
                | TransactionStatement::RollbackTo(_),
            )) => Ok(()),
            _ => session.check_not_failed(),
        }
    }

    /// Fails in a failed transaction where describing would need the catalogs.
    pub fn check_may_describe(session: &Session, prepared: &Prepared) -> SqlResult<()> {
        if Self::columns(session, prepared)?.is_some() { Self::check_may_run(session, prepared) } else { Ok(()) }
    }

    /// The columns that a statement gives; `None` where it gives no rows.
    pub fn columns(session: &Session, prepared: &Prepared) -> SqlResult<Option<Vec<ResultColumn>>> {
        match &prepared.statement {
            Some(statement) => statement_columns(session, statement),
            None => Ok(None),
        }
    }

    /// Runs it, or starts it where it gives rows.
    pub async fn start(self, session: &mut Session, params: Vec<Option<Datum>>) -> SqlResult<Outcome> {
        let prepared = Arc::clone(&self.prepared);
        let Some(statement) = &prepared.statement else { return Ok(Outcome::Empty) };
        match statement {
            Statement::Query(query) => {
                let rows = start_query(session, query, params, false, Some(&prepared.plan))?;
                Ok(Outcome::Rows { rows, tag: "SELECT".to_owned(), counted: true })
            }
            Statement::Explain { options, statement } => {
                let Statement::Query(query) = statement.as_ref() else {
                    return Err(SqlError::unsupported("EXPLAIN of this kind of statement"));
                };
                let lines = explain::explain(session, query, options, params).await?;
                Ok(Outcome::Rows { rows: text_rows("QUERY PLAN", lines)?, tag: "EXPLAIN".to_owned(), counted: false })
            }
            Statement::Transaction(statement) => transaction(session, statement).map(Outcome::Command),
            Statement::SetTransaction { modes, session: later } => {
                if !later {
                    check_may_set_modes(session, modes)?;
                }
                set_modes(session, modes, *later)?;
                command("SET")
            }
            Statement::SetConstraints => command("SET CONSTRAINTS"),
            Statement::Prepare { name, param_types, statement } => {
                if session.prepared.contains(name) {
                    let message = format!("prepared statement \"{name}\" already exists");
                    return Err(SqlError::new(SqlState::DuplicatePreparedStatement, message));
                }
                let inner = Prepared {
                    parsed: None,
                    statement: Some(statement.as_ref().clone()),
                    param_types: param_types.clone(),
                    plan: Arc::default(),
                };
                let text_bytes = prepared.parsed.as_ref().map_or(0, |raw| raw.text_bytes());
                session.prepared.insert(name.clone(), Arc::new(inner), text_bytes)?;
                command("PREPARE")
            }
            Statement::Execute { name, .. } => {
                let missing = || {
                    let message = format!("prepared statement \"{name}\" does not exist");
                    SqlError::new(SqlState::InvalidSqlStatementName, message)
                };
                let inner = session.prepared.get(name).cloned().ok_or_else(missing)?;
                let values = arguments(session, &prepared, &inner)?;
                Box::pin(Run { prepared: inner }.start(session, values)).await
            }
            Statement::Deallocate(name) => {
                match name {
                    None => session.prepared.clear(),
                    Some(name) => {
                        if !session.prepared.remove(name) {
                            let message = format!("prepared statement \"{name}\" does not exist");
                            return Err(SqlError::new(SqlState::InvalidSqlStatementName, message));
                        }
                    }
                }
                command(if name.is_none() { "DEALLOCATE ALL" } else { "DEALLOCATE" })
            }
            Statement::Set { name, value, local } => {
                set(session, name, value.as_deref(), *local)?;
                command("SET")
            }
            Statement::Reset(name) => {
                let superuser = session.user.superuser;
                match name {
                    Some(name) => session.settings.write().reset(name, Scope::Session, superuser)?,
                    None => session.settings.write().reset_all(),
                }
                command("RESET")
            }
            Statement::Show(name) => {
                let rows = show(session, name)?;
                Ok(Outcome::Rows { rows, tag: "SHOW".to_owned(), counted: false })
            }
            Statement::Discard(target) => {
                if *target == DiscardTarget::All {
                    if session.transaction != Transaction::Idle {
                        let message = "DISCARD ALL cannot run inside a transaction block";
                        return Err(SqlError::new(SqlState::ActiveSqlTransaction, message));
                    }
                    session.discard_all();
                }
                command(match target {
                    DiscardTarget::All => "DISCARD ALL",
                    DiscardTarget::Plans => "DISCARD PLANS",
                    DiscardTarget::Sequences => "DISCARD SEQUENCES",
                    DiscardTarget::Temp => "DISCARD TEMP",
                })
            }
            Statement::DeclareCursor { .. } | Statement::Fetch { .. } | Statement::Close(_) => {
                crate::cursor::run(session, statement, params).await
            }
            Statement::CopyTo { .. } => Err(SqlError::unsupported("COPY TO")),
            Statement::Listen(_) => Err(read_only("LISTEN")),
            Statement::Unlisten(_) => command("UNLISTEN"),
            Statement::Lock { .. } => Err(SqlError::unsupported("LOCK TABLE")),
            Statement::Write(tag) => Err(read_only(tag)),
        }
    }
}

#[allow(clippy::unnecessary_wraps, reason = "each statement's arm is a result")]
fn command(tag: &str) -> SqlResult<Outcome> {
    Ok(Outcome::Command(tag.to_owned()))
}

/// `25006`: the directory is read-only.
fn read_only(tag: &str) -> SqlError {
    SqlError::new(SqlState::ReadOnlySqlTransaction, format!("cannot execute {tag} in a read-only transaction"))
}

/// A plan with a larger constant is not kept.
const KEPT_CONSTANT_BYTES_MAX: usize = 4 << 10;

/// Starts a query: rewritten, its privileges checked, planned.
pub(crate) fn start_query(
    session: &mut Session,
    query: &Query,
    params: Vec<Option<Datum>>,
    cursor: bool,
    plan: Option<&PlanSlot>,
) -> SqlResult<Rows> {
    let plan = plan.filter(|_| params.is_empty() && !cursor);
    let circumstances = session.circumstances();
    if let Some(kept) = plan.and_then(|plan| plan.find(circumstances, query)) {
        session.has_queried = true;
        return Rows::of_plan(session, &kept.planned, Arc::clone(&kept.columns), params, false);
    }
    let format = session.format();
    let rewritten = stegodon_sql::rewrite(query.clone(), &session.analyze_context(&format))?;
    crate::planning::check_access(session, &rewritten.accesses)?;
    session.has_queried = true;
    let columns: Arc<[ResultColumn]> = query_columns(session, query).into();
    let planned = Arc::new(crate::planning::plan(session, &rewritten.query, &params, cursor)?);
    if let Some(plan) = plan.filter(|_| largest_constant_bytes(&planned) <= KEPT_CONSTANT_BYTES_MAX) {
        let (planned, columns, made) = (Arc::clone(&planned), Arc::clone(&columns), Instant::now());
        plan.keep(Kept { circumstances, query: query.clone(), planned, columns, made });
    }
    Rows::of_plan(session, &planned, columns, params, false)
}

pub(crate) fn query_columns(session: &Session, query: &Query) -> Vec<ResultColumn> {
    let columns = stegodon_sql::result_columns(query, &session.view.catalog);
    let column = |c: stegodon_sql::ResultColumn| ResultColumn {
        name: c.name,
        type_oid: c.type_oid,
        typmod: c.typmod,
        origin_table: c.table,
        origin_column: c.column,
    };
    columns.into_iter().map(column).collect()
}

fn statement_columns(session: &Session, statement: &Statement) -> SqlResult<Option<Vec<ResultColumn>>> {
    Ok(match statement {
        Statement::Query(query) => Some(query_columns(session, query)),
        Statement::Explain { .. } => Some(vec![text_column("QUERY PLAN")]),
        Statement::Show(name) if name.eq_ignore_ascii_case("all") => {
            Some(["name", "setting", "description"].map(text_column).to_vec())
        }
        Statement::Show(name) => Some(vec![text_column(session.settings.read().name_of(name).unwrap_or(name))]),
        Statement::Execute { name, .. } => match session.prepared.get(name).and_then(|p| p.statement.as_ref()) {
            Some(statement) => statement_columns(session, statement)?,
            None => None,
        },
        Statement::Fetch { cursor, is_move: false, .. } => {
            session.portals.get(cursor).and_then(|p| p.rows.as_ref()).map(|r| r.columns.to_vec())
        }
        _ => None,
    })
}

fn text_column(name: &str) -> ResultColumn {
    ResultColumn {
        name: name.to_owned(),
        type_oid: oids::TEXT,
        typmod: -1,
        origin_table: Oid::INVALID,
        origin_column: AttrNumber(0),
    }
}

/// Rows of one text column.
fn text_rows(name: &str, lines: Vec<String>) -> SqlResult<Rows> {
    table(&[name], lines.into_iter().map(|l| vec![l]))
}

/// Rows of text columns.
fn table(names: &[&str], rows: impl Iterator<Item = Vec<String>>) -> SqlResult<Rows> {
    let rows: Vec<Vec<String>> = rows.collect();
    let column = |i: usize| {
        let values = rows.iter().map(|r| r.get(i).map(std::string::String::as_bytes));
        let array: arrow_array::ArrayRef = Arc::new(values.collect::<LargeBinaryArray>());
        (format!("c{i}"), array)
    };
    let batch = RecordBatch::try_from_iter((0..names.len()).map(column)).map_err(SqlError::internal)?;
    debug_assert!(batch.columns().iter().all(|c| c.as_binary_opt::<i64>().is_some()));
    Ok(Rows::ready(names.iter().map(|n| text_column(n)).collect(), vec![batch]))
}

/// The values of EXECUTE's arguments.
fn arguments(session: &Session, execute: &Prepared, inner: &Prepared) -> SqlResult<Vec<Option<Datum>>> {
    let parsed = execute.parsed.as_ref().ok_or_else(|| SqlError::internal("EXECUTE inside a prepared statement"))?;
    let format = session.format();
    let cx = session.analyze_context(&format);
    let args = stegodon_sql::analyze_arguments(&parsed.parsed, cx, &inner.param_types)?;
    let info = session.info();
    let eval = EvalContext {
        catalog: &session.view.catalog,
        types: session.view.as_ref(),
        settings: &format,
        session: info.as_ref(),
        params: &[],
        exec_params: &[],
        subplans: None,
    };
    let compile = CompileContext::new(&session.view.catalog, session.view.as_ref());
    args.iter().map(|a| Evaluator::compile(a, &compile)?.evaluate_const(&eval)).collect()
}

fn transaction(session: &mut Session, statement: &TransactionStatement) -> SqlResult<String> {
    let no_block = |session: &mut Session| {
        let warning = SqlError::new(SqlState::NoActiveSqlTransaction, "there is no transaction in progress");
        session.notices.push(warning);
    };
    let tag = match statement {
        TransactionStatement::Begin { modes, start } => {
            if session.transaction == Transaction::Idle {
                session.transaction = Transaction::Block;
                session.begin_settings();
            } else {
                let message = "there is already a transaction in progress";
                session.notices.push(SqlError::new(SqlState::ActiveSqlTransaction, message));
            }
            set_modes(session, modes, false)?;
            if *start { "START TRANSACTION" } else { "BEGIN" }
        }
        TransactionStatement::Commit { chain } => {
            let before = session.transaction;
            if before == Transaction::Idle {
                if *chain {
                    let message = "COMMIT AND CHAIN can only be used in transaction blocks";
                    return Err(SqlError::new(SqlState::NoActiveSqlTransaction, message));
                }
                no_block(session);
            }
            session.end_transaction(before != Transaction::Failed);
            if *chain {
                session.transaction = Transaction::Block;
                session.begin_settings();
            }
            if before == Transaction::Failed { "ROLLBACK" } else { "COMMIT" }
        }
        TransactionStatement::Rollback { chain } => {
            if session.transaction == Transaction::Idle {
                if *chain {
                    let message = "ROLLBACK AND CHAIN can only be used in transaction blocks";
                    return Err(SqlError::new(SqlState::NoActiveSqlTransaction, message));
                }
                no_block(session);
            }
            session.end_transaction(false);
            if *chain {
                session.transaction = Transaction::Block;
                session.begin_settings();
            }
            "ROLLBACK"
        }
        TransactionStatement::Savepoint(name) => {
            needs_block(session, "SAVEPOINT")?;
            session.savepoints.push(name.clone());
            session.settings.write().begin();
            "SAVEPOINT"
        }
        TransactionStatement::Release(name) => {
            needs_block(session, "RELEASE SAVEPOINT")?;
            let at = savepoint(session, name)?;
            for _ in at..session.savepoints.len() {
                session.settings.write().commit();
            }
            session.savepoints.truncate(at);
            "RELEASE"
        }
        TransactionStatement::RollbackTo(name) => {
            needs_block(session, "ROLLBACK TO SAVEPOINT")?;
            let at = savepoint(session, name)?;
            for _ in at..session.savepoints.len() {
                session.settings.write().rollback();
            }
            // Cursors declared since the savepoint go with it.
            session.portals.retain(|_, portal| portal.depth <= at);
            // The savepoint itself stays.
            session.savepoints.truncate(at + 1);
            session.settings.write().begin();
            session.transaction = Transaction::Block;
            "ROLLBACK"
        }
    };
    Ok(tag.to_owned())
}

fn needs_block(session: &Session, what: &str) -> SqlResult<()> {
    if session.transaction != Transaction::Idle {
        return Ok(());
    }
    let message = format!("{what} can only be used in transaction blocks");
    Err(SqlError::new(SqlState::NoActiveSqlTransaction, message))
}

fn savepoint(session: &Session, name: &str) -> SqlResult<usize> {
    let missing =
        || SqlError::new(SqlState::InvalidSavepointSpecification, format!("savepoint \"{name}\" does not exist"));
    session.savepoints.iter().rposition(|s| s == name).ok_or_else(missing)
}

/// SET TRANSACTION comes before any query: what a query has read, it has read under the mode that was.
fn check_may_set_modes(session: &mut Session, modes: &TransactionModes) -> SqlResult<()> {
    if session.transaction == Transaction::Idle {
        let message = "SET TRANSACTION can only be used in transaction blocks";
        session.notices.push(SqlError::new(SqlState::NoActiveSqlTransaction, message));
    }
    let late = |what: &str, when: &str| {
        Err(SqlError::new(SqlState::ActiveSqlTransaction, format!("SET TRANSACTION {what} must {when}")))
    };
    let changes = |name: &str, value: &str| session.settings.read().show(name).is_ok_and(|now| now != value);
    if modes.isolation.as_deref().is_some_and(|i| changes("transaction_isolation", i)) {
        if session.has_queried {
            return late("ISOLATION LEVEL", "be called before any query");
        }
        if !session.savepoints.is_empty() {
            return late("ISOLATION LEVEL", "not be called in a subtransaction");
        }
    }
    if modes.deferrable.is_some() {
        if !session.savepoints.is_empty() {
            return late("[NOT] DEFERRABLE", "not be called within a subtransaction");
        }
        if session.has_queried {
            return late("[NOT] DEFERRABLE", "be called before any query");
        }
    }
    Ok(())
}

fn set_modes(session: &mut Session, modes: &TransactionModes, later: bool) -> SqlResult<()> {
    if modes.read_only == Some(false) && !later {
        return Err(read_write_refused());
    }
    let (prefix, scope) = if later { ("default_transaction_", Scope::Session) } else { ("transaction_", Scope::Local) };
    let mut settings = session.settings.write();
    let superuser = session.user.superuser;
    let mut put = |name: &str, value: &str| settings.set(&format!("{prefix}{name}"), value, scope, superuser);
    if let Some(isolation) = &modes.isolation {
        put("isolation", isolation)?;
    }
    if let Some(read_only) = modes.read_only {
        put("read_only", if read_only { "on" } else { "off" })?;
    }
    if let Some(deferrable) = modes.deferrable {
        put("deferrable", if deferrable { "on" } else { "off" })?;
    }
    Ok(())
}

/// `25006`: no transaction of a directory that is served read-only can write.
fn read_write_refused() -> SqlError {
    let message = "cannot set transaction read-write mode: the data directory is served read-only";
    SqlError::new(SqlState::ReadOnlySqlTransaction, message)
}

/// Fails where a setting would make the transaction one that can write.
pub(crate) fn check_stays_read_only(settings: &Settings, name: &str) -> SqlResult<()> {
    let is_it = name.eq_ignore_ascii_case("transaction_read_only");
    if is_it && !settings.bool("transaction_read_only") { Err(read_write_refused()) } else { Ok(()) }
}

fn set(session: &mut Session, name: &str, value: Option<&[String]>, local: bool) -> SqlResult<()> {
    if local && session.transaction == Transaction::Idle {
        let message = "SET LOCAL can only be used in transaction blocks";
        session.notices.push(SqlError::new(SqlState::NoActiveSqlTransaction, message));
    }
    if matches!(name.to_ascii_lowercase().as_str(), "role" | "session_authorization") {
        check_same_role(session, name, value)?;
    }
    let scope = if local { Scope::Local } else { Scope::Session };
    let superuser = session.user.superuser;
    let mut settings = session.settings.write();
    match value {
        None => settings.reset(name, scope, superuser),
        Some([one]) => settings.set(name, one, scope, superuser),
        Some(items) => {
            let quoted: Vec<String> = items.iter().map(|i| stegodon_catalog::keywords::quote_identifier(i)).collect();
            settings.set(name, &quoted.join(", "), scope, superuser)
        }
    }?;
    // The statement fails, and with it what it set.
    check_stays_read_only(&settings, name)
}

/// A session stays who it is: another role's privileges are never pretended.
fn check_same_role(session: &Session, name: &str, value: Option<&[String]>) -> SqlResult<()> {
    match value {
        None => Ok(()),
        Some([one]) if *one == session.user.name || (name.eq_ignore_ascii_case("role") && one == "none") => Ok(()),
        Some(_) => Err(SqlError::unsupported(format_args!("SET {name} to another role"))),
    }
}

fn show(session: &Session, name: &str) -> SqlResult<Rows> {
    let settings = session.settings.read();
    if name.eq_ignore_ascii_case("all") {
        let rows = settings.show_all().map(|(n, v, d)| vec![n.to_owned(), v, d.to_owned()]);
        return table(&["name", "setting", "description"], rows);
    }
    text_rows(settings.name_of(name).unwrap_or(name), vec![settings.show(name)?])
}
