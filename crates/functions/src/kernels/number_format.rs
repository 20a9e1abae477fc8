//! `to_char` of numbers: `to_char(-12.5, '999D99MI')`.
//!
//! Follows PostgreSQL's `formatting.c` step by step, since what a template means where its parts clash is what that does. Refused:
//! `EEEE`, `RN`, `V`, `L`, numbers that are not finite, and locales other than C.

use stegodon_types::numeric::Numeric;
use stegodon_types::{SqlError, SqlResult, SqlState};

use crate::adapt::*;
use crate::kernel::Entry;
use crate::{Call, Column};

/// One step of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Nine,
    Zero,
    Point,
    Comma,
    Group,
    Minus,
    Plus,
    Sign,
    Ordinal {
        upper: bool,
    },
    /// `S`, `PR`, `FM`, `SP`, `B`, `C`: act by their flags only.
    Silent,
    Literal(char),
}

/// Where `S` puts the sign.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Anchor {
    None,
    Before,
    After,
}

/// A template, and what its keys said.
struct Template {
    keys: Vec<Key>,
    before: usize,
    after: usize,
    decimal: bool,
    zero: bool,
    zero_start: usize,
    zero_end: usize,
    fill: bool,
    sign: Option<usize>,
    anchor: Anchor,
    minus: bool,
    plus: bool,
    bracket: bool,
    locale: bool,
}

fn syntax(message: &str) -> SqlError {
    SqlError::new(SqlState::SyntaxError, message)
}

fn refuse(what: &str) -> SqlError {
    SqlError::unsupported(format_args!("{what} in a number's format"))
}

/// The keywords, longer ones first where one begins another.
const KEYWORDS: [&str; 20] =
    [",", ".", "0", "9", "B", "C", "D", "EEEE", "FM", "G", "L", "MI", "PL", "PR", "RN", "SG", "SP", "S", "TH", "V"];

impl Template {
    fn parse(text: &str) -> SqlResult<Template> {
        let mut t = Template {
            keys: Vec::new(),
            before: 0,
            after: 0,
            decimal: false,
            zero: false,
            zero_start: 0,
            zero_end: 0,
            fill: false,
            sign: None,
            anchor: Anchor::None,
            minus: false,
            plus: false,
            bracket: false,
            locale: false,
        };
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let word = KEYWORDS.iter().find(|w| rest.get(..w.len()).is_some_and(|r| r.eq_ignore_ascii_case(w)));
            // Keywords are written in one case or the other, not mixed.
            let word = word.filter(|w| rest.get(..w.len()).is_some_and(|r| r == **w || r == w.to_ascii_lowercase()));
            if let Some(word) = word {
                let upper = rest.starts_with(*word);
                rest = rest.get(word.len()..).unwrap_or_default();
                t.key(word, upper)?;
                continue;
            }
            if c == '"' {
                rest = rest.get(1..).unwrap_or_default();
                let mut chars = rest.char_indices();
                let mut end = rest.len();
                while let Some((at, c)) = chars.next() {
                    match c {
                        '"' => {
                            end = at + 1;
                            break;
                        }
                        '\\' => t.keys.extend(chars.next().map(|(_, c)| Key::Literal(c))),
                        c => t.keys.push(Key::Literal(c)),
                    }
                }
                rest = rest.get(end..).unwrap_or_default();
                continue;
            }
            // A backslash takes the meaning of a quote only.
            let literal = if c == '\\' && rest.chars().nth(1) == Some('"') { '"' } else { c };
            let length = if literal == c { c.len_utf8() } else { 2 };
            t.keys.push(Key::Literal(literal));
            rest = rest.get(length..).unwrap_or_default();
        }
        Ok(t)
    }

    fn key(&mut self, word: &str, upper: bool) -> SqlResult<()> {
        let signed = self.sign.is_some();
        let key = match word {
            "9" | "0" => {
                if self.bracket {
                    return Err(syntax(&format!("\"{word}\" must be ahead of \"PR\"")));
                }
                if word == "0" && !self.zero && !self.decimal {
                    self.zero = true;
                    self.zero_start = self.before + 1;
                }
                if self.decimal {
                    self.after += 1;
                } else {
                    self.before += 1;
                }
                if word == "0" {
                    self.zero_end = self.before + self.after;
                    Key::Zero
                } else {
                    Key::Nine
                }
            }
            "." | "D" => {
                self.locale |= word == "D";
                if self.decimal {
                    return Err(syntax("multiple decimal points"));
                }
                self.decimal = true;
                Key::Point
            }
            "," => Key::Comma,
            "G" => {
                self.locale = true;
                Key::Group
            }
            "FM" => {
                self.fill = true;
                Key::Silent
            }
            "S" => {
                if signed {
                    return Err(syntax("cannot use \"S\" twice"));
                }
                if self.plus || self.minus || self.bracket {
                    return Err(syntax("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together"));
                }
                self.anchor = if self.decimal { Anchor::After } else { Anchor::Before };
                self.sign = Some(self.before);
                self.locale = true;
                Key::Silent
            }
            "MI" | "PL" | "SG" => {
                if signed {
                    return Err(syntax(&format!("cannot use \"S\" and \"{word}\" together")));
                }
                self.minus |= word != "PL";
                self.plus |= word != "MI";
                match word {
                    "MI" => Key::Minus,
                    "PL" => Key::Plus,
                    _ => Key::Sign,
                }
            }
            "PR" => {
                if signed || self.plus || self.minus {
                    return Err(syntax("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together"));
                }
                self.bracket = true;
                Key::Silent
            }
            "TH" => Key::Ordinal { upper },
            "SP" | "B" | "C" => Key::Silent,
            _ => return Err(refuse(&format!("\"{word}\""))),
        };
        self.keys.push(key);
        Ok(())
    }
}

