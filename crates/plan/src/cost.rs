//! The cost model, as `costsize.c` has it: numbers in, numbers out.

use crate::path::QualCost;
use crate::settings::PlannerSettings;

/// Rounds a row estimate to a sane whole number.
pub fn clamp_rows(rows: f64) -> f64 {
    if rows > 1e100 || rows.is_nan() {
        1e100
    } else if rows <= 1.0 {
        1.0
    } else {
        rows.round_ties_even()
    }
}

/// A probability within its bounds.
pub fn clamp_probability(p: f64) -> f64 {
    p.clamp(0.0, 1.0)
}

/// What a node costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Before the first row.
    pub startup: f64,
    /// For all rows.
    pub total: f64,
}

/// How much of the work each process does: workers, and the leader as far as it is not busy with theirs.
pub fn parallel_divisor(s: &PlannerSettings, workers: usize) -> f64 {
    let workers = workers as f64;
    let leader = if s.parallel_leader_participation { (1.0 - 0.3 * workers).max(0.0) } else { 0.0 };
    workers + leader
}

/// How many workers a scan of this size is worth; negative sizes do not count.
pub fn parallel_workers(
    s: &PlannerSettings,
    declared: Option<i32>,
    is_child: bool,
    heap_pages: f64,
    index_pages: f64,
) -> usize {
    let max = s.max_parallel_workers_per_gather.max(0);
    let workers = if let Some(n) = declared {
        n.max(0)
    } else {
        let too_small = (heap_pages >= 0.0 && heap_pages < f64::from(s.min_parallel_table_scan_size))
            || (index_pages >= 0.0 && index_pages < f64::from(s.min_parallel_index_scan_size));
        if !is_child && too_small {
            return 0;
        }
        let by_size = |pages: f64, min: i32| {
            let mut threshold = f64::from(min.max(1));
            let mut workers = 1;
            while pages >= threshold * 3.0 {
                workers += 1;
                threshold *= 3.0;
                if threshold > f64::from(i32::MAX / 3) {
                    break;
                }
            }
            workers
        };
        let mut workers = 0;
        if heap_pages >= 0.0 {
            workers = by_size(heap_pages, s.min_parallel_table_scan_size);
        }
        if index_pages >= 0.0 {
            let by_index = by_size(index_pages, s.min_parallel_index_scan_size);
            workers = if workers > 0 { workers.min(by_index) } else { by_index };
        }
        workers
    };
    workers.min(max) as usize
}

/// Pages fetched for `tuples` lookups spread over a table of `pages`, given the cache (Mackert and Lohman).
pub fn pages_fetched(s: &PlannerSettings, tuples: f64, pages: f64, index_pages: f64, total_table_pages: f64) -> f64 {
    let t = pages.max(1.0);
    let total = (total_table_pages + index_pages).max(1.0);
    let mut b = s.effective_cache_size * t / total;
    b = if b <= 1.0 { 1.0 } else { b.ceil() };
    if t <= b {
        let n = (2.0 * t * tuples) / (2.0 * t + tuples);
        return if n >= t { t } else { n.ceil() };
    }
    let limit = (2.0 * t * b) / (2.0 * t - b);
    let n = if tuples <= limit { (2.0 * t * tuples) / (2.0 * t + tuples) } else { b + (tuples - limit) * (t - b) / t };
    n.ceil()
}

/// Bytes of `tuples` rows of this width, with their headers.
pub fn relation_bytes(tuples: f64, width: i32) -> f64 {
    tuples * (align(f64::from(width)) + 24.0)
}

fn align(n: f64) -> f64 {
    (n / 8.0).ceil() * 8.0
}

/// A sequential scan. Returns the rows each process returns, too.
pub fn seq_scan(
    s: &PlannerSettings,
    seq_page_cost: f64,
    pages: f64,
    tuples: f64,
    rows: f64,
    qual: QualCost,
    target: QualCost,
    workers: usize,
) -> (Cost, f64) {
    let disk = seq_page_cost * pages;
    let startup = qual.startup + target.startup;
    let mut cpu = (s.cpu_tuple_cost + qual.per_tuple) * tuples;
    cpu += target.per_tuple * rows;
    let mut out_rows = rows;
    if workers > 0 {
        let d = parallel_divisor(s, workers);
        cpu /= d;
        out_rows = clamp_rows(rows / d);
    }
    (Cost { startup, total: startup + cpu + disk }, out_rows)
}

