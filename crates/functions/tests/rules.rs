//! DESIGN D4's rules of evaluation, one test each. Each test also evaluates *without* its rule, through the same kernels (the
//! parts of the expression over all rows, or through another node), and asserts that the outcome is another: so the test
//! cannot pass where the rule is lost. The SQL of each was put to a PostgreSQL 18.4.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arrow_array::{Array, ArrayRef, BooleanArray, Int32Array, Int64Array};
use stegodon_catalog::{Catalog, SearchPath};
use stegodon_format::ids::AttrNumber;
use stegodon_functions::{
    Batch, CompileContext, EvalContext, Evaluator, FoldMode, NoSession, Selection, Session, evaluate_all, fold,
    try_fold,
};
use stegodon_nodes::Expr;
use stegodon_nodes::expr::*;
use stegodon_types::{BuiltinTypes, Datum, FormatSettings, Oid, SqlResult, SqlState, oids};

fn typed_var(n: i16, type_oid: Oid) -> Expr {
    Expr::Var(Var {
        source: VarSource::Outer,
        attno: AttrNumber(n),
        type_oid,
        typmod: -1,
        collation: Oid(0),
        levels_up: 0,
        location: None,
    })
}

fn var(n: i16) -> Expr {
    typed_var(n, oids::INT4)
}

fn constant(type_oid: Oid, value: Option<Datum>) -> Expr {
    Expr::Const(Const { type_oid, typmod: -1, collation: Oid(0), value, location: None })
}

fn int4(v: i32) -> Expr {
    constant(oids::INT4, Some(Datum::Int32(v)))
}

fn boolean(v: bool) -> Expr {
    constant(oids::BOOL, Some(Datum::Bool(v)))
}

fn op_expr(function: u32, result_type: Oid, args: Vec<Expr>) -> OpExpr {
    OpExpr {
        operator: Oid(0),
        function: Oid(function),
        result_type,
        returns_set: false,
        collation: Oid(0),
        input_collation: Oid(0),
        args,
        location: None,
    }
}

fn op(function: u32, result_type: Oid, args: Vec<Expr>) -> Expr {
    Expr::Op(op_expr(function, result_type, args))
}

fn eq(a: Expr, b: Expr) -> Expr {
    op(65, oids::BOOL, vec![a, b])
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
fn bool_expr(kind: BoolKind, args: Vec<Expr>) -> Expr {
    Expr::Bool(BoolExpr { kind, args, location: None })
}
fn case(whens: Vec<(Expr, Expr)>, default: Expr) -> Expr {
    Expr::Case(Box::new(CaseExpr { result_type: oids::INT4, collation: Oid(0), arg: None, whens, default }))
}
fn coalesce(args: Vec<Expr>) -> Expr {
    Expr::Coalesce(Coalesce { result_type: oids::INT4, collation: Oid(0), args })
}
fn call(function: u32, result_type: Oid, args: Vec<Expr>) -> Expr {
    Expr::Func(FuncExpr {
        function: Oid(function),
        result_type,
        returns_set: false,
        variadic: false,
        form: CoercionForm::Call,
        collation: Oid(0),
        input_collation: Oid(0),
        args,
        location: None,
    })
}

/// A session whose clock moves on each time that it is read.
#[derive(Default)]
struct Ticking {
    reads: AtomicI64,
    path: SearchPath,
}

impl Session for Ticking {
    fn current_user(&self) -> Oid {
        Oid(10)
    }
    fn session_user(&self) -> Oid {
        Oid(10)
    }
    fn database_name(&self) -> &'static str {
        ""
    }
    fn version(&self) -> String {
        String::new()
    }
    fn setting(&self, _: &str) -> Option<String> {
        None
    }
    fn transaction_start_us(&self) -> i64 {
        self.reads.fetch_add(1, Ordering::Relaxed)
    }
    fn statement_start_us(&self) -> i64 {
        0
    }
    fn clock_us(&self) -> i64 {
        self.reads.fetch_add(1, Ordering::Relaxed)
    }
    fn postmaster_start_us(&self) -> i64 {
        0
    }
    fn backend_pid(&self) -> i32 {
        0
    }
    fn search_path(&self) -> &SearchPath {
        &self.path
    }
}

struct World<S> {
    catalog: Arc<Catalog>,
    settings: FormatSettings,
    session: S,
}

impl World<NoSession> {
    fn new() -> Self {
        World { catalog: Arc::default(), settings: FormatSettings::default(), session: NoSession::default() }
    }
}

impl<S: Session> World<S> {
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
    fn run(&self, expr: &Expr, batch: &Batch<'_>) -> SqlResult<ArrayRef> {
        self.compile(expr).evaluate(&self.cx(), batch, None)
    }
    /// Without laziness: every part over every row. The first error in the order of the parts.
    fn eager(&self, parts: &[Expr], batch: &Batch<'_>) -> SqlResult<Vec<ArrayRef>> {
        parts.iter().map(|part| self.run(part, batch)).collect()
    }
}

