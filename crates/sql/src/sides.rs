//! The sides of a set operation get the operation's types.
//!
//! Analysis only finds the common type of each column; PostgreSQL puts the casts in when it plans. Here:
//!
//! ```text
//!   a plain query             SELECT a FROM t            ->  SELECT a::numeric FROM t
//!   one whose rows the cast   SELECT DISTINCT a FROM t   ->  SELECT s.a::numeric FROM (SELECT DISTINCT a FROM t) s
//!   could change
//!   an operation of other     (x UNION y) UNION ALL z    ->  a leaf: SELECT s.a::numeric FROM (x UNION y) s
//!   types
//! ```

use stegodon_format::ids::Oid;
use stegodon_nodes::expr::VarSource;
use stegodon_nodes::query::{FromExpr, JoinTree, RangeTableEntry, RangeTableKind, SetOperand, SetOperation};
use stegodon_nodes::{Expr, Query};
use stegodon_types::{SqlError, SqlResult};

use crate::context::{AnalyzeContext, Analyzer, ParamTypes, STACK_BYTES, STACK_RED_ZONE_BYTES, make_var};
use crate::expand::raise_entry;
use crate::from::{plain_entry, query_columns};
use crate::setop::leftmost_relation;

/// A column's type, typmod and collation.
type ColumnType = (Oid, i32, Oid);

/// Puts the casts into the sides of a query's set operation.
pub(crate) fn conform_sides(query: &mut Query, cx: AnalyzeContext<'_>) -> SqlResult<()> {
    let Some(mut operation) = query.set_operations.take() else { return Ok(()) };
    let old = leftmost_relation(&operation);
    let mut sides = Sides { analyzer: Analyzer::new(cx, "", ParamTypes::default()), entries: &mut query.range_table };
    sides.operation(&mut operation)?;
    // The query's outputs are the leftmost leaf's columns.
    let new = leftmost_relation(&operation);
    for target in &mut query.targets {
        if let Expr::Var(v) = &mut target.expr
            && v.source == VarSource::Relation(old)
        {
            v.source = VarSource::Relation(new);
        }
    }
    query.set_operations = Some(operation);
    Ok(())
}

struct Sides<'a, 'q> {
    analyzer: Analyzer<'a>,
    entries: &'q mut Vec<RangeTableEntry>,
}

impl Sides<'_, '_> {
    fn operation(&mut self, operation: &mut SetOperation) -> SqlResult<()> {
        stacker::maybe_grow(STACK_RED_ZONE_BYTES, STACK_BYTES, || {
            let types = operation.types.clone();
            self.side(&mut operation.left, &types)?;
            self.side(&mut operation.right, &types)
        })
    }

    fn side(&mut self, side: &mut SetOperand, types: &[ColumnType]) -> SqlResult<()> {
        if let SetOperand::Operation(operation) = side {
            self.operation(operation)?;
            if operation.types.iter().map(|t| t.0).eq(types.iter().map(|t| t.0)) {
                return Ok(());
            }
            let inner = self.operation_as_query(operation)?;
            let columns = operation.types.clone();
            let names = query_columns(&inner).into_iter().map(|c| c.0).collect();
            let name = format!("*SELECT* {}", self.entries.len() + 1);
            let kind = RangeTableKind::Subquery(Box::new(inner));
            let mut entry = plain_entry(kind, name, true, names);
            self.cast_above(&mut entry, &columns, types)?;
            self.entries.push(entry);
            *side = SetOperand::Relation(self.entries.len());
            return Ok(());
        }
        let SetOperand::Relation(leaf) = side else { return Ok(()) };
        let index = leaf.checked_sub(1).filter(|i| *i < self.entries.len());
        let index = index.ok_or_else(|| SqlError::internal("a set operation without leaf"))?;
        let placeholder = plain_entry(RangeTableKind::Result, String::new(), false, Vec::new());
        let Some(place) = self.entries.get_mut(index) else { return Ok(()) };
        let mut entry = std::mem::replace(place, placeholder);
        let result = self.leaf(&mut entry, types);
        if let Some(place) = self.entries.get_mut(index) {
            *place = entry;
        }
        result
    }