#[allow(clippy::approx_constant, reason = "PostgreSQL's own digits, for its own sums")]
fn log2(n: f64) -> f64 {
    n.ln() / 0.693_147_180_559_945
}

fn merge_order(bytes: f64) -> f64 {
    (bytes / (2.0 * 8192.0 + 32.0 * 8192.0)).floor().clamp(6.0, 500.0)
}

/// Sorting alone, without its input.
pub fn tuplesort(s: &PlannerSettings, tuples: f64, width: i32, limit_tuples: f64) -> Cost {
    let tuples = tuples.max(2.0);
    let input_bytes = relation_bytes(tuples, width);
    let (output_tuples, output_bytes) = if limit_tuples > 0.0 && limit_tuples < tuples {
        (limit_tuples, relation_bytes(limit_tuples, width))
    } else {
        (tuples, input_bytes)
    };
    let comparison = 2.0 * s.cpu_operator_cost;
    let memory = s.work_mem_bytes();
    let startup = if output_bytes > memory {
        let pages = (input_bytes / 8192.0).ceil();
        let runs = input_bytes / memory;
        let order = merge_order(memory);
        let passes = if runs > order { (runs.ln() / order.ln()).ceil() } else { 1.0 };
        comparison * tuples * log2(tuples) + 2.0 * pages * passes * (s.seq_page_cost * 0.75 + s.random_page_cost * 0.25)
    } else if tuples > 2.0 * output_tuples || input_bytes > memory {
        comparison * tuples * log2(2.0 * output_tuples)
    } else {
        comparison * tuples * log2(tuples)
    };
    Cost { startup, total: startup + s.cpu_operator_cost * tuples }
}

/// `Sort` over an input.
pub fn sort(s: &PlannerSettings, input_total: f64, tuples: f64, width: i32, limit_tuples: f64) -> Cost {
    let own = tuplesort(s, tuples, width, limit_tuples);
    let startup = own.startup + input_total;
    Cost { startup, total: startup + (own.total - own.startup) }
}

/// `Incremental Sort`: groups of equal leading keys are sorted one after the other.
pub fn incremental_sort(
    s: &PlannerSettings,
    input: Cost,
    tuples: f64,
    groups: f64,
    width: i32,
    limit_tuples: f64,
) -> Cost {
    let tuples = tuples.max(2.0);
    let groups = groups.max(1.0);
    let group_tuples = tuples / groups;
    let group_input = (input.total - input.startup) / groups;
    let one = tuplesort(s, group_tuples, width, limit_tuples);
    let group_startup = one.startup;
    let group_run = one.total - one.startup;
    let startup = group_startup + input.startup + group_input;
    let mut run = group_run + (group_run + group_startup) * (groups - 1.0) + group_input * (groups - 1.0);
    run += s.cpu_tuple_cost * tuples;
    run += 2.0 * s.cpu_tuple_cost * groups;
    Cost { startup, total: startup + run }
}

/// `Materialize` over an input.
pub fn material(s: &PlannerSettings, input: Cost, tuples: f64, width: i32) -> Cost {
    let mut run = input.total - input.startup + 2.0 * s.cpu_operator_cost * tuples;
    let bytes = relation_bytes(tuples, width);
    if bytes > s.work_mem_bytes() {
        run += s.seq_page_cost * (bytes / 8192.0).ceil();
    }
    Cost { startup: input.startup, total: input.startup + run }
}

/// Reading materialized rows again (`cost_rescan`).
pub fn material_rescan(s: &PlannerSettings, tuples: f64, width: i32) -> Cost {
    let mut run = s.cpu_operator_cost * tuples;
    let bytes = relation_bytes(tuples, width);
    if bytes > s.work_mem_bytes() {
        run += s.seq_page_cost * (bytes / 8192.0).ceil();
    }
    Cost { startup: 0.0, total: run }
}

