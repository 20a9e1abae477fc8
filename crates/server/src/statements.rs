//! A session's prepared statements, within bounds: they are kept until they are given up, so a client can hoard them.

use std::collections::HashMap;
use std::sync::Arc;

use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::session::Prepared;

/// About what a statement's trees take for each byte of its text, measured on long lists of columns.
const TREE_BYTES_PER_BYTE: usize = 512;
/// What a statement takes at least.
const LEAST_BYTES: usize = 4 << 10;
/// What a session may hold.
const BYTES_MAX: usize = 512 << 20;
/// Portals that a session may hold.
pub(crate) const PORTALS_MAX: usize = 10_000;

/// Statements by name.
#[derive(Debug, Default)]
pub(crate) struct Statements {
    /// With what each takes.
    all: HashMap<String, (Arc<Prepared>, usize)>,
    bytes: usize,
}

impl Statements {
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Prepared>> {
        self.all.get(name).map(|(prepared, _)| prepared)
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.all.contains_key(name)
    }

    /// Keeps a statement with so long a text, in place of one of the same name.
    pub(crate) fn insert(&mut self, name: String, prepared: Arc<Prepared>, text_bytes: usize) -> SqlResult<()> {
        self.remove(&name);
        // The unnamed one gives way to the next: it may be as long as any statement.
        let bytes = match name.as_str() {
            "" => 0,
            _ => LEAST_BYTES.saturating_add(text_bytes.saturating_mul(TREE_BYTES_PER_BYTE)),
        };
        if bytes > 0 && self.bytes > 0 && self.bytes.saturating_add(bytes) > BYTES_MAX {
            let detail = format!("The session has {} of them.", self.all.len());
            return Err(SqlError::new(SqlState::ProgramLimitExceeded, "too many prepared statements")
                .detail(detail)
                .hint("Use DEALLOCATE to give up some."));
        }
        self.bytes = self.bytes.saturating_add(bytes);
        self.all.insert(name, (prepared, bytes));
        Ok(())
    }

    /// Gives one up; false where there is none.
    pub(crate) fn remove(&mut self, name: &str) -> bool {
        let removed = self.all.remove(name);
        self.bytes = self.bytes.saturating_sub(removed.as_ref().map_or(0, |(_, bytes)| *bytes));
        removed.is_some()
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// A text of this length takes about a millisecond to read and plan.
const LONG_TEXT_BYTES: usize = 8 << 10;

/// Whether a statement of so long a text is worth being carried out aside.
pub(crate) fn is_long(text_bytes: usize) -> bool {
    text_bytes > LONG_TEXT_BYTES
}

/// Does what may take long and cannot wait: the other sessions of the thread that serves sockets are handed to another.
pub(crate) fn aside<R>(is_long: bool, what: impl FnOnce() -> R) -> R {
    use tokio::runtime::{Handle, RuntimeFlavor};
    let has_others = || Handle::try_current().is_ok_and(|h| h.runtime_flavor() == RuntimeFlavor::MultiThread);
    if is_long && has_others() { tokio::task::block_in_place(what) } else { what() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_session_holds_no_more_than_it_may() {
        let mut all = Statements::default();
        let mut keep = |name: &str, bytes| all.insert(name.to_owned(), Arc::new(Prepared::empty()), bytes);
        // The unnamed one may be long, and so may a single one with a name.
        keep("", BYTES_MAX).unwrap();
        keep("a", BYTES_MAX).unwrap();
        keep("b", 1).unwrap_err();
        keep("a", 1).unwrap();
        for i in 0..1000 {
            keep(&format!("s{i}"), 1000).unwrap();
        }
        let error = (0..1000).find_map(|i| keep(&format!("t{i}"), 1000).err()).unwrap();
        assert_eq!(
            (error.state, error.detail.unwrap().as_str()),
            (SqlState::ProgramLimitExceeded, "The session has 1042 of them.")
        );
        assert!(all.remove("s7") && !all.remove("s7") && all.contains("s8"));
        all.insert("u".to_owned(), Arc::new(Prepared::empty()), 1000).unwrap();
        all.clear();
        assert!(all.get("u").is_none() && all.bytes == 0);
    }
}
