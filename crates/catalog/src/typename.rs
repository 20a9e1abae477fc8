//! Reading a type's name as SQL writes it, for `regtype` and the arguments of `regprocedure`. Statements' type names are
//! the parser's business; this reads the same names without it.

#![allow(clippy::option_option, reason = "a syntax error, another name, and a type are three things")]

use stegodon_format::ids::Oid;
use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::path::truncate;
use crate::view::CatalogView;

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// An unquoted word in lower case.
    Word(String),
    /// A quoted identifier.
    Quoted(String),
    Number(String),
    Sign(char),
}

fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut out = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            c if c.is_ascii_whitespace() || c == '\u{b}' => {}
            '"' => {
                let mut name = String::new();
                loop {
                    match chars.next()? {
                        '"' if chars.next_if_eq(&'"').is_some() => name.push('"'),
                        '"' => break,
                        c => name.push(c),
                    }
                }
                if name.is_empty() {
                    return None;
                }
                out.push(Token::Quoted(truncate(name)));
            }
            '.' | '[' | ']' | '(' | ')' | ',' => out.push(Token::Sign(c)),
            '0'..='9' => {
                let mut number = c.to_string();
                while let Some(d) = chars.next_if(char::is_ascii_digit) {
                    number.push(d);
                }
                out.push(Token::Number(number));
            }
            c if c.is_alphabetic() || c == '_' || !c.is_ascii() => {
                let mut word = c.to_string();
                while let Some(d) = chars.next_if(|d| d.is_alphanumeric() || matches!(d, '_' | '$') || !d.is_ascii()) {
                    word.push(d);
                }
                out.push(Token::Word(truncate(word.to_ascii_lowercase())));
            }
            _ => return None,
        }
    }
    Some(out)
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn sign(&mut self, sign: char) -> bool {
        let found = self.peek() == Some(&Token::Sign(sign));
        self.at += usize::from(found);
        found
    }

    fn word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Word(w)) if w == word);
        self.at += usize::from(found);
        found
    }

    /// Several words in a row, or none of them.
    fn words(&mut self, words: &[&str]) -> bool {
        let start = self.at;
        let found = words.iter().all(|w| self.word(w));
        if !found {
            self.at = start;
        }
        found
    }

    /// `(n, …)`; the first number.
    fn modifiers(&mut self) -> Option<Option<u32>> {
        if !self.sign('(') {
            return Some(None);
        }
        let mut first = None;
        loop {
            match self.peek()? {
                Token::Number(n) => {
                    let n: u32 = n.parse().ok()?;
                    first.get_or_insert(n);
                }
                Token::Word(_) => {}
                _ => return None,
            }
            self.at += 1;
            if self.sign(')') {
                return Some(Some(first?));
            }
            if !self.sign(',') {
                return None;
            }
        }
    }
}

impl CatalogView {
    /// The type that a name means, its modifiers checked for syntax only.
    pub fn parse_type(&self, text: &str) -> SqlResult<Oid> {
        let invalid = || SqlError::new(SqlState::SyntaxError, format!("invalid type name \"{text}\""));
        let mut parser = Parser { tokens: tokens(text).ok_or_else(invalid)?, at: 0 };
        let element = match spelled(&mut parser).ok_or_else(invalid)? {
            Some(oid) => oid,
            None => self.type_named(&names(&mut parser).ok_or_else(invalid)?)?,
        };
        // Only a type that was not spelled specially still has its modifiers ahead.
        parser.modifiers().ok_or_else(invalid)?;
        let mut array = false;
        if parser.word("array") {
            array = true;
        }
        while parser.sign('[') {
            array = true;
            if matches!(parser.peek(), Some(Token::Number(_))) {
                parser.at += 1;
            }
            if !parser.sign(']') {
                return Err(invalid());
            }
        }
        if parser.peek().is_some() {
            return Err(invalid());
        }
        if !array || self.catalog.element_type(element).is_some() {
            return Ok(element);
        }
        self.catalog.array_type_of(element).ok_or_else(|| {
            let message = format!("could not find array type for data type {}", self.format_type(element, None));
            SqlError::new(SqlState::UndefinedObject, message)
        })
    }
}

/// SQL's own spellings. Outer `None` is a syntax error; inner `None` is another name, nothing read.
fn spelled(p: &mut Parser) -> Option<Option<Oid>> {
    let Some(Token::Word(word)) = p.peek().cloned() else { return Some(None) };
    // pg_catalog.int4 and the like begin with a word too.
    if p.tokens.get(p.at + 1) == Some(&Token::Sign('.')) {
        return Some(None);
    }
    p.at += 1;
    let oid = match word.as_str() {
        "int" | "integer" => 23,
        "smallint" => 21,
        "bigint" => 20,
        "real" => 700,
        "boolean" => 16,
        "json" => 114,
        "double" => {
            if !p.word("precision") {
                // Not SQL's: a type that is called double.
                p.at -= 1;
                return Some(None);
            }
            701
        }
        "float" => match p.modifiers()? {
            None | Some(25..=53) => 701,
            Some(1..=24) => 700,
            Some(_) => return None,
        },
        "decimal" | "dec" | "numeric" => 1700,
        "bit" => {
            if p.word("varying") {
                1562
            } else {
                1560
            }
        }
        "varchar" => 1043,
        "national" => {
            if !(p.word("character") || p.word("char")) {
                return None;
            }
            if p.word("varying") { 1043 } else { 1042 }
        }
        "character" | "char" | "nchar" => {
            if p.word("varying") {
                1043
            } else {
                1042
            }
        }
        "time" | "timestamp" => {
            p.modifiers()?;
            let zone = p.words(&["with", "time", "zone"]);
            if !zone {
                let _default = p.words(&["without", "time", "zone"]);
            }
            match (word.as_str(), zone) {
                ("time", false) => 1083,
                ("time", true) => 1266,
                (_, false) => 1114,
                (_, true) => 1184,
            }
        }
        "interval" => {
            let field = |p: &mut Parser| ["year", "month", "day", "hour", "minute", "second"].iter().any(|f| p.word(f));
            if field(p) && p.word("to") && !field(p) {
                return None;
            }
            1186
        }
        "setof" => return None,
        _ => {
            p.at -= 1;
            return Some(None);
        }
    };
    Some(Some(Oid(oid)))
}

/// `a.b.c`
fn names(p: &mut Parser) -> Option<Vec<String>> {
    let mut out = Vec::new();
    loop {
        match p.peek()?.clone() {
            Token::Word(name) | Token::Quoted(name) => out.push(name),
            _ => return None,
        }
        p.at += 1;
        if !p.sign('.') {
            return Some(out);
        }
    }
}
