//! GROUP BY, with GROUPING SETS, ROLLUP, CUBE and GROUPING().

use pg_query::{NodeEnum, protobuf as pb};
use stegodon_nodes::expr::{GroupingFunc, SortGroupClause, TargetEntry};
use stegodon_nodes::grouping::{GroupingSet, expand_grouping_sets};
use stegodon_nodes::levels::walk_query_mut;
use stegodon_nodes::{Expr, Query};
use stegodon_types::{SqlResult, SqlState};

use crate::context::{Analyzer, ExprKind, loc};
use crate::equal::same;

impl Analyzer<'_> {
    /// GROUP BY: what is grouped by, and the grouping sets over it (none for a plain list).
    pub(crate) fn group_clause(
        &mut self,
        nodes: &[pb::Node],
        distinct: bool,
        targets: &mut Vec<TargetEntry>,
        sorted: &[SortGroupClause],
    ) -> SqlResult<(Vec<SortGroupClause>, Vec<Vec<u32>>)> {
        let mut flat = Vec::new();
        flatten(nodes, &mut flat);
        // An empty set beside others adds nothing; alone it is the one group of everything.
        let empty = |n: &pb::Node| matches!(&n.node, Some(NodeEnum::GroupingSet(g)) if g.kind == pb::GroupingSetKind::GroupingSetEmpty as i32);
        let any = !flat.is_empty();
        flat.retain(|n| !empty(n));
        if any && flat.is_empty() {
            return Ok((Vec::new(), vec![Vec::new()]));
        }
        if !flat.iter().any(|n| matches!(n.node, Some(NodeEnum::GroupingSet(_)))) {
            let list = self.group_list(&flat, targets, sorted, ExprKind::GroupBy, false)?;
            return Ok((list, Vec::new()));
        }
        let mut list = Vec::new();
        let mut sets = Vec::new();
        for node in &flat {
            sets.push(match node.node.as_ref() {
                Some(NodeEnum::GroupingSet(g)) => self.grouping_set(g, targets, sorted, &mut list)?,
                _ => GroupingSet::Simple(vec![self.group_item(node, targets, sorted, &mut list)?]),
            });
        }
        Ok((list, expand_grouping_sets(&sets, distinct)?))
    }

    fn grouping_set(
        &mut self,
        g: &pb::GroupingSet,
        targets: &mut Vec<TargetEntry>,
        sorted: &[SortGroupClause],
        list: &mut Vec<SortGroupClause>,
    ) -> SqlResult<GroupingSet> {
        use pb::GroupingSetKind as Kind;
        const MAX_CUBE: usize = 12;
        let kind = Kind::try_from(g.kind);
        if kind == Ok(Kind::GroupingSetEmpty) {
            return Ok(GroupingSet::Empty);
        }
        // Only sets of sets are spliced into each other; in ROLLUP and CUBE a list is one element.
        let mut content = Vec::new();
        for node in &g.content {
            content.push(match node.node.as_ref() {
                Some(NodeEnum::GroupingSet(inner)) => self.grouping_set(inner, targets, sorted, list)?,
                Some(NodeEnum::RowExpr(r)) if is_list(r) => {
                    let mut flat = Vec::new();
                    flatten(&r.args, &mut flat);
                    let mut refs = Vec::new();
                    for item in &flat {
                        if matches!(item.node, Some(NodeEnum::GroupingSet(_))) {
                            return self.unsupported(loc(g.location), "a grouping set inside a list");
                        }
                        let reference = self.group_item(item, targets, sorted, list)?;
                        if !refs.contains(&reference) {
                            refs.push(reference);
                        }
                    }
                    GroupingSet::Simple(refs)
                }
                _ => GroupingSet::Simple(vec![self.group_item(node, targets, sorted, list)?]),
            });
        }
        match kind {
            Ok(Kind::GroupingSetSets) => Ok(GroupingSet::Sets(content)),
            Ok(Kind::GroupingSetRollup) => Ok(GroupingSet::Rollup(content)),
            Ok(Kind::GroupingSetCube) if content.len() > MAX_CUBE => Err(self.error_at(
                loc(g.location),
                SqlState::TooManyColumns,
                format!("CUBE is limited to {MAX_CUBE} elements"),
            )),
            Ok(Kind::GroupingSetCube) => Ok(GroupingSet::Cube(content)),
            _ => self.unsupported(loc(g.location), "this grouping set"),
        }
    }

    /// One expression to group by; answers its reference.
    fn group_item(
        &mut self,
        node: &pb::Node,
        targets: &mut Vec<TargetEntry>,
        sorted: &[SortGroupClause],
        list: &mut Vec<SortGroupClause>,
    ) -> SqlResult<u32> {
        let at = self.find_target(node, targets, ExprKind::GroupBy, false)?;
        let reference = targets.get(at).map_or(0, |t| t.sort_group_ref);
        if reference > 0 {
            if list.iter().any(|c| c.reference == reference) {
                return Ok(reference);
            }
            if let Some(c) = sorted.iter().find(|c| c.reference == reference) {
                list.push(c.clone());
                return Ok(reference);
            }
        }
        self.add_to_group_list(at, targets, list, None)?;
        Ok(targets.get(at).map_or(0, |t| t.sort_group_ref))
    }

    /// `GROUPING(...)`; its references are found once the query it belongs to is complete.
    pub(crate) fn grouping_func(&mut self, g: &pb::GroupingFunc) -> SqlResult<Expr> {
        const MAX_ARGS: usize = 31;
        let location = loc(g.location);
        if g.args.len() > MAX_ARGS {
            return Err(self.error_at(
                location,
                SqlState::TooManyArguments,
                "GROUPING must have fewer than 32 arguments",
            ));
        }
        let mut args = Vec::with_capacity(g.args.len());
        for node in &g.args {
            args.push(self.expr(node)?);
        }
        let levels_up = self.grouping_level(&args, location)?;
        self.level_mut(levels_up)?.has_aggregates = true;
        Ok(Expr::GroupingFunc(GroupingFunc { args, refs: Vec::new(), levels_up }))
    }

    /// Finds the references of the GROUPING()s that belong to `query`, wherever they stand.
    pub(crate) fn resolve_grouping_funcs(&self, query: &mut Query) -> SqlResult<()> {
        let mut grouped: Vec<(u32, Expr)> = Vec::new();
        for c in &query.group_by {
            if let Some(t) = query.targets.iter().find(|t| t.sort_group_ref == c.reference) {
                grouped.push((c.reference, t.expr.clone()));
            }
        }
        walk_query_mut(query, 0, 0, &mut |e, level| {
            let Expr::GroupingFunc(g) = e else { return Ok(true) };
            if g.levels_up != level {
                return Ok(true);
            }
            let mut refs = Vec::with_capacity(g.args.len());
            for arg in &g.args {
                let found = grouped.iter().find(|(_, e)| {
                    let mut outer = e.clone();
                    stegodon_nodes::levels::raise_levels(&mut outer, level).is_ok() && same(&outer, arg)
                });
                match found {
                    Some((reference, _)) => refs.push(*reference),
                    None => {
                        return Err(self.error_at(
                            arg.location(),
                            SqlState::GroupingError,
                            "arguments to GROUPING must be grouping expressions of the associated query level",
                        ));
                    }
                }
            }
            g.refs = refs;
            Ok(true)
        })
    }
}

fn is_list(r: &pb::RowExpr) -> bool {
    r.row_format == pb::CoercionForm::CoerceImplicitCast as i32
}

/// GROUP BY (a, b), c is GROUP BY a, b, c; sets of sets are one list of sets.
fn flatten(nodes: &[pb::Node], into: &mut Vec<pb::Node>) {
    for node in nodes {
        match node.node.as_ref() {
            Some(NodeEnum::RowExpr(r)) if is_list(r) => flatten(&r.args, into),
            _ => into.push(node.clone()),
        }
    }
}
