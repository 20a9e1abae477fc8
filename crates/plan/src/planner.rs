//! Planning one query level: from the analysed query to the paths of its final result.

use std::rc::Rc;

use stegodon_format::ids::{AttrNumber, Oid};
use stegodon_nodes::Expr;
use stegodon_nodes::expr::*;
use stegodon_nodes::query::*;
use stegodon_types::{Datum, SqlError, SqlResult};

use crate::context::{Context, PlanInput};
use crate::cost::clamp_rows;
use crate::equivalence::Classes;
use crate::exprs;
use crate::join::Region;
use crate::level::Level;
use crate::node::PlannedStatement;
use crate::path::{Path, PathList, compare_fractional};
use crate::rel::{ColumnType, Rel, Target};
use crate::relids::Relids;
use crate::relsize;

/// Plans a statement.
pub fn plan(query: &Query, input: PlanInput<'_>) -> SqlResult<PlannedStatement> {
    let cx = Rc::new(Context::new(input));
    let out = plan_in(&cx, query);
    // Subqueries hold the context: let go of them, or neither is ever freed.
    cx.subqueries.borrow_mut().clear();
    out
}

fn plan_in<'a>(cx: &Rc<Context<'a>>, query: &Query) -> SqlResult<PlannedStatement> {
    let fraction = if cx.input.cursor { cx.settings().cursor_tuple_fraction } else { 0.0 };
    let (level, list) = plan_level(cx, query.clone(), fraction, &[])?;
    let path = choose(&list, level.tuple_fraction)?;
    crate::finish::finish(cx, &level, &path)
}

/// The path to run, given what part of the rows is wanted.
pub(crate) fn choose<'a>(list: &PathList<'a>, tuple_fraction: f64) -> SqlResult<Rc<Path<'a>>> {
    let cheapest = list.cheapest_total().ok_or_else(|| SqlError::internal("no path"))?;
    if tuple_fraction <= 0.0 {
        return Ok(Rc::clone(cheapest));
    }
    let fraction =
        if tuple_fraction >= 1.0 && cheapest.rows > 0.0 { tuple_fraction / cheapest.rows } else { tuple_fraction };
    let mut best = cheapest;
    for p in &list.paths {
        if !Rc::ptr_eq(p, cheapest) && compare_fractional(best, p, fraction).is_gt() {
            best = p;
        }
    }
    Ok(Rc::clone(best))
}

/// Plans a query level.
pub(crate) fn plan_level<'a>(
    cx: &Rc<Context<'a>>,
    mut query: Query,
    tuple_fraction: f64,
    outer_ctes: &[crate::level::CtePlan],
) -> SqlResult<(Rc<Level<'a>>, PathList<'a>)> {
    cx.enter()?;
    refuse(&query)?;
    let mut level = Level {
        cx: Rc::clone(cx),
        query: Query::default(),
        rels: Vec::new(),
        classes: Classes::default(),
        tuple_fraction,
        limit_tuples: -1.0,
        total_table_pages: 0.0,
        query_pathkeys: Vec::new(),
        subqueries: std::collections::HashMap::new(),
        ctes: outer_ctes.to_vec(),
        cte_cost: 0.0,
        init_plans: Vec::new(),
        parallel_ok: true,
        needed: std::collections::HashMap::new(),
        lateral: std::collections::BTreeMap::new(),
        domains: 0,
    };
    crate::prep::for_each_expr_mut(&mut query, &mut |e| {
        exprs::strip_locations(e);
        cx.bind_params(e);
        Ok(())
    })?;
    crate::cte::plan_ctes(&mut level, &mut query)?;
    crate::pullup::pull_up(&mut level, &mut query)?;
    crate::prep::expand_join_columns(&mut query)?;
    crate::lateral::replace_lateral_vars(&mut level, &mut query)?;
    level.prepare_query(&mut query)?;
    level.query = query;
    let list = if level.query.set_operations.is_some() {
        crate::setop::plan_set_operation(&mut level)?
    } else {
        crate::upper::plan_select(&mut level)?
    };
    cx.leave();
    let list = charge_init_plans(&level, list);
    Ok((Rc::new(level), list))
}

