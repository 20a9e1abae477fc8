//! `jsonb['a'][1]` is evaluated as `jsonb #> ARRAY['a', '1']`, which takes the same steps: keys by name, places in an array by
//! number, NULL for what is not there or a NULL subscript.

use stegodon_catalog::Catalog;
use stegodon_format::ids::Oid;
use stegodon_nodes::expr::{ArrayExpr, CoerceViaIo, CoercionForm, OpExpr, SubscriptingRef};
use stegodon_nodes::levels::walk_query_mut;
use stegodon_nodes::{Expr, Query};
use stegodon_types::oids::{JSONB, TEXT, TEXT_ARRAY};
use stegodon_types::{SqlError, SqlResult};

/// The collation of text literals.
const DEFAULT_COLLATION: Oid = Oid(100);

/// Replaces subscripts of jsonb in a query, its subqueries included.
pub(crate) fn replace_jsonb_subscripts(query: &mut Query, catalog: &Catalog) -> SqlResult<()> {
    walk_query_mut(query, 0, 0, &mut |e, _| {
        if let Expr::Subscript(s) = e
            && s.container_type == JSONB
        {
            let new = path_operator(s, catalog)?;
            *e = new;
        }
        Ok(true)
    })
}

fn path_operator(s: &mut SubscriptingRef, catalog: &Catalog) -> SqlResult<Expr> {
    let text = |e: Expr| match e.type_oid() {
        TEXT => e,
        _ => Expr::CoerceViaIo(CoerceViaIo {
            arg: Box::new(e),
            result_type: TEXT,
            collation: DEFAULT_COLLATION,
            form: CoercionForm::ImplicitCast,
        }),
    };
    let mut steps = Vec::with_capacity(s.upper.len());
    for step in std::mem::take(&mut s.upper) {
        steps.push(text(step.ok_or_else(|| SqlError::internal("a subscript of jsonb is missing"))?));
    }
    let path = Expr::Array(ArrayExpr {
        array_type: TEXT_ARRAY,
        element_type: TEXT,
        collation: DEFAULT_COLLATION,
        elements: steps,
        multidims: false,
        location: None,
    });
    let mut named = catalog.operators_named("#>");
    let operator = named.find(|o| o.left == JSONB && o.right == TEXT_ARRAY && o.namespace == Oid(11));
    let operator = operator.ok_or_else(|| SqlError::internal("operator #> of jsonb is missing"))?;
    let container = std::mem::replace(&mut s.container, crate::coerce::bool_const(false));
    Ok(Expr::Op(OpExpr {
        operator: operator.oid,
        function: operator.function,
        result_type: JSONB,
        returns_set: false,
        collation: Oid::INVALID,
        input_collation: DEFAULT_COLLATION,
        args: vec![container, path],
        location: None,
    }))
}
