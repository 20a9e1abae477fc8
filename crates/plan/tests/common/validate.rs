//! What every plan must satisfy, whatever it computes.

use std::collections::BTreeSet;

use stegodon_format::ids::AttrNumber;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::{ParamKind, SubPlan, Var, VarSource};
use stegodon_plan::for_each_child;
use stegodon_plan::node::{PlanKind, PlanNode, PlannedStatement};
use stegodon_plan::walk::{for_each_expr, slots_read};

/// What is wrong with a plan, if anything.
pub fn problem(statement: &PlannedStatement) -> Option<String> {
    let mut check = Check { statement, problems: Vec::new() };
    check.node(&statement.root, false);
    for (i, plan) in statement.subplans.iter().enumerate() {
        let serial = check.is_correlated(i);
        check.node(plan, serial);
    }
    let filled = filled_slots(statement);
    for init in &statement.init_plans {
        let open = check.open_slots(init.subplan, &filled);
        if !open.is_empty() {
            check.problems.push(format!("init plan {} reads slots {open:?}", init.number));
        }
    }
    let mut root = Vec::new();
    collect_slots(&statement.root, &mut root);
    for slot in root.into_iter().filter(|s| !filled.contains(s)) {
        check.problems.push(format!("the root reads slot {slot}"));
    }
    (!check.problems.is_empty()).then(|| check.problems.join("; "))
}

/// The slots that init plans and nested loops fill.
fn filled_slots(statement: &PlannedStatement) -> BTreeSet<u32> {
    fn loops(node: &PlanNode, out: &mut BTreeSet<u32>) {
        if let PlanKind::NestLoop(j) = &node.kind {
            out.extend(j.params.iter().map(|(slot, _)| *slot));
        }
        for c in children(node) {
            loops(c, out);
        }
    }
    let mut out: BTreeSet<u32> = statement.init_plans.iter().flat_map(|i| i.slots.iter().copied()).collect();
    std::iter::once(&statement.root).chain(&statement.subplans).for_each(|n| loops(n, &mut out));
    out
}

struct Check<'a> {
    statement: &'a PlannedStatement,
    problems: Vec<String>,
}

fn children(node: &PlanNode) -> Vec<&PlanNode> {
    let mut out = Vec::new();
    for_each_child(node, &mut |c| out.push(c));
    out
}

fn scanned(node: &PlanNode) -> Option<usize> {
    match &node.kind {
        PlanKind::SeqScan { relation, .. }
        | PlanKind::BitmapHeapScan { relation, .. }
        | PlanKind::TidScan { relation, .. }
        | PlanKind::TidRangeScan { relation, .. }
        | PlanKind::SubqueryScan { relation, .. }
        | PlanKind::FunctionScan { relation, .. }
        | PlanKind::ValuesScan { relation, .. }
        | PlanKind::CteScan { relation, .. } => Some(*relation),
        PlanKind::IndexScan(i) | PlanKind::IndexOnlyScan(i) | PlanKind::BitmapIndexScan(i) => Some(i.relation),
        _ => None,
    }
}

/// The slots read by a tree's own expressions, not by its subplans.
fn collect_slots(node: &PlanNode, out: &mut Vec<u32>) {
    for_each_expr(node, &mut |e| {
        stegodon_plan::exprs::walk(e, &mut |x| {
            if let Expr::Param(p) = x
                && p.kind == ParamKind::Exec
            {
                out.push(p.id);
            }
            true
        });
    });
    for c in children(node) {
        collect_slots(c, out);
    }
}

fn subplans_of(node: &PlanNode, f: &mut dyn FnMut(&SubPlan)) {
    for_each_expr(node, &mut |e| {
        stegodon_plan::exprs::walk(e, &mut |x| {
            if let Expr::SubPlan(s) = x {
                f(s);
            }
            true
        });
    });
    for c in children(node) {
        subplans_of(c, f);
    }
}

fn is_identity(slot: u32, e: &Expr) -> bool {
    matches!(e, Expr::Param(p) if p.kind == ParamKind::Exec && p.id == slot)
}

