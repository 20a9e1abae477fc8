//! Lowering of `Aggregate`, `Group` and `Unique`.
//!
//! ```text
//!   child ─▸ arguments and filters behind its columns ─▸ groups ─▸ shown columns, aggregates ─▸ targets, HAVING
//! ```
//! A target of such a node is an expression over aggregates and over columns of the child that are the same throughout a
//! group. Both become columns of the grouping operator, and the expression one over those.

use std::sync::Arc;

use arrow_schema::DataType;
use stegodon_format::ids::AttrNumber;
use stegodon_functions::CompileContext;
use stegodon_functions::aggregate::aggregate;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::{Aggref, CaseExpr, Const, Var, VarSource};
use stegodon_plan::node::{AggregateSplit, AggregateStrategy, GroupKey, PlanKind, PlanNode};
use stegodon_types::{SqlError, SqlResult};

use crate::aggregate_call::{AggregateCall, CallKind};
use crate::batch::{layout_of, schema};
use crate::grouping::Grouping;
use crate::hash_aggregate;
use crate::keys::KeyEncoding;
use crate::lower::{Columns, Lowering, rewrite};
use crate::memory::{MemoryScope, Spills, or_else};
use crate::operator::{OperatorExec, Physical, malformed};
use crate::sort::{append_keys, number_rows, sort_by};

/// Lowers a grouping node.
pub(crate) fn plan(lowering: &Lowering<'_>, node: &PlanNode, partitions: usize) -> SqlResult<Physical> {
    let (child, keys, strategy, split): (_, &[GroupKey], _, _) = match &node.kind {
        PlanKind::Aggregate { child, strategy, split, group_by } => (child, group_by, *strategy, *split),
        PlanKind::Group { child, group_by } => (child, group_by, AggregateStrategy::Sorted, AggregateSplit::Whole),
        PlanKind::Unique { child, keys } => (child, keys, AggregateStrategy::Sorted, AggregateSplit::Whole),
        _ => return Err(malformed("no grouping node")),
    };
    let mut parts = Parts::default();
    node.targets.iter().map(|t| &t.expr).chain(&node.quals).for_each(|e| parts.collect(e));
    let grouping =
        GroupingPlan { lowering, node, child, keys: lowering.group_keys(child, keys)?, parts, split, partitions };
    if strategy != AggregateStrategy::Hashed {
        return grouping.sorted(Order::OfInput);
    }
    let exact = grouping.calls()?.iter().all(|call| match &call.kind {
        CallKind::Function(plan, _) => plan.exact_merge(),
        CallKind::First(_) => true,
    });
    if exact {
        return grouping.hashed(Spills::Yes);
    }
    // Spilled states are merged, which rounds sums of floats otherwise: what does not fit is sorted instead, each group's rows
    // in the order they came in.
    Ok(or_else(grouping.hashed(Spills::No)?, grouping.sorted(Order::ByKeys)?))
}

/// A grouping node, taken apart.
struct GroupingPlan<'a> {
    lowering: &'a Lowering<'a>,
    node: &'a PlanNode,
    child: &'a PlanNode,
    keys: Vec<(usize, KeyEncoding)>,
    parts: Parts,
    split: AggregateSplit,
    partitions: usize,
}

/// How equal keys come to stand side by side.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// The input is sorted.
    OfInput,
    /// It is sorted here.
    ByKeys,
}

