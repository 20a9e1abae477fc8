//! The embedded engine.

use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use stegodon_server::{Cluster, Format, Outcome, OutputColumn, Rows, Run, Session};
use stegodon_types::{SqlError, SqlResult, TypeContext};
use tokio::sync::Mutex;

/// One database of a cluster, and a session in it.
pub struct Database {
    session: Mutex<Session>,
}

/// One column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its PostgreSQL type's OID.
    pub type_oid: u32,
}

impl Database {
    /// Opens a data directory, and a session in one of its databases as a role, without a password: who can read the files
    /// can read the rows.
    pub fn open(directory: impl AsRef<Path>, database: &str, user: &str) -> SqlResult<Self> {
        Self::connect(&Cluster::open(directory.as_ref(), &[])?, database, user)
    }

    /// A further session in an opened cluster.
    pub fn connect(cluster: &Arc<Cluster>, database: &str, user: &str) -> SqlResult<Self> {
        Ok(Self { session: Mutex::new(Session::connect(cluster, database, user, &[])?) })
    }

    /// Runs one or more statements and gives the rows of the last.
    pub async fn query(&self, sql: &str) -> SqlResult<QueryRows> {
        let mut session = self.session.lock().await;
        let mut last = QueryRows::empty();
        session.begin_statement()?;
        for raw in session.parse(sql)?.iter() {
            session.begin_statement()?;
            let run = Run::of(&mut session, Arc::clone(raw)).inspect_err(|_| session.failed());
            let started = match run {
                Ok(run) => run.start(&mut session, Vec::new()).await,
                Err(e) => Err(e),
            };
            let outcome = started.inspect_err(|_| session.failed())?;
            last = QueryRows::of(&session, outcome)?;
        }
        Ok(last)
    }
}

/// The rows of a query, as they come.
pub struct QueryRows {
    columns: Vec<Column>,
    schema: SchemaRef,
    tag: String,
    counted: bool,
    rows: Option<Rows>,
    writers: Vec<OutputColumn>,
    view: Option<Arc<dyn stegodon_types::TypeCatalog>>,
    format: Arc<stegodon_types::FormatSettings>,
    given: usize,
}

impl QueryRows {
    fn empty() -> Self {
        Self {
            columns: Vec::new(),
            schema: Arc::new(Schema::empty()),
            tag: String::new(),
            counted: false,
            rows: None,
            writers: Vec::new(),
            view: None,
            format: Arc::default(),
            given: 0,
        }
    }

    fn of(session: &Session, outcome: Outcome) -> SqlResult<Self> {
        match outcome {
            Outcome::Empty => Ok(Self::empty()),
            Outcome::Command(tag) => Ok(Self { tag, ..Self::empty() }),
            Outcome::Rows { rows, tag, counted } => {
                let writers = OutputColumn::all(session.view().as_ref(), &rows.columns, &[Format::Text])?;
                let columns: Vec<Column> =
                    rows.columns.iter().map(|c| Column { name: c.name.clone(), type_oid: c.type_oid.0 }).collect();
                let field = |c: &Column| Field::new(&c.name, edge_type(c.type_oid), true);
                let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
                let view: Arc<dyn stegodon_types::TypeCatalog> = Arc::clone(session.view()) as _;
                let (rows, view, format) = (Some(rows), Some(view), session.format());
                Ok(Self { columns, schema, tag, counted, rows, writers, view, format, given: 0 })
            }
        }
    }

    /// The columns; none for a statement without rows.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The Arrow schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The command tag, once all rows have been given: `SELECT 3`.
    pub fn tag(&self) -> String {
        if self.counted { format!("{} {}", self.tag, self.given) } else { self.tag.clone() }
    }

    /// The next rows; `None` at the end.
    pub async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        let Some(rows) = &mut self.rows else { return Ok(None) };
        let Some(batch) = rows.next(usize::MAX).await? else {
            self.rows = None;
            return Ok(None);
        };
        self.given += batch.num_rows();
        let columns = (0..self.columns.len()).map(|i| self.edge(&batch, i)).collect::<SqlResult<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options);
        batch.map(Some).map_err(SqlError::internal)
    }

    /// The next rows as text, as psql shows them; `None` at the end.
    pub async fn next_text(&mut self) -> SqlResult<Option<Vec<Vec<Option<String>>>>> {
        let Some(rows) = &mut self.rows else { return Ok(None) };
        let Some(batch) = rows.next(usize::MAX).await? else {
            self.rows = None;
            return Ok(None);
        };
        self.given += batch.num_rows();
        let view = self.view.as_deref().ok_or_else(|| SqlError::internal("rows without types"))?;
        let cx = TypeContext::new(view, &self.format);
        let cell = |row: usize, (column, writer): (usize, &OutputColumn)| {
            let Some(value) = writer.value(&batch, column, row) else { return Ok(None) };
            let mut text = Vec::new();
            writer.write(&cx, value, &mut text)?;
            Ok(Some(String::from_utf8_lossy(&text).into_owned()))
        };
        let row = |row| self.writers.iter().enumerate().map(|w| cell(row, w)).collect();
        (0..batch.num_rows()).map(row).collect::<SqlResult<_>>().map(Some)
    }

    /// A column as it leaves the library.
    fn edge(&self, batch: &RecordBatch, column: usize) -> SqlResult<ArrayRef> {
        let (Some(writer), Some(field)) = (self.writers.get(column), self.schema.fields().get(column)) else {
            return Err(SqlError::internal("a result has more columns than were described"));
        };
        let inside = batch.columns().get(column).ok_or_else(|| SqlError::internal("a result column is missing"))?;
        if field.data_type() == inside.data_type() {
            return Ok(Arc::clone(inside));
        }
        let view = self.view.as_deref().ok_or_else(|| SqlError::internal("rows without types"))?;
        let cx = TypeContext::new(view, &self.format);
        let mut builder = StringBuilder::with_capacity(inside.len(), inside.len() * 8);
        let mut text = Vec::new();
        for row in 0..inside.len() {
            match writer.value(batch, column, row) {
                None => builder.append_null(),
                Some(value) => {
                    text.clear();
                    writer.write(&cx, value, &mut text)?;
                    // SQL_ASCII may hold anything; what is no UTF-8 cannot leave as text.
                    builder.append_value(String::from_utf8_lossy(&text));
                }
            }
        }
        Ok(Arc::new(builder.finish()))
    }
}

/// The Arrow type in which a PostgreSQL type leaves the library.
fn edge_type(type_oid: u32) -> DataType {
    use stegodon_types::oids;
    match stegodon_types::Oid(type_oid) {
        oids::BOOL => DataType::Boolean,
        oids::INT2 => DataType::Int16,
        oids::INT4 => DataType::Int32,
        oids::INT8 => DataType::Int64,
        oids::FLOAT4 => DataType::Float32,
        oids::FLOAT8 => DataType::Float64,
        oids::OID => DataType::UInt32,
        _ => DataType::Utf8,
    }
}
