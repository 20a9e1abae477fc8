//! Operator expressions: what the grammar writes as `A_Expr`.

use pg_query::{NodeEnum, protobuf as pb};
use stegodon_format::ids::Oid;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::{ArrayExpr, BoolExpr, BoolKind, NullTest};
use stegodon_types::{SqlError, SqlResult};

use crate::aggregate::contains_own_var;
use crate::coerce::Context;
use crate::context::{Analyzer, loc};
use crate::expr::is_null_constant;
use crate::names::string_list;
use crate::oids;

impl Analyzer<'_> {
    pub(crate) fn a_expr(&mut self, e: &pb::AExpr) -> SqlResult<Expr> {
        use pb::AExprKind as Kind;
        match Kind::try_from(e.kind) {
            Ok(Kind::AexprOp | Kind::AexprLike | Kind::AexprIlike | Kind::AexprSimilar) => self.op_expr(e),
            Ok(Kind::AexprOpAny) => self.op_any(e, true),
            Ok(Kind::AexprOpAll) => self.op_any(e, false),
            Ok(Kind::AexprDistinct) => self.distinct_expr(e, false),
            Ok(Kind::AexprNotDistinct) => self.distinct_expr(e, true),
            Ok(Kind::AexprNullif) => self.null_if(e),
            Ok(Kind::AexprIn) => self.in_expr(e),
            Ok(Kind::AexprBetween | Kind::AexprNotBetween | Kind::AexprBetweenSym | Kind::AexprNotBetweenSym) => {
                self.between(e)
            }
            _ => self.unsupported(loc(e.location), "this operator expression"),
        }
    }

    fn op_expr(&mut self, e: &pb::AExpr) -> SqlResult<Expr> {
        let location = loc(e.location);
        let name = string_list(&e.name)?;
        let (l, r) = (e.lexpr.as_deref(), e.rexpr.as_deref());
        // x = NULL means x IS NULL where a client asks for that.
        if self.cx.transform_null_equals && name.as_slice() == ["="] && (is_null_constant(l) != is_null_constant(r)) {
            let arg = if is_null_constant(r) { self.boxed(&e.lexpr)? } else { self.boxed(&e.rexpr)? };
            let arg_is_row = self.is_row_type(self.expr_type(&arg)?);
            return Ok(Expr::NullTest(Box::new(NullTest { arg, is_null: true, arg_is_row })));
        }
        let raw = |n: Option<&pb::Node>| n.and_then(|n| n.node.clone());
        if let (Some(NodeEnum::RowExpr(_)), Some(NodeEnum::SubLink(s))) = (raw(l), raw(r))
            && s.sub_link_type == pb::SubLinkType::ExprSublink as i32
        {
            // (a, b) op (SELECT ...) compares rows.
            let mut s = *s;
            s.sub_link_type = pb::SubLinkType::RowcompareSublink as i32;
            s.testexpr.clone_from(&e.lexpr);
            s.oper_name.clone_from(&e.name);
            s.location = e.location;
            return self.sublink(&s);
        }
        if let (Some(NodeEnum::RowExpr(_)), Some(NodeEnum::RowExpr(_))) = (raw(l), raw(r)) {
            let (left, right) = (self.boxed(&e.lexpr)?, self.boxed(&e.rexpr)?);
            let (Expr::Row(left), Expr::Row(right)) = (left, right) else {
                return Err(SqlError::internal("rows are no rows"));
            };
            return self.make_row_comparison(&name, left.args, right.args, location);
        }
        let left = match &e.lexpr {
            Some(n) => Some(self.expr(n)?),
            None => None,
        };
        let right = self.boxed(&e.rexpr)?;
        self.make_op(&name, left, right, location)
    }

    fn op_any(&mut self, e: &pb::AExpr, any: bool) -> SqlResult<Expr> {
        let left = self.boxed(&e.lexpr)?;
        let right = self.boxed(&e.rexpr)?;
        self.make_scalar_array_op(&string_list(&e.name)?, any, left, right, loc(e.location))
    }

    fn distinct_expr(&mut self, e: &pb::AExpr, not: bool) -> SqlResult<Expr> {
        let location = loc(e.location);
        let (l, r) = (e.lexpr.as_deref(), e.rexpr.as_deref());
        if is_null_constant(r) || is_null_constant(l) {
            let arg = if is_null_constant(r) { self.boxed(&e.lexpr)? } else { self.boxed(&e.rexpr)? };
            // The argument is taken as a whole: a row of NULLs is distinct from NULL.
            return Ok(Expr::NullTest(Box::new(NullTest { arg, is_null: not, arg_is_row: false })));
        }
        let left = self.boxed(&e.lexpr)?;
        let right = self.boxed(&e.rexpr)?;
        let name = string_list(&e.name)?;
        let result = match (left, right) {
            (Expr::Row(l), Expr::Row(r)) => self.make_row_distinct_op(l.args, r.args, &name, location)?,
            (l, r) => self.make_distinct_op(l, r, &name, location)?,
        };
        Ok(if not { Expr::Bool(BoolExpr { kind: BoolKind::Not, args: vec![result], location }) } else { result })
    }

    fn null_if(&mut self, e: &pb::AExpr) -> SqlResult<Expr> {
        let location = loc(e.location);
        let left = self.boxed(&e.lexpr)?;
        let right = self.boxed(&e.rexpr)?;
        let Expr::Op(mut op) = self.make_op(&string_list(&e.name)?, Some(left), right, location)? else {
            return Err(SqlError::internal("no operator"));
        };
        if op.result_type != oids::BOOL {
            return Err(self.error_at(
                location,
                stegodon_types::SqlState::DatatypeMismatch,
                "NULLIF requires = operator to yield boolean",
            ));
        }
        op.result_type = match op.args.first() {
            Some(a) => self.expr_type(a)?,
            None => Oid::INVALID,
        };
        Ok(Expr::NullIf(op))
    }

    fn in_expr(&mut self, e: &pb::AExpr) -> SqlResult<Expr> {
        let location = loc(e.location);
        let name = string_list(&e.name)?;
        let any = name.as_slice() != ["<>"];
        let left = self.boxed(&e.lexpr)?;
        let Some(NodeEnum::List(list)) = e.rexpr.as_ref().and_then(|n| n.node.as_ref()) else {
            return self.unsupported(location, "IN over something that is no list");
        };
        let mut items = Vec::with_capacity(list.items.len());
        for node in &list.items {
            items.push(self.expr(node)?);
        }
        let constant_count = items.iter().filter(|i| !contains_own_var(i)).count();
        let mut result = None;
        // What has no columns becomes one array, if a common type can be found.
        if constant_count > 1 {
            let mut all = vec![left.clone()];
            all.extend(items.iter().filter(|i| !contains_own_var(i)).cloned());
            let mut scalar = self.select_common_type(&all, None)?;
            if scalar.is_valid() {
                for x in &all {
                    let ty = self.expr_type(x)?;
                    if !self.can_coerce(&[ty], &[scalar], Context::Implicit) {
                        scalar = Oid::INVALID;
                        break;
                    }
                }
            }
            let array = if scalar.is_valid() && scalar != oids::RECORD { self.array_type(scalar) } else { None };
            if let Some(array_type) = array {
                let (others, constants): (Vec<_>, Vec<_>) = items.into_iter().partition(contains_own_var);
                items = others;
                let mut elements = Vec::with_capacity(constants.len());
                for c in constants {
                    elements.push(self.coerce_to_common(c, scalar, "IN")?);
                }
                let array = Expr::Array(ArrayExpr {
                    array_type,
                    element_type: scalar,
                    collation: Oid::INVALID,
                    elements,
                    multidims: false,
                    location: None,
                });
                result = Some(self.make_scalar_array_op(&name, any, left.clone(), array, location)?);
            }
        }
        // The rest is compared one by one, in the order written.
        let mut parts: Vec<Expr> = result.into_iter().collect();
        for item in items {
            let compared = match (&left, item) {
                (Expr::Row(l), Expr::Row(r)) => self.make_row_comparison(&name, l.args.clone(), r.args, location)?,
                (_, item) => self.make_op(&name, Some(left.clone()), item, location)?,
            };
            parts.push(self.coerce_to_boolean(compared, "IN")?);
        }
        if parts.len() == 1 {
            return Ok(parts.remove(0));
        }
        let kind = if any { BoolKind::Or } else { BoolKind::And };
        Ok(Expr::Bool(BoolExpr { kind, args: parts, location }))
    }

    fn between(&mut self, e: &pb::AExpr) -> SqlResult<Expr> {
        use pb::AExprKind as Kind;
        let location = loc(e.location);
        let Some(NodeEnum::List(bounds)) = e.rexpr.as_ref().and_then(|n| n.node.as_ref()) else {
            return self.unsupported(location, "BETWEEN without bounds");
        };
        let [low, high] = bounds.items.as_slice() else {
            return self.unsupported(location, "BETWEEN without two bounds");
        };
        let Some(value) = e.lexpr.as_deref() else {
            return Err(SqlError::internal("BETWEEN of nothing"));
        };
        // The value is written into the tree two or four times: nested BETWEENs would grow without bound.
        const MAX_NESTED: u32 = 8;
        if self.between_depth >= MAX_NESTED {
            return Err(crate::limits::too_complex());
        }
        self.between_depth += 1;
        let mut parts = || Ok::<_, SqlError>((self.expr(value)?, self.expr(low)?, self.expr(high)?));
        let parts = parts();
        self.between_depth -= 1;
        let (value, low, high) = parts?;
        let mut compare = |op: &str, bound: &Expr, name: &str| {
            let compared = self.make_op(&[op.to_owned()], Some(value.clone()), bound.clone(), location)?;
            self.coerce_to_boolean(compared, name)
        };
        let mut inside = |a: &Expr, b: &Expr| {
            let args = vec![compare(">=", a, "AND")?, compare("<=", b, "AND")?];
            Ok::<_, SqlError>(Expr::Bool(BoolExpr { kind: BoolKind::And, args, location }))
        };
        match Kind::try_from(e.kind) {
            Ok(Kind::AexprBetween) => inside(&low, &high),
            Ok(Kind::AexprBetweenSym) => {
                let args = vec![inside(&low, &high)?, inside(&high, &low)?];
                Ok(Expr::Bool(BoolExpr { kind: BoolKind::Or, args, location }))
            }
            other => {
                let mut outside = |a: &Expr, b: &Expr| {
                    let args = vec![compare("<", a, "OR")?, compare(">", b, "OR")?];
                    Ok::<_, SqlError>(Expr::Bool(BoolExpr { kind: BoolKind::Or, args, location }))
                };
                if other == Ok(Kind::AexprNotBetween) {
                    return outside(&low, &high);
                }
                let args = vec![outside(&low, &high)?, outside(&high, &low)?];
                Ok(Expr::Bool(BoolExpr { kind: BoolKind::And, args, location }))
            }
        }
    }
}
