//! Bounds on a statement, checked on its tokens before anything recursive sees it.
//!
//! The grammar builds its tree with a heap-allocated stack, but everything after it recurses: the tree's encoding and
//! decoding, analysis, planning, and dropping the trees. So the depth of the tree is bounded from above by the tokens:
//!
//! ```text
//!   open ( [ CASE          one level more, closed by ) ] END
//!   a token                may nest under the ones before it (a + b + c, NOT NOT a, a::b::c), up to
//!   , AND OR ;             after which siblings start: lists, and the two operators that the grammar flattens
//!   UNION INTERSECT        nest to the left across lists: counted for themselves, as are JOINs
//!     EXCEPT JOIN
//! ```

use crate::versions::{Newer, newer};
use pg_query::protobuf::{ScanToken, Token};
use stegodon_types::{SqlError, SqlResult, SqlState};

/// The longest statement string, in bytes. PostgreSQL's own limit is 1 GiB.
pub const MAX_LENGTH_BYTES: usize = 64 << 20;
/// The deepest nesting, as [`nesting`] estimates it.
pub const MAX_NESTING: usize = 4000;

/// The deepest nesting of comments: the scanner's time grows with its square.
const MAX_COMMENT_NESTING: usize = 1000;

/// The error for a statement that is too long or too deep.
pub fn too_complex() -> SqlError {
    SqlError::new(SqlState::StatementTooComplex, "stack depth limit exceeded")
        .hint("Stegodon bounds a statement's length and nesting; break the statement up.")
}

#[derive(Clone, Copy, Default)]
struct Level {
    run: usize,
    chained: usize,
}

impl Level {
    fn depth(self) -> usize {
        self.run + self.chained
    }
}

/// An upper bound of the depth of the tree that the tokens make.
pub fn nesting(tokens: &[ScanToken]) -> usize {
    let mut levels: Vec<Level> = vec![Level::default()];
    let mut below = 0;
    let mut deepest = 0;
    for token in tokens {
        let Ok(kind) = Token::try_from(token.token) else { continue };
        let outermost = levels.len() == 1;
        let Some(top) = levels.last_mut() else { break };
        match kind {
            Token::SqlComment | Token::CComment => continue,
            Token::Ascii40 | Token::Ascii91 | Token::Case => {
                top.run += 1;
                below += top.depth();
                levels.push(Level::default());
            }
            Token::Ascii41 | Token::Ascii93 | Token::EndP => {
                if !outermost {
                    levels.pop();
                    below -= levels.last().map_or(0, |l| l.depth());
                }
                // What follows a bracket may nest around it: the run goes on.
            }
            Token::Ascii44 | Token::And | Token::Or => top.run = 0,
            Token::Ascii59 if outermost => *top = Level::default(),
            Token::Union | Token::Intersect | Token::Except | Token::Join => {
                top.chained += 1;
                top.run = 0;
            }
            _ => top.run += 1,
        }
        if let Some(top) = levels.last() {
            deepest = deepest.max(below + top.depth());
        }
    }
    deepest
}

/// What the tokens of a statement say of it.
#[derive(Default)]
pub struct Checked {
    /// How deeply it may nest.
    pub nesting: usize,
    /// `$1a`: the grammar that we have reads it as two tokens, PostgreSQL's as an error.
    pub parameter_junk: Option<std::ops::Range<usize>>,
    /// What older versions do not know.
    pub newer: Vec<Newer>,
}

/// Fails with 54001 where the statement is too long or nested too deeply.
pub fn check(sql: &str) -> SqlResult<Checked> {
    if sql.len() > MAX_LENGTH_BYTES {
        return Err(too_complex());
    }
    // Without a token pg_query would make a slice from a null pointer.
    if sql.bytes().all(|byte| matches!(byte, b' ' | b'\t'..=b'\r')) {
        return Ok(Checked::default());
    }
    if comments_nest_deeper(sql, MAX_COMMENT_NESTING) {
        return Err(too_complex());
    }
    // What the scanner rejects is reported by the parser, which scans it again and knows the position.
    let Ok(tokens) = pg_query::scan_tokens(sql) else { return Ok(Checked::default()) };
    let nesting = nesting(&tokens);
    if nesting > MAX_NESTING {
        return Err(too_complex());
    }
    Ok(Checked { nesting, parameter_junk: parameter_junk(sql, &tokens), newer: newer(sql, &tokens) })
}

/// Whether comments lie deeper within one another, marks in strings being taken for comments' too.
fn comments_nest_deeper(sql: &str, most: usize) -> bool {
    let mut rest = sql.as_bytes();
    let mut depth = 0_usize;
    while let Some(at) = rest.windows(2).position(|pair| matches!(pair, b"/*" | b"*/")) {
        depth = if rest.get(at) == Some(&b'/') { depth + 1 } else { depth.saturating_sub(1) };
        if depth > most {
            return true;
        }
        rest = rest.get(at + 2..).unwrap_or(&[]);
    }
    false
}

fn parameter_junk(sql: &str, tokens: &[ScanToken]) -> Option<std::ops::Range<usize>> {
    tokens.windows(2).find_map(|pair| {
        let [parameter, next] = pair else { return None };
        if Token::try_from(parameter.token) != Ok(Token::Param) || parameter.end != next.start {
            return None;
        }
        let (start, at, end) = (
            usize::try_from(parameter.start).ok()?,
            usize::try_from(next.start).ok()?,
            usize::try_from(next.end).ok()?,
        );
        let first = sql.as_bytes().get(at)?;
        (first.is_ascii_alphabetic() || *first == b'_' || *first >= 0x80).then_some(start..end)
    })
}
