//! For tests: the catalogs of a fresh cluster, and catalogs from a directory of CSV files, one a catalog, as
//! `COPY ... WITH (FORMAT csv, HEADER)` writes them (see `testdata/dump.sh`: columns of type `regproc` as OIDs, those of type `anyarray` empty).
#![allow(clippy::indexing_slicing, reason = "reads a trusted dump; tests only")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use stegodon_access::{Storage, StorageOptions};
use stegodon_format::ids::Oid;
use stegodon_types::{Align, Datum, Layout, SqlError, SqlResult};

use crate::array::{self, ElementForm};
use crate::lookup::Catalog;
use crate::source::{RowSource, TableRows};
use crate::{acl, builtin};

/// The catalogs of a fresh PostgreSQL 18 cluster's database `postgres`, read once a process: from the CSV files in
/// `STEGODON_CATDUMP` where that is set, else from a cluster that `initdb` makes once and the cache keeps.
pub fn catalog() -> SqlResult<Arc<Catalog>> {
    static CATALOG: OnceLock<SqlResult<Arc<Catalog>>> = OnceLock::new();
    let read = || match std::env::var_os("STEGODON_CATDUMP") {
        Some(dir) => Catalog::from_csv_dir(dir),
        None => Catalog::load(&*Storage::open(fresh_cluster()?, &StorageOptions::default())?, "postgres"),
    };
    CATALOG.get_or_init(|| read().map(Arc::new)).clone()
}

