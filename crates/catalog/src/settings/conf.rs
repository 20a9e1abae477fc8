//! Configuration files: `postgresql.conf` with its includes, `postgresql.auto.conf`, `stegodon.conf`.
//!
//! ```text
//!  line      [ name [=] value ] [ # comment ]
//!  name      identifier, or two with a dot
//!  value     word, number with unit, or 'text' with '' and \ escapes
//!  include 'file'    include_if_exists 'file'    include_dir 'directory'    relative to the file that says so
//! ```
//!
//! The last line that sets a name wins.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stegodon_format::paths::VERSION_FILE;
use stegodon_format::version::Version;

use super::store::FilePosition;
use super::{Settings, Source};

/// Files may include files this deep.
pub const MAX_INCLUDE_DEPTH: usize = 10;
/// A configuration file that is larger is not read.
pub const MAX_FILE_BYTES: u64 = 16 << 20;

/// One setting of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name as written.
    pub name: String,
    /// The value, unquoted.
    pub value: String,
    /// Where it stands.
    pub position: FilePosition,
}

/// What files said: settings in order, and what could not be read.
#[derive(Clone, Debug, Default)]
pub struct Entries {
    /// The settings, in the order of the files.
    pub entries: Vec<Entry>,
    /// A message for each thing that is wrong.
    pub errors: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Text(String),
    Equals,
    Other(String),
}

fn is_letter(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || !c.is_ascii()
}

/// The tokens of one line; a string that does not end makes a token of its own that fits nowhere.
fn tokens(line: &str) -> Vec<Token> {
    let mut out = Vec::new();
    let mut rest = line;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r']);
        let Some(first) = rest.chars().next() else { return out };
        match first {
            '#' => return out,
            '=' => {
                out.push(Token::Equals);
                rest = rest.get(1..).unwrap_or_default();
            }
            '\'' => {
                let mut text = String::new();
                let mut chars = rest.char_indices().skip(1).peekable();
                let mut end = None;
                while let Some((at, c)) = chars.next() {
                    match c {
                        '\'' if chars.next_if(|&(_, c)| c == '\'').is_some() => text.push('\''),
                        '\'' => {
                            end = Some(at + 1);
                            break;
                        }
                        '\\' => match chars.next().map(|(_, c)| c) {
                            Some('b') => text.push('\u{8}'),
                            Some('f') => text.push('\u{c}'),
                            Some('n') => text.push('\n'),
                            Some('r') => text.push('\r'),
                            Some('t') => text.push('\t'),
                            Some(d @ '0'..='7') => {
                                let mut value = d.to_digit(8).unwrap_or(0);
                                for _ in 0..2 {
                                    match chars.next_if(|&(_, c)| ('0'..='7').contains(&c)) {
                                        Some((_, d)) => value = value * 8 + d.to_digit(8).unwrap_or(0),
                                        None => break,
                                    }
                                }
                                text.push(char::from((value & 0xFF) as u8));
                            }
                            Some(c) => text.push(c),
                            None => break,
                        },
                        c => text.push(c),
                    }
                }
                let Some(after) = end.and_then(|end| rest.get(end..)) else {
                    out.push(Token::Other(rest.to_owned()));
                    return out;
                };
                out.push(Token::Text(text));
                rest = after;
            }
            c if is_letter(c) || c.is_ascii_digit() || matches!(c, '-' | '+' | '.') => {
                let word = |c: char| is_letter(c) || c.is_ascii_digit() || "-+._:/".contains(c);
                let end = rest.find(|c| !word(c)).unwrap_or(rest.len());
                let (text, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
                out.push(Token::Word(text.to_owned()));
                rest = after;
            }
            other => {
                out.push(Token::Other(other.to_string()));
                rest = rest.get(other.len_utf8()..).unwrap_or_default();
            }
        }
    }
}

fn is_name(word: &str) -> bool {
    let mut parts = 0;
    word.split('.').all(|part| {
        parts += 1;
        part.starts_with(is_letter)
            && part.chars().all(|c| is_letter(c) || c.is_ascii_digit() || c == '$')
            && parts <= 2
    })
}

