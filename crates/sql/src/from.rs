//! FROM: tables, subqueries, WITH references and joins. Functions are in [`crate::from_function`].

use pg_query::{NodeEnum, protobuf as pb};
use stegodon_catalog::Catalog;
use stegodon_format::ids::Oid;
use stegodon_format::version::Version;
use stegodon_nodes::expr::{BoolExpr, BoolKind, Coalesce, Expr};
use stegodon_nodes::query::{JoinExpr, JoinKind, JoinTree, Query, RangeTableEntry, RangeTableKind};
use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::context::{Analyzer, ExprKind, NsColumn, NsItem, loc, make_var, seen_from};
use crate::describe::value_type;
use crate::names::{node_name, string_list};

/// What a FROM item has become.
pub(crate) struct FromItem {
    pub tree: JoinTree,
    /// The item itself.
    pub item: NsItem,
    /// What names can reach through it, itself included.
    pub namespace: Vec<NsItem>,
}

/// An alias and its column names.
pub(crate) struct AliasNames {
    pub name: String,
    pub columns: Vec<String>,
}

pub(crate) fn alias_names(alias: Option<&pb::Alias>) -> SqlResult<Option<AliasNames>> {
    alias.map(|a| Ok(AliasNames { name: a.aliasname.clone(), columns: string_list(&a.colnames)? })).transpose()
}

/// The range table entry of something that is no table.
pub(crate) fn plain_entry(
    kind: RangeTableKind,
    name: String,
    has_alias: bool,
    columns: Vec<String>,
) -> RangeTableEntry {
    RangeTableEntry {
        kind,
        name,
        has_alias,
        columns,
        lateral: false,
        check_as_user: None,
        selected_columns: Vec::new(),
        requires_select: false,
        security_barrier: false,
    }
}

/// A subquery's output columns: names, and types with typmod and collation.
pub(crate) fn query_columns(query: &Query, catalog: &Catalog) -> Vec<(String, (Oid, i32, Oid))> {
    query
        .outputs()
        .map(|t| {
            let e = &t.expr;
            (t.name.clone().unwrap_or_default(), (value_type(e, catalog), e.typmod(), e.collation()))
        })
        .collect()
}

