//! Running a pattern over a text.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use stegodon_types::SqlResult;

use super::*;
use crate::EvalContext;

/// A span, in characters.
pub(in super::super) type Span = (usize, usize);

/// How many ends are kept before all are forgotten.
const MAX_KEPT: usize = 4_000_000;

impl Class {
    fn has(self, c: char, ascii: bool) -> bool {
        match self {
            Class::Digit => c.is_ascii_digit(),
            Class::HexDigit => c.is_ascii_hexdigit(),
            Class::Space if ascii => matches!(c, '\x09'..='\x0d' | ' '),
            Class::Space => c.is_whitespace(),
            Class::Alpha if ascii => c.is_ascii_alphabetic(),
            Class::Alpha => c.is_alphabetic(),
            Class::Alnum => Class::Alpha.has(c, ascii) || c.is_ascii_digit(),
            Class::Word => Class::Alnum.has(c, ascii) || c == '_',
            Class::Upper if ascii => c.is_ascii_uppercase(),
            Class::Upper => c.is_uppercase(),
            Class::Lower if ascii => c.is_ascii_lowercase(),
            Class::Lower => c.is_lowercase(),
            // Run over ASCII only.
            Class::Punct => c.is_ascii_punctuation(),
            Class::Graph => c.is_ascii_graphic(),
            Class::Print => c.is_ascii_graphic() || c == ' ',
            Class::Control => c.is_ascii_control(),
            Class::Blank => matches!(c, ' ' | '\t'),
        }
    }
}

impl Set {
    fn has(&self, c: char, ascii: bool) -> bool {
        if self.no_newline && c == '\n' {
            return false;
        }
        let listed = self.ranges.iter().any(|(from, to)| (*from..=*to).contains(&c))
            || self.classes.iter().any(|(class, negated)| class.has(c, ascii) != *negated);
        listed != self.negated
    }
}

/// A pattern over one text.
pub(in super::super) struct Matcher<'a> {
    are: &'a Are,
    cx: &'a EvalContext<'a>,
    text: &'a [char],
    ends: HashMap<(usize, usize), Rc<Vec<usize>>>,
    kept: usize,
}

impl<'a> Matcher<'a> {
    pub(in super::super) fn new(are: &'a Are, cx: &'a EvalContext<'a>, text: &'a [char]) -> SqlResult<Self> {
        if are.ascii_only && !text.iter().all(char::is_ascii) {
            return Err(refuse("this character class over text beyond ASCII"));
        }
        Ok(Matcher { are, cx, text, ends: HashMap::new(), kept: 0 })
    }

    /// The first match from a place on: its span, then its groups'.
    pub(in super::super) fn find(&mut self, from: usize) -> SqlResult<Option<Vec<Option<Span>>>> {
        let are = self.are;
        for begin in from..=self.text.len() {
            if begin % 256 == 0 {
                self.cx.session.check_cancel()?;
            }
            let ends = self.ends(are.tree.lang, begin);
            let end = if are.tree.flags & SHORTER != 0 { ends.first() } else { ends.last() };
            let Some(&end) = end else { continue };
            let mut groups = vec![None; are.groups + 1];
            self.dissect(&are.tree, begin, end, &mut groups);
            if let Some(whole) = groups.first_mut() {
                *whole = Some((begin, end));
            }
            return Ok(Some(groups));
        }
        Ok(None)
    }

    fn is_word(&self, at: Option<usize>) -> bool {
        let c = at.and_then(|at| self.text.get(at));
        c.is_some_and(|c| Class::Word.has(*c, self.ascii()))
    }

    fn ascii(&self) -> bool {
        self.are.rules == CaseRules::Ascii
    }

    /// Where a match from a place can end, in order.
    fn ends(&mut self, lang: usize, from: usize) -> Rc<Vec<usize>> {
        if let Some(ends) = self.ends.get(&(lang, from)) {
            return Rc::clone(ends);
        }
        let ends = Rc::new(self.compute(lang, from));
        if self.kept > MAX_KEPT {
            self.ends.clear();
            self.kept = 0;
        }
        self.kept += ends.len() + 8;
        self.ends.insert((lang, from), Rc::clone(&ends));
        ends
    }

