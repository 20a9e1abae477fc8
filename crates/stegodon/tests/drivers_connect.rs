//! psql, pgbench, psycopg and tokio-postgres connect, run and fetch without a special case.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{Arena, stegodon};
use stegodon_testkit::demo_cluster;
use stegodon_testkit::lab::{Client, Server};

fn serve() -> (tempfile::TempDir, Server) {
    let (keep, directory) = demo_cluster();
    let server = stegodon().start(&directory, &[]).unwrap();
    (keep, server)
}

fn psql(server: &Server, arguments: &[&str]) -> (bool, String) {
    let output = Command::new("psql")
        .args(["-X", "-A", "-t", "-q", "-v", "VERBOSITY=sqlstate", "-U", "postgres", "-d", "demo"])
        .arg("-h")
        .arg(server.socket_directory())
        .args(["-p", &server.port().to_string()])
        .args(arguments)
        .output()
        .expect("psql runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), text)
}

/// pgbench is beside Debian's server where it is not on the path.
fn pgbench() -> PathBuf {
    let debian = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let beside = debian.map(|d| d.path().join("bin/pgbench")).find(|p| p.exists());
    beside.unwrap_or_else(|| PathBuf::from("pgbench"))
}

#[test]
fn psql_runs_transactions_cursors_and_settings() {
    let (_keep, server) = serve();
    let script = "BEGIN; SAVEPOINT a; SELECT 1/0; SELECT 1; ROLLBACK TO a; SELECT 2; COMMIT; SHOW work_mem;
        SET work_mem = '8MB'; SHOW work_mem; BEGIN; SET LOCAL work_mem = '1MB'; SHOW work_mem; ROLLBACK; SHOW work_mem;
        PREPARE p (int) AS SELECT $1 + 1; EXECUTE p(41); DEALLOCATE p;
        BEGIN; DECLARE c CURSOR FOR SELECT id FROM zoo.frozen ORDER BY id; FETCH 2 FROM c; MOVE 3 FROM c; FETCH c; CLOSE c; COMMIT;";
    let (_, said) = psql(&server, &["-c", "SELECT 'hello'", "-f", "/dev/null"]);
    assert_eq!(said, "hello\n");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), script).unwrap();
    let (_, said) = psql(&server, &["-f", &file.path().display().to_string()]);
    let plain: Vec<&str> = said.lines().filter(|l| !l.contains("ERROR")).collect();
    assert_eq!(plain, ["2", "4MB", "8MB", "1MB", "8MB", "42", "1", "2", "6"], "{said}");
    assert!(said.contains("22012") && said.contains("25P02"), "{said}");
}

