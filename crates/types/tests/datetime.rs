//! Dates, times and intervals against a real server's (`testdata/datetime.txt` and `datetime-order.txt`, made by
//! `generate-datetime.py`).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use common::{TestTypes, hex, unescape, unhex};
use stegodon_types::settings::{DateOrder, DateStyle, IntervalStyle};
use stegodon_types::*;

/// The settings that a heading names.
fn settings_of(heading: &str) -> FormatSettings {
    let parts: Vec<&str> = heading.split('|').collect();
    let (style, order) = parts[1].split_once(", ").unwrap();
    FormatSettings {
        time_zone: jiff::tz::TimeZone::get(parts[0]).unwrap(),
        date_style: match style {
            "ISO" => DateStyle::Iso,
            "SQL" => DateStyle::Sql,
            "Postgres" => DateStyle::Postgres,
            _ => DateStyle::German,
        },
        date_order: match order {
            "MDY" => DateOrder::Mdy,
            "DMY" => DateOrder::Dmy,
            _ => DateOrder::Ymd,
        },
        interval_style: match parts[2] {
            "postgres" => IntervalStyle::Postgres,
            "postgres_verbose" => IntervalStyle::PostgresVerbose,
            "sql_standard" => IntervalStyle::SqlStandard,
            _ => IntervalStyle::Iso8601,
        },
        // The day that the answers were asked for does not matter to them.
        now_us: 848_750_400_000_000,
        ..FormatSettings::default()
    }
}

fn text_of(cx: &TypeContext<'_>, ty: &TypeDesc, value: ValueRef<'_>) -> String {
    let mut out = Vec::new();
    match text_out(cx, ty, value, &mut out) {
        Ok(()) => String::from_utf8_lossy(&out).into_owned(),
        Err(e) => format!("!{e}"),
    }
}

fn check_line(cx: &TypeContext<'_>, types: &TestTypes, line: &str) -> Option<String> {
    let parts: Vec<&str> = line.split('\t').collect();
    let ty = types.named(parts[0]);
    let typmod = parts[1].parse().unwrap();
    let got = match text_in(cx, &ty, unescape(parts[2]).as_bytes(), typmod) {
        Err(e) if e.state == SqlState::FeatureNotSupported => format!("refused: {}", e.message),
        Err(e) => format!("!{} {}\t{}", e.state.code(), e.message, e.hint.unwrap_or_default()),
        Ok(value) => {
            let mut sent = Vec::new();
            binary_out(cx, &ty, value.as_ref(), &mut sent).unwrap();
            // Rounding can leave the range, as on the server.
            if let Ok(received) = binary_in(cx, &ty, &sent, -1) {
                assert_eq!(received, value, "{line}");
            }
            let hash = |seed| hash_extended(cx, &ty, &Collation::None, value.as_ref(), seed).unwrap().unwrap() as i64;
            format!("={}\t{}\t{}\t{}", text_of(cx, &ty, value.as_ref()), hex(&sent), hash(0), hash(42))
        }
    };
    let expected: Vec<String> = parts[3..].iter().map(|p| unescape(p)).collect();
    (got != expected.join("\t")).then(|| format!("{line}\n  got  {got}\n  want {}", expected.join("\t")))
}

/// What the server reads and we refuse, each a POSIX string with summer time.
const REFUSED: &[&str] = &["2004-10-19 10:23:54 EST5EDT,M3.2.0,M11.1.0"];

#[test]
fn values_are_as_the_server_has_them() {
    let types = TestTypes::new();
    let mut settings = FormatSettings::default();
    let (mut wrong, mut heading, mut count) = (Vec::new(), "", 0);
    for line in include_str!("../testdata/datetime.txt").lines() {
        if let Some(text) = line.strip_prefix("# ") {
            settings = settings_of(text);
            heading = text;
            continue;
        }
        count += 1;
        let cx = TypeContext::new(&types, &settings);
        if let Some(fault) = check_line(&cx, &types, line) {
            wrong.push(format!("[{heading}] {fault}"));
        }
    }
    let refused = |fault: &String| REFUSED.iter().any(|r| fault.contains(r)) && fault.contains("got  refused");
    wrong.retain(|fault| !refused(fault));
    assert!(count > 10_000, "{count}");
    assert!(wrong.is_empty(), "{} of {count} wrong:\n{}", wrong.len(), wrong[..wrong.len().min(60)].join("\n"));
}

#[test]
fn values_are_ordered_as_the_server_orders_them() {
    let (types, settings) = (TestTypes::new(), FormatSettings::default());
    let cx = TypeContext::new(&types, &settings);
    let mut rows = Vec::new();
    for line in include_str!("../testdata/datetime-order.txt").lines() {
        let parts: Vec<&str> = line.split('\t').collect();
        let value = text_in(&cx, &types.named(parts[0]), parts[2].as_bytes(), -1).unwrap();
        rows.push((parts[0], parts[1].parse::<i32>().unwrap(), value));
    }
    for (name, rank, a) in &rows {
        let ty = types.named(name);
        let key = |v: &Datum| {
            let mut key = Vec::new();
            encode_key(&cx, &ty, &Collation::None, v.as_ref(), &mut key).unwrap();
            key
        };
        for (_, other, b) in rows.iter().filter(|r| r.0 == *name) {
            let context = format!("{name}: {a:?} and {b:?}");
            let expected = rank.cmp(other);
            assert_eq!(compare(&cx, &ty, &Collation::None, a.as_ref(), b.as_ref()).unwrap(), expected, "{context}");
            assert_eq!(
                equal(&cx, &ty, &Collation::None, a.as_ref(), b.as_ref()).unwrap(),
                expected.is_eq(),
                "{context}"
            );
            assert_eq!(key(a).cmp(&key(b)), expected, "key, {context}");
        }
    }
}

#[test]
fn what_was_sent_is_received_only_within_range() {
    let (types, settings) = (TestTypes::new(), FormatSettings::default());
    let cx = TypeContext::new(&types, &settings);
    for (name, sent, state) in [
        ("date", "80000001", "22008"),
        ("time", "ffffffffffffffff", "22008"),
        ("timestamp", "8000000000000001", "22008"),
        ("timetz", "00000000000000000000e100", "22009"),
        ("timetz", "7fffffffffffffff00000000", "22008"),
        ("interval", "00", "08P01"),
    ] {
        let error = binary_in(&cx, &types.named(name), &unhex(sent), -1).unwrap_err();
        assert_eq!(error.state.code(), state, "{name} {sent}");
    }
}
