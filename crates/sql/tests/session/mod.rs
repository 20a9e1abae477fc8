//! A session without a server: catalogs from a dump of database `sql`, which `testdata/record setup` writes.

use std::path::PathBuf;
use std::sync::Arc;

use stegodon_catalog::testing::CsvDir;
use stegodon_catalog::view::CatalogView;
use stegodon_catalog::{Catalog, SearchPath};
use stegodon_format::ids::Oid;
use stegodon_sql::{AnalyzeContext, ParamTypes, analyze, parse};
use stegodon_types::{FormatSettings, SqlError, TypeContext};

fn catalog() -> Arc<Catalog> {
    let dir = std::env::var_os("STEGODON_SQL_CATDUMP")
        .map_or_else(|| PathBuf::from("/work/cache/sql/catdump"), PathBuf::from);
    Arc::new(Catalog::build(&mut CsvDir::open(dir).unwrap(), "sql").unwrap())
}

/// The session.
pub struct Session {
    /// Its catalogs and path.
    pub view: CatalogView,
    settings: FormatSettings,
}

impl Session {
    /// A session as the superuser.
    pub fn new() -> Self {
        let catalog = catalog();
        let path = SearchPath { namespaces: vec![Oid(11), catalog.namespace_by_name("public").unwrap().oid] };
        Self { view: CatalogView::new(catalog, path), settings: FormatSettings::default() }
    }

    /// Parses and analyses one statement, its parameters to be inferred.
    pub fn analyze(&self, sql: &str) -> Result<stegodon_sql::Analyzed, SqlError> {
        let mut statements = parse(sql)?;
        assert_eq!(statements.len(), 1, "{sql}");
        let cx = AnalyzeContext {
            catalog: &self.view.catalog,
            path: &self.view.path,
            types: TypeContext::new(&self.view, &self.settings),
            user: Oid(10),
            transform_null_equals: false,
        };
        analyze(&statements.remove(0), cx, ParamTypes { types: Vec::new(), variable: true })
    }
}
