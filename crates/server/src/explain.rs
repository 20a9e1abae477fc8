//! EXPLAIN: a plan's text, and what was counted while it ran.

use std::sync::Arc;
use std::time::Instant;

use stegodon_exec::{Execution, read};
use stegodon_nodes::Query;
use stegodon_plan::deparse::DeparseContext;
use stegodon_plan::node::{AggregateStrategy, PlanKind, PlanNode, PlannedStatement};
use stegodon_plan::{BufferUsage, ExplainOptions, NodeCounters, NodeRun};
use stegodon_sql::statement::ExplainOptions as Said;
use stegodon_types::{Datum, SqlError, SqlResult, SqlState, TypeContext};

use crate::portal::Rows;
use crate::session::Session;

/// The lines of EXPLAIN.
pub(crate) async fn explain(
    session: &mut Session,
    query: &Query,
    said: &Said,
    params: Vec<Option<Datum>>,
) -> SqlResult<Vec<String>> {
    let options = options(said)?;
    let started = Instant::now();
    let format = session.format();
    let rewritten = stegodon_sql::rewrite(query.clone(), &session.analyze_context(&format))?;
    crate::planning::check_access(session, &rewritten.accesses)?;
    let planned = Arc::new(crate::planning::plan(session, &rewritten.query, &params, false)?);
    let planning_ms = milliseconds(started);
    let mut counted = Counted { planning_ms, execution_ms: 0.0, execution: None, planned: &planned };
    if options.analyze {
        let started = Instant::now();
        let columns = crate::run::query_columns(session, query);
        let mut rows = Rows::of_plan(session, &planned, columns.into(), params, true)?;
        while rows.next(usize::MAX).await?.is_some() {}
        counted.execution = rows.running().map(|r| Arc::clone(r.execution()));
        drop(rows);
        counted.execution_ms = milliseconds(started);
    }
    let cx = DeparseContext { view: &session.view, types: TypeContext::new(session.view.as_ref(), &format) };
    let counters: Option<&dyn NodeCounters> = if options.analyze || options.summary { Some(&counted) } else { None };
    Ok(stegodon_plan::explain(&planned, &cx, &options, counters))
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}

fn options(said: &Said) -> SqlResult<ExplainOptions> {
    let refused = [
        (said.settings, "SETTINGS"),
        (said.generic_plan, "GENERIC_PLAN"),
        (said.wal, "WAL"),
        (said.memory, "MEMORY"),
        (said.io, "IO"),
        (said.serialize.as_deref().is_some_and(|s| s != "none"), "SERIALIZE"),
    ];
    if let Some((_, name)) = refused.iter().find(|(given, _)| *given) {
        return Err(SqlError::unsupported(format_args!("EXPLAIN option {name}")));
    }
    if let Some(format) = said.format.as_deref().filter(|f| *f != "text") {
        return Err(SqlError::unsupported(format_args!("EXPLAIN option FORMAT {}", format.to_uppercase())));
    }
    if said.timing == Some(true) && !said.analyze {
        return Err(SqlError::new(SqlState::InvalidParameterValue, "EXPLAIN option TIMING requires ANALYZE"));
    }
    Ok(ExplainOptions {
        analyze: said.analyze,
        verbose: said.verbose,
        costs: said.costs.unwrap_or(true),
        buffers: said.buffers.unwrap_or(said.analyze),
        timing: said.timing.unwrap_or(said.analyze),
        summary: said.summary.unwrap_or(said.analyze),
    })
}

/// What was counted, in the words that EXPLAIN asks in.
struct Counted<'a> {
    planning_ms: f64,
    execution_ms: f64,
    execution: Option<Arc<Execution>>,
    planned: &'a PlannedStatement,
}

/// The buckets that PostgreSQL would begin a hash table with.
fn buckets(node: &PlanNode) -> u64 {
    const LEAST: u64 = 1024;
    (node.estimate.rows.max(0.0) as u64).max(LEAST).checked_next_power_of_two().unwrap_or(LEAST)
}

