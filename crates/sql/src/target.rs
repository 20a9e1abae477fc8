//! Output columns: the target list, `*`, and what a column is called.

use pg_query::{NodeEnum, protobuf as pb};
use stegodon_format::ids::{AttrNumber, Oid};
use stegodon_nodes::Expr;
use stegodon_nodes::expr::{FieldSelect, TargetEntry, VarSource};
use stegodon_nodes::query::RangeTableKind;
use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::context::{Analyzer, ExprKind, loc};
use crate::names::string_list;
use crate::oids;
use crate::relation::column_fields;

impl Analyzer<'_> {
    /// The target list of a SELECT.
    pub(crate) fn target_list(&mut self, nodes: &[pb::Node]) -> SqlResult<Vec<TargetEntry>> {
        let mut targets = Vec::new();
        for node in nodes {
            let Some(NodeEnum::ResTarget(target)) = node.node.as_ref() else {
                return self.unsupported(None, "this output column");
            };
            let Some(value) = target.val.as_deref() else {
                return Err(SqlError::internal("an output column without value"));
            };
            if !target.indirection.is_empty() {
                return self.unsupported(loc(target.location), "an assignment target");
            }
            if let Some(columns) = self.star(value)? {
                for (name, e) in columns {
                    push_target(&mut targets, e, Some(name));
                }
                continue;
            }
            let e = self.with_kind(ExprKind::SelectTarget, |a| a.expr(value))?;
            let name = if target.name.is_empty() { column_name(value, &e) } else { target.name.clone() };
            push_target(&mut targets, e, Some(name));
        }
        Ok(targets)
    }

    /// Expressions of a row constructor or VALUES row, stars expanded.
    pub(crate) fn expr_list_with_stars(&mut self, nodes: &[pb::Node]) -> SqlResult<Vec<Expr>> {
        let mut list = Vec::with_capacity(nodes.len());
        for node in nodes {
            match self.star(node)? {
                Some(columns) => list.extend(columns.into_iter().map(|c| c.1)),
                None => list.push(self.expr(node)?),
            }
        }
        Ok(list)
    }

    /// What `*`, `t.*` or `(row).*` expands to; `None` where the node is none of these.
    pub(crate) fn star(&mut self, node: &pb::Node) -> SqlResult<Option<Vec<(String, Expr)>>> {
        match node.node.as_ref() {
            Some(NodeEnum::ColumnRef(c)) => {
                let (names, star) = column_fields(c)?;
                if !star {
                    return Ok(None);
                }
                let location = loc(c.location);
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let (schema, table) = match names.as_slice() {
                    [] => return self.star_columns(location).map(Some),
                    &[table] => (None, table),
                    &[schema, table] => (Some(schema), table),
                    &[database, schema, table] => {
                        self.check_database(database, &names.join(".")).map_err(|e| self.place(e, location))?;
                        (Some(schema), table)
                    }
                    _ => {
                        return Err(self.error_at(
                            location,
                            SqlState::SyntaxError,
                            format!("improper qualified name (too many dotted names): {}.*", names.join(".")),
                        ));
                    }
                };
                match self.item_by_name(schema, table, location)? {
                    Some((up, item)) => self.item_columns(up, &item, location).map(Some),
                    None => Err(self.missing_item(schema, table, location)),
                }
            }
            Some(NodeEnum::AIndirection(i)) => {
                let Some((last, before)) = i.indirection.split_last() else { return Ok(None) };
                if !matches!(last.node, Some(NodeEnum::AStar(_))) {
                    return Ok(None);
                }
                let row = if before.is_empty() {
                    self.boxed(&i.arg)?
                } else {
                    let shorter = pb::AIndirection { arg: i.arg.clone(), indirection: before.to_vec() };
                    self.indirection(&shorter)?
                };
                self.expand_row(row).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The columns of a row value.
    fn expand_row(&mut self, row: Expr) -> SqlResult<Vec<(String, Expr)>> {
        let location = row.location();
        if let Expr::Var(v) = &row
            && v.attno.0 == 0
            && let VarSource::Relation(rtindex) = v.source
        {
            let item = self.level(v.levels_up)?.namespace.iter().find(|i| i.rtindex == rtindex).cloned();
            if let Some(item) = item {
                return self.item_columns(v.levels_up, &item, location);
            }
        }
        let fields = self.row_fields(&row)?;
        if fields.is_empty() {
            let ty = self.expr_type(&row)?;
            return Err(if ty == oids::RECORD {
                self.error_at(location, SqlState::WrongObjectType, "record type has not been registered")
            } else {
                self.error_at(
                    location,
                    SqlState::WrongObjectType,
                    format!("type {} is not composite", self.type_name(ty)),
                )
            });
        }
        Ok(fields
            .into_iter()
            .enumerate()
            .filter(|(_, (name, _))| !name.is_empty())
            .map(|(i, (name, (result_type, typmod, collation)))| {
                let e = Expr::FieldSelect(Box::new(FieldSelect {
                    arg: row.clone(),
                    field: AttrNumber((i + 1) as i16),
                    result_type,
                    typmod,
                    collation,
                }));
                (name, e)
            })
            .collect())
    }

    /// Says of each output column which table's column it is unchanged.
    pub(crate) fn mark_origins(&self, targets: &mut [TargetEntry]) {
        for t in targets {
            if let Expr::Var(v) = &t.expr
                && let Some((table, column)) = self.origin(v.source, v.attno, v.levels_up)
            {
                t.origin_table = table;
                t.origin_column = column;
            }
        }
    }

    fn origin(&self, source: VarSource, attno: AttrNumber, levels_up: u32) -> Option<(Oid, AttrNumber)> {
        let VarSource::Relation(rtindex) = source else { return None };
        match &self.rte(levels_up, rtindex).ok()?.kind {
            RangeTableKind::Relation { relation, .. } => Some((*relation, attno)),
            RangeTableKind::Subquery(q) => {
                let t = q.outputs().nth(usize::try_from(attno.0).ok()?.checked_sub(1)?)?;
                Some((t.origin_table, t.origin_column))
            }
            RangeTableKind::Cte { name, levels_up: cte_up, self_reference: false, .. } => {
                let cte = self.level(levels_up + cte_up).ok()?.ctes.iter().find(|c| c.name == *name)?;
                let t = cte.query.outputs().nth(usize::try_from(attno.0).ok()?.checked_sub(1)?)?;
                Some((t.origin_table, t.origin_column))
            }
            _ => None,
        }
    }

    /// Literals that nothing has given a type become text.
    pub(crate) fn resolve_unknown_targets(&mut self, targets: &mut [TargetEntry]) -> SqlResult<()> {
        use crate::coerce::Context;
        use stegodon_nodes::expr::CoercionForm;
        for t in targets {
            if t.expr.type_oid() == oids::UNKNOWN {
                let e = std::mem::replace(&mut t.expr, crate::coerce::bool_const(false));
                let form = CoercionForm::ImplicitCast;
                t.expr = self.coerce_type(e, oids::UNKNOWN, oids::TEXT, -1, Context::Implicit, form, None)?;
            }
        }
        Ok(())
    }
}

pub(crate) fn push_target(targets: &mut Vec<TargetEntry>, expr: Expr, name: Option<String>) {
    let resno = AttrNumber((targets.len() + 1) as i16);
    targets.push(TargetEntry {
        expr,
        resno,
        name,
        sort_group_ref: 0,
        origin_table: Oid::INVALID,
        origin_column: AttrNumber(0),
        junk: false,
    });
}

/// The name of an output column that was given none.
pub(crate) fn figure_column_name(node: &pb::Node) -> String {
    figure_name(node).map_or_else(|| "?column?".to_owned(), |n| n.1)
}

/// [`figure_column_name`], where a scalar subquery may have decided it: then it is the subquery's column's.
pub(crate) fn column_name(node: &pb::Node, e: &Expr) -> String {
    let mut at = node;
    loop {
        at = match at.node.as_ref() {
            Some(NodeEnum::TypeCast(c)) => match c.arg.as_deref() {
                Some(n) => n,
                None => break,
            },
            Some(NodeEnum::CollateClause(c)) => match c.arg.as_deref() {
                Some(n) => n,
                None => break,
            },
            Some(NodeEnum::CaseExpr(c)) => match c.defresult.as_deref() {
                Some(n) => n,
                None => break,
            },
            Some(NodeEnum::SubLink(s)) if s.sub_link_type == pb::SubLinkType::ExprSublink as i32 => {
                let mut found = None;
                e.any(&mut |x| match x {
                    Expr::SubLink(l) if l.location == loc(s.location) => {
                        found = l.query.outputs().next().and_then(|t| t.name.clone());
                        true
                    }
                    _ => false,
                });
                return found.unwrap_or_else(|| figure_column_name(node));
            }
            _ => break,
        };
    }
    figure_column_name(node)
}

/// The name that a function in FROM without alias has.
pub(crate) fn figure_item_name(node: &pb::Node) -> String {
    figure_column_name(node)
}

/// A name and its strength: 2 for a column's or function's own, 1 for a guess that a better one replaces.
fn figure_name(node: &pb::Node) -> Option<(u8, String)> {
    let strong = |s: &str| Some((2, s.to_owned()));
    let last = |nodes: &[pb::Node]| string_list(nodes).ok().and_then(|n| n.last().cloned());
    match node.node.as_ref()? {
        NodeEnum::ColumnRef(c) => {
            let (names, _) = column_fields(c).ok()?;
            names.last().and_then(|n| strong(n))
        }
        NodeEnum::AIndirection(i) => {
            let field = i.indirection.iter().rev().find_map(|n| match n.node.as_ref() {
                Some(NodeEnum::String(s)) => Some(s.sval.clone()),
                _ => None,
            });
            match field {
                Some(f) => Some((2, f)),
                None => figure_name(i.arg.as_deref()?),
            }
        }
        NodeEnum::FuncCall(f) => last(&f.funcname).map(|n| (2, n)),
        NodeEnum::AExpr(e) if e.kind == pb::AExprKind::AexprNullif as i32 => strong("nullif"),
        NodeEnum::TypeCast(c) => {
            let inner = c.arg.as_deref().and_then(figure_name);
            match inner {
                Some((2, n)) => Some((2, n)),
                weaker => match c.type_name.as_ref().and_then(|t| last(&t.names)) {
                    Some(n) => Some((1, n)),
                    None => weaker,
                },
            }
        }
        NodeEnum::CollateClause(c) => figure_name(c.arg.as_deref()?),
        NodeEnum::GroupingFunc(_) => strong("grouping"),
        NodeEnum::SubLink(s) => match pb::SubLinkType::try_from(s.sub_link_type).ok()? {
            pb::SubLinkType::ExistsSublink => strong("exists"),
            pb::SubLinkType::ArraySublink => strong("array"),
            pb::SubLinkType::ExprSublink => {
                // A scalar subquery is called as its one column.
                let NodeEnum::SelectStmt(select) = s.subselect.as_ref()?.node.as_ref()? else { return None };
                let mut select = select.as_ref();
                while let Some(left) = select.larg.as_deref() {
                    select = left;
                }
                let Some(NodeEnum::ResTarget(t)) = select.target_list.first()?.node.as_ref() else { return None };
                if t.name.is_empty() { Some((2, figure_column_name(t.val.as_deref()?))) } else { strong(&t.name) }
            }
            _ => None,
        },
        NodeEnum::CaseExpr(c) => match c.defresult.as_deref().and_then(figure_name) {
            Some((2, n)) => Some((2, n)),
            _ => Some((1, "case".to_owned())),
        },
        NodeEnum::AArrayExpr(_) => strong("array"),
        NodeEnum::RowExpr(_) => strong("row"),
        NodeEnum::CoalesceExpr(_) => strong("coalesce"),
        NodeEnum::MinMaxExpr(m) => strong(if m.op == pb::MinMaxOp::IsGreatest as i32 { "greatest" } else { "least" }),
        NodeEnum::SqlvalueFunction(f) => {
            use pb::SqlValueFunctionOp as Op;
            strong(match Op::try_from(f.op).ok()? {
                Op::SvfopCurrentDate => "current_date",
                Op::SvfopCurrentTime | Op::SvfopCurrentTimeN => "current_time",
                Op::SvfopCurrentTimestamp | Op::SvfopCurrentTimestampN => "current_timestamp",
                Op::SvfopLocaltime | Op::SvfopLocaltimeN => "localtime",
                Op::SvfopLocaltimestamp | Op::SvfopLocaltimestampN => "localtimestamp",
                Op::SvfopCurrentRole => "current_role",
                Op::SvfopCurrentUser => "current_user",
                Op::SvfopUser => "user",
                Op::SvfopSessionUser => "session_user",
                Op::SvfopCurrentCatalog => "current_catalog",
                Op::SvfopCurrentSchema => "current_schema",
                Op::SqlvalueFunctionOpUndefined => return None,
            })
        }
        _ => None,
    }
}
