//! Every aggregate's answers against those a real PostgreSQL gave: `testdata/aggregates/*.txt`.
//!
//! Each group is added up in one pass, row by row beside another group, and (where merging is exact) in two halves whose
//! states are merged.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use arrow_array::ArrayRef;
use stegodon_catalog::Catalog;
use stegodon_format::ids::AttrNumber;
use stegodon_functions::aggregate::AggregatePlan;
use stegodon_functions::{CompileContext, Emit, EvalContext, NoSession, aggregate};
use stegodon_nodes::Expr;
use stegodon_nodes::expr::*;
use stegodon_types::*;

const COLLATION: Oid = Oid(811);

fn type_oid(name: &str) -> Oid {
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

    fn plan(&self, function: Oid, result: Oid, args: &[Oid], options: &[&str]) -> AggregatePlan {
        let (distinct, descending) = (options.contains(&"distinct"), options.contains(&"desc"));
        let within = options.iter().find_map(|o| o.strip_prefix("within")).map(str::trim);
        let direct = within.and_then(|w| w.split_once(' ')).map(|(ty, value)| {
            let type_oid = type_oid(ty);
            let desc = BuiltinTypes.type_desc(type_oid).unwrap();
            let cx = TypeContext::new(&BuiltinTypes, &self.settings);
            let value = (value != "\\N").then(|| text_in(&cx, &desc, value.as_bytes(), -1).unwrap());
            Expr::Const(Const { type_oid, typmod: -1, collation: COLLATION, value, location: None })
        });
        let entries = args.iter().enumerate().map(|(n, &type_oid)| TargetEntry {
            expr: Expr::Var(Var {
                source: VarSource::Outer,
                attno: AttrNumber(n as i16 + 1),
                type_oid,
                typmod: -1,
                collation: COLLATION,
                levels_up: 0,
                location: None,
            }),
            resno: AttrNumber(n as i16 + 1),
            name: None,
            sort_group_ref: n as u32 + 1,
            origin_table: Oid(0),
            origin_column: AttrNumber(0),
            junk: false,
        });
        let clause = SortGroupClause {
            reference: 1,
            equality: Oid(0),
            ordering: Oid(0),
            descending,
            nulls_first: descending,
            hashable: true,
        };
        let aggref = Aggref {
            function,
            result_type: result,
            collation: COLLATION,
            input_collation: COLLATION,
            arg_types: args.to_vec(),
            direct_args: direct.into_iter().collect(),
            args: entries.collect(),
            order_by: if descending || within.is_some() { vec![clause.clone()] } else { vec![] },
            distinct: if distinct { vec![clause] } else { vec![] },
            filter: None,
            star: false,
            variadic: false,
            kind: if within.is_some() { AggregateKind::OrderedSet } else { AggregateKind::Normal },
            levels_up: 0,
            location: None,
        };
        aggregate(&aggref, &CompileContext::new(&self.catalog, &BuiltinTypes)).unwrap()
    }

    fn columns(&self, args: &[Oid], rows: &[Vec<&str>]) -> Vec<ArrayRef> {
        let cx = TypeContext::new(&BuiltinTypes, &self.settings);
        args.iter()
            .enumerate()
            .map(|(n, &ty)| {
                let desc = BuiltinTypes.type_desc(ty).unwrap();
                let mut builder = ColumnBuilder::new(desc.layout.unwrap(), rows.len());
                for row in rows {
                    let value = (row[n] != "\\N").then(|| text_in(&cx, &desc, row[n].as_bytes(), -1).unwrap());
                    builder.append_option(value.as_ref().map(Datum::as_ref)).unwrap();
                }
                builder.finish()
            })
            .collect()
    }

    fn print(&self, ty: Oid, array: &ArrayRef, row: usize) -> String {
        let desc = BuiltinTypes.type_desc(ty).unwrap();
        let Some(value) = value_at(array.as_ref(), desc.layout.unwrap(), row) else { return "\\N".into() };
        let mut out = Vec::new();
        text_out(&TypeContext::new(&BuiltinTypes, &self.settings), &desc, value, &mut out).unwrap();
        String::from_utf8(out).unwrap().replace('\\', "\\\\").replace('\n', "\\n")
    }
}

