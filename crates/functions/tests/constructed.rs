//! Arrays, rows and their comparisons in expressions, by hand-built trees; folding.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, Int32Array};
use stegodon_catalog::Catalog;
use stegodon_format::ids::AttrNumber;
use stegodon_functions::{
    Batch, CompileContext, EvalContext, Evaluator, FoldMode, NoSession, SetFunctionPlan, fold, kernel_oids,
};
use stegodon_nodes::Expr;
use stegodon_nodes::expr::*;
use stegodon_types::*;

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
    fn literal(&self, type_oid: Oid, text: &str) -> Expr {
        let desc = BuiltinTypes.type_desc(type_oid).unwrap();
        let cx = TypeContext::new(&BuiltinTypes, &self.settings);
        let value = (text != "NULL").then(|| text_in(&cx, &desc, text.as_bytes(), -1).unwrap());
        Expr::Const(Const { type_oid, typmod: -1, collation: Oid(0), value, location: None })
    }
    /// The text of an expression without variables.
    fn show(&self, expr: &Expr) -> String {
        let e = self.compile(expr);
        match e.evaluate_const(&self.cx()) {
            Err(e) => e.message,
            Ok(None) => "NULL".into(),
            Ok(Some(v)) => {
                let desc = BuiltinTypes.type_desc(e.type_oid()).unwrap();
                let mut out = Vec::new();
                text_out(&TypeContext::new(&BuiltinTypes, &self.settings), &desc, v.as_ref(), &mut out).unwrap();
                String::from_utf8(out).unwrap()
            }
        }
    }
}

