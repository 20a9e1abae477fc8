//! Putting a [`Relation`] together from `pg_class`, `pg_attribute`, `pg_attrdef`, `pg_index`, `pg_inherits` and
//! `pg_partitioned_table`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use stegodon_format::ids::{AttrNumber, GLOBAL_TABLESPACE, Oid, RelFileLocator, RelFileNumber, Xid};
use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::array::{self, ElementForm};
use crate::build::{align, read};
use crate::lookup::Catalog;
use crate::rows::*;
use crate::source::RowSource;
use crate::tables;

/// Kinds of relation that have files.
const WITH_STORAGE: &[u8] = b"riStm";

impl Catalog {
    pub(crate) fn read_relations(&mut self, source: &mut dyn RowSource) -> SqlResult<()> {
        let mut attributes = self.read_attributes(source)?;
        let mut indexes = HashMap::new();
        let mut indexes_of: HashMap<Oid, Vec<Oid>> = HashMap::new();
        for row in read(source, tables::INDEX)?.rows() {
            let options = row.attnos("indoption")?;
            let index = Index {
                oid: row.oid("indexrelid")?,
                table: row.oid("indrelid")?,
                key_count: row.count("indnkeyatts")?,
                columns: row.attnos("indkey")?,
                collations: row.oids("indcollation")?,
                opclasses: row.oids("indclass")?,
                descending: options.iter().map(|o| o.0 & 1 != 0).collect(),
                nulls_first: options.iter().map(|o| o.0 & 2 != 0).collect(),
                unique: row.bool("indisunique")?,
                nulls_not_distinct: row.bool("indnullsnotdistinct")?,
                primary: row.bool("indisprimary")?,
                immediate: row.bool("indimmediate")?,
                valid: row.bool("indisvalid")?,
                ready: row.bool("indisready")?,
                live: row.bool("indislive")?,
                check_xmin: row.bool("indcheckxmin")?,
                expressions: row.shared_text("indexprs")?,
                predicate: row.shared_text("indpred")?,
            };
            let keys = index.key_count;
            if index.collations.len() != keys
                || index.opclasses.len() != keys
                || options.len() != keys
                || index.columns.len() < keys
            {
                let message = format!("pg_index row of index {} has lists of unequal lengths", index.oid);
                return Err(SqlError::new(SqlState::DataCorrupted, message));
            }
            indexes_of.entry(index.table).or_default().push(index.oid);
            indexes.insert(index.oid, Arc::new(index));
        }
        let mut children: HashMap<Oid, Vec<Oid>> = HashMap::new();
        let mut parents: HashMap<Oid, Vec<(i32, Oid)>> = HashMap::new();
        for row in read(source, tables::INHERITS)?.rows() {
            let (child, parent) = (row.oid("inhrelid")?, row.oid("inhparent")?);
            if !row.bool("inhdetachpending")? {
                children.entry(parent).or_default().push(child);
            }
            parents.entry(child).or_default().push((row.i32("inhseqno")?, parent));
        }
        let mut partitioned = HashMap::new();
        for row in read(source, tables::PARTITIONED)?.rows() {
            let entry = Partitioned {
                strategy: row.char("partstrat")?,
                columns: row.attnos("partattrs")?,
                default_partition: row.oid("partdefid")?,
                opclasses: row.oids("partclass")?,
                collations: row.oids("partcollation")?,
                expressions: row.shared_text("partexprs")?,
            };
            partitioned.insert(row.oid("partrelid")?, Arc::new(entry));
        }
        let database = self.database.as_ref().map(|d| (d.oid, d.tablespace)).unwrap_or_default();
        for row in read(source, tables::CLASS)?.rows() {
            let oid = row.oid("oid")?;
            let kind = row.char("relkind")?;
            let shared = row.bool("relisshared")?;
            let count = row.count("relnatts")?;
            let columns = attributes.remove(&oid).unwrap_or_default();
            if columns.len() != count {
                let message = format!("pg_attribute has {} of the {count} columns of relation {oid}", columns.len());
                return Err(SqlError::new(SqlState::DataCorrupted, message));
            }
            let locator = if WITH_STORAGE.contains(&kind) {
                let file = RelFileNumber(row.oid("relfilenode")?.0);
                let file = if file.0 == 0 { source.mapped_file(oid, shared) } else { Some(file) };
                let tablespace = row.oid("reltablespace")?;
                file.map(|number| match (shared, tablespace.is_valid()) {
                    (true, _) => RelFileLocator { tablespace: GLOBAL_TABLESPACE, database: Oid::INVALID, number },
                    (false, true) => RelFileLocator { tablespace, database: database.0, number },
                    (false, false) => RelFileLocator { tablespace: database.1, database: database.0, number },
                })
            } else {
                None
            };
            let sorted = |mut oids: Vec<Oid>| {
                oids.sort_unstable();
                oids
            };
            let mut above = parents.remove(&oid).unwrap_or_default();
            above.sort_unstable();
            let relation = Relation {
                oid,
                name: row.text("relname")?,
                namespace: row.oid("relnamespace")?,
                row_type: row.oid("reltype")?,
                of_type: row.oid("reloftype")?,
                owner: row.oid("relowner")?,
                access_method: row.oid("relam")?,
                locator,
                pages: row.i32("relpages")?,
                tuples: row.f32("reltuples")?,
                all_visible: row.i32("relallvisible")?,
                toast: row.oid("reltoastrelid")?,
                has_index: row.bool("relhasindex")?,
                shared,
                persistence: row.char("relpersistence")?,
                kind,
                has_rules: row.bool("relhasrules")?,
                has_subclass: row.bool("relhassubclass")?,
                row_security: row.bool("relrowsecurity")?,
                force_row_security: row.bool("relforcerowsecurity")?,
                populated: row.bool("relispopulated")?,
                is_partition: row.bool("relispartition")?,
                frozen_xid: Xid(row.oid("relfrozenxid")?.0),
                acl: row.acl("relacl")?,
                options: row.texts_opt("reloptions")?.unwrap_or_default(),
                partition_bound: row.shared_text("relpartbound")?,
                attributes: columns.into(),
                indexes: sorted(indexes_of.remove(&oid).unwrap_or_default()),
                children: sorted(children.remove(&oid).unwrap_or_default()),
                parents: above.into_iter().map(|(_, parent)| parent).collect(),
                index: indexes.remove(&oid),
                partitioned: partitioned.remove(&oid),
            };
            self.relation_names.insert((relation.namespace, relation.name.clone()), oid);
            self.relations.insert(oid, Arc::new(relation));
        }
        Ok(())
    }

