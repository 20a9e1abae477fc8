//! What a session remembers of its statements: their raw trees by text, and of those without parameters the last plan.
//!
//! ```text
//!   text ─▸ raw trees (what the text says, whatever the settings)
//!             └ plan: used again where analysis gives the very same query, no setting has changed since, and it is young
//! ```
//!
//! Nothing that depends on the moment is remembered: the text is analysed anew each time, and the plan is compared by the
//! analysed query, in which constants like `'now'` are values. Results are never remembered. The directory is at rest, so
//! catalogs and statistics do not change. Estimates may have looked at the clock; hence the age.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use stegodon_nodes::Query;
use stegodon_plan::node::{PlannedStatement, ResultColumn};
use stegodon_sql::ParsedStatement;
use stegodon_types::SqlResult;

/// Plans older than this are made anew.
pub(crate) const AGE_MAX: Duration = Duration::from_secs(10);
/// Bounds of a session's memory of texts: when they are reached, all are forgotten.
const TEXTS_MAX: usize = 32;
const TEXT_BYTES_MAX: usize = 8 << 10;

/// A plan and what it was made for.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// The settings' generation.
    pub(crate) generation: u64,
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
    /// The plan, if it is one of this query under these settings.
    pub(crate) fn find(&self, generation: u64, query: &Query) -> Option<Arc<Kept>> {
        let kept = self.0.lock().clone()?;
        let fits = kept.generation == generation && kept.made.elapsed() < AGE_MAX && kept.query == *query;
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

/// The texts of a session.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    known: HashMap<Box<str>, Arc<[Arc<Raw>]>>,
    bytes: usize,
}

impl Texts {
    /// The statements of a text.
    pub(crate) fn parse(&mut self, sql: &str) -> SqlResult<Arc<[Arc<Raw>]>> {
        if let Some(known) = self.known.get(sql) {
            return Ok(Arc::clone(known));
        }
        let raw = |parsed| Arc::new(Raw { parsed, plan: Arc::default() });
        let statements: Arc<[Arc<Raw>]> = stegodon_sql::parse(sql)?.into_iter().map(raw).collect();
        if sql.len() <= TEXT_BYTES_MAX {
            if self.known.len() == TEXTS_MAX || self.bytes + sql.len() > TEXT_BYTES_MAX {
                self.known.clear();
                self.bytes = 0;
            }
            self.bytes += sql.len();
            self.known.insert(sql.into(), Arc::clone(&statements));
        }
        Ok(statements)
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn texts_are_remembered_within_bounds() {
        let mut texts = Texts::default();
        let first = texts.parse("SELECT 1; SELECT 2").unwrap();
        assert_eq!(first.len(), 2);
        assert!(Arc::ptr_eq(&first, &texts.parse("SELECT 1; SELECT 2").unwrap()));
        for n in 0..200 {
            texts.parse(&format!("SELECT {n}")).unwrap();
            assert!(texts.known.len() <= TEXTS_MAX && texts.bytes <= TEXT_BYTES_MAX);
        }
        let long = format!("SELECT '{}'", "x".repeat(TEXT_BYTES_MAX));
        texts.parse(&long).unwrap();
        assert!(!texts.known.contains_key(long.as_str()));
        assert!(texts.parse("SELECT FROM WHERE").is_err());
    }
}
