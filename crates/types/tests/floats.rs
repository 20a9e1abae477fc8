//! How floats print, against a real server (`testdata/floats.txt`, made by `generate-floats.py`).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use stegodon_types::scalar::float::{parse_f32, parse_f64, write_f32, write_f64};

#[test]
fn floats_print_as_the_server_prints_them() {
    let mut wrong = Vec::new();
    for line in include_str!("../testdata/floats.txt").lines() {
        let parts: Vec<&str> = line.split('|').collect();
        for (digits, expected) in [1, 0, -3].into_iter().zip(&parts[2..]) {
            let mut out = Vec::new();
            let bits = u64::from_str_radix(parts[1], 16).unwrap();
            if parts[0] == "8" {
                write_f64(f64::from_bits(bits), digits, &mut out);
            } else {
                write_f32(f32::from_bits(bits as u32), digits, &mut out);
            }
            let got = String::from_utf8(out).unwrap();
            if got != *expected {
                wrong.push(format!("{line}: {got} with extra_float_digits {digits}"));
            }
            if digits == 1 {
                let back = if parts[0] == "8" {
                    parse_f64(got.as_bytes()).unwrap().to_bits()
                } else {
                    u64::from(parse_f32(got.as_bytes()).unwrap().to_bits())
                };
                assert_eq!(back, bits, "{line}");
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong[..wrong.len().min(30)].join("\n"));
}