impl GroupingPlan<'_> {
    /// The calls, and what is to be computed for them behind the child's columns.
    fn calls_over(&self, width: usize) -> SqlResult<(Vec<AggregateCall>, Vec<Expr>)> {
        let mut computed = Vec::new();
        let mut calls = Vec::with_capacity(self.parts.aggregates.len());
        for aggref in &self.parts.aggregates {
            calls.push(call(self.lowering, aggref, self.split, self.child, width, &mut computed)?);
        }
        Ok((calls, computed))
    }

    fn calls(&self) -> SqlResult<Vec<AggregateCall>> {
        Ok(self.calls_over(self.child.targets.len())?.0)
    }

    /// The child with the calls' arguments behind its columns.
    fn input(&self) -> SqlResult<(Physical, Vec<AggregateCall>)> {
        let input = self.lowering.node(self.child, self.partitions)?;
        let (mut calls, computed) = self.calls_over(input.schema().fields().len())?;
        let input = if computed.is_empty() { input } else { self.lowering.append_computed(input, &computed)? };
        for call in &mut calls {
            call.arg_types = call.args.iter().filter_map(|&a| field(&input, a)).collect();
        }
        Ok((input, calls))
    }

    fn hashed(&self, spills: Spills) -> SqlResult<Physical> {
        let (input, calls) = self.input()?;
        let (execution, keys, shown) = (self.lowering.execution, &self.keys, &self.parts.shown);
        let (keyed, key_places) = append_keys(execution, input, keys);
        // A group column that is its own key comes out as that; others show their first row's value.
        let own = |column: &usize| keys.iter().position(|(c, k)| c == column && k.is_own());
        let first: Vec<usize> = shown.iter().filter(|c| own(c).is_none()).copied().collect();
        let mut all = Vec::with_capacity(first.len() + calls.len());
        for &column in &first {
            let target = self.child.targets.get(column);
            let target = target.ok_or_else(|| malformed("a group shows a column that is not there"))?;
            let layout = layout_of(execution.view.as_ref(), &target.expr)?;
            let (kind, arg_types) = (CallKind::First(layout), vec![layout.arrow()]);
            all.push(AggregateCall { kind, args: vec![column], arg_types, filter: None });
        }
        let calls_at = keys.len() + first.len();
        all.extend(calls);
        let place =
            |column: &usize| own(column).or_else(|| first.iter().position(|c| c == column).map(|p| keys.len() + p));
        let places = Places { shown: shown.iter().map(|c| place(c).unwrap_or(usize::MAX)).collect(), calls: calls_at };
        let plan = hash_aggregate::plan(execution, keyed, &key_places, all)?;
        let scoped = MemoryScope::plan(execution, self.node.id, plan, execution.hash_mem_bytes, spills);
        self.finish(scoped, &places)
    }

    fn sorted(&self, order: Order) -> SqlResult<Physical> {
        let (mut input, calls) = self.input()?;
        let execution = self.lowering.execution;
        if order == Order::ByKeys {
            let (keyed, mut places) = append_keys(execution, input, &self.keys);
            let (numbered, number) = number_rows(keyed);
            places.push(number);
            let sorted = sort_by(numbered, &places)?;
            input = MemoryScope::plan(execution, self.node.id, sorted, execution.work_mem_bytes, Spills::Yes);
        }
        let shown = &self.parts.shown;
        let types = shown.iter().map(|&c| field(&input, c).unwrap_or(DataType::Null));
        let types: Vec<DataType> = types.chain(calls.iter().map(|c| c.kind.data_type())).collect();
        let places = Places { shown: (0..shown.len()).collect(), calls: shown.len() };
        let schema = schema(types);
        let operator = Grouping {
            execution: Arc::clone(execution),
            keys: self.keys.clone(),
            shown: shown.clone(),
            calls,
            schema: Arc::clone(&schema),
        };
        self.finish(OperatorExec::plan(operator, vec![input], schema, self.partitions), &places)
    }

    fn finish(&self, grouped: Physical, places: &Places) -> SqlResult<Physical> {
        self.lowering.evaluate(&over_groups(self.node, &self.parts, places), grouped, Columns::ONLY)
    }
}

fn field(input: &Physical, place: usize) -> Option<DataType> {
    input.schema().fields().get(place).map(|f| f.data_type().clone())
}

/// What a grouping node's expressions are made of.
#[derive(Default)]
struct Parts {
    aggregates: Vec<Aggref>,
    /// Columns of the child, from 0.
    shown: Vec<usize>,
}

/// Where they come out.
struct Places {
    shown: Vec<usize>,
    calls: usize,
}

impl Parts {
    fn collect(&mut self, expr: &Expr) {
        match expr {
            Expr::Aggref(aggref) => {
                if !self.aggregates.contains(aggref) {
                    self.aggregates.push((**aggref).clone());
                }
            }
            Expr::Var(var) => {
                let column = usize::try_from(i32::from(var.attno.0) - 1).unwrap_or(usize::MAX);
                if !self.shown.contains(&column) {
                    self.shown.push(column);
                }
            }
            other => {
                let _ = other.try_each_child::<std::convert::Infallible>(&mut |child| {
                    self.collect(child);
                    Ok(())
                });
            }
        }
    }
}

