//! Reading the catalogs from a directory's own files.
//!
//! ```text
//!  global/pg_filenode.map ─> pg_database (columns known) ─> the database's OID and tablespace
//!  base/N/pg_filenode.map ─> pg_class, pg_attribute (columns known) ─> every other catalog's file and columns
//!                                                                    ─> rows by column name ─> Catalog::build
//! ```
//!
//! Only those three catalogs' columns are written down (`crate::bootstrap`); all else is what the directory says of
//! itself. The shared catalogs are described by each database's own `pg_class`.

use std::collections::HashMap;
use std::sync::Arc;

use stegodon_access::{Storage, Table, Toast, read_all};
use stegodon_format::ids::{AttrNumber, GLOBAL_TABLESPACE, Oid, RelFileLocator, RelFileNumber};
use stegodon_format::relmap::RelationMap;
use stegodon_format::version::Version;
use stegodon_heap::{Attribute, TupleDesc};
use stegodon_types::{Datum, SqlError, SqlResult, SqlState};

use crate::bootstrap::{PG_ATTRIBUTE, PG_CLASS, PG_DATABASE, bootstrap_desc, column};
use crate::lookup::{Catalog, PG_CATALOG};
use crate::source::{Reader, RowSource, TableRows};

const PG_TOAST_NAMESPACE: Oid = Oid(99);

fn corrupted(what: impl std::fmt::Display) -> SqlError {
    SqlError::new(SqlState::DataCorrupted, what.to_string())
}

/// What finding a catalog's rows needs of `pg_class`.
struct Class {
    oid: Oid,
    name: String,
    file: RelFileNumber,
    tablespace: Oid,
    toast: Oid,
    shared: bool,
}

/// A database's catalogs as rows.
struct Directory<'s> {
    storage: &'s Storage,
    database: Oid,
    tablespace: Oid,
    map: RelationMap,
    /// By name; of `pg_catalog` and, for their TOAST tables, by OID.
    names: HashMap<String, Oid>,
    classes: HashMap<Oid, Class>,
    columns: HashMap<Oid, Vec<Attribute>>,
}

/// Rows of a table whose columns are known beforehand.
struct Known<'s> {
    storage: &'s Storage,
    table: Table,
}

impl RowSource for Known<'_> {
    fn table(&mut self, _: &str, columns: &[&str]) -> SqlResult<TableRows> {
        rows_of(self.storage, &self.table, columns)
    }
}

fn rows_of(storage: &Storage, table: &Table, columns: &[&str]) -> SqlResult<TableRows> {
    let mut wanted = Vec::new();
    let mut names = Vec::new();
    for (attribute, number) in table.desc.attrs().iter().zip(1_i16..) {
        if !attribute.dropped && columns.contains(&attribute.name.as_str()) {
            wanted.push(AttrNumber(number));
            names.push(attribute.name.clone());
        }
    }
    Ok(TableRows { columns: names, rows: read_all(storage, table, &wanted)? })
}

/// The database's OID and tablespace.
fn find_database(storage: &Storage, name: &str) -> SqlResult<(Oid, Oid)> {
    let locator = storage
        .shared_catalog(PG_DATABASE)
        .ok_or_else(|| corrupted("the relation map of the shared catalogs has no pg_database"))?;
    let desc = bootstrap_desc(PG_DATABASE, storage.directory().version())?;
    let table = Table { desc, files: storage.relation(locator), toast: None };
    let reader = Reader::new(&mut Known { storage, table }, "pg_database", &["oid", "datname", "dattablespace"])?;
    for row in reader.rows() {
        if row.text("datname")? == name {
            return Ok((row.oid("oid")?, row.oid("dattablespace")?));
        }
    }
    Err(SqlError::new(SqlState::InvalidCatalogName, format!("database \"{name}\" does not exist")))
}

