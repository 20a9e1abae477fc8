//! One test walks every type of the table, arrays of it, and types made by users: keys order as values do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use std::cmp::Ordering;

use common::TestTypes;
use proptest::prelude::*;
use stegodon_types::array::{self, Dimension};
use stegodon_types::numeric::Numeric;
use stegodon_types::*;

/// A generator that is cheap and the same everywhere (xorshift).
struct Source(u64);

impl Source {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 11) as usize % n
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// A number: often small, sometimes at an end of the range.
    fn number(&mut self) -> i64 {
        match self.below(4) {
            0 => self.below(5) as i64 - 2,
            1 => self.pick(&[i64::MIN, i64::MAX, i64::from(i32::MIN), i64::from(i32::MAX), 256, -256, 0]),
            2 => self.next() as i64 >> self.below(64),
            _ => self.next() as i64,
        }
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..self.below(most + 1)).map(|_| self.pick(&[0, 0, 1, b'a', b'b', b' ', 0xFE, 0xFF])).collect()
    }

    fn word(&mut self) -> String {
        (0..self.below(4)).map(|_| self.pick(&['a', 'b', ' ', 'é', 'B', '"', '\\', ','])).collect()
    }
}

/// Texts of types that are not made from bits alone.
fn texts(name: &str) -> &'static [&'static str] {
    match name {
        "inet" => &["10.0.0.1", "10.0.0.0/8", "10.0.0.0/9", "::1", "fe80::/10", "0.0.0.0/0", "10.0.0.1/8"],
        "cidr" => &["10.0.0.0/8", "10.0.0.0/9", "::/0", "0.0.0.0/0", "10.1.0.0/16"],
        "jsonb" => &[
            "null",
            "true",
            "false",
            "1",
            "1.0",
            "-1",
            "\"a\"",
            "\"\"",
            "\"b\"",
            "[]",
            "{}",
            "[1]",
            "[1,2]",
            "[[]]",
            "[null]",
            "{\"a\":1}",
            "{\"b\":1}",
            "{\"a\":2}",
            "{\"aa\":1}",
            "{\"a\":1,\"b\":2}",
            "{\"a\":{}}",
            "[\"a\",1.50]",
            "1e10",
        ],
        other => panic!("type {other} has a key: give this test values of it"),
    }
}