fn var(n: i16, type_oid: Oid) -> Expr {
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

fn in_array(function: u32, any: bool, scalar: Expr, array: Expr) -> Expr {
    Expr::ScalarArrayOp(ScalarArrayOp {
        operator: Oid(0),
        function: Oid(function),
        any,
        input_collation: Oid(0),
        args: Box::new([scalar, array]),
        location: None,
    })
}

#[test]
fn any_and_all_follow_three_valued_logic() {
    let w = World::new();
    let long = "{1,2,3,4,5,6,7,8,9,10}";
    let long_null = "{1,2,3,4,5,6,7,8,9,NULL}";
    // As PostgreSQL answers: scalar, array, = ANY, <> ALL.
    for (scalar, array, any, all) in [
        ("1", "{1,2}", "t", "f"),
        ("3", "{1,2}", "f", "t"),
        ("3", "{1,NULL}", "NULL", "NULL"),
        ("1", "{1,NULL}", "t", "f"),
        ("NULL", "{1}", "NULL", "NULL"),
        ("NULL", "{}", "f", "t"),
        ("1", "{}", "f", "t"),
        ("1", "NULL", "NULL", "NULL"),
        ("7", long, "t", "f"),
        ("70", long, "f", "t"),
        ("7", long_null, "t", "f"),
        ("70", long_null, "NULL", "NULL"),
        ("NULL", long, "NULL", "NULL"),
    ] {
        let (s, a) = (w.literal(oids::INT4, scalar), w.literal(oids::INT4_ARRAY, array));
        assert_eq!(w.show(&in_array(65, true, s.clone(), a.clone())), any, "{scalar} = ANY {array}");
        assert_eq!(w.show(&in_array(144, false, s, a)), all, "{scalar} <> ALL {array}");
    }
}

#[test]
fn any_stops_where_it_is_decided() {
    let w = World::new();
    // An element that is never reached: 1 = ANY of an array a row, and a column that fails for one row only.
    let x: [ArrayRef; 1] = [Arc::new(Int32Array::from(vec![Some(1), Some(2), None]))];
    let e = w.compile(&in_array(65, true, var(1, oids::INT4), w.literal(oids::INT4_ARRAY, "{2,5}")));
    let got = e.evaluate(&w.cx(), &Batch::new(&x, 3), None).unwrap();
    let got: Vec<_> = got.as_any().downcast_ref::<BooleanArray>().unwrap().iter().collect();
    assert_eq!(got, [Some(false), Some(true), None]);
}

#[test]
fn arrays_are_made_and_taken_apart() {
    let w = World::new();
    let int4 = |t: &str| w.literal(oids::INT4, t);
    let array = |elements, multidims| {
        Expr::Array(ArrayExpr {
            array_type: oids::INT4_ARRAY,
            element_type: oids::INT4,
            collation: Oid(0),
            elements,
            multidims,
            location: None,
        })
    };
    assert_eq!(w.show(&array(vec![int4("1"), int4("NULL"), int4("3")], false)), "{1,NULL,3}");
    assert_eq!(w.show(&array(vec![], false)), "{}");
    let inner = |t: &str| w.literal(oids::INT4_ARRAY, t);
    assert_eq!(w.show(&array(vec![inner("{1,2}"), inner("{3,4}")], true)), "{{1,2},{3,4}}");
    assert_eq!(w.show(&array(vec![inner("{}"), inner("{}")], true)), "{}");
    assert_eq!(
        w.show(&array(vec![inner("{1}"), inner("{3,4}")], true)),
        "multidimensional arrays must have array expressions with matching dimensions"
    );
    let subscript = |container: &str, lower: Vec<Option<&str>>, upper: Vec<Option<&str>>| {
        let list = |l: &[Option<&str>]| l.iter().map(|o| o.map(int4)).collect::<Vec<_>>();
        let result_type = if lower.is_empty() { oids::INT4 } else { oids::INT4_ARRAY };
        w.show(&Expr::Subscript(Box::new(SubscriptingRef {
            container_type: oids::INT4_ARRAY,
            element_type: oids::INT4,
            result_type,
            typmod: -1,
            collation: Oid(0),
            upper: list(&upper),
            lower: list(&lower),
            container: inner(container),
        })))
    };
    assert_eq!(subscript("{1,2,3}", vec![], vec![Some("2")]), "2");
    assert_eq!(subscript("{1,2,3}", vec![], vec![Some("4")]), "NULL");
    assert_eq!(subscript("{1,2,3}", vec![], vec![Some("NULL")]), "NULL");
    assert_eq!(subscript("[5:6]={7,8}", vec![], vec![Some("6")]), "8");
    assert_eq!(subscript("{{1,2},{3,4}}", vec![], vec![Some("2"), Some("1")]), "3");
    assert_eq!(subscript("{{1,2},{3,4}}", vec![], vec![Some("2")]), "NULL");
    assert_eq!(subscript("{1,2,3}", vec![Some("2")], vec![Some("3")]), "{2,3}");
    assert_eq!(subscript("{1,2,3}", vec![Some("2")], vec![None]), "{2,3}");
    assert_eq!(subscript("{1,2,3}", vec![None], vec![Some("1")]), "{1}");
    assert_eq!(subscript("{1,2,3}", vec![Some("5")], vec![Some("6")]), "{}");
    assert_eq!(subscript("{{1,2},{3,4}}", vec![Some("1")], vec![Some("1")]), "{{1,2}}");
    assert_eq!(subscript("{{1,2},{3,4}}", vec![None, Some("2")], vec![None, Some("2")]), "{{2},{4}}");
    assert_eq!(subscript("NULL", vec![Some("1")], vec![Some("1")]), "NULL");
}

#[test]
fn small_integers_are_cast_to_oids_bit_by_bit() {
    let w = World::new();
    // PostgreSQL 18: -1::int2::oid is 4294967295, by way of int4(int2).
    for (text, expected) in [("-1", "4294967295"), ("32767", "32767"), ("NULL", "NULL")] {
        let cast = Expr::Func(FuncExpr {
            function: Oid(313),
            result_type: oids::OID,
            returns_set: false,
            variadic: false,
            form: CoercionForm::ImplicitCast,
            collation: Oid(0),
            input_collation: Oid(0),
            args: vec![w.literal(oids::INT2, text)],
            location: None,
        });
        assert_eq!(w.show(&cast), expected);
    }
}

#[test]
fn an_array_is_cast_element_by_element() {
    let w = World::new();
    let element = Expr::Func(FuncExpr {
        function: Oid(481),
        result_type: oids::INT8,
        returns_set: false,
        variadic: false,
        form: CoercionForm::ImplicitCast,
        collation: Oid(0),
        input_collation: Oid(0),
        args: vec![Expr::CaseTest(CaseTest { type_oid: oids::INT4, typmod: -1, collation: Oid(0) })],
        location: None,
    });
    for text in ["{1,NULL,3}", "{}", "[2:3]={4,5}", "NULL"] {
        let cast = Expr::ArrayCoerce(Box::new(ArrayCoerce {
            arg: w.literal(oids::INT4_ARRAY, text),
            element: element.clone(),
            result_type: oids::INT8_ARRAY,
            typmod: -1,
            collation: Oid(0),
            form: CoercionForm::ImplicitCast,
        }));
        assert_eq!(w.show(&cast), text);
    }
}

#[test]
fn rows_are_made_and_tested_for_null() {
    let w = World::new();
    let row = |fields: &[&str]| {
        Expr::Row(RowExpr {
            args: fields.iter().map(|f| w.literal(oids::INT4, f)).collect(),
            row_type: oids::RECORD,
            names: vec![],
            form: CoercionForm::ImplicitCast,
            location: None,
        })
    };
    assert_eq!(w.show(&row(&["1", "NULL", "3"])), "(1,,3)");
    let field = Expr::FieldSelect(Box::new(FieldSelect {
        arg: row(&["1", "2"]),
        field: AttrNumber(2),
        result_type: oids::INT4,
        typmod: -1,
        collation: Oid(0),
    }));
    assert_eq!(w.show(&field), "2");
    let test = |fields: &[&str], is_null| {
        w.show(&Expr::NullTest(Box::new(NullTest { arg: row(fields), is_null, arg_is_row: true })))
    };
    assert_eq!(test(&["NULL", "NULL"], true), "t");
    assert_eq!(test(&["1", "NULL"], true), "f");
    assert_eq!(test(&["1", "NULL"], false), "f");
    assert_eq!(test(&["1", "2"], false), "t");
}

#[test]
fn folding_simplifies_but_never_fails() {
    let w = World::new();
    let truth = |t: &str| w.literal(oids::BOOL, t);
    let x = || var(1, oids::BOOL);
    let boolean = |kind, args| Expr::Bool(BoolExpr { kind, args, location: None });
    let folded = |e| fold(e, &w.cx(), FoldMode::default());
    assert_eq!(folded(boolean(BoolKind::And, vec![x(), truth("f")])), truth("f"));
    assert_eq!(folded(boolean(BoolKind::And, vec![x(), truth("t")])), x());
    assert_eq!(folded(boolean(BoolKind::Or, vec![x(), truth("t")])), truth("t"));
    assert_eq!(folded(boolean(BoolKind::Not, vec![boolean(BoolKind::Not, vec![x()])])), x());
    let nulls = boolean(BoolKind::And, vec![x(), truth("NULL")]);
    assert_eq!(folded(nulls.clone()), nulls);
    let case = Expr::Case(Box::new(CaseExpr {
        result_type: oids::BOOL,
        collation: Oid(0),
        arg: None,
        whens: vec![(truth("f"), x()), (truth("t"), truth("t"))],
        default: x(),
    }));
    assert_eq!(folded(case), truth("t"));
    // An unknown function (no catalog here) is left alone.
    let division = Expr::Op(OpExpr {
        operator: Oid(528),
        function: Oid(154),
        result_type: oids::INT4,
        returns_set: false,
        collation: Oid(0),
        input_collation: Oid(0),
        args: vec![w.literal(oids::INT4, "1"), w.literal(oids::INT4, "0")],
        location: None,
    });
    assert_eq!(folded(division.clone()), division);
}

#[test]
fn series_end_at_the_types_end() {
    let w = World::new();
    let series = |args: &[&str]| {
        let call = Expr::Func(FuncExpr {
            function: Oid(if args.len() == 3 { 1066 } else { 1067 }),
            result_type: oids::INT4,
            returns_set: true,
            variadic: false,
            form: CoercionForm::Call,
            collation: Oid(0),
            input_collation: Oid(0),
            args: args.iter().map(|a| w.literal(oids::INT4, a)).collect(),
            location: None,
        });
        let plan = SetFunctionPlan::compile(&call, &CompileContext::new(&w.catalog, &BuiltinTypes)).unwrap();
        let mut rows = plan.call(&w.cx(), &Batch::one_row(), 0).map_err(|e| e.message)?;
        let mut all = Vec::new();
        while let Some(columns) = rows.next(&w.cx(), 2).unwrap() {
            all.extend(columns[0].as_any().downcast_ref::<Int32Array>().unwrap().values().iter().copied());
        }
        Ok::<_, String>(all)
    };
    assert_eq!(series(&["1", "5"]).unwrap(), [1, 2, 3, 4, 5]);
    assert_eq!(series(&["5", "1"]).unwrap(), [0; 0]);
    assert_eq!(series(&["5", "1", "-2"]).unwrap(), [5, 3, 1]);
    assert_eq!(series(&["2147483646", "2147483647"]).unwrap(), [2147483646, 2147483647]);
    assert_eq!(series(&["1", "NULL"]).unwrap(), [0; 0]);
    assert_eq!(series(&["1", "2", "0"]).unwrap_err(), "step size cannot equal zero");
}

#[test]
fn no_function_has_two_kernels() {
    // Registering a second one fails a debug assertion.
    assert!(kernel_oids().len() > 600, "{} kernels", kernel_oids().len());
}
