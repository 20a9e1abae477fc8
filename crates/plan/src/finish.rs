//! From chosen paths to plan nodes: columns become places in the child's output, range tables become one
//! (`createplan.c`, `setrefs.c`).

use std::rc::Rc;

use stegodon_format::ids::{AttrNumber, Oid};
use stegodon_nodes::Expr;
use stegodon_nodes::expr::*;
use stegodon_nodes::query::RangeTableKind;
use stegodon_types::{SqlError, SqlResult};

use crate::clause::Clause;
use crate::context::Context;
use crate::exprs::{self, type_of};
use crate::finish_upper::{group_keys, key_position, resolve_aggregated, sort_keys, window_of};
use crate::level::Level;
use crate::node::*;
use crate::path::{Path, PathKey, PathKind};

/// A node with what its output columns are, in the terms of its query level.
pub(crate) struct Built {
    pub node: PlanNode,
    pub exprs: Vec<Expr>,
}

/// What is collected while plans are laid out.
#[derive(Default)]
pub(crate) struct Finisher {
    pub range_table: Vec<PlanRelation>,
    /// Parents whose children are appended: EXPLAIN counts their names as used.
    pub parents: Vec<usize>,
}

/// A level and where its range table begins in the flat one.
#[derive(Clone, Copy)]
pub(crate) struct View<'l, 'a> {
    pub level: &'l Level<'a>,
    pub offset: usize,
}

/// Lays out a statement's plan.
pub(crate) fn finish<'a>(
    cx: &Rc<Context<'a>>,
    level: &Rc<Level<'a>>,
    path: &Rc<Path<'a>>,
) -> SqlResult<PlannedStatement> {
    let mut f = Finisher::default();
    let mut root = f.build_level(level, path)?;
    name_targets(&mut root, level);
    let count = cx.subqueries.borrow().len();
    let mut subplans = Vec::new();
    for i in 0..count {
        let (sub_level, sub_path) = {
            let list = cx.subqueries.borrow();
            let s = list.get(i).ok_or_else(|| SqlError::internal("a subplan vanished"))?;
            (Rc::clone(&s.level), Rc::clone(&s.path))
        };
        let mut built = f.build_level(&sub_level, &sub_path)?;
        name_targets(&mut built, &sub_level);
        subplans.push(built.node);
    }
    let typmods = crate::setop::typmods(&level.query);
    let columns = level
        .query
        .targets
        .iter()
        .filter(|t| !t.junk)
        .enumerate()
        .map(|(i, t)| ResultColumn {
            name: t.name.clone().unwrap_or_else(|| "?column?".to_owned()),
            type_oid: type_of(&t.expr),
            typmod: typmods.as_ref().and_then(|m| m.get(i).copied()).unwrap_or_else(|| exprs::typmod_of(&t.expr)),
            origin_table: t.origin_table,
            origin_column: t.origin_column,
        })
        .collect();
    let mut node = root.node;
    let mut next = 0;
    number(&mut node, &mut next);
    subplans.iter_mut().for_each(|s| number(s, &mut next));
    let init_plans = cx.init_plans.borrow().iter().map(|p| p.init.clone()).collect();
    crate::names::unique_aliases(&mut f.range_table, &node, &subplans, &f.parents);
    Ok(PlannedStatement {
        root: node,
        subplans,
        init_plans,
        exec_param_count: cx.param_count.get() as usize,
        range_table: f.range_table,
        columns,
        depends_on_params: cx.used_params.get(),
    })
}

/// Gives the root's columns the query's names.
fn name_targets(built: &mut Built, level: &Level<'_>) {
    let wanted = level.query.targets.len();
    for (i, t) in built.node.targets.iter_mut().enumerate() {
        match level.query.targets.get(i) {
            Some(q) => {
                t.name.clone_from(&q.name);
                t.junk = q.junk;
                t.origin_table = q.origin_table;
                t.origin_column = q.origin_column;
                t.sort_group_ref = q.sort_group_ref;
            }
            None => t.junk = i >= wanted,
        }
    }
}

fn number(node: &mut PlanNode, next: &mut usize) {
    node.id = *next;
    *next += 1;
    for_each_child_mut(node, &mut |c| number(c, next));
}