fn arbitrary(cx: &TypeContext<'_>, ty: &TypeDesc, source: &mut Source) -> Datum {
    let layout = ty.layout.unwrap();
    match ty.kind {
        TypeKind::Enum => {
            let label = source.pick(&["sad", "meh", "ok", "glad", "happy"]);
            return text_in(cx, ty, label.as_bytes(), -1).unwrap();
        }
        TypeKind::Domain { base, .. } => {
            return arbitrary(cx, &cx.types.type_desc(base).unwrap(), source);
        }
        TypeKind::Array { element } => {
            let element = cx.types.type_desc(element).unwrap();
            let dimensions: Vec<Dimension> = (0..source.below(3))
                .map(|_| Dimension { length: source.below(3) as i32, lower: source.below(2) as i32 })
                .collect();
            let count = array::element_count(&dimensions).unwrap();
            let values: Vec<Option<Datum>> =
                (0..count).map(|_| (source.below(4) > 0).then(|| arbitrary(cx, &element, source))).collect();
            let values = values.iter().map(|v| v.as_ref().map(Datum::as_ref));
            return Datum::bytes(array::build(&element, &dimensions, values).unwrap());
        }
        TypeKind::Composite { .. } => {
            let columns = cx.types.composite(ty.oid).unwrap();
            let values: Vec<Option<Datum>> = columns
                .iter()
                .map(|c| {
                    let wanted = !c.dropped && source.below(4) > 0;
                    wanted.then(|| arbitrary(cx, &cx.types.type_desc(c.type_oid).unwrap(), source))
                })
                .collect();
            let values: Vec<_> = values.iter().map(|v| v.as_ref().map(Datum::as_ref)).collect();
            return Datum::bytes(record::build(cx, ty.oid, &columns, &values).unwrap());
        }
        TypeKind::Range { .. } => return Datum::bytes(arbitrary_range(cx, ty, source)),
        TypeKind::Multirange { range } => {
            let range = cx.types.type_desc(range).unwrap();
            let mut text = b"{".to_vec();
            for at in 0..source.below(4) {
                if at > 0 {
                    text.push(b',');
                }
                let member = arbitrary_range(cx, &range, source);
                text_out(cx, &range, ValueRef::Bytes(&member), &mut text).unwrap();
            }
            text.push(b'}');
            return text_in(cx, ty, &text, -1).unwrap();
        }
        TypeKind::Base | TypeKind::Pseudo => {}
    }
    let number = source.number();
    match layout {
        Layout::Bool => Datum::Bool(number & 1 == 1),
        Layout::Char => Datum::Char(number as u8),
        Layout::Int16 => Datum::Int16(number as i16),
        // Dates and times have ranges that a random number may miss.
        Layout::Int32 if ty.oid == oids::DATE => Datum::Int32((number % 1_000_000) as i32),
        Layout::Int32 => Datum::Int32(number as i32),
        Layout::UInt32 => Datum::UInt32(number as u32),
        Layout::Int64 if ty.category == b'D' => Datum::Int64(number.rem_euclid(86_400_000_000)),
        Layout::Int64 => Datum::Int64(number),
        Layout::UInt64 => Datum::UInt64(number as u64),
        Layout::Float32 => Datum::Float32(match source.below(4) {
            0 => source.pick(&[
                0.0,
                -0.0,
                f32::NAN,
                -f32::NAN,
                f32::INFINITY,
                f32::NEG_INFINITY,
                f32::MIN_POSITIVE,
                1e-45,
            ]),
            1 => number as f32,
            _ => f32::from_bits(source.next() as u32),
        }),
        Layout::Float64 => Datum::Float64(match source.below(4) {
            0 => source.pick(&[
                0.0,
                -0.0,
                f64::NAN,
                -f64::NAN,
                f64::INFINITY,
                f64::NEG_INFINITY,
                f64::MIN_POSITIVE,
                5e-324,
            ]),
            1 => number as f64,
            _ => f64::from_bits(source.next()),
        }),
        Layout::Fixed(_) if ty.oid == oids::TIMETZ => {
            let mut bytes = number.rem_euclid(86_400_000_000).to_le_bytes().to_vec();
            bytes.extend_from_slice(&(source.below(9) as i32 * 3600 - 14400).to_le_bytes());
            Datum::bytes(bytes)
        }
        Layout::Fixed(_) if ty.oid == oids::INTERVAL => {
            let unit = source.pick(&[1, 86_400_000_000, 30 * 86_400_000_000]);
            let mut bytes = ((source.below(5) as i64 - 2) * unit).to_le_bytes().to_vec();
            bytes.extend_from_slice(&(source.below(5) as i32 * 30 - 60).to_le_bytes());
            bytes.extend_from_slice(&(source.below(5) as i32 - 2).to_le_bytes());
            Datum::bytes(bytes)
        }
        Layout::Fixed(n) => Datum::bytes((0..n).map(|_| source.pick(&[0, 0, 0, 1, 0x80, 0xFF])).collect::<Vec<u8>>()),
        Layout::Name => Datum::bytes(source.word()),
        Layout::Bytes => match ty.oid {
            oids::TEXT | oids::VARCHAR | oids::BPCHAR | oids::PG_NODE_TREE | oids::REFCURSOR => {
                Datum::bytes(source.word())
            }
            oids::BYTEA => Datum::bytes(source.bytes(6)),
            oids::NUMERIC => arbitrary_numeric(source).to_datum().unwrap(),
            oids::BIT | oids::VARBIT => {
                let bits: String = (0..source.below(20)).map(|_| source.pick(&['0', '0', '1'])).collect();
                text_in(cx, ty, bits.as_bytes(), -1).unwrap()
            }
            oids::OIDVECTOR | oids::INT2VECTOR => {
                let numbers: Vec<String> = (0..source.below(4)).map(|_| source.below(300).to_string()).collect();
                text_in(cx, ty, numbers.join(" ").as_bytes(), -1).unwrap()
            }
            oids::RECORD => {
                let (a, b) = (source.below(3) as i32, source.word());
                let fields = [
                    (oids::INT4, -1, Oid(0), (source.below(3) > 0).then_some(ValueRef::Int32(a))),
                    (oids::TEXT, -1, Oid(100), (source.below(3) > 0).then_some(ValueRef::Bytes(b.as_bytes()))),
                ];
                Datum::bytes(record::build_anonymous(cx, &fields).unwrap())
            }
            oids::ANYARRAY => arbitrary(cx, &cx.types.type_desc(oids::INT4_ARRAY).unwrap(), source),
            _ => {
                let text = source.pick(texts(&ty.name));
                text_in(cx, ty, text.as_bytes(), -1).unwrap()
            }
        },
    }
}

