//! Views become the queries that they stand for.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::format_push_string)]

mod session;

use session::Session;
use stegodon_format::ids::Oid;
use stegodon_nodes::levels::walk_query_mut;
use stegodon_nodes::query::RangeTableKind;
use stegodon_nodes::{Expr, Query};
use stegodon_sql::{Statement, rewrite};

/// Nothing is left of views, nor of Vars that point at joins.
fn check(q: &Query, what: &str) {
    for r in &q.range_table {
        match &r.kind {
            RangeTableKind::Relation { relkind: b'v', .. } if r.requires_select => panic!("{what}: a view is left"),
            RangeTableKind::Subquery(s) => check(s, what),
            RangeTableKind::Function { functions, .. } => {
                assert!(functions.iter().all(|f| !f.columns.is_empty()), "{what}: a function without columns");
            }
            _ => {}
        }
    }
    q.ctes.iter().for_each(|c| check(&c.query, what));
}

#[test]
fn every_view_of_the_system_is_expanded() {
    let session = Session::new();
    let catalog = &session.view.catalog;
    let mut views: Vec<(String, String)> = catalog
        .relations()
        .filter(|r| r.kind == b'v')
        .map(|r| (catalog.namespace(r.namespace).unwrap().name.clone(), r.name.clone()))
        .collect();
    views.sort();
    let mut refused = Vec::new();
    for (schema, name) in &views {
        let analyzed = session.analyze(&format!("select * from {schema}.{name}")).unwrap();
        let Statement::Query(query) = analyzed.statement else { panic!("{name}") };
        match rewrite(*query, &session.context()) {
            Ok(mut r) => {
                check(&r.query, name);
                assert!(!r.accesses.is_empty());
                walk_query_mut(&mut r.query, 0, 0, &mut |e, _| {
                    if let Expr::SubLink(s) = e {
                        check(&s.query, name);
                    }
                    Ok(true)
                })
                .unwrap();
            }
            Err(e) => {
                assert!(e.message.contains("not supported by Stegodon"), "{name}: {e}");
                refused.push(format!("{name}: {}", e.message));
            }
        }
    }
    println!("{} views, refused: {refused:#?}", views.len());
    assert!(refused.len() <= 4, "{refused:#?}");
}

#[test]
fn privileges_inside_a_view_are_its_owners() {
    let session = Session::new();
    let Statement::Query(query) = session.analyze("select a1 from tv").unwrap().statement else { panic!() };
    let rewritten = rewrite(*query, &session.context()).unwrap();
    let shown: Vec<_> = rewritten
        .accesses
        .iter()
        .map(|a| {
            let name = session.view.catalog.relation(a.relation).unwrap().name.clone();
            (name, a.check_as_user, a.columns.iter().map(|c| c.0).collect::<Vec<_>>())
        })
        .collect();
    let expected = vec![("tv".to_owned(), None, vec![2]), ("t".to_owned(), Some(Oid(10)), vec![1, 2, 4, 8])];
    assert_eq!(shown, expected);
}

#[test]
fn deep_statements_are_analysed_or_refused_on_a_small_stack() {
    let forms: [fn(usize) -> String; 8] = [
        |n| format!("select {}1{}", "(".repeat(n), ")".repeat(n)),
        |n| format!("select 1{}", "+1".repeat(n)),
        |n| format!("select {} true", "not ".repeat(n)),
        |n| format!("select {}1{}", "case when 1=1 and true then ".repeat(n), " end".repeat(n)),
        |n| format!("select 1, 2{}", " union all select 1, 2".repeat(n)),
        |n| format!("select {}1{}", "abs(".repeat(n), ")".repeat(n)),
        |n| format!("select {}1{}", "(select ".repeat(n), ")".repeat(n)),
        |n| format!("select * from t{}", " natural join t".repeat(n)),
    ];
    let session = Session::new();
    std::thread::scope(|scope| {
        let run = || {
            for form in forms {
                for n in [10, 100, 400, 1000, 1990] {
                    let sql = form(n);
                    match session.analyze(&sql) {
                        Ok(a) => drop(a.clone()),
                        Err(e) => {
                            let code = e.state.code();
                            let shown: String = sql.chars().take(40).collect();
                            assert!(matches!(code, "54001" | "42712" | "42702"), "{shown} {n}: {e}");
                        }
                    }
                }
            }
        };
        std::thread::Builder::new().stack_size(2 << 20).spawn_scoped(scope, run).unwrap().join().unwrap();
    });
}
