//! One client's connection: messages until it goes.

use std::sync::Arc;
use std::time::Duration;

use pgwire::messages::data::{FieldDescription, NoData, ParameterDescription, RowDescription};
use pgwire::messages::extendedquery::{BindComplete, CloseComplete, ParseComplete, PortalSuspended};
use pgwire::messages::response::{CommandComplete, EmptyQueryResponse, ReadyForQuery, TransactionStatus};
use pgwire::messages::startup::ParameterStatus;
use pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage};
use stegodon_format::ids::Oid;
use stegodon_plan::node::ResultColumn;
use stegodon_types::{Datum, SqlError, SqlResult, SqlState, TypeCatalog, TypeContext};

use crate::auth::Peer;
use crate::cluster::{Cluster, canceled};
use crate::encode::{Format, OutputColumn, data_rows};
use crate::lobby::Place;
use crate::portal::Portal;
use crate::run::{Outcome, Run};
use crate::session::{Prepared, Session, Transaction};
use crate::socket::Socket;
use crate::startup;
use crate::statements::{PORTALS_MAX, aside, is_long};
use crate::wire::{Incoming, Severity, Wire, violation};

/// A client that says nothing for so long is idle: nothing is kept to be quick for it.
const IDLE: Duration = crate::plans::AGE_MAX;

/// Serves one connection until it ends. It has a place in the lobby until its client is known.
pub(crate) async fn serve(cluster: Arc<Cluster>, socket: Socket, peer: Peer, place: Place) {
    let mut wire = Wire::new(socket);
    let timeout_s = u64::try_from(cluster.settings().int("authentication_timeout")).unwrap_or(60);
    // In a box of its own, which is gone when the client waits for years.
    let start = Box::pin(startup::start(&cluster, &mut wire, peer));
    match tokio::time::timeout(Duration::from_secs(timeout_s), start).await {
        Ok(Ok(Some(session))) => {
            drop(place);
            let mut connection = Connection { wire, session };
            if let Err(error) = connection.run().await {
                let _ = connection.wire.send_error(Severity::Fatal, &error);
                let _ = connection.wire.flush().await;
            }
        }
        Ok(Err(error)) => {
            let _ = wire.send_error(Severity::Fatal, &error);
            let _ = wire.flush().await;
        }
        Ok(Ok(None)) | Err(_) => {}
    }
}

/// `statement_timeout` of one statement, from its analysis to its last row; dropped with it. A task of its own: the
/// statement's may be busy.
struct Timeout(tokio::task::JoinHandle<()>);

impl Timeout {
    fn start(session: &Session) -> Option<Self> {
        let limit_ms = u64::try_from(session.settings.read().int("statement_timeout")).ok().filter(|ms| *ms > 0)?;
        let cancel = Arc::clone(&session.cancel);
        Some(Self(tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(limit_ms)).await;
            cancel.cancel(canceled("statement timeout"));
        })))
    }
}

