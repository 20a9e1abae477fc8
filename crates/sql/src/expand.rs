//! Columns that are stored nowhere: virtual generated columns, and the whole rows of what is no plain table.
//!
//! ```text
//!   Var of a virtual column        ->  its expression, from pg_attrdef
//!   whole row of a subquery, view, ->  ROW(its columns)
//!   WITH query, VALUES, function,
//!   parent of other tables
//! ```
//!
//! Where an outer join may fill the entry with NULLs, the expression must be NULL there too, whatever it computes from NULLs.
//! There the entry becomes a subquery that computes it below the join:
//!
//! ```text
//!   a LEFT JOIN t   ->   a LEFT JOIN (SELECT its columns, [ROW(..)], [ctid, ..] FROM t) t
//! ```
//!
//! A generated column of a parent is computed by the parent's expression for the children too, as PostgreSQL does.

use std::collections::{BTreeMap, BTreeSet};

use stegodon_catalog::Catalog;
use stegodon_catalog::rows::{Attribute, Relation};
use stegodon_format::ids::Oid;
use stegodon_nodes::expr::{CoercionForm, Collate, Const, RowExpr, Var, VarSource};
use stegodon_nodes::levels::{raise_levels, walk_expr_mut, walk_query_mut};
use stegodon_nodes::query::{FromExpr, JoinKind, JoinTree, RangeTableEntry, RangeTableKind};
use stegodon_nodes::{Expr, Query, reader};
use stegodon_types::{SqlError, SqlResult, TypeKind};

use crate::context::make_var;
use crate::from::{plain_entry, query_columns};
use crate::oids;
use crate::relation::SYSTEM_COLUMNS;

/// A column: its name (empty where dropped), type, typmod, collation, and what it stands for as a Var or an expression.
struct Column {
    name: String,
    expr: Expr,
    stored: bool,
}

/// By column number, what stands there instead.
type Replacements = BTreeMap<i16, Expr>;

/// What is read of an entry.
#[derive(Default)]
struct Read {
    columns: BTreeSet<i16>,
    /// The type of the whole row, as analysis gave it to the reference.
    row_type: Oid,
}

/// Expands what an already rewritten query level reads of such columns; its subqueries are done.
pub(crate) fn expand(query: &mut Query, catalog: &Catalog) -> SqlResult<()> {
    let read = columns_read(query)?;
    if read.is_empty() {
        return Ok(());
    }
    let nullable = nullable_entries(query);
    let mut replacements: BTreeMap<usize, Replacements> = BTreeMap::new();
    for (rtindex, read) in read {
        let Some(entry) = rtindex.checked_sub(1).and_then(|i| query.range_table.get_mut(i)) else { continue };
        let Some(expansion) = Expansion::of(entry, rtindex, &read, catalog)? else { continue };
        let new = if nullable.contains(&rtindex) {
            let expansion = Expansion::of(entry, 1, &read, catalog)?;
            let expansion = expansion.ok_or_else(|| SqlError::internal("an entry has lost its columns"))?;
            expansion.below_the_join(entry, rtindex, &read.columns)?
        } else {
            expansion.in_place(&read.columns)?
        };
        replacements.insert(rtindex, new);
    }
    replace(query, &replacements)
}

/// The columns read of each entry of this level, from here and from subqueries.
fn columns_read(query: &mut Query) -> SqlResult<BTreeMap<usize, Read>> {
    // A join's entry names all columns of its sides, and nothing points there any more.
    for entry in &mut query.range_table {
        if let RangeTableKind::Join { alias_vars, .. } = &mut entry.kind {
            alias_vars.clear();
        }
    }
    let mut read: BTreeMap<usize, Read> = BTreeMap::new();
    walk_query_mut(query, 0, 0, &mut |e, level| {
        if let Expr::Var(Var { source: VarSource::Relation(rtindex), attno, levels_up, type_oid, .. }) = e
            && *levels_up == level
        {
            let entry = read.entry(*rtindex).or_default();
            entry.columns.insert(attno.0);
            if attno.0 == 0 {
                entry.row_type = *type_oid;
            }
        }
        Ok(true)
    })?;
    Ok(read)
}

fn replace(query: &mut Query, replacements: &BTreeMap<usize, Replacements>) -> SqlResult<()> {
    if replacements.is_empty() {
        return Ok(());
    }
    walk_query_mut(query, 0, 0, &mut |e, level| {
        let Expr::Var(v) = e else { return Ok(true) };
        let VarSource::Relation(rtindex) = v.source else { return Ok(true) };
        if v.levels_up != level {
            return Ok(true);
        }
        let Some(new) = replacements.get(&rtindex).and_then(|r| r.get(&v.attno.0)) else { return Ok(true) };
        let mut new = new.clone();
        raise_levels(&mut new, level)?;
        *e = new;
        // What was put in is not to be replaced again.
        Ok(false)
    })
}

