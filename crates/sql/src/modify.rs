//! INSERT, UPDATE and DELETE, as far as a directory that is only read needs them: their errors, and their parameters' types.
//!
//! PostgreSQL refuses a write in a read-only transaction when it would run it, after analysis and rewriting; so a name that
//! is not there or a value of the wrong type is said first. What is analysed here is dropped. What we do not know to
//! analyse ends as the refusal to write, which is where it would end anyway.

use pg_query::{NodeEnum, protobuf as pb};
use stegodon_catalog::rows::{Attribute, Relation};
use stegodon_format::ids::Oid;
use stegodon_nodes::expr::{CoercionForm, Location};
use stegodon_nodes::{Expr, Query};
use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::coerce::Context;
use crate::context::{Analyzer, ExprKind, NsItem, loc};
use crate::statement::Statement;

/// A value to assign; `None` for DEFAULT.
type Value = Option<Expr>;

/// What RETURNING lists.
type Returned = Vec<(String, Expr)>;

/// A column that is assigned to.
struct Assigned {
    attribute: Attribute,
    /// Whether an element or field of it is meant.
    part: bool,
    location: Location,
}

impl Analyzer<'_> {
    /// A statement that writes into one table.
    pub(crate) fn modify(&mut self, node: &NodeEnum) -> SqlResult<Statement> {
        let tag = match node {
            NodeEnum::InsertStmt(_) => "INSERT",
            NodeEnum::UpdateStmt(_) => "UPDATE",
            NodeEnum::DeleteStmt(_) => "DELETE",
            _ => "MERGE",
        };
        let checked = self.modification(node).and_then(|_| self.check_own_params());
        refuse_quietly(checked)?;
        Ok(Statement::Write(tag))
    }

    /// A statement that writes, as a WITH query: what it would return.
    pub(crate) fn modifying_with(&mut self, name: &str, node: &NodeEnum, location: Location) -> SqlResult<Query> {
        if !self.outer.is_empty() {
            let message = "WITH clause containing a data-modifying statement must be at the top level";
            return Err(self.error_at(location, SqlState::FeatureNotSupported, message));
        }
        self.writes.push((name.to_owned(), true));
        let (returned, _) = self.with_level(|a| a.modification(node))?;
        if let Some(write) = self.writes.last_mut() {
            write.1 = !returned.is_empty();
        }
        let mut query = Query::default();
        for (name, e) in returned {
            crate::target::push_target(&mut query.targets, e, Some(name));
        }
        Ok(query)
    }

    fn modification(&mut self, node: &NodeEnum) -> SqlResult<Returned> {
        let relation = match node {
            NodeEnum::InsertStmt(s) => s.relation.as_ref(),
            NodeEnum::UpdateStmt(s) => s.relation.as_ref(),
            NodeEnum::DeleteStmt(s) => s.relation.as_ref(),
            NodeEnum::MergeStmt(s) => s.relation.as_ref(),
            _ => None,
        };
        let Some(relation) = relation else { return Err(SqlError::internal("a write into no table")) };
        match node {
            NodeEnum::InsertStmt(s) => self.insert(s, relation),
            NodeEnum::UpdateStmt(s) => self.update(s, relation),
            NodeEnum::DeleteStmt(s) => self.delete(s, relation),
            _ => {
                self.find_relation(relation)?;
                self.unsupported(None, "MERGE")
            }
        }
    }

    /// A query whose rows would be stored: SELECT INTO, CREATE TABLE AS.
    pub(crate) fn stored_query(&mut self, node: &NodeEnum, tag: &'static str) -> SqlResult<Statement> {
        let analysed = match node {
            NodeEnum::SelectStmt(s) => {
                let mut plain = s.as_ref().clone();
                let mut leftmost = &mut plain;
                loop {
                    leftmost.into_clause = None;
                    match leftmost.larg.as_deref_mut() {
                        Some(l) => leftmost = l,
                        None => break,
                    }
                }
                self.select_statement(&NodeEnum::SelectStmt(Box::new(plain))).map(|_| ())
            }
            _ => Ok(()),
        };
        refuse_quietly(analysed)?;
        Ok(Statement::Write(tag))
    }

    fn check_own_params(&self) -> SqlResult<()> {
        if self.params.variable { self.check_params(&Query::default()) } else { Ok(()) }
    }

    fn insert(&mut self, s: &pb::InsertStmt, target: &pb::RangeVar) -> SqlResult<Returned> {
        self.with_clause(s.with_clause.as_ref())?;
        let rel = self.find_relation(target)?;
        let item = self.table_item(target)?.item;
        let columns = self.insert_columns(&s.cols, &rel)?;
        let rows = match s.select_stmt.as_ref().and_then(|n| n.node.as_ref()) {
            None => Vec::new(),
            Some(NodeEnum::SelectStmt(select)) => self.insert_rows(select)?,
            Some(_) => return self.unsupported(None, "this source of INSERT"),
        };
        let mut stored = vec![false; columns.len()];
        for row in rows {
            self.check_row_width(&row, &columns, !s.cols.is_empty())?;
            for ((value, column), stored) in row.into_iter().zip(&columns).zip(&mut stored) {
                *stored |= value.is_some();
                self.assign(value, column)?;
            }
        }
        let returned = self.returning(&s.returning_clause, &item)?;
        let overriding = pb::OverridingKind::try_from(s.r#override);
        for (column, stored) in columns.iter().zip(stored) {
            let a = &column.attribute;
            let forced = overriding == Ok(pb::OverridingKind::OverridingSystemValue);
            let ignored = overriding == Ok(pb::OverridingKind::OverridingUserValue);
            if stored && (a.generated != 0 || (a.identity == b'a' && !forced && !ignored)) {
                let e = SqlError::new(
                    SqlState::GeneratedAlways,
                    format!("cannot insert a non-DEFAULT value into column \"{}\"", a.name),
                );
                let e = e.detail(computed(a));
                return Err(if a.generated == 0 { e.hint("Use OVERRIDING SYSTEM VALUE to override.") } else { e });
            }
        }
        Ok(returned)
    }

    fn insert_columns(&self, nodes: &[pb::Node], rel: &Relation) -> SqlResult<Vec<Assigned>> {
        if nodes.is_empty() {
            let live = rel.attributes.iter().filter(|a| !a.dropped);
            return Ok(live.map(|a| Assigned { attribute: a.clone(), part: false, location: None }).collect());
        }
        let mut columns: Vec<Assigned> = Vec::new();
        for node in nodes {
            let Some(NodeEnum::ResTarget(t)) = node.node.as_ref() else {
                return self.unsupported(None, "this target of INSERT");
            };
            let location = loc(t.location);
            let Some(a) = live_column(rel, &t.name) else { return Err(self.no_column(rel, &t.name, location)) };
            let part = !t.indirection.is_empty();
            if columns.iter().any(|c| c.attribute.number == a.number && !(c.part && part)) {
                return Err(self.error_at(
                    location,
                    SqlState::DuplicateColumn,
                    format!("column \"{}\" specified more than once", t.name),
                ));
            }
            columns.push(Assigned { attribute: a.clone(), part, location });
        }
        Ok(columns)
    }

    /// The rows to insert: those of VALUES, or one of what a query hands out.
    fn insert_rows(&mut self, select: &pb::SelectStmt) -> SqlResult<Vec<Vec<Value>>> {
        let only_values = !select.values_lists.is_empty()
            && select.sort_clause.is_empty()
            && select.limit_count.is_none()
            && select.limit_offset.is_none()
            && select.locking_clause.is_empty();
        // Nothing of the target can be seen from the source.
        let (rows, _) = self.with_level(|a| {
            if !only_values {
                a.state.resolve_unknowns = false;
                let query = a.select_stmt(select)?;
                return Ok(vec![query.outputs().map(|t| Some(t.expr.clone())).collect()]);
            }
            a.with_clause(select.with_clause.as_ref())?;
            let mut rows: Vec<Vec<Value>> = Vec::new();
            for node in &select.values_lists {
                let Some(NodeEnum::List(list)) = node.node.as_ref() else {
                    return a.unsupported(None, "this VALUES list");
                };
                let mut row = Vec::new();
                for item in &list.items {
                    match item.node.as_ref() {
                        Some(NodeEnum::SetToDefault(_)) => row.push(None),
                        _ => {
                            let items = std::slice::from_ref(item);
                            let found = a.with_kind(ExprKind::Values, |a| a.expr_list_with_stars(items))?;
                            row.extend(found.into_iter().map(Some));
                        }
                    }
                }
                if rows.first().is_some_and(|first| first.len() != row.len()) {
                    let location = row.iter().flatten().filter_map(Expr::location).min();
                    let message = "VALUES lists must all be the same length";
                    return Err(a.error_at(location, SqlState::SyntaxError, message));
                }
                rows.push(row);
            }
            Ok(rows)
        })?;
        Ok(rows)
    }

    fn check_row_width(&self, row: &[Value], columns: &[Assigned], named: bool) -> SqlResult<()> {
        let error = |location, message: &str| Err(self.error_at(location, SqlState::SyntaxError, message));
        if let Some(extra) = row.get(columns.len()) {
            let location = extra.as_ref().and_then(Expr::location);
            return error(location, "INSERT has more expressions than target columns");
        }
        match columns.get(row.len()) {
            Some(lacking) if named => {
                let e = error(lacking.location, "INSERT has more target columns than expressions");
                let fits = matches!(row, [Some(Expr::Row(r))] if r.args.len() == columns.len());
                if fits {
                    return e.map_err(|e| {
                        e.hint("The insertion source is a row expression containing the same number of columns expected by the INSERT. Did you accidentally use extra parentheses?")
                    });
                }
                e
            }
            _ => Ok(()),
        }
    }

    /// Whether a value can be assigned to a column.
    fn assign(&mut self, value: Value, column: &Assigned) -> SqlResult<()> {
        let Some(value) = value else { return Ok(()) };
        if column.part {
            return Ok(());
        }
        let a = &column.attribute;
        let (location, from) = (value.location(), self.expr_type(&value)?);
        let form = CoercionForm::ImplicitCast;
        let coerced = self.coerce_to_target(value, a.type_oid, a.typmod, Context::Assignment, form, None)?;
        if coerced.is_some() {
            return Ok(());
        }
        let message = format!(
            "column \"{}\" is of type {} but expression is of type {}",
            a.name,
            self.type_name(a.type_oid),
            self.type_name(from)
        );
        let e = self.error_at(location, SqlState::DatatypeMismatch, message);
        Err(e.hint("You will need to rewrite or cast the expression."))
    }

    fn update(&mut self, s: &pb::UpdateStmt, target: &pb::RangeVar) -> SqlResult<Returned> {
        self.with_clause(s.with_clause.as_ref())?;
        let rel = self.find_relation(target)?;
        let item = self.target_in_from(target, &s.from_clause)?;
        self.where_clause(s.where_clause.as_deref(), ExprKind::Where)?;
        let returned = self.returning(&s.returning_clause, &item)?;
        // All values first, then their columns.
        let mut assignments: Vec<(&pb::ResTarget, Value)> = Vec::new();
        let mut row: std::collections::VecDeque<Value> = std::collections::VecDeque::new();
        for node in &s.target_list {
            let Some(NodeEnum::ResTarget(t)) = node.node.as_ref() else {
                return self.unsupported(None, "this target of UPDATE");
            };
            let value = match t.val.as_ref().and_then(|n| n.node.as_ref()) {
                Some(NodeEnum::SetToDefault(_)) => None,
                Some(NodeEnum::MultiAssignRef(m)) => {
                    if m.colno == 1 {
                        row = self.multi_assignment(m)?.into();
                    }
                    row.pop_front().ok_or_else(|| SqlError::internal("a value is missing"))?
                }
                _ => match t.val.as_deref() {
                    Some(n) => Some(self.with_kind(ExprKind::UpdateSource, |a| a.expr(n))?),
                    None => return Err(SqlError::internal("an assignment of nothing")),
                },
            };
            assignments.push((t, value));
        }
        let mut stored = Vec::new();
        for (t, value) in assignments {
            let location = loc(t.location);
            if crate::relation::SYSTEM_COLUMNS.iter().any(|c| c.0 == t.name) {
                let message = format!("cannot assign to system column \"{}\"", t.name);
                return Err(self.error_at(location, SqlState::FeatureNotSupported, message));
            }
            let Some(a) = live_column(&rel, &t.name) else {
                let e = self.no_column(&rel, &t.name, location);
                let qualified = !t.indirection.is_empty() && t.name == item.name;
                return Err(if qualified {
                    e.hint("SET target columns cannot be qualified with the relation name.")
                } else {
                    e
                });
            };
            let column = Assigned { attribute: a.clone(), part: !t.indirection.is_empty(), location };
            if value.is_some() {
                stored.push(column.attribute.clone());
            }
            self.assign(value, &column)?;
        }
        match stored.iter().find(|a| a.generated != 0 || a.identity == b'a') {
            Some(a) => Err(SqlError::new(
                SqlState::GeneratedAlways,
                format!("column \"{}\" can only be updated to DEFAULT", a.name),
            )
            .detail(computed(a))),
            None => Ok(returned),
        }
    }

    /// The values of `(a, b) = ...`.
    fn multi_assignment(&mut self, m: &pb::MultiAssignRef) -> SqlResult<Vec<Value>> {
        let wanted = usize::try_from(m.ncolumns).unwrap_or(0);
        let source = m.source.as_ref().and_then(|n| n.node.as_ref());
        let (values, location) = match source {
            Some(NodeEnum::RowExpr(r)) => {
                let mut values = Vec::new();
                for node in &r.args {
                    values.push(match node.node.as_ref() {
                        Some(NodeEnum::SetToDefault(_)) => None,
                        _ => Some(self.with_kind(ExprKind::UpdateSource, |a| a.expr(node))?),
                    });
                }
                (values, loc(r.location))
            }
            Some(NodeEnum::SubLink(l)) => {
                let Some(NodeEnum::SelectStmt(select)) = l.subselect.as_ref().and_then(|n| n.node.as_ref()) else {
                    return self.unsupported(loc(l.location), "a subquery that is no SELECT");
                };
                let query = self.with_kind(ExprKind::UpdateSource, |a| a.subquery(select, true))?;
                (query.outputs().map(|t| Some(t.expr.clone())).collect(), loc(l.location))
            }
            _ => return self.unsupported(None, "this source of a multiple-column UPDATE item"),
        };
        if values.len() != wanted {
            let message = "number of columns does not match number of values";
            return Err(self.error_at(location, SqlState::SyntaxError, message));
        }
        Ok(values)
    }

    fn delete(&mut self, s: &pb::DeleteStmt, target: &pb::RangeVar) -> SqlResult<Returned> {
        self.with_clause(s.with_clause.as_ref())?;
        let item = self.target_in_from(target, &s.using_clause)?;
        self.where_clause(s.where_clause.as_deref(), ExprKind::Where)?;
        self.returning(&s.returning_clause, &item)
    }

    /// Puts the target and FROM into the namespace, the target first.
    fn target_in_from(&mut self, target: &pb::RangeVar, from: &[pb::Node]) -> SqlResult<NsItem> {
        let found = self.table_item(target)?;
        // Not even LATERAL reaches the target from FROM; what follows does.
        self.state.target = Some(found.item.rtindex);
        self.state.namespace.push(NsItem { lateral_only: true, lateral_ok: false, ..found.item.clone() });
        self.from_clause(from)?;
        Ok(found.item)
    }

    fn returning(&mut self, clause: &Option<pb::ReturningClause>, item: &NsItem) -> SqlResult<Returned> {
        let Some(clause) = clause else { return Ok(Vec::new()) };
        if !clause.options.is_empty() {
            return self.unsupported(None, "RETURNING WITH");
        }
        let before = self.state.namespace.len();
        if !self.state.namespace.iter().any(|i| i.rtindex == item.rtindex) {
            self.state.namespace.push(item.clone());
        }
        for name in ["old", "new"] {
            if !self.state.namespace.iter().any(|i| i.rel_visible && i.name == name) {
                let relation = Oid::INVALID;
                let named = NsItem { name: name.to_owned(), relation, cols_visible: false, ..item.clone() };
                self.state.namespace.push(named);
            }
        }
        let result = self.returning_list(&clause.exprs);
        self.state.namespace.truncate(before);
        result
    }

    fn returning_list(&mut self, nodes: &[pb::Node]) -> SqlResult<Returned> {
        let mut list = Vec::new();
        for node in nodes {
            let Some(NodeEnum::ResTarget(t)) = node.node.as_ref() else {
                return self.unsupported(None, "this RETURNING");
            };
            let Some(value) = t.val.as_deref() else { continue };
            if let Some(columns) = self.star(value)? {
                list.extend(columns);
                continue;
            }
            let e = self.with_kind(ExprKind::Returning, |a| a.expr(value))?;
            let name = if t.name.is_empty() { crate::target::column_name(value, &e) } else { t.name.clone() };
            list.push((name, e));
        }
        Ok(list)
    }

    fn no_column(&self, rel: &Relation, name: &str, location: Location) -> SqlError {
        let message = format!("column \"{name}\" of relation \"{}\" does not exist", rel.name);
        self.error_at(location, SqlState::UndefinedColumn, message)
    }
}

/// What is refused for other reasons ends as the refusal to write.
pub(crate) fn refuse_quietly(analysed: SqlResult<()>) -> SqlResult<()> {
    match analysed {
        Err(e) if e.state == SqlState::FeatureNotSupported && e.message.contains("not supported by Stegodon") => Ok(()),
        Err(e) if e.state == SqlState::ReadOnlySqlTransaction => Ok(()),
        other => other,
    }
}

fn live_column<'r>(rel: &'r Relation, name: &str) -> Option<&'r Attribute> {
    rel.attributes.iter().find(|a| !a.dropped && a.name == name)
}

/// Why a column's value is not the user's.
fn computed(a: &Attribute) -> String {
    if a.generated == 0 {
        format!("Column \"{}\" is an identity column defined as GENERATED ALWAYS.", a.name)
    } else {
        format!("Column \"{}\" is a generated column.", a.name)
    }
}
