//! A client that does nothing wrong, and what it notices of others: its answers stay right, and come in time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::raw::{Raw, Target};

/// What a well-behaved client has noticed.
#[derive(Clone, Debug, Default)]
pub struct Noticed {
    /// How long its queries took, in order of length.
    pub queries: Vec<Duration>,
    /// How long it took to connect, to ask and to leave, likewise.
    pub visits: Vec<Duration>,
    /// Answers that were wrong, or none.
    pub failures: Vec<String>,
}

/// The value below which so many hundredths are.
pub fn percentile(sorted: &[Duration], hundredths: usize) -> Duration {
    let at = (sorted.len() * hundredths / 100).min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().unwrap_or_default()
}

impl std::fmt::Display for Noticed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ms = |sorted: &[Duration], p| percentile(sorted, p).as_secs_f64() * 1000.0;
        let (q, v) = (&self.queries, &self.visits);
        write!(f, "{} queries p50 {:.1} p99 {:.1} max {:.1} ms", q.len(), ms(q, 50), ms(q, 99), ms(q, 100))?;
        write!(f, ", {} visits p50 {:.1} max {:.1} ms", v.len(), ms(v, 50), ms(v, 100))?;
        self.failures.iter().take(3).try_for_each(|failure| write!(f, "\n    FAILED {failure}"))
    }
}

/// One that is asking.
pub struct Bystander {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Noticed>>,
    /// The process that serves its session.
    pub pid: i32,
}

/// What it asks, and what it must hear.
const QUERY: &str = "select sum(x) from generate_series(1, 100) x";
const ANSWER: &str = "5050";

fn ask(session: &mut Raw) -> Result<(), String> {
    match session.query(QUERY) {
        Ok(Ok(values)) if values == [ANSWER] => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

/// Measures how long something takes, and what is wrong with it.
fn timed(what: impl FnOnce() -> Result<(), String>, times: &mut Vec<Duration>, failures: &mut Vec<String>) {
    let start = Instant::now();
    match what() {
        Ok(()) => times.push(start.elapsed()),
        Err(failure) => failures.push(failure),
    }
}

impl Bystander {
    /// Starts asking: one session every ten milliseconds, and visitors one after another.
    pub fn start(target: &Target) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut session = Raw::session(target)?;
        let pid = session.key.0;
        let stopped = Arc::clone(&stop);
        let asking = std::thread::spawn(move || {
            let mut noticed = Noticed::default();
            while !stopped.load(Ordering::Relaxed) && noticed.failures.len() < 10 {
                timed(|| ask(&mut session), &mut noticed.queries, &mut noticed.failures);
                std::thread::sleep(Duration::from_millis(10));
            }
            noticed
        });
        let (stopped, target) = (Arc::clone(&stop), target.clone());
        let visiting = std::thread::spawn(move || {
            let mut noticed = Noticed::default();
            let visit = || Raw::session(&target).map_err(|e| format!("visit: {e}")).and_then(|mut s| ask(&mut s));
            while !stopped.load(Ordering::Relaxed) && noticed.failures.len() < 10 {
                timed(visit, &mut noticed.visits, &mut noticed.failures);
                std::thread::sleep(Duration::from_millis(100));
            }
            noticed
        });
        Ok(Self { stop, threads: vec![asking, visiting], pid })
    }

    /// Stops asking, and says what was noticed.
    pub fn stop(self) -> Noticed {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Noticed::default();
        for thread in self.threads {
            let noticed = thread.join().expect("a bystander does not panic");
            all.queries.extend(noticed.queries);
            all.visits.extend(noticed.visits);
            all.failures.extend(noticed.failures);
        }
        all.queries.sort_unstable();
        all.visits.sort_unstable();
        all
    }
}
