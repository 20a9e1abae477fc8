//! A place between tuples: where a descent goes, and where the arrays stand.
//!
//! ```text
//!   index on (a, b, c);  a = ANY('{3,7}') AND b >= 5, forward, arrays at 3
//!
//!   position      a    b    c            tuples before it    │   tuples behind it
//!               ( 3 ,  5 , -inf)         … (3,4,9) (3,4,NULL)│(3,5,1) (3,5,2) (3,6,0) …
//! ```
//!
//! A position is a prefix of column values followed by minus or plus infinity, so that it never equals a tuple. A
//! forward scan wants the first tuple behind it, a backward scan the last one before it. A pivot can equal a position:
//! both are a prefix followed by minus infinity.

use std::cmp::Ordering;

use stegodon_format::btree::{IndexTuple, MAX_ATTRIBUTES};
use stegodon_types::{Datum, SqlResult};

use crate::constraint::Constraints;
use crate::desc::IndexDesc;
use crate::key::Strategy;
use crate::tuple::TupleValues;

/// Which way a scan goes through the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// In index order.
    Forward,
    /// Against it.
    Backward,
}

impl Direction {
    /// An order of index positions as this direction meets them.
    pub(crate) const fn apply(self, order: Ordering) -> Ordering {
        match self {
            Direction::Forward => order,
            Direction::Backward => order.reverse(),
        }
    }
}

/// Where a position's value for one column comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Point(u32),
    Low,
    High,
    RowMember { row: u32, member: u32 },
}

/// A place between tuples. Values are not copied: they stay in the [`Constraints`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position {
    sources: [Source; MAX_ATTRIBUTES],
    len: usize,
    /// What follows the prefix: plus infinity, else minus infinity.
    after_equals: bool,
}

/// How a tuple lies to a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Side {
    pub(crate) order: Ordering,
    /// Whether only an attribute that a pivot lacks decided.
    pub(crate) truncated: bool,
}

impl Position {
    pub(crate) const fn start() -> Self {
        Self { sources: [Source::Low; MAX_ATTRIBUTES], len: 0, after_equals: false }
    }

    /// The position at which tuples start to be wanted, with the arrays of the prefix at `cursor`.
    pub(crate) fn new(desc: &IndexDesc, keys: &Constraints, cursor: &[u32], direction: Direction) -> Self {
        let forward = direction == Direction::Forward;
        let mut position = Position { after_equals: !forward, ..Position::start() };
        for (column, constraint) in keys.columns.iter().enumerate() {
            if constraint.has_points {
                // Behind the prefix, the first of the points is where the least wanted value lies.
                let point = match cursor.get(column) {
                    Some(&point) if column < keys.prefix => point,
                    _ if forward => 0,
                    _ => constraint.points.values.len().saturating_sub(1) as u32,
                };
                position.push(Source::Point(point));
                continue;
            }
            let (source, near) =
                if forward { (Source::Low, &constraint.low) } else { (Source::High, &constraint.high) };
            let Some(near) = near else { break };
            if let Some(row) = near.row {
                position.push_row(desc, keys, column, row, forward);
                break;
            }
            position.push(source);
            if !near.inclusive {
                position.after_equals = forward;
                break;
            }
        }
        position
    }

    fn push(&mut self, source: Source) {
        if let Some(slot) = self.sources.get_mut(self.len) {
            *slot = source;
            self.len += 1;
        }
    }

    /// Adds the members of a row comparison as far as they are the next columns, ordered alike.
    fn push_row(&mut self, desc: &IndexDesc, keys: &Constraints, column: usize, row: usize, forward: bool) {
        let Some(constraint) = keys.row(row) else { return };
        let desc_of = |column: usize| desc.keys.get(column).map(|key| key.desc);
        let usable = constraint
            .members
            .iter()
            .enumerate()
            .take_while(|(i, (member, value, _))| {
                *member == column + i && value.is_some() && desc_of(*member) == desc_of(column)
            })
            .count();
        for member in 0..usable {
            self.push(Source::RowMember { row: row as u32, member: member as u32 });
        }
        let strict = matches!(constraint.strategy, Some(Strategy::Less | Strategy::Greater));
        if strict && usable == constraint.members.len() {
            self.after_equals = forward;
        }
    }

    /// How `tuple`, which has `count` attributes, lies to this position.
    pub(crate) fn compare(
        &self,
        desc: &IndexDesc,
        keys: &Constraints,
        tuple: IndexTuple<'_>,
        count: usize,
        is_pivot: bool,
        scratch: &mut Vec<u8>,
    ) -> SqlResult<Side> {
        let mut values = TupleValues::new(desc, tuple)?;
        for (column, source) in self.sources.iter().take(self.len).enumerate() {
            let (Some(key), Some(constraint)) = (desc.keys.get(column), keys.columns.get(column)) else { break };
            if column >= count {
                return Ok(Side { order: Ordering::Less, truncated: true });
            }
            let value = values.get(column, scratch)?;
            let order = match *source {
                Source::Point(point) => constraint.points.order(key, value, point as usize)?,
                Source::Low => constraint.low.as_ref().map_or(Ok(Ordering::Equal), |low| low.order(key, value))?,
                Source::High => constraint.high.as_ref().map_or(Ok(Ordering::Equal), |high| high.order(key, value))?,
                Source::RowMember { row, member } => {
                    let member = keys.row(row as usize).and_then(|row| row.members.get(member as usize));
                    match member {
                        Some((_, limit, compare)) => key.order(compare, value, limit.as_ref().map(Datum::as_ref))?,
                        None => Ordering::Equal,
                    }
                }
            };
            if order.is_ne() {
                return Ok(Side { order, truncated: false });
            }
        }
        let order = if self.after_equals {
            Ordering::Less
        } else if is_pivot && count == self.len && tuple.heap_tid().map_err(crate::tuple::corrupted)?.is_none() {
            Ordering::Equal
        } else {
            Ordering::Greater
        };
        Ok(Side { order, truncated: false })
    }

    /// The values of the prefix, and whether plus infinity follows: for tests.
    #[cfg(test)]
    pub(crate) fn explain(&self, keys: &Constraints) -> (Vec<Option<Datum>>, bool) {
        let value = |(column, source): (usize, &Source)| {
            let constraint = keys.columns.get(column)?;
            match *source {
                Source::Point(point) => constraint.points.values.get(point as usize)?.clone(),
                Source::Low => constraint.low.as_ref()?.value.clone(),
                Source::High => constraint.high.as_ref()?.value.clone(),
                Source::RowMember { row, member } => keys.row(row as usize)?.members.get(member as usize)?.1.clone(),
            }
        };
        (self.sources.iter().take(self.len).enumerate().map(value).collect(), self.after_equals)
    }
}