    /// The user columns of every relation, by `attnum` from 1 without gaps.
    fn read_attributes(&self, source: &mut dyn RowSource) -> SqlResult<HashMap<Oid, Vec<Attribute>>> {
        let mut defaults: HashMap<(Oid, i16), Arc<str>> = HashMap::new();
        for row in read(source, tables::ATTRDEF)?.rows() {
            if let Some(tree) = row.shared_text("adbin")? {
                defaults.insert((row.oid("adrelid")?, row.i16("adnum")?), tree);
            }
        }
        // Since 18 attnotnull is set as soon as a NOT NULL constraint exists; one that is NOT VALID proves nothing.
        let unproven: HashSet<(Oid, AttrNumber)> = self
            .constraints
            .values()
            .flatten()
            .filter(|c| c.kind == b'n' && !c.validated)
            .flat_map(|c| c.columns.iter().map(|&a| (c.relation, a)))
            .collect();
        let mut attributes: HashMap<Oid, Vec<Attribute>> = HashMap::new();
        for row in read(source, tables::ATTRIBUTE)?.rows() {
            let number = row.i16("attnum")?;
            if number <= 0 {
                continue;
            }
            let relation = row.oid("attrelid")?;
            let dropped = row.bool("attisdropped")?;
            let type_oid = if dropped { Oid::INVALID } else { row.oid("atttypid")? };
            let (len, alignment) = (row.i16("attlen")?, align(row.char("attalign")?)?);
            let layout = self.types.get(&type_oid).and_then(|t| t.layout);
            let missing = match row.bytes("attmissingval")? {
                Some(payload) if row.bool("atthasmissing")? && !dropped => {
                    Self::missing_value(payload, len, alignment, layout)?
                }
                _ => None,
            };
            let attribute = Attribute {
                name: row.text("attname")?,
                number: AttrNumber(number),
                type_oid,
                typmod: row.i32("atttypmod")?,
                len,
                by_value: row.bool("attbyval")?,
                align: alignment,
                storage: row.char("attstorage")?,
                collation: row.oid("attcollation")?,
                not_null: row.bool("attnotnull")? && !unproven.contains(&(relation, AttrNumber(number))),
                has_default: row.bool("atthasdef")?,
                generated: row.char("attgenerated")?,
                identity: row.char("attidentity")?,
                dropped,
                acl: row.acl("attacl")?,
                missing,
                layout,
                default: defaults.remove(&(relation, number)),
                // smallint since 16, integer before.
                ndims: row.i16("attndims").or_else(|_| row.i32("attndims").map(|n| n as i16))?,
            };
            attributes.entry(relation).or_default().push(attribute);
        }
        for (relation, columns) in &mut attributes {
            columns.sort_by_key(|a| a.number);
            if columns.iter().zip(1..).any(|(a, number)| a.number.0 != number) {
                let message = format!("pg_attribute has a gap or a duplicate in relation {relation}");
                return Err(SqlError::new(SqlState::DataCorrupted, message));
            }
        }
        Ok(attributes)
    }

    /// The one element of `attmissingval`. The column's own length and alignment say how it lies, so that a domain
    /// or an enum reads like its base.
    fn missing_value(
        payload: &[u8],
        len: i16,
        align: stegodon_types::Align,
        layout: Option<stegodon_types::Layout>,
    ) -> SqlResult<Option<stegodon_types::Datum>> {
        // An unsupported type is refused when its value is used, by its layout.
        let Some(layout) = layout else { return Ok(None) };
        let damaged = || SqlError::new(SqlState::DataCorrupted, "attmissingval is damaged");
        let mut values = array::elements(payload, ElementForm { len, align, layout }).ok_or_else(damaged)?;
        match (values.pop(), values.is_empty()) {
            (Some(Some(value)), true) => Ok(Some(value)),
            _ => Err(damaged()),
        }
    }
}
