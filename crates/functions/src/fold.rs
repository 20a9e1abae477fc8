//! Folding constants: PostgreSQL's `eval_const_expressions`.
//!
//! [`fold`], for estimates, never raises an error: what fails stays as it is. [`try_fold`] raises the error of a constant
//! part, as PostgreSQL does when it plans. What is not supported stays as it is in both.
#![allow(clippy::collapsible_match, reason = "one arm a node")]

use std::cell::RefCell;

use stegodon_catalog::Catalog;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::*;
use stegodon_types::{Datum, Layout, Oid, SqlError, SqlResult, SqlState, oids};

use crate::eval::layout_of;

use crate::{CompileContext, EvalContext, Evaluator};

/// How far folding may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FoldMode {
    /// Stable functions too: for estimates, never for what is run.
    pub stable: bool,
    /// Take the client's parameters for constants (a custom plan).
    pub params: bool,
}

/// Simplifies an expression.
pub fn fold(mut expr: Expr, cx: &EvalContext<'_>, mode: FoldMode) -> Expr {
    Folder { cx, mode, error: RefCell::default() }.fold(&mut expr);
    expr
}

/// Simplifies an expression that is going to be run. A constant part that fails is PostgreSQL's error already when it
/// plans, whether a row would reach it or not; what lies behind a constant that decides (`false AND …`) is not looked at.
pub fn try_fold(mut expr: Expr, cx: &EvalContext<'_>, mode: FoldMode) -> SqlResult<Expr> {
    let folder = Folder { cx, mode, error: RefCell::default() };
    folder.fold(&mut expr);
    match folder.error.into_inner() {
        None => Ok(expr),
        Some(error) => Err(error),
    }
}

/// The volatility of a function: `i`, `s`, `v`; what is not known is volatile.
pub fn volatility(catalog: &Catalog, function: Oid) -> u8 {
    catalog.proc(function).map_or(b'v', |p| p.volatility)
}

/// Whether a function is strict; what is not known is not.
pub fn is_strict(catalog: &Catalog, function: Oid) -> bool {
    catalog.proc(function).is_some_and(|p| p.strict)
}

/// The functions that a node itself calls.
fn functions_of(expr: &Expr, catalog: &Catalog, f: &mut dyn FnMut(Oid)) {
    match expr {
        Expr::Func(c) => f(c.function),
        Expr::Op(o) | Expr::Distinct(o) | Expr::NullIf(o) => f(o.function),
        Expr::ScalarArrayOp(s) => f(s.function),
        Expr::Aggref(a) => f(a.function),
        Expr::WindowFunc(w) => f(w.function),
        Expr::RowCompare(r) => {
            for &op in &r.operators {
                f(catalog.operator(op).map_or(Oid(0), |o| o.function));
            }
        }
        _ => {}
    }
}

/// Whether an expression or a part of it is as volatile as `at_least` (`s` or `v`). Subqueries are not looked into.
fn contains(expr: &Expr, catalog: &Catalog, at_least: u8) -> bool {
    expr.any(&mut |e| {
        let mut found = match e {
            Expr::NextValue(_) => true,
            Expr::SqlValue(_) => at_least == b's',
            Expr::CoerceViaIo(c) => {
                at_least == b's' && !(text_is_immutable(c.arg.type_oid()) && text_is_immutable(c.result_type))
            }
            _ => false,
        };
        functions_of(e, catalog, &mut |function| {
            let v = volatility(catalog, function);
            found |= v == b'v' || v == at_least;
        });
        found
    })
}

/// Whether there is a volatile function in an expression (subqueries not looked into).
pub fn contains_volatile(expr: &Expr, catalog: &Catalog) -> bool {
    contains(expr, catalog, b'v')
}

/// Whether there is a function in an expression that is not immutable (subqueries not looked into).
pub fn contains_mutable(expr: &Expr, catalog: &Catalog) -> bool {
    contains(expr, catalog, b's')
}

/// Types whose input and output functions are both immutable.
fn text_is_immutable(ty: Oid) -> bool {
    matches!(
        ty,
        oids::BOOL
            | oids::INT2
            | oids::INT4
            | oids::INT8
            | oids::OID
            | oids::FLOAT4
            | oids::FLOAT8
            | oids::NUMERIC
            | oids::TEXT
            | oids::VARCHAR
            | oids::BPCHAR
            | oids::NAME
            | oids::CHAR
            | oids::UUID
            | oids::UNKNOWN
    )
}

/// What a call's arguments are.
struct Arguments {
    /// All constants.
    constant: bool,
    /// One of them a constant NULL.
    null: bool,
}