/// The entries that an outer join may fill with NULLs.
fn nullable_entries(query: &Query) -> BTreeSet<usize> {
    fn tree(t: &JoinTree, below: bool, out: &mut BTreeSet<usize>) {
        match t {
            JoinTree::Relation(i) => {
                if below {
                    out.insert(*i);
                }
            }
            JoinTree::From(f) => f.items.iter().for_each(|i| tree(i, below, out)),
            JoinTree::Join(j) => {
                let (left, right) = match j.kind {
                    JoinKind::Inner | JoinKind::Semi => (false, false),
                    JoinKind::Left | JoinKind::Anti => (false, true),
                    JoinKind::Right => (true, false),
                    JoinKind::Full => (true, true),
                };
                tree(&j.left, below || left, out);
                tree(&j.right, below || right, out);
            }
        }
    }
    let mut out = BTreeSet::new();
    query.from.items.iter().for_each(|i| tree(i, false, &mut out));
    out
}

/// What the columns of an entry stand for.
struct Expansion {
    columns: Vec<Column>,
    row_type: Oid,
}

impl Expansion {
    /// `None` where nothing that is read needs it.
    fn of(entry: &RangeTableEntry, rtindex: usize, read: &Read, catalog: &Catalog) -> SqlResult<Option<Self>> {
        let whole = read.columns.contains(&0);
        let typed = |types: &[(Oid, i32, Oid)]| -> Vec<Column> {
            let name = |i: usize| entry.columns.get(i).cloned().unwrap_or_default();
            let column = |(i, ty): (usize, &(Oid, i32, Oid))| Column {
                name: name(i),
                expr: make_var(rtindex, i as i16 + 1, *ty),
                stored: true,
            };
            types.iter().enumerate().map(column).collect()
        };
        let columns = match &entry.kind {
            RangeTableKind::Relation { relation, inherit, .. } => {
                let Some(rel) = catalog.relation(*relation) else {
                    return Err(SqlError::internal(format_args!("relation {relation} has gone")));
                };
                let generated = |a: &&Attribute| a.generated == b'v' && !a.dropped;
                let reads_generated =
                    rel.attributes.iter().filter(generated).any(|a| whole || read.columns.contains(&a.number.0));
                let row_of_children = whole && *inherit && !rel.children.is_empty();
                if !reads_generated && !row_of_children {
                    return Ok(None);
                }
                relation_columns(rel, rtindex, catalog)?
            }
            _ if !whole => return Ok(None),
            RangeTableKind::Subquery(q) => typed(&query_columns(q).into_iter().map(|(_, ty)| ty).collect::<Vec<_>>()),
            RangeTableKind::Values { types, .. } | RangeTableKind::Cte { types, .. } => typed(types),
            RangeTableKind::Function { functions, ordinality } => {
                let all = functions.iter().flat_map(|f| f.columns.iter().map(|c| (c.1, c.2, c.3)));
                let ordinality = ordinality.then_some((oids::INT8, -1, Oid::INVALID));
                typed(&all.chain(ordinality).collect::<Vec<_>>())
            }
            RangeTableKind::Join { .. } | RangeTableKind::Group { .. } | RangeTableKind::Result => return Ok(None),
        };
        if whole && read.row_type != oids::RECORD {
            // A named row type has a place for every column that it ever had.
            let row = match catalog.type_desc(read.row_type).map(|t| &t.kind) {
                Some(TypeKind::Composite { relation }) => catalog.relation(*relation),
                _ => None,
            };
            if row.is_none_or(|r| r.attributes.len() != columns.len()) {
                return Err(SqlError::unsupported("a whole row whose type has other columns"));
            }
        }
        Ok(Some(Self { columns, row_type: read.row_type }))
    }

    /// The row of all columns, as a Var of the whole row would give it.
    fn row(&self) -> Expr {
        Expr::Row(RowExpr {
            args: self.columns.iter().map(|c| c.expr.clone()).collect(),
            row_type: self.row_type,
            names: self.columns.iter().map(|c| c.name.clone()).collect(),
            form: CoercionForm::ImplicitCast,
            location: None,
        })
    }

    fn in_place(&self, read: &BTreeSet<i16>) -> SqlResult<Replacements> {
        let mut out = Replacements::new();
        for &attno in read {
            match self.column(attno)? {
                None if attno == 0 => drop(out.insert(0, self.row())),
                Some(c) if !c.stored => drop(out.insert(attno, c.expr.clone())),
                _ => {}
            }
        }
        Ok(out)
    }

    fn column(&self, attno: i16) -> SqlResult<Option<&Column>> {
        if attno <= 0 {
            return Ok(None);
        }
        let found = self.columns.get(usize::from(attno.unsigned_abs()) - 1);
        found.map(Some).ok_or_else(|| SqlError::internal("no such column"))
    }

