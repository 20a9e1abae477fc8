//! What statements become: the analysed tree beside the one that PostgreSQL stores for a view of the same statement.
//!
//! `testdata/record all` has packed the stored trees, with the catalogs whose OIDs they hold: those of the cases that can
//! be views, and of the system's own views.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::format_push_string)]

mod session;

use std::fmt::Write;

use session::Session;
use stegodon_nodes::levels::walk_query_mut;
use stegodon_nodes::query::RangeTableKind;
use stegodon_nodes::{Expr, Query, reader};
use stegodon_sql::Statement;
use stegodon_sql::rewrite::flatten_join_vars;

/// Leaves out what a stored tree does not keep, or keeps otherwise.
fn comparable(q: &mut Query) {
    flatten_join_vars(q).unwrap();
    tidy(q);
    walk_query_mut(q, 0, 0, &mut |e, _| {
        match e {
            Expr::Var(v) => v.location = None,
            Expr::Const(c) => c.location = None,
            Expr::Param(p) => p.location = None,
            Expr::Aggref(a) => a.location = None,
            Expr::Func(f) => f.location = None,
            Expr::Op(o) | Expr::Distinct(o) | Expr::NullIf(o) => o.location = None,
            Expr::ScalarArrayOp(o) => o.location = None,
            Expr::Bool(b) => b.location = None,
            Expr::SubLink(s) => {
                s.location = None;
                tidy(&mut s.query);
            }
            Expr::Array(a) => a.location = None,
            Expr::Row(r) => r.location = None,
            _ => {}
        }
        Ok(true)
    })
    .unwrap();
}

fn tidy(q: &mut Query) {
    q.range_table.retain(|r| !matches!(r.kind, RangeTableKind::Group { .. } | RangeTableKind::Result));
    for r in &mut q.range_table {
        r.selected_columns.sort();
        if let RangeTableKind::Join { alias_vars, .. } = &mut r.kind {
            alias_vars.clear();
        }
        if let RangeTableKind::Function { functions, .. } = &mut r.kind {
            for f in functions {
                f.columns.clear();
            }
        }
        if let RangeTableKind::Subquery(s) = &mut r.kind {
            tidy(s);
        }
    }
    for c in &mut q.ctes {
        tidy(&mut c.query);
    }
}

#[test]
fn trees_are_those_that_postgresql_stores() {
    let session = Session::new();
    let mut files: Vec<_> =
        std::fs::read_dir(session::recorded().join("trees")).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    let mut failures = String::new();
    let (mut same, mut differ, mut skipped) = (0, 0, 0);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let (sql, tree) = text.split_once("\n----\n").unwrap();
        let analyzed = match session.analyze(sql) {
            Ok(a) => a,
            Err(e) => {
                let refused = e.message.contains("not supported by Stegodon") || e.state.code() == "25006";
                if refused {
                    println!("refused: {}", e.message);
                } else {
                    writeln!(failures, "== {sql}\n{e}").unwrap();
                }
                skipped += 1;
                continue;
            }
        };
        let Statement::Query(mut ours) = analyzed.statement else { panic!("{sql}") };
        let mut theirs = match reader::read_view_query(tree, &*session.view.catalog) {
            Ok(q) => q,
            Err(e) => {
                println!("{sql}: {e}");
                skipped += 1;
                continue;
            }
        };
        comparable(&mut ours);
        comparable(&mut theirs);
        // Where elements must be checked, a literal is a cast of elements here.
        if sql.contains("}'::posint[]") {
            skipped += 1;
            continue;
        }
        if *ours == theirs {
            same += 1;
            continue;
        }
        differ += 1;
        writeln!(failures, "== {sql}").unwrap();
        let (a, b) = (format!("{ours:#?}"), format!("{theirs:#?}"));
        let (a, b): (Vec<&str>, Vec<&str>) = (a.lines().collect(), b.lines().collect());
        let start = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
        let end = a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| x == y).count();
        let (from, a_to, b_to) = (start.saturating_sub(6), a.len().saturating_sub(end), b.len().saturating_sub(end));
        for l in a.get(from..start).unwrap_or_default() {
            writeln!(failures, "  {l}").unwrap();
        }
        for l in a.get(start..a_to.max(start + 1)).unwrap_or_default().iter().take(25) {
            writeln!(failures, "- {l}").unwrap();
        }
        for l in b.get(start..b_to.max(start + 1)).unwrap_or_default().iter().take(25) {
            writeln!(failures, "+ {l}").unwrap();
        }
    }
    println!("{same} same, {differ} differ, {skipped} skipped");
    assert!(failures.is_empty(), "{failures}");
}