/// Calls `f` for each child of a node, in EXPLAIN's order.
pub fn for_each_child_mut(node: &mut PlanNode, f: &mut dyn FnMut(&mut PlanNode)) {
    match &mut node.kind {
        PlanKind::Result { child, .. } => child.iter_mut().for_each(|c| f(c)),
        PlanKind::ProjectSet { child }
        | PlanKind::SubqueryScan { child, .. }
        | PlanKind::Hash { child }
        | PlanKind::Materialize { child }
        | PlanKind::Sort { child, .. }
        | PlanKind::Aggregate { child, .. }
        | PlanKind::Group { child, .. }
        | PlanKind::WindowAgg { child, .. }
        | PlanKind::Unique { child, .. }
        | PlanKind::Limit { child, .. }
        | PlanKind::Gather { child, .. }
        | PlanKind::GatherMerge { child, .. } => f(child),
        PlanKind::BitmapHeapScan { bitmap, .. } => f(bitmap),
        PlanKind::BitmapAnd { children }
        | PlanKind::BitmapOr { children }
        | PlanKind::Append { children, .. }
        | PlanKind::MergeAppend { children, .. } => children.iter_mut().for_each(f),
        PlanKind::NestLoop(j) | PlanKind::MergeJoin { join: j, .. } | PlanKind::HashJoin { join: j, .. } => {
            f(&mut j.outer);
            f(&mut j.inner);
        }
        PlanKind::SetOp { outer, inner, .. } => {
            f(outer);
            f(inner);
        }
        PlanKind::SeqScan { .. }
        | PlanKind::IndexScan(_)
        | PlanKind::IndexOnlyScan(_)
        | PlanKind::BitmapIndexScan(_)
        | PlanKind::TidScan { .. }
        | PlanKind::TidRangeScan { .. }
        | PlanKind::FunctionScan { .. }
        | PlanKind::ValuesScan { .. }
        | PlanKind::CteScan { .. } => {}
    }
}

/// A column of the left (or only) child.
pub(crate) fn outer_var(source: VarSource, column: usize, like: &Expr) -> Expr {
    Expr::Var(Var {
        source,
        attno: AttrNumber(column as i16),
        type_oid: type_of(like),
        typmod: exprs::typmod_of(like),
        collation: exprs::collation_of(like),
        levels_up: 0,
        location: None,
    })
}

/// The place (from 1) of an expression in an output, relabellings of columns looked through.
pub(crate) fn position(output: &[Expr], e: &Expr) -> Option<usize> {
    output.iter().position(|o| o == e).map(|i| i + 1)
}

/// Rewrites an expression over a level's columns to one over children's outputs.
pub(crate) fn resolve(e: &Expr, inputs: &[(VarSource, &[Expr])]) -> SqlResult<Expr> {
    let out = exprs::try_replaced(e, &mut |x| {
        if matches!(x, Expr::Const(_) | Expr::Param(_)) {
            return Ok(None);
        }
        for (source, output) in inputs {
            if let Some(i) = position(output, x) {
                return Ok(Some(outer_var(*source, i, x)));
            }
        }
        match x {
            Expr::Var(v) if matches!(v.source, VarSource::Relation(_)) => {
                Err(SqlError::internal(format!("a column is missing from its input: {:?}.{}", v.source, v.attno)))
            }
            _ => Ok(None),
        }
    })?;
    Ok(out)
}

fn estimate(p: &Path<'_>) -> Estimate {
    Estimate {
        startup_cost: p.startup,
        total_cost: p.total,
        rows: p.rows,
        width_bytes: p.target.width,
        disabled_nodes: p.disabled,
    }
}

impl<'l, 'a> View<'l, 'a> {
    /// An expression of a scan, over the flat range table.
    pub fn shift(&self, e: &Expr) -> Expr {
        let offset = self.offset;
        if offset == 0 {
            return e.clone();
        }
        exprs::replaced(e, &mut |x| match x {
            Expr::Var(v) => match v.source {
                VarSource::Relation(r) => Some(Expr::Var(Var { source: VarSource::Relation(r + offset), ..v.clone() })),
                _ => None,
            },
            _ => None,
        })
    }

