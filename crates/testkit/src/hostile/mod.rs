//! Hostile clients: what they do, and who suffers.
//!
//! [`ATTACKS`] are run one after another against a server ([`Target`]) while a [`Bystander`] asks and visits. [`run`] says what
//! each has done to the bystander's answers and to the server's memory; an attack itself fails where the server's reaction is
//! not one of those that the protocol allows: an error, or the connection's end, in time.

mod bystander;
mod floods;
mod messages;
mod raw;

use std::time::Instant;

pub use bystander::{Bystander, Noticed, percentile};
pub use raw::{Raw, Target};

/// An attack: what is wrong with the server's reaction, if anything.
pub type Attack = fn(&Target) -> Result<(), String>;

/// The attacks, by name. Those that need a server with many connections have names that begin with `storm`.
pub const ATTACKS: &[(&str, Attack)] = &[
    ("lengths_that_lie", messages::lengths_that_lie),
    ("counts_that_lie", messages::counts_that_lie),
    ("no_message_runs_into_the_next", messages::no_message_runs_into_the_next),
    ("kinds_that_are_none", messages::kinds_that_are_none),
    ("copy_without_copy", messages::copy_without_copy),
    ("startup_noise", messages::startup_noise),
    ("encryption_requests", messages::encryption_requests),
    ("random_messages", messages::random_messages),
    ("guessing_names", messages::guessing_names),
    ("keys_of_others", messages::keys_of_others),
    ("many_parameters", floods::many_parameters),
    ("deep_and_wide_statements", floods::deep_and_wide_statements),
    ("half_a_startup", floods::half_a_startup),
    ("half_a_message", floods::half_a_message),
    ("half_a_large_message", floods::half_a_large_message),
    ("never_reading", floods::never_reading),
    ("pipeline_without_reading", floods::pipeline_without_reading),
    ("hoard_of_statements", floods::hoard_of_statements),
    ("hoard_of_portals", floods::hoard_of_portals),
    ("come_and_go", floods::come_and_go),
    ("storm_busy", floods::storm_busy),
    ("storm_idle", floods::storm_idle),
];

/// What became of an attack.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The attack.
    pub name: &'static str,
    /// What is wrong with the server's reaction, if anything.
    pub result: Result<(), String>,
    /// What the bystander has noticed.
    pub noticed: Noticed,
    /// The server's own memory before and after, in kB; 0 where it is gone.
    pub memory_kb: (u64, u64),
    /// How long it took.
    pub seconds: f64,
}

impl Outcome {
    /// Whether only the offender has suffered.
    pub fn is_good(&self) -> bool {
        self.result.is_ok() && self.noticed.failures.is_empty() && self.memory_kb.1 > 0
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let verdict = if self.is_good() { "ok" } else { "BAD" };
        let (before, after) = (self.memory_kb.0 / 1024, self.memory_kb.1 / 1024);
        write!(f, "{verdict:3} {:30} {:5.1} s  {before} -> {after} MB  {}", self.name, self.seconds, self.noticed)?;
        if let Err(wrong) = &self.result {
            write!(f, "\n    WRONG {wrong}")?;
        }
        Ok(())
    }
}

/// Runs an attack beside a bystander.
pub fn run(target: &Target, name: &'static str, attack: Attack) -> Outcome {
    let before = anonymous_memory_kb(target.pid);
    let started = Instant::now();
    let bystander = Bystander::start(target).map_err(|e| format!("the server does not answer before the attack: {e}"));
    let (result, noticed) = match bystander {
        Err(why) => (Err(why), Noticed::default()),
        Ok(bystander) => {
            let result = attack(target);
            // What an attack leaves behind shows soon after.
            std::thread::sleep(std::time::Duration::from_millis(300));
            (result, bystander.stop())
        }
    };
    let after = anonymous_memory_kb(target.pid);
    Outcome { name, result, noticed, memory_kb: (before, after), seconds: started.elapsed().as_secs_f64() }
}

/// A process's own memory (`RssAnon`); 0 where it is gone.
pub fn anonymous_memory_kb(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    line.and_then(|l| l.split_whitespace().next()).and_then(|n| n.parse().ok()).unwrap_or(0)
}
