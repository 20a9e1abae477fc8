//! The paths of one join: nested loop, hash, merge (`joinpath.c`).

use std::rc::Rc;

use stegodon_nodes::Expr;
use stegodon_nodes::query::JoinKind;
use stegodon_types::SqlResult;

use crate::clause::Clause;
use crate::cost::{self, Cost, clamp_rows};
use crate::exprs::{self, as_var, strip_relabel};
use crate::joincost::{self, MatchFactors, Sides};
use crate::joinsel::JoinContext;
use crate::level::Level;
use crate::path::{JoinEquality, JoinPath, Path, PathKey, PathKind, contained_in};
use crate::rel::{Rel, Target};

/// What a join is to do.
#[derive(Clone, Debug)]
pub(crate) struct JoinInput {
    pub kind: JoinKind,
    /// What decides on a match.
    pub clauses: Vec<Rc<Clause>>,
    /// What filters the result.
    pub filter: Vec<Rc<Clause>>,
    pub domain: usize,
}

impl<'a> Level<'a> {
    fn join_selectivity(&self, left: &Rel<'a>, right: &Rel<'a>, clauses: &[Rc<Clause>], kind: JoinKind) -> f64 {
        let context = JoinContext { kind, left: &left.relids, right_rows: right.rows };
        self.clauses_selectivity(clauses, Some(&context))
    }

    /// How many rows a join returns.
    pub(crate) fn join_rows(&self, left: &Rel<'a>, right: &Rel<'a>, input: &JoinInput) -> f64 {
        let s = self.join_selectivity(left, right, &input.clauses, input.kind);
        let rows = match input.kind {
            JoinKind::Inner => left.rows * right.rows * s,
            JoinKind::Left | JoinKind::Right => (left.rows * right.rows * s).max(left.rows),
            JoinKind::Full => (left.rows * right.rows * s).max(left.rows).max(right.rows),
            JoinKind::Semi => left.rows * s,
            JoinKind::Anti => left.rows * (1.0 - s),
        };
        let filter = self.join_selectivity(left, right, &input.filter, JoinKind::Inner);
        clamp_rows(rows * filter)
    }

