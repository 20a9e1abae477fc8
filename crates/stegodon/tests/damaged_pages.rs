//! `ignore_checksum_failure` and `zero_damaged_pages` do what PostgreSQL's do, and warn as it does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::path::Path;
use std::process::Command;

use common::Arena;
use stegodon_testkit::demo_cluster;
use stegodon_testkit::lab::{Client, Server};

/// Changes bytes of a block of a relation's file.
fn damage(directory: &Path, file: &str, block: u64, at: u64, bytes: &[u8]) {
    use std::io::{Seek, SeekFrom, Write};
    let mut file = std::fs::OpenOptions::new().write(true).open(directory.join(file)).unwrap();
    file.seek(SeekFrom::Start(block * 8192 + at)).unwrap();
    file.write_all(bytes).unwrap();
}

/// What psql prints, errors and warnings with their SQLSTATEs among it.
fn psql(server: &Server, sql: &str) -> String {
    let output = Command::new("psql")
        .args(["-X", "-A", "-t", "-q", "-v", "VERBOSITY=verbose", "-U", "postgres", "-d", "demo", "-c", sql])
        .arg("-h")
        .arg(server.socket_directory())
        .args(["-p", &server.port().to_string()])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    // Where in PostgreSQL's source it was said, and what a read of several blocks adds.
    let said =
        said.lines().filter(|l| !l.starts_with("LOCATION") && !l.starts_with("HINT") && !l.starts_with("DETAIL"));
    said.map(|l| l.to_owned() + "\n").collect()
}

#[test]
fn damaged_pages_can_be_read_around() {
    let (keep, directory) = demo_cluster();
    let file = {
        let server = common::stegodon().start(&directory, &[]).unwrap();
        let mut client = Client::connect(&server, "demo", "postgres").unwrap();
        let path = "SELECT 'base/' || (SELECT oid FROM pg_database WHERE datname = current_database()) || '/' || relfilenode \
                    FROM pg_class WHERE relname = 'bitmap_uniform'";
        client.query(path).unwrap().rows[0][0].clone().unwrap()
    };
    // A tuple's byte: the checksum is wrong. A header: the page is none.
    damage(&directory, &file, 3, 8100, &[0xAB]);
    damage(&directory, &file, 200, 12, &[0xFF; 6]);
    let arena = Arena::over(&directory, vec![keep]);
    for (settings, query) in [
        ("", "SELECT count(*) FROM bitmap_uniform WHERE ctid < '(5,0)'"),
        ("SET ignore_checksum_failure = on;", "SELECT count(*), sum(b) FROM bitmap_uniform WHERE ctid < '(5,0)'"),
        (
            "SET ignore_checksum_failure = on;",
            "SELECT count(*) FROM bitmap_uniform WHERE ctid >= '(198,0)' AND ctid < '(202,0)'",
        ),
        (
            "SET zero_damaged_pages = on;",
            "SELECT count(*), sum(b) FROM bitmap_uniform WHERE ctid >= '(198,0)' AND ctid < '(202,0)'",
        ),
        ("", "SELECT 1"),
    ] {
        let sql = format!("SET io_combine_limit = 1; {settings} {query}");
        assert_eq!(psql(&arena.stegodon, &sql), psql(&arena.judge, &sql), "{sql}");
    }
}
