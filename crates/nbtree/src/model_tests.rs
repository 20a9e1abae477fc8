//! Scans of random trees against checking every row by hand.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::cmp::Ordering;
use std::sync::Arc;

use stegodon_format::ids::{BlockNumber, OffsetNumber, Oid, Tid};
use stegodon_types::Datum;

use crate::testing::*;
use crate::{Argument, BtreeScan, Condition, Direction, IndexDesc, RowMember, ScanKey, ScanOptions, Strategy};

/// Whether a row satisfies a key, by the definition of SQL's operators.
fn satisfies(values: &[Option<Datum>], key: &ScanKey) -> bool {
    let compare = |column: usize, argument: &Option<Datum>| -> Option<Ordering> {
        Some(compare_values(values[column].as_ref()?.as_ref(), argument.as_ref()?.as_ref()))
    };
    match key {
        ScanKey::Column { column, condition } => match condition {
            Condition::IsNull => values[*column].is_none(),
            Condition::IsNotNull => values[*column].is_some(),
            Condition::Compare(strategy, argument) => {
                compare(*column, &argument.value).is_some_and(|order| strategy.accepts(order))
            }
            Condition::Any { strategy, elements, .. } => {
                elements.iter().any(|element| compare(*column, element).is_some_and(|order| strategy.accepts(order)))
            }
        },
        ScanKey::Row { strategy, members } => {
            for member in members {
                match compare(member.column, &member.argument.value) {
                    None => return false,
                    Some(Ordering::Equal) => {}
                    Some(order) => return strategy.accepts(order),
                }
            }
            strategy.accepts(Ordering::Equal)
        }
    }
}

fn random_value(random: &mut Random, type_oid: Oid, domain: u64) -> Datum {
    let value = random.below(domain) as i64 * 3;
    match type_oid {
        INT4 => Datum::Int32(value as i32),
        INT8 => Datum::Int64(value),
        _ => Datum::bytes(format!("{value:03}")),
    }
}

/// An argument: mostly one of the values there may be, else near them or between.
fn random_argument(random: &mut Random, type_oid: Oid, domain: u64) -> Datum {
    if random.below(3) > 0 {
        return random_value(random, type_oid, domain);
    }
    let value = random.below(domain * 3 + 4) as i64 - 2;
    match type_oid {
        INT4 => Datum::Int32(value as i32),
        INT8 => Datum::Int64(value),
        _ => Datum::bytes(format!("{value:03}")),
    }
}

struct World {
    desc: Arc<IndexDesc>,
    types: Vec<Oid>,
    domain: u64,
    source: MemorySource,
    /// Rows in index order, by index tuple.
    met: Vec<Vec<Row>>,
}

fn random_world(random: &mut Random) -> World {
    let all_pairs = [(INT4, INT4), (INT4, INT8), (INT8, INT4), (INT8, INT8), (TEXT, TEXT)];
    // Without comparisons of int8 with int4 the other way round, some keys cannot be merged.
    let few_pairs = [(INT4, INT4), (INT4, INT8), (INT8, INT8), (TEXT, TEXT)];
    let n_keys = 1 + random.below(3) as usize;
    let types: Vec<Oid> = (0..n_keys + random.below(2) as usize).map(|_| random.pick(&[INT4, INT4, TEXT])).collect();
    let keys = types[..n_keys]
        .iter()
        .map(|&type_oid| {
            let pairs: &[_] = if random.one_in(3) { &few_pairs } else { &all_pairs };
            key(type_oid, random.one_in(3), random.one_in(3), pairs)
        })
        .collect();
    let attributes = types.iter().map(|&type_oid| attribute(type_oid)).collect();
    let desc = Arc::new(IndexDesc::new("i", attributes, keys, false).unwrap());
    let domain = random.pick(&[2, 4, 8, 30, 400]);
    let n_rows = random.pick(&[0, 1, 20, 200, 1500]);
    let nulls = random.pick(&[3, 20, 1000]);
    let mut rows: Vec<Row> = (0..random.below(n_rows + 1))
        .map(|i| {
            let values = types
                .iter()
                .map(|&type_oid| (!random.one_in(nulls)).then(|| random_value(random, type_oid, domain)))
                .collect();
            (values, Tid::new(BlockNumber(i as u32 / 7), OffsetNumber((i % 7 + 1) as u16)))
        })
        .collect();
    let shape = Shape {
        per_leaf: random.pick(&[1, 4, 40]),
        per_branch: random.pick(&[1, 3, 50]),
        posting: random.one_in(2),
        troubled: random.one_in(2),
    };
    let (pages, met) = build(&desc, &mut rows, random, shape);
    let mut source = MemorySource::new(pages);
    source.slow = random.one_in(3);
    World { desc, types, domain, source, met }
}

