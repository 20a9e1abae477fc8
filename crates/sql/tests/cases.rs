//! What statements mean: their parameters' and columns' types, or their error, as PostgreSQL 18 says.
//!
//! `testdata/*.txt` holds the cases; `testdata/record` wrote what is expected, by asking a server. A case that we refuse
//! although PostgreSQL does not is marked with a line `# unsupported`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::format_push_string)]

mod session;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use session::Session;
use stegodon_sql::{Statement, result_columns};

fn describe(session: &Session, sql: &str) -> String {
    let catalog = &session.view.catalog;
    let analyzed = match session.analyze(sql) {
        Ok(a) => a,
        Err(e) => {
            let mut out = e.state.code().to_owned();
            if let Some(p) = e.position {
                write!(out, " at {p}").unwrap();
            }
            write!(out, ": {}", e.message).unwrap();
            if let Some(d) = e.detail {
                write!(out, "\n  detail: {d}").unwrap();
            }
            if let Some(h) = e.hint {
                write!(out, "\n  hint: {h}").unwrap();
            }
            return out;
        }
    };
    let mut lines = Vec::new();
    for (i, t) in analyzed.param_types.iter().enumerate() {
        lines.push(format!("${} {}", i + 1, session.view.format_type(*t, None)));
    }
    if let Statement::Query(q) = &analyzed.statement {
        for c in result_columns(q, catalog) {
            let mut line = format!("{} {}", c.name, session.view.format_type(c.type_oid, Some(c.typmod)));
            if c.table.is_valid() {
                let rel = catalog.relation(c.table).unwrap();
                let ns = &catalog.namespace(rel.namespace).unwrap().name;
                let shown = session.view.path.namespaces.contains(&rel.namespace);
                let ns = if shown { String::new() } else { format!("{ns}.") };
                write!(line, " = {ns}{}.{}", rel.name, c.column).unwrap();
            }
            lines.push(line);
        }
    }
    if lines.is_empty() { "(none)".to_owned() } else { lines.join("\n") }
}

#[test]
fn statements_mean_what_postgresql_says() {
    let session = Session::new();
    let mut files: Vec<PathBuf> = std::fs::read_dir(Path::new("testdata"))
        .unwrap()
        .map(|f| f.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "txt"))
        .collect();
    files.sort();
    let (mut cases, mut refused) = (0, 0);
    let mut failures = String::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for case in text.split("\n\n") {
            let case = case.trim_matches('\n');
            let Some((head, expected)) = case.split_once("\n----\n") else { continue };
            let sql: Vec<&str> = head.lines().filter(|l| !l.starts_with('#')).collect();
            let may_refuse = head.lines().any(|l| l == "# unsupported");
            let sql = sql.join("\n");
            cases += 1;
            let got = describe(&session, &sql);
            // What would write is refused when it is run: what it would return is not described.
            let writes = session.analyze(&sql).is_ok_and(|a| matches!(a.statement, Statement::Write(_)));
            let is_refused = got.contains("is not supported by Stegodon yet") || got.starts_with("25006") || writes;
            refused += usize::from(is_refused);
            if got != expected && !(may_refuse && is_refused) {
                let name = file.file_name().unwrap().to_string_lossy();
                writeln!(failures, "== {name}: {sql}\n-- expected\n{expected}\n-- got\n{got}\n").unwrap();
            }
        }
    }
    println!("{cases} cases, {refused} refused");
    let count = failures.matches("\n-- expected\n").count();
    assert!(failures.is_empty(), "{count} of {cases} failed\n{failures}");
}
