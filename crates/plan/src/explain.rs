//! EXPLAIN's text, in PostgreSQL 18's layout.
//!
//! ```text
//!  Limit  (cost=0.00..1.23 rows=10 width=8)                 the root has no arrow
//!    InitPlan 1                                             2: label, then its plan
//!      ->  Result  (cost=...)
//!    ->  Seq Scan on t  (cost=...)                          2: children
//!          Filter: (a > 1)                                  8: 6 more a level
//! ```

use std::fmt::Write as _;

use stegodon_nodes::Expr;
use stegodon_nodes::expr::VarSource;
use stegodon_nodes::query::{JoinKind, SetOperationKind};
use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::deparse::{DeparseContext, Place, deparse, quote_identifier, sort_key};
use crate::exprs;
use crate::node::*;

/// The options of EXPLAIN.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the option of that name")]
pub struct ExplainOptions {
    pub analyze: bool,
    pub verbose: bool,
    pub costs: bool,
    pub buffers: bool,
    pub timing: bool,
    pub summary: bool,
}

impl Default for ExplainOptions {
    fn default() -> Self {
        Self { analyze: false, verbose: false, costs: true, buffers: false, timing: true, summary: false }
    }
}

fn boolean(name: &str, value: Option<&str>) -> SqlResult<bool> {
    match value.map(str::to_ascii_lowercase).as_deref() {
        None | Some("true" | "on" | "1") => Ok(true),
        Some("false" | "off" | "0") => Ok(false),
        Some(_) => Err(SqlError::new(SqlState::SyntaxError, format!("{name} requires a Boolean value"))),
    }
}

impl ExplainOptions {
    /// Reads `(name [value], ...)`.
    pub fn parse<'o>(options: impl IntoIterator<Item = (&'o str, Option<&'o str>)>) -> SqlResult<Self> {
        let mut out = Self::default();
        let (mut buffers, mut timing, mut summary) = (None, None, None);
        for (name, value) in options {
            match name {
                "analyze" => out.analyze = boolean(name, value)?,
                "verbose" => out.verbose = boolean(name, value)?,
                "costs" => out.costs = boolean(name, value)?,
                "buffers" => buffers = Some(boolean(name, value)?),
                "timing" => timing = Some(boolean(name, value)?),
                "summary" => summary = Some(boolean(name, value)?),
                "settings" | "wal" | "memory" | "generic_plan" => {
                    if boolean(name, value)? {
                        return Err(SqlError::unsupported(format!("EXPLAIN option {}", name.to_uppercase())));
                    }
                }
                "serialize" => {
                    if value.is_none_or(|v| !v.eq_ignore_ascii_case("none")) {
                        return Err(SqlError::unsupported("EXPLAIN option SERIALIZE"));
                    }
                }
                "format" => {
                    if !value.is_some_and(|v| v.eq_ignore_ascii_case("text")) {
                        return Err(SqlError::unsupported(format!(
                            "EXPLAIN option FORMAT {}",
                            value.unwrap_or_default().to_uppercase()
                        )));
                    }
                }
                _ => {
                    return Err(SqlError::new(
                        SqlState::SyntaxError,
                        format!("unrecognized EXPLAIN option \"{name}\""),
                    ));
                }
            }
        }
        if timing == Some(true) && !out.analyze {
            return Err(SqlError::new(SqlState::InvalidParameterValue, "EXPLAIN option TIMING requires ANALYZE"));
        }
        out.buffers = buffers.unwrap_or(out.analyze);
        out.timing = timing.unwrap_or(out.analyze);
        out.summary = summary.unwrap_or(out.analyze);
        Ok(out)
    }
}

/// Pages touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct BufferUsage {
    pub shared_hit: u64,
    pub shared_read: u64,
    pub temp_read: u64,
    pub temp_written: u64,
}

