//! Opening pages with the checks that a damaged index must not get past, and finding the way down.

use stegodon_format::btree::{BtreePage, MetaPage, Opaque, PageFlags};
use stegodon_format::ids::{BlockNumber, OffsetNumber};
use stegodon_format::page::PageRef;

use crate::error::{Error, Result};
use crate::matcher::Matcher;
use crate::position::Direction;
use crate::sort::partition_point;

/// A page as a tree page (PostgreSQL's `_bt_checkpage`).
pub(crate) fn open<'a>(index: &str, block: BlockNumber, page: PageRef<'a>) -> Result<BtreePage<'a>> {
    if page.is_new() {
        return Err(Error::ZeroPage { index: index.to_owned(), block });
    }
    let corrupted = || Error::CorruptedPage { index: index.to_owned(), block };
    let page = BtreePage::new(page).map_err(|_| corrupted())?;
    let flags = page.opaque.flags;
    let leaf_is_level_0 = page.opaque.is_leaf() == (page.opaque.level == 0) || flags.contains(PageFlags::DELETED);
    if flags.contains(PageFlags::META) || !leaf_is_level_0 {
        return Err(corrupted());
    }
    Ok(page)
}

/// How many levels lie above an index's leaves, from its block 0: what the planner asks. The errors are a scan's.
pub fn tree_height(index: &str, metapage: PageRef<'_>) -> stegodon_types::SqlResult<u32> {
    Ok(fast_root(index, metapage)?.map_or(0, |(_, level)| level))
}

/// The fast root and its level; `None` in an empty index.
pub(crate) fn fast_root(index: &str, page: PageRef<'_>) -> Result<Option<(BlockNumber, u32)>> {
    use stegodon_format::Error as Format;
    let index = index.to_owned();
    if page.is_new() {
        return Err(Error::ZeroPage { index, block: stegodon_format::btree::METAPAGE });
    }
    match MetaPage::read(page) {
        Ok(meta) => Ok(meta.fast_root.map(|root| (root, meta.fast_level))),
        Err(Format::InvalidField { field: "btm_version", value, .. }) => {
            Err(Error::VersionMismatch { index, found: value as u32 })
        }
        Err(Format::Unsupported(_)) => Err(Error::Unsupported {
            index,
            what: "B-tree version 2 or 3 (made before PostgreSQL 12) is not supported by Stegodon yet; REINDEX it"
                .to_owned(),
        }),
        Err(Format::InvalidField { field: "special area's size", .. }) => {
            Err(Error::CorruptedPage { index, block: stegodon_format::btree::METAPAGE })
        }
        Err(_) => Err(Error::NotBtree { index }),
    }
}

pub(crate) fn check_level(index: &str, block: BlockNumber, opaque: Opaque, expected: u32) -> Result<()> {
    // A deleted page of PostgreSQL 13 or older has a transaction id in the level's place.
    if opaque.level == expected || is_deleted(&opaque) {
        return Ok(());
    }
    Err(Error::WrongLevel { index: index.to_owned(), block, found: opaque.level, expected })
}

pub(crate) const fn is_deleted(opaque: &Opaque) -> bool {
    opaque.flags.contains(PageFlags::DELETED)
}

/// Where a descent goes from a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Child {
    /// To the right: the page was split, or is ignored.
    Right(BlockNumber),
    /// To a page of the level below.
    Down(BlockNumber),
    /// Nowhere: this is the leaf, and its tuples from this offset on lie behind the position.
    Leaf(u16),
}

/// Finds the way on from `page` to the matcher's position.
pub(crate) fn choose_child(
    matcher: &mut Matcher,
    block: BlockNumber,
    page: BtreePage<'_>,
    level: u32,
    is_root: bool,
) -> Result<Child> {
    let opaque = page.opaque;
    if opaque.is_ignored() {
        return match opaque.next {
            Some(next) => Ok(Child::Right(next)),
            None if is_root => Err(Error::NoLiveRoot { index: matcher.desc.name.clone() }),
            None => Err(Error::FellOffTheEnd { index: matcher.desc.name.clone() }),
        };
    }
    check_level(&matcher.desc.name, block, opaque, level)?;
    if let Some(next) = opaque.next {
        let high_key = page.tuple(OffsetNumber(1)).map_err(|error| bad_tuple(matcher, block, 1, &error))?;
        let side = matcher.side(high_key, true)?.order;
        // Tuples equal to the high key are on this page, so a position that equals it lies behind them all.
        let goes_right = if matcher.direction == Direction::Forward { side.is_le() } else { side.is_lt() };
        if goes_right {
            return Ok(Child::Right(next));
        }
    }
    let start = behind_position(matcher, block, page, page.first_data().0, page.last().0 + 1)?;
    if level == 0 {
        return Ok(Child::Leaf(start));
    }
    // The last downlink that is not behind the position; the first one is minus infinity, always before it.
    let offset = start.saturating_sub(1).max(page.first_data().0);
    let tuple = page.tuple(OffsetNumber(offset)).map_err(|error| bad_tuple(matcher, block, offset, &error))?;
    let child = tuple.downlink();
    if !child.is_valid() || child == stegodon_format::btree::METAPAGE {
        return Err(Error::CorruptedTuple {
            index: matcher.desc.name.clone(),
            block,
            offset,
            reason: format!("downlink to block {child}"),
        });
    }
    Ok(Child::Down(child))
}

/// The first offset in `from..to` whose tuple lies behind the matcher's position, in index order.
pub(crate) fn behind_position(
    matcher: &mut Matcher,
    block: BlockNumber,
    page: BtreePage<'_>,
    from: u16,
    to: u16,
) -> Result<u16> {
    let is_pivot = !page.opaque.is_leaf();
    let first_data = page.first_data().0;
    let at = partition_point(usize::from(from), usize::from(to), |offset| {
        let offset = offset as u16;
        if is_pivot && offset == first_data {
            return Ok(true);
        }
        let tuple = page.tuple(OffsetNumber(offset)).map_err(|error| bad_tuple(matcher, block, offset, &error))?;
        let side = matcher.side(tuple, is_pivot)?.order;
        // Only a pivot can equal a position. Its child's tuples all lie behind it: a forward scan goes there, a backward
        // scan to the child before it.
        Ok::<_, Error>(if matcher.direction == Direction::Forward { side.is_le() } else { side.is_lt() })
    })?;
    Ok(at as u16)
}

pub(crate) fn bad_tuple(matcher: &Matcher, block: BlockNumber, offset: u16, error: &stegodon_format::Error) -> Error {
    Error::CorruptedTuple { index: matcher.desc.name.clone(), block, offset, reason: error.to_string() }
}
