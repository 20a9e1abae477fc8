//! What does not fit in memory is answered all the same: a hash join begins anew as a merge join, groups whose sums must not
//! be merged are sorted, sorts and windows spill or say that they cannot.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::Arena;

/// More than any operator's least memory.
const SERIES: &str = "(select g, repeat('x', 200) || g as t from generate_series(1, 300000) g offset 0)";

#[test]
fn answers_do_not_depend_on_work_mem() {
    let arena = Arena::demo();
    let mut duel = arena.duel("demo");
    for setting in ["work_mem = '64kB'", "enable_mergejoin = off", "enable_nestloop = off", "enable_sort = on"] {
        duel.run(&format!("SET {setting}"));
    }
    let mut wrong = Vec::new();
    for kind in ["join", "left join", "right join", "full join"] {
        let sql = format!(
            "select count(*), sum(a.g), sum(length(b.t)), count(b.g) from {SERIES} a {kind} {SERIES} b on a.g = b.g + 5"
        );
        wrong.extend(duel.compare(&sql, false).err());
    }
    for sql in [
        format!("select count(*) from {SERIES} a where exists (select 1 from {SERIES} b where b.g = a.g * 2)"),
        format!("select count(*) from {SERIES} a where not exists (select 1 from {SERIES} b where b.g = a.g * 2)"),
        // Sums of floats within a group, in the order of the rows: to the last bit.
        "select * from (select g % 400000 as k, repeat('y', 60) || g % 400000 as t, sum((g * 7.1)::float8), avg(g::float4 / 3) \
         from generate_series(1, 1000000) g group by 1, 2) s where k % 20000 = 3 order by k"
            .to_owned(),
        format!("select sum(n), max(n) from (select row_number() over (order by t) as n from {SERIES} a) s"),
        format!("select count(*), min(t), max(t) from (select t from {SERIES} a order by t desc offset 10) s"),
    ] {
        wrong.extend(duel.compare(&sql, false).err());
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_fall_back_is_taken() {
    let arena = Arena::demo();
    let mut duel = arena.duel("demo");
    duel.run("SET work_mem = '64kB'");
    duel.run("SET enable_mergejoin = off");
    duel.run("SET enable_nestloop = off");
    let sql = format!(
        "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, BUFFERS OFF) select count(*) from {SERIES} a join {SERIES} b on a.t = b.t"
    );
    let plan = duel.stegodon.query(&sql).unwrap().rows;
    // The sides were read twice: for the hash table that did not fit, and for the sort.
    let twice =
        plan.iter().flatten().flatten().any(|line| line.contains("generate_series") && line.contains("loops=2"));
    assert!(twice, "{plan:?}");
}
