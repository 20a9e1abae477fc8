//! `evidence`: what issue A2 demands of speed and memory, measured against a real PostgreSQL on the same data.
//!
//! `evidence POSTGRES_BIN POSTGRES_DIR STEGODON STEGODON_DIR OUT.csv PAIRS`. `scripts/evidence` makes the two directories (copies
//! of one cluster) and calls it. Each query's answers are compared, both engines are prewarmed and the pages that they still
//! read are counted; a query that reads is not measured.
#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use stegodon_lab::pairs::{measure, ratio};
use stegodon_lab::{Client, Engine, Server};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// What both engines are started with.
const SETTINGS: [(&str, &str); 4] =
    [("shared_buffers", "1GB"), ("jit", "off"), ("max_parallel_workers_per_gather", "0"), ("autovacuum", "off")];
/// The forced bitmap scan of source 004.
const FORCED: &str = "SET enable_seqscan = off; SET enable_indexscan = off";
const BITMAP: &str = "SELECT * FROM bitmap_uniform WHERE (a BETWEEN -33 AND 10015) OFFSET 1000000";

/// What is measured: settings, the query, how often it is run in one measurement, and the least ratio.
///
/// LIMIT 1 is to come no later than PostgreSQL's: one statement a message, so that each is a round trip, as a user waits for it.
const CELLS: [(&str, &str, usize, f64); 9] = [
    ("", "SELECT count(*) FROM bitmap_uniform", 1, 3.0),
    ("SET enable_indexonlyscan = off", "SELECT count(*) FROM bitmap_uniform", 1, 3.0),
    ("", "SELECT sum(a), sum(b) FROM bitmap_uniform", 1, 3.0),
    ("", "SELECT count(*) FROM bitmap_uniform WHERE b % 10 = 3", 1, 3.0),
    ("", "SELECT a, count(*) FROM bitmap_uniform GROUP BY a ORDER BY 2 DESC, 1 LIMIT 1", 1, 3.0),
    (FORCED, BITMAP, 1, 3.0),
    ("", "SELECT * FROM bitmap_uniform LIMIT 1", 200, 1.0),
    ("", "SELECT * FROM bitmap_uniform WHERE b % 10 = 3 LIMIT 1", 200, 1.0),
    (FORCED, "SELECT * FROM bitmap_uniform WHERE a = 5 LIMIT 1", 200, 1.0),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [bin, judge, program, directory, out, pairs] = arguments.as_slice() else {
        eprintln!("usage: evidence POSTGRES_BIN POSTGRES_DIR STEGODON STEGODON_DIR OUT.csv PAIRS");
        return ExitCode::from(2);
    };
    let run = || -> Outcome<bool> {
        let postgres = Engine::postgres(bin).start(judge.as_ref(), &SETTINGS)?;
        let stegodon = Engine::stegodon(program).start(directory.as_ref(), &SETTINGS)?;
        let (mut rows, mut met) = speed(&postgres, &stegodon, pairs.parse()?)?;
        drop(stegodon);
        let (peak_kb, bound_kb) = memory(&Engine::stegodon(program), directory.as_ref())?;
        println!("{peak_kb} kB at most for full scans of ten times shared_buffers, at most {bound_kb} wanted");
        writeln!(
            rows,
            "\"shared_buffers = {SMALL_POOL}\",\"peak RssAnon + RssShmem in kB\",1,wanted {bound_kb},,{peak_kb}"
        )?;
        met &= peak_kb <= bound_kb;
        write(out.as_ref(), &postgres, &rows)?;
        Ok(met)
    };
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("evidence: {error}");
            ExitCode::from(2)
        }
    }
}

