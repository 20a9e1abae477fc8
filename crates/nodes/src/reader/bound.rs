//! Partition bounds: `pg_class.relpartbound`.

use stegodon_types::{Datum, SqlResult};

use super::fields::Fields;
use super::token::{Node, Value, damaged, parse};
use super::{NodeContext, Reader, unsupported_node};
use crate::expr::{Const, Expr};

/// How a partitioned table is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum PartitionStrategy {
    List,
    Range,
    Hash,
}

/// The bound of one partition.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionBound {
    /// The parent's strategy.
    pub strategy: PartitionStrategy,
    /// `DEFAULT`: everything the others leave.
    pub is_default: bool,
    /// Hash: the modulus.
    pub modulus: u64,
    /// Hash: the remainder.
    pub remainder: u64,
    /// List: the values, NULL among them as a null constant.
    pub list: Vec<Const>,
    /// Range: the inclusive lower bound, one a key column.
    pub lower: Vec<BoundDatum>,
    /// Range: the exclusive upper bound.
    pub upper: Vec<BoundDatum>,
}

/// One column of a range bound.
#[derive(Clone, Debug, PartialEq)]
pub enum BoundDatum {
    /// Below every value.
    MinValue,
    /// A value, never NULL.
    Value(Const),
    /// Above every value.
    MaxValue,
}

impl BoundDatum {
    /// The value, where it is one.
    pub fn value(&self) -> Option<&Datum> {
        match self {
            BoundDatum::Value(constant) => constant.value.as_ref(),
            _ => None,
        }
    }
}

/// Reads a partition's bound.
pub fn read_partition_bound(text: &str, context: &dyn NodeContext) -> SqlResult<PartitionBound> {
    let Value::Node(node) = parse(text)? else { return Err(damaged("a partition bound was expected")) };
    if node.tag != "PARTITIONBOUNDSPEC" {
        return Err(unsupported_node(&node.tag));
    }
    let reader = Reader::new(context);
    let mut f = Fields::new(node);
    let constant = |node: Node| match reader.expr(node)? {
        Expr::Const(c) => Ok(c),
        _ => Err(damaged("a partition bound is not a constant")),
    };
    let range = |nodes: Vec<Node>| {
        nodes
            .into_iter()
            .map(|node| {
                if node.tag != "PARTITIONRANGEDATUM" {
                    return Err(unsupported_node(&node.tag));
                }
                let mut f = Fields::new(node);
                let kind = f.int("kind")?;
                let value = f.node("value")?;
                f.skip(&["location"]);
                f.end()?;
                match (kind, value) {
                    (-1, None) => Ok(BoundDatum::MinValue),
                    (1, None) => Ok(BoundDatum::MaxValue),
                    (0, Some(node)) => Ok(BoundDatum::Value(constant(node)?)),
                    _ => Err(damaged("PARTITIONRANGEDATUM has an unexpected kind")),
                }
            })
            .collect::<SqlResult<Vec<_>>>()
    };
    let bound = PartitionBound {
        strategy: match f.char("strategy")? {
            b'l' => PartitionStrategy::List,
            b'r' => PartitionStrategy::Range,
            b'h' => PartitionStrategy::Hash,
            other => return Err(damaged(format!("partition strategy \"{}\"", char::from(other)))),
        },
        is_default: f.bool("is_default")?,
        modulus: f.index("modulus")? as u64,
        remainder: f.index("remainder")? as u64,
        list: f.nodes("listdatums")?.into_iter().map(constant).collect::<SqlResult<_>>()?,
        lower: range(f.nodes("lowerdatums")?)?,
        upper: range(f.nodes("upperdatums")?)?,
    };
    f.skip(&["location"]);
    f.end()?;
    let hash_ok = bound.strategy != PartitionStrategy::Hash || bound.is_default || bound.remainder < bound.modulus;
    if !hash_ok || bound.lower.len() != bound.upper.len() {
        return Err(damaged("PARTITIONBOUNDSPEC contradicts itself"));
    }
    Ok(bound)
}
