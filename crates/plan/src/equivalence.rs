//! Equivalence classes: expressions known to be equal in every row, and the sort orders built on them.
//!
//! A class belongs to a domain. The nullable side of an outer join is a domain of its own: what is equal below the join
//! need not be equal above it, where NULLs were put in.

use std::rc::Rc;

use stegodon_catalog::Catalog;
use stegodon_format::ids::Oid;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::{OpExpr, SortGroupClause};

use crate::clause::{BTREE, Clause, merge_families};
use crate::exprs::{BOOL, collation_of, relids_of, strip_relabel, type_of};
use crate::level::Level;
use crate::path::PathKey;
use crate::rel::{IndexInfo, Rel};
use crate::relids::Relids;

/// One expression of a class.
#[derive(Clone, Debug)]
pub struct Member {
    /// As the clause has it.
    pub expr: Expr,
    /// Without relabellings: what is compared.
    pub key: Expr,
    pub relids: Relids,
    pub type_oid: Oid,
    /// The parent member's place, for a member translated to a child table.
    pub child_of: Option<usize>,
}

impl Member {
    fn is_const(&self) -> bool {
        self.relids.is_empty()
    }
}

/// Expressions equal under some btree families' equality and one collation.
#[derive(Clone, Debug)]
pub struct Class {
    pub members: Vec<Member>,
    pub families: Vec<Oid>,
    pub collation: Oid,
    /// The clauses that made it.
    pub sources: Vec<Rc<Clause>>,
    pub has_const: bool,
    pub volatile: bool,
    /// Which sort item a volatile expression is.
    pub sort_ref: u32,
    pub domain: usize,
    merged_into: Option<usize>,
}

/// All classes of a level.
#[derive(Clone, Debug, Default)]
pub struct Classes {
    list: Vec<Class>,
}

impl Classes {
    /// Where class `i` ended up.
    pub fn resolve(&self, mut i: usize) -> usize {
        while let Some(next) = self.list.get(i).and_then(|c| c.merged_into) {
            i = next;
        }
        i
    }

    /// A class.
    pub fn get(&self, i: usize) -> Option<&Class> {
        self.list.get(self.resolve(i))
    }

