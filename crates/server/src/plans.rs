//! What is remembered of statements: their raw trees by text, and of those without parameters the last plan.
//!
//! ```text
//!   database, text ─▸ raw trees (what the text says, whatever the settings)
//!                       └ plan: used again where analysis gives the very same query, for the same role under the same
//!                         settings, while it is young
//! ```
//!
//! Sessions share it, so that a thousand idle ones that asked the same hold it once. Nothing that depends on the moment is
//! remembered: the text is analysed anew each time, and the plan is compared by the analysed query, in which constants like
//! `'now'` are values. Results are never remembered. The directory is at rest, so catalogs and statistics do not change.
//! Estimates may have looked at the clock; hence the age.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use stegodon_format::ids::Oid;
use stegodon_nodes::Query;
use stegodon_plan::node::{PlannedStatement, ResultColumn};
use stegodon_sql::ParsedStatement;
use stegodon_types::SqlResult;

/// Plans older than this are made anew.
const AGE_MAX: Duration = Duration::from_secs(10);
/// Bounds of what is remembered: when they are reached, all is forgotten.
const TEXTS_MAX: usize = 1024;
const TEXT_BYTES_MAX: usize = 256 << 10;
/// Longer texts are not remembered.
const ONE_TEXT_BYTES_MAX: usize = 16 << 10;

/// Whose plan it is, made under which settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Circumstances {
    /// The role.
    pub(crate) user: Oid,
    /// A digest of the settings.
    pub(crate) settings: u64,
}

/// A plan and what it was made for.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// For whom.
    pub(crate) circumstances: Circumstances,
    /// The query, as analysed.
    pub(crate) query: Query,
    /// Its plan.
    pub(crate) planned: Arc<PlannedStatement>,
    /// Its columns.
    pub(crate) columns: Arc<[ResultColumn]>,
    /// When.
    pub(crate) made: Instant,
}

/// Where a statement's plan is kept.
#[derive(Debug, Default)]
pub struct PlanSlot(Mutex<Option<Arc<Kept>>>);

impl PlanSlot {
    /// The plan, if it is one of this query in these circumstances.
    pub(crate) fn find(&self, circumstances: Circumstances, query: &Query) -> Option<Arc<Kept>> {
        let kept = self.0.lock().clone()?;
        let fits = kept.circumstances == circumstances && kept.made.elapsed() < AGE_MAX && kept.query == *query;
        fits.then_some(kept)
    }

    /// Keeps a plan instead of the last one.
    pub(crate) fn keep(&self, kept: Kept) {
        *self.0.lock() = Some(Arc::new(kept));
    }
}

/// A statement of a text, and its plan.
#[derive(Debug)]
pub struct Raw {
    /// The raw tree.
    pub parsed: ParsedStatement,
    /// Its plan.
    pub(crate) plan: Arc<PlanSlot>,
}

impl Raw {
    /// How long its text is.
    pub(crate) fn text_bytes(&self) -> usize {
        self.parsed.end.saturating_sub(self.parsed.start)
    }
}

type Statements = Arc<[Arc<Raw>]>;

/// The texts of a cluster's sessions.
#[derive(Debug, Default)]
pub(crate) struct Texts(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// By database: the same OIDs are other things in another.
    databases: HashMap<Oid, HashMap<Box<str>, Statements>>,
    texts: usize,
    bytes: usize,
}

impl Texts {
    /// The statements of a text.
    pub(crate) fn parse(&self, database: Oid, sql: &str) -> SqlResult<Statements> {
        if let Some(known) = self.0.lock().databases.get(&database).and_then(|texts| texts.get(sql)) {
            return Ok(Arc::clone(known));
        }
        let raw = |parsed| Arc::new(Raw { parsed, plan: Arc::default() });
        let statements: Statements = stegodon_sql::parse(sql)?.into_iter().map(raw).collect();
        if sql.len() <= ONE_TEXT_BYTES_MAX {
            self.0.lock().keep(database, sql, &statements);
        }
        Ok(statements)
    }
}

impl Known {
    fn keep(&mut self, database: Oid, sql: &str, statements: &Statements) {
        if self.texts >= TEXTS_MAX || self.bytes + sql.len() > TEXT_BYTES_MAX {
            *self = Self::default();
        }
        let texts = self.databases.entry(database).or_default();
        if texts.insert(sql.into(), Arc::clone(statements)).is_none() {
            self.texts += 1;
            self.bytes += sql.len();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn texts_are_remembered_within_bounds() {
        let texts = Texts::default();
        let parse = |database, sql: &str| texts.parse(Oid(database), sql);
        let first = parse(1, "SELECT 1; SELECT 2").unwrap();
        assert_eq!(first.len(), 2);
        assert!(Arc::ptr_eq(&first, &parse(1, "SELECT 1; SELECT 2").unwrap()));
        assert!(!Arc::ptr_eq(&first, &parse(2, "SELECT 1; SELECT 2").unwrap()), "another database");
        for n in 0..3000 {
            parse(1, &format!("SELECT {n}")).unwrap();
            let known = texts.0.lock();
            assert!(known.texts <= TEXTS_MAX && known.bytes <= TEXT_BYTES_MAX);
        }
        let before = texts.0.lock().bytes;
        parse(1, &format!("SELECT '{}'", "x".repeat(ONE_TEXT_BYTES_MAX))).unwrap();
        assert_eq!(texts.0.lock().bytes, before);
        assert!(parse(1, "SELECT FROM WHERE").is_err());
    }
}
