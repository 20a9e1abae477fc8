//! Lowering of scans.
//!
//! A scan evaluates its own conditions and targets, page by page. Where they ask correlated subqueries, which must wait, the
//! scan gives the columns that they read and an `Evaluate` above it asks.

use std::collections::BTreeSet;
use std::sync::Arc;

use stegodon_format::ids::{AttrNumber, Oid};
use stegodon_functions::{Input as ColumnInput, Side};
use stegodon_heap::Deformer;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::{Const, RowExpr, TargetEntry, Var, VarSource};
use stegodon_plan::node::{IndexScan as IndexScanNode, PlanKind, PlanNode};
use stegodon_types::{SqlError, SqlResult};

use crate::append::Append;
use crate::initplan::Needs;
use crate::lower::{Columns, Lowering, conjunction, rewrite};
use crate::operator::{Operator, OperatorExec, Physical, malformed};
use crate::scan::{
    BitmapHeapScan, BitmapSource, HeapRows, IndexKeys, IndexOnlyScan, IndexScan, Opener, SequentialScan, Skip,
    TidRangeScan, TidScan, column_of,
};

/// Lowers a scan.
pub(crate) fn plan(lowering: &Lowering<'_>, node: &PlanNode, partitions: usize) -> SqlResult<Physical> {
    match lifted(node) {
        None => lowering.heap_scan(node, partitions, None),
        Some((scan, above)) => {
            let rows = lowering.heap_scan(&scan, partitions, None)?;
            lowering.evaluate(&above, rows, Columns::ONLY)
        }
    }
}

/// Lowers a scan that [`may_skip`](crate::scan::may_skip) under a Limit.
pub(crate) fn skipping(lowering: &Lowering<'_>, node: &PlanNode, skip: &Arc<Skip>) -> SqlResult<Physical> {
    lowering.heap_scan(node, 1, Some(skip))
}

fn is_correlated(expr: &Expr) -> bool {
    expr.any(&mut |e| matches!(e, Expr::SubPlan(s) if !s.correlation.is_empty()))
}

/// A scan that asks correlated subqueries as one that does not, and what is to be evaluated above it.
fn lifted(node: &PlanNode) -> Option<(PlanNode, PlanNode)> {
    let first = node.quals.iter().position(is_correlated);
    if first.is_none() && !node.targets.iter().any(|t| is_correlated(&t.expr)) {
        return None;
    }
    // Conditions keep their order: those behind one that asks are evaluated behind it.
    let (below, above) = node.quals.split_at(first.unwrap_or(node.quals.len()));
    let mut variables: Vec<Var> = Vec::new();
    let mut over = |expr: &Expr| {
        let mut expr = expr.clone();
        replace_variables(&mut expr, &mut variables);
        expr
    };
    let quals = above.iter().map(&mut over).collect();
    let targets = node.targets.iter().map(|t| TargetEntry { expr: over(&t.expr), ..t.clone() }).collect();
    let kind = PlanKind::Result { child: None, one_time_filter: Vec::new() };
    let above = PlanNode { kind, quals, targets, init_plans: Vec::new(), ..node.clone() };
    let column = |(i, var): (usize, &Var)| TargetEntry {
        expr: Expr::Var(var.clone()),
        resno: AttrNumber(i as i16 + 1),
        name: None,
        sort_group_ref: 0,
        origin_table: Oid::INVALID,
        origin_column: AttrNumber(0),
        junk: false,
    };
    let targets = variables.iter().enumerate().map(column).collect();
    Some((PlanNode { quals: below.to_vec(), targets, ..node.clone() }, above))
}

fn replace_variables(expr: &mut Expr, variables: &mut Vec<Var>) {
    if let Expr::Var(var) = expr {
        let place = variables.iter().position(|v| v == var).unwrap_or_else(|| {
            variables.push(var.clone());
            variables.len() - 1
        });
        (var.source, var.attno) = (VarSource::Outer, AttrNumber(place as i16 + 1));
        return;
    }
    let _ = expr.try_each_child_mut::<std::convert::Infallible>(&mut |child| {
        replace_variables(child, variables);
        Ok(())
    });
}

