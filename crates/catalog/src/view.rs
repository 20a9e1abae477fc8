//! A session's view of the catalogs: with its search path, everything that reading and printing values asks.

use std::sync::Arc;

use stegodon_format::ids::Oid;
use stegodon_types::{
    Collation, CompositeAttribute, RegKind, SqlError, SqlResult, SqlState, TypeCatalog, TypeDesc, TypeKind,
};

use crate::lookup::{Catalog, SearchPath};
use crate::path::split_identifiers;

/// A catalog and the schemas that bare names are looked for in.
#[derive(Clone)]
pub struct CatalogView {
    /// The catalogs.
    pub catalog: Arc<Catalog>,
    /// The schemas.
    pub path: SearchPath,
}

fn undefined(what: impl std::fmt::Display) -> SqlError {
    SqlError::new(SqlState::UndefinedObject, what.to_string())
}

fn invalid_name() -> SqlError {
    SqlError::new(SqlState::InvalidName, "invalid name syntax")
}

/// A name split at its dots.
fn qualified(name: &str) -> SqlResult<Vec<String>> {
    split_identifiers(name, '.').filter(|parts| !parts.is_empty()).ok_or_else(invalid_name)
}

impl CatalogView {
    /// A view of a catalog under a path.
    pub fn new(catalog: Arc<Catalog>, path: SearchPath) -> Self {
        Self { catalog, path }
    }

    /// `format_type` under this view's path.
    pub fn format_type(&self, type_oid: Oid, typmod: Option<i32>) -> String {
        self.catalog.format_type_on(&self.path, type_oid, typmod)
    }

