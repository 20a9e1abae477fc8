//! The catalogs read from a directory's files are those that the server itself shows.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::path::Path;
use std::process::Command;

use stegodon_access::{Storage, StorageOptions};
use stegodon_catalog::settings::Settings;
use stegodon_catalog::{Catalog, testing};
use stegodon_format::ids::AttrNumber;
use stegodon_nodes::reader::{BoundDatum, read_partition_bound};
use stegodon_types::{Datum, Oid};

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A stopped cluster with one of everything, and the dump of its catalogs.
fn cluster() -> (tempfile::TempDir, std::path::PathBuf, std::path::PathBuf) {
    let scratch = stegodon_testkit::scratch();
    let data = scratch.path().join("data");
    let dump = scratch.path().join("dump");
    let engine = stegodon_testkit::postgres("18");
    engine.init(&data, &["-E", "UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]).unwrap();
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    {
        let mut server = engine.start(&data, &[]).unwrap();
        let at = |command: &mut Command| {
            command.arg("-h").arg(server.socket_directory()).args(["-p", &server.port().to_string()]);
            command.args(["-U", "postgres", "-d", "postgres"]);
        };
        let mut psql = Command::new("psql");
        at(&mut psql);
        run(psql.args(["-Xq", "-v", "ON_ERROR_STOP=1", "-f"]).arg(testdata.join("objects.sql")));
        let mut script = Command::new("bash");
        script.arg(testdata.join("dump.sh")).arg(&dump);
        at(&mut script);
        run(&mut script);
        server.stop();
    }
    (scratch, data, dump)
}

#[test]
fn files_and_server_tell_the_same() {
    let (_scratch, data, dump) = cluster();
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

    let mut settings = Settings::new();
    let messages = settings.apply_data_directory(&data);
    assert_eq!(messages, Vec::<String>::new());
    let r1 = catalog.role_by_name("r1").unwrap().oid;
    assert_eq!(settings.apply_role_settings(&catalog, catalog.database().unwrap().oid, r1), Vec::<String>::new());
    assert_eq!(settings.show("work_mem").unwrap(), "2MB");
    assert_eq!(settings.show("search_path").unwrap(), "s, public");
    assert_eq!(settings.show("enable_seqscan").unwrap(), "off");
    assert_eq!(settings.show("max_connections").unwrap(), "100");

    assert!(Catalog::load(&storage, "nosuch").unwrap_err().message.contains("database \"nosuch\" does not exist"));
    assert_eq!(Catalog::database_names(&storage).unwrap().len(), 3);
}
