//! The catalogs read from a directory's files are those that the server itself shows.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use stegodon_access::{Storage, StorageOptions};
use stegodon_catalog::acl::privilege::*;
use stegodon_catalog::settings::Settings;
use stegodon_catalog::{Catalog, CatalogView, SearchPath, testing};
use stegodon_format::ids::AttrNumber;
use stegodon_nodes::query::RangeTableKind;
use stegodon_nodes::reader::{BoundDatum, read_partition_bound};
use stegodon_types::{Datum, Oid, SqlState};

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// What version `version` can make of `objects.sql`.
fn objects(version: u32) -> String {
    let text = include_str!("../testdata/objects.sql");
    let since = |line: &str| line.rsplit_once("-- since ").map_or(0, |(_, v)| v.parse::<u32>().unwrap());
    let text: String = text.lines().skip(1).filter(|l| since(l) <= version).flat_map(|l| [l, "\n"]).collect();
    // Before 18 a generated column is stored.
    if version < 18 { text.replace("/* virtual */", "stored") } else { text }
}

/// A stopped cluster with one of everything, and the dump of its catalogs.
fn cluster(version: u32) -> (tempfile::TempDir, std::path::PathBuf, std::path::PathBuf) {
    let scratch = stegodon_testkit::scratch();
    let data = scratch.path().join("data");
    let dump = scratch.path().join("dump");
    let engine = stegodon_testkit::postgres(&version.to_string());
    engine.init(&data, &[]).unwrap();
    let objects_sql = scratch.path().join("objects.sql");
    std::fs::write(&objects_sql, objects(version)).unwrap();
    let testdata = Path::new("testdata");
    {
        let mut server = engine.start(&data, &[]).unwrap();
        let at = |command: &mut Command| {
            command.arg("-h").arg(server.socket_directory()).args(["-p", &server.port().to_string()]);
            command.args(["-U", "postgres", "-d", "postgres"]);
        };
        let mut psql = Command::new("psql");
        at(&mut psql);
        run(psql.args(["-Xq", "-v", "ON_ERROR_STOP=1", "-f"]).arg(&objects_sql));
        let mut script = Command::new("bash");
        script.arg(testdata.join("dump.sh")).arg(&dump);
        at(&mut script);
        run(&mut script);
        let mut privileges = Command::new("psql");
        at(&mut privileges);
        privileges.args(["-XqAt", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-f"]).arg(testdata.join("privileges.sql"));
        run(privileges.arg("-o").arg(dump.join("privileges.txt")));
        server.stop();
    }
    (scratch, data, dump)
}

fn check_privileges(catalog: &Catalog, text: &str) {
    let mut seen = 0;
    for line in text.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [kind, role, object, privilege, want] = fields[..] else { panic!("{line}") };
        let role = catalog.role_by_name(role).unwrap().oid;
        let object = Oid(object.parse().unwrap());
        let mut mask = match privilege.trim_end_matches(" WITH GRANT OPTION") {
            "SELECT" => SELECT,
            "INSERT" => INSERT,
            "UPDATE" => UPDATE,
            "TRUNCATE" => TRUNCATE,
            "CREATE" => CREATE,
            "EXECUTE" => EXECUTE,
            "CONNECT" => CONNECT,
            "TEMP" => CREATE_TEMP,
            _ => USAGE,
        };
        if privilege.ends_with("WITH GRANT OPTION") {
            mask <<= 32;
        }
        let got = match kind {
            "table" => catalog.relation_privileges(catalog.relation(object).unwrap(), role, mask) != 0,
            "column" => {
                let column = AttrNumber(privilege.parse().unwrap());
                catalog.can_select(catalog.relation(object).unwrap(), role, &[column])
            }
            "schema" => catalog.namespace_privileges(object, role, mask) != 0,
            "function" => catalog.function_privileges(object, role, mask) != 0,
            "type" => catalog.type_privileges(object, role, mask) != 0,
            "database" => catalog.database_privileges(object, role, mask) != 0,
            _ => match privilege {
                "USAGE" => catalog.has_privileges_of_role(role, object),
                "MEMBER" => catalog.is_member_of_role(role, object),
                _ => catalog.can_set_role(role, object),
            },
        };
        assert_eq!(got, want == "t", "{line}");
        seen += 1;
    }
    assert!(seen > 5000, "{seen}");
}

#[test]
fn files_and_server_15_tell_the_same() {
    files_and_server_tell_the_same(15);
}

#[test]
fn files_and_server_16_tell_the_same() {
    files_and_server_tell_the_same(16);
}

#[test]
fn files_and_server_17_tell_the_same() {
    files_and_server_tell_the_same(17);
}

#[test]
fn files_and_server_18_tell_the_same() {
    files_and_server_tell_the_same(18);
}

fn files_and_server_tell_the_same(version: u32) {
    let (_scratch, data, dump) = cluster(version);
    let storage = Storage::open(&data, &StorageOptions::default()).unwrap();
    let started = std::time::Instant::now();
    let catalog = Catalog::load(&storage, "postgres").unwrap();
    println!("loaded in {:?}", started.elapsed());
    let expected = testing::describe(&Catalog::from_csv_dir(&dump).unwrap());
    let got = testing::describe(&catalog);
    for (key, want) in &expected {
        assert_eq!(got.get(key), Some(want), "{key}");
    }
    assert_eq!(got.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    assert!(got.len() > 8000, "{}", got.len());

    // What the dump cannot show: values of type anyarray, and file numbers.
    let s = catalog.namespace_by_name("s").unwrap().oid;
    let p1 = catalog.relation_by_name(s, "p1").unwrap();
    let column = |name: &str| p1.attributes.iter().find(|a| a.name == name).unwrap().missing.clone();
    assert_eq!(column("late"), Some(Datum::Int32(42)));
    assert_eq!(column("late2"), Some(Datum::bytes("hello there")));
    let Some(Datum::UInt32(happy)) = column("late3") else { panic!("no missing value") };
    assert_eq!(catalog.enum_value(Oid(happy)).unwrap().label, "happy");
    let t = catalog.relation_by_name(s, "t").unwrap();
    let statistic = catalog.statistic(t.oid, AttrNumber(1), false).unwrap();
    let histogram = statistic.slots.iter().find(|slot| slot.kind == 2).unwrap();
    assert_eq!(histogram.values.first(), Some(&Datum::Int32(1)));
    assert_eq!(histogram.values.last(), Some(&Datum::Int32(140)));
    assert!(!t.attributes.iter().find(|a| a.name == "x").unwrap().not_null, "NOT VALID proves nothing");
    assert!(catalog.relations().filter(|r| b"riStm".contains(&r.kind)).all(|r| r.locator.is_some()));
    let order: Vec<&str> =
        catalog.enum_values(catalog.type_by_name(s, "mood").unwrap().oid).map(|v| v.label.as_str()).collect();
    assert_eq!(order, ["sad", "meh", "ok", "happy"]);

    // A table's rows, the long ones from TOAST.
    let table = catalog.open_table(&storage, t.oid).unwrap();
    let rows = stegodon_access::read_all(&storage, &table, &[AttrNumber(1), AttrNumber(2)]).unwrap();
    assert_eq!(rows.len(), 140);
    let long = rows.iter().filter(|r| matches!(&r[1], Some(Datum::Bytes(b)) if b.len() > 15_000)).count();
    assert_eq!(long, 40);

    let bound = |name: &str| {
        let r = catalog.relation_by_name(s, name).unwrap();
        read_partition_bound(r.partition_bound.as_ref().unwrap(), &catalog).unwrap()
    };
    assert_eq!(bound("l1").list.len(), 3);
    assert!(bound("l2").is_default);
    assert!(matches!(bound("r1").lower[..], [BoundDatum::MinValue, BoundDatum::MinValue]));
    assert_eq!(bound("r1").upper[0].value(), Some(&Datum::Int32(10)));
    assert_eq!((bound("h1").modulus, bound("h1").remainder), (4, 3));

    let session = CatalogView::new(Arc::new(catalog), SearchPath::catalog_only());
    let catalog = &session.catalog;
    let partitions = |name: &str| -> Vec<String> {
        let oid = catalog.relation_by_name(s, name).unwrap().oid;
        session.partitions(oid).unwrap().iter().map(|(o, _)| catalog.relation(*o).unwrap().name.clone()).collect()
    };
    assert_eq!(partitions("r"), ["r1", "r2"]);
    assert_eq!(partitions("l"), ["l1", "l2"]);
    assert_eq!(partitions("r3"), ["r31", "r3d"]);
    assert_eq!(partitions("h"), ["h0", "h1"]);

    // Every view is read, and no Var is left that points to an entry for grouping expressions.
    let mut views = 0;
    for relation in catalog.relations().filter(|r| matches!(r.kind, b'v' | b'm')) {
        if relation.name.starts_with("refused") {
            assert_eq!(catalog.view_query(relation.oid).unwrap_err().state, SqlState::FeatureNotSupported);
            continue;
        }
        let query = catalog.view_query(relation.oid).unwrap_or_else(|e| panic!("{}: {e}", relation.name));
        assert_eq!(query.outputs().count(), relation.attributes.len());
        let mut groups =
            query.range_table.iter().zip(1..).filter(|(e, _)| matches!(e.kind, RangeTableKind::Group { .. }));
        if let Some((_, index)) = groups.next() {
            let text = format!("{:?}{:?}", query.targets, query.having);
            assert!(!text.contains(&format!("Relation({index})")), "{}", relation.name);
        }
        views += 1;
    }
    assert!(views > 100, "{views}");

    // What cannot be read is said, by name, and is no more than this (see the README of `nodes`).
    let (read, refused) = common::read_all(catalog);
    assert!(read > 300, "{read}");
    let refused: Vec<String> = refused.iter().map(|(why, whats)| format!("{why}: {}", whats.join(", "))).collect();
    let list = include_str!("../testdata/refused.txt");
    let made = |line: &&str| {
        !(version < 16 && (line.ends_with("refused1") || line.ends_with("refused3"))
            || version < 17 && line.ends_with("refused2"))
    };
    assert_eq!(refused, list.lines().filter(made).collect::<Vec<_>>());

    check_privileges(catalog, &std::fs::read_to_string(dump.join("privileges.txt")).unwrap());

    let mut settings = Settings::new();
    let messages = settings.apply_data_directory(&data);
    assert_eq!(messages, Vec::<String>::new());
    let r1 = catalog.role_by_name("r1").unwrap().oid;
    assert_eq!(settings.apply_role_settings(catalog, catalog.database().unwrap().oid, r1), Vec::<String>::new());
    assert_eq!(settings.show("work_mem").unwrap(), "2MB");
    assert_eq!(settings.show("search_path").unwrap(), "s, public");
    assert_eq!(settings.show("enable_seqscan").unwrap(), "off");
    assert_eq!(settings.show("max_connections").unwrap(), "100");

    assert!(Catalog::load(&storage, "nosuch").unwrap_err().message.contains("database \"nosuch\" does not exist"));
    assert_eq!(Catalog::database_names(&storage).unwrap().len(), 3);
}