    /// Schema and bare name of a name of up to three parts. The schema is `Err` where it is named but does not exist.
    fn deconstruct<'n>(&self, parts: &'n [String]) -> SqlResult<(Option<Result<Oid, &'n str>>, &'n str)> {
        let of = |schema: &'n String| match self.catalog.namespace_by_name(schema) {
            Some(n) => Ok(n.oid),
            None => Err(schema.as_str()),
        };
        match parts {
            [name] => Ok((None, name)),
            [schema, name] => Ok((Some(of(schema)), name)),
            [database, schema, name] => {
                if self.catalog.database().is_some_and(|d| d.name == *database) {
                    Ok((Some(of(schema)), name))
                } else {
                    let message = format!("cross-database references are not implemented: {}", parts.join("."));
                    Err(SqlError::new(SqlState::FeatureNotSupported, message))
                }
            }
            _ => Err(SqlError::new(
                SqlState::SyntaxError,
                format!("improper qualified name (too many dotted names): {}", parts.join(".")),
            )),
        }
    }

    fn no_schema(name: &str) -> SqlError {
        SqlError::new(SqlState::InvalidSchemaName, format!("schema \"{name}\" does not exist"))
    }

    /// A relation by a name of up to three parts.
    pub fn relation_named(&self, parts: &[String]) -> SqlResult<Oid> {
        if let [database, schema, name] = parts
            && self.catalog.database().is_none_or(|d| d.name != *database)
        {
            let message = format!("cross-database references are not implemented: \"{database}.{schema}.{name}\"");
            return Err(SqlError::new(SqlState::FeatureNotSupported, message));
        }
        let (schema, name) = self.deconstruct(parts)?;
        let found = match schema {
            None => self.catalog.relation_on_path(&self.path, name),
            Some(Ok(schema)) => self.catalog.relation_by_name(schema, name),
            Some(Err(_)) => None,
        };
        found.map(|r| r.oid).ok_or_else(|| {
            SqlError::new(SqlState::UndefinedTable, format!("relation \"{}\" does not exist", parts.join(".")))
        })
    }

    /// A type by a name of up to three parts, as written: no SQL spelling such as `double precision`.
    pub fn type_named(&self, parts: &[String]) -> SqlResult<Oid> {
        let (schema, name) = self.deconstruct(parts)?;
        let found = match schema {
            None => self.catalog.type_on_path(&self.path, name),
            Some(Ok(schema)) => self.catalog.type_by_name(schema, name),
            Some(Err(missing)) => return Err(Self::no_schema(missing)),
        };
        found.map(|t| t.oid).ok_or_else(|| undefined(format!("type \"{}\" does not exist", parts.join("."))))
    }

    fn candidates(&self, parts: &[String]) -> SqlResult<Vec<Oid>> {
        let (schema, name) = self.deconstruct(parts)?;
        Ok(match schema {
            None => self.catalog.function_candidates(None, name, &self.path),
            Some(Ok(schema)) => self.catalog.function_candidates(Some(schema), name, &self.path),
            Some(Err(_)) => Vec::new(),
        })
    }

    /// `schema.operator` or `operator`: an operator's name is not an identifier.
    fn operators(&self, text: &str) -> SqlResult<Vec<Oid>> {
        let text = text.trim();
        let start = text.find(|c| "+-*/<>=~!@#%^&|`?".contains(c)).ok_or_else(invalid_name)?;
        let (schema, name) = text.split_at_checked(start).ok_or_else(invalid_name)?;
        let schema = match schema.strip_suffix('.') {
            None if schema.is_empty() => None,
            None => return Err(invalid_name()),
            Some(schema) => match qualified(schema)?.as_slice() {
                [schema] => match self.catalog.namespace_by_name(schema) {
                    Some(n) => Some(n.oid),
                    None => return Ok(Vec::new()),
                },
                _ => return Err(invalid_name()),
            },
        };
        Ok(self.catalog.operator_candidates(schema, name, &self.path))
    }

    /// `name(type, type)`: the name and the types' OIDs, 0 for NONE where allowed.
    fn signature<'t>(&self, text: &'t str, none: bool) -> SqlResult<(&'t str, Vec<Oid>)> {
        let bad = |what: &str| SqlError::new(SqlState::InvalidTextRepresentation, what);
        let mut quoted = false;
        let open = text.char_indices().find(|&(_, c)| {
            quoted ^= c == '"';
            c == '(' && !quoted
        });
        let Some((open, _)) = open else { return Err(bad("expected a left parenthesis")) };
        let (name, args) = text.split_at_checked(open).ok_or_else(invalid_name)?;
        let args = args.trim_end().strip_prefix('(').and_then(|a| a.strip_suffix(')'));
        let args = args.ok_or_else(|| bad("expected a right parenthesis"))?;
        let (mut types, mut depth, mut quoted, mut start) = (Vec::new(), 0_i32, false, 0);
        let mut pieces = Vec::new();
        for (at, c) in args.char_indices() {
            match c {
                '"' => quoted = !quoted,
                '(' | '[' if !quoted => depth += 1,
                ')' | ']' if !quoted => depth -= 1,
                ',' if !quoted && depth == 0 => {
                    pieces.push(args.get(start..at).unwrap_or_default());
                    start = at + 1;
                }
                _ => {}
            }
        }
        let last = args.get(start..).unwrap_or_default();
        if !last.trim().is_empty() || !pieces.is_empty() {
            pieces.push(last);
        }
        for piece in pieces {
            let piece = piece.trim();
            if piece.is_empty() {
                return Err(bad("expected a type name"));
            }
            types.push(if none && piece.eq_ignore_ascii_case("none") { Oid::INVALID } else { self.parse_type(piece)? });
        }
        Ok((name, types))
    }

    fn object_oid_of(&self, kind: RegKind, text: &str) -> SqlResult<Oid> {
        let one = |found: Vec<Oid>, missing: String, several: String| match found.as_slice() {
            [only] => Ok(*only),
            [] => Err(SqlError::new(SqlState::UndefinedFunction, missing)),
            _ => Err(SqlError::new(SqlState::AmbiguousFunction, several)),
        };
        match kind {
            RegKind::Class => self.relation_named(&qualified(text)?),
            RegKind::Type => self.parse_type(text),
            RegKind::Proc => one(
                self.candidates(&qualified(text)?)?,
                format!("function \"{text}\" does not exist"),
                format!("more than one function named \"{text}\""),
            ),
            RegKind::Procedure => {
                let (name, types) = self.signature(text, false)?;
                let found = self.candidates(&qualified(name)?)?;
                let same = |o: &Oid| self.catalog.proc(*o).is_some_and(|p| p.arg_types == types);
                found.into_iter().find(same).ok_or_else(|| {
                    SqlError::new(SqlState::UndefinedFunction, format!("function \"{text}\" does not exist"))
                })
            }
            RegKind::Oper => one(
                self.operators(text)?,
                format!("operator does not exist: {text}"),
                format!("more than one operator named {text}"),
            ),
            RegKind::Operator => {
                let (name, types) = self.signature(text, true)?;
                let (left, right) = match types.as_slice() {
                    [left, right] => (*left, *right),
                    [_] => {
                        return Err(SqlError::new(SqlState::UndefinedParameter, "missing argument")
                            .hint("Use NONE to denote the missing argument of a unary operator."));
                    }
                    _ => {
                        return Err(SqlError::new(SqlState::TooManyArguments, "too many arguments")
                            .hint("Provide two argument types for operator."));
                    }
                };
                let same = |o: &Oid| self.catalog.operator(*o).is_some_and(|o| o.left == left && o.right == right);
                self.operators(name)?.into_iter().find(same).ok_or_else(|| {
                    SqlError::new(SqlState::UndefinedFunction, format!("operator does not exist: {text}"))
                })
            }
            RegKind::Namespace => match qualified(text)?.as_slice() {
                [name] => self.catalog.namespace_by_name(name).map(|n| n.oid).ok_or_else(|| Self::no_schema(name)),
                _ => Err(invalid_name()),
            },
            RegKind::Role => match qualified(text)?.as_slice() {
                [name] => self
                    .catalog
                    .role_by_name(name)
                    .map(|r| r.oid)
                    .ok_or_else(|| undefined(format!("role \"{name}\" does not exist"))),
                _ => Err(invalid_name()),
            },
            RegKind::Collation => {
                let parts = qualified(text)?;
                let (schema, name) = self.deconstruct(&parts)?;
                let found = match schema {
                    None => self.catalog.collation_on_path(&self.path, name),
                    Some(Ok(schema)) => self.catalog.collation_by_name(schema, name),
                    Some(Err(_)) => None,
                };
                let encoding = match self.catalog.database().map(|d| d.encoding) {
                    Some(0) => "SQL_ASCII",
                    _ => "UTF8",
                };
                let missing = || {
                    undefined(format!("collation \"{}\" for encoding \"{encoding}\" does not exist", parts.join(".")))
                };
                found.ok_or_else(missing)
            }
            RegKind::Config | RegKind::Dictionary => {
                let parts = qualified(text)?;
                let (schema, name) = self.deconstruct(&parts)?;
                let (objects, what) = match kind {
                    RegKind::Config => (&self.catalog.ts_configs, "configuration"),
                    _ => (&self.catalog.ts_dicts, "dictionary"),
                };
                let by = |n: Oid| objects.values().find(|c| c.namespace == n && c.name == name).map(|c| c.oid);
                let found = match schema {
                    None => self.path.namespaces.iter().find_map(|&n| by(n)),
                    Some(Ok(schema)) => by(schema),
                    Some(Err(_)) => None,
                };
                found.ok_or_else(|| undefined(format!("text search {what} \"{}\" does not exist", parts.join("."))))
            }
        }
    }
}

