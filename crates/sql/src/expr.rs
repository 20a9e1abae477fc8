//! Scalar expressions: one arm for each raw node that may be one.

use pg_query::{NodeEnum, protobuf as pb};
use stegodon_format::ids::Oid;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::{
    ArrayExpr, BoolExpr, BoolKind, BooleanTest, BooleanTestKind, CaseExpr, CaseTest, Coalesce, CoercionForm, Collate,
    Const, Location, MinMax, NullTest, Param, ParamKind, RowExpr, SqlValue, SqlValueKind, SubLinkKind,
};
use stegodon_types::{Datum, SqlError, SqlResult, SqlState};

use crate::coerce::Context;
use crate::context::{Analyzer, STACK_BYTES, STACK_RED_ZONE_BYTES, loc};
use crate::names::{node_name, string_list};
use crate::oids;

impl Analyzer<'_> {
    /// The type of an expression's value: as [`Expr::type_oid`], and the array type of `ARRAY(subquery)`.
    pub fn expr_type(&self, e: &Expr) -> SqlResult<Oid> {
        match e {
            Expr::SubLink(s) if s.kind == SubLinkKind::Array => {
                let element = e.type_oid();
                let element = if element == oids::UNKNOWN { oids::TEXT } else { element };
                // An array of arrays is an array of more dimensions.
                if self.element_type(element).is_some() {
                    return Ok(element);
                }
                self.array_type(element).ok_or_else(|| {
                    self.error_at(
                        s.location,
                        SqlState::UndefinedObject,
                        format!("could not find array type for data type {}", self.type_name(element)),
                    )
                })
            }
            Expr::Collate(c) => self.expr_type(&c.arg),
            _ => Ok(e.type_oid()),
        }
    }

    /// An optional boxed node that must be there.
    pub fn boxed(&mut self, node: &Option<Box<pb::Node>>) -> SqlResult<Expr> {
        match node {
            Some(n) => self.expr(n),
            None => Err(SqlError::internal("an expression lacks a part")),
        }
    }

    /// An expression.
    pub fn expr(&mut self, node: &pb::Node) -> SqlResult<Expr> {
        stacker::maybe_grow(STACK_RED_ZONE_BYTES, STACK_BYTES, || self.expr_here(node))
    }

    fn expr_here(&mut self, node: &pb::Node) -> SqlResult<Expr> {
        let Some(node) = node.node.as_ref() else { return Err(SqlError::internal("an empty expression")) };
        match node {
            NodeEnum::ColumnRef(c) => self.column_ref(c),
            NodeEnum::ParamRef(p) => self.param_ref(p),
            NodeEnum::AConst(c) => self.constant(c),
            NodeEnum::AExpr(e) => self.a_expr(e),
            NodeEnum::BoolExpr(b) => self.bool_expr(b),
            NodeEnum::FuncCall(f) => self.func_call(f),
            NodeEnum::TypeCast(c) => self.type_cast(c),
            NodeEnum::CollateClause(c) => self.collate_clause(c),
            NodeEnum::SubLink(s) => self.sublink(s),
            NodeEnum::CaseExpr(c) => self.case_expr(c),
            NodeEnum::AArrayExpr(a) => self.array_expr(a, None),
            NodeEnum::RowExpr(r) => self.row_expr(r),
            NodeEnum::CoalesceExpr(c) => self.coalesce(c),
            NodeEnum::MinMaxExpr(m) => self.min_max(m),
            NodeEnum::NullTest(n) => self.null_test(n),
            NodeEnum::BooleanTest(b) => self.boolean_test(b),
            NodeEnum::SqlvalueFunction(f) => self.sql_value(f),
            NodeEnum::AIndirection(i) => self.indirection(i),
            NodeEnum::GroupingFunc(g) => self.grouping_func(g),
            NodeEnum::SetToDefault(s) => {
                Err(self.error_at(loc(s.location), SqlState::SyntaxError, "DEFAULT is not allowed in this context"))
            }
            NodeEnum::NamedArgExpr(n) => self.unsupported(loc(n.location), "a named argument here"),
            other => self.unsupported(None, format_args!("{} in an expression", node_name(Some(other)))),
        }
    }

    fn param_ref(&mut self, p: &pb::ParamRef) -> SqlResult<Expr> {
        let location = loc(p.location);
        let missing = |a: &Self| {
            Err(a.error_at(location, SqlState::UndefinedParameter, format!("there is no parameter ${}", p.number)))
        };
        const MAX_PARAMS: usize = 65535;
        let Ok(number) = usize::try_from(p.number) else { return missing(self) };
        if number == 0 || number > MAX_PARAMS {
            return missing(self);
        }
        if number > self.params.types.len() {
            if !self.params.variable {
                return missing(self);
            }
            self.params.types.resize(number, Oid::INVALID);
        }
        let mut type_oid = self.params.types.get(number - 1).copied().unwrap_or_default();
        if !type_oid.is_valid() {
            if !self.params.variable {
                return missing(self);
            }
            type_oid = oids::UNKNOWN;
            if let Some(slot) = self.params.types.get_mut(number - 1) {
                *slot = oids::UNKNOWN;
            }
        }
        Ok(Expr::Param(Param {
            kind: ParamKind::Extern,
            id: number as u32,
            type_oid,
            typmod: -1,
            collation: self.type_collation(type_oid),
            location,
        }))
    }

    fn constant(&mut self, c: &pb::AConst) -> SqlResult<Expr> {
        use pb::a_const::Val;
        let location = loc(c.location);
        let make =
            |type_oid, value| Ok(Expr::Const(Const { type_oid, typmod: -1, collation: Oid::INVALID, value, location }));
        if c.isnull {
            return make(oids::UNKNOWN, None);
        }
        match &c.val {
            // Protobuf leaves out a zero.
            None => make(oids::INT4, Some(Datum::Int32(0))),
            Some(Val::Ival(i)) => make(oids::INT4, Some(Datum::Int32(i.ival))),
            Some(Val::Boolval(b)) => make(oids::BOOL, Some(Datum::Bool(b.boolval))),
            Some(Val::Sval(s)) => make(oids::UNKNOWN, Some(Datum::bytes(&s.sval))),
            Some(Val::Fval(f)) => {
                if let Some(i) = integer_literal(&f.fval) {
                    return match i32::try_from(i) {
                        Ok(i) => make(oids::INT4, Some(Datum::Int32(i))),
                        Err(_) => make(oids::INT8, Some(Datum::Int64(i))),
                    };
                }
                let value =
                    self.read_literal(oids::NUMERIC, f.fval.as_bytes(), -1).map_err(|e| self.place(e, location))?;
                make(oids::NUMERIC, Some(value))
            }
            Some(Val::Bsval(b)) => {
                let value =
                    self.read_literal(oids::BIT, b.bsval.as_bytes(), -1).map_err(|e| self.place(e, location))?;
                make(oids::BIT, Some(value))
            }
        }
    }

    fn bool_expr(&mut self, b: &pb::BoolExpr) -> SqlResult<Expr> {
        let (kind, name) = match pb::BoolExprType::try_from(b.boolop) {
            Ok(pb::BoolExprType::AndExpr) => (BoolKind::And, "AND"),
            Ok(pb::BoolExprType::OrExpr) => (BoolKind::Or, "OR"),
            Ok(pb::BoolExprType::NotExpr) => (BoolKind::Not, "NOT"),
            _ => return self.unsupported(loc(b.location), "this boolean operator"),
        };
        let mut args = Vec::with_capacity(b.args.len());
        for node in &b.args {
            let arg = self.expr(node)?;
            args.push(self.coerce_to_boolean(arg, name)?);
        }
        Ok(Expr::Bool(BoolExpr { kind, args, location: loc(b.location) }))
    }

    fn type_cast(&mut self, c: &pb::TypeCast) -> SqlResult<Expr> {
        let (Some(arg), Some(tn)) = (c.arg.as_deref(), c.type_name.as_ref()) else {
            return Err(SqlError::internal("a cast lacks a part"));
        };
        let (target, typmod) = self.resolve_type_name(tn)?;
        let arg = match arg.node.as_ref() {
            Some(NodeEnum::AArrayExpr(a)) => {
                // ARRAY[...]::type[] decides the elements' type, as if each had been cast.
                let (base, base_typmod) = self.base_type_and_typmod(target, typmod);
                match self.element_type(base) {
                    Some(element) => self.array_expr(a, Some((base, element, base_typmod)))?,
                    None => self.expr(arg)?,
                }
            }
            _ => self.expr(arg)?,
        };
        let location = loc(c.location).or(loc(tn.location));
        self.cast(arg, target, typmod, location)
    }

    /// An explicit cast.
    pub fn cast(&mut self, arg: Expr, target: Oid, typmod: i32, location: Location) -> SqlResult<Expr> {
        let input = self.expr_type(&arg)?;
        let at = location.or(arg.location());
        let form = CoercionForm::ExplicitCast;
        match self.coerce_to_target(arg, target, typmod, Context::Explicit, form, location)? {
            Some(e) => Ok(e),
            None => Err(self.error_at(
                at,
                SqlState::CannotCoerce,
                format!("cannot cast type {} to {}", self.type_name(input), self.type_name(target)),
            )),
        }
    }

    fn collate_clause(&mut self, c: &pb::CollateClause) -> SqlResult<Expr> {
        let location = loc(c.location);
        let arg = self.boxed(&c.arg)?;
        let ty = self.expr_type(&arg)?;
        // An unknown literal stays one: it is collatable whatever it turns out to be.
        if !self.type_collation(ty).is_valid() && ty != oids::UNKNOWN {
            return Err(self.error_at(
                location,
                SqlState::DatatypeMismatch,
                format!("collations are not supported by type {}", self.type_name(ty)),
            ));
        }
        let collation = self.find_collation(&string_list(&c.collname)?, location)?;
        self.collate_places.push((arg.location(), location));
        Ok(Expr::Collate(Box::new(Collate { arg, collation })))
    }

    fn case_expr(&mut self, c: &pb::CaseExpr) -> SqlResult<Expr> {
        let last_srf = self.state.last_srf;
        let mut test = None;
        let arg = match &c.arg {
            None => None,
            Some(n) => {
                let mut arg = self.expr(n)?;
                if self.expr_type(&arg)? == oids::UNKNOWN {
                    arg = self.coerce_to_common(arg, oids::TEXT, "CASE")?;
                }
                self.assign_collations(&mut arg)?;
                test = Some(Expr::CaseTest(CaseTest {
                    type_oid: self.expr_type(&arg)?,
                    typmod: arg.typmod(),
                    collation: arg.collation(),
                }));
                Some(arg)
            }
        };
        let mut conditions = Vec::new();
        let mut results = Vec::new();
        for node in &c.args {
            let Some(NodeEnum::CaseWhen(w)) = node.node.as_ref() else {
                return self.unsupported(loc(c.location), "this CASE");
            };
            let mut condition = self.boxed(&w.expr)?;
            if let Some(test) = &test {
                condition = self.make_op(&["=".to_owned()], Some(test.clone()), condition, loc(w.location))?;
            }
            conditions.push(self.coerce_to_boolean(condition, "CASE/WHEN")?);
            results.push(self.boxed(&w.result)?);
        }
        let default = match &c.defresult {
            Some(n) => self.expr(n)?,
            None => Expr::Const(crate::coerce::null_const(oids::UNKNOWN)),
        };
        // The default counts first.
        results.insert(0, default);
        let result_type = self.select_common_type(&results, Some("CASE"))?;
        let mut coerced = Vec::with_capacity(results.len());
        for (i, r) in results.into_iter().enumerate() {
            coerced.push(self.coerce_to_common(r, result_type, if i == 0 { "CASE/ELSE" } else { "CASE/WHEN" })?);
        }
        self.no_new_srf(last_srf, "CASE")?;
        let mut coerced = coerced.into_iter();
        let Some(default) = coerced.next() else { return Err(SqlError::internal("CASE without default")) };
        Ok(Expr::Case(Box::new(CaseExpr {
            result_type,
            collation: Oid::INVALID,
            arg,
            whens: conditions.into_iter().zip(coerced).collect(),
            default,
        })))
    }

    fn no_new_srf(&self, before: Option<Location>, what: &str) -> SqlResult<()> {
        if self.state.last_srf == before {
            return Ok(());
        }
        let e = self.error_at(
            self.state.last_srf.flatten(),
            SqlState::FeatureNotSupported,
            format!("set-returning functions are not allowed in {what}"),
        );
        Err(e.hint(crate::aggregate::SRF_HINT))
    }

    fn coalesce(&mut self, c: &pb::CoalesceExpr) -> SqlResult<Expr> {
        let last_srf = self.state.last_srf;
        let (args, result_type) = self.common_list(&c.args, "COALESCE")?;
        self.no_new_srf(last_srf, "COALESCE")?;
        Ok(Expr::Coalesce(Coalesce { result_type, collation: Oid::INVALID, args }))
    }

    fn min_max(&mut self, m: &pb::MinMaxExpr) -> SqlResult<Expr> {
        let (greatest, name) = match pb::MinMaxOp::try_from(m.op) {
            Ok(pb::MinMaxOp::IsGreatest) => (true, "GREATEST"),
            Ok(pb::MinMaxOp::IsLeast) => (false, "LEAST"),
            _ => return self.unsupported(loc(m.location), "this MinMaxExpr"),
        };
        let (args, result_type) = self.common_list(&m.args, name)?;
        Ok(Expr::MinMax(MinMax { result_type, collation: Oid::INVALID, input_collation: Oid::INVALID, greatest, args }))
    }

    fn common_list(&mut self, nodes: &[pb::Node], what: &str) -> SqlResult<(Vec<Expr>, Oid)> {
        let mut args = Vec::with_capacity(nodes.len());
        for n in nodes {
            args.push(self.expr(n)?);
        }
        let ty = self.select_common_type(&args, Some(what))?;
        let mut coerced = Vec::with_capacity(args.len());
        for a in args {
            coerced.push(self.coerce_to_common(a, ty, what)?);
        }
        Ok((coerced, ty))
    }

    /// `ARRAY[...]`; `given` is the array type, element type and typmod that a cast around it asks for.
    fn array_expr(&mut self, a: &pb::AArrayExpr, given: Option<(Oid, Oid, i32)>) -> SqlResult<Expr> {
        let location = loc(a.location);
        let mut elements = Vec::with_capacity(a.elements.len());
        let mut multidims = false;
        for node in &a.elements {
            if let Some(NodeEnum::AArrayExpr(inner)) = node.node.as_ref() {
                let e = stacker::maybe_grow(STACK_RED_ZONE_BYTES, STACK_BYTES, || self.array_expr(inner, given))?;
                multidims = true;
                elements.push(e);
                continue;
            }
            let e = self.expr(node)?;
            let ty = self.expr_type(&e)?;
            let vector = matches!(ty, oids::INT2VECTOR | oids::OIDVECTOR);
            if !multidims && !vector && self.element_type(ty).is_some() {
                multidims = true;
            }
            elements.push(e);
        }
        let (array_type, element_type, coerce_to) = match given {
            Some((array, element, typmod)) => (array, element, Some((if multidims { array } else { element }, typmod))),
            None => {
                if elements.is_empty() {
                    let e = self.error_at(
                        location,
                        SqlState::IndeterminateDatatype,
                        "cannot determine type of empty array",
                    );
                    return Err(e.hint("Explicitly cast to the desired type, for example ARRAY[]::integer[]."));
                }
                let common = self.select_common_type(&elements, Some("ARRAY"))?;
                let (array, element) = if multidims {
                    let element = self.element_type(common).ok_or_else(|| {
                        self.error_at(
                            location,
                            SqlState::UndefinedObject,
                            format!("could not find element type for data type {}", self.type_name(common)),
                        )
                    })?;
                    (common, element)
                } else {
                    let array = self.array_type(common).ok_or_else(|| {
                        self.error_at(
                            location,
                            SqlState::UndefinedObject,
                            format!("could not find array type for data type {}", self.type_name(common)),
                        )
                    })?;
                    (array, common)
                };
                let mut coerced = Vec::with_capacity(elements.len());
                for e in elements {
                    coerced.push(self.coerce_to_common(e, common, "ARRAY")?);
                }
                elements = coerced;
                (array, element, None)
            }
        };
        if let Some((target, typmod)) = coerce_to {
            let mut coerced = Vec::with_capacity(elements.len());
            for e in elements {
                coerced.push(self.cast(e, target, typmod, None)?);
            }
            elements = coerced;
        }
        Ok(Expr::Array(ArrayExpr { array_type, element_type, collation: Oid::INVALID, elements, multidims, location }))
    }

    fn row_expr(&mut self, r: &pb::RowExpr) -> SqlResult<Expr> {
        const MAX_FIELDS: usize = 1664;
        let location = loc(r.location);
        let args = self.expr_list_with_stars(&r.args)?;
        if args.len() > MAX_FIELDS {
            return Err(self.error_at(
                location,
                SqlState::TooManyColumns,
                format!("ROW expressions can have at most {MAX_FIELDS} entries"),
            ));
        }
        let names = (1..=args.len()).map(|i| format!("f{i}")).collect();
        let form = CoercionForm::ImplicitCast;
        Ok(Expr::Row(RowExpr { args, row_type: oids::RECORD, names, form, location }))
    }

    fn null_test(&mut self, n: &pb::NullTest) -> SqlResult<Expr> {
        let arg = self.boxed(&n.arg)?;
        let arg_is_row = self.is_row_type(self.expr_type(&arg)?);
        let is_null = match pb::NullTestType::try_from(n.nulltesttype) {
            Ok(pb::NullTestType::IsNull) => true,
            Ok(pb::NullTestType::IsNotNull) => false,
            _ => return self.unsupported(loc(n.location), "this NULL test"),
        };
        Ok(Expr::NullTest(Box::new(NullTest { arg, is_null, arg_is_row })))
    }

    fn boolean_test(&mut self, b: &pb::BooleanTest) -> SqlResult<Expr> {
        let (kind, name) = match pb::BoolTestType::try_from(b.booltesttype) {
            Ok(pb::BoolTestType::IsTrue) => (BooleanTestKind::IsTrue, "IS TRUE"),
            Ok(pb::BoolTestType::IsNotTrue) => (BooleanTestKind::IsNotTrue, "IS NOT TRUE"),
            Ok(pb::BoolTestType::IsFalse) => (BooleanTestKind::IsFalse, "IS FALSE"),
            Ok(pb::BoolTestType::IsNotFalse) => (BooleanTestKind::IsNotFalse, "IS NOT FALSE"),
            Ok(pb::BoolTestType::IsUnknown) => (BooleanTestKind::IsUnknown, "IS UNKNOWN"),
            Ok(pb::BoolTestType::IsNotUnknown) => (BooleanTestKind::IsNotUnknown, "IS NOT UNKNOWN"),
            _ => return self.unsupported(loc(b.location), "this boolean test"),
        };
        let arg = self.boxed(&b.arg)?;
        let arg = self.coerce_to_boolean(arg, name)?;
        Ok(Expr::BooleanTest(Box::new(BooleanTest { arg, kind })))
    }

    fn sql_value(&mut self, f: &pb::SqlValueFunction) -> SqlResult<Expr> {
        use pb::SqlValueFunctionOp as Op;
        let (kind, type_oid, has_typmod) = match Op::try_from(f.op) {
            Ok(Op::SvfopCurrentDate) => (SqlValueKind::CurrentDate, oids::DATE, false),
            Ok(Op::SvfopCurrentTime) => (SqlValueKind::CurrentTime, oids::TIMETZ, false),
            Ok(Op::SvfopCurrentTimeN) => (SqlValueKind::CurrentTime, oids::TIMETZ, true),
            Ok(Op::SvfopCurrentTimestamp) => (SqlValueKind::CurrentTimestamp, oids::TIMESTAMPTZ, false),
            Ok(Op::SvfopCurrentTimestampN) => (SqlValueKind::CurrentTimestamp, oids::TIMESTAMPTZ, true),
            Ok(Op::SvfopLocaltime) => (SqlValueKind::LocalTime, oids::TIME, false),
            Ok(Op::SvfopLocaltimeN) => (SqlValueKind::LocalTime, oids::TIME, true),
            Ok(Op::SvfopLocaltimestamp) => (SqlValueKind::LocalTimestamp, oids::TIMESTAMP, false),
            Ok(Op::SvfopLocaltimestampN) => (SqlValueKind::LocalTimestamp, oids::TIMESTAMP, true),
            Ok(Op::SvfopCurrentRole) => (SqlValueKind::CurrentRole, oids::NAME, false),
            Ok(Op::SvfopCurrentUser) => (SqlValueKind::CurrentUser, oids::NAME, false),
            Ok(Op::SvfopUser) => (SqlValueKind::User, oids::NAME, false),
            Ok(Op::SvfopSessionUser) => (SqlValueKind::SessionUser, oids::NAME, false),
            Ok(Op::SvfopCurrentCatalog) => (SqlValueKind::CurrentCatalog, oids::NAME, false),
            Ok(Op::SvfopCurrentSchema) => (SqlValueKind::CurrentSchema, oids::NAME, false),
            _ => return self.unsupported(loc(f.location), "this SQL value function"),
        };
        // Beyond 6 digits PostgreSQL warns, and takes 6; the grammar lets no negative one through.
        let typmod = if has_typmod { f.typmod.min(6) } else { -1 };
        Ok(Expr::SqlValue(SqlValue { kind, type_oid, typmod }))
    }
}

/// An integer literal that fits 8 bytes, in any of the forms that the scanner leaves as text.
fn integer_literal(text: &str) -> Option<i64> {
    let clean: String = text.chars().filter(|c| *c != '_').collect();
    let (digits, radix) = match clean.get(..2) {
        Some("0x" | "0X") => (clean.get(2..)?, 16),
        Some("0o" | "0O") => (clean.get(2..)?, 8),
        Some("0b" | "0B") => (clean.get(2..)?, 2),
        _ => (clean.as_str(), 10),
    };
    i64::from_str_radix(digits, radix).ok()
}

/// A constant NULL, as written.
pub(crate) fn is_null_constant(node: Option<&pb::Node>) -> bool {
    matches!(node.and_then(|n| n.node.as_ref()), Some(NodeEnum::AConst(c)) if c.isnull)
}
