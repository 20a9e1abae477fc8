//! ORDER BY, GROUP BY, DISTINCT, LIMIT, and conditions.

use pg_query::{NodeEnum, protobuf as pb};
use stegodon_catalog::operators::SortOperators;
use stegodon_format::ids::Oid;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::{CoercionForm, Location, SortGroupClause, TargetEntry};
use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::aggregate::{contains_own_aggregate, contains_own_var};
use crate::coerce::Context;
use crate::context::{Analyzer, ExprKind, loc};
use crate::equal::same;
use crate::names::string_list;
use crate::oids;
use crate::relation::column_fields;

impl Analyzer<'_> {
    /// A condition: WHERE, HAVING, ON, FILTER.
    pub(crate) fn where_clause(&mut self, node: Option<&pb::Node>, kind: ExprKind) -> SqlResult<Option<Expr>> {
        let Some(node) = node else { return Ok(None) };
        let e = self.with_kind(kind, |a| a.expr(node))?;
        self.coerce_to_boolean(e, kind.name()).map(Some)
    }

    /// LIMIT or OFFSET.
    pub(crate) fn limit_clause(
        &mut self,
        node: Option<&pb::Node>,
        kind: ExprKind,
        ties: bool,
    ) -> SqlResult<Option<Expr>> {
        let Some(node) = node else { return Ok(None) };
        let e = self.with_kind(kind, |a| a.expr(node))?;
        let e = self.coerce_to_specific(e, oids::INT8, kind.name())?;
        if contains_own_var(&e) {
            return Err(self.error_at(
                first_var(&e).or(e.location()),
                SqlState::InvalidColumnReference,
                format!("argument of {} must not contain variables", kind.name()),
            ));
        }
        if ties && crate::expr::is_null_constant(Some(node)) {
            return Err(SqlError::new(
                SqlState::InvalidRowCountInLimitClause,
                "row count cannot be null in FETCH FIRST ... WITH TIES clause",
            ));
        }
        Ok(Some(e))
    }

    /// The target that an item of ORDER BY, GROUP BY or DISTINCT ON means: by name, by position, or as an expression,
    /// which may add a junk target.
    pub(crate) fn find_target(
        &mut self,
        node: &pb::Node,
        targets: &mut Vec<TargetEntry>,
        kind: ExprKind,
        sql99: bool,
    ) -> SqlResult<usize> {
        if !sql99 {
            match node.node.as_ref() {
                Some(NodeEnum::ColumnRef(c)) => {
                    let (names, star) = column_fields(c)?;
                    if let ([name], false) = (names.as_slice(), star) {
                        let location = loc(c.location);
                        // GROUP BY prefers a column of FROM, as the standard asks.
                        let hidden = kind == ExprKind::GroupBy && self.column_by_name(name, true, location)?.is_some();
                        let mut found: Option<usize> = None;
                        if !hidden {
                            for (i, t) in targets.iter().enumerate() {
                                if t.junk || t.name.as_deref() != Some(name.as_str()) {
                                    continue;
                                }
                                match found.and_then(|f| targets.get(f)) {
                                    None => found = Some(i),
                                    Some(first) if same(&first.expr, &t.expr) => {}
                                    Some(_) => {
                                        return Err(self.error_at(
                                            location,
                                            SqlState::AmbiguousColumn,
                                            format!("{} \"{name}\" is ambiguous", kind.name()),
                                        ));
                                    }
                                }
                            }
                        }
                        if let Some(i) = found {
                            self.check_target(targets.get(i), kind, location)?;
                            return Ok(i);
                        }
                    }
                }
                Some(NodeEnum::AConst(c)) => {
                    let location = loc(c.location);
                    let position = match &c.val {
                        _ if c.isnull => None,
                        Some(pb::a_const::Val::Ival(i)) => Some(i.ival),
                        None => Some(0),
                        _ => None,
                    };
                    let Some(position) = position else {
                        return Err(self.error_at(
                            location,
                            SqlState::SyntaxError,
                            format!("non-integer constant in {}", kind.name()),
                        ));
                    };
                    let mut live = targets.iter().enumerate().filter(|(_, t)| !t.junk);
                    let nth = usize::try_from(position).ok().and_then(|p| p.checked_sub(1)).and_then(|p| live.nth(p));
                    let Some(i) = nth.map(|(i, _)| i) else {
                        return Err(self.error_at(
                            location,
                            SqlState::InvalidColumnReference,
                            format!("{} position {position} is not in select list", kind.name()),
                        ));
                    };
                    self.check_target(targets.get(i), kind, location)?;
                    return Ok(i);
                }
                _ => {}
            }
        }
        let e = self.with_kind(kind, |a| a.expr(node))?;
        if let Some(i) = targets.iter().position(|t| same(strip_implicit(&t.expr), &e)) {
            return Ok(i);
        }
        crate::target::push_target(targets, e, None);
        if let Some(t) = targets.last_mut() {
            t.junk = true;
        }
        Ok(targets.len() - 1)
    }

    fn check_target(&self, t: Option<&TargetEntry>, kind: ExprKind, location: Location) -> SqlResult<()> {
        let (Some(t), ExprKind::GroupBy) = (t, kind) else { return Ok(()) };
        if contains_own_aggregate(&t.expr) {
            return Err(self.error_at(
                crate::aggregate::first_aggregate(&t.expr).or(location),
                SqlState::GroupingError,
                "aggregate functions are not allowed in GROUP BY",
            ));
        }
        if t.expr.any(&mut |x| matches!(x, Expr::WindowFunc(_))) {
            return Err(self.error_at(
                location,
                SqlState::WindowingError,
                "window functions are not allowed in GROUP BY",
            ));
        }
        Ok(())
    }

    /// ORDER BY.
    pub(crate) fn sort_clause(
        &mut self,
        nodes: &[pb::Node],
        targets: &mut Vec<TargetEntry>,
        kind: ExprKind,
        sql99: bool,
    ) -> SqlResult<Vec<SortGroupClause>> {
        let mut list = Vec::new();
        for node in nodes {
            let Some(NodeEnum::SortBy(s)) = node.node.as_ref() else {
                return self.unsupported(None, "this ORDER BY item");
            };
            let Some(n) = s.node.as_deref() else { return Err(SqlError::internal("ORDER BY nothing")) };
            let at = self.find_target(n, targets, kind, sql99)?;
            self.add_to_sort_list(at, targets, &mut list, s)?;
        }
        Ok(list)
    }

    pub(crate) fn add_to_sort_list(
        &mut self,
        at: usize,
        targets: &mut [TargetEntry],
        list: &mut Vec<SortGroupClause>,
        s: &pb::SortBy,
    ) -> SqlResult<()> {
        let ty = self.resolve_unknown(at, targets)?;
        let written = s.node.as_deref().and_then(place_of_number);
        let location = written.or_else(|| targets.get(at).and_then(|t| t.expr.location()));
        let (ordering, equality, descending, hashable) = match pb::SortByDir::try_from(s.sortby_dir) {
            Ok(pb::SortByDir::SortbyDefault | pb::SortByDir::SortbyAsc) => {
                let o = self.ordering(ty, location)?;
                (o.less, o.equal, false, o.hashable)
            }
            Ok(pb::SortByDir::SortbyDesc) => {
                let o = self.ordering(ty, location)?;
                (o.greater, o.equal, true, o.hashable)
            }
            Ok(pb::SortByDir::SortbyUsing) => self.using_operator(ty, s)?,
            _ => return self.unsupported(location, "this ORDER BY direction"),
        };
        let nulls_first = match pb::SortByNulls::try_from(s.sortby_nulls) {
            Ok(pb::SortByNulls::SortbyNullsDefault) => descending,
            Ok(pb::SortByNulls::SortbyNullsFirst) => true,
            Ok(pb::SortByNulls::SortbyNullsLast) => false,
            _ => return self.unsupported(location, "this NULLS order"),
        };
        let reference = assign_reference(at, targets);
        let commutes = |o: Oid| self.cx.catalog.operator(o).is_some_and(|x| x.commutator == ordering);
        if list.iter().any(|c| c.reference == reference && (c.ordering == ordering || commutes(c.ordering))) {
            return Ok(());
        }
        list.push(SortGroupClause { reference, equality, ordering, descending, nulls_first, hashable });
        Ok(())
    }

    /// ORDER BY x USING op.
    fn using_operator(&mut self, ty: Oid, s: &pb::SortBy) -> SqlResult<(Oid, Oid, bool, bool)> {
        let location = loc(s.location);
        let name = string_list(&s.use_op)?;
        let op = self.find_operator(&name, ty, ty, location)?;
        let found = self
            .cx
            .catalog
            .amops_of_operator(op.oid)
            .iter()
            .find(|a| a.access_method == oids::BTREE && a.purpose == b's' && matches!(a.strategy, 1 | 5));
        let Some(amop) = found else {
            let e = self.error_at(
                location,
                SqlState::WrongObjectType,
                format!("operator {} is not a valid ordering operator", name.join(".")),
            );
            return Err(e.hint("Ordering operators must be \"<\" or \">\" members of btree operator families."));
        };
        let equality = self.cx.catalog.family_operator(amop.family, amop.left, amop.right, 3).unwrap_or_default();
        let hashable = self.sort_operators(ty).hashable;
        Ok((op.oid, equality, amop.strategy == 5, hashable))
    }

    /// A literal of unknown type that is sorted or grouped by is text.
    fn resolve_unknown(&mut self, at: usize, targets: &mut [TargetEntry]) -> SqlResult<Oid> {
        let Some(t) = targets.get_mut(at) else { return Err(SqlError::internal("no such target")) };
        let ty = self.expr_type(&t.expr)?;
        if ty != oids::UNKNOWN {
            return Ok(ty);
        }
        let e = std::mem::replace(&mut t.expr, crate::coerce::bool_const(false));
        t.expr = self.coerce_type(e, ty, oids::TEXT, -1, Context::Implicit, CoercionForm::ImplicitCast, None)?;
        Ok(oids::TEXT)
    }

    /// The operators to sort a type by; an error where it has none.
    pub(crate) fn ordering(&self, ty: Oid, location: Location) -> SqlResult<SortOperators> {
        let found = self.sort_operators(ty);
        if found.less.is_valid() && found.greater.is_valid() && found.equal.is_valid() {
            return Ok(found);
        }
        let e = self.error_at(
            location,
            SqlState::UndefinedFunction,
            format!("could not identify an ordering operator for type {}", self.type_name(ty)),
        );
        Err(e.hint("Use an explicit ordering operator or modify the query."))
    }

    /// The operators to group a type by; only equality must be there.
    pub(crate) fn grouping(&self, ty: Oid, location: Location) -> SqlResult<SortOperators> {
        let found = self.sort_operators(ty);
        if found.equal.is_valid() {
            return Ok(found);
        }
        Err(self.error_at(
            location,
            SqlState::UndefinedFunction,
            format!("could not identify an equality operator for type {}", self.type_name(ty)),
        ))
    }

    /// PARTITION BY, or GROUP BY without grouping sets.
    pub(crate) fn group_list(
        &mut self,
        nodes: &[pb::Node],
        targets: &mut Vec<TargetEntry>,
        sorted: &[SortGroupClause],
        kind: ExprKind,
        sql99: bool,
    ) -> SqlResult<Vec<SortGroupClause>> {
        let mut list = Vec::new();
        for node in nodes {
            let at = self.find_target(node, targets, kind, sql99)?;
            let reference = targets.get(at).map_or(0, |t| t.sort_group_ref);
            if reference > 0 {
                if list.iter().any(|c: &SortGroupClause| c.reference == reference) {
                    continue;
                }
                // What is sorted by anyway is grouped in the same order.
                if let Some(c) = sorted.iter().find(|c| c.reference == reference) {
                    list.push(c.clone());
                    continue;
                }
            }
            self.add_to_group_list(at, targets, &mut list, place_of_number(node))?;
        }
        Ok(list)
    }

    pub(crate) fn add_to_group_list(
        &mut self,
        at: usize,
        targets: &mut [TargetEntry],
        list: &mut Vec<SortGroupClause>,
        written: Location,
    ) -> SqlResult<()> {
        let ty = self.resolve_unknown(at, targets)?;
        let location = written.or_else(|| targets.get(at).and_then(|t| t.expr.location()));
        let reference = targets.get(at).map_or(0, |t| t.sort_group_ref);
        if reference > 0 && list.iter().any(|c| c.reference == reference) {
            return Ok(());
        }
        let o = self.grouping(ty, location)?;
        let reference = assign_reference(at, targets);
        list.push(SortGroupClause {
            reference,
            equality: o.equal,
            ordering: o.less,
            descending: false,
            nulls_first: false,
            hashable: o.hashable,
        });
        Ok(())
    }

    /// DISTINCT: all outputs, those sorted by first.
    pub(crate) fn distinct_clause(
        &mut self,
        targets: &mut [TargetEntry],
        sorted: &[SortGroupClause],
        in_aggregate: bool,
    ) -> SqlResult<Vec<SortGroupClause>> {
        let mut list = Vec::new();
        for c in sorted {
            let Some(t) = targets.iter().find(|t| t.sort_group_ref == c.reference) else { continue };
            if t.junk {
                return Err(self.error_at(
                    t.expr.location(),
                    SqlState::InvalidColumnReference,
                    if in_aggregate {
                        "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list"
                    } else {
                        "for SELECT DISTINCT, ORDER BY expressions must appear in select list"
                    },
                ));
            }
            list.push(c.clone());
        }
        for at in 0..targets.len() {
            if targets.get(at).is_some_and(|t| !t.junk) {
                self.add_to_group_list(at, targets, &mut list, None)?;
            }
        }
        if list.is_empty() {
            return Err(SqlError::new(
                SqlState::SyntaxError,
                if in_aggregate {
                    "an aggregate with DISTINCT must have at least one argument"
                } else {
                    "SELECT DISTINCT must have at least one column"
                },
            ));
        }
        Ok(list)
    }

    /// DISTINCT ON.
    pub(crate) fn distinct_on_clause(
        &mut self,
        nodes: &[pb::Node],
        targets: &mut Vec<TargetEntry>,
        sorted: &[SortGroupClause],
    ) -> SqlResult<Vec<SortGroupClause>> {
        let mut asked = Vec::new();
        for node in nodes {
            let at = self.find_target(node, targets, ExprKind::DistinctOn, false)?;
            let location = match node.node.as_ref() {
                Some(NodeEnum::ColumnRef(c)) => loc(c.location),
                Some(NodeEnum::AConst(c)) => loc(c.location),
                _ => targets.get(at).and_then(|t| t.expr.location()),
            };
            asked.push((at, assign_reference(at, targets), location));
        }
        let mismatch = |a: &Self, location: Location| {
            Err(a.error_at(
                location,
                SqlState::InvalidColumnReference,
                "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
            ))
        };
        let mut list: Vec<SortGroupClause> = Vec::new();
        let mut skipped = false;
        for c in sorted {
            if let Some(a) = asked.iter().find(|a| a.1 == c.reference) {
                if skipped {
                    return mismatch(self, a.2);
                }
                list.push(c.clone());
            } else {
                skipped = true;
            }
        }
        for (at, reference, location) in asked {
            if list.iter().any(|c| c.reference == reference) {
                continue;
            }
            if skipped {
                return mismatch(self, location);
            }
            self.add_to_group_list(at, targets, &mut list, None)?;
        }
        Ok(list)
    }
}

