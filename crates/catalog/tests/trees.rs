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

#[test]
fn damaged_trees_are_errors() {
    let catalog = testing::catalog().unwrap();
    // A plain congruential generator: the same trees every run.
    let mut state = 42_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let rule = |name: &str| {
        let oid = catalog.relation_by_name(stegodon_types::Oid(11), name).unwrap().oid;
        catalog.rules(oid)[0].action.to_string()
    };
    let signs = b" (){}<>:0123456789abc\\\"[]-";
    let (mut read, mut refused) = (0, 0);
    for name in ["pg_tables", "pg_locks", "pg_stats", "pg_prepared_statements"] {
        let tree = rule(name);
        let tokens: Vec<&str> = tree.split(' ').collect();
        for _ in 0..100 {
            let damaged = match random(4) {
                0 => tree[..random(tree.len())].to_owned(),
                1 => {
                    let mut bytes = tree.clone().into_bytes();
                    let at = random(bytes.len());
                    bytes[at] = signs[random(signs.len())];
                    String::from_utf8(bytes).unwrap()
                }
                2 => {
                    let mut tokens = tokens.clone();
                    tokens.remove(random(tokens.len()));
                    tokens.join(" ")
                }
                _ => {
                    let mut tokens = tokens.clone();
                    let (a, b) = (random(tokens.len()), random(tokens.len()));
                    tokens.swap(a, b);
                    tokens.join(" ")
                }
            };
            match read_queries(&damaged, &*catalog) {
                Ok(_) => read += 1,
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > read, "read {read}, refused {refused}");
}

#[test]
fn deep_trees_are_read_or_refused() {
    let catalog = testing::catalog().unwrap();
    let nested = |depth: usize| {
        let constant = "{CONST :consttype 16 :consttypmod -1 :constcollid 0 :constlen 1 :constbyval true \
                        :constisnull false :location -1 :constvalue 1 [ 1 0 0 0 0 0 0 0 ]}";
        let open = "{BOOLEXPR :boolop not :args (".repeat(depth);
        format!("{open}{constant}{}", ") :location -1}".repeat(depth))
    };
    assert!(read_exprs(&nested(400), &*catalog).is_ok());
    for depth in [1_100, 20_000] {
        let error = read_exprs(&nested(depth), &*catalog).unwrap_err();
        assert_eq!(error.state, stegodon_types::SqlState::StatementTooComplex);
    }
}
