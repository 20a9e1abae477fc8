//! The items of FROM, and which condition is tested where.
//!
//! Inner joins are free to be done in any order: their items and conditions are one [`Region`]. An outer, semi or anti
//! join is one item of its region and has a region for each side. Conditions move down into the side that must exist
//! anyway, never into a side that the join fills with NULLs.

use std::rc::Rc;

use stegodon_nodes::expr::Expr;
use stegodon_nodes::query::{JoinKind, JoinTree};
use stegodon_types::SqlResult;

use crate::clause::Clause;
use crate::exprs;
use crate::level::Level;
use crate::relids::Relids;

/// What may be joined in any order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Region {
    pub items: Vec<Item>,
    /// Conditions not yet placed.
    pub quals: Vec<Expr>,
    /// Conditions over several items, or over an outer join's result.
    pub clauses: Vec<Rc<Clause>>,
    pub domain: usize,
}

/// One thing to be joined.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Relation(usize),
    Join(Box<FixedJoin>),
}

/// A join that is done as it is written.
#[derive(Clone, Debug)]
pub(crate) struct FixedJoin {
    pub kind: JoinKind,
    pub left: Region,
    pub right: Region,
    /// Conditions not yet placed.
    pub quals: Vec<Expr>,
    /// What decides on a match.
    pub clauses: Vec<Rc<Clause>>,
}

impl Item {
    pub fn relids(&self) -> Relids {
        match self {
            Item::Relation(r) => Relids::one(*r),
            Item::Join(j) => j.left.relids().union(&j.right.relids()),
        }
    }
}

impl Region {
    pub fn relids(&self) -> Relids {
        self.items.iter().fold(Relids::default(), |a, i| a.union(&i.relids()))
    }

    /// The domain of a base relation in it.
    pub fn domain_of(&self, rti: usize) -> Option<usize> {
        self.items.iter().find_map(|i| match i {
            Item::Relation(r) => (*r == rti).then_some(self.domain),
            Item::Join(j) => j.left.domain_of(rti).or_else(|| j.right.domain_of(rti)),
        })
    }

    /// The relations whose columns a join within may have replaced by NULLs.
    fn nullable(&self) -> Relids {
        let mut out = Relids::default();
        for i in &self.items {
            if let Item::Join(j) = i {
                match j.kind {
                    JoinKind::Inner => {
                        out.add(&j.left.nullable());
                        out.add(&j.right.nullable());
                    }
                    JoinKind::Full => out.add(&i.relids()),
                    JoinKind::Right => {
                        out.add(&j.left.relids());
                        out.add(&j.right.nullable());
                    }
                    _ => {
                        out.add(&j.right.relids());
                        out.add(&j.left.nullable());
                    }
                }
            }
        }
        out
    }

    /// Adds a condition that holds throughout `domain` where all it reads first comes together.
    pub fn add_clause(&mut self, clause: &Rc<Clause>, domain: usize) -> bool {
        if !clause.relids.is_subset(&self.relids()) {
            return false;
        }
        for i in &mut self.items {
            if let Item::Join(j) = i
                && (j.left.add_clause(clause, domain) || j.right.add_clause(clause, domain))
            {
                return true;
            }
        }
        if self.domain != domain {
            return false;
        }
        self.clauses.push(Rc::clone(clause));
        true
    }

    /// Calls `f` for each condition that a join tests, with the relations that join at it.
    pub fn for_each_join_clause(&self, f: &mut dyn FnMut(&Rc<Clause>, &Relids)) {
        let none = Relids::default();
        for c in &self.clauses {
            // A condition on a fixed join's result is tested once that join is done, whatever it reads of it.
            let within = self.items.iter().map(Item::relids).find(|r| c.relids.is_subset(r));
            f(c, within.as_ref().unwrap_or(&none));
        }
        for i in &self.items {
            if let Item::Join(j) = i {
                let all = i.relids();
                j.clauses.iter().for_each(|c| f(c, &all));
                j.left.for_each_join_clause(f);
                j.right.for_each_join_clause(f);
            }
        }
    }
}

