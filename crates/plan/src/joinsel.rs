//! Selectivity of join conditions (`eqjoinsel` and its like).

use stegodon_nodes::expr::OpExpr;
use stegodon_nodes::query::JoinKind;

use crate::cost::clamp_probability;
use crate::level::Level;
use crate::relids::Relids;
use crate::selectivity::{DEFAULT_EQUAL, DEFAULT_INEQUALITY, DEFAULT_MATCH};
use crate::stats::VariableStats;
use crate::values;

/// The join that conditions are estimated for.
#[derive(Clone, Copy, Debug)]
pub struct JoinContext<'c> {
    pub kind: JoinKind,
    pub left: &'c Relids,
    /// Rows of the right side, for semi and anti joins.
    pub right_rows: f64,
}

impl<'a> Level<'a> {
    /// The selectivity of an operator whose sides read different relations.
    pub(crate) fn join_operator_selectivity(&self, op: &OpExpr, join: &JoinContext<'_>) -> f64 {
        let catalog = self.catalog();
        let name = catalog.operator(op.operator).and_then(|o| catalog.proc(o.join)).map(|p| p.name.as_str());
        let [left, right] = op.args.as_slice() else { return 0.5 };
        match name {
            Some("eqjoinsel") => self.equal_join(op, &self.examine(left), &self.examine(right), join),
            Some("neqjoinsel") => {
                if matches!(join.kind, JoinKind::Semi | JoinKind::Anti) {
                    let v = self.examine(if crate::exprs::relids_of(left).overlaps(join.left) { left } else { right });
                    return clamp_probability(1.0 - v.null_fraction());
                }
                let mut equal = op.clone();
                match catalog.operator(op.operator).map(|o| o.negator) {
                    Some(n) if n.is_valid() => equal.operator = n,
                    _ => return 1.0 - DEFAULT_EQUAL,
                }
                1.0 - self.equal_join(&equal, &self.examine(left), &self.examine(right), join)
            }
            Some("scalarltjoinsel" | "scalarlejoinsel" | "scalargtjoinsel" | "scalargejoinsel") => DEFAULT_INEQUALITY,
            Some("likejoinsel" | "regexeqjoinsel" | "iclikejoinsel" | "icregexeqjoinsel" | "prefixjoinsel") => {
                DEFAULT_MATCH
            }
            Some("nlikejoinsel" | "regexnejoinsel" | "icnlikejoinsel" | "icregexnejoinsel") => 1.0 - DEFAULT_MATCH,
            Some("contjoinsel") => 0.001,
            Some("areajoinsel") => 0.005,
            Some("positionjoinsel") => 0.1,
            Some("matchingjoinsel") => 0.01,
            _ => 0.5,
        }
    }

    fn equal_join(&self, op: &OpExpr, l: &VariableStats, r: &VariableStats, join: &JoinContext<'_>) -> f64 {
        let inner = self.equal_join_inner(op, l, r);
        let s = match join.kind {
            JoinKind::Semi | JoinKind::Anti => {
                let left_is_outer = crate::exprs::relids_of(&l.expr).overlaps(join.left);
                let (outer, inner_side) = if left_is_outer { (l, r) } else { (r, l) };
                let s = self.equal_join_semi(op, outer, inner_side, join, left_is_outer);
                // No more outer rows match than there are joined pairs.
                s.min(join.right_rows * inner)
            }
            _ => inner,
        };
        clamp_probability(s)
    }

