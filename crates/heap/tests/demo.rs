//! Every table of the demo cluster, read from its pages, holds what PostgreSQL says it holds (testdata/demo.txt).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::SystemTime;

use arrow_array::ArrayRef;
use stegodon_buffer::{BufferPool, PoolOptions, ReadStream, StreamOptions};
use stegodon_format::ids::{
    AttrNumber, BlockNumber, DEFAULT_TABLESPACE, Fork, GLOBAL_TABLESPACE, OffsetNumber, Oid, RelFileLocator,
    RelFileNumber, Tid,
};
use stegodon_heap::toast::{Assembly, Chunk};
use stegodon_heap::{Attribute, Columns, Deformer, HeapPage, TupleDesc};
use stegodon_io::{DataDirectory, IoMethod, SyncMethod, WorkerMethod};
use stegodon_txn::{Transactions, VisibilityChecker};
use stegodon_types::column::value_at;
use stegodon_types::{Align, BuiltinTypes, FormatSettings, Layout, SqlState, TypeCatalog, TypeContext, ValueRef, ops};

#[derive(Debug, Default)]
struct Table {
    oid: u32,
    path: String,
    toast: u32,
    name: String,
    attrs: Vec<Attribute>,
    rows: usize,
    /// Column number and CRC.
    crcs: Vec<(i16, u32)>,
}

fn layout(type_oid: Oid) -> Option<Layout> {
    BuiltinTypes.type_desc(type_oid).ok()?.layout
}

fn tables() -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    for line in include_str!("../testdata/demo.txt").lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["table", oid, path, toast, name] => tables.push(Table {
                oid: oid.parse().unwrap(),
                path: path.to_owned(),
                toast: toast.parse().unwrap(),
                name: name.to_owned(),
                ..Table::default()
            }),
            ["column", _, type_oid, len, align, kept, name, ref missing @ ..] => {
                let type_oid = Oid(type_oid.parse().unwrap());
                let align = Align::from_letter(align.as_bytes()[0]).unwrap();
                let mut attr = Attribute::new(name, type_oid, len.parse().unwrap(), align, layout(type_oid));
                attr.dropped = kept == "dropped";
                if let ["missing", ..] = missing {
                    let settings = FormatSettings::default();
                    let cx = TypeContext::new(&BuiltinTypes, &settings);
                    let text = missing[1..].join(" ");
                    let ty = BuiltinTypes.type_desc(type_oid).unwrap();
                    attr.missing = Some(ops::text_in(&cx, &ty, text.as_bytes(), -1).unwrap());
                }
                tables.last_mut().unwrap().attrs.push(attr);
            }
            ["rows", rows] => tables.last_mut().unwrap().rows = rows.parse().unwrap(),
            ["crc", number, crc] => {
                tables.last_mut().unwrap().crcs.push((number.parse().unwrap(), crc.parse().unwrap()));
            }
            _ => panic!("testdata/demo.txt: {line}"),
        }
    }
    tables
}

fn locator(path: &str) -> RelFileLocator {
    let parts: Vec<&str> = path.split('/').collect();
    let number = |part: &str| part.parse::<u32>().unwrap();
    let (tablespace, database, file) = match parts[..] {
        ["global", file] => (GLOBAL_TABLESPACE, 0, file),
        ["base", database, file] => (DEFAULT_TABLESPACE, number(database), file),
        ["pg_tblspc", tablespace, _, database, file] => (Oid(number(tablespace)), number(database), file),
        _ => panic!("{path}"),
    };
    RelFileLocator { tablespace, database: Oid(database), number: RelFileNumber(number(file)) }
}

fn unpack() -> PathBuf {
    let to = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("heap-demo-{}", std::process::id()));
    std::fs::create_dir_all(&to).unwrap();
    let archive = "../../fixtures/demo.tar.xz";
    let status = Command::new("tar").arg("-C").arg(&to).args(["-xJf", archive]).status().unwrap();
    assert!(status.success());
    to
}