impl<'s> Directory<'s> {
    fn open(storage: &'s Storage, database: &str) -> SqlResult<Self> {
        let (oid, tablespace) = find_database(storage, database)?;
        let map = storage.database_map(tablespace, oid)?;
        let mut this = Self {
            storage,
            database: oid,
            tablespace,
            map,
            names: HashMap::new(),
            classes: HashMap::new(),
            columns: HashMap::new(),
        };
        this.read_classes()?;
        this.read_columns()?;
        Ok(this)
    }

    fn known(&self, name: &str, relation: Oid) -> SqlResult<Known<'s>> {
        let number = self.map.get(relation);
        let number = number.ok_or_else(|| corrupted(format!("the database's relation map has no {name}")))?;
        let desc = bootstrap_desc(relation, self.storage.directory().version())?;
        let locator = RelFileLocator { tablespace: self.tablespace, database: self.database, number };
        Ok(Known { storage: self.storage, table: Table { desc, files: self.storage.relation(locator), toast: None } })
    }

    fn read_classes(&mut self) -> SqlResult<()> {
        let columns = &[
            "oid",
            "relname",
            "relnamespace",
            "relfilenode",
            "reltablespace",
            "reltoastrelid",
            "relisshared",
            "relkind",
        ];
        let reader = Reader::new(&mut self.known("pg_class", PG_CLASS)?, "pg_class", columns)?;
        for row in reader.rows() {
            let namespace = row.oid("relnamespace")?;
            if !matches!(row.char("relkind")?, b'r' | b't') || !matches!(namespace, PG_CATALOG | PG_TOAST_NAMESPACE) {
                continue;
            }
            let class = Class {
                oid: row.oid("oid")?,
                name: row.text("relname")?,
                file: RelFileNumber(row.oid("relfilenode")?.0),
                tablespace: row.oid("reltablespace")?,
                toast: row.oid("reltoastrelid")?,
                shared: row.bool("relisshared")?,
            };
            if namespace == PG_CATALOG {
                self.names.insert(class.name.clone(), class.oid);
            }
            self.classes.insert(class.oid, class);
        }
        Ok(())
    }

    fn read_columns(&mut self) -> SqlResult<()> {
        let columns = &["attrelid", "attname", "atttypid", "attlen", "attnum", "attalign", "attisdropped"];
        let reader = Reader::new(&mut self.known("pg_attribute", PG_ATTRIBUTE)?, "pg_attribute", columns)?;
        let mut found: HashMap<Oid, Vec<(i16, Attribute)>> = HashMap::new();
        for row in reader.rows() {
            let (relation, number) = (row.oid("attrelid")?, row.i16("attnum")?);
            if number <= 0 || !self.classes.get(&relation).is_some_and(|c| self.names.contains_key(&c.name)) {
                continue;
            }
            let align = crate::build::align(row.char("attalign")?)?;
            let mut attribute = column(&row.text("attname")?, row.oid("atttypid")?.0, row.i16("attlen")?, align);
            attribute.dropped = row.bool("attisdropped")?;
            found.entry(relation).or_default().push((number, attribute));
        }
        for (relation, mut attributes) in found {
            attributes.sort_by_key(|(number, _)| *number);
            if attributes.iter().zip(1_i16..).any(|((number, _), want)| *number != want) {
                return Err(corrupted(format!("pg_attribute has a gap or a duplicate in relation {relation}")));
            }
            self.columns.insert(relation, attributes.into_iter().map(|(_, a)| a).collect());
        }
        Ok(())
    }

    fn locator(&self, class: &Class) -> SqlResult<RelFileLocator> {
        let number = if class.file.0 == 0 { self.mapped_file(class.oid, class.shared) } else { Some(class.file) };
        let number = number.ok_or_else(|| corrupted(format!("catalog \"{}\" has no file", class.name)))?;
        Ok(if class.shared {
            RelFileLocator { tablespace: GLOBAL_TABLESPACE, database: Oid::INVALID, number }
        } else {
            let tablespace = if class.tablespace.is_valid() { class.tablespace } else { self.tablespace };
            RelFileLocator { tablespace, database: self.database, number }
        })
    }
}

