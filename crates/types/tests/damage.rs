//! Nothing panics, whatever the bytes: stored values, binary values and texts are damaged, and only errors may come of it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use common::{TestTypes, unescape, unhex};
use proptest::prelude::*;
use stegodon_types::*;

/// Uses a stored value in every way.
fn use_value(cx: &TypeContext<'_>, ty: &TypeDesc, value: ValueRef<'_>) {
    let mut out = Vec::new();
    let _ = text_out(cx, ty, value, &mut out);
    let _ = binary_out(cx, ty, value, &mut out);
    let _ = compare(cx, ty, &Collation::C, value, value);
    let _ = equal(cx, ty, &Collation::C, value, value);
    let _ = encode_key(cx, ty, &Collation::C, value, &mut out);
    let _ = hash_extended(cx, ty, &Collation::C, value, 7);
}

fn damage(bytes: &mut Vec<u8>, seed: u64) {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 9) as usize
    };
    for _ in 0..=next() % 3 {
        if bytes.is_empty() {
            bytes.push(next() as u8);
        }
        let at = next() % bytes.len();
        match next() % 5 {
            0 => bytes[at] ^= 1 << (next() % 8),
            1 => bytes[at] = [0, 1, 0x7F, 0x80, 0xFF][next() % 5],
            2 => bytes.truncate(at),
            3 => bytes.insert(at, next() as u8),
            _ => drop(bytes.remove(at)),
        }
    }
}

/// The types of the table and those made by users.
fn all_types(types: &TestTypes) -> Vec<TypeDesc> {
    let mut all: Vec<TypeDesc> = table::TYPES.iter().map(TypeRow::desc).collect();
    all.extend(table::TYPES.iter().filter_map(TypeRow::array_desc));
    for name in ["mood[]", "pair", "pair[]", "holed", "wide", "code", "textrange", "floatrange", "textmultirange"] {
        all.push(TypeDesc::clone(&types.named(name)));
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_values_are_errors(seed in any::<u64>()) {
        let (types, settings) = (TestTypes::new(), FormatSettings::default());
        let cx = TypeContext::new(&types, &settings);
        for (n, line) in include_str!("../testdata/io.txt").lines().enumerate() {
            let parts: Vec<&str> = line.split('\t').collect();
            let (ty, typmod) = (types.named(parts[0]), parts[1].parse().unwrap());
            let seed = seed.wrapping_add(n as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let mut text = unescape(parts[2]).into_bytes();
            if let Ok(Datum::Bytes(payload)) = text_in(&cx, &ty, &text, typmod)
                && ty.kind != TypeKind::Enum
            {
                let mut payload = payload.to_vec();
                damage(&mut payload, seed);
                use_value(&cx, &ty, ValueRef::Bytes(&payload));
            }
            damage(&mut text, seed);
            if let Ok(value) = text_in(&cx, &ty, &text, typmod) {
                use_value(&cx, &ty, value.as_ref());
            }
            if let Some(sent) = parts.get(4).filter(|_| parts[3].starts_with('=')) {
                let mut sent = unhex(sent);
                damage(&mut sent, seed);
                if let Ok(value) = binary_in(&cx, &ty, &sent, typmod) {
                    use_value(&cx, &ty, value.as_ref());
                }
            }
        }
    }

    #[test]
    fn any_bytes_are_values_or_errors(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let (types, settings) = (TestTypes::new(), FormatSettings::default());
        let cx = TypeContext::new(&types, &settings);
        for ty in all_types(&types) {
            let of_bytes = matches!(ty.layout, Some(Layout::Bytes | Layout::Fixed(_) | Layout::Name));
            if of_bytes {
                use_value(&cx, &ty, ValueRef::Bytes(&bytes));
            }
            let _ = text_in(&cx, &ty, &bytes, 4);
            let _ = binary_in(&cx, &ty, &bytes, -1);
        }
    }
}

#[test]
fn damaged_texts_are_counted_as_postgresql_counts() {
    use stegodon_types::scalar::text::{char_count, char_prefix_len};
    use stegodon_types::settings::Encoding::Utf8;
    // What length() said of rows whose bytes were changed on disk.
    let invalid = |text: &[u8]| char_count(Utf8, text).unwrap_err().message;
    assert_eq!(char_count(Utf8, "äöü€".as_bytes()).unwrap(), 4);
    assert_eq!(char_count(Utf8, b"fro\0en 200").unwrap(), 3);
    assert_eq!(char_count(Utf8, b"fro\xe4en 300").unwrap(), 8);
    assert_eq!(char_count(Utf8, b"fro\xb4en 400").unwrap(), 10);
    assert_eq!(invalid(b"frozen 10\xe4"), "invalid byte sequence for encoding \"UTF8\": 0xe4");
    assert_eq!(invalid(b"frozen 4\xf40"), "invalid byte sequence for encoding \"UTF8\": 0xf4 0x30");
    assert_eq!(char_prefix_len(Utf8, b"frozen 4\xf40", 8).unwrap(), 8);
    assert_eq!(char_prefix_len(Utf8, b"fro\xe4en 300", 4).unwrap(), 6);
}