fn find(node: &PlanNode, id: usize) -> Option<&PlanNode> {
    if node.id == id {
        return Some(node);
    }
    let mut found = None;
    stegodon_plan::for_each_child(node, &mut |child| {
        if found.is_none() {
            found = find(child, id);
        }
    });
    found
}

impl Counted<'_> {
    /// Pages of a node and everything below it, as EXPLAIN shows them.
    fn buffers(&self, node: &PlanNode) -> BufferUsage {
        let mut usage = BufferUsage::default();
        if let Some(counters) = self.execution.as_ref().and_then(|e| e.counters.node(node.id)) {
            usage.shared_hit += read(&counters.hits);
            usage.shared_read += read(&counters.reads);
        }
        stegodon_plan::for_each_child(node, &mut |child| {
            let below = self.buffers(child);
            usage.shared_hit += below.shared_hit;
            usage.shared_read += below.shared_read;
        });
        usage
    }
}

impl NodeCounters for Counted<'_> {
    fn node(&self, id: usize) -> Option<NodeRun> {
        let execution = self.execution.as_ref()?;
        let counters = execution.counters.node(id)?;
        let roots = std::iter::once(&self.planned.root).chain(&self.planned.subplans);
        let node = roots.into_iter().find_map(|root| find(root, id))?;
        let loops = read(&counters.loops);
        if loops == 0 {
            return None;
        }
        let ms = |ns: u64| ns as f64 / 1e6;
        let index =
            matches!(node.kind, PlanKind::IndexScan(_) | PlanKind::IndexOnlyScan(_) | PlanKind::BitmapIndexScan(_));
        let bitmap = matches!(node.kind, PlanKind::BitmapHeapScan { .. });
        let index_only = matches!(node.kind, PlanKind::IndexOnlyScan(_));
        let gather = matches!(node.kind, PlanKind::Gather { .. } | PlanKind::GatherMerge { .. });
        let join = matches!(node.kind, PlanKind::NestLoop(_) | PlanKind::HashJoin { .. } | PlanKind::MergeJoin { .. });
        let second = read(&counters.filtered_second) as f64;
        let kilobytes = |bytes: &_| read(bytes).div_ceil(1024);
        let (memory, disk) = (kilobytes(&counters.memory_bytes), kilobytes(&counters.disk_bytes));
        // A table that went to disk was taken up again in as many parts as it was too large.
        let batches = 1 + disk.div_ceil(memory.max(1));
        let sort_method = match (disk, read(&counters.bounded_sorts)) {
            (0, 0) => "quicksort",
            (0, _) => "top-N heapsort",
            _ => "external merge",
        };
        Some(NodeRun {
            loops: loops as f64,
            rows: read(&counters.rows) as f64,
            startup_ms: ms(read(&counters.startup_ns)),
            total_ms: ms(read(&counters.total_ns)),
            removed_by_filter: read(&counters.filtered) as f64,
            removed_by_join_filter: if join { second } else { 0.0 },
            removed_by_recheck: if bitmap { second } else { 0.0 },
            index_searches: index.then(|| read(&counters.index_searches)),
            heap_fetches: index_only.then(|| read(&counters.heap_fetches)),
            heap_blocks: bitmap.then(|| (read(&counters.exact_pages), read(&counters.lossy_pages))),
            sort: matches!(node.kind, PlanKind::Sort { .. })
                .then(|| (sort_method.to_owned(), if disk > 0 { disk } else { memory }, disk > 0)),
            hash: matches!(node.kind, PlanKind::Hash { .. }).then(|| (buckets(node), 1, memory)),
            hash_aggregate: matches!(node.kind, PlanKind::Aggregate { strategy: AggregateStrategy::Hashed, .. })
                .then_some((batches, memory, disk)),
            workers_launched: gather.then(|| read(&counters.workers)),
            buffers: self.buffers(node),
        })
    }

    fn planning_ms(&self) -> f64 {
        self.planning_ms
    }

    fn execution_ms(&self) -> f64 {
        self.execution_ms
    }
}
