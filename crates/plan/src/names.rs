//! The names that EXPLAIN gives relations: unique within a statement (`select_rtable_names_for_explain`).

use std::collections::{HashMap, HashSet};

use crate::node::{PlanKind, PlanNode, PlanRelation};

fn used(node: &PlanNode, out: &mut HashSet<usize>) {
    match &node.kind {
        PlanKind::SeqScan { relation, .. }
        | PlanKind::BitmapHeapScan { relation, .. }
        | PlanKind::TidScan { relation, .. }
        | PlanKind::TidRangeScan { relation, .. }
        | PlanKind::SubqueryScan { relation, .. }
        | PlanKind::FunctionScan { relation, .. }
        | PlanKind::ValuesScan { relation, .. }
        | PlanKind::CteScan { relation, .. } => {
            out.insert(*relation);
        }
        PlanKind::IndexScan(i) | PlanKind::IndexOnlyScan(i) | PlanKind::BitmapIndexScan(i) => {
            out.insert(i.relation);
        }
        _ => {}
    }
    for_each_child(node, &mut |c| used(c, out));
}

/// Calls `f` for each child of a node, in EXPLAIN's order.
pub fn for_each_child<'n>(node: &'n PlanNode, f: &mut dyn FnMut(&'n PlanNode)) {
    match &node.kind {
        PlanKind::Result { child, .. } => child.iter().for_each(|c| f(c)),
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
        | PlanKind::MergeAppend { children, .. } => children.iter().for_each(f),
        PlanKind::NestLoop(j) | PlanKind::MergeJoin { join: j, .. } | PlanKind::HashJoin { join: j, .. } => {
            f(&j.outer);
            f(&j.inner);
        }
        PlanKind::SetOp { outer, inner, .. } => {
            f(outer);
            f(inner);
        }
        _ => {}
    }
}

/// Makes the aliases of the scanned relations unique: `t`, `t_1`, …
pub(crate) fn unique_aliases(
    range_table: &mut [PlanRelation],
    root: &PlanNode,
    subplans: &[PlanNode],
    parents: &[usize],
) {
    let mut scanned: HashSet<usize> = parents.iter().copied().collect();
    used(root, &mut scanned);
    subplans.iter().for_each(|s| used(s, &mut scanned));
    let mut taken: HashMap<String, u32> = HashMap::new();
    for (i, r) in range_table.iter_mut().enumerate() {
        if !scanned.contains(&(i + 1)) {
            continue;
        }
        let base = r.alias.clone();
        if !taken.contains_key(&base) {
            taken.insert(base, 0);
            continue;
        }
        let mut n = taken.get(&base).copied().unwrap_or(0);
        loop {
            n += 1;
            let name = format!("{base}_{n}");
            if !taken.contains_key(&name) {
                taken.insert(base, n);
                taken.insert(name.clone(), 0);
                r.alias = name;
                break;
            }
        }
    }
}
