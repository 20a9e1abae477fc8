//! The judge's database `plan` as a dump: catalogs, statistics, sizes; and SQL text planned over it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, dead_code, missing_docs)]

pub mod validate;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use stegodon_catalog::testing::{CsvDir, parse_csv};
use stegodon_catalog::{Catalog, CatalogView, RowSource, SearchPath, TableRows};
use stegodon_functions::{EvalContext, NoSession};
use stegodon_plan::deparse::DeparseContext;
use stegodon_plan::{ExplainOptions, Folding, PlanInput, PlannerSettings, Storage};
use stegodon_types::{BuiltinTypes, Datum, FormatSettings, Oid, SqlResult, TypeCatalog, TypeContext, TypeKind};

pub fn dump_dir() -> PathBuf {
    std::env::var_os("STEGODON_PLAN_DUMP").map_or_else(|| PathBuf::from("/work/cache/plan/dump"), PathBuf::from)
}

/// The dump's catalogs, with the values of statistics, which the plain dump leaves out.
struct Source {
    csv: CsvDir,
    types: HashMap<u32, u32>,
}

fn array_datum(element: Oid, text: &str) -> Option<Datum> {
    let types = BuiltinTypes;
    let settings = FormatSettings::default();
    let cx = TypeContext::new(&types, &settings);
    let desc = types.type_desc(element).ok()?;
    let array = types.type_desc(desc.array).ok()?;
    assert!(matches!(array.kind, TypeKind::Array { .. }));
    stegodon_types::text_in(&cx, &array, text.as_bytes(), -1).ok()
}

impl RowSource for Source {
    fn table(&mut self, name: &str, columns: &[&str]) -> SqlResult<TableRows> {
        if name != "pg_statistic" {
            return self.csv.table(name, columns);
        }
        let plain: Vec<&str> = columns.iter().copied().filter(|c| !c.starts_with("stavalues")).collect();
        let mut out = self.csv.table(name, &plain)?;
        let text = std::fs::read_to_string(dump_dir().join("pg_statistic.csv")).unwrap();
        let mut rows = parse_csv(&text).into_iter();
        let head: Vec<String> = rows.next().unwrap().into_iter().flatten().collect();
        let at = |n: &str| head.iter().position(|h| h == n).unwrap();
        let class = parse_csv(&std::fs::read_to_string(dump_dir().join("pg_attribute.csv")).unwrap());
        let attribute: HashMap<(String, String), u32> = class
            .iter()
            .skip(1)
            .filter_map(|r| Some(((r[0].clone()?, r[4].clone()?), r[2].clone()?.parse().ok()?)))
            .collect();
        let _ = &self.types;
        let ahead: Vec<String> = class[0].clone().into_iter().flatten().collect();
        assert_eq!((ahead[0].as_str(), ahead[2].as_str(), ahead[4].as_str()), ("attrelid", "atttypid", "attnum"));
        for n in 1..=5 {
            out.columns.push(format!("stavalues{n}"));
        }
        for (row, values) in rows.zip(&mut out.rows) {
            let key = (row[at("starelid")].clone().unwrap(), row[at("staattnum")].clone().unwrap());
            let element = attribute.get(&key).copied().unwrap_or(0);
            for n in 1..=5 {
                let kind = row[at(&format!("stakind{n}"))].clone().unwrap();
                let text = row[at(&format!("stavalues{n}"))].clone();
                values.push(match text {
                    Some(t) if kind == "1" || kind == "2" => array_datum(Oid(element), &t),
                    _ => None,
                });
            }
        }
        Ok(out)
    }
}

pub struct Judge {
    pub catalog: Arc<Catalog>,
    pub view: CatalogView,
    blocks: HashMap<u32, u32>,
    heights: HashMap<u32, u32>,
    endpoints: HashMap<u32, (String, String)>,
}

impl Judge {
    pub fn open() -> Judge {
        let mut source = Source { csv: CsvDir::open(dump_dir()).unwrap(), types: HashMap::new() };
        let catalog = Arc::new(Catalog::build(&mut source, "plan").unwrap());
        let read = |n: &str| parse_csv(&std::fs::read_to_string(dump_dir().join(n)).unwrap());
        let number = |s: &Option<String>| s.as_deref().unwrap().parse::<u32>().unwrap();
        let path = SearchPath { namespaces: vec![Oid(11), Oid(2200)] };
        Judge {
            view: CatalogView::new(Arc::clone(&catalog), path),
            blocks: read("blocks.csv").iter().map(|r| (number(&r[0]), number(&r[1]))).collect(),
            heights: read("heights.csv").iter().map(|r| (number(&r[0]), number(&r[1]))).collect(),
            endpoints: read("endpoints.csv")
                .iter()
                .filter_map(|r| Some((number(&r[0]), (r[1].clone()?, r[2].clone()?))))
                .collect(),
            catalog,
        }
    }

    pub fn explain(&self, sql: &str, settings: &PlannerSettings) -> Result<Vec<String>, String> {
        self.explain_with(sql, settings, &ExplainOptions::default())
    }

