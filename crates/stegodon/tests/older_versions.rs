//! Directories of PostgreSQL 15, 16 and 17 are served as that version's own server serves them: the fixtures are loaded into a
//! fresh cluster of each, as far as that version knows what they use, and every query of `testdata` gives the same rows, names,
//! types, typmods and SQLSTATEs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::score::ask_file;
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
    let demo = ask_file(&mut arena.duel("demo"), "queries.sql");
    let fresh = ask_file(&mut arena.duel("fresh"), "fresh.sql");
    println!("PostgreSQL {version}, the demo cluster's data:");
    demo.judge(refusals_known.0);
    println!("PostgreSQL {version}, the fresh cluster's data:");
    fresh.judge(refusals_known.1);
}

#[test]
fn version_15_agrees() {
    agrees("15", (1000, 1000));
}

#[test]
fn version_16_agrees() {
    agrees("16", (1000, 1000));
}

#[test]
fn version_17_agrees() {
    agrees("17", (1000, 1000));
}
