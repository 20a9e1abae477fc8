//! The stored trees, each read when first asked for and kept.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use stegodon_format::ids::{AttrNumber, Oid};
use stegodon_nodes::reader::{
    BoundDatum, PartitionBound, PartitionStrategy, read_expr, read_exprs, read_partition_bound, read_view_query,
};
use stegodon_nodes::{Expr, Query};
use stegodon_types::{FormatSettings, SqlError, SqlResult, SqlState, TypeCatalog, TypeContext};

use crate::lookup::Catalog;
use crate::operators::am;
use crate::view::CatalogView;

type Kept<T> = HashMap<Oid, OnceLock<SqlResult<Arc<T>>>>;

/// What has been read so far. A cell for everything that could be asked is made with the catalog, so that asking takes
/// no lock.
#[derive(Default)]
pub(crate) struct Trees {
    views: Kept<Query>,
    index_expressions: Kept<[Expr]>,
    index_predicates: Kept<[Expr]>,
    partition_expressions: Kept<[Expr]>,
    bounds: Kept<PartitionBound>,
    argument_defaults: Kept<[Expr]>,
}

fn kept<T: ?Sized>(
    cells: &HashMap<Oid, OnceLock<SqlResult<Arc<T>>>>,
    oid: Oid,
    read: impl FnOnce() -> SqlResult<Arc<T>>,
) -> SqlResult<Option<Arc<T>>> {
    cells.get(&oid).map(|cell| cell.get_or_init(read).clone()).transpose()
}

impl Catalog {
    /// Makes the cells; the last step of building.
    pub(crate) fn prepare_trees(&mut self) {
        let mut trees = Trees::default();
        for relation in self.relations.values() {
            let oid = relation.oid;
            if self.rules(oid).iter().any(|r| r.event == b'1') {
                trees.views.insert(oid, OnceLock::new());
            }
            if relation.partition_bound.is_some() {
                trees.bounds.insert(oid, OnceLock::new());
            }
            if relation.partitioned.as_ref().is_some_and(|p| p.expressions.is_some()) {
                trees.partition_expressions.insert(oid, OnceLock::new());
            }
            if let Some(index) = &relation.index {
                if index.expressions.is_some() {
                    trees.index_expressions.insert(oid, OnceLock::new());
                }
                if index.predicate.is_some() {
                    trees.index_predicates.insert(oid, OnceLock::new());
                }
            }
        }
        for proc in self.procs.values().filter(|p| p.arg_defaults.is_some()) {
            trees.argument_defaults.insert(proc.oid, OnceLock::new());
        }
        self.trees = trees;
    }

    /// The query of a view (its `_RETURN` rule), as stored: permissions are still to be checked as the view's owner.
    pub fn view_query(&self, view: Oid) -> SqlResult<Arc<Query>> {
        let read = || {
            let mut rules = self.rules(view).iter().filter(|r| r.event == b'1');
            match (rules.next(), rules.next()) {
                (Some(rule), None) if rule.instead => read_view_query(&rule.action, self).map(Arc::new),
                _ => Err(SqlError::new(SqlState::DataCorrupted, format!("relation {view} has no single view rule"))),
            }
        };
        kept(&self.trees.views, view, read)?.ok_or_else(|| SqlError::internal(format!("relation {view} is not a view")))
    }

    /// An index's expressions, for its columns 0 in their order; empty where it has none.
    pub fn index_expressions(&self, index: Oid) -> SqlResult<Arc<[Expr]>> {
        let tree = |i: &crate::rows::Index| i.expressions.clone();
        let read = || self.read_list(self.relation(index).and_then(|r| r.index.as_deref().and_then(tree)));
        Ok(kept(&self.trees.index_expressions, index, read)?.unwrap_or_else(|| Arc::from([])))
    }

    /// An index's predicate as a list of conditions that all hold; empty where it has none.
    pub fn index_predicate(&self, index: Oid) -> SqlResult<Arc<[Expr]>> {
        let tree = |i: &crate::rows::Index| i.predicate.clone();
        let read = || self.read_list(self.relation(index).and_then(|r| r.index.as_deref().and_then(tree)));
        Ok(kept(&self.trees.index_predicates, index, read)?.unwrap_or_else(|| Arc::from([])))
    }

    /// A partitioned table's key expressions, for its columns 0 in their order.
    pub fn partition_expressions(&self, table: Oid) -> SqlResult<Arc<[Expr]>> {
        let tree = |p: &crate::rows::Partitioned| p.expressions.clone();
        let read = || self.read_list(self.relation(table).and_then(|r| r.partitioned.as_deref().and_then(tree)));
        Ok(kept(&self.trees.partition_expressions, table, read)?.unwrap_or_else(|| Arc::from([])))
    }

    /// A partition's bound; `None` where it is no partition.
    pub fn partition_bound(&self, partition: Oid) -> SqlResult<Option<Arc<PartitionBound>>> {
        let read = || {
            let tree = self.relation(partition).and_then(|r| r.partition_bound.clone()).unwrap_or_default();
            read_partition_bound(&tree, self).map(Arc::new)
        };
        kept(&self.trees.bounds, partition, read)
    }

    /// The defaults of a function's last arguments.
    pub fn argument_defaults(&self, function: Oid) -> SqlResult<Arc<[Expr]>> {
        let read = || self.read_list(self.proc(function).and_then(|p| p.arg_defaults.clone()));
        Ok(kept(&self.trees.argument_defaults, function, read)?.unwrap_or_else(|| Arc::from([])))
    }

    /// A column's default or generation expression; read anew each time.
    pub fn column_default(&self, relation: Oid, column: AttrNumber) -> SqlResult<Option<Expr>> {
        let attribute = self.relation(relation).and_then(|r| r.attribute(column));
        let Some(tree) = attribute.and_then(|a| a.default.clone()) else { return Ok(None) };
        read_expr(&tree, self).map(Some)
    }

