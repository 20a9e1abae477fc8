//! Printing the names of objects: `format_type`, and what the `reg*` types print.

use stegodon_format::ids::Oid;
use stegodon_types::RegKind;

use crate::keywords::{quote_identifier, quote_qualified};
use crate::lookup::{Catalog, SearchPath};

/// `varchar(n)`, `numeric(p,s)` …: what the typmod's output function prints, empty for none.
fn typmod_text(type_oid: Oid, typmod: i32) -> String {
    match type_oid.0 {
        // bpchar, varchar
        1042 | 1043 if typmod > 4 => format!("({})", typmod - 4),
        1042 | 1043 => String::new(),
        // bit, varbit
        1560 | 1562 => format!("({typmod})"),
        // numeric: precision in the upper half, scale in eleven signed bits.
        1700 if typmod >= 4 => {
            let packed = typmod - 4;
            let scale = ((packed & 0x7FF) ^ 1024) - 1024;
            format!("({},{scale})", packed >> 16 & 0xFFFF)
        }
        1700 => String::new(),
        1083 | 1114 => format!("({typmod}) without time zone"),
        1266 | 1184 => format!("({typmod}) with time zone"),
        1186 => interval_typmod(typmod),
        _ => format!("({typmod})"),
    }
}

fn interval_typmod(typmod: i32) -> String {
    let (month, year, day, hour, minute, second) = (1 << 1, 1 << 2, 1 << 3, 1 << 10, 1 << 11, 1 << 12);
    let range = typmod >> 16 & 0x7FFF;
    let fields = match range {
        0x7FFF => "",
        r if r == year => " year",
        r if r == month => " month",
        r if r == day => " day",
        r if r == hour => " hour",
        r if r == minute => " minute",
        r if r == second => " second",
        r if r == year | month => " year to month",
        r if r == day | hour => " day to hour",
        r if r == day | hour | minute => " day to minute",
        r if r == day | hour | minute | second => " day to second",
        r if r == hour | minute => " hour to minute",
        r if r == hour | minute | second => " hour to second",
        r if r == minute | second => " minute to second",
        _ => "",
    };
    match typmod & 0xFFFF {
        0xFFFF => fields.to_owned(),
        precision => format!("{fields}({precision})"),
    }
}

impl Catalog {
    /// A type as SQL writes it, as if only `pg_catalog` were on the search path: for messages where no session is known.
    pub fn format_type(&self, type_oid: Oid, typmod: Option<i32>) -> String {
        self.format_type_on(&SearchPath::catalog_only(), type_oid, typmod)
    }

    /// A type as SQL writes it (`format_type`). `typmod` is `None` where none was given; -1 given says "none known",
    /// for which `char` and `bit` print their internal names.
    pub fn format_type_on(&self, path: &SearchPath, type_oid: Oid, typmod: Option<i32>) -> String {
        if !type_oid.is_valid() {
            return "-".to_owned();
        }
        let Some(outer) = self.type_desc(type_oid) else { return "???".to_owned() };
        // oidvector and int2vector are subscripted like arrays but are shown by name: their storage is plain.
        let element = self.element_type(type_oid).filter(|_| self.type_row(type_oid).is_none_or(|t| t.storage != b'p'));
        let desc = match element {
            Some(element) => match self.type_desc(element) {
                Some(desc) => desc,
                None => return "???[]".to_owned(),
            },
            None => outer,
        };
        let with = typmod.filter(|&m| m >= 0);
        let given = typmod.is_some();
        let oid = desc.oid;
        let suffix = |name: &str| format!("{name}{}", with.map_or_else(String::new, |m| typmod_text(oid, m)));
        let special = match oid.0 {
            16 => Some("boolean".to_owned()),
            700 => Some("real".to_owned()),
            701 => Some("double precision".to_owned()),
            21 => Some("smallint".to_owned()),
            23 => Some("integer".to_owned()),
            20 => Some("bigint".to_owned()),
            114 => Some("json".to_owned()),
            1560 if with.is_some() || !given => Some(suffix("bit")),
            1042 if with.is_some() || !given => Some(suffix("character")),
            1562 => Some(suffix("bit varying")),
            1043 => Some(suffix("character varying")),
            1700 => Some(suffix("numeric")),
            1186 => Some(suffix("interval")),
            1083 | 1114 | 1266 | 1184 => {
                let name = if matches!(oid.0, 1083 | 1266) { "time" } else { "timestamp" };
                let zone = if matches!(oid.0, 1083 | 1114) { " without time zone" } else { " with time zone" };
                Some(if with.is_some() { suffix(name) } else { format!("{name}{zone}") })
            }
            _ => None,
        };
        let mut text = special.unwrap_or_else(|| {
            let schema = if self.type_is_visible(oid, path) { None } else { Some(self.schema_name(desc.namespace)) };
            let name = quote_qualified(schema.as_deref(), &desc.name);
            with.map_or_else(|| name.clone(), |m| format!("{name}{}", typmod_text(oid, m)))
        });
        if element.is_some() {
            text.push_str("[]");
        }
        text
    }

