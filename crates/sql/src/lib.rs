//! SQL text to typed queries.
//!
//! A tour: [`parse`] makes [`ParsedStatement`]s of a string; [`analyze`] resolves one under an [`AnalyzeContext`] into a
//! [`Statement`], mostly a query; [`rewrite()`] replaces the views in a query and says what it reads; [`result_columns`]
//! is what a client is told of it. The README draws the inside.
//!
//! ```
//! let statements = stegodon_sql::parse("select 1; select 'two'").unwrap();
//! assert_eq!(statements[1].text().trim(), "select 'two'");
//! let error = stegodon_sql::parse("selec 1").unwrap_err();
//! assert_eq!((error.state.code(), error.position), ("42601", Some(1)));
//! ```
#![deny(unsafe_code)]
#![allow(
    clippy::wrong_self_convention,
    clippy::single_match_else,
    clippy::unused_self,
    clippy::ref_option,
    reason = "FROM is a clause; a raw tree's parts are optional boxes; the analyser's helpers are its methods"
)]

mod aggregate;
pub mod analyze;
mod call;
mod checked;
mod clause;
mod coerce;
mod collate;
mod common;
pub mod context;
pub mod describe;
mod equal;
mod expand;
mod expr;
mod expr_op;
mod ffi;
mod from;
mod from_function;
mod function;
mod grouping;
mod jsonb_path;
pub mod limits;
mod literal;
mod modify;
mod names;
mod oids;
mod operator;
mod options;
pub mod parse;
mod polymorphic;
mod record;
mod recursion;
mod relation;
pub mod rewrite;
mod select;
mod setop;
pub mod statement;
mod sublink;
mod target;
mod typename;
mod utility;
mod versions;
mod window;
mod write_tags;

pub use analyze::{Analyzed, analyze, analyze_arguments};
pub use context::{AnalyzeContext, ParamTypes};
pub use describe::{ResultColumn, result_columns};
pub use parse::{ParsedStatement, parse};
pub use rewrite::{Access, Rewritten, rewrite};
pub use statement::Statement;
pub use typename::format_type;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
    use super::*;

    #[test]
    fn positions_count_characters() {
        let e = parse("select 'éé', from").unwrap_err();
        assert_eq!((e.message.as_str(), e.position), ("syntax error at or near \"from\"", Some(14)));
        let e = parse("select 'abc").unwrap_err();
        assert_eq!((e.message.as_str(), e.position), ("unterminated quoted string at or near \"'abc\"", Some(8)));
        assert_eq!(parse("select 1; ; select 2 ;").unwrap().len(), 2);
    }

    fn deep(f: impl Fn(usize) -> String) {
        for n in [10, 150, 1000, 1900, 5000, 200_000] {
            match parse(&f(n)) {
                Ok(_) => assert!(n <= 2000),
                Err(e) => assert_eq!(e.state.code(), "54001", "{n}: {e}"),
            }
        }
    }

    #[test]
    fn deep_statements_are_refused_or_parsed() {
        deep(|n| format!("select {}1{}", "(".repeat(n), ")".repeat(n)));
        deep(|n| format!("select 1{}", "+1".repeat(n)));
        deep(|n| format!("select {} true", "not ".repeat(n)));
        deep(|n| format!("select {}1{}", "case when 1=1 and ".repeat(n), " then 1 end".repeat(n)));
        deep(|n| format!("select 1, 2{}", " union all select 1, 2".repeat(n)));
        deep(|n| format!("select {}1{}", "f(1, ".repeat(n), ")".repeat(n)));
        deep(|n| format!("select {}1{}", "(select ".repeat(n), ")".repeat(n)));
        deep(|n| format!("select * from a{}", " join a on x=y".repeat(n)));
    }

    #[test]
    fn wide_statements_are_parsed() {
        parse(&format!("select 1{}", ", 1+1".repeat(20_000))).unwrap();
        parse(&format!("select 1 where a=1{}", " or a=1".repeat(20_000))).unwrap();
        parse(&format!("select 1 where a in (1{})", ", 1".repeat(20_000))).unwrap();
    }
}
