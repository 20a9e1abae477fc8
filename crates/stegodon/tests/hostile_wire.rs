//! Hostile clients: only the offender suffers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::stegodon;
use stegodon_testkit::demo_cluster;
use stegodon_testkit::hostile::{ATTACKS, Outcome, Target, run};
use stegodon_testkit::lab::Server;

fn target(server: &Server) -> Target {
    Target {
        socket_directory: server.socket_directory().display().to_string(),
        port: server.port(),
        pid: server.pid(),
        user: "postgres".to_owned(),
        database: "demo".to_owned(),
    }
}

fn attack(settings: &[(&str, &str)], storms: bool) {
    let (_keep, directory) = demo_cluster();
    let server = stegodon().start(&directory, settings).unwrap();
    let target = target(&server);
    let chosen = ATTACKS.iter().filter(|(name, _)| name.starts_with("storm") == storms);
    let outcomes: Vec<Outcome> = chosen.map(|(name, attack)| run(&target, name, *attack)).collect();
    let report: Vec<String> = outcomes.iter().map(Outcome::to_string).collect();
    println!("{}", report.join("\n"));
    assert!(outcomes.iter().all(Outcome::is_good), "{}\n{}", report.join("\n"), server.log());
}

#[test]
fn others_do_not_notice() {
    attack(&[("max_connections", "200")], false);
}

#[test]
fn thousands_are_served() {
    attack(&[("max_connections", "12000")], true);
}
