//! From a relation's catalog row to what reads it.

use std::sync::Arc;

use stegodon_access::{Storage, Table, Toast};
use stegodon_catalog::rows::Relation;
use stegodon_catalog::{Catalog, CatalogView};
use stegodon_format::ids::Oid;
use stegodon_heap::{Attribute, TupleDesc};
use stegodon_io::RelationFiles;
use stegodon_nbtree::{IndexAttribute, IndexDesc, IndexKey, KeyComparator};
use stegodon_types::{FormatSettings, SqlError, SqlResult, SqlState, TypeCatalog};

use crate::execution::Execution;
use crate::operator::malformed;

/// `pg_am` row of the heap.
const HEAP_AM: Oid = Oid(2);
/// `pg_am` row of the B-tree.
const BTREE_AM: Oid = Oid(403);

/// What opening a relation asks: its files, and the catalogs that say what is in them.
#[derive(Clone, Copy)]
pub struct Opener<'a> {
    /// The cluster's files.
    pub storage: &'a Arc<Storage>,
    /// The catalogs.
    pub view: &'a Arc<CatalogView>,
    /// How values are compared and printed.
    pub format: &'a Arc<FormatSettings>,
}

impl<'a> Opener<'a> {
    /// As an execution opens.
    pub(crate) fn of(execution: &'a Execution) -> Self {
        Self { storage: &execution.storage, view: &execution.view, format: &execution.format }
    }

    fn catalog(self) -> &'a Catalog {
        &self.view.catalog
    }

    fn relation(self, oid: Oid) -> SqlResult<&'a Arc<Relation>> {
        let gone = || SqlError::internal(format_args!("relation {oid} is not in the catalogs"));
        self.catalog().relation(oid).ok_or_else(gone)
    }

    fn files(self, relation: &Relation) -> SqlResult<RelationFiles> {
        let locator = relation.locator.ok_or_else(|| malformed("a relation without storage is read"))?;
        Ok(self.storage.relation(locator))
    }

    /// A table, opened for reading. Refused where a prepared transaction holds it exclusively (55P03).
    pub(crate) fn open_table(self, oid: Oid) -> SqlResult<Table> {
        let row = self.relation(oid)?;
        // A sequence is a heap of one row without an access method of its own.
        if row.access_method != HEAP_AM && row.kind != b'S' {
            let method = self.catalog().access_method(row.access_method);
            let method = method.map_or_else(|| row.access_method.to_string(), |m| format!("\"{}\"", m.name));
            return Err(SqlError::unsupported(format_args!("table access method {method}")));
        }
        if !row.populated {
            let message = format!("materialized view \"{}\" has not been populated", row.name);
            return Err(SqlError::new(SqlState::ObjectNotInPrerequisiteState, message)
                .hint("Use the REFRESH MATERIALIZED VIEW command."));
        }
        let database =
            if row.shared { Oid::INVALID } else { self.catalog().database().map_or(Oid::INVALID, |d| d.oid) };
        let prepared = self.storage.transactions().prepared();
        if let Some(holder) = prepared.exclusive_lock(database, oid) {
            let message = format!("could not obtain lock on relation \"{}\"", row.name);
            let detail = format!("Prepared transaction {} holds it exclusively.", holder.xid);
            return Err(SqlError::new(SqlState::LockNotAvailable, message).detail(detail));
        }
        let attribute = |a: &stegodon_catalog::rows::Attribute| Attribute {
            dropped: a.dropped,
            missing: a.missing.clone(),
            ..Attribute::new(a.name.clone(), a.type_oid, a.len, a.align, a.layout)
        };
        let attributes = row.attributes.iter().map(attribute).collect();
        let toast = if row.toast.is_valid() { Some(Arc::new(self.open_toast(row.toast)?)) } else { None };
        Ok(Table { desc: TupleDesc::new(row.name.clone(), oid, attributes)?, files: self.files(row)?, toast })
    }

    fn open_toast(self, oid: Oid) -> SqlResult<Toast> {
        let row = self.relation(oid)?;
        let usable = |i: &&Arc<Relation>| i.index.as_ref().is_some_and(|x| x.valid && x.ready);
        let index = row.indexes.iter().filter_map(|&i| self.catalog().relation(i)).find(usable);
        let index = index.ok_or_else(|| {
            SqlError::new(SqlState::DataCorrupted, format!("no valid index found for toast relation \"{}\"", row.name))
        })?;
        Toast::new(row.name.clone(), oid, self.files(row)?, Some((index.name.clone(), self.files(index)?)))
    }

    /// A B-tree index, opened for reading.
    pub(crate) fn open_index(self, oid: Oid) -> SqlResult<(RelationFiles, Arc<IndexDesc>)> {
        let row = self.relation(oid)?;
        let index = row.index.as_ref().ok_or_else(|| malformed("an index scan of what is no index"))?;
        if row.access_method != BTREE_AM {
            return Err(malformed("an index scan of what is no B-tree"));
        }
        let attributes = row.attributes.iter().map(|a| IndexAttribute { len: a.len, align: a.align, layout: a.layout });
        let mut keys = Vec::with_capacity(index.key_count);
        for (column, &opclass) in index.opclasses.iter().enumerate().take(index.key_count) {
            keys.push(self.index_key(row, column, opclass)?);
        }
        let desc = IndexDesc::new(row.name.clone(), attributes.collect(), keys, index.unique)?;
        Ok((self.files(row)?, Arc::new(desc)))
    }

    fn index_key(self, row: &Relation, column: usize, opclass: Oid) -> SqlResult<IndexKey> {
        let catalog = self.catalog();
        let broken = || malformed("an index whose catalog rows do not fit");
        let index = row.index.as_ref().ok_or_else(broken)?;
        let opclass = catalog.opclass(opclass).ok_or_else(broken)?;
        let collation = index.collations.get(column).copied().unwrap_or(Oid::INVALID);
        let collation = self.view.collation(collation)?;
        let types: Arc<dyn TypeCatalog> = Arc::clone(self.view) as Arc<dyn TypeCatalog>;
        let indexed_type = row.attributes.get(column).ok_or_else(broken)?.type_oid;
        let indexed = self.view.type_desc(indexed_type)?;
        let mut compare = Vec::new();
        for proc in catalog.amprocs_of_family(opclass.family).iter().filter(|p| p.number == 1) {
            let (types, settings) = (Arc::clone(&types), Arc::clone(self.format));
            let comparator =
                KeyComparator::of_support(proc.function, types, settings, Arc::clone(&indexed), collation.clone());
            if let Some(comparator) = comparator {
                compare.push((proc.left, proc.right, comparator));
            }
        }
        if !compare.iter().any(|(l, r, _)| (*l, *r) == (opclass.input_type, opclass.input_type)) {
            return Err(SqlError::unsupported(format_args!("operator class {} of index {}", opclass.name, row.name)));
        }
        Ok(IndexKey {
            input_type: opclass.input_type,
            desc: index.descending.get(column).copied().unwrap_or(false),
            nulls_first: index.nulls_first.get(column).copied().unwrap_or(false),
            compare,
        })
    }
}
