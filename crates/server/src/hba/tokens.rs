//! The language that `pg_hba.conf` and `pg_ident.conf` share: lines of fields, fields of tokens, and files that name others.
//!
//! ```text
//!  line     field field …            # comment          a backslash at the end joins the next line
//!  field    token[,token]…
//!  token    text    "text"    @file                     in "…", "" is a quote; @file stands for the tokens of a file
//!  include file     include_if_exists file     include_dir directory        relative to the file that says so
//! ```
//! What is quoted from its first character on has no special meaning as a keyword, a group or a file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files may name files this deep.
const DEPTH_MAX: usize = 10;
/// More than this is not read, all files together, each as often as it is named.
const BYTES_MAX: u64 = 16 << 20;

/// One value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub text: String,
    pub quoted: bool,
}

impl Token {
    /// Whether it is this keyword, as opposed to a name spelled like it.
    pub(crate) fn is_keyword(&self, keyword: &str) -> bool {
        !self.quoted && self.text == keyword
    }
}

/// One line that says something.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub file: Arc<str>,
    pub number: usize,
    /// Never empty, and no field is, unless there is an error.
    pub fields: Vec<Vec<Token>>,
    /// Why it could not be read.
    pub error: Option<String>,
}

/// What is left to be read.
struct Reader {
    bytes_left: u64,
    lines: Vec<Line>,
}

/// The lines of a file and of those it includes. An error where the file itself cannot be read.
pub(crate) fn read(path: &Path) -> Result<Vec<Line>, String> {
    let mut reader = Reader { bytes_left: BYTES_MAX, lines: Vec::new() };
    reader.file(path, 0)?;
    Ok(reader.lines)
}

impl Reader {
    fn text(&mut self, path: &Path, depth: usize) -> Result<String, String> {
        let cannot = |why: &str| format!("could not open file \"{}\": {why}", path.display());
        if depth > DEPTH_MAX {
            return Err(cannot("maximum nesting depth exceeded"));
        }
        let bytes = std::fs::metadata(path).map_err(|e| cannot(&reason(&e)))?.len();
        let left = self.bytes_left.checked_sub(bytes).ok_or_else(|| cannot("too much to read"))?;
        self.bytes_left = left;
        let text = std::fs::read(path).map_err(|e| cannot(&reason(&e)))?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    fn file(&mut self, path: &Path, depth: usize) -> Result<(), String> {
        let text = self.text(path, depth)?;
        let file: Arc<str> = path.display().to_string().into();
        for (number, line) in joined(&text) {
            let (fields, mut error) = match self.fields(path, &line, depth) {
                Ok(fields) => (fields, None),
                Err(error) => (Vec::new(), Some(error)),
            };
            if fields.is_empty() && error.is_none() {
                continue;
            }
            if let [first, second] = fields.as_slice()
                && let (Some(what), Some(name)) = (first.first(), second.first())
            {
                match self.include(path, &what.text, &name.text, depth) {
                    Some(Ok(())) => continue,
                    Some(Err(message)) => error = Some(message),
                    None => {}
                }
            }
            self.lines.push(Line { file: Arc::clone(&file), number, fields, error });
        }
        Ok(())
    }

    /// Carries out a line that names files; `None` where it is none.
    fn include(&mut self, outer: &Path, what: &str, name: &str, depth: usize) -> Option<Result<(), String>> {
        let path = beside(outer, name);
        match what {
            "include" => Some(self.file(&path, depth + 1)),
            "include_if_exists" if !path.exists() => Some(Ok(())),
            "include_if_exists" => Some(self.file(&path, depth + 1)),
            "include_dir" => Some(self.directory(&path, depth)),
            _ => None,
        }
    }

    fn directory(&mut self, path: &Path, depth: usize) -> Result<(), String> {
        let cannot = |_| format!("could not open directory \"{}\"", path.display());
        let mut files = Vec::new();
        for entry in std::fs::read_dir(path).map_err(cannot)? {
            let file = entry.map_err(cannot)?.path();
            let name = file.file_name().and_then(|n| n.to_str()).unwrap_or_default();
            let is_conf = name.as_bytes().ends_with(b".conf");
            if is_conf && !name.starts_with('.') && !file.is_dir() {
                files.push(file);
            }
        }
        files.sort();
        files.iter().try_for_each(|file| self.file(file, depth + 1))
    }

    /// The fields of a line.
    fn fields(&mut self, path: &Path, line: &str, depth: usize) -> Result<Vec<Vec<Token>>, String> {
        let (mut fields, mut field, mut rest) = (Vec::new(), Vec::new(), line);
        while let Some((token, has_comma, after)) = next_token(rest) {
            rest = after;
            match token.text.strip_prefix('@').filter(|name| !token.quoted && !name.is_empty()) {
                Some(name) => field.extend(self.tokens_of(&beside(path, name), depth + 1)?),
                None => field.push(token),
            }
            if !has_comma && !field.is_empty() {
                fields.push(std::mem::take(&mut field));
            }
        }
        if !field.is_empty() {
            fields.push(field);
        }
        Ok(fields)
    }

    /// All tokens of a file, whatever its lines.
    fn tokens_of(&mut self, path: &Path, depth: usize) -> Result<Vec<Token>, String> {
        let text = self.text(path, depth)?;
        let mut tokens = Vec::new();
        for (_, line) in joined(&text) {
            tokens.extend(self.fields(path, &line, depth)?.into_iter().flatten());
        }
        Ok(tokens)
    }
}

/// Why a file could not be read, without the number that the library adds.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// A file named in another.
fn beside(outer: &Path, name: &str) -> PathBuf {
    outer.parent().map_or_else(|| PathBuf::from(name), |directory| directory.join(name))
}

/// Lines with the numbers they begin at, those that end in a backslash joined with the next.
fn joined(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    // The line under way, where it began, and how much of it earlier lines brought.
    let (mut line, mut begun, mut brought) = (String::new(), 1, 0);
    for (at, part) in text.split('\n').enumerate() {
        line.push_str(part.strip_suffix('\r').unwrap_or(part));
        if line.len() > brought && line.ends_with('\\') {
            line.pop();
            brought = line.len();
            continue;
        }
        lines.push((begun, std::mem::take(&mut line)));
        (begun, brought) = (at + 2, 0);
    }
    if !line.is_empty() {
        lines.push((begun, line));
    }
    lines
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r')
}

/// The next token, whether a comma ends it, and what is behind it.
fn next_token(line: &str) -> Option<(Token, bool, &str)> {
    let line = line.trim_start_matches(|c| is_blank(c) || c == ',');
    let mut text = String::new();
    // Quotes may open anywhere; only where the first character does, the token counts as quoted.
    let (mut in_quotes, mut was_quote, mut has_quotes) = (false, false, false);
    let quoted = line.starts_with('"');
    for (at, c) in line.char_indices() {
        let rest = || line.get(at..).unwrap_or_default();
        let is_something = has_quotes || !text.is_empty();
        match c {
            _ if is_blank(c) && !in_quotes => {
                return Some((Token { text, quoted }, false, rest()));
            }
            '#' if !in_quotes => return is_something.then_some((Token { text, quoted }, false, "")),
            ',' if !in_quotes => return Some((Token { text, quoted }, true, line.get(at + 1..).unwrap_or_default())),
            _ => {}
        }
        if c != '"' || was_quote {
            text.push(c);
        }
        was_quote = in_quotes && c == '"' && !was_quote;
        if c == '"' {
            in_quotes = !in_quotes;
            has_quotes = true;
        }
    }
    (has_quotes || !text.is_empty()).then_some((Token { text, quoted }, false, ""))
}