fn run(w: &World, plan: &AggregatePlan, args: &[Oid], rows: &[Vec<&str>], way: usize) -> SqlResult<ArrayRef> {
    let cx = w.cx();
    let mut accumulator = plan.create()?;
    match way {
        // All at once.
        0 => accumulator.update(&cx, &w.columns(args, rows), &vec![0; rows.len()], None, 1)?,
        // Row by row, as the second of three groups; the first is handed out before.
        1 => {
            for row in rows {
                accumulator.update(&cx, &w.columns(args, std::slice::from_ref(row)), &[1], None, 3)?;
            }
            accumulator.grow(3);
            accumulator.evaluate(&cx, Emit::First(1))?;
        }
        // As a window's growing frame: read after each row, which changes nothing.
        2 => {
            accumulator.push(&cx, &w.columns(args, &[]), 0..0)?;
            let columns = w.columns(args, rows);
            for row in 0..rows.len() {
                // What is read on the way may be an error of its own, as a sum out of range for a moment.
                let _ = accumulator.result(&cx);
                accumulator.push(&cx, &columns, row..row + 1)?;
            }
            let results = accumulator.result(&cx)?;
            let again = accumulator.results(&cx, 1)?;
            assert_eq!(&results, &again);
            return Ok(results);
        }
        // A frame that starts anew.
        3 => {
            let columns = w.columns(args, rows);
            accumulator.push(&cx, &columns, 0..rows.len())?;
            accumulator.reset();
            accumulator.push(&cx, &columns, 0..rows.len())?;
            return accumulator.result(&cx);
        }
        // Two halves, merged.
        _ => {
            let (first, second) = rows.split_at(rows.len() / 2);
            for half in [first, second] {
                let mut partial = plan.create()?;
                partial.update(&cx, &w.columns(args, half), &vec![0; half.len()], None, 1)?;
                accumulator.merge(&cx, &partial.state(Emit::All)?, &[0], 1)?;
            }
        }
    }
    accumulator.grow(1);
    accumulator.evaluate(&cx, Emit::All)
}

#[test]
fn aggregates_answer_as_postgresql_does() {
    let w = World { catalog: Catalog::default(), settings: FormatSettings::default(), session: NoSession::default() };
    let text = include_str!("../testdata/aggregates/all.txt");
    let mut wrong = Vec::new();
    let mut head: Option<(AggregatePlan, Oid, Vec<Oid>, &str)> = None;
    for (n, line) in text.lines().enumerate() {
        if let Some(new) = line.strip_prefix("@ ") {
            let mut parts = new.split(" / ");
            let words: Vec<&str> = parts.next().unwrap().split_whitespace().collect();
            let options: Vec<&str> = parts.collect();
            let args: Vec<Oid> = words[3..].iter().map(|t| type_oid(t)).collect();
            let result = type_oid(words[2]);
            let function = Oid(words[0].parse().unwrap());
            let plan = w.plan(function, result, &args, &options);
            head = Some((plan, result, args, new));
        } else if let (Some((input, expected)), Some((plan, result, args, name))) = (line.split_once(" => "), &head) {
            let rows: Vec<Vec<&str>> =
                if input == "nothing" { vec![] } else { input.split(';').map(|r| r.split('\t').collect()).collect() };
            for way in 0..if plan.exact_merge() { 5 } else { 4 } {
                let got = match run(&w, plan, args, &rows, way) {
                    Ok(array) => w.print(*result, &array, 0),
                    Err(e) => format!("!{} {}", e.state.code(), e.message),
                };
                if got != expected {
                    wrong.push(format!("{}: {name}({input}) way {way}: expected {expected}, got {got}", n + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
