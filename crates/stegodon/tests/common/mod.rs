//! A judge and Stegodon over copies of the demo cluster.
#![allow(clippy::unwrap_used, clippy::expect_used, dead_code, reason = "a test that cannot be set up must fail")]

pub mod score;

use std::path::{Path, PathBuf};

use stegodon_testkit::lab::{Client, Engine, Server};
use stegodon_testkit::{Duel, copy_cluster, demo_cluster, postgres, scratch};

/// The program under test.
pub fn stegodon() -> Engine {
    Engine::stegodon(env!("CARGO_BIN_EXE_stegodon"))
}

/// Two servers over two copies of one cluster: PostgreSQL writes hint bits into its own.
pub struct Arena {
    pub judge: Server,
    pub stegodon: Server,
    pub directory: PathBuf,
    _copies: Vec<tempfile::TempDir>,
}

impl Arena {
    /// Over the demo cluster.
    pub fn demo() -> Self {
        let (keep, directory) = demo_cluster();
        Self::over(&directory, vec![keep])
    }

    /// Over a freshly made PostgreSQL 18 cluster that `fill` has put databases into.
    pub fn fresh(fill: impl FnOnce(&Server)) -> Self {
        Self::of_version("18", fill)
    }

    /// Over a freshly made cluster of a version, judged by its own server.
    pub fn of_version(version: &str, fill: impl FnOnce(&Server)) -> Self {
        let keep = scratch();
        let directory = keep.path().join("fresh");
        let engine = postgres(version);
        engine.init(&directory, &[]).expect("initdb runs");
        let mut server =
            engine.start(&directory, &[("fsync", "off"), ("autovacuum", "off")]).expect("the judge starts");
        fill(&server);
        server.stop();
        Self::judged_by(&engine, &directory, vec![keep])
    }

    /// Over a stopped cluster of PostgreSQL 18.
    pub fn over(directory: &Path, copies: Vec<tempfile::TempDir>) -> Self {
        Self::judged_by(&postgres("18"), directory, copies)
    }

    fn judged_by(engine: &Engine, directory: &Path, mut copies: Vec<tempfile::TempDir>) -> Self {
        let (keep, own) = copy_cluster(directory);
        copies.push(keep);
        let judge = engine.start(&own, &[("fsync", "off")]).expect("the judge starts");
        let stegodon = stegodon().start(directory, &[]).expect("Stegodon starts");
        Self { judge, stegodon, directory: directory.to_owned(), _copies: copies }
    }

    /// A connection to each.
    pub fn duel(&self, database: &str) -> Duel {
        let connect = |server| Client::connect(server, database, "postgres").expect("a connection");
        Duel { judge: connect(&self.judge), stegodon: connect(&self.stegodon) }
    }
}

/// What psql prints for a file, with its answers unaligned and its errors' SQLSTATEs.
pub fn psql_file(server: &Server, database: &str, file: &Path) -> std::process::Output {
    std::process::Command::new("psql")
        .args(["-X", "-A", "-t", "-q", "-U", "postgres", "-d", database, "-p", &server.port().to_string()])
        .arg("-h")
        .arg(server.socket_directory())
        .arg("-f")
        .arg(file)
        .env("PGCLIENTENCODING", "UTF8")
        .output()
        .expect("psql runs")
}

/// Makes a database and runs files in it, of which every statement must succeed.
pub fn load(server: &Server, database: &str, file: &Path) {
    let errors = load_what_can_be(server, database, &[file]);
    assert!(!errors.contains("ERROR"), "{}: {errors}", file.display());
}

/// Makes a database and runs files in it, of which some statements are beyond the server's version. What psql said of them.
pub fn load_what_can_be(server: &Server, database: &str, files: &[&Path]) -> String {
    let mut client = Client::connect(server, "postgres", "postgres").expect("a connection");
    client.query(&format!("CREATE DATABASE {database}")).expect("a database");
    let mut said = String::new();
    for file in files {
        let output = psql_file(server, database, file);
        assert!(output.status.success(), "psql read all of {}", file.display());
        said += &String::from_utf8_lossy(&output.stderr);
    }
    said
}
