//! What an expression may ask while it runs.

use stegodon_catalog::{Catalog, SearchPath};
use stegodon_nodes::expr::SubPlan;
use stegodon_types::{Datum, FormatSettings, Oid, SqlError, SqlResult, SqlState, TypeCatalog};

use crate::{Batch, Column};

/// The forks of a relation, as `pg_relation_size` names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Fork {
    Main,
    FreeSpaceMap,
    VisibilityMap,
    Init,
}

/// What stable functions ask of the session. Where a method has a default, it is the honest answer of a session that
/// cannot know.
pub trait Session: Send + Sync {
    /// `current_user`.
    fn current_user(&self) -> Oid;
    /// `session_user`.
    fn session_user(&self) -> Oid;
    /// `current_database()`.
    fn database_name(&self) -> &str;
    /// `version()`.
    fn version(&self) -> String;
    /// A setting's value as SHOW prints it; `None` where there is no such setting.
    fn setting(&self, name: &str) -> Option<String>;
    /// `set_config`: the value it has afterwards.
    fn set_setting(&self, name: &str, _value: Option<&str>, _local: bool) -> SqlResult<String> {
        Err(SqlError::unsupported(format_args!("set_config of \"{name}\"")))
    }
    /// The transaction's start, in microseconds since 2000-01-01 UTC.
    fn transaction_start_us(&self) -> i64;
    /// The statement's start.
    fn statement_start_us(&self) -> i64;
    /// The time now, for `clock_timestamp()`.
    fn clock_us(&self) -> i64;
    /// The server's start.
    fn postmaster_start_us(&self) -> i64;
    /// `pg_backend_pid()`.
    fn backend_pid(&self) -> i32;
    /// The schemas that bare names are looked for in, `pg_catalog` included.
    fn search_path(&self) -> &SearchPath;
    /// `pg_is_in_recovery()`.
    fn in_recovery(&self) -> bool {
        false
    }
    /// A relation fork's size; `None` where the relation has gone.
    fn relation_bytes(&self, _relation: Oid, _fork: Fork) -> SqlResult<Option<i64>> {
        Err(SqlError::unsupported("the size of a relation"))
    }
    /// A database's size on disk.
    fn database_bytes(&self, _database: Oid) -> SqlResult<Option<i64>> {
        Err(SqlError::unsupported("the size of a database"))
    }
    /// A tablespace's size on disk.
    fn tablespace_bytes(&self, _tablespace: Oid) -> SqlResult<Option<i64>> {
        Err(SqlError::unsupported("the size of a tablespace"))
    }
    /// A comment: of an object of a catalog (`column` 0) or of a column. `None` where it has none.
    fn description(&self, _catalog: Oid, _object: Oid, _column: i32) -> SqlResult<Option<String>> {
        Err(SqlError::unsupported("reading comments"))
    }
    /// A comment on a shared object.
    fn shared_description(&self, _catalog: Oid, _object: Oid) -> SqlResult<Option<String>> {
        Err(SqlError::unsupported("reading comments"))
    }
    /// Does nothing for a moment. A server whose thread serves others too lets them have it.
    fn pause(&self, moment: std::time::Duration) {
        std::thread::sleep(moment);
    }
    /// `57014` once the statement is to stop. Asked by kernels that run long.
    fn check_cancel(&self) -> SqlResult<()> {
        Ok(())
    }
}

/// Runs subqueries that are part of an expression, for the executor.
pub trait SubPlans: Sync {
    /// The subplan's value for each row. `batch` holds the rows asked for only; `params` are the columns of
    /// [`SubPlan::params`], in order.
    fn evaluate(&self, plan: &SubPlan, cx: &EvalContext<'_>, batch: &Batch<'_>, params: &[Column])
    -> SqlResult<Column>;
}

/// What an expression may ask while it runs.
#[derive(Clone, Copy)]
pub struct EvalContext<'a> {
    /// The catalogs.
    pub catalog: &'a Catalog,
    /// The types.
    pub types: &'a dyn TypeCatalog,
    /// The session's settings for reading and printing values.
    pub settings: &'a FormatSettings,
    /// The session.
    pub session: &'a dyn Session,
    /// `$1`, `$2`, ….
    pub params: &'a [Option<Datum>],
    /// The executor's slots.
    pub exec_params: &'a [Option<Datum>],
    /// Runs subqueries, where there can be any.
    pub subplans: Option<&'a dyn SubPlans>,
}

/// A session that knows nothing: folding and tests use it. What it would have to guess it refuses.
#[derive(Debug, Default)]
pub struct NoSession {
    path: SearchPath,
}

impl Session for NoSession {
    fn current_user(&self) -> Oid {
        Oid(10)
    }
    fn session_user(&self) -> Oid {
        Oid(10)
    }
    fn database_name(&self) -> &'static str {
        ""
    }
    fn version(&self) -> String {
        String::new()
    }
    fn setting(&self, _name: &str) -> Option<String> {
        None
    }
    fn transaction_start_us(&self) -> i64 {
        0
    }
    fn statement_start_us(&self) -> i64 {
        0
    }
    fn clock_us(&self) -> i64 {
        0
    }
    fn postmaster_start_us(&self) -> i64 {
        0
    }
    fn backend_pid(&self) -> i32 {
        0
    }
    fn search_path(&self) -> &SearchPath {
        &self.path
    }
}

/// `25006`, for what a read-only directory cannot do.
pub(crate) fn read_only(what: &str) -> SqlError {
    SqlError::new(SqlState::ReadOnlySqlTransaction, format!("cannot execute {what} in a read-only transaction"))
}
