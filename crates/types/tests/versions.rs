//! What older versions make of texts that mean something else to 18: `testdata/versions.txt`, recorded from them. What is
//! not known to be equal is refused.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use common::{TestTypes, unescape};
use stegodon_format::version::Version;
use stegodon_types::*;

#[test]
fn older_versions_read_as_they_did() {
    let types = TestTypes::new();
    let (mut wrong, mut equal, mut refused) = (Vec::new(), 0, 0);
    for line in include_str!("../testdata/versions.txt").lines().filter(|l| !l.starts_with('#')) {
        let parts: Vec<&str> = line.split('\t').collect();
        let version = Version::from_pg_version(parts[0].as_bytes()).unwrap();
        let settings = FormatSettings { version, ..FormatSettings::default() };
        let cx = TypeContext::new(&types, &settings);
        let ty = types.named(parts[1]);
        let read = text_in(&cx, &ty, unescape(parts[2]).as_bytes(), -1).and_then(|value| {
            let mut out = Vec::new();
            text_out(&cx, &ty, value.as_ref(), &mut out)?;
            Ok(String::from_utf8_lossy(&out).into_owned())
        });
        let got = match read {
            Ok(text) => format!("={text}"),
            Err(e) => format!("!{} {}", e.state.code(), e.message),
        };
        if got == unescape(parts[3]) {
            equal += 1;
        } else if got.starts_with("!0A000") {
            refused += 1;
        } else {
            wrong.push(format!("{line}\n  got {got}"));
        }
    }
    println!("{equal} equal, {refused} refused");
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(equal > refused, "{equal} equal, {refused} refused");
}