/// The ordinal's ending.
fn ending(number: &[u8]) -> &'static str {
    let teen = number.iter().rev().nth(1) == Some(&b'1');
    match number.last() {
        Some(b'1') if !teen => "st",
        Some(b'2') if !teen => "nd",
        Some(b'3') if !teen => "rd",
        _ => "th",
    }
}

/// A number being written.
struct Writer<'a> {
    template: &'a Template,
    /// The number's decimals.
    after: usize,
    /// The digits, with a point where the template has one.
    number: Vec<u8>,
    /// The next digit.
    at: usize,
    negative: bool,
    bracket: bool,
    anchor: Anchor,
    sign_written: bool,
    /// Places before the number's first digit.
    spaces: usize,
    /// The last digit that is written in fill mode.
    last: Option<usize>,
    place: usize,
    places: usize,
    /// Whether the last place had a digit.
    in_number: bool,
    out: Vec<u8>,
}

impl Writer<'_> {
    fn last_is_point(&self) -> bool {
        self.last.is_some_and(|at| self.number.get(at) == Some(&b'.'))
    }

    /// `0.1` as `9.9` has no digit before its point.
    fn is_bare_zero(&self) -> bool {
        !self.template.zero && self.at == 0 && self.number.first() == Some(&b'0') && self.after != 0
    }

    fn sign(&mut self) {
        let t = self.template;
        if t.sign.is_some() {
            if self.anchor == Anchor::Before {
                self.out.push(if self.negative { b'-' } else { b'+' });
                self.sign_written = true;
            }
        } else if self.bracket {
            self.out.push(if self.negative { b'<' } else { b' ' });
            self.sign_written = true;
        } else {
            if self.negative {
                self.out.push(b'-');
            } else if !t.fill {
                self.out.push(b' ');
            }
            self.sign_written = true;
        }
    }

    fn digit(&mut self, key: Key) {
        let t = self.template;
        let zero_start = t.zero_start.saturating_sub(1);
        self.in_number = false;
        if !self.sign_written
            && (self.place >= self.spaces || (t.zero && zero_start == self.place))
            && (!self.is_bare_zero() || self.last_is_point())
        {
            self.sign();
        }
        if self.place < self.spaces && (zero_start > self.place || !t.zero) {
            if !t.fill {
                self.out.push(b' ');
            }
        } else if t.zero && self.place < self.spaces {
            self.out.push(b'0');
            self.in_number = true;
        } else {
            match self.number.get(self.at).copied() {
                Some(b'.') => self.out.push(b'.'),
                digit => {
                    if self.last.is_some_and(|last| self.at > last) && key != Key::Zero {
                        // Left out.
                    } else if self.is_bare_zero() {
                        if !t.fill {
                            self.out.push(b' ');
                        } else if self.last_is_point() {
                            self.out.push(b'0');
                        }
                    } else {
                        // Behind its last digit PostgreSQL writes the end of the text: nothing shows after.
                        self.out.push(digit.unwrap_or(0));
                        self.in_number = true;
                    }
                }
            }
            if self.at < self.number.len() {
                self.at += 1;
            }
        }
        let mut end = self.places + usize::from(self.spaces > 0) + usize::from(t.decimal);
        if self.last == Some(self.at) {
            end = self.place;
        }
        if self.place + 1 == end {
            if self.sign_written && self.bracket {
                self.out.push(if self.negative { b'>' } else { b' ' });
            } else if t.sign.is_some() && self.anchor == Anchor::After {
                self.out.push(if self.negative { b'-' } else { b'+' });
            }
        }
        self.place += 1;
    }

    fn run(mut self) -> Vec<u8> {
        let t = self.template;
        for &key in &t.keys {
            match key {
                Key::Nine | Key::Zero | Key::Point => self.digit(key),
                Key::Comma | Key::Group => {
                    if self.in_number {
                        self.out.push(b',');
                    } else if !t.fill {
                        self.out.push(b' ');
                    }
                }
                Key::Minus => {
                    if self.negative {
                        self.out.push(b'-');
                    } else if !t.fill {
                        self.out.push(b' ');
                    }
                }
                Key::Plus => {
                    if !self.negative {
                        self.out.push(b'+');
                    } else if !t.fill {
                        self.out.push(b' ');
                    }
                }
                Key::Sign => self.out.push(if self.negative { b'-' } else { b'+' }),
                Key::Ordinal { upper } => {
                    if self.number.first() != Some(&b'#') && !self.negative && !t.decimal {
                        let text = ending(&self.number);
                        if upper {
                            self.out.extend(text.bytes().map(|b| b.to_ascii_uppercase()));
                        } else {
                            self.out.extend_from_slice(text.as_bytes());
                        }
                    }
                }
                Key::Silent => {}
                Key::Literal(c) => self.out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        let end = self.out.iter().position(|b| *b == 0).unwrap_or(self.out.len());
        self.out.truncate(end);
        self.out
    }
}

/// Writes a number of which the text, rounded to the template's decimals, is given.
fn write(t: &Template, text: &str) -> Vec<u8> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    // A float may have fewer decimals than the template has places.
    let after = fraction.len();
    let mut number;
    let mut spaces = 0;
    if whole.len() > t.before {
        number = vec![b'#'; t.before];
        if t.decimal {
            number.push(b'.');
            number.resize(t.before + 1 + after, b'#');
        }
    } else {
        spaces = t.before - whole.len();
        number = whole.as_bytes().to_vec();
        if t.decimal && after > 0 {
            number.push(b'.');
            number.extend_from_slice(fraction.as_bytes());
        }
    }
    let bracket = t.bracket && !(t.fill && !negative && !t.plus && !t.minus);
    let sign_written = if t.plus || t.minus { t.minus } else { !negative && t.fill && t.sign.is_none() };
    let at_end = t.anchor == Anchor::Before && t.sign == Some(t.before) && !(t.plus || t.minus);
    let anchor = if at_end { Anchor::After } else { t.anchor };
    let mut last = None;
    if t.fill && t.decimal {
        let point = number.iter().position(|b| *b == b'.');
        last = point.map(|point| number.iter().rposition(|b| *b != b'0').unwrap_or(point).max(point));
        if let Some(at) = last.filter(|_| t.zero_end > spaces) {
            last = Some(at.max((number.len() - 1).min(t.zero_end - spaces)));
        }
    }
    let mut places = (t.before + after).saturating_sub(1);
    if !sign_written && spaces == 0 {
        places += 1;
    }
    Writer {
        template: t,
        after,
        number,
        at: 0,
        negative,
        bracket,
        anchor,
        sign_written,
        spaces,
        last,
        place: 0,
        places,
        in_number: false,
        out: Vec::new(),
    }
    .run()
}

