//! Reading one leaf: which of its tuples match, and where the scan goes from here.
//!
//! Tuples are checked one by one, but a run of tuples before the position is jumped over (galloping, then halving), and
//! if the first and last tuple of the page agree with the keys that order decides, those keys are not looked at again on
//! this page.

use stegodon_format::btree::{BtreePage, IndexTuple, TupleKind};
use stegodon_format::ids::{BlockNumber, OffsetNumber};

use crate::error::{Error, Result};
use crate::matcher::{Matcher, Verdict};
use crate::page::{bad_tuple, behind_position};
use crate::position::Direction;
use crate::scan::Batch;

/// How a leaf is visited.
pub(crate) struct Visit {
    /// Where a descent came in: the first offset behind the position. `None` after a step along the leaves.
    pub(crate) start: Option<u16>,
    /// Whether the position may lie beyond this leaf altogether.
    pub(crate) behind: bool,
    /// Whether matching tuples are copied.
    pub(crate) keep_tuples: bool,
}

/// What lies beyond the leaf that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// Nothing that matches.
    End,
    /// Perhaps matches, on the very next leaf.
    Near,
    /// The position, and it lies beyond this leaf's last key: on the next leaf or far away.
    Far,
    /// The position still, and nothing of this leaf was read: the step to it was in vain.
    StillFar,
    /// Perhaps the position: the high key was cut too short to tell.
    NearOrFar,
}

/// Copies the matches of a leaf into `batch`.
pub(crate) fn read(
    matcher: &mut Matcher,
    batch: &mut Batch,
    block: BlockNumber,
    page: BtreePage<'_>,
    visit: &Visit,
) -> Result<After> {
    match matcher.direction {
        Direction::Forward => read_forward(matcher, batch, block, page, visit),
        Direction::Backward => read_backward(matcher, batch, block, page, visit),
    }
}

/// The tuple at `offset`, unless it is known to be dead.
#[inline]
fn live_tuple<'a>(
    matcher: &Matcher,
    block: BlockNumber,
    page: BtreePage<'a>,
    offset: u16,
) -> Result<Option<IndexTuple<'a>>> {
    let number = OffsetNumber(offset);
    let id = page.item_id(number).map_err(|error| bad_tuple(matcher, block, offset, &error))?;
    if id.is_dead() {
        return Ok(None);
    }
    page.tuple_at(number, id).map(Some).map_err(|error| bad_tuple(matcher, block, offset, &error))
}

/// Any tuple, dead or not, for telling where the page lies.
fn any_tuple<'a>(matcher: &Matcher, block: BlockNumber, page: BtreePage<'a>, offset: u16) -> Result<IndexTuple<'a>> {
    page.tuple(OffsetNumber(offset)).map_err(|error| bad_tuple(matcher, block, offset, &error))
}

fn read_forward(
    matcher: &mut Matcher,
    batch: &mut Batch,
    block: BlockNumber,
    page: BtreePage<'_>,
    visit: &Visit,
) -> Result<After> {
    let high_key = page.high_key().map_err(|error| bad_tuple(matcher, block, 1, &error))?;
    if visit.behind
        && let Some(high_key) = high_key
    {
        let side = matcher.side(high_key, true)?;
        if side.order.is_lt() && !side.truncated {
            return Ok(After::StillFar);
        }
    }
    let end = page.last().0 + 1;
    let mut offset = visit.start.unwrap_or(page.first_data().0).max(page.first_data().0);
    let proved = offset < end
        && matcher.agrees(any_tuple(matcher, block, page, end - 1)?)?
        && matcher.agrees(any_tuple(matcher, block, page, offset)?)?;
    while offset < end {
        let Some(tuple) = live_tuple(matcher, block, page, offset)? else {
            offset += 1;
            continue;
        };
        let verdict = match proved {
            true if !matcher.has_filters() || matcher.filters_pass(tuple)? => Verdict::Match,
            true => Verdict::Filtered,
            false => matcher.check(tuple)?,
        };
        match verdict {
            Verdict::Match => save(matcher, batch, block, offset, tuple, visit.keep_tuples)?,
            Verdict::End => return Ok(After::End),
            Verdict::Before => {
                offset = gallop_forward(matcher, block, page, offset + 1, end)?;
                continue;
            }
            Verdict::Filtered | Verdict::Undecided => {}
        }
        offset += 1;
    }
    let Some(high_key) = high_key else { return Ok(After::End) };
    let count = high_key.attribute_count(matcher.desc.attributes.len());
    Ok(match matcher.check_required(high_key, count)? {
        Verdict::End => After::End,
        Verdict::Before => After::Far,
        Verdict::Undecided => After::NearOrFar,
        Verdict::Match | Verdict::Filtered => After::Near,
    })
}