/// `Gather` over an input that each process runs.
pub fn gather(s: &PlannerSettings, input: Cost, rows: f64) -> Cost {
    let startup = input.startup + s.parallel_setup_cost;
    let run = input.total - input.startup + s.parallel_tuple_cost * rows;
    Cost { startup, total: startup + run }
}

/// `Gather Merge` over a sorted input that each process runs.
pub fn gather_merge(s: &PlannerSettings, input: Cost, rows: f64, workers: usize) -> Cost {
    let n = workers as f64 + 1.0;
    let log_n = log2(n);
    let comparison = 2.0 * s.cpu_operator_cost;
    let own_startup = comparison * n * log_n + s.parallel_setup_cost;
    let run = rows * comparison * log_n + s.cpu_operator_cost * rows + s.parallel_tuple_cost * rows * 1.05;
    Cost { startup: own_startup + input.startup, total: own_startup + run + input.total }
}

/// `Merge Append` over sorted inputs.
pub fn merge_append(s: &PlannerSettings, streams: usize, input: Cost, tuples: f64) -> Cost {
    let n = (streams as f64).max(2.0);
    let log_n = log2(n);
    let comparison = 2.0 * s.cpu_operator_cost;
    let startup = comparison * n * log_n;
    let run = tuples * comparison * log_n + s.cpu_tuple_cost * 0.5 * tuples;
    Cost { startup: startup + input.startup, total: startup + run + input.total }
}

/// `Group` and `Unique`'s work over sorted input.
pub fn group(s: &PlannerSettings, input: Cost, tuples: f64, columns: usize) -> Cost {
    Cost { startup: input.startup, total: input.total + s.cpu_operator_cost * tuples * columns as f64 }
}

/// What aggregate functions cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AggregateCosts {
    /// For each input row, all transitions.
    pub transition: QualCost,
    /// For each group, all final functions.
    pub finalize: QualCost,
    /// Bytes of each group's states beyond the states themselves.
    pub space_bytes: f64,
    /// How many different transitions.
    pub transitions: usize,
}

/// How an aggregate over `groups` groups is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AggregateMethod {
    /// One group.
    Plain,
    /// Sorted input.
    Sorted,
    /// By hash.
    Hashed,
}

/// `Aggregate` over an input, without HAVING.
pub fn aggregate(
    s: &PlannerSettings,
    method: AggregateMethod,
    costs: &AggregateCosts,
    columns: usize,
    groups: f64,
    input: Cost,
    tuples: f64,
    input_width: i32,
) -> Cost {
    let columns = columns as f64;
    let c = costs;
    match method {
        AggregateMethod::Plain => {
            let mut startup = input.total;
            startup += c.transition.startup;
            startup += c.transition.per_tuple * tuples;
            startup += c.finalize.startup;
            startup += c.finalize.per_tuple;
            Cost { startup, total: startup + s.cpu_tuple_cost }
        }
        AggregateMethod::Sorted => {
            let mut total = input.total;
            total += c.transition.startup;
            total += c.transition.per_tuple * tuples;
            total += s.cpu_operator_cost * columns * tuples;
            total += c.finalize.startup;
            total += c.finalize.per_tuple * groups;
            total += s.cpu_tuple_cost * groups;
            Cost { startup: input.startup, total }
        }
        AggregateMethod::Hashed => {
            let mut startup = input.total;
            startup += c.transition.startup;
            startup += c.transition.per_tuple * tuples;
            startup += s.cpu_operator_cost * columns * tuples;
            startup += c.finalize.startup;
            let mut total = startup;
            total += c.finalize.per_tuple * groups;
            total += s.cpu_tuple_cost * groups;
            let spill = hash_spill(s, costs, groups, tuples, input_width);
            Cost { startup: startup + spill.startup, total: total + spill.total }
        }
    }
}

