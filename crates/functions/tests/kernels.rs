//! Every kernel's answers against those a real PostgreSQL gave: `testdata/*.txt`, written by `testdata/record`.
//!
//! Each call runs twice: alone, from constants; and as a row of a batch of all the block's calls that do not fail.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::collections::HashMap;

use arrow_array::{Array, ArrayRef};
use stegodon_catalog::Catalog;
use stegodon_format::ids::AttrNumber;
use stegodon_format::version::Version;
use stegodon_functions::{Batch, CompileContext, EvalContext, Evaluator, NoSession};
use stegodon_nodes::Expr;
use stegodon_nodes::expr::*;
use stegodon_types::*;

/// `pg_c_utf8`: bytewise order, Unicode's simple case mappings; what the judge's database has.
const COLLATION: Oid = Oid(811);

fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('t')) => out.push('\t'),
            ('\\', Some('n')) => out.push('\n'),
            ('\\', Some(c)) => out.push(c),
            (c, _) => out.push(c),
        }
    }
    out
}

fn type_oid(name: &str) -> Oid {
    let name = match name {
        "integer" => "int4",
        "bigint" => "int8",
        "boolean" => "bool",
        other => other,
    };
    let (base, array) = name.strip_suffix("[]").map_or((name, false), |b| (b, true));
    let found = (1..6000).filter_map(|o| builtin(Oid(o))).find(|row| row.name == base.trim_matches('"'));
    let row = found.unwrap_or_else(|| panic!("no type {name}"));
    if array { row.array } else { row.oid }
}

struct World {
    catalog: Catalog,
    settings: FormatSettings,
    session: NoSession,
}

struct Head {
    function: Oid,
    name: String,
    result: Oid,
    args: Vec<Oid>,
}

impl World {
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

    fn constant(&self, ty: Oid, text: &str) -> SqlResult<Option<Datum>> {
        if text == "\\N" {
            return Ok(None);
        }
        let desc = BuiltinTypes.type_desc(ty).unwrap();
        text_in(&TypeContext::new(&BuiltinTypes, &self.settings), &desc, unescape(text).as_bytes(), -1).map(Some)
    }

    fn print(&self, ty: Oid, value: Option<ValueRef<'_>>) -> String {
        let Some(value) = value else { return "\\N".into() };
        let mut out = Vec::new();
        let desc = BuiltinTypes.type_desc(ty).unwrap();
        if let Err(e) = text_out(&TypeContext::new(&BuiltinTypes, &self.settings), &desc, value, &mut out) {
            return e.to_string();
        }
        String::from_utf8_lossy(&out).replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n")
    }

    fn call(&self, head: &Head, args: Vec<Expr>) -> SqlResult<Evaluator> {
        let expr = Expr::Func(FuncExpr {
            function: head.function,
            result_type: head.result,
            returns_set: false,
            variadic: false,
            form: CoercionForm::Call,
            collation: COLLATION,
            input_collation: COLLATION,
            args,
            location: None,
        });
        Evaluator::compile(&expr, &CompileContext::new(&self.catalog, &BuiltinTypes))
    }
}

fn constant_expr(type_oid: Oid, value: Option<Datum>) -> Expr {
    Expr::Const(Const { type_oid, typmod: -1, collation: COLLATION, value, location: None })
}

fn variable(n: usize, type_oid: Oid) -> Expr {
    Expr::Var(Var {
        source: VarSource::Outer,
        attno: AttrNumber(n as i16 + 1),
        type_oid,
        typmod: -1,
        collation: COLLATION,
        levels_up: 0,
        location: None,
    })
}

fn run_block(w: &World, head: &Head, cases: &[(usize, &str, &str)], file: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut rows: Vec<(Vec<Option<Datum>>, String, usize)> = Vec::new();
    for &(line, args, expected) in cases {
        let texts: Vec<&str> = if head.args.is_empty() { vec![] } else { args.split('\t').collect() };
        assert_eq!(texts.len(), head.args.len(), "{file}:{line}");
        let values = head.args.iter().zip(&texts).map(|(&t, text)| w.constant(t, text)).collect::<SqlResult<Vec<_>>>();
        let got = values.clone().and_then(|values| {
            let args = head.args.iter().zip(values).map(|(&t, v)| constant_expr(t, v)).collect();
            w.call(head, args)?.evaluate_const(&w.cx())
        });
        let got = match got {
            Ok(v) => w.print(head.result, v.as_ref().map(Datum::as_ref)),
            Err(e) => format!("!{} {}", e.state.code(), e.message),
        };
        if got != expected {
            wrong.push(format!("{file}:{line}: {}({args}): expected {expected}, got {got}", head.name));
        } else if !expected.starts_with('!') {
            rows.push((values.unwrap(), expected.to_owned(), line));
        }
    }
    if rows.is_empty() || head.args.is_empty() {
        return wrong;
    }
    let columns: Vec<ArrayRef> = (0..head.args.len())
        .map(|n| {
            let layout = BuiltinTypes.type_desc(head.args[n]).unwrap().layout.unwrap();
            let mut builder = ColumnBuilder::new(layout, rows.len());
            for (values, ..) in &rows {
                builder.append_option(values[n].as_ref().map(Datum::as_ref)).unwrap();
            }
            builder.finish()
        })
        .collect();
    let args = head.args.iter().enumerate().map(|(n, &t)| variable(n, t)).collect();
    let e = w.call(head, args).unwrap();
    let array = e.evaluate(&w.cx(), &Batch::new(&columns, rows.len()), None).unwrap();
    assert_eq!(array.len(), rows.len());
    for (row, (_, expected, line)) in rows.iter().enumerate() {
        let got = w.print(head.result, value_at(array.as_ref(), e.layout(), row));
        if &got != expected {
            wrong.push(format!("{file}:{line}: in a batch: expected {expected}, got {got}"));
        }
    }
    wrong
}