impl<'a> Level<'a> {
    /// Takes FROM apart.
    pub(crate) fn collect_items(&mut self, tree: &JoinTree, into: &mut Region, domain: usize) -> SqlResult<()> {
        into.domain = domain;
        match tree {
            JoinTree::Relation(rti) => into.items.push(Item::Relation(*rti)),
            JoinTree::From(f) => {
                for i in &f.items {
                    self.collect_items(i, into, domain)?;
                }
                into.quals.extend(f.quals.clone().map(exprs::conjuncts).unwrap_or_default());
            }
            JoinTree::Join(j) => {
                let quals = j.quals.clone().map(exprs::conjuncts).unwrap_or_default();
                if j.kind == JoinKind::Inner {
                    self.collect_items(&j.left, into, domain)?;
                    self.collect_items(&j.right, into, domain)?;
                    into.quals.extend(quals);
                    return Ok(());
                }
                let (mut left, mut right) = (Region::default(), Region::default());
                let (kind, l, r) = match j.kind {
                    // A right join is a left join seen from the other side.
                    JoinKind::Right => (JoinKind::Left, &j.right, &j.left),
                    k => (k, &j.left, &j.right),
                };
                let left_domain = if kind == JoinKind::Full { self.new_domain() } else { domain };
                self.collect_items(l, &mut left, left_domain)?;
                let right_domain = self.new_domain();
                self.collect_items(r, &mut right, right_domain)?;
                self.settle_lateral(&mut left)?;
                self.settle_lateral(&mut right)?;
                into.items.push(Item::Join(Box::new(FixedJoin { kind, left, right, quals, clauses: Vec::new() })));
            }
        }
        Ok(())
    }

    fn new_domain(&mut self) -> usize {
        self.domains += 1;
        self.domains
    }

    /// Places every condition of a region and of those within.
    pub(crate) fn distribute(&mut self, region: &mut Region) -> SqlResult<()> {
        for q in std::mem::take(&mut region.quals) {
            self.place(region, q)?;
        }
        for item in &mut region.items {
            let Item::Join(j) = item else { continue };
            let (left, right) = (j.left.relids(), j.right.relids());
            for q in std::mem::take(&mut j.quals) {
                let relids = exprs::relids_of(&q);
                // The side that may be missing can be thinned out first: what fails here matches nothing anyway. A
                // condition without columns stays: a side must not vanish for it unseen.
                let into_right = !relids.is_empty()
                    && relids.is_subset(&right)
                    && matches!(j.kind, JoinKind::Left | JoinKind::Semi | JoinKind::Anti);
                let into_left = !relids.is_empty() && relids.is_subset(&left) && j.kind == JoinKind::Semi;
                if into_right {
                    j.right.quals.push(q);
                } else if into_left {
                    j.left.quals.push(q);
                } else {
                    let mut clause = self.clause(q);
                    // It decides on matches even where it reads no row: nothing may be gated by it.
                    if let Some(c) = Rc::get_mut(&mut clause) {
                        c.pseudoconstant = false;
                    }
                    j.clauses.push(clause);
                }
            }
            self.distribute(&mut j.left)?;
            self.distribute(&mut j.right)?;
        }
        Ok(())
    }

    fn place(&mut self, region: &mut Region, q: Expr) -> SqlResult<()> {
        let clause = self.clause(q);
        // Down into the side of a fixed join that is always there.
        for item in &mut region.items {
            if let Item::Join(j) = item {
                let outer_only = matches!(j.kind, JoinKind::Left | JoinKind::Semi | JoinKind::Anti);
                // Only LATERAL makes an inner join a fixed one.
                if j.kind == JoinKind::Inner && !clause.relids.is_empty() {
                    let side = if clause.relids.is_subset(&j.left.relids()) {
                        Some(&mut j.left)
                    } else if clause.relids.is_subset(&j.right.relids()) {
                        Some(&mut j.right)
                    } else {
                        None
                    };
                    if let Some(side) = side {
                        side.quals.push(clause.expr.clone());
                        return Ok(());
                    }
                }
                if outer_only
                    && !clause.relids.is_empty()
                    && clause.relids.is_subset(&j.left.relids())
                    && !clause.pseudoconstant
                {
                    j.left.quals.push(clause.expr.clone());
                    return Ok(());
                }
            }
        }
        let nullable = region.nullable();
        let firm = !clause.relids.overlaps(&nullable);
        if firm && !clause.merge_families.is_empty() && self.classes.absorb(&clause, region.domain) {
            return Ok(());
        }
        if let Some(rti) = clause.relids.single()
            && region.items.iter().any(|i| matches!(i, Item::Relation(r) if *r == rti))
        {
            self.rel_mut(rti)?.restrictions.push(clause);
            return Ok(());
        }
        // A condition without columns that must be tested anew for each row.
        if clause.relids.is_empty()
            && !clause.pseudoconstant
            && let [Item::Relation(rti)] = region.items.as_slice()
        {
            let rti = *rti;
            self.rel_mut(rti)?.restrictions.push(clause);
            return Ok(());
        }
        region.clauses.push(clause);
        Ok(())
    }
}
