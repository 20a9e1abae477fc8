//! A real PostgreSQL 18 as the judge: it builds the indexes and answers; the files it leaves are read here.
//!
//! Slow, therefore ignored: `cargo test -p stegodon-nbtree --test postgres -- --ignored --nocapture`.
//! `SEED=…` asks other questions. With `RECORD=1` it asks only of the small ones, and writes the
//! fixtures of `recorded.rs`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use std::fmt::Write as _;
use std::path::Path;

use std::sync::Arc;

use common::{FileSource, Spec};
use stegodon_buffer::BufferPool;
use stegodon_format::ids::{DEFAULT_TABLESPACE, Oid, RelFileLocator, RelFileNumber};
use stegodon_io::{DataDirectory, WorkerMethod};
use stegodon_nbtree::{BtreeScan, Direction, PoolSource, ScanOptions};
use stegodon_testkit::lab::{Client, Engine};

/// Deterministic choices.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16) % limit
    }
}

struct Table {
    name: &'static str,
    index: &'static str,
    /// Column definitions and what fills them.
    columns: &'static str,
    fill: &'static str,
    /// The greatest integer that keys mention.
    domain: u64,
    /// Written down for `recorded.rs`.
    fixture: bool,
}

const TABLES: &[Table] = &[
    Table {
        name: "ints",
        index: "a int4",
        columns: "a int4",
        fill: "select (i * 7919) % 30011 from generate_series(1, 30000) i",
        domain: 31000,
        fixture: false,
    },
    Table {
        name: "dups",
        index: "a int4",
        columns: "a int4",
        fill: "select nullif(i * 31 % 57, 11) from generate_series(1, 20000) i",
        domain: 60,
        fixture: false,
    },
    Table {
        name: "dups_desc",
        index: "a int8 desc nulls last, b text",
        columns: "a int8, b text",
        fill: "select nullif(i * 31 % 17, 11), nullif('k' || i * 13 % 5, 'k3') from generate_series(1, 20000) i",
        domain: 20,
        fixture: false,
    },
    Table {
        name: "multi",
        index: "a int4 desc, b text nulls first, c int2 desc nulls last include d numeric, e text",
        columns: "a int4, b text, c int2, d numeric, e text",
        fill: "select nullif(i * 31 % 57, 11), nullif('k' || lpad((i * 13 % 40)::text, 3, '0'), 'k007'), \
               nullif(i % 23, 5), i * 1.10, repeat('e', i % 30) from generate_series(1, 15000) i",
        domain: 60,
        fixture: false,
    },
    Table {
        name: "deleted",
        index: "a int4, b int4",
        columns: "a int4, b int4",
        fill: "select i / 10, i % 10 from generate_series(1, 60000) i; \
               delete from deleted where a between 700 and 4500 or a % 97 = 3; vacuum deleted; \
               delete from deleted where a between 100 and 130; vacuum deleted",
        domain: 6100,
        fixture: false,
    },
    Table {
        name: "long",
        index: "a text, b int4",
        columns: "a text, b int4",
        fill: "select case i % 3 when 0 then repeat('x', 3000 + i % 7) when 1 then 'k' || i % 41 \
               else repeat(chr(97 + i % 26), 400) || (i % 50) end, i from generate_series(1, 4000) i",
        domain: 60,
        fixture: false,
    },
    Table {
        name: "names",
        index: "a name, b bool desc, c float8",
        columns: "a name, b bool, c float8",
        fill: "select 'k' || i % 300, nullif(i % 3, 2)::bool, \
               case i % 11 when 0 then 'NaN' when 1 then '-Infinity' when 2 then null else i / 3.0 end \
               from generate_series(1, 8000) i",
        domain: 300,
        fixture: false,
    },
    Table {
        name: "small",
        index: "a int4 desc, b text include c int8",
        columns: "a int4, b text, c int8",
        fill: "select nullif(i * 31 % 19, 11), nullif('k' || lpad((i * 13 % 7)::text, 3, '0'), 'k003'), i \
               from generate_series(1, 330) i; delete from small where a = 5; vacuum small",
        domain: 20,
        fixture: true,
    },
    Table {
        name: "small_dups",
        index: "a int4",
        columns: "a int4",
        fill: "select nullif(i * 31 % 19, 11) from generate_series(1, 1500) i",
        domain: 20,
        fixture: true,
    },
    Table {
        name: "small_deleted",
        index: "a int4",
        columns: "a int4",
        fill: "select i from generate_series(1, 1200) i; delete from small_deleted where a between 300 and 900; \
               vacuum small_deleted",
        domain: 1300,
        fixture: true,
    },
];

