//! How many groups there are (`estimate_num_groups`).

use stegodon_nodes::Expr;

use crate::cost::clamp_rows;
use crate::exprs::{self, BOOL};
use crate::level::Level;

impl<'a> Level<'a> {
    /// How many distinct combinations of `exprs` there are among `rows` rows.
    pub(crate) fn distinct_groups(&self, exprs: &[Expr], rows: f64) -> f64 {
        let rows = clamp_rows(rows);
        if exprs.is_empty() {
            return 1.0;
        }
        struct Variable {
            rti: usize,
            expr: Expr,
            distinct: f64,
            is_default: bool,
        }
        let mut found: Vec<Variable> = Vec::new();
        let mut groups = 1.0;
        let mut set_factor: f64 = 1.0;
        for e in exprs {
            if exprs::has_srf(e) {
                set_factor = set_factor.max(1000.0);
            }
            if exprs::type_of(e) == BOOL {
                groups *= 2.0;
                continue;
            }
            let mut push = |v: crate::stats::VariableStats, level: &Self| {
                let (distinct, is_default) = level.distinct(&v);
                let Some(rti) = v.rti else { return };
                if found.iter().any(|f| f.expr == v.expr) {
                    return;
                }
                found.push(Variable { rti, expr: v.expr, distinct, is_default });
            };
            let v = self.examine(e);
            if v.stats.is_some() || v.unique {
                push(v, self);
                continue;
            }
            let mut vars = Vec::new();
            exprs::pull_vars(e, &mut |_| false, &mut vars);
            if vars.is_empty() {
                if self.is_volatile(e) {
                    return rows;
                }
                continue;
            }
            for var in &vars {
                push(self.examine(var), self);
            }
        }
        // Columns of one relation limit each other; relations multiply.
        let mut relations: Vec<usize> = Vec::new();
        found.iter().for_each(|v| {
            if !relations.contains(&v.rti) {
                relations.push(v.rti);
            }
        });
        for rti in relations {
            let Ok(rel) = self.rel(rti) else { continue };
            let own: Vec<&Variable> = found.iter().filter(|v| v.rti == rti).collect();
            let mut product = 1.0;
            let mut largest: f64 = 0.0;
            let mut count = 0;
            for v in &own {
                product *= v.distinct;
                if !v.is_default || largest < v.distinct {
                    largest = largest.max(v.distinct);
                }
                count += 1;
            }
            if rel.tuples > 0.0 {
                let mut clamp = rel.tuples;
                if count > 1 {
                    clamp *= 0.1;
                    if clamp < largest {
                        clamp = largest.min(rel.tuples);
                    }
                }
                product = product.min(clamp);
                // Restrictions keep some groups only (Dellaert, Yao).
                if product > 0.0 && rel.rows < rel.tuples {
                    product *= 1.0 - ((rel.tuples - rel.rows) / rel.tuples).powf(rel.tuples / product);
                }
                groups *= clamp_rows(product);
            }
        }
        groups *= set_factor;
        groups = groups.ceil();
        groups.min(rows).max(1.0)
    }
}
