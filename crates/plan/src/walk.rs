//! Visiting what a plan is made of.

use std::collections::BTreeSet;

use stegodon_nodes::Expr;
use stegodon_nodes::expr::{Const, ParamKind};
use stegodon_types::Datum;

use crate::names::for_each_child;
use crate::node::{Join, PlanKind, PlanNode, PlannedStatement};

/// Calls `f` for each expression of one node, children not entered.
pub fn for_each_expr<'n>(node: &'n PlanNode, f: &mut dyn FnMut(&'n Expr)) {
    node.targets.iter().for_each(|t| f(&t.expr));
    node.quals.iter().for_each(&mut *f);
    let join = |join: &'n Join, f: &mut dyn FnMut(&'n Expr)| {
        join.filter.iter().for_each(&mut *f);
        join.params.iter().for_each(|(_, e)| f(e));
    };
    match &node.kind {
        PlanKind::Result { one_time_filter: list, .. }
        | PlanKind::TidScan { conditions: list, .. }
        | PlanKind::TidRangeScan { conditions: list, .. }
        | PlanKind::BitmapHeapScan { recheck: list, .. }
        | PlanKind::FunctionScan { functions: list, .. } => list.iter().for_each(f),
        PlanKind::IndexScan(scan) | PlanKind::IndexOnlyScan(scan) | PlanKind::BitmapIndexScan(scan) => {
            scan.conditions.iter().for_each(|c| f(&c.clause));
            scan.recheck.iter().for_each(f);
        }
        PlanKind::ValuesScan { rows, .. } => rows.iter().flatten().for_each(f),
        PlanKind::Append { prune: Some(prune), .. } | PlanKind::MergeAppend { prune: Some(prune), .. } => {
            prune.conditions.iter().for_each(f);
        }
        PlanKind::NestLoop(j) => join(j, f),
        PlanKind::MergeJoin { join: j, clauses } | PlanKind::HashJoin { join: j, clauses } => {
            join(j, f);
            clauses.iter().for_each(|c| {
                f(&c.outer);
                f(&c.inner);
            });
        }
        PlanKind::Limit { offset, count, .. } => offset.iter().chain(count).for_each(f),
        PlanKind::WindowAgg { window, .. } => window.start_offset.iter().chain(&window.end_offset).for_each(f),
        PlanKind::Append { prune: None, .. }
        | PlanKind::MergeAppend { prune: None, .. }
        | PlanKind::ProjectSet { .. }
        | PlanKind::SeqScan { .. }
        | PlanKind::BitmapAnd { .. }
        | PlanKind::BitmapOr { .. }
        | PlanKind::SubqueryScan { .. }
        | PlanKind::CteScan { .. }
        | PlanKind::Hash { .. }
        | PlanKind::Materialize { .. }
        | PlanKind::Sort { .. }
        | PlanKind::Aggregate { .. }
        | PlanKind::Group { .. }
        | PlanKind::Unique { .. }
        | PlanKind::SetOp { .. }
        | PlanKind::Gather { .. }
        | PlanKind::GatherMerge { .. } => {}
    }
}

/// The bytes of a statement's largest constant: one that planning has computed may be larger than the text.
pub fn largest_constant_bytes(statement: &PlannedStatement) -> usize {
    fn look(node: &PlanNode, largest: &mut usize) {
        for_each_expr(node, &mut |expr| {
            expr.any(&mut |e| {
                if let Expr::Const(Const { value: Some(Datum::Bytes(bytes)), .. }) = e {
                    *largest = (*largest).max(bytes.len());
                }
                false
            });
        });
        for_each_child(node, &mut |child| look(child, largest));
    }
    let mut largest = 0;
    look(&statement.root, &mut largest);
    statement.subplans.iter().for_each(|subplan| look(subplan, &mut largest));
    largest
}

/// The executor slots that a subplan's nodes read, those of its own subplans included.
pub fn slots_read(statement: &PlannedStatement, subplan: usize) -> BTreeSet<u32> {
    let mut reads = Reads { statement, slots: BTreeSet::new(), visited: BTreeSet::new() };
    reads.subplan(subplan);
    reads.slots
}

struct Reads<'a> {
    statement: &'a PlannedStatement,
    slots: BTreeSet<u32>,
    visited: BTreeSet<usize>,
}

impl Reads<'_> {
    fn subplan(&mut self, subplan: usize) {
        if self.visited.insert(subplan)
            && let Some(root) = self.statement.subplans.get(subplan)
        {
            self.node(root);
        }
    }

    fn node(&mut self, node: &PlanNode) {
        for_each_expr(node, &mut |e| self.expr(e));
        if let PlanKind::CteScan { subplan, .. } = &node.kind {
            self.subplan(*subplan);
        }
        for &init in &node.init_plans {
            if let Some(init) = self.statement.init_plans.get(init) {
                self.subplan(init.subplan);
            }
        }
        for_each_child(node, &mut |child| self.node(child));
    }

    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Param(p) if p.kind == ParamKind::Exec => {
                self.slots.insert(p.id);
            }
            Expr::SubPlan(s) => self.subplan(s.plan_id),
            _ => {}
        }
        let _ = expr.try_each_child::<std::convert::Infallible>(&mut |child| {
            self.expr(child);
            Ok(())
        });
    }
}
