//! Syntax that older versions do not know. The grammar is the newest's; what stands in a statement that an older one
//! refuses, or reads as something else, is found among its tokens, and refused once the directory is known.
//!
//! | since | syntax | before |
//! |---|---|---|
//! | 16 | `0x1F`, `0o17`, `0b1`, `1_000` | 42601, as for `1a` |
//! | 16 | `SYSTEM_USER` | a name like any other |
//! | 16 | a subquery in FROM without an alias | 42601; see `from` |
//! | 16, 17 | options of EXPLAIN | 42601; see `utility` |
//! | 17 | `AT LOCAL` | 42601 |
//!
//! `IS JSON`, JSON_TABLE and what makes JSON are refused by the analysis in every version.

use std::ops::Range;

use pg_query::protobuf::{ScanToken, Token};
use stegodon_format::version::Version;
use stegodon_types::{SqlError, SqlState};

/// A token that means something else, or nothing, before a version.
#[derive(Clone, Debug)]
pub struct Newer {
    since: Version,
    error: SqlError,
}

impl Newer {
    /// What a version says of a string with these in it.
    pub(crate) fn check(found: &[Newer], version: Version) -> Result<(), SqlError> {
        match found.iter().find(|n| version < n.since) {
            Some(newer) => Err(newer.error.clone()),
            None => Ok(()),
        }
    }
}

/// Whether a number is one of decimal digits, a point and an exponent.
fn is_plain_number(text: &str) -> bool {
    let digit = |b: u8| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-');
    text.bytes().all(digit)
}

/// What is newer than the oldest version in a string; of each version the first only.
pub(crate) fn newer(sql: &str, tokens: &[ScanToken]) -> Vec<Newer> {
    let mut found: Vec<Newer> = Vec::new();
    for (i, token) in tokens.iter().enumerate() {
        let range = usize::try_from(token.start).unwrap_or(0)..usize::try_from(token.end).unwrap_or(0);
        let Some(text) = sql.get(range.clone()) else { continue };
        let syntax = |range: Range<usize>, message: String| {
            let position = sql.get(..range.start).map_or(0, |s| s.chars().count() as u32 + 1);
            SqlError::new(SqlState::SyntaxError, message).at(position)
        };
        let (since, error) = match Token::try_from(token.token) {
            Ok(Token::Iconst | Token::Fconst) if !is_plain_number(text) => {
                (Version::V16, syntax(range, format!("trailing junk after numeric literal at or near \"{text}\"")))
            }
            Ok(Token::SystemUser) => (Version::V16, SqlError::unsupported("the name system_user")),
            Ok(Token::Local) if i > 0 && tokens.get(i - 1).is_some_and(|t| t.token == Token::At as i32) => {
                (Version::V17, syntax(range, format!("syntax error at or near \"{text}\"")))
            }
            _ => continue,
        };
        if !found.iter().any(|n| n.since == since) {
            found.push(Newer { since, error });
        }
    }
    found
}
