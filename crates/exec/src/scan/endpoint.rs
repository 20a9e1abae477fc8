//! The first or last key of an index, for the planner (`get_actual_variable_endpoint`).
//!
//! A histogram's ends are as old as the last ANALYZE; the index knows the ends of now. The search looks at few pages: rows
//! that are gone but still indexed could otherwise make planning slower than the query.

use std::sync::Arc;

use stegodon_buffer::{IoCounters, PinnedPage};
use stegodon_format::ids::{Fork, Oid, Tid};
use stegodon_format::vm;
use stegodon_nbtree::{BtreeScan, Direction, PoolSource, ScanKey, ScanOptions};
use stegodon_types::{Datum, SqlResult};

use super::Opener;

/// Heap pages looked at before the search is given up.
const VISITED_PAGES_MAX: usize = 100;

impl Opener<'_> {
    /// The first (or last) non-null key of a B-tree's first column that a visible row has. `None` where there is none, or
    /// where it cannot be found quickly. Waits on the calling thread.
    pub fn index_endpoint(self, index: Oid, last: bool) -> SqlResult<Option<Datum>> {
        let table = self.view.catalog.relation(index).and_then(|r| r.index.as_ref()).map(|i| i.table);
        let Some(table) = table else { return Ok(None) };
        futures::executor::block_on(self.search_endpoint(index, table, last))
    }

    async fn search_endpoint(self, index: Oid, table: Oid, last: bool) -> SqlResult<Option<Datum>> {
        let table = self.open_table(table)?;
        let (files, desc) = self.open_index(index)?;
        let pool = self.storage.pool();
        let direction = if last { Direction::Backward } else { Direction::Forward };
        let options = ScanOptions { direction, keep_tuples: true, keep_pin: true };
        let mut scan = BtreeScan::new(Arc::clone(&desc), PoolSource::new(pool, &files), options);
        scan.rescan(&[ScanKey::is_not_null(0)])?;
        let mut visibility = self.storage.visibility();
        let map_blocks = table.files.nblocks_or_zero(Fork::VisibilityMap)?;
        let mut heap: Option<PinnedPage> = None;
        let counters = Arc::new(IoCounters::default());
        let (mut next, mut visited) = (0, 0);
        loop {
            let Some(found) = scan.matches().get(next).copied() else {
                next = 0;
                if !scan.next().await? {
                    return Ok(None);
                }
                continue;
            };
            let place = next;
            next += 1;
            let Tid { block, offset } = found;
            let map_block = vm::map_block(block);
            let mut visible = false;
            if map_block.0 < map_blocks {
                let map = pool.read_map(&table.files, Fork::VisibilityMap, map_block, &counters, false).await?;
                visible = vm::bits(map.latch_shared().view(), block).all_visible();
            }
            if !visible {
                if heap.as_ref().is_none_or(|page| page.block() != block) {
                    visited += 1;
                    if visited > VISITED_PAGES_MAX {
                        return Ok(None);
                    }
                    drop(heap.take());
                    heap = Some(pool.read_nested(&table.files, Fork::Main, block, &counters).await?);
                }
                let Some(page) = &heap else { return Ok(None) };
                let guard = page.latch_shared();
                visible = table.page(&guard).hot_search(offset, &mut visibility)?.is_some();
            }
            if visible {
                let mut scratch = Vec::new();
                let Some(entry) = scan.entries().get(scan.entries().partition_point(|e| e.end as usize <= place))
                else {
                    return Ok(None);
                };
                let value = scan.values(entry)?.get(0, &mut scratch)?;
                return Ok(value.map(stegodon_types::ValueRef::to_datum));
            }
        }
    }
}