fn arbitrary_numeric(source: &mut Source) -> Numeric {
    match source.below(8) {
        0 => source.pick(&[0, 1, 2]).into_special(),
        1 => Numeric::from(source.number()),
        _ => {
            let digits: String = (0..=source.below(10)).map(|_| source.pick(&['0', '0', '1', '9'])).collect();
            let sign = source.pick(&["", "-"]);
            let exponent = source.below(60) as i32 - 30;
            numeric::parse(format!("{sign}{digits}e{exponent}").as_bytes()).unwrap()
        }
    }
}

trait IntoSpecial {
    fn into_special(self) -> Numeric;
}

impl IntoSpecial for i32 {
    fn into_special(self) -> Numeric {
        match self {
            0 => Numeric::NaN,
            1 => Numeric::PosInf,
            _ => Numeric::NegInf,
        }
    }
}

fn arbitrary_range(cx: &TypeContext<'_>, ty: &TypeDesc, source: &mut Source) -> Vec<u8> {
    let range = range::RangeType::of(cx, ty).unwrap();
    if source.below(8) == 0 {
        return range.empty();
    }
    let bound = |source: &mut Source| {
        if source.below(6) == 0 {
            return range::Bound::INFINITE;
        }
        range::Bound::new(arbitrary(cx, &range.subtype, source), source.below(2) == 0)
    };
    let bounds = Some((bound(source), bound(source)));
    // Bounds in the wrong order, and the last integer, are refused.
    range.build(cx, &bounds).unwrap_or_else(|_| range.empty())
}

/// How Arrow orders the value.
fn natural(a: ValueRef<'_>, b: ValueRef<'_>) -> Ordering {
    match (a, b) {
        (ValueRef::Bool(a), ValueRef::Bool(b)) => a.cmp(&b),
        (ValueRef::Char(a), ValueRef::Char(b)) => a.cmp(&b),
        (ValueRef::Int16(a), ValueRef::Int16(b)) => a.cmp(&b),
        (ValueRef::Int32(a), ValueRef::Int32(b)) => a.cmp(&b),
        (ValueRef::UInt32(a), ValueRef::UInt32(b)) => a.cmp(&b),
        (ValueRef::Int64(a), ValueRef::Int64(b)) => a.cmp(&b),
        (ValueRef::UInt64(a), ValueRef::UInt64(b)) => a.cmp(&b),
        (ValueRef::Bytes(a), ValueRef::Bytes(b)) => a.cmp(b),
        _ => panic!("floats are never their own key"),
    }
}

fn show(cx: &TypeContext<'_>, ty: &TypeDesc, v: &Datum) -> String {
    let mut out = Vec::new();
    match text_out(cx, ty, v.as_ref(), &mut out) {
        Ok(()) => String::from_utf8_lossy(&out).into_owned(),
        Err(_) => format!("{v:?}"),
    }
}

