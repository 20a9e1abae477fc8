//! The cost of an index scan (`btcostestimate`, `genericcostestimate`, `cost_index`).

use std::rc::Rc;

use stegodon_nodes::Expr;
use stegodon_types::SqlResult;

use crate::clause::Clause;
use crate::cost::{self, clamp_probability, clamp_rows};
use crate::level::Level;
use crate::path::{IndexClause, IndexPath, Path, PathKey, PathKind};
use crate::rel::{IndexInfo, Rel};
use crate::selectivity::DEFAULT_RANGE;
use crate::stats::CORRELATION;

/// What an index scan's own part costs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexCost {
    pub startup: f64,
    pub total: f64,
    pub selectivity: f64,
    pub correlation: f64,
    pub pages: f64,
}

impl<'a> Level<'a> {
    fn with_predicate(&self, index: &IndexInfo, quals: &[Expr]) -> Vec<Expr> {
        let mut out: Vec<Expr> =
            index.predicate.iter().filter(|p| !crate::implication::implied(self, p, quals)).cloned().collect();
        out.extend_from_slice(quals);
        out
    }

    fn other_operand_cost(&self, e: &Expr) -> f64 {
        let other = match e {
            Expr::Op(op) => op.args.get(1),
            Expr::ScalarArrayOp(s) => s.args.get(1),
            Expr::RowCompare(r) => {
                let costs = r.right.iter().map(|x| self.expr_cost(x));
                return costs.map(|c| c.startup + c.per_tuple).sum();
            }
            _ => None,
        };
        other.map_or(0.0, |x| {
            let c = self.expr_cost(x);
            c.startup + c.per_tuple
        })
    }

    fn correlation(&self, index: &IndexInfo, rel: &Rel<'a>) -> f64 {
        let v = self.examine_index_column(index, rel, 0);
        let Some(mut c) = v.slot(CORRELATION).and_then(|s| s.numbers.first()).map(|n| f64::from(*n)) else {
            return 0.0;
        };
        if index.descending.first() == Some(&true) {
            c = -c;
        }
        if index.key_count > 1 { c * 0.75 } else { c }
    }

