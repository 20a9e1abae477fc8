//! Text to raw parse trees.

use std::ffi::CString;
use std::sync::Arc;

use pg_query::NodeEnum;
use stegodon_format::version::Version;
use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::versions::Newer;
use crate::{ffi, limits};

/// One statement of a string, parsed but not analysed.
#[derive(Debug)]
pub struct ParsedStatement {
    /// The whole string that it came in: positions in errors count from its beginning, as PostgreSQL's do.
    pub source: Arc<str>,
    /// Where its own text starts in `source`, in bytes.
    pub start: usize,
    /// Where its own text ends.
    pub end: usize,
    /// How deeply it may nest; see [`limits::nesting`].
    pub nesting: usize,
    newer: Arc<[Newer]>,
    /// The raw tree. Dropped with room to recurse.
    node: NodeEnum,
}

impl ParsedStatement {
    /// What a version says of syntax newer than it, anywhere in the string: then none of its statements may run.
    pub(crate) fn check_version(&self, version: Version) -> SqlResult<()> {
        Newer::check(&self.newer, version)
    }

    /// The raw tree.
    pub fn node(&self) -> &NodeEnum {
        &self.node
    }

    /// Whether it may run in a transaction block that has failed: COMMIT, ROLLBACK, ROLLBACK TO.
    pub fn ends_failed_transaction(&self) -> bool {
        use pg_query::protobuf::TransactionStmtKind as Kind;
        let NodeEnum::TransactionStmt(t) = &self.node else { return false };
        matches!(
            Kind::try_from(t.kind),
            Ok(Kind::TransStmtCommit | Kind::TransStmtRollback | Kind::TransStmtRollbackTo)
        )
    }

    /// The statement's own text.
    pub fn text(&self) -> &str {
        self.source.get(self.start..self.end).unwrap_or(&self.source)
    }
}

impl Drop for ParsedStatement {
    fn drop(&mut self) {
        let node = std::mem::replace(&mut self.node, NodeEnum::AStar(pg_query::protobuf::AStar {}));
        with_stack(self.nesting, || drop(node));
    }
}

/// Runs `f` with stack for recursion over a tree of this nesting.
pub(crate) fn with_stack<T>(nesting: usize, f: impl FnOnce() -> T) -> T {
    // Decoding is the deepest user: its frames for one level of expression come to a few KiB.
    const LEVEL_BYTES: usize = 16 << 10;
    const BASE_BYTES: usize = 256 << 10;
    let wanted = BASE_BYTES + nesting * LEVEL_BYTES;
    stacker::maybe_grow(wanted, wanted + BASE_BYTES, f)
}

/// Parses a string of statements.
pub fn parse(sql: &str) -> SqlResult<Vec<ParsedStatement>> {
    let limits::Checked { nesting, parameter_junk, newer } = limits::check(sql)?;
    let input = CString::new(sql).map_err(|_| {
        SqlError::new(SqlState::CharacterNotInRepertoire, "invalid byte sequence for encoding \"UTF8\": 0x00")
    })?;
    let source: Arc<str> = Arc::from(sql);
    let parsed = with_stack(nesting, || ffi::parse(&input)).map_err(|failure| match failure {
        ffi::ParseFailure::Syntax { message, position } => syntax_error(sql, &message, position),
        ffi::ParseFailure::Decode(what) => SqlError::internal(format_args!("pg_query's tree: {what}")),
    })?;
    if let Some(junk) = parameter_junk {
        let position = sql.get(..junk.start).map_or(0, |s| s.chars().count() as u32 + 1);
        let near = sql.get(junk).unwrap_or_default();
        let message = format!("trailing junk after parameter at or near \"{near}\"");
        return Err(SqlError::new(SqlState::SyntaxError, message).at(position));
    }
    let newer: Arc<[Newer]> = newer.into();
    let mut statements = Vec::with_capacity(parsed.stmts.len());
    for raw in parsed.stmts {
        let Some(node) = raw.stmt.and_then(|n| n.node) else { continue };
        let start = usize::try_from(raw.stmt_location).unwrap_or(0);
        let length = usize::try_from(raw.stmt_len).unwrap_or(0);
        let end = if length == 0 { sql.len() } else { start + length };
        let (source, newer) = (Arc::clone(&source), Arc::clone(&newer));
        statements.push(ParsedStatement { source, start, end, nesting, newer, node });
    }
    Ok(statements)
}

/// The scanner and the grammar raise few errors that are not plain syntax errors; pg_query keeps the message only.
fn syntax_error(sql: &str, message: &str, position: u32) -> SqlError {
    let mut hint = None;
    let state = if message.contains("not yet implemented")
        || message.contains("not implemented")
        || message.contains("is not supported")
    {
        SqlState::FeatureNotSupported
    } else if message == "invalid Unicode escape" {
        // E'..' and U&'..' fail with the same words.
        if in_escape_string(sql, position) {
            hint = Some("Unicode escapes must be \\uXXXX or \\UXXXXXXXX.");
            SqlState::InvalidEscapeSequence
        } else {
            hint = Some("Unicode escapes must be \\XXXX or \\+XXXXXX.");
            SqlState::SyntaxError
        }
    } else if message.starts_with("frame start") || message.starts_with("frame end cannot") {
        SqlState::WindowingError
    } else if message.starts_with("invalid byte sequence for encoding") {
        SqlState::CharacterNotInRepertoire
    } else if message.starts_with("memory exhausted") || message.starts_with("parse tree is nested too deeply") {
        return limits::too_complex();
    } else {
        SqlState::SyntaxError
    };
    let mut error = SqlError::new(state, message);
    if let Some(hint) = hint {
        error = error.hint(hint);
    }
    if position > 0 { error.at(position) } else { error }
}

/// Whether the string literal around a place (in characters, from 1) is an `E'..'`.
fn in_escape_string(sql: &str, position: u32) -> bool {
    let before: Vec<char> = sql.chars().take(position.saturating_sub(1) as usize).collect();
    // Quotes inside of a literal are doubled or follow a backslash; its own follows the prefix.
    let starts = before.windows(2).rev().find_map(|pair| match pair {
        ['e' | 'E', '\''] => Some(true),
        ['&', '\''] => Some(false),
        _ => None,
    });
    starts.unwrap_or(false)
}