fn read_backward(
    matcher: &mut Matcher,
    batch: &mut Batch,
    block: BlockNumber,
    page: BtreePage<'_>,
    visit: &Visit,
) -> Result<After> {
    let (first, last) = (page.first_data().0, page.last().0);
    let mut end = visit.start.unwrap_or(last + 1).min(last + 1);
    if visit.behind && first <= last && matcher.side(any_tuple(matcher, block, page, first)?, false)?.order.is_gt() {
        return Ok(After::StillFar);
    }
    let proved = first < end
        && matcher.agrees(any_tuple(matcher, block, page, first)?)?
        && matcher.agrees(any_tuple(matcher, block, page, end - 1)?)?;
    let mut far = false;
    while end > first {
        let offset = end - 1;
        far = false;
        let Some(tuple) = live_tuple(matcher, block, page, offset)? else {
            end = offset;
            continue;
        };
        let verdict = match proved {
            true if !matcher.has_filters() || matcher.filters_pass(tuple)? => Verdict::Match,
            true => Verdict::Filtered,
            false => matcher.check(tuple)?,
        };
        match verdict {
            Verdict::Match => save(matcher, batch, block, offset, tuple, visit.keep_tuples)?,
            Verdict::End => return Ok(After::End),
            Verdict::Before => {
                end = gallop_backward(matcher, block, page, first, offset)?;
                far = end == first;
                continue;
            }
            Verdict::Filtered | Verdict::Undecided => {}
        }
        end = offset;
    }
    Ok(if page.opaque.prev.is_none() {
        After::End
    } else if far {
        After::Far
    } else {
        After::Near
    })
}

/// The first offset in `from..end` behind the position, looked for near `from` first.
fn gallop_forward(matcher: &mut Matcher, block: BlockNumber, page: BtreePage<'_>, from: u16, end: u16) -> Result<u16> {
    let (mut low, mut stride) = (from, 1u16);
    while low < end {
        let probe = low.saturating_add(stride - 1).min(end - 1);
        if matcher.side(any_tuple(matcher, block, page, probe)?, false)?.order.is_gt() {
            return behind_position(matcher, block, page, low, probe);
        }
        low = probe + 1;
        stride = stride.saturating_mul(2);
    }
    Ok(end)
}

/// The end of the tuples of `first..to` that lie before the position, looked for near `to` first.
fn gallop_backward(matcher: &mut Matcher, block: BlockNumber, page: BtreePage<'_>, first: u16, to: u16) -> Result<u16> {
    let (mut high, mut stride) = (to, 1u16);
    while high > first {
        let probe = high.saturating_sub(stride).max(first);
        if matcher.side(any_tuple(matcher, block, page, probe)?, false)?.order.is_lt() {
            return behind_position(matcher, block, page, probe + 1, high);
        }
        high = probe;
        stride = stride.saturating_mul(2);
    }
    Ok(first)
}

/// Copies one matching tuple: its row, or a posting list's rows, which come in ascending order in both directions.
#[inline]
fn save(
    matcher: &Matcher,
    batch: &mut Batch,
    block: BlockNumber,
    offset: u16,
    tuple: IndexTuple<'_>,
    keep_tuples: bool,
) -> Result<()> {
    match tuple.kind() {
        TupleKind::Plain => batch.tids.push(tuple.t_tid()),
        TupleKind::Posting => {
            let posting = tuple.posting().map_err(|error| bad_tuple(matcher, block, offset, &error))?;
            let first = batch.tids.len();
            batch.tids.extend(posting.iter());
            let saved = batch.tids.get(first..).unwrap_or(&[]);
            if !saved.is_sorted_by(|a, b| a < b) {
                return Err(corrupted(matcher, block, offset, "posting list out of order"));
            }
        }
        TupleKind::Pivot => return Err(corrupted(matcher, block, offset, "pivot tuple among a leaf's rows")),
    }
    if keep_tuples {
        batch.keep(tuple);
    }
    Ok(())
}

fn corrupted(matcher: &Matcher, block: BlockNumber, offset: u16, reason: &str) -> Error {
    Error::CorruptedTuple { index: matcher.desc.name.clone(), block, offset, reason: reason.to_owned() }
}