/// Reads one file and what it includes.
pub fn read_file(path: &Path) -> Entries {
    let mut out = Entries::default();
    read_into(path, 0, true, &mut out);
    out
}

fn read_into(path: &Path, depth: usize, must_exist: bool, out: &mut Entries) {
    let shown = path.display();
    if depth > MAX_INCLUDE_DEPTH {
        out.errors.push(format!("could not open configuration file \"{shown}\": maximum nesting depth exceeded"));
        return;
    }
    let size = std::fs::metadata(path).map(|m| m.len());
    let bytes = match size {
        Ok(size) if size > MAX_FILE_BYTES => {
            out.errors.push(format!("configuration file \"{shown}\" is too large"));
            return;
        }
        Ok(_) => std::fs::read(path),
        Err(e) => Err(e),
    };
    match bytes {
        Ok(bytes) => parse(&String::from_utf8_lossy(&bytes), path, depth, out),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && !must_exist => {}
        Err(e) => out.errors.push(format!("could not open configuration file \"{shown}\": {e}")),
    }
}

/// Reads the text of a file; includes are relative to `path`.
pub fn parse(text: &str, path: &Path, depth: usize, out: &mut Entries) {
    let file: Arc<str> = path.display().to_string().into();
    for (number, line) in text.lines().enumerate() {
        let number = u32::try_from(number + 1).unwrap_or(u32::MAX);
        let mut tokens = tokens(line).into_iter().peekable();
        let name = match tokens.next() {
            None => continue,
            Some(Token::Word(word)) if is_name(&word) => word,
            Some(token) => {
                out.errors.push(syntax_error(&file, number, Some(&token)));
                continue;
            }
        };
        let _equals = tokens.next_if_eq(&Token::Equals);
        let value = match tokens.next() {
            Some(Token::Word(word) | Token::Text(word)) => word,
            token => {
                out.errors.push(syntax_error(&file, number, token.as_ref()));
                continue;
            }
        };
        if let Some(token) = tokens.next() {
            out.errors.push(syntax_error(&file, number, Some(&token)));
            continue;
        }
        let beside = |name: &str| path.parent().map_or_else(|| PathBuf::from(name), |dir| dir.join(name));
        match name.to_ascii_lowercase().as_str() {
            "include" => read_into(&beside(&value), depth + 1, true, out),
            "include_if_exists" => read_into(&beside(&value), depth + 1, false, out),
            "include_dir" => read_dir_into(&beside(&value), depth, out),
            _ => out.entries.push(Entry {
                name,
                value,
                position: FilePosition { file: Arc::clone(&file), line: number },
            }),
        }
    }
}

/// The `.conf` files of a directory in the order of their names' bytes, hidden ones left out.
fn read_dir_into(dir: &Path, depth: usize, out: &mut Entries) {
    let listed = std::fs::read_dir(dir).and_then(|d| d.map(|e| e.map(|e| e.path())).collect::<Result<Vec<_>, _>>());
    match listed {
        Ok(mut paths) => {
            paths.retain(|p| {
                let name = p.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
                name.len() > 5 && !name.starts_with('.') && name.as_bytes().ends_with(b".conf") && p.is_file()
            });
            paths.sort();
            for path in paths {
                read_into(&path, depth + 1, true, out);
            }
        }
        Err(e) => out.errors.push(format!("could not open configuration directory \"{}\": {e}", dir.display())),
    }
}

fn syntax_error(file: &str, line: u32, token: Option<&Token>) -> String {
    match token {
        None => format!("syntax error in file \"{file}\" line {line}, near end of line"),
        Some(token) => {
            let text = match token {
                Token::Word(t) | Token::Text(t) | Token::Other(t) => t.as_str(),
                Token::Equals => "=",
            };
            format!("syntax error in file \"{file}\" line {line}, near token \"{text}\"")
        }
    }
}

