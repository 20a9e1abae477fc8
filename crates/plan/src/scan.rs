//! Paths of single relations: sequential and TID scans, functions, VALUES; and gathering them (`allpaths.c`).

use std::rc::Rc;

use stegodon_format::ids::{AttrNumber, Oid};
use stegodon_nodes::Expr;
use stegodon_nodes::query::RangeTableKind;
use stegodon_types::{SqlError, SqlResult};

use crate::clause::Clause;
use crate::cost::{self, Cost, clamp_rows};
use crate::exprs::{TID, as_var};
use crate::level::Level;
use crate::path::{Path, PathKind, PathList};
use crate::rel::Rel;

/// `ctid = …`: 387; `<` 2799, `>` 2800, `<=` 2801, `>=` 2802.
const TID_EQUAL: Oid = Oid(387);
const TID_ORDER: [Oid; 4] = [Oid(2799), Oid(2800), Oid(2801), Oid(2802)];

impl<'a> Level<'a> {
    /// Rows after restrictions.
    pub(crate) fn estimate_rows(&self, rel: &mut Rel<'a>) {
        rel.rows = clamp_rows(rel.tuples * self.clauses_selectivity(&rel.restrictions, None));
    }

    /// All paths of a plain table.
    pub(crate) fn add_table_paths(&mut self, rel: &mut Rel<'a>) -> SqlResult<()> {
        let path = self.seq_scan_path(rel, 0);
        rel.list.add(path);
        if rel.parallel {
            let workers =
                cost::parallel_workers(self.settings(), rel.parallel_workers, rel.parent.is_some(), rel.pages, -1.0);
            if workers > 0 {
                let path = self.seq_scan_path(rel, workers);
                rel.list.add_partial(path);
            }
        }
        self.add_index_paths(rel)?;
        self.add_tid_paths(rel);
        Ok(())
    }