/// What a node did when it ran.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeRun {
    /// How often it was started.
    pub loops: f64,
    /// Rows of all loops together.
    pub rows: f64,
    /// Milliseconds to the first row, of all loops.
    pub startup_ms: f64,
    /// Milliseconds altogether.
    pub total_ms: f64,
    /// Rows that its quals refused.
    pub removed_by_filter: f64,
    /// Rows that its join filter refused.
    pub removed_by_join_filter: f64,
    /// Rows that a recheck refused.
    pub removed_by_recheck: f64,
    /// Descents of an index scan.
    pub index_searches: Option<u64>,
    /// Index-only: visits to the table.
    pub heap_fetches: Option<u64>,
    /// Bitmap heap: pages with exact rows, pages without.
    pub heap_blocks: Option<(u64, u64)>,
    /// Sort: method, space in kilobytes, whether on disk.
    pub sort: Option<(String, u64, bool)>,
    /// Hash join: buckets, batches, kilobytes.
    pub hash: Option<(u64, u64, u64)>,
    /// Hash aggregate: batches, kilobytes in memory, kilobytes on disk.
    pub hash_aggregate: Option<(u64, u64, u64)>,
    /// Gather: workers that started.
    pub workers_launched: Option<u64>,
    /// Pages.
    pub buffers: BufferUsage,
}

/// Who counted while a plan ran; `exec` does.
pub trait NodeCounters {
    /// What the node of this id did; `None` where it never ran.
    fn node(&self, id: usize) -> Option<NodeRun>;
    /// Pages touched while planning.
    fn planning_buffers(&self) -> BufferUsage {
        BufferUsage::default()
    }
    /// Milliseconds that planning took.
    fn planning_ms(&self) -> f64;
    /// Milliseconds that running took.
    fn execution_ms(&self) -> f64;
}

/// Prints a plan. `counters` where it has run.
pub fn explain(
    statement: &PlannedStatement,
    cx: &DeparseContext<'_>,
    options: &ExplainOptions,
    counters: Option<&dyn NodeCounters>,
) -> Vec<String> {
    let several = statement.range_table.iter().filter(|r| r.alias != "*GROUP*").count() > 1;
    let prefix = options.verbose || several;
    let mut p = Printer { statement, cx, options, counters, several, prefix, printed: Vec::new(), out: Vec::new() };
    p.node(&statement.root, 0, None);
    if let Some(c) = counters {
        if options.summary {
            let buffers = c.planning_buffers();
            if options.buffers && buffers != BufferUsage::default() {
                p.out.push("Planning:".to_owned());
                p.buffers(2, buffers);
            }
            p.out.push(format!("Planning Time: {:.3} ms", c.planning_ms()));
            if options.analyze {
                p.out.push(format!("Execution Time: {:.3} ms", c.execution_ms()));
            }
        }
    }
    p.out
}

struct Printer<'p, 'c> {
    statement: &'p PlannedStatement,
    cx: &'p DeparseContext<'c>,
    options: &'p ExplainOptions,
    counters: Option<&'p dyn NodeCounters>,
    /// Several relations: output columns say whose they are.
    several: bool,
    /// Other expressions say so in a verbose plan too.
    prefix: bool,
    /// Subplans already printed: each is printed once.
    printed: Vec<usize>,
    out: Vec<String>,
}

fn join_word(kind: JoinKind) -> &'static str {
    match kind {
        JoinKind::Inner => "",
        JoinKind::Left => " Left",
        JoinKind::Full => " Full",
        JoinKind::Right => " Right",
        JoinKind::Semi => " Semi",
        JoinKind::Anti => " Anti",
    }
}

