//! Every table of the demo, read under each forced scan and by workers, has PostgreSQL's digest.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::Arena;

const FORCED: [(&str, &str); 4] = [
    ("seq", "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off"),
    ("index", "SET enable_seqscan = off; SET enable_bitmapscan = off"),
    ("bitmap", "SET enable_seqscan = off; SET enable_indexscan = off; SET enable_indexonlyscan = off"),
    (
        "parallel",
        "SET max_parallel_workers_per_gather = 4; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; \
         SET min_parallel_table_scan_size = 0; SET min_parallel_index_scan_size = 0; SET work_mem = '64kB'",
    ),
];

#[test]
fn every_table_under_every_scan() {
    let arena = Arena::demo();
    let mut duel = arena.duel("demo");
    // Columns whose type Stegodon does not read, and a virtual column, are left out.
    let tables = duel
        .judge
        .query(
            "SELECT c.oid::regclass::text, \
                    (SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid \
                     WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attgenerated <> 'v' \
                       AND t.typname NOT IN ('point', 'path', 'tsvector', 'box', 'xml')) \
             FROM pg_class c WHERE c.relkind IN ('r', 'p') AND c.relname NOT IN ('prepared_locked', 'secret', 'no_columns', 'generated') \
               AND c.relnamespace IN ('zoo'::regnamespace, 'public'::regnamespace) \
               AND (c.relname !~ '_[0-9]+$' OR c.relname ~ '_(1|50)$') ORDER BY 1",
        )
        .unwrap()
        .rows;
    assert!(tables.len() > 30, "the demo has shrunk");
    let mut compared = 0;
    for row in tables {
        let [Some(table), Some(columns)] = row.as_slice() else { panic!("{row:?}") };
        let first = columns.split(", ").next().unwrap();
        for (name, settings) in FORCED {
            duel.run(settings);
            for sql in [
                format!("SELECT {columns} FROM {table}"),
                format!("SELECT count(*) FROM {table}"),
                format!("SELECT {columns} FROM {table} WHERE {first} IS NOT NULL"),
            ] {
                if let Err(d) = duel.compare(&sql, false) {
                    panic!("{name}: {}\n  PostgreSQL: {}\n  Stegodon: {}", d.sql, d.judge, d.stegodon);
                }
                compared += 1;
            }
            duel.run("RESET ALL");
        }
    }
    println!("{compared} digests compared");
}
