//! The generic form of a `pg_node_tree`: tokens, then values, before anything is known of the nodes.
//!
//! ```text
//!  {OPEXPR :opno 96 :args ({VAR :varno 1 …} {CONST … :constvalue 4 [ 1 0 0 0 0 0 0 0 ]}) :location -1}
//!   tag    field value      a node in a list              a counted byte string
//!
//!  <>            NULL                     (i 1 2) (o 23 25) (b 8 9)  integers, OIDs, a bitmapset
//!  word          a token; \ escapes       "text"                     a String node
//! ```

use stegodon_types::{SqlError, SqlResult, SqlState};

/// How deep values may nest. PostgreSQL bounds this by its stack; nothing written by hand comes near.
pub const MAX_DEPTH: usize = 1000;

/// A value of a field or a list.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// `<>`
    Null,
    /// A bare word, its escapes resolved.
    Word(String),
    /// A quoted string: a `String` node.
    Text(String),
    /// A list of values.
    List(Vec<Value>),
    /// A list of numbers: the letter (`i`, `o`, `x`, `b`) and its members.
    Numbers(u8, Vec<i64>),
    /// A length and as many bytes as were written.
    Bytes(i64, Vec<u8>),
    /// A node.
    Node(Node),
}

/// A node: its tag and fields in their order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) tag: String,
    pub(super) fields: Vec<(String, Value)>,
}

pub(super) fn damaged(what: impl std::fmt::Display) -> SqlError {
    SqlError::new(SqlState::DataCorrupted, format!("invalid pg_node_tree: {what}"))
}

pub(super) fn too_deep() -> SqlError {
    SqlError::new(SqlState::StatementTooComplex, "stack depth limit exceeded")
}

/// Runs `f` with enough stack for one more level of a tree.
pub(super) fn on_stack<T>(f: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(128 << 10, 1 << 20, f)
}