    fn seq_scan_path(&self, rel: &Rel<'a>, workers: usize) -> Path<'a> {
        let qual = self.clauses_cost(&rel.restrictions);
        let s = self.settings();
        let (cost, rows) =
            cost::seq_scan(s, rel.seq_page_cost, rel.pages, rel.tuples, rel.rows, qual, rel.target.cost, workers);
        Path {
            kind: PathKind::SeqScan { rti: rel.rti },
            target: Rc::clone(&rel.target),
            rows,
            startup: cost.startup,
            total: cost.total,
            disabled: u32::from(!s.enable_seqscan),
            parallel_safe: rel.parallel,
            parallel_aware: workers > 0,
            workers,
            pathkeys: Vec::new(),
        }
    }

    fn is_ctid(&self, e: &Expr, rti: usize) -> bool {
        as_var(e) == Some((rti, AttrNumber(-1)))
    }

    /// `ctid op value` with the column on either side, the value from outside.
    fn tid_operand<'c>(&self, c: &'c Expr, rti: usize, operators: &[Oid]) -> Option<&'c Expr> {
        let Expr::Op(op) = c else { return None };
        let [left, right] = op.args.as_slice() else { return None };
        let outside = |e: &Expr| {
            crate::exprs::type_of(e) == TID
                && crate::exprs::relids_of(e).is_empty()
                && !self.is_volatile(e)
                && !crate::exprs::has_subplan(e)
        };
        if !operators.contains(&op.operator) {
            return None;
        }
        if self.is_ctid(left, rti) && outside(right) {
            Some(right)
        } else if self.is_ctid(right, rti) && outside(left) {
            Some(left)
        } else {
            None
        }
    }

    fn add_tid_paths(&self, rel: &mut Rel<'a>) {
        let s = self.settings();
        let rti = rel.rti;
        let is_array = |c: &Rc<Clause>| match &c.expr {
            Expr::ScalarArrayOp(a) => {
                a.any
                    && a.operator == TID_EQUAL
                    && self.is_ctid(&a.args[0], rti)
                    && crate::exprs::relids_of(&a.args[1]).is_empty()
                    && !self.is_volatile(&a.args[1])
                    && !crate::exprs::has_subplan(&a.args[1])
            }
            _ => false,
        };
        let exact = rel
            .restrictions
            .iter()
            .find(|c| self.tid_operand(&c.expr, rti, &[TID_EQUAL]).is_some() || is_array(c))
            .cloned();
        if let Some(c) = exact {
            let tuples = match &c.expr {
                Expr::ScalarArrayOp(a) => self.array_length(&a.args[1]),
                _ => 1.0,
            };
            // The ctid test itself is not repeated.
            let all = self.clauses_cost(&rel.restrictions);
            let mut startup = all.startup + c.cost.per_tuple;
            let per_tuple = s.cpu_tuple_cost + all.per_tuple - c.cost.per_tuple;
            let mut run = rel.random_page_cost * tuples + per_tuple * tuples;
            startup += rel.target.cost.startup;
            run += rel.target.cost.per_tuple * rel.rows;
            rel.list.add(Path {
                kind: PathKind::Tid { rti, clauses: vec![c] },
                target: Rc::clone(&rel.target),
                rows: rel.rows,
                startup,
                total: startup + run,
                disabled: u32::from(!s.enable_tidscan),
                parallel_safe: rel.parallel,
                parallel_aware: false,
                workers: 0,
                pathkeys: Vec::new(),
            });
        }
        let range: Vec<Rc<Clause>> =
            rel.restrictions.iter().filter(|c| self.tid_operand(&c.expr, rti, &TID_ORDER).is_some()).cloned().collect();
        if !range.is_empty() {
            let selectivity = self.clauses_selectivity(&range, None);
            let pages = (selectivity * rel.pages).ceil().max(1.0);
            let tuples = selectivity * rel.tuples;
            let sequential = pages - 1.0;
            let own = self.clauses_cost(&range);
            let all = self.clauses_cost(&rel.restrictions);
            let mut startup = all.startup + own.per_tuple;
            let per_tuple = s.cpu_tuple_cost + all.per_tuple - own.per_tuple;
            let mut run = rel.random_page_cost + rel.seq_page_cost * sequential + per_tuple * tuples;
            startup += rel.target.cost.startup;
            run += rel.target.cost.per_tuple * rel.rows;
            rel.list.add(Path {
                kind: PathKind::TidRange { rti, clauses: range },
                target: Rc::clone(&rel.target),
                rows: rel.rows,
                startup,
                total: startup + run,
                disabled: u32::from(!s.enable_tidscan),
                parallel_safe: rel.parallel,
                parallel_aware: false,
                workers: 0,
                pathkeys: Vec::new(),
            });
        }
    }

    /// The path of functions in FROM, or of VALUES.
    pub(crate) fn add_simple_path(&mut self, rel: &mut Rel<'a>) -> SqlResult<()> {
        let s = self.settings();
        let rte = self.rte(rel.rti)?;
        let qual = self.clauses_cost(&rel.restrictions);
        let (kind, startup, per_tuple) = match &rte.kind {
            RangeTableKind::Function { functions, .. } => {
                let mut c = crate::path::QualCost::default();
                for f in functions {
                    c += self.expr_cost(&f.call);
                }
                (PathKind::Function { rti: rel.rti }, c.startup + c.per_tuple, s.cpu_tuple_cost)
            }
            RangeTableKind::Values { .. } => {
                (PathKind::Values { rti: rel.rti }, 0.0, s.cpu_operator_cost + s.cpu_tuple_cost)
            }
            RangeTableKind::Cte { name, .. } => {
                let Some(cte) = self.ctes.iter().find(|c| c.name == *name) else {
                    return Err(SqlError::unsupported(format!("the WITH query \"{name}\" here")));
                };
                let kind = PathKind::Cte { rti: rel.rti, subplan: cte.subplan, name: name.clone() };
                (kind, 0.0, 2.0 * s.cpu_tuple_cost)
            }
            RangeTableKind::Result => (PathKind::Result { child: None, filter: Vec::new() }, 0.0, s.cpu_tuple_cost),
            _ => return Err(SqlError::internal("not a simple relation")),
        };
        let startup = startup + qual.startup + rel.target.cost.startup;
        let total = startup + (per_tuple + qual.per_tuple) * rel.tuples + rel.target.cost.per_tuple * rel.rows;
        rel.list.add(Path {
            kind,
            target: Rc::clone(&rel.target),
            rows: rel.rows,
            startup,
            total,
            disabled: 0,
            parallel_safe: rel.parallel,
            parallel_aware: false,
            workers: 0,
            pathkeys: Vec::new(),
        });
        Ok(())
    }

    /// `Gather` and `Gather Merge` over the partial paths (`generate_useful_gather_paths`).
    pub(crate) fn add_gather_paths(&mut self, list: &mut PathList<'a>, rows: Option<f64>) {
        let Some(cheapest) = list.partial.first().cloned() else { return };
        let s = self.settings();
        let total_rows =
            |p: &Path<'a>| rows.unwrap_or_else(|| clamp_rows(p.rows * cost::parallel_divisor(s, p.workers)));
        list.add(self.gather_path(&cheapest, total_rows(&cheapest)));
        for p in list.partial.clone() {
            if !p.pathkeys.is_empty() {
                list.add(self.gather_merge_path(&p, total_rows(&p)));
            }
        }
        // Sorting in the workers and merging gives the order that is asked for.
        let want = self.query_pathkeys.clone();
        if want.is_empty() {
            return;
        }
        for p in list.partial.clone() {
            let presorted = crate::path::common_prefix(&want, &p.pathkeys);
            if presorted == want.len() {
                continue;
            }
            // A full sort only of the cheapest; the others only where part of the order is there already.
            if !Rc::ptr_eq(&p, &cheapest) && (presorted == 0 || !s.enable_incremental_sort) {
                continue;
            }
            let keys_available = want.iter().all(|k| {
                self.classes.get(k.class).is_some_and(|c| {
                    c.members.iter().any(|m| {
                        p.target.exprs.iter().any(|(e, _)| crate::exprs::strip_relabel(e) == &m.key)
                            || matches!(m.key, Expr::Var(_)) && p.target.exprs.iter().any(|(e, _)| *e == m.key)
                    })
                })
            });
            if !keys_available {
                continue;
            }
            let sorted = if presorted == 0 || !s.enable_incremental_sort {
                self.sort_path(&p, want.clone(), -1.0)
            } else {
                self.incremental_sort_path(&p, want.clone(), presorted, -1.0)
            };
            list.add(self.gather_merge_path(&Rc::new(sorted), total_rows(&p)));
        }
    }

    pub(crate) fn gather_path(&self, child: &Rc<Path<'a>>, rows: f64) -> Path<'a> {
        let c = cost::gather(self.settings(), Cost { startup: child.startup, total: child.total }, rows);
        Path {
            kind: PathKind::Gather { child: Rc::clone(child), workers: child.workers },
            target: Rc::clone(&child.target),
            rows,
            startup: c.startup,
            total: c.total,
            disabled: child.disabled,
            parallel_safe: false,
            parallel_aware: false,
            workers: 0,
            pathkeys: Vec::new(),
        }
    }

    pub(crate) fn gather_merge_path(&self, child: &Rc<Path<'a>>, rows: f64) -> Path<'a> {
        let s = self.settings();
        let c = cost::gather_merge(s, Cost { startup: child.startup, total: child.total }, rows, child.workers);
        Path {
            kind: PathKind::GatherMerge { child: Rc::clone(child), workers: child.workers },
            target: Rc::clone(&child.target),
            rows,
            startup: c.startup,
            total: c.total,
            disabled: child.disabled + u32::from(!s.enable_gathermerge),
            parallel_safe: false,
            parallel_aware: false,
            workers: 0,
            pathkeys: child.pathkeys.clone(),
        }
    }

    pub(crate) fn sort_path(&self, child: &Rc<Path<'a>>, keys: Vec<crate::path::PathKey>, limit: f64) -> Path<'a> {
        let s = self.settings();
        let c = cost::sort(s, child.total, child.rows, child.target.width, limit);
        Path {
            kind: PathKind::Sort { child: Rc::clone(child), presorted: 0 },
            target: Rc::clone(&child.target),
            rows: child.rows,
            startup: c.startup,
            total: c.total,
            disabled: child.disabled + u32::from(!s.enable_sort),
            parallel_safe: child.parallel_safe,
            parallel_aware: false,
            workers: child.workers,
            pathkeys: keys,
        }
    }

    pub(crate) fn incremental_sort_path(
        &self,
        child: &Rc<Path<'a>>,
        keys: Vec<crate::path::PathKey>,
        presorted: usize,
        limit: f64,
    ) -> Path<'a> {
        let s = self.settings();
        let exprs: Vec<Expr> = keys
            .iter()
            .take(presorted)
            .filter_map(|k| self.classes.get(k.class)?.members.first().map(|m| m.expr.clone()))
            .collect();
        let groups = self.distinct_groups(&exprs, child.rows);
        let input = Cost { startup: child.startup, total: child.total };
        let c = cost::incremental_sort(s, input, child.rows, groups, child.target.width, limit);
        Path {
            kind: PathKind::Sort { child: Rc::clone(child), presorted },
            target: Rc::clone(&child.target),
            rows: child.rows,
            startup: c.startup,
            total: c.total,
            disabled: child.disabled + u32::from(!s.enable_sort),
            parallel_safe: child.parallel_safe,
            parallel_aware: false,
            workers: child.workers,
            pathkeys: keys,
        }
    }
}
