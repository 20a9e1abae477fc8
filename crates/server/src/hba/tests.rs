//! Against what PostgreSQL 18.4 shows of the same files (`pg_hba_file_rules`, `pg_ident_file_mappings`).
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::path::PathBuf;

use super::address::Address;
use super::rules::Kind;
use super::tokens::Line;
use super::*;

fn testdata() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").unwrap();
    PathBuf::from(package).join("testdata/hba").canonicalize().unwrap()
}

/// Lines, each with how it reads.
fn read<T>(name: &str, read: fn(&Line) -> Result<T, String>) -> Vec<(Line, Result<T, String>)> {
    let lines = tokens::read(&testdata().join(name)).unwrap();
    let read = |line: Line| {
        let read = line.error.clone().map_or_else(|| read(&line), Err);
        (line, read)
    };
    lines.into_iter().map(read).collect()
}

fn relative(text: &str) -> String {
    text.replace(&format!("{}/", testdata().display()), "")
}

/// An array's text.
fn array<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    let quote = |item: &str| {
        let plain = !item.is_empty() && !item.contains([' ', ',', '"', '{', '}', '\\']);
        if plain { item.to_owned() } else { format!("\"{}\"", item.replace('\\', "\\\\").replace('"', "\\\"")) }
    };
    format!("{{{}}}", items.into_iter().map(quote).collect::<Vec<_>>().join(","))
}

fn shown(line: &Line, rule: &Result<Rule, String>) -> String {
    let place = format!("{}|{}", relative(&line.file), line.number);
    let rule = match rule {
        Ok(rule) => rule,
        Err(message) => return format!("{place}||||||||{}", relative(message)),
    };
    let kinds = ["local", "host", "hostssl", "hostnossl", "hostgssenc", "hostnogssenc"];
    let names = |names: &[names::Name]| array(names.iter().map(|n| n.token.text.as_str()));
    let (address, mask) = match &rule.address {
        Address::All if rule.kind == Kind::Local => Default::default(),
        Address::All => ("all".to_owned(), String::new()),
        Address::SameHost => ("samehost".to_owned(), String::new()),
        Address::SameNet => ("samenet".to_owned(), String::new()),
        Address::Host(name) => (name.clone(), String::new()),
        Address::Network { ip, mask } => (ip.to_string(), mask.to_string()),
    };
    let map = rule.map.as_ref().map(|m| format!("map={m}"));
    let cert = match rule.client_cert {
        ClientCert::No => None,
        ClientCert::VerifyCa => Some("clientcert=verify-ca".to_owned()),
        ClientCert::VerifyFull => Some("clientcert=verify-full".to_owned()),
    };
    let options: Vec<String> = map.into_iter().chain(cert).collect();
    let options = if options.is_empty() { String::new() } else { array(options.iter().map(String::as_str)) };
    let method = rule.method.name();
    let kind = kinds[rule.kind as usize];
    let (databases, users) = (names(&rule.databases), names(&rule.users));
    format!("{place}|{kind}|{databases}|{users}|{address}|{mask}|{method}|{options}|")
}

#[test]
fn reads_rules_as_postgresql_does() {
    let expected = std::fs::read_to_string(testdata().join("pg_hba_file_rules.txt")).unwrap();
    let found = read("pg_hba.conf", rules::rule);
    let mut lines = found.iter();
    for expected in expected.lines() {
        let (line, rule) = lines.next().unwrap();
        let found = shown(line, rule);
        if expected.ends_with("||||||||") {
            // The view has no words for some errors.
            assert!(rule.is_err() && found.starts_with(expected), "{found}");
            continue;
        }
        // What it only remarks on, it reads all the same; an empty map it shows.
        let is_remark = rule.is_ok() && !expected.ends_with('|');
        let expected =
            if is_remark { expected.rsplit_once('|').unwrap().0.to_owned() + "|" } else { expected.to_owned() };
        assert_eq!(found, expected.replace("{map=}", ""));
    }
    assert!(lines.next().is_none());
}

#[test]
fn reads_maps_as_postgresql_does() {
    let expected = std::fs::read_to_string(testdata().join("pg_ident_file_mappings.txt")).unwrap();
    let show = |(line, ident): &(Line, Result<IdentLine, String>)| {
        let place = format!("{}|{}", relative(&line.file), line.number);
        match ident {
            Err(message) => format!("{place}||||{}", relative(message)),
            Ok(i) => format!("{place}|{}|{}|{}|", i.map, i.system_user.token.text, i.user.token.text),
        }
    };
    let found: Vec<String> = read("pg_ident.conf", ident::ident_line).iter().map(show).collect();
    assert_eq!(found, expected.lines().collect::<Vec<_>>());
}

/// The rules of a file with this text.
fn rules_of(text: &str, maps: &str) -> HostRules {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("pg_hba.conf"), text).unwrap();
    std::fs::write(directory.path().join("pg_ident.conf"), maps).unwrap();
    HostRules::load(directory.path(), "", "").unwrap()
}

