//! Starting and stopping an engine on a data directory.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// What can go wrong around an engine.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program could not be run.
    #[error("cannot run {program}: {source}")]
    Spawn {
        /// Which.
        program: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file or directory was not to be had.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The server ended, or did not listen in time; with the end of its log.
    #[error("the server on {directory} did not start: {log}")]
    NotStarted {
        /// Its data directory.
        directory: PathBuf,
        /// The end of its log.
        log: String,
    },
    /// A program ended with an error.
    #[error("{program} failed: {output}")]
    Failed {
        /// Which.
        program: PathBuf,
        /// What it printed.
        output: String,
    },
}

/// An engine that can serve a PostgreSQL data directory.
#[derive(Clone, Debug)]
pub enum Engine {
    /// A real PostgreSQL.
    Postgres {
        /// Its `bin` directory.
        bin: PathBuf,
    },
    /// Stegodon.
    Stegodon {
        /// The `stegodon` program.
        program: PathBuf,
    },
}

/// How long a start may take.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// PostgreSQL refuses to run as root; it then runs as `nobody`.
const NOBODY: u32 = 65534;

/// A command that runs as `nobody` where we are root, so that PostgreSQL's programs accept it.
fn unprivileged(program: &Path) -> Command {
    let mut command = Command::new(program);
    if is_root() {
        command.uid(NOBODY).gid(NOBODY).env("HOME", "/tmp");
    }
    command
}

/// Of one of PostgreSQL's programs: `initdb (PostgreSQL) 18.4` is of 18.
fn major_version(program: &Path) -> Option<u32> {
    let output = unprivileged(program).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().find_map(|word| word.split('.').next()?.parse().ok())
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0)
}

/// A port that nobody listens on. Each call gives another one.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = 20000 + (std::process::id() % 20000) as u16;
    loop {
        let port = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)).max(1024);
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

impl Engine {
    /// PostgreSQL from a `bin` directory.
    pub fn postgres(bin: impl Into<PathBuf>) -> Self {
        Engine::Postgres { bin: bin.into() }
    }

    /// Stegodon from its program.
    pub fn stegodon(program: impl Into<PathBuf>) -> Self {
        Engine::Stegodon { program: program.into() }
    }

    /// Makes a new cluster, encoding UTF8 and builtin C.UTF-8 (before 17: C), superuser `postgres`, `trust`. Arguments
    /// that name a locale provider stand for both.
    pub fn init(&self, directory: &Path, arguments: &[&str]) -> Result<(), Error> {
        let Engine::Postgres { bin } = self else {
            return Err(Error::Failed {
                program: "stegodon init".into(),
                output: "Stegodon does not make clusters yet".into(),
            });
        };
        std::fs::create_dir_all(directory).map_err(|source| Error::File { path: directory.into(), source })?;
        if is_root() {
            std::os::unix::fs::chown(directory, Some(NOBODY), Some(NOBODY))
                .map_err(|source| Error::File { path: directory.into(), source })?;
        }
        let program = bin.join("initdb");
        let mut command = unprivileged(&program);
        command.arg("-D").arg(directory);
        if !arguments.iter().any(|a| a.starts_with("--locale-provider")) {
            command.args(["-E", "UTF8", "--locale=C"]);
            if major_version(&program).is_none_or(|major| major >= 17) {
                command.args(["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]);
            }
        }
        command.args(["-U", "postgres", "--auth=trust", "--no-sync"]).args(arguments);
        run(&program, &mut command)
    }

    /// Starts a server on a data directory. It listens on a Unix socket in a directory of its own and on localhost.
    pub fn start(&self, directory: &Path, settings: &[(&str, &str)]) -> Result<Server, Error> {
        let sockets = std::env::temp_dir().join(format!("stegodon-{}-{}", std::process::id(), free_port()));
        let file = |source| Error::File { path: sockets.clone(), source };
        std::fs::create_dir_all(&sockets).map_err(file)?;
        if is_root() {
            std::os::unix::fs::chown(&sockets, Some(NOBODY), Some(NOBODY)).map_err(file)?;
        }
        let port = free_port();
        let log = sockets.join("log");
        let log_file = std::fs::File::create(&log).map_err(file)?;
        let (program, mut command) = match self {
            Engine::Postgres { bin } => {
                let program = bin.join("postgres");
                let command = unprivileged(&program);
                (program, command)
            }
            Engine::Stegodon { program } => {
                let mut command = Command::new(program);
                command.arg("serve");
                (program.clone(), command)
            }
        };
        command.arg("-D").arg(directory);
        for (name, value) in settings {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        command.arg("-c").arg(format!("port={port}"));
        command.arg("-c").arg(format!("unix_socket_directories={}", sockets.display()));
        command.arg("-c").arg("listen_addresses=localhost");
        let errors = log_file.try_clone().map_err(file)?;
        command.stdin(Stdio::null()).stdout(log_file).stderr(errors);
        let child = command.spawn().map_err(|source| Error::Spawn { program, source })?;
        let mut server = Server { child, directory: directory.into(), sockets, port, log };
        server.wait_until_listening()?;
        Ok(server)
    }
}

fn run(program: &Path, command: &mut Command) -> Result<(), Error> {
    let output = command.output().map_err(|source| Error::Spawn { program: program.into(), source })?;
    if output.status.success() {
        return Ok(());
    }
    let output = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    Err(Error::Failed { program: program.into(), output })
}

/// A running server. Dropping it stops it.
#[derive(Debug)]
pub struct Server {
    child: Child,
    directory: PathBuf,
    sockets: PathBuf,
    port: u16,
    log: PathBuf,
}

impl Server {
    /// Where its Unix socket is.
    pub fn socket_directory(&self) -> &Path {
        &self.sockets
    }

    /// Its port, on localhost and in the socket's name.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Stops it as PostgreSQL's fast shutdown does: SIGINT, then SIGKILL after a minute.
    pub fn stop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        let pid = self.child.id().to_string();
        // The shell's own: a bare Debian has no program of that name.
        let _ = Command::new("sh").args(["-c", "kill -INT \"$0\"", &pid]).status();
        let deadline = Instant::now() + START_TIMEOUT;
        while Instant::now() < deadline {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Kills it without warning, as a crash would.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn wait_until_listening(&mut self) -> Result<(), Error> {
        let deadline = Instant::now() + START_TIMEOUT;
        let socket = self.sockets.join(format!(".s.PGSQL.{}", self.port));
        loop {
            let ended = matches!(self.child.try_wait(), Ok(Some(_)));
            // PostgreSQL listens before it is ready; its log says when.
            let ready = self.log().contains("ready to accept connections");
            if !ended && ready && std::os::unix::net::UnixStream::connect(&socket).is_ok() {
                return Ok(());
            }
            if ended || Instant::now() > deadline {
                let log = self.log();
                let tail: Vec<&str> = log.lines().rev().take(10).collect();
                let log = tail.into_iter().rev().collect::<Vec<_>>().join("\n");
                return Err(Error::NotStarted { directory: self.directory.clone(), log });
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        let _ = std::fs::remove_dir_all(&self.sockets);
    }
}
