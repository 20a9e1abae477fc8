//! `json`, `jsonb` and network addresses against a real server's (`testdata/json.txt` and `json-order.txt`, made by
//! `generate-json.py`).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use common::{TestTypes, hex, unhex};
use stegodon_types::json::{Container, print};
use stegodon_types::packed::{self, Part};
use stegodon_types::*;

fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        out.push(match (c, c == '\\') {
            (_, true) => match chars.next().unwrap() {
                't' => '\t',
                'n' => '\n',
                'r' => '\r',
                other => other,
            },
            (c, _) => c,
        });
    }
    out
}

fn text_of(cx: &TypeContext<'_>, ty: &TypeDesc, value: ValueRef<'_>) -> String {
    let mut out = Vec::new();
    text_out(cx, ty, value, &mut out).unwrap();
    String::from_utf8_lossy(&out).into_owned()
}

fn answer(cx: &TypeContext<'_>, ty: &TypeDesc, input: &str) -> Vec<String> {
    let value = match text_in(cx, ty, input.as_bytes(), -1) {
        Ok(value) => value,
        Err(e) => return vec![format!("!{} {}", e.state.code(), e.message), e.detail.unwrap_or_default()],
    };
    let mut sent = Vec::new();
    binary_out(cx, ty, value.as_ref(), &mut sent).unwrap();
    assert_eq!(binary_in(cx, ty, &sent, -1).unwrap(), value);
    let hash = |seed| {
        let hash = hash_extended(cx, ty, &Collation::None, value.as_ref(), seed).unwrap();
        hash.map_or(String::new(), |h| (h as i64).to_string())
    };
    let pretty = if ty.oid == oids::JSONB {
        let mut out = Vec::new();
        print::text(&Container::new(value.as_bytes().unwrap()).unwrap(), true, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    } else {
        String::new()
    };
    let payload = hex(value.as_bytes().unwrap());
    let text = text_of(cx, ty, value.as_ref());
    vec![format!("={text}"), hex(&sent), hash(0), hash(42), payload, pretty]
}

#[test]
fn values_are_as_the_server_has_them() {
    let (types, settings) = (TestTypes::new(), FormatSettings::default());
    let cx = TypeContext::new(&types, &settings);
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in include_str!("../testdata/json.txt").split_terminator('\n') {
        let parts: Vec<&str> = line.split('\t').collect();
        let ty = types.named(parts[0]);
        let mut expected: Vec<String> = parts[2..].iter().map(|p| unescape(p)).collect();
        if let Some(stored) = expected.get_mut(4).filter(|s| !s.is_empty()) {
            let bytes = unhex(stored);
            // Compressed by the server: the text says enough.
            if bytes[0] & 3 == 2 {
                continue;
            }
            let item = packed::from_stored(&bytes, Part::of(&ty).unwrap()).unwrap();
            let ValueRef::Bytes(payload) = item.value() else { panic!("{line}") };
            *stored = hex(payload);
        }
        count += 1;
        let mut got = answer(&cx, &ty, &unescape(parts[1]));
        if expected.get(4).is_some_and(String::is_empty) {
            got[4].clear();
        }
        if got != expected {
            wrong.push(format!("{line}\n  got  {got:?}\n  want {expected:?}"));
        }
    }
    assert!(count > 350, "{count}");
    assert!(wrong.is_empty(), "{} of {count} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn values_are_ordered_as_the_server_orders_them() {
    let (types, settings) = (TestTypes::new(), FormatSettings::default());
    let cx = TypeContext::new(&types, &settings);
    let mut rows = Vec::new();
    for line in include_str!("../testdata/json-order.txt").lines() {
        let parts: Vec<&str> = line.split('\t').collect();
        let value = text_in(&cx, &types.named(parts[0]), unescape(parts[2]).as_bytes(), -1).unwrap();
        rows.push((parts[0], parts[1].parse::<i32>().unwrap(), value, parts[2]));
    }
    for (name, rank, a, a_text) in &rows {
        let ty = types.named(name);
        let key = |v: &Datum| {
            let mut key = Vec::new();
            encode_key(&cx, &ty, &Collation::None, v.as_ref(), &mut key).unwrap();
            key
        };
        for (_, other, b, b_text) in rows.iter().filter(|r| r.0 == *name) {
            let context = format!("{name}: {a_text} and {b_text}");
            let expected = rank.cmp(other);
            assert_eq!(compare(&cx, &ty, &Collation::None, a.as_ref(), b.as_ref()).unwrap(), expected, "{context}");
            assert_eq!(
                equal(&cx, &ty, &Collation::None, a.as_ref(), b.as_ref()).unwrap(),
                expected.is_eq(),
                "{context}"
            );
            assert_eq!(key(a).cmp(&key(b)), expected, "key, {context}");
            assert!(expected.is_eq() || !key(a).starts_with(&key(b)), "prefix, {context}");
        }
    }
}
