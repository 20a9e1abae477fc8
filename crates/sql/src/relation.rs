//! Names of columns and FROM items.

use pg_query::{NodeEnum, protobuf as pb};
use stegodon_format::ids::{AttrNumber, Oid};
use stegodon_nodes::Expr;
use stegodon_nodes::expr::{CoercionForm, Location, RowExpr};
use stegodon_nodes::query::{RangeTableEntry, RangeTableKind};
use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::context::{Analyzer, NsItem, loc, make_var, seen_from};
use crate::names::node_name;
use crate::oids;

/// The system columns: name, number, type.
pub(crate) const SYSTEM_COLUMNS: [(&str, i16, Oid); 6] = [
    ("ctid", -1, oids::TID),
    ("xmin", -2, oids::XID),
    ("cmin", -3, oids::CID),
    ("xmax", -4, oids::XID),
    ("cmax", -5, oids::CID),
    ("tableoid", -6, oids::OID),
];

/// The fields of a column reference: names, and whether a star ends it.
pub(crate) fn column_fields(c: &pb::ColumnRef) -> SqlResult<(Vec<String>, bool)> {
    let mut names = Vec::new();
    let mut star = false;
    for f in &c.fields {
        match f.node.as_ref() {
            Some(NodeEnum::String(s)) if !star => names.push(s.sval.clone()),
            Some(NodeEnum::AStar(_)) if !star => star = true,
            other => return Err(SqlError::unsupported(format_args!("{} in a column reference", node_name(other)))),
        }
    }
    Ok((names, star))
}