/// Reads the whole text as one value.
pub(super) fn parse(text: &str) -> SqlResult<Value> {
    let mut parser = Parser { text, at: 0 };
    let value = parser.value(0)?;
    match parser.token() {
        None => Ok(value),
        Some(token) => Err(damaged(format!("\"{token}\" after the end"))),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\n' | b'\t')
}

fn unescape(token: &str) -> String {
    let mut out = String::with_capacity(token.len());
    let mut chars = token.chars();
    while let Some(c) = chars.next() {
        if c == '\\' {
            out.extend(chars.next());
        } else {
            out.push(c);
        }
    }
    out
}

impl<'a> Parser<'a> {
    fn skip_space(&mut self) {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at).copied().is_some_and(is_space) {
            self.at += 1;
        }
    }

    /// The next token with its escapes; parentheses and braces stand alone.
    fn token(&mut self) -> Option<&'a str> {
        self.skip_space();
        let bytes = self.text.as_bytes();
        let start = self.at;
        if matches!(bytes.get(start)?, b'(' | b')' | b'{' | b'}') {
            self.at += 1;
            return self.text.get(start..self.at);
        }
        while let Some(&b) = bytes.get(self.at) {
            match b {
                b'\\' => {
                    // The escaped character may have several bytes; those after the first are never special.
                    self.at += 2;
                }
                b'(' | b')' | b'{' | b'}' => break,
                b if is_space(b) => break,
                _ => self.at += 1,
            }
        }
        self.at = self.at.min(bytes.len());
        self.text.get(start..self.at)
    }

    fn peek(&mut self) -> Option<&'a str> {
        let at = self.at;
        let token = self.token();
        self.at = at;
        token
    }

    fn value(&mut self, depth: usize) -> SqlResult<Value> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        let token = self.token().ok_or_else(|| damaged("unexpected end"))?;
        match token {
            "<>" => Ok(Value::Null),
            "{" => on_stack(|| self.node(depth)),
            "(" => on_stack(|| self.list(depth)),
            ")" | "}" => Err(damaged(format!("unexpected \"{token}\""))),
            _ => {
                if let Some(inner) = token.strip_prefix('"').and_then(|t| t.strip_suffix('"')) {
                    return Ok(Value::Text(unescape(inner)));
                }
                if self.peek() == Some("[") {
                    let length = token.parse().map_err(|_| damaged(format!("length \"{token}\"")))?;
                    return self.bytes(length);
                }
                Ok(Value::Word(unescape(token)))
            }
        }
    }

    fn bytes(&mut self, length: i64) -> SqlResult<Value> {
        let _open = self.token();
        let mut bytes = Vec::new();
        loop {
            match self.token() {
                Some("]") => return Ok(Value::Bytes(length, bytes)),
                // Written as signed or unsigned chars.
                Some(token) => {
                    let number: i16 = token.parse().map_err(|_| damaged(format!("byte \"{token}\"")))?;
                    if !(-128..=255).contains(&number) {
                        return Err(damaged(format!("byte \"{token}\"")));
                    }
                    bytes.push(number as u8);
                }
                None => return Err(damaged("unexpected end")),
            }
        }
    }

    fn list(&mut self, depth: usize) -> SqlResult<Value> {
        if let Some(letter @ ("i" | "o" | "x" | "b")) = self.peek() {
            let letter = letter.bytes().next().unwrap_or(b'i');
            let _letter = self.token();
            let mut numbers = Vec::new();
            loop {
                match self.token() {
                    Some(")") => return Ok(Value::Numbers(letter, numbers)),
                    Some(token) => {
                        numbers.push(token.parse().map_err(|_| damaged(format!("number \"{token}\"")))?);
                    }
                    None => return Err(damaged("unexpected end")),
                }
            }
        }
        let mut items = Vec::new();
        loop {
            match self.peek() {
                Some(")") => {
                    let _close = self.token();
                    return Ok(Value::List(items));
                }
                Some(_) => items.push(self.value(depth + 1)?),
                None => return Err(damaged("unexpected end")),
            }
        }
    }

    fn node(&mut self, depth: usize) -> SqlResult<Value> {
        let tag = self.token().filter(|t| t.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_'));
        let tag = tag.ok_or_else(|| damaged("node without a tag"))?.to_owned();
        let mut fields = Vec::new();
        loop {
            let token = self.token().ok_or_else(|| damaged("unexpected end"))?;
            if token == "}" {
                return Ok(Value::Node(Node { tag, fields }));
            }
            let name = token.strip_prefix(':').ok_or_else(|| damaged(format!("\"{token}\" is no field of {tag}")))?;
            let name = name.to_owned();
            fields.push((name, self.value(depth + 1)?));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn words_escapes_and_nulls() {
        let value = parse(r#"{ALIAS :aliasname a\ b :colnames ("x" "" "a\ \(b" ) :n <> :e "" :m \<> :b (b 8 9)}"#);
        let Value::Node(node) = value.unwrap() else { unreachable!() };
        let get = |name: &str| node.fields.iter().find(|(n, _)| n == name).unwrap().1.clone();
        assert_eq!(get("aliasname"), Value::Word("a b".into()));
        let texts = ["x", "", "a (b"].map(|t| Value::Text(t.into()));
        assert_eq!(get("colnames"), Value::List(texts.to_vec()));
        assert_eq!(get("n"), Value::Null);
        assert_eq!(get("e"), Value::Text(String::new()));
        assert_eq!(get("m"), Value::Word("<>".into()));
        assert_eq!(get("b"), Value::Numbers(b'b', vec![8, 9]));
    }

    #[test]
    fn damage_and_depth_are_errors() {
        for text in ["", "(", "{", "{X", "{X :a", "{X a}", ")", "{X :a 4 [ 1", "{X :a 4 [ 999 ]}", "1 2", "\\"] {
            let result = parse(text);
            assert!(result.is_err() || text == "\\", "{text}: {result:?}");
        }
        let deep = "(".repeat(100_000);
        assert_eq!(parse(&deep).unwrap_err().state, SqlState::StatementTooComplex);
    }
}
