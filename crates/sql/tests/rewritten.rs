//! What rewriting makes of virtual generated columns, shown as something like SQL.
//!
//! `testdata/rewrite/*.txt` holds statements, `----`, and what they become: our form, so PostgreSQL is not its judge (that
//! the answers are PostgreSQL's is tested over `fixtures/fresh.sql`). `REWRITE=1` writes what is found.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::format_push_string)]

mod session;

use session::Session;
use stegodon_nodes::expr::{Var, VarSource};
use stegodon_nodes::query::{JoinTree, RangeTableKind, SetOperand, SetOperation};
use stegodon_nodes::{Expr, Query};
use stegodon_sql::{Statement, rewrite};

struct Shower<'a> {
    session: &'a Session,
    levels: Vec<&'a Query>,
}

impl<'a> Shower<'a> {
    fn var(&self, v: &Var) -> String {
        let VarSource::Relation(n) = v.source else { panic!() };
        let query = self.levels[self.levels.len() - 1 - v.levels_up as usize];
        let entry = &query.range_table[n - 1];
        let column = match v.attno.0 {
            0 => "*".to_owned(),
            n if n < 0 => format!("system{n}"),
            n => entry.columns.get(n as usize - 1).cloned().unwrap_or_else(|| panic!("{v:?} of {entry:?}")),
        };
        format!("{}{}.{column}", entry.name, if v.levels_up > 0 { "^" } else { "" })
    }

    fn list<'e>(&mut self, exprs: impl IntoIterator<Item = &'e Expr>) -> String
    where
        'a: 'e,
        'e: 'a,
    {
        let shown: Vec<String> = exprs.into_iter().map(|e| self.expr(e)).collect();
        shown.join(", ")
    }

    fn expr(&mut self, e: &'a Expr) -> String {
        let name = |oid| self.session.view.format_type(oid, None);
        match e {
            Expr::Var(v) => self.var(v),
            Expr::Const(c) => match &c.value {
                None => format!("null::{}", name(c.type_oid)),
                Some(_) => format!("const::{}", name(c.type_oid)),
            },
            Expr::Row(r) => {
                let ty = name(r.row_type);
                format!("row({})::{ty}", self.list(&r.args))
            }
            Expr::SubLink(s) => format!("({})", self.query(&s.query)),
            Expr::Collate(c) => format!("{} collate", self.expr(&c.arg)),
            other => {
                let mut parts = Vec::new();
                let _ = other.try_each_child::<()>(&mut |c| {
                    parts.push(c);
                    Ok(())
                });
                let ty = name(other.type_oid());
                let kind = format!("{other:?}");
                let kind = kind.split(['(', ' ']).next().unwrap_or_default().to_lowercase();
                format!("{kind}({})::{ty}", self.list(parts))
            }
        }
    }

    fn tree(&mut self, t: &'a JoinTree) -> String {
        match t {
            JoinTree::Relation(n) => self.entry(*n),
            JoinTree::From(f) => f.items.iter().map(|i| self.tree(i)).collect::<Vec<_>>().join(", "),
            JoinTree::Join(j) => {
                let kind = format!("{:?}", j.kind).to_lowercase();
                let on = j.quals.as_ref().map_or_else(String::new, |q| format!(" on {}", self.expr(q)));
                format!("{} {kind} join {}{on}", self.tree(&j.left), self.tree(&j.right))
            }
        }
    }

    fn entry(&mut self, n: usize) -> String {
        let query = self.levels[self.levels.len() - 1];
        let entry = &query.range_table[n - 1];
        let shown = match &entry.kind {
            RangeTableKind::Subquery(q) => format!("({})", self.query(q)),
            RangeTableKind::Cte { name, levels_up, .. } => format!("with {name}{}", "^".repeat(*levels_up as usize)),
            RangeTableKind::Values { rows, .. } => {
                let rows: Vec<String> = rows.iter().map(|r| format!("({})", self.list(r))).collect();
                format!("values {}", rows.join(", "))
            }
            RangeTableKind::Relation { .. } => return entry.name.clone(),
            RangeTableKind::Function { .. } => "function".to_owned(),
            other => panic!("{other:?}"),
        };
        format!("{shown} {}", entry.name)
    }

    fn operand(&mut self, o: &'a SetOperand) -> String {
        match o {
            SetOperand::Relation(n) => self.entry(*n),
            SetOperand::Operation(o) => format!("({})", self.operation(o)),
        }
    }

    fn operation(&mut self, o: &'a SetOperation) -> String {
        let kind = format!("{:?}", o.kind).to_lowercase();
        let all = if o.all { " all" } else { "" };
        format!("{} {kind}{all} {}", self.operand(&o.left), self.operand(&o.right))
    }

    fn query(&mut self, q: &'a Query) -> String {
        self.levels.push(q);
        let mut out = String::new();
        for c in &q.ctes {
            out += &format!("with {} as ({}) ", c.name, self.query(&c.query));
        }
        out += &format!("select {}", self.list(q.targets.iter().map(|t| &t.expr)));
        if let Some(o) = &q.set_operations {
            out += &format!(" from {}", self.operation(o));
        } else if !q.from.items.is_empty() {
            out += &format!(" from {}", q.from.items.iter().map(|i| self.tree(i)).collect::<Vec<_>>().join(", "));
        }
        if let Some(w) = &q.from.quals {
            out += &format!(" where {}", self.expr(w));
        }
        self.levels.pop();
        out
    }
}

#[test]
fn virtual_generated_columns_are_expanded() {
    let session = Session::new();
    for file in ["expand"] {
        let path = format!("testdata/rewrite/{file}.txt");
        let text = std::fs::read_to_string(&path).unwrap();
        let mut found = String::new();
        for case in text.split("\n\n") {
            let sql = case.trim_matches('\n').split("\n----\n").next().unwrap();
            let Statement::Query(query) = session.analyze(sql).unwrap().statement else { panic!("{sql}") };
            let shown = match rewrite(*query, &session.context()) {
                Ok(r) => Shower { session: &session, levels: Vec::new() }.query(&r.query),
                Err(e) => e.to_string(),
            };
            found += &format!("{sql}\n----\n{shown}\n\n");
        }
        let found = format!("{}\n", found.trim_end());
        if std::env::var_os("REWRITE").is_some() {
            std::fs::write(&path, &found).unwrap();
        }
        assert_eq!(found, text.trim_end().to_owned() + "\n", "{file}");
    }
}
