//! Writes seeds for `types_in` and `types_disk` into a directory: every value of a list, for every type that reads it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use stegodon_fuzz::catalog::{ALL, Types};
use stegodon_types::{Datum, FormatSettings, Layout, TypeContext, binary_out, text_in};

const TEXTS: &[&str] = &[
    "",
    "t",
    "0",
    "-1",
    "77",
    "1.50",
    "1e10",
    "-1e-5",
    "NaN",
    "Infinity",
    "-infinity",
    "0x1F",
    "1_000",
    "$1,234.56",
    "a",
    "\\xdeadbeef",
    "a\\\\b",
    "B101",
    "10101",
    "X1F",
    "x",
    "(1,2)",
    "(3,1)",
    "[1,10)",
    "(,5]",
    "empty",
    "{[1,2),[5,9)}",
    "{}",
    "[1.5,2.5]",
    "[2024-01-01,2024-12-31)",
    "[\"2024-01-01 00:00\",)",
    "{1,2,NULL}",
    "{{1,2},{3,4}}",
    "[0:1]={a,b}",
    "{a,\"b c\",\"x\\\"y\"}",
    "2024-02-29",
    "0044-03-15 BC",
    "2024-02-29 12:34:56.789+02",
    "Jan 8 1999 04:05:06 PST",
    "J2451187",
    "19990108",
    "12:34:56.789+05:30",
    "24:00:00",
    "04:05 PM",
    "allballs",
    "1 year 2 mons 3 days 04:05:06.789",
    "P1Y2M3DT4H5M6S",
    "@ 1 minute ago",
    "192.168.0.1/24",
    "::ffff:1.2.3.4/96",
    "10",
    "2001:db8::/32",
    "08:00:2b:01:02:03",
    "08-00-2b-01-02-03-04-05",
    "0800.2b01.0203",
    "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    "{\"a\": [1, 2.50, null, true], \"b\": {\"c\": \"\\u00e9\\ud83d\\ude00\"}}",
    "[1, [2, [3]]]",
    "\"str\"",
    "null",
    "0/16B374D8",
    "10:20:10,14,15",
    "1 2 3",
    "(1,\"a b\",1.5)",
    "(\"(1,x,2)\",\"{\"\"(1,y,3)\"\"}\",a,\"[a,b)\",\"{}\")",
    "postgres=arwdDxt/postgres",
    "pg_class",
    "sad",
    "d",
    "(a,b]",
    "{[a,b)}",
    "$.a[*] ? (@.b > 1)",
    "a & b",
    "'fat':2 'rat':3",
];

fn main() {
    let directory = std::path::PathBuf::from(std::env::args().nth(1).expect("a directory"));
    let settings = FormatSettings::default();
    let cx = TypeContext::new(&Types, &settings);
    let mut count = 0;
    let mut write = |target: &str, choice: u8, at: usize, bytes: &[u8]| {
        let mut seed = vec![choice];
        seed.extend((at as u16).to_le_bytes());
        seed.extend(bytes);
        count += 1;
        std::fs::create_dir_all(directory.join(target)).unwrap();
        std::fs::write(directory.join(target).join(format!("{count:06}")), seed).unwrap();
    };
    for (at, ty) in ALL.iter().enumerate() {
        for text in TEXTS {
            let Ok(value) = text_in(&cx, ty, text.as_bytes(), -1) else { continue };
            write("types_in", 6, at, text.as_bytes());
            let mut binary = Vec::new();
            if binary_out(&cx, ty, value.as_ref(), &mut binary).is_ok() {
                write("types_in", 7, at, &binary);
            }
            let disk: Vec<u8> = match &value {
                Datum::Bool(v) => vec![u8::from(*v)],
                Datum::Char(v) => vec![*v],
                Datum::Int16(v) => v.to_le_bytes().into(),
                Datum::Int32(v) => v.to_le_bytes().into(),
                Datum::UInt32(v) => v.to_le_bytes().into(),
                Datum::Int64(v) => v.to_le_bytes().into(),
                Datum::UInt64(v) => v.to_le_bytes().into(),
                Datum::Float32(v) => v.to_le_bytes().into(),
                Datum::Float64(v) => v.to_le_bytes().into(),
                Datum::Bytes(v) => v.to_vec(),
            };
            if ty.layout != Some(Layout::Name) {
                write("types_disk", 4, at, &disk);
            }
        }
    }
    println!("{count} seeds");
}