fn random_value(random: &mut Random, type_name: &str, domain: u64) -> String {
    let n = random.below(domain);
    match type_name {
        "text" | "name" if domain > 100 => format!("k{n}"),
        "text" => format!("k{n:03}"),
        "bool" => ["true", "false"][(n % 2) as usize].to_owned(),
        "float8" if n.is_multiple_of(9) => "NaN".to_owned(),
        _ => n.to_string(),
    }
}

fn random_keys(random: &mut Random, spec: &Spec, domain: u64) -> String {
    let n_keys = spec.0.iter().filter(|column| column.is_key).count() as u64;
    let inequalities = ["<", "<=", ">=", ">"];
    let mut text = String::new();
    for _ in 0..random.below(4) {
        let column = &spec.0[random.below(n_keys) as usize];
        let mut argument = column.type_name.as_str();
        if argument.starts_with("int") && random.below(3) == 0 {
            argument = ["int2", "int4", "int8"][random.below(3) as usize];
        }
        let symbol = if random.below(2) == 0 { "=" } else { inequalities[random.below(4) as usize] };
        let value = random_value(random, argument, domain);
        let part = match random.below(10) {
            0 => format!("{} is null", column.name),
            1 => format!("{} is not null", column.name),
            2..=4 => {
                let n = random.below(9);
                let mut values: Vec<String> = (0..n).map(|_| random_value(random, argument, domain)).collect();
                if random.below(4) == 0 {
                    values.push("null".to_owned());
                }
                format!("{} {symbol} any {{{}}}::{argument}", column.name, values.join(","))
            }
            5 if n_keys > 1 => {
                let members = &spec.0[..2 + random.below(n_keys - 1) as usize];
                let names: Vec<&str> = members.iter().map(|column| column.name.as_str()).collect();
                let values: Vec<String> =
                    members.iter().map(|column| random_value(random, &column.type_name, domain)).collect();
                let symbol = inequalities[random.below(4) as usize];
                format!("({}) {symbol} ({})", names.join(","), values.join(","))
            }
            _ => format!("{} {symbol} {value}::{argument}", column.name),
        };
        text.push_str(&part);
        text.push_str("; ");
    }
    text.trim_end_matches("; ").to_owned()
}

/// Keys that are worth asking of every index.
fn fixed_keys(spec: &Spec) -> Vec<String> {
    let a = &spec.0[0].name;
    vec![String::new(), format!("{a} is null"), format!("{a} is not null"), format!("{a} = null")]
}

struct Case {
    direction: &'static str,
    keys: String,
    tids: Vec<String>,
    rows: Vec<Vec<String>>,
    searches: u64,
}

