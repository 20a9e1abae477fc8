//! Index files that a PostgreSQL 18.4 made, and what it answered from them (`testdata/`, recorded by `postgres.rs`).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use std::path::Path;

use common::{FileSource, Spec};

fn check(name: &str) {
    let directory = Path::new("testdata");
    let source = FileSource::open(&directory.join(format!("{name}.index")));
    let cases = stegodon_testkit::cases(&directory.join(format!("{name}.txt")));
    let spec = Spec::parse(cases[0].2.trim());
    let mut scan = common::scan(&spec, name, &source, false);
    assert!(cases.len() > 20);
    for (line, input, expected) in &cases[1..] {
        let (direction, text) = common::direction(input);
        let (keys, _) = common::keys(&spec, text);
        let found = common::tids(&mut scan, direction, &keys);
        assert_eq!(&common::summary(&found), expected, "{name}.txt:{line}: {input}");
    }
}

#[test]
fn several_columns_descending_with_nulls() {
    check("small");
}

#[test]
fn posting_lists() {
    check("small_dups");
}

#[test]
fn deleted_pages() {
    check("small_deleted");
}