/// The directory of a fresh cluster that no server ever ran on, made when it is not there.
pub fn fresh_cluster() -> SqlResult<PathBuf> {
    let root = Path::new("../..");
    let script = root.join("scripts/postgres");
    let bin = run(Command::new(&script).arg("18"))?;
    let bin = Path::new(bin.trim());
    let cache = bin.parent().and_then(Path::parent).ok_or_else(|| broken("scripts/postgres printed no path"))?;
    let cluster = cache.join("fresh-cluster-18");
    if cluster.join("global/pg_control").exists() {
        return Ok(cluster);
    }
    // Made beside its place and renamed, so that two test processes cannot see a half of it.
    let making = cache.join(format!("fresh-cluster-18.{}", std::process::id()));
    std::fs::create_dir_all(&making).map_err(broken)?;
    let root_user = std::fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0);
    let mut command = if root_user {
        run(Command::new("chown").arg("nobody:nogroup").arg(&making))?;
        let mut command = Command::new("setpriv");
        command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups", "env", "HOME=/tmp"]);
        command.arg(bin.join("initdb"));
        command
    } else {
        Command::new(bin.join("initdb"))
    };
    command.arg("-D").arg(&making).current_dir("/").env("LC_ALL", "C");
    run(command.args(["-E", "UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "-U", "postgres", "-N"]))?;
    match std::fs::rename(&making, &cluster) {
        Ok(()) => Ok(cluster),
        // Another process was first.
        Err(_) if cluster.join("global/pg_control").exists() => {
            std::fs::remove_dir_all(&making).map_err(broken)?;
            Ok(cluster)
        }
        Err(e) => Err(broken(e)),
    }
}

fn run(command: &mut Command) -> SqlResult<String> {
    let output = command.output().map_err(|e| broken(format!("{command:?}: {e}")))?;
    if !output.status.success() {
        return Err(broken(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr))));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

impl Catalog {
    /// For tests: the catalogs of database `postgres` from a directory of CSV files, see [`crate::testing`].
    pub fn from_csv_dir(dir: impl AsRef<Path>) -> SqlResult<Catalog> {
        Catalog::build(&mut CsvDir::open(dir)?, "postgres")
    }
}

/// A directory of CSV files as a source of rows.
pub struct CsvDir {
    dir: PathBuf,
    /// The type of each catalog's column.
    types: HashMap<(String, String), u32>,
    roles: HashMap<String, Oid>,
}

fn broken(what: impl std::fmt::Display) -> SqlError {
    SqlError::internal(format!("catalog dump: {what}"))
}

impl CsvDir {
    /// Reads the names of roles and the types of catalogs' columns.
    pub fn open(dir: impl AsRef<Path>) -> SqlResult<Self> {
        let mut this = Self { dir: dir.as_ref().to_owned(), types: HashMap::new(), roles: HashMap::new() };
        let number = |s: &Option<String>| s.as_deref().unwrap_or("").parse::<u32>().map_err(broken);
        for (row, at) in this.text("pg_authid")? {
            this.roles.insert(row[at["rolname"]].clone().unwrap_or_default(), Oid(number(&row[at["oid"]])?));
        }
        let mut names = HashMap::new();
        for (row, at) in this.text("pg_class")? {
            if row[at["relnamespace"]].as_deref() == Some("11") {
                names.insert(row[at["oid"]].clone(), row[at["relname"]].clone().unwrap_or_default());
            }
        }
        for (row, at) in this.text("pg_attribute")? {
            if let Some(name) = names.get(&row[at["attrelid"]]) {
                let column = row[at["attname"]].clone().unwrap_or_default();
                this.types.insert((name.clone(), column), number(&row[at["atttypid"]])?);
            }
        }
        Ok(this)
    }

    #[allow(clippy::type_complexity)]
    fn text(&self, name: &str) -> SqlResult<Vec<(Vec<Option<String>>, HashMap<String, usize>)>> {
        let text = std::fs::read_to_string(self.dir.join(format!("{name}.csv"))).map_err(broken)?;
        let mut records = parse_csv(&text).into_iter();
        let header = records.next().unwrap_or_default();
        let at: HashMap<String, usize> =
            header.into_iter().enumerate().map(|(i, name)| (name.unwrap_or_default(), i)).collect();
        Ok(records.map(|row| (row, at.clone())).collect())
    }

    fn datum(&self, type_oid: u32, text: &str) -> Option<Datum> {
        let array = |element: u32, form: ElementForm, lower: i32, items: Vec<Vec<u8>>| {
            Some(Datum::bytes(array::build(Oid(element), form, lower, &items)))
        };
        let spaced = || text.split_ascii_whitespace();
        let listed = || array_items(text);
        match type_oid {
            22 => array(21, ElementForm::INT2, 0, spaced().map(int2).collect::<Option<_>>()?),
            30 => array(26, ElementForm::OID, 0, spaced().map(oid).collect::<Option<_>>()?),
            1005 => array(21, ElementForm::INT2, 1, listed().iter().map(|s| int2(s)).collect::<Option<_>>()?),
            1028 => array(26, ElementForm::OID, 1, listed().iter().map(|s| oid(s)).collect::<Option<_>>()?),
            1002 => {
                let items = listed().iter().map(|s| vec![s.bytes().next().unwrap_or(0)]).collect();
                array(18, ElementForm::CHAR, 1, items)
            }
            1009 => array(25, ElementForm::TEXT, 1, listed().into_iter().map(String::into_bytes).collect()),
            1021 => {
                let item = |s: &String| Some(s.parse::<f32>().ok()?.to_le_bytes().to_vec());
                array(700, ElementForm::FLOAT4, 1, listed().iter().map(item).collect::<Option<_>>()?)
            }
            1034 => {
                let role = |name: &str| self.roles.get(name).copied();
                let item = |s: &String| Some(acl::encode(&acl::parse(s, role)?));
                let form = ElementForm { len: 16, align: Align::Double, layout: Layout::Fixed(16) };
                array(1033, form, 1, listed().iter().map(item).collect::<Option<_>>()?)
            }
            _ => Some(match builtin::base_layout(Oid(type_oid), -1)? {
                Layout::Bool => Datum::Bool(text == "t"),
                Layout::Char => Datum::Char(text.bytes().next().unwrap_or(0)),
                Layout::Int16 => Datum::Int16(text.parse().ok()?),
                Layout::Int32 => Datum::Int32(text.parse().ok()?),
                Layout::UInt32 => Datum::UInt32(text.parse().ok()?),
                Layout::Int64 => Datum::Int64(text.parse().ok()?),
                Layout::Float32 => Datum::Float32(text.parse().ok()?),
                Layout::Name | Layout::Bytes => Datum::bytes(text),
                _ => return None,
            }),
        }
    }
}

fn int2(text: &str) -> Option<Vec<u8>> {
    Some(text.parse::<i16>().ok()?.to_le_bytes().to_vec())
}

fn oid(text: &str) -> Option<Vec<u8>> {
    Some(text.parse::<u32>().ok()?.to_le_bytes().to_vec())
}

impl RowSource for CsvDir {
    fn table(&mut self, name: &str, columns: &[&str]) -> SqlResult<TableRows> {
        let mut out = TableRows { columns: columns.iter().map(ToString::to_string).collect(), rows: Vec::new() };
        let rows = self.text(name)?;
        if let Some((_, at)) = rows.first() {
            out.columns.retain(|c| at.contains_key(c));
        }
        for (row, at) in rows {
            let mut values = Vec::with_capacity(out.columns.len());
            for column in &out.columns {
                let text = row.get(at[column]).cloned().flatten();
                let type_oid = self.types.get(&(name.to_owned(), column.clone())).copied().unwrap_or(25);
                values.push(match text {
                    None => None,
                    Some(text) => {
                        let value = self.datum(type_oid, &text);
                        Some(value.ok_or_else(|| broken(format!("{name}.{column}: {text}")))?)
                    }
                });
            }
            out.rows.push(values);
        }
        Ok(out)
    }
}

/// CSV as PostgreSQL writes it: an unquoted empty field is NULL.
pub fn parse_csv(text: &str) -> Vec<Vec<Option<String>>> {
    let (mut records, mut record, mut field, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                quoted = true;
                while let Some(c) = chars.next() {
                    if c != '"' {
                        field.push(c);
                    } else if chars.next_if_eq(&'"').is_some() {
                        field.push('"');
                    } else {
                        break;
                    }
                }
            }
            ',' | '\n' => {
                let value = std::mem::take(&mut field);
                record.push((quoted || !value.is_empty()).then_some(value));
                quoted = false;
                if c == '\n' {
                    records.push(std::mem::take(&mut record));
                }
            }
            c => field.push(c),
        }
    }
    records
}

