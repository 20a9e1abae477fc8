//! Which files are damaged, and which questions touch them.

use stegodon_lab::Client;

/// What sort of file is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A table's main fork.
    Heap,
    /// A table's visibility map.
    VisibilityMap,
    /// A table's free space map.
    FreeSpaceMap,
    /// A B-tree index.
    Index,
    /// A TOAST table.
    Toast,
    /// A TOAST table's index.
    ToastIndex,
    /// A sequence.
    Sequence,
    /// A catalog.
    Catalog,
    /// A catalog's index.
    CatalogIndex,
    /// `pg_filenode.map`, the database's and the shared one.
    RelationMap,
    /// `pg_control`.
    Control,
    /// `PG_VERSION`, the cluster's and the database's.
    Version,
    /// `pg_xact`.
    TransactionLog,
    /// `pg_multixact`.
    Multixacts,
    /// A file in `pg_twophase`.
    TwoPhase,
}

impl Class {
    /// Whether the file is one of the whole cluster's: such a case has a server of its own.
    pub fn is_of_cluster(self) -> bool {
        self >= Class::Catalog
    }

    /// Whether the file consists of pages with headers.
    pub fn has_pages(self) -> bool {
        self <= Class::CatalogIndex
    }
}

/// What a question looks at, which decides what it must notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Every block of the relation's main fork.
    Whole,
    /// Every leaf of the index.
    Leaves,
    /// Some of either.
    Some,
}

/// A question.
#[derive(Clone, Debug)]
pub struct Question {
    /// How it looks.
    pub way: Way,
    /// Settings, each as for SET.
    pub settings: &'static [&'static str],
    /// The statement.
    pub sql: String,
}

/// A file that is damaged, with the questions that meet the damage.
#[derive(Clone, Debug)]
pub struct Subject {
    /// What sort of file.
    pub class: Class,
    /// The relation's name, or the file's.
    pub name: String,
    /// The table whose damage must not meet another's in one server.
    pub table: String,
    /// The file, relative to the directory.
    pub file: String,
    /// The relation's first file, as messages name it.
    pub relation: String,
    /// The questions.
    pub questions: Vec<Question>,
}

/// The tables of the demo cluster that are damaged: of every state, width and sort of column.
const TABLES: [&str; 14] = [
    "public.bitmap_uniform",
    "public.bitmap_linear",
    "public.pgbench_accounts_1",
    "zoo.states",
    "zoo.numbers",
    "zoo.texts",
    "zoo.times",
    "zoo.nets",
    "zoo.containers",
    "zoo.toasted",
    "zoo.duplicates",
    "zoo.vacuumed",
    "zoo.frozen",
    "zoo.elsewhere",
];

const CATALOGS: [&str; 14] = [
    "pg_class",
    "pg_attribute",
    "pg_type",
    "pg_proc",
    "pg_index",
    "pg_namespace",
    "pg_operator",
    "pg_amop",
    "pg_opclass",
    "pg_rewrite",
    "pg_statistic",
    "pg_database",
    "pg_authid",
    "pg_attrdef",
];

const SEQ: &[&str] = &["enable_indexscan = off", "enable_indexonlyscan = off", "enable_bitmapscan = off"];
const INDEX: &[&str] =
    &["enable_seqscan = off", "enable_bitmapscan = off", "enable_indexonlyscan = off", "enable_sort = off"];
const INDEX_ONLY: &[&str] = &["enable_seqscan = off", "enable_bitmapscan = off", "enable_sort = off"];
const BITMAP: &[&str] = &["enable_seqscan = off", "enable_indexscan = off", "enable_indexonlyscan = off"];
const ANY: &[&str] = &[];

fn question(way: Way, settings: &'static [&'static str], sql: String) -> Question {
    Question { way, settings, sql }
}