impl<'p> Printer<'p, '_> {
    fn line(&mut self, indent: usize, text: impl AsRef<str>) {
        self.out.push(format!("{:indent$}{}", "", text.as_ref()));
    }

    fn place(&self, node: &'p PlanNode, prefix: bool) -> Place<'p> {
        Place { statement: self.statement, node, prefix }
    }

    fn relation(&self, relation: usize) -> String {
        let Some(r) = relation.checked_sub(1).and_then(|i| self.statement.range_table.get(i)) else {
            return " on ?".to_owned();
        };
        let mut out = String::from(" on ");
        if self.options.verbose
            && let Some(row) = self.cx.view.catalog.relation(r.relation)
            && let Some(ns) = self.cx.view.catalog.namespace(row.namespace)
        {
            let _ = write!(out, "{}.", quote_identifier(&ns.name));
        }
        if r.relation.is_valid() {
            out.push_str(&quote_identifier(&r.name));
            if r.alias != r.name {
                let _ = write!(out, " {}", quote_identifier(&r.alias));
            }
        } else {
            out.push_str(&quote_identifier(&r.alias));
        }
        out
    }

    /// A function's or CTE's own name with its alias.
    fn named(&self, relation: usize) -> String {
        let Some(r) = relation.checked_sub(1).and_then(|i| self.statement.range_table.get(i)) else {
            return " on ?".to_owned();
        };
        let mut out = format!(" on {}", quote_identifier(&r.name));
        if r.alias != r.name {
            let _ = write!(out, " {}", quote_identifier(&r.alias));
        }
        out
    }

    fn title(&self, node: &PlanNode) -> String {
        let quoted = |i: &IndexScan| quote_identifier(&i.index_name);
        let scan = |word: &str, i: &IndexScan| {
            let back = if i.backward { " Backward" } else { "" };
            format!("{word}{back} using {}{}", quoted(i), self.relation(i.relation))
        };
        match &node.kind {
            PlanKind::Result { .. } => "Result".into(),
            PlanKind::ProjectSet { .. } => "ProjectSet".into(),
            PlanKind::SeqScan { relation, .. } => format!("Seq Scan{}", self.relation(*relation)),
            PlanKind::IndexScan(i) => scan("Index Scan", i),
            PlanKind::IndexOnlyScan(i) => scan("Index Only Scan", i),
            PlanKind::BitmapHeapScan { relation, .. } => format!("Bitmap Heap Scan{}", self.relation(*relation)),
            PlanKind::BitmapIndexScan(i) => format!("Bitmap Index Scan on {}", quoted(i)),
            PlanKind::BitmapAnd { .. } => "BitmapAnd".into(),
            PlanKind::BitmapOr { .. } => "BitmapOr".into(),
            PlanKind::TidScan { relation, .. } => format!("Tid Scan{}", self.relation(*relation)),
            PlanKind::TidRangeScan { relation, .. } => format!("Tid Range Scan{}", self.relation(*relation)),
            PlanKind::SubqueryScan { relation, .. } => format!("Subquery Scan{}", self.relation(*relation)),
            PlanKind::FunctionScan { relation, .. } => format!("Function Scan{}", self.named(*relation)),
            PlanKind::ValuesScan { relation, .. } => format!("Values Scan{}", self.relation(*relation)),
            PlanKind::CteScan { relation, .. } => format!("CTE Scan{}", self.named(*relation)),
            PlanKind::Append { .. } => "Append".into(),
            PlanKind::MergeAppend { .. } => "Merge Append".into(),
            PlanKind::NestLoop(j) => match join_word(j.kind) {
                "" => "Nested Loop".into(),
                word => format!("Nested Loop{word} Join"),
            },
            PlanKind::MergeJoin { join, .. } => format!("Merge{} Join", join_word(join.kind)),
            PlanKind::HashJoin { join, .. } => format!("Hash{} Join", join_word(join.kind)),
            PlanKind::Hash { .. } => "Hash".into(),
            PlanKind::Materialize { .. } => "Materialize".into(),
            PlanKind::Sort { presorted: 0, .. } => "Sort".into(),
            PlanKind::Sort { .. } => "Incremental Sort".into(),
            PlanKind::Aggregate { strategy, split, .. } => {
                let split = match split {
                    AggregateSplit::Whole => "",
                    AggregateSplit::Partial => "Partial ",
                    AggregateSplit::Final => "Finalize ",
                };
                let name = match strategy {
                    AggregateStrategy::Plain => "Aggregate",
                    AggregateStrategy::Sorted => "GroupAggregate",
                    AggregateStrategy::Hashed => "HashAggregate",
                };
                format!("{split}{name}")
            }
            PlanKind::Group { .. } => "Group".into(),
            PlanKind::WindowAgg { .. } => "WindowAgg".into(),
            PlanKind::Unique { .. } => "Unique".into(),
            PlanKind::SetOp { kind, all, .. } => {
                let kind = match kind {
                    SetOperationKind::Intersect => "Intersect",
                    SetOperationKind::Except => "Except",
                    SetOperationKind::Union => "Union",
                };
                format!("HashSetOp {kind}{}", if *all { " All" } else { "" })
            }
            PlanKind::Limit { .. } => "Limit".into(),
            PlanKind::Gather { .. } => "Gather".into(),
            PlanKind::GatherMerge { .. } => "Gather Merge".into(),
        }
    }

    fn node(&mut self, node: &'p PlanNode, depth: usize, arrow: Option<usize>) {
        let mut line = String::new();
        let detail = match arrow {
            None => 2,
            Some(at) => {
                let _ = write!(line, "{:at$}->  ", "");
                at + 6
            }
        };
        let _ = depth;
        if node.parallel_aware {
            line.push_str("Parallel ");
        }
        line.push_str(&self.title(node));
        if self.options.costs {
            let e = &node.estimate;
            let _ = write!(
                line,
                "  (cost={:.2}..{:.2} rows={:.0} width={})",
                e.startup_cost, e.total_cost, e.rows, e.width_bytes
            );
        }
        let run = self.counters.filter(|_| self.options.analyze).map(|c| c.node(node.id));
        match &run {
            Some(Some(r)) if r.loops > 0.0 => {
                let rows = r.rows / r.loops;
                if self.options.timing {
                    let _ = write!(
                        line,
                        " (actual time={:.3}..{:.3} rows={rows:.2} loops={:.0})",
                        r.startup_ms / r.loops,
                        r.total_ms / r.loops,
                        r.loops
                    );
                } else {
                    let _ = write!(line, " (actual rows={rows:.2} loops={:.0})", r.loops);
                }
            }
            Some(_) => line.push_str(" (never executed)"),
            None => {}
        }
        self.out.push(line);
        let mut below = 0;
        crate::names::for_each_child(node, &mut |c| below += c.estimate.disabled_nodes);
        if node.estimate.disabled_nodes > below {
            self.line(detail, "Disabled: true");
        }
        let ran = run.flatten().filter(|r| r.loops > 0.0);
        self.details(node, detail, ran.as_ref());
        if self.options.buffers
            && let Some(r) = &ran
        {
            self.buffers(detail, r.buffers);
        }
        for &i in &node.init_plans {
            let Some(init) = self.statement.init_plans.get(i) else { continue };
            let Some(plan) = self.statement.subplans.get(init.subplan) else { continue };
            self.line(detail, format!("InitPlan {}", init.number));
            self.node(plan, depth + 1, Some(detail + 2));
        }
        if arrow.is_none() {
            for (subplan, name) in self.with_queries() {
                if let Some(plan) = self.statement.subplans.get(subplan) {
                    self.line(detail, format!("CTE {}", quote_identifier(&name)));
                    self.node(plan, depth + 1, Some(detail + 2));
                }
            }
        }
        let mut children = Vec::new();
        crate::names::for_each_child(node, &mut |c| children.push(c));
        for c in children {
            self.node(c, depth + 1, Some(detail));
        }
        self.subplans(node, depth, detail);
    }

    /// The WITH queries that are scanned anywhere, in the order they were planned.
    fn with_queries(&self) -> Vec<(usize, String)> {
        fn find(node: &PlanNode, out: &mut Vec<(usize, String)>) {
            if let PlanKind::CteScan { subplan, name, .. } = &node.kind
                && !out.iter().any(|(s, _)| s == subplan)
            {
                out.push((*subplan, name.clone()));
            }
            crate::names::for_each_child(node, &mut |c| find(c, out));
        }
        let mut out = Vec::new();
        find(&self.statement.root, &mut out);
        self.statement.subplans.iter().for_each(|s| find(s, &mut out));
        out.sort_by_key(|(s, _)| *s);
        out
    }

    /// The subplans that a node's own expressions use.
    fn subplans(&mut self, node: &'p PlanNode, depth: usize, detail: usize) {
        let mut found: Vec<usize> = Vec::new();
        crate::walk::for_each_expr(node, &mut |e| {
            exprs::walk(e, &mut |x| {
                if let Expr::SubPlan(s) = x
                    && !found.contains(&s.plan_id)
                    && !self.printed.contains(&s.plan_id)
                {
                    found.push(s.plan_id);
                }
                true
            });
        });
        self.printed.extend(&found);
        for id in found {
            if let Some(plan) = self.statement.subplans.get(id) {
                self.line(detail, format!("SubPlan {}", id + 1));
                self.node(plan, depth + 1, Some(detail + 2));
            }
        }
    }

    fn buffers(&mut self, detail: usize, b: BufferUsage) {
        let mut text = String::new();
        let part = |text: &mut String, word: &str, list: &[(&str, u64)]| {
            if list.iter().all(|(_, n)| *n == 0) {
                return;
            }
            let _ = write!(text, "{}{word}", if text.is_empty() { " " } else { ", " });
            for (name, n) in list.iter().filter(|(_, n)| *n > 0) {
                let _ = write!(text, " {name}={n}");
            }
        };
        part(&mut text, "shared", &[("hit", b.shared_hit), ("read", b.shared_read)]);
        part(&mut text, "temp", &[("read", b.temp_read), ("written", b.temp_written)]);
        if !text.is_empty() {
            self.line(detail, format!("Buffers:{text}"));
        }
    }

    fn condition(&mut self, node: &'p PlanNode, detail: usize, label: &str, list: &[Expr], prefix: bool) {
        if list.is_empty() {
            return;
        }
        let all = exprs::and(list.to_vec());
        let text = deparse(self.cx, self.place(node, prefix), &all);
        self.line(detail, format!("{label}: {text}"));
    }

    fn removed(&mut self, detail: usize, label: &str, count: f64, run: Option<&NodeRun>) {
        if let Some(r) = run
            && count > 0.0
        {
            self.line(detail, format!("{label}: {:.0}", count / r.loops));
        }
    }

    fn index_condition(&mut self, node: &'p PlanNode, detail: usize, i: &IndexScan) {
        let list: Vec<Expr> = i.conditions.iter().map(|c| c.clause.clone()).collect();
        self.condition(node, detail, "Index Cond", &list, self.options.verbose);
    }

    #[allow(clippy::too_many_lines)]
    fn details(&mut self, node: &'p PlanNode, detail: usize, run: Option<&NodeRun>) {
        let verbose = self.options.verbose;
        if verbose && !node.targets.is_empty() {
            let place = self.place(node, self.several);
            let list: Vec<String> = node.targets.iter().map(|t| deparse(self.cx, place, &t.expr)).collect();
            self.line(detail, format!("Output: {}", list.join(", ")));
        }
        let filtered = run.map_or(0.0, |r| r.removed_by_filter);
        let scan_filter = |this: &mut Self| {
            this.condition(node, detail, "Filter", &node.quals, verbose);
            if !node.quals.is_empty() {
                this.removed(detail, "Rows Removed by Filter", filtered, run);
            }
        };
        let upper_filter = |this: &mut Self| {
            this.condition(node, detail, "Filter", &node.quals, this.prefix);
            if !node.quals.is_empty() {
                this.removed(detail, "Rows Removed by Filter", filtered, run);
            }
        };
        match &node.kind {
            PlanKind::SeqScan { .. }
            | PlanKind::ValuesScan { .. }
            | PlanKind::FunctionScan { .. }
            | PlanKind::CteScan { .. } => {
                if let PlanKind::FunctionScan { functions, .. } = &node.kind
                    && verbose
                {
                    let place = self.place(node, true);
                    let list: Vec<String> = functions.iter().map(|f| deparse(self.cx, place, f)).collect();
                    self.line(detail, format!("Function Call: {}", list.join(", ")));
                }
                scan_filter(self);
            }
            PlanKind::SubqueryScan { .. } => {
                self.condition(node, detail, "Filter", &node.quals, true);
                self.removed(detail, "Rows Removed by Filter", filtered, run);
            }
            PlanKind::IndexScan(i) => {
                self.index_condition(node, detail, i);
                scan_filter(self);
                self.searches(detail, run);
            }
            PlanKind::IndexOnlyScan(i) => {
                self.index_condition(node, detail, i);
                scan_filter(self);
                if let Some(n) = run.and_then(|r| r.heap_fetches) {
                    self.line(detail, format!("Heap Fetches: {n}"));
                }
                self.searches(detail, run);
            }
            PlanKind::BitmapIndexScan(i) => {
                self.index_condition(node, detail, i);
                self.searches(detail, run);
            }
            PlanKind::BitmapHeapScan { recheck, .. } => {
                self.condition(node, detail, "Recheck Cond", recheck, verbose);
                self.removed(detail, "Rows Removed by Index Recheck", run.map_or(0.0, |r| r.removed_by_recheck), run);
                scan_filter(self);
                if let Some((exact, lossy)) = run.and_then(|r| r.heap_blocks)
                    && exact + lossy > 0
                {
                    let mut text = String::from("Heap Blocks:");
                    if exact > 0 {
                        let _ = write!(text, " exact={exact}");
                    }
                    if lossy > 0 {
                        let _ = write!(text, " lossy={lossy}");
                    }
                    self.line(detail, text);
                }
            }
            PlanKind::TidScan { conditions, .. } | PlanKind::TidRangeScan { conditions, .. } => {
                let list = match &node.kind {
                    PlanKind::TidScan { .. } if conditions.len() > 1 => vec![exprs::or(conditions.clone())],
                    _ => conditions.clone(),
                };
                self.condition(node, detail, "TID Cond", &list, verbose);
                scan_filter(self);
            }
            PlanKind::Gather { workers, .. } | PlanKind::GatherMerge { workers, .. } => {
                upper_filter(self);
                self.line(detail, format!("Workers Planned: {workers}"));
                if let Some(n) = run.and_then(|r| r.workers_launched) {
                    self.line(detail, format!("Workers Launched: {n}"));
                }
            }
            PlanKind::NestLoop(j) => self.join(node, detail, j, run),
            PlanKind::MergeJoin { join, clauses } => {
                let list: Vec<Expr> = clauses.iter().map(|c| c.clause.clone()).collect();
                self.condition(node, detail, "Merge Cond", &list, self.prefix);
                self.join(node, detail, join, run);
            }
            PlanKind::HashJoin { join, clauses } => {
                let list: Vec<Expr> = clauses.iter().map(|c| c.clause.clone()).collect();
                self.condition(node, detail, "Hash Cond", &list, self.prefix);
                self.join(node, detail, join, run);
            }
            PlanKind::Aggregate { child, group_by, .. } => {
                self.group_key(child, detail, group_by);
                upper_filter(self);
                if let Some((batches, memory, disk)) = run.and_then(|r| r.hash_aggregate) {
                    let mut text = format!("Batches: {batches}  Memory Usage: {memory}kB");
                    if batches > 1 {
                        let _ = write!(text, "  Disk Usage: {disk}kB");
                    }
                    self.line(detail, text);
                }
            }
            PlanKind::WindowAgg { child, window } => {
                self.window(node, child, detail, window);
                upper_filter(self);
            }
            PlanKind::Group { child, group_by } => {
                self.group_key(child, detail, group_by);
                upper_filter(self);
            }
            PlanKind::Sort { keys, presorted, .. } => {
                self.sort_keys(node, detail, "Sort Key", keys);
                if *presorted > 0 {
                    let first: Vec<SortKey> = keys.iter().take(*presorted).cloned().collect();
                    self.sort_keys(node, detail, "Presorted Key", &first);
                }
                if let Some((method, kilobytes, disk)) = run.and_then(|r| r.sort.clone()) {
                    let space = if disk { "Disk" } else { "Memory" };
                    self.line(detail, format!("Sort Method: {method}  {space}: {kilobytes}kB"));
                }
            }
            PlanKind::MergeAppend { keys, .. } => self.sort_keys(node, detail, "Sort Key", keys),
            PlanKind::Result { one_time_filter, .. } => {
                self.condition(node, detail, "One-Time Filter", one_time_filter, self.prefix);
                upper_filter(self);
            }
            PlanKind::Hash { .. } => {
                if let Some((buckets, batches, kilobytes)) = run.and_then(|r| r.hash) {
                    self.line(detail, format!("Buckets: {buckets}  Batches: {batches}  Memory Usage: {kilobytes}kB"));
                }
            }
            _ => upper_filter(self),
        }
    }

    fn searches(&mut self, detail: usize, run: Option<&NodeRun>) {
        if let Some(n) = run.and_then(|r| r.index_searches) {
            self.line(detail, format!("Index Searches: {n}"));
        }
    }

    fn join(&mut self, node: &'p PlanNode, detail: usize, j: &Join, run: Option<&NodeRun>) {
        if self.options.verbose {
            self.line(detail, format!("Inner Unique: {}", j.inner_unique));
        }
        let counted = |f: fn(&NodeRun) -> f64| run.map_or(0.0, f);
        let (joined, filtered) = (counted(|r| r.removed_by_join_filter), counted(|r| r.removed_by_filter));
        // What an inner join tests of its result is part of the join.
        if j.kind == JoinKind::Inner {
            let all: Vec<Expr> = j.filter.iter().chain(&node.quals).cloned().collect();
            self.condition(node, detail, "Join Filter", &all, self.prefix);
            self.removed(detail, "Rows Removed by Join Filter", joined + filtered, run);
            return;
        }
        self.condition(node, detail, "Join Filter", &j.filter, self.prefix);
        if !j.filter.is_empty() {
            self.removed(detail, "Rows Removed by Join Filter", joined, run);
        }
        self.condition(node, detail, "Filter", &node.quals, self.prefix);
        if !node.quals.is_empty() {
            self.removed(detail, "Rows Removed by Filter", filtered, run);
        }
    }

    fn window(&mut self, node: &'p PlanNode, child: &'p PlanNode, detail: usize, w: &Window) {
        use stegodon_nodes::frame;
        let place = self.place(child, self.prefix);
        let columns = |list: &mut dyn Iterator<Item = stegodon_format::ids::AttrNumber>| {
            let texts: Vec<String> = list
                .filter_map(|c| child.targets.get(usize::try_from(c.0).ok()?.checked_sub(1)?))
                .map(|t| match &t.expr {
                    e @ Expr::Var(_) => deparse(self.cx, place, e),
                    e => format!("({})", deparse(self.cx, place, e)),
                })
                .collect();
            texts.join(", ")
        };
        let mut parts = Vec::new();
        if !w.partition_by.is_empty() {
            parts.push(format!("PARTITION BY {}", columns(&mut w.partition_by.iter().map(|k| k.column))));
        }
        if !w.order_by.is_empty() {
            parts.push(format!("ORDER BY {}", columns(&mut w.order_by.iter().map(|k| k.column))));
        }
        let has = |bit: u32| w.frame_options & bit != 0;
        if has(frame::NON_DEFAULT) {
            let words = [(frame::RANGE, "RANGE"), (frame::ROWS, "ROWS"), (frame::GROUPS, "GROUPS")];
            parts.extend(words.iter().filter(|(b, _)| has(*b)).map(|(_, t)| (*t).to_owned()));
            if has(frame::BETWEEN) {
                parts.push("BETWEEN".to_owned());
            }
            let here = self.place(node, self.prefix);
            let offset = |e: &Option<Expr>| e.as_ref().map_or_else(String::new, |e| deparse(self.cx, here, e));
            parts.push(if has(frame::START_UNBOUNDED_PRECEDING) {
                "UNBOUNDED PRECEDING".to_owned()
            } else if has(frame::START_CURRENT_ROW) {
                "CURRENT ROW".to_owned()
            } else if has(frame::START_OFFSET_PRECEDING) {
                format!("{} PRECEDING", offset(&w.start_offset))
            } else {
                format!("{} FOLLOWING", offset(&w.start_offset))
            });
            if has(frame::BETWEEN) {
                parts.push(if has(frame::END_UNBOUNDED_FOLLOWING) {
                    "AND UNBOUNDED FOLLOWING".to_owned()
                } else if has(frame::END_CURRENT_ROW) {
                    "AND CURRENT ROW".to_owned()
                } else if has(frame::END_OFFSET_PRECEDING) {
                    format!("AND {} PRECEDING", offset(&w.end_offset))
                } else {
                    format!("AND {} FOLLOWING", offset(&w.end_offset))
                });
            }
            let excluded = [
                (frame::EXCLUDE_CURRENT_ROW, "EXCLUDE CURRENT ROW"),
                (frame::EXCLUDE_GROUP, "EXCLUDE GROUP"),
                (frame::EXCLUDE_TIES, "EXCLUDE TIES"),
            ];
            parts.extend(excluded.iter().filter(|(b, _)| has(*b)).map(|(_, t)| (*t).to_owned()));
        }
        self.line(detail, format!("Window: {} AS ({})", quote_identifier(&w.name), parts.join(" ")));
    }

    fn group_key(&mut self, child: &'p PlanNode, detail: usize, keys: &[GroupKey]) {
        if keys.is_empty() {
            return;
        }
        let place = self.place(child, self.prefix);
        let list: Vec<String> = keys
            .iter()
            .filter_map(|k| child.targets.get(usize::try_from(k.column.0).ok()?.checked_sub(1)?))
            // A constant tells no groups apart: PostgreSQL has dropped it by now.
            .filter(|t| !matches!(t.expr, Expr::Const(_)))
            .map(|t| deparse(self.cx, place, &t.expr))
            .collect();
        if list.is_empty() {
            return;
        }
        self.line(detail, format!("Group Key: {}", list.join(", ")));
    }

    fn sort_keys(&mut self, node: &'p PlanNode, detail: usize, label: &str, keys: &[SortKey]) {
        let place = self.place(node, self.prefix);
        let list: Vec<String> = keys
            .iter()
            .filter_map(|k| {
                let t = node.targets.get(usize::try_from(k.column.0).ok()?.checked_sub(1)?)?;
                debug_assert!(!matches!(&t.expr, Expr::Var(v) if v.source == VarSource::Inner));
                Some(sort_key(self.cx, place, &t.expr, k))
            })
            .collect();
        self.line(detail, format!("{label}: {}", list.join(", ")));
    }
}
