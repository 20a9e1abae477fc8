//! What is evaluated, for which rows, and whose error wins.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, Int32Array};
use stegodon_catalog::Catalog;
use stegodon_format::ids::AttrNumber;
use stegodon_functions::{Batch, CompileContext, EvalContext, Evaluator, NoSession, Selection, evaluate_all};
use stegodon_nodes::Expr;
use stegodon_nodes::expr::*;
use stegodon_types::{BuiltinTypes, Datum, FormatSettings, Oid, SqlState, oids};

fn var(n: i16) -> Expr {
    Expr::Var(Var {
        source: VarSource::Outer,
        attno: AttrNumber(n),
        type_oid: oids::INT4,
        typmod: -1,
        collation: Oid(0),
        levels_up: 0,
        location: None,
    })
}

fn int4(v: impl Into<Option<i32>>) -> Expr {
    Expr::Const(Const {
        type_oid: oids::INT4,
        typmod: -1,
        collation: Oid(0),
        value: v.into().map(Datum::Int32),
        location: None,
    })
}

fn op(function: u32, result: Oid, args: Vec<Expr>) -> Expr {
    Expr::Op(OpExpr {
        operator: Oid(0),
        function: Oid(function),
        result_type: result,
        returns_set: false,
        collation: Oid(0),
        input_collation: Oid(0),
        args,
        location: None,
    })
}

fn ne(a: Expr, b: Expr) -> Expr {
    op(144, oids::BOOL, vec![a, b])
}
fn gt(a: Expr, b: Expr) -> Expr {
    op(147, oids::BOOL, vec![a, b])
}
fn div(a: Expr, b: Expr) -> Expr {
    op(154, oids::INT4, vec![a, b])
}
fn add(a: Expr, b: Expr) -> Expr {
    op(177, oids::INT4, vec![a, b])
}
fn bool_expr(kind: BoolKind, args: Vec<Expr>) -> Expr {
    Expr::Bool(BoolExpr { kind, args, location: None })
}

struct World {
    catalog: Catalog,
    settings: FormatSettings,
    session: NoSession,
}

impl World {
    fn new() -> Self {
        World { catalog: Catalog::default(), settings: FormatSettings::default(), session: NoSession::default() }
    }
    fn cx(&self) -> EvalContext<'_> {
        EvalContext {
            catalog: &self.catalog,
            types: &BuiltinTypes,
            settings: &self.settings,
            session: &self.session,
            params: &[],
            exec_params: &[],
            subplans: None,
        }
    }
    fn compile(&self, expr: &Expr) -> Evaluator {
        Evaluator::compile(expr, &CompileContext::new(&self.catalog, &BuiltinTypes)).unwrap()
    }
}

fn ints(values: &[Option<i32>]) -> ArrayRef {
    Arc::new(Int32Array::from(values.to_vec()))
}

fn as_ints(array: &ArrayRef) -> Vec<Option<i32>> {
    array.as_any().downcast_ref::<Int32Array>().unwrap().iter().collect()
}

#[test]
fn and_guards_division() {
    let w = World::new();
    let x = [ints(&[Some(0), Some(1), None, Some(-1), Some(2)])];
    let guarded = bool_expr(BoolKind::And, vec![ne(var(1), int4(0)), gt(div(int4(2), var(1)), int4(1))]);
    let e = w.compile(&guarded);
    let batch = Batch::new(&x, 5);
    let got = e.evaluate(&w.cx(), &batch, None).unwrap();
    let got: Vec<_> = got.as_any().downcast_ref::<BooleanArray>().unwrap().iter().collect();
    assert_eq!(got, [Some(false), Some(true), None, Some(false), Some(false)]);
    assert_eq!(e.filter(&w.cx(), &batch, None).unwrap().rows(), [1]);
    let or =
        bool_expr(BoolKind::Or, vec![op(65, oids::BOOL, vec![var(1), int4(0)]), gt(div(int4(2), var(1)), int4(1))]);
    assert_eq!(w.compile(&or).filter(&w.cx(), &batch, None).unwrap().rows(), [0, 1]);
}

#[test]
fn null_ends_a_list_of_quals_but_not_an_and() {
    let w = World::new();
    let x = [ints(&[None]), ints(&[Some(0)])];
    let batch = Batch::new(&x, 1);
    let quals = bool_expr(BoolKind::And, vec![gt(var(1), int4(0)), gt(div(int4(1), var(2)), int4(0))]);
    let e = w.compile(&quals);
    assert!(e.filter(&w.cx(), &batch, None).unwrap().is_empty());
    assert_eq!(e.evaluate(&w.cx(), &batch, None).unwrap_err().state, SqlState::DivisionByZero);
}

