//! DESIGN D4, "keys are ours": for each type whose Arrow values do not compare as it does, pairs of values of which Arrow says
//! one thing and the type another. Each test asks three times: the key, the type's comparison, and Arrow's own comparison of
//! the values, which must be wrong for one pair at least (so the test fails were Arrow's values the keys). The expectations
//! were put to a PostgreSQL 18.4.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use std::cmp::Ordering::{self, Equal, Greater, Less};

use common::TestTypes;
use stegodon_types::*;

/// How Arrow compares: numbers as such (floats by total order), byte strings as bytes.
fn arrow(a: &Datum, b: &Datum) -> Ordering {
    match (a, b) {
        (Datum::Bytes(a), Datum::Bytes(b)) => a.cmp(b),
        (Datum::Float32(a), Datum::Float32(b)) => a.total_cmp(b),
        (Datum::Float64(a), Datum::Float64(b)) => a.total_cmp(b),
        (Datum::UInt32(a), Datum::UInt32(b)) => a.cmp(b),
        (Datum::Int64(a), Datum::Int64(b)) => a.cmp(b),
        other => panic!("{other:?}"),
    }
}

fn key(cx: &TypeContext<'_>, ty: &TypeDesc, coll: &Collation, v: &Datum) -> Vec<u8> {
    let mut out = Vec::new();
    encode_key(cx, ty, coll, v.as_ref(), &mut out).unwrap();
    out
}

fn check_values(ty: &TypeDesc, pairs: &[(Datum, Datum, Ordering)]) {
    let types = TestTypes::new();
    let settings = FormatSettings::default();
    let cx = TypeContext::new(&types, &settings);
    let coll = Collation::C;
    let mut arrow_is_wrong = false;
    for (a, b, expected) in pairs {
        let (x, y) = (key(&cx, ty, &coll, a), key(&cx, ty, &coll, b));
        assert_eq!(x.cmp(&y), *expected, "keys of {a:?} and {b:?}");
        assert_eq!(compare(&cx, ty, &coll, a.as_ref(), b.as_ref()).unwrap(), *expected, "{a:?} and {b:?}");
        let equality = |v: &Datum| {
            let mut out = Vec::new();
            encode_equality_key(&cx, ty, &coll, v.as_ref(), &mut out).unwrap();
            out
        };
        assert_eq!(equality(a) == equality(b), *expected == Equal, "equality keys of {a:?} and {b:?}");
        arrow_is_wrong |= arrow(a, b) != *expected;
    }
    assert!(arrow_is_wrong, "Arrow compares {} rightly: this test would not notice", ty.name);
    assert!(!is_own_key(ty), "{} claims that its Arrow values are its keys", ty.name);
}

fn check(type_name: &str, pairs: &[(&str, &str, Ordering)]) {
    let types = TestTypes::new();
    let settings = FormatSettings::default();
    let cx = TypeContext::new(&types, &settings);
    let ty = types.named(type_name);
    let read = |text: &str| text_in(&cx, &ty, text.as_bytes(), -1).unwrap();
    let pairs: Vec<_> = pairs.iter().map(|(a, b, order)| (read(a), read(b), *order)).collect();
    check_values(&ty, &pairs);
}

/// Rule: 1.0 = 1.00; −1 < 1; NaN above all.
#[test]
fn numeric() {
    check(
        "numeric",
        &[
            ("1.0", "1.00", Equal),
            ("0", "0.000", Equal),
            ("-1", "1", Less),
            ("-2", "-10", Greater),
            ("9", "10", Less),
            ("NaN", "Infinity", Greater),
            ("NaN", "NaN", Equal),
            ("-Infinity", "-1e100", Less),
        ],
    );
}

/// Rule: −0 = 0; every NaN equals every other and is above infinity.
#[test]
fn float() {
    let types = TestTypes::new();
    let (nan, other_nan) = (f64::from_bits(0x7FF8_0000_0000_0000), f64::from_bits(0xFFF8_0000_0000_0001));
    check_values(
        &types.named("float8"),
        &[
            (Datum::Float64(-0.0), Datum::Float64(0.0), Equal),
            (Datum::Float64(nan), Datum::Float64(other_nan), Equal),
            (Datum::Float64(other_nan), Datum::Float64(f64::INFINITY), Greater),
            (Datum::Float64(-1.0), Datum::Float64(1.0), Less),
        ],
    );
    let (nan, other_nan) = (f32::from_bits(0x7FC0_0000), f32::from_bits(0xFFC0_0001));
    check_values(
        &types.named("float4"),
        &[
            (Datum::Float32(-0.0), Datum::Float32(0.0), Equal),
            (Datum::Float32(nan), Datum::Float32(other_nan), Equal),
            (Datum::Float32(other_nan), Datum::Float32(f32::INFINITY), Greater),
        ],
    );
}

