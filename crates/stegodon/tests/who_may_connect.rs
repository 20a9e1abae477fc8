//! Who may connect, over what, with which proof: psql is let in or turned away by Stegodon as by PostgreSQL over the same
//! directory, in the same words. Where Stegodon is stricter (DESIGN D10), it is said here.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use common::stegodon;
use stegodon_testkit::lab::{Client, Server};
use stegodon_testkit::{copy_cluster, postgres, scratch};

const SETUP: &[&str] = &[
    "create role staff",
    "create role member login password 'secret' in role staff",
    "create role trusted login password 'secret'",
    "create role rejected login",
    "create role own login",
    "create database own",
    "create role scram_user login password 'secret'",
    "create role \"scram Ünï\" login password 'pass wörd'",
    "create role scram_none login",
    "create role scram_nologin password 'secret'",
    "create role scram_expired login password 'secret' valid until '2000-01-01'",
    "create role scram_later login password 'secret' valid until 'infinity'",
    "create role scram_limited login password 'secret' connection limit 0",
    "create role scram_super superuser login password 'secret' connection limit 0",
    "create role plain login password 'secret'",
    "create role pw login password 'secret'",
    "create role md5 login password 'secret'",
    "create role mapped login",
    "create role someone login password 'secret'",
    "create role verified login password 'secret'",
    "create role reserver login password 'secret' in role pg_use_reserved_connections",
    "create database noconn allow_connections false",
    "create database limited connection limit 0",
    "create database closed",
    "revoke connect on database closed from public",
];

const HBA: &str = "
local   all       postgres            trust
local   all       rejected            reject
local   all       trusted,reserver    trust
local   all       mapped              peer map=m
local   all       verified            peer
local   all       /^scram             scram-sha-256
local   all       +staff              scram-sha-256
local   all       pw                  password
local   all       md5                 md5
local   sameuser  own                 trust
hostssl all       someone             127.0.0.1/32 cert map=c
hostssl all       verified            127.0.0.1/32 scram-sha-256 clientcert=verify-ca
hostssl all       /^scram,trusted     127.0.0.1/32 scram-sha-256
hostssl all       pw                  127.0.0.1/32 password
hostnossl all     plain               127.0.0.1    255.255.255.255 scram-sha-256
host    all       rejected            samehost     reject
";

const IDENT: &str = "
m  root             mapped
m  /^(.*)$          mapped
c  /^(.*)@example\\.com$  \\1
";

/// A directory with the roles, rules and certificates.
fn directory() -> (tempfile::TempDir, PathBuf) {
    let keep = scratch();
    let directory = keep.path().join("cluster");
    let engine = postgres("18");
    engine.init(&directory, &[]).expect("initdb runs");
    let mut server = engine.start(&directory, &[("fsync", "off")]).expect("the judge starts");
    let mut client = Client::connect(&server, "postgres", "postgres").expect("a connection");
    for sql in SETUP {
        client.ask(sql).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    }
    server.stop();
    let write = |name: &str, bytes: &[u8], mode: u32| {
        let path = directory.join(name);
        std::fs::write(&path, bytes).expect("a file");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("its mode");
        let owner = std::fs::metadata(&directory).expect("the directory");
        let _ = chown(&path, Some(owner.uid()), Some(owner.gid()));
    };
    write("pg_hba.conf", HBA.as_bytes(), 0o600);
    write("pg_ident.conf", IDENT.as_bytes(), 0o600);
    for file in ["server.crt", "server.key", "ca.crt"] {
        write(file, &std::fs::read(tls(file)).expect("testdata"), 0o600);
    }
    (keep, directory)
}

fn tls(file: &str) -> PathBuf {
    stegodon_testkit::workspace_root().join("crates/stegodon/testdata/tls").join(file)
}

/// How a client connects.
#[derive(Clone, Copy, Default)]
struct Case<'a> {
    user: &'a str,
    database: &'a str,
    password: &'a str,
    /// Connection parameters; over the Unix socket where there are none.
    tcp: Option<&'a str>,
    certificate: Option<&'a str>,
    /// The system's user.
    as_nobody: bool,
}

