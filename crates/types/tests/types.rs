//! Every type against what a real server reads, prints, sends, stores, hashes and orders (`testdata/io.txt` and
//! `order.txt`, made by `generate-types.py`).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use common::{TestTypes, hex, unescape, unhex};
use stegodon_types::packed::{self, Part};
use stegodon_types::*;

fn text_of(cx: &TypeContext<'_>, ty: &TypeDesc, value: ValueRef<'_>) -> String {
    let mut out = Vec::new();
    text_out(cx, ty, value, &mut out).unwrap();
    String::from_utf8_lossy(&out).into_owned()
}

/// Everything that is wrong with one line.
fn check_line(cx: &TypeContext<'_>, types: &TestTypes, line: &str) -> Vec<String> {
    let parts: Vec<&str> = line.split('\t').collect();
    let (name, typmod, input) = (parts[0], parts[1].parse().unwrap(), unescape(parts[2]));
    let ty = types.named(name);
    let read = text_in(cx, &ty, input.as_bytes(), typmod);
    if let Some(expected) = parts[3].strip_prefix('!') {
        let detail = parts.get(4).map_or(String::new(), |d| format!("\t{}", unescape(d)));
        let expected = format!("{}{detail}", unescape(expected));
        let got = match read {
            Ok(v) => format!("{:?}", text_of(cx, &ty, v.as_ref())),
            Err(e) => {
                let detail = e.detail.map_or(String::new(), |d| format!("\t{d}"));
                format!("{} {}{detail}", e.state.code(), e.message)
            }
        };
        return if got == expected { vec![] } else { vec![format!("error: got {got}\n  want {expected}")] };
    }
    let value = match read {
        Ok(v) => v,
        Err(e) => return vec![format!("refused: {e:?}")],
    };
    let mut wrong = Vec::new();
    let mut check = |what: &str, got: String, expected: String| {
        if got != expected {
            wrong.push(format!("{what}: got {got}\n  want {expected}"));
        }
    };
    let expected = unescape(parts[3].strip_prefix('=').unwrap());
    check("text", text_of(cx, &ty, value.as_ref()), expected.clone());
    if !parts[4].is_empty() || name == "text" {
        let mut sent = Vec::new();
        binary_out(cx, &ty, value.as_ref(), &mut sent).unwrap();
        check("binary", hex(&sent), parts[4].to_owned());
        match binary_in(cx, &ty, &unhex(parts[4]), typmod) {
            Ok(received) => check("received", text_of(cx, &ty, received.as_ref()), expected.clone()),
            // The server sends empty vectors, but does not receive them.
            Err(e) if name.ends_with("vector") && expected.is_empty() => {
                check("received", e.message, format!("invalid {name} data"));
            }
            Err(e) => check("received", e.to_string(), expected.clone()),
        }
    }
    // An enum hashes by its OID.
    if !parts[5].is_empty() {
        for (seed, expected) in [(0, parts[5]), (42, parts[6])] {
            let got = hash_extended(cx, &ty, &Collation::C, value.as_ref(), seed).unwrap();
            check("hash", got.map_or("none".to_owned(), |h| (h as i64).to_string()), expected.to_owned());
        }
    }
    if let Some(stored) = parts.get(7).filter(|s| !s.is_empty()) {
        let stored = unhex(stored);
        let item = packed::from_stored(&stored, Part::of(&ty).unwrap()).unwrap();
        check("stored, printed", text_of(cx, &ty, item.value()), expected);
        check("stored", format!("{:?}", value.as_ref()), format!("{:?}", item.value()));
    }
    wrong
}

#[test]
fn values_are_as_the_server_has_them() {
    let (types, settings) = (TestTypes::new(), FormatSettings::default());
    let cx = TypeContext::new(&types, &settings);
    let mut wrong = Vec::new();
    for line in include_str!("../testdata/io.txt").lines() {
        for fault in check_line(&cx, &types, line) {
            wrong.push(format!("{}\n  {fault}", line.split('\t').take(3).collect::<Vec<_>>().join(" | ")));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn values_are_ordered_as_the_server_orders_them() {
    let (types, settings) = (TestTypes::new(), FormatSettings::default());
    let cx = TypeContext::new(&types, &settings);
    let rows: Vec<(String, i32, Datum)> = include_str!("../testdata/order.txt")
        .lines()
        .map(|line| {
            let parts: Vec<&str> = line.split('\t').collect();
            let ty = types.named(parts[0]);
            let value = text_in(&cx, &ty, unescape(parts[2]).as_bytes(), -1).unwrap();
            (parts[0].to_owned(), parts[1].parse().unwrap(), value)
        })
        .collect();
    for (name, a_rank, a) in &rows {
        let ty = types.named(name);
        let key = |v: &Datum| {
            let mut key = Vec::new();
            encode_key(&cx, &ty, &Collation::C, v.as_ref(), &mut key).unwrap();
            key
        };
        for (_, b_rank, b) in rows.iter().filter(|(other, ..)| other == name) {
            let expected = a_rank.cmp(b_rank);
            let context = format!("{name}: {} and {}", text_of(&cx, &ty, a.as_ref()), text_of(&cx, &ty, b.as_ref()));
            let order = compare(&cx, &ty, &Collation::C, a.as_ref(), b.as_ref()).unwrap();
            assert_eq!(order, expected, "compare {context}");
            assert_eq!(key(a).cmp(&key(b)), expected, "key {context}");
            let same = equal(&cx, &ty, &Collation::C, a.as_ref(), b.as_ref()).unwrap();
            assert_eq!(same, expected.is_eq(), "equal {context}");
            // No key is a prefix of another.
            assert!(key(a) == key(b) || !key(a).starts_with(&key(b)), "prefix {context}");
        }
    }
}

/// A column that was compressed in its table stays so in a row made of it.
#[test]
fn a_compressed_column_of_a_row_is_read() {
    let (types, settings) = (TestTypes::new(), FormatSettings::default());
    let cx = TypeContext::new(&types, &settings);
    // `row(1, repeat('ab', 1500))::pair` as `pageinspect` shows it.
    let stored = unhex(
        "8dffffffff14400000ffffffff000002000200180001000000b6000000b80b0000fc61620f02ff0f02ff0f02ff0f02ff0f02ff0f02ff1f\
         0f02ff0f02ff0f02ff0f02ff0f02fa",
    );
    let ty = types.named("pair");
    let row = packed::from_stored(&stored, Part::of(&ty).unwrap()).unwrap();
    assert_eq!(text_of(&cx, &ty, row.value()), format!("(1,{})", "ab".repeat(1500)));
    let plain = text_in(&cx, &ty, format!("(1,{})", "ab".repeat(1500)).as_bytes(), -1).unwrap();
    assert!(equal(&cx, &ty, &Collation::C, row.value(), plain.as_ref()).unwrap());
}