    pub fn explain_with(
        &self,
        sql: &str,
        settings: &PlannerSettings,
        options: &ExplainOptions,
    ) -> Result<Vec<String>, String> {
        let format = FormatSettings::default();
        let session = NoSession::default();
        let types = TypeContext::new(&self.view, &format);
        let parsed = stegodon_sql::parse(sql).map_err(|e| e.to_string())?;
        let cx = stegodon_sql::AnalyzeContext {
            catalog: &self.catalog,
            path: &self.view.path,
            types,
            user: Oid(10),
            transform_null_equals: false,
        };
        let analyzed =
            stegodon_sql::analyze(&parsed[0], cx, stegodon_sql::ParamTypes::default()).map_err(|e| e.to_string())?;
        let stegodon_sql::Statement::Query(query) = analyzed.statement else { panic!("no query") };
        let query = stegodon_sql::rewrite(*query, &cx).map_err(|e| e.to_string())?.query;
        let eval = EvalContext {
            catalog: &self.catalog,
            types: &self.view,
            settings: &format,
            session: &session,
            params: &[],
            exec_params: &[],
            subplans: None,
        };
        let folding = Folding { cx: eval };
        let input = PlanInput {
            catalog: &self.catalog,
            storage: self,
            settings,
            evaluate: &folding,
            params: None,
            cursor: false,
        };
        let plan = stegodon_plan::plan(&query, input).map_err(|e| e.to_string())?;
        if let Some(problem) = validate::problem(&plan) {
            return Err(format!("invalid plan: {problem}"));
        }
        Ok(stegodon_plan::explain(&plan, &DeparseContext { view: &self.view, types }, options, None))
    }
}

impl Storage for Judge {
    fn relation_blocks(&self, relation: Oid) -> SqlResult<u32> {
        Ok(self.blocks.get(&relation.0).copied().unwrap_or(0))
    }

    fn btree_height(&self, index: Oid) -> SqlResult<Option<u32>> {
        Ok(self.heights.get(&index.0).copied())
    }

    fn index_endpoint(&self, index: Oid, last: bool) -> SqlResult<Option<Datum>> {
        let Some((low, high)) = self.endpoints.get(&index.0) else { return Ok(None) };
        let text = if last { high } else { low };
        let row = self.catalog.relation(index).unwrap();
        let attribute = &row.attributes[0];
        let desc = self.catalog.type_desc(attribute.type_oid).unwrap();
        let settings = FormatSettings::default();
        let cx = TypeContext::new(&self.view, &settings);
        Ok(Some(stegodon_types::text_in(&cx, desc, text.as_bytes(), -1)?))
    }
}

/// Applies `set name = value`.
pub fn set(settings: &mut PlannerSettings, name: &str, value: &str) {
    let on = value == "on";
    match name {
        "enable_seqscan" => settings.enable_seqscan = on,
        "enable_indexscan" => settings.enable_indexscan = on,
        "enable_indexonlyscan" => settings.enable_indexonlyscan = on,
        "enable_bitmapscan" => settings.enable_bitmapscan = on,
        "enable_hashagg" => settings.enable_hashagg = on,
        "enable_hashjoin" => settings.enable_hashjoin = on,
        "enable_mergejoin" => settings.enable_mergejoin = on,
        "enable_nestloop" => settings.enable_nestloop = on,
        "enable_sort" => settings.enable_sort = on,
        "enable_material" => settings.enable_material = on,
        "enable_incremental_sort" => settings.enable_incremental_sort = on,
        "max_parallel_workers_per_gather" => settings.max_parallel_workers_per_gather = value.parse().unwrap(),
        "parallel_setup_cost" => settings.parallel_setup_cost = value.parse().unwrap(),
        "parallel_tuple_cost" => settings.parallel_tuple_cost = value.parse().unwrap(),
        "work_mem" => settings.work_mem = value.parse().unwrap(),
        "effective_io_concurrency" => settings.effective_io_concurrency = value.parse().unwrap(),
        _ => panic!("setting {name}"),
    }
}

/// Runs one data-driven file: `set`s and a query, `----`, the judge's EXPLAIN, a blank line. Returns the mismatches.
pub fn run_file(judge: &Judge, text: &str) -> Vec<String> {
    let mut failures = Vec::new();
    for case in text.split("\n\n").map(str::trim).filter(|c| !c.is_empty()) {
        let (input, expected) = case.split_once("\n----\n").expect("a case without expectation");
        let mut settings = PlannerSettings::default();
        let mut sql = String::new();
        for line in input.lines() {
            if let Some(s) = line.strip_prefix("set ") {
                let (name, value) = s.split_once('=').unwrap();
                set(&mut settings, name.trim(), value.trim());
            } else {
                sql.push_str(line);
                sql.push('\n');
            }
        }
        let got = match judge.explain(&sql, &settings) {
            Ok(lines) => lines.join("\n"),
            Err(e) => e,
        };
        if got.trim_end() != expected.trim_end() {
            failures.push(format!("{input}\n---- expected\n{expected}\n---- got\n{got}\n"));
        }
    }
    failures
}
