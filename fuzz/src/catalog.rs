//! The types that values are fuzzed for: the built-in ones, arrays of them, and one of each sort that users make.

use std::sync::{Arc, LazyLock};

use stegodon_format::ids::Oid;
use stegodon_nodes::reader::NodeContext;
use stegodon_types::{
    BuiltinTypes, Collation, CompositeAttribute, Layout, RegKind, SqlResult, TypeCatalog, TypeDesc, TypeKind, oids,
    table,
};

const COMPOSITE: Oid = Oid(100_000);
const COMPOSITE_OF_COMPOSITE: Oid = Oid(100_001);
const ENUM: Oid = Oid(100_002);
const DOMAIN: Oid = Oid(100_003);
const DOMAIN_OF_DOMAIN: Oid = Oid(100_004);
const RANGE: Oid = Oid(100_005);
const MULTIRANGE: Oid = Oid(100_006);
const COMPOSITE_ARRAY: Oid = Oid(100_007);
const DOMAIN_ARRAY: Oid = Oid(100_008);
const ENUM_ARRAY: Oid = Oid(100_009);
const SELF_DOMAIN: Oid = Oid(100_010);

/// Enum values' OIDs and labels; the odd one is out of order.
const LABELS: [(u32, &str, f32); 3] = [(200_000, "a", 1.0), (200_002, "b, \"c\"", 2.0), (200_003, "d", 1.5)];

pub struct Types;

fn user(oid: Oid, name: &str, kind: TypeKind, like: Oid, array: Oid) -> TypeDesc {
    let like = table::builtin(like).unwrap().desc();
    TypeDesc { oid, name: name.to_owned(), namespace: Oid(2200), kind, array, ..like }
}

fn made(oid: Oid) -> Option<TypeDesc> {
    let none = Oid(0);
    let array = |element| user(oid, "_user", TypeKind::Array { element }, oids::RECORD, none);
    Some(match oid {
        COMPOSITE => user(oid, "pair", TypeKind::Composite { relation: Oid(300_000) }, oids::RECORD, COMPOSITE_ARRAY),
        COMPOSITE_OF_COMPOSITE => user(oid, "tree", TypeKind::Composite { relation: Oid(300_001) }, oids::RECORD, none),
        ENUM => user(oid, "mood", TypeKind::Enum, oids::OID, ENUM_ARRAY),
        DOMAIN => user(oid, "price", TypeKind::Domain { base: oids::NUMERIC, typmod: -1 }, oids::NUMERIC, DOMAIN_ARRAY),
        DOMAIN_OF_DOMAIN => {
            user(oid, "cost", TypeKind::Domain { base: DOMAIN, typmod: (10 << 16 | 2) + 4 }, oids::NUMERIC, none)
        }
        SELF_DOMAIN => user(oid, "snake", TypeKind::Domain { base: SELF_DOMAIN, typmod: -1 }, oids::NUMERIC, none),
        RANGE => user(oid, "textrange", TypeKind::Range { subtype: oids::TEXT, collation: Oid(950) }, Oid(3906), none),
        MULTIRANGE => user(oid, "textmultirange", TypeKind::Multirange { range: RANGE }, Oid(4532), none),
        COMPOSITE_ARRAY => array(COMPOSITE),
        DOMAIN_ARRAY => array(DOMAIN),
        ENUM_ARRAY => array(ENUM),
        _ => return None,
    })
}

/// Every type there is to fuzz.
pub static ALL: LazyLock<Vec<TypeDesc>> = LazyLock::new(|| {
    let rows = table::TYPES.iter().map(table::TypeRow::desc);
    let arrays = table::TYPES.iter().filter_map(table::TypeRow::array_desc);
    let made = (COMPOSITE.0..=SELF_DOMAIN.0).filter_map(|oid| made(Oid(oid)));
    rows.chain(arrays).chain(made).collect()
});

impl TypeCatalog for Types {
    fn type_desc(&self, oid: Oid) -> SqlResult<Arc<TypeDesc>> {
        made(oid).map_or_else(|| BuiltinTypes.type_desc(oid), |desc| Ok(Arc::new(desc)))
    }

    fn enum_label(&self, value: Oid) -> SqlResult<String> {
        let known = LABELS.iter().find(|(oid, _, _)| *oid == value.0);
        known.map_or_else(|| BuiltinTypes.enum_label(value), |(_, label, _)| Ok((*label).to_owned()))
    }

    fn enum_value(&self, _: Oid, label: &str) -> SqlResult<Option<Oid>> {
        Ok(LABELS.iter().find(|(_, known, _)| *known == label).map(|(oid, _, _)| Oid(*oid)))
    }

    fn enum_order(&self, value: Oid) -> SqlResult<f32> {
        let known = LABELS.iter().find(|(oid, _, _)| *oid == value.0);
        known.map_or_else(|| BuiltinTypes.enum_order(value), |(_, _, order)| Ok(*order))
    }

    fn composite(&self, type_oid: Oid) -> SqlResult<Arc<[CompositeAttribute]>> {
        let column = |name: &str, type_oid: Oid, dropped: bool| {
            let desc = self.type_desc(type_oid).unwrap();
            CompositeAttribute {
                name: name.to_owned(),
                type_oid: if dropped { Oid(0) } else { type_oid },
                typmod: -1,
                collation: desc.collation,
                dropped,
                len: desc.len,
                align: desc.align,
            }
        };
        match type_oid {
            COMPOSITE => Ok(vec![
                column("a", oids::INT4, false),
                column("gone", oids::INT8, true),
                column("t", oids::TEXT, false),
                column("n", oids::NUMERIC, false),
            ]
            .into()),
            COMPOSITE_OF_COMPOSITE => Ok(vec![
                column("pair", COMPOSITE, false),
                column("pairs", COMPOSITE_ARRAY, false),
                column("mood", ENUM, false),
                column("span", RANGE, false),
                column("doc", oids::JSONB, false),
            ]
            .into()),
            _ => BuiltinTypes.composite(type_oid),
        }
    }

    fn object_name(&self, _: RegKind, oid: Oid) -> SqlResult<Option<String>> {
        Ok((oid.0 % 2 == 1).then(|| "pg_class".to_owned()))
    }

    fn object_oid(&self, kind: RegKind, name: &str) -> SqlResult<Oid> {
        BuiltinTypes.object_oid(kind, name)
    }

    fn collation(&self, oid: Oid) -> SqlResult<Collation> {
        Ok(if oid == Oid(0) { Collation::None } else { Collation::C })
    }
}

impl NodeContext for Types {
    fn layout(&self, type_oid: Oid) -> Option<Layout> {
        self.type_desc(type_oid).ok().and_then(|desc| desc.layout)
    }

    fn is_descending(&self, ordering: Oid) -> Option<bool> {
        (!ordering.0.is_multiple_of(3)).then_some(ordering.0 % 2 == 1)
    }
}
