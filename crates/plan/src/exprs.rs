//! Walking expressions, and what can be asked of one without the catalogs.

use std::convert::Infallible;

use stegodon_format::ids::{AttrNumber, Oid};
use stegodon_nodes::Expr;
use stegodon_nodes::expr::*;
use stegodon_types::Datum;

use crate::relids::Relids;

/// `bool`
pub const BOOL: Oid = Oid(16);
/// `int8`
pub const INT8: Oid = Oid(20);
/// `int4`
pub const INT4: Oid = Oid(23);
/// `text`
pub const TEXT: Oid = Oid(25);
/// `tid`
pub const TID: Oid = Oid(27);
/// `record`
pub const RECORD: Oid = Oid(2249);

/// Calls `f` for each direct child.
pub fn for_each_child<'e>(e: &'e Expr, f: &mut dyn FnMut(&'e Expr)) {
    let Ok(()) = e.try_each_child::<Infallible>(&mut |child| {
        f(child);
        Ok(())
    });
}

/// Calls `f` for each direct child, to be changed in place.
pub fn for_each_child_mut(e: &mut Expr, f: &mut dyn FnMut(&mut Expr)) {
    let Ok(()) = e.try_each_child_mut::<Infallible>(&mut |child| {
        f(child);
        Ok(())
    });
}

/// Visits `e` and all below, parents first; `f` says whether to go below.
pub fn walk<'e>(e: &'e Expr, f: &mut dyn FnMut(&'e Expr) -> bool) {
    if f(e) {
        for_each_child(e, &mut |c| walk(c, f));
    }
}

/// Whether any node below or at `e` is such that `f`.
pub fn any(e: &Expr, f: &mut dyn FnMut(&Expr) -> bool) -> bool {
    let mut found = false;
    walk(e, &mut |x| {
        found = found || f(x);
        !found
    });
    found
}

/// Rebuilds `e`: where `f` gives a replacement it is taken as it is, elsewhere the children are rebuilt.
pub fn replace(e: &mut Expr, f: &mut dyn FnMut(&Expr) -> Option<Expr>) {
    if let Some(new) = f(e) {
        *e = new;
    } else {
        for_each_child_mut(e, &mut |c| replace(c, f));
    }
}

/// As [`replace`], of a copy, by a function that can fail.
pub fn try_replaced<E>(e: &Expr, f: &mut dyn FnMut(&Expr) -> Result<Option<Expr>, E>) -> Result<Expr, E> {
    let mut out = e.clone();
    let mut failed = None;
    replace(&mut out, &mut |x| match f(x) {
        Ok(new) => new,
        Err(error) => {
            failed.get_or_insert(error);
            Some(x.clone())
        }
    });
    failed.map_or(Ok(out), Err)
}

/// As [`replace`], of a copy.
pub fn replaced(e: &Expr, f: &mut dyn FnMut(&Expr) -> Option<Expr>) -> Expr {
    match try_replaced::<Infallible>(e, &mut |x| Ok(f(x))) {
        Ok(out) => out,
        Err(never) => match never {},
    }
}

/// Forgets where things stood in the statement, so that equal expressions compare equal.
pub fn strip_locations(e: &mut Expr) {
    match e {
        Expr::Var(x) => x.location = None,
        Expr::Const(x) => x.location = None,
        Expr::Param(x) => x.location = None,
        Expr::Aggref(x) => x.location = None,
        Expr::Func(x) => x.location = None,
        Expr::Op(x) | Expr::Distinct(x) | Expr::NullIf(x) => x.location = None,
        Expr::ScalarArrayOp(x) => x.location = None,
        Expr::Bool(x) => x.location = None,
        Expr::SubLink(x) => x.location = None,
        Expr::Array(x) => x.location = None,
        Expr::Row(x) => x.location = None,
        _ => {}
    }
    for_each_child_mut(e, &mut strip_locations);
}

/// The type of `e`'s value.
pub fn type_of(e: &Expr) -> Oid {
    e.type_oid()
}

