//! What columns a row value has, as far as its expression tells.

use stegodon_format::ids::{AttrNumber, Oid};
use stegodon_nodes::expr::{Var, VarSource};
use stegodon_nodes::query::{RangeTableEntry, RangeTableKind};
use stegodon_nodes::{Expr, Query};
use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::call::RowField;
use crate::context::Analyzer;
use crate::oids;

/// Where an expression stands: `below` are analysed queries around it, outermost first, under the level that is `up`
/// levels out of the innermost one in analysis.
#[derive(Clone)]
struct Place<'q> {
    up: u32,
    below: Vec<&'q Query>,
}

impl Analyzer<'_> {
    /// The columns of a row value, as far as they are known; dropped ones without a name.
    pub fn row_fields(&self, row: &Expr) -> SqlResult<Vec<RowField>> {
        let fields = self.row_fields_at(row, &Place { up: 0, below: Vec::new() })?;
        if fields.is_empty() && matches!(row, Expr::Var(v) if v.type_oid == oids::RECORD) {
            return Err(SqlError::new(SqlState::WrongObjectType, "record type has not been registered"));
        }
        Ok(fields)
    }

    fn row_fields_at(&self, row: &Expr, place: &Place<'_>) -> SqlResult<Vec<RowField>> {
        let ty = self.expr_type(row)?;
        if let Some(relation) = self.composite_relation(ty).and_then(|r| self.cx.catalog.relation(r)) {
            let field = |a: &stegodon_catalog::rows::Attribute| {
                let name = if a.dropped { String::new() } else { a.name.clone() };
                (name, (a.type_oid, a.typmod, a.collation))
            };
            return Ok(relation.attributes.iter().map(field).collect());
        }
        if ty != oids::RECORD {
            return Ok(Vec::new());
        }
        match row {
            Expr::Row(r) => {
                let mut fields = Vec::new();
                for (arg, name) in r.args.iter().zip(&r.names) {
                    fields.push((name.clone(), (self.expr_type(arg)?, arg.typmod(), arg.collation())));
                }
                Ok(fields)
            }
            Expr::Func(f) => Ok(self.out_columns(f.function, &f.args)?.unwrap_or_default()),
            Expr::Var(v) => self.var_fields(v, place),
            _ => Ok(Vec::new()),
        }
    }

    fn var_fields(&self, v: &Var, place: &Place<'_>) -> SqlResult<Vec<RowField>> {
        let VarSource::Relation(rtindex) = v.source else { return Ok(Vec::new()) };
        let Some((entry, place)) = self.entry_at(place, v.levels_up, rtindex) else { return Ok(Vec::new()) };
        let named = |types: Vec<(Oid, i32, Oid)>| Ok(entry.columns.iter().cloned().zip(types).collect());
        let types_of = |q: &Query| crate::from::query_columns(q, self.catalog()).into_iter().map(|c| c.1).collect();
        match &entry.kind {
            // The whole row.
            RangeTableKind::Subquery(q) if v.attno.0 == 0 => named(types_of(q)),
            RangeTableKind::Values { types, .. } | RangeTableKind::Cte { types, .. } if v.attno.0 == 0 => {
                named(types.clone())
            }
            RangeTableKind::Function { functions, ordinality } if v.attno.0 == 0 => {
                let ordinality = ordinality.then_some((oids::INT8, -1, Oid::INVALID));
                let columns = functions.iter().flat_map(|f| f.columns.iter().map(|c| (c.1, c.2, c.3)));
                named(columns.chain(ordinality).collect())
            }
            // A record in a column: what it is where it comes from.
            RangeTableKind::Subquery(q) => self.output_fields(q, v.attno, place),
            RangeTableKind::Cte { name, levels_up, self_reference: false, .. } => {
                match self.cte_at(&place, *levels_up, name) {
                    Some((q, place)) => self.output_fields(q, v.attno, place),
                    None => Ok(Vec::new()),
                }
            }
            _ => Ok(Vec::new()),
        }
    }

    fn output_fields<'q>(&'q self, q: &'q Query, attno: AttrNumber, mut place: Place<'q>) -> SqlResult<Vec<RowField>> {
        let nth = usize::try_from(attno.0).ok().and_then(|n| n.checked_sub(1));
        let Some(target) = nth.and_then(|n| q.outputs().nth(n)) else { return Ok(Vec::new()) };
        place.below.push(q);
        self.row_fields_at(&target.expr, &place)
    }

    /// An entry seen from a place, and the place that its subquery hangs below.
    fn entry_at<'q>(
        &'q self,
        place: &Place<'q>,
        levels_up: u32,
        rtindex: usize,
    ) -> Option<(&'q RangeTableEntry, Place<'q>)> {
        let place = climb(place, levels_up);
        let entries = match place.below.last() {
            Some(q) => &q.range_table,
            None => &self.level(place.up).ok()?.rtable,
        };
        let entry = rtindex.checked_sub(1).and_then(|i| entries.get(i))?;
        Some((entry, place))
    }

    /// A WITH query seen from the query that refers to it, and the place that it hangs below.
    fn cte_at<'q>(&'q self, place: &Place<'q>, levels_up: u32, name: &str) -> Option<(&'q Query, Place<'q>)> {
        let place = climb(place, levels_up);
        let ctes = match place.below.last() {
            Some(q) => &q.ctes,
            None => &self.level(place.up).ok()?.ctes,
        };
        ctes.iter().find(|c| c.name == name).map(|c| (&c.query, place))
    }
}

fn climb<'q>(place: &Place<'q>, levels_up: u32) -> Place<'q> {
    let mut place = place.clone();
    for _ in 0..levels_up {
        if place.below.pop().is_none() {
            place.up += 1;
        }
    }
    place
}
