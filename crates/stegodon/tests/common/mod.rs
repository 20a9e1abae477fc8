//! A judge and Stegodon over copies of the demo cluster.
#![allow(clippy::unwrap_used, clippy::expect_used, dead_code, reason = "a test that cannot be set up must fail")]

use std::path::{Path, PathBuf};

use stegodon_testkit::lab::{Client, Engine, Server};
use stegodon_testkit::{Duel, copy_cluster, demo_cluster, postgres};

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

    /// Over a stopped cluster.
    pub fn over(directory: &Path, mut copies: Vec<tempfile::TempDir>) -> Self {
        let (keep, own) = copy_cluster(directory);
        copies.push(keep);
        let judge = postgres("18").start(&own, &[("fsync", "off")]).expect("the judge starts");
        let stegodon = stegodon().start(directory, &[]).expect("Stegodon starts");
        Self { judge, stegodon, directory: directory.to_owned(), _copies: copies }
    }

    /// A connection to each.
    pub fn duel(&self, database: &str) -> Duel {
        let connect = |server| Client::connect(server, database, "postgres").expect("a connection");
        Duel { judge: connect(&self.judge), stegodon: connect(&self.stegodon) }
    }
}
