//! `upper`, `lower`, `initcap`, by the rules of the collation's locale: ASCII only under C and POSIX, Unicode's simple
//! mappings under the builtin C.UTF-8. Under other locales text beyond ASCII is refused.
//!
//! The mappings are the standard library's, whose Unicode is 17 where PostgreSQL 18's is 16: the letters that 17 gave a
//! case are left as they are.

use stegodon_types::{Oid, SqlError, SqlResult};

use crate::adapt::write1;
use crate::kernel::Entry;
use crate::{Call, Column, EvalContext};

/// Whose rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CaseRules {
    /// A-Z and a-z.
    Ascii,
    /// Unicode's simple mappings.
    Simple,
    /// Not known beyond ASCII.
    Unknown,
}

/// The case rules of a collation.
pub(crate) fn rules(cx: &EvalContext<'_>, collation: Oid) -> SqlResult<CaseRules> {
    let by = |provider: u8, locale: Option<&str>| match (provider, locale) {
        (b'b', Some("C")) | (b'c', Some("C" | "POSIX")) => CaseRules::Ascii,
        (b'b', Some("C.UTF-8" | "C.UTF8")) => CaseRules::Simple,
        _ => CaseRules::Unknown,
    };
    let turkish = |locale: Option<&str>| {
        let locale = locale.unwrap_or_default().to_ascii_lowercase();
        // Where I and i are no pair.
        if ["tr", "az"].iter().any(|l| locale.starts_with(l)) {
            return Err(SqlError::unsupported(format_args!("upper and lower case in locale \"{locale}\"")));
        }
        Ok(())
    };
    match collation.0 {
        0 => Ok(CaseRules::Unknown),
        950 | 951 => Ok(CaseRules::Ascii),
        811 => Ok(CaseRules::Simple),
        100 => {
            let Some(database) = cx.catalog.database() else { return Ok(CaseRules::Unknown) };
            let provider = database.locale_provider;
            let locale = if provider == b'c' { Some(database.ctype.as_str()) } else { database.locale.as_deref() };
            turkish(locale)?;
            Ok(by(provider, locale))
        }
        _ => {
            let Some(row) = cx.catalog.collation(collation) else { return Ok(CaseRules::Unknown) };
            let locale = if row.provider == b'c' { row.ctype.as_deref() } else { row.locale.as_deref() };
            turkish(locale)?;
            Ok(by(row.provider, locale))
        }
    }
}

/// Letters that have a case only since Unicode 17.
fn is_newer(c: char) -> bool {
    matches!(c, '\u{A7CE}'..='\u{A7CF}' | '\u{A7D2}'..='\u{A7D5}' | '\u{16EA0}'..='\u{16ED3}')
}

/// Unicode's simple upper case.
pub(crate) fn simple_upper(c: char) -> char {
    let mut upper = c.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(u), None) if !is_newer(c) => u,
        (Some(_), Some(_)) => match c {
            // Greek with iota subscript has a title-case letter of its own, eight or so further on.
            '\u{1F80}'..='\u{1F87}' | '\u{1F90}'..='\u{1F97}' | '\u{1FA0}'..='\u{1FA7}' => {
                char::from_u32(c as u32 + 8).unwrap_or(c)
            }
            '\u{1FB3}' | '\u{1FC3}' | '\u{1FF3}' => char::from_u32(c as u32 + 9).unwrap_or(c),
            _ => c,
        },
        _ => c,
    }
}

/// Unicode's simple lower case.
pub(crate) fn simple_lower(c: char) -> char {
    let mut lower = c.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(l), None) if !is_newer(c) => l,
        (Some(l), Some(_)) => l,
        _ => c,
    }
}

/// The text, where its rules are known for it.
fn known(rules: CaseRules, text: &[u8]) -> SqlResult<Option<&str>> {
    if rules == CaseRules::Ascii || text.is_ascii() {
        return Ok(None);
    }
    if rules == CaseRules::Unknown {
        return Err(SqlError::unsupported("upper and lower case beyond ASCII in this collation"));
    }
    std::str::from_utf8(text).map(Some).map_err(|_| SqlError::unsupported("case of text that is not UTF-8"))
}

/// Text in lower case.
pub(crate) fn lower_into(rules: CaseRules, text: &[u8], out: &mut Vec<u8>) -> SqlResult<()> {
    match known(rules, text)? {
        None => out.extend(text.iter().map(u8::to_ascii_lowercase)),
        Some(text) => text.chars().for_each(|c| push(out, simple_lower(c))),
    }
    Ok(())
}

fn upper_into(rules: CaseRules, text: &[u8], out: &mut Vec<u8>) -> SqlResult<()> {
    match known(rules, text)? {
        None => out.extend(text.iter().map(u8::to_ascii_uppercase)),
        Some(text) => text.chars().for_each(|c| push(out, simple_upper(c))),
    }
    Ok(())
}

fn push(out: &mut Vec<u8>, c: char) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

/// `initcap`: the first letter of each word in title case, the rest in lower.
fn initcap_into(rules: CaseRules, text: &[u8], out: &mut Vec<u8>) -> SqlResult<()> {
    let Some(text) = known(rules, text)? else {
        let mut inside = false;
        out.extend(text.iter().map(|b| {
            let mapped = if inside { b.to_ascii_lowercase() } else { b.to_ascii_uppercase() };
            inside = b.is_ascii_alphanumeric();
            mapped
        }));
        return Ok(());
    };
    let mut inside = false;
    for c in text.chars() {
        // Letters whose title case is neither their upper case nor themselves.
        if matches!(c, '\u{1C4}'..='\u{1CC}' | '\u{1F1}'..='\u{1F3}' | '\u{10D0}'..='\u{10FF}') {
            return Err(SqlError::unsupported(format_args!("the title case of \"{c}\"")));
        }
        push(out, if inside { simple_lower(c) } else { simple_upper(c) });
        inside = c.is_ascii_digit() || c.is_alphabetic();
    }
    Ok(())
}

fn run(call: &Call<'_>, f: fn(CaseRules, &[u8], &mut Vec<u8>) -> SqlResult<()>) -> SqlResult<Column> {
    if call.info.input_collation == Oid(0) {
        return Err(SqlError::new(
            stegodon_types::SqlState::IndeterminateCollation,
            "could not determine which collation to use for string comparison",
        )
        .hint("Use the COLLATE clause to set the collation explicitly."));
    }
    let rules = rules(call.cx, call.info.input_collation)?;
    write1(call, |a: &[u8], out| f(rules, a, out))
}

/// Case.
pub(crate) static KERNELS: &[Entry] =
    &[(870, |c| run(c, lower_into)), (871, |c| run(c, upper_into)), (872, |c| run(c, initcap_into))];