impl Check<'_> {
    fn is_correlated(&self, plan: usize) -> bool {
        let mut found = false;
        for root in std::iter::once(&self.statement.root).chain(&self.statement.subplans) {
            subplans_of(root, &mut |s| found |= s.plan_id == plan && !s.correlation.is_empty());
        }
        found
    }

    /// The slots that a subplan reads and that neither an init plan nor a subplan within it fills.
    fn open_slots(&self, plan: usize, filled: &BTreeSet<u32>) -> BTreeSet<u32> {
        let mut open = slots_read(self.statement, plan);
        let mut within = vec![plan];
        let mut at = 0;
        while let Some(&next) = within.get(at) {
            at += 1;
            let Some(root) = self.statement.subplans.get(next) else { continue };
            subplans_of(root, &mut |s| {
                for (slot, e) in &s.correlation {
                    if !is_identity(*slot, e) {
                        open.remove(slot);
                    }
                }
                if !within.contains(&s.plan_id) {
                    within.push(s.plan_id);
                }
            });
            let mut inits = Vec::new();
            fn walk(node: &PlanNode, out: &mut Vec<usize>) {
                out.extend(&node.init_plans);
                for c in children(node) {
                    walk(c, out);
                }
            }
            walk(root, &mut inits);
            for i in inits {
                let subplan = self.statement.init_plans[i].subplan;
                if !within.contains(&subplan) {
                    within.push(subplan);
                }
            }
        }
        open.retain(|s| !filled.contains(s));
        open
    }

    fn node(&mut self, node: &PlanNode, serial: bool) {
        if serial && matches!(node.kind, PlanKind::Gather { .. } | PlanKind::GatherMerge { .. }) {
            self.problems.push("a Gather in a correlated subplan".to_owned());
        }
        let mut exprs = Vec::new();
        for_each_expr(node, &mut |e| exprs.push(e));
        for e in exprs {
            stegodon_plan::exprs::walk(e, &mut |x| {
                self.expr(node, x);
                true
            });
        }
        self.keys(node);
        for c in children(node) {
            self.node(c, serial);
        }
    }

    fn keys(&mut self, node: &PlanNode) {
        let mut columns: Vec<AttrNumber> = Vec::new();
        match &node.kind {
            PlanKind::Sort { keys, .. } | PlanKind::GatherMerge { keys, .. } | PlanKind::MergeAppend { keys, .. } => {
                columns.extend(keys.iter().map(|k| k.column));
            }
            PlanKind::Aggregate { group_by, .. } | PlanKind::Group { group_by, .. } => {
                columns.extend(group_by.iter().map(|k| k.column));
            }
            PlanKind::Unique { keys, .. } | PlanKind::SetOp { keys, .. } => {
                columns.extend(keys.iter().map(|k| k.column));
                if keys.is_empty() {
                    self.problems.push("rows compared by nothing".to_owned());
                }
            }
            PlanKind::Limit { ties, .. } => columns.extend(ties.iter().map(|k| k.column)),
            PlanKind::WindowAgg { window, .. } => {
                columns.extend(window.partition_by.iter().map(|k| k.column));
                columns.extend(window.order_by.iter().map(|k| k.column));
            }
            _ => {}
        }
        let below = children(node);
        for c in columns {
            for child in &below {
                if c.0 < 1 || c.0 as usize > child.targets.len() {
                    self.problems.push(format!("a key is column {} of {}", c.0, child.targets.len()));
                }
            }
        }
        if matches!(node.kind, PlanKind::Append { .. } | PlanKind::MergeAppend { .. }) {
            for child in &below {
                let types = |n: &PlanNode| n.targets.iter().map(|t| t.expr.type_oid()).collect::<Vec<_>>();
                if types(child) != types(node) {
                    self.problems.push(format!("a member of an Append gives {:?}", types(child)));
                }
            }
        }
    }

    fn expr(&mut self, node: &PlanNode, e: &Expr) {
        match e {
            Expr::Var(v) => self.var(node, v),
            Expr::SubLink(_) => self.problems.push("an unplanned subquery".to_owned()),
            Expr::Aggref(_) if !matches!(node.kind, PlanKind::Aggregate { .. }) => {
                self.problems.push("an aggregate outside of an Aggregate".to_owned());
            }
            Expr::WindowFunc(w) if !matches!(&node.kind, PlanKind::WindowAgg { window, .. } if window.reference == w.window_ref) =>
            {
                self.problems.push("a window function outside of its WindowAgg".to_owned());
            }
            Expr::SubPlan(s) => {
                let filled = filled_slots(self.statement);
                let mut open = self.open_slots(s.plan_id, &filled);
                s.correlation.iter().for_each(|(slot, _)| {
                    open.remove(slot);
                });
                if !open.is_empty() {
                    self.problems.push(format!("subplan {} reads slots {open:?}", s.plan_id + 1));
                }
            }
            _ => {}
        }
    }

    fn var(&mut self, node: &PlanNode, v: &Var) {
        if v.levels_up > 0 {
            self.problems.push("a column of an outer query".to_owned());
        }
        let below = children(node);
        let child = match v.source {
            VarSource::Relation(r) => {
                let prune = matches!(node.kind, PlanKind::Append { .. } | PlanKind::MergeAppend { .. });
                if scanned(node) != Some(r) && !prune {
                    self.problems.push(format!("relation {r} is not scanned here"));
                }
                return;
            }
            VarSource::Index => return,
            VarSource::Outer => below.first(),
            VarSource::Inner => below.get(1),
        };
        let target = child.and_then(|c| c.targets.get((v.attno.0 as usize).wrapping_sub(1)));
        match target {
            None => self.problems.push(format!("no input has a column {}", v.attno.0)),
            Some(t) if t.expr.type_oid() != v.type_oid => {
                // States of half an aggregate go by the aggregate's type.
                let state = matches!(node.kind, PlanKind::Aggregate { .. });
                if !state {
                    self.problems.push(format!("column {} is of type {}", v.attno.0, t.expr.type_oid()));
                }
            }
            Some(_) => {}
        }
    }
}
