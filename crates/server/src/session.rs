//! A session: settings, transaction state, prepared statements and portals, with no protocol around it.
//!
//! ```text
//!   text ─parse─▸ ParsedStatement ─analyse, rewrite─▸ Statement ─plan─▸ PlannedStatement ─start─▸ Running ─▸ batches
//! ```
//! The server drives one over a socket, `stegodon sql` and the library directly.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use stegodon_catalog::rows::Role;
use stegodon_catalog::settings::{Scope, Settings, Source};
use stegodon_catalog::{Catalog, CatalogView};
use stegodon_exec::CancelFlag;
use stegodon_format::ids::Oid;
use stegodon_sql::{AnalyzeContext, ParamTypes, Statement};
use stegodon_types::settings::Encoding;
use stegodon_types::{Datum, FormatSettings, SqlError, SqlResult, SqlState, TypeContext};

use crate::cluster::{Cluster, KEY_BYTES, now_us};
use crate::info::SessionInfo;
use crate::plans::{PlanSlot, Raw, Texts};
use crate::portal::Portal;
use crate::statements::Statements;

/// Where a session stands towards a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transaction {
    /// Outside a block: each statement is its own.
    #[default]
    Idle,
    /// In a block.
    Block,
    /// In a block that has failed: only its end is accepted.
    Failed,
}

/// A statement that has been analysed, ready to be bound any number of times.
#[derive(Debug)]
pub struct Prepared {
    /// Its text, which EXECUTE's arguments are read from; `None` inside a PREPARE.
    pub parsed: Option<Arc<Raw>>,
    /// What it is; `None` where there was no statement.
    pub statement: Option<Statement>,
    /// The types of its parameters.
    pub param_types: Vec<Oid>,
    /// Its plan, where it has no parameters.
    pub(crate) plan: Arc<PlanSlot>,
}

impl Prepared {
    /// An empty statement.
    pub(crate) fn empty() -> Self {
        Self { parsed: None, statement: None, param_types: Vec::new(), plan: Arc::default() }
    }
}

/// A message to the client that is no error.
pub type Notice = SqlError;

/// A session of one user in one database.
pub struct Session {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) view: Arc<CatalogView>,
    /// What `view`'s path was made from.
    path_source: String,
    pub(crate) settings: Arc<RwLock<Settings>>,
    pub(crate) user: Arc<Role>,
    pub(crate) database: String,
    pub(crate) encoding: Encoding,
    pub(crate) pid: i32,
    /// The key that cancels this session.
    pub(crate) secret: [u8; KEY_BYTES],
    pub(crate) cancel: Arc<CancelFlag>,
    pub(crate) transaction: Transaction,
    pub(crate) transaction_start_us: i64,
    /// Whether a query has run in the transaction: its isolation level is settled.
    pub(crate) has_queried: bool,
    /// Names of savepoints, the innermost last.
    pub(crate) savepoints: Vec<String>,
    pub(crate) prepared: Statements,
    pub(crate) portals: HashMap<String, Portal>,
    pub(crate) notices: Vec<Notice>,
    /// The statement at hand has a long text.
    pub(crate) is_long: bool,
    texts: Texts,
    /// The last [`Session::format`], and what it was made from.
    made_format: Mutex<Option<(u64, i64, Arc<FormatSettings>)>>,
}

/// The privilege bit of CONNECT (`ACL_CONNECT`).
const CONNECT: u64 = 1 << 11;
/// What marks a database whose DROP was interrupted (`DATCONNLIMIT_INVALID_DB`).
const INVALID_DATABASE: i32 = -2;
/// PostgreSQL's numbers of the encodings that are served.
const UTF8: i32 = 6;
const SQL_ASCII: i32 = 0;

impl Session {
    /// A session for a user who has been authenticated, with the settings of its startup packet. Blocks while the
    /// database's catalogs are read for the first time.
    pub fn connect(
        cluster: &Arc<Cluster>,
        database: &str,
        user: &str,
        options: &[(String, String)],
    ) -> SqlResult<Self> {
        cluster.storage().check_at_rest()?;
        let catalog = cluster.catalog(database)?;
        let role = role(&catalog, user)?;
        let encoding = admit(&catalog, &role)?;
        let mut settings = cluster.settings().clone();
        settings.set_internal("server_encoding", encoding_name(encoding))?;
        settings.set_internal("is_superuser", if role.superuser { "on" } else { "off" })?;
        settings.set_internal("session_authorization", user)?;
        // What the directory is served as; a client may look for a server that can write.
        settings.set_internal("default_transaction_read_only", "on")?;
        settings.set_internal("transaction_read_only", "on")?;
        for (name, value) in options {
            settings.set_at_start(name, value, Source::Client, None)?;
        }
        let cancel = Arc::new(CancelFlag::default());
        let (path_source, view) = view(&catalog, &settings, role.oid)?;
        // Last: what is registered is forgotten with the session.
        let (pid, secret) = cluster.register(&cancel, &role, &catalog)?;
        Ok(Self {
            cluster: Arc::clone(cluster),
            view,
            path_source,
            settings: Arc::new(RwLock::new(settings)),
            user: role,
            database: database.to_owned(),
            encoding,
            pid,
            secret,
            cancel,
            transaction: Transaction::Idle,
            transaction_start_us: now_us(),
            has_queried: false,
            savepoints: Vec::new(),
            prepared: Statements::default(),
            portals: HashMap::new(),
            notices: Vec::new(),
            is_long: false,
            texts: Texts::default(),
            made_format: Mutex::default(),
        })
    }

