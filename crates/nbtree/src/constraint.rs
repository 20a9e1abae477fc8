//! Preprocessing: from the query's scan keys to one constraint per column, in index order.
//!
//! ```text
//!   scan keys, any order                      constraints, one per key column
//!   b >= 3, a = ANY('{7,3,NULL,3}'),    ▸     a: points 3, 7          ┐ prefix: columns fixed to points
//!   a < 7, b < 9                              b: from 3 up to before 9   the range column
//! ```
//!
//! A column's values, NULL among them, form one order: the index's (`DESC` and `NULLS FIRST` applied). In it a
//! constraint is a sorted set of points, or a range with two optional bounds. "Not NULL" is then a bound like any other:
//! from after NULL, or up to before it. What cannot be merged because the operator family lacks a comparison of the two
//! arguments' types stays behind as a filter on the column.

use std::cmp::Ordering;

use stegodon_format::ids::Oid;
use stegodon_types::{Datum, SqlResult, ValueRef};

use crate::desc::{IndexDesc, IndexKey, KeyComparator};
use crate::error::{Error, Result};
use crate::key::{Argument, Condition, RowMember, ScanKey, Strategy};
use crate::sort;

/// One end of a range of a column's values, in index order.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    /// `None` is NULL.
    pub(crate) value: Option<Datum>,
    pub(crate) type_oid: Oid,
    /// Column against value.
    pub(crate) compare: KeyComparator,
    pub(crate) inclusive: bool,
    /// The row comparison (its number) that this is the first member of.
    pub(crate) row: Option<usize>,
}

impl Bound {
    /// How a column's value lies to the bound's.
    pub(crate) fn order(&self, key: &IndexKey, value: Option<ValueRef<'_>>) -> SqlResult<Ordering> {
        key.order(&self.compare, value, self.value.as_ref().map(Datum::as_ref))
    }

    /// Whether a value that lies so to the bound is outside, the bound being the range's lower end.
    pub(crate) fn is_below(&self, order: Ordering) -> bool {
        order.is_lt() || (order.is_eq() && !self.inclusive)
    }

    /// Whether a value that lies so to the bound is outside, the bound being the range's upper end.
    pub(crate) fn is_above(&self, order: Ordering) -> bool {
        order.is_gt() || (order.is_eq() && !self.inclusive)
    }
}

/// A set of values of one type, ascending in index order, without duplicates.
#[derive(Debug, Default)]
pub(crate) struct Points {
    /// `None` is NULL.
    pub(crate) values: Vec<Option<Datum>>,
    type_oid: Oid,
    /// Column against value; `None` before the first use.
    compare: Option<KeyComparator>,
}

impl Points {
    /// How a column's value lies to point `index`.
    pub(crate) fn order(&self, key: &IndexKey, value: Option<ValueRef<'_>>, index: usize) -> SqlResult<Ordering> {
        match (&self.compare, self.values.get(index)) {
            (Some(compare), Some(point)) => key.order(compare, value, point.as_ref().map(Datum::as_ref)),
            _ => Err(stegodon_types::SqlError::internal("a point beyond the last")),
        }
    }

    /// The first point in `from..to` that is not before `value`, and whether it equals it.
    pub(crate) fn find(
        &self,
        key: &IndexKey,
        value: Option<ValueRef<'_>>,
        from: usize,
        to: usize,
    ) -> SqlResult<(usize, bool)> {
        let at = sort::partition_point(from, to, |index| self.order(key, value, index).map(Ordering::is_gt))?;
        Ok((at, at < to && self.order(key, value, at)?.is_eq()))
    }

    fn contains(&self, key: &IndexKey, value: Option<ValueRef<'_>>) -> SqlResult<bool> {
        Ok(self.find(key, value, 0, self.values.len())?.1)
    }
}

/// A condition that could not be merged with the others on its column.
#[derive(Debug)]
struct Filter {
    strategy: Strategy,
    value: Datum,
    compare: KeyComparator,
}