fn line_for(rules: &HostRules, from: &str, user: &str, database: &str) -> Result<usize, String> {
    let (from, encrypted) = from.strip_suffix("+ssl").map_or((from, false), |from| (from, true));
    let ip = (from != "local").then(|| from.parse().unwrap());
    let physical_replication = database == "(log)";
    let asking = Asking { ip, encrypted, user, database, physical_replication };
    // `ann` is of `staff`, and everyone is of a role of their own name.
    let is_member = |role: &str| role == user || (user == "ann" && role == "staff");
    Ok(rules.decide(&asking, &is_member)?.map_or(0, |rule| rule.line))
}

#[test]
fn the_first_line_that_speaks_of_a_connection_decides() {
    let rules = rules_of(
        "hostssl all all 10.0.0.0/8 scram-sha-256\nhostnossl all all 10.0.0.0/8 reject\nhostgssenc all all all trust\n\
         local sameuser all peer\nlocal samerole all md5\nlocal db +staff reject\nlocal /^t[0-9]+$ bob trust\n\
         host \"all\" all ::1/128 trust\nhost replication all ::1/128 trust\nhost a,b \"+staff\",all 192.168.1.0 255.255.255.0 trust\n\
         host all all localhost trust\nhost x all remote.example.com trust\nhost all all 8.0.0.0/8 trust\n",
        "",
    );
    let cases = [
        ("10.1.2.3+ssl", "u", "d", 1),
        ("10.1.2.3", "u", "d", 2),
        ("::ffff:10.1.2.3", "u", "d", 2),
        ("11.1.2.3", "u", "d", 0),
        ("local", "u", "u", 4),
        ("local", "ann", "staff", 5),
        ("local", "ann", "db", 6),
        ("local", "bob", "db", 0),
        ("local", "bob", "t12", 7),
        ("local", "bob", "t12x", 0),
        ("::1", "u", "all", 8),
        ("::1", "u", "replication", 11),
        ("::1", "u", "(log)", 9),
        ("192.168.1.77", "u", "b", 10),
        ("192.168.2.77", "u", "b", 0),
        ("127.0.0.1", "u", "d", 11),
        ("8.8.8.8", "u", "d", 13),
    ];
    for (from, user, database, line) in cases {
        assert_eq!(line_for(&rules, from, user, database), Ok(line), "{from} {user} {database}");
    }
    // A host's name is not looked up: whom the line may speak of does not come in by a later one.
    assert!(line_for(&rules, "8.8.8.8", "u", "x").is_err());
}

#[test]
fn maps_say_who_may_be_whom() {
    let maps = "m root postgres\nm /^(.*)@example\\.com$ \\1\nm /^x(y)?$ a\\1\nm ann +staff\nm /^any$ all\nm2 /^(.*)$ \\1\nm2 z /^z+$\n";
    let rules = rules_of("local all all peer map=m", maps);
    let may = |map, system: &str, user: &str| rules.may_be(map, system, user, &|role| user == "ann" && role == "staff");
    let cases = [
        (None, "ann", "ann", true),
        (None, "ann", "Ann", false),
        (Some("m"), "root", "postgres", true),
        (Some("m"), "root", "root", false),
        (Some("none"), "root", "root", false),
        (Some("m"), "bob@example.com", "bob", true),
        (Some("m"), "bob@example.com", "rob", false),
        (Some("m"), "bob@example_com", "bob", false),
        (Some("m"), "xy", "ay", true),
        (Some("m"), "ann", "ann", true),
        (Some("m"), "any", "whoever", true),
        // What is captured is a name, never a keyword or a group.
        (Some("m2"), "all", "ann", false),
        (Some("m2"), "+staff", "ann", false),
        (Some("m2"), "z", "zzz", true),
    ];
    for (map, system, user, expected) in cases {
        assert_eq!(may(map, system, user), Ok(expected), "{map:?} {system} {user}");
    }
    assert!(may(Some("m"), "x", "a").is_err());
}

#[test]
fn files_that_include_themselves_or_are_wrong_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    let load = || HostRules::load(directory.path(), "", "").map_err(|e| (e.message, e.detail.unwrap()));
    assert_eq!(load().unwrap().rules.len(), 2);
    write("pg_hba.conf", "# nothing\n");
    assert!(load().unwrap_err().1.contains("no entries"));
    write("pg_hba.conf", "local all all trust\nlocal all all nonsense\n");
    assert!(load().unwrap_err().1.contains("line 2 of"));
    for text in ["include pg_hba.conf\n", "local @pg_hba.conf all trust\n", "include a\ninclude a\n"] {
        write("pg_hba.conf", text);
        write("a", &"include b\n".repeat(100));
        write("b", &"include c\n".repeat(1000));
        write("c", &format!("{}local all all trust\n", "#".repeat(100_000)));
        assert!(load().is_err(), "{text}");
    }
    assert!(HostRules::load(directory.path(), "elsewhere.conf", "").is_err());
}
