//! Deciding what a tuple is to the scan, and moving the arrays along.
//!
//! The columns of the prefix are each fixed to points; the arrays' state is one point per column, `cursor`. Tuples come
//! in index order, so does the cursor: it only moves forward (in the scan's direction), like the digits of an odometer.
//!
//! ```text
//!   a = ANY('{1,4}') AND b = ANY('{2,8}') AND c < 5          cursor (1,2) → (1,8) → (4,2) → (4,8) → end
//!
//!   tuple (1,1,0)   before the cursor's position
//!         (1,2,3)   matches
//!         (1,2,7)   c is past its bound: the last column of the prefix moves on, cursor (1,8)
//!         (1,9,0)   past every b: a moves on, cursor (4,2)
//!         (5,0,0)   past every a: the scan ends
//! ```

use std::cmp::Ordering;
use std::sync::Arc;

use stegodon_format::btree::{IndexTuple, MAX_ATTRIBUTES};
use stegodon_types::{Datum, SqlResult};

use crate::constraint::Constraints;
use crate::desc::IndexDesc;
use crate::error::Result;
use crate::key::{ScanKey, Strategy};
use crate::position::{Direction, Position, Side};
use crate::tuple::TupleValues;

/// What a tuple is to the scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It satisfies every key.
    Match,
    /// It fails a key that says nothing about the tuples that follow.
    Filtered,
    /// It lies before the position: nothing matches until that is reached.
    Before,
    /// Neither it nor anything behind it matches.
    End,
    /// A pivot whose missing attributes would decide.
    Undecided,
}

/// Where the arrays of a scan stand.
#[derive(Debug)]
struct Cursor {
    /// One point per column of the prefix.
    points: [u32; MAX_ATTRIBUTES],
    /// Where that is in the index.
    position: Position,
    /// How often it has moved.
    moves: u64,
}

impl Cursor {
    fn at(&self, column: usize) -> usize {
        self.points.get(column).map_or(0, |&point| point as usize)
    }

    fn put(&mut self, column: usize, point: usize) {
        if let Some(slot) = self.points.get_mut(column) {
            *slot = point as u32;
        }
    }

    /// Goes to the first point of each column from `from` on.
    fn rewind(&mut self, keys: &Constraints, direction: Direction, from: usize) {
        for column in from..keys.prefix {
            let first = match direction {
                Direction::Forward => 0,
                Direction::Backward => points_of(keys, column).saturating_sub(1),
            };
            self.put(column, first);
        }
    }

    /// Recomputes the position from the points.
    fn place(&mut self, desc: &IndexDesc, keys: &Constraints, direction: Direction) {
        self.position = Position::new(desc, keys, &self.points, direction);
    }

    /// Moves `column` to another point, and those behind it to their first.
    fn advance(&mut self, keys: &Constraints, direction: Direction, column: usize, point: usize) {
        self.put(column, point);
        self.rewind(keys, direction, column + 1);
        self.moves += 1;
    }

    /// Moves the last of the first `columns` columns to its next point, and the ones before it where it has none left.
    fn carry(&mut self, desc: &IndexDesc, keys: &Constraints, direction: Direction, columns: usize) -> Verdict {
        for column in (0..columns).rev() {
            let at = self.at(column);
            let next = match direction {
                Direction::Forward if at + 1 < points_of(keys, column) => at + 1,
                Direction::Backward if at > 0 => at - 1,
                _ => continue,
            };
            self.advance(keys, direction, column, next);
            self.place(desc, keys, direction);
            return Verdict::Before;
        }
        Verdict::End
    }
}

fn points_of(keys: &Constraints, column: usize) -> usize {
    keys.columns.get(column).map_or(0, |constraint| constraint.points.values.len())
}

/// The keys of a scan and where its arrays stand.
#[derive(Debug)]
pub(crate) struct Matcher {
    pub(crate) desc: Arc<IndexDesc>,
    pub(crate) direction: Direction,
    keys: Constraints,
    cursor: Cursor,
    scratch: Vec<u8>,
}

impl Matcher {
    pub(crate) fn new(desc: Arc<IndexDesc>, direction: Direction) -> Self {
        let cursor = Cursor { points: [0; MAX_ATTRIBUTES], position: Position::start(), moves: 0 };
        Self { desc, direction, keys: Constraints::default(), cursor, scratch: Vec::new() }
    }

    /// Takes new keys. False if nothing can satisfy them.
    pub(crate) fn set(&mut self, keys: &[ScanKey]) -> Result<bool> {
        self.keys.set(&self.desc, keys)?;
        self.cursor.moves = 0;
        self.cursor.rewind(&self.keys, self.direction, 0);
        self.cursor.place(&self.desc, &self.keys, self.direction);
        Ok(!self.keys.empty)
    }

    /// Whether there are keys that order cannot decide.
    pub(crate) fn has_filters(&self) -> bool {
        self.keys.has_filters
    }

    /// How often the cursor has moved since the keys were set.
    pub(crate) fn moves(&self) -> u64 {
        self.cursor.moves
    }

    #[cfg(test)]
    pub(crate) fn keys(&self) -> &Constraints {
        &self.keys
    }

    #[cfg(test)]
    pub(crate) fn position(&self) -> &Position {
        &self.cursor.position
    }

    /// How `tuple` lies to the position, in index order.
    pub(crate) fn side(&mut self, tuple: IndexTuple<'_>, is_pivot: bool) -> SqlResult<Side> {
        let count = tuple.attribute_count(self.desc.attributes.len());
        self.cursor.position.compare(&self.desc, &self.keys, tuple, count, is_pivot, &mut self.scratch)
    }