impl Arguments {
    fn of(args: &[Expr]) -> Self {
        Arguments {
            constant: args.iter().all(|a| constant(a).is_some()),
            null: args.iter().filter_map(constant).any(|c| c.value.is_none()),
        }
    }
}

struct Folder<'a> {
    cx: &'a EvalContext<'a>,
    mode: FoldMode,
    /// The first error of a constant part.
    error: RefCell<Option<SqlError>>,
}

fn constant(expr: &Expr) -> Option<&Const> {
    if let Expr::Const(c) = expr { Some(c) } else { None }
}

/// What a boolean constant says: `Some(None)` for NULL.
#[allow(clippy::option_option, reason = "not a constant, NULL, or a value")]
fn truth(expr: &Expr) -> Option<Option<bool>> {
    match &constant(expr)?.value {
        None => Some(None),
        Some(Datum::Bool(b)) => Some(Some(*b)),
        Some(_) => None,
    }
}

fn boolean(value: Option<bool>) -> Expr {
    Expr::Const(Const {
        type_oid: oids::BOOL,
        typmod: -1,
        collation: Oid(0),
        value: value.map(Datum::Bool),
        location: None,
    })
}

/// NULL of the expression's type.
fn null(expr: &mut Expr) {
    *expr = Expr::Const(Const {
        type_oid: expr.type_oid(),
        typmod: expr.typmod(),
        collation: expr.collation(),
        value: None,
        location: expr.location(),
    });
}