    /// What descending and walking a btree costs.
    pub(crate) fn btree_cost(&self, rel: &Rel<'a>, index: &IndexInfo, clauses: &[IndexClause]) -> IndexCost {
        let s = self.settings();
        let mut bound: Vec<Expr> = Vec::new();
        let mut skip: Vec<Expr> = Vec::new();
        let mut column = 0;
        let (mut equal_here, mut found_array, mut found_row, mut found_null) = (false, false, false, false);
        let mut scans = 1.0;
        'clauses: for c in clauses {
            if column < c.column {
                let scans_before = scans;
                // Columns without `=` before this one are skipped over, value by value.
                if found_row {
                    break;
                }
                if equal_here {
                    column += 1;
                    skip.clear();
                }
                equal_here = false;
                while column < c.column {
                    found_array = true;
                    let v = self.examine_index_column(index, rel, column);
                    let (mut distinct, is_default) = self.distinct(&v);
                    if is_default {
                        scans = scans_before;
                        break;
                    }
                    if !skip.is_empty() {
                        let part = self.exprs_selectivity(&self.with_predicate(index, &skip));
                        if part < DEFAULT_RANGE {
                            scans = scans_before;
                            break;
                        }
                        distinct = (distinct * part).round_ties_even().max(1.0);
                    } else {
                        distinct += 1.0;
                    }
                    scans *= distinct;
                    if index.pages < scans {
                        scans = scans_before;
                        break;
                    }
                    column += 1;
                    skip.clear();
                }
                if column != c.column {
                    break 'clauses;
                }
            }
            for (qual, strategy) in &c.quals {
                match qual {
                    Expr::RowCompare(_) => found_row = true,
                    Expr::ScalarArrayOp(a) => {
                        let [_, array] = &*a.args;
                        let n = self.array_length(array);
                        found_array = true;
                        if n > 1.0 {
                            scans *= n;
                        }
                    }
                    Expr::NullTest(t) if t.is_null => {
                        found_null = true;
                        equal_here = true;
                    }
                    _ => {}
                }
                if *strategy == 3 {
                    equal_here = true;
                }
                bound.push(qual.clone());
                if !equal_here && !found_row && column + 1 < index.key_count {
                    skip.push(qual.clone());
                }
            }
        }
        let one_row = index.unique && column + 1 == index.key_count && equal_here && !found_array && !found_null;
        let tuples = if one_row {
            1.0
        } else {
            let n = self.exprs_selectivity(&self.with_predicate(index, &bound)) * rel.tuples;
            scans = scans.min((index.pages * 0.333_333_3).ceil()).max(1.0);
            (n / scans).round_ties_even()
        };
        let mut out = self.generic_cost(rel, index, clauses, tuples, scans);
        if index.tuples > 1.0 {
            let descent = (index.tuples.ln() / 2f64.ln()).ceil() * s.cpu_operator_cost;
            out.startup += descent;
            out.total += scans * descent;
        }
        let descent = f64::from(index.height + 1) * 50.0 * s.cpu_operator_cost;
        out.startup += descent;
        out.total += scans * descent;
        out.correlation = self.correlation(index, rel);
        out
    }

    fn generic_cost(
        &self,
        rel: &Rel<'a>,
        index: &IndexInfo,
        clauses: &[IndexClause],
        tuples: f64,
        scans: f64,
    ) -> IndexCost {
        let s = self.settings();
        let quals: Vec<Expr> = clauses.iter().flat_map(|c| c.quals.iter().map(|q| q.0.clone())).collect();
        let selectivity = self.exprs_selectivity(&self.with_predicate(index, &quals));
        let mut tuples = if tuples <= 0.0 { (selectivity * rel.tuples / scans).round_ties_even() } else { tuples };
        tuples = tuples.min(index.tuples).max(1.0);
        let pages =
            if index.pages > 1.0 && index.tuples > 1.0 { (tuples * index.pages / index.tuples).ceil() } else { 1.0 };
        let mut total = if scans > 1.0 {
            let fetched = cost::pages_fetched(s, pages * scans, index.pages, index.pages, self.total_table_pages);
            fetched * index.random_page_cost
        } else {
            pages * index.random_page_cost
        };
        let arguments: f64 = quals.iter().map(|q| self.other_operand_cost(q)).sum();
        let operators = s.cpu_operator_cost * quals.len() as f64;
        total += arguments;
        total += tuples * scans * (s.cpu_index_tuple_cost + operators);
        IndexCost { startup: arguments, total, selectivity, correlation: 0.0, pages }
    }

    /// An index path, or `None` for a parallel one that is not worth a worker.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn index_path(
        &self,
        rel: &Rel<'a>,
        index: &Rc<IndexInfo>,
        clauses: &Rc<[IndexClause]>,
        pathkeys: Vec<PathKey>,
        backward: bool,
        index_only: bool,
        parallel: bool,
    ) -> SqlResult<Option<Path<'a>>> {
        let s = self.settings();
        let own = self.btree_cost(rel, index, clauses);
        let mut run = own.total - own.startup;
        let mut startup = own.startup;
        let fetched_tuples = clamp_rows(own.selectivity * rel.tuples);
        let mut pages = cost::pages_fetched(s, fetched_tuples, rel.pages, index.pages, self.total_table_pages);
        if index_only {
            pages = (pages * (1.0 - rel.all_visible)).ceil();
        }
        let mut heap_pages = pages;
        let most = pages * rel.random_page_cost;
        let mut least_pages = (own.selectivity * rel.pages).ceil();
        if index_only {
            least_pages = (least_pages * (1.0 - rel.all_visible)).ceil();
        }
        let least = if least_pages > 0.0 {
            rel.random_page_cost + if least_pages > 1.0 { (least_pages - 1.0) * rel.seq_page_cost } else { 0.0 }
        } else {
            0.0
        };
        let mut workers = 0;
        if parallel {
            if index_only {
                heap_pages = -1.0;
            }
            workers = cost::parallel_workers(s, rel.parallel_workers, rel.parent.is_some(), heap_pages, own.pages);
            if workers == 0 {
                return Ok(None);
            }
        }
        run += most + own.correlation * own.correlation * (least - most);
        let left_over: Vec<&Rc<Clause>> =
            index.restrictions.iter().filter(|c| !c.pseudoconstant && !covered(clauses, c)).collect();
        let qual = self.clauses_cost(left_over);
        startup += qual.startup;
        let mut cpu = (s.cpu_tuple_cost + qual.per_tuple) * fetched_tuples;
        startup += rel.target.cost.startup;
        cpu += rel.target.cost.per_tuple * rel.rows;
        let mut rows = rel.rows;
        if workers > 0 {
            let d = cost::parallel_divisor(s, workers);
            rows = clamp_rows(rows / d);
            cpu /= d;
        }
        run += cpu;
        Ok(Some(Path {
            kind: PathKind::Index(Rc::new(IndexPath {
                rti: rel.rti,
                index: Rc::clone(index),
                clauses: Rc::clone(clauses),
                backward,
                index_only,
                index_total: own.total,
                selectivity: clamp_probability(own.selectivity),
            })),
            target: Rc::clone(&rel.target),
            rows,
            startup,
            total: startup + run,
            disabled: u32::from(!s.enable_indexscan),
            parallel_safe: rel.parallel,
            parallel_aware: parallel,
            workers,
            pathkeys,
        }))
    }
}

/// Whether index clauses already enforce a restriction.
pub(crate) fn covered(clauses: &[IndexClause], c: &Rc<Clause>) -> bool {
    clauses.iter().any(|i| !i.lossy && (Rc::ptr_eq(&i.clause, c) || i.clause.expr == c.expr))
}