/// `UTF8` where psql came in, otherwise what it was told.
fn connect(server: &Server, keys: &Path, case: &Case<'_>) -> String {
    let host = match case.tcp {
        Some(parameters) => format!("hostaddr=127.0.0.1 host=localhost {parameters}"),
        None => format!("host={}", server.socket_directory().display()),
    };
    let certificate = match case.certificate {
        Some(name) => {
            let key = keys.join(format!("{name}.key"));
            format!("sslcert={} sslkey={}", tls(&format!("{name}.crt")).display(), key.display())
        }
        None => "sslcert=/nowhere".to_owned(),
    };
    let (port, root) = (server.port(), tls("ca.crt"));
    let connection = format!(
        "{host} port={port} user='{}' dbname='{}' {certificate} sslrootcert={} connect_timeout=20",
        case.user,
        case.database,
        root.display()
    );
    let mut command = if case.as_nobody {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups", "psql"]);
        command
    } else {
        Command::new("psql")
    };
    command.args(["-X", "-A", "-t", "-w", "-c", "show server_encoding", "-d", &connection]);
    command.env("PGPASSWORD", case.password).env("HOME", "/tmp").env("PGCLIENTENCODING", "UTF8");
    let output = command.output().expect("psql runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    // Behind where it was: a socket's path or a port differ.
    let said = said.split_once(" failed: ").map_or(said.as_str(), |(_, message)| message);
    said.trim().to_owned()
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0)
}

struct Both {
    judge: Server,
    stegodon: Server,
    keys: tempfile::TempDir,
    _directories: Vec<tempfile::TempDir>,
}

fn both(settings: &[(&str, &str)]) -> Both {
    let (keep, directory) = directory();
    let (keep_own, own) = copy_cluster(&directory);
    let mut all = vec![("ssl", "on"), ("ssl_ca_file", "ca.crt"), ("fsync", "off")];
    all.extend(settings);
    let judge = postgres("18").start(&own, &all).expect("the judge starts");
    let stegodon = stegodon().start(&directory, &all).expect("Stegodon starts");
    // psql wants its keys for itself.
    let keys = tempfile::tempdir().expect("a directory");
    for name in ["client.key", "stranger.key"] {
        let path = keys.path().join(name);
        std::fs::copy(tls(name), &path).expect("a key");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("its mode");
    }
    Both { judge, stegodon, keys, _directories: vec![keep, keep_own] }
}

