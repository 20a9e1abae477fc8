//! Which restrictions an index can answer (`match_clause_to_indexcol`).

use std::rc::Rc;

use stegodon_format::ids::Oid;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::*;
use stegodon_types::Datum;

use crate::clause::Clause;
use crate::exprs::{BOOL, bool_const, has_subplan, relids_of, strip_relabel, type_of};
use crate::level::Level;
use crate::path::IndexClause;
use crate::patterns::{self, PatternKind};
use crate::rel::{IndexInfo, Rel, is_c_like};

/// `bool_ops`' btree family.
const BOOL_FAMILY: Oid = Oid(424);

impl<'a> Level<'a> {
    /// The index clauses for each key column that the restrictions give.
    pub(crate) fn match_index(
        &self,
        rel: &Rel<'a>,
        index: &IndexInfo,
        clauses: &[Rc<Clause>],
    ) -> Vec<Vec<IndexClause>> {
        let mut out: Vec<Vec<IndexClause>> = vec![Vec::new(); index.key_count];
        for clause in clauses {
            if clause.pseudoconstant {
                continue;
            }
            for (n, slot) in out.iter_mut().enumerate() {
                let Some(column) = index.column_expr(n, rel) else { continue };
                if let Some(found) = self.match_clause(rel, index, n, &column, clause) {
                    if !slot.iter().any(|c| Rc::ptr_eq(&c.clause, clause)) {
                        slot.push(found);
                    }
                    break;
                }
            }
        }
        out
    }

    fn match_clause(
        &self,
        rel: &Rel<'a>,
        index: &IndexInfo,
        n: usize,
        column: &Expr,
        clause: &Rc<Clause>,
    ) -> Option<IndexClause> {
        let (family, collation) = (*index.families.get(n)?, *index.collations.get(n)?);
        let exact = |expr: Expr, strategy: u16| IndexClause {
            clause: Rc::clone(clause),
            quals: vec![(expr, strategy)],
            lossy: false,
            column: n,
        };
        if family == BOOL_FAMILY
            && let Some(value) = boolean_value(&clause.expr, column)
        {
            return Some(exact(boolean_equals(column, value), 3));
        }
        let is_column = |e: &Expr| strip_relabel(e) == strip_relabel(column);
        let is_outside = |e: &Expr| !relids_of(e).overlaps(&rel.relids) && !self.is_volatile(e) && !has_subplan(e);
        let fits = |c: Oid| !collation.is_valid() || collation == c;
        match &clause.expr {
            Expr::Op(op) => {
                let [left, right] = op.args.as_slice() else { return None };
                if is_column(left) && is_outside(right) {
                    if fits(op.input_collation)
                        && let Some(strategy) = self.strategy(op.operator, family)
                    {
                        return Some(exact(clause.expr.clone(), strategy));
                    }
                    return self.match_pattern(n, family, collation, column, left, right, op, clause);
                }
                if is_column(right) && is_outside(left) && fits(op.input_collation) {
                    let commutator = self.catalog().operator(op.operator)?.commutator;
                    let strategy = self.strategy(commutator, family)?;
                    let mut turned = op.clone();
                    turned.operator = commutator;
                    turned.function = self.catalog().operator(commutator)?.function;
                    turned.args.reverse();
                    return Some(exact(Expr::Op(turned), strategy));
                }
                None
            }
            Expr::ScalarArrayOp(s) => {
                let [left, right] = &*s.args;
                if !s.any || !is_column(left) || !is_outside(right) || !fits(s.input_collation) {
                    return None;
                }
                let strategy = self.strategy(s.operator, family)?;
                Some(exact(clause.expr.clone(), strategy))
            }
            Expr::NullTest(t) if !t.arg_is_row && is_column(&t.arg) => Some(exact(clause.expr.clone(), 0)),
            Expr::RowCompare(r) => self.match_row_compare(rel, index, n, r, clause),
            Expr::Bool(b) if b.kind == BoolKind::Or => {
                self.match_or(column, family, collation, &b.args).map(|(e, s)| exact(e, s))
            }
            _ => None,
        }
    }

    /// `column = 1 OR column = 2` asks the index what `column = ANY ('{1,2}')` does.
    fn match_or(&self, column: &Expr, family: Oid, collation: Oid, arms: &[Expr]) -> Option<(Expr, u16)> {
        let mut first: Option<OpExpr> = None;
        let mut values = Vec::new();
        for a in arms {
            let Expr::Op(op) = a else { return None };
            let mut op = op.clone();
            if matches!(op.args.as_slice(), [_, r] if strip_relabel(r) == strip_relabel(column)) {
                let commutator = self.catalog().operator(op.operator)?.commutator;
                op.function = self.catalog().operator(commutator)?.function;
                op.operator = commutator;
                op.args.reverse();
            }
            let [left, right] = op.args.as_slice() else { return None };
            if strip_relabel(left) != strip_relabel(column)
                || !matches!(right, Expr::Const(Const { value: Some(_), .. }))
                || (collation.is_valid() && collation != op.input_collation)
            {
                return None;
            }
            values.push(right.clone());
            match &first {
                None => first = Some(op),
                Some(f) => {
                    let same = f.operator == op.operator
                        && f.input_collation == op.input_collation
                        && f.args.first() == op.args.first()
                        && f.args.get(1).map(type_of) == op.args.get(1).map(type_of);
                    if !same {
                        return None;
                    }
                }
            }
        }
        let op = first?;
        let strategy = self.strategy(op.operator, family)?;
        let element_type = type_of(op.args.get(1)?);
        let element = self.catalog().type_desc(element_type)?;
        if !element.array.is_valid() {
            return None;
        }
        let array = Expr::Array(ArrayExpr {
            array_type: element.array,
            element_type,
            collation: element.collation,
            elements: values,
            multidims: false,
            location: None,
        });
        let array = self.cx.input.evaluate.fold(array).ok()?;
        if !matches!(array, Expr::Const(_)) {
            return None;
        }
        let e = Expr::ScalarArrayOp(ScalarArrayOp {
            operator: op.operator,
            function: op.function,
            any: true,
            input_collation: op.input_collation,
            args: Box::new([op.args.first()?.clone(), array]),
            location: None,
        });
        Some((e, strategy))
    }