/// The rows of a statement that must succeed.
fn rows(judge: &mut Client, sql: &str) -> Vec<Vec<String>> {
    let answer = judge.query(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
    answer.rows.into_iter().map(|row| row.into_iter().map(Option::unwrap_or_default).collect()).collect()
}

fn one(judge: &mut Client, sql: &str) -> String {
    rows(judge, sql).into_iter().flatten().next().unwrap_or_default()
}

/// What may be damaged, as the judge lists it on an undamaged copy.
pub fn subjects(judge: &mut Client) -> Vec<Subject> {
    let mut all = Vec::new();
    for table in TABLES {
        of_table(judge, table, &mut all);
    }
    let catalog_file = |judge: &mut Client, name: &str| one(judge, &format!("SELECT pg_relation_filepath('{name}')"));
    for sequence in ["zoo.seq", "zoo.duplicates_id_seq", "zoo.generated_id_seq"] {
        let file = catalog_file(judge, sequence);
        let whole = question(Way::Whole, ANY, format!("SELECT * FROM {sequence}"));
        all.push(Subject {
            class: Class::Sequence,
            name: sequence.to_owned(),
            table: sequence.to_owned(),
            relation: file.clone(),
            file,
            questions: vec![whole],
        });
    }
    for catalog in CATALOGS {
        let file = catalog_file(judge, catalog);
        let count = question(Way::Whole, SEQ, format!("SELECT count(*) FROM {catalog}"));
        let mut questions = vec![count];
        questions.extend(on_catalogs());
        let table = catalog.to_owned();
        let subject = Subject {
            class: Class::Catalog,
            name: table.clone(),
            table: table.clone(),
            relation: file.clone(),
            file,
            questions,
        };
        for index in
            rows(judge, &format!("SELECT indexrelid::regclass FROM pg_index WHERE indrelid = '{catalog}'::regclass"))
        {
            let name = index[0].clone();
            let file = catalog_file(judge, &name);
            let (class, relation, questions) = (Class::CatalogIndex, file.clone(), on_catalogs());
            all.push(Subject { class, name, table: table.clone(), file, relation, questions });
        }
        all.push(subject);
    }
    let database = one(judge, "SELECT oid FROM pg_database WHERE datname = current_database()");
    for (class, file) in [
        (Class::RelationMap, "global/pg_filenode.map".to_owned()),
        (Class::RelationMap, format!("base/{database}/pg_filenode.map")),
        (Class::Control, super::cluster::CONTROL.to_owned()),
        (Class::Version, "PG_VERSION".to_owned()),
        (Class::Version, format!("base/{database}/PG_VERSION")),
        (Class::TransactionLog, "pg_xact/0000".to_owned()),
        (Class::Multixacts, "pg_multixact/offsets/0000".to_owned()),
        (Class::Multixacts, "pg_multixact/members/0000".to_owned()),
        (Class::TwoPhase, "pg_twophase/00000000000005FD".to_owned()),
    ] {
        let mut questions = on_catalogs();
        questions.push(question(Way::Some, SEQ, "SELECT * FROM zoo.states".to_owned()));
        questions.push(question(Way::Some, ANY, "SELECT * FROM zoo.prepared_rows".to_owned()));
        let (name, table, relation) = (file.clone(), file.clone(), file.clone());
        all.push(Subject { class, name, table, file, relation, questions });
    }
    all
}

/// Questions that need most catalogs.
fn on_catalogs() -> Vec<Question> {
    let sql = [
        "SELECT count(*), min(a), max(c) FROM public.bitmap_uniform WHERE b % 7 = 3",
        "SELECT id, up FROM zoo.v_nested ORDER BY id",
        "SELECT relname, relkind, relpages FROM pg_class WHERE relnamespace = 'zoo'::regnamespace ORDER BY relname",
        "SELECT a.attname, t.typname FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid \
         WHERE a.attrelid = 'zoo.containers'::regclass ORDER BY a.attnum",
        "SELECT * FROM zoo.numbers WHERE id = 77",
    ];
    sql.iter().map(|sql| question(Way::Some, ANY, (*sql).to_owned())).collect()
}

fn of_table(judge: &mut Client, table: &str, all: &mut Vec<Subject>) {
    let file = one(judge, &format!("SELECT pg_relation_filepath('{table}')"));
    let indexes = rows(
        judge,
        &format!(
            "SELECT i.indexrelid::regclass, a.attname, pg_relation_filepath(i.indexrelid) FROM pg_index i \
             JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam AND m.amname = 'btree' \
             JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] \
             WHERE i.indrelid = '{table}'::regclass AND i.indisvalid AND i.indpred IS NULL ORDER BY i.indexrelid"
        ),
    );
    let mut on_heap = vec![
        question(Way::Whole, SEQ, format!("SELECT * FROM {table}")),
        question(Way::Whole, SEQ, format!("SELECT count(*) FROM {table}")),
    ];
    let (mut index_subjects, mut on_map) = (Vec::new(), Vec::new());
    for index in &indexes {
        let [name, column, file] = &index[..] else { continue };
        // Of several indexes that begin with a column the planner may read another.
        let leaves =
            if indexes.iter().filter(|other| other[1] == *column).count() == 1 { Way::Leaves } else { Way::Some };
        let column = format!("\"{column}\"");
        let value = one(
            judge,
            &format!(
                "SELECT quote_literal({column}::text) FROM {table} WHERE {column} IS NOT NULL ORDER BY md5({column}::text) LIMIT 1"
            ),
        );
        if value.is_empty() {
            continue;
        }
        let not_null = format!("FROM {table} WHERE {column} IS NOT NULL ORDER BY {column}");
        let questions = vec![
            question(leaves, INDEX_ONLY, format!("SELECT {column} {not_null}")),
            question(leaves, INDEX_ONLY, format!("SELECT {column} {not_null} DESC")),
            question(Way::Some, INDEX, format!("SELECT * FROM {table} WHERE {column} = {value}")),
            question(Way::Some, INDEX, format!("SELECT * FROM {table} WHERE {column} >= {value} ORDER BY {column}")),
            question(Way::Some, BITMAP, format!("SELECT count(*) FROM {table} WHERE {column} >= {value}")),
            question(Way::Some, BITMAP, format!("SELECT * FROM {table} WHERE {column} = {value}")),
        ];
        if on_map.is_empty() {
            on_heap.push(question(Way::Some, INDEX, format!("SELECT * {not_null}")));
            on_heap.push(questions[0].clone());
            on_heap.push(questions[4].clone());
            on_map.clone_from(&questions);
        }
        index_subjects.push(Subject {
            class: Class::Index,
            name: name.clone(),
            table: table.to_owned(),
            file: file.clone(),
            relation: file.clone(),
            questions,
        });
    }
    for question in on_heap.iter_mut().chain(&mut on_map).filter(|q| q.way == Way::Leaves) {
        question.way = Way::Some;
    }
    on_map.push(on_heap[0].clone());
    on_map.push(on_heap[1].clone());
    for question in &mut on_map {
        question.way = Way::Some; // what is damaged is another fork
    }
    all.push(Subject {
        class: Class::Heap,
        name: table.to_owned(),
        table: table.to_owned(),
        file: file.clone(),
        relation: file.clone(),
        questions: on_heap,
    });
    for (class, suffix) in [(Class::VisibilityMap, "_vm"), (Class::FreeSpaceMap, "_fsm")] {
        let exists = one(judge, &format!("SELECT 1 FROM pg_stat_file('{file}{suffix}', true) f WHERE f.size > 0"));
        if exists.is_empty() {
            continue;
        }
        all.push(Subject {
            class,
            name: format!("{table}{suffix}"),
            table: table.to_owned(),
            file: format!("{file}{suffix}"),
            relation: file.clone(),
            questions: on_map.clone(),
        });
    }
    all.append(&mut index_subjects);
    of_toast(judge, table, all);
}

fn of_toast(judge: &mut Client, table: &str, all: &mut Vec<Subject>) {
    let found = rows(
        judge,
        &format!(
            "SELECT t.oid::regclass, pg_relation_filepath(t.oid), pg_relation_filepath(i.indexrelid) FROM pg_class c \
             JOIN pg_class t ON t.oid = c.reltoastrelid AND pg_relation_size(t.oid) > 0 \
             JOIN pg_index i ON i.indrelid = t.oid WHERE c.oid = '{table}'::regclass"
        ),
    );
    for row in found {
        let [toast, file, index] = &row[..] else { continue };
        let whole = question(Way::Whole, SEQ, format!("SELECT chunk_id, chunk_seq, length(chunk_data) FROM {toast}"));
        let through = question(Way::Some, ANY, format!("SELECT * FROM {table}"));
        let lengths = "SELECT id, length(random_), md5(b), array_length(a, 1) FROM zoo.toasted ORDER BY id";
        let some =
            question(Way::Some, ANY, if table == "zoo.toasted" { lengths.to_owned() } else { through.sql.clone() });
        for (class, file, questions) in [
            (Class::Toast, file, vec![whole, through.clone(), some.clone()]),
            (Class::ToastIndex, index, vec![through.clone(), some]),
        ] {
            all.push(Subject {
                class,
                name: format!("{toast} of {table}"),
                table: table.to_owned(),
                file: file.clone(),
                relation: file.clone(),
                questions,
            });
        }
    }
}