/// Every file and directory below: its name, length and time of change.
fn listing(home: &Path) -> Vec<(PathBuf, u64, SystemTime)> {
    let mut list = Vec::new();
    let mut todo = vec![home.to_path_buf()];
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
            let metadata = entry.metadata().unwrap();
            list.push((entry.path(), metadata.len(), metadata.modified().unwrap()));
            if metadata.is_dir() {
                todo.push(entry.path());
            }
        }
    }
    list.sort();
    list
}

struct Cluster {
    dir: Arc<DataDirectory>,
    pool: Arc<BufferPool>,
    visibility: VisibilityChecker,
    toast_paths: HashMap<u32, String>,
    /// Rows that were found behind a redirect or an older version.
    chained: usize,
}

impl Cluster {
    /// Calls `each` with every page and its visible tuples.
    fn scan(&mut self, path: &str, name: &str, mut each: impl FnMut(&HeapPage<'_>, &[OffsetNumber])) {
        let relation = self.dir.relation(locator(path));
        let mut blocks = 0..relation.nblocks(Fork::Main).unwrap();
        let source = move || blocks.next().map(|block| (BlockNumber(block), ()));
        let options = StreamOptions { full: true, ..StreamOptions::default() };
        let mut stream = ReadStream::new(&self.pool, &relation, Fork::Main, source, options);
        let mut offsets = Vec::new();
        while let Some((pinned, ())) = stream.next_blocking().unwrap() {
            let guard = pinned.latch_shared();
            let page = HeapPage::new(name, guard.block(), guard.view());
            page.visible_offsets(&mut self.visibility, &mut offsets).unwrap();
            self.check_chains(&page, &offsets);
            each(&page, &offsets);
        }
    }

    /// Whatever is visible is found from exactly one root, as an index would come to it, and nothing else is found.
    fn check_chains(&mut self, page: &HeapPage<'_>, visible: &[OffsetNumber]) {
        let mut found = Vec::new();
        for (offset, _) in page.page().item_ids() {
            let version = page.hot_search(offset, &mut self.visibility).unwrap();
            self.chained += usize::from(version.is_some_and(|version| version != offset));
            found.extend(version);
        }
        found.sort();
        assert_eq!(found, visible, "{} block {}", page.relation(), page.block());
    }

    /// Every value of a TOAST table: its chunks in the order of their numbers.
    fn chunks(&mut self, toast: u32) -> HashMap<u32, Vec<(i32, Vec<u8>)>> {
        let path = self.toast_paths[&toast].clone();
        let mut chunks: HashMap<u32, Vec<(i32, Vec<u8>)>> = HashMap::new();
        self.scan(&path, "toast", |page, offsets| {
            for &offset in offsets {
                let Chunk { value_id, seq, stored } = Chunk::read(page, offset).unwrap();
                chunks.entry(value_id.0).or_default().push((seq, stored.to_vec()));
            }
        });
        for list in chunks.values_mut() {
            list.sort();
        }
        chunks
    }

    fn read(&mut self, table: &Table, wanted: &[i16]) -> (usize, Vec<ArrayRef>, usize) {
        let desc = TupleDesc::new(&table.name, Oid(table.oid), table.attrs.clone()).unwrap();
        let numbers: Vec<AttrNumber> = wanted.iter().map(|&number| AttrNumber(number)).collect();
        let deformer = Deformer::new(&desc, &numbers).unwrap();
        let mut columns = Columns::new(&deformer, 100);
        self.scan(&table.path, &table.name, |page, offsets| deformer.deform(page, offsets, &mut columns).unwrap());
        let toasted = columns.toasted().to_vec();
        if !toasted.is_empty() {
            let chunks = self.chunks(table.toast);
            for (index, toasted) in toasted.iter().enumerate() {
                assert_eq!(toasted.pointer.toast_relation, Oid(table.toast));
                let mut assembly = Assembly::new(toasted.pointer, "toast");
                for (seq, stored) in &chunks[&toasted.pointer.value_id.0] {
                    assembly.push_stored(*seq, stored).unwrap();
                }
                columns.fill(index, assembly.finish().unwrap()).unwrap();
            }
        }
        (columns.rows(), columns.finish().unwrap(), toasted.len())
    }
}

fn type_of(table: &Table, number: i16) -> Oid {
    match number {
        -1 => Oid(27),
        -2 | -4 => Oid(28),
        -3 | -5 => Oid(29),
        -6 => Oid(26),
        _ => table.attrs[number as usize - 1].type_oid,
    }
}

#[test]
fn every_table_of_the_demo_cluster_holds_what_postgresql_says() {
    let home = unpack();
    let before = listing(&home);
    let dir = DataDirectory::open(home.join("demo")).unwrap();
    let verify_checksums = dir.control().has_checksums();
    assert!(verify_checksums, "the demo cluster has checksums");
    let tables = tables();
    let toast_paths: HashMap<u32, String> = tables.iter().map(|table| (table.oid, table.path.clone())).collect();
    let settings = FormatSettings::default();
    let cx = TypeContext::new(&BuiltinTypes, &settings);
    let (mut compared, mut toasted, mut unread) = (0, 0, Vec::new());
    let methods: [(usize, Arc<dyn IoMethod>); 2] =
        [(16, Arc::new(SyncMethod)), (5000, Arc::new(WorkerMethod::new(2).unwrap()))];
    for (frames, method) in methods {
        let pool = BufferPool::with_options(PoolOptions { frames, verify_checksums }, method).unwrap();
        let transactions = Arc::new(Transactions::open(&dir, dir.control()).unwrap());
        let snapshot = Arc::new(transactions.snapshot());
        let visibility = VisibilityChecker::new(transactions, snapshot);
        let mut cluster = Cluster {
            dir: Arc::clone(&dir),
            pool: Arc::clone(&pool),
            visibility,
            toast_paths: toast_paths.clone(),
            chained: 0,
        };
        for table in &tables {
            let known = |number: i16| number < 0 || layout(type_of(table, number)).is_some();
            let (wanted, unknown): (Vec<_>, Vec<_>) = table.crcs.iter().partition(|(number, _)| known(*number));
            unread.extend(unknown.iter().map(|(number, _)| format!("{}.{number}", table.name)));
            let numbers: Vec<i16> = wanted.iter().map(|(number, _)| *number).collect();
            let (rows, arrays, fetched) = cluster.read(table, &numbers);
            assert_eq!(rows, table.rows, "{}", table.name);
            toasted += fetched;
            for ((number, crc), array) in wanted.iter().zip(&arrays) {
                let ty = BuiltinTypes.type_desc(type_of(table, *number)).unwrap();
                let mut text = Vec::new();
                let mut printed = Ok(());
                for row in 0..rows {
                    match value_at(array, ty.layout.unwrap(), row) {
                        None => text.extend_from_slice(b"\\N"),
                        // The system columns' types do without the table of types.
                        Some(ValueRef::UInt32(value)) if (26..=29).contains(&ty.oid.0) => {
                            write!(text, "{value}").unwrap();
                        }
                        Some(ValueRef::Bytes(tid)) if ty.oid == Oid(27) => {
                            write!(text, "{}", Tid::from_bytes(tid.try_into().unwrap())).unwrap();
                        }
                        Some(value) => printed = printed.and(ops::text_out(&cx, &ty, value, &mut text)),
                    }
                    text.push(b'\n');
                }
                if let Err(error) = printed {
                    assert_eq!(error.state, SqlState::FeatureNotSupported, "{error}");
                    unread.push(format!("{}.{number} ({})", table.name, ty.name));
                    continue;
                }
                let shown = String::from_utf8_lossy(&text[..text.len().min(300)]).into_owned();
                assert_eq!(crc32c::crc32c(&text), *crc, "{} column {number} ({}):\n{shown}", table.name, ty.name);
                compared += 1;
            }
        }
        assert!(cluster.chained > 50, "{} rows in chains", cluster.chained);
        drop(cluster);
        assert_eq!(pool.pinned_count(), 0);
    }
    eprintln!(
        "{compared} columns compared, {toasted} values from TOAST tables; no text form yet: {}",
        unread.join(", ")
    );
    assert!(compared > 1500 && toasted > 400);
    assert_eq!(listing(&home), before, "nothing in the directory was touched");
    std::fs::remove_dir_all(home).unwrap();
}
