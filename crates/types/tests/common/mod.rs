//! The built-in types and those of `testdata/types.txt`.
#![allow(dead_code)]

use std::collections::HashMap;
use std::sync::Arc;

use stegodon_types::*;

pub struct TestTypes {
    types: HashMap<Oid, Arc<TypeDesc>>,
    names: HashMap<String, Oid>,
    columns: HashMap<Oid, Arc<[CompositeAttribute]>>,
    labels: Vec<(Oid, Oid, f32, String)>,
}

fn align(letter: &str) -> Align {
    Align::from_letter(letter.as_bytes()[0]).unwrap()
}

impl TestTypes {
    pub fn new() -> Self {
        let rows: Vec<Vec<&str>> =
            include_str!("../../testdata/types.txt").lines().map(|l| l.split('\t').collect()).collect();
        let oid = |text: &str| Oid(text.parse().unwrap());
        let of = |kind: &'static str| rows.iter().filter(move |r| r[0] == kind);
        let mut all =
            TestTypes { types: HashMap::new(), names: HashMap::new(), columns: HashMap::new(), labels: vec![] };
        for r in of("T") {
            let id = oid(r[1]);
            let element = oid(r[9]);
            let range = of("R").find(|x| x[1] == r[1]);
            let kind = match (r[6], r[7]) {
                ("e", _) => TypeKind::Enum,
                ("c", _) => TypeKind::Composite { relation: oid(r[12]) },
                ("d", _) => TypeKind::Domain { base: oid(r[13]), typmod: r[14].parse().unwrap() },
                ("r", _) => TypeKind::Range { subtype: oid(range.unwrap()[2]), collation: oid(range.unwrap()[3]) },
                ("m", _) => TypeKind::Multirange { range: oid(of("R").find(|x| x[4] == r[1]).unwrap()[1]) },
                _ => TypeKind::Array { element },
            };
            let layout = match (r[6], r[3]) {
                ("e", _) => Layout::UInt32,
                ("d", "4") => Layout::Int32,
                _ => Layout::Bytes,
            };
            let desc = TypeDesc {
                oid: id,
                name: r[2].to_owned(),
                namespace: Oid(16384),
                len: r[3].parse().unwrap(),
                align: align(r[4]),
                by_value: r[5] == "t",
                kind,
                category: r[7].as_bytes()[0],
                preferred: false,
                delimiter: r[8].as_bytes()[0],
                element,
                array: oid(r[10]),
                collation: oid(r[11]),
                layout: Some(layout),
            };
            all.names.insert(desc.name.clone(), id);
            all.types.insert(id, Arc::new(desc));
            let columns: Vec<CompositeAttribute> = of("A")
                .filter(|a| a[1] == r[1])
                .map(|a| CompositeAttribute {
                    name: a[2].to_owned(),
                    type_oid: oid(a[3]),
                    typmod: a[4].parse().unwrap(),
                    collation: oid(a[5]),
                    dropped: a[6] == "t",
                    len: a[7].parse().unwrap(),
                    align: align(a[8]),
                })
                .collect();
            if !columns.is_empty() {
                all.columns.insert(id, columns.into());
            }
        }
        for r in of("E") {
            all.labels.push((oid(r[1]), oid(r[2]), r[3].parse().unwrap(), r[4].to_owned()));
        }
        all
    }

    /// A type by the name that the test data has.
    pub fn named(&self, name: &str) -> Arc<TypeDesc> {
        let (base, is_array) = name.strip_suffix("[]").map_or((name, false), |b| (b, true));
        let base = base.trim_matches('"');
        let oid = self
            .names
            .get(base)
            .copied()
            .or_else(|| table::TYPES.iter().find(|row| row.name == base).map(|row| row.oid))
            .unwrap_or_else(|| panic!("no type {base}"));
        let desc = self.type_desc(oid).unwrap();
        if is_array { self.type_desc(desc.array).unwrap() } else { desc }
    }
}

impl TypeCatalog for TestTypes {
    fn type_desc(&self, oid: Oid) -> SqlResult<Arc<TypeDesc>> {
        self.types.get(&oid).cloned().map_or_else(|| BuiltinTypes.type_desc(oid), Ok)
    }

    fn enum_label(&self, value: Oid) -> SqlResult<String> {
        self.labels.iter().find(|l| l.1 == value).map_or_else(|| BuiltinTypes.enum_label(value), |l| Ok(l.3.clone()))
    }

    fn enum_value(&self, enum_type: Oid, label: &str) -> SqlResult<Option<Oid>> {
        Ok(self.labels.iter().find(|l| l.0 == enum_type && l.3 == label).map(|l| l.1))
    }

    fn enum_order(&self, value: Oid) -> SqlResult<f32> {
        self.labels.iter().find(|l| l.1 == value).map_or_else(|| BuiltinTypes.enum_order(value), |l| Ok(l.2))
    }

    fn composite(&self, type_oid: Oid) -> SqlResult<Arc<[CompositeAttribute]>> {
        self.columns.get(&type_oid).cloned().map_or_else(|| BuiltinTypes.composite(type_oid), Ok)
    }

    fn object_name(&self, kind: RegKind, oid: Oid) -> SqlResult<Option<String>> {
        Ok(self.type_desc(oid).ok().filter(|_| kind == RegKind::Type).map(|ty| names::sql_name(&ty)))
    }

    fn object_oid(&self, kind: RegKind, name: &str) -> SqlResult<Oid> {
        BuiltinTypes.object_oid(kind, name)
    }

    fn collation(&self, oid: Oid) -> SqlResult<Collation> {
        // The judge's default collation is C.UTF-8.
        if oid == Oid(100) { Ok(Collation::C) } else { BuiltinTypes.collation(oid) }
    }
}

pub fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            '\\' => match chars.next().unwrap() {
                't' => '\t',
                'n' => '\n',
                other => other,
            },
            c => c,
        });
    }
    out
}

pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut out, b| {
        write!(out, "{b:02x}").unwrap();
        out
    })
}

pub fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}