fn ints(values: &[Option<i32>]) -> ArrayRef {
    Arc::new(Int32Array::from(values.to_vec()))
}
fn as_ints(array: &ArrayRef) -> Vec<Option<i32>> {
    array.as_any().downcast_ref::<Int32Array>().unwrap().iter().collect()
}
fn as_bools(array: &ArrayRef) -> Vec<Option<bool>> {
    array.as_any().downcast_ref::<BooleanArray>().unwrap().iter().collect()
}

/// Rule: AND stops at the first false. `select x <> 0 and 2/x > 1 from (values (0), (1), (null), (2)) v(x)`.
#[test]
fn and_evaluates_under_a_selection() {
    let w = World::new();
    let columns = [ints(&[Some(0), Some(1), None, Some(2)])];
    let batch = Batch::new(&columns, 4);
    let parts = vec![ne(var(1), int4(0)), gt(div(int4(2), var(1)), int4(1))];
    let got = w.run(&bool_expr(BoolKind::And, parts.clone()), &batch).unwrap();
    assert_eq!(as_bools(&got), [Some(false), Some(true), None, Some(false)]);
    assert_eq!(w.eager(&parts, &batch).unwrap_err().state, SqlState::DivisionByZero);
}

/// Rule: OR stops at the first true. `select x = 0 or 2/x > 1 from (values (0), (1), (null), (2)) v(x)`.
#[test]
fn or_evaluates_under_a_selection() {
    let w = World::new();
    let columns = [ints(&[Some(0), Some(1), None, Some(2)])];
    let batch = Batch::new(&columns, 4);
    let parts = vec![eq(var(1), int4(0)), gt(div(int4(2), var(1)), int4(1))];
    let got = w.run(&bool_expr(BoolKind::Or, parts.clone()), &batch).unwrap();
    assert_eq!(as_bools(&got), [Some(true), Some(true), None, Some(false)]);
    assert_eq!(w.eager(&parts, &batch).unwrap_err().state, SqlState::DivisionByZero);
}

/// Rule: quals run in their order, not in another. `… where x <> 0 and 1/x > 0` is safe, `… where 1/x > 0 and x <> 0` is not.
#[test]
fn quals_keep_their_order() {
    let w = World::new();
    let columns = [ints(&[Some(0), Some(1)])];
    let batch = Batch::new(&columns, 2);
    let (guard, guarded) = (ne(var(1), int4(0)), gt(div(int4(1), var(1)), int4(0)));
    let safe = w.compile(&bool_expr(BoolKind::And, vec![guard.clone(), guarded.clone()]));
    assert_eq!(safe.filter(&w.cx(), &batch, None).unwrap().rows(), [1]);
    let turned = w.compile(&bool_expr(BoolKind::And, vec![guarded, guard]));
    assert_eq!(turned.filter(&w.cx(), &batch, None).unwrap_err().state, SqlState::DivisionByZero);
}

/// Rule: in a list of quals a NULL ends the row, in an AND it does not: `where (x > 0) and (1/y > 0)` over (null, 0) gives no
/// row, `select (x > 0) and (1/y > 0)` fails.
#[test]
fn a_null_qual_ends_the_row() {
    let w = World::new();
    let columns = [ints(&[None]), ints(&[Some(0)])];
    let batch = Batch::new(&columns, 1);
    let both = bool_expr(BoolKind::And, vec![gt(var(1), int4(0)), gt(div(int4(1), var(2)), int4(0))]);
    assert!(w.compile(&both).filter(&w.cx(), &batch, None).unwrap().is_empty());
    assert_eq!(w.run(&both, &batch).unwrap_err().state, SqlState::DivisionByZero);
}

/// Rule: of CASE only the branch that is reached. `select case when x = 0 then -1 when 4/x = 4 then 1 else 8/(x - 1) end from
/// (values (0), (1), (3)) v(x)`.
#[test]
fn case_evaluates_the_branch_reached() {
    let w = World::new();
    let columns = [ints(&[Some(0), Some(1), Some(3)])];
    let batch = Batch::new(&columns, 3);
    let minus = |a, b| op(181, oids::INT4, vec![a, b]);
    let second = eq(div(int4(4), var(1)), int4(4));
    let otherwise = div(int4(8), minus(var(1), int4(1)));
    let whole = case(vec![(eq(var(1), int4(0)), int4(-1)), (second.clone(), int4(1))], otherwise.clone());
    assert_eq!(as_ints(&w.run(&whole, &batch).unwrap()), [Some(-1), Some(1), Some(4)]);
    for part in [second, otherwise] {
        assert_eq!(w.eager(&[part], &batch).unwrap_err().state, SqlState::DivisionByZero);
    }
}