    /// The classes that were not merged away.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Class)> {
        self.list.iter().enumerate().filter(|(_, c)| c.merged_into.is_none())
    }

    fn find(&self, key: &Expr, families: &[Oid], collation: Oid, domain: usize, type_oid: Oid) -> Option<usize> {
        let constant = relids_of(key).is_empty();
        self.iter()
            .find(|(_, c)| {
                c.domain == domain
                    && !c.volatile
                    && c.collation == collation
                    && c.families == families
                    && (!constant || c.has_const)
                    && c.members.iter().any(|m| m.key == *key && m.type_oid == type_oid)
            })
            .map(|(i, _)| i)
    }

    /// Records that `clause`, an equality, holds throughout `domain`. False where it cannot be recorded.
    pub fn absorb(&mut self, clause: &Rc<Clause>, domain: usize) -> bool {
        let Some((op, left, right)) = clause.binary() else { return false };
        if clause.merge_families.is_empty() || left == right {
            return false;
        }
        let families = clause.merge_families.clone();
        let collation = op.input_collation;
        let make = |e: &Expr| Member {
            expr: e.clone(),
            key: strip_relabel(e).clone(),
            relids: relids_of(e),
            type_oid: type_of(e),
            child_of: None,
        };
        let (l, r) = (make(left), make(right));
        if l.key == r.key {
            return false;
        }
        let a = self.find(&l.key, &families, collation, domain, l.type_oid);
        let b = self.find(&r.key, &families, collation, domain, r.type_oid);
        let class = match (a, b) {
            (Some(a), Some(b)) if a == b => a,
            (Some(a), Some(b)) => {
                let taken = self.list.get(b).cloned();
                if let (Some(into), Some(taken)) = (self.list.get_mut(a), taken) {
                    into.members.extend(taken.members);
                    into.sources.extend(taken.sources);
                    into.has_const |= taken.has_const;
                }
                if let Some(old) = self.list.get_mut(b) {
                    old.merged_into = Some(a);
                    old.members.clear();
                }
                a
            }
            (Some(a), None) => {
                self.push_member(a, r);
                a
            }
            (None, Some(b)) => {
                self.push_member(b, l);
                b
            }
            (None, None) => {
                self.list.push(Class {
                    has_const: l.is_const() || r.is_const(),
                    members: vec![l, r],
                    families,
                    collation,
                    sources: Vec::new(),
                    volatile: false,
                    sort_ref: 0,
                    domain,
                    merged_into: None,
                });
                self.list.len() - 1
            }
        };
        if let Some(c) = self.list.get_mut(class) {
            c.sources.push(Rc::clone(clause));
        }
        clause.class.set(Some(class));
        true
    }

    fn push_member(&mut self, class: usize, member: Member) {
        if let Some(c) = self.list.get_mut(class) {
            c.has_const |= member.is_const();
            c.members.push(member);
        }
    }

    /// The class of a sort expression; made where `create`.
    #[allow(clippy::too_many_arguments)]
    pub fn for_sort(
        &mut self,
        expr: &Expr,
        families: Vec<Oid>,
        collation: Oid,
        domain: usize,
        volatile: bool,
        sort_ref: u32,
        create: bool,
    ) -> Option<usize> {
        let key = strip_relabel(expr);
        if !volatile {
            let found = self.iter().find(|(_, c)| {
                c.domain == domain
                    && !c.volatile
                    && c.collation == collation
                    && c.families == families
                    && c.members.iter().any(|m| m.key == *key)
            });
            if let Some((i, _)) = found {
                return Some(i);
            }
        } else if let Some((i, _)) = self.iter().find(|(_, c)| c.volatile && c.sort_ref == sort_ref && sort_ref != 0) {
            return Some(i);
        }
        if !create {
            return None;
        }
        let relids = relids_of(expr);
        // A constant (an aggregate or a set is none, though it names no relation) orders nothing.
        let changes = crate::exprs::has_srf(expr) || crate::exprs::any(expr, &mut |x| upper_only(x));
        let has_const = relids.is_empty() && !volatile && !changes;
        self.list.push(Class {
            members: vec![Member {
                expr: expr.clone(),
                key: key.clone(),
                relids,
                type_oid: type_of(expr),
                child_of: None,
            }],
            families,
            collation,
            sources: Vec::new(),
            has_const,
            volatile,
            sort_ref: if volatile { sort_ref } else { 0 },
            domain,
            merged_into: None,
        });
        Some(self.list.len() - 1)
    }

    /// Adds, for each member over `parent` only, its translation to a child table.
    pub fn add_children(&mut self, parent: usize, translate: &mut dyn FnMut(&Expr) -> Option<Expr>) {
        let only_parent = Relids::one(parent);
        for class in &mut self.list {
            if class.volatile || class.merged_into.is_some() {
                continue;
            }
            for i in 0..class.members.len() {
                let Some(m) = class.members.get(i) else { continue };
                if m.relids != only_parent {
                    continue;
                }
                let Some(expr) = translate(&m.expr) else { continue };
                let member = Member {
                    key: strip_relabel(&expr).clone(),
                    relids: relids_of(&expr),
                    type_oid: m.type_oid,
                    child_of: Some(i),
                    expr,
                };
                class.members.push(member);
            }
        }
    }
}

fn upper_only(e: &Expr) -> bool {
    matches!(e, Expr::Aggref(_) | Expr::WindowFunc(_) | Expr::GroupingFunc(_) | Expr::SubPlan(_))
}

/// The family, equality families and direction of an ordering operator.
pub fn ordering_properties(catalog: &Catalog, ordering: Oid) -> Option<(Oid, Oid, bool)> {
    let found = catalog
        .amops_of_operator(ordering)
        .iter()
        .find(|a| a.access_method == BTREE && a.purpose == b's' && matches!(a.strategy, 1 | 5))?;
    Some((found.family, found.left, found.strategy == 5))
}

impl<'a> Level<'a> {
    /// The equality families that go with a btree family's own equality for a type.
    fn families_for(&self, family: Oid, type_oid: Oid) -> Option<Vec<Oid>> {
        let equality = self.catalog().family_operator(family, type_oid, type_oid, 3)?;
        Some(merge_families(self.catalog(), equality))
    }