/// Everything demanded of one key column.
#[derive(Debug, Default)]
pub(crate) struct ColumnConstraint {
    /// Whether the column is fixed to `points`; then there are no bounds.
    pub(crate) has_points: bool,
    pub(crate) points: Points,
    pub(crate) low: Option<Bound>,
    pub(crate) high: Option<Bound>,
    not_null: bool,
    filters: Vec<Filter>,
    member_of: Vec<Points>,
}

impl ColumnConstraint {
    fn clear(&mut self) {
        self.has_points = false;
        self.points.values.clear();
        self.low = None;
        self.high = None;
        self.not_null = false;
        self.filters.clear();
        self.member_of.clear();
    }

    /// Whether anything is demanded besides points and bounds.
    fn has_filters(&self) -> bool {
        !self.filters.is_empty() || !self.member_of.is_empty()
    }

    /// Whether a value lies before the range.
    pub(crate) fn is_below(&self, key: &IndexKey, value: Option<ValueRef<'_>>) -> SqlResult<bool> {
        self.low.as_ref().map_or(Ok(false), |low| Ok(low.is_below(low.order(key, value)?)))
    }

    /// Whether a value lies behind the range.
    pub(crate) fn is_above(&self, key: &IndexKey, value: Option<ValueRef<'_>>) -> SqlResult<bool> {
        self.high.as_ref().map_or(Ok(false), |high| Ok(high.is_above(high.order(key, value)?)))
    }