fn call(
    lowering: &Lowering<'_>,
    aggref: &Aggref,
    split: AggregateSplit,
    child: &PlanNode,
    width: usize,
    computed: &mut Vec<Expr>,
) -> SqlResult<AggregateCall> {
    let mut column = |expr: &Expr| match expr {
        Expr::Var(var) => {
            usize::try_from(i32::from(var.attno.0) - 1).map_err(|_| malformed("an aggregate of a system column"))
        }
        expr => {
            computed.push(expr.clone());
            Ok(width + computed.len() - 1)
        }
    };
    let execution = lowering.execution;
    let compile = CompileContext::new(execution.catalog(), execution.view.as_ref());
    let args = aggref.args.iter().map(|t| column(&under_filter(&t.expr, aggref.filter.as_ref())));
    let args = args.collect::<SqlResult<Vec<_>>>()?;
    if split == AggregateSplit::Final {
        let [state] = args.as_slice() else { return Err(malformed("half an aggregate has one state")) };
        let whole = partial(child, *state)?;
        let kind = CallKind::Function(Arc::new(aggregate(whole, &compile)?), split);
        return Ok(AggregateCall { kind, args, arg_types: Vec::new(), filter: None });
    }
    let filter = aggref.filter.as_ref().map(&mut column).transpose()?;
    let kind = CallKind::Function(Arc::new(aggregate(aggref, &compile)?), split);
    Ok(AggregateCall { kind, args, arg_types: Vec::new(), filter })
}

/// An argument that is computed only for rows that FILTER lets through: what fails for the others never fails.
pub(crate) fn under_filter(arg: &Expr, filter: Option<&Expr>) -> Expr {
    let Some(filter) = filter.filter(|_| !matches!(arg, Expr::Var(_) | Expr::Const(_))) else { return arg.clone() };
    let nothing = Const {
        type_oid: arg.type_oid(),
        typmod: arg.typmod(),
        collation: arg.collation(),
        value: None,
        location: None,
    };
    Expr::Case(Box::new(CaseExpr {
        result_type: arg.type_oid(),
        collation: arg.collation(),
        arg: None,
        whens: vec![(filter.clone(), arg.clone())],
        default: Expr::Const(nothing),
    }))
}

/// The call whose states column `column` of `node` holds.
fn partial(node: &PlanNode, column: usize) -> SqlResult<&Aggref> {
    let target = node.targets.get(column).ok_or_else(|| malformed("a state that no child gives"))?;
    match (&target.expr, &node.kind) {
        (Expr::Aggref(aggref), PlanKind::Aggregate { split: AggregateSplit::Partial, .. }) => Ok(aggref),
        (
            Expr::Var(var),
            PlanKind::Gather { child, .. } | PlanKind::GatherMerge { child, .. } | PlanKind::Sort { child, .. },
        ) => {
            let column = usize::try_from(i32::from(var.attno.0) - 1);
            partial(child, column.map_err(|_| malformed("a state in a system column"))?)
        }
        _ => Err(SqlError::internal("half an aggregate over what gives no states")),
    }
}

/// The node with its expressions over the grouping operator's output.
fn over_groups(node: &PlanNode, parts: &Parts, places: &Places) -> PlanNode {
    let replace = |expr: &mut Expr| {
        let (place, type_of) = match &*expr {
            Expr::Aggref(aggref) => match parts.aggregates.iter().position(|a| *a == **aggref) {
                Some(i) => (places.calls + i, (aggref.result_type, -1, aggref.collation)),
                None => return,
            },
            Expr::Var(var) => {
                let column = usize::try_from(i32::from(var.attno.0) - 1).unwrap_or(usize::MAX);
                let shown = parts.shown.iter().position(|c| *c == column);
                let Some(&place) = shown.and_then(|i| places.shown.get(i)) else { return };
                (place, (var.type_oid, var.typmod, var.collation))
            }
            _ => return,
        };
        *expr = Expr::Var(Var {
            source: VarSource::Outer,
            attno: AttrNumber(place as i16 + 1),
            type_oid: type_of.0,
            typmod: type_of.1,
            collation: type_of.2,
            levels_up: 0,
            location: None,
        });
    };
    let mut node = PlanNode { kind: PlanKind::Result { child: None, one_time_filter: Vec::new() }, ..node.clone() };
    node.targets.iter_mut().for_each(|t| rewrite(&mut t.expr, &replace));
    node.quals.iter_mut().for_each(|q| rewrite(q, &replace));
    node
}
