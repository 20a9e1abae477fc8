//! DISTINCT and DISTINCT ON: by sorting, or by hash.

use std::rc::Rc;

use stegodon_format::ids::Oid;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::{Const, SortGroupClause};
use stegodon_types::{Datum, SqlError, SqlResult};

use crate::cost::{self, AggregateCosts, AggregateMethod, Cost};
use crate::level::Level;
use crate::node::{AggregateSplit, AggregateStrategy};
use crate::path::{Path, PathKey, PathKind, PathList, common_prefix};
use crate::rel::Rel;

/// Plans DISTINCT over the output so far.
pub(crate) fn plan_distinct<'a>(
    level: &mut Level<'a>,
    input: Rel<'a>,
    clauses: &[SortGroupClause],
    keys: Option<Vec<PathKey>>,
    sort_keys: &[PathKey],
) -> SqlResult<Rel<'a>> {
    let q = level.query.clone();
    let columns = level.group_columns(clauses)?;
    let exprs: Vec<Expr> = columns.iter().map(|c| c.expr.clone()).collect();
    let Some(cheapest) = input.list.cheapest_total().cloned() else {
        return Err(SqlError::internal("nothing to make distinct"));
    };
    let grouped = !q.group_by.is_empty() || q.has_aggregates || q.having.is_some();
    // Grouped rows are mostly distinct already.
    let rows = if grouped { cheapest.rows } else { level.distinct_groups(&exprs, cheapest.rows) };
    let s = level.settings();
    let mut list = PathList::new(level.tuple_fraction > 0.0);
    if let Some(keys) = &keys {
        // DISTINCT ON keeps the first row in ORDER BY's order: that must be sorted whole.
        let wanted: Vec<PathKey> =
            if q.distinct_on && sort_keys.len() > keys.len() { sort_keys.to_vec() } else { keys.clone() };
        for p in &input.list.paths {
            let presorted = common_prefix(&wanted, &p.pathkeys);
            let sorted = if presorted == wanted.len() {
                Rc::clone(p)
            } else if !Rc::ptr_eq(p, &cheapest) && (presorted == 0 || !s.enable_incremental_sort) {
                continue;
            } else if presorted == 0 || !s.enable_incremental_sort {
                Rc::new(level.sort_path(p, wanted.clone(), -1.0))
            } else {
                Rc::new(level.incremental_sort_path(p, wanted.clone(), presorted, -1.0))
            };
            if keys.is_empty() {
                // All rows are alike: the first is enough.
                list.add(first_row_path(&sorted));
            } else {
                list.add(unique_path(level, &sorted, rows, &columns));
            }
        }
    }
    let can_hash = !q.distinct_on && !clauses.is_empty() && clauses.iter().all(|c| c.hashable);
    if can_hash {
        let c = cost::aggregate(
            s,
            AggregateMethod::Hashed,
            &AggregateCosts::default(),
            columns.len(),
            rows,
            Cost { startup: cheapest.startup, total: cheapest.total },
            cheapest.rows,
            cheapest.target.width,
        );
        list.add(Path {
            kind: PathKind::Aggregate {
                child: Rc::clone(&cheapest),
                strategy: AggregateStrategy::Hashed,
                split: AggregateSplit::Whole,
                groups: columns.clone(),
                having: Vec::new(),
            },
            target: Rc::clone(&cheapest.target),
            rows,
            startup: c.startup,
            total: c.total,
            disabled: cheapest.disabled + u32::from(!s.enable_hashagg),
            parallel_safe: false,
            parallel_aware: false,
            workers: 0,
            pathkeys: Vec::new(),
        });
    }
    if list.paths.is_empty() {
        return Err(SqlError::new(stegodon_types::SqlState::FeatureNotSupported, "could not implement DISTINCT")
            .detail("Some of the datatypes only support hashing, while others only support sorting."));
    }
    let mut out = input;
    out.rows = rows;
    out.parallel = false;
    out.list = list;
    Ok(out)
}

/// The first row of a path (`LIMIT 1`).
fn first_row_path<'a>(child: &Rc<Path<'a>>) -> Path<'a> {
    let one = Expr::Const(Const {
        type_oid: crate::exprs::INT8,
        typmod: -1,
        collation: Oid::INVALID,
        value: Some(Datum::Int64(1)),
        location: None,
    });
    let share = if child.rows > 0.0 { 1.0 / child.rows.max(1.0) } else { 1.0 };
    Path {
        kind: PathKind::Limit { child: Rc::clone(child), offset: None, count: Some(one), ties: Vec::new() },
        target: Rc::clone(&child.target),
        rows: 1.0,
        startup: child.startup,
        total: child.startup + (child.total - child.startup) * share,
        disabled: child.disabled,
        parallel_safe: false,
        parallel_aware: false,
        workers: 0,
        pathkeys: child.pathkeys.clone(),
    }
}

pub(crate) fn unique_path<'a>(
    level: &Level<'a>,
    child: &Rc<Path<'a>>,
    rows: f64,
    columns: &[crate::path::GroupColumn],
) -> Path<'a> {
    let s = level.settings();
    Path {
        kind: PathKind::Unique { child: Rc::clone(child), groups: columns.to_vec() },
        target: Rc::clone(&child.target),
        rows,
        startup: child.startup,
        total: child.total + s.cpu_operator_cost * child.rows * columns.len() as f64,
        disabled: child.disabled,
        parallel_safe: false,
        parallel_aware: false,
        workers: 0,
        pathkeys: child.pathkeys.clone(),
    }
}
