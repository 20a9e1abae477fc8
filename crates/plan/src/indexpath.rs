//! Index scans of a relation: plain, index-only, ordered; and the bitmaps that index scans make (`indxpath.c`).

use std::rc::Rc;

use stegodon_format::ids::AttrNumber;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::{BoolExpr, BoolKind};
use stegodon_types::SqlResult;

use crate::clause::Clause;
use crate::cost::{self, BitmapInput, Cost};
use crate::exprs;
use crate::level::Level;
use crate::path::{Bitmap, BitmapCost, IndexClause, Path, PathKind};
use crate::rel::{IndexInfo, Rel};

impl<'a> Level<'a> {
    /// Works out which partial indexes the restrictions allow, and what is left to test with each index.
    pub(crate) fn check_predicates(&self, rel: &mut Rel<'a>) {
        let known: Vec<Expr> = rel.restrictions.iter().map(|c| c.expr.clone()).collect();
        for index in &mut rel.indexes {
            let index = Rc::make_mut(index);
            index.restrictions.clone_from(&rel.restrictions);
            if index.predicate.is_empty() {
                continue;
            }
            index.predicate_ok = index.predicate.iter().all(|p| crate::implication::implied(self, p, &known));
            if index.predicate_ok {
                // What the predicate says need not be tested again.
                index.restrictions.retain(|c| {
                    self.is_mutable(&c.expr) || !crate::implication::implied(self, &c.expr, &index.predicate)
                });
            }
        }
    }

    /// Adds all index paths and the best bitmap path.
    pub(crate) fn add_index_paths(&mut self, rel: &mut Rel<'a>) -> SqlResult<()> {
        if rel.indexes.is_empty() {
            return Ok(());
        }
        let mut bitmaps: Vec<Rc<Bitmap>> = Vec::new();
        for index in rel.indexes.clone() {
            if !index.predicate.is_empty() && !index.predicate_ok {
                continue;
            }
            let matched = self.match_index(rel, &index, &rel.restrictions.clone());
            for path in self.build_index_paths(rel, &index, matched)? {
                if let PathKind::Index(own) = &path.kind
                    && (path.pathkeys.is_empty() || own.selectivity < 1.0)
                {
                    bitmaps.push(Rc::new(Bitmap::Index(Rc::clone(own), path.rows)));
                }
                rel.list.add(path);
            }
        }
        let restrictions = rel.restrictions.clone();
        bitmaps.extend(self.or_bitmaps(rel, &restrictions)?);
        if bitmaps.is_empty() {
            return Ok(());
        }
        let best = self.choose_bitmap_and(rel, &bitmaps);
        let path = self.bitmap_path(rel, &best, 0);
        rel.list.add(path);
        if rel.parallel {
            let (pages, _) = cost::bitmap_pages(self.settings(), self.bitmap_input(rel, &best));
            let workers =
                cost::parallel_workers(self.settings(), rel.parallel_workers, rel.parent.is_some(), pages, -1.0);
            if workers > 0 {
                let path = self.bitmap_path(rel, &best, workers);
                rel.list.add_partial(path);
            }
        }
        Ok(())
    }