impl Analyzer<'_> {
    /// The range table entry of an item, `up` levels out.
    pub fn rte(&self, up: u32, rtindex: usize) -> SqlResult<&RangeTableEntry> {
        let found = rtindex.checked_sub(1).and_then(|i| self.level(up).ok()?.rtable.get(i));
        found.ok_or_else(|| SqlError::internal("no such range table entry"))
    }

    /// Whether names may reach an item at all, here.
    fn reachable(&self, up: u32, item: &NsItem) -> bool {
        !item.lateral_only || self.level(up).is_ok_and(|s| s.lateral_active)
    }

    fn check_lateral_ref_ok(&self, up: u32, item: &NsItem, location: Location) -> SqlResult<()> {
        if !item.lateral_only || item.lateral_ok {
            return Ok(());
        }
        let error = self.error_at(
            location,
            SqlState::InvalidColumnReference,
            format!("invalid reference to FROM-clause entry for table \"{}\"", item.name),
        );
        Err(if self.level(up)?.target == Some(item.rtindex) {
            error.hint(format!(
                "There is an entry for table \"{}\", but it cannot be referenced from this part of the query.",
                item.name
            ))
        } else {
            error.detail("The combining JOIN type must be INNER or LEFT for a LATERAL reference.")
        })
    }

    /// A column of an item by name, as seen `up` levels further in; `None` where it has none such.
    pub fn item_column(&self, up: u32, item: &NsItem, name: &str, location: Location) -> SqlResult<Option<Expr>> {
        let mut found = None;
        for c in &item.columns {
            if c.name == name {
                if found.is_some() {
                    return Err(self.error_at(
                        location,
                        SqlState::AmbiguousColumn,
                        format!("column reference \"{name}\" is ambiguous"),
                    ));
                }
                found = Some(seen_from(&c.expr, up, location));
            }
        }
        if found.is_some() {
            return Ok(found);
        }
        let RangeTableKind::Relation { relkind, .. } = self.rte(up, item.rtindex)?.kind else { return Ok(None) };
        if matches!(relkind, b'v' | b'c') {
            return Ok(None);
        }
        Ok(SYSTEM_COLUMNS.iter().find(|c| c.0 == name).map(|&(_, attno, type_oid)| {
            seen_from(&make_var(item.rtindex, attno, (type_oid, -1, Oid::INVALID)), up, location)
        }))
    }

    /// A bare column name, looked for level by level.
    pub fn column_by_name(&self, name: &str, local_only: bool, location: Location) -> SqlResult<Option<Expr>> {
        for up in 0..=self.outer.len() as u32 {
            let mut found = None;
            for item in &self.level(up)?.namespace {
                if !item.cols_visible || !self.reachable(up, item) {
                    continue;
                }
                if let Some(expr) = self.item_column(up, item, name, location)? {
                    if found.is_some() {
                        return Err(self.error_at(
                            location,
                            SqlState::AmbiguousColumn,
                            format!("column reference \"{name}\" is ambiguous"),
                        ));
                    }
                    self.check_lateral_ref_ok(up, item, location)?;
                    found = Some(expr);
                }
            }
            if found.is_some() || local_only {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// A FROM item by its possibly qualified name, and how many levels out it is.
    pub fn item_by_name(
        &self,
        schema: Option<&str>,
        name: &str,
        location: Location,
    ) -> SqlResult<Option<(u32, NsItem)>> {
        let relation = match schema {
            None => None,
            Some(s) => {
                let found =
                    self.cx.catalog.namespace_by_name(s).and_then(|n| self.cx.catalog.relation_by_name(n.oid, name));
                match found {
                    Some(r) => Some(r.oid),
                    None => return Ok(None),
                }
            }
        };
        for up in 0..=self.outer.len() as u32 {
            let mut found: Option<&NsItem> = None;
            for item in &self.level(up)?.namespace {
                if !item.rel_visible || !self.reachable(up, item) {
                    continue;
                }
                let matches = match relation {
                    Some(oid) => item.relation == oid,
                    None => item.name == name,
                };
                if matches {
                    if found.is_some() {
                        let what = relation.map_or_else(|| format!("\"{name}\""), |o| o.to_string());
                        return Err(self.error_at(
                            location,
                            SqlState::AmbiguousAlias,
                            format!("table reference {what} is ambiguous"),
                        ));
                    }
                    self.check_lateral_ref_ok(up, item, location)?;
                    found = Some(item);
                }
            }
            if let Some(item) = found {
                return Ok(Some((up, item.clone())));
            }
        }
        Ok(None)
    }

    /// A column reference in an expression.
    pub fn column_ref(&mut self, c: &pb::ColumnRef) -> SqlResult<Expr> {
        let location = loc(c.location);
        let (names, star) = column_fields(c)?;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (schema, table, column) = match (names.as_slice(), star) {
            (&[column], false) => {
                if let Some(found) = self.column_by_name(column, false, location)? {
                    self.mark_selected(&found)?;
                    return Ok(found);
                }
                // Perhaps it is a table, meant as its row.
                return match self.item_by_name(None, column, location)? {
                    Some((up, item)) => self.whole_row(up, &item, location),
                    None => Err(self.missing_column(None, column, location)),
                };
            }
            (&[table], true) => (None, table, None),
            (&[table, column], false) => (None, table, Some(column)),
            (&[schema, table], true) => (Some(schema), table, None),
            (&[schema, table, column], false) => (Some(schema), table, Some(column)),
            (&[database, schema, table], true) => {
                self.check_database(database, &names.join(".")).map_err(|e| self.place(e, location))?;
                (Some(schema), table, None)
            }
            (&[database, schema, table, column], false) => {
                self.check_database(database, &names.join(".")).map_err(|e| self.place(e, location))?;
                (Some(schema), table, Some(column))
            }
            _ => {
                return Err(self.error_at(
                    location,
                    SqlState::SyntaxError,
                    format!("improper qualified name (too many dotted names): {}", names.join(".")),
                ));
            }
        };
        let Some((up, item)) = self.item_by_name(schema, table, location)? else {
            return Err(self.missing_item(schema, table, location));
        };
        let Some(column) = column else { return self.whole_row(up, &item, location) };
        if let Some(found) = self.item_column(up, &item, column, location)? {
            self.mark_selected(&found)?;
            return Ok(found);
        }
        // Perhaps a function, applied to the row.
        let row = self.whole_row(up, &item, location)?;
        match self.function_as_column(column, row, location)? {
            Some(found) => Ok(found),
            None => Err(self.missing_column(Some(table), column, location)),
        }
    }

    /// The row of an item.
    pub fn whole_row(&mut self, up: u32, item: &NsItem, location: Location) -> SqlResult<Expr> {
        let rte = self.rte(up, item.rtindex)?;
        let row = |oid| make_var(item.rtindex, 0, (oid, -1, Oid::INVALID));
        let expr = match &rte.kind {
            RangeTableKind::Relation { relation, .. } => {
                let Some(rel) = self.cx.catalog.relation(*relation) else {
                    return Err(SqlError::internal("a relation has gone"));
                };
                if !rel.row_type.is_valid() {
                    return Err(self.error_at(
                        location,
                        SqlState::WrongObjectType,
                        format!("relation \"{}\" does not have a composite type", rel.name),
                    ));
                }
                row(rel.row_type)
            }
            RangeTableKind::Function { functions, ordinality } => match functions.as_slice() {
                [f] if !*ordinality => {
                    let result = f.call.type_oid();
                    if self.composite_relation(result).is_some() {
                        row(result)
                    } else if result == oids::RECORD || f.columns.len() > 1 {
                        row(oids::RECORD)
                    } else {
                        // A scalar function's row is its value.
                        make_var(item.rtindex, 1, (result, -1, f.call.collation()))
                    }
                }
                _ => row(oids::RECORD),
            },
            RangeTableKind::Join { .. } => Expr::Row(RowExpr {
                args: item.columns.iter().map(|c| c.expr.clone()).collect(),
                row_type: oids::RECORD,
                names: item.columns.iter().map(|c| c.name.clone()).collect(),
                form: CoercionForm::ImplicitCast,
                location,
            }),
            _ => row(oids::RECORD),
        };
        let expr = seen_from(&expr, up, location);
        self.mark_selected(&expr)?;
        Ok(expr)
    }

    /// Notes that the columns in `expr` are read, for the check of privileges.
    pub fn mark_selected(&mut self, expr: &Expr) -> SqlResult<()> {
        if let Expr::Var(v) = expr {
            let stegodon_nodes::expr::VarSource::Relation(rtindex) = v.source else {
                return Err(SqlError::internal("a planned Var in analysis"));
            };
            let attno: AttrNumber = v.attno;
            let state = self.level_mut(v.levels_up)?;
            let Some(rte) = rtindex.checked_sub(1).and_then(|i| state.rtable.get_mut(i)) else {
                return Err(SqlError::internal("a Var without an entry"));
            };
            if matches!(rte.kind, RangeTableKind::Relation { .. }) && !rte.selected_columns.contains(&attno) {
                rte.selected_columns.push(attno);
            }
            return Ok(());
        }
        let mut vars = Vec::new();
        let _ = expr.try_each_child::<()>(&mut |c| {
            vars.push(c);
            Ok(())
        });
        vars.into_iter().try_for_each(|c| self.mark_selected(c))
    }

    /// `42703`, with PostgreSQL's guess at what was meant.
    pub fn missing_column(&self, table: Option<&str>, column: &str, location: Location) -> SqlError {
        let message = match table {
            Some(t) => format!("column {t}.{column} does not exist"),
            None => format!("column \"{column}\" does not exist"),
        };
        let error = self.error_at(location, SqlState::UndefinedColumn, message);
        self.guess_column(error, table, column)
    }

    /// `42P01` for a qualified reference to something that is not in FROM, or not reachable.
    pub fn missing_item(&self, schema: Option<&str>, name: &str, location: Location) -> SqlError {
        let relation = match schema {
            None => self.cx.catalog.relation_on_path(self.cx.path, name),
            Some(s) => self.cx.catalog.namespace_by_name(s).and_then(|n| self.cx.catalog.relation_by_name(n.oid, name)),
        }
        .map(|r| r.oid);
        let mut found: Option<(u32, usize, &RangeTableEntry)> = None;
        'levels: for up in 0..=self.outer.len() as u32 {
            let Ok(state) = self.level(up) else { break };
            for (i, rte) in state.rtable.iter().enumerate() {
                let same = match &rte.kind {
                    RangeTableKind::Relation { relation: r, .. } => relation == Some(*r),
                    RangeTableKind::Join { .. } if !rte.has_alias => continue,
                    RangeTableKind::Result | RangeTableKind::Group { .. } => continue,
                    _ => false,
                };
                if same || (schema.is_none() && rte.name == name) {
                    found = Some((up, i + 1, rte));
                    break 'levels;
                }
            }
        }
        let Some((up, rtindex, rte)) = found else {
            return self.error_at(
                location,
                SqlState::UndefinedTable,
                format!("missing FROM-clause entry for table \"{name}\""),
            );
        };
        let error = self.error_at(
            location,
            SqlState::UndefinedTable,
            format!("invalid reference to FROM-clause entry for table \"{name}\""),
        );
        if rte.has_alias && rte.name != name {
            let reached = self.item_by_name(None, &rte.name, location).ok().flatten();
            if reached.is_some_and(|(u, item)| u == up && item.rtindex == rtindex) {
                return error.hint(format!("Perhaps you meant to reference the table alias \"{}\".", rte.name));
            }
        }
        let error = error.detail(format!(
            "There is an entry for table \"{}\", but it cannot be referenced from this part of the query.",
            rte.name
        ));
        let lateral = up > 0 || !self.state.lateral_active;
        let in_namespace = (0..=self.outer.len() as u32).any(|u| {
            self.level(u).is_ok_and(|s| {
                !s.lateral_active
                    && s.namespace.iter().any(|i| u == up && i.rtindex == rtindex && i.lateral_only && i.lateral_ok)
            })
        });
        if lateral && in_namespace {
            return error.hint("To reference that table, you must mark this subquery with LATERAL.");
        }
        error
    }

    /// The hint of `missing_column`: names at a small edit distance, as PostgreSQL weighs them.
    fn guess_column(&self, error: SqlError, table: Option<&str>, column: &str) -> SqlError {
        // An exact match that is only out of reach is reported as such; a near one as a hint, unless there are many.
        struct Best<'n> {
            distance: usize,
            first: Option<(&'n str, &'n str)>,
            second: Option<(&'n str, &'n str)>,
        }
        const MAX_DISTANCE: usize = 3;
        let mut best = Best { distance: MAX_DISTANCE + 1, first: None, second: None };
        let mut exact: Vec<(u32, usize, &RangeTableEntry)> = Vec::new();
        for up in 0..=self.outer.len() as u32 {
            let Ok(state) = self.level(up) else { break };
            for (i, rte) in state.rtable.iter().enumerate() {
                if matches!(rte.kind, RangeTableKind::Join { .. } | RangeTableKind::Result) {
                    continue;
                }
                let penalty = match table {
                    Some(t) if t != rte.name => edit_distance(t, &rte.name).min(MAX_DISTANCE + 1),
                    _ => 0,
                };
                for name in rte.columns.iter().filter(|n| !n.is_empty()) {
                    if penalty == 0 && name == column {
                        exact.push((up, i + 1, rte));
                        continue;
                    }
                    let own = edit_distance(column, name);
                    let distance = penalty + own;
                    if distance > MAX_DISTANCE || own > column.len() / 2 {
                        continue;
                    }
                    if distance < best.distance {
                        best = Best { distance, first: Some((&rte.name, name)), second: None };
                    } else if distance == best.distance {
                        if best.second.is_some() {
                            // Too many: only a nearer one will do.
                            best = Best { distance: distance.saturating_sub(1), first: None, second: None };
                        } else if best.first.is_some() {
                            best.second = Some((&rte.name, name));
                        } else {
                            best.first = Some((&rte.name, name));
                        }
                    }
                }
            }
        }
        match exact.as_slice() {
            [] => {}
            &[(up, rtindex, rte)] => {
                let error = error.detail(format!(
                    "There is a column named \"{column}\" in table \"{}\", but it cannot be referenced from this part of the query.",
                    rte.name
                ));
                let item = self.level(up).ok().and_then(|s| s.namespace.iter().find(|i| i.rtindex == rtindex));
                return match item {
                    Some(i) if i.lateral_only && i.lateral_ok && !self.state.lateral_active => {
                        error.hint("To reference that column, you must mark this subquery with LATERAL.")
                    }
                    Some(i) if table.is_none() && i.rel_visible && !i.cols_visible => {
                        error.hint("To reference that column, you must use a table-qualified name.")
                    }
                    _ => error,
                };
            }
            _ => {
                let error = error.detail(format!(
                    "There are columns named \"{column}\", but they are in tables that cannot be referenced from this part of the query."
                ));
                return if table.is_none() { error.hint("Try using a table-qualified name.") } else { error };
            }
        }
        match (best.first, best.second) {
            (Some((t, c)), None) => error.hint(format!("Perhaps you meant to reference the column \"{t}.{c}\".")),
            (Some((t, c)), Some((t2, c2))) => error
                .hint(format!("Perhaps you meant to reference the column \"{t}.{c}\" or the column \"{t2}.{c2}\".")),
            _ => error,
        }
    }
}

/// Levenshtein's distance.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (cell, cb) in row.iter_mut().skip(1).zip(&b) {
            let cost = diagonal + usize::from(ca != *cb);
            diagonal = *cell;
            left = cost.min(left + 1).min(*cell + 1);
            *cell = left;
        }
    }
    row.last().copied().unwrap_or(0)
}
