//! Faults that other engines had, by public report, do not happen here: `testdata/cases/*/about.md` says which. PostgreSQL loads
//! each case's tables, Stegodon reads the files, and psql prints what PostgreSQL printed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::PathBuf;

use common::{Arena, load, psql_file};

/// The cases, and the database of each.
fn cases() -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir("testdata/cases").unwrap().map(|e| e.unwrap().path());
    let mut cases: Vec<_> = entries
        .map(|path| (format!("kit_{}", path.file_name().unwrap().to_str().unwrap().replace('-', "_")), path))
        .collect();
    cases.sort();
    cases
}

#[test]
fn every_case_prints_what_postgresql_printed() {
    let cases = cases();
    assert!(cases.len() >= 9, "cases are missing");
    let arena = Arena::fresh(|server| {
        for (database, path) in &cases {
            load(server, database, &path.join("setup.sql"));
        }
    });
    let mut failed = Vec::new();
    for (database, path) in &cases {
        let output = psql_file(&arena.stegodon, database, &path.join("query.sql"));
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let expected = std::fs::read_to_string(path.join("expected.out")).unwrap();
        if printed != expected {
            let place = printed.lines().zip(expected.lines()).position(|(a, b)| a != b);
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            failed.push(format!("{}: line {:?}; {}", path.display(), place.map(|p| p + 1), errors.trim()));
        }
    }
    assert!(failed.is_empty(), "{} of {} cases:\n{}", failed.len(), cases.len(), failed.join("\n"));
}
