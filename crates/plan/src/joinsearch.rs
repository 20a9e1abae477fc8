//! In which order to join (`joinrels.c`): dynamic programming over the items of a region, greedy where they are many.

use std::collections::HashMap;
use std::rc::Rc;

use stegodon_nodes::query::JoinKind;
use stegodon_types::{SqlError, SqlResult};

use crate::clause::Clause;
use crate::exprs::as_bool_const;
use crate::join::{FixedJoin, Item, Region};
use crate::joinpath::JoinInput;
use crate::level::Level;
use crate::rel::Rel;
use crate::relids::Relids;

/// Regions with more items are joined greedily.
const MOST_EXHAUSTIVE: usize = 12;

impl<'a> Level<'a> {
    /// Joins a region's items.
    pub(crate) fn plan_region(&mut self, region: &Region) -> SqlResult<Rel<'a>> {
        let mut items: Vec<Rel<'a>> = Vec::new();
        for item in &region.items {
            let relids = item.relids();
            items.push(match item {
                Item::Relation(rti) => self.rel(*rti)?.clone(),
                Item::Join(j) => {
                    let filter: Vec<Rc<Clause>> = region
                        .clauses
                        .iter()
                        .filter(|c| !c.relids.is_empty() && c.relids.is_subset(&relids))
                        .cloned()
                        .collect();
                    self.plan_fixed(j, filter)?
                }
            });
        }
        let all = region.relids();
        // Volatile conditions without columns are tested on the whole.
        let last: Vec<Rc<Clause>> =
            region.clauses.iter().filter(|c| c.relids.is_empty() && !c.pseudoconstant).cloned().collect();
        let mut out = if items.len() == 1 {
            let one = items.pop().ok_or_else(|| SqlError::internal("an empty FROM"))?;
            if !last.is_empty() {
                return Err(SqlError::unsupported("a volatile condition without columns over an outer join"));
            }
            one
        } else {
            self.search(region, items, &all, &last)?
        };
        if out.list.paths.is_empty() {
            return Err(SqlError::internal("no way to join was found"));
        }
        out = crate::gate::gated(self, out, &region.clauses);
        Ok(out)
    }

    fn plan_fixed(&mut self, j: &FixedJoin, filter: Vec<Rc<Clause>>) -> SqlResult<Rel<'a>> {
        let left = self.plan_region(&j.left)?;
        let mut right = self.plan_region(&j.right)?;
        let params = self.lateral_params(&left.relids, &right.relids);
        // Where nothing can match, the side that may be missing is.
        let never = j.clauses.iter().any(|c| matches!(as_bool_const(&c.expr), Some(Some(false) | None)));
        if never && j.kind != JoinKind::Full {
            crate::gate::make_empty(&mut right);
        }
        let (mut clauses, mut filter) = (j.clauses.clone(), filter);
        if j.kind == JoinKind::Inner {
            clauses.extend(self.class_join_clauses(&left.relids, &right.relids, j.left.domain));
            clauses.append(&mut filter);
        }
        let input = JoinInput { kind: j.kind, clauses, filter, domain: j.left.domain };
        let mut rel = self.join_rel(&left, &right, &input);
        if params.is_empty() {
            self.add_join_paths(&mut rel, &left, &right, &input)?;
        } else {
            self.add_lateral_paths(&mut rel, &left, &right, &input, &params);
        }
        if rel.list.paths.is_empty() {
            return Err(match j.kind {
                JoinKind::Full if j.clauses.iter().all(|c| c.relids.is_empty()) => {
                    SqlError::unsupported("FULL JOIN on a condition that reads no row")
                }
                JoinKind::Full => SqlError::new(
                    stegodon_types::SqlState::FeatureNotSupported,
                    "FULL JOIN is only supported with merge-joinable or hash-joinable join conditions",
                ),
                _ => SqlError::internal("no way to join was found"),
            });
        }
        Ok(rel)
    }

    /// The conditions that become testable when `left` and `right` meet.
    fn meeting(&self, region: &Region, left: &Relids, right: &Relids) -> Vec<Rc<Clause>> {
        let both = left.union(right);
        let mut out = self.class_join_clauses(left, right, region.domain);
        for c in &region.clauses {
            if c.relids.is_subset(&both) && !c.relids.is_subset(left) && !c.relids.is_subset(right) {
                out.push(Rc::clone(c));
            }
        }
        out
    }

    fn connected(&self, region: &Region, left: &Relids, right: &Relids) -> bool {
        region.clauses.iter().any(|c| c.relids.overlaps(left) && c.relids.overlaps(right))
            || self.classes.iter().any(|(_, k)| {
                k.domain == region.domain
                    && !k.has_const
                    && !k.sources.is_empty()
                    && k.members.iter().any(|m| m.child_of.is_none() && m.relids.overlaps(left))
                    && k.members.iter().any(|m| m.child_of.is_none() && m.relids.overlaps(right))
            })
    }

    fn join_two(
        &mut self,
        region: &Region,
        left: &Rel<'a>,
        right: &Rel<'a>,
        into: Option<Rel<'a>>,
        last: &[Rc<Clause>],
    ) -> SqlResult<Rel<'a>> {
        let mut clauses = self.meeting(region, &left.relids, &right.relids);
        clauses.extend_from_slice(last);
        let input = JoinInput { kind: JoinKind::Inner, clauses, filter: Vec::new(), domain: region.domain };
        let mut rel = match into {
            Some(rel) => rel,
            None => self.join_rel(left, right, &input),
        };
        self.add_join_paths(&mut rel, left, right, &input)?;
        self.add_join_paths(&mut rel, right, left, &input)?;
        Ok(rel)
    }

    fn search(
        &mut self,
        region: &Region,
        items: Vec<Rel<'a>>,
        all: &Relids,
        last: &[Rc<Clause>],
    ) -> SqlResult<Rel<'a>> {
        // Items that conditions connect are joined among themselves first.
        let n = items.len();
        let mut group: Vec<usize> = (0..n).collect();
        for i in 0..n {
            for j in i + 1..n {
                let (Some(a), Some(b)) = (items.get(i), items.get(j)) else { continue };
                if self.connected(region, &a.relids, &b.relids) {
                    let (Some(&from), Some(&to)) = (group.get(j), group.get(i)) else { continue };
                    group.iter_mut().filter(|g| **g == from).for_each(|g| *g = to);
                }
            }
        }
        let mut components: Vec<Vec<Rel<'a>>> = Vec::new();
        let mut seen: Vec<usize> = Vec::new();
        for (item, g) in items.into_iter().zip(&group) {
            match seen.iter().position(|s| s == g) {
                Some(i) => {
                    if let Some(c) = components.get_mut(i) {
                        c.push(item);
                    }
                }
                None => {
                    seen.push(*g);
                    components.push(vec![item]);
                }
            }
        }
        let single = components.len() == 1;
        let mut joined: Vec<Rel<'a>> = Vec::new();
        for c in components {
            joined.push(if c.len() > MOST_EXHAUSTIVE {
                self.greedy(region, c, all, last)?
            } else {
                let last = if single { last } else { &[] };
                self.exhaustive(region, c, last)?
            });
        }
        self.greedy(region, joined, all, last)
    }

    /// Joins the two whose join is smallest, again and again.
    fn greedy(
        &mut self,
        region: &Region,
        mut rels: Vec<Rel<'a>>,
        all: &Relids,
        last: &[Rc<Clause>],
    ) -> SqlResult<Rel<'a>> {
        while rels.len() > 1 {
            let mut best: Option<(f64, usize, usize)> = None;
            for (i, a) in rels.iter().enumerate() {
                self.cx.input.evaluate.check_cancel()?;
                for (j, b) in rels.iter().enumerate().skip(i + 1) {
                    let clauses = self.meeting(region, &a.relids, &b.relids);
                    let penalty = if self.connected(region, &a.relids, &b.relids) { 0.0 } else { 1e20 };
                    let input = JoinInput { kind: JoinKind::Inner, clauses, filter: Vec::new(), domain: region.domain };
                    let rows = self.join_rows(a, b, &input) + penalty;
                    if best.is_none_or(|(r, _, _)| rows < r) {
                        best = Some((rows, i, j));
                    }
                }
            }
            let Some((_, i, j)) = best else { break };
            let b = rels.remove(j);
            let a = rels.remove(i);
            let whole = a.relids.union(&b.relids) == *all;
            let rel = self.join_two(region, &a, &b, None, if whole { last } else { &[] })?;
            rels.push(rel);
        }
        rels.pop().ok_or_else(|| SqlError::internal("nothing to join"))
    }

    fn exhaustive(&mut self, region: &Region, items: Vec<Rel<'a>>, last: &[Rc<Clause>]) -> SqlResult<Rel<'a>> {
        let n = items.len();
        let full: u32 = (1u32 << n) - 1;
        let mut table: HashMap<u32, Rel<'a>> = HashMap::new();
        for (i, r) in items.into_iter().enumerate() {
            table.insert(1 << i, r);
        }
        for size in 2..=n as u32 {
            for mask in 1..=full {
                if mask.count_ones() != size {
                    continue;
                }
                self.cx.input.evaluate.check_cancel()?;
                let mut rel: Option<Rel<'a>> = None;
                let mut part = (mask - 1) & mask;
                while part > 0 {
                    let rest = mask & !part;
                    if part > rest
                        && let (Some(a), Some(b)) = (table.get(&rest).cloned(), table.get(&part).cloned())
                        && self.connected(region, &a.relids, &b.relids)
                    {
                        let last = if mask == full { last } else { &[] };
                        rel = Some(self.join_two(region, &a, &b, rel, last)?);
                    }
                    part = (part - 1) & mask;
                }
                if let Some(mut rel) = rel {
                    if mask != full {
                        let mut list = std::mem::take(&mut rel.list);
                        self.add_gather_paths(&mut list, Some(rel.rows));
                        rel.list = list;
                    }
                    table.insert(mask, rel);
                }
            }
        }
        table.remove(&full).ok_or_else(|| SqlError::internal("the items of FROM could not be joined"))
    }
}
