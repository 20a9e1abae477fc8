//! Values of every type: from text, from the wire, from disk.

use std::sync::LazyLock;

use stegodon_types::settings::{ByteaOutput, DateOrder, DateStyle, Encoding, IntervalStyle};
use stegodon_types::{
    Collation, Datum, FormatSettings, Layout, TypeContext, TypeDesc, binary_in, binary_out, compare,
    encode_equality_key, encode_key, equal, hash_extended, text_in, text_out,
};

use crate::catalog::{ALL, Types};
use crate::input::Input;

fn settings(choice: u16) -> FormatSettings {
    let of = |shift: u16, count: u16| usize::from((choice >> shift) % count);
    FormatSettings {
        date_style: [DateStyle::Iso, DateStyle::Sql, DateStyle::Postgres, DateStyle::German][of(0, 4)],
        date_order: [DateOrder::Mdy, DateOrder::Dmy, DateOrder::Ymd][of(2, 3)],
        interval_style: [
            IntervalStyle::Postgres,
            IntervalStyle::PostgresVerbose,
            IntervalStyle::SqlStandard,
            IntervalStyle::Iso8601,
        ][of(4, 4)],
        time_zone: match of(6, 4) {
            0 => ZONE.clone(),
            _ => jiff::tz::TimeZone::UTC,
        },
        bytea_output: [ByteaOutput::Hex, ByteaOutput::Escape][of(8, 2)],
        encoding: if of(9, 4) == 0 { Encoding::SqlAscii } else { Encoding::Utf8 },
        now_us: 0,
        ..FormatSettings::default()
    }
}

static ZONE: LazyLock<jiff::tz::TimeZone> = LazyLock::new(|| jiff::tz::TimeZone::get("America/New_York").unwrap());

/// Everything that is done with a value but reading it. What cannot be done is an error, which is fine.
fn use_value(cx: &TypeContext<'_>, ty: &TypeDesc, value: &Datum) {
    let mut out = Vec::new();
    let _ = text_out(cx, ty, value.as_ref(), &mut out);
    out.clear();
    let _ = binary_out(cx, ty, value.as_ref(), &mut out);
    let _ = hash_extended(cx, ty, &Collation::C, value.as_ref(), 1);
    out.clear();
    let _ = encode_key(cx, ty, &Collation::C, value.as_ref(), &mut out);
    let _ = encode_equality_key(cx, ty, &Collation::C, value.as_ref(), &mut out);
}

/// Two values that an input function made: their order, equality and keys must agree.
fn relate(cx: &TypeContext<'_>, ty: &TypeDesc, a: &Datum, b: &Datum) {
    let order = |a: &Datum, b: &Datum| compare(cx, ty, &Collation::C, a.as_ref(), b.as_ref());
    if let (Ok(order), Ok(reversed)) = (order(a, b), order(b, a)) {
        assert_eq!(order, reversed.reverse(), "{}: {a:?} and {b:?}", ty.name);
        assert!(order_of_keys(cx, ty, a, b).is_none_or(|keys| keys == order), "{}: {a:?} and {b:?}", ty.name);
        if let Ok(equal) = equal(cx, ty, &Collation::C, a.as_ref(), b.as_ref()) {
            assert_eq!(equal, order.is_eq(), "{}: {a:?} and {b:?}", ty.name);
        }
    }
}

fn order_of_keys(cx: &TypeContext<'_>, ty: &TypeDesc, a: &Datum, b: &Datum) -> Option<std::cmp::Ordering> {
    let key = |v: &Datum| {
        let mut key = Vec::new();
        encode_key(cx, ty, &Collation::C, v.as_ref(), &mut key).ok().map(|()| key)
    };
    Some(key(a)?.cmp(&key(b)?))
}

pub fn run_in(data: &[u8]) {
    let mut input = Input(data);
    let choice = input.u8();
    let ty = &ALL[usize::from(input.u16()) % ALL.len()];
    let typmod = if choice & 2 == 2 { -1 } else { input.u32() as i32 };
    let settings = if choice & 4 == 4 { settings(0x300) } else { settings(input.u16()) };
    let cx = TypeContext::new(&Types, &settings);
    let (a, b) = if choice & 8 == 8 { input.halves() } else { (input.0, &[][..]) };
    let read = |bytes: &[u8]| {
        if choice & 1 == 1 { binary_in(&cx, ty, bytes, typmod) } else { text_in(&cx, ty, bytes, typmod) }
    };
    let Ok(a) = read(a) else { return };
    use_value(&cx, ty, &a);
    relate(&cx, ty, &a, &a);
    if let Ok(b) = read(b) {
        relate(&cx, ty, &a, &b);
    }
    // What is sent can be received, and is the same.
    let mut out = Vec::new();
    if binary_out(&cx, ty, a.as_ref(), &mut out).is_ok()
        && let Ok(again) = binary_in(&cx, ty, &out, -1)
    {
        relate(&cx, ty, &a, &again);
        if let Ok(same) = equal(&cx, ty, &Collation::C, a.as_ref(), again.as_ref()) {
            assert!(same, "{}: {a:?} is sent as {again:?}", ty.name);
        }
    }
}

/// A value as a page would have it.
fn from_disk(layout: Layout, input: &mut Input<'_>) -> Datum {
    match layout {
        Layout::Bool => Datum::Bool(input.u8() != 0),
        Layout::Char => Datum::Char(input.u8()),
        Layout::Int16 => Datum::Int16(input.u16() as i16),
        Layout::Int32 => Datum::Int32(input.u32() as i32),
        Layout::UInt32 => Datum::UInt32(input.u32()),
        Layout::Int64 => Datum::Int64(input.u64() as i64),
        Layout::UInt64 => Datum::UInt64(input.u64()),
        Layout::Float32 => Datum::Float32(f32::from_bits(input.u32())),
        Layout::Float64 => Datum::Float64(f64::from_bits(input.u64())),
        Layout::Fixed(len) => {
            let mut bytes = input.bytes(usize::from(len)).to_vec();
            bytes.resize(usize::from(len), 0);
            Datum::bytes(bytes)
        }
        Layout::Name => Datum::bytes(input.bytes(64).split(|byte| *byte == 0).next().unwrap_or(&[])),
        Layout::Bytes => Datum::bytes(input.0),
    }
}

pub fn run_disk(data: &[u8]) {
    let mut input = Input(data);
    let choice = input.u8();
    let ty = &ALL[usize::from(input.u16()) % ALL.len()];
    let Some(layout) = ty.layout else { return };
    let settings = if choice & 4 == 4 { settings(0x300) } else { settings(input.u16()) };
    let cx = TypeContext::new(&Types, &settings);
    let (a, b) = if choice & 8 == 8 { input.halves() } else { (input.0, &[][..]) };
    let (a, b) = (from_disk(layout, &mut Input(a)), from_disk(layout, &mut Input(b)));
    use_value(&cx, ty, &a);
    for (x, y) in [(&a, &b), (&b, &a), (&a, &a)] {
        let _ = compare(&cx, ty, &Collation::C, x.as_ref(), y.as_ref());
        let _ = equal(&cx, ty, &Collation::C, x.as_ref(), y.as_ref());
    }
}
