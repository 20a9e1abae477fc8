//! Plans and costs are PostgreSQL 18's. The dump of the judge's database is made by `/work/cache/plan/dump.sh`; the
//! expectations are its own EXPLAIN.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use common::{Judge, run_file};

fn check(name: &str) {
    let judge = Judge::open();
    let path = std::env::var_os("STEGODON_PLAN_CASES")
        .map_or_else(|| std::path::PathBuf::from("testdata"), std::path::PathBuf::from);
    let text = std::fs::read_to_string(path.join(name)).unwrap();
    let total = text.split("\n\n").filter(|c| !c.trim().is_empty()).count();
    let failures = run_file(&judge, &text);
    for f in failures.iter().take(std::env::var("SHOW").ok().and_then(|n| n.parse().ok()).unwrap_or(10)) {
        println!("{f}");
    }
    println!("{name}: {} of {total} differ", failures.len());
    assert!(failures.is_empty());
}

#[test]
#[ignore = "needs the dump of the judge"]
fn single_tables_plan_as_postgresql() {
    check("single.txt");
}

#[test]
#[ignore = "needs the dump of the judge"]
fn bitmap_data_sets_plan_as_postgresql() {
    check("bitmap.txt");
}

#[test]
#[ignore = "needs the dump of the judge"]
fn joins_plan_as_postgresql() {
    check("join.txt");
}

#[test]
#[ignore = "needs the dump of the judge"]
fn partitions_plan_as_postgresql() {
    check("partition.txt");
}

#[test]
#[ignore = "needs the dump of the judge"]
fn subqueries_plan_as_postgresql() {
    check("subquery.txt");
}

#[test]
#[ignore = "needs the dump of the judge"]
fn windows_plan_as_postgresql() {
    check("window.txt");
}

#[test]
#[ignore = "needs the dump of the judge"]
fn outer_joins_plan_as_postgresql() {
    check("outer.txt");
}

#[test]
#[ignore = "needs the dump of the judge"]
fn set_operations_plan_as_postgresql() {
    check("setop.txt");
}
