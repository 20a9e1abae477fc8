//! Asking a server that may crash, hang or grow, and saying what it did.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use stegodon_lab::{Client, Engine, Failure, Server};

use super::subjects::Question;

/// How patient one is with a server: PostgreSQL does loop for ever over some damage, deaf even to its own clock.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// How long a statement may take by the server's own clock, in milliseconds.
    pub statement_ms: u32,
    /// How long before the server is killed.
    pub hang: Duration,
    /// How long it may take to answer a new client after a crash of one of its processes.
    pub recovery: Duration,
}

/// What a question brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Rows, as a hash and their number.
    Rows {
        /// How many.
        count: usize,
        /// Of all values, whatever the rows' order.
        hash: u64,
    },
    /// An error.
    Error(Failure),
}

impl Outcome {
    fn of(answer: Result<stegodon_lab::Answer, Failure>) -> Self {
        use std::hash::{DefaultHasher, Hash, Hasher};
        match answer {
            Ok(mut answer) => {
                // Equal keys come in any order.
                answer.rows.sort();
                let mut hasher = DefaultHasher::new();
                answer.rows.hash(&mut hasher);
                Outcome::Rows { count: answer.rows.len(), hash: hasher.finish() }
            }
            Err(failure) => Outcome::Error(failure),
        }
    }

    /// The SQLSTATE, if it is an error.
    pub fn state(&self) -> Option<&str> {
        match self {
            Outcome::Rows { .. } => None,
            Outcome::Error(failure) => Some(&failure.state),
        }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Outcome::Rows { count, hash } => write!(f, "{count} rows ({:04x})", hash & 0xFFFF),
            Outcome::Error(failure) => write!(f, "{failure}"),
        }
    }
}

/// Kills a server that takes too long over a question.
struct Watch {
    since: Arc<Mutex<Option<Instant>>>,
    hung: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
}

impl Watch {
    fn over(pid: u32, hang: Duration) -> Self {
        let (since, hung, over) = (Arc::new(Mutex::new(None::<Instant>)), Arc::default(), Arc::default());
        let watch = Watch { since: Arc::clone(&since), hung: Arc::clone(&hung), over: Arc::clone(&over) };
        std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                let late = since.lock().expect("a lock").is_some_and(|since| since.elapsed() > hang);
                if late && !hung.swap(true, Ordering::Relaxed) {
                    kill_family(pid);
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        watch
    }

    fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        *self.since.lock().expect("a lock") = Some(Instant::now());
        let result = work();
        *self.since.lock().expect("a lock") = None;
        result
    }
}

/// Whether there is a process that has not ended.
fn is_running(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

/// Kills a process and its children: a backend that loops does not notice that its postmaster is gone.
fn kill_family(pid: u32) {
    let mut family = vec![pid.to_string()];
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // pid (name) state ppid …; the name may hold anything.
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        if parent == Some(pid) {
            family.extend(entry.file_name().into_string().ok());
        }
    }
    let _ = Command::new("sh").args(["-c", "kill -KILL \"$@\" 2>/dev/null", "sh"]).args(family).status();
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// A server over a damaged directory.
pub struct Asked {
    server: Server,
    watch: Watch,
    client: Option<Client>,
    patience: Patience,
}

impl Asked {
    /// Starts it; the message of its refusal otherwise.
    pub fn start(
        engine: &Engine,
        directory: &std::path::Path,
        settings: &[(&str, &str)],
        patience: Patience,
    ) -> Result<Self, String> {
        match engine.start(directory, settings) {
            Ok(server) => {
                let watch = Watch::over(server.pid(), patience.hang);
                Ok(Asked { server, watch, client: None, patience })
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// A connection of the caller's own.
    pub fn connect(&self) -> Result<Client, Failure> {
        Client::connect(&self.server, "demo", "postgres")
    }

    /// Asks on a connection of its own for each subject: see [`Asked::hang_up`].
    pub fn ask(&mut self, question: &Question) -> Outcome {
        let Asked { server, watch, client, patience } = self;
        watch.during(|| {
            if client.is_none() {
                match Client::connect(server, "demo", "postgres") {
                    Ok(connected) => *client = Some(connected),
                    Err(failure) => return Outcome::Error(failure),
                }
            }
            let Some(connected) = client else { return Outcome::Error(no_connection()) };
            let mut settings = format!("RESET ALL; SET statement_timeout = {}; ", patience.statement_ms);
            for setting in question.settings {
                settings.extend(["SET ", setting, "; "]);
            }
            let outcome = match connected.query(&settings) {
                Ok(_) => Outcome::of(connected.query(&question.sql)),
                Err(failure) => Outcome::Error(failure),
            };
            if outcome.state().is_some_and(|state| state.starts_with("08") || state.starts_with("57P")) {
                *client = None;
            }
            outcome
        })
    }

    /// The next question has a new connection.
    pub fn hang_up(&mut self) {
        self.client = None;
    }

    /// Whether it still answers a new client, if need be after some seconds (PostgreSQL starts its processes anew).
    pub fn is_alive(&mut self) -> bool {
        let until = Instant::now() + self.patience.recovery;
        loop {
            let answer = self.watch.during(|| Client::connect(&self.server, "demo", "postgres")?.query("SELECT 1"));
            match answer {
                Ok(answer) => return answer.rows.len() == 1,
                Err(_) if Instant::now() < until => std::thread::sleep(Duration::from_millis(100)),
                Err(_) => return false,
            }
        }
    }

    /// Whether it had to be killed.
    pub fn hung(&self) -> bool {
        self.watch.hung.load(Ordering::Relaxed)
    }

    /// The most memory it has had, in kilobytes.
    pub fn memory_peak_kb(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.server.pid())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        line.and_then(|line| line.split_whitespace().next()).and_then(|kb| kb.parse().ok()).unwrap_or(0)
    }

    /// Its log.
    pub fn log(&self) -> String {
        self.server.log()
    }

    /// Ends it at once, with every process of it; in PostgreSQL's immediate mode, so that its shared memory goes too.
    pub fn kill(&mut self) {
        self.client = None;
        let _ = Command::new("sh").args(["-c", "kill -QUIT \"$0\"", &self.server.pid().to_string()]).status();
        let until = Instant::now() + Duration::from_secs(3);
        while Instant::now() < until && is_running(self.server.pid()) {
            std::thread::sleep(Duration::from_millis(5));
        }
        kill_family(self.server.pid());
        self.server.kill();
    }

    /// Ends it in order.
    pub fn stop(&mut self) {
        self.client = None;
        self.server.stop();
    }
}

fn no_connection() -> Failure {
    Failure { state: "08000".to_owned(), message: "no connection".to_owned() }
}