impl Drop for Timeout {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct Connection {
    wire: Wire<Socket>,
    session: Session,
}

impl Connection {
    /// Serves messages. An error here ends the connection; errors of statements are answered inside.
    async fn run(&mut self) -> SqlResult<()> {
        self.ready().await?;
        // After an error in the extended protocol, everything up to Sync is skipped.
        let mut skipping = false;
        loop {
            // A client that sends and does not read is not answered without end.
            self.wire.flush_if_full().await?;
            let incoming = match tokio::time::timeout(IDLE, self.wire.read()).await {
                Ok(incoming) => incoming?,
                Err(_) => {
                    // Its plans have become too old meanwhile, and thousands may wait for days.
                    self.session.forget_texts();
                    self.wire.read().await?
                }
            };
            let Some(incoming) = incoming else { return Ok(()) };
            let message = match incoming {
                Incoming::Message(message) => message,
                Incoming::Refused { kind, error } => {
                    // These two are answered whole; after others everything up to Sync is skipped.
                    let is_simple = matches!(kind, b'Q' | b'F');
                    if !skipping || kind == b'S' {
                        self.error(&error)?;
                        skipping = !is_simple && kind != b'S';
                    }
                    if !skipping {
                        self.ready().await?;
                    }
                    continue;
                }
            };
            let result = match message {
                PgWireFrontendMessage::Terminate(_) => return Ok(()),
                PgWireFrontendMessage::Sync(_) => {
                    skipping = false;
                    if self.session.transaction() == Transaction::Idle {
                        self.session.end_transaction(true);
                    }
                    self.ready().await?;
                    Ok(())
                }
                _ if skipping => Ok(()),
                PgWireFrontendMessage::Query(query) => {
                    if let Err(error) = self.simple(&query.query).await {
                        self.error(&error)?;
                        if is_fatal(&error) {
                            self.wire.flush().await?;
                            return Ok(());
                        }
                    }
                    self.ready().await?;
                    Ok(())
                }
                PgWireFrontendMessage::Parse(m) => {
                    self.parse(m.name.unwrap_or_default(), &m.query, m.type_oids.into_iter().map(Oid).collect())
                }
                PgWireFrontendMessage::Bind(m) => self.bind(
                    m.portal_name.unwrap_or_default(),
                    &m.statement_name.unwrap_or_default(),
                    &m.parameter_format_codes,
                    &m.parameters,
                    &m.result_column_format_codes,
                ),
                PgWireFrontendMessage::Describe(m) => self.describe(m.target_type, &m.name.unwrap_or_default()),
                PgWireFrontendMessage::Execute(m) => self.execute(&m.name.unwrap_or_default(), m.max_rows).await,
                PgWireFrontendMessage::Close(m) => self.close(m.target_type, &m.name.unwrap_or_default()),
                PgWireFrontendMessage::Flush(_) => self.wire.flush().await,
                // What is left of a COPY that failed.
                PgWireFrontendMessage::CopyData(_)
                | PgWireFrontendMessage::CopyDone(_)
                | PgWireFrontendMessage::CopyFail(_) => Ok(()),
                _ => return Err(violation("unexpected message".to_owned())),
            };
            if let Err(error) = result {
                self.error(&error)?;
                if is_fatal(&error) {
                    self.wire.flush().await?;
                    return Ok(());
                }
                skipping = true;
            }
        }
    }

    async fn ready(&mut self) -> SqlResult<()> {
        self.tell()?;
        let status = match self.session.transaction() {
            Transaction::Idle => TransactionStatus::Idle,
            Transaction::Block => TransactionStatus::Transaction,
            Transaction::Failed => TransactionStatus::Error,
        };
        self.wire.send(&PgWireBackendMessage::ReadyForQuery(ReadyForQuery::new(status)))?;
        self.wire.flush().await
    }

    /// Notices, and settings that have changed.
    fn tell(&mut self) -> SqlResult<()> {
        for notice in self.session.take_notices() {
            let severity =
                if notice.state == SqlState::SuccessfulCompletion { Severity::Notice } else { Severity::Warning };
            self.wire.send_error(severity, &notice)?;
        }
        let changed = self.session.settings.write().take_reports();
        for (name, value) in changed {
            let status = ParameterStatus::new(name.to_owned(), value);
            self.wire.send(&PgWireBackendMessage::ParameterStatus(status))?;
        }
        Ok(())
    }

    fn error(&mut self, error: &SqlError) -> SqlResult<()> {
        self.session.failed();
        let severity = if is_fatal(error) { Severity::Fatal } else { Severity::Error };
        self.wire.send_error(severity, error)
    }

