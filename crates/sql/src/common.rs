//! What constructs ask of types: a fixed type (conditions, LIMIT), or one that several expressions share.

use stegodon_format::ids::Oid;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::{CoercionForm, Location};
use stegodon_types::{SqlResult, SqlState};

use crate::coerce::{Context, returns_set};
use crate::context::Analyzer;
use crate::oids;

impl Analyzer<'_> {
    /// Coerces a condition.
    pub fn coerce_to_boolean(&mut self, node: Expr, construct: &str) -> SqlResult<Expr> {
        self.coerce_to_specific(node, oids::BOOL, construct)
    }

    /// Coerces, by assignment rules, what a construct needs of a fixed type.
    pub fn coerce_to_specific(&mut self, node: Expr, target: Oid, construct: &str) -> SqlResult<Expr> {
        let location = node.location();
        let input = self.expr_type(&node)?;
        let mut node = node;
        if input != target {
            let form = CoercionForm::ImplicitCast;
            match self.coerce_to_target(node, target, -1, Context::Assignment, form, None)? {
                Some(e) => node = e,
                None => {
                    return Err(self.error_at(
                        location,
                        SqlState::DatatypeMismatch,
                        format!(
                            "argument of {construct} must be type {}, not type {}",
                            self.type_name(target),
                            self.type_name(input)
                        ),
                    ));
                }
            }
        }
        if returns_set(&node) {
            return Err(self.error_at(
                location,
                SqlState::DatatypeMismatch,
                format!("argument of {construct} must not return a set"),
            ));
        }
        Ok(node)
    }

    /// The common type of expressions that end up in one column. With a `context` a mismatch is an error that names it;
    /// without, it is the invalid OID.
    pub fn select_common_type(&self, exprs: &[Expr], context: Option<&str>) -> SqlResult<Oid> {
        let mut list = Vec::with_capacity(exprs.len());
        for e in exprs {
            list.push((self.expr_type(e)?, e.location()));
        }
        self.select_common_of(&list, context)
    }

    /// [`Analyzer::select_common_type`] of types with places.
    pub fn select_common_of(&self, list: &[(Oid, Location)], context: Option<&str>) -> SqlResult<Oid> {
        let Some((&(first, _), rest)) = list.split_first() else { return Ok(oids::TEXT) };
        if first != oids::UNKNOWN && rest.iter().all(|t| t.0 == first) {
            return Ok(first);
        }
        let mut chosen = self.base_type(first);
        for &(ty, location) in rest {
            let ty = self.base_type(ty);
            if ty == oids::UNKNOWN || ty == chosen {
                continue;
            }
            if chosen == oids::UNKNOWN {
                chosen = ty;
            } else if self.category(chosen) != self.category(ty) {
                let Some(context) = context else { return Ok(Oid::INVALID) };
                return Err(self.error_at(
                    location,
                    SqlState::DatatypeMismatch,
                    format!("{context} types {} and {} cannot be matched", self.type_name(chosen), self.type_name(ty)),
                ));
            } else if !self.is_preferred(chosen)
                && self.can_coerce(&[chosen], &[ty], Context::Implicit)
                && !self.can_coerce(&[ty], &[chosen], Context::Implicit)
            {
                chosen = ty;
            }
        }
        Ok(if chosen == oids::UNKNOWN { oids::TEXT } else { chosen })
    }

    /// The typmod that all of them share, if they are of that type and share one.
    pub fn select_common_typmod(&self, exprs: &[Expr], ty: Oid) -> i32 {
        let Some(typmod) = exprs.first().map(Expr::typmod) else { return -1 };
        if exprs.iter().all(|e| e.type_oid() == ty && e.typmod() == typmod) { typmod } else { -1 }
    }

    /// Coerces to the type that [`Analyzer::select_common_type`] chose.
    pub fn coerce_to_common(&mut self, node: Expr, target: Oid, context: &str) -> SqlResult<Expr> {
        let input = self.expr_type(&node)?;
        if input == target {
            return Ok(node);
        }
        if self.can_coerce(&[input], &[target], Context::Implicit) {
            let form = CoercionForm::ImplicitCast;
            return self.coerce_type(node, input, target, -1, Context::Implicit, form, None);
        }
        Err(self.error_at(
            node.location(),
            SqlState::CannotCoerce,
            format!("{context} could not convert type {} to {}", self.type_name(input), self.type_name(target)),
        ))
    }
}
