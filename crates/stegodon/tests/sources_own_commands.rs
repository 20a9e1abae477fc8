//! The sources' own tables, settings and queries at a million rows: forced and unforced plans have PostgreSQL's nodes, and the
//! answers agree. Slow: `fixtures/make` first builds the cluster with a real PostgreSQL.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::process::Command;

use common::Arena;
use stegodon_testkit::{Duel, scratch, workspace_root};

/// The plan's nodes and conditions, without what depends on the machine.
fn plan(rows: Vec<Vec<Option<String>>>) -> Vec<String> {
    rows.into_iter().flatten().flatten().collect()
}

fn same_plan(duel: &mut Duel, sql: &str, different: &mut Vec<String>) {
    let explain = format!("EXPLAIN (COSTS OFF) {sql}");
    let judge = plan(duel.judge.query(&explain).unwrap().rows);
    let stegodon = plan(duel.stegodon.query(&explain).unwrap().rows);
    if judge != stegodon {
        different.push(format!("{sql}\n    PostgreSQL: {judge:?}\n    Stegodon:   {stegodon:?}"));
    }
}

#[test]
#[ignore = "builds a cluster of five tables of a million rows"]
fn source_004_and_the_bitmap_matrix() {
    let keep = scratch();
    let directory = keep.path().join("big");
    let script = workspace_root().join("fixtures/make");
    let made = Command::new(script).arg(&directory).arg("1000000").status().expect("fixtures/make runs");
    assert!(made.success());
    let arena = Arena::over(&directory, vec![keep]);
    let mut duel = arena.duel("demo");
    let forced = "SET enable_seqscan = off; SET enable_indexscan = off";
    let parallel = "SET max_parallel_workers_per_gather = 4; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0";
    let mut compared = 0;
    let mut different = Vec::new();
    for table in ["uniform", "linear", "linear_fuzz", "cyclic", "cyclic_fuzz"] {
        for settings in
            ["", forced, &format!("{forced}; {parallel}; SET effective_io_concurrency = 1; SET work_mem = 65536")]
        {
            if !settings.is_empty() {
                duel.run(settings);
            }
            for (from, to) in [(-33, 10015), (0, 1), (100, 300), (2000, 6000)] {
                let sql = format!("SELECT * FROM bitmap_{table} WHERE (a BETWEEN {from} AND {to}) OFFSET 1000000");
                same_plan(&mut duel, &sql, &mut different);
                duel.compare(&sql, false).unwrap_or_else(|d| panic!("{d:?}"));
                let digest = format!(
                    "SELECT count(*), sum(a), sum(b), min(c), max(c) FROM bitmap_{table} WHERE a BETWEEN {from} AND {to}"
                );
                duel.compare(&digest, false).unwrap_or_else(|d| panic!("{d:?}"));
                compared += 2;
            }
            duel.run("RESET ALL");
        }
    }
    println!("{compared} answers compared");
    assert!(different.is_empty(), "{} plans differ:\n{}", different.len(), different.join("\n"));
}
