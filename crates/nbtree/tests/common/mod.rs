//! A little language for indexes and scan keys, said both to PostgreSQL as SQL and to Stegodon as scan keys.
//!
//! ```text
//! index     a int4 desc, b text nulls first include c int8
//! keys      a >= 3; a < 7::int8; b = any {x,y,null}; b is not null; (a,b) > (3,x); a = null
//! ```
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(dead_code, reason = "each test uses a part")]

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use stegodon_format::ids::{BlockNumber, Oid, Tid};
use stegodon_format::page::{BLCKSZ, Page, PageRef};
use stegodon_nbtree::{
    Argument, BtreeScan, Direction, IndexAttribute, IndexDesc, IndexKey, KeyComparator, PageSource, RowMember, ScanKey,
    ScanOptions, Strategy,
};
use stegodon_types::{Align, BuiltinTypes, Collation, Datum, FormatSettings, SqlResult, TypeCatalog, TypeContext};

/// Type name, OID, its operator class's input type, the family's support functions: (left, right, function).
type TypeRow = (&'static str, u32, u32, &'static [(u32, u32, u32)]);

const INTEGERS: &[(u32, u32, u32)] = &[
    (21, 21, 350),
    (23, 23, 351),
    (20, 20, 842),
    (21, 23, 2190),
    (21, 20, 2192),
    (23, 21, 2191),
    (23, 20, 2188),
    (20, 21, 2193),
    (20, 23, 2189),
];
const TEXTS: &[(u32, u32, u32)] = &[(25, 25, 360), (19, 19, 359), (19, 25, 246), (25, 19, 253)];

const TYPES: &[TypeRow] = &[
    ("int2", 21, 21, INTEGERS),
    ("int4", 23, 23, INTEGERS),
    ("int8", 20, 20, INTEGERS),
    ("text", 25, 25, TEXTS),
    ("varchar", 1043, 25, TEXTS),
    ("name", 19, 19, TEXTS),
    ("bool", 16, 16, &[(16, 16, 1693)]),
    ("float8", 701, 701, &[(701, 701, 355)]),
    ("numeric", 1700, 1700, &[(1700, 1700, 1769)]),
    ("uuid", 2950, 2950, &[(2950, 2950, 2960)]),
    ("bytea", 17, 17, &[(17, 17, 1954)]),
];

fn type_row(name: &str) -> &'static TypeRow {
    TYPES.iter().find(|row| row.0 == name).unwrap_or_else(|| panic!("no type {name}"))
}

/// One column of an index.
#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub type_name: String,
    pub desc: bool,
    pub nulls_first: bool,
    pub is_key: bool,
}

/// The columns of an index.
#[derive(Clone, Debug)]
pub struct Spec(pub Vec<Column>);

impl Spec {
    pub fn parse(text: &str) -> Self {
        let (keys, includes) = text.split_once(" include ").unwrap_or((text, ""));
        let column = |text: &str, is_key| {
            let words: Vec<&str> = text.split_whitespace().collect();
            let desc = words.contains(&"desc");
            let nulls_first = if words.contains(&"nulls") { words.contains(&"first") } else { desc };
            Column { name: words[0].into(), type_name: words[1].into(), desc, nulls_first, is_key }
        };
        let includes = includes.split(',').filter(|text| !text.trim().is_empty());
        Spec(keys.split(',').map(|text| column(text, true)).chain(includes.map(|text| column(text, false))).collect())
    }

    /// What goes between the parentheses of CREATE INDEX, or behind ORDER BY.
    pub fn order_by(&self, direction: Direction) -> String {
        let back = direction == Direction::Backward;
        let keys = self.0.iter().filter(|column| column.is_key);
        let one = |column: &Column| {
            let order = if column.desc == back { "asc" } else { "desc" };
            let nulls = if column.nulls_first == back { "last" } else { "first" };
            format!("{} {order} nulls {nulls}", column.name)
        };
        keys.map(one).collect::<Vec<_>>().join(", ")
    }

    pub fn includes(&self) -> String {
        let names: Vec<&str> = self.0.iter().filter(|c| !c.is_key).map(|c| c.name.as_str()).collect();
        if names.is_empty() { String::new() } else { format!("include ({})", names.join(", ")) }
    }

    pub fn position(&self, name: &str) -> usize {
        self.0.iter().position(|column| column.name == name).unwrap_or_else(|| panic!("no column {name}"))
    }