    /// A simple query: every statement of the string, up to the first that fails.
    async fn simple(&mut self, text: &str) -> SqlResult<()> {
        self.session.portals.remove("");
        self.session.begin_statement()?;
        self.session.is_long = is_long(text.len());
        let statements = aside(self.session.is_long, || self.session.parse(text))?;
        if statements.is_empty() {
            return self.wire.send(&PgWireBackendMessage::EmptyQueryResponse(EmptyQueryResponse::new()));
        }
        for raw in statements.iter() {
            self.session.begin_statement()?;
            let _timeout = Timeout::start(&self.session);
            let run = aside(self.session.is_long, || Run::of(&mut self.session, Arc::clone(raw)))?;
            let outcome = run.start(&mut self.session, Vec::new()).await?;
            self.answer(outcome, &[], true, usize::MAX, "").await?;
            self.tell()?;
        }
        // The statements of one string are one transaction, unless they say otherwise.
        if self.session.transaction() == Transaction::Idle {
            self.session.end_transaction(true);
        }
        Ok(())
    }

    /// Sends what a statement gave. Rows beyond `max` stay in the portal of this name.
    async fn answer(
        &mut self,
        outcome: Outcome,
        formats: &[Format],
        describe: bool,
        max: usize,
        portal: &str,
    ) -> SqlResult<()> {
        match outcome {
            Outcome::Empty => self.wire.send(&PgWireBackendMessage::EmptyQueryResponse(EmptyQueryResponse::new())),
            Outcome::Command(tag) => self.wire.send(&PgWireBackendMessage::CommandComplete(CommandComplete::new(tag))),
            Outcome::Rows { mut rows, tag, counted } => {
                if describe {
                    self.row_description(&rows.columns, formats)?;
                }
                let columns = OutputColumn::all(self.session.view().as_ref(), &rows.columns, formats)?;
                let (sent, ended) = self.send_rows(&mut rows, &columns, max).await?;
                if !ended {
                    if let Some(portal) = self.session.portals.get_mut(portal) {
                        portal.rows = Some(rows);
                    }
                    return self.wire.send(&PgWireBackendMessage::PortalSuspended(PortalSuspended::new()));
                }
                if let Some(portal) = self.session.portals.get_mut(portal).filter(|_| !describe) {
                    portal.ended = true;
                }
                let tag = if counted { format!("{tag} {sent}") } else { tag };
                self.wire.send(&PgWireBackendMessage::CommandComplete(CommandComplete::new(tag)))
            }
        }
    }

    /// Sends rows, at most `max`. Says how many, and whether the end was reached.
    async fn send_rows(
        &mut self,
        rows: &mut crate::portal::Rows,
        columns: &[OutputColumn],
        max: usize,
    ) -> SqlResult<(usize, bool)> {
        let format = self.session.format();
        let mut sent = 0;
        while sent < max {
            let batch = {
                let next = rows.next(max - sent);
                tokio::pin!(next);
                let cancel = Arc::clone(&self.session.cancel);
                let mut watching = true;
                loop {
                    tokio::select! {
                        biased;
                        batch = &mut next => break batch?,
                        gone = self.wire.wait_for_client(), if watching => {
                            if gone {
                                cancel.cancel(SqlError::new(SqlState::ConnectionException, "connection to client lost"));
                                watching = false;
                            }
                        }
                    }
                }
            };
            let Some(batch) = batch else { return Ok((sent, true)) };
            let cx = TypeContext::new(self.session.view.as_ref(), &format);
            let start = self.wire.output().len();
            let mut from = 0;
            while from < batch.num_rows() {
                let to = (from + 256).min(batch.num_rows());
                let written = data_rows(&cx, columns, &batch, from..to, self.wire.output());
                if let Err(error) = written {
                    // A row that could not be written whole is not sent.
                    let kept = start.min(self.wire.output().len());
                    if from == 0 {
                        self.wire.output().truncate(kept);
                    }
                    return Err(error);
                }
                from = to;
                self.wire.flush_if_full().await?;
            }
            sent += batch.num_rows();
        }
        Ok((sent, false))
    }