#[test]
fn psql_is_let_in_or_turned_away_as_by_postgresql() {
    let both = both(&[]);
    let local = |user, database, password| Case { user, database, password, ..Case::default() };
    let tcp = |user, password, parameters| Case {
        user,
        database: "postgres",
        password,
        tcp: Some(parameters),
        ..Case::default()
    };
    let with = |case, certificate| Case { certificate: Some(certificate), ..case };
    let cases = [
        local("postgres", "postgres", ""),
        local("postgres", "nonesuch", ""),
        local("rejected", "postgres", ""),
        local("nonesuch", "postgres", ""),
        local("trusted", "postgres", ""),
        local("trusted", "own", ""),
        local("own", "own", ""),
        local("own", "postgres", ""),
        local("scram_user", "postgres", "secret"),
        local("scram_user", "postgres", "wrong"),
        local("scram_user", "postgres", "nösecret"),
        local("scram Ünï", "postgres", "pass wörd"),
        local("scram Ünï", "postgres", "pass word"),
        local("scram_none", "postgres", "secret"),
        local("scram_nonesuch", "postgres", "secret"),
        local("scram_nonesuch", "nonesuch", "secret"),
        local("scram_nologin", "postgres", "secret"),
        local("scram_nologin", "postgres", "wrong"),
        local("scram_expired", "postgres", "secret"),
        local("scram_later", "postgres", "secret"),
        local("scram_limited", "postgres", "secret"),
        local("scram_super", "postgres", "secret"),
        local("scram_user", "nonesuch", "secret"),
        local("scram_user", "noconn", "secret"),
        local("scram_super", "noconn", "secret"),
        local("scram_user", "limited", "secret"),
        local("scram_super", "limited", "secret"),
        local("scram_user", "closed", "secret"),
        local("member", "postgres", "secret"),
        local("member", "postgres", "wrong"),
        local("pw", "postgres", "secret"),
        local("pw", "postgres", "wrong"),
        local("md5", "postgres", "secret"),
        local("md5", "postgres", "wrong"),
        local("mapped", "postgres", ""),
        tcp("scram_user", "secret", "sslmode=disable"),
        tcp("scram_user", "secret", "sslmode=allow"),
        tcp("scram_user", "secret", "sslmode=prefer"),
        tcp("scram_user", "secret", "sslmode=require"),
        tcp("scram_user", "secret", "sslmode=verify-full channel_binding=require"),
        tcp("scram_user", "secret", "sslmode=verify-ca channel_binding=disable"),
        tcp("scram_user", "secret", "sslmode=require ssl_min_protocol_version=TLSv1.3 channel_binding=require"),
        tcp("scram_user", "secret", "sslmode=require ssl_max_protocol_version=TLSv1.2 channel_binding=require"),
        tcp("scram_user", "wrong", "sslmode=require channel_binding=require"),
        tcp("scram_nonesuch", "wrong", "sslmode=require channel_binding=require"),
        tcp("scram Ünï", "pass wörd", "sslmode=require channel_binding=require"),
        tcp("plain", "secret", "sslmode=disable"),
        tcp("plain", "secret", "sslmode=require"),
        tcp("plain", "secret", "sslmode=disable channel_binding=require"),
        tcp("plain", "secret", "sslmode=prefer"),
        tcp("rejected", "secret", "sslmode=disable"),
        tcp("rejected", "secret", "sslmode=require"),
        tcp("postgres", "", "sslmode=disable"),
        tcp("postgres", "", "sslmode=require"),
        tcp("pw", "secret", "sslmode=require"),
        tcp("pw", "wrong", "sslmode=require"),
        tcp("pw", "secret", "sslmode=disable"),
        tcp("someone", "", "sslmode=require"),
        with(tcp("someone", "", "sslmode=require"), "client"),
        with(tcp("scram_user", "secret", "sslmode=require channel_binding=require"), "client"),
        tcp("verified", "secret", "sslmode=require"),
        with(tcp("verified", "secret", "sslmode=verify-full channel_binding=require"), "client"),
        with(tcp("verified", "wrong", "sslmode=require"), "client"),
    ];
    let mut differences = Vec::new();
    let mut compare = |case: &Case<'_>| {
        let [judge, own] = [&both.judge, &both.stegodon].map(|server| connect(server, both.keys.path(), case));
        if judge != own {
            let (user, database, tcp) = (case.user, case.database, case.tcp);
            differences.push(format!("{user} {database} {tcp:?}\n  PostgreSQL {judge}\n  Stegodon   {own}"));
        }
    };
    cases.iter().for_each(&mut compare);
    if is_root() {
        compare(&Case { as_nobody: true, ..local("mapped", "postgres", "") });
        compare(&Case { as_nobody: true, ..local("verified", "postgres", "") });
        compare(&Case { as_nobody: true, ..local("scram_user", "postgres", "secret") });
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    // An authority that is not ours: libraries have different words, none comes in.
    let stranger = with(tcp("someone", "", "sslmode=require"), "stranger");
    for server in [&both.judge, &both.stegodon] {
        assert_ne!(connect(server, both.keys.path(), &stranger), "UTF8");
    }
}

#[test]
fn trust_is_not_for_everyone() {
    if !is_root() {
        // It takes another user of the system to try.
        return;
    }
    let both = both(&[]);
    let ask = |password| {
        let case = Case { user: "trusted", database: "postgres", password, as_nobody: true, ..Case::default() };
        connect(&both.stegodon, both.keys.path(), &case)
    };
    assert_eq!(ask("secret"), "UTF8");
    assert_eq!(ask("wrong"), "FATAL:  password authentication failed for user \"trusted\"");
    assert!(ask("").contains("no password supplied"));
}

#[test]
fn places_run_out_as_in_postgresql() {
    let limits = [("max_connections", "9"), ("superuser_reserved_connections", "3"), ("reserved_connections", "2")];
    let both = both(&limits);
    let fill = |server: &Server| {
        let mut held = Vec::new();
        let mut said = Vec::new();
        for user in ["trusted", "reserver", "postgres"] {
            let refused = loop {
                match Client::connect(server, "postgres", user) {
                    Ok(client) => held.push(client),
                    Err(failure) => break failure,
                }
            };
            said.push(format!("{user}: {} held, then {refused:?}", held.len()));
            // A process of PostgreSQL's that has turned someone away holds its place until it has ended.
            std::thread::sleep(std::time::Duration::from_millis(300));
        }
        said
    };
    assert_eq!(fill(&both.stegodon), fill(&both.judge));
}
