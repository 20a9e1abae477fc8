//! Making conditions simple: folding, NOT pushed down, AND and OR flattened, common arms of ORs drawn out (`prepqual.c`).

use stegodon_catalog::Catalog;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::*;
use stegodon_nodes::levels::{raise_levels, walk_query_mut};
use stegodon_nodes::query::*;
use stegodon_types::SqlResult;

use crate::context::Context;
use crate::exprs::{self, and, as_bool_const, bool_const, for_each_child_mut, or};

/// Pushes NOTs down to where an operator or test absorbs them.
pub fn push_not(catalog: &Catalog, e: &mut Expr) {
    if let Expr::Bool(BoolExpr { kind: BoolKind::Not, args, .. }) = e
        && let Some(arg) = args.first()
    {
        let negated = negate(catalog, arg);
        let unchanged = matches!(&negated, Expr::Bool(b) if b.kind == BoolKind::Not && b.args.first() == Some(arg));
        *e = negated;
        if unchanged {
            if let Expr::Bool(b) = e {
                b.args.iter_mut().for_each(|a| push_not(catalog, a));
            }
            return;
        }
        push_not(catalog, e);
        return;
    }
    for_each_child_mut(e, &mut |c| push_not(catalog, c));
}

/// The negation of a condition, in its simplest form.
pub fn negate(catalog: &Catalog, e: &Expr) -> Expr {
    let not = || Expr::Bool(BoolExpr { kind: BoolKind::Not, args: vec![e.clone()], location: None });
    match e {
        Expr::Const(_) => match as_bool_const(e) {
            Some(v) => bool_const(v.map(|b| !b)),
            None => not(),
        },
        Expr::Op(op) => match catalog.operator(op.operator).and_then(|o| catalog.operator(o.negator)) {
            Some(negator) => {
                let mut op = op.clone();
                op.operator = negator.oid;
                op.function = negator.function;
                Expr::Op(op)
            }
            None => not(),
        },
        Expr::ScalarArrayOp(s) => match catalog.operator(s.operator).and_then(|o| catalog.operator(o.negator)) {
            Some(negator) => {
                let mut s = s.clone();
                s.operator = negator.oid;
                s.function = negator.function;
                s.any = !s.any;
                Expr::ScalarArrayOp(s)
            }
            None => not(),
        },
        Expr::Bool(b) => match b.kind {
            BoolKind::And => or(b.args.iter().map(|a| negate(catalog, a)).collect()),
            BoolKind::Or => and(b.args.iter().map(|a| negate(catalog, a)).collect()),
            BoolKind::Not => b.args.first().cloned().unwrap_or_else(not),
        },
        Expr::NullTest(t) if !t.arg_is_row => {
            Expr::NullTest(Box::new(NullTest { is_null: !t.is_null, ..(**t).clone() }))
        }
        Expr::BooleanTest(t) => {
            use BooleanTestKind as K;
            let kind = match t.kind {
                K::IsTrue => K::IsNotTrue,
                K::IsNotTrue => K::IsTrue,
                K::IsFalse => K::IsNotFalse,
                K::IsNotFalse => K::IsFalse,
                K::IsUnknown => K::IsNotUnknown,
                K::IsNotUnknown => K::IsUnknown,
            };
            Expr::BooleanTest(Box::new(BooleanTest { kind, ..(**t).clone() }))
        }
        _ => not(),
    }
}

