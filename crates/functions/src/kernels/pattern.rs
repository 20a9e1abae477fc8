//! Patterns outside of SQL: what `pg_hba.conf` and `pg_ident.conf` write behind a slash.

use std::ops::Range;
use std::sync::Arc;

use stegodon_catalog::Catalog;
use stegodon_types::{BuiltinTypes, FormatSettings, SqlResult};

use super::are::{Are, Matcher, Options};
use super::case::CaseRules;
use crate::{EvalContext, NoSession};

/// An advanced regular expression under the C collation.
#[derive(Clone, Debug)]
pub struct Pattern(Arc<Are>);

impl Pattern {
    /// Reads a pattern.
    pub fn new(text: &str) -> SqlResult<Self> {
        let options =
            Options { rules: CaseRules::Ascii, ignore_case: false, newline_stops: false, newline_anchors: false };
        Ok(Self(Arc::new(Are::compile(text, options)?)))
    }

    /// The first match: its place in the text in bytes, then those of its groups.
    pub fn find(&self, text: &str) -> SqlResult<Option<Vec<Option<Range<usize>>>>> {
        let (catalog, settings, session) = (Catalog::default(), FormatSettings::default(), NoSession::default());
        let cx = EvalContext {
            catalog: &catalog,
            types: &BuiltinTypes,
            settings: &settings,
            session: &session,
            params: &[],
            exec_params: &[],
            subplans: None,
        };
        let chars: Vec<char> = text.chars().collect();
        let found = Matcher::new(&self.0, &cx, &chars)?.find(0)?;
        let byte = |at: usize| text.char_indices().nth(at).map_or(text.len(), |(byte, _)| byte);
        let bytes = |(from, to): (usize, usize)| byte(from)..byte(to);
        Ok(found.map(|groups| groups.into_iter().map(|span| span.map(bytes)).collect()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn finds_matches_and_groups() {
        let pattern = Pattern::new("^(.*)@ex(a)?mple\\.org$").unwrap();
        assert_eq!(pattern.find("jürg@exmple.org").unwrap(), Some(vec![Some(0..16), Some(0..5), None]));
        assert_eq!(pattern.find("x@example.com").unwrap(), None);
        assert_eq!(Pattern::new("b").unwrap().find("abc").unwrap(), Some(vec![Some(1..2)]));
        assert!(Pattern::new("x((").is_err());
    }
}