/// What init plans and WITH queries cost is part of every path.
fn charge_init_plans<'a>(level: &Level<'a>, mut list: PathList<'a>) -> PathList<'a> {
    let mut cost = level.cte_cost;
    for i in &level.init_plans {
        cost += level.cx.init_plans.borrow().get(*i).map_or(0.0, |p| p.cost);
    }
    if level.init_plans.is_empty() && level.cte_cost == 0.0 {
        return list;
    }
    list.partial.clear();
    for p in &mut list.paths {
        let mut new = (**p).clone();
        new.startup += cost;
        new.total += cost;
        new.parallel_safe = false;
        *p = Rc::new(new);
    }
    list
}

fn refuse(q: &Query) -> SqlResult<()> {
    if !q.row_marks.is_empty() {
        return Err(SqlError::new(
            stegodon_types::SqlState::ReadOnlySqlTransaction,
            "cannot execute SELECT FOR UPDATE in a read-only transaction",
        ));
    }
    if !q.grouping_sets.is_empty() {
        return Err(SqlError::unsupported("planning of GROUPING SETS"));
    }
    for r in &q.range_table {
        if let RangeTableKind::Relation { sample: Some(_), .. } = r.kind {
            return Err(SqlError::unsupported("TABLESAMPLE"));
        }
    }
    Ok(())
}

impl<'a> Level<'a> {
    /// Folds every expression, brings conditions into canonical form, plans expression subqueries.
    fn prepare_query(&mut self, q: &mut Query) -> SqlResult<()> {
        // PostgreSQL numbers subplans in this order: targets, quals, having, limits.
        let cx = Rc::clone(&self.cx);
        for t in &mut q.targets {
            t.expr = cx.prepare(t.expr.clone(), false)?;
            crate::subselect::replace_sublinks(self, &mut t.expr, false)?;
        }
        let mut condition = |level: &mut Self, e: &mut Option<Expr>| -> SqlResult<()> {
            if let Some(x) = e {
                let mut new = cx.prepare(x.clone(), true)?;
                crate::subselect::replace_sublinks(level, &mut new, true)?;
                *x = new;
            }
            Ok(())
        };
        fn tree<'a>(
            level: &mut Level<'a>,
            t: &mut JoinTree,
            f: &mut dyn FnMut(&mut Level<'a>, &mut Option<Expr>) -> SqlResult<()>,
        ) -> SqlResult<()> {
            match t {
                JoinTree::Relation(_) => Ok(()),
                JoinTree::Join(j) => {
                    tree(level, &mut j.left, f)?;
                    tree(level, &mut j.right, f)?;
                    f(level, &mut j.quals)
                }
                JoinTree::From(x) => {
                    for i in &mut x.items {
                        tree(level, i, f)?;
                    }
                    f(level, &mut x.quals)
                }
            }
        }
        for i in &mut q.from.items {
            tree(self, i, &mut condition)?;
        }
        condition(self, &mut q.from.quals)?;
        condition(self, &mut q.having)?;
        for w in &mut q.windows {
            for e in w.start_offset.iter_mut().chain(w.end_offset.iter_mut()) {
                *e = cx.prepare(e.clone(), false)?;
                crate::subselect::replace_sublinks(self, e, false)?;
            }
        }
        for e in q.offset.iter_mut().chain(q.limit.iter_mut()) {
            *e = cx.prepare(e.clone(), false)?;
            crate::subselect::replace_sublinks(self, e, false)?;
        }
        for r in &mut q.range_table {
            match &mut r.kind {
                RangeTableKind::Function { functions, .. } => {
                    for f in functions {
                        f.call = cx.prepare(f.call.clone(), false)?;
                        crate::subselect::replace_sublinks(self, &mut f.call, false)?;
                    }
                }
                RangeTableKind::Values { rows, .. } => {
                    for e in rows.iter_mut().flatten() {
                        *e = cx.prepare(e.clone(), false)?;
                        crate::subselect::replace_sublinks(self, e, false)?;
                    }
                }
                _ => {}
            }
        }
        self.check_correlation(q)?;
        self.move_having(q);
        crate::outerjoin::reduce(self, q)
    }

