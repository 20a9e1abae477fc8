//! `pg_hba.conf` and `pg_ident.conf`: who may come from where, and what each must show.
//!
//! ```text
//!  files ─tokens─▸ lines of fields ─rules─▸ Rule, in order ─┐
//!                                  ─ident─▸ IdentLine       ├─ decide ─▸ the first Rule that speaks of a connection, or none
//!                     who asks, from where, what for ───────┘
//! ```
//! As in PostgreSQL a file with an error is not used at all: the server does not start.

mod address;
mod ident;
mod names;
mod rules;
mod tokens;

use std::path::Path;

use stegodon_types::{SqlError, SqlResult, SqlState};

use ident::IdentLine;
pub(crate) use rules::{Asking, ClientCert, Method, Rule};

/// What stands where a directory has no `pg_hba.conf`.
const WITHOUT_FILE: &str = "local all all trust\nhost all all all scram-sha-256\n";

/// The rules of a server.
#[derive(Debug)]
pub(crate) struct HostRules {
    rules: Vec<Rule>,
    ident: Vec<IdentLine>,
}

impl HostRules {
    /// Reads the files that the settings `hba_file` and `ident_file` name, empty for those of the directory. A directory
    /// may lack them: some installations keep them elsewhere, and a copy of the directory does not bring them.
    pub(crate) fn load(directory: &Path, hba_file: &str, ident_file: &str) -> SqlResult<Self> {
        let file = |setting: &str, name: &str| match setting {
            "" => Some(directory.join(name)).filter(|path| path.exists()),
            named => Some(directory.join(named)),
        };
        let rules = if let Some(path) = file(hba_file, "pg_hba.conf") {
            all(&path, rules::rule)?
        } else {
            tracing::warn!(
                "there is no pg_hba.conf: the server's own user may connect over the Unix socket, others by SCRAM"
            );
            without_file()
        };
        if rules.is_empty() {
            return Err(invalid("configuration file contains no entries".to_owned(), "pg_hba.conf"));
        }
        // Without maps the server can start, as PostgreSQL does: whoever would need one does not come in.
        let maps = file(ident_file, "pg_ident.conf").map(|path| all(&path, ident::ident_line));
        let ident = maps.and_then(Result::ok).unwrap_or_default();
        Ok(Self { rules, ident })
    }

    /// The first rule that speaks of a connection. An error where that cannot be said.
    pub(crate) fn decide(
        &self,
        asking: &Asking<'_>,
        is_member: &dyn Fn(&str) -> bool,
    ) -> Result<Option<&Rule>, String> {
        for rule in &self.rules {
            let matches = rule.matches(asking, is_member);
            if matches.map_err(|why| format!("line {} of \"{}\": {why}", rule.line, rule.file))? {
                return Ok(Some(rule));
            }
        }
        Ok(None)
    }

    /// Whether a user of the system, or of a certificate, may be the user that is asked for.
    pub(crate) fn may_be(
        &self,
        map: Option<&str>,
        system_user: &str,
        user: &str,
        is_member: &dyn Fn(&str) -> bool,
    ) -> Result<bool, String> {
        ident::may_be(&self.ident, map, system_user, user, is_member)
    }
}

fn without_file() -> Vec<Rule> {
    let line = |fields: &str| {
        let token = |text: &str| vec![tokens::Token { text: text.to_owned(), quoted: false }];
        let fields = fields.split(' ').map(token).collect();
        rules::rule(&tokens::Line { file: "".into(), number: 0, fields, error: None }).ok()
    };
    WITHOUT_FILE.lines().filter_map(line).collect()
}

fn invalid(message: String, file: &str) -> SqlError {
    SqlError::new(SqlState::ConfigFileError, format!("could not load {file}")).detail(message)
}

/// All lines of a file. Every line that is wrong is named in the log, the first in the error.
fn all<T>(path: &Path, read: fn(&tokens::Line) -> Result<T, String>) -> SqlResult<Vec<T>> {
    let file = path.display().to_string();
    let lines = tokens::read(path).map_err(|message| invalid(message, &file))?;
    let (mut entries, mut first) = (Vec::with_capacity(lines.len()), None);
    for line in &lines {
        match line.error.clone().map_or_else(|| read(line), Err) {
            Ok(entry) => entries.push(entry),
            Err(message) => {
                let message = format!("line {} of configuration file \"{}\": {message}", line.number, line.file);
                tracing::error!("{message}");
                first.get_or_insert(message);
            }
        }
    }
    first.map_or(Ok(entries), |message| Err(invalid(message, &file)))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