    /// Makes the entry a subquery over itself that computes what is read. The expansion's own Vars are of entry 1.
    fn below_the_join(
        &self,
        entry: &mut RangeTableEntry,
        rtindex: usize,
        read: &BTreeSet<i16>,
    ) -> SqlResult<Replacements> {
        if entry.lateral {
            return Err(SqlError::unsupported("a whole row of a LATERAL item below an outer join"));
        }
        let mut inner = Query::default();
        let mut used = read.clone();
        if read.contains(&0) {
            used.extend(1..=self.columns.len() as i16);
        }
        for (i, c) in self.columns.iter().enumerate() {
            let attno = i as i16 + 1;
            let expr = if used.contains(&attno) { c.expr.clone() } else { null(c.expr.type_oid()) };
            crate::target::push_target(&mut inner.targets, expr, Some(c.name.clone()));
        }
        let mut out = Replacements::new();
        for &attno in read.range(..=0) {
            let expr = if attno == 0 {
                self.row()
            } else {
                let known = SYSTEM_COLUMNS.iter().find(|c| c.1 == attno);
                let known = known.ok_or_else(|| SqlError::internal("no such system column"))?;
                make_var(1, attno, (known.2, -1, Oid::INVALID))
            };
            let place = inner.targets.len() as i16 + 1;
            let ty = (expr.type_oid(), expr.typmod(), expr.collation());
            crate::target::push_target(&mut inner.targets, expr, Some(String::new()));
            out.insert(attno, make_var(rtindex, place, ty));
        }
        let names = inner.targets.iter().map(|t| t.name.clone().unwrap_or_default()).collect();
        let around = plain_entry(RangeTableKind::Result, entry.name.clone(), entry.has_alias, names);
        let mut own = std::mem::replace(entry, around);
        // The privileges are noted already.
        own.requires_select = false;
        raise_entry(&mut own)?;
        inner.range_table.push(own);
        inner.from = FromExpr { items: vec![JoinTree::Relation(1)], quals: None };
        entry.kind = RangeTableKind::Subquery(Box::new(inner));
        Ok(out)
    }
}

/// An entry has moved one query in: what it refers to outside is one level further out.
pub(crate) fn raise_entry(entry: &mut RangeTableEntry) -> SqlResult<()> {
    match &mut entry.kind {
        RangeTableKind::Cte { levels_up, .. } => *levels_up += 1,
        RangeTableKind::Values { rows, .. } => {
            rows.iter_mut().flatten().try_for_each(|e| raise_levels(e, 1))?;
        }
        RangeTableKind::Function { functions, .. } => {
            functions.iter_mut().try_for_each(|f| raise_levels(&mut f.call, 1))?;
        }
        RangeTableKind::Subquery(q) => {
            // As the subquery of an expression, which is one level further in than the expression.
            let link = stegodon_nodes::expr::SubLink {
                kind: stegodon_nodes::expr::SubLinkKind::Exists,
                test: None,
                query: std::mem::take(q),
                location: None,
            };
            let mut e = Expr::SubLink(Box::new(link));
            raise_levels(&mut e, 1)?;
            if let Expr::SubLink(link) = e {
                **q = link.query;
            }
        }
        _ => {}
    }
    Ok(())
}

fn null(type_oid: Oid) -> Expr {
    Expr::Const(Const { type_oid, typmod: -1, collation: Oid::INVALID, value: None, location: None })
}

/// The columns of a table: what generated ones are computed from, NULL for dropped ones.
fn relation_columns(rel: &Relation, rtindex: usize, catalog: &Catalog) -> SqlResult<Vec<Column>> {
    let column = |a: &Attribute| -> SqlResult<Column> {
        if a.dropped {
            return Ok(Column { name: String::new(), expr: null(oids::INT4), stored: true });
        }
        let stored = a.generated != b'v';
        let expr = if stored {
            make_var(rtindex, a.number.0, (a.type_oid, a.typmod, a.collation))
        } else {
            generation_expression(rel, a, rtindex, catalog)?
        };
        Ok(Column { name: a.name.clone(), expr, stored })
    };
    rel.attributes.iter().map(column).collect()
}

/// What a virtual generated column is computed from.
fn generation_expression(rel: &Relation, a: &Attribute, rtindex: usize, catalog: &Catalog) -> SqlResult<Expr> {
    let lacking = || {
        SqlError::internal(format_args!("no generation expression found for column \"{}\" of \"{}\"", a.name, rel.name))
    };
    let mut expr = reader::read_expr(a.default.as_ref().ok_or_else(lacking)?, catalog)?;
    walk_expr_mut(&mut expr, 0, 0, &mut |e, level| {
        match e {
            Expr::Var(v) if v.levels_up == level && v.source == VarSource::Relation(1) => {
                v.source = VarSource::Relation(rtindex);
            }
            Expr::Var(_) | Expr::SubLink(_) => {
                return Err(SqlError::internal("a generation expression refers to other tables"));
            }
            _ => {}
        }
        Ok(true)
    })?;
    if a.collation.is_valid() && a.collation != expr.collation() {
        expr = Expr::Collate(Box::new(Collate { arg: expr, collation: a.collation }));
    }
    Ok(expr)
}
