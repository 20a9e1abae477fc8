//! Operators: by name and operand types, as PostgreSQL's rules choose among overloads.

use std::sync::Arc;

use stegodon_catalog::operators::SortOperators;
use stegodon_catalog::rows::Operator;
use stegodon_format::ids::Oid;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::{
    BoolExpr, BoolKind, CoercionForm, Location, OpExpr, RowCompare, RowCompareKind, ScalarArrayOp,
};
use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::coerce::Context;
use crate::context::Analyzer;
use crate::function::Candidate;
use crate::oids::{self, UNKNOWN};

impl Analyzer<'_> {
    /// The operators of a name, nearest first along the path; those hidden by a nearer one of the same operand types
    /// left out.
    fn operators_named(&self, name: &[String], kind: u8) -> SqlResult<Vec<Arc<Operator>>> {
        let (path, bare): (Vec<Oid>, &str) = match name {
            [bare] => (self.cx.path.namespaces.clone(), bare),
            [schema, bare] => (vec![self.namespace_named(schema)?], bare),
            _ => return Err(SqlError::unsupported("an operator name of three or more parts")),
        };
        let mut found: Vec<(usize, Arc<Operator>)> = self
            .cx
            .catalog
            .operators_named(bare)
            .filter(|o| o.kind == kind)
            .filter_map(|o| Some((path.iter().position(|&n| n == o.namespace)?, Arc::clone(o))))
            .collect();
        found.sort_by_key(|(at, o)| (*at, o.oid));
        let mut visible: Vec<Arc<Operator>> = Vec::new();
        for (_, o) in found {
            if !visible.iter().any(|v| v.left == o.left && v.right == o.right) {
                visible.push(o);
            }
        }
        Ok(visible)
    }

    /// The operator for two operand types; `left` is 0 for a prefix operator.
    pub fn find_operator(
        &self,
        name: &[String],
        left: Oid,
        right: Oid,
        location: Location,
    ) -> SqlResult<Arc<Operator>> {
        let prefix = !left.is_valid();
        let candidates =
            self.operators_named(name, if prefix { b'l' } else { b'b' }).map_err(|e| self.place(e, location))?;
        let exact = |l: Oid, r: Oid| candidates.iter().find(|o| o.left == l && o.right == r).cloned();
        let found = if prefix {
            exact(left, right)
        } else {
            // An unknown literal is first taken to be of the other side's type.
            let (l, r, was_unknown) = match (left, right) {
                (UNKNOWN, r) => (r, r, true),
                (l, UNKNOWN) => (l, l, true),
                (l, r) => (l, r, false),
            };
            exact(l, r).or_else(|| {
                let base = self.base_type(l);
                if was_unknown && base != l { exact(base, base) } else { None }
            })
        };
        let found = match found {
            Some(o) => Some(o),
            None => {
                let list: Vec<Candidate> = candidates.iter().map(|o| Candidate::of_operator(o, prefix)).collect();
                let inputs = if prefix { vec![right] } else { vec![left, right] };
                let fitting = self.matching(&inputs, list);
                let chosen = match fitting.len() {
                    0 => None,
                    1 => fitting.into_iter().next(),
                    _ => match self.best_candidate(&inputs, fitting) {
                        Some(c) => Some(c),
                        None => {
                            let e = self.error_at(
                                location,
                                SqlState::AmbiguousFunction,
                                format!("operator is not unique: {}", self.operator_signature(name, left, right)),
                            );
                            return Err(e.hint(
                                "Could not choose a best candidate operator. You might need to add explicit type casts.",
                            ));
                        }
                    },
                };
                chosen.and_then(|c| candidates.iter().find(|o| o.oid == c.oid).cloned())
            }
        };
        match found {
            Some(o) if !o.function.is_valid() => Err(self.error_at(
                location,
                SqlState::UndefinedFunction,
                format!("operator is only a shell: {}", self.operator_signature(name, o.left, o.right)),
            )),
            Some(o) => Ok(o),
            None => {
                let e = self.error_at(
                    location,
                    SqlState::UndefinedFunction,
                    format!("operator does not exist: {}", self.operator_signature(name, left, right)),
                );
                Err(e.hint(if prefix {
                    "No operator matches the given name and argument type. You might need to add an explicit type cast."
                } else {
                    "No operator matches the given name and argument types. You might need to add explicit type casts."
                }))
            }
        }
    }

    fn operator_signature(&self, name: &[String], left: Oid, right: Oid) -> String {
        let name = name.join(".");
        if left.is_valid() {
            format!("{} {name} {}", self.type_name(left), self.type_name(right))
        } else {
            format!("{name} {}", self.type_name(right))
        }
    }

    /// An operator over analysed operands; `left` is `None` for a prefix operator.
    pub fn make_op(&mut self, name: &[String], left: Option<Expr>, right: Expr, location: Location) -> SqlResult<Expr> {
        let left_type = left.as_ref().map_or(Ok(Oid::INVALID), |l| self.expr_type(l))?;
        let right_type = self.expr_type(&right)?;
        let op = self.find_operator(name, left_type, right_type, location)?;
        let (args, actual, mut declared) = match left {
            Some(l) => (vec![l, right], vec![left_type, right_type], vec![op.left, op.right]),
            None => (vec![right], vec![right_type], vec![op.right]),
        };
        let result_type = self.resolve_generic(&actual, &mut declared, op.result, false)?;
        let args = self.coerce_args(args, &actual, &declared)?;
        let returns_set = self.cx.catalog.proc(op.function).is_some_and(|p| p.returns_set);
        if returns_set {
            return self.unsupported(location, "an operator that returns a set");
        }
        Ok(Expr::Op(OpExpr {
            operator: op.oid,
            function: op.function,
            result_type,
            returns_set,
            collation: Oid::INVALID,
            input_collation: Oid::INVALID,
            args,
            location,
        }))
    }

    /// Coerces arguments to what a function or operator declares.
    pub fn coerce_args(&mut self, args: Vec<Expr>, actual: &[Oid], declared: &[Oid]) -> SqlResult<Vec<Expr>> {
        let mut coerced = Vec::with_capacity(args.len());
        for (i, arg) in args.into_iter().enumerate() {
            let (Some(&from), Some(&to)) = (actual.get(i), declared.get(i)) else {
                coerced.push(arg);
                continue;
            };
            coerced.push(if from == to {
                arg
            } else {
                self.coerce_type(arg, from, to, -1, Context::Implicit, CoercionForm::ImplicitCast, None)?
            });
        }
        Ok(coerced)
    }

    /// `scalar op ANY/ALL (array)`.
    pub fn make_scalar_array_op(
        &mut self,
        name: &[String],
        any: bool,
        left: Expr,
        right: Expr,
        location: Location,
    ) -> SqlResult<Expr> {
        let wrong = |a: &Self, m: &str| Err(a.error_at(location, SqlState::WrongObjectType, m));
        let left_type = self.expr_type(&left)?;
        let array_type = self.expr_type(&right)?;
        let element = if array_type == UNKNOWN { Some(UNKNOWN) } else { self.base_element_type(array_type) };
        let Some(element) = element else {
            return wrong(self, "op ANY/ALL (array) requires array on right side");
        };
        let op = self.find_operator(name, left_type, element, location)?;
        let actual = [left_type, element];
        let mut declared = [op.left, op.right];
        let result = self.resolve_generic(&actual, &mut declared, op.result, false)?;
        if result != oids::BOOL {
            return wrong(self, "op ANY/ALL (array) requires operator to yield boolean");
        }
        if self.cx.catalog.proc(op.function).is_some_and(|p| p.returns_set) {
            return wrong(self, "op ANY/ALL (array) requires operator not to return a set");
        }
        let [declared_left, declared_element] = declared;
        // An operator over any array takes the array's elements as they are, and those have no array type of their own.
        let polymorphic = array_type != UNKNOWN && crate::polymorphic::is_polymorphic(op.right);
        let declared_array = if polymorphic { Some(array_type) } else { self.array_type(declared_element) };
        let Some(declared_array) = declared_array else {
            return Err(self.error_at(
                location,
                SqlState::UndefinedObject,
                format!("could not find array type for data type {}", self.type_name(declared_element)),
            ));
        };
        let mut args = self
            .coerce_args(vec![left, right], &[left_type, array_type], &[declared_left, declared_array])?
            .into_iter();
        let (Some(scalar), Some(array)) = (args.next(), args.next()) else {
            return Err(SqlError::internal("an operator lost its arguments"));
        };
        Ok(Expr::ScalarArrayOp(ScalarArrayOp {
            operator: op.oid,
            function: op.function,
            any,
            input_collation: Oid::INVALID,
            args: Box::new([scalar, array]),
            location,
        }))
    }

    /// `=` turned into IS DISTINCT FROM.
    pub fn make_distinct_op(
        &mut self,
        left: Expr,
        right: Expr,
        name: &[String],
        location: Location,
    ) -> SqlResult<Expr> {
        let Expr::Op(op) = self.make_op(name, Some(left), right, location)? else {
            return Err(SqlError::internal("no operator"));
        };
        if op.result_type != oids::BOOL {
            return Err(self.error_at(
                location,
                SqlState::DatatypeMismatch,
                "IS DISTINCT FROM requires = operator to yield boolean",
            ));
        }
        Ok(Expr::Distinct(op))
    }

    /// IS DISTINCT FROM over rows: any field differs.
    pub fn make_row_distinct_op(
        &mut self,
        left: Vec<Expr>,
        right: Vec<Expr>,
        name: &[String],
        location: Location,
    ) -> SqlResult<Expr> {
        if left.len() != right.len() {
            return Err(self.error_at(location, SqlState::SyntaxError, "unequal number of entries in row expressions"));
        }
        let mut parts = Vec::new();
        for (l, r) in left.into_iter().zip(right) {
            parts.push(self.make_distinct_op(l, r, name, location)?);
        }
        Ok(match parts.len() {
            0 => crate::coerce::bool_const(false),
            1 => parts.remove(0),
            _ => Expr::Bool(BoolExpr { kind: BoolKind::Or, args: parts, location }),
        })
    }

    /// `ROW(a, b) op ROW(c, d)`, and the test of a subquery of several columns.
    pub fn make_row_comparison(
        &mut self,
        name: &[String],
        left: Vec<Expr>,
        right: Vec<Expr>,
        location: Location,
    ) -> SqlResult<Expr> {
        if left.len() != right.len() {
            return Err(self.error_at(location, SqlState::SyntaxError, "unequal number of entries in row expressions"));
        }
        if left.is_empty() {
            return Err(self.error_at(location, SqlState::FeatureNotSupported, "cannot compare rows of zero length"));
        }
        let mut ops = Vec::with_capacity(left.len());
        for (l, r) in left.into_iter().zip(right) {
            let Expr::Op(op) = self.make_op(name, Some(l), r, location)? else {
                return Err(SqlError::internal("no operator"));
            };
            if op.result_type != oids::BOOL {
                return Err(self.error_at(
                    location,
                    SqlState::DatatypeMismatch,
                    format!(
                        "row comparison operator must yield type boolean, not type {}",
                        self.type_name(op.result_type)
                    ),
                ));
            }
            ops.push(op);
        }
        if ops.len() == 1 {
            return Ok(Expr::Op(ops.remove(0)));
        }
        // What the operators mean: a strategy that all of them have in some B-tree family.
        const NOT_EQUAL: u16 = 6;
        let interpretations: Vec<Vec<(Oid, u16)>> =
            ops.iter().map(|o| self.btree_interpretations(o.operator)).collect();
        let common = (1..=NOT_EQUAL).find(|s| interpretations.iter().all(|i| i.iter().any(|x| x.1 == *s)));
        let Some(strategy) = common else {
            let e = self.error_at(
                location,
                SqlState::FeatureNotSupported,
                format!("could not determine interpretation of row comparison operator {}", name.join(".")),
            );
            return Err(e.hint("Row comparison operators must be associated with btree operator families."));
        };
        let kind = match strategy {
            3 => {
                let args = ops.into_iter().map(Expr::Op).collect();
                return Ok(Expr::Bool(BoolExpr { kind: BoolKind::And, args, location }));
            }
            NOT_EQUAL => {
                let args = ops.into_iter().map(Expr::Op).collect();
                return Ok(Expr::Bool(BoolExpr { kind: BoolKind::Or, args, location }));
            }
            1 => RowCompareKind::Less,
            2 => RowCompareKind::LessEqual,
            4 => RowCompareKind::GreaterEqual,
            _ => RowCompareKind::Greater,
        };
        let families =
            interpretations.iter().map(|i| i.iter().find(|x| x.1 == strategy).map_or(Oid::INVALID, |x| x.0)).collect();
        let mut compare = RowCompare {
            kind,
            operators: Vec::new(),
            families,
            input_collations: vec![Oid::INVALID; ops.len()],
            left: Vec::new(),
            right: Vec::new(),
        };
        for op in ops {
            let mut args = op.args.into_iter();
            compare.operators.push(op.operator);
            compare.left.extend(args.next());
            compare.right.extend(args.next());
        }
        Ok(Expr::RowCompare(Box::new(compare)))
    }

    /// The B-tree families and strategies of an operator; 6 for the negator of an equality.
    fn btree_interpretations(&self, operator: Oid) -> Vec<(Oid, u16)> {
        let of = |o: Oid| -> Vec<(Oid, u16)> {
            let amops = self.cx.catalog.amops_of_operator(o).iter();
            let mut list: Vec<_> = amops
                .filter(|a| a.access_method == oids::BTREE && a.purpose == b's')
                .map(|a| (a.family, a.strategy))
                .collect();
            list.sort_by_key(|x| x.0);
            list
        };
        let own = of(operator);
        if !own.is_empty() {
            return own;
        }
        let negator = self.cx.catalog.operator(operator).map_or(Oid::INVALID, |o| o.negator);
        of(negator).into_iter().filter(|x| x.1 == 3).map(|x| (x.0, 6)).collect()
    }

    /// The sort and equality operators of a type.
    pub fn sort_operators(&self, ty: Oid) -> SortOperators {
        self.cx.catalog.sort_operators(ty)
    }
}
