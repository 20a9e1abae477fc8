//! Set-returning functions' rows against those a real PostgreSQL gave: `testdata/sets/all.txt`, written by
//! `testdata/sets/record`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use stegodon_catalog::Catalog;
use stegodon_functions::{Batch, CompileContext, EvalContext, NoSession, SetFunctionPlan};
use stegodon_nodes::Expr;
use stegodon_nodes::expr::*;
use stegodon_types::*;

const COLLATION: Oid = Oid(811);

fn unescape(text: &str) -> String {
    text.replace("\\\\", "\u{1}").replace("\\n", "\n").replace('\u{1}', "\\")
}

fn type_oid(name: &str) -> Oid {
    let (base, array) = name.strip_suffix("[]").map_or((name, false), |b| (b, true));
    let row = (1..6000).filter_map(|o| builtin(Oid(o))).find(|row| row.name == base).unwrap();
    if array { row.array } else { row.oid }
}

#[test]
fn set_functions_answer_as_postgresql_does() {
    let (catalog, settings, session) = (Catalog::default(), FormatSettings::default(), NoSession::default());
    let cx = EvalContext {
        catalog: &catalog,
        types: &BuiltinTypes,
        settings: &settings,
        session: &session,
        params: &[],
        exec_params: &[],
        subplans: None,
    };
    let types = TypeContext::new(&BuiltinTypes, &settings);
    let mut wrong = Vec::new();
    let mut head: Vec<&str> = Vec::new();
    for (n, line) in include_str!("../testdata/sets/all.txt").lines().enumerate() {
        if let Some(new) = line.strip_prefix("@ ") {
            head = new.split(' ').collect();
            continue;
        }
        let Some((call, expected)) = line.split_once(" => ") else { continue };
        let columns: Vec<Oid> = head[2].split('+').map(type_oid).collect();
        let run = |max: usize| -> SqlResult<String> {
            let args = head[3..].iter().zip(call.split('\t')).map(|(ty, text)| {
                let type_oid = type_oid(ty);
                let desc = BuiltinTypes.type_desc(type_oid)?;
                let value =
                    if text == "\\N" { None } else { Some(text_in(&types, &desc, unescape(text).as_bytes(), -1)?) };
                Ok(Expr::Const(Const { type_oid, typmod: -1, collation: COLLATION, value, location: None }))
            });
            let call = Expr::Func(FuncExpr {
                function: Oid(head[0].parse().unwrap()),
                result_type: if columns.len() > 1 { oids::RECORD } else { columns[0] },
                returns_set: true,
                variadic: false,
                form: CoercionForm::Call,
                collation: COLLATION,
                input_collation: COLLATION,
                args: args.collect::<SqlResult<_>>()?,
                location: None,
            });
            let plan = SetFunctionPlan::compile(&call, &CompileContext::new(&catalog, &BuiltinTypes))?;
            let layouts = plan.layouts()?;
            let mut function = plan.call(&cx, &Batch::new(&[], 1), 0)?;
            let mut rows = Vec::new();
            while let Some(arrays) = function.next(&cx, max)? {
                assert!(arrays[0].len() <= max && !arrays[0].is_empty());
                for row in 0..arrays[0].len() {
                    let values: Vec<_> =
                        arrays.iter().zip(&layouts).map(|(a, l)| value_at(a.as_ref(), *l, row)).collect();
                    let mut out = Vec::new();
                    if columns.len() > 1 {
                        let fields: Vec<_> =
                            columns.iter().zip(values).map(|(ty, v)| (*ty, -1, COLLATION, v)).collect();
                        let record = record::build_anonymous(&types, &fields)?;
                        let ty = BuiltinTypes.type_desc(oids::RECORD)?;
                        text_out(&types, &ty, ValueRef::Bytes(&record), &mut out)?;
                    } else if let Some(v) = values[0] {
                        text_out(&types, &*BuiltinTypes.type_desc(columns[0])?, v, &mut out)?;
                    } else {
                        out.extend_from_slice(b"\\N");
                    }
                    rows.push(String::from_utf8(out).unwrap().replace('\n', "\\n"));
                }
            }
            Ok(if rows.is_empty() { "nothing".into() } else { rows.join(" | ") })
        };
        for max in [1, 1000] {
            let got = run(max).unwrap_or_else(|e| format!("!{} {}", e.state.code(), e.message));
            if got != expected {
                wrong.push(format!("{}: {}({call}): expected {expected}, got {got}", n + 1, head[1]));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