    fn schema_name(&self, namespace: Oid) -> String {
        self.namespace(namespace).map_or_else(|| namespace.to_string(), |n| n.name.clone())
    }

    fn qualified_unless(&self, visible: bool, namespace: Oid, name: &str) -> String {
        let schema = if visible { None } else { Some(self.schema_name(namespace)) };
        quote_qualified(schema.as_deref(), name)
    }

    /// A relation's name as `regclass` prints it.
    pub fn relation_name(&self, oid: Oid, path: &SearchPath) -> Option<String> {
        let r = self.relation(oid)?;
        Some(self.qualified_unless(self.relation_is_visible(oid, path), r.namespace, &r.name))
    }

    /// A function with its argument types as `regprocedure` prints it.
    pub fn procedure_name(&self, oid: Oid, path: &SearchPath) -> Option<String> {
        let p = self.proc(oid)?;
        let name = self.qualified_unless(self.function_is_visible(oid, path), p.namespace, &p.name);
        let args: Vec<String> = p.arg_types.iter().map(|&t| self.format_type_on(path, t, None)).collect();
        Some(format!("{name}({})", args.join(",")))
    }

    /// An operator with its argument types as `regoperator` prints it.
    pub fn operator_name(&self, oid: Oid, path: &SearchPath) -> Option<String> {
        let o = self.operator(oid)?;
        let schema = if self.operator_is_visible(oid, path) {
            String::new()
        } else {
            format!("{}.", quote_identifier(&self.schema_name(o.namespace)))
        };
        let side = |t: Oid| if t.is_valid() { self.format_type_on(path, t, None) } else { "NONE".to_owned() };
        Some(format!("{schema}{}({},{})", o.name, side(o.left), side(o.right)))
    }

    /// What the output function of a `reg*` type prints; `None` where there is no such object.
    pub fn object_name_on(&self, kind: RegKind, oid: Oid, path: &SearchPath) -> Option<String> {
        if !oid.is_valid() {
            let operator = matches!(kind, RegKind::Oper | RegKind::Operator);
            return Some(if operator { "0" } else { "-" }.to_owned());
        }
        match kind {
            RegKind::Class => self.relation_name(oid, path),
            RegKind::Type => self.type_desc(oid).map(|_| self.format_type_on(path, oid, None)),
            RegKind::Proc => {
                let p = self.proc(oid)?;
                let unique = self.function_candidates(None, &p.name, path) == [oid];
                Some(self.qualified_unless(unique, p.namespace, &p.name))
            }
            RegKind::Procedure => self.procedure_name(oid, path),
            RegKind::Oper => {
                let o = self.operator(oid)?;
                if self.operator_candidates(None, &o.name, path) == [oid] {
                    return Some(o.name.clone());
                }
                Some(format!("{}.{}", quote_identifier(&self.schema_name(o.namespace)), o.name))
            }
            RegKind::Operator => self.operator_name(oid, path),
            RegKind::Namespace => self.namespace(oid).map(|n| quote_identifier(&n.name)),
            RegKind::Role => self.role(oid).map(|r| quote_identifier(&r.name)),
            RegKind::Collation => {
                let c = self.collation(oid)?;
                Some(self.qualified_unless(self.collation_is_visible(oid, path), c.namespace, &c.name))
            }
            RegKind::Config => {
                let c = self.ts_configs.get(&oid)?;
                Some(self.qualified_unless(self.ts_config_is_visible(oid, path), c.namespace, &c.name))
            }
            RegKind::Dictionary => {
                let c = self.ts_dicts.get(&oid)?;
                Some(self.qualified_unless(self.ts_dictionary_is_visible(oid, path), c.namespace, &c.name))
            }
        }
    }
}
