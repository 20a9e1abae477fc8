//! Directories of PostgreSQL 15, 16 and 17 are served as that version's own server serves them: the fixtures are loaded into a
//! fresh cluster of each, as far as that version knows what they use, and every query of `testdata` gives the same rows, names,
//! types, typmods and SQLSTATEs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::score::ask_lines;
use common::{Arena, load_what_can_be};
use stegodon_testkit::lab::Server;
use stegodon_testkit::{scratch, workspace_root};

/// The demo cluster's data and the fresh cluster's.
fn fill(server: &Server) {
    let fixtures = workspace_root().join("fixtures");
    let keep = scratch();
    let bitmap = keep.path().join("bitmap.sql");
    let text = std::fs::read_to_string(fixtures.join("bitmap.sql")).unwrap();
    std::fs::write(&bitmap, format!("\\set rows 10000\n{text}")).unwrap();
    load_what_can_be(server, "demo", &[&bitmap, &fixtures.join("zoo.sql")]);
    load_what_can_be(server, "fresh", &[&fixtures.join("fresh.sql")]);
}

/// Refusals that are known: over the demo cluster's data, over the fresh cluster's.
fn agrees(version: &str, refusals_known: (usize, usize)) {
    let arena = Arena::of_version(version, fill);
    // Plans are 18's, whatever the directory (DESIGN D8).
    let is_no_plan = |sql: &str| !sql.to_ascii_lowercase().starts_with("explain");
    let demo = ask_lines(&mut arena.duel("demo"), "queries.sql", is_no_plan);
    let fresh = ask_lines(&mut arena.duel("fresh"), "fresh.sql", is_no_plan);
    println!(
        "PostgreSQL {version}: {} wrong over the demo cluster's data, {} over the fresh cluster's",
        demo.wrong.len(),
        fresh.wrong.len()
    );
    fresh.judge(refusals_known.1);
    demo.judge(refusals_known.0);
}

#[test]
fn version_15_agrees() {
    agrees("15", (3, 18));
}

#[test]
fn version_16_agrees() {
    agrees("16", (3, 17));
}

#[test]
fn version_17_agrees() {
    agrees("17", (3, 17));
}
