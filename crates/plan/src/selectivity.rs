//! What part of the rows a condition keeps (`clausesel.c` and the conditions that are not operators).

use std::rc::Rc;

use stegodon_format::ids::Oid;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::*;
use stegodon_types::Datum;

use crate::clause::Clause;
use crate::cost::clamp_probability;
use crate::exprs::{self, as_bool_const, relids_of, strip_relabel};
use crate::joinsel::JoinContext;
use crate::level::Level;

/// `DEFAULT_EQ_SEL`
pub const DEFAULT_EQUAL: f64 = 0.005;
/// `DEFAULT_INEQ_SEL`
pub const DEFAULT_INEQUALITY: f64 = 0.333_333_333_333_333_3;
/// `DEFAULT_RANGE_INEQ_SEL`
pub const DEFAULT_RANGE: f64 = 0.005;
/// `DEFAULT_MATCH_SEL`
pub const DEFAULT_MATCH: f64 = 0.005;
const DEFAULT_UNKNOWN: f64 = 0.005;
const DEFAULT_NOT_UNKNOWN: f64 = 1.0 - DEFAULT_UNKNOWN;
const DEFAULT_FUNCTION: f64 = 0.333_333_3;

/// Two inequalities over one expression that may bound it from both sides.
struct RangeQual<'c> {
    variable: &'c Expr,
    low: Option<f64>,
    high: Option<f64>,
}

impl<'a> Level<'a> {
    /// The selectivity of several conditions that must all hold.
    pub(crate) fn clauses_selectivity(&self, clauses: &[Rc<Clause>], join: Option<&JoinContext<'_>>) -> f64 {
        if let [only] = clauses {
            return self.clause_selectivity(only, join);
        }
        let exprs: Vec<(&Expr, Option<&Rc<Clause>>)> = clauses.iter().map(|c| (&c.expr, Some(c))).collect();
        self.all_selectivity(&exprs, join)
    }

    /// As [`Level::clauses_selectivity`], of bare expressions.
    pub(crate) fn exprs_selectivity(&self, exprs: &[Expr]) -> f64 {
        if let [only] = exprs {
            return self.selectivity(only, None);
        }
        let exprs: Vec<_> = exprs.iter().map(|e| (e, None)).collect();
        self.all_selectivity(&exprs, None)
    }

    fn all_selectivity(&self, exprs: &[(&Expr, Option<&Rc<Clause>>)], join: Option<&JoinContext<'_>>) -> f64 {
        let mut product = 1.0;
        let mut ranges: Vec<RangeQual<'_>> = Vec::new();
        for (e, clause) in exprs {
            let one = match clause {
                Some(c) => self.clause_selectivity(c, join),
                None => self.selectivity(e, join),
            };
            match self.as_range_bound(e) {
                Some((variable, is_low)) => match ranges.iter_mut().find(|r| r.variable == variable) {
                    Some(r) => {
                        let slot = if is_low { &mut r.low } else { &mut r.high };
                        *slot = Some(slot.map_or(one, |old: f64| old.min(one)));
                    }
                    None => {
                        ranges.push(RangeQual { variable, low: is_low.then_some(one), high: (!is_low).then_some(one) })
                    }
                },
                None => product *= one,
            }
        }
        // PostgreSQL multiplies them last found first; the order matters to the last bit.
        for r in ranges.iter().rev() {
            product *= match (r.low, r.high) {
                (Some(low), Some(high)) => self.range_selectivity(r.variable, low, high),
                (Some(one), None) | (None, Some(one)) => one,
                (None, None) => 1.0,
            };
        }
        product
    }

    fn range_selectivity(&self, variable: &Expr, low: f64, high: f64) -> f64 {
        if low == DEFAULT_INEQUALITY || high == DEFAULT_INEQUALITY {
            return DEFAULT_RANGE;
        }
        let mut s = high + low - 1.0;
        s += self.null_selectivity(variable, true);
        if s <= 0.0 {
            s = if s < -0.01 { DEFAULT_RANGE } else { 1.0e-10 };
        }
        s
    }