    fn build_index_paths(
        &mut self,
        rel: &mut Rel<'a>,
        index: &Rc<IndexInfo>,
        matched: Vec<Vec<IndexClause>>,
    ) -> SqlResult<Vec<Path<'a>>> {
        let mut out = Vec::new();
        let clauses: Rc<[IndexClause]> = matched.into_iter().flatten().collect();
        let wants_order = !self.query_pathkeys.is_empty() || self.classes.iter().any(|(_, c)| c.members.len() > 1);
        let mut forward = Vec::new();
        if wants_order {
            let keys = self.index_pathkeys(rel, index, false);
            forward = self.useful_pathkeys(rel, &keys);
        }
        let index_only = self.index_only_possible(rel, index);
        let by_predicate = !index.predicate.is_empty() && index.predicate_ok;
        if !clauses.is_empty() || !forward.is_empty() || index_only || by_predicate {
            out.extend(self.index_path(rel, index, &clauses, forward.clone(), false, index_only, false)?);
            if rel.parallel
                && let Some(path) = self.index_path(rel, index, &clauses, forward, false, index_only, true)?
            {
                rel.list.add_partial(path);
            }
        }
        if wants_order {
            let keys = self.index_pathkeys(rel, index, true);
            let backward = self.useful_pathkeys(rel, &keys);
            if !backward.is_empty() {
                out.extend(self.index_path(rel, index, &clauses, backward.clone(), true, index_only, false)?);
                if rel.parallel
                    && let Some(path) = self.index_path(rel, index, &clauses, backward, true, index_only, true)?
                {
                    rel.list.add_partial(path);
                }
            }
        }
        Ok(out)
    }

    /// Whether the index has every column that the query needs of the table.
    fn index_only_possible(&self, rel: &Rel<'a>, index: &IndexInfo) -> bool {
        if !self.settings().enable_indexonlyscan {
            return false;
        }
        let mut needed: Vec<AttrNumber> = Vec::new();
        let mut note = |e: &Expr| {
            exprs::walk(e, &mut |x| {
                if let Some((r, a)) = exprs::as_var(x)
                    && r == rel.rti
                    && !needed.contains(&a)
                {
                    needed.push(a);
                }
                true
            });
        };
        rel.target.exprs.iter().for_each(|(e, _)| note(e));
        index.restrictions.iter().for_each(|c| note(&c.expr));
        needed.iter().all(|a| a.0 > 0 && index.columns.contains(a))
    }

    /// A bitmap for each OR whose every arm an index can answer.
    fn or_bitmaps(&self, rel: &Rel<'a>, clauses: &[Rc<Clause>]) -> SqlResult<Vec<Rc<Bitmap>>> {
        let mut out = Vec::new();
        for clause in clauses {
            let Expr::Bool(BoolExpr { kind: BoolKind::Or, args, .. }) = &clause.expr else { continue };
            let mut arms = Vec::new();
            for arm in args {
                let conditions: Vec<Rc<Clause>> =
                    exprs::conjuncts(arm.clone()).into_iter().map(|e| self.clause(e)).collect();
                let mut found = self.arm_bitmaps(rel, &conditions, clauses)?;
                found.extend(self.or_bitmaps(rel, &conditions)?);
                if found.is_empty() {
                    arms.clear();
                    break;
                }
                arms.push(self.choose_bitmap_and(rel, &found));
            }
            if !arms.is_empty() {
                out.push(self.bitmap_or(arms));
            }
        }
        Ok(out)
    }

    fn arm_bitmaps(&self, rel: &Rel<'a>, arm: &[Rc<Clause>], others: &[Rc<Clause>]) -> SqlResult<Vec<Rc<Bitmap>>> {
        let mut out = Vec::new();
        for index in &rel.indexes {
            let mut useful_predicate = false;
            if !index.predicate.is_empty() && !index.predicate_ok {
                let known: Vec<Expr> = arm.iter().chain(others).map(|c| c.expr.clone()).collect();
                if !index.predicate.iter().all(|p| crate::implication::implied(self, p, &known)) {
                    continue;
                }
                let other: Vec<Expr> = others.iter().map(|c| c.expr.clone()).collect();
                useful_predicate = !index.predicate.iter().all(|p| crate::implication::implied(self, p, &other));
            }
            let mut matched = self.match_index(rel, index, arm);
            if matched.iter().all(Vec::is_empty) && !useful_predicate {
                continue;
            }
            for (slot, more) in matched.iter_mut().zip(self.match_index(rel, index, others)) {
                for c in more {
                    if !slot.iter().any(|s| Rc::ptr_eq(&s.clause, &c.clause)) {
                        slot.push(c);
                    }
                }
            }
            let clauses: Rc<[IndexClause]> = matched.into_iter().flatten().collect();
            if clauses.is_empty() && !useful_predicate {
                continue;
            }
            let path = self.index_path(rel, index, &clauses, Vec::new(), false, false, false)?;
            if let Some(Path { kind: PathKind::Index(own), rows, .. }) = path {
                out.push(Rc::new(Bitmap::Index(own, rows)));
            }
        }
        Ok(out)
    }

    /// Cost and selectivity of making a bitmap.
    pub(crate) fn bitmap_cost(&self, b: &Bitmap) -> BitmapCost {
        match b {
            Bitmap::Index(i, rows) => BitmapCost {
                total: i.index_total + 0.1 * self.settings().cpu_operator_cost * rows,
                selectivity: i.selectivity,
            },
            Bitmap::And(_, c) | Bitmap::Or(_, c) => *c,
        }
    }

    fn bitmap_and(&self, children: Vec<Rc<Bitmap>>) -> Rc<Bitmap> {
        let mut out = BitmapCost { total: 0.0, selectivity: 1.0 };
        for (i, c) in children.iter().enumerate() {
            let one = self.bitmap_cost(c);
            out.selectivity *= one.selectivity;
            out.total += one.total;
            if i > 0 {
                out.total += 100.0 * self.settings().cpu_operator_cost;
            }
        }
        Rc::new(Bitmap::And(children, out))
    }

    fn bitmap_or(&self, children: Vec<Rc<Bitmap>>) -> Rc<Bitmap> {
        let mut out = BitmapCost { total: 0.0, selectivity: 0.0 };
        for (i, c) in children.iter().enumerate() {
            let one = self.bitmap_cost(c);
            out.selectivity += one.selectivity;
            out.total += one.total;
            if i > 0 && !matches!(**c, Bitmap::Index(..)) {
                out.total += 100.0 * self.settings().cpu_operator_cost;
            }
        }
        out.selectivity = out.selectivity.min(1.0);
        Rc::new(Bitmap::Or(children, out))
    }

    fn bitmap_input(&self, rel: &Rel<'a>, b: &Bitmap) -> BitmapInput {
        let c = self.bitmap_cost(b);
        BitmapInput { pages: rel.pages, tuples: rel.tuples, selectivity: c.selectivity, index_total: c.total }
    }

    fn bitmap_heap_cost(&self, rel: &Rel<'a>, b: &Bitmap, workers: usize) -> (Cost, f64) {
        let qual = self.clauses_cost(&rel.restrictions);
        cost::bitmap_heap_scan(
            self.settings(),
            (rel.seq_page_cost, rel.random_page_cost),
            self.bitmap_input(rel, b),
            rel.rows,
            qual,
            rel.target.cost,
            workers,
        )
    }

    fn bitmap_path(&self, rel: &Rel<'a>, b: &Rc<Bitmap>, workers: usize) -> Path<'a> {
        let (cost, rows) = self.bitmap_heap_cost(rel, b, workers);
        Path {
            kind: PathKind::BitmapHeap { rti: rel.rti, bitmap: Rc::clone(b) },
            target: Rc::clone(&rel.target),
            rows,
            startup: cost.startup,
            total: cost.total,
            disabled: u32::from(!self.settings().enable_bitmapscan),
            parallel_safe: rel.parallel,
            parallel_aware: workers > 0,
            workers,
            pathkeys: Vec::new(),
        }
    }

    /// The set of bitmaps that, intersected, make the cheapest heap scan (`choose_bitmap_and`).
    fn choose_bitmap_and(&self, rel: &Rel<'a>, bitmaps: &[Rc<Bitmap>]) -> Rc<Bitmap> {
        struct Usage {
            bitmap: Rc<Bitmap>,
            quals: Vec<Expr>,
            predicates: Vec<Expr>,
            cost: BitmapCost,
        }
        let mut list: Vec<Usage> = Vec::new();
        for b in bitmaps {
            let (mut quals, mut predicates) = (Vec::new(), Vec::new());
            collect_conditions(b, &mut quals, &mut predicates);
            let cost = self.bitmap_cost(b);
            let same = |u: &Usage| {
                let set = |a: &[Expr], b: &[Expr]| a.iter().all(|x| b.contains(x)) && b.iter().all(|x| a.contains(x));
                set(&u.quals, &quals) && set(&u.predicates, &predicates)
            };
            match list.iter_mut().find(|u| same(u)) {
                Some(u) => {
                    let better = (cost.total, cost.selectivity) < (u.cost.total, u.cost.selectivity);
                    if better {
                        u.bitmap = Rc::clone(b);
                        u.cost = cost;
                    }
                }
                None => list.push(Usage { bitmap: Rc::clone(b), quals, predicates, cost }),
            }
        }
        list.sort_by(|a, b| {
            let key = |u: &Usage| (u.cost.total, u.cost.selectivity);
            key(a).partial_cmp(&key(b)).unwrap_or(std::cmp::Ordering::Equal)
        });
        let mut best: Option<(f64, Rc<Bitmap>)> = None;
        for (i, first) in list.iter().enumerate() {
            let mut chosen = vec![Rc::clone(&first.bitmap)];
            let mut cost = self.bitmap_heap_cost(rel, &first.bitmap, 0).0.total;
            let mut used: Vec<Expr> = first.quals.iter().chain(&first.predicates).cloned().collect();
            for next in list.iter().skip(i + 1) {
                if next.quals.iter().any(|q| used.contains(q)) {
                    continue;
                }
                if next.predicates.iter().any(|p| used.contains(p) || crate::implication::implied(self, p, &used)) {
                    continue;
                }
                let mut more = chosen.clone();
                more.push(Rc::clone(&next.bitmap));
                let new_cost = self.bitmap_heap_cost(rel, &self.bitmap_and(more.clone()), 0).0.total;
                if new_cost < cost {
                    cost = new_cost;
                    chosen = more;
                    used.extend(next.quals.iter().chain(&next.predicates).cloned());
                }
            }
            if best.as_ref().is_none_or(|(c, _)| cost < *c) {
                let bitmap = match chosen.as_slice() {
                    [only] => Rc::clone(only),
                    _ => self.bitmap_and(chosen),
                };
                best = Some((cost, bitmap));
            }
        }
        best.map_or_else(|| Rc::new(Bitmap::And(Vec::new(), BitmapCost::default())), |(_, b)| b)
    }
}

fn collect_conditions(b: &Bitmap, quals: &mut Vec<Expr>, predicates: &mut Vec<Expr>) {
    match b {
        Bitmap::Index(i, _) => {
            quals.extend(i.clauses.iter().map(|c| c.clause.expr.clone()));
            predicates.extend(i.index.predicate.iter().cloned());
        }
        Bitmap::And(list, _) | Bitmap::Or(list, _) => {
            list.iter().for_each(|c| collect_conditions(c, quals, predicates));
        }
    }
}
