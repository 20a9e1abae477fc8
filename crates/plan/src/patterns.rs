//! What LIKE and regular expressions begin with.

/// Which language a pattern is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatternKind {
    /// `LIKE`
    Like,
    /// `ILIKE`
    LikeIgnoringCase,
    /// `~`
    Regex,
    /// `~*`
    RegexIgnoringCase,
    /// `^@`
    Prefix,
}

impl PatternKind {
    /// By the name of the operator's restriction estimator.
    pub fn of_estimator(name: &str) -> Self {
        match name {
            "iclikesel" | "icnlikesel" => Self::LikeIgnoringCase,
            "regexeqsel" | "regexnesel" => Self::Regex,
            "icregexeqsel" | "icregexnesel" => Self::RegexIgnoringCase,
            "prefixsel" => Self::Prefix,
            _ => Self::Like,
        }
    }
}

/// What a pattern's matches begin with.
#[derive(Clone, Debug, PartialEq)]
pub struct FixedPrefix {
    /// Every match begins with it.
    pub prefix: Vec<u8>,
    /// The prefix is the only match.
    pub exact: bool,
    /// A guess at the selectivity of what follows.
    pub rest: f64,
}

const FIXED_CHARACTER: f64 = 0.20;
const ANY_CHARACTER: f64 = 0.9;
const WILDCARD: f64 = 5.0;
const CHARACTER_RANGE: f64 = 0.25;
const PARTIAL_WILDCARD: f64 = 2.0;

/// Takes a pattern apart.
pub fn fixed_prefix(kind: PatternKind, pattern: &[u8]) -> FixedPrefix {
    match kind {
        PatternKind::Like => like(pattern, false),
        PatternKind::LikeIgnoringCase => like(pattern, true),
        PatternKind::Prefix => FixedPrefix { prefix: pattern.to_vec(), exact: false, rest: 1.0 },
        PatternKind::Regex => regex(pattern, false),
        PatternKind::RegexIgnoringCase => regex(pattern, true),
    }
}

fn like(pattern: &[u8], ignore_case: bool) -> FixedPrefix {
    let mut prefix = Vec::new();
    let mut at = 0;
    let mut exact = true;
    while let Some(&c) = pattern.get(at) {
        if c == b'%' || c == b'_' {
            exact = false;
            break;
        }
        let literal = if c == b'\\' {
            match pattern.get(at + 1) {
                Some(&next) => {
                    at += 1;
                    next
                }
                None => break,
            }
        } else {
            c
        };
        // Letters differ by case, and what lies outside ASCII may.
        if ignore_case && (literal.is_ascii_alphabetic() || !literal.is_ascii()) {
            exact = false;
            break;
        }
        prefix.push(literal);
        at += 1;
    }
    let rest = pattern.get(at.min(pattern.len())..).unwrap_or_default();
    FixedPrefix { prefix, exact: exact && at >= pattern.len(), rest: like_rest(rest) }
}

fn like_rest(pattern: &[u8]) -> f64 {
    let start = pattern.iter().take_while(|c| matches!(c, b'%' | b'_')).count();
    let mut s = 1.0;
    let mut at = start;
    while let Some(&c) = pattern.get(at) {
        s *= match c {
            b'%' => WILDCARD,
            b'_' => ANY_CHARACTER,
            b'\\' => {
                at += 1;
                if at >= pattern.len() {
                    break;
                }
                FIXED_CHARACTER
            }
            _ => FIXED_CHARACTER,
        };
        at += 1;
    }
    s.min(1.0)
}

/// Only what is plain is understood: `^literal`, `^(literal)$`. Anything else has no fixed prefix.
fn regex(pattern: &[u8], ignore_case: bool) -> FixedPrefix {
    let none = |rest: &[u8]| FixedPrefix { prefix: Vec::new(), exact: false, rest: regex_rest(rest) };
    let Some(body) = pattern.strip_prefix(b"^") else { return none(pattern) };
    if ignore_case {
        return none(body);
    }
    let plain = |c: &u8| {
        c.is_ascii_alphanumeric() || matches!(c, b'_' | b' ' | b'-' | b'/' | b',' | b':' | b';' | b'@') || !c.is_ascii()
    };
    if let Some(inner) = body.strip_prefix(b"(").and_then(|b| b.strip_suffix(b")$"))
        && inner.iter().all(plain)
    {
        return FixedPrefix { prefix: inner.to_vec(), exact: true, rest: 1.0 };
    }
    if let Some(inner) = body.strip_suffix(b"$")
        && inner.iter().all(plain)
    {
        return FixedPrefix { prefix: inner.to_vec(), exact: true, rest: 1.0 };
    }
    // Alternatives anywhere may begin otherwise.
    if body.contains(&b'|') {
        return none(body);
    }
    let mut n = body.iter().take_while(|c| plain(c)).count();
    // A quantifier belongs to the character before it.
    if body.get(n).is_some_and(|c| matches!(c, b'*' | b'?' | b'+' | b'{')) {
        n = n.saturating_sub(1);
    }
    let (prefix, rest) = body.split_at(n);
    if prefix.last().is_some_and(|c| !c.is_ascii()) && !rest.is_empty() {
        return none(body);
    }
    FixedPrefix { prefix: prefix.to_vec(), exact: false, rest: regex_rest(rest) }
}

fn regex_rest(pattern: &[u8]) -> f64 {
    let (body, anchored) = match pattern.strip_suffix(b"$") {
        Some(b) => (b, true),
        None => (pattern, false),
    };
    let mut s = 1.0;
    let mut at = 0;
    while let Some(&c) = body.get(at) {
        at += 1;
        s *= match c {
            b'.' => ANY_CHARACTER,
            b'[' => {
                let negated = body.get(at) == Some(&b'^');
                while at < body.len() && body.get(at) != Some(&b']') {
                    at += 1;
                }
                at += 1;
                if negated { 1.0 - CHARACTER_RANGE } else { CHARACTER_RANGE }
            }
            b'*' | b'?' | b'+' => PARTIAL_WILDCARD,
            b'(' | b')' | b'|' | b'^' | b'{' | b'}' => 1.0,
            b'\\' => {
                at += 1;
                FIXED_CHARACTER
            }
            _ => FIXED_CHARACTER,
        };
    }
    if !anchored {
        s *= WILDCARD;
    }
    s.min(1.0)
}

/// The least string that is greater, byte by byte, than every string beginning with `prefix`. For text it stays valid
/// UTF-8.
pub fn greater_string(prefix: &[u8], text: bool) -> Option<Vec<u8>> {
    if !text {
        let mut out = prefix.to_vec();
        while let Some(last) = out.pop() {
            if last < u8::MAX {
                out.push(last + 1);
                return Some(out);
            }
        }
        return None;
    }
    let mut chars: Vec<char> = std::str::from_utf8(prefix).ok()?.chars().collect();
    while let Some(last) = chars.pop() {
        let mut code = u32::from(last) + 1;
        if (0xD800..0xE000).contains(&code) {
            code = 0xE000;
        }
        if let Some(next) = char::from_u32(code) {
            // A longer encoding still sorts after a shorter one.
            chars.push(next);
            return Some(chars.into_iter().collect::<String>().into_bytes());
        }
    }
    None
}