    fn after(&mut self, lang: usize, from: &[usize]) -> Vec<usize> {
        let mut all = Vec::new();
        for &at in from {
            all.extend_from_slice(&self.ends(lang, at));
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    fn compute(&mut self, lang: usize, from: usize) -> Vec<usize> {
        let are = self.are;
        let holds = |yes: bool| if yes { vec![from] } else { Vec::new() };
        let before = from.checked_sub(1);
        match are.langs.get(lang) {
            None => Vec::new(),
            Some(Lang::Set(set)) => match self.text.get(from) {
                Some(c) if set.has(*c, self.ascii()) => vec![from + 1],
                _ => Vec::new(),
            },
            Some(Lang::Seq(items)) => items.iter().fold(vec![from], |at, item| self.after(*item, &at)),
            Some(Lang::Alt(items)) => {
                let mut all: Vec<usize> = Vec::new();
                for item in items {
                    all.extend_from_slice(&self.ends(*item, from));
                }
                all.sort_unstable();
                all.dedup();
                all
            }
            Some(Lang::Repeat(inner, min, max)) => self.repeat(*inner, *min, *max, from),
            Some(Lang::Begin) => holds(from == 0),
            Some(Lang::End) => holds(from == self.text.len()),
            Some(Lang::BeginLine) => holds(before.is_none_or(|at| self.text.get(at) == Some(&'\n'))),
            Some(Lang::EndLine) => holds(self.text.get(from).is_none_or(|c| *c == '\n')),
            Some(Lang::WordStart) => holds(!self.is_word(before) && self.is_word(Some(from))),
            Some(Lang::WordEnd) => holds(self.is_word(before) && !self.is_word(Some(from))),
            Some(Lang::WordEdge(edge)) => holds((self.is_word(before) != self.is_word(Some(from))) == *edge),
            Some(Lang::Look { inner, behind: false, negated }) => holds(self.ends(*inner, from).is_empty() == *negated),
            Some(Lang::Look { inner, behind: true, negated }) => {
                let found = (0..=from).any(|start| self.ends(*inner, start).binary_search(&from).is_ok());
                holds(found != *negated)
            }
        }
    }

    fn repeat(&mut self, inner: usize, min: u32, max: Option<u32>, from: usize) -> Vec<usize> {
        if let Some(Lang::Set(set)) = self.are.langs.get(inner) {
            // A run of characters.
            let ascii = self.ascii();
            let run = self.text.iter().skip(from).take(max.map_or(usize::MAX, |n| n as usize));
            let run = run.take_while(|c| set.has(**c, ascii)).count();
            return (from + min as usize..=from + run).collect();
        }
        let mut at = vec![from];
        for _ in 0..min {
            at = self.after(inner, &at);
        }
        let mut all = at.clone();
        let mut rounds = max.map(|max| max - min);
        while !at.is_empty() && rounds != Some(0) {
            at = self.after(inner, &at);
            at.retain(|end| all.binary_search(end).is_err());
            all.extend_from_slice(&at);
            all.sort_unstable();
            rounds = rounds.map(|n| n - 1);
        }
        all
    }

    fn matches(&mut self, part: &Part, begin: usize, end: usize) -> bool {
        self.ends(part.lang, begin).binary_search(&end).is_ok()
    }

    /// Finds the groups of a part that matches a span.
    fn dissect(&mut self, part: &Part, begin: usize, end: usize, groups: &mut [Option<Span>]) -> bool {
        let found = match (part.op, part.parts.as_slice()) {
            (Op::Plain, _) => true,
            (Op::Wrap, [inner]) => self.dissect(inner, begin, end, groups),
            (Op::Concat, [first, second]) => {
                let middles = self.ends(first.lang, begin);
                let middles = middles.iter().copied().filter(|at| *at <= end);
                let middles: Vec<usize> =
                    if first.flags & SHORTER != 0 { middles.collect() } else { middles.rev().collect() };
                middles.into_iter().any(|at| {
                    self.matches(second, at, end)
                        && self.dissect(first, begin, at, groups)
                        && self.dissect(second, at, end, groups)
                })
            }
            (Op::Alt, parts) => {
                parts.iter().any(|part| self.matches(part, begin, end) && self.dissect(part, begin, end, groups))
            }
            (Op::Iterate(max), [inner]) => self.iterate(part, inner, max, (begin, end), groups),
            _ => false,
        };
        if found
            && part.group > 0
            && let Some(group) = groups.get_mut(part.group)
        {
            *group = Some((begin, end));
        }
        found
    }

    /// Divides a span among repetitions, each as long (or as short) as it can be; only the last one's groups stay. None at all
    /// are allowed: what must be there once stands outside.
    fn iterate(
        &mut self,
        part: &Part,
        inner: &Part,
        max: Option<u32>,
        (begin, end): Span,
        groups: &mut [Option<Span>],
    ) -> bool {
        if begin == end {
            // Once rather than never, where once matches nothing too.
            if self.matches(inner, begin, end) {
                self.dissect(inner, begin, end, groups);
            }
            return true;
        }
        let shorter = inner.flags & SHORTER != 0;
        let mut last = (begin, begin);
        if let Some(max) = max {
            let most = (max as usize).min(end - begin).max(1);
            let mut points = vec![begin];
            if !self.divide(inner, most, shorter, end, &mut points, &mut HashSet::new()) {
                return false;
            }
            if let [.., from, to] = points.as_slice() {
                last = (*from, *to);
            }
        } else {
            while last.1 < end {
                let from = last.1;
                let ends = self.ends(inner.lang, from);
                let able = |m: &mut Self, at: usize| {
                    from < at && at <= end && (at == end || m.ends(part.lang, at).binary_search(&end).is_ok())
                };
                let found = if shorter {
                    ends.iter().copied().find(|at| able(self, *at))
                } else {
                    ends.iter().rev().copied().find(|at| able(self, *at))
                };
                let Some(at) = found else { return false };
                last = (from, at);
            }
        }
        self.dissect(inner, last.0, last.1, groups)
    }

    /// Adds the ends of at most so many repetitions, up to the end. `dead` has what was tried in vain.
    fn divide(
        &mut self,
        inner: &Part,
        most: usize,
        shorter: bool,
        end: usize,
        points: &mut Vec<usize>,
        dead: &mut HashSet<(usize, usize)>,
    ) -> bool {
        let done = points.len() - 1;
        let Some(&from) = points.last() else { return false };
        if from == end {
            return true;
        }
        if done >= most || dead.contains(&(done, from)) {
            return false;
        }
        let ends = self.ends(inner.lang, from);
        let ends: Vec<usize> = ends.iter().copied().filter(|at| from < *at && *at <= end).collect();
        let ordered: Vec<usize> = if shorter { ends } else { ends.into_iter().rev().collect() };
        for at in ordered {
            points.push(at);
            if self.divide(inner, most, shorter, end, points, dead) {
                return true;
            }
            points.pop();
        }
        dead.insert((done, from));
        false
    }
}
