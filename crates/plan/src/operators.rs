//! Selectivity of `column operator constant`: most common values, histograms, patterns (`selfuncs.c`, `like_support.c`).

use std::cmp::Ordering;

use stegodon_catalog::rows::StatisticSlot;
use stegodon_format::ids::Oid;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::*;
use stegodon_types::Datum;

use crate::clause::BTREE;
use crate::cost::clamp_probability;
use crate::exprs::{BOOL, as_var, type_of};
use crate::level::Level;
use crate::rel::is_c_like;
use crate::selectivity::{DEFAULT_EQUAL, DEFAULT_INEQUALITY, DEFAULT_MATCH};
use crate::stats::VariableStats;
use crate::values;

/// A constant with its type.
pub(crate) type Typed<'d> = (Oid, &'d Datum);

impl<'a> Level<'a> {
    /// `left operator right` by the restriction estimator of this name.
    pub(crate) fn restriction_selectivity(
        &self,
        name: &str,
        operator: Oid,
        collation: Oid,
        left: &Expr,
        right: &Expr,
    ) -> f64 {
        let (negate, default) = match name {
            "eqsel" => (false, DEFAULT_EQUAL),
            "neqsel" => (true, 1.0 - DEFAULT_EQUAL),
            "scalarltsel" | "scalarlesel" | "scalargtsel" | "scalargesel" => (false, DEFAULT_INEQUALITY),
            "likesel" | "regexeqsel" | "iclikesel" | "icregexeqsel" | "prefixsel" => (false, DEFAULT_MATCH),
            "nlikesel" | "regexnesel" | "icnlikesel" | "icregexnesel" => (true, 1.0 - DEFAULT_MATCH),
            "contsel" => return 0.001,
            "areasel" => return 0.005,
            "positionsel" => return 0.1,
            "matchingsel" => return 0.010,
            "arraycontsel" => return 0.005,
            "tsmatchsel" => return 0.005,
            "rangesel" | "multirangesel" => return 0.01,
            _ => return 0.5,
        };
        let (l, r) = (self.examine(left), self.examine(right));
        let (v, other, on_left) = match (l.rti.is_some(), r.rti.is_some()) {
            (true, false) if crate::exprs::relids_of(right).is_empty() => (l, right, true),
            (false, true) if crate::exprs::relids_of(left).is_empty() => (r, left, false),
            _ => return default,
        };
        let value = self.estimate_value(other);
        match name {
            "eqsel" | "neqsel" => match value {
                Some(None) => 0.0,
                Some(Some(d)) => self.equals_constant(&v, operator, collation, (type_of(other), &d), on_left, negate),
                None => self.equals_unknown(&v, negate),
            },
            "scalarltsel" | "scalarlesel" | "scalargtsel" | "scalargesel" => match value {
                Some(None) => 0.0,
                Some(Some(d)) => {
                    let greater = name.starts_with("scalarg");
                    let or_equal = name.ends_with("esel");
                    let operator = if on_left {
                        operator
                    } else {
                        match self.catalog().operator(operator).map(|o| o.commutator) {
                            Some(c) if c.is_valid() => c,
                            _ => return DEFAULT_INEQUALITY,
                        }
                    };
                    let test = Inequality { operator, greater: greater == on_left, or_equal, collation };
                    self.inequality(&v, &test, (type_of(other), &d))
                }
                None => DEFAULT_INEQUALITY,
            },
            _ => match value {
                Some(None) => 0.0,
                Some(Some(d)) if on_left => self.pattern(&v, name, operator, collation, (type_of(other), &d), negate),
                _ => default,
            },
        }
    }

