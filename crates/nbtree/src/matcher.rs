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

/// The keys of a scan and where its arrays stand.
#[derive(Debug)]
pub(crate) struct Matcher {
    pub(crate) desc: Arc<IndexDesc>,
    pub(crate) direction: Direction,
    keys: Constraints,
    cursor: [u32; MAX_ATTRIBUTES],
    position: Position,
    /// How often the cursor has moved.
    pub(crate) moves: u64,
    scratch: Vec<u8>,
}

impl Matcher {
    pub(crate) fn new(desc: Arc<IndexDesc>, direction: Direction) -> Self {
        Self {
            desc,
            direction,
            keys: Constraints::default(),
            cursor: [0; MAX_ATTRIBUTES],
            position: Position::start(),
            moves: 0,
            scratch: Vec::new(),
        }
    }

    /// Takes new keys. False if nothing can satisfy them.
    pub(crate) fn set(&mut self, keys: &[ScanKey]) -> Result<bool> {
        self.keys.set(&self.desc, keys)?;
        self.moves = 0;
        self.rewind(0);
        self.place();
        Ok(!self.keys.empty)
    }

    #[cfg(test)]
    pub(crate) fn keys(&self) -> &Constraints {
        &self.keys
    }

    #[cfg(test)]
    pub(crate) fn position(&self) -> &Position {
        &self.position
    }

    /// Sets the cursor to the first point of each column from `from` on.
    fn rewind(&mut self, from: usize) {
        for column in from..self.keys.prefix {
            let first = match self.direction {
                Direction::Forward => 0,
                Direction::Backward => self.points_of(column).saturating_sub(1),
            };
            self.put(column, first);
        }
    }

    fn points_of(&self, column: usize) -> usize {
        self.keys.columns.get(column).map_or(0, |constraint| constraint.points.values.len())
    }

    fn put(&mut self, column: usize, point: usize) {
        if let Some(slot) = self.cursor.get_mut(column) {
            *slot = point as u32;
        }
    }

    /// Recomputes the position from the cursor.
    fn place(&mut self) {
        self.position = Position::new(&self.desc, &self.keys, &self.cursor, self.direction);
    }

    /// Moves the last of the first `columns` columns to its next point, and the ones before it where it has none left.
    fn carry(&mut self, columns: usize) -> Verdict {
        for column in (0..columns).rev() {
            let at = self.cursor.get(column).map_or(0, |&point| point as usize);
            let next = match self.direction {
                Direction::Forward if at + 1 < self.points_of(column) => at + 1,
                Direction::Backward if at > 0 => at - 1,
                _ => continue,
            };
            self.put(column, next);
            self.rewind(column + 1);
            self.moves += 1;
            self.place();
            return Verdict::Before;
        }
        Verdict::End
    }

    /// How `tuple` lies to the position, in index order.
    pub(crate) fn side(&mut self, tuple: IndexTuple<'_>, is_pivot: bool) -> SqlResult<Side> {
        let count = tuple.attribute_count(self.desc.attributes.len());
        self.position.compare(&self.desc, &self.keys, tuple, count, is_pivot, &mut self.scratch)
    }

    /// Whether `tuple` agrees with the prefix at its cursor and with the range column's bounds. Moves nothing. If the
    /// first and the last tuple of a page agree, so does all between.
    pub(crate) fn agrees(&mut self, tuple: IndexTuple<'_>) -> SqlResult<bool> {
        let mut values = TupleValues::new(&self.desc, tuple)?;
        for (column, (constraint, key)) in
            self.keys.columns.iter().zip(&self.desc.keys).enumerate().take(self.keys.prefix + 1)
        {
            if constraint.has_points {
                let point = self.cursor.get(column).map_or(0, |&point| point as usize);
                let value = values.get(column, &mut self.scratch)?;
                if constraint.points.order(key, value, point)?.is_ne() {
                    return Ok(false);
                }
            } else if constraint.low.is_some() || constraint.high.is_some() {
                let value = values.get(column, &mut self.scratch)?;
                if let Some(low) = &constraint.low
                    && low.is_below(low.order(key, value)?)
                {
                    return Ok(false);
                }
                if let Some(high) = &constraint.high
                    && high.is_above(high.order(key, value)?)
                {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// What `tuple` is to the scan. May move the cursor.
    pub(crate) fn check(&mut self, tuple: IndexTuple<'_>) -> SqlResult<Verdict> {
        let count = tuple.attribute_count(self.desc.attributes.len());
        let verdict = self.check_required(tuple, count)?;
        if verdict != Verdict::Match || self.filters_pass(tuple)? { Ok(verdict) } else { Ok(Verdict::Filtered) }
    }

    /// [`Matcher::check`] without filters: the columns whose order tells about the tuples that follow. For a high key,
    /// it is the answer for every tuple behind it.
    pub(crate) fn check_required(&mut self, tuple: IndexTuple<'_>, count: usize) -> SqlResult<Verdict> {
        let desc = Arc::clone(&self.desc);
        let mut values = TupleValues::new(&desc, tuple)?;
        let mut moved = false;
        for (column, key) in desc.keys.iter().enumerate().take(self.keys.prefix) {
            if column >= count {
                self.place_if(moved);
                return Ok(Verdict::Undecided);
            }
            let value = values.get(column, &mut self.scratch)?;
            let at = self.cursor.get(column).map_or(0, |&point| point as usize);
            let Some(constraint) = self.keys.columns.get(column) else { break };
            let points = &constraint.points;
            match self.direction.apply(points.order(key, value, at)?) {
                Ordering::Equal => {}
                Ordering::Less => {
                    self.place_if(moved);
                    return Ok(Verdict::Before);
                }
                Ordering::Greater => {
                    let found = match self.direction {
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
                    let Some((next, equal)) = found else { return Ok(self.carry(column)) };
                    self.put(column, next);
                    self.rewind(column + 1);
                    self.moves += 1;
                    moved = true;
                    if !equal {
                        self.place();
                        return Ok(Verdict::Before);
                    }
                }
            }
        }
        self.place_if(moved);
        let column = self.keys.prefix;
        let (Some(key), Some(constraint)) = (desc.keys.get(column), self.keys.columns.get(column)) else {
            return Ok(Verdict::Match);
        };
        if constraint.low.is_none() && constraint.high.is_none() {
            return Ok(Verdict::Match);
        }
        if column >= count {
            return Ok(Verdict::Undecided);
        }
        let value = values.get(column, &mut self.scratch)?;
        let below = match &constraint.low {
            Some(low) => low.is_below(low.order(key, value)?),
            None => false,
        };
        let above = match &constraint.high {
            Some(high) if !below => high.is_above(high.order(key, value)?),
            _ => false,
        };
        Ok(match (below, above, self.direction) {
            (false, false, _) => Verdict::Match,
            (true, _, Direction::Forward) | (_, true, Direction::Backward) => Verdict::Before,
            _ => self.carry(column),
        })
    }

    fn place_if(&mut self, moved: bool) {
        if moved {
            self.place();
        }
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
