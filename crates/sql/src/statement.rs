//! What a statement is once analysed.

use pg_query::protobuf as pb;
use stegodon_format::ids::Oid;
use stegodon_nodes::Query;

/// An analysed statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// SELECT, VALUES, TABLE.
    Query(Box<Query>),
    /// EXPLAIN.
    Explain {
        /// How.
        options: ExplainOptions,
        /// What.
        statement: Box<Statement>,
    },
    /// BEGIN, COMMIT and their like.
    Transaction(TransactionStatement),
    /// SET TRANSACTION, or SET SESSION CHARACTERISTICS AS TRANSACTION (`session`).
    SetTransaction {
        /// What to set.
        modes: TransactionModes,
        /// For transactions to come.
        session: bool,
    },
    /// SET CONSTRAINTS.
    SetConstraints,
    /// PREPARE.
    Prepare {
        /// Its name.
        name: String,
        /// The types of its parameters.
        param_types: Vec<Oid>,
        /// What to run.
        statement: Box<Statement>,
    },
    /// EXECUTE. The arguments are analysed once the statement's parameters are known: [`crate::analyze_arguments`].
    Execute {
        /// The statement's name.
        name: String,
        /// The arguments, raw.
        args: Vec<pb::Node>,
    },
    /// DEALLOCATE; `None` for ALL.
    Deallocate(Option<String>),
    /// DECLARE CURSOR.
    DeclareCursor {
        /// Its name.
        name: String,
        /// SCROLL or NO SCROLL, where said.
        scroll: Option<bool>,
        /// WITH HOLD.
        hold: bool,
        /// BINARY.
        binary: bool,
        /// What it runs over.
        query: Box<Query>,
    },
    /// FETCH, MOVE.
    Fetch {
        /// The cursor.
        cursor: String,
        /// Which way.
        direction: FetchDirection,
        /// How many, or which; `i64::MAX` is ALL.
        count: i64,
        /// MOVE.
        is_move: bool,
    },
    /// CLOSE; `None` for ALL.
    Close(Option<String>),
    /// SET.
    Set {
        /// The setting.
        name: String,
        /// Its new value: a list's items; `None` for DEFAULT.
        value: Option<Vec<String>>,
        /// LOCAL.
        local: bool,
    },
    /// SHOW; the name `all` for all.
    Show(String),
    /// RESET; `None` for ALL.
    Reset(Option<String>),
    /// DISCARD.
    Discard(DiscardTarget),
    /// COPY ... TO.
    CopyTo {
        /// The rows.
        query: Box<Query>,
        /// Where to.
        target: CopyTarget,
        /// The options: name, and value where there is one (a list's items).
        options: Vec<(String, Option<Vec<String>>)>,
    },
    /// LISTEN.
    Listen(String),
    /// UNLISTEN; `None` for `*`.
    Unlisten(Option<String>),
    /// LOCK TABLE.
    Lock {
        /// The tables.
        relations: Vec<Oid>,
        /// PostgreSQL's lock mode, 1 to 8.
        mode: i32,
        /// NOWAIT.
        nowait: bool,
    },
    /// A statement that writes: answered with 25006. The command tag is given.
    Write(&'static str),
}

/// EXPLAIN's options. `None` is what was not said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as written")]
pub struct ExplainOptions {
    pub analyze: bool,
    pub verbose: bool,
    pub costs: Option<bool>,
    pub settings: bool,
    pub generic_plan: bool,
    pub buffers: Option<bool>,
    pub wal: bool,
    pub timing: Option<bool>,
    pub summary: Option<bool>,
    pub memory: bool,
    /// Ours: what each scan's stream has done.
    pub io: bool,
    /// `none`, `text`, `binary`.
    pub serialize: Option<String>,
    /// `text`, `xml`, `json`, `yaml`.
    pub format: Option<String>,
}

/// What is said of a transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransactionModes {
    /// `serializable`, `repeatable read`, `read committed`, `read uncommitted`.
    pub isolation: Option<String>,
    /// READ ONLY, READ WRITE.
    pub read_only: Option<bool>,
    /// DEFERRABLE, NOT DEFERRABLE.
    pub deferrable: Option<bool>,
}

/// BEGIN, COMMIT and their like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransactionStatement {
    /// BEGIN (or START TRANSACTION: `start`).
    Begin {
        /// What is said of it.
        modes: TransactionModes,
        /// Whether it was written START TRANSACTION, which has its own command tag.
        start: bool,
    },
    /// COMMIT.
    Commit {
        /// AND CHAIN.
        chain: bool,
    },
    /// ROLLBACK.
    Rollback {
        /// AND CHAIN.
        chain: bool,
    },
    /// SAVEPOINT.
    Savepoint(String),
    /// RELEASE.
    Release(String),
    /// ROLLBACK TO.
    RollbackTo(String),
}

/// Which way FETCH goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FetchDirection {
    Forward,
    Backward,
    Absolute,
    Relative,
}

/// What DISCARD discards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum DiscardTarget {
    All,
    Plans,
    Sequences,
    Temp,
}

/// Where COPY writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyTarget {
    /// To the client.
    Stdout,
    /// To a file of the server's.
    File(String),
    /// To a program on the server.
    Program(String),
}
