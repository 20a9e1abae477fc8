//! UNION, INTERSECT, EXCEPT.

use pg_query::protobuf as pb;
use stegodon_format::ids::Oid;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::{Collate, Location, SortGroupClause, TargetEntry};
use stegodon_nodes::query::{Query, RangeTableKind, SetOperand, SetOperation, SetOperationKind};
use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::context::{Analyzer, ExprKind, NsColumn, NsItem, STACK_BYTES, STACK_RED_ZONE_BYTES, make_var};
use crate::describe::value_type;
use crate::from::{plain_entry, query_columns};
use crate::oids;

/// A column of one side: its expression's stand-in for finding the common type.
#[derive(Clone)]
struct SideColumn {
    /// Type, typmod, collation.
    ty: (Oid, i32, Oid),
    location: Location,
    /// The leaf and column whose literal or parameter may still get its type.
    unknown: Option<(usize, usize)>,
    /// Whether COLLATE was written there.
    explicit: bool,
}

impl Analyzer<'_> {
    pub(crate) fn set_operation_stmt(&mut self, s: &pb::SelectStmt) -> SqlResult<Query> {
        let mut query = Query::default();
        self.with_clause(s.with_clause.as_ref())?;
        if let Some(lock) = crate::select::lock_strength(s) {
            return Err(SqlError::new(
                SqlState::FeatureNotSupported,
                format!("{lock} is not allowed with UNION/INTERSECT/EXCEPT"),
            ));
        }
        let (operand, columns) = self.set_operand(s, true)?;
        let SetOperand::Operation(operation) = operand else {
            return Err(SqlError::internal("a set operation that is none"));
        };
        // The outer query's outputs are the leftmost query's, by name and place.
        let leftmost = leftmost_relation(&operation);
        let Some(RangeTableKind::Subquery(first)) =
            leftmost.checked_sub(1).and_then(|i| self.state.rtable.get(i)).map(|r| &r.kind)
        else {
            return Err(SqlError::internal("a set operation without leaf"));
        };
        let names: Vec<(String, Location)> =
            first.outputs().map(|t| (t.name.clone().unwrap_or_default(), t.expr.location())).collect();
        let mut targets: Vec<TargetEntry> = Vec::new();
        let mut sort_columns = Vec::new();
        for (i, ((name, location), column)) in names.into_iter().zip(&columns).enumerate() {
            let mut var = make_var(leftmost, (i + 1) as i16, column.ty);
            if let Expr::Var(v) = &mut var {
                v.location = location;
            }
            sort_columns.push(NsColumn { name: name.clone(), expr: var.clone() });
            crate::target::push_target(&mut targets, var, Some(name));
        }
        // ORDER BY sees the outputs' names and nothing else.
        let item = NsItem {
            name: "*SELECT*".to_owned(),
            rtindex: leftmost,
            relation: Oid::INVALID,
            columns: sort_columns,
            rel_visible: false,
            cols_visible: true,
            lateral_only: false,
            lateral_ok: true,
        };
        let namespace = std::mem::replace(&mut self.state.namespace, vec![item]);
        let count = targets.len();
        let sorted = self.sort_clause(&s.sort_clause, &mut targets, ExprKind::OrderBy, false);
        self.state.namespace = namespace;
        query.order_by = sorted?;
        if let Some(added) = targets.get(count) {
            let e = self.error_at(
                added.expr.location(),
                SqlState::FeatureNotSupported,
                "invalid UNION/INTERSECT/EXCEPT ORDER BY clause",
            );
            return Err(e
                .detail("Only result column names can be used, not expressions or functions.")
                .hint("Add the expression/function to every SELECT, or move the UNION into a FROM clause."));
        }
        self.limits(s, &mut query)?;
        query.targets = targets;
        query.set_operations = Some(*operation);
        Ok(query)
    }

    fn set_operand(&mut self, s: &pb::SelectStmt, top: bool) -> SqlResult<(SetOperand, Vec<SideColumn>)> {
        stacker::maybe_grow(STACK_RED_ZONE_BYTES, STACK_BYTES, || self.set_operand_here(s, top))
    }

    fn set_operand_here(&mut self, s: &pb::SelectStmt, top: bool) -> SqlResult<(SetOperand, Vec<SideColumn>)> {
        let operator = pb::SetOperation::try_from(s.op);
        let decorated = !s.sort_clause.is_empty()
            || s.limit_count.is_some()
            || s.limit_offset.is_some()
            || !s.locking_clause.is_empty()
            || s.with_clause.is_some();
        if !top && let Some(into) = &s.into_clause {
            let location = into.rel.as_ref().and_then(|r| crate::context::loc(r.location));
            return Err(self.error_at(
                location,
                SqlState::SyntaxError,
                "INTO is only allowed on first SELECT of UNION/INTERSECT/EXCEPT",
            ));
        }
        if operator == Ok(pb::SetOperation::SetopNone) || (!top && decorated) {
            return self.set_leaf(s);
        }
        let (kind, name) = match operator {
            Ok(pb::SetOperation::SetopUnion) => (SetOperationKind::Union, "UNION"),
            Ok(pb::SetOperation::SetopIntersect) => (SetOperationKind::Intersect, "INTERSECT"),
            Ok(pb::SetOperation::SetopExcept) => (SetOperationKind::Except, "EXCEPT"),
            _ => return self.unsupported(None, "this set operation"),
        };
        let (Some(l), Some(r)) = (s.larg.as_deref(), s.rarg.as_deref()) else {
            return Err(SqlError::internal("a set operation without sides"));
        };
        // Where a recursive reference may not stand.
        let outside = self.state.inside_operation;
        let (inside_left, inside_right) = match kind {
            SetOperationKind::Intersect if s.all => (Some("INTERSECT"), Some("INTERSECT")),
            SetOperationKind::Except => (s.all.then_some("EXCEPT"), Some("EXCEPT")),
            _ => (None, None),
        };
        self.state.inside_operation = inside_left.or(outside);
        let (left, left_columns) = self.set_operand(l, false)?;
        if top && kind == SetOperationKind::Union && !self.recursing.is_empty() {
            self.note_left_side(self.operand_names(&left), left_columns.iter().map(|c| c.ty).collect());
        }
        self.state.inside_operation = inside_right.or(outside);
        let (right, right_columns) = self.set_operand(r, false)?;
        self.state.inside_operation = outside;
        if left_columns.len() != right_columns.len() {
            return Err(self.error_at(
                right_columns.iter().filter_map(|c| c.location).min(),
                SqlState::SyntaxError,
                format!("each {name} query must have the same number of columns"),
            ));
        }
        let keeps_all = kind == SetOperationKind::Union && s.all;
        let mut types = Vec::new();
        let mut group_by = Vec::new();
        let mut columns = Vec::new();
        for (l, r) in left_columns.into_iter().zip(right_columns) {
            let sides = [(l.ty.0, l.location), (r.ty.0, r.location)];
            let ty = self.select_common_of(&sides, Some(name))?;
            let l = self.settle(l, ty, name)?;
            let r = self.settle(r, ty, name)?;
            let typmod = if l.ty.0 == ty && r.ty.0 == ty && l.ty.1 == r.ty.1 { l.ty.1 } else { -1 };
            let mut le = stand_in(&l);
            let mut re = stand_in(&r);
            let collation = self.common_collation(&mut [&mut le, &mut re], keeps_all)?;
            if !keeps_all {
                let o = self.grouping(ty, l.location)?;
                group_by.push(SortGroupClause {
                    reference: 0,
                    equality: o.equal,
                    ordering: o.less,
                    descending: false,
                    nulls_first: false,
                    hashable: o.hashable,
                });
            }
            types.push((ty, typmod, collation));
            columns.push(SideColumn {
                ty: (ty, typmod, collation),
                location: l.location,
                unknown: None,
                explicit: false,
            });
        }
        let operation = SetOperation { kind, all: s.all, left, right, types, group_by };
        Ok((SetOperand::Operation(Box::new(operation)), columns))
    }

    /// The column names of a side: its leftmost query's.
    fn operand_names(&self, operand: &SetOperand) -> Vec<String> {
        let leaf = match operand {
            SetOperand::Relation(r) => *r,
            SetOperand::Operation(o) => leftmost_relation(o),
        };
        leaf.checked_sub(1).and_then(|i| self.state.rtable.get(i)).map(|e| e.columns.clone()).unwrap_or_default()
    }

    /// Checks that one side's column goes into the common type; a literal there gets it.
    fn settle(&mut self, mut c: SideColumn, ty: Oid, name: &str) -> SqlResult<SideColumn> {
        if c.ty.0 != oids::UNKNOWN {
            self.coerce_to_common(stand_in(&c), ty, name)?;
            return Ok(c);
        }
        let Some((leaf, column)) = c.unknown else { return Ok(c) };
        let Some(RangeTableKind::Subquery(q)) =
            leaf.checked_sub(1).and_then(|i| self.state.rtable.get_mut(i)).map(|r| &mut r.kind)
        else {
            return Err(SqlError::internal("a set operation without leaf"));
        };
        let Some(t) = q.targets.get_mut(column) else { return Err(SqlError::internal("no such column")) };
        if matches!(t.expr, Expr::Const(_) | Expr::Param(_)) {
            let e = std::mem::replace(&mut t.expr, crate::coerce::bool_const(false));
            let mut e = self.coerce_to_common(e, ty, name)?;
            self.assign_collations(&mut e)?;
            c.ty = (e.type_oid(), e.typmod(), e.collation());
            let found = leaf.checked_sub(1).and_then(|i| self.state.rtable.get_mut(i)).map(|r| &mut r.kind);
            if let Some(RangeTableKind::Subquery(q)) = found
                && let Some(t) = q.targets.get_mut(column)
            {
                t.expr = e;
            }
            return Ok(c);
        }
        self.unsupported(c.location, "an untyped expression in a set operation")
    }

    fn set_leaf(&mut self, s: &pb::SelectStmt) -> SqlResult<(SetOperand, Vec<SideColumn>)> {
        let query = self.subquery(s, false)?;
        let rtindex = self.state.rtable.len() + 1;
        let catalog = self.catalog();
        let columns = query
            .outputs()
            .enumerate()
            .map(|(i, t)| {
                let e = &t.expr;
                let ty = (value_type(e, catalog), e.typmod(), e.collation());
                let unknown = (ty.0 == oids::UNKNOWN).then_some((rtindex, i));
                SideColumn { ty, location: e.location(), unknown, explicit: matches!(e, Expr::Collate(_)) }
            })
            .collect();
        let names: Vec<String> = query_columns(&query, catalog).into_iter().map(|c| c.0).collect();
        let name = format!("*SELECT* {rtindex}");
        let kind = RangeTableKind::Subquery(Box::new(query));
        self.state.rtable.push(plain_entry(kind, name, true, names));
        Ok((SetOperand::Relation(rtindex), columns))
    }
}

/// An expression of the column's type and place, to ask the rules of coercion and collation about.
fn stand_in(c: &SideColumn) -> Expr {
    let mut var = make_var(1, 1, c.ty);
    if let Expr::Var(v) = &mut var {
        v.location = c.location;
    }
    if c.explicit {
        return Expr::Collate(Box::new(Collate { arg: var, collation: c.ty.2 }));
    }
    var
}

fn leftmost_relation(operation: &SetOperation) -> usize {
    let mut at = operation;
    loop {
        match &at.left {
            SetOperand::Relation(r) => return *r,
            SetOperand::Operation(o) => at = o,
        }
    }
}