/// Points on each of the first columns, perhaps a range on the next: what arrays are made for.
fn prefix_keys(random: &mut Random, world: &World) -> Vec<ScanKey> {
    let n_keys = world.desc.keys.len();
    let prefix = random.below(n_keys as u64 + 1) as usize;
    let mut keys = Vec::new();
    for column in 0..prefix {
        let type_oid = world.types[column];
        let elements = (0..=random.below(5)).map(|_| Some(random_argument(random, type_oid, world.domain)));
        keys.push(ScanKey::any(column, Strategy::Equal, type_oid, elements.collect()));
    }
    if prefix < n_keys {
        for strategy in [Strategy::GreaterEqual, Strategy::Greater, Strategy::Less, Strategy::LessEqual] {
            if random.one_in(3) {
                let type_oid = world.types[prefix];
                let value = Some(random_argument(random, type_oid, world.domain));
                keys.push(ScanKey::compare(prefix, strategy, type_oid, value));
            }
        }
    }
    keys
}

fn random_keys(random: &mut Random, world: &World) -> Vec<ScanKey> {
    if random.one_in(3) {
        return prefix_keys(random, world);
    }
    let n_keys = world.desc.keys.len() as u64;
    let inequalities = [Strategy::Less, Strategy::LessEqual, Strategy::GreaterEqual, Strategy::Greater];
    let argument_type = |random: &mut Random, column: usize| match world.types[column] {
        INT4 => random.pick(&[INT4, INT4, INT8]),
        other => other,
    };
    (0..random.below(5))
        .map(|_| {
            let column = random.below(n_keys) as usize;
            let type_oid = argument_type(random, column);
            let strategy = if random.one_in(2) { Strategy::Equal } else { random.pick(&inequalities) };
            match random.below(12) {
                0 => ScanKey::is_null(column),
                1 => ScanKey::is_not_null(column),
                2..=5 => {
                    let elements = (0..random.below(7))
                        .map(|_| (!random.one_in(8)).then(|| random_argument(random, type_oid, world.domain)))
                        .collect();
                    ScanKey::any(column, strategy, type_oid, elements)
                }
                6 => {
                    let strategy = random.pick(&inequalities);
                    let in_order = random.one_in(2);
                    let members = (0..=random.below(n_keys))
                        .map(|i| {
                            let column = if in_order { i as usize } else { random.below(n_keys) as usize };
                            let type_oid = argument_type(random, column);
                            let value = (!random.one_in(15)).then(|| random_argument(random, type_oid, world.domain));
                            RowMember { column, argument: Argument { value, type_oid } }
                        })
                        .collect();
                    ScanKey::Row { strategy, members }
                }
                _ => {
                    let value = (!random.one_in(25)).then(|| random_argument(random, type_oid, world.domain));
                    ScanKey::compare(column, strategy, type_oid, value)
                }
            }
        })
        .collect()
}

fn expected(world: &World, keys: &[ScanKey], direction: Direction) -> Vec<Tid> {
    let mut tuples: Vec<Vec<Tid>> = world
        .met
        .iter()
        .map(|rows| {
            rows.iter()
                .filter(|(values, _)| keys.iter().all(|key| satisfies(values, key)))
                .map(|(_, tid)| *tid)
                .collect()
        })
        .collect();
    if direction == Direction::Backward {
        tuples.reverse();
    }
    tuples.concat()
}

fn check(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let mut random = Random(seed);
        let world = random_world(&mut random);
        let options = ScanOptions { keep_tuples: true, ..ScanOptions::default() };
        let mut scan = BtreeScan::new(Arc::clone(&world.desc), world.source.clone(), options);
        for round in 0..12 {
            let keys = random_keys(&mut random, &world);
            for direction in [Direction::Forward, Direction::Backward] {
                scan.set_direction(direction);
                let before = scan.counters();
                let found = collect(&mut scan, &keys).unwrap();
                let wanted = expected(&world, &keys, direction);
                assert_eq!(found, wanted, "seed {seed}, round {round}, {direction:?}, {keys:#?}");
                let leaves = scan.counters().leaf_pages - before.leaf_pages;
                let searches = scan.counters().searches - before.searches;
                let pages = world.source.pages.len() as u64;
                assert!(leaves <= pages + searches, "seed {seed}, round {round}: {leaves} leaves of {pages} pages");
            }
        }
    }
}

#[test]
fn scans_find_what_checking_every_row_finds() {
    check(1..600);
}

/// The same, longer: `cargo test -p stegodon-nbtree -- --ignored`.
#[test]
#[ignore = "slow"]
fn scans_find_what_checking_every_row_finds_slow() {
    check(600..60_000);
}