/// Flattens nested ANDs and ORs everywhere and drops arms that constants decide. `top` says whether NULL counts as false.
pub fn simplify(e: Expr, top: bool) -> Expr {
    let mut e = e;
    let inner_top = top && matches!(&e, Expr::Bool(b) if b.kind != BoolKind::Not);
    for_each_child_mut(&mut e, &mut |c| *c = simplify(std::mem::replace(c, bool_const(None)), inner_top));
    let Expr::Bool(b) = e else { return e };
    match b.kind {
        BoolKind::Not => match b.args.first().and_then(as_bool_const) {
            Some(v) => bool_const(v.map(|b| !b)),
            None => Expr::Bool(b),
        },
        kind => {
            let deciding = kind == BoolKind::Or;
            let mut args = Vec::new();
            let mut null = false;
            for a in b.args {
                match a {
                    Expr::Bool(x) if x.kind == kind => args.extend(x.args),
                    a => args.push(a),
                }
            }
            let mut kept = Vec::new();
            for a in args {
                match as_bool_const(&a) {
                    Some(Some(v)) if v == deciding => return bool_const(Some(deciding)),
                    Some(Some(_)) => {}
                    Some(None) if top && deciding => {}
                    Some(None) if top => return bool_const(Some(false)),
                    Some(None) => null = true,
                    None => kept.push(a),
                }
            }
            if null {
                kept.push(bool_const(None));
            }
            if kind == BoolKind::And { and(kept) } else { or(kept) }
        }
    }
}

/// `(a AND b) OR (a AND c)` becomes `a AND (b OR c)`, and repeated arms go.
pub fn canonical(e: Expr) -> Expr {
    draw_out(simplify(e, true))
}

fn draw_out(e: Expr) -> Expr {
    match e {
        Expr::Bool(BoolExpr { kind: BoolKind::And, args, .. }) => {
            let mut out: Vec<Expr> = Vec::new();
            for a in args {
                for c in exprs::conjuncts(draw_out(a)) {
                    out.push(c);
                }
            }
            and(out)
        }
        Expr::Bool(BoolExpr { kind: BoolKind::Or, args, .. }) => {
            let mut arms: Vec<Expr> = Vec::new();
            for a in args {
                let a = draw_out(a);
                match a {
                    Expr::Bool(b) if b.kind == BoolKind::Or => arms.extend(b.args),
                    a => arms.push(a),
                }
            }
            let parts: Vec<Vec<Expr>> = arms.iter().map(|a| exprs::conjuncts(a.clone())).collect();
            let Some(shortest) = parts.iter().min_by_key(|p| p.len()) else { return or(arms) };
            let mut winners: Vec<Expr> = Vec::new();
            for c in shortest {
                if !winners.contains(c) && parts.iter().all(|p| p.contains(c)) {
                    winners.push(c.clone());
                }
            }
            if winners.is_empty() {
                let mut unique: Vec<Expr> = Vec::new();
                arms.into_iter().for_each(|a| {
                    if !unique.contains(&a) {
                        unique.push(a);
                    }
                });
                return or(unique);
            }
            let mut rest = Vec::new();
            for p in parts {
                let left: Vec<Expr> = p.into_iter().filter(|c| !winners.contains(c)).collect();
                if left.is_empty() {
                    // One arm is just what all share: it decides.
                    return and(winners);
                }
                rest.push(and(left));
            }
            winners.push(or(rest));
            and(winners)
        }
        e => e,
    }
}

/// Does `f` to every expression of a query level, and, where `deep`, of the subqueries in its range table.
pub(crate) fn for_each_expr_mut(q: &mut Query, f: &mut dyn FnMut(&mut Expr) -> SqlResult<()>) -> SqlResult<()> {
    fn tree(t: &mut JoinTree, f: &mut dyn FnMut(&mut Expr) -> SqlResult<()>) -> SqlResult<()> {
        match t {
            JoinTree::Relation(_) => Ok(()),
            JoinTree::Join(j) => {
                tree(&mut j.left, f)?;
                tree(&mut j.right, f)?;
                j.quals.iter_mut().try_for_each(&mut *f)
            }
            JoinTree::From(x) => {
                x.items.iter_mut().try_for_each(|i| tree(i, f))?;
                x.quals.iter_mut().try_for_each(&mut *f)
            }
        }
    }
    for t in &mut q.targets {
        f(&mut t.expr)?;
    }
    for i in &mut q.from.items {
        tree(i, f)?;
    }
    q.from.quals.iter_mut().try_for_each(&mut *f)?;
    q.having.iter_mut().try_for_each(&mut *f)?;
    q.offset.iter_mut().try_for_each(&mut *f)?;
    q.limit.iter_mut().try_for_each(&mut *f)?;
    for w in &mut q.windows {
        w.start_offset.iter_mut().chain(w.end_offset.iter_mut()).try_for_each(&mut *f)?;
    }
    for r in &mut q.range_table {
        match &mut r.kind {
            RangeTableKind::Function { functions, .. } => {
                functions.iter_mut().try_for_each(|x| f(&mut x.call))?;
            }
            RangeTableKind::Values { rows, .. } => {
                rows.iter_mut().flatten().try_for_each(&mut *f)?;
            }
            RangeTableKind::Join { alias_vars, .. } => alias_vars.iter_mut().try_for_each(&mut *f)?,
            RangeTableKind::Group { exprs } => exprs.iter_mut().try_for_each(&mut *f)?,
            _ => {}
        }
    }
    Ok(())
}

