//! Which of a real server's casts, operators, functions and aggregates have no kernel: a walk of `testdata/coverage/catalog.txt`.
//!
//! What is missing is listed in `testdata/coverage/missing.txt`. A name may leave the list only with its kernel and may not
//! come back: the list and the kernels must agree. `STEGODON_WRITE_MISSING=1` writes it anew.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};

use stegodon_functions::{aggregate_exists, kernel_exists, set_function_exists};
use stegodon_types::Oid;

/// Types without a layout (geometry, text search, xml, jsonpath, snapshots): their functions are not listed.
const OUT_OF_SCOPE: [&str; 21] = [
    "point",
    "lseg",
    "path",
    "box",
    "polygon",
    "line",
    "circle",
    "tsvector",
    "tsquery",
    "xml",
    "jsonpath",
    "txid_snapshot",
    "pg_snapshot",
    "gtsvector",
    "pg_ndistinct",
    "pg_dependencies",
    "pg_mcv_list",
    "regconfig",
    "regdictionary",
    "refcursor",
    "pg_ddl_command",
];

fn in_scope(line: &str) -> bool {
    line.split([' ', '(', ')', ',', '-', '>']).all(|word| !OUT_OF_SCOPE.contains(&word.trim_end_matches("[]")))
}

#[test]
fn what_has_no_kernel_is_listed() {
    let catalog = include_str!("../testdata/coverage/catalog.txt");
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut missing = BTreeSet::new();
    for line in catalog.lines().filter(|l| in_scope(l)) {
        let mut words = line.splitn(3, ' ');
        let (kind, oid) = (words.next().unwrap(), Oid(words.next().unwrap().parse().unwrap()));
        let done = match kind {
            "set" => set_function_exists(oid),
            "aggregate" => aggregate_exists(oid),
            "window" => false, // the executor's
            _ => kernel_exists(oid) || set_function_exists(oid),
        };
        let count = counts.entry(kind).or_default();
        count.1 += 1;
        if done {
            count.0 += 1;
        } else {
            missing.insert(line);
        }
    }
    for (kind, (done, all)) in &counts {
        println!("{kind}: {done} of {all}");
    }
    let list = missing.iter().copied().chain([""]).collect::<Vec<_>>().join("\n");
    if std::env::var_os("STEGODON_WRITE_MISSING").is_some() {
        std::fs::write("testdata/coverage/missing.txt", list).unwrap();
        return;
    }
    let known: BTreeSet<&str> = include_str!("../testdata/coverage/missing.txt").lines().collect();
    let lost: Vec<_> = missing.difference(&known).collect();
    assert!(lost.is_empty(), "no longer done: {lost:#?}");
    let found: Vec<_> = known.difference(&missing).collect();
    assert!(found.is_empty(), "done, but still listed as missing: {found:#?}");
}