    /// Puts rows of columns in the places of whole rows of a relation that is no table.
    fn make_rows(&self, rti: usize, e: &mut Expr) {
        let (Ok(rel), Ok(rte)) = (self.level.rel(rti), self.level.rte(rti)) else { return };
        let source = VarSource::Relation(rti + self.offset);
        exprs::replace(e, &mut |x| match x {
            Expr::Var(v) if v.source == source && v.attno.0 == 0 => {
                let column = |(i, c): (usize, &crate::rel::ColumnType)| {
                    exprs::relation_var(rti + self.offset, AttrNumber(i as i16 + 1), c.type_oid, c.typmod, c.collation)
                };
                Some(Expr::Row(RowExpr {
                    args: rel.columns.iter().enumerate().map(column).collect(),
                    row_type: v.type_oid,
                    names: rte.columns.clone(),
                    form: CoercionForm::ImplicitCast,
                    location: None,
                }))
            }
            _ => None,
        });
    }

    fn scan_targets(&self, p: &Path<'a>) -> (Vec<TargetEntry>, Vec<Expr>) {
        let exprs: Vec<Expr> = p.target.exprs.iter().map(|(e, _)| e.clone()).collect();
        (exprs.iter().enumerate().map(|(i, e)| exprs::target(self.shift(e), i + 1)).collect(), exprs)
    }

    /// Conditions, the cheap ones first.
    fn quals<'c>(&self, clauses: impl IntoIterator<Item = &'c Rc<Clause>>) -> Vec<Expr> {
        self.ordered(clauses).iter().map(|e| self.shift(e)).collect()
    }

    pub(crate) fn ordered<'c>(&self, clauses: impl IntoIterator<Item = &'c Rc<Clause>>) -> Vec<Expr> {
        let mut list: Vec<&Rc<Clause>> = clauses.into_iter().filter(|c| !c.pseudoconstant).collect();
        list.sort_by(|a, b| a.cost.per_tuple.total_cmp(&b.cost.per_tuple));
        let mut out: Vec<Expr> = Vec::new();
        for c in list {
            if !out.contains(&c.expr) {
                out.push(c.expr.clone());
            }
        }
        out
    }
}

