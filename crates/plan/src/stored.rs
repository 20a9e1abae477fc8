//! Expressions that catalogs store: index expressions and predicates, partition keys.

use stegodon_catalog::Catalog;
use stegodon_nodes::Expr;
use stegodon_nodes::expr::{Var, VarSource};

use crate::exprs;

/// Reads a list of expressions over relation 1 of its own range table and points them at entry `rti`. `None` where the
/// form is not known: what depends on it is then not used.
pub fn read_list(catalog: &Catalog, text: &str, rti: usize) -> Option<Vec<Expr>> {
    let mut list = stegodon_nodes::reader::read_exprs(text, catalog).ok()?;
    for e in &mut list {
        exprs::strip_locations(e);
        exprs::replace(e, &mut |x| match x {
            Expr::Var(v) if v.source == VarSource::Relation(1) => {
                Some(Expr::Var(Var { source: VarSource::Relation(rti), ..v.clone() }))
            }
            _ => None,
        });
    }
    Some(list)
}