    /// Whether `tuple` agrees with the prefix at its cursor and with the range column's bounds. Moves nothing. If the
    /// first and the last tuple of a page agree, so does all between.
    pub(crate) fn agrees(&mut self, tuple: IndexTuple<'_>) -> SqlResult<bool> {
        let mut values = TupleValues::new(&self.desc, tuple)?;
        for (column, (constraint, key)) in
            self.keys.columns.iter().zip(&self.desc.keys).enumerate().take(self.keys.prefix + 1)
        {
            if !constraint.has_points && constraint.low.is_none() && constraint.high.is_none() {
                continue;
            }
            let value = values.get(column, &mut self.scratch)?;
            let agrees = if constraint.has_points {
                constraint.points.order(key, value, self.cursor.at(column))?.is_eq()
            } else {
                !constraint.is_below(key, value)? && !constraint.is_above(key, value)?
            };
            if !agrees {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What `tuple` is to the scan. May move the cursor.
    pub(crate) fn check(&mut self, tuple: IndexTuple<'_>) -> SqlResult<Verdict> {
        let count = tuple.attribute_count(self.desc.attributes.len());
        let verdict = self.check_required(tuple, count)?;
        if verdict != Verdict::Match || !self.keys.has_filters || self.filters_pass(tuple)? {
            Ok(verdict)
        } else {
            Ok(Verdict::Filtered)
        }
    }

    /// [`Matcher::check`] without filters: the columns whose order tells about the tuples that follow. For a high key,
    /// it is the answer for every tuple behind it.
    pub(crate) fn check_required(&mut self, tuple: IndexTuple<'_>, count: usize) -> SqlResult<Verdict> {
        let Self { desc, direction, keys, cursor, scratch } = self;
        let (desc, direction) = (&**desc, *direction);
        let mut values = TupleValues::new(desc, tuple)?;
        let before = cursor.moves;
        for (column, (key, constraint)) in desc.keys.iter().zip(&keys.columns).enumerate().take(keys.prefix) {
            let undecided = column >= count;
            let points = &constraint.points;
            let at = cursor.at(column);
            let mut value = None;
            let mut order = Ordering::Less;
            if !undecided {
                value = values.get(column, scratch)?;
                order = direction.apply(points.order(key, value, at)?);
            }
            match order {
                Ordering::Equal => {}
                Ordering::Less => {
                    if cursor.moves != before {
                        cursor.place(desc, keys, direction);
                    }
                    return Ok(if undecided { Verdict::Undecided } else { Verdict::Before });
                }
                Ordering::Greater => {
                    let found = match direction {
                        Direction::Forward => {
                            let len = points.values.len();
                            let (next, equal) = points.find(key, value, at + 1, len)?;
                            (next < len).then_some((next, equal))
                        }
                        Direction::Backward => {
                            let (next, equal) = points.find(key, value, 0, at)?;
                            // The greatest point that is not greater than the value.
                            if equal { Some((next, true)) } else { next.checked_sub(1).map(|next| (next, false)) }
                        }
                    };
                    let Some((next, equal)) = found else { return Ok(cursor.carry(desc, keys, direction, column)) };
                    cursor.advance(keys, direction, column, next);
                    if !equal {
                        cursor.place(desc, keys, direction);
                        return Ok(Verdict::Before);
                    }
                }
            }
        }
        if cursor.moves != before {
            cursor.place(desc, keys, direction);
        }
        let column = keys.prefix;
        let (Some(key), Some(constraint)) = (desc.keys.get(column), keys.columns.get(column)) else {
            return Ok(Verdict::Match);
        };
        if constraint.low.is_none() && constraint.high.is_none() {
            return Ok(Verdict::Match);
        }
        if column >= count {
            return Ok(Verdict::Undecided);
        }
        let value = values.get(column, scratch)?;
        Ok(if constraint.is_below(key, value)? {
            if direction == Direction::Forward { Verdict::Before } else { cursor.carry(desc, keys, direction, column) }
        } else if constraint.is_above(key, value)? {
            if direction == Direction::Backward { Verdict::Before } else { cursor.carry(desc, keys, direction, column) }
        } else {
            Verdict::Match
        })
    }

    /// Whether `tuple` passes the keys that order cannot decide.
    pub(crate) fn filters_pass(&mut self, tuple: IndexTuple<'_>) -> SqlResult<bool> {
        if !self.keys.filter_columns.is_empty() {
            let mut values = TupleValues::new(&self.desc, tuple)?;
            for &column in &self.keys.filter_columns {
                let value = values.get(column, &mut self.scratch)?;
                if !self.keys.accepts(&self.desc, column, value)? {
                    return Ok(false);
                }
            }
        }
        for row in self.keys.rows() {
            let Some(strategy) = row.strategy else { continue };
            let mut order = Some(Ordering::Equal);
            for (column, limit, compare) in &row.members {
                let mut values = TupleValues::new(&self.desc, tuple)?;
                let value = values.get(*column, &mut self.scratch)?;
                // A NULL on either side, reached before a difference, makes the comparison NULL.
                order = match (value, limit.as_ref().map(Datum::as_ref)) {
                    (Some(value), Some(limit)) => Some(compare.compare(value, limit)?),
                    _ => None,
                };
                if order != Some(Ordering::Equal) {
                    break;
                }
            }
            if !order.is_some_and(|order| Strategy::accepts(strategy, order)) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