    /// Where it stands towards a transaction.
    pub fn transaction(&self) -> Transaction {
        self.transaction
    }

    /// The flag that stops what it is doing.
    pub fn cancel_flag(&self) -> &Arc<CancelFlag> {
        &self.cancel
    }

    /// The types, as this session's search path shows them.
    pub fn view(&self) -> &Arc<CatalogView> {
        &self.view
    }

    /// Messages that have gathered for the client.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// The settings for reading and writing values, as they are now.
    pub fn format(&self) -> Arc<FormatSettings> {
        let settings = self.settings.read();
        let mut made = self.made_format.lock();
        let asked = (settings.generation(), self.transaction_start_us);
        if let Some((generation, start_us, format)) = &*made
            && asked == (*generation, *start_us)
        {
            return Arc::clone(format);
        }
        let format = match &*made {
            // Only the clock has gone on.
            Some((generation, _, last)) if *generation == asked.0 => {
                FormatSettings { now_us: asked.1, ..FormatSettings::clone(last) }
            }
            _ => settings.format_settings(self.encoding, asked.1),
        };
        let format = Arc::new(format);
        *made = Some((asked.0, asked.1, Arc::clone(&format)));
        format
    }

    /// Parses the statements of a string.
    pub fn parse(&mut self, sql: &str) -> SqlResult<Arc<[Arc<Raw>]>> {
        self.texts.parse(sql)
    }

    /// Forgets what would make its statements quicker.
    pub(crate) fn forget_texts(&mut self) {
        self.texts.clear();
    }

    /// Begins a statement: outside a block, a transaction begins with it.
    pub fn begin_statement(&mut self) -> SqlResult<()> {
        self.cluster.storage().check_at_rest()?;
        self.cancel.clear();
        if self.transaction == Transaction::Idle && self.settings.read().depth() == 0 {
            self.transaction_start_us = now_us();
            self.begin_settings();
        }
        let source = self.settings.read().text("search_path").to_owned();
        if source != self.path_source {
            let catalog = Arc::clone(&self.view.catalog);
            (self.path_source, self.view) = view(&catalog, &self.settings.read(), self.user.oid)?;
        }
        Ok(())
    }

    /// A transaction's settings begin, of a block or of one statement: SET LOCAL lasts as long.
    pub(crate) fn begin_settings(&mut self) {
        let mut settings = self.settings.write();
        if settings.depth() == 0 {
            settings.begin();
        }
    }

    /// Fails with 25P02 in a failed block.
    pub(crate) fn check_not_failed(&self) -> SqlResult<()> {
        if self.transaction != Transaction::Failed {
            return Ok(());
        }
        let message = "current transaction is aborted, commands ignored until end of transaction block";
        Err(SqlError::new(SqlState::InFailedSqlTransaction, message))
    }

    /// Notes that a statement has failed. Outside a block, what it and those before it in its string did is undone.
    pub fn failed(&mut self) {
        match self.transaction {
            Transaction::Block => self.transaction = Transaction::Failed,
            Transaction::Idle => self.end_transaction(false),
            Transaction::Failed => {}
        }
    }

    /// Analyses a statement; `types` are those given for its first parameters, 0 for one to be inferred.
    pub fn prepare(&mut self, raw: Arc<Raw>, types: Vec<Oid>) -> SqlResult<Arc<Prepared>> {
        let format = self.format();
        let cx = self.analyze_context(&format);
        let analyzed = stegodon_sql::analyze(&raw.parsed, cx, ParamTypes { types, variable: true })?;
        Ok(Arc::new(Prepared {
            plan: Arc::clone(&raw.plan),
            parsed: Some(raw),
            statement: Some(analyzed.statement),
            param_types: analyzed.param_types,
        }))
    }

    /// What analysis asks.
    pub(crate) fn analyze_context<'a>(&'a self, format: &'a FormatSettings) -> AnalyzeContext<'a> {
        AnalyzeContext {
            catalog: &self.view.catalog,
            path: &self.view.path,
            types: TypeContext::new(self.view.as_ref(), format),
            user: self.user.oid,
            transform_null_equals: self.settings.read().bool("transform_null_equals"),
        }
    }

