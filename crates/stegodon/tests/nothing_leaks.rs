//! Queries, cancels, disconnects and timeouts at random, in a pool of 1 MB: afterwards no pin, task, file or memory is left,
//! and nothing waited for ever. The server runs within the test, so that its insides can be counted.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use stegodon::{Cluster, Endpoints};
use stegodon_testkit::{demo_cluster, scratch};
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

/// What nobody waits longer for: beyond it, something is stuck.
const PATIENCE: Duration = Duration::from_secs(90);
const CLIENTS: usize = 24;
const ACTIONS: usize = 5;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % bound
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len() as u64) as usize]
    }
}

const SETTINGS: [&str; 6] = [
    "RESET ALL",
    "SET enable_seqscan = off; SET enable_indexscan = off; SET enable_indexonlyscan = off",
    "SET enable_seqscan = off; SET enable_bitmapscan = off",
    "SET max_parallel_workers_per_gather = 4; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0",
    "SET work_mem = '64kB'; SET enable_hashagg = off",
    "SET work_mem = '64kB'; SET enable_sort = off; SET effective_io_concurrency = 1",
];

const QUERIES: [&str; 10] = [
    "SELECT count(*), sum(a), sum(b), min(c), max(c) FROM bitmap_uniform",
    "SELECT count(*), sum(b) FROM bitmap_cyclic WHERE a BETWEEN 10 AND 60",
    "SELECT count(*) FROM bitmap_uniform u JOIN bitmap_linear l USING (b) WHERE u.a < 50",
    "SELECT a, count(*) FROM bitmap_linear_fuzz GROUP BY a ORDER BY 2 DESC, 1 LIMIT 3",
    "SELECT count(*) FROM pgbench_accounts WHERE bid = 1",
    "SELECT * FROM bitmap_cyclic_fuzz WHERE a < 90 ORDER BY c OFFSET 9000 LIMIT 3",
    "SELECT sum(x) FROM (SELECT a + row_number() OVER (PARTITION BY a ORDER BY b) AS x FROM bitmap_uniform) s",
    "SELECT count(*) FROM bitmap_uniform u WHERE EXISTS (SELECT FROM bitmap_linear l WHERE l.a = u.a AND l.b < u.b)",
    "SELECT count(*), sum(length(c)) FROM bitmap_linear WHERE c LIKE '%a%' OR b IN (1, 500, 900)",
    "SELECT u.a, l.s FROM bitmap_uniform u, LATERAL (SELECT sum(b) AS s FROM bitmap_linear WHERE a = u.a) l WHERE u.b < 20 ORDER BY u.b",
];

async fn connect(sockets: &Path, port: u16) -> (Client, tokio::task::JoinHandle<()>) {
    let mut config = Config::new();
    config.host_path(sockets).port(port).dbname("demo").user("postgres");
    let (client, connection) = config.connect(NoTls).await.expect("a connection");
    (client, tokio::spawn(async move { drop(connection.await) }))
}

fn rows(messages: Vec<SimpleQueryMessage>) -> Vec<Vec<Option<String>>> {
    let row = |message| match message {
        SimpleQueryMessage::Row(row) => Some((0..row.len()).map(|i| row.get(i).map(str::to_owned)).collect()),
        _ => None,
    };
    messages.into_iter().filter_map(row).collect()
}

type Answers = Vec<Vec<Vec<Option<String>>>>;