    /// Whether `value operator constant` (or the other way round) holds.
    fn holds(
        &self,
        operator: Oid,
        collation: Oid,
        value: Typed<'_>,
        constant: Typed<'_>,
        on_left: bool,
    ) -> Option<bool> {
        let amops = self.catalog().amops_of_operator(operator);
        if let Some(a) = amops.iter().find(|a| a.access_method == BTREE && a.purpose == b's')
            && let Some(order) = values::compare(self.catalog(), value, constant, collation)
        {
            let order = if on_left { order } else { order.reverse() };
            return Some(match a.strategy {
                1 => order == Ordering::Less,
                2 => order != Ordering::Greater,
                3 => order == Ordering::Equal,
                4 => order != Ordering::Less,
                _ => order == Ordering::Greater,
            });
        }
        let row = self.catalog().operator(operator)?;
        let constant_of = |(type_oid, d): Typed<'_>, collation: Oid| {
            Expr::Const(Const { type_oid, typmod: -1, collation, value: Some(d.clone()), location: None })
        };
        let mut args = vec![constant_of(value, collation), constant_of(constant, collation)];
        if !on_left {
            args.reverse();
        }
        let e = Expr::Op(OpExpr {
            operator,
            function: row.function,
            result_type: BOOL,
            returns_set: false,
            collation: Oid::INVALID,
            input_collation: collation,
            args,
            location: None,
        });
        match self.cx.input.evaluate.value_now(&e)? {
            Some(Datum::Bool(b)) => Some(b),
            _ => Some(false),
        }
    }

    /// `column = constant` (`var_eq_const`).
    pub(crate) fn equals_constant(
        &self,
        v: &VariableStats,
        operator: Oid,
        collation: Oid,
        constant: Typed<'_>,
        on_left: bool,
        negate: bool,
    ) -> f64 {
        let nulls = v.null_fraction();
        // The negated estimate looks for the equal value all the same.
        let equality =
            if negate { self.catalog().operator(operator).map_or(operator, |o| o.negator) } else { operator };
        let s = if v.unique && v.tuples >= 1.0 {
            1.0 / v.tuples
        } else if v.stats.is_some() {
            let mcv = v.mcv();
            let matched = mcv.and_then(|m| {
                m.values.iter().zip(&m.numbers).find_map(|(d, n)| {
                    let same = self.holds(equality, collation, (m.value_type, d), constant, on_left)?;
                    same.then_some(f64::from(*n))
                })
            });
            match matched {
                Some(s) => s,
                None => {
                    let common: f64 = mcv.map_or(0.0, |m| m.numbers.iter().map(|n| f64::from(*n)).sum());
                    let mut s = clamp_probability(1.0 - common - nulls);
                    let others = self.distinct(v).0 - mcv.map_or(0.0, |m| m.numbers.len() as f64);
                    if others > 1.0 {
                        s /= others;
                    }
                    // No rarer than what is left, no more common than the least common of the common.
                    mcv.and_then(|m| m.numbers.last()).map_or(s, |last| s.min(f64::from(*last)))
                }
            }
        } else {
            1.0 / self.distinct(v).0
        };
        clamp_probability(if negate { 1.0 - s - nulls } else { s })
    }

    /// `column = something not known yet` (`var_eq_non_const`).
    fn equals_unknown(&self, v: &VariableStats, negate: bool) -> f64 {
        let nulls = v.null_fraction();
        let s = if v.unique && v.tuples >= 1.0 {
            1.0 / v.tuples
        } else if v.stats.is_some() {
            let mut s = 1.0 - nulls;
            let n = self.distinct(v).0;
            if n > 1.0 {
                s /= n;
            }
            v.mcv().and_then(|m| m.numbers.first()).map_or(s, |most| s.min(f64::from(*most)))
        } else {
            1.0 / self.distinct(v).0
        };
        clamp_probability(if negate { 1.0 - s - nulls } else { s })
    }

    /// The rows among the most common values that match, and the rows those values are of altogether.
    fn mcv_selectivity(&self, v: &VariableStats, operator: Oid, collation: Oid, constant: Typed<'_>) -> (f64, f64) {
        let (mut matching, mut all) = (0.0, 0.0);
        if let Some(m) = v.mcv() {
            for (d, n) in m.values.iter().zip(&m.numbers) {
                if self.holds(operator, collation, (m.value_type, d), constant, true) == Some(true) {
                    matching += f64::from(*n);
                }
                all += f64::from(*n);
            }
        }
        (matching, all)
    }

    fn inequality(&self, v: &VariableStats, test: &Inequality, constant: Typed<'_>) -> f64 {
        if v.stats.is_none() {
            return self.ctid_inequality(v, test, constant).unwrap_or(DEFAULT_INEQUALITY);
        }
        let (matching, common) = self.mcv_selectivity(v, test.operator, test.collation, constant);
        let histogram = self.histogram_inequality(v, test, constant);
        let mut s = 1.0 - v.null_fraction() - common;
        s *= histogram.unwrap_or(0.5);
        s += matching;
        clamp_probability(s)
    }

    /// `ctid < '(n,m)'` goes by the table's pages.
    fn ctid_inequality(&self, v: &VariableStats, test: &Inequality, constant: Typed<'_>) -> Option<f64> {
        let (rti, attno) = as_var(&v.expr)?;
        if attno.0 != -1 {
            return None;
        }
        let rel = self.rel(rti).ok()?;
        let tid = stegodon_format::ids::Tid::from_bytes(constant.1.as_bytes()?.try_into().ok()?);
        if rel.pages == 0.0 {
            return Some(1.0);
        }
        let density = rel.tuples / rel.pages;
        let mut block = f64::from(tid.block.0);
        if density > 0.0 {
            block += (f64::from(tid.offset.0) / density).min(1.0);
        }
        let mut s = block / rel.pages;
        // One row less for `<`, one more for `>=`.
        if test.greater == test.or_equal && rel.tuples >= 1.0 {
            s -= 1.0 / rel.tuples;
        }
        Some(clamp_probability(if test.greater { 1.0 - s } else { s }))
    }

    /// The part of the histogram's population that satisfies an inequality (`ineq_histogram_selectivity`).
    fn histogram_inequality(&self, v: &VariableStats, test: &Inequality, constant: Typed<'_>) -> Option<f64> {
        let h = v.histogram().filter(|h| h.values.len() > 1)?;
        if is_ordered_otherwise(self, h, test) {
            return None;
        }
        let mut bounds = h.values.clone();
        let n = bounds.len();
        let mut have_end = false;
        if n == 2 {
            for highest in [false, true] {
                have_end |= self.refresh_bound(v, test, &mut bounds, highest);
            }
        }
        let (mut low, mut high) = (0, n);
        while low < high {
            let probe = usize::midpoint(low, high);
            if n > 2 && (probe == 0 || probe == n - 1) {
                have_end = self.refresh_bound(v, test, &mut bounds, probe != 0);
            }
            let value = bounds.get(probe)?;
            let mut less = self.holds(test.operator, test.collation, (h.value_type, value), constant, true)?;
            if test.greater {
                less = !less;
            }
            if less {
                low = probe + 1;
            } else {
                high = probe;
            }
        }
        let mut fraction = if low == 0 {
            0.0
        } else if low >= n {
            1.0
        } else {
            let mut equal = 0.0;
            if low == 1 || test.greater == test.or_equal {
                let others = self.distinct(v).0 - v.slot(crate::stats::MCV).map_or(0.0, |m| m.numbers.len() as f64);
                if others > 1.0 {
                    equal = 1.0 / others;
                }
            }
            let (a, b) = (bounds.get(low - 1)?, bounds.get(low)?);
            let within = match values::scalars(constant, (h.value_type, a, b)) {
                Some((value, l, u)) => {
                    if u <= l {
                        0.5
                    } else if value <= l {
                        0.0
                    } else if value >= u {
                        1.0
                    } else {
                        let w = (value - l) / (u - l);
                        if (0.0..=1.0).contains(&w) { w } else { 0.5 }
                    }
                }
                None => 0.5,
            };
            let mut f = ((low - 1) as f64 + within) / (n - 1) as f64;
            // The first bin counts its lower bound as well.
            if low == 1 {
                f += equal * (1.0 - within);
            }
            if test.greater == test.or_equal {
                f -= equal;
            }
            f
        };
        if test.greater {
            fraction = 1.0 - fraction;
        }
        if have_end {
            return Some(clamp_probability(fraction));
        }
        let cutoff = 0.01 / (n - 1) as f64;
        Some(fraction.clamp(cutoff, 1.0 - cutoff))
    }

    /// Replaces the histogram's first or last bound by what an index has there now.
    fn refresh_bound(&self, v: &VariableStats, test: &Inequality, bounds: &mut [Datum], highest: bool) -> bool {
        let Some(rel) = v.rti.and_then(|r| self.rel(r).ok()) else { return false };
        for index in &rel.indexes {
            let first = index.column_expr(0, rel);
            if !index.predicate.is_empty() || first.as_ref() != Some(&v.expr) {
                continue;
            }
            let family = index.families.first().copied().unwrap_or_default();
            if !self.catalog().amops_of_operator(test.operator).iter().any(|a| a.family == family) {
                continue;
            }
            let descending = index.descending.first().copied().unwrap_or(false);
            if let Ok(Some(d)) = self.cx.input.storage.index_endpoint(index.oid, highest != descending) {
                let slot = if highest { bounds.last_mut() } else { bounds.first_mut() };
                if let Some(slot) = slot {
                    *slot = d;
                }
                return true;
            }
        }
        false
    }

    /// LIKE and its like (`patternsel_common`).
    fn pattern(
        &self,
        v: &VariableStats,
        name: &str,
        operator: Oid,
        collation: Oid,
        constant: Typed<'_>,
        negate: bool,
    ) -> f64 {
        let default = if negate { 1.0 - DEFAULT_MATCH } else { DEFAULT_MATCH };
        if !matches!(v.type_oid.0, 25 | 19 | 1042 | 1043 | 17) {
            return default;
        }
        let Some(text) = constant.1.as_bytes() else { return default };
        let fixed = crate::patterns::fixed_prefix(crate::patterns::PatternKind::of_estimator(name), text);
        let nulls = v.null_fraction();
        let positive =
            if negate { self.catalog().operator(operator).map_or(operator, |o| o.negator) } else { operator };
        let equality = self.text_operator(v.type_oid, 3);
        let mut s = if fixed.exact {
            let prefix = Datum::bytes(&fixed.prefix);
            match equality {
                Some(op) => self.equals_constant(v, op, collation, (constant.0, &prefix), true, false),
                None => DEFAULT_EQUAL,
            }
        } else {
            let by_histogram = self.histogram_matches(v, positive, collation, constant);
            let mut s = match by_histogram {
                Some((s, size)) if size >= 100 => s,
                partial => {
                    let prefix = if fixed.prefix.is_empty() {
                        1.0
                    } else {
                        self.prefix_selectivity(v, collation, &fixed.prefix)
                    };
                    let guess = prefix * fixed.rest;
                    match partial {
                        None => guess,
                        Some((s, size)) => {
                            let weight = size as f64 / 100.0;
                            s * weight + guess * (1.0 - weight)
                        }
                    }
                }
            };
            s = s.clamp(0.0001, 0.9999);
            let (matching, common) = self.mcv_selectivity(v, positive, collation, constant);
            s *= 1.0 - nulls - common;
            s + matching
        };
        if negate {
            s = 1.0 - s - nulls;
        }
        clamp_probability(s)
    }

    /// The operator of the type's default byte or text order.
    pub(crate) fn text_operator(&self, type_oid: Oid, strategy: u16) -> Option<Oid> {
        let (family, ty) = match type_oid.0 {
            17 => (428, 17),
            1042 => (426, 1042),
            19 => (1994, 19),
            _ => (1994, 25),
        };
        self.catalog().family_operator(Oid(family), Oid(ty), Oid(ty), strategy)
    }

    fn histogram_matches(
        &self,
        v: &VariableStats,
        op: Oid,
        collation: Oid,
        constant: Typed<'_>,
    ) -> Option<(f64, usize)> {
        let h = v.histogram().filter(|h| h.values.len() >= 10)?;
        let inner = h.values.get(1..h.values.len() - 1)?;
        let mut matching = 0;
        for d in inner {
            if self.holds(op, collation, (h.value_type, d), constant, true)? {
                matching += 1;
            }
        }
        Some((f64::from(matching) / inner.len() as f64, h.values.len()))
    }

    fn prefix_selectivity(&self, v: &VariableStats, collation: Oid, prefix: &[u8]) -> f64 {
        let (Some(ge), Some(lt), Some(eq)) =
            (self.text_operator(v.type_oid, 4), self.text_operator(v.type_oid, 1), self.text_operator(v.type_oid, 3))
        else {
            return DEFAULT_MATCH;
        };
        let low = Datum::bytes(prefix);
        let test = Inequality { operator: ge, greater: true, or_equal: true, collation };
        let Some(mut s) = self.histogram_inequality(v, &test, (v.type_oid, &low)) else { return DEFAULT_MATCH };
        if let Some(greater) = crate::patterns::greater_string(prefix, v.type_oid.0 != 17) {
            let high = Datum::bytes(greater);
            let test = Inequality { operator: lt, greater: false, or_equal: false, collation };
            if let Some(top) = self.histogram_inequality(v, &test, (v.type_oid, &high)) {
                s = top + s - 1.0;
            }
        }
        let equal = self.equals_constant(v, eq, collation, (v.type_oid, &low), true, false);
        s.max(equal)
    }
}

/// An inequality with the column on the left.
pub(crate) struct Inequality {
    pub operator: Oid,
    /// `>` or `>=`.
    pub greater: bool,
    /// `<=` or `>=`.
    pub or_equal: bool,
    pub collation: Oid,
}

/// Whether the histogram was made in another order than the operator's.
fn is_ordered_otherwise(level: &Level<'_>, h: &StatisticSlot, test: &Inequality) -> bool {
    let catalog = level.catalog();
    let families = catalog.amops_of_operator(test.operator);
    let same_family =
        catalog.amops_of_operator(h.operator).iter().any(|a| families.iter().any(|b| a.family == b.family));
    !same_family
        || (h.collation != test.collation && !(is_c_like(catalog, h.collation) && is_c_like(catalog, test.collation)))
}
