//! A portal: a statement with its parameters, from which rows are fetched, all at once or some at a time.

use std::sync::Arc;

use arrow_array::RecordBatch;
use stegodon_buffer::{DamagePolicy, StreamOptions};
use stegodon_exec::{ExecutionOptions, Running};
use stegodon_plan::node::{PlannedStatement, ResultColumn};
use stegodon_types::{Datum, SqlError, SqlResult};

use crate::encode::Format;
use crate::planning;
use crate::session::{Prepared, Session};

/// A statement ready to run, or running.
pub struct Portal {
    /// What it was bound from; `None` for a cursor.
    pub(crate) prepared: Option<Arc<Prepared>>,
    pub(crate) params: Vec<Option<Datum>>,
    /// The formats its columns are sent in.
    pub(crate) formats: Vec<Format>,
    pub(crate) rows: Option<Rows>,
    /// Declared by DECLARE.
    cursor: bool,
    /// All its rows have been given.
    pub(crate) ended: bool,
    /// A fetch has failed: there is nothing to go on with, even where the transaction goes back to a savepoint.
    pub(crate) failed: bool,
    /// How many savepoints there were when it was made.
    pub(crate) depth: usize,
}

impl Portal {
    /// A portal that has not run.
    pub(crate) fn new(prepared: Arc<Prepared>, params: Vec<Option<Datum>>, formats: Vec<Format>) -> Self {
        Self {
            prepared: Some(prepared),
            params,
            formats,
            rows: None,
            cursor: false,
            ended: false,
            failed: false,
            depth: 0,
        }
    }

    /// A cursor over running rows.
    pub(crate) fn cursor(rows: Rows, depth: usize) -> Self {
        let (params, formats) = (Vec::new(), Vec::new());
        Self { prepared: None, params, formats, rows: Some(rows), cursor: true, ended: false, failed: false, depth }
    }

    /// Whether it was declared by DECLARE.
    pub(crate) fn is_cursor(&self) -> bool {
        self.cursor
    }
}

/// The rows of a running query, to be taken in any number at a time.
pub struct Rows {
    /// The columns.
    pub columns: Arc<[ResultColumn]>,
    running: Source,
    /// Whether it is expected to keep a processor busy.
    is_long: bool,
    /// What was fetched and not yet taken.
    batch: Option<RecordBatch>,
    /// Rows of `batch` taken already.
    taken: usize,
}

enum Source {
    /// `None` while another thread has it, and after that thread was not waited for.
    Running(Option<Box<Running>>),
    /// Rows that are there already: EXPLAIN's, SHOW's.
    Ready(std::vec::IntoIter<RecordBatch>),
}

impl Rows {
    /// Starts a planned query.
    pub(crate) fn of_plan(
        session: &Session,
        planned: &Arc<PlannedStatement>,
        columns: Arc<[ResultColumn]>,
        params: Vec<Option<Datum>>,
        instrument: bool,
    ) -> SqlResult<Self> {
        let running = stegodon_exec::start(planned, options(session, planned, params, instrument))?;
        let is_long = planned.root.estimate.total_cost > LONG_COST;
        let running = Source::Running(Some(Box::new(running)));
        Ok(Self { columns, running, is_long, batch: None, taken: 0 })
    }

    /// Rows that are there already.
    pub(crate) fn ready(columns: Vec<ResultColumn>, batches: Vec<RecordBatch>) -> Self {
        Self {
            columns: columns.into(),
            running: Source::Ready(batches.into_iter()),
            is_long: false,
            batch: None,
            taken: 0,
        }
    }

    /// The next rows, at most `max` of them. `None` at the end.
    pub async fn next(&mut self, max: usize) -> SqlResult<Option<RecordBatch>> {
        loop {
            if let Some(batch) = &self.batch {
                let left = batch.num_rows() - self.taken;
                if left > 0 {
                    let rows = left.min(max);
                    let slice = batch.slice(self.taken, rows);
                    self.taken += rows;
                    return Ok(Some(slice));
                }
            }
            self.taken = 0;
            self.batch = match &mut self.running {
                Source::Running(place) => {
                    let running = place.take().ok_or_else(|| SqlError::internal("a query that was left alone"))?;
                    let (running, batch) = if self.is_long { elsewhere(running).await? } else { here(running).await };
                    *place = Some(running);
                    batch?
                }
                Source::Ready(batches) => batches.next(),
            };
            if self.batch.is_none() {
                return Ok(None);
            }
        }
    }

    /// The running execution, for its counters.
    pub(crate) fn running(&self) -> Option<&Running> {
        match &self.running {
            Source::Running(running) => running.as_deref(),
            Source::Ready(_) => None,
        }
    }
}

/// From which estimated cost on a query has a thread of its own while it runs (DESIGN D6): about a millisecond's work. Sessions
/// share the few threads that serve sockets; what keeps one of those busy keeps others waiting.
const LONG_COST: f64 = 500.0;

type Batch = SqlResult<Option<RecordBatch>>;

async fn here(mut running: Box<Running>) -> (Box<Running>, Batch) {
    let batch = running.next().await;
    (running, batch)
}

async fn elsewhere(running: Box<Running>) -> SqlResult<(Box<Running>, Batch)> {
    let runtime = tokio::runtime::Handle::current();
    let thread = tokio::task::spawn_blocking(move || runtime.block_on(here(running)));
    thread.await.map_err(|e| SqlError::internal(format_args!("a query's thread ended: {e}")))
}

fn options(
    session: &Session,
    planned: &PlannedStatement,
    params: Vec<Option<Datum>>,
    instrument: bool,
) -> ExecutionOptions {
    let settings = session.settings.read();
    let work_mem_bytes = usize::try_from(settings.int("work_mem")).unwrap_or(4096) * 1024;
    let hash_mem_bytes = (work_mem_bytes as f64 * settings.real("hash_mem_multiplier").max(1.0)) as usize;
    let positive = |name| u32::try_from(settings.int(name)).unwrap_or(0);
    let stream = StreamOptions {
        effective_io_concurrency: positive("effective_io_concurrency"),
        io_combine_limit: positive("io_combine_limit").max(1),
        full: false,
    };
    let damage = DamagePolicy {
        zero_damaged_pages: settings.bool("zero_damaged_pages"),
        ignore_checksum_failure: settings.bool("ignore_checksum_failure"),
    };
    drop(settings);
    ExecutionOptions {
        storage: Arc::clone(session.cluster.storage()),
        view: Arc::clone(&session.view),
        format: session.format(),
        session: session.info(),
        params,
        cancel: Arc::clone(&session.cancel),
        work_mem_bytes,
        hash_mem_bytes,
        stream,
        damage,
        warnings: Arc::clone(&session.page_warnings),
        instrument,
        nodes: planning::node_count(planned),
    }
}
