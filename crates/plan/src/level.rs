//! One query level while it is planned: its range table, relations, clauses and equivalence classes.

use std::rc::Rc;

use stegodon_catalog::Catalog;
use stegodon_format::ids::Oid;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::*;
use stegodon_nodes::query::{Query, RangeTableEntry};
use stegodon_types::{Datum, SqlError, SqlResult};

use crate::clause::{Clause, make_clause};
use crate::context::Context;
use crate::equivalence::Classes;
use crate::exprs::{self, type_of, typmod_of};
use crate::path::{PathKind, QualCost};
use crate::rel::{Rel, Target};
use crate::relsize::type_width;
use crate::settings::PlannerSettings;

/// One query level.
pub struct Level<'a> {
    pub(crate) cx: Rc<Context<'a>>,
    pub(crate) query: Query,
    /// Base relations by range table index; entry 0 is unused.
    pub(crate) rels: Vec<Option<Rel<'a>>>,
    pub(crate) classes: Classes,
    /// 0: all rows; below 1: that part; else that many rows.
    pub(crate) tuple_fraction: f64,
    /// The most rows a sort need return, -1 for all.
    pub(crate) limit_tuples: f64,
    /// Pages of all tables of the level.
    pub(crate) total_table_pages: f64,
    /// The order that the paths below the upper ones are asked for.
    pub(crate) query_pathkeys: Vec<crate::path::PathKey>,
    /// Paths of subqueries in FROM, by range table index.
    pub(crate) subqueries: std::collections::HashMap<usize, (Rc<Level<'a>>, crate::path::PathList<'a>)>,
    /// Planned CTEs by name: subplan index, rows, width, costs.
    pub(crate) ctes: Vec<CtePlan>,
    /// What planning this level's WITH queries costs.
    pub(crate) cte_cost: f64,
    /// Init plans that belong to this level.
    pub(crate) init_plans: Vec<usize>,
    /// Whether anything in the query forbids workers altogether.
    pub(crate) parallel_ok: bool,
    /// How many domains of equivalence classes were made.
    pub(crate) domains: usize,
    /// LATERAL items by range table index: the executor slots they read, and what of this level fills each.
    pub(crate) lateral: std::collections::BTreeMap<usize, Vec<(u32, Expr)>>,
    /// Who reads each column above its scan.
    pub(crate) needed: std::collections::HashMap<(usize, stegodon_format::ids::AttrNumber), Needed>,
}

/// Who reads a column above its relation's scan.
#[derive(Clone, Debug)]
pub(crate) struct Needed {
    /// The relations that must be joined before no join clause reads it any more.
    pub at: crate::relids::Relids,
    /// Whether the result reads it.
    pub finally: bool,
    pub expr: Expr,
}

/// A planned CTE.
#[derive(Clone, Debug)]
pub(crate) struct CtePlan {
    pub name: String,
    pub subplan: usize,
    pub rows: f64,
}