impl Finisher {
    /// Lays out a whole query level.
    pub(crate) fn build_level<'a>(&mut self, level: &Rc<Level<'a>>, path: &Rc<Path<'a>>) -> SqlResult<Built> {
        let offset = self.range_table.len();
        for r in &level.query.range_table {
            let (relation, name) = match &r.kind {
                RangeTableKind::Relation { relation, .. } => {
                    (*relation, level.catalog().relation(*relation).map_or_else(|| r.name.clone(), |x| x.name.clone()))
                }
                RangeTableKind::Function { functions, .. } => {
                    let name = match functions.first().map(|f| &f.call) {
                        Some(Expr::Func(f)) => level.catalog().proc(f.function).map(|p| p.name.clone()),
                        _ => None,
                    };
                    (Oid::INVALID, name.unwrap_or_else(|| r.name.clone()))
                }
                RangeTableKind::Cte { name, .. } => (Oid::INVALID, name.clone()),
                _ => (Oid::INVALID, r.name.clone()),
            };
            let access =
                r.requires_select.then(|| AccessCheck { user: r.check_as_user, columns: r.selected_columns.clone() });
            self.range_table.push(PlanRelation {
                relation,
                name,
                alias: r.name.clone(),
                columns: r.columns.clone(),
                access,
            });
        }
        if level.query.from.items.is_empty() && level.query.set_operations.is_none() {
            // As PostgreSQL, which reads a row of nothing where there is no FROM: EXPLAIN counts it.
            let name = "*RESULT*".to_owned();
            let (alias, columns) = (name.clone(), Vec::new());
            self.range_table.push(PlanRelation { relation: Oid::INVALID, name, alias, columns, access: None });
        }
        let view = View { level, offset };
        let mut built = self.build(view, path)?;
        built.node.init_plans.extend(level.init_plans.iter().copied());
        Ok(built)
    }

    /// Lays out one path.
    pub(crate) fn build<'a>(&mut self, v: View<'_, 'a>, p: &Rc<Path<'a>>) -> SqlResult<Built> {
        let node = |kind: PlanKind, targets: Vec<TargetEntry>, quals: Vec<Expr>| PlanNode {
            kind,
            id: 0,
            estimate: estimate(p),
            targets,
            quals,
            parallel_aware: p.parallel_aware,
            init_plans: Vec::new(),
        };
        let level = v.level;
        // Of what is no table a whole row is made of its columns.
        let whole = |rti: usize, mut targets: Vec<TargetEntry>, mut quals: Vec<Expr>| {
            for e in targets.iter_mut().map(|t| &mut t.expr).chain(&mut quals) {
                v.make_rows(rti, e);
            }
            (targets, quals)
        };
        Ok(match &p.kind {
            PathKind::Empty => {
                let (targets, exprs) = v.scan_targets(p);
                // Nothing is ever computed of these columns.
                let targets = targets
                    .into_iter()
                    .map(|mut t| {
                        t.expr = Expr::Const(Const {
                            type_oid: type_of(&t.expr),
                            typmod: exprs::typmod_of(&t.expr),
                            collation: exprs::collation_of(&t.expr),
                            value: None,
                            location: None,
                        });
                        t
                    })
                    .collect();
                let filter = vec![exprs::bool_const(Some(false))];
                Built {
                    node: node(PlanKind::Result { child: None, one_time_filter: filter }, targets, Vec::new()),
                    exprs,
                }
            }
            PathKind::Result { child: None, filter } => {
                let (targets, exprs) = v.scan_targets(p);
                let (once, each): (Vec<Expr>, Vec<Expr>) =
                    filter.iter().cloned().partition(|e| !level.is_volatile(e) && exprs::relids_of(e).is_empty());
                let kind = PlanKind::Result { child: None, one_time_filter: once };
                Built { node: node(kind, targets, each), exprs }
            }
            PathKind::Result { child: Some(child), filter } => {
                let mut below = self.build(v, child)?;
                self.same_target(&mut below, p)?;
                let targets = pass_through(&below);
                let kind = PlanKind::Result { child: Some(Box::new(below.node)), one_time_filter: filter.clone() };
                Built { node: node(kind, targets, Vec::new()), exprs: below.exprs }
            }
            PathKind::Projection { child } => {
                let below = self.build(v, child)?;
                let exprs: Vec<Expr> = p.target.exprs.iter().map(|(e, _)| e.clone()).collect();
                let targets = resolve_all(&exprs, &[(VarSource::Outer, &below.exprs)])?;
                let kind = PlanKind::Result { child: Some(Box::new(below.node)), one_time_filter: Vec::new() };
                Built { node: node(kind, targets, Vec::new()), exprs }
            }
            PathKind::ProjectSet { child } => {
                let below = self.build(v, child)?;
                let exprs: Vec<Expr> = p.target.exprs.iter().map(|(e, _)| e.clone()).collect();
                let targets = resolve_all(&exprs, &[(VarSource::Outer, &below.exprs)])?;
                Built { node: node(PlanKind::ProjectSet { child: Box::new(below.node) }, targets, Vec::new()), exprs }
            }
            PathKind::SeqScan { rti } => {
                let rel = level.rel(*rti)?;
                let (targets, exprs) = v.scan_targets(p);
                let kind = PlanKind::SeqScan { relation: rti + v.offset, pages: rel.pages as u32 };
                Built { node: node(kind, targets, v.quals(&rel.restrictions)), exprs }
            }
            PathKind::Index(_) | PathKind::BitmapHeap { .. } | PathKind::Tid { .. } | PathKind::TidRange { .. } => {
                crate::finish_scan::build(v, p)?
            }
            PathKind::Function { rti } => {
                let rel = level.rel(*rti)?;
                let RangeTableKind::Function { functions, ordinality } = &level.rte(*rti)?.kind else {
                    return Err(SqlError::internal("not a function"));
                };
                let (targets, exprs) = v.scan_targets(p);
                let kind = PlanKind::FunctionScan {
                    relation: rti + v.offset,
                    functions: functions.iter().map(|f| v.shift(&f.call)).collect(),
                    columns: functions
                        .iter()
                        .map(|f| f.columns.iter().map(|(_, t, m, c)| (*t, *m, *c)).collect())
                        .collect(),
                    ordinality: *ordinality,
                };
                let (targets, quals) = whole(*rti, targets, v.quals(&rel.restrictions));
                Built { node: node(kind, targets, quals), exprs }
            }
            PathKind::Values { rti } => {
                let rel = level.rel(*rti)?;
                let RangeTableKind::Values { rows, .. } = &level.rte(*rti)?.kind else {
                    return Err(SqlError::internal("not VALUES"));
                };
                let (targets, exprs) = v.scan_targets(p);
                let rows = rows.iter().map(|r| r.iter().map(|e| v.shift(e)).collect()).collect();
                let kind = PlanKind::ValuesScan { relation: rti + v.offset, rows };
                let (targets, quals) = whole(*rti, targets, v.quals(&rel.restrictions));
                Built { node: node(kind, targets, quals), exprs }
            }
            PathKind::Cte { rti, subplan, name } => {
                let rel = level.rel(*rti)?;
                let (targets, exprs) = v.scan_targets(p);
                let kind = PlanKind::CteScan { relation: rti + v.offset, subplan: *subplan, name: name.clone() };
                let (targets, quals) = whole(*rti, targets, v.quals(&rel.restrictions));
                Built { node: node(kind, targets, quals), exprs }
            }
            PathKind::Subquery { rti, level: sub, child, computed } => {
                let rel = level.rel(*rti)?;
                let quals = v.quals(&rel.restrictions);
                let mut below = self.build_level(sub, child)?;
                name_targets(&mut below, sub);
                let (mut targets, exprs) = v.scan_targets(p);
                for (t, e) in targets.iter_mut().zip(computed) {
                    t.expr = v.shift(e);
                }
                let visible = sub.query.targets.iter().filter(|t| !t.junk).count();
                let trivial = quals.is_empty()
                    && computed.is_empty()
                    && below.node.targets.len() == visible
                    && targets.len() == visible
                    && exprs
                        .iter()
                        .enumerate()
                        .all(|(i, e)| exprs::as_var(e) == Some((*rti, AttrNumber(i as i16 + 1))));
                if trivial {
                    return Ok(Built { node: below.node, exprs });
                }
                let (targets, quals) = whole(*rti, targets, quals);
                let kind = PlanKind::SubqueryScan { relation: rti + v.offset, child: Box::new(below.node) };
                Built { node: node(kind, targets, quals), exprs }
            }
            PathKind::Retype { child, computed } => {
                let mut below = self.build(v, child)?;
                let exprs: Vec<Expr> = p.target.exprs.iter().map(|(e, _)| e.clone()).collect();
                if *computed != below.exprs {
                    project(&mut below, computed.clone())?;
                    below.node.estimate = estimate(p);
                }
                Built { node: below.node, exprs }
            }
            PathKind::Append { children, prune, removed } => {
                let (mut nodes, exprs) = self.build_children(v, p, children)?;
                if nodes.len() == 1
                    && let Some(only) = nodes.pop()
                {
                    return Ok(Built { node: only, exprs });
                }
                self.note_parent(v, children);
                let prune = prune.as_ref().map(|p| shifted_prune(v, p));
                let targets = positional(&exprs);
                let kind = PlanKind::Append { children: nodes, prune, removed: *removed };
                Built { node: node(kind, targets, Vec::new()), exprs }
            }
            PathKind::MergeAppend { children, prune } => {
                let (mut nodes, exprs) = self.build_children(v, p, children)?;
                if nodes.len() == 1
                    && let Some(only) = nodes.pop()
                {
                    return Ok(Built { node: only, exprs });
                }
                self.note_parent(v, children);
                let prune = prune.as_ref().map(|p| shifted_prune(v, p));
                let keys = sort_keys(level, &p.pathkeys, &exprs)?;
                let targets = positional(&exprs);
                let kind = PlanKind::MergeAppend { children: nodes, keys, prune };
                Built { node: node(kind, targets, Vec::new()), exprs }
            }
            PathKind::NestLoop(_) | PathKind::Merge { .. } | PathKind::Hash { .. } => {
                crate::finish_join::build(self, v, p)?
            }
            PathKind::Material { child } => {
                let below = self.build(v, child)?;
                let targets = pass_through(&below);
                let kind = PlanKind::Materialize { child: Box::new(below.node) };
                Built { node: node(kind, targets, Vec::new()), exprs: below.exprs }
            }
            PathKind::Sort { child, presorted } => {
                let mut below = self.build(v, child)?;
                let keys = self.sort_keys_of(v, &mut below, &p.pathkeys)?;
                let targets = pass_through(&below);
                let kind = PlanKind::Sort { child: Box::new(below.node), keys, presorted: *presorted };
                Built { node: node(kind, targets, Vec::new()), exprs: below.exprs }
            }
            PathKind::Aggregate { child, strategy, split, groups, having } => {
                let below = self.build(v, child)?;
                let exprs: Vec<Expr> = p.target.exprs.iter().map(|(e, _)| e.clone()).collect();
                let fix = |e: &Expr| resolve_aggregated(level, e, &below.exprs, *split);
                let mut targets = Vec::new();
                for (i, e) in exprs.iter().enumerate() {
                    targets.push(exprs::target(fix(e)?, i + 1));
                }
                let quals = having.iter().map(fix).collect::<SqlResult<Vec<_>>>()?;
                let group_by = group_keys(groups, &below.exprs)?;
                let kind =
                    PlanKind::Aggregate { child: Box::new(below.node), strategy: *strategy, split: *split, group_by };
                Built { node: node(kind, targets, quals), exprs }
            }
            PathKind::Group { child, groups, having } => {
                let below = self.build(v, child)?;
                let exprs: Vec<Expr> = p.target.exprs.iter().map(|(e, _)| e.clone()).collect();
                let inputs: &[(VarSource, &[Expr])] = &[(VarSource::Outer, &below.exprs)];
                let targets = resolve_all(&exprs, inputs)?;
                let quals = having.iter().map(|e| resolve(e, inputs)).collect::<SqlResult<Vec<_>>>()?;
                let group_by = group_keys(groups, &below.exprs)?;
                Built { node: node(PlanKind::Group { child: Box::new(below.node), group_by }, targets, quals), exprs }
            }
            PathKind::Unique { child, groups } => {
                let below = self.build(v, child)?;
                let keys = group_keys(groups, &below.exprs)?;
                let targets = pass_through(&below);
                let kind = PlanKind::Unique { child: Box::new(below.node), keys };
                Built { node: node(kind, targets, Vec::new()), exprs: below.exprs }
            }
            PathKind::SetOp { outer, inner, kind, all, groups } => {
                let left = self.build(v, outer)?;
                let right = self.build(v, inner)?;
                let keys = group_keys(groups, &left.exprs)?;
                let targets = pass_through(&left);
                let kind = PlanKind::SetOp {
                    outer: Box::new(left.node),
                    inner: Box::new(right.node),
                    kind: *kind,
                    all: *all,
                    keys,
                };
                // Either side may be the left one; the columns go by the operation's own names.
                let exprs = p.target.exprs.iter().map(|(e, _)| e.clone()).collect();
                Built { node: node(kind, targets, Vec::new()), exprs }
            }
            PathKind::Window { child, window } => {
                let below = self.build(v, child)?;
                let exprs: Vec<Expr> = p.target.exprs.iter().map(|(e, _)| e.clone()).collect();
                let targets = resolve_all(&exprs, &[(VarSource::Outer, &below.exprs)])?;
                let window = window_of(window, &below.exprs)?;
                let kind = PlanKind::WindowAgg { child: Box::new(below.node), window };
                Built { node: node(kind, targets, Vec::new()), exprs }
            }
            PathKind::Limit { child, offset, count, ties } => {
                let below = self.build(v, child)?;
                let ties = group_keys(ties, &below.exprs)?;
                let targets = pass_through(&below);
                let kind =
                    PlanKind::Limit { child: Box::new(below.node), offset: offset.clone(), count: count.clone(), ties };
                Built { node: node(kind, targets, Vec::new()), exprs: below.exprs }
            }
            PathKind::Gather { child, workers } => {
                let mut below = self.build(v, child)?;
                self.same_target(&mut below, p)?;
                let targets = pass_through(&below);
                let kind = PlanKind::Gather { child: Box::new(below.node), workers: *workers };
                Built { node: node(kind, targets, Vec::new()), exprs: below.exprs }
            }
            PathKind::GatherMerge { child, workers } => {
                let mut below = self.build(v, child)?;
                self.same_target(&mut below, p)?;
                let keys = sort_keys(level, &p.pathkeys, &below.exprs)?;
                let targets = pass_through(&below);
                let kind = PlanKind::GatherMerge { child: Box::new(below.node), workers: *workers, keys };
                Built { node: node(kind, targets, Vec::new()), exprs: below.exprs }
            }
        })
    }

    /// Makes a pass-through node's child give the path's own target, where that differs: by a projection above it.
    fn same_target(&self, below: &mut Built, p: &Path<'_>) -> SqlResult<()> {
        let want: Vec<Expr> = p.target.exprs.iter().map(|(e, _)| e.clone()).collect();
        if want == below.exprs || want.is_empty() {
            return Ok(());
        }
        project(below, want)
    }

    fn note_parent<'a>(&mut self, v: View<'_, 'a>, children: &[Rc<Path<'a>>]) {
        let rti = children.iter().find_map(|c| scanned(c));
        let parent = rti.and_then(|r| v.level.rel(r).ok()).and_then(|r| r.parent);
        self.parents.extend(parent.map(|p| p + v.offset));
    }

    fn build_children<'a>(
        &mut self,
        v: View<'_, 'a>,
        p: &Rc<Path<'a>>,
        children: &[Rc<Path<'a>>],
    ) -> SqlResult<(Vec<PlanNode>, Vec<Expr>)> {
        let exprs: Vec<Expr> = p.target.exprs.iter().map(|(e, _)| e.clone()).collect();
        let mut nodes = Vec::new();
        for c in children {
            let mut below = self.build(v, c)?;
            if below.exprs.len() > exprs.len() {
                let keep: Vec<Expr> = below.exprs.iter().take(exprs.len()).cloned().collect();
                project(&mut below, keep)?;
            }
            if below.exprs.len() != exprs.len() {
                return Err(SqlError::internal("children of unlike shape"));
            }
            nodes.push(below.node);
        }
        Ok((nodes, exprs))
    }

    /// The sort keys over `below`, which is made to compute what it lacks.
    pub(crate) fn sort_keys_of<'a>(
        &mut self,
        v: View<'_, 'a>,
        below: &mut Built,
        keys: &[PathKey],
    ) -> SqlResult<Vec<SortKey>> {
        for k in keys {
            if key_position(v.level, k, &below.exprs).is_some() {
                continue;
            }
            let class = v.level.classes.get(k.class).ok_or_else(|| SqlError::internal("a sort key without a class"))?;
            // Compute the first member that the input's columns allow.
            let mut added = false;
            for m in &class.members {
                if m.relids.is_empty() {
                    continue;
                }
                if resolve(&m.expr, &[(VarSource::Outer, &below.exprs)]).is_ok() {
                    let mut want = below.exprs.clone();
                    want.push(m.expr.clone());
                    project(below, want)?;
                    added = true;
                    break;
                }
            }
            if !added {
                return Err(SqlError::internal("a sort key cannot be computed from its input"));
            }
        }
        sort_keys(v.level, keys, &below.exprs)
    }
}