/// The items of a one-dimensional array's text without nulls.
fn array_items(text: &str) -> Vec<String> {
    let inner = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')).unwrap_or("");
    let (mut items, mut item, mut quoted, mut any) = (Vec::new(), String::new(), false, false);
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        any = true;
        match c {
            '"' => quoted = !quoted,
            '\\' => item.extend(chars.next()),
            ',' if !quoted => items.push(std::mem::take(&mut item)),
            c => item.push(c),
        }
    }
    if any {
        items.push(item);
    }
    items
}

/// Every row of a catalog as text, by a name of its own: for comparing two. Left out is what a dump cannot show: missing
/// values, statistics, the files of mapped relations.
pub fn describe(catalog: &Catalog) -> std::collections::BTreeMap<String, String> {
    let mut out = std::collections::BTreeMap::new();
    fn all<K: std::fmt::Debug, V: std::fmt::Debug>(
        out: &mut std::collections::BTreeMap<String, String>,
        kind: &str,
        map: &HashMap<K, V>,
    ) {
        out.extend(map.iter().map(|(k, v)| (format!("{kind} {k:?}"), format!("{v:?}"))));
    }
    for relation in catalog.relations.values() {
        let mut relation = (**relation).clone();
        relation.attributes =
            relation.attributes.iter().map(|a| crate::rows::Attribute { missing: None, ..a.clone() }).collect();
        if relation.oid.0 < builtin::FIRST_NORMAL_OID {
            relation.locator = None;
        }
        out.insert(format!("relation {}", relation.oid), format!("{relation:?}"));
    }
    all(&mut out, "namespace", &catalog.namespaces);
    all(&mut out, "type", &catalog.types);
    all(&mut out, "type row", &catalog.type_rows);
    all(&mut out, "range", &catalog.ranges);
    all(&mut out, "enum", &catalog.enums);
    all(&mut out, "proc", &catalog.procs);
    all(&mut out, "proc settings", &catalog.proc_settings);
    all(&mut out, "aggregate", &catalog.aggregates);
    all(&mut out, "initial", &catalog.aggregate_initial);
    all(&mut out, "operator", &catalog.operators);
    all(&mut out, "cast", &catalog.casts);
    all(&mut out, "family", &catalog.opfamilies);
    all(&mut out, "class", &catalog.opclasses);
    all(&mut out, "amop", &catalog.amops_by_operator);
    for (family, procs) in &catalog.amprocs {
        let mut procs: Vec<String> = procs.iter().map(|p| format!("{p:?}")).collect();
        procs.sort();
        out.insert(format!("amproc {family}"), procs.join("\n"));
    }
    all(&mut out, "collation", &catalog.collations);
    all(&mut out, "database", &catalog.databases);
    for role in catalog.roles.values() {
        let mut role = (**role).clone();
        role.member_of.sort_unstable();
        out.insert(format!("role {}", role.oid), format!("{role:?}"));
    }
    all(&mut out, "rules", &catalog.rules);
    all(&mut out, "constraints", &catalog.constraints);
    all(&mut out, "domain constraints", &catalog.domain_constraints);
    all(&mut out, "language", &catalog.languages);
    all(&mut out, "access method", &catalog.access_methods);
    all(&mut out, "tablespace", &catalog.tablespaces);
    all(&mut out, "configuration", &catalog.ts_configs);
    all(&mut out, "dictionary", &catalog.ts_dicts);
    let mut settings: Vec<String> = catalog.role_settings.iter().map(|s| format!("{s:?}")).collect();
    settings.sort();
    out.insert("role settings".to_owned(), settings.join("\n"));
    out
}