impl<'a> Level<'a> {
    pub(crate) fn catalog(&self) -> &'a Catalog {
        self.cx.catalog()
    }

    pub(crate) fn settings(&self) -> &'a PlannerSettings {
        self.cx.settings()
    }

    pub(crate) fn rte(&self, rti: usize) -> SqlResult<&RangeTableEntry> {
        let found = rti.checked_sub(1).and_then(|i| self.query.range_table.get(i));
        found.ok_or_else(|| SqlError::internal(format!("range table entry {rti} is missing")))
    }

    pub(crate) fn rel(&self, rti: usize) -> SqlResult<&Rel<'a>> {
        let found = self.rels.get(rti).and_then(Option::as_ref);
        found.ok_or_else(|| SqlError::internal(format!("relation {rti} is not planned")))
    }

    pub(crate) fn rel_mut(&mut self, rti: usize) -> SqlResult<&mut Rel<'a>> {
        let found = self.rels.get_mut(rti).and_then(Option::as_mut);
        found.ok_or_else(|| SqlError::internal(format!("relation {rti} is not planned")))
    }

    pub(crate) fn put_rel(&mut self, rel: Rel<'a>) {
        if self.rels.len() <= rel.rti {
            self.rels.resize_with(rel.rti + 1, || None);
        }
        let rti = rel.rti;
        if let Some(slot) = self.rels.get_mut(rti) {
            *slot = Some(rel);
        }
    }

    pub(crate) fn clause(&self, expr: Expr) -> Rc<Clause> {
        let cost = self.expr_cost(&expr);
        let volatile = self.is_volatile(&expr);
        make_clause(self.catalog(), expr, cost, volatile)
    }

    fn function_cost(&self, function: Oid) -> f64 {
        let cost = self.catalog().proc(function).map_or(1.0, |p| f64::from(p.cost));
        cost * self.settings().cpu_operator_cost
    }

    /// What evaluating an expression costs (`cost_qual_eval`).
    pub(crate) fn expr_cost(&self, e: &Expr) -> QualCost {
        let mut cost = QualCost::default();
        self.add_cost(e, &mut cost);
        cost
    }

    fn add_cost(&self, e: &Expr, cost: &mut QualCost) {
        let op_cost = self.settings().cpu_operator_cost;
        match e {
            Expr::Aggref(_) | Expr::WindowFunc(_) | Expr::GroupingFunc(_) => return,
            Expr::Func(f) => cost.per_tuple += self.function_cost(f.function),
            Expr::Op(o) | Expr::Distinct(o) | Expr::NullIf(o) => cost.per_tuple += self.function_cost(o.function),
            Expr::ScalarArrayOp(s) => {
                let one = self.function_cost(s.function);
                let [_, array] = &*s.args;
                let length = self.array_length(array);
                match self.hash_function_of_array_op(s) {
                    Some(hash) => {
                        let hash = self.function_cost(hash);
                        cost.startup += length * hash;
                        cost.per_tuple += hash + one;
                    }
                    None => cost.per_tuple += one * length * 0.5,
                }
            }
            Expr::CoerceViaIo(_) => cost.per_tuple += 2.0 * op_cost,
            Expr::ArrayCoerce(a) => {
                let mut element = QualCost::default();
                self.add_cost(&a.element, &mut element);
                cost.startup += element.startup;
                if element.per_tuple > 0.0 {
                    cost.per_tuple += element.per_tuple * self.array_length(&a.arg);
                }
                self.add_cost(&a.arg, cost);
                return;
            }
            Expr::RowCompare(r) => {
                for &op in &r.operators {
                    let function = self.catalog().operator(op).map_or(Oid::INVALID, |o| o.function);
                    cost.per_tuple += self.function_cost(function);
                }
            }
            Expr::MinMax(_) | Expr::SqlValue(_) | Expr::CoerceToDomain(_) | Expr::NextValue(_) => {
                cost.per_tuple += op_cost;
            }
            Expr::SubPlan(s) => {
                *cost += self.subplan_cost(s);
                return;
            }
            _ => {}
        }
        exprs::for_each_child(e, &mut |c| self.add_cost(c, cost));
    }

    /// What asking a subquery costs (`cost_subplan`).
    fn subplan_cost(&self, s: &SubPlan) -> QualCost {
        let op_cost = self.settings().cpu_operator_cost;
        let mut cost = QualCost::default();
        if let Some(test) = &s.test {
            self.add_cost(test, &mut cost);
        }
        let subqueries = self.cx.subqueries.borrow();
        let Some(path) = subqueries.get(s.plan_id).map(|sub| &sub.path) else { return cost };
        if s.use_hash {
            cost.startup += path.total + op_cost * path.rows;
            return cost;
        }
        let run = path.total - path.startup;
        match s.kind {
            SubLinkKind::Exists => cost.per_tuple += run / crate::cost::clamp_rows(path.rows),
            SubLinkKind::Any | SubLinkKind::All => {
                cost.per_tuple += 0.5 * run + 0.5 * path.rows * op_cost;
            }
            _ => cost.per_tuple += run,
        }
        // What keeps its rows starts once, unless it reads the row.
        let keeps = matches!(
            path.kind,
            PathKind::Material { .. } | PathKind::Sort { .. } | PathKind::Cte { .. } | PathKind::Function { .. }
        );
        if s.correlation.is_empty() && keeps {
            cost.startup += path.startup;
        } else {
            cost.per_tuple += path.startup;
        }
        cost
    }

    /// The hash function that `= ANY (constant of at least nine elements)` is evaluated by.
    fn hash_function_of_array_op(&self, s: &ScalarArrayOp) -> Option<Oid> {
        let [_, array] = &*s.args;
        if !matches!(array, Expr::Const(Const { value: Some(_), .. })) || self.array_length(array) < 9.0 {
            return None;
        }
        let catalog = self.catalog();
        let op = if s.any { s.operator } else { catalog.operator(s.operator)?.negator };
        let row = catalog.operator(op)?;
        if !row.can_hash || row.left != row.right {
            return None;
        }
        let families = catalog.amops_of_operator(op);
        let family = families.iter().find(|a| a.access_method == crate::clause::HASH)?.family;
        catalog.family_proc(family, row.left, row.left, 1)
    }

    /// How many elements an array has, or is guessed to have (`estimate_array_length`).
    #[allow(
        clippy::self_only_used_in_recursion,
        clippy::only_used_in_recursion,
        reason = "an estimate of a level, as its neighbours are"
    )]
    pub(crate) fn array_length(&self, e: &Expr) -> f64 {
        match exprs::strip_relabel(e) {
            Expr::Const(Const { value: None, .. }) => 0.0,
            Expr::Const(Const { value: Some(Datum::Bytes(b)), .. }) => {
                crate::arrays::element_count(b).map_or(10.0, |n| n as f64)
            }
            Expr::Array(a) if !a.multidims => a.elements.len() as f64,
            Expr::ArrayCoerce(a) => self.array_length(&a.arg),
            _ => 10.0,
        }
    }

    /// Whether evaluating it twice may give two answers.
    pub(crate) fn is_volatile(&self, e: &Expr) -> bool {
        self.has_volatility(e, b'v')
    }

    /// Whether it may change between statements, or within one.
    pub(crate) fn is_mutable(&self, e: &Expr) -> bool {
        self.has_volatility(e, b's')
    }

    fn has_volatility(&self, e: &Expr, least: u8) -> bool {
        let function = |f: Oid| self.catalog().proc(f).is_none_or(|p| p.volatility >= least);
        exprs::any(e, &mut |x| match x {
            Expr::Func(f) => function(f.function),
            Expr::Op(o) | Expr::Distinct(o) | Expr::NullIf(o) => function(o.function),
            Expr::ScalarArrayOp(s) => function(s.function),
            Expr::SqlValue(_) | Expr::CoerceViaIo(_) => least == b's',
            Expr::NextValue(_) => true,
            Expr::SubLink(s) => s.query.targets.iter().any(|t| self.has_volatility(&t.expr, least)),
            _ => false,
        })
    }

    /// Whether workers may evaluate it.
    pub(crate) fn is_parallel_safe(&self, e: &Expr) -> bool {
        let function = |f: Oid| self.catalog().proc(f).is_some_and(|p| p.parallel == b's');
        !exprs::any(e, &mut |x| match x {
            Expr::Func(f) => !function(f.function),
            Expr::Op(o) | Expr::Distinct(o) | Expr::NullIf(o) => !function(o.function),
            Expr::ScalarArrayOp(s) => !function(s.function),
            Expr::Aggref(a) => !function(a.function),
            Expr::WindowFunc(_)
            | Expr::NextValue(_)
            | Expr::SubLink(_)
            | Expr::SubPlan(_)
            | Expr::CoerceToDomain(_) => true,
            // A value that an init plan sets is not handed to workers.
            Expr::Param(p) => p.kind == ParamKind::Exec,
            _ => false,
        })
    }

    /// The width of an expression's value.
    pub(crate) fn expr_width(&self, e: &Expr) -> i32 {
        if let Some((rti, attno)) = exprs::as_var(e)
            && let Ok(rel) = self.rel(rti)
            && let Some(w) = rel.widths.get(&attno)
        {
            return *w;
        }
        type_width(self.catalog(), type_of(e), typmod_of(e))
    }

    /// Fills in a target's cost and width.
    pub(crate) fn costed(&self, mut target: Target) -> Rc<Target> {
        target.cost = QualCost::default();
        let mut width = 0i64;
        for (e, _) in &target.exprs {
            width += i64::from(self.expr_width(e));
            if !matches!(e, Expr::Var(_)) {
                target.cost += self.expr_cost(e);
            }
        }
        target.width = width.clamp(0, i64::from(i32::MAX)) as i32;
        Rc::new(target)
    }

    /// The summed cost of clauses.
    pub(crate) fn clauses_cost<'c>(&self, clauses: impl IntoIterator<Item = &'c Rc<Clause>>) -> QualCost {
        let mut out = QualCost::default();
        for c in clauses {
            if c.pseudoconstant {
                out.startup += c.cost.startup + c.cost.per_tuple;
            } else {
                out += c.cost;
            }
        }
        out
    }

    /// The value of an expression for estimates.
    pub(crate) fn estimate_value(&self, e: &Expr) -> Option<Option<Datum>> {
        match e {
            Expr::Const(c) => Some(c.value.clone()),
            _ => {
                let unknown = |x: &Expr| {
                    matches!(
                        x,
                        Expr::Var(_)
                            | Expr::Param(_)
                            | Expr::Aggref(_)
                            | Expr::SubPlan(_)
                            | Expr::SubLink(_)
                            | Expr::CaseTest(_)
                    )
                };
                if exprs::any(e, &mut |x| unknown(x)) || self.is_volatile(e) {
                    return None;
                }
                self.cx.input.evaluate.value_now(e)
            }
        }
    }
}
