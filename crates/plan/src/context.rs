//! What a planning run may ask: catalogs, file sizes, settings, the evaluator, parameter values.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use stegodon_catalog::Catalog;
use stegodon_catalog::rows::Relation;
use stegodon_format::ids::Oid;
use stegodon_nodes::Expr;
use stegodon_types::{Datum, SqlError, SqlResult};

use crate::level::Level;
use crate::node::InitPlan;
use crate::path::Path;
use crate::settings::PlannerSettings;

/// Who knows how large relations are now.
pub trait Storage {
    /// How many pages the relation's main fork has.
    fn relation_blocks(&self, relation: Oid) -> SqlResult<u32>;
    /// The height of a btree: 0 where the root is a leaf; `None` where it cannot be told.
    fn btree_height(&self, index: Oid) -> SqlResult<Option<u32>>;
    /// The first (or last) non-null key of a btree's first column, as far as it can be found quickly. Estimates beyond a
    /// histogram's ends use it; `None` is always right.
    fn index_endpoint(&self, index: Oid, last: bool) -> SqlResult<Option<Datum>> {
        let _ = (index, last);
        Ok(None)
    }
}

/// The evaluator, as planning uses it. `stegodon_functions` is behind it.
pub trait Evaluate {
    /// Folds what depends on no row, no session and no time.
    fn fold(&self, expr: Expr) -> SqlResult<Expr>;
    /// The value of an expression without columns as it would be now, stable functions included: for estimates and for
    /// pruning when a plan starts. `None` where it cannot be told.
    fn value_now(&self, expr: &Expr) -> Option<Option<Datum>>;
    /// Fails where the statement was cancelled meanwhile: the search for joins may take long.
    fn check_cancel(&self) -> SqlResult<()> {
        Ok(())
    }
}

/// An evaluator that folds nothing: what planning must remain right with.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFolding;

impl Evaluate for NoFolding {
    fn fold(&self, expr: Expr) -> SqlResult<Expr> {
        Ok(expr)
    }

    fn value_now(&self, expr: &Expr) -> Option<Option<Datum>> {
        match expr {
            Expr::Const(c) => Some(c.value.clone()),
            _ => None,
        }
    }
}

/// What a planning run may ask.
pub struct PlanInput<'a> {
    /// The database's catalogs.
    pub catalog: &'a Catalog,
    /// The sizes of files.
    pub storage: &'a dyn Storage,
    /// The session's settings.
    pub settings: &'a PlannerSettings,
    /// The evaluator.
    pub evaluate: &'a dyn Evaluate,
    /// Values of `$1` …, where the plan is for these only (a custom plan).
    pub params: Option<&'a [Option<Datum>]>,
    /// Whether the statement's rows are fetched through a cursor: plan for the first rows.
    pub cursor: bool,
}

/// A subquery planned to be run apart from the row it is used in.
pub(crate) struct PlannedSubquery<'a> {
    /// Its level.
    pub level: Rc<Level<'a>>,
    /// The path chosen.
    pub path: Rc<Path<'a>>,
}

/// An init plan not yet laid out.
#[derive(Clone, Debug)]
pub(crate) struct PendingInitPlan {
    pub init: InitPlan,
    /// Cost to be charged once.
    pub cost: f64,
}

/// What all query levels of a statement share.
pub(crate) struct Context<'a> {
    pub input: PlanInput<'a>,
    pub subqueries: RefCell<Vec<PlannedSubquery<'a>>>,
    pub init_plans: RefCell<Vec<PendingInitPlan>>,
    pub param_count: Cell<u32>,
    pub used_params: Cell<bool>,
    pub depth: Cell<u32>,
    /// Whether what is planned now is run anew for each row of something: not by workers then.
    pub serial: Cell<bool>,
}

/// How deep subqueries may nest.
const MAX_DEPTH: u32 = 200;

impl<'a> Context<'a> {
    pub fn new(input: PlanInput<'a>) -> Self {
        Self {
            input,
            subqueries: RefCell::default(),
            init_plans: RefCell::default(),
            param_count: Cell::new(0),
            used_params: Cell::new(false),
            depth: Cell::new(0),
            serial: Cell::new(false),
        }
    }

    pub fn catalog(&self) -> &'a Catalog {
        self.input.catalog
    }

    pub fn settings(&self) -> &'a PlannerSettings {
        self.input.settings
    }

    pub fn relation(&self, oid: Oid) -> SqlResult<&'a Relation> {
        let found = self.input.catalog.relation(oid).map(|r| &**r);
        found.ok_or_else(|| SqlError::internal(format!("relation {oid} is not in the catalog")))
    }

    pub fn new_param(&self) -> u32 {
        let n = self.param_count.get();
        self.param_count.set(n + 1);
        n
    }

    pub fn enter(&self) -> SqlResult<()> {
        let depth = self.depth.get() + 1;
        if depth > MAX_DEPTH {
            return Err(SqlError::new(stegodon_types::SqlState::StatementTooComplex, "stack depth limit exceeded")
                .hint("The statement nests subqueries too deeply."));
        }
        self.depth.set(depth);
        Ok(())
    }

    pub fn leave(&self) {
        self.depth.set(self.depth.get().saturating_sub(1));
    }
}