fn hash_spill(s: &PlannerSettings, costs: &AggregateCosts, groups: f64, tuples: f64, width: i32) -> Cost {
    let entry = hash_entry_bytes(costs, width);
    let limit = s.hash_memory_bytes();
    let (memory, most_groups, partitions) = if groups * entry <= limit {
        (limit, (limit / entry).floor(), 0.0)
    } else {
        let most = ((limit * 0.25 - 8192.0) / 8192.0).floor();
        let wanted = (1.0 + 1.5 * groups * entry / limit).min(most).floor().clamp(4.0, 1024.0);
        let partitions = 2f64.powi(log2(wanted).ceil() as i32).min(1024.0);
        let buffers = 8192.0 + 8192.0 * partitions;
        let memory = if limit > 4.0 * buffers { limit - buffers } else { limit * 0.75 };
        (memory, if memory > entry { (memory / entry).floor() } else { 1.0 }, partitions)
    };
    let batches = (groups * entry / memory).max(groups / most_groups).ceil().max(1.0);
    let depth = (batches.ln() / partitions.max(2.0).ln()).ceil();
    let pages = relation_bytes(tuples, width) / 8192.0 * depth * 2.0;
    let written = pages * s.random_page_cost;
    let cpu = depth * tuples * 2.0 * s.cpu_tuple_cost;
    Cost { startup: written + cpu, total: written + pages * s.seq_page_cost + cpu }
}

/// The size of one entry of a hash aggregate's table.
pub fn hash_entry_bytes(costs: &AggregateCosts, width: i32) -> f64 {
    let tuple = align(16.0 + f64::from(width));
    let states = if costs.transitions > 0 { 16.0 * costs.transitions as f64 } else { 0.0 };
    let space = if costs.space_bytes > 0.0 { 8.0 + costs.space_bytes } else { 0.0 };
    16.0 + 8.0 + tuple + if states > 0.0 { 8.0 + states } else { 0.0 } + space
}

/// How many entries a TID bitmap may hold (`tbm_calculate_entries`).
pub fn bitmap_entries(s: &PlannerSettings) -> f64 {
    (s.work_mem_bytes() / 64.0).floor().clamp(16.0, f64::from(i32::MAX - 1))
}

/// The sizes that a bitmap heap scan's cost needs.
#[derive(Clone, Copy, Debug)]
pub struct BitmapInput {
    /// The table's pages.
    pub pages: f64,
    /// Its rows.
    pub tuples: f64,
    /// The part of them in the bitmap.
    pub selectivity: f64,
    /// What making the bitmap costs.
    pub index_total: f64,
}

/// Pages and tuples that a bitmap heap scan fetches, lossy pages included.
pub fn bitmap_pages(s: &PlannerSettings, i: BitmapInput) -> (f64, f64) {
    let mut tuples = clamp_rows(i.selectivity * i.tuples);
    let t = i.pages.max(1.0);
    let fetched = (2.0 * t * tuples) / (2.0 * t + tuples);
    let heap_pages = fetched.min(i.pages);
    let entries = bitmap_entries(s);
    let pages = if fetched >= t { t } else { fetched.ceil() };
    if entries < heap_pages {
        let lossy = (heap_pages - entries / 2.0).max(0.0);
        let exact = heap_pages - lossy;
        if lossy > 0.0 {
            tuples = clamp_rows(i.selectivity * (exact / heap_pages) * i.tuples + (lossy / heap_pages) * i.tuples);
        }
    }
    (pages, tuples)
}

/// A bitmap heap scan. Returns the rows each process returns, too.
pub fn bitmap_heap_scan(
    s: &PlannerSettings,
    page_costs: (f64, f64),
    i: BitmapInput,
    rows: f64,
    qual: QualCost,
    target: QualCost,
    workers: usize,
) -> (Cost, f64) {
    let (seq, random) = page_costs;
    let (pages, tuples) = bitmap_pages(s, i);
    let t = i.pages.max(1.0);
    let mut startup = i.index_total;
    let per_page = if pages >= 2.0 { random - (random - seq) * (pages / t).sqrt() } else { random };
    let mut run = pages * per_page;
    startup += qual.startup;
    let mut cpu = (s.cpu_tuple_cost + qual.per_tuple) * tuples;
    let mut out_rows = rows;
    if workers > 0 {
        let d = parallel_divisor(s, workers);
        cpu /= d;
        out_rows = clamp_rows(rows / d);
    }
    run += cpu;
    startup += target.startup;
    run += target.per_tuple * out_rows;
    (Cost { startup, total: startup + run }, out_rows)
}