/// A float's text as C's `printf` writes it, of as many digits as a double is sure to hold.
fn float_text(v: f64, digits: usize, after: usize) -> SqlResult<String> {
    if !v.is_finite() {
        return Err(SqlError::unsupported("to_char of a number that is not finite"));
    }
    let whole = format!("{:.0}", v.abs()).len();
    let after = if whole >= digits { 0 } else { after.min(digits - whole) };
    Ok(format!("{v:.after$}"))
}

fn to_char<'a, A: Arg<'a>>(call: &Call<'a>, text: impl Fn(A, &Template) -> SqlResult<String>) -> SqlResult<Column> {
    write2(call, |v: A, format: &[u8], out| {
        let format = std::str::from_utf8(format).map_err(|_| refuse("text that is not UTF-8"))?;
        let template = Template::parse(format)?;
        if template.locale {
            let locale = call.cx.session.setting("lc_numeric");
            if locale.is_some_and(|l| !matches!(l.as_str(), "" | "C" | "POSIX" | "C.UTF-8" | "C.utf8")) {
                return Err(refuse("a locale other than C"));
            }
        }
        out.extend_from_slice(&write(&template, &text(v, &template)?));
        Ok(())
    })
}

fn whole(v: i64, t: &Template) -> String {
    if t.after == 0 { v.to_string() } else { format!("{v}.{:0<1$}", "", t.after) }
}

/// Functions.
pub(crate) static KERNELS: &[Entry] = &[
    (1773, |c| to_char(c, |v: i32, t| Ok(whole(i64::from(v), t)))),
    (1774, |c| to_char(c, |v: i64, t| Ok(whole(v, t)))),
    (1772, |c| {
        to_char(c, |v: &[u8], t| {
            let v = Numeric::from_payload(v)?;
            if v.finite().is_none() {
                return Err(SqlError::unsupported("to_char of a number that is not finite"));
            }
            Ok(v.round(t.after as i32).text())
        })
    }),
    (1775, |c| to_char(c, |v: f32, t| float_text(f64::from(v), 6, t.after))),
    (1776, |c| to_char(c, |v: f64, t| float_text(v, 15, t.after))),
];
