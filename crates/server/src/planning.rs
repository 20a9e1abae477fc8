//! From a session's query to a plan: settings, file sizes and privileges as the planner asks for them.

use stegodon_catalog::settings::Settings;
use stegodon_exec::Opener;
use stegodon_format::btree::METAPAGE;
use stegodon_format::ids::{Fork, Oid};
use stegodon_functions::{EvalContext, Session as AskSession};
use stegodon_io::RelationFiles;
use stegodon_nodes::Query;
use stegodon_plan::node::{PlanNode, PlannedStatement};
use stegodon_plan::settings::ConstraintExclusion;
use stegodon_plan::{Folding, PlanInput, PlannerSettings};
use stegodon_sql::Access;
use stegodon_types::{Datum, SqlError, SqlResult};

use crate::session::Session;
use crate::statements::aside;

/// More tables than this are not planned on a thread that serves sockets.
const TABLES_MAX: usize = 8;

/// Plans a query for these parameters.
pub(crate) fn plan(
    session: &Session,
    query: &Query,
    params: &[Option<Datum>],
    cursor: bool,
) -> SqlResult<PlannedStatement> {
    let settings = planner_settings(&session.settings.read());
    let (format, info) = (session.format(), session.info());
    let cx = EvalContext {
        catalog: &session.view.catalog,
        types: session.view.as_ref(),
        settings: &format,
        session: info.as_ref() as &dyn AskSession,
        params,
        exec_params: &[],
        subplans: None,
    };
    let opener = Opener { storage: session.cluster.storage(), view: &session.view, format: &format };
    let storage = Files { opener };
    let input = PlanInput {
        catalog: &session.view.catalog,
        storage: &storage,
        settings: &settings,
        evaluate: &Folding { cx },
        params: Some(params),
        cursor,
    };
    // What joins many tables takes long to plan, however short it is.
    let is_long = session.is_long || query.range_table.len() > TABLES_MAX;
    aside(is_long, || stegodon_plan::plan(query, input))
}

/// The cluster's files, as the planner asks for them.
struct Files<'a> {
    opener: Opener<'a>,
}

impl Files<'_> {
    fn of(&self, relation: Oid) -> Option<RelationFiles> {
        let locator = self.opener.view.catalog.relation(relation).and_then(|r| r.locator)?;
        Some(self.opener.storage.relation(locator))
    }
}

impl stegodon_plan::Storage for Files<'_> {
    fn relation_blocks(&self, relation: Oid) -> SqlResult<u32> {
        self.of(relation).map_or(Ok(0), |files| Ok(files.nblocks(Fork::Main)?))
    }

    fn btree_height(&self, index: Oid) -> SqlResult<Option<u32>> {
        let Some(files) = self.of(index) else { return Ok(None) };
        let page = self.opener.storage.pool().read(&files, Fork::Main, METAPAGE).wait()?;
        let name = self.opener.view.catalog.relation(index).map_or("", |relation| relation.name.as_str());
        stegodon_nbtree::tree_height(name, page.latch_shared().view()).map(Some)
    }

    fn index_endpoint(&self, index: Oid, last: bool) -> SqlResult<Option<Datum>> {
        self.opener.index_endpoint(index, last)
    }
}