impl Folder<'_> {
    fn may_call(&self, function: Oid) -> bool {
        match volatility(self.cx.catalog, function) {
            b'i' => true,
            b's' => self.mode.stable,
            _ => false,
        }
    }

    /// A constant's value in the layout of another type that is binary-coercible from its own: int4 and oid differ in sign.
    fn relabelled(&self, from: &Const, to: Oid) -> Option<Datum> {
        let layout = self.cx.types.type_desc(to).ok().and_then(|t| layout_of(&t).ok());
        match (from.value.clone()?, layout) {
            (Datum::Int32(v), Some(Layout::UInt32)) => Some(Datum::UInt32(v as u32)),
            (Datum::UInt32(v), Some(Layout::Int32)) => Some(Datum::Int32(v as i32)),
            (Datum::Int64(v), Some(Layout::UInt64)) => Some(Datum::UInt64(v as u64)),
            (Datum::UInt64(v), Some(Layout::Int64)) => Some(Datum::Int64(v as i64)),
            (value, _) => Some(value),
        }
    }

    /// A constant of the expression's value, where it can be computed without an error.
    fn evaluate(&self, expr: &mut Expr) {
        let compiled = Evaluator::compile(expr, &CompileContext::new(self.cx.catalog, self.cx.types));
        // What has no kernel is refused when it is compiled to be run.
        let Ok(compiled) = compiled else { return };
        let value = match compiled.evaluate_const(self.cx) {
            Ok(value) => value,
            Err(error) => {
                if !matches!(error.state, SqlState::FeatureNotSupported | SqlState::InternalError) {
                    self.error.borrow_mut().get_or_insert(error);
                }
                return;
            }
        };
        *expr = Expr::Const(Const {
            type_oid: expr.type_oid(),
            typmod: expr.typmod(),
            collation: expr.collation(),
            value,
            location: expr.location(),
        });
    }

    /// Folds the parts that PostgreSQL would: not those behind a constant that decides.
    fn children(&self, expr: &mut Expr) {
        match expr {
            Expr::Bool(b) if b.kind != BoolKind::Not => {
                let decisive = Some(Some(b.kind == BoolKind::Or));
                for arg in &mut b.args {
                    self.fold(arg);
                    if truth(arg) == decisive {
                        return;
                    }
                }
                return;
            }
            Expr::Coalesce(c) => {
                for arg in &mut c.args {
                    self.fold(arg);
                    if constant(arg).is_some_and(|k| k.value.is_some()) {
                        return;
                    }
                }
                return;
            }
            Expr::Case(case) => {
                if let Some(arg) = &mut case.arg {
                    self.fold(arg);
                }
                for (when, then) in &mut case.whens {
                    self.fold(when);
                    match truth(when) {
                        Some(Some(true)) => return self.fold(then),
                        Some(_) => {}
                        None => self.fold(then),
                    }
                }
                return self.fold(&mut case.default);
            }
            _ => {}
        }
        let visited = expr.try_each_child_mut::<std::convert::Infallible>(&mut |child| {
            self.fold(child);
            Ok(())
        });
        let Ok(()) = visited;
    }

    fn fold(&self, expr: &mut Expr) {
        if let Expr::Case(case) = expr {
            self.substitute_case_value(case);
        }
        self.children(expr);
        match expr {
            Expr::Param(p) if self.mode.params && p.kind == ParamKind::Extern => {
                let value = (p.id as usize).checked_sub(1).and_then(|i| self.cx.params.get(i));
                if let Some(value) = value {
                    *expr = Expr::Const(Const {
                        type_oid: p.type_oid,
                        typmod: p.typmod,
                        collation: p.collation,
                        value: value.clone(),
                        location: p.location,
                    });
                }
            }
            Expr::Func(f) => {
                let (function, set) = (f.function, f.returns_set);
                if !set {
                    let args = Arguments::of(&f.args);
                    self.call(function, args, expr);
                }
            }
            Expr::Op(o) => {
                let (function, set) = (o.function, o.returns_set);
                if !set {
                    let args = Arguments::of(&o.args);
                    self.call(function, args, expr);
                }
            }
            Expr::Distinct(o) | Expr::NullIf(o) => {
                if self.may_call(o.function) && o.args.iter().all(|a| constant(a).is_some()) {
                    self.evaluate(expr);
                }
            }
            Expr::ScalarArrayOp(s) => {
                if self.may_call(s.function) && s.args.iter().all(|a| constant(a).is_some()) {
                    self.evaluate(expr);
                }
            }
            Expr::Array(a) if a.elements.iter().all(|e| constant(e).is_some()) => self.evaluate(expr),
            Expr::MinMax(m) if m.args.iter().all(|e| constant(e).is_some()) => self.evaluate(expr),
            Expr::Subscript(s) => {
                let bounds = s.upper.iter().chain(&s.lower).flatten().all(|e| constant(e).is_some());
                if bounds && constant(&s.container).is_some() {
                    self.evaluate(expr);
                }
            }
            Expr::Bool(_) => self.connective(expr),
            Expr::Relabel(r) => {
                if let Some(c) = constant(&r.arg) {
                    *expr = Expr::Const(Const {
                        type_oid: r.result_type,
                        typmod: r.typmod,
                        collation: r.collation,
                        value: self.relabelled(c, r.result_type),
                        location: c.location,
                    });
                }
            }
            Expr::Collate(c) => {
                if let Some(k) = constant(&c.arg) {
                    *expr = Expr::Const(Const { collation: c.collation, ..k.clone() });
                }
            }
            Expr::CoerceViaIo(c) => {
                let immutable = text_is_immutable(c.arg.type_oid()) && text_is_immutable(c.result_type);
                if constant(&c.arg).is_some() && (immutable || self.mode.stable) {
                    self.evaluate(expr);
                }
            }
            Expr::ArrayCoerce(c) => {
                let volatile = if self.mode.stable {
                    contains_volatile(&c.element, self.cx.catalog)
                } else {
                    contains_mutable(&c.element, self.cx.catalog)
                };
                if constant(&c.arg).is_some() && !volatile {
                    self.evaluate(expr);
                }
            }
            Expr::Case(_) => Self::case(expr),
            Expr::Coalesce(c) => {
                c.args.retain(|a| constant(a).is_none_or(|c| c.value.is_some()));
                if let Some(known) = c.args.iter().position(|a| constant(a).is_some()) {
                    c.args.truncate(known + 1);
                }
                match c.args.as_slice() {
                    [] => null(expr),
                    [_] => {
                        if let Some(only) = c.args.pop() {
                            *expr = only;
                        }
                    }
                    _ => {}
                }
            }
            Expr::NullTest(t) if !t.arg_is_row => {
                if let Some(c) = constant(&t.arg) {
                    *expr = boolean(Some(c.value.is_none() == t.is_null));
                }
            }
            Expr::BooleanTest(t) if truth(&t.arg).is_some() => self.evaluate(expr),
            Expr::SqlValue(_) if self.mode.stable => self.evaluate(expr),
            _ => {}
        }
    }

    /// A function call whose arguments are folded.
    fn call(&self, function: Oid, args: Arguments, expr: &mut Expr) {
        if expr.type_oid() == oids::RECORD {
            return;
        }
        if args.null && is_strict(self.cx.catalog, function) {
            null(expr);
        } else if args.constant && self.may_call(function) {
            self.evaluate(expr);
        }
    }

    fn connective(&self, expr: &mut Expr) {
        let Expr::Bool(b) = expr else { return };
        match b.kind {
            BoolKind::Not => {
                let Some(arg) = b.args.pop() else { return };
                *expr = negate(arg, self.cx.catalog);
                // What negation has uncovered (a negated constant, say) was folded before it was negated.
            }
            kind => {
                let end = kind == BoolKind::Or;
                // AND of ANDs is one AND.
                let mut args = Vec::with_capacity(b.args.len());
                for arg in std::mem::take(&mut b.args) {
                    match arg {
                        Expr::Bool(inner) if inner.kind == kind => args.extend(inner.args),
                        other => args.push(other),
                    }
                }
                if args.iter().any(|a| truth(a) == Some(Some(end))) {
                    *expr = boolean(Some(end));
                    return;
                }
                args.retain(|a| truth(a) != Some(Some(!end)));
                // Several NULLs say no more than one.
                let mut null = false;
                args.retain(|a| truth(a) != Some(None) || !std::mem::replace(&mut null, true));
                match args.len() {
                    0 => *expr = boolean(Some(!end)),
                    1 => {
                        if let Some(only) = args.pop() {
                            *expr = only;
                        }
                    }
                    _ => b.args = args,
                }
            }
        }
    }

    /// `CASE constant WHEN …`: the conditions see the constant itself.
    fn substitute_case_value(&self, case: &mut CaseExpr) {
        let Some(arg) = &mut case.arg else { return };
        self.fold(arg);
        let Some(value) = constant(arg).cloned() else { return };
        for (when, _) in &mut case.whens {
            substitute(when, &value);
        }
        case.arg = None;
    }

    fn case(expr: &mut Expr) {
        let Expr::Case(case) = expr else { return };
        let mut whens = Vec::with_capacity(case.whens.len());
        for (when, then) in std::mem::take(&mut case.whens) {
            match truth(&when) {
                Some(Some(true)) => {
                    case.default = then;
                    break;
                }
                Some(_) => {}
                None => whens.push((when, then)),
            }
        }
        case.whens = whens;
        if case.whens.is_empty() {
            let default = std::mem::replace(&mut case.default, boolean(None));
            *expr = default;
        }
    }
}