/// The typmod of `e`'s value, -1 where none is known.
pub fn typmod_of(e: &Expr) -> i32 {
    match e {
        Expr::Var(x) => x.typmod,
        Expr::Const(x) => x.typmod,
        Expr::Param(x) => x.typmod,
        Expr::Subscript(x) => x.typmod,
        Expr::FieldSelect(x) => x.typmod,
        Expr::Relabel(x) => x.typmod,
        Expr::ArrayCoerce(x) => x.typmod,
        Expr::CoerceToDomain(x) => x.typmod,
        Expr::SubPlan(x) => x.typmod,
        Expr::SubLink(x) if x.kind == SubLinkKind::Expr => {
            x.query.targets.iter().find(|t| !t.junk).map_or(-1, |t| typmod_of(&t.expr))
        }
        Expr::Collate(x) => typmod_of(&x.arg),
        Expr::CaseTest(x) => x.typmod,
        Expr::SqlValue(x) => x.typmod,
        Expr::NullIf(x) => x.args.first().map_or(-1, typmod_of),
        // A length coercion's typmod is its second argument.
        Expr::Func(x) if matches!(x.form, CoercionForm::ExplicitCast | CoercionForm::ImplicitCast) => {
            match x.args.get(1) {
                Some(Expr::Const(Const { type_oid: INT4, value: Some(Datum::Int32(n)), .. })) => *n,
                _ => -1,
            }
        }
        Expr::Case(x) => same_typmod(x.whens.iter().map(|w| &w.1).chain([&x.default]), x.result_type),
        Expr::Coalesce(x) => same_typmod(x.args.iter(), x.result_type),
        Expr::MinMax(x) => same_typmod(x.args.iter(), x.result_type),
        _ => -1,
    }
}

fn same_typmod<'e>(mut args: impl Iterator<Item = &'e Expr>, result: Oid) -> i32 {
    let Some(first) = args.next() else { return -1 };
    let typmod = typmod_of(first);
    let agrees = |e: &Expr| type_of(e) == result && typmod_of(e) == typmod;
    if typmod >= 0 && agrees(first) && args.all(agrees) { typmod } else { -1 }
}

/// The collation of `e`'s value.
pub fn collation_of(e: &Expr) -> Oid {
    match e {
        Expr::Var(x) => x.collation,
        Expr::Const(x) => x.collation,
        Expr::Param(x) => x.collation,
        Expr::Aggref(x) => x.collation,
        Expr::WindowFunc(x) => x.collation,
        Expr::Subscript(x) => x.collation,
        Expr::Func(x) => x.collation,
        Expr::Op(x) | Expr::NullIf(x) => x.collation,
        Expr::SubLink(x) if x.kind == SubLinkKind::Expr => {
            x.query.targets.iter().find(|t| !t.junk).map_or(Oid::INVALID, |t| collation_of(&t.expr))
        }
        Expr::SubPlan(x) => x.collation,
        Expr::FieldSelect(x) => x.collation,
        Expr::Relabel(x) => x.collation,
        Expr::CoerceViaIo(x) => x.collation,
        Expr::ArrayCoerce(x) => x.collation,
        Expr::Collate(x) => x.collation,
        Expr::Case(x) => x.collation,
        Expr::CaseTest(x) => x.collation,
        Expr::Array(x) => x.collation,
        Expr::Coalesce(x) => x.collation,
        Expr::MinMax(x) => x.collation,
        Expr::SqlValue(x) if x.type_oid == Oid(19) => Oid(950),
        Expr::CoerceToDomain(x) => x.collation,
        _ => Oid::INVALID,
    }
}

/// The relations of this query level that `e` reads.
pub fn relids_of(e: &Expr) -> Relids {
    let mut out = Relids::default();
    walk(e, &mut |x| {
        if let Expr::Var(Var { source: VarSource::Relation(r), levels_up: 0, .. }) = x {
            out.insert(*r);
        }
        true
    });
    out
}

