//! Numeric functions against the answers of a real server (`testdata/numeric.txt`, made by `generate-numeric.py`).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unnecessary_wraps)]

use stegodon_types::numeric::{self, Numeric};
use stegodon_types::{SqlError, SqlResult};

fn text(result: SqlResult<Numeric>) -> Result<String, SqlError> {
    // Through the payload, so that both ways of the form are tested.
    let datum = result?.to_datum()?;
    Ok(Numeric::from_payload(datum.as_bytes().unwrap()).unwrap().text())
}

fn number(v: Option<i32>) -> Result<String, SqlError> {
    Ok(v.map_or("NULL".to_owned(), |v| v.to_string()))
}

/// An aggregate over a list, halves of it added up apart and merged.
fn aggregate(function: &str, list: &str) -> Result<String, SqlError> {
    let values: Vec<Numeric> = list.split(',').map(|v| numeric::parse(v.as_bytes()).unwrap()).collect();
    let (first, second) = values.split_at(values.len() / 2);
    let sum = |values: &[Numeric]| {
        let mut sum = numeric::NumericSum::new();
        for v in values {
            sum.add_payload(v.to_datum().unwrap().as_bytes().unwrap()).unwrap();
        }
        sum
    };
    let variance = |values: &[Numeric]| {
        let mut variance = numeric::NumericVariance::new();
        for v in values {
            variance.add(v);
        }
        variance
    };
    let (mut total, mut spread) = (sum(first), variance(first));
    total.merge(&sum(second));
    spread.merge(&variance(second));
    let result = match function {
        "sum" => total.sum(),
        "avg" => total.avg()?,
        "var_pop" => spread.finish(false, false)?,
        "var_samp" => spread.finish(true, false)?,
        "stddev_pop" => spread.finish(false, true)?,
        _ => spread.finish(true, true)?,
    };
    result.map_or_else(|| Ok("NULL".to_owned()), |v| text(Ok(v)))
}

fn answer(function: &str, a: &str, b: &str) -> Result<String, SqlError> {
    if matches!(function, "sum" | "avg" | "var_pop" | "var_samp" | "stddev_pop" | "stddev_samp") {
        return aggregate(function, a);
    }
    let a = numeric::parse(a.as_bytes())?;
    if b.is_empty() {
        return match function {
            "abs" => text(Ok(a.abs())),
            "-" => text(Ok(a.neg())),
            "sign" => text(Ok(a.signum())),
            "ceil" => text(Ok(a.ceil())),
            "floor" => text(Ok(a.floor())),
            "round" => text(Ok(a.round(0))),
            "trunc" => text(Ok(a.trunc(0))),
            "sqrt" => text(a.sqrt()),
            "exp" => text(a.exp()),
            "ln" => text(a.ln()),
            "log" => text(a.log10()),
            "scale" => number(a.scale()),
            "min_scale" => number(a.min_scale()),
            "trim_scale" => text(Ok(a.trim_scale())),
            "int2" => a.to_i16().map(|v| v.to_string()),
            "int4" => a.to_i32().map(|v| v.to_string()),
            "int8" => a.to_i64().map(|v| v.to_string()),
            "float4" => a.to_f32().map(|v| {
                let mut out = Vec::new();
                stegodon_types::scalar::float::write_f32(v, 1, &mut out);
                String::from_utf8(out).unwrap()
            }),
            "float8" => a.to_f64().map(|v| {
                let mut out = Vec::new();
                stegodon_types::scalar::float::write_f64(v, 1, &mut out);
                String::from_utf8(out).unwrap()
            }),
            _ => {
                let mut parts = function.split(' ').skip(1).map(|p| p.parse().unwrap());
                text(a.apply_typmod(numeric::typmod(parts.next().unwrap(), parts.next().unwrap())))
            }
        };
    }
    if let ("round" | "trunc", Ok(scale)) = (function, b.parse()) {
        return text(Ok(if function == "round" { a.round(scale) } else { a.trunc(scale) }));
    }
    let b = numeric::parse(b.as_bytes())?;
    match function {
        "+" => text(Ok(a.add(&b))),
        "-" => text(Ok(a.sub(&b))),
        "*" => text(Ok(a.mul(&b))),
        "/" => text(a.div(&b)),
        "%" => text(a.rem(&b)),
        "div" => text(a.div_trunc(&b)),
        "gcd" => text(a.gcd(&b)),
        "lcm" => text(a.lcm(&b)),
        "log" => text(b.log(&a)),
        "power" => text(a.pow(&b)),
        "cmp" => {
            let (x, y) = (a.to_datum()?, b.to_datum()?);
            let order = numeric::compare_payloads(x.as_bytes().unwrap(), y.as_bytes().unwrap())?;
            assert_eq!(a.partial_cmp(&b), Some(order));
            Ok((order as i8).to_string())
        }
        _ => panic!("{function}"),
    }
}

#[test]
fn sums_and_operators_on_payloads_agree_with_those_on_numbers() {
    let values: Vec<Numeric> = include_str!("../testdata/numeric.txt")
        .lines()
        .filter(|l| l.starts_with("abs|"))
        .map(|l| numeric::parse(l.split('|').nth(1).unwrap().as_bytes()).unwrap())
        .collect();
    let payload = |v: &Numeric| v.to_datum().unwrap().as_bytes().unwrap().to_vec();
    let read = |bytes: &[u8]| Numeric::from_payload(bytes).unwrap();
    let mut sum = numeric::NumericSum::new();
    let mut expected = Numeric::ZERO;
    for (at, a) in values.iter().enumerate() {
        for b in values.iter().skip(at) {
            let (x, y) = (payload(a), payload(b));
            let mut out = Vec::new();
            numeric::add_payloads(&x, &y, &mut out).unwrap();
            assert_eq!(read(&out), a.add(b));
            out.clear();
            numeric::sub_payloads(&x, &y, &mut out).unwrap();
            assert_eq!(read(&out), a.sub(b));
            out.clear();
            numeric::mul_payloads(&x, &y, &mut out).unwrap();
            assert_eq!(read(&out), a.mul(b));
        }
        if a.finite().is_some() {
            sum.add_payload(&payload(a)).unwrap();
            expected = expected.add(a);
            assert_eq!(sum.sum().unwrap(), expected);
            let mut twice = sum.clone();
            twice.merge(&sum);
            assert_eq!(twice.sum().unwrap(), expected.add(&expected));
        }
    }
}

#[test]
fn functions_answer_as_the_server_does() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in include_str!("../testdata/numeric.txt").lines() {
        let parts: Vec<&str> = line.splitn(4, '|').collect();
        let [function, a, b, expected] = parts[..] else { panic!("{line}") };
        let got = match answer(function, a, b) {
            Ok(text) => text,
            Err(e) => format!("!{} {}", e.state.code(), e.message),
        };
        count += 1;
        if got != expected {
            wrong.push(format!("{function}({a}, {b})\n  got  {got}\n  want {expected}"));
        }
    }
    assert!(count > 5000);
    assert!(wrong.is_empty(), "{} of {count} wrong:\n{}", wrong.len(), wrong[..wrong.len().min(25)].join("\n"));
}