    fn check_correlation(&self, q: &mut Query) -> SqlResult<()> {
        crate::prep::for_each_expr_mut(q, &mut |e| {
            let outer = exprs::any(e, &mut |x| match x {
                Expr::Var(v) => v.levels_up > 0,
                Expr::Aggref(a) => a.levels_up > 0,
                Expr::GroupingFunc(g) => g.levels_up > 0,
                _ => false,
            });
            if outer {
                Err(SqlError::unsupported("a subquery in FROM that reads other FROM items (LATERAL)"))
            } else {
                Ok(())
            }
        })
    }

    /// HAVING conditions that no aggregate decides are tested before grouping.
    fn move_having(&self, q: &mut Query) {
        let Some(having) = q.having.take() else { return };
        if q.group_by.is_empty() {
            // Without groups there is one row even of no input: such conditions stay.
            q.having = Some(having);
            return;
        }
        let (mut keep, mut moved) = (Vec::new(), Vec::new());
        for c in exprs::conjuncts(having) {
            if exprs::has_aggregate(&c)
                || self.is_volatile(&c)
                || exprs::any(&c, &mut |x| matches!(x, Expr::SubPlan(_)))
            {
                keep.push(c);
            } else {
                moved.push(c);
            }
        }
        if !moved.is_empty() {
            let mut all = q.from.quals.take().map(exprs::conjuncts).unwrap_or_default();
            all.extend(moved);
            q.from.quals = Some(exprs::and(all));
        }
        q.having = (!keep.is_empty()).then(|| exprs::and(keep));
    }

    /// Whether workers may run any of this query.
    fn check_parallel(&mut self) -> SqlResult<()> {
        let mut ok =
            self.settings().max_parallel_workers_per_gather > 0 && !self.cx.serial.get() && self.lateral.is_empty();
        let mut q = std::mem::take(&mut self.query);
        let this = &*self;
        crate::prep::for_each_expr_mut(&mut q, &mut |e| {
            exprs::walk(e, &mut |x| {
                let unsafe_function = |f: Oid| this.catalog().proc(f).is_none_or(|p| p.parallel == b'u');
                match x {
                    Expr::Func(f) if unsafe_function(f.function) => ok = false,
                    Expr::Op(o) | Expr::Distinct(o) | Expr::NullIf(o) if unsafe_function(o.function) => ok = false,
                    Expr::Aggref(a) if unsafe_function(a.function) => ok = false,
                    Expr::NextValue(_) => ok = false,
                    _ => {}
                }
                true
            });
            Ok(())
        })?;
        self.query = q;
        self.parallel_ok = ok;
        Ok(())
    }

