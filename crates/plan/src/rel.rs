//! Relations as planning sees them: base tables, their children, joins.

use std::collections::HashMap;
use std::rc::Rc;

use stegodon_catalog::Catalog;
use stegodon_format::ids::{AttrNumber, Oid};
use stegodon_nodes::Expr;

use crate::clause::Clause;
use crate::path::{PathList, QualCost};
use crate::relids::Relids;

/// What a path outputs, with its cost and width.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Target {
    /// The expressions with their `sort_group_ref`s.
    pub exprs: Vec<(Expr, u32)>,
    /// The cost of computing them.
    pub cost: QualCost,
    /// Their width in bytes.
    pub width: i32,
}

impl Target {
    /// Whether the expressions are the same, whatever refers to them.
    pub fn same_exprs(&self, other: &Target) -> bool {
        self.exprs.len() == other.exprs.len() && self.exprs.iter().zip(&other.exprs).all(|(a, b)| a.0 == b.0)
    }

    /// Adds an expression unless it is there.
    pub fn add(&mut self, expr: &Expr) {
        if !self.exprs.iter().any(|(e, _)| e == expr) {
            self.exprs.push((expr.clone(), 0));
        }
    }
}

/// An index.
#[derive(Clone, Debug)]
pub struct IndexInfo {
    pub oid: Oid,
    pub name: String,
    pub pages: f64,
    pub tuples: f64,
    /// -1 where unknown.
    pub height: i32,
    /// The table's columns, 0 for expressions; INCLUDE columns last.
    pub columns: Vec<AttrNumber>,
    pub key_count: usize,
    pub collations: Vec<Oid>,
    pub families: Vec<Oid>,
    pub input_types: Vec<Oid>,
    pub descending: Vec<bool>,
    pub nulls_first: Vec<bool>,
    pub unique: bool,
    pub immediate: bool,
    /// Over the table's columns.
    pub expressions: Vec<Expr>,
    pub predicate: Vec<Expr>,
    /// The query implies the predicate.
    pub predicate_ok: bool,
    /// The table's restrictions that are not implied by the predicate.
    pub restrictions: Vec<Rc<Clause>>,
    /// The random page cost of its tablespace.
    pub random_page_cost: f64,
}

impl IndexInfo {
    /// The expression that key or INCLUDE column `n` (from 0) holds.
    pub fn column_expr(&self, n: usize, rel: &Rel<'_>) -> Option<Expr> {
        let attno = *self.columns.get(n)?;
        if attno.0 == 0 {
            let nth = self.columns.iter().take(n).filter(|a| a.0 == 0).count();
            return self.expressions.get(nth).cloned();
        }
        rel.column(attno)
    }
}

/// The form of a base relation's column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColumnType {
    pub type_oid: Oid,
    pub typmod: i32,
    pub collation: Oid,
    /// Whether it can never be NULL.
    pub not_null: bool,
}

/// A relation: a base table, a subquery, a join.
#[derive(Clone)]
pub struct Rel<'a> {
    /// The range table index, 0 for a join.
    pub rti: usize,
    pub relids: Relids,
    /// `pg_class` OID, 0 where it is not a table.
    pub oid: Oid,
    /// Its columns, where it is in the range table.
    pub columns: Vec<ColumnType>,
    pub pages: f64,
    pub tuples: f64,
    pub all_visible: f64,
    pub indexes: Vec<Rc<IndexInfo>>,
    pub restrictions: Vec<Rc<Clause>>,
    pub target: Rc<Target>,
    pub rows: f64,
    /// Whether workers may compute it.
    pub parallel: bool,
    /// `parallel_workers` of its storage options.
    pub parallel_workers: Option<i32>,
    pub seq_page_cost: f64,
    pub random_page_cost: f64,
    /// The partitioned table (or inheritance parent) that this is expanded from.
    pub parent: Option<usize>,
    /// The children that remain after pruning.
    pub children: Vec<usize>,
    /// How many children pruning removed.
    pub pruned: usize,
    /// Statistics are over children too.
    pub inherited: bool,
    /// Widths of columns already looked up.
    pub widths: HashMap<AttrNumber, i32>,
    pub list: PathList<'a>,
    /// Proven to have no rows.
    pub dummy: bool,
    /// The scope of its equivalence classes.
    pub domain: usize,
}

impl<'a> Rel<'a> {
    pub fn new(rti: usize, relids: Relids, consider_startup: bool) -> Self {
        Self {
            rti,
            relids,
            oid: Oid::INVALID,
            columns: Vec::new(),
            pages: 0.0,
            tuples: 0.0,
            all_visible: 0.0,
            indexes: Vec::new(),
            restrictions: Vec::new(),
            target: Rc::default(),
            rows: 0.0,
            parallel: false,
            parallel_workers: None,
            seq_page_cost: 1.0,
            random_page_cost: 4.0,
            parent: None,
            children: Vec::new(),
            pruned: 0,
            inherited: false,
            widths: HashMap::new(),
            list: PathList::new(consider_startup),
            dummy: false,
            domain: 0,
        }
    }

    /// A reference to one of its columns.
    pub fn column(&self, attno: AttrNumber) -> Option<Expr> {
        if attno.0 < 0 {
            let type_oid = system_column_type(attno)?;
            return Some(crate::exprs::relation_var(self.rti, attno, type_oid, -1, Oid::INVALID));
        }
        let c = self.columns.get(usize::try_from(attno.0).ok()?.checked_sub(1)?)?;
        Some(crate::exprs::relation_var(self.rti, attno, c.type_oid, c.typmod, c.collation))
    }
}

/// The type of a system column.
pub fn system_column_type(attno: AttrNumber) -> Option<Oid> {
    Some(Oid(match attno.0 {
        -1 => 27,
        -2 | -4 => 28,
        -3 | -5 => 29,
        -6 => 26,
        _ => return None,
    }))
}

/// Whether text under this collation orders by its bytes (DESIGN D9). True also for no collation.
pub fn is_c_like(catalog: &Catalog, collation: Oid) -> bool {
    let byte_order = |locale: Option<&str>| matches!(locale, Some("C" | "POSIX"));
    let builtin = |locale: Option<&str>| matches!(locale, Some("C" | "C.UTF-8" | "C.UTF8" | "PG_UNICODE_FAST"));
    match collation.0 {
        0 | 950 | 951 => true,
        100 => catalog.database().is_some_and(|d| match d.locale_provider {
            b'b' => builtin(d.locale.as_deref()),
            b'c' => byte_order(Some(d.collate.as_str())),
            _ => false,
        }),
        _ => catalog.collation(collation).is_some_and(|c| {
            c.deterministic
                && match c.provider {
                    b'b' => builtin(c.locale.as_deref()),
                    b'c' => byte_order(c.collate.as_deref()),
                    _ => false,
                }
        }),
    }
}
