//! From a pattern's text to its tree.

use stegodon_types::SqlResult;

use super::super::case::{CaseRules, simple_lower, simple_upper};
use super::*;

/// The most repetitions that may be asked for.
const MAX_COUNT: u32 = 255;
/// How deep groups may nest.
const MAX_DEPTH: usize = 200;

struct Parser {
    text: Vec<char>,
    at: usize,
    options: Options,
    langs: Vec<Lang>,
    groups: usize,
    ascii_only: bool,
    depth: usize,
    /// Inside a look-around, where groups do not capture.
    looking: usize,
}

/// What an atom is, before its quantifier.
enum Atom {
    /// A constraint, which takes none.
    Constraint(usize),
    Plain(usize),
    Group(Part),
}

impl Are {
    /// Compiles a pattern.
    pub(in super::super) fn compile(pattern: &str, options: Options) -> SqlResult<Are> {
        let mut parser = Parser {
            text: pattern.chars().collect(),
            at: 0,
            options,
            langs: Vec::new(),
            groups: 0,
            ascii_only: false,
            depth: 0,
            looking: 0,
        };
        parser.prefix()?;
        let tree = parser.alternatives(None)?;
        if parser.at < parser.text.len() {
            return Err(invalid("parentheses () not balanced"));
        }
        Ok(Are {
            langs: parser.langs,
            tree,
            groups: parser.groups,
            rules: options.rules,
            ascii_only: parser.ascii_only,
        })
    }
}

impl Parser {
    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn ahead(&self, n: usize) -> Option<char> {
        self.text.get(self.at + n).copied()
    }

    fn eat(&mut self, c: char) -> bool {
        let found = self.peek() == Some(c);
        self.at += usize::from(found);
        found
    }

    fn lang(&mut self, lang: Lang) -> usize {
        self.langs.push(lang);
        self.langs.len() - 1
    }

    fn seq(&mut self, items: &[usize]) -> usize {
        match items {
            [one] => *one,
            _ => self.lang(Lang::Seq(items.to_vec())),
        }
    }

    fn repeat(&mut self, inner: usize, min: u32, max: Option<u32>) -> usize {
        if (min, max) == (1, Some(1)) { inner } else { self.lang(Lang::Repeat(inner, min, max)) }
    }

    /// Directors and embedded options.
    fn prefix(&mut self) -> SqlResult<()> {
        if self.text.starts_with(&['*', '*', '*']) {
            return Err(refuse("a director"));
        }
        if self.text.starts_with(&['(', '?']) && self.ahead(2).is_some_and(char::is_alphabetic) {
            self.at = 2;
            loop {
                let c = self.peek().ok_or_else(|| invalid("invalid embedded option"))?;
                self.at += 1;
                match c {
                    ')' => break,
                    'c' => self.options.ignore_case = false,
                    'i' => self.options.ignore_case = true,
                    'm' | 'n' => (self.options.newline_stops, self.options.newline_anchors) = (true, true),
                    's' => (self.options.newline_stops, self.options.newline_anchors) = (false, false),
                    'p' => (self.options.newline_stops, self.options.newline_anchors) = (true, false),
                    'w' => (self.options.newline_stops, self.options.newline_anchors) = (false, true),
                    't' => {}
                    'b' | 'e' | 'q' | 'x' => return Err(refuse("this embedded option")),
                    _ => return Err(invalid("invalid embedded option")),
                }
            }
        }
        Ok(())
    }

    fn at_end(&self, stopper: Option<char>) -> bool {
        match self.peek() {
            None | Some('|') => true,
            c => stopper.is_some() && c == stopper,
        }
    }