fn planner_settings(settings: &Settings) -> PlannerSettings {
    let int = |name| i32::try_from(settings.int(name)).unwrap_or(i32::MAX);
    PlannerSettings {
        enable_async_append: settings.bool("enable_async_append"),
        enable_bitmapscan: settings.bool("enable_bitmapscan"),
        enable_gathermerge: settings.bool("enable_gathermerge"),
        enable_hashagg: settings.bool("enable_hashagg"),
        enable_hashjoin: settings.bool("enable_hashjoin"),
        enable_incremental_sort: settings.bool("enable_incremental_sort"),
        enable_indexscan: settings.bool("enable_indexscan"),
        enable_indexonlyscan: settings.bool("enable_indexonlyscan"),
        enable_material: settings.bool("enable_material"),
        enable_memoize: settings.bool("enable_memoize"),
        enable_mergejoin: settings.bool("enable_mergejoin"),
        enable_nestloop: settings.bool("enable_nestloop"),
        enable_parallel_append: settings.bool("enable_parallel_append"),
        enable_parallel_hash: settings.bool("enable_parallel_hash"),
        enable_partition_pruning: settings.bool("enable_partition_pruning"),
        enable_partitionwise_join: settings.bool("enable_partitionwise_join"),
        enable_partitionwise_aggregate: settings.bool("enable_partitionwise_aggregate"),
        enable_presorted_aggregate: settings.bool("enable_presorted_aggregate"),
        enable_seqscan: settings.bool("enable_seqscan"),
        enable_sort: settings.bool("enable_sort"),
        enable_tidscan: settings.bool("enable_tidscan"),
        enable_group_by_reordering: settings.bool("enable_group_by_reordering"),
        enable_distinct_reordering: settings.bool("enable_distinct_reordering"),
        enable_self_join_elimination: settings.bool("enable_self_join_elimination"),
        seq_page_cost: settings.real("seq_page_cost"),
        random_page_cost: settings.real("random_page_cost"),
        cpu_tuple_cost: settings.real("cpu_tuple_cost"),
        cpu_index_tuple_cost: settings.real("cpu_index_tuple_cost"),
        cpu_operator_cost: settings.real("cpu_operator_cost"),
        parallel_setup_cost: settings.real("parallel_setup_cost"),
        parallel_tuple_cost: settings.real("parallel_tuple_cost"),
        effective_cache_size: settings.int("effective_cache_size") as f64,
        min_parallel_table_scan_size: int("min_parallel_table_scan_size"),
        min_parallel_index_scan_size: int("min_parallel_index_scan_size"),
        max_parallel_workers_per_gather: int("max_parallel_workers_per_gather"),
        parallel_leader_participation: settings.bool("parallel_leader_participation"),
        effective_io_concurrency: int("effective_io_concurrency"),
        work_mem: int("work_mem"),
        hash_mem_multiplier: settings.real("hash_mem_multiplier"),
        cursor_tuple_fraction: settings.real("cursor_tuple_fraction"),
        from_collapse_limit: int("from_collapse_limit"),
        join_collapse_limit: int("join_collapse_limit"),
        constraint_exclusion: match settings.text("constraint_exclusion") {
            "on" => ConstraintExclusion::On,
            "off" => ConstraintExclusion::Off,
            _ => ConstraintExclusion::Partition,
        },
        recursive_worktable_factor: settings.real("recursive_worktable_factor"),
    }
}

/// Checks the privileges that a query's relations ask for, and refuses row security (DESIGN D10).
pub(crate) fn check_access(session: &Session, accesses: &[Access]) -> SqlResult<()> {
    let catalog = &session.view.catalog;
    for access in accesses {
        let Some(relation) = catalog.relation(access.relation) else { continue };
        let role = access.check_as_user.unwrap_or(session.user.oid);
        if access.requires_select {
            catalog.check_select(relation, role, &access.columns)?;
        }
        let bypasses = catalog.role(role).is_some_and(|r| r.superuser || r.bypass_row_security);
        let owner = catalog.has_privileges_of_role(role, relation.owner) && !relation.force_row_security;
        if relation.row_security && !bypasses && !owner {
            return Err(SqlError::unsupported(format_args!("row security of table \"{}\"", relation.name)));
        }
    }
    Ok(())
}

/// One more than the highest node number of a plan.
pub(crate) fn node_count(planned: &PlannedStatement) -> usize {
    let mut highest = 0;
    for root in std::iter::once(&planned.root).chain(&planned.subplans) {
        visit(root, &mut |node| highest = highest.max(node.id));
    }
    highest + 1
}

fn visit(node: &PlanNode, f: &mut dyn FnMut(&PlanNode)) {
    f(node);
    stegodon_plan::for_each_child(node, &mut |child| visit(child, f));
}
