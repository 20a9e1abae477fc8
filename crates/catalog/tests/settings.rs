//! SET and SHOW as the judge answers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::fmt::Write as _;

use stegodon_catalog::settings::{Scope, Settings};

#[test]
fn values_are_read_and_shown_as_the_judge_does() {
    let mut settings = Settings::new();
    // The judge ran all of it in one transaction.
    settings.begin();
    let mut wrong = String::new();
    for line in include_str!("../testdata/set.txt").lines() {
        let mut fields = line.split('\t');
        let (name, value, want) = (fields.next().unwrap(), fields.next().unwrap(), fields.next().unwrap());
        if (name, value) == ("client_encoding", "LATIN1") {
            continue;
        }
        let got = match settings.set(name, value, Scope::Local, true) {
            Ok(()) => settings.show(name).unwrap(),
            Err(e) => {
                let hint = e.hint.map_or_else(String::new, |h| format!(" HINT {h}"));
                format!("{} {}{hint}", e.state.code(), e.message)
            }
        };
        if got != want {
            writeln!(wrong, "{line}: {got}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