fn shifted_prune(v: View<'_, '_>, p: &PrunePlan) -> PrunePlan {
    PrunePlan {
        conditions: p.conditions.iter().map(|e| v.shift(e)).collect(),
        range_table_index: p.range_table_index + v.offset,
        ..p.clone()
    }
}

/// The relation that a path scans, through sorts and the like.
fn scanned(p: &Path<'_>) -> Option<usize> {
    match &p.kind {
        PathKind::SeqScan { rti }
        | PathKind::BitmapHeap { rti, .. }
        | PathKind::Tid { rti, .. }
        | PathKind::TidRange { rti, .. } => Some(*rti),
        PathKind::Index(i) => Some(i.rti),
        PathKind::Sort { child, .. } | PathKind::Projection { child } | PathKind::Material { child } => scanned(child),
        _ => None,
    }
}

/// Puts a projection to `want` above a node.
pub(crate) fn project(below: &mut Built, want: Vec<Expr>) -> SqlResult<()> {
    let targets = resolve_all(&want, &[(VarSource::Outer, &below.exprs)])?;
    let estimate = below.node.estimate;
    let placeholder = PlanNode {
        kind: PlanKind::Result { child: None, one_time_filter: Vec::new() },
        id: 0,
        estimate,
        targets,
        quals: Vec::new(),
        parallel_aware: false,
        init_plans: Vec::new(),
    };
    let inner = std::mem::replace(&mut below.node, placeholder);
    below.node.kind = PlanKind::Result { child: Some(Box::new(inner)), one_time_filter: Vec::new() };
    below.exprs = want;
    Ok(())
}

/// Targets that are the child's.
pub(crate) fn pass_through(below: &Built) -> Vec<TargetEntry> {
    positional(&below.exprs)
}

fn positional(exprs: &[Expr]) -> Vec<TargetEntry> {
    exprs.iter().enumerate().map(|(i, e)| exprs::target(outer_var(VarSource::Outer, i + 1, e), i + 1)).collect()
}

pub(crate) fn resolve_all(exprs: &[Expr], inputs: &[(VarSource, &[Expr])]) -> SqlResult<Vec<TargetEntry>> {
    exprs.iter().enumerate().map(|(i, e)| Ok(exprs::target(resolve(e, inputs)?, i + 1))).collect()
}
