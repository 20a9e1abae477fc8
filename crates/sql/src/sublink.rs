//! Subqueries in expressions, and what follows a value: fields and subscripts.

use pg_query::{NodeEnum, protobuf as pb};
use stegodon_format::ids::Oid;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::{CoercionForm, Location, Param, ParamKind, SubLink, SubLinkKind, SubscriptingRef};
use stegodon_types::{SqlError, SqlResult, SqlState, TypeKind};

use crate::coerce::Context;
use crate::context::{Analyzer, loc};
use crate::names::string_list;
use crate::oids;

const INT2_ARRAY: Oid = Oid(1005);
const OID_ARRAY: Oid = Oid(1028);
const JSONB: Oid = stegodon_types::oids::JSONB;

impl Analyzer<'_> {
    pub(crate) fn sublink(&mut self, s: &pb::SubLink) -> SqlResult<Expr> {
        use pb::SubLinkType as Kind;
        let location = loc(s.location);
        let Some(NodeEnum::SelectStmt(select)) = s.subselect.as_ref().and_then(|n| n.node.as_ref()) else {
            return self.unsupported(location, "a subquery that is no SELECT");
        };
        let raw_kind = Kind::try_from(s.sub_link_type);
        self.state.has_sublinks = true;
        let query = self.subquery(select, true)?;
        let outputs = query.outputs().count();
        let make = |kind, test, query| Expr::SubLink(Box::new(SubLink { kind, test, query, location }));
        let kind = match raw_kind {
            Ok(Kind::ExistsSublink) => return Ok(make(SubLinkKind::Exists, None, query)),
            Ok(Kind::ExprSublink | Kind::ArraySublink) => {
                if outputs != 1 {
                    return Err(self.error_at(location, SqlState::SyntaxError, "subquery must return only one column"));
                }
                let kind = if raw_kind == Ok(Kind::ExprSublink) { SubLinkKind::Expr } else { SubLinkKind::Array };
                return Ok(make(kind, None, query));
            }
            Ok(Kind::AnySublink) => SubLinkKind::Any,
            Ok(Kind::AllSublink) => SubLinkKind::All,
            Ok(Kind::RowcompareSublink) => SubLinkKind::RowCompare,
            _ => return self.unsupported(location, "this kind of subquery"),
        };
        let name = if s.oper_name.is_empty() { vec!["=".to_owned()] } else { string_list(&s.oper_name)? };
        let left = match self.boxed(&s.testexpr)? {
            // A row is compared column by column.
            Expr::Row(r) => r.args,
            other => vec![other],
        };
        let catalog = self.catalog();
        let right: Vec<Expr> = query
            .outputs()
            .enumerate()
            .map(|(i, t)| {
                Expr::Param(Param {
                    kind: ParamKind::SubLink,
                    id: (i + 1) as u32,
                    type_oid: crate::describe::value_type(&t.expr, catalog),
                    typmod: t.expr.typmod(),
                    collation: t.expr.collation(),
                    location: None,
                })
            })
            .collect();
        let count_error = |a: &Self, what: &str| {
            Err(a.error_at(location, SqlState::SyntaxError, format!("subquery has too {what} columns")))
        };
        if left.len() < right.len() {
            return count_error(self, "many");
        }
        if left.len() > right.len() {
            return count_error(self, "few");
        }
        let test = self.make_row_comparison(&name, left, right, location)?;
        Ok(make(kind, Some(test), query))
    }

    pub(crate) fn indirection(&mut self, i: &pb::AIndirection) -> SqlResult<Expr> {
        let mut result = self.boxed(&i.arg)?;
        let location = result.location();
        let mut subscripts: Vec<&pb::AIndices> = Vec::new();
        for node in &i.indirection {
            match node.node.as_ref() {
                Some(NodeEnum::AIndices(a)) => subscripts.push(a),
                Some(NodeEnum::AStar(_)) => {
                    return Err(self.error_at(
                        location,
                        SqlState::FeatureNotSupported,
                        "row expansion via \"*\" is not supported here",
                    ));
                }
                Some(NodeEnum::String(s)) => {
                    if !subscripts.is_empty() {
                        result = self.subscript(result, &std::mem::take(&mut subscripts))?;
                    }
                    let row = result.clone();
                    result = match self.function_as_column(&s.sval, result, location)? {
                        Some(e) => e,
                        None => return Err(self.unknown_field(&row, &s.sval, location)),
                    };
                }
                _ => return self.unsupported(location, "this indirection"),
            }
        }
        if subscripts.is_empty() { Ok(result) } else { self.subscript(result, &subscripts) }
    }

    fn unknown_field(&self, row: &Expr, name: &str, location: Location) -> SqlError {
        let ty = row.type_oid();
        if let Expr::Var(v) = row
            && v.attno.0 == 0
            && let stegodon_nodes::expr::VarSource::Relation(rtindex) = v.source
            && let Ok(rte) = self.rte(v.levels_up, rtindex)
        {
            return self.error_at(
                location,
                SqlState::UndefinedColumn,
                format!("column {}.{name} does not exist", rte.name),
            );
        }
        if self.composite_relation(ty).is_some() {
            self.error_at(
                location,
                SqlState::UndefinedColumn,
                format!("column \"{name}\" not found in data type {}", self.type_name(ty)),
            )
        } else if ty == oids::RECORD {
            self.error_at(
                location,
                SqlState::UndefinedColumn,
                format!("could not identify column \"{name}\" in record data type"),
            )
        } else {
            self.error_at(
                location,
                SqlState::WrongObjectType,
                format!(
                    "column notation .{name} applied to type {}, which is not a composite type",
                    self.type_name(ty)
                ),
            )
        }
    }

    /// `container[...]...`
    fn subscript(&mut self, container: Expr, subscripts: &[&pb::AIndices]) -> SqlResult<Expr> {
        const MAX_DIMENSIONS: usize = 6;
        let location = container.location();
        let (mut container_type, typmod) = self.base_type_and_typmod(self.expr_type(&container)?, container.typmod());
        // The two vector types are arrays that are not called so.
        match container_type {
            oids::INT2VECTOR => container_type = INT2_ARRAY,
            oids::OIDVECTOR => container_type = OID_ARRAY,
            _ => {}
        }
        if container_type == JSONB {
            return self.subscript_jsonb(container, subscripts);
        }
        let Some(element_type) = self.element_type(container_type) else {
            let name = self.type_name(container_type);
            return if matches!(self.type_desc(container_type)?.kind, TypeKind::Base)
                && self.cx.catalog.type_row(container_type).is_some_and(|t| t.subscript.is_valid())
            {
                self.unsupported(location, format_args!("subscripting type {name}"))
            } else {
                Err(self.error_at(
                    location,
                    SqlState::DatatypeMismatch,
                    format!("cannot subscript type {name} because it does not support subscripting"),
                ))
            };
        };
        let slice = subscripts.iter().any(|s| s.is_slice);
        let (mut upper, mut lower) = (Vec::new(), Vec::new());
        for s in subscripts {
            if slice {
                lower.push(match (&s.lidx, s.is_slice) {
                    (Some(n), _) => Some(self.index(n)?),
                    // Beside a slice, a lone subscript n means 1:n.
                    (None, false) => Some(crate::coerce::int4_const(1)),
                    (None, true) => None,
                });
            }
            upper.push(match &s.uidx {
                Some(n) => Some(self.index(n)?),
                None => None,
            });
        }
        if upper.len() > MAX_DIMENSIONS {
            return Err(SqlError::new(
                SqlState::ProgramLimitExceeded,
                format!("number of array dimensions ({}) exceeds the maximum allowed ({MAX_DIMENSIONS})", upper.len()),
            ));
        }
        let result_type = if slice { container_type } else { element_type };
        Ok(Expr::Subscript(Box::new(SubscriptingRef {
            container_type,
            element_type,
            result_type,
            typmod,
            collation: Oid::INVALID,
            upper,
            lower,
            container,
        })))
    }

    /// `jsonb[...]`: keys are text, places in an array integers.
    fn subscript_jsonb(&mut self, container: Expr, subscripts: &[&pb::AIndices]) -> SqlResult<Expr> {
        let slice = subscripts.iter().any(|s| s.is_slice);
        let mut upper = Vec::new();
        for s in subscripts {
            let Some(node) = s.uidx.as_ref().or(s.lidx.as_ref()) else {
                return Err(SqlError::new(SqlState::DatatypeMismatch, "jsonb subscript does not support slices"));
            };
            let key = self.expr(node)?;
            let location = key.location();
            if slice {
                let message = "jsonb subscript does not support slices";
                return Err(self.error_at(location, SqlState::DatatypeMismatch, message));
            }
            let ty = self.expr_type(&key)?;
            let fits = |t: Oid| self.can_coerce(&[ty], &[t], Context::Implicit);
            let target = match (ty == oids::UNKNOWN, fits(oids::INT4), fits(oids::TEXT)) {
                (true, ..) | (_, false, true) => oids::TEXT,
                (_, true, false) => oids::INT4,
                (_, integer, _) => {
                    let message = format!("subscript type {} is not supported", self.type_name(ty));
                    let e = self.error_at(location, SqlState::DatatypeMismatch, message);
                    return Err(e.hint(if integer {
                        "jsonb subscript must be coercible to only one type, integer or text."
                    } else {
                        "jsonb subscript must be coercible to either integer or text."
                    }));
                }
            };
            let form = CoercionForm::ImplicitCast;
            upper.push(Some(self.coerce_type(key, ty, target, -1, Context::Implicit, form, None)?));
        }
        Ok(Expr::Subscript(Box::new(SubscriptingRef {
            container_type: JSONB,
            element_type: Oid::INVALID,
            result_type: JSONB,
            typmod: -1,
            collation: Oid::INVALID,
            upper,
            lower: Vec::new(),
            container,
        })))
    }

    fn index(&mut self, node: &pb::Node) -> SqlResult<Expr> {
        let e = self.expr(node)?;
        let location = e.location();
        match self.coerce_to_target(e, oids::INT4, -1, Context::Assignment, CoercionForm::ImplicitCast, None)? {
            Some(e) => Ok(e),
            None => Err(self.error_at(location, SqlState::DatatypeMismatch, "array subscript must have type integer")),
        }
    }

    /// A collation by its possibly qualified name, for the database's encoding.
    pub fn find_collation(&self, name: &[String], location: Location) -> SqlResult<Oid> {
        let (path, bare) = match name {
            [bare] => (self.cx.path.namespaces.clone(), bare),
            [schema, bare] => (vec![self.namespace_named(schema).map_err(|e| self.place(e, location))?], bare),
            _ => return self.unsupported(location, "a collation name of three or more parts"),
        };
        let encoding = self.cx.catalog.database().map_or(-1, |d| d.encoding);
        let named = |ns: Oid| {
            let mut found: Vec<_> = self
                .cx
                .catalog
                .collations()
                .filter(|c| c.namespace == ns && c.name == *bare && (c.encoding == -1 || c.encoding == encoding))
                .collect();
            // One for the very encoding comes before one for any.
            found.sort_by_key(|c| c.encoding == -1);
            found.first().map(|c| c.oid)
        };
        match path.iter().find_map(|&ns| named(ns)) {
            Some(oid) => Ok(oid),
            None => Err(self.error_at(
                location,
                SqlState::UndefinedObject,
                format!(
                    "collation \"{}\" for encoding \"{}\" does not exist",
                    name.join("."),
                    if encoding == 6 { "UTF8" } else { "SQL_ASCII" }
                ),
            )),
        }
    }
}
