//! Expressions that catalogs store: index expressions and predicates, partition keys and bounds.

use stegodon_nodes::Expr;

/// Reads a list of expressions over relation 1 of its own range table and points them at entry `rti`. `None` where the
/// form is not known: what depends on it is then not used.
pub fn read_list(_text: &str, _rti: usize) -> Option<Vec<Expr>> {
    None
}
