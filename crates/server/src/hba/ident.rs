//! `pg_ident.conf`: which users of the system, or certificates, may be which users of the database.
//!
//! ```text
//!  map  system-user  database-user          either may be a /pattern; \1 in the second is the first's first group
//! ```

use super::names::Name;
use super::tokens::{Line, Token};

/// One line.
#[derive(Clone, Debug)]
pub(crate) struct IdentLine {
    pub map: String,
    pub system_user: Name,
    pub user: Name,
}

/// Reads a line.
pub(crate) fn ident_line(line: &Line) -> Result<IdentLine, String> {
    let mut fields = line.fields.iter();
    let mut next = || match fields.next().map(Vec::as_slice) {
        Some([token]) => Ok(token.clone()),
        Some(_) => Err("multiple values in ident field".to_owned()),
        None => Err("missing entry at end of line".to_owned()),
    };
    Ok(IdentLine { map: next()?.text, system_user: Name::new(next()?)?, user: Name::new(next()?)? })
}

/// Whether a system's user may be the database's user `user`, by a map or, without one, by having the same name.
pub(crate) fn may_be(
    lines: &[IdentLine],
    map: Option<&str>,
    system_user: &str,
    user: &str,
    is_member: &dyn Fn(&str) -> bool,
) -> Result<bool, String> {
    let Some(map) = map else { return Ok(system_user == user) };
    for line in lines.iter().filter(|line| line.map == map) {
        if line.allows(system_user, user, is_member)? {
            return Ok(true);
        }
    }
    Ok(false)
}

impl IdentLine {
    fn allows(&self, system_user: &str, user: &str, is_member: &dyn Fn(&str) -> bool) -> Result<bool, String> {
        let Some(pattern) = self.system_user.pattern() else {
            return Ok(self.system_user.token.text == system_user && self.user.is_user(user, is_member)?);
        };
        let Some(groups) = pattern.find(system_user).map_err(|e| e.message)? else { return Ok(false) };
        let wanted = &self.user.token.text;
        // Where the user's name has a meaning of its own, it keeps it.
        let is_plain = self.user.group().is_none() && self.user.pattern().is_none();
        let Some((before, after)) = wanted.split_once("\\1").filter(|_| is_plain) else {
            return self.user.is_user(user, is_member);
        };
        let group = groups.get(1).cloned().flatten().and_then(|range| system_user.get(range));
        let group = group.ok_or_else(|| {
            let pattern = self.system_user.token.text.trim_start_matches('/');
            format!(
                "regular expression \"{pattern}\" has no subexpressions as requested by backreference in \"{wanted}\""
            )
        })?;
        // What came from outside is a name and nothing else.
        let name = Name::literal(Token { text: format!("{before}{group}{after}"), quoted: true });
        name.is_user(user, is_member)
    }
}
