//! Rewriting: views become the queries that they stand for, and what must not be read is refused.
//!
//! ```text
//!   range table entry of a view   ->  subquery: the rule's query, itself rewritten
//!   its privileges                ->  Access { view, who asks, columns }
//!   inside the rule               ->  checked as the view's owner, unless the view is security_invoker
//! ```
//!
//! Also replaced here: Vars of a stored query that point at a join's own entry, which analysis never makes, virtual
//! generated columns (`expand`), and subscripts of jsonb.

use stegodon_catalog::Catalog;
use stegodon_catalog::rows::Relation;
use stegodon_format::ids::{AttrNumber, Oid};
use stegodon_nodes::expr::{CoercionForm, RowExpr, VarSource};
use stegodon_nodes::levels::{raise_levels, walk_query_mut};
use stegodon_nodes::query::{JoinTree, RangeTableKind};
use stegodon_nodes::{Expr, Query, reader};
use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::context::{AnalyzeContext, Analyzer, ParamTypes, STACK_BYTES, STACK_RED_ZONE_BYTES};
use crate::expand::expand;
use crate::jsonb_path::replace_jsonb_subscripts;
use crate::oids;

/// One relation that a query reads, and on whose behalf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The relation, view or not.
    pub relation: Oid,
    /// The role whose privileges count; `None` for the session's user.
    pub check_as_user: Option<Oid>,
    /// The columns read; 0 the whole row.
    pub columns: Vec<AttrNumber>,
    /// Whether SELECT is needed at all.
    pub requires_select: bool,
}

/// A query ready to be planned.
#[derive(Clone, Debug, PartialEq)]
pub struct Rewritten {
    /// The query; no view is left in it.
    pub query: Query,
    /// Everything that it reads: for the check of privileges, and to know which changes of the catalog concern it.
    pub accesses: Vec<Access>,
}

/// Rewrites a query.
pub fn rewrite(query: Query, cx: &AnalyzeContext<'_>) -> SqlResult<Rewritten> {
    let mut rewriter =
        Rewriter { cx: *cx, catalog: cx.catalog, user: cx.user, accesses: Vec::new(), active: Vec::new() };
    let mut query = query;
    rewriter.query(&mut query)?;
    replace_jsonb_subscripts(&mut query, cx.catalog)?;
    Ok(Rewritten { query, accesses: rewriter.accesses })
}

struct Rewriter<'a> {
    cx: AnalyzeContext<'a>,
    catalog: &'a Catalog,
    user: Oid,
    accesses: Vec<Access>,
    /// The views being expanded.
    active: Vec<Oid>,
}

impl Rewriter<'_> {
    fn query(&mut self, query: &mut Query) -> SqlResult<()> {
        stacker::maybe_grow(STACK_RED_ZONE_BYTES, STACK_BYTES, || self.query_here(query))
    }

    fn query_here(&mut self, query: &mut Query) -> SqlResult<()> {
        flatten_join_vars(query)?;
        let used = used_relations(query);
        for (i, entry) in query.range_table.iter_mut().enumerate() {
            match &mut entry.kind {
                RangeTableKind::Subquery(q) => self.query(q)?,
                RangeTableKind::Relation { relation, .. } => {
                    // Queries stored before 16 carry the view's own entries, which nothing reads.
                    if !used.contains(&(i + 1)) {
                        continue;
                    }
                    let relation = *relation;
                    self.accesses.push(Access {
                        relation,
                        check_as_user: entry.check_as_user,
                        columns: entry.selected_columns.clone(),
                        requires_select: entry.requires_select,
                    });
                    let Some(rel) = self.catalog.relation(relation) else {
                        return Err(SqlError::internal(format_args!("relation {relation} has gone")));
                    };
                    self.check_readable(rel, entry.check_as_user)?;
                    if rel.kind == b'v' {
                        let expanded = self.view(rel)?;
                        entry.security_barrier = option(rel, "security_barrier");
                        entry.kind = RangeTableKind::Subquery(Box::new(expanded));
                    }
                }
                RangeTableKind::Function { functions, .. } => {
                    // A stored entry keeps the columns only where they were written.
                    for f in functions.iter_mut().filter(|f| f.columns.is_empty()) {
                        let mut analyzer = Analyzer::new(self.cx, "", ParamTypes::default());
                        f.columns = analyzer.function_columns(&f.call, &entry.name, &[], None)?;
                    }
                }
                _ => {}
            }
        }
        for cte in &mut query.ctes {
            self.query(&mut cte.query)?;
        }
        let mut exprs: SqlResult<()> = Ok(());
        let _ = query.try_each_expr_mut::<()>(&mut |e| {
            if exprs.is_ok() {
                exprs = self.sublinks(e);
            }
            Ok(())
        });
        exprs?;
        expand(query, self.catalog)
    }

    fn sublinks(&mut self, e: &mut Expr) -> SqlResult<()> {
        stacker::maybe_grow(STACK_RED_ZONE_BYTES, STACK_BYTES, || {
            if let Expr::SubLink(s) = e {
                self.query(&mut s.query)?;
            }
            e.try_each_child_mut(&mut |c| self.sublinks(c))
        })
    }

    fn check_readable(&self, rel: &Relation, check_as_user: Option<Oid>) -> SqlResult<()> {
        if rel.row_security {
            let user = check_as_user.unwrap_or(self.user);
            let role = self.catalog.role(user);
            let exempt = role.is_some_and(|r| r.superuser || r.bypass_row_security)
                || (rel.owner == user && !rel.force_row_security);
            if !exempt {
                return Err(SqlError::unsupported(format_args!("row security (table \"{}\")", rel.name)));
            }
        }
        match rel.kind {
            b'f' => Err(SqlError::unsupported(format_args!("foreign table \"{}\"", rel.name))),
            b'm' if !rel.populated => Err(SqlError::new(
                SqlState::ObjectNotInPrerequisiteState,
                format!("materialized view \"{}\" has not been populated", rel.name),
            )
            .hint("Use the REFRESH MATERIALIZED VIEW command.")),
            _ => Ok(()),
        }
    }

    fn view(&mut self, rel: &Relation) -> SqlResult<Query> {
        if self.active.contains(&rel.oid) {
            return Err(SqlError::new(
                SqlState::InvalidObjectDefinition,
                format!("infinite recursion detected in rules for relation \"{}\"", rel.name),
            ));
        }
        let mut rules = self.catalog.rules(rel.oid).iter().filter(|r| r.event == b'1' && r.instead);
        let (Some(rule), None) = (rules.next(), rules.next()) else {
            return Err(SqlError::internal(format_args!("view \"{}\" has not one rule", rel.name)));
        };
        let mut query = reader::read_view_query(&rule.action, self.catalog)?;
        let owner = if option(rel, "security_invoker") { None } else { Some(rel.owner) };
        check_as(&mut query, owner)?;
        self.active.push(rel.oid);
        let result = self.query(&mut query);
        self.active.pop();
        result.map(|()| query)
    }
}

