//! All targets in one program: the environment variable `FUZZ_TARGET` says which.
#![no_main]

use std::sync::OnceLock;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    static RUN: OnceLock<fn(&[u8])> = OnceLock::new();
    let run = RUN.get_or_init(|| {
        let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
        stegodon_fuzz::target(&name).unwrap_or_else(|| panic!("no target \"{name}\""))
    });
    run(data);
});
