//! One blocking connection, the same for every engine.

use tokio_postgres::{NoTls, SimpleQueryMessage};

use crate::Server;

/// One column of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type's OID.
    pub type_oid: u32,
    /// Its typmod.
    pub typmod: i32,
}

/// What a query answered, every value as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The columns of the last statement; empty where the types were not asked for.
    pub columns: Vec<Column>,
    /// The rows of all statements, `None` for NULL.
    pub rows: Vec<Vec<Option<String>>>,
}

/// An error of the server, or of the connection (SQLSTATE 08000).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The SQLSTATE.
    pub state: String,
    /// The message.
    pub message: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.state, self.message)
    }
}

impl std::error::Error for Failure {}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(db) => Failure { state: db.code().code().to_owned(), message: db.message().to_owned() },
            None => Failure { state: "08000".to_owned(), message: error.to_string() },
        }
    }
}

/// A connection.
pub struct Client {
    runtime: tokio::runtime::Runtime,
    client: tokio_postgres::Client,
}

impl Client {
    /// Connects over the server's Unix socket.
    pub fn connect(server: &Server, database: &str, user: &str) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|e| Failure { state: "08000".to_owned(), message: e.to_string() })?;
        let client = runtime.block_on(async {
            let mut config = tokio_postgres::Config::new();
            config.host_path(server.socket_directory()).port(server.port()).dbname(database).user(user);
            let (client, connection) = config.connect(NoTls).await?;
            tokio::spawn(connection);
            Ok::<_, tokio_postgres::Error>(client)
        })?;
        Ok(Self { runtime, client })
    }

    /// Runs one or more statements by the simple protocol.
    pub fn query(&mut self, sql: &str) -> Result<Answer, Failure> {
        let messages = self.runtime.block_on(self.client.simple_query(sql))?;
        let mut rows = Vec::new();
        for message in messages {
            if let SimpleQueryMessage::Row(row) = message {
                // A damaged text need not be UTF-8.
                let value = |i| match row.try_get(i) {
                    Ok(value) => value.map(str::to_owned),
                    Err(_) => Some("\u{FFFD}".to_owned()),
                };
                rows.push((0..row.len()).map(value).collect());
            }
        }
        Ok(Answer { columns: Vec::new(), rows })
    }

    /// Parses one statement by the extended protocol and tells its columns, without running it.
    pub fn describe(&mut self, sql: &str) -> Result<Vec<Column>, Failure> {
        let statement = self.runtime.block_on(self.client.prepare(sql))?;
        let column = |c: &tokio_postgres::Column| Column {
            name: c.name().to_owned(),
            type_oid: c.type_().oid(),
            typmod: c.type_modifier(),
        };
        Ok(statement.columns().iter().map(column).collect())
    }

    /// The whole answer of one statement: its columns by the extended protocol, its rows by the simple one.
    pub fn ask(&mut self, sql: &str) -> Result<Answer, Failure> {
        let columns = self.describe(sql)?;
        Ok(Answer { columns, ..self.query(sql)? })
    }
}