    fn row_description(&mut self, columns: &[ResultColumn], formats: &[Format]) -> SqlResult<()> {
        let types = self.session.view();
        let field = |(i, column): (usize, &ResultColumn)| {
            let format = Format::of(formats, i);
            let size = types.type_desc(column.type_oid).map_or(-1, |t| t.len);
            FieldDescription::new(
                column.name.clone(),
                column.origin_table.0 as i32,
                column.origin_column.0,
                column.type_oid.0,
                size,
                column.typmod,
                format.code(),
            )
        };
        let fields = columns.iter().enumerate().map(field).collect();
        self.wire.send(&PgWireBackendMessage::RowDescription(RowDescription::new(fields)))
    }

    fn parse(&mut self, name: String, text: &str, types: Vec<Oid>) -> SqlResult<()> {
        self.session.begin_statement()?;
        if !name.is_empty() && self.session.prepared.contains(&name) {
            let message = format!("prepared statement \"{name}\" already exists");
            return Err(SqlError::new(SqlState::DuplicatePreparedStatement, message));
        }
        let statements = aside(is_long(text.len()), || self.session.parse(text))?;
        if statements.len() > 1 {
            let message = "cannot insert multiple commands into a prepared statement";
            return Err(SqlError::new(SqlState::SyntaxError, message));
        }
        let prepared = match statements.first() {
            None => None,
            Some(raw) => Some(aside(is_long(text.len()), || Run::prepare(&mut self.session, Arc::clone(raw), types))?),
        };
        let prepared = prepared.unwrap_or_else(|| Arc::new(Prepared::empty()));
        self.session.prepared.insert(name, prepared, text.len())?;
        self.wire.send(&PgWireBackendMessage::ParseComplete(ParseComplete::new()))
    }

    fn statement(&self, name: &str) -> SqlResult<Arc<Prepared>> {
        let missing = || {
            let message = if name.is_empty() {
                "unnamed prepared statement does not exist".to_owned()
            } else {
                format!("prepared statement \"{name}\" does not exist")
            };
            SqlError::new(SqlState::InvalidSqlStatementName, message)
        };
        self.session.prepared.get(name).cloned().ok_or_else(missing)
    }

    fn portal(&mut self, name: &str) -> SqlResult<&mut Portal> {
        let missing = || SqlError::new(SqlState::InvalidCursorName, format!("portal \"{name}\" does not exist"));
        self.session.portals.get_mut(name).ok_or_else(missing)
    }

    fn bind(
        &mut self,
        portal: String,
        statement: &str,
        formats: &[i16],
        values: &[Option<bytes::Bytes>],
        result_formats: &[i16],
    ) -> SqlResult<()> {
        let prepared = self.statement(statement)?;
        Run::check_may_run(&self.session, &prepared)?;
        if formats.len() > 1 && formats.len() != values.len() {
            let message =
                format!("bind message has {} parameter formats but {} parameters", formats.len(), values.len());
            return Err(violation(message));
        }
        if values.len() != prepared.param_types.len() {
            let message = format!(
                "bind message supplies {} parameters, but prepared statement \"{statement}\" requires {}",
                values.len(),
                prepared.param_types.len()
            );
            return Err(violation(message));
        }
        if !portal.is_empty() && self.session.portals.contains_key(&portal) {
            return Err(SqlError::new(SqlState::DuplicateCursor, format!("cursor \"{portal}\" already exists")));
        }
        if self.session.portals.len() >= PORTALS_MAX && !portal.is_empty() {
            return Err(SqlError::new(SqlState::ProgramLimitExceeded, "too many portals"));
        }
        let mut params: Vec<Option<Datum>> = Vec::with_capacity(values.len());
        for (i, (value, &ty)) in values.iter().zip(&prepared.param_types).enumerate() {
            let code = match formats {
                [] => 0,
                [one] => *one,
                many => many.get(i).copied().unwrap_or(0),
            };
            let format = Format::from_code(code)?;
            params.push(value.as_ref().map(|v| self.session.param(ty, format, v)).transpose()?);
        }
        let formats = result_formats.iter().map(|&c| Format::from_code(c)).collect::<SqlResult<Vec<_>>>()?;
        if formats.len() > 1
            && let Some(columns) = Run::columns(&self.session, &prepared)?
            && columns.len() != formats.len()
        {
            let message =
                format!("bind message has {} result formats but query has {} columns", formats.len(), columns.len());
            return Err(violation(message));
        }
        self.session.portals.insert(portal, Portal::new(prepared, params, formats));
        self.wire.send(&PgWireBackendMessage::BindComplete(BindComplete::new()))
    }