/// Replaces a CASE's value in its conditions; not inside another CASE with a value of its own, nor in an array's cast.
fn substitute(expr: &mut Expr, value: &Const) {
    match expr {
        Expr::CaseTest(_) => *expr = Expr::Const(value.clone()),
        Expr::Case(inner) if inner.arg.is_some() => {
            if let Some(arg) = &mut inner.arg {
                substitute(arg, value);
            }
        }
        Expr::ArrayCoerce(c) => substitute(&mut c.arg, value),
        other => {
            let visited = other.try_each_child_mut::<std::convert::Infallible>(&mut |child| {
                substitute(child, value);
                Ok(())
            });
            let Ok(()) = visited;
        }
    }
}

/// NOT of an expression, pushed down where that is the same: PostgreSQL's `negate_clause`.
pub fn negate(expr: Expr, catalog: &Catalog) -> Expr {
    let negator = |operator: Oid| {
        let negator = catalog.operator(operator)?.negator;
        (negator != Oid(0)).then(|| catalog.operator(negator)).flatten()
    };
    match expr {
        ref e if truth(e).is_some() => boolean(truth(e).flatten().map(|b| !b)),
        Expr::Op(mut o) if !o.returns_set => match negator(o.operator) {
            Some(op) => {
                (o.operator, o.function) = (op.oid, op.function);
                Expr::Op(o)
            }
            None => not(Expr::Op(o)),
        },
        Expr::ScalarArrayOp(mut s) => match negator(s.operator) {
            Some(op) => {
                (s.operator, s.function, s.any) = (op.oid, op.function, !s.any);
                Expr::ScalarArrayOp(s)
            }
            None => not(Expr::ScalarArrayOp(s)),
        },
        Expr::Bool(mut b) => match b.kind {
            BoolKind::Not => match b.args.pop() {
                Some(arg) => arg,
                None => Expr::Bool(b),
            },
            kind => {
                b.kind = if kind == BoolKind::And { BoolKind::Or } else { BoolKind::And };
                b.args = b.args.into_iter().map(|a| negate(a, catalog)).collect();
                Expr::Bool(b)
            }
        },
        Expr::NullTest(mut t) if !t.arg_is_row => {
            t.is_null = !t.is_null;
            Expr::NullTest(t)
        }
        Expr::BooleanTest(mut t) => {
            use BooleanTestKind::*;
            t.kind = match t.kind {
                IsTrue => IsNotTrue,
                IsNotTrue => IsTrue,
                IsFalse => IsNotFalse,
                IsNotFalse => IsFalse,
                IsUnknown => IsNotUnknown,
                IsNotUnknown => IsUnknown,
            };
            Expr::BooleanTest(t)
        }
        other => not(other),
    }
}

fn not(arg: Expr) -> Expr {
    Expr::Bool(BoolExpr { kind: BoolKind::Not, args: vec![arg], location: None })
}
