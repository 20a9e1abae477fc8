//! A pool costs memory only where it is used. Alone in its file: it looks at the whole process.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use common::{Fixture, MAIN, pool};
use stegodon_format::ids::BlockNumber;
use stegodon_io::SyncMethod;

const MIB: u64 = 1 << 20;

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn memory_is_used_where_pages_are() {
    let fixture = Fixture::new();
    let relation = fixture.relation(1, 512);
    let before = resident_bytes();
    let grown = || (resident_bytes().saturating_sub(before)) / MIB;

    // The smallest pool is not rounded up to huge pages.
    let small = pool(128, SyncMethod);
    for block in 0..128 {
        drop(small.read(&relation, MAIN, BlockNumber(block)).wait().unwrap());
    }
    assert!(grown() <= 4, "1 MiB of frames cost {} MiB", grown());
    drop(small);

    let large = pool(131_072, SyncMethod);
    let headers = grown();
    println!("headers and table: {headers} MiB");
    assert!(headers <= 24, "1 GiB of frames cost {headers} MiB before use");
    for block in 0..512 {
        drop(large.read(&relation, MAIN, BlockNumber(block)).wait().unwrap());
    }
    let used = grown() - headers;
    assert!((3..=8).contains(&used), "4 MiB of pages cost {used} MiB");
    drop(large);
    assert!(grown() <= 8, "{} MiB are left of a pool that is gone", grown());
}
