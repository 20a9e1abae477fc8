//! Implicit casts that the query leaves to planning: the sides of a set operation (`coerce_to_common_type`).

use stegodon_catalog::Catalog;
use stegodon_format::ids::Oid;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::*;
use stegodon_types::{Datum, SqlError, SqlResult, TypeKind};

use crate::exprs::{BOOL, INT4, bool_const, collation_of, type_of, typmod_of};

fn base_type(catalog: &Catalog, mut type_oid: Oid) -> Oid {
    while let Some(TypeKind::Domain { base, .. }) = catalog.type_desc(type_oid).map(|t| &t.kind) {
        type_oid = *base;
    }
    type_oid
}

fn element_type(catalog: &Catalog, type_oid: Oid) -> Option<Oid> {
    match catalog.type_desc(type_oid).map(|t| &t.kind) {
        Some(TypeKind::Array { element }) => Some(*element),
        _ => None,
    }
}

/// `e` as a value of type `target`, where an implicit cast makes it one.
pub(crate) fn implicit(catalog: &Catalog, e: Expr, target: Oid, collation: Oid) -> SqlResult<Expr> {
    let source = type_of(&e);
    if source == target {
        return Ok(e);
    }
    let form = CoercionForm::ImplicitCast;
    let relabel =
        |arg: Expr| Expr::Relabel(Relabel { arg: Box::new(arg), result_type: target, typmod: -1, collation, form });
    let base = base_type(catalog, source);
    if base == target {
        return Ok(relabel(e));
    }
    if let Some(cast) = catalog.cast(source, target).or_else(|| catalog.cast(base, target))
        && cast.context == b'i'
    {
        return match cast.method {
            b'b' => Ok(relabel(e)),
            b'i' => Ok(Expr::CoerceViaIo(CoerceViaIo { arg: Box::new(e), result_type: target, collation, form })),
            _ => call(catalog, e, cast.function, target, collation),
        };
    }
    if let (Some(from), Some(to)) = (element_type(catalog, base), element_type(catalog, target)) {
        let test = CaseTest { type_oid: from, typmod: typmod_of(&e), collation: collation_of(&e) };
        let element = implicit(catalog, Expr::CaseTest(test), to, collation)?;
        let typmod = typmod_of(&element);
        return Ok(Expr::ArrayCoerce(Box::new(ArrayCoerce {
            arg: e,
            element,
            result_type: target,
            typmod,
            collation,
            form,
        })));
    }
    Err(SqlError::unsupported("a set operation whose sides need this cast"))
}

fn call(catalog: &Catalog, e: Expr, function: Oid, target: Oid, collation: Oid) -> SqlResult<Expr> {
    let proc = catalog.proc(function).ok_or_else(|| SqlError::internal("a cast without its function"))?;
    let no_typmod = Expr::Const(Const {
        type_oid: INT4,
        typmod: -1,
        collation: Oid::INVALID,
        value: Some(Datum::Int32(-1)),
        location: None,
    });
    let more = match proc.arg_types.as_slice() {
        [_, INT4, BOOL] => vec![no_typmod, bool_const(Some(false))],
        [_, INT4] => vec![no_typmod],
        [_] => Vec::new(),
        _ => return Err(SqlError::unsupported("a set operation whose sides need this cast")),
    };
    let input_collation = collation_of(&e);
    Ok(Expr::Func(FuncExpr {
        function,
        result_type: target,
        returns_set: false,
        variadic: false,
        form: CoercionForm::ImplicitCast,
        collation,
        input_collation,
        args: std::iter::once(e).chain(more).collect(),
        location: None,
    }))
}
