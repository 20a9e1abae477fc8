//! What joins cost.

use crate::cost::{Cost, clamp_rows};
use crate::path::Path;
use crate::path::QualCost;
use crate::settings::PlannerSettings;

/// How much of the inner side a join reads that needs one match only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MatchFactors {
    /// The part of outer rows that have a match.
    pub outer: f64,
    /// How many matches such a row has.
    pub count: f64,
}

/// The inputs of a join's cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sides {
    pub outer: Cost,
    pub outer_rows: f64,
    pub inner: Cost,
    pub inner_rows: f64,
    /// Reading the inner side again.
    pub rescan: Cost,
}

/// A nested loop. `once` where one match is enough.
pub(crate) fn nest_loop(s: &PlannerSettings, i: &Sides, qual: QualCost, once: Option<MatchFactors>) -> Cost {
    let outer_rows = i.outer_rows.max(1.0);
    let inner_rows = i.inner_rows.max(1.0);
    let mut startup = i.outer.startup + i.inner.startup;
    let mut run = i.outer.total - i.outer.startup;
    if outer_rows > 1.0 {
        run += (outer_rows - 1.0) * i.rescan.startup;
    }
    let inner_run = i.inner.total - i.inner.startup;
    let rescan_run = i.rescan.total - i.rescan.startup;
    let tuples = if let Some(f) = once {
        let mut matched = (outer_rows * f.outer).round_ties_even();
        let mut unmatched = outer_rows - matched;
        let part = 2.0 / (f.count + 1.0);
        let tuples = matched * inner_rows * part + unmatched * inner_rows;
        run += inner_run;
        if unmatched >= 1.0 {
            unmatched -= 1.0;
        } else {
            matched -= 1.0;
        }
        if matched > 0.0 {
            run += matched * rescan_run * part;
        }
        if unmatched > 0.0 {
            run += unmatched * rescan_run;
        }
        tuples
    } else {
        run += inner_run;
        if outer_rows > 1.0 {
            run += (outer_rows - 1.0) * rescan_run;
        }
        outer_rows * inner_rows
    };
    startup += qual.startup;
    run += (s.cpu_tuple_cost + qual.per_tuple) * tuples;
    Cost { startup, total: startup + run }
}

/// How many buckets a hash table of this many rows has.
pub(crate) fn hash_buckets(s: &PlannerSettings, rows: f64) -> f64 {
    let most = (s.hash_memory_bytes() / 8.0).max(1024.0);
    let mut n = 1024.0;
    while n < rows && n * 2.0 <= most {
        n *= 2.0;
    }
    n
}

/// Bytes of a hash join's table.
pub(crate) fn hash_table_bytes(rows: f64, width: i32) -> f64 {
    let tuple = 16.0 + 16.0 + (f64::from(width) / 8.0).ceil() * 8.0;
    rows * tuple + hash_bucket_bytes(rows)
}

fn hash_bucket_bytes(rows: f64) -> f64 {
    let mut n: f64 = 1024.0;
    while n < rows {
        n *= 2.0;
    }
    n * 8.0
}

/// A hash join that fits in memory.
#[allow(clippy::too_many_arguments)]
pub(crate) fn hash_join(
    s: &PlannerSettings,
    i: &Sides,
    keys: usize,
    hash_qual: QualCost,
    other_qual: QualCost,
    bucket_part: f64,
    tuples: f64,
    once: Option<MatchFactors>,
    anti: bool,
) -> Cost {
    let keys = keys as f64;
    let mut startup = i.outer.startup + i.inner.total;
    startup += (s.cpu_operator_cost * keys + s.cpu_tuple_cost) * i.inner_rows;
    let mut run = i.outer.total - i.outer.startup;
    run += s.cpu_operator_cost * keys * i.outer_rows;
    startup += hash_qual.startup;
    let tuples = if let Some(f) = once {
        let matched = (i.outer_rows * f.outer).round_ties_even();
        let part = 2.0 / (f.count + 1.0);
        run += hash_qual.per_tuple * matched * clamp_rows(i.inner_rows * bucket_part * part) * 0.5;
        let buckets = hash_buckets(s, i.inner_rows);
        run += hash_qual.per_tuple * (i.outer_rows - matched) * clamp_rows(i.inner_rows / buckets) * 0.05;
        if anti { i.outer_rows - matched } else { matched }
    } else {
        run += hash_qual.per_tuple * i.outer_rows * clamp_rows(i.inner_rows * bucket_part) * 0.5;
        tuples
    };
    startup += other_qual.startup;
    run += (s.cpu_tuple_cost + other_qual.per_tuple) * tuples;
    Cost { startup, total: startup + run }
}

/// A hash join whose sides are written out in parts and read again.
pub(crate) fn in_batches(s: &PlannerSettings, cost: Cost, outer: &Path<'_>, inner: &Path<'_>) -> Cost {
    let pages = |p: &Path<'_>| (p.rows * (f64::from(p.target.width) / 8.0).ceil() * 8.0 + p.rows * 24.0) / 8192.0;
    let (outer, inner) = (pages(outer).ceil(), pages(inner).ceil());
    let startup = cost.startup + s.seq_page_cost * inner;
    Cost { startup, total: cost.total + s.seq_page_cost * (2.0 * inner + 2.0 * outer) }
}

/// A merge join of sorted sides; says also whether the inner side should be materialized.
pub(crate) fn merge_join(
    s: &PlannerSettings,
    i: &Sides,
    merge_qual: QualCost,
    other_qual: QualCost,
    tuples: f64,
    once: bool,
) -> (Cost, bool) {
    let (outer_rows, inner_rows) = (i.outer_rows.max(1.0), i.inner_rows.max(1.0));
    let again = if once { 0.0 } else { (tuples - inner_rows).max(0.0) };
    let ratio = 1.0 + again / inner_rows;
    let inner_run = i.inner.total - i.inner.startup;
    let bare = inner_run * ratio;
    let materialized = inner_run + s.cpu_operator_cost * inner_rows * ratio;
    // What is read again is kept, always: a sort or scan below need not know how to go back.
    let keep = !once;
    let mut startup = i.outer.startup + i.inner.startup;
    let mut run = i.outer.total - i.outer.startup;
    run += if keep { materialized.min(bare.max(materialized)) } else { bare };
    startup += merge_qual.startup;
    run += merge_qual.per_tuple * (outer_rows + inner_rows * ratio);
    startup += other_qual.startup;
    run += (s.cpu_tuple_cost + other_qual.per_tuple) * tuples;
    (Cost { startup, total: startup + run }, keep)
}