    /// The canonical order that sort clauses over `exprs` ask for. `None` where an item cannot be sorted.
    pub(crate) fn pathkeys_for(
        &mut self,
        clauses: &[SortGroupClause],
        find: &dyn Fn(u32) -> Option<Expr>,
    ) -> Option<Vec<PathKey>> {
        let mut out: Vec<PathKey> = Vec::new();
        for c in clauses {
            let expr = find(c.reference)?;
            let (family, input_type, descending) = ordering_properties(self.catalog(), c.ordering)?;
            let families = self.families_for(family, input_type)?;
            let volatile = self.is_volatile(&expr);
            let class = self.classes.for_sort(&expr, families, collation_of(&expr), 0, volatile, c.reference, true)?;
            let key = PathKey { class, family, descending, nulls_first: c.nulls_first };
            if !self.is_redundant(&key, &out) {
                out.push(key);
            }
        }
        Some(out)
    }

    /// Sort clauses without those that say nothing new: constants, and what equals an earlier one. Also the order.
    pub(crate) fn without_redundant(
        &mut self,
        clauses: &[SortGroupClause],
        find: &dyn Fn(u32) -> Option<Expr>,
    ) -> Option<(Vec<SortGroupClause>, Vec<PathKey>)> {
        let (mut kept, mut keys): (Vec<SortGroupClause>, Vec<PathKey>) = Default::default();
        for c in clauses {
            kept.push(c.clone());
            let longer = self.pathkeys_for(&kept, find)?;
            if longer.len() == keys.len() {
                kept.pop();
            }
            keys = longer;
        }
        Some((kept, keys))
    }

    fn is_redundant(&self, key: &PathKey, before: &[PathKey]) -> bool {
        let constant = self.classes.get(key.class).is_some_and(|c| c.has_const && !c.volatile);
        constant || before.iter().any(|k| k.class == key.class)
    }

    /// The order that scanning an index gives, as far as the query has a use for it.
    pub(crate) fn index_pathkeys(&mut self, rel: &Rel<'a>, index: &IndexInfo, backward: bool) -> Vec<PathKey> {
        let mut out: Vec<PathKey> = Vec::new();
        for n in 0..index.key_count {
            let (Some(&family), Some(&input), Some(&collation), Some(&desc), Some(&nulls)) = (
                index.families.get(n),
                index.input_types.get(n),
                index.collations.get(n),
                index.descending.get(n),
                index.nulls_first.get(n),
            ) else {
                break;
            };
            let Some(expr) = index.column_expr(n, rel) else { break };
            let Some(families) = self.families_for(family, input) else { break };
            let found = self.classes.for_sort(&expr, families, collation, rel.domain, false, 0, false);
            let Some(class) = found else {
                if self.is_constant_boolean(rel, index, &expr) {
                    continue;
                }
                break;
            };
            let key = PathKey { class, family, descending: desc != backward, nulls_first: nulls != backward };
            if !self.is_redundant(&key, &out) {
                out.push(key);
            }
        }
        out
    }

    /// `WHERE flag` and `WHERE NOT flag` fix a boolean column without an equality.
    fn is_constant_boolean(&self, _rel: &Rel<'a>, index: &IndexInfo, expr: &Expr) -> bool {
        type_of(expr) == BOOL
            && index.restrictions.iter().any(|c| {
                c.expr == *expr
                    || matches!(&c.expr, Expr::Bool(b)
                        if b.kind == stegodon_nodes::expr::BoolKind::Not && b.args.first() == Some(expr))
            })
    }

    /// Drops the part of an order that nothing above uses.
    pub(crate) fn useful_pathkeys(&self, rel: &Rel<'a>, keys: &[PathKey]) -> Vec<PathKey> {
        let ordering = crate::path::common_prefix(&self.query_pathkeys, keys);
        let merging = keys
            .iter()
            .take_while(|k| {
                self.classes.get(k.class).is_some_and(|c| {
                    c.members
                        .iter()
                        .any(|m| m.child_of.is_none() && !m.relids.is_empty() && !m.relids.overlaps(&rel.relids))
                })
            })
            .count();
        keys.iter().take(ordering.max(merging)).copied().collect()
    }

