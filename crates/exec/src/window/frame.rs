//! Which rows of its partition a row's frame holds.

use std::ops::Range;

use stegodon_functions::Evaluator;
use stegodon_nodes::frame as bits;
use stegodon_plan::node::Window;
use stegodon_types::{Datum, SqlError, SqlResult, SqlState};

use crate::execution::Execution;
use crate::lower::{Columns, Lowering};
use crate::operator::malformed;

/// A frame clause, its offsets compiled.
#[derive(Debug)]
pub(super) struct Frame {
    options: u32,
    start: Option<Evaluator>,
    end: Option<Evaluator>,
}

impl Frame {
    pub(super) fn new(lowering: &Lowering<'_>, window: &Window) -> SqlResult<Self> {
        let options = window.frame_options;
        let has_offset = window.start_offset.is_some() || window.end_offset.is_some();
        if has_offset && options & bits::RANGE != 0 {
            return Err(SqlError::unsupported("RANGE with an offset in a window frame"));
        }
        let compile =
            |e: &Option<stegodon_nodes::Expr>| e.as_ref().map(|e| lowering.compile(e, Columns::ONLY)).transpose();
        Ok(Self { options, start: compile(&window.start_offset)?, end: compile(&window.end_offset)? })
    }

    /// The offsets' values; 0 where there is none.
    pub(super) fn offsets(&self, execution: &Execution) -> SqlResult<(u64, u64)> {
        let value = |evaluator: &Option<Evaluator>, which: &str| -> SqlResult<u64> {
            let Some(evaluator) = evaluator else { return Ok(0) };
            match execution.with_context(|cx| evaluator.evaluate_const(cx))? {
                Some(Datum::Int64(n)) => u64::try_from(n).map_err(|_| {
                    SqlError::new(
                        SqlState::InvalidPrecedingOrFollowingSize,
                        format!("frame {which} offset must not be negative"),
                    )
                }),
                None => {
                    Err(SqlError::new(SqlState::NullValueNotAllowed, format!("frame {which} offset must not be null")))
                }
                Some(_) => Err(malformed("a frame's offset is no int8")),
            }
        };
        Ok((value(&self.start, "starting")?, value(&self.end, "ending")?))
    }
}

/// The frames of a partition's rows.
pub(super) struct Frames {
    options: u32,
    rows: usize,
    /// The groups of peers, in order.
    groups: Vec<Range<usize>>,
    /// Each row's group.
    group_of: Vec<usize>,
    start_offset: usize,
    end_offset: usize,
}

impl Frames {
    pub(super) fn new(frame: &Frame, rows: usize, groups: Vec<Range<usize>>, offsets: (u64, u64)) -> Self {
        let mut group_of = Vec::with_capacity(rows);
        for (number, group) in groups.iter().enumerate() {
            group_of.extend(std::iter::repeat_n(number, group.len()));
        }
        debug_assert_eq!(group_of.len(), rows, "every row has peers, if only itself");
        let small = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let (start_offset, end_offset) = (small(offsets.0), small(offsets.1));
        Self { options: frame.options, rows, groups, group_of, start_offset, end_offset }
    }

    /// How many rows the partition has.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// The number of a row's group of peers.
    pub(super) fn group(&self, row: usize) -> usize {
        self.group_of.get(row).copied().unwrap_or_default()
    }

    /// A row's peers.
    pub(super) fn peers(&self, row: usize) -> Range<usize> {
        self.groups.get(self.group(row)).cloned().unwrap_or(row..row)
    }

    fn has(&self, bit: u32) -> bool {
        self.options & bit != 0
    }

    /// Whether every frame is one run of rows from the partition's first.
    pub(super) fn grow_only(&self) -> bool {
        self.has(bits::START_UNBOUNDED_PRECEDING) && !self.excludes()
    }

    fn excludes(&self) -> bool {
        self.has(bits::EXCLUDE_CURRENT_ROW | bits::EXCLUDE_GROUP | bits::EXCLUDE_TIES)
    }

    fn start(&self, row: usize) -> usize {
        if self.has(bits::START_UNBOUNDED_PRECEDING) {
            return 0;
        }
        let rows_mode = self.has(bits::ROWS);
        if self.has(bits::START_CURRENT_ROW) {
            return if rows_mode { row } else { self.peers(row).start };
        }
        if rows_mode {
            return if self.has(bits::START_OFFSET_PRECEDING) {
                row.saturating_sub(self.start_offset)
            } else {
                row.saturating_add(self.start_offset).min(self.rows)
            };
        }
        let group = self.group(row);
        let group = if self.has(bits::START_OFFSET_PRECEDING) {
            group.saturating_sub(self.start_offset)
        } else {
            group.saturating_add(self.start_offset)
        };
        self.groups.get(group).map_or(self.rows, |g| g.start)
    }

