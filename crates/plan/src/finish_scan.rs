//! Plan nodes of index, bitmap and TID scans.

use std::rc::Rc;

use stegodon_format::ids::AttrNumber;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::*;
use stegodon_types::{SqlError, SqlResult};

use crate::exprs;
use crate::finish::{Built, View};
use crate::implication::implied;
use crate::indexcost::covered;
use crate::node::*;
use crate::path::{Bitmap, IndexPath, Path, PathKind};

fn node(p: &Path<'_>, kind: PlanKind, targets: Vec<TargetEntry>, quals: Vec<Expr>) -> PlanNode {
    PlanNode {
        kind,
        id: 0,
        estimate: Estimate {
            startup_cost: p.startup,
            total_cost: p.total,
            rows: p.rows,
            width_bytes: p.target.width,
            disabled_nodes: p.disabled,
        },
        targets,
        quals,
        parallel_aware: p.parallel_aware,
        init_plans: Vec::new(),
    }
}

/// Lays out a scan path.
pub(crate) fn build<'a>(v: View<'_, 'a>, p: &Rc<Path<'a>>) -> SqlResult<Built> {
    let level = v.level;
    let exprs: Vec<Expr> = p.target.exprs.iter().map(|(e, _)| e.clone()).collect();
    let plain = |e: &Expr| v.shift(e);
    match &p.kind {
        PathKind::Index(i) => {
            let known: Vec<Expr> = i.clauses.iter().flat_map(|c| c.quals.iter().map(|q| q.0.clone())).collect();
            let left = i.index.restrictions.iter().filter(|c| {
                !c.pseudoconstant
                    && !covered(&i.clauses, c)
                    && (level.is_mutable(&c.expr) || !implied(level, &c.expr, &known))
            });
            let quals = v.ordered(left);
            let scan = index_scan(v, i, !p.pathkeys.is_empty());
            if i.index_only {
                let over = |e: &Expr| over_index(v, i, e);
                let targets = exprs
                    .iter()
                    .enumerate()
                    .map(|(n, e)| Ok(exprs::target(over(e)?, n + 1)))
                    .collect::<SqlResult<Vec<_>>>()?;
                let quals = quals.iter().map(over).collect::<SqlResult<Vec<_>>>()?;
                return Ok(Built { node: node(p, PlanKind::IndexOnlyScan(scan), targets, quals), exprs });
            }
            let targets = exprs.iter().enumerate().map(|(n, e)| exprs::target(plain(e), n + 1)).collect();
            let quals = quals.iter().map(plain).collect();
            Ok(Built { node: node(p, PlanKind::IndexScan(scan), targets, quals), exprs })
        }
        PathKind::BitmapHeap { rti, bitmap } => {
            let rel = level.rel(*rti)?;
            let (bitmap_node, recheck, index_quals) = bitmap_plan(v, bitmap)?;
            let left: Vec<_> = rel
                .restrictions
                .iter()
                .filter(|c| {
                    !c.pseudoconstant
                        && !index_quals.contains(&c.expr)
                        && (level.is_mutable(&c.expr) || !implied(level, &c.expr, &index_quals))
                })
                .collect();
            let quals = v.ordered(left);
            // What is tested on every row need not be rechecked.
            let recheck: Vec<Expr> = recheck.into_iter().filter(|e| !quals.contains(e)).map(|e| plain(&e)).collect();
            let targets = exprs.iter().enumerate().map(|(n, e)| exprs::target(plain(e), n + 1)).collect();
            let kind = PlanKind::BitmapHeapScan { relation: rti + v.offset, bitmap: Box::new(bitmap_node), recheck };
            Ok(Built { node: node(p, kind, targets, quals.iter().map(plain).collect()), exprs })
        }
        PathKind::Tid { rti, clauses } | PathKind::TidRange { rti, clauses } => {
            let rel = level.rel(*rti)?;
            let left = rel.restrictions.iter().filter(|c| !clauses.iter().any(|t| Rc::ptr_eq(t, c)));
            let quals: Vec<Expr> = v.ordered(left).iter().map(plain).collect();
            let targets = exprs.iter().enumerate().map(|(n, e)| exprs::target(plain(e), n + 1)).collect();
            let conditions = clauses.iter().map(|c| plain(&c.expr)).collect();
            let relation = rti + v.offset;
            let kind = match &p.kind {
                PathKind::Tid { .. } => PlanKind::TidScan { relation, conditions },
                _ => PlanKind::TidRangeScan { relation, conditions },
            };
            Ok(Built { node: node(p, kind, targets, quals), exprs })
        }
        _ => Err(SqlError::internal("not a scan")),
    }
}