/// Gives a target a reference unless it has one.
fn assign_reference(at: usize, targets: &mut [TargetEntry]) -> u32 {
    let next = targets.iter().map(|t| t.sort_group_ref).max().unwrap_or(0) + 1;
    match targets.get_mut(at) {
        Some(t) if t.sort_group_ref == 0 => {
            t.sort_group_ref = next;
            next
        }
        Some(t) => t.sort_group_ref,
        None => 0,
    }
}

/// What an expression was before it was coerced without being asked.
fn strip_implicit(e: &Expr) -> &Expr {
    let implicit = |f: CoercionForm| f == CoercionForm::ImplicitCast;
    match e {
        Expr::Func(f) if implicit(f.form) => f.args.first().map_or(e, strip_implicit),
        Expr::Relabel(r) if implicit(r.form) => strip_implicit(&r.arg),
        Expr::CoerceViaIo(c) if implicit(c.form) => strip_implicit(&c.arg),
        Expr::ArrayCoerce(a) if implicit(a.form) => strip_implicit(&a.arg),
        Expr::CoerceToDomain(c) if implicit(c.form) => strip_implicit(&c.arg),
        _ => e,
    }
}

fn first_var(e: &Expr) -> Location {
    let mut found = None;
    e.any(&mut |x| match x {
        Expr::Var(v) if v.levels_up == 0 => {
            found = v.location;
            true
        }
        _ => false,
    });
    found
}

/// Where an output's number stands, in `ORDER BY 1`: errors about the output point there.
fn place_of_number(node: &pb::Node) -> Location {
    match node.node.as_ref() {
        Some(NodeEnum::AConst(c)) => loc(c.location),
        _ => None,
    }
}