    /// The expression an inequality with a constant bounds, and whether from below.
    fn as_range_bound<'c>(&self, e: &'c Expr) -> Option<(&'c Expr, bool)> {
        let Expr::Op(op) = e else { return None };
        let [left, right] = op.args.as_slice() else { return None };
        let less = match self.restriction_name(op.operator)? {
            "scalarltsel" | "scalarlesel" => true,
            "scalargtsel" | "scalargesel" => false,
            _ => return None,
        };
        let (l, r) = (relids_of(left), relids_of(right));
        let steady = |e: &Expr| !self.is_volatile(e);
        if l.len() == 1 && r.is_empty() && steady(right) {
            Some((left, !less))
        } else if r.len() == 1 && l.is_empty() && steady(left) {
            Some((right, less))
        } else {
            None
        }
    }

    /// The name of an operator's restriction estimator.
    pub(crate) fn restriction_name(&self, operator: Oid) -> Option<&'a str> {
        let row = self.catalog().operator(operator)?;
        self.catalog().proc(row.restriction).map(|p| p.name.as_str())
    }

    /// The selectivity of one clause; kept with it.
    pub(crate) fn clause_selectivity(&self, clause: &Rc<Clause>, join: Option<&JoinContext<'_>>) -> f64 {
        if clause.pseudoconstant && !matches!(clause.expr, Expr::Const(_)) {
            return 1.0;
        }
        let cacheable = join.is_none() || clause.relids.len() <= 1;
        if cacheable && clause.selectivity.get() >= 0.0 {
            return clause.selectivity.get();
        }
        let s = self.selectivity(&clause.expr, join);
        if cacheable {
            clause.selectivity.set(s);
        }
        s
    }

    /// The selectivity of a condition.
    pub(crate) fn selectivity(&self, e: &Expr, join: Option<&JoinContext<'_>>) -> f64 {
        if let Some(value) = as_bool_const(e) {
            return if value == Some(true) { 1.0 } else { 0.0 };
        }
        match e {
            Expr::Var(_) => self.boolean_variable(e),
            Expr::Bool(b) => match (b.kind, b.args.as_slice()) {
                (BoolKind::Not, [arg]) => 1.0 - self.selectivity(arg, join),
                (BoolKind::Not, _) => 0.5,
                (BoolKind::And, args) => {
                    let args: Vec<_> = args.iter().map(|a| (a, None)).collect();
                    self.all_selectivity(&args, join)
                }
                (BoolKind::Or, args) => {
                    let mut s = 0.0;
                    for a in args {
                        let one = self.selectivity(a, join);
                        s = s + one - s * one;
                    }
                    s
                }
            },
            Expr::Op(op) => self.operator_selectivity(op, join),
            Expr::Distinct(op) => 1.0 - self.operator_selectivity(op, join),
            Expr::Func(_) => DEFAULT_FUNCTION,
            Expr::ScalarArrayOp(s) => self.array_op_selectivity(s, join),
            Expr::RowCompare(r) => self.row_compare_selectivity(r, join),
            Expr::NullTest(n) => self.null_selectivity(&n.arg, n.is_null),
            Expr::BooleanTest(b) => self.boolean_test_selectivity(b, join),
            Expr::Relabel(r) => self.selectivity(&r.arg, join),
            Expr::CoerceToDomain(c) => self.selectivity(&c.arg, join),
            _ => 0.5,
        }
    }

    fn is_join(&self, args: &[Expr], join: Option<&JoinContext<'_>>) -> bool {
        join.is_some() && {
            let mut all = crate::relids::Relids::default();
            args.iter().for_each(|a| all.add(&relids_of(a)));
            all.len() > 1
        }
    }

    /// An operator's selectivity: by its join estimator where it spans relations, by its restriction estimator elsewhere.
    pub(crate) fn operator_selectivity(&self, op: &OpExpr, join: Option<&JoinContext<'_>>) -> f64 {
        if let Some(context) = join
            && self.is_join(&op.args, join)
        {
            return self.join_operator_selectivity(op, context);
        }
        let Some(name) = self.restriction_name(op.operator) else { return 0.5 };
        let [left, right] = op.args.as_slice() else { return 0.5 };
        clamp_probability(self.restriction_selectivity(name, op.operator, op.input_collation, left, right))
    }

    fn boolean_variable(&self, e: &Expr) -> f64 {
        let v = self.examine(e);
        if v.stats.is_some() {
            return self.equals_constant(&v, Oid(91), Oid::INVALID, (exprs::BOOL, &Datum::Bool(true)), true, false);
        }
        0.5
    }

    /// `IS NULL`, or `IS NOT NULL`.
    pub(crate) fn null_selectivity(&self, e: &Expr, is_null: bool) -> f64 {
        let v = self.examine(e);
        let nulls = if v.stats.is_some() {
            v.null_fraction()
        } else if exprs::as_var(&v.expr).is_some_and(|(_, a)| a.0 < 0) {
            0.0
        } else {
            return if is_null { DEFAULT_UNKNOWN } else { DEFAULT_NOT_UNKNOWN };
        };
        clamp_probability(if is_null { nulls } else { 1.0 - nulls })
    }

    fn boolean_test_selectivity(&self, t: &BooleanTest, join: Option<&JoinContext<'_>>) -> f64 {
        use BooleanTestKind as K;
        let v = self.examine(&t.arg);
        let s = if v.stats.is_some() {
            let nulls = v.null_fraction();
            if let Some(mcv) = v.mcv().filter(|m| !m.values.is_empty()) {
                let first = mcv.numbers.first().map_or(0.0, |n| f64::from(*n));
                let is_true = if mcv.values.first() == Some(&Datum::Bool(true)) { first } else { 1.0 - first - nulls };
                let is_false = 1.0 - is_true - nulls;
                match t.kind {
                    K::IsUnknown => nulls,
                    K::IsNotUnknown => 1.0 - nulls,
                    K::IsTrue => is_true,
                    K::IsNotTrue => 1.0 - is_true,
                    K::IsFalse => is_false,
                    K::IsNotFalse => 1.0 - is_false,
                }
            } else {
                match t.kind {
                    K::IsUnknown => nulls,
                    K::IsNotUnknown => 1.0 - nulls,
                    K::IsTrue | K::IsFalse => (1.0 - nulls) / 2.0,
                    K::IsNotTrue | K::IsNotFalse => (nulls + 1.0) / 2.0,
                }
            }
        } else {
            match t.kind {
                K::IsUnknown => DEFAULT_UNKNOWN,
                K::IsNotUnknown => DEFAULT_NOT_UNKNOWN,
                K::IsTrue | K::IsNotFalse => self.selectivity(&t.arg, join),
                K::IsFalse | K::IsNotTrue => 1.0 - self.selectivity(&t.arg, join),
            }
        };
        clamp_probability(s)
    }

    fn row_compare_selectivity(&self, r: &RowCompare, join: Option<&JoinContext<'_>>) -> f64 {
        let (Some(&operator), Some(l), Some(right), Some(&collation)) =
            (r.operators.first(), r.left.first(), r.right.first(), r.input_collations.first())
        else {
            return 0.5;
        };
        let Some(row) = self.catalog().operator(operator) else { return 0.5 };
        let op = OpExpr {
            operator,
            function: row.function,
            result_type: exprs::BOOL,
            returns_set: false,
            collation: Oid::INVALID,
            input_collation: collation,
            args: vec![l.clone(), right.clone()],
            location: None,
        };
        self.operator_selectivity(&op, join)
    }

    fn array_op_selectivity(&self, s: &ScalarArrayOp, join: Option<&JoinContext<'_>>) -> f64 {
        let [scalar, array] = &*s.args;
        let name = self.restriction_name(s.operator);
        let as_join = self.is_join(&*s.args, join);
        let (equality, inequality) = (name == Some("eqsel"), name == Some("neqsel"));
        let one = |element: &Expr| {
            let op = OpExpr {
                operator: s.operator,
                function: s.function,
                result_type: exprs::BOOL,
                returns_set: false,
                collation: Oid::INVALID,
                input_collation: s.input_collation,
                args: vec![scalar.clone(), element.clone()],
                location: None,
            };
            self.operator_selectivity(&op, if as_join { join } else { None })
        };
        let array = strip_relabel(array);
        if matches!(array, Expr::Const(Const { value: None, .. })) {
            return 0.0;
        }
        let elements: Option<Vec<Expr>> = match array {
            Expr::Array(a) if !a.multidims => Some(a.elements.clone()),
            _ => self.estimate_value(array).flatten().and_then(|d| self.array_constants(&d, s.operator)),
        };
        let (mut all, mut disjoint) = if s.any { (0.0, 0.0) } else { (1.0, 1.0) };
        let mut combine = |two: f64| {
            if s.any {
                all = all + two - all * two;
                if equality {
                    disjoint += two;
                }
            } else {
                all *= two;
                if inequality {
                    disjoint += two - 1.0;
                }
            }
        };
        match elements {
            Some(list) => {
                for e in list.iter().filter(|e| !matches!(e, Expr::Const(Const { value: None, .. }))) {
                    combine(one(e));
                }
                let exact = if s.any { equality } else { inequality };
                if exact && (0.0..=1.0).contains(&disjoint) {
                    all = disjoint;
                }
            }
            None => {
                let [_, array] = &*s.args;
                let type_oid = self.catalog().type_desc(exprs::type_of(array)).map_or(Oid::INVALID, |t| t.element);
                let unknown = Expr::CaseTest(CaseTest { type_oid, typmod: -1, collation: s.input_collation });
                let two = one(&unknown);
                for _ in 0..10 {
                    combine(two);
                }
            }
        }
        clamp_probability(all)
    }

    /// The elements of an array value as constants.
    pub(crate) fn array_constants(&self, array: &Datum, operator: Oid) -> Option<Vec<Expr>> {
        let (element, values) = crate::arrays::elements(self.catalog(), array.as_bytes()?)?;
        let desc = self.catalog().type_desc(element)?;
        let _ = operator;
        Some(
            values
                .into_iter()
                .map(|value| {
                    Expr::Const(Const {
                        type_oid: element,
                        typmod: -1,
                        collation: desc.collation,
                        value,
                        location: None,
                    })
                })
                .collect(),
        )
    }
}