    /// The equality `left = right` of a class, the clause as written where one says just that.
    pub(crate) fn class_clause(&self, index: usize, left: &Member, right: &Member) -> Option<Rc<Clause>> {
        let class = self.classes.get(index)?;
        for c in &class.sources {
            if let Some((_, l, r)) = c.binary()
                && ((*l == left.expr && *r == right.expr) || (*l == right.expr && *r == left.expr))
            {
                return Some(Rc::clone(c));
            }
        }
        for &family in &class.families {
            let Some(op) = self.catalog().family_operator(family, left.type_oid, right.type_oid, 3) else { continue };
            let Some(row) = self.catalog().operator(op) else { continue };
            let clause = self.clause(Expr::Op(OpExpr {
                operator: op,
                function: row.function,
                result_type: BOOL,
                returns_set: false,
                collation: Oid::INVALID,
                input_collation: class.collation,
                args: vec![left.expr.clone(), right.expr.clone()],
                location: None,
            }));
            clause.class.set(Some(self.classes.resolve(index)));
            return Some(clause);
        }
        None
    }

    /// What the classes say of single relations: `column = constant`, and equal columns of one relation.
    pub(crate) fn class_restrictions(&self) -> Vec<Rc<Clause>> {
        let mut out = Vec::new();
        for (i, class) in self.classes.iter() {
            if class.sources.is_empty() || class.volatile {
                continue;
            }
            let own: Vec<&Member> = class.members.iter().filter(|m| m.child_of.is_none()).collect();
            if class.has_const {
                if let ([_, _], [only]) = (own.as_slice(), class.sources.as_slice()) {
                    out.push(Rc::clone(only));
                    continue;
                }
                // A plain constant is the best to compare with.
                let constant = own
                    .iter()
                    .filter(|m| m.is_const())
                    .find(|m| matches!(m.expr, Expr::Const(_)))
                    .or_else(|| own.iter().find(|m| m.is_const()));
                let Some(constant) = constant else { continue };
                for m in own.iter().filter(|m| !std::ptr::eq(**m, *constant)) {
                    match self.class_clause(i, m, constant) {
                        Some(c) => out.push(c),
                        None => {
                            out.extend(class.sources.iter().filter(|c| c.left.union(&c.right) == m.relids).cloned());
                        }
                    }
                }
            } else {
                let mut last: Vec<(usize, &Member)> = Vec::new();
                for m in own.iter().filter(|m| m.relids.len() == 1) {
                    let Some(rti) = m.relids.single() else { continue };
                    if let Some(prev) = last.iter_mut().find(|(r, _)| *r == rti) {
                        if let Some(c) = self.class_clause(i, prev.1, m) {
                            out.push(c);
                        }
                        prev.1 = m;
                    } else {
                        last.push((rti, m));
                    }
                }
            }
        }
        out
    }

    /// What the classes say of joining `outer` to `inner`: for each class one equality between them.
    pub(crate) fn class_join_clauses(&self, outer: &Relids, inner: &Relids, domain: usize) -> Vec<Rc<Clause>> {
        let both = outer.union(inner);
        let mut out = Vec::new();
        for (i, class) in self.classes.iter() {
            if class.has_const || class.volatile || class.domain != domain || class.sources.is_empty() {
                continue;
            }
            let own = class.members.iter().filter(|m| m.child_of.is_none() && m.relids.is_subset(&both));
            let (mut left, mut right, mut new): (Vec<&Member>, Vec<&Member>, Vec<&Member>) = Default::default();
            for m in own {
                if m.relids.is_subset(outer) {
                    left.push(m);
                } else if m.relids.is_subset(inner) {
                    right.push(m);
                } else {
                    new.push(m);
                }
            }
            let mut best: Option<(u32, Rc<Clause>)> = None;
            'pairs: for l in &left {
                for r in &right {
                    let Some(c) = self.class_clause(i, l, r) else { continue };
                    let is_var = |m: &Member| u32::from(matches!(m.key, Expr::Var(_)));
                    let score = is_var(l) + is_var(r) + u32::from(c.hash_operator.is_some());
                    let better = best.as_ref().is_none_or(|(s, _)| score > *s);
                    if better {
                        best = Some((score, c));
                    }
                    if score == 3 {
                        break 'pairs;
                    }
                }
            }
            let found = best.is_some();
            out.extend(best.map(|(_, c)| c));
            // Members that read both sides become computable only here.
            let anchor = left.first().or(right.first());
            let mut previous = if found || anchor.is_some() { anchor.copied() } else { None };
            for m in new {
                if let Some(p) = previous
                    && let Some(c) = self.class_clause(i, p, m)
                {
                    out.push(c);
                }
                previous = Some(m);
            }
        }
        out
    }
}
