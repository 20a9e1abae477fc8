//! The settings that planning reads, with PostgreSQL's names, units and defaults.

/// `constraint_exclusion`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ConstraintExclusion {
    /// `on`
    On,
    /// `off`
    Off,
    /// `partition`
    #[default]
    Partition,
}

/// What planning reads of the session's settings. Sizes are in PostgreSQL's own units: kilobytes and 8 KiB pages.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "each field is the setting of that name")]
pub struct PlannerSettings {
    pub enable_async_append: bool,
    pub enable_bitmapscan: bool,
    pub enable_gathermerge: bool,
    pub enable_hashagg: bool,
    pub enable_hashjoin: bool,
    pub enable_incremental_sort: bool,
    pub enable_indexscan: bool,
    pub enable_indexonlyscan: bool,
    pub enable_material: bool,
    pub enable_memoize: bool,
    pub enable_mergejoin: bool,
    pub enable_nestloop: bool,
    pub enable_parallel_append: bool,
    pub enable_parallel_hash: bool,
    pub enable_partition_pruning: bool,
    pub enable_partitionwise_join: bool,
    pub enable_partitionwise_aggregate: bool,
    pub enable_presorted_aggregate: bool,
    pub enable_seqscan: bool,
    pub enable_sort: bool,
    pub enable_tidscan: bool,
    pub enable_group_by_reordering: bool,
    pub enable_distinct_reordering: bool,
    pub enable_self_join_elimination: bool,
    pub seq_page_cost: f64,
    pub random_page_cost: f64,
    pub cpu_tuple_cost: f64,
    pub cpu_index_tuple_cost: f64,
    pub cpu_operator_cost: f64,
    pub parallel_setup_cost: f64,
    pub parallel_tuple_cost: f64,
    /// In pages.
    pub effective_cache_size: f64,
    /// In pages.
    pub min_parallel_table_scan_size: i32,
    /// In pages.
    pub min_parallel_index_scan_size: i32,
    pub max_parallel_workers_per_gather: i32,
    pub parallel_leader_participation: bool,
    pub effective_io_concurrency: i32,
    /// In kilobytes.
    pub work_mem: i32,
    pub hash_mem_multiplier: f64,
    pub cursor_tuple_fraction: f64,
    pub from_collapse_limit: i32,
    pub join_collapse_limit: i32,
    pub constraint_exclusion: ConstraintExclusion,
    pub recursive_worktable_factor: f64,
}

impl Default for PlannerSettings {
    fn default() -> Self {
        Self {
            enable_async_append: true,
            enable_bitmapscan: true,
            enable_gathermerge: true,
            enable_hashagg: true,
            enable_hashjoin: true,
            enable_incremental_sort: true,
            enable_indexscan: true,
            enable_indexonlyscan: true,
            enable_material: true,
            enable_memoize: true,
            enable_mergejoin: true,
            enable_nestloop: true,
            enable_parallel_append: true,
            enable_parallel_hash: true,
            enable_partition_pruning: true,
            enable_partitionwise_join: false,
            enable_partitionwise_aggregate: false,
            enable_presorted_aggregate: true,
            enable_seqscan: true,
            enable_sort: true,
            enable_tidscan: true,
            enable_group_by_reordering: true,
            enable_distinct_reordering: true,
            enable_self_join_elimination: true,
            seq_page_cost: 1.0,
            random_page_cost: 4.0,
            cpu_tuple_cost: 0.01,
            cpu_index_tuple_cost: 0.005,
            cpu_operator_cost: 0.0025,
            parallel_setup_cost: 1000.0,
            parallel_tuple_cost: 0.1,
            effective_cache_size: 524_288.0,
            min_parallel_table_scan_size: 1024,
            min_parallel_index_scan_size: 64,
            max_parallel_workers_per_gather: 2,
            parallel_leader_participation: true,
            effective_io_concurrency: 16,
            work_mem: 4096,
            hash_mem_multiplier: 2.0,
            cursor_tuple_fraction: 0.1,
            from_collapse_limit: 8,
            join_collapse_limit: 8,
            constraint_exclusion: ConstraintExclusion::Partition,
            recursive_worktable_factor: 10.0,
        }
    }
}

impl PlannerSettings {
    /// What a hash table may use, in bytes (`get_hash_memory_limit`).
    pub fn hash_memory_bytes(&self) -> f64 {
        f64::from(self.work_mem) * self.hash_mem_multiplier * 1024.0
    }

    /// What a sort may use, in bytes.
    pub fn work_mem_bytes(&self) -> f64 {
        f64::from(self.work_mem) * 1024.0
    }
}