    /// Branches between `|`.
    fn alternatives(&mut self, stopper: Option<char>) -> SqlResult<Part> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(refuse("nesting that deep"));
        }
        let mut branches = Vec::new();
        let mut flags = LONGER;
        loop {
            let branch = self.branch(stopper)?;
            flags |= up(flags | branch.flags);
            branches.push(branch);
            if !self.eat('|') {
                break;
            }
        }
        self.depth -= 1;
        if branches.len() == 1
            && let Some(only) = branches.pop()
        {
            return Ok(only);
        }
        let lang = self.lang(Lang::Alt(branches.iter().map(|b| b.lang).collect()));
        if messy(flags) {
            Ok(Part { op: Op::Alt, flags, group: 0, parts: branches, lang })
        } else {
            Ok(Part { op: Op::Plain, flags, group: 0, parts: Vec::new(), lang })
        }
    }

    fn plain(&mut self, items: &[usize], flags: u8) -> Part {
        let lang = self.seq(items);
        Part { op: Op::Plain, flags, group: 0, parts: Vec::new(), lang }
    }

    fn concat(&mut self, flags: u8, first: Part, second: Part) -> Part {
        let lang = self.lang(Lang::Seq(vec![first.lang, second.lang]));
        Part { op: Op::Concat, flags, group: 0, parts: vec![first, second], lang }
    }

    fn branch(&mut self, stopper: Option<char>) -> SqlResult<Part> {
        let mut items = Vec::new();
        let mut flags = 0;
        while !self.at_end(stopper) {
            let (atom, lang, is_group) = match self.atom()? {
                Atom::Constraint(lang) => {
                    items.push(lang);
                    continue;
                }
                Atom::Plain(lang) => (None, lang, false),
                Atom::Group(part) => {
                    let (lang, captures) = (part.lang, part.group > 0);
                    (Some(part), lang, captures)
                }
            };
            let (min, max, prefers) = self.quantifier()?;
            if max == Some(0) {
                continue;
            }
            let atom_flags = atom.as_ref().map_or(0, |a| a.flags);
            let all = flags | prefers | atom_flags;
            let repeated = self.repeat(lang, min, max);
            if !is_group && !messy(up(all)) {
                items.push(repeated);
                flags = all;
                continue;
            }
            // What has groups, or clashes with what was before it, is a part of its own.
            let atom = match atom {
                Some(atom) => atom,
                None => self.plain(&[lang], 0),
            };
            let rest_flags = combine(prefers, atom_flags);
            let own = atom.flags & (LONGER | SHORTER | MIXED);
            let quantified = if (min, max) == (1, Some(1)) && (prefers == 0 || own == 0 || own == prefers) {
                atom
            } else if atom.flags & CAPTURES == 0 {
                Part { op: Op::Plain, flags: combine(prefers, atom.flags), group: 0, parts: Vec::new(), lang: repeated }
            } else if min > 0 {
                let flags = combine(prefers, atom.flags);
                let before = self.repeat(lang, min - 1, max.map(|n| n - 1));
                let before =
                    Part { op: Op::Plain, flags: preference(flags), group: 0, parts: Vec::new(), lang: before };
                self.concat(flags, before, atom)
            } else {
                let flags = combine(prefers, atom.flags);
                Part { op: Op::Iterate(max), flags, group: 0, parts: vec![atom], lang: repeated }
            };
            let vacuous = items.is_empty();
            let prefix = self.plain(&items, flags);
            if self.at_end(stopper) {
                if vacuous {
                    return Ok(quantified);
                }
                let flags = flags | combine(flags, quantified.flags);
                return Ok(self.concat(flags, prefix, quantified));
            }
            let rest = self.branch(stopper)?;
            let rest_flags = rest_flags | combine(rest_flags, rest.flags);
            let flags = flags | combine(flags, rest_flags);
            if vacuous {
                return Ok(self.concat(flags, quantified, rest));
            }
            let both = quantified.flags | rest.flags;
            let second = if quantified.op == Op::Plain
                && quantified.group == 0
                && rest.op == Op::Plain
                && rest.group == 0
                && !messy(up(both))
            {
                self.plain(&[quantified.lang, rest.lang], both)
            } else {
                self.concat(rest_flags, quantified, rest)
            };
            return Ok(self.concat(flags, prefix, second));
        }
        Ok(self.plain(&items, flags))
    }

    /// What follows an atom: how often, and which preference it adds.
    fn quantifier(&mut self) -> SqlResult<(u32, Option<u32>, u8)> {
        let (min, max, exact) = match self.peek() {
            Some('*') => (0, None, false),
            Some('+') => (1, None, false),
            Some('?') => (0, Some(1), false),
            Some('{') if self.ahead(1).is_some_and(|c| c.is_ascii_digit()) => {
                self.at += 1;
                let min = self.count()?;
                let (max, exact) = if self.eat(',') {
                    let some = self.peek().is_some_and(|c| c.is_ascii_digit());
                    (if some { Some(self.count()?) } else { None }, false)
                } else {
                    (Some(min), true)
                };
                if self.peek().is_none() {
                    return Err(invalid("braces {} not balanced"));
                }
                if max.is_some_and(|max| max < min) || self.peek() != Some('}') {
                    return Err(invalid("invalid repetition count(s)"));
                }
                (min, max, exact)
            }
            _ => return Ok((1, Some(1), 0)),
        };
        self.at += 1;
        let prefers = if self.eat('?') { SHORTER } else { LONGER };
        if matches!(self.peek(), Some('*' | '+' | '?'))
            || (self.peek() == Some('{') && self.ahead(1).is_some_and(|c| c.is_ascii_digit()))
        {
            return Err(invalid("quantifier operand invalid"));
        }
        Ok((min, max, if exact { 0 } else { prefers }))
    }

    fn count(&mut self) -> SqlResult<u32> {
        let mut n = 0;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            n = n * 10 + digit;
            self.at += 1;
            if n > MAX_COUNT {
                return Err(invalid("invalid repetition count(s)"));
            }
        }
        Ok(n)
    }

    fn constraint(&mut self, lang: Lang) -> Atom {
        Atom::Constraint(self.lang(lang))
    }

    fn set(&mut self, set: Set) -> Atom {
        Atom::Plain(self.lang(Lang::Set(set)))
    }

    fn atom(&mut self) -> SqlResult<Atom> {
        let c = self.peek().ok_or_else(|| invalid("invalid regexp (reg version 0.8)"))?;
        self.at += 1;
        match c {
            '^' if self.options.newline_anchors => Ok(self.constraint(Lang::BeginLine)),
            '^' => Ok(self.constraint(Lang::Begin)),
            '$' if self.options.newline_anchors => Ok(self.constraint(Lang::EndLine)),
            '$' => Ok(self.constraint(Lang::End)),
            '*' | '+' | '?' => Err(invalid("quantifier operand invalid")),
            '{' if self.peek().is_some_and(|c| c.is_ascii_digit()) => Err(invalid("quantifier operand invalid")),
            '.' => {
                let no_newline = self.options.newline_stops;
                Ok(self.set(Set { negated: true, no_newline, ..Set::default() }))
            }
            '(' => self.group(),
            ')' => Err(invalid("parentheses () not balanced")),
            '[' => self.bracket(),
            '\\' => self.escape(),
            c => self.one(c),
        }
    }

    fn group(&mut self) -> SqlResult<Atom> {
        let mut look = None;
        let mut captures = self.looking == 0;
        if self.eat('?') {
            captures = false;
            let behind = self.eat('<');
            match self.peek() {
                Some(':') if !behind => {}
                Some('=') => look = Some((behind, false)),
                Some('!') => look = Some((behind, true)),
                _ => return Err(invalid("quantifier operand invalid")),
            }
            self.at += 1;
        }
        let number = self.groups + 1;
        if captures {
            self.groups = number;
        }
        self.looking += usize::from(look.is_some());
        let mut part = self.alternatives(Some(')'))?;
        self.looking -= usize::from(look.is_some());
        if !self.eat(')') {
            return Err(invalid("parentheses () not balanced"));
        }
        if let Some((behind, negated)) = look {
            return Ok(self.constraint(Lang::Look { inner: part.lang, behind, negated }));
        }
        if captures {
            if part.group > 0 {
                part = Part { op: Op::Wrap, flags: part.flags, group: 0, lang: part.lang, parts: vec![part] };
            }
            part.flags |= CAPTURES;
            part.group = number;
        }
        Ok(Atom::Group(part))
    }

    /// The characters that stand for one when case is ignored.
    fn cases(&self, c: char) -> SqlResult<Vec<(char, char)>> {
        if !self.options.ignore_case {
            return Ok(vec![(c, c)]);
        }
        if !c.is_ascii() && self.options.rules == CaseRules::Unknown {
            return Err(refuse("ignoring case beyond ASCII"));
        }
        let (upper, lower) = match self.options.rules {
            CaseRules::Simple => (simple_upper(c), simple_lower(c)),
            _ => (c.to_ascii_uppercase(), c.to_ascii_lowercase()),
        };
        Ok(vec![(c, c), (upper, upper), (lower, lower)])
    }

    fn one(&mut self, c: char) -> SqlResult<Atom> {
        let ranges = self.cases(c)?;
        Ok(self.set(Set { ranges, ..Set::default() }))
    }

    fn class(&mut self, class: Class) -> SqlResult<Class> {
        if self.options.rules == CaseRules::Unknown {
            return Err(refuse("a character class under this collation"));
        }
        if matches!(class, Class::Punct | Class::Graph | Class::Print | Class::Control | Class::Blank) {
            self.ascii_only |= self.options.rules != CaseRules::Ascii;
        }
        Ok(match class {
            Class::Upper | Class::Lower if self.options.ignore_case => Class::Alpha,
            class => class,
        })
    }

    /// `\d` and its like: the class, and whether its complement is meant.
    fn class_escape(c: char) -> Option<(Class, bool)> {
        Some(match c {
            'd' => (Class::Digit, false),
            'D' => (Class::Digit, true),
            's' => (Class::Space, false),
            'S' => (Class::Space, true),
            'w' => (Class::Word, false),
            'W' => (Class::Word, true),
            _ => return None,
        })
    }

    fn hex(&mut self, digits: std::ops::RangeInclusive<usize>) -> SqlResult<char> {
        let mut n = 0;
        let mut read = 0;
        while read < *digits.end() {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(16)) else { break };
            n = n * 16 + digit;
            read += 1;
            self.at += 1;
        }
        if read < *digits.start() {
            return Err(invalid("invalid escape \\ sequence"));
        }
        char::from_u32(n).filter(|c| *c != '\0').ok_or_else(|| refuse("this escape"))
    }

    /// An escape that is one character; its letter is read.
    fn character_escape(&mut self, c: char) -> SqlResult<Option<char>> {
        Ok(Some(match c {
            'a' => '\x07',
            'b' => '\x08',
            'B' => '\\',
            'e' => '\x1b',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            'u' => self.hex(4..=4)?,
            'U' => self.hex(8..=8)?,
            'c' | 'x' => return Err(refuse("this escape")),
            c if !c.is_alphanumeric() => c,
            _ => return Ok(None),
        }))
    }

    fn escape(&mut self) -> SqlResult<Atom> {
        let c = self.peek().ok_or_else(|| invalid("invalid escape \\ sequence"))?;
        self.at += 1;
        if let Some((class, negated)) = Self::class_escape(c) {
            let class = self.class(class)?;
            let no_newline = negated && class != Class::Space && self.options.newline_stops;
            return Ok(self.set(Set { classes: vec![(class, false)], negated, no_newline, ..Set::default() }));
        }
        match c {
            'A' => return Ok(self.constraint(Lang::Begin)),
            'Z' => return Ok(self.constraint(Lang::End)),
            'm' | 'M' | 'y' | 'Y' => {
                self.class(Class::Word)?;
                return Ok(self.constraint(match c {
                    'm' => Lang::WordStart,
                    'M' => Lang::WordEnd,
                    c => Lang::WordEdge(c == 'y'),
                }));
            }
            '0'..='9' => return Err(refuse("a back reference or an octal escape")),
            _ => {}
        }
        match self.character_escape(c)? {
            Some(c) => self.one(c),
            None => Err(invalid("invalid escape \\ sequence")),
        }
    }

    /// A bracket expression; its opening bracket is read.
    fn bracket(&mut self) -> SqlResult<Atom> {
        if self.text.get(self.at..).is_some_and(|t| {
            t.starts_with(&['[', ':', '<', ':', ']', ']']) || t.starts_with(&['[', ':', '>', ':', ']', ']'])
        }) {
            return Err(refuse("a word boundary in brackets"));
        }
        let mut set = Set { negated: self.eat('^'), ..Set::default() };
        set.no_newline = set.negated && self.options.newline_stops;
        let mut first = true;
        loop {
            let c = self.peek().ok_or_else(|| invalid("brackets [] not balanced"))?;
            self.at += 1;
            match c {
                ']' if !first => break,
                '[' if self.peek() == Some(':') => {
                    self.at += 1;
                    let mut name = String::new();
                    while let Some(c) = self.peek().filter(|c| *c != ':') {
                        name.push(c);
                        self.at += 1;
                    }
                    if !(self.eat(':') && self.eat(']')) {
                        return Err(invalid("brackets [] not balanced"));
                    }
                    let class = match name.as_str() {
                        "digit" => Class::Digit,
                        "xdigit" => Class::HexDigit,
                        "space" => Class::Space,
                        "alpha" => Class::Alpha,
                        "alnum" => Class::Alnum,
                        "word" => Class::Word,
                        "upper" => Class::Upper,
                        "lower" => Class::Lower,
                        "punct" => Class::Punct,
                        "graph" => Class::Graph,
                        "print" => Class::Print,
                        "cntrl" => Class::Control,
                        "blank" => Class::Blank,
                        "ascii" => return Err(refuse("this character class")),
                        _ => return Err(invalid("invalid character class")),
                    };
                    let class = self.class(class)?;
                    set.classes.push((class, false));
                }
                '[' if matches!(self.peek(), Some('.' | '=')) => return Err(refuse("a collating element")),
                '\\' => {
                    let c = self.peek().ok_or_else(|| invalid("invalid escape \\ sequence"))?;
                    self.at += 1;
                    if let Some((class, negated)) = Self::class_escape(c) {
                        let class = self.class(class)?;
                        set.classes.push((class, negated));
                    } else {
                        let c = self.character_escape(c)?.ok_or_else(|| invalid("invalid escape \\ sequence"))?;
                        self.range(c, &mut set)?;
                    }
                }
                '-' if !first && self.peek() != Some(']') => return Err(refuse("a range without a start")),
                c => self.range(c, &mut set)?,
            }
            first = false;
        }
        Ok(self.set(set))
    }

    /// A character in brackets, or a range that begins with it.
    fn range(&mut self, start: char, set: &mut Set) -> SqlResult<()> {
        if self.peek() != Some('-') || self.ahead(1).is_none_or(|c| c == ']') {
            set.ranges.extend(self.cases(start)?);
            return Ok(());
        }
        self.at += 1;
        let end = self.peek().unwrap_or_default();
        self.at += 1;
        let end = match end {
            '\\' => {
                let c = self.peek().ok_or_else(|| invalid("invalid escape \\ sequence"))?;
                self.at += 1;
                self.character_escape(c)?.ok_or_else(|| invalid("invalid escape \\ sequence"))?
            }
            '[' => return Err(refuse("this range")),
            c => c,
        };
        if end < start {
            return Err(invalid("invalid character range"));
        }
        set.ranges.push((start, end));
        if self.options.ignore_case {
            if !end.is_ascii() {
                return Err(refuse("ignoring case in a range beyond ASCII"));
            }
            for c in start..=end {
                set.ranges.extend(self.cases(c)?);
            }
        }
        Ok(())
    }
}