    fn equal_join_inner(&self, op: &OpExpr, l: &VariableStats, r: &VariableStats) -> f64 {
        let (nd1, nd2) = (self.distinct(l).0, self.distinct(r).0);
        let (null1, null2) = (l.null_fraction(), r.null_fraction());
        if let (Some(a), Some(b)) = (l.mcv(), r.mcv()) {
            let mut matched_b = vec![false; b.values.len()];
            let mut product = 0.0;
            let mut matched1 = 0.0;
            let mut unmatched1 = 0.0;
            for (x, fx) in a.values.iter().zip(&a.numbers) {
                let found = b.values.iter().enumerate().find(|(i, y)| {
                    !matched_b.get(*i).copied().unwrap_or(true)
                        && values::compare(self.catalog(), (a.value_type, x), (b.value_type, y), op.input_collation)
                            == Some(std::cmp::Ordering::Equal)
                });
                let fx = f64::from(*fx);
                if let Some((i, _)) = found {
                    if let Some(m) = matched_b.get_mut(i) {
                        *m = true;
                    }
                    product += fx * b.numbers.get(i).copied().map_or(0.0, f64::from);
                    matched1 += fx;
                } else {
                    unmatched1 += fx;
                }
            }
            let n_matches = matched_b.iter().filter(|m| **m).count() as f64;
            let (mut matched2, mut unmatched2) = (0.0, 0.0);
            for (m, f) in matched_b.iter().zip(&b.numbers) {
                if *m {
                    matched2 += f64::from(*f);
                } else {
                    unmatched2 += f64::from(*f);
                }
            }
            matched1 = clamp_probability(matched1);
            unmatched1 = clamp_probability(unmatched1);
            matched2 = clamp_probability(matched2);
            unmatched2 = clamp_probability(unmatched2);
            let other1 = clamp_probability(1.0 - null1 - matched1 - unmatched1);
            let other2 = clamp_probability(1.0 - null2 - matched2 - unmatched2);
            let (n1, n2) = (a.values.len() as f64, b.values.len() as f64);
            let side = |unmatched_a: f64, other_a: f64, other_b: f64, unmatched_b: f64, nd_b: f64, n_b: f64| {
                let mut total = product;
                if nd_b > n_b {
                    total += unmatched_a * other_b / (nd_b - n_b);
                }
                if nd_b > n_matches {
                    total += other_a * (other_b + unmatched_b) / (nd_b - n_matches);
                }
                total
            };
            let total1 = side(unmatched1, other1, other2, unmatched2, nd2, n2);
            let total2 = side(unmatched2, other2, other1, unmatched1, nd1, n1);
            return total1.min(total2);
        }
        let s = (1.0 - null1) * (1.0 - null2);
        s / nd1.max(nd2)
    }

    fn equal_join_semi(
        &self,
        op: &OpExpr,
        outer: &VariableStats,
        inner: &VariableStats,
        join: &JoinContext<'_>,
        left_is_outer: bool,
    ) -> f64 {
        let (nd1, default1) = self.distinct(outer);
        let (mut nd2, mut default2) = self.distinct(inner);
        let null1 = outer.null_fraction();
        // Restrictions on the inner side leave no more distinct values than rows.
        if let Some(rel) = inner.rti.and_then(|r| self.rel(r).ok())
            && nd2 >= rel.rows
        {
            nd2 = rel.rows;
            default2 = false;
        }
        if nd2 >= join.right_rows {
            nd2 = join.right_rows;
            default2 = false;
        }
        let _ = left_is_outer;
        if let (Some(a), Some(b)) = (outer.mcv(), inner.mcv()) {
            let considered = (b.values.len() as f64).min(nd2) as usize;
            let mut matched = vec![false; considered];
            let mut frequency = 0.0;
            let mut matches = 0.0;
            for (x, fx) in a.values.iter().zip(&a.numbers) {
                let found = b.values.iter().take(considered).enumerate().find(|(i, y)| {
                    !matched.get(*i).copied().unwrap_or(true)
                        && values::compare(self.catalog(), (a.value_type, x), (b.value_type, y), op.input_collation)
                            == Some(std::cmp::Ordering::Equal)
                });
                if let Some((i, _)) = found {
                    if let Some(m) = matched.get_mut(i) {
                        *m = true;
                    }
                    frequency += f64::from(*fx);
                    matches += 1.0;
                }
            }
            let frequency = clamp_probability(frequency);
            let uncertain = if default1 || default2 {
                0.5
            } else {
                let (n1, n2) = (nd1 - matches, nd2 - matches);
                if n1 <= n2 || n2 < 0.0 { 1.0 } else { n2 / n1 }
            };
            let rest = clamp_probability(1.0 - frequency - null1);
            return frequency + uncertain * rest;
        }
        if default1 || default2 {
            0.5 * (1.0 - null1)
        } else if nd1 <= nd2 || nd2 < 0.0 {
            1.0 - null1
        } else {
            (nd2 / nd1) * (1.0 - null1)
        }
    }
}