    fn leaf(&mut self, entry: &mut RangeTableEntry, types: &[ColumnType]) -> SqlResult<()> {
        let RangeTableKind::Subquery(query) = &mut entry.kind else {
            return Err(SqlError::internal("a set operation over what is no subquery"));
        };
        let mut columns = Vec::new();
        for t in query.outputs() {
            columns.push((self.analyzer.expr_type(&t.expr)?, t.expr.typmod(), t.expr.collation()));
        }
        if columns.len() != types.len() {
            return Err(SqlError::internal("a set operation's sides differ in width"));
        }
        if columns.iter().zip(types).all(|(c, t)| c.0 == t.0) {
            return Ok(());
        }
        // A cast in place must change neither which rows there are nor their order, and fail for no row that is cut off.
        let plain = query.set_operations.is_none()
            && query.limit.is_none()
            && query.offset.is_none()
            && query.distinct.is_empty()
            && !query.has_target_srfs;
        let free = query.outputs().zip(types).all(|(t, ty)| t.sort_group_ref == 0 || t.expr.type_oid() == ty.0);
        if !(plain && free) {
            return self.cast_above(entry, &columns, types);
        }
        for (t, ty) in query.targets.iter_mut().filter(|t| !t.junk).zip(types) {
            let e = std::mem::replace(&mut t.expr, crate::coerce::bool_const(false));
            t.expr = self.cast(e, ty.0)?;
        }
        Ok(())
    }

    /// Makes an entry a subquery over itself that casts its columns.
    fn cast_above(
        &mut self,
        entry: &mut RangeTableEntry,
        columns: &[ColumnType],
        types: &[ColumnType],
    ) -> SqlResult<()> {
        let mut query = Query::default();
        for (i, (column, ty)) in columns.iter().zip(types).enumerate() {
            let e = self.cast(make_var(1, i as i16 + 1, *column), ty.0)?;
            crate::target::push_target(&mut query.targets, e, entry.columns.get(i).cloned());
        }
        query.from = FromExpr { items: vec![JoinTree::Relation(1)], quals: None };
        let (name, names) = (entry.name.clone(), entry.columns.clone());
        let around = plain_entry(RangeTableKind::Result, name, entry.has_alias, names);
        let mut own = std::mem::replace(entry, around);
        raise_entry(&mut own)?;
        query.range_table.push(own);
        entry.kind = RangeTableKind::Subquery(Box::new(query));
        Ok(())
    }

    fn cast(&mut self, e: Expr, ty: Oid) -> SqlResult<Expr> {
        let mut e = self.analyzer.coerce_to_common(e, ty, "UNION")?;
        self.analyzer.assign_collations(&mut e)?;
        Ok(e)
    }

    /// An operation inside another as a query of its own. Its leaves move into that; their places here stay, empty.
    fn operation_as_query(&mut self, operation: &SetOperation) -> SqlResult<Query> {
        let mut query = Query::default();
        let mut operation = operation.clone();
        self.move_leaves(&mut operation, &mut query)?;
        let leftmost = leftmost_relation(&operation);
        let names = query.range_table.get(leftmost.saturating_sub(1)).map(|e| e.columns.clone()).unwrap_or_default();
        for (i, ty) in operation.types.iter().enumerate() {
            let var = make_var(leftmost, i as i16 + 1, *ty);
            crate::target::push_target(&mut query.targets, var, names.get(i).cloned());
        }
        query.set_operations = Some(operation);
        Ok(query)
    }

    fn move_leaves(&mut self, operation: &mut SetOperation, into: &mut Query) -> SqlResult<()> {
        stacker::maybe_grow(STACK_RED_ZONE_BYTES, STACK_BYTES, || {
            for side in [&mut operation.left, &mut operation.right] {
                match side {
                    SetOperand::Operation(o) => self.move_leaves(o, into)?,
                    SetOperand::Relation(leaf) => {
                        let place = leaf.checked_sub(1).and_then(|i| self.entries.get_mut(i));
                        let place = place.ok_or_else(|| SqlError::internal("a set operation without leaf"))?;
                        let empty = plain_entry(RangeTableKind::Result, String::new(), false, Vec::new());
                        let mut own = std::mem::replace(place, empty);
                        raise_entry(&mut own)?;
                        into.range_table.push(own);
                        *leaf = into.range_table.len();
                    }
                }
            }
            Ok(())
        })
    }
}
