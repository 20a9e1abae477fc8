//! What a client is told of a query's columns.

use stegodon_catalog::Catalog;
use stegodon_format::ids::{AttrNumber, Oid};
use stegodon_nodes::expr::SubLinkKind;
use stegodon_nodes::{Expr, Query};

/// One column of a RowDescription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultColumn {
    /// Its name.
    pub name: String,
    /// Its type; a domain shows as the type below it.
    pub type_oid: Oid,
    /// Its typmod.
    pub typmod: i32,
    /// The table it comes from unchanged, or 0.
    pub table: Oid,
    /// The column there.
    pub column: AttrNumber,
}

/// The columns of a query's result, as a RowDescription tells them.
pub fn result_columns(query: &Query, catalog: &Catalog) -> Vec<ResultColumn> {
    query
        .outputs()
        .map(|t| {
            let (type_oid, typmod) = catalog.base_type_and_typmod(value_type(&t.expr, catalog), t.expr.typmod());
            ResultColumn {
                name: t.name.clone().unwrap_or_else(|| "?column?".to_owned()),
                type_oid,
                typmod,
                table: t.origin_table,
                column: t.origin_column,
            }
        })
        .collect()
}

/// The type of an expression's value: [`Expr::type_oid`], and the array type of `ARRAY(subquery)`.
pub fn value_type(e: &Expr, catalog: &Catalog) -> Oid {
    match e {
        Expr::SubLink(s) if s.kind == SubLinkKind::Array => {
            let element = e.type_oid();
            if catalog.element_type(element).is_some() {
                element
            } else {
                catalog.array_type_of(element).unwrap_or_default()
            }
        }
        Expr::Collate(c) => value_type(&c.arg, catalog),
        _ => e.type_oid(),
    }
}
