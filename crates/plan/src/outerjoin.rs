//! Outer joins that conditions above make into simpler ones (`reduce_outer_joins`): a condition that a row of NULLs
//! cannot satisfy needs no such rows.

use stegodon_nodes::Expr;
use stegodon_nodes::expr::{BoolKind, Var};
use stegodon_nodes::query::{FromExpr, JoinKind, JoinTree, Query};
use stegodon_types::SqlResult;

use crate::exprs::{self, strip_relabel};
use crate::implication::strict_for;
use crate::level::Level;
use crate::relids::Relids;

/// Reduces outer joins.
pub(crate) fn reduce(level: &Level<'_>, query: &mut Query) -> SqlResult<()> {
    let mut from = std::mem::take(&mut query.from);
    reduce_from(level, &mut from, &Relids::default());
    query.from = from;
    Ok(())
}

/// The relations of which some column must not be NULL for the condition to be true.
fn nonnullable(level: &Level<'_>, quals: Option<&Expr>) -> Relids {
    let mut out = Relids::default();
    let Some(q) = quals else { return out };
    for c in exprs::conjuncts(q.clone()) {
        if let Expr::Bool(b) = &c
            && b.kind == BoolKind::Or
        {
            // Each arm must demand it.
            let mut arms = b.args.iter().map(|a| nonnullable(level, Some(a)));
            if let Some(first) = arms.next() {
                let shared = arms.fold(first, |acc, r| acc.iter().filter(|x| r.contains(*x)).collect());
                out.add(&shared);
            }
            continue;
        }
        let mut vars = Vec::new();
        exprs::pull_vars(&c, &mut |_| false, &mut vars);
        for v in &vars {
            if let Expr::Var(Var { levels_up: 0, .. }) = v
                && let Some((rti, _)) = exprs::as_var(v)
                && strict_for(level, &c, strip_relabel(v))
            {
                out.insert(rti);
            }
        }
    }
    out
}

fn relids(tree: &JoinTree) -> Relids {
    match tree {
        JoinTree::Relation(r) => Relids::one(*r),
        JoinTree::Join(j) => relids(&j.left).union(&relids(&j.right)),
        JoinTree::From(f) => f.items.iter().fold(Relids::default(), |a, i| a.union(&relids(i))),
    }
}

fn reduce_from(level: &Level<'_>, from: &mut FromExpr, demanded: &Relids) {
    let demanded = demanded.union(&nonnullable(level, from.quals.as_ref()));
    for i in &mut from.items {
        reduce_tree(level, i, &demanded);
    }
}

fn reduce_tree(level: &Level<'_>, tree: &mut JoinTree, demanded: &Relids) {
    match tree {
        JoinTree::Relation(_) => {}
        JoinTree::From(f) => reduce_from(level, f, demanded),
        JoinTree::Join(j) => {
            let (l, r) = (relids(&j.left), relids(&j.right));
            let (left_demanded, right_demanded) = (l.overlaps(demanded), r.overlaps(demanded));
            j.kind = match j.kind {
                JoinKind::Left if right_demanded => JoinKind::Inner,
                JoinKind::Right if left_demanded => JoinKind::Inner,
                JoinKind::Full => match (left_demanded, right_demanded) {
                    (true, true) => JoinKind::Inner,
                    (true, false) => JoinKind::Left,
                    (false, true) => JoinKind::Right,
                    (false, false) => JoinKind::Full,
                },
                k => k,
            };
            let own = nonnullable(level, j.quals.as_ref());
            let none = Relids::default();
            // What must match for a row to pass is demanded below as well.
            let (below_left, below_right) = match j.kind {
                JoinKind::Inner | JoinKind::Semi => (demanded.union(&own), demanded.union(&own)),
                JoinKind::Left | JoinKind::Anti => (demanded.clone(), own),
                JoinKind::Right => (own, demanded.clone()),
                JoinKind::Full => (none.clone(), none),
            };
            reduce_tree(level, &mut j.left, &below_left);
            reduce_tree(level, &mut j.right, &below_right);
        }
    }
}