    /// Builds everything below grouping: the relation of all FROM items with WHERE applied. `final_exprs` are what the
    /// upper part reads; `keys` gives the order it would like once classes are known.
    pub(crate) fn plan_from(
        &mut self,
        final_exprs: &[Expr],
        keys: &mut dyn FnMut(&mut Self) -> SqlResult<()>,
    ) -> SqlResult<Rel<'a>> {
        self.check_parallel()?;
        let from = self.query.from.clone();
        if from.items.is_empty() {
            return self.plan_result(from.quals, keys);
        }
        let count = self.query.range_table.len();
        self.rels.resize_with(count + 1, || None);
        let mut region = Region::default();
        self.collect_items(&JoinTree::From(Box::new(from)), &mut region, 0)?;
        self.settle_lateral(&mut region)?;
        self.check_lateral(&region)?;
        let all = self.base_relations(&region);
        for &rti in &all {
            let domain = region.domain_of(rti).unwrap_or(0);
            self.init_rel(rti, domain)?;
        }
        self.distribute(&mut region)?;
        let restrictions = self.class_restrictions();
        for c in restrictions {
            let domain = c.class.get().and_then(|i| self.classes.get(i)).map_or(0, |k| k.domain);
            if let Some(rti) = c.relids.single() {
                self.rel_mut(rti)?.restrictions.push(c);
            } else if !region.add_clause(&c, domain) {
                return Err(SqlError::internal("a derived condition has no place"));
            }
        }
        keys(self)?;
        self.note_needed(final_exprs, &region);
        for &rti in &all {
            self.size_rel(rti)?;
        }
        self.total_table_pages = all
            .iter()
            .filter_map(|r| self.rel(*r).ok())
            .filter(|r| !r.dummy)
            .map(|r| {
                if r.children.is_empty() {
                    r.pages
                } else {
                    r.children.iter().filter_map(|c| self.rel(*c).ok()).map(|c| c.pages).sum()
                }
            })
            .sum();
        for &rti in &all {
            self.path_rel(rti, all.len() > 1)?;
        }
        self.plan_region(&region)
    }

    /// A query without FROM.
    fn plan_result(
        &mut self,
        quals: Option<Expr>,
        keys: &mut dyn FnMut(&mut Self) -> SqlResult<()>,
    ) -> SqlResult<Rel<'a>> {
        keys(self)?;
        let mut rel = Rel::new(0, Relids::default(), self.tuple_fraction > 0.0);
        rel.rows = 1.0;
        let filter = quals.map(exprs::conjuncts).unwrap_or_default();
        let mut total = self.settings().cpu_tuple_cost;
        let mut startup = 0.0;
        for f in &filter {
            let c = self.expr_cost(f);
            startup += c.startup + c.per_tuple;
            total += c.startup + c.per_tuple;
        }
        rel.list.add(Path {
            kind: crate::path::PathKind::Result { child: None, filter },
            target: Rc::default(),
            rows: 1.0,
            startup,
            total,
            disabled: 0,
            parallel_safe: false,
            parallel_aware: false,
            workers: 0,
            pathkeys: Vec::new(),
        });
        Ok(rel)
    }

    fn base_relations(&self, region: &Region) -> Vec<usize> {
        let mut out: Vec<usize> = region.relids().iter().collect();
        out.sort_unstable();
        out
    }

    /// Describes a range table entry that FROM reads.
    pub(crate) fn init_rel(&mut self, rti: usize, domain: usize) -> SqlResult<()> {
        let rte = self.rte(rti)?.clone();
        let mut rel = Rel::new(rti, Relids::one(rti), self.tuple_fraction > 0.0);
        rel.domain = domain;
        rel.seq_page_cost = self.settings().seq_page_cost;
        rel.random_page_cost = self.settings().random_page_cost;
        match &rte.kind {
            RangeTableKind::Relation { relation, inherit, .. } => {
                let row = self.cx.relation(*relation)?;
                match row.kind {
                    b'r' | b'm' | b'p' | b't' => {}
                    b'S' => {}
                    b'f' => return Err(SqlError::unsupported("scanning a foreign table")),
                    _ => {
                        return Err(SqlError::new(
                            stegodon_types::SqlState::WrongObjectType,
                            format!("cannot open relation \"{}\"", row.name),
                        ));
                    }
                }
                if row.row_security {
                    return Err(SqlError::unsupported(format!(
                        "reading table \"{}\", which has row security,",
                        row.name
                    )));
                }
                if row.kind == b'm' && !row.populated {
                    return Err(SqlError::new(
                        stegodon_types::SqlState::ObjectNotInPrerequisiteState,
                        format!("materialized view \"{}\" has not been populated", row.name),
                    )
                    .hint("Use the REFRESH MATERIALIZED VIEW command."));
                }
                self.init_table(&mut rel, *relation, *inherit)?;
            }
            RangeTableKind::Subquery(sub) => {
                rel.columns = sub
                    .targets
                    .iter()
                    .filter(|t| !t.junk)
                    .map(|t| ColumnType {
                        type_oid: exprs::type_of(&t.expr),
                        typmod: exprs::typmod_of(&t.expr),
                        collation: exprs::collation_of(&t.expr),
                        not_null: false,
                    })
                    .collect();
            }
            RangeTableKind::Function { functions, ordinality } => {
                for f in functions {
                    rel.columns.extend(f.columns.iter().map(|(_, type_oid, typmod, collation)| ColumnType {
                        type_oid: *type_oid,
                        typmod: *typmod,
                        collation: *collation,
                        not_null: false,
                    }));
                }
                if *ordinality {
                    rel.columns.push(ColumnType {
                        type_oid: exprs::INT8,
                        typmod: -1,
                        collation: Oid::INVALID,
                        not_null: false,
                    });
                }
                let mut safe = true;
                for f in functions {
                    if !exprs::relids_of(&f.call).is_empty() {
                        return Err(SqlError::unsupported("a function in FROM that reads other FROM items (LATERAL)"));
                    }
                    safe &= self.is_parallel_safe(&f.call);
                }
                rel.parallel = safe && self.parallel_ok;
            }
            RangeTableKind::Values { types, rows } => {
                if rows.iter().flatten().any(|e| !exprs::relids_of(e).is_empty()) {
                    return Err(SqlError::unsupported("VALUES that read other FROM items (LATERAL)"));
                }
                rel.columns = columns(types);
                rel.parallel = self.parallel_ok && rows.iter().flatten().all(|e| self.is_parallel_safe(e));
            }
            RangeTableKind::Cte { types, .. } => rel.columns = columns(types),
            RangeTableKind::Result => {}
            RangeTableKind::Join { .. } | RangeTableKind::Group { .. } => {
                return Err(SqlError::internal("a join entry is no relation"));
            }
        }
        self.put_rel(rel);
        Ok(())
    }

    /// Fills in what is known of a table.
    pub(crate) fn init_table(&mut self, rel: &mut Rel<'a>, oid: Oid, inherit: bool) -> SqlResult<()> {
        let row = self.cx.relation(oid)?;
        rel.oid = oid;
        rel.columns = row
            .attributes
            .iter()
            .map(|a| ColumnType {
                type_oid: a.type_oid,
                typmod: a.typmod,
                collation: a.collation,
                not_null: a.not_null,
            })
            .collect();
        rel.inherited = inherit && (row.kind == b'p' || !row.children.is_empty());
        if !(rel.inherited && row.kind != b'p') {
            let (pages, tuples, visible) = relsize::table_size(&self.cx, row)?;
            rel.pages = pages;
            rel.tuples = tuples;
            rel.all_visible = visible;
        }
        rel.parallel_workers = relsize::option(row, "parallel_workers").and_then(|v| v.parse().ok());
        // A temporary table belongs to one backend.
        rel.parallel = self.parallel_ok && row.persistence != b't';
        for (i, c) in rel.columns.iter().enumerate() {
            let attno = AttrNumber(i as i16 + 1);
            rel.widths.insert(attno, relsize::column_width(self.catalog(), oid, attno, *c, rel.inherited));
        }
        for attno in -6..0 {
            if let Some(t) = crate::rel::system_column_type(AttrNumber(attno)) {
                rel.widths.insert(AttrNumber(attno), relsize::type_width(self.catalog(), t, -1));
            }
        }
        if row.kind != b'p' && !rel.inherited {
            rel.indexes = relsize::indexes(&self.cx, row, rel)?;
        }
        Ok(())
    }

    /// Estimates a base relation's rows and target.
    pub(crate) fn size_rel(&mut self, rti: usize) -> SqlResult<()> {
        let mut rel = self.rel(rti)?.clone();
        rel.target = self.needed_target(rti, &rel);
        for c in &rel.restrictions {
            if matches!(exprs::as_bool_const(&c.expr), Some(Some(false) | None)) {
                rel.dummy = true;
            }
        }
        let quals_safe = rel.restrictions.iter().all(|c| self.is_parallel_safe(&c.expr))
            && rel.target.exprs.iter().all(|(e, _)| self.is_parallel_safe(e));
        rel.parallel &= quals_safe;
        let rte = self.rte(rti)?.clone();
        match &rte.kind {
            RangeTableKind::Relation { .. } if rel.inherited => {
                self.put_rel(rel);
                return crate::partition::expand(self, rti);
            }
            RangeTableKind::Relation { .. } => {
                self.put_rel(rel.clone());
                self.check_predicates(&mut rel);
                self.put_rel(rel.clone());
                self.estimate_rows(&mut rel);
            }
            RangeTableKind::Subquery(_) => {
                self.put_rel(rel);
                return crate::subquery::plan_from_subquery(self, rti);
            }
            RangeTableKind::Function { functions, .. } => {
                rel.tuples = functions.iter().map(|f| self.set_rows(&f.call)).fold(0.0, f64::max);
                self.put_rel(rel.clone());
                self.estimate_rows(&mut rel);
            }
            RangeTableKind::Values { rows, .. } => {
                rel.tuples = rows.len() as f64;
                self.put_rel(rel.clone());
                self.estimate_rows(&mut rel);
            }
            RangeTableKind::Cte { name, .. } => {
                rel.tuples = self.ctes.iter().find(|c| c.name == *name).map_or(1000.0, |c| c.rows);
                rel.parallel = false;
                self.put_rel(rel.clone());
                self.estimate_rows(&mut rel);
            }
            _ => {
                rel.tuples = 1.0;
                rel.rows = 1.0;
            }
        }
        if rel.dummy {
            rel.rows = 0.0;
        }
        self.put_rel(rel);
        Ok(())
    }

    /// How many rows a call in FROM returns.
    pub(crate) fn set_rows(&self, call: &Expr) -> f64 {
        let rows = |f: Oid| self.catalog().proc(f).map_or(1.0, |p| f64::from(p.rows));
        match call {
            Expr::Func(f) if f.returns_set => {
                if let Some(n) = self.series_rows(f) {
                    return clamp_rows(n);
                }
                if self.catalog().proc(f.function).is_some_and(|p| p.name == "unnest" && f.args.len() == 1)
                    && let Some(a) = f.args.first()
                {
                    return clamp_rows(self.array_length(a));
                }
                clamp_rows(rows(f.function))
            }
            Expr::Op(o) if o.returns_set => clamp_rows(rows(o.function)),
            _ => 1.0,
        }
    }

    /// `generate_series` over known integers.
    fn series_rows(&self, f: &FuncExpr) -> Option<f64> {
        if !matches!(f.function.0, 1066..=1069) {
            return None;
        }
        let number = |e: &Expr| match self.estimate_value(e) {
            Some(Some(Datum::Int32(n))) => Some(Some(f64::from(n))),
            Some(Some(Datum::Int64(n))) => Some(Some(n as f64)),
            Some(None) => Some(None),
            _ => None,
        };
        let mut values = Vec::new();
        for a in &f.args {
            match number(a)? {
                Some(n) => values.push(n),
                None => return Some(0.0),
            }
        }
        match values.as_slice() {
            [a, b] => Some((b - a + 1.0).floor()),
            [a, b, step] if *step != 0.0 => Some(((b - a + step) / step).floor()),
            _ => None,
        }
    }

    /// Finds the paths of a base relation.
    pub(crate) fn path_rel(&mut self, rti: usize, one_of_many: bool) -> SqlResult<()> {
        let mut rel = self.rel(rti)?.clone();
        if rel.dummy {
            rel.list.paths = vec![Rc::new(empty_path(&rel.target))];
            rel.list.partial.clear();
            self.put_rel(rel);
            return Ok(());
        }
        let rte = self.rte(rti)?.clone();
        match &rte.kind {
            RangeTableKind::Relation { .. } if rel.inherited => crate::partition::add_append_paths(self, &mut rel)?,
            RangeTableKind::Relation { .. } => self.add_table_paths(&mut rel)?,
            RangeTableKind::Subquery(_) => crate::subquery::add_subquery_paths(self, &mut rel)?,
            _ => self.add_simple_path(&mut rel)?,
        }
        if one_of_many && rel.parent.is_none() {
            let mut list = std::mem::take(&mut rel.list);
            self.add_gather_paths(&mut list, Some(rel.rows));
            rel.list = list;
        }
        self.put_rel(rel);
        Ok(())
    }

    /// Which columns anything above each relation's scan reads, and up to which join.
    fn note_needed(&mut self, final_exprs: &[Expr], region: &Region) {
        let mut needed = std::collections::HashMap::new();
        let mut note = |e: &Expr, at: Option<&Relids>| {
            let mut vars = Vec::new();
            exprs::pull_vars(e, &mut |_| false, &mut vars);
            for v in vars {
                let entry: &mut (Relids, bool, Expr) =
                    needed.entry(exprs::as_var(&v)).or_insert((Relids::default(), false, v));
                match at {
                    Some(r) => entry.0.add(r),
                    None => entry.1 = true,
                }
            }
        };
        final_exprs.iter().for_each(|e| note(e, None));
        region.for_each_join_clause(&mut |c, at| note(&c.expr, Some(&c.relids.union(at))));
        for (rti, values) in &self.lateral {
            for (_, e) in values {
                note(e, Some(&exprs::relids_of(e).union(&Relids::one(*rti))));
            }
        }
        for (_, class) in self.classes.iter() {
            let relids = class.members.iter().fold(Relids::default(), |a, m| a.union(&m.relids));
            if class.has_const || relids.len() < 2 || class.sources.is_empty() {
                continue;
            }
            class.members.iter().for_each(|m| note(&m.expr, Some(&relids)));
        }
        self.needed = needed
            .into_iter()
            .filter_map(|(k, (r, f, e))| Some((k?, crate::level::Needed { at: r, finally: f, expr: e })))
            .collect();
    }

    fn needed_target(&self, rti: usize, rel: &Rel<'a>) -> Rc<Target> {
        let mut list: Vec<_> = self.needed.iter().filter(|((r, _), _)| *r == rti).collect();
        list.sort_by_key(|((_, a), _)| *a);
        let mut target = Target::default();
        list.iter().for_each(|(_, n)| target.add(&n.expr));
        let _ = rel;
        self.costed(target)
    }
}

fn columns(types: &[(Oid, i32, Oid)]) -> Vec<ColumnType> {
    let column =
        |&(type_oid, typmod, collation): &(Oid, i32, Oid)| ColumnType { type_oid, typmod, collation, not_null: false };
    types.iter().map(column).collect()
}

/// A path without rows.
pub(crate) fn empty_path<'a>(target: &Rc<Target>) -> Path<'a> {
    Path {
        kind: crate::path::PathKind::Empty,
        // Nothing is ever put out.
        target: Rc::new(Target { width: 0, cost: crate::path::QualCost::default(), ..(**target).clone() }),
        rows: 0.0,
        startup: 0.0,
        total: 0.0,
        disabled: 0,
        parallel_safe: false,
        parallel_aware: false,
        workers: 0,
        pathkeys: Vec::new(),
    }
}
