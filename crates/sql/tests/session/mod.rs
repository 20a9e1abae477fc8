//! A session without a server: catalogs from a dump of database `sql`, which `testdata/record all` packs.
#![allow(dead_code, reason = "each test uses a part")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use stegodon_catalog::testing::CsvDir;
use stegodon_catalog::view::CatalogView;
use stegodon_catalog::{Catalog, SearchPath};
use stegodon_format::ids::Oid;
use stegodon_sql::{AnalyzeContext, ParamTypes, analyze, parse};
use stegodon_types::{FormatSettings, SqlError, TypeContext};

/// What `testdata/record` has packed: `catalogs/*.csv` and `trees/*`, unpacked once a process.
pub fn recorded() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("sql-recorded-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let archive = Path::new("testdata/recorded.tar.xz");
        let done = Command::new("tar").arg("-xJf").arg(archive).arg("-C").arg(&dir).status().unwrap();
        assert!(done.success(), "tar could not unpack the recorded catalogs");
        dir
    })
}

fn catalog() -> Arc<Catalog> {
    Arc::new(Catalog::build(&mut CsvDir::open(recorded().join("catalogs")).unwrap(), "sql").unwrap())
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

    /// What to analyse under.
    pub fn context(&self) -> AnalyzeContext<'_> {
        AnalyzeContext {
            catalog: &self.view.catalog,
            path: &self.view.path,
            types: TypeContext::new(&self.view, &self.settings),
            user: Oid(10),
            transform_null_equals: false,
        }
    }

    /// Parses and analyses one statement, its parameters to be inferred.
    pub fn analyze(&self, sql: &str) -> Result<stegodon_sql::Analyzed, SqlError> {
        let mut statements = parse(sql)?;
        assert_eq!(statements.len(), 1, "{sql}");
        analyze(&statements.remove(0), self.context(), ParamTypes { types: Vec::new(), variable: true })
    }
}
