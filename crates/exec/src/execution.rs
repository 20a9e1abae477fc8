//! The state of one execution: what expressions and operators ask while they run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;
use stegodon_access::Storage;
use stegodon_buffer::StreamOptions;
use stegodon_catalog::{Catalog, CatalogView};
use stegodon_functions::{EvalContext, Session};
use stegodon_types::{Datum, FormatSettings, SqlError, SqlResult, SqlState, TypeContext};

use crate::counters::Counters;
use crate::initplan::InitPlans;

/// What an execution is started with.
pub struct ExecutionOptions {
    /// The cluster's files.
    pub storage: Arc<Storage>,
    /// The catalogs, seen along the session's search path.
    pub view: Arc<CatalogView>,
    /// How values are read and written.
    pub format: Arc<FormatSettings>,
    /// What functions ask of the session.
    pub session: Arc<dyn Session>,
    /// `$1`, `$2`, ….
    pub params: Vec<Option<Datum>>,
    /// Set by a cancel request or a timeout; looked at between batches and pages.
    pub cancel: Arc<CancelFlag>,
    /// `work_mem`.
    pub work_mem_bytes: usize,
    /// `work_mem * hash_mem_multiplier`.
    pub hash_mem_bytes: usize,
    /// How scans read ahead.
    pub stream: StreamOptions,
    /// Counts each node's rows and time (`EXPLAIN ANALYZE`).
    pub instrument: bool,
    /// How many plan nodes there are to count.
    pub nodes: usize,
}

/// Everything one execution of a plan reads besides its input: parameters, snapshot, settings, cancel flag, memory
/// limits. Plans hold it; nothing else does.
pub struct Execution {
    options: ExecutionOptions,
    /// What was counted, by plan node.
    pub counters: Counters,
    /// Executor slots: results of initplans.
    slots: RwLock<Arc<[Option<Datum>]>>,
    /// How the slots are filled.
    pub(crate) init_plans: InitPlans,
}

impl std::ops::Deref for Execution {
    type Target = ExecutionOptions;

    fn deref(&self) -> &ExecutionOptions {
        &self.options
    }
}

/// A flag that stops an execution from outside.
#[derive(Debug, Default)]
pub struct CancelFlag {
    cancelled: AtomicBool,
    reason: RwLock<Option<SqlError>>,
}

impl CancelFlag {
    /// Asks the execution to stop with this error at its next look.
    pub fn cancel(&self, reason: SqlError) {
        self.reason.write().get_or_insert(reason);
        self.cancelled.store(true, Ordering::Release);
    }

    /// Whether it was asked to stop.
    pub fn check(&self) -> SqlResult<()> {
        if !self.cancelled.load(Ordering::Acquire) {
            return Ok(());
        }
        let user = || SqlError::new(SqlState::QueryCanceled, "canceling statement due to user request");
        Err(self.reason.read().clone().unwrap_or_else(user))
    }

    /// Makes it ready for the next execution.
    pub fn clear(&self) {
        *self.reason.write() = None;
        self.cancelled.store(false, Ordering::Release);
    }
}

impl Execution {
    pub(crate) fn new(options: ExecutionOptions, init_plans: InitPlans, slots: usize) -> Self {
        let counters = Counters::new(options.nodes);
        Self { options, counters, slots: RwLock::new(vec![None; slots].into()), init_plans }
    }

    /// The catalogs.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.view.catalog
    }

    /// Runs `f` with what expressions ask.
    pub(crate) fn with_context<R>(&self, f: impl FnOnce(&EvalContext<'_>) -> R) -> R {
        let slots = Arc::clone(&self.slots.read());
        f(&EvalContext {
            catalog: self.catalog(),
            types: self.view.as_ref(),
            settings: self.format.as_ref(),
            session: self.session.as_ref(),
            params: &self.params,
            exec_params: &slots,
            subplans: Some(self),
        })
    }

    /// What printing and comparing values asks.
    pub(crate) fn type_context(&self) -> TypeContext<'_> {
        TypeContext::new(self.view.as_ref(), self.format.as_ref())
    }

    /// Fills executor slots.
    pub(crate) fn set_slots(&self, values: impl IntoIterator<Item = (u32, Option<Datum>)>) -> SqlResult<()> {
        let mut slots = self.slots.write();
        let mut changed = slots.to_vec();
        for (slot, value) in values {
            let place = changed.get_mut(slot as usize);
            *place.ok_or_else(|| SqlError::internal(format_args!("a plan has no slot {slot}")))? = value;
        }
        *slots = changed.into();
        Ok(())
    }
}

impl std::fmt::Debug for Execution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Execution").finish_non_exhaustive()
    }
}
