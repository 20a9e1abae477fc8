//! SELECT, VALUES and WITH.

use pg_query::{NodeEnum, protobuf as pb};
use stegodon_format::ids::Oid;
use stegodon_nodes::query::{CommonTableExpr, Query, RangeTableKind};
use stegodon_nodes::{Expr, expr::TargetEntry};
use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::context::{Analyzer, ExprKind, loc};
use crate::from::plain_entry;
use crate::names::string_list;

impl Analyzer<'_> {
    /// A subquery: a level of its own.
    pub(crate) fn subquery(&mut self, s: &pb::SelectStmt, resolve_unknowns: bool) -> SqlResult<Query> {
        let (query, _) = self.with_level(|a| {
            a.state.resolve_unknowns = resolve_unknowns;
            a.select_stmt(s)
        })?;
        Ok(query)
    }

    /// A SELECT of any sort, in the innermost level, which is its own.
    pub(crate) fn select_stmt(&mut self, s: &pb::SelectStmt) -> SqlResult<Query> {
        if let Some(into) = &s.into_clause {
            return self.unsupported(into.rel.as_ref().and_then(|r| loc(r.location)), "SELECT INTO");
        }
        let mut query = if !s.values_lists.is_empty() {
            self.values_stmt(s)?
        } else if pb::SetOperation::try_from(s.op) == Ok(pb::SetOperation::SetopNone) {
            self.plain_select(s)?
        } else {
            self.set_operation_stmt(s)?
        };
        if let Some(what) = lock_strength(s) {
            self.check_locking(s, &query, what)?;
            return Err(SqlError::new(
                SqlState::ReadOnlySqlTransaction,
                format!("cannot execute SELECT {what} in a read-only transaction"),
            ));
        }
        self.finish_query(&mut query)?;
        Ok(query)
    }

    /// What a locking clause cannot lock is said before that nothing can be locked here.
    fn check_locking(&self, s: &pb::SelectStmt, query: &Query, what: &str) -> SqlResult<()> {
        let clause = if query.set_operations.is_some() {
            "UNION/INTERSECT/EXCEPT"
        } else if !query.distinct.is_empty() {
            "DISTINCT clause"
        } else if !query.group_by.is_empty() || !query.grouping_sets.is_empty() {
            "GROUP BY clause"
        } else if query.having.is_some() {
            "HAVING clause"
        } else if self.state.has_aggregates {
            "aggregate functions"
        } else if self.state.has_window_functions {
            "window functions"
        } else if self.state.has_target_srfs {
            "set-returning functions in the target list"
        } else {
            ""
        };
        if !clause.is_empty() {
            let message = format!("{what} is not allowed with {clause}");
            return Err(SqlError::new(SqlState::FeatureNotSupported, message));
        }
        for node in &s.locking_clause {
            let Some(NodeEnum::LockingClause(l)) = node.node.as_ref() else { continue };
            for rel in &l.locked_rels {
                let Some(NodeEnum::RangeVar(rv)) = rel.node.as_ref() else { continue };
                let location = loc(rv.location);
                if !rv.schemaname.is_empty() {
                    let message = format!("{what} must specify unqualified relation names");
                    return Err(self.error_at(location, SqlState::SyntaxError, message));
                }
                if !self.state.namespace.iter().any(|i| i.rel_visible && i.name == rv.relname) {
                    let message = format!("relation \"{}\" in {what} clause not found in FROM clause", rv.relname);
                    return Err(self.error_at(location, SqlState::UndefinedTable, message));
                }
            }
        }
        Ok(())
    }

    /// Moves what the level has gathered into its query, assigns collations, and checks grouping.
    fn finish_query(&mut self, query: &mut Query) -> SqlResult<()> {
        let state = &mut self.state;
        query.from.items = std::mem::take(&mut state.from.items);
        query.has_aggregates = state.has_aggregates;
        query.has_window_functions = state.has_window_functions;
        query.has_target_srfs = state.has_target_srfs;
        query.has_sublinks = state.has_sublinks;
        query.ctes = std::mem::take(&mut state.ctes);
        self.assign_query_collations(query)?;
        query.range_table = std::mem::take(&mut self.state.rtable);
        let grouped = query.has_aggregates
            || !query.group_by.is_empty()
            || !query.grouping_sets.is_empty()
            || query.having.is_some();
        self.check_recursive_term(query)?;
        if grouped {
            self.resolve_grouping_funcs(query)?;
            self.check_grouping(query)?;
        }
        Ok(())
    }

    fn plain_select(&mut self, s: &pb::SelectStmt) -> SqlResult<Query> {
        let mut query = Query::default();
        self.with_clause(s.with_clause.as_ref())?;
        for node in &s.window_clause {
            match node.node.as_ref() {
                Some(NodeEnum::WindowDef(w)) => self.state.window_defs.push(w.as_ref().clone()),
                _ => return self.unsupported(None, "this WINDOW clause"),
            }
        }
        self.from_clause(&s.from_clause)?;
        let mut targets = self.target_list(&s.target_list)?;
        self.mark_origins(&mut targets);
        query.from.quals = self.where_clause(s.where_clause.as_deref(), ExprKind::Where)?;
        query.having = self.where_clause(s.having_clause.as_deref(), ExprKind::Having)?;
        query.order_by = self.sort_clause(&s.sort_clause, &mut targets, ExprKind::OrderBy, false)?;
        (query.group_by, query.grouping_sets) =
            self.group_clause(&s.group_clause, s.group_distinct, &mut targets, &query.order_by)?;
        query.group_distinct = s.group_distinct;
        match s.distinct_clause.as_slice() {
            [] => {}
            [first] if first.node.is_none() => {
                query.distinct = self.distinct_clause(&mut targets, &query.order_by, false)?;
            }
            list => {
                query.distinct = self.distinct_on_clause(list, &mut targets, &query.order_by)?;
                query.distinct_on = true;
            }
        }
        self.limits(s, &mut query)?;
        query.windows = self.window_clauses(&mut targets)?;
        if self.state.resolve_unknowns {
            self.resolve_unknown_targets(&mut targets)?;
        }
        check_target_count(&targets)?;
        query.targets = targets;
        Ok(query)
    }

    pub(crate) fn limits(&mut self, s: &pb::SelectStmt, query: &mut Query) -> SqlResult<()> {
        let ties = pb::LimitOption::try_from(s.limit_option) == Ok(pb::LimitOption::WithTies);
        query.offset = self.limit_clause(s.limit_offset.as_deref(), ExprKind::Offset, false)?;
        query.limit = self.limit_clause(s.limit_count.as_deref(), ExprKind::Limit, ties)?;
        query.with_ties = ties;
        Ok(())
    }

    fn values_stmt(&mut self, s: &pb::SelectStmt) -> SqlResult<Query> {
        let mut query = Query::default();
        self.with_clause(s.with_clause.as_ref())?;
        let mut rows: Vec<Vec<Expr>> = Vec::with_capacity(s.values_lists.len());
        for node in &s.values_lists {
            let Some(NodeEnum::List(list)) = node.node.as_ref() else {
                return self.unsupported(None, "this VALUES list");
            };
            let row = self.with_kind(ExprKind::Values, |a| a.expr_list_with_stars(&list.items))?;
            if rows.first().is_some_and(|first| first.len() != row.len()) {
                return Err(self.error_at(
                    row.iter().filter_map(Expr::location).min(),
                    SqlState::SyntaxError,
                    "VALUES lists must all be the same length",
                ));
            }
            rows.push(row);
        }
        let width = rows.first().map_or(0, Vec::len);
        let mut types: Vec<(Oid, i32, Oid)> = Vec::with_capacity(width);
        // By columns: their common type, then the rows again.
        let mut columns: Vec<Vec<Expr>> = (0..width).map(|_| Vec::with_capacity(rows.len())).collect();
        let height = rows.len();
        for row in rows {
            for (column, e) in columns.iter_mut().zip(row) {
                column.push(e);
            }
        }
        for column in &mut columns {
            let ty = self.select_common_type(column, Some("VALUES"))?;
            let mut coerced = Vec::with_capacity(height);
            for e in std::mem::take(column) {
                coerced.push(self.coerce_to_common(e, ty, "VALUES")?);
            }
            let typmod = self.select_common_typmod(&coerced, ty);
            let mut refs: Vec<&mut Expr> = coerced.iter_mut().collect();
            let collation = self.common_collation(&mut refs, true)?;
            types.push((ty, typmod, collation));
            *column = coerced;
        }
        let mut rows: Vec<Vec<Expr>> = (0..height).map(|_| Vec::with_capacity(width)).collect();
        for column in columns {
            for (row, e) in rows.iter_mut().zip(column) {
                row.push(e);
            }
        }
        let names: Vec<String> = (1..=width).map(|i| format!("column{i}")).collect();
        let kind = RangeTableKind::Values { rows, types: types.clone() };
        let mut item = self.add_entry(plain_entry(kind, "*VALUES*".to_owned(), false, names), &types, Oid::INVALID);
        self.state.from.items.push(item.tree);
        item.item.rel_visible = true;
        let mut targets = Vec::new();
        for c in &item.item.columns {
            crate::target::push_target(&mut targets, c.expr.clone(), Some(c.name.clone()));
        }
        self.state.namespace.push(item.item);
        query.order_by = self.sort_clause(&s.sort_clause, &mut targets, ExprKind::OrderBy, false)?;
        self.limits(s, &mut query)?;
        query.targets = targets;
        Ok(query)
    }

    /// WITH.
    pub(crate) fn with_clause(&mut self, with: Option<&pb::WithClause>) -> SqlResult<()> {
        let Some(with) = with else { return Ok(()) };
        let mut list: Vec<&pb::CommonTableExpr> = Vec::new();
        for node in &with.ctes {
            match node.node.as_ref() {
                Some(NodeEnum::CommonTableExpr(c)) => {
                    if list.iter().any(|o| o.ctename == c.ctename) {
                        return Err(self.error_at(
                            loc(c.location),
                            SqlState::DuplicateAlias,
                            format!("WITH query name \"{}\" specified more than once", c.ctename),
                        ));
                    }
                    list.push(c);
                }
                _ => return self.unsupported(loc(with.location), "this WITH item"),
            }
        }
        let mut texts = Vec::new();
        if with.recursive {
            texts = list.iter().map(|c| format!("{:?}", c.ctequery)).collect();
            let order = Self::with_order(&texts, &list).map_err(|i| {
                let message = "mutual recursion between WITH items is not implemented";
                let location = list.get(i).and_then(|c| loc(c.location));
                self.error_at(location, SqlState::FeatureNotSupported, message)
            })?;
            list = order.iter().filter_map(|&i| list.get(i).copied()).collect();
            texts = order.iter().filter_map(|&i| texts.get(i).cloned()).collect();
        } else {
            self.state.future_ctes = list.iter().map(|c| c.ctename.clone()).collect();
        }
        for (i, c) in list.iter().enumerate() {
            let location = loc(c.location);
            if c.search_clause.is_some() || c.cycle_clause.is_some() {
                return self.unsupported(location, "SEARCH and CYCLE");
            }
            let Some(node) = c.ctequery.as_ref().and_then(|n| n.node.as_ref()) else {
                return Err(SqlError::internal("a WITH item without query"));
            };
            let given = string_list(&c.aliascolnames)?;
            let recursive = texts.get(i).is_some_and(|t| crate::recursion::mentions(t, &c.ctename));
            if recursive {
                let NodeEnum::SelectStmt(select) = node else {
                    let message =
                        format!("recursive query \"{}\" must not contain data-modifying statements", c.ctename);
                    return Err(self.error_at(location, SqlState::InvalidRecursion, message));
                };
                self.check_recursive_form(&c.ctename, select, location)?;
                self.recursing.push(crate::recursion::Recursing {
                    name: c.ctename.clone(),
                    depth: self.outer.len(),
                    columns: given.clone(),
                    types: None,
                    references: 0,
                });
            }
            let query = match node {
                NodeEnum::SelectStmt(select) => {
                    self.with_kind(ExprKind::FromSubselect, |a| a.subquery(select, true))?
                }
                _ => self.modifying_with(&c.ctename, node, location)?,
            };
            let own: Vec<String> = query.outputs().map(|t| t.name.clone().unwrap_or_default()).collect();
            let mut is_recursive = false;
            if recursive && let Some(r) = self.recursing.pop() {
                self.check_recursive_columns(&r, &query)?;
                is_recursive = r.references > 0;
            }
            if given.len() > own.len() {
                return Err(self.error_at(
                    location,
                    SqlState::InvalidColumnReference,
                    format!(
                        "WITH query \"{}\" has {} columns available but {} columns specified",
                        c.ctename,
                        own.len(),
                        given.len()
                    ),
                ));
            }
            let mut columns = given;
            columns.extend(own.into_iter().skip(columns.len()));
            let materialized = match pb::CteMaterialize::try_from(c.ctematerialized) {
                Ok(pb::CteMaterialize::Always) => Some(true),
                Ok(pb::CteMaterialize::Never) => Some(false),
                Ok(pb::CteMaterialize::Default) => None,
                _ => return self.unsupported(location, "this MATERIALIZED option"),
            };
            self.state.ctes.push(CommonTableExpr {
                name: c.ctename.clone(),
                query,
                materialized,
                recursive: is_recursive,
                references: 0,
                columns,
            });
            self.state.future_ctes.retain(|n| *n != c.ctename);
        }
        Ok(())
    }
}

/// How the first locking clause is written, where there is one.
pub(crate) fn lock_strength(s: &pb::SelectStmt) -> Option<&'static str> {
    let Some(NodeEnum::LockingClause(l)) = s.locking_clause.first().and_then(|n| n.node.as_ref()) else { return None };
    Some(match pb::LockClauseStrength::try_from(l.strength) {
        Ok(pb::LockClauseStrength::LcsForkeyshare) => "FOR KEY SHARE",
        Ok(pb::LockClauseStrength::LcsForshare) => "FOR SHARE",
        Ok(pb::LockClauseStrength::LcsFornokeyupdate) => "FOR NO KEY UPDATE",
        _ => "FOR UPDATE",
    })
}

pub(crate) fn check_target_count(targets: &[TargetEntry]) -> SqlResult<()> {
    const MAX_TARGETS: usize = 1664;
    if targets.len() > MAX_TARGETS {
        return Err(SqlError::new(
            SqlState::TooManyColumns,
            format!("target lists can have at most {MAX_TARGETS} entries"),
        ));
    }
    Ok(())
}