    fn read_list(&self, tree: Option<Arc<str>>) -> SqlResult<Arc<[Expr]>> {
        match tree {
            Some(tree) => read_exprs(&tree, self).map(Into::into),
            None => Ok(Arc::from([])),
        }
    }
}

impl crate::rows::Relation {
    /// The user column of that number, dropped ones included.
    pub fn attribute(&self, number: AttrNumber) -> Option<&crate::rows::Attribute> {
        self.attributes.get(usize::try_from(number.0).ok()?.checked_sub(1)?)
    }

    /// The live column of that name.
    pub fn attribute_named(&self, name: &str) -> Option<&crate::rows::Attribute> {
        self.attributes.iter().find(|a| !a.dropped && a.name == name)
    }
}

impl CatalogView {
    /// The partitions of a table with their bounds, in the order in which PostgreSQL scans them: by bound, the one that
    /// holds only NULL after the others, the default one last. Where the bounds' order is not known (an operator class
    /// or collation whose order is not implemented) they come by OID: without ORDER BY, any order is right.
    pub fn partitions(&self, table: Oid) -> SqlResult<Vec<(Oid, Arc<PartitionBound>)>> {
        let relation = self.catalog.relation(table).ok_or_else(|| {
            SqlError::new(SqlState::UndefinedTable, format!("relation with OID {table} does not exist"))
        })?;
        let mut partitions = Vec::with_capacity(relation.children.len());
        for &child in &relation.children {
            let bound = self
                .catalog
                .partition_bound(child)?
                .ok_or_else(|| SqlError::new(SqlState::DataCorrupted, format!("partition {child} has no bound")))?;
            partitions.push((child, bound));
        }
        if let Some(Ok(order)) = relation.partitioned.as_deref().map(|p| self.bound_order(p, &partitions)) {
            let mut sorted: Vec<_> = order.into_iter().zip(partitions).collect();
            sorted.sort_by_key(|(place, _)| *place);
            return Ok(sorted.into_iter().map(|(_, partition)| partition).collect());
        }
        Ok(partitions)
    }

    /// The place of each partition.
    fn bound_order(
        &self,
        key: &crate::rows::Partitioned,
        partitions: &[(Oid, Arc<PartitionBound>)],
    ) -> SqlResult<Vec<usize>> {
        use std::cmp::Ordering;
        let settings = FormatSettings::default();
        let context = TypeContext::new(self, &settings);
        let compare = |column: usize, a: &stegodon_nodes::expr::Const, b: &stegodon_nodes::expr::Const| {
            let ty = TypeCatalog::type_desc(self, a.type_oid)?;
            let access_method = if key.strategy == b'h' { am::HASH } else { am::BTREE };
            // Values are compared in their type's own order.
            if key.opclasses.get(column).copied() != self.catalog.default_opclass(a.type_oid, access_method) {
                return Err(SqlError::unsupported("a partition key's operator class"));
            }
            let collation = self.catalog.collation_kind(key.collations.get(column).copied().unwrap_or_default())?;
            match (&a.value, &b.value) {
                (Some(a), Some(b)) => stegodon_types::compare(&context, &ty, &collation, a.as_ref(), b.as_ref()),
                (a, b) => Ok(a.is_none().cmp(&b.is_none())),
            }
        };
        let range = |a: &[BoundDatum], b: &[BoundDatum]| {
            let rank = |d: &BoundDatum| match d {
                BoundDatum::MinValue => 0,
                BoundDatum::Value(_) => 1,
                BoundDatum::MaxValue => 2,
            };
            for (column, pair) in a.iter().zip(b).enumerate() {
                let order = match pair {
                    (BoundDatum::Value(a), BoundDatum::Value(b)) => compare(column, a, b)?,
                    (a, b) => rank(a).cmp(&rank(b)),
                };
                if order != Ordering::Equal {
                    return Ok(order);
                }
            }
            Ok(Ordering::Equal)
        };
        let bounds = |a: &PartitionBound, b: &PartitionBound| -> SqlResult<Ordering> {
            if a.is_default || b.is_default {
                return Ok(a.is_default.cmp(&b.is_default));
            }
            match a.strategy {
                PartitionStrategy::Hash => Ok((a.modulus, a.remainder).cmp(&(b.modulus, b.remainder))),
                PartitionStrategy::Range => range(&a.lower, &b.lower),
                PartitionStrategy::List => {
                    let least = |bound: &PartitionBound| {
                        let mut least = bound.list.first().cloned();
                        for value in &bound.list {
                            if let Some(l) = &least
                                && compare(0, value, l)? == Ordering::Less
                            {
                                least = Some(value.clone());
                            }
                        }
                        Ok::<_, SqlError>(least)
                    };
                    match (least(a)?, least(b)?) {
                        (Some(a), Some(b)) => compare(0, &a, &b),
                        (a, b) => Ok(a.is_none().cmp(&b.is_none())),
                    }
                }
            }
        };
        let mut error = None;
        let mut order: Vec<usize> = (0..partitions.len()).collect();
        order.sort_by(|&a, &b| match (partitions.get(a), partitions.get(b)) {
            (Some((_, a)), Some((_, b))) => bounds(a, b).unwrap_or_else(|e| {
                error.get_or_insert(e);
                Ordering::Equal
            }),
            _ => Ordering::Equal,
        });
        if let Some(error) = error {
            return Err(error);
        }
        let mut places = vec![0; order.len()];
        for (place, partition) in order.into_iter().enumerate() {
            if let Some(slot) = places.get_mut(partition) {
                *slot = place;
            }
        }
        Ok(places)
    }
}