/// Rule: blanks at the end do not count.
#[test]
fn bpchar() {
    check("bpchar", &[("a", "a  ", Equal), ("a", "a b", Less), ("a ", "a\t", Less), ("", "   ", Equal)]);
}

/// Rule: a month is 30 days and a day 24 hours.
#[test]
fn interval() {
    check(
        "interval",
        &[
            ("1 mon", "30 days", Equal),
            ("1 day", "24:00", Equal),
            ("1 mon", "31 days", Less),
            ("-1 day", "1 us", Less),
            ("infinity", "100000 years", Greater),
        ],
    );
}

/// Rule: ordered by the moment, then by the zone; never equal in different zones.
#[test]
fn timetz() {
    check(
        "timetz",
        &[("12:00+00", "13:00+02", Greater), ("12:00+00", "14:00+02", Greater), ("12:00+00", "12:00:00+00:00", Equal)],
    );
}

/// Rule: numbers in it compare as numerics; kinds have an order; the stored bytes say neither.
#[test]
fn jsonb() {
    check(
        "jsonb",
        &[
            ("1", "1.0", Equal),
            ("{\"a\":1}", "{\"a\":1.00}", Equal),
            ("\"b\"", "1", Less),
            ("[1,2]", "[9]", Greater),
            ("{}", "[1,2,3]", Greater),
            ("-1", "1", Less),
        ],
    );
}

/// Rule: by the network's bits, then the mask's length, then the address; IPv4 before IPv6.
#[test]
fn inet() {
    check(
        "inet",
        &[
            ("9.0.0.0/16", "10.0.0.0/8", Less),
            ("10.0.0.0/9", "10.0.0.0/8", Greater),
            ("10.0.0.1/8", "10.0.0.2/8", Less),
            ("255.255.255.255", "::", Less),
            ("10.0.0.1", "10.0.0.1/32", Equal),
        ],
    );
}

/// Rule: element by element, by the elements' own order and equality; then by length.
#[test]
fn arrays() {
    check(
        "int4[]",
        &[("{-1}", "{1}", Less), ("{1,2}", "{9}", Less), ("{256}", "{1}", Greater), ("{1,NULL}", "{1,2}", Greater)],
    );
    check("numeric[]", &[("{1.0}", "{1.00}", Equal), ("{1.0,2}", "{1.00}", Greater)]);
}

/// Rule: by `enumsortorder`, not by OID: `glad` was added before `happy` later on.
#[test]
fn enums() {
    let types = TestTypes::new();
    let mood = types.named("mood");
    let mut values: Vec<(f32, Datum)> = ["sad", "meh", "ok", "glad", "happy"]
        .iter()
        .map(|label| types.enum_value(mood.oid, label).unwrap().unwrap())
        .map(|oid| (types.enum_order(oid).unwrap(), Datum::UInt32(oid.0)))
        .collect();
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let pairs: Vec<_> = values.windows(2).map(|w| (w[0].1.clone(), w[1].1.clone(), Less)).collect();
    check_values(&mood, &pairs);
}

/// Rule: ranges by their bounds, so by the subtype's equality; the empty one first.
#[test]
fn ranges() {
    check("numrange", &[("[1.0,2)", "[1,2.00)", Equal), ("empty", "(,)", Less), ("[1,2)", "(1,2)", Less)]);
}

/// Rule: text under a collation whose order is not known has equality keys and no order keys; the error names it. Under C it is
/// its own key.
#[test]
fn collated_text() {
    let types = TestTypes::new();
    let settings = FormatSettings::default();
    let cx = TypeContext::new(&types, &settings);
    let text = types.named("text");
    let german = Collation::equality_only("de_DE");
    let value = Datum::bytes("a");
    let mut out = Vec::new();
    let error = encode_key(&cx, &text, &german, value.as_ref(), &mut out).unwrap_err();
    assert_eq!((error.state, error.message.contains("de_DE")), (SqlState::FeatureNotSupported, true));
    assert!(compare(&cx, &text, &german, value.as_ref(), value.as_ref()).is_err());
    out.clear();
    encode_equality_key(&cx, &text, &german, value.as_ref(), &mut out).unwrap();
    let mut bytewise = Vec::new();
    encode_key(&cx, &text, &Collation::C, value.as_ref(), &mut bytewise).unwrap();
    assert_eq!(out, bytewise);
    // A nondeterministic collation has not even equality; an underived one is an error of the query.
    let unknown = Collation::Unsupported("ignore_case".into());
    assert!(encode_equality_key(&cx, &text, &unknown, value.as_ref(), &mut out).is_err());
    let none = encode_key(&cx, &text, &Collation::None, value.as_ref(), &mut out).unwrap_err();
    assert_eq!(none.state, SqlState::IndeterminateCollation);
}