/// Runs the recorded calls as a version: those in `other` have its answers. Gives what is wrong, and how many calls there are.
fn run_files(w: &mut World, other: &HashMap<(String, String, String), String>, wrong: &mut Vec<String>) -> usize {
    let mut calls = 0;
    for entry in std::fs::read_dir("testdata").unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "txt") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        // Recorded under `PGOPTIONS='-c timezone=…'`.
        let zone = if file == "datetime-new-york.txt" { "America/New_York" } else { "UTC" };
        w.settings.time_zone = jiff::tz::TimeZone::get(zone).unwrap();
        let mut head: Option<Head> = None;
        let mut heading = "";
        let mut cases: Vec<(usize, &str, &str)> = Vec::new();
        for (n, line) in text.lines().enumerate().chain([(usize::MAX - 1, "@ 0 end int4")]) {
            if let Some(new) = line.strip_prefix("@ ") {
                if let Some(head) = &head {
                    wrong.extend(run_block(w, head, &cases, &file));
                }
                calls += cases.len();
                cases.clear();
                let mut words = new.split_whitespace();
                heading = line;
                head = Some(Head {
                    function: Oid(words.next().unwrap().parse().unwrap()),
                    name: words.next().unwrap().into(),
                    result: type_oid(words.next().unwrap()),
                    args: words.map(type_oid).collect(),
                });
            } else if !line.is_empty() && !line.starts_with('#') {
                let (args, expected) = line.split_once(" => ").unwrap_or_else(|| panic!("{file}:{}: {line}", n + 1));
                let key = (file.clone(), heading.to_owned(), args.to_owned());
                cases.push((n + 1, args, other.get(&key).map_or(expected, |answer| answer)));
            }
        }
    }
    calls
}

#[test]
fn kernels_answer_as_postgresql_does() {
    let mut w =
        World { catalog: Catalog::default(), settings: FormatSettings::default(), session: NoSession::default() };
    let mut wrong = Vec::new();
    let calls = run_files(&mut w, &HashMap::new(), &mut wrong);
    assert!(wrong.is_empty(), "{} of {calls} calls are wrong:\n{}", wrong.len(), wrong.join("\n"));
    println!("{calls} calls agree");
}

/// What an older version answers otherwise is answered so or refused, all else as always.
#[test]
fn kernels_answer_as_older_versions_do() {
    for (version, text, refused_most) in [
        (Version::V15, include_str!("../testdata/versions/15.txt"), 1303),
        (Version::V16, include_str!("../testdata/versions/16.txt"), 1018),
        (Version::V17, include_str!("../testdata/versions/17.txt"), 0),
    ] {
        let (mut file, mut head) = ("", "");
        let mut other = HashMap::new();
        for line in text.lines().filter(|l| !l.starts_with('#') && !l.is_empty()) {
            if let Some(name) = line.strip_prefix("% ") {
                file = name;
            } else if line.starts_with('@') {
                head = line;
            } else {
                let (args, answer) = line.split_once(" => ").unwrap();
                other.insert((file.to_owned(), head.to_owned(), args.to_owned()), answer.to_owned());
            }
        }
        let settings = FormatSettings { version, ..FormatSettings::default() };
        let mut w = World { catalog: Catalog::empty(version), settings, session: NoSession::default() };
        let mut wrong = Vec::new();
        let calls = run_files(&mut w, &other, &mut wrong);
        let all = wrong.len();
        wrong.retain(|w| !w.contains("got !0A000"));
        let refused = all - wrong.len();
        println!("{version:?}: {calls} calls, {refused} refused, {} wrong", wrong.len());
        assert!(wrong.is_empty(), "{version:?}: {} of {calls} are wrong:\n{}", wrong.len(), wrong.join("\n"));
        assert!(refused <= refused_most, "{version:?}: {refused} of {calls} are refused");
    }
}