#[test]
fn the_first_failing_row_wins() {
    let w = World::new();
    // Row 0 is fine, row 1 divides by zero, row 2 overflows in the argument evaluated first.
    let x = [ints(&[Some(1), Some(2), Some(i32::MAX)]), ints(&[Some(1), Some(0), Some(1)])];
    let batch = Batch::new(&x, 3);
    let e = w.compile(&add(add(var(1), int4(1)), div(int4(1), var(2))));
    assert_eq!(e.evaluate(&w.cx(), &batch, None).unwrap_err().message, "division by zero");
    let only_last = Selection::new(vec![0, 2]);
    assert_eq!(e.evaluate(&w.cx(), &batch, Some(&only_last)).unwrap_err().message, "integer out of range");
    let partial = evaluate_all(std::slice::from_ref(&e), &w.cx(), &batch, None).unwrap();
    assert_eq!((partial.rows, partial.error.unwrap().message.as_str()), (1, "division by zero"));
    assert_eq!(as_ints(&partial.value[0]), [Some(3)]);
}

#[test]
fn rows_before_a_failing_row_are_filtered() {
    let w = World::new();
    let x = [ints(&[Some(1), Some(2), Some(0), Some(1)])];
    let e = w.compile(&gt(div(int4(2), var(1)), int4(1)));
    let partial = e.filter_partial(&w.cx(), &Batch::new(&x, 4), None).unwrap();
    assert_eq!((partial.value.rows(), partial.rows), ([0].as_slice(), 2));
    assert_eq!(partial.error.unwrap().state, SqlState::DivisionByZero);
}

#[test]
fn case_and_coalesce_evaluate_what_is_reached() {
    let w = World::new();
    let x = [ints(&[Some(0), Some(2), None, Some(4)])];
    let batch = Batch::new(&x, 4);
    let case = Expr::Case(Box::new(CaseExpr {
        result_type: oids::INT4,
        collation: Oid(0),
        arg: None,
        whens: vec![(ne(var(1), int4(0)), div(int4(8), var(1)))],
        default: int4(-1),
    }));
    assert_eq!(
        as_ints(&w.compile(&case).evaluate(&w.cx(), &batch, None).unwrap()),
        [Some(-1), Some(4), Some(-1), Some(2)]
    );
    let coalesce = Expr::Coalesce(Coalesce {
        result_type: oids::INT4,
        collation: Oid(0),
        args: vec![var(1), div(int4(1), int4(0))],
    });
    let e = w.compile(&coalesce);
    let known = Selection::new(vec![0, 1, 3]);
    assert_eq!(as_ints(&e.evaluate(&w.cx(), &batch, Some(&known)).unwrap()), [Some(0), Some(2), Some(4)]);
    assert_eq!(e.evaluate(&w.cx(), &batch, None).unwrap_err().state, SqlState::DivisionByZero);
    let simple = Expr::Case(Box::new(CaseExpr {
        result_type: oids::INT4,
        collation: Oid(0),
        arg: Some(var(1)),
        whens: vec![(
            op(
                65,
                oids::BOOL,
                vec![Expr::CaseTest(CaseTest { type_oid: oids::INT4, typmod: -1, collation: Oid(0) }), int4(2)],
            ),
            int4(20),
        )],
        default: int4(None),
    }));
    assert_eq!(as_ints(&w.compile(&simple).evaluate(&w.cx(), &batch, None).unwrap()), [None, Some(20), None, None]);
}

#[test]
fn nullif_greatest_least_distinct() {
    let w = World::new();
    let x = [ints(&[Some(1), Some(5), None]), ints(&[Some(1), Some(3), Some(7)])];
    let batch = Batch::new(&x, 3);
    let pair = |function| OpExpr {
        operator: Oid(0),
        function: Oid(function),
        result_type: oids::BOOL,
        returns_set: false,
        collation: Oid(0),
        input_collation: Oid(0),
        args: vec![var(1), var(2)],
        location: None,
    };
    let null_if = Expr::NullIf(OpExpr { result_type: oids::INT4, ..pair(65) });
    assert_eq!(as_ints(&w.compile(&null_if).evaluate(&w.cx(), &batch, None).unwrap()), [None, Some(5), None]);
    let distinct = w.compile(&Expr::Distinct(pair(65)));
    assert_eq!(distinct.filter(&w.cx(), &batch, None).unwrap().rows(), [1, 2]);
    for (greatest, expected) in [(true, [Some(4), Some(5), Some(7)]), (false, [Some(1), Some(3), Some(4)])] {
        let e = Expr::MinMax(MinMax {
            result_type: oids::INT4,
            collation: Oid(0),
            input_collation: Oid(0),
            greatest,
            args: vec![var(1), int4(4), var(2)],
        });
        assert_eq!(as_ints(&w.compile(&e).evaluate(&w.cx(), &batch, None).unwrap()), expected);
    }
}

#[test]
fn no_rows_no_error() {
    let w = World::new();
    let x = [ints(&[])];
    let e = w.compile(&add(var(1), div(int4(1), int4(0))));
    assert_eq!(e.evaluate(&w.cx(), &Batch::new(&x, 0), None).unwrap().len(), 0);
}

#[test]
fn an_unknown_function_is_refused_by_name_when_compiled() {
    let w = World::new();
    let error = Evaluator::compile(&op(1, oids::INT4, vec![int4(1)]), &CompileContext::new(&w.catalog, &BuiltinTypes))
        .unwrap_err();
    assert_eq!(error.state, SqlState::FeatureNotSupported);
    assert!(error.message.contains("(integer)"), "{}", error.message);
}