fn check_type(cx: &TypeContext<'_>, ty: &TypeDesc, seed: u64) {
    let ops = ops(ty).unwrap();
    let (Some(_), Some(_)) = (ops.key, ops.equal) else { return };
    if ty.layout.is_none() {
        return;
    }
    // Those of another crate part may be missing.
    if leaf(cx, ty).is_none_or(|ops| ops.key.is_none()) {
        return;
    }
    let mut source = Source(seed | 1);
    let values: Vec<Datum> = (0..14).map(|_| arbitrary(cx, ty, &mut source)).collect();
    let keys: Vec<Vec<u8>> = values
        .iter()
        .map(|v| {
            let mut key = Vec::new();
            encode_key(cx, ty, &Collation::C, v.as_ref(), &mut key).unwrap();
            let mut equality = Vec::new();
            encode_equality_key(cx, ty, &Collation::equality_only("en_US"), v.as_ref(), &mut equality).unwrap();
            assert_eq!(key, equality, "{}", ty.name);
            key
        })
        .collect();
    for (a, a_key) in values.iter().zip(&keys) {
        for (b, b_key) in values.iter().zip(&keys) {
            let context = || format!("{}: {} and {}", ty.name, show(cx, ty, a), show(cx, ty, b));
            let order = a_key.cmp(b_key);
            if ops.compare.is_some_and(|_| comparable(cx, ty)) {
                let compared = compare(cx, ty, &Collation::C, a.as_ref(), b.as_ref()).unwrap();
                assert_eq!(compared, order, "compare and key of {}", context());
            }
            let same = equal(cx, ty, &Collation::C, a.as_ref(), b.as_ref()).unwrap();
            assert_eq!(same, order.is_eq(), "equal and key of {}", context());
            assert!(order.is_eq() || !a_key.starts_with(b_key), "prefix of {}", context());
            if ops.own_key {
                assert_eq!(natural(a.as_ref(), b.as_ref()), order, "Arrow's order of {}", context());
            }
            if same && ops.hash.is_some() && hashable(cx, ty) {
                let hash = |v: &Datum| hash_extended(cx, ty, &Collation::C, v.as_ref(), seed).unwrap();
                assert_eq!(hash(a), hash(b), "hash of {}", context());
            }
        }
        // The binary form loses nothing.
        let mut sent = Vec::new();
        let readable = !matches!(ty.kind, TypeKind::Pseudo) && ty.oid != oids::PG_NODE_TREE;
        if readable && binary_out(cx, ty, a.as_ref(), &mut sent).is_ok() {
            let received = binary_in(cx, ty, &sent, -1);
            if let Ok(received) = received {
                let mut key = Vec::new();
                encode_key(cx, ty, &Collation::C, received.as_ref(), &mut key).unwrap();
                assert_eq!(key, *a_key, "received {} of {}", show(cx, ty, &received), show(cx, ty, a));
            } else {
                assert!(not_received(cx, ty), "{}: {received:?}", ty.name);
            }
        }
    }
}

fn leaf(cx: &TypeContext<'_>, ty: &TypeDesc) -> Option<&'static TypeOps> {
    match ty.kind {
        TypeKind::Array { element } => leaf(cx, &cx.types.type_desc(element).unwrap()),
        TypeKind::Range { subtype, .. } => leaf(cx, &cx.types.type_desc(subtype).unwrap()),
        TypeKind::Multirange { range } => leaf(cx, &cx.types.type_desc(range).unwrap()),
        _ => ops(ty).ok(),
    }
}

fn comparable(cx: &TypeContext<'_>, ty: &TypeDesc) -> bool {
    leaf(cx, ty).is_some_and(|ops| ops.compare.is_some())
}

fn hashable(cx: &TypeContext<'_>, ty: &TypeDesc) -> bool {
    leaf(cx, ty).is_some_and(|ops| ops.hash.is_some())
}

/// Types whose values are made here at random beyond what their receive functions accept.
fn not_received(cx: &TypeContext<'_>, ty: &TypeDesc) -> bool {
    match ty.kind {
        TypeKind::Array { element } => not_received(cx, &cx.types.type_desc(element).unwrap()),
        _ => {
            matches!(ty.category, b'D' | b'T' | b'I')
                || matches!(ty.oid, oids::RECORD | oids::ACLITEM | oids::OIDVECTOR | oids::INT2VECTOR)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn keys_order_as_values_do(seed in any::<u64>()) {
        let (types, settings) = (TestTypes::new(), FormatSettings::default());
        let cx = TypeContext::new(&types, &settings);
        for row in table::TYPES {
            check_type(&cx, &row.desc(), seed);
            if let Some(array) = row.array_desc() {
                check_type(&cx, &array, seed);
            }
        }
        for name in ["mood", "mood[]", "pair", "pair[]", "holed", "wide", "posint", "code", "textrange", "floatrange",
                     "textmultirange", "floatmultirange", "textrange[]"] {
            check_type(&cx, &types.named(name), seed);
        }
    }
}