impl Settings {
    /// Applies what files said; gives a message for each line that could not be used: syntax, unknown names, values that
    /// do not fit. The rest of the file counts all the same (DESIGN D8).
    pub fn apply_files(&mut self, files: Entries) -> Vec<String> {
        let mut messages = files.errors;
        for entry in files.entries {
            let position = entry.position;
            let at = format!("in file \"{}\" line {}", position.file, position.line);
            if let Err(e) = self.set_at_start(&entry.name, &entry.value, Source::File, Some(position)) {
                messages.push(format!("{} {at}", e.message));
            }
        }
        messages
    }

    /// Reads the files of a data directory, weakest first: `postgresql.conf`, `postgresql.auto.conf`, `stegodon.conf`.
    /// Gives messages for the log.
    pub fn apply_data_directory(&mut self, dir: &Path) -> Vec<String> {
        let mut messages = Vec::new();
        let version = std::fs::read(dir.join(VERSION_FILE)).ok().and_then(|b| Version::from_pg_version(&b).ok());
        if let Some(version) = version
            && let Err(e) = self.set_version(version)
        {
            messages.push(e.message);
        }
        for name in ["postgresql.conf", "postgresql.auto.conf", "stegodon.conf"] {
            let mut entries = Entries::default();
            read_into(&dir.join(name), 0, false, &mut entries);
            messages.extend(self.apply_files(entries));
        }
        messages
    }

    /// Applies what `pg_db_role_setting` says for a role in a database, weakest first; gives messages for the log.
    pub fn apply_role_settings(
        &mut self,
        catalog: &crate::Catalog,
        database: stegodon_types::Oid,
        role: stegodon_types::Oid,
    ) -> Vec<String> {
        use stegodon_types::Oid;
        let mut messages = Vec::new();
        let order = [
            (Oid::INVALID, Oid::INVALID, Source::Global),
            (database, Oid::INVALID, Source::Database),
            (Oid::INVALID, role, Source::User),
            (database, role, Source::DatabaseUser),
        ];
        for (database, role, source) in order {
            let rows = catalog.role_settings().iter().filter(|r| r.database == database && r.role == role);
            for (name, value) in rows.flat_map(|r| &r.settings).filter_map(|s| s.split_once('=')) {
                if let Err(e) = self.set_at_start(name, value, source, None) {
                    messages.push(e.message);
                }
            }
        }
        messages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_file() {
        let text = "# comment\nwork_mem = 64MB # more\nport 5433\nlisten_addresses = 'a''b\\tc'\nx.y=on\n\
                    shared_preload_libraries = ''\nbad line here\n= 3\n'q' = 1\nname =\nopen = 'x\nlog_timezone = Etc/UTC\n\
                    cost -1.5e3\n";
        let mut out = Entries::default();
        parse(text, Path::new("/d/postgresql.conf"), 0, &mut out);
        let got: Vec<(&str, &str, u32)> =
            out.entries.iter().map(|e| (e.name.as_str(), e.value.as_str(), e.position.line)).collect();
        let want = [
            ("work_mem", "64MB", 2),
            ("port", "5433", 3),
            ("listen_addresses", "a'b\tc", 4),
            ("x.y", "on", 5),
            ("shared_preload_libraries", "", 6),
            ("log_timezone", "Etc/UTC", 12),
            ("cost", "-1.5e3", 13),
        ];
        assert_eq!(got, want);
        assert_eq!(out.errors.len(), 5, "{:?}", out.errors);
        assert_eq!(
            out.errors.first().map(String::as_str),
            Some("syntax error in file \"/d/postgresql.conf\" line 7, near token \"here\"")
        );
    }

    #[test]
    fn the_last_line_wins_and_the_unknown_is_told() {
        let mut out = Entries::default();
        parse("work_mem=1MB\nnosuch = 1\nwork_mem=2MB\nwork_mem=none\n", Path::new("c"), 0, &mut out);
        let mut settings = Settings::new();
        let messages = settings.apply_files(out);
        assert_eq!(settings.show("work_mem").as_deref(), Ok("2MB"));
        assert_eq!(messages.len(), 2);
    }
}