    pub fn desc(&self, name: &str) -> Arc<IndexDesc> {
        let attributes = self.0.iter().map(|column| {
            let oid = if column.is_key && column.type_name == "name" {
                // name_ops stores its keys as cstrings.
                return IndexAttribute { len: -2, align: Align::Char, layout: None };
            } else {
                Oid(type_row(&column.type_name).1)
            };
            let desc = BuiltinTypes.type_desc(oid).unwrap();
            IndexAttribute { len: desc.len, align: desc.align, layout: desc.layout }
        });
        let keys = self.0.iter().filter(|column| column.is_key).map(|column| {
            let row = type_row(&column.type_name);
            let of = |&(left, right, function): &(u32, u32, u32)| {
                let compare = KeyComparator::of_support(
                    Oid(function),
                    Arc::new(BuiltinTypes),
                    Arc::new(FormatSettings::default()),
                    BuiltinTypes.type_desc(Oid(row.2)).unwrap(),
                    Collation::C,
                );
                (Oid(left), Oid(right), compare.unwrap_or_else(|| panic!("no support function {function}")))
            };
            IndexKey {
                input_type: Oid(row.2),
                desc: column.desc,
                nulls_first: column.nulls_first,
                compare: row.3.iter().map(of).collect(),
            }
        });
        Arc::new(IndexDesc::new(name, attributes.collect(), keys.collect(), false).unwrap())
    }
}

fn datum(type_name: &str, text: &str) -> Option<Datum> {
    if text == "null" {
        return None;
    }
    let settings = FormatSettings::default();
    let context = TypeContext::new(&BuiltinTypes, &settings);
    let desc = BuiltinTypes.type_desc(Oid(type_row(type_name).1)).unwrap();
    Some(stegodon_types::text_in(&context, &desc, text.as_bytes(), -1).unwrap())
}

/// What a column's argument is taken for where nothing else is said.
fn default_type(column: &Column) -> &str {
    if column.type_name == "varchar" { "text" } else { &column.type_name }
}

const OPERATORS: [(&str, Strategy); 5] = [
    (">=", Strategy::GreaterEqual),
    ("<=", Strategy::LessEqual),
    ("=", Strategy::Equal),
    ("<", Strategy::Less),
    (">", Strategy::Greater),
];

fn operator(text: &str) -> Strategy {
    OPERATORS.iter().find(|(symbol, _)| *symbol == text).unwrap_or_else(|| panic!("no operator {text}")).1
}

fn quoted(text: &str, type_name: &str) -> String {
    if text == "null" { format!("null::{type_name}") } else { format!("'{text}'::{type_name}") }
}

fn list(text: &str, open: char, close: char) -> Vec<&str> {
    let inner = text.trim().trim_start_matches(open).trim_end_matches(close);
    if inner.is_empty() { Vec::new() } else { inner.split(',').map(str::trim).collect() }
}

/// Scan keys from text, with the same as SQL's WHERE.
pub fn keys(spec: &Spec, text: &str) -> (Vec<ScanKey>, String) {
    let mut keys = Vec::new();
    let mut sql = String::from("true");
    for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        if part.starts_with('(') {
            let (names, rest) = part.split_once(')').unwrap();
            let (symbol, values) = rest.trim().split_once(' ').unwrap();
            let mut members = Vec::new();
            let mut right = Vec::new();
            for (name, value) in list(names, '(', ')').into_iter().zip(list(values, '(', ')')) {
                let column = spec.position(name);
                let type_name = default_type(&spec.0[column]);
                let type_oid = Oid(type_row(type_name).1);
                members.push(RowMember { column, argument: Argument { value: datum(type_name, value), type_oid } });
                right.push(quoted(value, type_name));
            }
            write!(sql, " and {names}) {symbol} ({})", right.join(", ")).unwrap();
            keys.push(ScanKey::Row { strategy: operator(symbol), members });
            continue;
        }
        let (name, rest) = part.split_once(' ').unwrap();
        let column = spec.position(name);
        match rest {
            "is null" => keys.push(ScanKey::is_null(column)),
            "is not null" => keys.push(ScanKey::is_not_null(column)),
            _ => {
                let (symbol, value) = rest.split_once(' ').unwrap();
                let (value, type_name) = value.split_once("::").unwrap_or((value, default_type(&spec.0[column])));
                let type_oid = Oid(type_row(type_name).1);
                let strategy = operator(symbol);
                if let Some(elements) = value.strip_prefix("any ") {
                    let values = list(elements, '{', '}').into_iter().map(|text| datum(type_name, text)).collect();
                    keys.push(ScanKey::any(column, strategy, type_oid, values));
                    write!(sql, " and {name} {symbol} any ('{elements}'::{type_name}[])").unwrap();
                } else {
                    keys.push(ScanKey::compare(column, strategy, type_oid, datum(type_name, value)));
                    write!(sql, " and {name} {symbol} {}", quoted(value, type_name)).unwrap();
                }
                continue;
            }
        }
        write!(sql, " and {part}").unwrap();
    }
    (keys, sql)
}

