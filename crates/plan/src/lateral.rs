//! LATERAL: items of FROM that read other items, run anew for each of their rows.
//!
//! ```text
//!  FROM a, LATERAL (SELECT .. WHERE b.x = a.x) s    the subquery reads slot 0 where it read a.x
//!  region [a, s]  ->  [ a ⨝ s ]                      a fixed join: a nested loop whose params are [(slot 0, a.x)]
//! ```

use stegodon_nodes::Expr;
use stegodon_nodes::expr::*;
use stegodon_nodes::levels::{walk_expr_mut, walk_query_mut};
use stegodon_nodes::query::{JoinKind, Query, RangeTableKind};
use stegodon_types::{SqlError, SqlResult};

use crate::exprs::{self, relids_of};
use crate::join::{FixedJoin, Item, Region};
use crate::level::Level;
use crate::relids::Relids;

const REFUSED: &str = "LATERAL in this place";

/// Puts executor slots in the places where items of FROM read columns of other items.
pub(crate) fn replace_lateral_vars(level: &mut Level<'_>, query: &mut Query) -> SqlResult<()> {
    let cx = std::rc::Rc::clone(&level.cx);
    for (i, entry) in query.range_table.iter_mut().enumerate() {
        let mut values: Vec<(u32, Expr)> = Vec::new();
        let mut visit = |e: &mut Expr, depth: u32| {
            let Expr::Var(v) = e else {
                let outer = match e {
                    Expr::Aggref(a) => a.levels_up == depth && depth > 0,
                    Expr::GroupingFunc(g) => g.levels_up == depth && depth > 0,
                    _ => false,
                };
                return if outer { Err(SqlError::unsupported(REFUSED)) } else { Ok(true) };
            };
            if v.levels_up != depth {
                return Ok(true);
            }
            let mut value = Expr::Var(Var { levels_up: 0, location: None, ..v.clone() });
            exprs::strip_locations(&mut value);
            let slot = match values.iter().find(|(_, x)| *x == value) {
                Some((slot, _)) => *slot,
                None => {
                    let slot = cx.new_param();
                    values.push((slot, value));
                    slot
                }
            };
            *e = Expr::Param(Param {
                kind: ParamKind::Exec,
                id: slot,
                type_oid: v.type_oid,
                typmod: v.typmod,
                collation: v.collation,
                location: None,
            });
            Ok(false)
        };
        match &mut entry.kind {
            RangeTableKind::Subquery(q) => walk_query_mut(q, 1, 0, &mut visit)?,
            RangeTableKind::Function { functions, .. } => {
                for f in functions {
                    walk_expr_mut(&mut f.call, 0, 0, &mut visit)?;
                }
            }
            RangeTableKind::Values { rows, .. } => {
                for e in rows.iter_mut().flatten() {
                    walk_expr_mut(e, 0, 0, &mut visit)?;
                }
            }
            _ => {}
        }
        if !values.is_empty() {
            level.lateral.insert(i + 1, values);
        }
    }
    Ok(())
}

impl Level<'_> {
    /// What the relations of `right` read of those of `left`.
    pub(crate) fn lateral_params(&self, left: &Relids, right: &Relids) -> Vec<(u32, Expr)> {
        let mut out = Vec::new();
        for (rti, values) in &self.lateral {
            if right.contains(*rti) {
                out.extend(values.iter().filter(|(_, e)| relids_of(e).overlaps(left)).cloned());
            }
        }
        out
    }

    /// Joins each item of a region that reads earlier ones to all of those, in place.
    pub(crate) fn settle_lateral(&mut self, region: &mut Region) -> SqlResult<()> {
        if self.lateral.is_empty() {
            return Ok(());
        }
        let mut done: Vec<Item> = Vec::new();
        for item in std::mem::take(&mut region.items) {
            let before = done.iter().fold(Relids::default(), |a, i| a.union(&i.relids()));
            if self.lateral_params(&before, &item.relids()).is_empty() {
                done.push(item);
                continue;
            }
            let side = |items: Vec<Item>| Region { items, domain: region.domain, ..Region::default() };
            let (left, right) = (side(std::mem::take(&mut done)), side(vec![item]));
            let join = FixedJoin { kind: JoinKind::Inner, left, right, quals: Vec::new(), clauses: Vec::new() };
            done.push(Item::Join(Box::new(join)));
        }
        region.items = done;
        Ok(())
    }

    /// Refuses what no join hands its values to.
    pub(crate) fn check_lateral(&self, region: &Region) -> SqlResult<()> {
        let mut filled = Vec::new();
        self.filled(region, &mut filled)?;
        let all = self.lateral.iter().filter(|(rti, _)| region.relids().contains(**rti)).flat_map(|(_, v)| v);
        match all.map(|(slot, _)| slot).find(|slot| !filled.contains(*slot)) {
            Some(_) => Err(SqlError::unsupported(REFUSED)),
            None => Ok(()),
        }
    }

    fn filled(&self, region: &Region, out: &mut Vec<u32>) -> SqlResult<()> {
        for item in &region.items {
            let Item::Join(j) = item else { continue };
            let params = self.lateral_params(&j.left.relids(), &j.right.relids());
            let other_way = self.lateral_params(&j.right.relids(), &j.left.relids());
            if !other_way.is_empty() || (!params.is_empty() && j.kind == JoinKind::Full) {
                return Err(SqlError::unsupported(REFUSED));
            }
            out.extend(params.iter().map(|(slot, _)| *slot));
            self.filled(&j.left, out)?;
            self.filled(&j.right, out)?;
        }
        Ok(())
    }
}
