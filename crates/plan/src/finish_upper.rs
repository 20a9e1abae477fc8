//! Keys and expressions of the nodes above joins: aggregates in halves, groups, windows, orders.

use stegodon_format::ids::{AttrNumber, Oid};
use stegodon_nodes::Expr;
use stegodon_nodes::expr::*;
use stegodon_nodes::frame;
use stegodon_types::{SqlError, SqlResult};

use crate::exprs::{self, strip_relabel, type_of};
use crate::finish::{outer_var, position, resolve};
use crate::level::Level;
use crate::node::*;
use crate::path::{GroupColumn, PathKey};

pub(crate) fn resolve_aggregated(
    level: &Level<'_>,
    e: &Expr,
    input: &[Expr],
    split: AggregateSplit,
) -> SqlResult<Expr> {
    let inputs: &[(VarSource, &[Expr])] = &[(VarSource::Outer, input)];
    if split == AggregateSplit::Partial
        && let Some(i) = position(input, e)
    {
        // Constants too: beside states there are only columns.
        return Ok(outer_var(VarSource::Outer, i, e));
    }
    if split != AggregateSplit::Final {
        return resolve(e, inputs);
    }
    // The aggregates themselves come up from below as states.
    exprs::try_replaced(e, &mut |x| {
        if let Expr::Aggref(a) = x {
            let i = position(input, x).ok_or_else(|| SqlError::internal("an aggregate's state is missing"))?;
            let state = level.catalog().aggregate(a.function).map_or(Oid::INVALID, |r| r.transition_type);
            let mut column = outer_var(VarSource::Outer, i, x);
            if let Expr::Var(v) = &mut column {
                v.type_oid = state;
                v.typmod = -1;
            }
            let mut a = a.clone();
            a.args = vec![exprs::target(column, 1)];
            a.filter = None;
            a.direct_args = Vec::new();
            return Ok(Some(Expr::Aggref(a)));
        }
        if matches!(x, Expr::Const(_) | Expr::Param(_)) {
            return Ok(None);
        }
        if let Some(i) = position(input, x) {
            return Ok(Some(outer_var(VarSource::Outer, i, x)));
        }
        match x {
            Expr::Var(_) => Err(SqlError::internal("a column is missing from its input")),
            _ => Ok(None),
        }
    })
}

pub(crate) fn group_keys(groups: &[GroupColumn], input: &[Expr]) -> SqlResult<Vec<GroupKey>> {
    groups
        .iter()
        .map(|g| {
            let i = position(input, &g.expr).ok_or_else(|| SqlError::internal("a group column is missing"))?;
            Ok(GroupKey { column: AttrNumber(i as i16), equality: g.equality, collation: exprs::collation_of(&g.expr) })
        })
        .collect()
}

pub(crate) fn window_of(w: &crate::window::ActiveWindow, input: &[Expr]) -> SqlResult<Window> {
    let place = |e: &Expr| position(input, e).ok_or_else(|| SqlError::internal("a window's column is missing"));
    let c = &w.clause;
    let mut partition_by = Vec::new();
    for (g, e) in c.partition_by.iter().zip(&w.partition) {
        let column = AttrNumber(place(e)? as i16);
        partition_by.push(GroupKey { column, equality: g.equality, collation: exprs::collation_of(e) });
    }
    let mut order_by = Vec::new();
    for (o, e) in c.order_by.iter().zip(&w.order) {
        order_by.push(SortKey {
            column: AttrNumber(place(e)? as i16),
            operator: o.ordering,
            descending: o.descending,
            nulls_first: o.nulls_first,
            collation: exprs::collation_of(e),
        });
    }
    let has = |bits: u32| c.frame_options & bits != 0;
    Ok(Window {
        reference: c.reference,
        name: w.name.clone(),
        partition_by,
        order_by,
        frame_options: c.frame_options,
        start_offset: c
            .start_offset
            .clone()
            .filter(|_| has(frame::START_OFFSET_PRECEDING | frame::START_OFFSET_FOLLOWING)),
        end_offset: c.end_offset.clone().filter(|_| has(frame::END_OFFSET_PRECEDING | frame::END_OFFSET_FOLLOWING)),
    })
}

pub(crate) fn key_position(level: &Level<'_>, k: &PathKey, output: &[Expr]) -> Option<usize> {
    let class = level.classes.get(k.class)?;
    class.members.iter().filter(|m| !m.relids.is_empty() || class.volatile || !class.has_const).find_map(|m| {
        position(output, &m.expr).or_else(|| output.iter().position(|o| strip_relabel(o) == &m.key).map(|i| i + 1))
    })
}

/// Sort keys over an output that has all of them.
pub(crate) fn sort_keys(level: &Level<'_>, keys: &[PathKey], output: &[Expr]) -> SqlResult<Vec<SortKey>> {
    keys.iter()
        .map(|k| {
            let i = key_position(level, k, output).ok_or_else(|| SqlError::internal("a sort key is missing"))?;
            let class = level.classes.get(k.class).ok_or_else(|| SqlError::internal("a sort key without a class"))?;
            let strategy = if k.descending { 5 } else { 1 };
            let types = class.members.iter().map(|m| m.type_oid).chain(output.get(i - 1).map(type_of));
            let mut operator = None;
            for t in types {
                operator = operator.or_else(|| level.catalog().family_operator(k.family, t, t, strategy));
            }
            let operator = operator.or_else(|| {
                let list = level.catalog().amops_of_family(k.family);
                list.iter()
                    .find(|a| a.strategy == strategy && a.left == a.right && a.purpose == b's')
                    .map(|a| a.operator)
            });
            Ok(SortKey {
                column: AttrNumber(i as i16),
                operator: operator.ok_or_else(|| SqlError::internal("a sort key without an operator"))?,
                descending: k.descending,
                nulls_first: k.nulls_first,
                collation: class.collation,
            })
        })
        .collect()
}