#[test]
fn pgbench_selects_in_every_mode() {
    let (_keep, server) = serve();
    for mode in ["simple", "extended", "prepared"] {
        let output = Command::new(pgbench())
            .args(["-n", "-S", "-c", "4", "-t", "25", "-M", mode, "-U", "postgres"])
            .arg("-h")
            .arg(server.socket_directory())
            .args(["-p", &server.port().to_string(), "demo"])
            .output()
            .expect("pgbench runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text.contains("100/100"), "{mode}: {text}");
    }
}

#[test]
fn psycopg_gets_from_stegodon_what_it_gets_from_postgresql() {
    let arena = Arena::demo();
    let run = |server: &Server| {
        let output = Command::new("/usr/bin/python3")
            .arg("tests/psycopg_client.py")
            .arg(server.socket_directory())
            .arg(server.port().to_string())
            .output()
            .expect("python3 runs");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{errors}");
        String::from_utf8(output.stdout).unwrap()
    };
    let (judge, stegodon) = (run(&arena.judge), run(&arena.stegodon));
    assert!(judge.lines().count() > 30, "{judge}");
    for (judge, stegodon) in judge.lines().zip(stegodon.lines()) {
        assert_eq!(judge, stegodon);
    }
    assert_eq!(judge.lines().count(), stegodon.lines().count());
}

#[test]
fn passwords_open_localhost() {
    let arena = Arena::fresh(|server| {
        let mut client = Client::connect(server, "postgres", "postgres").unwrap();
        for sql in [
            "CREATE ROLE ann LOGIN PASSWORD 'right \u{e9}'",
            "CREATE ROLE bob LOGIN",
            "CREATE ROLE late LOGIN PASSWORD 'x' VALID UNTIL '2001-01-01'",
            "CREATE ROLE nologin PASSWORD 'x'",
        ] {
            client.query(sql).unwrap();
        }
    });
    let connect = |user: &str, password: &str, database: &str| {
        let output = Command::new("psql")
            .args(["-X", "-A", "-t", "-h", "localhost", "-U", user, "-d", database, "-c", "SELECT current_user"])
            .args(["-p", &arena.stegodon.port().to_string()])
            .env("PGPASSWORD", password)
            .env("PGSSLMODE", "disable")
            .output()
            .expect("psql runs");
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    assert_eq!(connect("ann", "right \u{e9}", "postgres"), "ann\n");
    for (user, password) in [("ann", "wrong"), ("bob", "x"), ("late", "x"), ("nobody", "x"), ("postgres", "x")] {
        let said = connect(user, password, "postgres");
        assert!(said.contains(&format!("password authentication failed for user \"{user}\"")), "{said}");
    }
    assert!(connect("nologin", "x", "postgres").contains("is not permitted to log in"));
    assert!(connect("ann", "right \u{e9}", "nowhere").contains("does not exist"));
    assert!(connect("ann", "wrong", "nowhere").contains("password authentication failed"));
}

#[test]
fn one_hundred_partitions_are_searched() {
    let (_keep, server) = serve();
    let mut client = Client::connect(&server, "demo", "postgres").unwrap();
    let sql = "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT count(*) FROM pgbench_accounts WHERE bid = 0";
    let rows = client.query(sql).unwrap().rows;
    let searches = rows.iter().flatten().flatten().filter(|l| l.contains("Index Searches: 1")).count();
    assert_eq!(searches, 100);
}

#[test]
fn a_timeout_ends_a_long_query() {
    let (_keep, server) = serve();
    let mut client = Client::connect(&server, "demo", "postgres").unwrap();
    client.query("SET statement_timeout = '200ms'").unwrap();
    // Wherever the time goes: a nested loop, under EXPLAIN ANALYZE, a correlated subquery, a window that never yields.
    for long in [
        "SELECT count(*) FROM zoo.numbers a, zoo.numbers b, zoo.numbers c WHERE a.id + b.id + c.id = 0",
        "EXPLAIN ANALYZE SELECT count(*) FROM zoo.numbers a, zoo.numbers b, zoo.numbers c WHERE a.id + b.id + c.id = 0",
        "SELECT sum((SELECT count(*) FROM bitmap_uniform b WHERE b.b < a.b AND b.c < a.c)) FROM bitmap_uniform a",
        "SELECT string_agg(c, ',') OVER (ORDER BY b ROWS BETWEEN 5000 PRECEDING AND 5000 FOLLOWING EXCLUDE TIES) FROM bitmap_uniform",
        "SELECT count(*) FROM bitmap_uniform a, LATERAL (SELECT count(*) FROM bitmap_uniform b WHERE b.c < a.c OFFSET 0) x",
    ] {
        assert_eq!(client.query(long).unwrap_err().state, "57014", "{long}");
        client.query("SELECT 1").expect("the session goes on");
    }
}

#[test]
fn sessions_that_sleep_or_compute_leave_room_for_others() {
    let (_keep, server) = serve();
    let ended = AtomicUsize::new(0);
    let long = [
        "SELECT pg_sleep(60)",
        "SELECT max(abalance) OVER (ORDER BY aid ROWS BETWEEN 50000 PRECEDING AND 50000 FOLLOWING EXCLUDE TIES) FROM pgbench_accounts",
    ];
    std::thread::scope(|scope| {
        for sql in long.iter().cycle().take(12) {
            let (server, ended) = (&server, &ended);
            scope.spawn(move || {
                let mut client = Client::connect(server, "demo", "postgres").unwrap();
                client.query("SET statement_timeout = '8s'").unwrap();
                assert_eq!(client.query(sql).unwrap_err().state, "57014", "{sql}");
                ended.fetch_add(1, Ordering::SeqCst);
            });
        }
        std::thread::sleep(std::time::Duration::from_secs(2));
        let mut client = Client::connect(&server, "demo", "postgres").unwrap();
        client.query("SELECT count(*) FROM zoo.numbers").unwrap();
        assert_eq!(ended.load(Ordering::SeqCst), 0, "another session waited for those to end");
    });
}
