//! Names as the judge prints and reads them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::fmt::Write as _;

use stegodon_catalog::{CatalogView, testing};
use stegodon_types::{Oid, RegKind, TypeCatalog};

fn view() -> CatalogView {
    let catalog = testing::catalog().unwrap();
    let path = catalog.resolve_search_path("\"$user\", public", Oid(10)).unwrap();
    CatalogView::new(catalog, path)
}

fn kind(name: &str) -> RegKind {
    match name.trim_start_matches("reg") {
        "class" => RegKind::Class,
        "type" => RegKind::Type,
        "proc" => RegKind::Proc,
        "procedure" => RegKind::Procedure,
        "oper" => RegKind::Oper,
        "operator" => RegKind::Operator,
        "namespace" => RegKind::Namespace,
        "role" => RegKind::Role,
        "collation" => RegKind::Collation,
        "config" => RegKind::Config,
        "dictionary" => RegKind::Dictionary,
        other => panic!("{other}"),
    }
}

#[test]
fn objects_are_printed_as_the_judge_prints_them() {
    let view = view();
    let mut wrong = String::new();
    let mut seen = 0;
    for line in include_str!("../testdata/names.txt").lines() {
        let fields: Vec<&str> = line.splitn(3, '\t').collect();
        let oid = Oid(fields[1].parse().unwrap());
        let (got, want) = match fields[0] {
            "typmod" => {
                let (typmod, want) = fields[2].split_once('\t').unwrap();
                (view.format_type(oid, Some(typmod.parse().unwrap())), want.to_owned())
            }
            "opclass" => {
                let (am, want) = fields[2].split_once('\t').unwrap();
                let found = view.catalog.default_opclass(oid, Oid(am.parse().unwrap()));
                (found.unwrap_or_default().to_string(), want.to_owned())
            }
            name => (view.object_name(kind(name), oid).unwrap().unwrap_or_default(), fields[2].to_owned()),
        };
        seen += 1;
        if got != want {
            writeln!(wrong, "{line}: {got}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(seen > 1000);
}

#[test]
fn names_are_read_as_the_judge_reads_them() {
    let view = view();
    let mut wrong = String::new();
    for line in include_str!("../testdata/inputs.txt").lines() {
        let (kind_name, rest) = line.split_once('\t').unwrap();
        let (name, want) = rest.split_once('\t').unwrap();
        let got = match view.object_oid(kind(kind_name), name) {
            Ok(oid) => oid.to_string(),
            Err(e) => format!("{} {}", e.state.code(), e.message),
        };
        if got != want {
            writeln!(wrong, "{line}: {got}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