/// How deep joins of joins are looked through.
const MAX_DEPTH: u32 = 1000;

/// Replaces columns of join entries by what they stand for, to the end, subqueries included.
pub(crate) fn expand_join_columns(q: &mut Query) -> SqlResult<()> {
    let mut entries: Vec<Option<Vec<Expr>>> = q
        .range_table
        .iter()
        .map(|r| match &r.kind {
            RangeTableKind::Join { alias_vars, .. } => Some(alias_vars.clone()),
            RangeTableKind::Group { exprs } => Some(exprs.clone()),
            _ => None,
        })
        .collect();
    if entries.iter().all(Option::is_none) {
        return Ok(());
    }
    fn column(entries: &[Option<Vec<Expr>>], v: &Var) -> Option<Expr> {
        let VarSource::Relation(rti) = v.source else { return None };
        let list = entries.get(rti.checked_sub(1)?)?.as_ref()?;
        list.get(usize::try_from(v.attno.0).ok()?.checked_sub(1)?).cloned()
    }
    fn expand(e: &mut Expr, entries: &[Option<Vec<Expr>>], depth: u32) {
        if depth > MAX_DEPTH {
            return;
        }
        let found = match e {
            Expr::Var(v) if v.levels_up == 0 => column(entries, v),
            _ => None,
        };
        if let Some(mut new) = found {
            exprs::strip_locations(&mut new);
            expand(&mut new, entries, depth + 1);
            *e = new;
        } else {
            for_each_child_mut(e, &mut |c| expand(c, entries, depth + 1));
        }
    }
    let written = entries.clone();
    entries.iter_mut().flatten().flatten().for_each(|e| expand(e, &written, 0));
    walk_query_mut(q, 0, 0, &mut |e, level| {
        let Expr::Var(v) = e else { return Ok(true) };
        if v.levels_up != level {
            return Ok(true);
        }
        let Some(mut new) = column(&entries, v) else { return Ok(true) };
        raise_levels(&mut new, level)?;
        *e = new;
        Ok(false)
    })
}

impl<'a> Context<'a> {
    /// Puts the values of `$n` in, where the plan is for these values only.
    pub(crate) fn bind_params(&self, e: &mut Expr) {
        let Some(values) = self.input.params else { return };
        exprs::replace(e, &mut |x| match x {
            Expr::Param(p) if p.kind == ParamKind::Extern => {
                let value = values.get((p.id as usize).checked_sub(1)?)?.clone();
                self.used_params.set(true);
                Some(Expr::Const(Const {
                    type_oid: p.type_oid,
                    typmod: p.typmod,
                    collation: p.collation,
                    value,
                    location: None,
                }))
            }
            _ => None,
        });
    }

    /// Folds an expression and, where it is a condition, brings it into canonical form.
    pub(crate) fn prepare(&self, e: Expr, condition: bool) -> SqlResult<Expr> {
        let mut e = e;
        exprs::strip_locations(&mut e);
        self.bind_params(&mut e);
        let mut e = self.input.evaluate.fold(e)?;
        exprs::strip_locations(&mut e);
        push_not(self.catalog(), &mut e);
        let e = simplify(e, false);
        Ok(if condition { canonical(e) } else { e })
    }
}
