//! Types: by name, with typmods, and their names as messages spell them.

use pg_query::{NodeEnum, protobuf as pb};
use stegodon_catalog::{Catalog, SearchPath};
use stegodon_format::ids::Oid;
use stegodon_types::{SqlError, SqlResult, SqlState, TypeDesc, TypeKind};

use crate::context::{Analyzer, loc};
use crate::names::string_list;
use crate::oids;

/// The type's name as `format_type_be` spells it: schema-qualified where the search path does not find it.
pub fn format_type(catalog: &Catalog, path: &SearchPath, oid: Oid) -> String {
    catalog.format_type_on(path, oid, None)
}

impl Analyzer<'_> {
    /// [`format_type`] under the session's path.
    pub fn type_name(&self, oid: Oid) -> String {
        format_type(self.cx.catalog, self.cx.path, oid)
    }

    /// A type's description; it exists, or something has gone wrong.
    pub fn type_desc(&self, oid: Oid) -> SqlResult<&TypeDesc> {
        match self.cx.catalog.type_desc(oid) {
            Some(t) => Ok(t),
            None => Err(SqlError::internal(format_args!("cache lookup failed for type {oid}"))),
        }
    }

    /// The collation of a type's values, 0 for none. A domain's own where it has one.
    pub fn type_collation(&self, oid: Oid) -> Oid {
        self.cx.catalog.type_desc(oid).map_or(Oid::INVALID, |t| t.collation)
    }

    /// Through domains to the type below, with the typmod that they apply where `typmod` is -1.
    pub fn base_type_and_typmod(&self, oid: Oid, typmod: i32) -> (Oid, i32) {
        let (mut oid, mut typmod) = (oid, typmod);
        // A chain of domains cannot be a circle in a sound catalog; the bound keeps an unsound one from hanging us.
        for _ in 0..1000 {
            match self.cx.catalog.type_desc(oid).map(|t| &t.kind) {
                Some(TypeKind::Domain { base, typmod: own }) => {
                    oid = *base;
                    if typmod < 0 {
                        typmod = *own;
                    }
                }
                _ => break,
            }
        }
        (oid, typmod)
    }

    /// Through domains to the type below.
    pub fn base_type(&self, oid: Oid) -> Oid {
        self.base_type_and_typmod(oid, -1).0
    }

    /// The element type of a true array type; domains are not looked through.
    pub fn element_type(&self, oid: Oid) -> Option<Oid> {
        match oid {
            oids::INT2VECTOR => return Some(oids::INT2),
            oids::OIDVECTOR => return Some(oids::OID),
            _ => {}
        }
        match self.cx.catalog.type_desc(oid)?.kind {
            TypeKind::Array { element } => Some(element),
            _ => None,
        }
    }

    /// The element type of an array type or of a domain over one.
    pub fn base_element_type(&self, oid: Oid) -> Option<Oid> {
        self.element_type(self.base_type(oid))
    }

    /// The array type over a type.
    pub fn array_type(&self, oid: Oid) -> Option<Oid> {
        let array = self.cx.catalog.type_desc(oid)?.array;
        array.is_valid().then_some(array)
    }

    /// The relation of a composite type, or of a domain over one.
    pub fn composite_relation(&self, oid: Oid) -> Option<Oid> {
        match self.cx.catalog.type_desc(self.base_type(oid))?.kind {
            TypeKind::Composite { relation } => Some(relation),
            _ => None,
        }
    }

    /// Whether values are rows: a composite type, a domain over one, or `record`.
    pub fn is_row_type(&self, oid: Oid) -> bool {
        oid == oids::RECORD || self.composite_relation(oid).is_some()
    }

    /// Looks a type up by its possibly qualified name.
    pub fn lookup_type(&self, names: &[String], at: pb::TypeName) -> SqlResult<Option<Oid>> {
        let location = loc(at.location);
        let found = match names {
            [name] => self.cx.catalog.type_on_path(self.cx.path, name),
            [schema, name] => {
                let ns = self.namespace_named(schema).map_err(|e| self.place(e, location))?;
                self.cx.catalog.type_by_name(ns, name)
            }
            [database, schema, name] => {
                self.check_database(database, &names.join("."))?;
                let ns = self.namespace_named(schema).map_err(|e| self.place(e, location))?;
                self.cx.catalog.type_by_name(ns, name)
            }
            _ => {
                return Err(SqlError::new(
                    SqlState::SyntaxError,
                    format!("improper qualified name (too many dotted names): {}", names.join(".")),
                ));
            }
        };
        Ok(found.map(|t| t.oid))
    }

    /// What a type name in the statement means: type and typmod.
    pub fn resolve_type_name(&self, tn: &pb::TypeName) -> SqlResult<(Oid, i32)> {
        let location = loc(tn.location);
        if tn.setof {
            return self.unsupported(location, "SETOF in a type name");
        }
        let names = string_list(&tn.names)?;
        if tn.pct_type {
            return self.resolve_pct_type(tn, &names);
        }
        let mut oid = if names.is_empty() {
            Oid(tn.type_oid)
        } else {
            match self.lookup_type(&names, tn.clone())? {
                Some(oid) => oid,
                None => return Err(self.undefined_type(tn, &names)),
            }
        };
        if !tn.array_bounds.is_empty() {
            let element = oid;
            oid = match self.array_type(element) {
                Some(array) => array,
                None => return Err(self.undefined_type(tn, &names)),
            };
            let typmod = self.type_typmod(element, tn)?;
            return Ok((oid, typmod));
        }
        let typmod = self.type_typmod(oid, tn)?;
        Ok((oid, typmod))
    }

    fn undefined_type(&self, tn: &pb::TypeName, names: &[String]) -> SqlError {
        let mut name = names.join(".");
        if !tn.array_bounds.is_empty() {
            name.push_str("[]");
        }
        self.error_at(loc(tn.location), SqlState::UndefinedObject, format!("type \"{name}\" does not exist"))
    }

    fn resolve_pct_type(&self, tn: &pb::TypeName, names: &[String]) -> SqlResult<(Oid, i32)> {
        let location = loc(tn.location);
        let Some((column, relation)) = names.split_last() else {
            return Err(SqlError::internal("empty %TYPE reference"));
        };
        if relation.is_empty() {
            return Err(self.error_at(
                location,
                SqlState::SyntaxError,
                format!("improper %TYPE reference (too few dotted names): {}", names.join(".")),
            ));
        }
        let found = match relation {
            [table] => self.cx.catalog.relation_on_path(self.cx.path, table),
            [schema, table] => self.cx.catalog.relation_by_name(self.namespace_named(schema)?, table),
            _ => return self.unsupported(location, "a %TYPE reference with three or more names"),
        };
        let Some(rel) = found else {
            return Err(self.error_at(
                location,
                SqlState::UndefinedTable,
                format!("relation \"{}\" does not exist", relation.join(".")),
            ));
        };
        let Some(attribute) = rel.attributes.iter().find(|a| !a.dropped && a.name == *column) else {
            return Err(self.error_at(
                location,
                SqlState::UndefinedColumn,
                format!("column \"{column}\" of relation \"{}\" does not exist", rel.name),
            ));
        };
        if tn.array_bounds.is_empty() {
            return Ok((attribute.type_oid, attribute.typmod));
        }
        match self.array_type(attribute.type_oid) {
            Some(array) => Ok((array, attribute.typmod)),
            None => self.unsupported(location, "an array of such a %TYPE"),
        }
    }

    /// The typmod that the modifiers in a type's name make.
    fn type_typmod(&self, oid: Oid, tn: &pb::TypeName) -> SqlResult<i32> {
        if tn.typmods.is_empty() {
            return Ok(tn.typemod);
        }
        let location = loc(tn.location);
        let takes_typmods = matches!(
            oid,
            oids::BPCHAR
                | oids::VARCHAR
                | oids::NUMERIC
                | oids::BIT
                | oids::VARBIT
                | oids::TIME
                | oids::TIMETZ
                | oids::TIMESTAMP
                | oids::TIMESTAMPTZ
                | oids::INTERVAL
        );
        if !takes_typmods {
            if oid.0 > oids::LAST_BUILTIN.0 && !matches!(self.type_desc(oid)?.kind, TypeKind::Base) {
                // Domains, enums and composites never have a typmod input function; an extension's base type may.
            } else if oid.0 > oids::LAST_BUILTIN.0 {
                return self.unsupported(location, format_args!("a type modifier for type {}", self.type_name(oid)));
            }
            return Err(self.error_at(
                location,
                SqlState::SyntaxError,
                format!("type modifier is not allowed for type \"{}\"", string_list(&tn.names)?.join(".")),
            ));
        }
        let mut mods = Vec::with_capacity(tn.typmods.len());
        for node in &tn.typmods {
            mods.push(match node.node.as_ref() {
                Some(NodeEnum::AConst(c)) => match &c.val {
                    Some(pb::a_const::Val::Ival(i)) if !c.isnull => i.ival,
                    Some(pb::a_const::Val::Fval(f)) => {
                        return Err(self.error_at(
                            location,
                            SqlState::InvalidTextRepresentation,
                            format!("invalid input syntax for type integer: \"{}\"", f.fval),
                        ));
                    }
                    Some(pb::a_const::Val::Sval(s)) => match s.sval.trim().parse::<i32>() {
                        Ok(i) => i,
                        Err(_) => {
                            return Err(self.error_at(
                                location,
                                SqlState::InvalidTextRepresentation,
                                format!("invalid input syntax for type integer: \"{}\"", s.sval),
                            ));
                        }
                    },
                    // An omitted integer constant is zero in protobuf's encoding.
                    None if !c.isnull => 0,
                    _ => return Err(self.error_at(location, SqlState::SyntaxError, TYPMODS_CONSTANT)),
                },
                _ => return Err(self.error_at(location, SqlState::SyntaxError, TYPMODS_CONSTANT)),
            });
        }
        self.typmod_in(oid, &mods).map_err(|e| self.place(e, location))
    }

    fn typmod_in(&self, oid: Oid, mods: &[i32]) -> SqlResult<i32> {
        const VARHDRSZ: i32 = 4;
        const MAX_CHARS: i32 = 10 * 1024 * 1024;
        let invalid = |m: String| Err(SqlError::new(SqlState::InvalidParameterValue, m));
        match (oid, mods) {
            (oids::BPCHAR | oids::VARCHAR | oids::BIT | oids::VARBIT, &[n]) => {
                let name = match oid {
                    oids::BPCHAR => "char",
                    oids::VARCHAR => "varchar",
                    oids::BIT => "bit",
                    _ => "varbit",
                };
                let bits = matches!(oid, oids::BIT | oids::VARBIT);
                let most = if bits { MAX_CHARS * 8 } else { MAX_CHARS };
                if n < 1 {
                    return invalid(format!("length for type {name} must be at least 1"));
                }
                if n > most {
                    return invalid(format!("length for type {name} cannot exceed {most}"));
                }
                Ok(if bits { n } else { n + VARHDRSZ })
            }
            (oids::NUMERIC, &[p] | &[p, _]) => {
                let scale = mods.get(1).copied().unwrap_or(0);
                if !(1..=1000).contains(&p) {
                    return invalid(format!("NUMERIC precision {p} must be between 1 and 1000"));
                }
                if !(-1000..=1000).contains(&scale) {
                    return invalid(format!("NUMERIC scale {scale} must be between -1000 and 1000"));
                }
                Ok(((p << 16) | (scale & 0x7ff)) + VARHDRSZ)
            }
            (oids::NUMERIC, _) => invalid("invalid NUMERIC type modifier".to_owned()),
            (oids::TIME | oids::TIMETZ | oids::TIMESTAMP | oids::TIMESTAMPTZ, &[p]) => {
                let (name, zone) = match oid {
                    oids::TIME => ("TIME", ""),
                    oids::TIMETZ => ("TIME", " WITH TIME ZONE"),
                    oids::TIMESTAMP => ("TIMESTAMP", ""),
                    _ => ("TIMESTAMP", " WITH TIME ZONE"),
                };
                if p < 0 {
                    return invalid(format!("{name}({p}){zone} precision must not be negative"));
                }
                // Beyond 6 PostgreSQL warns, and takes 6.
                Ok(p.min(6))
            }
            (oids::INTERVAL, &[range] | &[range, _]) => {
                const FULL_RANGE: i32 = 0x7fff;
                const FULL_PRECISION: i32 = 0xffff;
                const YEAR: i32 = 1 << 2;
                const MONTH: i32 = 1 << 1;
                const DAY: i32 = 1 << 3;
                const HOUR: i32 = 1 << 10;
                const MINUTE: i32 = 1 << 11;
                const SECOND: i32 = 1 << 12;
                let known = [
                    YEAR,
                    MONTH,
                    DAY,
                    HOUR,
                    MINUTE,
                    SECOND,
                    YEAR | MONTH,
                    DAY | HOUR,
                    DAY | HOUR | MINUTE,
                    DAY | HOUR | MINUTE | SECOND,
                    HOUR | MINUTE,
                    HOUR | MINUTE | SECOND,
                    MINUTE | SECOND,
                    FULL_RANGE,
                ];
                if !known.contains(&range) {
                    return invalid("invalid INTERVAL type modifier".to_owned());
                }
                match mods.get(1) {
                    None if range == FULL_RANGE => Ok(-1),
                    None => Ok((range << 16) | FULL_PRECISION),
                    Some(&p) if p < 0 => invalid(format!("INTERVAL({p}) precision must not be negative")),
                    Some(&p) => Ok((range << 16) | p.min(6)),
                }
            }
            _ => invalid("invalid type modifier".to_owned()),
        }
    }
}

const TYPMODS_CONSTANT: &str = "type modifiers must be simple constants or identifiers";
