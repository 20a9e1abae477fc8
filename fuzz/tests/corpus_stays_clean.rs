//! Every input of the committed corpus, findings of old among them, is taken without a finding.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::time::{Duration, Instant};

/// How long an input may take, in an unoptimised build on a busy machine.
const INPUT_MAX: Duration = Duration::from_secs(20);

#[test]
fn every_input_is_taken() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for (name, run) in stegodon_fuzz::TARGETS {
        let entries = std::fs::read_dir(corpus.join(name)).unwrap_or_else(|e| panic!("corpus/{name}: {e}"));
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        assert!(!paths.is_empty(), "corpus/{name} is empty");
        let started = Instant::now();
        for path in &paths {
            let before = Instant::now();
            let bytes = std::fs::read(path).unwrap();
            let done = std::panic::catch_unwind(|| run(&bytes));
            assert!(done.is_ok(), "{} fails", path.display());
            assert!(before.elapsed() < INPUT_MAX, "{} takes {:?}", path.display(), before.elapsed());
        }
        println!("{name}: {} inputs in {:?}", paths.len(), started.elapsed());
    }
}