/// A boolean option of a view.
fn option(rel: &Relation, name: &str) -> bool {
    rel.options.iter().any(|o| {
        o.split_once('=').is_some_and(|(n, v)| {
            n == name && matches!(v.to_ascii_lowercase().as_str(), "true" | "on" | "yes" | "1" | "t" | "y")
        })
    })
}

/// Whose privileges count for everything in a rule.
fn check_as(query: &mut Query, user: Option<Oid>) -> SqlResult<()> {
    for entry in &mut query.range_table {
        entry.check_as_user = user;
        if let RangeTableKind::Subquery(q) = &mut entry.kind {
            check_as(q, user)?;
        }
    }
    for cte in &mut query.ctes {
        check_as(&mut cte.query, user)?;
    }
    fn links(e: &mut Expr, user: Option<Oid>) -> SqlResult<()> {
        if let Expr::SubLink(s) = e {
            check_as(&mut s.query, user)?;
        }
        e.try_each_child_mut(&mut |c| links(c, user))
    }
    query.try_each_expr_mut(&mut |e| links(e, user))
}

/// The entries that FROM or a set operation reads.
fn used_relations(query: &Query) -> Vec<usize> {
    fn tree(t: &JoinTree, used: &mut Vec<usize>) {
        match t {
            JoinTree::Relation(i) => used.push(*i),
            JoinTree::From(f) => f.items.iter().for_each(|i| tree(i, used)),
            JoinTree::Join(j) => {
                tree(&j.left, used);
                tree(&j.right, used);
            }
        }
    }
    let mut used = Vec::new();
    query.from.items.iter().for_each(|i| tree(i, &mut used));
    used
}

/// Replaces Vars of join entries by what they stand for, here and in subqueries that refer to them.
pub fn flatten_join_vars(query: &mut Query) -> SqlResult<()> {
    let joins: Vec<Option<(Vec<Expr>, Vec<String>)>> = query
        .range_table
        .iter()
        .map(|e| match &e.kind {
            RangeTableKind::Join { alias_vars, .. } => Some((alias_vars.clone(), e.columns.clone())),
            _ => None,
        })
        .collect();
    if joins.iter().all(Option::is_none) {
        return Ok(());
    }
    walk_query_mut(query, 0, 0, &mut |e, level| {
        // What a join's column stands for may be another join's.
        for _ in 0..=joins.len() {
            let Expr::Var(v) = e else { return Ok(true) };
            let VarSource::Relation(rtindex) = v.source else { return Ok(true) };
            if v.levels_up != level {
                return Ok(true);
            }
            let Some(Some((vars, names))) = rtindex.checked_sub(1).and_then(|i| joins.get(i)) else {
                return Ok(true);
            };
            let mut new = match usize::try_from(v.attno.0) {
                Ok(0) => Expr::Row(RowExpr {
                    args: vars.clone(),
                    row_type: oids::RECORD,
                    names: names.clone(),
                    form: CoercionForm::ImplicitCast,
                    location: v.location,
                }),
                Ok(n) => vars.get(n - 1).cloned().ok_or_else(|| SqlError::internal("no such join column"))?,
                Err(_) => return Err(SqlError::internal("a system column of a join")),
            };
            raise_levels(&mut new, level)?;
            *e = new;
        }
        Ok(true)
    })
}