/// Rule: COALESCE stops at the first value. `select coalesce(x, 1/y) from (values (1, 0), (null, 1)) v(x, y)`.
#[test]
fn coalesce_evaluates_until_a_value() {
    let w = World::new();
    let columns = [ints(&[Some(1), None]), ints(&[Some(0), Some(1)])];
    let batch = Batch::new(&columns, 2);
    let parts = vec![var(1), div(int4(1), var(2))];
    assert_eq!(as_ints(&w.run(&coalesce(parts.clone()), &batch).unwrap()), [Some(1), Some(1)]);
    assert_eq!(w.eager(&parts, &batch).unwrap_err().state, SqlState::DivisionByZero);
}

/// Rule: GREATEST and LEAST evaluate all arguments, also behind NULL: `select greatest(null::int, 1/x) from (values (0)) v(x)`
/// fails. COALESCE and CASE would not have looked.
#[test]
fn greatest_evaluates_all() {
    let w = World::new();
    let columns = [ints(&[Some(0)])];
    let batch = Batch::new(&columns, 1);
    let args = vec![int4(7), div(int4(1), var(1))];
    let greatest = Expr::MinMax(MinMax {
        result_type: oids::INT4,
        collation: Oid(0),
        input_collation: Oid(0),
        greatest: true,
        args: args.clone(),
    });
    assert_eq!(w.run(&greatest, &batch).unwrap_err().state, SqlState::DivisionByZero);
    assert_eq!(as_ints(&w.run(&coalesce(args), &batch).unwrap()), [Some(7)]);
}

/// Rule: NULLIF evaluates its left side first, then its right one, each once, and the comparison is strict: `nullif(1/x, y/x)`
/// fails by its left side; `nullif(x, null)` is x.
#[test]
fn nullif_left_then_right() {
    let w = World::new();
    let columns = [ints(&[Some(0)]), ints(&[Some(i32::MAX)])];
    let batch = Batch::new(&columns, 1);
    let overflow = op(177, oids::INT4, vec![var(2), int4(1)]);
    let zero = div(int4(1), var(1));
    let null_if = |a: &Expr, b: &Expr| Expr::NullIf(op_expr(65, oids::BOOL, vec![a.clone(), b.clone()]));
    let with_type = |e: Expr| match e {
        Expr::NullIf(o) => Expr::NullIf(OpExpr { result_type: oids::INT4, ..o }),
        other => other,
    };
    let left = w.run(&with_type(null_if(&zero, &overflow)), &batch).unwrap_err();
    let right = w.run(&with_type(null_if(&overflow, &zero)), &batch).unwrap_err();
    assert_eq!((left.message.as_str(), right.message.as_str()), ("division by zero", "integer out of range"));
    let null = constant(oids::INT4, None);
    assert_eq!(as_ints(&w.run(&with_type(null_if(&var(2), &null)), &batch).unwrap()), [Some(i32::MAX)]);
    // Were the comparison not strict, NULL would be no different from NULL.
    let distinct = Expr::Distinct(op_expr(65, oids::BOOL, vec![var(2), null]));
    assert_eq!(as_bools(&w.run(&distinct, &batch).unwrap()), [Some(true)]);
}

/// Rule: an error belongs to its row. Of `select 10/x, y + 1` over rows (5, 1), (0, 1), (1, max) the second row's error comes,
/// though the third's expression fails too; under a LIMIT of 1 none does. Evaluated column by column and no more, the
/// error of the column that was computed first would come.
#[test]
fn an_error_belongs_to_its_row() {
    let w = World::new();
    let columns = [ints(&[Some(5), Some(0), Some(1)]), ints(&[Some(1), Some(1), Some(i32::MAX)])];
    let batch = Batch::new(&columns, 3);
    let (overflows, divides) = (op(177, oids::INT4, vec![var(2), int4(1)]), div(int4(10), var(1)));
    let both = [w.compile(&overflows), w.compile(&divides)];
    let partial = evaluate_all(&both, &w.cx(), &batch, None).unwrap();
    assert_eq!((partial.rows, partial.error.unwrap().message.as_str()), (1, "division by zero"));
    let limit = Selection::new(vec![0]);
    assert!(evaluate_all(&both, &w.cx(), &batch, Some(&limit)).unwrap().error.is_none());
    let without = w.eager(&[overflows, divides], &batch).unwrap_err();
    assert_eq!(without.message, "integer out of range");
}