    /// What functions may ask during one statement.
    pub(crate) fn info(&self) -> Arc<SessionInfo> {
        Arc::new(SessionInfo {
            cluster: Arc::clone(&self.cluster),
            view: Arc::clone(&self.view),
            settings: Arc::clone(&self.settings),
            current_user: self.user.oid,
            session_user: self.user.oid,
            database: self.database.clone(),
            pid: self.pid,
            superuser: self.user.superuser,
            transaction_start_us: self.transaction_start_us,
            statement_start_us: now_us(),
            cancel: Arc::clone(&self.cancel),
        })
    }

    /// Ends a block, or the transaction of a statement outside one.
    pub(crate) fn end_transaction(&mut self, commit: bool) {
        self.transaction = Transaction::Idle;
        self.savepoints.clear();
        self.has_queried = false;
        let mut settings = self.settings.write();
        while settings.depth() > 0 {
            if commit { settings.commit() } else { settings.rollback() }
        }
        drop(settings);
        self.portals.clear();
    }

    /// SET from outside SQL, as the startup packet does it.
    pub fn set(&mut self, name: &str, value: &str) -> SqlResult<()> {
        self.settings.write().set(name, value, Scope::Session, self.user.superuser)
    }

    /// Forgets everything that DISCARD ALL forgets.
    pub(crate) fn discard_all(&mut self) {
        self.portals.clear();
        self.prepared.clear();
        self.texts.clear();
        self.settings.write().reset_all();
    }

    /// Values of a statement's parameters from the client's bytes.
    pub(crate) fn param(&self, type_oid: Oid, format: crate::Format, bytes: &[u8]) -> SqlResult<Datum> {
        let settings = self.format();
        let cx = TypeContext::new(self.view.as_ref(), &settings);
        let ty = stegodon_types::TypeCatalog::type_desc(self.view.as_ref(), type_oid)?;
        if self.view.catalog.is_checked(type_oid) {
            let what = format_args!("a parameter of type {}, which a domain checks", ty.name);
            return Err(SqlError::unsupported(what));
        }
        if format == crate::Format::Text {
            stegodon_types::scalar::text::validate(self.encoding, bytes)?;
        }
        match format {
            crate::Format::Text => stegodon_types::text_in(&cx, &ty, bytes, -1),
            crate::Format::Binary => stegodon_types::binary_in(&cx, &ty, bytes, -1),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.cluster.unregister(self.pid);
    }
}

fn encoding_name(encoding: Encoding) -> &'static str {
    match encoding {
        Encoding::Utf8 => "UTF8",
        Encoding::SqlAscii => "SQL_ASCII",
    }
}

fn role(catalog: &Catalog, user: &str) -> SqlResult<Arc<Role>> {
    let missing = || {
        let message = format!("role \"{user}\" does not exist");
        SqlError::new(SqlState::InvalidAuthorizationSpecification, message)
    };
    catalog.role_by_name(user).cloned().ok_or_else(missing)
}

/// Whether a role may connect to a database, and the encoding that is spoken there.
fn admit(catalog: &Catalog, role: &Role) -> SqlResult<Encoding> {
    let database = catalog.database().ok_or_else(|| SqlError::internal("a catalog without its database"))?;
    if !role.can_login {
        let message = format!("role \"{}\" is not permitted to log in", role.name);
        return Err(SqlError::new(SqlState::InvalidAuthorizationSpecification, message));
    }
    if database.connection_limit == INVALID_DATABASE {
        let message = format!("cannot connect to invalid database \"{}\"", database.name);
        let error = SqlError::new(SqlState::ObjectNotInPrerequisiteState, message);
        return Err(error.hint("Use DROP DATABASE to drop invalid databases."));
    }
    if !database.allow_connections {
        let message = format!("database \"{}\" is not currently accepting connections", database.name);
        return Err(SqlError::new(SqlState::ObjectNotInPrerequisiteState, message));
    }
    if !role.superuser && catalog.database_privileges(database.oid, role.oid, CONNECT) == 0 {
        return Err(SqlError::new(
            SqlState::InsufficientPrivilege,
            format!("permission denied for database \"{}\"", database.name),
        )
        .detail("User does not have CONNECT privilege."));
    }
    match database.encoding {
        UTF8 => Ok(Encoding::Utf8),
        SQL_ASCII => Ok(Encoding::SqlAscii),
        other => Err(SqlError::unsupported(format_args!("database encoding number {other}"))),
    }
}

fn view(catalog: &Arc<Catalog>, settings: &Settings, role: Oid) -> SqlResult<(String, Arc<CatalogView>)> {
    let source = settings.text("search_path").to_owned();
    let path = catalog.resolve_search_path(&source, role)?;
    Ok((source, Arc::new(CatalogView::new(Arc::clone(catalog), path))))
}