fn column(client: &mut Client, sql: &str) -> Vec<String> {
    let answer = client.query(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    answer.rows.into_iter().map(|mut row| row.swap_remove(0).unwrap_or_default()).collect()
}

/// Asks the server, whose plan must be an index scan without sorting.
fn ask(client: &mut Client, table: &Table, spec: &Spec, direction: &'static str, keys: String) -> Case {
    let (_, condition) = common::keys(spec, &keys);
    let (way, _) = common::direction(direction);
    let order = spec.order_by(way);
    let sql = format!("select ctid from {} where {condition} order by {order}", table.name);
    let plan = column(client, &format!("explain (analyze, costs off, timing off, summary off, buffers off) {sql}"));
    let plan = plan.join("\n");
    let is_empty = plan.contains("Result") && plan.contains("One-Time Filter: false");
    assert!((plan.contains("Index Scan") && !plan.contains("Sort")) || is_empty, "{sql}\n{plan}");
    let searches = plan
        .split_once("Index Searches: ")
        .map_or(0, |(_, rest)| rest.split_whitespace().next().unwrap().parse().unwrap());
    // Where the keys fix the order, the planner is free to choose the direction.
    let direction =
        if plan.contains("Backward") || (is_empty && direction == "backward") { "backward" } else { "forward" };
    let (way, _) = common::direction(direction);
    let order = spec.order_by(way);
    let tids = column(client, &sql);
    let names: Vec<&str> = spec.0.iter().map(|column| column.name.as_str()).collect();
    let answer = client.query(&format!(
        "select {} from {} where {condition} order by {order}, ctid",
        names.join(", "),
        table.name
    ));
    let rows = answer.unwrap().rows.into_iter();
    let rows = rows.map(|row| row.into_iter().map(|v| v.unwrap_or_else(|| "-".to_owned())).collect()).collect();
    Case { direction, keys, tids, rows, searches }
}

fn record(table: &Table, index_bytes: &[u8], cases: &[Case]) {
    let directory = Path::new("testdata");
    std::fs::write(directory.join(format!("{}.index", table.name)), index_bytes).unwrap();
    let mut text = format!(
        "# PostgreSQL 18.4: insert into {name} {fill}\n# create index on {name}; then scanned. First the index's columns.\n\n\
         index\n----\n{index}\n",
        name = table.name,
        fill = table.fill,
        index = table.index
    );
    for case in cases {
        let tids = common::summary(&case.tids);
        write!(text, "\n{}\n----\n{tids}", format!("{} {}", case.direction, case.keys).trim()).unwrap();
    }
    std::fs::write(directory.join(format!("{}.txt", table.name)), text).unwrap();
}

#[test]
#[ignore = "slow: starts a PostgreSQL 18"]
fn agrees_with_postgres_18() {
    let engine: Engine = stegodon_testkit::postgres("18");
    let scratch = stegodon_testkit::scratch();
    let directory = scratch.path().join("data");
    engine.init(&directory, &[]).unwrap();
    let mut server = engine.start(&directory, &[("autovacuum", "off"), ("fsync", "off")]).unwrap();
    let mut client = Client::connect(&server, "postgres", "postgres").unwrap();
    let seed = std::env::var("SEED").map_or(18, |seed| seed.parse().unwrap());
    let mut random = Random(seed);
    let mut asked = Vec::new();
    let recording = std::env::var_os("RECORD").is_some();
    for table in TABLES.iter().filter(|table| table.fixture || !recording) {
        let spec = Spec::parse(table.index);
        for sql in [format!("create table {} ({})", table.name, table.columns)].into_iter().chain(
            // The index is built before the rows arrive where rows are deleted, so that its pages were split and deleted.
            [format!("create index on {} ({}) {}", table.name, spec.order_by(Direction::Forward), spec.includes())],
        ) {
            client.query(&sql).unwrap();
        }
        let fill = format!("insert into {} {}", table.name, table.fill);
        for sql in fill.split("; ") {
            client.query(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
        client.query(&format!("vacuum analyze {}", table.name)).unwrap();
        client.query("set enable_seqscan = off; set enable_bitmapscan = off; set enable_indexonlyscan = off").unwrap();
        client.query("set enable_sort = off; set enable_incremental_sort = off").unwrap();
        let n_cases = if table.fixture { 30 } else { 150 };
        let mut cases = Vec::new();
        let fixed = fixed_keys(&spec);
        for i in 0..n_cases {
            let keys = fixed.get(i).cloned().unwrap_or_else(|| random_keys(&mut random, &spec, table.domain));
            for direction in ["forward", "backward"] {
                cases.push(ask(&mut client, table, &spec, direction, keys.clone()));
            }
        }
        let path = column(
            &mut client,
            &format!(
                "select pg_relation_filepath(indexrelid) from pg_index where indrelid = '{}'::regclass",
                table.name
            ),
        );
        asked.push((table, spec, path[0].clone(), cases));
    }
    drop(client);
    server.stop();
    let files = DataDirectory::open(&directory).unwrap();
    let pool = BufferPool::new(24, Arc::new(WorkerMethod::new(2).unwrap())).unwrap();
    for (table, spec, path, cases) in asked {
        let bytes = std::fs::read(directory.join(&path)).unwrap();
        let source = FileSource::new(&bytes);
        let mut scan = common::scan(&spec, table.name, &source, true);
        // The same again through the buffer pool, which is too small for most of the indexes.
        let numbers: Vec<u32> = path.split('/').skip(1).map(|number| number.parse().unwrap()).collect();
        let locator = RelFileLocator {
            tablespace: DEFAULT_TABLESPACE,
            database: Oid(numbers[0]),
            number: RelFileNumber(numbers[1]),
        };
        let options = ScanOptions { keep_pin: true, ..ScanOptions::default() };
        let pool_source = PoolSource::new(&pool, &files.relation(locator));
        let mut pool_scan = BtreeScan::new(spec.desc(table.name), pool_source, options);
        let (mut theirs, mut ours) = (0, 0);
        for case in &cases {
            let (direction, _) = common::direction(case.direction);
            let (keys, sql) = common::keys(&spec, &case.keys);
            let before = scan.counters().searches;
            let found = common::tids(&mut scan, direction, &keys);
            assert!(
                found == case.tids,
                "{}: {} {sql}\n{}\n{}",
                table.name,
                case.direction,
                common::summary(&found),
                common::summary(&case.tids)
            );
            assert!(common::tids(&mut pool_scan, direction, &keys) == found, "{}: {sql}", table.name);
            (theirs, ours) = (theirs + case.searches, ours + scan.counters().searches - before);
            // Ties come in TID order here and there alike, forwards.
            if direction == Direction::Forward {
                let rows = common::rows(&spec, &mut scan, direction, &keys);
                assert_eq!(rows.len(), case.rows.len());
                for (found, wanted) in rows.iter().zip(&case.rows) {
                    assert_eq!(found, wanted, "{}: {sql}", table.name);
                }
            }
        }
        println!(
            "{}: {} pages, {} cases agree; index searches: theirs {theirs}, ours {ours}",
            table.name,
            bytes.len() / 8192,
            cases.len()
        );
        if recording {
            record(table, &bytes, &cases);
        }
    }
}

#[test]
#[ignore = "slow: starts a PostgreSQL 18"]
fn killed_tuples_are_stepped_over() {
    let engine: Engine = stegodon_testkit::postgres("18");
    let scratch = stegodon_testkit::scratch();
    let directory = scratch.path().join("data");
    engine.init(&directory, &[]).unwrap();
    let mut server = engine.start(&directory, &[("autovacuum", "off"), ("fsync", "off")]).unwrap();
    let mut client = Client::connect(&server, "postgres", "postgres").unwrap();
    for sql in [
        "create table killed (a int4)",
        "insert into killed select i % 700 from generate_series(1, 9000) i",
        "create index on killed (a)",
        "delete from killed where a % 3 = 0 and a < 500",
        "set enable_seqscan = off; set enable_bitmapscan = off; set enable_indexonlyscan = off",
        "select count(*) from killed where a < 600",
        "create extension pageinspect",
    ] {
        client.query(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    let dead = column(
        &mut client,
        "select count(*) from bt_multi_page_stats('killed_a_idx', 1, -1) s, bt_page_items('killed_a_idx', s.blkno) i \
         where s.type = 'l' and i.dead",
    );
    assert!(dead[0].parse::<u32>().unwrap() > 100, "{dead:?} tuples were killed");
    let wanted = column(
        &mut client,
        "with recursive leaves as ( \
           select 1 as n, s.* from bt_multi_page_stats('killed_a_idx', 1, -1) s where type = 'l' and btpo_prev = 0 \
           union all select n + 1, s.* from leaves l, bt_page_stats('killed_a_idx', l.btpo_next) s where l.btpo_next <> 0 \
         ) select t.tid from leaves l, bt_page_items('killed_a_idx', l.blkno) i, \
           unnest(coalesce(i.tids, array[i.htid])) with ordinality t(tid, o) \
         where not i.dead and (l.btpo_next = 0 or i.itemoffset > 1) order by l.n, i.itemoffset, t.o",
    );
    let path = column(&mut client, "select pg_relation_filepath('killed_a_idx')");
    drop(client);
    server.stop();
    let source = FileSource::open(&directory.join(&path[0]));
    let spec = Spec::parse("a int4");
    let mut scan = common::scan(&spec, "killed_a_idx", &source, false);
    let found = common::tids(&mut scan, Direction::Forward, &[]);
    assert!(found.len() < 9000);
    assert!(found == wanted, "{}\n{}", common::summary(&found), common::summary(&wanted));
}
