//! Preprocessing and start positions, data-driven: `testdata/constraints.txt`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

#[path = "../tests/common/mod.rs"]
mod common;

use std::fmt::Write as _;
use std::path::Path;

use stegodon_types::Datum;

use crate::constraint::{Bound, Constraints};
use crate::matcher::Matcher;
use crate::position::Direction;

fn value(value: Option<&Datum>) -> String {
    match value {
        None => "null".to_owned(),
        Some(Datum::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        Some(Datum::Int64(v)) => format!("{v}::int8"),
        Some(Datum::Int32(v)) => v.to_string(),
        Some(Datum::Int16(v)) => format!("{v}::int2"),
        Some(other) => format!("{other:?}"),
    }
}

fn explain(keys: &Constraints, names: &[&str]) -> String {
    if keys.empty {
        return "empty\n".to_owned();
    }
    let mut out = String::new();
    for (i, (column, name)) in keys.columns.iter().zip(names).enumerate() {
        let filters = if column.has_filters() { ", filtered" } else { "" };
        let role = if i > keys.prefix { " (checked only)" } else { "" };
        if column.has_points {
            let points: Vec<String> = column.points.values.iter().map(|point| value(point.as_ref())).collect();
            writeln!(out, "{name}: {}{filters}{role}", points.join(" ")).unwrap();
        } else if column.low.is_some() || column.high.is_some() {
            let end = |bound: &Option<Bound>| bound.as_ref().map_or(String::new(), |b| value(b.value.as_ref()));
            let inclusive = |bound: &Option<Bound>| bound.as_ref().is_some_and(|b| b.inclusive);
            let open = if inclusive(&column.low) { '[' } else { '(' };
            let close = if inclusive(&column.high) { ']' } else { ')' };
            writeln!(out, "{name}: {open}{}, {}{close}{filters}{role}", end(&column.low), end(&column.high)).unwrap();
        } else {
            writeln!(out, "{name}: any{filters}").unwrap();
        }
    }
    for row in keys.rows() {
        let names: Vec<&str> = row.members.iter().map(|member| names[member.0]).collect();
        let values: Vec<String> = row.members.iter().map(|member| value(member.1.as_ref())).collect();
        let strategy = row.strategy.unwrap().symbol();
        writeln!(out, "({}) {strategy} ({})", names.join(", "), values.join(", ")).unwrap();
    }
    out
}

#[test]
fn keys_become_constraints_in_index_order() {
    let path = Path::new("testdata/constraints.txt");
    let mut text = String::new();
    let mut wrong = 0;
    for (line, input, expected) in stegodon_testkit::cases(path) {
        let (index, key_text) = input.split_once('\n').unwrap_or((&input, ""));
        let spec = common::Spec::parse(index);
        let names: Vec<&str> = spec.0.iter().filter(|c| c.is_key).map(|c| c.name.as_str()).collect();
        let desc = spec.desc("i");
        let (keys, _) = common::keys(&spec, key_text);
        let mut found = String::new();
        for direction in [Direction::Forward, Direction::Backward] {
            let mut matcher = Matcher::new(std::sync::Arc::clone(&desc), direction);
            matcher.set(&keys).unwrap();
            if direction == Direction::Forward {
                found = explain(matcher.keys(), &names);
            }
            if !matcher.keys().empty {
                let position = matcher.position().explain(matcher.keys());
                let values: Vec<String> = position.0.iter().map(|v| value(v.as_ref())).collect();
                let tail = if position.1 { "+inf" } else { "-inf" };
                let values = values.iter().map(String::as_str).chain([tail]).collect::<Vec<_>>().join(", ");
                writeln!(found, "{} ({values})", if direction == Direction::Forward { "from" } else { "back from" })
                    .unwrap();
            }
        }
        write!(text, "{input}\n----\n{found}\n").unwrap();
        if found != expected {
            wrong += 1;
            eprintln!("constraints.txt:{line}: {input}\nexpected\n{expected}found\n{found}");
        }
    }
    if std::env::var_os("REWRITE").is_some() {
        std::fs::write(path, text).unwrap();
    } else {
        assert_eq!(wrong, 0);
    }
}