impl Analyzer<'_> {
    /// FROM of the innermost query: fills its range table, namespace and join tree.
    pub fn from_clause(&mut self, items: &[pb::Node]) -> SqlResult<()> {
        for node in items {
            let mut item = self.from_item(node)?;
            self.check_name_conflicts(&self.state.namespace, &item.namespace)?;
            set_lateral(&mut item.namespace, true, true);
            self.state.from.items.push(item.tree);
            self.state.namespace.extend(item.namespace);
        }
        set_lateral(&mut self.state.namespace, false, true);
        Ok(())
    }

    fn from_item(&mut self, node: &pb::Node) -> SqlResult<FromItem> {
        match node.node.as_ref() {
            Some(NodeEnum::RangeVar(rv)) => self.from_table(rv),
            Some(NodeEnum::RangeSubselect(s)) => self.from_subquery(s),
            Some(NodeEnum::RangeFunction(f)) => self.from_function(f),
            Some(NodeEnum::JoinExpr(j)) => {
                stacker::maybe_grow(crate::context::STACK_RED_ZONE_BYTES, crate::context::STACK_BYTES, || {
                    self.from_join(j)
                })
            }
            Some(NodeEnum::RangeTableSample(s)) => self.unsupported(loc(s.location), "TABLESAMPLE"),
            Some(NodeEnum::RangeTableFunc(f)) => self.unsupported(loc(f.location), "XMLTABLE"),
            Some(NodeEnum::JsonTable(f)) => self.unsupported(loc(f.location), "JSON_TABLE"),
            other => self.unsupported(None, format_args!("{} in FROM", node_name(other))),
        }
    }

    /// Adds an entry whose columns are Vars of it, and makes its FROM item.
    pub fn add_entry(&mut self, entry: RangeTableEntry, types: &[(Oid, i32, Oid)], relation: Oid) -> FromItem {
        let rtindex = self.state.rtable.len() + 1;
        let columns = entry
            .columns
            .iter()
            .zip(types)
            .enumerate()
            .map(|(i, (name, &ty))| NsColumn { name: name.clone(), expr: make_var(rtindex, (i + 1) as i16, ty) })
            .collect();
        let item = NsItem {
            name: entry.name.clone(),
            rtindex,
            relation,
            columns,
            rel_visible: true,
            cols_visible: true,
            lateral_only: false,
            lateral_ok: true,
        };
        self.state.rtable.push(entry);
        FromItem { tree: JoinTree::Relation(rtindex), namespace: vec![item.clone()], item }
    }

    /// The column names of an item: the alias's, then its own.
    pub fn aliased_columns(&self, own: &[String], alias: Option<&AliasNames>, what: &str) -> SqlResult<Vec<String>> {
        let Some(alias) = alias else { return Ok(own.to_vec()) };
        // Dropped columns have no name and take none.
        let live = own.iter().filter(|n| !n.is_empty()).count();
        if alias.columns.len() > live {
            return Err(SqlError::new(
                SqlState::InvalidColumnReference,
                format!(
                    "{what} \"{}\" has {live} columns available but {} columns specified",
                    alias.name,
                    alias.columns.len()
                ),
            ));
        }
        let mut given = alias.columns.iter();
        Ok(own.iter().map(|n| if n.is_empty() { String::new() } else { given.next().unwrap_or(n).clone() }).collect())
    }

    fn from_table(&mut self, rv: &pb::RangeVar) -> SqlResult<FromItem> {
        let alias = alias_names(rv.alias.as_ref())?;
        if rv.schemaname.is_empty()
            && let Some(item) = self.from_cte(&rv.relname, alias.as_ref(), loc(rv.location))?
        {
            return Ok(item);
        }
        self.table_item(rv)
    }

    /// A table by its name, WITH queries aside.
    pub(crate) fn table_item(&mut self, rv: &pb::RangeVar) -> SqlResult<FromItem> {
        let alias = alias_names(rv.alias.as_ref())?;
        let rel = self.find_relation(rv)?;
        let location = loc(rv.location);
        let wrong_kind = match rel.kind {
            b'i' | b'I' => Some("indexes"),
            b'c' => Some("composite types"),
            _ => None,
        };
        if let Some(what) = wrong_kind {
            let e =
                self.error_at(location, SqlState::WrongObjectType, format!("cannot open relation \"{}\"", rel.name));
            return Err(e.detail(format!("This operation is not supported for {what}.")));
        }
        let own: Vec<String> =
            rel.attributes.iter().map(|a| if a.dropped { String::new() } else { a.name.clone() }).collect();
        let types: Vec<(Oid, i32, Oid)> = rel.attributes.iter().map(|a| (a.type_oid, a.typmod, a.collation)).collect();
        let columns = self.aliased_columns(&own, alias.as_ref(), "table")?;
        let kind = RangeTableKind::Relation { relation: rel.oid, relkind: rel.kind, inherit: rv.inh, sample: None };
        let name = alias.as_ref().map_or_else(|| rel.name.clone(), |a| a.name.clone());
        let mut entry = plain_entry(kind, name, alias.is_some(), columns);
        entry.requires_select = true;
        let relation = if alias.is_some() { Oid::INVALID } else { rel.oid };
        Ok(self.add_entry(entry, &types, relation))
    }

    /// The relation that a FROM item names; `42P01` where there is none.
    pub fn find_relation(&self, rv: &pb::RangeVar) -> SqlResult<std::sync::Arc<stegodon_catalog::rows::Relation>> {
        let location = loc(rv.location);
        if !rv.catalogname.is_empty() {
            let whole = format!("\"{}.{}.{}\"", rv.catalogname, rv.schemaname, rv.relname);
            self.check_database(&rv.catalogname, &whole).map_err(|e| self.place(e, location))?;
        }
        let catalog = self.cx.catalog;
        let found = if rv.schemaname.is_empty() {
            catalog.relation_on_path(self.cx.path, &rv.relname)
        } else {
            catalog.namespace_by_name(&rv.schemaname).and_then(|n| catalog.relation_by_name(n.oid, &rv.relname))
        };
        if let Some(rel) = found {
            return Ok(std::sync::Arc::clone(rel));
        }
        let whole =
            if rv.schemaname.is_empty() { rv.relname.clone() } else { format!("{}.{}", rv.schemaname, rv.relname) };
        let e = self.error_at(location, SqlState::UndefinedTable, format!("relation \"{whole}\" does not exist"));
        let future = rv.schemaname.is_empty()
            && (self.state.future_ctes.contains(&rv.relname)
                || self.outer.iter().any(|s| s.future_ctes.contains(&rv.relname)));
        Err(if future {
            e.detail(format!(
                "There is a WITH item named \"{}\", but it cannot be referenced from this part of the query.",
                rv.relname
            ))
            .hint("Use WITH RECURSIVE, or re-order the WITH items to remove forward references.")
        } else {
            e
        })
    }

    fn from_cte(
        &mut self,
        name: &str,
        alias: Option<&AliasNames>,
        location: stegodon_nodes::expr::Location,
    ) -> SqlResult<Option<FromItem>> {
        let catalog = self.catalog();
        for up in 0..=self.outer.len() as u32 {
            let itself = self.self_reference(name, up, location)?;
            let self_reference = itself.is_some();
            let (own, types) = match itself {
                Some(columns) => columns,
                None => {
                    let Some(cte) = self.level_mut(up)?.ctes.iter_mut().find(|c| c.name == name) else { continue };
                    cte.references += 1;
                    let columns = cte.columns.clone();
                    let types = query_columns(&cte.query, catalog).into_iter().map(|c| c.1).collect();
                    if up as usize == self.outer.len() && self.writes.iter().any(|w| w.0 == name && !w.1) {
                        let message = format!("WITH query \"{name}\" does not have a RETURNING clause");
                        return Err(self.error_at(location, SqlState::FeatureNotSupported, message));
                    }
                    (columns, types)
                }
            };
            let kind =
                RangeTableKind::Cte { name: name.to_owned(), levels_up: up, self_reference, types: types.clone() };
            let columns = self.aliased_columns(&own, alias, "table")?;
            let shown = alias.map_or_else(|| name.to_owned(), |a| a.name.clone());
            let entry = plain_entry(kind, shown, alias.is_some(), columns);
            return Ok(Some(self.add_entry(entry, &types, Oid::INVALID)));
        }
        Ok(None)
    }

    fn from_subquery(&mut self, s: &pb::RangeSubselect) -> SqlResult<FromItem> {
        let Some(NodeEnum::SelectStmt(select)) = s.subquery.as_ref().and_then(|n| n.node.as_ref()) else {
            return self.unsupported(None, "a subquery in FROM that is no SELECT");
        };
        if s.alias.is_none() && self.catalog().version() < Version::V16 {
            let (what, example) = if select.values_lists.is_empty() {
                ("subquery", "For example, FROM (SELECT ...) [AS] foo.")
            } else {
                ("VALUES", "For example, FROM (VALUES ...) [AS] foo.")
            };
            let message = format!("{what} in FROM must have an alias");
            return Err(SqlError::new(SqlState::SyntaxError, message).hint(example));
        }
        let was_active = std::mem::replace(&mut self.state.lateral_active, s.lateral);
        let query = self.with_kind(ExprKind::FromSubselect, |a| a.subquery(select, true));
        self.state.lateral_active = was_active;
        self.add_subquery(query?, s.alias.as_ref(), s.lateral)
    }

    /// Adds a subquery's entry.
    pub fn add_subquery(&mut self, query: Query, alias: Option<&pb::Alias>, lateral: bool) -> SqlResult<FromItem> {
        let alias = alias_names(alias)?;
        let (own, types): (Vec<_>, Vec<_>) = query_columns(&query, self.catalog()).into_iter().unzip();
        let columns = self.aliased_columns(&own, alias.as_ref(), "table")?;
        let has_alias = alias.is_some();
        let name = alias.map_or_else(|| "unnamed_subquery".to_owned(), |a| a.name);
        let mut entry = plain_entry(RangeTableKind::Subquery(Box::new(query)), name, has_alias, columns);
        entry.lateral = lateral;
        let mut item = self.add_entry(entry, &types, Oid::INVALID);
        for i in &mut item.namespace {
            i.rel_visible = has_alias;
        }
        item.item.rel_visible = has_alias;
        Ok(item)
    }

    fn check_name_conflicts(&self, a: &[NsItem], b: &[NsItem]) -> SqlResult<()> {
        for x in a.iter().filter(|x| x.rel_visible) {
            for y in b.iter().filter(|y| y.rel_visible) {
                let different_tables = x.relation.is_valid() && y.relation.is_valid() && x.relation != y.relation;
                if x.name == y.name && !different_tables {
                    return Err(SqlError::new(
                        SqlState::DuplicateAlias,
                        format!("table name \"{}\" specified more than once", x.name),
                    ));
                }
            }
        }
        Ok(())
    }

    fn from_join(&mut self, j: &pb::JoinExpr) -> SqlResult<FromItem> {
        let kind = match pb::JoinType::try_from(j.jointype) {
            Ok(pb::JoinType::JoinInner) => JoinKind::Inner,
            Ok(pb::JoinType::JoinLeft) => JoinKind::Left,
            Ok(pb::JoinType::JoinRight) => JoinKind::Right,
            Ok(pb::JoinType::JoinFull) => JoinKind::Full,
            _ => return self.unsupported(None, "this kind of join"),
        };
        let (Some(larg), Some(rarg)) = (&j.larg, &j.rarg) else {
            return Err(SqlError::internal("a join without sides"));
        };
        // A side that the join may fill with NULLs; a failed analysis needs no restoring.
        let (left_nulls, right_nulls) = match kind {
            JoinKind::Left => (0, 1),
            JoinKind::Right => (1, 0),
            JoinKind::Full => (1, 1),
            _ => (0, 0),
        };
        self.state.nullable_joins += left_nulls;
        let mut left = self.from_item(larg)?;
        self.state.nullable_joins -= left_nulls;
        // The right side may use the left one LATERALly.
        let lateral_ok = matches!(kind, JoinKind::Inner | JoinKind::Left);
        set_lateral(&mut left.namespace, true, lateral_ok);
        let before = self.state.namespace.len();
        self.state.namespace.extend(left.namespace.iter().cloned());
        self.state.nullable_joins += right_nulls;
        let right = self.from_item(rarg);
        self.state.nullable_joins -= right_nulls;
        self.state.namespace.truncate(before);
        let right = right?;
        self.check_name_conflicts(&left.namespace, &right.namespace)?;
        let mut namespace = left.namespace;
        namespace.extend(right.namespace);

        let using = if j.is_natural {
            left.item
                .columns
                .iter()
                .filter(|l| !l.name.is_empty() && right.item.columns.iter().any(|r| r.name == l.name))
                .map(|l| l.name.clone())
                .collect()
        } else {
            string_list(&j.using_clause)?
        };
        let mut merged: Vec<NsColumn> = Vec::new();
        let mut quals: Vec<Expr> = Vec::new();
        let mut used: (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
        for name in &using {
            if merged.iter().any(|c| c.name == *name) {
                return Err(SqlError::new(
                    SqlState::DuplicateColumn,
                    format!("column name \"{name}\" appears more than once in USING clause"),
                ));
            }
            let l = using_column(&left.item, name, "left")?;
            let r = using_column(&right.item, name, "right")?;
            used.0.push(l);
            used.1.push(r);
            let (Some(lc), Some(rc)) = (left.item.columns.get(l), right.item.columns.get(r)) else { continue };
            let (le, re) = (lc.expr.clone(), rc.expr.clone());
            self.mark_selected(&le)?;
            self.mark_selected(&re)?;
            let equal = self.make_op(&["=".to_owned()], Some(le.clone()), re.clone(), None)?;
            quals.push(self.coerce_to_boolean(equal, "JOIN/USING")?);
            let expr = self.merged_column(kind, le, re)?;
            merged.push(NsColumn { name: name.clone(), expr });
        }
        let merged_count = merged.len();
        let rest = |item: &NsItem, used: &[usize]| -> Vec<NsColumn> {
            let unused = item.columns.iter().enumerate().filter(|(i, _)| !used.contains(i));
            unused.map(|(_, c)| c.clone()).collect()
        };
        let using_item_columns = merged.clone();
        let mut columns = merged;
        columns.extend(rest(&left.item, &used.0));
        columns.extend(rest(&right.item, &used.1));

        set_lateral(&mut namespace, false, true);
        let mut quals = match quals.len() {
            0 | 1 => quals.pop(),
            _ => Some(Expr::Bool(BoolExpr { kind: BoolKind::And, args: quals, location: None })),
        };
        if let Some(on) = &j.quals {
            let outer = std::mem::replace(&mut self.state.namespace, namespace);
            let condition = self.where_clause(Some(on), ExprKind::JoinOn);
            namespace = std::mem::replace(&mut self.state.namespace, outer);
            quals = condition?;
        }

        let alias = alias_names(j.alias.as_ref())?;
        let own: Vec<String> = columns.iter().map(|c| c.name.clone()).collect();
        let names = self.aliased_columns(&own, alias.as_ref(), "join expression")?;
        for (c, n) in columns.iter_mut().zip(&names) {
            c.name.clone_from(n);
        }
        let alias_vars = columns.iter().map(|c| c.expr.clone()).collect();
        let has_alias = alias.is_some();
        let name = alias.map_or_else(|| "unnamed_join".to_owned(), |a| a.name);
        let rte_kind = RangeTableKind::Join { kind, alias_vars, merged_columns: merged_count };
        self.state.rtable.push(plain_entry(rte_kind, name.clone(), has_alias, names));
        let rtindex = self.state.rtable.len();

        if let Some(u) = &j.join_using_alias {
            // JOIN ... USING (...) AS name: reaches the merged columns only, qualified.
            let item = NsItem {
                name: u.aliasname.clone(),
                rtindex,
                relation: Oid::INVALID,
                columns: using_item_columns,
                rel_visible: true,
                cols_visible: false,
                lateral_only: false,
                lateral_ok: true,
            };
            self.check_name_conflicts(std::slice::from_ref(&item), &namespace)?;
            namespace.push(item);
        }
        // The join's own alias hides everything in it, the USING clause's alias too.
        if has_alias {
            namespace.clear();
        } else {
            for i in &mut namespace {
                i.cols_visible = false;
            }
        }
        let item = NsItem {
            name,
            rtindex,
            relation: Oid::INVALID,
            columns,
            rel_visible: has_alias,
            cols_visible: true,
            lateral_only: false,
            lateral_ok: true,
        };
        namespace.push(item.clone());
        let join = JoinExpr { kind, left: left.tree, right: right.tree, quals, relation: rtindex };
        Ok(FromItem { tree: JoinTree::Join(Box::new(join)), item, namespace })
    }

    /// What a USING column stands for.
    fn merged_column(&mut self, kind: JoinKind, left: Expr, right: Expr) -> SqlResult<Expr> {
        let both = [left.clone(), right.clone()];
        let ty = self.select_common_type(&both, Some("JOIN/USING"))?;
        let typmod = self.select_common_typmod(&both, ty);
        let left = self.coerce_merged(left, ty, typmod)?;
        let right = self.coerce_merged(right, ty, typmod)?;
        let mut merged = match kind {
            JoinKind::Left => left,
            JoinKind::Right => right,
            JoinKind::Full => {
                Expr::Coalesce(Coalesce { result_type: ty, collation: Oid::INVALID, args: vec![left, right] })
            }
            _ if matches!(left, Expr::Var(_)) || !matches!(right, Expr::Var(_)) => left,
            _ => right,
        };
        self.assign_collations(&mut merged)?;
        Ok(merged)
    }

    fn coerce_merged(&mut self, e: Expr, ty: Oid, typmod: i32) -> SqlResult<Expr> {
        use crate::coerce::Context;
        use stegodon_nodes::expr::{CoercionForm, Relabel};
        let input = self.expr_type(&e)?;
        if input != ty {
            return self.coerce_type(e, input, ty, typmod, Context::Implicit, CoercionForm::ImplicitCast, None);
        }
        if e.typmod() != typmod {
            let collation = e.collation();
            return Ok(Expr::Relabel(Relabel {
                arg: Box::new(e),
                result_type: ty,
                typmod,
                collation,
                form: CoercionForm::ImplicitCast,
            }));
        }
        Ok(e)
    }

    /// The columns of the items that a bare `*` reaches, in order.
    pub fn star_columns(&mut self, location: stegodon_nodes::expr::Location) -> SqlResult<Vec<(String, Expr)>> {
        let mut columns = Vec::new();
        let mut visible = false;
        for item in self.state.namespace.clone() {
            if !item.cols_visible {
                continue;
            }
            visible = true;
            columns.extend(self.item_columns(0, &item, location)?);
        }
        if visible {
            Ok(columns)
        } else {
            Err(self.error_at(location, SqlState::SyntaxError, "SELECT * with no tables specified is not valid"))
        }
    }

    /// All live columns of an item.
    pub fn item_columns(
        &mut self,
        up: u32,
        item: &NsItem,
        location: stegodon_nodes::expr::Location,
    ) -> SqlResult<Vec<(String, Expr)>> {
        let mut columns = Vec::new();
        for c in item.columns.iter().filter(|c| !c.name.is_empty()) {
            let e = seen_from(&c.expr, up, location);
            self.mark_selected(&e)?;
            columns.push((c.name.clone(), e));
        }
        Ok(columns)
    }
}

fn using_column(item: &NsItem, name: &str, side: &str) -> SqlResult<usize> {
    let mut found = item.columns.iter().enumerate().filter(|(_, c)| c.name == name).map(|(i, _)| i);
    match (found.next(), found.next()) {
        (Some(i), None) => Ok(i),
        (Some(_), Some(_)) => Err(SqlError::new(
            SqlState::AmbiguousColumn,
            format!("common column name \"{name}\" appears more than once in {side} table"),
        )),
        (None, _) => Err(SqlError::new(
            SqlState::UndefinedColumn,
            format!("column \"{name}\" specified in USING clause does not exist in {side} table"),
        )),
    }
}

fn set_lateral(items: &mut [NsItem], only: bool, ok: bool) {
    for i in items {
        i.lateral_only = only;
        i.lateral_ok = ok;
    }
}