    fn describe(&mut self, kind: u8, name: &str) -> SqlResult<()> {
        if !matches!(kind, b'S' | b'P') {
            return Err(violation(format!("invalid DESCRIBE message subtype {kind}")));
        }
        let (prepared, formats) = if kind == b'S' {
            let prepared = self.statement(name)?;
            let types = prepared.param_types.iter().map(|t| t.0).collect();
            self.wire.send(&PgWireBackendMessage::ParameterDescription(ParameterDescription::new(types)))?;
            (prepared, Vec::new())
        } else {
            let portal = self.portal(name)?;
            let formats = portal.formats.clone();
            match (&portal.prepared, &portal.rows) {
                (Some(prepared), _) => (Arc::clone(prepared), formats),
                (None, Some(rows)) => {
                    let columns = Arc::clone(&rows.columns);
                    return self.row_description(&columns, &formats);
                }
                (None, None) => return self.wire.send(&PgWireBackendMessage::NoData(NoData::new())),
            }
        };
        Run::check_may_describe(&self.session, &prepared)?;
        match Run::columns(&self.session, &prepared)? {
            Some(columns) => self.row_description(&columns, &formats),
            None => self.wire.send(&PgWireBackendMessage::NoData(NoData::new())),
        }
    }

    async fn execute(&mut self, name: &str, max_rows: i32) -> SqlResult<()> {
        let max = usize::try_from(max_rows).ok().filter(|m| *m > 0).unwrap_or(usize::MAX);
        let portal = self.portal(name)?;
        let formats = portal.formats.clone();
        if portal.ended {
            let done = CommandComplete::new("SELECT 0".to_owned());
            return self.wire.send(&PgWireBackendMessage::CommandComplete(done));
        }
        if let Some(rows) = portal.rows.take() {
            let _timeout = Timeout::start(&self.session);
            let outcome = Outcome::Rows { rows, tag: "SELECT".to_owned(), counted: true };
            return self.answer(outcome, &formats, false, max, name).await;
        }
        let prepared = portal.prepared.clone();
        let params = std::mem::take(&mut portal.params);
        let Some(prepared) = prepared else { return Err(violation("a portal without a statement".to_owned())) };
        self.session.begin_statement()?;
        self.session.is_long = prepared.parsed.as_ref().is_some_and(|raw| is_long(raw.text_bytes()));
        let _timeout = Timeout::start(&self.session);
        let outcome = Run::of_prepared(&self.session, prepared)?.start(&mut self.session, params).await?;
        self.answer(outcome, &formats, false, max, name).await?;
        self.tell()
    }

    fn close(&mut self, kind: u8, name: &str) -> SqlResult<()> {
        if !matches!(kind, b'S' | b'P') {
            return Err(violation(format!("invalid CLOSE message subtype {kind}")));
        }
        if kind == b'S' {
            self.session.prepared.remove(name);
        } else {
            self.session.portals.remove(name);
        }
        self.wire.send(&PgWireBackendMessage::CloseComplete(CloseComplete::new()))
    }
}

/// Whether an error ends the connection.
fn is_fatal(error: &SqlError) -> bool {
    matches!(error.state, SqlState::AdminShutdown | SqlState::ConnectionException)
}