fn index_scan(v: View<'_, '_>, i: &IndexPath, ordered: bool) -> IndexScan {
    let conditions = i
        .clauses
        .iter()
        .flat_map(|c| {
            c.quals.iter().map(|(e, strategy)| IndexCondition {
                clause: v.shift(e),
                column: AttrNumber(c.column as i16 + 1),
                strategy: *strategy,
            })
        })
        .collect();
    IndexScan {
        relation: i.rti + v.offset,
        index: i.index.oid,
        index_name: i.index.name.clone(),
        conditions,
        backward: i.backward,
        ordered,
        recheck: Vec::new(),
    }
}

/// An expression over the table's columns as one over the index's.
fn over_index(v: View<'_, '_>, i: &IndexPath, e: &Expr) -> SqlResult<Expr> {
    exprs::try_replaced(e, &mut |x| match x {
        Expr::Var(var) if var.source == VarSource::Relation(i.rti) => {
            let found = i.index.columns.iter().position(|c| *c == var.attno);
            let n = found.ok_or_else(|| SqlError::internal("a column is not in the index"))?;
            Ok(Some(Expr::Var(Var { source: VarSource::Index, attno: AttrNumber(n as i16 + 1), ..var.clone() })))
        }
        _ => Ok(None),
    })
    .map(|e| v.shift(&e))
}

/// The node, the original conditions, and the conditions the indexes are asked.
fn bitmap_plan(v: View<'_, '_>, b: &Bitmap) -> SqlResult<(PlanNode, Vec<Expr>, Vec<Expr>)> {
    let level = v.level;
    let cost = level.bitmap_cost(b);
    let make = |kind: PlanKind, total: f64, rows: f64| PlanNode {
        kind,
        id: 0,
        estimate: Estimate { startup_cost: 0.0, total_cost: total, rows, width_bytes: 0, disabled_nodes: 0 },
        targets: Vec::new(),
        quals: Vec::new(),
        parallel_aware: false,
        init_plans: Vec::new(),
    };
    match b {
        Bitmap::Index(i, _) => {
            let tuples = level.rel(i.rti)?.tuples;
            let rows = crate::cost::clamp_rows(i.selectivity * tuples);
            let mut original: Vec<Expr> = i.clauses.iter().map(|c| c.clause.expr.clone()).collect();
            let mut asked: Vec<Expr> = i.clauses.iter().flat_map(|c| c.quals.iter().map(|q| q.0.clone())).collect();
            for p in &i.index.predicate {
                if !implied(level, p, &original) {
                    original.push(p.clone());
                    asked.push(p.clone());
                }
            }
            Ok((make(PlanKind::BitmapIndexScan(index_scan(v, i, false)), i.index_total, rows), original, asked))
        }
        Bitmap::And(list, _) => {
            let (mut children, mut original, mut asked) = (Vec::new(), Vec::new(), Vec::new());
            for c in list {
                let (node, o, a) = bitmap_plan(v, c)?;
                children.push(node);
                for e in o {
                    if !original.contains(&e) {
                        original.push(e);
                    }
                }
                for e in a {
                    if !asked.contains(&e) {
                        asked.push(e);
                    }
                }
            }
            let tuples = bitmap_relation(b).and_then(|r| level.rel(r).ok()).map_or(0.0, |r| r.tuples);
            let rows = crate::cost::clamp_rows(cost.selectivity * tuples);
            let mut node = make(PlanKind::BitmapAnd { children }, cost.total, rows);
            node.estimate.startup_cost = cost.total;
            Ok((node, original, asked))
        }
        Bitmap::Or(list, _) => {
            let (mut children, mut original, mut asked) = (Vec::new(), Vec::new(), Vec::new());
            let mut always = false;
            for c in list {
                let (node, o, a) = bitmap_plan(v, c)?;
                children.push(node);
                always |= o.is_empty();
                original.push(exprs::and(o));
                asked.push(exprs::and(a));
            }
            let one = |mut list: Vec<Expr>| {
                let mut unique: Vec<Expr> = Vec::new();
                list.drain(..).for_each(|e| {
                    if !unique.contains(&e) {
                        unique.push(e);
                    }
                });
                if always { Vec::new() } else { vec![exprs::or(unique)] }
            };
            let tuples = bitmap_relation(b).and_then(|r| level.rel(r).ok()).map_or(0.0, |r| r.tuples);
            let rows = crate::cost::clamp_rows(cost.selectivity * tuples);
            let mut node = make(PlanKind::BitmapOr { children }, cost.total, rows);
            node.estimate.startup_cost = cost.total;
            Ok((node, one(original), one(asked)))
        }
    }
}

fn bitmap_relation(b: &Bitmap) -> Option<usize> {
    match b {
        Bitmap::Index(i, _) => Some(i.rti),
        Bitmap::And(list, _) | Bitmap::Or(list, _) => list.iter().find_map(|c| bitmap_relation(c)),
    }
}