    /// Whether a value passes what could not be merged.
    fn passes_filters(&self, key: &IndexKey, value: Option<ValueRef<'_>>) -> SqlResult<bool> {
        for filter in &self.filters {
            let Some(value) = value else { return Ok(false) };
            if !filter.strategy.accepts(filter.compare.compare(value, filter.value.as_ref())?) {
                return Ok(false);
            }
        }
        for points in &self.member_of {
            if !points.contains(key, value)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a value satisfies everything.
    fn accepts(&self, key: &IndexKey, value: Option<ValueRef<'_>>) -> SqlResult<bool> {
        if self.has_points && !self.points.contains(key, value)? {
            return Ok(false);
        }
        if self.is_below(key, value)? || self.is_above(key, value)? {
            return Ok(false);
        }
        self.passes_filters(key, value)
    }
}

/// A row comparison, checked tuple by tuple.
#[derive(Debug, Default)]
pub(crate) struct RowConstraint {
    pub(crate) strategy: Option<Strategy>,
    pub(crate) members: Vec<(usize, Option<Datum>, KeyComparator)>,
}

/// All that is demanded of a tuple. Kept over rescans, so that only the first one allocates.
#[derive(Debug, Default)]
pub(crate) struct Constraints {
    pub(crate) columns: Vec<ColumnConstraint>,
    rows: Vec<RowConstraint>,
    rows_used: usize,
    /// Whether no tuple can satisfy the keys.
    pub(crate) empty: bool,
    /// The number of leading columns that are fixed to points.
    pub(crate) prefix: usize,
    /// The columns to look at once the prefix and the range column agree.
    pub(crate) filter_columns: Vec<usize>,
    /// Whether there are any, or row comparisons.
    pub(crate) has_filters: bool,
    scratch: Points,
}

impl Constraints {
    /// Replaces everything by what `keys` demand.
    pub(crate) fn set(&mut self, desc: &IndexDesc, keys: &[ScanKey]) -> Result<()> {
        self.columns.resize_with(desc.keys.len(), ColumnConstraint::default);
        self.columns.iter_mut().for_each(ColumnConstraint::clear);
        self.rows_used = 0;
        self.empty = false;
        self.prefix = 0;
        self.filter_columns.clear();
        for key in keys {
            match key {
                ScanKey::Column { column, condition } => self.add(desc, *column, condition)?,
                ScanKey::Row { strategy, members } => self.add_row(desc, *strategy, members)?,
            }
            if self.empty {
                return Ok(());
            }
        }
        for (column, key) in self.columns.iter_mut().zip(&desc.keys) {
            if !finish(column, key)? {
                self.empty = true;
                return Ok(());
            }
        }
        self.prefix = self.columns.iter().take_while(|column| column.has_points).count();
        let prefix = self.prefix;
        self.filter_columns.extend(self.columns.iter().enumerate().filter_map(|(i, column)| {
            let behind = i > prefix && (column.has_points || column.low.is_some() || column.high.is_some());
            (behind || column.has_filters()).then_some(i)
        }));
        self.has_filters = !self.filter_columns.is_empty() || self.rows_used > 0;
        Ok(())
    }

    fn add(&mut self, desc: &IndexDesc, column: usize, condition: &Condition) -> Result<()> {
        let key = desc.key(column)?;
        match condition {
            Condition::IsNull => {
                self.scratch.values.clear();
                self.scratch.values.push(None);
                self.add_points(desc, column, key.input_type)
            }
            Condition::IsNotNull => {
                if let Some(column) = self.columns.get_mut(column) {
                    column.not_null = true;
                }
                Ok(())
            }
            Condition::Compare(_, Argument { value: None, .. }) => {
                self.empty = true;
                Ok(())
            }
            Condition::Compare(Strategy::Equal, Argument { value, type_oid }) => {
                self.scratch.values.clear();
                self.scratch.values.push(value.clone());
                self.add_points(desc, column, *type_oid)
            }
            Condition::Compare(strategy, Argument { value: Some(value), type_oid }) => {
                self.add_bound(desc, column, *strategy, value, *type_oid, None)
            }
            Condition::Any { strategy: Strategy::Equal, elements, type_oid } => {
                self.scratch.values.clear();
                self.scratch.values.extend(elements.iter().filter(|element| element.is_some()).cloned());
                if self.scratch.values.len() > 1 {
                    sort_points(desc, column, *type_oid, &mut self.scratch.values)?;
                }
                self.add_points(desc, column, *type_oid)
            }
            Condition::Any { strategy, elements, type_oid } => {
                // Less than any of them is less than the greatest.
                let greatest = matches!(strategy, Strategy::Less | Strategy::LessEqual);
                let mut extreme: Option<&Datum> = None;
                for element in elements.iter().flatten() {
                    let better = match extreme {
                        None => true,
                        Some(best) => {
                            let order =
                                own_comparator(desc, column, *type_oid)?.compare(element.as_ref(), best.as_ref())?;
                            if greatest { order.is_gt() } else { order.is_lt() }
                        }
                    };
                    if better {
                        extreme = Some(element);
                    }
                }
                if let Some(value) = extreme {
                    return self.add_bound(desc, column, *strategy, value, *type_oid, None);
                }
                self.empty = true;
                Ok(())
            }
        }
    }

    fn add_row(&mut self, desc: &IndexDesc, strategy: Strategy, members: &[RowMember]) -> Result<()> {
        let Some(first) = members.first() else { return Ok(()) };
        let Some(value) = &first.argument.value else {
            self.empty = true;
            return Ok(());
        };
        if strategy == Strategy::Equal {
            return Err(stegodon_types::SqlError::internal("a row comparison for equality as a scan key").into());
        }
        if self.rows.len() == self.rows_used {
            self.rows.push(RowConstraint::default());
        }
        let number = self.rows_used;
        self.rows_used += 1;
        if let Some(row) = self.rows.get_mut(number) {
            row.strategy = Some(strategy);
            row.members.clear();
            for member in members {
                let compare = desc.comparator(member.column, member.argument.type_oid)?.clone();
                row.members.push((member.column, member.argument.value.clone(), compare));
            }
        }
        // The first member alone says less: ties on it are decided by the others.
        let relaxed = match strategy {
            _ if members.len() == 1 => strategy,
            Strategy::Less => Strategy::LessEqual,
            Strategy::Greater => Strategy::GreaterEqual,
            other => other,
        };
        self.add_bound(desc, first.column, relaxed, value, first.argument.type_oid, Some(number))
    }

    /// Takes the set in `scratch`: sorted, without duplicates.
    fn add_points(&mut self, desc: &IndexDesc, column: usize, type_oid: Oid) -> Result<()> {
        let compare = desc.comparator(column, type_oid)?.clone();
        let key = desc.key(column)?;
        let Some(constraint) = self.columns.get_mut(column) else { return Ok(()) };
        self.scratch.type_oid = type_oid;
        if !constraint.has_points {
            // Moved, not swapped: each buffer keeps its size, so that rescans do not grow it again.
            constraint.points.values.append(&mut self.scratch.values);
            constraint.points.type_oid = type_oid;
            constraint.points.compare = Some(compare);
            constraint.has_points = true;
        } else if let Some(between) = key.comparator(constraint.points.type_oid, type_oid) {
            // Both are sorted: one pass over both.
            let theirs = &self.scratch.values;
            let mut at = 0;
            let mut failed = None;
            constraint.points.values.retain(|ours| {
                while failed.is_none()
                    && let Some(other) = theirs.get(at)
                {
                    let (ours, other) = (ours.as_ref().map(Datum::as_ref), other.as_ref().map(Datum::as_ref));
                    match key.order(between, ours, other) {
                        Ok(Ordering::Greater) => at += 1,
                        Ok(order) => return order.is_eq(),
                        Err(error) => failed = Some(error),
                    }
                }
                false
            });
            if let Some(error) = failed {
                return Err(error.into());
            }
        } else {
            self.scratch.compare = Some(compare);
            constraint.member_of.push(std::mem::take(&mut self.scratch));
        }
        self.empty |= constraint.points.values.is_empty();
        Ok(())
    }

    fn add_bound(
        &mut self,
        desc: &IndexDesc,
        column: usize,
        strategy: Strategy,
        value: &Datum,
        type_oid: Oid,
        row: Option<usize>,
    ) -> Result<()> {
        let compare = desc.comparator(column, type_oid)?.clone();
        let key = desc.key(column)?;
        let Some(constraint) = self.columns.get_mut(column) else { return Ok(()) };
        constraint.not_null = true;
        let is_low = matches!(strategy, Strategy::Greater | Strategy::GreaterEqual) != key.desc;
        let inclusive = matches!(strategy, Strategy::LessEqual | Strategy::GreaterEqual);
        let side = if is_low { &mut constraint.low } else { &mut constraint.high };
        let bound = Bound { value: Some(value.clone()), type_oid, compare, inclusive, row };
        let Some(old) = side else {
            *side = Some(bound);
            return Ok(());
        };
        let Some(between) = key.comparator(old.type_oid, type_oid) else {
            let (value, compare) = (value.clone(), bound.compare);
            constraint.filters.push(Filter { strategy, value, compare });
            return Ok(());
        };
        let order = key.order(between, old.value.as_ref().map(Datum::as_ref), Some(value.as_ref()))?;
        let tighter = match if is_low { order } else { order.reverse() } {
            Ordering::Less => true,
            Ordering::Greater => false,
            // The exclusive one; of two inclusive ones the row comparison, which positions more exactly.
            Ordering::Equal => old.inclusive && (!inclusive || (row.is_some() && old.row.is_none())),
        };
        if tighter {
            *old = bound;
        }
        Ok(())
    }

    /// Row comparison `number`.
    pub(crate) fn row(&self, number: usize) -> Option<&RowConstraint> {
        self.rows.get(number)
    }

    /// The row comparisons in use.
    pub(crate) fn rows(&self) -> &[RowConstraint] {
        self.rows.get(..self.rows_used).unwrap_or(&[])
    }

    /// Whether a value of `column` passes, for a column of `filter_columns`.
    pub(crate) fn accepts(&self, desc: &IndexDesc, column: usize, value: Option<ValueRef<'_>>) -> SqlResult<bool> {
        match (self.columns.get(column), desc.keys.get(column)) {
            // Up to the range column, points and bounds have been seen to.
            (Some(constraint), Some(key)) if column <= self.prefix => constraint.passes_filters(key, value),
            (Some(constraint), Some(key)) => constraint.accepts(key, value),
            _ => Ok(true),
        }
    }
}

/// Sorts an array's elements into index order and removes duplicates.
fn sort_points(desc: &IndexDesc, column: usize, type_oid: Oid, values: &mut Vec<Option<Datum>>) -> Result<()> {
    let compare = own_comparator(desc, column, type_oid)?;
    let key = desc.key(column)?;
    let order = |a: &Option<Datum>, b: &Option<Datum>| {
        key.order(compare, a.as_ref().map(Datum::as_ref), b.as_ref().map(Datum::as_ref))
    };
    sort::sort(values, order)?;
    let mut failed = None;
    values.dedup_by(|a, b| match order(a, b) {
        Ok(order) => order.is_eq(),
        Err(error) => {
            failed = Some(error);
            false
        }
    });
    failed.map_or(Ok(()), |error| Err(error.into()))
}

/// The comparison of two arguments of one type.
fn own_comparator(desc: &IndexDesc, column: usize, type_oid: Oid) -> Result<&KeyComparator> {
    desc.key(column)?.comparator(type_oid, type_oid).ok_or_else(|| Error::MissingSupport {
        index: desc.name.clone(),
        left: type_oid,
        right: type_oid,
        attribute: column + 1,
    })
}

/// Merges a column's points, bounds and "not NULL". False if nothing can satisfy them.
fn finish(column: &mut ColumnConstraint, key: &IndexKey) -> Result<bool> {
    if column.has_points {
        if column.not_null {
            column.points.values.retain(Option::is_some);
        }
        keep_points_within(column, key)?;
        return Ok(!column.points.values.is_empty());
    }
    if let (Some(low), Some(high)) = (&column.low, &column.high)
        && let Some(between) = key.comparator(low.type_oid, high.type_oid)
    {
        let (from, to) = (low.value.as_ref().map(Datum::as_ref), high.value.as_ref().map(Datum::as_ref));
        match key.order(between, from, to)? {
            Ordering::Less => {}
            Ordering::Equal if low.inclusive && high.inclusive => {
                // A range of one value: a point, so that the next column can position, too.
                if low.row.is_none() && high.row.is_none() {
                    column.points.values.clear();
                    column.points.values.push(low.value.clone());
                    column.points.type_oid = low.type_oid;
                    column.points.compare = Some(low.compare.clone());
                    column.has_points = true;
                    column.low = None;
                    column.high = None;
                    return Ok(true);
                }
            }
            Ordering::Equal | Ordering::Greater => return Ok(false),
        }
    }
    if column.not_null {
        let side = if key.nulls_first { &mut column.low } else { &mut column.high };
        if side.is_none()
            && let Some(compare) = key.comparator(key.input_type, key.input_type)
        {
            let (compare, type_oid) = (compare.clone(), key.input_type);
            *side = Some(Bound { value: None, type_oid, compare, inclusive: false, row: None });
        }
    }
    Ok(true)
}

/// Drops the points that lie outside of the column's bounds; bounds that were applied become superfluous.
fn keep_points_within(column: &mut ColumnConstraint, key: &IndexKey) -> Result<()> {
    for is_low in [true, false] {
        let side = if is_low { &mut column.low } else { &mut column.high };
        let Some(bound) = side.take() else { continue };
        match key.comparator(column.points.type_oid, bound.type_oid) {
            Some(between) => {
                let mut failed = None;
                let limit = bound.value.as_ref().map(Datum::as_ref);
                column.points.values.retain(|point| {
                    match key.order(between, point.as_ref().map(Datum::as_ref), limit) {
                        Ok(order) => !if is_low { bound.is_below(order) } else { bound.is_above(order) },
                        Err(error) => {
                            failed = Some(error);
                            false
                        }
                    }
                });
                if let Some(error) = failed {
                    return Err(error.into());
                }
            }
            None => {
                if let Some(value) = bound.value {
                    let strategy = match (is_low != key.desc, bound.inclusive) {
                        (true, true) => Strategy::GreaterEqual,
                        (true, false) => Strategy::Greater,
                        (false, true) => Strategy::LessEqual,
                        (false, false) => Strategy::Less,
                    };
                    column.filters.push(Filter { strategy, value, compare: bound.compare });
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "constraint_tests.rs"]
mod tests;
