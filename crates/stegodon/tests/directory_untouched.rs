//! Serving a directory changes nothing in it, and what is not at rest is refused with a word of what to do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::Path;
use std::process::Command;

use common::stegodon;
use stegodon_testkit::lab::Client;
use stegodon_testkit::{demo_cluster, fingerprint};

#[test]
fn every_file_is_the_same_after_serving() {
    let (_keep, directory) = demo_cluster();
    let before = fingerprint(&directory);
    let mut server = stegodon().start(&directory, &[("work_mem", "64kB")]).unwrap();
    let mut client = Client::connect(&server, "demo", "postgres").unwrap();
    for sql in [
        "SELECT count(*) FROM zoo.states",
        "SELECT * FROM zoo.toasted ORDER BY random_",
        "SELECT c, count(*) FROM bitmap_uniform GROUP BY c ORDER BY 2 DESC LIMIT 3",
        "SELECT a.id FROM zoo.numbers a JOIN zoo.texts b USING (id) ORDER BY 1 LIMIT 5",
    ] {
        client.query(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
    }
    for sql in ["CREATE TABLE x ()", "INSERT INTO zoo.frozen VALUES (1, 'x')", "SELECT nextval('zoo.seq')", "VACUUM"] {
        assert_eq!(client.query(sql).unwrap_err().state, "25006", "{sql}");
    }
    server.kill();
    assert_eq!(fingerprint(&directory), before, "after a kill");
    let mut server = stegodon().start(&directory, &[]).unwrap();
    Client::connect(&server, "demo", "postgres").unwrap().query("SELECT count(*) FROM zoo.frozen").unwrap();
    server.stop();
    assert_eq!(fingerprint(&directory), before, "after a stop");
}

/// What `serve` says of a directory that it must refuse.
fn refusal(directory: &Path) -> String {
    let program = env!("CARGO_BIN_EXE_stegodon");
    let output = Command::new(program).arg("sql").arg("-D").arg(directory).args(["-c", "SELECT 1"]).output().unwrap();
    assert!(!output.status.success(), "{} was not refused", directory.display());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn what_is_not_at_rest_is_refused() {
    let (_keep, directory) = demo_cluster();
    for (file, said) in [
        ("postmaster.pid", "pg_ctl stop"),
        ("backup_label", "recovery"),
        ("recovery.signal", "recovery"),
        ("standby.signal", "recovery"),
    ] {
        std::fs::write(directory.join(file), "1").unwrap();
        let text = refusal(&directory);
        assert!(text.contains(said) && text.contains("HINT"), "{file}: {text}");
        std::fs::remove_file(directory.join(file)).unwrap();
    }
    let control = directory.join("global/pg_control");
    let good = std::fs::read(&control).unwrap();
    // The state word, at byte 16: "in production". The CRC no longer fits, which is found first.
    let mut damaged = good.clone();
    *damaged.get_mut(16).unwrap() = 6;
    std::fs::write(&control, &damaged).unwrap();
    assert!(refusal(&directory).contains("pg_control"));
    std::fs::write(&control, &good).unwrap();
    std::fs::write(directory.join("PG_VERSION"), "9\n").unwrap();
    assert!(!refusal(&directory).is_empty());
    let empty = tempfile::tempdir().unwrap();
    assert!(refusal(empty.path()).contains("PG_VERSION"));
}

#[test]
fn sessions_end_once_a_postmaster_has_started() {
    let (_keep, directory) = demo_cluster();
    let server = stegodon().start(&directory, &[]).unwrap();
    let mut client = Client::connect(&server, "demo", "postgres").unwrap();
    client.query("SELECT 1").unwrap();
    std::fs::write(directory.join("postmaster.pid"), "1").unwrap();
    assert_eq!(client.query("SELECT count(*) FROM zoo.frozen").unwrap_err().state, "57P01");
}

#[test]
fn a_read_only_mount_is_served() {
    let (keep, directory) = demo_cluster();
    let before = fingerprint(&directory);
    // In a mount namespace of its own the directory becomes one that nothing can be written to.
    // (Where the root is no mount, as in a chroot, it cannot be made private, and need not be.)
    let script = "mount --make-rprivate / 2>/dev/null; mount --bind \"$1\" \"$1\" && mount -o remount,ro,bind \"$1\" && ! touch \"$1/x\" 2>/dev/null \
        && exec \"$2\" sql -D \"$1\" -d demo --csv -c 'SELECT count(*), max(id) FROM zoo.numbers'";
    let mut command = Command::new("unshare");
    let root = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap()) == 0;
    command.args(["-m", "--propagation", "unchanged"]).args(if root { None } else { Some("-r") });
    command.args(["sh", "-c", script, "sh"]).arg(&directory).arg(env!("CARGO_BIN_EXE_stegodon"));
    let output = command.output().expect("unshare runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(said.lines().count(), 2, "{said}");
    assert_eq!(fingerprint(&directory), before);
    drop(keep);
}