impl RowSource for Directory<'_> {
    fn table(&mut self, name: &str, columns: &[&str]) -> SqlResult<TableRows> {
        let Some(class) = self.names.get(name).and_then(|oid| self.classes.get(oid)) else {
            return Ok(TableRows::default());
        };
        let attributes = self.columns.get(&class.oid).cloned().unwrap_or_default();
        let desc = TupleDesc::new(name, class.oid, attributes)?;
        let toast = match self.classes.get(&class.toast) {
            Some(toast) => {
                let files = self.storage.relation(self.locator(toast)?);
                Some(Arc::new(Toast::new(toast.name.clone(), toast.oid, files, None)?))
            }
            None => None,
        };
        let table = Table { desc, files: self.storage.relation(self.locator(class)?), toast };
        rows_of(self.storage, &table, columns)
    }

    fn version(&self) -> Version {
        self.storage.directory().version()
    }

    fn mapped_file(&self, relation: Oid, shared: bool) -> Option<RelFileNumber> {
        if shared { self.storage.shared_mapped_file(relation) } else { self.map.get(relation) }
    }
}

impl Catalog {
    /// Reads the catalogs of a database, with the shared ones, from an opened cluster. Blocks on storage.
    pub fn load(storage: &Storage, database: &str) -> SqlResult<Catalog> {
        Catalog::build(&mut Directory::open(storage, database)?, database)
    }

    /// The names of the cluster's databases, before one is chosen.
    pub fn database_names(storage: &Storage) -> SqlResult<Vec<String>> {
        let locator = storage
            .shared_catalog(PG_DATABASE)
            .ok_or_else(|| corrupted("the relation map of the shared catalogs has no pg_database"))?;
        let desc = bootstrap_desc(PG_DATABASE, storage.directory().version())?;
        let table = Table { desc, files: storage.relation(locator), toast: None };
        let reader = Reader::new(&mut Known { storage, table }, "pg_database", &["datname"])?;
        reader.rows().map(|row| row.text("datname")).collect()
    }

    /// A relation ready to be scanned: its columns, files, and TOAST table with its index.
    pub fn open_table(&self, storage: &Storage, relation: Oid) -> SqlResult<Table> {
        let missing =
            |oid: Oid| SqlError::new(SqlState::UndefinedTable, format!("relation with OID {oid} does not exist"));
        let row = self.relation(relation).ok_or_else(|| missing(relation))?;
        let locator = row.locator.ok_or_else(|| {
            SqlError::new(SqlState::WrongObjectType, format!("cannot open relation \"{}\"", row.name))
                .detail("It has no storage.")
        })?;
        let attributes = row.attributes.iter().map(heap_attribute).collect();
        let desc = TupleDesc::new(row.name.clone(), row.oid, attributes)?;
        let toast = if row.toast.is_valid() {
            let toast = self.relation(row.toast).ok_or_else(|| missing(row.toast))?;
            let files = toast.locator.ok_or_else(|| missing(row.toast))?;
            let index = toast
                .indexes
                .iter()
                .filter_map(|&i| self.relation(i))
                .find(|i| i.index.as_ref().is_some_and(|x| x.valid && x.columns == [AttrNumber(1), AttrNumber(2)]));
            let index = index.and_then(|i| Some((i.name.clone(), storage.relation(i.locator?))));
            Some(Arc::new(Toast::new(toast.name.clone(), toast.oid, storage.relation(files), index)?))
        } else {
            None
        };
        Ok(Table { desc, files: storage.relation(locator), toast })
    }
}

/// A column as the heap wants to know it.
fn heap_attribute(a: &crate::rows::Attribute) -> Attribute {
    Attribute {
        name: a.name.clone(),
        type_oid: a.type_oid,
        len: a.len,
        align: a.align,
        layout: a.layout,
        dropped: a.dropped,
        missing: a.missing.clone() as Option<Datum>,
    }
}
