//! The same query gives the same rows, column names, types, typmods and SQLSTATEs as PostgreSQL 18.
//!
//! `testdata/queries.sql` holds one query a line, written by hand; more are composed here, by type, operator and scan, from
//! the catalogs themselves. A refusal (0A000) is no wrong answer, but each is counted, and there may not be more than are
//! known.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::collections::BTreeMap;

use common::score::{Score, ask_file};
use common::{Arena, load};
use stegodon_testkit::{Duel, workspace_root};

/// How a scan is forced, as the sources do it.
const SCANS: [(&str, &[&str]); 4] = [
    ("free", &[]),
    ("seq", &["enable_indexscan", "enable_indexonlyscan", "enable_bitmapscan"]),
    ("index", &["enable_seqscan", "enable_bitmapscan"]),
    ("bitmap", &["enable_seqscan", "enable_indexscan", "enable_indexonlyscan"]),
];

fn set(duel: &mut Duel, off: &[&str], value: &str) {
    for name in off {
        duel.run(&format!("SET {name} = {value}"));
    }
}

#[test]
fn queries_over_the_demo_cluster() {
    let arena = Arena::demo();
    ask_file(&mut arena.duel("demo"), "queries.sql").judge(3);
}

#[test]
fn queries_over_a_fresh_cluster() {
    let arena = Arena::fresh(|server| load(server, "fresh", &workspace_root().join("fixtures/fresh.sql")));
    ask_file(&mut arena.duel("fresh"), "fresh.sql").judge(19);
}

/// Every column of the zoo by every comparison under every scan: the coverage table is printed.
#[test]
fn columns_by_operators_by_scans() {
    let arena = Arena::demo();
    let mut duel = arena.duel("demo");
    let columns = duel
        .judge
        .query(
            "SELECT c.oid::regclass::text, quote_ident(a.attname), a.atttypid::regtype::text, \
                    EXISTS (SELECT 1 FROM pg_operator o WHERE o.oprname = '<' AND o.oprleft = a.atttypid AND o.oprright = a.atttypid) \
                      OR (SELECT typtype IN ('e', 'r', 'm', 'c') OR typelem <> 0 FROM pg_type WHERE oid = a.atttypid) \
             FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid \
             WHERE c.relnamespace = 'zoo'::regnamespace AND c.relname IN ('numbers', 'texts', 'times', 'nets', 'containers') \
               AND c.relkind = 'r' AND a.attnum > 1 AND NOT a.attisdropped ORDER BY 1, a.attnum",
        )
        .unwrap()
        .rows;
    assert!(columns.len() > 50, "the zoo has shrunk");
    let mut coverage: BTreeMap<String, usize> = BTreeMap::new();
    let mut score = Score::default();
    for row in &columns {
        let [Some(table), Some(column), Some(ty), Some(ordered)] = row.as_slice() else { panic!("{row:?}") };
        let mut queries = vec![
            format!("SELECT count(*), count({column}) FROM {table}"),
            format!("SELECT id, {column} FROM {table} WHERE {column} IS NULL"),
            format!("SELECT id, {column}::text FROM {table} WHERE id < 40 AND {column} IS NOT NULL"),
        ];
        if ordered == "t" {
            let some =
                format!("(SELECT {column} FROM {table} WHERE {column} IS NOT NULL ORDER BY id OFFSET 5 LIMIT 1)");
            for operator in ["=", "<>", "<", "<=", ">", ">="] {
                queries.push(format!("SELECT id FROM {table} WHERE {column} {operator} {some}"));
            }
            queries.push(format!("SELECT id, {column} FROM {table} ORDER BY {column}, id LIMIT 50"));
            queries.push(format!("SELECT id FROM {table} ORDER BY {column} DESC NULLS LAST, id"));
            queries.push(format!("SELECT {column}, count(*) FROM {table} GROUP BY {column}"));
            queries.push(format!("SELECT DISTINCT {column} FROM {table}"));
            queries.push(format!(
                "SELECT count(*) FROM {table} a JOIN {table} b ON a.{column} = b.{column} WHERE a.id < 30"
            ));
        }
        for (name, off) in SCANS {
            set(&mut duel, off, "off");
            for sql in &queries {
                score.ask(&mut duel, sql, false);
                *coverage.entry(format!("{ty:<28} {name}")).or_default() += 1;
            }
            set(&mut duel, off, "on");
        }
    }
    println!("type and scan, number of queries:");
    for (what, queries) in &coverage {
        println!("  {what:<36} {queries}");
    }
    score.judge(0);
}
