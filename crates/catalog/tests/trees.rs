//! Every stored tree of the judge's catalogs is read.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use common::read_all;
use stegodon_catalog::testing;
use stegodon_nodes::reader::{read_exprs, read_queries};

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