/// Collects the `Var`s of this level, and whole [`Aggref`]s and other upper-level things where `stop` says so.
pub fn pull_vars(e: &Expr, stop: &mut dyn FnMut(&Expr) -> bool, out: &mut Vec<Expr>) {
    walk(e, &mut |x| {
        let is_var = matches!(x, Expr::Var(v) if v.levels_up == 0);
        if is_var || stop(x) {
            if !out.contains(x) {
                out.push(x.clone());
            }
            return false;
        }
        true
    });
}

/// Whether `e` has an aggregate of this level.
pub fn has_aggregate(e: &Expr) -> bool {
    any(e, &mut |x| matches!(x, Expr::Aggref(a) if a.levels_up == 0))
}

/// Whether `e` asks a subquery.
pub fn has_subplan(e: &Expr) -> bool {
    any(e, &mut |x| matches!(x, Expr::SubPlan(_)))
}

/// Whether `e` returns a set anywhere.
pub fn has_srf(e: &Expr) -> bool {
    any(e, &mut |x| match x {
        Expr::Func(f) => f.returns_set,
        Expr::Op(o) => o.returns_set,
        _ => false,
    })
}

/// A boolean constant.
pub fn bool_const(value: Option<bool>) -> Expr {
    Expr::Const(Const {
        type_oid: BOOL,
        typmod: -1,
        collation: Oid::INVALID,
        value: value.map(Datum::Bool),
        location: None,
    })
}

/// The value of a boolean constant: `Some(None)` for NULL.
pub fn as_bool_const(e: &Expr) -> Option<Option<bool>> {
    match e {
        Expr::Const(Const { type_oid: BOOL, value: Some(Datum::Bool(b)), .. }) => Some(Some(*b)),
        Expr::Const(Const { type_oid: BOOL, value: None, .. }) => Some(None),
        _ => None,
    }
}

/// AND of several, one as it is, none as true.
pub fn and(mut args: Vec<Expr>) -> Expr {
    match args.len() {
        0 => bool_const(Some(true)),
        1 => args.remove(0),
        _ => Expr::Bool(BoolExpr { kind: BoolKind::And, args, location: None }),
    }
}

/// OR of several, one as it is, none as false.
pub fn or(mut args: Vec<Expr>) -> Expr {
    match args.len() {
        0 => bool_const(Some(false)),
        1 => args.remove(0),
        _ => Expr::Bool(BoolExpr { kind: BoolKind::Or, args, location: None }),
    }
}

/// The arms of an AND; anything else is its own only arm; constant true has none.
pub fn conjuncts(e: Expr) -> Vec<Expr> {
    match e {
        Expr::Bool(BoolExpr { kind: BoolKind::And, args, .. }) => args.into_iter().flat_map(conjuncts).collect(),
        e if as_bool_const(&e) == Some(Some(true)) => Vec::new(),
        e => vec![e],
    }
}

/// `e` without relabellings around it.
pub fn strip_relabel(mut e: &Expr) -> &Expr {
    while let Expr::Relabel(r) = e {
        e = &r.arg;
    }
    e
}

/// A column of a relation of this level.
pub fn relation_var(rti: usize, attno: AttrNumber, type_oid: Oid, typmod: i32, collation: Oid) -> Expr {
    Expr::Var(Var {
        source: VarSource::Relation(rti),
        attno,
        type_oid,
        typmod,
        collation,
        levels_up: 0,
        location: None,
    })
}

/// The relation and column of a plain `Var` of this level.
pub fn as_var(e: &Expr) -> Option<(usize, AttrNumber)> {
    match e {
        Expr::Var(Var { source: VarSource::Relation(r), attno, levels_up: 0, .. }) => Some((*r, *attno)),
        _ => None,
    }
}

/// A plain output column.
pub fn target(expr: Expr, resno: usize) -> TargetEntry {
    TargetEntry {
        expr,
        resno: AttrNumber(resno as i16),
        name: None,
        sort_group_ref: 0,
        origin_table: Oid::INVALID,
        origin_column: AttrNumber(0),
        junk: false,
    }
}