impl Lowering<'_> {
    fn heap_scan(&self, node: &PlanNode, partitions: usize, skip: Option<&Arc<Skip>>) -> SqlResult<Physical> {
        match &node.kind {
            PlanKind::SeqScan { relation, .. } => {
                let rows = self.heap_rows(node, *relation, &[], skip)?;
                let workers = if node.parallel_aware { partitions } else { 1 };
                self.scan(node, SequentialScan::new(rows, workers), partitions)
            }
            PlanKind::IndexScan(scan) => {
                let rows = self.heap_rows(node, scan.relation, &[], skip)?;
                let keys = Arc::new(self.index_keys(scan)?);
                self.alone(node, IndexScan { rows, keys, backward: scan.backward }, partitions)
            }
            PlanKind::IndexOnlyScan(scan) => {
                let operator = self.index_only(node, scan)?;
                self.alone(node, operator, partitions)
            }
            PlanKind::BitmapHeapScan { relation, bitmap, recheck } => {
                let rows = self.heap_rows(node, *relation, recheck, skip)?;
                let workers = if node.parallel_aware { partitions } else { 1 };
                self.scan(node, BitmapHeapScan::new(rows, self.bitmap(bitmap)?, workers), partitions)
            }
            PlanKind::TidScan { relation, conditions } => {
                let rows = self.heap_rows(node, *relation, &[], skip)?;
                self.alone(node, TidScan::new(rows, conditions)?, partitions)
            }
            PlanKind::TidRangeScan { relation, conditions } => {
                let rows = self.heap_rows(node, *relation, &[], skip)?;
                self.alone(node, TidRangeScan::new(rows, conditions)?, partitions)
            }
            _ => Err(malformed("no scan of a table")),
        }
    }

    fn scan(&self, node: &PlanNode, operator: impl Operator, partitions: usize) -> SqlResult<Physical> {
        let schema = self.schema_of(&node.targets)?;
        let partitions = if node.parallel_aware { partitions } else { 1 };
        Ok(OperatorExec::plan(operator, Vec::new(), schema, partitions))
    }

    /// A scan that cannot share its work. Under a Gather it runs whole in one worker.
    fn alone(&self, node: &PlanNode, operator: impl Operator, partitions: usize) -> SqlResult<Physical> {
        let schema = self.schema_of(&node.targets)?;
        let scan = OperatorExec::plan(operator, Vec::new(), Arc::clone(&schema), 1);
        if partitions == 1 || !node.parallel_aware {
            return Ok(scan);
        }
        let (execution, needs) = (Arc::clone(self.execution), Needs::default());
        let spread = Append { execution, prune: None, needs, partitions };
        Ok(OperatorExec::plan(spread, vec![scan], schema, partitions))
    }

    fn relation(&self, index: usize) -> SqlResult<Oid> {
        let relation = index.checked_sub(1).and_then(|i| self.execution.statement.range_table.get(i));
        relation.map(|r| r.relation).ok_or_else(|| malformed("a scan of no relation"))
    }

    /// A whole-row reference as a row of the relation's columns.
    fn whole_rows(&self, expr: &Expr, relation: usize) -> SqlResult<Expr> {
        let oid = self.relation(relation)?;
        let row =
            self.execution.catalog().relation(oid).ok_or_else(|| malformed("a relation is not in the catalogs"))?;
        let mut expr = expr.clone();
        let replace = |e: &mut Expr| {
            if let Expr::Var(var) = e
                && var.attno.0 == 0
            {
                let column = |a: &stegodon_catalog::rows::Attribute| {
                    if a.dropped {
                        return Expr::Const(Const {
                            type_oid: stegodon_types::oids::INT4,
                            typmod: -1,
                            collation: Oid::INVALID,
                            value: None,
                            location: None,
                        });
                    }
                    Expr::Var(Var {
                        attno: a.number,
                        type_oid: a.type_oid,
                        typmod: a.typmod,
                        collation: a.collation,
                        ..var.clone()
                    })
                };
                *e = Expr::Row(RowExpr {
                    args: row.attributes.iter().map(column).collect(),
                    row_type: row.row_type,
                    names: Vec::new(),
                    form: stegodon_nodes::expr::CoercionForm::ImplicitCast,
                    location: None,
                });
            }
        };
        rewrite(&mut expr, &replace);
        Ok(expr)
    }

    fn heap_rows(
        &self,
        node: &PlanNode,
        relation: usize,
        recheck: &[Expr],
        skip: Option<&Arc<Skip>>,
    ) -> SqlResult<Arc<HeapRows>> {
        let table = Opener::of(self.execution).open_table(self.relation(relation)?)?;
        let whole = |e: &Expr| self.whole_rows(e, relation);
        let quals = node.quals.iter().map(whole).collect::<SqlResult<Vec<_>>>()?;
        let targets = node.targets.iter().map(|t| whole(&t.expr)).collect::<SqlResult<Vec<_>>>()?;
        let mut first = BTreeSet::new();
        recheck.iter().chain(&quals).for_each(|e| collect_columns(e, &mut first));
        let mut second = BTreeSet::new();
        for target in &targets {
            collect_columns(target, &mut second);
        }
        let first: Vec<AttrNumber> = first.into_iter().collect();
        let second: Vec<AttrNumber> = second.into_iter().filter(|a| !first.contains(a)).collect();
        let variables = |var: &Var| column_of(relation, &first, &second, var);
        let condition = |c: &[Expr]| conjunction(c).map(|c| self.compile_over(&c, &variables)).transpose();
        Ok(Arc::new(HeapRows {
            execution: Arc::clone(self.execution),
            node: node.id,
            first: Deformer::new(&table.desc, &first)?,
            second: Deformer::new(&table.desc, &second)?,
            recheck: condition(recheck)?,
            quals: condition(&quals)?,
            targets: targets.iter().map(|t| self.compile_over(t, &variables)).collect::<SqlResult<_>>()?,
            needs: Needs::of(recheck.iter().chain(&node.quals).chain(node.targets.iter().map(|t| &t.expr))),
            skip: skip.cloned(),
            schema: self.schema_of(&node.targets)?,
            table,
        }))
    }

    fn index_keys(&self, scan: &IndexScanNode) -> SqlResult<IndexKeys> {
        let (files, desc) = Opener::of(self.execution).open_index(scan.index)?;
        let row = self.execution.catalog().relation(scan.index).and_then(|r| r.index.as_ref());
        let columns = row.map(|i| i.columns.clone()).unwrap_or_default();
        IndexKeys::new(self.execution, files, desc, &scan.conditions, &columns)
    }

    fn index_only(&self, node: &PlanNode, scan: &IndexScanNode) -> SqlResult<IndexOnlyScan> {
        if !scan.recheck.is_empty() {
            return Err(malformed("a B-tree index-only scan with a recheck"));
        }
        let table = Opener::of(self.execution).open_table(self.relation(scan.relation)?)?;
        let keys = Arc::new(self.index_keys(scan)?);
        let mut wanted = BTreeSet::new();
        node.quals.iter().chain(node.targets.iter().map(|t| &t.expr)).for_each(|e| collect_columns(e, &mut wanted));
        let mut columns = Vec::with_capacity(wanted.len());
        for attno in wanted {
            let place =
                usize::try_from(i32::from(attno.0) - 1).map_err(|_| malformed("an index has no system columns"))?;
            let attribute = keys.desc().attributes.get(place).ok_or_else(|| malformed("an index column is missing"))?;
            let layout = attribute.layout.ok_or_else(|| SqlError::unsupported("the type of an index's column"))?;
            columns.push((place, layout));
        }
        let places: Vec<usize> = columns.iter().map(|(p, _)| *p).collect();
        let variables = |var: &Var| {
            let place = usize::try_from(i32::from(var.attno.0) - 1).ok();
            let index = places.iter().position(|p| Some(*p) == place && var.source == VarSource::Index);
            let index = index.ok_or_else(|| malformed("an index-only scan reads beyond its index"))?;
            Ok(ColumnInput { side: Side::Outer, index })
        };
        let map_blocks = table.files.nblocks_or_zero(stegodon_format::ids::Fork::VisibilityMap)?;
        Ok(IndexOnlyScan {
            execution: Arc::clone(self.execution),
            node: node.id,
            map_blocks,
            keys,
            backward: scan.backward,
            quals: conjunction(&node.quals).map(|q| self.compile_over(&q, &variables)).transpose()?,
            targets: node.targets.iter().map(|t| self.compile_over(&t.expr, &variables)).collect::<SqlResult<_>>()?,
            needs: Needs::of(node.quals.iter().chain(node.targets.iter().map(|t| &t.expr))),
            schema: self.schema_of(&node.targets)?,
            columns,
            table,
        })
    }

    fn bitmap(&self, node: &PlanNode) -> SqlResult<BitmapSource> {
        let all = |children: &[PlanNode]| children.iter().map(|c| self.bitmap(c)).collect::<SqlResult<Vec<_>>>();
        match &node.kind {
            PlanKind::BitmapIndexScan(scan) => Ok(BitmapSource::Index { node: node.id, keys: self.index_keys(scan)? }),
            PlanKind::BitmapAnd { children } => Ok(BitmapSource::And { node: node.id, sources: all(children)? }),
            PlanKind::BitmapOr { children } => Ok(BitmapSource::Or { node: node.id, sources: all(children)? }),
            _ => Err(malformed("a bitmap heap scan over what is no bitmap")),
        }
    }
}

/// The columns of its own relation that a scan's expression reads.
fn collect_columns(expr: &Expr, out: &mut BTreeSet<AttrNumber>) {
    expr.any(&mut |e| {
        if let Expr::Var(var) = e {
            out.insert(var.attno);
        }
        false
    });
}