    fn end(&self, row: usize) -> usize {
        if self.has(bits::END_UNBOUNDED_FOLLOWING) {
            return self.rows;
        }
        let rows_mode = self.has(bits::ROWS);
        if self.has(bits::END_CURRENT_ROW) {
            return if rows_mode { row + 1 } else { self.peers(row).end };
        }
        let preceding = self.has(bits::END_OFFSET_PRECEDING);
        if rows_mode {
            return if preceding {
                (row + 1).saturating_sub(self.end_offset)
            } else {
                (row + 1).saturating_add(self.end_offset).min(self.rows)
            };
        }
        let group = self.group(row);
        if preceding {
            let group = group.checked_sub(self.end_offset);
            return group.and_then(|g| self.groups.get(g)).map_or(0, |g| g.end);
        }
        self.groups.get(group.saturating_add(self.end_offset)).map_or(self.rows, |g| g.end)
    }

    /// The rows of a row's frame, as runs in order.
    pub(super) fn of(&self, row: usize) -> Runs {
        let start = self.start(row);
        let frame = start..self.end(row).max(start);
        let mut runs = Runs::default();
        let without = |runs: &mut Runs, hole: Range<usize>| {
            runs.push(frame.start..hole.start.clamp(frame.start, frame.end));
            runs.push(hole.end.clamp(frame.start, frame.end)..frame.end);
        };
        if self.has(bits::EXCLUDE_CURRENT_ROW) {
            without(&mut runs, row..row + 1);
        } else if self.has(bits::EXCLUDE_GROUP) {
            without(&mut runs, self.peers(row));
        } else if self.has(bits::EXCLUDE_TIES) {
            let peers = self.peers(row);
            runs.push(frame.start..peers.start.clamp(frame.start, frame.end));
            if frame.contains(&row) {
                runs.push(row..row + 1);
            }
            runs.push(peers.end.clamp(frame.start, frame.end)..frame.end);
        } else {
            runs.push(frame);
        }
        runs
    }
}

/// At most three runs of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Runs {
    runs: [Range<usize>; 3],
    count: usize,
}

impl Runs {
    fn push(&mut self, run: Range<usize>) {
        if !run.is_empty()
            && let Some(place) = self.runs.get_mut(self.count)
        {
            *place = run;
            self.count += 1;
        }
    }

    /// The runs.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Range<usize>> {
        self.runs.iter().take(self.count)
    }

    /// The frame's n-th row, from 0.
    pub(super) fn nth(&self, mut n: usize) -> Option<usize> {
        for run in self.iter() {
            if n < run.len() {
                return Some(run.start + n);
            }
            n -= run.len();
        }
        None
    }

    /// The frame's last row.
    pub(super) fn last(&self) -> Option<usize> {
        self.iter().next_back().map(|run| run.end - 1)
    }

    /// Where a frame ends that starts with the partition.
    pub(super) fn end(&self) -> usize {
        self.iter().next_back().map_or(0, |run| run.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(options: u32, groups: Vec<Range<usize>>, offsets: (u64, u64)) -> Frames {
        let rows = groups.last().map_or(0, |g| g.end);
        Frames::new(&Frame { options, start: None, end: None }, rows, groups, offsets)
    }

    fn rows_of(frames: &Frames, row: usize) -> Vec<usize> {
        frames.of(row).iter().cloned().flatten().collect()
    }

    #[test]
    fn rows_mode_counts_rows_and_range_mode_peers() {
        let groups = vec![0..2, 2..3, 3..6];
        let default = frames(bits::DEFAULTS, groups.clone(), (0, 0));
        assert_eq!(rows_of(&default, 0), [0, 1]);
        assert_eq!(rows_of(&default, 3), [0, 1, 2, 3, 4, 5]);
        let sliding = bits::ROWS | bits::START_OFFSET_PRECEDING | bits::END_OFFSET_FOLLOWING;
        assert_eq!(rows_of(&frames(sliding, groups.clone(), (1, 1)), 0), [0, 1]);
        assert_eq!(rows_of(&frames(sliding, groups.clone(), (1, 1)), 4), [3, 4, 5]);
        assert_eq!(rows_of(&frames(sliding, groups.clone(), (u64::MAX, u64::MAX)), 4).len(), 6);
        let groups_mode = bits::GROUPS | bits::START_OFFSET_PRECEDING | bits::END_OFFSET_PRECEDING;
        assert_eq!(rows_of(&frames(groups_mode, groups.clone(), (2, 1)), 4), [0, 1, 2]);
        assert!(rows_of(&frames(groups_mode, groups, (2, 1)), 0).is_empty());
    }

    #[test]
    fn exclusions_leave_holes() {
        let groups = vec![0..2, 2..5];
        let all = bits::ROWS | bits::START_UNBOUNDED_PRECEDING | bits::END_UNBOUNDED_FOLLOWING;
        let with = |exclude| frames(all | exclude, groups.clone(), (0, 0));
        assert_eq!(rows_of(&with(bits::EXCLUDE_CURRENT_ROW), 3), [0, 1, 2, 4]);
        assert_eq!(rows_of(&with(bits::EXCLUDE_GROUP), 3), [0, 1]);
        assert_eq!(rows_of(&with(bits::EXCLUDE_TIES), 3), [0, 1, 3]);
        assert_eq!(with(bits::EXCLUDE_TIES).of(3).nth(2), Some(3));
        assert_eq!(with(bits::EXCLUDE_GROUP).of(3).last(), Some(1));
    }
}
