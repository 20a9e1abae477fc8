//! What `pg_statistic` says of an expression.

use std::sync::Arc;

use stegodon_catalog::rows::{Statistic, StatisticSlot};
use stegodon_format::ids::{AttrNumber, Oid};
use stegodon_nodes::Expr;
use stegodon_nodes::query::RangeTableKind;

use crate::cost::clamp_rows;
use crate::exprs::{BOOL, as_var, relids_of, strip_relabel, type_of};
use crate::level::Level;
use crate::rel::{IndexInfo, Rel};

/// Most common values.
pub const MCV: i16 = 1;
/// Bounds of equally full ranges.
pub const HISTOGRAM: i16 = 2;
/// How the column's order follows the table's.
pub const CORRELATION: i16 = 3;

/// An expression with what is known of it.
#[derive(Clone, Debug)]
pub struct VariableStats {
    /// The expression, without relabellings.
    pub expr: Expr,
    pub type_oid: Oid,
    /// The base relation, where it reads just one.
    pub rti: Option<usize>,
    /// That relation's rows.
    pub tuples: f64,
    pub stats: Option<Arc<Statistic>>,
    pub unique: bool,
}

impl VariableStats {
    /// A slot of the statistics.
    pub fn slot(&self, kind: i16) -> Option<&StatisticSlot> {
        self.stats.as_ref()?.slots.iter().find(|s| s.kind == kind)
    }

    /// The most common values with their frequencies.
    pub fn mcv(&self) -> Option<&StatisticSlot> {
        self.slot(MCV).filter(|s| s.values.len() == s.numbers.len())
    }

    /// The histogram's bounds.
    pub fn histogram(&self) -> Option<&StatisticSlot> {
        self.slot(HISTOGRAM)
    }

    /// The fraction of NULLs.
    pub fn null_fraction(&self) -> f64 {
        self.stats.as_ref().map_or(0.0, |s| f64::from(s.null_fraction))
    }
}

impl<'a> Level<'a> {
    /// What is known of an expression.
    pub(crate) fn examine(&self, e: &Expr) -> VariableStats {
        let base = strip_relabel(e);
        let mut out = VariableStats {
            expr: base.clone(),
            type_oid: type_of(base),
            rti: None,
            tuples: 0.0,
            stats: None,
            unique: false,
        };
        let Some(rti) = relids_of(base).single() else { return out };
        let Ok(rel) = self.rel(rti) else { return out };
        out.rti = Some(rti);
        out.tuples = rel.tuples;
        if let Some((_, attno)) = as_var(base) {
            self.examine_column(rel, attno, &mut out);
            return out;
        }
        for index in &rel.indexes {
            for n in 0..index.key_count {
                if index.columns.get(n) != Some(&AttrNumber(0)) || index.column_expr(n, rel).as_ref() != Some(base) {
                    continue;
                }
                if index.unique && index.key_count == 1 && (index.predicate.is_empty() || index.predicate_ok) {
                    out.unique = true;
                }
                if out.stats.is_none() {
                    out.stats = self.catalog().statistic(index.oid, AttrNumber(n as i16 + 1), false).cloned();
                }
            }
        }
        out
    }

    fn examine_column(&self, rel: &Rel<'a>, attno: AttrNumber, out: &mut VariableStats) {
        if rel.oid.is_valid() {
            out.stats = self.catalog().statistic(rel.oid, attno, rel.inherited).cloned();
            out.unique = rel.indexes.iter().any(|i| {
                i.unique
                    && i.key_count == 1
                    && i.columns.first() == Some(&attno)
                    && (i.predicate.is_empty() || i.predicate_ok)
            });
            return;
        }
        // A column of a subquery that comes through unchanged has the statistics of what it comes from.
        let Ok(rte) = self.rte(rel.rti) else { return };
        if !matches!(rte.kind, RangeTableKind::Subquery(_)) {
            return;
        }
        let Some((sub, _)) = self.subqueries.get(&rel.rti) else { return };
        let q = &sub.query;
        if q.set_operations.is_some() || !q.grouping_sets.is_empty() {
            return;
        }
        let Some(target) = q.targets.iter().find(|t| t.resno == attno && !t.junk) else { return };
        let only = |clauses: &[stegodon_nodes::expr::SortGroupClause]| {
            clauses.len() == 1 && clauses.first().is_some_and(|c| c.reference == target.sort_group_ref)
        };
        if only(&q.distinct) || (q.distinct.is_empty() && only(&q.group_by)) {
            out.unique = true;
        }
        if !q.distinct.is_empty() || !q.group_by.is_empty() {
            return;
        }
        if matches!(target.expr, Expr::Var(_)) {
            out.stats = sub.examine(&target.expr).stats;
        }
    }

    /// What is known of an index column.
    pub(crate) fn examine_index_column(&self, index: &IndexInfo, rel: &Rel<'a>, n: usize) -> VariableStats {
        let expr = index.column_expr(n, rel);
        let mut out = match &expr {
            Some(e) => self.examine(e),
            None => self.examine(&crate::exprs::bool_const(None)),
        };
        if index.columns.get(n) == Some(&AttrNumber(0)) {
            out.stats = self.catalog().statistic(index.oid, AttrNumber(n as i16 + 1), false).cloned();
        }
        out
    }

    /// How many distinct values, and whether that is a mere default.
    pub(crate) fn distinct(&self, v: &VariableStats) -> (f64, bool) {
        let mut n = match &v.stats {
            Some(s) => f64::from(s.distinct),
            None if v.type_oid == BOOL => 2.0,
            None => match as_var(&v.expr) {
                Some((_, AttrNumber(-1))) => -1.0,
                Some((_, AttrNumber(-6))) => 1.0,
                Some((rti, _)) if self.rte(rti).is_ok_and(|r| matches!(r.kind, RangeTableKind::Values { .. })) => -1.0,
                _ => 0.0,
            },
        };
        if v.unique {
            n = -1.0 * (1.0 - v.null_fraction());
        }
        if n > 0.0 {
            return (clamp_rows(n), false);
        }
        if v.rti.is_none() || v.tuples <= 0.0 {
            return (200.0, true);
        }
        if n < 0.0 {
            return (clamp_rows(-n * v.tuples), false);
        }
        if v.tuples < 200.0 {
            return (clamp_rows(v.tuples), false);
        }
        (200.0, true)
    }
}
