//! The state of one execution: what expressions and operators ask while they run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion_execution::TaskContext;
use parking_lot::{Mutex, RwLock};
use stegodon_access::Storage;
use stegodon_buffer::{DamagePolicy, PageWarning, StreamOptions};
use stegodon_catalog::{Catalog, CatalogView};
use stegodon_functions::{EvalContext, Session, SubPlans};
use stegodon_plan::node::PlannedStatement;
use stegodon_types::{Datum, FormatSettings, SqlError, SqlResult, SqlState, TypeContext};

use crate::counters::Counters;
use crate::initplan::InitPlans;
use crate::memory;

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
    /// What scans do about damaged pages.
    pub damage: DamagePolicy,
    /// Where they say what they did about them.
    pub warnings: Arc<Mutex<Vec<PageWarning>>>,
    /// Counts each node's rows and time (`EXPLAIN ANALYZE`).
    pub instrument: bool,
    /// How many plan nodes there are to count.
    pub nodes: usize,
}

/// Everything one execution of a plan reads besides its input: parameters, snapshot, settings, cancel flag, memory
/// limits. Plans hold it; nothing else does.
///
/// A plan that runs anew for every row of another ([`crate::rescan`]) has an execution of its own beside that one: the same
/// statement, options and counters, other slots.
pub struct Execution {
    options: Arc<ExecutionOptions>,
    pub(crate) statement: Arc<PlannedStatement>,
    /// What was counted, by plan node.
    pub counters: Arc<Counters>,
    /// What DataFusion's operators ask: memory, temporary files.
    pub(crate) context: Arc<TaskContext>,
    /// Executor slots: results of initplans, values of outer rows.
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
    /// The execution of a statement's root.
    pub(crate) fn new(statement: Arc<PlannedStatement>, options: ExecutionOptions) -> SqlResult<Self> {
        Ok(Self {
            counters: Arc::new(Counters::new(options.nodes)),
            context: memory::context()?,
            slots: RwLock::new(vec![None; statement.exec_param_count].into()),
            init_plans: InitPlans::new(&statement, options.view.as_ref())?,
            options: Arc::new(options),
            statement,
        })
    }

    /// An execution beside this one, with the values that its slots have now.
    pub(crate) fn beside(&self) -> Self {
        Self {
            options: Arc::clone(&self.options),
            statement: Arc::clone(&self.statement),
            counters: Arc::clone(&self.counters),
            context: Arc::clone(&self.context),
            // Which initplans have run is looked at first: a slot filled in between is filled once more.
            init_plans: self.init_plans.beside(),
            slots: RwLock::new(Arc::clone(&self.slots.read())),
        }
    }

    /// The catalogs.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.view.catalog
    }

    /// Runs `f` with what expressions ask.
    pub(crate) fn with_context<R>(&self, f: impl FnOnce(&EvalContext<'_>) -> R) -> R {
        self.with_subplans(self, f)
    }

    /// Runs `f` with what expressions ask, their subqueries being answered by `subplans`.
    pub(crate) fn with_subplans<R>(&self, subplans: &dyn SubPlans, f: impl FnOnce(&EvalContext<'_>) -> R) -> R {
        let slots = Arc::clone(&self.slots.read());
        f(&EvalContext {
            catalog: self.catalog(),
            types: self.view.as_ref(),
            settings: self.format.as_ref(),
            session: self.session.as_ref(),
            params: &self.params,
            exec_params: &slots,
            subplans: Some(subplans),
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
