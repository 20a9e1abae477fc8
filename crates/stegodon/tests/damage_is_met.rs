//! Whatever is damaged in a directory: what a checksum, a CRC or a rule of structure covers is an error that names its place,
//! anything else brings the rows or the error that PostgreSQL gives on the same damage, and the server lives on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use stegodon_testkit::damage::{Options, Report, Verdict, run};
use stegodon_testkit::lab::Engine;

fn damaged(cases: usize, seed: u64, judge_every: usize) -> Report {
    let report = run(&Options {
        program: Engine::stegodon(env!("CARGO_BIN_EXE_stegodon")),
        cases,
        seed,
        judge_every,
        classes: Vec::new(),
        memory_max_kb: 512 << 10,
        verbose: false,
    });
    println!("{report}");
    report
}

#[test]
fn every_damage_is_met() {
    let report = damaged(60, 1, 1);
    assert_eq!(report.cases_total(), 60);
    report.assert_floors();
    assert!(report.total(Verdict::Detected) >= 40, "too few damaged pages were read");
}

#[test]
#[ignore = "half an hour: scripts/test --slow"]
fn every_damage_of_thousands_is_met() {
    let report = damaged(4000, 100_000, 2);
    assert_eq!(report.cases_total(), 4000);
    report.assert_floors();
    assert!(report.total(Verdict::Detected) >= 3000, "too few damaged pages were read");
}