/// Rule: a strict function is not called with NULL: `select x / 0` over NULL is NULL, and a NULL's place in a column may hold
/// anything (here a zero).
#[test]
fn strict_functions_do_not_see_null() {
    let w = World::new();
    let garbage = arrow_buffer::NullBuffer::from(vec![true, false]);
    let columns: [ArrayRef; 1] = [Arc::new(Int32Array::new(vec![4, 0].into(), Some(garbage)))];
    let batch = Batch::new(&columns, 2);
    let expr = div(int4(8), var(1));
    assert_eq!(as_ints(&w.run(&expr, &batch).unwrap()), [Some(2), None]);
    // The same bits without the mask: what would be called.
    let unmasked = [ints(&[Some(4), Some(0)])];
    assert_eq!(w.run(&expr, &Batch::new(&unmasked, 2)).unwrap_err().state, SqlState::DivisionByZero);
    // Nor where the NULL is a constant and the other side would fail when it is looked at.
    let null = div(constant(oids::INT4, None), int4(0));
    assert_eq!(as_ints(&w.run(&null, &batch).unwrap()), [None, None]);
}

/// Rule: folding does not raise an error too early. `case when false then 1/0 end`, `coalesce(1, 1/0)`, `false and 1/0 > 0` fold
/// to what they are; `case when x > 0 then 1/0 end` fails when it is planned (`try_fold`), as PostgreSQL's does, but stays as
/// it is for who only simplifies (`fold`), and then fails for a row that reaches it only.
#[test]
fn folding_raises_no_error_too_early() {
    let catalog = stegodon_catalog::testing::catalog().unwrap();
    let w = World { catalog, settings: FormatSettings::default(), session: NoSession::default() };
    let boom = || div(int4(1), int4(0));
    let mode = FoldMode { stable: true, params: true };
    let null = constant(oids::INT4, None);
    for (expr, expected) in [
        (case(vec![(boolean(false), boom())], null.clone()), null.clone()),
        (coalesce(vec![int4(1), boom()]), int4(1)),
        (case(vec![(boolean(true), int4(2))], boom()), int4(2)),
        (bool_expr(BoolKind::And, vec![boolean(false), gt(boom(), int4(0))]), boolean(false)),
        (bool_expr(BoolKind::Or, vec![boolean(true), gt(boom(), int4(0))]), boolean(true)),
    ] {
        assert_eq!(try_fold(expr, &w.cx(), mode).unwrap(), expected);
    }
    // Without the rule: the part alone fails.
    assert_eq!(try_fold(boom(), &w.cx(), mode).unwrap_err().state, SqlState::DivisionByZero);
    let reached = case(vec![(gt(var(1), int4(0)), boom())], int4(5));
    assert_eq!(try_fold(reached.clone(), &w.cx(), mode).unwrap_err().state, SqlState::DivisionByZero);
    let folded = fold(reached, &w.cx(), mode);
    let columns = [ints(&[Some(0)])];
    assert_eq!(as_ints(&w.run(&folded, &Batch::new(&columns, 1)).unwrap()), [Some(5)]);
    let columns = [ints(&[Some(1)])];
    assert_eq!(w.run(&folded, &Batch::new(&columns, 1)).unwrap_err().state, SqlState::DivisionByZero);
}

/// Rule: a volatile function is called for each row, a stable one once: `select clock_timestamp(), now() from
/// generate_series(1, 3)`. Were it not volatile in the catalogs, one value would stand for all rows.
#[test]
fn volatile_functions_are_called_per_row() {
    let known = stegodon_catalog::testing::catalog().unwrap();
    let run = |catalog: Arc<Catalog>, function| {
        let w = World { catalog, settings: FormatSettings::default(), session: Ticking::default() };
        let batch = Batch::new(&[], 3);
        let got = w.run(&call(function, oids::TIMESTAMPTZ, vec![]), &batch).unwrap();
        let got: Vec<i64> = got.as_any().downcast_ref::<Int64Array>().unwrap().values().to_vec();
        (got, w.session.reads.into_inner())
    };
    let (clock_timestamp, now) = (2649, 1299);
    assert_eq!(run(Arc::clone(&known), clock_timestamp), (vec![0, 1, 2], 3));
    assert_eq!(run(known, now), (vec![0, 0, 0], 1));
    // Without the rule: a catalog that does not know the function.
    assert_eq!(run(Arc::default(), clock_timestamp), (vec![0, 0, 0], 1));
}

/// Rule: a volatile function is not folded, a stable one only where it is allowed.
#[test]
fn volatile_functions_are_not_folded() {
    let catalog = stegodon_catalog::testing::catalog().unwrap();
    let w = World { catalog, settings: FormatSettings::default(), session: Ticking::default() };
    let (clock, now) = (call(2649, oids::TIMESTAMPTZ, vec![]), call(1299, oids::TIMESTAMPTZ, vec![]));
    let mode = |stable| FoldMode { stable, params: true };
    assert_eq!(fold(clock.clone(), &w.cx(), mode(true)), clock);
    assert_eq!(fold(now.clone(), &w.cx(), mode(false)), now);
    assert!(matches!(fold(now, &w.cx(), mode(true)), Expr::Const(_)));
}
