//! The reader of `pg_node_tree`: what views, defaults, checks, index expressions and partition bounds have stored.
//!
//! A tree is read as generic values first (`token`), then each node by its tag; fields go by name. What is not known (a
//! tag, a field, an enumeration's value) is an error that names it, never ignored. Locations are dropped: they point into
//! a text that is gone.
//!
//! ```
//! use stegodon_nodes::reader::{NodeContext, read_expr};
//! use stegodon_types::{Layout, Oid};
//!
//! struct Types;
//! impl NodeContext for Types {
//!     fn layout(&self, type_oid: Oid) -> Option<Layout> {
//!         (type_oid == Oid(23)).then_some(Layout::Int32)
//!     }
//!     fn is_descending(&self, _ordering: Oid) -> Option<bool> {
//!         None
//!     }
//! }
//! let tree = "{CONST :consttype 23 :consttypmod -1 :constcollid 0 :constlen 4 :constbyval true :constisnull false \
//!             :location -1 :constvalue 4 [ 7 0 0 0 0 0 0 0 ]}";
//! println!("{:?}", read_expr(tree, &Types).unwrap());
//! ```

mod bound;
mod constant;
mod expr;
mod fields;
mod query;
pub(crate) use query::group_entry;
mod token;
mod version;

use std::cell::Cell;

use stegodon_format::ids::Oid;
use stegodon_types::{Layout, SqlError, SqlResult};

use crate::expr::Expr;
use crate::query::Query;
use token::{Node, Value, damaged, on_stack, parse, too_deep};

pub use bound::{BoundDatum, PartitionBound, PartitionStrategy, read_partition_bound};
pub use token::MAX_DEPTH;

/// What the reader must ask the catalogs.
pub trait NodeContext {
    /// The layout of a type's values; `None` where the type is unknown or not supported.
    fn layout(&self, type_oid: Oid) -> Option<Layout>;

    /// Whether an ordering operator is the `>` of its btree family (`<` otherwise); `None` where it is neither. Asked
    /// for trees written before 18 only.
    fn is_descending(&self, ordering: Oid) -> Option<bool>;
}

/// Reads one scalar expression: `pg_attrdef.adbin`, `pg_constraint.conbin`.
pub fn read_expr(text: &str, context: &dyn NodeContext) -> SqlResult<Expr> {
    match parse(text)? {
        Value::Node(node) => Reader::new(context).expr(node),
        _ => Err(damaged("an expression was expected")),
    }
}

/// Reads a list of expressions: `pg_index.indexprs` and `indpred` (an implicit AND), `pg_proc.proargdefaults`,
/// `pg_partitioned_table.partexprs`. One bare expression counts as a list of it.
pub fn read_exprs(text: &str, context: &dyn NodeContext) -> SqlResult<Vec<Expr>> {
    let reader = Reader::new(context);
    match parse(text)? {
        Value::Null => Ok(Vec::new()),
        Value::Node(node) => Ok(vec![reader.expr(node)?]),
        Value::List(items) => reader.exprs(items),
        _ => Err(damaged("a list of expressions was expected")),
    }
}

/// Reads queries: `pg_rewrite.ev_action` (a list), `pg_proc.prosqlbody` (one, or a list in a list). Anything but SELECT
/// is refused.
pub fn read_queries(text: &str, context: &dyn NodeContext) -> SqlResult<Vec<Query>> {
    fn collect(value: Value, depth: usize, reader: &Reader<'_>, out: &mut Vec<Query>) -> SqlResult<()> {
        match value {
            Value::Null => Ok(()),
            Value::Node(node) => {
                out.push(reader.query(node)?);
                Ok(())
            }
            Value::List(items) if depth < 3 => {
                items.into_iter().try_for_each(|item| collect(item, depth + 1, reader, out))
            }
            _ => Err(damaged("a query was expected")),
        }
    }
    let mut out = Vec::new();
    collect(parse(text)?, 0, &Reader::new(context), &mut out)?;
    Ok(out)
}

/// Reads the one query of a view's rule.
pub fn read_view_query(ev_action: &str, context: &dyn NodeContext) -> SqlResult<Query> {
    let mut queries = read_queries(ev_action, context)?;
    match (queries.pop(), queries.is_empty()) {
        (Some(query), true) => Ok(query),
        _ => Err(damaged("a view's rule must have one query")),
    }
}

/// Walks one tree; bounds its depth.
struct Reader<'c> {
    context: &'c dyn NodeContext,
    depth: Cell<usize>,
}

impl<'c> Reader<'c> {
    fn new(context: &'c dyn NodeContext) -> Self {
        Self { context, depth: Cell::new(0) }
    }

    /// Runs `f` one level deeper.
    fn deeper<T>(&self, f: impl FnOnce() -> SqlResult<T>) -> SqlResult<T> {
        let depth = self.depth.get();
        if depth >= MAX_DEPTH {
            return Err(too_deep());
        }
        self.depth.set(depth + 1);
        let result = on_stack(f);
        self.depth.set(depth);
        result
    }

    fn exprs(&self, items: Vec<Value>) -> SqlResult<Vec<Expr>> {
        items
            .into_iter()
            .map(|item| match item {
                Value::Node(node) => self.expr(node),
                _ => Err(damaged("an expression was expected in a list")),
            })
            .collect()
    }
}

/// The error for a node that is known to exist in PostgreSQL or is not known at all.
fn unsupported_node(tag: &str) -> SqlError {
    SqlError::unsupported(format!("node {tag} in a stored tree"))
}

fn tag_of(node: &Node) -> String {
    version::current_tag(&node.tag).to_owned()
}
