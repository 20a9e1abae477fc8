//! Every stored tree of the judge's catalogs is read.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr)]

use std::collections::BTreeMap;

use stegodon_catalog::{Catalog, testing};
use stegodon_nodes::reader::{read_exprs, read_partition_bound, read_queries, read_view_query};

/// Reads all of them; counts what was read and what was refused, by message.
fn read_all(catalog: &Catalog) -> (usize, BTreeMap<String, Vec<String>>) {
    let (mut read, mut refused) = (0, BTreeMap::<String, Vec<String>>::new());
    let mut note = |what: String, result: Result<(), stegodon_types::SqlError>| match result {
        Ok(()) => read += 1,
        Err(e) => refused.entry(e.to_string()).or_default().push(what),
    };
    for relation in catalog.relations() {
        for rule in catalog.rules(relation.oid) {
            let what = format!("rule {} on {}", rule.name, relation.name);
            let query = if rule.event == b'1' {
                read_view_query(&rule.action, catalog).map(|_| ())
            } else {
                read_queries(&rule.action, catalog).map(|_| ())
            };
            note(what, query);
        }
        for a in relation.attributes.iter() {
            if let Some(tree) = &a.default {
                note(format!("default of {}.{}", relation.name, a.name), read_exprs(tree, catalog).map(|_| ()));
            }
        }
        for c in catalog.constraints(relation.oid) {
            if let Some(tree) = &c.expression {
                note(format!("constraint {}", c.name), read_exprs(tree, catalog).map(|_| ()));
            }
        }
        if let Some(tree) = &relation.partition_bound {
            note(format!("bound of {}", relation.name), read_partition_bound(tree, catalog).map(|_| ()));
        }
        if let Some(index) = &relation.index {
            for tree in index.expressions.iter().chain(&index.predicate) {
                note(format!("index {}", relation.name), read_exprs(tree, catalog).map(|_| ()));
            }
        }
        if let Some(tree) = relation.partitioned.as_ref().and_then(|p| p.expressions.as_ref()) {
            note(format!("key of {}", relation.name), read_exprs(tree, catalog).map(|_| ()));
        }
    }
    for t in catalog.types() {
        for c in catalog.domain_constraints(t.oid) {
            if let Some(tree) = &c.expression {
                note(format!("constraint {} of domain {}", c.name, t.name), read_exprs(tree, catalog).map(|_| ()));
            }
        }
    }
    for proc in catalog.procs() {
        if let Some(tree) = &proc.arg_defaults {
            note(format!("defaults of {}", proc.name), read_exprs(tree, catalog).map(|_| ()));
        }
        if let Some(tree) = &proc.sql_body {
            note(format!("body of {}", proc.name), read_queries(tree, catalog).map(|_| ()));
        }
    }
    (read, refused)
}

#[test]
fn every_tree_of_a_fresh_cluster_is_read() {
    let (read, refused) = read_all(&testing::catalog().unwrap());
    // `ON UPDATE TO pg_settings DO INSTEAD NOTHING`: no SELECT, and never asked for.
    let nothing = (
        "0A000: a stored query of command type 7 is not supported by Stegodon yet",
        "rule pg_settings_n on pg_settings",
    );
    let refused: Vec<_> =
        refused.iter().flat_map(|(m, whats)| whats.iter().map(|w| (m.as_str(), w.as_str()))).collect();
    assert_eq!(refused, [nothing]);
    assert!(read > 200, "{read}");
}

#[test]
fn what_is_refused_is_named() {
    let Some(dir) = std::env::var_os("STEGODON_CATDUMP_MORE") else { return };
    let (read, refused) = read_all(&Catalog::from_csv_dir(dir).unwrap());
    eprintln!("read {read}; refused: {refused:#?}");
}