    /// The btree strategy of an operator in a family.
    pub(crate) fn strategy(&self, operator: Oid, family: Oid) -> Option<u16> {
        let found = self.catalog().amops_of_operator(operator).iter().find(|a| a.family == family && a.purpose == b's');
        found.map(|a| a.strategy)
    }

    /// `(a, b) < (x, y)`: usable where the row's columns are the index's from `n` on, all of one direction. Only whole
    /// matches are used.
    fn match_row_compare(
        &self,
        rel: &Rel<'a>,
        index: &IndexInfo,
        n: usize,
        r: &RowCompare,
        clause: &Rc<Clause>,
    ) -> Option<IndexClause> {
        if n + r.left.len() > index.key_count {
            return None;
        }
        let mut strategy = None;
        for (i, (left, right)) in r.left.iter().zip(&r.right).enumerate() {
            let column = index.column_expr(n + i, rel)?;
            let (family, collation) = (*index.families.get(n + i)?, *index.collations.get(n + i)?);
            if strip_relabel(left) != strip_relabel(&column)
                || relids_of(right).overlaps(&rel.relids)
                || self.is_volatile(right)
                || has_subplan(right)
                || (collation.is_valid() && r.input_collations.get(i) != Some(&collation))
                || index.descending.get(n + i) != index.descending.get(n)
            {
                return None;
            }
            let s = self.strategy(*r.operators.get(i)?, family)?;
            if *strategy.get_or_insert(s) != s {
                return None;
            }
        }
        Some(IndexClause {
            clause: Rc::clone(clause),
            quals: vec![(clause.expr.clone(), strategy?)],
            lossy: false,
            column: n,
        })
    }

    /// `column LIKE 'abc%'` becomes a range, where text orders by its bytes.
    #[allow(clippy::too_many_arguments)]
    fn match_pattern(
        &self,
        n: usize,
        family: Oid,
        collation: Oid,
        column: &Expr,
        left: &Expr,
        right: &Expr,
        op: &OpExpr,
        clause: &Rc<Clause>,
    ) -> Option<IndexClause> {
        let name = self.restriction_name(op.operator)?;
        if !matches!(name, "likesel" | "regexeqsel" | "iclikesel" | "icregexeqsel" | "prefixsel") {
            return None;
        }
        let Expr::Const(Const { value: Some(pattern), type_oid, .. }) = right else { return None };
        let left_type = type_of(left);
        let (eq, ge, lt, constant_type) = match family.0 {
            1994 => (3, 4, 1, if left_type.0 == 19 { Oid(25) } else { left_type }),
            // text_pattern_ops: by bytes whatever the collation.
            2095 => (3, 4, 1, Oid(25)),
            _ => return None,
        };
        if !matches!(left_type.0, 25 | 1043) || !matches!(type_of(column).0, 25 | 1043) {
            return None;
        }
        let constant_type = if constant_type.0 == 1043 { Oid(25) } else { constant_type };
        if family.0 == 1994 && !is_c_like(self.catalog(), collation) {
            return None;
        }
        let _ = type_oid;
        let fixed = patterns::fixed_prefix(PatternKind::of_estimator(name), pattern.as_bytes()?);
        let make = |strategy: u16, value: &[u8]| -> Option<(Expr, u16)> {
            let operator = self.catalog().family_operator(family, Oid(25), Oid(25), strategy)?;
            let function = self.catalog().operator(operator)?.function;
            let constant = Expr::Const(Const {
                type_oid: constant_type,
                typmod: -1,
                collation,
                value: Some(Datum::bytes(value)),
                location: None,
            });
            let expr = Expr::Op(OpExpr {
                operator,
                function,
                result_type: BOOL,
                returns_set: false,
                collation: Oid::INVALID,
                input_collation: collation,
                args: vec![left.clone(), constant],
                location: None,
            });
            Some((expr, strategy))
        };
        let quals = if fixed.exact {
            vec![make(eq, &fixed.prefix)?]
        } else if fixed.prefix.is_empty() {
            return None;
        } else {
            let mut quals = vec![make(ge, &fixed.prefix)?];
            if let Some(greater) = patterns::greater_string(&fixed.prefix, true) {
                quals.push(make(lt, &greater)?);
            }
            quals
        };
        Some(IndexClause { clause: Rc::clone(clause), quals, lossy: true, column: n })
    }
}

/// What a condition says a boolean column is.
fn boolean_value(e: &Expr, column: &Expr) -> Option<bool> {
    if e == column {
        return Some(true);
    }
    match e {
        Expr::Bool(b) if b.kind == BoolKind::Not && b.args.first() == Some(column) => Some(false),
        Expr::BooleanTest(t) if t.arg == *column => match t.kind {
            BooleanTestKind::IsTrue => Some(true),
            BooleanTestKind::IsFalse => Some(false),
            _ => None,
        },
        _ => None,
    }
}

fn boolean_equals(column: &Expr, value: bool) -> Expr {
    Expr::Op(OpExpr {
        operator: Oid(91),
        function: Oid(60),
        result_type: BOOL,
        returns_set: false,
        collation: Oid::INVALID,
        input_collation: Oid::INVALID,
        args: vec![column.clone(), bool_const(Some(value))],
        location: None,
    })
}