    /// A join's relation, without paths.
    pub(crate) fn join_rel(&mut self, left: &Rel<'a>, right: &Rel<'a>, input: &JoinInput) -> Rel<'a> {
        let relids = left.relids.union(&right.relids);
        let mut rel = Rel::new(0, relids, self.tuple_fraction > 0.0);
        rel.domain = input.domain;
        rel.rows = self.join_rows(left, right, input);
        rel.dummy = match input.kind {
            JoinKind::Inner | JoinKind::Semi => left.dummy || right.dummy,
            JoinKind::Left | JoinKind::Anti | JoinKind::Right => left.dummy,
            JoinKind::Full => left.dummy && right.dummy,
        };
        if rel.dummy {
            rel.rows = 0.0;
        }
        let mut target = Target::default();
        let visible_right = !matches!(input.kind, JoinKind::Semi | JoinKind::Anti);
        for (e, _) in left.target.exprs.iter().chain(right.target.exprs.iter().filter(|_| visible_right)) {
            let keep =
                as_var(e).and_then(|k| self.needed.get(&k)).is_none_or(|n| n.finally || !n.at.is_subset(&rel.relids));
            if keep {
                target.add(e);
            }
        }
        rel.target = self.costed(target);
        rel.parallel = false;
        rel
    }

    /// The equalities of `clauses` that have one side in each relation.
    fn equalities(&self, outer: &Rel<'a>, inner: &Rel<'a>, clauses: &[Rc<Clause>], hash: bool) -> Vec<JoinEquality> {
        let mut out = Vec::new();
        for c in clauses {
            let usable = if hash { c.hash_operator.is_some() } else { !c.merge_families.is_empty() };
            if !usable {
                continue;
            }
            let Some(left_is_outer) = c.joins(&outer.relids, &inner.relids) else { continue };
            let Some((op, _, _)) = c.binary() else { continue };
            if !left_is_outer && !self.catalog().operator(op.operator).is_some_and(|o| o.commutator.is_valid()) {
                continue;
            }
            out.push(JoinEquality { clause: Rc::clone(c), left_is_outer });
        }
        out
    }

    /// Whether an outer row has at most one match: a unique index of the inner table covers the equalities.
    fn inner_is_unique(&self, outer: &Rel<'a>, inner: &Rel<'a>, clauses: &[Rc<Clause>]) -> bool {
        if inner.rti == 0 {
            return false;
        }
        let columns: Vec<Expr> = self
            .equalities(outer, inner, clauses, false)
            .iter()
            .filter_map(|e| {
                let (_, l, r) = e.clause.binary()?;
                Some(strip_relabel(if e.left_is_outer { r } else { l }).clone())
            })
            .collect();
        inner.indexes.iter().any(|i| {
            i.unique
                && i.immediate
                && (i.predicate.is_empty() || i.predicate_ok)
                && (0..i.key_count).all(|n| {
                    i.column_expr(n, inner).is_some_and(|c| {
                        columns.contains(&c)
                            || inner.restrictions.iter().any(|r| {
                                !r.merge_families.is_empty()
                                    && r.binary().is_some_and(|(_, l, x)| {
                                        *strip_relabel(l) == c && exprs::relids_of(x).is_empty()
                                    })
                            })
                    })
                })
        })
    }

    fn match_factors(
        &self,
        outer: &Rel<'a>,
        inner: &Rel<'a>,
        clauses: &[Rc<Clause>],
        anti: bool,
        unique: bool,
    ) -> MatchFactors {
        let kind = if anti { JoinKind::Anti } else { JoinKind::Semi };
        let pairs = self.join_selectivity(outer, inner, clauses, JoinKind::Inner);
        // For a join that merely has a unique inner side PostgreSQL takes the inner join's selectivity here as well.
        let semi = if unique { pairs } else { self.join_selectivity(outer, inner, clauses, kind) };
        let count = if semi > 0.0 { (pairs * inner.rows / semi).max(1.0) } else { 1.0 };
        MatchFactors { outer: semi, count }
    }

    /// Adds the paths that join `left` (outer) and `right` (inner).
    pub(crate) fn add_join_paths(
        &mut self,
        rel: &mut Rel<'a>,
        left: &Rel<'a>,
        right: &Rel<'a>,
        input: &JoinInput,
    ) -> SqlResult<()> {
        if rel.dummy {
            crate::gate::make_empty(rel);
            return Ok(());
        }
        self.join_paths(rel, left, right, input, input.kind);
        match input.kind {
            // The same join with the hash table on the other side.
            JoinKind::Left => self.join_paths(rel, right, left, input, JoinKind::Right),
            JoinKind::Full => self.join_paths(rel, right, left, input, JoinKind::Full),
            _ => {}
        }
        Ok(())
    }

    fn join_paths(&mut self, rel: &mut Rel<'a>, outer: &Rel<'a>, inner: &Rel<'a>, input: &JoinInput, kind: JoinKind) {
        let clauses: Vec<Rc<Clause>> = input.clauses.clone();
        let (Some(outer_best), Some(inner_best)) =
            (outer.list.cheapest_total().cloned(), inner.list.cheapest_total().cloned())
        else {
            return;
        };
        let anti = kind == JoinKind::Anti;
        let unique = matches!(kind, JoinKind::Inner | JoinKind::Left) && self.inner_is_unique(outer, inner, &clauses);
        let needs_one = unique || matches!(kind, JoinKind::Semi | JoinKind::Anti);
        let once = needs_one.then(|| self.match_factors(outer, inner, &clauses, anti, unique));
        if matches!(kind, JoinKind::Inner | JoinKind::Left | JoinKind::Semi | JoinKind::Anti) {
            let inner_kept = self.kept(&inner_best);
            for o in &outer.list.paths {
                for i in std::iter::once(&inner_best).chain(inner_kept.as_ref()) {
                    let path = self.nest_loop_path(rel, o, i, input, kind, unique, once);
                    rel.list.add(path);
                }
            }
        }
        self.hash_paths(rel, (outer, &outer_best), (inner, &inner_best), input, kind, unique, once);
        self.merge_paths(rel, (outer, &outer_best), (inner, &inner_best), input, kind, unique);
    }

    /// The path with its rows kept for reading again, where that helps.
    fn kept(&self, p: &Rc<Path<'a>>) -> Option<Rc<Path<'a>>> {
        let s = self.settings();
        if !s.enable_material || matches!(p.kind, PathKind::Material { .. } | PathKind::Cte { .. }) {
            return None;
        }
        Some(Rc::new(self.material_path(p)))
    }

    pub(crate) fn material_path(&self, p: &Rc<Path<'a>>) -> Path<'a> {
        let s = self.settings();
        let c = cost::material(s, Cost { startup: p.startup, total: p.total }, p.rows, p.target.width);
        Path {
            kind: PathKind::Material { child: Rc::clone(p) },
            target: Rc::clone(&p.target),
            rows: p.rows,
            startup: c.startup,
            total: c.total,
            disabled: p.disabled,
            parallel_safe: p.parallel_safe,
            parallel_aware: false,
            workers: p.workers,
            pathkeys: p.pathkeys.clone(),
        }
    }

    fn rescan(&self, p: &Path<'a>) -> Cost {
        match &p.kind {
            PathKind::Material { .. } | PathKind::Cte { .. } => {
                cost::material_rescan(self.settings(), p.rows, p.target.width)
            }
            PathKind::Function { .. } => Cost { startup: 0.0, total: p.total - p.startup },
            PathKind::Sort { .. } => cost::material_rescan(self.settings(), p.rows, p.target.width),
            _ => Cost { startup: p.startup, total: p.total },
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn finish_path(
        &self,
        rel: &Rel<'a>,
        kind: PathKind<'a>,
        cost: Cost,
        disabled: u32,
        pathkeys: Vec<PathKey>,
        filter: &[Rc<Clause>],
    ) -> Path<'a> {
        let f = self.clauses_cost(filter);
        let startup = cost.startup + rel.target.cost.startup + f.startup;
        let total =
            cost.total + rel.target.cost.startup + f.startup + (rel.target.cost.per_tuple + f.per_tuple) * rel.rows;
        Path {
            kind,
            target: Rc::clone(&rel.target),
            rows: rel.rows,
            startup,
            total,
            disabled,
            parallel_safe: false,
            parallel_aware: false,
            workers: 0,
            pathkeys,
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn nest_loop_path(
        &self,
        rel: &Rel<'a>,
        outer: &Rc<Path<'a>>,
        inner: &Rc<Path<'a>>,
        input: &JoinInput,
        kind: JoinKind,
        unique: bool,
        once: Option<MatchFactors>,
    ) -> Path<'a> {
        let s = self.settings();
        let sides = self.sides(outer, inner);
        let cost = joincost::nest_loop(s, &sides, self.clauses_cost(&input.clauses), once);
        let disabled = outer.disabled + inner.disabled + u32::from(!s.enable_nestloop);
        let join = JoinPath {
            kind,
            outer: Rc::clone(outer),
            inner: Rc::clone(inner),
            clauses: input.clauses.clone(),
            filter: input.filter.clone(),
            inner_unique: unique,
        };
        let keys = self.useful_pathkeys(rel, &outer.pathkeys);
        self.finish_path(rel, PathKind::NestLoop(join), cost, disabled, keys, &input.filter)
    }

    fn sides(&self, outer: &Path<'a>, inner: &Path<'a>) -> Sides {
        Sides {
            outer: Cost { startup: outer.startup, total: outer.total },
            outer_rows: outer.rows.max(1.0),
            inner: Cost { startup: inner.startup, total: inner.total },
            inner_rows: inner.rows.max(1.0),
            rescan: self.rescan(inner),
        }
    }

    /// The part of the inner rows that one bucket holds (`estimate_hash_bucket_stats`).
    fn bucket_part(&self, inner: &Rel<'a>, keys: &[JoinEquality]) -> f64 {
        let buckets = joincost::hash_buckets(self.settings(), inner.rows);
        let mut best: f64 = 1.0;
        for k in keys {
            let Some((_, l, r)) = k.clause.binary() else { continue };
            let v = self.examine(if k.left_is_outer { r } else { l });
            let (mut distinct, is_default) = self.distinct(&v);
            let common = v.mcv().and_then(|m| m.numbers.first()).map_or(0.0, |n| f64::from(*n));
            if is_default {
                best = best.min(common.max(0.1));
                continue;
            }
            let average = (1.0 - v.null_fraction()) / distinct;
            if let Some(base) = v.rti.and_then(|r| self.rel(r).ok())
                && base.tuples > 0.0
            {
                distinct = clamp_rows(distinct * base.rows / base.tuples);
            }
            let mut part = if distinct > buckets { 1.0 / buckets } else { 1.0 / distinct };
            if average > 0.0 && common > average {
                part *= common / average;
            }
            best = best.min(part.clamp(1.0e-6, 1.0));
        }
        best
    }

    #[allow(clippy::too_many_arguments)]
    fn hash_paths(
        &self,
        rel: &mut Rel<'a>,
        (outer, outer_path): (&Rel<'a>, &Rc<Path<'a>>),
        (inner, inner_path): (&Rel<'a>, &Rc<Path<'a>>),
        input: &JoinInput,
        kind: JoinKind,
        unique: bool,
        once: Option<MatchFactors>,
    ) {
        let s = self.settings();
        let hash = self.equalities(outer, inner, &input.clauses, true);
        let too_large = joincost::hash_table_bytes(inner_path.rows, inner_path.target.width) > s.hash_memory_bytes();
        // A hash join does not spill (DESIGN D4): where its table will not fit and the sides can be merged, they are. Where
        // they cannot, it is planned as PostgreSQL does, and execution sees what to do.
        let merges = s.enable_mergejoin && !self.equalities(outer, inner, &input.clauses, false).is_empty();
        if hash.is_empty() || (too_large && merges) {
            return;
        }
        let is_hash = |c: &Rc<Clause>| hash.iter().any(|h| Rc::ptr_eq(&h.clause, c));
        let rest: Vec<Rc<Clause>> = input.clauses.iter().filter(|c| !is_hash(c)).cloned().collect();
        let own: Vec<Rc<Clause>> = hash.iter().map(|h| Rc::clone(&h.clause)).collect();
        let tuples =
            clamp_rows(outer_path.rows * inner_path.rows * self.join_selectivity(outer, inner, &own, JoinKind::Inner));
        let mut cost = joincost::hash_join(
            s,
            &self.sides(outer_path, inner_path),
            hash.len(),
            self.clauses_cost(&own),
            self.clauses_cost(&rest),
            self.bucket_part(inner, &hash),
            tuples,
            once,
            kind == JoinKind::Anti,
        );
        if too_large {
            cost = joincost::in_batches(s, cost, outer_path, inner_path);
        }
        let disabled = outer_path.disabled + inner_path.disabled + u32::from(!s.enable_hashjoin);
        let join = JoinPath {
            kind,
            outer: Rc::clone(outer_path),
            inner: Rc::clone(inner_path),
            clauses: rest,
            filter: input.filter.clone(),
            inner_unique: unique,
        };
        let path = self.finish_path(rel, PathKind::Hash { join, hash }, cost, disabled, Vec::new(), &input.filter);
        rel.list.add(path);
    }

    #[allow(clippy::too_many_arguments)]
    fn merge_paths(
        &mut self,
        rel: &mut Rel<'a>,
        (outer, outer_path): (&Rel<'a>, &Rc<Path<'a>>),
        (inner, inner_path): (&Rel<'a>, &Rc<Path<'a>>),
        input: &JoinInput,
        kind: JoinKind,
        unique: bool,
    ) {
        let all = self.equalities(outer, inner, &input.clauses, false);
        let (mut outer_keys, mut inner_keys, mut merge): (Vec<PathKey>, Vec<PathKey>, Vec<JoinEquality>) =
            Default::default();
        for e in all {
            let Some((op, l, r)) = e.clause.binary() else { continue };
            let (o, i) = if e.left_is_outer { (l, r) } else { (r, l) };
            let (collation, families) = (op.input_collation, e.clause.merge_families.clone());
            let Some(&family) = families.first() else { continue };
            if !crate::rel::is_c_like(self.catalog(), collation) {
                continue;
            }
            let (o, i) = (o.clone(), i.clone());
            let key = |level: &mut Self, x: &Expr, domain: usize| {
                let class = match e.clause.class.get() {
                    Some(c) => Some(level.classes.resolve(c)),
                    None => level.classes.for_sort(x, families.clone(), collation, domain, false, 0, true),
                };
                class.map(|class| PathKey { class, family, descending: false, nulls_first: false })
            };
            let (Some(ok), Some(ik)) = (key(self, &o, outer.domain), key(self, &i, inner.domain)) else { continue };
            let constant = |k: &PathKey| self.classes.get(k.class).is_some_and(|c| c.has_const);
            if outer_keys.iter().any(|k| k.class == ok.class)
                || inner_keys.iter().any(|k| k.class == ik.class)
                || constant(&ok)
                || constant(&ik)
            {
                continue;
            }
            outer_keys.push(ok);
            inner_keys.push(ik);
            merge.push(e);
        }
        // Both orders must be computable from what each side gives.
        let has = |level: &Self, p: &Path<'a>, keys: &[PathKey]| {
            keys.iter().all(|k| {
                level.classes.get(k.class).is_some_and(|c| {
                    c.members.iter().any(|m| {
                        !m.relids.is_empty()
                            && p.target.exprs.iter().any(|(e, _)| *e == m.expr || *strip_relabel(e) == m.key)
                    })
                })
            })
        };
        if merge.is_empty() || !has(self, outer_path, &outer_keys) || !has(self, inner_path, &inner_keys) {
            return;
        }
        let s = self.settings();
        let is_merge = |c: &Rc<Clause>| merge.iter().any(|h| Rc::ptr_eq(&h.clause, c));
        let rest: Vec<Rc<Clause>> = input.clauses.iter().filter(|c| !is_merge(c)).cloned().collect();
        let own: Vec<Rc<Clause>> = merge.iter().map(|h| Rc::clone(&h.clause)).collect();
        let selectivity = self.join_selectivity(outer, inner, &own, JoinKind::Inner);
        let best_sorted = |level: &Self, rel: &Rel<'a>, cheapest: &Rc<Path<'a>>, keys: &[PathKey]| {
            let mut best = Rc::clone(cheapest);
            if !contained_in(keys, &cheapest.pathkeys) {
                best = Rc::new(level.sort_path(cheapest, keys.to_vec(), -1.0));
            }
            for p in rel.list.paths.iter().filter(|p| contained_in(keys, &p.pathkeys)) {
                if (p.disabled, p.total) < (best.disabled, best.total) {
                    best = Rc::clone(p);
                }
            }
            best
        };
        let o = best_sorted(self, outer, outer_path, &outer_keys);
        let mut i = best_sorted(self, inner, inner_path, &inner_keys);
        let tuples = clamp_rows(o.rows * i.rows * selectivity);
        let once = (unique || matches!(kind, JoinKind::Semi | JoinKind::Anti)) && rest.is_empty();
        let (cost, keep) = joincost::merge_join(
            s,
            &self.sides(&o, &i),
            self.clauses_cost(&own),
            self.clauses_cost(&rest),
            tuples,
            once,
        );
        if keep {
            i = Rc::new(self.material_path(&i));
        }
        let disabled = o.disabled + i.disabled + u32::from(!s.enable_mergejoin);
        let keys = match kind {
            JoinKind::Right | JoinKind::Full => Vec::new(),
            _ => self.useful_pathkeys(rel, &o.pathkeys),
        };
        let join =
            JoinPath { kind, outer: o, inner: i, clauses: rest, filter: input.filter.clone(), inner_unique: unique };
        let path = self.finish_path(rel, PathKind::Merge { join, merge }, cost, disabled, keys, &input.filter);
        rel.list.add(path);
    }
}