/// One client's life.
async fn live(mut random: Random, sockets: Arc<Path>, port: u16, answers: Arc<Answers>) {
    let (client, connection) = connect(&sockets, port).await;
    for _ in 0..ACTIONS {
        client.batch_execute(random.pick(&SETTINGS)).await.expect("settings");
        let at = random.below(QUERIES.len() as u64) as usize;
        let query = QUERIES[at];
        let check = |outcome: Result<Vec<SimpleQueryMessage>, tokio_postgres::Error>, may_stop: bool| match outcome {
            Ok(messages) => assert_eq!(rows(messages), answers[at], "{query}"),
            Err(error) => {
                let state = error.code().map_or("08000", |code| code.code()).to_owned();
                assert!(may_stop && state == "57014", "{query}: {state} {error:?}");
            }
        };
        match random.below(6) {
            0 => {
                let cancel = client.cancel_token();
                let after = Duration::from_millis(random.below(25));
                let cancelled = async {
                    tokio::time::sleep(after).await;
                    cancel.cancel_query(NoTls).await.expect("a cancel request");
                };
                let (outcome, ()) = tokio::join!(client.simple_query(query), cancelled);
                check(outcome, true);
                // A request that came late must not hit the next statement: wait until the server has dealt with it.
                tokio::time::sleep(Duration::from_millis(20)).await;
                let _ = client.simple_query("SELECT 1").await;
            }
            1 => {
                client
                    .batch_execute(&format!("SET statement_timeout = {}", 1 + random.below(25)))
                    .await
                    .expect("a setting");
                check(client.simple_query(query).await, true);
                let _ = client.batch_execute("SET statement_timeout = 0").await;
                client.batch_execute("SET statement_timeout = 0").await.expect("a setting");
            }
            2 => {
                // Gone in the middle.
                let gone = Duration::from_millis(random.below(25));
                let _ = tokio::time::timeout(gone, client.simple_query(query)).await;
                connection.abort();
                return;
            }
            3 => {
                let cursor = format!("BEGIN; DECLARE c CURSOR FOR {query}; FETCH 2 FROM c");
                client.batch_execute(&cursor).await.unwrap_or_else(|e| panic!("{query}: {e:?}"));
                if random.below(2) == 0 {
                    client.batch_execute("COMMIT").await.expect("a commit");
                } else {
                    connection.abort();
                    return;
                }
            }
            _ => check(client.simple_query(query).await, false),
        }
    }
    drop(client);
    let _ = connection.await;
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|l| l.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    field("RssAnon:").unwrap_or(0) + field("RssShmem:").unwrap_or(0)
}

fn mix(runs: u64) {
    let seed = std::env::var("SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(20_261_201_u64);
    println!("seed {seed} (SEED=…)");
    let (_keep, directory) = demo_cluster();
    let sockets = scratch();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let settings = [
            ("shared_buffers", "1MB".to_owned()),
            ("port", (20_000 + std::process::id() % 20_000).to_string()),
            ("unix_socket_directories", sockets.path().display().to_string()),
            ("listen_addresses", String::new()),
        ];
        let settings: Vec<(String, String)> = settings.map(|(n, v)| (n.to_owned(), v)).into();
        let cluster = Cluster::open(&directory, &settings).expect("the cluster opens");
        let endpoints = Endpoints::open(&cluster).await.expect("it listens");
        let port = endpoints.port();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let server = tokio::spawn(stegodon::serve(Arc::clone(&cluster), endpoints, async { drop(stopped.await) }));
        let (client, _) = connect(sockets.path(), port).await;
        let mut answers = Vec::new();
        for query in QUERIES {
            answers.push(rows(client.simple_query(query).await.unwrap_or_else(|e| panic!("{query}: {e:?}"))));
        }
        let answers = Arc::new(answers);
        let path: Arc<Path> = sockets.path().into();
        let metrics = tokio::runtime::Handle::current().metrics();
        let (files, tasks) = (open_files(), metrics.num_alive_tasks());
        let mut settled_kb = 0;
        for run in 0..runs {
            let clients: Vec<_> = (0..CLIENTS as u64)
                .map(|client| {
                    let random = Random(seed ^ (run * 1000 + client + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
                    tokio::spawn(live(random, Arc::clone(&path), port, Arc::clone(&answers)))
                })
                .collect();
            for client in clients {
                tokio::time::timeout(PATIENCE, client)
                    .await
                    .expect("no client waits for ever")
                    .expect("no client fails");
            }
            // Sessions whose clients are gone notice it and end.
            let start = Instant::now();
            let at_rest = || {
                let pins = cluster.storage().pool().pinned_count();
                (pins, metrics.num_alive_tasks().saturating_sub(tasks), open_files().saturating_sub(files))
            };
            while at_rest() != (0, 0, 0) {
                assert!(start.elapsed() < PATIENCE, "run {run}: left over (pins, tasks, files): {:?}", at_rest());
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            // The allocator keeps some of what the first runs needed at most.
            if run == runs / 2 {
                settled_kb = resident_kb();
            }
        }
        let grown_kb = resident_kb().saturating_sub(settled_kb);
        println!(
            "{runs} runs of {CLIENTS} clients; resident {} kB, {grown_kb} kB more than after half of them",
            resident_kb()
        );
        assert!(grown_kb < 64 << 10, "{grown_kb} kB more than after half of the runs");
        drop(stop);
        server.await.expect("the server stops");
    });
}

#[test]
fn a_few_runs_of_a_random_mix_leave_nothing() {
    mix(4);
}

#[test]
#[ignore = "takes minutes"]
fn a_hundred_runs_of_a_random_mix_leave_nothing() {
    mix(100);
}