impl TypeCatalog for CatalogView {
    fn type_desc(&self, oid: Oid) -> SqlResult<Arc<TypeDesc>> {
        let found = self.catalog.type_desc(oid).cloned();
        found.ok_or_else(|| undefined(format!("type with OID {oid} does not exist")))
    }

    fn enum_label(&self, value: Oid) -> SqlResult<String> {
        match self.catalog.enum_value(value) {
            Some(v) => Ok(v.label.clone()),
            None => Err(SqlError::new(
                SqlState::InvalidBinaryRepresentation,
                format!("invalid internal value for enum: {value}"),
            )),
        }
    }

    fn enum_value(&self, enum_type: Oid, label: &str) -> SqlResult<Option<Oid>> {
        Ok(self.catalog.enum_values(enum_type).find(|v| v.label == label).map(|v| v.oid))
    }

    fn enum_order(&self, value: Oid) -> SqlResult<f32> {
        match self.catalog.enum_value(value) {
            Some(v) => Ok(v.order),
            None => Err(SqlError::new(
                SqlState::InvalidBinaryRepresentation,
                format!("invalid internal value for enum: {value}"),
            )),
        }
    }

    fn composite(&self, type_oid: Oid) -> SqlResult<Arc<[CompositeAttribute]>> {
        let desc = self.type_desc(self.catalog.base_type(type_oid))?;
        let TypeKind::Composite { relation } = desc.kind else {
            return Err(SqlError::new(
                SqlState::WrongObjectType,
                format!("type {} is not composite", self.format_type(type_oid, None)),
            ));
        };
        let relation = self
            .catalog
            .relation(relation)
            .ok_or_else(|| SqlError::internal(format!("type {type_oid} without its relation {relation}")))?;
        let column = |a: &crate::rows::Attribute| CompositeAttribute {
            name: a.name.clone(),
            type_oid: a.type_oid,
            typmod: a.typmod,
            collation: a.collation,
            dropped: a.dropped,
            len: a.len,
            align: a.align,
        };
        Ok(relation.attributes.iter().map(column).collect())
    }

    fn object_name(&self, kind: RegKind, oid: Oid) -> SqlResult<Option<String>> {
        Ok(self.catalog.object_name_on(kind, oid, &self.path))
    }

    fn object_oid(&self, kind: RegKind, name: &str) -> SqlResult<Oid> {
        if name == "-" && !matches!(kind, RegKind::Oper | RegKind::Operator)
            || name == "0" && matches!(kind, RegKind::Oper | RegKind::Operator)
        {
            return Ok(Oid::INVALID);
        }
        if !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit()) {
            let out_of_range = || {
                SqlError::new(
                    SqlState::NumericValueOutOfRange,
                    format!("value \"{name}\" is out of range for type oid"),
                )
            };
            return name.parse().map(Oid).map_err(|_| out_of_range());
        }
        self.object_oid_of(kind, name)
    }

    fn collation(&self, oid: Oid) -> SqlResult<Collation> {
        self.catalog.collation_kind(oid)
    }
}