/// The pages of a file.
#[derive(Clone)]
pub struct FileSource(Arc<Vec<Page>>);

impl FileSource {
    pub fn open(path: &Path) -> Self {
        Self::new(&std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
    }

    pub fn new(bytes: &[u8]) -> Self {
        Self(Arc::new(bytes.chunks(BLCKSZ).map(|page| Page::from(<[u8; BLCKSZ]>::try_from(page).unwrap())).collect()))
    }
}

impl PageSource for FileSource {
    type Pin = usize;

    fn poll_read(&mut self, block: BlockNumber, _: &mut Context<'_>) -> Poll<SqlResult<usize>> {
        Poll::Ready(Ok(block.0 as usize))
    }

    fn with_page<R>(&self, pin: &usize, look: impl FnOnce(PageRef<'_>) -> R) -> R {
        look(self.0[*pin].view())
    }

    fn block_count(&mut self) -> SqlResult<u32> {
        Ok(self.0.len() as u32)
    }
}

pub type Scan = BtreeScan<FileSource>;

/// Wakes the thread that waits.
struct Unpark(std::thread::Thread);

impl std::task::Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

pub fn scan(spec: &Spec, name: &str, source: &FileSource, keep_tuples: bool) -> Scan {
    let options = ScanOptions { keep_tuples, ..ScanOptions::default() };
    BtreeScan::new(spec.desc(name), source.clone(), options)
}

/// Runs a scan to its end and calls `each` for every leaf's rows.
pub fn run<S: PageSource>(
    scan: &mut BtreeScan<S>,
    direction: Direction,
    keys: &[ScanKey],
    mut each: impl FnMut(&BtreeScan<S>),
) {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut cx = Context::from_waker(&waker);
    scan.set_direction(direction);
    scan.rescan(keys).unwrap();
    loop {
        match scan.poll_next(&mut cx) {
            Poll::Ready(Ok(true)) => each(scan),
            Poll::Ready(Ok(false)) => return,
            Poll::Pending => std::thread::park(),
            Poll::Ready(Err(error)) => panic!("{error}"),
        }
    }
}

/// The TIDs that a scan yields, as PostgreSQL prints them.
pub fn tids<S: PageSource>(scan: &mut BtreeScan<S>, direction: Direction, keys: &[ScanKey]) -> Vec<String> {
    let mut found = Vec::new();
    run(scan, direction, keys, |scan| found.extend(scan.matches().iter().map(Tid::to_string)));
    found
}

/// The rows that an index-only scan yields, as text; `-` for NULL.
pub fn rows(spec: &Spec, scan: &mut Scan, direction: Direction, keys: &[ScanKey]) -> Vec<Vec<String>> {
    let settings = FormatSettings::default();
    let context = TypeContext::new(&BuiltinTypes, &settings);
    let mut found = Vec::new();
    let mut scratch = Vec::new();
    run(scan, direction, keys, |scan| {
        let mut start = 0;
        for entry in scan.entries() {
            let mut values = scan.values(entry).unwrap();
            let texts = spec.0.iter().enumerate().map(|(i, column)| {
                let desc = BuiltinTypes.type_desc(Oid(type_row(&column.type_name).1)).unwrap();
                let mut text = Vec::new();
                match values.get(i, &mut scratch).unwrap() {
                    None => text.push(b'-'),
                    Some(value) => stegodon_types::text_out(&context, &desc, value, &mut text).unwrap(),
                }
                String::from_utf8(text).unwrap()
            });
            let texts: Vec<String> = texts.collect();
            found.extend(std::iter::repeat_n(texts, (entry.end - start) as usize));
            start = entry.end;
        }
    });
    found
}

/// A list in short: all of it, or its ends with its length and a hash over its order.
pub fn summary(items: &[String]) -> String {
    if items.len() <= 24 {
        return if items.is_empty() { "none\n".to_owned() } else { items.join(" ") + "\n" };
    }
    let hash = items
        .iter()
        .flat_map(|item| item.bytes().chain([b' ']))
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let (first, last) = (&items[..8], &items[items.len() - 8..]);
    format!("{} … {}\n{} rows, {hash:016x}\n", first.join(" "), last.join(" "), items.len())
}

/// `forward` or `backward`, then keys.
pub fn direction(text: &str) -> (Direction, &str) {
    match text.split_once(' ').unwrap_or((text, "")) {
        ("forward", keys) => (Direction::Forward, keys),
        ("backward", keys) => (Direction::Backward, keys),
        _ => panic!("no direction: {text}"),
    }
}