/// Measures all cells. The lines of the table, and whether every bound is met.
fn speed(postgres: &Server, stegodon: &Server, pairs: usize) -> Outcome<(String, bool)> {
    let connect = |server| -> Outcome<Client> {
        let mut client = Client::connect(server, "demo", "postgres")?;
        // A bitmap scan keeps what it reads in the pool; a sequential scan of PostgreSQL's would not.
        client.query(&format!("{FORCED}; SET work_mem = '64MB'; {BITMAP}; RESET ALL"))?;
        Ok(client)
    };
    let (mut a, mut b) = (connect(postgres)?, connect(stegodon)?);
    let mut rows = String::new();
    let mut met = true;
    for (settings, query, repeated, least) in CELLS {
        for client in [&mut a, &mut b] {
            client.query(&format!("RESET ALL; {settings}"))?;
            client.query(query)?;
            let read = pages_read(client, query)?;
            if read > 0 {
                return Err(format!("{read} pages are not in the pool for: {query}").into());
            }
        }
        let (ours, theirs) = (b.query(query)?.rows, a.query(query)?.rows);
        if ours != theirs {
            return Err(format!("the answers differ: {query}").into());
        }
        let run = |client: &mut Client| (0..repeated).try_for_each(|_| client.query(query).map(drop));
        let measured = measure(pairs, || run(&mut a), || run(&mut b))?;
        let Some(found) = ratio(&measured) else { return Err("no pairs".into()) };
        met &= found.low >= least;
        println!(
            "{:>5.2} times ({:.2} to {:.2}, at least {least} wanted)  {settings}{}{query}",
            found.mean,
            found.low,
            found.high,
            if settings.is_empty() { "" } else { "; " }
        );
        for (number, pair) in measured.iter().enumerate() {
            let (a_us, b_us) = (pair.a.as_micros(), pair.b.as_micros());
            writeln!(rows, "\"{settings}\",\"{query}\",{repeated},{number},{a_us},{b_us}")?;
        }
        writeln!(
            rows,
            "\"{settings}\",\"{query}\",{repeated},ratio {:.3} low {:.3} high {:.3} wanted {least},,",
            found.mean, found.low, found.high
        )?;
    }
    Ok((rows, met))
}

/// A tenth of the table, in PostgreSQL's unit and in kB.
const SMALL_POOL: &str = "32MB";
const SMALL_POOL_KB: u64 = 32 << 10;
const FULL_SCANS: [&str; 4] = [
    "SELECT count(*), sum(a), sum(b), min(c), max(c) FROM bitmap_uniform",
    "SELECT count(*) FROM bitmap_linear WHERE b % 10 = 3",
    "SELECT a, count(*) FROM bitmap_cyclic GROUP BY a ORDER BY 2 DESC, 1 LIMIT 1",
    BITMAP,
];

/// The most memory that full scans take through a small pool, and what they may take: the pool, `work_mem` and 64 MB.
fn memory(stegodon: &Engine, directory: &Path) -> Outcome<(u64, u64)> {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    let server = stegodon.start(directory, &[("shared_buffers", SMALL_POOL), ("work_mem", "4MB")])?;
    let (done, peak_kb) = (AtomicBool::new(false), AtomicU64::new(0));
    let pid = server.pid();
    std::thread::scope(|scope| {
        let watch = || {
            while !done.load(Ordering::Relaxed) {
                peak_kb.fetch_max(resident_kb(pid), Ordering::Relaxed);
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        };
        scope.spawn(watch);
        let run = || -> Outcome<()> {
            let mut client = Client::connect(&server, "demo", "postgres")?;
            for settings in ["RESET ALL", FORCED, "RESET ALL; SET max_parallel_workers_per_gather = 0"] {
                client.query(settings)?;
                for query in FULL_SCANS {
                    client.query(query)?;
                }
            }
            Ok(())
        };
        let outcome = run();
        done.store(true, Ordering::Relaxed);
        outcome
    })?;
    Ok((peak_kb.into_inner(), SMALL_POOL_KB + (4 << 10) + (64 << 10)))
}

/// What a process has in memory of its own.
fn resident_kb(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    field("RssAnon:").unwrap_or(0) + field("RssShmem:").unwrap_or(0)
}

/// How many pages a query has to read.
fn pages_read(client: &mut Client, query: &str) -> Outcome<u64> {
    let plan = client.query(&format!("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF) {query}"))?;
    let lines = plan.rows.iter().flatten().flatten();
    let read = |line: &String| line.split(" read=").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
    Ok(lines.filter_map(read).max().unwrap_or(0))
}

fn write(out: &Path, postgres: &Server, rows: &str) -> Outcome<()> {
    let mut client = Client::connect(postgres, "demo", "postgres")?;
    let version = client.query("SELECT version()")?.rows.into_iter().flatten().flatten().next();
    let settings = SETTINGS.map(|(name, value)| format!("{name}={value}")).join(" ");
    let machine = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let machine =
        machine.lines().find_map(|l| l.strip_prefix("model name")).unwrap_or("").trim_start_matches(['\t', ':', ' ']);
    let commit = std::env::var("STEGODON_COMMIT").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let text = format!(
        "# a: {}; b: Stegodon {commit}, release build; {cores} cores of {machine}; {settings}\n\
         settings,query,repeated,pair,a_us,b_us\n{rows}",
        version.unwrap_or_default()
    );
    if let Some(parent) = out.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::fs::write(out, text)?;
    Ok(())
}
