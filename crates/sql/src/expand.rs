//! Virtual generated columns, which are stored nowhere: a column becomes its expression, from `pg_attrdef`, and a whole row
//! of such a table a row of its columns.
//!
//! Where an outer join may fill the table with NULLs, the expression must be NULL there too, whatever it computes from NULLs.
//! There the table becomes a subquery that computes it below the join:
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
use stegodon_types::{SqlError, SqlResult};

use crate::context::make_var;
use crate::from::plain_entry;
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
            expansion.below_the_join(entry, rtindex, &read)?
        } else {
            expansion.in_place(&read)?
        };
        replacements.insert(rtindex, new);
    }
    replace(query, &replacements)
}

/// The columns read of each entry of this level, from here and from subqueries.
fn columns_read(query: &mut Query) -> SqlResult<BTreeMap<usize, BTreeSet<i16>>> {
    // A join's entry names all columns of its sides, and nothing points there any more.
    for entry in &mut query.range_table {
        if let RangeTableKind::Join { alias_vars, .. } = &mut entry.kind {
            alias_vars.clear();
        }
    }
    let mut read: BTreeMap<usize, BTreeSet<i16>> = BTreeMap::new();
    walk_query_mut(query, 0, 0, &mut |e, level| {
        if let Expr::Var(Var { source: VarSource::Relation(rtindex), attno, levels_up, .. }) = e
            && *levels_up == level
        {
            read.entry(*rtindex).or_default().insert(attno.0);
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
    fn of(entry: &RangeTableEntry, rtindex: usize, read: &BTreeSet<i16>, catalog: &Catalog) -> SqlResult<Option<Self>> {
        let RangeTableKind::Relation { relation, .. } = &entry.kind else { return Ok(None) };
        let Some(rel) = catalog.relation(*relation) else {
            return Err(SqlError::internal(format_args!("relation {relation} has gone")));
        };
        let is_read = |a: &Attribute| read.contains(&0) || read.contains(&a.number.0);
        if !rel.attributes.iter().any(|a| a.generated == b'v' && !a.dropped && is_read(a)) {
            return Ok(None);
        }
        Ok(Some(Self { columns: relation_columns(rel, rtindex, catalog)?, row_type: rel.row_type }))
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
        inner.range_table.push(own);
        inner.from = FromExpr { items: vec![JoinTree::Relation(1)], quals: None };
        entry.kind = RangeTableKind::Subquery(Box::new(inner));
        Ok(out)
    }
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
