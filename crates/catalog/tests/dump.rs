//! The judge's catalogs, whole.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use stegodon_catalog::testing;
use stegodon_types::{Layout, Oid, TypeKind};

#[test]
fn the_dump_becomes_a_catalog() {
    let catalog = testing::catalog().unwrap();
    assert_eq!(catalog.database().unwrap().name, "postgres");
    let class = catalog.relation(Oid(1259)).unwrap();
    assert_eq!(class.name, "pg_class");
    assert_eq!(class.attributes.len(), 34);
    assert_eq!(class.indexes.len(), 3);
    let int4 = catalog.type_desc(Oid(23)).unwrap();
    assert_eq!((int4.layout, int4.array), (Some(Layout::Int32), Oid(1007)));
    assert_eq!(catalog.type_desc(Oid(1007)).unwrap().kind, TypeKind::Array { element: Oid(23) });
    assert_eq!(catalog.aggregate(Oid(2108)).unwrap().transition, Oid(1841));
    assert!(catalog.procs_named("count").count() == 2);
    assert_eq!(catalog.rules(catalog.relation_by_name(Oid(11), "pg_tables").unwrap().oid).len(), 1);
}
