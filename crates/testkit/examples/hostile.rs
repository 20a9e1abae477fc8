//! Runs hostile clients against a server that is there already:
//! `cargo run -p stegodon-testkit --example hostile -- SOCKET_DIRECTORY PORT PID USER DATABASE [ATTACK …]`
//! An attack may be given by the beginning of its name. With `STEGODON_SHOW_ATTACKS` set more is told.

use std::process::ExitCode;

use stegodon_testkit::hostile::{ATTACKS, Target, run};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [socket_directory, port, pid, user, database, names @ ..] = arguments.as_slice() else {
        eprintln!("usage: hostile SOCKET_DIRECTORY PORT PID USER DATABASE [ATTACK …]");
        return ExitCode::FAILURE;
    };
    let (Ok(port), Ok(pid)) = (port.parse(), pid.parse()) else { return ExitCode::FAILURE };
    let target = Target {
        socket_directory: socket_directory.clone(),
        port,
        pid,
        user: user.clone(),
        database: database.clone(),
    };
    let mut is_good = true;
    for (name, attack) in ATTACKS {
        if names.is_empty() || names.iter().any(|n| name.starts_with(n.as_str())) {
            let outcome = run(&target, name, *attack);
            println!("{outcome}");
            is_good &= outcome.is_good();
        }
    }
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
